//! Tables of a fit, for people: all rows that a token may be in.

use super::layout::Layout;
use crate::engine::Problem;
use crate::engine::tables::{CountsOfRows, TableMeans};

/// Counts of all rows that a token may be in.
pub fn row_counts(problem: &Problem<'_>, layout: &Layout, counts: &[f64]) -> CountsOfRows {
    let mut rows = CountsOfRows::new(problem.model.tables().len());
    for table in &layout.tables {
        for (cell, &count) in counts[table.cells()].iter().enumerate() {
            rows.add(table.table, &table.values(cell), count);
        }
    }
    layout.certain.iter().for_each(|(table, family, count)| rows.add(*table, family, layout.unit.tokens(*count)));
    rows
}

/// Means and spreads of Dirichlet rows: pseudo-counts plus counts.
pub fn dirichlet_means(problem: &Problem<'_>, layout: &Layout, counts: &[f64]) -> Vec<TableMeans> {
    row_counts(problem, layout, counts).dirichlet_means(problem.model, problem.prior)
}
