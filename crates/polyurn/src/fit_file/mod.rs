//! Fit files: what a fit found, in one documented file that other languages can read (docs/fit-file.md).
//!
//! A fit file is a zip archive. `fit.json` says what was fitted, how and with what result; `labels.json` names the values of
//! nodes; tables are NumPy arrays. [`FitFile::to_bytes`] writes one, [`FitFile::read`] reads one and believes nothing that
//! its seal does not vouch for.

mod header;
pub mod npy;
mod prior;
mod read;
mod seal;
mod tables;
mod write;

pub use seal::digest;
pub use write::npz;

use crate::counts::{Counts, Labels};
use crate::engine::TableMeans;
use crate::graph::Model;
use crate::prior::PseudoCounts;
use serde_json::Value;

/// What `fit.json` calls the format.
pub const FORMAT: &str = "polyurn fit";
/// The version that is written. All versions up to it can be read.
pub const FORMAT_VERSION: u32 = 2;
/// Nodes with more values than this have no counts of their values in the file.
const COUNTED_VALUES: u32 = 10_000_000;

/// A fit and all that is needed to use it.
#[derive(Debug, Clone, PartialEq)]
pub struct FitFile {
    /// The model.
    pub model: Model,
    /// What the values of each node are called.
    pub labels: Vec<Labels>,
    /// For each node whether the data show it.
    pub is_seen: Vec<bool>,
    /// The engine, as `fit --method` calls it.
    pub method: String,
    /// Hidden nodes over whose namings the tables are averaged, so that their values mean nothing.
    pub label_averaged: Vec<String>,
    /// The intensity.
    pub intensity: Intensity,
    /// The prior, which rows and cells that no table lists still follow.
    pub prior: FitPrior,
    /// The tables: posterior means, or points where the method gives points.
    pub tables: Vec<TableMeans>,
    /// The best allocation, for methods that draw allocations.
    pub best: Option<StoredDraw>,
    /// Draws from the posterior.
    pub draws: Vec<StoredDraw>,
    /// For each seen node how many tokens have each of its values; none where the data were not kept.
    pub value_counts: Vec<Option<Vec<f64>>>,
    /// The data that were fitted.
    pub data: FitData,
    /// Settings of the run, by name.
    pub settings: Value,
    /// The seed.
    pub seed: u64,
    /// The command line, for those who want to repeat it.
    pub command_line: Vec<String>,
    /// The version of polyurn that wrote it.
    pub version: String,
    /// What `fit --json` prints, but for tables, hidden values and the time it took.
    pub result: Value,
}

/// The intensity: one number, or a Gamma distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Intensity {
    /// One number.
    Point(f64),
    /// Gamma(shape, rate).
    Gamma {
        /// Shape.
        shape: f64,
        /// Rate.
        rate: f64,
    },
}

impl Intensity {
    /// Its mean.
    pub fn mean(self) -> f64 {
        match self {
            Intensity::Point(value) => value,
            Intensity::Gamma { shape, rate } => shape / rate,
        }
    }
}

/// The prior of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitPrior {
    /// False for maximum likelihood: then rows without tokens are even, since nothing else is known of them.
    pub is_given: bool,
    /// Pseudo-counts of each table.
    pub tables: Vec<PseudoCounts>,
    /// Size of the imaginary sample.
    pub a: f64,
    /// Gamma shape.
    pub shape: f64,
    /// Gamma rate; none where it followed the total.
    pub rate: Option<f64>,
}

/// What is known of the data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FitData {
    /// The file.
    pub source: String,
    /// SHA-256 digest of its bytes as they were on disk; none for standard input.
    pub sha256: Option<String>,
    /// Distinct records; for streams, rows.
    pub n_records: u64,
    /// Tokens.
    pub n_tokens: f64,
}

/// One allocation and the tables given it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDraw {
    /// Posterior means of the tables given the allocation.
    pub tables: Vec<TableMeans>,
    /// Where the tokens of records with unseen nodes are.
    pub allocation: Vec<AllocatedTokens>,
}

/// Tokens of one record that have the same values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatedTokens {
    /// What the record shows: a value for each node, [`MISSING`](crate::counts::MISSING) where it shows none.
    pub record: Vec<u32>,
    /// The same with the values that were allocated; still missing where nothing seen depends on the node.
    pub values: Vec<u32>,
    /// How many tokens they are.
    pub n_tokens: u64,
}

/// How many tokens show each value of each node, for nodes that are seen at all.
pub fn value_counts(counts: &Counts) -> Vec<Option<Vec<f64>>> {
    let is_seen = counts.seen_anywhere();
    let is_counted = |node: usize| is_seen[node] && counts.labels[node].len() <= COUNTED_VALUES;
    let mut all: Vec<Option<Vec<f64>>> = (0..counts.n_nodes())
        .map(|node| is_counted(node).then(|| vec![0.0; counts.labels[node].len() as usize]))
        .collect();
    for block in &counts.blocks {
        for (&node, column) in block.seen.iter().zip(&block.values) {
            if let Some(sums) = &mut all[node as usize] {
                column.iter().zip(block.counts.iter()).for_each(|(&value, n)| sums[value as usize] += counts.tokens(n));
            }
        }
    }
    all
}
