//! Codes of one column, in as few bytes as hold the largest of them: there may be very many rows, and few columns have
//! many values.

use super::dataset::MISSING;

/// A code for each row, [`MISSING`] among them.
#[derive(Debug, Clone)]
pub struct CodeList(Width);

/// The largest number of each width stands for a missing value.
#[derive(Debug, Clone)]
enum Width {
    Bytes(Vec<u8>),
    Shorts(Vec<u16>),
    Words(Vec<u32>),
}

impl CodeList {
    /// Room for this many codes, of whatever width; it is not touched before they come.
    pub fn with_capacity(n: usize) -> Self {
        CodeList(Width::Bytes(Vec::with_capacity(n)))
    }

    /// The code of a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn at(&self, row: usize) -> u32 {
        match &self.0 {
            Width::Bytes(list) => wide(list[row], u8::MAX),
            Width::Shorts(list) => wide(list[row], u16::MAX),
            Width::Words(list) => list[row],
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, code: u32) {
        let is_enough = match &self.0 {
            Width::Bytes(_) => fits(code, u8::MAX),
            Width::Shorts(_) => fits(code, u16::MAX),
            Width::Words(_) => true,
        };
        if !is_enough {
            self.widen(code);
        }
        // Cutting a missing value short leaves the largest number.
        match &mut self.0 {
            Width::Bytes(list) => list.push(code as u8),
            Width::Shorts(list) => list.push(code as u16),
            Width::Words(list) => list.push(code),
        }
    }

    /// All codes, in the order of the rows.
    pub fn into_codes(self) -> Vec<u32> {
        match self.0 {
            Width::Bytes(list) => list.into_iter().map(|code| wide(code, u8::MAX)).collect(),
            Width::Shorts(list) => list.into_iter().map(|code| wide(code, u16::MAX)).collect(),
            Width::Words(list) => list,
        }
    }

    #[cold]
    fn widen(&mut self, code: u32) {
        self.0 = match std::mem::take(self).0 {
            Width::Bytes(list) if fits(code, u16::MAX) => {
                Width::Shorts(with_room_of(&list, |code| wide(code, u8::MAX) as u16))
            }
            Width::Bytes(list) => Width::Words(with_room_of(&list, |code| wide(code, u8::MAX))),
            Width::Shorts(list) => Width::Words(with_room_of(&list, |code| wide(code, u16::MAX))),
            words => words,
        };
    }
}

/// A wider list with room for as many codes as the narrow one had.
fn with_room_of<T: Copy, U>(list: &Vec<T>, widen: impl Fn(T) -> U) -> Vec<U> {
    let mut wider = Vec::with_capacity(list.capacity());
    wider.extend(list.iter().map(|&code| widen(code)));
    wider
}

impl Default for CodeList {
    fn default() -> Self {
        CodeList::with_capacity(0)
    }
}

/// Whether a code can be told from a missing value in numbers up to this one.
#[inline]
fn fits(code: u32, largest: impl Into<u32>) -> bool {
    code < largest.into() || code == MISSING
}

#[inline]
fn wide<T: Into<u32> + PartialEq>(code: T, missing: T) -> u32 {
    if code == missing { MISSING } else { code.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A list of any width is the list of its codes.
        #[test]
        fn codes_come_back(codes in prop::collection::vec(
            prop_oneof![Just(MISSING), Just(254), Just(255), Just(65_534), Just(65_535), 0u32..300, 0u32..MISSING],
            0..40,
        )) {
            let mut list = CodeList::default();
            codes.iter().for_each(|&code| list.push(code));
            prop_assert!((0..codes.len()).all(|row| list.at(row) == codes[row]));
            prop_assert_eq!(list.into_codes(), codes);
        }
    }

    #[test]
    fn small_codes_take_a_byte() {
        let list = |largest: u32| {
            let mut list = CodeList::default();
            [0, MISSING, largest].into_iter().for_each(|code| list.push(code));
            list.0
        };
        assert!(matches!(list(254), Width::Bytes(_)));
        assert!(matches!(list(255), Width::Shorts(_)));
        assert!(matches!(list(65_534), Width::Shorts(_)));
        assert!(matches!(list(65_535), Width::Words(_)));
    }
}
