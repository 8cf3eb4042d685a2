//! NumPy's `.npy`: a header in Python's notation, then the numbers of one array. Versions 1 to 3, either byte order, rows or columns
//! first.
//!
//! Numbers are read as they come; memory never follows what the header promises. Pickled objects are refused, never unpacked.

use super::lines::shown;
use super::{Input, number};
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::{Error, Result};
use std::io::Read;

/// What every file begins with.
pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// Longest header. NumPy itself refuses more than 10,000 bytes.
const MAX_HEADER: usize = 1 << 16;

/// Most axes; NumPy has at most 64.
const MAX_AXES: usize = 1000;

/// Largest size of an axis: codes of values stay below that of a missing one.
const MAX_SIZE: u64 = u32::MAX as u64 - 1;

/// Bytes that are read at once; a multiple of every width.
const CHUNK: usize = 1 << 16;

/// Reads a whole file.
pub(super) fn read(input: Input<'_>, sink: &mut impl RowSink) -> Result<()> {
    let Input { reader, source } = input;
    read_dense(Array::open(reader, source)?, sink)
}

/// Reads all numbers of a dense array as counts.
pub(super) fn read_dense<R: Read>(mut array: Array<R>, sink: &mut impl RowSink) -> Result<()> {
    let sizes = axes(&array.shape, &array.source)?;
    if sizes.is_empty() {
        return Err(Error::data(&array.source, "the array is a single number without axes; save an array of counts"));
    }
    for &size in &sizes {
        sink.index_column(None, 0, Some(size));
    }
    let takes_fractions = sink.takes_fractions();
    let mut cell = vec![0u32; sizes.len()];
    let mut n_read = 0;
    while let Some(number) = array.next()? {
        n_read += 1;
        if !number.is_zero() {
            let at = |error| at_entry(error, &cell);
            let count = number.count(takes_fractions).map_err(|message| at(Error::data(&array.source, message)))?;
            sink.push(n_read, cell.iter().copied().map(Cell::Index), count).map_err(at)?;
        }
        // All axes up to the first that is not over.
        let next = |(value, &size): (&mut u32, &u32)| {
            *value += 1;
            let is_over = *value == size;
            if is_over {
                *value = 0;
            }
            is_over
        };
        let mut axes = cell.iter_mut().zip(&sizes);
        if array.columns_first {
            while axes.next().is_some_and(next) {}
        } else {
            while axes.next_back().is_some_and(next) {}
        }
    }
    array.finish()
}

/// The sizes of axes, if they are small enough.
pub(super) fn axes(shape: &[u64], source: &str) -> Result<Vec<u32>> {
    let size = |&size: &u64| match size {
        0..=MAX_SIZE => Ok(size as u32),
        _ => Err(Error::data(source, format!("an axis has size {size}, beyond {MAX_SIZE}, the most there can be"))),
    };
    shape.iter().map(size).collect()
}

/// Says at which entry of an array something is wrong, as there are no lines.
pub(super) fn at_entry(error: Error, cell: &[u32]) -> Error {
    match error {
        Error::Data(mut data) => {
            let cell: Vec<String> = cell.iter().map(ToString::to_string).collect();
            data.line = None;
            data.message = format!("entry [{}]: {}", cell.join(", "), data.message);
            Error::Data(data)
        }
        other => other,
    }
}

/// One number of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(u64),
    Negative(i64),
    /// A floating-point number, and up to where its type holds every whole number.
    Real(f64, u32),
}

impl Number {
    pub fn is_zero(self) -> bool {
        matches!(self, Number::Whole(0)) || matches!(self, Number::Real(value, _) if value == 0.0)
    }

    /// As a count, or what is wrong with it.
    pub fn count(self, takes_fractions: bool) -> Result<RowCount, String> {
        match self {
            Number::Whole(count) => Ok(RowCount::Tokens(count)),
            Number::Negative(value) => Err(format!("count `{value}` is negative; counts are whole numbers from 0")),
            Number::Real(value, _) if !value.is_finite() => Err(format!(
                "count `{value}` is not finite; a cell that nobody counted can be said in CSV, by the count `?`"
            )),
            Number::Real(value, bits) if value > (1u64 << bits) as f64 => Err(format!(
                "count `{value}` is beyond 2^{bits}, where numbers of this type skip whole ones; save the array as integers"
            )),
            Number::Real(value, _) if value >= 0.0 && value.fract() == 0.0 => Ok(RowCount::Tokens(value as u64)),
            Number::Real(value, _) => {
                let style = if takes_fractions { number::CountStyle::Fraction } else { number::CountStyle::Real };
                number::parse_count(&value.to_string(), style)
            }
        }
    }

    /// As a position or an index.
    pub fn index(self) -> Result<u64, String> {
        match self {
            Number::Whole(value) => Ok(value),
            Number::Negative(value) => Err(format!("index `{value}` is negative; indices count from 0")),
            Number::Real(value, _) => Err(format!("index `{value}` is of a floating-point type; indices are integers")),
        }
    }

    /// As an offset.
    pub fn offset(self) -> Result<i64, String> {
        match self {
            Number::Negative(value) => Ok(value),
            other => other
                .index()
                .and_then(|value| i64::try_from(value).map_err(|_| format!("offset `{value}` is beyond any array"))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bool,
    Unsigned,
    Signed,
    Real,
    /// Characters of one byte, or of four.
    Text,
}

/// An array that is read number after number.
#[derive(Debug)]
pub(super) struct Array<R> {
    reader: R,
    /// What it is called in messages.
    pub source: String,
    pub shape: Vec<u64>,
    /// Whether the first axis is the fastest.
    pub columns_first: bool,
    kind: Kind,
    width: usize,
    is_big_endian: bool,
    /// Numbers that are still to be read, from the file; none beyond 64 bits, which no file holds.
    n_left: Option<u64>,
    n_all: Option<u64>,
    chunk: Vec<u8>,
    at: usize,
}

impl<R: Read> Array<R> {
    /// Reads the header.
    pub fn open(mut reader: R, source: String) -> Result<Self> {
        let wrong = |what: &str| Error::data(&source, format!("{what}; save the counts by `numpy.save`"));
        let mut start = [0; 8];
        let n = fill(&mut reader, &mut start, &source)?;
        if n < 8 || !start.starts_with(MAGIC) {
            return Err(wrong(if n == 0 { "the file is empty" } else { "this is no NumPy array" }));
        }
        let n_length = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => {
                return Err(wrong(&format!("the array is of version {version} of the format, and 1 to 3 are known")));
            }
        };
        let mut length = [0; 4];
        if fill(&mut reader, &mut length[..n_length], &source)? < n_length {
            return Err(wrong("the file ends within its header; is it cut short?"));
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_HEADER {
            return Err(wrong(&format!("the header claims to be of {length} bytes, and is at most {MAX_HEADER}")));
        }
        let mut text = vec![0; length];
        if fill(&mut reader, &mut text, &source)? < length {
            return Err(wrong("the file ends within its header; is it cut short?"));
        }
        let text = String::from_utf8_lossy(&text);
        let descr = value_of(&text, "descr").ok_or_else(|| wrong("the header names no type of number"))?;
        let columns_first = match value_of(&text, "fortran_order") {
            Some(rest) if rest.starts_with("True") => true,
            Some(rest) if rest.starts_with("False") => false,
            _ => return Err(wrong("the header does not say which axis is the fastest")),
        };
        let shape = shape_of(&text).ok_or_else(|| wrong("the header names no shape of whole numbers"))?;
        if shape.len() > MAX_AXES {
            return Err(wrong(&format!("the array has {} axes, and may have {MAX_AXES}", shape.len())));
        }
        let (kind, width, is_big_endian) = type_of(descr).map_err(|what| wrong(&what))?;
        let n_all = shape.iter().try_fold(1u64, |product, &size| product.checked_mul(size));
        Ok(Array {
            reader,
            source,
            // An axis of size 0 leaves nothing, whatever the others are.
            n_left: if shape.contains(&0) { Some(0) } else { n_all },
            n_all: if shape.contains(&0) { Some(0) } else { n_all },
            shape,
            columns_first,
            kind,
            width,
            is_big_endian,
            chunk: Vec::new(),
            at: 0,
        })
    }

    /// The next number, if there is one.
    #[inline]
    pub fn next(&mut self) -> Result<Option<Number>> {
        if self.n_left == Some(0) {
            return Ok(None);
        }
        if self.at == self.chunk.len() {
            if self.kind == Kind::Text {
                return Err(Error::data(&self.source, "the array holds text, not counts; save numbers"));
            }
            self.read_chunk()?;
        }
        let bytes = &self.chunk[self.at..self.at + self.width];
        self.at += self.width;
        self.n_left = self.n_left.map(|n| n - 1);
        Ok(Some(self.number(bytes)))
    }

    /// The next number, which must be there.
    pub fn expect(&mut self) -> Result<Number> {
        let number = self.next()?;
        number.ok_or_else(|| Error::data(&self.source, "the array ends too soon; save the matrix once more"))
    }

    /// Refuses what follows after the last number.
    pub fn finish(mut self) -> Result<()> {
        let mut more = [0];
        if self.at < self.chunk.len() || fill(&mut self.reader, &mut more, &self.source)? > 0 {
            let message = format!(
                "the file goes on after the {} numbers that its header promises; save one array in each file",
                self.promised()
            );
            return Err(Error::data(&self.source, message));
        }
        Ok(())
    }

    /// A text that is the whole array.
    pub fn text(mut self) -> Result<String> {
        const MOST: usize = 64;
        if self.kind != Kind::Text || self.n_all != Some(1) || self.width > 4 * MOST {
            return Err(Error::data(&self.source, "this is no short text; save the matrix by `scipy.sparse.save_npz`"));
        }
        self.read_chunk()?;
        let text: Vec<u8> = self.chunk.iter().copied().filter(|&byte| byte != 0).collect();
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn read_chunk(&mut self) -> Result<()> {
        let most = (CHUNK / self.width).max(1) as u64;
        let n = self.n_left.map_or(most, |n| n.min(most)) as usize;
        self.chunk.resize(n * self.width, 0);
        let n_bytes = fill(&mut self.reader, &mut self.chunk, &self.source)?;
        self.chunk.truncate(n_bytes - n_bytes % self.width);
        self.at = 0;
        if self.chunk.is_empty() {
            let n_left = self.n_left.map_or("many".to_owned(), |n| n.to_string());
            let message = format!(
                "the file ends {n_left} numbers before the {} that its header promises; is it cut short?",
                self.promised()
            );
            return Err(Error::data(&self.source, message));
        }
        Ok(())
    }

    fn promised(&self) -> String {
        self.n_all.map_or("more than 2^64".to_owned(), |n| n.to_string())
    }

    #[inline]
    fn number(&self, bytes: &[u8]) -> Number {
        // As eight bytes, little end first.
        let mut all = [0; 8];
        if self.is_big_endian {
            all.iter_mut().zip(bytes.iter().rev()).for_each(|(to, from)| *to = *from);
        } else {
            all[..bytes.len()].copy_from_slice(bytes);
        }
        let whole = u64::from_le_bytes(all);
        match self.kind {
            Kind::Bool => Number::Whole(u64::from(whole != 0)),
            Kind::Unsigned | Kind::Text => Number::Whole(whole),
            Kind::Signed => {
                let unused = 64 - 8 * self.width as u32;
                let value = (whole << unused).cast_signed() >> unused;
                if value < 0 { Number::Negative(value) } else { Number::Whole(value as u64) }
            }
            Kind::Real => match self.width {
                2 => Number::Real(half(whole as u16), 11),
                4 => Number::Real(f64::from(f32::from_bits(whole as u32)), 24),
                _ => Number::Real(f64::from_bits(whole), 53),
            },
        }
    }
}

/// Fills the buffer as far as the reader goes.
fn fill(reader: &mut impl Read, buffer: &mut [u8], source: &str) -> Result<usize> {
    let mut n = 0;
    while n < buffer.len() {
        match reader.read(&mut buffer[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Io { path: source.into(), source: error }),
        }
    }
    Ok(n)
}

/// What stands behind a key of a Python dictionary.
fn value_of<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let quoted = ["'", "\""].map(|quote| format!("{quote}{key}{quote}"));
    let rest = quoted.iter().find_map(|key| text.split_once(key.as_str()))?.1;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// The shape, a tuple of whole numbers.
fn shape_of(text: &str) -> Option<Vec<u64>> {
    let inner = value_of(text, "shape")?.strip_prefix('(')?.split_once(')')?.0;
    let axes = inner.split(',').map(str::trim).filter(|axis| !axis.is_empty());
    // Python 2 wrote long numbers as `3L`.
    axes.map(|axis| number::parse_digits(axis.trim_end_matches('L'))).collect()
}

/// Kind and width of a number, and whether its large end comes first.
fn type_of(descr: &str) -> Result<(Kind, usize, bool), String> {
    let quoted = descr.strip_prefix(['\'', '"']).and_then(|rest| rest.split_once(['\'', '"']));
    let Some((name, _)) = quoted else {
        return Err("the array holds records of several fields, not counts".into());
    };
    let (is_big_endian, plain) = match name.as_bytes().first() {
        Some(b'>') => (true, &name[1..]),
        Some(b'<' | b'|' | b'=') => (false, &name[1..]),
        _ => (false, name),
    };
    let kind = plain.get(..1).unwrap_or_default();
    let width = number::parse_digits(plain.get(1..).unwrap_or_default());
    let (kind, width) = match (kind, width) {
        ("b", Some(1)) | ("?", None) => (Kind::Bool, 1),
        ("u", Some(width @ (1 | 2 | 4 | 8))) => (Kind::Unsigned, width),
        ("i", Some(width @ (1 | 2 | 4 | 8))) => (Kind::Signed, width),
        ("f", Some(width @ (2 | 4 | 8))) => (Kind::Real, width),
        ("S", Some(width @ 1..=1024)) => (Kind::Text, width),
        ("U", Some(width @ 1..=256)) => (Kind::Text, 4 * width),
        ("O", _) => return Err("the array holds Python objects, not counts".into()),
        ("f" | "c", _) => return Err(format!("the array holds numbers of type {}, not whole ones", shown(name))),
        _ => return Err(format!("the array holds values of type {}, not counts", shown(name))),
    };
    Ok((kind, width as usize, is_big_endian))
}

/// A floating-point number of 16 bits.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels};

    /// A file of version 1.
    pub fn npy(descr: &str, columns_first: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if columns_first { "True" } else { "False" };
        let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.bytes());
        bytes.extend(data);
        bytes
    }

    fn read_with(bytes: &[u8], fractions: bool) -> Result<Dataset> {
        let input = Input { reader: Box::new(bytes), source: "a.npy".into() };
        let mut builder = DatasetBuilder::new("a.npy");
        if fractions {
            builder.take_fractions();
        }
        read(input, &mut builder).map(|()| builder.finish())
    }

    #[track_caller]
    fn assert_refused(bytes: &[u8], wanted: &str) {
        let message = read_with(bytes, false).expect_err(wanted).to_string();
        assert!(message.starts_with("a.npy: ") && message.contains(wanted), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn axes_count_from_zero_and_zeros_are_dropped() {
        let rows = read_with(&npy("|u1", false, "(2, 3)", &[1, 0, 2, 0, 0, 3]), false).unwrap();
        assert_eq!(rows.columns[1].labels, Labels::Indexed { size: 3, first: 0 });
        assert_eq!(rows.values, [[0, 0, 1], [0, 2, 2]]);
        assert_eq!(rows.counts, [1, 2, 3]);
        let columns = read_with(&npy("|u1", true, "(2, 3)", &[1, 0, 0, 0, 2, 3]), false).unwrap();
        assert_eq!(columns.values, rows.values);
        let deep = read_with(&npy("|b1", false, "(2, 1, 2)", &[0, 0, 1, 0]), false).unwrap();
        assert_eq!(deep.values, [[1], [0], [0]]);
    }

    #[test]
    fn all_types_of_whole_numbers_are_read() {
        for (descr, data) in [
            ("|i1", vec![5]),
            ("<u2", vec![5, 0]),
            (">u2", vec![0, 5]),
            ("<i4", vec![5, 0, 0, 0]),
            (">i8", vec![0, 0, 0, 0, 0, 0, 0, 5]),
            ("<f2", 0x4500u16.to_le_bytes().to_vec()),
            ("<f4", 5f32.to_le_bytes().to_vec()),
            (">f8", 5f64.to_be_bytes().to_vec()),
            ("=u8", 5u64.to_le_bytes().to_vec()),
        ] {
            assert_eq!(read_with(&npy(descr, false, "(1,)", &data), false).unwrap().counts, [5], "{descr}");
        }
        assert_eq!(read_with(&npy("<u8", false, "(1,)", &[255; 8]), false).unwrap().counts, [u64::MAX]);
        let fraction = npy("<f8", false, "(1,)", &0.1f64.to_le_bytes());
        assert!(read_with(&fraction, true).is_ok() && read_with(&fraction, false).is_err());
        assert_eq!(half(0x3c00), 1.0);
        assert_eq!(half(0x0001), 2f64.powi(-24));
        assert_eq!(half(0xfbff), -65504.0);
    }

    #[test]
    fn later_versions_and_axes_without_values_are_read() {
        let mut bytes = npy("|u1", false, "(1L,)", &[7]);
        bytes[6] = 3;
        bytes.splice(10..10, [0, 0]);
        assert_eq!(read_with(&bytes, false).unwrap().counts, [7]);
        assert_eq!(read_with(&npy("|u1", false, "(0, 9)", &[]), false).unwrap().n_tokens(), Some(0));
    }

    #[test]
    fn bad_headers_are_refused() {
        assert_refused(b"", "the file is empty");
        assert_refused(b"1,2,3\n4,5,6\n", "this is no NumPy array");
        assert_refused(b"\x93NUMPY\x09\x00\x00\x00", "version 9 of the format");
        assert_refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "claims to be of 4294967295 bytes");
        assert_refused(b"\x93NUMPY\x01\x00\x40\x00{'descr'", "ends within its header");
        for (descr, wanted) in [
            ("|O", "Python objects"),
            // Of any width, also one that a number could have.
            ("|S2", "holds text"),
            ("<U5", "holds text"),
            ("<c16", "`<c16`"),
            ("<f16", "`<f16`"),
            ("<M8[ns]", "`<M8[ns]`"),
            ("<i3", "`<i3`"),
            ("|V8", "`|V8`"),
        ] {
            assert_refused(&npy(descr, false, "(1,)", &[0; 16]), wanted);
        }
        assert_refused(&npy("<i8', '<i8", false, "(x,)", &[]), "names no shape");
        assert_refused(&npy("|u1", false, "(-1,)", &[]), "names no shape");
        assert_refused(&npy("|u1", false, "()", &[1]), "a single number without axes");
        assert_refused(&npy("|u1", false, "(4294967295,)", &[1]), "size 4294967295, beyond 4294967294");
    }

    #[test]
    fn promises_are_checked_and_nothing_is_set_aside_for_them() {
        assert_refused(&npy("<i8", false, "(4294967294, 4294967294, 9)", &[0; 16]), "before the more than 2^64");
        assert_refused(&npy("<i4", false, "(4000000000,)", &[0; 9]), "the file ends 3999999998 numbers before the 4");
        assert_refused(&npy("|u1", false, "(2,)", &[1, 2, 3]), "goes on after the 2 numbers");
    }

    #[test]
    fn bad_counts_are_refused_with_their_entry() {
        let real = |value: f64| npy("<f8", false, "(2, 2)", &[[0; 24].to_vec(), value.to_le_bytes().to_vec()].concat());
        assert_refused(&real(-2.0), "entry [1, 1]: count `-2` is negative");
        assert_refused(&real(2.5), "entry [1, 1]: count `2.5` is not whole");
        assert_refused(&real(f64::NAN), "count `NaN` is not finite");
        assert_refused(&real(f64::NEG_INFINITY), "count `-inf` is not finite");
        assert_refused(&real(1e17), "count `100000000000000000` is beyond 2^53");
        assert_refused(&npy("<f4", false, "(1,)", &2e7f32.to_le_bytes()), "is beyond 2^24");
        assert_refused(&npy("|i1", true, "(2, 1)", &[0, 0xff]), "entry [1, 0]: count `-1` is negative");
        assert_refused(&npy("<u8", false, "(2,)", &[255; 16]), "entry [1]: with the count");
    }
}
