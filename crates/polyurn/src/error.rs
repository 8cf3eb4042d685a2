//! The one public error type, and the place in a text or file that it points at.
//!
//! The library returns an [`Error`] when the caller got something wrong (a model that is no DAG, a count that is
//! negative, a problem too large for the engine); it panics only when its own invariant is broken. Every message is one
//! line that names the thing, the value and the way out.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

/// Shorthand for results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The model text, model file or preset is wrong.
    #[error("{0}")]
    Model(ModelError),
    /// The data are wrong, or do not fit the model.
    #[error("{0}")]
    Data(DataError),
    /// The prior is wrong, or does not fit the model.
    #[error("prior: {}", OneLine(.0))]
    Prior(String),
    /// A setting is out of its range or does not apply.
    #[error("{}", OneLine(.0))]
    Setting(String),
    /// The work would cost more than the limit that was set.
    #[error("{}", OneLine(.0))]
    TooCostly(String),
    /// The run was stopped before it had an answer.
    #[error("{0}")]
    Stopped(Stop),
    /// A file could not be read or written.
    #[error("{}: {}", OneLine(&path.display().to_string()), OneLine(&source.to_string()))]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A checkpoint is damaged or belongs to another run.
    #[error("checkpoint: {}", OneLine(.0))]
    Checkpoint(String),
    /// The system starts no thread that could do the work.
    #[error("no thread could be started: {0}; end other programs, or allow more processes")]
    NoThread(std::io::Error),
}

/// A message as one line, whatever names stand in it: control characters are escaped.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(char::is_control) {
            let control = rest[at..].chars().next().expect("found there");
            write!(f, "{}{}", &rest[..at], control.escape_debug())?;
            rest = &rest[at + control.len_utf8()..];
        }
        f.write_str(rest)
    }
}

/// Why a run stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The caller asked for it (Ctrl-C).
    Cancelled,
    /// The time limit was reached, or the caller asked for what there is.
    Deadline,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Cancelled => "stopped on request; there is no result",
            Stop::Deadline => {
                "the time limit was reached before there was an answer; give more time or a smaller problem"
            }
        })
    }
}

impl Error {
    /// An error in a model that has no place in a text.
    pub fn model(message: impl Into<String>) -> Self {
        Error::Model(ModelError { message: message.into(), place: None })
    }

    /// An error in a model text, pointing at `span` (bytes) of `text`.
    pub fn model_at(message: impl Into<String>, text: &str, span: Range<usize>) -> Self {
        Error::Model(ModelError { message: message.into(), place: Some(Place { text: text.to_owned(), span }) })
    }

    /// An error in the data that belongs to no single line.
    pub fn data(source: impl Into<String>, message: impl Into<String>) -> Self {
        Error::Data(DataError { source: source.into(), line: None, column: None, message: message.into() })
    }

    /// An error in the data at a line and, where it has one, a named column.
    pub fn data_at(source: impl Into<String>, line: u64, column: Option<&str>, message: impl Into<String>) -> Self {
        Error::Data(DataError {
            source: source.into(),
            line: Some(line),
            column: column.map(str::to_owned),
            message: message.into(),
        })
    }

    /// True when the fault lies in what the user gave: flags, model, data, files.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Error::TooCostly(_) | Error::Stopped(_) | Error::NoThread(_))
    }
}

/// What is wrong with a model, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelError {
    /// One line for people.
    pub message: String,
    /// The text and the bytes of it that are at fault.
    pub place: Option<Place>,
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "model: {}", OneLine(&self.message))
    }
}

/// A range of bytes of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The whole text.
    pub text: String,
    /// The bytes that are meant; may be empty (the end of the text, say).
    pub span: Range<usize>,
}

impl Place {
    /// The line of the text that holds the start of the span, and a line of carets below it.
    ///
    /// ```
    /// let place = polyurn::Place { text: "a -> b; b -> a".into(), span: 8..14 };
    /// assert_eq!(place.caret(), "  a -> b; b -> a\n          ^^^^^^");
    /// ```
    pub fn caret(&self) -> String {
        let start = self.span.start.min(self.text.len());
        let line_start = self.text[..start].rfind('\n').map_or(0, |ix| ix + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |ix| start + ix);
        let line = &self.text[line_start..line_end];
        let end = self.span.end.clamp(start, line_end);
        let before = self.text[line_start..start].chars().count();
        let width = self.text[start..end].chars().count().max(1);
        // A tab is one character wide for the caret line, so print it as one blank.
        format!("  {}\n  {}{}", line.replace('\t', " "), " ".repeat(before), "^".repeat(width))
    }
}

/// What is wrong with data, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataError {
    /// The file, or another name of the source.
    pub source: String,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// The column's name, or its number from 1 where it has no name.
    pub column: Option<String>,
    /// What is wrong, with the value and the way out.
    pub message: String,
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        OneLine(&self.source).fmt(f)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if let Some(column) = &self.column {
            write!(f, ", column {}", OneLine(column))?;
        }
        write!(f, ": {}", OneLine(&self.message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_one_line_whatever_names_stand_in_it() {
        let errors = [
            Error::model("node `a\nb` has no size"),
            Error::data_at("file\r.csv", 3, Some("a\tb"), "value `\0` is\u{85}odd"),
            Error::Setting("column `\u{1b}[31m`".into()),
            Error::Io { path: "a\nb".into(), source: std::io::Error::other("two\nlines") },
        ];
        let lines: Vec<String> = errors.iter().map(Error::to_string).collect();
        assert!(lines.iter().all(|line| !line.contains(char::is_control)), "{lines:?}");
        assert_eq!(lines[0], "model: node `a\\nb` has no size");
        assert_eq!(lines[1], "file\\r.csv, line 3, column a\\tb: value `\\0` is\\u{85}odd");
        assert_eq!(Error::Setting("`é` — fine".into()).to_string(), "`é` — fine");
    }
}
