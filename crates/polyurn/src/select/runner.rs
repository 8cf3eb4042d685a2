//! Does one pass over some candidates, on several threads and within the time that there is.

use super::contest::{BOUND_SHARE, Contest};
use super::field::{Candidate, Field};
use super::logbook::{Done, Job, Logbook};
use super::scored::{Scored, is_whole};
use crate::Seed;
use crate::control::Control;
use crate::error::{Error, Result, Stop};
use crate::graph::Binding;
use crate::parallel::map_watched;
use crate::prior::PriorSettings;
use crate::score::{Means, Method, Score, Scoring, seconds_per_sweep};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The round of the bounds in the logbook, and that of exact scores where they are cheap.
const BOUNDS: u32 = 0;
const CHEAP: u32 = u32::MAX;

/// Which pass over candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Exact scores where they are cheap.
    Cheap,
    /// Scores, from 1.
    Number(u32),
}

/// What all passes need.
pub(super) struct Runner<'a> {
    pub contest: &'a Contest,
    pub field: &'a Field,
    pub logbook: &'a Logbook,
    /// Candidates that no engine can hold, and why.
    pub out_of_reach: Mutex<BTreeMap<usize, String>>,
}

impl Runner<'_> {
    /// Scores some candidates. What is found replaces what was found before; where there is no time, that stays.
    pub fn pass(
        &self,
        who: &[usize],
        scoring: &Scoring,
        pass: Pass,
        share: f64,
        found: &mut [Option<Scored>],
        tick: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<()> {
        // Few candidates share the threads within their runs, many are shared out over them, and so are those that leave
        // no thread idle at the end.
        let n_threads = self.contest.threads;
        let is_shared_out = who.len() >= 4 * n_threads || who.len().is_multiple_of(n_threads);
        let at_once = if is_shared_out { n_threads } else { 1 };
        let time = self.time(share, who.len().div_ceil(at_once));
        let means = Means { threads: n_threads / at_once, time, seed: self.seed(pass) };
        self.score_all(who, at_once, scoring, pass, found, tick, |_| means)
    }

    /// The same one after another, each with all threads, and with a part of the time in proportion to what a sweep over its
    /// tokens takes: then all make about as many. What one leaves goes to those after it.
    pub fn pass_in_turn(
        &self,
        who: &[usize],
        scoring: &Scoring,
        pass: Pass,
        share: f64,
        found: &mut [Option<Scored>],
        tick: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<()> {
        let end = self.time(share, 1).map(|time| Instant::now() + time);
        let mut costs = Vec::new();
        for &ix in who.iter().filter(|_| end.is_some()) {
            let binding = self.field.bind(&self.field.candidates()[ix])?;
            costs.push(match seconds_per_sweep(&binding, &self.prior(ix)) {
                // It will take no time at all.
                Err(Error::TooCostly(_)) => 0.0,
                cost => cost?,
            });
        }
        let time = |candidate: u32| {
            let left = end?.saturating_duration_since(Instant::now());
            let place = who.iter().position(|&ix| ix == candidate as usize).expect("one of them");
            let rest: f64 = costs[place..].iter().sum();
            Some(if rest > 0.0 { left.mul_f64(costs[place] / rest) } else { left })
        };
        let (threads, seed) = (self.contest.threads, self.seed(pass));
        let means = |candidate: u32| Means { threads, time: time(candidate), seed };
        self.score_all(who, 1, scoring, pass, found, tick, means)
    }

    /// Each pass has random numbers of its own.
    fn seed(&self, pass: Pass) -> Seed {
        let nth = match pass {
            Pass::Cheap => 0,
            Pass::Number(number) => u64::from(number - 1),
        };
        Seed(self.contest.seed.0.wrapping_add(nth.wrapping_mul(0x9E37_79B9)))
    }

    #[expect(clippy::too_many_arguments, reason = "two callers that differ in the last and one number")]
    fn score_all(
        &self,
        who: &[usize],
        at_once: usize,
        scoring: &Scoring,
        pass: Pass,
        found: &mut [Option<Scored>],
        tick: &mut dyn FnMut(f64) -> Result<()>,
        means: impl Fn(u32) -> Means + Sync,
    ) -> Result<()> {
        let round = match pass {
            Pass::Cheap => CHEAP,
            Pass::Number(number) => number,
        };
        let scored = self.for_all(who, at_once, round, tick, |candidate, job, control| {
            let binding = self.field.bind(candidate)?;
            let score = match self.found_or_scored(job, scoring, &binding, means(job.candidate), control) {
                // Where nobody asked for an engine, a model that none can hold does not keep the others from being ranked.
                Err(Error::TooCostly(why)) if scoring.method == Method::Auto && !scoring.wants_particles => {
                    self.out_of_reach().insert(job.candidate as usize, why);
                    return Ok(None);
                }
                score => score?,
            };
            let is_seen = binding.counts.seen_anywhere();
            Ok(Some(Scored {
                seconds: score.seconds,
                model: binding.model,
                is_seen,
                score,
                bound: None,
                n_rounds: 1,
                is_quick: false,
                is_out_of_reach: false,
            }))
        })?;
        for (&ix, new) in who.iter().zip(scored) {
            let Some(mut new) = new.flatten() else { continue };
            if let Some(before) = &mut found[ix] {
                // One that the time limit cut short is no better than one that it left alone.
                if is_whole(&before.score.warnings) && !is_whole(&new.score.warnings) {
                    before.seconds += new.seconds;
                    continue;
                }
                new.seconds += before.seconds;
                new.n_rounds += before.n_rounds;
            }
            found[ix] = Some(new);
        }
        Ok(())
    }

    /// Candidates that no engine can hold, and why.
    pub fn out_of_reach(&self) -> MutexGuard<'_, BTreeMap<usize, String>> {
        self.out_of_reach.lock().expect("no thread panics while holding it")
    }

    /// A candidate of which no more than a bound is known.
    pub fn with_bound(&self, ix: usize, score: Score) -> Result<Scored> {
        let binding = self.field.bind(&self.field.candidates()[ix])?;
        Ok(Scored {
            is_seen: binding.counts.seen_anywhere(),
            model: binding.model,
            bound: Some(score.log_marginal),
            seconds: score.seconds,
            score,
            n_rounds: 0,
            is_quick: false,
            is_out_of_reach: false,
        })
    }

    /// The bounds of some candidates.
    pub fn bounds(&self, who: &[usize], tick: &mut dyn FnMut(f64) -> Result<()>) -> Result<Vec<Option<Score>>> {
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
        let prior = self.prior(job.candidate as usize);
        let score = match scoring.score(binding, &prior, means, control) {
            // A time limit chose other sizes for what is under way: then it is begun anew.
            Err(Error::Checkpoint(_)) => {
                self.logbook.forget(job);
                scoring.score(binding, &prior, means, control)
            }
            score => score,
        }?;
        if is_whole(&score.warnings) {
            self.logbook.enter(job, &score, scoring.follows_time(&score));
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
        let done: BTreeMap<usize, Done> = who.iter().map(|&ix| (ix, Done::default())).collect();
        let do_one = |&ix: &usize| {
            let a = self.contest.a.as_ref().map(|all| all[ix].to_bits());
            let job = Job { a, most_rounds: self.contest.most_rounds, round, candidate: ix as u32 };
            let mut control = Control::new(self.logbook.clerk(job, &done[&ix]))
                .with_cancel(self.contest.cancel.clone())
                .with_deadline(self.contest.deadline);
            // Too late to begin: nothing is made ready in vain.
            control.tick("score", 0.0)?;
            let found = f(&self.field.candidates()[ix], job, &mut control);
            done[&ix].note(1.0);
            found
        };
        let found = map_watched(who, at_once, do_one, |_| {
            if stop.is_ok() {
                stop = tick(done.values().map(Done::share).sum::<f64>() / who.len() as f64);
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
