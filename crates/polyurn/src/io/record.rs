//! Records of delimited text: fields with or without quotes.
//!
//! A record is a line, or several when a quoted field holds line breaks. Blanks around a field are dropped, blanks
//! inside quotes stay; inside quotes a doubled quote stands for one. Blank lines are no records. Most records have no
//! quotes, and their fields are slices of the line.

use super::lines::{Lines, MAX_LENGTH, shown};
use crate::error::{Error, Result};

/// What stands between two fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delimiter {
    Comma,
    Tab,
}

impl Delimiter {
    pub(super) fn byte(self) -> u8 {
        match self {
            Delimiter::Comma => b',',
            Delimiter::Tab => b'\t',
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Delimiter::Comma => "comma",
            Delimiter::Tab => "tab",
        }
    }

    /// A blank is a space, or a tab where tabs do not separate.
    #[inline]
    fn is_blank(self, byte: u8) -> bool {
        byte == b' ' || (byte == b'\t' && self != Delimiter::Tab)
    }

    /// `start..end` without the blanks at both ends.
    #[inline]
    fn trim(self, bytes: &[u8], mut start: usize, mut end: usize) -> Field {
        while start < end && self.is_blank(bytes[start]) {
            start += 1;
        }
        while start < end && self.is_blank(bytes[end - 1]) {
            end -= 1;
        }
        Field { start, end }
    }
}

/// Bytes of the text that the fields are slices of.
#[derive(Debug, Clone, Copy)]
struct Field {
    start: usize,
    end: usize,
}

/// A cursor over the records of a file.
pub(super) struct Records<'a> {
    lines: Lines<'a>,
    delimiter: Delimiter,
    fields: Vec<Field>,
    /// The fields of a record with quotes, without the quotes.
    unquoted: String,
    has_quotes: bool,
    /// The line on which the record at hand starts.
    line: u64,
}

impl<'a> Records<'a> {
    pub(super) fn new(lines: Lines<'a>, delimiter: Delimiter) -> Self {
        Records { lines, delimiter, fields: Vec::new(), unquoted: String::new(), has_quotes: false, line: 0 }
    }

    /// Goes to the next record; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool> {
        loop {
            if !self.lines.advance()? {
                return Ok(false);
            }
            let is_blank = self.lines.text().bytes().all(|byte| self.delimiter.is_blank(byte));
            if !is_blank {
                break;
            }
        }
        self.line = self.lines.number();
        self.fields.clear();
        self.has_quotes = !split_plain(self.lines.text().as_bytes(), self.delimiter, &mut self.fields);
        if self.has_quotes {
            self.read_quoted()?;
        }
        Ok(true)
    }

    /// Number of fields of the record at hand.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// A field of the record at hand.
    #[inline]
    pub(super) fn field(&self, ix: usize) -> &str {
        let Field { start, end } = self.fields[ix];
        if self.has_quotes { &self.unquoted[start..end] } else { &self.lines.text()[start..end] }
    }

    /// The line on which the record at hand starts.
    #[inline]
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// An error in the record at hand.
    pub(super) fn error(&self, column: Option<&str>, message: impl Into<String>) -> Error {
        Error::data_at(self.lines.source(), self.line, column, message)
    }

    /// An error about the file as a whole.
    pub(super) fn error_of_file(&self, message: impl Into<String>) -> Error {
        self.lines.error_of_file(message)
    }

    /// Reads the record that starts on the line at hand the careful way, over as many lines as its quotes span.
    fn read_quoted(&mut self) -> Result<()> {
        self.fields.clear();
        self.unquoted.clear();
        let mut open = self.split_quoted(None)?;
        while let Some(field) = open {
            self.unquoted.push_str(self.lines.end());
            if self.unquoted.len() > MAX_LENGTH || !self.lines.advance()? {
                return Err(self.never_closed(&field));
            }
            open = self.split_quoted(Some(field))?;
        }
        Ok(())
    }

    /// Splits the line at hand. `open` is a quoted field that began on an earlier line; the result is the one that
    /// goes on to the next.
    fn split_quoted(&mut self, mut open: Option<OpenField>) -> Result<Option<OpenField>> {
        let text = self.lines.text();
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            if open.is_none() {
                let blanks = bytes[at..].iter().take_while(|&&byte| self.delimiter.is_blank(byte)).count();
                if bytes.get(at + blanks) == Some(&b'"') {
                    at += blanks + 1;
                    open = Some(OpenField { start: self.unquoted.len(), line: self.lines.number() });
                }
            }
            match open.take() {
                Some(field) => {
                    let Some(n_read) = copy_quoted(&text[at..], &mut self.unquoted) else {
                        return Ok(Some(field));
                    };
                    at += n_read;
                    let end = self.end_of_field(at);
                    let rest = &text[at..end];
                    if !rest.bytes().all(|byte| self.delimiter.is_blank(byte)) {
                        return Err(self.text_after_quote(rest));
                    }
                    self.fields.push(Field { start: field.start, end: self.unquoted.len() });
                    at = end;
                }
                None => {
                    let end = self.end_of_field(at);
                    let Field { start: from, end: to } = self.delimiter.trim(bytes, at, end);
                    let start = self.unquoted.len();
                    self.unquoted.push_str(&text[from..to]);
                    if self.unquoted.as_bytes()[start..].contains(&b'\r') {
                        self.lines.refuse_carriage_return()?;
                    }
                    self.fields.push(Field { start, end: self.unquoted.len() });
                    at = end;
                }
            }
            if at == bytes.len() {
                return Ok(None);
            }
            at += 1; // the delimiter
        }
    }

    /// Where the next delimiter or the end of the line is.
    fn end_of_field(&self, at: usize) -> usize {
        let bytes = self.lines.text().as_bytes();
        let delimiter = self.delimiter.byte();
        bytes[at..].iter().position(|&byte| byte == delimiter).map_or(bytes.len(), |n| at + n)
    }

    fn text_after_quote(&self, rest: &str) -> Error {
        let message = format!(
            "field {} goes on with {} after its closing quote; write a quote inside a quoted value twice",
            self.fields.len() + 1,
            shown(rest.trim())
        );
        self.lines.error(None, message)
    }

    fn never_closed(&self, field: &OpenField) -> Error {
        let message = format!(
            "the quote that opens field {} is never closed ({}); close it, or write a quote inside quotes twice",
            self.fields.len() + 1,
            shown(&self.unquoted[field.start..])
        );
        Error::data_at(self.lines.source(), field.line, None, message)
    }
}

/// A quoted field that has begun: where in the unquoted text, and on which line of the file.
#[derive(Debug)]
struct OpenField {
    start: usize,
    line: u64,
}

/// Splits a line into trimmed fields; false, and fields of no use, when it has to be done the careful way.
#[inline]
fn split_plain(bytes: &[u8], delimiter: Delimiter, fields: &mut Vec<Field>) -> bool {
    let separator = delimiter.byte();
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte == separator {
            fields.push(delimiter.trim(bytes, start, at));
            start = at + 1;
        } else if byte == b'"' || byte == b'\r' {
            return false;
        }
    }
    fields.push(delimiter.trim(bytes, start, bytes.len()));
    true
}

/// Copies up to the closing quote, doubled quotes as one; the number of bytes read, or `None` when there is no
/// closing quote on this line.
fn copy_quoted(text: &str, out: &mut String) -> Option<usize> {
    let mut at = 0;
    loop {
        let Some(n_before) = text[at..].find('"') else {
            out.push_str(&text[at..]);
            return None;
        };
        out.push_str(&text[at..at + n_before]);
        at += n_before + 1;
        if text.as_bytes().get(at) != Some(&b'"') {
            return Some(at);
        }
        out.push('"');
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Input;
    use super::*;
    use proptest::prelude::*;

    fn records(text: &str, delimiter: Delimiter) -> Result<Vec<(u64, Vec<String>)>> {
        let lines = Lines::new(Input { reader: Box::new(text.as_bytes()), source: "test.csv".into() });
        let mut records = Records::new(lines, delimiter);
        let mut found = Vec::new();
        while records.advance()? {
            let fields = (0..records.len()).map(|ix| records.field(ix).to_owned()).collect();
            found.push((records.line(), fields));
        }
        Ok(found)
    }

    fn assert_records(text: &str, delimiter: Delimiter, expected: &[(u64, &[&str])]) {
        let found = records(text, delimiter).unwrap();
        let found: Vec<(u64, Vec<&str>)> =
            found.iter().map(|(line, fields)| (*line, fields.iter().map(String::as_str).collect())).collect();
        let expected: Vec<(u64, Vec<&str>)> = expected.iter().map(|(line, fields)| (*line, fields.to_vec())).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    fn refusal(text: &str) -> String {
        records(text, Delimiter::Comma).expect_err(text).to_string()
    }

    #[test]
    fn plain_fields_are_trimmed_and_may_be_empty() {
        assert_records(
            "a, b c ,\t\n,,\n x\n",
            Delimiter::Comma,
            &[(1, &["a", "b c", ""]), (2, &["", "", ""]), (3, &["x"])],
        );
    }

    #[test]
    fn tabs_separate_and_are_no_blanks_in_tsv() {
        assert_records("a, \t b\n\t\n", Delimiter::Tab, &[(1, &["a,", "b"]), (2, &["", ""])]);
    }

    #[test]
    fn quotes_keep_blanks_delimiters_quotes_and_line_breaks() {
        assert_records(
            "\" a \", \"b,c\" ,\"d\"\"e\"\n\"f\ng\",h\n\"i\r\n\r\nj\"\r\nk\n",
            Delimiter::Comma,
            &[(1, &[" a ", "b,c", "d\"e"]), (2, &["f\ng", "h"]), (4, &["i\r\n\r\nj"]), (7, &["k"])],
        );
    }

    #[test]
    fn quotes_may_be_empty_and_stand_inside_plain_fields() {
        assert_records(
            "\"\"\n\"\",\"\"\"\"\n5\" pipe,a\"b\"\n",
            Delimiter::Comma,
            &[(1, &[""]), (2, &["", "\""]), (3, &["5\" pipe", "a\"b\""])],
        );
    }

    #[test]
    fn blank_lines_are_no_records_but_count_as_lines() {
        assert_records("\n  \na\r\n\r\nb\n\n\n", Delimiter::Comma, &[(3, &["a"]), (5, &["b"])]);
    }

    #[test]
    fn a_quote_that_is_never_closed_is_refused_on_the_line_where_it_opens() {
        let message = refusal("a,b\nx,\"y\nz,w\n");
        assert!(message.starts_with("test.csv, line 2: the quote that opens field 2 is never closed"), "{message}");
        assert!(message.contains("`y\\nz,w"), "{message}");
        let message = refusal("a,b\n\"x\ny\",\"z\n");
        assert!(message.contains("line 3: the quote that opens field 2"), "{message}");
    }

    #[test]
    fn an_open_quote_does_not_swallow_a_large_file() {
        let mut text = String::from("a\n\"");
        text.extend(std::iter::repeat_n("0123456789\n", 2 << 20));
        assert!(refusal(&text).contains("line 2: the quote that opens field 1 is never closed"));
    }

    #[test]
    fn text_after_a_closing_quote_is_refused() {
        let message = refusal("a\nb,\"x\" y,c\n");
        assert!(message.contains("line 2: field 2 goes on with `y` after its closing quote"), "{message}");
    }

    #[test]
    fn a_bare_carriage_return_is_refused_outside_quotes() {
        assert!(refusal("a,b\rx,y\r").contains("line 1: a carriage return"));
        assert_records("\"a\rb\"\n", Delimiter::Comma, &[(1, &["a\rb"])]);
    }

    proptest! {
        /// The csv crate writes; we read the same fields.
        #[test]
        fn what_the_csv_crate_quotes_is_read_back(
            rows in prop::collection::vec(prop::collection::vec("[ab ,\"\t\r\né]{0,5}", 3), 0..6),
        ) {
            let mut writer = ::csv::WriterBuilder::new().quote_style(::csv::QuoteStyle::Always).from_writer(Vec::new());
            for row in &rows {
                writer.write_record(row).unwrap();
            }
            let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
            let found: Vec<_> = records(&text, Delimiter::Comma).unwrap().into_iter().map(|(_, row)| row).collect();
            prop_assert_eq!(found, rows);
        }
    }
}
