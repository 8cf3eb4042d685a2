//! The bound on the evidence of a whole stream, as one batch has it.

use super::{Batch, Counted, Learner};
use crate::counts::Counts;
use crate::engine::Problem;
use crate::engine::sweeps::stream_tables::StreamTable;
use crate::error::Result;
use crate::graph::TableIndex;
use crate::math::special;
use crate::prior::PseudoCount;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Learner {
    /// The bound on ln p(sequence) of the whole stream at the present tables, as this batch alone would have it: what
    /// belongs to records is scaled up to the declared number of tokens. With all records in one batch it is the bound
    /// itself; otherwise it is as noisy as a batch is small.
    ///
    /// # Errors
    /// As for [`Learner::step`].
    pub fn bound(&mut self, counts: &Counts) -> Result<f64> {
        self.in_pool(|learner| {
            let (model, prior) = (Arc::clone(&learner.model), Arc::clone(&learner.prior));
            let problem = Problem::new(&model, &prior, counts)?;
            let mut batch = learner.batch(&problem)?;
            let kept = learner.kept_shares(&batch, false);
            learner.settle(&mut batch, &kept);
            let tally = batch.expect(learner.settings.isa, &mut learner.work);
            Ok(learner.bound_at(&batch, counts, tally.ln_weight))
        })
    }

    fn bound_at(&self, batch: &Batch, counts: &Counts, ln_weight: f64) -> f64 {
        let scale = self.settings.n_tokens / counts.n_tokens as f64;
        let product = |count: f64, log: f64| if count > 0.0 { count * log } else { 0.0 };
        let mut of_records = ln_weight;
        let fixed = batch.layout.fixed.iter().flatten().zip(&batch.logs);
        of_records += fixed.map(|(&fixed, &log)| product(fixed, log)).sum::<f64>();
        let mut bound = 0.0;
        for (counted, parent) in &self.tables {
            match counted {
                Counted::Table(table) if parent.is_none() => bound += self.divergence(table),
                Counted::Table(table) => {
                    if let Some(own) = batch.layout.tables.iter().find(|own| own.table == table.table()) {
                        let cells = own.cells().map(|cell| {
                            rising(own.pseudo.at(cell - own.first_cell), batch.counts[cell])
                                - product(batch.counts[cell], batch.logs[cell])
                        });
                        let rows =
                            own.rows().map(|row| rising(own.row_pseudo.at(row - own.first_row), batch.rows[row]));
                        of_records += cells.sum::<f64>() - rows.sum::<f64>();
                    }
                }
                Counted::Root(node) => {
                    let prior = self.prior.table(self.model.node(*node).table);
                    let values = batch.local_tokens[node].iter();
                    of_records += values.map(|(&value, &n)| rising(prior.cell(&[], value), n as f64)).sum::<f64>();
                    bound -= rising(prior.row(&[]), self.settings.n_tokens);
                }
            }
        }
        // Families that are wholly seen: what is certain is paid for by its expected logarithm, or, where a local value has
        // it for itself, in closed form.
        let mut closed_rows: BTreeMap<(TableIndex, &[u32]), f64> = BTreeMap::new();
        for (table, family, count) in &batch.layout.certain {
            let count = batch.layout.unit.tokens(*count);
            let (counted, parent) = &self.tables[table.ix()];
            let Counted::Table(stream) = counted else { continue };
            let (child, parents) = family.split_last().expect("a family has a child");
            let prior = self.prior.table(*table);
            if parent.is_some() {
                of_records += rising(prior.cell(parents, *child), count);
                *closed_rows.entry((*table, parents)).or_insert(0.0) += count;
            } else {
                let (cell, row) = stream.at(family);
                let log = special::digamma(prior.cell(parents, *child).value + cell)
                    - special::digamma(prior.row(parents).value + row);
                of_records += product(count, log);
            }
        }
        for ((table, parents), count) in closed_rows {
            of_records -= rising(self.prior.table(table).row(parents), count);
        }
        bound + scale * of_records
    }

    /// Minus the divergence of a shared table's Dirichlet rows from the prior's.
    fn divergence(&self, table: &StreamTable) -> f64 {
        let prior = self.prior.table(table.table());
        let mut sum = 0.0;
        for (parents, row) in table.row_counts() {
            let row_pseudo = prior.row(&parents);
            let row_psi = special::digamma(row_pseudo.value + row.sum);
            for (&child, &count) in &row.cells {
                let pseudo = prior.cell(&parents, child);
                sum += rising(pseudo, count) - count * (special::digamma(pseudo.value + count) - row_psi);
            }
            sum -= rising(row_pseudo, row.sum);
        }
        sum
    }
}

/// ln Gamma(alpha + s) - ln Gamma(alpha).
fn rising(pseudo: PseudoCount, count: f64) -> f64 {
    if count > 0.0 { special::ln_rising_tiny(pseudo.value, pseudo.ln_if_tiny, count) } else { 0.0 }
}
