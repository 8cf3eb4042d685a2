//! Distinct labels and distinct rows, each with a number.

use super::code_list::CodeList;
use super::count_list::CountList;
use super::row_bits::RowBits;
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
    index: Index,
    /// Whether a row was looked for and found.
    has_repeats: bool,
    /// The row that was added last.
    last: Vec<u32>,
    /// How many may come.
    expected: usize,
    hasher: DefaultHashBuilder,
}

/// Rows by their codes. There may be hundreds of millions of them.
#[derive(Debug, Default)]
enum Index {
    /// Each row comes after all others before it: sorted rows need no index.
    #[default]
    Sorted,
    /// As long as no row is looked for that is there, it is enough to know of each whether it is.
    Bits(RowBits),
    /// Numbers of rows, by their hashes. Nothing but the row itself is kept.
    Hashed(HashTable<u32>),
}

/// Fewer rows are always hashed: their columns hardly know yet how large their codes are.
const FEW: usize = 256;

/// Bytes of a place in a table of hashes.
const HASHED_BYTES: u64 = 5;

/// Where a row is, or would be.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// It is there, and this is its number.
    Found(u32),
    /// It is new; its place in the index, if there is one.
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
        loop {
            match &self.index {
                Index::Hashed(rows) => {
                    let hash = hash_of(&self.hasher, codes.iter().copied());
                    let is_equal = |&row: &u32| {
                        self.values.iter().zip(codes).all(|(column, &code)| column.at(row as usize) == code)
                    };
                    let Some(&row) = rows.find(hash, is_equal) else { return Place::New(Some(hash)) };
                    self.has_repeats = true;
                    return Place::Found(row);
                }
                Index::Bits(rows) => match rows.position(codes.iter().copied()) {
                    Some(position) if !rows.contains(position) => return Place::New(Some(position)),
                    is_there => self.has_repeats = is_there.is_some(),
                },
                Index::Sorted if self.is_empty() || codes > &self.last[..] => return Place::New(None),
                Index::Sorted if codes == self.last => {
                    self.has_repeats = true;
                    return Place::Found(self.len() as u32 - 1);
                }
                Index::Sorted => {}
            }
            self.make_index(codes);
        }
    }

    /// Adds a row that is not there yet, at its place in the index; false when there is no room.
    pub fn insert(&mut self, place: Option<u64>, codes: &[u32], line: u64) -> bool {
        let Some(row) = u32::try_from(self.len()).ok().filter(|&row| row < MAX_CODES) else { return false };
        self.last.clear();
        self.last.extend_from_slice(codes);
        self.values.resize_with(codes.len(), || CodeList::with_capacity(self.expected));
        for (column, &code) in self.values.iter_mut().zip(codes) {
            column.push(code);
        }
        self.lines.push(line);
        match (&mut self.index, place) {
            (Index::Hashed(rows), _) if rows.len() == rows.capacity() => self.make_index(codes),
            (Index::Hashed(rows), Some(hash)) => {
                rows.insert_unique(hash, row, |_| unreachable!("there is room"));
            }
            (Index::Bits(rows), Some(position)) => rows.insert(position),
            (_, _) => {}
        }
        true
    }

    /// Makes an index, or another one, of all rows, with room for one of these codes: without two of them at a time, and with rows read in
    /// their order. As long as no row was found again they are bits, if those take less memory than hashes.
    #[cold]
    fn make_index(&mut self, codes: &[u32]) {
        self.index = Index::Sorted;
        // One more than there was room for doubles the table.
        let n_rows = self.len() + 1;
        if !self.has_repeats && n_rows >= FEW {
            let hashed = (n_rows as u64 * 8 / 7).next_power_of_two() * HASHED_BYTES;
            if let Some(bits) = RowBits::of_rows(&self.values, self.len(), codes, hashed) {
                self.index = Index::Bits(bits);
                return;
            }
        }
        let mut rows = HashTable::with_capacity(n_rows);
        for row in 0..self.len() {
            let hash = hash_of(&self.hasher, self.row(row));
            rows.insert_unique(hash, row as u32, |_| unreachable!("there is room"));
        }
        self.index = Index::Hashed(rows);
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
    use super::super::MISSING;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn lines_come_back_whether_they_follow_each_other_or_not() {
        let all = [2, 3, 4, 9, 10, 10, 3, 4, 5, 1 << 40, (1 << 40) + 1];
        let mut lines = Lines::default();
        all.iter().for_each(|&line| lines.push(line));
        assert_eq!(lines.to_vec(), all);
        assert_eq!((lines.len(), lines.rows.len()), (11, 5));
    }

    /// The row with these codes is added unless it is there; its number.
    fn add(set: &mut RowSet, codes: &[u32], line: u64) -> u32 {
        match set.place(codes) {
            Place::Found(row) => row,
            Place::New(place) => {
                assert!(set.insert(place, codes, line));
                set.len() as u32 - 1
            }
        }
    }

    /// Rows of three columns of this size, in no order, all different up to `size` to the third power.
    fn scattered(row: u32, size: u32) -> [u32; 3] {
        let cell = (u64::from(row) * 7_368_787 % u64::from(size).pow(3)) as u32;
        [cell % size, cell / size % size, cell / size / size]
    }

    #[test]
    fn rows_are_found_again_while_the_set_grows() {
        let mut set = RowSet::default();
        let codes = |row: u32| [row % 50, row / 50 * 3, u32::MAX - row % 7];
        for row in 0..4000 {
            let Place::New(place) = set.place(&codes(row)) else { panic!("row {row} is new") };
            assert!(set.insert(place, &codes(row), u64::from(row) + 2));
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
        assert!(matches!(set.index, Index::Sorted));
        let Place::New(Some(place)) = set.place(&[3, 20]) else { panic!("a new row among the others") };
        assert!(set.insert(Some(place), &[3, 20], 301));
        // Now also rows that come after all others are looked for.
        let Place::New(Some(place)) = set.place(&[99, 0]) else { panic!("a new row after the others") };
        assert!(set.insert(Some(place), &[99, 0], 302));
        for row in 0..300 {
            assert_eq!(set.find(&[row / 20, row % 20]), Some(row));
        }
        assert_eq!((set.find(&[3, 20]), set.find(&[99, 0]), set.find(&[99, 1])), (Some(300), Some(301), None));
    }

    #[test]
    fn rows_that_all_differ_are_bits_until_one_comes_again() {
        let mut set = RowSet::default();
        for row in 0..20_000 {
            assert_eq!(add(&mut set, &scattered(row, 60), 1), row);
        }
        assert!(matches!(set.index, Index::Bits(_)));
        // A code beyond those before, and a missing one.
        assert_eq!(add(&mut set, &[60, 64, 0], 1), 20_000);
        assert_eq!(add(&mut set, &[0, MISSING, 0], 1), 20_001);
        assert!(matches!(set.index, Index::Bits(_)));
        assert_eq!(add(&mut set, &scattered(7, 60), 1), 7);
        assert!(matches!(set.index, Index::Hashed(_)));
        for row in 0..60_000 {
            assert_eq!(add(&mut set, &scattered(row, 60), 1), if row < 20_000 { row } else { row + 2 });
        }
        assert_eq!((add(&mut set, &[60, 64, 0], 1), add(&mut set, &[0, MISSING, 0], 1)), (20_000, 20_001));
        assert!(matches!(set.index, Index::Hashed(_)));
    }

    #[test]
    fn rows_in_too_large_a_table_are_hashed_until_there_are_more() {
        let mut set = RowSet::default();
        // 2^18 bits are more than the hashes of some thousand rows.
        for row in 0..3500 {
            add(&mut set, &scattered(row, 60), 1);
        }
        assert!(matches!(set.index, Index::Hashed(_)));
        for row in 3500..8000 {
            add(&mut set, &scattered(row, 60), 1);
        }
        assert!(matches!(set.index, Index::Bits(_)));
        // A code that makes it too large again.
        assert_eq!(add(&mut set, &[1 << 20, 0, 0], 1), 8000);
        assert!(matches!(set.index, Index::Hashed(_)));
        assert_eq!(add(&mut set, &scattered(7999, 60), 1), 7999);
    }

    /// Codes at the borders of widths, few others, and missing ones.
    fn any_code() -> impl Strategy<Value = u32> {
        prop_oneof![
            8 => 0u32..8,
            2 => prop::sample::select(vec![MISSING, 15, 16, 254, 255, 256, 65_534, 65_535, MISSING - 1]),
            1 => 0u32..400,
        ]
    }

    proptest! {
        /// Rows in any order, the first few hundred of which mostly differ, and repeats from some row on.
        #[test]
        fn rows_are_found_as_in_an_ordered_map(
            side in 5u32..40,
            n_scattered in 0u32..1500,
            is_sorted in any::<bool>(),
            odd in prop::collection::vec((0usize..1500, prop::array::uniform3(any_code())), 0..12),
            repeats_from in 200usize..3000,
        ) {
            let mut rows: Vec<[u32; 3]> = (0..n_scattered.min(side.pow(3))).map(|row| scattered(row, side)).collect();
            if is_sorted {
                rows.sort_unstable();
            }
            for (at, codes) in odd {
                rows.insert(at.min(rows.len()), codes);
            }
            for ix in repeats_from..rows.len() {
                let earlier = rows[ix * 31 % ix];
                rows.push(earlier);
            }
            let (mut set, mut reference) = (RowSet::default(), BTreeMap::new());
            for (line, codes) in rows.iter().enumerate() {
                let next = reference.len() as u32;
                let expected = *reference.entry(codes).or_insert(next);
                prop_assert_eq!(add(&mut set, codes, line as u64), expected);
            }
            prop_assert_eq!(set.len(), reference.len());
            for (codes, &row) in &reference {
                prop_assert!(set.row(row as usize).eq(codes.iter().copied()));
            }
            // Looking for rows changes none.
            let (first, last) = (rows.first(), rows.last());
            for codes in first.into_iter().chain(last) {
                prop_assert_eq!(set.find(codes), reference.get(codes).copied());
            }
            prop_assert_eq!(set.find(&[7, MISSING - 2, 0]), None);
        }
    }
}
