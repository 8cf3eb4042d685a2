//! The evidence at several values of `a`, or of pseudo-counts: those that were finished, their mean and the largest.

use crate::grid::Point;
use crate::output::{Output, number};
use crate::text::{columns, show_error, show_estimate};
use polyurn::graph::Model;
use polyurn::math::log_sum_exp;
use polyurn::score::Score;
use polyurn::shown::{ShownScore, maximised_text, warnings_json};
use polyurn::{Error, Result, Stop, Warning};
use serde_json::{Value, json};
use std::mem::discriminant;

/// Points that a warning lists before it only counts them.
const MOST_LISTED: usize = 6;

/// Scores at several points.
pub struct Curve<'a> {
    model: &'a Model,
    /// The finished ones, in the order they were asked for; at least one.
    points: Vec<Point>,
    scores: Vec<Score>,
    /// Points that the time limit left without an answer.
    left_out: Vec<Point>,
    /// The one with the largest evidence.
    best: usize,
    /// ln of the mean evidence, and its standard error.
    ln_mean: f64,
    std_error: Option<f64>,
}

impl<'a> Curve<'a> {
    /// Collects what was found at each point.
    ///
    /// # Errors
    /// The first error that is not about time; or that there was no time for any point.
    pub fn new(model: &'a Model, asked: &[Point], found: Vec<Result<Score>>) -> Result<Self> {
        let (mut points, mut scores, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for (point, found) in asked.iter().zip(found) {
            match found {
                Ok(score) => {
                    points.push(point.clone());
                    scores.push(score);
                }
                Err(Error::Stopped(Stop::Deadline)) => left_out.push(point.clone()),
                Err(error) => return Err(error),
            }
        }
        let logs: Vec<f64> = scores.iter().map(|score| score.log_marginal).collect();
        let best = (0..logs.len()).max_by(|&x, &y| logs[x].total_cmp(&logs[y]));
        let best = best.ok_or(Error::Stopped(Stop::Deadline))?;
        let ln_sum = log_sum_exp(&logs);
        let std_error = error_of_mean(&scores, ln_sum);
        Ok(Curve { model, ln_mean: ln_sum - (logs.len() as f64).ln(), std_error, points, scores, left_out, best })
    }

    /// Whether nothing was drawn.
    pub fn is_exact(&self) -> bool {
        self.scores.iter().all(Score::is_exact)
    }

    /// The one method of all values, or `mixed`.
    fn method(&self) -> &str {
        let first = &*self.scores[0].method;
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
        let values = self.left_out.iter().map(Point::short_label).collect();
        vec![Warning::ValuesLeftOut { values, asked: (self.scores.len() + self.left_out.len()) as u64 }]
    }

    /// Every warning once, and at which points it was given. Where only its figures differ, those of the first point are
    /// shown; the JSON has them all.
    pub fn warning_lines(&self) -> Vec<String> {
        let mut groups: Vec<(&Warning, Vec<&Point>)> = Vec::new();
        for (point, score) in self.points.iter().zip(&self.scores) {
            for warning in &score.warnings {
                match groups.iter_mut().find(|(first, _)| is_alike(first, warning)) {
                    Some((_, points)) => points.push(point),
                    None => groups.push((warning, vec![point])),
                }
            }
        }
        let line = |(warning, points): (&Warning, Vec<&Point>)| match points.as_slice() {
            all if all.len() == self.scores.len() && !has_figures(warning) => warning.to_string(),
            [only] => format!("{}: {warning}", only.label()),
            [first, others @ ..] => {
                let mut list: Vec<String> = others.iter().take(MOST_LISTED).map(|other| other.short_label()).collect();
                if others.len() > MOST_LISTED {
                    list.push(format!("and {} more", others.len() - MOST_LISTED));
                }
                format!("{}: {warning}; likewise at {}", first.label(), list.join(", "))
            }
            [] => unreachable!("a group has a first point"),
        };
        self.warnings().iter().map(ToString::to_string).chain(groups.into_iter().map(line)).collect()
    }

    /// All of it.
    pub fn json(&self, output: &Output) -> Value {
        let best = &self.scores[self.best];
        let mut best_json =
            json!({ "a": best.a, "log_marginal": number(best.log_marginal), "std_error": best.std_error });
        self.points[self.best].add_to(&mut best_json);
        let of_point = |(point, score): (&Point, &Score)| {
            let mut object = ShownScore { score, model: self.model }.json(output.seed());
            point.add_to(&mut object);
            object
        };
        json!({
            "log_marginal": number(self.ln_mean),
            "std_error": self.std_error,
            "bound": self.bound(),
            "method": self.method(),
            "best": best_json,
            "curve": self.points.iter().zip(&self.scores).map(of_point).collect::<Vec<_>>(),
            "left_out": self.left_out.iter().map(Point::json).collect::<Vec<_>>(),
            "warnings": warnings_json(&self.warnings()),
            "version": polyurn::VERSION,
        })
    }

    /// A table for people.
    pub fn text(&self) -> String {
        let name = if self.bound() == "lower" { "lower bound (ELBO)" } else { "ln evidence" };
        let varies = self.points[0].names();
        let is_maximised = self.scores.iter().any(|score| !score.maximised.is_empty());
        let mut head: Vec<String> = varies.clone();
        head.extend([name.to_owned(), String::new(), String::new()]);
        head.extend(is_maximised.then(|| "maximised".to_owned()));
        let mut rows = vec![head];
        for (ix, (point, score)) in self.points.iter().zip(&self.scores).enumerate() {
            let mark = if ix == self.best { "largest" } else { "" };
            let mut row = point.values();
            row.extend(number_with_error(score.log_marginal, score.std_error, score.is_error_unknown()));
            row.push(mark.into());
            row.extend(is_maximised.then(|| maximised_text(&score.maximised)));
            rows.push(row);
        }
        let which = match (self.left_out.is_empty(), varies.len()) {
            (true, 1) => "these values",
            (false, 1) => "these finished values",
            (true, _) => "these points",
            (false, _) => "these finished points",
        };
        let is_unknown = self.std_error.is_none() && self.scores.iter().any(Score::is_error_unknown);
        let mean = number_with_error(self.ln_mean, self.std_error, is_unknown).join(" ");
        let varies = varies.join(" and ");
        format!("{}\n{name}, {varies} log-uniform on {which}: {}\n", columns(&rows), mean.trim_end())
    }
}

/// An estimate and its error as two words of a table; digits that nobody can vouch for are left out.
fn number_with_error(ln: f64, error: Option<f64>, is_unknown: bool) -> [String; 2] {
    if is_unknown {
        [format!("{ln:.2}"), "error unknown".into()]
    } else {
        [show_estimate(ln, error), show_error(error)]
    }
}

/// Standard error of the log of a mean: errors weighted by shares of the sum, added up. Points share their
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
            | Warning::BoundsCross { .. }
            | Warning::WideBracket { .. }
            | Warning::ChainsApart { .. }
            | Warning::LabelsAssumed { .. }
            | Warning::LabelsOverlap { .. }
            | Warning::TimeUp { .. }
            | Warning::StartsCut { .. }
            | Warning::NoHits { .. }
            | Warning::NotConverged { .. }
            | Warning::StartsDisagree { .. }
    )
}
