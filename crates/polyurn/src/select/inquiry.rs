//! A contest at the models' own size of the prior, or at several; and at others, to see how the answer moves.

use super::{Candidate, Contest, Field, Logbook, Ranking, Scored};
use crate::control::Control;
use crate::error::{Error, Result};
use crate::score::Method;
use crate::text::{and, show_short};
use crate::warning::Warning;
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
pub const ROUNDS: u32 = 2;
/// The same for other values of `a`, where the aim is to see what moves.
const ROUNDS_ELSEWHERE: u32 = 0;

/// The size of the prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// Each model's own.
    Own,
    /// The same for all.
    Value(f64),
    /// Each model's own, multiplied.
    Times(f64),
}

impl Size {
    /// The value of `a`, or what it is multiplied by.
    pub fn number(self) -> f64 {
        match self {
            Size::Own => 1.0,
            Size::Value(number) | Size::Times(number) => number,
        }
    }
}

/// What was found at one size of the prior.
#[derive(Debug, Clone)]
pub struct AtSize {
    /// Which.
    pub size: Size,
    /// For each candidate its score, if there is one.
    pub found: Vec<Option<Scored>>,
}

/// What was found at other sizes of the prior than the models' own.
#[derive(Debug, Clone, Default)]
pub struct Elsewhere {
    /// One after another.
    pub at: Vec<AtSize>,
    /// Why there are none, or fewer than asked for: a sentence.
    pub not_tried: Option<String>,
    /// Whether it was for lack of time.
    pub lacks_sizes: bool,
}

/// What is asked about a field of models.
#[derive(Debug, Clone)]
pub struct Inquiry {
    /// How to score; `most_rounds` and `a` are set for each size of the prior.
    pub contest: Contest,
    /// Prior weights of the candidates, up to a factor.
    pub weights: Vec<f64>,
    /// Sizes of the prior to rank over, in place of the models' own.
    pub a_values: Option<Vec<f64>>,
    /// Multiples of `a` at which to rank too; without them those of the default, where that is cheap.
    pub factors: Option<Vec<f64>>,
}

/// What was found, at the models' own sizes of the prior and elsewhere.
#[derive(Debug, Clone)]
pub struct Findings {
    /// At the models' own size, or at those that were listed.
    pub at: Vec<AtSize>,
    /// At others, to see what moves.
    pub elsewhere: Elsewhere,
}

impl Inquiry {
    /// Scores all candidates.
    ///
    /// # Errors
    /// What is wrong with a model or a setting, and a stop from outside.
    pub fn run(&self, field: &Field, logbook: &Logbook, control: &mut Control<'_>) -> Result<Findings> {
        let job = Job { field, contest: self.contest.clone(), logbook, inquiry: self };
        if let Some(values) = &self.a_values {
            return Ok(Findings { at: job.at_all(values, control)?, elsewhere: Elsewhere::default() });
        }
        let n_factors = self.factors.as_ref().map_or(FACTORS.len(), Vec::len);
        let found = control.within((0.0, share_here(n_factors)), |control| job.at(None, ROUNDS, control))?;
        let here = AtSize { size: Size::Own, found };
        let elsewhere = job.elsewhere(&here, control)?;
        Ok(Findings { at: vec![here], elsewhere })
    }
}

struct Job<'a> {
    field: &'a Field,
    contest: Contest,
    logbook: &'a Logbook,
    inquiry: &'a Inquiry,
}

impl Job<'_> {
    /// All candidates at their own `a`, or at these.
    fn at(&self, a: Option<Vec<f64>>, rounds: u32, control: &mut Control<'_>) -> Result<Vec<Option<Scored>>> {
        let contest = Contest {
            a,
            most_rounds: rounds,
            // Elsewhere nobody looks at bounds; they only save work.
            wants_bounds: self.contest.wants_bounds
                && (rounds == ROUNDS || self.contest.is_staged(self.field.n_tokens())),
            ..self.contest.clone()
        };
        contest.run(self.field, self.logbook, control)
    }

    /// All candidates at several values, each with its share of the time.
    fn at_all(&self, values: &[f64], control: &mut Control<'_>) -> Result<Vec<AtSize>> {
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
    fn elsewhere(&self, here: &AtSize, control: &mut Control<'_>) -> Result<Elsewhere> {
        let nothing = |why: &str| Ok(Elsewhere { not_tried: Some(why.to_owned()), ..Elsewhere::default() });
        let follows = self.field.candidates().iter().all(|one| self.field.settings(one).tables_follow_a());
        let is_vb = self.contest.scoring.method == Method::Vb;
        let factors: Vec<f64> = match &self.inquiry.factors {
            Some(_) if !follows => {
                let message =
                    "--sensitivity: the prior has a size of its own, so `a` does not move the tables; leave it out";
                return Err(Error::Setting(message.into()));
            }
            Some(factors) if is_vb && !factors.is_empty() => {
                let message = "--sensitivity: bounds give no probabilities that could move with `a`; leave it out";
                return Err(Error::Setting(message.into()));
            }
            Some(factors) => factors.clone(),
            // Nothing can move where there is one model.
            None if is_vb || here.found.len() == 1 => return Ok(Elsewhere::default()),
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
        let Ok(ranking) = Ranking::new(&here.found, &self.inquiry.weights) else { return Ok(Elsewhere::default()) };
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
pub(crate) fn left_out(field: &Field, at: &[AtSize]) -> Option<Warning> {
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
