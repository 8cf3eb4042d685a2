//! Names in messages, and names that are still free.

use hashbrown::HashSet;

/// How many names an error lists at most.
pub(super) const MAX_LISTED: usize = 20;

/// A name in a message: in backticks, on one line and not too long.
pub(super) fn shown(name: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut out = String::from("`");
    for (ix, c) in name.chars().enumerate() {
        if ix == MAX_CHARS {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out.push('`');
    out
}

/// Names in a message, the first few of them.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let mut parts: Vec<String> = names.by_ref().take(MAX_LISTED).map(shown).collect();
    if names.next().is_some() {
        parts.push("…".to_owned());
    }
    parts.join(", ")
}

/// A name for a hidden node that is not yet taken: `_` is appended until it is free.
pub(super) fn free_name(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = wanted.to_owned();
    while is_taken(&name) {
        name.push('_');
    }
    name
}

/// The first name that occurs a second time.
pub(super) fn first_repeated(names: &[String]) -> Option<&str> {
    let mut seen = HashSet::new();
    names.iter().map(String::as_str).find(|name| !seen.insert(*name))
}
