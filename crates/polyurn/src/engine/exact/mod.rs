//! The exact engine: tokens go through the urn, a map from sufficient statistics to probability.
//!
//! ln p(sequence) is a sum over all allocations of the unseen values. Tokens are placed one after another; after each,
//! all allocations with the same counts are one state, since nothing later can tell them apart (theory.md, section 6).
//! Four things make it reach beyond toys:
//! - what is certain never enters the state: it has a closed form;
//! - counters that always move together share one register;
//! - records are ordered so that registers finish early, and finished registers are forgotten;
//! - states that differ only in exchangeable hidden labels are one state.
//!
//! The result has no error but rounding: probabilities are added and multiplied with an exponent of their own, and the
//! closed form is evaluated with 32 digits.

mod counters;
mod families;
mod layer;
mod order;
mod posterior;
mod program;
mod records;
mod registers;
mod run;
mod slots;
mod tail;

pub use posterior::{Allocation, Posterior, posterior};
pub use run::{Cost, Exact, ExactSequence, Prepared, TotalsRange, UnknownTotals};
