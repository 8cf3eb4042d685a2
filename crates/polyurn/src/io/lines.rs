//! Numbered lines of a text file, one at a time, in one buffer that is used again and again.
//!
//! Line ends are LF or CRLF, the last one may be absent, and a byte order mark at the start is dropped. What is no
//! text (invalid UTF-8, NUL bytes, endless lines) is refused here, so readers only ever see clean text.

use super::Input;
use crate::error::{Error, Result};
use std::io::{BufRead, Read};

/// Longest line, and longest record of several lines. Far above any sane row; it keeps a binary file or a quote that
/// is never closed from filling the memory.
pub(super) const MAX_LENGTH: usize = 16 << 20;

/// A cursor over the lines of a file.
pub(super) struct Lines<'a> {
    input: Input<'a>,
    /// The line at hand, without its end.
    text: String,
    number: u64,
    has_crlf: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(input: Input<'a>) -> Self {
        Lines { input, text: String::new(), number: 0, has_crlf: false }
    }

    /// Goes to the next line; false at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool> {
        let mut bytes = std::mem::take(&mut self.text).into_bytes();
        bytes.clear();
        // One byte more than the limit tells a line that is too long.
        let mut limited = (&mut self.input.reader).take(MAX_LENGTH as u64 + 1);
        let n_read = limited.read_until(b'\n', &mut bytes).map_err(|error| self.input.unreadable(error))?;
        if n_read == 0 {
            return Ok(false);
        }
        self.number += 1;
        if n_read > MAX_LENGTH {
            return Err(self.error(None, "the line is longer than 16 MiB; is this a text file?"));
        }
        self.strip_end(&mut bytes);
        if self.number == 1 && bytes.starts_with(b"\xEF\xBB\xBF") {
            bytes.drain(..3);
        }
        self.text = self.checked(bytes)?;
        Ok(true)
    }

    /// Goes to the next line that is not blank, and refuses a carriage return inside it; false at the end of the file.
    pub(super) fn advance_to_text(&mut self) -> Result<bool> {
        while self.advance()? {
            if !self.text.trim_ascii().is_empty() {
                self.refuse_carriage_return()?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The line at hand.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The number of the line at hand, from 1; 0 before the first.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The end of the line at hand, as a line of a quoted value must keep it.
    pub(super) fn end(&self) -> &'static str {
        if self.has_crlf { "\r\n" } else { "\n" }
    }

    pub(super) fn source(&self) -> &str {
        &self.input.source
    }

    /// An error on the line at hand.
    pub(super) fn error(&self, column: Option<&str>, message: impl Into<String>) -> Error {
        Error::data_at(self.source(), self.number, column, message)
    }

    /// An error about the file as a whole.
    pub(super) fn error_of_file(&self, message: impl Into<String>) -> Error {
        Error::data(self.source(), message)
    }

    /// Refuses a line with a carriage return inside: its rows would all be read as one.
    pub(super) fn refuse_carriage_return(&self) -> Result<()> {
        if !self.text.as_bytes().contains(&b'\r') {
            return Ok(());
        }
        let message = "a carriage return stands inside the line; save the file with line ends LF or CRLF";
        Err(self.error(None, message))
    }

    fn strip_end(&mut self, bytes: &mut Vec<u8>) {
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        self.has_crlf = bytes.last() == Some(&b'\r');
        if self.has_crlf {
            bytes.pop();
        }
    }

    /// The bytes as text, if they are.
    fn checked(&self, bytes: Vec<u8>) -> Result<String> {
        if bytes.contains(&0) {
            let message = "the line holds a NUL byte; the file may be binary or UTF-16, save it as UTF-8 text";
            return Err(self.error(None, message));
        }
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let bytes = error.as_bytes();
            let before = String::from_utf8_lossy(&bytes[at.saturating_sub(12)..at]);
            let message = format!(
                "byte {} of the line (0x{:02x}, after {}) is not UTF-8; save the file as UTF-8 text",
                at + 1,
                bytes[at],
                shown(&before)
            );
            self.error(None, message)
        })
    }
}

/// A value as it stands in a message: in backquotes, on one line, not too long.
pub(super) fn shown(value: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut text = String::from("`");
    for (ix, character) in value.chars().enumerate() {
        if ix == MAX_CHARS {
            text.push_str("..");
            break;
        }
        match character {
            // These read better as they are than escaped.
            '\'' | '"' | '\\' => text.push(character),
            other => text.extend(other.escape_debug()),
        }
    }
    text.push('`');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Lines<'_> {
        Lines::new(Input { reader: Box::new(bytes), source: "test.txt".into() })
    }

    fn all(bytes: &[u8]) -> Vec<(u64, String)> {
        let mut lines = lines(bytes);
        let mut found = Vec::new();
        while lines.advance().unwrap() {
            found.push((lines.number(), lines.text().to_owned()));
        }
        found
    }

    fn refusal(bytes: &[u8]) -> String {
        let mut lines = lines(bytes);
        loop {
            match lines.advance() {
                Ok(true) => {}
                Ok(false) => panic!("nothing was refused"),
                Err(error) => return error.to_string(),
            }
        }
    }

    #[test]
    fn all_line_ends_and_a_byte_order_mark_are_understood() {
        let expected = vec![(1, "a".to_owned()), (2, String::new()), (3, "b".to_owned())];
        assert_eq!(all(b"a\n\nb\n"), expected);
        assert_eq!(all(b"a\n\nb"), expected);
        assert_eq!(all(b"a\r\n\r\nb\r\n"), expected);
        assert_eq!(all(b"\xEF\xBB\xBFa\n\nb\n"), expected);
        assert!(all(b"").is_empty());
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_line() {
        let message = refusal(b"fine\nRen\xE9\n");
        assert!(message.contains("line 2: byte 4") && message.contains("0xe9, after `Ren`"), "{message}");
        let message = refusal(b"fine\na\0b\n");
        assert!(message.contains("line 2: the line holds a NUL byte"), "{message}");
        let message = refusal(&vec![b'x'; MAX_LENGTH + 5]);
        assert!(message.contains("line 1: the line is longer than 16 MiB"), "{message}");
    }

    #[test]
    fn a_carriage_return_inside_a_line_can_be_refused() {
        let mut lines = lines(b"a\rb\rc\r\n");
        assert!(lines.advance().unwrap());
        let message = lines.refuse_carriage_return().unwrap_err().to_string();
        assert!(message.contains("line 1: a carriage return"), "{message}");
    }

    #[test]
    fn values_in_messages_are_short_and_on_one_line() {
        assert_eq!(shown("it's \"so\""), "`it's \"so\"`");
        assert_eq!(shown("a\nb"), "`a\\nb`");
        assert_eq!(shown(&"x".repeat(1000)).len(), 44);
    }
}
