//! What takes rows as a reader finds them.

use super::builder::{Cell, DatasetBuilder};
use super::row_count::RowCount;
use crate::error::Result;
use crate::warning::Warning;

/// Takes the columns of a file, then its rows one after another: to keep them all ([`DatasetBuilder`]) or to hand them on in
/// batches ([`Batcher`](crate::graph::Batcher)).
pub trait RowSink {
    /// The name of the file or other source, for messages; before anything else.
    fn source(&mut self, name: &str);

    /// A column whose values are labels; before the first row.
    fn label_column(&mut self, name: Option<String>);

    /// A column whose values are numbers, value 0 being called `first`; before the first row.
    fn index_column(&mut self, name: Option<String>, first: u32, size: Option<u32>);

    /// A column of labels that are known beforehand, those that never occur too; before the first row. Says whether its cells are
    /// to be given as [`Cell::Index`]; else they are labels.
    fn coded_column(&mut self, name: Option<String>, _: &[String]) -> bool {
        self.label_column(name);
        false
    }

    /// Says that a value exists, whether a row has it or not, in the column of indices at this position.
    fn value_exists(&mut self, _column: usize, _index: u32) {}

    /// Each row is one token, as in a file without counts.
    fn rows_are_tokens(&mut self);

    /// Whether counts may be fractions.
    fn takes_fractions(&self) -> bool {
        false
    }

    /// Something odd about the file.
    fn warn(&mut self, warning: Warning);

    /// A row that stands on line `line`.
    ///
    /// # Errors
    /// When something about it is wrong, or when no more rows are wanted.
    fn push<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()>;

    /// A row that follows from another one on the same line, the mirror image of an entry. To most it is a row like others.
    ///
    /// # Errors
    /// As for [`RowSink::push`].
    fn push_implied<'c>(
        &mut self,
        line: u64,
        cells: impl IntoIterator<Item = Cell<'c>>,
        count: RowCount,
    ) -> Result<()> {
        self.push(line, cells, count)
    }
}

impl RowSink for DatasetBuilder {
    fn source(&mut self, name: &str) {
        name.clone_into(&mut self.source);
    }

    fn label_column(&mut self, name: Option<String>) {
        DatasetBuilder::label_column(self, name);
    }

    fn index_column(&mut self, name: Option<String>, first: u32, size: Option<u32>) {
        DatasetBuilder::index_column(self, name, first, size);
    }

    fn coded_column(&mut self, name: Option<String>, labels: &[String]) -> bool {
        DatasetBuilder::coded_column(self, name, labels.to_vec());
        true
    }

    fn value_exists(&mut self, column: usize, index: u32) {
        DatasetBuilder::value_exists(self, column, index);
    }

    fn rows_are_tokens(&mut self) {
        DatasetBuilder::rows_are_tokens(self);
    }

    fn takes_fractions(&self) -> bool {
        DatasetBuilder::takes_fractions(self)
    }

    fn warn(&mut self, warning: Warning) {
        DatasetBuilder::warn(self, warning);
    }

    #[inline]
    fn push<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        DatasetBuilder::push(self, line, cells, count)
    }

    fn push_implied<'c>(
        &mut self,
        line: u64,
        cells: impl IntoIterator<Item = Cell<'c>>,
        count: RowCount,
    ) -> Result<()> {
        DatasetBuilder::push_implied(self, line, cells, count)
    }
}
