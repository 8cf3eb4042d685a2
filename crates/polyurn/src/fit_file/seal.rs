//! The seal of a fit file: a digest of all that stands before it, at the very end, in the comment of the zip archive.
//!
//! A checksum for each entry would leave the headers between them unguarded. One digest over the whole file refuses any
//! changed byte and any missing end before a single number is believed.

use crate::error::{Error, Result};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{Read, Seek, SeekFrom};

/// What the comment of the archive begins with.
const WORDS: &str = "polyurn fit, sha256 of all before: ";
/// Digits of a digest.
const N_DIGITS: usize = 64;
/// What every zip archive with an entry begins with.
const ZIP: [u8; 4] = *b"PK\x03\x04";

/// A comment without its digest yet, as long as the real one.
pub(super) fn placeholder() -> String {
    format!("{WORDS}{}", "0".repeat(N_DIGITS))
}

/// Writes the digest over the placeholder at the end of an archive.
pub(super) fn seal(archive: &mut [u8]) {
    let (before, digits) = archive.split_at_mut(archive.len() - N_DIGITS);
    digits.copy_from_slice(hex(&Sha256::digest(before)).as_bytes());
}

/// Refuses what is no fit file, and a fit file that is not as it was written.
pub(super) fn check(input: &mut (impl Read + Seek), name: &str) -> Result<()> {
    let unreadable = |source| Error::Io { path: name.into(), source };
    let mut first = Vec::new();
    input.by_ref().take(ZIP.len() as u64).read_to_end(&mut first).map_err(unreadable)?;
    if first != ZIP {
        return Err(Error::data(name, "is no fit; give a file that `polyurn fit -o` wrote"));
    }
    let n_bytes = input.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let n_end = (WORDS.len() + N_DIGITS) as u64;
    if n_bytes < n_end + ZIP.len() as u64 {
        return Err(Error::data(name, "is too short for a fit: its end is missing; copy it again or fit anew"));
    }
    let mut end = vec![0; n_end as usize];
    input.seek(SeekFrom::Start(n_bytes - n_end)).map_err(unreadable)?;
    input.read_exact(&mut end).map_err(unreadable)?;
    let (words, digits) = end.split_at(WORDS.len());
    if words != WORDS.as_bytes() {
        let message = "has no seal at its end: it is no fit, or its end is missing; copy it again or fit anew";
        return Err(Error::data(name, message));
    }
    input.rewind().map_err(unreadable)?;
    let found = digest(&mut input.take(n_bytes - N_DIGITS as u64)).map_err(unreadable)?;
    if found.as_bytes() != digits {
        let message = "is damaged, its digest does not fit; copy it again or fit anew";
        return Err(Error::data(name, message));
    }
    input.rewind().map_err(unreadable)
}

/// The SHA-256 digest of all that can be read, in hexadecimal digits, as `sha256sum` prints it.
///
/// # Errors
/// When reading fails.
pub fn digest(input: &mut impl Read) -> std::io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(hex(&hasher.finalize())),
            Ok(n_read) => hasher.update(&buffer[..n_read]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_sha256sum() {
        let digest = digest(&mut &b"abc"[..]).unwrap();
        assert_eq!(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
