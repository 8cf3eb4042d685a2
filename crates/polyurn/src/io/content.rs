//! The format of a file by its first bytes, where its name says nothing.
//!
//! Only what leaves no doubt is told: marks of binary formats, first lines that no other format has, and lines that all look alike. A
//! table of one column, or text, is none of these.

use super::lines::MAX_LENGTH;
use super::number::parse_digits;
use super::{Format, npy, tensor_toolbox};
use std::io::{BufRead, Cursor, Read};

/// Bytes and lines that are looked at.
const N_BYTES: usize = 1 << 13;
const N_LINES: usize = 5;

/// The format of an archive, a column store or another file that is no text.
pub(super) fn binary(bytes: &[u8]) -> Option<Format> {
    if bytes.starts_with(npy::MAGIC) {
        Some(Format::Npy)
    } else if bytes.starts_with(super::ZIP) {
        // The name of the first member stands behind a header of 30 bytes.
        let length = usize::from(u16::from_le_bytes([*bytes.get(26)?, *bytes.get(27)?]));
        bytes.get(30..30 + length)?.ends_with(b".npy").then_some(Format::Npz)
    } else if bytes.starts_with(b"PAR1") {
        Some(Format::Parquet)
    } else if bytes.starts_with(b"ARROW1") || bytes.starts_with(b"\xff\xff\xff\xff") {
        Some(Format::Arrow)
    } else {
        None
    }
}

/// Takes a few lines from the input; they come again from what is handed back. A stream is not waited for longer than that takes.
pub(super) fn peek<'a>(mut input: Box<dyn BufRead + 'a>) -> std::io::Result<(Vec<u8>, Box<dyn BufRead + 'a>)> {
    let mut head = Vec::new();
    loop {
        let bytes = match input.fill_buf() {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let n = bytes.len();
        head.extend_from_slice(bytes);
        input.consume(n);
        let n_lines = head.iter().filter(|&&byte| byte == b'\n').count();
        if n == 0 || n_lines >= N_LINES && head.len() >= 64 || head.len() >= N_BYTES.min(MAX_LENGTH) {
            return Ok((head.clone(), Box::new(Cursor::new(head).chain(input))));
        }
    }
}

/// The format that a file begins with, if there is no doubt.
pub(super) fn format_of(bytes: &[u8]) -> Option<Format> {
    if let Some(format) = binary(bytes) {
        return Some(format);
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let is_cut = bytes.len() >= 64 && bytes.last() != Some(&b'\n');
    let bytes = match bytes.iter().rposition(|&byte| byte == b'\n') {
        // What may be half a line, or half a character, says nothing.
        Some(end) if is_cut => &bytes[..end],
        _ => bytes,
    };
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))?;
    if text.starts_with("%%MatrixMarket") {
        return Some(Format::MatrixMarket);
    }
    if tensor_toolbox::is_header(text.as_bytes()) {
        return Some(Format::TensorToolbox);
    }
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let data: Vec<&str> =
        lines.iter().copied().filter(|line| !line.trim_start().starts_with('#')).take(N_LINES).collect();
    let first = *data.first()?;
    let is_integer = |line: &&str| parse_digits(line.trim()).is_some();
    if data.len() >= 3
        && data[..3].iter().all(is_integer)
        && data[3..].iter().all(|line| line.split_whitespace().count() == 3)
    {
        return Some(Format::Uci);
    }
    if data.iter().any(|line| line.contains(':')) && data.iter().all(|line| is_sparse_row(line)) {
        let is_bag = |line: &&str| {
            let mut fields = line.split_whitespace();
            fields.next().and_then(parse_digits) == Some(fields.count() as u64)
        };
        return Some(if data.iter().all(is_bag) { Format::LdaC } else { Format::SvmLight });
    }
    let width = first.split_whitespace().count();
    if width >= 2 && data.iter().all(|line| is_entry(line, width)) {
        return Some(Format::Tns);
    }
    // There are no comments in tables.
    table(&lines)
}

/// `label feature:count ..`, where all features are numbers.
fn is_sparse_row(line: &str) -> bool {
    let mut fields = line.split('#').next().unwrap_or_default().split_whitespace();
    let is_pair = |field: &str| {
        field.split_once(':').is_some_and(|(feature, count)| {
            (parse_digits(feature).is_some() || feature == "qid") && (count == "?" || count.parse::<f64>().is_ok())
        })
    };
    fields.next().is_some_and(|label| !label.contains(':')) && fields.all(is_pair)
}

/// Indices from 1 and a count.
fn is_entry(line: &str, width: usize) -> bool {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let Some((count, indices)) = fields.split_last() else { return false };
    fields.len() == width
        && indices.iter().all(|index| parse_digits(index).is_some_and(|index| index > 0))
        && (*count == "?" || count.parse::<f64>().is_ok())
}

/// A header of names with as many separators as the next line.
fn table(lines: &[&str]) -> Option<Format> {
    let header = *lines.first()?;
    let fits = |separator: char| {
        let n = header.matches(separator).count();
        n > 0 && lines.get(1).is_none_or(|line| line.contains('"') || line.matches(separator).count() == n)
    };
    if header.contains('"') {
        None
    } else if fits('\t') {
        Some(Format::Tsv)
    } else if fits(',') {
        Some(Format::Csv)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_tell_the_format() {
        for (text, wanted) in [
            ("%%MatrixMarket matrix coordinate integer general\n", Some(Format::MatrixMarket)),
            ("sptensor\n3\n", Some(Format::TensorToolbox)),
            ("\u{feff}3\r\n4\r\n1\r\n1 1 5\r\n", Some(Format::Uci)),
            ("3\n4\n0\n", Some(Format::Uci)),
            ("2 0:1 5:2\n0\n1 3:1\n", Some(Format::LdaC)),
            ("1 1:1 5:2\n-1 3:1\n", Some(Format::SvmLight)),
            ("# by hand\n+1 qid:1 1:1.0 # x\n", Some(Format::SvmLight)),
            ("# i j\n1 2 3\n4\t5 6.0\n", Some(Format::Tns)),
            ("1 2 ?\n", Some(Format::Tns)),
            ("a,b,count\nx,y,1\n", Some(Format::Csv)),
            ("a,b\n\"x, y\",z\n", Some(Format::Csv)),
            ("a\tb c\nx\ty,z\n", Some(Format::Tsv)),
            ("a,b\n", Some(Format::Csv)),
            ("", None),
            ("a\nx\n", None),
            ("3\n4\n", None),
            ("0 1 2\n", None),
            ("1 2 3\n1 2\n", None),
            ("a b c\n1 2 3\n", None),
            ("d1 en some text, with a comma\nd2 en more text\n", None),
            ("{\"a\": 1}\n", None),
        ] {
            assert_eq!(format_of(text.as_bytes()), wanted, "{text:?}");
        }
        assert_eq!(format_of(b"\x93NUMPY\x01\x00"), Some(Format::Npy));
        assert_eq!(format_of(b"PAR1\x15\x04"), Some(Format::Parquet));
        assert_eq!(format_of(b"ARROW1\0\0"), Some(Format::Arrow));
        assert_eq!(format_of(b"PK\x03\x04\x14\0\0\0"), None);
        assert_eq!(format_of(b"a,b\n\xff,\xfe\n"), None);
    }

    #[test]
    fn what_was_looked_at_comes_again() {
        let long = "a,b\n1,2\n".repeat(5000);
        for text in ["", "a", "a,b\n1,2\n", long.as_str()] {
            let (head, mut whole) = peek(Box::new(text.as_bytes())).unwrap();
            let mut found = String::new();
            whole.read_to_string(&mut found).unwrap();
            assert!(found == text && text.as_bytes().starts_with(&head));
        }
    }
}
