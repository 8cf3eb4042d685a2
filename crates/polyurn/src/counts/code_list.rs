//! Codes of one column, in as few bytes as hold the largest of them: there may be very many rows, and few columns have
//! many values.

use super::dataset::MISSING;
use std::fmt;

/// A code for each row, [`MISSING`] among them; one, two or four bytes each, as the largest code needs.
///
/// ```
/// use polyurn::counts::{CodeList, MISSING};
///
/// let mut codes = CodeList::from_iter([2, MISSING]);
/// codes.push(70_000);
/// assert_eq!(codes, [2, MISSING, 70_000]);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct CodeList(Width);

/// The largest number of each width stands for a missing value. Codes are never taken back, so the width follows from them.
#[derive(Clone, PartialEq, Eq)]
enum Width {
    Bytes(Vec<u8>),
    Shorts(Vec<u16>),
    Words(Vec<u32>),
}

/// Does the same with a list of any width.
macro_rules! with_list {
    ($width:expr, $list:ident => $job:expr) => {
        match $width {
            Width::Bytes($list) => $job,
            Width::Shorts($list) => $job,
            Width::Words($list) => $job,
        }
    };
}

impl CodeList {
    /// Room for this many codes, of whatever width; it is not touched before they come.
    pub fn with_capacity(n: usize) -> Self {
        CodeList(Width::Bytes(Vec::with_capacity(n)))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        with_list!(&self.0, list => list.len())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The code of a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn at(&self, row: usize) -> u32 {
        with_list!(&self.0, list => list[row].wide())
    }

    /// All codes, in the order of the rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u32> + Clone + '_ {
        (0..self.len()).map(|row| self.at(row))
    }

    /// Hands every row and its code to `f`.
    #[inline]
    pub fn for_each(&self, mut f: impl FnMut(usize, u32)) {
        with_list!(&self.0, list => list.iter().enumerate().for_each(|(row, code)| f(row, code.wide())));
    }

    /// Whether a row has this code.
    pub fn contains(&self, code: u32) -> bool {
        with_list!(&self.0, list => list.iter().any(|one| one.wide() == code))
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

    /// All codes in four bytes.
    pub fn to_codes(&self) -> Vec<u32> {
        with_list!(&self.0, list => list.iter().map(|code| code.wide()).collect())
    }

    /// The same without a copy where they are that wide already.
    pub fn into_codes(self) -> Vec<u32> {
        match self.0 {
            Width::Words(list) => list,
            narrow => CodeList(narrow).to_codes(),
        }
    }

    #[cold]
    fn widen(&mut self, code: u32) {
        self.0 = match std::mem::take(self).0 {
            Width::Bytes(list) if fits(code, u16::MAX) => Width::Shorts(with_room_of(&list, |code| code.wide() as u16)),
            Width::Bytes(list) => Width::Words(with_room_of(&list, Narrow::wide)),
            Width::Shorts(list) => Width::Words(with_room_of(&list, Narrow::wide)),
            words => words,
        };
    }
}

/// A code in a list of some width.
trait Narrow: Copy {
    fn wide(self) -> u32;
}

impl Narrow for u8 {
    #[inline]
    fn wide(self) -> u32 {
        if self == u8::MAX { MISSING } else { self.into() }
    }
}

impl Narrow for u16 {
    #[inline]
    fn wide(self) -> u32 {
        if self == u16::MAX { MISSING } else { self.into() }
    }
}

impl Narrow for u32 {
    #[inline]
    fn wide(self) -> u32 {
        self
    }
}

/// A wider list with room for as many codes as the narrow one had.
fn with_room_of<T: Copy, U>(list: &Vec<T>, widen: impl Fn(T) -> U) -> Vec<U> {
    let mut wider = Vec::with_capacity(list.capacity());
    wider.extend(list.iter().map(|&code| widen(code)));
    wider
}

/// Whether a code can be told from a missing value in numbers up to this one.
#[inline]
fn fits(code: u32, largest: impl Into<u32>) -> bool {
    code < largest.into() || code == MISSING
}

impl Default for CodeList {
    fn default() -> Self {
        CodeList::with_capacity(0)
    }
}

impl fmt::Debug for CodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<u32> for CodeList {
    fn from_iter<I: IntoIterator<Item = u32>>(codes: I) -> Self {
        let codes = codes.into_iter();
        let mut list = CodeList::with_capacity(codes.size_hint().0);
        codes.for_each(|code| list.push(code));
        list
    }
}

impl<L: AsRef<[u32]>> PartialEq<L> for CodeList {
    fn eq(&self, other: &L) -> bool {
        self.iter().eq(other.as_ref().iter().copied())
    }
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
            prop_assert_eq!((list.len(), list.is_empty()), (codes.len(), codes.is_empty()));
            prop_assert!((0..codes.len()).all(|row| list.at(row) == codes[row]));
            prop_assert_eq!(&list, &codes);
            prop_assert_eq!(&list, &codes.iter().copied().collect::<CodeList>());
            for code in [0, 255, 65_535, MISSING] {
                prop_assert_eq!(list.contains(code), codes.contains(&code));
            }
            let mut each = Vec::new();
            list.for_each(|row, code| each.push((row, code)));
            prop_assert!(each.into_iter().eq(codes.iter().copied().enumerate()));
            prop_assert_eq!(format!("{list:?}"), format!("{codes:?}"));
            prop_assert_eq!(list.to_codes(), &codes[..]);
            prop_assert_eq!(list.into_codes(), codes);
        }
    }

    #[test]
    fn small_codes_take_a_byte() {
        let list = |largest: u32| CodeList::from_iter([0, MISSING, largest]).0;
        assert!(matches!(list(254), Width::Bytes(_)));
        assert!(matches!(list(255), Width::Shorts(_)));
        assert!(matches!(list(65_534), Width::Shorts(_)));
        assert!(matches!(list(65_535), Width::Words(_)));
    }
}
