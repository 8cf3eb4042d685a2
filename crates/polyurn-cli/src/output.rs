//! Results to standard output or a file, notes to standard error, failures to exit codes.

use crate::args::OutputArgs;
use polyurn::counts::Labels;
use polyurn::io::{Cuts, formula_note};
pub use polyurn::shown::number;
use polyurn::{Error, Seed, Stop, Warning};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

/// Why a command did not finish.
#[derive(Debug)]
pub enum Failure {
    /// The library said no.
    Library(Error),
    /// A flag or file is wrong.
    Usage(String),
    /// Writing the result failed.
    Write(String),
    /// Stopped by a signal; says how to go on.
    Interrupted(String),
    /// Whoever read our output has gone.
    PipeClosed,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Library(error)
    }
}

impl Failure {
    /// Says what is wrong in one line (and a caret below for model text) and gives the exit code.
    pub fn report(&self) -> ExitCode {
        match self {
            Failure::PipeClosed => ExitCode::SUCCESS,
            Failure::Usage(message) => {
                say(&format!("error: {message}"));
                ExitCode::from(2)
            }
            Failure::Write(message) => {
                say(&format!("error: {message}"));
                ExitCode::from(1)
            }
            Failure::Interrupted(message) => {
                say(&format!("error: {message}"));
                ExitCode::from(crate::signals::exit_code())
            }
            Failure::Library(error) => {
                say(&format!("error: {}", one_line(&error.to_string())));
                if let Error::Model(error) = error
                    && let Some(place) = &error.place
                {
                    say(&place.caret());
                }
                match error {
                    Error::Stopped(Stop::Cancelled) => ExitCode::from(crate::signals::exit_code()),
                    error if error.is_usage() => ExitCode::from(2),
                    _ => ExitCode::from(1),
                }
            }
        }
    }
}

/// More threads than this, and than so many for each core, would take memory and bring nothing; results do not depend on them.
const MOST_THREADS: usize = 16;
const THREADS_PER_CORE: usize = 4;

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

/// One line on standard error. Nothing can be done when that fails.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Where results, notes and warnings go.
#[derive(Debug)]
pub struct Output {
    json: bool,
    quiet: bool,
    path: Option<PathBuf>,
    seed: Seed,
    is_seed_drawn: bool,
    /// Where columns of the data were cut into categories.
    cuts: Mutex<Vec<Cuts>>,
    /// Threads for independent runs.
    pub n_threads: usize,
}

impl Output {
    /// Checks the flags; a path that cannot be written fails here, before any work.
    pub fn open(args: &OutputArgs, inputs: &[&Path]) -> Result<Self, Failure> {
        if let Some(path) = &args.output {
            check_writable(path, inputs)?;
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let n_threads = args.threads.map_or(cores, usize::from).min(MOST_THREADS.max(THREADS_PER_CORE * cores));
        Ok(Output {
            json: args.json,
            quiet: args.quiet,
            path: args.output.clone(),
            seed: Seed(args.seed.unwrap_or_else(fresh_seed)),
            is_seed_drawn: args.seed.is_none(),
            cuts: Mutex::default(),
            n_threads,
        })
    }

    /// The file of `-o`, for a command that writes something else there than what it prints.
    pub fn take_path(&mut self) -> Option<PathBuf> {
        self.path.take()
    }

    /// Whether a JSON object is wanted.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether standard error is to stay silent.
    pub fn quiet(&self) -> bool {
        self.quiet
    }

    /// The seed, given or drawn.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Takes the seed of a run that is taken up again.
    pub fn take_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    /// Says which seed was drawn, where it matters and the result does not. What the clock has cut short is not repeated by it.
    pub fn note_drawn_seed(&self, is_timed: bool) {
        if self.is_seed_drawn && !self.json {
            let repeats = if is_timed || crate::signals::is_stopped() { "" } else { " repeats this" };
            self.note(&format!("seed drawn: --seed {}{repeats}", self.seed.0));
        }
    }

    /// Says warnings on standard error.
    pub fn warn(&self, warnings: &[Warning]) {
        self.warn_lines(&warnings.iter().map(ToString::to_string).collect::<Vec<_>>());
    }

    /// Says warnings that are text already.
    pub fn warn_lines(&self, lines: &[String]) {
        if !self.quiet {
            lines.iter().for_each(|line| say(&format!("warning: {}", one_line(line))));
        }
    }

    /// Says a note on standard error.
    pub fn note(&self, line: &str) {
        if !self.quiet {
            say(line);
        }
    }

    /// Says which labels a spreadsheet would take for formulas, where they are written to CSV.
    pub fn note_formulas<'l>(&self, labels: impl IntoIterator<Item = &'l Labels>) {
        if let Some(line) = formula_note(labels) {
            self.note(&format!("note: {line}"));
        }
    }

    /// Keeps where columns were cut, for the result.
    pub fn keep_cuts(&self, cuts: &[Cuts]) {
        *self.cuts.lock().unwrap_or_else(PoisonError::into_inner) = cuts.to_vec();
    }

    /// Where columns were cut.
    pub fn cuts(&self) -> Vec<Cuts> {
        self.cuts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lists in a result where columns were cut.
    pub fn add_cuts(&self, object: &mut Value) {
        let cuts = self.cuts();
        if !cuts.is_empty() {
            object["bins"] = serde_json::json!(cuts);
        }
    }

    /// Prints the JSON object or the text, whichever is wanted.
    pub fn result(&self, json: impl FnOnce() -> Value, text: impl FnOnce() -> String) -> Result<(), Failure> {
        let result = if self.json {
            let mut object = json();
            self.add_cuts(&mut object);
            format!("{object:#}\n")
        } else {
            text()
        };
        self.write(|out| out.write_all(result.as_bytes()))
    }

    /// Streams a result. A file is written beside its place and renamed when it is complete.
    pub fn write(&self, f: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
        match &self.path {
            None => {
                let stdout = std::io::stdout();
                let mut out = std::io::BufWriter::new(stdout.lock());
                f(&mut out).and_then(|()| out.flush()).map_err(|error| match error.kind() {
                    std::io::ErrorKind::BrokenPipe => Failure::PipeClosed,
                    _ => Failure::Write(format!("standard output: {error}")),
                })
            }
            Some(path) => {
                write_atomically(path, f).map_err(|error| Failure::Write(format!("{}: {error}", path.display())))
            }
        }
    }
}

/// Writes a file beside its place and renames it, so that a reader sees the old or the new one, never a part. Links are
/// followed; what is no regular file (a pipe, a device) is written to as it is.
pub fn write_atomically(path: &Path, f: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
    if is_special(path) {
        let mut out = std::io::BufWriter::new(std::fs::OpenOptions::new().write(true).open(path)?);
        f(&mut out)?;
        return out.flush();
    }
    let real = path.canonicalize();
    write_beside(real.as_deref().unwrap_or(path), f).map_err(plain)
}

fn write_beside(path: &Path, f: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> std::io::Result<()> {
    let permissions = permissions_of(path)?;
    // Nobody else may look into it before it is what it will be.
    let file = tempfile::NamedTempFile::new_in(folder_of(path))?;
    let _listed = Leftover::new(file.path());
    let mut out = std::io::BufWriter::new(file);
    f(&mut out)?;
    let file = out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.as_file().sync_all()?;
    file.as_file().set_permissions(permissions)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Files that are in the way when the program ends all of a sudden.
static LEFTOVERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is to be removed when the program ends before this is dropped.
#[derive(Debug)]
pub struct Leftover(PathBuf);

impl Leftover {
    /// Lists a file.
    pub fn new(path: &Path) -> Self {
        LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        Leftover(path.to_owned())
    }

    /// Removes all that are listed: the program is about to end.
    pub fn remove_all() {
        for path in LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// Those of the file at `path`, or those that a new file gets there.
fn permissions_of(path: &Path) -> std::io::Result<std::fs::Permissions> {
    if let Ok(metadata) = path.metadata() {
        return Ok(metadata.permissions());
    }
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    Ok(builder.tempfile_in(folder_of(path))?.as_file().metadata()?.permissions())
}

/// Something that exists and is neither a file nor a folder.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Whether two names mean one file, there or not.
pub fn are_same_place(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().or_else(|_| {
            Ok::<_, std::io::Error>(folder_of(path).canonicalize()?.join(path.file_name().unwrap_or_default()))
        })
    };
    match (place(one), place(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Tries to create a file beside the output, and refuses to write over an input.
pub fn check_writable(path: &Path, inputs: &[&Path]) -> Result<(), Failure> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::Usage(format!("{shown}: is a folder; give the name of a file")));
    }
    if let Ok(output) = path.canonicalize()
        && inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == output))
    {
        return Err(Failure::Usage(format!("{shown}: is an input too; write to another file")));
    }
    if is_special(path) {
        return Ok(());
    }
    if path.metadata().is_ok_and(|metadata| metadata.permissions().readonly()) {
        return Err(Failure::Usage(format!("{shown}: is read-only; write to another file, or make it writable")));
    }
    tempfile::NamedTempFile::new_in(folder_of(path)).map(drop).map_err(|error| {
        let why = plain(error);
        Failure::Usage(format!("{shown}: cannot write there: {why}; give a folder that exists and can be written"))
    })
}

/// An error without the name of the temporary file: that says nothing to anybody.
fn plain(error: std::io::Error) -> std::io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((why, _)) => std::io::Error::new(error.kind(), why),
        None => error,
    }
}

/// The command and its arguments as they were given, the program by its name.
pub fn command_line() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("polyurn".to_owned()).chain(words).collect()
}

/// A seed for a run that was given none: the random key that the standard library keeps for its hash maps.
fn fresh_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 11
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    /// Names the file that a child process writes to.
    const WRITER: &str = "POLYURN_TEST_WRITER";
    /// Two contents that cannot be mistaken for each other, of several writes each.
    const CONTENTS: [(u8, usize); 2] = [(b'a', 400_000), (b'b', 300_001)];

    /// Not a test by itself: the process that the next test kills.
    #[test]
    #[ignore = "a child process of another test"]
    fn writes_for_ever() {
        let Some(path) = std::env::var_os(WRITER) else { return };
        loop {
            for (byte, n) in CONTENTS {
                let parts = vec![byte; n];
                write_atomically(Path::new(&path), |out| parts.chunks(1000).try_for_each(|part| out.write_all(part)))
                    .unwrap();
            }
        }
    }

    #[test]
    fn a_process_that_is_killed_leaves_the_old_or_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, vec![b'a'; 400_000]).unwrap();
        let (mut n_seen, mut n_left) = ([0, 0], 0);
        // A congruential generator is random enough for moments.
        let mut state = 12_345u64;
        for _ in 0..100 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "output::tests::writes_for_ever", "--include-ignored"])
                .env(WRITER, &path)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_micros(10_000 + (state >> 33) % 20_000));
            child.kill().unwrap();
            child.wait().unwrap();
            let found = std::fs::read(&path).unwrap();
            let which = CONTENTS.iter().position(|&(byte, n)| found.len() == n && found.iter().all(|&it| it == byte));
            n_seen[which.expect("one of the two, whole")] += 1;
            // Killed in the middle of a write: its half-written file lies beside, under another name.
            for entry in std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
                if entry != path {
                    n_left += 1;
                    std::fs::remove_file(entry).unwrap();
                }
            }
        }
        assert!(n_seen[0] > 0 && n_seen[1] > 0 && n_left > 5, "{n_seen:?}, {n_left} in the middle of a write");
    }
}
