//! Engines that go through all records again and again: variational Bayes, EM, and the two that look for one best
//! allocation. Stochastic variational Bayes takes them from a stream, batch by batch.
//!
//! They share the cells that records use, the way through the records, and the control of restarts. Work per sweep follows
//! distinct records times hidden states; no sweep depends on the size of the tensor or of the counts.

mod allocation;
mod arrangement;
mod best_states;
mod cells;
mod dirichlet;
mod divergence;
mod em;
mod layout;
mod messages;
mod mixture;
mod multinomial;
mod numbers;
mod pass;
mod point;
mod prior_sizes;
mod restarts;
mod start;
mod starts;
mod stochastic;
mod stream_tables;
mod tables;
mod tokens;
mod vb;

pub use allocation::{AllocationFit, BestAllocation, Given};
pub use divergence::kl_divergence;
pub use em::{Em, EmFit, Turns};
pub use point::Mode;
pub use prior_sizes::{Factors, Free};
pub use restarts::{Climb, Climbs};
pub use start::StartTables;
pub use stochastic::{Learner, Returned, StochasticVb, nodes_with_uneven_prior};
pub use vb::{Vb, VbFit};
