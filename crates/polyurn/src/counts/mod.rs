//! Counts: what was seen. Files become a [`Dataset`]; bound to a model it becomes [`Counts`], records grouped by the
//! pattern of seen nodes.

mod builder;
mod dataset;
mod intern;
mod labels;
mod records;
mod row_sink;

pub use builder::{Cell, DatasetBuilder, RowCount};
pub use dataset::{Column, Dataset, MISSING};
pub(crate) use intern::Interner;
pub use labels::Labels;
pub use records::{Block, Counts};
pub use row_sink::RowSink;
