//! The evidence and its three parts, assembled in one place.
//!
//! `log_marginal = log_p_total + log_arrangements + log_p_sequence` (theory.md, section 5). Engines give the last part.

mod parts;
mod totals;

pub use parts::{Evidence, evidence, ln_arrangements, ln_p_given};
pub(crate) use parts::{add_up, ln_factorials};
pub use totals::{EstimatedTotals, TotalProbability, estimated_totals, totals};
