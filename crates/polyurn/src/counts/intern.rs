//! Distinct labels and distinct rows, each with a number.

use super::code_list::CodeList;
use super::count_list::CountList;
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

/// Distinct rows of codes, column by column, and the line each first stood on. Columns are narrow as long as rows come in: then
/// there is the index beside them.
#[derive(Debug, Default)]
pub struct RowSet {
    values: Vec<CodeList>,
    pub lines: Lines,
    /// Rows by their codes, once there is a row that does not come after all others: sorted rows need no index. Nothing but the row
    /// itself is kept: there may be hundreds of millions.
    rows: Option<HashTable<u32>>,
    /// The row that was added last.
    last: Vec<u32>,
    /// How many may come.
    expected: usize,
    hasher: DefaultHashBuilder,
}

/// Where a row is, or would be.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// It is there, and this is its number.
    Found(u32),
    /// It is new; its hash, if there is an index.
    New(Option<u64>),
}

impl RowSet {
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for so many rows, which is not touched before they come.
    pub fn expect(&mut self, n_rows: usize) {
        self.expected = n_rows;
    }

    /// The row with these codes.
    pub fn find(&mut self, codes: &[u32]) -> Option<u32> {
        match self.place(codes) {
            Place::Found(row) => Some(row),
            Place::New(_) => None,
        }
    }

    /// Where a row with these codes is.
    #[inline]
    pub fn place(&mut self, codes: &[u32]) -> Place {
        if self.rows.is_none() {
            if self.is_empty() || codes > &self.last[..] {
                return Place::New(None);
            }
            if codes == self.last {
                return Place::Found(self.len() as u32 - 1);
            }
            self.grow();
        }
        let rows = self.rows.as_ref().expect("an index");
        let hash = hash_of(&self.hasher, codes.iter().copied());
        let is_equal =
            |&row: &u32| self.values.iter().zip(codes).all(|(column, &code)| column.at(row as usize) == code);
        rows.find(hash, is_equal).map_or(Place::New(Some(hash)), |&row| Place::Found(row))
    }

    /// Adds a row that is not there yet, with the hash of its place; false when there is no room.
    pub fn insert(&mut self, hash: Option<u64>, codes: &[u32], line: u64) -> bool {
        let Some(row) = u32::try_from(self.len()).ok().filter(|&row| row < MAX_CODES) else { return false };
        if let Some(hash) = hash {
            if self.rows.as_ref().is_some_and(|rows| rows.len() == rows.capacity()) {
                self.grow();
            }
            let rows = self.rows.as_mut().expect("an index");
            rows.insert_unique(hash, row, |_| unreachable!("there is room"));
        }
        self.last.clear();
        self.last.extend_from_slice(codes);
        self.values.resize_with(codes.len(), || CodeList::with_capacity(self.expected));
        for (column, &code) in self.values.iter_mut().zip(codes) {
            column.push(code);
        }
        self.lines.push(line);
        true
    }

    /// Makes an index, or a larger one: without two of them at a time, and with rows read in their order.
    #[cold]
    fn grow(&mut self) {
        self.rows = None;
        let mut rows = HashTable::new();
        // One more than there was room for doubles the table.
        rows.reserve(self.len() + 1, |_| unreachable!("it is empty"));
        for row in 0..self.len() {
            let hash = hash_of(&self.hasher, self.row(row));
            rows.insert_unique(hash, row as u32, |_| unreachable!("there is room"));
        }
        self.rows = Some(rows);
    }

    pub fn row(&self, row: usize) -> impl Iterator<Item = u32> + '_ {
        self.values.iter().map(move |column| column.at(row))
    }

    /// The columns, without the index.
    pub fn into_values(mut self, n_columns: usize) -> Vec<CodeList> {
        self.values.resize_with(n_columns, CodeList::default);
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
    lines: CountList,
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
        self.lines.at(place) + (row - self.rows[place] as usize) as u64
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
            let Place::New(hash) = set.place(&codes(row)) else { panic!("row {row} is new") };
            assert!(set.insert(hash, &codes(row), u64::from(row) + 2));
        }
        for row in 0..4000 {
            assert_eq!(set.find(&codes(row)), Some(row));
            assert!(set.row(row as usize).eq(codes(row)));
        }
        assert_eq!(set.find(&[50, 0, 0]), None);
    }

    #[test]
    fn sorted_rows_need_no_index_until_one_is_not() {
        let mut set = RowSet::default();
        for row in 0..300 {
            let codes = [row / 20, row % 20];
            let Place::New(None) = set.place(&codes) else { panic!("row {row} is new") };
            assert!(set.insert(None, &codes, u64::from(row) + 1));
            assert_eq!(set.find(&codes), Some(row));
        }
        assert!(set.rows.is_none());
        let Place::New(Some(hash)) = set.place(&[3, 20]) else { panic!("a new row among the others") };
        assert!(set.insert(Some(hash), &[3, 20], 301));
        // Now also rows that come after all others are looked for.
        let Place::New(Some(hash)) = set.place(&[99, 0]) else { panic!("a new row after the others") };
        assert!(set.insert(Some(hash), &[99, 0], 302));
        for row in 0..300 {
            assert_eq!(set.find(&[row / 20, row % 20]), Some(row));
        }
        assert_eq!((set.find(&[3, 20]), set.find(&[99, 0]), set.find(&[99, 1])), (Some(300), Some(301), None));
    }
}
