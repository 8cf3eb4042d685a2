//! Tables and factors as a NumPy archive.

use super::Export;
use crate::counts::Labels;
use crate::error::Result;
use crate::fit_file::{npy, npz};
use crate::graph::TableIndex;

/// Nodes with more values than this have no list of labels when these are numbers.
const LISTED_NUMBERS: u32 = 1_000_000;

impl Export<'_> {
    /// `table.NODE` with one axis for each parent and one for the node; `labels.NODE`; where the model has factors,
    /// `factor.NODE` with the hidden nodes first and `core`; `intensity`. What each axis is stands in `axes.*`.
    ///
    /// # Errors
    /// When a table is too large to be listed cell by cell.
    pub fn npz(&self) -> Result<Vec<u8>> {
        let model = &self.fit.model;
        let mut arrays: Vec<(String, Vec<u8>)> = Vec::new();
        let axes = |names: Vec<&str>| npy::encode_text(&names);
        for (ix, table) in model.tables().iter().enumerate() {
            let cells = self.cells(TableIndex(ix as u32))?;
            let shape: Vec<usize> = table.parent_sizes.iter().chain([&table.child_size]).map(|&n| n as usize).collect();
            let bytes = npy::encode(&shape, cells.iter().copied());
            for &member in &table.members {
                let family = model.node(member).parents.iter().chain([&member]);
                arrays.push((format!("table.{}", self.name(member)), bytes.clone()));
                arrays.push((
                    format!("axes.table.{}", self.name(member)),
                    axes(family.map(|&node| self.name(node)).collect()),
                ));
            }
        }
        // A model without hidden nodes has no factors, and needs none.
        if let Ok(factors) = self.factors() {
            let core = factors.core.iter().map(|core| ("core".to_owned(), core));
            let matrices = factors
                .matrices
                .iter()
                .map(|matrix| (format!("factor.{}", self.name(matrix.nodes[matrix.nodes.len() - 1])), matrix));
            for (name, marginal) in core.chain(matrices) {
                let shape: Vec<usize> = marginal.sizes.iter().map(|&size| size as usize).collect();
                arrays
                    .push((format!("axes.{name}"), axes(marginal.nodes.iter().map(|&node| self.name(node)).collect())));
                arrays.push((name, npy::encode(&shape, marginal.values.iter().copied())));
            }
        }
        for node in model.node_indices() {
            let labels = self.labels(node);
            let is_listed = matches!(labels, Labels::Named(_)) || labels.len() <= LISTED_NUMBERS;
            if is_listed {
                let names: Vec<String> = (0..labels.len()).map(|value| labels.name(value).into_owned()).collect();
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                arrays.push((format!("labels.{}", self.name(node)), npy::encode_text(&names)));
            }
        }
        arrays.push(("intensity".into(), npy::encode(&[], [self.fit.intensity.mean()])));
        npz(arrays.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())))
    }
}
