//! What an engine of `polyurn fit` found, whichever it was.

use super::fit_stream::StreamReport;
use crate::args::DecompositionArgs;
use crate::chains;
use crate::decomposition::Report as Decomposed;
use crate::output::Failure;
use crate::particles::Report;
use crate::text::show_short;
use polyurn::engine::smc::SmcPosterior;
use polyurn::engine::sweeps::Climbs;
use polyurn::engine::{ParticleAllocation, Problem, RecordPosterior, TableMeans};
use polyurn::evidence::Evidence;
use polyurn::prior::Prior;
use polyurn::score::Maximised;
use serde_json::{Value, json};

/// What an engine found.
pub struct Found {
    pub method: &'static str,
    pub objective: f64,
    /// The evidence or its bound; none for em, and with unknown cells, where it has no parts.
    pub evidence: Option<Evidence>,
    pub ln_likelihood: Option<f64>,
    /// Whether the objective is a likelihood, without a prior.
    pub is_likelihood: bool,
    pub divergence: Option<f64>,
    pub tables: Vec<TableMeans>,
    pub intensity: Intensity,
    pub d_ep: Option<f64>,
    pub squares: Option<Vec<f64>>,
    pub n_states: Option<usize>,
    pub n_unknown: Option<f64>,
    /// Whether tables are means over all namings of hidden values.
    pub is_label_averaged: bool,
    pub particles: Option<(Report, SmcPosterior)>,
    pub chains: Option<chains::Report>,
    /// Sweeps, and what to add to their objectives.
    pub climbs: Option<(Climbs, f64)>,
    /// Sizes of the prior that were set where the bound is largest, and the prior that has them.
    pub maximised: Vec<Maximised>,
    pub prior: Option<Prior>,
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

    /// Factors and the like, from one labelling of the hidden values.
    pub fn decomposition(
        &self,
        args: &DecompositionArgs,
        problem: &Problem<'_>,
    ) -> Result<Option<Decomposed>, Failure> {
        if !args.is_wanted() {
            return Ok(None);
        }
        let best;
        let (tables, from) = match (self.best(), self.method) {
            (Some(of), method) => {
                best = of.tables(problem);
                let place = if method == "gibbs" { "chain" } else { "run" };
                (&best, format!("the best allocation, in {place} {}", of.run))
            }
            (None, "exact") if self.is_label_averaged => {
                return Err(Failure::Usage(
                    "--method exact averages over all namings of the hidden values, which leaves no factors; use --method smc, gibbs, vb or em"
                        .into(),
                ));
            }
            (None, "exact" | "vb") => (&self.tables, "posterior means".to_owned()),
            (None, "dual-em") => (&self.tables, "the best allocation".to_owned()),
            _ => (&self.tables, "the best tables".to_owned()),
        };
        args.report(problem, &problem.counts.seen_anywhere(), tables, self.intensity.mean(), &from).map(Some)
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

/// The intensity: one number, or a Gamma distribution.
#[derive(Clone, Copy)]
pub enum Intensity {
    Point(f64),
    Gamma { shape: f64, rate: f64 },
}

impl Intensity {
    /// Its mean.
    pub fn mean(self) -> f64 {
        match self {
            Intensity::Point(value) => value,
            Intensity::Gamma { shape, rate } => shape / rate,
        }
    }

    /// The distribution, to programs.
    pub fn json(self) -> Value {
        match self {
            Intensity::Point(value) => json!({ "mean": value }),
            Intensity::Gamma { shape, rate } => {
                json!({ "shape": shape, "rate": rate, "mean": shape / rate, "sd": shape.sqrt() / rate })
            }
        }
    }

    /// The same for people.
    pub fn text(self) -> String {
        match self {
            Intensity::Point(value) => show_short(value),
            Intensity::Gamma { shape, rate } => {
                format!("{} (sd {})", show_short(shape / rate), show_short(shape.sqrt() / rate))
            }
        }
    }
}
