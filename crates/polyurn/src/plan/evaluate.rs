//! Probability of a record, a draw of its unseen part, and expected family statistics, for given cell weights.

use super::compile::{Pattern, Plan};
use super::elimination::Elimination;
use crate::counts::MISSING;
use crate::graph::{NodeIndex, TableIndex};
use crate::math::{RunningProduct, draw};
use rand::Rng;

/// Read access to the weights of table cells: the urn's predictive probabilities, exponentiated expectations of VB, or
/// tempered weights. The plan gives the same answers for all of them.
pub trait CellWeights {
    /// The nonnegative weight of a cell.
    fn weight(&self, table: TableIndex, row: u64, child: u32) -> f64;
}

/// Buffers for evaluating records of one plan; no allocation per record once they have grown.
///
/// Rows are addressed by number, so the plan must satisfy [`Plan::has_numbered_rows`].
#[derive(Debug, Default)]
pub struct Evaluator {
    tables: Vec<Vec<f64>>,
    messages: Vec<Vec<f64>>,
    beliefs: Vec<Vec<f64>>,
}

impl Evaluator {
    /// Fresh buffers.
    pub fn new() -> Self {
        Evaluator::default()
    }

    /// ln of the weight of a record, unseen nodes summed out. `record` has one value per node, [`MISSING`] where unseen;
    /// its seen nodes must be those of the pattern.
    ///
    /// For normalised rows this is the log probability of what was seen. Tables used by several nodes are read as they
    /// are: that a token adds to a tied table while it is drawn is the urn's business.
    pub fn ln_probability(
        &mut self,
        plan: &Plan,
        pattern: &Pattern,
        record: &[u32],
        weights: &impl CellWeights,
    ) -> f64 {
        self.collect(plan, pattern, record, weights)
    }

    /// Draws the unseen nodes in proportion to the weights and writes them into `record`; returns what
    /// [`Evaluator::ln_probability`] would. Barren nodes stay [`MISSING`]. Leaves the record as it is when its
    /// probability is zero.
    pub fn draw(
        &mut self,
        plan: &Plan,
        pattern: &Pattern,
        record: &mut [u32],
        weights: &impl CellWeights,
        rng: &mut impl Rng,
    ) -> f64 {
        let ln = self.collect(plan, pattern, record, weights);
        if ln == f64::NEG_INFINITY {
            return ln;
        }
        for (bucket, table) in pattern.elimination.buckets().iter().zip(&self.tables).rev() {
            let separator = &bucket.scope[..bucket.scope.len() - 1];
            let entry = separator
                .iter()
                .zip(&bucket.sizes)
                .fold(0usize, |entry, (node, &size)| entry * size as usize + record[node.ix()] as usize);
            let slice = &table[entry * bucket.size()..(entry + 1) * bucket.size()];
            let total = slice.iter().sum();
            record[bucket.node().ix()] = draw::categorical(slice, total, rng) as u32;
        }
        ln
    }

    /// Calls `emit(node, row, child, probability)` for every cell of every relevant family that the record may use, with
    /// the posterior probability that it does; returns the log weight of the record. Emits nothing for an impossible
    /// record.
    pub fn expected_families(
        &mut self,
        plan: &Plan,
        pattern: &Pattern,
        record: &[u32],
        weights: &impl CellWeights,
        mut emit: impl FnMut(NodeIndex, u64, u32, f64),
    ) -> f64 {
        let ln = self.collect(plan, pattern, record, weights);
        if ln == f64::NEG_INFINITY {
            return ln;
        }
        self.distribute(&pattern.elimination);
        for &node in &pattern.closed {
            emit(node, seen_row(plan, node, record), record[node.ix()], 1.0);
        }
        for &node in &pattern.open {
            let touch = pattern.elimination.touch(node).expect("an open family touches an unseen node");
            let row = seen_row(plan, node, record);
            let belief = &self.beliefs[touch.bucket];
            for (state, &probability) in belief.iter().enumerate() {
                if probability > 0.0 {
                    let child = touch.child.as_ref().map_or(record[node.ix()], |child| child[state]);
                    emit(node, row + touch.row_offset[state], child, probability);
                }
            }
        }
        ln
    }

    /// Fills the buckets and passes messages forward; returns the log weight of the record.
    fn collect(&mut self, plan: &Plan, pattern: &Pattern, record: &[u32], weights: &impl CellWeights) -> f64 {
        debug_assert!(plan.has_numbered_rows(), "check `has_numbered_rows` before evaluating a plan");
        let elimination = &*pattern.elimination;
        self.prepare(elimination);
        let mut scale = RunningProduct::default();
        for &node in &pattern.closed {
            let family = plan.family(node);
            scale.multiply(weights.weight(family.table, seen_row(plan, node, record), record[node.ix()]));
        }
        for &node in &pattern.open {
            let touch = elimination.touch(node).expect("an open family touches an unseen node");
            let row = seen_row(plan, node, record);
            let table_ix = plan.family(node).table;
            let table = &mut self.tables[touch.bucket];
            match &touch.child {
                Some(children) => {
                    for ((slot, &offset), &child) in table.iter_mut().zip(&touch.row_offset).zip(children) {
                        *slot *= weights.weight(table_ix, row + offset, child);
                    }
                }
                None => {
                    let child = record[node.ix()];
                    for (slot, &offset) in table.iter_mut().zip(&touch.row_offset) {
                        *slot *= weights.weight(table_ix, row + offset, child);
                    }
                }
            }
            scale.rescale(table);
        }
        for ix in 0..elimination.buckets().len() {
            self.pass_message(elimination, ix, &mut scale);
        }
        scale.ln()
    }

    fn prepare(&mut self, elimination: &Elimination) {
        let n_buckets = elimination.buckets().len();
        for buffers in [&mut self.tables, &mut self.messages, &mut self.beliefs] {
            if buffers.len() < n_buckets {
                buffers.resize_with(n_buckets, Vec::new);
            }
        }
        for (table, bucket) in self.tables.iter_mut().zip(elimination.buckets()) {
            table.clear();
            table.resize(bucket.n_states, 1.0);
        }
    }

    /// Sums the bucket's node out and multiplies the message into the parent's table, or into the scale at a root.
    fn pass_message(&mut self, elimination: &Elimination, ix: usize, scale: &mut RunningProduct) {
        let bucket = &elimination.buckets()[ix];
        let message = &mut self.messages[ix];
        message.clear();
        message.extend(self.tables[ix].chunks_exact(bucket.size()).map(|row| row.iter().sum::<f64>()));
        match bucket.parent {
            None => scale.multiply(message[0]),
            Some(parent) => {
                let (_, later) = self.tables.split_at_mut(ix + 1);
                let table = &mut later[parent - ix - 1];
                for (slot, &entry) in table.iter_mut().zip(&bucket.message_of_parent_state) {
                    *slot *= message[entry as usize];
                }
                scale.rescale(table);
            }
        }
    }

    /// From the roots down: posterior probability of every entry of every bucket.
    fn distribute(&mut self, elimination: &Elimination) {
        for (ix, bucket) in elimination.buckets().iter().enumerate().rev() {
            // Posterior of the separator, from the parent's belief; a root has the empty separator.
            let mut separator = vec![0.0; bucket.n_messages()];
            match bucket.parent {
                None => separator[0] = 1.0,
                Some(parent) => {
                    for (&entry, &belief) in bucket.message_of_parent_state.iter().zip(&self.beliefs[parent]) {
                        separator[entry as usize] += belief;
                    }
                }
            }
            let (table, message) = (&self.tables[ix], &self.messages[ix]);
            let belief = &mut self.beliefs[ix];
            belief.clear();
            for (row, (&message, &separator)) in table.chunks_exact(bucket.size()).zip(message.iter().zip(&separator)) {
                let factor = if message > 0.0 { separator / message } else { 0.0 };
                belief.extend(row.iter().map(|&entry| entry * factor));
            }
        }
    }
}

/// The row number of a family as far as its parents are seen.
fn seen_row(plan: &Plan, node: NodeIndex, record: &[u32]) -> u64 {
    let family = plan.family(node);
    family
        .parents
        .iter()
        .zip(&family.strides)
        .filter(|(parent, _)| record[parent.ix()] != MISSING)
        .map(|(parent, &stride)| stride * u64::from(record[parent.ix()]))
        .sum()
}
