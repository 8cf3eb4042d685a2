//! Which hidden labels can be exchanged without changing anything.
//!
//! Values of a node that is never seen are interchangeable when the prior treats them alike: exchanging them maps every
//! state of the urn to one of the same probability. Nodes that are tied are permuted together, and so are their parents,
//! position by position.

use crate::counts::Counts;
use crate::engine::Problem;
use crate::graph::{Model, NodeIndex};
use crate::prior::Prior;

/// Hidden nodes whose labels are permuted together, and the sets of labels that can be exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelClass {
    /// The nodes, ascending.
    pub nodes: Vec<NodeIndex>,
    /// Their common size.
    pub size: u32,
    /// Sets of two or more interchangeable labels.
    pub sets: Vec<Vec<u32>>,
}

/// Labels of larger nodes are left alone: they are beyond exact answers with or without symmetry, and other engines ask
/// [`has_too_many_labels`].
pub const MAX_LABELS: u32 = 1000;

/// Whether there are labels that are left alone here though they may be exchangeable.
pub fn has_too_many_labels(problem: &Problem<'_>) -> bool {
    let seen = problem.counts.seen_anywhere();
    let model = problem.model;
    model.node_indices().any(|node| !seen[node.ix()] && model.node(node).size > MAX_LABELS)
}

/// All classes with at least one set of interchangeable labels.
pub fn label_classes(model: &Model, prior: &Prior, counts: &Counts) -> Vec<LabelClass> {
    let seen = counts.seen_anywhere();
    classes(model)
        .into_iter()
        .filter(|nodes| nodes.iter().all(|node| !seen[node.ix()]) && model.node(nodes[0]).size <= MAX_LABELS)
        .filter_map(|nodes| {
            let size = model.node(nodes[0]).size;
            let sets = interchangeable(model, prior, &nodes, size);
            (!sets.is_empty()).then_some(LabelClass { nodes, size, sets })
        })
        .collect()
}

/// Nodes whose labels must be permuted together.
fn classes(model: &Model) -> Vec<Vec<NodeIndex>> {
    let mut leader: Vec<usize> = (0..model.n_nodes()).collect();
    let mut join = |a: NodeIndex, b: NodeIndex| {
        let (low, high) = (leader[a.ix()].min(leader[b.ix()]), leader[a.ix()].max(leader[b.ix()]));
        leader.iter_mut().filter(|entry| **entry == high).for_each(|entry| *entry = low);
    };
    for table in model.tables() {
        for &member in &table.members[1..] {
            let first = table.members[0];
            join(first, member);
            for (&a, &b) in model.node(first).parents.iter().zip(&model.node(member).parents) {
                join(a, b);
            }
        }
    }
    (0..model.n_nodes())
        .map(|class| model.node_indices().filter(|node| leader[node.ix()] == class).collect::<Vec<_>>())
        .filter(|nodes| !nodes.is_empty())
        .collect()
}

/// Greedy partition of the labels: exchangeability of pairs is an equivalence, so comparing with one member is enough.
fn interchangeable(model: &Model, prior: &Prior, nodes: &[NodeIndex], size: u32) -> Vec<Vec<u32>> {
    let mut sets: Vec<Vec<u32>> = Vec::new();
    for label in 0..size {
        match sets.iter_mut().find(|set| can_exchange(model, prior, nodes, set[0], label)) {
            Some(set) => set.push(label),
            None => sets.push(vec![label]),
        }
    }
    sets.retain(|set| set.len() > 1);
    sets
}

fn can_exchange(model: &Model, prior: &Prior, nodes: &[NodeIndex], v: u32, w: u32) -> bool {
    model.node_indices().all(|node_ix| {
        let node = model.node(node_ix);
        let positions: Vec<bool> = node.parents.iter().chain([&node_ix]).map(|member| nodes.contains(member)).collect();
        !positions.contains(&true) || prior.table(node.table).is_symmetric(&positions, v, w)
    })
}
