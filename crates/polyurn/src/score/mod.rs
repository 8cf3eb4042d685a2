//! From a bound model to its evidence: which engine, what it was asked for, and the number with all that goes with it.

mod choose;
mod maximised;
mod running;
mod scored;
mod second;

pub use choose::{ASKED_FOR, order_by};
pub use maximised::{Maximised, free_sizes};
pub use running::{Running, Standing};
pub use scored::{Annealed, Particles, Score};

use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::anneal::{Anneal, AnnealWish, foreseen_sweep};
use crate::engine::exact::TotalsRange;
use crate::engine::naive::naive;
use crate::engine::smc::{Settled, Wish};
use crate::engine::sweeps::Climb;
use crate::error::{Error, Result};
use crate::evidence::{estimated_totals, evidence, ln_p_given, totals};
use crate::graph::{Binding, NodeIndex};
use crate::math::{Double, log_sum_exp};
use crate::prior::{Prior, PriorSettings};
use crate::simd::Isa;
use crate::warning::Warning;
use choose::Engine;
use second::{Choice, Opinion};
use std::time::{Duration, Instant};

/// The engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// The cheapest engine that fits the limits.
    #[default]
    Auto,
    /// The exact number.
    Exact,
    /// Sequential Monte Carlo with moves.
    Smc,
    /// Sequential importance sampling, never resampled.
    Sis,
    /// Free urns, hits counted.
    Naive,
    /// Annealing over the whole data.
    Anneal,
    /// Variational Bayes: a lower bound.
    Vb,
}

impl Method {
    /// As it is spelt.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Exact => "exact",
            Method::Smc => "smc",
            Method::Sis => "sis",
            Method::Naive => "naive",
            Method::Anneal => "anneal",
            Method::Vb => "vb",
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Scoring {
    /// The engine.
    pub method: Method,
    /// Settings of the particles, without a time limit: that comes with each job.
    pub wish: Wish,
    /// Settings of annealing.
    pub anneal: AnnealWish,
    /// Order tokens by this node, whatever the wish says.
    pub order_by: Option<String>,
    /// Whether `auto` is to take particles, because some of their settings were given.
    pub wants_particles: bool,
    /// Whether `auto` is to estimate, because a number of runs was given.
    pub wants_runs: bool,
    /// Urns of the naive method.
    pub urns: u64,
    /// Settings of the sweeps; the job's threads replace theirs.
    pub climb: Climb,
    /// Sizes of the prior that variational Bayes sets where its bound is largest.
    pub maximise: Vec<String>,
    /// Seen root nodes: also give ln p(sequence) given their values.
    pub given: Vec<String>,
    /// With unknown cells: the totals to list.
    pub totals: Option<TotalsRange>,
    /// Instructions.
    pub isa: Isa,
    /// Whether `auto` is content with a lower bound where an exact answer is too costly.
    pub takes_bound: bool,
    /// Without a time limit: seconds that `auto` spends on an exact answer before it turns to particles.
    pub patience: f64,
    /// Bytes for states or particles.
    pub max_memory: u64,
    /// The ln evidence of a rival, or a bound below it. Where `auto` takes annealing and the answer is out of reach of that, particles are not
    /// asked for a second opinion, however doubtful it is.
    pub rival: Option<f64>,
}

impl Default for Scoring {
    fn default() -> Self {
        Scoring {
            method: Method::Auto,
            wish: Wish::default(),
            anneal: AnnealWish::default(),
            order_by: None,
            wants_particles: false,
            wants_runs: false,
            urns: NAIVE_URNS,
            climb: Climb::default(),
            maximise: Vec::new(),
            given: Vec::new(),
            totals: None,
            isa: Isa::detect(),
            takes_bound: false,
            patience: PATIENCE_FOR_EXACT,
            max_memory: 4 << 30,
            rival: None,
        }
    }
}

/// Urns of the naive method, unless asked otherwise.
const NAIVE_URNS: u64 = 100_000;

/// Share of a score that the pilots of particles take, about: what a time limit plans for them.
pub(crate) const SHARE_OF_PILOTS: f64 = 0.25;

/// The same for annealing, where a time limit shares the time out.
const SHARE_OF_CHAINS: f64 = 0.4;

/// Share of annealing that the chains ahead take, about.
fn share_of_pilots(anneal: &Anneal) -> f64 {
    if anneal.end.is_some() {
        return SHARE_OF_CHAINS;
    }
    let at_once = |n: u64| n.div_ceil(anneal.threads.max(1) as u64) as f64;
    let n_ways = if anneal.is_bracket { 2 } else { 1 };
    let pilots = at_once(anneal.pilots) * anneal.pilot_sweeps as f64;
    let runs = at_once(n_ways * anneal.runs) * (anneal.sweeps * anneal.particles as u64) as f64;
    pilots / (pilots + runs).max(1.0)
}

/// Seconds that `auto` spends on an exact answer, unless asked otherwise.
const PATIENCE_FOR_EXACT: f64 = 10.0;

/// Who does the work, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    /// Threads.
    pub threads: usize,
    /// What engines that choose their sizes plan for.
    pub time: Option<Duration>,
    /// Of all random draws.
    pub seed: Seed,
}

/// Rough seconds of a sweep over all tokens of a bound model, for sharing out time.
///
/// # Errors
/// As for [`Scoring::score`].
pub(crate) fn seconds_per_sweep(binding: &Binding, settings: &PriorSettings) -> Result<f64> {
    let prior = Prior::build(&binding.model, settings)?;
    foreseen_sweep(&Problem::new(&binding.model, &prior, &binding.counts)?)
}

impl Scoring {
    /// The evidence of a bound model at one prior.
    ///
    /// # Errors
    /// When something asked for does not fit the model, when the engine refuses, or when the run is stopped before there is
    /// an answer.
    pub fn score(
        &self,
        binding: &Binding,
        settings: &PriorSettings,
        means: Means,
        control: &mut Control<'_>,
    ) -> Result<Score> {
        control.with_pilots(SHARE_OF_PILOTS, |control| self.score_in_one(binding, settings, means, control))
    }

    fn score_in_one(
        &self,
        binding: &Binding,
        settings: &PriorSettings,
        means: Means,
        control: &mut Control<'_>,
    ) -> Result<Score> {
        let start = Instant::now();
        let Binding { model, counts, warnings } = binding;
        let prior = Prior::build(model, settings)?;
        let mut problem = Problem::new(model, &prior, counts)?;
        let is_known = counts.unknown.is_empty();
        let given = self.given_nodes(&problem)?;
        if !is_known && !given.is_empty() {
            return Err(Error::Setting("--given: there is no one sequence when some cells are unknown".into()));
        }
        let n_tokens = is_known.then_some(counts.total());
        let rate = prior.total_of(n_tokens)?.rate;
        let mut ln_p_of_given = ln_p_given(&problem, &given)?;
        let (engine, why) = self.choose(&problem, means, control)?;
        let has_unseen = problem.plan.patterns().iter().any(|pattern| !pattern.unseen.is_empty());
        let mut score = Score {
            a: prior.a(),
            shape: prior.shape(),
            rate,
            log_marginal: 0.0,
            std_error: None,
            parts: None,
            given: None,
            totals: None,
            method: "exact".into(),
            why,
            kernel: if has_unseen || !is_known { "state map" } else { "closed form" }.into(),
            particles: None,
            annealed: None,
            hits: None,
            climbs: None,
            maximised: Vec::new(),
            seconds: 0.0,
            tokens: counts.n_tokens,
            unit: counts.unit,
            records: counts.n_records() as u64,
            warnings: warnings.clone(),
        };
        let range = self.totals.unwrap_or(TotalsRange::Auto);
        let mut parts_as_given = None;
        let mut found_prior = None;
        let sequence = match engine {
            Engine::Exact(prepared) => Some(prepared.ln_p_sequence(control)?.ln_p_sequence),
            Engine::ExactTotals(exact) => {
                let list = totals(&problem, &exact, range, control)?;
                score.log_marginal = log_sum_exp(&list.iter().map(|entry| entry.log_joint).collect::<Vec<_>>());
                score.totals = Some(list);
                None
            }
            Engine::Particles(method, Settled { smc, warning, .. }) => {
                score.warnings.extend(warning);
                if is_known {
                    let estimate = smc.ln_p_sequence(&problem, means.seed, control)?;
                    let sequence = Double::from(estimate.ln_p_sequence);
                    let parts = evidence(&problem, sequence)?;
                    score.take(method, Particles { smc, estimate, to_marginal: parts.beside_sequence() });
                    parts_as_given = Some(parts);
                    Some(sequence)
                } else {
                    let found = estimated_totals(&problem, &smc, range, means.seed, control)?;
                    score.log_marginal = found.estimate.ln_p_sequence;
                    score.take(method, Particles { smc, estimate: found.estimate, to_marginal: 0.0 });
                    score.totals = Some(found.totals);
                    None
                }
            }
            Engine::Anneal(anneal, doubt) => {
                let Choice { opinion, remark, warning } = match doubt {
                    Some(doubt) => self.with_second_opinion(&problem, &anneal, doubt, means, control)?,
                    None => {
                        control.expect_pilots(share_of_pilots(&anneal));
                        Choice::annealed(anneal.ln_p_sequence(&problem, means.seed, control)?, String::new())
                    }
                };
                score.why += &remark;
                score.warnings.extend(warning);
                let sequence = Double::from(opinion.ln_p_sequence());
                let parts = evidence(&problem, sequence)?;
                let to_marginal = parts.beside_sequence();
                match opinion {
                    Opinion::Annealed(estimate) => score.take_annealed(Annealed { anneal, estimate, to_marginal }),
                    Opinion::Particles(settled, estimate) => {
                        score.warnings.extend(settled.warning);
                        score.take("smc", Particles { smc: settled.smc, estimate, to_marginal });
                    }
                }
                parts_as_given = Some(parts);
                Some(sequence)
            }
            Engine::Vb(vb) => {
                let fit = control.until(control.turn_end(), |control| vb.fit(&problem, means.seed, control))?;
                score.method = "vb".into();
                score.kernel = vb.climb.isa.name().into();
                score.warnings.extend(fit.climbs.warnings.iter().cloned());
                score.maximised = Maximised::all(&self.maximise, &vb.free, &fit);
                score.a = fit.prior.a();
                score.shape = fit.prior.shape();
                score.rate = fit.prior.total_of(n_tokens)?.rate;
                found_prior = (!vb.free.is_nothing()).then_some(fit.prior);
                if is_known {
                    let parts = evidence(&problem, fit.bound)?;
                    score.climbs = Some((fit.climbs, parts.beside_sequence()));
                    parts_as_given = Some(parts);
                    Some(fit.bound)
                } else {
                    score.log_marginal = fit.bound.value();
                    score.climbs = Some((fit.climbs, 0.0));
                    None
                }
            }
            Engine::Naive(n_urns) => {
                let hits = control.until(control.turn_end(), |control| naive(&problem, n_urns, means.seed, control))?;
                score.method = "naive".into();
                score.kernel = "urn".into();
                score.std_error = hits.std_error;
                if hits.n_hits == 0 {
                    score.warnings.push(Warning::NoHits { tries: hits.n_tries });
                }
                if hits.n_tries < n_urns {
                    score.warnings.push(Warning::TimeUp { finished: hits.n_tries, asked: n_urns });
                }
                score.hits = Some(hits);
                Some(Double::from(hits.ln_p_sequence))
            }
        };
        if let Some(prior) = &found_prior {
            problem = problem.with_prior(prior);
            ln_p_of_given = ln_p_given(&problem, &given)?;
        }
        if let Some(sequence) = sequence {
            let parts = match parts_as_given.filter(|_| found_prior.is_none()) {
                Some(parts) => parts,
                None => evidence(&problem, sequence)?,
            };
            score.log_marginal = parts.log_marginal;
            score.given = (!given.is_empty()).then(|| (sequence - ln_p_of_given).value());
            score.parts = Some(parts);
        }
        if !problem.prior.is_consistent() {
            score.warnings.push(Warning::InconsistentPrior);
        }
        if score.log_marginal == f64::NEG_INFINITY && score.hits.is_none() {
            score.warnings.push(Warning::ImpossibleData);
        }
        score.seconds = start.elapsed().as_secs_f64();
        Ok(score)
    }

    /// Whether a time limit had a say in this score: in its sizes, or in which engine it is by.
    pub(crate) fn follows_time(&self, score: &Score) -> bool {
        let Wish { particles, rejuvenation, heat, start_pseudo_count, .. } = &self.wish;
        match self.method {
            _ if score.is_exact() => false,
            Method::Exact | Method::Naive | Method::Vb => false,
            Method::Anneal => self.anneal.sweeps.is_none(),
            Method::Sis => particles.is_none(),
            Method::Auto if !self.wants_particles => true,
            Method::Auto | Method::Smc => {
                particles.is_none() || rejuvenation.is_none() || heat.or(*start_pseudo_count).is_none()
            }
        }
    }

    fn given_nodes(&self, problem: &Problem<'_>) -> Result<Vec<NodeIndex>> {
        let find = |name: &String| {
            problem
                .model
                .find(name)
                .ok_or_else(|| Error::Setting(format!("--given {name}: the model has no such node")))
        };
        let mut nodes: Vec<NodeIndex> = self.given.iter().map(find).collect::<Result<_>>()?;
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }
}
