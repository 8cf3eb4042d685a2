//! MALLET's lines: the name of a document, a label, and its text.
//!
//! The text is cut into words: lower case, runs of letters with apostrophes between them, three characters or more. A document
//! stands on one line and has a name of its own. Words are counted by the rows that they become.

use super::Input;
use super::lines::{Lines, shown};
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::Result;
use crate::warning::Warning;
use std::collections::HashMap;

/// Fewest characters of a word, as MALLET has it unless told otherwise.
const MIN_LENGTH: usize = 3;

/// Reads a whole file. `with_labels` adds a column of labels.
pub(super) fn read(input: Input<'_>, with_labels: bool, sink: &mut impl RowSink) -> Result<()> {
    let mut lines = Lines::new(input);
    sink.label_column(Some("doc".into()));
    sink.label_column(Some("word".into()));
    if with_labels {
        sink.label_column(Some("label".into()));
    }
    sink.rows_are_tokens();
    let mut first_lines: HashMap<String, u64> = HashMap::new();
    let mut n_empty = 0u64;
    let mut word = String::new();
    while lines.advance_to_text()? {
        let text = lines.text();
        let (doc, rest) = split(text);
        let (label, rest) = split(rest);
        if let Some(first) = first_lines.insert(doc.to_owned(), lines.number()) {
            let message =
                format!("the document {} stands on line {first} already; give each a name of its own", shown(doc));
            return Err(lines.error(None, message));
        }
        let mut n_words = 0;
        let mut characters = rest.chars().peekable();
        loop {
            let character = characters.next();
            match character {
                Some(character) if character.is_alphabetic() => word.extend(character.to_lowercase()),
                // The typographic one is the same.
                Some('\'' | '\u{2019}')
                    if !word.is_empty() && characters.peek().is_some_and(|next| next.is_alphabetic()) =>
                {
                    word.push('\'');
                }
                _ => {
                    if word.chars().nth(MIN_LENGTH - 1).is_some() {
                        n_words += 1;
                        let label = with_labels.then_some(Cell::Label(label)).filter(|_| !label.is_empty());
                        let label = label.or(with_labels.then_some(Cell::Missing));
                        let cells = [Cell::Label(doc), Cell::Label(&word)].into_iter().chain(label);
                        sink.push(lines.number(), cells, RowCount::Tokens(1))?;
                    }
                    word.clear();
                }
            }
            if character.is_none() {
                break;
            }
        }
        n_empty += u64::from(n_words == 0);
    }
    if first_lines.is_empty() {
        return Err(lines.error_of_file("the file holds no document; a line is a name, a label and a text"));
    }
    if n_empty > 0 {
        let message = format!(
            "{n_empty} of {} documents hold no word of {MIN_LENGTH} letters, and are left out",
            first_lines.len()
        );
        sink.warn(Warning::Odd { message });
    }
    Ok(())
}

/// The first word of a text and the rest.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels, MISSING};

    fn read_with(text: &str, with_labels: bool) -> Result<Dataset> {
        let input = Input { reader: Box::new(text.as_bytes()), source: "a.txt".into() };
        let mut builder = DatasetBuilder::new("a.txt");
        read(input, with_labels, &mut builder).map(|()| builder.finish())
    }

    fn named(labels: &[&str]) -> Labels {
        Labels::Named(labels.iter().map(|&label| label.to_owned()).collect())
    }

    #[test]
    fn texts_become_words_of_documents() {
        let data = read_with(
            "\u{feff}d1 en The cat's mat, the CAT\u{2019}S \u{e9}t\u{e9}!\r\n\r\nd2\tx\ta-dog is 'owl' 42nd\r\n",
            false,
        )
        .unwrap();
        assert_eq!(data.columns[0].labels, named(&["d1", "d2"]));
        assert_eq!(data.columns[1].labels, named(&["the", "cat's", "mat", "\u{e9}t\u{e9}", "dog", "owl"]));
        assert_eq!(data.counts, [2, 2, 1, 1, 1, 1]);
        assert!(data.warnings.is_empty());
    }

    #[test]
    fn labels_are_a_column_where_they_are_wanted() {
        let data = read_with("d1 en the cat\nd2 de das\nd3\n", true).unwrap();
        assert_eq!(data.columns[2].labels, named(&["en", "de"]));
        assert_eq!(data.values[2], [0, 0, 1]);
        assert!(!data.values.iter().any(|codes| codes.contains(MISSING)));
        assert!(data.warnings[0].to_string().contains("1 of 3 documents hold no word"));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let refusal = |text: &str| read_with(text, false).unwrap_err().to_string();
        assert!(refusal("\n \n").starts_with("a.txt: the file holds no document"));
        assert!(refusal("d x the\nd y cat\n").contains("a.txt, line 2: the document `d` stands on line 1 already"));
        assert!(refusal("d x the\0\n").contains("NUL byte"));
        assert!(refusal("d x the\rd y cat\n").contains("carriage return"));
    }
}
