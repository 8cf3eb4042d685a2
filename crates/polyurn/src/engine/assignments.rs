//! Going through all assignments of some nodes of a record.

use crate::counts::MISSING;
use crate::graph::{Model, NodeIndex};

/// The nodes of a record that have no value.
pub(super) fn unseen(nodes: &[NodeIndex], record: &[u32]) -> Vec<NodeIndex> {
    nodes.iter().copied().filter(|node| record[node.ix()] == MISSING).collect()
}

/// Calls `visit` with the record under every assignment of the unseen nodes, last node fastest. Leaves the record as it
/// was, with these nodes missing.
pub(super) fn for_each_assignment(
    model: &Model,
    unseen: &[NodeIndex],
    record: &mut [u32],
    mut visit: impl FnMut(&[u32]),
) {
    unseen.iter().for_each(|node| record[node.ix()] = 0);
    loop {
        visit(record);
        // Like an odometer: the last node that can go on does, those after it start again.
        let Some(at) = unseen.iter().rposition(|&node| record[node.ix()] + 1 < model.node(node).size) else { break };
        record[unseen[at].ix()] += 1;
        unseen[at + 1..].iter().for_each(|node| record[node.ix()] = 0);
    }
    unseen.iter().for_each(|node| record[node.ix()] = MISSING);
}
