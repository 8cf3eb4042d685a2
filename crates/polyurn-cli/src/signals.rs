//! Ctrl-C and SIGTERM: the first asks the run to stop, the second (or a second of waiting, or ten where a checkpoint has to be
//! written) ends the program.

use crate::output::Leftover;
use polyurn::control::Cancel;
#[cfg(unix)]
use signal_hook::consts::SIGXFSZ;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

static RECEIVED: AtomicI32 = AtomicI32::new(0);
static CANCEL: OnceLock<Cancel> = OnceLock::new();
static ANSWERS: AtomicBool = AtomicBool::new(false);
static MIGHT_RESUME: AtomicBool = AtomicBool::new(false);
static CHECKPOINT: Mutex<Option<PathBuf>> = Mutex::new(None);

/// How long a run may take to stop by itself. Results are written by renaming, so ending the program loses nothing but
/// the work.
const GRACE: Duration = Duration::from_millis(900);

/// The same for one that writes its state down first. Work stops as soon; but many particles take their time to be written.
const GRACE_TO_WRITE: Duration = Duration::from_secs(10);

/// The switch that signals turn.
pub fn cancel() -> Cancel {
    CANCEL.get_or_init(Cancel::default).clone()
}

/// From now on a signal makes the run answer with what is finished: it has no checkpoint to keep that. `might_resume` says
/// whether it could have had one.
pub fn answer_when_stopped(might_resume: bool) {
    ANSWERS.store(true, Ordering::SeqCst);
    MIGHT_RESUME.store(might_resume, Ordering::SeqCst);
}

/// The file that the run's state goes to when it is stopped; none once the run is over.
pub fn keeps_state_in(path: Option<&Path>) {
    *CHECKPOINT.lock().unwrap_or_else(PoisonError::into_inner) = path.map(Path::to_owned);
}

fn checkpoint() -> Option<PathBuf> {
    CHECKPOINT.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether a run with a checkpoint could go on later.
pub fn might_resume() -> bool {
    MIGHT_RESUME.load(Ordering::SeqCst)
}

/// Whether a signal came.
pub fn is_stopped() -> bool {
    RECEIVED.load(Ordering::SeqCst) != 0
}

/// Starts listening. Where no thread can be started for that, signals do what they do to any program.
pub fn listen() {
    outlive_full_files();
    let (sender, receiver) = channel::<Signals>();
    let listener = std::thread::Builder::new().spawn(move || {
        let Ok(mut signals) = receiver.recv() else { return };
        for signal in signals.forever() {
            if RECEIVED.swap(signal, Ordering::SeqCst) != 0 {
                end(signal);
            }
            if ANSWERS.load(Ordering::SeqCst) {
                cancel().finish()
            } else {
                cancel().cancel()
            }
            let waits = std::thread::Builder::new().spawn(move || {
                std::thread::sleep(GRACE);
                if let Some(path) = checkpoint() {
                    let path = path.display();
                    crate::output::say(&format!("stopping: {path} is being written; a second signal ends at once"));
                    std::thread::sleep(GRACE_TO_WRITE - GRACE);
                }
                end(signal);
            });
            if waits.is_err() {
                end(signal);
            }
        }
    });
    // They are caught once there is somebody to hear of them.
    if listener.is_ok()
        && let Ok(signals) = Signals::new([SIGINT, SIGTERM])
    {
        let _ = sender.send(signals);
    }
}

/// A file that would grow beyond the limit of the system kills who writes it, unless the signal is caught: then the write fails and
/// says why.
fn outlive_full_files() {
    // Without the handler the program ends there as it would have.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default());
}

/// Ends the program at once.
fn end(signal: i32) -> ! {
    match checkpoint().map(|path| (path.exists(), path)) {
        None => crate::output::say("stopped"),
        Some((true, path)) => {
            let path = path.display();
            crate::output::say(&format!(
                "stopped; {path} holds an earlier state: repeat the command to go on from there"
            ));
        }
        Some((false, _)) => crate::output::say("stopped before anything was written; repeat the command to start anew"),
    }
    Leftover::remove_all();
    std::process::exit(128 + signal);
}

/// The exit code of a stop: 130 for Ctrl-C, 143 for SIGTERM.
pub fn exit_code() -> u8 {
    match RECEIVED.load(Ordering::SeqCst) {
        0 => 130,
        signal => 128u8.saturating_add(signal as u8),
    }
}
