//! Shows the result of `polyurn fit`, to programs and to people.

use super::climbs::{add_climbs, climbs_text, maximised_json, maximised_text};
use super::table::{table_json, table_text};
use super::text::{columns, show_error, show_estimate, show_ln, show_short};
use super::{number, tokens_json, warnings_json};
use crate::Seed;
use crate::counts::Labels;
use crate::engine::{ParticleAllocation, RecordPosterior, TableMeans};
use crate::evidence::Evidence;
use crate::fit::Fit;
use crate::fit_file::Intensity;
use crate::graph::NodeIndex;
use serde_json::{Map, Value, json};
use std::collections::HashMap;

/// Records whose hidden values are shown to people, and likeliest values of each node.
const SHOWN_RECORDS: usize = 20;
const SHOWN_VALUES: usize = 3;

/// What is to be known of the spreads of a bound.
const SMALL_SPREADS: &str = "of variational Bayes, often too small: fit with --method smc for those of the posterior";

impl Fit<'_, '_> {
    fn labels(&self, node: NodeIndex) -> &Labels {
        &self.problem.counts.labels[node.ix()]
    }

    /// All that was found.
    pub fn json(&self, seed: Seed) -> Value {
        let mut object = self.summary(seed);
        object["tables"] = self.found.tables.iter().map(|table| self.table_json(table)).collect();
        if let (true, Some(best)) = (self.shows_hidden, self.found.best()) {
            object["best"]["hidden"] = self.best_json(best);
            object["hidden"] = self.hidden_json();
        }
        object
    }

    /// The same without tables and hidden values, which may be very many.
    pub fn summary(&self, seed: Seed) -> Value {
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
            "posterior": { "d_ep": self.found.d_ep, "table_sum_of_squares": self.squares_json() },
            "states": self.found.n_states,
            "intensity": intensity_json(self.found.intensity),
            "seed": seed,
            "seconds": self.seconds,
            "tokens": tokens_json(self.problem.counts.n_tokens, self.problem.counts.unit),
            "records": self.problem.counts.n_records(),
            "warnings": warnings_json(&self.warnings),
            "version": crate::VERSION,
        });
        if let Some((climbs, constant)) = &self.found.climbs {
            add_climbs(climbs, *constant, &mut object);
            if !self.found.maximised.is_empty() {
                object["maximised"] = maximised_json(&self.found.maximised);
            }
            object["objective_trace"] = climbs.trace.iter().map(|value| number(value + constant)).collect();
        }
        if let Some(stream) = &self.found.stream {
            stream.add_to(&mut object);
        }
        if let Some(n_unknown) = self.found.n_unknown {
            object["unknown_tokens"] = json!(n_unknown);
        }
        if !self.found.draws().is_empty() {
            object["draw_runs"] = self.found.draws().iter().map(|draw| draw.run).collect();
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
        }
        if let Some(report) = &self.found.chains {
            report.add_to(self.problem.model, &mut object);
        }
        object
    }

    /// Sums of squares, each under the name of its table.
    fn squares_json(&self) -> Option<Map<String, Value>> {
        let model = self.problem.model;
        let named = self.found.squares.as_ref()?.iter().zip(model.tables());
        Some(named.map(|(&sum, table)| (model.node(table.members[0]).name.clone(), sum.into())).collect())
    }

    fn table_json(&self, table: &TableMeans) -> Value {
        table_json(self.problem.model, &self.problem.counts.labels, table)
    }

    /// The seen values of a record, by node.
    fn record_json(&self, block: u32, record: u32) -> Map<String, Value> {
        let block = &self.problem.counts.blocks[block as usize];
        let seen = block.seen.iter().zip(&block.values);
        let named = seen.map(|(&node, column)| {
            let node = NodeIndex(node);
            let value = self.labels(node).name(column[record as usize]);
            (self.problem.model.node(node).name.clone(), json!(value))
        });
        named.collect()
    }

    fn hidden_json(&self) -> Value {
        let of_record = |record: &RecordPosterior| {
            let nodes = record
                .nodes
                .iter()
                .map(|(node, probabilities)| (self.problem.model.node(*node).name.clone(), json!(probabilities)));
            json!({
                "record": self.record_json(record.block, record.record),
                "count": self.problem.counts.blocks[record.block as usize].counts.at(record.record as usize),
                "hidden": nodes.collect::<Map<String, Value>>(),
            })
        };
        self.found.hidden().iter().map(of_record).collect()
    }

    fn best_json(&self, best: &ParticleAllocation) -> Value {
        let nodes: HashMap<(u32, u32), Vec<String>> = self
            .found
            .hidden()
            .iter()
            .map(|record| {
                let names = record.nodes.iter().map(|(node, _)| self.problem.model.node(*node).name.clone());
                ((record.block, record.record), names.collect())
            })
            .collect();
        let listed = best.hidden.iter().filter_map(|allocation| {
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

    /// The same for people.
    pub fn text(&self) -> String {
        let error = self.found.particles.as_ref().and_then(|(_, posterior)| posterior.estimate.std_error);
        let shown = match self.found.stream {
            // Most digits of a noisy number say nothing.
            Some(_) => format!("{:.0}", self.found.objective),
            // One run that cannot tell its error: without a word the number would look exact.
            None if self.found.method == "smc" && error.is_none() => {
                format!("{:.2} error unknown", self.found.objective)
            }
            None => format!("{} {}", show_estimate(self.found.objective, error), show_error(error)),
        };
        let mut text = format!("{:<30} {}\n", self.found.objective_name(), shown.trim_end());
        let mut line = |name: &str, value: &str| text += &format!("{name:<30} {value}\n");
        if let Some((climbs, _)) = &self.found.climbs {
            line("sweeps", &climbs_text(climbs));
            if !self.found.maximised.is_empty() {
                line("maximised", &maximised_text(&self.found.maximised));
            }
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
        line("intensity", &intensity_text(self.found.intensity));
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
        if let Some(report) = &self.found.chains {
            text += &format!("chains                         {}\n", report.text(31));
            text += &format!("mixing                         {}\n", report.mixing_text());
            let best = &report.posterior.best;
            text += &format!("best allocation                ln pi(S) {} in chain {}\n", show_ln(best.ln_pi), best.run);
            if let Some(chain) = report.posterior.from_chain {
                text += &format!("labelled quantities            from chain {chain}\n");
            }
        }
        if self.found.method == "vb" {
            text += &format!("{:<30} {SMALL_SPREADS}\n", "spreads (sd)");
        }
        self.found.tables.iter().for_each(|table| text += &self.table_text(table));
        if self.shows_hidden {
            text += &self.hidden_text();
        }
        if let Some(decomposition) = &self.decomposition {
            text += &decomposition.text;
        }
        text
    }

    fn table_text(&self, table: &TableMeans) -> String {
        let is_point = matches!(self.found.intensity, Intensity::Point(_));
        table_text(self.problem.model, &self.problem.counts.labels, table, is_point, "--json")
    }

    /// The likeliest hidden values of the first records.
    fn hidden_text(&self) -> String {
        let hidden = self.found.hidden();
        let mut text = "\nhidden values of each record: probability\n".to_owned();
        let mut lines: Vec<Vec<String>> = Vec::new();
        for record in hidden.iter().take(SHOWN_RECORDS) {
            let block = &self.problem.counts.blocks[record.block as usize];
            let key: Vec<String> = block
                .seen
                .iter()
                .zip(&block.values)
                .map(|(&node, column)| {
                    let node = NodeIndex(node);
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
        if hidden.len() > SHOWN_RECORDS {
            text += &format!("  and {} more records (see --json)\n", hidden.len() - SHOWN_RECORDS);
        }
        text
    }
}

/// The intensity, to programs.
fn intensity_json(intensity: Intensity) -> Value {
    match intensity {
        Intensity::Point(value) => json!({ "mean": value }),
        Intensity::Gamma { shape, rate } => {
            json!({ "shape": shape, "rate": rate, "mean": shape / rate, "sd": shape.sqrt() / rate })
        }
    }
}

/// The same for people.
fn intensity_text(intensity: Intensity) -> String {
    match intensity {
        Intensity::Point(value) => show_short(value),
        Intensity::Gamma { shape, rate } => {
            format!("{} (sd {})", show_short(shape / rate), show_short(shape.sqrt() / rate))
        }
    }
}
