//! Moves of whole groups of tokens: two components are emptied and their tokens shared out anew.
//!
//! Single tokens cannot cross between modes that differ in whole groups of tokens: two components that have merged, say,
//! split again only if many tokens leave at once. This move takes all tokens of two hidden values, puts them back one by
//! one, each into one of the two in proportion to the urn's weights, and accepts by Metropolis: the ratio is that of the
//! products of the weights' sums along the new and the old way (theory.md eq. 23). Split, merge and everything between
//! are one move. Which two values is fixed by the schedule.

use super::course::Course;
use super::lanes::Shard;
use super::prepared::{LISTED, Prepared};
use super::word::Word;
use super::workspace::{add_one, weigh_one};
use crate::simd::{Isa, Job};
use rand::Rng;

/// Buffers of a shard for this move.
#[derive(Debug, Default)]
pub struct Reallocation<W> {
    /// Lines of the two values in every kept block, then the states of all tokens, as they were before.
    lines: Vec<W>,
    states: Vec<W>,
    old: Product,
    new: Product,
    /// Weights of the token at hand in the two values.
    first: Vec<f64>,
    second: Vec<f64>,
}

/// A product for every lane that may become very small or large: factor times 2^-512 to a power.
#[derive(Debug, Default)]
struct Product {
    factor: Vec<f64>,
    power: Vec<f64>,
}

impl Product {
    fn reset(&mut self, lanes: usize) {
        self.factor.clear();
        self.factor.resize(lanes, 1.0);
        self.power.clear();
        self.power.resize(lanes, 0.0);
    }

    fn ln(&self, lane: usize) -> f64 {
        self.factor[lane].ln() - self.power[lane] * 512.0 * std::f64::consts::LN_2
    }
}

/// The two hidden values whose tokens are shared out anew.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub first: usize,
    pub second: usize,
}

/// Which way the tokens go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// As they are.
    Old,
    /// Drawn.
    New,
}

impl Course<'_> {
    /// Keeps a copy of what may have to be restored, and empties the two values.
    pub fn empty_pair<W: Word>(&self, shard: &mut Shard<W>, pair: Pair, n_placed: usize) {
        let lanes = shard.weights.len();
        let Shard { lines, reallocation, .. } = shard;
        reallocation.lines.clear();
        for line in self.pair_lines(pair) {
            let line = &mut lines[line * lanes..][..lanes];
            reallocation.lines.extend_from_slice(line);
            line.fill(W::default());
        }
        reallocation.states.clear();
        for &first in &self.first_state[..n_placed] {
            reallocation.states.extend_from_slice(&lines[first as usize * lanes..][..lanes]);
        }
        for product in [&mut reallocation.old, &mut reallocation.new] {
            product.reset(lanes);
        }
        reallocation.first.resize(lanes, 0.0);
        reallocation.second.resize(lanes, 0.0);
    }

    /// Empties the two values again, before the new way.
    pub fn empty_pair_again<W: Word>(&self, shard: &mut Shard<W>, pair: Pair) {
        let lanes = shard.weights.len();
        for line in self.pair_lines(pair) {
            shard.lines[line * lanes..][..lanes].fill(W::default());
        }
    }

    /// The lines of the two values in every block that is kept.
    fn pair_lines(&self, pair: Pair) -> impl Iterator<Item = usize> + '_ {
        let kept = self.layout.blocks.iter().zip(&self.frame.storage.first_line);
        kept.filter(|(_, first)| **first != LISTED).flat_map(move |(block, &first)| {
            let offsets = &self.layout.offsets_of_hidden[block.class as usize];
            let high = self.frame.storage.high_of_class[block.class as usize] as usize;
            let low = [pair.first, pair.second].map(|value| first as usize + offsets[value] as usize);
            let high = low.map(|line| (high > 0).then_some(line + high));
            low.into_iter().chain(high.into_iter().flatten())
        })
    }

    /// Puts one token back where it is in one of the two values, the old way or a new one.
    pub fn put_back<W: Word>(
        &self,
        shard: &mut Shard<W>,
        slot: usize,
        position: usize,
        pair: Pair,
        way: Way,
        rng: &mut impl Rng,
    ) {
        let lanes = shard.weights.len();
        self.rebuild_listed(shard, slot, position as u32, u32::MAX);
        let prepared: &Prepared = &self.prepared[slot];
        let kernel = &self.layout.kernels[prepared.kernel];
        let n_kept = self.frame.storage.n_counts() * lanes;
        let Shard { lines, reallocation, uniforms, .. } = shard;
        let (counts, states) = lines.split_at_mut(n_kept);
        let states = &mut states[self.first_state[position] as usize * lanes - n_kept..][..lanes];
        weigh_one(self.isa, kernel, prepared, counts, lanes, pair.first, &mut reallocation.first);
        weigh_one(self.isa, kernel, prepared, counts, lanes, pair.second, &mut reallocation.second);
        let uniforms = if way == Way::New { Some(uniforms.fill(self.isa, lanes, rng)) } else { None };
        let product = if way == Way::New { &mut reallocation.new } else { &mut reallocation.old };
        self.isa.run(Choose {
            first: &reallocation.first,
            second: &reallocation.second,
            pair: [W::from_index(pair.first), W::from_index(pair.second)],
            uniforms,
            states,
            factor: &mut product.factor,
            power: &mut product.power,
        });
        for value in [pair.first, pair.second] {
            add_one(self.isa, kernel, prepared, states, counts, lanes, value);
        }
    }

    /// Keeps the new way or goes back to the old one, each particle by itself.
    pub fn accept_pair<W: Word>(&self, shard: &mut Shard<W>, pair: Pair, n_placed: usize, rng: &mut impl Rng) {
        let lanes = shard.weights.len();
        let Shard { lines, reallocation, uniforms, .. } = shard;
        let uniforms = uniforms.fill(self.isa, lanes, rng);
        let keeps: Vec<bool> = (0..lanes)
            .map(|lane| uniforms[lane].ln() < reallocation.new.ln(lane) - reallocation.old.ln(lane))
            .collect();
        let restore = |isa: Isa, line: &mut [W], old: &[W]| isa.run(Restore { keeps: &keeps, line, old });
        for (line, old) in self.pair_lines(pair).zip(reallocation.lines.chunks_exact(lanes)) {
            restore(self.isa, &mut lines[line * lanes..][..lanes], old);
        }
        for (&first, old) in self.first_state[..n_placed].iter().zip(reallocation.states.chunks_exact(lanes)) {
            restore(self.isa, &mut lines[first as usize * lanes..][..lanes], old);
        }
    }
}

struct Choose<'a, W> {
    first: &'a [f64],
    second: &'a [f64],
    pair: [W; 2],
    /// Given for the new way.
    uniforms: Option<&'a [f64]>,
    states: &'a mut [W],
    factor: &'a mut [f64],
    power: &'a mut [f64],
}

impl<W: Word> Job for Choose<'_, W> {
    #[inline(always)]
    fn run(self) {
        let [one, two] = self.pair;
        let lanes = self.states.len();
        let (first, second) = (&self.first[..lanes], &self.second[..lanes]);
        let (factor, power) = (&mut self.factor[..lanes], &mut self.power[..lanes]);
        const BIG: f64 = 1.340_780_792_994_259_7e154;
        for lane in 0..lanes {
            let is_here = self.states[lane] == one || self.states[lane] == two;
            let sum = first[lane] + second[lane];
            let product = factor[lane] * if is_here { sum } else { 1.0 };
            let is_small = product < 1.0 / BIG;
            let is_large = product > BIG;
            factor[lane] = product * if is_small { BIG } else { 1.0 } * if is_large { 1.0 / BIG } else { 1.0 };
            power[lane] += if is_small { 1.0 } else { 0.0 } - if is_large { 1.0 } else { 0.0 };
        }
        if let Some(uniforms) = self.uniforms {
            let uniforms = &uniforms[..lanes];
            for lane in 0..lanes {
                let is_here = self.states[lane] == one || self.states[lane] == two;
                let drawn = if uniforms[lane] * (first[lane] + second[lane]) < first[lane] { one } else { two };
                self.states[lane] = if is_here { drawn } else { self.states[lane] };
            }
        }
    }
}

struct Restore<'a, W> {
    keeps: &'a [bool],
    line: &'a mut [W],
    old: &'a [W],
}

impl<W: Word> Job for Restore<'_, W> {
    #[inline(always)]
    fn run(self) {
        for ((held, &old), &keeps) in self.line.iter_mut().zip(self.old).zip(self.keeps) {
            *held = if keeps { *held } else { old };
        }
    }
}
