//! CSV and TSV: a header of column names, then one row per line.
//!
//! - A column called `count` holds counts; without it each row is one token. A file with only `count` is fine.
//! - An empty field, quoted or not, is a missing value; the count `?` makes the row an unknown cell.
//! - Blanks around names and values are dropped unless they stand in quotes. Blank lines are skipped, so in a file of
//!   one column a missing value is written `""`. A `#` starts no comment: labels may begin with it.

use super::Input;
use super::bins::Cuts;
use super::lines::{Lines, shown};
use super::number::{CountStyle, parse_count};
use super::record::{Delimiter, Records};
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::{Error, Result};
use crate::warning::Warning;
use std::collections::BTreeMap;

/// The name of the column of counts.
const COUNT: &str = "count";

/// Reads a whole file.
pub(super) fn read(input: Input<'_>, delimiter: Delimiter, cuts: &[Cuts], sink: &mut impl RowSink) -> Result<()> {
    let mut records = Records::new(Lines::new(input), delimiter);
    let header = Header::read(&mut records, delimiter)?;
    let mut binned = header.binned(cuts);
    header.declare(&mut binned, sink);
    let style = CountStyle::Integer.or_fraction(sink);
    while records.advance()? {
        if records.len() != header.names.len() {
            return Err(header.wrong_width(&records));
        }
        let count = match header.count_ix {
            Some(ix) => {
                let count = parse_count(records.field(ix), style);
                count.map_err(|message| records.error(Some(COUNT), message))?
            }
            None => RowCount::Tokens(1),
        };
        let fields = (0..records.len()).filter(|&ix| Some(ix) != header.count_ix);
        if binned.is_empty() {
            sink.push(records.line(), fields.map(|ix| cell(records.field(ix))), count)?;
            continue;
        }
        for column in &mut binned {
            let text = records.field(column.ix);
            let category = if text.is_empty() { None } else { Some(column.cuts.category(&column.labels, text)) };
            let category = category.transpose();
            column.category = category.map_err(|message| records.error(Some(&header.names[column.ix]), message))?;
        }
        let cells = fields.map(|ix| match binned.iter().find(|column| column.ix == ix) {
            Some(column) => column.cell(),
            None => cell(records.field(ix)),
        });
        sink.push(records.line(), cells, count)?;
    }
    Ok(())
}

#[inline]
fn cell(field: &str) -> Cell<'_> {
    if field.is_empty() { Cell::Missing } else { Cell::Label(field) }
}

/// A column of numbers that are cut into categories.
struct Binned<'c> {
    ix: usize,
    cuts: &'c Cuts,
    labels: Vec<String>,
    /// Whether whoever takes the rows wants labels.
    wants_labels: bool,
    /// That of the row at hand.
    category: Option<u32>,
}

impl Binned<'_> {
    fn cell(&self) -> Cell<'_> {
        match self.category {
            None => Cell::Missing,
            Some(category) if self.wants_labels => Cell::Label(&self.labels[category as usize]),
            Some(category) => Cell::Index(category),
        }
    }
}

/// The first record.
struct Header {
    delimiter: Delimiter,
    names: Vec<String>,
    count_ix: Option<usize>,
    /// What to say when the file seems to be separated by something else.
    other_format: Option<String>,
}

impl Header {
    fn read(records: &mut Records<'_>, delimiter: Delimiter) -> Result<Self> {
        if !records.advance()? {
            let message = "the file is empty; the first line must name the columns (a header without rows is fine)";
            return Err(records.error_of_file(message));
        }
        let names: Vec<String> = (0..records.len()).map(|ix| records.field(ix).to_owned()).collect();
        check_names(&names, records, delimiter)?;
        let count_ix = names.iter().position(|name| name == COUNT);
        let other_format = other_format(&names, delimiter);
        Ok(Header { delimiter, names, count_ix, other_format })
    }

    /// The columns that are cut.
    fn binned<'c>(&self, cuts: &'c [Cuts]) -> Vec<Binned<'c>> {
        let of_column = |(ix, name): (usize, &String)| {
            let cuts = cuts.iter().find(|cuts| cuts.column == *name).filter(|_| Some(ix) != self.count_ix)?;
            Some(Binned { ix, cuts, labels: cuts.labels(), wants_labels: false, category: None })
        };
        self.names.iter().enumerate().filter_map(of_column).collect()
    }

    fn declare(&self, binned: &mut [Binned<'_>], sink: &mut impl RowSink) {
        for (ix, name) in self.names.iter().enumerate().filter(|(ix, _)| Some(*ix) != self.count_ix) {
            match binned.iter_mut().find(|column| column.ix == ix) {
                Some(column) => column.wants_labels = !sink.coded_column(Some(name.clone()), &column.labels),
                None => sink.label_column(Some(name.clone())),
            }
        }
        if self.count_ix.is_none() {
            sink.rows_are_tokens();
        }
        for message in self.other_format.iter().cloned().chain(self.nearly_count()) {
            sink.warn(Warning::Odd { message });
        }
    }

    /// A word about a column that is nearly called `count`.
    fn nearly_count(&self) -> Option<String> {
        let is_near = |name: &str| name.eq_ignore_ascii_case("count") || name.eq_ignore_ascii_case("counts");
        let name = self.names.iter().find(|name| is_near(name)).filter(|_| self.count_ix.is_none())?;
        Some(format!("column `{name}` is read as a variable like any other; call it `count` if it holds counts"))
    }

    fn wrong_width(&self, records: &Records<'_>) -> Error {
        let (found, wanted) = (records.len(), self.names.len());
        let delimiter = self.delimiter.name();
        let way_out = match &self.other_format {
            Some(hint) => hint.clone(),
            None if found > wanted => format!("quote a value that holds a {delimiter}"),
            None => format!("a missing value is an empty field, but its {delimiter} must be there"),
        };
        let columns = if wanted == 1 { "column" } else { "columns" };
        let fields = if found == 1 { "field" } else { "fields" };
        let message = format!("{found} {fields}, but the header names {wanted} {columns}; {way_out}");
        records.error(None, message)
    }
}

/// Refuses columns without a name and names that stand twice.
fn check_names(names: &[String], records: &Records<'_>, delimiter: Delimiter) -> Result<()> {
    let mut first_use = BTreeMap::new();
    for (ix, name) in names.iter().enumerate() {
        let number = (ix + 1).to_string();
        if name.is_empty() {
            let message =
                format!("the column has no name; name it in the header, or remove a {} too many", delimiter.name());
            return Err(records.error(Some(&number), message));
        }
        if let Some(first) = first_use.insert(name, ix) {
            let message = format!(
                "columns {} and {number} are both called {}; rename or remove one of them",
                first + 1,
                shown(name)
            );
            return Err(records.error(Some(&number), message));
        }
    }
    Ok(())
}

/// A word about a file whose only column's name looks like several.
fn other_format(names: &[String], delimiter: Delimiter) -> Option<String> {
    let [name] = names else { return None };
    let (separator, way_out) = match delimiter {
        Delimiter::Comma if name.contains('\t') => ("a tab", "give `--format tsv`"),
        Delimiter::Tab if name.contains(',') => ("`,`", "give `--format csv`"),
        _ if name.contains(';') => ("`;`", "save it with commas"),
        _ if name.contains('|') => ("`|`", "save it with commas"),
        _ => return None,
    };
    Some(format!(
        "the header names one column only, {}; if the columns are separated by {separator}, {way_out}",
        shown(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels, MISSING};

    fn read_as(bytes: &[u8], delimiter: Delimiter) -> Result<Dataset> {
        let input = Input { reader: Box::new(bytes), source: "test.csv".into() };
        let mut builder = DatasetBuilder::new("test.csv");
        read(input, delimiter, &[], &mut builder).map(|()| builder.finish())
    }

    fn dataset(text: &str) -> Dataset {
        read_as(text.as_bytes(), Delimiter::Comma).expect(text)
    }

    fn refusal(text: &str) -> String {
        read_as(text.as_bytes(), Delimiter::Comma).expect_err(text).to_string()
    }

    #[track_caller]
    fn assert_refused(text: &str, wanted: &[&str]) {
        let message = refusal(text);
        for part in wanted {
            assert!(message.contains(part), "{text:?}: {message}");
        }
        assert!(!message.contains('\n'), "{message}");
    }

    fn named(labels: &[&str]) -> Labels {
        Labels::Named(labels.iter().map(|&label| label.to_owned()).collect())
    }

    #[test]
    fn a_file_with_counts_keeps_rows_labels_and_lines() {
        let data = dataset("doc,count,word\nd1,3,cat\nd2,0,dog\nd1,2,dog\n");
        assert_eq!(data.columns[0].name.as_deref(), Some("doc"));
        assert_eq!(data.columns[0].labels, named(&["d1", "d2"]));
        assert_eq!(data.columns[1].labels, named(&["cat", "dog"]));
        assert_eq!(data.columns[1].first_lines, [2, 3]);
        assert_eq!(data.values, [vec![0, 1, 0], vec![0, 1, 1]]);
        assert_eq!(data.counts, [3, 0, 2]);
        assert!(data.warnings.is_empty());
    }

    #[test]
    fn without_counts_each_row_is_a_token() {
        let data = dataset("a,b\nx,y\nx,y\nx,z\n");
        assert_eq!(data.counts, [2, 1]);
        assert!(data.warnings.is_empty());
    }

    #[test]
    fn repeated_rows_with_counts_are_added_and_said() {
        let data = dataset("a,count\nx,1\ny,1\nx,2\n");
        assert_eq!(data.counts, [3, 1]);
        assert_eq!(data.warnings, [Warning::DuplicateRows { n_rows: 1 }]);
    }

    #[test]
    fn empty_fields_are_missing_values_quoted_or_not() {
        let data = dataset("a,b,count\nx,,1\n\"\",y,2\n , ,3\n");
        assert_eq!(data.values, [vec![0, MISSING, MISSING], vec![MISSING, 0, MISSING]]);
        let data = dataset("a\nx\n\"\"\n\nx\n");
        assert_eq!(data.values, [[0, MISSING]]);
        assert_eq!(data.counts, [2, 1]);
    }

    #[test]
    fn a_question_mark_is_an_unknown_cell() {
        let data = dataset("a,b,count\nx,y,1\nx,z,?\n");
        assert_eq!(data.unknown, [[0, 1]]);
        assert_eq!(data.unknown_lines, [3]);
        assert_eq!(data.counts, [1]);
    }

    #[test]
    fn a_file_with_only_counts_is_fine() {
        let data = dataset("count\n5\n");
        assert!(data.columns.is_empty() && data.values.is_empty());
        assert_eq!(data.counts, [5]);
    }

    #[test]
    fn a_header_without_rows_is_fine() {
        for text in ["a,b,count\n", "a,b,count", "\n\na,b,count\n\n"] {
            let data = dataset(text);
            assert_eq!(data.columns.len(), 2);
            assert_eq!(data.values, [Vec::<u32>::new(), Vec::new()]);
            assert_eq!(data.n_tokens(), Some(0));
        }
    }

    #[test]
    fn line_ends_byte_order_marks_and_blank_lines_do_not_matter() {
        let expected = dataset("a,b,count\nx,y,1\nz,y,2\n");
        for text in ["a,b,count\r\nx,y,1\r\nz,y,2\r\n", "\u{feff}a,b,count\nx,y,1\nz,y,2"] {
            assert_eq!(dataset(text), expected, "{text:?}");
        }
        let with_blank_lines = dataset("\na,b,count\n\nx,y,1\n  \nz,y,2\n\n");
        assert_eq!(with_blank_lines.values, expected.values);
        assert_eq!(with_blank_lines.columns[0].first_lines, [4, 6]);
    }

    #[test]
    fn blanks_around_values_go_and_quoted_ones_stay() {
        let data = dataset(" a , b,count \nx , y, 1 \n\" x\", y ,2\n");
        assert_eq!(data.columns[0].name.as_deref(), Some("a"));
        assert_eq!(data.columns[0].labels, named(&["x", " x"]));
        assert_eq!(data.columns[1].labels, named(&["y"]));
    }

    #[test]
    fn a_hash_sign_starts_a_label_and_no_comment() {
        assert_eq!(dataset("tag\n#rust\n").columns[0].labels, named(&["#rust"]));
    }

    #[test]
    fn tabs_separate_in_tsv() {
        let data = read_as(b"a\tb\tcount\nx y\t\"q,r\"\t2\n\tz\t1\n", Delimiter::Tab).unwrap();
        assert_eq!(data.columns[0].labels, named(&["x y"]));
        assert_eq!(data.columns[1].labels, named(&["q,r", "z"]));
        assert_eq!(data.values[0], [0, MISSING]);
    }

    #[test]
    fn an_empty_file_is_refused() {
        for text in ["", "\n\n", "\u{feff}", " \r\n"] {
            assert_refused(text, &["test.csv: the file is empty", "header without rows is fine"]);
        }
    }

    #[test]
    fn bad_headers_are_refused() {
        assert_refused("\na,b,a\n", &["line 2, column 3: columns 1 and 3 are both called `a`; rename"]);
        assert_refused("count,b,count\n", &["line 1, column 3: columns 1 and 3 are both called `count`"]);
        assert_refused("a,,count\n", &["line 1, column 2: the column has no name", "comma too many"]);
        assert_refused("a,b,\n", &["column 3: the column has no name"]);
        assert_refused("\"\"\n", &["column 1: the column has no name"]);
    }

    #[test]
    fn rows_of_another_width_are_refused() {
        assert_refused("a,b\nx,y\nx,y,z\n", &["line 3: 3 fields, but the header names 2 columns; quote a value"]);
        assert_refused("a,b\r\n\r\nx\r\n", &["line 3: 1 field, but", "2 columns; a missing value is an empty field"]);
        assert_refused("a;b\n1,5;2\n", &["line 2: 2 fields, but the header names 1 column", "`a;b`", "with commas"]);
    }

    #[test]
    fn bad_counts_are_refused_with_line_column_and_value() {
        for (count, wanted) in [
            ("-1", "count `-1` is negative"),
            ("2.5", "count `2.5` is not whole; evidence needs whole counts"),
            ("3.0", "count `3.0` is not written as a whole number; write 3"),
            ("1e3", "count `1e3` is not written as a whole number; write 1000"),
            ("NaN", "count `NaN` is not finite"),
            ("inf", "count `inf` is not finite"),
            ("18446744073709551616", "count `18446744073709551616` is beyond 18446744073709551615"),
            ("", "the count is empty; write a whole number, or `?`"),
            ("\"\"", "the count is empty"),
            ("many", "count `many` is not a number"),
            ("??", "count `??` is not a number"),
        ] {
            assert_refused(&format!("a,count\nx,1\n\ny,{count}\n"), &["test.csv, line 4, column count: ", wanted]);
        }
        assert_eq!(dataset("a,count\nx,18446744073709551615\n").counts, [u64::MAX]);
        assert_refused("a,count\nx,18446744073709551615\ny,1\n", &["line 3: with the count 1 the total goes beyond"]);
    }

    #[test]
    fn bad_unknown_cells_are_refused() {
        assert_refused("a,b,count\nx,,?\n", &["line 2, column b: the count is `?` but this value is missing"]);
        assert_refused("a,count\nx,4\nx,?\n", &["line 3", "`?` here but 4", "line 2"]);
        assert_refused("a,count\nx,?\ny,1\nx,0\n", &["line 4", "0 here but `?`", "line 2"]);
        assert_refused("a,count\nx,?\nx,?\n", &["line 3", "on line 2 already"]);
    }

    #[test]
    fn what_is_no_text_is_refused() {
        let message = read_as(b"a,b\nx,y\nx,\xFFz\n", Delimiter::Comma).unwrap_err().to_string();
        assert!(message.contains("line 3: byte 3 of the line (0xff, after `x,`) is not UTF-8"), "{message}");
        let message = read_as(b"a,b\nx,\0\n", Delimiter::Comma).unwrap_err().to_string();
        assert!(message.contains("line 2: the line holds a NUL byte"), "{message}");
        assert_refused("a,b\nx,\"y\nz,w\n", &["line 2: the quote that opens field 2 is never closed"]);
        assert_refused("a,b\rx,y\r", &["line 1: a carriage return"]);
    }

    #[test]
    fn lines_are_right_after_values_of_several_lines() {
        assert_refused("a,count\r\n\"x\r\ny\",1\r\nz,-1\r\n", &["line 4, column count"]);
    }

    #[test]
    fn another_separator_is_suspected() {
        for (text, delimiter, wanted) in [
            ("a;b;count\n1;2;3\n", Delimiter::Comma, "separated by `;`, save it with commas"),
            ("a\tb\n1\t2\n", Delimiter::Comma, "separated by a tab, give `--format tsv`"),
            ("a|b\n1|2\n", Delimiter::Comma, "separated by `|`"),
            ("a,b\n1,2\n", Delimiter::Tab, "separated by `,`, give `--format csv`"),
        ] {
            let data = read_as(text.as_bytes(), delimiter).unwrap();
            assert_eq!(data.warnings.len(), 1, "{text:?}");
            assert!(data.warnings[0].to_string().contains(wanted), "{}", data.warnings[0]);
        }
    }

    #[test]
    fn a_column_nearly_called_count_is_mentioned() {
        assert!(dataset("a,Count\nx,3\n").warnings[0].to_string().contains("column `Count`"));
        assert!(dataset("a,counts\nx,3\n").warnings[0].to_string().contains("column `counts`"));
        assert!(dataset("a,Count,count\nx,3,1\n").warnings.is_empty());
    }
}
