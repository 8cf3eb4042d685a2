//! Distinct labels and distinct rows, each with a number.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash};

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
    pub lines: Vec<u64>,
    slots: Slots,
}

impl RowSet {
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// What a row is found and inserted by.
    #[inline]
    pub fn tag(&self, codes: &[u32]) -> u32 {
        self.slots.tag(codes)
    }

    pub fn find(&self, codes: &[u32]) -> Option<u32> {
        self.find_tagged(self.tag(codes), codes)
    }

    #[inline]
    pub fn find_tagged(&self, tag: u32, codes: &[u32]) -> Option<u32> {
        self.slots.find(tag, |row| self.values.iter().zip(codes).all(|(column, &code)| column[row as usize] == code))
    }

    /// Adds a row that is not there yet; false when there is no room.
    pub fn insert(&mut self, tag: u32, codes: &[u32], line: u64) -> bool {
        if self.slots.insert(tag).is_none() {
            return false;
        }
        self.values.resize_with(codes.len(), Vec::new);
        for (column, &code) in self.values.iter_mut().zip(codes) {
            column.push(code);
        }
        self.lines.push(line);
        true
    }

    pub fn row(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        self.values.iter().map(move |column| column[row])
    }

    pub fn into_values(mut self, n_columns: usize) -> Vec<Vec<u32>> {
        self.values.resize_with(n_columns, Vec::new);
        self.values
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
