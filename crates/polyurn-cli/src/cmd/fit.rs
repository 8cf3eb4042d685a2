//! `polyurn fit`: posterior means of every table and of d_EP, exact or from particles.

use super::score::warnings_json;
use crate::args::{FitArgs, FitMethod};
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output, number};
use crate::particles::Report;
use crate::progress::{check_checkpoint, control};
use crate::text::{columns, show_error, show_estimate, show_ln, show_short};
use polyurn::Warning;
use polyurn::control::Control;
use polyurn::counts::Labels;
use polyurn::engine::Problem;
use polyurn::engine::TableMeans;
use polyurn::engine::exact::{Exact, posterior};
use polyurn::engine::smc::{Crew, SmcPosterior};
use polyurn::evidence::{Evidence, evidence};
use polyurn::math::Double;
use polyurn::prior::Prior;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Instant;

/// Rows of a table that are shown to people.
const SHOWN_ROWS: usize = 12;
/// Cells of a row that are shown to people.
const SHOWN_CELLS: usize = 8;

/// Fits a model.
pub fn run(args: &FitArgs) -> Result<(), Failure> {
    let output = Output::open(&args.output, &[&args.data.data, Path::new(&args.model.model)])?;
    let (source, settings) = load_model(&args.model.model, &args.prior)?.single()?;
    let binding = load_bound(&source, &args.data.data, &args.data.reading)?;
    let start = Instant::now();
    let prior = Prior::build(&binding.model, &settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let total = prior.total(Some(binding.counts.n_tokens))?;
    check_checkpoint(&args.checkpoint, &args.output)?;
    let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
    let mut warnings = binding.warnings.clone();
    let found = match args.method {
        FitMethod::Exact => by_states(args, &problem, &mut control, &mut warnings)?,
        FitMethod::Smc => by_particles(args, &problem, &output, &mut control, &mut warnings)?,
    };
    drop(control);
    args.checkpoint.remove_unless_cut(&warnings);
    if !prior.is_consistent() {
        warnings.push(Warning::InconsistentPrior);
    }
    output.warn(&warnings);
    let fit = Fit {
        problem: &problem,
        found,
        // Gamma(shape + T, rate + 1), theory.md section 5.
        intensity: (total.shape + binding.counts.n_tokens as f64, total.rate + 1.0),
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
    if args.hidden {
        return Err(Failure::Usage("--hidden: --method exact does not list hidden values; use --method smc".into()));
    }
    let posterior = posterior(&Exact { max_memory: args.limits.max_memory }, problem, control)?;
    let names: Vec<String> = posterior.label_averaged().map(|node| problem.model.node(node).name.clone()).collect();
    if !names.is_empty() {
        warnings.push(Warning::LabelAveraged { nodes: names });
    }
    Ok(Found {
        method: "exact",
        evidence: evidence(problem, posterior.ln_p_sequence)?,
        tables: posterior.table_means(problem),
        d_ep: Some(posterior.d_ep()),
        squares: Some(posterior.table_sum_of_squares()),
        n_states: Some(posterior.n_states()),
        particles: None,
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
    let crew = Crew { isa: args.particles.isa(), threads: output.n_threads, max_memory: args.limits.max_memory };
    let wish = args.particles.wish(problem, args.limits.time_limit)?;
    let smc = wish.settle(problem, crew, output.seed(), control)?;
    let posterior = smc.posterior(problem, output.seed(), control)?;
    warnings.extend(posterior.estimate.warnings.iter().cloned());
    if let Some(run) = posterior.from_run {
        let nodes = posterior.exchangeable.iter().map(|&node| problem.model.node(node).name.clone()).collect();
        warnings.push(Warning::LabelsOfOneRun { run: run as u64, nodes });
    }
    let evidence = evidence(problem, Double::from(posterior.estimate.ln_p_sequence))?;
    let to_marginal = evidence.log_p_total + evidence.log_arrangements;
    Ok(Found {
        method: "smc",
        evidence,
        tables: posterior.tables.clone(),
        d_ep: posterior.d_ep,
        squares: posterior.table_sum_of_squares.clone(),
        n_states: None,
        particles: Some((Report::new(smc, problem.model, &posterior.estimate, to_marginal), posterior)),
    })
}

/// What an engine found.
struct Found {
    method: &'static str,
    evidence: Evidence,
    tables: Vec<TableMeans>,
    d_ep: Option<f64>,
    squares: Option<Vec<f64>>,
    n_states: Option<usize>,
    particles: Option<(Report, SmcPosterior)>,
}

struct Fit<'p, 'a> {
    problem: &'p Problem<'a>,
    found: Found,
    intensity: (f64, f64),
    shows_hidden: bool,
    seconds: f64,
    warnings: Vec<Warning>,
}

impl Fit<'_, '_> {
    fn labels(&self, node: polyurn::graph::NodeIndex) -> &Labels {
        &self.problem.counts.labels[node.ix()]
    }

    fn json(&self, output: &Output) -> Value {
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
        let evidence = &self.found.evidence;
        let mut object = json!({
            "method": self.found.method,
            "objective": number(evidence.log_marginal),
            "objective_trace": [number(evidence.log_marginal)],
            "log_marginal": number(evidence.log_marginal),
            "log_p_total": number(evidence.log_p_total),
            "log_arrangements": number(evidence.log_arrangements),
            "log_p_sequence": number(evidence.log_p_sequence),
            "std_error": null,
            "kl_divergence": null,
            "iterations": null,
            "converged": true,
            "posterior": { "d_ep": self.found.d_ep, "table_sum_of_squares": squares },
            "states": self.found.n_states,
            "intensity": self.intensity_json(),
            "tables": tables,
            "seed": output.seed(),
            "seconds": self.seconds,
            "tokens": self.problem.counts.n_tokens,
            "records": self.problem.counts.n_records(),
            "warnings": warnings_json(&self.warnings),
            "version": polyurn::VERSION,
        });
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

    /// The intensity is Gamma: its mean and spread.
    fn intensity_json(&self) -> Value {
        let (shape, rate) = self.intensity;
        json!({ "shape": shape, "rate": rate, "mean": shape / rate, "sd": shape.sqrt() / rate })
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

    fn text(&self) -> String {
        let model = self.problem.model;
        let error = self.found.particles.as_ref().and_then(|(_, posterior)| posterior.estimate.std_error);
        let shown = format!("{} {}", show_estimate(self.found.evidence.log_marginal, error), show_error(error));
        let d_ep = self.found.d_ep.map_or_else(|| "not known (some records leave nodes out)".to_owned(), show_short);
        let mut text = format!(
            "ln evidence                    {}\neffective parameters (d_EP)    {d_ep}\nintensity                      {} (sd {})\n",
            shown.trim_end(),
            show_short(self.intensity.0 / self.intensity.1),
            show_short(self.intensity.0.sqrt() / self.intensity.1),
        );
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
            text += &format!("\n{title}: posterior mean (sd)\n");
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
                    format!("{} {:.3} ({:.3})", self.labels(members[0]).name(cell.child), cell.mean, cell.sd)
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
        text
    }
}
