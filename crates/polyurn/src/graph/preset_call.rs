//! Reads the call of a preset: its name, and its arguments in brackets.

use super::lexer::{parse_sizes, trimmed};
use super::names::shown;
use super::preset::{Argument, Arity, Family, Preset, PresetEntry, catalogue};
use super::spec::Size;
use crate::error::{Error, Result};
use std::ops::Range;

/// True when the text is to be read as a preset: a word and `(`, or `independent` or `complete` alone.
pub(super) fn is_call(text: &str) -> bool {
    let rest = text.trim_start();
    let word = &rest[..word_end(rest)];
    let after = rest[word.len()..].trim_start();
    !word.is_empty() && (after.starts_with('(') || after.is_empty() && matches!(word, "independent" | "complete"))
}

fn word_end(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))).unwrap_or(text.len())
}

impl Preset {
    /// Reads a text for which [`is_call`] holds.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let span = trimmed(text, 0..text.len());
        let word = span.start..span.start + word_end(&text[span.clone()]);
        let entry = find_entry(text, word.clone())?;
        let (parts, span) = split_arguments(text, word.end..span.end)?;
        let call = Preset { entry, arguments: vec![], is_tied: false, text: text.to_owned(), span: word.start..span };
        match entry.family.arity() {
            Arity::None => call.without_arguments(&parts),
            Arity::OneSize => call.with_one_size(&parts),
            Arity::OneSizeMaybeTied => match parts.split_last() {
                Some((last, sizes)) if &text[last.clone()] == "tied" => {
                    Preset { is_tied: true, ..call }.with_one_size(sizes)
                }
                _ => call.with_one_size(&parts),
            },
            Arity::Sizes => call.with_sizes(&parts),
        }
    }

    fn without_arguments(self, parts: &[Range<usize>]) -> Result<Self> {
        match parts.first() {
            None => Ok(self),
            Some(part) => Err(self.error(format!("`{}` takes no arguments", self.entry.name), part.clone())),
        }
    }

    fn with_one_size(self, parts: &[Range<usize>]) -> Result<Self> {
        let Some(second) = parts.get(1) else { return self.with_sizes(parts) };
        let name = self.entry.name;
        // Only what can be repeated on one line.
        let is_size = |part: &Range<usize>| {
            let part = &self.text[part.clone()];
            !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == '.')
        };
        let message = if parts.iter().all(is_size) {
            let sizes: Vec<&str> = parts.iter().take(5).map(|part| &self.text[part.clone()]).collect();
            format!("`{name}` takes one size; to choose from several sizes write `{name}([{}])`", sizes.join(","))
        } else if self.entry.family.arity() == Arity::OneSizeMaybeTied {
            let found = shown(&self.text[second.clone()]);
            format!("`{name}` takes one size and then at most `tied`, found {found}; write `{name}(4,tied)`")
        } else {
            format!("`{name}` takes one size, found {}; write `{name}(4)`", shown(&self.text[second.clone()]))
        };
        Err(self.error(message, second.clone()))
    }

    fn with_sizes(mut self, parts: &[Range<usize>]) -> Result<Self> {
        let name = self.entry.name;
        if parts.is_empty() {
            let message = format!("`{name}` needs a size; write `{name}{}`", example_arguments(self.entry.family));
            return Err(self.error(message, self.span.clone()));
        }
        for part in parts {
            let size = parse_argument(&self.text, part.clone(), &self.span)?;
            self.arguments.push(Argument { size, span: part.clone() });
        }
        Ok(self)
    }
}

fn example_arguments(family: Family) -> &'static str {
    if family.arity() == Arity::Sizes { "(2,3)" } else { "(4)" }
}

fn find_entry(text: &str, word: Range<usize>) -> Result<&'static PresetEntry> {
    let name = &text[word.clone()];
    if let Some(entry) = catalogue().iter().find(|entry| entry.name == name) {
        return Ok(entry);
    }
    let names = catalogue().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ");
    let message = match nearest(name) {
        Some(entry) => {
            format!("unknown preset {}; did you mean `{}`? The presets are {names}", shown(name), entry.name)
        }
        None => format!("unknown preset {}; the presets are {names}; a node's size is written `name[4]`", shown(name)),
    };
    Err(Error::model_at(message, text, word))
}

/// The preset whose name is at most two changes away, and less than half of the word.
fn nearest(word: &str) -> Option<&'static PresetEntry> {
    let word: Vec<char> = word.chars().take(32).flat_map(char::to_lowercase).collect();
    let distance = |entry: &PresetEntry| edit_distance(&word, &entry.name.chars().collect::<Vec<_>>());
    let (entry, n_changes) = catalogue().iter().map(|entry| (entry, distance(entry))).min_by_key(|&(_, n)| n)?;
    (n_changes <= 2 && 2 * n_changes < word.len()).then_some(entry)
}

/// Number of letters to insert, delete or replace (Levenshtein).
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (ix, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = ix + 1;
        for (at, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The arguments between the brackets of `after`, the text behind the preset's name, and where the call ends.
fn split_arguments(text: &str, after: Range<usize>) -> Result<(Vec<Range<usize>>, usize)> {
    let after = trimmed(text, after);
    if after.is_empty() {
        return Ok((Vec::new(), after.start));
    }
    let open = after.start;
    let Some(close) = text[after.clone()].find(')').map(|offset| open + offset) else {
        return Err(Error::model_at("this `(` is not closed; write a preset as `lda(20)`", text, open..open + 1));
    };
    let rest = trimmed(text, close + 1..after.end);
    if !rest.is_empty() {
        let message = "a preset must be the whole text; drop what follows it, or write the graph out";
        return Err(Error::model_at(message, text, rest));
    }
    Ok((split_commas(text, open + 1..close), close + 1))
}

/// Splits at the commas outside square brackets; nothing but blanks has no parts.
fn split_commas(text: &str, inside: Range<usize>) -> Vec<Range<usize>> {
    if text[inside.clone()].trim().is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    let mut start = inside.start;
    let mut is_bracketed = false;
    for (offset, c) in text[inside.clone()].char_indices() {
        match c {
            '[' => is_bracketed = true,
            ']' => is_bracketed = false,
            ',' if !is_bracketed => {
                parts.push(trimmed(text, start..inside.start + offset));
                start = inside.start + offset + 1;
            }
            _ => {}
        }
    }
    parts.push(trimmed(text, start..inside.end));
    parts
}

/// A size, a range, or sizes in square brackets.
fn parse_argument(text: &str, part: Range<usize>, call: &Range<usize>) -> Result<Size> {
    let whole = if part.is_empty() { call.clone() } else { part.clone() };
    let inside = match text[part.clone()].strip_prefix('[').map(|rest| rest.strip_suffix(']')) {
        None => part,
        Some(Some(_)) => part.start + 1..part.end - 1,
        Some(None) => {
            let span = part.start..part.start + 1;
            return Err(Error::model_at("this `[` is not closed; write a list as `[2,4,8]`", text, span));
        }
    };
    parse_sizes(text, inside, whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::refusal::assert_refused;

    #[track_caller]
    fn refuses(text: &str, words: &str, at: &str) {
        assert!(is_call(text), "{text}");
        assert_refused(Preset::parse(text), text, words, at);
    }

    #[test]
    fn unknown_presets_list_the_known_ones() {
        refuses("foo(3)", "unknown preset `foo`; the presets are lda, nmf, cp,", "foo");
        refuses("LDA(3)", "did you mean `lda`?", "LDA");
        refuses("tensor_train(3)", "did you mean `tensor-train`?", "tensor_train");
        refuses("pachinco(3,4)", "did you mean `pachinko`?", "pachinco");
        refuses("topic(20) -> word", "written `name[4]`", "topic");
    }

    #[test]
    fn wrong_arguments_are_explained() {
        refuses("lda()", "`lda` needs a size; write `lda(4)`", "lda()");
        refuses("tucker( )", "needs a size", "tucker( )");
        refuses("mmsb(tied)", "needs a size", "mmsb(tied)");
        refuses("lda(2,4)", "to choose from several sizes write `lda([2,4])`", "4");
        refuses("hmm(0,0\n[)", "`hmm` takes", "0\n[");
        refuses("lda(2,tied)", "takes one size, found `tied`", "tied");
        refuses("mmsb(2,tide)", "at most `tied`, found `tide`", "tide");
        refuses("mmsb(tied,2)", "write `mmsb(4,tied)`", "2");
        refuses("hmm(2,3,tied)", "`hmm` takes one size", "3");
        refuses("lda(K)", "`K` is not a size", "K");
        refuses("lda(0)", "at least 1", "0");
        refuses("tucker(2,,3)", "the size is missing", "tucker(2,,3)");
        refuses("lda([2,4)", "this `[` is not closed", "[");
        refuses("lda(3", "this `(` is not closed", "(");
        refuses("lda(3) -> b", "must be the whole text", "-> b");
        refuses("lda(3))", "must be the whole text", ")");
        refuses("independent(3)", "takes no arguments", "3");
        refuses("lda(1..4000000000)", "more than 10000 sizes", "1..4000000000");
    }
}
