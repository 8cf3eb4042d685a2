//! Some rows of a file in the terms of a fit.

use polyurn::counts::{MISSING, RowCount};
use polyurn::graph::NodeIndex;
use polyurn::predict::Allocation;

/// A row without a new value.
pub const NO_LABEL: u32 = u32::MAX;

/// Some rows.
#[derive(Debug, Default)]
pub struct Block {
    /// Nodes of the fit, and open roots.
    pub n_nodes: usize,
    pub n_open: usize,
    /// For each row a value of each node.
    pub codes: Vec<u32>,
    /// For each row the number of the new label of each open root.
    pub new_labels: Vec<u32>,
    pub counts: Vec<RowCount>,
    pub kept: Vec<String>,
    /// Values that were dropped.
    pub n_dropped: u64,
}

impl Block {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.counts.len()
    }

    /// The value of each node.
    pub fn record(&self, row: usize) -> &[u32] {
        &self.codes[row * self.n_nodes..][..self.n_nodes]
    }

    /// The number of the new label of an open root, or [`NO_LABEL`].
    pub fn new_label(&self, row: usize, root: usize) -> u32 {
        self.new_labels[row * self.n_open + root]
    }

    /// How many tokens the row stands for; none when that is unknown.
    pub fn tokens(&self, row: usize) -> Option<f64> {
        match self.counts[row] {
            RowCount::Tokens(n) => Some(n as f64),
            RowCount::Fraction(n, unit, _) => Some(unit.tokens(n)),
            RowCount::Unknown => None,
        }
    }

    /// A kept value.
    pub fn kept(&self, row: usize, n_kept: usize) -> &[String] {
        &self.kept[row * n_kept..][..n_kept]
    }

    /// Whether two rows show the same nodes.
    pub fn shows_the_same(&self, a: usize, b: usize) -> bool {
        self.record(a).iter().zip(self.record(b)).all(|(&a, &b)| (a == MISSING) == (b == MISSING))
    }

    /// The nodes that a row shows.
    pub fn seen(&self, row: usize) -> Vec<NodeIndex> {
        let shown = (0..).zip(self.record(row)).filter(|(_, value)| **value != MISSING);
        shown.map(|(node, _)| NodeIndex(node)).collect()
    }

    /// The values that an allocation gives to most tokens of a row, and their share.
    pub fn take_from(&self, row: usize, allocation: &mut Allocation) -> Option<Vec<(u32, f64)>> {
        let n = match self.counts[row] {
            RowCount::Tokens(n) => n,
            _ => 0,
        };
        allocation.take(self.record(row), n)
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.codes.clear();
        self.new_labels.clear();
        self.counts.clear();
        self.kept.clear();
        self.n_dropped = 0;
    }
}
