//! Settings of Gibbs chains, with sweeps for a time limit where none were asked for.

use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::gibbs::{Gibbs, Moves};
use crate::error::{Error, Result};
use crate::simd::Isa;
use crate::text::plural;
use std::time::{Duration, Instant};

/// Chains when none are asked for: fewer could agree by chance.
const CHAINS: u64 = 4;

/// Sweeps of the trial from which a time limit is shared out, the share of the time that is given away, and the ends of
/// what may be chosen.
const TRIAL_SWEEPS: u64 = 4;
const SHARE: f64 = 0.8;
const FEWEST_SWEEPS: f64 = 20.0;
const MOST_SWEEPS: f64 = 100_000.0;

/// What is asked of chains; what is not given is chosen.
#[derive(Debug, Clone, Default)]
pub struct ChainWish {
    /// Independent chains.
    pub chains: Option<u64>,
    /// Sweeps of each.
    pub sweeps: Option<u64>,
    /// Sweeps to leave out at the start.
    pub warm_up: Option<u64>,
    /// Sweeps from one kept state to the next.
    pub thin: Option<u64>,
    /// What a sweep does: one token after another, unless said otherwise.
    pub moves: Option<Moves>,
}

impl ChainWish {
    /// What was asked for; sweeps that were not are chosen for the time limit, after a short trial.
    ///
    /// # Errors
    /// When the warm-up leaves nothing, or the trial fails.
    pub fn settle(
        &self,
        problem: &Problem<'_>,
        isa: Isa,
        threads: usize,
        time_limit: Option<Duration>,
        seed: Seed,
        control: &Control<'_>,
    ) -> Result<Gibbs> {
        let default = Gibbs::default();
        let mut gibbs = Gibbs {
            moves: self.moves.unwrap_or(Moves::Tokens),
            chains: self.chains.unwrap_or(CHAINS),
            sweeps: self.sweeps.unwrap_or(default.sweeps),
            warm_up: self.warm_up,
            thin: self.thin,
            isa,
            threads,
            ..default
        };
        if let Some(warm_up) = self.warm_up
            && self.sweeps.is_some_and(|sweeps| warm_up >= sweeps)
        {
            return Err(Error::Setting(format!(
                "--warm-up {warm_up}: {} leave nothing to answer with; give more --sweeps",
                plural(gibbs.sweeps, "sweep")
            )));
        }
        if let (Some(limit), None) = (time_limit, self.sweeps) {
            gibbs.sweeps = self.sweeps_for(limit, &gibbs, problem, seed, control)?;
        }
        Ok(gibbs)
    }

    fn sweeps_for(
        &self,
        limit: Duration,
        gibbs: &Gibbs,
        problem: &Problem<'_>,
        seed: Seed,
        control: &Control<'_>,
    ) -> Result<u64> {
        let begun = Instant::now();
        let at_once = gibbs.chains.min(gibbs.threads as u64).max(1);
        let trial = Gibbs { chains: at_once, sweeps: TRIAL_SWEEPS, ..gibbs.clone() };
        match trial.run(problem, seed, &mut control.for_trial(begun + limit / 4)) {
            // Too slow for a trial: the few sweeps that a chain needs are tried all the same, and cut short.
            Err(Error::Stopped(_)) if !control.is_asked_to_stop() => return Ok(FEWEST_SWEEPS as u64),
            found => drop(found?),
        }
        let a_sweep = begun.elapsed().as_secs_f64() / TRIAL_SWEEPS as f64;
        let left = (limit.saturating_sub(begun.elapsed())).as_secs_f64() * SHARE;
        let n_rounds = gibbs.chains.div_ceil(at_once) as f64;
        let warm_up = self.warm_up.unwrap_or(0) as f64;
        let sweeps =
            (left / (a_sweep.max(1e-9) * n_rounds)).clamp(FEWEST_SWEEPS, MOST_SWEEPS).max(warm_up + FEWEST_SWEEPS);
        Ok(sweeps as u64)
    }
}
