//! Text for a model of which some sizes were chosen.

use crate::graph::{ModelSource, ModelSpec, Size};

/// Text that gives the model with these sizes: what the user wrote where nothing was left open.
pub(super) fn text_of(given: &str, spec: &ModelSpec, sizes: &[(String, u32)]) -> String {
    if sizes.is_empty() {
        return given.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let mut fixed = spec.clone();
    for node in &mut fixed.nodes {
        if let Some((_, size)) = sizes.iter().find(|(name, _)| *name == node.name) {
            node.size = Size::Fixed(*size);
        }
    }
    let text = statements(&fixed).join("; ");
    if has_same_order(&text, &fixed) {
        return text;
    }
    // Axes without names are bound in the order in which nodes are named.
    let names: Vec<String> = fixed.nodes.iter().map(|node| quoted(&node.name)).collect();
    format!("{}; {text}", names.join(" "))
}

fn has_same_order(text: &str, spec: &ModelSpec) -> bool {
    let Ok(ModelSource::Graph(parsed)) = ModelSource::parse(text) else { return false };
    parsed.nodes.iter().map(|node| &node.name).eq(spec.nodes.iter().map(|node| &node.name))
}

/// `r[3] -> i j k`: children of the same parents stand together, and a size stands where its node is first named.
fn statements(spec: &ModelSpec) -> Vec<String> {
    let parents_of =
        |child: usize| -> Vec<usize> { spec.edges.iter().filter(|edge| edge.1 == child).map(|edge| edge.0).collect() };
    let mut named = vec![false; spec.nodes.len()];
    let mut name = |node: usize| {
        let text = quoted(&spec.nodes[node].name);
        match spec.nodes[node].size {
            Size::Fixed(size) if !std::mem::replace(&mut named[node], true) => format!("{text}[{size}]"),
            _ => text,
        }
    };
    let mut list = |nodes: &[usize]| nodes.iter().map(|&node| name(node)).collect::<Vec<_>>().join(" ");
    let mut out = Vec::new();
    let mut done = vec![false; spec.nodes.len()];
    for node in 0..spec.nodes.len() {
        let parents = parents_of(node);
        if done[node] {
            continue;
        }
        if parents.is_empty() {
            if !spec.edges.iter().any(|edge| edge.0 == node) {
                out.push(list(&[node]));
            }
            continue;
        }
        let together: Vec<usize> = (node..spec.nodes.len()).filter(|&other| parents_of(other) == parents).collect();
        together.iter().for_each(|&other| done[other] = true);
        let left = list(&parents);
        out.push(format!("{left} -> {}", list(&together)));
    }
    for tied in &spec.tied {
        out.push(tied.iter().map(|&node| quoted(&spec.nodes[node].name)).collect::<Vec<_>>().join(" ~ "));
    }
    out
}

/// A name as it must stand in model text.
fn quoted(name: &str) -> String {
    crate::graph::quote(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(text: &str, sizes: &[(&str, u32)]) -> String {
        let columns: Vec<String> = ["i", "j", "k"].map(String::from).to_vec();
        let spec = ModelSource::parse(text).unwrap().resolve(Some(&columns)).unwrap();
        let sizes: Vec<(String, u32)> = sizes.iter().map(|&(name, size)| (name.to_owned(), size)).collect();
        text_of(text, &spec, &sizes)
    }

    #[test]
    fn chosen_sizes_stand_in_the_text_and_the_order_of_nodes_is_kept() {
        assert_eq!(chosen("r[1..8] -> i j k", &[("r", 3)]), "r[3] -> i j k");
        assert_eq!(chosen("i -> r[1..8] -> j", &[("r", 3)]), "i -> r[3]; r -> j");
        assert_eq!(chosen("a[2,4] -> i j; i ~ j; k", &[("a", 4)]), "a[4] -> i j; k; i ~ j");
        assert_eq!(chosen("r[2]  ->   i j k", &[]), "r[2] -> i j k");
        assert_eq!(chosen("k i; r[1..3] -> i; r -> j; k", &[("r", 2)]), "k i r j; k; r[2] -> i j");
        assert_eq!(chosen("\"a b\"[1..3] -> i j k", &[("a b", 2)]), "\"a b\"[2] -> i j k");
    }

    #[test]
    fn the_text_is_the_model() {
        for (text, sizes) in [
            ("lca(1..4)", vec![("r", 2)]),
            ("r3[1..4] -> r2[3] -> r1[2]; r3 -> r1; r1 -> i; r2 -> j; r3 -> k", vec![("r3", 4)]),
            ("i -> k1[2..3] -> k <- k2[2] <- j", vec![("k1", 2)]),
        ] {
            let columns: Vec<String> = ["i", "j", "k"].map(String::from).to_vec();
            let spec = ModelSource::parse(text).unwrap().resolve(Some(&columns)).unwrap();
            let made = chosen(text, &sizes);
            let parsed = ModelSource::parse(&made).unwrap().resolve(Some(&columns)).unwrap();
            let edges = |spec: &ModelSpec| {
                let name = |ix: usize| spec.nodes[ix].name.clone();
                let mut edges: Vec<_> = spec.edges.iter().map(|&(a, b)| (name(a), name(b))).collect();
                edges.sort();
                edges
            };
            assert_eq!(edges(&parsed), edges(&spec), "{made}");
            for (name, size) in sizes {
                assert_eq!(parsed.nodes[parsed.find(name).unwrap()].size, Size::Fixed(size), "{made}");
            }
        }
    }
}
