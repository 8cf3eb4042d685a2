//! Independent runs on several threads, with progress, a time limit and checkpoints.

use crate::control::Control;
use crate::error::{Error, Result, Stop};
use crate::warning::Warning;
use hashbrown::HashSet;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// Time between two looks at the control.
const POLL: Duration = Duration::from_millis(15);

/// Parts of a run that progress is counted in.
const PARTS: f64 = 1e6;

/// How long a run that is to stop may take to end its step, so that its state can be kept.
const PATIENCE: Duration = Duration::from_millis(300);

/// Finished runs, and whether the time was up before all were.
#[derive(Debug)]
pub struct Replicates<R> {
    /// Results of finished runs, in order, and their numbers.
    pub finished: Vec<R>,
    pub numbers: Vec<u64>,
    /// True when the time limit stopped the others.
    pub is_cut: bool,
    /// Finished runs beyond those that were asked for: the checkpoint has them, and is worth keeping.
    pub n_beyond: u64,
}

impl<R> Replicates<R> {
    /// What a user should know who asked for `n` runs.
    pub fn warnings(&self, n: u64) -> Vec<Warning> {
        let time_up = self.is_cut.then_some(Warning::TimeUp { finished: self.finished.len() as u64, asked: n });
        let kept = (self.n_beyond > 0).then_some(Warning::RunsKept { runs: self.n_beyond });
        time_up.into_iter().chain(kept).collect()
    }
}

/// Which of several pilots this is, so that their progress is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PilotPlace {
    /// Its number, from 0.
    pub ix: usize,
    /// All of them.
    pub n: usize,
}

/// What runs are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stage {
    /// What people are shown.
    pub name: &'static str,
    /// Tells whose checkpoint is whose: the same for the pilots of a job and for its runs.
    pub job: u64,
    /// Tells stages of a job apart, and jobs with other settings.
    pub fingerprint: u64,
    /// Which of several pilots, which choose settings; `None` for runs that answer.
    pub pilot: Option<PilotPlace>,
}

impl Stage {
    /// Runs that answer, of a job without pilots.
    pub fn alone(name: &'static str, fingerprint: u64) -> Self {
        Stage { name, job: fingerprint, fingerprint, pilot: None }
    }

    /// Tells that this share of the runs is done.
    fn tick(self, share: f64, control: &mut Control<'_>) -> Result<()> {
        match self.pilot {
            Some(place) => control.tick_pilots(self.name, (place.ix as f64 + share) / place.n as f64),
            None => control.tick_runs(self.name, share),
        }
    }
}

/// Results of runs, with their numbers.
type Numbered<R> = Vec<(u64, R)>;

/// What a checkpoint holds: the runs of each stage of a job by their fingerprints, and which of them answers.
#[derive(Default, Serialize, Deserialize)]
struct SavedJob {
    job: u64,
    main: Option<u64>,
    stages: BTreeMap<u64, Vec<u8>>,
}

impl SavedJob {
    /// The checkpoint that is there, if it is of this job.
    fn load(stage: Stage, control: &mut Control<'_>) -> Result<Self> {
        let Some(bytes) = control.load_checkpoint()? else {
            return Ok(SavedJob { job: stage.job, ..Default::default() });
        };
        let saved: SavedJob = postcard::from_bytes(&bytes).map_err(|_| damaged(control))?;
        let is_other = stage.pilot.is_none() && saved.main.is_some_and(|main| main != stage.fingerprint);
        if saved.job != stage.job || is_other {
            return Err(control.refuse_checkpoint(
                "it belongs to other data, another model or other settings; remove the file to start anew, or repeat the command that wrote it",
            ));
        }
        Ok(saved)
    }
}

/// Of a checkpoint whose states cannot be those of the problem.
pub fn damaged(control: &Control<'_>) -> Error {
    control
        .refuse_checkpoint("it is damaged or belongs to another model or another method; remove the file to start anew")
}

/// Finished runs of an unfinished stage, and the state of those under way.
#[derive(Serialize, Deserialize)]
struct Saved<R> {
    runs: Numbered<R>,
    under_way: States,
}

/// States of runs under way, by their numbers.
type States = BTreeMap<u64, Begun>;

/// A run under way.
#[derive(Clone, Serialize, Deserialize)]
struct Begun {
    /// How far it is, in parts of [`PARTS`]: who takes it up tells that from the first moment.
    n_parts: u64,
    state: Vec<u8>,
}

/// What a run is told, and what it tells.
pub struct Watch<'w> {
    tick: &'w (dyn Fn(f64) -> Result<()> + 'w),
    /// Whether the run was asked to stop.
    stop: &'w OnceLock<Stopped>,
    /// The state that was kept of this run.
    saved: Option<&'w [u8]>,
    /// Whether states are kept at all, and how often they were asked for.
    is_kept: bool,
    asked: &'w AtomicU64,
    answered: Cell<u64>,
    keep: &'w (dyn Fn(Vec<u8>, u64) + 'w),
}

impl<'w> Watch<'w> {
    /// For a run that nobody keeps.
    pub fn of(tick: &'w (dyn Fn(f64) -> Result<()> + 'w)) -> Self {
        static NEVER: AtomicU64 = AtomicU64::new(0);
        static GO_ON: OnceLock<Stopped> = OnceLock::new();
        let (stop, asked) = (&GO_ON, &NEVER);
        Watch { tick, stop, saved: None, is_kept: false, asked, answered: Cell::new(0), keep: &|_, _| () }
    }

    /// Called now and then, with the share of the work that is done; when it fails, the run has to stop with the same error.
    pub fn tick(&self, share: f64) -> Result<()> {
        (self.tick)(share)
    }

    /// The same in the middle of a step. Where the run's state is kept it may go on for a moment, so that the step need not be
    /// made again.
    pub fn tick_inside(&self, share: f64) -> Result<()> {
        let go_on = self.tick(share);
        if self.stop.get().is_some() { self.stop_sign().look() } else { go_on }
    }

    /// For the threads of a run that work on one step.
    pub fn stop_sign(&self) -> StopSign<'w> {
        StopSign { stop: self.stop, is_kept: self.is_kept }
    }

    /// Whether the run was stopped because the time is up: one that has something to answer with may do so.
    pub fn is_time_up(&self) -> bool {
        self.stop.get().is_some_and(|stop| stop.is_time_up)
    }

    /// The state to go on from, if an earlier job was stopped in the middle of this run.
    pub fn saved<S: DeserializeOwned>(&self) -> Option<S> {
        // What cannot be read is done again.
        postcard::from_bytes(self.saved?).ok()
    }

    /// Whether states are kept at all.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Whether somebody asks for the run's state; it is enough to look where the state is simple.
    pub fn is_asked(&self) -> bool {
        self.is_kept && self.asked.load(Ordering::Relaxed) > self.answered.get()
    }

    /// Hands the state over: because it was asked for, or because the run is being stopped.
    pub fn keep<S: Serialize>(&self, state: &S) {
        if self.is_kept {
            let asked = self.asked.load(Ordering::Relaxed);
            self.answered.set(asked);
            (self.keep)(postcard::to_stdvec(state).expect("plain data"), asked);
        }
    }
}

/// When runs were asked to stop, and whether because the time is up.
#[derive(Debug)]
struct Stopped {
    since: Instant,
    is_time_up: bool,
}

/// Tells threads in the middle of a step whether to go on.
#[derive(Debug, Clone, Copy)]
pub struct StopSign<'w> {
    stop: &'w OnceLock<Stopped>,
    is_kept: bool,
}

impl StopSign<'_> {
    /// As [`Watch::tick_inside`].
    pub fn look(self) -> Result<()> {
        match self.stop.get() {
            Some(stop) if !self.is_kept || stop.since.elapsed() >= PATIENCE => Err(Error::Stopped(Stop::Cancelled)),
            _ => Ok(()),
        }
    }
}

/// Threads of a job.
#[derive(Debug, Clone, Copy)]
pub struct Team {
    /// Threads.
    pub n_threads: usize,
    /// Whether memory is for one run at a time only.
    pub is_one_by_one: bool,
}

/// Which run, and how many threads it has for itself.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Number of the run.
    pub replicate: u64,
    /// Threads.
    pub n_threads: usize,
}

/// Does runs 0 to `n` - 1. Each is handed its turn, and what watches it.
///
/// # Errors
/// When cancelled, when the time is up before the first run is finished, or when a run fails.
pub fn replicates<R>(
    n: u64,
    stage: Stage,
    team: Team,
    control: &mut Control<'_>,
    run: impl Fn(Turn, &Watch<'_>) -> Result<R> + Sync,
) -> Result<Replicates<R>>
where
    R: Send + Clone + Serialize + for<'de> Deserialize<'de>,
{
    let is_main = stage.pilot.is_none();
    let mut job = SavedJob::load(stage, control)?;
    let (mut done, beyond, begun): (Numbered<R>, Numbered<R>, States) = match job.stages.get(&stage.fingerprint) {
        None => (Vec::new(), Vec::new(), States::new()),
        Some(bytes) => {
            let saved: Saved<R> = postcard::from_bytes(bytes).map_err(|_| damaged(control))?;
            // The others are of a job with more runs.
            let (done, beyond) = saved.runs.into_iter().partition(|(replicate, _)| *replicate < n);
            (done, beyond, saved.under_way)
        }
    };
    if is_main {
        job.main = Some(stage.fingerprint);
    }
    let mut to_bytes = |runs: Numbered<R>, under_way: States| {
        let runs = runs.into_iter().chain(beyond.iter().cloned()).collect();
        let own = postcard::to_stdvec(&Saved { runs, under_way }).expect("plain data");
        job.stages.insert(stage.fingerprint, own);
        postcard::to_stdvec(&job).expect("plain data")
    };
    let done_before: HashSet<u64> = done.iter().map(|(replicate, _)| *replicate).collect();
    let missing: Vec<u64> = (0..n).filter(|replicate| !done_before.contains(replicate)).collect();
    let stop: OnceLock<Stopped> = OnceLock::new();
    let n_parts_of = |replicate: &u64| begun.get(replicate).map_or(0, |begun| begun.n_parts);
    let progress = AtomicU64::new(missing.iter().map(n_parts_of).sum());
    let fresh: Mutex<Numbered<R>> = Mutex::new(Vec::new());
    // Runs under way, the last state that each handed over, and the question that it answered. States that were saved and
    // not yet taken up stay.
    let states: Mutex<States> = Mutex::new(begun.clone());
    let answered: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());
    let asked = AtomicU64::new(0);
    let is_kept = control.checkpoint_interval().is_some();
    let (is_over, over) = channel::<()>();
    let mut outcome = Ok(());
    let mut failure = None;
    let mut was_asked = false;
    std::thread::scope(|scope| {
        let (stop, progress, fresh) = (&stop, &progress, &fresh);
        let (run, missing) = (&run, &missing);
        let (states, answered, asked, begun) = (&states, &answered, &asked, &begun);
        let worker = std::thread::Builder::new().spawn_scoped(scope, move || {
            // Where there are fewer runs than threads, or memory for one of them only: one after another, each with all threads.
            let is_one_by_one = team.is_one_by_one || missing.len() < team.n_threads;
            let n_threads = if is_one_by_one { team.n_threads } else { 1 };
            let one = |&replicate: &u64| {
                // A state that cannot be read is made again, and its parts are not counted twice.
                let most = AtomicU64::new(begun.get(&replicate).map_or(0, |begun| begun.n_parts));
                let now = AtomicU64::new(0);
                let tick = |share: f64| {
                    let n_parts = (share * PARTS) as u64;
                    now.store(n_parts, Ordering::Relaxed);
                    let before = most.fetch_max(n_parts, Ordering::Relaxed);
                    progress.fetch_add(n_parts.saturating_sub(before), Ordering::Relaxed);
                    if stop.get().is_some() { Err(Error::Stopped(Stop::Cancelled)) } else { Ok(()) }
                };
                let keep = |state: Vec<u8>, answer: u64| {
                    lock(states).insert(replicate, Begun { n_parts: now.load(Ordering::Relaxed), state });
                    lock(answered).insert(replicate, answer);
                };
                let question = asked.load(Ordering::Relaxed);
                lock(answered).insert(replicate, question);
                let watch = Watch {
                    tick: &tick,
                    stop,
                    saved: begun.get(&replicate).map(|begun| begun.state.as_slice()),
                    is_kept,
                    asked,
                    answered: Cell::new(question),
                    keep: &keep,
                };
                let result = run(Turn { replicate, n_threads }, &watch);
                lock(answered).remove(&replicate);
                let result = result?;
                progress.fetch_add((PARTS as u64).saturating_sub(most.load(Ordering::Relaxed)), Ordering::Relaxed);
                // Both at once, or a run might be kept twice or not at all.
                let mut fresh = lock(fresh);
                fresh.push((replicate, result));
                lock(states).remove(&replicate);
                Ok(())
            };
            let result = pool(team.n_threads).and_then(|pool| match is_one_by_one {
                true => pool.install(|| missing.iter().try_for_each(one)),
                false => pool.install(|| missing.par_iter().try_for_each(one)),
            });
            drop(is_over);
            result
        });
        while let Err(RecvTimeoutError::Timeout) = over.recv_timeout(POLL) {
            let share = (done.len() as f64 + progress.load(Ordering::Relaxed) as f64 / PARTS) / n.max(1) as f64;
            let all = || {
                let mut runs = done.clone();
                let fresh = lock(fresh);
                runs.extend(fresh.iter().cloned());
                to_bytes(runs, lock(states).clone())
            };
            if outcome.is_ok() {
                outcome = stage.tick(share, control);
                let is_any_done = || !lock(fresh).is_empty();
                if outcome.is_ok() && is_main && control.is_turn_over() && (!done.is_empty() || is_any_done()) {
                    outcome = Err(Error::Stopped(Stop::Deadline));
                }
                if outcome.is_ok() && is_kept && control.is_checkpoint_due() {
                    // First every run under way is asked for its state; who does not answer for as long again is left out.
                    let question = asked.load(Ordering::Relaxed);
                    let is_pending = lock(answered).values().any(|&answer| answer < question);
                    if !was_asked {
                        asked.fetch_add(1, Ordering::Relaxed);
                        was_asked = true;
                    } else if !is_pending || control.is_checkpoint_overdue() {
                        outcome = control.checkpoint_now(all);
                        was_asked = false;
                    }
                }
                if outcome.is_err() {
                    let is_time_up = matches!(outcome, Err(Error::Stopped(Stop::Deadline)));
                    stop.get_or_init(|| Stopped { since: Instant::now(), is_time_up });
                }
            }
        }
        let found = worker.map_err(Error::NoThread).and_then(|worker| worker.join().expect("a run does not panic"));
        match found {
            Err(Error::Stopped(_)) if outcome.is_err() => {}
            Err(error) => failure = Some(error),
            Ok(()) => {}
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    done.extend(fresh.into_inner().expect("no thread panics while holding it"));
    done.sort_by_key(|(replicate, _)| *replicate);
    let is_cut = (done.len() as u64) < n;
    let states = states.into_inner().expect("no thread panics while holding it");
    let has_something = !done.is_empty() || !states.is_empty();
    // Pilots that are done are kept for the runs after them.
    let is_worth_keeping = if is_cut { outcome.is_err() && has_something } else { !is_main };
    if is_worth_keeping || is_main && !beyond.is_empty() {
        control.checkpoint_now(|| to_bytes(done.clone(), states))?;
    }
    if let Err(error) = outcome {
        let can_answer = matches!(error, Error::Stopped(Stop::Deadline)) && !done.is_empty();
        if !can_answer && (is_cut || !matches!(error, Error::Stopped(_))) {
            return Err(error);
        }
    }
    let (numbers, finished) = done.into_iter().unzip();
    Ok(Replicates { finished, numbers, is_cut, n_beyond: beyond.len() as u64 })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics while holding it")
}

/// Threads of a job; also one alone has a pool, or what it shares out would go to all threads of the machine. Where the system does
/// not start as many, fewer do the same.
///
/// # Errors
/// When it starts none.
pub fn pool(n_threads: usize) -> Result<rayon::ThreadPool> {
    let mut n_threads = n_threads.max(1);
    loop {
        match rayon::ThreadPoolBuilder::new().num_threads(n_threads).build() {
            Ok(pool) => return Ok(pool),
            Err(error) if n_threads == 1 => return Err(Error::NoThread(io::Error::other(error))),
            Err(_) => n_threads /= 2,
        }
        // Those that were started in vain have to end first.
        std::thread::sleep(POLL);
    }
}
