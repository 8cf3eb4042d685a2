//! What is done for one token in all particles of a shard: weigh its hidden states, draw one, count it.

use super::fused::{Line, WeighAndDraw};
use super::loops::{Count, Multiply, RunningSum, Select, SumOut, Weigh, exponentiate};
use super::prepared::Prepared;
use super::word::Word;
use crate::engine::lines::{Kernel, Touch};
use crate::simd::Isa;

/// Buffers for one token in one shard of particles.
#[derive(Debug)]
pub struct Workspace<W> {
    /// Weights of all states, running sums where a bucket stands alone.
    theta: Vec<f64>,
    messages: Vec<f64>,
    /// Probability of the token in each particle; its log in a guarded kernel.
    pub totals: Vec<f64>,
    /// The state drawn in each bucket.
    pub states: Vec<W>,
    old_states: Vec<W>,
    /// Weight that corrects for a token's own uses of a tied table.
    pub corrections: Vec<f64>,
    old_corrections: Vec<f64>,
    /// Buffers of [`WeighAndDraw`].
    sums: Vec<[[f64; 8]; 2]>,
    lines: Vec<Line>,
    /// Whether each bucket's state was drawn when it was weighed.
    is_drawn: Vec<bool>,
}

impl<W: Word> Workspace<W> {
    /// Room for any of these kernels.
    pub fn new(kernels: &[Kernel], lanes: usize) -> Self {
        let most = |of: fn(&Kernel) -> usize| kernels.iter().map(of).max().unwrap_or(0);
        Workspace {
            theta: vec![0.0; most(Kernel::n_states) * lanes],
            messages: vec![0.0; most(Kernel::n_messages) * lanes],
            totals: vec![0.0; lanes],
            states: vec![W::default(); most(|kernel| kernel.buckets.len()) * lanes],
            old_states: vec![W::default(); most(|kernel| kernel.buckets.len()) * lanes],
            corrections: vec![1.0; lanes],
            old_corrections: vec![1.0; lanes],
            sums: Vec::with_capacity(most(Kernel::max_states)),
            lines: Vec::with_capacity(most(Kernel::most_offsets)),
            is_drawn: vec![false; most(|kernel| kernel.buckets.len())],
        }
    }

    /// Bytes of such a workspace and of what else a shard holds beside its lines.
    pub fn bytes(kernels: &[Kernel], lanes: usize) -> f64 {
        let most = |of: fn(&Kernel) -> usize| kernels.iter().map(of).max().unwrap_or(0) as f64;
        // Weights and messages; states, twice; totals, corrections, twice, and the weight itself; uniform numbers as they
        // are drawn and as they are used.
        let n_buckets = most(|kernel| kernel.buckets.len());
        let of_lanes = 8.0
            * lanes as f64
            * (most(Kernel::n_states) + most(Kernel::n_messages) + n_buckets + 4.0 + 2.0 * (n_buckets + 1.0));
        // Running sums of some lanes, and lines.
        let of_states = most(Kernel::max_states) * size_of::<[[f64; 8]; 2]>() as f64;
        of_lanes + of_states + most(Kernel::most_offsets) * size_of::<Line>() as f64
    }

    /// Weighs all states of the token: afterwards `totals` holds its probability, or ln of it if guarded. Where it costs
    /// less, states are drawn on the way, with one uniform number per lane and bucket; [`Workspace::draw`] does the rest.
    pub fn weigh(
        &mut self,
        isa: Isa,
        kernel: &Kernel,
        prepared: &Prepared,
        counts: &[W],
        uniforms: &[f64],
        lanes: usize,
    ) {
        self.totals.fill(if prepared.is_guarded() { 0.0 } else { 1.0 });
        let is_fused = !prepared.is_guarded() && prepared.may_share_divisions();
        for (ix, bucket) in kernel.buckets.iter().enumerate() {
            let theta = &mut self.theta[kernel.first_state[ix] * lanes..][..bucket.n_states * lanes];
            let terms = prepared.terms(kernel, ix);
            self.is_drawn[ix] = is_fused && kernel.stands_alone(ix) && !terms.powers.is_empty();
            if self.is_drawn[ix] {
                isa.run_eights(WeighAndDraw {
                    counts,
                    lanes,
                    n_states: bucket.n_states,
                    terms,
                    uniforms: &uniforms[ix * lanes..][..lanes],
                    sums: &mut self.sums,
                    lines: &mut self.lines,
                    totals: &mut self.totals,
                    states: &mut self.states[ix * lanes..][..lanes],
                });
                continue;
            }
            let is_root = bucket.parent.is_none();
            let has_messages = !kernel.children[ix].is_empty();
            isa.run(Weigh {
                counts,
                lanes,
                states: 0..bucket.n_states,
                terms,
                is_running_sum: is_root && !has_messages && !prepared.is_guarded(),
                theta,
            });
            for &child in &kernel.children[ix] {
                let shape = &kernel.buckets[child];
                let n_messages = shape.n_states / shape.size;
                let messages = &self.messages[kernel.first_message[child] * lanes..][..n_messages * lanes];
                let entries = &shape.message_of_parent_state;
                isa.run(Multiply { messages, entries, lanes, is_log: prepared.is_guarded(), theta });
            }
            if prepared.is_guarded() {
                exponentiate(bucket, theta, &mut self.messages[kernel.first_message[ix] * lanes..], lanes);
            }
            if is_root {
                if has_messages || prepared.is_guarded() {
                    isa.run(RunningSum { theta, lanes });
                }
                if prepared.is_guarded() {
                    let ln_total = &self.messages[kernel.first_message[ix] * lanes..][..lanes];
                    self.totals.iter_mut().zip(ln_total).for_each(|(total, ln)| *total += ln);
                } else {
                    let last = &theta[(bucket.n_states - 1) * lanes..];
                    self.totals.iter_mut().zip(last).for_each(|(total, last)| *total *= last);
                }
            } else if !prepared.is_guarded() {
                let message = &mut self.messages[kernel.first_message[ix] * lanes..];
                isa.run(SumOut { theta, message, lanes, size: bucket.size });
            }
        }
    }

    /// Draws a state in every bucket that [`Workspace::weigh`] has not drawn from, with the uniform numbers it was given.
    pub fn draw(&mut self, isa: Isa, kernel: &Kernel, uniforms: &[f64], lanes: usize) {
        for (ix, bucket) in kernel.buckets.iter().enumerate().rev().filter(|(ix, _)| !self.is_drawn[*ix]) {
            let theta = &self.theta[kernel.first_state[ix] * lanes..][..bucket.n_states * lanes];
            let uniforms = &uniforms[ix * lanes..][..lanes];
            let Some(parent) = bucket.parent else {
                isa.run(Select { theta, uniforms, lanes, states: &mut self.states[ix * lanes..][..lanes] });
                continue;
            };
            for lane in 0..lanes {
                let parent_state = self.states[parent * lanes + lane].index();
                let first = bucket.message_of_parent_state[parent_state] as usize * bucket.size;
                let weight = |value: usize| theta[(first + value) * lanes + lane];
                let total: f64 = (0..bucket.size).map(weight).sum();
                let mut target = uniforms[lane] * total;
                let mut chosen = 0;
                for value in 0..bucket.size {
                    let weight = weight(value);
                    if weight > 0.0 {
                        chosen = value;
                        target -= weight;
                        if target <= 0.0 {
                            break;
                        }
                    }
                }
                self.states[ix * lanes + lane] = W::from_index(first + chosen);
            }
        }
    }

    /// Number of uniform numbers that a token takes.
    pub fn n_uniforms(kernel: &Kernel, lanes: usize) -> usize {
        kernel.buckets.len() * lanes
    }

    /// Where a tied table is used twice in different buckets: the token's probability over the one it was drawn with.
    pub fn correct(&mut self, kernel: &Kernel, prepared: &Prepared, counts: &[W], lanes: usize) {
        corrections(kernel, prepared, counts, lanes, &self.states, &mut self.corrections);
    }

    /// Takes the token's states out of the lines.
    pub fn remove(
        &mut self,
        isa: Isa,
        kernel: &Kernel,
        prepared: &Prepared,
        states: &[W],
        counts: &mut [W],
        lanes: usize,
    ) {
        count(isa, kernel, prepared, states, counts, lanes, Change::remove());
    }

    /// Adds the drawn states to the lines.
    pub fn add(&self, isa: Isa, kernel: &Kernel, prepared: &Prepared, counts: &mut [W], lanes: usize) {
        count(isa, kernel, prepared, &self.states, counts, lanes, Change::add());
    }

    /// Where draws need a correction: keeps a drawn state with the Metropolis probability, else goes back to the old one.
    pub fn accept_or_keep(
        &mut self,
        kernel: &Kernel,
        prepared: &Prepared,
        old_states: &[W],
        counts: &[W],
        uniforms: &[f64],
        lanes: usize,
    ) {
        self.old_states[..old_states.len()].copy_from_slice(old_states);
        corrections(kernel, prepared, counts, lanes, &self.states, &mut self.corrections);
        corrections(kernel, prepared, counts, lanes, &self.old_states, &mut self.old_corrections);
        for lane in 0..lanes {
            if uniforms[lane] * self.old_corrections[lane] > self.corrections[lane] {
                for bucket in 0..kernel.buckets.len() {
                    self.states[bucket * lanes + lane] = self.old_states[bucket * lanes + lane];
                }
            }
        }
    }
}

/// Ratios of the token's probability, its own earlier uses of a tied table counted, to the one it was drawn with.
fn corrections<W: Word>(
    kernel: &Kernel,
    prepared: &Prepared,
    counts: &[W],
    lanes: usize,
    states: &[W],
    out: &mut [f64],
) {
    out.fill(1.0);
    let state_and_place = |ix: usize, lane: usize| {
        let bucket = kernel.terms[ix].bucket;
        let state = states[bucket * lanes + lane].index();
        (prepared.terms(kernel, bucket), state, kernel.place_in_bucket[ix])
    };
    for (ix, term) in kernel.terms.iter().enumerate().filter(|(_, term)| !term.earlier.is_empty()) {
        for lane in 0..lanes {
            let (terms, state, place) = state_and_place(ix, lane);
            let is_same_line = |&&other: &&usize| {
                let (others, state_of_other, place_of_other) = state_and_place(other, lane);
                others.line(state_of_other, place_of_other) == terms.line(state, place)
            };
            let n_earlier = term.earlier.iter().filter(is_same_line).count() as f64;
            if n_earlier > 0.0 {
                let counters = terms.counters(counts, lanes, state, place);
                let held = terms.adds(state)[place] + counters.low[lane].real_with(counters.high[lane]);
                let ratio = (held + n_earlier) / held;
                out[lane] *= if term.is_numerator { ratio } else { 1.0 / ratio };
            }
        }
    }
}

/// A change of the lines of a token's states.
#[derive(Clone, Copy)]
struct Change<W> {
    step: W,
    /// Leaves other states alone.
    only: Option<usize>,
}

impl<W: Word> Change<W> {
    fn add() -> Self {
        Change { step: W::ONE, only: None }
    }

    fn remove() -> Self {
        Change { step: W::ONE.negative(), only: None }
    }
}

/// Changes the line of each touch whose block is kept.
fn count<W: Word>(
    isa: Isa,
    kernel: &Kernel,
    prepared: &Prepared,
    states: &[W],
    counts: &mut [W],
    lanes: usize,
    change: Change<W>,
) {
    for (ix, touch) in kernel.touches.iter().enumerate() {
        if prepared.listed.iter().any(|listed| listed.touch == ix as u32) {
            continue;
        }
        let among = change.only.map_or(0..touch.offsets.len(), |state| state..state + 1);
        let first_state = among.start;
        let offsets = &touch.offsets[among];
        let states = &states[touch.bucket * lanes..][..lanes];
        let (first, high) = prepared.base(ix);
        isa.run(Count { counts, lanes, first, high, offsets, first_state, states, step: change.step });
    }
}

/// Adds to the lines in the lanes whose state is this one, in a kernel with one bucket.
pub fn add_one<W: Word>(
    isa: Isa,
    kernel: &Kernel,
    prepared: &Prepared,
    states: &[W],
    counts: &mut [W],
    lanes: usize,
    state: usize,
) {
    count(isa, kernel, prepared, states, counts, lanes, Change { only: Some(state), ..Change::add() });
}

/// Weights of one state of a kernel with one bucket.
pub fn weigh_one<W: Word>(
    isa: Isa,
    kernel: &Kernel,
    prepared: &Prepared,
    counts: &[W],
    lanes: usize,
    state: usize,
    out: &mut [f64],
) {
    let mut terms = prepared.terms(kernel, 0);
    terms.ln_adds = None;
    isa.run(Weigh { counts, lanes, states: state..state + 1, terms, is_running_sum: false, theta: out });
}

/// Adds one token's states to rebuilt lines, for a block that is not kept: those have no high words.
pub fn rebuild<W: Word>(isa: Isa, touch: &Touch, states: &[W], counts: &mut [W], first: usize, lanes: usize) {
    isa.run(Count { counts, lanes, first, high: 0, offsets: &touch.offsets, first_state: 0, states, step: W::ONE });
}
