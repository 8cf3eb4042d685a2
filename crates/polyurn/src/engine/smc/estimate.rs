//! From runs to one number with an error that can be trusted.

use super::run::RunResult;
use crate::math::log_sum_exp;
use crate::warning::Warning;
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
    /// The scatter of independent runs.
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
        } else if runs.len() > 1 {
            (Some(error_of_mean(&logs, ln_p_sequence)), ErrorFrom::Runs)
        } else if n_particles > 1 && runs[0].n_ancestors >= FEW_ANCESTORS.min(n_particles) && runs[0].variance > 0.0 {
            // A relative variance of the mean is the variance of its log, to first order; beyond, ln(1 + v). Where particles
            // are resampled so evenly or so often that the estimate of the variance is not positive, it tells nothing.
            (Some(runs[0].variance.ln_1p().sqrt()), ErrorFrom::Ancestors)
        } else {
            (None, ErrorFrom::Nothing)
        };
        let mut warnings = Vec::new();
        if !is_certain && ln_p_sequence > f64::NEG_INFINITY {
            let ess_min = runs.iter().map(|run| run.ess_min).fold(f64::INFINITY, f64::min);
            if n_particles > 1 && ess_min < (LOW_ESS * n_particles as f64).max(1.5) {
                warnings
                    .push(Warning::LowEffectiveSampleSize { ess_min: ess_min as u64, particles: n_particles as u64 });
            }
            let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let share = (largest - log_sum_exp(&logs)).exp();
            // A run that found nothing disagrees with one that did, by any number of nats.
            let finite: Vec<f64> = logs.iter().copied().filter(|ln| ln.is_finite()).collect();
            let spread = if finite.len() < logs.len() { f64::INFINITY } else { spread(&logs) };
            if runs.len() >= DOMINANT_RUNS && share > DOMINANT {
                warnings
                    .push(Warning::DominantRun { percent: (share * 100.0).round() as u64, runs: runs.len() as u64 });
            } else if runs.len() > 1 && spread > DISAGREE {
                warnings.push(Warning::RunsDisagree { spread: format!("{spread:.2}") });
            }
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

/// ln of the mean of exponentials.
pub fn log_mean_exp(logs: &[f64]) -> f64 {
    log_sum_exp(logs) - (logs.len() as f64).ln()
}

/// Standard error of ln of a mean: the relative standard error of the mean (delta method). It never exceeds one, also when
/// runs scatter by a thousand nats and one of them is the whole mean; beyond a nat of scatter, the error is at least that
/// of the mean of the logs.
fn error_of_mean(logs: &[f64], ln_mean: f64) -> f64 {
    let n = logs.len() as f64;
    let variance = logs.iter().map(|ln| ((ln - ln_mean).exp() - 1.0).powi(2)).sum::<f64>() / (n - 1.0);
    let delta = (variance / n).sqrt();
    // A run that found nothing has no log; the delta method counts it as zero.
    let finite: Vec<f64> = logs.iter().copied().filter(|ln| ln.is_finite()).collect();
    let spread = spread(&finite);
    if spread > DISAGREE { delta.max(spread / n.sqrt()) } else { delta }
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
