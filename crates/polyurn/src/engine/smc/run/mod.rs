//! One run: all tokens through the urn of every particle, then, if the run started with larger pseudo-counts, cooling.

mod moves;
mod snapshot;
mod weights;

use super::course::{Course, list_tokens};
use super::frame::Frame;
use super::lanes::{Lanes, Shard};
use super::mass::Mass;
use super::order::{Order, tokens};
use super::prepared::{Heat, LISTED};
use super::resample::{Scheme, When};
use super::schedule::{Scanner, Schedule};
use super::threads::awake;
use super::word::Word;
use crate::counts::Counts;
use crate::engine::lines::Kernel;
use crate::engine::lines::Layout;
use crate::engine::replicates::Watch;
use crate::error::Result;
use crate::simd::Isa;
use crate::{Purpose, Seed};
use serde::{Deserialize, Serialize};
use snapshot::{Place, Snapshot};

/// What a run does, all decided before it starts: nothing here may depend on the run's own particles.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// Order of the tokens.
    pub order: Order,
    /// Gibbs updates of earlier tokens after each new one.
    pub rejuvenation: u32,
    /// Which tokens these are, and how they are spread over the run.
    pub schedule: Schedule,
    /// All pseudo-counts are multiplied by this while tokens come in ..
    pub start_scale: f64,
    /// .. and brought down to the prior's in this many steps of equal ratio, a Gibbs sweep after each but the last.
    pub n_cooling: u32,
    /// Moves of whole groups: how often all tokens of two hidden values are shared out anew, per cooling step and, while
    /// tokens come in, whenever their number has doubled. Only where every record has one unseen node.
    pub n_reallocations: u32,
    /// When to resample.
    pub when: When,
    /// How to resample.
    pub scheme: Scheme,
}

impl Default for Path {
    /// The paper's: tokens in random order, resampled when the effective sample size falls below half.
    fn default() -> Self {
        Path {
            order: Order::Random,
            rejuvenation: 0,
            schedule: Schedule::default(),
            start_scale: 1.0,
            n_cooling: 0,
            n_reallocations: 0,
            when: When::EssBelow(0.5),
            scheme: Scheme::Systematic,
        }
    }
}

/// What one run found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Estimate of ln p(sequence).
    pub ln_p_sequence: f64,
    /// Smallest effective sample size.
    pub ess_min: f64,
    /// Effective sample size after each token, thinned to at most two hundred entries: token and size.
    pub ess_trace: Vec<(u64, f64)>,
    /// Steps after which particles were resampled; the first two hundred.
    pub resampled_at: Vec<u64>,
    /// How often particles were resampled.
    pub n_resampled: u64,
    /// Different first ancestors at the end.
    pub n_ancestors: usize,
    /// Estimated relative variance of the estimate of p(sequence), from the ancestors.
    pub variance: f64,
    /// Tokens placed or placed again, over all particles.
    pub n_updates: u64,
}

/// Tokens that are drawn again before anybody is asked whether to go on.
const TOKENS_AT_ONCE: usize = 64;

/// A run under way.
#[derive(Debug)]
pub struct Run<'r, W> {
    course: Course<'r>,
    path: &'r Path,
    lanes: Lanes<W>,
    mass: Mass,
    result: RunResult,
    /// How often the effective sample size was measured, to thin its trace.
    n_measured: u64,
}

/// How many particles, and who does the work.
#[derive(Debug, Clone, Copy)]
pub struct Hands {
    /// Number of particles.
    pub n_particles: usize,
    /// Threads that may share one run's particles out.
    pub n_threads: usize,
    /// Instructions to use.
    pub isa: Isa,
}

/// Where a run takes its random numbers from.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    /// The seed of all runs.
    pub seed: Seed,
    /// Number of this run.
    pub replicate: u64,
}

impl<'r, W: Word> Run<'r, W> {
    /// A run without tokens.
    pub fn new(
        counts: &Counts,
        layout: &'r Layout,
        frame: &'r Frame,
        path: &'r Path,
        hands: Hands,
        source: Source,
    ) -> Self {
        let Hands { n_particles, n_threads, isa } = hands;
        let mut rng = source.seed.stream(Purpose::Schedule, source.replicate, 0, 0);
        let order = tokens(path.order, &layout.records, counts, &mut rng);
        let n_buckets = |record: u32| layout.kernel_of(record as usize).buckets.len() as u32;
        let mut first_state = Vec::new();
        let mut n_lines = frame.storage.n_counts() as u32;
        if frame.keeps_states {
            for &record in &order {
                first_state.push(n_lines);
                n_lines += n_buckets(record);
            }
        }
        let (listed_start, listed) = list_tokens(layout, &frame.storage, &order);
        let mut unit_of_block = vec![u32::MAX; layout.blocks.len()];
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (block_ix, (block, &first)) in layout.blocks.iter().zip(&frame.storage.first_line).enumerate() {
            if first != LISTED {
                unit_of_block[block_ix] = ranges.len() as u32;
                let class = block.class as usize;
                ranges.push((first, frame.storage.n_lines_of(class, layout.classes[class].interior) as u32));
            }
        }
        let n_block_units = ranges.len();
        let of_states = first_state.iter().zip(&order).map(|(&first, &record)| (first, n_buckets(record)));
        let work = layout.kernels.iter().map(Kernel::cost).fold(0.0, f64::max) * f64::from(1 + path.rejuvenation);
        let ranges = ranges.iter().copied().chain(of_states);
        let lanes = Lanes::new(layout, n_particles, n_lines as usize, ranges, work, n_threads, isa);
        let course = Course {
            layout,
            frame,
            isa,
            seed: source.seed,
            replicate: source.replicate,
            order,
            first_state,
            listed_start,
            listed,
            prepared: Vec::new(),
            n_block_units,
            unit_of_block,
            heat: Heat::new(layout, path.start_scale),
            step: 0,
        };
        let result = RunResult {
            ln_p_sequence: f64::NEG_INFINITY,
            ess_min: n_particles as f64,
            ess_trace: Vec::new(),
            resampled_at: Vec::new(),
            n_resampled: 0,
            n_ancestors: n_particles,
            variance: 0.0,
            n_updates: 0,
        };
        Run { course, path, lanes, mass: Mass::new(n_particles), result, n_measured: 0 }
    }

    /// Goes through all tokens, from where an earlier run was stopped if its state was kept.
    ///
    /// # Errors
    /// When the watch says to stop.
    pub fn go(&mut self, watch: &Watch<'_>) -> Result<()> {
        let from = watch.saved().and_then(|saved: Snapshot| self.restore(saved)).unwrap_or_default();
        if self.lanes.is_parallel { awake(|| self.go_through(from, watch)) } else { self.go_through(from, watch) }
    }

    fn go_through(&mut self, from: Place, watch: &Watch<'_>) -> Result<()> {
        let n_tokens = self.course.order.len();
        let is_cooled = self.path.start_scale != 1.0;
        let n_steps = if is_cooled { self.path.n_cooling.max(1) } else { 0 };
        let work_of_token = f64::from(1 + self.path.rejuvenation);
        let work = n_tokens as f64 * (work_of_token + f64::from(n_steps.saturating_sub(1)));
        let mut positions: Vec<u32> = Vec::new();
        let Course { seed, replicate, .. } = self.course;
        let Schedule { scan, pace } = self.path.schedule;
        let mut scanner = Scanner::new(scan, seed.stream(Purpose::Schedule, replicate, 2, 0));
        if self.course.layout.closed_form.value() == f64::NEG_INFINITY {
            return Ok(());
        }
        for position in 0..n_tokens {
            let share = position as f64 * work_of_token / work;
            let go_on = || watch.tick_inside(share);
            let is_done = position < from.n_placed;
            if !is_done {
                self.look(watch, Place { n_placed: position, n_cooled: 0 }, watch.tick(share))?;
            }
            // Moves after the last token change nothing any more, unless somebody looks at the particles.
            let is_last = position + 1 == n_tokens && !is_cooled;
            let has_moves = position > 0 && (!is_last || self.course.frame.wants_states);
            let mut n_moves = if has_moves { pace.n_moves(position, n_tokens, self.path.rejuvenation) } else { 0 };
            scanner.start();
            if is_done {
                // What was drawn then is passed over.
                for _ in 0..n_moves {
                    scanner.next(position);
                }
                continue;
            }
            let mut next_moves = |positions: &mut Vec<u32>| {
                positions.clear();
                positions.extend((0..n_moves.min(TOKENS_AT_ONCE)).map(|_| scanner.next(position)));
                n_moves -= positions.len();
            };
            next_moves(&mut positions);
            if !self.place(position, &positions, is_last) {
                return Ok(());
            }
            for part in 1.. {
                next_moves(&mut positions);
                if positions.is_empty() {
                    break;
                }
                go_on()?;
                self.draw_tokens_again(&positions, position + 1, part);
            }
            if (position + 1).is_power_of_two() && position > 2 && !is_last {
                self.reallocate(position + 1, &go_on)?;
            }
        }
        for step in 1 + from.n_cooled..=n_steps {
            let share = (work_of_token + f64::from(step - 1)) * n_tokens as f64 / work;
            let go_on = || watch.tick_inside(share);
            self.look(watch, Place { n_placed: n_tokens, n_cooled: step - 1 }, watch.tick(share))?;
            // Equal ratios; the last step ends at one exactly.
            let to = self.path.start_scale.powf(1.0 - f64::from(step) / f64::from(n_steps));
            self.cool(if step == n_steps { 1.0 } else { to }, step == n_steps);
            if step < n_steps {
                self.sweep(&go_on)?;
                self.reallocate(n_tokens, &go_on)?;
            }
        }
        let lanes_part = self.mass.ln_mean(self.lanes.n_particles);
        self.result.ln_p_sequence = self.course.layout.closed_form.value() + lanes_part;
        self.result.variance = self.mass.ancestor_variance(&self.lanes, self.result.n_resampled);
        self.result.n_ancestors = self.lanes.genealogy.n_eves(self.lanes.n_particles);
        Ok(())
    }

    /// Lets the urns go on with tokens that fall into unknown cells: ln p(seen sequence, then m such tokens) for m = 0, 1,
    /// .. as long as `wants_more` says so and such a token is possible.
    ///
    /// # Errors
    /// When `tick` says to stop.
    pub fn go_on(
        &mut self,
        mut wants_more: impl FnMut(&[f64]) -> bool,
        tick: &dyn Fn(f64) -> Result<()>,
    ) -> Result<Vec<f64>> {
        let mut logs = vec![self.result.ln_p_sequence];
        let Some(places) = &self.course.layout.unknown else { return Ok(logs) };
        let kernel = self.course.layout.kernels.len() - 1;
        let n_particles = self.lanes.n_particles;
        let mut certain = self.course.layout.closed_form.value();
        while wants_more(&logs) && logs[logs.len() - 1] > f64::NEG_INFINITY {
            tick(1.0)?;
            let n_before = logs.len() as u64 - 1;
            certain -= self.course.layout.ln_unknown_rows(n_before);
            self.course.step += 1;
            self.course.prepare_places(0, kernel, places);
            self.lanes.need_all();
            self.lanes.refresh();
            let course = &self.course;
            self.lanes.each(|shard| course.weigh_new(shard, 0));
            if !self.mass.take_totals(&mut self.lanes, self.course.prepared[0].is_guarded()) {
                logs.push(f64::NEG_INFINITY);
                break;
            }
            logs.push(certain + self.mass.ln_mean(n_particles));
            let was_resampled = self.measure();
            if was_resampled {
                self.resample();
                self.lanes.need_all();
                self.lanes.refresh();
            }
            let course = &self.course;
            self.lanes.each(|shard| {
                if was_resampled {
                    course.weigh_resampled(shard, 0);
                }
                course.draw_unkept(shard, 0);
            });
            self.result.n_updates += self.lanes.n_particles as u64;
        }
        Ok(logs)
    }

    /// Brings every line and state up to date, to be looked at.
    pub fn bring_up_to_date(&mut self) {
        self.lanes.need_all();
        self.lanes.refresh();
        self.lanes.settle();
    }

    /// Weights of the particles, adding up to one.
    pub fn normalised_weights(&self) -> Vec<f64> {
        let weights = self.lanes.shards.iter().flat_map(|shard| &shard.weights).take(self.lanes.n_particles);
        weights.map(|weight| weight / self.mass.total).collect()
    }

    /// Number of particles.
    pub fn n_particles(&self) -> usize {
        self.lanes.n_particles
    }

    /// Tokens and lists of the run.
    pub fn course(&self) -> &Course<'_> {
        &self.course
    }

    /// The particles.
    pub fn lanes(&self) -> &Lanes<W> {
        &self.lanes
    }

    /// The particles, to change them.
    pub fn lanes_mut(&mut self) -> &mut Lanes<W> {
        &mut self.lanes
    }

    /// Puts tokens with given hidden values into every urn: values of the unseen nodes, ascending by node.
    #[cfg(test)]
    pub fn load(&mut self, hidden: &[Vec<u32>]) {
        for (position, wanted) in hidden.iter().enumerate() {
            self.course.prepare(0, position);
            let kernel = self.course.kernel_at(position);
            assert_eq!(kernel.buckets.len(), 1, "joint states");
            let is_wanted = |&state: &usize| kernel.values_of_states(&|_| state) == *wanted;
            let state = (0..kernel.buckets[0].n_states).find(is_wanted).expect("a state for these values");
            let course = &self.course;
            self.lanes.each(|shard| {
                let lanes = shard.weights.len();
                shard.work.states[..lanes].fill(W::from_index(state));
                shard.work.add(course.isa, kernel, &course.prepared[0], &mut shard.lines, lanes);
                let first = course.first_state[position] as usize * lanes;
                shard.lines[first..][..lanes].copy_from_slice(&shard.work.states[..lanes]);
            });
        }
    }

    /// Every move of the path once, with all tokens in the urns.
    #[cfg(test)]
    pub fn move_all(&mut self) {
        if self.path.rejuvenation > 0 {
            self.sweep(&|| Ok(())).expect("nobody stops it");
        }
        self.reallocate(self.course.order.len(), &|| Ok(())).expect("nobody stops it");
    }

    /// Hidden values of every token in one particle.
    #[cfg(test)]
    pub fn hidden_values(&self, particle: usize) -> Vec<Vec<u32>> {
        let of_token = |position: usize| {
            let first = self.course.first_state[position] as usize;
            let state = |bucket: usize| self.lanes.at(first + bucket, particle).index();
            self.course.kernel_at(position).values_of_states(&state)
        };
        (0..self.course.order.len()).map(of_token).collect()
    }

    /// What was found so far.
    pub fn result(&self) -> &RunResult {
        &self.result
    }

    /// What was found.
    pub fn into_result(self) -> RunResult {
        self.result
    }

    /// Puts the token at `position` into every urn, then draws earlier tokens again. False when no particle can hold it.
    ///
    /// The weight of a new token does not depend on its hidden state, so particles are resampled before the state is
    /// drawn: copies of one particle then differ at once.
    fn place(&mut self, position: usize, again: &[u32], is_last: bool) -> bool {
        let n_before = position as u32;
        self.course.step += 1;
        self.course.prepare(0, position);
        again.iter().enumerate().for_each(|(ix, &other)| self.course.prepare(ix + 1, other as usize));
        self.course.need_token(&mut self.lanes, 0, position, n_before);
        self.lanes.refresh();
        let course = &self.course;
        self.lanes.each(|shard| {
            course.rebuild_listed(shard, 0, n_before, u32::MAX);
            course.weigh_new(shard, 0);
        });
        if !self.mass.take_totals(&mut self.lanes, self.course.prepared[0].is_guarded()) {
            return false;
        }
        let was_resampled = self.measure() && !is_last;
        if was_resampled {
            self.resample();
            self.course.need_token(&mut self.lanes, 0, position, n_before);
        }
        for (ix, &other) in again.iter().enumerate() {
            self.course.need_token(&mut self.lanes, ix + 1, other as usize, n_before);
            self.lanes.need(self.course.n_block_units + other as usize);
        }
        self.lanes.refresh();
        let course = &self.course;
        if course.frame.keeps_states {
            self.lanes.is_fresh(course.n_block_units + position);
        }
        self.lanes.each(|shard| {
            if was_resampled {
                course.rebuild_listed(shard, 0, n_before, u32::MAX);
                course.weigh_resampled(shard, 0);
            }
            course.draw_new(shard, 0, position);
            for (ix, &other) in again.iter().enumerate() {
                course.draw_again(shard, ix + 1, other as usize, n_before + 1);
            }
        });
        if !course.layout.kernels[course.prepared[0].kernel].is_exact {
            self.lanes.shards.iter_mut().for_each(Shard::add_up);
            self.mass.add_up(&self.lanes);
            self.mass.rescale(&mut self.lanes);
        }
        self.result.n_updates += (1 + again.len() as u64) * self.lanes.n_particles as u64;
        true
    }
}
