//! Turns patterns into kernels.

use super::class::{Class, Counted, Pseudo};
use super::kernel::{BucketShape, Kernel, Term, Touch};
use super::uses::{Use, Uses};
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::plan::Pattern;

/// Joint states of a record's unseen nodes up to which they are handled as one variable even where message passing
/// would touch fewer numbers: one flat loop is faster.
const ALWAYS_JOINT: f64 = 64.0;

/// The same for records that use a tied table more than once: only the joint states make such a token exact.
const JOINT_IF_TIED: f64 = 4096.0;

/// What a kernel is made from.
pub struct KernelBuilder<'b, 'a> {
    pub problem: &'b Problem<'a>,
    pub classes: &'b [Class],
    pub counted: &'b [Counted],
    pub uses: &'b Uses,
    /// Which of two groups a table belongs to: only factors of the same group cancel.
    pub group: &'b dyn Fn(TableIndex) -> bool,
}

/// A bucket before its terms are known: the nodes of its states, and the share of each in the state's number.
struct Scope {
    nodes: Vec<NodeIndex>,
    shape: BucketShape,
    /// Explicit states (one value per node of the model), for unknown cells.
    states: Option<Vec<Vec<u32>>>,
}

impl KernelBuilder<'_, '_> {
    /// The kernel of the records of a pattern.
    pub fn pattern(&self, pattern_ix: usize, pattern: &Pattern) -> Kernel {
        let model = self.problem.model;
        let n_joint: f64 = pattern.unseen.iter().map(|&node| f64::from(model.node(node).size)).product();
        let is_tied = self.repeats_a_table(pattern_ix);
        let joint_limit = if is_tied { JOINT_IF_TIED } else { ALWAYS_JOINT };
        let mut scopes = Vec::new();
        let is_joint = pattern.unseen.len() <= 1 || n_joint <= joint_limit;
        if pattern.unseen.is_empty() {
        } else if is_joint {
            let shape = BucketShape::root(n_joint as usize, self.sizes(&pattern.unseen));
            scopes.push(Scope { nodes: pattern.unseen.clone(), shape, states: None });
        } else {
            for bucket in pattern.elimination.buckets() {
                let shape = BucketShape {
                    n_states: bucket.n_states,
                    size: bucket.size(),
                    parent: bucket.parent,
                    message_of_parent_state: bucket.message_of_parent_state.clone(),
                    nodes: self.sizes(&bucket.scope),
                };
                scopes.push(Scope { nodes: bucket.scope.clone(), shape, states: None });
            }
        }
        let is_exact = is_joint || !is_tied;
        self.kernel(pattern_ix, &pattern.unseen, scopes, is_exact)
    }

    /// The kernel of a token in an unknown cell.
    pub fn unknown(&self, states: &[Vec<u32>]) -> Kernel {
        let pattern_ix = self.uses.relevant.len() - 1;
        let nodes = self.uses.relevant[pattern_ix].clone();
        let shape = BucketShape::root(states.len(), Vec::new());
        let scope = Scope { nodes: nodes.clone(), shape, states: Some(states.to_vec()) };
        self.kernel(pattern_ix, &nodes, vec![scope], true)
    }

    fn sizes(&self, nodes: &[NodeIndex]) -> Vec<(NodeIndex, u32)> {
        nodes.iter().map(|&node| (node, self.problem.model.node(node).size)).collect()
    }

    /// Whether one token of this pattern uses lines of one table more than once.
    fn repeats_a_table(&self, pattern_ix: usize) -> bool {
        self.counted.iter().any(|counted| {
            let uses = &self.uses.of[&(counted.table, counted.kind)];
            uses.iter().filter(|used| used.pattern == pattern_ix).count() > 1
        })
    }

    fn kernel(&self, pattern_ix: usize, unseen: &[NodeIndex], mut scopes: Vec<Scope>, is_exact: bool) -> Kernel {
        let model = self.problem.model;
        let is_unseen = |node: &NodeIndex| unseen.contains(node);
        // Families that are wholly seen but whose lines differ between particles: a factor without a choice.
        let constant = scopes.len();
        scopes.push(Scope { nodes: Vec::new(), shape: BucketShape::root(1, Vec::new()), states: None });
        let bucket_for = |nodes: &[NodeIndex], is_tied: bool| -> usize {
            let hidden: Vec<NodeIndex> = nodes.iter().copied().filter(is_unseen).collect();
            if hidden.is_empty() {
                // Within a token that uses a table twice, all uses have to be compared state by state.
                return if is_tied && constant == 1 { 0 } else { constant };
            }
            (0..constant)
                .filter(|&ix| hidden.iter().all(|node| scopes[ix].nodes.contains(node)))
                .min_by_key(|&ix| scopes[ix].shape.n_states)
                .expect("every family lies in a bucket")
        };
        let mut touches: Vec<Touch> = Vec::new();
        for (class_ix, class) in self.classes.iter().enumerate() {
            // Every table of a class has the same uses: one of them speaks for all.
            let counted = self.counted.iter().find(|counted| counted.class == class_ix).expect("a class has a table");
            let uses = &self.uses.of[&(counted.table, counted.kind)];
            let here: Vec<&Use> = uses.iter().filter(|used| used.pattern == pattern_ix).collect();
            for used in &here {
                let bucket = bucket_for(&used.nodes, here.len() > 1);
                let offsets = offsets(model, &scopes[bucket], &used.nodes, &class.strides, is_unseen);
                touches.push(Touch { class: class_ix, nodes: used.nodes.clone(), bucket, offsets });
            }
        }
        let mut terms: Vec<Term> = Vec::new();
        for (counted_ix, counted) in self.counted.iter().enumerate() {
            let uses = &self.uses.of[&(counted.table, counted.kind)];
            let here: Vec<&Use> = uses.iter().filter(|used| used.pattern == pattern_ix).collect();
            let first_term = terms.len();
            for used in &here {
                let bucket = bucket_for(&used.nodes, here.len() > 1);
                let strides = &self.classes[counted.class].strides;
                let touch = touches
                    .iter()
                    .position(|touch| touch.class == counted.class && touch.nodes == used.nodes)
                    .expect("every use is a touch");
                let offsets = offsets(model, &scopes[bucket], &used.nodes, strides, is_unseen);
                let is_numerator = counted.kind == Kind::Cell;
                let earlier = (first_term..terms.len()).collect();
                terms.push(Term { counted: counted_ix, touch, bucket, is_numerator, power: 1, offsets, earlier });
            }
        }
        let terms = self.simplify(terms);
        let mut buckets: Vec<BucketShape> = scopes.into_iter().map(|scope| scope.shape).collect();
        let has_constant =
            terms.iter().any(|term| term.bucket == constant) || touches.iter().any(|t| t.bucket == constant);
        if !has_constant {
            buckets.pop();
        }
        Kernel::new(buckets, touches, terms, is_exact)
    }

    /// Cancels a cell against a row that always holds the same number with the same pseudo-count, and merges equal rows
    /// into powers.
    fn simplify(&self, terms: Vec<Term>) -> Vec<Term> {
        let even = |term: &Term| match &self.counted[term.counted].pseudo {
            Pseudo::Even(pseudo) => Some(pseudo.value),
            Pseudo::PerLine(_) => None,
        };
        let repeated: Vec<bool> = (0..terms.len())
            .map(|ix| !terms[ix].earlier.is_empty() || terms.iter().any(|other| other.earlier.contains(&ix)))
            .collect();
        let group = |term: &Term| (self.group)(self.counted[term.counted].table);
        let same = |a: &Term, b: &Term| {
            a.touch == b.touch
                && a.bucket == b.bucket
                && group(a) == group(b)
                && matches!((even(a), even(b)), (Some(x), Some(y)) if x > 0.0 && (x - y).abs() <= 4.0 * f64::EPSILON * x)
        };
        if repeated.contains(&true) {
            // The numbers of the terms in `earlier` must stay as they are.
            return terms;
        }
        let mut kept: Vec<Term> = Vec::new();
        for term in terms {
            let partner = kept.iter().position(|other| same(other, &term));
            match partner {
                Some(at) if kept[at].is_numerator != term.is_numerator => {
                    kept[at].power -= 1;
                    if kept[at].power == 0 {
                        kept.remove(at);
                    }
                }
                Some(at) => kept[at].power += 1,
                None => kept.push(term),
            }
        }
        kept
    }
}

/// For each state of the bucket the number of the line within the block, as far as unseen nodes decide it.
fn offsets(
    model: &Model,
    scope: &Scope,
    nodes: &[NodeIndex],
    strides: &[usize],
    is_unseen: impl Fn(&NodeIndex) -> bool,
) -> Vec<u32> {
    if let Some(states) = &scope.states {
        let of_state = |state: &Vec<u32>| {
            let all = nodes.iter().zip(strides);
            all.map(|(node, stride)| stride * state[node.ix()] as usize).sum::<usize>() as u32
        };
        return states.iter().map(of_state).collect();
    }
    let mut sums = vec![0usize];
    for member in &scope.nodes {
        let stride: usize = nodes
            .iter()
            .zip(strides)
            .filter(|(node, _)| *node == member && is_unseen(node))
            .map(|(_, &stride)| stride)
            .sum();
        let size = model.node(*member).size as usize;
        sums = sums.iter().flat_map(|&sum| (0..size).map(move |value| sum + value * stride)).collect();
    }
    sums.into_iter().map(|sum| sum as u32).collect()
}
