//! Checkpoint files of unfinished runs: a magic word, a checksum, the seed, the state; and a lock, so that two processes do
//! not write one in turn. Whoever runs engines writes the files; what is in them is the same for all.

use crate::error::{Error, Result};
use crate::seed::Seed;
use crate::warning::Warning;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"POLYURN2";

/// The bytes of a file with the seed of a run and its state.
pub fn seal(seed: Seed, state: &[u8]) -> Vec<u8> {
    let seed = seed.0.to_le_bytes();
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&seed);
    checksum.update(state);
    [MAGIC, &checksum.finalize().to_le_bytes()[..], &seed, state].concat()
}

/// Seed and state in the file at `path`; none when there is no file.
///
/// # Errors
/// A file that cannot be read, is no checkpoint, or is damaged.
pub fn read(path: &Path) -> Result<Option<(Seed, Vec<u8>)>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { path: path.to_owned(), source }),
    };
    open(&bytes, path).map(Some)
}

/// Seed and state in the bytes of a checkpoint that is called `path`.
///
/// # Errors
/// What is no checkpoint, or is damaged.
pub fn open(bytes: &[u8], path: &Path) -> Result<(Seed, Vec<u8>)> {
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
    Ok((Seed(u64::from_le_bytes(*seed)), state.to_vec()))
}

/// Whether more time would go on from the checkpoint of a run that said this, so that it is to be kept: the time limit cut the run short,
/// or the file holds finished runs that were not asked for this time.
pub fn is_needed(warnings: &[Warning]) -> bool {
    warnings.iter().any(|warning| {
        matches!(
            warning,
            Warning::TimeUp { .. }
                | Warning::StartsCut { .. }
                | Warning::StreamCut { .. }
                | Warning::StreamStopped { .. }
                | Warning::RunsKept { .. }
        )
    })
}

/// A lock that is held until it is dropped, or until the process ends in whatever way.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Locks `path` by a file beside it, with `.lock` at the end of its name; `None` when another process holds it.
    ///
    /// # Errors
    /// When there can be no such file.
    pub fn beside(path: &Path) -> io::Result<Option<Self>> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        loop {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Its last owner may have removed it in between; then the next one would lock another file.
            if is_same(&file, &path) {
                return Ok(Some(Lock { path, _file: file }));
            }
        }
    }

    /// The file that it holds.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before it is unlocked, so that whoever locks it then sees that it is gone. A file that stays is harmless.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number =
        |metadata: io::Result<std::fs::Metadata>| metadata.map(|metadata| (metadata.dev(), metadata.ino())).ok();
    number(file.metadata()).is_some_and(|own| number(path.metadata()) == Some(own))
}

#[cfg(not(unix))]
fn is_same(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_once_and_free_again_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        let lock = Lock::beside(&path).unwrap();
        assert!(lock.is_some());
        assert!(Lock::beside(&path).unwrap().is_none());
        drop(lock);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // One that a killed process left behind is no lock.
        std::fs::write(folder.path().join("run.lock"), "").unwrap();
        assert!(Lock::beside(&path).unwrap().is_some());
    }

    #[test]
    fn a_flipped_byte_or_a_missing_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run");
        assert!(read(&path).unwrap().is_none());
        let good = seal(Seed(77), b"some state");
        std::fs::write(&path, &good).unwrap();
        assert_eq!(read(&path).unwrap(), Some((Seed(77), b"some state".to_vec())));
        for ix in 0..good.len() {
            let mut bad = good.clone();
            bad[ix] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(read(&path).is_err(), "byte {ix}");
            std::fs::write(&path, &good[..ix]).unwrap();
            assert!(read(&path).is_err(), "cut at {ix}");
        }
    }
}
