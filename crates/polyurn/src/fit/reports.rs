//! What particles and chains did, beside the tables that they found.

use crate::engine::gibbs::{Gibbs, GibbsPosterior};
use crate::engine::smc::{ErrorFrom, Estimate, Order, Smc};
use crate::graph::Model;

/// What is reported of an estimate beside its number.
#[derive(Debug, Clone)]
pub struct ParticleReport {
    pub(crate) smc: Smc,
    pub(crate) order: String,
    pub(crate) error_from: ErrorFrom,
    /// Estimates of ln p(data) of the runs.
    pub run_log_marginals: Vec<f64>,
    pub(crate) ess_min: f64,
    pub(crate) ess_trace: Vec<(u64, f64)>,
    pub(crate) resampled_at: Vec<u64>,
    pub(crate) n_resampled: Vec<u64>,
    pub(crate) n_ancestors: Vec<usize>,
    pub(crate) n_updates: u64,
}

impl ParticleReport {
    /// Collects what an estimate has to say. `to_marginal` is added to each run's ln p(sequence).
    pub fn new(smc: Smc, model: &Model, estimate: &Estimate, to_marginal: f64) -> Self {
        let runs = &estimate.runs;
        let order = match smc.path.order {
            Order::Auto | Order::Random => "random".to_owned(),
            Order::Given => "given".to_owned(),
            Order::By(node) => format!("by:{}", model.node(node).name),
        };
        ParticleReport {
            smc,
            order,
            error_from: estimate.error_from,
            run_log_marginals: runs.iter().map(|run| run.ln_p_sequence + to_marginal).collect(),
            ess_min: estimate.ess_min(),
            ess_trace: runs[0].ess_trace.clone(),
            resampled_at: runs[0].resampled_at.clone(),
            n_resampled: runs.iter().map(|run| run.n_resampled).collect(),
            n_ancestors: runs.iter().map(|run| run.n_ancestors).collect(),
            n_updates: runs.iter().map(|run| run.n_updates).sum(),
        }
    }
}

/// What is reported of chains beside their tables.
#[derive(Debug, Clone)]
pub struct ChainReport {
    pub(crate) gibbs: Gibbs,
    /// Their states.
    pub posterior: GibbsPosterior,
    pub(crate) tokens_per_second: f64,
}

impl ChainReport {
    /// Of chains that took so long.
    pub fn new(gibbs: Gibbs, posterior: GibbsPosterior, seconds: f64) -> Self {
        let n_sweeps: usize = posterior.result.chains.iter().map(|chain| chain.ln_joint.len()).sum();
        let n_drawn = posterior.result.n_tokens as f64 * n_sweeps as f64;
        ChainReport { gibbs, tokens_per_second: n_drawn / seconds.max(1e-9), posterior }
    }

    /// The chain whose states are shown: that of the tables, or the first.
    pub(crate) fn chain(&self) -> usize {
        self.posterior.from_chain.unwrap_or(0)
    }

    /// ln p(sequence, hidden values) of its last state.
    pub fn log_joint(&self) -> f64 {
        self.posterior.result.chains[self.chain()].ln_joint_by_table.iter().sum()
    }
}
