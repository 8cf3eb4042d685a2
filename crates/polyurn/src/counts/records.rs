//! Records bound to the nodes of a model, grouped by the pattern of seen nodes.

use super::count_list::CountList;
use super::dataset::MISSING;
use super::intern::hash_of;
use super::labels::Labels;
use super::unit::Unit;
use crate::error::{Error, Result};
use hashbrown::hash_table::Entry;
use hashbrown::{HashMap, HashTable};

/// All distinct records in which the same nodes are seen. Columnar: `values[s][r]` is the value of node `seen[s]` in
/// record `r`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Positions of the seen nodes, ascending.
    pub seen: Vec<u32>,
    /// One column per seen node.
    pub values: Vec<Vec<u32>>,
    /// How many tokens each record stands for, at least 1; with fractions, how many of [`Counts::unit`].
    pub counts: CountList,
}

impl Block {
    /// Number of distinct records.
    pub fn n_records(&self) -> usize {
        self.counts.len()
    }

    /// Writes record `record_ix` into `out`, one entry per node of the model, [`MISSING`] where unseen.
    pub fn read(&self, record_ix: usize, out: &mut [u32]) {
        out.fill(MISSING);
        for (&node, column) in self.seen.iter().zip(&self.values) {
            out[node as usize] = column[record_ix];
        }
    }
}

/// Counts of partial assignments of a model's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// What the values of each node are called, in node order.
    pub labels: Vec<Labels>,
    /// Distinct records by pattern of seen nodes; patterns and records in order of first appearance.
    pub blocks: Vec<Block>,
    /// Tokens in all (without those in unknown cells).
    pub n_tokens: u64,
    /// What all counts, also the total, are counted in: tokens, unless there are fractions.
    pub unit: Unit,
    /// Cells that hold an unknown number of tokens: one value per node, [`MISSING`] for nodes without a column.
    pub unknown: Vec<Vec<u32>>,
}

impl Counts {
    /// Groups rows by pattern, merging equal ones. `columns[n]` holds node n's value in each row, or is `None` for a
    /// node that has no column. Rows of count zero are dropped.
    ///
    /// # Errors
    /// When the counts add up to more than 64 bits hold.
    pub fn new(
        labels: Vec<Labels>,
        columns: &[Option<Vec<u32>>],
        row_counts: &CountList,
        unknown: Vec<Vec<u32>>,
    ) -> Result<Self> {
        assert_eq!(labels.len(), columns.len(), "one label list and one column for each node");
        let mut grouping = Grouping::new(row_counts.len());
        let mut n_tokens = 0u64;
        let named: Vec<(u32, &Vec<u32>)> = columns
            .iter()
            .enumerate()
            .filter_map(|(node, column)| column.as_ref().map(|column| (node as u32, column)))
            .collect();
        let (mut seen, mut values) = (Vec::new(), Vec::new());
        for (row, count) in row_counts.iter().enumerate().filter(|&(_, count)| count > 0) {
            seen.clear();
            values.clear();
            for &(node, column) in &named {
                if column[row] != MISSING {
                    seen.push(node);
                    values.push(column[row]);
                }
            }
            grouping.add(&seen, &values, count);
            n_tokens = n_tokens.checked_add(count).ok_or_else(too_many)?;
        }
        Ok(Counts { labels, blocks: grouping.blocks, n_tokens, unit: Unit::TOKEN, unknown })
    }

    /// The same for rows that all differ, so that none has to be looked for: where nothing is missing and no count is zero the
    /// columns are the records, and otherwise each column is shared out to the patterns and let go before the next.
    ///
    /// # Errors
    /// When the counts add up to more than 64 bits hold.
    pub fn of_distinct_rows(
        labels: Vec<Labels>,
        columns: Vec<Option<Vec<u32>>>,
        row_counts: CountList,
        unknown: Vec<Vec<u32>>,
    ) -> Result<Self> {
        let n_tokens = row_counts.sum().ok_or_else(too_many)?;
        let is_whole = columns.iter().flatten().all(|column| !column.contains(&MISSING));
        let are_records = is_whole && !row_counts.is_empty() && row_counts.iter().all(|count| count > 0);
        let patterns = (!are_records).then(|| Patterns::new(&columns, &row_counts));
        let columns = (0..).zip(columns).filter_map(|(node, column)| Some((node, column?)));
        let blocks = match patterns {
            Some(patterns) => patterns.share_out(columns, &row_counts),
            None => {
                let (seen, values) = columns.unzip();
                vec![Block { seen, values, counts: row_counts }]
            }
        };
        Ok(Counts { labels, blocks, n_tokens, unit: Unit::TOKEN, unknown })
    }

    /// Tokens of which all nodes are known, as if only the nodes from `n_hidden` on had been seen: values are called
    /// 0, 1, ...
    ///
    /// # Panics
    /// When a token has other nodes than there are sizes.
    pub fn hiding(sizes: &[u32], n_hidden: usize, tokens: &[Vec<u32>]) -> Self {
        let columns: Vec<Option<Vec<u32>>> = (0..sizes.len())
            .map(|node| (node >= n_hidden).then(|| tokens.iter().map(|token| token[node]).collect()))
            .collect();
        let labels = sizes.iter().map(|&size| Labels::Indexed { size, first: 0 }).collect();
        Counts::new(labels, &columns, &std::iter::repeat_n(1, tokens.len()).collect(), Vec::new())
            .expect("no more tokens than fit into memory")
    }

    /// These counts, taken as numbers of another unit.
    pub(crate) fn counted_in(self, unit: Unit) -> Self {
        Counts { unit, ..self }
    }

    /// How many tokens a count stands for.
    pub fn tokens(&self, count: u64) -> f64 {
        self.unit.tokens(count)
    }

    /// Tokens in all, without those in unknown cells.
    pub fn total(&self) -> f64 {
        self.tokens(self.n_tokens)
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.labels.len()
    }

    /// Number of distinct records.
    pub fn n_records(&self) -> usize {
        self.blocks.iter().map(Block::n_records).sum()
    }

    /// For each node whether some record (or unknown cell) shows it.
    pub fn seen_anywhere(&self) -> Vec<bool> {
        let mut seen = vec![false; self.n_nodes()];
        for block in &self.blocks {
            block.seen.iter().for_each(|&node| seen[node as usize] = true);
        }
        for cell in &self.unknown {
            cell.iter().enumerate().for_each(|(node, &value)| seen[node] |= value != MISSING);
        }
        seen
    }

    /// For each node whether every record (and unknown cell) shows it.
    pub fn seen_everywhere(&self) -> Vec<bool> {
        (0..self.n_nodes() as u32)
            .map(|node| {
                self.blocks.iter().all(|block| block.seen.binary_search(&node).is_ok())
                    && self.unknown.iter().all(|cell| cell[node as usize] != MISSING)
            })
            .collect()
    }
}

fn too_many() -> Error {
    Error::Setting("the counts add up to more than 2^64 - 1 tokens".into())
}

/// Which nodes are missing in each row.
struct Patterns {
    /// The pattern of each row, [`NO_PATTERN`] for rows of count zero; numbered by their first rows.
    of_row: Vec<u32>,
    /// For each pattern the nodes that have a column, but are missing in it.
    missing: Vec<Vec<u32>>,
}

/// A row that stands for nothing.
const NO_PATTERN: u32 = u32::MAX;

impl Patterns {
    fn new(columns: &[Option<Vec<u32>>], row_counts: &CountList) -> Self {
        let of_row: Vec<u32> = row_counts.iter().map(|count| if count == 0 { NO_PATTERN } else { 0 }).collect();
        let is_any = of_row.contains(&0);
        let mut patterns = Patterns { of_row, missing: vec![Vec::new(); usize::from(is_any)] };
        for (node, column) in columns.iter().enumerate() {
            if let Some(column) = column.as_ref().filter(|column| column.contains(&MISSING)) {
                patterns.split(node as u32, column);
            }
        }
        patterns
    }

    /// Tells rows in which a node is missing from others.
    fn split(&mut self, node: u32, column: &[u32]) {
        let old = std::mem::take(&mut self.missing);
        let mut new_of = vec![[NO_PATTERN; 2]; old.len()];
        for (pattern, &value) in self.of_row.iter_mut().zip(column).filter(|(pattern, _)| **pattern != NO_PATTERN) {
            let is_missing = value == MISSING;
            let new = &mut new_of[*pattern as usize][usize::from(is_missing)];
            if *new == NO_PATTERN {
                *new = self.missing.len() as u32;
                let mut nodes = old[*pattern as usize].clone();
                nodes.extend(is_missing.then_some(node));
                self.missing.push(nodes);
            }
            *pattern = *new;
        }
    }

    fn share_out(&self, columns: impl Iterator<Item = (u32, Vec<u32>)>, row_counts: &CountList) -> Vec<Block> {
        let mut blocks: Vec<Block> = self
            .missing
            .iter()
            .map(|_| Block { seen: Vec::new(), values: Vec::new(), counts: CountList::default() })
            .collect();
        let shown = || self.of_row.iter().enumerate().filter(|(_, pattern)| **pattern != NO_PATTERN);
        for (row, &pattern) in shown() {
            blocks[pattern as usize].counts.push(row_counts.at(row));
        }
        for (node, column) in columns {
            for (block, _) in blocks.iter_mut().zip(&self.missing).filter(|(_, missing)| !missing.contains(&node)) {
                block.seen.push(node);
                block.values.push(Vec::with_capacity(block.counts.len()));
            }
            for (row, &pattern) in shown().filter(|(row, _)| column[*row] != MISSING) {
                let values = &mut blocks[pattern as usize].values;
                values.last_mut().expect("a column for a node that it shows").push(column[row]);
            }
        }
        blocks
    }
}

/// Blocks under construction, with an index from (pattern, values) to the record.
#[derive(Default)]
struct Grouping {
    blocks: Vec<Block>,
    block_of: HashMap<Vec<u32>, usize>,
    records: Vec<HashTable<usize>>,
    hasher: hashbrown::DefaultHashBuilder,
    /// The block of the last row: most often the next row has the same pattern.
    last_block: usize,
    n_rows: usize,
}

impl Grouping {
    /// Ready for this many rows.
    fn new(n_rows: usize) -> Self {
        Grouping { n_rows, ..Default::default() }
    }

    fn add(&mut self, seen: &[u32], values: &[u32], count: u64) {
        if self.blocks.get(self.last_block).is_none_or(|block| block.seen != seen) {
            self.last_block = self.find_block(seen);
        }
        let (block, hasher) = (&mut self.blocks[self.last_block], &self.hasher);
        let columns = &block.values;
        let is_equal = |&record: &usize| columns.iter().zip(values).all(|(column, &value)| column[record] == value);
        let hash_again = |&record: &usize| hash_of(hasher, columns.iter().map(|column| column[record]));
        let hash = hash_of(hasher, values.iter().copied());
        match self.records[self.last_block].entry(hash, is_equal, hash_again) {
            Entry::Occupied(record) => block.counts.add(*record.get(), count),
            Entry::Vacant(place) => {
                place.insert(block.counts.len());
                block.values.iter_mut().zip(values).for_each(|(column, &value)| column.push(value));
                block.counts.push(count);
            }
        }
    }

    fn find_block(&mut self, seen: &[u32]) -> usize {
        if let Some(&ix) = self.block_of.get(seen) {
            return ix;
        }
        let ix = self.blocks.len();
        self.block_of.insert(seen.to_vec(), ix);
        self.blocks.push(Block {
            seen: seen.to_vec(),
            values: vec![Vec::new(); seen.len()],
            counts: CountList::default(),
        });
        // Rows mostly differ and have one pattern, and an index that grows is hashed anew each time.
        self.records.push(HashTable::with_capacity(if ix == 0 { self.n_rows } else { 0 }));
        ix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_rows_merge_and_patterns_stay_apart() {
        let labels = vec![Labels::Indexed { size: 3, first: 0 }; 3];
        let columns = [Some(vec![0, 0, MISSING, 0, 2]), None, Some(vec![1, 1, 1, MISSING, 2])];
        let counts = Counts::new(labels, &columns, &CountList::from_iter([2, 3, 1, 1, 0]), Vec::new()).unwrap();
        assert_eq!(counts.n_tokens, 7);
        assert_eq!(counts.n_records(), 3);
        assert_eq!(
            counts.blocks[0],
            Block { seen: vec![0, 2], values: vec![vec![0], vec![1]], counts: CountList::from_iter([5]) }
        );
        assert_eq!(counts.blocks[1].seen, [2]);
        assert_eq!(counts.blocks[2].seen, [0]);
        assert_eq!(counts.seen_anywhere(), [true, false, true]);
        assert_eq!(counts.seen_everywhere(), [false, false, false]);
    }

    #[test]
    fn distinct_rows_need_no_merging() {
        let columns = [Some(vec![0, 0, 1, 2]), None, Some(vec![1, 2, 1, 0])];
        let with_gap = [Some(vec![0, 0, 1, 2]), None, Some(vec![1, 2, MISSING, 0])];
        for (columns, row_counts) in [(&columns, [2, 3, 1, 4]), (&columns, [2, 0, 1, 4]), (&with_gap, [2, 3, 1, 4])] {
            let labels = vec![Labels::Indexed { size: 3, first: 0 }; 3];
            let row_counts = CountList::from_iter(row_counts);
            let merged = Counts::new(labels.clone(), columns, &row_counts, Vec::new()).unwrap();
            let moved = Counts::of_distinct_rows(labels, columns.to_vec(), row_counts, Vec::new()).unwrap();
            assert_eq!(moved, merged);
        }
    }

    proptest! {
        /// Whatever is missing and however often rows count.
        #[test]
        fn distinct_rows_are_shared_out_as_they_would_be_merged(
            rows in prop::collection::hash_set((0u32..4, 0u32..4, 0u32..4), 0..60),
            row_counts in prop::collection::vec(0u64..3, 60),
        ) {
            let value = |code: u32| if code == 0 { MISSING } else { code - 1 };
            let column = |f: fn(&(u32, u32, u32)) -> u32| Some(rows.iter().map(|row| value(f(row))).collect::<Vec<u32>>());
            let columns = vec![column(|row| row.0), None, column(|row| row.1), column(|row| row.2)];
            let labels = vec![Labels::Indexed { size: 3, first: 0 }; 4];
            let row_counts: CountList = row_counts.into_iter().take(rows.len()).collect();
            let merged = Counts::new(labels.clone(), &columns, &row_counts, Vec::new()).unwrap();
            let moved = Counts::of_distinct_rows(labels, columns, row_counts, Vec::new()).unwrap();
            prop_assert_eq!(moved, merged);
        }
    }

    #[test]
    fn a_total_beyond_64_bits_is_refused() {
        let labels = vec![Labels::Indexed { size: 2, first: 0 }];
        let columns = [Some(vec![0, 1])];
        assert!(Counts::new(labels.clone(), &columns, &CountList::from_iter([u64::MAX, 1]), Vec::new()).is_err());
        assert!(
            Counts::of_distinct_rows(labels, columns.to_vec(), CountList::from_iter([u64::MAX, 1]), Vec::new())
                .is_err()
        );
    }
}
