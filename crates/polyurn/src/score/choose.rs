//! Which engine scores a problem, and why.

use super::second::SHARE_FOR_ANNEALING;
use super::{Means, Method, Scoring, free_sizes};
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::anneal::{Anneal, AnnealWish, foreseen_sweep};
use crate::engine::exact::{Cost, Exact, Prepared};
use crate::engine::smc::{Crew, Order, Settled, When, Wish};
use crate::engine::sweeps::{Climb, Vb};
use crate::error::{Error, Result};
use crate::graph::NodeIndex;

/// The engine that was chosen, made ready where that is work.
pub(super) enum Engine<'p> {
    /// One exact number.
    Exact(Box<Prepared<'p>>),
    /// One for each total.
    ExactTotals(Exact),
    /// By this name, `smc` or `sis`.
    Particles(&'static str, Settled),
    /// All tokens at once; and how many nats of error are so many that particles are asked, too.
    Anneal(Anneal, Option<f64>),
    /// So many urns.
    Naive(u64),
    /// A lower bound.
    Vb(Vb),
}

/// Share of a time limit that `auto` spends on an exact answer before it turns to particles.
const SHARE_FOR_EXACT: f64 = 0.5;
/// Longer times mean nothing to anybody: three years.
const FORETOLD_SECONDS: f64 = 1e8;

/// Why an engine was taken that somebody named.
pub const ASKED_FOR: &str = "asked for";

/// Distinct records with hidden values beyond which `auto` does not think of an exact answer.
const MOST_AMBIGUOUS: usize = 5000;

/// Tokens from which `auto` thinks of annealing instead of placing one token after another. With fewer, particles see all modes of the
/// posterior, and chains of single-token updates may not.
const ANNEAL_FROM: u64 = 1000;

/// Tokens from which it goes back, too: what annealing says of so many is worth little without a bracket.
const BRACKET_FROM: u64 = 20_000;

/// Seconds that a score takes, about, where there is no time limit.
const USUAL_SECONDS: f64 = 4.0;

/// Seconds for a token in a sweep of one hidden node with some ten values, for which the errors below were read.
const USUAL_SECONDS_A_TOKEN: f64 = 5e-8;

/// Rough errors in nats that particles and annealing make with so many tokens in this time, if a sweep over the tokens takes this
/// long: half way between those of a tensor and of latent classes, from 300 to 10,000 tokens (docs/anneal.md). Particles gain by the
/// root of the time; annealing lags less in proportion to it. Several hidden nodes slow annealing down, and particles hardly.
fn foreseen_errors(n_tokens: u64, seconds: f64, seconds_a_sweep: f64) -> (f64, f64) {
    let thousands = n_tokens as f64 / 1000.0;
    let haste = USUAL_SECONDS / seconds.max(1e-3);
    let slowness = (seconds_a_sweep / (USUAL_SECONDS_A_TOKEN * n_tokens as f64)).max(1.0);
    (0.9 * thousands.powf(0.3) * haste.sqrt(), 0.1 * thousands.powf(0.6) * haste * slowness)
}

impl Scoring {
    /// The engine that was asked for, or the best that fits; and why.
    pub(super) fn choose<'p>(
        &self,
        problem: &Problem<'p>,
        means: Means,
        control: &mut Control<'_>,
    ) -> Result<(Engine<'p>, String)> {
        let asked = || ASKED_FOR.to_owned();
        let crew = self.crew(means);
        let wish = || self.wish_for(problem, means);
        let mut smc = |wish: Wish| wish.settle(problem, crew, means.seed, control);
        match self.method {
            Method::Exact => {
                let exact = Exact { max_memory: self.max_memory };
                let engine = if problem.counts.unknown.is_empty() {
                    Engine::Exact(Box::new(exact.prepare(problem)?))
                } else {
                    Engine::ExactTotals(exact)
                };
                Ok((engine, why_exact(problem, None)))
            }
            Method::Smc => Ok((Engine::Particles("smc", smc(wish()?)?), asked())),
            Method::Sis => {
                let plain = Wish { rejuvenation: Some(0), heat: Some(1.0), when: Some(When::Never), ..wish()? };
                Ok((Engine::Particles("sis", smc(plain)?), asked()))
            }
            Method::Naive => Ok((Engine::Naive(self.urns), asked())),
            Method::Anneal => {
                Ok((Engine::Anneal(self.anneal.settle(problem, crew, means.time, means.seed)?, None), asked()))
            }
            Method::Vb => {
                if self.totals.is_some() {
                    let message =
                        "--totals: --method vb bounds the sum over all totals, not each of them; use exact or smc";
                    return Err(Error::Setting(message.into()));
                }
                Ok((self.vb(problem, means)?, asked()))
            }
            Method::Auto if self.wants_particles => {
                Ok((Engine::Particles("smc", smc(wish()?)?), "particles were asked for".into()))
            }
            Method::Auto => self.choose_automatically(problem, means, || smc(wish()?)),
        }
    }

    fn choose_automatically<'p>(
        &self,
        problem: &Problem<'p>,
        means: Means,
        mut smc: impl FnMut() -> Result<Settled>,
    ) -> Result<(Engine<'p>, String)> {
        let exact = Exact { max_memory: self.max_memory };
        let mut particles = |why: String| {
            if self.takes_bound {
                return Ok((self.vb(problem, means)?, why));
            }
            let n_tokens = problem.counts.n_tokens;
            let seconds = means.time.map_or(USUAL_SECONDS, |time| time.as_secs_f64());
            if n_tokens < ANNEAL_FROM || !problem.counts.unknown.is_empty() {
                return Ok((Engine::Particles("smc", smc()?), why));
            }
            let (of_particles, of_annealing) = foreseen_errors(n_tokens, seconds, foreseen_sweep(problem)?);
            let in_nats = |error: f64| if error < 0.95 { format!("{error:.1}") } else { format!("{error:.0}") };
            let (ours, theirs) = (in_nats(of_annealing), in_nats(of_particles));
            if of_annealing > of_particles && n_tokens < BRACKET_FROM {
                let why =
                    format!("{why}; particles should be off by about {theirs} nats where annealing would be by {ours}");
                return Ok((Engine::Particles("smc", smc()?), why));
            }
            let is_bracket = self.anneal.is_bracket || n_tokens >= BRACKET_FROM;
            let share = if is_bracket { 1.0 } else { SHARE_FOR_ANNEALING };
            let wish = AnnealWish { is_bracket, ..self.anneal.clone() };
            let time = means.time.map(|time| time.mul_f64(share));
            let anneal = wish.settle(problem, self.crew(means), time, means.seed)?;
            let doubt = (!is_bracket).then_some(of_particles / 2.0);
            let why = if n_tokens >= BRACKET_FROM {
                format!("{why}; with so many tokens particles are far too low")
            } else {
                format!("{why}; annealing should be off by about {ours} nats where particles would be by {theirs}")
            };
            Ok((Engine::Anneal(anneal, doubt), why))
        };
        if self.wants_runs {
            return particles("runs were asked for".into());
        }
        // Not worth a forecast, which would itself take its time.
        if n_ambiguous(problem) > MOST_AMBIGUOUS {
            return particles(format!(
                "an exact answer is out of reach: more than {MOST_AMBIGUOUS} distinct records have hidden values"
            ));
        }
        let prepared = match exact.prepare(problem) {
            Ok(prepared) => prepared,
            Err(Error::TooCostly(_)) => {
                return particles("an exact answer is out of reach: tokens can be allocated in too many ways".into());
            }
            Err(error) => return Err(error),
        };
        let patience = means.time.map_or(self.patience, |time| SHARE_FOR_EXACT * time.as_secs_f64());
        let cost = prepared.cost();
        if cost.seconds > patience || cost.bytes > self.max_memory as f64 {
            let time =
                if cost.seconds < FORETOLD_SECONDS { format!(" and {} s", rough(cost.seconds)) } else { String::new() };
            return particles(format!("an exact answer would take {}{time}", cost.show_states()));
        }
        let why = why_exact(problem, Some(cost));
        let is_known = problem.counts.unknown.is_empty();
        Ok((if is_known { Engine::Exact(Box::new(prepared)) } else { Engine::ExactTotals(exact) }, why))
    }

    fn vb(&self, problem: &Problem<'_>, means: Means) -> Result<Engine<'static>> {
        let free = free_sizes(&self.maximise, problem.model)?;
        let climb = Climb { threads: means.threads, isa: self.isa, ..self.climb.clone() };
        Ok(Engine::Vb(Vb { climb, start: None, free }))
    }

    /// Who does the work.
    pub(super) fn crew(&self, means: Means) -> Crew {
        Crew { isa: self.isa, threads: means.threads, max_memory: self.max_memory }
    }

    /// What is asked of particles.
    pub(super) fn wish_for(&self, problem: &Problem<'_>, means: Means) -> Result<Wish> {
        Ok(Wish { order: self.order(problem)?, time_limit: means.time, ..self.wish.clone() })
    }

    /// The order of the tokens, with its node found in the model.
    fn order(&self, problem: &Problem<'_>) -> Result<Order> {
        let Some(name) = &self.order_by else { return Ok(self.wish.order) };
        order_by(name, problem)
    }
}

/// An order by the groups of one node.
///
/// # Errors
/// When the model has no such node, or no record shows it: all tokens would be one group. Where only some records show it,
/// the others form a group of their own.
pub fn order_by(name: &str, problem: &Problem<'_>) -> Result<Order> {
    let Problem { model, counts, .. } = problem;
    let node = model.find(name);
    let node = node.ok_or_else(|| Error::Setting(format!("--order by:{name}: the model has no node `{name}`")))?;
    let is_shown = |node: u32| counts.blocks.iter().any(|block| block.seen.contains(&node));
    if counts.blocks.is_empty() || is_shown(node.0) {
        return Ok(Order::By(node));
    }
    let name_of = |node: u32| model.node(NodeIndex(node)).name.as_str();
    let in_all = |node: &u32| counts.blocks.iter().all(|block| block.seen.contains(node));
    let nodes = || (0..counts.n_nodes() as u32).filter(|&node| is_shown(node));
    let in_every: Vec<&str> = nodes().filter(in_all).map(name_of).collect();
    let way_out = match (in_every.as_slice(), nodes().map(name_of).collect::<Vec<_>>().as_slice()) {
        ([], []) => "use --order random".to_owned(),
        ([], some) => format!("order by a node that records show: {}", some.join(", ")),
        (every, _) => format!("order by a node that every record shows: {}", every.join(", ")),
    };
    Err(Error::Setting(format!("--order by:{name}: no record shows this node; {way_out}")))
}

/// Distinct records whose tokens can be allocated in more than one way.
fn n_ambiguous(problem: &Problem<'_>) -> usize {
    let has_choice = |node: &NodeIndex| problem.model.node(*node).size > 1;
    let blocks = problem.counts.blocks.iter().zip(problem.plan.patterns());
    blocks.filter(|(_, pattern)| pattern.unseen.iter().any(has_choice)).map(|(block, _)| block.n_records()).sum()
}

fn why_exact(problem: &Problem<'_>, cost: Option<Cost>) -> String {
    let has_unseen = problem.plan.patterns().iter().any(|pattern| !pattern.unseen.is_empty());
    match cost {
        _ if !problem.counts.unknown.is_empty() => "the posterior of the total is exact".into(),
        _ if !has_unseen => "nothing has to be summed out: the evidence has a closed form".into(),
        None => ASKED_FOR.into(),
        Some(cost) if cost.states < 1.5 => "tokens can be allocated in one way only".into(),
        Some(cost) => format!("small enough to be exact: {} foreseen", cost.show_states()),
    }
}

/// A forecast of time needs no more than two digits.
fn rough(value: f64) -> String {
    if (0.01..1e4).contains(&value) {
        let digits = if value < 10.0 { 2 } else { 0 };
        format!("{value:.digits$}")
    } else {
        format!("{value:.1e}")
    }
}
