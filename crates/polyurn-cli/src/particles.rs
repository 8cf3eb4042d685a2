//! From the flags of the particle engines to their settings.

use crate::args::{KernelArg, ParticleArgs, SchemeArg};
use polyurn::engine::Problem;
use polyurn::engine::smc::{Scheme, Wish};
use polyurn::score::order_by;
use polyurn::simd::Isa;
use polyurn::{Error, Result};
use std::time::Duration;

impl ParticleArgs {
    /// The flags that were given.
    fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        let flags = [
            ("--particles", self.particles.is_some()),
            ("--runs", self.runs.is_some()),
            ("--rejuvenate", self.rejuvenate.is_some()),
            ("--heat", self.heat.is_some()),
            ("--cooling", self.cooling.is_some()),
            ("--split-merge", self.split_merge.is_some()),
            ("--order", self.order.is_some()),
            ("--resample", self.resample.is_some()),
            ("--ess", self.ess.is_some()),
            ("--kernel", self.kernel.is_some()),
        ];
        flags.into_iter().filter(|flag| flag.1).map(|flag| flag.0)
    }

    /// Whether a flag was given that makes sense for particles alone; annealing has runs and instructions, too.
    pub fn are_wanted(&self) -> bool {
        self.given().any(|flag| !matches!(flag, "--runs" | "--kernel"))
    }

    /// Refuses flags that this engine has no use for.
    pub fn check(&self, engine: &str, allowed: &[&str]) -> Result<()> {
        match self.given().find(|flag| !allowed.contains(flag)) {
            Some(flag) => Err(Error::Setting(format!("{flag}: --method {engine} has no use for it; leave it out"))),
            None => Ok(()),
        }
    }

    /// What was asked for, and the node to order tokens by.
    pub fn wish(&self) -> Result<(Wish, Option<String>)> {
        let scheme = match self.resample {
            None | Some(SchemeArg::Systematic) => Scheme::Systematic,
            Some(SchemeArg::Stratified) => Scheme::Stratified,
            Some(SchemeArg::Residual) => Scheme::Residual,
            Some(SchemeArg::Multinomial) => Scheme::Multinomial,
        };
        let mut wish = Wish {
            particles: self.particles.map(|n| n as usize),
            runs: self.runs,
            rejuvenation: self.rejuvenate,
            heat: self.heat,
            n_cooling: self.cooling,
            n_reallocations: self.split_merge,
            scheme,
            when: self.ess,
            ..Default::default()
        };
        wish.check()?;
        let by = wish.take_order(self.order.as_deref().unwrap_or("auto"))?;
        Ok((wish, by))
    }

    /// The same for one problem and its time.
    pub fn wish_for(&self, problem: &Problem<'_>, time_limit: Option<Duration>) -> Result<Wish> {
        let (mut wish, by) = self.wish()?;
        if let Some(name) = by {
            wish.order = order_by(&name, problem)?;
        }
        Ok(Wish { time_limit, ..wish })
    }

    /// The instructions to use.
    pub fn isa(&self) -> Isa {
        if self.kernel == Some(KernelArg::Scalar) { Isa::SCALAR } else { Isa::detect() }
    }
}
