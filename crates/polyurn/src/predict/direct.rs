//! Records with one unseen node, as in mixtures and topic models: its weights are products of a few contiguous slices.

use super::{Predictor, Weights};
use crate::counts::MISSING;
use crate::graph::{NodeIndex, TableIndex};
use crate::math::RunningProduct;
use crate::plan::{CellWeights, Plan};
use std::sync::Arc;

/// A table with one of its parents turned to be the fastest.
#[derive(Debug)]
pub(super) struct Transposed {
    cells: Vec<f64>,
}

/// How one record's unseen node is weighed.
#[derive(Debug)]
pub(super) struct Direct {
    size: usize,
    is_wanted: bool,
    /// The unseen node's own family.
    own: NodeIndex,
    /// Families in which it is a parent, and where their slices are.
    below: Vec<Below>,
}

/// A child of the unseen node.
#[derive(Debug)]
struct Below {
    table: Arc<Transposed>,
    /// For each seen node of the family: which, and how far its values are apart.
    strides: Vec<(NodeIndex, usize)>,
}

impl Direct {
    /// If that is all that the plan has to do.
    pub fn new(predictor: &Predictor<'_>, plan: &Plan, wanted: &[NodeIndex]) -> Option<Self> {
        let pattern = &plan.patterns()[0];
        let [own] = pattern.unseen[..] else { return None };
        if wanted.iter().any(|&node| node != own) || predictor.open.contains(&own) {
            return None;
        }
        let mut below = Vec::new();
        for &node in pattern.open.iter().filter(|&&node| node != own) {
            let family = plan.family(node);
            // Rows of new values have another order.
            if predictor.slots[family.table.ix()].is_some() {
                return None;
            }
            let at = family.parents.iter().position(|&parent| parent == own)?;
            let sizes = predictor.model.tables()[family.table.ix()].parent_sizes.clone();
            let mut strides = Vec::new();
            let mut stride = sizes[at] as usize;
            strides.push((node, stride));
            stride *= predictor.model.node(node).size as usize;
            for (ix, &parent) in family.parents.iter().enumerate().rev().filter(|(ix, _)| *ix != at) {
                strides.push((parent, stride));
                stride *= sizes[ix] as usize;
            }
            below.push(Below { table: predictor.transposed(family.table, at), strides });
        }
        let size = predictor.model.node(own).size as usize;
        Some(Direct { size, is_wanted: !wanted.is_empty(), own, below })
    }

    /// ln of the record's probability; the posterior goes into the first of `posteriors`, if it is wanted.
    pub fn answer(&self, weights: &Weights<'_>, plan: &Plan, record: &[u32], posteriors: &mut [Vec<f64>]) -> f64 {
        let predictor = weights.predictor;
        let mut scale = RunningProduct::default();
        let row_of = |node: NodeIndex| -> u64 {
            let family = plan.family(node);
            let seen = family.parents.iter().zip(&family.strides);
            seen.map(|(parent, &stride)| stride * u64::from(record[parent.ix()])).sum()
        };
        for &node in &plan.patterns()[0].closed {
            scale.multiply(weights.weight(plan.family(node).table, row_of(node), record[node.ix()]));
        }
        let own_row = weights.slice(plan.family(self.own).table, row_of(self.own), self.size);
        let mut spare = Vec::new();
        let product = posteriors.first_mut().unwrap_or(&mut spare);
        product.clear();
        product.extend_from_slice(own_row);
        for below in &self.below {
            let start: usize = below
                .strides
                .iter()
                .map(|&(node, stride)| {
                    debug_assert_ne!(record[node.ix()], MISSING);
                    stride * record[node.ix()] as usize
                })
                .sum();
            let slice = &below.table.cells[start..][..self.size];
            product.iter_mut().zip(slice).for_each(|(product, &weight)| *product *= weight);
            scale.rescale(product);
        }
        let sum: f64 = product.iter().sum();
        scale.multiply(sum);
        if self.is_wanted && sum > 0.0 {
            product.iter_mut().for_each(|weight| *weight /= sum);
        }
        debug_assert_eq!(predictor.model.node(self.own).size as usize, self.size);
        scale.ln()
    }
}

impl Weights<'_> {
    /// A whole row.
    fn slice(&self, table: TableIndex, row: u64, size: usize) -> &[f64] {
        if let Some(slot) = &self.predictor.slots[table.ix()]
            && let Some(Some(new)) = self.new.get(slot.root)
            && let Some(row) = slot.row_of_new(row)
        {
            return new.row(table, row, size);
        }
        &self.predictor.tables[table.ix()][row as usize * size..][..size]
    }
}

impl Predictor<'_> {
    /// A table with the parent at this position turned to be the fastest; made once.
    fn transposed(&self, table: TableIndex, at: usize) -> Arc<Transposed> {
        let mut all = self.transposed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some((.., found)) = all.iter().find(|(other, position, _)| (*other, *position) == (table, at)) {
            return found.clone();
        }
        let shape = &self.model.tables()[table.ix()];
        let child_size = shape.child_size as usize;
        let size = shape.parent_sizes[at] as usize;
        let n_inner = shape.parent_sizes[at + 1..].iter().map(|&size| size as usize).product::<usize>();
        let cells = &self.tables[table.ix()];
        let mut turned = vec![0.0; cells.len()];
        for (ix, &cell) in cells.iter().enumerate() {
            let (row, child) = (ix / child_size, ix % child_size);
            let (block, inner) = (row / n_inner, row % n_inner);
            let (outer, value) = (block / size, block % size);
            turned[((outer * n_inner + inner) * child_size + child) * size + value] = cell;
        }
        let turned = Arc::new(Transposed { cells: turned });
        all.push((table, at, turned.clone()));
        turned
    }
}
