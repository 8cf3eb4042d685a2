//! UCI bag of words: the numbers of documents, words and entries, then a document, a word and a count on each line.
//!
//! Documents and words are counted from 1. `?` makes an unknown cell. The header's promises are checked, never trusted: no memory
//! is set aside for them.

use super::Input;
use super::lines::{Lines, shown};
use super::number::{CountStyle, parse_count, parse_digits, parse_one_based};
use super::vocabulary::{Vocabulary, WordColumn};
use crate::counts::{Cell, RowSink};
use crate::error::{Error, Result};

/// Most documents and words: codes of values stay below that of a missing one.
const MAX_SIZE: u32 = u32::MAX - 1;

/// Reads a whole file.
pub(super) fn read(input: Input<'_>, vocabulary: Option<Vocabulary>, sink: &mut impl RowSink) -> Result<()> {
    let mut lines = Lines::new(input);
    let n_docs = size(header_line(&mut lines, "documents")?, &lines)?;
    let n_words = size(header_line(&mut lines, "words")?, &lines)?;
    let n_entries = header_line(&mut lines, "entries")?;
    let promise_line = lines.number();
    sink.index_column(Some("doc".into()), 1, Some(n_docs));
    let words = WordColumn::declare(sink, vocabulary, 1, Some(n_words), &lines)?;
    let style = CountStyle::Real.or_fraction(sink);
    let mut n_read = 0;
    while lines.advance_to_text()? {
        if n_read == n_entries {
            let message = format!(
                "one entry more than the {n_entries} that line {promise_line} promises; correct the header or remove it"
            );
            return Err(lines.error(None, message));
        }
        n_read += 1;
        let mut fields = lines.text().split_ascii_whitespace();
        let (Some(doc), Some(word), Some(count), None) = (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            let message =
                format!("an entry is a document, a word and a count, but the line is {}", shown(lines.text()));
            return Err(lines.error(None, message));
        };
        let in_column = |column: &'static str| move |message: String| (column, message);
        let entry = parse_one_based(doc, n_docs).map_err(in_column("doc")).and_then(|doc| {
            let word = parse_one_based(word, n_words).map_err(in_column("word"))?;
            Ok((doc, word, parse_count(count, style).map_err(in_column("count"))?))
        });
        let (doc, word, count) = entry.map_err(|(column, message)| lines.error(Some(column), message))?;
        sink.push(lines.number(), [Cell::Index(doc), words.cell(word)], count)?;
    }
    if n_read == n_entries {
        return Ok(());
    }
    let message =
        format!("the file ends after {n_read} entries, but line {promise_line} promises {n_entries}; is it cut short?");
    Err(lines.error_of_file(message))
}

/// The number that stands on a line of its own at the start.
fn header_line(lines: &mut Lines<'_>, what: &str) -> Result<u64> {
    if !lines.advance_to_text()? {
        let message = format!(
            "the file ends where the number of {what} should stand; it begins with the numbers of documents, words and \
             entries, each on a line of its own"
        );
        return Err(lines.error_of_file(message));
    }
    let text = lines.text().trim_ascii();
    parse_digits(text).ok_or_else(|| {
        let message =
            format!("here stands the number of {what}, as a whole number, but the line is {}", shown(lines.text()));
        lines.error(None, message)
    })
}

fn size(size: u64, lines: &Lines<'_>) -> Result<u32> {
    let found = u32::try_from(size).ok().filter(|&size| size <= MAX_SIZE);
    found.ok_or_else(|| -> Error { lines.error(None, format!("{size} is beyond {MAX_SIZE}, the most there can be")) })
}

#[cfg(test)]
mod tests {
    use super::super::vocabulary::tests::vocabulary;
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels};
    use crate::warning::Warning;

    fn read_with(text: &[u8], words: Option<&str>) -> Result<Dataset> {
        let input = Input { reader: Box::new(text), source: "docword.txt".into() };
        let mut builder = DatasetBuilder::new("docword.txt");
        read(input, words.map(|words| vocabulary(words).unwrap()), &mut builder).map(|()| builder.finish())
    }

    #[track_caller]
    fn assert_refused(text: &str, wanted: &[&str]) {
        let message = read_with(text.as_bytes(), None).expect_err(text).to_string();
        for part in wanted {
            assert!(message.contains(part), "{text:?}: {message}");
        }
        assert!(!message.contains('\n'));
    }

    #[test]
    fn documents_and_words_have_the_sizes_of_the_header() {
        let data = read_with(b"3\n4\n2\n1 2 5\n3 1 1\n", None).unwrap();
        assert_eq!(data.columns[0].name.as_deref(), Some("doc"));
        assert_eq!(data.columns[0].labels, Labels::Indexed { size: 3, first: 1 });
        assert_eq!(data.columns[1].name.as_deref(), Some("word"));
        assert_eq!(data.columns[1].labels, Labels::Indexed { size: 4, first: 1 });
        assert_eq!(data.values, [[0, 2], [1, 0]]);
        assert_eq!(data.counts, [5, 1]);
        let unusual = read_with(b"\xEF\xBB\xBF 3 \r\n\r\n4\r\n3\r\n1\t2 5.0\r\n\r\n3 1 ?\r\n1 2 1", None).unwrap();
        assert_eq!((unusual.n_tokens(), &unusual.unknown[..]), (Some(6), &[vec![2, 0]][..]));
        assert_eq!(unusual.warnings, [Warning::DuplicateRows { n_rows: 1 }]);
        assert_eq!(read_with(b"0\n0\n0\n", None).unwrap().n_tokens(), Some(0));
    }

    #[test]
    fn words_have_names_where_there_is_a_vocabulary() {
        let data = read_with(b"1\n3\n2\n1 3 5\n1 1 1\n", Some("cat\ndog\nowl\n")).unwrap();
        assert_eq!(data.columns[1].labels, Labels::Named(vec!["cat".into(), "dog".into(), "owl".into()]));
        assert_eq!(data.values[1], [2, 0]);
        let message = read_with(b"1\n3\n0\n", Some("cat\n")).unwrap_err().to_string();
        assert!(message.contains("docword.txt: the header promises 3 words, but vocab.txt holds 1"), "{message}");
    }

    #[test]
    fn bad_headers_are_refused() {
        assert_refused(
            "",
            &["docword.txt: the file ends where the number of documents", "documents, words and entries"],
        );
        assert_refused("1\n2\n", &["where the number of entries should stand"]);
        assert_refused("1\nx\n", &["line 2: here stands the number of words", "`x`"]);
        assert_refused("1 2 3\n", &["line 1: here stands the number of documents", "`1 2 3`"]);
        assert_refused("-1\n", &["line 1", "`-1`"]);
        assert_refused("4294967295\n1\n0\n", &["line 1: 4294967295 is beyond 4294967294"]);
        assert_refused("99999999999999999999\n", &["line 1: here stands"]);
    }

    #[test]
    fn promises_are_checked_and_nothing_is_set_aside_for_them() {
        assert_refused("4000000000\n4000000000\n999999999999\n1 1 1\n", &["after 1 entries, but line 3 promises 9"]);
        assert_refused("1\n1\n0\n1 1 1\n", &["line 4: one entry more than the 0 that line 3 promises"]);
    }

    #[test]
    fn bad_entries_are_refused() {
        let entry = |line: &str| format!("3\n4\n1\n{line}\n");
        assert_refused(&entry("0 1 2"), &["docword.txt, line 4, column doc: index 0", "add 1"]);
        assert_refused(&entry("4 1 2"), &["line 4, column doc: index `4` is beyond 3"]);
        assert_refused(&entry("1 5 2"), &["line 4, column word: index `5` is beyond 4"]);
        assert_refused(&entry("1 1.5 2"), &["column word: index `1.5` is not a whole number"]);
        assert_refused(&entry("1 1"), &["line 4: an entry is a document, a word and a count, but the line is `1 1`"]);
        assert_refused(&entry("1 1 1 1"), &["line 4: an entry is"]);
        for (count, wanted) in [
            ("-1", "is negative"),
            ("2.5", "is not whole"),
            ("nan", "is not finite"),
            ("inf", "is not finite"),
            ("9007199254740993.0", "beyond 2^53"),
            ("18446744073709551616", "beyond"),
        ] {
            assert_refused(&entry(&format!("1 1 {count}")), &["line 4, column count: count", wanted]);
        }
        assert_refused("3\n4\n1\n1 1\0\n", &["line 4: the line holds a NUL byte"]);
        assert_refused("3\n4\n1\n1 1 1\r2 1 1\n", &["line 4: a carriage return"]);
        let message = read_with(b"3\n4\n1\n1 \xff 1\n", None).unwrap_err().to_string();
        assert!(message.contains("line 4: byte 3") && message.contains("not UTF-8"), "{message}");
    }
}
