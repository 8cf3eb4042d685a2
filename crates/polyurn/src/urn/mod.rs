//! The Pólya-Bayes urn itself: tokens drawn one after another, each making its like more probable, and taken out again.

mod polya;

pub use polya::Urn;
pub(crate) use polya::draw_from_prior;
