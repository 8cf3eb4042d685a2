//! `polyurn select` and `polyurn compare`: models ranked by their evidence.

use super::score::scoring;
use super::select_prior::weights;
use crate::args::{CompareArgs, ContestArgs, ScoreMethod, SelectArgs};
use crate::load::{GivenModel, load_data, load_model};
use crate::output::{Failure, Output, command_line};
use crate::progress::{check_checkpoint, control};
use crate::signals;
use polyurn::select::{Contest, Entry, Field, Inquiry, Logbook, ROUNDS};
use polyurn::shown::ShownRanking;
use std::path::Path;
use std::time::Instant;

/// Ranks sizes.
pub fn select(args: &SelectArgs) -> Result<(), Failure> {
    run("select", std::slice::from_ref(&args.model), &args.contest)
}

/// Ranks models.
pub fn compare(args: &CompareArgs) -> Result<(), Failure> {
    let is_twice = |(ix, model): &(usize, &String)| args.models[..*ix].contains(model);
    if let Some((_, model)) = args.models.iter().enumerate().find(is_twice) {
        return Err(Failure::Usage(format!(
            "--model {model}: is given twice, which would share its probability out between the two; give it once"
        )));
    }
    run("compare", &args.models, &args.contest)
}

fn run(command: &'static str, models: &[String], args: &ContestArgs) -> Result<(), Failure> {
    let start = Instant::now();
    let mut inputs: Vec<&Path> = models.iter().map(Path::new).collect();
    inputs.push(&args.data.data);
    inputs.extend(args.model_prior.as_deref());
    let mut output = Output::open(&args.output, &inputs)?;
    check_checkpoint(&args.checkpoint, &args.output, &inputs, &mut output)?;
    let given =
        models.iter().map(|model| load_model(model, &args.prior)?.with_prior()).collect::<Result<Vec<_>, _>>()?;
    let a_values = a_values(&given[0], args)?;
    let scoring = scoring(args.method, &args.particles, &args.anneal, &args.sweeps, &args.limits)?;
    let fractions = args.method == ScoreMethod::Vb;
    let (dataset, _) = load_data(&args.data.data, &args.data.reading.file, fractions, &output)?;
    let entries = given.into_iter().zip(models).map(|(given, name)| Entry {
        name: name.clone(),
        source: given.source,
        settings: given.settings,
    });
    let field = Field::new(entries.collect(), dataset, args.data.reading.columns.clone())?;
    let weights = weights(args.model_prior.as_deref(), &field)?;
    let unranked: Vec<String> = field
        .candidates()
        .iter()
        .zip(&weights)
        .filter(|(_, weight)| **weight == 0.0)
        .map(|(candidate, _)| candidate.model.clone())
        .collect();
    if !unranked.is_empty() {
        output.warn_lines(&[format!("weight 0, so not ranked: {}", unranked.join(", "))]);
    }
    let deadline = args.limits.time_limit.map(|limit| start + limit);
    let inquiry = Inquiry {
        contest: Contest {
            scoring,
            threads: output.n_threads,
            seed: output.seed(),
            a: None,
            deadline,
            time_limit: args.limits.time_limit,
            cancel: signals::cancel(),
            wants_bounds: !args.no_bound && args.method != ScoreMethod::Vb,
            most_rounds: ROUNDS,
        },
        weights,
        a_values,
        factors: args.sensitivity.as_ref().map(|factors| factors.0.clone()),
    };
    let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
    let logbook = Logbook::open(&field, &inquiry.contest, &mut control)?;
    let findings = inquiry.run(&field, &logbook, &mut control)?;
    drop(control);
    let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let (data, seconds) = (args.data.data.display().to_string(), start.elapsed().as_secs_f64());
    let shown = ShownRanking::new(command, &field, &inquiry.weights, findings, data, seconds)?
        .interrupted(signals::is_stopped());
    output.warn_lines(&shown.warning_lines());
    if !shown.is_exact() {
        output.note_drawn_seed(args.limits.time_limit.is_some());
    }
    if args.csv {
        output.write(|out| out.write_all(shown.csv().as_bytes()))?;
    } else {
        output.result(|| shown.json(output.seed(), &command_line()), || shown.text())?;
    }
    // What more time would go on from is kept.
    if !shown.is_cut() && !is_late {
        args.checkpoint.remove();
    }
    Ok(())
}

/// The values of `a` that were listed, if more than one.
fn a_values(given: &GivenModel, args: &ContestArgs) -> Result<Option<Vec<f64>>, Failure> {
    let Some(points) = &given.curve else { return Ok(None) };
    let values: Option<Vec<f64>> = points.iter().map(|point| point.a.filter(|_| point.is_a_alone())).collect();
    let Some(values) = values else {
        return Err(Failure::Usage("--pseudo-count: give one value here; only --a may have several".into()));
    };
    if args.sensitivity.as_ref().is_some_and(|factors| !factors.0.is_empty()) {
        return Err(Failure::Usage("--sensitivity: --a has several values already; leave one of the two out".into()));
    }
    Ok(Some(values))
}
