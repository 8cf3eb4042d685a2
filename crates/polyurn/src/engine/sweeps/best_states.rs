//! The most probable joint values of a record's unseen nodes, best first.
//!
//! Messages hold maxima instead of sums. Read from the roots down they tell, for every partial assignment, how good its best
//! completion is; so a search that always goes on with the best partial assignment meets the complete ones in order.

use super::layout::Group;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A complete assignment: the state of every bucket, and the logarithm of its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct BestState {
    pub states: Vec<u32>,
    pub ln: f64,
}

/// Buffers, and a search under way.
#[derive(Debug, Default)]
pub struct BestStates {
    tables: Vec<Vec<f64>>,
    messages: Vec<Vec<f64>>,
    heap: BinaryHeap<Partial>,
    n_made: u64,
}

/// States of the last buckets, as far as they are chosen.
#[derive(Debug)]
struct Partial {
    ln: f64,
    /// The first made goes first among equals.
    made: u64,
    states: Vec<u32>,
}

impl Ord for Partial {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ln.total_cmp(&other.ln).then(other.made.cmp(&self.made))
    }
}

impl PartialOrd for Partial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Partial {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Partial {}

impl BestStates {
    /// Starts with a record: `logs` are those of the weights of all cells.
    pub fn start(&mut self, group: &Group, starts: &[u32], logs: &[f64]) {
        let buckets = group.elimination.buckets();
        self.tables.resize_with(buckets.len().max(self.tables.len()), Vec::new);
        self.messages.resize_with(buckets.len().max(self.messages.len()), Vec::new);
        for (table, bucket) in self.tables.iter_mut().zip(buckets) {
            table.clear();
            table.resize(bucket.n_states, 0.0);
        }
        for (family, &start) in group.families.iter().zip(starts) {
            let table = &mut self.tables[family.bucket.expect("a known record's families have unseen nodes")];
            table.iter_mut().zip(&family.offsets).for_each(|(slot, &at)| *slot += logs[(start + at) as usize]);
        }
        let mut ln = 0.0;
        for (ix, bucket) in buckets.iter().enumerate() {
            let largest = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            self.messages[ix].clear();
            self.messages[ix].extend(self.tables[ix].chunks_exact(bucket.size()).map(largest));
            match bucket.parent {
                None => ln += self.messages[ix][0],
                Some(parent) => {
                    let (message, table) = (&self.messages[ix], &mut self.tables[parent]);
                    let entries = &bucket.message_of_parent_state;
                    table.iter_mut().zip(entries).for_each(|(slot, &entry)| *slot += message[entry as usize]);
                }
            }
        }
        self.heap.clear();
        self.n_made = 0;
        if ln > f64::NEG_INFINITY {
            self.heap.push(Partial { ln, made: 0, states: Vec::new() });
        }
    }

    /// The next best complete assignment, if there is one that is possible.
    pub fn next(&mut self, group: &Group) -> Option<BestState> {
        let buckets = group.elimination.buckets();
        while let Some(Partial { ln, states, .. }) = self.heap.pop() {
            if states.len() == buckets.len() {
                // They were chosen from the last bucket on.
                let states = states.into_iter().rev().collect();
                return Some(BestState { states, ln });
            }
            let ix = buckets.len() - 1 - states.len();
            let entry = match buckets[ix].parent {
                None => 0,
                Some(parent) => {
                    let state = states[buckets.len() - 1 - parent];
                    buckets[ix].message_of_parent_state[state as usize] as usize
                }
            };
            let size = buckets[ix].size();
            let best = self.messages[ix][entry];
            for value in 0..size {
                let state = entry * size + value;
                let below = self.tables[ix][state] - best;
                if below > f64::NEG_INFINITY {
                    self.n_made += 1;
                    let states = states.iter().copied().chain([state as u32]).collect();
                    self.heap.push(Partial { ln: ln + below, made: self.n_made, states });
                }
            }
        }
        None
    }
}
