//! Where the cells of records start, in few bytes where there are many records: all of them are read in every sweep.

use std::ops::Range;

/// From this many records on they are packed if that is possible: fewer take little memory, and go without unpacking.
const MANY: usize = 1 << 20;

/// The starts that a family can have: a first one and equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    pub first: u32,
    pub step: u32,
    /// How many there are at most.
    pub n: usize,
}

/// For each record the first cell of some families, one after another.
#[derive(Debug)]
pub enum Starts {
    Plain(Vec<u32>),
    /// By the number of steps.
    Packed(Vec<u16>),
}

/// Starts of all records.
#[derive(Debug)]
pub struct RecordStarts {
    starts: Starts,
    steps: Vec<Steps>,
}

impl RecordStarts {
    /// Room for this many records of families that can start so.
    pub fn with_room(n_records: usize, steps: Vec<Steps>) -> Self {
        let is_packed = n_records >= MANY && steps.iter().all(|steps| steps.n <= 1 << 16);
        let room = n_records * steps.len();
        let starts =
            if is_packed { Starts::Packed(Vec::with_capacity(room)) } else { Starts::Plain(Vec::with_capacity(room)) };
        RecordStarts { starts, steps }
    }

    /// Adds the next start: of the next family, or of the next record's first.
    pub fn push(&mut self, start: u32) {
        match &mut self.starts {
            Starts::Plain(list) => list.push(start),
            Starts::Packed(list) => {
                let Steps { first, step, .. } = self.steps[list.len() % self.steps.len()];
                list.push(((start - first) / step) as u16);
            }
        }
    }

    /// The plain list, if there is one: it can be read in place.
    #[inline(always)]
    pub fn plain(&self) -> Option<&[u32]> {
        match &self.starts {
            Starts::Plain(list) => Some(list),
            Starts::Packed(_) => None,
        }
    }

    /// Writes those of some records over `out`, as far as there are such records.
    #[inline(always)]
    pub fn read(&self, records: Range<usize>, out: &mut Vec<u32>) {
        let n = self.steps.len();
        out.clear();
        match &self.starts {
            Starts::Plain(list) => out.extend_from_slice(&list[records.start * n..(records.end * n).min(list.len())]),
            Starts::Packed(list) => {
                let list = &list[records.start * n..(records.end * n).min(list.len())];
                if let [Steps { first, step, .. }] = self.steps[..] {
                    return out.extend(list.iter().map(|&number| first + step * u32::from(number)));
                }
                for numbers in list.chunks_exact(n.max(1)) {
                    let pairs = numbers.iter().zip(&self.steps);
                    out.extend(pairs.map(|(&number, steps)| steps.first + steps.step * u32::from(number)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_starts_come_back() {
        let steps = [Steps { first: 7, step: 50, n: 1 << 16 }, Steps { first: 4_000_000, step: 1, n: 900 }];
        let start_of = |record: usize, steps: &Steps| steps.first + steps.step * (record * 31 % steps.n) as u32;
        for n_families in [1, 2] {
            for n_records in [MANY - 1, MANY] {
                let steps = &steps[..n_families];
                let mut starts = RecordStarts::with_room(n_records, steps.to_vec());
                for record in 0..n_records {
                    steps.iter().for_each(|steps| starts.push(start_of(record, steps)));
                }
                assert_eq!(starts.plain().is_none(), n_records >= MANY);
                let mut read = vec![1, 2, 3];
                // Also beyond the last record.
                starts.read(n_records - 1000..n_records + 5, &mut read);
                let expected =
                    (n_records - 1000..n_records).flat_map(|record| steps.iter().map(move |s| start_of(record, s)));
                assert!(read.iter().copied().eq(expected));
            }
        }
        let too_many = Steps { first: 0, step: 3, n: (1 << 16) + 1 };
        assert!(RecordStarts::with_room(MANY, vec![too_many]).plain().is_some());
        // Records that show nothing but what their run does.
        let mut none = vec![4];
        RecordStarts::with_room(MANY, Vec::new()).read(3..9, &mut none);
        assert!(none.is_empty());
    }
}
