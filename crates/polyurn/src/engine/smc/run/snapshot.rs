//! The state of a run under way, to go on from later.
//!
//! Random numbers come from streams that are keyed by the step, so what has to be kept is what the particles hold. It is taken
//! between two tokens or two cooling steps.

use super::{Run, RunResult};
use crate::engine::replicates::Watch;
use crate::engine::smc::prepared::Heat;
use crate::engine::smc::word::Word;
use crate::error::Result;
use serde::{Deserialize, Serialize};

/// Bytes of lines up to which they are kept: beyond, a run begins anew.
const MOST_BYTES: usize = 1 << 30;

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Place {
    /// Tokens that were placed, with the moves after them.
    pub n_placed: usize,
    /// Cooling steps that were taken.
    pub n_cooled: u32,
}

/// What is kept.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    place: Place,
    /// Steps of random streams that were used up.
    step: u64,
    /// The factor of all pseudo-counts.
    scale: f64,
    log: f64,
    weight_total: f64,
    n_measured: u64,
    result: RunResult,
    /// Bytes of a number, and the lines of all particles.
    n_bytes: u32,
    lines: Vec<u8>,
    weights: Vec<f64>,
    /// The first ancestor of each particle.
    eves: Vec<u32>,
}

impl<W: Word> Run<'_, W> {
    /// Between two steps: hands the state over if it is asked for, or if the run has to stop here.
    pub fn look(&mut self, watch: &Watch<'_>, place: Place, go_on: Result<()>) -> Result<()> {
        if (watch.is_asked() || go_on.is_err()) && (place.n_placed > 0 || place.n_cooled > 0) {
            let n_bytes: usize = self.lanes.shards.iter().map(|shard| size_of_val(&shard.lines[..])).sum();
            if n_bytes <= MOST_BYTES {
                watch.keep(&self.snapshot(place));
            }
        }
        go_on
    }

    fn snapshot(&mut self, place: Place) -> Snapshot {
        self.bring_up_to_date();
        let n_bytes = W::BITS / 8;
        let shards = &self.lanes.shards;
        let of_word = |word: &W| (word.index() as u32).to_le_bytes().into_iter().take(n_bytes as usize);
        Snapshot {
            place,
            step: self.course.step,
            scale: self.course.heat.scale,
            log: self.mass.log,
            weight_total: self.mass.total,
            n_measured: self.n_measured,
            result: self.result.clone(),
            n_bytes,
            lines: shards.iter().flat_map(|shard| shard.lines.iter().flat_map(of_word)).collect(),
            weights: shards.iter().flat_map(|shard| shard.weights.iter().copied()).collect(),
            eves: self.lanes.genealogy.eves().collect(),
        }
    }

    /// Takes up what was kept; `None` where it is of another make.
    pub fn restore(&mut self, saved: Snapshot) -> Option<Place> {
        let n_words: usize = self.lanes.shards.iter().map(|shard| shard.lines.len()).sum();
        let n_slots: usize = self.lanes.shards.iter().map(|shard| shard.weights.len()).sum();
        let n_bytes = saved.n_bytes as usize;
        let is_whole = saved.n_bytes == W::BITS / 8
            && saved.lines.len() == n_words * n_bytes
            && saved.weights.len() == n_slots
            && saved.eves.len() == n_slots
            && saved.eves.iter().all(|&eve| (eve as usize) < n_slots);
        if !is_whole {
            return None;
        }
        let mut words = saved.lines.chunks_exact(n_bytes).map(|bytes| {
            let mut word = [0; 4];
            word[..n_bytes].copy_from_slice(bytes);
            W::from_index(u32::from_le_bytes(word) as usize)
        });
        let mut weights = saved.weights.iter().copied();
        for shard in &mut self.lanes.shards {
            shard.lines.iter_mut().zip(&mut words).for_each(|(slot, word)| *slot = word);
            shard.weights.iter_mut().zip(&mut weights).for_each(|(slot, weight)| *slot = weight);
            shard.add_up();
        }
        self.lanes.genealogy.set_eves(&saved.eves);
        self.course.step = saved.step;
        self.course.heat = Heat::new(self.course.layout, saved.scale);
        self.mass.log = saved.log;
        self.mass.total = saved.weight_total;
        self.n_measured = saved.n_measured;
        self.result = saved.result;
        Some(saved.place)
    }
}
