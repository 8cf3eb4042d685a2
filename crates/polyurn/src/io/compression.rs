//! Compression, seen through: gzip and Zstandard are told by their first bytes, whatever the file is called.

use crate::error::{Error, Result};
use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

/// Enough of a file to tell what it is.
const N_FIRST_BYTES: u64 = 10;

/// Ways to compress a file that are seen through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Compression {
    /// gzip, one member or several.
    Gzip,
    /// Zstandard, one frame or several.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        })
    }
}

/// The input as it was before it was compressed, and how it was compressed.
///
/// # Errors
/// When the input cannot be read, or is of a kind that is known not to be text.
pub(super) fn see_through<'a>(
    mut input: impl BufRead + 'a,
    source: &str,
    most: u64,
) -> Result<(Box<dyn BufRead + 'a>, Option<Compression>)> {
    let mut first = Vec::new();
    let n_read = input.by_ref().take(N_FIRST_BYTES).read_to_end(&mut first);
    n_read.map_err(|error| Error::Io { path: source.into(), source: error })?;
    if let Some(message) = refusal(&first) {
        return Err(Error::data(source, message));
    }
    let compression = detect(&first);
    let whole = Cursor::new(first).chain(input);
    Ok(match compression {
        None => (Box::new(whole), None),
        Some(Compression::Gzip) => (decoded(MultiGzDecoder::new(whole), Compression::Gzip, most), compression),
        Some(Compression::Zstd) => (decoded(ZstdFrames::new(whole), Compression::Zstd, most), compression),
    })
}

/// Whether a file that has been opened is compressed; it is left where it was, at its beginning.
pub(super) fn is_compressed(mut file: &File, path: &Path) -> Result<bool> {
    let mut first = Vec::new();
    let read = file.take(N_FIRST_BYTES).read_to_end(&mut first).and_then(|_| file.rewind());
    read.map_err(|error| Error::Io { path: path.to_owned(), source: error })?;
    Ok(detect(&first).is_some())
}

fn detect(first: &[u8]) -> Option<Compression> {
    if first.starts_with(&[0x1f, 0x8b]) {
        Some(Compression::Gzip)
    } else if first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || is_skippable_frame(first) {
        Some(Compression::Zstd)
    } else {
        None
    }
}

/// Parallel compressors start a Zstandard file with a frame that holds no data.
fn is_skippable_frame(first: &[u8]) -> bool {
    matches!(first, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// What to say of files that are often taken for text by mistake.
fn refusal(first: &[u8]) -> Option<&'static str> {
    if first.starts_with(b"PK\x03\x04") {
        Some("this is a zip archive or a spreadsheet; unpack it, or export it as CSV")
    } else if first.starts_with(b"\xFD7zXZ\0") {
        Some("this is compressed with xz; unpack it, or use gzip or zstd")
    } else if first.starts_with(b"BZh") && first.ends_with(b"1AY&SY") {
        Some("this is compressed with bzip2; unpack it, or use gzip or zstd")
    } else {
        None
    }
}

fn decoded<'a>(decoder: impl Read + 'a, compression: Compression, most: u64) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::with_capacity(super::BUFFER_SIZE, Explained { decoder, compression, most, n_left: most }))
}

/// What to say of a file that unpacks to more than `most` bytes.
pub(super) fn too_large(most: u64) -> io::Error {
    let most = match most {
        0..1_000_000 => format!("{most} bytes"),
        1_000_000..1_000_000_000 => format!("{:.1} MB", most as f64 / 1e6),
        _ => format!("{:.1} GB", most as f64 / 1e9),
    };
    io::Error::other(format!("the file unpacks to more than {most}; if that is right, allow more by `--max-unpacked`"))
}

/// A decoder whose errors say, in one line, what is wrong with the file.
struct Explained<D> {
    decoder: D,
    compression: Compression,
    /// Bytes that may come in all, and still.
    most: u64,
    n_left: u64,
}

impl<D: Read> Read for Explained<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            kind => {
                let detail = error.to_string().replace(['\r', '\n'], " ");
                let name = self.compression;
                let message = format!("the {name} data are cut short or damaged ({detail}); copy the file again");
                io::Error::new(kind, message)
            }
        })?;
        self.n_left = self.n_left.checked_sub(n as u64).ok_or_else(|| too_large(self.most))?;
        Ok(n)
    }
}

/// All frames of a Zstandard stream, one after the other, each checked against its checksum.
struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(source: R) -> Self {
        ZstdFrames { source, decoder: FrameDecoder::new(), is_in_frame: false }
    }

    /// Starts the next frame that holds data; false when there is none.
    fn start_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    self.skip(u64::from(length))?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    fn skip(&mut self, length: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.source.by_ref().take(length), &mut io::sink())?;
        if skipped == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Decodes until there is something to hand on or the frame ends.
    fn decode(&mut self) -> io::Result<()> {
        while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
            let one_block = BlockDecodingStrategy::UptoBlocks(1);
            self.decoder.decode_blocks(&mut self.source, one_block).map_err(io::Error::other)?;
        }
        Ok(())
    }

    fn end_frame(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        match self.decoder.get_checksum_from_data() {
            Some(stored) if self.decoder.get_calculated_checksum() != Some(stored) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "wrong checksum"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() {
            if !self.is_in_frame {
                self.is_in_frame = self.start_frame()?;
                if !self.is_in_frame {
                    break;
                }
            }
            self.decode()?;
            let n_read = self.decoder.read(buffer)?;
            if n_read > 0 {
                return Ok(n_read);
            }
            self.end_frame()?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(bytes: &[u8]) -> Vec<u8> {
        compress_to_vec(bytes, CompressionLevel::Fastest)
    }

    fn unpacked(bytes: &[u8]) -> Result<(Vec<u8>, Option<Compression>), String> {
        let (mut reader, compression) = see_through(bytes, "test.gz", 1 << 30).map_err(|error| error.to_string())?;
        let mut all = Vec::new();
        reader.read_to_end(&mut all).map_err(|error| error.to_string())?;
        Ok((all, compression))
    }

    /// Text long enough for several blocks.
    fn long_text() -> Vec<u8> {
        (0..60_000u32).flat_map(|ix| format!("{},{}\n", ix, ix.wrapping_mul(2_654_435_761)).into_bytes()).collect()
    }

    #[test]
    fn plain_bytes_pass_through_however_few() {
        for bytes in [&b""[..], b"a", b"abc", b"a,b,count\n1,2,3\n"] {
            assert_eq!(unpacked(bytes), Ok((bytes.to_vec(), None)));
        }
    }

    #[test]
    fn both_compressions_are_told_by_their_first_bytes() {
        for text in [b"".to_vec(), b"x".to_vec(), long_text()] {
            assert_eq!(unpacked(&gzip(&text)), Ok((text.clone(), Some(Compression::Gzip))));
            assert_eq!(unpacked(&zstd(&text)), Ok((text, Some(Compression::Zstd))));
        }
    }

    #[test]
    fn several_members_and_frames_are_one_text() {
        let parts = [&b"a,b\n"[..], b"", b"1,2\n"];
        let expected = parts.concat();
        let packed: Vec<u8> = parts.iter().flat_map(|part| gzip(part)).collect();
        assert_eq!(unpacked(&packed).unwrap().0, expected);
        let packed: Vec<u8> = parts.iter().flat_map(|part| zstd(part)).collect();
        assert_eq!(unpacked(&packed).unwrap().0, expected);
    }

    #[test]
    fn frames_without_data_are_skipped() {
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
        let packed = [&skippable[..], &zstd(b"a\n"), &skippable, &zstd(b"b\n"), &skippable].concat();
        assert_eq!(unpacked(&packed), Ok((b"a\nb\n".to_vec(), Some(Compression::Zstd))));
        let message = unpacked(&packed[..packed.len() - 1]).unwrap_err();
        assert!(message.contains("cut short"), "{message}");
    }

    #[test]
    fn a_stream_that_is_cut_short_anywhere_is_refused() {
        let text = &long_text()[..2000];
        for (packed, name) in [(gzip(text), "gzip"), (zstd(text), "zstd")] {
            for length in 5..packed.len() {
                let message = unpacked(&packed[..length]).expect_err("cut short");
                assert!(message.starts_with(&format!("the {name} data are cut short or damaged")), "{message}");
                assert!(!message.contains('\n'));
            }
        }
    }

    #[test]
    fn a_damaged_stream_is_refused() {
        for mut packed in [gzip(&long_text()), zstd(&long_text())] {
            let middle = packed.len() / 2;
            for byte in &mut packed[middle..middle + 20] {
                *byte ^= 0x55;
            }
            assert!(unpacked(&packed).unwrap_err().contains("cut short or damaged"));
        }
        let with_rubbish = [gzip(b"a\n"), b"rubbish, and not a little".to_vec()].concat();
        assert!(unpacked(&with_rubbish).is_err());
        let with_rubbish = [zstd(b"a\n"), b"rubbish, and not a little".to_vec()].concat();
        assert!(unpacked(&with_rubbish).is_err());
    }

    #[test]
    fn the_message_names_the_file() {
        let packed = gzip(b"a,count\nx,3\n");
        let cut = &packed[..packed.len() - 9];
        let error = super::super::read_from(cut, "cut.csv.gz", super::super::Format::Csv).unwrap_err();
        assert!(error.to_string().starts_with("cut.csv.gz: the gzip data are cut short"), "{error}");
    }

    #[test]
    fn what_unpacks_to_more_than_allowed_is_refused() {
        for packed in [gzip(&vec![b'a'; 100_000]), zstd(&vec![b'a'; 100_000])] {
            assert!(packed.len() < 1000);
            let all = |most| see_through(packed.as_slice(), "a.gz", most).unwrap().0.read_to_end(&mut Vec::new());
            assert_eq!(all(100_000).unwrap(), 100_000);
            let message = all(99_999).unwrap_err().to_string();
            assert_eq!(
                message,
                "the file unpacks to more than 99999 bytes; if that is right, allow more by `--max-unpacked`"
            );
        }
    }

    #[test]
    fn other_archives_are_named() {
        for (bytes, name) in
            [(&b"PK\x03\x04\x14\0\0\0\0\0"[..], "zip"), (b"\xFD7zXZ\0\0\0\0\0", "xz"), (b"BZh91AY&SY", "bzip2")]
        {
            let message = unpacked(bytes).unwrap_err();
            assert!(message.starts_with("test.gz: this is") && message.contains(name), "{message}");
        }
        assert!(unpacked(b"BZhang,count\n1,2\n").is_ok());
    }

    proptest! {
        #[test]
        fn damage_never_panics(at in 0usize..4000, flip in 1u8.., is_zstd: bool) {
            let text = &long_text()[..5000];
            let mut packed = if is_zstd { zstd(text) } else { gzip(text) };
            let at = at % packed.len();
            packed[at] ^= flip;
            let _ = unpacked(&packed);
        }
    }
}
