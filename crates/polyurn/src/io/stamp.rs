//! Whether a file is still what it was.

use crate::error::{Error, Result};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Length and time of the last change of a file, to tell later whether somebody wrote to it. All that are no regular files are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    path: PathBuf,
    seen: (u64, Option<SystemTime>),
}

impl Stamp {
    /// That of the file at `path`, now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Self::of_open(&file, path)
    }

    pub(super) fn of_open(file: &File, path: &Path) -> Result<Self> {
        let metadata = file.metadata().map_err(|source| Error::Io { path: path.to_owned(), source })?;
        // A pipe changes whenever somebody writes to it.
        let seen = if metadata.is_file() { (metadata.len(), metadata.modified().ok()) } else { (0, None) };
        Ok(Stamp { path: path.to_owned(), seen })
    }

    /// Its length; 0 where that means nothing.
    pub(super) fn n_bytes(&self) -> u64 {
        self.seen.0
    }

    /// Refuses what was read if the file is not what it was: rows may be missing, or be of two versions. What somebody else is
    /// still writing may also look like an error in the file, so this comes before what a reader says.
    ///
    /// # Errors
    /// When it has changed, or is gone.
    pub fn check(&self) -> Result<()> {
        self.compare(&Self::of(&self.path)?)
    }

    pub(super) fn check_open(&self, file: &File) -> Result<()> {
        self.compare(&Self::of_open(file, &self.path)?)
    }

    fn compare(&self, now: &Self) -> Result<()> {
        if self.seen == now.seen {
            return Ok(());
        }
        let message = "the file changed while it was read; wait until it is written, and repeat the command";
        Err(Error::data(self.path.display().to_string(), message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{ReadOptions, read_watched};
    use std::io::Write;

    #[test]
    fn a_file_that_grows_while_it_is_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        for (more, is_error_of_its_own) in [("1,2\n", false), ("1", true)] {
            let rows: String = (0..60_000).map(|ix| format!("{},{}\n", ix % 7, ix % 11)).collect();
            std::fs::write(&path, format!("x,y\n{rows}")).unwrap();
            let mut writer = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            let mut n_looks = 0;
            let message = read_watched(&path, &ReadOptions::default(), &mut |_| {
                n_looks += 1;
                if n_looks == 1 {
                    writer.write_all(more.as_bytes()).unwrap();
                }
                Ok(())
            })
            .unwrap_err()
            .to_string();
            assert!(message.contains("a.csv: the file changed while it was read"), "{message}");
            // Read once more it is whole, or in error by itself.
            assert_eq!(read_watched(&path, &ReadOptions::default(), &mut |_| Ok(())).is_err(), is_error_of_its_own);
        }
    }

    #[test]
    fn between_two_looks_a_file_may_change_or_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "x\n1\n").unwrap();
        let stamp = Stamp::of(&path).unwrap();
        assert!(stamp.check().is_ok());
        std::fs::write(&path, "x\n1\n2\n").unwrap();
        assert!(stamp.check().unwrap_err().to_string().contains("changed while"));
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(stamp.check(), Err(Error::Io { .. })));
    }
}
