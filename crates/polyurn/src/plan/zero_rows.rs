//! Refusing rows without any pseudo-count that a token could reach: such a row has no distribution.

use super::compile::Plan;
use super::evaluate::{CellWeights, Evaluator};
use crate::counts::MISSING;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::prior::{Prior, PseudoCounts};

/// One where a cell can occur, zero where it cannot.
struct Support<'a> {
    model: &'a Model,
    prior: &'a Prior,
}

impl CellWeights for Support<'_> {
    fn weight(&self, table: TableIndex, row: u64, child: u32) -> f64 {
        let sizes = &self.model.tables()[table.ix()].parent_sizes;
        let mut parents = vec![0u32; sizes.len()];
        crate::prior::decode(row as usize, sizes, &mut parents);
        if self.prior.table(table).cell(&parents, child).is_zero() { 0.0 } else { 1.0 }
    }
}

/// Most rows that are looked through for zeros.
const MAX_ROWS: f64 = 1e7;

/// False when no row can be all zero.
fn may_have_zero_rows(pseudo: &PseudoCounts) -> bool {
    match pseudo {
        PseudoCounts::Even { row, .. } => row.is_zero(),
        PseudoCounts::Product { terms } => {
            terms.iter().any(|term| term.parents.iter().any(|weights| weights.contains(&0.0)))
        }
        PseudoCounts::Dense { rows, .. } => rows.contains(&0.0),
    }
}

/// Checks that every row which has no pseudo-count at all belongs to a parent configuration that cannot occur.
///
/// # Errors
/// Names the node and the configuration of the first row that could be reached.
pub fn check_reachable_rows(model: &Model, prior: &Prior) -> Result<()> {
    let mut evaluator = Evaluator::new();
    for node_ix in model.node_indices() {
        let node = model.node(node_ix);
        let pseudo = prior.table(node.table);
        if !may_have_zero_rows(pseudo) {
            continue;
        }
        let n_rows = model.tables()[node.table.ix()].n_rows();
        if n_rows > MAX_ROWS {
            return Err(Error::Prior(format!(
                "`{}` has {n_rows:.1e} rows, too many to check for zeros; give every value of its parents a positive weight",
                node.name
            )));
        }
        let plan = Plan::compile(model, std::slice::from_ref(&node.parents))?;
        let mut record = vec![MISSING; model.n_nodes()];
        let sizes: Vec<u32> = node.parents.iter().map(|&parent| model.node(parent).size).collect();
        let mut values = vec![0u32; sizes.len()];
        for row in 0..n_rows as usize {
            crate::prior::decode(row, &sizes, &mut values);
            if !pseudo.row(&values).is_zero() {
                continue;
            }
            node.parents.iter().zip(&values).for_each(|(parent, &value)| record[parent.ix()] = value);
            let ln = evaluator.ln_probability(&plan, &plan.patterns()[0], &record, &Support { model, prior });
            if ln > f64::NEG_INFINITY {
                return Err(zero_row_error(model, node_ix, &values));
            }
        }
    }
    Ok(())
}

fn zero_row_error(model: &Model, node: NodeIndex, values: &[u32]) -> Error {
    let name = &model.node(node).name;
    let configuration: Vec<String> = model
        .node(node)
        .parents
        .iter()
        .zip(values)
        .map(|(&parent, value)| format!("{} = {value}", model.node(parent).name))
        .collect();
    let place = if configuration.is_empty() { String::new() } else { format!(" at {}", configuration.join(", ")) };
    Error::Prior(format!(
        "all pseudo-counts of `{name}`{place} are zero, but a token can get there; give one of them a positive number"
    ))
}
