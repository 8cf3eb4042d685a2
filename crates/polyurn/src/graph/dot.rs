//! A model as Graphviz text.

use super::model::{Model, NodeIndex, TableIndex};
use std::fmt::Write;

/// Colours of tied tables, taken in turn.
const COLOURS: [&str; 8] = ["#1b6ca8", "#c0392b", "#1e8449", "#af601a", "#7d3c98", "#117a65", "#b7950b", "#5d6d7e"];

/// The model in Graphviz's language. Hidden nodes are open circles, seen ones shaded; a label is `name [size]`. Nodes
/// that share a table have its colour and, below their own label, its name: that of its first node.
///
/// # Panics
/// When `is_seen` has not one entry for each node.
pub fn dot(model: &Model, is_seen: &[bool]) -> String {
    assert_eq!(model.n_nodes(), is_seen.len(), "one entry for each node");
    let mut out = String::from("digraph model {\n  node [shape=circle];\n");
    for (node, &is_seen) in model.node_indices().zip(is_seen) {
        write_node(&mut out, model, node, is_seen);
    }
    for node in model.node_indices() {
        for parent in &model.node(node).parents {
            writeln!(out, "  n{} -> n{};", parent.0, node.0).expect("writing to a string");
        }
    }
    out.push_str("}\n");
    out
}

fn write_node(out: &mut String, model: &Model, ix: NodeIndex, is_seen: bool) {
    let node = model.node(ix);
    let mut label = format!("{} [{}]", escape(&node.name), node.size);
    let mut style = String::new();
    if is_seen {
        style.push_str(", style=filled, fillcolor=\"#d9d9d9\"");
    }
    if let Some(colour) = tie_colour(model, node.table) {
        write!(label, "\\ntable of {}", escape(model.table_name(node.table))).expect("writing to a string");
        write!(style, ", color=\"{colour}\", penwidth=2").expect("writing to a string");
    }
    writeln!(out, "  n{} [label=\"{label}\"{style}];", ix.0).expect("writing to a string");
}

/// The colour of a table that several nodes share.
fn tie_colour(model: &Model, table: TableIndex) -> Option<&'static str> {
    let is_tied = |ix: usize| model.tables()[ix].members.len() > 1;
    is_tied(table.ix()).then(|| COLOURS[(0..table.ix()).filter(|&ix| is_tied(ix)).count() % COLOURS.len()])
}

/// A name inside a quoted label, where Graphviz gives quotes, backslashes and `&` a meaning.
fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '&' => out.push_str("&amp;"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{ModelSpec, NodeSpec, Size};

    fn model(names: &[&str], edges: &[(usize, usize)], tied: &[&[usize]]) -> Model {
        let nodes = names.iter().map(|name| NodeSpec { name: (*name).to_owned(), size: Size::Fixed(2), span: None });
        let spec = ModelSpec {
            nodes: nodes.collect(),
            edges: edges.to_vec(),
            tied: tied.iter().map(|group| group.to_vec()).collect(),
            ..ModelSpec::default()
        };
        Model::build(&spec, &vec![2; names.len()]).unwrap()
    }

    #[test]
    fn hidden_nodes_are_open_and_seen_nodes_shaded() {
        let text = dot(&model(&["doc", "topic"], &[(0, 1)], &[]), &[true, false]);
        let expected = "digraph model {\n  node [shape=circle];\n  \
                        n0 [label=\"doc [2]\", style=filled, fillcolor=\"#d9d9d9\"];\n  \
                        n1 [label=\"topic [2]\"];\n  n0 -> n1;\n}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn tied_nodes_share_colour_and_table_name() {
        let text = dot(&model(&["a", "b", "c", "d"], &[], &[&[0, 2], &[1, 3]]), &[false; 4]);
        let colour_of = |name: &str| {
            let line = text.lines().find(|line| line.contains(&format!("\"{name} [2]"))).unwrap();
            line.split("color=").nth(1).unwrap().to_owned()
        };
        assert_eq!(colour_of("a"), colour_of("c"));
        assert_ne!(colour_of("a"), colour_of("b"));
        assert!(text.contains("c [2]\\ntable of a"));
        assert!(text.contains("d [2]\\ntable of b"));
    }

    #[test]
    fn labels_are_escaped() {
        let text = dot(&model(&["a\"b\\c&amp;\n\u{7}é"], &[], &[]), &[false]);
        assert!(text.contains("label=\"a\\\"b\\\\c&amp;amp;\\n é [2]\""), "{text}");
    }
}
