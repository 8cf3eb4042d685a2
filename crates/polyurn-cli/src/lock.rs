//! A lock beside a file, so that two processes do not write it in turn.

use crate::output::Leftover;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// A lock that is held until it is dropped, or until the process ends in whatever way.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    _file: File,
    _listed: Leftover,
}

impl Lock {
    /// Locks `path` by a file beside it, with `.lock` at the end of its name; `None` when another process holds it.
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
                return Ok(Some(Lock { _listed: Leftover::new(&path), path, _file: file }));
            }
        }
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
}
