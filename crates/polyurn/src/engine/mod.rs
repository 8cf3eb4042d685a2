//! Engines: each takes a [`Problem`] and a run control and answers with ln p(sequence) or a posterior.
//!
//! Engines only ever return the probability of one sequence of records; [`crate::evidence`] adds the total and the
//! arrangements in one place.

mod assignments;
pub mod enumerate;
pub mod exact;
mod mixer;
pub mod naive;
mod problem;
pub mod smc;

pub use problem::Problem;
