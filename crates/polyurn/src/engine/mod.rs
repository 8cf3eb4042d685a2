//! Engines: each takes a [`Problem`] and a run control and answers with ln p(sequence) or a posterior.
//!
//! Engines only ever return the probability of one sequence of records; [`crate::evidence`] adds the total and the
//! arrangements in one place.

mod allocation;
pub mod anneal;
mod assignments;
mod bytes;
pub mod enumerate;
pub mod exact;
pub mod gibbs;
mod kind;
mod lines;
pub(crate) mod mixer;
pub mod naive;
mod naming;
mod problem;
mod replicates;
mod sheet;
pub mod smc;
pub mod sweeps;
pub(crate) mod symmetry;
mod tables;
mod uniforms;

pub use allocation::{ParticleAllocation, RecordAllocation, RecordPosterior};
pub use problem::Problem;
pub use tables::{CellMean, RowMean, TableMeans};
