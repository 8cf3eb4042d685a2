//! How large runs are: what was asked for, and the rest from the problem and the time.

use super::Anneal;
use super::labels::can_be_listed;
use super::path::AnnealPath;
use super::truth::Truth;
use super::walker::{Setup, Walker};
use crate::Purpose;
use crate::Seed;
use crate::engine::Problem;
use crate::engine::gibbs::Tokens;
use crate::engine::lines::{Kernel, Layout};
use crate::engine::replicates::pool;
use crate::engine::smc::Crew;
use crate::engine::symmetry::{has_too_many_labels, label_classes};
use crate::error::{Error, Result};
use rayon::prelude::*;
use std::time::{Duration, Instant};

/// Steps of a path, without a time limit.
pub const SWEEPS: u64 = 1000;

/// Sweeps of a pilot in proportion to those of a run.
const PILOT_SHARE: f64 = 0.6;

/// Sweeps of a pilot, at least.
const LEAST_PILOT_SWEEPS: u64 = 200;

/// Updates of tokens that all particles of a run make in a sweep, about; and particles at most.
const UPDATES_A_STEP: u64 = 20_000;
const MOST_PARTICLES: u64 = 64;

/// Runs, and those of so few tokens that more cost nothing, at least and at most: where modes are sharp, single runs miss some.
const RUNS: u64 = 4;
const FEW_TOKENS: u64 = 500;
const RUNS_OF_FEW: (u64, u64) = (16, 64);

/// Tokens beyond which there is one run each way, unless more are asked for, and so many pilots at least and at most: those for which there is
/// time if each has enough sweeps. Beyond that, more chains find better modes than longer ones.
const MANY_TOKENS: u64 = 20_000;
const PILOTS_OF_MANY: (u64, u64) = (4, 16);
const ENOUGH_SWEEPS: f64 = 2000.0;

/// With fewer tokens, pilots for each particle of a run, and for each run at least and at most: they are cheap beside the
/// particles, and one that misses the best mode spoils its run.
const PILOTS_A_PARTICLE: f64 = 0.4;
const PILOTS_A_RUN: (f64, f64) = (2.0, 6.0);

/// Share of a time limit that is planned for, and that of the pilots.
const SHARE_OF_LIMIT: f64 = 0.9;
const PILOT_TIME: f64 = 0.4;

/// A sweep with powers and a reference takes so many times as long as one without.
const SLOWER: f64 = 1.15;

/// Share of a time limit that measuring may take, and seconds at least and at most.
const PROBE_SHARE: f64 = 0.02;
const PROBE_SECONDS: (f64, f64) = (0.003, 0.3);

/// Seconds for one state of one token, and for the token beside that, measured on one machine; for forecasts only.
const SECONDS_PER_STATE: f64 = 1.2e-9;
const SECONDS_PER_TOKEN: f64 = 4e-8;

/// The same where the model has several hidden nodes, for each factor of a state.
const SECONDS_PER_FACTOR: f64 = 1.5e-8;

/// What is asked for; the rest is chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnnealWish {
    /// Particles of a run.
    pub particles: Option<usize>,
    /// Runs each way.
    pub runs: Option<u64>,
    /// Where the path begins.
    pub path: Option<AnnealPath>,
    /// Steps of the path.
    pub sweeps: Option<u64>,
    /// Chains that go ahead.
    pub pilots: Option<u64>,
    /// Sweeps of each of them.
    pub pilot_sweeps: Option<u64>,
    /// Whether runs go back, too.
    pub is_bracket: bool,
    /// Hidden values that the data were simulated with.
    pub truth: Option<Truth>,
    /// Whether it is but a first look, whose error is the bare scatter of its runs.
    pub is_first_look: bool,
}

impl AnnealWish {
    /// Settings for a problem, a crew and a time.
    ///
    /// # Errors
    /// When the problem is too large.
    pub fn settle(&self, problem: &Problem<'_>, crew: Crew, time: Option<Duration>, seed: Seed) -> Result<Anneal> {
        let layout = problem.layout()?;
        let n_tokens: u64 = layout.records.count.iter().sum();
        let threads = crew.threads.max(1) as u64;
        let unasked = || match n_tokens {
            n if n <= FEW_TOKENS => (FEW_TOKENS * RUNS_OF_FEW.0 / n.max(1)).clamp(RUNS_OF_FEW.0, RUNS_OF_FEW.1),
            n if n <= MANY_TOKENS => RUNS,
            _ if self.is_bracket => 1,
            _ => 2,
        };
        let runs = self.runs.unwrap_or_else(unasked);
        let particles = self.particles.unwrap_or((UPDATES_A_STEP / n_tokens.max(1)).clamp(1, MOST_PARTICLES) as usize);
        let a_run = (PILOTS_A_PARTICLE * particles as f64).clamp(PILOTS_A_RUN.0, PILOTS_A_RUN.1) as u64;
        let pilots = self.pilots.unwrap_or(if n_tokens > MANY_TOKENS { PILOTS_OF_MANY.0 } else { runs * a_run });
        let mut anneal = Anneal {
            path: self.path.unwrap_or_else(|| path_for(problem, n_tokens)),
            particles,
            runs,
            sweeps: self.sweeps.unwrap_or(SWEEPS),
            pilots,
            pilot_sweeps: 0,
            is_bracket: self.is_bracket,
            truth: self.truth.clone(),
            is_first_look: self.is_first_look,
            isa: crew.isa,
            threads: crew.threads,
            ..Anneal::default()
        };
        let in_proportion = ((PILOT_SHARE * anneal.sweeps as f64) as u64).max(LEAST_PILOT_SWEEPS);
        anneal.pilot_sweeps = self.pilot_sweeps.unwrap_or(in_proportion);
        let bytes = anneal.bytes(layout);
        if bytes > crew.max_memory as f64 {
            return Err(Error::TooCostly(format!(
                "annealing would take {:.1} GB; allow more with --max-memory, or give fewer --particles",
                bytes / 1e9
            )));
        }
        if let (Some(time), None, true) = (time, self.sweeps, n_tokens > 0) {
            let start = Instant::now();
            anneal.end = Some(start + time.mul_f64(SHARE_OF_LIMIT));
            if self.pilot_sweeps.is_none() {
                let per_sweep = seconds_per_sweep(problem, crew, seed, time)?;
                // Of each thread.
                let n_sweeps = PILOT_TIME * time.as_secs_f64() / per_sweep;
                if n_tokens > MANY_TOKENS && self.pilots.is_none() {
                    let affordable = (n_sweeps / ENOUGH_SWEEPS) as u64 * threads;
                    anneal.pilots = affordable.clamp(PILOTS_OF_MANY.0, PILOTS_OF_MANY.1);
                }
                let in_turn = anneal.pilots.div_ceil(threads) as f64;
                anneal.pilot_sweeps = ((n_sweeps / in_turn) as u64).max(LEAST_SWEEPS);
            }
        }
        Ok(anneal)
    }
}

/// A reference sits in one labelling. Where the sum over labellings is out of reach, and so few tokens do not keep labels apart, the path
/// begins at the prior, which has all of them.
fn path_for(problem: &Problem<'_>, n_tokens: u64) -> AnnealPath {
    let has_one_hidden_node = problem.layout().is_ok_and(|layout| layout.hidden_size.is_some());
    let classes = label_classes(problem.model, problem.prior, problem.counts);
    let is_assumed = !has_one_hidden_node && !can_be_listed(&classes);
    if has_too_many_labels(problem) || is_assumed && n_tokens <= FEW_FOR_LABELS {
        AnnealPath::Prior
    } else {
        AnnealPath::Reference
    }
}

/// Tokens up to which labels are not taken to be far apart.
const FEW_FOR_LABELS: u64 = 1000;

/// Steps of a path at the least.
const LEAST_SWEEPS: u64 = 10;

/// And at the most: all of them are held.
pub(super) const MOST_SWEEPS: u64 = 10_000_000;

impl Anneal {
    /// Steps of the path for which there is time, if a sweep takes so many seconds.
    pub(super) fn affordable(&self, seconds_per_sweep: f64) -> u64 {
        let Some(end) = self.end else { return self.sweeps };
        let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
        let n_left = left / (SLOWER * seconds_per_sweep.max(1e-9));
        let at_once = |n: u64| n.div_ceil(self.threads.max(1) as u64) as f64;
        let n_ways = if self.is_bracket { 2 } else { 1 };
        let particles = self.particles.max(1) as f64;
        // What does not grow with the steps: draws for the runs back, and the short runs.
        let of_draws = self.apart() as f64;
        let fixed = at_once(2) * (self.pace_steps() as f64 + of_draws) + at_once(n_ways * self.runs) * of_draws;
        let per_step = at_once(n_ways * self.runs);
        (((n_left / particles - fixed) / per_step).max(0.0) as u64).clamp(LEAST_SWEEPS, MOST_SWEEPS)
    }

    /// Rough seconds that the job takes.
    ///
    /// # Errors
    /// When the problem is too large.
    pub fn foreseen_seconds(&self, problem: &Problem<'_>) -> Result<f64> {
        let per_sweep = foreseen_sweep(problem)?;
        let n_ways = if self.is_bracket { 2 } else { 1 };
        let at_once = |n: u64| n.div_ceil(self.threads.max(1) as u64) as f64;
        let of_runs = at_once(n_ways * self.runs) * (self.sweeps * self.particles as u64) as f64;
        Ok(per_sweep * (at_once(self.pilots) * self.pilot_sweeps as f64 + of_runs))
    }

    /// Bytes of all walkers that are under way at once, and of the reference.
    fn bytes(&self, layout: &Layout) -> f64 {
        let n_tokens: u64 = layout.records.count.iter().sum();
        let lines: f64 = layout.blocks.iter().map(|block| layout.interior(block.class as usize) as f64 + 8.0).sum();
        let n_states: f64 = (0..layout.records.len()).map(|record| layout.kernel_of(record).n_states() as f64).sum();
        // Counts, their powers, and states twice.
        let walker = 12.0 * lines + 12.0 * n_tokens as f64;
        self.particles as f64 * walker * self.threads.max(1) as f64 + 9.0 * n_states
    }
}

/// Seconds for a sweep of one walker, from a few that every thread makes: they share the memory, and the machine with others.
fn seconds_per_sweep(problem: &Problem<'_>, crew: Crew, seed: Seed, limit: Duration) -> Result<f64> {
    let layout = problem.layout()?;
    let tokens = Tokens::new(layout)?;
    let setup = Setup::new(&tokens, vec![true; layout.counted.len()], crew.isa);
    let time = (PROBE_SHARE * limit.as_secs_f64()).clamp(PROBE_SECONDS.0, PROBE_SECONDS.1);
    let probe = |thread: usize| -> Result<f64> {
        let mut rng = seed.stream(Purpose::Pilot, u64::MAX - thread as u64, 0, 0);
        let mut walker = Walker::by_urn(&setup, &mut rng, &|| Ok(()))?;
        // Half way the powers have to be looked up; one sweep brings everything into the cache.
        let heat = setup.at(0.5, None);
        walker.sweep(&setup, &heat, None, None, &mut rng, &|| Ok(()))?;
        let start = Instant::now();
        let mut n_sweeps = 0;
        while n_sweeps < 3 || start.elapsed().as_secs_f64() < time {
            let heat = setup.at(0.5, None);
            walker.sweep(&setup, &heat, None, None, &mut rng, &|| Ok(()))?;
            std::hint::black_box(walker.ln_ratio(&setup, None));
            n_sweeps += 1;
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(n_sweeps))
    };
    let n_threads = crew.threads.max(1);
    let all = map_threads(n_threads, probe)?;
    // The reference is one more number to look up.
    Ok(1.15 * all.iter().sum::<f64>() / n_threads as f64)
}

/// What every thread found.
fn map_threads(n_threads: usize, f: impl Fn(usize) -> Result<f64> + Sync) -> Result<Vec<f64>> {
    pool(n_threads)?.install(|| (0..n_threads).into_par_iter().map(&f).collect())
}

/// Seconds for a sweep of one walker, from the problem alone.
///
/// # Errors
/// When the problem is too large.
pub fn foreseen_sweep(problem: &Problem<'_>) -> Result<f64> {
    let layout = problem.layout()?;
    let of_record = |record: usize| {
        let kernel: &Kernel = layout.kernel_of(record);
        let per_token = match layout.hidden_size {
            Some(size) => SECONDS_PER_TOKEN + SECONDS_PER_STATE * size as f64,
            None => SECONDS_PER_TOKEN + SECONDS_PER_FACTOR * kernel.cost(),
        };
        layout.records.count[record] as f64 * per_token
    };
    Ok((0..layout.records.len()).map(of_record).sum())
}
