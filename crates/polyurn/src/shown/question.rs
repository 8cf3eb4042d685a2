//! What a result says of the question: command, model, data and prior, so that it can be shown and repeated.

use crate::engine::Problem;
use crate::graph::Model;
use serde_json::{Value, json};

/// The question that a result answers.
#[derive(Debug)]
pub struct Question<'q, 'a> {
    /// The command's name.
    pub command: &'static str,
    /// The model as it was given.
    pub model: &'q str,
    /// What the data are called: most often a file.
    pub data: &'q str,
    /// The problem that came of them.
    pub problem: &'q Problem<'a>,
    /// Which nodes any record shows.
    pub is_seen: &'q [bool],
    /// Whether there is a prior.
    pub has_prior: bool,
    /// The number of tokens, unless some cells are unknown.
    pub n_tokens: Option<f64>,
    /// The words by which it was asked on a command line; none where it was not.
    pub command_line: &'q [String],
}

impl Question<'_, '_> {
    /// Adds the question to its answer.
    pub fn add_to(&self, mut object: Value) -> Value {
        let Problem { model, prior, .. } = self.problem;
        let columns: Vec<&str> = model
            .nodes()
            .iter()
            .zip(self.is_seen)
            .filter(|(_, seen)| **seen)
            .map(|(node, _)| node.name.as_str())
            .collect();
        object["command"] = json!(self.command);
        object["model"] = json!(self.model.split_whitespace().collect::<Vec<_>>().join(" "));
        object["nodes"] = nodes_json(model, self.is_seen);
        object["data"] = json!({
            "file": self.data,
            "tokens": object["tokens"],
            "records": object["records"],
            "columns": columns,
        });
        if self.has_prior {
            object["a"] = json!(prior.a());
            object["shape"] = json!(prior.shape());
            object["b"] = json!(prior.total_of(self.n_tokens).ok().map(|total| total.rate));
        }
        object["command_line"] = json!(self.command_line);
        object
    }
}

/// Nodes with sizes and parents, and whether they are seen; for a node that shares a table, the node whose table it is.
pub fn nodes_json(model: &Model, is_seen: &[bool]) -> Value {
    let one = |(ix, node): (usize, &crate::graph::Node)| {
        let owner = model.table_name(node.table);
        let parents: Vec<&str> = node.parents.iter().map(|&parent| model.node(parent).name.as_str()).collect();
        let seen = is_seen.get(ix).copied().unwrap_or(false);
        let mut value = json!({ "name": node.name, "size": node.size, "seen": seen, "parents": parents });
        if owner != node.name {
            value["tied_to"] = json!(owner);
        }
        value
    };
    model.nodes().iter().enumerate().map(one).collect()
}
