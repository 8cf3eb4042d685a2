//! Which rows there are, as one bit for each row that there could be.

use super::code_list::CodeList;
use super::dataset::MISSING;

/// Distinct rows as bits. The codes of a row side by side, each in as many bits as its column needs, are the position of the row's bit.
/// Nothing else is known of a row, not even its number.
#[derive(Debug)]
pub struct RowBits {
    fields: Vec<Field>,
    words: Vec<u64>,
}

/// The bits of a column in the position of a row.
#[derive(Debug, Clone, Copy)]
struct Field {
    shift: u32,
    /// The largest code that there is room for.
    last: u32,
    /// What stands for a missing value, if there is one: the number after that.
    missing: Option<u32>,
}

impl RowBits {
    /// The bits of these rows, with room for the codes of one more; `None` when that takes more than `most_bytes`.
    pub fn of_rows(columns: &[CodeList], n_rows: usize, codes: &[u32], most_bytes: u64) -> Option<Self> {
        let mut n_bits = 0;
        let mut fields = Vec::with_capacity(columns.len());
        for (column, &code) in columns.iter().zip(codes) {
            let (mut largest, mut has_missing) = (0, false);
            let mut look = |code: u32| if code == MISSING { has_missing = true } else { largest = largest.max(code) };
            column.for_each(|_, code| look(code));
            look(code);
            let width = u32::BITS - (largest + u32::from(has_missing)).leading_zeros();
            // The same as `(1 << width) - 1`, which does not hold for all 32 bits.
            let mask = u32::MAX.checked_shr(u32::BITS - width).unwrap_or(0);
            let last = mask - u32::from(has_missing);
            fields.push(Field { shift: n_bits, last, missing: has_missing.then_some(mask) });
            n_bits += width;
            if n_bits >= u64::BITS || (1 << n_bits) / 8 > most_bytes {
                return None;
            }
        }
        let mut bits = RowBits { fields, words: vec![0; usize::try_from((1u64 << n_bits).div_ceil(64)).ok()?] };
        for row in 0..n_rows {
            let position = bits.position(columns.iter().map(|column| column.at(row))).expect("room for all rows");
            bits.insert(position);
        }
        Some(bits)
    }

    /// Where the bit of a row is; `None` when there is no room for one of its codes.
    #[inline]
    pub fn position(&self, codes: impl IntoIterator<Item = u32>) -> Option<u64> {
        let mut position = 0;
        for (field, code) in self.fields.iter().zip(codes) {
            let part = if code <= field.last { code } else { field.missing.filter(|_| code == MISSING)? };
            position |= u64::from(part) << field.shift;
        }
        Some(position)
    }

    /// Whether there is the row with this position.
    #[inline]
    pub fn contains(&self, position: u64) -> bool {
        self.words[(position / 64) as usize] >> (position % 64) & 1 == 1
    }

    /// Adds the row with this position.
    #[inline]
    pub fn insert(&mut self, position: u64) {
        self.words[(position / 64) as usize] |= 1 << (position % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_bits_that_their_codes_need() {
        let columns = [CodeList::from_iter([0, 3]), CodeList::from_iter([2, MISSING]), CodeList::from_iter([0, 0])];
        let bits = RowBits::of_rows(&columns, 2, &[1, 0, 0], 2).unwrap();
        assert_eq!(bits.words.len(), 1);
        let has = |codes: [u32; 3]| bits.position(codes).map(|position| bits.contains(position));
        assert_eq!((has([0, 2, 0]), has([3, MISSING, 0]), has([3, 2, 0])), (Some(true), Some(true), Some(false)));
        // Four values fill two bits, and so do three and a missing one.
        assert_eq!((has([4, 0, 0]), has([MISSING, 0, 0]), has([0, 3, 0]), has([0, 0, 1])), (None, None, None, None));
        assert!(RowBits::of_rows(&columns, 2, &[1, 0, 0], 1).is_none());
        // Three values and a missing one take three bits if the largest of two stands for a value.
        assert!(RowBits::of_rows(&columns, 2, &[1, 3, 0], 3).is_none());
        assert!(RowBits::of_rows(&columns, 2, &[1, 3, 0], 4).is_some());
    }

    #[test]
    fn the_largest_codes_are_no_missing_values() {
        let column = |code| [CodeList::from_iter([code])];
        assert!(RowBits::of_rows(&column(MISSING - 1), 1, &[MISSING], 1 << 28).is_none());
        assert!(RowBits::of_rows(&column(MISSING - 1), 1, &[0], 1 << 20).is_none());
        let codes = [CodeList::from_iter([254, MISSING]), CodeList::from_iter([255, 0])];
        let bits = RowBits::of_rows(&codes, 2, &[0, 0], 1 << 13).unwrap();
        assert!(
            bits.contains(bits.position([254, 255]).unwrap()) && bits.contains(bits.position([MISSING, 0]).unwrap())
        );
        assert!(!bits.contains(bits.position([254, 0]).unwrap()));
        assert_eq!((bits.position([255, 0]), bits.position([0, MISSING])), (None, None));
    }

    #[test]
    fn without_columns_there_is_one_row() {
        let bits = RowBits::of_rows(&[], 1, &[], 1).unwrap();
        assert!(bits.contains(bits.position([]).unwrap()));
    }
}
