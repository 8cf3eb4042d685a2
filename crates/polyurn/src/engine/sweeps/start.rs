//! Where sweeps start from.

use super::cells::Pseudo;
use super::dirichlet::add_rows;
use super::layout::Layout;
use super::numbers::Numbers;
use crate::error::{Error, Result};
use crate::graph::{Model, TableIndex};
use crate::math::draw;
use crate::prior::row_number;
use crate::{Purpose, Seed};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Tables given by the user: for each node one row for each parent configuration (parents in node order, last fastest), one
/// entry for each child value. A tied table stands once, under one member's name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartTables {
    /// Node name to rows.
    pub tables: BTreeMap<String, Vec<Vec<f64>>>,
}

impl StartTables {
    /// The table of a node or of one it shares its table with, and by which name it was given.
    fn find(&self, model: &Model, table: TableIndex) -> Result<(&str, &[Vec<f64>])> {
        let spec = &model.tables()[table.ix()];
        let mut found = spec.members.iter().filter_map(|&member| self.tables.get_key_value(&model.node(member).name));
        let Some((name, rows)) = found.next() else {
            return Err(Error::Setting(format!("the start has no table for `{}`", model.table_name(table))));
        };
        if let Some((other, _)) = found.next() {
            return Err(Error::Setting(format!(
                "`{name}` and `{other}` share one table; give the start's table once, under one name"
            )));
        }
        Ok((name, rows))
    }
}

/// Divides the weights by the sums of their rows; what is not stored is taken to be zero.
pub fn normalise(layout: &Layout, weights: &mut [f64]) {
    let mut rows = vec![0.0; layout.n_rows];
    for table in &layout.tables {
        add_rows(table, weights, &mut rows);
        let rows = &rows[table.rows()];
        let blocks = weights[table.cells()].chunks_exact_mut(table.shape.interior);
        for (cells, &first) in blocks.zip(&table.row_of_block) {
            let row = |in_block: usize| rows[first as usize + table.row_in_block(in_block)];
            // Rows without weight stay so.
            let with_weight = cells.iter_mut().enumerate().filter(|(in_block, _)| row(*in_block) > 0.0);
            with_weight.for_each(|(in_block, cell)| *cell /= row(in_block));
        }
    }
}

/// How far random weights are from one another: powers of exponential variables. Hidden values that hardly differ find what
/// separates them by themselves and end higher than those that start with features of their own (docs/sweeps.md).
#[derive(Debug, Clone, Copy)]
pub enum Spread {
    /// A few percent.
    Slight,
    /// A quarter or so: what serves EM best, which leaves a nearly even start only slowly.
    Moderate,
}

impl Spread {
    fn power(self) -> f64 {
        match self {
            Spread::Slight => 0.02,
            Spread::Moderate => 0.2,
        }
    }
}

/// Weights of all cells, drawn independently; those without pseudo-counts have none where there is a prior.
pub fn random(layout: &Layout, spread: Spread, has_prior: bool, seed: Seed, restart: u64) -> Numbers {
    let mut rng = seed.stream(Purpose::Start, restart, 0, 0);
    let mut weights = Numbers::zeros(layout.n_cells);
    weights.fill_with(|| (-draw::open_unit(&mut rng).ln()).powf(spread.power()));
    if has_prior {
        forbid(layout, &mut weights);
    }
    weights
}

/// A value without a pseudo-count never occurs.
fn forbid(layout: &Layout, weights: &mut [f64]) {
    for table in &layout.tables {
        match &table.pseudo {
            Pseudo::Even(pseudo) if !pseudo.is_zero() => {}
            pseudo => {
                let cells = weights[table.cells()].iter_mut().enumerate();
                cells.filter(|(ix, _)| pseudo.at(*ix).is_zero()).for_each(|(_, weight)| *weight = 0.0);
            }
        }
    }
}

/// Weights of all cells as given, every row divided by its sum if that is wanted. Tables of which every use is seen need not be
/// there. Where there is a prior, values without a pseudo-count never occur.
///
/// # Errors
/// When a table is missing, has another shape, or an entry that is no nonnegative number; when a name is unknown.
pub fn given(
    layout: &Layout,
    model: &Model,
    start: &StartTables,
    is_normalised: bool,
    has_prior: bool,
) -> Result<Numbers> {
    if let Some(name) = start.tables.keys().find(|name| model.find(name).is_none()) {
        return Err(Error::Setting(format!("the start has a table for `{name}`, but the model has no such node")));
    }
    let mut weights = Numbers::zeros(layout.n_cells);
    for table in &layout.tables {
        let spec = &model.tables()[table.table.ix()];
        let (name, rows) = start.find(model, table.table)?;
        let is_shape =
            rows.len() as f64 == spec.n_rows() && rows.iter().all(|row| row.len() == spec.child_size as usize);
        if !is_shape {
            return Err(Error::Setting(format!(
                "the start's table for `{name}` must have {} rows of {} values",
                spec.n_rows(),
                spec.child_size
            )));
        }
        if let Some(odd) = rows.iter().flatten().find(|value| !(**value >= 0.0 && value.is_finite())) {
            return Err(Error::Setting(format!(
                "the start's table for `{name}` has the entry {odd}; entries must be numbers from 0 on"
            )));
        }
        let sum = |row: &Vec<f64>| if is_normalised { row.iter().sum::<f64>().min(f64::MAX) } else { 1.0 };
        let sums: Vec<f64> = rows.iter().map(sum).collect();
        for cell in 0..table.n_cells() {
            let values = table.values(cell);
            let (child, parents) = values.split_last().expect("a family has a child");
            let row = row_number(parents, &spec.parent_sizes);
            let weight = rows[row][*child as usize];
            weights[table.first_cell + cell] = if sums[row] > 0.0 { weight / sums[row] } else { 0.0 };
        }
    }
    if has_prior {
        forbid(layout, &mut weights);
    }
    Ok(weights)
}
