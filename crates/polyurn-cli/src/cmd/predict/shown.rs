//! One line for each row: CSV or JSON.

use super::block::Block;
use super::label_of;
use super::new_values::NewValues;
use super::patterns::Pattern;
use super::rows::Binding;
use crate::args::PredictArgs;
use polyurn::counts::{Labels, MISSING};
use polyurn::graph::NodeIndex;
use polyurn::io::push_csv_field;
use polyurn::predict::{Predictor, Workspace};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::ops::Range;

/// What is shown of rows.
pub struct Shown<'a> {
    pub predictor: &'a Predictor<'a>,
    pub args: &'a PredictArgs,
    pub given: &'a [NodeIndex],
    pub binding: &'a Binding,
    pub json: bool,
}

/// What is known of one node of a row.
struct Known<'w> {
    /// The most likely value, and its probability.
    best: Option<(u32, f64)>,
    /// All probabilities, where they were asked for.
    all: Option<&'w [f64]>,
}

/// What is shown of one row.
struct Line<'w> {
    ln_probability: f64,
    ln_given: f64,
    /// Whether it has a value that the fit does not know, and which has no probability of its own.
    is_new: bool,
    hidden: Vec<Known<'w>>,
    imputed: Vec<Known<'w>>,
}

impl Shown<'_> {
    fn labels(&self, node: NodeIndex) -> &Labels {
        &self.predictor.fit().labels[node.ix()]
    }

    fn name(&self, node: NodeIndex) -> &str {
        &self.predictor.fit().model.node(node).name
    }

    /// Nodes whose values may be filled in.
    fn imputed(&self) -> Vec<NodeIndex> {
        let fit = self.predictor.fit();
        if self.args.impute { self.binding.nodes().filter(|node| fit.is_seen[node.ix()]).collect() } else { Vec::new() }
    }

    /// The names of all columns, as a line of CSV.
    pub fn header(&self) -> String {
        let mut names: Vec<String> = self.binding.kept_names.clone();
        names.push("log_probability".into());
        if !self.given.is_empty() {
            names.push("log_probability_given".into());
        }
        if self.args.expected {
            names.push("expected_count".into());
        }
        for node in self.predictor.hidden() {
            let name = self.name(node);
            names.extend([name.to_owned(), format!("{name}:p")]);
            if self.args.probabilities {
                names.extend(
                    (0..self.labels(node).len()).map(|value| format!("{name}={}", self.labels(node).name(value))),
                );
            }
        }
        for node in self.imputed() {
            names.extend([format!("{}:imputed", self.name(node)), format!("{}:p", self.name(node))]);
        }
        let mut text = String::new();
        for (ix, name) in names.iter().enumerate() {
            if ix > 0 {
                text.push(',');
            }
            push_csv_field(&mut text, name);
        }
        text.push('\n');
        text
    }

    /// Lines of some rows of a block.
    pub fn lines(
        &self,
        block: &Block,
        rows: Range<usize>,
        patterns: &[Pattern],
        new_values: &NewValues,
        drawn: &[Option<Vec<(u32, f64)>>],
    ) -> String {
        let mut text = String::new();
        let mut work = Workspace::default();
        let (hidden, imputed) = (self.predictor.hidden(), self.imputed());
        for row in rows {
            let record = block.record(row);
            let question = &patterns[row].full;
            let new = new_values.of_row(block, row);
            let ln_probability = self.predictor.answer(question, record, &new, &mut work);
            let drawn = drawn.get(row).and_then(Option::as_ref);
            let known = |node: &NodeIndex| -> Known<'_> {
                let value = record[node.ix()];
                if value != MISSING {
                    let is_known = value < self.labels(*node).len();
                    return Known { best: is_known.then_some((value, 1.0)), all: None };
                }
                let at = question.wanted().iter().position(|wanted| wanted == node).expect("unseen nodes are wanted");
                let all = self.args.probabilities.then(|| work.posterior(at));
                match drawn.map(|nodes| nodes[node.ix()]).filter(|(value, _)| *value != MISSING) {
                    Some(best) => Known { best: Some(best), all },
                    None => Known { best: work.most_likely(at), all },
                }
            };
            let is_shown = |node: &&NodeIndex| record[node.ix()] != MISSING;
            let ln_roots: f64 =
                self.given.iter().filter(is_shown).map(|&node| self.predictor.ln_root(node, record[node.ix()])).sum();
            let line = Line {
                ln_probability: without_noise(ln_probability),
                ln_given: without_noise(ln_probability - ln_roots),
                is_new: (0..block.n_open).any(|root| label_of(block, row, root).is_some()),
                hidden: hidden.iter().map(known).collect(),
                imputed: imputed.iter().map(known).collect(),
            };
            let kept = block.kept(row, self.binding.kept_names.len());
            if self.json {
                let value = self.json_line(&line, kept, &hidden, &imputed);
                let _ = writeln!(text, "{value}");
            } else {
                self.csv_line(&mut text, &line, kept, &hidden, &imputed, record);
            }
        }
        text
    }

    /// The expected count of a row's cell.
    fn expected(&self, line: &Line<'_>) -> Option<f64> {
        (self.args.expected && !line.is_new).then(|| self.predictor.fit().intensity.mean() * line.ln_probability.exp())
    }

    fn csv_line(
        &self,
        text: &mut String,
        line: &Line<'_>,
        kept: &[String],
        hidden: &[NodeIndex],
        imputed: &[NodeIndex],
        record: &[u32],
    ) {
        for field in kept {
            push_csv_field(text, field);
            text.push(',');
        }
        if !line.is_new {
            push_number(text, line.ln_probability);
        }
        if !self.given.is_empty() {
            text.push(',');
            push_number(text, line.ln_given);
        }
        if self.args.expected {
            text.push(',');
            if let Some(expected) = self.expected(line) {
                push_number(text, expected);
            }
        }
        for (node, known) in hidden.iter().zip(&line.hidden) {
            self.push_known(text, *node, known);
            if self.args.probabilities {
                for value in 0..self.labels(*node).len() {
                    text.push(',');
                    match known.all {
                        Some(all) => push_number(text, all[value as usize]),
                        None => push_number(text, f64::from(u8::from(record[node.ix()] == value))),
                    }
                }
            }
        }
        imputed.iter().zip(&line.imputed).for_each(|(node, known)| self.push_known(text, *node, known));
        text.push('\n');
    }

    fn push_known(&self, text: &mut String, node: NodeIndex, known: &Known<'_>) {
        text.push(',');
        if let Some((value, _)) = known.best {
            push_csv_field(text, &self.labels(node).name(value));
        }
        text.push(',');
        if let Some((_, p)) = known.best {
            push_number(text, p);
        }
    }

    fn json_line(&self, line: &Line<'_>, kept: &[String], hidden: &[NodeIndex], imputed: &[NodeIndex]) -> Value {
        let nodes = |nodes: &[NodeIndex], known: &[Known<'_>]| -> Map<String, Value> {
            let of_node = |(node, known): (&NodeIndex, &Known<'_>)| {
                let mut value = json!({
                    "value": known.best.map(|(value, _)| self.labels(*node).name(value)),
                    "probability": known.best.map(|(_, p)| p),
                });
                if let Some(all) = known.all {
                    value["probabilities"] = json!(all);
                }
                (self.name(*node).to_owned(), value)
            };
            nodes.iter().zip(known).map(of_node).collect()
        };
        let kept: Map<String, Value> =
            self.binding.kept_names.iter().cloned().zip(kept.iter().map(|value| json!(value))).collect();
        let ln = |value: f64| crate::output::number(value);
        let mut object = json!({
            "log_probability": if line.is_new { Value::Null } else { ln(line.ln_probability) },
            "hidden": nodes(hidden, &line.hidden),
        });
        if !kept.is_empty() {
            object["keep"] = Value::Object(kept);
        }
        if !self.given.is_empty() {
            object["log_probability_given"] = ln(line.ln_given);
        }
        if self.args.expected {
            object["expected_count"] = json!(self.expected(line));
        }
        if self.args.impute {
            object["imputed"] = Value::Object(nodes(imputed, &line.imputed));
        }
        object
    }
}

fn push_number(text: &mut String, value: f64) {
    // Writing to a string does not fail.
    let _ = write!(text, "{value}");
}

/// What is certain but for rounding is certain.
fn without_noise(ln: f64) -> f64 {
    if ln > -1e-13 { 0.0 } else { ln }
}
