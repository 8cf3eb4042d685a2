//! A slow and obvious implementation of the engines that sweep: dense tables, and for every record all completions of what
//! counts.

use crate::support::completions;
use polyurn::engine::Problem;
use polyurn::engine::sweeps::StartTables;
use polyurn::graph::{NodeIndex, TableIndex};
use std::collections::HashMap;

/// A cell: table, values of the parents, value of the child.
pub type Cell = (usize, Vec<u32>, u32);

/// The problem and present weights of all cells.
pub struct Reference<'p, 'a> {
    problem: &'p Problem<'a>,
    pub weights: HashMap<Cell, f64>,
}

/// What one pass through the records finds.
pub struct Expected {
    pub counts: HashMap<Cell, f64>,
    pub ln_likelihood: f64,
    pub entropy: f64,
}

pub fn digamma(x: f64) -> f64 {
    // Upwards to where the series is exact to the last digit.
    if x < 20.0 {
        return digamma(x + 1.0) - 1.0 / x;
    }
    let y = 1.0 / (x * x);
    x.ln() - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y / 240.0)))
}

pub fn ln_gamma(x: f64) -> f64 {
    if x < 20.0 {
        return ln_gamma(x + 1.0) - x.ln();
    }
    let y = 1.0 / (x * x);
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + (1.0 / 12.0 - y * (1.0 / 360.0 - y / 1260.0)) / x
}

/// Values of the parents of a row.
fn parents_of(mut row: usize, sizes: &[u32]) -> Vec<u32> {
    let mut parents = vec![0u32; sizes.len()];
    for (slot, &size) in parents.iter_mut().zip(sizes).rev() {
        *slot = (row % size as usize) as u32;
        row /= size as usize;
    }
    parents
}

impl<'p, 'a> Reference<'p, 'a> {
    pub fn new(problem: &'p Problem<'a>, start: &StartTables) -> Self {
        let mut weights = HashMap::new();
        for (name, rows) in &start.tables {
            let table = problem.model.node(problem.model.find(name).unwrap()).table;
            let sizes = &problem.model.tables()[table.ix()].parent_sizes;
            for (row, cells) in rows.iter().enumerate() {
                for (child, &weight) in cells.iter().enumerate() {
                    weights.insert((table.ix(), parents_of(row, sizes), child as u32), weight);
                }
            }
        }
        Reference { problem, weights }
    }

    fn families(&self, relevant: &[NodeIndex], token: &[u32]) -> Vec<Cell> {
        let model = self.problem.model;
        let of_node = |&node: &NodeIndex| {
            let parents = model.node(node).parents.iter().map(|parent| token[parent.ix()]).collect();
            (model.node(node).table.ix(), parents, token[node.ix()])
        };
        relevant.iter().map(of_node).collect()
    }

    /// Every record with its count and the cells of every way to complete it.
    pub fn records(&self) -> Vec<(f64, Vec<Vec<Cell>>)> {
        let model = self.problem.model;
        let mut records = Vec::new();
        for (block, pattern) in self.problem.counts.blocks.iter().zip(self.problem.plan.patterns()) {
            let mut record = vec![0; model.n_nodes()];
            for ix in 0..block.n_records() {
                block.read(ix, &mut record);
                let token: Vec<Option<u32>> = (0..model.n_nodes())
                    .map(|node| match pattern.unseen.contains(&NodeIndex(node as u32)) {
                        true => None,
                        // Nodes that count for nothing get any value.
                        false => Some(if record[node] == u32::MAX { 0 } else { record[node] }),
                    })
                    .collect();
                let ways =
                    completions(model, &token).iter().map(|token| self.families(&pattern.relevant, token)).collect();
                records.push((block.counts.at(ix) as f64, ways));
            }
        }
        records
    }

    pub fn expect(&self) -> Expected {
        let mut found = Expected { counts: HashMap::new(), ln_likelihood: 0.0, entropy: 0.0 };
        for (count, ways) in self.records() {
            let weights: Vec<f64> =
                ways.iter().map(|way| way.iter().map(|cell| self.weights[cell]).product()).collect();
            let total: f64 = weights.iter().sum();
            found.ln_likelihood += count * total.ln();
            for (way, weight) in ways.iter().zip(&weights) {
                let share = weight / total;
                let n = count * share;
                found.entropy -= if share > 0.0 { n * share.ln() } else { 0.0 };
                way.iter().for_each(|cell| *found.counts.entry(cell.clone()).or_insert(0.0) += n);
            }
        }
        found
    }

    /// Calls `f` with table, parents, pseudo-counts and counts of every row.
    pub fn for_each_row(&self, counts: &HashMap<Cell, f64>, mut f: impl FnMut(usize, &[u32], &[f64], &[f64])) {
        for (ix, table) in self.problem.model.tables().iter().enumerate() {
            let pseudo = self.problem.prior.table(TableIndex(ix as u32));
            for row in 0..table.n_rows() as usize {
                let parents = parents_of(row, &table.parent_sizes);
                let alphas: Vec<f64> = (0..table.child_size).map(|child| pseudo.cell(&parents, child).value).collect();
                let of = |child: u32| counts.get(&(ix, parents.clone(), child)).copied().unwrap_or(0.0);
                let counts: Vec<f64> = (0..table.child_size).map(of).collect();
                f(ix, &parents, &alphas, &counts);
            }
        }
    }

    /// One sweep of variational Bayes; the bound.
    pub fn vb_sweep(&mut self) -> f64 {
        let found = self.expect();
        let mut bound = found.entropy;
        let mut weights = HashMap::new();
        self.for_each_row(&found.counts, |table, parents, alphas, counts| {
            let hats: Vec<f64> = alphas.iter().zip(counts).map(|(alpha, count)| alpha + count).collect();
            let (alpha_sum, hat_sum): (f64, f64) = (alphas.iter().sum(), hats.iter().sum());
            bound += ln_gamma(alpha_sum) - ln_gamma(hat_sum);
            for (child, (alpha, hat)) in alphas.iter().zip(&hats).enumerate() {
                bound += ln_gamma(*hat) - ln_gamma(*alpha);
                let weight = (digamma(*hat) - digamma(hat_sum)).exp();
                weights.insert((table, parents.to_vec(), child as u32), weight);
            }
        });
        self.weights = weights;
        bound
    }

    /// One step of EM, all tables at once: `added` turns a pseudo-count into what is added to a cell.
    pub fn em_step(&mut self, added: impl Fn(f64) -> f64) {
        let found = self.expect();
        let mut weights = HashMap::new();
        self.for_each_row(&found.counts, |table, parents, alphas, counts| {
            let cells: Vec<f64> = alphas.iter().zip(counts).map(|(&alpha, count)| added(alpha) + count).collect();
            let sum: f64 = cells.iter().sum();
            for (child, cell) in cells.iter().enumerate() {
                let weight = if sum > 0.0 { cell / sum } else { 0.0 };
                weights.insert((table, parents.to_vec(), child as u32), weight);
            }
        });
        self.weights = weights;
    }
}
