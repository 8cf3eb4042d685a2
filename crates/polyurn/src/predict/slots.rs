//! Roots that may have values which the fit does not know, and the rows of tables that wait for such a value.

use crate::fit_file::FitFile;
use crate::graph::{Model, NodeIndex, Table};
use crate::prior::PseudoCounts;

/// Where in a table the rows of an open root's new value are: the root is one of the parents, and its new value is the last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Position among the open roots.
    pub root: usize,
    /// Position among the parents.
    parent: usize,
    /// Rows from one value of the root to the next.
    stride: u64,
    /// Values of the root, the new one included.
    size: u64,
}

impl Slot {
    /// The number of a row among those of the new value, if it is one of them.
    #[inline]
    pub fn row_of_new(&self, row: u64) -> Option<usize> {
        let (block, inner) = (row / self.stride, row % self.stride);
        let is_new = block % self.size == self.size - 1;
        is_new.then(|| (block / self.size * self.stride + inner) as usize)
    }

    /// Number of rows of one value of the root in a table of the widened model.
    pub fn n_rows(&self, table: &Table) -> usize {
        (table.n_rows() / self.size as f64) as usize
    }

    /// A table with prior means in the rows of the new value. `table` is that of the fit.
    pub fn widened(&self, known: &[f64], pseudo: &PseudoCounts, table: &Table) -> Vec<f64> {
        let child_size = table.child_size as usize;
        let n_known = (self.size - 1) as usize;
        let block = self.stride as usize * child_size;
        let prior = self.prior_rows(pseudo, table);
        let mut wide = Vec::with_capacity(known.len() / n_known * self.size as usize);
        for (outer, known) in known.chunks_exact(block * n_known).enumerate() {
            wide.extend_from_slice(known);
            for row in prior[outer * block..][..block].chunks_exact(child_size) {
                let sum: f64 = row.iter().sum();
                // A row of pseudo-counts too small for a number, or without any: nothing is known of it.
                wide.extend(row.iter().map(|&cell| if sum > 0.0 { cell / sum } else { 1.0 / child_size as f64 }));
            }
        }
        wide
    }

    /// Pseudo-counts of the rows of a new value: as those of the known values are on average.
    pub fn prior_rows(&self, pseudo: &PseudoCounts, table: &Table) -> Vec<f64> {
        let child_size = table.child_size;
        let n_values = (self.size - 1) as u32;
        let n_rows = (table.n_rows() / f64::from(n_values)) as usize;
        if let PseudoCounts::Even { cell, .. } = pseudo {
            return vec![cell.value; n_rows * child_size as usize];
        }
        let mut rows = Vec::with_capacity(n_rows * child_size as usize);
        let mut parents = vec![0; table.parent_sizes.len()];
        for row in 0..n_rows {
            let mut number = row;
            for (ix, &size) in table.parent_sizes.iter().enumerate().rev().filter(|(ix, _)| *ix != self.parent) {
                parents[ix] = (number % size as usize) as u32;
                number /= size as usize;
            }
            for child in 0..child_size {
                let mut sum = 0.0;
                for value in 0..n_values {
                    parents[self.parent] = value;
                    sum += pseudo.cell(&parents, child).value;
                }
                rows.push(sum / f64::from(n_values));
            }
        }
        rows
    }
}

/// Seen roots with children, whose tables and whose children's tables are their own; and no two of them with a child in
/// common.
pub(super) fn open_roots(fit: &FitFile) -> Vec<NodeIndex> {
    let model = &fit.model;
    let is_tied = |node: NodeIndex| model.tables()[model.node(node).table.ix()].members.len() > 1;
    let is_root = |node: NodeIndex| {
        let own = model.node(node);
        fit.is_seen[node.ix()]
            && own.parents.is_empty()
            && !own.children.is_empty()
            && own.size < u32::MAX - 2
            && !is_tied(node)
            && !own.children.iter().any(|&child| is_tied(child))
    };
    let roots: Vec<NodeIndex> = model.node_indices().filter(|&node| is_root(node)).collect();
    let shares_child = |node: NodeIndex| {
        let children = &model.node(node).children;
        roots
            .iter()
            .any(|&other| other != node && model.node(other).children.iter().any(|child| children.contains(child)))
    };
    roots.iter().copied().filter(|&node| !shares_child(node)).collect()
}

/// For each table of the widened model its slot.
pub(super) fn slots_of(model: &Model, open: &[NodeIndex]) -> Vec<Option<Slot>> {
    let of_table = |table: &Table| {
        let parents = &model.node(table.members[0]).parents;
        let (parent, root) = parents
            .iter()
            .enumerate()
            .find_map(|(ix, parent)| open.iter().position(|root| root == parent).map(|root| (ix, root)))?;
        let stride = table.parent_sizes[parent + 1..].iter().map(|&size| u64::from(size)).product();
        Some(Slot { root, parent, stride, size: u64::from(table.parent_sizes[parent]) })
    };
    model.tables().iter().map(of_table).collect()
}
