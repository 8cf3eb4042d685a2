//! Tempered sweeps of models with one hidden node, its values eight at a time.
//!
//! A number n that a token reads enters the weight of a value as (pseudo-count + n) to some power. All that depends on n and
//! the temperature only, so it is tabulated for each temperature, and the powers of all lines are kept beside the counts:
//! a tempered sweep reads as many numbers as a plain one. What is the same for all records is kept for each value as one product.

use super::energy::largest_numbers;
use super::fitted::Levels;
use crate::engine::gibbs::{EIGHT, Row, Rows, Tokens, pick};
use crate::engine::lines::Pseudo;
use crate::simd::{Eight, EightJob, Isa, fetch_ahead};
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
    lines: Vec<Row>,
    /// For each value the product of the factors that are the same for all records; zero beyond the last value.
    common: Vec<Row>,
    /// Room for the weights of one token, added up row by row; the first row is zero.
    sums: Vec<Row>,
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
        let (n_values, kernel) = tokens.one_plain_node()?;
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
        let zeros = Row([0.0; EIGHT]);
        powered.lines.resize(rows.len(), zeros);
        powered.sums.resize(self.n_eights + 1, zeros);
        powered.common.clear();
        powered.common.resize(self.n_eights, zeros);
        for ((row, numbers), &touch) in powered.lines.iter_mut().zip(rows).zip(&self.touch_of_row) {
            if touch != NO_TOUCH {
                let table = &factors.own[touch as usize];
                *row = Row(numbers.map(|n| table[n as usize]));
            }
        }
        for value in 0..self.n_values {
            powered.common[value / EIGHT].0[value % EIGHT] = self.common_factor(factors, counts, value);
        }
    }

    #[inline(always)]
    fn common_factor(&self, factors: &Factors, counts: &[u32], value: usize) -> f64 {
        let of_touch = |(&first, table): (&u32, &Vec<f64>)| table[counts[first as usize * EIGHT + value] as usize];
        self.common.iter().zip(&factors.common).map(of_touch).product()
    }

    /// Counts one token more or less under a value.
    #[inline(always)]
    fn change<E: Eight, const IS_MORE: bool>(
        &self,
        factors: &Factors,
        own: &[u32],
        value: usize,
        counts: &mut [u32],
        lines: &mut [Row],
        common: &mut [Row],
    ) {
        let (eight, lane) = (value / EIGHT, value % EIGHT);
        let mut step = |first: u32| {
            let n = &mut counts[first as usize * EIGHT + value];
            *n = if IS_MORE { n.wrapping_add(1) } else { n.wrapping_sub(1) };
            *n as usize
        };
        // Rows are written whole: a number that was written alone could not be read with its neighbours at once.
        for (&first, table) in own.iter().zip(&factors.own) {
            let row = &mut lines[first as usize + eight].0;
            E::load(row).with(lane, table[step(first)]).store(row);
        }
        let mut product = 1.0;
        for (&first, table) in self.common.iter().zip(&factors.common) {
            product *= table[step(first)];
        }
        let row = &mut common[eight].0;
        E::load(row).with(lane, product).store(row);
    }

    /// Draws the states of some tokens anew, with one uniform number for each.
    pub fn update(&self, isa: Isa, factors: &Factors, guide: Option<&Levels>, tokens: Batch<'_>, walker: Parts<'_>) {
        isa.run_eights(Update { single: self, factors, guide, tokens, walker });
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

/// Updates of tokens.
struct Update<'a> {
    single: &'a Single,
    factors: &'a Factors,
    guide: Option<&'a Levels>,
    tokens: Batch<'a>,
    walker: Parts<'a>,
}

impl EightJob for Update<'_> {
    #[inline(always)]
    fn run<E: Eight>(self) {
        match (self.guide.filter(|_| self.factors.is_guided), self.single.n_own) {
            (Some(guide), 2) if E::HAS_COPIES => self.go::<E, 2, true>(guide),
            (Some(guide), _) => self.go::<E, 0, true>(guide),
            (None, 2) if E::HAS_COPIES => self.go::<E, 2, false>(&Levels::default()),
            (None, _) => self.go::<E, 0, false>(&Levels::default()),
        }
    }
}

impl Update<'_> {
    /// With so many own lines; 0 for any number.
    #[inline(always)]
    fn go<E: Eight, const OWN: usize, const IS_GUIDED: bool>(self, guide: &Levels) {
        let Update { single, factors, tokens, walker, .. } = self;
        let Parts { counts, powered, level_sum, mut recorded } = walker;
        let n_own = if OWN == 0 { single.n_own } else { OWN };
        let n_eights = single.n_eights;
        let Powered { lines, common, sums } = powered;
        let (common, sums) = (&mut common[..n_eights], &mut sums[..=n_eights]);
        let own_of = |record: u32| &single.own[record as usize * n_own..][..n_own];
        let mut running = Rows([[0.0; EIGHT]; 2]);
        let Batch { records, uniforms, states } = tokens;
        let Some(&first) = records.first() else { return };
        single.change::<E, false>(factors, own_of(first), states[0] as usize, counts, lines, common);
        for token in 0..records.len() {
            let record = records[token] as usize;
            let own = own_of(records[token]);
            let levels = if IS_GUIDED { &guide.rows[record * n_eights..][..n_eights] } else { &guide.rows[..0] };
            let mut sum = E::splat(0.0);
            for eight in 0..n_eights {
                let mut weight = E::load(&common[eight].0);
                for &first in own {
                    weight = weight.mul(E::load(&lines[first as usize + eight].0));
                }
                if IS_GUIDED {
                    weight = weight.mul(E::by_halves(&levels[eight], &factors.upper, &factors.lower));
                }
                sum = sum.add(weight);
                sum.store(&mut sums[eight + 1].0);
            }
            // The next token is taken out while this one is being drawn: its weights need both, this one's are done.
            if let Some(&next) = records.get(token + 1) {
                single.change::<E, false>(factors, own_of(next), states[token + 1] as usize, counts, lines, common);
            }
            if let Some(&later) = records.get(token + AHEAD) {
                for &first in own_of(later) {
                    (0..n_eights).for_each(|eight| fetch_ahead(lines, first as usize + eight));
                }
            }
            let new = pick::<E>(sums, sum, uniforms[token], &mut running);
            if let Some(recorded) = &mut recorded {
                let share = 1.0 / sum.sum();
                let rows = &mut recorded.sums[record * n_eights..][..n_eights];
                for (row, both) in rows.iter_mut().zip(sums.windows(2)) {
                    for (lane, noted) in row.iter_mut().enumerate() {
                        *noted += ((both[1].0[lane] - both[0].0[lane]) * share) as f32;
                    }
                }
            }
            single.change::<E, true>(factors, own, new, counts, lines, common);
            if IS_GUIDED {
                let level = |value: usize| i64::from(levels[value / EIGHT][value % EIGHT]);
                *level_sum += level(new) - level(states[token] as usize);
            }
            states[token] = new as u32;
        }
    }
}

/// Tokens between asking for a row and its use.
const AHEAD: usize = 6;
