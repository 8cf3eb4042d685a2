//! Distinct labels and distinct rows, each with a number.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash, Hasher};

/// Most values of a column and most distinct rows: codes must stay below [`MISSING`](super::MISSING).
pub const MAX_CODES: u32 = u32::MAX - 1;

/// The labels of a column and their codes.
#[derive(Debug, Default)]
pub struct Interner {
    pub names: Vec<String>,
    pub first_lines: Vec<u64>,
    slots: Slots,
    /// The code given last: in sorted files the next label is often the same.
    last: u32,
}

impl Interner {
    /// The code of a label, new or old; `None` when there is no room for a new one.
    #[inline]
    pub fn code(&mut self, label: &str, line: u64) -> Option<u32> {
        if self.names.get(self.last as usize).is_some_and(|last| last == label) {
            return Some(self.last);
        }
        let tag = self.slots.tag(label);
        let names = &self.names;
        self.last = match self.slots.find(tag, |code| names[code as usize] == label) {
            Some(code) => code,
            None => {
                let code = self.slots.insert(tag)?;
                self.names.push(label.to_owned());
                self.first_lines.push(line);
                code
            }
        };
        Some(self.last)
    }
}

/// Distinct rows of codes, column by column, and the line each first stood on.
#[derive(Debug, Default)]
pub struct RowSet {
    pub values: Vec<Vec<u32>>,
    pub lines: Lines,
    /// Rows by their codes. Nothing but the row itself is kept: there may be hundreds of millions.
    rows: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl RowSet {
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a row is found and inserted by.
    #[inline]
    pub fn hash(&self, codes: &[u32]) -> u64 {
        hash_of(&self.hasher, codes.iter().copied())
    }

    pub fn find(&self, codes: &[u32]) -> Option<u32> {
        self.find_hashed(self.hash(codes), codes)
    }

    #[inline]
    pub fn find_hashed(&self, hash: u64, codes: &[u32]) -> Option<u32> {
        let is_equal = |&row: &u32| self.values.iter().zip(codes).all(|(column, &code)| column[row as usize] == code);
        self.rows.find(hash, is_equal).copied()
    }

    /// Adds a row that is not there yet; false when there is no room.
    pub fn insert(&mut self, hash: u64, codes: &[u32], line: u64) -> bool {
        let Some(row) = u32::try_from(self.len()).ok().filter(|&row| row < MAX_CODES) else { return false };
        if self.rows.len() == self.rows.capacity() {
            self.grow();
        }
        self.rows.insert_unique(hash, row, |_| unreachable!("there is room"));
        self.values.resize_with(codes.len(), Vec::new);
        for (column, &code) in self.values.iter_mut().zip(codes) {
            column.push(code);
        }
        self.lines.push(line);
        true
    }

    /// Makes room, without two tables at a time, and with rows read in their order.
    #[cold]
    fn grow(&mut self) {
        self.rows = HashTable::new();
        // One more than there was room for doubles the table.
        self.rows.reserve(self.len() + 1, |_| unreachable!("it is empty"));
        for row in 0..self.len() {
            let hash = hash_of(&self.hasher, self.row(row));
            self.rows.insert_unique(hash, row as u32, |_| unreachable!("there is room"));
        }
    }

    pub fn row(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        self.values.iter().map(move |column| column[row])
    }

    pub fn into_values(mut self, n_columns: usize) -> Vec<Vec<u32>> {
        self.values.resize_with(n_columns, Vec::new);
        self.values
    }
}

/// The hash of a list of numbers.
pub fn hash_of(hasher: &DefaultHashBuilder, values: impl Iterator<Item = u32>) -> u64 {
    let mut state = hasher.build_hasher();
    values.for_each(|value| value.hash(&mut state));
    state.finish()
}

/// The lines of rows. Most rows stand right below the one before, so only the others' lines are written down.
#[derive(Debug, Default)]
pub struct Lines {
    rows: Vec<u32>,
    lines: Vec<u64>,
    n: usize,
}

impl Lines {
    pub fn len(&self) -> usize {
        self.n
    }

    /// The line of the next row.
    fn push(&mut self, line: u64) {
        if self.n == 0 || line != self.at(self.n - 1) + 1 {
            self.rows.push(self.n as u32);
            self.lines.push(line);
        }
        self.n += 1;
    }

    /// The line of a row.
    #[inline]
    pub fn at(&self, row: usize) -> u64 {
        // Mostly somebody asks for the last one.
        let is_last = self.rows.last().is_some_and(|&last| last as usize <= row);
        let place =
            if is_last { self.rows.len() } else { self.rows.partition_point(|&first| first as usize <= row) } - 1;
        self.lines[place] + (row - self.rows[place] as usize) as u64
    }

    /// Those of all rows.
    pub fn to_vec(&self) -> Vec<u64> {
        (0..self.n).map(|row| self.at(row)).collect()
    }
}

/// A hash table of the numbers 0, 1, .. of things that live elsewhere, given out in order of insertion.
#[derive(Debug, Default)]
struct Slots {
    table: HashTable<Slot>,
    hasher: DefaultHashBuilder,
}

/// A number, and 32 bits of its key's hash, so that neither growing nor most comparisons need the key.
#[derive(Debug, Clone, Copy)]
struct Slot {
    tag: u32,
    id: u32,
}

impl Slots {
    #[inline]
    fn tag(&self, key: &(impl Hash + ?Sized)) -> u32 {
        (self.hasher.hash_one(key) >> 32) as u32
    }

    #[inline]
    fn find(&self, tag: u32, is_equal: impl Fn(u32) -> bool) -> Option<u32> {
        self.table.find(spread(tag), |slot| slot.tag == tag && is_equal(slot.id)).map(|slot| slot.id)
    }

    /// Gives out the next number; `None` when all are gone.
    fn insert(&mut self, tag: u32) -> Option<u32> {
        let id = u32::try_from(self.table.len()).ok().filter(|&id| id < MAX_CODES)?;
        self.table.insert_unique(spread(tag), Slot { tag, id }, |slot| spread(slot.tag));
        Some(id)
    }
}

/// 64 bits out of 32: the table uses the top bits and the low bits, and both must vary.
#[inline]
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_whether_they_follow_each_other_or_not() {
        let all = [2, 3, 4, 9, 10, 10, 3, 4, 5, 1 << 40, (1 << 40) + 1];
        let mut lines = Lines::default();
        all.iter().for_each(|&line| lines.push(line));
        assert_eq!(lines.to_vec(), all);
        assert_eq!((lines.len(), lines.rows.len()), (11, 5));
    }

    #[test]
    fn rows_are_found_again_while_the_set_grows() {
        let mut set = RowSet::default();
        let codes = |row: u32| [row % 50, row / 50 * 3, u32::MAX - row % 7];
        for row in 0..4000 {
            assert_eq!(set.find(&codes(row)), None);
            let hash = set.hash(&codes(row));
            assert!(set.insert(hash, &codes(row), u64::from(row) + 2));
        }
        for row in 0..4000 {
            assert_eq!(set.find(&codes(row)), Some(row));
            assert!(set.row(row as usize).eq(codes(row)));
        }
        assert_eq!(set.find(&[50, 0, 0]), None);
    }
}
