//! Tempered sweeps of models with one hidden node, its values eight at a time.
//!
//! A number n that a token reads enters the weight of a value as (pseudo-count + n) to some power. All that depends on n and
//! the temperature only, so it is tabulated for each temperature, and the powers of all lines are kept beside the counts:
//! a tempered sweep reads as many numbers as a plain one. What is the same for all records is kept for each value as one product.

use super::energy::largest_numbers;
use super::fitted::Levels;
use crate::engine::gibbs::{EIGHT, Tokens, pick, set};
use crate::engine::lines::{Kernel, Pseudo};
use crate::simd::{Eight, EightJob, Isa};
use serde::{Deserialize, Serialize};

/// ln of what a touch multiplies by, for each number of its line.
#[derive(Debug)]
struct LnFactors {
    steady: Vec<f64>,
    tempered: Vec<f64>,
}

impl LnFactors {
    fn at(&self, beta: f64) -> Vec<f64> {
        self.steady.iter().zip(&self.tempered).map(|(steady, tempered)| (steady + beta * tempered).exp()).collect()
    }
}

/// What is known of all records beforehand.
#[derive(Debug)]
pub struct Single {
    n_values: usize,
    /// Rows of eight that the values take.
    pub n_eights: usize,
    /// Lines that a record picks by itself: their first rows of eight, record by record.
    n_own: usize,
    own: Vec<u32>,
    own_factors: Vec<LnFactors>,
    /// First rows of lines that all tokens touch.
    common: Vec<u32>,
    common_factors: Vec<LnFactors>,
    /// For each row of eight the number of its own touch.
    touch_of_row: Vec<u8>,
}

/// Marks rows of lines that all tokens touch.
const NO_TOUCH: u8 = u8::MAX;

/// Factors at one temperature.
#[derive(Debug)]
pub struct Factors {
    own: Vec<Vec<f64>>,
    common: Vec<Vec<f64>>,
    /// Powers of the reference by the upper and the lower half of its levels.
    upper: [f64; 16],
    lower: [f64; 16],
    is_guided: bool,
}

/// Numbers of a walker that follow from its counts.
#[derive(Debug, Clone, Default)]
pub struct Powered {
    /// For each line its factor.
    lines: Vec<[f64; EIGHT]>,
    /// For each value the product of the factors that are the same for all records; zero beyond the last value.
    common: Vec<[f64; EIGHT]>,
    /// Room for the weights of one token.
    weights: Vec<[f64; EIGHT]>,
}

/// Sums of the probabilities that tokens were drawn by, record by record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Recorded {
    pub sums: Vec<[f32; EIGHT]>,
}

impl Single {
    /// `None` where the model is another kind.
    pub fn new(tokens: &Tokens<'_>, is_tempered: &[bool]) -> Option<Self> {
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
        let largest = largest_numbers(tokens);
        let row = |record: usize, touch: usize| (tokens.line(layout.records.places(record)[touch]) / EIGHT) as u32;
        let (own, common): (Vec<usize>, Vec<usize>) =
            (0..kernel.touches.len()).partition(|&touch| layout.has_key(kernel.touches[touch].class));
        let factors = |&touch: &usize| {
            let n_numbers = largest[kernel.touches[touch].class] + 1;
            let mut factors = LnFactors { steady: vec![0.0; n_numbers], tempered: vec![0.0; n_numbers] };
            for term in kernel.terms.iter().filter(|term| term.touch == touch) {
                let Pseudo::Even(pseudo) = layout.counted[term.counted].pseudo else { unreachable!("even, see above") };
                let power = if term.is_numerator { f64::from(term.power) } else { -f64::from(term.power) };
                let list = if is_tempered[term.counted] { &mut factors.tempered } else { &mut factors.steady };
                list.iter_mut().enumerate().for_each(|(n, ln)| *ln += power * (pseudo.value + n as f64).ln());
            }
            factors
        };
        let mut single = Single {
            n_values,
            n_eights: n_values.div_ceil(EIGHT),
            n_own: own.len(),
            own: Vec::with_capacity(layout.records.len() * own.len()),
            own_factors: own.iter().map(factors).collect(),
            common: common.iter().map(|&touch| row(0, touch)).collect(),
            common_factors: common.iter().map(factors).collect(),
            touch_of_row: vec![NO_TOUCH; tokens.n_lines / EIGHT],
        };
        for record in 0..layout.records.len() {
            for (place, &touch) in own.iter().enumerate() {
                let first = row(record, touch);
                single.own.push(first);
                single.touch_of_row[first as usize..][..single.n_eights].fill(place as u8);
            }
        }
        Some(single)
    }

    /// Factors at a temperature, with the reference's levels `step` apart where there is one.
    pub fn factors(&self, beta: f64, step: Option<f64>) -> Factors {
        let power = step.map_or(0.0, |step| -(1.0 - beta) * step);
        Factors {
            own: self.own_factors.iter().map(|factors| factors.at(beta)).collect(),
            common: self.common_factors.iter().map(|factors| factors.at(beta)).collect(),
            upper: std::array::from_fn(|half| (power * 16.0 * half as f64).exp()),
            lower: std::array::from_fn(|half| (power * half as f64).exp()),
            is_guided: power < 0.0,
        }
    }

    /// Brings what follows from the counts to another temperature.
    pub fn refresh(&self, factors: &Factors, counts: &[u32], powered: &mut Powered) {
        let (rows, _) = counts.as_chunks::<EIGHT>();
        powered.lines.resize(rows.len(), [0.0; EIGHT]);
        powered.weights.resize(self.n_eights, [0.0; EIGHT]);
        powered.common.clear();
        powered.common.resize(self.n_eights, [0.0; EIGHT]);
        for ((row, numbers), &touch) in powered.lines.iter_mut().zip(rows).zip(&self.touch_of_row) {
            if touch != NO_TOUCH {
                let table = &factors.own[touch as usize];
                *row = numbers.map(|n| table[n as usize]);
            }
        }
        for value in 0..self.n_values {
            powered.common[value / EIGHT][value % EIGHT] = self.common_factor(factors, counts, value);
        }
    }

    #[inline(always)]
    fn common_factor(&self, factors: &Factors, counts: &[u32], value: usize) -> f64 {
        let of_touch = |(&first, table): (&u32, &Vec<f64>)| table[counts[first as usize * EIGHT + value] as usize];
        self.common.iter().zip(&factors.common).map(of_touch).product()
    }

    /// Draws the states of some tokens anew, with one uniform number for each.
    pub fn update(&self, isa: Isa, factors: &Factors, guide: Option<&Levels>, tokens: Batch<'_>, walker: Parts<'_>) {
        macro_rules! run {
            ($($n:literal)*) => {
                match self.n_own {
                    $($n => isa.run_eights(Update::<$n> { single: self, factors, guide, tokens, walker }),)*
                    _ => isa.run_eights(Update::<0> { single: self, factors, guide, tokens, walker }),
                }
            };
        }
        run!(1 2 3 4);
    }
}

/// Tokens that are drawn anew one after another.
#[derive(Debug)]
pub struct Batch<'a> {
    pub records: &'a [u32],
    pub uniforms: &'a [f64],
    pub states: &'a mut [u32],
}

/// What a sweep changes.
#[derive(Debug)]
pub struct Parts<'a> {
    pub counts: &'a mut [u32],
    pub powered: &'a mut Powered,
    /// Sum of the levels of all tokens.
    pub level_sum: &'a mut i64,
    pub recorded: Option<&'a mut Recorded>,
}

/// Updates of tokens with so many own lines; 0 for any number.
struct Update<'a, const OWN: usize> {
    single: &'a Single,
    factors: &'a Factors,
    guide: Option<&'a Levels>,
    tokens: Batch<'a>,
    walker: Parts<'a>,
}

impl<const OWN: usize> EightJob for Update<'_, OWN> {
    #[inline(always)]
    fn run<E: Eight>(self) {
        match (self.guide.filter(|_| self.factors.is_guided), self.walker.recorded.is_some()) {
            (Some(guide), _) => self.go::<E, true, false>(guide),
            (None, true) => self.go::<E, false, true>(&Levels::default()),
            (None, false) => self.go::<E, false, false>(&Levels::default()),
        }
    }
}

impl<const OWN: usize> Update<'_, OWN> {
    #[inline(always)]
    fn go<E: Eight, const IS_GUIDED: bool, const IS_RECORDED: bool>(self, guide: &Levels) {
        let Update { single, factors, tokens, walker, .. } = self;
        let Parts { counts, powered, level_sum, mut recorded } = walker;
        let n_own = if OWN == 0 { single.n_own } else { OWN };
        let n_eights = single.n_eights;
        let Powered { lines, common, weights } = powered;
        let (common, weights) = (&mut common[..n_eights], &mut weights[..n_eights]);
        let own_tables = &factors.own[..n_own];
        for ((&record, &uniform), state) in tokens.records.iter().zip(tokens.uniforms).zip(tokens.states) {
            let own = &single.own[record as usize * n_own..][..n_own];
            let levels =
                if IS_GUIDED { &guide.rows[record as usize * n_eights..][..n_eights] } else { &guide.rows[..0] };
            let old = *state as usize;
            for (&first, table) in own.iter().zip(own_tables) {
                let n = &mut counts[first as usize * EIGHT + old];
                *n -= 1;
                set(&mut lines[first as usize + old / EIGHT], old % EIGHT, table[*n as usize]);
            }
            for &first in &single.common {
                counts[first as usize * EIGHT + old] -= 1;
            }
            set(&mut common[old / EIGHT], old % EIGHT, single.common_factor(factors, counts, old));
            let mut sums = E::splat(0.0);
            for eight in 0..n_eights {
                let mut weight = E::load(&common[eight]);
                for &first in own {
                    weight = weight.mul(E::load(&lines[first as usize + eight]));
                }
                if IS_GUIDED {
                    weight = weight.mul(E::by_halves(&levels[eight], &factors.upper, &factors.lower));
                }
                weight.store(&mut weights[eight]);
                sums = sums.add(weight);
            }
            let new = pick::<E>(weights, sums, uniform);
            if IS_RECORDED && let Some(recorded) = &mut recorded {
                let share = 1.0 / sums.sum();
                let rows = &mut recorded.sums[record as usize * n_eights..][..n_eights];
                for (row, weights) in rows.iter_mut().zip(weights.iter()) {
                    row.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += (weight * share) as f32);
                }
            }
            for (&first, table) in own.iter().zip(own_tables) {
                let n = &mut counts[first as usize * EIGHT + new];
                *n += 1;
                set(&mut lines[first as usize + new / EIGHT], new % EIGHT, table[*n as usize]);
            }
            for &first in &single.common {
                counts[first as usize * EIGHT + new] += 1;
            }
            set(&mut common[new / EIGHT], new % EIGHT, single.common_factor(factors, counts, new));
            if IS_GUIDED {
                let level = |value: usize| i64::from(levels[value / EIGHT][value % EIGHT]);
                *level_sum += level(new) - level(old);
            }
            *state = new as u32;
        }
    }
}
