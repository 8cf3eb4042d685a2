//! One seed, many named random streams.
//!
//! A stream is keyed by (purpose, replicate, block, step), so that a draw depends on what it is for and not on the
//! order in which threads come to it: the same seed gives the same bytes for any number of threads. The key of the
//! ChaCha generator holds seed, purpose, replicate and block; its stream number is the step, so no two keys collide.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// The seed of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Seed(pub u64);

/// What a random stream is used for. Streams of different purposes never overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// Drawing intensities, tables and tokens from the generative process.
    Simulate = 1,
    /// Drawing tokens from a given table of counts.
    Resample = 2,
    /// Forward and reverse steps of the urn.
    Urn = 3,
    /// Order of the tokens and which of them are drawn again: shared by all particles of a run.
    Schedule = 4,
    /// Hidden states of particles.
    Particles = 5,
    /// Ancestors of particles.
    Ancestors = 6,
    /// Starts of sweeps.
    Start = 7,
    /// Which particles are kept as draws.
    Draws = 8,
    /// Hidden states of Gibbs chains.
    Gibbs = 9,
    /// Chains that the reference of an annealing run is fitted to.
    Pilot = 10,
    /// Hidden states of annealed particles, from the reference to the posterior.
    Anneal = 11,
    /// Chains whose last states are draws from the posterior, and hidden states of particles on their way back.
    Reverse = 12,
    /// Order, hidden states and ancestors of particles that follow a stream.
    Online = 13,
}

/// The generator behind every stream.
pub type Stream = ChaCha8Rng;

impl Seed {
    /// The stream for a purpose, a replicate, a block of particles or records, and a step.
    pub fn stream(self, purpose: Purpose, replicate: u64, block: u64, step: u64) -> Stream {
        let mut key = [0u8; 32];
        for (slot, word) in key.chunks_exact_mut(8).zip([self.0, purpose as u64, replicate, block]) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(step);
        rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    fn first(seed: u64, purpose: Purpose, replicate: u64, block: u64, step: u64) -> u64 {
        Seed(seed).stream(purpose, replicate, block, step).next_u64()
    }

    #[test]
    fn every_part_of_the_key_changes_the_stream_and_nothing_else_does() {
        let base = first(7, Purpose::Urn, 1, 2, 3);
        assert_eq!(base, first(7, Purpose::Urn, 1, 2, 3));
        for other in [
            first(8, Purpose::Urn, 1, 2, 3),
            first(7, Purpose::Simulate, 1, 2, 3),
            first(7, Purpose::Urn, 0, 2, 3),
            first(7, Purpose::Urn, 1, 0, 3),
            first(7, Purpose::Urn, 1, 2, 0),
        ] {
            assert_ne!(base, other);
        }
    }
}
