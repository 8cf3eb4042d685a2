//! From larger pseudo-counts down to the prior's: ln of the ratio of a particle's probabilities at two scales.
//!
//! With tiny pseudo-counts the posterior has a few sharp modes, and tokens that come in one by one settle in one of them
//! before the others are seen. With larger pseudo-counts they move freely. Probability is a product of rising factorials
//! of the lines, so the ratio of two scales is a sum over lines of a number that depends on the count alone.

use super::course::Course;
use super::lanes::Shard;
use super::loops::Counters;
use super::prepared::LISTED;
use super::word::Word;
use crate::engine::kind::Kind;
use crate::engine::lines::Pseudo;
use std::sync::Arc;

/// ln ratios for one step of cooling.
#[derive(Debug)]
pub enum CoolingTable {
    Shared(Arc<Vec<f64>>),
    PerLine(Vec<Vec<f64>>),
}

impl Course<'_> {
    /// For each block and each of its lines (or for all of them together) ln of the ratio by number of tokens.
    pub fn cooling_tables(&self, from: f64, to: f64) -> Vec<CoolingTable> {
        let even = |n: u64, pseudo: f64, sign: f64, table: &mut Vec<f64>| {
            // rising(x, n) grows by x + n at each token; its ratio at n = 0 is that of the scales, however tiny x.
            table.resize(n as usize + 1, 0.0);
            let mut ln = 0.0;
            for held in 0..n {
                let ratio =
                    if held == 0 { to / from } else { (to * pseudo + held as f64) / (from * pseudo + held as f64) };
                ln += ratio.ln();
                table[held as usize + 1] += sign * ln;
            }
        };
        let of_class =
            |class: usize| self.layout.counted.iter().enumerate().filter(move |(_, counted)| counted.class == class);
        let sign = |kind: Kind| if kind == Kind::Cell { 1.0 } else { -1.0 };
        let is_even = |class: usize| of_class(class).all(|(_, counted)| matches!(counted.pseudo, Pseudo::Even(_)));
        let largest: Vec<u64> = (0..self.layout.classes.len())
            .map(|class| {
                let of_class = self.layout.blocks.iter().filter(|block| block.class as usize == class);
                of_class.map(|block| block.n_uses).max().unwrap_or(0)
            })
            .collect();
        let shared: Vec<Option<Arc<Vec<f64>>>> = (0..self.layout.classes.len())
            .map(|class| {
                is_even(class).then(|| {
                    let mut table = Vec::new();
                    for (_, counted) in of_class(class) {
                        if let Pseudo::Even(pseudo) = &counted.pseudo {
                            even(largest[class], pseudo.value, sign(counted.kind), &mut table);
                        }
                    }
                    Arc::new(table)
                })
            })
            .collect();
        self.layout
            .blocks
            .iter()
            .map(|block| match &shared[block.class as usize] {
                Some(table) => CoolingTable::Shared(table.clone()),
                None => CoolingTable::PerLine(
                    (0..self.layout.classes[block.class as usize].interior)
                        .map(|line| {
                            let mut table = Vec::new();
                            for (ix, counted) in of_class(block.class as usize) {
                                let pseudo = self.layout.pseudo(ix, block, line);
                                even(block.n_uses, pseudo.value, sign(counted.kind), &mut table);
                            }
                            table
                        })
                        .collect(),
                ),
            })
            .collect()
    }

    /// Adds the ln ratios of a block's lines to the totals.
    pub fn cool_block<W: Word>(&self, shard: &mut Shard<W>, block_ix: usize, table: &CoolingTable) {
        let block = &self.layout.blocks[block_ix];
        let lanes = shard.weights.len();
        let class = &self.layout.classes[block.class as usize];
        let mut first = self.frame.storage.first_line[block_ix] as usize;
        if first == LISTED as usize {
            first = self.frame.storage.n_lines;
            self.rebuild_block(shard, block_ix as u32, first, u32::MAX, u32::MAX);
        }
        let high = self.frame.storage.high_of_class[block.class as usize] as usize;
        for in_block in 0..class.interior {
            let table = match table {
                CoolingTable::Shared(table) => table.as_slice(),
                CoolingTable::PerLine(tables) => &tables[in_block],
            };
            let Counters { low, high } = Counters::of(&shard.lines, lanes, first + in_block, high);
            for ((total, low), high) in shard.work.totals.iter_mut().zip(low).zip(high) {
                *total += table[low.index_with(*high)];
            }
        }
    }
}
