//! From evidences to probabilities of models, with their errors, and to a sentence.

use super::contest::{ERRORS, FAR_BELOW, OUT_OF_REACH, Scored};
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
    /// Probability given the data, and its standard error; infinite where nothing is known of it.
    pub posterior: (f64, f64),
    /// ln of the Bayes factor against the best model, and its standard error, likewise.
    pub log_bayes_factor: (f64, f64),
}

/// All models, best first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The models that were scored, by posterior probability.
    pub ranked: Vec<Ranked>,
    /// What can be said.
    pub verdict: Verdict,
}

/// What can be said about the best model.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether its lead exceeds the errors.
    pub is_settled: bool,
    /// Places, with its own, of those that the data or the errors do not tell from it.
    pub level: Vec<usize>,
    /// Models that have no answer.
    pub n_missing: usize,
}

/// Odds below which models are called level: data that favour one of two so little do not tell them apart. Errors included, or
/// the word would go by the seed where odds are near this.
const LEVEL_ODDS: f64 = 3.0;
/// Errors of log evidences up to which probabilities follow them in proportion.
const LINEAR: f64 = 0.3;
/// Draws of what larger errors come to.
const N_DRAWS: u32 = 4000;
/// A probability that follows a log evidence by less than this does not depend on it.
const NEGLIGIBLE: f64 = 1e-9;

impl Ranking {
    /// Ranks what was found, estimates below their own lower bound by that bound. `weights` are prior probabilities up to a
    /// factor, one for each candidate.
    ///
    /// # Errors
    /// When no candidate was scored, or none is possible.
    pub fn new(found: &[Option<Scored>], weights: &[f64]) -> Result<Self> {
        let scored: Vec<usize> = (0..found.len()).filter(|&ix| found[ix].is_some() && weights[ix] > 0.0).collect();
        let of = |ix: usize| found[ix].as_ref().expect("scored");
        let total_weight: f64 = scored.iter().map(|&ix| weights[ix]).sum();
        let logs: Vec<f64> = scored.iter().map(|&ix| of(ix).at_least() + (weights[ix] / total_weight).ln()).collect();
        if logs.iter().all(|&ln| ln == f64::NEG_INFINITY) {
            return Err(Error::Setting("no model that was scored can have made these data".into()));
        }
        let errors: Vec<f64> = scored.iter().map(|&ix| of(ix).error()).collect();
        let total = log_sum_exp(&logs);
        let probabilities: Vec<f64> = logs.iter().map(|ln| (ln - total).exp()).collect();
        let probability_errors = probability_errors(&logs, &probabilities, &errors);
        let best = (0..logs.len()).max_by(|&x, &y| logs[x].total_cmp(&logs[y])).expect("at least one");
        let best_evidence = of(scored[best]).at_least();
        let mut ranked: Vec<(f64, Ranked)> = scored
            .iter()
            .enumerate()
            .map(|(place, &candidate)| {
                let apart = of(candidate).at_least() - best_evidence;
                let joint = if place == best { 0.0 } else { errors[place].hypot(errors[best]) };
                let ranked = Ranked {
                    candidate,
                    is_bound: of(candidate).is_bound_only(),
                    prior: weights[candidate] / total_weight,
                    posterior: (probabilities[place], probability_errors[place]),
                    log_bayes_factor: (apart, joint),
                };
                (logs[place], ranked)
            })
            .collect();
        ranked.sort_by(|(a, x), (b, y)| b.total_cmp(a).then(x.candidate.cmp(&y.candidate)));
        let ranked: Vec<Ranked> = ranked.into_iter().map(|(_, ranked)| ranked).collect();
        let mut verdict = Verdict::of(&ranked);
        // A model without an answer may be the best.
        verdict.n_missing = (0..found.len()).filter(|&ix| found[ix].is_none() && weights[ix] > 0.0).count();
        verdict.is_settled &= verdict.n_missing == 0;
        Ok(Ranking { ranked, verdict })
    }
}

impl Verdict {
    fn of(ranked: &[Ranked]) -> Self {
        let best = &ranked[0];
        let log_odds = |other: &Ranked| other.log_bayes_factor.0 + (other.prior / best.prior).ln();
        let is_within_errors = |other: &Ranked| {
            let (odds, error) = (log_odds(other), other.log_bayes_factor.1);
            let reach = match (error.is_finite(), best.is_bound || other.is_bound) {
                (true, _) => (ERRORS * error).min(FAR_BELOW),
                // Bounds are tens of nats below the evidence.
                (false, true) => FAR_BELOW,
                (false, false) => OUT_OF_REACH,
            };
            error > 0.0 && odds >= -reach
        };
        let is_level = |other: &Ranked| log_odds(other) - ERRORS * other.log_bayes_factor.1 >= -LEVEL_ODDS.ln();
        let is_settled = !ranked[1..].iter().any(is_within_errors);
        let level =
            (0..ranked.len()).filter(|&ix| ix == 0 || is_level(&ranked[ix]) || is_within_errors(&ranked[ix])).collect();
        Verdict { is_settled, level, n_missing: 0 }
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

    fn ranked(apart: f64, error: f64, posterior: f64) -> Ranked {
        let (posterior, log_bayes_factor) = ((posterior, 0.0), (apart, error));
        Ranked { candidate: 0, is_bound: false, prior: 0.5, posterior, log_bayes_factor }
    }

    #[test]
    fn a_lead_within_the_errors_is_not_settled_and_small_odds_are_level() {
        let verdict = |others: &[Ranked]| Verdict::of(&[&[ranked(0.0, 0.0, 0.6)], others].concat());
        let clear = verdict(&[ranked(-5.0, 0.5, 0.01)]);
        assert_eq!((clear.is_settled, clear.level), (true, vec![0]));
        let uncertain = verdict(&[ranked(-5.0, 2.0, 0.01), ranked(-50.0, 2.0, 0.0)]);
        assert_eq!((uncertain.is_settled, uncertain.level), (false, vec![0, 1]));
        let wide = verdict(&[ranked(-90.0, 124.0, 1e-50), ranked(-116.0, 124.0, 1e-50)]);
        assert_eq!((wide.is_settled, wide.level), (false, vec![0, 1]));
        // Without an error nothing near is settled, and with no more than a bound nothing that is not far below.
        let unknown = verdict(&[ranked(-20.0, f64::INFINITY, 1e-9), ranked(-30.0, f64::INFINITY, 1e-13)]);
        assert_eq!((unknown.is_settled, unknown.level), (false, vec![0, 1]));
        let bound = |apart: f64| Ranked { is_bound: true, ..ranked(apart, f64::INFINITY, 0.0) };
        let bounds = verdict(&[bound(-60.0), bound(-120.0)]);
        assert_eq!((bounds.is_settled, bounds.level), (false, vec![0, 1]));
        let level = verdict(&[ranked(-0.5, 0.0, 0.3), ranked(-9.0, 0.0, 1e-4)]);
        assert_eq!((level.is_settled, level.level), (true, vec![0, 1]));
        // ln 3 is 1.0986: odds that may be three to one within their errors are not called level.
        let near_three = verdict(&[ranked(-1.08, 0.02, 0.2), ranked(-1.02, 0.02, 0.2)]);
        assert_eq!((near_three.is_settled, near_three.level), (true, vec![0, 2]));
    }
}
