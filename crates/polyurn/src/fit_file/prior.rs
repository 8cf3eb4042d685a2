//! The prior of a fit, to and from its entries.

use super::header::{PriorEntry, PseudoEntry, TermEntry};
use super::{FitPrior, npy};
use crate::graph::Table;
use crate::prior::{ProductTerm, PseudoCount, PseudoCounts};

/// The entry of a table's pseudo-counts, and the array that goes with it.
pub(super) fn entry_of(pseudo: &PseudoCounts, table: &Table) -> (PseudoEntry, Option<Vec<u8>>) {
    match pseudo {
        PseudoCounts::Even { cell, row } => {
            let entry = PseudoEntry::Even {
                ln_cell: cell.ln().max(f64::MIN),
                ln_row: row.ln().max(f64::MIN),
                cell: cell.value,
                row: row.value,
            };
            (entry, None)
        }
        PseudoCounts::Product { terms } => {
            let of_term = |term: &ProductTerm| TermEntry {
                size: term.size,
                parents: term.parents.iter().map(|weights| weights.to_vec()).collect(),
                child: term.child.to_vec(),
            };
            (PseudoEntry::Product { terms: terms.iter().map(of_term).collect() }, None)
        }
        PseudoCounts::Dense { cells, child_size, .. } => {
            let shape = [cells.len() / (*child_size).max(1) as usize, table.child_size as usize];
            (PseudoEntry::Dense, Some(npy::encode(&shape, cells.iter().copied())))
        }
    }
}

/// The prior of a file. `dense` reads the array of a table.
pub(super) fn prior_of(
    entry: PriorEntry,
    tables: &[Table],
    mut dense: impl FnMut(usize) -> Result<(Vec<usize>, Vec<f64>), String>,
) -> Result<FitPrior, String> {
    if entry.tables.len() != tables.len() {
        return Err("the prior does not have one entry for each table".into());
    }
    let mut all = Vec::with_capacity(tables.len());
    for (ix, (pseudo, table)) in entry.tables.into_iter().zip(tables).enumerate() {
        all.push(match pseudo {
            PseudoEntry::Even { ln_cell, ln_row, cell, row } => {
                let count = |value: f64, ln: f64| {
                    let is_zero = value == 0.0 && ln == f64::MIN;
                    let ln = if is_zero { f64::NEG_INFINITY } else { ln };
                    is_count(value).then_some(PseudoCount { value, ln_if_tiny: if value < 1e-290 { ln } else { 0.0 } })
                };
                let wrong = || format!("pseudo-counts of table {ix} are no counts");
                let cell = count(cell, ln_cell).ok_or_else(wrong)?;
                PseudoCounts::Even { cell, row: count(row, ln_row).ok_or_else(wrong)? }
            }
            PseudoEntry::Product { terms } => {
                let terms: Vec<ProductTerm> = terms.into_iter().map(term_of).collect();
                if terms.is_empty() || !terms.iter().all(|term| fits(term, table)) {
                    return Err(format!("pseudo-counts of table {ix} do not fit the model"));
                }
                PseudoCounts::Product { terms }
            }
            PseudoEntry::Dense => {
                let (shape, cells) = dense(ix)?;
                let n_cells = table.n_cells();
                let fits = shape.len() == 2 && shape[1] == table.child_size as usize && n_cells == Some(cells.len());
                if !fits || !cells.iter().all(|&cell| is_count(cell)) {
                    return Err(format!("pseudo-counts of table {ix} do not fit the model"));
                }
                PseudoCounts::dense(cells, table.parent_sizes.clone(), table.child_size)
            }
        });
    }
    Ok(FitPrior { is_given: entry.is_given, tables: all, a: entry.a, shape: entry.shape, rate: entry.rate })
}

fn term_of(term: TermEntry) -> ProductTerm {
    ProductTerm {
        size: term.size,
        parents: term.parents.into_iter().map(Into::into).collect(),
        child: term.child.into(),
    }
}

fn fits(term: &ProductTerm, table: &Table) -> bool {
    let sizes = table.parent_sizes.iter().chain([&table.child_size]);
    let weights = || term.parents.iter().chain([&term.child]);
    term.parents.len() == table.parent_sizes.len()
        && is_count(term.size)
        && weights().zip(sizes).all(|(weights, &size)| weights.len() == size as usize)
        && weights().flat_map(|weights| weights.iter()).all(|&weight| is_count(weight))
}

fn is_count(value: f64) -> bool {
    value >= 0.0 && value.is_finite()
}
