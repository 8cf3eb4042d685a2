//! What happens to one token in one shard of particles, once its lines and pseudo-counts are filled in.

use super::prepared::Prepared;
use super::word::Word;
use super::workspace::Workspace;
use crate::engine::lines::Kernel;
use crate::engine::uniforms::Uniforms;
use crate::seed::Stream;
use crate::simd::Isa;

/// A token at hand.
#[derive(Debug, Clone, Copy)]
pub struct Token<'t> {
    pub isa: Isa,
    pub kernel: &'t Kernel,
    pub prepared: &'t Prepared,
}

// Inlined: all that a run does goes through here, and calls cost three percent.
impl Token<'_> {
    /// Weighs all states with the uniform numbers that were filled in last.
    #[inline(always)]
    pub fn weigh<W: Word>(self, counts: &[W], work: &mut Workspace<W>, uniforms: &Uniforms, lanes: usize) {
        let uniforms = uniforms.last(Workspace::<W>::n_uniforms(self.kernel, lanes));
        work.weigh(self.isa, self.kernel, self.prepared, counts, uniforms, lanes);
    }

    /// Draws the states of a new token that was weighed, and counts them.
    #[inline(always)]
    pub fn draw<W: Word>(self, counts: &mut [W], work: &mut Workspace<W>, uniforms: &Uniforms, weights: &mut [f64]) {
        let Token { isa, kernel, prepared } = self;
        let lanes = weights.len();
        work.draw(isa, kernel, uniforms.last(Workspace::<W>::n_uniforms(kernel, lanes)), lanes);
        if !kernel.is_exact {
            work.correct(kernel, prepared, counts, lanes);
            weights.iter_mut().zip(&work.corrections).for_each(|(weight, correction)| *weight *= correction);
        }
        work.add(isa, kernel, prepared, counts, lanes);
    }

    /// One collapsed Gibbs update of a token that is in the counts, in these states, with the next numbers of a stream.
    #[inline(always)]
    pub fn draw_again<W: Word>(
        self,
        counts: &mut [W],
        states: &mut [W],
        work: &mut Workspace<W>,
        uniforms: &mut Uniforms,
        rng: &mut Stream,
        lanes: usize,
    ) {
        let Token { isa, kernel, prepared } = self;
        work.remove(isa, kernel, prepared, states, counts, lanes);
        let drawn_with = uniforms.fill(isa, Workspace::<W>::n_uniforms(kernel, lanes), rng);
        work.weigh(isa, kernel, prepared, counts, drawn_with, lanes);
        work.draw(isa, kernel, drawn_with, lanes);
        if !kernel.is_exact {
            let accepted_with = uniforms.fill(isa, lanes, rng);
            work.accept_or_keep(kernel, prepared, states, counts, accepted_with, lanes);
        }
        work.add(isa, kernel, prepared, counts, lanes);
        states.copy_from_slice(&work.states[..states.len()]);
    }
}
