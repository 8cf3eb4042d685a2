//! From evidences to probabilities of models, with their errors.

use super::gaps::Gaps;
use super::scored::Scored;
use super::verdict::Verdict;
use crate::engine::anneal::Bracket;
use crate::error::{Error, Result};
use crate::math::{draw, log_sum_exp};
use crate::{Purpose, Seed};

/// A model in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Which candidate.
    pub candidate: usize,
    /// Whether its evidence is known to be at least what it is ranked by, and no more.
    pub is_bound: bool,
    /// Probability before the data.
    pub prior: f64,
    /// How far what it is ranked by, its evidence or its bound, lies above that of the best model: seldom above zero, and then
    /// by the weights.
    pub apart: f64,
    /// Probability given the data, among the models whose evidence is known, and its standard error, infinite where nothing is
    /// known of that. None where no more than a bound is known, of this model or of the best, and where only one was scored of
    /// several that may be the best.
    pub posterior: Option<(f64, f64)>,
    /// ln of the Bayes factor against the best model, and its standard error, likewise.
    pub log_bayes_factor: Option<(f64, f64)>,
    /// What it lies between, where the evidence of both does.
    pub log_bayes_factor_between: Option<Bracket>,
}

/// All models, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The models that were scored, by posterior probability; those that have a bound alone in the place that it gives them.
    pub ranked: Vec<Ranked>,
    /// What can be said.
    pub verdict: Verdict,
}

/// Odds below which models are called level: data that favour one of two so little do not tell them apart. Errors included, or
/// the word would go by the seed where odds are near this.
pub(super) const LEVEL_ODDS: f64 = 3.0;
/// Errors of log evidences up to which probabilities follow them in proportion.
const LINEAR: f64 = 0.3;
/// Draws of what larger errors come to.
const N_DRAWS: u32 = 4000;
/// Probability from which a model contends with the best.
const CONTENDS: f64 = 1e-3;
/// A probability that follows a log evidence by less than this does not depend on it.
const NEGLIGIBLE: f64 = 1e-9;

impl Ranking {
    /// Ranks what was found, estimates below their own lower bound by that bound. `weights` are prior probabilities up to a
    /// factor, one for each candidate.
    ///
    /// # Errors
    /// When no candidate was scored, or none is possible.
    pub fn new(found: &[Option<Scored>], weights: &[f64]) -> Result<Self> {
        let of = |ix: usize| found[ix].as_ref().expect("scored");
        let mut order: Vec<usize> = (0..found.len()).filter(|&ix| found[ix].is_some() && weights[ix] > 0.0).collect();
        // Against the largest: a sum of weights may be beyond all numbers, and a share of it below all.
        let largest = order.iter().map(|&ix| weights[ix]).fold(0.0, f64::max);
        let total_weight: f64 = order.iter().map(|&ix| weights[ix] / largest).sum();
        let prior = |ix: usize| weights[ix] / largest / total_weight;
        let ln_prior = |ix: usize| match prior(ix) {
            share if share.is_normal() => share.ln(),
            _ => weights[ix].ln() - largest.ln() - total_weight.ln(),
        };
        let log = |ix: usize| of(ix).at_least() + ln_prior(ix);
        if order.iter().all(|&ix| log(ix) == f64::NEG_INFINITY) {
            return Err(Error::Setting("no model that was scored can have made these data".into()));
        }
        // The first of equals stays the first.
        order.sort_by(|&one, &other| log(other).total_cmp(&log(one)).then(one.cmp(&other)));
        let best = of(order[0]);
        // A bound gives no probability; where one comes first, it leaves those of all others open.
        let has_evidence = |ix: usize| !best.is_bound_only() && !of(ix).is_bound_only();
        let known: Vec<usize> = order.iter().copied().filter(|&ix| has_evidence(ix)).collect();
        let logs: Vec<f64> = known.iter().map(|&ix| log(ix)).collect();
        let errors: Vec<f64> = known.iter().map(|&ix| of(ix).error()).collect();
        let total = log_sum_exp(&logs);
        let probabilities: Vec<f64> = logs.iter().map(|ln| (ln - total).exp()).collect();
        let probability_errors = probability_errors(&logs, &probabilities, &errors);
        let mut ranked: Vec<Ranked> = order
            .iter()
            .map(|&candidate| {
                let place = known.iter().position(|&ix| ix == candidate);
                let apart = of(candidate).at_least() - best.at_least();
                let joint = if candidate == order[0] { 0.0 } else { of(candidate).error().hypot(best.error()) };
                Ranked {
                    candidate,
                    is_bound: of(candidate).is_bound_only(),
                    prior: prior(candidate),
                    apart,
                    posterior: place.map(|place| (probabilities[place], probability_errors[place])),
                    log_bayes_factor: place.map(|_| (apart, joint)),
                    log_bayes_factor_between: of(candidate).apart_between(best).filter(|_| place.is_some()),
                }
            })
            .collect();
        let is_best_unknown = best.score.is_error_unknown();
        // A model without an answer may be the best.
        let n_missing = (0..found.len()).filter(|&ix| found[ix].is_none() && weights[ix] > 0.0).count();
        let reach = Gaps::seen(order.iter().map(|&ix| of(ix))).reach();
        let verdict = Verdict::of(&ranked, is_best_unknown, n_missing, reach);
        // Sure to be the best of one, or of one and others that are out of it, is no probability while rivals were not scored.
        let n_contenders = probabilities.iter().filter(|&&p| p >= CONTENDS).count();
        if n_contenders == 1 && (verdict.n_missing > 0 || !verdict.unscored.is_empty()) {
            ranked.iter_mut().for_each(|ranked| ranked.posterior = None);
        }
        Ok(Ranking { ranked, verdict })
    }
}

/// Standard errors of probabilities: with small errors of the log evidences how they move with each; beyond, the scatter of
/// probabilities when the log evidences scatter, normal with their errors.
fn probability_errors(logs: &[f64], probabilities: &[f64], errors: &[f64]) -> Vec<f64> {
    let is_linear = errors.iter().all(|error| *error <= LINEAR || !error.is_finite());
    if is_linear {
        return (0..logs.len()).map(|place| probability_error(place, probabilities, errors)).collect();
    }
    let mut squares = vec![0.0; logs.len()];
    let mut moved = vec![0.0; logs.len()];
    let mut rng = Seed(0).stream(Purpose::Draws, 0, 0, 0);
    for _ in 0..N_DRAWS {
        for (slot, (ln, error)) in moved.iter_mut().zip(logs.iter().zip(errors)) {
            *slot = if error.is_finite() { ln + error * draw::normal(&mut rng) } else { *ln };
        }
        let total = log_sum_exp(&moved);
        for (square, (ln, p)) in squares.iter_mut().zip(moved.iter().zip(probabilities)) {
            *square += ((ln - total).exp() - p).powi(2);
        }
    }
    let scatter = squares.iter().map(|square| (square / f64::from(N_DRAWS)).sqrt());
    // Where nothing is known of an error, the linear rule says whose probability that concerns.
    let unknown = |place: usize| probability_error(place, probabilities, errors).is_infinite();
    scatter.enumerate().map(|(place, error)| if unknown(place) { f64::INFINITY } else { error }).collect()
}

/// Standard error of a probability: how it moves with each log evidence, times that one's error.
fn probability_error(place: usize, probabilities: &[f64], errors: &[f64]) -> f64 {
    let own = probabilities[place];
    let slope = |other: usize| own * (f64::from(u8::from(other == place)) - probabilities[other]);
    let part = |other: usize| match slope(other) {
        slope if errors[other].is_finite() => slope * errors[other],
        // Where nothing is known of an error, a probability that hardly follows the evidence is still known.
        slope if slope.abs() < NEGLIGIBLE => 0.0,
        _ => f64::INFINITY,
    };
    (0..errors.len()).map(|other| part(other).powi(2)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_probability_is_that_of_small_steps() {
        let logs = [-3.0_f64, -2.5, -4.2];
        let errors = [0.3, 0.0, 0.7];
        let softmax = |logs: &[f64]| -> Vec<f64> {
            let total = log_sum_exp(logs);
            logs.iter().map(|ln| (ln - total).exp()).collect()
        };
        let probabilities = softmax(&logs);
        for place in 0..3 {
            let step = 1e-6;
            let moved = |other: usize| {
                let mut logs = logs;
                logs[other] += step;
                (softmax(&logs)[place] - probabilities[place]) / step * errors[other]
            };
            let want = (0..3).map(|other| moved(other).powi(2)).sum::<f64>().sqrt();
            // A difference quotient of step h is off by a multiple of h.
            assert!((probability_error(place, &probabilities, &errors) - want).abs() < 1e-5);
        }
    }

    #[test]
    fn large_errors_make_probabilities_uncertain_however_small_they_are() {
        let found = |logs: [f64; 2], errors: [f64; 2]| {
            let total = log_sum_exp(&logs);
            probability_errors(&logs, &logs.map(|ln| (ln - total).exp()), &errors)
        };
        // 54 below, give or take 129: above with probability 0.338, and then nearly sure, so off by nearly one.
        let far = found([0.0, -54.0], [0.0, 129.0]);
        assert!((far[0] - 0.338f64.sqrt()).abs() < 0.03 && (far[1] - far[0]).abs() < 1e-12, "{far:?}");
        // On either side of the limit the two rules agree to a tenth of themselves: what is left of the curvature.
        let (linear, drawn) = (found([0.0, -1.0], [0.0, 0.3]), found([0.0, -1.0], [0.0, 0.3 + 1e-9]));
        assert!((linear[1] - drawn[1]).abs() < 0.1 * linear[1], "{linear:?} {drawn:?}");
        let unknown = found([0.0, -1.0], [0.5, f64::INFINITY]);
        assert!(unknown.iter().all(|error| error.is_infinite()));
    }
}
