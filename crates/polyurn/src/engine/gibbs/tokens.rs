//! The tokens of a problem, as all chains see them.

use crate::engine::lines::{Kernel, Layout, Place, Pseudo, Term};
use crate::error::{Error, Result};

/// Lines come in rows of so many, so that they can be handled together.
pub const EIGHT: usize = 8;

/// Tokens in the order in which they are drawn anew, and where the lines of all blocks are.
#[derive(Debug)]
pub struct Tokens<'p> {
    pub layout: &'p Layout,
    /// First line of each block, a multiple of [`EIGHT`].
    pub first_line: Vec<u32>,
    /// Lines of all blocks.
    pub n_lines: usize,
    /// The record of each token.
    pub record: Vec<u32>,
    /// First state of each token of a record; its tokens have theirs one after another.
    first_state: Vec<u32>,
    /// First token of each record.
    first_token: Vec<u32>,
    /// States of all tokens.
    pub n_states: usize,
}

impl<'p> Tokens<'p> {
    /// Lists them.
    ///
    /// # Errors
    /// When there are more than can be numbered.
    pub fn new(layout: &'p Layout) -> Result<Self> {
        let mut n_lines = 0u64;
        let mut first_line = Vec::with_capacity(layout.blocks.len());
        for block in &layout.blocks {
            first_line.push(n_lines as u32);
            let interior = layout.interior(block.class as usize) as u64;
            n_lines += interior.next_multiple_of(EIGHT as u64);
        }
        let n_tokens: u64 = layout.records.count.iter().sum();
        let of_record = |record: usize| layout.records.count[record] * layout.kernel_of(record).buckets.len() as u64;
        let n_states: u64 = (0..layout.records.len()).map(of_record).sum();
        if n_lines > u64::from(u32::MAX) || n_states > u64::from(u32::MAX) {
            return Err(Error::TooCostly(format!(
                "a chain would have to keep {n_lines} counts and {n_tokens} hidden tokens, more than 32 bits can number"
            )));
        }
        let mut tokens = Tokens {
            layout,
            first_line,
            n_lines: n_lines as usize,
            record: Vec::with_capacity(n_tokens as usize),
            first_state: Vec::with_capacity(layout.records.len()),
            first_token: Vec::with_capacity(layout.records.len()),
            n_states: n_states as usize,
        };
        let mut n_states = 0;
        for record in 0..layout.records.len() {
            tokens.first_state.push(n_states);
            tokens.first_token.push(tokens.record.len() as u32);
            n_states += of_record(record) as u32;
            let count = layout.records.count[record] as usize;
            tokens.record.extend(std::iter::repeat_n(record as u32, count));
        }
        Ok(tokens)
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.record.len()
    }

    /// A token's kernel and places.
    pub fn kernel(&self, token: usize) -> (usize, &'p Kernel, &'p [Place]) {
        let record = self.record[token] as usize;
        let kernel = self.layout.records.kernel[record] as usize;
        (kernel, &self.layout.kernels[kernel], self.layout.records.places(record))
    }

    /// The number of values and the kernel of a model with one hidden node, plain enough for values to be handled eight at a time: all
    /// records show the same nodes, rows have one pseudo-count each, and values lie in order.
    pub fn one_plain_node(&self) -> Option<(usize, &'p Kernel)> {
        let layout = self.layout;
        let n_values = layout.hidden_size?;
        let kernel_ix = *layout.records.kernel.first()? as usize;
        if layout.records.kernel.iter().any(|&other| other as usize != kernel_ix) {
            return None;
        }
        let kernel = &layout.kernels[kernel_ix];
        let in_order = |offsets: &[u32]| offsets.iter().enumerate().all(|(value, &offset)| offset as usize == value);
        let is_plain = kernel.buckets.len() == 1
            && !kernel.is_tied
            && layout.is_even[kernel_ix]
            && !layout.is_guarded(kernel_ix, 1.0)
            && kernel.touches.iter().all(|touch| in_order(&touch.offsets));
        is_plain.then_some((n_values, kernel))
    }

    /// Whether all states of a token weigh the same as long as there is no other token.
    pub fn is_indifferent(&self, kernel: &Kernel) -> bool {
        let pseudo = |term: &Term| &self.layout.counted[term.counted].pseudo;
        kernel.terms.iter().all(|term| matches!(pseudo(term), Pseudo::Even(pseudo) if !pseudo.is_zero()))
    }

    /// Where a token's states are: one for each bucket.
    pub fn states(&self, token: usize) -> std::ops::Range<usize> {
        let record = self.record[token] as usize;
        let n_buckets = self.layout.kernel_of(record).buckets.len();
        let first = self.first_state[record] as usize + (token - self.first_token[record] as usize) * n_buckets;
        first..first + n_buckets
    }

    /// Whether these can be the states of all tokens.
    pub fn fit(&self, states: &[u32]) -> bool {
        let is_possible = |token: usize| {
            let (_, kernel, _) = self.kernel(token);
            let mut own = kernel.buckets.iter().zip(&states[self.states(token)]);
            own.all(|(bucket, &state)| (state as usize) < bucket.n_states)
        };
        states.len() == self.n_states && (0..self.len()).all(is_possible)
    }

    /// First line of a place.
    pub fn line(&self, place: Place) -> usize {
        self.first_line[place.block as usize] as usize + place.offset as usize
    }
}
