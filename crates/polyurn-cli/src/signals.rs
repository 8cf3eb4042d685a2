//! Ctrl-C and SIGTERM: the first asks the run to stop, the second (or a second of waiting) ends the program.

use crate::output::Leftover;
use polyurn::control::Cancel;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

static RECEIVED: AtomicI32 = AtomicI32::new(0);
static CANCEL: OnceLock<Cancel> = OnceLock::new();
static ANSWERS: AtomicBool = AtomicBool::new(false);
static MIGHT_RESUME: AtomicBool = AtomicBool::new(false);

/// How long a run may take to stop by itself. Results are written by renaming, so ending the program loses nothing but
/// the work.
const GRACE: Duration = Duration::from_millis(900);

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

/// Whether a run with a checkpoint could go on later.
pub fn might_resume() -> bool {
    MIGHT_RESUME.load(Ordering::SeqCst)
}

/// Whether a signal came.
pub fn is_stopped() -> bool {
    RECEIVED.load(Ordering::SeqCst) != 0
}

/// Starts listening.
pub fn listen() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if RECEIVED.swap(signal, Ordering::SeqCst) != 0 {
                end(signal);
            }
            if ANSWERS.load(Ordering::SeqCst) {
                cancel().finish()
            } else {
                cancel().cancel()
            }
            std::thread::spawn(move || {
                std::thread::sleep(GRACE);
                end(signal);
            });
        }
    });
}

/// Ends the program at once.
fn end(signal: i32) -> ! {
    crate::output::say("stopped");
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
