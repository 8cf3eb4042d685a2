//! Tokens of the values of local nodes, which have rows of their own.

use crate::counts::Counts;
use crate::engine::tables::RowCounts;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// By local node, a number for each of its values in a batch.
pub(super) type ByValue<T> = HashMap<NodeIndex, BTreeMap<u32, T>>;

/// Tokens of the values of a local node.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LocalTokens {
    of_value: Vec<u64>,
    total: u64,
    /// Values that came back in a later batch of the first pass.
    n_returned: u64,
    n_values: u64,
}

impl LocalTokens {
    /// Counts tokens of a value in a new batch.
    pub fn add(&mut self, value: u32, count: u64) {
        if self.of_value.len() <= value as usize {
            self.of_value.resize(value as usize + 1, 0);
        }
        let before = self.of_value[value as usize];
        self.n_values += u64::from(before == 0);
        self.n_returned += u64::from(before > 0);
        self.of_value[value as usize] += count;
        self.total += count;
    }

    fn of(&self, value: u32) -> u64 {
        self.of_value.get(value as usize).copied().unwrap_or(0)
    }

    /// For each value in a batch, the share of its counts that other batches brought. A batch that is gone through again
    /// takes its own share of the old counts away; what it does not show of a value stays.
    pub fn kept_shares(&self, in_batch: &BTreeMap<u32, u64>, is_new: bool) -> BTreeMap<u32, f64> {
        let share = |(&value, &count): (&u32, &u64)| {
            let known = self.of(value);
            let others = known.saturating_sub(count) as f64;
            (value, if is_new || known == 0 { 1.0 } else { others / known as f64 })
        };
        in_batch.iter().map(share).collect()
    }

    /// The one row of the node's own table.
    pub fn row(&self) -> RowCounts {
        let mut row = RowCounts { sum: self.total as f64, ..Default::default() };
        let cells = self.of_value.iter().enumerate().filter(|(_, count)| **count > 0);
        row.cells.extend(cells.map(|(value, &count)| (value as u32, count as f64)));
        row
    }

    /// Values that came back, and how many there were.
    pub fn returned(&self, node: NodeIndex) -> Returned {
        Returned { node, n_returned: self.n_returned, n_values: self.n_values }
    }

    /// Numbers that there is room for.
    pub fn capacity(&self) -> usize {
        self.of_value.capacity()
    }
}

/// Local values that came back in a later batch, for a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// The local node.
    pub node: NodeIndex,
    /// How often a value came back.
    pub n_returned: u64,
    /// How many values there were.
    pub n_values: u64,
}

/// Tokens of each value of a local node in a batch.
///
/// # Errors
/// When a record does not show the node.
pub(super) fn tokens_by_value(model: &Model, counts: &Counts, node: NodeIndex) -> Result<BTreeMap<u32, u64>> {
    let mut tokens = BTreeMap::new();
    for block in &counts.blocks {
        let at = block.seen.iter().position(|&seen| seen == node.0).ok_or_else(|| {
            let name = &model.node(node).name;
            Error::Setting(format!(
                "a record does not show `{name}`, whose values have rows of their own; give it a value in every \
                 record, or --local none"
            ))
        })?;
        for (&value, count) in block.values[at].iter().zip(block.counts.iter()) {
            *tokens.entry(value).or_insert(0) += count;
        }
    }
    Ok(tokens)
}
