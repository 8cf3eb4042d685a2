//! From a problem to its fit: posterior means of every table, exact, from particles, from chains or from a bound; the best
//! tables; or one best allocation.

mod chains;
mod found;
mod reports;
mod stream;
mod written;

pub use chains::ChainWish;
pub use found::{Decomposed, Fit, Found, StreamReport, objective_name};
pub use reports::{ChainReport, ParticleReport};
pub use stream::{StreamAsked, StreamFit, StreamOutcome};
pub use written::FitSource;

use crate::control::Control;
use crate::engine::Problem;
use crate::engine::exact::{Exact, posterior};
use crate::engine::smc::{Crew, Settled, Wish};
use crate::engine::sweeps::{BestAllocation, Climb, Em, Given, Mode, StartTables, Turns, Vb, kl_divergence};
use crate::engine::symmetry::label_classes;
use crate::error::{Error, Result};
use crate::evidence::evidence;
use crate::fit_file::Intensity;
use crate::math::Double;
use crate::score::{Maximised, Means, SHARE_OF_PILOTS, free_sizes, order_by};
use crate::simd::Isa;
use crate::warning::Warning;
use std::time::Instant;

/// Hidden nodes over whose namings the tables of an exact fit would be averages. The model and the prior tell, before any work.
pub fn label_averaged(problem: &Problem<'_>) -> Vec<String> {
    let classes = label_classes(problem.model, problem.prior, problem.counts);
    let nodes = classes.iter().flat_map(|class| &class.nodes);
    nodes.map(|&node| problem.model.node(node).name.clone()).collect()
}

/// The engines, but for the one of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FitMethod {
    /// The exact posterior.
    Exact,
    /// Weighted particles.
    Smc,
    /// Gibbs chains.
    Gibbs,
    /// Variational Bayes.
    Vb,
    /// Expectation maximisation.
    Em,
    /// One best allocation, given expectations of tables.
    DualEm,
    /// One best allocation, given modes of tables.
    Icm,
}

impl FitMethod {
    /// All of them.
    pub const ALL: [FitMethod; 7] = [
        FitMethod::Exact,
        FitMethod::Smc,
        FitMethod::Gibbs,
        FitMethod::Vb,
        FitMethod::Em,
        FitMethod::DualEm,
        FitMethod::Icm,
    ];

    /// As it is spelt.
    pub fn name(self) -> &'static str {
        match self {
            FitMethod::Exact => "exact",
            FitMethod::Smc => "smc",
            FitMethod::Gibbs => "gibbs",
            FitMethod::Vb => "vb",
            FitMethod::Em => "em",
            FitMethod::DualEm => "dual-em",
            FitMethod::Icm => "icm",
        }
    }

    /// Whether counts may be fractions, and some cells unknown.
    pub fn takes_fractions(self) -> bool {
        matches!(self, FitMethod::Vb | FitMethod::Em)
    }

    /// Whether it can do without a prior.
    pub fn needs_no_prior(self) -> bool {
        matches!(self, FitMethod::Em | FitMethod::Icm)
    }
}

/// What is asked for. What an engine has no use for, it does not look at: shells refuse that.
#[derive(Debug, Clone)]
pub struct Fitting {
    /// The engine.
    pub method: FitMethod,
    /// Settings of the particles, without a time limit.
    pub wish: Wish,
    /// Order tokens by this node, whatever the wish says.
    pub order_by: Option<String>,
    /// Settings of the sweeps; the threads of a run replace theirs.
    pub climb: Climb,
    /// Tables to start from.
    pub start: Option<StartTables>,
    /// Sizes of the prior that variational Bayes sets where its bound is largest.
    pub maximise: Vec<String>,
    /// With a prior: which mode em and icm look for.
    pub mode: Mode,
    /// Which tables em sets after each expectation.
    pub turns: Turns,
    /// Draws that em tries for each start.
    pub trials: u64,
    /// Settings of chains.
    pub chains: ChainWish,
    /// Draws to keep of particles or chains.
    pub n_draws: usize,
    /// Whether there is a prior: without one em and icm maximise the likelihood.
    pub has_prior: bool,
    /// Instructions.
    pub isa: Isa,
    /// Bytes for states or particles.
    pub max_memory: u64,
}

impl Default for Fitting {
    fn default() -> Self {
        Fitting {
            method: FitMethod::Vb,
            wish: Wish::default(),
            order_by: None,
            climb: Climb::default(),
            start: None,
            maximise: Vec::new(),
            mode: Mode::Softmax,
            turns: Turns::Cycle,
            trials: Em::default().trials,
            chains: ChainWish::default(),
            n_draws: 0,
            has_prior: true,
            isa: Isa::detect(),
            max_memory: 4 << 30,
        }
    }
}

impl Fitting {
    /// Fits a model, and says what a user should know.
    ///
    /// # Errors
    /// When something asked for does not fit the model, when the engine refuses, or when the run is stopped before there is
    /// an answer.
    pub fn fit(&self, problem: &Problem<'_>, means: Means, control: &mut Control<'_>) -> Result<(Found, Vec<Warning>)> {
        if !problem.counts.unknown.is_empty() && !self.method.takes_fractions() {
            return Err(Error::Setting("fit: with unknown cells (`?`) use --method vb or em".into()));
        }
        let mut warnings = Vec::new();
        let found = match self.method {
            FitMethod::Exact => self.by_states(problem, control, &mut warnings)?,
            FitMethod::Smc => control
                .with_pilots(SHARE_OF_PILOTS, |control| self.by_particles(problem, means, control, &mut warnings))?,
            FitMethod::Gibbs => self.by_chains(problem, means, control, &mut warnings)?,
            FitMethod::Vb => self.by_vb(problem, means, control, &mut warnings)?,
            FitMethod::Em => self.by_em(problem, means, control, &mut warnings)?,
            FitMethod::DualEm | FitMethod::Icm => self.by_allocation(problem, means, control, &mut warnings)?,
        };
        if found.objective == f64::NEG_INFINITY {
            warnings.push(if self.start.is_some() { Warning::ImpossibleStart } else { Warning::ImpossibleData });
        }
        let prior = found.prior.as_ref().unwrap_or(problem.prior);
        if self.has_prior && !prior.is_consistent() {
            warnings.push(Warning::InconsistentPrior);
        }
        Ok((found, warnings))
    }

    fn climb(&self, threads: usize) -> Climb {
        Climb { threads, isa: self.isa, ..self.climb.clone() }
    }

    /// What em and icm maximise.
    fn mode(&self) -> Mode {
        if self.has_prior { self.mode } else { Mode::Likelihood }
    }

    /// The exact posterior.
    fn by_states(
        &self,
        problem: &Problem<'_>,
        control: &mut Control<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Found> {
        let posterior = posterior(&Exact { max_memory: self.max_memory }, problem, control)?;
        let names: Vec<String> = posterior.label_averaged().map(|node| problem.model.node(node).name.clone()).collect();
        let is_label_averaged = !names.is_empty();
        if is_label_averaged {
            warnings.push(Warning::LabelAveraged { nodes: names });
        }
        let evidence = evidence(problem, posterior.ln_p_sequence)?;
        Ok(Found {
            d_ep: Some(posterior.d_ep()),
            squares: Some(posterior.table_sum_of_squares()),
            n_states: Some(posterior.n_states()),
            is_label_averaged,
            ..Found::new("exact", evidence, posterior.table_means(problem), posterior_intensity(problem, 0.0)?)
        })
    }

    /// The posterior from weighted particles.
    fn by_particles(
        &self,
        problem: &Problem<'_>,
        means: Means,
        control: &mut Control<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Found> {
        let crew = Crew { isa: self.isa, threads: means.threads, max_memory: self.max_memory };
        let mut wish = Wish { time_limit: means.time, ..self.wish.clone() };
        if let Some(name) = &self.order_by {
            wish.order = order_by(name, problem)?;
        }
        let Settled { smc, warning, .. } = wish.settle(problem, crew, means.seed, control)?;
        warnings.extend(warning);
        let posterior = smc.posterior_with_draws(problem, self.n_draws, means.seed, control)?;
        warnings.extend(posterior.estimate.warnings.iter().cloned());
        if let Some(run) = posterior.from_run {
            let nodes = posterior.exchangeable.iter().map(|&node| problem.model.node(node).name.clone()).collect();
            warnings.push(Warning::LabelsOfOneRun { run: run as u64, nodes });
        }
        let evidence = evidence(problem, Double::from(posterior.estimate.ln_p_sequence))?;
        let to_marginal = evidence.log_p_total + evidence.log_arrangements;
        let report = ParticleReport::new(smc, problem.model, &posterior.estimate, to_marginal);
        Ok(Found {
            d_ep: posterior.d_ep,
            squares: posterior.table_sum_of_squares.clone(),
            particles: Some((report, posterior.clone())),
            ..Found::new("smc", evidence, posterior.tables, posterior_intensity(problem, 0.0)?)
        })
    }

    /// The posterior from Gibbs chains.
    fn by_chains(
        &self,
        problem: &Problem<'_>,
        Means { threads, time, seed }: Means,
        control: &mut Control<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Found> {
        let gibbs = self.chains.settle(problem, self.isa, threads, time, seed, control)?;
        let start = Instant::now();
        let posterior = gibbs.posterior(problem, self.n_draws, seed, control)?;
        let seconds = start.elapsed().as_secs_f64();
        warnings.extend(posterior.result.warnings.iter().cloned());
        if let Some(chain) = posterior.from_chain {
            let nodes = posterior.exchangeable.iter().map(|&node| problem.model.node(node).name.clone()).collect();
            warnings.push(Warning::LabelsOfOneChain { chain: chain as u64, nodes });
        }
        let tables = posterior.tables.clone();
        let report = ChainReport::new(gibbs, posterior, seconds);
        Ok(Found {
            objective: report.log_joint(),
            d_ep: report.posterior.d_ep,
            squares: report.posterior.table_sum_of_squares.clone(),
            chains: Some(report),
            ..Found::plain("gibbs", tables, posterior_intensity(problem, 0.0)?)
        })
    }

    /// Variational Bayes.
    fn by_vb(
        &self,
        problem: &Problem<'_>,
        means: Means,
        control: &mut Control<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Found> {
        let vb = Vb {
            climb: self.climb(means.threads),
            start: self.start.clone(),
            free: free_sizes(&self.maximise, problem.model)?,
        };
        let fit = vb.fit(problem, means.seed, control)?;
        warnings.extend(fit.climbs.warnings.iter().cloned());
        // What was free in the prior is now known.
        let settled = &problem.with_prior(&fit.prior);
        let intensity = posterior_intensity(settled, fit.n_unknown.unwrap_or(0.0))?;
        let divergence = kl_divergence(problem.counts, fit.ln_likelihood(problem), intensity.mean());
        let tables = fit.tables(problem);
        let parts = fit.n_unknown.is_none().then(|| evidence(settled, fit.bound)).transpose()?;
        // Objectives of all sweeps and starts are counted from the prior as it was given.
        let given = if vb.free.is_nothing() || parts.is_none() { parts } else { Some(evidence(problem, fit.bound)?) };
        let constant = given.map_or(0.0, |given| given.log_p_total + given.log_arrangements);
        Ok(Found {
            // With all digits where there are parts to add up.
            objective: parts.map_or(fit.bound.value(), |parts| parts.log_marginal),
            evidence: parts,
            maximised: Maximised::all(&self.maximise, &vb.free, &fit),
            divergence,
            prior: Some(fit.prior),
            climbs: Some((fit.climbs, constant)),
            n_unknown: fit.n_unknown,
            ..Found::plain("vb", tables, intensity)
        })
    }

    /// Expectation maximisation.
    fn by_em(
        &self,
        problem: &Problem<'_>,
        means: Means,
        control: &mut Control<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Found> {
        let em = Em {
            climb: self.climb(means.threads),
            trials: self.trials,
            mode: self.mode(),
            turns: self.turns,
            start: self.start.clone(),
        };
        let fit = em.fit(problem, means.seed, control)?;
        warnings.extend(fit.climbs.warnings.iter().cloned());
        let divergence = kl_divergence(problem.counts, fit.ln_likelihood, fit.intensity);
        let tables = fit.tables(problem);
        Ok(Found {
            objective: fit.climbs.trace.last().copied().unwrap_or(f64::NEG_INFINITY),
            ln_likelihood: Some(fit.ln_likelihood),
            is_likelihood: !self.has_prior,
            divergence,
            n_unknown: fit.n_unknown,
            climbs: Some((fit.climbs, 0.0)),
            ..Found::plain("em", tables, Intensity::Point(fit.intensity))
        })
    }

    /// Dual EM and iterated conditional modes.
    fn by_allocation(
        &self,
        problem: &Problem<'_>,
        means: Means,
        control: &mut Control<'_>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Found> {
        let given = match self.method {
            FitMethod::DualEm => Given::Expectations,
            _ => Given::Modes(self.mode()),
        };
        let engine = BestAllocation { climb: self.climb(means.threads), given, start: self.start.clone() };
        let fit = engine.fit(problem, means.seed, control)?;
        warnings.extend(fit.climbs.warnings.iter().cloned());
        let objective = fit.climbs.trace.last().copied().unwrap_or(f64::NEG_INFINITY);
        let tables = fit.tables(problem);
        let ln_likelihood = fit.ln_likelihood(problem);
        let (intensity, constant) = if given == Given::Expectations {
            let parts = evidence(problem, Double::from(objective))?;
            (posterior_intensity(problem, 0.0)?, parts.log_p_total + parts.log_arrangements)
        } else if self.has_prior {
            let total = problem.prior.total_of(Some(problem.counts.total()))?;
            let less = if given == Given::Modes(Mode::Density) { 1.0 } else { 0.0 };
            let shape = (total.shape + problem.counts.total() - less).max(0.0);
            (Intensity::Point(shape / (total.rate + 1.0)), 0.0)
        } else {
            (Intensity::Point(problem.counts.total()), 0.0)
        };
        Ok(Found {
            objective: objective + constant,
            ln_likelihood: Some(ln_likelihood),
            divergence: kl_divergence(problem.counts, ln_likelihood, intensity.mean()),
            climbs: Some((fit.climbs, constant)),
            ..Found::plain(self.method.name(), tables, intensity)
        })
    }
}

/// Gamma(shape + T, rate + 1), theory.md section 5; T may have an expected part.
fn posterior_intensity(problem: &Problem<'_>, n_unknown: f64) -> Result<Intensity> {
    let counts = problem.counts;
    let total = problem.prior.total_of(counts.unknown.is_empty().then_some(counts.total()))?;
    Ok(Intensity::Gamma { shape: total.shape + counts.total() + n_unknown, rate: total.rate + 1.0 })
}
