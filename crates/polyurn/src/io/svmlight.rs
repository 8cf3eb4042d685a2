//! SVMlight and LIBSVM: a row on each line, as a label and then `feature:count` for each feature that is not zero.
//!
//! Features are counted from 1, rows too. What follows a `#` is a comment, `qid:` is left out. `?` makes an unknown cell.

use super::Input;
use super::lines::{Lines, shown};
use super::number::{CountStyle, parse_count, parse_one_based};
use crate::counts::{Cell, RowSink};
use crate::error::{Error, Result};

/// Most rows and features: codes of values stay below that of a missing one.
const MAX_SIZE: u32 = u32::MAX - 1;

/// Reads a whole file. `with_labels` adds a column of labels.
pub(super) fn read(input: Input<'_>, with_labels: bool, sink: &mut impl RowSink) -> Result<()> {
    let mut lines = Lines::new(input);
    sink.index_column(Some("row".into()), 1, None);
    sink.index_column(Some("feature".into()), 1, None);
    if with_labels {
        sink.label_column(Some("label".into()));
    }
    let style = CountStyle::Real.or_fraction(sink);
    let mut n_rows = 0;
    while lines.advance_to_text()? {
        let data = lines.text().split('#').next().unwrap_or_default();
        let mut fields = data.split_ascii_whitespace();
        let Some(label) = fields.next() else { continue };
        if label.contains(':') {
            let message = format!(
                "the line begins with {}, but a label comes before the features; write 0 where there is none",
                shown(label)
            );
            return Err(lines.error(None, message));
        }
        if n_rows == MAX_SIZE {
            return Err(lines.error(None, format!("more than {MAX_SIZE} rows; split the file")));
        }
        let row = n_rows;
        n_rows += 1;
        sink.value_exists(0, row);
        for (ix, field) in fields.enumerate() {
            let Some((feature, count)) = field.split_once(':') else {
                return Err(wrong_field(&lines, field, "is not `feature:count`"));
            };
            if feature == "qid" && ix == 0 {
                continue;
            }
            let in_field = |what: String| wrong_field(&lines, field, &what);
            let feature = parse_one_based(feature, MAX_SIZE).map_err(in_field)?;
            let count = parse_count(count, style).map_err(in_field)?;
            let label = with_labels.then_some(Cell::Label(label));
            sink.push(lines.number(), [Cell::Index(row), Cell::Index(feature)].into_iter().chain(label), count)?;
        }
    }
    if n_rows == 0 {
        return Err(lines.error_of_file("the file holds no row; a line is a label and then `feature:count`"));
    }
    Ok(())
}

fn wrong_field(lines: &Lines<'_>, field: &str, what: &str) -> Error {
    let separator = if what.starts_with("is ") { "" } else { ":" };
    lines.error(None, format!("{}{separator} {what}", shown(field)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels};

    fn read_with(text: &str, with_labels: bool) -> Result<Dataset> {
        let input = Input { reader: Box::new(text.as_bytes()), source: "a.svm".into() };
        let mut builder = DatasetBuilder::new("a.svm");
        read(input, with_labels, &mut builder).map(|()| builder.finish())
    }

    #[track_caller]
    fn assert_refused(text: &str, wanted: &str) {
        let message = read_with(text, false).expect_err(text).to_string();
        assert!(message.contains(wanted) && !message.contains('\n'), "{text:?}: {message}");
    }

    const TEXT: &str = "\u{feff}# all\r\n+1 qid:3 1:5 4:1.0 # a comment 5:6\r\n\r\n-1\r\n+1 2:2 2:1\r\n2.5";

    #[test]
    fn each_line_is_a_row() {
        let data = read_with(TEXT, false).unwrap();
        assert_eq!(data.columns.len(), 2);
        assert_eq!(data.columns[0].name.as_deref(), Some("row"));
        assert_eq!(data.columns[0].labels, Labels::Indexed { size: 4, first: 1 });
        assert_eq!(data.columns[1].labels, Labels::Indexed { size: 4, first: 1 });
        assert_eq!(data.values, [[0, 0, 2], [0, 3, 1]]);
        assert_eq!(data.counts, [5, 1, 3]);
        assert_eq!(data.warnings.len(), 1);
    }

    #[test]
    fn labels_are_a_column_where_they_are_wanted() {
        let data = read_with("a 1:1 2:1\nb 1:1\na 2:?\n", true).unwrap();
        assert_eq!(data.columns[2].labels, Labels::Named(vec!["a".into(), "b".into()]));
        assert_eq!(data.values[2], [0, 0, 1]);
        assert_eq!(data.unknown, [[2, 1, 0]]);
    }

    #[test]
    fn what_is_wrong_is_refused() {
        assert_refused("", "a.svm: the file holds no row");
        assert_refused("# only a comment\n", "the file holds no row");
        assert_refused("3:1 4:1\n", "line 1: the line begins with `3:1`, but a label comes before");
        assert_refused("1 0:1\n", "line 1: `0:1`: index 0 is out of range; indices count from 1, so add 1");
        assert_refused("1 2:1 x\n", "line 1: `x` is not `feature:count`");
        assert_refused("1 2:1 qid:1\n", "`qid:1`: index `qid` is not a whole number");
        assert_refused("1 -2:1\n", "index `-2` is negative");
        assert_refused("1 1.5:1\n", "index `1.5` is not a whole number");
        assert_refused("1 4294967295:1\n", "is beyond 4294967294");
        assert_refused("1 1:-1\n", "count `-1` is negative");
        assert_refused("1 1:0.5\n", "count `0.5` is not whole");
        assert_refused("1 1:\n", "the count is empty");
        assert_refused("1 1:inf\n", "is not finite");
        assert_refused("1 1:9007199254740994.0\n", "beyond 2^53");
        assert_refused("1 1:1\0\n", "NUL byte");
        assert_refused("1 1:1\r1 1:1\n", "carriage return");
    }
}
