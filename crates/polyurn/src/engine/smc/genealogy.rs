//! Who descends from whom, so that resampling need not copy what nobody looks at.
//!
//! Resampling only writes down each slot's ancestor. A line remembers the generation it was last brought up to date in;
//! when it is next touched, it is gathered through the map from that generation to now. Only maps of recent generations
//! are kept: lines that are older are brought up to date when their generation is dropped.

use super::threads::share_out;
use crate::simd::{Gather, Gathered, Isa, Parts};
use std::ops::Range;

/// Maps kept at most. Each resampling composes all of them.
const MAX_MAPS: usize = 32;

/// Bytes of all maps per slot, at most: those that are kept, as many to compose them in, those whose memory is kept, and a
/// few lists of weights and ancestors beside them.
pub const BYTES_PER_SLOT: usize = 4 * (2 * (MAX_MAPS + 2) + MAX_MAPS / 2 + 8);

/// For each slot another one, in parts: those of each thread's own slots, which it writes and mostly reads itself.
type Map = Vec<Vec<u32>>;

/// Ancestor maps of recent generations.
#[derive(Debug)]
pub struct Genealogy {
    /// For each generation from `first` on, the slot each present slot's ancestor had in it.
    maps: Vec<Map>,
    first: u32,
    /// The first ancestor of each slot.
    eves: Map,
    /// What each thread composes its parts with.
    composers: Vec<Composer>,
    /// Maps that are not needed any more: their memory is.
    forgotten: Vec<Map>,
    /// Slots of a part, except the last, which may have fewer.
    width: usize,
    isa: Isa,
}

/// Buffers to compose one part of every map in.
#[derive(Debug, Default)]
struct Composer {
    plan: Gather,
    composed: Vec<Vec<u32>>,
    /// The newest map's part.
    newest: Vec<u32>,
}

impl Genealogy {
    /// Slots that descend from themselves, in parts of `width` slots.
    pub fn new(n_slots: usize, width: usize, isa: Isa) -> Self {
        let slots: Vec<u32> = (0..n_slots as u32).collect();
        let eves: Map = slots.chunks(width).map(<[u32]>::to_vec).collect();
        let composers = eves.iter().map(|_| Composer::default()).collect();
        Genealogy { maps: Vec::new(), first: 0, eves, composers, forgotten: Vec::new(), width, isa }
    }

    /// The present generation.
    pub fn now(&self) -> u32 {
        self.first + self.maps.len() as u32
    }

    /// The first ancestor of each slot.
    pub fn eves(&self) -> impl Iterator<Item = u32> + '_ {
        self.eves.iter().flatten().copied()
    }

    /// Other first ancestors, before the first resampling.
    pub fn set_eves(&mut self, eves: &[u32]) {
        self.eves = eves.chunks(self.width).map(<[u32]>::to_vec).collect();
    }

    /// For some slots, all in one part, their ancestors in an earlier generation that is still known.
    pub fn map_from(&self, generation: u32, slots: Range<usize>) -> &[u32] {
        let part = &self.maps[(generation - self.first) as usize][slots.start / self.width];
        &part[slots.start % self.width..][..slots.len()]
    }

    /// A new generation: slot m descends from slot `ancestors[m]`.
    pub fn resample(&mut self, ancestors: &[u32], is_parallel: bool) {
        let (maps, eves, width, isa) = (&self.maps, &self.eves, self.width, self.isa);
        let compose = |part: usize, composer: &mut Composer| {
            let own = &ancestors[part * width..ancestors.len().min((part + 1) * width)];
            composer.plan.set(own, width);
            composer.newest.clear();
            composer.newest.extend_from_slice(own);
            // Never fewer than before: their memory is kept.
            let n_maps = composer.composed.len().max(maps.len() + 1);
            composer.composed.resize_with(n_maps, Vec::new);
            for (map, composed) in maps.iter().chain([eves]).zip(&mut composer.composed) {
                composed.resize(own.len(), 0);
                u32::gather(isa, &composer.plan, Parts { parts: map, line: 0, width }, composed);
            }
        };
        if is_parallel {
            share_out(&mut self.composers, 1, &|part, composers| {
                composers.iter_mut().for_each(|composer| compose(part, composer));
            });
        } else {
            self.composers.iter_mut().enumerate().for_each(|(part, composer)| compose(part, composer));
        }
        let mut newest = self.forgotten.pop().unwrap_or_else(|| vec![Vec::new(); self.eves.len()]);
        for (part, composer) in self.composers.iter_mut().enumerate() {
            std::mem::swap(&mut newest[part], &mut composer.newest);
            let maps = self.maps.iter_mut().chain([&mut self.eves]);
            maps.zip(&mut composer.composed).for_each(|(map, composed)| std::mem::swap(&mut map[part], composed));
        }
        self.maps.push(newest);
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
        let mut eves: Vec<u32> = self.eves().take(n).collect();
        eves.sort_unstable();
        eves.dedup();
        eves.len()
    }
}
