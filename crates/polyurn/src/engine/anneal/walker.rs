//! One particle: the hidden states of all tokens, and what follows from them.

use super::energy::{Energy, LnParts};
use super::fitted::{Fitted, Levels, Logs};
use super::single::{Batch, Factors, Parts, Powered, Recorded, Single};
use crate::engine::gibbs::{Lone, Tilt, Tokens, Weigher};
use crate::engine::uniforms::Uniforms;
use crate::error::{Error, Result};
use crate::simd::Isa;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Tokens between two looks at the control.
const CHUNK: usize = 4096;

/// What all walkers share.
#[derive(Debug)]
pub struct Setup<'t> {
    pub tokens: &'t Tokens<'t>,
    pub single: Option<Single>,
    pub energy: Energy,
    /// For each counted table whether its power grows along the path.
    pub is_tempered: Vec<bool>,
    /// ln of the sizes of unseen nodes whose tables gain power.
    pub ln_sizes: f64,
    pub isa: Isa,
}

impl<'t> Setup<'t> {
    /// For a path along which these tables gain power.
    pub fn new(tokens: &'t Tokens<'t>, is_tempered: Vec<bool>, isa: Isa) -> Self {
        let single = Single::new(tokens, &is_tempered);
        let energy = Energy::new(tokens, is_tempered.clone());
        Setup { tokens, single, energy, is_tempered, ln_sizes: 0.0, isa }
    }

    /// What all walkers need at a temperature.
    pub fn at(&self, beta: f64, fitted: Option<&Fitted>) -> Heat {
        let powers = self.is_tempered.iter().map(|&is_tempered| if is_tempered { beta } else { 1.0 }).collect();
        let step = fitted.and_then(Fitted::step);
        Heat { beta, powers, factors: self.single.as_ref().map(|single| single.factors(beta, step)) }
    }
}

/// A point of the path.
#[derive(Debug)]
pub struct Heat {
    pub beta: f64,
    powers: Vec<f64>,
    factors: Option<Factors>,
}

/// Where the pilots note what they see.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Notes {
    /// Sums of probabilities.
    Probabilities(Recorded),
    /// Visits of states, from the first of each record.
    Visits { first: Vec<usize>, visits: Vec<f64> },
}

impl Notes {
    /// Empty ones.
    pub fn new(setup: &Setup<'_>) -> Self {
        match &setup.single {
            Some(single) => {
                let n = setup.tokens.layout.records.len() * single.n_eights;
                Notes::Probabilities(Recorded { sums: vec![[0.0; 8]; n] })
            }
            None => {
                let (first, n) = Logs::room(setup.tokens);
                Notes::Visits { first, visits: vec![0.0; n] }
            }
        }
    }

    /// Whether these can be notes of this problem.
    pub fn fit(&self, setup: &Setup<'_>) -> bool {
        match (self, Notes::new(setup)) {
            (Notes::Probabilities(own), Notes::Probabilities(empty)) => {
                let is_sum = |sum: &f32| sum.is_finite() && *sum >= 0.0;
                own.sums.len() == empty.sums.len() && own.sums.as_flattened().iter().all(is_sum)
            }
            (Notes::Visits { first, visits }, Notes::Visits { first: wanted, visits: empty }) => {
                *first == wanted && visits.len() == empty.len() && visits.iter().all(|n| n.is_finite() && *n >= 0.0)
            }
            _ => false,
        }
    }

    /// The reference that they suggest.
    pub fn fitted(&self, tokens: &Tokens<'_>) -> Fitted {
        match self {
            Notes::Probabilities(recorded) => {
                let n_values = tokens.layout.hidden_size.expect("one hidden node");
                Fitted::Levels(Levels::new(tokens, n_values, &recorded.sums))
            }
            Notes::Visits { visits, .. } => {
                let layout = tokens.layout;
                let is_possible = |record: usize, bucket: usize, state: usize| {
                    let kernel = layout.kernel_of(record);
                    let places = layout.records.places(record);
                    kernel.terms_of[bucket].iter().all(|&ix| {
                        let term = &kernel.terms[ix];
                        let place = places[term.touch];
                        let in_block = (place.offset + term.offsets[state]) as usize;
                        let block = &layout.blocks[place.block as usize];
                        !term.is_numerator || !layout.pseudo(term.counted, block, in_block).is_zero()
                    })
                };
                Fitted::Logs(Logs::new(tokens, visits, is_possible))
            }
        }
    }
}

impl Notes {
    /// The mean over so many noted sweeps of ln of a reference's probability of the states.
    pub fn mean_ln_reference(&self, tokens: &Tokens<'_>, fitted: &Fitted, n_sweeps: u64) -> f64 {
        match (self, fitted) {
            (Notes::Probabilities(recorded), Fitted::Levels(levels)) => {
                let n_eights = recorded.sums.len() / tokens.layout.records.len().max(1);
                let of_record = |(record, rows): (usize, &[[f32; 8]])| -> f64 {
                    let level = |value: usize| f64::from(levels.level(record, value));
                    let sums = rows.as_flattened().iter().enumerate();
                    sums.filter(|(_, sum)| **sum > 0.0).map(|(value, &sum)| level(value) * f64::from(sum)).sum()
                };
                let level_sum: f64 = recorded.sums.chunks(n_eights).enumerate().map(of_record).sum();
                levels.ln_probability_at(level_sum / n_sweeps as f64)
            }
            (Notes::Visits { visits, .. }, Fitted::Logs(logs)) => {
                visits.iter().zip(logs.all()).filter(|(n, _)| **n > 0.0).map(|(n, ln)| n * ln).sum::<f64>()
                    / n_sweeps as f64
            }
            _ => unreachable!("a reference is made of notes of its own kind"),
        }
    }
}

/// The state of a particle.
#[derive(Debug)]
pub struct Walker {
    counts: Vec<u32>,
    states: Vec<u32>,
    powered: Powered,
    /// Sum of the levels of all states.
    level_sum: i64,
    weigher: Weigher,
    uniforms: Uniforms,
}

impl Walker {
    /// A walker in these states.
    pub fn with_states(setup: &Setup<'_>, fitted: Option<&Fitted>, states: Vec<u32>) -> Self {
        let tokens = setup.tokens;
        let mut counts = vec![0; tokens.n_lines];
        for token in 0..tokens.len() {
            Lone::of(tokens, token).add(&states[tokens.states(token)], &mut counts);
        }
        let level_sum = match fitted {
            Some(Fitted::Levels(levels)) => levels.level_sum(tokens, &states),
            _ => 0,
        };
        let (weigher, uniforms) = (Weigher::default(), Uniforms::new(CHUNK));
        Walker { counts, states, powered: Powered::default(), level_sum, weigher, uniforms }
    }

    /// Places the tokens one after another, each given those before it.
    ///
    /// # Errors
    /// A record that cannot occur; what `look` says.
    pub fn by_urn(setup: &Setup<'_>, rng: &mut impl Rng, look: &dyn Fn() -> Result<()>) -> Result<Self> {
        Ok(Walker::by_urn_at(setup, &setup.at(1.0, None), rng, look)?.0)
    }

    /// The same with the weights of a temperature, and ln of the product of what the tokens weigh: right on average for the sum
    /// over all states, and the same whatever is drawn where no table shows anything.
    ///
    /// # Errors
    /// As for [`Walker::by_urn`].
    pub fn by_urn_at(
        setup: &Setup<'_>,
        heat: &Heat,
        rng: &mut impl Rng,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<(Self, f64)> {
        let tokens = setup.tokens;
        let tilt = (heat.beta < 1.0).then_some(Tilt { powers: &heat.powers, ln_reference: &[], reference_power: 0.0 });
        let mut ln_weight = -(1.0 - heat.beta) * setup.ln_sizes;
        let mut counts = vec![0; tokens.n_lines];
        let mut states = vec![0; tokens.n_states];
        let mut weigher = Weigher::default();
        for token in 0..tokens.len() {
            if token % CHUNK == 0 {
                look()?;
            }
            let lone = Lone { tilt, ..Lone::of(tokens, token) };
            let own = &mut states[tokens.states(token)];
            let ln_total = weigher.draw(lone, &counts, own, rng);
            if ln_total == f64::NEG_INFINITY {
                return Err(Error::Setting("the data cannot occur under this model and prior".into()));
            }
            ln_weight += ln_total + lone.ln_correction(own, &counts);
            lone.add(own, &mut counts);
        }
        let uniforms = Uniforms::new(CHUNK);
        Ok((Walker { counts, states, powered: Powered::default(), level_sum: 0, weigher, uniforms }, ln_weight))
    }

    /// The states of all tokens.
    pub fn states(&self) -> &[u32] {
        &self.states
    }

    /// Goes on from where another walker is.
    pub fn copy_from(&mut self, other: &Walker) {
        self.counts.copy_from_slice(&other.counts);
        self.states.copy_from_slice(&other.states);
        self.level_sum = other.level_sum;
    }

    /// ln of the model's probability in two parts.
    pub fn ln_parts(&self, setup: &Setup<'_>) -> LnParts {
        setup.energy.of(setup.tokens, &self.counts)
    }

    /// ln of what the path's end has more than its start: the derivative of ln of the density along the path.
    pub fn ln_ratio(&self, setup: &Setup<'_>, fitted: Option<&Fitted>) -> f64 {
        self.ln_parts(setup).tempered + setup.ln_sizes - fitted.map_or(0.0, |fitted| self.ln_reference(setup, fitted))
    }

    /// ln of a reference's probability of the states.
    pub fn ln_reference(&self, setup: &Setup<'_>, fitted: &Fitted) -> f64 {
        match fitted {
            Fitted::Levels(levels) => levels.ln_probability(self.level_sum),
            Fitted::Logs(_) => fitted.ln_probability(setup.tokens, &self.states),
        }
    }

    /// ln of the model's probability of the states, without what all states have in common.
    pub fn ln_joint(&self, setup: &Setup<'_>) -> f64 {
        let LnParts { steady, tempered } = self.ln_parts(setup);
        steady + tempered
    }

    /// Draws every token anew, one after another, at a temperature.
    ///
    /// # Errors
    /// What `look` says, between two tokens.
    pub fn sweep(
        &mut self,
        setup: &Setup<'_>,
        heat: &Heat,
        fitted: Option<&Fitted>,
        mut notes: Option<&mut Notes>,
        rng: &mut impl Rng,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        let tokens = setup.tokens;
        if let (Some(single), Some(factors)) = (&setup.single, &heat.factors) {
            single.refresh(factors, &self.counts, &mut self.powered);
        }
        for first in (0..tokens.len()).step_by(CHUNK) {
            look()?;
            let chunk = first..(first + CHUNK).min(tokens.len());
            match (&setup.single, &heat.factors) {
                (Some(single), Some(factors)) => {
                    let uniforms = self.uniforms.fill(setup.isa, chunk.len(), rng);
                    let states = &mut self.states[chunk.clone()];
                    let batch = Batch { records: &tokens.record[chunk], uniforms, states };
                    let recorded = match &mut notes {
                        Some(Notes::Probabilities(recorded)) => Some(recorded),
                        _ => None,
                    };
                    let level_sum = &mut self.level_sum;
                    let parts = Parts { counts: &mut self.counts, powered: &mut self.powered, level_sum, recorded };
                    let guide = match fitted {
                        Some(Fitted::Levels(levels)) => Some(levels),
                        _ => None,
                    };
                    single.update(setup.isa, factors, guide, batch, parts);
                }
                _ => {
                    for token in chunk {
                        let record = tokens.record[token] as usize;
                        let plain = Lone::of(tokens, token);
                        let ln_reference: &[f64] = match fitted {
                            Some(Fitted::Logs(logs)) => logs.of(record, plain.kernel),
                            _ => &[],
                        };
                        let tilt = Tilt { powers: &heat.powers, ln_reference, reference_power: 1.0 - heat.beta };
                        let lone = Lone { tilt: (heat.beta < 1.0).then_some(tilt), ..plain };
                        let states = &mut self.states[tokens.states(token)];
                        self.weigher.update(lone, &mut self.counts, states, rng);
                        if let Some(Notes::Visits { first, visits }) = &mut notes {
                            for (begin, &state) in plain.kernel.first_state.iter().zip(&*states) {
                                visits[first[record] + begin + state as usize] += 1.0;
                            }
                        }
                    }
                }
            }
        }
        // Without powers there is no level to count; the last steps of the path need it again.
        if let Some(Fitted::Levels(levels)) = fitted
            && heat.beta >= 1.0
        {
            self.level_sum = levels.level_sum(tokens, &self.states);
        }
        Ok(())
    }
}
