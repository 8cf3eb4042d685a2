//! A layer of the run: distinct states of the registers and the probability of each.

use super::program::CompiledWay;
use super::registers::Canonicaliser;
use crate::math::Scaled;
use hashbrown::HashTable;
use std::hash::{BuildHasher, Hash};

/// An integer that a register is stored as.
pub trait Digit: Copy + Ord + Hash + Default + std::fmt::Debug {
    /// As a count.
    fn get(self) -> u32;
    /// From a count that is known to fit.
    fn of(value: u32) -> Self;
}

macro_rules! digit {
    ($($integer:ty),*) => {$(
        impl Digit for $integer {
            fn get(self) -> u32 {
                self as u32
            }
            fn of(value: u32) -> Self {
                value as $integer
            }
        }
    )*};
}
digit!(u8, u16, u32);

/// Registers and factors looked at between two questions whether to stop: some milliseconds.
const STOP_AFTER: usize = 1 << 20;

/// States and their probabilities, in order of first arrival, so that sums do not depend on hashing.
#[derive(Debug)]
pub struct Layer<D> {
    width: usize,
    digits: Vec<D>,
    weights: Vec<Scaled>,
    index: HashTable<u32>,
    hasher: hashbrown::DefaultHashBuilder,
}

impl<D: Digit> Layer<D> {
    /// The start: all registers zero, probability one.
    pub fn start(width: usize) -> Self {
        let mut layer = Layer::empty(width);
        layer.add(&vec![D::default(); width], Scaled::ONE);
        layer
    }

    /// No states.
    pub fn empty(width: usize) -> Self {
        Layer { width, digits: Vec::new(), weights: Vec::new(), index: HashTable::new(), hasher: Default::default() }
    }

    /// Number of states.
    pub fn len(&self) -> usize {
        self.weights.len()
    }

    /// The registers of a state.
    pub fn state(&self, ix: usize) -> &[D] {
        &self.digits[ix * self.width..][..self.width]
    }

    /// The probability of a state.
    pub fn weight(&self, ix: usize) -> Scaled {
        self.weights[ix]
    }

    /// Probability of all states together.
    pub fn total(&self) -> Scaled {
        self.weights.iter().copied().sum()
    }

    /// Bytes in use.
    pub fn n_bytes(&self) -> usize {
        self.digits.capacity() * size_of::<D>()
            + self.weights.capacity() * size_of::<Scaled>()
            + self.index.allocation_size()
    }

    /// Bytes per state, for forecasts: digits, weight, and the index at its usual load.
    pub fn bytes_per_state(width: usize) -> usize {
        width * size_of::<D>() + size_of::<Scaled>() + 8
    }

    /// Adds probability to a state, merging it with an equal one.
    pub fn add(&mut self, state: &[D], weight: Scaled) {
        let hash = self.hasher.hash_one(state);
        let (digits, width) = (&self.digits, self.width);
        let at = |ix: u32| &digits[ix as usize * width..][..width];
        if let Some(&ix) = self.index.find(hash, |&ix| at(ix) == state) {
            let slot = &mut self.weights[ix as usize];
            *slot = *slot + weight;
            return;
        }
        let ix = self.weights.len() as u32;
        self.digits.extend_from_slice(state);
        self.weights.push(weight);
        let (digits, hasher) = (&self.digits, &self.hasher);
        self.index.insert_unique(hash, ix, |&ix| hasher.hash_one(&digits[ix as usize * width..][..width]));
    }

    /// Empties the layer but keeps its memory.
    pub fn clear(&mut self) {
        self.digits.clear();
        self.weights.clear();
        self.index.clear();
    }

    /// Places one token: every state goes to every way's next state. Breaks off when `stop` says so.
    pub fn advance(
        &self,
        ways: &[CompiledWay],
        forget: &[u32],
        canonicalisers: &[Canonicaliser],
        next: &mut Layer<D>,
        mut stop: impl FnMut(usize, &Layer<D>) -> bool,
    ) {
        next.clear();
        let mut state = vec![D::default(); self.width];
        let mut scratch = state.clone();
        let mut work = STOP_AFTER;
        for ix in 0..self.len() {
            let from = self.state(ix);
            for way in ways {
                work += self.width + way.factors.len() + 16;
                if work >= STOP_AFTER {
                    work = 0;
                    if stop(ix, next) {
                        return;
                    }
                }
                let weight = transition(self.weights[ix], way, from);
                if weight.is_zero() {
                    continue;
                }
                state.copy_from_slice(from);
                for &(register, n) in &way.increments {
                    let slot = &mut state[register as usize];
                    *slot = D::of(slot.get() + n);
                }
                for &register in forget {
                    state[register as usize] = D::default();
                }
                for canonicaliser in canonicalisers {
                    canonicaliser.apply(&mut state, &mut scratch);
                }
                next.add(&state, weight);
            }
        }
    }

    /// Flat contents for a checkpoint.
    pub fn parts(&self) -> (Vec<u32>, Vec<(f64, i32)>) {
        (
            self.digits.iter().map(|digit| digit.get()).collect(),
            self.weights.iter().map(|weight| weight.parts()).collect(),
        )
    }

    /// The layer of a checkpoint; `None` when the parts do not fit together.
    pub fn from_parts(width: usize, digits: &[u32], weights: &[(f64, i32)]) -> Option<Self> {
        if digits.len() != width.checked_mul(weights.len())? {
            return None;
        }
        let mut layer = Layer::empty(width);
        let digits: Vec<D> = digits.iter().map(|&digit| D::of(digit)).collect();
        for (ix, &(mantissa, exponent)) in weights.iter().enumerate() {
            layer.add(&digits[ix * width..][..width], Scaled::from_parts(mantissa, exponent));
        }
        (layer.len() == weights.len()).then_some(layer)
    }
}

/// The probability of a state times that of a way from it.
pub(super) fn transition<D: Digit>(mut weight: Scaled, way: &CompiledWay, from: &[D]) -> Scaled {
    for factor in &way.factors {
        let register = from[factor.register as usize].get();
        match factor.if_tiny {
            Some(tiny) if register == 0 => weight = weight * tiny,
            _ => {
                let value = factor.offset + f64::from(register);
                weight = weight * if factor.divides { 1.0 / value } else { value };
            }
        }
    }
    weight
}
