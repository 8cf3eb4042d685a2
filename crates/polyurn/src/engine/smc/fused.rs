//! A hidden choice weighed and drawn in one go.
//!
//! Sixteen particles at a time go through all states, so that the running sums of some hundred states stay in the fastest
//! cache, and the state is drawn while they are there. Dividing takes a core as long as all else that is done for a state;
//! two states share one division. NMF, topic models, CP, latent classes: tokens with one unseen node, or several taken
//! together, are all of this kind.

use super::loops::LANE_GROUP;
use super::prepared::Terms;
use super::word::Word;
use crate::simd::{Eight, EightJob};

/// Weighs the states of a bucket that stands alone, and draws one of them in every lane. No product of two states' rows
/// may leave the range of numbers.
#[derive(Debug)]
pub struct WeighAndDraw<'a, W> {
    pub counts: &'a [W],
    pub lanes: usize,
    pub n_states: usize,
    pub terms: Terms<'a>,
    pub uniforms: &'a [f64],
    /// Buffers: running sums, and the lines of all states.
    pub sums: &'a mut Vec<[[f64; 8]; 2]>,
    pub lines: &'a mut Vec<Line>,
    /// Multiplied by the sums of the weights.
    pub totals: &'a mut [f64],
    pub states: &'a mut [W],
}

/// The line of a state's term.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// Where its low words start, in groups of lanes, and its high ones; the same where there are none.
    low: usize,
    high: usize,
    /// The pseudo-count.
    add: f64,
}

impl<W: Word> EightJob for WeighAndDraw<'_, W> {
    #[inline(always)]
    fn run<E: Eight>(self) {
        let Terms { n_cells, powers, highs, .. } = self.terms;
        let are_plain = E::HAS_COPIES
            && powers[..n_cells].iter().all(|&power| power == 1)
            && highs[..n_cells].iter().all(|&high| high == 0);
        let has_high = highs[n_cells..].iter().any(|&high| high > 0);
        match (n_cells, &powers[n_cells..], has_high) {
            (1, [], _) if are_plain => self.go::<E, _>(Few::<1, 0, false>),
            (2, [], _) if are_plain => self.go::<E, _>(Few::<2, 0, false>),
            (3, [], _) if are_plain => self.go::<E, _>(Few::<3, 0, false>),
            (1, [1], false) if are_plain => self.go::<E, _>(Few::<1, 1, false>),
            (2, [1], false) if are_plain => self.go::<E, _>(Few::<2, 1, false>),
            (3, [1], false) if are_plain => self.go::<E, _>(Few::<3, 1, false>),
            (3, [2], false) if are_plain => self.go::<E, _>(Few::<3, 2, false>),
            (1, [1], true) if are_plain => self.go::<E, _>(Few::<1, 1, true>),
            (2, [1], true) if are_plain => self.go::<E, _>(Few::<2, 1, true>),
            (3, [1], true) if are_plain => self.go::<E, _>(Few::<3, 1, true>),
            (3, [2], true) if are_plain => self.go::<E, _>(Few::<3, 2, true>),
            _ => {
                let any = Any { n_cells, powers };
                self.go::<E, _>(any);
            }
        }
    }
}

/// How a state's weight is made of its lines. Everything down to the innermost loop must be `#[inline(always)]`, as in
/// every job.
trait Weight {
    /// Whether there are rows to divide by.
    fn is_divided(&self) -> bool;
    /// The product of a state's cells in a group of lanes.
    fn cells<W: Word, E: Eight>(&self, lines: &[Line], counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2];
    /// The product of its rows.
    fn rows<W: Word, E: Eight>(&self, lines: &[Line], counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2];
}

/// The commonest: N cells without high words, and one row to the power D, or none.
struct Few<const N: usize, const D: u32, const HAS_HIGH: bool>;

impl<const N: usize, const D: u32, const HAS_HIGH: bool> Weight for Few<N, D, HAS_HIGH> {
    #[inline(always)]
    fn is_divided(&self) -> bool {
        D > 0
    }

    #[inline(always)]
    fn cells<W: Word, E: Eight>(&self, lines: &[Line], counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2] {
        let lines: &[Line; N] = lines.first_chunk().expect("as many cells");
        let mut product = lines[0].values::<W, E, false>(counts, group);
        for line in &lines[1..] {
            product = times(product, line.values::<W, E, false>(counts, group));
        }
        product
    }

    #[inline(always)]
    fn rows<W: Word, E: Eight>(&self, lines: &[Line], counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2] {
        let row = lines[N].values::<W, E, HAS_HIGH>(counts, group);
        if D == 2 { times(row, row) } else { row }
    }
}

/// Any cells, and any rows.
struct Any<'a> {
    n_cells: usize,
    powers: &'a [u32],
}

impl Weight for Any<'_> {
    #[inline(always)]
    fn is_divided(&self) -> bool {
        self.powers.len() > self.n_cells
    }

    #[inline(always)]
    fn cells<W: Word, E: Eight>(&self, lines: &[Line], counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2] {
        product(&lines[..self.n_cells], self.powers, counts, group)
    }

    #[inline(always)]
    fn rows<W: Word, E: Eight>(&self, lines: &[Line], counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2] {
        product(&lines[self.n_cells..], &self.powers[self.n_cells..], counts, group)
    }
}

#[inline(always)]
fn product<W: Word, E: Eight>(lines: &[Line], powers: &[u32], counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2] {
    let mut product = [E::splat(1.0); 2];
    for (line, &power) in lines.iter().zip(powers) {
        let values = if line.high == line.low {
            line.values::<W, E, false>(counts, group)
        } else {
            line.values::<W, E, true>(counts, group)
        };
        for _ in 0..power {
            product = times(product, values);
        }
    }
    product
}

#[inline(always)]
fn times<E: Eight>(one: [E; 2], other: [E; 2]) -> [E; 2] {
    [one[0].mul(other[0]), one[1].mul(other[1])]
}

impl Line {
    /// Pseudo-count and counter in a group of lanes.
    #[inline(always)]
    fn values<W: Word, E: Eight, const HAS_HIGH: bool>(&self, counts: &[[W; LANE_GROUP]], group: usize) -> [E; 2] {
        let low = halves(&counts[self.low + group]);
        let held: [E; 2] = if HAS_HIGH {
            let high = halves(&counts[self.high + group]);
            [W::eight_with(low[0], high[0]), W::eight_with(low[1], high[1])]
        } else {
            [W::eight(low[0]), W::eight(low[1])]
        };
        let add = E::splat(self.add);
        [add.add(held[0]), add.add(held[1])]
    }
}

impl<W: Word> WeighAndDraw<'_, W> {
    #[inline(always)]
    fn go<E: Eight, F: Weight>(self, weight: F) {
        let WeighAndDraw { counts, lanes, n_states, terms, uniforms, sums, lines, totals, states } = self;
        let n_terms = terms.powers.len();
        let groups_of_line = lanes / LANE_GROUP;
        lines.clear();
        for state in 0..n_states {
            lines.extend(terms.adds(state).iter().enumerate().map(|(term, &add)| {
                let low = terms.line(state, term) as usize * groups_of_line;
                Line { low, high: low + terms.highs[term] as usize * groups_of_line, add }
            }));
        }
        sums.resize(n_states, [[0.0; 8]; 2]);
        let (counts, _) = counts.as_chunks::<LANE_GROUP>();
        let (uniforms, _) = uniforms.as_chunks::<LANE_GROUP>();
        let (totals, _) = totals.as_chunks_mut::<LANE_GROUP>();
        let (states, _) = states.as_chunks_mut::<LANE_GROUP>();
        for (group, ((uniforms, totals), states)) in uniforms.iter().zip(totals).zip(states).enumerate() {
            let mut sum = [E::splat(0.0); 2];
            let (sums_of_pairs, sums_of_last) = sums.as_chunks_mut::<2>();
            let pairs = lines.chunks_exact(2 * n_terms);
            let last = pairs.remainder();
            for (lines, [sums, next_sums]) in pairs.zip(sums_of_pairs) {
                let (one, two) = lines.split_at(n_terms);
                let mut weights = weight.cells::<W, E>(one, counts, group);
                let mut next_weights = weight.cells::<W, E>(two, counts, group);
                if weight.is_divided() {
                    let rows = weight.rows::<W, E>(one, counts, group);
                    let next_rows = weight.rows::<W, E>(two, counts, group);
                    for half in 0..2 {
                        let reciprocal = E::splat(1.0).div(rows[half].mul(next_rows[half]));
                        weights[half] = weights[half].mul(next_rows[half].mul(reciprocal));
                        next_weights[half] = next_weights[half].mul(rows[half].mul(reciprocal));
                    }
                }
                for half in 0..2 {
                    sum[half] = sum[half].add(weights[half]);
                    sum[half].store(&mut sums[half]);
                    sum[half] = sum[half].add(next_weights[half]);
                    sum[half].store(&mut next_sums[half]);
                }
            }
            if let [sums] = sums_of_last {
                let mut weights = weight.cells::<W, E>(last, counts, group);
                if weight.is_divided() {
                    let rows = weight.rows::<W, E>(last, counts, group);
                    weights = [weights[0].div(rows[0]), weights[1].div(rows[1])];
                }
                for half in 0..2 {
                    sum[half] = sum[half].add(weights[half]);
                    sum[half].store(&mut sums[half]);
                }
            }
            let mut chosen = [E::splat(0.0); 2];
            let [low, high] = halves(uniforms);
            let targets = [E::load(low).mul(sum[0]), E::load(high).mul(sum[1])];
            for sums in &sums[..n_states - 1] {
                for half in 0..2 {
                    chosen[half] = chosen[half].add_one_where_less(E::load(&sums[half]), targets[half]);
                }
            }
            let halves = halves_mut(totals).into_iter().zip(halves_mut(states)).zip(sum.into_iter().zip(chosen));
            for ((totals, states), (sum, chosen)) in halves {
                E::load(totals).mul(sum).store(totals);
                let chosen = chosen.whole();
                for lane in 0..8 {
                    states[lane] = W::from_index(chosen[lane] as usize);
                }
            }
        }
    }
}

#[inline(always)]
fn halves<T>(group: &[T; LANE_GROUP]) -> [&[T; 8]; 2] {
    let (low, high) = group.split_at(8);
    [low, high].map(|half| half.first_chunk().expect("half a group"))
}

#[inline(always)]
fn halves_mut<T>(group: &mut [T; LANE_GROUP]) -> [&mut [T; 8]; 2] {
    let (low, high) = group.split_at_mut(8);
    [low, high].map(|half| half.first_chunk_mut().expect("half a group"))
}

#[cfg(test)]
mod tests {
    use super::super::loops::{Select, Weigh};
    use super::*;
    use crate::math::draw;
    use crate::simd::Isa;
    use crate::{Purpose, Seed};
    use rand::Rng;

    /// Lines with random counters, for so many states, cells and rows.
    struct Case<W> {
        counts: Vec<W>,
        lanes: usize,
        n_states: usize,
        n_cells: usize,
        powers: Vec<u32>,
        bases: Vec<u32>,
        highs: Vec<u32>,
        offsets: Vec<u32>,
        adds: Vec<f64>,
        is_even: bool,
        uniforms: Vec<f64>,
    }

    impl<W: Word> Case<W> {
        fn draw(rng: &mut impl Rng) -> Self {
            let mut below = |n: u64| draw::below(n, rng) as usize;
            let lanes = [16, 32, 64, 256][below(4)];
            let (n_states, n_cells, n_rows) = (1 + below(9), below(5), below(3));
            let n_terms = (n_cells + n_rows).max(1);
            let n_cells = n_terms - n_rows;
            // No two cells of a token are the same line, so only rows have powers.
            let powers = (0..n_terms).map(|term| if term < n_cells { 1 } else { 1 + below(3) as u32 }).collect();
            // Each term has its own lines, the high words behind the low ones.
            let bases = (0..n_terms).map(|term| (term * 2 * n_states) as u32).collect();
            let highs = (0..n_terms)
                .map(|term| if below(if term < n_cells { 8 } else { 2 }) == 1 { n_states as u32 } else { 0 });
            let highs: Vec<u32> = highs.collect();
            let offsets = (0..n_states).flat_map(|state| vec![state as u32; n_terms]).collect();
            let is_even = below(2) == 0;
            let counts = (0..n_terms * 2 * n_states * lanes).map(|_| W::from_index(below(200))).collect();
            let n_adds = if is_even { n_terms } else { n_terms * n_states };
            let adds = (0..n_adds).map(|_| 0.01 + below(1000) as f64 / 77.0).collect();
            let uniforms = (0..lanes).map(|_| draw::open_unit(rng)).collect();
            Case { counts, lanes, n_states, n_cells, powers, bases, highs, offsets, adds, is_even, uniforms }
        }

        fn terms(&self) -> Terms<'_> {
            Terms {
                n_cells: self.n_cells,
                powers: &self.powers,
                bases: &self.bases,
                highs: &self.highs,
                offsets: &self.offsets,
                adds: &self.adds,
                ln_adds: None,
                is_even: self.is_even,
            }
        }

        /// Sums of the weights, and states.
        fn fused(&self, isa: Isa) -> (Vec<f64>, Vec<W>) {
            let (mut totals, mut states) = (vec![1.0; self.lanes], vec![W::default(); self.lanes]);
            isa.run_eights(WeighAndDraw {
                counts: &self.counts,
                lanes: self.lanes,
                n_states: self.n_states,
                terms: self.terms(),
                uniforms: &self.uniforms,
                sums: &mut Vec::new(),
                lines: &mut Vec::new(),
                totals: &mut totals,
                states: &mut states,
            });
            (totals, states)
        }

        /// The same in two steps, each state divided by its own rows.
        fn in_steps(&self) -> (Vec<f64>, Vec<W>) {
            let mut theta = vec![0.0; self.n_states * self.lanes];
            let (counts, lanes, terms) = (self.counts.as_slice(), self.lanes, self.terms());
            let states = 0..self.n_states;
            Isa::SCALAR.run(Weigh { counts, lanes, states, terms, is_running_sum: true, theta: &mut theta });
            let mut states = vec![W::default(); lanes];
            Isa::SCALAR.run(Select { theta: &theta, uniforms: &self.uniforms, lanes, states: &mut states });
            (theta[(self.n_states - 1) * lanes..].to_vec(), states)
        }
    }

    fn fusing_changes_nothing<W: Word>(seed: u64) {
        let mut rng = Seed(seed).stream(Purpose::Urn, 0, 0, 0);
        for _ in 0..300 {
            let case = Case::<W>::draw(&mut rng);
            let (totals, states) = case.fused(Isa::SCALAR);
            for isa in Isa::available() {
                assert_eq!((totals.clone(), states.clone()), case.fused(isa), "{isa:?}");
            }
            let (plain_totals, plain_states) = case.in_steps();
            for (total, plain) in totals.iter().zip(&plain_totals) {
                // A few roundings in each of up to ten sums of products of up to nine factors.
                assert!((total - plain).abs() <= 100.0 * f64::EPSILON * plain, "{total} for {plain}");
            }
            // A uniform number between the two sums, which are that close, has never been drawn.
            assert_eq!(states, plain_states);
        }
    }

    #[test]
    fn weighing_and_drawing_in_one_go_is_doing_so_in_steps() {
        fusing_changes_nothing::<u8>(1);
        fusing_changes_nothing::<u16>(2);
        fusing_changes_nothing::<u32>(3);
    }
}
