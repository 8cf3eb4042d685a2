//! Occupied cells and rows of all tables, found by their values.
//!
//! Only what some token touches is stored, so a table of 10^18 cells with six tokens costs six entries. Rows are tuples
//! of parent values, never row numbers, so no table is too large.

use crate::engine::kind::Kind;
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::prior::{Prior, PseudoCount};
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash, Hasher};

/// What a counter counts.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// The table.
    pub table: TableIndex,
    /// Cell or row.
    pub kind: Kind,
    /// Where its values start in the arena.
    start: usize,
    /// Pseudo-count of the cell or row.
    pub pseudo: PseudoCount,
}

/// All counters of a problem and the tokens each has for certain.
#[derive(Debug)]
pub struct Counters<'a> {
    model: &'a Model,
    prior: &'a Prior,
    counters: Vec<Counter>,
    values: Vec<u32>,
    index: HashTable<u32>,
    hasher: hashbrown::DefaultHashBuilder,
    /// Tokens that are certain to be here.
    pub certain: Vec<u64>,
    scratch: Vec<u32>,
}

impl<'a> Counters<'a> {
    /// No counters yet.
    pub fn new(model: &'a Model, prior: &'a Prior) -> Self {
        Counters {
            model,
            prior,
            counters: Vec::new(),
            values: Vec::new(),
            index: HashTable::new(),
            hasher: Default::default(),
            certain: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Number of counters.
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// One counter.
    pub fn get(&self, ix: usize) -> &Counter {
        &self.counters[ix]
    }

    /// The values of a counter: parents in order, then the child for a cell.
    pub fn values(&self, ix: usize) -> &[u32] {
        let counter = &self.counters[ix];
        &self.values[counter.start..][..self.arity(counter.table, counter.kind)]
    }

    fn arity(&self, table: TableIndex, kind: Kind) -> usize {
        self.model.tables()[table.ix()].parent_sizes.len() + usize::from(kind == Kind::Cell)
    }

    /// The counters (cell, row) of a node's family in a full record.
    pub fn family(&mut self, node: NodeIndex, record: &[u32]) -> (u32, u32) {
        let model = self.model;
        let node_spec = model.node(node);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend(node_spec.parents.iter().map(|parent| record[parent.ix()]));
        let row = self.intern(node_spec.table, Kind::Row, &scratch);
        scratch.push(record[node.ix()]);
        let cell = self.intern(node_spec.table, Kind::Cell, &scratch);
        self.scratch = scratch;
        (cell, row)
    }

    fn intern(&mut self, table: TableIndex, kind: Kind, values: &[u32]) -> u32 {
        let hash = hash_of(&self.hasher, table, kind, values);
        let (counters, arena) = (&self.counters, &self.values);
        let equal = |&ix: &u32| {
            let counter = &counters[ix as usize];
            counter.table == table && counter.kind == kind && arena[counter.start..].starts_with(values)
        };
        if let Some(&ix) = self.index.find(hash, equal) {
            return ix;
        }
        let pseudo = kind.pseudo_count(self.prior.table(table), values);
        let ix = self.counters.len() as u32;
        self.counters.push(Counter { table, kind, start: self.values.len(), pseudo });
        self.values.extend_from_slice(values);
        self.certain.push(0);
        let (counters, arena, hasher, model) = (&self.counters, &self.values, &self.hasher, self.model);
        self.index.insert_unique(hash, ix, |&ix| {
            let counter = &counters[ix as usize];
            let n_parents = model.tables()[counter.table.ix()].parent_sizes.len();
            let arity = n_parents + usize::from(counter.kind == Kind::Cell);
            hash_of(hasher, counter.table, counter.kind, &arena[counter.start..][..arity])
        });
        ix
    }

    /// Adds `n` tokens that are certain to use this family.
    pub fn add_certain(&mut self, node: NodeIndex, record: &[u32], n: u64) {
        let (cell, row) = self.family(node, record);
        self.certain[cell as usize] += n;
        self.certain[row as usize] += n;
    }

    /// Adds `n` tokens that are certain to use this cell or row.
    pub fn add_certain_to(&mut self, table: TableIndex, kind: Kind, values: &[u32], n: u64) {
        let ix = self.intern(table, kind, values);
        self.certain[ix as usize] += n;
    }
}

fn hash_of(hasher: &hashbrown::DefaultHashBuilder, table: TableIndex, kind: Kind, values: &[u32]) -> u64 {
    let mut state = hasher.build_hasher();
    (table, kind).hash(&mut state);
    values.hash(&mut state);
    state.finish()
}
