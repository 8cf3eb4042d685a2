//! `polyurn select` and `polyurn compare`: models ranked by their evidence.

use super::score::scoring;
use super::select_prior::weights;
use super::select_shown::{AtSize, Elsewhere, Shown, Size};
use crate::args::{CompareArgs, ContestArgs, ScoreMethod, SelectArgs};
use crate::load::{GivenModel, load_data, load_model};
use crate::output::{Failure, Output};
use crate::progress::{check_checkpoint, control};
use crate::signals;
use crate::text::{and, show_short};
use polyurn::Warning;
use polyurn::control::Control;
use polyurn::select::{Candidate, Contest, Entry, Field, Logbook, Ranking, Scored};
use std::path::Path;
use std::time::Instant;

/// Multiples of `a` at which models are ranked too, unless asked otherwise.
const FACTORS: [f64; 4] = [0.25, 0.5, 2.0, 4.0];
/// Tokens, counted once for each model without an exact score, up to which that is done without being asked.
const CHEAP_TOKENS: u64 = 20_000;
/// Values of `a` that are listed in a sentence.
const MOST_SIZES: usize = 8;
/// Work at another value of `a`, as a share of that at the models' own.
const WORK_ELSEWHERE: f64 = 0.25;
/// Rounds of more work for models that cannot be told apart.
const ROUNDS: u32 = 2;
/// The same for other values of `a`, where the aim is to see what moves.
const ROUNDS_ELSEWHERE: u32 = 0;

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
    let (dataset, _) = load_data(&args.data.data, args.data.reading.format, fractions, &output)?;
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
    let contest = Contest {
        scoring,
        threads: output.n_threads,
        seed: output.seed(),
        a: None,
        deadline,
        time_limit: args.limits.time_limit,
        cancel: signals::cancel(),
        wants_bounds: !args.no_bound && args.method != ScoreMethod::Vb,
        most_rounds: ROUNDS,
    };
    let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
    let logbook = Logbook::open(&field, &contest, &mut control)?;
    let job = Job { field: &field, contest, logbook: &logbook, args };
    let (sizes, elsewhere) = match a_values {
        Some(values) => (job.at_all(&values, &mut control)?, Elsewhere::default()),
        None => {
            let n_factors = args.sensitivity.as_ref().map_or(FACTORS.len(), |factors| factors.0.len());
            let share = share_here(n_factors);
            let found = control.within((0.0, share), |control| job.at(None, ROUNDS, control))?;
            let here = AtSize { size: Size::Own, found };
            let elsewhere = job.elsewhere(&here, &weights, &mut control)?;
            (vec![here], elsewhere)
        }
    };
    drop(control);
    let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let shown = Shown::new(command, &field, &weights, sizes, elsewhere, args, start.elapsed().as_secs_f64())?;
    output.warn_lines(&shown.warning_lines());
    if !shown.is_exact() {
        output.note_drawn_seed(args.limits.time_limit.is_some());
    }
    if args.csv {
        output.write(|out| out.write_all(shown.csv().as_bytes()))?;
    } else {
        output.result(|| shown.json(&output), || shown.text())?;
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

struct Job<'a> {
    field: &'a Field,
    contest: Contest,
    logbook: &'a Logbook,
    args: &'a ContestArgs,
}

impl Job<'_> {
    /// All candidates at their own `a`, or at these.
    fn at(&self, a: Option<Vec<f64>>, rounds: u32, control: &mut Control<'_>) -> Result<Vec<Option<Scored>>, Failure> {
        let contest = Contest {
            a,
            most_rounds: rounds,
            // Elsewhere nobody looks at bounds; they only save work.
            wants_bounds: self.contest.wants_bounds
                && (rounds == ROUNDS || self.contest.is_staged(self.field.n_tokens())),
            ..self.contest.clone()
        };
        Ok(contest.run(self.field, self.logbook, control)?)
    }

    /// All candidates at several values, each with its share of the time.
    fn at_all(&self, values: &[f64], control: &mut Control<'_>) -> Result<Vec<AtSize>, Failure> {
        let mut all = Vec::new();
        for (ix, &a) in values.iter().enumerate() {
            let job = self.with_share(values.len() - ix);
            let n = values.len() as f64;
            let span = (ix as f64 / n, (ix + 1) as f64 / n);
            let everywhere = vec![a; self.field.candidates().len()];
            let found = control.within(span, |control| job.at(Some(everywhere), ROUNDS, control))?;
            all.push(AtSize { size: Size::Value(a), found });
        }
        Ok(all)
    }

    /// The same at multiples of `a`, where it was asked for or is cheap.
    fn elsewhere(&self, here: &AtSize, weights: &[f64], control: &mut Control<'_>) -> Result<Elsewhere, Failure> {
        let nothing = |why: &str| Ok(Elsewhere { not_tried: Some(why.to_owned()), ..Elsewhere::default() });
        let follows = self.field.candidates().iter().all(|one| self.field.settings(one).tables_follow_a());
        let factors: Vec<f64> = match &self.args.sensitivity {
            Some(_) if !follows => {
                let message =
                    "--sensitivity: the prior has a size of its own, so `a` does not move the tables; leave it out";
                return Err(Failure::Usage(message.into()));
            }
            Some(factors) if self.args.method == ScoreMethod::Vb && !factors.0.is_empty() => {
                let message = "--sensitivity: bounds give no probabilities that could move with `a`; leave it out";
                return Err(Failure::Usage(message.into()));
            }
            Some(factors) => factors.0.clone(),
            // Nothing can move where there is one model.
            None if self.args.method == ScoreMethod::Vb || here.found.len() == 1 => return Ok(Elsewhere::default()),
            None if !follows => {
                return nothing(
                    "Other sizes of the prior were not tried: it has a size of its own, which `a` does not move.",
                );
            }
            None => match self.n_dear_tokens(here) {
                n if n <= CHEAP_TOKENS => FACTORS.to_vec(),
                _ => {
                    return nothing(
                        "Other sizes of the prior were not tried, since that would take long: give --sensitivity 0.25,4.",
                    );
                }
            },
        };
        let Ok(ranking) = Ranking::new(&here.found, weights) else { return Ok(Elsewhere::default()) };
        // Each model at multiples of its own: models may differ in nothing else.
        let own = |ix: usize| here.found[ix].as_ref().map(|found| found.score.a);
        let best = own(ranking.ranked[0].candidate).unwrap_or(1.0);
        let own: Vec<f64> = (0..here.found.len()).map(|ix| own(ix).unwrap_or(best)).collect();
        let is_one = own.iter().all(|&a| a == best);
        let mut all = Elsewhere::default();
        let mut no_time = Vec::new();
        let start = share_here(factors.len());
        let step = (1.0 - start) / factors.len().max(1) as f64;
        let n_factors = factors.len();
        for (ix, factor) in factors.into_iter().enumerate() {
            let size = if is_one { Size::Value(best * factor) } else { Size::Times(factor) };
            let found = if self.is_time_up() {
                Vec::new()
            } else {
                let a = own.iter().map(|a| a * factor).collect();
                let span = (start + step * ix as f64, start + step * (ix + 1) as f64);
                let job = self.with_share(n_factors - ix);
                control.within(span, |control| job.at(Some(a), ROUNDS_ELSEWHERE, control))?
            };
            // Without time for all of them there is nothing to compare, and scores that were cut short would mislead.
            let is_whole = |found: &Option<Scored>| found.as_ref().is_some_and(|found| !found.is_cut());
            if found.len() == own.len() && found.iter().all(is_whole) {
                all.at.push(AtSize { size, found });
            } else {
                no_time.push(size.number());
            }
        }
        if !no_time.is_empty() {
            no_time.sort_by(f64::total_cmp);
            let n_more = no_time.len().saturating_sub(MOST_SIZES);
            let mut no_time: Vec<String> = no_time.into_iter().take(MOST_SIZES).map(show_short).collect();
            no_time.extend((n_more > 0).then(|| format!("{n_more} more")));
            let times = if is_one { "a = " } else { "multiples of a: " };
            all.lacks_sizes = true;
            all.not_tried = Some(format!("There was no time for other sizes of the prior: {times}{}.", and(&no_time)));
        }
        Ok(all)
    }

    /// The same with its share of the time that is left.
    fn with_share(&self, n_left: usize) -> Self {
        let deadline = self.contest.deadline.map(|deadline| {
            let now = Instant::now();
            now + deadline.saturating_duration_since(now) / n_left as u32
        });
        Job { contest: Contest { deadline, ..self.contest.clone() }, ..*self }
    }

    fn is_time_up(&self) -> bool {
        self.contest.cancel.is_over() || self.contest.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Tokens, counted once for each model without an exact score: what it takes to score all of it again.
    fn n_dear_tokens(&self, here: &AtSize) -> u64 {
        let dear = here.found.iter().flatten().map(|found| &found.score).filter(|score| !score.is_exact());
        dear.map(|score| score.tokens).fold(0u64, u64::saturating_add)
    }
}

/// Share of the work that is done at the models' own `a`.
fn share_here(n_elsewhere: usize) -> f64 {
    1.0 / (1.0 + WORK_ELSEWHERE * n_elsewhere as f64)
}

/// Models without an answer.
pub fn left_out(field: &Field, at: &[AtSize]) -> Option<Warning> {
    let missing = |at: &AtSize| -> Vec<String> {
        let name = |(found, candidate): (&Option<Scored>, &Candidate)| {
            found.is_none().then(|| match at.size {
                Size::Value(a) => format!("{} at a = {a}", candidate.model),
                Size::Own | Size::Times(_) => candidate.model.clone(),
            })
        };
        at.found.iter().zip(field.candidates()).filter_map(name).collect()
    };
    let models: Vec<String> = at.iter().flat_map(missing).collect();
    let asked = (at.len() * field.candidates().len()) as u64;
    (!models.is_empty()).then_some(Warning::ModelsLeftOut { models, asked })
}
