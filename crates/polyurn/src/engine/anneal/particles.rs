//! Particles that go along a path together, in either direction.

use super::fitted::Fitted;
use super::ladder::{Ladder, Sight};
use super::pilot::Drawing;
use super::walker::{Setup, Walker};
use crate::engine::replicates::Watch;
use crate::engine::smc::{Scheme, resample};
use crate::error::Result;
use crate::math::log_sum_exp;
use crate::{Purpose, Seed};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Particles are resampled when fewer than this share of them are effective.
pub const ESS_SHARE: f64 = 0.5;

/// Steps of random streams that a run uses besides its sweeps.
const BESIDES: u64 = 1 << 40;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the reference to the posterior.
    Forward,
    /// From the posterior to the reference.
    Back,
}

impl Way {
    pub fn purpose(self) -> Purpose {
        match self {
            Way::Forward => Purpose::Anneal,
            Way::Back => Purpose::Reverse,
        }
    }
}

/// What a run of particles goes through.
#[derive(Debug, Clone, Copy)]
pub struct Trip<'t> {
    pub setup: &'t Setup<'t>,
    pub fitted: Option<&'t Fitted>,
    pub ladder: &'t Ladder,
    pub way: Way,
    pub seed: Seed,
    /// Number of the run.
    pub replicate: u64,
    pub n_threads: usize,
}

/// Particles under way, to go on from later.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Party {
    /// Steps that are done.
    pub n_done: usize,
    /// States of all tokens, particle by particle.
    pub states: Vec<Vec<u32>>,
    /// ln of the particles' weights since they were last resampled.
    pub ln_weights: Vec<f64>,
    /// ln of the mean weights before that.
    pub ln_mean: f64,
    pub ess_min: f64,
    pub n_resampled: u64,
    /// Relative variance of the mean weights before that, with one particle nothing.
    pub variance: f64,
    pub sights: Vec<Sight>,
}

/// The state of a run under way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Kept {
    /// Before a run back: on the way to its draws.
    Drawing(Drawing),
    /// On the path.
    Going(Party),
}

impl Party {
    /// At the beginning, in these states, with these weights.
    pub fn new(states: Vec<Vec<u32>>, ln_weights: Vec<f64>) -> Self {
        let ess_min = states.len() as f64;
        let (ln_mean, variance, n_resampled) = (0.0, 0.0, 0);
        Party { n_done: 0, states, ln_weights, ln_mean, ess_min, n_resampled, variance, sights: Vec::new() }
    }

    /// Whether these can be particles of this trip.
    pub fn fits(&self, trip: &Trip<'_>, n_particles: usize) -> bool {
        let tokens = trip.setup.tokens;
        self.n_done <= trip.ladder.n_steps()
            && self.states.len() == n_particles
            && self.ln_weights.len() == n_particles
            && self.states.iter().all(|states| tokens.fit(states))
    }

    /// Effective particles after some of the steps, and the steps at which they were resampled: so many of each at most.
    pub fn trace(&self, n_most: usize) -> (Vec<(u64, f64)>, Vec<u64>) {
        let every = self.sights.len().div_ceil(n_most).max(1);
        let steps = || (1..).zip(&self.sights);
        let trace = steps().step_by(every).map(|(step, sight)| (step, sight.ess)).collect();
        let threshold = ESS_SHARE * self.states.len() as f64;
        let n_between = self.sights.len().saturating_sub(1);
        let resampled = steps().take(n_between).filter(|(_, sight)| sight.ess < threshold);
        (trace, resampled.map(|(step, _)| step).take(n_most).collect())
    }

    /// ln of the mean of all weights, with ln of a last factor for each particle, and the relative variance of that mean: as if
    /// particles were independent between one resampling and the next. `None` where one particle cannot tell.
    pub fn ln_estimate(&self, last: impl Iterator<Item = f64>) -> (f64, Option<f64>) {
        let terms: Vec<f64> = self.ln_weights.iter().zip(last).map(|(ln, last)| ln + last).collect();
        let n = terms.len() as f64;
        let total = log_sum_exp(&terms);
        let twice: Vec<f64> = terms.iter().map(|term| 2.0 * term).collect();
        let ess = (2.0 * total - log_sum_exp(&twice)).exp();
        let variance = Some(self.variance + variance_of_mean(ess, n)).filter(|_| terms.len() > 1 && total.is_finite());
        (self.ln_mean + total - n.ln(), variance)
    }
}

/// Relative variance of the mean of n weights of which so many are effective.
fn variance_of_mean(ess: f64, n: f64) -> f64 {
    (n / ess - 1.0) / (n - 1.0)
}

impl Trip<'_> {
    /// Takes the particles to the end of the path. Going back, weights are those of the reference over the posterior.
    ///
    /// # Errors
    /// When stopped; then the party is as it was after the last whole step, and `watch` has it.
    pub fn go(&self, party: Party, share: (f64, f64), watch: &Watch<'_>) -> Result<Party> {
        let Trip { setup, fitted, ladder, .. } = *self;
        let Party {
            n_done,
            states,
            mut ln_weights,
            mut ln_mean,
            mut ess_min,
            mut n_resampled,
            mut variance,
            mut sights,
        } = party;
        let mut walkers: Vec<Walker> =
            states.into_iter().map(|states| Walker::with_states(setup, fitted, states)).collect();
        let n_steps = ladder.n_steps();
        let n_particles = walkers.len();
        for step in n_done..n_steps {
            let done = share.0 + (share.1 - share.0) * step as f64 / n_steps as f64;
            let go_on = watch.tick(done);
            if watch.is_asked() || go_on.is_err() {
                let states = walkers.iter().map(|walker| walker.states().to_vec()).collect();
                let (ln_weights, sights) = (ln_weights.clone(), sights.clone());
                let party = Party { n_done: step, states, ln_weights, ln_mean, ess_min, n_resampled, variance, sights };
                watch.keep(&Kept::Going(party));
            }
            go_on?;
            let (from, to) = match self.way {
                Way::Forward => (ladder.beta(step), ladder.beta(step + 1)),
                Way::Back => (ladder.beta(n_steps - step), ladder.beta(n_steps - step - 1)),
            };
            let ln_ratios: Vec<f64> = walkers.iter().map(|walker| walker.ln_ratio(setup, fitted)).collect();
            for (ln_weight, ln_ratio) in ln_weights.iter_mut().zip(&ln_ratios) {
                // Nothing times minus infinity is nothing.
                *ln_weight += if to == from { 0.0 } else { (to - from) * ln_ratio };
            }
            let ln_ratio = ln_ratios.iter().sum::<f64>() / n_particles as f64;
            let largest = ln_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if largest == f64::NEG_INFINITY {
                sights.push(Sight { beta: from.max(to), ln_ratio, ess: 0.0 });
                break;
            }
            let weights: Vec<f64> = ln_weights.iter().map(|ln| (ln - largest).exp()).collect();
            let total: f64 = weights.iter().sum();
            let ess = total * total / weights.iter().map(|weight| weight * weight).sum::<f64>();
            ess_min = ess_min.min(ess);
            sights.push(Sight { beta: from.max(to), ln_ratio, ess });
            if step + 1 == n_steps {
                break;
            }
            if ess < ESS_SHARE * n_particles as f64 {
                let mut rng = self.seed.stream(self.way.purpose(), self.replicate, u64::MAX, BESIDES + step as u64);
                let mut ancestors = Vec::new();
                resample(Scheme::Systematic, &weights, total, &mut rng, &mut ancestors);
                follow(&mut walkers, &ancestors);
                ln_mean += largest + (total / n_particles as f64).ln();
                variance += variance_of_mean(ess, n_particles as f64);
                ln_weights.fill(0.0);
                n_resampled += 1;
            }
            let heat = setup.at(to, fitted);
            let sign = watch.stop_sign();
            let sweep = |(particle, walker): (usize, &mut Walker)| {
                let mut rng = self.seed.stream(self.way.purpose(), self.replicate, particle as u64, step as u64);
                walker.sweep(setup, &heat, fitted, None, &mut rng, &|| sign.look())
            };
            if self.n_threads > 1 && n_particles > 1 {
                walkers.par_iter_mut().enumerate().try_for_each(sweep)?;
            } else {
                walkers.iter_mut().enumerate().try_for_each(sweep)?;
            }
        }
        let states = walkers.iter().map(|walker| walker.states().to_vec()).collect();
        Ok(Party { n_done: n_steps, states, ln_weights, ln_mean, ess_min, n_resampled, variance, sights })
    }
}

/// Each slot goes on from its ancestor; ancestors ascend. Who has children keeps one of them in place.
fn follow(walkers: &mut [Walker], ancestors: &[u32]) {
    let mut n_children = vec![0u32; walkers.len()];
    ancestors.iter().for_each(|&ancestor| n_children[ancestor as usize] += 1);
    let mut free: Vec<usize> = (0..walkers.len()).filter(|&slot| n_children[slot] == 0).collect();
    for parent in 0..walkers.len() {
        for _ in 1..n_children[parent] {
            let slot = free.pop().expect("as many slots are free as there are further children");
            let (low, high) = walkers.split_at_mut(parent.max(slot));
            let (parent, child) = if parent < slot { (&low[parent], &mut high[0]) } else { (&high[0], &mut low[slot]) };
            child.copy_from(parent);
        }
    }
}
