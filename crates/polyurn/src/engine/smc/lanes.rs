//! The lines of all particles, in shards of neighbouring particles.
//!
//! A shard holds up to 256 particles: `lines[line * lanes + lane]`. Every shard has the same lines, so a token is handled
//! in each shard by the same loops. Shards are what threads share out; their number depends on the number of particles
//! alone. Lanes beyond the last particle go along without weight.

use super::genealogy::Genealogy;
use super::kernel::{LANE_GROUP, Word, Workspace};
use super::layout::Layout;
use super::reallocate::Reallocation;
use super::uniforms::Uniforms;
use crate::simd::{GATHER_PADDING, Gather, Isa};
use rayon::prelude::*;
use std::ops::Range;

/// Particles of a shard, at most. A power of two, so that a slot is split by shifting.
pub const MAX_LANES: usize = 256;

/// Shards that a thread takes at least at a time.
const MIN_SHARDS: usize = 8;

/// Work per step, in terms of all particles, from which threads are worth waking.
const PARALLEL_FROM: f64 = 1e5;

/// One shard.
#[derive(Debug)]
pub struct Shard<W> {
    /// Number of the shard.
    pub ix: usize,
    /// Lines: kept blocks, scratch, then the states of all tokens.
    pub lines: Vec<W>,
    /// Weight of each particle since the last resampling.
    pub weights: Vec<f64>,
    /// Their sum and the sum of their squares.
    pub sum: f64,
    pub squares: f64,
    /// Buffers.
    pub work: Workspace<W>,
    /// Uniform numbers for one token.
    pub uniforms: Uniforms,
    /// Buffers for moves of whole groups.
    pub reallocation: Reallocation<W>,
}

/// A range of lines that are brought up to date together.
#[derive(Debug, Clone, Copy)]
pub struct Unit {
    /// First line.
    pub first: u32,
    /// Number of lines.
    pub n: u32,
    /// Generation in which it was last up to date.
    generation: u32,
}

/// All particles.
#[derive(Debug)]
pub struct Lanes<W> {
    /// Particles of a shard.
    pub lanes: usize,
    /// Number of particles that count.
    pub n_particles: usize,
    /// The shards.
    pub shards: Vec<Shard<W>>,
    /// Who descends from whom.
    pub genealogy: Genealogy,
    units: Vec<Unit>,
    stale: Vec<u32>,
    gathered: Vec<Gathered<W>>,
    is_parallel: bool,
    isa: Isa,
    /// Lines that were gathered but not yet put in place.
    to_put_back: Vec<Unit>,
}

/// Lanes of a shard for a number of particles.
pub fn lanes_for(n_particles: usize) -> usize {
    n_particles.next_power_of_two().clamp(LANE_GROUP, MAX_LANES)
}

impl<W: Word> Shard<W> {
    /// Multiplies the weights by the token's probabilities.
    pub fn take_totals(&mut self) {
        self.weights.iter_mut().zip(&self.work.totals).for_each(|(weight, total)| *weight *= total);
    }

    /// Adds the weights and their squares up.
    pub fn add_up(&mut self) {
        self.sum = sum(&self.weights, |weight| weight);
        self.squares = sum(&self.weights, |weight| weight * weight);
    }
}

/// A sum in a fixed order that vectorises: eight running sums, then one tree.
fn sum(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let mut sums = [0.0; 8];
    for chunk in values.chunks_exact(8) {
        for (sum, &value) in sums.iter_mut().zip(chunk) {
            *sum += f(value);
        }
    }
    ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
}

impl<W: Word> Lanes<W> {
    /// Particles without tokens. `ranges` are the lines that are brought up to date together: first line and number.
    pub fn new(
        layout: &Layout,
        n_particles: usize,
        n_lines: usize,
        ranges: impl Iterator<Item = (u32, u32)>,
        work_per_step: f64,
        n_threads: usize,
        isa: Isa,
    ) -> Self {
        let lanes = lanes_for(n_particles);
        let n_shards = n_particles.div_ceil(lanes);
        let most_buckets = layout.kernels.iter().map(|kernel| kernel.buckets.len()).max().unwrap_or(0);
        let shard = |ix: usize| Shard {
            ix,
            lines: vec![W::default(); n_lines * lanes],
            weights: (0..lanes).map(|lane| if ix * lanes + lane < n_particles { 1.0 } else { 0.0 }).collect(),
            sum: 0.0,
            squares: 0.0,
            work: Workspace::new(&layout.kernels, lanes),
            uniforms: Uniforms::new((most_buckets + 1) * lanes),
            reallocation: Reallocation::default(),
        };
        Lanes {
            lanes,
            n_particles,
            shards: (0..n_shards).map(shard).collect(),
            genealogy: Genealogy::new(n_shards * lanes, isa),
            units: ranges.map(|(first, n)| Unit { first, n, generation: 0 }).collect(),
            stale: Vec::new(),
            gathered: (0..n_shards).map(|_| Gathered::new(n_shards * lanes)).collect(),
            isa,
            to_put_back: Vec::new(),
            is_parallel: n_threads > 1 && n_shards > 1 && work_per_step * n_particles as f64 >= PARALLEL_FROM,
        }
    }

    /// Does something in every shard, on several threads where that is worth it.
    pub fn each(&mut self, f: impl Fn(&mut Shard<W>) + Sync + Send) {
        let ranges = std::mem::take(&mut self.to_put_back);
        if !ranges.is_empty() {
            // Lines that were gathered are put in place on the way: they are then still in the cache.
            let lanes = self.lanes;
            self.shards.par_iter_mut().zip(&self.gathered).with_min_len(MIN_SHARDS).for_each(|(shard, gathered)| {
                gathered.put_back(shard, &ranges, lanes);
                f(shard);
            });
            return;
        }
        if self.is_parallel {
            self.shards.par_iter_mut().with_min_len(MIN_SHARDS).for_each(f);
        } else {
            self.shards.iter_mut().for_each(f);
        }
    }

    /// Marks a unit as needed: it is up to date after the next [`Lanes::refresh`].
    pub fn need(&mut self, unit: usize) {
        if self.units[unit].generation != self.genealogy.now() {
            self.stale.push(unit as u32);
        }
    }

    /// Marks all units as needed.
    pub fn need_all(&mut self) {
        (0..self.units.len()).for_each(|unit| self.need(unit));
    }

    /// A unit was written from scratch: it is up to date.
    pub fn is_fresh(&mut self, unit: usize) {
        self.units[unit].generation = self.genealogy.now();
    }

    /// Brings everything that was marked up to date: each lane gets what its ancestor had.
    pub fn refresh(&mut self) {
        if self.stale.is_empty() {
            return;
        }
        self.settle();
        let now = self.genealogy.now();
        let stale = std::mem::take(&mut self.stale);
        // A unit may have been marked twice.
        let mut ranges: Vec<Unit> = Vec::with_capacity(stale.len());
        for &unit in &stale {
            let unit = &mut self.units[unit as usize];
            if unit.generation != now {
                ranges.push(*unit);
                unit.generation = now;
            }
        }
        let (lanes, genealogy, isa) = (self.lanes, &self.genealogy, self.isa);
        if !self.is_parallel {
            let Gathered { plan, window, .. } = &mut self.gathered[0];
            let mut planned = None;
            for range in &ranges {
                if planned != Some(range.generation) {
                    plan.set(genealogy.map_from(range.generation), 0);
                    planned = Some(range.generation);
                }
                for line in range.first..range.first + range.n {
                    let line = line as usize * lanes..(line as usize + 1) * lanes;
                    for (shard, part) in self.shards.iter().zip(window.chunks_exact_mut(lanes)) {
                        part.copy_from_slice(&shard.lines[line.clone()]);
                    }
                    for shard in &mut self.shards {
                        W::gather(isa, plan, shard.ix * lanes, window, &mut shard.lines[line.clone()]);
                    }
                }
            }
        } else {
            let shards = &self.shards;
            let gather_shard = |(ix, out): (usize, &mut Gathered<W>)| {
                out.n_used = 0;
                for range in &ranges {
                    let map = &genealogy.map_from(range.generation)[ix * lanes..][..lanes];
                    let sources = map[0] as usize..map[lanes - 1] as usize + 1;
                    out.plan.set(map, map[0]);
                    for line in range.first..range.first + range.n {
                        out.add(isa, shards, lanes, line as usize, sources.clone());
                    }
                }
            };
            self.gathered.par_iter_mut().enumerate().with_min_len(MIN_SHARDS).for_each(gather_shard);
            self.to_put_back = ranges;
        }
        self.stale = stale;
        self.stale.clear();
    }

    /// A line in all particles.
    pub fn line(&self, line: usize) -> impl Iterator<Item = W> + '_ {
        let of_shard = move |shard: &'_ Shard<W>| line * shard.weights.len()..(line + 1) * shard.weights.len();
        self.shards.iter().flat_map(move |shard| shard.lines[of_shard(shard)].iter().copied()).take(self.n_particles)
    }

    /// A line in one particle.
    pub fn at(&self, line: usize, particle: usize) -> W {
        self.shards[particle / self.lanes].lines[line * self.lanes + particle % self.lanes]
    }

    /// All particles weigh the same again.
    pub fn reset_weights(&mut self) {
        let (lanes, n_particles) = (self.lanes, self.n_particles);
        for shard in &mut self.shards {
            let n_used = lanes.min(n_particles - shard.ix * lanes);
            shard.weights[..n_used].fill(1.0);
        }
    }

    /// Puts lines that were gathered in place, before anything looks at them other than through [`Lanes::each`].
    pub fn settle(&mut self) {
        if !self.to_put_back.is_empty() {
            self.each(|_| ());
        }
    }

    /// A new generation. Lanes without a particle follow the last one.
    pub fn resample(&mut self, ancestors: &mut Vec<u32>) {
        let last = *ancestors.last().expect("at least one particle");
        ancestors.resize(self.shards.len() * self.lanes, last);
        self.genealogy.resample(ancestors, self.is_parallel);
        if let Some(generation) = self.genealogy.overdue() {
            let overdue: Vec<usize> =
                (0..self.units.len()).filter(|&unit| self.units[unit].generation < generation).collect();
            overdue.into_iter().for_each(|unit| self.need(unit));
            self.refresh();
            self.genealogy.forget_before(generation);
        }
    }
}

/// Lines of one shard while they are brought up to date.
#[derive(Debug)]
struct Gathered<W> {
    /// Gathered lines, one after another; the rest is left from before.
    lines: Vec<W>,
    n_used: usize,
    plan: Gather,
    /// The part of a line that the shard's particles descend from, and room to load whole registers.
    window: Vec<W>,
}

impl<W: Word> Gathered<W> {
    fn new(n_slots: usize) -> Self {
        Gathered {
            lines: Vec::new(),
            n_used: 0,
            plan: Gather::default(),
            window: vec![W::default(); n_slots + GATHER_PADDING],
        }
    }

    /// Copies what was gathered to where it belongs.
    fn put_back(&self, shard: &mut Shard<W>, ranges: &[Unit], lanes: usize) {
        let mut rest = self.lines.as_slice();
        for range in ranges {
            let (now, later) = rest.split_at(range.n as usize * lanes);
            shard.lines[range.first as usize * lanes..][..now.len()].copy_from_slice(now);
            rest = later;
        }
    }

    /// Gathers one line from these slots, as planned.
    fn add(&mut self, isa: Isa, shards: &[Shard<W>], lanes: usize, line: usize, sources: Range<usize>) {
        let mut slot = sources.start;
        while slot < sources.end {
            let (shard, lane) = (slot / lanes, slot % lanes);
            let n = (lanes - lane).min(sources.end - slot);
            let part = &shards[shard].lines[line * lanes + lane..][..n];
            self.window[slot - sources.start..][..n].copy_from_slice(part);
            slot += n;
        }
        let end = self.n_used + lanes;
        if self.lines.len() < end {
            self.lines.resize(end, W::default());
        }
        W::gather(isa, &self.plan, 0, &self.window, &mut self.lines[self.n_used..end]);
        self.n_used = end;
    }
}
