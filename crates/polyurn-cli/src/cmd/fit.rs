//! `polyurn fit --method exact`: exact posterior means of every table and of d_EP.

use super::score::warnings_json;
use crate::args::FitArgs;
use crate::checkpoint::CheckpointFile;
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output, number};
use crate::progress::{check_checkpoint, control};
use crate::text::{columns, show_ln, show_short};
use polyurn::Warning;
use polyurn::counts::Labels;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Exact, Posterior, TableMeans, posterior};
use polyurn::evidence::{Evidence, evidence};
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
    let posterior = posterior(&Exact { max_memory: args.limits.max_memory }, &problem, &mut control)?;
    drop(control);
    if let Some(path) = &args.checkpoint.checkpoint {
        CheckpointFile::remove(path);
    }
    let mut warnings = binding.warnings.clone();
    let averaged: Vec<String> = posterior.label_averaged().map(|node| binding.model.node(node).name.clone()).collect();
    if !averaged.is_empty() {
        warnings.push(Warning::LabelAveraged { nodes: averaged });
    }
    if !prior.is_consistent() {
        warnings.push(Warning::InconsistentPrior);
    }
    output.warn(&warnings);
    let fit = Fit {
        problem: &problem,
        evidence: evidence(&problem, posterior.ln_p_sequence)?,
        tables: posterior.table_means(&problem),
        posterior,
        // Gamma(shape + T, rate + 1), theory.md section 5.
        intensity: (total.shape + binding.counts.n_tokens as f64, total.rate + 1.0),
        seconds: start.elapsed().as_secs_f64(),
        warnings,
    };
    output.result(|| fit.json(&output), || fit.text())
}

struct Fit<'p, 'a> {
    problem: &'p Problem<'a>,
    evidence: Evidence,
    tables: Vec<TableMeans>,
    posterior: Posterior<'a>,
    intensity: (f64, f64),
    seconds: f64,
    warnings: Vec<Warning>,
}

impl Fit<'_, '_> {
    fn labels(&self, node: polyurn::graph::NodeIndex) -> &Labels {
        &self.problem.counts.labels[node.ix()]
    }

    fn json(&self, output: &Output) -> Value {
        let model = self.problem.model;
        let squares: Map<String, Value> = self
            .posterior
            .table_sum_of_squares()
            .into_iter()
            .zip(model.tables())
            .map(|(sum, table)| (model.node(table.members[0]).name.clone(), sum.into()))
            .collect();
        let tables: Vec<Value> = self
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
        json!({
            "method": "exact",
            "objective": number(self.evidence.log_marginal),
            "objective_trace": [number(self.evidence.log_marginal)],
            "log_marginal": number(self.evidence.log_marginal),
            "log_p_total": number(self.evidence.log_p_total),
            "log_arrangements": number(self.evidence.log_arrangements),
            "log_p_sequence": number(self.evidence.log_p_sequence),
            "kl_divergence": null,
            "iterations": null,
            "converged": true,
            "posterior": { "d_ep": self.posterior.d_ep(), "table_sum_of_squares": squares },
            "states": self.posterior.n_states(),
            "intensity": { "shape": self.intensity.0, "rate": self.intensity.1, "mean": self.intensity.0 / self.intensity.1 },
            "tables": tables,
            "seed": output.seed(),
            "seconds": self.seconds,
            "tokens": self.problem.counts.n_tokens,
            "records": self.problem.counts.n_records(),
            "warnings": warnings_json(&self.warnings),
            "version": polyurn::VERSION,
        })
    }

    fn text(&self) -> String {
        let model = self.problem.model;
        let mut text = format!(
            "ln evidence                    {}\neffective parameters (d_EP)    {}\nintensity                      {}\n",
            show_ln(self.evidence.log_marginal),
            show_short(self.posterior.d_ep()),
            show_short(self.intensity.0 / self.intensity.1),
        );
        for table in &self.tables {
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
