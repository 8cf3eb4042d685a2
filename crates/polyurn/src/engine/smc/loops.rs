//! The loops over particles: they are innermost, so that the compiler turns them into vector code.

use super::prepared::Terms;
use super::word::Word;
use crate::engine::lines::BucketShape;
use crate::simd::Job;

/// Up to this many states a choice is counted by comparing it with every state, which vectorises; beyond, one by one.
const COMPARE_UP_TO: usize = 24;

/// Lanes that are drawn together: their running numbers stay in registers.
pub const LANE_GROUP: usize = 16;

/// The weights of some states, or their running sums.
#[derive(Debug)]
pub struct Weigh<'a, W> {
    pub counts: &'a [W],
    pub lanes: usize,
    pub states: std::ops::Range<usize>,
    pub terms: Terms<'a>,
    pub is_running_sum: bool,
    pub theta: &'a mut [f64],
}

impl<W: Word> Job for Weigh<'_, W> {
    #[inline(always)]
    fn run(self) {
        let Weigh { counts, lanes, terms, .. } = self;
        if let Some(ln_adds) = terms.ln_adds {
            return weigh_logs(counts, lanes, self.states, terms, ln_adds, self.theta);
        }
        let powers = terms.powers;
        let high_words = HighWords::of(terms);
        for (row, state) in self.states.enumerate() {
            let (before, rest) = self.theta.split_at_mut(row * lanes);
            let out = &mut rest[..lanes];
            let state = State { counts, terms, state, high_words };
            match (terms.n_cells, &powers[terms.n_cells..]) {
                (1, []) => state.product::<1, 0>(out),
                (2, []) => state.product::<2, 0>(out),
                (3, []) => state.product::<3, 0>(out),
                (1, [1]) => state.product::<1, 1>(out),
                (2, [1]) => state.product::<2, 1>(out),
                (3, [1]) => state.product::<3, 1>(out),
                (3, [2]) => state.product::<3, 2>(out),
                _ => {
                    out.fill(1.0);
                    (0..powers.len()).for_each(|term| state.take_in(term, out));
                }
            }
            if self.is_running_sum && row > 0 {
                let previous = &before[(row - 1) * lanes..];
                out.iter_mut().zip(previous).for_each(|(out, previous)| *out += previous);
            }
        }
    }
}

/// A counter in every lane: low and high words.
#[derive(Debug, Clone, Copy)]
pub struct Counters<'a, W> {
    pub low: &'a [W],
    /// Zeros where there are none.
    pub high: &'a [W],
}

impl<'a, W: Word> Counters<'a, W> {
    /// Those of a line, whose high words are so many lines further; 0 if there are none.
    #[inline(always)]
    pub fn of(counts: &'a [W], lanes: usize, line: usize, high: usize) -> Self {
        let of_line = |line: usize| &counts[line * lanes..][..lanes];
        let high = if high == 0 { &W::NO_HIGHS[..lanes] } else { of_line(line + high) };
        Counters { low: of_line(line), high }
    }
}

/// Which of a state's terms have high words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HighWords {
    Nowhere,
    InRows,
    Anywhere,
}

impl HighWords {
    #[inline(always)]
    fn of(terms: Terms<'_>) -> Self {
        let has = |highs: &[u32]| highs.iter().any(|&high| high != 0);
        let (cells, rows) = terms.highs.split_at(terms.n_cells);
        match (has(cells), has(rows)) {
            (false, false) => HighWords::Nowhere,
            (false, true) => HighWords::InRows,
            _ => HighWords::Anywhere,
        }
    }
}

/// A state to be weighed.
struct State<'a, W> {
    counts: &'a [W],
    terms: Terms<'a>,
    state: usize,
    high_words: HighWords,
}

impl<W: Word> State<'_, W> {
    /// Its weight for the commonest numbers of terms: N cells and, unless D is 0, one row to the power D.
    #[inline(always)]
    fn product<const N: usize, const D: u32>(&self, out: &mut [f64]) {
        match self.high_words {
            HighWords::Nowhere => self.product_of::<N, D, false, false>(out),
            HighWords::InRows => self.product_of::<N, D, false, true>(out),
            HighWords::Anywhere => self.product_of::<N, D, true, true>(out),
        }
    }

    #[inline(always)]
    fn product_of<const N: usize, const D: u32, const HIGH_CELLS: bool, const HIGH_ROWS: bool>(&self, out: &mut [f64]) {
        let lanes = out.len();
        let adds = self.terms.adds(self.state);
        let mut low = [W::NO_HIGHS.as_slice(); N];
        let mut high = [W::NO_HIGHS.as_slice(); N];
        for ix in 0..N {
            let counters = self.terms.counters(self.counts, lanes, self.state, ix);
            (low[ix], high[ix]) = (counters.low, counters.high);
        }
        let row = if D > 0 {
            self.terms.counters(self.counts, lanes, self.state, N)
        } else {
            Counters { low: W::NO_HIGHS, high: W::NO_HIGHS }
        };
        for lane in 0..lanes {
            let cell = |ix: usize| adds[ix] + real::<W, HIGH_CELLS>(low[ix], high[ix], lane);
            let mut weight = cell(0);
            for ix in 1..N {
                weight *= cell(ix);
            }
            if D > 0 {
                let factor = adds[N] + real::<W, HIGH_ROWS>(row.low, row.high, lane);
                weight /= if D == 2 { factor * factor } else { factor };
            }
            out[lane] = weight;
        }
    }
}

impl<W: Word> State<'_, W> {
    /// Multiplies one term of many into the weight, or divides by it. A power that the compiler knows keeps the loop one of
    /// vectors.
    #[inline(always)]
    fn take_in(&self, term: usize, out: &mut [f64]) {
        let has_high = self.terms.highs[term] != 0;
        match (self.terms.powers[term], has_high) {
            (1, false) => self.take_in_power::<1, false>(term, out),
            (2, false) => self.take_in_power::<2, false>(term, out),
            (3, false) => self.take_in_power::<3, false>(term, out),
            (4, false) => self.take_in_power::<4, false>(term, out),
            (1, true) => self.take_in_power::<1, true>(term, out),
            (2, true) => self.take_in_power::<2, true>(term, out),
            (3, true) => self.take_in_power::<3, true>(term, out),
            (4, true) => self.take_in_power::<4, true>(term, out),
            _ => self.take_in_power::<0, true>(term, out),
        }
    }

    /// The same for a power, where 0 means any.
    #[inline(always)]
    fn take_in_power<const POWER: u32, const HAS_HIGH: bool>(&self, term: usize, out: &mut [f64]) {
        let lanes = out.len();
        let add = self.terms.adds(self.state)[term];
        let power = if POWER == 0 { self.terms.powers[term] } else { POWER };
        let Counters { low, high } = self.terms.counters(self.counts, lanes, self.state, term);
        let (low, high) = (&low[..lanes], &high[..lanes]);
        let is_cell = term < self.terms.n_cells;
        for lane in 0..lanes {
            let factor = add + real::<W, HAS_HIGH>(low, high, lane);
            let mut raised = factor;
            for _ in 1..power {
                raised *= factor;
            }
            out[lane] = if is_cell { out[lane] * raised } else { out[lane] / raised };
        }
    }
}

#[inline(always)]
fn real<W: Word, const HAS_HIGH: bool>(low: &[W], high: &[W], lane: usize) -> f64 {
    if HAS_HIGH { low[lane].real_with(high[lane]) } else { low[lane].real() }
}

#[inline(always)]
fn weigh_logs<W: Word>(
    counts: &[W],
    lanes: usize,
    states: std::ops::Range<usize>,
    terms: Terms<'_>,
    ln_adds: &[f64],
    theta: &mut [f64],
) {
    for (state, out) in states.zip(theta.chunks_exact_mut(lanes)) {
        out.fill(0.0);
        let adds = terms.adds(state);
        for (term, &power) in terms.powers.iter().enumerate() {
            let counters = terms.counters(counts, lanes, state, term);
            let sign = if term < terms.n_cells { f64::from(power) } else { -f64::from(power) };
            let ln_add = ln_adds[terms.add_at(state) + term];
            for ((out, held), high) in out.iter_mut().zip(counters.low).zip(counters.high) {
                let held = held.real_with(*high);
                *out += sign * if held == 0.0 { ln_add } else { (adds[term] + held).ln() };
            }
        }
    }
}

/// Turns logs into weights relative to the largest of each separator's states, and leaves ln of their sum as message.
pub fn exponentiate(bucket: &BucketShape, theta: &mut [f64], messages: &mut [f64], lanes: usize) {
    for (theta, message) in theta.chunks_exact_mut(bucket.size * lanes).zip(messages.chunks_exact_mut(lanes)) {
        for lane in 0..lanes {
            let largest = (0..bucket.size).map(|value| theta[value * lanes + lane]).fold(f64::NEG_INFINITY, f64::max);
            let mut sum = 0.0;
            for value in 0..bucket.size {
                let entry = &mut theta[value * lanes + lane];
                *entry = if largest == f64::NEG_INFINITY { 0.0 } else { (*entry - largest).exp() };
                sum += *entry;
            }
            message[lane] = largest + sum.ln();
        }
    }
}

/// Multiplies the message of a bucket below into the weights.
#[derive(Debug)]
pub struct Multiply<'a> {
    pub messages: &'a [f64],
    pub entries: &'a [u32],
    pub lanes: usize,
    pub is_log: bool,
    pub theta: &'a mut [f64],
}

impl Job for Multiply<'_> {
    #[inline(always)]
    fn run(self) {
        for (out, &entry) in self.theta.chunks_exact_mut(self.lanes).zip(self.entries) {
            let message = &self.messages[entry as usize * self.lanes..][..self.lanes];
            if self.is_log {
                out.iter_mut().zip(message).for_each(|(out, message)| *out += message);
            } else {
                out.iter_mut().zip(message).for_each(|(out, message)| *out *= message);
            }
        }
    }
}

/// The message of a bucket: its weights summed over the values of its own variable.
#[derive(Debug)]
pub struct SumOut<'a> {
    pub theta: &'a [f64],
    pub message: &'a mut [f64],
    pub lanes: usize,
    pub size: usize,
}

impl Job for SumOut<'_> {
    #[inline(always)]
    fn run(self) {
        let rows = self.theta.chunks_exact(self.size * self.lanes);
        for (row, out) in rows.zip(self.message.chunks_exact_mut(self.lanes)) {
            out.fill(0.0);
            for weights in row.chunks_exact(self.lanes) {
                out.iter_mut().zip(weights).for_each(|(out, weight)| *out += weight);
            }
        }
    }
}

/// Turns weights into their running sums.
#[derive(Debug)]
pub struct RunningSum<'a> {
    pub theta: &'a mut [f64],
    pub lanes: usize,
}

impl Job for RunningSum<'_> {
    #[inline(always)]
    fn run(self) {
        for state in 1..self.theta.len() / self.lanes {
            let (before, rest) = self.theta.split_at_mut(state * self.lanes);
            let previous = &before[(state - 1) * self.lanes..];
            rest[..self.lanes].iter_mut().zip(previous).for_each(|(out, previous)| *out += previous);
        }
    }
}

/// Draws one of the states whose running sums are given, in every lane.
#[derive(Debug)]
pub struct Select<'a, W> {
    pub theta: &'a [f64],
    pub uniforms: &'a [f64],
    pub lanes: usize,
    pub states: &'a mut [W],
}

impl<W: Word> Job for Select<'_, W> {
    #[inline(always)]
    fn run(self) {
        let n_states = self.theta.len() / self.lanes;
        let last = &self.theta[(n_states - 1) * self.lanes..];
        for group in (0..self.lanes).step_by(LANE_GROUP) {
            let mut target = [0.0; LANE_GROUP];
            let mut chosen = [0.0; LANE_GROUP];
            for lane in 0..LANE_GROUP {
                target[lane] = self.uniforms[group + lane] * last[group + lane];
            }
            for state in 0..n_states - 1 {
                let sums: &[f64; LANE_GROUP] =
                    self.theta[state * self.lanes + group..].first_chunk().expect("lanes come in whole groups");
                for lane in 0..LANE_GROUP {
                    chosen[lane] += if sums[lane] < target[lane] { 1.0 } else { 0.0 };
                }
            }
            for lane in 0..LANE_GROUP {
                self.states[group + lane] = W::from_index(chosen[lane] as u32 as usize);
            }
        }
    }
}

/// Adds a step to the line of each lane's state, if that is among the states in question.
#[derive(Debug)]
pub struct Count<'a, W> {
    pub counts: &'a mut [W],
    pub lanes: usize,
    /// First line.
    pub first: usize,
    /// How many lines further the high words are; 0 if there are none.
    pub high: usize,
    /// For each state in question the number of its line.
    pub offsets: &'a [u32],
    /// The first of these states.
    pub first_state: usize,
    pub states: &'a [W],
    pub step: W,
}

impl<W: Word> Job for Count<'_, W> {
    #[inline(always)]
    fn run(self) {
        let Count { counts, lanes, first, high, offsets, first_state, states, step } = self;
        // What a low word comes to when the high one has to follow.
        let edge = if step == W::ONE { W::default() } else { step };
        let zero = W::default();
        if offsets.len() <= COMPARE_UP_TO {
            for (state, &offset) in (first_state..).zip(offsets) {
                let lines = &mut counts[(first + offset as usize) * lanes..];
                let state = W::from_index(state);
                let (line, beyond) = lines.split_at_mut(lanes);
                for (held, &chosen) in line.iter_mut().zip(states) {
                    *held = held.plus(if chosen == state { step } else { zero });
                }
                if high > 0 {
                    let highs = &mut beyond[(high - 1) * lanes..][..lanes];
                    for ((held, high), &chosen) in line.iter().zip(highs).zip(states) {
                        *high = high.plus(if (chosen == state) & (*held == edge) { step } else { zero });
                    }
                }
            }
        } else {
            for (lane, state) in states.iter().enumerate() {
                if let Some(&offset) = offsets.get(state.index().wrapping_sub(first_state)) {
                    let at = (first + offset as usize) * lanes + lane;
                    counts[at] = counts[at].plus(step);
                    if high > 0 && counts[at] == edge {
                        counts[at + high * lanes] = counts[at + high * lanes].plus(step);
                    }
                }
            }
        }
    }
}
