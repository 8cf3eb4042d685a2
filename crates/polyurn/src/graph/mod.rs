//! Models: text, presets and contractions become a [`ModelSpec`]; bound to data's columns it is a checked, frozen
//! [`Model`].

mod batches;
mod bind;
mod contraction;
mod dot;
mod expansion;
mod lexer;
mod local;
mod model;
mod names;
mod parse;
mod preset;
mod preset_call;
#[cfg(test)]
mod refusal;
mod spec;
mod statement;
mod triangulate;

pub use batches::{BatchOptions, Batcher, RowBatch, Rows, StreamLabels};
pub(crate) use bind::label_groups;
pub use bind::{BindOptions, Binding, SeenNode, bind, bind_owned, bind_without_data, resolve_for};
pub use contraction::Contraction;
pub use dot::dot;
pub use local::local_nodes;
pub(crate) use local::why_not_local;
pub(crate) use model::quote;
pub use model::{Model, Node, NodeIndex, Table, TableIndex};
pub use parse::ModelSource;
pub use preset::{Preset, PresetEntry, catalogue};
pub use spec::{ModelSpec, NodeSpec, Size};
pub use triangulate::{JunctionTree, Triangulation, Undirected};
