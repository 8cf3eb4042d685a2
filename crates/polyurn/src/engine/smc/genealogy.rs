//! Who descends from whom, so that resampling need not copy what nobody looks at.
//!
//! Resampling only writes down each slot's ancestor. A line remembers the generation it was last brought up to date in;
//! when it is next touched, it is gathered through the map from that generation to now. Only maps of recent generations
//! are kept: lines that are older are brought up to date when their generation is dropped.

use crate::simd::{Gather, Gathered, Isa, Parts};
use rayon::prelude::*;

/// Maps kept at most. Each resampling composes all of them.
const MAX_MAPS: usize = 32;

/// Bytes of all maps per slot, at most: those that are kept, as many to compose them in, those whose memory is kept, and a
/// few lists of weights and ancestors beside them.
pub const BYTES_PER_SLOT: usize = 4 * (2 * (MAX_MAPS + 2) + MAX_MAPS / 2 + 8);

/// Ancestor maps of recent generations.
#[derive(Debug)]
pub struct Genealogy {
    /// For each generation from `first` on, the slot each present slot's ancestor had in it.
    maps: Vec<Vec<u32>>,
    first: u32,
    /// The first ancestor of each slot.
    eves: Vec<u32>,
    /// Buffers to compose maps in: one, or one for each map where threads compose them all at once.
    spare: Vec<Vec<u32>>,
    /// Maps that are not needed any more: their memory is.
    forgotten: Vec<Vec<u32>>,
    plan: Gather,
    isa: Isa,
}

impl Genealogy {
    /// Slots that descend from themselves.
    pub fn new(n_slots: usize, isa: Isa) -> Self {
        let eves = (0..n_slots as u32).collect();
        Genealogy {
            maps: Vec::new(),
            first: 0,
            eves,
            spare: Vec::new(),
            forgotten: Vec::new(),
            plan: Gather::default(),
            isa,
        }
    }

    /// The present generation.
    pub fn now(&self) -> u32 {
        self.first + self.maps.len() as u32
    }

    /// The first ancestor of each slot.
    pub fn eves(&self) -> &[u32] {
        &self.eves
    }

    /// For each slot its ancestor in an earlier generation that is still known.
    pub fn map_from(&self, generation: u32) -> &[u32] {
        &self.maps[(generation - self.first) as usize]
    }

    /// A new generation: slot m descends from slot `ancestors[m]`.
    pub fn resample(&mut self, ancestors: &[u32], is_parallel: bool) {
        let width = ancestors.len();
        self.plan.set(ancestors, width);
        let n_spare = if is_parallel { self.maps.len() + 1 } else { 1 };
        while self.spare.len() < n_spare {
            self.spare.push(vec![0; ancestors.len()]);
        }
        let (plan, isa) = (&self.plan, self.isa);
        let compose = |(map, spare): (&mut Vec<u32>, &mut Vec<u32>)| {
            u32::gather(isa, plan, Parts { parts: std::slice::from_ref(map), line: 0, width }, spare);
            std::mem::swap(map, spare);
        };
        if is_parallel {
            self.maps.par_iter_mut().chain([&mut self.eves]).zip(&mut self.spare).for_each(compose);
        } else {
            let spare = &mut self.spare[0];
            self.maps.iter_mut().chain([&mut self.eves]).for_each(|map| compose((map, spare)));
        }
        let mut map = self.forgotten.pop().unwrap_or_default();
        map.clear();
        map.extend_from_slice(ancestors);
        self.maps.push(map);
    }

    /// When too many maps are kept: the generation before which lines have to be brought up to date now.
    pub fn overdue(&self) -> Option<u32> {
        (self.maps.len() > MAX_MAPS).then(|| self.first + (MAX_MAPS / 2) as u32)
    }

    /// Forgets the maps of generations before this one.
    pub fn forget_before(&mut self, generation: u32) {
        self.forgotten.extend(self.maps.drain(..(generation - self.first) as usize));
        self.first = generation;
    }

    /// Number of different first ancestors among the first `n` slots.
    pub fn n_eves(&self, n: usize) -> usize {
        let mut eves = self.eves[..n].to_vec();
        eves.sort_unstable();
        eves.dedup();
        eves.len()
    }
}
