//! What is asked about records that show the same nodes, and how it is answered.

use super::direct::Direct;
use super::{NewRows, Predictor, Weights};
use crate::error::{Error, Result};
use crate::graph::NodeIndex;
use crate::plan::{Evaluator, Plan};

/// A set of seen nodes, and the nodes whose posterior is wanted.
#[derive(Debug)]
pub struct Question {
    plan: Plan,
    wanted: Vec<NodeIndex>,
    direct: Option<Direct>,
}

/// Buffers, and the last answer.
#[derive(Debug, Default)]
pub struct Workspace {
    evaluator: Evaluator,
    /// For each wanted node the probabilities of its values.
    posteriors: Vec<Vec<f64>>,
}

impl Workspace {
    /// The posterior of a wanted node, by its position in the question. All zeros for an impossible record.
    pub fn posterior(&self, wanted: usize) -> &[f64] {
        &self.posteriors[wanted]
    }

    /// The most likely value of a wanted node and its probability; the first of several. None for an impossible record.
    pub fn most_likely(&self, wanted: usize) -> Option<(u32, f64)> {
        let mut best: Option<(u32, f64)> = None;
        for (value, &p) in (0..).zip(&self.posteriors[wanted]) {
            if p > best.map_or(0.0, |best| best.1) {
                best = Some((value, p));
            }
        }
        best
    }
}

impl Question {
    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The nodes whose posterior is wanted.
    pub fn wanted(&self) -> &[NodeIndex] {
        &self.wanted
    }
}

impl Predictor<'_> {
    /// Compiles a question. `seen` ascends, and no wanted node is seen.
    ///
    /// # Errors
    /// When unseen nodes are too entangled to be summed out in memory.
    pub fn question(&self, seen: &[NodeIndex], wanted: &[NodeIndex]) -> Result<Question> {
        let plan = Plan::compile_keeping(&self.model, seen, wanted)?;
        if !plan.has_numbered_rows() {
            return Err(Error::TooCostly("a table of the fit has more rows than can be numbered".into()));
        }
        let direct = Direct::new(self, &plan, wanted);
        Ok(Question { plan, wanted: wanted.to_vec(), direct })
    }

    /// ln of the probability of what a record shows; the posteriors of wanted nodes are left in `work`. `new` holds for each
    /// open root the rows of the record's new value, where it has one. The value of a node that is not seen does not
    /// matter: it has to be [`MISSING`](crate::counts::MISSING).
    pub fn answer(&self, question: &Question, record: &[u32], new: &[Option<&NewRows>], work: &mut Workspace) -> f64 {
        let weights = Weights { predictor: self, new };
        work.posteriors.resize_with(question.wanted.len(), Vec::new);
        if let Some(direct) = &question.direct {
            return direct.answer(&weights, &question.plan, record, &mut work.posteriors);
        }
        for (posterior, &node) in work.posteriors.iter_mut().zip(&question.wanted) {
            posterior.clear();
            posterior.resize(self.model.node(node).size as usize, 0.0);
        }
        let pattern = &question.plan.patterns()[0];
        let posteriors = &mut work.posteriors;
        if question.wanted.is_empty() {
            return work.evaluator.ln_probability(&question.plan, pattern, record, &weights);
        }
        let place = |node: NodeIndex| question.wanted.iter().position(|&wanted| wanted == node);
        let mut last: Option<(NodeIndex, Option<usize>)> = None;
        let emit = |node: NodeIndex, _: u64, child: u32, p: f64| {
            // Cells of one family come one after another.
            let at = match last {
                Some((before, at)) if before == node => at,
                _ => place(node),
            };
            last = Some((node, at));
            if let Some(at) = at {
                posteriors[at][child as usize] += p;
            }
        };
        let ln = work.evaluator.expected_families(&question.plan, pattern, record, &weights, emit);
        // The value that stands for unknown ones is no value to impute.
        for (posterior, &node) in work.posteriors.iter_mut().zip(&question.wanted) {
            posterior.truncate(self.fit.model.node(node).size as usize);
        }
        ln
    }
}
