//! Tables as Dirichlet rows: row sums, expected logarithms, and the ratio of normalising constants.

use super::cells::{CellTable, Pseudo, RowMap};
use super::layout::Layout;
use crate::math::{Double, special};
use crate::prior::PseudoCount;
use crate::simd::{Isa, Job};
use rayon::prelude::*;

/// The exponential of this and of all larger numbers is one at full precision.
const LN_SMALLEST: f64 = -700.0;

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

/// Where the exponentials of the expected logarithms of all cells go, and these themselves if they are wanted; and a number
/// for each row to work with.
#[derive(Debug)]
pub struct ExpectedLogs<'l> {
    pub weights: &'l mut [f64],
    pub logs: Option<&'l mut [f64]>,
    pub row_psi: &'l mut [f64],
}

/// Expected logarithms under Dirichlet rows with these counts, and their exponentials: psi(alpha + s) less that of the row.
/// Pseudo-counts of each table are multiplied by its scale. Whether all the logarithms can be had from their exponentials.
pub fn expected_logs(
    layout: &Layout,
    scales: &[f64],
    counts: CellCounts<'_>,
    isa: Isa,
    mut out: ExpectedLogs<'_>,
) -> bool {
    let mut is_in_range = true;
    for (table, &scale) in layout.tables.iter().zip(scales) {
        is_in_range &= expected_logs_of(table, scale, counts, isa, &mut out);
    }
    is_in_range
}

/// The same for one table. All lists are those of all tables.
pub fn expected_logs_of(
    table: &CellTable,
    scale: f64,
    counts: CellCounts<'_>,
    isa: Isa,
    out: &mut ExpectedLogs<'_>,
) -> bool {
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
    let weights = weights[range.clone()].par_chunks_mut(at_once);
    let job = |part: usize, weights: &mut [f64], logs: Option<&mut [f64]>| {
        let first = part * at_once;
        let cells = first..first + weights.len();
        let mut smallest = 0.0;
        isa.run(LogsOfCells {
            pseudo: Values::of(&table.pseudo, scale, cells.clone()),
            table,
            first_block: first / interior,
            row_psi,
            counts: &counts[range.clone()][cells],
            logs,
            weights,
            smallest: &mut smallest,
        });
        smallest >= LN_SMALLEST
    };
    match logs {
        None => weights.enumerate().map(|(part, weights)| job(part, weights, None)).reduce(|| true, |x, y| x & y),
        Some(logs) => {
            let parts = weights.zip(logs[range.clone()].par_chunks_mut(at_once)).enumerate();
            parts.map(|(part, (weights, logs))| job(part, weights, Some(logs))).reduce(|| true, |x, y| x & y)
        }
    }
}

/// Whether the logarithm of some weight is better had from elsewhere.
pub fn is_out_of_range(weights: &[f64]) -> bool {
    let smallest = LN_SMALLEST.exp();
    weights.iter().any(|&weight| weight > 0.0 && weight < smallest)
}

/// The sum of counts times the logarithms of weights, or times these logarithms where they are given. What has no count
/// adds nothing, whatever its logarithm.
pub fn cross(counts: &[f64], weights: &[f64], logs: Option<&[f64]>, isa: Isa) -> Double {
    let numbers = logs.unwrap_or(weights);
    let parts: Vec<f64> = counts
        .par_chunks(CELLS_AT_ONCE)
        .zip(numbers.par_chunks(CELLS_AT_ONCE))
        .map(|(counts, numbers)| {
            let mut sum = 0.0;
            match logs {
                None => isa.run(Cross { counts, numbers, log: special::ln, sum: &mut sum }),
                Some(_) => isa.run(Cross { counts, numbers, log: |log| log, sum: &mut sum }),
            }
            sum
        })
        .collect();
    parts.into_iter().fold(Double::ZERO, |total, part| total + Double::from(part))
}

/// The logarithm of the ratio of Dirichlet normalising constants with and without the counts, over all stored rows
/// (the paper's B_n(alpha + E S)/B_n(alpha)), with each table's alpha multiplied by its scale.
pub fn ln_constants(layout: &Layout, scales: &[f64], counts: CellCounts<'_>, isa: Isa) -> Double {
    let mut total = Double::ZERO;
    for (table, &scale) in layout.tables.iter().zip(scales) {
        total = total + ln_rising_of(table, scale, counts, isa);
    }
    total
}

/// The same for one table.
pub fn ln_rising_of(table: &CellTable, scale: f64, counts: CellCounts<'_>, isa: Isa) -> Double {
    let cells = ln_rising(&table.pseudo, scale, &counts.cells[table.cells()], isa);
    if cells.value() == f64::NEG_INFINITY {
        // A row without pseudo-counts has only cells without: they already make the product zero.
        return cells;
    }
    cells - ln_rising(&table.row_pseudo, scale, &counts.rows[table.rows()], isa)
}

/// The sum of ln Gamma(alpha + s) - ln Gamma(alpha), alpha being pseudo-counts times a scale.
fn ln_rising(pseudo: &Pseudo, scale: f64, counts: &[f64], isa: Isa) -> Double {
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
    logs: Option<&'a mut [f64]>,
    weights: &'a mut [f64],
    /// The smallest of the logarithms, but for those of zero.
    smallest: &'a mut f64,
}

impl Job for LogsOfCells<'_> {
    #[inline(always)]
    fn run(self) {
        let LogsOfCells { pseudo, table, first_block, row_psi, counts, logs, weights, smallest } = self;
        // Where the exponentials will stand.
        Digamma { pseudo, counts, out: weights }.run();
        let interior = table.shape.interior;
        let blocks = weights.chunks_exact_mut(interior).zip(&table.row_of_block[first_block..]);
        for (logs, &first) in blocks {
            let rows = &row_psi[first as usize..];
            match &table.row_map {
                RowMap::One => logs.iter_mut().for_each(|log| *log -= rows[0]),
                RowMap::Each => logs.iter_mut().zip(rows).for_each(|(log, row)| *log -= row),
                RowMap::Listed(map) => logs.iter_mut().zip(map).for_each(|(log, &row)| *log -= rows[row as usize]),
            }
        }
        if let Some(logs) = logs {
            logs.copy_from_slice(weights);
        }
        let mut lowest = [0.0; 8];
        for chunk in weights.chunks_mut(8) {
            for (lowest, log) in lowest.iter_mut().zip(chunk) {
                *lowest = if *log < *lowest && *log > f64::NEG_INFINITY { *log } else { *lowest };
                *log = special::exp(*log);
            }
        }
        *smallest = lowest.into_iter().fold(0.0, f64::min);
    }
}

struct Cross<'a, L> {
    counts: &'a [f64],
    numbers: &'a [f64],
    /// Makes logarithms of the numbers.
    log: L,
    sum: &'a mut f64,
}

impl<L: Fn(f64) -> f64> Job for Cross<'_, L> {
    #[inline(always)]
    fn run(self) {
        let mut sums = [0.0; 8];
        let term = |count: f64, number: f64| {
            let log = (self.log)(number);
            if count > 0.0 { count * log } else { 0.0 }
        };
        let (counts, numbers) = (self.counts.chunks_exact(8), self.numbers.chunks_exact(8));
        let rest = counts.remainder().iter().zip(numbers.remainder());
        for (counts, numbers) in counts.clone().zip(numbers.clone()) {
            for lane in 0..8 {
                sums[lane] += term(counts[lane], numbers[lane]);
            }
        }
        sums.iter_mut().zip(rest).for_each(|(sum, (&count, &number))| *sum += term(count, number));
        *self.sum = sums.iter().sum();
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
