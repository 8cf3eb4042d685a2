//! Weights of the particles: their range, their spread, and a new generation when it is time.

use super::Run;
use crate::Purpose;
use crate::engine::smc::lanes::Shard;
use crate::engine::smc::resample::{EvenPoints, Scheme, When, resample};
use crate::engine::smc::word::Word;

/// Entries of a trace, at most.
const TRACE_LENGTH: u64 = 200;

impl<W: Word> Run<'_, W> {
    /// After a token was weighed, and weights multiplied by its probabilities unless those are logs. False when all weights
    /// have become zero.
    pub(super) fn take_totals(&mut self, slot: usize) -> bool {
        if self.course.prepared[slot].is_guarded() {
            self.multiply_by_logs();
            self.lanes.shards.iter_mut().for_each(Shard::add_up);
        }
        self.weight_total = self.total_weight();
        debug_assert!(!self.weight_total.is_nan(), "a weight is no number");
        self.rescale();
        self.weight_total > 0.0
    }

    /// Keeps weights so far from both ends of the range of numbers that neither their squares nor the next token can leave
    /// it: parts of a token's probability that are the same in all particles are counted apart, so what is left may be
    /// large as well as small.
    pub(super) fn rescale(&mut self) {
        let total = self.weight_total;
        if total == 0.0 || !total.is_finite() || (1e-20..=1e20).contains(&total) {
            return;
        }
        // A power of two: scaling does not change a digit.
        let exponent = ((total.to_bits() >> 52) & 0x7ff) as i32 - 1023;
        let factor = 2f64.powi(-exponent);
        for shard in &mut self.lanes.shards {
            shard.weights.iter_mut().for_each(|weight| *weight *= factor);
            shard.add_up();
        }
        self.log += f64::from(exponent) * std::f64::consts::LN_2;
        self.weight_total = self.total_weight();
    }

    /// Multiplies the weights by the exponentials of `totals`; what they have in common goes into the log.
    pub(super) fn multiply_by_logs(&mut self) {
        let weighted = self.lanes.shards.iter().flat_map(|shard| shard.work.totals.iter().zip(&shard.weights));
        let largest =
            weighted.filter(|(_, weight)| **weight > 0.0).fold(f64::NEG_INFINITY, |max, (&total, _)| max.max(total));
        let shift = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        for shard in &mut self.lanes.shards {
            for (weight, &total) in shard.weights.iter_mut().zip(&shard.work.totals) {
                // A particle that is out may have any total, also one whose exponential is infinite.
                if *weight > 0.0 {
                    *weight *= (total - shift).exp();
                }
            }
        }
        self.log += shift;
    }

    pub(super) fn total_weight(&self) -> f64 {
        self.lanes.shards.iter().map(|shard| shard.sum).sum()
    }

    /// Notes the effective sample size and says whether it is time to resample.
    pub(super) fn measure(&mut self) -> bool {
        let n_particles = self.lanes.n_particles as f64;
        let squares: f64 = self.lanes.shards.iter().map(|shard| shard.squares).sum();
        let ess = self.weight_total * self.weight_total / squares;
        self.result.ess_min = self.result.ess_min.min(ess);
        let step = self.course.step;
        let n_planned = self.course.order.len() as u64 + u64::from(self.path.n_cooling);
        let every = n_planned.div_ceil(TRACE_LENGTH).max(1);
        self.n_measured += 1;
        // Tokens in unknown cells may come on top.
        if self.n_measured.is_multiple_of(every) && self.result.ess_trace.len() < TRACE_LENGTH as usize {
            self.result.ess_trace.push((step, ess));
        }
        match self.path.when {
            When::Always => true,
            When::Never => false,
            When::EssBelow(share) => ess < share * n_particles,
        }
    }

    /// A new generation in proportion to the weights, which are 1 afterwards.
    pub(super) fn resample(&mut self) {
        let n_particles = self.lanes.n_particles;
        let course = &self.course;
        let mut rng = course.seed.stream(Purpose::Ancestors, course.replicate, 0, course.step);
        if self.path.scheme == Scheme::Systematic {
            let points = EvenPoints::draw(n_particles, self.weight_total, &mut rng);
            self.lanes.draw_evenly(points, &mut self.weights, &mut self.ancestors);
        } else {
            self.weights.clear();
            self.lanes.shards.iter().for_each(|shard| self.weights.extend_from_slice(&shard.weights));
            self.weights.truncate(n_particles);
            resample(self.path.scheme, &self.weights, self.weight_total, &mut rng, &mut self.ancestors);
            self.lanes.reset_weights();
        }
        self.lanes.resample(&mut self.ancestors);
        self.log += (self.weight_total / n_particles as f64).ln();
        self.weight_total = n_particles as f64;
        self.result.n_resampled += 1;
        if self.result.resampled_at.len() < TRACE_LENGTH as usize {
            self.result.resampled_at.push(course.step);
        }
    }

    /// The ancestor-based estimate of the relative variance (Lee and Whiteley 2018): particles that descend from different
    /// first ancestors are independent, so their products estimate the square of the expectation.
    pub(super) fn ancestor_variance(&self) -> f64 {
        let n = self.lanes.n_particles;
        let mut by_eve = vec![0.0; self.lanes.shards.len() * self.lanes.lanes];
        let weights = self.lanes.shards.iter().flat_map(|shard| &shard.weights).take(n);
        for (weight, eve) in weights.zip(self.lanes.genealogy.eves()) {
            by_eve[eve as usize] += weight / self.weight_total;
        }
        let same: f64 = by_eve.iter().map(|share| share * share).sum();
        let correction = (n as f64 / (n as f64 - 1.0)).powf(self.result.n_resampled as f64 + 1.0);
        if n == 1 { f64::NAN } else { 1.0 - correction * (1.0 - same) }
    }
}
