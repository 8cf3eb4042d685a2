//! The evidence at several values of `a`: the values that were finished, their mean and the largest.

use super::score::{Score, warnings_json};
use crate::output::{Output, number};
use crate::text::{columns, show_error, show_estimate, show_short};
use polyurn::math::log_sum_exp;
use polyurn::{Error, Result, Stop, Warning};
use serde_json::{Value, json};
use std::mem::discriminant;

/// Values of `a` that a warning lists before it only counts them.
const MOST_LISTED: usize = 6;

/// Scores at several values of `a`.
pub struct Curve {
    /// The finished ones, in the order they were asked for; at least one.
    scores: Vec<Score>,
    /// Values that the time limit left without an answer.
    left_out: Vec<f64>,
    /// The one with the largest evidence.
    best: usize,
    /// ln of the mean evidence, and its standard error.
    ln_mean: f64,
    std_error: Option<f64>,
}

impl Curve {
    /// Collects what was found at each value.
    ///
    /// # Errors
    /// The first error that is not about time; or that there was no time for any value.
    pub fn new(values: &[f64], found: Vec<Result<Score>>) -> Result<Self> {
        let (mut scores, mut left_out) = (Vec::new(), Vec::new());
        for (&a, found) in values.iter().zip(found) {
            match found {
                Ok(score) => scores.push(score),
                Err(Error::Stopped(Stop::Deadline)) => left_out.push(a),
                Err(error) => return Err(error),
            }
        }
        let logs: Vec<f64> = scores.iter().map(|score| score.log_marginal).collect();
        let best = (0..logs.len()).max_by(|&x, &y| logs[x].total_cmp(&logs[y]));
        let best = best.ok_or(Error::Stopped(Stop::Deadline))?;
        let ln_sum = log_sum_exp(&logs);
        let std_error = error_of_mean(&scores, ln_sum);
        Ok(Curve { ln_mean: ln_sum - (logs.len() as f64).ln(), std_error, scores, left_out, best })
    }

    /// The one method of all values, or `mixed`.
    fn method(&self) -> &'static str {
        let first = self.scores[0].method;
        if self.scores.iter().all(|score| score.method == first) { first } else { "mixed" }
    }

    /// What the numbers are: `exact` or `lower` if all are, else an estimate.
    fn bound(&self) -> &'static str {
        let first = self.scores[0].bound();
        if self.scores.iter().all(|score| score.bound() == first) { first } else { "estimate" }
    }

    /// What concerns the curve as a whole.
    fn warnings(&self) -> Vec<Warning> {
        if self.left_out.is_empty() {
            return Vec::new();
        }
        let values = self.left_out.iter().map(|&a| show_short(a)).collect();
        vec![Warning::ValuesLeftOut { values, asked: (self.scores.len() + self.left_out.len()) as u64 }]
    }

    /// Every warning once, and at which values of `a` it was given. Where only its figures differ, those of the first
    /// value are shown; the JSON has them all.
    pub fn warning_lines(&self) -> Vec<String> {
        let mut groups: Vec<(&Warning, Vec<f64>)> = Vec::new();
        for score in &self.scores {
            for warning in &score.warnings {
                match groups.iter_mut().find(|(first, _)| is_alike(first, warning)) {
                    Some((_, values)) => values.push(score.a),
                    None => groups.push((warning, vec![score.a])),
                }
            }
        }
        let line = |(warning, values): (&Warning, Vec<f64>)| match values.as_slice() {
            all if all.len() == self.scores.len() && !has_figures(warning) => warning.to_string(),
            [only] => format!("a = {}: {warning}", show_short(*only)),
            [first, others @ ..] => {
                let mut list: Vec<String> = others.iter().take(MOST_LISTED).map(|&a| show_short(a)).collect();
                if others.len() > MOST_LISTED {
                    list.push(format!("and {} more", others.len() - MOST_LISTED));
                }
                format!("a = {}: {warning}; likewise at {}", show_short(*first), list.join(", "))
            }
            [] => unreachable!("a group has a first value"),
        };
        self.warnings().iter().map(ToString::to_string).chain(groups.into_iter().map(line)).collect()
    }

    /// All of it.
    pub fn json(&self, output: &Output) -> Value {
        let best = &self.scores[self.best];
        json!({
            "log_marginal": number(self.ln_mean),
            "std_error": self.std_error,
            "bound": self.bound(),
            "method": self.method(),
            "best": { "a": best.a, "log_marginal": number(best.log_marginal), "std_error": best.std_error },
            "curve": self.scores.iter().map(|score| score.json(output)).collect::<Vec<_>>(),
            "left_out": self.left_out,
            "warnings": warnings_json(&self.warnings()),
            "version": polyurn::VERSION,
        })
    }

    /// A table for people.
    pub fn text(&self) -> String {
        let name = if self.bound() == "lower" { "lower bound (ELBO)" } else { "ln evidence" };
        let mut rows = vec![vec!["a".to_owned(), name.into(), String::new(), String::new()]];
        for (ix, score) in self.scores.iter().enumerate() {
            let mark = if ix == self.best { "largest" } else { "" };
            let value = show_estimate(score.log_marginal, score.std_error);
            rows.push(vec![show_short(score.a), value, show_error(score.std_error), mark.into()]);
        }
        let which = if self.left_out.is_empty() { "these" } else { "these finished" };
        let mean = format!("{} {}", show_estimate(self.ln_mean, self.std_error), show_error(self.std_error));
        format!("{}\n{name}, a log-uniform on {which} values: {}\n", columns(&rows), mean.trim_end())
    }
}

/// Standard error of the log of a mean: errors weighted by shares of the sum, added up. Values of `a` share their
/// random numbers, so on small data the errors of neighbours go together; added up they cover that, squared and added
/// up they would not. `None` when all are exact, or when one that counts has no error.
fn error_of_mean(scores: &[Score], ln_sum: f64) -> Option<f64> {
    if ln_sum == f64::NEG_INFINITY || scores.iter().all(Score::is_exact) {
        return None;
    }
    let weighted = |score: &Score| match score.std_error {
        _ if score.is_exact() || score.log_marginal == f64::NEG_INFINITY => Some(0.0),
        error => error.map(|error| error * (score.log_marginal - ln_sum).exp()),
    };
    scores.iter().map(weighted).sum()
}

/// Whether two warnings are the same, but maybe for the figures of their runs.
fn is_alike(one: &Warning, other: &Warning) -> bool {
    one == other || (has_figures(one) && discriminant(one) == discriminant(other))
}

/// Whether a warning has figures that differ from run to run.
fn has_figures(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::LowEffectiveSampleSize { .. }
            | Warning::RunsDisagree { .. }
            | Warning::DominantRun { .. }
            | Warning::NoErrorEstimate { .. }
            | Warning::TimeUp { .. }
            | Warning::NoHits { .. }
    )
}
