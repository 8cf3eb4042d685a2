//! `--maximise`: from names to free sizes of the prior, and from what was found to what is reported.

use crate::grid::Point;
use crate::text::show_short;
use polyurn::engine::sweeps::{Free, VbFit};
use polyurn::graph::{Model, TableIndex};
use polyurn::prior::PseudoCounts;
use polyurn::{Error, Result};
use serde_json::{Value, json};

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

/// Refuses sizes that vary along a curve as well: they are either given, point by point, or set where the bound is largest.
///
/// # Errors
/// When there is one.
pub fn refuse_varied(free: &Free, point: &Point, model: &Model) -> Result<()> {
    let is_free = |node: &String| model.find(node).is_some_and(|node| free.tables.contains(&model.node(node).table));
    let varied = point.pseudo_counts.iter().map(|(node, _)| node).find(|node| is_free(node)).cloned();
    match varied.or_else(|| (free.a && point.a.is_some()).then(|| SAMPLE_SIZE.to_owned())) {
        Some(name) => Err(Error::Setting(format!(
            "--maximise {name}: a list of values is given for it too; leave one of the two out"
        ))),
        None => Ok(()),
    }
}

/// A size that was set where the bound is largest.
pub struct Maximised {
    /// `a`, or a node.
    name: String,
    /// `a` itself, or the pseudo-count of each cell, if they are all the same.
    value: Option<f64>,
    /// What it was multiplied by.
    factor: f64,
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

    /// For programs.
    pub fn json(all: &[Self]) -> Value {
        all.iter().map(|own| json!({ "name": own.name, "value": own.value, "factor": own.factor })).collect()
    }

    /// For people.
    pub fn text(all: &[Self]) -> String {
        let one = |own: &Self| match own.value {
            Some(value) if own.name == SAMPLE_SIZE => format!("a = {}", show_short(value)),
            Some(value) => format!("pseudo-count of {} = {}", own.name, show_short(value)),
            None => format!("pseudo-counts of {} times {}", own.name, show_short(own.factor)),
        };
        all.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}
