//! What a run does with all tokens in the urns: Gibbs sweeps, moves of whole groups, and cooling.

use super::{Run, TOKENS_AT_ONCE};
use crate::Purpose;
use crate::engine::smc::lanes::Shard;
use crate::engine::smc::prepared::Heat;
use crate::engine::smc::reallocate::{Pair, Way};
use crate::engine::smc::word::Word;
use crate::error::Result;
use crate::math::draw;

impl<W: Word> Run<'_, W> {
    /// Shares the tokens of some pairs of hidden values out anew.
    pub(super) fn reallocate(&mut self, n_placed: usize, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        if self.path.n_reallocations == 0 || !self.course.layout.can_reallocate(self.course.heat.scale) {
            return Ok(());
        }
        let size = self.course.layout.hidden_size.unwrap_or(0);
        for _ in 0..self.path.n_reallocations {
            self.course.step += 1;
            let course = &self.course;
            let mut rng = course.seed.stream(Purpose::Schedule, course.replicate, 1, course.step);
            let first = draw::below(size as u64, &mut rng) as usize;
            let second = draw::below(size as u64 - 1, &mut rng) as usize;
            let pair = Pair { first, second: if second >= first { second + 1 } else { second } };
            self.lanes.need_all();
            self.lanes.refresh();
            self.lanes.each(|shard| course.empty_pair(shard, pair, n_placed));
            for (way, step) in [(Way::Old, 0), (Way::New, 1)] {
                if way == Way::New {
                    self.lanes.each(|shard| self.course.empty_pair_again(shard, pair));
                }
                for start in (0..n_placed).step_by(TOKENS_AT_ONCE) {
                    go_on()?;
                    let chunk = start..(start + TOKENS_AT_ONCE).min(n_placed);
                    chunk.clone().enumerate().for_each(|(slot, position)| self.course.prepare(slot, position));
                    let course = &self.course;
                    self.lanes.each(|shard| {
                        let block = shard.ix as u64 | (1 + step) << 32 | (start as u64) << 34;
                        let mut rng = course.seed.stream(Purpose::Particles, course.replicate, block, course.step);
                        for (slot, position) in chunk.clone().enumerate() {
                            course.put_back(shard, slot, position, pair, way, &mut rng);
                        }
                    });
                }
            }
            let course = &self.course;
            self.lanes.each(|shard| {
                let block = shard.ix as u64 | 3 << 32;
                let mut rng = course.seed.stream(Purpose::Particles, course.replicate, block, course.step);
                course.accept_pair(shard, pair, n_placed, &mut rng);
            });
            // About two of `size` hidden values, each token twice.
            self.result.n_updates += (4 * n_placed * self.lanes.n_particles / size) as u64;
        }
        Ok(())
    }

    /// One Gibbs update of every token, in the order in which they came in.
    pub(super) fn sweep(&mut self, go_on: &dyn Fn() -> Result<()>) -> Result<()> {
        let n_tokens = self.course.order.len();
        let positions: Vec<u32> = (0..n_tokens as u32).collect();
        for chunk in positions.chunks(TOKENS_AT_ONCE) {
            go_on()?;
            self.course.step += 1;
            self.draw_tokens_again(chunk, n_tokens, 0);
        }
        Ok(())
    }

    /// One Gibbs update of each of these tokens, when `n_placed` are in the urns. Parts of one step have different numbers.
    pub(super) fn draw_tokens_again(&mut self, positions: &[u32], n_placed: usize, part: u64) {
        for (ix, &position) in positions.iter().enumerate() {
            self.course.prepare(ix, position as usize);
            self.course.need_token(&mut self.lanes, ix, position as usize, n_placed as u32);
            self.lanes.need(self.course.n_block_units + position as usize);
        }
        self.lanes.refresh();
        let course = &self.course;
        self.lanes.each(|shard| {
            let block = shard.ix as u64 | part << 32;
            shard.rng = course.seed.stream(Purpose::Particles, course.replicate, block, course.step);
            for (ix, &position) in positions.iter().enumerate() {
                course.draw_again(shard, ix, position as usize, n_placed as u32);
            }
        });
        self.result.n_updates += positions.len() as u64 * self.lanes.n_particles as u64;
    }

    /// Changes the factor of all pseudo-counts: every particle is weighted by the ratio of its probabilities.
    pub(super) fn cool(&mut self, to: f64, is_last: bool) {
        self.course.step += 1;
        let tables = self.course.cooling_tables(self.course.heat.scale, to);
        self.course.heat = Heat::new(self.course.layout, to);
        self.lanes.need_all();
        self.lanes.refresh();
        let course = &self.course;
        self.lanes.each(|shard| {
            shard.work.totals.fill(0.0);
            for (block_ix, table) in tables.iter().enumerate() {
                course.cool_block(shard, block_ix, table);
            }
        });
        self.mass.multiply_by_logs(&mut self.lanes);
        self.lanes.shards.iter_mut().for_each(Shard::add_up);
        self.mass.add_up(&self.lanes);
        if self.measure() && !is_last {
            self.resample();
        }
    }
}
