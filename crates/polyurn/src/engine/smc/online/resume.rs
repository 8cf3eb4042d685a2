//! Going on with a stream later.

use super::course::{Course, Window};
use super::rota::Rota;
use super::run::Run;
use super::{Follower, Online};
use crate::engine::kind::Kind;
use crate::engine::mixer::Mixer;
use crate::error::{Error, Result};
use crate::graph::TableIndex;
use crate::math::LnProduct;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// All that later tokens depend on. Streams of random numbers are keyed by the token's number.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    /// What was asked for.
    fingerprint: u64,
    n_tokens: u64,
    seen_sets: Vec<Vec<u32>>,
    /// Counters that are the same in all particles: table, whether it is a row, values, tokens.
    certain: Vec<(u32, bool, Vec<u32>, u64)>,
    closed_form: LnProduct,
    /// Class and seen values of each block, in order.
    blocks: Vec<(u32, Vec<u32>)>,
    rota: Rota,
    /// Patterns and values of the window's tokens.
    patterns: Vec<u32>,
    records: Vec<u32>,
    runs: Vec<SavedRun>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedRun {
    log: f64,
    total: f64,
    ess_min: f64,
    ess_lately: f64,
    n_resampled: u64,
    n_updates: u64,
    weights: Vec<f64>,
    eves: Vec<u32>,
    /// Lines of all blocks, then of all slots of the window.
    lines: Vec<u32>,
}

impl Follower {
    /// All that there is, for [`Follower::go_on_from`].
    pub fn state(&mut self) -> Vec<u8> {
        self.runs.iter_mut().for_each(Run::bring_up_to_date);
        let course = &self.course;
        let mut certain: Vec<(u32, bool, Vec<u32>, u64)> = course
            .certain
            .iter()
            .map(|((table, kind, values), &n)| (table.0, *kind == Kind::Row, values.to_vec(), n))
            .collect();
        certain.sort_unstable();
        let mut blocks = vec![(0, Vec::new()); course.layout.blocks.len()];
        for (class_ix, class) in course.layout.classes.iter().enumerate() {
            for (block, key) in class.keys() {
                blocks[block as usize] = (class_ix as u32, key.to_vec());
            }
        }
        let n_gone = (course.rota.first() - course.window.first) as usize;
        let saved = Saved {
            fingerprint: self.fingerprint(),
            n_tokens: course.n_tokens,
            seen_sets: course.seen_sets.clone(),
            certain,
            closed_form: course.closed_form.clone(),
            blocks,
            rota: course.rota,
            patterns: course.window.patterns[n_gone..].to_vec(),
            records: course.window.records[n_gone * course.model.n_nodes()..].to_vec(),
            runs: self.runs.iter().map(|run| SavedRun::of(run, course)).collect(),
        };
        postcard::to_stdvec(&saved).expect("plain data")
    }

    /// Takes up a state, before the first token.
    ///
    /// # Errors
    /// When it is damaged or belongs to another model, prior, seed or setting.
    pub fn go_on_from(&mut self, state: &[u8]) -> Result<()> {
        let damaged = || Error::Checkpoint("it is damaged".into());
        let saved: Saved = postcard::from_bytes(state).map_err(|_| damaged())?;
        if saved.fingerprint != self.fingerprint() || saved.runs.len() != self.runs.len() {
            return Err(Error::Checkpoint(
                "it belongs to another model, prior, seed or setting; repeat those that made it, or give another file"
                    .into(),
            ));
        }
        let mut course =
            Course::new(Arc::clone(&self.course.model), Arc::clone(&self.course.prior), saved.seen_sets, saved.rota)?;
        (course.n_tokens, course.closed_form) = (saved.n_tokens, saved.closed_form);
        for (table, is_row, values, n) in saved.certain {
            let kind = if is_row { Kind::Row } else { Kind::Cell };
            course.certain.insert((TableIndex(table), kind, values.into()), n);
        }
        let n_classes = course.layout.classes.len();
        for (class, key) in saved.blocks {
            let n_before = course.layout.blocks.len();
            if class as usize >= n_classes {
                return Err(damaged());
            }
            let prior = Arc::clone(&course.prior);
            course.layout.block_of(&prior, class as usize, key.into());
            if course.layout.blocks.len() == n_before {
                return Err(damaged());
            }
        }
        course.find_room();
        let n_blocks = course.layout.blocks.len();
        let first = course.rota.first();
        let is_whole = saved.patterns.len() as u64 == course.rota.n_tokens() - first
            && saved.patterns.iter().all(|&pattern| (pattern as usize) < course.seen_sets.len())
            && saved.records.len() == saved.patterns.len() * course.model.n_nodes();
        if !is_whole {
            return Err(damaged());
        }
        course.place_window(Window::new(first, saved.patterns, saved.records));
        let runs: Option<Vec<Run>> =
            self.runs.iter().zip(&saved.runs).map(|(run, saved)| saved.restore(run, &course, &self.way)).collect();
        match runs {
            Some(runs) if course.layout.blocks.len() == n_blocks => (self.runs, self.course) = (runs, course),
            _ => return Err(damaged()),
        }
        Ok(())
    }

    /// Model, prior, settings and seed. Threads, instructions and memory do not matter.
    fn fingerprint(&self) -> u64 {
        let Online { particles, runs, rejuvenation, window, when, scheme, .. } = &self.settings;
        let settings = (particles, runs, rejuvenation, window, when, scheme, self.way.seed);
        let text = format!("online {settings:?} {:?} {:?}", self.course.model, self.course.prior);
        let mut mix = Mixer::default();
        text.bytes().for_each(|byte| mix.word(u64::from(byte)));
        mix.0
    }
}

/// First lines and numbers of lines: of all blocks, then of all slots.
fn ranges<'c>(course: &'c Course) -> impl Iterator<Item = (usize, usize)> + 'c {
    let blocks = course.storage.first_line.iter().zip(&course.unit_of_block).map(|(&first, &unit)| (first, unit));
    let all = blocks.chain(course.slots.iter().copied());
    all.map(|(first, unit)| (first as usize, course.units[unit as usize] as usize))
}

impl SavedRun {
    fn of(run: &Run, course: &Course) -> Self {
        let lanes = run.lanes.lanes;
        let of_range = |(first, n): (usize, usize)| {
            run.lanes.shards.iter().flat_map(move |shard| shard.lines[first * lanes..][..n * lanes].iter().copied())
        };
        SavedRun {
            log: run.mass.log,
            total: run.mass.total,
            ess_min: run.ess_min,
            ess_lately: run.ess_lately,
            n_resampled: run.n_resampled,
            n_updates: run.n_updates,
            weights: run.lanes.shards.iter().flat_map(|shard| shard.weights.iter().copied()).collect(),
            eves: run.lanes.genealogy.eves().collect(),
            lines: ranges(course).flat_map(of_range).collect(),
        }
    }

    /// The run as it was; `None` when sizes do not fit.
    fn restore(&self, run: &Run, course: &Course, way: &super::Way) -> Option<Run> {
        let mut restored = Run::new(&course.layout, way, run.replicate);
        restored.find_room(course);
        let lanes = restored.lanes.lanes;
        let n_slots = lanes * restored.lanes.shards.len();
        let n_lines: usize = ranges(course).map(|(_, n)| n).sum();
        let fits = self.weights.len() == n_slots
            && self.eves.len() == n_slots
            && self.eves.iter().all(|&eve| (eve as usize) < n_slots)
            && self.lines.len() == n_lines * n_slots;
        if !fits {
            return None;
        }
        restored.set_weights(&self.weights, &self.eves);
        (restored.mass.log, restored.mass.total) = (self.log, self.total);
        (restored.ess_min, restored.ess_lately) = (self.ess_min, self.ess_lately);
        (restored.n_resampled, restored.n_updates) = (self.n_resampled, self.n_updates);
        let mut lines = self.lines.as_slice();
        for (first, n) in ranges(course) {
            for shard in &mut restored.lanes.shards {
                let (own, rest) = lines.split_at(n * lanes);
                shard.lines[first * lanes..][..n * lanes].copy_from_slice(own);
                lines = rest;
            }
        }
        Some(restored)
    }
}
