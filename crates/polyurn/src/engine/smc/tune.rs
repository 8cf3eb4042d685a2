//! Settings from a problem: what was best at equal time in our trials (docs/smc.md).

use super::class::Pseudo;
use super::kernel::Kernel;
use super::layout::Layout;
use super::order::Order;
use super::resample::{Scheme, When};
use super::run::Path;
use super::{Isa, Smc};
use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::error::{Error, Result};
use std::time::{Duration, Instant};

/// What a user asked for; everything else is chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// Particles of each run.
    pub particles: Option<usize>,
    /// Independent runs.
    pub runs: Option<u64>,
    /// Gibbs updates of earlier tokens after each new one.
    pub rejuvenation: Option<u32>,
    /// Factor of the pseudo-counts at the start.
    pub heat: Option<f64>,
    /// Steps in which they are brought down.
    pub n_cooling: Option<u32>,
    /// Moves of whole groups of tokens per cooling step.
    pub n_reallocations: Option<u32>,
    /// Order of the tokens.
    pub order: Order,
    /// How to resample.
    pub scheme: Scheme,
    /// When to resample.
    pub when: Option<When>,
    /// Time that the whole job may take.
    pub time_limit: Option<Duration>,
}

/// Runs, unless asked otherwise: enough for an error estimate.
const RUNS: u64 = 4;
/// Gibbs updates of every token before and during cooling.
const REJUVENATION: u32 = 20;
/// Moves of whole groups of tokens per cooling step.
const REALLOCATIONS: u32 = 0;
/// Effective sample size, as a share of the particles, below which they are resampled.
const ESS_BELOW: f64 = 0.5;
/// Pseudo-counts of a typical cell at the start among which pilots choose, beside no heat at all.
const START_PSEUDO_COUNTS: [f64; 3] = [1.0 / 16.0, 1.0 / 4.0, 1.0];
/// Factors below this are not worth cooling from.
const LEAST_HEAT: f64 = 1.5;
/// Particles and runs of a pilot, and its Gibbs updates of every token before and during cooling.
const PILOT_PARTICLES: usize = 32;
const PILOT_RUNS: u64 = 4;
const PILOT_REJUVENATION: u32 = 8;
/// Seconds of one core for one run, unless asked otherwise.
const SECONDS_PER_RUN: f64 = 0.35;
/// Particles, at least and at most.
const PARTICLES: (usize, usize) = (64, 8192);
/// Seconds for one term of one state of one token in one particle, measured; for forecasts only.
const SECONDS_PER_TERM: f64 = 3.2e-10;
/// Share of a time limit that is planned for: forecasts are rough.
const SHARE_OF_LIMIT: f64 = 0.6;

impl Wish {
    /// Fills in what was not asked for. Depends on the data, the wish and pilots that are independent of the run, never on
    /// the run itself.
    ///
    /// # Errors
    /// When the problem is too large for particles, or the pilots were stopped.
    pub fn settle(&self, problem: &Problem<'_>, crew: Crew, seed: Seed, control: &mut Control<'_>) -> Result<Smc> {
        let Crew { isa, threads, max_memory } = crew;
        let start = Instant::now();
        let layout = problem.layout()?;
        if self.n_reallocations.is_some_and(|n| n > 0) && !layout.can_reallocate(1.0) {
            return Err(Error::Setting(
                "--split-merge: this model does not have one hidden node whose values can be shared out anew; leave it out"
                    .into(),
            ));
        }
        let runs = self.runs.unwrap_or(RUNS);
        let mut rejuvenation = self.rejuvenation.unwrap_or(REJUVENATION);
        let pilots = match self.heat {
            Some(heat) => Pilots { heat, seconds_per_update: 0.0 },
            None if rejuvenation == 0 || layout.records.len() == 0 => Pilots { heat: 1.0, seconds_per_update: 0.0 },
            None => self.choose_heat(problem, crew, seed, control)?,
        };
        let heat = pilots.heat;
        let mut n_cooling = self.n_cooling.unwrap_or(rejuvenation.max(1));
        let seconds = match self.time_limit {
            Some(limit) => {
                let at_once = (threads as f64).min(runs as f64).max(1.0);
                limit.saturating_sub(start.elapsed()).as_secs_f64() * SHARE_OF_LIMIT * at_once / runs as f64
            }
            None => SECONDS_PER_RUN,
        };
        let mut seconds_per_pass = seconds_per_pass(layout).max(1e-9);
        if self.time_limit.is_some() {
            // A machine slower than ours shows in its pilots.
            let n_tokens: u64 = layout.records.count.iter().sum();
            seconds_per_pass = seconds_per_pass.max(pilots.seconds_per_update * n_tokens as f64);
        }
        let n_passes = |rejuvenation: u32, n_cooling: u32| {
            f64::from(1 + rejuvenation) + if heat == 1.0 { 0.0 } else { f64::from(n_cooling) }
        };
        let affordable = |n_passes: f64| (seconds / seconds_per_pass / n_passes) as usize;
        let particles = self.particles.unwrap_or_else(|| {
            // Many tokens: fewer moves rather than fewer particles than the least.
            while affordable(n_passes(rejuvenation, n_cooling)) < PARTICLES.0
                && rejuvenation > 4
                && self.rejuvenation.is_none()
            {
                rejuvenation = rejuvenation * 3 / 4;
                n_cooling = self.n_cooling.unwrap_or(rejuvenation);
            }
            let n = affordable(n_passes(rejuvenation, n_cooling)).clamp(PARTICLES.0, PARTICLES.1);
            if n >= 256 { n / 256 * 256 } else { n / 16 * 16 }
        });
        let path = Path {
            order: self.order,
            rejuvenation,
            start_scale: heat,
            n_cooling: if heat == 1.0 { 0 } else { n_cooling },
            n_reallocations: self.n_reallocations.unwrap_or(if rejuvenation == 0 { 0 } else { REALLOCATIONS }),
            when: self.when.unwrap_or(When::EssBelow(ESS_BELOW)),
            scheme: self.scheme,
        };
        Ok(Smc { particles, runs, path, isa, threads, max_memory })
    }

    /// The heat whose pilots have the largest mean ln estimate. An estimate of p(sequence) is unbiased, so its ln is too
    /// small on average, the more the wider it scatters; and components that merged under too much heat make it small too.
    fn choose_heat(&self, problem: &Problem<'_>, crew: Crew, seed: Seed, control: &mut Control<'_>) -> Result<Pilots> {
        let to_one = heat_to_one(problem.layout()?);
        let heats = START_PSEUDO_COUNTS.iter().map(|start| (start * to_one).min(LARGEST_HEAT));
        let heats: Vec<f64> = [1.0].into_iter().chain(heats.filter(|&heat| heat >= LEAST_HEAT)).collect();
        if heats.len() == 1 {
            return Ok(Pilots { heat: 1.0, seconds_per_update: 0.0 });
        }
        let start = Instant::now();
        let mut n_updates = 0;
        let mut best = (f64::NEG_INFINITY, 1.0);
        for (ix, &heat) in heats.iter().enumerate() {
            let path = Path {
                rejuvenation: PILOT_REJUVENATION * if heat == 1.0 { 2 } else { 1 },
                start_scale: heat,
                n_cooling: if heat == 1.0 { 0 } else { PILOT_REJUVENATION },
                order: self.order,
                ..Default::default()
            };
            let Crew { isa, threads, max_memory } = crew;
            let pilot = Smc { particles: PILOT_PARTICLES, runs: PILOT_RUNS, path, isa, threads, max_memory };
            let first = PILOTS + ix as u64 * PILOT_RUNS;
            let runs = pilot.prepare(problem)?.pilot(first, seed, control)?;
            n_updates += runs.iter().map(|run| run.n_updates).sum::<u64>();
            let mean = runs.iter().map(|run| run.ln_p_sequence).sum::<f64>() / runs.len() as f64;
            if mean > best.0 {
                best = (mean, heat);
            }
        }
        // Pilots have few particles, so each of their updates costs about twice as much; threads share them out.
        let at_once = (crew.threads as f64).min(PILOT_RUNS as f64);
        let seconds_per_update = start.elapsed().as_secs_f64() * at_once / (n_updates.max(1) as f64) / 2.0;
        Ok(Pilots { heat: best.1, seconds_per_update })
    }
}

/// What pilots found.
struct Pilots {
    heat: f64,
    seconds_per_update: f64,
}

/// Runs from this number on are pilots: their random numbers are nobody else's.
const PILOTS: u64 = 1 << 40;
/// Heat beyond this changes nothing.
const LARGEST_HEAT: f64 = 1e12;

/// Who does the work, and in how much room.
#[derive(Debug, Clone, Copy)]
pub struct Crew {
    /// Instructions to use.
    pub isa: Isa,
    /// Threads.
    pub threads: usize,
    /// Bytes that all particles together may take.
    pub max_memory: u64,
}

impl Default for Crew {
    fn default() -> Self {
        Crew { isa: Isa::detect(), threads: 1, max_memory: 4 << 30 }
    }
}

/// The factor that brings a typical cell to a pseudo-count of one.
fn heat_to_one(layout: &Layout) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for counted in layout.counted.iter().filter(|counted| counted.kind == Kind::Cell) {
        let mean = match &counted.pseudo {
            Pseudo::Even(pseudo) => pseudo.ln(),
            Pseudo::PerLine(all) => {
                let positive: Vec<f64> =
                    all.iter().filter(|pseudo| !pseudo.is_zero()).map(|pseudo| pseudo.ln()).collect();
                positive.iter().sum::<f64>() / (positive.len() as f64).max(1.0)
            }
        };
        // Tables with seen values are many cells wide; those of hidden nodes alone matter less.
        if layout.classes[counted.class].has_key() {
            sum += mean;
            n += 1.0;
        }
    }
    if n == 0.0 { 1.0 } else { (-sum / n).exp() }
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
        let layout = problem.layout()?;
        let n_passes = f64::from(1 + self.path.rejuvenation + self.path.n_cooling);
        let one_run = seconds_per_pass(layout) * n_passes * self.particles as f64;
        Ok(one_run * self.runs as f64 / (self.threads as f64).min(self.runs as f64).max(1.0))
    }
}
