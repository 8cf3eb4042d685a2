//! Counts of rows, in as few bytes as hold the largest of them: most are ones and twos, and there may be very many.

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountList(Width);

/// Counts never become less, so the width follows from them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Width {
    Bytes(Vec<u8>),
    Words(Vec<u32>),
    Longs(Vec<u64>),
}

/// Does the same with a list of any width.
macro_rules! with_list {
    ($width:expr, $list:ident => $job:expr) => {
        match $width {
            Width::Bytes($list) => $job,
            Width::Words($list) => $job,
            Width::Longs($list) => $job,
        }
    };
}

impl CountList {
    /// Room for this many counts, as long as they are small.
    pub fn with_capacity(n: usize) -> Self {
        CountList(Width::Bytes(Vec::with_capacity(n)))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        with_list!(&self.0, list => list.len())
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
            Width::Bytes(list) => u64::from(list[row]),
            Width::Words(list) => u64::from(list[row]),
            Width::Longs(list) => list[row],
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, count: u64) {
        self.widen_to(count);
        with_list!(&mut self.0, list => list.push(narrow(count)));
    }

    /// Adds to the count of a row.
    ///
    /// # Panics
    /// When there is no such row, or the sum leaves 64 bits.
    #[inline]
    pub fn add(&mut self, row: usize, count: u64) {
        let sum = self.at(row).checked_add(count).expect("a count of 64 bits");
        self.widen_to(sum);
        with_list!(&mut self.0, list => list[row] = narrow(sum));
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
        self.0 = if u32::try_from(count).is_ok() {
            Width::Words(self.iter().map(narrow).collect())
        } else {
            Width::Longs(self.iter().collect())
        };
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
            counts in prop::collection::vec((0u32..64).prop_flat_map(|bits| 0..=1u64 << bits), 1..20),
            added in 0u64..1000,
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
            if plain.iter().all(|count| count.checked_mul(factor).is_some()) {
                list.multiply(factor);
                prop_assert_eq!(&list, &plain.iter().map(|count| count * factor).collect::<Vec<u64>>());
            }
        }
    }

    #[test]
    fn small_counts_take_a_byte() {
        let list = |largest: u64| CountList::from_iter([1, largest, 3]).0;
        assert!(matches!(list(255), Width::Bytes(_)));
        assert!(matches!(list(256), Width::Words(_)));
        assert!(matches!(list(1 << 32), Width::Longs(_)));
    }
}
