//! `polyurn fit`: posterior means of every table and of d_EP, exact or from particles.

use super::fit_stream::StreamReport;
use super::score::warnings_json;
use crate::args::{DecompositionArgs, FitArgs, FitMethod};
use crate::decomposition::Report as Decomposed;
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output, number};
use crate::particles::Report;
use crate::progress::{check_checkpoint, control};
use crate::sweeps::{add_climbs, climbs_text};
use crate::text::{columns, show_error, show_estimate, show_ln, show_short};
use clap::ValueEnum;
use polyurn::Warning;
use polyurn::control::Control;
use polyurn::counts::Labels;
use polyurn::engine::Problem;
use polyurn::engine::TableMeans;
use polyurn::engine::exact::{Exact, posterior};
use polyurn::engine::smc::{Crew, Settled, SmcPosterior};
use polyurn::engine::sweeps::{BestAllocation, Climbs, Em, Given, Vb, kl_divergence};
use polyurn::evidence::{Evidence, evidence};
use polyurn::math::Double;
use polyurn::prior::Prior;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Instant;

/// Rows of a table that are shown to people.
const SHOWN_ROWS: usize = 12;
/// Records whose hidden values are shown to people, and likeliest values of each node.
const SHOWN_RECORDS: usize = 20;
const SHOWN_VALUES: usize = 3;
/// Cells of a row that are shown to people.
const SHOWN_CELLS: usize = 8;

/// Fits a model.
pub fn run(args: &FitArgs) -> Result<(), Failure> {
    if args.method == FitMethod::Svb {
        return super::fit_stream::run(args);
    }
    if let Some(method) = args.method.to_possible_value() {
        args.stream.refuse(method.get_name())?;
    }
    let output = Output::open(&args.output, &[&args.data.data, Path::new(&args.model.model)])?;
    let given = load_model(&args.model.model, &args.prior)?;
    let has_prior = given.has_prior;
    let given = if matches!(args.method, FitMethod::Em | FitMethod::Icm) { given } else { given.with_prior()? };
    let (source, settings) = given.single()?;
    let binding = load_bound(&source, &args.data.data, &args.data.reading)?;
    let start = Instant::now();
    let prior = Prior::build(&binding.model, &settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    if !binding.counts.unknown.is_empty() && !matches!(args.method, FitMethod::Vb | FitMethod::Em) {
        return Err(Failure::Usage("fit: with unknown cells (`?`) use --method vb or em".into()));
    }
    args.decomposition.check(problem.model)?;
    check_checkpoint(&args.checkpoint, &args.output)?;
    let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
    let mut warnings = binding.warnings.clone();
    let found = match args.method {
        FitMethod::Exact => by_states(args, &problem, &mut control, &mut warnings)?,
        FitMethod::Smc => by_particles(args, &problem, &output, &mut control, &mut warnings)?,
        FitMethod::Vb => by_vb(args, &problem, &output, &mut control, &mut warnings)?,
        FitMethod::Em => by_em(args, &problem, has_prior, &output, &mut control, &mut warnings)?,
        FitMethod::DualEm | FitMethod::Icm => {
            by_allocation(args, &problem, has_prior, &output, &mut control, &mut warnings)?
        }
        FitMethod::Svb => unreachable!("streams have a way of their own"),
    };
    drop(control);
    let decomposition = found.decomposition(&args.decomposition, &problem)?;
    args.checkpoint.remove_unless_cut(&warnings);
    if has_prior && !prior.is_consistent() {
        warnings.push(Warning::InconsistentPrior);
    }
    output.warn(&warnings);
    let fit = Fit {
        problem: &problem,
        found,
        decomposition,
        shows_hidden: args.hidden,
        seconds: start.elapsed().as_secs_f64(),
        warnings,
    };
    output.result(|| fit.json(&output), || fit.text())
}

/// The exact posterior.
fn by_states(
    args: &FitArgs,
    problem: &Problem<'_>,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.particles.check("exact", &[])?;
    args.sweeps.refuse("exact")?;
    if args.hidden {
        return Err(Failure::Usage("--hidden: --method exact does not list hidden values; use --method smc".into()));
    }
    let posterior = posterior(&Exact { max_memory: args.limits.max_memory }, problem, control)?;
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
    args: &FitArgs,
    problem: &Problem<'_>,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.sweeps.refuse("smc")?;
    let crew = Crew { isa: args.particles.isa(), threads: output.n_threads, max_memory: args.limits.max_memory };
    let wish = args.particles.wish(problem, args.limits.time_limit)?;
    let Settled { smc, warning, .. } = wish.settle(problem, crew, output.seed(), control)?;
    warnings.extend(warning);
    let posterior = smc.posterior(problem, output.seed(), control)?;
    warnings.extend(posterior.estimate.warnings.iter().cloned());
    if let Some(run) = posterior.from_run {
        let nodes = posterior.exchangeable.iter().map(|&node| problem.model.node(node).name.clone()).collect();
        warnings.push(Warning::LabelsOfOneRun { run: run as u64, nodes });
    }
    let evidence = evidence(problem, Double::from(posterior.estimate.ln_p_sequence))?;
    let to_marginal = evidence.log_p_total + evidence.log_arrangements;
    Ok(Found {
        d_ep: posterior.d_ep,
        squares: posterior.table_sum_of_squares.clone(),
        particles: Some((Report::new(smc, problem.model, &posterior.estimate, to_marginal), posterior.clone())),
        ..Found::new("smc", evidence, posterior.tables, posterior_intensity(problem, 0.0)?)
    })
}

/// Variational Bayes.
fn by_vb(
    args: &FitArgs,
    problem: &Problem<'_>,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.particles.check("vb", &["--kernel"])?;
    args.sweeps.refuse_mode("vb")?;
    args.sweeps.refuse_update("vb")?;
    refuse_hidden(args, "vb")?;
    let vb = Vb { climb: args.sweeps.sweeps.climb(&args.particles, output.n_threads), start: args.sweeps.start()? };
    let fit = vb.fit(problem, output.seed(), control)?;
    warnings.extend(fit.climbs.warnings.iter().cloned());
    let intensity = posterior_intensity(problem, fit.n_unknown.unwrap_or(0.0))?;
    let divergence = kl_divergence(problem.counts, fit.ln_likelihood(problem), intensity.mean());
    let tables = fit.tables(problem);
    let (evidence, constant) = match fit.n_unknown {
        None => {
            let parts = evidence(problem, fit.bound)?;
            (Some(parts), parts.log_p_total + parts.log_arrangements)
        }
        Some(_) => (None, 0.0),
    };
    Ok(Found {
        method: "vb",
        evidence,
        objective: fit.bound.value() + constant,
        divergence,
        climbs: Some((fit.climbs, constant)),
        n_unknown: fit.n_unknown,
        ..Found::plain("vb", tables, intensity)
    })
}

/// Expectation maximisation.
fn by_em(
    args: &FitArgs,
    problem: &Problem<'_>,
    has_prior: bool,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.particles.check("em", &["--kernel"])?;
    refuse_hidden(args, "em")?;
    let em = Em {
        climb: args.sweeps.sweeps.climb(&args.particles, output.n_threads),
        mode: args.sweeps.mode(has_prior)?,
        turns: args.sweeps.turns(),
        start: args.sweeps.start()?,
    };
    let fit = em.fit(problem, output.seed(), control)?;
    warnings.extend(fit.climbs.warnings.iter().cloned());
    let divergence = kl_divergence(problem.counts, fit.ln_likelihood, fit.intensity);
    let tables = fit.tables(problem);
    Ok(Found {
        objective: fit.climbs.trace.last().copied().unwrap_or(f64::NEG_INFINITY),
        ln_likelihood: Some(fit.ln_likelihood),
        divergence,
        n_unknown: fit.n_unknown,
        climbs: Some((fit.climbs, 0.0)),
        ..Found::plain("em", tables, Intensity::Point(fit.intensity))
    })
}

/// Dual EM and iterated conditional modes.
fn by_allocation(
    args: &FitArgs,
    problem: &Problem<'_>,
    has_prior: bool,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    let method = if args.method == FitMethod::DualEm { "dual-em" } else { "icm" };
    args.particles.check(method, &["--kernel"])?;
    args.sweeps.refuse_update(method)?;
    refuse_hidden(args, method)?;
    let given = if args.method == FitMethod::DualEm {
        args.sweeps.refuse_mode(method)?;
        Given::Expectations
    } else {
        Given::Modes(args.sweeps.mode(has_prior)?)
    };
    let climb = args.sweeps.sweeps.climb(&args.particles, output.n_threads);
    let fit = BestAllocation { climb, given, start: args.sweeps.start()? }.fit(problem, output.seed(), control)?;
    warnings.extend(fit.climbs.warnings.iter().cloned());
    let objective = fit.climbs.trace.last().copied().unwrap_or(f64::NEG_INFINITY);
    let tables = fit.tables(problem);
    let ln_likelihood = fit.ln_likelihood(problem);
    let (intensity, constant) = if given == Given::Expectations {
        let parts = evidence(problem, Double::from(objective))?;
        (posterior_intensity(problem, 0.0)?, parts.log_p_total + parts.log_arrangements)
    } else if has_prior {
        (Intensity::Point(posterior_intensity(problem, 0.0)?.mean()), 0.0)
    } else {
        (Intensity::Point(problem.counts.n_tokens as f64), 0.0)
    };
    Ok(Found {
        objective: objective + constant,
        ln_likelihood: Some(ln_likelihood),
        divergence: kl_divergence(problem.counts, ln_likelihood, intensity.mean()),
        climbs: Some((fit.climbs, constant)),
        ..Found::plain(method, tables, intensity)
    })
}

pub(super) fn refuse_hidden(args: &FitArgs, engine: &str) -> Result<(), Failure> {
    if args.hidden {
        return Err(Failure::Usage(format!(
            "--hidden: --method {engine} does not list hidden values; use --method smc"
        )));
    }
    Ok(())
}

/// The intensity: one number, or a Gamma distribution.
#[derive(Clone, Copy)]
pub(super) enum Intensity {
    Point(f64),
    Gamma { shape: f64, rate: f64 },
}

impl Intensity {
    pub fn mean(self) -> f64 {
        match self {
            Intensity::Point(value) => value,
            Intensity::Gamma { shape, rate } => shape / rate,
        }
    }

    fn json(self) -> Value {
        match self {
            Intensity::Point(value) => json!({ "mean": value }),
            Intensity::Gamma { shape, rate } => {
                json!({ "shape": shape, "rate": rate, "mean": shape / rate, "sd": shape.sqrt() / rate })
            }
        }
    }

    fn text(self) -> String {
        match self {
            Intensity::Point(value) => show_short(value),
            Intensity::Gamma { shape, rate } => {
                format!("{} (sd {})", show_short(shape / rate), show_short(shape.sqrt() / rate))
            }
        }
    }
}

/// Gamma(shape + T, rate + 1), theory.md section 5; T may have an expected part.
fn posterior_intensity(problem: &Problem<'_>, n_unknown: f64) -> Result<Intensity, Failure> {
    let counts = problem.counts;
    let total = problem.prior.total(counts.unknown.is_empty().then_some(counts.n_tokens))?;
    Ok(Intensity::Gamma { shape: total.shape + counts.n_tokens as f64 + n_unknown, rate: total.rate + 1.0 })
}

/// What an engine found.
pub(super) struct Found {
    method: &'static str,
    pub objective: f64,
    /// The evidence or its bound; none for em, and with unknown cells, where it has no parts.
    evidence: Option<Evidence>,
    ln_likelihood: Option<f64>,
    divergence: Option<f64>,
    pub tables: Vec<TableMeans>,
    pub intensity: Intensity,
    d_ep: Option<f64>,
    squares: Option<Vec<f64>>,
    n_states: Option<usize>,
    n_unknown: Option<f64>,
    /// Whether tables are means over all namings of hidden values.
    is_label_averaged: bool,
    particles: Option<(Report, SmcPosterior)>,
    /// Sweeps, and what to add to their objectives.
    climbs: Option<(Climbs, f64)>,
    pub stream: Option<StreamReport>,
}

impl Found {
    fn new(method: &'static str, evidence: Evidence, tables: Vec<TableMeans>, intensity: Intensity) -> Self {
        let objective = evidence.log_marginal;
        Found { objective, evidence: Some(evidence), ..Found::plain(method, tables, intensity) }
    }

    pub fn plain(method: &'static str, tables: Vec<TableMeans>, intensity: Intensity) -> Self {
        Found {
            method,
            objective: f64::NAN,
            evidence: None,
            ln_likelihood: None,
            divergence: None,
            tables,
            intensity,
            d_ep: None,
            squares: None,
            n_states: None,
            n_unknown: None,
            is_label_averaged: false,
            particles: None,
            climbs: None,
            stream: None,
        }
    }

    /// Factors and the like, from one labelling of the hidden values.
    fn decomposition(&self, args: &DecompositionArgs, problem: &Problem<'_>) -> Result<Option<Decomposed>, Failure> {
        if !args.is_wanted() {
            return Ok(None);
        }
        let best;
        let (tables, from) = match (&self.particles, self.method) {
            (Some((_, posterior)), _) => {
                best = posterior.best_tables(problem);
                (&best, format!("the best allocation, in run {}", posterior.best.run))
            }
            (None, "exact") if self.is_label_averaged => {
                return Err(Failure::Usage(
                    "--method exact averages over all namings of the hidden values, which leaves no factors; use --method smc, vb or em"
                        .into(),
                ));
            }
            (None, "exact" | "vb") => (&self.tables, "posterior means".to_owned()),
            (None, "dual-em") => (&self.tables, "the best allocation".to_owned()),
            _ => (&self.tables, "the best tables".to_owned()),
        };
        args.report(problem, &problem.counts.seen_anywhere(), tables, self.intensity.mean(), &from).map(Some)
    }

    /// What the objective is called.
    fn objective_name(&self) -> &'static str {
        match (self.method, self.ln_likelihood) {
            ("vb", _) => "lower bound (ELBO)",
            ("svb", _) => "bound, from the last batch",
            ("em", Some(likelihood)) if likelihood == self.objective => "ln likelihood",
            ("em", _) => "ln posterior density + constant",
            ("dual-em", _) => "ln pi(S) of the allocation",
            ("icm", _) => "ln density of allocation, tables",
            _ => "ln evidence",
        }
    }
}

/// A fit, to be shown.
pub(super) struct Fit<'p, 'a> {
    pub problem: &'p Problem<'a>,
    pub found: Found,
    pub decomposition: Option<Decomposed>,
    pub shows_hidden: bool,
    pub seconds: f64,
    pub warnings: Vec<Warning>,
}

impl Fit<'_, '_> {
    fn labels(&self, node: polyurn::graph::NodeIndex) -> &Labels {
        &self.problem.counts.labels[node.ix()]
    }

    pub fn json(&self, output: &Output) -> Value {
        let model = self.problem.model;
        let squares = self.found.squares.as_ref().map(|squares| {
            let named = squares.iter().zip(model.tables());
            named
                .map(|(&sum, table)| (model.node(table.members[0]).name.clone(), sum.into()))
                .collect::<Map<String, Value>>()
        });
        let tables: Vec<Value> = self
            .found
            .tables
            .iter()
            .map(|table| {
                let member = model.tables()[table.table.ix()].members[0];
                let parents = &model.node(member).parents;
                let rows: Vec<Value> = table
                    .rows
                    .iter()
                    .map(|row| {
                        let mut given = Map::new();
                        for (&parent, &value) in parents.iter().zip(&row.parents) {
                            given.insert(model.node(parent).name.clone(), json!(self.labels(parent).name(value)));
                        }
                        let values: Vec<_> =
                            row.cells.iter().map(|cell| self.labels(member).name(cell.child)).collect();
                        json!({
                            "given": given,
                            "values": values,
                            "mean": row.cells.iter().map(|cell| cell.mean).collect::<Vec<_>>(),
                            "sd": row.cells.iter().map(|cell| cell.sd).collect::<Vec<_>>(),
                        })
                    })
                    .collect();
                json!({
                    "node": model.node(member).name,
                    "tied": model.tables()[table.table.ix()].members[1..]
                        .iter().map(|&node| &model.node(node).name).collect::<Vec<_>>(),
                    "rows": rows,
                })
            })
            .collect();
        let part = |f: fn(&Evidence) -> f64| self.found.evidence.as_ref().map_or(Value::Null, |parts| number(f(parts)));
        let (log_marginal, bound) = match self.found.method {
            "exact" => (number(self.found.objective), json!("exact")),
            "smc" => (number(self.found.objective), json!("estimate")),
            "vb" => (number(self.found.objective), json!("lower")),
            _ => (Value::Null, Value::Null),
        };
        let mut object = json!({
            "method": self.found.method,
            "objective": number(self.found.objective),
            "objective_trace": [number(self.found.objective)],
            "log_marginal": log_marginal,
            "log_p_total": part(|parts| parts.log_p_total),
            "log_arrangements": part(|parts| parts.log_arrangements),
            "log_p_sequence": part(|parts| parts.log_p_sequence),
            "bound": bound,
            "log_likelihood": self.found.ln_likelihood.map(number),
            "std_error": null,
            "kl_divergence": self.found.divergence.map(number),
            "deviance": self.found.divergence.map(|divergence| number(2.0 * divergence)),
            "iterations": null,
            "converged": true,
            "posterior": { "d_ep": self.found.d_ep, "table_sum_of_squares": squares },
            "states": self.found.n_states,
            "intensity": self.found.intensity.json(),
            "tables": tables,
            "seed": output.seed(),
            "seconds": self.seconds,
            "tokens": self.problem.counts.n_tokens,
            "records": self.problem.counts.n_records(),
            "warnings": warnings_json(&self.warnings),
            "version": polyurn::VERSION,
        });
        if let Some((climbs, constant)) = &self.found.climbs {
            add_climbs(climbs, *constant, &mut object);
            object["objective_trace"] = climbs.trace.iter().map(|value| number(value + constant)).collect();
        }
        if let Some(stream) = &self.found.stream {
            stream.add_to(&mut object);
        }
        if let Some(n_unknown) = self.found.n_unknown {
            object["unknown_tokens"] = json!(n_unknown);
        }
        if let Some(decomposition) = &self.decomposition {
            object["decomposition"] = decomposition.json.clone();
        }
        if let Some((report, posterior)) = &self.found.particles {
            report.add_to(&mut object);
            object["std_error"] = json!(posterior.estimate.std_error);
            object["from_run"] = json!(posterior.from_run);
            let best = &posterior.best;
            object["best"] =
                json!({ "run": best.run, "log_joint": number(best.log_joint), "ln_pi": number(best.ln_pi) });
            if self.shows_hidden {
                object["best"]["hidden"] = self.best_json(posterior);
                object["hidden"] = self.hidden_json(posterior);
            }
        }
        object
    }

    /// The seen values of a record, by node.
    fn record_json(&self, block: u32, record: u32) -> Map<String, Value> {
        let block = &self.problem.counts.blocks[block as usize];
        let seen = block.seen.iter().zip(&block.values);
        let named = seen.map(|(&node, column)| {
            let node = polyurn::graph::NodeIndex(node);
            let value = self.labels(node).name(column[record as usize]);
            (self.problem.model.node(node).name.clone(), json!(value))
        });
        named.collect()
    }

    fn hidden_json(&self, posterior: &SmcPosterior) -> Value {
        let of_record = |record: &polyurn::engine::smc::RecordPosterior| {
            let nodes = record
                .nodes
                .iter()
                .map(|(node, probabilities)| (self.problem.model.node(*node).name.clone(), json!(probabilities)));
            json!({
                "record": self.record_json(record.block, record.record),
                "count": self.problem.counts.blocks[record.block as usize].counts[record.record as usize],
                "hidden": nodes.collect::<Map<String, Value>>(),
            })
        };
        posterior.hidden.iter().map(of_record).collect()
    }

    fn best_json(&self, posterior: &SmcPosterior) -> Value {
        let nodes: std::collections::HashMap<(u32, u32), Vec<String>> = posterior
            .hidden
            .iter()
            .map(|record| {
                let names = record.nodes.iter().map(|(node, _)| self.problem.model.node(*node).name.clone());
                ((record.block, record.record), names.collect())
            })
            .collect();
        let listed = posterior.best.hidden.iter().filter_map(|allocation| {
            let names = nodes.get(&(allocation.block, allocation.record))?;
            let groups: Vec<Value> = allocation
                .groups
                .iter()
                .map(|(values, count)| {
                    let values: Map<String, Value> =
                        names.iter().cloned().zip(values.iter().map(|&value| json!(value))).collect();
                    json!({ "hidden": values, "count": count })
                })
                .collect();
            let record = self.record_json(allocation.block, allocation.record);
            Some(json!({ "record": record, "allocation": groups }))
        });
        listed.collect()
    }

    pub fn text(&self) -> String {
        let model = self.problem.model;
        let error = self.found.particles.as_ref().and_then(|(_, posterior)| posterior.estimate.std_error);
        let shown = match self.found.stream {
            // Most digits of a noisy number say nothing.
            Some(_) => format!("{:.0}", self.found.objective),
            None => format!("{} {}", show_estimate(self.found.objective, error), show_error(error)),
        };
        let mut text = format!("{:<31}{}\n", self.found.objective_name(), shown.trim_end());
        let mut line = |name: &str, value: &str| text += &format!("{name:<31}{value}\n");
        if let Some((climbs, _)) = &self.found.climbs {
            line("sweeps", &climbs_text(climbs));
        } else if let Some(stream) = &self.found.stream {
            line("", &stream.caution());
            line("stream", &stream.text());
        } else {
            let d_ep =
                self.found.d_ep.map_or_else(|| "not known (some records leave nodes out)".to_owned(), show_short);
            line("effective parameters (d_EP)", &d_ep);
        }
        if let Some(divergence) = self.found.divergence {
            line("KL divergence from the data", &show_short(divergence));
        }
        if let Some(n_unknown) = self.found.n_unknown {
            line("tokens in unknown cells", &show_short(n_unknown));
        }
        line("intensity", &self.found.intensity.text());
        if let Some((report, posterior)) = &self.found.particles {
            text += &format!("particles                      {}\n", report.text(31));
            text += &format!(
                "best allocation                ln pi(S) {} in run {}\n",
                show_ln(posterior.best.ln_pi),
                posterior.best.run
            );
            if let Some(run) = posterior.from_run {
                text += &format!("labelled quantities            from run {run}\n");
            }
        }
        for table in &self.found.tables {
            let members = &model.tables()[table.table.ix()].members;
            let names: Vec<&str> = members.iter().map(|&node| model.node(node).name.as_str()).collect();
            let parents = &model.node(members[0]).parents;
            let given: Vec<&str> = parents.iter().map(|&node| model.node(node).name.as_str()).collect();
            let title = if given.is_empty() {
                names.join(", ")
            } else {
                format!("{} given {}", names.join(", "), given.join(", "))
            };
            let is_point = matches!(self.found.intensity, Intensity::Point(_));
            text += &format!("\n{title}: {}\n", if is_point { "probability" } else { "posterior mean (sd)" });
            let mut lines: Vec<Vec<String>> = Vec::new();
            for row in table.rows.iter().take(SHOWN_ROWS) {
                let key: Vec<String> = parents
                    .iter()
                    .zip(&row.parents)
                    .map(|(&parent, &value)| format!("{}={}", model.node(parent).name, self.labels(parent).name(value)))
                    .collect();
                let mut line = vec![format!("  {}", key.join(" "))];
                let mut cells: Vec<_> = row.cells.iter().collect();
                if cells.len() > SHOWN_CELLS {
                    cells.sort_by(|x, y| y.mean.total_cmp(&x.mean));
                    cells.truncate(SHOWN_CELLS);
                }
                line.extend(cells.iter().map(|cell| {
                    let name = self.labels(members[0]).name(cell.child);
                    let sd = if is_point { String::new() } else { format!(" ({:.3})", cell.sd) };
                    format!("{name} {:.3}{sd}", cell.mean)
                }));
                lines.push(line);
            }
            text += &columns(&lines);
            if table.rows.len() > SHOWN_ROWS {
                text += &format!("  and {} more rows (see --json)\n", table.rows.len() - SHOWN_ROWS);
            }
            if table.rows.iter().any(|row| row.cells.len() > SHOWN_CELLS) {
                text += &format!("  the {SHOWN_CELLS} largest of each row (see --json for all)\n");
            }
            if (table.rows.len() as f64) < model.tables()[table.table.ix()].n_rows() {
                text += "  rows that no token can be in are as in the prior\n";
            }
        }
        if let (true, Some((_, posterior))) = (self.shows_hidden, &self.found.particles) {
            text += &self.hidden_text(posterior);
        }
        if let Some(decomposition) = &self.decomposition {
            text += &decomposition.text;
        }
        text
    }

    /// The likeliest hidden values of the first records.
    fn hidden_text(&self, posterior: &SmcPosterior) -> String {
        let mut text = "\nhidden values of each record: probability\n".to_owned();
        let mut lines: Vec<Vec<String>> = Vec::new();
        for record in posterior.hidden.iter().take(SHOWN_RECORDS) {
            let block = &self.problem.counts.blocks[record.block as usize];
            let key: Vec<String> = block
                .seen
                .iter()
                .zip(&block.values)
                .map(|(&node, column)| {
                    let node = polyurn::graph::NodeIndex(node);
                    let name = &self.problem.model.node(node).name;
                    format!("{name}={}", self.labels(node).name(column[record.record as usize]))
                })
                .collect();
            let mut line = vec![format!("  {}", key.join(" "))];
            for (node, probabilities) in &record.nodes {
                let mut values: Vec<(u32, f64)> = (0..).zip(probabilities.iter().copied()).collect();
                values.sort_by(|x, y| y.1.total_cmp(&x.1));
                values.truncate(SHOWN_VALUES);
                let name = &self.problem.model.node(*node).name;
                line.extend(
                    values.iter().map(|&(value, p)| format!("{name}={} {p:.3}", self.labels(*node).name(value))),
                );
            }
            lines.push(line);
        }
        text += &columns(&lines);
        if posterior.hidden.len() > SHOWN_RECORDS {
            text += &format!("  and {} more records (see --json)\n", posterior.hidden.len() - SHOWN_RECORDS);
        }
        text
    }
}
