//! What every engine is given.

use super::lines::Layout;
use crate::Seed;
use crate::counts::Counts;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex};
use crate::plan::{Plan, check_reachable_rows};
use crate::prior::Prior;
use std::sync::OnceLock;

/// A model, a prior and data that were checked against each other, and the plan compiled for them.
#[derive(Debug)]
pub struct Problem<'a> {
    /// The model.
    pub model: &'a Model,
    /// Its prior.
    pub prior: &'a Prior,
    /// The records.
    pub counts: &'a Counts,
    /// One pattern per block of `counts`, in the same order.
    pub plan: Plan,
    /// What particles keep; it follows from the rest.
    layout: OnceLock<Layout>,
}

impl<'a> Problem<'a> {
    /// Compiles the plan and checks that no reachable row lacks pseudo-counts.
    ///
    /// # Errors
    /// A row without pseudo-counts that a token can reach; counts beyond 64 bits in a tied table; unseen nodes that cannot be summed out in memory.
    pub fn new(model: &'a Model, prior: &'a Prior, counts: &'a Counts) -> Result<Self> {
        assert_eq!(model.n_nodes(), counts.n_nodes(), "counts are bound to the model");
        let most_uses = model.tables().iter().map(|table| table.members.len() as u64).max().unwrap_or(1);
        if counts.n_tokens.checked_mul(most_uses).is_none() {
            return Err(Error::Setting(format!(
                "{} tokens use a tied table {most_uses} times each, more than 64 bits can count; scale the counts down",
                counts.total()
            )));
        }
        check_reachable_rows(model, prior)?;
        let seen_sets: Vec<Vec<NodeIndex>> =
            counts.blocks.iter().map(|block| block.seen.iter().copied().map(NodeIndex).collect()).collect();
        let plan = Plan::compile(model, &seen_sets)?;
        Ok(Problem { model, prior, counts, plan, layout: OnceLock::new() })
    }

    /// For what needs whole tokens.
    ///
    /// # Errors
    /// When counts are fractions.
    pub fn check_whole(&self, what: &str) -> Result<()> {
        if self.counts.unit.is_token() {
            return Ok(());
        }
        Err(Error::Setting(format!(
            "{what}: counts are fractions, which only vb and em do with; scale or round them first"
        )))
    }

    /// The same with another prior for the same model, of which the same rows have pseudo-counts.
    pub fn with_prior<'b>(&self, prior: &'b Prior) -> Problem<'b>
    where
        'a: 'b,
    {
        let Problem { model, counts, plan, .. } = self;
        Problem { model, prior, counts, plan: plan.clone(), layout: OnceLock::new() }
    }

    /// What particles keep, made when first asked for: the pilots and the runs of one job share it.
    ///
    /// # Errors
    /// When the problem is too large for particles.
    pub(super) fn layout(&self) -> Result<&Layout> {
        if let Some(layout) = self.layout.get() {
            return Ok(layout);
        }
        let layout = Layout::new(self)?;
        Ok(self.layout.get_or_init(|| layout))
    }

    /// Tells problems, settings and seeds apart, so that a checkpoint is not taken up by another job.
    ///
    /// # Errors
    /// When the problem is too large for particles.
    pub(crate) fn fingerprint(&self, settings: &str, seed: Seed) -> Result<u64> {
        Ok(self.layout()?.fingerprint(settings, seed))
    }
}
