//! Text files of the Tensor Toolbox for MATLAB and of pyttb: what it is, the sizes, then entries.
//!
//! `sptensor` lists indices from 1 and a count on each line; `tensor` all counts, the first axis fastest; `matrix` all counts,
//! the last axis fastest. In the dense ones zeros are left out, as absent cells are zeros anyway. `?` makes an unknown cell. The
//! header's promises are checked, never trusted: no memory is set aside for them.

use super::Input;
use super::lines::{Lines, shown};
use super::number::{CountStyle, parse_count, parse_digits, parse_one_based};
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::{Error, Result};
use std::ops::Range;

/// Largest size of an axis: codes of values stay below that of a missing one.
const MAX_SIZE: u32 = u32::MAX - 1;

/// Most axes. Beyond, a header is no header.
const MAX_AXES: u64 = 1000;

/// Whether these first bytes of a file are those of this format.
pub(super) fn is_header(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let line = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
    std::str::from_utf8(line).is_ok_and(|word| Kind::of(word).is_some())
}

/// Reads a whole file.
pub(super) fn read(input: Input<'_>, sink: &mut impl RowSink) -> Result<()> {
    let mut lines = Lines::new(input);
    let header = Header::read(&mut lines)?;
    for &size in &header.sizes {
        sink.index_column(None, 1, Some(size));
    }
    let values = vec![0; header.sizes.len()];
    let mut reader = Reader { lines, header, values, n_read: 0, sink };
    match reader.header.kind {
        Kind::Sparse => reader.read_sparse(),
        Kind::FirstFastest | Kind::LastFastest => reader.read_dense(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sparse,
    FirstFastest,
    LastFastest,
}

impl Kind {
    fn of(word: &str) -> Option<Self> {
        match word.trim_ascii() {
            "sptensor" => Some(Kind::Sparse),
            "tensor" => Some(Kind::FirstFastest),
            "matrix" => Some(Kind::LastFastest),
            _ => None,
        }
    }
}

/// All that stands above the entries.
struct Header {
    kind: Kind,
    sizes: Vec<u32>,
    /// None beyond 64 bits: no file holds so many.
    n_entries: Option<u64>,
    /// The line that promises them.
    line: u64,
}

impl Header {
    fn read(lines: &mut Lines<'_>) -> Result<Self> {
        const KNOWN: &str = "`sptensor`, `tensor` or `matrix`";
        if !lines.advance_to_text()? {
            return Err(lines.error_of_file(format!("the file is empty; its first line must be {KNOWN}")));
        }
        let Some(kind) = Kind::of(lines.text()) else {
            let advice = if lines.text().trim_ascii() == "ktensor" {
                "a `ktensor` holds factors and no counts; write the tensor of counts"
            } else {
                "it says what the file holds"
            };
            let message = format!("the first line is {}, but must be {KNOWN}: {advice}", shown(lines.text()));
            return Err(lines.error(None, message));
        };
        let n_axes = match numbers(lines, "the number of axes")?[..] {
            [n_axes @ 1..=MAX_AXES] => n_axes,
            _ => return Err(wrong(lines, &format!("the number of axes, from 1 to {MAX_AXES}"))),
        };
        let found = numbers(lines, "the sizes of the axes")?;
        if found.len() as u64 != n_axes {
            return Err(wrong(lines, &format!("the sizes of {n_axes} axes")));
        }
        let is_size = |size: &u64| (1..=u64::from(MAX_SIZE)).contains(size);
        if let Some(size) = found.iter().find(|size| !is_size(size)) {
            let message = format!("an axis has size {size}, but sizes are from 1 to {MAX_SIZE}");
            return Err(lines.error(None, message));
        }
        let n_entries = match kind {
            Kind::Sparse => match numbers(lines, "the number of entries")?[..] {
                [n_entries] => Some(n_entries),
                _ => return Err(wrong(lines, "the number of entries")),
            },
            Kind::FirstFastest | Kind::LastFastest => {
                found.iter().try_fold(1u64, |product, &size| product.checked_mul(size))
            }
        };
        let sizes = found.iter().map(|&size| size as u32).collect();
        Ok(Header { kind, sizes, n_entries, line: lines.number() })
    }

    fn promised(&self) -> String {
        self.n_entries.map_or("more than 2^64".to_owned(), |n_entries| n_entries.to_string())
    }
}

/// The whole numbers on the next line.
fn numbers(lines: &mut Lines<'_>, what: &str) -> Result<Vec<u64>> {
    if !lines.advance_to_text()? {
        return Err(lines.error_of_file(format!("the file ends where {what} should stand; is it cut short?")));
    }
    let numbers: Option<Vec<u64>> = lines.text().split_ascii_whitespace().map(parse_digits).collect();
    numbers.ok_or_else(|| wrong(lines, what))
}

/// A line of the header that is not what it should be.
fn wrong(lines: &Lines<'_>, what: &str) -> Error {
    lines.error(None, format!("here stands {what}, as whole numbers, but the line is {}", shown(lines.text())))
}

/// Where the next field of a line stands.
fn field_from(text: &str, from: usize) -> Option<Range<usize>> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace();
    let rest = &text.as_bytes()[from..];
    let start = from + rest.iter().position(|byte| !is_blank(byte))?;
    let end = text.as_bytes()[start..].iter().position(is_blank).map_or(text.len(), |length| start + length);
    Some(start..end)
}

struct Reader<'a, 's, S> {
    lines: Lines<'a>,
    header: Header,
    /// The cell at hand.
    values: Vec<u32>,
    n_read: u64,
    sink: &'s mut S,
}

impl<S: RowSink> Reader<'_, '_, S> {
    fn read_sparse(&mut self) -> Result<()> {
        while self.lines.advance_to_text()? {
            self.expect_more()?;
            let mut fields = self.lines.text().split_ascii_whitespace();
            for (axis, (value, &size)) in self.values.iter_mut().zip(&self.header.sizes).enumerate() {
                let Some(field) = fields.next() else { return Err(self.wrong_width()) };
                *value = parse_one_based(field, size)
                    .map_err(|message| self.lines.error(Some(&(axis + 1).to_string()), message))?;
            }
            let (Some(count), None) = (fields.next(), fields.next()) else { return Err(self.wrong_width()) };
            let count = self.count(count)?;
            self.push(count)?;
        }
        self.check_all_read()
    }

    fn read_dense(&mut self) -> Result<()> {
        while self.lines.advance_to_text()? {
            // Most files have one count on each line, but they may stand side by side.
            let mut read_to = 0;
            while let Some(field) = field_from(self.lines.text(), read_to) {
                self.expect_more()?;
                let count = self.count(&self.lines.text()[field.clone()])?;
                read_to = field.end;
                if count != RowCount::Tokens(0) {
                    self.push(count)?;
                }
                self.step();
            }
        }
        self.check_all_read()
    }

    /// Goes to the next cell of a dense tensor.
    fn step(&mut self) {
        let cells = self.values.iter_mut().zip(&self.header.sizes);
        let next = |(value, &size): (&mut u32, &u32)| {
            *value += 1;
            let is_over = *value == size;
            if is_over {
                *value = 0;
            }
            is_over
        };
        // All axes up to the first that is not over.
        match self.header.kind {
            Kind::LastFastest => drop(cells.rev().map(next).find(|is_over| !is_over)),
            _ => drop(cells.map(next).find(|is_over| !is_over)),
        }
    }

    fn count(&self, text: &str) -> Result<RowCount> {
        let count = parse_count(text, CountStyle::Real.or_fraction(self.sink));
        count.map_err(|message| self.lines.error(Some("count"), message))
    }

    fn push(&mut self, count: RowCount) -> Result<()> {
        self.sink.push(self.lines.number(), self.values.iter().copied().map(Cell::Index), count)
    }

    /// Counts an entry, unless all that were promised are there.
    fn expect_more(&mut self) -> Result<()> {
        if self.header.n_entries == Some(self.n_read) {
            let message = format!(
                "one entry more than the {} that line {} promises; correct the header or remove it",
                self.n_read, self.header.line
            );
            return Err(self.lines.error(None, message));
        }
        self.n_read += 1;
        Ok(())
    }

    fn check_all_read(&self) -> Result<()> {
        if self.header.n_entries == Some(self.n_read) {
            return Ok(());
        }
        let (n_read, line, promised) = (self.n_read, self.header.line, self.header.promised());
        let message =
            format!("the file ends after {n_read} entries, but line {line} promises {promised}; is it cut short?");
        Err(self.lines.error_of_file(message))
    }

    fn wrong_width(&self) -> Error {
        let (n_axes, line) = (self.header.sizes.len(), shown(self.lines.text()));
        let message = format!("an entry is {n_axes} indices from 1 and a count, but the line is {line}");
        self.lines.error(None, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels};
    use crate::warning::Warning;

    fn read_text(text: &str) -> Result<Dataset> {
        let input = Input { reader: Box::new(text.as_bytes()), source: "test.tns".into() };
        let mut builder = DatasetBuilder::new("test.tns");
        read(input, &mut builder).map(|()| builder.finish())
    }

    #[track_caller]
    fn assert_refused(text: &str, wanted: &[&str]) {
        let message = read_text(text).expect_err(text).to_string();
        for part in wanted {
            assert!(message.contains(part), "{text:?}: {message}");
        }
        assert!(!message.contains('\n'));
    }

    /// Indices from 1 and the count of each record.
    fn cells(data: &Dataset) -> Vec<(Vec<u32>, u64)> {
        let of = |row: usize| (data.values.iter().map(|column| column.at(row) + 1).collect(), data.counts.at(row));
        (0..data.n_rows()).map(of).collect()
    }

    #[test]
    fn sparse_tensors_are_read_as_pyttb_writes_them() {
        let text = "sptensor\n3\n2 3 4\n2\n1 2 3 3.0000000000000000e+00\n2 1 1 2.0000000000000000e+00\n";
        let data = read_text(text).unwrap();
        assert_eq!(cells(&data), [(vec![1, 2, 3], 3), (vec![2, 1, 1], 2)]);
        assert_eq!(data.columns[2].labels, Labels::Indexed { size: 4, first: 1 });
        let unusual = read_text("\u{feff}sptensor \r\n\r\n 2\r\n2\t2\r\n3\r\n1 1 ?\r\n\r\n2 2 0\r\n2 2 5").unwrap();
        assert_eq!((cells(&unusual), &unusual.unknown[..]), (vec![(vec![2, 2], 5)], &[vec![0, 0]][..]));
        assert_eq!(unusual.warnings, [Warning::DuplicateRows { n_rows: 1 }]);
        assert_eq!(read_text("sptensor\n2\n2 2\n0\n").unwrap().n_tokens(), Some(0));
    }

    #[test]
    fn dense_ones_differ_in_the_axis_that_is_fastest() {
        let first = read_text("tensor\n2\n2 3\n1\n4\n2\n5\n3\n0\n").unwrap();
        let want = |of: &[(u32, u32, u64)]| of.iter().map(|&(i, j, n)| (vec![i, j], n)).collect::<Vec<_>>();
        assert_eq!(cells(&first), want(&[(1, 1, 1), (2, 1, 4), (1, 2, 2), (2, 2, 5), (1, 3, 3)]));
        let last = read_text("matrix\n2\n2 3\n1 2  3\n4.0\t5\n 0\n").unwrap();
        assert_eq!(cells(&last), want(&[(1, 1, 1), (1, 2, 2), (1, 3, 3), (2, 1, 4), (2, 2, 5)]));
        let deep = read_text("tensor\n3\n2 2 2\n1 2 3 4 5 6 7 8\n").unwrap();
        assert_eq!(cells(&deep)[4], (vec![1, 1, 2], 5));
    }

    #[test]
    fn headers_are_told_from_lines_of_data() {
        for text in ["sptensor\n3", "\u{feff}tensor \r\n", "matrix"] {
            assert!(is_header(text.as_bytes()), "{text:?}");
        }
        for text in ["", "1 2 3\n", "# sptensor\n", "sptensors\n", "ktensor\n", "\u{ff}\n"] {
            assert!(!is_header(text.as_bytes()), "{text:?}");
        }
        assert!(!is_header(b"\xff\xfe"));
    }

    #[test]
    fn bad_headers_are_refused() {
        assert_refused("", &["test.tns: the file is empty", "`sptensor`, `tensor` or `matrix`"]);
        assert_refused("ktensor\n", &["line 1: the first line is `ktensor`", "holds factors and no counts"]);
        assert_refused("3\n4 5 6\n", &["line 1: the first line is `3`"]);
        assert_refused("tensor\n", &["the file ends where the number of axes should stand"]);
        assert_refused("tensor\nx\n", &["line 2: here stands the number of axes", "`x`"]);
        assert_refused("tensor\n0\n", &["line 2: here stands the number of axes, from 1 to 1000"]);
        assert_refused("tensor\n99999999\n", &["line 2", "from 1 to 1000"]);
        assert_refused("tensor\n2\n3\n1 2 3\n", &["line 3: here stands the sizes of 2 axes", "`3`"]);
        assert_refused("tensor\n2\n3 0\n", &["line 3: an axis has size 0"]);
        assert_refused("sptensor\n1\n4294967295\n", &["line 3: an axis has size 4294967295", "to 4294967294"]);
        assert_refused("sptensor\n1\n3\n-1\n", &["line 4: here stands the number of entries", "`-1`"]);
        assert_refused("sptensor\n1\n3\n1 2\n", &["line 4: here stands the number of entries", "`1 2`"]);
    }

    #[test]
    fn promises_are_checked_and_nothing_is_set_aside_for_them() {
        assert_refused("sptensor\n1\n3\n2\n1 5\n", &["the file ends after 1 entries, but line 4 promises 2"]);
        assert_refused("sptensor\n1\n3\n1\n1 5\n2 5\n", &["line 6: one entry more than the 1 that line 4 promises"]);
        assert_refused("sptensor\n1\n3\n999999999999999999\n1 5\n", &["promises 999999999999999999; is it cut"]);
        assert_refused("tensor\n2\n2 2\n1 2 3\n", &["ends after 3 entries, but line 3 promises 4"]);
        assert_refused("tensor\n2\n2 2\n1 2 3 4 5\n", &["line 4: one entry more than the 4"]);
        assert_refused(
            "tensor\n3\n4294967294 4294967294 9\n1\n",
            &["after 1 entries, but line 3 promises more than 2^64"],
        );
    }

    #[test]
    fn bad_entries_are_refused() {
        let entry = |line: &str| format!("sptensor\n2\n3 4\n1\n{line}\n");
        assert_refused(&entry("0 1 2"), &["test.tns, line 5, column 1: index 0", "count from 1, so add 1"]);
        assert_refused(&entry("1 5 2"), &["line 5, column 2: index `5` is beyond 4"]);
        assert_refused(&entry("1 1.5 2"), &["line 5, column 2: index `1.5` is not a whole number"]);
        assert_refused(&entry("1 1"), &["line 5: an entry is 2 indices from 1 and a count, but the line is `1 1`"]);
        assert_refused(&entry("1 1 2 2"), &["line 5: an entry is 2 indices"]);
        assert_refused(&entry("1 1 2.5"), &["line 5, column count: count `2.5` is not whole"]);
        assert_refused("matrix\n1\n2\n1\n-2\n", &["line 5, column count: count `-2` is negative"]);
        assert_refused("matrix\n1\n2\n1\r2\n", &["line 4: a carriage return"]);
    }
}
