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

/// Expected logarithms under Dirichlet rows with these counts, and their exponentials: psi(alpha + s) less that of the row.
pub fn expected_logs(
    layout: &Layout,
    counts: &[f64],
    rows: &[f64],
    isa: Isa,
    row_psi: &mut Vec<f64>,
    logs: &mut [f64],
    weights: &mut [f64],
) {
    row_psi.resize(rows.len(), 0.0);
    for table in &layout.tables {
        expected_logs_of(table, counts, rows, isa, row_psi, logs, weights);
    }
}

/// The same for one table. All lists are those of all tables.
pub fn expected_logs_of(
    table: &CellTable,
    counts: &[f64],
    rows: &[f64],
    isa: Isa,
    row_psi: &mut [f64],
    logs: &mut [f64],
    weights: &mut [f64],
) {
    let range = table.rows();
    Isa::run(
        isa,
        Digamma {
            pseudo: Values::of(&table.row_pseudo, 0..table.n_rows()),
            counts: &rows[range.clone()],
            out: &mut row_psi[range],
        },
    );
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
            ExpectedLogs {
                pseudo: Values::of(&table.pseudo, first..first + counts.len()),
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
/// (the paper's B_n(alpha + E S)/B_n(alpha)).
pub fn ln_constants(layout: &Layout, counts: &[f64], rows: &[f64], isa: Isa) -> Double {
    let mut total = Double::ZERO;
    for table in &layout.tables {
        total = total + ln_rising(&table.pseudo, &counts[table.cells()], isa);
        total = total - ln_rising(&table.row_pseudo, &rows[table.rows()], isa);
    }
    total
}

/// The sum of ln Gamma(alpha + s) - ln Gamma(alpha).
fn ln_rising(pseudo: &Pseudo, counts: &[f64], isa: Isa) -> Double {
    let parts: Vec<f64> = counts
        .par_chunks(CELLS_AT_ONCE)
        .enumerate()
        .map(|(part, counts)| {
            let first = part * CELLS_AT_ONCE;
            let mut sum = 0.0;
            let pseudo = Values::of(pseudo, first..first + counts.len());
            isa.run(LnRising { pseudo, counts, sum: &mut sum });
            sum
        })
        .collect();
    parts.into_iter().fold(Double::ZERO, |total, part| total + Double::from(part))
}

/// Pseudo-counts of neighbouring cells.
#[derive(Clone, Copy)]
enum Values<'v> {
    Even(PseudoCount),
    Listed(&'v [PseudoCount]),
}

impl<'v> Values<'v> {
    fn of(pseudo: &'v Pseudo, range: std::ops::Range<usize>) -> Self {
        match pseudo {
            Pseudo::Even(value) => Values::Even(*value),
            Pseudo::Listed(all) => Values::Listed(&all[range]),
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
            Values::Listed(list) => {
                let pairs = self.out.iter_mut().zip(self.counts).zip(list);
                pairs.for_each(|((out, count), pseudo)| *out = special::digamma(pseudo.value + count));
            }
        }
    }
}

struct ExpectedLogs<'a> {
    pseudo: Values<'a>,
    table: &'a CellTable,
    first_block: usize,
    row_psi: &'a [f64],
    counts: &'a [f64],
    logs: &'a mut [f64],
    weights: &'a mut [f64],
}

impl Job for ExpectedLogs<'_> {
    #[inline(always)]
    fn run(self) {
        let ExpectedLogs { pseudo, table, first_block, row_psi, counts, logs, weights } = self;
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
            Values::Listed(list) => {
                let one = |(&count, pseudo): (&f64, &PseudoCount)| {
                    special::ln_rising_tiny(pseudo.value, pseudo.ln_if_tiny, count)
                };
                *self.sum = self.counts.iter().zip(list).map(one).sum();
            }
        }
    }
}
