//! Allocations: how the tokens of each record are shared out over its hidden values, as draws give them.

use crate::engine::Problem;
use crate::engine::tables::{CountsOfRows, TableMeans};
use crate::graph::NodeIndex;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// The allocation of one particle, or of one state of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParticleAllocation {
    /// Its run or chain.
    pub run: usize,
    /// ln p(sequence, hidden values).
    pub log_joint: f64,
    /// ln pi(S): ln probability of the whole allocation tensor.
    pub ln_pi: f64,
    /// How the tokens of each record are allocated.
    pub hidden: Vec<RecordAllocation>,
}

/// How the tokens of one record are allocated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordAllocation {
    /// Block of the counts.
    pub block: u32,
    /// Number of the record in it.
    pub record: u32,
    /// Values of its unseen nodes, ascending by node, and how many of its tokens have them.
    pub groups: Vec<(Vec<u32>, u64)>,
}

/// Posterior of the unseen nodes of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordPosterior {
    /// Block of the counts.
    pub block: u32,
    /// Number of the record in it.
    pub record: u32,
    /// Each unseen node with the probabilities of its values, averaged over the record's tokens.
    pub nodes: Vec<(NodeIndex, Vec<f64>)>,
}

impl ParticleAllocation {
    /// Means and spreads of all tables given this allocation: one labelling of the hidden values, as factors need it.
    pub fn tables(&self, problem: &Problem<'_>) -> Vec<TableMeans> {
        let model = problem.model;
        let mut rows = CountsOfRows::new(model.tables().len());
        let allocations: HashMap<(u32, u32), &RecordAllocation> =
            self.hidden.iter().map(|record| ((record.block, record.record), record)).collect();
        let mut values = vec![0; model.n_nodes()];
        for (block_ix, (block, pattern)) in problem.counts.blocks.iter().zip(problem.plan.patterns()).enumerate() {
            for (record, count) in block.counts.iter().enumerate() {
                block.read(record, &mut values);
                let mut add = |values: &[u32], count: u64| {
                    for &node in &pattern.relevant {
                        let family = model.node(node).parents.iter().chain([&node]);
                        let family: Vec<u32> = family.map(|node| values[node.ix()]).collect();
                        rows.add(model.node(node).table, &family, count as f64);
                    }
                };
                match allocations.get(&(block_ix as u32, record as u32)) {
                    None => add(&values, count),
                    Some(allocation) => {
                        for (hidden, count) in &allocation.groups {
                            pattern.unseen.iter().zip(hidden).for_each(|(node, &value)| values[node.ix()] = value);
                            add(&values, *count);
                        }
                    }
                }
            }
        }
        rows.dirichlet_means(model, problem.prior)
    }
}
