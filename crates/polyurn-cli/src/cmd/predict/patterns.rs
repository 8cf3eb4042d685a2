//! Questions about rows, one for each set of nodes that rows show.

use super::block::Block;
use super::rows::Binding;
use polyurn::Result;
use polyurn::graph::NodeIndex;
use polyurn::predict::{Predictor, Question};
use std::collections::HashMap;
use std::sync::Arc;

/// What is asked about rows that show the same nodes: all that is wanted, or only the probability.
#[derive(Debug, Clone)]
pub struct Pattern {
    pub full: Arc<Question>,
    pub plain: Arc<Question>,
}

/// All questions so far.
#[derive(Debug)]
pub struct Patterns<'a> {
    predictor: &'a Predictor<'a>,
    /// Nodes that are always wanted.
    hidden: Vec<NodeIndex>,
    /// Whether missing values of columns are wanted too.
    impute: bool,
    by_seen: HashMap<Vec<NodeIndex>, Pattern>,
}

impl<'a> Patterns<'a> {
    /// None yet. `hidden` nodes are wanted where they are not shown.
    pub fn new(predictor: &'a Predictor<'a>, hidden: Vec<NodeIndex>, impute: bool) -> Self {
        Patterns { predictor, hidden, impute, by_seen: HashMap::new() }
    }

    /// The questions about each row of a block.
    pub fn of(&mut self, binding: &Binding, block: &Block) -> Result<Vec<Pattern>> {
        let mut patterns: Vec<Pattern> = Vec::with_capacity(block.n_rows());
        for row in 0..block.n_rows() {
            let pattern = match patterns.last() {
                Some(last) if block.shows_the_same(row - 1, row) => last.clone(),
                _ => self.find(binding, block.seen(row))?,
            };
            patterns.push(pattern);
        }
        Ok(patterns)
    }

    fn find(&mut self, binding: &Binding, seen: Vec<NodeIndex>) -> Result<Pattern> {
        if let Some(pattern) = self.by_seen.get(&seen) {
            return Ok(pattern.clone());
        }
        let mut wanted: Vec<NodeIndex> = self.hidden.iter().copied().filter(|node| !seen.contains(node)).collect();
        if self.impute {
            wanted.extend(binding.nodes().filter(|node| !seen.contains(node) && !self.hidden.contains(node)));
            wanted.sort_unstable();
        }
        let pattern = Pattern {
            full: Arc::new(self.predictor.question(&seen, &wanted)?),
            plain: Arc::new(self.predictor.question(&seen, &[])?),
        };
        self.by_seen.insert(seen, pattern.clone());
        Ok(pattern)
    }
}
