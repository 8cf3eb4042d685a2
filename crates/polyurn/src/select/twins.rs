//! Candidates that are one model under several names: they would share its probability out between them.
//!
//! Told where it is cheap: hidden nodes that say nothing are left out, seen nodes keep their names, hidden ones are matched by what
//! is around them, and then every table and its pseudo-counts are compared. What passes is the same; of models with hidden nodes
//! that only a search could match, nothing is said.

use super::field::Field;
use super::scored::Scored;
use crate::graph::{Model, NodeIndex};
use crate::prior::{Prior, PseudoCounts};
use crate::warning::Warning;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// How far pseudo-counts that are the same may differ, relative to them.
const ROUNDING: f64 = 1e-12;
/// Rounds in which nodes learn what is around them.
const MOST_ROUNDS: usize = 16;

/// A warning for each model that was found under several names.
pub fn same_models(field: &Field, found: &[Option<Scored>]) -> Vec<Warning> {
    let bare: Vec<Option<Bare<'_>>> = found.iter().map(|found| found.as_ref().map(Bare::new)).collect();
    let mut by_look: BTreeMap<Vec<u64>, Vec<Vec<usize>>> = BTreeMap::new();
    for (ix, one) in bare.iter().enumerate() {
        let Some(one) = one else { continue };
        let groups = by_look.entry(one.look()).or_default();
        let prior = |ix: usize| Prior::build(bare[ix].as_ref()?.model, field.settings(&field.candidates()[ix])).ok();
        let is_same = |group: &&mut Vec<usize>| {
            let other = bare[group[0]].as_ref().expect("it was looked at");
            let priors = prior(group[0]).zip(prior(ix));
            priors.is_some_and(|(its, own)| other.is_same(&its, one, &own))
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(ix),
            None => groups.push(vec![ix]),
        }
    }
    let mut twins: Vec<Vec<usize>> = by_look.into_values().flatten().filter(|group| group.len() > 1).collect();
    twins.sort();
    let name = |ix: usize| field.candidates()[ix].model.clone();
    twins.into_iter().map(|group| Warning::SameModel { models: group.into_iter().map(name).collect() }).collect()
}

/// A model without the hidden nodes that say nothing: those of one value, and those with nothing below them that does.
struct Bare<'m> {
    model: &'m Model,
    /// Size and shape of the prior, and its rate.
    total: [f64; 3],
    /// The nodes that are left, those that look alike side by side, and what they look like.
    nodes: Vec<(u64, NodeIndex)>,
}

impl<'m> Bare<'m> {
    fn new(found: &'m Scored) -> Self {
        let model = &found.model;
        let mut says_something = found.is_seen.clone();
        for &at in model.topological_order().iter().rev() {
            let node = model.node(at);
            let is_heard = node.size > 1 && node.children.iter().any(|child| says_something[child.ix()]);
            says_something[at.ix()] |= is_heard;
        }
        let is_kept = |node: NodeIndex| says_something[node.ix()];
        let all = || (0..model.n_nodes() as u32).map(NodeIndex);
        let first = |node: NodeIndex| {
            let name = found.is_seen[node.ix()].then_some(&model.node(node).name);
            hash(&(name, model.node(node).size))
        };
        let mut looks: Vec<u64> = all().map(first).collect();
        let n_kept = all().filter(|&at| is_kept(at)).count();
        for _ in 0..n_kept.min(MOST_ROUNDS) {
            let around = |nodes: &[NodeIndex]| {
                let mut looks: Vec<u64> = nodes.iter().filter(|&&at| is_kept(at)).map(|at| looks[at.ix()]).collect();
                looks.sort_unstable();
                looks
            };
            let next = |at: NodeIndex| {
                let node = model.node(at);
                let tied = around(&model.tables()[node.table.ix()].members);
                hash(&(looks[at.ix()], around(&node.parents), around(&node.children), tied))
            };
            looks = all().map(next).collect();
        }
        let mut nodes: Vec<(u64, NodeIndex)> = all().filter(|&at| is_kept(at)).map(|at| (looks[at.ix()], at)).collect();
        nodes.sort_unstable();
        Bare { model, total: [found.score.a, found.score.shape, found.score.rate], nodes }
    }

    fn look(&self) -> Vec<u64> {
        self.nodes.iter().map(|(look, _)| *look).collect()
    }

    /// Whether it is another one that looks alike, node by node, with these priors.
    fn is_same(&self, prior: &Prior, other: &Bare<'_>, other_prior: &Prior) -> bool {
        let partner: BTreeMap<NodeIndex, NodeIndex> =
            self.nodes.iter().zip(&other.nodes).map(|((_, own), (_, its))| (*own, *its)).collect();
        let is_same_node = |(own, its): (&NodeIndex, &NodeIndex)| {
            let (own, its) = (self.model.node(*own), other.model.node(*its));
            let parents: Vec<Option<NodeIndex>> = own.parents.iter().map(|at| partner.get(at).copied()).collect();
            let is_in_order = parents.iter().copied().eq(its.parents.iter().copied().map(Some));
            let own_parents: BTreeSet<NodeIndex> = parents.into_iter().flatten().collect();
            let is_left = |at: &NodeIndex| other.nodes.iter().any(|(_, node)| node == at);
            let its_parents: BTreeSet<NodeIndex> = its.parents.iter().copied().filter(is_left).collect();
            let (own_table, its_table) = (&self.model.tables()[own.table.ix()], &other.model.tables()[its.table.ix()]);
            let members = own_table.members.iter().filter_map(|at| partner.get(at).copied());
            let is_tied = own_table.members.len() > 1 || its_table.members.len() > 1;
            own.size == its.size
                && own_parents == its_parents
                && members.collect::<BTreeSet<_>>() == its_table.members.iter().copied().collect()
                && match (prior.table(own.table), other_prior.table(its.table)) {
                    (PseudoCounts::Even { cell: own, .. }, PseudoCounts::Even { cell: its, .. }) => {
                        // A shared table is read by the places of parents.
                        is_close(own.ln(), its.ln()) && (!is_tied || is_in_order)
                    }
                    (own, its) => is_in_order && own == its,
                }
        };
        let is_total_same = self.total.iter().zip(&other.total).all(|(own, its)| is_close(*own, *its));
        is_total_same && partner.iter().all(is_same_node)
    }
}

fn is_close(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= ROUNDING * one.abs().max(other.abs()).max(1.0)
}

/// The same for the same value on every machine.
fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
