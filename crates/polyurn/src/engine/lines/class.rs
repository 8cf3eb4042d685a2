//! Counters that share their lines, and the pseudo-counts of each.

use crate::counts::MISSING;
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::prior::{Prior, PseudoCount, PseudoCounts};
use hashbrown::HashMap;

/// Lines of all particles are numbered with 32 bits.
const MAX_LINES: f64 = (1u64 << 31) as f64;

/// Counters touched by the same nodes: they share their lines.
#[derive(Debug)]
pub struct Class {
    /// Number of lines of a block.
    pub interior: usize,
    /// For each position its share in the number of the line within a block; 0 for positions that pick the block.
    pub strides: Vec<usize>,
    /// Whether the position picks the block.
    pub is_key: Vec<bool>,
    sizes: Vec<u32>,
    /// For each combination of values in those positions its block.
    pub blocks: HashMap<Box<[u32]>, u32>,
}

impl Class {
    /// A class without blocks.
    ///
    /// # Errors
    /// When a block has more lines than can be numbered.
    pub fn new(model: &Model, nodes: &[NodeIndex], is_key: Vec<bool>) -> Result<Self> {
        let sizes: Vec<u32> = nodes.iter().map(|&node| model.node(node).size).collect();
        let mut strides = vec![0usize; sizes.len()];
        let mut interior = 1.0;
        for position in (0..sizes.len()).rev().filter(|&position| !is_key[position]) {
            strides[position] = interior as usize;
            interior *= f64::from(sizes[position]);
        }
        if interior > MAX_LINES {
            let names: Vec<&str> = nodes.iter().map(|&node| model.node(node).name.as_str()).collect();
            return Err(Error::TooCostly(format!(
                "particles would have to keep {interior:.3e} counts of {} each, since these nodes are not always seen",
                names.join(", ")
            )));
        }
        Ok(Class { interior: interior as usize, strides, is_key, sizes, blocks: HashMap::new() })
    }

    /// The blocks and the seen values that pick them, in the order of the blocks.
    pub fn keys(&self) -> Vec<(u32, &[u32])> {
        let mut keys: Vec<(u32, &[u32])> = self.blocks.iter().map(|(key, &block)| (block, &**key)).collect();
        keys.sort_unstable();
        keys
    }

    /// The values that pick the block, and the line within it as far as the others are seen.
    pub fn split(&self, values: impl Iterator<Item = u32>) -> (Box<[u32]>, u32) {
        let (mut key, mut offset) = (Vec::new(), 0);
        for (position, value) in values.enumerate() {
            if self.is_key[position] {
                key.push(value);
            } else if value != MISSING {
                offset += self.strides[position] * value as usize;
            }
        }
        (key.into(), offset as u32)
    }

    /// The values of all positions for a line of the block with this key.
    pub fn values(&self, key: &[u32], in_block: usize) -> Vec<u32> {
        let mut values = vec![0u32; self.sizes.len()];
        let mut rest = in_block;
        let mut key = key.iter();
        for position in (0..values.len()).filter(|&position| self.is_key[position]) {
            values[position] = *key.next().expect("one value for each key position");
        }
        for position in (0..values.len()).rev().filter(|&position| !self.is_key[position]) {
            let size = self.sizes[position] as usize;
            values[position] = (rest % size) as u32;
            rest /= size;
        }
        values
    }

    /// The line of a block that has other values in the positions that are unseen.
    pub fn with_values(&self, in_block: usize, new: impl Fn(usize, u32) -> u32) -> usize {
        let mut rest = in_block;
        let mut line = 0;
        for position in (0..self.sizes.len()).rev().filter(|&position| !self.is_key[position]) {
            let size = self.sizes[position] as usize;
            line += self.strides[position] * new(position, (rest % size) as u32) as usize;
            rest /= size;
        }
        line
    }

    /// Whether seen values pick the block, so that all its tokens are known.
    pub fn has_key(&self) -> bool {
        self.is_key.contains(&true)
    }
}

/// The cells or the rows of one table, with their pseudo-counts.
#[derive(Debug)]
pub struct Counted {
    pub table: TableIndex,
    pub kind: Kind,
    pub class: usize,
    /// The pseudo-count of every line, or one by one: by block, and within the block by line.
    pub pseudo: Pseudo,
}

/// Pseudo-counts of lines.
#[derive(Debug)]
pub enum Pseudo {
    /// All the same.
    Even(PseudoCount),
    /// For each block of the class, in the order of the blocks within it.
    PerLine(Vec<PseudoCount>),
}

impl Pseudo {
    /// Pseudo-counts line by line are left to [`Counted::list_pseudo_counts`].
    pub fn new(prior: &Prior, table: TableIndex, kind: Kind) -> Self {
        match (prior.table(table), kind) {
            (PseudoCounts::Even { cell, .. }, Kind::Cell) => Pseudo::Even(*cell),
            (PseudoCounts::Even { row, .. }, Kind::Row) => Pseudo::Even(*row),
            _ => Pseudo::PerLine(Vec::new()),
        }
    }
}

impl Counted {
    /// Fills in pseudo-counts line by line where they differ.
    pub fn list_pseudo_counts(&mut self, problem: &Problem<'_>, class: &Class) {
        let Pseudo::PerLine(list) = &mut self.pseudo else { return };
        let table = problem.prior.table(self.table);
        for (_, key) in class.keys() {
            for in_block in 0..class.interior {
                let values = class.values(key, in_block);
                list.push(self.kind.pseudo_count(table, &values));
            }
        }
    }
}
