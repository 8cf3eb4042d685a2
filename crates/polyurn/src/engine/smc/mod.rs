//! Sequential Monte Carlo: tokens go through the urns of many particles, and their mean weight estimates the evidence.
//!
//! This is the paper's BAM-SIS-R for any model the plan can compile, and what makes it precise: Gibbs updates of earlier
//! tokens, a good order of the tokens, and a start with larger pseudo-counts that are cooled down to the prior's. The
//! estimate of p(sequence) is unbiased whatever the settings, since the order, the moves and the cooling are fixed before
//! the run; only the decision to resample looks at the particles. docs/smc.md tells what was tried and how it did.
//!
//! - `prepared`: which lines a token is weighed by and counted in (the lines themselves: `engine::lines`);
//! - `workspace`, `loops`: doing so in all particles, vectorised over them;
//! - `frame`, `lanes`, `genealogy`: particles in memory, resampled without copying;
//! - `order`, `course`, `cooling`, `reallocate`, `run`: one run;
//! - `align`, `posterior`: what its particles say; `replicates`, `estimate`: many runs and one answer;
//! - `online`: runs that follow a stream, which share `mass` and `token` with those that do not;
//! - `tune`, `speed`: settings that were not asked for.

mod align;
mod cooling;
mod course;
mod estimate;
mod frame;
mod fused;
mod genealogy;
mod lanes;
mod loops;
mod mass;
pub mod online;
mod order;
mod posterior;
mod prepared;
mod reallocate;
mod resample;
mod run;
mod schedule;
mod speed;
mod threads;
mod token;
mod tune;
mod word;
mod workspace;

pub use super::allocation::{ParticleAllocation, RecordAllocation, RecordPosterior};
pub(crate) use estimate::student;
pub use estimate::{ErrorFrom, Estimate, log_mean_exp};
pub(super) use estimate::{disagreement, error_of_mean};
pub use order::Order;
pub use posterior::{SmcPosterior, WeightedAllocation};
pub(super) use resample::resample;
pub use resample::{Scheme, When};
pub use run::{Path, RunResult};
pub use schedule::{Pace, Scan, Schedule};
pub use tune::{Crew, Settled, Wish};

use super::mixer::Mixer;
use super::replicates::{PilotPlace, Stage, Team, Turn, Watch, replicates};
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::lines::Layout;
use crate::engine::sheet::Sheet;
use crate::error::{Error, Result, Stop};
use crate::math::draw::open_unit;
use crate::simd::Isa;
use crate::warning::Warning;
use crate::{Purpose, Seed};
use frame::{Frame, Width};
use posterior::RunPosterior;
use run::{Hands, Run, Source};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use word::Word;

/// Settings of the particle engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Smc {
    /// Particles of each run.
    pub particles: usize,
    /// Independent runs.
    pub runs: u64,
    /// What each run does.
    pub path: Path,
    /// Instructions to use; all give the same bytes.
    #[serde(skip, default = "Isa::detect")]
    pub isa: Isa,
    /// Threads, over runs and over particles; any number gives the same bytes.
    pub threads: usize,
    /// Bytes that all particles together may take.
    pub max_memory: u64,
}

impl Default for Smc {
    /// The paper's algorithm: 1,000 particles, resampled when half of them are left, no moves.
    fn default() -> Self {
        Smc { particles: 1000, runs: 1, path: Path::default(), isa: Isa::detect(), threads: 1, max_memory: 4 << 30 }
    }
}

impl Smc {
    /// Makes a problem ready: what particles keep is decided, nothing is allocated yet.
    ///
    /// # Errors
    /// When the problem is too large for particles.
    pub fn prepare<'p, 'a>(&self, problem: &'p Problem<'a>) -> Result<Prepared<'p, 'a>> {
        self.prepare_for(problem, false)
    }

    fn prepare_for<'p, 'a>(&self, problem: &'p Problem<'a>, wants_states: bool) -> Result<Prepared<'p, 'a>> {
        let layout = problem.layout()?;
        // What is certain needs no particles.
        let is_certain = layout.records.len() == 0 && layout.unknown.is_none();
        let smc = Smc { particles: if is_certain { 1 } else { self.particles }, ..self.clone() };
        let frame = |max_memory: u64| Frame::new(layout, &self.path, smc.particles, wants_states, max_memory);
        // Runs at the same time share the memory; if it is not enough for that, they come one after another.
        let n_at_once = (self.threads as u64).min(self.runs).max(1);
        let (frame, is_one_by_one) = match frame(self.max_memory / n_at_once) {
            Err(_) if n_at_once > 1 => (frame(self.max_memory)?, true),
            frame => (frame?, false),
        };
        Ok(Prepared { team: Team { n_threads: smc.threads, is_one_by_one }, smc, problem, layout, frame })
    }

    /// The posterior of tables and hidden values.
    ///
    /// # Errors
    /// As [`Smc::ln_p_sequence`]; and an error for data that cannot occur or have unknown cells: they have no such posterior.
    pub fn posterior(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<SmcPosterior> {
        self.posterior_with_draws(problem, 0, seed, control)
    }

    /// The same, with some particles of all runs, picked by their weights.
    ///
    /// # Errors
    /// As for [`Smc::posterior`].
    pub fn posterior_with_draws(
        &self,
        problem: &Problem<'_>,
        n_draws: usize,
        seed: Seed,
        control: &mut Control<'_>,
    ) -> Result<SmcPosterior> {
        self.prepare_for(problem, true)?.posterior(n_draws, seed, control)
    }

    /// Estimates ln p(sequence) of the seen records.
    ///
    /// # Errors
    /// [`crate::Error::TooCostly`] with the figure when particles do not fit; [`crate::Error::Stopped`] when the run was stopped before
    /// anything was finished.
    pub fn ln_p_sequence(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<Estimate> {
        self.prepare(problem)?.ln_p_sequence(seed, control)
    }
}

/// Calls a method with the shortest integer that every number of the run fits in.
macro_rules! with_word {
    ($self:ident.$method:ident($($argument:expr),*)) => {
        match $self.frame.width {
            Width::Bits8 => $self.$method::<u8>($($argument),*),
            Width::Bits16 => $self.$method::<u16>($($argument),*),
            Width::Bits32 => $self.$method::<u32>($($argument),*),
        }
    };
}

/// Uniform numbers that pick draws: of a run its particles, of all runs one of them.
fn draw_uniforms(n_draws: usize, seed: Seed, replicate: u64) -> Vec<f64> {
    let mut rng = seed.stream(Purpose::Draws, replicate, 0, 0);
    (0..n_draws).map(|_| open_unit(&mut rng)).collect()
}

/// A problem made ready for particles.
#[derive(Debug)]
pub struct Prepared<'p, 'a> {
    smc: Smc,
    problem: &'p Problem<'a>,
    layout: &'p Layout,
    frame: Frame,
    team: Team,
}

impl Prepared<'_, '_> {
    /// Estimates ln p(sequence) of the seen records.
    ///
    /// # Errors
    /// [`crate::Error::Stopped`] when the run was stopped before anything was finished.
    pub fn ln_p_sequence(&self, seed: Seed, control: &mut Control<'_>) -> Result<Estimate> {
        let smc = &self.smc;
        let is_certain = self.layout.records.len() == 0;
        // What is certain need not be repeated.
        let n_runs = if is_certain { 1 } else { smc.runs };
        let fingerprint = self.fingerprint(seed);
        let done = replicates(n_runs, self.stage(fingerprint, seed), self.team, control, |turn, watch| {
            with_word!(self.one_run(seed, turn, watch))
        })?;
        let warnings = done.warnings(n_runs);
        let mut estimate = Estimate::combine(done.finished, smc.particles, is_certain);
        estimate.warnings.extend(warnings);
        Ok(estimate)
    }

    /// Runs with these numbers.
    fn pilot(&self, first: u64, place: PilotPlace, seed: Seed, control: &mut Control<'_>) -> Result<Vec<RunResult>> {
        let mut mix = Mixer(self.fingerprint(seed));
        mix.word(first);
        let stage = Stage { name: "smc, pilots", pilot: Some(place), ..self.stage(mix.0, seed) };
        let done = replicates(self.smc.runs, stage, self.team, control, |turn, watch| {
            let turn = Turn { replicate: first + turn.replicate, ..turn };
            with_word!(self.one_run(seed, turn, watch))
        })?;
        Ok(done.finished)
    }

    /// Seconds for one update of one token in all particles, from a run that is broken off after about `time`.
    fn probe(&self, replicate: u64, seed: Seed, time: Duration) -> f64 {
        with_word!(self.one_probe(replicate, seed, time))
    }

    fn one_probe<W: Word>(&self, replicate: u64, seed: Seed, time: Duration) -> f64 {
        let mut run = self.new_run::<W>(seed, Turn { replicate, n_threads: 1 });
        let start = Instant::now();
        let tick = |_| if start.elapsed() < time { Ok(()) } else { Err(Error::Stopped(Stop::Deadline)) };
        // Broken off or not, what was done took that time.
        let _ = run.go(&Watch::of(&tick));
        let seconds = start.elapsed().as_secs_f64();
        seconds * self.smc.particles as f64 / run.into_result().n_updates.max(1) as f64
    }

    fn posterior(&self, n_draws: usize, seed: Seed, control: &mut Control<'_>) -> Result<SmcPosterior> {
        if !self.problem.counts.unknown.is_empty() {
            return Err(Error::Setting(
                "the posterior of the tables needs a known total, but some cells are unknown (`?`); use score for the totals"
                    .into(),
            ));
        }
        let sheet = Sheet::new(self.problem, self.layout);
        let mut mix = Mixer(self.fingerprint(seed));
        mix.word(1);
        mix.word(n_draws as u64);
        let n_runs = if self.layout.records.len() == 0 { 1 } else { self.smc.runs };
        let done = replicates(n_runs, self.stage(mix.0, seed), self.team, control, |turn, watch| {
            with_word!(self.one_posterior(&sheet, n_draws, seed, turn, watch))
        })?;
        if done.finished.iter().all(|run| run.result.ln_p_sequence == f64::NEG_INFINITY) {
            return Err(Error::Setting(
                "the data cannot occur under this model and prior, so there is no posterior".into(),
            ));
        }
        let warnings = done.warnings(n_runs);
        let uniforms = draw_uniforms(n_draws, seed, u64::MAX);
        let mut posterior =
            SmcPosterior::combine(self.problem, self.layout, &sheet, done.finished, self.smc.particles, &uniforms)?;
        posterior.estimate.warnings.extend(warnings);
        Ok(posterior)
    }

    fn one_posterior<W: Word>(
        &self,
        sheet: &Sheet,
        n_draws: usize,
        seed: Seed,
        turn: Turn,
        watch: &Watch<'_>,
    ) -> Result<RunPosterior> {
        let mut run = self.new_run::<W>(seed, turn);
        run.go(watch)?;
        let uniforms = draw_uniforms(n_draws, seed, turn.replicate);
        Ok(run.posterior(self.problem, sheet, turn.replicate as usize, &uniforms))
    }

    /// With unknown cells: ln p(seen sequence, then m tokens in unknown cells) for m = 0, 1, .. from every run, as long as
    /// the run's own `wants_more` says so of its list so far. `range` tells jobs with different lists apart.
    ///
    /// # Errors
    /// [`crate::Error::Stopped`] when the run was stopped before anything was finished.
    pub fn unknown_totals<F: FnMut(&[f64]) -> bool>(
        &self,
        wants_more: impl Fn() -> F + Sync,
        range: u64,
        seed: Seed,
        control: &mut Control<'_>,
    ) -> Result<UnknownRuns> {
        let mut mix = Mixer(self.fingerprint(seed));
        mix.word(range);
        let stage = self.stage(mix.0, seed);
        let done = replicates(self.smc.runs, stage, self.team, control, |turn, watch| {
            with_word!(self.one_unknown_run(wants_more(), seed, turn, watch))
        })?;
        Ok(UnknownRuns { warnings: done.warnings(self.smc.runs), runs: done.finished })
    }

    fn one_unknown_run<W: Word>(
        &self,
        wants_more: impl FnMut(&[f64]) -> bool,
        seed: Seed,
        turn: Turn,
        watch: &Watch<'_>,
    ) -> Result<(RunResult, Vec<f64>)> {
        let mut run = self.new_run::<W>(seed, turn);
        run.go(watch)?;
        let logs = run.go_on(wants_more, &|share| watch.tick(share))?;
        Ok((run.into_result(), logs))
    }

    fn one_run<W: Word>(&self, seed: Seed, turn: Turn, watch: &Watch<'_>) -> Result<RunResult> {
        let mut run = self.new_run::<W>(seed, turn);
        run.go(watch)?;
        Ok(run.into_result())
    }

    fn new_run<W: Word>(&self, seed: Seed, turn: Turn) -> Run<'_, W> {
        let smc = &self.smc;
        let hands = Hands { n_particles: smc.particles, n_threads: turn.n_threads, isa: smc.isa };
        let source = Source { seed, replicate: turn.replicate };
        Run::<W>::new(self.problem.counts, self.layout, &self.frame, &smc.path, hands, source)
    }

    /// Tells runs of different problems or settings apart, so that a checkpoint is not taken up by another one.
    /// A stage of this job, whose pilots know nothing of its settings yet.
    fn stage(&self, fingerprint: u64, seed: Seed) -> Stage {
        Stage { name: "smc", job: self.layout.fingerprint("smc", seed), fingerprint, pilot: None }
    }

    fn fingerprint(&self, seed: Seed) -> u64 {
        self.layout.fingerprint(&format!("smc {} {:?}", self.smc.particles, self.smc.path), seed)
    }
}

/// Runs of a problem with unknown cells.
#[derive(Debug, Clone)]
pub struct UnknownRuns {
    /// Each run, and ln p(seen sequence, then m tokens in unknown cells) for every m.
    pub runs: Vec<(RunResult, Vec<f64>)>,
    /// What a user should know.
    pub warnings: Vec<Warning>,
}

#[cfg(test)]
mod geweke;

#[cfg(test)]
mod reference;
