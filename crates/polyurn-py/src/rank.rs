//! Models ranked by their evidence, and pages of results.

use crate::checkpoint;
use crate::data::Dataset;
use crate::errors::OrException;
use crate::request::Request;
use crate::score::{needs_prior, needs_whole};
use crate::words::{in_python, result_in_python};
use polyurn::report::Report;
use polyurn::score::Method;
use polyurn::select::{Candidate, Contest, Entry, Field, Inquiry, Logbook, ROUNDS};
use polyurn::shown::ShownRanking;
use polyurn::{Error, Result, Seed};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Ranks models: the result as JSON and as text, lines to warn of, and whether it was interrupted.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the private half of a function with keywords")]
pub fn rank(
    py: Python<'_>,
    is_select: bool,
    data: PyRef<'_, Dataset>,
    models: Vec<String>,
    weights: Option<HashMap<String, f64>>,
    request: &str,
    is_last_use: bool,
    watcher: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, String, Vec<String>, bool)> {
    let start = Instant::now();
    let request = Request::read(request).or_exception()?;
    let scoring = request.scoring().or_exception()?;
    let entries = entries(&models, &request).or_exception()?;
    needs_whole(&*data.get()?, scoring.method == Method::Vb).or_exception()?;
    let data = data.hand_over(is_last_use)?;
    let name = data.source.clone();
    let work = request.work(watcher).or_exception()?;
    let (result, interrupted) = work.run(py, |control, cancel| {
        let data = Arc::try_unwrap(data).unwrap_or_else(|shared| (*shared).clone());
        let field = Field::new(entries, data, request.columns.clone())?;
        let weights = weights_of(weights.as_ref(), field.candidates())?;
        let is_vb = scoring.method == Method::Vb;
        let contest = Contest {
            scoring,
            threads: request.means().threads,
            seed: Seed(request.seed),
            a: None,
            deadline: request.time().map(|limit| start + limit),
            time_limit: request.time(),
            cancel: cancel.clone(),
            wants_bounds: request.bound.unwrap_or(true) && !is_vb,
            most_rounds: ROUNDS,
        };
        let inquiry =
            Inquiry { contest, weights, a_values: request.a_values.clone(), factors: request.sensitivity.clone() };
        let logbook = Logbook::open(&field, &inquiry.contest, control)?;
        let findings = inquiry.run(&field, &logbook, control)?;
        let (command, seconds) = (if is_select { "select" } else { "compare" }, start.elapsed().as_secs_f64());
        let shown = ShownRanking::new(command, &field, &inquiry.weights, findings, name, seconds)?
            .interrupted(cancel.is_over());
        let is_late = inquiry.contest.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let is_done = !shown.is_cut() && !is_late;
        let mut found = shown.json(Seed(request.seed), &[]);
        result_in_python(&mut found);
        let lines = shown.warning_lines().iter().map(|line| in_python(line)).collect();
        Ok((found.to_string(), in_python(&shown.text()), lines, is_done))
    })?;
    if !interrupted && result.3 {
        checkpoint::remove(request.checkpoint.as_deref());
    }
    Ok((result.0, result.1, result.2, interrupted))
}

fn entries(models: &[String], request: &Request) -> Result<Vec<Entry>> {
    let is_twice = |(ix, model): &(usize, &String)| models[..*ix].contains(model);
    if let Some((_, model)) = models.iter().enumerate().find(is_twice) {
        let why = "is given twice, which would share its probability out between the two; give it once";
        return Err(Error::Setting(format!("{model}: {why}")));
    }
    let entry = |name: &String| {
        let (source, settings, has_prior) = request.model_and_prior(name)?;
        needs_prior(has_prior)?;
        Ok(Entry { name: name.clone(), source, settings })
    };
    models.iter().map(entry).collect()
}

/// A weight for each candidate: by its text, or by its size where that is all that varies.
fn weights_of(given: Option<&HashMap<String, f64>>, candidates: &[Candidate]) -> Result<Vec<f64>> {
    let Some(given) = given else { return Ok(vec![1.0; candidates.len()]) };
    let keys = |candidate: &Candidate| match &candidate.sizes[..] {
        [(_, size)] => vec![candidate.model.clone(), size.to_string()],
        _ => vec![candidate.model.clone()],
    };
    let known: Vec<String> = candidates.iter().flat_map(keys).collect();
    if let Some(key) = given.keys().find(|key| !known.contains(key)) {
        return Err(Error::Setting(format!(
            "model_prior: {key:?} is none of the models; they are {}",
            known.join(", ")
        )));
    }
    let of = |candidate: &Candidate| {
        let weight = keys(candidate).iter().find_map(|key| given.get(key).copied());
        match weight {
            Some(weight) if weight >= 0.0 && weight.is_finite() => Ok(weight),
            Some(weight) => Err(Error::Setting(format!("model_prior: {weight} of {} is no weight", candidate.model))),
            None => Err(Error::Setting(format!("model_prior: there is no weight for {}", candidate.model))),
        }
    };
    candidates.iter().map(of).collect()
}

/// The page of a result that `rank` or a fit gave as JSON.
#[pyfunction]
#[pyo3(signature = (result, title))]
pub fn report(result: &str, title: Option<String>) -> PyResult<String> {
    let value = serde_json::from_str(result).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let report = Report::from_json(&value).or_exception()?;
    Ok(match title {
        Some(title) => report.with_title(title).html(),
        None => report.html(),
    })
}
