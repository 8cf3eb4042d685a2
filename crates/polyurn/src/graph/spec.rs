//! A model as it was written: sizes may still be open, names are not yet bound to data.

use crate::error::{Error, Result};
use std::ops::Range;

/// The size (cardinality) of a node as far as the writer fixed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Size {
    /// Written down: `topic[20]`.
    Fixed(u32),
    /// Taken from the data's column of the same name.
    FromData,
    /// Several sizes to choose from: `topic[1..8]` or `topic[2,4,8]`.
    Choices(Vec<u32>),
}

/// A node as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSpec {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size: Size,
    /// Where the node was first named, in bytes of [`ModelSpec::text`].
    pub span: Option<Range<usize>>,
}

/// Nodes, edges and ties, as written. Nodes stand in the order in which they were first named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelSpec {
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// Directed edges (parent, child) by position in `nodes`; each once.
    pub edges: Vec<(usize, usize)>,
    /// Groups of two or more nodes that share one table; no node is in two groups.
    pub tied: Vec<Vec<usize>>,
    /// Undirected edges that triangulation had to add (contractions only).
    pub added: Vec<(usize, usize)>,
    /// The text the spans point into, if the model came from text.
    pub text: Option<String>,
}

impl ModelSpec {
    /// The position of the node with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// An error about a node, pointing at it where the model came from text.
    pub fn error_at(&self, node_ix: usize, message: impl Into<String>) -> Error {
        match (&self.text, &self.nodes[node_ix].span) {
            (Some(text), Some(span)) => Error::model_at(message, text, span.clone()),
            _ => Error::model(message),
        }
    }

    /// Every node's size where it is fixed; errors on a choice of sizes.
    pub(crate) fn fixed_sizes(&self) -> Result<Vec<Option<u32>>> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(ix, node)| match &node.size {
                Size::Fixed(size) => Ok(Some(*size)),
                Size::FromData => Ok(None),
                Size::Choices(_) => Err(self.error_at(
                    ix,
                    format!("node `{}` has several sizes; give one size here (`{}[4]`)", node.name, node.name),
                )),
            })
            .collect()
    }
}
