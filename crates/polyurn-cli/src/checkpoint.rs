//! Checkpoint files: a magic word, a checksum, the state. Written beside and renamed.

use crate::lock::Lock;
use crate::output::{Failure, check_writable, write_atomically};
use polyurn::{Error, Result};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"POLYURN1";

/// A file that holds the state of an unfinished run. While it is open, no other process can open it.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    _lock: Lock,
}

impl CheckpointFile {
    /// Checks that the file can be written, and that no other run is using it.
    pub fn open(path: &Path) -> std::result::Result<Self, Failure> {
        check_writable(path, &[])?;
        let shown = path.display();
        match Lock::beside(path) {
            Ok(Some(lock)) => Ok(CheckpointFile { path: path.to_owned(), _lock: lock }),
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
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Io { path: self.path.clone(), source }),
        };
        let damaged = |what: &str| {
            Err(Error::Checkpoint(format!("{}: {what}; remove the file to start anew", self.path.display())))
        };
        let Some((header, state)) = bytes.split_at_checked(12) else { return damaged("is too short") };
        if &header[..8] != MAGIC {
            return damaged("is no checkpoint of this version");
        }
        if crc32fast::hash(state).to_le_bytes() != header[8..] {
            return damaged("is damaged, its checksum does not fit");
        }
        Ok(Some(state.to_vec()))
    }

    /// Stores a state in place of the last one.
    pub fn save(&self, state: &[u8]) -> Result<()> {
        write_atomically(&self.path, |out| {
            out.write_all(MAGIC)?;
            out.write_all(&crc32fast::hash(state).to_le_bytes())?;
            out.write_all(state)
        })
        .map_err(|source| Error::Io { path: self.path.clone(), source })
    }

    /// Removes the file once the run is finished.
    pub fn remove(path: &Path) {
        // A file that cannot be removed is harmless: it is refused by any other problem and repeats this answer.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_byte_or_a_missing_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let file = CheckpointFile::open(&path).unwrap();
        assert!(file.load().unwrap().is_none());
        file.save(b"some state").unwrap();
        assert_eq!(file.load().unwrap().unwrap(), b"some state");
        let good = std::fs::read(&path).unwrap();
        assert!(matches!(CheckpointFile::open(&path), Err(Failure::Usage(message)) if message.contains("another run")));
        for ix in 0..good.len() {
            let mut bad = good.clone();
            bad[ix] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(file.load().is_err(), "byte {ix}");
            std::fs::write(&path, &good[..ix]).unwrap();
            assert!(file.load().is_err(), "cut at {ix}");
        }
    }
}
