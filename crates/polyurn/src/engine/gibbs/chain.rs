//! One chain: the hidden states of all tokens, and the counts that follow from them.

use super::counts::Counts;
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

fn impossible() -> Error {
    Error::Setting("the data cannot occur under this model and prior".into())
}

/// The state of a chain.
#[derive(Debug)]
pub struct Chain<'t> {
    tokens: &'t Tokens<'t>,
    single: Option<&'t Single>,
    isa: Isa,
    counts: Counts,
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
        let mut chain = Chain::with_states(tokens, single, isa, Vec::new());
        chain.states = vec![0; tokens.n_states];
        for token in 0..tokens.len() {
            if token % CHUNK == 0 {
                look()?;
            }
            let lone = Lone::of(tokens, token);
            let states = &mut chain.states[tokens.states(token)];
            let counts = chain.counts.lines_mut();
            if chain.weigher.draw(lone, counts, states, rng) == f64::NEG_INFINITY {
                return Err(impossible());
            }
            lone.add(states, counts);
        }
        chain.factors = single.map(|single| single.factors(chain.counts.rows()));
        Ok(chain)
    }

    /// Places each token as if it were the only one: chains begin far apart.
    ///
    /// # Errors
    /// A record that cannot occur; what `look` says.
    pub fn scattered(
        tokens: &'t Tokens<'t>,
        single: Option<&'t Single>,
        isa: Isa,
        rng: &mut impl Rng,
        look: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let is_even: Vec<bool> = tokens.layout.kernels.iter().map(|kernel| tokens.is_indifferent(kernel)).collect();
        let nothing = vec![0; if is_even.contains(&false) { tokens.n_lines } else { 0 }];
        let mut states = vec![0; tokens.n_states];
        let mut weigher = Weigher::default();
        for token in 0..tokens.len() {
            if token % CHUNK == 0 {
                look()?;
            }
            let lone = Lone::of(tokens, token);
            let states = &mut states[tokens.states(token)];
            if is_even[lone.kernel_ix] {
                Weigher::draw_any(lone.kernel, states, rng);
            } else if weigher.draw(lone, &nothing, states, rng) == f64::NEG_INFINITY {
                return Err(impossible());
            }
        }
        Ok(Chain::with_states(tokens, single, isa, states))
    }

    /// A chain in this state.
    pub fn with_states(tokens: &'t Tokens<'t>, single: Option<&'t Single>, isa: Isa, states: Vec<u32>) -> Self {
        let mut counts = Counts::new(tokens);
        for token in 0..if states.is_empty() { 0 } else { tokens.len() } {
            Lone::of(tokens, token).add(&states[tokens.states(token)], counts.lines_mut());
        }
        let factors = single.map(|single| single.factors(counts.rows()));
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
                    single.update(self.isa, &tokens.record[chunk], uniforms, self.counts.rows_mut(), factors, states);
                }
                _ => {
                    let counts = self.counts.lines_mut();
                    for token in chunk {
                        let states = &mut self.states[tokens.states(token)];
                        self.weigher.update(Lone::of(tokens, token), counts, states, rng);
                    }
                }
            }
        }
        Ok(())
    }

    /// The counts of all lines.
    pub fn counts(&self) -> &[[u32; EIGHT]] {
        self.counts.rows()
    }

    /// ln p(sequence, hidden values): for each table its part. With all digits, and slow; after each sweep see `joint`.
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
                    let n = self.counts.rows().as_flattened()[first as usize + in_block];
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
