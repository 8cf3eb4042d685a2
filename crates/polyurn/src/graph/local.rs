//! Nodes that are like documents: seen roots whose values have hidden rows of their own.

use super::model::{Model, NodeIndex};

/// The seen root nodes with a child that is not seen. Nodes with tied tables around them are not among them.
pub fn local_nodes(model: &Model, is_seen: &[bool]) -> Vec<NodeIndex> {
    let has_unseen_child = |node: NodeIndex| model.node(node).children.iter().any(|child| !is_seen[child.ix()]);
    let is_local = |&node: &NodeIndex| has_unseen_child(node) && why_not_local(model, is_seen, node).is_none();
    model.node_indices().filter(is_local).collect()
}

/// Why the rows below a node cannot belong to its values.
pub(crate) fn why_not_local(model: &Model, is_seen: &[bool], node: NodeIndex) -> Option<&'static str> {
    let is_tied = |node: NodeIndex| model.tables()[model.node(node).table.ix()].members.len() > 1;
    if !is_seen[node.ix()] {
        Some("is not seen")
    } else if !model.node(node).parents.is_empty() {
        Some("has parents")
    } else if is_tied(node) || model.node(node).children.iter().any(|&child| is_tied(child)) {
        Some("shares a table with another one, or a child of it does")
    } else {
        None
    }
}
