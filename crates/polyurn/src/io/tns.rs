//! FROSTT `.tns`: each line holds one-based coordinates and then a count.
//!
//! Lines that start with `#` are comments. The first line of data decides how many axes there are. Values may be
//! written as decimals if they are whole (`3.0`); `?` makes an unknown cell.

use super::Input;
use super::lines::Lines;
use super::number::{CountStyle, parse_count, parse_one_based};
use crate::counts::{Cell, RowSink};
use crate::error::{Error, Result};

/// Largest index: codes of values stay below that of a missing one.
const MAX_INDEX: u32 = u32::MAX - 1;

/// Reads a whole file.
pub(super) fn read(input: Input<'_>, sink: &mut impl RowSink) -> Result<()> {
    let mut reader = Reader { sink, lines: Lines::new(input), values: Vec::new(), n_axes: 0, first_line: 0 };
    while reader.lines.advance()? {
        reader.read_line()?;
    }
    if reader.first_line == 0 {
        let message = "the file holds no line of data, so the number of axes is not known; \
                       a line is indices from 1 and then a count";
        return Err(reader.lines.error_of_file(message));
    }
    Ok(())
}

struct Reader<'a, 's, S> {
    sink: &'s mut S,
    lines: Lines<'a>,
    /// The values of the line at hand.
    values: Vec<u32>,
    n_axes: usize,
    /// The first line of data; 0 before it.
    first_line: u64,
}

impl<S: RowSink> Reader<'_, '_, S> {
    fn read_line(&mut self) -> Result<()> {
        let text = self.lines.text().trim_ascii();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if self.first_line == 0 {
            self.set_axes()?;
        }
        self.lines.refuse_carriage_return()?;
        let mut fields = self.lines.text().split_ascii_whitespace();
        self.values.clear();
        for (axis, field) in fields.by_ref().take(self.n_axes).enumerate() {
            match parse_one_based(field, MAX_INDEX) {
                Ok(value) => self.values.push(value),
                Err(message) => return Err(self.lines.error(Some(&(axis + 1).to_string()), message)),
            }
        }
        let (Some(count), None) = (fields.next(), fields.next()) else {
            return Err(self.wrong_width());
        };
        let count = parse_count(count, CountStyle::Real.or_fraction(self.sink));
        let count = count.map_err(|message| self.lines.error(Some("count"), message))?;
        self.sink.push(self.lines.number(), self.values.iter().copied().map(Cell::Index), count)
    }

    /// Takes the number of axes from the first line of data.
    fn set_axes(&mut self) -> Result<()> {
        self.first_line = self.lines.number();
        self.n_axes = self.lines.text().split_ascii_whitespace().count() - 1;
        if self.n_axes == 0 {
            let message = "the line has 1 field; a line is one or more indices from 1 and then a count";
            return Err(self.lines.error(None, message));
        }
        for _ in 0..self.n_axes {
            self.sink.index_column(None, 1, None);
        }
        Ok(())
    }

    fn wrong_width(&self) -> Error {
        let found = self.lines.text().split_ascii_whitespace().count();
        let message = format!(
            "the line has {found} fields, but the first line of data (line {}) has {}; all need one index for each \
             axis and a count",
            self.first_line,
            self.n_axes + 1
        );
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
    }

    #[test]
    fn coordinates_become_values_and_the_largest_sets_the_size() {
        let data = read_text("# three axes\n\n1 2 3 4\n2 2 1 1.0\n  # more\n5\t1  1 3e0\r\n").unwrap();
        assert_eq!(data.columns.len(), 3);
        assert_eq!(data.columns[0].name, None);
        assert_eq!(data.columns[0].labels, Labels::Indexed { size: 5, first: 1 });
        assert_eq!(data.columns[2].labels, Labels::Indexed { size: 3, first: 1 });
        assert_eq!(data.values, [[0, 1, 4], [1, 1, 0], [2, 0, 0]]);
        assert_eq!(data.counts, [4, 1, 3]);
        assert!(data.warnings.is_empty());
    }

    #[test]
    fn the_last_line_end_and_a_byte_order_mark_do_not_matter() {
        assert_eq!(read_text("\u{feff}1 1 2\r\n1 2 3").unwrap().counts, [2, 3]);
    }

    #[test]
    fn repeated_coordinates_are_added_and_said() {
        let data = read_text("1 1 2\n1 1 3\n").unwrap();
        assert_eq!(data.counts, [5]);
        assert_eq!(data.warnings, [Warning::DuplicateRows { n_rows: 1 }]);
    }

    #[test]
    fn zeros_and_unknown_cells_are_read() {
        let data = read_text("1 1 0\n1 2 ?\n").unwrap();
        assert_eq!(data.counts, [0]);
        assert_eq!(data.unknown, [[0, 1]]);
        assert_refused("1 1 0\n1 1 ?\n", &["line 2", "line 1"]);
    }

    #[test]
    fn a_file_without_data_is_refused() {
        for text in ["", "\n\n", "# nothing\n"] {
            assert_refused(text, &["test.tns: the file holds no line of data", "number of axes"]);
        }
    }

    #[test]
    fn bad_indices_are_refused() {
        assert_refused("1 1 1\n1 0 1\n", &["test.tns, line 2, column 2: index 0", "count from 1, so add 1"]);
        assert_refused("-1 1 1\n", &["line 1, column 1: index `-1` is negative"]);
        assert_refused("1.5 1 1\n", &["line 1, column 1: index `1.5` is not a whole number"]);
        assert_refused("a b c\n", &["line 1, column 1: index `a`"]);
        assert_refused("1 ? 1\n", &["line 1, column 2: index `?`"]);
        assert_refused("4294967295 1\n", &["line 1, column 1: index `4294967295` is beyond 4294967294"]);
        let data = read_text("4294967294 1\n").unwrap();
        assert_eq!(data.columns[0].labels.len(), 4_294_967_294);
    }

    #[test]
    fn bad_counts_are_refused() {
        for (count, wanted) in [
            ("2.5", "count `2.5` is not whole; evidence needs whole counts"),
            ("-2", "count `-2` is negative"),
            ("nan", "count `nan` is not finite"),
            ("x", "count `x` is not a number"),
            ("9007199254740993.0", "count `9007199254740993.0` is beyond 2^53"),
        ] {
            assert_refused(&format!("1 1 1\n\n2 1 {count}\n"), &["line 3, column count: ", wanted]);
        }
    }

    #[test]
    fn lines_of_another_width_are_refused() {
        assert_refused("# c\n1 1 1\n1 1\n", &["line 3: the line has 2 fields", "(line 2) has 3"]);
        assert_refused("1 1 1\n1 1 1 1\n", &["line 2: the line has 4 fields", "(line 1) has 3"]);
        assert_refused("1\n", &["line 1: the line has 1 field"]);
    }

    #[test]
    fn old_line_ends_do_not_turn_a_file_into_one_row() {
        assert_refused("1 1 2\r2 2 3\r", &["line 1: a carriage return"]);
    }
}
