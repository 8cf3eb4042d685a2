//! `--maximise`: what may not vary beside it.

use crate::grid::Point;
use polyurn::engine::sweeps::Free;
use polyurn::graph::Model;
use polyurn::{Error, Result};

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
