//! Matrix Market: a banner, comments, a line of sizes, then entries.
//!
//! Coordinate and array matrices of integers, of reals that are whole, and patterns (each entry counts 1); general or
//! symmetric, where each entry off the diagonal stands for its mirror image too. In an array zeros are left out, as
//! absent cells are zeros anyway. `?` makes an unknown cell. The header's promises are checked, never trusted: no
//! memory is set aside for them.

use super::Input;
use super::lines::{Lines, shown};
use super::number::{CountStyle, parse_count, parse_digits, parse_one_based};
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::{Error, Result};

const BANNER: &str = "%%MatrixMarket matrix coordinate integer general";

/// Largest number of rows or columns: codes of values stay below that of a missing one.
const MAX_DIMENSION: u32 = u32::MAX - 1;

/// Reads a whole file.
pub(super) fn read(input: Input<'_>, sink: &mut impl RowSink) -> Result<()> {
    let mut lines = Lines::new(input);
    let banner = Banner::read(&mut lines)?;
    let sizes = Sizes::read(&mut lines, &banner)?;
    sink.index_column(None, 1, Some(sizes.n_rows));
    sink.index_column(None, 1, Some(sizes.n_columns));
    let mut reader = Reader { lines, banner, sizes, sink };
    match reader.banner.layout {
        Layout::Coordinate => reader.read_coordinates(),
        Layout::Array => reader.read_array(),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    Coordinate,
    Array,
}

/// The first line.
struct Banner {
    layout: Layout,
    /// How entries are written; `None` for patterns, which have indices only.
    style: Option<CountStyle>,
    is_symmetric: bool,
}

impl Banner {
    fn read(lines: &mut Lines<'_>) -> Result<Self> {
        if !lines.advance()? {
            return Err(lines.error_of_file(format!("the file is empty; it must start with `{BANNER}` or the like")));
        }
        let text = lines.text().to_ascii_lowercase();
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let &["%%matrixmarket", object, layout, field, symmetry] = words.as_slice() else {
            let message = format!(
                "{} is no banner; the file must start with `{BANNER}` or the like",
                shown(lines.text().trim_ascii())
            );
            return Err(lines.error(None, message));
        };
        let refused = |what: &str, word: &str, known: &str| {
            lines.error(None, format!("the {what} {} cannot be read; it must be {known}", shown(word)))
        };
        if object != "matrix" {
            return Err(refused("object", object, "`matrix`"));
        }
        let layout = match layout {
            "coordinate" => Layout::Coordinate,
            "array" => Layout::Array,
            other => return Err(refused("layout", other, "`coordinate` or `array`")),
        };
        let style = match field {
            "integer" | "unsigned-integer" => Some(CountStyle::Integer),
            "real" | "double" => Some(CountStyle::Real),
            "pattern" if layout == Layout::Coordinate => None,
            "complex" => {
                return Err(refused("field", field, "`integer`, `real` or `pattern`: complex numbers count nothing"));
            }
            other => return Err(refused("field", other, "`integer`, `real` or, with coordinates, `pattern`")),
        };
        let is_symmetric = match symmetry {
            "general" => false,
            "symmetric" => true,
            "skew-symmetric" => {
                return Err(refused(
                    "symmetry",
                    symmetry,
                    "`general` or `symmetric`: its mirror images would be negative",
                ));
            }
            other => return Err(refused("symmetry", other, "`general` or `symmetric`")),
        };
        Ok(Banner { layout, style, is_symmetric })
    }
}

/// The line of sizes.
struct Sizes {
    n_rows: u32,
    n_columns: u32,
    n_entries: u64,
    /// The line it stands on.
    line: u64,
}

impl Sizes {
    fn read(lines: &mut Lines<'_>, banner: &Banner) -> Result<Self> {
        let wanted = match banner.layout {
            Layout::Coordinate => "rows, columns and entries",
            Layout::Array => "rows and columns",
        };
        loop {
            if !lines.advance()? {
                return Err(lines.error_of_file(format!("the line of sizes is missing; it holds {wanted}")));
            }
            if !is_comment(lines.text()) {
                break;
            }
        }
        let numbers: Option<Vec<u64>> = lines.text().split_ascii_whitespace().map(parse_digits).collect();
        match (banner.layout, numbers.as_deref()) {
            (Layout::Coordinate, Some(&[n_rows, n_columns, n_entries])) => {
                Sizes::checked(lines, banner, n_rows, n_columns, Some(n_entries))
            }
            (Layout::Array, Some(&[n_rows, n_columns])) => Sizes::checked(lines, banner, n_rows, n_columns, None),
            _ => {
                let line = shown(lines.text());
                let message = format!("the line of sizes must hold {wanted} as whole numbers, but it is {line}");
                Err(lines.error(None, message))
            }
        }
    }

    fn checked(
        lines: &Lines<'_>,
        banner: &Banner,
        n_rows: u64,
        n_columns: u64,
        n_entries: Option<u64>,
    ) -> Result<Self> {
        let dimension = |what: &str, n: u64| match u32::try_from(n) {
            Ok(0) => Err(lines.error(None, format!("the matrix has 0 {what}, so no values; it needs at least 1"))),
            Ok(n) if n <= MAX_DIMENSION => Ok(n),
            _ => Err(lines.error(None, format!("{n} {what} are too many; at most {MAX_DIMENSION} can be read"))),
        };
        let (rows, columns) = (dimension("rows", n_rows)?, dimension("columns", n_columns)?);
        if banner.is_symmetric && rows != columns {
            let message = format!("a symmetric matrix is square, but the sizes are {rows} and {columns}");
            return Err(lines.error(None, message));
        }
        // Neither product overflows: both factors are below 2^32.
        let all = if banner.is_symmetric { n_rows * (n_rows + 1) / 2 } else { n_rows * n_columns };
        Ok(Sizes { n_rows: rows, n_columns: columns, n_entries: n_entries.unwrap_or(all), line: lines.number() })
    }
}

struct Reader<'a, 's, S> {
    lines: Lines<'a>,
    banner: Banner,
    sizes: Sizes,
    sink: &'s mut S,
}

impl<S: RowSink> Reader<'_, '_, S> {
    fn read_coordinates(&mut self) -> Result<()> {
        let mut n_read = 0;
        while self.next_entry(&mut n_read)? {
            let (row, column, count) = self.coordinate_entry()?;
            self.push(row, column, count)?;
        }
        Ok(())
    }

    fn read_array(&mut self) -> Result<()> {
        let mut n_read = 0;
        let (mut row, mut column) = (0, 0);
        while self.next_entry(&mut n_read)? {
            let count = self.array_entry()?;
            if count != RowCount::Tokens(0) {
                self.push(row, column, count)?;
            }
            row += 1;
            if row == self.sizes.n_rows {
                column += 1;
                // A symmetric matrix lists each column from the diagonal down.
                row = if self.banner.is_symmetric { column } else { 0 };
            }
        }
        Ok(())
    }

    /// Goes to the next line with an entry; false when all promised ones are read and the file ends.
    fn next_entry(&mut self, n_read: &mut u64) -> Result<bool> {
        let promised = self.sizes.n_entries;
        while self.lines.advance()? {
            if is_comment(self.lines.text()) {
                continue;
            }
            if *n_read == promised {
                let message = format!(
                    "one entry more than the {promised} that line {} promises; correct the sizes or remove it",
                    self.sizes.line
                );
                return Err(self.lines.error(None, message));
            }
            self.lines.refuse_carriage_return()?;
            *n_read += 1;
            return Ok(true);
        }
        if *n_read == promised {
            return Ok(false);
        }
        let message = format!(
            "the file ends after {n_read} entries, but line {} promises {promised}; is it cut short?",
            self.sizes.line
        );
        Err(self.lines.error_of_file(message))
    }

    fn coordinate_entry(&self) -> Result<(u32, u32, RowCount)> {
        let mut fields = self.lines.text().split_ascii_whitespace();
        let (Some(row), Some(column)) = (fields.next(), fields.next()) else {
            return Err(self.wrong_width());
        };
        let index = |name: &str, text: &str, size| {
            parse_one_based(text, size).map_err(|message| self.lines.error(Some(name), message))
        };
        let (row, column) = (index("1", row, self.sizes.n_rows)?, index("2", column, self.sizes.n_columns)?);
        let count = match (self.banner.style, fields.next(), fields.next()) {
            (None, None, None) => RowCount::Tokens(1),
            (Some(style), Some(text), None) => self.count(text, style)?,
            _ => return Err(self.wrong_width()),
        };
        if self.banner.is_symmetric && row < column {
            let message = format!(
                "entry ({}, {}) lies above the diagonal; a symmetric matrix lists the lower half, so swap the two \
                 indices or call the matrix `general`",
                row + 1,
                column + 1
            );
            return Err(self.lines.error(None, message));
        }
        Ok((row, column, count))
    }

    fn array_entry(&self) -> Result<RowCount> {
        let mut fields = self.lines.text().split_ascii_whitespace();
        match (self.banner.style, fields.next(), fields.next()) {
            (Some(style), Some(text), None) => self.count(text, style),
            _ => Err(self.lines.error(None, "an array has one entry on each line, column after column")),
        }
    }

    fn count(&self, text: &str, style: CountStyle) -> Result<RowCount> {
        let style = if style == CountStyle::Real { style.or_fraction(self.sink) } else { style };
        parse_count(text, style).map_err(|message| {
            let is_fraction = || matches!(parse_count(text, CountStyle::Fraction), Ok(RowCount::Fraction(..)));
            let message = if self.sink.takes_fractions() && is_fraction() {
                format!("count {} is not whole, but the banner says `integer`; write `real` there", shown(text))
            } else {
                message
            };
            self.lines.error(Some("count"), message)
        })
    }

    fn push(&mut self, row: u32, column: u32, count: RowCount) -> Result<()> {
        let line = self.lines.number();
        self.sink.push(line, [Cell::Index(row), Cell::Index(column)], count)?;
        if self.banner.is_symmetric && row != column {
            self.sink.push_implied(line, [Cell::Index(column), Cell::Index(row)], count)?;
        }
        Ok(())
    }

    fn wrong_width(&self) -> Error {
        let wanted = if self.banner.style.is_some() { "a row, a column and a count" } else { "a row and a column" };
        self.lines.error(None, format!("an entry is {wanted}, but the line is {}", shown(self.lines.text())))
    }
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_ascii_start();
    line.is_empty() || line.starts_with('%')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels};
    use crate::warning::Warning;

    fn read_text(text: &str) -> Result<Dataset> {
        let input = Input { reader: Box::new(text.as_bytes()), source: "test.mtx".into() };
        let mut builder = DatasetBuilder::new("test.mtx");
        read(input, &mut builder).map(|()| builder.finish())
    }

    /// A file with a banner of these words and these lines below.
    fn matrix(words: &str, rest: &str) -> String {
        format!("%%MatrixMarket matrix {words}\n{rest}")
    }

    #[track_caller]
    fn assert_refused(text: &str, wanted: &[&str]) {
        let message = read_text(text).expect_err(text).to_string();
        for part in wanted {
            assert!(message.contains(part), "{text:?}: {message}");
        }
        assert!(!message.contains('\n'));
    }

    fn cells(data: &Dataset) -> Vec<(u32, u32, u64)> {
        (0..data.n_rows())
            .map(|ix| (data.values[0].at(ix) + 1, data.values[1].at(ix) + 1, data.counts.at(ix)))
            .collect()
    }

    #[test]
    fn coordinates_of_integers_are_read() {
        let text = matrix("coordinate integer general", "% note\n\n3 4 3\n1 1 5\n% inside\n3 4 0\n2 1 ?\n\n");
        let data = read_text(&text).unwrap();
        assert_eq!(cells(&data), [(1, 1, 5), (3, 4, 0)]);
        assert_eq!(data.unknown, [[1, 0]]);
        assert_eq!(data.columns[0].name, None);
        assert_eq!(data.columns[0].labels, Labels::Indexed { size: 3, first: 1 });
        assert_eq!(data.columns[1].labels, Labels::Indexed { size: 4, first: 1 });
    }

    #[test]
    fn patterns_and_whole_reals_are_read() {
        let data = read_text(&matrix("coordinate pattern general", "2 2 2\r\n1 2\r\n2 2")).unwrap();
        assert_eq!(cells(&data), [(1, 2, 1), (2, 2, 1)]);
        let data = read_text(&matrix("Coordinate REAL General", "2 2 2\n1 2 3.0\n2 2 1e1\n")).unwrap();
        assert_eq!(cells(&data), [(1, 2, 3), (2, 2, 10)]);
    }

    #[test]
    fn symmetric_entries_are_mirrored_off_the_diagonal() {
        let data = read_text(&matrix("coordinate integer symmetric", "3 3 3\n1 1 5\n3 1 2\n3 2 ?\n")).unwrap();
        assert_eq!(cells(&data), [(1, 1, 5), (3, 1, 2), (1, 3, 2)]);
        assert_eq!(data.unknown, [[2, 1], [1, 2]]);
        assert!(data.warnings.is_empty());
    }

    #[test]
    fn arrays_go_down_the_columns_and_leave_out_zeros() {
        let data = read_text(&matrix("array integer general", "2 3\n1\n0\n3\n4\n5\n6\n")).unwrap();
        assert_eq!(cells(&data), [(1, 1, 1), (1, 2, 3), (2, 2, 4), (1, 3, 5), (2, 3, 6)]);
        let data = read_text(&matrix("array real symmetric", "2 2\n1.0\n2.0\n3.0\n")).unwrap();
        assert_eq!(cells(&data), [(1, 1, 1), (2, 1, 2), (1, 2, 2), (2, 2, 3)]);
    }

    #[test]
    fn repeated_entries_are_added_and_said_once_for_each_line() {
        let data = read_text(&matrix("coordinate integer symmetric", "2 2 2\n2 1 1\n2 1 3\n")).unwrap();
        assert_eq!(cells(&data), [(2, 1, 4), (1, 2, 4)]);
        assert_eq!(data.warnings, [Warning::DuplicateRows { n_rows: 1 }]);
    }

    #[test]
    fn a_matrix_without_entries_is_fine() {
        let data = read_text(&matrix("coordinate integer general", "3 4 0")).unwrap();
        assert_eq!(data.n_tokens(), Some(0));
        assert_eq!(data.columns[1].labels.len(), 4);
    }

    #[test]
    fn bad_banners_are_refused() {
        assert_refused("", &["test.mtx: the file is empty", "%%MatrixMarket"]);
        assert_refused("3 4 5\n", &["line 1: `3 4 5` is no banner", "%%MatrixMarket"]);
        assert_refused("%%MatrixMarket matrix coordinate\n", &["line 1", "is no banner"]);
        assert_refused("%%MatrixMarket vector coordinate real general\n", &["object `vector`"]);
        for (words, wanted) in [
            ("csr integer general", "layout `csr` cannot be read; it must be `coordinate` or `array`"),
            ("coordinate complex general", "field `complex` cannot be read"),
            ("coordinate text general", "field `text`"),
            ("array pattern general", "field `pattern`"),
            ("coordinate integer skew-symmetric", "symmetry `skew-symmetric` cannot be read"),
            ("coordinate integer hermitian", "symmetry `hermitian` cannot be read"),
        ] {
            assert_refused(&matrix(words, "1 1 0\n"), &["line 1", wanted]);
        }
    }

    #[test]
    fn bad_sizes_are_refused() {
        let words = "coordinate integer general";
        assert_refused(
            &matrix(words, "% only a note\n"),
            &["the line of sizes is missing", "rows, columns and entries"],
        );
        assert_refused(&matrix(words, "3 4\n"), &["line 2: the line of sizes must hold", "`3 4`"]);
        assert_refused(&matrix(words, "3 -4 1\n"), &["`3 -4 1`"]);
        assert_refused(&matrix(words, "3 4.0 1\n"), &["`3 4.0 1`"]);
        assert_refused(&matrix("array integer general", "3 4 5\n"), &["must hold rows and columns", "`3 4 5`"]);
        assert_refused(&matrix(words, "0 4 0\n"), &["line 2: the matrix has 0 rows"]);
        assert_refused(&matrix(words, "4 0 0\n"), &["the matrix has 0 columns"]);
        assert_refused(&matrix(words, "4294967295 1 0\n"), &["4294967295 rows are too many", "4294967294"]);
        assert_refused(&matrix("coordinate integer symmetric", "2 3 0\n"), &["square", "2 and 3"]);
    }

    #[test]
    fn promises_are_checked_without_setting_memory_aside() {
        let words = "coordinate integer general";
        assert_refused(
            &matrix(words, "9 9 18446744073709551615\n1 1 1\n"),
            &["test.mtx: the file ends after 1 entries, but line 2 promises 18446744073709551615"],
        );
        assert_refused(&matrix(words, "9 9 1\n1 1 1\n2 2 2\n"), &["line 4: one entry more than the 1 that line 2"]);
        assert_refused(&matrix("array integer general", "2 2\n1\n2\n3\n"), &["ends after 3 entries", "promises 4"]);
        assert_refused(&matrix("array integer general", "4294967294 4294967294\n"), &["ends after 0 entries"]);
    }

    #[test]
    fn bad_entries_are_refused() {
        let file = |entry: &str| matrix("coordinate integer general", &format!("3 4 2\n1 1 1\n{entry}\n"));
        for (entry, wanted) in [
            ("0 1 1", "line 4, column 1: index 0 is out of range; indices count from 1"),
            ("4 1 1", "line 4, column 1: index `4` is beyond 3"),
            ("1 5 1", "line 4, column 2: index `5` is beyond 4"),
            ("1 -1 1", "line 4, column 2: index `-1` is negative"),
            ("1 1 -1", "line 4, column count: count `-1` is negative"),
            ("1 1 1.0", "line 4, column count: count `1.0` is not written as a whole number"),
            ("1 1", "line 4: an entry is a row, a column and a count, but the line is `1 1`"),
            ("1 1 1 1", "line 4: an entry is"),
        ] {
            assert_refused(&file(entry), &[wanted]);
        }
        assert_refused(&matrix("coordinate real general", "1 1 1\n1 1 2.5\n"), &["line 3, column count", "not whole"]);
        assert_refused(&matrix("coordinate pattern general", "1 1 1\n1 1 1\n"), &["an entry is a row and a column"]);
        assert_refused(
            &matrix("array integer general", "1 2\n1 2\n"),
            &["line 3: an array has one entry on each line"],
        );
        assert_refused(
            &matrix("coordinate integer symmetric", "3 3 1\n1 3 1\n"),
            &["line 3: entry (1, 3) lies above the diagonal"],
        );
    }
}
