//! What a contest has done so far, so that one that was stopped goes on where it was.

use super::contest::Contest;
use super::field::Field;
use crate::control::{Control, Observer, Progress};
use crate::counts::Labels;
use crate::engine::mixer::Mixer;
use crate::error::Result;
use crate::simd::Isa;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many times as often as the logbook is written, jobs under way put their state into it.
const OFTEN: u32 = 16;

/// Parts that progress is counted in.
const PARTS: f64 = 1e6;

/// One job of a contest. Models, data, settings and seed being the same, this says all about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Job {
    /// The bits of `a`, where it is not the candidate's own.
    pub a: Option<u64>,
    /// Rounds that the contest has at most.
    pub most_rounds: u32,
    /// Which round; the bounds are round 0.
    pub round: u32,
    pub candidate: u32,
}

/// What is known of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Page {
    /// What it found, and the time limit that had a say in that.
    Done(Vec<u8>, Option<Duration>),
    /// Its engine's own checkpoint.
    UnderWay(Vec<u8>),
}

/// Jobs that are done, and the state of those under way.
#[derive(Debug)]
pub struct Logbook {
    fingerprint: u64,
    pages: Mutex<BTreeMap<Job, Page>>,
    /// How long everything may take this time.
    time_limit: Option<Duration>,
    /// Time between two entries of a job under way; none where nobody keeps the logbook.
    interval: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    fingerprint: u64,
    pages: BTreeMap<Job, Page>,
}

impl Logbook {
    /// Takes up what the control's checkpoint holds, if it has one.
    ///
    /// # Errors
    /// When the checkpoint cannot be read, or belongs to something else.
    pub fn open(field: &Field, contest: &Contest, control: &mut Control<'_>) -> Result<Self> {
        let interval = control.checkpoint_interval().map(|interval| interval / OFTEN);
        // Without anybody who keeps it there is nothing to tell apart.
        let fingerprint = if interval.is_some() { fingerprint(field, contest) } else { 0 };
        let pages = match control.load_checkpoint()? {
            None => BTreeMap::new(),
            Some(bytes) => {
                let saved: Saved = postcard::from_bytes(&bytes).map_err(|_| {
                    control.refuse_checkpoint("it is damaged or of another command; remove the file to start anew")
                })?;
                if saved.fingerprint != fingerprint {
                    return Err(control.refuse_checkpoint(
                        "it belongs to other data, other models or other settings; remove the file to start anew, or repeat the command that wrote it",
                    ));
                }
                saved.pages
            }
        };
        Ok(Logbook { fingerprint, pages: Mutex::new(pages), time_limit: contest.time_limit, interval })
    }

    /// Jobs that are done.
    pub fn n_done(&self) -> usize {
        self.lock().values().filter(|page| matches!(page, Page::Done(..))).count()
    }

    /// Writes it down if that is due.
    pub(super) fn keep(&self, control: &mut Control<'_>) -> Result<()> {
        control.checkpoint(|| self.to_bytes())
    }

    /// Writes it down, for a contest that is being stopped.
    pub(super) fn keep_now(&self, control: &mut Control<'_>) -> Result<()> {
        control.checkpoint_now(|| self.to_bytes())
    }

    /// What a job found, if it is done, and if it was not made small by a shorter time limit than that of today.
    pub(super) fn find<R: DeserializeOwned>(&self, job: Job) -> Option<R> {
        match self.lock().get(&job)? {
            Page::Done(_, Some(limit)) if self.time_limit.is_none_or(|today| today > *limit) => None,
            // What cannot be read is done again.
            Page::Done(bytes, _) => postcard::from_bytes(bytes).ok(),
            Page::UnderWay(_) => None,
        }
    }

    /// Enters what a job found, and whether the time limit had a say in it.
    pub(super) fn enter<R: Serialize>(&self, job: Job, found: &R, follows_time: bool) {
        if self.interval.is_some() {
            let bytes = postcard::to_stdvec(found).expect("plain data");
            self.lock().insert(job, Page::Done(bytes, self.time_limit.filter(|_| follows_time)));
        }
    }

    /// Tears out what is known of a job.
    pub(super) fn forget(&self, job: Job) {
        self.lock().remove(&job);
    }

    /// Keeps the checkpoints of a job's engine, and notes in `done` how far it is.
    pub(super) fn clerk<'a>(&'a self, job: Job, done: &'a Done) -> Clerk<'a> {
        Clerk { logbook: self, job, done }
    }

    fn to_bytes(&self) -> Vec<u8> {
        let saved = Saved { fingerprint: self.fingerprint, pages: self.lock().clone() };
        postcard::to_stdvec(&saved).expect("plain data")
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Job, Page>> {
        self.pages.lock().expect("no thread panics while holding it")
    }
}

/// Enters the state of a job under way.
pub(super) struct Clerk<'a> {
    logbook: &'a Logbook,
    job: Job,
    done: &'a Done,
}

/// How much of a job is done; it never becomes less.
#[derive(Debug, Default)]
pub(super) struct Done(AtomicU64);

impl Done {
    /// Notes this share.
    pub fn note(&self, share: f64) {
        self.0.fetch_max((share.clamp(0.0, 1.0) * PARTS) as u64, Ordering::Relaxed);
    }

    /// The largest share so far.
    pub fn share(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / PARTS
    }
}

impl Observer for Clerk<'_> {
    fn progress(&mut self, progress: Progress<'_>) {
        self.done.note(progress.fraction);
    }

    fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(match self.logbook.lock().get(&self.job) {
            Some(Page::UnderWay(state)) => Some(state.clone()),
            _ => None,
        })
    }

    fn checkpoint_interval(&self) -> Option<Duration> {
        self.logbook.interval
    }

    fn save_checkpoint(&mut self, state: &[u8]) -> Result<()> {
        self.logbook.lock().insert(self.job, Page::UnderWay(state.to_vec()));
        Ok(())
    }
}

/// Tells data, models, settings and seeds apart. Threads and instructions change nothing.
fn fingerprint(field: &Field, contest: &Contest) -> u64 {
    let mut mix = Mixer::default();
    let mut scoring = contest.scoring.clone();
    (scoring.isa, scoring.climb.isa, scoring.climb.threads) = (Isa::SCALAR, Isa::SCALAR, 1);
    let settings = format!("{scoring:?} {} {:?}", contest.seed.0, field.entries());
    settings.bytes().for_each(|byte| mix.word(u64::from(byte)));
    let data = field.dataset();
    for column in &data.columns {
        mix.word(column.labels.len().into());
        if let Labels::Named(names) = &column.labels {
            names.iter().flat_map(|name| name.bytes().chain([0])).for_each(|byte| mix.word(u64::from(byte)));
        }
    }
    let unknown = data.unknown.iter().flatten().copied();
    data.values.iter().flat_map(|codes| codes.iter()).chain(unknown).for_each(|value| mix.word(value.into()));
    data.counts.iter().for_each(|count| mix.word(count));
    mix.word(data.unit.per_token());
    mix.0
}
