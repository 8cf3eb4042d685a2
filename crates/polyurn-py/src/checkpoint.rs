//! The file that keeps the state of an unfinished run, as the command line's `--checkpoint` does; each takes up what the other left.

use crate::errors::OrException;
use polyurn::checkpoint::{self, Lock};
use polyurn::{Error, Result, Seed};
use pyo3::prelude::*;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that is written now and then. While it is open, no other run can open it.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    seed: Seed,
    /// Time from one state to the next.
    pub every: Duration,
    _lock: Lock,
}

impl CheckpointFile {
    /// Opens it.
    ///
    /// # Errors
    /// When another run has it, or it cannot be locked.
    pub fn open(path: &Path, seed: Seed, every: Duration) -> Result<Self> {
        let shown = path.display();
        match Lock::beside(path) {
            Ok(Some(lock)) => Ok(CheckpointFile { path: path.to_owned(), seed, every, _lock: lock }),
            Ok(None) => Err(Error::Setting(format!(
                "{shown}: another run is using this checkpoint; wait until it is done, or give another file"
            ))),
            Err(error) => Err(Error::Setting(format!("{shown}: cannot be locked: {error}; give a file elsewhere"))),
        }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The saved state.
    ///
    /// # Errors
    /// A file that is no checkpoint.
    pub fn load(&self) -> Result<Option<Vec<u8>>> {
        Ok(checkpoint::read(&self.path)?.map(|(_, state)| state))
    }

    /// Stores a state: a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, state: &[u8]) -> Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".new");
        let beside = PathBuf::from(name);
        let write = || {
            let mut file = File::create(&beside)?;
            file.write_all(&checkpoint::seal(self.seed, state))?;
            file.sync_all()?;
            std::fs::rename(&beside, &self.path)
        };
        write().map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

/// Removes the file of a run that is done.
pub fn remove(path: Option<&Path>) {
    if let Some(path) = path {
        // One that cannot be removed is harmless: it is refused by any other problem and repeats this answer.
        let _ = std::fs::remove_file(path);
    }
}

/// The seed of the run whose state is in a file; none when there is no file.
#[pyfunction]
pub fn checkpoint_seed(path: PathBuf) -> PyResult<Option<u64>> {
    Ok(checkpoint::read(&path).or_exception()?.map(|(seed, _)| seed.0))
}
