//! Models with one hidden node, its values eight at a time.
//!
//! The weight of a value is a product of (pseudo-count + line) over the cells that the record picks, times what is the same for
//! all records: cells and rows of the hidden node alone. That is kept for each value and only changed where a token comes or
//! goes. Lines of one block lie side by side, so a token reads a few rows of neighbouring numbers, and all arithmetic is done
//! on eight of them at once.
//!
//! A line is changed by writing its whole row of eight: a number that was written alone could not be read with its
//! neighbours before it has reached the cache.

use super::rows::{Row, Rows, lane_sums, value_at};
use super::tokens::{EIGHT, Tokens};
use crate::engine::lines::Term;
use crate::simd::{Eight, EightJob, Isa, fetch_ahead};

/// Counts up to which common factors are tabulated.
const MOST_TABULATED: usize = 1 << 20;

/// A factor that is the same for all records.
#[derive(Debug, Clone, Copy)]
struct Common {
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
    /// First row of the lines that all tokens are counted in, which those factors depend on.
    counted: Option<u32>,
    /// Products of those factors, by the count: a division takes longer than looking it up.
    by_count: Vec<f64>,
}

/// Numbers of a chain that follow from its counts.
#[derive(Debug, Clone)]
pub struct Factors {
    /// For each value the product of the factors that are the same for all records; zero beyond the last value.
    common: Vec<Row>,
    /// Room for the weights of two tokens, added up row by row; the first row is zero.
    sums: [Vec<Row>; 2],
}

impl Single {
    /// `None` where the model is another kind.
    pub fn new(tokens: &Tokens<'_>) -> Option<Self> {
        let layout = tokens.layout;
        let (n_values, kernel) = tokens.one_plain_node()?;
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
            counted: None,
            by_count: Vec::new(),
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
                // Counters that depend on the hidden node alone share their lines.
                assert!(single.counted.is_none(), "one class without seen values");
                single.counted = Some(row(0, touch));
                for term in terms {
                    let power = if term.is_numerator { term.power as i32 } else { -(term.power as i32) };
                    single.common.push(Common { add: pseudo(term).value, power });
                }
            }
        }
        for record in 0..layout.records.len() {
            let own = (0..kernel.touches.len()).filter(|&touch| is_own[touch]);
            single.own.extend(own.map(|touch| row(record, touch)));
        }
        let n_counts = (tokens.len() + 1).min(MOST_TABULATED);
        single.by_count = (0..n_counts).map(|n| single.product(n as u32)).collect();
        Some(single)
    }

    /// What follows from the counts.
    pub fn factors(&self, counts: &[[u32; EIGHT]]) -> Factors {
        let mut common = vec![Row([0.0; EIGHT]); self.n_eights];
        for value in 0..self.n_values {
            let (eight, lane) = (value / EIGHT, value % EIGHT);
            let n = self.counted.map_or(0, |first| counts[first as usize + eight][lane]);
            common[eight].0[lane] = self.common_factor(n);
        }
        Factors { common, sums: [(); 2].map(|()| vec![Row([0.0; EIGHT]); self.n_eights + 1]) }
    }

    /// The product of the common factors of a value that has so many tokens.
    #[inline(always)]
    fn common_factor(&self, n: u32) -> f64 {
        self.by_count.get(n as usize).copied().unwrap_or_else(|| self.product(n))
    }

    fn product(&self, n: u32) -> f64 {
        let (mut cells, mut rows) = (1.0, 1.0);
        for common in &self.common {
            let factor = common.add + f64::from(n);
            let product = if common.power > 0 { &mut cells } else { &mut rows };
            for _ in 0..common.power.unsigned_abs() {
                *product *= factor;
            }
        }
        cells / rows
    }

    /// Counts one token more or less under a value.
    #[inline(always)]
    fn change<E: Eight, const IS_MORE: bool>(
        &self,
        own: &[u32],
        value: usize,
        counts: &mut [[u32; EIGHT]],
        common: &mut [Row],
    ) {
        let (eight, lane) = (value / EIGHT, value % EIGHT);
        for &first in own {
            change::<IS_MORE>(&mut counts[first as usize + eight], lane);
        }
        if let Some(first) = self.counted {
            // Never read with its neighbours, so it may be written alone.
            let n = &mut counts[first as usize + eight][lane];
            *n = if IS_MORE { n.wrapping_add(1) } else { n.wrapping_sub(1) };
            E::load(&common[eight].0).with(lane, self.common_factor(*n)).store(&mut common[eight].0);
        }
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
        isa.run_eights(Update { single: self, records, uniforms, counts, factors, states });
    }
}

/// Updates of tokens.
struct Update<'a> {
    single: &'a Single,
    records: &'a [u32],
    uniforms: &'a [f64],
    counts: &'a mut [[u32; EIGHT]],
    factors: &'a mut Factors,
    states: &'a mut [u32],
}

impl EightJob for Update<'_> {
    #[inline(always)]
    fn run<E: Eight>(self) {
        match self.single.n_own {
            2 if E::HAS_COPIES => self.go::<E, 2>(),
            3 if E::HAS_COPIES => self.go::<E, 3>(),
            _ => self.go::<E, 0>(),
        }
    }
}

/// The weights of a token: sums above each row, running sums over lanes, and what all add up to.
struct Weighed<'w> {
    sums: &'w mut [Row],
    running: Rows,
    total: f64,
}

/// A token that was drawn and is not counted yet: its own lines and its value.
type Drawn<'o> = Option<(&'o [u32], usize)>;

impl Update<'_> {
    /// With so many own lines; 0 for any number.
    #[inline(always)]
    fn go<E: Eight, const OWN: usize>(mut self) {
        let n_eights = self.single.n_eights;
        let [mut even, mut odd] = std::mem::take(&mut self.factors.sums);
        let weighed = |sums| Weighed { sums, running: Rows([[0.0; EIGHT]; 2]), total: 0.0 };
        let (mut now, mut next) = (weighed(&mut even[..=n_eights]), weighed(&mut odd[..=n_eights]));
        if let Some(&first) = self.records.first() {
            let own = own_of::<OWN>(self.single, first);
            self.single.change::<E, false>(own, self.states[0] as usize, self.counts, &mut self.factors.common);
            weigh::<E, OWN>(self.single, own, self.counts, &self.factors.common, &mut now);
        }
        let mut before = None;
        for token in (0..self.records.len()).step_by(2) {
            before = self.step::<E, OWN>(token, before, &mut now, &mut next);
            if token + 1 < self.records.len() {
                before = self.step::<E, OWN>(token + 1, before, &mut next, &mut now);
            }
        }
        if let Some((own, value)) = before {
            self.single.change::<E, true>(own, value, self.counts, &mut self.factors.common);
        }
        self.factors.sums = [even, odd];
    }

    /// Draws one token and weighs the next.
    ///
    /// A token's weights need the value of the one before only in one place. So they are made without it, while that one is still being
    /// drawn; what its value adds to its own weight goes on top of the sum, and a draw that falls there is that value. Where it
    /// would take something away, the weights are made again.
    #[inline(always)]
    fn step<'s, E: Eight, const OWN: usize>(
        &mut self,
        token: usize,
        before: Drawn<'s>,
        now: &mut Weighed<'_>,
        next: &mut Weighed<'_>,
    ) -> Drawn<'s>
    where
        Self: 's,
    {
        let Update { single, records, uniforms, counts, factors, states } = self;
        let common = &mut factors.common[..single.n_eights];
        let own = own_of::<OWN>(single, records[token]);
        let mut extra = 0.0;
        if let Some((own_before, value)) = before {
            let without = weight_of(single, own, value, counts, common);
            single.change::<E, true>(own_before, value, counts, common);
            extra = weight_of(single, own, value, counts, common) - without;
            if extra < 0.0 {
                weigh::<E, OWN>(single, own, counts, common, now);
                extra = 0.0;
            }
        }
        if let Some(&record) = records.get(token + 1) {
            let own = own_of::<OWN>(single, record);
            single.change::<E, false>(own, states[token + 1] as usize, counts, common);
            weigh::<E, OWN>(single, own, counts, common, next);
        }
        if let Some(&later) = records.get(token + AHEAD) {
            for &first in own_of::<OWN>(single, later) {
                (0..single.n_eights).step_by(2).for_each(|eight| fetch_ahead(counts, first as usize + eight));
            }
        }
        let place = uniforms[token] * (now.total + extra);
        let new = match before {
            Some((_, value)) if extra > 0.0 && place >= now.total => value,
            _ => value_at(now.sums, E::load(&now.running.0[1]), place, &now.running),
        };
        states[token] = new as u32;
        Some((own, new))
    }
}

/// The own lines of a record.
#[inline(always)]
fn own_of<const OWN: usize>(single: &Single, record: u32) -> &[u32] {
    let n_own = if OWN == 0 { single.n_own } else { OWN };
    &single.own[record as usize * n_own..][..n_own]
}

/// The weight of one value.
#[inline(always)]
fn weight_of(single: &Single, own: &[u32], value: usize, counts: &[[u32; EIGHT]], common: &[Row]) -> f64 {
    let (eight, lane) = (value / EIGHT, value % EIGHT);
    let mut weight = common[eight].0[lane];
    for (&first, &add) in own.iter().zip(&single.adds) {
        weight *= f64::from(counts[first as usize + eight][lane]) + add;
    }
    weight
}

/// The weights of a token.
#[inline(always)]
fn weigh<E: Eight, const OWN: usize>(
    single: &Single,
    own: &[u32],
    counts: &[[u32; EIGHT]],
    common: &[Row],
    weighed: &mut Weighed<'_>,
) {
    let sum = row_sums::<E, OWN>(own, &single.adds, counts, &common[..single.n_eights], &mut weighed.sums[1..]);
    weighed.total = lane_sums(sum, &mut weighed.running).1;
}

/// Weights of a token: their sums row by row, and the last of them.
#[inline(always)]
fn row_sums<E: Eight, const OWN: usize>(
    own: &[u32],
    adds: &[f64],
    counts: &[[u32; EIGHT]],
    common: &[Row],
    sums: &mut [Row],
) -> E {
    if OWN == 0 {
        return weigh_any(own, adds, counts, common, sums);
    }
    let n_eights = common.len();
    let sums = &mut sums[..n_eights];
    let rows: [&[[u32; EIGHT]]; OWN] = std::array::from_fn(|ix| &counts[own[ix] as usize..][..n_eights]);
    let adds: [E; OWN] = std::array::from_fn(|ix| E::splat(adds[ix]));
    let mut sum = E::splat(0.0);
    for eight in 0..n_eights {
        let mut weight = E::load(&common[eight].0);
        for ix in 0..OWN {
            weight = weight.mul(E::of_u32(&rows[ix][eight]).add(adds[ix]));
        }
        sum = sum.add(weight);
        sum.store(&mut sums[eight].0);
    }
    sum
}

/// Weights for any number of own lines: their sums row by row, and the last of them.
#[inline(always)]
fn weigh_any<E: Eight>(own: &[u32], adds: &[f64], counts: &[[u32; EIGHT]], common: &[Row], sums: &mut [Row]) -> E {
    let mut sum = E::splat(0.0);
    for (eight, (common, sums)) in common.iter().zip(sums).enumerate() {
        let mut weight = E::load(&common.0);
        for (&first, &add) in own.iter().zip(adds) {
            weight = weight.mul(E::of_u32(&counts[first as usize + eight]).add(E::splat(add)));
        }
        sum = sum.add(weight);
        sum.store(&mut sums.0);
    }
    sum
}

/// Tokens between asking for a row of counts and its use.
const AHEAD: usize = 6;

/// One more or one less in one of eight numbers.
#[inline(always)]
fn change<const IS_MORE: bool>(row: &mut [u32; EIGHT], lane: usize) {
    for (ix, number) in row.iter_mut().enumerate() {
        let step = u32::from(ix == lane);
        *number = if IS_MORE { number.wrapping_add(step) } else { number.wrapping_sub(step) };
    }
}
