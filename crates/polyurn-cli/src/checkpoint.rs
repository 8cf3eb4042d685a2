//! Checkpoint files: a magic word, a checksum, the seed, the state. Written beside and renamed.

use crate::lock::Lock;
use crate::output::{Failure, check_writable, write_atomically};
use polyurn::{Error, Result, Seed};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"POLYURN2";

/// A file that holds the state of an unfinished run. While it is open, no other process can open it.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    /// Of the run: one that was drawn is taken up with the state.
    seed: Seed,
    _lock: Lock,
}

impl CheckpointFile {
    /// Checks that the file can be written, and that no other run is using it.
    pub fn open(path: &Path, seed: Seed) -> std::result::Result<Self, Failure> {
        check_writable(path, &[])?;
        let shown = path.display();
        match Lock::beside(path) {
            Ok(Some(lock)) => {
                crate::signals::keeps_state_in(Some(path));
                Ok(CheckpointFile { path: path.to_owned(), seed, _lock: lock })
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
        Ok(read(&self.path)?.map(|(_, state)| state))
    }

    /// The seed of the run that was saved there, if there is a file.
    pub fn seed_in(path: &Path) -> Result<Option<Seed>> {
        Ok(read(path)?.map(|(seed, _)| seed))
    }

    /// Stores a state in place of the last one.
    pub fn save(&self, state: &[u8]) -> Result<()> {
        let seed = self.seed.0.to_le_bytes();
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&seed);
        checksum.update(state);
        write_atomically(&self.path, |out| {
            out.write_all(MAGIC)?;
            out.write_all(&checksum.finalize().to_le_bytes())?;
            out.write_all(&seed)?;
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

impl Drop for CheckpointFile {
    fn drop(&mut self) {
        crate::signals::keeps_state_in(None);
    }
}

/// Seed and state.
fn read(path: &Path) -> Result<Option<(Seed, Vec<u8>)>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
    };
    let refuse = |what: &str| Err(Error::Checkpoint(format!("{}: {what}", path.display())));
    let Some(body) = bytes.strip_prefix(MAGIC) else {
        return refuse("is no checkpoint of this version; give a new file");
    };
    let damaged = "is damaged, its checksum does not fit; remove the file to start anew";
    let Some((checksum, body)) = body.split_at_checked(4) else { return refuse(damaged) };
    if crc32fast::hash(body).to_le_bytes() != checksum {
        return refuse(damaged);
    }
    let Some((seed, state)) = body.split_first_chunk() else { return refuse(damaged) };
    Ok(Some((Seed(u64::from_le_bytes(*seed)), state.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flipped_byte_or_a_missing_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let file = CheckpointFile::open(&path, Seed(77)).unwrap();
        assert!(file.load().unwrap().is_none());
        assert_eq!(CheckpointFile::seed_in(&path).unwrap(), None);
        file.save(b"some state").unwrap();
        assert_eq!(file.load().unwrap().unwrap(), b"some state");
        assert_eq!(CheckpointFile::seed_in(&path).unwrap(), Some(Seed(77)));
        let good = std::fs::read(&path).unwrap();
        assert!(
            matches!(CheckpointFile::open(&path, Seed(1)), Err(Failure::Usage(message)) if message.contains("another run"))
        );
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
