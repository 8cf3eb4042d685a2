//! One token drawn anew, whatever the model: the slow obvious way, and the only one for models with several hidden nodes.

use super::tokens::Tokens;
use crate::engine::lines::{Kernel, Place, Term};
use crate::math::draw::{below, open_unit};
use rand::Rng;

/// A token that is not in the counts.
#[derive(Debug, Clone, Copy)]
pub struct Lone<'t> {
    pub tokens: &'t Tokens<'t>,
    pub kernel_ix: usize,
    pub kernel: &'t Kernel,
    pub places: &'t [Place],
    /// Weights other than the model's.
    pub tilt: Option<Tilt<'t>>,
}

/// Weights between those of the model and those of something simpler: every factor to a power, times a power of a reference.
#[derive(Debug, Clone, Copy)]
pub struct Tilt<'t> {
    /// For each counted table its power.
    pub powers: &'t [f64],
    /// For each state of all buckets ln of its probability under the reference; empty where there is none.
    pub ln_reference: &'t [f64],
    /// The power of the reference.
    pub reference_power: f64,
}

impl<'t> Lone<'t> {
    /// A token of the list.
    pub fn of(tokens: &'t Tokens<'t>, token: usize) -> Self {
        let (kernel_ix, kernel, places) = tokens.kernel(token);
        Lone { tokens, kernel_ix, kernel, places, tilt: None }
    }

    /// The power of a table's factors.
    fn power(&self, term: &Term) -> f64 {
        self.tilt.map_or(1.0, |tilt| tilt.powers[term.counted])
    }

    /// The line that a term reads in a state.
    fn line(&self, term: &Term, state: usize) -> usize {
        self.tokens.line(self.places[term.touch]) + term.offsets[state] as usize
    }

    /// How many earlier uses of the same tied table by this token hit the same line in these states of the buckets.
    fn n_earlier(&self, term: &Term, line: usize, state_of: impl Fn(usize) -> usize) -> u32 {
        let is_same = |&&ix: &&usize| {
            let other = &self.kernel.terms[ix];
            self.line(other, state_of(other.bucket)) == line
        };
        term.earlier.iter().filter(is_same).count() as u32
    }

    /// A factor of a state's weight, and its logarithm where that is asked for.
    fn factor(&self, term: &Term, state: usize, counts: &[u32], n_more: u32, is_log: bool) -> f64 {
        let place = self.places[term.touch];
        let block = &self.tokens.layout.blocks[place.block as usize];
        let in_block = (place.offset + term.offsets[state]) as usize;
        let pseudo = self.tokens.layout.pseudo(term.counted, block, in_block);
        let n = counts[self.line(term, state)] + n_more;
        // A row of zeros never holds a token: its cells are zeros too, and make the weight zero by themselves.
        if !term.is_numerator && pseudo.is_zero() {
            return if is_log { 0.0 } else { 1.0 };
        }
        match (is_log, n) {
            (false, n) => pseudo.value + f64::from(n),
            (true, 0) => pseudo.ln(),
            (true, n) => (pseudo.value + f64::from(n)).ln(),
        }
    }

    /// The weight of a state of a bucket by its own terms, or ln of it.
    fn weight(&self, bucket: usize, state: usize, counts: &[u32], is_log: bool) -> f64 {
        let (mut cells, mut rows) = if is_log { (0.0, 0.0) } else { (1.0, 1.0) };
        for &ix in &self.kernel.terms_of[bucket] {
            let term = &self.kernel.terms[ix];
            // Where a tied table is used in several buckets, draws leave the token's own uses out.
            let n_more = if self.kernel.is_exact && !term.earlier.is_empty() {
                self.n_earlier(term, self.line(term, state), |_| state)
            } else {
                0
            };
            let mut factor = self.factor(term, state, counts, n_more, is_log);
            if self.tilt.is_some() && factor > f64::NEG_INFINITY {
                factor *= self.power(term);
            }
            let product = if term.is_numerator { &mut cells } else { &mut rows };
            for _ in 0..term.power {
                if is_log { *product += factor } else { *product *= factor }
            }
        }
        if is_log { cells - rows } else { cells / rows }
    }

    /// The same as far as draws are not exact.
    pub fn ln_correction(&self, states: &[u32], counts: &[u32]) -> f64 {
        if self.kernel.is_exact { 0.0 } else { self.correction(states, counts).ln() }
    }

    /// The token's probability over the one it was drawn with, where its own earlier uses of a tied table were left out.
    fn correction(&self, states: &[u32], counts: &[u32]) -> f64 {
        let mut ratio = 1.0;
        for term in self.kernel.terms.iter().filter(|term| !term.earlier.is_empty()) {
            let state_of = |bucket: usize| states[bucket] as usize;
            let state = state_of(term.bucket);
            let n_more = self.n_earlier(term, self.line(term, state), state_of);
            let mut of_term =
                self.factor(term, state, counts, n_more, false) / self.factor(term, state, counts, 0, false);
            if self.tilt.is_some() {
                of_term = of_term.powf(self.power(term));
            }
            ratio *= if term.is_numerator { of_term } else { 1.0 / of_term };
        }
        ratio
    }

    /// Adds the token to the lines of its states.
    pub fn add(&self, states: &[u32], counts: &mut [u32]) {
        self.lines(states).for_each(|line| counts[line] += 1);
    }

    /// Takes it out again.
    pub fn remove(&self, states: &[u32], counts: &mut [u32]) {
        self.lines(states).for_each(|line| counts[line] -= 1);
    }

    fn lines(&self, states: &[u32]) -> impl Iterator<Item = usize> {
        let touches = self.kernel.touches.iter().zip(self.places);
        touches
            .map(move |(touch, place)| self.tokens.line(*place) + touch.offsets[states[touch.bucket] as usize] as usize)
    }
}

/// Buffers for drawing a token's states.
#[derive(Debug, Default)]
pub struct Weigher {
    /// Weights of all states of all buckets.
    theta: Vec<f64>,
    messages: Vec<f64>,
    states: Vec<u32>,
}

impl Weigher {
    /// Draws states in proportion to their weights. ln of what all states weigh together is returned: the probability of what
    /// the token shows, given the tokens in the counts.
    ///
    /// Nothing is drawn where every state is impossible.
    pub fn draw(&mut self, token: Lone<'_>, counts: &[u32], states: &mut [u32], rng: &mut impl Rng) -> f64 {
        let kernel = token.kernel;
        let is_log = token.tilt.is_some() || token.tokens.layout.is_guarded(token.kernel_ix, 1.0);
        self.theta.resize(kernel.n_states(), 0.0);
        self.messages.resize(kernel.n_messages(), 0.0);
        let mut ln_total = 0.0;
        for (ix, bucket) in kernel.buckets.iter().enumerate() {
            let first = kernel.first_state[ix];
            for state in 0..bucket.n_states {
                let mut weight = token.weight(ix, state, counts, is_log);
                if let Some(Tilt { ln_reference, reference_power, .. }) = token.tilt
                    && reference_power > 0.0
                    && let Some(ln) = ln_reference.get(first + state)
                {
                    weight += reference_power * ln;
                }
                for &child in &kernel.children[ix] {
                    let entry = kernel.buckets[child].message_of_parent_state[state] as usize;
                    let message = self.messages[kernel.first_message[child] + entry];
                    if is_log { weight += message } else { weight *= message }
                }
                self.theta[first + state] = weight;
            }
            let theta = &mut self.theta[first..first + bucket.n_states];
            let is_root = bucket.parent.is_none();
            let size = if is_root { bucket.n_states } else { bucket.size };
            for (entry, slice) in theta.chunks_mut(size).enumerate() {
                // Logs become weights relative to the largest, whose log goes into the message.
                let mut message = if is_log {
                    let largest = slice.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let base = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
                    slice.iter_mut().for_each(|weight| *weight = (*weight - base).exp());
                    largest
                } else {
                    0.0
                };
                let sum: f64 = slice.iter().sum();
                message = if is_log { message + sum.ln() } else { sum };
                if is_root {
                    ln_total += if is_log { message } else { message.ln() };
                } else {
                    self.messages[kernel.first_message[ix] + entry] = message;
                }
            }
        }
        if ln_total > f64::NEG_INFINITY {
            self.draw_down(kernel, states, rng);
        }
        ln_total
    }

    fn draw_down(&self, kernel: &Kernel, states: &mut [u32], rng: &mut impl Rng) {
        draw_down(kernel, &self.theta, states, rng);
    }

    /// Draws states that all weigh the same.
    pub fn draw_any(kernel: &Kernel, states: &mut [u32], rng: &mut impl Rng) {
        for ix in (0..kernel.buckets.len()).rev() {
            let open = open_states(kernel, ix, states);
            states[ix] = (open.start as u64 + below(open.len() as u64, rng)) as u32;
        }
    }

    /// A Gibbs update of a token that is in the counts.
    pub fn update(&mut self, token: Lone<'_>, counts: &mut [u32], states: &mut [u32], rng: &mut impl Rng) {
        token.remove(states, counts);
        let mut drawn = std::mem::take(&mut self.states);
        drawn.clear();
        drawn.extend_from_slice(states);
        self.draw(token, counts, &mut drawn, rng);
        // Where the token's own uses of a tied table were left out, the draw is a proposal.
        let is_kept = token.kernel.is_exact
            || open_unit(rng) * token.correction(states, counts) <= token.correction(&drawn, counts);
        if is_kept {
            states.copy_from_slice(&drawn);
        }
        self.states = drawn;
        token.add(states, counts);
    }
}

/// The states that a bucket can have when the buckets after it have theirs.
fn open_states(kernel: &Kernel, ix: usize, states: &[u32]) -> std::ops::Range<usize> {
    let bucket = &kernel.buckets[ix];
    match bucket.parent {
        None => 0..bucket.n_states,
        Some(parent) => {
            let entry = bucket.message_of_parent_state[states[parent] as usize] as usize;
            entry * bucket.size..(entry + 1) * bucket.size
        }
    }
}

/// An index in proportion to nonnegative weights that are not all zero.
pub fn pick(weights: &[f64], uniform: f64) -> usize {
    let mut target = uniform * weights.iter().sum::<f64>();
    let mut last = 0;
    for (ix, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            last = ix;
            target -= weight;
            if target <= 0.0 {
                break;
            }
        }
    }
    last
}

/// Draws the states of all buckets by the weights of their states, parents first.
pub fn draw_down(kernel: &Kernel, theta: &[f64], states: &mut [u32], rng: &mut impl Rng) {
    for (ix, bucket) in kernel.buckets.iter().enumerate().rev() {
        let theta = &theta[kernel.first_state[ix]..][..bucket.n_states];
        let (first, size) = match bucket.parent {
            None => (0, bucket.n_states),
            Some(parent) => {
                let entry = bucket.message_of_parent_state[states[parent] as usize] as usize;
                (entry * bucket.size, bucket.size)
            }
        };
        let slice = &theta[first..first + size];
        states[ix] = (first + pick(slice, open_unit(rng))) as u32;
    }
}
