//! The file of `--checkpoint`, written beside and renamed.

use crate::output::{Failure, Leftover, check_writable, write_atomically};
use polyurn::checkpoint::{self, Lock};
use polyurn::{Error, Result, Seed};
use std::path::{Path, PathBuf};

/// A file that holds the state of an unfinished run. While it is open, no other process can open it.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    /// Of the run: one that was drawn is taken up with the state.
    seed: Seed,
    _lock: Lock,
    /// Its file, if the program ends all of a sudden.
    _listed: Leftover,
}

impl CheckpointFile {
    /// Checks that the file can be written, and that no other run is using it.
    pub fn open(path: &Path, seed: Seed) -> std::result::Result<Self, Failure> {
        check_writable(path, &[])?;
        let shown = path.display();
        match Lock::beside(path) {
            Ok(Some(lock)) => {
                crate::signals::keeps_state_in(Some(path));
                let listed = Leftover::new(lock.path());
                Ok(CheckpointFile { path: path.to_owned(), seed, _lock: lock, _listed: listed })
            }
            Ok(None) => Err(Failure::Usage(format!(
                "{shown}: another run is using this checkpoint; wait until it is done, or give another file"
            ))),
            Err(error) => Err(Failure::Usage(format!("{shown}: cannot be locked: {error}; give a file elsewhere"))),
        }
    }

    /// Its path.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The saved state, or `None` when there is no file.
    pub fn load(&self) -> Result<Option<Vec<u8>>> {
        Ok(checkpoint::read(&self.path)?.map(|(_, state)| state))
    }

    /// The seed of the run that was saved there, if there is a file.
    pub fn seed_in(path: &Path) -> Result<Option<Seed>> {
        Ok(checkpoint::read(path)?.map(|(seed, _)| seed))
    }

    /// Stores a state in place of the last one.
    pub fn save(&self, state: &[u8]) -> Result<()> {
        write_atomically(&self.path, |out| out.write_all(&checkpoint::seal(self.seed, state)))
            .map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    /// Removes the file once the run is finished.
    pub fn remove(path: &Path) {
        // A file that cannot be removed is harmless: it is refused by any other problem and repeats this answer.
        let _ = std::fs::remove_file(path);
    }
}

impl Drop for CheckpointFile {
    fn drop(&mut self) {
        crate::signals::keeps_state_in(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_one_run_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let file = CheckpointFile::open(&path, Seed(77)).unwrap();
        assert!(file.load().unwrap().is_none());
        assert_eq!(CheckpointFile::seed_in(&path).unwrap(), None);
        file.save(b"some state").unwrap();
        assert_eq!(file.load().unwrap().unwrap(), b"some state");
        assert_eq!(CheckpointFile::seed_in(&path).unwrap(), Some(Seed(77)));
        assert!(
            matches!(CheckpointFile::open(&path, Seed(1)), Err(Failure::Usage(message)) if message.contains("another run"))
        );
    }
}
