//! Sizes of the prior that are set where variational Bayes has its largest bound: from names, and back to names.

use crate::engine::sweeps::{Free, VbFit};
use crate::error::{Error, Result};
use crate::graph::{Model, TableIndex};
use crate::prior::PseudoCounts;
use serde::{Deserialize, Serialize};

/// The name that stands for the equivalent sample size.
const SAMPLE_SIZE: &str = "a";

/// Sizes of the prior by their names.
///
/// # Errors
/// When a name is neither `a` nor a node.
pub fn free_sizes(names: &[String], model: &Model) -> Result<Free> {
    let mut free = Free::default();
    for name in names {
        if name == SAMPLE_SIZE {
            free.a = true;
            continue;
        }
        let node = model.find(name).ok_or_else(|| {
            let nodes: Vec<&str> = model.nodes().iter().map(|node| node.name.as_str()).collect();
            Error::Setting(format!(
                "--maximise {name}: expected `a` or nodes of the model, which are {}",
                nodes.join(", ")
            ))
        })?;
        free.tables.push(model.node(node).table);
    }
    Ok(free)
}

/// A size that was set where the bound is largest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Maximised {
    /// `a`, or a node.
    pub name: String,
    /// `a` itself, or the pseudo-count of each cell, if they are all the same.
    pub value: Option<f64>,
    /// What it was multiplied by.
    pub factor: f64,
}

impl Maximised {
    /// All of them, by the names that they were asked for with.
    pub fn all(names: &[String], free: &Free, fit: &VbFit) -> Vec<Self> {
        let of_a =
            fit.factors.a.map(|factor| Maximised { name: SAMPLE_SIZE.to_owned(), value: Some(fit.prior.a()), factor });
        let of_table = |((name, &table), &factor): ((&String, &TableIndex), &f64)| {
            let value = match fit.prior.table(table) {
                PseudoCounts::Even { cell, .. } => Some(cell.value),
                _ => None,
            };
            Maximised { name: name.clone(), value, factor }
        };
        let nodes = names.iter().filter(|name| *name != SAMPLE_SIZE);
        of_a.into_iter().chain(nodes.zip(&free.tables).zip(&fit.factors.tables).map(of_table)).collect()
    }

    /// Whether it is the equivalent sample size.
    pub fn is_sample_size(&self) -> bool {
        self.name == SAMPLE_SIZE
    }
}
