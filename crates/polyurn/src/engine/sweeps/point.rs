//! Tables as single numbers: what a mode makes of counts.

use super::cells::{CellTable, RowMap};
use super::dirichlet::add_rows;
use super::layout::Layout;
use super::numbers::Numbers;
use super::tables::row_counts;
use crate::engine::Problem;
use crate::engine::tables::{Moments, TableMeans};
use crate::error::{Error, Result};
use crate::graph::TableIndex;
use crate::prior::{ProductTerm, PseudoCounts};
use crate::simd::{Isa, Job};

/// Probabilities below this are zero: a product of three of them would no longer be a number at full precision.
const NEVER: f64 = 1e-100;

/// Rows with no more tokens than this have no probabilities: no token is in them.
const EMPTY: f64 = 1e-300;

/// What is maximised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The likelihood.
    #[default]
    Likelihood,
    /// The posterior density of the tables' logits: pseudo-counts are added to the counts.
    Softmax,
    /// The posterior density of the tables themselves: pseudo-counts less one are added. Needs pseudo-counts of at least
    /// one.
    Density,
}

impl Mode {
    /// What is added to the count of a cell.
    pub fn added(self, pseudo: f64) -> f64 {
        match self {
            Mode::Likelihood => 0.0,
            Mode::Softmax => pseudo,
            Mode::Density => pseudo - 1.0,
        }
    }

    /// What is added to the count of a row.
    pub fn row_added(self, pseudo: f64, child_size: u32) -> f64 {
        match self {
            Mode::Likelihood => 0.0,
            Mode::Softmax => pseudo,
            Mode::Density => pseudo - f64::from(child_size),
        }
    }
}

/// The density has a mode where every pseudo-count is at least one.
///
/// # Errors
/// When one is below.
pub fn check_density(problem: &Problem<'_>) -> Result<()> {
    for ix in 0..problem.model.tables().len() as u32 {
        let table = TableIndex(ix);
        let is_enough = match problem.prior.table(table) {
            PseudoCounts::Even { cell, .. } => cell.value >= 1.0,
            PseudoCounts::Dense { cells, .. } => cells.iter().all(|&cell| cell >= 1.0),
            PseudoCounts::Product { terms } => {
                let smallest = |term: &ProductTerm| {
                    let least = |weights: &[f64]| weights.iter().copied().fold(f64::INFINITY, f64::min);
                    term.size * term.parents.iter().chain([&term.child]).map(|weights| least(weights)).product::<f64>()
                };
                terms.iter().map(smallest).sum::<f64>() >= 1.0
            }
        };
        if !is_enough {
            return Err(Error::Setting(format!(
                "the table of `{}` has a pseudo-count below 1, so its density has no mode inside; raise --a or use --mode softmax",
                problem.model.table_name(table)
            )));
        }
    }
    Ok(())
}

/// ln likelihood of the tables of which every use is seen, at their own best.
pub fn certain_likelihood(problem: &Problem<'_>, layout: &Layout, mode: Mode) -> f64 {
    let rows = layout.certain_rows();
    let term = |(table, values, count): &(TableIndex, Box<[u32]>, u64)| {
        let count = layout.unit.tokens(*count);
        let (child, parents) = values.split_last().expect("a family has a child");
        let pseudo = problem.prior.table(*table);
        let child_size = problem.model.tables()[table.ix()].child_size;
        let cell = count + mode.added(pseudo.cell(parents, *child).value);
        let row = layout.unit.tokens(rows[&(*table, parents)]) + mode.row_added(pseudo.row(parents).value, child_size);
        count * (cell / row).ln()
    };
    layout.certain.iter().map(term).sum()
}

/// What the density of these tables adds at their own best, up to a constant of the prior.
pub fn certain_density(problem: &Problem<'_>, layout: &Layout, mode: Mode) -> f64 {
    if mode == Mode::Likelihood {
        return 0.0;
    }
    let cell = |(table, values, count): &(TableIndex, Box<[u32]>, u64)| {
        let count = layout.unit.tokens(*count);
        let (child, parents) = values.split_last().expect("a family has a child");
        let added = mode.added(problem.prior.table(*table).cell(parents, *child).value);
        if added > 0.0 { added * ((count + added) / added).ln() } else { 0.0 }
    };
    let row = |((table, parents), count): ((TableIndex, &[u32]), u64)| {
        let count = layout.unit.tokens(count);
        let child_size = problem.model.tables()[table.ix()].child_size;
        let added = mode.row_added(problem.prior.table(table).row(parents).value, child_size);
        if added > 0.0 { added * ((count + added) / added).ln() } else { 0.0 }
    };
    layout.certain.iter().map(cell).sum::<f64>() - layout.certain_rows().into_iter().map(row).sum::<f64>()
}

/// All tables.
#[derive(Debug)]
pub struct Point {
    mode: Mode,
    /// Probabilities of all cells.
    pub weights: Numbers,
    /// What the counts of each row were divided by.
    denominators: Vec<f64>,
    /// One over these, for the table in work.
    reciprocals: Vec<f64>,
}

impl Point {
    /// Tables to start from.
    pub fn new(layout: &Layout, mode: Mode, weights: Numbers) -> Self {
        Point { mode, weights, denominators: vec![1.0; layout.n_rows], reciprocals: Vec::new() }
    }

    /// As numbers in a row.
    pub fn to_list(&self) -> Vec<f64> {
        [&self.weights[..], &self.denominators].concat()
    }

    /// What it is the mode of.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// From numbers in a row.
    pub fn from_list(layout: &Layout, mode: Mode, list: &[f64]) -> Self {
        let mut weights = Numbers::zeros(layout.n_cells);
        weights.copy_from_slice(&list[..layout.n_cells]);
        let denominators = list[layout.n_cells..][..layout.n_rows].to_vec();
        Point { mode, weights, denominators, reciprocals: Vec::new() }
    }

    /// Sets the wanted tables from counts, to which it adds what the mode says.
    pub fn set(&mut self, layout: &Layout, wanted: &[bool], counts: &mut Numbers, isa: Isa) {
        for (table, _) in layout.tables.iter().zip(wanted).filter(|(_, wanted)| **wanted) {
            add_rows(table, counts, &mut self.denominators);
            let counts = &mut counts[table.cells()];
            if self.mode != Mode::Likelihood {
                let child_size = *table.shape.sizes.last().expect("a family has a child");
                for (ix, row) in self.denominators[table.rows()].iter_mut().enumerate() {
                    *row += self.mode.row_added(table.row_pseudo.at(ix).value, child_size);
                }
                for (ix, count) in counts.iter_mut().enumerate() {
                    *count += self.mode.added(table.pseudo.at(ix).value);
                }
            }
            let one_over = |&row: &f64| if row > EMPTY { 1.0 / row } else { 0.0 };
            self.reciprocals.clear();
            self.reciprocals.extend(self.denominators[table.rows()].iter().map(one_over));
            let (reciprocals, weights) = (&self.reciprocals[..], &mut self.weights[table.cells()]);
            isa.run(Divide { table, reciprocals, counts, weights });
        }
    }

    /// What the prior adds to a log likelihood, up to a constant of its own.
    pub fn ln_prior(&self, layout: &Layout) -> f64 {
        let mut ln = 0.0;
        for table in &layout.tables {
            let child_size = *table.shape.sizes.last().expect("a family has a child");
            let mut listed = vec![0.0; table.n_rows()];
            for (block, &first) in table.row_of_block.iter().enumerate() {
                for in_block in 0..table.shape.interior {
                    let ix = block * table.shape.interior + in_block;
                    let added = self.mode.added(table.pseudo.at(ix).value);
                    if added > 0.0 {
                        ln += added * self.weights[table.first_cell + ix].ln();
                    }
                    listed[first as usize + table.row_in_block(in_block)] += added;
                }
            }
            // Cells that are not stored: their pseudo-count over what the row was divided by.
            for (ix, (row, listed)) in table.rows().zip(listed).enumerate() {
                let rest = self.mode.row_added(table.row_pseudo.at(ix).value, child_size) - listed;
                if rest > 1e-12 * listed {
                    ln -= rest * self.denominators[row].ln();
                }
            }
        }
        ln
    }

    /// The tables as people want them; spreads are zero.
    pub fn means(&self, problem: &Problem<'_>, layout: &Layout) -> Vec<TableMeans> {
        let Point { weights, denominators, .. } = self;
        let mut of_cells = vec![0.0; layout.n_cells];
        for table in &layout.tables {
            spread_rows(table, &denominators[table.rows()], &mut of_cells[table.cells()]);
        }
        let denominators = row_counts(problem, layout, &of_cells);
        row_counts(problem, layout, weights).list(problem.model, |table, parents, child, cell, row| {
            let pseudo = problem.prior.table(table);
            let is_stored = layout.tables.iter().any(|stored| stored.table == table);
            let mean = match cell {
                Some(weight) if is_stored => weight,
                count => {
                    let added = self.mode.added(pseudo.cell(parents, child).value);
                    let whole = if is_stored {
                        denominators.row(table, parents).largest
                    } else {
                        let child_size = problem.model.tables()[table.ix()].child_size;
                        row + self.mode.row_added(pseudo.row(parents).value, child_size)
                    };
                    if whole > 0.0 { (count.unwrap_or(0.0) + added) / whole } else { 0.0 }
                }
            };
            Moments { mean, variance: 0.0 }
        })
    }
}

/// Counts over those of their rows.
struct Divide<'a> {
    table: &'a CellTable,
    /// One over the counts of the rows.
    reciprocals: &'a [f64],
    counts: &'a [f64],
    weights: &'a mut [f64],
}

impl Job for Divide<'_> {
    #[inline(always)]
    fn run(self) {
        let Divide { table, reciprocals, counts, weights } = self;
        let n = table.shape.interior;
        let blocks = weights.chunks_exact_mut(n).zip(counts.chunks_exact(n)).zip(&table.row_of_block);
        let share = |count: f64, reciprocal: f64| {
            let share = count * reciprocal;
            if share > NEVER { share } else { 0.0 }
        };
        for ((weights, counts), &first) in blocks {
            let rows = &reciprocals[first as usize..];
            match &table.row_map {
                RowMap::One => weights.iter_mut().zip(counts).for_each(|(w, &count)| *w = share(count, rows[0])),
                RowMap::Each => {
                    let cells = weights.iter_mut().zip(counts).zip(rows);
                    cells.for_each(|((weight, &count), &row)| *weight = share(count, row));
                }
                RowMap::Listed(map) => {
                    let cells = weights.iter_mut().zip(counts).zip(map);
                    cells.for_each(|((weight, &count), &row)| *weight = share(count, rows[row as usize]));
                }
            }
        }
    }
}

/// Writes each row's value to all its cells.
fn spread_rows(table: &CellTable, rows: &[f64], cells: &mut [f64]) {
    for (cells, &first) in cells.chunks_exact_mut(table.shape.interior).zip(&table.row_of_block) {
        let rows = &rows[first as usize..];
        match &table.row_map {
            RowMap::One => cells.fill(rows[0]),
            RowMap::Each => cells.iter_mut().zip(rows).for_each(|(cell, row)| *cell = *row),
            RowMap::Listed(map) => cells.iter_mut().zip(map).for_each(|(cell, &row)| *cell = rows[row as usize]),
        }
    }
}
