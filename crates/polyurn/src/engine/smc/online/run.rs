//! One run: particles that follow a stream.

use super::course::{Arrival, Course};
use super::rota::Rota;
use crate::engine::lines::{Kernel, Layout, Place};
use crate::engine::smc::lanes::{Lanes, Shard};
use crate::engine::smc::mass::Mass;
use crate::engine::smc::prepared::Prepared;
use crate::engine::smc::run::RunResult;
use crate::engine::smc::token::Token;
use crate::engine::smc::workspace::Workspace;
use crate::engine::smc::{Scheme, When};
use crate::simd::Isa;
use crate::{Purpose, Seed};

/// What a run does, decided before the first token.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    pub n_particles: usize,
    /// Tokens drawn again after each new one.
    pub rejuvenation: u32,
    pub when: When,
    pub scheme: Scheme,
    pub isa: Isa,
    /// Threads that share the particles of one run.
    pub n_threads: usize,
    pub seed: Seed,
}

/// Particles under way.
#[derive(Debug)]
pub struct Run {
    pub replicate: u64,
    pub lanes: Lanes<u32>,
    pub mass: Mass,
    /// Smallest effective sample size: of all, and since somebody last looked.
    pub ess_min: f64,
    pub ess_lately: f64,
    pub n_resampled: u64,
    pub n_updates: u64,
    /// The new token and those that are drawn again after it, filled in.
    prepared: Vec<Prepared>,
    /// First state line of each of these; empty where the new token has no hidden values.
    first_states: Vec<usize>,
    /// Units that the second part of a step looks at: places and states of tokens that are drawn again.
    needed: Vec<u32>,
}

impl Run {
    /// Particles without tokens.
    pub fn new(layout: &Layout, way: &Way, replicate: u64) -> Self {
        let n_particles = way.n_particles;
        let work = layout.kernels.iter().map(Kernel::cost).fold(0.0, f64::max) * f64::from(1 + way.rejuvenation);
        let lanes = Lanes::new(layout, n_particles, 0, std::iter::empty(), work, way.n_threads, way.isa);
        Run {
            replicate,
            lanes,
            mass: Mass::new(n_particles),
            ess_min: n_particles as f64,
            ess_lately: n_particles as f64,
            n_resampled: 0,
            n_updates: 0,
            prepared: Vec::new(),
            first_states: Vec::new(),
            needed: Vec::new(),
        }
    }

    /// Gives lines to all units of the course.
    pub fn find_room(&mut self, course: &Course) {
        for unit in self.lanes.n_units()..course.units.len() {
            self.lanes.add_lines(course.units[unit]);
        }
    }

    /// Takes the tokens that have come.
    pub fn follow(&mut self, course: &Course, way: &Way) -> Rota {
        self.find_room(course);
        let mut rota = course.rota;
        for arrival in &course.arrivals {
            self.place(course, way, arrival, &mut rota);
        }
        rota
    }

    /// Lists the tokens of a step: the new one, then those of the window whose turn it is.
    fn list(&mut self, course: &Course, way: &Way, arrival: &Arrival, rota: &mut Rota) {
        self.first_states.clear();
        self.needed.clear();
        self.fill(0, course, arrival.kernel, course.places_of(arrival));
        if !arrival.is_hidden {
            return;
        }
        let slot = rota.arrive();
        self.first_states.push(course.slots[slot].0 as usize);
        for _ in 0..way.rejuvenation {
            let Some(token) = rota.turn() else { break };
            let (kernel, places) = course.in_window(token);
            self.fill(self.first_states.len(), course, kernel, places);
            let (first, unit) = course.slots[rota.slot_of(token)];
            self.first_states.push(first as usize);
            self.needed.extend(places.iter().map(|place| course.unit_of_block[place.block as usize]));
            self.needed.push(unit);
        }
    }

    fn fill(&mut self, ix: usize, course: &Course, kernel: usize, places: &[Place]) {
        if self.prepared.len() <= ix {
            self.prepared.resize_with(ix + 1, Prepared::default);
        }
        course.fill(&mut self.prepared[ix], kernel, places);
    }

    /// Puts a token into every urn, then draws some of the window again.
    ///
    /// The weight of a new token does not depend on its hidden state, so particles are resampled before the state is
    /// drawn: copies of one particle then differ at once.
    fn place(&mut self, course: &Course, way: &Way, arrival: &Arrival, rota: &mut Rota) {
        self.list(course, way, arrival, rota);
        if self.mass.total == 0.0 {
            return;
        }
        let Run { lanes: all, mass, prepared, first_states, replicate, .. } = self;
        let (isa, step, replicate) = (way.isa, arrival.step, *replicate);
        let token = |ix: usize| {
            let prepared: &Prepared = &prepared[ix];
            Token { isa, kernel: &course.layout.kernels[prepared.kernel], prepared }
        };
        let need_places = |all: &mut Lanes<u32>| {
            let places = course.places_of(arrival).iter();
            places.for_each(|place| all.need(course.unit_of_block[place.block as usize] as usize));
        };
        need_places(all);
        all.refresh();
        let new = token(0);
        let are_logs = new.prepared.is_guarded();
        all.each(|shard| {
            let lanes = shard.weights.len();
            shard.rng = way.seed.stream(Purpose::Online, replicate, shard.ix as u64, step);
            shard.uniforms.fill(isa, Workspace::<u32>::n_uniforms(new.kernel, lanes), &mut shard.rng);
            new.weigh(&shard.lines, &mut shard.work, &shard.uniforms, lanes);
            if !are_logs {
                shard.take_totals();
                shard.add_up();
            }
        });
        if !mass.take_totals(all, are_logs) {
            return;
        }
        let (ess, is_time) = mass.measure(all, way.when);
        self.ess_min = self.ess_min.min(ess);
        self.ess_lately = self.ess_lately.min(ess);
        if is_time {
            let mut rng = way.seed.stream(Purpose::Online, replicate, u64::MAX, step);
            mass.resample(all, way.scheme, &mut rng);
            self.n_resampled += 1;
            need_places(all);
        }
        self.needed.iter().for_each(|&unit| all.need(unit as usize));
        all.refresh();
        if arrival.is_hidden {
            // Whatever was in its slot is overwritten.
            all.is_fresh(course.slots[rota.slot_of(rota.n_tokens() - 1)].1 as usize);
        }
        all.each(|shard| {
            let Shard { lines, weights, work, uniforms, rng, kept, .. } = shard;
            let lanes = weights.len();
            if is_time {
                new.weigh(lines, work, uniforms, lanes);
            }
            new.draw(lines, work, uniforms, weights);
            for (ix, &first) in first_states.iter().enumerate() {
                let token = token(ix);
                let states = first * lanes..(first + token.kernel.buckets.len()) * lanes;
                if ix == 0 {
                    let n = states.len();
                    lines[states].copy_from_slice(&work.states[..n]);
                    continue;
                }
                kept.clear();
                kept.extend_from_slice(&lines[states.clone()]);
                token.draw_again(lines, kept, work, uniforms, rng, lanes);
                lines[states].copy_from_slice(kept);
            }
        });
        if !new.kernel.is_exact {
            all.shards.iter_mut().for_each(Shard::add_up);
            mass.add_up(all);
            mass.rescale(all);
        }
        self.n_updates += first_states.len().max(1) as u64 * all.n_particles as u64;
    }

    /// What was found so far, with what is the same in all particles.
    pub fn result(&self, closed_form: f64) -> RunResult {
        let n_particles = self.lanes.n_particles;
        RunResult {
            ln_p_sequence: closed_form + self.mass.ln_mean(n_particles),
            ess_min: self.ess_min,
            ess_trace: Vec::new(),
            resampled_at: Vec::new(),
            n_resampled: self.n_resampled,
            n_ancestors: self.lanes.genealogy.n_eves(n_particles),
            variance: self.mass.ancestor_variance(&self.lanes, self.n_resampled),
            n_updates: self.n_updates,
        }
    }

    /// Brings every line up to date, to be looked at.
    pub fn bring_up_to_date(&mut self) {
        self.lanes.need_all();
        self.lanes.refresh();
        self.lanes.settle();
    }
}
