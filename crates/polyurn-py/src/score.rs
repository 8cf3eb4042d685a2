//! The evidence of one model.

use crate::checkpoint;
use crate::data::Dataset;
use crate::errors::OrException;
use crate::request::Request;
use crate::words::{in_python, result_in_python};
use polyurn::counts;
use polyurn::graph::{BindOptions, Binding, ModelSource, bind, bind_owned};
use polyurn::score::Method;
use polyurn::shown::ShownScore;
use polyurn::{Error, Result, Seed};
use pyo3::prelude::*;
use std::sync::Arc;

/// Binds a model to data. Data that nobody else holds are taken over, not copied.
///
/// # Errors
/// As for [`bind_owned`].
pub fn bound(source: &ModelSource, data: Arc<counts::Dataset>, request: &Request) -> Result<Binding> {
    let options = BindOptions { columns: request.columns.as_deref(), ..Default::default() };
    match Arc::try_unwrap(data) {
        Ok(data) => bind_owned(source, data, options),
        Err(shared) => bind(source, &shared, options),
    }
}

/// Refuses counts that are not whole, for engines that need whole ones.
///
/// # Errors
/// That these are not.
pub fn needs_whole(data: &counts::Dataset, takes_fractions: bool) -> Result<()> {
    if takes_fractions || data.unit.is_token() {
        return Ok(());
    }
    Err(Error::data(
        &data.source,
        "some counts are not whole, and whole ones are needed here; use method \"vb\" or \"em\"",
    ))
}

/// Refuses a prior that is none.
///
/// # Errors
/// That this needs one.
pub fn needs_prior(has_prior: bool) -> Result<()> {
    if has_prior {
        return Ok(());
    }
    Err(Error::Setting(
        "prior=\"none\": this needs a prior; without one there is only maximum likelihood (method=\"em\")".into(),
    ))
}

/// Scores a model: the result as JSON and as text, and whether it was interrupted.
#[pyfunction]
pub fn score(
    py: Python<'_>,
    data: PyRef<'_, Dataset>,
    request: &str,
    is_last_use: bool,
    watcher: Option<Bound<'_, PyAny>>,
) -> PyResult<(String, String, bool)> {
    let request = Request::read(request).or_exception()?;
    let scoring = request.scoring().or_exception()?;
    let (source, settings, has_prior) = request.model_and_prior(&request.model).or_exception()?;
    needs_prior(has_prior).or_exception()?;
    needs_whole(&*data.get()?, scoring.method == Method::Vb).or_exception()?;
    let data = data.hand_over(is_last_use)?;
    let name = data.source.clone();
    let work = request.work(watcher).or_exception()?;
    let (result, interrupted) = work.run(py, |control, _| {
        let binding = bound(&source, data, &request)?;
        if request.totals.is_some() && binding.counts.unknown.is_empty() {
            return Err(Error::Setting(
                "totals: no cell of the data has an unknown count, so the total is known".into(),
            ));
        }
        let score = scoring.score(&binding, &settings, request.means(), control)?;
        let shown = ShownScore { score: &score, model: &binding.model };
        let keeps_state = polyurn::checkpoint::is_needed(&score.warnings);
        let mut found = shown.json(Seed(request.seed));
        result_in_python(&mut found);
        Ok((found.to_string(), in_python(&shown.text(&request.model, &name)), keeps_state))
    })?;
    if !interrupted && !result.2 {
        checkpoint::remove(request.checkpoint.as_deref());
    }
    Ok((result.0, result.1, interrupted))
}
