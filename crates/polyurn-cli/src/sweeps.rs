//! From the flags of the engines that sweep to their settings.

use crate::args::{FitSweepArgs, KernelArg, ModeArg, ParticleArgs, StreamArgs, SweepArgs, UpdateArg};
use crate::output::Failure;
use polyurn::engine::sweeps::{Climb, Mode, StartTables, Turns};
use polyurn::simd::Isa;
use polyurn::{Error, Result};

impl SweepArgs {
    fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        let flags = [
            ("--restarts", self.restarts.is_some()),
            ("--max-iter", self.max_iter.is_some()),
            ("--tol", self.tol.is_some()),
            ("--maximise", !self.maximise.is_empty()),
        ];
        flags.into_iter().filter(|flag| flag.1).map(|flag| flag.0)
    }

    /// Refuses `--maximise`, for all but vb.
    pub fn refuse_maximise(&self, engine: &str) -> Result<()> {
        refuse((!self.maximise.is_empty()).then_some("--maximise").into_iter(), engine)
    }

    /// Refuses flags for an engine that does not sweep.
    pub fn refuse(&self, engine: &str) -> Result<()> {
        refuse(self.given(), engine)
    }

    /// What was asked for, as the engines want it.
    pub fn climb(&self, particles: &ParticleArgs, threads: usize) -> Climb {
        let default = Climb::default();
        Climb {
            restarts: self.restarts.unwrap_or(default.restarts),
            max_iter: self.max_iter.unwrap_or(default.max_iter),
            tol: self.tol.unwrap_or(default.tol),
            isa: if particles.kernel == Some(KernelArg::Scalar) { Isa::SCALAR } else { Isa::detect() },
            threads,
        }
    }
}

fn refuse(mut flags: impl Iterator<Item = &'static str>, engine: &str) -> Result<()> {
    match flags.next() {
        Some(flag) => Err(Error::Setting(format!("{flag}: --method {engine} has no use for it; leave it out"))),
        None => Ok(()),
    }
}

impl StreamArgs {
    /// Refuses flags for an engine that holds all records.
    pub fn refuse(&self, engine: &str) -> Result<()> {
        let flags = [
            ("--seen", self.seen.is_some()),
            ("--tokens", self.tokens.is_some()),
            ("--batch", self.batch.is_some()),
            ("--passes", self.passes.is_some()),
            ("--kappa", self.kappa.is_some()),
            ("--tau", self.tau.is_some()),
            ("--local", self.local.is_some()),
        ];
        refuse(flags.into_iter().filter(|flag| flag.1).map(|flag| flag.0), engine)
    }
}

impl FitSweepArgs {
    /// Refuses flags for an engine that does not sweep.
    pub fn refuse(&self, engine: &str) -> Result<()> {
        let init = self.init.is_some().then_some("--init");
        refuse(self.sweeps.given().chain(init), engine)?;
        self.refuse_mode(engine)?;
        self.refuse_of_em(engine)
    }

    /// Refuses `--mode`, for engines that take none.
    pub fn refuse_mode(&self, engine: &str) -> Result<()> {
        refuse(self.mode.is_some().then_some("--mode").into_iter(), engine)
    }

    /// Refuses what only em has a use for.
    pub fn refuse_of_em(&self, engine: &str) -> Result<()> {
        let update = self.update.is_some().then_some("--update");
        refuse(update.into_iter().chain(self.trials.is_some().then_some("--trials")), engine)
    }

    /// The tables to start from.
    pub fn start(&self) -> std::result::Result<Option<StartTables>, Failure> {
        let Some(path) = &self.init else { return Ok(None) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("--init {}: {error}", path.display())))?;
        let start = serde_json::from_str(&text).map_err(|error| {
            Failure::Usage(format!(
                "--init {}: {error}; expected {{\"tables\": {{\"node\": [[..], ..]}}}}",
                path.display()
            ))
        })?;
        Ok(Some(start))
    }

    /// What em and icm maximise.
    pub fn mode(&self, has_prior: bool) -> Result<Mode> {
        match (self.mode, has_prior) {
            (Some(_), false) => Err(Error::Setting("--mode: there is no posterior without a prior".into())),
            (None, false) => Ok(Mode::Likelihood),
            (Some(ModeArg::Density), true) => Ok(Mode::Density),
            (Some(ModeArg::Softmax) | None, true) => Ok(Mode::Softmax),
        }
    }

    /// Which tables em sets after each expectation.
    pub fn turns(&self) -> Turns {
        match self.update {
            Some(UpdateArg::Together) => Turns::Together,
            Some(UpdateArg::Cycle) | None => Turns::Cycle,
        }
    }
}
