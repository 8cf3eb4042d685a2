//! Stochastic variational Bayes: tables learned from a stream, one batch of records after another.
//!
//! Each batch is one step along the natural gradient of the bound (theory.md, section 15.4; Hoffman, Blei, Wang and Paisley
//! 2013): expected counts of the batch, scaled up to the declared number of tokens, are mixed into the counts of all tables.
//! Rows that belong to a value of a seen root node, such as the topics of a document, are not scaled: they are fitted
//! within the batch that shows them, and what earlier batches showed of the same value is kept.

mod batch;
mod bound;
mod local;
mod resume;

pub use local::Returned;

use super::dirichlet::{CellCounts, ExpectedLogs, expected_logs, expected_logs_of};
use super::layout::Layout;
use super::pass::{Tally, Work};
use super::start::{self, Spread, StartTables};
use super::stream_tables::StreamTable;
use crate::Seed;
use crate::control::Control;
use crate::counts::Counts;
use crate::engine::Problem;
use crate::engine::mixer::Mixer;
use crate::engine::replicates::pool;
use crate::engine::tables::{CountsOfRows, TableMeans};
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex, why_not_local};
use crate::prior::{Prior, PseudoCounts};
use crate::simd::Isa;
use batch::Batch;
use hashbrown::HashMap;
use local::{ByValue, LocalTokens, tokens_by_value};
use resume::Saved;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings of stochastic variational Bayes.
#[derive(Debug, Clone, PartialEq)]
pub struct StochasticVb {
    /// Tokens of the whole stream; batches are scaled up to this.
    pub n_tokens: f64,
    /// How fast steps get smaller, above 0.5 and up to 1: step t is (t + delay)^-decay. (The paper's kappa.) The first one
    /// is 1, since there is nothing before it; and a batch with more tokens than batches so far have on average steps
    /// further in that proportion, or its tokens would count less than others.
    pub decay: f64,
    /// Makes early steps smaller. (The paper's tau.)
    pub delay: f64,
    /// Expectations in each batch, rows of local tables being set after each of them. Without local tables there is one.
    pub local_sweeps: u32,
    /// How often the first batch is gone through, with steps of 1: hidden values that start alike must grow apart before
    /// further batches are of use.
    pub first_sweeps: u32,
    /// Instructions to use.
    pub isa: Isa,
    /// Threads, over the records of a batch.
    pub threads: usize,
    /// Weights for the first expectation instead of random ones.
    pub start: Option<StartTables>,
}

impl StochasticVb {
    /// The usual settings for a stream of this many tokens.
    pub fn new(n_tokens: f64) -> Self {
        StochasticVb {
            n_tokens,
            decay: 0.7,
            delay: 1.0,
            local_sweeps: 10,
            first_sweeps: 50,
            isa: Isa::detect(),
            threads: 1,
            start: None,
        }
    }

    fn check(&self) -> Result<()> {
        let StochasticVb { n_tokens, decay, delay, .. } = *self;
        if !(n_tokens >= 1.0 && n_tokens.is_finite()) {
            return Err(Error::Setting(format!("the stream has {n_tokens} tokens; give their number, at least 1")));
        }
        if !(decay > 0.5 && decay <= 1.0) {
            return Err(Error::Setting(format!(
                "kappa is {decay}; it must be above 0.5 and at most 1, or steps do not settle"
            )));
        }
        if !(delay >= 0.0 && delay.is_finite()) {
            return Err(Error::Setting(format!("tau is {delay}; it must be a number from 0 on")));
        }
        if self.local_sweeps == 0 || self.first_sweeps == 0 {
            return Err(Error::Setting("a batch needs at least one expectation".into()));
        }
        Ok(())
    }

    /// The size of a step, counted from 1, for a batch that has this many times the tokens of the average batch.
    pub fn step_size(&self, step: u64, relative_tokens: f64) -> f64 {
        if step <= 1 {
            return 1.0;
        }
        ((step as f64 + self.delay).powf(-self.decay) * relative_tokens).min(1.0)
    }

    /// A learner that has seen nothing yet, with its own copy of the model and the prior. `local` are the seen root nodes whose values have rows of their own, usually
    /// [`local_nodes`](crate::graph::local_nodes).
    ///
    /// # Errors
    /// When a setting is out of its range, a local node cannot be one, or a table has too many cells.
    pub fn begin(
        &self,
        model: &Model,
        prior: &Prior,
        is_seen: &[bool],
        local: &[NodeIndex],
        seed: Seed,
    ) -> Result<Learner> {
        self.check()?;
        for &node in local {
            if let Some(why) = why_not_local(model, is_seen, node) {
                let name = &model.node(node).name;
                return Err(Error::Setting(format!("--local {name}: the node {why}; leave it out, or give `none`")));
            }
        }
        let mut tables = Vec::new();
        for table in (0..model.tables().len() as u32).map(TableIndex) {
            let spec = &model.tables()[table.ix()];
            if spec.n_rows() * f64::from(spec.child_size) > 1e38 {
                return Err(Error::TooCostly(format!("the table of `{}` is too large", model.table_name(table))));
            }
            let first = spec.members[0];
            let parent = model.node(first).parents.iter().copied().find(|parent| local.contains(parent));
            let counted = if local.contains(&first) {
                Counted::Root(first)
            } else {
                Counted::Table(Box::new(StreamTable::new(model, table, is_seen, parent)))
            };
            tables.push((counted, parent));
        }
        Ok(Learner {
            settings: self.clone(),
            model: Arc::new(model.clone()),
            prior: Arc::new(prior.clone()),
            seed,
            tables,
            local: local.iter().map(|&node| (node, LocalTokens::default())).collect(),
            pool: Some(pool(self.threads)?),
            work: Work::default(),
            n_steps: 0,
            n_tokens_seen: 0,
            is_first_pass: true,
            digest: Mixer::default(),
            to_pass_over: None,
        })
    }
}

/// For each node whether the prior tells its values apart, so that it matters which is which.
pub fn nodes_with_uneven_prior(model: &Model, prior: &Prior) -> Vec<bool> {
    let mut is_uneven = vec![false; model.n_nodes()];
    for node in model.node_indices() {
        if !matches!(prior.table(model.node(node).table), PseudoCounts::Even { .. }) {
            model.node(node).parents.iter().chain([&node]).for_each(|member| is_uneven[member.ix()] = true);
        }
    }
    is_uneven
}

/// How a table is counted.
#[derive(Debug)]
enum Counted {
    /// By cells.
    Table(Box<StreamTable>),
    /// The table of a local node itself: its tokens are simply counted.
    Root(NodeIndex),
}

/// Tables under way.
#[derive(Debug)]
pub struct Learner {
    settings: StochasticVb,
    model: Arc<Model>,
    prior: Arc<Prior>,
    seed: Seed,
    /// By table, with the local parent it has.
    tables: Vec<(Counted, Option<NodeIndex>)>,
    local: Vec<(NodeIndex, LocalTokens)>,
    pool: Option<rayon::ThreadPool>,
    work: Work,
    n_steps: u64,
    n_tokens_seen: u64,
    is_first_pass: bool,
    /// Of the batches so far.
    digest: Mixer,
    /// What an earlier run has learned, until the batches that it did so from have gone by.
    to_pass_over: Option<Box<Saved>>,
}

impl Learner {
    /// Steps so far.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// Tokens of all batches so far, all passes together.
    pub fn n_tokens_seen(&self) -> u64 {
        self.n_tokens_seen
    }

    /// How often values of local nodes came back in a later batch of the first pass.
    pub fn returned(&self) -> Vec<Returned> {
        self.local.iter().map(|(node, tokens)| tokens.returned(*node)).collect()
    }

    /// Numbers that the tables have room for: what memory follows beside one batch.
    pub fn capacity(&self) -> usize {
        let of_table = |(counted, _): &(Counted, _)| match counted {
            Counted::Table(table) => table.capacity(),
            Counted::Root(_) => 0,
        };
        let of_local = self.local.iter().map(|(_, tokens)| tokens.capacity());
        self.tables.iter().map(of_table).sum::<usize>() + of_local.sum::<usize>()
    }

    /// Says that the stream starts again: local rows are replaced from now on, not added to.
    pub fn start_pass(&mut self) {
        self.is_first_pass &= self.n_steps == 0;
    }

    /// Goes through a whole pass of batches, bound to the model.
    ///
    /// # Errors
    /// When cancelled or out of time (the tables are then those of the batches before), when a batch cannot be had, or as for
    /// [`Learner::step`].
    pub fn pass(&mut self, batches: impl IntoIterator<Item = Result<Counts>>, control: &mut Control<'_>) -> Result<()> {
        self.start_pass();
        let before = self.n_tokens_seen;
        for batch in batches {
            control.tick("svb", (self.n_tokens_seen - before) as f64 / self.settings.n_tokens)?;
            self.step(&batch?)?;
        }
        Ok(())
    }

    /// One step, of the size that is its turn. A batch without tokens is none.
    ///
    /// # Errors
    /// When the batch has unknown cells, does not show a local node, or uses too many cells.
    pub fn step(&mut self, batch: &Counts) -> Result<()> {
        if is_empty(batch) || self.passes_over(batch)? {
            return Ok(());
        }
        let is_new = self.is_first_pass;
        if self.n_steps == 0 {
            for sweep in 0..self.settings.first_sweeps {
                self.move_by(batch, 1.0, is_new && sweep == 0)?;
            }
        } else {
            let step = self.n_steps + 1;
            let average = (self.n_tokens_seen + batch.n_tokens) as f64 / step as f64;
            self.move_by(batch, self.settings.step_size(step, batch.n_tokens as f64 / average), is_new)?;
        }
        self.n_steps += 1;
        self.n_tokens_seen += batch.n_tokens;
        Ok(())
    }

    /// One step of a size that the caller chooses, from 0 to 1; otherwise as [`Learner::step`].
    ///
    /// # Errors
    /// As for [`Learner::step`], and when the size is out of range.
    pub fn step_by(&mut self, batch: &Counts, size: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&size) {
            return Err(Error::Setting(format!("the step is {size}; it must lie between 0 and 1")));
        }
        if is_empty(batch) || self.passes_over(batch)? {
            return Ok(());
        }
        self.move_by(batch, size, self.is_first_pass)?;
        self.n_steps += 1;
        self.n_tokens_seen += batch.n_tokens;
        Ok(())
    }

    /// Mixes a batch into the tables. `is_new` says that its tokens are not in the local rows yet.
    fn move_by(&mut self, counts: &Counts, size: f64, is_new: bool) -> Result<()> {
        self.in_pool(|learner| {
            let (model, prior) = (Arc::clone(&learner.model), Arc::clone(&learner.prior));
            let problem = Problem::new(&model, &prior, counts)?;
            let mut batch = learner.batch(&problem)?;
            let kept = learner.kept_shares(&batch, is_new);
            learner.settle(&mut batch, &kept);
            learner.mix_in(&batch, counts, size, &kept);
            if is_new {
                for (node, tokens) in &mut learner.local {
                    batch.local_tokens[node].iter().for_each(|(&value, &count)| tokens.add(value, count));
                }
            }
            Ok(())
        })
    }

    fn in_pool<R: Send>(&mut self, f: impl FnOnce(&mut Self) -> R + Send) -> R {
        match self.pool.take() {
            None => f(self),
            Some(pool) => {
                let result = pool.install(|| f(self));
                self.pool = Some(pool);
                result
            }
        }
    }

    /// Lays out the cells of a batch, with the weights that the tables have now.
    fn batch(&self, problem: &Problem<'_>) -> Result<Batch> {
        problem.check_whole("svb")?;
        if !problem.counts.unknown.is_empty() {
            return Err(Error::Setting(
                "a stream cannot have unknown cells (`?`); use vb, which holds all records".into(),
            ));
        }
        let mut local_tokens = HashMap::new();
        for (node, _) in &self.local {
            local_tokens.insert(*node, tokens_by_value(&self.model, problem.counts, *node)?);
        }
        let layout = Layout::new(problem)?;
        let mut batch = Batch::new(layout, problem.counts, local_tokens);
        let is_untouched = self.tables.iter().all(|(counted, _)| match counted {
            Counted::Table(table) => table.capacity() == 0,
            Counted::Root(_) => true,
        });
        if is_untouched {
            batch.weights = match &self.settings.start {
                Some(start) => start::given(&batch.layout, &self.model, start, false, true)?,
                None => start::random(&batch.layout, Spread::Moderate, true, self.seed, 0),
            };
            batch.logs.iter_mut().zip(batch.weights.iter()).for_each(|(log, weight)| *log = weight.ln());
        } else {
            for own in &batch.layout.tables {
                self.stream_table(own.table).read(own, &mut batch.counts, &mut batch.rows);
            }
            let Batch { layout, counts, rows, row_psi, logs, weights, .. } = &mut batch;
            let as_given = vec![1.0; layout.tables.len()];
            let counts = CellCounts { cells: counts, rows };
            expected_logs(
                layout,
                &as_given,
                counts,
                self.settings.isa,
                ExpectedLogs { weights, logs: Some(logs), row_psi },
            );
        }
        Ok(batch)
    }

    /// What stays of the counts of each local value in the batch.
    fn kept_shares(&self, batch: &Batch, is_new: bool) -> ByValue<f64> {
        let local = self.local.iter();
        local.map(|(node, tokens)| (*node, tokens.kept_shares(&batch.local_tokens[node], is_new))).collect()
    }

    /// Expectations, local rows being set after each of them. Afterwards `batch.expected` are those of the last one.
    fn settle(&mut self, batch: &mut Batch, kept: &ByValue<f64>) -> Tally {
        // What other batches brought to the local rows.
        let (mut others, mut other_rows) = (vec![0.0; batch.layout.n_cells], vec![0.0; batch.layout.n_rows]);
        let locals: Vec<usize> =
            (0..batch.layout.tables.len()).filter(|&ix| self.is_local(batch.layout.tables[ix].table)).collect();
        for own in locals.iter().map(|&ix| &batch.layout.tables[ix]) {
            let (counted, parent) = &self.tables[own.table.ix()];
            let Counted::Table(table) = counted else { continue };
            table.read_shares(own, &kept[&parent.expect("it is local")], &mut others, &mut other_rows);
        }
        let n_sweeps = if locals.is_empty() { 1 } else { self.settings.local_sweeps };
        let mut tally = Tally::default();
        for _ in 0..n_sweeps {
            tally = batch.expect(self.settings.isa, &mut self.work);
            for &ix in &locals {
                let Batch { layout, counts, rows, row_psi, logs, weights, expected, expected_rows, .. } = batch;
                let own = &layout.tables[ix];
                for cell in own.cells() {
                    counts[cell] = others[cell] + expected[cell];
                }
                for row in own.rows() {
                    rows[row] = other_rows[row] + expected_rows[row];
                }
                let counts = CellCounts { cells: counts, rows };
                expected_logs_of(
                    own,
                    1.0,
                    counts,
                    self.settings.isa,
                    &mut ExpectedLogs { weights, logs: Some(logs), row_psi },
                );
            }
        }
        tally
    }

    fn mix_in(&mut self, batch: &Batch, counts: &Counts, size: f64, kept: &ByValue<f64>) {
        let shared = size * self.settings.n_tokens / counts.n_tokens as f64;
        for (counted, parent) in &mut self.tables {
            let Counted::Table(table) = counted else { continue };
            match parent {
                None => table.fade(1.0 - size),
                Some(parent) => kept[parent].iter().for_each(|(&value, &share)| table.fade_part(value, share)),
            }
        }
        for own in &batch.layout.tables {
            if let (Counted::Table(table), parent) = &mut self.tables[own.table.ix()] {
                let times = if parent.is_some() { 1.0 } else { shared };
                table.add(own, &batch.expected, &batch.expected_rows, times);
            }
        }
        for (table, family, count) in &batch.layout.certain {
            if let (Counted::Table(table), parent) = &mut self.tables[table.ix()] {
                let times = if parent.is_some() { 1.0 } else { shared };
                table.add_at(family, times * batch.layout.unit.tokens(*count));
            }
        }
    }

    fn is_local(&self, table: TableIndex) -> bool {
        self.tables[table.ix()].1.is_some()
    }

    fn stream_table(&self, table: TableIndex) -> &StreamTable {
        match &self.tables[table.ix()].0 {
            Counted::Table(table) => table,
            // A local node is seen in every record and has no parents.
            Counted::Root(_) => unreachable!("the table of a seen root node has no cells to weigh"),
        }
    }

    /// Means and spreads of all rows that have counts.
    pub fn tables(&self) -> Vec<TableMeans> {
        let of_table = |(counted, _): &(Counted, _)| match counted {
            Counted::Table(table) => table.row_counts(),
            Counted::Root(node) => {
                let (_, tokens) = self.local.iter().find(|(local, _)| local == node).expect("it is local");
                BTreeMap::from([(Vec::new(), tokens.row())])
            }
        };
        CountsOfRows(self.tables.iter().map(of_table).collect()).dirichlet_means(&self.model, &self.prior)
    }
}

/// Whether a batch has nothing to learn from.
fn is_empty(batch: &Counts) -> bool {
    batch.n_tokens == 0 && batch.unknown.is_empty()
}
