//! In which order tokens go through the urn. Any order is unbiased; the spread of the estimate depends on it much.

use crate::counts::Counts;
use crate::engine::lines::Records;
use crate::graph::NodeIndex;
use crate::math::draw::shuffle;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// An order of tokens. One order is shared by all particles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Order {
    /// The best that is known for the problem.
    #[default]
    Auto,
    /// Every order equally likely.
    Random,
    /// As the distinct records stand in the data.
    Given,
    /// By the values of a node, values in random order, tokens of one value in random order.
    By(NodeIndex),
}

/// The record of every token, in order.
pub fn tokens(order: Order, records: &Records, counts: &Counts, rng: &mut impl Rng) -> Vec<u32> {
    let mut tokens: Vec<u32> = (0..records.len())
        .flat_map(|record| std::iter::repeat_n(record as u32, records.count[record] as usize))
        .collect();
    match order {
        Order::Given => {}
        Order::Random | Order::Auto => shuffle(&mut tokens, rng),
        Order::By(node) => {
            shuffle(&mut tokens, rng);
            // Groups come in the order in which a shuffled list of values has them.
            let value_of: Vec<u32> = (0..records.len()).map(|record| value(records, counts, record, node)).collect();
            let mut values = value_of.clone();
            values.sort_unstable();
            values.dedup();
            shuffle(&mut values, rng);
            let mut rank: Vec<(u32, u32)> = values.iter().copied().zip(0..).collect();
            rank.sort_unstable();
            let rank_of = |value: u32| rank[rank.binary_search_by_key(&value, |entry| entry.0).expect("listed")].1;
            let rank_of_record: Vec<u32> = value_of.iter().map(|&value| rank_of(value)).collect();
            tokens.sort_by_key(|&record| rank_of_record[record as usize]);
        }
    }
    tokens
}

/// A node's value in a record; records that do not show it form one group.
fn value(records: &Records, counts: &Counts, record: usize, node: NodeIndex) -> u32 {
    let (block, row) = records.source[record];
    let block = &counts.blocks[block as usize];
    match block.seen.binary_search(&node.0) {
        Ok(column) => block.values[column][row as usize],
        Err(_) => crate::counts::MISSING,
    }
}
