//! Models with one hidden node, its values eight at a time.
//!
//! The weight of a value is a product of (pseudo-count + line) over the cells that the record picks, times what is the same for
//! all records: cells and rows of the hidden node alone. That is kept for each value and only changed where a token comes or
//! goes. Lines of one block lie side by side, so a token reads a few rows of neighbouring numbers, and all arithmetic is done
//! on eight of them at once.
//!
//! A line is changed by writing its whole row of eight: a number that was written alone could not be read with its
//! neighbours before it has reached the cache.

use super::tokens::{EIGHT, Tokens};
use crate::engine::lines::{Kernel, Term};
use crate::simd::{Eight, EightJob, Isa};

/// A factor that is the same for all records.
#[derive(Debug, Clone, Copy)]
struct Common {
    /// First row of eight.
    first: u32,
    /// Its pseudo-count.
    add: f64,
    /// How often it multiplies; negative where it divides.
    power: i32,
}

/// What is known of all records beforehand.
#[derive(Debug)]
pub struct Single {
    n_values: usize,
    /// Rows of eight that the values take.
    n_eights: usize,
    /// Lines that a record picks by itself.
    n_own: usize,
    /// Their first rows of eight, record by record, and their pseudo-counts.
    own: Vec<u32>,
    adds: Vec<f64>,
    /// Factors of all records.
    common: Vec<Common>,
    /// First rows of lines that all tokens are counted in.
    counted: Vec<u32>,
}

/// Numbers of a chain that follow from its counts.
#[derive(Debug, Clone)]
pub struct Factors {
    /// For each value the product of the factors that are the same for all records; zero beyond the last value.
    common: Vec<[f64; EIGHT]>,
    /// Room for the weights of one token.
    weights: Vec<[f64; EIGHT]>,
}

impl Single {
    /// `None` where the model is another kind.
    pub fn new(tokens: &Tokens<'_>) -> Option<Self> {
        let layout = tokens.layout;
        let n_values = layout.hidden_size?;
        let kernel_ix = *layout.records.kernel.first()? as usize;
        if layout.records.kernel.iter().any(|&other| other as usize != kernel_ix) {
            return None;
        }
        let kernel: &Kernel = &layout.kernels[kernel_ix];
        let is_plain = kernel.buckets.len() == 1
            && !kernel.is_tied
            && layout.is_even[kernel_ix]
            && !layout.is_guarded(kernel_ix, 1.0);
        let in_order = |offsets: &[u32]| offsets.iter().enumerate().all(|(value, &offset)| offset as usize == value);
        if !is_plain || !kernel.touches.iter().all(|touch| in_order(&touch.offsets)) {
            return None;
        }
        let places = |record: usize| layout.records.places(record);
        let row = |record: usize, touch: usize| (tokens.line(places(record)[touch]) / EIGHT) as u32;
        let is_own: Vec<bool> = kernel.touches.iter().map(|touch| layout.has_key(touch.class)).collect();
        let pseudo = |term: &Term| {
            let place = places(0)[term.touch];
            layout.pseudo(term.counted, &layout.blocks[place.block as usize], place.offset as usize)
        };
        let mut single = Single {
            n_values,
            n_eights: n_values.div_ceil(EIGHT),
            n_own: is_own.iter().filter(|own| **own).count(),
            own: Vec::new(),
            adds: Vec::new(),
            common: Vec::new(),
            counted: Vec::new(),
        };
        for touch in 0..kernel.touches.len() {
            let mut terms = kernel.terms.iter().filter(|term| term.touch == touch);
            if is_own[touch] {
                // A cell, once: rows of tables with another seen parent would have to divide.
                match (terms.next(), terms.next()) {
                    (Some(term), None) if term.is_numerator && term.power == 1 => single.adds.push(pseudo(term).value),
                    _ => return None,
                }
            } else {
                single.counted.push(row(0, touch));
                for term in terms {
                    let power = if term.is_numerator { term.power as i32 } else { -(term.power as i32) };
                    single.common.push(Common { first: row(0, touch), add: pseudo(term).value, power });
                }
            }
        }
        for record in 0..layout.records.len() {
            let own = (0..kernel.touches.len()).filter(|&touch| is_own[touch]);
            single.own.extend(own.map(|touch| row(record, touch)));
        }
        Some(single)
    }

    /// What follows from the counts.
    pub fn factors(&self, counts: &[[u32; EIGHT]]) -> Factors {
        let mut common = vec![[0.0; EIGHT]; self.n_eights];
        for value in 0..self.n_values {
            common[value / EIGHT][value % EIGHT] = self.common_factor(counts, value);
        }
        Factors { common, weights: vec![[0.0; EIGHT]; self.n_eights] }
    }

    /// The product of the common factors of a value.
    #[inline(always)]
    fn common_factor(&self, counts: &[[u32; EIGHT]], value: usize) -> f64 {
        let (mut cells, mut rows) = (1.0, 1.0);
        for common in &self.common {
            let n = counts[common.first as usize + value / EIGHT][value % EIGHT];
            let factor = common.add + f64::from(n);
            let product = if common.power > 0 { &mut cells } else { &mut rows };
            for _ in 0..common.power.unsigned_abs() {
                *product *= factor;
            }
        }
        cells / rows
    }

    /// Draws the states of some tokens anew, with one uniform number for each.
    pub fn update(
        &self,
        isa: Isa,
        records: &[u32],
        uniforms: &[f64],
        counts: &mut [[u32; EIGHT]],
        factors: &mut Factors,
        states: &mut [u32],
    ) {
        macro_rules! run {
            ($($n:literal)*) => {
                match self.n_own {
                    $($n => isa.run_eights(Update::<$n> { single: self, records, uniforms, counts, factors, states }),)*
                    _ => isa.run_eights(Update::<0> { single: self, records, uniforms, counts, factors, states }),
                }
            };
        }
        run!(1 2 3 4);
    }
}

/// Updates of tokens with so many own lines; 0 for any number.
struct Update<'a, const OWN: usize> {
    single: &'a Single,
    records: &'a [u32],
    uniforms: &'a [f64],
    counts: &'a mut [[u32; EIGHT]],
    factors: &'a mut Factors,
    states: &'a mut [u32],
}

impl<const OWN: usize> EightJob for Update<'_, OWN> {
    #[inline(always)]
    fn run<E: Eight>(self) {
        let Update { single, records, uniforms, counts, factors, states } = self;
        let n_own = if OWN == 0 { single.n_own } else { OWN };
        let n_eights = single.n_eights;
        let Factors { common, weights } = factors;
        let (common, weights) = (&mut common[..n_eights], &mut weights[..n_eights]);
        let adds = &single.adds[..n_own];
        for ((&record, &uniform), state) in records.iter().zip(uniforms).zip(states) {
            let own = &single.own[record as usize * n_own..][..n_own];
            let old = *state as usize;
            for &first in own.iter().chain(&single.counted) {
                change::<false>(&mut counts[first as usize + old / EIGHT], old % EIGHT);
            }
            set(&mut common[old / EIGHT], old % EIGHT, single.common_factor(counts, old));
            let mut sums = E::splat(0.0);
            for eight in 0..n_eights {
                let mut weight = E::load(&common[eight]);
                for (&first, &add) in own.iter().zip(adds) {
                    weight = weight.mul(E::of_u32(&counts[first as usize + eight]).add(E::splat(add)));
                }
                weight.store(&mut weights[eight]);
                sums = sums.add(weight);
            }
            let new = pick::<E>(weights, sums, uniform);
            for &first in own.iter().chain(&single.counted) {
                change::<true>(&mut counts[first as usize + new / EIGHT], new % EIGHT);
            }
            set(&mut common[new / EIGHT], new % EIGHT, single.common_factor(counts, new));
            *state = new as u32;
        }
    }
}

/// One more or one less in one of eight numbers.
#[inline(always)]
fn change<const IS_MORE: bool>(row: &mut [u32; EIGHT], lane: usize) {
    for (ix, number) in row.iter_mut().enumerate() {
        let step = u32::from(ix == lane);
        *number = if IS_MORE { number.wrapping_add(step) } else { number.wrapping_sub(step) };
    }
}

/// Another value for one of eight numbers.
#[inline(always)]
pub fn set(row: &mut [f64; EIGHT], lane: usize, value: f64) {
    for (ix, number) in row.iter_mut().enumerate() {
        *number = if ix == lane { value } else { *number };
    }
}

/// A value in proportion to its weight: first its lane, by the sums over the rows of eight, then its row.
#[inline(always)]
pub fn pick<E: Eight>(weights: &[[f64; EIGHT]], sums: E, uniform: f64) -> usize {
    let mut of_lanes = [0.0; EIGHT];
    sums.store(&mut of_lanes);
    let mut target = uniform * sums.sum();
    let mut lane = 0;
    let mut rest = target;
    for &sum in &of_lanes[..EIGHT - 1] {
        target -= sum;
        let is_past = target > 0.0;
        lane += usize::from(is_past);
        rest = if is_past { target } else { rest };
    }
    let mut row = 0;
    for weight in &weights[..weights.len() - 1] {
        rest -= weight[lane];
        row += usize::from(rest > 0.0);
    }
    let found = row * EIGHT + lane;
    if weights[row][lane] > 0.0 { found } else { likeliest(weights) }
}

/// Where rounding has left a value that cannot be.
#[cold]
pub fn likeliest(weights: &[[f64; EIGHT]]) -> usize {
    let all = weights.as_flattened();
    (0..all.len()).max_by(|&x, &y| all[x].total_cmp(&all[y])).unwrap_or(0)
}
