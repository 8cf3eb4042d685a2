//! A token's kernel filled in: where its lines are, and the pseudo-counts that are added to them.

use super::loops::Counters;
use super::word::Word;
use crate::engine::lines::{Block, Layout, Place};
use crate::engine::lines::{Kernel, Term};

/// Where the lines of blocks are.
#[derive(Debug, Default)]
pub struct Storage {
    /// First line of each block; [`LISTED`] for blocks that are rebuilt from their tokens when they are needed.
    pub first_line: Vec<u32>,
    /// For each class how many lines behind a counter's low words its high ones are; 0 where there are none.
    pub high_of_class: Vec<u32>,
    /// Lines of all blocks that are kept.
    pub n_lines: usize,
    /// Lines to rebuild blocks in, behind the others.
    pub n_scratch: usize,
}

impl Storage {
    /// Lines of all blocks, kept or rebuilt; the states of tokens come behind them.
    pub fn n_counts(&self) -> usize {
        self.n_lines + self.n_scratch
    }

    /// Lines of a block of this class, high words included.
    pub fn n_lines_of(&self, class: usize, interior: usize) -> usize {
        if self.high_of_class[class] == 0 { interior } else { 2 * interior }
    }
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
    /// For each kernel whether two of its states may share a division.
    may_share: Vec<bool>,
}

impl Heat {
    /// Looks at every kernel once for all tokens.
    pub fn new(layout: &Layout, scale: f64) -> Self {
        let kernels = || 0..layout.kernels.len();
        Heat {
            scale,
            is_guarded: kernels().map(|kernel| layout.is_guarded(kernel, scale)).collect(),
            may_share: kernels().map(|kernel| layout.may_share_divisions(kernel, scale)).collect(),
        }
    }
}

/// A block that is not kept and has to be rebuilt for one touch.
#[derive(Debug, Clone, Copy)]
pub struct Rebuilt {
    pub touch: u32,
    pub block: u32,
    /// First of the lines to rebuild it in.
    pub first: u32,
}

/// A token's kernel with its lines and pseudo-counts filled in, shared by all particles.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Number of the kernel.
    pub kernel: usize,
    /// First line of each touch, the seen values' offset included.
    bases: Vec<u32>,
    /// For each touch how many lines further its high words are; 0 if there are none.
    highs: Vec<u32>,
    /// Blocks to be rebuilt before the lines are read.
    pub listed: Vec<Rebuilt>,
    /// First line of each term, bucket by bucket.
    term_bases: Vec<u32>,
    term_highs: Vec<u32>,
    /// What is added to the line of each term: for all states, or state by state.
    adds: Vec<f64>,
    /// For each bucket where its terms start, and where their pseudo-counts do.
    first_term: Vec<usize>,
    first_add: Vec<usize>,
    /// Whether pseudo-counts are the same for all states.
    is_even: bool,
    /// True when products could underflow, so logs are added up.
    is_guarded: bool,
    /// Whether two states may share a division.
    may_share: bool,
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
        self.highs.clear();
        self.term_highs.clear();
        self.listed.clear();
        self.term_bases.clear();
        self.adds.clear();
        self.ln_adds.clear();
        self.first_term.clear();
        self.first_add.clear();
        let mut scratch = storage.n_lines as u32;
        for (ix, (touch, place)) in kernel.touches.iter().zip(places).enumerate() {
            let first = storage.first_line[place.block as usize];
            self.highs.push(storage.high_of_class[touch.class]);
            if first == LISTED {
                // Uses of one block by one token share their lines, so that they are known to be the same.
                let twin = self.listed.iter().find(|listed| listed.block == place.block);
                let first = twin.map_or(scratch, |twin| twin.first);
                if first == scratch {
                    scratch += layout.classes[touch.class].interior as u32;
                }
                self.bases.push(first + place.offset);
                self.listed.push(Rebuilt { touch: ix as u32, block: place.block, first });
            } else {
                self.bases.push(first + place.offset);
            }
        }
        self.is_guarded = heat.is_guarded[kernel_ix];
        self.may_share = heat.may_share[kernel_ix];
        self.is_even = !(kernel.is_tied && kernel.is_exact) && layout.is_even[kernel_ix];
        for (bucket, terms) in kernel.buckets.iter().zip(&kernel.terms_of) {
            self.first_term.push(self.term_bases.len());
            self.first_add.push(self.adds.len());
            self.term_bases.extend(terms.iter().map(|&ix| self.bases[kernel.terms[ix].touch]));
            self.term_highs.extend(terms.iter().map(|&ix| self.highs[kernel.terms[ix].touch]));
            let n_states = if self.is_even { 1 } else { bucket.n_states };
            for state in 0..n_states {
                for &term_ix in terms {
                    let term = &kernel.terms[term_ix];
                    let place = places[term.touch];
                    let block: &Block = &layout.blocks[place.block as usize];
                    let pseudo = layout.pseudo(term.counted, block, (place.offset + term.offsets[state]) as usize);
                    let bump = if kernel.is_exact { self.n_earlier(kernel, term, state, places) } else { 0.0 };
                    let (add, ln_add) = if !term.is_numerator && pseudo.is_zero() {
                        // A row of zeros never holds a token, since its cells are zeros too: they make the weight zero,
                        // whatever it is divided by.
                        (1.0, 0.0)
                    } else {
                        let add = pseudo.value * scale + bump;
                        (add, if bump > 0.0 { add.ln() } else { pseudo.ln() + scale.ln() })
                    };
                    self.adds.push(add);
                    if self.is_guarded {
                        self.ln_adds.push(ln_add);
                    }
                }
            }
        }
    }

    /// A bucket's terms as the weighing loops want them.
    pub fn terms<'p>(&'p self, kernel: &'p Kernel, bucket: usize) -> Terms<'p> {
        let n_terms = kernel.terms_of[bucket].len();
        let n_adds = if self.is_even { n_terms } else { n_terms * kernel.buckets[bucket].n_states };
        let adds = self.first_add[bucket]..self.first_add[bucket] + n_adds;
        Terms {
            n_cells: kernel.n_numerators[bucket],
            powers: &kernel.powers[bucket],
            bases: &self.term_bases[self.first_term[bucket]..][..n_terms],
            highs: &self.term_highs[self.first_term[bucket]..][..n_terms],
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

    /// Whether two states may share a division.
    pub fn may_share_divisions(&self) -> bool {
        self.may_share
    }

    /// First line of a touch, and how many lines further its high words are.
    pub fn base(&self, touch: usize) -> (usize, usize) {
        (self.bases[touch] as usize, self.highs[touch] as usize)
    }
}

/// The terms of a bucket: lines and what is added to them.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    pub n_cells: usize,
    pub powers: &'a [u32],
    pub bases: &'a [u32],
    /// For each term how many lines further its high words are; 0 if there are none.
    pub highs: &'a [u32],
    pub offsets: &'a [u32],
    pub adds: &'a [f64],
    /// Given for a guarded kernel: weights are then logs.
    pub ln_adds: Option<&'a [f64]>,
    pub is_even: bool,
}

impl<'a> Terms<'a> {
    #[inline(always)]
    pub fn add_at(&self, state: usize) -> usize {
        if self.is_even { 0 } else { state * self.powers.len() }
    }

    #[inline(always)]
    pub fn adds(&self, state: usize) -> &'a [f64] {
        &self.adds[self.add_at(state)..][..self.powers.len()]
    }

    #[inline(always)]
    pub fn line(&self, state: usize, term: usize) -> u32 {
        self.bases[term] + self.offsets[state * self.powers.len() + term]
    }

    /// The counter of a state's term in every lane.
    #[inline(always)]
    pub fn counters<'c, W: Word>(&self, counts: &'c [W], lanes: usize, state: usize, term: usize) -> Counters<'c, W> {
        Counters::of(counts, lanes, self.line(state, term) as usize, self.highs[term] as usize)
    }
}
