//! Progress on a terminal, and checkpoints to a file.

use crate::args::{CheckpointArgs, LimitArgs, OutputArgs};
use crate::checkpoint::CheckpointFile;
use crate::output::{Failure, Output, are_same_place, check_writable, say};
use indicatif::{ProgressBar, ProgressStyle};
use polyurn::control::{Control, Observer, Progress};
use polyurn::{Error, Result, Warning};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Watches a run for the command line.
#[derive(Debug)]
struct Watcher {
    bar: Option<ProgressBar>,
    checkpoint: Option<(CheckpointFile, Duration)>,
    last_drawn: Instant,
    started: Instant,
    /// What is being done, and the largest share of it so far: a bar goes back only where other work begins.
    stage: String,
    share: f64,
    is_quiet: bool,
    /// Whether it was said that a state could not be written.
    has_warned: bool,
}

impl Watcher {
    fn new(output: &Output, checkpoint: Option<(CheckpointFile, Duration)>) -> Self {
        Watcher {
            bar: bar(output),
            checkpoint,
            last_drawn: Instant::now() + PATIENCE,
            started: Instant::now(),
            stage: String::new(),
            share: 0.0,
            is_quiet: output.quiet(),
            has_warned: false,
        }
    }
}

/// Time before the bar appears: a run that is over by then needs none.
const PATIENCE: Duration = Duration::from_millis(400);
/// Time between two drawings.
const REDRAW: Duration = Duration::from_millis(100);

/// Refuses a checkpoint that is an input or the output too. A seed that was not given is that of the run to take up.
pub fn check_checkpoint(
    checkpoint: &CheckpointArgs,
    args: &OutputArgs,
    inputs: &[&Path],
    output: &mut Output,
) -> std::result::Result<(), Failure> {
    let Some(path) = &checkpoint.checkpoint else { return Ok(()) };
    check_writable(path, inputs)?;
    if args.output.as_ref().is_some_and(|output| are_same_place(path, output)) {
        return Err(Failure::Usage(format!("{}: is both checkpoint and output; give two files", path.display())));
    }
    if args.seed.is_none()
        && let Some(seed) = CheckpointFile::seed_in(path)?
    {
        output.take_seed(seed);
    }
    Ok(())
}

impl CheckpointArgs {
    /// Removes the checkpoint of a job that is done. One that the time limit cut short keeps it: more time goes on from it.
    /// So does one that holds finished runs which were not asked for this time.
    pub fn remove_unless_needed(&self, warnings: &[Warning]) {
        if !polyurn::checkpoint::is_needed(warnings) {
            self.remove();
        }
    }

    /// Removes the checkpoint.
    pub fn remove(&self) {
        if let Some(path) = &self.checkpoint {
            CheckpointFile::remove(path);
        }
    }

    /// Where a signal stopped the run: what is kept of it.
    pub fn say_how_to_go_on(
        &self,
        args: &OutputArgs,
        result: std::result::Result<(), Failure>,
    ) -> std::result::Result<(), Failure> {
        match result {
            Ok(()) if crate::signals::is_stopped() => {
                if !args.quiet {
                    say(&format!("stopped on request: the answer is from what was finished{}", how_to_resume()));
                }
                Ok(())
            }
            Err(Failure::Library(Error::Stopped(_))) if crate::signals::is_stopped() => {
                Err(Failure::Interrupted(match &self.checkpoint {
                    Some(path) if path.exists() => {
                        let path = path.display();
                        format!("stopped on request; what is finished is in {path}: repeat the command to go on")
                    }
                    Some(_) => {
                        "stopped on request before anything was finished; repeat the command to start anew".into()
                    }
                    None => format!("stopped on request before anything was finished{}", how_to_resume()),
                }))
            }
            Err(Failure::Library(error @ Error::Io { .. })) if crate::signals::is_stopped() => {
                Err(Failure::Interrupted(format!(
                    "stopped on request; what was done since its last state is lost: {error}"
                )))
            }
            other => other,
        }
    }
}

fn how_to_resume() -> &'static str {
    if crate::signals::might_resume() { "; with --checkpoint FILE a run can go on later" } else { "" }
}

/// The control of reading, and of other work without limits: signals and progress bar.
pub fn watched(output: &Output) -> Control<'static> {
    let watcher = Watcher::new(output, None);
    Control::new(watcher).with_cancel(crate::signals::cancel())
}

/// One bar for several jobs at once.
#[derive(Debug)]
pub struct SharedBar {
    watcher: Mutex<Watcher>,
    /// How far each job has come.
    shares: Vec<Mutex<f64>>,
}

impl SharedBar {
    /// For so many jobs.
    pub fn new(output: &Output, n_jobs: usize) -> Self {
        let watcher = Watcher::new(output, None);
        SharedBar { watcher: Mutex::new(watcher), shares: (0..n_jobs).map(|_| Mutex::new(0.0)).collect() }
    }

    /// What watches one of them.
    pub fn job(&self, ix: usize) -> impl Observer + '_ {
        JobOfBar { bar: self, ix }
    }
}

struct JobOfBar<'a> {
    bar: &'a SharedBar,
    ix: usize,
}

impl Observer for JobOfBar<'_> {
    fn progress(&mut self, progress: Progress<'_>) {
        let get = |share: &Mutex<f64>| share.lock().map_or(0.0, |share| *share);
        if let Ok(mut share) = self.bar.shares[self.ix].lock() {
            // Pilots come before the work itself: never back.
            *share = share.max(progress.fraction);
        }
        // Who cannot draw at once leaves that to the others.
        if let Ok(mut watcher) = self.bar.watcher.try_lock() {
            let fraction = self.bar.shares.iter().map(get).sum::<f64>() / self.bar.shares.len() as f64;
            watcher.progress(Progress { stage: "curve", fraction });
        }
    }
}

impl Drop for JobOfBar<'_> {
    fn drop(&mut self) {
        if let Ok(mut share) = self.bar.shares[self.ix].lock() {
            *share = 1.0;
        }
    }
}

/// A bar, if somebody sees it.
fn bar(output: &Output) -> Option<ProgressBar> {
    (!output.quiet() && std::io::stderr().is_terminal()).then(|| {
        let style = ProgressStyle::with_template("{prefix} {bar:40} {percent:>3} %  {msg}");
        ProgressBar::new(10_000).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    })
}

/// The control of a run: signals, time limit, progress bar, checkpoint. One that could have a checkpoint and has none answers
/// with what is finished when it is stopped.
pub fn control(
    output: &Output,
    limits: &LimitArgs,
    checkpoint: Option<&CheckpointArgs>,
) -> std::result::Result<Control<'static>, Failure> {
    if checkpoint.is_some_and(|args| args.checkpoint.is_none()) {
        crate::signals::answer_when_stopped(true);
    }
    let checkpoint = match checkpoint.and_then(|args| args.checkpoint.as_ref().map(|path| (path, args))) {
        None => None,
        Some((path, args)) => Some((CheckpointFile::open(path, output.seed())?, args.checkpoint_every)),
    };
    let deadline = limits.time_limit.map(|limit| Instant::now() + limit);
    let watcher = Watcher::new(output, checkpoint);
    Ok(Control::new(watcher).with_cancel(crate::signals::cancel()).with_deadline(deadline))
}

/// What is left at the pace of the whole so far: stages differ in theirs, so a pace of the last moments jumps about.
fn time_left(elapsed: Duration, share: f64) -> String {
    // Too early to tell.
    if share < 0.01 {
        return String::new();
    }
    let left = (elapsed.as_secs_f64() * (1.0 - share) / share).ceil() as u64;
    match left {
        0..60 => format!("{left} s left"),
        60..3600 => format!("{} min {} s left", left / 60, left % 60),
        _ => format!("{} h {} min left", left / 3600, left / 60 % 60),
    }
}

impl Observer for Watcher {
    fn progress(&mut self, progress: Progress<'_>) {
        // Nobody knows how far a stream has come: no bar.
        let Some(bar) = self.bar.as_ref().filter(|_| !progress.fraction.is_nan()) else { return };
        let now = Instant::now();
        if now > self.last_drawn + REDRAW {
            self.last_drawn = now;
            let share = progress.fraction.clamp(0.0, 1.0);
            if self.stage != progress.stage {
                self.stage = progress.stage.to_owned();
                if share < self.share {
                    (self.share, self.started) = (0.0, now);
                }
            }
            self.share = self.share.max(share);
            let share = self.share;
            bar.set_prefix(progress.stage.to_owned());
            bar.set_message(time_left(self.started.elapsed(), share));
            bar.set_position((share * 10_000.0) as u64);
        }
    }

    fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
        match &self.checkpoint {
            Some((file, _)) => file.load(),
            None => Ok(None),
        }
    }

    fn checkpoint_name(&self) -> Option<String> {
        self.checkpoint.as_ref().map(|(file, _)| file.name())
    }

    fn checkpoint_interval(&self) -> Option<Duration> {
        self.checkpoint.as_ref().map(|(_, interval)| *interval)
    }

    fn save_checkpoint(&mut self, state: &[u8]) -> Result<()> {
        let Some((file, _)) = &self.checkpoint else { return Ok(()) };
        match file.save(state) {
            // Hours of work are not thrown away because the disk is full for a while. Where it ends here it has to be said as an error.
            Err(error) if !crate::signals::is_stopped() => {
                if !std::mem::replace(&mut self.has_warned, true) && !self.is_quiet {
                    say(&format!(
                        "warning: {error}; the run goes on, and its state will be written when there is room"
                    ));
                }
                Ok(())
            }
            saved => saved,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_time_so_far() {
        let left = |seconds: u64, share: f64| time_left(Duration::from_secs(seconds), share);
        assert_eq!(left(10, 0.5), "10 s left");
        assert_eq!(left(100, 0.25), "5 min 0 s left");
        assert_eq!(left(3600, 0.1), "9 h 0 min left");
        assert_eq!((left(10, 1.0).as_str(), left(10, 0.001).as_str()), ("0 s left", ""));
    }
}
