//! From the flags of annealing to its settings.

use crate::args::{AnnealArgs, ParticleArgs, PathArg};
use polyurn::engine::anneal::{AnnealPath, AnnealWish};
use polyurn::{Error, Result};

impl AnnealArgs {
    /// The first flag that was given.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--bracket", self.bracket),
            ("--path", self.path.is_some()),
            ("--sweeps", self.sweeps.is_some()),
            ("--chains", self.chains.is_some()),
            ("--chain-sweeps", self.chain_sweeps.is_some()),
        ];
        flags.into_iter().find(|flag| flag.1).map(|flag| flag.0)
    }

    /// Whether any flag was given.
    pub fn is_any_given(&self) -> bool {
        self.given().is_some()
    }

    /// Refuses all of them, for an engine that has no use for them.
    pub fn refuse(&self, engine: &str) -> Result<()> {
        match self.given() {
            Some(flag) => {
                Err(Error::Setting(format!("{flag}: --method {engine} has no use for it; use --method anneal")))
            }
            None => Ok(()),
        }
    }

    /// What was asked for.
    pub fn wish(&self, particles: &ParticleArgs) -> AnnealWish {
        AnnealWish {
            particles: particles.particles.map(|n| n as usize),
            runs: particles.runs,
            sweeps: self.sweeps,
            pilots: self.chains,
            pilot_sweeps: self.chain_sweeps,
            is_bracket: self.bracket,
            truth: None,
            is_first_look: false,
            path: self.path.map(|path| match path {
                PathArg::Reference => AnnealPath::Reference,
                PathArg::Prior => AnnealPath::Prior,
            }),
        }
    }
}
