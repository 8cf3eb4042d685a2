//! The cells of tables that records may use: only those are ever stored.
//!
//! A cell of a table is addressed by the values of a family, parents first. Positions that every record shows pick a
//! *block*; the others number the cells within it, those that no record shows fastest. So the cells that one record
//! weighs against each other stand side by side, and what no record can touch does not exist.

use crate::counts::MISSING;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::prior::{Prior, PseudoCount, PseudoCounts};
use hashbrown::HashMap;

/// Cells are numbered with 32 bits.
const MAX_CELLS: f64 = (u32::MAX - 1) as f64;

/// A table that is used direct, up to this many values, whatever the number of records.
const ALWAYS_DIRECT: usize = 1 << 16;

/// One use of a table by a node in the records of one pattern.
#[derive(Debug, Clone)]
pub struct Use {
    /// For each position of the family whether the records show it.
    pub is_seen: Vec<bool>,
}

/// How positions of a family address cells.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Number of values of each position.
    pub sizes: Vec<u32>,
    /// Whether the position picks the block.
    pub is_key: Vec<bool>,
    /// For each other position its share in the number within the block.
    pub strides: Vec<usize>,
    /// Cells of a block.
    pub interior: usize,
    /// For each position that picks the block its share in the number of the key, where 64 bits hold all numbers.
    key_strides: Option<Vec<(usize, u64)>>,
}

impl Shape {
    fn new(sizes: Vec<u32>, uses: &[Use], n_positions: usize) -> Option<Self> {
        let sizes = sizes[..n_positions].to_vec();
        let is_key: Vec<bool> = (0..n_positions).map(|at| uses.iter().all(|used| used.is_seen[at])).collect();
        let is_ever_seen = |at: usize| uses.iter().any(|used| used.is_seen[at]);
        let mut strides = vec![0; n_positions];
        let mut interior = 1.0;
        for wanted in [false, true] {
            for at in (0..n_positions).rev().filter(|&at| !is_key[at] && is_ever_seen(at) == wanted) {
                strides[at] = interior as usize;
                interior *= f64::from(sizes[at]);
            }
        }
        let mut key_strides = Vec::new();
        let mut n_keys = 1u64;
        let mut is_narrow = true;
        for at in (0..n_positions).rev().filter(|&at| is_key[at]) {
            key_strides.push((at, n_keys));
            n_keys = n_keys.checked_mul(u64::from(sizes[at])).unwrap_or_else(|| {
                is_narrow = false;
                1
            });
        }
        let key_strides = is_narrow.then_some(key_strides);
        let interior_len = interior as usize;
        (interior <= MAX_CELLS).then_some(Shape { sizes, is_key, strides, interior: interior_len, key_strides })
    }

    /// Values of all positions for a cell: those of the key from its number, the others from the number within the block.
    pub fn values(&self, key: u128, in_block: usize) -> Vec<u32> {
        let mut key = key;
        let mut values = vec![0; self.sizes.len()];
        for at in (0..self.sizes.len()).rev() {
            let size = self.sizes[at];
            if self.is_key[at] {
                values[at] = (key % u128::from(size)) as u32;
                key /= u128::from(size);
            } else {
                values[at] = (in_block / self.strides[at] % size as usize) as u32;
            }
        }
        values
    }

    /// The number of the key that the family has in this record.
    pub fn key(&self, nodes: &[NodeIndex], record: &[u32]) -> u128 {
        if let Some(strides) = &self.key_strides {
            let share = |&(at, stride): &(usize, u64)| stride * u64::from(record[nodes[at].ix()]);
            return u128::from(strides.iter().map(share).sum::<u64>());
        }
        let mut key = 0;
        for (at, node) in nodes.iter().enumerate().take(self.sizes.len()).filter(|&(at, _)| self.is_key[at]) {
            key = key * u128::from(self.sizes[at]) + u128::from(record[node.ix()]);
        }
        key
    }

    /// The number within the block, as far as the record shows it.
    pub fn offset(&self, nodes: &[NodeIndex], record: &[u32]) -> usize {
        let shown = nodes.iter().enumerate().take(self.sizes.len());
        shown
            .filter(|&(at, node)| !self.is_key[at] && record[node.ix()] != MISSING)
            .map(|(at, node)| self.strides[at] * record[node.ix()] as usize)
            .sum()
    }

    fn n_keys(&self) -> f64 {
        self.sizes.iter().zip(&self.is_key).filter(|(_, is_key)| **is_key).map(|(&size, _)| f64::from(size)).product()
    }
}

/// Keys that records have, numbered in ascending order.
#[derive(Debug)]
pub enum Keys {
    /// Where few are possible: for each of them its block, `u32::MAX` if no record has it; and those that records have.
    Direct {
        blocks: Vec<u32>,
        list: Vec<u32>,
    },
    Hashed {
        blocks: HashMap<u128, u32>,
        list: Vec<u128>,
    },
}

impl Keys {
    fn new(n_keys: f64, n_records: usize) -> Self {
        if n_keys <= ALWAYS_DIRECT.max(8 * n_records) as f64 && n_keys <= MAX_CELLS {
            Keys::Direct { blocks: vec![u32::MAX; n_keys as usize], list: Vec::new() }
        } else {
            Keys::Hashed { blocks: HashMap::new(), list: Vec::new() }
        }
    }

    fn mark(&mut self, key: u128) {
        match self {
            Keys::Direct { blocks, .. } => blocks[key as usize] = 0,
            Keys::Hashed { blocks, .. } => drop(blocks.insert(key, 0)),
        }
    }

    fn number(&mut self) {
        match self {
            Keys::Direct { blocks, list } => {
                let is_marked = |&(_, block): &(usize, &u32)| *block == 0;
                list.extend(blocks.iter().enumerate().filter(is_marked).map(|(key, _)| key as u32));
                list.iter().enumerate().for_each(|(ix, &key)| blocks[key as usize] = ix as u32);
            }
            Keys::Hashed { blocks, list } => {
                list.extend(blocks.keys());
                list.sort_unstable();
                list.iter().enumerate().for_each(|(ix, key)| *blocks.get_mut(key).expect("a key") = ix as u32);
            }
        }
    }

    /// The block of a key that some record has.
    pub fn block(&self, key: u128) -> usize {
        match self {
            Keys::Direct { blocks, .. } => blocks[key as usize] as usize,
            Keys::Hashed { blocks, .. } => blocks[&key] as usize,
        }
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        match self {
            Keys::Direct { list, .. } => list.len(),
            Keys::Hashed { list, .. } => list.len(),
        }
    }

    /// The key of a block.
    pub fn at(&self, block: usize) -> u128 {
        match self {
            Keys::Direct { list, .. } => u128::from(list[block]),
            Keys::Hashed { list, .. } => list[block],
        }
    }

    /// The keys of all blocks, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u128> + '_ {
        (0..self.len()).map(|block| self.at(block))
    }
}

/// Pseudo-counts of stored cells or rows.
#[derive(Debug)]
pub enum Pseudo {
    /// All the same.
    Even(PseudoCount),
    /// One by one.
    Listed(Vec<PseudoCount>),
}

impl Pseudo {
    /// Of the cell or row with this number.
    pub fn at(&self, ix: usize) -> PseudoCount {
        match self {
            Pseudo::Even(pseudo) => *pseudo,
            Pseudo::Listed(all) => all[ix],
        }
    }
}

/// Which rows the cells of a block belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowMap {
    /// All to one.
    One,
    /// Each to its own.
    Each,
    /// As listed.
    Listed(Vec<u32>),
}

/// The stored cells of one table.
#[derive(Debug)]
pub struct CellTable {
    pub table: TableIndex,
    pub shape: Shape,
    pub keys: Keys,
    /// Number of the table's first cell among all.
    pub first_cell: usize,
    pub row_shape: Shape,
    pub row_keys: Keys,
    /// Number of the table's first row among all.
    pub first_row: usize,
    /// For each block its first row, counted from the table's.
    pub row_of_block: Vec<u32>,
    pub row_map: RowMap,
    pub pseudo: Pseudo,
    pub row_pseudo: Pseudo,
}

impl CellTable {
    /// Number of cells.
    pub fn n_cells(&self) -> usize {
        self.keys.len() * self.shape.interior
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_keys.len() * self.row_shape.interior
    }

    /// The numbers of its cells among all.
    pub fn cells(&self) -> std::ops::Range<usize> {
        self.first_cell..self.first_cell + self.n_cells()
    }

    /// The numbers of its rows among all.
    pub fn rows(&self) -> std::ops::Range<usize> {
        self.first_row..self.first_row + self.n_rows()
    }

    /// The row of a cell within its block, counted from the block's first row.
    pub fn row_in_block(&self, in_block: usize) -> usize {
        match &self.row_map {
            RowMap::One => 0,
            RowMap::Each => in_block,
            RowMap::Listed(rows) => rows[in_block] as usize,
        }
    }

    /// Values of the family of a cell, counted from the table's first.
    pub fn values(&self, cell: usize) -> Vec<u32> {
        self.shape.values(self.keys.at(cell / self.shape.interior), cell % self.shape.interior)
    }
}

/// A table under construction.
#[derive(Debug)]
pub struct CellTableBuilder {
    table: TableIndex,
    shape: Shape,
    keys: Keys,
    row_shape: Shape,
    row_keys: Keys,
}

impl CellTableBuilder {
    /// A table without cells.
    ///
    /// # Errors
    /// When a block or the number of keys is too large.
    pub fn new(model: &Model, table: TableIndex, uses: &[Use], n_records: usize) -> Result<Self> {
        let spec = &model.tables()[table.ix()];
        let sizes: Vec<u32> = spec.parent_sizes.iter().copied().chain([spec.child_size]).collect();
        let n_parents = sizes.len() - 1;
        let shape = Shape::new(sizes.clone(), uses, sizes.len());
        let row_shape = Shape::new(sizes, uses, n_parents);
        let too_large = || {
            Error::TooCostly(format!(
                "the table of `{}` would need more than 2^32 cells, since some of its nodes are not always seen",
                model.table_name(table)
            ))
        };
        let (Some(shape), Some(row_shape)) = (shape, row_shape) else { return Err(too_large()) };
        if shape.n_keys() > 1e38 {
            return Err(too_large());
        }
        let keys = Keys::new(shape.n_keys(), n_records);
        let row_keys = Keys::new(row_shape.n_keys(), n_records);
        Ok(CellTableBuilder { table, shape, keys, row_shape, row_keys })
    }

    /// A record uses the table through these nodes.
    pub fn mark(&mut self, nodes: &[NodeIndex], record: &[u32]) {
        self.keys.mark(self.shape.key(nodes, record));
        self.row_keys.mark(self.row_shape.key(nodes, record));
    }

    /// Numbers cells and rows, from these on.
    ///
    /// # Errors
    /// When there are too many.
    pub fn finish(mut self, prior: &Prior, first_cell: usize, first_row: usize) -> Result<CellTable> {
        self.keys.number();
        self.row_keys.number();
        let n_cells = self.keys.len() as f64 * self.shape.interior as f64;
        if first_cell as f64 + n_cells > MAX_CELLS {
            return Err(Error::TooCostly(format!("the tables have more than {MAX_CELLS:.2e} cells that records use")));
        }
        let (shape, row_shape) = (&self.shape, &self.row_shape);
        let n_parents = row_shape.sizes.len();
        let parents: Vec<NodeIndex> = (0..n_parents as u32).map(NodeIndex).collect();
        let row_of_block = self.keys.iter().map(|key| {
            let values = shape.values(key, 0);
            (self.row_keys.block(row_shape.key(&parents, &values)) * row_shape.interior) as u32
        });
        let row_of_block = row_of_block.collect();
        let rows: Vec<u32> = (0..shape.interior)
            .map(|in_block| {
                let mut values = shape.values(0, in_block);
                // Only positions within the block count here.
                (0..n_parents).filter(|&at| shape.is_key[at]).for_each(|at| values[at] = MISSING);
                row_shape.offset(&parents, &values) as u32
            })
            .collect();
        let row_map = if row_shape.interior == 1 {
            RowMap::One
        } else if rows.iter().enumerate().all(|(ix, &row)| ix == row as usize) {
            RowMap::Each
        } else {
            RowMap::Listed(rows)
        };
        let pseudo_counts = prior.table(self.table);
        let list = |keys: &Keys, shape: &Shape, of: &dyn Fn(&[u32]) -> PseudoCount| {
            let all = keys.iter().flat_map(|key| (0..shape.interior).map(move |in_block| (key, in_block)));
            Pseudo::Listed(all.map(|(key, in_block)| of(&shape.values(key, in_block))).collect())
        };
        let (pseudo, row_pseudo) = match pseudo_counts {
            PseudoCounts::Even { cell, row } => (Pseudo::Even(*cell), Pseudo::Even(*row)),
            _ => (
                list(&self.keys, shape, &|family| pseudo_counts.cell(&family[..n_parents], family[n_parents])),
                list(&self.row_keys, row_shape, &|parents| pseudo_counts.row(parents)),
            ),
        };
        Ok(CellTable {
            table: self.table,
            first_cell,
            first_row,
            row_of_block,
            row_map,
            pseudo,
            row_pseudo,
            shape: self.shape,
            keys: self.keys,
            row_shape: self.row_shape,
            row_keys: self.row_keys,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_that_no_record_shows_are_fastest() {
        let use_of = |is_seen: [bool; 3]| Use { is_seen: is_seen.to_vec() };
        // The first position is always seen, the last sometimes, the second never.
        let shape = Shape::new(vec![4, 5, 6], &[use_of([true, false, true]), use_of([true, false, false])], 3).unwrap();
        assert_eq!((shape.interior, &shape.strides[..]), (30, &[0, 1, 5][..]));
        for (key, in_block) in [(0u128, 0usize), (3, 29), (2, 7)] {
            let values = shape.values(key, in_block);
            let nodes: Vec<NodeIndex> = (0..3).map(NodeIndex).collect();
            assert_eq!((shape.key(&nodes, &values), shape.offset(&nodes, &values)), (key, in_block));
        }
    }

    #[test]
    fn keys_are_numbered_in_ascending_order_whichever_way_they_are_kept() {
        for n_keys in [100.0, 1e30] {
            let mut keys = Keys::new(n_keys, 3);
            [70, 3, 41, 3].iter().for_each(|&key| keys.mark(key));
            keys.number();
            assert!(keys.iter().eq([3, 41, 70]));
            assert_eq!((keys.block(3), keys.block(41)), (0, 1));
        }
    }
}
