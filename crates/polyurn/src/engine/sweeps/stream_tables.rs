//! Counts of tables that a stream fills, batch by batch.
//!
//! A batch has its own numbering of the cells that its records use; here every cell has one number for good. A *shared*
//! table fades as a whole with every step, so it keeps one factor for all its counts instead of touching each of them. A
//! *local* table belongs to the values of one seen root node (the topics of a document): each value has a part of its own.

use super::cells::{CellTable, Keys, Shape};
use crate::engine::tables::RowCounts;
use crate::graph::{Model, NodeIndex, TableIndex};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Cells that are kept in a list; more are kept in a map of those that were touched.
const LISTED_UP_TO: f64 = (1u64 << 28) as f64;

/// The same for one part of a local table, of which there may be millions.
const PART_LISTED_UP_TO: f64 = 1024.0;

/// A factor below this is multiplied into the counts, long before anything underflows.
const SMALLEST_FACTOR: f64 = 1e-100;

/// Numbers of cells or rows, from the values of a family. Nodes that are seen count slowest: their values come one after
/// another, and a list need be no longer than what came so far.
#[derive(Debug, Clone)]
struct Numbering {
    sizes: Vec<u32>,
    strides: Vec<u128>,
    /// Positions, fastest first; without that of the local node, which picks the part.
    order: Vec<usize>,
    /// How many numbers there are.
    n: f64,
}

impl Numbering {
    fn new(sizes: &[u32], is_seen: &[bool], local: Option<usize>) -> Self {
        let mut order: Vec<usize> = (0..sizes.len()).rev().filter(|&at| Some(at) != local).collect();
        order.sort_by_key(|&at| is_seen[at]);
        let mut strides = vec![0; sizes.len()];
        let (mut stride, mut n) = (1u128, 1.0);
        for &at in &order {
            strides[at] = stride;
            // Wraps only where the number of cells is beyond what a batch can number, which is refused there.
            stride = stride.wrapping_mul(u128::from(sizes[at]));
            n *= f64::from(sizes[at]);
        }
        Numbering { sizes: sizes.to_vec(), strides, order, n }
    }

    fn number(&self, values: &[u32]) -> u128 {
        self.strides.iter().zip(values).map(|(stride, &value)| stride * u128::from(value)).sum()
    }

    fn values(&self, mut number: u128) -> Vec<u32> {
        let mut values = vec![0; self.sizes.len()];
        for &at in &self.order {
            values[at] = (number % u128::from(self.sizes[at])) as u32;
            number /= u128::from(self.sizes[at]);
        }
        values
    }

    /// For all cells or rows that a batch uses, in its order, calls `f` with the first values of the block, the number,
    /// and the place in the batch's table.
    fn for_each(&self, shape: &Shape, keys: &Keys, mut f: impl FnMut(&[u32], u128, usize)) {
        let in_block: Vec<u128> = (0..shape.interior).map(|in_block| self.number(&shape.values(0, in_block))).collect();
        for (block, key) in keys.iter().enumerate() {
            let values = shape.values(key, 0);
            let first = self.number(&values);
            for (ix, offset) in in_block.iter().enumerate() {
                f(&values, first + offset, block * shape.interior + ix);
            }
        }
    }
}

/// Sums by number.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Sums {
    Listed(Vec<f64>),
    Mapped(#[serde(with = "pairs")] HashMap<u128, f64>),
}

impl Sums {
    fn new(n: f64, listed_up_to: f64) -> Self {
        if n <= listed_up_to { Sums::Listed(Vec::new()) } else { Sums::Mapped(HashMap::new()) }
    }

    fn get(&self, number: u128) -> f64 {
        match self {
            Sums::Listed(list) => list.get(number as usize).copied().unwrap_or(0.0),
            Sums::Mapped(map) => map.get(&number).copied().unwrap_or(0.0),
        }
    }

    fn add(&mut self, number: u128, count: f64) {
        match self {
            Sums::Listed(list) => {
                let at = number as usize;
                if list.len() <= at {
                    list.resize(at + 1, 0.0);
                }
                list[at] += count;
            }
            Sums::Mapped(map) => *map.entry(number).or_insert(0.0) += count,
        }
    }

    fn multiply(&mut self, factor: f64) {
        match self {
            _ if factor == 1.0 => {}
            Sums::Listed(list) => list.iter_mut().for_each(|sum| *sum *= factor),
            Sums::Mapped(map) if factor == 0.0 => map.clear(),
            Sums::Mapped(map) => map.values_mut().for_each(|sum| *sum *= factor),
        }
    }

    /// What is not zero, by number, ascending.
    fn non_zero(&self) -> Vec<(u128, f64)> {
        let mut all: Vec<(u128, f64)> = match self {
            Sums::Listed(list) => list.iter().enumerate().map(|(number, &sum)| (number as u128, sum)).collect(),
            Sums::Mapped(map) => map.iter().map(|(&number, &sum)| (number, sum)).collect(),
        };
        all.retain(|(_, sum)| *sum != 0.0);
        all.sort_unstable_by_key(|(number, _)| *number);
        all
    }

    fn capacity(&self) -> usize {
        match self {
            Sums::Listed(list) => list.capacity(),
            Sums::Mapped(map) => map.capacity(),
        }
    }
}

/// Maps as lists of pairs, ascending.
mod pairs {
    use hashbrown::HashMap;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(map: &HashMap<u128, f64>, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all: Vec<(u128, f64)> = map.iter().map(|(&number, &sum)| (number, sum)).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashMap<u128, f64>, D::Error> {
        Ok(Vec::<(u128, f64)>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Counts of cells and of rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    cells: Sums,
    rows: Sums,
}

/// The counts of one table.
#[derive(Debug)]
pub struct StreamTable {
    table: TableIndex,
    cells: Numbering,
    rows: Numbering,
    /// Where the local node stands in the family, if there is one.
    local: Option<usize>,
    /// One part, or one for each value of the local node.
    parts: Vec<Part>,
    empty: Part,
    /// What the counts of a shared table are to be multiplied by.
    factor: f64,
}

impl StreamTable {
    /// No counts yet. `is_seen` is for all nodes; `local` is a parent whose values have rows of their own.
    pub fn new(model: &Model, table: TableIndex, is_seen: &[bool], local: Option<NodeIndex>) -> Self {
        let spec = &model.tables()[table.ix()];
        let sizes: Vec<u32> = spec.parent_sizes.iter().copied().chain([spec.child_size]).collect();
        let family: Vec<NodeIndex> =
            model.node(spec.members[0]).parents.iter().copied().chain([spec.members[0]]).collect();
        let is_seen: Vec<bool> = family.iter().map(|node| is_seen[node.ix()]).collect();
        let local = family.iter().position(|&node| Some(node) == local);
        let n_parents = sizes.len() - 1;
        let cells = Numbering::new(&sizes, &is_seen, local);
        let rows = Numbering::new(&sizes[..n_parents], &is_seen[..n_parents], local);
        let limit = if local.is_some() { PART_LISTED_UP_TO } else { LISTED_UP_TO };
        let empty = Part { cells: Sums::new(cells.n, limit), rows: Sums::new(rows.n, limit) };
        let parts = if local.is_some() { Vec::new() } else { vec![empty.clone()] };
        StreamTable { table, cells, rows, local, parts, empty, factor: 1.0 }
    }

    /// What its counts are to be multiplied by, and its counts.
    pub fn contents(&self) -> (f64, Vec<Part>) {
        (self.factor, self.parts.clone())
    }

    /// Puts such contents in.
    pub fn set_contents(&mut self, factor: f64, parts: Vec<Part>) {
        (self.factor, self.parts) = (factor, parts);
    }

    /// Which table this is.
    pub fn table(&self) -> TableIndex {
        self.table
    }

    fn part_ix(&self, values: &[u32]) -> usize {
        self.local.map_or(0, |at| values[at] as usize)
    }

    fn part(&self, values: &[u32]) -> &Part {
        self.parts.get(self.part_ix(values)).unwrap_or(&self.empty)
    }

    fn part_mut(&mut self, values: &[u32]) -> &mut Part {
        let ix = self.part_ix(values);
        if self.parts.len() <= ix {
            self.parts.resize(ix + 1, self.empty.clone());
        }
        &mut self.parts[ix]
    }

    /// The counts of a cell and of its row.
    pub fn at(&self, family: &[u32]) -> (f64, f64) {
        let (part, parents) = (self.part(family), &family[..family.len() - 1]);
        let cell = part.cells.get(self.cells.number(family));
        (self.factor * cell, self.factor * part.rows.get(self.rows.number(parents)))
    }

    /// Fills in the counts of the cells and rows that a batch uses.
    pub fn read(&self, batch: &CellTable, counts: &mut [f64], rows: &mut [f64]) {
        self.read_times(batch, |_| self.factor, counts, rows);
    }

    /// The same for a local table, each value's counts times a share.
    pub fn read_shares(&self, batch: &CellTable, shares: &BTreeMap<u32, f64>, counts: &mut [f64], rows: &mut [f64]) {
        self.read_times(batch, |values| self.local.map_or(1.0, |at| shares[&values[at]]), counts, rows);
    }

    /// Fills in counts times what `times` says for the values of their block.
    fn read_times(&self, batch: &CellTable, times: impl Fn(&[u32]) -> f64, counts: &mut [f64], rows: &mut [f64]) {
        let (counts, rows) = (&mut counts[batch.cells()], &mut rows[batch.rows()]);
        self.cells.for_each(&batch.shape, &batch.keys, |values, number, cell| {
            counts[cell] = times(values) * self.part(values).cells.get(number);
        });
        self.rows.for_each(&batch.row_shape, &batch.row_keys, |values, number, row| {
            rows[row] = times(values) * self.part(values).rows.get(number);
        });
    }

    /// Adds the counts of the cells and rows of a batch, times a factor.
    pub fn add(&mut self, batch: &CellTable, counts: &[f64], rows: &[f64], times: f64) {
        let times = times / self.factor;
        let mut numbers = Vec::with_capacity(batch.n_cells());
        self.cells.for_each(&batch.shape, &batch.keys, |values, number, _| {
            numbers.push((self.part_ix(values) as u32, number));
        });
        self.add_all(&numbers, &counts[batch.cells()], |part| &mut part.cells, times);
        numbers.clear();
        self.rows.for_each(&batch.row_shape, &batch.row_keys, |values, number, _| {
            numbers.push((self.part_ix(values) as u32, number));
        });
        self.add_all(&numbers, &rows[batch.rows()], |part| &mut part.rows, times);
    }

    fn add_all(&mut self, numbers: &[(u32, u128)], counts: &[f64], sums: impl Fn(&mut Part) -> &mut Sums, times: f64) {
        if let Some(last) = numbers.iter().map(|(part, _)| *part as usize).max()
            && self.parts.len() <= last
        {
            self.parts.resize(last + 1, self.empty.clone());
        }
        for (&(part, number), &count) in numbers.iter().zip(counts).filter(|(_, count)| **count != 0.0) {
            sums(&mut self.parts[part as usize]).add(number, times * count);
        }
    }

    /// Adds to one cell and its row.
    pub fn add_at(&mut self, family: &[u32], count: f64) {
        let (cell, row) = (self.cells.number(family), self.rows.number(&family[..family.len() - 1]));
        let count = count / self.factor;
        let part = self.part_mut(family);
        part.cells.add(cell, count);
        part.rows.add(row, count);
    }

    /// Multiplies all counts of a shared table; costs nothing, but once in a while the whole table.
    pub fn fade(&mut self, factor: f64) {
        self.factor *= factor;
        if self.factor < SMALLEST_FACTOR {
            for part in &mut self.parts {
                part.cells.multiply(self.factor);
                part.rows.multiply(self.factor);
            }
            self.factor = 1.0;
        }
    }

    /// Multiplies the counts that belong to one value of the local node.
    pub fn fade_part(&mut self, value: u32, factor: f64) {
        if let Some(part) = self.parts.get_mut(value as usize) {
            part.cells.multiply(factor);
            part.rows.multiply(factor);
        }
    }

    /// Calls `f` with the values of the family of every cell that has a count, and the count.
    pub fn for_each_count(&self, mut f: impl FnMut(&[u32], f64)) {
        for (part_ix, part) in self.parts.iter().enumerate() {
            for (number, count) in part.cells.non_zero() {
                let mut values = self.cells.values(number);
                if let Some(at) = self.local {
                    values[at] = part_ix as u32;
                }
                f(&values, self.factor * count);
            }
        }
    }

    /// All rows that have counts, by parents.
    pub fn row_counts(&self) -> BTreeMap<Vec<u32>, RowCounts> {
        let mut rows: BTreeMap<Vec<u32>, RowCounts> = BTreeMap::new();
        self.for_each_count(|family, count| {
            let (child, parents) = family.split_last().expect("a family has a child");
            rows.entry(parents.to_vec()).or_default().add(*child, count);
        });
        rows
    }

    /// Numbers that there is room for.
    pub fn capacity(&self) -> usize {
        self.parts.iter().map(|part| part.cells.capacity() + part.rows.capacity()).sum()
    }
}
