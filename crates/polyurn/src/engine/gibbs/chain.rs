//! One chain: the hidden states of all tokens, and the counts that follow from them.

use super::single::{Factors, Single};
use super::tokens::{EIGHT, Tokens};
use super::weigh::{Lone, Weigher};
use crate::engine::Problem;
use crate::engine::uniforms::Uniforms;
use crate::error::{Error, Result};
use crate::math::LnProduct;
use crate::simd::Isa;
use rand::Rng;

/// Tokens between two looks at the control.
const CHUNK: usize = 4096;

/// The state of a chain.
#[derive(Debug)]
pub struct Chain<'t> {
    tokens: &'t Tokens<'t>,
    single: Option<&'t Single>,
    isa: Isa,
    counts: Vec<[u32; EIGHT]>,
    factors: Option<Factors>,
    states: Vec<u32>,
    weigher: Weigher,
    uniforms: Uniforms,
}

impl<'t> Chain<'t> {
    /// Places the tokens one after another, each given those before it.
    ///
    /// # Errors
    /// A record that cannot occur; what `look` says.
    pub fn start(
        tokens: &'t Tokens<'t>,
        single: Option<&'t Single>,
        isa: Isa,
        rng: &mut impl Rng,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let mut chain = Chain {
            tokens,
            single,
            isa,
            counts: vec![[0; EIGHT]; tokens.n_lines / EIGHT],
            factors: None,
            states: vec![0; tokens.n_states],
            weigher: Weigher::default(),
            uniforms: Uniforms::new(CHUNK),
        };
        for token in 0..tokens.len() {
            if token % CHUNK == 0 {
                look()?;
            }
            let lone = Lone::of(tokens, token);
            let states = &mut chain.states[tokens.states(token)];
            let counts = chain.counts.as_flattened_mut();
            if chain.weigher.draw(lone, counts, states, rng) == f64::NEG_INFINITY {
                return Err(Error::Setting("the data cannot occur under this model and prior".into()));
            }
            lone.add(states, counts);
        }
        chain.factors = single.map(|single| single.factors(&chain.counts));
        Ok(chain)
    }

    /// A chain in this state.
    pub fn with_states(tokens: &'t Tokens<'t>, single: Option<&'t Single>, isa: Isa, states: Vec<u32>) -> Self {
        let mut counts = vec![[0; EIGHT]; tokens.n_lines / EIGHT];
        for token in 0..tokens.len() {
            Lone::of(tokens, token).add(&states[tokens.states(token)], counts.as_flattened_mut());
        }
        let factors = single.map(|single| single.factors(&counts));
        let (weigher, uniforms) = (Weigher::default(), Uniforms::new(CHUNK));
        Chain { tokens, single, isa, counts, factors, states, weigher, uniforms }
    }

    /// The states of all tokens.
    pub fn states(&self) -> &[u32] {
        &self.states
    }

    /// Draws every token anew, one after another.
    ///
    /// # Errors
    /// What `look` says, between two tokens.
    pub fn sweep(&mut self, rng: &mut impl Rng, look: &dyn Fn() -> Result<()>) -> Result<()> {
        let tokens = self.tokens;
        for first in (0..tokens.len()).step_by(CHUNK) {
            look()?;
            let chunk = first..(first + CHUNK).min(tokens.len());
            match (self.single, &mut self.factors) {
                (Some(single), Some(factors)) => {
                    let uniforms = self.uniforms.fill(self.isa, chunk.len(), rng);
                    // With one hidden node every token has one state.
                    let states = &mut self.states[chunk.clone()];
                    single.update(self.isa, &tokens.record[chunk], uniforms, &mut self.counts, factors, states);
                }
                _ => {
                    let counts = self.counts.as_flattened_mut();
                    for token in chunk {
                        let states = &mut self.states[tokens.states(token)];
                        self.weigher.update(Lone::of(tokens, token), counts, states, rng);
                    }
                }
            }
        }
        Ok(())
    }

    /// ln p(sequence, hidden values): for each table its part.
    pub fn ln_joint_by_table(&self, problem: &Problem<'_>) -> Vec<f64> {
        let layout = self.tokens.layout;
        let mut products: Vec<LnProduct> = problem.model.tables().iter().map(|_| LnProduct::new()).collect();
        for ((table, kind, values), n) in &layout.certain {
            let pseudo = kind.pseudo_count(problem.prior.table(*table), values);
            kind.multiply_closed_form(pseudo, *n, &mut products[table.ix()]);
        }
        for (ix, counted) in layout.counted.iter().enumerate() {
            let product = &mut products[counted.table.ix()];
            for (block, &first) in layout.blocks.iter().zip(&self.tokens.first_line) {
                if block.class as usize != counted.class {
                    continue;
                }
                for in_block in 0..layout.interior(counted.class) {
                    let n = self.counts.as_flattened()[first as usize + in_block];
                    if n > 0 {
                        let pseudo = layout.pseudo(ix, block, in_block);
                        counted.kind.multiply_closed_form(pseudo, u64::from(n), product);
                    }
                }
            }
        }
        products.iter().map(|product| product.ln().value()).collect()
    }
}
