//! Weights of all particles together: their range, their spread, and a new generation in proportion to them.

use super::lanes::{Lanes, Shard};
use super::resample::{EvenPoints, Scheme, When, resample};
use super::word::Word;
use rand::Rng;

/// What the weights of all particles come to.
#[derive(Debug, Clone)]
pub struct Mass {
    /// ln of what the weights of earlier generations came to.
    pub log: f64,
    /// Sum of the weights since the last resampling.
    pub total: f64,
    /// Buffers for resampling: all weights, or their sums before each shard, and each slot's ancestor.
    weights: Vec<f64>,
    ancestors: Vec<u32>,
}

impl Mass {
    /// Particles that all weigh one.
    pub fn new(n_particles: usize) -> Self {
        Mass { log: 0.0, total: n_particles as f64, weights: Vec::new(), ancestors: Vec::new() }
    }

    /// ln of the mean weight from the start on.
    pub fn ln_mean(&self, n_particles: usize) -> f64 {
        self.log + (self.total / n_particles as f64).ln()
    }

    /// After a token was weighed, and weights multiplied by its probabilities unless those are logs. False when all weights
    /// have become zero.
    pub fn take_totals<W: Word>(&mut self, lanes: &mut Lanes<W>, are_logs: bool) -> bool {
        if are_logs {
            self.multiply_by_logs(lanes);
            lanes.shards.iter_mut().for_each(Shard::add_up);
        }
        self.add_up(lanes);
        debug_assert!(!self.total.is_nan(), "a weight is no number");
        self.rescale(lanes);
        self.total > 0.0
    }

    /// Adds the sums of all shards up.
    pub fn add_up<W: Word>(&mut self, lanes: &Lanes<W>) {
        self.total = lanes.shards.iter().map(|shard| shard.sum).sum();
    }

    /// Keeps weights so far from both ends of the range of numbers that neither their squares nor the next token can leave
    /// it: parts of a token's probability that are the same in all particles are counted apart, so what is left may be
    /// large as well as small.
    pub fn rescale<W: Word>(&mut self, lanes: &mut Lanes<W>) {
        let total = self.total;
        if total == 0.0 || !total.is_finite() || (1e-20..=1e20).contains(&total) {
            return;
        }
        // A power of two: scaling does not change a digit.
        let exponent = ((total.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let factor = 2f64.powi(-exponent);
        for shard in &mut lanes.shards {
            shard.weights.iter_mut().for_each(|weight| *weight *= factor);
            shard.add_up();
        }
        self.log += f64::from(exponent) * std::f64::consts::LN_2;
        self.add_up(lanes);
    }

    /// Multiplies the weights by the exponentials of `totals`; what they have in common goes into the log.
    pub fn multiply_by_logs<W: Word>(&mut self, lanes: &mut Lanes<W>) {
        let weighted = lanes.shards.iter().flat_map(|shard| shard.work.totals.iter().zip(&shard.weights));
        let largest =
            weighted.filter(|(_, weight)| **weight > 0.0).fold(f64::NEG_INFINITY, |max, (&total, _)| max.max(total));
        let shift = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        for shard in &mut lanes.shards {
            for (weight, &total) in shard.weights.iter_mut().zip(&shard.work.totals) {
                // A particle that is out may have any total, also one whose exponential is infinite.
                if *weight > 0.0 {
                    *weight *= (total - shift).exp();
                }
            }
        }
        self.log += shift;
    }

    /// The effective sample size, and whether it is time to resample.
    pub fn measure<W: Word>(&self, lanes: &Lanes<W>, when: When) -> (f64, bool) {
        let squares: f64 = lanes.shards.iter().map(|shard| shard.squares).sum();
        let ess = self.total * self.total / squares;
        let is_time = match when {
            When::Always => true,
            When::Never => false,
            When::EssBelow(share) => ess < share * lanes.n_particles as f64,
        };
        (ess, is_time)
    }

    /// A new generation in proportion to the weights, which are 1 afterwards.
    pub fn resample<W: Word>(&mut self, lanes: &mut Lanes<W>, scheme: Scheme, rng: &mut impl Rng) {
        let n_particles = lanes.n_particles;
        if scheme == Scheme::Systematic {
            let points = EvenPoints::draw(n_particles, self.total, rng);
            lanes.draw_evenly(points, &mut self.weights, &mut self.ancestors);
        } else {
            self.weights.clear();
            lanes.shards.iter().for_each(|shard| self.weights.extend_from_slice(&shard.weights));
            self.weights.truncate(n_particles);
            resample(scheme, &self.weights, self.total, rng, &mut self.ancestors);
            lanes.reset_weights();
        }
        lanes.resample(&mut self.ancestors);
        self.log += (self.total / n_particles as f64).ln();
        self.total = n_particles as f64;
    }

    /// The ancestor-based estimate of the relative variance (Lee and Whiteley 2018): particles that descend from different
    /// first ancestors are independent, so their products estimate the square of the expectation.
    pub fn ancestor_variance<W: Word>(&self, lanes: &Lanes<W>, n_resampled: u64) -> f64 {
        let n = lanes.n_particles;
        let mut by_eve = vec![0.0; lanes.shards.len() * lanes.lanes];
        let weights = lanes.shards.iter().flat_map(|shard| &shard.weights).take(n);
        for (weight, eve) in weights.zip(lanes.genealogy.eves()) {
            by_eve[eve as usize] += weight / self.total;
        }
        let same: f64 = by_eve.iter().map(|share| share * share).sum();
        let correction = (n as f64 / (n as f64 - 1.0)).powf(n_resampled as f64 + 1.0);
        if n == 1 { f64::NAN } else { 1.0 - correction * (1.0 - same) }
    }
}
