//! Posterior means of tables, as every engine gives them.

use crate::graph::TableIndex;
use serde::{Deserialize, Serialize};

/// Children beyond this many are only listed where a token may be.
pub(crate) const LIST_ALL_CHILDREN_UP_TO: u32 = 10_000;

/// Mean and spread of one cell's probability.
#[derive(Debug, Clone, PartialEq)]
pub struct CellMean {
    /// The child's value.
    pub child: u32,
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation.
    pub sd: f64,
}

/// One row of a conditional table.
#[derive(Debug, Clone, PartialEq)]
pub struct RowMean {
    /// Values of the parents.
    pub parents: Vec<u32>,
    /// Cells; all of them, or those a token may be in where there are very many.
    pub cells: Vec<CellMean>,
}

/// Posterior means of one table: the rows a token may be in. All other rows are as in the prior.
#[derive(Debug, Clone, PartialEq)]
pub struct TableMeans {
    /// The table.
    pub table: TableIndex,
    /// Its rows, ascending.
    pub rows: Vec<RowMean>,
}

/// Mean and variance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moments {
    pub mean: f64,
    pub variance: f64,
}

impl Moments {
    /// Those of one cell of a Dirichlet row: a Beta distribution. `cell` and `row` are pseudo-count plus tokens.
    pub fn of_cell(cell: f64, row: f64) -> Self {
        let rest = (row - cell).max(0.0);
        let mean = cell / row;
        // An untouched row whose pseudo-counts underflow or are all zero has no mean: it counts as zero.
        let mean = if mean.is_finite() { mean } else { 0.0 };
        Moments { mean, variance: mean * (rest / row).max(0.0) / (row + 1.0) }
    }

    /// Those of a mixture with these weights, which add up to one. The variance is that within parts plus that of their
    /// means, so that nothing cancels for large counts.
    pub fn mixture(parts: impl Iterator<Item = (f64, Moments)> + Clone) -> Self {
        let mean = parts.clone().map(|(weight, part)| weight * part.mean).sum::<f64>();
        let variance = parts
            .map(|(weight, part)| weight * (part.variance + (part.mean - mean).powi(2)))
            .filter(|part| part.is_finite())
            .sum();
        Moments { mean, variance }
    }

    /// Those of an even mixture.
    pub fn even_mixture(parts: &[Moments]) -> Self {
        let weight = 1.0 / parts.len() as f64;
        Moments::mixture(parts.iter().map(|&part| (weight, part)))
    }
}
