//! Numbers of tokens of records, in as few bytes as hold them all: most data are ones and twos, and all of them are read in
//! every sweep.

use std::ops::Range;

/// A number for each record.
#[derive(Debug)]
pub enum Tokens {
    /// All below 2^8.
    Bytes(Vec<u8>),
    /// All below 2^32.
    Words(Vec<u32>),
    /// Any.
    Reals(Vec<f64>),
}

impl Tokens {
    /// Room for this many records, none of them with more tokens than `largest`.
    pub fn with_room(n_records: usize, largest: u64) -> Self {
        if u8::try_from(largest).is_ok() {
            Tokens::Bytes(Vec::with_capacity(n_records))
        } else if u32::try_from(largest).is_ok() {
            Tokens::Words(Vec::with_capacity(n_records))
        } else {
            Tokens::Reals(Vec::with_capacity(n_records))
        }
    }

    /// Room for this many records with any number of tokens.
    pub fn reals_with_room(n_records: usize) -> Self {
        Tokens::Reals(Vec::with_capacity(n_records))
    }

    /// Adds a record with a number of tokens that need not be whole.
    ///
    /// # Panics
    /// When there is only room for whole numbers.
    pub fn push_real(&mut self, n: f64) {
        let Tokens::Reals(list) = self else { panic!("room for any number") };
        list.push(n);
    }

    /// Adds a record.
    ///
    /// # Panics
    /// When it has more tokens than was said.
    pub fn push(&mut self, n: u64) {
        match self {
            Tokens::Bytes(list) => list.push(u8::try_from(n).expect("no more tokens than was said")),
            Tokens::Words(list) => list.push(u32::try_from(n).expect("no more tokens than was said")),
            Tokens::Reals(list) => list.push(n as f64),
        }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        match self {
            Tokens::Bytes(list) => list.len(),
            Tokens::Words(list) => list.len(),
            Tokens::Reals(list) => list.len(),
        }
    }

    /// Of one record.
    pub fn at(&self, record: usize) -> f64 {
        match self {
            Tokens::Bytes(list) => f64::from(list[record]),
            Tokens::Words(list) => f64::from(list[record]),
            Tokens::Reals(list) => list[record],
        }
    }

    /// Writes those of some records over `out`.
    #[inline(always)]
    pub fn read(&self, records: Range<usize>, out: &mut Vec<f64>) {
        out.clear();
        match self {
            Tokens::Bytes(list) => out.extend(list[records].iter().map(|&n| f64::from(n))),
            Tokens::Words(list) => out.extend(list[records].iter().map(|&n| f64::from(n))),
            Tokens::Reals(list) => out.extend_from_slice(&list[records]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_whatever_they_are_kept_in() {
        for largest in [255, 256, u64::from(u32::MAX), u64::from(u32::MAX) + 1, 1 << 53] {
            let all = [1, largest / 3, largest, 2];
            let mut tokens = Tokens::with_room(4, largest);
            all.iter().for_each(|&n| tokens.push(n));
            let mut read = vec![7.0];
            tokens.read(1..4, &mut read);
            assert_eq!(read, all[1..].iter().map(|&n| n as f64).collect::<Vec<f64>>());
            assert_eq!((tokens.len(), tokens.at(2)), (4, largest as f64));
        }
        assert!(matches!(Tokens::with_room(1, 255), Tokens::Bytes(_)));
        assert!(matches!(Tokens::with_room(1, 256), Tokens::Words(_)));
    }
}
