//! Compiling a model and a set of seen-node patterns.

use super::elimination::Elimination;
use crate::error::Result;
use crate::graph::{Model, NodeIndex, TableIndex};
use hashbrown::HashMap;
use std::sync::Arc;

/// A node with its parents, and how their values address a row of its table.
#[derive(Debug, Clone)]
pub struct Family {
    /// The child.
    pub node: NodeIndex,
    /// Its parents, in node order.
    pub parents: Vec<NodeIndex>,
    /// The table it draws from.
    pub table: TableIndex,
    /// Row number = sum of stride times value over the parents; last parent fastest.
    pub strides: Vec<u64>,
}

/// What has to be done for records in which the same nodes are seen.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// The seen nodes, ascending.
    pub seen: Vec<NodeIndex>,
    /// Nodes whose families count: the seen ones and their ancestors, ascending.
    pub relevant: Vec<NodeIndex>,
    /// Relevant nodes that are not seen, ascending.
    pub unseen: Vec<NodeIndex>,
    /// Relevant nodes whose family is wholly seen.
    pub closed: Vec<NodeIndex>,
    /// Relevant nodes whose family has an unseen member.
    pub open: Vec<NodeIndex>,
    /// How the unseen nodes are summed out; shared with other patterns.
    pub elimination: Arc<Elimination>,
}

/// A compiled model: families and one [`Pattern`] per distinct set of seen nodes.
#[derive(Debug, Clone)]
pub struct Plan {
    model: Model,
    families: Vec<Family>,
    patterns: Vec<Pattern>,
}

impl Plan {
    /// Compiles the model for these sets of seen nodes (each ascending), in the same order.
    ///
    /// # Errors
    /// When the unseen part of a pattern is so entangled that a message would not fit in memory.
    pub fn compile(model: &Model, seen_sets: &[Vec<NodeIndex>]) -> Result<Self> {
        let families: Vec<Family> = model.node_indices().map(|node| family(model, node)).collect();
        let mut cache = HashMap::new();
        let patterns = seen_sets
            .iter()
            .map(|seen| compile_pattern(model, &families, seen, &[], &mut cache))
            .collect::<Result<_>>()?;
        Ok(Plan { model: model.clone(), families, patterns })
    }

    /// Compiles one set of seen nodes and keeps some unseen ones that would be left out, since nothing below them is seen:
    /// for those who want to know their posterior.
    ///
    /// # Errors
    /// As for [`Plan::compile`].
    pub fn compile_keeping(model: &Model, seen: &[NodeIndex], kept: &[NodeIndex]) -> Result<Self> {
        let families: Vec<Family> = model.node_indices().map(|node| family(model, node)).collect();
        let pattern = compile_pattern(model, &families, seen, kept, &mut HashMap::new())?;
        Ok(Plan { model: model.clone(), families, patterns: vec![pattern] })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// A node's family.
    pub fn family(&self, node: NodeIndex) -> &Family {
        &self.families[node.ix()]
    }

    /// One pattern per set of seen nodes given to [`Plan::compile`], in that order.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// True when the rows of every table can be numbered by 64 bits, as an evaluator needs. The exact engine does not: to
    /// it a row is a tuple of values.
    pub fn has_numbered_rows(&self) -> bool {
        self.model.tables().iter().all(|table| table.n_rows() < u64::MAX as f64)
    }

    /// Number of different eliminations among the patterns.
    pub fn n_eliminations(&self) -> usize {
        let mut seen: Vec<*const Elimination> =
            self.patterns.iter().map(|pattern| Arc::as_ptr(&pattern.elimination)).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    }
}

fn family(model: &Model, node: NodeIndex) -> Family {
    let parents = model.node(node).parents.clone();
    let mut strides = vec![0u64; parents.len()];
    let mut stride = 1u64;
    for (slot, &parent) in strides.iter_mut().zip(&parents).rev() {
        *slot = stride;
        // Tables with more than 2^64 rows have no row numbers; see `Plan::has_numbered_rows`.
        stride = stride.saturating_mul(u64::from(model.node(parent).size));
    }
    Family { node, parents, table: model.node(node).table, strides }
}

/// Eliminations by unseen nodes and the scopes they have to join.
type Cache = HashMap<(Vec<NodeIndex>, Vec<Vec<NodeIndex>>), Arc<Elimination>>;

fn compile_pattern(
    model: &Model,
    families: &[Family],
    seen: &[NodeIndex],
    kept: &[NodeIndex],
    cache: &mut Cache,
) -> Result<Pattern> {
    let mut is_seen = vec![false; model.n_nodes()];
    seen.iter().for_each(|node| is_seen[node.ix()] = true);
    let relevant = with_ancestors(model, &[seen, kept].concat());
    let unseen: Vec<NodeIndex> = relevant.iter().copied().filter(|node| !is_seen[node.ix()]).collect();
    let scope = |node: NodeIndex| -> Vec<NodeIndex> {
        let family = &families[node.ix()];
        let mut scope: Vec<NodeIndex> =
            family.parents.iter().copied().chain([node]).filter(|member| !is_seen[member.ix()]).collect();
        scope.sort_unstable();
        scope
    };
    let (closed, open): (Vec<NodeIndex>, Vec<NodeIndex>) =
        relevant.iter().copied().partition(|&node| scope(node).is_empty());
    let scopes = maximal(open.iter().map(|&node| scope(node)).collect());
    let key = (unseen.clone(), scopes);
    let elimination = match cache.get(&key) {
        Some(elimination) => elimination.clone(),
        None => {
            let elimination = Arc::new(Elimination::new(model, families, &key.0, &key.1)?);
            cache.insert(key, elimination.clone());
            elimination
        }
    };
    Ok(Pattern { seen: seen.to_vec(), relevant, unseen, closed, open, elimination })
}

/// The nodes and all their ancestors, ascending.
pub(crate) fn with_ancestors(model: &Model, nodes: &[NodeIndex]) -> Vec<NodeIndex> {
    let mut marked = vec![false; model.n_nodes()];
    let mut stack = nodes.to_vec();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut marked[node.ix()], true) {
            stack.extend(&model.node(node).parents);
        }
    }
    model.node_indices().filter(|node| marked[node.ix()]).collect()
}

/// The sets that are in no other set, sorted: what the elimination depends on.
fn maximal(mut scopes: Vec<Vec<NodeIndex>>) -> Vec<Vec<NodeIndex>> {
    scopes.sort_unstable();
    scopes.dedup();
    let contains = |big: &[NodeIndex], small: &[NodeIndex]| small.iter().all(|node| big.binary_search(node).is_ok());
    let keep: Vec<bool> = (0..scopes.len())
        .map(|ix| !(0..scopes.len()).any(|other| other != ix && contains(&scopes[other], &scopes[ix])))
        .collect();
    scopes.into_iter().zip(keep).filter_map(|(scope, keep)| keep.then_some(scope)).collect()
}
