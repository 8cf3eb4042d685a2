//! Records out as CSV, such that our reader gets the same values back.
//!
//! Values are quoted where they must be, which includes blanks at either end: outside quotes a reader may drop them.

use super::Format;
use crate::counts::{Dataset, MISSING, RowCount};
use crate::error::{Error, Result};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes records of text as CSV, through a buffer.
///
/// ```
/// use polyurn::io::CsvWriter;
/// let mut out = Vec::new();
/// let mut writer = CsvWriter::new(&mut out, "out.csv".as_ref());
/// writer.record(["name", "says"])?;
/// writer.record(["cat", "meow, \"purr\""])?;
/// writer.finish()?;
/// assert_eq!(out, b"name,says\ncat,\"meow, \"\"purr\"\"\"\n");
/// # Ok::<(), polyurn::Error>(())
/// ```
#[derive(Debug)]
pub struct CsvWriter<W: Write> {
    out: BufWriter<W>,
    target: PathBuf,
    /// The record at hand.
    text: String,
    delimiter: char,
}

impl<W: Write> CsvWriter<W> {
    /// A writer to `out`, which is called `target` in messages.
    pub fn new(out: W, target: &Path) -> Self {
        Self::delimited(out, target, ',')
    }

    /// A writer of records whose fields are separated by something else.
    pub(super) fn delimited(out: W, target: &Path, delimiter: char) -> Self {
        CsvWriter { out: BufWriter::new(out), target: target.to_owned(), text: String::new(), delimiter }
    }

    /// Writes one record.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn record(&mut self, fields: impl IntoIterator<Item = impl AsRef<str>>) -> Result<()> {
        self.text.clear();
        for (ix, field) in fields.into_iter().enumerate() {
            if ix > 0 {
                self.text.push(self.delimiter);
            }
            push_field(&mut self.text, field.as_ref(), self.delimiter);
        }
        if self.text.is_empty() {
            // A blank line would be no record.
            self.text.push_str("\"\"");
        }
        self.text.push('\n');
        self.out.write_all(self.text.as_bytes()).map_err(|error| self.unwritable(error))
    }

    /// Writes out what is still in the buffer.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(|error| self.unwritable(error))
    }

    fn unwritable(&self, error: std::io::Error) -> Error {
        Error::Io { path: self.target.clone(), source: error }
    }
}

/// Appends a field to a line of CSV, in quotes where it must be.
pub fn push_csv_field(text: &mut String, field: &str) {
    push_field(text, field, ',');
}

fn push_field(text: &mut String, field: &str, delimiter: char) {
    let is_blank = |c: char| c == ' ' || c == '\t' || c == '\u{feff}';
    let needs_quotes =
        field.contains([delimiter, '"', '\r', '\n']) || field.starts_with(is_blank) || field.ends_with(is_blank);
    if !needs_quotes {
        text.push_str(field);
        return;
    }
    text.push('"');
    for (ix, part) in field.split('"').enumerate() {
        if ix > 0 {
            text.push_str("\"\"");
        }
        text.push_str(part);
    }
    text.push('"');
}

/// Writes rows with counts as CSV: a header of the names and `count`, then for each row a label or nothing (a missing
/// value) for each name, and its count. `out` is called `target` in messages.
///
/// ```
/// use polyurn::counts::RowCount;
/// let mut out = Vec::new();
/// let rows = [([Some("d1"), Some("cat")], RowCount::Tokens(3)), ([Some("d1"), None], RowCount::Tokens(1))];
/// polyurn::io::write_csv(&mut out, "out.csv".as_ref(), &["doc".into(), "word".into()], rows)?;
/// assert_eq!(out, b"doc,word,count\nd1,cat,3\nd1,,1\n");
/// # Ok::<(), polyurn::Error>(())
/// ```
///
/// # Errors
/// When `out` does not take it, and when it could not be read back: a name that is empty or `count`, an empty label.
pub fn write_csv<S, C, R>(out: impl Write, target: &Path, names: &[String], rows: R) -> Result<()>
where
    S: AsRef<str>,
    C: IntoIterator<Item = Option<S>>,
    R: IntoIterator<Item = (C, RowCount)>,
{
    write_rows(CsvWriter::new(out, target), target, names, rows)
}

fn write_rows<W, S, C, R>(mut writer: CsvWriter<W>, target: &Path, names: &[String], rows: R) -> Result<()>
where
    W: Write,
    S: AsRef<str>,
    C: IntoIterator<Item = Option<S>>,
    R: IntoIterator<Item = (C, RowCount)>,
{
    if let Some(name) = names.iter().find(|name| name.is_empty() || *name == "count") {
        return Err(refused(target, format!("a column cannot be called `{name}` in CSV; rename it")));
    }
    writer.record(names.iter().map(String::as_str).chain(["count"]))?;
    let mut has_empty_label = false;
    for (cells, count) in rows {
        let cells = cells.into_iter().map(|cell| {
            has_empty_label |= cell.as_ref().is_some_and(|label| label.as_ref().is_empty());
            Field::Cell(cell)
        });
        writer.record(cells.chain([Field::Count(count.to_string())]))?;
        if has_empty_label {
            return Err(refused(target, "a label is empty and would be read as a missing value; name it".to_owned()));
        }
    }
    writer.finish()
}

/// Writes a whole dataset as CSV; a column without a name is called `i` and its number.
///
/// # Errors
/// As for [`write_csv`].
pub fn write_dataset_csv(out: impl Write, target: &Path, dataset: &Dataset) -> Result<()> {
    write_dataset_delimited(out, target, dataset, ',', Vec::new())
}

/// What separates the fields of a table.
pub(super) fn delimited(format: Format) -> char {
    if format == Format::Tsv { '\t' } else { ',' }
}

/// Writes a whole dataset as a table, and then rows of these codes with count 0.
pub(super) fn write_dataset_delimited(
    out: impl Write,
    target: &Path,
    dataset: &Dataset,
    delimiter: char,
    empty: Vec<Vec<u32>>,
) -> Result<()> {
    let columns = &dataset.columns;
    let named = columns.iter().enumerate();
    let names: Vec<String> =
        named.map(|(ix, column)| column.name.clone().unwrap_or_else(|| format!("i{}", ix + 1))).collect();
    let label = |ix: usize, code: u32| (code != MISSING).then(|| columns[ix].labels.name(code));
    let counted = (0..dataset.n_rows()).map(|row| {
        let cells: Vec<_> = (0..columns.len()).map(|ix| label(ix, dataset.values[ix].at(row))).collect();
        (cells, RowCount::Tokens(dataset.counts.at(row)))
    });
    let unknown = dataset.unknown.iter().map(|codes| {
        let cells: Vec<_> = codes.iter().enumerate().map(|(ix, &code)| label(ix, code)).collect();
        (cells, RowCount::Unknown)
    });
    let empty = empty.into_iter().map(|codes| {
        let cells: Vec<_> = codes.iter().enumerate().map(|(ix, &code)| label(ix, code)).collect();
        (cells, RowCount::Tokens(0))
    });
    let writer = CsvWriter::delimited(out, target, delimiter);
    write_rows(writer, target, &names, counted.chain(unknown).chain(empty))
}

fn refused(target: &Path, message: String) -> Error {
    Error::data(target.display().to_string(), message)
}

/// A field of a row with a count.
enum Field<S> {
    Cell(Option<S>),
    Count(String),
}

impl<S: AsRef<str>> AsRef<str> for Field<S> {
    fn as_ref(&self) -> &str {
        match self {
            Field::Cell(Some(label)) => label.as_ref(),
            Field::Cell(None) => "",
            Field::Count(count) => count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, read_from};
    use super::*;
    use proptest::prelude::*;

    fn target() -> &'static Path {
        Path::new("out.csv")
    }

    fn read_back(bytes: &[u8]) -> Dataset {
        read_from(bytes, "out.csv", Format::Csv).unwrap()
    }

    #[test]
    fn a_dataset_is_read_back_as_it_was() {
        let text = "a,\"b c\",count\n\" x \",\"1,2\",3\n,\"say \"\"no\"\"\",0\n\"line\nbreak\",,7\ny,1,?\n";
        let dataset = read_back(text.as_bytes());
        let mut out = Vec::new();
        write_dataset_csv(&mut out, target(), &dataset).unwrap();
        assert_eq!(String::from_utf8(out.clone()).unwrap(), text.replace("\"b c\"", "b c"));
        assert_eq!(read_back(&out).values, dataset.values);
    }

    #[test]
    fn axes_without_names_get_some() {
        let dataset = read_from(&b"1 3 2\n"[..], "t.tns", Format::Tns).unwrap();
        let mut out = Vec::new();
        write_dataset_csv(&mut out, target(), &dataset).unwrap();
        assert_eq!(out, b"i1,i2,count\n1,3,2\n");
    }

    #[test]
    fn no_columns_leave_the_counts() {
        let mut out = Vec::new();
        let rows: [([Option<&str>; 0], RowCount); 1] = [([], RowCount::Tokens(5))];
        write_csv(&mut out, target(), &[], rows).unwrap();
        assert_eq!(out, b"count\n5\n");
    }

    #[test]
    fn what_could_not_be_read_back_is_refused() {
        let rows: [([Option<&str>; 1], RowCount); 0] = [];
        let error = write_csv(Vec::new(), target(), &["count".into()], rows).unwrap_err();
        assert!(error.to_string().contains("out.csv: a column cannot be called `count`"), "{error}");
        let error = write_csv(Vec::new(), target(), &["a".into()], [([Some("")], RowCount::Tokens(1))]).unwrap_err();
        assert!(error.to_string().contains("a label is empty"), "{error}");
    }

    #[test]
    fn a_full_disk_is_an_error_with_the_target() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("disk full"))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let rows = [([Some("x")], RowCount::Tokens(1))];
        let error = write_csv(Full, target(), &["a".into()], rows).unwrap_err();
        assert_eq!(error.to_string(), "out.csv: disk full");
    }

    proptest! {
        #[test]
        fn any_text_is_read_back(
            rows in prop::collection::vec(prop::collection::vec("[ab ,\"\t\r\n#\u{feff}]{0,5}", 1..4), 0..6),
        ) {
            let mut out = Vec::new();
            let mut writer = CsvWriter::new(&mut out, target());
            for row in &rows {
                writer.record(row).unwrap();
            }
            writer.finish().unwrap();
            let mut reader = ::csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(out.as_slice());
            let found: Vec<Vec<String>> =
                reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
            prop_assert_eq!(found, rows);
        }

        #[test]
        fn our_reader_agrees(labels in prop::collection::vec(("[ab ,\"\t\r\n]{1,5}", 0u64..5), 0..9)) {
            let rows: Vec<_> = labels.iter().map(|(label, count)| ([Some(label)], RowCount::Tokens(*count))).collect();
            let mut out = Vec::new();
            write_csv(&mut out, target(), &["a".into()], rows).unwrap();
            let dataset = read_back(&out);
            prop_assert_eq!(dataset.n_tokens().unwrap(), labels.iter().map(|(_, count)| count).sum::<u64>());
            let found = &dataset.columns[0].labels;
            for (label, _) in &labels {
                prop_assert!((0..found.len()).any(|code| found.name(code) == *label));
            }
        }
    }
}
