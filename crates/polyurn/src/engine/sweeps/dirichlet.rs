//! Tables as Dirichlet rows: row sums, expected logarithms, and the ratio of normalising constants.

use super::cells::{CellTable, Pseudo, RowMap};
use super::layout::Layout;
use crate::math::{Double, special};
use crate::prior::PseudoCount;
use crate::simd::{Isa, Job};
use rayon::prelude::*;

/// Cells that a thread takes at a time, about.
const CELLS_AT_ONCE: usize = 1 << 14;

/// Adds the counts of each row of a table up.
pub fn add_rows(table: &CellTable, counts: &[f64], rows: &mut [f64]) {
    let rows = &mut rows[table.rows()];
    rows.fill(0.0);
    let interior = table.shape.interior;
    for (cells, &first) in counts[table.cells()].chunks_exact(interior).zip(&table.row_of_block) {
        let rows = &mut rows[first as usize..];
        match &table.row_map {
            RowMap::One => rows[0] += cells.iter().sum::<f64>(),
            RowMap::Each => rows.iter_mut().zip(cells).for_each(|(row, cell)| *row += cell),
            RowMap::Listed(map) => cells.iter().zip(map).for_each(|(cell, &row)| rows[row as usize] += cell),
        }
    }
}

/// Counts of all cells, and their sums over rows.
#[derive(Debug, Clone, Copy)]
pub struct CellCounts<'c> {
    pub cells: &'c [f64],
    pub rows: &'c [f64],
}

/// Where expected logarithms of all cells go, and their exponentials; and a number for each row to work with.
#[derive(Debug)]
pub struct ExpectedLogs<'l> {
    pub logs: &'l mut [f64],
    pub weights: &'l mut [f64],
    pub row_psi: &'l mut [f64],
}

/// Expected logarithms under Dirichlet rows with these counts, and their exponentials: psi(alpha + s) less that of the row.
/// Pseudo-counts of each table are multiplied by its scale.
pub fn expected_logs(layout: &Layout, scales: &[f64], counts: CellCounts<'_>, isa: Isa, mut out: ExpectedLogs<'_>) {
    for (table, &scale) in layout.tables.iter().zip(scales) {
        expected_logs_of(table, scale, counts, isa, &mut out);
    }
}

/// The same for one table. All lists are those of all tables.
pub fn expected_logs_of(table: &CellTable, scale: f64, counts: CellCounts<'_>, isa: Isa, out: &mut ExpectedLogs<'_>) {
    let (CellCounts { cells: counts, rows }, ExpectedLogs { logs, weights, row_psi }) = (counts, out);
    let range = table.rows();
    Isa::run(
        isa,
        Digamma {
            pseudo: Values::of(&table.row_pseudo, scale, 0..table.n_rows()),
            counts: &rows[range.clone()],
            out: &mut row_psi[range],
        },
    );
    // A row without pseudo-counts and tokens has no cells that can occur: their own logarithms say so.
    let psi = row_psi[table.rows()].iter_mut();
    psi.filter(|psi| **psi == f64::NEG_INFINITY).for_each(|psi| *psi = 0.0);
    let interior = table.shape.interior;
    let at_once = (CELLS_AT_ONCE / interior).max(1) * interior;
    let range = table.cells();
    let row_psi = &row_psi[table.rows()];
    let parts = logs[range.clone()]
        .par_chunks_mut(at_once)
        .zip(weights[range.clone()].par_chunks_mut(at_once))
        .zip(counts[range].par_chunks(at_once))
        .enumerate();
    parts.for_each(|(part, ((logs, weights), counts))| {
        let first = part * at_once;
        Isa::run(
            isa,
            LogsOfCells {
                pseudo: Values::of(&table.pseudo, scale, first..first + counts.len()),
                table,
                first_block: first / interior,
                row_psi,
                counts,
                logs,
                weights,
            },
        );
    });
}

/// The logarithm of the ratio of Dirichlet normalising constants with and without the counts, over all stored rows
/// (the paper's B_n(alpha + E S)/B_n(alpha)), with each table's alpha multiplied by its scale.
pub fn ln_constants(layout: &Layout, scales: &[f64], counts: CellCounts<'_>, isa: Isa) -> Double {
    let mut total = Double::ZERO;
    for (table, &scale) in layout.tables.iter().zip(scales) {
        total = total + ln_rising(&table.pseudo, scale, &counts.cells[table.cells()], isa);
        total = total - ln_rising(&table.row_pseudo, scale, &counts.rows[table.rows()], isa);
    }
    total
}

/// The sum of ln Gamma(alpha + s) - ln Gamma(alpha), alpha being pseudo-counts times a scale.
pub fn ln_rising(pseudo: &Pseudo, scale: f64, counts: &[f64], isa: Isa) -> Double {
    let parts: Vec<f64> = counts
        .par_chunks(CELLS_AT_ONCE)
        .enumerate()
        .map(|(part, counts)| {
            let first = part * CELLS_AT_ONCE;
            let mut sum = 0.0;
            let pseudo = Values::of(pseudo, scale, first..first + counts.len());
            isa.run(LnRising { pseudo, counts, sum: &mut sum });
            sum
        })
        .collect();
    parts.into_iter().fold(Double::ZERO, |total, part| total + Double::from(part))
}

/// Slopes of [`ln_rising`] in the logarithm of the scale.
pub fn slopes(pseudo: &Pseudo, scale: f64, counts: &[f64], isa: Isa) -> Slopes {
    let parts: Vec<Slopes> = counts
        .par_chunks(CELLS_AT_ONCE)
        .enumerate()
        .map(|(part, counts)| {
            let first = part * CELLS_AT_ONCE;
            let mut sums = Slopes::default();
            let pseudo = Values::of(pseudo, scale, first..first + counts.len());
            isa.run(SumOfSlopes { pseudo, counts, sums: &mut sums });
            sums
        })
        .collect();
    parts.into_iter().fold(Slopes::default(), Slopes::plus)
}

/// First and second derivative of ln Gamma(alpha + s) - ln Gamma(alpha) in ln alpha.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slopes {
    pub first: f64,
    pub second: f64,
}

impl Slopes {
    /// For one pseudo-count and one count.
    #[inline(always)]
    pub fn of(pseudo: f64, count: f64) -> Self {
        // Below, the limit: the logarithm of alpha itself is all that moves.
        let x = if pseudo < 1e-100 { 1e-100 } else { pseudo };
        let first = x * (special::digamma(x + count) - special::digamma(x));
        let bend = x * x * (special::trigamma(x + count) - special::trigamma(x));
        if count > 0.0 { Slopes { first, second: first + bend } } else { Slopes::default() }
    }

    /// Of a sum.
    #[inline(always)]
    pub fn plus(self, other: Slopes) -> Self {
        Slopes { first: self.first + other.first, second: self.second + other.second }
    }
}

/// Pseudo-counts of neighbouring cells: the same for all, or a list and what to multiply it by.
#[derive(Clone, Copy)]
enum Values<'v> {
    Even(PseudoCount),
    Listed(&'v [PseudoCount], f64),
}

impl<'v> Values<'v> {
    fn of(pseudo: &'v Pseudo, scale: f64, range: std::ops::Range<usize>) -> Self {
        match pseudo {
            Pseudo::Even(value) => Values::Even(value.times(scale)),
            Pseudo::Listed(all) => Values::Listed(&all[range], scale),
        }
    }
}

struct Digamma<'a> {
    pseudo: Values<'a>,
    counts: &'a [f64],
    out: &'a mut [f64],
}

impl Job for Digamma<'_> {
    #[inline(always)]
    fn run(self) {
        match self.pseudo {
            Values::Even(pseudo) => {
                let pairs = self.out.iter_mut().zip(self.counts);
                pairs.for_each(|(out, count)| *out = special::digamma(pseudo.value + count));
            }
            Values::Listed(list, scale) => {
                let pairs = self.out.iter_mut().zip(self.counts).zip(list);
                pairs.for_each(|((out, count), pseudo)| *out = special::digamma(scale * pseudo.value + count));
            }
        }
    }
}

struct LogsOfCells<'a> {
    pseudo: Values<'a>,
    table: &'a CellTable,
    first_block: usize,
    row_psi: &'a [f64],
    counts: &'a [f64],
    logs: &'a mut [f64],
    weights: &'a mut [f64],
}

impl Job for LogsOfCells<'_> {
    #[inline(always)]
    fn run(self) {
        let LogsOfCells { pseudo, table, first_block, row_psi, counts, logs, weights } = self;
        Digamma { pseudo, counts, out: logs }.run();
        let interior = table.shape.interior;
        let blocks = logs.chunks_exact_mut(interior).zip(&table.row_of_block[first_block..]);
        for (logs, &first) in blocks {
            let rows = &row_psi[first as usize..];
            match &table.row_map {
                RowMap::One => logs.iter_mut().for_each(|log| *log -= rows[0]),
                RowMap::Each => logs.iter_mut().zip(rows).for_each(|(log, row)| *log -= row),
                RowMap::Listed(map) => logs.iter_mut().zip(map).for_each(|(log, &row)| *log -= rows[row as usize]),
            }
        }
        weights.iter_mut().zip(&*logs).for_each(|(weight, log)| *weight = special::exp(*log));
    }
}

struct LnRising<'a> {
    pseudo: Values<'a>,
    counts: &'a [f64],
    sum: &'a mut f64,
}

impl Job for LnRising<'_> {
    #[inline(always)]
    fn run(self) {
        match self.pseudo {
            Values::Even(pseudo) if pseudo.value >= crate::math::TINY => {
                let mut sums = [0.0; 8];
                let chunks = self.counts.chunks_exact(8);
                let rest = chunks.remainder();
                for chunk in chunks {
                    for (sum, &count) in sums.iter_mut().zip(chunk) {
                        *sum += special::ln_rising_real(pseudo.value, count);
                    }
                }
                for (sum, &count) in sums.iter_mut().zip(rest) {
                    *sum += special::ln_rising_real(pseudo.value, count);
                }
                *self.sum = sums.iter().sum();
            }
            Values::Even(pseudo) => {
                let one = |&count: &f64| special::ln_rising_tiny(pseudo.value, pseudo.ln_if_tiny, count);
                *self.sum = self.counts.iter().map(one).sum();
            }
            Values::Listed(list, scale) => {
                let one = |(&count, pseudo): (&f64, &PseudoCount)| {
                    let pseudo = pseudo.times(scale);
                    special::ln_rising_tiny(pseudo.value, pseudo.ln_if_tiny, count)
                };
                *self.sum = self.counts.iter().zip(list).map(one).sum();
            }
        }
    }
}

struct SumOfSlopes<'a> {
    pseudo: Values<'a>,
    counts: &'a [f64],
    sums: &'a mut Slopes,
}

impl Job for SumOfSlopes<'_> {
    #[inline(always)]
    fn run(self) {
        let mut sums = Slopes::default();
        match self.pseudo {
            Values::Even(pseudo) => {
                self.counts.iter().for_each(|&count| sums = sums.plus(Slopes::of(pseudo.value, count)));
            }
            Values::Listed(list, scale) => {
                let pairs = self.counts.iter().zip(list);
                pairs.for_each(|(&count, pseudo)| sums = sums.plus(Slopes::of(scale * pseudo.value, count)));
            }
        }
        *self.sums = sums;
    }
}
