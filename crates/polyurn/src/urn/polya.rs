//! A plain urn over any model. It is the slow, obvious reference: every engine is a faster way to ask it something.

use crate::graph::{Model, TableIndex};
use crate::math::draw;
use crate::plan::CellWeights;
use crate::prior::{Prior, PseudoCounts};
use hashbrown::HashMap;
use rand::Rng;

/// Tokens placed so far, and for each table row the child values they drew.
#[derive(Debug, Clone)]
pub struct Urn<'a> {
    model: &'a Model,
    prior: &'a Prior,
    rows: HashMap<(TableIndex, Vec<u32>), Row>,
    tokens: Vec<Vec<u32>>,
}

/// The draws from one row. A list rather than counts: picking a random earlier draw is then one step.
#[derive(Debug, Clone, Default)]
struct Row {
    children: Vec<u32>,
    counts: HashMap<u32, u64>,
}

impl<'a> Urn<'a> {
    /// An empty urn.
    pub fn new(model: &'a Model, prior: &'a Prior) -> Self {
        Urn { model, prior, rows: HashMap::new(), tokens: Vec::new() }
    }

    /// The tokens in the urn, one value per node each.
    pub fn tokens(&self) -> &[Vec<u32>] {
        &self.tokens
    }

    /// One forward step (theory.md eq. 7): draws a token and puts it in. Nodes that share a table see what the same token
    /// drew from it before.
    pub fn draw(&mut self, rng: &mut impl Rng) -> &[u32] {
        let model = self.model;
        let mut token = vec![0u32; model.n_nodes()];
        for &node_ix in model.topological_order() {
            let node = model.node(node_ix);
            let parents: Vec<u32> = node.parents.iter().map(|parent| token[parent.ix()]).collect();
            let child = self.draw_child(node.table, &parents, rng);
            token[node_ix.ix()] = child;
            self.row_mut(node.table, parents).put(child);
        }
        self.tokens.push(token);
        self.tokens.last().expect("just pushed")
    }

    /// With the row's pseudo-count against its tokens, either a fresh value or a copy of an earlier one.
    fn draw_child(&self, table: TableIndex, parents: &[u32], rng: &mut impl Rng) -> u32 {
        let pseudo = self.prior.table(table);
        let row = self.rows.get(&(table, parents.to_vec()));
        let n = row.map_or(0, |row| row.children.len());
        let fresh = pseudo.row(parents).value;
        if n > 0 && draw::open_unit(rng) * (fresh + n as f64) >= fresh {
            let children = &row.expect("it has tokens").children;
            return children[draw::below(n as u64, rng) as usize];
        }
        draw_from_prior(pseudo, parents, self.model.tables()[table.ix()].child_size, rng)
    }

    /// Puts a given token in.
    ///
    /// # Panics
    /// When the token does not have one value per node.
    pub fn observe(&mut self, token: &[u32]) {
        assert_eq!(token.len(), self.model.n_nodes(), "one value for each node");
        for (node_ix, node) in self.model.node_indices().zip(self.model.nodes()) {
            let parents = node.parents.iter().map(|parent| token[parent.ix()]).collect();
            self.row_mut(node.table, parents).put(token[node_ix.ix()]);
        }
        self.tokens.push(token.to_vec());
    }

    /// One reverse step (theory.md eq. 8): a token chosen uniformly is taken out and returned.
    pub fn remove(&mut self, rng: &mut impl Rng) -> Option<Vec<u32>> {
        if self.tokens.is_empty() {
            return None;
        }
        let at = draw::below(self.tokens.len() as u64, rng) as usize;
        let token = self.tokens.swap_remove(at);
        for (node_ix, node) in self.model.node_indices().zip(self.model.nodes()) {
            let parents: Vec<u32> = node.parents.iter().map(|parent| token[parent.ix()]).collect();
            self.row_mut(node.table, parents).take(token[node_ix.ix()]);
        }
        Some(token)
    }

    /// ln of the probability that the next token is this one.
    pub fn ln_predictive(&self, token: &[u32]) -> f64 {
        let mut used: HashMap<(TableIndex, Vec<u32>), u64> = HashMap::new();
        let mut ln = 0.0;
        for (node_ix, node) in self.model.node_indices().zip(self.model.nodes()) {
            let mut values: Vec<u32> = node.parents.iter().map(|parent| token[parent.ix()]).collect();
            let (child, table) = (token[node_ix.ix()], self.prior.table(node.table));
            let (cell, row) = (table.cell(&values, child), table.row(&values));
            let held = self.rows.get(&(node.table, values.clone()));
            let n_row = held.map_or(0, |row| row.children.len() as u64);
            let n_cell = held.and_then(|row| row.counts.get(&child)).copied().unwrap_or(0);
            // Uses of the same row and cell of a tied table earlier in this token.
            let in_row = std::mem::replace(used.entry((node.table, values.clone())).or_insert(0), 0);
            used.insert((node.table, values.clone()), in_row + 1);
            values.push(child);
            let in_cell = *used.entry((node.table, values.clone())).or_insert(0);
            used.insert((node.table, values), in_cell + 1);
            let add = |pseudo: crate::prior::PseudoCount, n: u64| {
                if n == 0 { pseudo.ln() } else { (pseudo.value + n as f64).ln() }
            };
            ln += add(cell, n_cell + in_cell) - add(row, n_row + in_row);
        }
        ln
    }

    fn row_mut(&mut self, table: TableIndex, parents: Vec<u32>) -> &mut Row {
        self.rows.entry((table, parents)).or_default()
    }
}

impl Row {
    fn put(&mut self, child: u32) {
        self.children.push(child);
        *self.counts.entry(child).or_insert(0) += 1;
    }

    fn take(&mut self, child: u32) {
        let at = self.children.iter().position(|&other| other == child).expect("the token was put in before");
        self.children.swap_remove(at);
        *self.counts.get_mut(&child).expect("the token was put in before") -= 1;
    }
}

/// A child value in proportion to the pseudo-counts of a row.
pub(crate) fn draw_from_prior(pseudo: &PseudoCounts, parents: &[u32], child_size: u32, rng: &mut impl Rng) -> u32 {
    if let PseudoCounts::Even { .. } = pseudo {
        return draw::below(u64::from(child_size), rng) as u32;
    }
    let weights: Vec<f64> = (0..child_size).map(|child| pseudo.cell(parents, child).value).collect();
    draw::categorical(&weights, weights.iter().sum(), rng) as u32
}

/// The urn's predictive probabilities, for a [`crate::plan::Plan`].
impl CellWeights for Urn<'_> {
    fn weight(&self, table: TableIndex, row: u64, child: u32) -> f64 {
        let sizes = &self.model.tables()[table.ix()].parent_sizes;
        let mut parents = vec![0u32; sizes.len()];
        crate::prior::decode(row as usize, sizes, &mut parents);
        let pseudo = self.prior.table(table);
        let (cell, total) = (pseudo.cell(&parents, child).value, pseudo.row(&parents).value);
        let held = self.rows.get(&(table, parents));
        let n_row = held.map_or(0, |row| row.children.len()) as f64;
        let n_cell = held.and_then(|row| row.counts.get(&child)).copied().unwrap_or(0) as f64;
        (cell + n_cell) / (total + n_row)
    }
}
