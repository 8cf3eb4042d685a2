//! `polyurn score`: the evidence of one model, or of one model at several values of `a`.

use super::curve::Curve;
use crate::args::{ScoreArgs, ScoreMethod};
use crate::grid::Point;
use crate::load::{load_bound, load_model};
use crate::maximise::{Maximised, free_sizes, refuse_varied};
use crate::output::{Failure, Output, number};
use crate::parallel;
use crate::particles::Report;
use crate::progress::{check_checkpoint, control};
use crate::sweeps::{add_climbs, climbs_text};
use crate::text::{columns, plural, show_error, show_estimate, show_ln, show_short, show_tokens, tokens_json};
use polyurn::control::Control;
use polyurn::counts::Unit;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Cost, Exact, Prepared, TotalsRange};
use polyurn::engine::naive::{Hits, naive};
use polyurn::engine::smc::{Crew, Estimate, Settled, When, Wish};
use polyurn::engine::sweeps::{Climbs, Vb};
use polyurn::evidence::{Evidence, TotalProbability, estimated_totals, evidence, ln_p_given, totals};
use polyurn::graph::{Binding, NodeIndex};
use polyurn::math::{Double, log_sum_exp};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Error, Result, Seed, Warning};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Scores a model.
pub fn run(args: &ScoreArgs) -> std::result::Result<(), Failure> {
    let output = Output::open(&args.output, &[&args.data.data, Path::new(&args.model.model)])?;
    let given = load_model(&args.model.model, &args.prior)?.with_prior()?;
    let binding = load_bound(&given.source, &args.data.data, &args.data.reading, args.method == ScoreMethod::Vb)?;
    if args.totals.is_some() && binding.counts.unknown.is_empty() {
        return Err(Failure::Usage("--totals: no cell of the data has the count `?`, so the total is known".into()));
    }
    check_checkpoint(&args.checkpoint, &args.output)?;
    if let Some(points) = &given.curve {
        refuse_varied(&free_sizes(&args.sweeps.maximise, &binding.model)?, &points[0], &binding.model)?;
    }
    let job = Job { args, binding: &binding, seed: output.seed() };
    match given.curve {
        None => {
            let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
            let score = job.score(&given.settings, output.n_threads, args.limits.time_limit, &mut control)?;
            drop(control);
            args.checkpoint.remove_unless_needed(&score.warnings);
            output.warn(&score.warnings);
            output.result(|| score.json(&output), || score.text(&args.model.model, &args.data.data))
        }
        Some(curve) => job.curve(&given.settings, &curve, &output),
    }
}

/// What is scored.
struct Job<'a> {
    args: &'a ScoreArgs,
    binding: &'a Binding,
    seed: Seed,
}

/// The answer.
pub struct Score {
    /// Equivalent sample size.
    pub a: f64,
    shape: f64,
    rate: f64,
    /// ln p(data).
    pub log_marginal: f64,
    /// Its standard error; `None` when it is exact, or when there is no way to tell.
    pub std_error: Option<f64>,
    parts: Option<Evidence>,
    given: Option<f64>,
    totals: Option<Vec<TotalProbability>>,
    /// Name of the engine.
    pub method: &'static str,
    why: String,
    kernel: &'static str,
    particles: Option<Report>,
    /// Free urns and hits, for the naive method.
    hits: Option<Hits>,
    /// Sweeps, for variational Bayes, and what to add to their objectives.
    climbs: Option<(Climbs, f64)>,
    /// Sizes of the prior that were set where the bound is largest.
    pub maximised: Vec<Maximised>,
    seconds: f64,
    tokens: u64,
    unit: Unit,
    records: u64,
    /// What a user should know.
    pub warnings: Vec<Warning>,
}

/// The engine that was chosen, made ready where that is work.
enum Engine<'p> {
    Exact(Box<Prepared<'p>>),
    ExactTotals(Exact),
    Particles(&'static str, Settled),
    Naive(u64),
    Vb(Vb),
}

/// Without a time limit: seconds that `auto` spends on an exact answer before it turns to particles.
const PATIENCE_FOR_EXACT: f64 = 10.0;

/// Distinct records with hidden values beyond which `auto` does not think of an exact answer.
const MOST_AMBIGUOUS: usize = 5000;

/// Distinct records whose tokens can be allocated in more than one way.
fn n_ambiguous(problem: &Problem<'_>) -> usize {
    let has_choice = |node: &NodeIndex| problem.model.node(*node).size > 1;
    let blocks = problem.counts.blocks.iter().zip(problem.plan.patterns());
    blocks.filter(|(_, pattern)| pattern.unseen.iter().any(has_choice)).map(|(block, _)| block.n_records()).sum()
}
/// Urns of the naive method, unless asked otherwise.
const NAIVE_URNS: u64 = 100_000;

impl Job<'_> {
    /// The evidence at one prior. `time` is what engines that choose their sizes plan for.
    fn score(
        &self,
        settings: &PriorSettings,
        n_threads: usize,
        time: Option<Duration>,
        control: &mut Control<'_>,
    ) -> Result<Score> {
        let start = Instant::now();
        let Binding { model, counts, warnings } = self.binding;
        let prior = Prior::build(model, settings)?;
        let problem = Problem::new(model, &prior, counts)?;
        let is_known = counts.unknown.is_empty();
        let given = self.given_nodes(&problem)?;
        if !is_known && !given.is_empty() {
            return Err(Error::Setting("--given: there is no one sequence when some cells are unknown".into()));
        }
        let n_tokens = is_known.then_some(counts.total());
        let rate = prior.total_of(n_tokens)?.rate;
        let mut ln_p_of_given = ln_p_given(&problem, &given)?;
        let (engine, why) = self.choose(&problem, n_threads, time, control)?;
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
            method: "exact",
            why,
            kernel: if has_unseen || !is_known { "state map" } else { "closed form" },
            particles: None,
            hits: None,
            climbs: None,
            maximised: Vec::new(),
            seconds: 0.0,
            tokens: counts.n_tokens,
            unit: counts.unit,
            records: counts.n_records() as u64,
            warnings: warnings.clone(),
        };
        let range = self.args.totals.unwrap_or(TotalsRange::Auto);
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
                score.method = method;
                score.warnings.extend(warning);
                score.kernel = smc.isa.name();
                if is_known {
                    let estimate = smc.ln_p_sequence(&problem, self.seed, control)?;
                    let parts = evidence(&problem, Double::from(estimate.ln_p_sequence))?;
                    let to_marginal = parts.log_p_total + parts.log_arrangements;
                    parts_as_given = Some(parts);
                    score.take(&estimate, Report::new(smc, model, &estimate, to_marginal));
                    Some(Double::from(estimate.ln_p_sequence))
                } else {
                    let found = estimated_totals(&problem, &smc, range, self.seed, control)?;
                    score.take(&found.estimate, Report::new(smc, model, &found.estimate, 0.0));
                    score.log_marginal = found.estimate.ln_p_sequence;
                    score.totals = Some(found.totals);
                    None
                }
            }
            Engine::Vb(vb) => {
                let fit = control.until(control.turn_end(), |control| vb.fit(&problem, self.seed, control))?;
                score.method = "vb";
                score.kernel = vb.climb.isa.name();
                score.warnings.extend(fit.climbs.warnings.iter().cloned());
                score.maximised = Maximised::all(&self.args.sweeps.maximise, &vb.free, &fit);
                score.a = fit.prior.a();
                score.shape = fit.prior.shape();
                score.rate = fit.prior.total_of(n_tokens)?.rate;
                found_prior = (!vb.free.is_nothing()).then_some(fit.prior);
                if is_known {
                    let parts = evidence(&problem, fit.bound)?;
                    score.climbs = Some((fit.climbs, parts.log_p_total + parts.log_arrangements));
                    parts_as_given = Some(parts);
                    Some(fit.bound)
                } else {
                    score.log_marginal = fit.bound.value();
                    score.climbs = Some((fit.climbs, 0.0));
                    None
                }
            }
            Engine::Naive(n_urns) => {
                let hits = control.until(control.turn_end(), |control| naive(&problem, n_urns, self.seed, control))?;
                score.method = "naive";
                score.kernel = "urn";
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
        let mut problem = problem;
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
        if self.args.prior.a.is_some() && !settings.tables_follow_a() {
            score.warnings.push(Warning::Odd {
                message: "the prior has a size of its own, so --a moves the Gamma shape alone".into(),
            });
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

    /// The engine that was asked for, or the best that fits; and why.
    fn choose<'p>(
        &self,
        problem: &Problem<'p>,
        n_threads: usize,
        time: Option<Duration>,
        control: &mut Control<'_>,
    ) -> Result<(Engine<'p>, String)> {
        let ScoreArgs { method, particles, sweeps, limits, .. } = self.args;
        let asked = || "asked for".to_owned();
        let crew = Crew { isa: particles.isa(), threads: n_threads, max_memory: limits.max_memory };
        let mut smc = |wish: Wish| wish.settle(problem, crew, self.seed, control);
        let wish = || particles.wish(problem, time);
        if *method != ScoreMethod::Vb {
            sweeps.refuse(method_name(*method))?;
        }
        match method {
            ScoreMethod::Exact => {
                particles.check("exact", &[])?;
                let exact = Exact { max_memory: limits.max_memory };
                let engine = if problem.counts.unknown.is_empty() {
                    Engine::Exact(Box::new(exact.prepare(problem)?))
                } else {
                    Engine::ExactTotals(exact)
                };
                Ok((engine, self.why_exact(problem, None)))
            }
            ScoreMethod::Smc => Ok((Engine::Particles("smc", smc(wish()?)?), asked())),
            ScoreMethod::Sis => {
                particles.check("sis", &["--particles", "--runs", "--order", "--kernel"])?;
                let plain = Wish { rejuvenation: Some(0), heat: Some(1.0), when: Some(When::Never), ..wish()? };
                Ok((Engine::Particles("sis", smc(plain)?), asked()))
            }
            ScoreMethod::Naive => {
                particles.check("naive", &["--particles"])?;
                Ok((Engine::Naive(particles.particles.unwrap_or(NAIVE_URNS)), asked()))
            }
            ScoreMethod::Vb => {
                particles.check("vb", &["--kernel"])?;
                if self.args.totals.is_some() {
                    let message =
                        "--totals: --method vb bounds the sum over all totals, not each of them; use exact or smc";
                    return Err(Error::Setting(message.into()));
                }
                let free = free_sizes(&sweeps.maximise, problem.model)?;
                Ok((Engine::Vb(Vb { climb: sweeps.climb(particles, n_threads), start: None, free }), asked()))
            }
            ScoreMethod::Auto if particles.is_any_given() => {
                Ok((Engine::Particles("smc", smc(wish()?)?), "particles were asked for".into()))
            }
            ScoreMethod::Auto => self.choose_automatically(problem, time, || smc(wish()?)),
        }
    }

    fn choose_automatically<'p>(
        &self,
        problem: &Problem<'p>,
        time: Option<Duration>,
        mut smc: impl FnMut() -> Result<Settled>,
    ) -> Result<(Engine<'p>, String)> {
        let limits = &self.args.limits;
        let exact = Exact { max_memory: limits.max_memory };
        // Not worth a forecast, which would itself take its time.
        if n_ambiguous(problem) > MOST_AMBIGUOUS {
            let why = format!(
                "an exact answer is out of reach: more than {MOST_AMBIGUOUS} distinct records have hidden values"
            );
            return Ok((Engine::Particles("smc", smc()?), why));
        }
        let prepared = match exact.prepare(problem) {
            Ok(prepared) => prepared,
            Err(Error::TooCostly(_)) => {
                let why = "an exact answer is out of reach: tokens can be allocated in too many ways".into();
                return Ok((Engine::Particles("smc", smc()?), why));
            }
            Err(error) => return Err(error),
        };
        let patience = time.map_or(PATIENCE_FOR_EXACT, |time| 0.5 * time.as_secs_f64());
        let cost = prepared.cost();
        if cost.seconds > patience || cost.bytes > limits.max_memory as f64 {
            let why = format!(
                "an exact answer would take about {} states and {} s",
                show_short(cost.states),
                show_short(cost.seconds)
            );
            return Ok((Engine::Particles("smc", smc()?), why));
        }
        let why = self.why_exact(problem, Some(cost));
        let is_known = problem.counts.unknown.is_empty();
        Ok((if is_known { Engine::Exact(Box::new(prepared)) } else { Engine::ExactTotals(exact) }, why))
    }

    fn why_exact(&self, problem: &Problem<'_>, cost: Option<Cost>) -> String {
        let has_unseen = problem.plan.patterns().iter().any(|pattern| !pattern.unseen.is_empty());
        match cost {
            _ if !problem.counts.unknown.is_empty() => "the posterior of the total is exact".into(),
            _ if !has_unseen => "nothing has to be summed out: the evidence has a closed form".into(),
            None => "asked for".into(),
            Some(cost) => format!("small enough to be exact: about {} states foreseen", show_short(cost.states)),
        }
    }

    fn given_nodes(&self, problem: &Problem<'_>) -> Result<Vec<NodeIndex>> {
        let find = |name: &String| {
            problem
                .model
                .find(name)
                .ok_or_else(|| Error::Setting(format!("--given {name}: the model has no such node")))
        };
        let mut nodes: Vec<NodeIndex> = self.args.given.iter().map(find).collect::<Result<_>>()?;
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    /// The evidence at every point. A time limit is shared out over them.
    fn curve(&self, settings: &PriorSettings, points: &[Point], output: &Output) -> std::result::Result<(), Failure> {
        if self.args.checkpoint.checkpoint.is_some() {
            let message = "--checkpoint: a curve has none; give one value of --a and of each --pseudo-count";
            return Err(Failure::Usage(message.into()));
        }
        let deadline = self.args.limits.time_limit.map(|limit| Instant::now() + limit);
        let n_threads = output.n_threads.clamp(1, points.len());
        let n_started = AtomicUsize::new(0);
        let found = parallel::map(points, n_threads, |point| {
            // The time left, over the points to come on this thread: a quick one leaves its time to the others.
            let n_waiting = points.len() - n_started.fetch_add(1, Ordering::Relaxed);
            let now = Instant::now();
            let n_turns = n_waiting.div_ceil(n_threads) as u32;
            let time = deadline.map(|deadline| deadline.saturating_duration_since(now) / n_turns);
            let mut control = Control::default()
                .with_cancel(crate::signals::cancel())
                .with_deadline(deadline)
                .with_turn_end(time.map(|time| now + time));
            // Too late to begin: nothing is made ready in vain.
            control.tick("score", 0.0)?;
            self.score(&point.settings(settings), 1, time, &mut control)
        });
        let curve = Curve::new(points, found)?;
        output.warn_lines(&curve.warning_lines());
        output.result(|| curve.json(output), || curve.text())
    }
}

impl Score {
    /// What an estimate says beside its number.
    fn take(&mut self, estimate: &Estimate, report: Report) {
        self.std_error = estimate.std_error;
        self.warnings.extend(estimate.warnings.iter().cloned());
        self.particles = Some(report);
    }

    /// Whether the number is exact.
    pub fn is_exact(&self) -> bool {
        self.method == "exact"
    }

    /// What the number is: exact, an estimate, or a lower bound.
    pub fn bound(&self) -> &'static str {
        match self.method {
            "exact" => "exact",
            "vb" => "lower",
            _ => "estimate",
        }
    }

    /// All of it.
    pub fn json(&self, output: &Output) -> Value {
        let part = |f: fn(&Evidence) -> f64| self.parts.as_ref().map_or(Value::Null, |parts| number(f(parts)));
        let mut object = json!({
            "log_marginal": number(self.log_marginal),
            "log_p_total": part(|parts| parts.log_p_total),
            "log_arrangements": part(|parts| parts.log_arrangements),
            "log_p_sequence": part(|parts| parts.log_p_sequence),
            "std_error": self.std_error,
            "bound": self.bound(),
            "method": self.method,
            "why": self.why,
            "particles": null,
            "runs": null,
            "run_log_marginals": [],
            "seed": output.seed(),
            "seconds": self.seconds,
            "kernel": self.kernel,
            "ess_min": null,
            "tokens": tokens_json(self.tokens, self.unit),
            "records": self.records,
            "a": self.a,
            "shape": self.shape,
            "b": self.rate,
            "warnings": warnings_json(&self.warnings),
            "version": polyurn::VERSION,
        });
        if let Some(report) = &self.particles {
            report.add_to(&mut object);
        }
        if let Some((climbs, constant)) = &self.climbs {
            add_climbs(climbs, *constant, &mut object);
        }
        if !self.maximised.is_empty() {
            object["maximised"] = Maximised::json(&self.maximised);
        }
        if let Some(hits) = &self.hits {
            object["particles"] = json!(hits.n_tries);
            object["hits"] = json!(hits.n_hits);
        }
        if let Some(given) = self.given {
            object["log_p_sequence_given"] = number(given);
        }
        if let Some(totals) = &self.totals {
            object["totals"] = totals
                .iter()
                .map(|entry| json!({ "tokens": entry.tokens, "log_joint": number(entry.log_joint) }))
                .collect();
        }
        object
    }

    fn text(&self, model: &str, data: &Path) -> String {
        let mut text = format!(
            "model        {}\ndata         {}: {}, {}\nmethod       {} ({})\n",
            model.split_whitespace().collect::<Vec<_>>().join(" "),
            data.display(),
            show_tokens(self.tokens, self.unit),
            plural(self.records, "distinct record"),
            self.method,
            self.why
        );
        if let Some(report) = &self.particles {
            text += &format!("             {}\n", report.text(13));
        }
        if let Some((climbs, _)) = &self.climbs {
            text += &format!("             {}\n", climbs_text(climbs));
        }
        if !self.maximised.is_empty() {
            text += &format!("maximised    {}\n", Maximised::text(&self.maximised));
        }
        if let Some(hits) = &self.hits {
            text += &format!("             {} of {} free urns hit the data\n", hits.n_hits, hits.n_tries);
        }
        text.push('\n');
        let show = |value: f64| show_estimate(value, self.std_error);
        let name = if self.bound() == "lower" { "lower bound (ELBO)" } else { "ln evidence" };
        let mut rows = vec![vec![name.to_owned(), show(self.log_marginal), show_error(self.std_error)]];
        if let Some(parts) = &self.parts {
            for (name, value) in [
                ("  total", parts.log_p_total),
                ("  arrangements", parts.log_arrangements),
                ("  sequence", parts.log_p_sequence),
            ] {
                rows.push(vec![name.into(), show(value)]);
            }
        }
        if let Some(given) = self.given {
            let name =
                if self.bound() == "lower" { "bound on ln p(sequence | given)" } else { "ln p(sequence | given)" };
            rows.push(vec![name.into(), show(given)]);
        }
        text += &columns(&rows);
        if let Some(totals) = &self.totals {
            text += &self.totals_text(totals);
        }
        text
    }

    /// The posterior of the total: its mode, and the totals that hold nearly all of it.
    fn totals_text(&self, totals: &[TotalProbability]) -> String {
        let mode = totals.iter().max_by(|x, y| x.log_joint.total_cmp(&y.log_joint)).expect("at least one total");
        let probability = |entry: &TotalProbability| (entry.log_joint - self.log_marginal).exp();
        let mean: f64 = totals.iter().map(|entry| entry.tokens as f64 * probability(entry)).sum();
        let mut rows = vec![vec!["total".to_owned(), "ln p(seen, total)".into(), "probability".into()]];
        let shown: Vec<&TotalProbability> = totals.iter().filter(|entry| probability(entry) >= 1e-3).take(60).collect();
        let n_hidden = totals.len() - shown.len();
        for entry in shown {
            rows.push(vec![entry.tokens.to_string(), show_ln(entry.log_joint), format!("{:.4}", probability(entry))]);
        }
        let more =
            if n_hidden == 0 { String::new() } else { format!("and {n_hidden} less probable totals (see --json)\n") };
        format!("\nmost probable total {}, mean {}\n\n{}{more}", mode.tokens, show_short(mean), columns(&rows))
    }
}

/// The method as it is spelt.
fn method_name(method: ScoreMethod) -> &'static str {
    match method {
        ScoreMethod::Auto => "auto",
        ScoreMethod::Exact => "exact",
        ScoreMethod::Smc => "smc",
        ScoreMethod::Sis => "sis",
        ScoreMethod::Naive => "naive",
        ScoreMethod::Vb => "vb",
    }
}

/// Warnings as data, each with its message.
pub fn warnings_json(warnings: &[Warning]) -> Value {
    let one = |warning: &Warning| {
        let mut value = serde_json::to_value(warning).expect("warnings are plain data");
        value["message"] = Value::from(warning.to_string());
        value
    };
    warnings.iter().map(one).collect()
}
