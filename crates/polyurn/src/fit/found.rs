//! What an engine found, whichever it was.

use super::reports::{ChainReport, ParticleReport};
use crate::engine::smc::SmcPosterior;
use crate::engine::sweeps::{Climbs, StochasticVb};
use crate::engine::{ParticleAllocation, Problem, RecordPosterior, TableMeans};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::fit_file::Intensity;
use crate::prior::Prior;
use crate::score::Maximised;
use crate::warning::Warning;
use serde_json::Value;
use std::borrow::Cow;

/// What an engine found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The engine.
    pub method: &'static str,
    /// What it maximised or estimated.
    pub objective: f64,
    /// The evidence or its bound; none for em, and with unknown cells, where it has no parts.
    pub evidence: Option<Evidence>,
    /// ln of the likelihood of its tables.
    pub ln_likelihood: Option<f64>,
    /// Whether the objective is a likelihood, without a prior.
    pub is_likelihood: bool,
    /// How far its expected counts are from the data.
    pub divergence: Option<f64>,
    /// The tables: posterior means, or points.
    pub tables: Vec<TableMeans>,
    /// The intensity.
    pub intensity: Intensity,
    /// Effective parameters.
    pub d_ep: Option<f64>,
    /// For each table the posterior mean of the sum of its squared cells.
    pub squares: Option<Vec<f64>>,
    /// States of the exact engine.
    pub n_states: Option<usize>,
    /// Expected tokens in unknown cells.
    pub n_unknown: Option<f64>,
    /// Whether tables are means over all namings of hidden values.
    pub is_label_averaged: bool,
    /// What the particles did.
    pub particles: Option<(ParticleReport, SmcPosterior)>,
    /// What the chains did.
    pub chains: Option<ChainReport>,
    /// Sweeps, and what to add to their objectives.
    pub climbs: Option<(Climbs, f64)>,
    /// Sizes of the prior that were set where the bound is largest, and the prior that has them.
    pub maximised: Vec<Maximised>,
    /// The prior with the sizes that were found.
    pub prior: Option<Prior>,
    /// How the stream went.
    pub stream: Option<StreamReport>,
}

impl Found {
    /// With the evidence as its objective.
    pub fn new(method: &'static str, evidence: Evidence, tables: Vec<TableMeans>, intensity: Intensity) -> Self {
        let objective = evidence.log_marginal;
        Found { objective, evidence: Some(evidence), ..Found::plain(method, tables, intensity) }
    }

    /// Only tables and intensity; what else an engine knows is for it to fill in.
    pub fn plain(method: &'static str, tables: Vec<TableMeans>, intensity: Intensity) -> Self {
        Found {
            method,
            objective: f64::NAN,
            evidence: None,
            ln_likelihood: None,
            is_likelihood: false,
            divergence: None,
            tables,
            intensity,
            d_ep: None,
            squares: None,
            n_states: None,
            n_unknown: None,
            is_label_averaged: false,
            particles: None,
            chains: None,
            climbs: None,
            maximised: Vec::new(),
            prior: None,
            stream: None,
        }
    }

    /// Tables that name hidden values in one way, and where they come from.
    ///
    /// # Errors
    /// When tables are averages over labellings.
    pub fn tables_of_one_labelling(&self, problem: &Problem<'_>) -> Result<(Cow<'_, [TableMeans]>, String)> {
        let own = Cow::Borrowed(&self.tables[..]);
        Ok(match (self.best(), self.method) {
            (Some(of), method) => {
                let place = if method == "gibbs" { "chain" } else { "run" };
                (Cow::Owned(of.tables(problem)), format!("the best allocation, in {place} {}", of.run))
            }
            (None, "exact") if self.is_label_averaged => {
                return Err(Error::Setting(
                    "--method exact averages over all namings of the hidden values, which leaves no factors; use --method smc, gibbs, vb or em"
                        .into(),
                ));
            }
            (None, "exact" | "vb") => (own, "posterior means".to_owned()),
            (None, "dual-em") => (own, "the best allocation".to_owned()),
            _ => (own, "the best tables".to_owned()),
        })
    }

    /// The best allocation, where there is one.
    pub fn best(&self) -> Option<&ParticleAllocation> {
        let of_particles = self.particles.as_ref().map(|(_, posterior)| &posterior.best);
        of_particles.or(self.chains.as_ref().map(|report| &report.posterior.best))
    }

    /// Draws from the posterior.
    pub fn draws(&self) -> &[ParticleAllocation] {
        match (&self.particles, &self.chains) {
            (Some((_, posterior)), _) => &posterior.draws,
            (None, Some(report)) => &report.posterior.draws,
            (None, None) => &[],
        }
    }

    /// The posterior of hidden values, where it is known record by record.
    pub fn hidden(&self) -> &[RecordPosterior] {
        match (&self.particles, &self.chains) {
            (Some((_, posterior)), _) => &posterior.hidden,
            (None, Some(report)) => &report.posterior.hidden,
            (None, None) => &[],
        }
    }

    /// What the objective is called.
    pub fn objective_name(&self) -> &'static str {
        objective_name(self.method, self.is_likelihood)
    }
}

/// What the objective of a method is called; `is_likelihood` where there is no prior.
pub fn objective_name(method: &str, is_likelihood: bool) -> &'static str {
    match method {
        "vb" => "lower bound (ELBO)",
        "svb" => "bound, from the last batch",
        "em" if is_likelihood => "ln likelihood",
        "em" => "ln posterior density + constant",
        "dual-em" => "ln pi(S) of the allocation",
        "icm" => "ln density of allocation, tables",
        "gibbs" => "ln joint of the last state",
        _ => "ln evidence",
    }
}

/// How the stream went.
#[derive(Debug, Clone)]
pub struct StreamReport {
    /// Batches.
    pub n_batches: u64,
    /// Records.
    pub n_rows: u64,
    /// Tokens that were taken, in all passes.
    pub n_tokens: u64,
    /// Tokens that were declared.
    pub n_declared: u64,
    /// Passes.
    pub n_passes: u32,
    /// Tokens of the last batch.
    pub n_last: u64,
    /// Records of a batch at most.
    pub batch: usize,
    /// Settings of the engine.
    pub settings: StochasticVb,
}

/// What was asked for, ready to be printed.
#[derive(Debug, Clone)]
pub struct Decomposed {
    /// For programs.
    pub json: Value,
    /// For people.
    pub text: String,
}

/// A fit of one problem, ready to be shown and kept.
#[derive(Debug)]
pub struct Fit<'p, 'a> {
    /// What was fitted, with the prior that was found.
    pub problem: &'p Problem<'a>,
    /// What the engine found.
    pub found: Found,
    /// Factors and the like, if they were asked for.
    pub decomposition: Option<Decomposed>,
    /// Whether the hidden values of every record are listed.
    pub shows_hidden: bool,
    /// Time that it took.
    pub seconds: f64,
    /// What a user should know.
    pub warnings: Vec<Warning>,
}
