//! The lines of all particles, in shards of neighbouring particles.
//!
//! A shard holds up to 256 particles: `lines[line * lanes + lane]`. Every shard has the same lines, so a token is handled
//! in each shard by the same loops. Shards are what threads share out; their number depends on the number of particles
//! alone. Lanes beyond the last particle go along without weight.

use super::genealogy::Genealogy;
use super::loops::LANE_GROUP;
use super::reallocate::Reallocation;
use super::resample::EvenPoints;
use super::threads::{both, share_out};
use super::word::Word;
use super::workspace::Workspace;
use crate::engine::lines::Layout;
use crate::engine::uniforms::Uniforms;
use crate::seed::Stream;
use crate::simd::{Gather, Isa, Parts, WINDOW};
use crate::{Purpose, Seed};
use rayon::prelude::*;

/// Particles of a shard, at most. A power of two, so that a slot is split by shifting.
pub const MAX_LANES: usize = 256;

/// Work per step, in terms of all particles, from which threads are worth waking.
const PARALLEL_FROM: f64 = 1e5;

/// Bytes of lines that are copied before they are gathered from: few enough to stay in the cache.
pub const COPIED_AT_ONCE: usize = 1 << 20;

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
    /// Uniform numbers for one token, and where the next come from in this step.
    pub uniforms: Uniforms,
    pub rng: Stream,
    /// Buffers for moves of whole groups.
    pub reallocation: Reallocation<W>,
    /// The states of a token that is drawn again, where they stand between counts.
    pub kept: Vec<W>,
    /// How to gather lines.
    plan: Gather,
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
    /// Lines that were copied but not yet gathered from.
    copied: Vec<Unit>,
    copies: Copies<W>,
    /// Whether threads share the shards out.
    pub is_parallel: bool,
    /// Shards of a thread: the same ones every time, so that they stay in its cache.
    shards_of_thread: usize,
    isa: Isa,
}

/// Lanes of a shard for a number of particles.
pub fn lanes_for(n_particles: usize) -> usize {
    n_particles.clamp(LANE_GROUP, MAX_LANES).next_power_of_two()
}

/// Zeros that were written, not only promised: where a page is read before it is written, its first write stops all threads.
fn written<W: Word>(n: usize) -> Vec<W> {
    let mut zeros = vec![W::default(); n];
    std::hint::black_box(&mut zeros).fill(W::default());
    zeros
}

impl<W: Word> Shard<W> {
    /// Multiplies the weights by the token's probabilities.
    pub fn take_totals(&mut self) {
        self.weights.iter_mut().zip(&self.work.totals).for_each(|(weight, total)| *weight *= total);
    }

    /// Lets all particles weigh the same again.
    fn reset_weights(&mut self, n_particles: usize) {
        let lanes = self.weights.len();
        let n_used = lanes.min(n_particles - self.ix * lanes);
        self.weights[..n_used].fill(1.0);
    }

    /// Adds the weights and their squares up.
    pub fn add_up(&mut self) {
        self.sum = sum(&self.weights, |weight| weight);
        self.squares = sum(&self.weights, |weight| weight * weight);
    }
}

/// The ancestors of a new generation, drawn by several threads.
struct Drawing<'d> {
    points: EvenPoints,
    /// Sum of the weights before each shard, and of all.
    sums_before: &'d [f64],
    n_particles: usize,
    /// Shards of a thread.
    n_at_once: usize,
}

impl Drawing<'_> {
    /// How many points lie below the weights of a shard.
    fn n_below(&self, shard: usize) -> usize {
        self.points.n_below(self.sums_before[shard])
    }

    /// Shares neighbouring shards out, with the points that fall to them.
    fn share_out<W: Word>(&self, shards: &mut [Shard<W>], ancestors: &mut [u32]) {
        if shards.len() <= self.n_at_once {
            return self.fill(shards, ancestors);
        }
        let n_left = shards.len().div_ceil(self.n_at_once) / 2 * self.n_at_once;
        let (left, right) = shards.split_at_mut(n_left);
        let n_of_left = self.n_below(right[0].ix) - self.n_below(left[0].ix);
        let (of_left, of_right) = ancestors.split_at_mut(n_of_left);
        both(|| self.share_out(left, of_left), || self.share_out(right, of_right));
    }

    fn fill<W: Word>(&self, shards: &mut [Shard<W>], mut ancestors: &mut [u32]) {
        for shard in shards {
            let n = self.n_below(shard.ix + 1) - self.n_below(shard.ix);
            let own = ancestors.split_off_mut(..n).expect("points fall to some shard");
            let first = shard.ix * shard.weights.len();
            self.points.fill(&shard.weights, first as u32, self.sums_before[shard.ix], own);
            shard.reset_weights(self.n_particles);
        }
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
            lines: written(n_lines * lanes),
            weights: (0..lanes).map(|lane| if ix * lanes + lane < n_particles { 1.0 } else { 0.0 }).collect(),
            sum: 0.0,
            squares: 0.0,
            work: Workspace::new(&layout.kernels, lanes),
            uniforms: Uniforms::new((most_buckets + 1) * lanes),
            rng: Seed(0).stream(Purpose::Particles, 0, 0, 0),
            reallocation: Reallocation::default(),
            kept: Vec::new(),
            plan: Gather::default(),
        };
        let shards_of_thread = n_shards.div_ceil(n_threads);
        let is_parallel = n_threads > 1 && n_shards > 1 && work_per_step * n_particles as f64 >= PARALLEL_FROM;
        let shards = if is_parallel {
            (0..n_shards).into_par_iter().map(shard).collect()
        } else {
            (0..n_shards).map(shard).collect()
        };
        let shards_of_part = if is_parallel { shards_of_thread } else { n_shards };
        Lanes {
            lanes,
            n_particles,
            shards,
            genealogy: Genealogy::new(n_shards * lanes, shards_of_part * lanes, isa),
            units: ranges.map(|(first, n)| Unit { first, n, generation: 0 }).collect(),
            stale: Vec::new(),
            copied: Vec::new(),
            copies: Copies::new(shards_of_part, n_shards, lanes),
            isa,
            is_parallel,
            shards_of_thread,
        }
    }

    /// Adds lines of zeros behind all others, to be brought up to date together, and gives the number of their unit.
    pub fn add_lines(&mut self, n: u32) -> usize {
        let first = self.units.last().map_or(0, |unit| unit.first + unit.n);
        for shard in &mut self.shards {
            shard.lines.resize((first + n) as usize * self.lanes, W::default());
        }
        self.units.push(Unit { first, n, generation: self.genealogy.now() });
        self.units.len() - 1
    }

    /// Number of units.
    pub fn n_units(&self) -> usize {
        self.units.len()
    }

    /// Does something in every shard, on several threads where that is worth it. Lines that are being brought up to date are
    /// gathered on the way: they are then still in the cache.
    pub fn each(&mut self, f: impl Fn(&mut Shard<W>) + Sync + Send) {
        let (units, copies, genealogy, isa) = (&self.copied, &self.copies, &self.genealogy, self.isa);
        let gather = |shard: &mut Shard<W>| {
            copies.gather(shard, units, genealogy, isa);
            f(shard);
        };
        if self.is_parallel {
            share_out(&mut self.shards, self.shards_of_thread, &|_, shards| shards.iter_mut().for_each(gather));
        } else {
            self.shards.iter_mut().for_each(gather);
        }
        self.copied.clear();
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
        let now = self.genealogy.now();
        let n_at_once = (COPIED_AT_ONCE / (size_of::<W>() * self.shards.len() * self.lanes)) as u32;
        while !self.stale.is_empty() {
            self.settle();
            let mut n_lines = 0;
            while let (Some(unit), true) = (self.stale.last(), n_lines <= n_at_once) {
                let unit = &mut self.units[*unit as usize];
                // A unit may have been marked twice.
                if unit.generation != now {
                    n_lines += unit.n;
                    self.copied.push(*unit);
                    unit.generation = now;
                }
                self.stale.pop();
            }
            self.copies.take(&self.copied, &self.shards, self.is_parallel);
        }
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

    /// All lines in one particle, to change them.
    pub fn particle(&mut self, particle: usize) -> Particle<'_, W> {
        let lanes = self.lanes;
        Particle { lines: &mut self.shards[particle / lanes].lines, lanes, lane: particle % lanes }
    }

    /// All particles weigh the same again.
    pub fn reset_weights(&mut self) {
        let n_particles = self.n_particles;
        self.shards.iter_mut().for_each(|shard| shard.reset_weights(n_particles));
    }

    /// Systematic resampling: each thread looks at the weights of its own shards, and leaves them all the same.
    /// `sums_before` is a buffer.
    pub fn draw_evenly(&mut self, points: EvenPoints, sums_before: &mut Vec<f64>, ancestors: &mut Vec<u32>) {
        sums_before.clear();
        sums_before.push(0.0);
        let mut sum = 0.0;
        for shard in &self.shards {
            sum += shard.sum;
            sums_before.push(sum);
        }
        ancestors.resize(self.n_particles, 0);
        let drawing = Drawing { points, sums_before, n_particles: self.n_particles, n_at_once: self.shards_of_thread };
        if self.is_parallel {
            drawing.share_out(&mut self.shards, ancestors);
        } else {
            drawing.fill(&mut self.shards, ancestors);
        }
    }

    /// Gathers lines that were copied, before anything looks at them other than through [`Lanes::each`].
    pub fn settle(&mut self) {
        if !self.copied.is_empty() {
            self.each(|_| ());
        }
    }

    /// A new generation. Lanes without a particle follow the last one.
    pub fn resample(&mut self, ancestors: &mut Vec<u32>) {
        self.settle();
        let last = *ancestors.last().expect("at least one particle");
        ancestors.resize(self.shards.len() * self.lanes, last);
        self.genealogy.resample(ancestors, self.is_parallel);
        if let Some(generation) = self.genealogy.overdue() {
            let is_overdue = |unit: &u32| self.units[*unit as usize].generation < generation;
            self.stale.extend((0..self.units.len() as u32).filter(is_overdue));
            self.refresh();
            self.settle();
            self.genealogy.forget_before(generation);
        }
    }
}

/// One particle's numbers.
#[derive(Debug)]
pub struct Particle<'l, W> {
    lines: &'l mut [W],
    lanes: usize,
    lane: usize,
}

impl<W> Particle<'_, W> {
    /// Its number in a line.
    pub fn at(&mut self, line: usize) -> &mut W {
        &mut self.lines[line * self.lanes + self.lane]
    }
}

/// Lines as they were before they are brought up to date: for each thread those of its shards, one after another.
#[derive(Debug)]
struct Copies<W> {
    parts: Vec<Vec<W>>,
    /// Shards of a part, except the last, which may have fewer.
    shards_of_part: usize,
    /// Their lanes.
    width: usize,
}

impl<W: Word> Copies<W> {
    fn new(shards_of_part: usize, n_shards: usize, lanes: usize) -> Self {
        let parts = (0..n_shards.div_ceil(shards_of_part)).map(|_| Vec::new()).collect();
        Copies { parts, shards_of_part, width: shards_of_part * lanes }
    }

    fn take(&mut self, units: &[Unit], shards: &[Shard<W>], is_parallel: bool) {
        let n_lines: u32 = units.iter().map(|unit| unit.n).sum();
        let (width, shards_of_part) = (self.width, self.shards_of_part);
        // Behind the last line there is room to load whole registers.
        let n = n_lines as usize * width + WINDOW;
        let copy = |(part, copies): (usize, &mut Vec<W>)| {
            if copies.len() < n {
                copies.resize(n, W::default());
            }
            let shards = &shards[part * shards_of_part..];
            let shards = &shards[..shards_of_part.min(shards.len())];
            let lanes = shards[0].weights.len();
            let lines = units.iter().flat_map(|unit| unit.first as usize..(unit.first + unit.n) as usize);
            for (line, copy) in lines.zip(copies.chunks_exact_mut(width)) {
                for (shard, copy) in shards.iter().zip(copy.chunks_exact_mut(lanes)) {
                    copy.copy_from_slice(&shard.lines[line * lanes..][..lanes]);
                }
            }
        };
        if is_parallel {
            share_out(&mut self.parts, 1, &|part, copies| copies.iter_mut().for_each(|copies| copy((part, copies))));
        } else {
            self.parts.iter_mut().enumerate().for_each(copy);
        }
    }

    /// Writes what each particle's ancestor had.
    fn gather(&self, shard: &mut Shard<W>, units: &[Unit], genealogy: &Genealogy, isa: Isa) {
        let lanes = shard.weights.len();
        let mut from = Parts { parts: &self.parts, line: 0, width: self.width };
        let mut planned = None;
        for unit in units {
            if planned != Some(unit.generation) {
                let slots = shard.ix * lanes..(shard.ix + 1) * lanes;
                shard.plan.set(genealogy.map_from(unit.generation, slots), self.width);
                planned = Some(unit.generation);
            }
            let lines = &mut shard.lines[unit.first as usize * lanes..][..unit.n as usize * lanes];
            W::gather(isa, &shard.plan, from, lines);
            from.line += unit.n as usize;
        }
    }
}
