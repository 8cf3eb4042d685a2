//! `--maximise`: what may not vary beside it, and how what was found is reported.

use crate::grid::Point;
use crate::text::show_short;
use polyurn::engine::sweeps::Free;
use polyurn::graph::Model;
use polyurn::score::Maximised;
use polyurn::{Error, Result};
use serde_json::{Value, json};

/// Refuses sizes that vary along a curve as well: they are either given, point by point, or set where the bound is largest.
///
/// # Errors
/// When there is one.
pub fn refuse_varied(free: &Free, point: &Point, model: &Model) -> Result<()> {
    let is_free = |node: &String| model.find(node).is_some_and(|node| free.tables.contains(&model.node(node).table));
    let varied = point.pseudo_counts.iter().map(|(node, _)| node).find(|node| is_free(node)).cloned();
    match varied.or_else(|| (free.a && point.a.is_some()).then(|| "a".to_owned())) {
        Some(name) => Err(Error::Setting(format!(
            "--maximise {name}: a list of values is given for it too; leave one of the two out"
        ))),
        None => Ok(()),
    }
}

/// What was maximised, for programs.
pub fn maximised_json(all: &[Maximised]) -> Value {
    all.iter().map(|own| json!({ "name": own.name, "value": own.value, "factor": own.factor })).collect()
}

/// The same for people.
pub fn maximised_text(all: &[Maximised]) -> String {
    let one = |own: &Maximised| match own.value {
        Some(value) if own.is_sample_size() => format!("a = {}", show_short(value)),
        Some(value) => format!("pseudo-count of {} = {}", own.name, show_short(value)),
        None => format!("pseudo-counts of {} times {}", own.name, show_short(own.factor)),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}
