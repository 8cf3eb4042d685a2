//! Bounds that hold with a given probability, from estimates that are right on average.
//!
//! An estimate W > 0 of Z with mean Z exceeds Z e^c with a probability of at most e^-c (Markov's inequality). So ln W - c is a
//! lower bound of ln Z, but for that probability. With several independent estimates there is more to say: that at least m of n
//! exceed Z e^c has a probability of at most (n over m) e^-mc, and the mean of all is such an estimate too. The best of these
//! bounds is taken, each allowed its share of the error. Estimates of 1 / Z bound ln Z from above in the same way.

use crate::math::{ln_factorial, log_sum_exp};
use serde::{Deserialize, Serialize};

/// ln p(sequence) between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bracket {
    /// It is at least this, but for a probability of `error`.
    pub lower: f64,
    /// It is at most this, but for the same probability, if the draws that the runs back started from are draws from the
    /// posterior.
    pub upper: f64,
    /// How probable it is at most that a bound does not hold, for each of the two.
    pub error: f64,
}

/// A bound that ln Z exceeds but for a probability of `error`, from logs of independent estimates of Z.
pub fn lower_bound(ln_estimates: &[f64], error: f64) -> f64 {
    let n = ln_estimates.len();
    let mut sorted = ln_estimates.to_vec();
    sorted.sort_by(f64::total_cmp);
    // Bounds that are tried: the mean, and for each m the m-th largest.
    let ln_share = (error / (n as f64 + if n > 1 { 1.0 } else { 0.0 })).ln();
    let mean = log_sum_exp(&sorted) - (n as f64).ln() + ln_share;
    let of_largest = |m: usize| {
        let ln_ways = (ln_factorial(n as u64) - ln_factorial(m as u64) - ln_factorial((n - m) as u64)).value();
        sorted[n - m] - (ln_ways - ln_share) / m as f64
    };
    (1..=n).filter(|_| n > 1).map(of_largest).fold(mean, f64::max)
}

/// A bound that ln Z stays below but for a probability of `error`, from minus logs of independent estimates of 1 / Z.
pub fn upper_bound(ln_estimates: &[f64], error: f64) -> f64 {
    let negative: Vec<f64> = ln_estimates.iter().map(|ln| -ln).collect();
    -lower_bound(&negative, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::draw::open_unit;
    use crate::{Purpose, Seed};

    #[test]
    fn one_estimate_is_bounded_by_markov() {
        assert!((lower_bound(&[-7.0], 0.025) - (-7.0 + 0.025f64.ln())).abs() < 1e-12);
        assert!((upper_bound(&[-7.0], 0.025) - (-7.0 - 0.025f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn many_estimates_that_agree_give_a_narrow_bracket() {
        let many = vec![-100.0; 64];
        assert!(lower_bound(&many, 0.025) > -100.2 && upper_bound(&many, 0.025) < -99.8);
    }

    /// The worst case for Markov: W is either 0 or 1 / p. And a log-normal, whose logs are on average too low.
    #[test]
    fn bounds_fail_no_more_often_than_they_may() {
        let mut rng = Seed(3).stream(Purpose::Urn, 0, 0, 0);
        let normal = |rng: &mut crate::Stream| {
            let radius = (-2.0 * open_unit(rng).ln()).sqrt();
            radius * (std::f64::consts::TAU * open_unit(rng)).cos()
        };
        for n in [1, 2, 5, 16] {
            let mut n_failed = [0; 3];
            for _ in 0..20_000 {
                for (kind, failed) in n_failed.iter_mut().enumerate() {
                    let draws: Vec<f64> = (0..n)
                        .map(|_| match kind {
                            0 if open_unit(&mut rng) < 0.02 => 50f64.ln(),
                            0 => -1e9,
                            1 => 2.0 * normal(&mut rng) - 2.0,
                            _ => 0.1 * normal(&mut rng) - 0.005,
                        })
                        .collect();
                    *failed += u32::from(lower_bound(&draws, 0.05) > 0.0);
                }
            }
            // At most 0.05 of 20,000, with 4.5 standard errors of 31.
            assert!(n_failed.iter().all(|&failed| failed <= 1000 + 139), "{n}: {n_failed:?}");
        }
    }
}
