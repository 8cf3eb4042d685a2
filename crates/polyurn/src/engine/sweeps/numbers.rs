//! Numbers of all cells, placed so that no vector is loaded from two lines of the cache more often than need be.

use super::mixture::ROOM;
use std::ops::{Deref, DerefMut};

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// A list of numbers that starts with a line of the cache, and has room behind its end for loops that look a little further.
#[derive(Debug)]
pub struct Numbers {
    list: Vec<f64>,
    first: usize,
    len: usize,
}

impl Numbers {
    /// Zeros.
    pub fn zeros(len: usize) -> Self {
        let list = vec![0.0; len + ROOM + LINE / size_of::<f64>()];
        let first = list.as_ptr().align_offset(LINE).min(LINE / size_of::<f64>());
        Numbers { list, first, len }
    }

    /// The numbers alone, in the same memory.
    pub fn into_list(mut self) -> Vec<f64> {
        self.list.truncate(self.first + self.len);
        self.list.drain(..self.first);
        self.list
    }

    /// The numbers and the room behind them.
    pub fn with_room(&self) -> &[f64] {
        &self.list[self.first..self.first + self.len + ROOM]
    }

    /// The same, to be changed.
    pub fn with_room_mut(&mut self) -> &mut [f64] {
        &mut self.list[self.first..self.first + self.len + ROOM]
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::zeros(0)
    }
}

impl Clone for Numbers {
    fn clone(&self) -> Self {
        // Its copy may lie elsewhere.
        let mut copy = Numbers::zeros(self.len);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for Numbers {
    type Target = [f64];

    fn deref(&self) -> &[f64] {
        &self.list[self.first..self.first + self.len]
    }
}

impl DerefMut for Numbers {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.list[self.first..self.first + self.len]
    }
}
