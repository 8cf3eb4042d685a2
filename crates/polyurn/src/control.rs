//! Run control, handed to every engine: cancel, deadline, progress, checkpoint.
//!
//! An engine calls [`Control::tick`] in its outer loop. That is the only place where a run is stopped, so a stop never
//! leaves half an update behind. Engines that can resume offer their state to [`Control::checkpoint`] at the same spot.

use crate::error::{Error, Result, Stop};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// A switch that stops runs from another thread or a signal handler.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicU8>);

/// Positions of the switch.
const GO_ON: u8 = 0;
const FINISH: u8 = 1;
const CANCEL: u8 = 2;

impl Cancel {
    /// Asks every run that holds this switch to stop.
    pub fn cancel(&self) {
        self.0.fetch_max(CANCEL, Ordering::Relaxed);
    }

    /// Asks every run that holds this switch to answer with what it has, as if its time were up.
    pub fn finish(&self) {
        self.0.fetch_max(FINISH, Ordering::Relaxed);
    }

    /// Whether either was asked for.
    pub fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed) != GO_ON
    }

    fn stop(&self) -> Option<Stop> {
        match self.0.load(Ordering::Relaxed) {
            GO_ON => None,
            FINISH => Some(Stop::Deadline),
            _ => Some(Stop::Cancelled),
        }
    }
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress<'a> {
    /// What is being done, for people: `exact`, `reading`.
    pub stage: &'a str,
    /// Share of the work that is done, 0 to 1.
    pub fraction: f64,
}

/// Receives progress and keeps checkpoints. All methods do nothing by default.
pub trait Observer {
    /// Called often; must be cheap.
    fn progress(&mut self, progress: Progress<'_>) {
        let _ = progress;
    }

    /// The state that an earlier, unfinished run saved, if there is one.
    fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// What the place of the checkpoint is called, for messages.
    fn checkpoint_name(&self) -> Option<String> {
        None
    }

    /// How long to wait between checkpoints; `None` when they are not wanted.
    fn checkpoint_interval(&self) -> Option<Duration> {
        None
    }

    /// Stores a state so that a crash at any moment leaves either the old one or the new one.
    fn save_checkpoint(&mut self, state: &[u8]) -> Result<()> {
        let _ = state;
        Ok(())
    }
}

/// An observer that watches nothing.
impl Observer for () {}

/// The progress of a job whose pilots come before its runs.
#[derive(Debug, Clone, Copy, Default)]
struct Pilots {
    /// Share of the job that they are thought to take.
    share: f64,
    /// How far they came.
    made: f64,
}

/// Cancel, deadline, progress and checkpoint of one run.
pub struct Control<'a> {
    cancel: Cancel,
    deadline: Option<Instant>,
    turn_end: Option<Instant>,
    /// Where progress starts and ends.
    span: (f64, f64),
    /// How pilots and the runs after them share it.
    pilots: Pilots,
    observer: Box<dyn Observer + 'a>,
    last_checkpoint: Instant,
    /// What stands before the state of the engine that is at work.
    done_before: Vec<u8>,
}

impl fmt::Debug for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("cancel", &self.cancel)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

impl Default for Control<'_> {
    fn default() -> Self {
        Control::new(())
    }
}

impl<'a> Control<'a> {
    /// A control without deadline whose progress and checkpoints go to `observer`.
    pub fn new(observer: impl Observer + 'a) -> Self {
        Control {
            cancel: Cancel::default(),
            deadline: None,
            turn_end: None,
            span: (0.0, 1.0),
            pilots: Pilots::default(),
            observer: Box::new(observer),
            last_checkpoint: Instant::now(),
            done_before: Vec::new(),
        }
    }

    /// Stops when `cancel` is set.
    pub fn with_cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
        self
    }

    /// Stops at `deadline`.
    pub fn with_deadline(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// For one of several jobs that share a deadline: when its own share of the time is over. From then on an engine that
    /// has something to answer with does so; one that has nothing goes on to the deadline.
    pub fn with_turn_end(mut self, turn_end: Option<Instant>) -> Self {
        self.turn_end = turn_end;
        self
    }

    /// Does something with an earlier deadline.
    pub fn until<R>(&mut self, deadline: Option<Instant>, f: impl FnOnce(&mut Self) -> R) -> R {
        let own = self.deadline;
        self.deadline = own.into_iter().chain(deadline).min();
        let result = f(self);
        self.deadline = own;
        result
    }

    /// Does a part of the work, which takes progress from one share of the whole to another.
    pub fn within<R>(&mut self, (from, to): (f64, f64), f: impl FnOnce(&mut Self) -> R) -> R {
        let (own_from, own_to) = self.span;
        let at = |share: f64| own_from + share * (own_to - own_from);
        self.span = (at(from), at(to));
        let result = f(self);
        self.span = (own_from, own_to);
        result
    }

    /// A control for a trial ahead of a run: the same switch, an earlier deadline, and neither progress nor checkpoints.
    pub fn for_trial(&self, deadline: Instant) -> Control<'static> {
        let deadline = self.deadline.map_or(deadline, |own| own.min(deadline));
        Control::default().with_cancel(self.cancel.clone()).with_deadline(Some(deadline))
    }

    /// Does the rest of a job whose first part is done: its checkpoints are those bytes and after them the state of what is at
    /// work, which neither sees nor writes them.
    pub(crate) fn after<R>(&mut self, done: Vec<u8>, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.done_before, done);
        let result = f(self);
        self.done_before = before;
        result
    }

    /// Whether somebody asked the run to stop or to answer with what it has.
    pub fn is_asked_to_stop(&self) -> bool {
        self.cancel.is_over()
    }

    /// Does a job that may make pilots before its runs; they have one progress, which only goes forward.
    pub(crate) fn with_pilots<R>(&mut self, share: f64, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.pilots, Pilots { share, made: 0.0 });
        let result = f(self);
        self.pilots = before;
        result
    }

    /// What share pilots are thought to take, once that is known better; not less than what they have.
    pub(crate) fn expect_pilots(&mut self, share: f64) {
        self.pilots.share = share.max(self.pilots.made);
    }

    /// As [`Control::tick`], of pilots. Those of a job that nobody expects pilots of have a progress of their own.
    pub(crate) fn tick_pilots(&mut self, stage: &str, fraction: f64) -> Result<()> {
        if self.pilots.share == 0.0 {
            return self.tick(stage, fraction);
        }
        self.pilots.made = self.pilots.made.max(self.pilots.share * fraction);
        self.tick(stage, self.pilots.made)
    }

    /// As [`Control::tick`], of the runs after pilots, if there were any.
    pub(crate) fn tick_runs(&mut self, stage: &str, fraction: f64) -> Result<()> {
        let made = self.pilots.made;
        self.tick(stage, made + (1.0 - made) * fraction)
    }

    /// Time to the deadline, if there is one.
    pub fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// When this job's share of the time is over, if it has one.
    pub fn turn_end(&self) -> Option<Instant> {
        self.turn_end
    }

    /// Whether this job's share of the time is over.
    pub fn is_turn_over(&self) -> bool {
        self.turn_end.is_some_and(|end| Instant::now() >= end)
    }

    /// Reports progress and returns an error when the run has to stop.
    ///
    /// # Errors
    /// [`Error::Stopped`] when the run was cancelled or its deadline has passed.
    pub fn tick(&mut self, stage: &str, fraction: f64) -> Result<()> {
        let (from, to) = self.span;
        self.observer.progress(Progress { stage, fraction: from + fraction * (to - from) });
        if let Some(stop) = self.cancel.stop() {
            return Err(Error::Stopped(stop));
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Error::Stopped(Stop::Deadline));
        }
        Ok(())
    }

    /// The state saved by an earlier run, if any.
    ///
    /// # Errors
    /// When the checkpoint cannot be read or is damaged.
    pub fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(bytes) = self.observer.load_checkpoint()? else { return Ok(None) };
        // A checkpoint of the first part has nothing of what comes after it.
        let own = bytes.strip_prefix(&*self.done_before).filter(|own| self.done_before.is_empty() || !own.is_empty());
        Ok(own.map(<[u8]>::to_vec))
    }

    /// The error of a checkpoint that cannot be taken up, with its name.
    pub fn refuse_checkpoint(&self, why: &str) -> Error {
        match self.observer.checkpoint_name() {
            Some(name) => Error::Checkpoint(format!("{name}: {why}")),
            None => Error::Checkpoint(why.to_owned()),
        }
    }

    /// Time between checkpoints; `None` when they are not wanted.
    pub fn checkpoint_interval(&self) -> Option<Duration> {
        self.observer.checkpoint_interval()
    }

    /// Whether a checkpoint is due.
    pub fn is_checkpoint_due(&self) -> bool {
        self.observer.checkpoint_interval().is_some_and(|interval| self.last_checkpoint.elapsed() >= interval)
    }

    /// Whether it has been due for as long as one is to wait for it.
    pub fn is_checkpoint_overdue(&self) -> bool {
        self.observer.checkpoint_interval().is_some_and(|interval| self.last_checkpoint.elapsed() >= 2 * interval)
    }

    /// Saves the state that `state` builds if a checkpoint is due.
    ///
    /// # Errors
    /// When the checkpoint cannot be written.
    pub fn checkpoint(&mut self, state: impl FnOnce() -> Vec<u8>) -> Result<()> {
        if self.is_checkpoint_due() { self.checkpoint_now(state) } else { Ok(()) }
    }

    /// Saves the state now if checkpoints are wanted.
    ///
    /// # Errors
    /// When the checkpoint cannot be written.
    pub fn checkpoint_now(&mut self, state: impl FnOnce() -> Vec<u8>) -> Result<()> {
        match self.observer.checkpoint_interval() {
            Some(_) => {
                self.observer.save_checkpoint(&[&*self.done_before, &state()].concat())?;
                self.last_checkpoint = Instant::now();
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_run_stops_at_the_next_tick() {
        let cancel = Cancel::default();
        let mut control = Control::default().with_cancel(cancel.clone());
        assert!(control.tick("test", 0.0).is_ok());
        cancel.cancel();
        assert!(matches!(control.tick("test", 0.5), Err(Error::Stopped(Stop::Cancelled))));
    }

    #[test]
    fn a_run_that_is_to_finish_stops_as_if_its_time_were_up() {
        let cancel = Cancel::default();
        let mut control = Control::default().with_cancel(cancel.clone());
        cancel.finish();
        assert!(matches!(control.tick("test", 0.5), Err(Error::Stopped(Stop::Deadline))));
        // Who wants no answer after all gets none.
        cancel.cancel();
        cancel.finish();
        assert!(matches!(control.tick("test", 0.5), Err(Error::Stopped(Stop::Cancelled))));
    }

    #[test]
    fn an_earlier_deadline_holds_only_for_its_part() {
        let mut control = Control::default();
        assert!(control.time_left().is_none());
        let now = Some(Instant::now());
        assert!(control.until(now, |control| control.tick("test", 0.0)).is_err());
        assert!(control.until(None, |control| control.tick("test", 0.0)).is_ok());
        let mut control = control.with_deadline(now);
        let later = Instant::now() + Duration::from_secs(60);
        assert!(control.until(Some(later), |control| control.tick("test", 0.0)).is_err(), "never a later one");
    }

    #[test]
    fn progress_of_a_part_is_that_of_the_whole() {
        struct Seen<'s>(&'s mut Vec<f64>);
        impl Observer for Seen<'_> {
            fn progress(&mut self, progress: Progress<'_>) {
                self.0.push(progress.fraction);
            }
        }
        let mut seen = Vec::new();
        let mut control = Control::new(Seen(&mut seen));
        let half = |control: &mut Control<'_>| control.tick("test", 0.5).unwrap();
        control.within((0.5, 1.0), |control| {
            half(control);
            control.within((0.0, 0.5), half);
        });
        half(&mut control);
        drop(control);
        assert_eq!(seen, [0.75, 0.625, 0.5]);
    }

    #[test]
    fn pilots_and_runs_have_one_progress_that_only_goes_forward() {
        struct Seen<'s>(&'s mut Vec<f64>);
        impl Observer for Seen<'_> {
            fn progress(&mut self, progress: Progress<'_>) {
                self.0.push(progress.fraction);
            }
        }
        let mut seen = Vec::new();
        let mut control = Control::new(Seen(&mut seen));
        control.with_pilots(0.25, |control| {
            // A second round of pilots begins anew.
            [0.5, 1.0, 0.5].iter().for_each(|&done| control.tick_pilots("pilots", done).unwrap());
            [0.0, 0.5, 1.0].iter().for_each(|&done| control.tick_runs("runs", done).unwrap());
        });
        // Who made none has the whole for its runs.
        control.with_pilots(0.25, |control| control.tick_runs("runs", 0.5).unwrap());
        drop(control);
        assert_eq!(seen, [0.125, 0.25, 0.25, 0.25, 0.625, 1.0, 0.5]);
    }

    #[derive(Default, Clone)]
    struct Kept(std::rc::Rc<std::cell::RefCell<Option<Vec<u8>>>>);

    impl Observer for Kept {
        fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
            Ok(self.0.borrow().clone())
        }
        fn checkpoint_interval(&self) -> Option<Duration> {
            Some(Duration::ZERO)
        }
        fn save_checkpoint(&mut self, state: &[u8]) -> Result<()> {
            *self.0.borrow_mut() = Some(state.to_vec());
            Ok(())
        }
    }

    #[test]
    fn the_second_part_of_a_job_keeps_the_first() {
        let file = Kept::default();
        let mut control = Control::new(file.clone());
        control.checkpoint_now(|| b"half of one".to_vec()).unwrap();
        let one = b"one; ".to_vec();
        control.after(one.clone(), |control| {
            assert_eq!(control.load_checkpoint().unwrap(), None, "it is of the first part");
            control.checkpoint_now(Vec::new).unwrap();
            assert_eq!(control.load_checkpoint().unwrap(), None, "nothing is there yet");
            control.checkpoint_now(|| b"half of two".to_vec()).unwrap();
            assert_eq!(control.load_checkpoint().unwrap().unwrap(), b"half of two");
        });
        assert_eq!(file.0.borrow().as_deref(), Some(&b"one; half of two"[..]));
        let mut control = Control::new(file);
        assert_eq!(control.load_checkpoint().unwrap().unwrap(), b"one; half of two");
        assert_eq!(control.after(one, Control::load_checkpoint).unwrap().unwrap(), b"half of two");
    }

    #[test]
    fn a_passed_deadline_stops_the_run() {
        let mut control = Control::default().with_deadline(Some(Instant::now()));
        assert!(matches!(control.tick("test", 0.0), Err(Error::Stopped(Stop::Deadline))));
    }
}
