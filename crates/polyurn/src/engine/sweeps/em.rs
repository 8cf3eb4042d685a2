//! Expectation maximisation: one best set of tables.
//!
//! Without a prior, factors take turns: the expected counts are found anew before each factor is set, together with the
//! tables that have only hidden nodes. For matrix and tensor factorisations that is the multiplicative updating of the
//! generalised Kullback-Leibler divergence, step by step.

use super::arrangement::Arrangement;
use super::cells::{CellTable, RowMap};
use super::dirichlet::add_rows;
use super::layout::Layout;
use super::messages::Weights;
use super::numbers::Numbers;
use super::pass::{Tally, Wanted, Work, expect};
use super::restarts::{Climb, Climbed, Climbs};
use super::start::{self, StartTables};
use super::tables::row_counts;
use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::tables::{CellMean, LIST_ALL_CHILDREN_UP_TO, RowMean, TableMeans};
use crate::error::{Error, Result};
use crate::graph::TableIndex;
use crate::prior::{GammaTotal, PseudoCounts};
use crate::simd::{Isa, Job};
use hashbrown::HashMap;

/// Probabilities below this are zero: a product of three of them would no longer be a number at full precision.
const NEVER: f64 = 1e-100;

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

/// Which tables are set after each expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turns {
    /// One factor after another, each with the hidden tables.
    #[default]
    Cycle,
    /// All at once.
    Together,
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Em {
    /// How to climb.
    pub climb: Climb,
    /// What is maximised.
    pub mode: Mode,
    /// Which tables are set after each expectation.
    pub turns: Turns,
    /// Where to start from instead of drawing; then there is one start.
    pub start: Option<StartTables>,
}

/// What it found.
#[derive(Debug)]
pub struct EmFit {
    /// ln p(sequence | tables).
    pub ln_likelihood: f64,
    /// The intensity.
    pub intensity: f64,
    /// The objective of all starts, and after each sweep of the best one: the log likelihood, with a prior the log posterior
    /// density up to a constant of the prior.
    pub climbs: Climbs,
    /// Expected tokens in unknown cells.
    pub n_unknown: Option<f64>,
    mode: Mode,
    layout: Layout,
    weights: Vec<f64>,
    /// What the counts of each row were divided by.
    denominators: Vec<f64>,
}

impl Em {
    /// Climbs from all starts.
    ///
    /// # Errors
    /// When cancelled, when the time is up before the first sweep, when the start does not fit the model, when a pseudo-count
    /// is below one and the density's mode was asked for, or when the tables have too many cells.
    pub fn fit(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<EmFit> {
        let layout = Layout::new(problem)?;
        if self.mode == Mode::Density {
            check_density(problem)?;
        }
        let total = match (self.mode, problem.counts.unknown.is_empty()) {
            (Mode::Likelihood, _) => None,
            (_, is_known) => Some(problem.prior.total(is_known.then_some(problem.counts.n_tokens))?),
        };
        let turns = self.turns(&layout);
        let given =
            self.start.as_ref().map(|start| start::given(&layout, problem.model, &start.normalised())).transpose()?;
        let arranged: Vec<Vec<Arrangement>> = turns.iter().map(|turn| turn.arrangements(&layout)).collect();
        let fingerprint = self.climb.fingerprint("em", &layout, &arranged[0], seed);
        let certain = certain_likelihood(problem, &layout, self.mode);
        let climb = Climb { restarts: if given.is_some() { 1 } else { self.climb.restarts }, ..self.climb.clone() };
        let new_ascent = |restart: u64| {
            let weights = given.clone().unwrap_or_else(|| {
                let mut weights = start::random(&layout, seed, restart);
                start::normalise(&layout, &mut weights);
                weights
            });
            let n_seen = problem.counts.n_tokens as f64;
            Ascent::new(&layout, &turns, &arranged, self.mode, total, n_seen, weights, self.climb.isa)
        };
        let (climbs, state) = climb.climb_from_all("em", fingerprint, control, |restart, tick| {
            let mut ascent = new_ascent(restart);
            // A sweep tells the objective before it: the trace is one behind, and one more look brings it up to date.
            let (mut trace, converged) = climb.climb(|| ascent.sweep(), tick)?;
            trace.push(ascent.objective());
            trace.remove(0);
            trace.iter_mut().for_each(|objective| *objective += certain);
            let mut state = ascent.weights.to_vec();
            state.extend_from_slice(&ascent.denominators);
            state.extend([ascent.ln_likelihood, ascent.intensity, ascent.n_unknown]);
            Ok(Climbed { trace, converged, state })
        })?;
        let (mut weights, mut denominators) = (state, Vec::new());
        denominators.extend(weights.drain(layout.n_cells..));
        let rest: Vec<f64> = denominators.drain(layout.n_rows..).collect();
        let [ln_likelihood, intensity, n_unknown] = rest[..] else { unreachable!("three numbers stand last") };
        Ok(EmFit {
            ln_likelihood: ln_likelihood + certain,
            intensity,
            climbs,
            n_unknown: (!problem.counts.unknown.is_empty()).then_some(n_unknown),
            mode: self.mode,
            layout,
            weights,
            denominators,
        })
    }

    /// Which tables are set together, and by which of them records are sorted.
    fn turns(&self, layout: &Layout) -> Vec<Turn> {
        let n_tables = layout.tables.len();
        let is_hidden = |table: &CellTable| !table.shape.is_key.contains(&true) && table.keys.list.len() == 1;
        let factors: Vec<usize> = (0..n_tables).filter(|&ix| !is_hidden(&layout.tables[ix])).collect();
        if self.turns == Turns::Together || factors.is_empty() {
            return vec![Turn { tables: vec![true; n_tables], lead: None }];
        }
        let turn = |&factor: &usize| {
            let tables = (0..n_tables).map(|ix| ix == factor || is_hidden(&layout.tables[ix])).collect();
            Turn { tables, lead: Some(factor) }
        };
        factors.iter().map(turn).collect()
    }
}

impl EmFit {
    /// The tables, for the problem that was fitted; spreads are zero.
    pub fn tables(&self, problem: &Problem<'_>) -> Vec<TableMeans> {
        let EmFit { layout, weights, denominators, .. } = self;
        let mut of_cells = vec![0.0; layout.n_cells];
        for table in &layout.tables {
            spread_rows(table, &denominators[table.rows()], &mut of_cells[table.cells()]);
        }
        let denominators = row_counts(problem, layout, &of_cells);
        let of_table = |(ix, rows): (usize, std::collections::BTreeMap<Vec<u32>, super::tables::RowCounts>)| {
            let table = TableIndex(ix as u32);
            let pseudo = problem.prior.table(table);
            let is_stored = layout.tables.iter().any(|stored| stored.table == table);
            let child_size = problem.model.tables()[ix].child_size;
            let of_row = |(parents, row): (Vec<u32>, super::tables::RowCounts)| {
                let denominator = denominators[ix][&parents].cells.values().copied().fold(0.0, f64::max);
                let of_cell = |child: u32| {
                    let mean = match row.cells.get(&child) {
                        Some(&weight) if is_stored => weight,
                        count => {
                            let count = count.copied().unwrap_or(0.0);
                            let added = self.mode.added(pseudo.cell(&parents, child).value);
                            let whole = if is_stored {
                                denominator
                            } else {
                                row.sum + self.mode.row_added(pseudo.row(&parents).value, child_size)
                            };
                            if whole > 0.0 { (count + added) / whole } else { 0.0 }
                        }
                    };
                    CellMean { child, mean, sd: 0.0 }
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
        row_counts(problem, layout, weights).into_iter().enumerate().map(of_table).collect()
    }
}

impl Mode {
    /// What is added to the count of a cell.
    fn added(self, pseudo: f64) -> f64 {
        match self {
            Mode::Likelihood => 0.0,
            Mode::Softmax => pseudo,
            Mode::Density => pseudo - 1.0,
        }
    }

    /// What is added to the count of a row.
    fn row_added(self, pseudo: f64, child_size: u32) -> f64 {
        match self {
            Mode::Likelihood => 0.0,
            Mode::Softmax => pseudo,
            Mode::Density => pseudo - f64::from(child_size),
        }
    }
}

/// The density has a mode where every pseudo-count is at least one.
fn check_density(problem: &Problem<'_>) -> Result<()> {
    for ix in 0..problem.model.tables().len() as u32 {
        let table = TableIndex(ix);
        let is_enough = match problem.prior.table(table) {
            PseudoCounts::Even { cell, .. } => cell.value >= 1.0,
            PseudoCounts::Dense { cells, .. } => cells.iter().all(|&cell| cell >= 1.0),
            PseudoCounts::Product { terms } => {
                let smallest = |term: &crate::prior::ProductTerm| {
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
pub(super) fn certain_likelihood(problem: &Problem<'_>, layout: &Layout, mode: Mode) -> f64 {
    let mut rows: HashMap<(TableIndex, &[u32]), u64> = HashMap::new();
    for (table, values, count) in &layout.certain {
        *rows.entry((*table, &values[..values.len() - 1])).or_insert(0) += count;
    }
    let term = |(table, values, count): &(TableIndex, Box<[u32]>, u64)| {
        let (child, parents) = values.split_last().expect("a family has a child");
        let pseudo = problem.prior.table(*table);
        let child_size = problem.model.tables()[table.ix()].child_size;
        let cell = *count as f64 + mode.added(pseudo.cell(parents, *child).value);
        let row = rows[&(*table, parents)] as f64 + mode.row_added(pseudo.row(parents).value, child_size);
        *count as f64 * (cell / row).ln()
    };
    layout.certain.iter().map(term).sum()
}

/// One expectation and what is set after it.
#[derive(Debug)]
struct Turn {
    tables: Vec<bool>,
    /// The table that records are sorted by.
    lead: Option<usize>,
}

impl Turn {
    fn arrangements(&self, layout: &Layout) -> Vec<Arrangement> {
        (0..layout.groups.len()).map(|group| Arrangement::new(layout, group, &self.tables, self.lead)).collect()
    }
}

/// A climb under way.
#[derive(Debug)]
struct Ascent<'l> {
    layout: &'l Layout,
    turns: &'l [Turn],
    arranged: &'l [Vec<Arrangement>],
    mode: Mode,
    total: Option<GammaTotal>,
    n_seen: f64,
    isa: Isa,
    /// Probabilities of all cells.
    weights: Numbers,
    /// What the counts of each row were divided by.
    denominators: Vec<f64>,
    counts: Numbers,
    intensity: f64,
    n_unknown: f64,
    ln_likelihood: f64,
    work: Work,
}

impl<'l> Ascent<'l> {
    #[expect(clippy::too_many_arguments, reason = "the parts of one climb, made in one place")]
    fn new(
        layout: &'l Layout,
        turns: &'l [Turn],
        arranged: &'l [Vec<Arrangement>],
        mode: Mode,
        total: Option<GammaTotal>,
        n_seen: f64,
        weights: Numbers,
        isa: Isa,
    ) -> Self {
        let mut ascent = Ascent {
            layout,
            turns,
            arranged,
            mode,
            total,
            n_seen,
            isa,
            denominators: vec![1.0; layout.n_rows],
            counts: Numbers::zeros(layout.n_cells),
            intensity: 0.0,
            n_unknown: 0.0,
            ln_likelihood: f64::NEG_INFINITY,
            work: Work::default(),
            weights,
        };
        ascent.set_intensity();
        ascent
    }

    /// All turns once; the objective before them.
    fn sweep(&mut self) -> f64 {
        let mut before = 0.0;
        for turn in 0..self.turns.len() {
            let is_first = turn == 0;
            let tally = self.expect(turn, is_first);
            if is_first {
                before = self.objective_of(tally);
            }
            if let Some(fixed) = &self.layout.fixed {
                self.counts.iter_mut().zip(fixed).for_each(|(count, fixed)| *count += fixed);
            }
            let turns = self.turns;
            self.set_tables(&turns[turn].tables);
            self.n_unknown = tally.unknown;
            self.set_intensity();
        }
        before
    }

    /// The objective now.
    fn objective(&mut self) -> f64 {
        let tally = self.expect(0, true);
        self.objective_of(tally)
    }

    fn expect(&mut self, turn: usize, wants_logs: bool) -> Tally {
        for (table, _) in self.layout.tables.iter().zip(&self.turns[turn].tables).filter(|(_, wanted)| **wanted) {
            self.counts[table.cells()].fill(0.0);
        }
        let weights = Weights { values: &self.weights, logs: None };
        let wanted = Wanted { logs: wants_logs, intensity: self.intensity };
        expect(self.layout, &self.arranged[turn], weights, wanted, self.isa, &mut self.work, &mut self.counts)
    }

    fn set_intensity(&mut self) {
        let n = self.n_seen + self.n_unknown;
        self.intensity = match (self.total, self.mode) {
            (None, _) => n,
            (Some(total), Mode::Density) => (total.shape + n - 1.0).max(0.0) / (total.rate + 1.0),
            (Some(total), _) => (total.shape + n) / (total.rate + 1.0),
        };
    }

    /// Probabilities from counts.
    fn set_tables(&mut self, tables: &[bool]) {
        for (table, _) in self.layout.tables.iter().zip(tables).filter(|(_, wanted)| **wanted) {
            add_rows(table, &self.counts, &mut self.denominators);
            let counts = &mut self.counts[table.cells()];
            if self.mode != Mode::Likelihood {
                let child_size = *table.shape.sizes.last().expect("a family has a child");
                for (ix, row) in self.denominators[table.rows()].iter_mut().enumerate() {
                    *row += self.mode.row_added(table.row_pseudo.at(ix).value, child_size);
                }
                for (ix, count) in counts.iter_mut().enumerate() {
                    *count += self.mode.added(table.pseudo.at(ix).value);
                }
            }
            let (rows, weights) = (&self.denominators[table.rows()], &mut self.weights[table.cells()]);
            self.isa.run(Divide { table, rows, counts, weights });
        }
    }

    /// The log likelihood, and with a prior what its density adds, up to a constant of the prior.
    fn objective_of(&mut self, tally: Tally) -> f64 {
        let mut objective = tally.ln_weight;
        if let Some(fixed) = &self.layout.fixed {
            let logs = fixed.iter().zip(self.weights.iter()).filter(|(fixed, _)| **fixed > 0.0);
            objective += logs.map(|(fixed, weight)| fixed * weight.ln()).sum::<f64>();
        }
        self.ln_likelihood = objective;
        if self.mode != Mode::Likelihood {
            objective += self.ln_prior();
        }
        if tally.unknown > 0.0 {
            objective += self.n_seen * self.intensity.ln() - self.intensity + tally.unknown;
            if let Some(total) = self.total {
                let shape = total.shape - if self.mode == Mode::Density { 1.0 } else { 0.0 };
                objective += shape * self.intensity.ln() - total.rate * self.intensity;
            }
        }
        objective
    }

    fn ln_prior(&self) -> f64 {
        let mut ln = 0.0;
        for table in &self.layout.tables {
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
}

/// Counts over those of their rows.
struct Divide<'a> {
    table: &'a CellTable,
    rows: &'a [f64],
    counts: &'a [f64],
    weights: &'a mut [f64],
}

impl Job for Divide<'_> {
    #[inline(always)]
    fn run(self) {
        let Divide { table, rows, counts, weights } = self;
        let n = table.shape.interior;
        let blocks = weights.chunks_exact_mut(n).zip(counts.chunks_exact(n)).zip(&table.row_of_block);
        let share = |count: f64, row: f64| {
            let share = count / row;
            // Also where a row has no counts, and so no probabilities: no token is in it.
            if share > NEVER { share } else { 0.0 }
        };
        for ((weights, counts), &first) in blocks {
            let rows = &rows[first as usize..];
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
