//! Tables of a fit, for people: all rows that a token may be in.

use super::layout::Layout;
use crate::engine::Problem;
use crate::engine::tables::{CellMean, LIST_ALL_CHILDREN_UP_TO, Moments, RowMean, TableMeans};
use crate::graph::TableIndex;
use std::collections::BTreeMap;

/// Counts of one row: its sum, and those of the cells that are stored.
#[derive(Debug, Default)]
pub struct RowCounts {
    pub sum: f64,
    pub cells: BTreeMap<u32, f64>,
}

/// Counts of all rows that a token may be in, by table and parents.
pub fn row_counts(problem: &Problem<'_>, layout: &Layout, counts: &[f64]) -> Vec<BTreeMap<Vec<u32>, RowCounts>> {
    let mut tables: Vec<BTreeMap<Vec<u32>, RowCounts>> = Vec::new();
    tables.resize_with(problem.model.tables().len(), BTreeMap::new);
    let mut add = |table: TableIndex, family: &[u32], count: f64| {
        let (child, parents) = family.split_last().expect("a family has a child");
        let row = tables[table.ix()].entry(parents.to_vec()).or_default();
        row.sum += count;
        *row.cells.entry(*child).or_insert(0.0) += count;
    };
    for table in &layout.tables {
        for (cell, &count) in counts[table.cells()].iter().enumerate() {
            add(table.table, &table.values(cell), count);
        }
    }
    layout.certain.iter().for_each(|(table, family, count)| add(*table, family, *count as f64));
    tables
}

/// Means and spreads of Dirichlet rows: pseudo-counts plus counts.
pub fn dirichlet_means(problem: &Problem<'_>, layout: &Layout, counts: &[f64]) -> Vec<TableMeans> {
    list(problem, layout, counts, |table, parents, child, cell, row| {
        let pseudo = problem.prior.table(table);
        Moments::of_cell(pseudo.cell(parents, child).value + cell, pseudo.row(parents).value + row)
    })
}

/// Lists all rows; `moments` are those of a cell, from its table, parents, child and counts of cell and row.
pub fn list(
    problem: &Problem<'_>,
    layout: &Layout,
    counts: &[f64],
    moments: impl Fn(TableIndex, &[u32], u32, f64, f64) -> Moments,
) -> Vec<TableMeans> {
    let of_table = |(ix, rows): (usize, BTreeMap<Vec<u32>, RowCounts>)| {
        let table = TableIndex(ix as u32);
        let child_size = problem.model.tables()[ix].child_size;
        let of_row = |(parents, row): (Vec<u32>, RowCounts)| {
            let of_cell = |child: u32| {
                let count = row.cells.get(&child).copied().unwrap_or(0.0);
                let moments = moments(table, &parents, child, count, row.sum);
                CellMean { child, mean: moments.mean, sd: moments.variance.sqrt() }
            };
            let cells = if child_size <= LIST_ALL_CHILDREN_UP_TO {
                (0..child_size).map(of_cell).collect()
            } else {
                row.cells.keys().copied().map(of_cell).collect()
            };
            RowMean { parents, cells }
        };
        TableMeans { table, rows: rows.into_iter().map(of_row).collect() }
    };
    row_counts(problem, layout, counts).into_iter().enumerate().map(of_table).collect()
}
