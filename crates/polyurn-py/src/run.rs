//! Work beside the interpreter: its lock is released, signals are looked at, progress is passed on.

use crate::checkpoint::CheckpointFile;
use crate::errors::exception;
use polyurn::control::{Cancel, Control, Observer, Progress};
use polyurn::{Error, Result};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time from one look at signals to the next.
const POLL: Duration = Duration::from_millis(50);

/// What the work has come to.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<Option<(String, f64)>>>);

impl Board {
    fn take(&self) -> Option<(String, f64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What a run tells: how far it has come, and its state.
struct Watch {
    board: Board,
    checkpoint: Option<CheckpointFile>,
}

impl Observer for Watch {
    fn progress(&mut self, progress: Progress<'_>) {
        // Nobody waits for the lock: what is not written now is written soon.
        if let Ok(mut place) = self.board.0.try_lock() {
            match &mut *place {
                Some((stage, fraction)) if stage == progress.stage => *fraction = progress.fraction,
                place => *place = Some((progress.stage.to_owned(), progress.fraction)),
            }
        }
    }

    fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
        self.checkpoint.as_ref().map_or(Ok(None), CheckpointFile::load)
    }

    fn checkpoint_name(&self) -> Option<String> {
        self.checkpoint.as_ref().map(CheckpointFile::name)
    }

    fn checkpoint_interval(&self) -> Option<Duration> {
        self.checkpoint.as_ref().map(|file| file.every)
    }

    fn save_checkpoint(&mut self, state: &[u8]) -> Result<()> {
        self.checkpoint.as_ref().map_or(Ok(()), |file| file.save(state))
    }
}

/// Means of a run.
#[derive(Default)]
pub struct Work<'py> {
    /// Called with a stage and a share, now and then.
    pub watcher: Option<Bound<'py, PyAny>>,
    /// Time that it may take.
    pub time_limit: Option<Duration>,
    /// Where its state is kept.
    pub checkpoint: Option<CheckpointFile>,
}

impl Work<'_> {
    /// Does the work on a thread of its own. An interrupt makes it answer with what it has, a second one stops it. Also whether there
    /// was one.
    ///
    /// # Errors
    /// The exception of what went wrong, and that of the interrupt where there is no answer yet.
    pub fn run<T: Send>(
        mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Control<'_>, Cancel) -> Result<T> + Send,
    ) -> PyResult<(T, bool)> {
        let (cancel, board) = (Cancel::default(), Board::default());
        let deadline = self.time_limit.map(|limit| Instant::now() + limit);
        let (result, interrupt) = std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            // Shared so that it can be waited on without the interpreter's lock.
            let receiver = Mutex::new(receiver);
            let own_cancel = cancel.clone();
            let watch = Watch { board: board.clone(), checkpoint: self.checkpoint.take() };
            let worker = scope.spawn(move || {
                let mut control = Control::new(watch).with_cancel(own_cancel.clone()).with_deadline(deadline);
                let result = work(&mut control, own_cancel);
                // Nobody is left to hear it when the waiting side has failed.
                let _ = sender.send(result);
            });
            let mut interrupt: Option<PyErr> = None;
            loop {
                let received = py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(POLL));
                match received {
                    Ok(result) => return (Some(result), interrupt),
                    Err(RecvTimeoutError::Disconnected) => {
                        // It panicked: joined here, it does not take this thread along.
                        let _ = worker.join();
                        return (None, interrupt);
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let outcome = py.check_signals().and_then(|()| self.tell(&board));
                if let Err(error) = outcome {
                    // Whoever hears the first for the second time wants no answer; nor does a failed watcher.
                    if interrupt.is_some() || !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                        cancel.cancel();
                    } else {
                        cancel.finish();
                    }
                    interrupt.get_or_insert(error);
                }
            }
        });
        match (result, interrupt) {
            (Some(Ok(answer)), None) => Ok((answer, false)),
            (Some(Ok(answer)), Some(interrupt)) if interrupt.is_instance_of::<PyKeyboardInterrupt>(py) => {
                Ok((answer, true))
            }
            (Some(Err(Error::Stopped(_))) | Some(Ok(_)) | None, Some(interrupt)) => Err(interrupt),
            (Some(Err(error)), _) => Err(exception(&error)),
            (None, None) => {
                Err(PyRuntimeError::new_err("the computation broke an invariant of its own; please report it"))
            }
        }
    }

    fn tell(&self, board: &Board) -> PyResult<()> {
        if let (Some(watcher), Some(progress)) = (&self.watcher, board.take()) {
            watcher.call1(progress)?;
        }
        Ok(())
    }
}
