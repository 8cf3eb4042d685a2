//! LDA-C: a document on each line, as how many distinct words it has and then `word:count` for each of them.
//!
//! Words are counted from 0, documents are called by their number from 1 as they stand in the file. A document without words (`0`)
//! is a document. `?` makes an unknown cell.

use super::Input;
use super::lines::{Lines, shown};
use super::number::{CountStyle, parse_count, parse_digits, parse_zero_based};
use super::vocabulary::{Vocabulary, WordColumn};
use crate::counts::{Cell, RowSink};
use crate::error::{Error, Result};

/// Most documents and words: codes of values stay below that of a missing one.
const MAX_SIZE: u32 = u32::MAX - 1;

/// Reads a whole file.
pub(super) fn read(input: Input<'_>, vocabulary: Option<Vocabulary>, sink: &mut impl RowSink) -> Result<()> {
    let mut lines = Lines::new(input);
    sink.index_column(Some("doc".into()), 1, None);
    let words = WordColumn::declare(sink, vocabulary, 0, None, &lines)?;
    let n_words = words.size_or(MAX_SIZE);
    let style = CountStyle::Real.or_fraction(sink);
    let mut n_docs = 0;
    while lines.advance_to_text()? {
        if n_docs == MAX_SIZE {
            return Err(lines.error(None, format!("more than {MAX_SIZE} documents; split the file")));
        }
        let doc = n_docs;
        n_docs += 1;
        sink.value_exists(0, doc);
        let mut fields = lines.text().split_ascii_whitespace();
        let promised = fields.next().unwrap_or_default();
        let n_promised = parse_digits(promised).ok_or_else(|| {
            let message = format!(
                "a line is the number of distinct words of a document and then `word:count` for each, but it begins with {}",
                shown(promised)
            );
            lines.error(None, message)
        })?;
        let mut n_entries = 0;
        for entry in fields {
            n_entries += 1;
            let in_entry = |what: String| wrong_entry(&lines, n_entries, entry, &what);
            let Some((word, count)) = entry.split_once(':') else {
                return Err(in_entry("is not `word:count`".to_owned()));
            };
            let word = parse_zero_based(word, n_words).map_err(|message| match words.source() {
                Some(source) => in_entry(format!("{message} ({source} holds {n_words} words)")),
                None => in_entry(message),
            })?;
            let count = parse_count(count, style).map_err(in_entry)?;
            sink.push(lines.number(), [Cell::Index(doc), words.cell(word)], count)?;
        }
        if n_entries != n_promised {
            let message = format!("the line begins with {n_promised}, but {n_entries} words follow; is it cut short?");
            return Err(lines.error(None, message));
        }
    }
    if n_docs == 0 {
        return Err(
            lines.error_of_file("the file holds no document; a line is a number of words and then `word:count`")
        );
    }
    Ok(())
}

fn wrong_entry(lines: &Lines<'_>, number: u64, entry: &str, what: &str) -> Error {
    let separator = if what.starts_with("is ") { "" } else { ":" };
    lines.error(None, format!("entry {number}, {}{separator} {what}", shown(entry)))
}

#[cfg(test)]
mod tests {
    use super::super::vocabulary::tests::vocabulary;
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels};

    fn read_with(text: &str, words: Option<&str>) -> Result<Dataset> {
        let input = Input { reader: Box::new(text.as_bytes()), source: "a.ldac".into() };
        let mut builder = DatasetBuilder::new("a.ldac");
        read(input, words.map(|words| vocabulary(words).unwrap()), &mut builder).map(|()| builder.finish())
    }

    #[track_caller]
    fn assert_refused(text: &str, wanted: &str) {
        let message = read_with(text, None).expect_err(text).to_string();
        assert!(message.contains(wanted) && !message.contains('\n'), "{text:?}: {message}");
    }

    #[test]
    fn each_line_is_a_document() {
        let data = read_with("\u{feff}2 0:5 3:1\r\n\r\n0\r\n1 1:2.0\r\n0", None).unwrap();
        assert_eq!(data.columns[0].name.as_deref(), Some("doc"));
        assert_eq!(data.columns[0].labels, Labels::Indexed { size: 4, first: 1 });
        assert_eq!(data.columns[1].labels, Labels::Indexed { size: 4, first: 0 });
        assert_eq!(data.values, [[0, 0, 2], [0, 3, 1]]);
        assert_eq!(data.counts, [5, 1, 2]);
        assert_eq!(read_with("0\n", None).unwrap().n_tokens(), Some(0));
        assert_eq!(read_with("1 0:?\n", None).unwrap().unknown, [[0, 0]]);
    }

    #[test]
    fn words_have_names_where_there_is_a_vocabulary() {
        let data = read_with("1 1:5\n", Some("cat\ndog\nowl\n")).unwrap();
        assert_eq!(data.columns[1].labels, Labels::Named(vec!["cat".into(), "dog".into(), "owl".into()]));
        assert_eq!(data.values[1], [1]);
        let message = read_with("1 3:5\n", Some("cat\ndog\nowl\n")).unwrap_err().to_string();
        assert!(message.contains("a.ldac, line 1: entry 1, `3:5`: index `3` is beyond 2"), "{message}");
        assert!(message.contains("vocab.txt holds 3 words"), "{message}");
        assert!(read_with("1 0:5\n", Some("")).is_err());
    }

    #[test]
    fn what_is_wrong_is_refused() {
        assert_refused("", "a.ldac: the file holds no document");
        assert_refused("x 0:1\n", "line 1: a line is the number of distinct words");
        assert_refused("-1\n", "begins with `-1`");
        assert_refused("2 0:1\n", "line 1: the line begins with 2, but 1 words follow; is it cut short?");
        assert_refused("1 0:1 1:1\n", "begins with 1, but 2 words follow");
        assert_refused("999999999999 0:1\n", "but 1 words follow");
        assert_refused("1 0\n", "entry 1, `0` is not `word:count`");
        assert_refused("1 0:\n", "entry 1, `0:`: the count is empty");
        assert_refused("2 0:1 -1:1\n", "entry 2, `-1:1`: index `-1` is negative; indices count from 0");
        assert_refused("1 4294967294:1\n", "is beyond 4294967293");
        assert_refused("1 99999999999999999999:1\n", "is beyond 4294967293");
        assert_refused("1 1.5:1\n", "index `1.5` is not a whole number");
        assert_refused("1 0:-1\n", "count `-1` is negative");
        assert_refused("1 0:1.5\n", "count `1.5` is not whole");
        assert_refused("1 0:nan\n", "is not finite");
        assert_refused("1 0:1e30\n", "is beyond");
        assert_refused("1 0:1\0\n", "NUL byte");
        assert_refused("1 0:1\r1 0:1\n", "carriage return");
    }
}
