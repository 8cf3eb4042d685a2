//! The network in the Bayesian Interchange Format, as pgmpy, bnlearn and others read it.
//!
//! Names in this format are plain words. Characters other than ASCII letters, digits, `_`, `-` and `.` become `_` and the code of the character, and names that
//! would then be the same get a number; where a name had to change, a property of the variable tells the old one.

use super::Export;
use crate::error::{Error, Result};
use std::collections::HashSet;
use std::fmt::Write;

/// Cells of a network at most: each takes some twenty characters.
const MAX_CELLS: f64 = 2e7;

impl Export<'_> {
    /// The whole network, every row of every table.
    ///
    /// # Errors
    /// When tables are too large to be written out, and when they are averages over namings of hidden values.
    pub fn bif(&self) -> Result<String> {
        if self.is_averaged() {
            return Err(Error::Setting(format!(
                "tables of this fit are averages over all namings of {}, which make no network; fit with --method smc, gibbs, vb or em",
                self.fit.label_averaged.join(", ")
            )));
        }
        let model = &self.fit.model;
        let n_cells: f64 =
            model.nodes().iter().map(|node| model.tables()[node.table.ix()].n_rows() * f64::from(node.size)).sum();
        if n_cells > MAX_CELLS {
            return Err(Error::TooCostly(format!(
                "the network has {n_cells:.3e} cells, and BIF lists every one; export to npz or csv instead"
            )));
        }
        let names = words(model.nodes().iter().map(|node| node.name.clone()));
        let values: Vec<Vec<String>> = self
            .fit
            .labels
            .iter()
            .map(|labels| words((0..labels.len()).map(|value| labels.name(value).into_owned())))
            .collect();
        let mut text = "network polyurn {\n}\n".to_owned();
        for node in model.node_indices() {
            let (name, own) = (&names[node.ix()], &values[node.ix()]);
            let _ = writeln!(text, "variable {name} {{\n  type discrete [ {} ] {{ {} }};", own.len(), own.join(", "));
            if name != self.name(node) {
                let _ = writeln!(text, "  property name = {} ;", quoted(self.name(node)));
            }
            text += "}\n";
        }
        for node in model.node_indices() {
            let parents = &model.node(node).parents;
            let name = &names[node.ix()];
            let given: Vec<&str> = parents.iter().map(|parent| names[parent.ix()].as_str()).collect();
            let cells = self.cells(model.node(node).table)?;
            let size = model.node(node).size as usize;
            if parents.is_empty() {
                let _ = writeln!(text, "probability ( {name} ) {{\n  table {};\n}}", row(&cells));
                continue;
            }
            let _ = writeln!(text, "probability ( {name} | {} ) {{", given.join(", "));
            for (number, cells) in cells.chunks_exact(size).enumerate() {
                let mut key = vec![""; parents.len()];
                let mut left = number;
                for (at, parent) in parents.iter().enumerate().rev() {
                    let size = model.node(*parent).size as usize;
                    key[at] = &values[parent.ix()][left % size];
                    left /= size;
                }
                let _ = writeln!(text, "  ({}) {};", key.join(", "), row(cells));
            }
            text += "}\n";
        }
        Ok(text)
    }
}

/// Probabilities that add up to one, with all their digits.
fn row(cells: &[f64]) -> String {
    let sum: f64 = cells.iter().sum();
    let shown = cells.iter().map(|&cell| {
        let p = if sum > 0.0 { cell / sum } else { 1.0 / cells.len() as f64 };
        format!("{p:.17e}")
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Names as plain words, all different.
fn words(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut all = Vec::new();
    for name in names {
        let mut word = String::new();
        for c in name.chars() {
            if c.is_ascii_alphanumeric() || "_-.".contains(c) {
                word.push(c);
            } else {
                let _ = write!(word, "_{:x}", u32::from(c));
            }
        }
        if word.is_empty() {
            word.push('_');
        }
        let (stem, mut number) = (word.clone(), 1);
        while !taken.insert(word.clone()) {
            number += 1;
            word = format!("{stem}_{number}");
        }
        all.push(word);
    }
    all
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace(['"', '\\', ';', '{', '}', '\n', '\r'], " "))
}
