//! What a fit says in the words of factorisations: factor matrices, core, any marginal, expected counts, and how far they
//! are from the data.
//!
//! All of it follows from one set of tables and the intensity, and no array over all nodes is ever formed. Tables have to
//! come from one labelling of the hidden values: means of vb, points of em, one allocation of a sampling engine, never an
//! average over draws that name their components differently.

mod dense;
mod measures;

pub use measures::hoyer_sparsity;

use crate::engine::{Problem, TableMeans};
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::plan::CellWeights;
use crate::prior::PseudoCounts;
use dense::{Dense, MAX_CELLS, sum_of_products};
use std::borrow::Cow;

/// Rows whose listed cells leave less than this have no other cells worth listing.
const ROUNDING: f64 = 1e-12;

/// Cells of a core, at most.
const MAX_CORE: f64 = 1e6;

/// Tables of one fit, and what follows from them.
#[derive(Debug)]
pub struct Decomposition<'p, 'a> {
    problem: &'p Problem<'a>,
    /// Probabilities of each table, row by row.
    tables: Vec<Vec<f64>>,
    intensity: f64,
}

/// A table over some nodes, the last one fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Marginal {
    /// The nodes.
    pub nodes: Vec<NodeIndex>,
    /// How many values each has.
    pub sizes: Vec<u32>,
    /// One number for each combination of values.
    pub values: Vec<f64>,
}

/// What kind of factorisation a model is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One hidden node, two seen: X ~ W H.
    Matrix,
    /// One hidden node: weights and one factor matrix for each seen node.
    Cp,
    /// Several hidden nodes, each seen node with one of them: a core and one factor matrix for each seen node.
    Tucker,
    /// Seen nodes are independent given the hidden ones, but some depend on several of them at once.
    Network,
    /// Some seen nodes depend on each other directly: factors alone do not give the data back.
    NotAFactorisation,
}

/// Factors of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// What they are factors of.
    pub shape: Shape,
    /// The intensity times the joint probability of the hidden nodes: weights of a CP model, the core of a Tucker model.
    /// `None` where it has too many cells.
    pub core: Option<Marginal>,
    /// For each seen node its probabilities given the hidden nodes that it depends on directly, whatever the direction of
    /// the arrows; the seen node is last.
    pub matrices: Vec<Marginal>,
}

/// A matrix X as W H. Rows are the values of the seen node that the model names first.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixFactors {
    /// The nodes of rows, of components, and of columns.
    pub nodes: [NodeIndex; 3],
    /// Their sizes.
    pub sizes: [u32; 3],
    /// W, row by row: probabilities of rows given components.
    pub w: Vec<f64>,
    /// H, row by row: intensity times the probabilities of components and columns.
    pub h: Vec<f64>,
}

impl CellWeights for Decomposition<'_, '_> {
    fn weight(&self, table: TableIndex, row: u64, child: u32) -> f64 {
        let child_size = self.problem.model.tables()[table.ix()].child_size as usize;
        self.tables[table.ix()][row as usize * child_size + child as usize]
    }
}

impl<'p, 'a> Decomposition<'p, 'a> {
    /// Takes up the tables of a fit. Rows and cells that it does not list are as in the prior.
    ///
    /// # Errors
    /// When a table has too many cells to be listed.
    pub fn new(problem: &'p Problem<'a>, tables: &[TableMeans], intensity: f64) -> Result<Self> {
        let mut dense = vec![Vec::new(); problem.model.tables().len()];
        for table in tables {
            dense[table.table.ix()] = probabilities(problem.model, problem.prior.table(table.table), table)?;
        }
        Ok(Decomposition { problem, tables: dense, intensity })
    }

    /// The probability of every combination of values of some nodes, all others summed out.
    ///
    /// # Errors
    /// When a node is listed twice, or when there are too many combinations.
    pub fn marginal(&self, nodes: &[NodeIndex]) -> Result<Marginal> {
        let model = self.problem.model;
        if let Some(node) = nodes.iter().enumerate().find(|(ix, node)| nodes[..*ix].contains(node)) {
            return Err(Error::Setting(format!("marginal: {} is listed twice", model.node(*node.1).name)));
        }
        let tables = self.with_ancestors(nodes.iter().copied()).into_iter().map(|node| {
            let family = model.node(node).parents.iter().chain([&node]);
            let values = &self.tables[model.node(node).table.ix()];
            Dense { variables: family.map(|node| node.0).collect(), values: Cow::Borrowed(values) }
        });
        let keep: Vec<u32> = nodes.iter().map(|node| node.0).collect();
        let values = sum_of_products(tables.collect(), &model.sizes(), &keep)?;
        let sizes = nodes.iter().map(|&node| model.node(node).size).collect();
        Ok(Marginal { nodes: nodes.to_vec(), sizes, values })
    }

    /// The probabilities of a node given others, one row for each combination of their values; zeros in rows that cannot
    /// be.
    ///
    /// # Errors
    /// As [`Decomposition::marginal`].
    pub fn conditional(&self, node: NodeIndex, given: &[NodeIndex]) -> Result<Marginal> {
        let nodes: Vec<NodeIndex> = given.iter().copied().chain([node]).collect();
        let mut joint = self.marginal(&nodes)?;
        for row in joint.values.chunks_mut(self.problem.model.node(node).size as usize) {
            let sum: f64 = row.iter().sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|cell| *cell /= sum);
            }
        }
        Ok(joint)
    }

    /// Factor matrices and core, of the nodes that the data show.
    ///
    /// # Errors
    /// As [`Decomposition::factors_of`].
    pub fn factors(&self) -> Result<Factors> {
        self.factors_of(&self.problem.counts.seen_anywhere())
    }

    /// Factor matrices and core, of these nodes.
    ///
    /// # Errors
    /// When nothing is hidden or nothing is seen, or when a factor has too many cells.
    pub fn factors_of(&self, is_seen: &[bool]) -> Result<Factors> {
        let model = self.problem.model;
        let seen: Vec<NodeIndex> = model.node_indices().filter(|node| is_seen[node.ix()]).collect();
        let relevant = self.with_ancestors(seen.iter().copied());
        let hidden: Vec<NodeIndex> = relevant.iter().copied().filter(|node| !is_seen[node.ix()]).collect();
        if hidden.is_empty() || seen.is_empty() {
            return Err(Error::Setting("factors: this model has no hidden node between seen ones".into()));
        }
        // Two nodes depend on each other directly when some table has both.
        let share_table = |x: NodeIndex, y: NodeIndex| {
            let is_in =
                |node: NodeIndex, family: NodeIndex| node == family || model.node(family).parents.contains(&node);
            relevant.iter().any(|&family| is_in(x, family) && is_in(y, family))
        };
        let touches = |node: NodeIndex| -> Vec<NodeIndex> {
            hidden.iter().copied().filter(|&other| share_table(node, other)).collect()
        };
        let is_entangled = seen.iter().any(|&x| seen.iter().any(|&y| x < y && share_table(x, y)));
        let shape = match (hidden.len(), seen.len()) {
            _ if is_entangled => Shape::NotAFactorisation,
            (1, 2) => Shape::Matrix,
            (1, _) => Shape::Cp,
            _ if seen.iter().all(|&node| touches(node).len() == 1) => Shape::Tucker,
            _ => Shape::Network,
        };
        let core = if hidden.iter().map(|&node| f64::from(model.node(node).size)).product::<f64>() <= MAX_CORE {
            let mut core = self.marginal(&hidden)?;
            core.values.iter_mut().for_each(|cell| *cell *= self.intensity);
            Some(core)
        } else {
            None
        };
        let matrices = seen.iter().map(|&node| self.conditional(node, &touches(node))).collect::<Result<_>>()?;
        Ok(Factors { shape, core, matrices })
    }

    /// A node and all that its value depends on, ascending.
    fn with_ancestors(&self, nodes: impl Iterator<Item = NodeIndex>) -> Vec<NodeIndex> {
        with_ancestors(self.problem.model, nodes)
    }
}

fn with_ancestors(model: &Model, nodes: impl Iterator<Item = NodeIndex>) -> Vec<NodeIndex> {
    let mut is_in = vec![false; model.n_nodes()];
    nodes.for_each(|node| is_in[node.ix()] = true);
    for &node in model.topological_order().iter().rev() {
        if is_in[node.ix()] {
            model.node(node).parents.iter().for_each(|parent| is_in[parent.ix()] = true);
        }
    }
    model.node_indices().filter(|node| is_in[node.ix()]).collect()
}

/// All cells of a table: means where they are listed, what the prior leaves elsewhere.
pub(crate) fn probabilities(model: &Model, pseudo: &PseudoCounts, means: &TableMeans) -> Result<Vec<f64>> {
    let table = &model.tables()[means.table.ix()];
    let n_cells = table.n_rows() * f64::from(table.child_size);
    if n_cells > MAX_CELLS {
        let name = model.table_name(means.table);
        return Err(Error::TooCostly(format!(
            "the table of {name} has {n_cells:.3e} cells, too many to list one by one"
        )));
    }
    let child_size = table.child_size as usize;
    let mut cells = vec![f64::NAN; n_cells as usize];
    let row_number = |parents: &[u32]| {
        parents.iter().zip(&table.parent_sizes).fold(0, |row, (&value, &size)| row * size as usize + value as usize)
    };
    for row in &means.rows {
        let first = row_number(&row.parents) * child_size;
        row.cells.iter().for_each(|cell| cells[first + cell.child as usize] = cell.mean);
    }
    let mut parents = vec![0; table.parent_sizes.len()];
    for (row_ix, row) in cells.chunks_mut(child_size).enumerate() {
        let listed: f64 = row.iter().filter(|cell| !cell.is_nan()).sum();
        let rest = if listed < 1.0 - ROUNDING { 1.0 - listed } else { 0.0 };
        let mut number = row_ix;
        for (value, &size) in parents.iter_mut().zip(&table.parent_sizes).rev() {
            *value = (number % size as usize) as u32;
            number /= size as usize;
        }
        // What is left goes to the other cells as the prior says.
        let is_other = |cell: &f64| cell.is_nan();
        if row.iter().any(is_other) {
            let weight = |child: usize| pseudo.cell(&parents, child as u32).value;
            let sum: f64 = (0..child_size).filter(|&child| row[child].is_nan()).map(weight).sum();
            for (child, cell) in row.iter_mut().enumerate().filter(|(_, cell)| cell.is_nan()) {
                *cell = if sum > 0.0 { rest * weight(child) / sum } else { 0.0 };
            }
        }
    }
    Ok(cells)
}

impl Factors {
    /// W and H, for a matrix.
    pub fn as_matrix(&self) -> Option<MatrixFactors> {
        let (Shape::Matrix, Some(core), [rows, columns]) = (self.shape, &self.core, &self.matrices[..]) else {
            return None;
        };
        let [n_components, n_rows] = [rows.sizes[0], rows.sizes[1]];
        let n_columns = columns.sizes[1];
        let w = (0..n_rows)
            .flat_map(|row| (0..n_components).map(move |component| rows.values[(component * n_rows + row) as usize]));
        let h = columns.values.chunks(n_columns as usize).zip(&core.values);
        Some(MatrixFactors {
            nodes: [rows.nodes[1], rows.nodes[0], columns.nodes[1]],
            sizes: [n_rows, n_components, n_columns],
            w: w.collect(),
            h: h.flat_map(|(row, weight)| row.iter().map(move |cell| cell * weight)).collect(),
        })
    }

    /// The mean of Hoyer's sparsity over the factors, each as one list of numbers: W and H for a matrix.
    pub fn sparsity(&self) -> Option<f64> {
        let lists: Vec<Option<f64>> = match self.as_matrix() {
            Some(matrix) => vec![hoyer_sparsity(&matrix.w), hoyer_sparsity(&matrix.h)],
            None => self.matrices.iter().map(|matrix| hoyer_sparsity(&matrix.values)).collect(),
        };
        let n = lists.len() as f64;
        lists.into_iter().sum::<Option<f64>>().map(|sum| sum / n)
    }
}

impl Marginal {
    /// The largest entries of a row: value of the last node, and number. A row is one combination of the other nodes.
    pub fn top(&self, row: usize, n: usize) -> Vec<(u32, f64)> {
        let size = self.sizes[self.sizes.len() - 1] as usize;
        let mut entries: Vec<(u32, f64)> = (0..).zip(self.values[row * size..][..size].iter().copied()).collect();
        let largest_first = |x: &(u32, f64), y: &(u32, f64)| y.1.total_cmp(&x.1).then(x.0.cmp(&y.0));
        if n < entries.len() && n > 0 {
            entries.select_nth_unstable_by(n - 1, largest_first);
        }
        entries.truncate(n);
        entries.sort_by(largest_first);
        entries
    }
}
