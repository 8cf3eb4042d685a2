//! The evidence of a stream while it comes in, in constant time for each token.
//!
//! Particles follow the stream as in any run: a token is weighed, particles are resampled when few of them are effective, its
//! hidden values are drawn, and then R earlier tokens are drawn again. Here these are taken from a window of the latest ones,
//! round and round, so neither the work for a token nor the hidden values that are remembered grow with the stream. What
//! particles hold beside them are counts, as many as there are different seen values.
//!
//! The estimate stays unbiased at every moment: a Gibbs update of any token leaves the distribution as it is, and which
//! tokens are updated depends on their number alone (theory.md, section 14.6).
//!
//! - `rota`: whose turn it is; `course`: what all runs share; `run`: particles of one run;
//! - `rebuild`: the same particles when records of another pattern come; `resume`: states to be saved.

mod course;
mod rebuild;
mod resume;
mod rota;
mod run;

use super::estimate::Estimate;
use super::threads::awake;
use super::{Scheme, When, Wish};
use crate::Seed;
use crate::engine::lines::MAX_STREAM;
use crate::engine::replicates::pool;
use crate::error::{Error, Result};
use crate::graph::Model;
use crate::math::Double;
use crate::prior::Prior;
use crate::simd::Isa;
use course::Course;
use rayon::prelude::*;
use rebuild::add_pattern;
use rota::Rota;
use run::{Run, Way};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long tokens are worked on before anybody is asked whether to go on, about.
const PATIENCE: Duration = Duration::from_millis(100);
/// Tokens that are worked on together, at most and before their speed is known.
const MOST_AT_ONCE: usize = 4096;
const FIRST_AT_ONCE: usize = 16;

/// Settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Online {
    /// Particles of each run.
    pub particles: usize,
    /// Independent runs; their scatter gives the error.
    pub runs: u64,
    /// Gibbs updates of earlier tokens after each new one.
    pub rejuvenation: u32,
    /// The latest tokens with hidden values, among which these are.
    pub window: u64,
    /// When to resample.
    pub when: When,
    /// How to resample.
    pub scheme: Scheme,
    /// Instructions to use; all give the same bytes.
    pub isa: Isa,
    /// Threads, over runs; any number gives the same bytes.
    pub threads: usize,
    /// Memory for particles, in bytes.
    pub max_memory: u64,
}

impl Default for Online {
    fn default() -> Self {
        Online {
            particles: 100,
            runs: 4,
            rejuvenation: 20,
            window: 10_000,
            when: When::EssBelow(0.5),
            scheme: Scheme::Systematic,
            isa: Isa::detect(),
            threads: 1,
            max_memory: 4 << 30,
        }
    }
}

impl Online {
    /// What a user asked for, and defaults for the rest.
    pub fn of_wish(wish: &Wish, window: Option<u64>) -> Self {
        let default = Online::default();
        Online {
            particles: wish.particles.unwrap_or(default.particles),
            runs: wish.runs.unwrap_or(default.runs),
            rejuvenation: wish.rejuvenation.unwrap_or(default.rejuvenation),
            window: window.unwrap_or(default.window),
            when: wish.when.unwrap_or(default.when),
            scheme: wish.scheme,
            ..default
        }
    }

    /// Ready for the first token. The follower has its own copy of the model and the prior, so that it can be kept for as long as
    /// the stream goes on.
    ///
    /// # Errors
    /// Settings without particles or runs; priors with rows that cannot be reached.
    pub fn begin(&self, model: &Model, prior: &Prior, seed: Seed) -> Result<Follower> {
        if self.particles == 0 || self.runs == 0 || self.window == 0 {
            return Err(Error::Setting(
                "a stream needs at least one particle, one run and a window of one token".into(),
            ));
        }
        let course = Course::new(Arc::new(model.clone()), Arc::new(prior.clone()), Vec::new(), Rota::new(self.window))?;
        let is_shared = self.threads as u64 > self.runs;
        let way = Way {
            n_particles: self.particles,
            rejuvenation: self.rejuvenation,
            when: self.when,
            scheme: self.scheme,
            isa: self.isa,
            n_threads: if is_shared { self.threads } else { 1 },
            seed,
        };
        let runs = (0..self.runs).map(|replicate| Run::new(&course.layout, &way, replicate)).collect();
        let pool = (self.threads > 1).then(|| pool(self.threads)).transpose()?;
        Ok(Follower { settings: self.clone(), way, course, runs, pool, n_at_once: FIRST_AT_ONCE })
    }
}

/// Particles that follow a stream.
#[derive(Debug)]
pub struct Follower {
    settings: Online,
    way: Way,
    course: Course,
    runs: Vec<Run>,
    pool: Option<rayon::ThreadPool>,
    /// Tokens that are worked on before anybody is asked whether to go on; a matter of time alone.
    n_at_once: usize,
}

impl Follower {
    /// Tokens so far.
    pub fn n_tokens(&self) -> u64 {
        self.course.n_tokens
    }

    /// Takes tokens, each the values of all nodes, [`crate::counts::MISSING`] where unseen. `taken` is told of each in order,
    /// and `go_on` is asked now and then; when it says to stop, all that was told of is taken.
    ///
    /// How tokens are split over calls does not matter.
    ///
    /// # Errors
    /// What `go_on` says; more tokens or more memory than there is room for.
    pub fn take<'r>(
        &mut self,
        tokens: impl Iterator<Item = &'r [u32]>,
        mut taken: impl FnMut(&[u32]),
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let mut n_waiting = 0;
        for record in tokens {
            if self.course.n_tokens >= MAX_STREAM {
                return Err(Error::TooCostly(format!(
                    "a stream can have {MAX_STREAM} tokens at most; begin a new one"
                )));
            }
            let pattern = match self.course.pattern_of(record) {
                Some(pattern) => pattern,
                None => self.add_pattern(record)?,
            };
            self.course.arrive(pattern, record);
            taken(record);
            n_waiting += 1;
            if n_waiting >= self.n_at_once {
                n_waiting = 0;
                self.follow()?;
                go_on()?;
            }
        }
        self.follow()
    }

    fn add_pattern(&mut self, record: &[u32]) -> Result<usize> {
        self.follow()?;
        let is_seen = |node: &u32| record[*node as usize] != crate::counts::MISSING;
        let seen = (0..record.len() as u32).filter(is_seen).collect();
        add_pattern(&mut self.course, &mut self.runs, &self.way, seen)?;
        Ok(self.course.seen_sets.len() - 1)
    }

    /// Lets all runs take the tokens that have come.
    fn follow(&mut self) -> Result<()> {
        let n = self.course.arrivals.len();
        if n == 0 {
            return Ok(());
        }
        let slots: usize = self.runs.iter().map(|run| run.lanes.shards.len() * run.lanes.lanes).sum();
        let bytes = self.course.n_lines() as f64 * slots as f64 * size_of::<u32>() as f64;
        if bytes > self.settings.max_memory as f64 || self.course.n_lines() > u64::from(u32::MAX) {
            return Err(Error::TooCostly(format!(
                "after {} tokens the counts of all particles need {:.1} GB, more than the {:.1} GB allowed; use fewer \
                 particles or runs, or raise --max-memory",
                self.course.n_tokens,
                bytes / 1e9,
                self.settings.max_memory as f64 / 1e9
            )));
        }
        let start = Instant::now();
        let (course, way) = (&self.course, &self.way);
        let one = |run: &mut Run| {
            if run.lanes.is_parallel { awake(|| run.follow(course, way)) } else { run.follow(course, way) }
        };
        let rotas: Vec<Rota> = match &self.pool {
            Some(pool) if way.n_threads > 1 => pool.install(|| self.runs.iter_mut().map(one).collect()),
            Some(pool) => pool.install(|| self.runs.par_iter_mut().map(one).collect()),
            None => self.runs.iter_mut().map(one).collect(),
        };
        self.course.settle(rotas[0]);
        let at_this_pace = n as f64 * PATIENCE.as_secs_f64() / start.elapsed().as_secs_f64().max(1e-9);
        self.n_at_once = (at_this_pace as usize).clamp(1, MOST_AT_ONCE);
        Ok(())
    }

    /// What is known of ln p(sequence) now.
    pub fn estimate(&self) -> Estimate {
        let closed_form = self.course.closed_form.ln().value();
        let runs = self.runs.iter().map(|run| run.result(closed_form)).collect();
        Estimate::combine(runs, self.way.n_particles, !self.is_random())
    }

    /// ln of what is the same in all particles, with 32 digits: ln p(sequence) itself as long as nothing is hidden.
    pub fn closed_form(&self) -> Double {
        self.course.closed_form.ln()
    }

    /// Whether anything had to be drawn so far.
    pub fn is_random(&self) -> bool {
        self.course.rota.n_tokens() > 0
    }

    /// The smallest effective sample size of any run since this was last asked.
    pub fn ess_lately(&mut self) -> f64 {
        let n_particles = self.way.n_particles as f64;
        let all = self.runs.iter_mut().map(|run| std::mem::replace(&mut run.ess_lately, n_particles));
        all.fold(f64::INFINITY, f64::min)
    }

    /// Bytes of the numbers of all particles.
    pub fn n_bytes(&self) -> u64 {
        let of_run = |run: &Run| run.lanes.shards.iter().map(|shard| size_of_val(&shard.lines[..]) as u64).sum::<u64>();
        self.runs.iter().map(of_run).sum()
    }
}
