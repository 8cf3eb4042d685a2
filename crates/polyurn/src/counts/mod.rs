//! Counts: what was seen. Files become a [`Dataset`]; bound to a model it becomes [`Counts`], records grouped by the
//! pattern of seen nodes.

mod builder;
mod code_list;
mod count_list;
mod dataset;
mod intern;
mod labels;
mod records;
mod row_bits;
mod row_count;
mod row_sink;
mod unit;

pub use builder::{Cell, DatasetBuilder};
pub use code_list::CodeList;
pub use count_list::CountList;
pub use dataset::{Column, Dataset, MISSING};
pub(crate) use intern::Interner;
pub use labels::Labels;
pub use records::{Block, Counts};
pub use row_count::{Rounded, RowCount};
pub use row_sink::RowSink;
pub use unit::{MOST_DECIMALS, Unit};
