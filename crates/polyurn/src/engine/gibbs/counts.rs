//! The counts of all lines of a chain.

use super::tokens::{EIGHT, Tokens};

/// Bytes of a line of the cache.
const CACHE_LINE: usize = 64;

/// Counts in rows of eight that never straddle two lines of the cache: what was just written to two of them is slow to be
/// read again, and a chain does little else.
#[derive(Debug)]
pub struct Counts {
    numbers: Vec<u32>,
    /// Where the first row begins.
    first: usize,
}

impl Counts {
    /// Zeros.
    pub fn new(tokens: &Tokens<'_>) -> Self {
        let spare = CACHE_LINE / size_of::<u32>();
        let numbers = vec![0u32; tokens.n_lines + spare];
        // A list does not move after this. Where it begins is only a matter of speed.
        let beyond = numbers.as_ptr().addr() % CACHE_LINE;
        let first = (CACHE_LINE - beyond) % CACHE_LINE / size_of::<u32>();
        Counts { numbers, first }
    }

    /// All rows.
    pub fn rows(&self) -> &[[u32; EIGHT]] {
        self.numbers[self.first..].as_chunks().0
    }

    /// All rows, to be changed.
    pub fn rows_mut(&mut self) -> &mut [[u32; EIGHT]] {
        self.numbers[self.first..].as_chunks_mut().0
    }

    /// All lines, to be changed.
    pub fn lines_mut(&mut self) -> &mut [u32] {
        &mut self.numbers[self.first..]
    }
}
