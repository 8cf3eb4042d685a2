//! Scores all candidates, the doubtful ones with more work.

use super::field::{Candidate, Field};
use super::logbook::{Job, Logbook};
use crate::Seed;
use crate::control::{Cancel, Control};
use crate::engine::smc::Wish;
use crate::engine::sweeps::Climb;
use crate::error::{Error, Result, Stop};
use crate::graph::{Binding, Model};
use crate::parallel::map_watched;
use crate::prior::PriorSettings;
use crate::score::{Means, Method, Score, Scoring};
use crate::simd::Isa;
use crate::warning::Warning;
use std::time::{Duration, Instant};

/// What is to be done for all candidates.
#[derive(Debug, Clone)]
pub struct Contest {
    /// How to score, where the method is not `auto` or particles have settings of their own: then there is one round.
    pub scoring: Scoring,
    /// Threads.
    pub threads: usize,
    /// Of all random draws.
    pub seed: Seed,
    /// The size of the prior for each candidate, in place of its own.
    pub a: Option<Vec<f64>>,
    /// When to stop; without it nothing depends on the clock.
    pub deadline: Option<Instant>,
    /// Stops from outside.
    pub cancel: Cancel,
    /// Whether to put the bound of variational Bayes beside the evidence.
    pub wants_bounds: bool,
    /// Rounds of more work at most, where there is no deadline.
    pub most_rounds: u32,
}

/// What was found for one candidate.
#[derive(Debug, Clone)]
pub struct Scored {
    /// The model with its nodes.
    pub model: Model,
    /// Whether each node is seen.
    pub is_seen: Vec<bool>,
    /// The evidence.
    pub score: Score,
    /// The bound of variational Bayes, on the scale of the evidence.
    pub bound: Option<f64>,
    /// Time for all that was done for it.
    pub seconds: f64,
    /// How often it was scored.
    pub n_rounds: u32,
    /// Whether it has a quick estimate alone: good enough to be out of the running, and often too low.
    pub is_quick: bool,
}

/// Sweeps for a bound that stands beside the evidence.
const BOUND: Climb = Climb { restarts: 8, max_iter: 100, tol: 1e-5, isa: Isa::SCALAR, threads: 1 };
/// A model whose bound is so many nats below the best bound is left at that. Bounds are below the evidence by tens of nats at
/// most where models are close, and by more for larger models. Climbs may end far below the best bound, so the next sizes on
/// either side are scored too.
pub(super) const FAR_BELOW: f64 = 100.0;
/// With no more models than this that are not far below, quick scores are not worth their time.
const FEW: usize = 2;
/// The quick score: runs, planned seconds of each, moves of each token, pseudo-count of a cell to cool down from; an exact
/// answer if it takes no longer.
const QUICK_RUNS: u64 = 2;
const QUICK_SECONDS: f64 = 0.08;
const QUICK_REJUVENATION: u32 = 8;
const QUICK_START: f64 = 0.25;
const QUICK_PATIENCE: f64 = 0.5;
/// The first careful score: planned seconds of each run.
const CAREFUL_SECONDS: f64 = 0.2;
/// Tokens from which pilots would take longer than the runs that they are for: the start is then fixed, and runs are longer.
const MANY_TOKENS: u64 = 2000;
const START_OF_MANY: f64 = 2.0;
const SECONDS_OF_MANY: f64 = 0.4;
/// Tokens, counted once for each model that cannot be told apart, from which nobody waits for a second careful round unasked.
const TOO_MANY_TOKENS: u64 = 8000;
/// Patience for an exact answer where it is worth more.
const PATIENCE: f64 = 3.0;
/// A candidate so many nats below the best is out of it, whatever its error says. Quick scores are too low where there are
/// many tokens and components, but the bound that stands beside them counts as well.
pub(super) const OUT_OF_REACH: f64 = 25.0;
/// Tokens for which a quick score may be too low by a nat.
const TOKENS_PER_NAT: f64 = 50.0;
/// Two evidences differ if their distance exceeds so many standard errors.
pub(super) const ERRORS: f64 = 3.0;
/// An error below this does not matter to anybody.
const SMALL_ERROR: f64 = 0.1;
/// How far two ways to the same number may differ, relative to it.
const ROUNDING: f64 = 1e-9;
/// How many times as many runs each further round has.
const GROWTH: u64 = 2;
/// Runs of the first careful round.
const CAREFUL_RUNS: u64 = 4;
/// The round of the bounds.
const BOUNDS: u32 = 0;
/// Shares of the time that is left for bounds, for models that are far below, and for quick scores.
const BOUND_SHARE: f64 = 0.2;
const FAR_SHARE: f64 = 0.1;
const QUICK_SHARE: f64 = 0.35;

impl Contest {
    /// Scores every candidate; there is none where there was no time. What the logbook has is not done again.
    ///
    /// # Errors
    /// What is wrong with a model, and a stop from outside; the logbook is written down first.
    pub fn run(&self, field: &Field, logbook: &Logbook, control: &mut Control<'_>) -> Result<Vec<Option<Scored>>> {
        let found = self.stages(field, logbook, control);
        let is_cut = match &found {
            Ok(found) => found.iter().any(|found| found.as_ref().is_none_or(|found| !is_whole(&found.score.warnings))),
            Err(_) => true,
        };
        if is_cut {
            logbook.keep_now(control)?;
        }
        found
    }

    fn stages(&self, field: &Field, logbook: &Logbook, control: &mut Control<'_>) -> Result<Vec<Option<Scored>>> {
        let runner = Runner { contest: self, field, logbook };
        let everybody: Vec<usize> = (0..field.candidates().len()).collect();
        let mut found: Vec<Option<Scored>> = vec![None; everybody.len()];
        let is_staged = self.scoring.method == Method::Auto && !self.scoring.wants_particles;
        let mut bounds: Vec<Option<Score>> = vec![None; everybody.len()];
        let mut step = 0.0;
        let n_steps = if is_staged { 3.0 } else { 2.0 };
        let mut tick = |stage: &str, step: f64, done: f64| {
            logbook.keep(control)?;
            control.tick(stage, (step + done) / n_steps)
        };
        if is_staged || self.wants_bounds {
            bounds = runner.bounds(&everybody, &mut |done| tick("bounds", 0.0, done))?;
            step += 1.0;
        }
        if !is_staged {
            runner.round(&everybody, &self.scoring, 1, 1.0, &mut found, &mut |done| tick("scores", step, done))?;
            self.put_beside(&mut found, &bounds);
            take_bounds(&mut found, bounds);
            return Ok(found);
        }
        let best_bound = bounds.iter().flatten().map(|bound| bound.log_marginal).fold(f64::NEG_INFINITY, f64::max);
        let is_far = |ix: usize| bounds[ix].as_ref().is_some_and(|bound| bound.log_marginal < best_bound - FAR_BELOW);
        let is_beside = |ix: usize| everybody.iter().any(|&other| !is_far(other) && field.are_neighbours(ix, other));
        let (far, near): (Vec<usize>, Vec<usize>) = everybody.iter().partition(|&&ix| is_far(ix) && !is_beside(ix));
        // What is cheap comes first: no later round can then use up its time.
        let share = FAR_SHARE;
        runner.round(&far, &self.exact_if_cheap(), 1, share, &mut found, &mut |done| {
            tick("other scores", step, 0.2 * done)
        })?;
        for (found, bound) in found.iter_mut().zip(&bounds) {
            if let (Some(found), Some(bound)) = (found, bound)
                && found.score.bound() == "lower"
            {
                let below = best_bound - bound.log_marginal;
                let why = format!("its bound is {below:.0} nats below the best one, too far to matter");
                found.score = Score { why, ..bound.clone() };
            }
        }
        let n_tokens = field.dataset().counts.iter().fold(0u64, u64::saturating_add);
        let mut careful_round = 1;
        let mut doubtful = near.clone();
        if near.len() > FEW || self.most_rounds == 0 {
            let share = QUICK_SHARE;
            runner.round(&near, &self.quick(n_tokens >= MANY_TOKENS), 1, share, &mut found, &mut |done| {
                tick("quick scores", step, 0.2 + 0.8 * done)
            })?;
            self.put_beside(&mut found, &bounds);
            found.iter_mut().flatten().for_each(|found| found.is_quick = found.score.bound() == "estimate");
            doubtful = within_reach(&found, Some(n_tokens));
            careful_round = 2;
        }
        step += 1.0;
        let mut runs = CAREFUL_RUNS;
        for round in careful_round.. {
            let n_rounds = round - careful_round;
            let is_long = n_tokens.saturating_mul(doubtful.len() as u64) > TOO_MANY_TOKENS;
            let is_enough = self.deadline.is_none() && n_rounds > 0 && is_long;
            if doubtful.is_empty() || is_enough || self.is_over(n_rounds) {
                break;
            }
            let careful = self.careful(runs, doubtful.len(), n_rounds == 0, n_tokens >= MANY_TOKENS);
            // Each further round has half of what is left.
            let left = 0.5f64.powi(n_rounds as i32);
            let mut tick_round = |done: f64| tick("closer scores", step, 1.0 - left + 0.5 * left * done);
            runner.round(&doubtful, &careful, round, 1.0, &mut found, &mut tick_round)?;
            self.put_beside(&mut found, &bounds);
            doubtful = within_reach(&found, None);
            runs *= GROWTH;
        }
        self.put_beside(&mut found, &bounds);
        for ((found, bound), candidate) in found.iter_mut().zip(&bounds).zip(field.candidates()) {
            if let (None, Some(bound)) = (&found, bound) {
                let binding = field.bind(candidate)?;
                let score = Score { why: "there was no time for more than its bound".into(), ..bound.clone() };
                let is_seen = binding.counts.seen_anywhere();
                *found = Some(Scored {
                    model: binding.model,
                    is_seen,
                    bound: Some(score.log_marginal),
                    seconds: score.seconds,
                    score,
                    n_rounds: 0,
                    is_quick: false,
                });
            }
        }
        take_bounds(&mut found, bounds);
        Ok(found)
    }

    fn is_over(&self, n_rounds: u32) -> bool {
        match self.deadline {
            _ if self.cancel.is_over() => true,
            Some(deadline) => Instant::now() >= deadline,
            None => n_rounds >= self.most_rounds,
        }
    }

    fn quick(&self, are_many: bool) -> Scoring {
        let wish = Wish {
            runs: Some(QUICK_RUNS),
            seconds_per_run: Some(QUICK_SECONDS),
            rejuvenation: Some(QUICK_REJUVENATION),
            start_pseudo_count: Some(if are_many { START_OF_MANY } else { QUICK_START }),
            ..self.scoring.wish.clone()
        };
        Scoring { wish, patience: QUICK_PATIENCE, ..self.scoring.clone() }
    }

    fn careful(&self, runs: u64, n_contenders: usize, is_first: bool, are_many: bool) -> Scoring {
        let seconds_per_run = match (are_many, is_first) {
            (true, _) => Some(SECONDS_OF_MANY),
            (false, true) => Some(CAREFUL_SECONDS),
            (false, false) => None,
        };
        let start_pseudo_count = are_many.then_some(START_OF_MANY);
        let wish = Wish { runs: Some(runs), seconds_per_run, start_pseudo_count, ..self.scoring.wish.clone() };
        Scoring { wish, patience: PATIENCE / n_contenders as f64, ..self.scoring.clone() }
    }

    /// An exact score where that is cheap; else a bound that nobody waits for, since there is a better one already.
    fn exact_if_cheap(&self) -> Scoring {
        let climb = Climb { restarts: 1, max_iter: 1, ..BOUND };
        Scoring { takes_bound: true, climb, patience: QUICK_PATIENCE, ..self.scoring.clone() }
    }

    fn bound(&self) -> Scoring {
        let climb = Climb { isa: self.scoring.isa, ..BOUND };
        Scoring { method: Method::Vb, climb, maximise: Vec::new(), given: Vec::new(), ..self.scoring.clone() }
    }

    /// Puts the bounds where they belong, and says where an estimate lies below its own.
    fn put_beside(&self, found: &mut [Option<Scored>], bounds: &[Option<Score>]) {
        for (found, bound) in found.iter_mut().zip(bounds) {
            let (Some(found), Some(bound)) = (found, bound.as_ref().map(|bound| bound.log_marginal)) else { continue };
            found.bound = Some(bound);
            let is_below = found.is_below_bound();
            let score = &mut found.score;
            let is_new = !score.warnings.iter().any(|warning| matches!(warning, Warning::BelowBound { .. }));
            if is_below && is_new {
                score.warnings.push(Warning::BelowBound { bound: format!("{bound:.2}") });
            }
        }
    }
}

/// Replaces estimates that lie below their own lower bound by that: they say less.
fn take_bounds(found: &mut [Option<Scored>], bounds: Vec<Option<Score>>) {
    for (found, bound) in found.iter_mut().zip(bounds) {
        let (Some(found), Some(bound)) = (found, bound) else { continue };
        if found.is_below_bound() {
            let Score { log_marginal, method, warnings, particles, .. } = found.score.clone();
            let why = format!("its estimate by {method}, {log_marginal:.1}, is below this bound");
            found.score = Score { why, warnings, particles, ..bound };
            found.is_quick = false;
        }
    }
}

/// Who has to be scored again: after the quick scores everyone within reach of the best, later those that the errors do not
/// tell from it, and the best itself. An estimate that lies below its own bound counts as much as the bound. After the quick
/// scores the number of tokens is given: the more there are, the further quick scores are too low.
fn within_reach(found: &[Option<Scored>], after_quick: Option<u64>) -> Vec<usize> {
    let height = |found: &Scored| found.at_least();
    let scored: Vec<(usize, &Scored)> =
        found.iter().enumerate().filter_map(|(ix, found)| Some((ix, found.as_ref()?))).collect();
    let Some(&(best, top)) = scored.iter().max_by(|(_, a), (_, b)| height(a).total_cmp(&height(b))) else {
        return Vec::new();
    };
    let is_near = |other: &Scored| {
        let apart = height(top) - height(other);
        let joint = top.error().hypot(other.error());
        if let Some(n_tokens) = after_quick {
            let reach = if other.is_below_bound() { FAR_BELOW } else { (ERRORS * joint).min(FAR_BELOW) };
            let too_low = (n_tokens as f64 / TOKENS_PER_NAT).min(FAR_BELOW);
            apart <= reach.max(OUT_OF_REACH).max(too_low)
        } else {
            joint > SMALL_ERROR && apart <= (ERRORS * joint).min(FAR_BELOW)
        }
    };
    let mut all: Vec<usize> =
        scored.iter().filter(|(ix, other)| *ix != best && is_near(other)).map(|(ix, _)| *ix).collect();
    // Later the best only where its own error matters.
    let largest = all.iter().filter_map(|&ix| found[ix].as_ref()).map(Scored::error).fold(0.0, f64::max);
    if after_quick.is_some() || (!all.is_empty() && top.error() >= 0.5 * largest) {
        all.push(best);
    }
    all.retain(|&ix| found[ix].as_ref().is_some_and(|found| !found.score.is_exact()));
    all.sort_unstable();
    all
}

/// Whether no time limit cut it short.
fn is_whole(warnings: &[Warning]) -> bool {
    !warnings.iter().any(|warning| matches!(warning, Warning::TimeUp { .. } | Warning::FewMoves { .. }))
}

impl Scored {
    /// Whether it is an estimate that lies below its own lower bound: too low, whatever its error says.
    pub fn is_below_bound(&self) -> bool {
        // A closed form is its own bound but for rounding, and that of a bound.
        let is_less = |bound: f64| self.score.log_marginal < bound - ROUNDING * (1.0 + bound.abs());
        self.score.bound() == "estimate" && self.score.std_error != Some(0.0) && self.bound.is_some_and(is_less)
    }

    /// Whether no more than a lower bound is known of the evidence.
    pub fn is_bound_only(&self) -> bool {
        self.score.bound() == "lower" || self.is_below_bound()
    }

    /// Whether its runs agree so little that its error is a rough one.
    pub fn is_rough(&self) -> bool {
        let is_rough =
            |warning: &Warning| matches!(warning, Warning::RunsDisagree { .. } | Warning::DominantRun { .. });
        self.score.warnings.iter().any(is_rough)
    }

    /// What the evidence is, or is at least.
    pub fn at_least(&self) -> f64 {
        let is_below = self.is_below_bound();
        self.bound.filter(|_| is_below).unwrap_or(self.score.log_marginal)
    }

    /// Its standard error, as far as it has one: zero for exact numbers, infinite where nothing is known.
    pub fn error(&self) -> f64 {
        match self.score.bound() {
            "exact" => 0.0,
            _ if self.is_bound_only() => f64::INFINITY,
            _ => self.score.std_error.unwrap_or(f64::INFINITY),
        }
    }
}

struct Runner<'a> {
    contest: &'a Contest,
    field: &'a Field,
    logbook: &'a Logbook,
}

impl Runner<'_> {
    /// Scores some candidates. What is found replaces what was found before; where there is no time, that stays.
    fn round(
        &self,
        who: &[usize],
        scoring: &Scoring,
        round: u32,
        share: f64,
        found: &mut [Option<Scored>],
        tick: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<()> {
        // Few candidates share the threads within their runs, many are shared out over them, and so are those that leave
        // no thread idle at the end.
        let n_threads = self.contest.threads;
        let is_shared_out = who.len() >= 4 * n_threads || who.len().is_multiple_of(n_threads);
        let at_once = if is_shared_out { n_threads } else { 1 };
        let threads = self.contest.threads / at_once;
        let time = self.time(share, who.len().div_ceil(at_once));
        let seed = Seed(self.contest.seed.0.wrapping_add(u64::from(round - 1).wrapping_mul(0x9E37_79B9)));
        let means = Means { threads, time, seed };
        let scored = self.for_all(who, at_once, round, tick, |candidate, job, control| {
            let binding = self.field.bind(candidate)?;
            let score = self.found_or_scored(job, scoring, &binding, means, control)?;
            let is_seen = binding.counts.seen_anywhere();
            Ok(Scored {
                seconds: score.seconds,
                model: binding.model,
                is_seen,
                score,
                bound: None,
                n_rounds: round,
                is_quick: false,
            })
        })?;
        for (&ix, new) in who.iter().zip(scored) {
            let Some(mut new) = new else { continue };
            if let Some(before) = &mut found[ix] {
                // One that the time limit cut short is no better than one that it left alone.
                if is_whole(&before.score.warnings) && !is_whole(&new.score.warnings) {
                    before.seconds += new.seconds;
                    continue;
                }
                new.seconds += before.seconds;
            }
            found[ix] = Some(new);
        }
        Ok(())
    }

    /// The bounds of some candidates.
    fn bounds(&self, who: &[usize], tick: &mut dyn FnMut(f64) -> Result<()>) -> Result<Vec<Option<Score>>> {
        let at_once = self.contest.threads;
        let time = self.time(BOUND_SHARE, who.len().div_ceil(at_once));
        let (scoring, means) = (self.contest.bound(), Means { threads: 1, time, seed: self.contest.seed });
        self.for_all(who, at_once, BOUNDS, tick, |candidate, job, control| {
            let binding = self.field.bind(candidate)?;
            let end = time.map(|time| Instant::now() + time);
            control.until(end, |control| self.found_or_scored(job, &scoring, &binding, means, control))
        })
    }

    /// What the logbook has, or a new score, which it gets if no time limit cut it short.
    fn found_or_scored(
        &self,
        job: Job,
        scoring: &Scoring,
        binding: &Binding,
        means: Means,
        control: &mut Control<'_>,
    ) -> Result<Score> {
        if let Some(score) = self.logbook.find(job) {
            return Ok(score);
        }
        let score = scoring.score(binding, &self.prior(job.candidate as usize), means, control)?;
        if is_whole(&score.warnings) {
            self.logbook.enter(job, &score);
        }
        Ok(score)
    }

    /// The prior of a candidate in this contest.
    fn prior(&self, ix: usize) -> PriorSettings {
        let settings = self.field.settings(&self.field.candidates()[ix]);
        let own = self.contest.a.as_ref().map(|all| all[ix]);
        PriorSettings { a: own.or(settings.a), ..settings.clone() }
    }

    /// Time for one candidate, if so many take turns in a share of what is left.
    fn time(&self, share: f64, n_turns: usize) -> Option<Duration> {
        let left = self.contest.deadline?.saturating_duration_since(Instant::now());
        Some(left.mul_f64(share / n_turns.max(1) as f64))
    }

    /// Does something for some candidates on several threads; `None` where the time was up.
    fn for_all<R: Send>(
        &self,
        who: &[usize],
        at_once: usize,
        round: u32,
        tick: &mut dyn FnMut(f64) -> Result<()>,
        f: impl Fn(&Candidate, Job, &mut Control<'_>) -> Result<R> + Sync,
    ) -> Result<Vec<Option<R>>> {
        let mut stop = Ok(());
        let do_one = |&ix: &usize| {
            let a = self.contest.a.as_ref().map(|all| all[ix].to_bits());
            let job = Job { a, most_rounds: self.contest.most_rounds, round, candidate: ix as u32 };
            let mut control = Control::new(self.logbook.clerk(job))
                .with_cancel(self.contest.cancel.clone())
                .with_deadline(self.contest.deadline);
            // Too late to begin: nothing is made ready in vain.
            control.tick("score", 0.0)?;
            f(&self.field.candidates()[ix], job, &mut control)
        };
        let found = map_watched(who, at_once, do_one, |done| {
            if stop.is_ok() {
                stop = tick(done as f64 / who.len() as f64);
            }
        });
        match stop {
            // The jobs stop by themselves, and have kept what they have.
            Ok(()) | Err(Error::Stopped(Stop::Deadline)) => {}
            Err(error) => return Err(error),
        }
        found
            .into_iter()
            .map(|found| match found {
                Ok(found) => Ok(Some(found)),
                Err(Error::Stopped(Stop::Deadline)) => Ok(None),
                Err(error) => Err(error),
            })
            .collect()
    }
}
