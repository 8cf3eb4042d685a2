//! From runs to one number with an error that can be trusted.

use super::run::RunResult;
use crate::math::log_sum_exp;
use crate::warning::{Remedy, Warning};
use serde::{Deserialize, Serialize};

/// An estimate of ln p(sequence).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// ln of the mean over runs of the estimates of p(sequence), which is unbiased.
    pub ln_p_sequence: f64,
    /// Standard error of `ln_p_sequence`; `None` when there is no way to tell.
    pub std_error: Option<f64>,
    /// Where the standard error comes from.
    pub error_from: ErrorFrom,
    /// The runs.
    pub runs: Vec<RunResult>,
    /// What a user should know.
    #[serde(with = "crate::warning::as_text")]
    pub warnings: Vec<Warning>,
}

/// Where a standard error comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorFrom {
    /// The scatter of independent runs; of a few, what their ancestors say if that is more.
    Runs,
    /// The ancestors of one run's particles.
    Ancestors,
    /// Nothing random was left.
    ClosedForm,
    /// One particle, or one run whose ancestors cannot tell.
    Nothing,
}

/// Effective sample size, as a share of the particles, below which a run is doubtful.
const LOW_ESS: f64 = 0.02;
/// Share of all runs' estimates from which one run is said to dominate.
const DOMINANT: f64 = 0.5;
/// Runs from which dominance means something.
const DOMINANT_RUNS: usize = 4;
/// Spread of ln estimates from which runs are said to disagree.
const DISAGREE: f64 = 1.0;
/// First ancestors below which they cannot tell the error.
const FEW_ANCESTORS: usize = 12;
/// Runs below which their scatter may be small by chance: that of two is a tenth of what it should be once in thirteen times,
/// that of eight is half of it once in forty.
const FEW_RUNS: usize = 8;
/// By what two standard errors of so many runs have to be multiplied to hold the mean 95 times in a hundred, where nothing but their scatter
/// tells them: Student's quantile over the normal one. For eight and more the first terms of the series (Fisher and Cornish 1960), right to
/// a two-hundredth.
pub fn student(n_runs: usize) -> f64 {
    let freedom = n_runs as f64 - 1.0;
    let of_few = [6.483, 2.195, 1.624, 1.417, 1.312, 1.248].get(n_runs.saturating_sub(2));
    of_few.copied().unwrap_or(1.0 + 1.2104 / freedom + 1.44 / (freedom * freedom))
}

impl Estimate {
    /// Combines runs of `n_particles` each. `is_certain` when nothing had to be drawn.
    ///
    /// # Panics
    /// Without runs.
    pub fn combine(runs: Vec<RunResult>, n_particles: usize, is_certain: bool) -> Self {
        assert!(!runs.is_empty(), "at least one run");
        let logs: Vec<f64> = runs.iter().map(|run| run.ln_p_sequence).collect();
        let ln_p_sequence = log_mean_exp(&logs);
        let (std_error, error_from) = if is_certain || ln_p_sequence == f64::NEG_INFINITY {
            (is_certain.then_some(0.0), if is_certain { ErrorFrom::ClosedForm } else { ErrorFrom::Nothing })
        } else {
            let told = error_from_ancestors(&runs, n_particles);
            match (runs.len(), told) {
                (1, told) => (told, if told.is_some() { ErrorFrom::Ancestors } else { ErrorFrom::Nothing }),
                (n_runs, told) => {
                    let least = told.filter(|_| n_runs < FEW_RUNS).unwrap_or(0.0);
                    (Some(error_of_mean(&logs, ln_p_sequence).max(least)), ErrorFrom::Runs)
                }
            }
        };
        let mut warnings = Vec::new();
        if !is_certain && ln_p_sequence > f64::NEG_INFINITY {
            let ess_min = runs.iter().map(|run| run.ess_min).fold(f64::INFINITY, f64::min);
            if n_particles > 1 && ess_min < (LOW_ESS * n_particles as f64).max(1.5) {
                warnings
                    .push(Warning::LowEffectiveSampleSize { ess_min: ess_min as u64, particles: n_particles as u64 });
            }
            warnings.extend(disagreement(&logs, Remedy::Moves));
            if std_error.is_none() {
                warnings.push(Warning::NoErrorEstimate { ancestors: runs[0].n_ancestors as u64 });
            }
        }
        Estimate { ln_p_sequence, std_error, error_from, runs, warnings }
    }

    /// Smallest effective sample size of any run.
    pub fn ess_min(&self) -> f64 {
        self.runs.iter().map(|run| run.ess_min).fold(f64::INFINITY, f64::min)
    }
}

/// What is to be said of runs that do not agree.
pub fn disagreement(logs: &[f64], remedy: Remedy) -> Option<Warning> {
    let runs = logs.len();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let share = (largest - log_sum_exp(logs)).exp();
    // A run that found nothing disagrees with one that did, by any number of nats.
    let spread = if logs.iter().all(|ln| ln.is_finite()) { spread(logs) } else { f64::INFINITY };
    if runs >= DOMINANT_RUNS && share > DOMINANT {
        return Some(Warning::DominantRun { percent: (share * 100.0).round() as u64, runs: runs as u64, remedy });
    }
    (runs > 1 && spread > DISAGREE).then(|| Warning::RunsDisagree { spread: format!("{spread:.2}"), remedy })
}

/// ln of the mean of exponentials.
pub fn log_mean_exp(logs: &[f64]) -> f64 {
    log_sum_exp(logs) - (logs.len() as f64).ln()
}

/// Standard error of ln of a mean over runs by the ancestors of each run's particles, where these can tell.
///
/// A relative variance of the mean is the variance of its log, to first order; beyond, ln(1 + v). Where particles are resampled
/// so evenly or so often that the estimate of the variance is not positive, it tells nothing.
fn error_from_ancestors(runs: &[RunResult], n_particles: usize) -> Option<f64> {
    let enough = FEW_ANCESTORS.min(n_particles);
    let have_ancestors = n_particles > 1 && runs.iter().all(|run| run.n_ancestors >= enough);
    let n_runs = runs.len() as f64;
    let variance = runs.iter().map(|run| run.variance).sum::<f64>() / (n_runs * n_runs);
    (have_ancestors && variance > 0.0).then(|| variance.ln_1p().sqrt())
}

/// Standard error of ln of a mean: the relative standard error of the mean (delta method). It never exceeds one, also when
/// runs scatter by a thousand nats and one of them is the whole mean; beyond a nat of scatter, the error is at least that
/// of the mean of the logs, and by how much the mean of so few runs is too low.
pub fn error_of_mean(logs: &[f64], ln_mean: f64) -> f64 {
    let n = logs.len() as f64;
    let variance = logs.iter().map(|ln| ((ln - ln_mean).exp() - 1.0).powi(2)).sum::<f64>() / (n - 1.0);
    let delta = (variance / n).sqrt();
    // A run that found nothing has no log; the delta method counts it as zero.
    let finite: Vec<f64> = logs.iter().copied().filter(|ln| ln.is_finite()).collect();
    let spread = spread(&finite);
    if spread > DISAGREE { delta.max((spread / n.sqrt()).hypot(missing_of_mean(spread, logs.len()))) } else { delta }
}

/// How far ln of a mean of a few estimates is below that of very many, if their logs are normal with this standard
/// deviation s. Very many have s^2 / 2 more than the mean of the logs; a few no more than their largest, which is
/// s (sqrt(2 ln n) - 0.6) above that mean, to a twelfth of s for two to a hundred. Where runs scatter by many nats, some are
/// stuck far below and few lie far above: no more than s is believed.
fn missing_of_mean(spread: f64, n: usize) -> f64 {
    let largest = spread * ((2.0 * (n as f64).ln()).sqrt() - 0.6);
    (0.5 * spread * spread - largest).clamp(0.0, spread)
}

/// Standard deviation of ln estimates.
fn spread(logs: &[f64]) -> f64 {
    if logs.len() < 2 {
        return 0.0;
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    (logs.iter().map(|ln| (ln - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::draw;

    #[test]
    fn runs_that_disagree_are_named_with_the_remedy_of_their_engine() {
        let text = |logs: &[f64], remedy| disagreement(logs, remedy).map(|warning| warning.to_string());
        assert_eq!(text(&[-10.0, -10.2, -9.9, -10.1], Remedy::Moves), None);
        let one = text(&[-10.0, -13.0, -14.0, -12.5], Remedy::Steps).unwrap();
        assert!(
            one.starts_with("one of 4 runs makes up 87 % of the estimate") && one.ends_with("--sweeps or --chains"),
            "{one}"
        );
        let two = text(&[-10.0, -12.0], Remedy::Moves).unwrap();
        assert!(two.starts_with("runs scatter by 1.41 nats") && two.ends_with("--rejuvenate or --particles"), "{two}");
        assert!(text(&[-10.0, f64::NEG_INFINITY], Remedy::Moves).unwrap().contains("scatter by inf nats"));
    }

    #[test]
    fn runs_that_scatter_widely_have_a_wide_error() {
        // Agreeing runs: the delta method, about their scatter over the root of their number.
        let logs = [-10.0, -10.2, -9.9, -10.1];
        let error = error_of_mean(&logs, log_mean_exp(&logs));
        assert!((error - spread(&logs) / 2.0).abs() < 0.01, "{error}");
        // One run is the whole mean: the delta method alone would say one.
        let logs = [-1000.0, -3000.0, -2500.0, -1800.0];
        assert!(error_of_mean(&logs, log_mean_exp(&logs)) > 400.0);
    }

    #[test]
    fn the_mean_of_a_few_is_too_low_where_runs_scatter_widely() {
        // Normal logs of standard deviation s about -s^2/2: very many have mean 1. The median of ln of the mean of a few is
        // short of 0 by what is foreseen, to half of s, as long as that is less than s.
        let mut rng = crate::Seed(3).stream(crate::Purpose::Urn, 0, 0, 0);
        let mut normal = || draw::normal(&mut rng);
        for (spread, n) in [(2.0, 2), (2.5, 2), (2.0, 4), (3.0, 4), (4.0, 8)] {
            let one = |normal: &mut dyn FnMut() -> f64| {
                let logs: Vec<f64> = (0..n).map(|_| spread * normal() - 0.5 * spread * spread).collect();
                log_mean_exp(&logs)
            };
            let mut found: Vec<f64> = (0..2001).map(|_| one(&mut normal)).collect();
            found.sort_by(f64::total_cmp);
            let foreseen = missing_of_mean(spread, n);
            assert!((found[1000] + foreseen).abs() < 0.5 * spread, "{spread} {n}: {} {foreseen}", found[1000]);
        }
        assert_eq!((missing_of_mean(1.0, 4), missing_of_mean(20.0, 4)), (0.0, 20.0));
    }

    fn run(ln_p_sequence: f64, variance: f64) -> RunResult {
        RunResult {
            ln_p_sequence,
            ess_min: 50.0,
            ess_trace: Vec::new(),
            resampled_at: Vec::new(),
            n_resampled: 3,
            n_ancestors: 40,
            variance,
            n_updates: 0,
        }
    }

    #[test]
    fn ancestors_that_tell_nothing_give_no_error() {
        let fair = Estimate::combine(vec![run(-3.0, 0.04)], 100, false);
        assert!((fair.std_error.unwrap() - 0.04f64.ln_1p().sqrt()).abs() < 1e-15);
        let none = Estimate::combine(vec![run(-3.0, -0.01)], 100, false);
        assert_eq!((none.std_error, none.error_from), (None, ErrorFrom::Nothing));
        assert!(matches!(none.warnings[..], [Warning::NoErrorEstimate { ancestors: 40 }]), "{:?}", none.warnings);
    }

    #[test]
    fn a_few_runs_that_agree_by_chance_are_not_believed() {
        let near = |n_runs: usize, variance: f64| {
            let runs = (0..n_runs).map(|ix| run(-3.0 + 1e-6 * ix as f64, variance)).collect();
            Estimate::combine(runs, 100, false).std_error.unwrap()
        };
        // Variances 0.04 of single runs: of a mean of two 0.02, of four 0.01.
        assert!((near(2, 0.04) - 0.02f64.ln_1p().sqrt()).abs() < 1e-15);
        assert!((near(4, 0.04) - 0.01f64.ln_1p().sqrt()).abs() < 1e-15);
        // Where ancestors tell nothing, and where runs are many enough, their scatter is all there is.
        assert!(near(4, -0.01) < 1e-6 && near(8, 0.04) < 1e-6);
        // A scatter that is larger is the error.
        let wide = Estimate::combine(vec![run(-3.0, 0.04), run(-2.5, 0.04)], 100, false);
        let logs = [-3.0, -2.5];
        assert_eq!(wide.std_error, Some(error_of_mean(&logs, log_mean_exp(&logs))));
    }

    #[test]
    fn two_errors_of_a_few_runs_hold_as_often_as_those_of_many() {
        let mut rng = crate::Seed(5).stream(crate::Purpose::Urn, 0, 0, 0);
        for n in [2, 3, 4, 5, 6, 7, 8, 12, 30] {
            let holds = |rng: &mut crate::Stream| {
                let logs: Vec<f64> = (0..n).map(|_| 1e-3 * draw::normal(rng)).collect();
                let mean = log_mean_exp(&logs);
                mean.abs() <= 1.96 * student(n) * error_of_mean(&logs, mean)
            };
            let n_held = (0..10_000).filter(|_| holds(&mut rng)).count();
            // 4.5 standard errors of 22, and what the series is off.
            assert!((n_held as f64 - 9500.0).abs() < 4.5 * 22.0 + 10.0, "{n}: {n_held}");
        }
    }

    #[test]
    fn a_run_that_found_nothing_is_a_disagreement() {
        let two = Estimate::combine(vec![run(-3.0, 0.1), run(f64::NEG_INFINITY, 0.1)], 100, false);
        // Estimates Z and 0: mean Z/2, whose relative standard error is 1.
        assert!((two.std_error.unwrap() - 1.0).abs() < 1e-12, "{:?}", two.std_error);
        assert!(
            two.warnings.iter().any(|warning| matches!(warning, Warning::RunsDisagree { .. })),
            "{:?}",
            two.warnings
        );
    }
}
