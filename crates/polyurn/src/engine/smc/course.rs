//! What happens to one token in one shard of particles, and which lines have to be up to date for it.

use super::frame::Frame;
use super::lanes::{Lanes, Shard};
use super::prepared::{Heat, LISTED, Prepared, Storage};
use super::token::Token;
use super::word::Word;
use super::workspace::{Workspace, rebuild};
use crate::engine::lines::{Kernel, Touch};
use crate::engine::lines::{Layout, Place};
use crate::simd::Isa;
use crate::{Purpose, Seed};

/// A token of a block that is not kept: where it stands in the order, its touch, and the offset of its seen values.
#[derive(Debug, Clone, Copy)]
pub struct Listed {
    pub position: u32,
    pub touch: u32,
    pub offset: u32,
}

/// What a run does to its particles, without the particles: order, lists and the tokens at hand.
#[derive(Debug)]
pub struct Course<'r> {
    pub layout: &'r Layout,
    pub frame: &'r Frame,
    pub isa: Isa,
    pub seed: Seed,
    pub replicate: u64,
    /// Record of each token, in order.
    pub order: Vec<u32>,
    /// First state line of each token.
    pub first_state: Vec<u32>,
    /// Tokens of the blocks that are not kept: where each block's start, then the tokens in order.
    pub listed_start: Vec<u32>,
    pub listed: Vec<Listed>,
    /// Tokens that are at hand in this step.
    pub prepared: Vec<Prepared>,
    /// Number of units that are blocks; the unit of a token's states is this plus its position.
    pub n_block_units: usize,
    pub unit_of_block: Vec<u32>,
    /// Factor of all pseudo-counts.
    pub heat: Heat,
    pub step: u64,
}

impl Course<'_> {
    pub fn prepare(&mut self, slot: usize, position: usize) {
        let record = self.order[position] as usize;
        let layout = self.layout;
        self.prepare_places(slot, layout.records.kernel[record] as usize, layout.records.places(record));
    }

    /// The kernel of the token at a position.
    pub fn kernel_at(&self, position: usize) -> &Kernel {
        self.layout.kernel_of(self.order[position] as usize)
    }

    /// Fills in the places of any token.
    pub fn prepare_places(&mut self, slot: usize, kernel: usize, places: &[Place]) {
        if self.prepared.len() <= slot {
            self.prepared.resize_with(slot + 1, Prepared::default);
        }
        self.prepared[slot].fill(self.layout, &self.frame.storage, kernel, places, &self.heat);
    }

    /// Marks the lines that a token's weights are made of, with `n_placed` tokens in the urn.
    pub fn need_token<W: Word>(&self, lanes: &mut Lanes<W>, slot: usize, position: usize, n_placed: u32) {
        let record = self.order[position] as usize;
        for place in self.layout.records.places(record) {
            let unit = self.unit_of_block[place.block as usize];
            if unit != u32::MAX {
                lanes.need(unit as usize);
            }
        }
        for rebuilt in &self.prepared[slot].listed {
            for listed in self.tokens_of(rebuilt.block).iter().take_while(|listed| listed.position < n_placed) {
                lanes.need(self.n_block_units + listed.position as usize);
            }
        }
    }

    /// The tokens of a block that is not kept, in order.
    pub fn tokens_of(&self, block: u32) -> &[Listed] {
        let block = block as usize;
        &self.listed[self.listed_start[block] as usize..self.listed_start[block + 1] as usize]
    }

    /// The touch of such a token, and the line with the state that decides.
    pub fn touch_and_state(&self, listed: &Listed) -> (&Touch, usize) {
        let position = listed.position as usize;
        let touch = &self.kernel_at(position).touches[listed.touch as usize];
        (touch, self.first_state[position] as usize + touch.bucket)
    }

    /// Adds up the lines of the blocks of a token that are not kept.
    pub fn rebuild_listed<W: Word>(&self, shard: &mut Shard<W>, slot: usize, n_placed: u32, without: u32) {
        let prepared = &self.prepared[slot];
        for listed in &prepared.listed {
            self.rebuild_block(shard, listed.block, listed.first as usize, n_placed, without);
        }
    }

    /// Adds up the lines of a block that is not kept from its tokens before `n_placed`, leaving one token out.
    pub fn rebuild_block<W: Word>(&self, shard: &mut Shard<W>, block: u32, first: usize, n_placed: u32, without: u32) {
        let lanes = shard.weights.len();
        let class = &self.layout.classes[self.layout.blocks[block as usize].class as usize];
        let n_kept = self.frame.storage.n_counts() * lanes;
        let (counts, states) = shard.lines.split_at_mut(n_kept);
        counts[first * lanes..][..class.interior * lanes].fill(W::default());
        for listed in self.tokens_of(block).iter().take_while(|listed| listed.position < n_placed) {
            if listed.position == without {
                continue;
            }
            let (touch, line) = self.touch_and_state(listed);
            let states = &states[line * lanes - n_kept..][..lanes];
            rebuild(self.isa, touch, states, counts, first + listed.offset as usize, lanes);
        }
    }

    /// The token in a slot.
    fn token(&self, slot: usize) -> Token<'_> {
        let prepared = &self.prepared[slot];
        Token { isa: self.isa, kernel: &self.layout.kernels[prepared.kernel], prepared }
    }

    /// Weighs a new token once more, in particles that were resampled since. The uniform numbers stay: resampling did not
    /// look at what they would have led to.
    pub fn weigh_resampled<W: Word>(&self, shard: &mut Shard<W>, slot: usize) {
        let Shard { lines, weights, work, uniforms, .. } = shard;
        self.token(slot).weigh(lines, work, uniforms, weights.len());
    }

    /// Weighs a new token, and multiplies its probabilities into the weights unless they are logs: those need to know the
    /// largest of all particles first.
    pub fn weigh_new<W: Word>(&self, shard: &mut Shard<W>, slot: usize) {
        let kernel = &self.layout.kernels[self.prepared[slot].kernel];
        let lanes = shard.weights.len();
        shard.rng = self.seed.stream(Purpose::Particles, self.replicate, shard.ix as u64, self.step);
        shard.uniforms.fill(self.isa, Workspace::<W>::n_uniforms(kernel, lanes), &mut shard.rng);
        self.weigh_resampled(shard, slot);
        if !self.prepared[slot].is_guarded() {
            shard.take_totals();
            shard.add_up();
        }
    }

    /// Draws the states of a new token that was weighed, and counts them.
    pub fn draw_unkept<W: Word>(&self, shard: &mut Shard<W>, slot: usize) {
        let Shard { lines, weights, work, uniforms, .. } = shard;
        self.token(slot).draw(lines, work, uniforms, weights);
    }

    /// The same for the token at a position, whose states are kept if anybody needs them later.
    pub fn draw_new<W: Word>(&self, shard: &mut Shard<W>, slot: usize, position: usize) {
        self.draw_unkept(shard, slot);
        if self.frame.keeps_states {
            let lanes = shard.weights.len();
            let first = self.first_state[position] as usize * lanes;
            let n = self.layout.kernels[self.prepared[slot].kernel].buckets.len() * lanes;
            shard.lines[first..][..n].copy_from_slice(&shard.work.states[..n]);
        }
    }

    /// One collapsed Gibbs update of a token that is in the urn already, with the next numbers of the shard's stream.
    pub fn draw_again<W: Word>(&self, shard: &mut Shard<W>, slot: usize, position: usize, n_placed: u32) {
        let token = self.token(slot);
        let lanes = shard.weights.len();
        let n_kept = self.frame.storage.n_counts() * lanes;
        let (first, n) = (self.first_state[position] as usize * lanes - n_kept, token.kernel.buckets.len() * lanes);
        self.rebuild_listed(shard, slot, n_placed, position as u32);
        let Shard { lines, work, uniforms, rng, .. } = shard;
        let (counts, states) = lines.split_at_mut(n_kept);
        token.draw_again(counts, &mut states[first..][..n], work, uniforms, rng, lanes);
    }
}

/// Tokens of the blocks that are not kept.
pub fn list_tokens(layout: &Layout, storage: &Storage, order: &[u32]) -> (Vec<u32>, Vec<Listed>) {
    let mut start = vec![0u32; layout.blocks.len() + 1];
    let is_listed = |block: u32| storage.first_line[block as usize] == LISTED;
    let touches = |record: u32| layout.records.places(record as usize).iter().enumerate();
    for &record in order {
        for (_, place) in touches(record).filter(|(_, place)| is_listed(place.block)) {
            start[place.block as usize + 1] += 1;
        }
    }
    for block in 0..layout.blocks.len() {
        start[block + 1] += start[block];
    }
    let mut next = start.clone();
    let mut listed =
        vec![Listed { position: 0, touch: 0, offset: 0 }; *start.last().expect("one more than blocks") as usize];
    for (position, &record) in order.iter().enumerate() {
        for (touch, place) in touches(record).filter(|(_, place)| is_listed(place.block)) {
            let at = &mut next[place.block as usize];
            listed[*at as usize] = Listed { position: position as u32, touch: touch as u32, offset: place.offset };
            *at += 1;
        }
    }
    (start, listed)
}
