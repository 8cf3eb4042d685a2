//! Model text cut into tokens: names, sizes in brackets, arrows, ties, commas, ends of statements.

use super::names::shown;
use super::spec::Size;
use crate::error::{Error, Result};
use hashbrown::HashSet;
use std::ops::Range;

/// The largest size of a node: values are numbered from 0 in 32 bits, and one number is kept for "missing".
pub(super) const MAX_SIZE: u32 = u32::MAX - 1;
/// No range or list may offer more sizes than this.
const MAX_CHOICES: u64 = 10_000;

/// What joins two groups of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Right,
    Left,
    Tie,
}

impl Join {
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Join::Right => "->",
            Join::Left => "<-",
            Join::Tie => "~",
        }
    }
}

/// What a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Name(String),
    Sizes(Size),
    Join(Join),
    Comma,
    Separator,
}

/// A token and its place in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Range<usize>,
}

/// Reads tokens from byte `at` on.
pub(super) struct Lexer<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl Lexer<'_> {
    pub(super) fn tokens(mut self) -> Result<Vec<Token>> {
        let mut tokens = Vec::new();
        while let Some(token) = self.next_token()? {
            tokens.push(token);
        }
        Ok(tokens)
    }

    fn next_token(&mut self) -> Result<Option<Token>> {
        let rest = self.text[self.at..].trim_start_matches(is_blank);
        let start = self.text.len() - rest.len();
        self.at = start;
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let kind = match first {
            ';' | '\n' | '\r' => self.take(first.len_utf8(), Kind::Separator),
            ',' => self.take(1, Kind::Comma),
            '~' => self.take(1, Kind::Join(Join::Tie)),
            '-' if rest.starts_with("->") => self.take(2, Kind::Join(Join::Right)),
            '<' if rest.starts_with("<-") && !rest.starts_with("<->") => self.take(2, Kind::Join(Join::Left)),
            '"' => self.quoted_name()?,
            '[' => self.sizes()?,
            c if is_word(c) => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                self.take(end, Kind::Name(rest[..end].to_owned()))
            }
            _ => return Err(self.stray(rest)),
        };
        Ok(Some(Token { kind, span: start..self.at }))
    }

    fn take(&mut self, n_bytes: usize, kind: Kind) -> Kind {
        self.at += n_bytes;
        kind
    }

    fn quoted_name(&mut self) -> Result<Kind> {
        let start = self.at;
        let mut name = String::new();
        let mut rest = self.text[start + 1..].char_indices().peekable();
        while let Some((offset, c)) = rest.next() {
            match c {
                '"' if rest.next_if(|&(_, next)| next == '"').is_some() => name.push('"'),
                '"' => {
                    self.at = start + 1 + offset + 1;
                    if name.is_empty() {
                        let message = "a name cannot be empty; put something between the quotes";
                        return Err(self.error(message, start..self.at));
                    }
                    return Ok(Kind::Name(name));
                }
                '\n' | '\r' => break,
                _ => name.push(c),
            }
        }
        let message = "this quote is not closed; end the name with `\"` on the same line";
        Err(self.error(message, start..start + 1))
    }

    fn sizes(&mut self) -> Result<Kind> {
        let start = self.at;
        let inside = &self.text[start + 1..];
        let end = inside.find([']', '[', ';', '\n', '\r']).filter(|&end| inside.as_bytes()[end] == b']');
        let Some(end) = end else {
            let message = "this `[` is not closed; write a size as `[4]`";
            return Err(self.error(message, start..start + 1));
        };
        self.at = start + 1 + end + 1;
        parse_sizes(self.text, start + 1..self.at - 1, start..self.at).map(Kind::Sizes)
    }

    /// The error for a character that starts nothing, with advice for the likely ones.
    fn stray(&self, rest: &str) -> Error {
        const ADVICE: [(&str, &str); 16] = [
            ("=>", "is not an arrow; write `->`"),
            ("<=", "is not an arrow; write `<-`"),
            ("<->", "points both ways; an edge has one direction, `->` or `<-`"),
            ("-->", "is too long for an arrow; write `->`"),
            ("→", "is not an arrow here; write `->`"),
            ("←", "is not an arrow here; write `<-`"),
            ("--", "is not an arrow; write `->` or `<-`"),
            ("-", "alone is not an arrow; write `->` or `<-`, or put a name that holds `-` in double quotes"),
            ("<", "alone is not an arrow; write `<-`"),
            (">", "alone is not an arrow; write `->`"),
            ("]", "has no `[` before it; write a size as `name[4]`"),
            (
                "(",
                "is out of place; a size is written `name[4]`, and a preset such as `lda(20)` must be the whole text",
            ),
            (
                ")",
                "is out of place; a size is written `name[4]`, and a preset such as `lda(20)` must be the whole text",
            ),
            (":", "is out of place; a contraction is written `einsum: ir,jr->ij; r[4]`"),
            ("=", "is out of place; a size is written `name[4]`"),
            ("'", "is not a quote here; put names in double quotes"),
        ];
        let found = ADVICE.iter().find(|(symbol, _)| rest.starts_with(symbol));
        if let Some((symbol, advice)) = found {
            return self.error(&format!("`{symbol}` {advice}"), self.at..self.at + symbol.len());
        }
        let c = rest.chars().next().unwrap_or_default();
        let message = format!(
            "{} cannot stand here; names are made of letters, digits, `_` and `.`, others go in double quotes",
            shown(c.encode_utf8(&mut [0; 4]))
        );
        self.error(&message, self.at..self.at + c.len_utf8())
    }

    fn error(&self, message: &str, span: Range<usize>) -> Error {
        Error::model_at(message, self.text, span)
    }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() && c != '\n' && c != '\r'
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// Reads sizes as they stand in brackets: `4`, `1..8`, `2,4,8`, and mixtures. `inside` are the bytes to read, `whole`
/// the bytes to point at when there is nothing inside.
pub(super) fn parse_sizes(text: &str, inside: Range<usize>, whole: Range<usize>) -> Result<Size> {
    if text[inside.clone()].trim().is_empty() {
        return Err(Error::model_at("the size is missing; write a whole number such as 4", text, whole));
    }
    let mut choices: Vec<u32> = Vec::new();
    let mut is_choice = false;
    let mut n_written = 0;
    let mut start = inside.start;
    for item in text[inside.clone()].split(',') {
        let span = trimmed(text, start..start + item.len());
        start += item.len() + 1;
        let (low, high) = match text[span.clone()].split_once("..") {
            None => {
                let size = parse_size(text, span.clone())?;
                (size, size)
            }
            Some((low, high)) => {
                is_choice = true;
                let low = parse_size(text, trimmed(text, span.start..span.start + low.len()))?;
                (low, parse_size(text, trimmed(text, span.end - high.len()..span.end))?)
            }
        };
        if low > high {
            let message = format!("the range runs backwards; write `{high}..{low}`");
            return Err(Error::model_at(message, text, span));
        }
        n_written += u64::from(high - low) + 1;
        if n_written > MAX_CHOICES {
            let message = format!("more than {MAX_CHOICES} sizes to choose from; narrow the range");
            return Err(Error::model_at(message, text, span));
        }
        choices.extend(low..=high);
    }
    if choices.len() == 1 && !is_choice {
        return Ok(Size::Fixed(choices[0]));
    }
    let mut seen = HashSet::new();
    choices.retain(|&size| seen.insert(size));
    Ok(Size::Choices(choices))
}

fn parse_size(text: &str, span: Range<usize>) -> Result<u32> {
    let digits = &text[span.clone()];
    let message = if digits.is_empty() {
        "a number is missing here; write a size `4`, a range `1..8` or a list `2,4,8`".to_owned()
    } else if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{} is not a size; expected a whole number `4`, a range `1..8` or a list `2,4,8`", shown(digits))
    } else {
        match digits.parse::<u32>() {
            Ok(0) => "a size must be at least 1".to_owned(),
            Ok(size) if size <= MAX_SIZE => return Ok(size),
            _ => format!("size {} is too large; the largest is {MAX_SIZE}", shown(digits)),
        }
    };
    // An empty span has nothing to underline: take the comma or bracket after it.
    let end = if span.is_empty() { text.len().min(span.end + 1) } else { span.end };
    let end = if text.is_char_boundary(end) { end } else { span.end };
    Err(Error::model_at(message, text, span.start..end))
}

/// The bytes of `span` without the blanks around them.
pub(super) fn trimmed(text: &str, span: Range<usize>) -> Range<usize> {
    let part = &text[span.clone()];
    let start = span.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}
