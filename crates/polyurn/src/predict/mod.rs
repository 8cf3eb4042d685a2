//! A fit applied to new records: their probability, and the posterior of what they do not show.
//!
//! A [`Predictor`] holds the tables of a fit. A [`Question`] is a set of seen nodes and a set of nodes that one wants to know
//! about, compiled once for all records that show the same nodes. Records with one unseen node take a direct way, all
//! others the messages of a [`Plan`](crate::plan::Plan). A value that the fit does not know may open a row of its own:
//! [`NewRows`].

mod allocation;
mod direct;
mod new_rows;
mod question;
mod slots;

pub use allocation::Allocation;
pub use new_rows::NewRows;
pub use question::{Question, Workspace};

use crate::decomposition::probabilities;
use crate::error::{Error, Result};
use crate::fit_file::{FitFile, StoredDraw};
use crate::graph::{Model, ModelSpec, NodeIndex, NodeSpec, Size, TableIndex};
use crate::plan::CellWeights;
use direct::Transposed;
use slots::{Slot, open_roots};
use std::sync::{Arc, Mutex};

/// Which tables of a fit are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Draw {
    /// Those that the method gives: posterior means, or points.
    #[default]
    Means,
    /// Those of the best allocation.
    Best,
    /// Those of a draw from the posterior, counted from 0.
    Number(usize),
}

impl Draw {
    /// What the fit has of it; nothing for the tables that the method gives.
    ///
    /// # Errors
    /// When there is no such draw.
    pub fn stored(self, fit: &FitFile) -> Result<Option<&StoredDraw>> {
        match (self, &fit.best, fit.draws.len()) {
            (Draw::Means, ..) => Ok(None),
            (Draw::Best, Some(best), _) => Ok(Some(best)),
            (Draw::Number(ix), _, n) if ix < n => Ok(Some(&fit.draws[ix])),
            (_, None, 0) => Err(Error::Setting(format!(
                "this fit by {} holds no draws; leave --draw out, or fit with --method smc or gibbs",
                fit.method
            ))),
            (_, _, 0) => Err(Error::Setting(
                "this fit holds no draw but the best; give `--draw best`, or fit with --draws N to keep more".into(),
            )),
            (_, _, n) => {
                Err(Error::Setting(format!("this fit holds {n} draws; give a number from 1 to {n}, or `best`")))
            }
        }
    }
}

/// Tables of a fit, ready for new records.
///
/// Values of a record are those of the fit. In a root node that may have new values ([`Predictor::new_value`]) its size
/// stands for a value that the fit does not know.
#[derive(Debug)]
pub struct Predictor<'f> {
    fit: &'f FitFile,
    /// The model with one more value in each open root.
    model: Model,
    /// Probabilities of each table, row by row, of the model with more values.
    tables: Vec<Vec<f64>>,
    /// For each table the open root among its parents.
    slots: Vec<Option<Slot>>,
    /// The open roots.
    open: Vec<NodeIndex>,
    /// For each open root the rows of a new value of which nothing is known.
    prior_rows: Vec<NewRows>,
    transposed: Mutex<Vec<(TableIndex, usize, Arc<Transposed>)>>,
}

impl<'f> Predictor<'f> {
    /// Takes up the tables of a fit.
    ///
    /// # Errors
    /// When tables are averages over namings of hidden values, when the fit has no best allocation, or when a table is too
    /// large.
    pub fn new(fit: &'f FitFile, draw: Draw) -> Result<Self> {
        let means = match draw.stored(fit)? {
            Some(stored) => &stored.tables,
            None if !fit.label_averaged.is_empty() => {
                return Err(Error::Setting(format!(
                    "tables of this fit are averages over all namings of {}, which say nothing about single records; fit \
                     with --method smc, gibbs, vb or em",
                    fit.label_averaged.join(", ")
                )));
            }
            None => &fit.tables,
        };
        let open = open_roots(fit);
        let model = with_open_roots(&fit.model, &open)?;
        let slots = slots::slots_of(&model, &open);
        let mut tables = Vec::with_capacity(means.len());
        for (table, slot) in means.iter().zip(&slots) {
            let pseudo = &fit.prior.tables[table.table.ix()];
            let known = probabilities(&fit.model, pseudo, table)?;
            let member = fit.model.tables()[table.table.ix()].members[0];
            tables.push(match slot {
                Some(slot) => slot.widened(&known, pseudo, &fit.model.tables()[table.table.ix()]),
                // A new value of a root is none to sum over; where a record has it, see `Weights`.
                None if open.contains(&member) => [&known[..], &[0.0]].concat(),
                None => known,
            });
        }
        let transposed = Mutex::new(Vec::new());
        let mut predictor = Predictor { fit, model, tables, slots, open, prior_rows: Vec::new(), transposed };
        predictor.prior_rows = predictor.open.iter().map(|&root| predictor.new_rows(root, &[])).collect();
        Ok(predictor)
    }

    /// The fit.
    pub fn fit(&self) -> &'f FitFile {
        self.fit
    }

    /// The root nodes that may have new values: seen, with rows below them that belong to their values alone.
    pub fn open_roots(&self) -> &[NodeIndex] {
        &self.open
    }

    /// The code of a value that the fit does not know; none where such a value has no meaning.
    pub fn new_value(&self, node: NodeIndex) -> Option<u32> {
        self.open.contains(&node).then(|| self.fit.model.node(node).size)
    }

    /// Hidden nodes: those that the data of the fit do not show.
    pub fn hidden(&self) -> Vec<NodeIndex> {
        self.fit.model.node_indices().filter(|node| !self.fit.is_seen[node.ix()]).collect()
    }

    /// ln of the probability of a root's value by itself; 0 for a new value, which has none: probabilities of its records
    /// are given it.
    pub fn ln_root(&self, node: NodeIndex, value: u32) -> f64 {
        if self.new_value(node) == Some(value) {
            return 0.0;
        }
        self.tables[self.model.node(node).table.ix()][value as usize].ln()
    }
}

/// The tables, with rows of new values in place of those that stand in for them.
struct Weights<'a> {
    predictor: &'a Predictor<'a>,
    /// For each open root the rows of the record's new value.
    new: &'a [Option<&'a NewRows>],
}

impl CellWeights for Weights<'_> {
    #[inline]
    fn weight(&self, table: TableIndex, row: u64, child: u32) -> f64 {
        let shape = &self.predictor.model.tables()[table.ix()];
        let child_size = shape.child_size as usize;
        if child + 1 == shape.child_size
            && let Some(root) = self.predictor.open.iter().position(|open| *open == shape.members[0])
        {
            // What is asked about a record with a new value is the rest, given it.
            return if self.new[root].is_some() { 1.0 } else { 0.0 };
        }
        if let Some(slot) = &self.predictor.slots[table.ix()]
            && let Some(Some(new)) = self.new.get(slot.root)
            && let Some(row) = slot.row_of_new(row)
        {
            return new.row(table, row, child_size)[child as usize];
        }
        self.predictor.tables[table.ix()][row as usize * child_size + child as usize]
    }
}

/// The same model with one more value in some roots.
fn with_open_roots(model: &Model, open: &[NodeIndex]) -> Result<Model> {
    let sizes: Vec<u32> =
        model.node_indices().map(|node| model.node(node).size + u32::from(open.contains(&node))).collect();
    let nodes = model.nodes().iter().map(|node| NodeSpec { name: node.name.clone(), size: Size::FromData, span: None });
    let edges = model
        .node_indices()
        .flat_map(|child| model.node(child).parents.iter().map(move |parent| (parent.ix(), child.ix())));
    let tied = model.tables().iter().filter(|table| table.members.len() > 1);
    let spec = ModelSpec {
        nodes: nodes.collect(),
        edges: edges.collect(),
        tied: tied.map(|table| table.members.iter().map(|node| node.ix()).collect()).collect(),
        added: Vec::new(),
        text: None,
    };
    Model::build(&spec, &sizes)
}
