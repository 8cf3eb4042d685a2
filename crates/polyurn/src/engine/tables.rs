//! Posterior means of tables, as every engine gives them.

use crate::graph::{Model, TableIndex};
use crate::prior::Prior;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

impl TableMeans {
    /// The same table with the values of nodes in another order: for each node the new place of each value, or none to
    /// leave them.
    pub fn reordered(mut self, model: &Model, places: &[Option<&[u32]>]) -> Self {
        let member = model.tables()[self.table.ix()].members[0];
        let place = |node: usize, value: u32| places[node].map_or(value, |places| places[value as usize]);
        for row in &mut self.rows {
            for (value, parent) in row.parents.iter_mut().zip(&model.node(member).parents) {
                *value = place(parent.ix(), *value);
            }
            row.cells.iter_mut().for_each(|cell| cell.child = place(member.ix(), cell.child));
            row.cells.sort_by_key(|cell| cell.child);
        }
        self.rows.sort_by(|x, y| x.parents.cmp(&y.parents));
        self
    }
}

/// Counts of one row.
#[derive(Debug, Default)]
pub(crate) struct RowCounts {
    /// Of all cells.
    pub sum: f64,
    /// Of the largest one.
    pub largest: f64,
    /// Of each cell that a token may be in.
    pub cells: BTreeMap<u32, f64>,
}

/// Counts of the rows that a token may be in, by table and parents.
#[derive(Debug)]
pub(crate) struct CountsOfRows(pub Vec<BTreeMap<Vec<u32>, RowCounts>>);

impl RowCounts {
    /// Adds tokens to a cell.
    pub fn add(&mut self, child: u32, count: f64) {
        self.sum += count;
        let cell = self.cells.entry(child).or_insert(0.0);
        *cell += count;
        self.largest = self.largest.max(*cell);
    }
}

impl CountsOfRows {
    /// No rows yet.
    pub fn new(n_tables: usize) -> Self {
        CountsOfRows((0..n_tables).map(|_| BTreeMap::new()).collect())
    }

    /// Adds tokens to a cell; `family` are the values of the parents, then of the child.
    pub fn add(&mut self, table: TableIndex, family: &[u32], count: f64) {
        let (child, parents) = family.split_last().expect("a family has a child");
        self.0[table.ix()].entry(parents.to_vec()).or_default().add(*child, count);
    }

    /// A row that was added to.
    pub fn row(&self, table: TableIndex, parents: &[u32]) -> &RowCounts {
        &self.0[table.ix()][parents]
    }

    /// Means and spreads of Dirichlet rows: pseudo-counts plus counts.
    pub fn dirichlet_means(self, model: &Model, prior: &Prior) -> Vec<TableMeans> {
        self.list(model, |table, parents, child, count, row| {
            let pseudo = prior.table(table);
            let cell = pseudo.cell(parents, child).value + count.unwrap_or(0.0);
            Moments::of_cell(cell, pseudo.row(parents).value + row)
        })
    }

    /// Lists all rows; `moments` are those of a cell, from its table, parents and child, its count if a token may be in it,
    /// and that of the row.
    pub fn list(
        self,
        model: &Model,
        moments: impl Fn(TableIndex, &[u32], u32, Option<f64>, f64) -> Moments,
    ) -> Vec<TableMeans> {
        let of_table = |(ix, rows): (usize, BTreeMap<Vec<u32>, RowCounts>)| {
            let table = TableIndex(ix as u32);
            let child_size = model.tables()[ix].child_size;
            let of_row = |(parents, row): (Vec<u32>, RowCounts)| {
                let of_cell = |child: u32| {
                    let moments = moments(table, &parents, child, row.cells.get(&child).copied(), row.sum);
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
        self.0.into_iter().enumerate().map(of_table).collect()
    }
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
