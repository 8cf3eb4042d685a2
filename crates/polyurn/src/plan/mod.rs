//! The plan: a model and the patterns of its records, compiled once.
//!
//! A record shows some nodes. Nodes that are unseen and have nothing seen below them are *barren*: they are left out, and
//! neither the evidence nor the posterior of any table changes. The unseen nodes that remain are summed out or drawn as
//! one block, by message passing along an elimination order, so that the cost is exponential only in the treewidth of
//! the unseen part. Patterns that differ only in nodes that were left out share one elimination.

mod compile;
mod elimination;
mod evaluate;
mod zero_rows;

pub(crate) use compile::with_ancestors;
pub use compile::{Family, Pattern, Plan};
pub use elimination::{Bucket, Elimination};
pub use evaluate::{CellWeights, Evaluator};
pub use zero_rows::check_reachable_rows;
