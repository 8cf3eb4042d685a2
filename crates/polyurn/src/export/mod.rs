//! A fit in the forms that other tools read: CSV, NumPy archives, networks in the Bayesian Interchange Format, and the
//! arrays that pyLDAvis takes.

mod bif;
mod csv;
mod npz;
mod topics;

pub use topics::Topics;

use crate::counts::{Counts, Labels, Unit};
use crate::decomposition::{Decomposition, Factors, Marginal, probabilities};
use crate::engine::{Problem, TableMeans};
use crate::error::{Error, Result};
use crate::fit_file::FitFile;
use crate::graph::{NodeIndex, TableIndex};
use crate::predict::Draw;
use crate::prior::Prior;

/// Tables of a fit, to be exported.
#[derive(Debug)]
pub struct Export<'f> {
    fit: &'f FitFile,
    draw: Draw,
    tables: &'f [TableMeans],
}

impl<'f> Export<'f> {
    /// The tables of a fit, or those of a draw.
    ///
    /// # Errors
    /// When the fit has no such draw.
    pub fn new(fit: &'f FitFile, draw: Draw) -> Result<Self> {
        let tables = draw.stored(fit)?.map_or(&fit.tables, |stored| &stored.tables);
        Ok(Export { fit, draw, tables })
    }

    /// Whether its tables are averages over namings of hidden values.
    pub fn is_averaged(&self) -> bool {
        self.draw == Draw::Means && !self.fit.label_averaged.is_empty()
    }

    /// The tables.
    pub fn tables(&self) -> &'f [TableMeans] {
        self.tables
    }

    /// Factor matrices and core.
    ///
    /// # Errors
    /// When the model has none, or when tables are averages over namings of hidden values.
    pub fn factors(&self) -> Result<Factors> {
        if self.is_averaged() {
            return Err(Error::Setting(format!(
                "tables of this fit are averages over all namings of {}, which leaves no factors; fit with --method smc, vb \
                 or em",
                self.fit.label_averaged.join(", ")
            )));
        }
        self.with_decomposition(|decomposition| decomposition.factors_of(&self.fit.is_seen))
    }

    /// The probability of every combination of values of some nodes, all others summed out.
    ///
    /// # Errors
    /// When a node is listed twice, or when there are too many combinations.
    pub fn marginal(&self, nodes: &[NodeIndex]) -> Result<Marginal> {
        self.with_decomposition(|decomposition| decomposition.marginal(nodes))
    }

    fn with_decomposition<R>(&self, f: impl FnOnce(&Decomposition<'_, '_>) -> Result<R>) -> Result<R> {
        let prior = &self.fit.prior;
        let prior = Prior::of_tables(prior.tables.clone(), prior.a, prior.shape, prior.rate);
        let labels = self.fit.labels.clone();
        let counts = Counts { labels, blocks: Vec::new(), n_tokens: 0, unit: Unit::TOKEN, unknown: Vec::new() };
        let problem = Problem::new(&self.fit.model, &prior, &counts)?;
        f(&Decomposition::new(&problem, self.tables, self.fit.intensity.mean())?)
    }

    /// All cells of a table, row by row: the parents' values in front, the first slowest.
    ///
    /// # Errors
    /// When there are too many.
    pub fn cells(&self, table: TableIndex) -> Result<Vec<f64>> {
        probabilities(&self.fit.model, &self.fit.prior.tables[table.ix()], &self.tables[table.ix()])
    }

    fn labels(&self, node: NodeIndex) -> &'f Labels {
        &self.fit.labels[node.ix()]
    }

    fn name(&self, node: NodeIndex) -> &'f str {
        &self.fit.model.node(node).name
    }
}
