//! Engines: what the settings ask of each of them. One that an engine has no use for is refused.

use super::{EssRequest, Request};
use polyurn::engine::anneal::{AnnealPath, AnnealWish};
use polyurn::engine::exact::TotalsRange;
use polyurn::engine::gibbs::Moves;
use polyurn::engine::smc::{Scheme, When, Wish};
use polyurn::engine::sweeps::{Climb, Em, Mode, Turns};
use polyurn::fit::{ChainWish, FitMethod, Fitting};
use polyurn::score::{Method, Scoring};
use polyurn::simd::Isa;
use polyurn::{Error, Result};

/// Particles of a move of all tokens, unless asked otherwise.
const MOVE_PARTICLES: usize = 64;
const PARTICLES: [&str; 9] =
    ["particles", "runs", "rejuvenate", "heat", "cooling", "split_merge", "order", "resample", "ess"];
const ANNEAL: [&str; 5] = ["bracket", "path", "sweeps", "chains", "chain_sweeps"];

impl Request {
    /// The settings of engines that were given.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("particles", self.particles.is_some()),
            ("runs", self.runs.is_some()),
            ("rejuvenate", self.rejuvenate.is_some()),
            ("heat", self.heat.is_some()),
            ("cooling", self.cooling.is_some()),
            ("split_merge", self.split_merge.is_some()),
            ("order", self.order.is_some()),
            ("resample", self.resample.is_some()),
            ("ess", self.ess.is_some()),
            ("bracket", self.bracket.is_some()),
            ("path", self.path.is_some()),
            ("sweeps", self.sweeps.is_some()),
            ("chains", self.chains.is_some()),
            ("chain_sweeps", self.chain_sweeps.is_some()),
            ("warm_up", self.warm_up.is_some()),
            ("thin", self.thin.is_some()),
            ("moves", self.moves.is_some()),
            ("draws", self.draws.is_some()),
            ("n_init", self.n_init.is_some()),
            ("max_iter", self.max_iter.is_some()),
            ("tol", self.tol.is_some()),
            ("maximise", !self.maximise.is_empty()),
            ("init", self.init.is_some()),
            ("mode", self.mode.is_some()),
            ("update", self.update.is_some()),
            ("trials", self.trials.is_some()),
        ];
        all.into_iter().filter(|setting| setting.1).map(|setting| setting.0).collect()
    }

    /// Refuses settings that an engine has no use for.
    ///
    /// # Errors
    /// The first of them.
    pub fn refuse_all_but(&self, method: &str, allowed: &[&[&str]]) -> Result<()> {
        match self.given().into_iter().find(|name| !allowed.concat().contains(name)) {
            Some(name) => Err(Error::Setting(format!("{name}: method {method:?} has no use for it; leave it out"))),
            None => Ok(()),
        }
    }

    /// How to score.
    ///
    /// # Errors
    /// A method that is none, and settings that it has no use for.
    pub fn scoring(&self) -> Result<Scoring> {
        let wants_anneal = self.given().iter().any(|name| ANNEAL.contains(name));
        let method = match self.method.as_deref() {
            None | Some("auto") if wants_anneal => Method::Anneal,
            None | Some("auto") => Method::Auto,
            Some("exact") => Method::Exact,
            Some("smc") => Method::Smc,
            Some("sis") => Method::Sis,
            Some("naive") => Method::Naive,
            Some("anneal") => Method::Anneal,
            Some("vb") => Method::Vb,
            Some(other) => {
                let all = "\"auto\", \"exact\", \"smc\", \"sis\", \"naive\", \"anneal\" or \"vb\"";
                return Err(Error::Setting(format!("method: expected {all}, not {other:?}")));
            }
        };
        let allowed: &[&[&str]] = match method {
            Method::Exact => &[],
            Method::Auto | Method::Smc => &[&PARTICLES],
            Method::Sis => &[&["particles", "runs", "order"]],
            Method::Naive => &[&["particles"]],
            Method::Anneal => &[&["particles", "runs"], &ANNEAL],
            Method::Vb => &[&["n_init", "max_iter", "tol", "maximise"]],
        };
        self.refuse_all_but(method.name(), allowed)?;
        let (wish, order_by) = self.wish()?;
        let default = Scoring::default();
        Ok(Scoring {
            method,
            wish,
            anneal: self.anneal()?,
            order_by,
            // Annealing has runs, too.
            wants_particles: self.given().iter().any(|name| PARTICLES.contains(name) && *name != "runs"),
            wants_runs: self.runs.is_some(),
            urns: self.particles.map_or(default.urns, |n| n as u64),
            climb: self.climb()?,
            maximise: self.maximise.clone(),
            given: self.given.clone(),
            totals: self.totals.map(|(low, high)| TotalsRange::Between(low, high)),
            isa: self.isa()?,
            max_memory: self.max_memory.unwrap_or(default.max_memory),
            ..default
        })
    }

    /// How to fit.
    ///
    /// # Errors
    /// A method that is none, and settings that it has no use for.
    pub fn fitting(&self, has_prior: bool) -> Result<Fitting> {
        let name = self.method.as_deref().unwrap_or("vb");
        let method = FitMethod::ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| {
            let all: Vec<&str> = FitMethod::ALL.iter().map(|method| method.name()).collect();
            Error::Setting(format!("method: expected one of {}, not {name:?}", all.join(", ")))
        })?;
        let sweeps = &["n_init", "max_iter", "tol", "init"];
        let allowed: &[&[&str]] = match method {
            FitMethod::Exact => &[],
            FitMethod::Smc => &[&PARTICLES, &["draws"]],
            FitMethod::Gibbs => &[&["particles", "chains", "sweeps", "warm_up", "thin", "moves", "draws"]],
            FitMethod::Vb => &[sweeps, &["maximise"]],
            FitMethod::Em => &[sweeps, &["mode", "update", "trials"]],
            FitMethod::DualEm => &[sweeps],
            FitMethod::Icm => &[sweeps, &["mode"]],
        };
        self.refuse_all_but(name, allowed)?;
        if !has_prior && !method.needs_no_prior() {
            let message = format!("prior=\"none\": method {name:?} needs one; use \"em\" or \"icm\"");
            return Err(Error::Setting(message));
        }
        let (wish, order_by) = self.wish()?;
        let default = Fitting::default();
        Ok(Fitting {
            method,
            wish,
            order_by,
            climb: self.climb()?,
            start: self.init.clone(),
            maximise: self.maximise.clone(),
            mode: match self.mode.as_deref() {
                None | Some("softmax") => Mode::Softmax,
                Some(_) if !has_prior => {
                    return Err(Error::Setting("mode: there is no posterior without a prior".into()));
                }
                Some("density") => Mode::Density,
                Some(other) => return Err(word("mode", "\"softmax\" or \"density\"", other)),
            },
            turns: match self.update.as_deref() {
                None | Some("cycle") => Turns::Cycle,
                Some("together") => Turns::Together,
                Some(other) => return Err(word("update", "\"cycle\" or \"together\"", other)),
            },
            trials: self.trials.unwrap_or(Em::default().trials),
            chains: self.chain_wish()?,
            n_draws: self.draws.unwrap_or(0),
            has_prior,
            isa: self.isa()?,
            max_memory: self.max_memory.unwrap_or(default.max_memory),
        })
    }

    fn chain_wish(&self) -> Result<ChainWish> {
        let particles = self.particles.unwrap_or(MOVE_PARTICLES);
        let moves = match self.moves.as_deref() {
            None => None,
            Some("tokens") => Some(Moves::Tokens),
            Some("conditional") => Some(Moves::Conditional(particles)),
            Some("independent") => Some(Moves::Independent(particles)),
            Some(other) => return Err(word("moves", "\"tokens\", \"conditional\" or \"independent\"", other)),
        };
        let has_none = matches!(moves, None | Some(Moves::Tokens));
        if self.method.as_deref() == Some("gibbs") && has_none && self.particles.is_some() {
            let message = "particles: a chain of single tokens has none; give moves=\"conditional\" or \"independent\"";
            return Err(Error::Setting(message.into()));
        }
        let (chains, sweeps) = (self.chains, self.sweeps);
        Ok(ChainWish { chains, sweeps, warm_up: self.warm_up, thin: self.thin, moves })
    }

    fn climb(&self) -> Result<Climb> {
        let default = Climb::default();
        Ok(Climb {
            restarts: self.n_init.unwrap_or(default.restarts),
            max_iter: self.max_iter.unwrap_or(default.max_iter),
            tol: self.tol.unwrap_or(default.tol),
            isa: self.isa()?,
            threads: self.threads.max(1),
        })
    }

    fn anneal(&self) -> Result<AnnealWish> {
        Ok(AnnealWish {
            particles: self.particles,
            runs: self.runs,
            sweeps: self.sweeps,
            pilots: self.chains,
            pilot_sweeps: self.chain_sweeps,
            is_bracket: self.bracket.unwrap_or(false),
            truth: None,
            is_first_look: false,
            path: match self.path.as_deref() {
                None => None,
                Some("reference") => Some(AnnealPath::Reference),
                Some("prior") => Some(AnnealPath::Prior),
                Some(other) => return Err(word("path", "\"reference\" or \"prior\"", other)),
            },
        })
    }

    /// What is asked of particles, and the node to order tokens by.
    ///
    /// # Errors
    /// What cannot be.
    pub fn wish(&self) -> Result<(Wish, Option<String>)> {
        let when = match &self.ess {
            None => None,
            Some(EssRequest::Share(share)) if *share > 0.0 && *share <= 1.0 => Some(When::EssBelow(*share)),
            Some(EssRequest::Word(text)) if text == "always" => Some(When::Always),
            Some(EssRequest::Word(text)) if text == "never" => Some(When::Never),
            Some(other) => {
                let message =
                    format!("ess: expected a share above 0 and up to 1, \"always\" or \"never\", not {}", other.text());
                return Err(Error::Setting(message));
            }
        };
        let mut wish = Wish {
            particles: self.particles,
            runs: self.runs,
            rejuvenation: self.rejuvenate,
            heat: self.heat,
            n_cooling: self.cooling,
            n_reallocations: self.split_merge,
            scheme: self.scheme()?,
            when,
            ..Default::default()
        };
        wish.check()?;
        let by = wish.take_order(self.order.as_deref().unwrap_or("auto"))?;
        Ok((wish, by))
    }

    fn scheme(&self) -> Result<Scheme> {
        match self.resample.as_deref() {
            None => Ok(Scheme::default()),
            Some("systematic") => Ok(Scheme::Systematic),
            Some("stratified") => Ok(Scheme::Stratified),
            Some("residual") => Ok(Scheme::Residual),
            Some("multinomial") => Ok(Scheme::Multinomial),
            Some(other) => {
                Err(word("resample", "\"systematic\", \"stratified\", \"residual\" or \"multinomial\"", other))
            }
        }
    }

    /// Which instructions to use.
    ///
    /// # Errors
    /// A word that means nothing.
    pub fn isa(&self) -> Result<Isa> {
        match self.kernel.as_deref() {
            None | Some("auto") => Ok(Isa::detect()),
            Some("scalar") => Ok(Isa::SCALAR),
            Some(other) => Err(word("kernel", "\"auto\" or \"scalar\"", other)),
        }
    }
}

/// What was expected in place of a word.
fn word(name: &str, expected: &str, found: &str) -> Error {
    Error::Setting(format!("{name}: expected {expected}, not {found:?}"))
}
