//! The powers that a path goes through.
//!
//! A run pays for going too fast: what it loses in a step is the step's length times how far the walkers lag behind. Short runs
//! both ways show where they lag, as the distance between the two; the best pace spends steps in proportion to the root of it
//! (the same rule that keeps the conditional effective sample size level where walkers keep up).

use serde::{Deserialize, Serialize};

/// Bins in which a pace is found.
const BINS: usize = 16;

/// A bin gets at least this share of the steps that it would get if all bins got the same.
const LEAST_PACE: f64 = 0.2;

/// Powers from 0 to 1, ascending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    betas: Vec<f64>,
}

/// What a walker saw on its way: at a power, ln of what the end of the path has more than its start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    /// Where the step ended that this was seen in.
    pub beta: f64,
    /// ln p - ln q, the mean over the particles.
    pub ln_ratio: f64,
    /// Effective particles.
    pub ess: f64,
}

impl Ladder {
    /// Steps that get shorter towards the posterior, where walkers are slow.
    pub fn first(n_steps: usize) -> Self {
        let n = n_steps.max(1);
        let at = |step: usize| 1.0 - (1.0 - step as f64 / n as f64).powi(2);
        Ladder { betas: (0..=n).map(at).collect() }
    }

    /// As many steps as wanted, with a pace from what runs both ways saw.
    pub fn paced(n_steps: usize, forward: &[Sight], backward: &[Sight]) -> Self {
        let bin_of = |beta: f64| ((beta * BINS as f64) as usize).min(BINS - 1);
        let mean = |sights: &[Sight], bin: usize| {
            let own: Vec<f64> =
                sights.iter().filter(|sight| bin_of(sight.beta) == bin).map(|sight| sight.ln_ratio).collect();
            (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
        };
        // Bins that no short run has seen take what their neighbour has.
        let mut lags = [0.0; BINS];
        let mut last = 0.0;
        for (bin, lag) in lags.iter_mut().enumerate() {
            if let (Some(ahead), Some(behind)) = (mean(backward, bin), mean(forward, bin)) {
                last = (ahead - behind).max(0.0);
            }
            *lag = last;
        }
        let smooth = |bin: usize| (lags[bin.saturating_sub(1)] + 2.0 * lags[bin] + lags[(bin + 1).min(BINS - 1)]) / 4.0;
        let mut paces: Vec<f64> = (0..BINS).map(|bin| smooth(bin).sqrt()).collect();
        let average = paces.iter().sum::<f64>() / BINS as f64;
        if average.is_nan() || average <= 0.0 {
            return Ladder::first(n_steps);
        }
        paces.iter_mut().for_each(|pace| *pace = (*pace / average).max(LEAST_PACE));
        let total: f64 = paces.iter().sum();
        let n = n_steps.max(1);
        let mut betas = vec![0.0];
        let (mut bin, mut before) = (0, 0.0);
        for step in 1..n {
            let target = total * step as f64 / n as f64;
            while bin + 1 < BINS && before + paces[bin] < target {
                before += paces[bin];
                bin += 1;
            }
            betas.push(((bin as f64 + (target - before) / paces[bin]) / BINS as f64).clamp(betas[step - 1], 1.0));
        }
        betas.push(1.0);
        Ladder { betas }
    }

    /// Number of steps.
    pub fn n_steps(&self) -> usize {
        self.betas.len() - 1
    }

    /// The power after so many steps.
    pub fn beta(&self, step: usize) -> f64 {
        self.betas[step]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ladder: &Ladder, n_steps: usize) {
        assert_eq!((ladder.n_steps(), ladder.beta(0), ladder.beta(n_steps)), (n_steps, 0.0, 1.0));
        assert!((0..n_steps).all(|step| ladder.beta(step) <= ladder.beta(step + 1)));
    }

    fn sights(ln_ratio: impl Fn(f64) -> f64) -> Vec<Sight> {
        (1..=200)
            .map(|step| step as f64 / 200.0)
            .map(|beta| Sight { beta, ln_ratio: ln_ratio(beta), ess: 1.0 })
            .collect()
    }

    #[test]
    fn ladders_rise_from_zero_to_one() {
        for n_steps in [1, 2, 7, 400] {
            check(&Ladder::first(n_steps), n_steps);
            check(&Ladder::paced(n_steps, &sights(|_| 0.0), &sights(|beta| 5.0 + beta)), n_steps);
            check(&Ladder::paced(n_steps, &[], &[]), n_steps);
            check(&Ladder::paced(n_steps, &sights(|_| f64::NEG_INFINITY), &sights(|_| 0.0)), n_steps);
        }
    }

    #[test]
    fn steps_are_short_where_walkers_lag() {
        // A hundred times the lag in the last quarter: ten times the pace there, but for the smoothing at its edge and the
        // least pace.
        let lag = |beta: f64| if beta > 0.75 { 100.0 } else { 1.0 };
        let ladder = Ladder::paced(1000, &sights(|beta| -lag(beta)), &sights(|_| 0.0));
        let n_last = (0..1000).filter(|&step| ladder.beta(step) > 0.75).count();
        assert!((650..800).contains(&n_last), "{n_last}");
    }
}
