//! How sparse a factor is, and how far a fit is from the data.

use super::Decomposition;
use super::dense::{Dense, sum_of_products};
use crate::counts::Block;
use crate::engine::sweeps::kl_divergence;
use crate::error::Result;
use crate::plan::{Evaluator, Plan};
use std::borrow::Cow;

/// Hoyer's sparsity of a list of numbers: 0 when all are alike, 1 when all but one are zero. Of one number or of nothing but
/// zeros it is not defined.
///
/// ```
/// use polyurn::decomposition::hoyer_sparsity;
/// assert_eq!(hoyer_sparsity(&[0.0, 3.0, 0.0, 0.0]), Some(1.0));
/// assert_eq!(hoyer_sparsity(&[2.0; 9]), Some(0.0));
/// assert_eq!(hoyer_sparsity(&[1.0]), None);
/// ```
pub fn hoyer_sparsity(values: &[f64]) -> Option<f64> {
    let root = (values.len() as f64).sqrt();
    let sum: f64 = values.iter().map(|value| value.abs()).sum();
    let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    (values.len() > 1 && norm > 0.0).then(|| (root - sum / norm) / (root - 1.0))
}

impl Decomposition<'_, '_> {
    /// The expected count of every record of a block: the intensity times the probability of what is seen. Nothing but
    /// these cells is formed.
    ///
    /// # Errors
    /// When the unseen part of a record is too entangled.
    pub fn expected_counts(&self, block: &Block) -> Result<Vec<f64>> {
        let seen = block.seen.iter().map(|&node| crate::graph::NodeIndex(node)).collect();
        let plan = Plan::compile(self.problem.model, &[seen])?;
        let mut evaluator = Evaluator::new();
        let mut record = vec![0; self.problem.model.n_nodes()];
        let of_record = |ix: usize| {
            block.read(ix, &mut record);
            self.intensity * evaluator.ln_probability(&plan, &plan.patterns()[0], &record, self).exp()
        };
        Ok((0..block.n_records()).map(of_record).collect())
    }

    /// The generalised Kullback-Leibler divergence of the data from the fit, the sum over all cells of x ln(x/m) - x + m; twice
    /// that is the deviance. `None` as for [`Decomposition::squared_error`].
    ///
    /// # Errors
    /// When the unseen part of a record is too entangled.
    pub fn kl_divergence(&self) -> Result<Option<f64>> {
        let [block] = &self.problem.counts.blocks[..] else { return Ok(None) };
        let expected = self.expected_counts(block)?;
        let tokens = |count: u64| self.problem.counts.tokens(count);
        let terms = expected.iter().zip(block.counts.iter()).map(|(m, x)| tokens(x) * (m / self.intensity).ln());
        Ok(kl_divergence(self.problem.counts, terms.sum(), self.intensity))
    }

    /// The squared Frobenius norm of data less fit, over all cells, also those without tokens. `None` where records show
    /// different nodes or cells are unknown: then there is no one table.
    ///
    /// # Errors
    /// When the sum over all cells is too entangled.
    pub fn squared_error(&self) -> Result<Option<f64>> {
        let [block] = &self.problem.counts.blocks[..] else { return Ok(None) };
        if !self.problem.counts.unknown.is_empty() {
            return Ok(None);
        }
        let expected = self.expected_counts(block)?;
        let tokens = |count: u64| self.problem.counts.tokens(count);
        let at_records: f64 = expected.iter().zip(block.counts.iter()).map(|(m, x)| (tokens(x) - m).powi(2)).sum();
        let squares: f64 = expected.iter().map(|m| m * m).sum();
        // What is left is that of cells without tokens.
        let elsewhere = self.intensity * self.intensity * self.sum_of_squares(&block.seen)? - squares;
        Ok(Some(at_records + elsewhere.max(0.0)))
    }

    /// The sum of squared probabilities over all values of the seen nodes: two copies of the model that share them.
    fn sum_of_squares(&self, seen: &[u32]) -> Result<f64> {
        let model = self.problem.model;
        let n_nodes = model.n_nodes() as u32;
        let relevant = self.with_ancestors(seen.iter().map(|&node| crate::graph::NodeIndex(node)));
        let copy_of = |node: u32, copy: u32| if seen.contains(&node) { node } else { node + copy * n_nodes };
        let tables = [0, 1].into_iter().flat_map(|copy| {
            relevant.iter().map(move |&node| {
                let family = model.node(node).parents.iter().chain([&node]);
                let values = &self.tables[model.node(node).table.ix()];
                Dense { variables: family.map(|node| copy_of(node.0, copy)).collect(), values: Cow::Borrowed(values) }
            })
        });
        let sizes = [model.sizes(), model.sizes()].concat();
        Ok(sum_of_products(tables.collect(), &sizes, &[])?[0])
    }
}
