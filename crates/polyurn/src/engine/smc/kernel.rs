//! What is done for one token in all particles: weigh its hidden states, draw one, count it.
//!
//! A kernel is compiled once per pattern. It is a list of buckets, each a table of states: usually one bucket, whose
//! states are all joint values of the unseen nodes; for larger hidden parts the buckets of the plan's elimination, with
//! messages between them. The weight of a state is a product of (pseudo-count + line) over cells, divided by the same
//! over rows. Loops run over particles innermost, so the compiler turns them into vector code.

use super::layout::{Block, Layout, Place};
use crate::graph::NodeIndex;
use crate::simd::{Gathered, Isa, Job};
use std::fmt::Debug;

/// Up to this many states a choice is counted by comparing it with every state, which vectorises; beyond, one by one.
const COMPARE_UP_TO: usize = 24;

/// How far from zero ln of a product of terms may be for it to be computed as a product; beyond, logs are added up.
pub const LN_RANGE: f64 = 600.0;

/// The integer a line consists of: 16 bits where that is enough, else 32.
pub trait Word: Gathered + Default + PartialEq + Send + Sync + Debug + 'static {
    /// From an index that fits.
    fn from_index(index: usize) -> Self;
    /// As an index.
    fn index(self) -> usize;
    /// As a real number.
    fn real(self) -> f64;
    /// Adds, around the end: minus one is adding the largest number.
    fn plus(self, other: Self) -> Self;
    /// 1 if `flag`, else 0.
    fn flag(flag: bool) -> Self;
    /// 0 less this, around the end.
    fn negative(self) -> Self;
}

macro_rules! word {
    ($int:ty) => {
        impl Word for $int {
            #[inline(always)]
            fn from_index(index: usize) -> Self {
                index as $int
            }
            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn real(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn flag(flag: bool) -> Self {
                <$int>::from(flag)
            }
            #[inline(always)]
            fn negative(self) -> Self {
                self.wrapping_neg()
            }
        }
    };
}
word!(u16);
word!(u32);

/// States of one bucket. The variable that is drawn here is fastest; the others, drawn before, are its separator.
#[derive(Debug, Clone)]
pub struct BucketShape {
    /// Number of states.
    pub n_states: usize,
    /// Values of the variable that is drawn here.
    pub size: usize,
    /// The bucket that takes this one's message.
    pub parent: Option<usize>,
    /// For each state of the parent the entry of this bucket's message.
    pub message_of_parent_state: Vec<u32>,
    /// The nodes whose values a state stands for, and their sizes; the last is fastest.
    pub nodes: Vec<(NodeIndex, u32)>,
}

impl BucketShape {
    /// A bucket on its own.
    pub fn root(n_states: usize, nodes: Vec<(NodeIndex, u32)>) -> Self {
        BucketShape { n_states, size: n_states, parent: None, message_of_parent_state: Vec::new(), nodes }
    }
}

/// A line that every token of the pattern adds one to.
#[derive(Debug)]
pub struct Touch {
    /// Class of the line.
    pub class: usize,
    /// The nodes whose values pick it.
    pub nodes: Vec<NodeIndex>,
    /// The bucket whose state decides.
    pub bucket: usize,
    /// For each state of the bucket the line within the block.
    pub offsets: Vec<u32>,
}

/// A factor of a state's weight: pseudo-count plus line.
#[derive(Debug)]
pub struct Term {
    /// Whose pseudo-counts.
    pub counted: usize,
    /// The touch with the same line.
    pub touch: usize,
    /// The bucket it multiplies into.
    pub bucket: usize,
    /// Cells multiply, rows divide.
    pub is_numerator: bool,
    /// How often.
    pub power: u32,
    /// For each state of the bucket the line within the block.
    pub offsets: Vec<u32>,
    /// Terms of the same tied table that the token has used before: where they hit the same line, this one sees one more.
    pub earlier: Vec<usize>,
}

/// A pattern, compiled.
#[derive(Debug)]
pub struct Kernel {
    pub buckets: Vec<BucketShape>,
    pub touches: Vec<Touch>,
    pub terms: Vec<Term>,
    /// False when a tied table is used twice in different buckets: draws then leave the token's own uses out, and a
    /// weight corrects for that.
    pub is_exact: bool,
    /// Terms of each bucket, cells first.
    terms_of: Vec<Vec<usize>>,
    /// Their powers.
    powers: Vec<Vec<u32>>,
    /// How many of them are cells.
    n_numerators: Vec<usize>,
    /// For each bucket, state and term the line within the term's block.
    offsets: Vec<Vec<u32>>,
    /// For each term its place among those of its bucket.
    place_in_bucket: Vec<usize>,
    /// Whether some term sees the token's own earlier uses of a tied table.
    is_tied: bool,
    /// Buckets that send their message to each bucket.
    children: Vec<Vec<usize>>,
    /// First state of each bucket among the states of all.
    first_state: Vec<usize>,
    /// First entry of each bucket's message among the entries of all.
    first_message: Vec<usize>,
    n_states: usize,
    n_messages: usize,
}

impl Kernel {
    /// Puts terms and buckets together.
    pub fn new(buckets: Vec<BucketShape>, touches: Vec<Touch>, terms: Vec<Term>, is_exact: bool) -> Self {
        let mut terms_of = vec![Vec::new(); buckets.len()];
        for wanted in [true, false] {
            let of_kind = terms.iter().enumerate().filter(|(_, term)| term.is_numerator == wanted);
            of_kind.for_each(|(ix, term)| terms_of[term.bucket].push(ix));
        }
        let powers = terms_of.iter().map(|of| of.iter().map(|&ix| terms[ix].power).collect()).collect();
        let n_numerators = terms_of.iter().map(|of| of.iter().filter(|&&ix| terms[ix].is_numerator).count()).collect();
        let mut place_in_bucket = vec![0; terms.len()];
        for of_bucket in &terms_of {
            of_bucket.iter().enumerate().for_each(|(place, &ix)| place_in_bucket[ix] = place);
        }
        let offsets = buckets.iter().zip(&terms_of).map(|(bucket, of)| {
            (0..bucket.n_states).flat_map(|state| of.iter().map(move |&ix| (ix, state))).collect::<Vec<_>>()
        });
        let offsets = offsets
            .map(|pairs| pairs.into_iter().map(|(ix, state): (usize, usize)| terms[ix].offsets[state]).collect())
            .collect();
        let is_tied = terms.iter().any(|term| !term.earlier.is_empty());
        let mut children = vec![Vec::new(); buckets.len()];
        let (mut first_state, mut first_message) = (Vec::new(), Vec::new());
        let (mut n_states, mut n_messages) = (0, 0);
        for (ix, bucket) in buckets.iter().enumerate() {
            if let Some(parent) = bucket.parent {
                children[parent].push(ix);
            }
            first_state.push(n_states);
            first_message.push(n_messages);
            n_states += bucket.n_states;
            n_messages += bucket.n_states / bucket.size;
        }
        Kernel {
            buckets,
            touches,
            terms,
            is_exact,
            terms_of,
            powers,
            n_numerators,
            offsets,
            place_in_bucket,
            is_tied,
            children,
            first_state,
            first_message,
            n_states,
            n_messages,
        }
    }

    /// The unseen nodes of the pattern, ascending.
    pub fn unseen_nodes(&self) -> Vec<NodeIndex> {
        let mut nodes: Vec<NodeIndex> =
            self.buckets.iter().flat_map(|bucket| &bucket.nodes).map(|node| node.0).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Size of an unseen node.
    pub fn size_of(&self, node: NodeIndex) -> usize {
        let mut nodes = self.buckets.iter().flat_map(|bucket| &bucket.nodes);
        nodes.find(|other| other.0 == node).map_or(1, |found| found.1 as usize)
    }

    /// Values of the unseen nodes, ascending by node, when each bucket is in this state.
    pub fn values_of_states(&self, state_of: &dyn Fn(usize) -> usize) -> Vec<u32> {
        let mut values: Vec<(NodeIndex, u32)> = Vec::new();
        for (ix, bucket) in self.buckets.iter().enumerate() {
            let mut rest = state_of(ix);
            for &(node, size) in bucket.nodes.iter().rev() {
                values.push((node, (rest % size as usize) as u32));
                rest /= size as usize;
            }
        }
        // A node may be in several buckets, with the same value in each.
        values.sort_unstable();
        values.dedup();
        values.into_iter().map(|(_, value)| value).collect()
    }

    /// States of all buckets together.
    pub fn n_states(&self) -> usize {
        self.n_states
    }

    /// Entries of all messages together.
    pub fn n_messages(&self) -> usize {
        self.n_messages
    }

    /// Largest number of states of one bucket.
    pub fn max_states(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.n_states).max().unwrap_or(1)
    }

    /// Work for one token of one particle, in terms times states.
    pub fn cost(&self) -> f64 {
        let of_bucket = |ix: usize| (self.buckets[ix].n_states * (self.terms_of[ix].len() + 1)) as f64;
        (0..self.buckets.len()).map(of_bucket).sum::<f64>() + self.touches.len() as f64
    }
}

/// Where the lines of blocks are.
#[derive(Debug, Default)]
pub struct Storage {
    /// First line of each block; [`LISTED`] for blocks that are rebuilt from their tokens when they are needed.
    pub first_line: Vec<u32>,
    /// Lines of all blocks that are kept.
    pub n_lines: usize,
    /// Lines to rebuild blocks in, behind the others.
    pub n_scratch: usize,
}

/// No lines: the block is rebuilt when needed.
pub const LISTED: u32 = u32::MAX;

/// The factor of all pseudo-counts, and what follows from it.
#[derive(Debug)]
pub struct Heat {
    /// The factor.
    pub scale: f64,
    /// For each kernel whether logs are added up.
    is_guarded: Vec<bool>,
}

impl Heat {
    /// Looks at every kernel once for all tokens.
    pub fn new(layout: &Layout, scale: f64) -> Self {
        Heat { scale, is_guarded: (0..layout.kernels.len()).map(|kernel| layout.is_guarded(kernel, scale)).collect() }
    }
}

/// A token's kernel with its lines and pseudo-counts filled in, shared by all particles.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Number of the kernel.
    pub kernel: usize,
    /// First line of each touch, the seen values' offset included.
    bases: Vec<u32>,
    /// Blocks to be rebuilt before the lines are read: touch and block.
    pub listed: Vec<(u32, u32)>,
    /// First line of each term, bucket by bucket.
    term_bases: Vec<u32>,
    /// What is added to the line of each term: for all states, or state by state.
    adds: Vec<f64>,
    /// For each bucket where its terms start, and where their pseudo-counts do.
    first_term: Vec<usize>,
    first_add: Vec<usize>,
    /// Whether pseudo-counts are the same for all states.
    is_even: bool,
    /// True when products could underflow, so logs are added up.
    is_guarded: bool,
    /// In a guarded kernel, ln of what is added, right even where that underflows.
    ln_adds: Vec<f64>,
}

impl Prepared {
    /// Fills in a record's places.
    pub fn fill(&mut self, layout: &Layout, storage: &Storage, kernel_ix: usize, places: &[Place], heat: &Heat) {
        let scale = heat.scale;
        let kernel = &layout.kernels[kernel_ix];
        self.kernel = kernel_ix;
        self.bases.clear();
        self.listed.clear();
        self.term_bases.clear();
        self.adds.clear();
        self.ln_adds.clear();
        self.first_term.clear();
        self.first_add.clear();
        let mut scratch = storage.n_lines as u32;
        for (ix, (touch, place)) in kernel.touches.iter().zip(places).enumerate() {
            let first = storage.first_line[place.block as usize];
            if first == LISTED {
                // Uses of one block by one token share their lines, so that they are known to be the same.
                let twin = self.listed.iter().find(|(_, block)| *block == place.block);
                match twin.map(|&(other, _)| self.bases[other as usize]) {
                    Some(base) => self.bases.push(base),
                    None => {
                        self.bases.push(scratch);
                        scratch += layout.classes[touch.class].interior as u32;
                    }
                }
                self.listed.push((ix as u32, place.block));
            } else {
                self.bases.push(first + place.offset);
            }
        }
        self.is_guarded = heat.is_guarded[kernel_ix];
        self.is_even = !(kernel.is_tied && kernel.is_exact) && layout.is_even[kernel_ix];
        for (bucket, terms) in kernel.buckets.iter().zip(&kernel.terms_of) {
            self.first_term.push(self.term_bases.len());
            self.first_add.push(self.adds.len());
            self.term_bases.extend(terms.iter().map(|&ix| self.bases[kernel.terms[ix].touch]));
            let n_states = if self.is_even { 1 } else { bucket.n_states };
            for state in 0..n_states {
                for &term_ix in terms {
                    let term = &kernel.terms[term_ix];
                    let place = places[term.touch];
                    let block: &Block = &layout.blocks[place.block as usize];
                    let pseudo = layout.pseudo(term.counted, block, (place.offset + term.offsets[state]) as usize);
                    let bump = if kernel.is_exact { self.n_earlier(kernel, term, state, places) } else { 0.0 };
                    let add = pseudo.value * scale + bump;
                    self.adds.push(add);
                    if self.is_guarded {
                        self.ln_adds.push(if bump > 0.0 { add.ln() } else { pseudo.ln() + scale.ln() });
                    }
                }
            }
        }
    }

    /// A bucket's terms as the weighing loops want them.
    fn terms<'p>(&'p self, kernel: &'p Kernel, bucket: usize) -> Terms<'p> {
        let n_terms = kernel.terms_of[bucket].len();
        let n_adds = if self.is_even { n_terms } else { n_terms * kernel.buckets[bucket].n_states };
        let adds = self.first_add[bucket]..self.first_add[bucket] + n_adds;
        Terms {
            n_cells: kernel.n_numerators[bucket],
            powers: &kernel.powers[bucket],
            bases: &self.term_bases[self.first_term[bucket]..][..n_terms],
            offsets: &kernel.offsets[bucket],
            adds: &self.adds[adds.clone()],
            ln_adds: if self.is_guarded { Some(&self.ln_adds[adds]) } else { None },
            is_even: self.is_even,
        }
    }

    /// How many earlier uses of the same tied table hit the same line in this state.
    fn n_earlier(&self, kernel: &Kernel, term: &Term, state: usize, places: &[Place]) -> f64 {
        if term.earlier.is_empty() {
            return 0.0;
        }
        let line = |term: &Term, state: usize| {
            let place = places[term.touch];
            (place.block, place.offset + term.offsets[state])
        };
        let here = line(term, state);
        let is_same = |&&ix: &&usize| {
            let other = &kernel.terms[ix];
            other.bucket == term.bucket && line(other, state) == here
        };
        term.earlier.iter().filter(is_same).count() as f64
    }

    /// Whether totals come as logs.
    pub fn is_guarded(&self) -> bool {
        self.is_guarded
    }
}

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
        }
    }

    /// Bytes of such a workspace.
    pub fn bytes(kernels: &[Kernel], lanes: usize) -> f64 {
        let most = |of: fn(&Kernel) -> usize| kernels.iter().map(of).max().unwrap_or(0) as f64;
        8.0 * lanes as f64 * (most(Kernel::n_states) + most(Kernel::n_messages) + most(|kernel| kernel.buckets.len()))
    }

    /// Weighs all states of the token: afterwards `totals` holds its probability, or ln of it if guarded.
    pub fn weigh(&mut self, isa: Isa, kernel: &Kernel, prepared: &Prepared, counts: &[W], lanes: usize) {
        self.totals.fill(if prepared.is_guarded { 0.0 } else { 1.0 });
        for (ix, bucket) in kernel.buckets.iter().enumerate() {
            let theta = &mut self.theta[kernel.first_state[ix] * lanes..][..bucket.n_states * lanes];
            let stands_alone = bucket.parent.is_none();
            let has_messages = !kernel.children[ix].is_empty();
            isa.run(Weigh {
                counts,
                lanes,
                states: 0..bucket.n_states,
                terms: prepared.terms(kernel, ix),
                is_running_sum: stands_alone && !has_messages && !prepared.is_guarded,
                theta,
            });
            for &child in &kernel.children[ix] {
                let shape = &kernel.buckets[child];
                let n_messages = shape.n_states / shape.size;
                let messages = &self.messages[kernel.first_message[child] * lanes..][..n_messages * lanes];
                let entries = &shape.message_of_parent_state;
                isa.run(Multiply { messages, entries, lanes, is_log: prepared.is_guarded, theta });
            }
            if prepared.is_guarded {
                exponentiate(bucket, theta, &mut self.messages[kernel.first_message[ix] * lanes..], lanes);
            }
            if stands_alone {
                if has_messages || prepared.is_guarded {
                    isa.run(RunningSum { theta, lanes });
                }
                if prepared.is_guarded {
                    let ln_total = &self.messages[kernel.first_message[ix] * lanes..][..lanes];
                    self.totals.iter_mut().zip(ln_total).for_each(|(total, ln)| *total += ln);
                } else {
                    let last = &theta[(bucket.n_states - 1) * lanes..];
                    self.totals.iter_mut().zip(last).for_each(|(total, last)| *total *= last);
                }
            } else if !prepared.is_guarded {
                let message = &mut self.messages[kernel.first_message[ix] * lanes..];
                isa.run(SumOut { theta, message, lanes, size: bucket.size });
            }
        }
    }

    /// Draws a state in every bucket from what [`Workspace::weigh`] left, with one uniform number per lane and bucket.
    pub fn draw(&mut self, isa: Isa, kernel: &Kernel, uniforms: &[f64], lanes: usize) {
        for (ix, bucket) in kernel.buckets.iter().enumerate().rev() {
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

    /// Number of uniform numbers that [`Workspace::draw`] takes.
    pub fn n_uniforms(kernel: &Kernel, lanes: usize) -> usize {
        kernel.buckets.len() * lanes
    }

    /// Weights of one state of a kernel with one bucket.
    #[allow(clippy::too_many_arguments)]
    pub fn weigh_one(
        &self,
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

    /// Counts the lanes whose state is this one.
    #[allow(clippy::too_many_arguments)]
    pub fn count_one(
        &self,
        isa: Isa,
        kernel: &Kernel,
        prepared: &Prepared,
        states: &[W],
        counts: &mut [W],
        lanes: usize,
        state: usize,
    ) {
        for (ix, touch) in kernel.touches.iter().enumerate() {
            if prepared.listed.iter().any(|listed| listed.0 == ix as u32) {
                continue;
            }
            let line = prepared.bases[ix] as usize + touch.offsets[state] as usize;
            let line = &mut counts[line * lanes..][..lanes];
            isa.run(CountOne { line, states, state: W::from_index(state) });
        }
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
        count(isa, kernel, prepared, states, counts, lanes, W::flag(true).negative());
    }

    /// Adds the drawn states to the lines.
    pub fn add(&self, isa: Isa, kernel: &Kernel, prepared: &Prepared, counts: &mut [W], lanes: usize) {
        count(isa, kernel, prepared, &self.states, counts, lanes, W::flag(true));
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

fn corrections<W: Word>(
    kernel: &Kernel,
    prepared: &Prepared,
    counts: &[W],
    lanes: usize,
    states: &[W],
    out: &mut [f64],
) {
    out.fill(1.0);
    let line_of = |ix: usize, lane: usize| {
        let bucket = kernel.terms[ix].bucket;
        let state = states[bucket * lanes + lane].index();
        prepared.terms(kernel, bucket).line_and_add(state, kernel.place_in_bucket[ix])
    };
    for (ix, term) in kernel.terms.iter().enumerate().filter(|(_, term)| !term.earlier.is_empty()) {
        for lane in 0..lanes {
            let (line, add) = line_of(ix, lane);
            let n_earlier = term.earlier.iter().filter(|&&other| line_of(other, lane).0 == line).count() as f64;
            if n_earlier > 0.0 {
                let held = add + counts[line as usize * lanes + lane].real();
                let ratio = (held + n_earlier) / held;
                out[lane] *= if term.is_numerator { ratio } else { 1.0 / ratio };
            }
        }
    }
}

fn count<W: Word>(
    isa: Isa,
    kernel: &Kernel,
    prepared: &Prepared,
    states: &[W],
    counts: &mut [W],
    lanes: usize,
    step: W,
) {
    for (ix, touch) in kernel.touches.iter().enumerate() {
        if prepared.listed.iter().any(|listed| listed.0 == ix as u32) {
            continue;
        }
        let states = &states[touch.bucket * lanes..][..lanes];
        isa.run(Count { counts, lanes, first: prepared.bases[ix] as usize, offsets: &touch.offsets, states, step });
    }
}

/// Adds one token's states to rebuilt lines, for a block that is not kept.
pub fn rebuild<W: Word>(isa: Isa, touch: &Touch, states: &[W], counts: &mut [W], first: usize, lanes: usize) {
    isa.run(Count { counts, lanes, first, offsets: &touch.offsets, states, step: W::flag(true) });
}

impl Prepared {
    /// First line of a touch.
    pub fn base(&self, touch: usize) -> usize {
        self.bases[touch] as usize
    }
}

/// The terms of a bucket: lines and what is added to them.
#[derive(Clone, Copy)]
struct Terms<'a> {
    n_cells: usize,
    powers: &'a [u32],
    bases: &'a [u32],
    offsets: &'a [u32],
    adds: &'a [f64],
    /// Given for a guarded kernel: weights are then logs.
    ln_adds: Option<&'a [f64]>,
    is_even: bool,
}

impl<'a> Terms<'a> {
    #[inline(always)]
    fn add_at(&self, state: usize) -> usize {
        if self.is_even { 0 } else { state * self.powers.len() }
    }

    #[inline(always)]
    fn adds(&self, state: usize) -> &'a [f64] {
        &self.adds[self.add_at(state)..][..self.powers.len()]
    }

    #[inline(always)]
    fn line(&self, state: usize, term: usize) -> u32 {
        self.bases[term] + self.offsets[state * self.powers.len() + term]
    }

    fn line_and_add(&self, state: usize, term: usize) -> (u32, f64) {
        (self.line(state, term), self.adds(state)[term])
    }
}

struct Weigh<'a, W> {
    counts: &'a [W],
    lanes: usize,
    states: std::ops::Range<usize>,
    terms: Terms<'a>,
    is_running_sum: bool,
    theta: &'a mut [f64],
}

impl<W: Word> Job for Weigh<'_, W> {
    #[inline(always)]
    fn run(self) {
        let Weigh { counts, lanes, terms, .. } = self;
        if let Some(ln_adds) = terms.ln_adds {
            return weigh_logs(counts, lanes, self.states, terms, ln_adds, self.theta);
        }
        let powers = terms.powers;
        for (row, state) in self.states.enumerate() {
            let (before, rest) = self.theta.split_at_mut(row * lanes);
            let out = &mut rest[..lanes];
            let adds = terms.adds(state);
            let line = |term: usize| &counts[terms.line(state, term) as usize * lanes..][..lanes];
            match (terms.n_cells, &powers[terms.n_cells..]) {
                (1, []) => product::<W, 1, 0>([line(0)], adds, None, out),
                (2, []) => product::<W, 2, 0>([line(0), line(1)], adds, None, out),
                (3, []) => product::<W, 3, 0>([line(0), line(1), line(2)], adds, None, out),
                (1, [1]) => product::<W, 1, 1>([line(0)], adds, Some(line(1)), out),
                (2, [1]) => product::<W, 2, 1>([line(0), line(1)], adds, Some(line(2)), out),
                (3, [1]) => product::<W, 3, 1>([line(0), line(1), line(2)], adds, Some(line(3)), out),
                (3, [2]) => product::<W, 3, 2>([line(0), line(1), line(2)], adds, Some(line(3)), out),
                _ => {
                    out.fill(1.0);
                    for (term, &add) in adds.iter().enumerate() {
                        for (out, held) in out.iter_mut().zip(line(term)) {
                            let factor = add + held.real();
                            let mut power = factor;
                            for _ in 1..powers[term] {
                                power *= factor;
                            }
                            *out = if term < terms.n_cells { *out * power } else { *out / power };
                        }
                    }
                }
            }
            if self.is_running_sum && row > 0 {
                let previous = &before[(row - 1) * lanes..];
                out.iter_mut().zip(previous).for_each(|(out, previous)| *out += previous);
            }
        }
    }
}

/// One state's weight for the commonest numbers of terms: N cells and one row to the power D.
#[inline(always)]
fn product<W: Word, const N: usize, const D: u32>(cells: [&[W]; N], adds: &[f64], row: Option<&[W]>, out: &mut [f64]) {
    let lanes = out.len();
    let cells = cells.map(|cell| &cell[..lanes]);
    let row = row.map(|row| &row[..lanes]);
    for lane in 0..lanes {
        let mut weight = adds[0] + cells[0][lane].real();
        for ix in 1..N {
            weight *= adds[ix] + cells[ix][lane].real();
        }
        if let Some(row) = row {
            let factor = adds[N] + row[lane].real();
            weight /= if D == 2 { factor * factor } else { factor };
        }
        out[lane] = weight;
    }
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
            let line = &counts[terms.line(state, term) as usize * lanes..][..lanes];
            let sign = if term < terms.n_cells { f64::from(power) } else { -f64::from(power) };
            let ln_add = ln_adds[terms.add_at(state) + term];
            for (out, held) in out.iter_mut().zip(line) {
                let held = held.real();
                *out += sign * if held == 0.0 { ln_add } else { (adds[term] + held).ln() };
            }
        }
    }
}

/// Turns logs into weights relative to the largest of each separator's states, and leaves ln of their sum as message.
fn exponentiate(bucket: &BucketShape, theta: &mut [f64], messages: &mut [f64], lanes: usize) {
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

struct Multiply<'a> {
    messages: &'a [f64],
    entries: &'a [u32],
    lanes: usize,
    is_log: bool,
    theta: &'a mut [f64],
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

struct SumOut<'a> {
    theta: &'a [f64],
    message: &'a mut [f64],
    lanes: usize,
    size: usize,
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

struct RunningSum<'a> {
    theta: &'a mut [f64],
    lanes: usize,
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

/// Lanes that are drawn together: their running numbers stay in registers.
pub const LANE_GROUP: usize = 16;

struct Select<'a, W> {
    theta: &'a [f64],
    uniforms: &'a [f64],
    lanes: usize,
    states: &'a mut [W],
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

struct Count<'a, W> {
    counts: &'a mut [W],
    lanes: usize,
    first: usize,
    offsets: &'a [u32],
    states: &'a [W],
    step: W,
}

impl<W: Word> Job for Count<'_, W> {
    #[inline(always)]
    fn run(self) {
        let Count { counts, lanes, first, offsets, states, step } = self;
        if let [offset] = offsets {
            let line = &mut counts[(first + *offset as usize) * lanes..][..lanes];
            line.iter_mut().for_each(|held| *held = held.plus(step));
        } else if offsets.len() <= COMPARE_UP_TO {
            for (state, &offset) in offsets.iter().enumerate() {
                let line = &mut counts[(first + offset as usize) * lanes..][..lanes];
                let state = W::from_index(state);
                let zero = W::default();
                for (held, &chosen) in line.iter_mut().zip(states) {
                    *held = held.plus(if chosen == state { step } else { zero });
                }
            }
        } else {
            for (lane, state) in states.iter().enumerate() {
                let at = (first + offsets[state.index()] as usize) * lanes + lane;
                counts[at] = counts[at].plus(step);
            }
        }
    }
}

struct CountOne<'a, W> {
    line: &'a mut [W],
    states: &'a [W],
    state: W,
}

impl<W: Word> Job for CountOne<'_, W> {
    #[inline(always)]
    fn run(self) {
        for (held, &chosen) in self.line.iter_mut().zip(self.states) {
            *held = held.plus(W::flag(chosen == self.state));
        }
    }
}
