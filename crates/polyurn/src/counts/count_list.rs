//! Counts of rows, in as few bytes as hold the largest of them: most are ones and twos, and there may be very many. Ones alone are not
//! written down at all.

use std::fmt;

/// A count for each row, however large.
///
/// ```
/// use polyurn::counts::CountList;
///
/// let mut counts = CountList::from_iter([2, 1]);
/// counts.push(70_000);
/// counts.add(1, 9);
/// assert_eq!(counts, [2, 10, 70_000]);
/// ```
#[derive(Clone)]
pub struct CountList(Width);

/// Counts never become less, so the width follows from them.
#[derive(Clone)]
enum Width {
    /// All are one.
    Ones {
        n: usize,
        /// For how many there shall be room if one of them is not.
        room: usize,
    },
    Bytes(Vec<u8>),
    Words(Vec<u32>),
    Longs(Vec<u64>),
}

impl CountList {
    /// Room for this many counts, as long as they are small.
    pub fn with_capacity(n: usize) -> Self {
        CountList(Width::Ones { n: 0, room: n })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match &self.0 {
            Width::Ones { n, .. } => *n,
            Width::Bytes(list) => list.len(),
            Width::Words(list) => list.len(),
            Width::Longs(list) => list.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The count of a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn at(&self, row: usize) -> u64 {
        match &self.0 {
            Width::Ones { n, .. } => {
                assert!(row < *n, "there are {n} rows, and none at {row}");
                1
            }
            Width::Bytes(list) => u64::from(list[row]),
            Width::Words(list) => u64::from(list[row]),
            Width::Longs(list) => list[row],
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, count: u64) {
        self.widen_to(count);
        match &mut self.0 {
            Width::Ones { n, .. } => *n += 1,
            Width::Bytes(list) => list.push(narrow(count)),
            Width::Words(list) => list.push(narrow(count)),
            Width::Longs(list) => list.push(count),
        }
    }

    /// Adds to the count of a row.
    ///
    /// # Panics
    /// When there is no such row, or the sum leaves 64 bits.
    #[inline]
    pub fn add(&mut self, row: usize, count: u64) {
        let sum = self.at(row).checked_add(count).expect("a count of 64 bits");
        self.widen_to(sum);
        match &mut self.0 {
            // Nothing was added.
            Width::Ones { .. } => {}
            Width::Bytes(list) => list[row] = narrow(sum),
            Width::Words(list) => list[row] = narrow(sum),
            Width::Longs(list) => list[row] = sum,
        }
    }

    /// Multiplies all counts.
    ///
    /// # Panics
    /// When one of them leaves 64 bits.
    pub fn multiply(&mut self, factor: u64) {
        *self = self.iter().map(|count| count.checked_mul(factor).expect("a count of 64 bits")).collect();
    }

    /// All counts, in the order of the rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + Clone + '_ {
        (0..self.len()).map(|row| self.at(row))
    }

    /// Hands every row and its count to `f`.
    #[inline]
    pub fn for_each(&self, mut f: impl FnMut(usize, u64)) {
        match &self.0 {
            Width::Ones { n, .. } => (0..*n).for_each(|row| f(row, 1)),
            Width::Bytes(list) => list.iter().enumerate().for_each(|(row, &count)| f(row, u64::from(count))),
            Width::Words(list) => list.iter().enumerate().for_each(|(row, &count)| f(row, u64::from(count))),
            Width::Longs(list) => list.iter().enumerate().for_each(|(row, &count)| f(row, count)),
        }
    }

    /// The sum, unless it leaves 64 bits.
    pub fn sum(&self) -> Option<u64> {
        self.iter().try_fold(0u64, u64::checked_add)
    }

    #[inline]
    fn widen_to(&mut self, count: u64) {
        let is_enough = match &self.0 {
            Width::Ones { .. } => count == 1,
            Width::Bytes(_) => u8::try_from(count).is_ok(),
            Width::Words(_) => u32::try_from(count).is_ok(),
            Width::Longs(_) => true,
        };
        if !is_enough {
            self.widen(count);
        }
    }

    #[cold]
    fn widen(&mut self, count: u64) {
        self.0 = if u8::try_from(count).is_ok() {
            Width::Bytes(self.with_room())
        } else if u32::try_from(count).is_ok() {
            Width::Words(self.with_room())
        } else {
            Width::Longs(self.with_room())
        };
    }

    /// The counts in a list that is wide enough for them and has room for as many as this one.
    fn with_room<T: TryFrom<u64>>(&self) -> Vec<T> {
        let room = match &self.0 {
            Width::Ones { room, .. } => *room,
            Width::Bytes(list) => list.capacity(),
            Width::Words(list) => list.capacity(),
            Width::Longs(list) => list.capacity(),
        };
        let mut list = Vec::with_capacity(room.max(self.len()));
        list.extend(self.iter().map(narrow::<T>));
        list
    }
}

/// A count in a list that is wide enough for it.
#[inline]
fn narrow<T: TryFrom<u64>>(count: u64) -> T {
    T::try_from(count).unwrap_or_else(|_| unreachable!("the list is wide enough"))
}

impl Default for CountList {
    fn default() -> Self {
        CountList::with_capacity(0)
    }
}

impl fmt::Debug for CountList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for CountList {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for CountList {}

impl FromIterator<u64> for CountList {
    fn from_iter<I: IntoIterator<Item = u64>>(counts: I) -> Self {
        let counts = counts.into_iter();
        let mut list = CountList::with_capacity(counts.size_hint().0);
        counts.for_each(|count| list.push(count));
        list
    }
}

impl<L: AsRef<[u64]>> PartialEq<L> for CountList {
    fn eq(&self, other: &L) -> bool {
        self.iter().eq(other.as_ref().iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A list of any width is the list of its counts, however it came about.
        #[test]
        fn counts_come_back(
            counts in prop::collection::vec(
                prop_oneof![3 => Just(1), 1 => (0u32..64).prop_flat_map(|bits| 0..=1u64 << bits)],
                1..20,
            ),
            added in prop_oneof![Just(0), 0u64..1000],
            at in 0usize..20,
            factor in 1u64..400,
        ) {
            let mut list: CountList = counts.iter().copied().collect();
            prop_assert_eq!(&list, &counts);
            let (mut plain, row) = (counts, at % list.len());
            plain[row] += added;
            list.add(row, added);
            prop_assert_eq!(&list, &plain);
            prop_assert_eq!(&list, &plain.iter().copied().collect::<CountList>());
            prop_assert_eq!(list.sum(), plain.iter().try_fold(0u64, |sum, &count| sum.checked_add(count)));
            let mut each = Vec::new();
            list.for_each(|row, count| each.push((row, count)));
            prop_assert!(each.into_iter().eq(plain.iter().copied().enumerate()));
            let ones = CountList::from_iter(std::iter::repeat_n(1, row + 1));
            prop_assert_eq!(&ones, &vec![1; row + 1]);
            prop_assert!(ones != list || plain.iter().all(|&count| count == 1));
            if plain.iter().all(|count| count.checked_mul(factor).is_some()) {
                list.multiply(factor);
                prop_assert_eq!(&list, &plain.iter().map(|count| count * factor).collect::<Vec<u64>>());
            }
        }
    }

    #[test]
    fn small_counts_take_a_byte_and_ones_none() {
        let list = |largest: u64| CountList::from_iter([1, largest, 1]).0;
        assert!(matches!(list(1), Width::Ones { n: 3, .. }));
        assert!(matches!(list(0), Width::Bytes(_)));
        assert!(matches!(list(255), Width::Bytes(_)));
        assert!(matches!(list(256), Width::Words(_)));
        assert!(matches!(list(1 << 32), Width::Longs(_)));
    }
}
