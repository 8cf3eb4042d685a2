//! Which counters the records of each pattern use, and which of them are the same in all particles.

use super::class::Class;
use crate::counts::MISSING;
use crate::engine::Problem;
use crate::engine::assignments::for_each_assignment;
use crate::engine::kind::Kind;
use crate::error::{Error, Result};
use crate::graph::{NodeIndex, TableIndex};
use crate::plan::with_ancestors;
use hashbrown::HashMap;

/// One use of a table by a node in records of one pattern.
#[derive(Debug, Clone)]
pub struct Use {
    pub pattern: usize,
    /// The nodes in the positions of the counter.
    pub nodes: Vec<NodeIndex>,
    /// Which of them are seen.
    pub seen: Vec<bool>,
}

/// A use of a counter that is the same in all particles.
#[derive(Debug)]
pub struct CertainUse {
    pub pattern: usize,
    pub table: TableIndex,
    pub kind: Kind,
    pub nodes: Vec<NodeIndex>,
}

/// All uses of all counters.
#[derive(Debug)]
pub struct Uses {
    pub of: HashMap<(TableIndex, Kind), Vec<Use>>,
    /// For each pattern its nodes and their ancestors.
    pub relevant: Vec<Vec<NodeIndex>>,
}

/// Classes, uses that are certain, and the class of each table's cells and rows that are not.
pub type Sorted = (Vec<Class>, Vec<CertainUse>, HashMap<(TableIndex, Kind), usize>);

impl Uses {
    /// Goes through the patterns of a problem; the last one is for tokens in unknown cells if there are any.
    pub fn collect(problem: &Problem<'_>) -> Self {
        let model = problem.model;
        let mut relevant: Vec<Vec<NodeIndex>> =
            problem.plan.patterns().iter().map(|pattern| pattern.relevant.clone()).collect();
        let mut seen_of: Vec<Vec<bool>> = Vec::new();
        for pattern in problem.plan.patterns() {
            let mut seen = vec![false; model.n_nodes()];
            pattern.seen.iter().for_each(|node| seen[node.ix()] = true);
            seen_of.push(seen);
        }
        if let Some(cell) = problem.counts.unknown.first() {
            // Which unknown cell a token falls into differs between particles, so nothing counts as seen.
            let listed: Vec<NodeIndex> = model.node_indices().filter(|node| cell[node.ix()] != MISSING).collect();
            relevant.push(with_ancestors(model, &listed));
            seen_of.push(vec![false; model.n_nodes()]);
        }
        let mut of: HashMap<(TableIndex, Kind), Vec<Use>> = HashMap::new();
        for (pattern, (nodes, seen)) in relevant.iter().zip(&seen_of).enumerate() {
            for &node in nodes {
                let parents = &model.node(node).parents;
                let family: Vec<NodeIndex> = parents.iter().copied().chain([node]).collect();
                for (kind, nodes) in [(Kind::Cell, family.clone()), (Kind::Row, parents.clone())] {
                    let seen = nodes.iter().map(|node| seen[node.ix()]).collect();
                    of.entry((model.node(node).table, kind)).or_default().push(Use { pattern, nodes, seen });
                }
            }
        }
        Uses { of, relevant }
    }

    /// Sorts counters into those that are the same in all particles, and classes of the others.
    ///
    /// # Errors
    /// When a table that must be kept whole has too many cells.
    pub fn classes(&self, problem: &Problem<'_>) -> Result<Sorted> {
        let mut classes: Vec<Class> = Vec::new();
        let mut certain = Vec::new();
        let mut class_of = HashMap::new();
        let mut by_signature: HashMap<Vec<(usize, &[NodeIndex])>, usize> = HashMap::new();
        let mut keys: Vec<&(TableIndex, Kind)> = self.of.keys().collect();
        keys.sort_unstable();
        for &key in keys {
            let uses = &self.of[&key];
            if uses.iter().all(|used| used.seen.iter().all(|&seen| seen)) {
                certain.extend(uses.iter().map(|used| CertainUse {
                    pattern: used.pattern,
                    table: key.0,
                    kind: key.1,
                    nodes: used.nodes.clone(),
                }));
                continue;
            }
            let mut signature: Vec<(usize, &[NodeIndex])> =
                uses.iter().map(|used| (used.pattern, used.nodes.as_slice())).collect();
            signature.sort_unstable();
            let class = match by_signature.get(&signature) {
                Some(&class) => class,
                None => {
                    // What every use shows picks the block; the rest is within it, also where some uses show it.
                    let is_seen = |position: usize| uses.iter().all(|used| used.seen[position]);
                    let is_key = (0..uses[0].seen.len()).map(is_seen).collect();
                    classes.push(Class::new(problem.model, &uses[0].nodes, is_key)?);
                    by_signature.insert(signature, classes.len() - 1);
                    classes.len() - 1
                }
            };
            class_of.insert(key, class);
        }
        Ok((classes, certain, class_of))
    }

    /// Every full assignment that a token in an unknown cell can have.
    ///
    /// # Errors
    /// When there are too many.
    pub fn unknown_states(&self, problem: &Problem<'_>) -> Result<Vec<Vec<u32>>> {
        let relevant = self.relevant.last().expect("a pattern for unknown cells");
        let mut states = Vec::new();
        for cell in &problem.counts.unknown {
            let mut record = cell.clone();
            let unseen: Vec<NodeIndex> = relevant.iter().copied().filter(|node| record[node.ix()] == MISSING).collect();
            let n_states: f64 = unseen.iter().map(|&node| f64::from(problem.model.node(node).size)).product();
            if n_states + states.len() as f64 > 65_536.0 {
                return Err(Error::TooCostly(format!(
                    "a token in one of the {} unknown cells can have more than 65536 joint hidden values; list fewer \
                     unknown cells or use smaller hidden nodes",
                    problem.counts.unknown.len()
                )));
            }
            for_each_assignment(problem.model, &unseen, &mut record, |full| states.push(full.to_vec()));
        }
        Ok(states)
    }
}
