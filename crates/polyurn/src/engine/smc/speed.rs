//! How long particles take: foreseen from the problem alone, or measured where there is a time limit.

use super::run::Path;
use super::{Crew, Smc};
use crate::Seed;
use crate::engine::Problem;
use crate::engine::lines::Kernel;
use crate::engine::lines::Layout;
use crate::error::Result;
use std::time::Duration;

/// Seconds for one term of one state of one token in one particle, measured on one machine; for forecasts only.
const SECONDS_PER_TERM: f64 = 3.2e-10;
/// A token's cost beside that of its particles, in particles: 45 to 120 in models from 2 to 20 states.
const FIXED_COST: f64 = 80.0;
/// Particles of a probe, at most.
const PROBE_PARTICLES: usize = 64;
/// Moves of a probe's tokens.
const PROBE_REJUVENATION: u32 = 4;
/// Share of a time limit that a probe may take, and seconds at least and at most.
const PROBE_SHARE: f64 = 0.02;
const PROBE_SECONDS: (f64, f64) = (0.003, 0.05);
/// A probe has this number: its random numbers are nobody else's.
const PROBE: u64 = 1 << 41;

/// What one update of every token takes in one run, on one thread.
#[derive(Debug, Clone, Copy)]
pub struct Speed {
    /// Seconds, whatever the number of particles.
    fixed: f64,
    /// Seconds more for each particle.
    per_particle: f64,
}

impl Speed {
    /// From the problem alone: the same on every machine.
    pub fn foreseen(layout: &Layout) -> Self {
        Speed { fixed: 0.0, per_particle: seconds_per_pass(layout).max(1e-9) }
    }

    /// From a short run that is broken off. It has no more particles than the runs, if their number is given.
    ///
    /// # Errors
    /// When particles do not fit into the memory.
    pub fn measured(
        problem: &Problem<'_>,
        crew: Crew,
        n_particles: Option<usize>,
        seed: Seed,
        limit: Duration,
    ) -> Result<Self> {
        let Crew { isa, max_memory, .. } = crew;
        let path = Path { rejuvenation: PROBE_REJUVENATION, ..Default::default() };
        let particles = n_particles.map_or(PROBE_PARTICLES, |n| n.min(PROBE_PARTICLES));
        let smc = Smc { particles, runs: 1, path, isa, threads: 1, max_memory };
        let time = (PROBE_SHARE * limit.as_secs_f64()).clamp(PROBE_SECONDS.0, PROBE_SECONDS.1);
        let seconds_per_update = smc.prepare(problem)?.probe(PROBE, seed, Duration::from_secs_f64(time));
        let mut speed = Speed { fixed: 0.0, per_particle: 1e-12 };
        speed.slow_down_to(problem.layout()?, particles, seconds_per_update);
        Ok(speed)
    }

    /// Takes another measurement: seconds for one update of one token in all of so many particles. The slower counts.
    pub fn slow_down_to(&mut self, layout: &Layout, n_particles: usize, seconds_per_update: f64) {
        let n_tokens: u64 = layout.records.count.iter().sum();
        let per_particle = seconds_per_update * n_tokens as f64 / (FIXED_COST + n_particles as f64);
        if per_particle > self.per_particle {
            *self = Speed { fixed: FIXED_COST * per_particle, per_particle };
        }
    }

    /// Seconds for so many updates of every token.
    pub fn seconds(&self, n_particles: usize, n_passes: f64) -> f64 {
        (self.fixed + self.per_particle * n_particles as f64) * n_passes
    }

    /// Particles for which so many updates of every token take this time.
    pub fn affordable(&self, seconds: f64, n_passes: f64) -> usize {
        (seconds / self.per_particle / n_passes - self.fixed / self.per_particle) as usize
    }
}

/// Seconds for one update of every token in one particle.
fn seconds_per_pass(layout: &Layout) -> f64 {
    let of_record = |record: usize| layout.records.count[record] as f64 * Kernel::cost(layout.kernel_of(record));
    (0..layout.records.len()).map(of_record).sum::<f64>() * SECONDS_PER_TERM
}

impl Smc {
    /// Rough seconds that the job takes.
    ///
    /// # Errors
    /// When the problem is too large for particles.
    pub fn foreseen_seconds(&self, problem: &Problem<'_>) -> Result<f64> {
        let n_passes = f64::from(1 + self.path.rejuvenation + self.path.n_cooling);
        let one_run = seconds_per_pass(problem.layout()?) * n_passes * self.particles as f64;
        Ok(one_run * self.runs as f64 / (self.threads as f64).min(self.runs as f64).max(1.0))
    }
}
