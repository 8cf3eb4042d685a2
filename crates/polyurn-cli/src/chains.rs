//! From the flags of Gibbs chains to their settings.

use crate::args::{ChainArgs, MovesArg};
use polyurn::engine::gibbs::Moves;
use polyurn::fit::ChainWish;
use polyurn::{Error, Result};

/// Particles of a move of all tokens, unless asked otherwise.
const PARTICLES: usize = 64;

impl ChainArgs {
    /// Refuses flags for an engine that has no chains.
    pub fn refuse(&self, engine: &str) -> Result<()> {
        let flags = [
            ("--chains", self.chains.is_some()),
            ("--sweeps", self.sweeps.is_some()),
            ("--warm-up", self.warm_up.is_some()),
            ("--thin", self.thin.is_some()),
            ("--moves", self.moves.is_some()),
        ];
        match flags.into_iter().find(|flag| flag.1) {
            Some((flag, _)) => {
                Err(Error::Setting(format!("{flag}: --method {engine} has no use for it; leave it out")))
            }
            None => Ok(()),
        }
    }

    /// What was asked for, with this many particles for moves of all tokens.
    pub fn wish(&self, n_particles: Option<usize>) -> Result<ChainWish> {
        let moves = match (self.moves.unwrap_or(MovesArg::Tokens), n_particles) {
            (MovesArg::Tokens, Some(_)) => {
                let message = "--particles: a chain of single tokens has none; give --moves conditional or independent, or leave it out";
                return Err(Error::Setting(message.into()));
            }
            (MovesArg::Tokens, None) => Moves::Tokens,
            (MovesArg::Conditional, n) => Moves::Conditional(n.unwrap_or(PARTICLES)),
            (MovesArg::Independent, n) => Moves::Independent(n.unwrap_or(PARTICLES)),
        };
        Ok(ChainWish {
            chains: self.chains,
            sweeps: self.sweeps,
            warm_up: self.warm_up,
            thin: self.thin,
            moves: Some(moves),
        })
    }
}
