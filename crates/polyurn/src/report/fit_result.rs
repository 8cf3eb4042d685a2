//! A fit, read from the JSON of `fit`.

use super::fields::{finite_at, kind, label, labels_at, list_at, number, number_at, object_at, text_at};
use super::result::{EssTrace, Node, nodes, wrong};
use crate::error::Result;
use serde_json::Value;

/// A row of a fitted table.
#[derive(Debug, Clone)]
pub struct TableRow {
    /// Values of the parents, in words.
    pub given: String,
    /// Labels of the cells.
    pub labels: Vec<String>,
    /// Their means.
    pub means: Vec<f64>,
    /// Their standard deviations, where they have any.
    pub sds: Vec<Option<f64>>,
}

/// A fitted table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its node.
    pub node: String,
    /// Names of the parents.
    pub parents: Vec<String>,
    /// Other nodes that share it.
    pub tied: Vec<String>,
    /// Its rows.
    pub rows: Vec<TableRow>,
}

/// A fit.
#[derive(Debug, Clone)]
pub struct Fit {
    /// Engine.
    pub method: String,
    /// Name and value of what it maximised or estimated.
    pub objective: (String, Option<f64>),
    /// Standard error of that.
    pub error: Option<f64>,
    /// The objective sweep by sweep.
    pub objective_trace: Vec<f64>,
    /// The graph.
    pub nodes: Vec<Node>,
    /// The tables.
    pub tables: Vec<Table>,
    /// Particles over time.
    pub ess: EssTrace,
}

impl Fit {
    /// Reads the fields of a fit with these tables.
    ///
    /// # Errors
    /// Tables that are none.
    pub fn read(value: &Value, tables: &[Value]) -> Result<Self> {
        let method = text_at(value, "method");
        let name = match method.as_str() {
            "exact" | "smc" => "ln evidence",
            "vb" => "lower bound (ELBO)",
            "svb" => "bound, from the last batch",
            "gibbs" => "ln joint of the last state",
            _ => "objective",
        };
        Ok(Fit {
            objective: (name.into(), number_at(value, "objective")),
            error: finite_at(value, "std_error"),
            objective_trace: list_at(value, "objective_trace").iter().filter_map(number).collect(),
            nodes: nodes(value),
            tables: tables.iter().enumerate().map(|(ix, table)| Table::read(ix, table)).collect::<Result<_>>()?,
            ess: EssTrace::read(value),
            method,
        })
    }
}

impl Table {
    fn read(ix: usize, value: &Value) -> Result<Self> {
        let Some(rows) = value["rows"].as_array() else {
            return Err(wrong(format!("tables[{ix}].rows: expected a list, found {}", kind(&value["rows"]))));
        };
        let parents = rows.first().and_then(|row| object_at(row, "given"));
        Ok(Table {
            node: text_at(value, "node"),
            parents: parents.map_or_else(Vec::new, |given| given.keys().cloned().collect()),
            tied: labels_at(value, "tied"),
            rows: rows.iter().enumerate().map(|(row, found)| TableRow::read(ix, row, found)).collect::<Result<_>>()?,
        })
    }
}

impl TableRow {
    fn read(table: usize, row: usize, value: &Value) -> Result<Self> {
        let (labels, means) = (labels_at(value, "values"), list_at(value, "mean"));
        if labels.len() != means.len() {
            return Err(wrong(format!(
                "tables[{table}].rows[{row}]: {} values but {} means",
                labels.len(),
                means.len()
            )));
        }
        let given = object_at(value, "given").map_or_else(Vec::new, |given| {
            given.iter().map(|(name, value)| format!("{name} = {}", label(value))).collect()
        });
        let sds = list_at(value, "sd");
        let finite = |value: &Value| number(value).filter(|x| x.is_finite());
        Ok(TableRow {
            given: given.join(", "),
            means: means.iter().map(|mean| finite(mean).unwrap_or(0.0)).collect(),
            sds: (0..labels.len()).map(|ix| sds.get(ix).and_then(finite).filter(|sd| *sd > 0.0)).collect(),
            labels,
        })
    }
}
