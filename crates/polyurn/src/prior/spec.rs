//! A prior as it was written in a file or on the command line, before it meets a model.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Pseudo-counts as written. The fields are those of a model file's `prior`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum PriorSpec {
    /// An imaginary sample spread evenly over all cells of the full table.
    Bdeu {
        /// The size of that sample; `a` where it is not given.
        size: Option<f64>,
    },
    /// A base measure over all nodes; every table gets its marginal.
    Base {
        /// All cells, row major in node order, last node fastest.
        alpha: Option<Vec<f64>>,
        /// Or independent marginals: for each node the weight of its values. Nodes not named are even.
        marginals: Option<BTreeMap<String, Vec<f64>>>,
        /// The total size. Without it `alpha` stands as it is, and marginals are scaled to `a`.
        size: Option<f64>,
    },
    /// Pseudo-counts for each node by itself: one row for each parent configuration (parents in node order, last
    /// fastest), one entry for each child value. A tied table stands once, under one member's name.
    Tables {
        /// Node name to rows.
        tables: BTreeMap<String, Vec<Vec<f64>>>,
    },
}

impl Default for PriorSpec {
    fn default() -> Self {
        PriorSpec::Bdeu { size: None }
    }
}
