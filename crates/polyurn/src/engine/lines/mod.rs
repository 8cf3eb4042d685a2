//! Which counters depend on hidden values, and which of them a token touches.
//!
//! The counters of a model are the cells and the row sums of its tables. Those whose values are always seen are known before
//! any engine begins; the others are *lines*, one number for each particle or chain. Engines that place tokens one by one
//! share this: which lines there are, and by which of them a token's hidden states are weighed.
//!
//! - `uses`, `class`, `layout`: which lines there are, and which of them a record touches;
//! - `grow`: a layout for records that come one by one;
//! - `kernel`, `compile`: what is done for one token of a pattern.

mod class;
mod compile;
mod grow;
mod kernel;
mod layout;
mod uses;

pub use class::{Counted, Pseudo};
pub use grow::MAX_STREAM;
pub use kernel::{BucketShape, Digit, Kernel, Term, Touch};
pub use layout::{Block, Layout, Place, Records};
