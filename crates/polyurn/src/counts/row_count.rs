//! How many tokens a row of a file stands for, as it was written.

use super::unit::Unit;
use std::fmt;

/// How many tokens a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowCount {
    /// That many; 0 is fine.
    Tokens(u64),
    /// Not a whole number of tokens, but of this unit; further decimal places may have been rounded.
    Fraction(u64, Unit, Rounded),
    /// The count is `?`: nobody knows how many tokens the cell holds.
    Unknown,
}

impl RowCount {
    /// A number of some unit.
    pub(super) fn of(n: u64, unit: Unit) -> Self {
        if unit.is_token() { RowCount::Tokens(n) } else { RowCount::Fraction(n, unit, Rounded::No) }
    }
}

/// Whether decimal places were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounded {
    /// None were.
    No,
    /// Some were.
    Yes,
}

impl fmt::Display for RowCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowCount::Tokens(count) => count.fmt(f),
            RowCount::Fraction(count, unit, _) => unit.tokens(*count).fmt(f),
            RowCount::Unknown => f.write_str("?"),
        }
    }
}
