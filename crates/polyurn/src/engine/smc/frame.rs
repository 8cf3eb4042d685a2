//! What particles keep in memory, decided before anything is allocated.

use super::genealogy::BYTES_PER_SLOT;
use super::lanes::{COPIED_AT_ONCE, lanes_for};
use super::prepared::{LISTED, Storage};
use super::run::Path;
use super::workspace::Workspace;
use crate::engine::bytes::show_bytes;
use crate::engine::lines::Kernel;
use crate::engine::lines::{Block, Layout};
use crate::error::{Error, Result};

/// A block is not kept when its tokens are fewer than this share of its lines: adding them up again is then faster.
const LISTED_BELOW: f64 = 0.25;

/// Which blocks are kept as lines, and whether states of tokens are.
#[derive(Debug)]
pub struct Frame {
    /// Where the lines of blocks are.
    pub storage: Storage,
    /// Whether the states of all tokens are kept.
    pub keeps_states: bool,
    /// Whether somebody looks at them when the run is over.
    pub wants_states: bool,
    n_state_lines: u64,
    /// Integers of all lines.
    pub width: Width,
}

/// How long the integers of a run are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Bits8,
    Bits16,
    Bits32,
}

impl Width {
    /// The shortest that will do. Counters of hidden values alone, which are few, may have a second line for what does not
    /// fit; the others, and the states of tokens, may not.
    fn shortest(layout: &Layout) -> Self {
        if layout.unknown.is_some() {
            // Nobody knows how many tokens there will be.
            return Width::Bits32;
        }
        let most_states = layout.kernels.iter().map(Kernel::max_states).max().unwrap_or(1) as u64;
        let fits = |width: &Width| {
            let is_within = |block: &Block| {
                let has_second = !layout.classes[block.class as usize].has_key();
                block.n_uses <= width.largest() || has_second && block.n_uses >> width.bits() <= width.largest()
            };
            most_states <= width.largest() && layout.blocks.iter().all(is_within)
        };
        [Width::Bits8, Width::Bits16].into_iter().find(fits).unwrap_or(Width::Bits32)
    }

    fn bits(self) -> u32 {
        match self {
            Width::Bits8 => 8,
            Width::Bits16 => 16,
            Width::Bits32 => 32,
        }
    }

    fn bytes(self) -> usize {
        self.bits() as usize / 8
    }

    fn largest(self) -> u64 {
        (1 << self.bits()) - 1
    }
}

impl Frame {
    /// Decides what to keep so that it fits.
    ///
    /// # Errors
    /// When it does not fit whatever is decided; the message has the figure.
    pub fn new(layout: &Layout, path: &Path, n_particles: usize, wants_states: bool, max_memory: u64) -> Result<Self> {
        let width = Width::shortest(layout);
        let word_bytes = width.bytes();
        let lanes = lanes_for(n_particles);
        // Real numbers: whatever was asked for, the figure does not overflow.
        let slots = (n_particles as f64 / lanes as f64).ceil() * lanes as f64;
        let buckets_of_tokens: u64 = (0..layout.records.len())
            .map(|record| layout.records.count[record] * layout.kernel_of(record).buckets.len() as u64)
            .sum();
        let work = Workspace::<u32>::bytes(&layout.kernels, lanes) * slots / lanes as f64;
        // High words included, whether there are any or not.
        let largest_block = 2.0 * layout.classes.iter().map(|class| class.interior).max().unwrap_or(0) as f64;
        let copies = largest_block * slots * word_bytes as f64 + COPIED_AT_ONCE as f64;
        let beside = work + slots * BYTES_PER_SLOT as f64;
        // Moves of whole groups keep what they change: at most everything.
        let n_copies = if path.n_reallocations > 0 { 2.0 } else { 1.0 };
        let needs = |n_lines: f64| {
            let lines = n_lines * slots * word_bytes as f64;
            n_copies * lines + copies.min(lines) + beside
        };
        let mut threshold = LISTED_BELOW;
        loop {
            let frame = Frame::with_threshold(layout, path, wants_states, threshold, buckets_of_tokens, width);
            let n_lines = frame.n_lines() as f64;
            let bytes = needs(n_lines);
            if bytes <= max_memory as f64 && n_lines < f64::from(u32::MAX) {
                return Ok(frame);
            }
            if threshold > 1e9 {
                // Particles come in whole vectors.
                let n_vectors = (max_memory as f64 / bytes * slots / lanes as f64).floor();
                let way_out = match (n_vectors * lanes as f64) as u64 {
                    0 => "raise --max-memory".to_owned(),
                    most => format!("use at most {most} with --particles, or raise --max-memory"),
                };
                return Err(Error::TooCostly(format!(
                    "{n_particles} particles need about {} of memory, more than the {} allowed; {way_out}",
                    show_bytes(bytes),
                    show_bytes(max_memory as f64),
                )));
            }
            // Too big: rebuild more blocks from their tokens.
            threshold *= 4.0;
        }
    }

    fn with_threshold(
        layout: &Layout,
        path: &Path,
        wants_states: bool,
        threshold: f64,
        buckets_of_tokens: u64,
        width: Width,
    ) -> Self {
        let mut storage = Storage { high_of_class: vec![0; layout.classes.len()], ..Default::default() };
        for block in layout.blocks.iter().filter(|block| block.n_uses > width.largest() && width != Width::Bits32) {
            let class = block.class as usize;
            storage.high_of_class[class] = layout.classes[class].interior as u32;
        }
        let mut needs_states =
            wants_states || path.rejuvenation > 0 || path.start_scale != 1.0 || path.n_reallocations > 0;
        for block in &layout.blocks {
            let class = &layout.classes[block.class as usize];
            let is_listed = class.has_key() && (block.n_uses as f64) <= threshold * class.interior as f64;
            needs_states |= is_listed && block.n_uses > 1;
            if is_listed {
                storage.first_line.push(LISTED);
            } else {
                storage.first_line.push(storage.n_lines as u32);
                storage.n_lines += storage.n_lines_of(block.class as usize, class.interior);
            }
        }
        let scratch = |kernel: &Kernel| kernel.touches.iter().map(|touch| layout.classes[touch.class].interior).sum();
        storage.n_scratch = if storage.first_line.contains(&LISTED) {
            layout.kernels.iter().map(scratch).max().unwrap_or(0)
        } else {
            0
        };
        Frame {
            storage,
            keeps_states: needs_states,
            wants_states,
            n_state_lines: if needs_states { buckets_of_tokens } else { 0 },
            width,
        }
    }

    fn n_lines(&self) -> u64 {
        self.storage.n_counts() as u64 + self.n_state_lines
    }
}
