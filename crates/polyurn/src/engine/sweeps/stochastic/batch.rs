//! A batch in work.

use super::local::ByValue;
use crate::counts::Counts;
use crate::engine::sweeps::arrangement::Arrangement;
use crate::engine::sweeps::dirichlet::add_rows;
use crate::engine::sweeps::layout::Layout;
use crate::engine::sweeps::messages::Weights;
use crate::engine::sweeps::numbers::Numbers;
use crate::engine::sweeps::pass::{Tally, Wanted, Work, expect};
use crate::simd::Isa;

/// The cells of a batch, and counts, logarithms and weights of those.
pub(super) struct Batch {
    pub layout: Layout,
    pub arrangements: Vec<Arrangement>,
    pub counts: Numbers,
    pub rows: Vec<f64>,
    pub logs: Vec<f64>,
    pub weights: Numbers,
    pub row_psi: Vec<f64>,
    /// Expected counts of this batch alone, and their sums over rows.
    pub expected: Numbers,
    pub expected_rows: Vec<f64>,
    /// Tokens of each value of each local node.
    pub local_tokens: ByValue<u64>,
}

impl Batch {
    /// All numbers are zero as yet.
    pub fn new(layout: Layout, counts: &Counts, local_tokens: ByValue<u64>) -> Self {
        let wanted = vec![true; layout.tables.len()];
        let arrangements = Arrangement::of_groups(&layout, counts, &wanted, None);
        let (n_cells, n_rows) = (layout.n_cells, layout.n_rows);
        Batch {
            layout,
            arrangements,
            counts: Numbers::zeros(n_cells),
            rows: vec![0.0; n_rows],
            logs: vec![0.0; n_cells],
            weights: Numbers::zeros(n_cells),
            row_psi: vec![0.0; n_rows],
            expected: Numbers::zeros(n_cells),
            expected_rows: vec![0.0; n_rows],
            local_tokens,
        }
    }

    /// One expectation.
    pub fn expect(&mut self, isa: Isa, work: &mut Work) -> Tally {
        let weights = Weights { values: &self.weights, logs: Some(&self.logs) };
        let wanted = Wanted { logs: true, intensity: 0.0 };
        self.expected.fill(0.0);
        let tally = expect(&self.layout, &self.arrangements, weights, wanted, isa, work, &mut self.expected);
        if let Some(fixed) = &self.layout.fixed {
            self.expected.iter_mut().zip(fixed).for_each(|(count, fixed)| *count += fixed);
        }
        for table in &self.layout.tables {
            add_rows(table, &self.expected, &mut self.expected_rows);
        }
        tally
    }
}
