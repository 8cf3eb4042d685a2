//! Words beside a file of word numbers: one on each line, in the order of the numbers.

use super::lines::{Lines, shown};
use super::{BUFFER_SIZE, Format, Input, compression};
use crate::counts::{Cell, RowSink};
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Where the words of a file may be found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside<'a> {
    /// The file of words that was given.
    pub given: Option<&'a Path>,
    /// The file of numbers, where it is one.
    pub data: Option<&'a Path>,
    /// Bytes that either may unpack to.
    pub most: u64,
}

impl Beside<'_> {
    /// The words, from the file that was given or from one beside the data that is called as usual; none where there is none.
    pub fn read(&self, format: Format) -> Result<Option<Vocabulary>> {
        let found = || self.data.and_then(|data| beside(data, format));
        self.given.map(Path::to_owned).or_else(found).map(|path| Vocabulary::read(&path, self.most)).transpose()
    }

    /// Refuses a file of words for a format that names its values, or has none.
    pub fn refuse(&self, format: Format) -> Result<()> {
        match self.given {
            None => Ok(()),
            Some(path) => Err(Error::Setting(format!(
                "--vocab {}: a file of format {format} takes no vocabulary, only uci and lda-c do; leave it out",
                path.display()
            ))),
        }
    }
}

/// A file of words beside the data, if there is one of a usual name.
fn beside(data: &Path, format: Format) -> Option<PathBuf> {
    let paths = usual_names(data, format)?.into_iter().flat_map(|name| [name.clone(), format!("{name}.gz")]);
    paths.map(|name| data.with_file_name(name)).find(|path| path.is_file() && path != data)
}

/// What the words of a file are usually called, the best name first.
fn usual_names(data: &Path, format: Format) -> Option<Vec<String>> {
    let plain = Format::without_compression(data.file_name()?.to_str()?);
    let stem = plain.rsplit_once('.').map_or(plain, |(stem, _)| stem);
    let mut names = Vec::new();
    if plain.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("docword")) {
        names.push(format!("vocab{}", &plain[7..]));
    }
    names.extend([format!("{plain}.vocab"), format!("{stem}.vocab"), format!("vocab.{stem}.txt")]);
    if format == Format::LdaC {
        names.push(format!("{stem}.tokens"));
    }
    Some(names)
}

/// Where the words of a file go that is written; and a file there that would be taken for them.
pub(super) fn place_for(data: &Path, format: Format) -> (PathBuf, Option<PathBuf>) {
    let names = usual_names(data, format).unwrap_or_default();
    let name = names.into_iter().next().unwrap_or_else(|| "vocab.txt".to_owned());
    (data.with_file_name(name), beside(data, format))
}

/// Whether a word can stand on a line of its own.
pub(super) fn is_word(word: &str) -> bool {
    !word.is_empty() && word.trim() == word && !word.starts_with('\u{feff}') && !word.contains(['\n', '\r', '\0'])
}

/// Words, each of them once.
#[derive(Debug)]
pub(super) struct Vocabulary {
    source: String,
    words: Vec<String>,
}

impl Vocabulary {
    fn read(path: &Path, most: u64) -> Result<Self> {
        let source = path.display().to_string();
        let file = File::open(path).map_err(|error| Error::Io { path: path.to_owned(), source: error })?;
        let (reader, _) = compression::see_through(BufReader::with_capacity(BUFFER_SIZE, file), &source, most)?;
        Self::from_lines(Lines::new(Input { reader, source }))
    }

    fn from_lines(mut lines: Lines<'_>) -> Result<Self> {
        let mut words: Vec<String> = Vec::new();
        let mut first_blank = None;
        while lines.advance()? {
            let word = lines.text().trim();
            if word.is_empty() {
                first_blank.get_or_insert(lines.number());
            } else if let Some(line) = first_blank {
                let message =
                    "the line is blank, but words follow, and they are numbered by their lines; name the word";
                return Err(Error::data_at(lines.source(), line, None, message));
            } else {
                lines.refuse_carriage_return()?;
                words.push(word.to_owned());
            }
        }
        let mut first_line = HashMap::with_capacity(words.len());
        for (ix, word) in words.iter().enumerate() {
            if let Some(first) = first_line.insert(word, ix + 1) {
                let message = format!("the word {} stands on line {first} already; tell the two apart", shown(word));
                return Err(Error::data_at(lines.source(), ix as u64 + 1, None, message));
            }
        }
        Ok(Vocabulary { source: lines.source().to_owned(), words })
    }
}

/// The column of words of a file: numbers, or words.
#[derive(Debug)]
pub(super) struct WordColumn {
    vocabulary: Option<Vocabulary>,
    /// Whether whoever takes the rows wants words rather than their numbers.
    wants_words: bool,
}

impl WordColumn {
    /// Declares the column of words, whose numbers begin at `first`. A size that the file promises must be that of the vocabulary.
    pub fn declare(
        sink: &mut impl RowSink,
        vocabulary: Option<Vocabulary>,
        first: u32,
        size: Option<u32>,
        lines: &Lines<'_>,
    ) -> Result<Self> {
        let name = Some("word".to_owned());
        let wants_words = match &vocabulary {
            Some(Vocabulary { source, words }) => {
                if let Some(size) = size
                    && size as usize != words.len()
                {
                    let message = format!(
                        "the header promises {size} words, but {source} holds {}; give the right one by --vocab",
                        words.len()
                    );
                    return Err(lines.error_of_file(message));
                }
                !sink.coded_column(name, words)
            }
            None => {
                sink.index_column(name, first, size);
                false
            }
        };
        Ok(WordColumn { vocabulary, wants_words })
    }

    /// How many words there can be, `most` if nobody knows.
    pub fn size_or(&self, most: u32) -> u32 {
        let known = self.vocabulary.as_ref().map(|vocabulary| vocabulary.words.len());
        known.map_or(most, |known| u32::try_from(known).unwrap_or(u32::MAX).min(most))
    }

    /// Where the words come from, to say when a number is beyond them.
    pub fn source(&self) -> Option<&str> {
        self.vocabulary.as_ref().map(|vocabulary| vocabulary.source.as_str())
    }

    /// The cell of a word that was checked against [`WordColumn::size_or`].
    #[inline]
    pub fn cell(&self, word: u32) -> Cell<'_> {
        match &self.vocabulary {
            Some(vocabulary) if self.wants_words => Cell::Label(&vocabulary.words[word as usize]),
            _ => Cell::Index(word),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn vocabulary(text: &str) -> Result<Vocabulary> {
        Vocabulary::from_lines(Lines::new(Input { reader: Box::new(text.as_bytes()), source: "vocab.txt".into() }))
    }

    #[test]
    fn words_stand_one_on_each_line() {
        assert_eq!(vocabulary("\u{feff}cat\r\nice cream \n#x\n\n \n").unwrap().words, ["cat", "ice cream", "#x"]);
        assert!(vocabulary("").unwrap().words.is_empty());
    }

    #[test]
    fn blanks_between_and_words_given_twice_are_refused() {
        let refusal = |text: &str| vocabulary(text).unwrap_err().to_string();
        assert!(refusal("a\n\nb\n").starts_with("vocab.txt, line 2: the line is blank, but words follow"));
        assert!(refusal("a\nb\na\n").starts_with("vocab.txt, line 3: the word `a` stands on line 1 already"));
        assert!(refusal("a\n\0\n").contains("line 2: the line holds a NUL byte"));
    }

    #[test]
    fn words_are_found_beside_the_data() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["vocab.a.txt", "b.uci.vocab", "c.tokens", "d.vocab.gz", "vocab.e.txt"] {
            std::fs::write(at(name), "").unwrap();
        }
        for (data, format, wanted) in [
            ("docword.a.txt.gz", Format::Uci, Some("vocab.a.txt")),
            ("DOCWORD.a.txt", Format::Uci, Some("vocab.a.txt")),
            ("b.uci", Format::Uci, Some("b.uci.vocab")),
            ("c.ldac", Format::LdaC, Some("c.tokens")),
            ("c.uci", Format::Uci, None),
            ("d.ldac.zst", Format::LdaC, Some("d.vocab.gz")),
            ("e.ldac", Format::LdaC, Some("vocab.e.txt")),
            ("f.ldac", Format::LdaC, None),
        ] {
            assert_eq!(beside(&at(data), format), wanted.map(at), "{data}");
        }
    }
}
