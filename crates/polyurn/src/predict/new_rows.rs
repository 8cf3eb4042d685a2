//! Rows of a value that the fit does not know, such as a new document: its own prior rows, updated by its own records, all
//! other tables as they are.

use super::{Predictor, Question, Weights};
use crate::graph::{NodeIndex, TableIndex};
use crate::math::special::digamma;
use crate::plan::Evaluator;

/// Rounds at most; most documents need a few dozen.
const MAX_ROUNDS: usize = 1000;
/// Rows are settled when no count changes by more than this share of the tokens.
const SETTLED: f64 = 1e-9;

/// Rows of one new value.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRows {
    /// For each table that has such rows: which, and their cells.
    tables: Vec<(TableIndex, Vec<f64>)>,
}

/// Counts of the rows of one table.
struct Part {
    table: TableIndex,
    child_size: usize,
    pseudo: Vec<f64>,
    counts: Vec<f64>,
}

impl NewRows {
    pub(super) fn row(&self, table: TableIndex, row: usize, child_size: usize) -> &[f64] {
        let found = self.tables.iter().find(|(other, _)| *other == table);
        let (_, cells) = found.expect("rows of every table below the root");
        &cells[row * child_size..][..child_size]
    }

    /// The cells of its rows in one table.
    pub fn cells(&self, table: TableIndex) -> Option<&[f64]> {
        self.tables.iter().find(|(other, _)| *other == table).map(|(_, cells)| &cells[..])
    }
}

impl Predictor<'_> {
    /// The rows of a new value of `root`, from its records and their weights. In each record the root has the value
    /// [`Predictor::new_value`]. Without records they are as in the prior.
    ///
    /// # Panics
    /// When the root cannot have new values.
    pub fn new_rows<'r>(&self, root: NodeIndex, records: &[(&'r Question, &'r [u32], f64)]) -> NewRows {
        let at = self.open.iter().position(|&open| open == root).expect("an open root");
        let is_point = matches!(self.fit.method.as_str(), "em" | "icm");
        let mut parts: Vec<Part> = Vec::new();
        for (ix, slot) in self.slots.iter().enumerate() {
            let Some(slot) = slot.as_ref().filter(|slot| slot.root == at) else { continue };
            let shape = &self.fit.model.tables()[ix];
            let n_cells = slot.n_rows(&self.model.tables()[ix]) * shape.child_size as usize;
            let pseudo = if self.fit.prior.is_given {
                let mut pseudo = slot.prior_rows(&self.fit.prior.tables[ix], shape);
                // The mode of the density itself adds pseudo-counts less one.
                if is_point && self.fit.settings["mode"] == "density" {
                    pseudo.iter_mut().for_each(|pseudo| *pseudo -= 1.0);
                }
                pseudo
            } else {
                vec![0.0; n_cells]
            };
            parts.push(Part {
                table: TableIndex(ix as u32),
                child_size: shape.child_size as usize,
                pseudo,
                counts: vec![0.0; n_cells],
            });
        }
        // The first round starts from prior means; from then on the weights are those of the method that made the fit.
        let mut rows = NewRows { tables: parts.iter().map(|part| (part.table, part.even())).collect() };
        let n_tokens: f64 = records.iter().map(|record| record.2).sum();
        let mut evaluator = Evaluator::new();
        for _ in 0..MAX_ROUNDS {
            let before: Vec<Vec<f64>> = parts.iter().map(|part| part.counts.clone()).collect();
            self.count(at, records, &rows, &mut parts, &mut evaluator);
            let pairs = parts.iter().zip(&before);
            let cells = pairs.flat_map(|(part, before)| part.counts.iter().zip(before));
            let change = cells.map(|(now, before)| (now - before).abs()).fold(0.0, f64::max);
            if change <= SETTLED * n_tokens {
                break;
            }
            rows.tables.iter_mut().zip(&parts).for_each(|(rows, part)| {
                rows.1 = if is_point { part.means() } else { part.exp_expectations() };
            });
        }
        rows.tables.iter_mut().zip(&parts).for_each(|(rows, part)| rows.1 = part.means());
        rows
    }

    /// Expected counts of the rows, given rows.
    fn count(
        &self,
        root: usize,
        records: &[(&Question, &[u32], f64)],
        rows: &NewRows,
        parts: &mut [Part],
        evaluator: &mut Evaluator,
    ) {
        parts.iter_mut().for_each(|part| part.counts.fill(0.0));
        let mut new: Vec<Option<&NewRows>> = vec![None; self.open.len()];
        for (question, record, weight) in records {
            for (at, &open) in self.open.iter().enumerate() {
                let is_new = self.new_value(open) == Some(record[open.ix()]);
                new[at] = is_new.then(|| if at == root { rows } else { &self.prior_rows[at] });
            }
            let weights = Weights { predictor: self, new: &new };
            let plan = question.plan();
            let emit = |node: NodeIndex, row: u64, child: u32, p: f64| {
                let table = self.model.node(node).table;
                if let Some(slot) = self.slots[table.ix()].as_ref().filter(|slot| slot.root == root)
                    && let Some(row) = slot.row_of_new(row)
                    && let Some(part) = parts.iter_mut().find(|part| part.table == table)
                {
                    part.counts[row * part.child_size + child as usize] += weight * p;
                }
            };
            evaluator.expected_families(plan, &plan.patterns()[0], record, &weights, emit);
        }
    }
}

impl Part {
    fn even(&self) -> Vec<f64> {
        self.rows(|row, _| {
            let sum: f64 = row.iter().sum();
            row.iter().map(|&cell| if sum > 0.0 { cell / sum } else { 1.0 / row.len() as f64 }).collect()
        })
    }

    fn means(&self) -> Vec<f64> {
        self.rows(|pseudo, counts| {
            let sum: f64 = pseudo.iter().sum::<f64>() + counts.iter().sum::<f64>();
            let n = pseudo.len() as f64;
            let mean = |(&pseudo, &count): (&f64, &f64)| if sum > 0.0 { (pseudo + count) / sum } else { 1.0 / n };
            pseudo.iter().zip(counts).map(mean).collect()
        })
    }

    /// exp(psi(cell) - psi(row)), the weights of variational Bayes.
    fn exp_expectations(&self) -> Vec<f64> {
        self.rows(|pseudo, counts| {
            let sum: f64 = pseudo.iter().sum::<f64>() + counts.iter().sum::<f64>();
            let of_row = digamma(sum.max(f64::MIN_POSITIVE));
            let weight = |(&pseudo, &count): (&f64, &f64)| {
                let cell = pseudo + count;
                if cell > 0.0 { (digamma(cell) - of_row).exp() } else { 0.0 }
            };
            pseudo.iter().zip(counts).map(weight).collect()
        })
    }

    fn rows(&self, of_row: impl Fn(&[f64], &[f64]) -> Vec<f64>) -> Vec<f64> {
        let rows = self.pseudo.chunks_exact(self.child_size).zip(self.counts.chunks_exact(self.child_size));
        rows.flat_map(|(pseudo, counts)| of_row(pseudo, counts)).collect()
    }
}
