//! Records with any unseen part: messages between the buckets of an elimination.

use super::layout::Group;
use super::numbers::Numbers;
use crate::math::RunningProduct;
use crate::plan::Elimination;

/// Buffers of one thread.
#[derive(Debug, Default)]
pub struct Messages {
    tables: Vec<Vec<f64>>,
    messages: Vec<Vec<f64>>,
    beliefs: Vec<Vec<f64>>,
    separator: Vec<f64>,
}

/// Read access to weights, with their logarithms where they may underflow.
#[derive(Debug, Clone, Copy)]
pub struct Weights<'w> {
    pub values: &'w Numbers,
    pub logs: Option<&'w [f64]>,
}

impl Messages {
    /// ln of the weight of a record, unseen nodes summed out. Afterwards [`Messages::distribute`] gives the rest.
    pub fn collect(&mut self, group: &Group, starts: &[u32], weights: Weights<'_>) -> f64 {
        let ln = self.collect_with(group, starts, |start, offsets, table, scale| {
            table.iter_mut().zip(offsets).for_each(|(slot, &at)| *slot *= weights.values[start + at as usize]);
            scale.rescale(table);
        });
        if ln > f64::NEG_INFINITY {
            return ln;
        }
        // Impossible, or a product was too small for a number.
        self.collect_with(group, starts, |start, offsets, table, scale| {
            let log = |at: &u32| {
                let cell = start + *at as usize;
                weights.logs.map_or_else(|| weights.values[cell].ln(), |logs| logs[cell])
            };
            let largest = offsets.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
            if largest == f64::NEG_INFINITY {
                return table.fill(0.0);
            }
            table.iter_mut().zip(offsets).for_each(|(slot, at)| *slot *= (log(at) - largest).exp());
            scale.multiply_by_exp(largest);
            scale.rescale(table);
        })
    }

    fn collect_with(
        &mut self,
        group: &Group,
        starts: &[u32],
        multiply: impl Fn(usize, &[u32], &mut [f64], &mut RunningProduct),
    ) -> f64 {
        let buckets = group.elimination.buckets();
        for buffers in [&mut self.tables, &mut self.messages, &mut self.beliefs] {
            if buffers.len() < buckets.len() {
                buffers.resize_with(buckets.len(), Vec::new);
            }
        }
        for (table, bucket) in self.tables.iter_mut().zip(buckets) {
            table.clear();
            table.resize(bucket.n_states, 1.0);
        }
        let mut scale = RunningProduct::default();
        for (family, &start) in group.families.iter().zip(starts) {
            match family.bucket {
                Some(bucket) => multiply(start as usize, &family.offsets, &mut self.tables[bucket], &mut scale),
                None => {
                    let mut weight = [1.0];
                    multiply(start as usize, &family.offsets, &mut weight, &mut scale);
                    scale.multiply(weight[0]);
                }
            }
        }
        for (ix, bucket) in buckets.iter().enumerate() {
            let message = &mut self.messages[ix];
            message.clear();
            message.extend(self.tables[ix].chunks_exact(bucket.size()).map(|row| row.iter().sum::<f64>()));
            match bucket.parent {
                None => scale.multiply(message[0]),
                Some(parent) => {
                    let table = &mut self.tables[parent];
                    let entries = &bucket.message_of_parent_state;
                    table.iter_mut().zip(entries).for_each(|(slot, &entry)| *slot *= message[entry as usize]);
                    scale.rescale(table);
                }
            }
        }
        scale.ln()
    }

    /// After [`Messages::collect`] of a possible record: the probability of every state of every bucket.
    pub fn distribute(&mut self, elimination: &Elimination) {
        for (ix, bucket) in elimination.buckets().iter().enumerate().rev() {
            self.separator.clear();
            self.separator.resize(bucket.n_messages(), 0.0);
            match bucket.parent {
                None => self.separator[0] = 1.0,
                Some(parent) => {
                    for (&entry, &belief) in bucket.message_of_parent_state.iter().zip(&self.beliefs[parent]) {
                        self.separator[entry as usize] += belief;
                    }
                }
            }
            let (table, message) = (&self.tables[ix], &self.messages[ix]);
            let belief = &mut self.beliefs[ix];
            belief.clear();
            let rows = table.chunks_exact(bucket.size()).zip(message.iter().zip(&self.separator));
            for (row, (&message, &separator)) in rows {
                let factor = if message > 0.0 { separator / message } else { 0.0 };
                belief.extend(row.iter().map(|&entry| entry * factor));
            }
        }
    }

    /// The probability of every state of a bucket, after [`Messages::distribute`].
    pub fn belief(&self, bucket: usize) -> &[f64] {
        &self.beliefs[bucket]
    }
}
