//! An elimination order for unseen nodes, as a forest of buckets.
//!
//! Bucket elimination (Dechter 1999): nodes are summed out one after another. The bucket of node v multiplies all factors
//! that mention v and no earlier node, sums v out, and hands the message on to the bucket of the next node in its scope.
//! Walking the buckets backwards draws the nodes, or gives their posterior marginals.

use super::compile::Family;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, Undirected};

/// Largest number of entries of one bucket; 2^26 entries are half a gigabyte.
const MAX_STATES: f64 = (1u64 << 26) as f64;

/// The product table of one eliminated node.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// The nodes of the table; the one summed out stands last and is fastest.
    pub scope: Vec<NodeIndex>,
    /// Their sizes.
    pub sizes: Vec<u32>,
    /// Number of entries of the table.
    pub n_states: usize,
    /// The bucket that takes the message, if the separator is not empty.
    pub parent: Option<usize>,
    /// For each entry of the *parent's* table the entry of this bucket's message.
    pub message_of_parent_state: Vec<u32>,
}

impl Bucket {
    /// The node that is summed out here.
    pub fn node(&self) -> NodeIndex {
        *self.scope.last().expect("a bucket has a node")
    }

    /// Number of entries of the message.
    pub fn n_messages(&self) -> usize {
        self.n_states / self.size()
    }

    /// Size of the node that is summed out.
    pub fn size(&self) -> usize {
        *self.sizes.last().expect("a bucket has a node") as usize
    }
}

/// How a family with unseen members multiplies into a bucket: for each entry of the bucket's table the offset of the row
/// and, if the child itself is unseen, its value.
#[derive(Debug, Clone)]
pub struct Touch {
    pub(super) bucket: usize,
    pub(super) row_offset: Vec<u64>,
    pub(super) child: Option<Vec<u32>>,
}

/// A compiled elimination. Buckets stand in the order of elimination, so a message always goes to a later bucket.
#[derive(Debug, Clone)]
pub struct Elimination {
    unseen: Vec<NodeIndex>,
    buckets: Vec<Bucket>,
    /// By node: how its family touches the unseen nodes; `None` for families outside.
    touches: Vec<Option<Touch>>,
}

impl Elimination {
    /// Orders the unseen nodes by min-fill on the graph whose cliques are `scopes`.
    pub(super) fn new(
        model: &Model,
        families: &[Family],
        unseen: &[NodeIndex],
        scopes: &[Vec<NodeIndex>],
    ) -> Result<Self> {
        let mut graph = Undirected::new(model.n_nodes());
        for scope in scopes {
            graph.add_clique(&scope.iter().map(|node| node.ix()).collect::<Vec<_>>());
        }
        let vertices: Vec<usize> = unseen.iter().map(|node| node.ix()).collect();
        let order = graph.eliminate(&vertices, |ix| f64::from(model.nodes()[ix].size).ln()).order;
        let mut position = vec![usize::MAX; model.n_nodes()];
        order.iter().enumerate().for_each(|(at, &ix)| position[ix] = at);
        let buckets = make_buckets(model, &order, &position, scopes)?;
        let touches = families.iter().map(|family| touch(family, unseen, scopes, &position, &buckets)).collect();
        Ok(Elimination { unseen: unseen.to_vec(), buckets, touches })
    }

    /// The nodes that are summed out.
    pub fn unseen(&self) -> &[NodeIndex] {
        &self.unseen
    }

    /// The buckets, in order of elimination.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Entries of all buckets together: the cost of one record.
    pub fn n_states(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.n_states).sum()
    }

    /// Size of the largest bucket's scope less one.
    pub fn treewidth(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.scope.len()).max().map_or(0, |largest| largest - 1)
    }

    /// The bucket that a node's family multiplies into, if an unseen node is in it.
    pub fn bucket_of(&self, node: NodeIndex) -> Option<usize> {
        self.touch(node).map(|touch| touch.bucket)
    }

    pub(super) fn touch(&self, node: NodeIndex) -> Option<&Touch> {
        self.touches[node.ix()].as_ref()
    }
}

fn make_buckets(model: &Model, order: &[usize], position: &[usize], scopes: &[Vec<NodeIndex>]) -> Result<Vec<Bucket>> {
    // Scopes waiting in each bucket: factors first, messages as they arise.
    let mut waiting: Vec<Vec<Vec<usize>>> = vec![Vec::new(); order.len()];
    let first_bucket = |scope: &[usize]| scope.iter().map(|&ix| position[ix]).min();
    for scope in scopes {
        let scope: Vec<usize> = scope.iter().map(|node| node.ix()).collect();
        if let Some(bucket) = first_bucket(&scope) {
            waiting[bucket].push(scope);
        }
    }
    let mut buckets: Vec<Bucket> = Vec::with_capacity(order.len());
    for (at, &node) in order.iter().enumerate() {
        let mut separator: Vec<usize> = waiting[at].concat();
        separator.sort_unstable();
        separator.dedup();
        separator.retain(|&ix| ix != node);
        let parent = first_bucket(&separator);
        if let Some(parent) = parent {
            waiting[parent].push(separator.clone());
        }
        let scope: Vec<NodeIndex> = separator.iter().chain([&node]).map(|&ix| NodeIndex(ix as u32)).collect();
        let sizes: Vec<u32> = scope.iter().map(|&member| model.node(member).size).collect();
        let n_states: f64 = sizes.iter().map(|&size| f64::from(size)).product();
        if n_states > MAX_STATES {
            let names: Vec<&str> = scope.iter().map(|&member| model.node(member).name.as_str()).collect();
            return Err(Error::TooCostly(format!(
                "summing out {} together takes {n_states:.3e} numbers for one record; use fewer values or fewer arrows \
                 between unseen nodes",
                names.join(", ")
            )));
        }
        buckets.push(Bucket { scope, sizes, n_states: n_states as usize, parent, message_of_parent_state: Vec::new() });
    }
    for ix in 0..buckets.len() {
        if let Some(parent) = buckets[ix].parent {
            let separator = &buckets[ix].scope[..buckets[ix].scope.len() - 1];
            let map = project(&buckets[parent], separator, &buckets[ix].sizes);
            buckets[ix].message_of_parent_state = map.into_iter().map(|entry| entry as u32).collect();
        }
    }
    Ok(buckets)
}

/// For each entry of the bucket's table the row-major number of its values on `nodes`.
fn project(bucket: &Bucket, nodes: &[NodeIndex], sizes: &[u32]) -> Vec<u64> {
    let mut strides = vec![0u64; bucket.scope.len()];
    let mut stride = 1u64;
    for (node, &size) in nodes.iter().zip(sizes).rev() {
        let at = bucket.scope.iter().position(|member| member == node).expect("a separator lies in the parent's scope");
        strides[at] = stride;
        stride *= u64::from(size);
    }
    sum_over_states(bucket, &strides)
}

/// For each entry of the bucket's table the sum of stride times value. Wraps for tables whose rows cannot be numbered;
/// [`super::Plan::has_numbered_rows`] keeps such plans from being evaluated.
fn sum_over_states(bucket: &Bucket, strides: &[u64]) -> Vec<u64> {
    let mut sums = vec![0u64];
    for (&size, &stride) in bucket.sizes.iter().zip(strides) {
        sums = sums
            .iter()
            .flat_map(|&sum| (0..u64::from(size)).map(move |value| sum.wrapping_add(value.wrapping_mul(stride))))
            .collect();
    }
    sums
}

fn touch(
    family: &Family,
    unseen: &[NodeIndex],
    scopes: &[Vec<NodeIndex>],
    position: &[usize],
    buckets: &[Bucket],
) -> Option<Touch> {
    let mut scope: Vec<NodeIndex> = family.parents.iter().copied().chain([family.node]).collect();
    scope.retain(|node| unseen.contains(node));
    scope.sort_unstable();
    // Families that no pattern with these scopes can hold are left out: they belong to barren nodes.
    let covered = scopes.iter().any(|big| scope.iter().all(|node| big.binary_search(node).is_ok()));
    if scope.is_empty() || !covered {
        return None;
    }
    let bucket_ix = scope.iter().map(|node| position[node.ix()]).min()?;
    let bucket = &buckets[bucket_ix];
    let stride_of = |member: &NodeIndex| {
        family.parents.iter().position(|parent| parent == member).map_or(0, |at| family.strides[at])
    };
    let row_strides: Vec<u64> = bucket.scope.iter().map(stride_of).collect();
    let child = unseen.contains(&family.node).then(|| {
        let child_strides: Vec<u64> = bucket.scope.iter().map(|member| u64::from(*member == family.node)).collect();
        sum_over_states(bucket, &child_strides).into_iter().map(|value| value as u32).collect()
    });
    Some(Touch { bucket: bucket_ix, row_offset: sum_over_states(bucket, &row_strides), child })
}
