//! Priors: pseudo-counts of every table, and the Gamma prior of the intensity.
//!
//! By default BDeu (theory.md, section 3): an imaginary sample of size `a` spread evenly over all cells of the full
//! table, so that each table holds a contraction of one base measure and Markov-equivalent graphs score the same.

mod build;
mod pseudo;
mod spec;
mod total;

pub use build::{Prior, PriorSettings, TiedPrior};
pub use pseudo::{ProductTerm, PseudoCount, PseudoCounts};
pub(crate) use pseudo::{decode, row_number};
pub use spec::PriorSpec;
pub use total::GammaTotal;
