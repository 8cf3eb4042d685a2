//! The evidence of one model, with everything that a user may want to know about it.

use super::Maximised;
use crate::counts::Unit;
use crate::engine::anneal::{Anneal, AnnealEstimate, Bracket};
use crate::engine::naive::Hits;
use crate::engine::smc::{Estimate, Smc};
use crate::engine::sweeps::Climbs;
use crate::evidence::{Evidence, TotalProbability};
use crate::warning::Warning;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Equivalent sample size.
    pub a: f64,
    /// Shape of the intensity's Gamma prior.
    pub shape: f64,
    /// Its rate.
    pub rate: f64,
    /// ln p(data).
    pub log_marginal: f64,
    /// Its standard error; `None` when it is exact, or when there is no way to tell.
    pub std_error: Option<f64>,
    /// The three parts of the evidence; none with unknown cells.
    pub parts: Option<Evidence>,
    /// ln p(sequence | values of the given nodes).
    pub given: Option<f64>,
    /// With unknown cells: the posterior of the total.
    pub totals: Option<Vec<TotalProbability>>,
    /// Name of the engine.
    pub method: Cow<'static, str>,
    /// Why this engine.
    pub why: String,
    /// How it computed.
    pub kernel: Cow<'static, str>,
    /// What the particles did, if there were any.
    pub particles: Option<Particles>,
    /// What annealing did, if that was the engine.
    pub annealed: Option<Annealed>,
    /// Free urns and hits, for the naive method.
    pub hits: Option<Hits>,
    /// Sweeps, for variational Bayes, and what to add to their objectives.
    pub climbs: Option<(Climbs, f64)>,
    /// Sizes of the prior that were set where the bound is largest.
    pub maximised: Vec<Maximised>,
    /// Time that it took.
    pub seconds: f64,
    /// Tokens, in units of `unit`.
    pub tokens: u64,
    /// What one counted token stands for.
    pub unit: Unit,
    /// Distinct records.
    pub records: u64,
    /// What a user should know.
    #[serde(with = "crate::warning::as_text")]
    pub warnings: Vec<Warning>,
}

/// What the particles did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Particles {
    /// Their settings.
    pub smc: Smc,
    /// Their estimate of ln p(sequence), or with unknown cells of ln p(data).
    pub estimate: Estimate,
    /// What to add to a run's estimate for ln p(data).
    pub to_marginal: f64,
}

/// What annealing did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Annealed {
    /// Its settings.
    pub anneal: Anneal,
    /// Its estimate of ln p(sequence).
    pub estimate: AnnealEstimate,
    /// What to add to a run's estimate for ln p(data).
    pub to_marginal: f64,
}

impl Annealed {
    /// Bounds of ln p(data), if there were runs both ways.
    pub fn bracket(&self) -> Option<Bracket> {
        let Bracket { lower, upper, error } = self.estimate.bracket?;
        Some(Bracket { lower: lower + self.to_marginal, upper: upper + self.to_marginal, error })
    }
}

impl Score {
    /// The same of annealing.
    pub(super) fn take_annealed(&mut self, annealed: Annealed) {
        self.method = "anneal".into();
        self.kernel = annealed.anneal.isa.name().into();
        self.std_error = annealed.estimate.std_error;
        self.warnings.extend(annealed.estimate.warnings.iter().cloned());
        self.annealed = Some(annealed);
    }

    /// Bounds of ln p(data), if the engine gave any.
    pub fn bracket(&self) -> Option<Bracket> {
        self.annealed.as_ref()?.bracket()
    }

    /// Takes over what an estimate says beside its number, by the engine of this name.
    pub(super) fn take(&mut self, method: &'static str, particles: Particles) {
        self.method = method.into();
        self.kernel = particles.smc.isa.name().into();
        self.std_error = particles.estimate.std_error;
        self.warnings.extend(particles.estimate.warnings.iter().cloned());
        self.particles = Some(particles);
    }

    /// Whether the number is exact.
    pub fn is_exact(&self) -> bool {
        self.method == "exact"
    }

    /// Whether it is an estimate of whose error nothing is known: one run that cannot tell it.
    pub fn is_error_unknown(&self) -> bool {
        let is_impossible = self.warnings.contains(&Warning::ImpossibleData);
        self.bound() == "estimate" && self.std_error.is_none() && !is_impossible
    }

    /// What the number is: `exact`, `estimate`, `bracket` for an estimate with bounds on either side, or `lower` for a lower
    /// bound.
    pub fn bound(&self) -> &'static str {
        match &*self.method {
            "exact" => "exact",
            "vb" => "lower",
            _ if self.bracket().is_some() => "bracket",
            _ => "estimate",
        }
    }
}
