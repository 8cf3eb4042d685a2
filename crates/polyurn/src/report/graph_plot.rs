//! A model's graph: hidden nodes plain, seen ones shaded, the number of values below each name.

use super::colour::Colour;
use super::drawing::{Anchor, Drawing, Stroke, Words, px};
use super::graph_layout::{Edge, Layout, Room, layout};
use super::result::Node;
use super::text::{cut_to, short, width_of};

/// Nodes of the largest graph that is drawn.
pub const MOST_NODES: usize = 48;
/// Edges of the largest graph that is drawn.
const MOST_EDGES: usize = 300;

/// Pixels for the longest name.
const LONGEST_NAME: f64 = 104.0;
const HALF_HEIGHT: f64 = 21.0;
const LEGEND: f64 = 34.0;
/// How far a tie hangs below its nodes.
const SAG: f64 = 18.0;

/// Draws a graph, unless it is too large to be read.
pub fn graph_plot(nodes: &[Node], width: f64) -> Option<Drawing> {
    let n_edges: usize = nodes.iter().map(|node| node.parents.len()).sum();
    if nodes.is_empty() || nodes.len() > MOST_NODES || n_edges > MOST_EDGES {
        return None;
    }
    let names: Vec<String> = nodes.iter().map(|node| cut_to(&node.name, LONGEST_NAME, 13.0)).collect();
    let widest = names.iter().map(|name| width_of(name, 13.0)).fold(0.0, f64::max);
    let half_width = (widest / 2.0 + 14.0).clamp(30.0, 70.0);
    let room = Room { width, slot: 2.0 * half_width + 14.0, layer: 84.0, line: 52.0 };
    let parents: Vec<Vec<usize>> = nodes
        .iter()
        .map(|node| {
            node.parents.iter().filter_map(|parent| nodes.iter().position(|other| other.name == *parent)).collect()
        })
        .collect();
    let found = layout(&parents, room);
    let ties = ties(nodes, &found.nodes);
    let below = if ties.is_empty() { 0.0 } else { SAG };
    let mut drawing = Drawing::new(found.width, found.height + LEGEND + below);
    for edge in &found.edges {
        draw_edge(&mut drawing, &found, edge, half_width);
    }
    for &(from, to) in &ties {
        draw_tie(&mut drawing, from, to, half_width);
    }
    for ((node, name), &(x, y)) in nodes.iter().zip(&names).zip(&found.nodes) {
        let place = ((x - half_width, y - HALF_HEIGHT), (2.0 * half_width, 2.0 * HALF_HEIGHT));
        drawing.tell(&tip(node), place, |drawing| {
            let fill = if node.is_seen { Colour::Shade } else { Colour::Paper };
            drawing.ellipse((x, y), (half_width, HALF_HEIGHT), fill, Stroke::new(Colour::Ink, 1.4));
            drawing.text((x, y), Words::new(Anchor::Middle, Colour::Ink).sized(13.0), name);
            if let Some(size) = node.size {
                drawing.text((x, y + 13.0), Words::new(Anchor::Middle, Colour::Ink).sized(11.0), &short(size));
            }
        });
    }
    draw_legend(&mut drawing, !ties.is_empty());
    Some(drawing)
}

fn tip(node: &Node) -> String {
    let role = if node.is_seen { "seen" } else { "hidden" };
    let size = node.size.map_or(String::new(), |size| format!(", {} values", short(size)));
    let parents =
        if node.parents.is_empty() { "no parents".into() } else { format!("given {}", node.parents.join(", ")) };
    let tied = node.tied_to.as_ref().map_or(String::new(), |other| format!("\nshares the table of {other}"));
    format!("{}\n{role}{size}\n{parents}{tied}", node.name)
}

/// A line from the rim of the parent to the rim of the child, with an arrow's head.
fn draw_edge(drawing: &mut Drawing, found: &Layout, edge: &Edge, half_width: f64) {
    let (from, to) = (found.nodes[edge.from], found.nodes[edge.to]);
    let before_last = edge.bends.last().copied().unwrap_or(from);
    let start = rim(from, edge.bends.first().copied().unwrap_or(to), half_width, 1.0);
    let tip = rim(to, before_last, half_width, 2.5);
    let (dx, dy) = (tip.0 - before_last.0, tip.1 - before_last.1);
    let length = dx.hypot(dy).max(1e-9);
    let (ux, uy) = (dx / length, dy / length);
    let end = (tip.0 - 7.0 * ux, tip.1 - 7.0 * uy);
    let mut d = format!("M{} {}", px(start.0), px(start.1));
    // Smooth through the places between: each is the handle of a curve to the middle of the next stretch.
    for (ix, bend) in edge.bends.iter().enumerate() {
        let next = edge.bends.get(ix + 1).map_or(end, |next| ((bend.0 + next.0) / 2.0, (bend.1 + next.1) / 2.0));
        d += &format!("Q{} {} {} {}", px(bend.0), px(bend.1), px(next.0), px(next.1));
    }
    if edge.bends.is_empty() {
        d += &format!("L{} {}", px(end.0), px(end.1));
    }
    drawing.curve(&d, Stroke::new(Colour::Muted, 1.5));
    let side = 3.8;
    drawing.polygon(
        &[tip, (end.0 - side * uy - ux, end.1 + side * ux - uy), (end.0 + side * uy - ux, end.1 - side * ux - uy)],
        Colour::Muted,
    );
}

/// Pairs of nodes that share a table, neighbours first, by their places.
fn ties(nodes: &[Node], places: &[(f64, f64)]) -> Vec<((f64, f64), (f64, f64))> {
    let of_table = |node: &Node| node.tied_to.clone().unwrap_or_else(|| node.name.clone());
    let mut tables: Vec<String> = nodes.iter().map(of_table).collect();
    tables.sort();
    tables.dedup();
    let mut all = Vec::new();
    for table in tables {
        let members = nodes.iter().zip(places).filter(|(node, _)| of_table(node) == table).map(|(_, &place)| place);
        let mut members: Vec<(f64, f64)> = members.collect();
        members.sort_by(|one, other| one.1.total_cmp(&other.1).then(one.0.total_cmp(&other.0)));
        all.extend(members.windows(2).map(|pair| (pair[0], pair[1])));
    }
    all
}

/// A dashed line between two nodes that share a table, hanging below where they stand side by side.
fn draw_tie(drawing: &mut Drawing, from: (f64, f64), to: (f64, f64), half_width: f64) {
    let stroke = Stroke { dashed: true, ..Stroke::new(Colour::Series(1), 2.0) };
    if from.1 == to.1 {
        let (start, end) = ((from.0, from.1 + HALF_HEIGHT + 1.0), (to.0, to.1 + HALF_HEIGHT + 1.0));
        // The curve hangs half as far as its handle.
        let handle = ((start.0 + end.0) / 2.0, start.1 + 2.0 * SAG - 6.0);
        drawing.curve(
            &format!("M{} {}Q{} {} {} {}", px(start.0), px(start.1), px(handle.0), px(handle.1), px(end.0), px(end.1)),
            stroke,
        );
    } else {
        // To the side of an arrow that may go the same way.
        let bend = ((from.0 + to.0) / 2.0 + 1.3 * half_width, (from.1 + to.1) / 2.0);
        let (start, end) = (rim(from, bend, half_width, 1.0), rim(to, bend, half_width, 1.0));
        drawing.curve(
            &format!("M{} {}Q{} {} {} {}", px(start.0), px(start.1), px(bend.0), px(bend.1), px(end.0), px(end.1)),
            stroke,
        );
    }
}

/// Where the line from a node's middle to another place leaves its ellipse.
fn rim(middle: (f64, f64), towards: (f64, f64), half_width: f64, gap: f64) -> (f64, f64) {
    let (dx, dy) = (towards.0 - middle.0, towards.1 - middle.1);
    let stretch = (dx / (half_width + gap)).hypot(dy / (HALF_HEIGHT + gap)).max(1e-9);
    (middle.0 + dx / stretch, middle.1 + dy / stretch)
}

fn draw_legend(drawing: &mut Drawing, has_ties: bool) {
    let y = drawing.height - 12.0;
    let words = Words::new(Anchor::Start, Colour::Muted);
    let middle = drawing.width / 2.0 - if has_ties { 62.0 } else { 0.0 };
    if has_ties {
        let x = middle + 90.0;
        let stroke = Stroke { dashed: true, ..Stroke::new(Colour::Series(1), 2.0) };
        drawing.line((x, y - 4.0), (x + 24.0, y - 4.0), stroke);
        drawing.text((x + 30.0, y), words, "share a table");
    }
    for (x, fill, name) in [(middle - 80.0, Colour::Paper, "hidden"), (middle + 14.0, Colour::Shade, "seen")] {
        drawing.ellipse((x, y - 4.0), (11.0, 7.0), fill, Stroke::new(Colour::Ink, 1.2));
        drawing.text((x + 18.0, y), words, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, parents: &[&str]) -> Node {
        let parents = parents.iter().map(|&parent| parent.to_owned()).collect();
        Node { name: name.into(), size: Some(2.0), is_seen: parents == Vec::<String>::new(), parents, tied_to: None }
    }

    #[test]
    fn every_node_is_drawn_once_and_names_are_no_markup() {
        let nodes = [node("<script>", &[]), node("b", &["<script>"]), node("c", &["b", "<script>", "nowhere"])];
        let svg = graph_plot(&nodes, 350.0).unwrap().as_file("x");
        assert_eq!(svg.matches("class=\"mark\"").count(), 3);
        assert!(!svg.contains("<script>") && !svg.contains("NaN"));
    }

    #[test]
    fn nodes_that_share_a_table_are_linked_and_the_link_is_explained() {
        let free = [node("r", &[]), node("a", &["r"]), node("b", &["r"]), node("c", &["r"])];
        let mut tied = free.clone();
        tied[2].tied_to = Some("a".into());
        tied[3].tied_to = Some("a".into());
        let dashed =
            |nodes: &[Node]| graph_plot(nodes, 350.0).unwrap().as_file("x").matches("stroke-dasharray").count();
        // Two links among three nodes, and one in the legend.
        assert_eq!((dashed(&free), dashed(&tied)), (0, 3));
        assert!(graph_plot(&tied, 350.0).unwrap().as_file("x").contains("share a table"));
        assert!(!graph_plot(&free, 350.0).unwrap().as_file("x").contains("share a table"));
    }

    #[test]
    fn graphs_that_nobody_could_read_are_left_out() {
        assert!(graph_plot(&[], 350.0).is_none());
        assert!(graph_plot(&vec![node("a", &[]); MOST_NODES + 1], 350.0).is_none());
    }
}
