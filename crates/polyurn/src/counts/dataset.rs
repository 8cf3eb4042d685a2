//! What a file held: columns with labels, distinct rows with counts, unknown cells. Not yet bound to a model.

use super::code_list::CodeList;
use super::count_list::CountList;
use super::labels::Labels;
use super::unit::Unit;
use crate::warning::Warning;

/// The code of a missing value: the token exists, this coordinate of it is not known.
pub const MISSING: u32 = u32::MAX;

/// A column of a [`Dataset`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name; `None` for axes of formats without names.
    pub name: Option<String>,
    /// Its values. Named labels stand in the order of their first appearance in the file.
    pub labels: Labels,
    /// For named labels: the line on which each label first appeared. Empty for indexed ones.
    pub first_lines: Vec<u64>,
}

/// Distinct rows and their counts, and the cells whose count is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// The file, or another name for messages.
    pub source: String,
    /// The columns, without the count column.
    pub columns: Vec<Column>,
    /// One list per column: the code of each distinct row, [`MISSING`] where the value is missing.
    pub values: Vec<CodeList>,
    /// The count of each distinct row. Rows whose count is zero are kept: they can declare labels.
    pub counts: CountList,
    /// What they are counted in: tokens, unless fractions were allowed and there are some.
    pub unit: Unit,
    /// Cells whose count is `?`, a code for each column (none of them missing), each cell once, in file order.
    pub unknown: Vec<Vec<u32>>,
    /// The line of each unknown cell.
    pub unknown_lines: Vec<u64>,
    /// Things to tell the user: duplicates that were added, and the like.
    pub warnings: Vec<Warning>,
}

impl Dataset {
    /// Number of distinct rows.
    pub fn n_rows(&self) -> usize {
        self.counts.len()
    }

    /// Number of tokens in all, or `None` when it does not fit 64 bits.
    pub fn n_tokens(&self) -> Option<u64> {
        self.counts.sum()
    }
}
