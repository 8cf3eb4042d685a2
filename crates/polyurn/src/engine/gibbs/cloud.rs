//! Moves of all tokens at once, by particles: for small data whose modes single tokens do not leave.
//!
//! A cloud of particles places the tokens one after another in a random order, as sequential Monte Carlo does, each token given those
//! before it, and one of them is taken in the end, in proportion to the weights (Andrieu, Doucet and Holenstein 2010, "Particle Markov
//! chain Monte Carlo methods"). Two moves leave the posterior alone, with any number of particles:
//!
//! - *conditional*: one of the particles is the present state, which survives every resampling;
//! - *independent*: a cloud without it, whose estimate of the evidence Z' is compared with the one Z of the cloud that the present
//!   state came from: the new state is taken with probability min(1, Z' / Z).
//!
//! The cost of a move is particles times tokens, and a copy of all counts where particles are resampled.

use super::tokens::Tokens;
use super::weigh::{Lone, Weigher, pick};
use crate::error::{Error, Result};
use crate::math::draw::{below, open_unit};
use rand::Rng;

/// Particles are resampled when fewer than this share of them are effective.
const ESS_SHARE: f64 = 0.5;

/// Tokens between two looks at the control.
const LOOK: usize = 64;

/// Places for the tokens of a problem.
#[derive(Debug)]
pub struct Cloud<'t> {
    tokens: &'t Tokens<'t>,
    particles: Vec<Particle>,
    order: Vec<u32>,
    ln_weights: Vec<f64>,
    weights: Vec<f64>,
    weigher: Weigher,
}

#[derive(Debug, Clone)]
struct Particle {
    counts: Vec<u32>,
    states: Vec<u32>,
}

impl<'t> Cloud<'t> {
    /// With so many particles.
    pub fn new(tokens: &'t Tokens<'t>, n_particles: usize) -> Self {
        let empty = Particle { counts: vec![0; tokens.n_lines], states: vec![0; tokens.n_states] };
        Cloud {
            tokens,
            particles: vec![empty; n_particles.max(1)],
            order: (0..tokens.len() as u32).collect(),
            ln_weights: Vec::new(),
            weights: Vec::new(),
            weigher: Weigher::default(),
        }
    }

    /// Places all tokens; where there is a state to keep, the first particle follows it. `states` are those of the particle that is taken;
    /// ln of the estimate of the evidence is returned, without what all states have in common.
    ///
    /// # Errors
    /// A record that cannot occur; what `look` says.
    pub fn place(
        &mut self,
        kept: Option<&[u32]>,
        states: &mut Vec<u32>,
        rng: &mut impl Rng,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<f64> {
        let tokens = self.tokens;
        let n_particles = self.particles.len();
        self.particles.iter_mut().for_each(|particle| particle.counts.fill(0));
        self.ln_weights.clear();
        self.ln_weights.resize(n_particles, 0.0);
        // Any order will do as long as it does not depend on the particles.
        for last in (1..self.order.len()).rev() {
            self.order.swap(last, below(last as u64 + 1, rng) as usize);
        }
        let mut ln_mean = 0.0;
        for place in 0..self.order.len() {
            if place % LOOK == 0 {
                look()?;
            }
            let token = self.order[place] as usize;
            let lone = Lone::of(tokens, token);
            for (ix, particle) in self.particles.iter_mut().enumerate() {
                let own = &mut particle.states[tokens.states(token)];
                let ln_total = self.weigher.draw(lone, &particle.counts, own, rng);
                if let (Some(kept), 0) = (kept, ix) {
                    own.copy_from_slice(&kept[tokens.states(token)]);
                }
                if ln_total > f64::NEG_INFINITY {
                    self.ln_weights[ix] += ln_total + lone.ln_correction(own, &particle.counts);
                    lone.add(own, &mut particle.counts);
                } else {
                    self.ln_weights[ix] = f64::NEG_INFINITY;
                }
            }
            let largest = self.ln_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if largest == f64::NEG_INFINITY {
                return Err(Error::Setting("the data cannot occur under this model and prior".into()));
            }
            self.weights.clear();
            self.weights.extend(self.ln_weights.iter().map(|ln| (ln - largest).exp()));
            let total: f64 = self.weights.iter().sum();
            let ess = total * total / self.weights.iter().map(|weight| weight * weight).sum::<f64>();
            let is_last = place + 1 == self.order.len();
            if is_last || ess < ESS_SHARE * n_particles as f64 {
                ln_mean += largest + (total / n_particles as f64).ln();
                if !is_last {
                    self.resample(kept.is_some(), rng);
                    self.ln_weights.fill(0.0);
                }
            }
        }
        let taken = if self.order.is_empty() { 0 } else { pick(&self.weights, open_unit(rng)) };
        states.clone_from(&self.particles[taken].states);
        Ok(ln_mean)
    }

    /// Every slot takes a particle in proportion to its weight; the one that is to be kept stays where it is.
    fn resample(&mut self, is_first_kept: bool, rng: &mut impl Rng) {
        let n = self.particles.len();
        let mut ancestors: Vec<usize> = (0..n).map(|_| pick(&self.weights, open_unit(rng))).collect();
        if is_first_kept {
            ancestors[0] = 0;
        }
        let mut is_used = vec![false; n];
        ancestors.iter().for_each(|&ancestor| is_used[ancestor] = true);
        // Who has children keeps one of them in place, so that no more than n particles are ever copied; slots other than the
        // first have no meaning.
        let mut free = (0..n).filter(|&slot| !is_used[slot]);
        let mut is_placed = vec![false; n];
        let mut copies: Vec<(usize, usize)> = Vec::new();
        for ancestor in ancestors {
            if std::mem::replace(&mut is_placed[ancestor], true) {
                copies.push((ancestor, free.next().expect("as many slots are free as there are further children")));
            }
        }
        for (from, to) in copies {
            let [from, to] = self.particles.get_disjoint_mut([from, to]).expect("two different slots");
            to.counts.copy_from_slice(&from.counts);
            to.states.copy_from_slice(&from.states);
        }
    }
}
