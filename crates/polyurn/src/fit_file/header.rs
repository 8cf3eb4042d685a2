//! `fit.json`, field by field.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The part that every version has.
#[derive(Debug, Deserialize)]
pub(super) struct Kind {
    pub format: String,
    pub format_version: u32,
    pub polyurn_version: String,
}

/// All of it, up to version 2.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub format: String,
    pub format_version: u32,
    pub polyurn_version: String,
    /// The model as text, for people; `nodes` and `tied` are what is read.
    pub model: String,
    pub nodes: Vec<NodeEntry>,
    pub tied: Vec<Vec<String>>,
    pub method: String,
    pub label_averaged: Vec<String>,
    pub intensity: IntensityEntry,
    pub prior: PriorEntry,
    pub tables: Vec<TableEntry>,
    /// Whether there is a best allocation, under `best/`.
    pub has_best: bool,
    /// How many draws there are, under `draws/0/` and so on; none before version 2.
    #[serde(default)]
    pub n_draws: u64,
    pub data: DataEntry,
    pub settings: Value,
    pub seed: u64,
    pub command_line: Vec<String>,
    pub result: Value,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeEntry {
    pub name: String,
    pub size: u32,
    pub parents: Vec<String>,
    pub seen: bool,
    /// The number of its table, in the names of arrays.
    pub table: u32,
    /// Whether `values/NODE.npy` counts the tokens of each value.
    pub has_value_counts: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IntensityEntry {
    pub mean: f64,
    pub shape: Option<f64>,
    pub rate: Option<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriorEntry {
    pub is_given: bool,
    pub a: f64,
    pub shape: f64,
    pub rate: Option<f64>,
    pub tables: Vec<PseudoEntry>,
}

/// Pseudo-counts of a table.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum PseudoEntry {
    /// The same in every cell; logarithms, since the numbers may be too small.
    Even { ln_cell: f64, ln_row: f64, cell: f64, row: f64 },
    /// Sums of products of weights.
    Product { terms: Vec<TermEntry> },
    /// All cells, in `prior/TABLE.npy`.
    Dense,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TermEntry {
    pub size: f64,
    pub parents: Vec<Vec<f64>>,
    pub child: Vec<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableEntry {
    /// The nodes that draw from it.
    pub nodes: Vec<String>,
    /// Their parents; of the first node, where several share the table.
    pub given: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DataEntry {
    pub source: String,
    pub sha256: Option<String>,
    pub records: u64,
    pub tokens: f64,
}

/// The values of one node, in `labels.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum LabelsEntry {
    /// Each by its name.
    Named(Vec<String>),
    /// Numbers from `first` on.
    Indexed { first: u32 },
}
