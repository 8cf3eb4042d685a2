//! The same particles under another layout: when records of a new pattern come, and when a saved state is taken up.
//!
//! Records in which a node is unseen for the first time turn counters that were the same in all particles into lines. All
//! numbers stay; they only lie elsewhere.

use super::course::{CounterKey, Course};
use super::run::{Run, Way};
use crate::engine::lines::Digit;
use crate::error::Result;
use std::sync::Arc;

/// Where the numbers of a new line come from.
enum From {
    /// A line of the old layout.
    Line(usize),
    /// A counter that was the same in all particles.
    Same(u64),
}

/// Lets records with other seen nodes come, too.
///
/// # Errors
/// As for [`Course::new`].
pub fn add_pattern(course: &mut Course, runs: &mut [Run], way: &Way, seen: Vec<u32>) -> Result<()> {
    let seen_sets = course.seen_sets.iter().cloned().chain([seen]).collect();
    let mut new = Course::new(Arc::clone(&course.model), Arc::clone(&course.prior), seen_sets, course.rota)?;
    (new.n_tokens, new.closed_form) = (course.n_tokens, course.closed_form.clone());
    let lines = move_lines(course, &mut new);
    new.place_window(std::mem::take(&mut course.window));
    for run in runs {
        run.bring_up_to_date();
        let mut moved = run.empty_copy(&new, way);
        for (to, from) in &lines {
            moved.set_line(*to, |shard, lane, lanes| match from {
                From::Line(line) => run.lanes.shards[shard].lines[line * lanes + lane],
                From::Same(n) => *n as u32,
            });
        }
        move_states(course, &new, run, &mut moved);
        *run = moved;
    }
    *course = new;
    Ok(())
}

/// Finds a line for every counter that has one, and keeps the others.
fn move_lines(old: &mut Course, new: &mut Course) -> Vec<(usize, From)> {
    let mut moved: Vec<(u32, u32, From)> = Vec::new();
    let prior = Arc::clone(&new.prior);
    let class_of = |new: &Course, key: (_, _)| {
        new.layout.counted.iter().find(|counted| (counted.table, counted.kind) == key).map(|counted| counted.class)
    };
    let mut add = |new: &mut Course, class: usize, values: &[u32], from: From| {
        let (key, offset) = new.layout.classes[class].split(values.iter().copied());
        let block = new.layout.block_of(&prior, class, key);
        moved.push((block, offset, from));
    };
    for counted in &old.layout.counted {
        let class = class_of(new, (counted.table, counted.kind)).expect("what differs between particles stays so");
        for (block, in_block, values) in old.layout.lines_of(counted.class) {
            let line = old.storage.first_line[block as usize] + in_block;
            add(new, class, &values, From::Line(line as usize));
        }
    }
    let mut certain: Vec<(CounterKey, u64)> = old.certain.drain().collect();
    certain.sort_unstable();
    for ((table, kind, values), n) in certain {
        match class_of(new, (table, kind)) {
            Some(class) => add(new, class, &values, From::Same(n)),
            None => drop(new.certain.insert((table, kind, values), n)),
        }
    }
    new.find_room();
    let line = |block: u32, offset: u32| (new.storage.first_line[block as usize] + offset) as usize;
    moved.into_iter().map(|(block, offset, from)| (line(block, offset), from)).collect()
}

/// Writes down the states of the window's tokens as the new kernels number them.
fn move_states(old: &Course, new: &Course, run: &Run, moved: &mut Run) {
    for token in new.rota.first()..new.rota.n_tokens() {
        let slot = new.rota.slot_of(token);
        let (pattern, _) = new.in_window(token);
        let (old_kernel, new_kernel) = (&old.layout.kernels[pattern], &new.layout.kernels[pattern]);
        let old_first = old.slots[slot].0 as usize;
        for (bucket, shape) in new_kernel.buckets.iter().enumerate() {
            let digits: Vec<(Digit, usize)> =
                shape.nodes.iter().map(|&(node, size)| (old_kernel.digit(node), size as usize)).collect();
            moved.set_line(new.slots[slot].0 as usize + bucket, |shard, lane, lanes| {
                let state = |bucket: usize| run.lanes.shards[shard].lines[(old_first + bucket) * lanes + lane] as usize;
                let add = |number: usize, (digit, size): &(Digit, usize)| number * size + digit.of(state(digit.bucket));
                digits.iter().fold(0, add) as u32
            });
        }
    }
}

impl Run {
    /// Particles with the same weights and ancestors, and no numbers yet.
    pub fn empty_copy(&self, course: &Course, way: &Way) -> Self {
        let mut copy = Run::new(&course.layout, way, self.replicate);
        copy.find_room(course);
        let weights = self.lanes.shards.iter().flat_map(|shard| shard.weights.iter().copied()).collect::<Vec<f64>>();
        let eves: Vec<u32> = self.lanes.genealogy.eves().collect();
        copy.set_weights(&weights, &eves);
        copy.mass = self.mass.clone();
        (copy.ess_min, copy.ess_lately) = (self.ess_min, self.ess_lately);
        (copy.n_resampled, copy.n_updates) = (self.n_resampled, self.n_updates);
        copy
    }

    /// Weights and first ancestors of all slots.
    pub fn set_weights(&mut self, weights: &[f64], eves: &[u32]) {
        let lanes = self.lanes.lanes;
        for (shard, weights) in self.lanes.shards.iter_mut().zip(weights.chunks(lanes)) {
            shard.weights.copy_from_slice(weights);
            shard.add_up();
        }
        self.lanes.genealogy.set_eves(eves);
    }

    /// Sets a line in all slots, by shard, lane, and number of lanes.
    pub fn set_line(&mut self, line: usize, number: impl Fn(usize, usize, usize) -> u32) {
        let lanes = self.lanes.lanes;
        for (ix, shard) in self.lanes.shards.iter_mut().enumerate() {
            let own = &mut shard.lines[line * lanes..][..lanes];
            own.iter_mut().enumerate().for_each(|(lane, slot)| *slot = number(ix, lane, lanes));
        }
    }
}
