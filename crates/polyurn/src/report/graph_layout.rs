//! Where the nodes of a DAG go: layers from the roots down, crossings few, nothing on top of anything else.

/// The layout of a graph.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The middle of each node.
    pub nodes: Vec<(f64, f64)>,
    /// For each edge its nodes, and the places between them that its line goes through.
    pub edges: Vec<Edge>,
    /// Width of the whole; more than was asked for if the graph is large.
    pub width: f64,
    /// Height of the whole.
    pub height: f64,
}

/// An edge.
#[derive(Debug, Clone)]
pub struct Edge {
    /// The parent.
    pub from: usize,
    /// The child.
    pub to: usize,
    /// Places that the line goes through.
    pub bends: Vec<(f64, f64)>,
}

/// Room for a node.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Width of the drawing.
    pub width: f64,
    /// Width that a node takes, the gap to the next included.
    pub slot: f64,
    /// Height from layer to layer.
    pub layer: f64,
    /// Height from one line of a crowded layer to the next.
    pub line: f64,
}

/// How much wider than asked a large graph may become before a layer is broken into lines.
const MOST_STRETCH: f64 = 1.6;
/// Room for a long edge that passes a layer, as a share of that for a node.
const PASSING: f64 = 0.35;

/// Lays out nodes, given the parents of each. Parents out of range are left out; a cycle, which a model cannot have but a
/// damaged file can, gets edges that go up.
pub fn layout(parents: &[Vec<usize>], room: Room) -> Layout {
    let n_nodes = parents.len();
    let edges: Vec<(usize, usize)> = (0..n_nodes)
        .flat_map(|to| parents[to].iter().map(move |&from| (from, to)))
        .filter(|&(from, to)| from < n_nodes && from != to)
        .collect();
    let layers = layers_of(n_nodes, &edges);
    // Slots are nodes, and places that long edges pass through.
    let mut slot_layer = layers.clone();
    let mut links: Vec<(usize, usize)> = Vec::new();
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for &(from, to) in &edges {
        let mut chain = Vec::new();
        let mut last = from;
        for layer in layers[from] + 1..layers[to] {
            slot_layer.push(layer);
            let slot = slot_layer.len() - 1;
            links.push((last, slot));
            chain.push(slot);
            last = slot;
        }
        links.push((last, to));
        chains.push(chain);
    }
    let n_layers = slot_layer.iter().max().map_or(0, |last| last + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); n_layers];
    for (slot, &layer) in slot_layer.iter().enumerate() {
        rows[layer].push(slot);
    }
    order_rows(&mut rows, &links, slot_layer.len());
    let widths: Vec<f64> =
        (0..slot_layer.len()).map(|slot| if slot < n_nodes { room.slot } else { PASSING * room.slot }).collect();
    let Placed { places, width, height } = place(&rows, &links, &widths, room);
    let edges = edges
        .iter()
        .zip(&chains)
        .map(|(&(from, to), chain)| Edge { from, to, bends: chain.iter().map(|&slot| places[slot]).collect() })
        .collect();
    Layout { nodes: places[..n_nodes].to_vec(), edges, width, height }
}

/// The longest way from a root to each node, but roots just above the first of their children.
fn layers_of(n_nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut layers = vec![0; n_nodes];
    // A DAG settles within as many rounds as it has nodes.
    for _ in 0..n_nodes {
        let mut has_changed = false;
        for &(from, to) in edges {
            if layers[to] < layers[from] + 1 && layers[from] + 1 < n_nodes {
                layers[to] = layers[from] + 1;
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    let settled = layers.clone();
    for root in (0..n_nodes).filter(|root| edges.iter().all(|&(_, to)| to != *root)) {
        let first = edges.iter().filter(|edge| edge.0 == root).map(|edge| settled[edge.1]).min();
        layers[root] = first.map_or(0, |first| first.saturating_sub(1));
    }
    layers
}

/// Puts each slot near the middle of those it is linked to, downwards and upwards in turn, and keeps the best order seen.
fn order_rows(rows: &mut Vec<Vec<usize>>, links: &[(usize, usize)], n_slots: usize) {
    let mut best = (crossings(rows, links, n_slots), rows.clone());
    for round in 0..12 {
        let goes_down = round % 2 == 0;
        let places = shares(rows, n_slots);
        let middle = |slot: usize| {
            let ends = links.iter().filter_map(|&(from, to)| match goes_down {
                true if to == slot => Some(places[from]),
                false if from == slot => Some(places[to]),
                _ => None,
            });
            let (sum, n) = ends.fold((0.0, 0), |(sum, n), x| (sum + x, n + 1));
            if n == 0 { places[slot] } else { sum / f64::from(n) }
        };
        for row in rows.iter_mut() {
            let mut keyed: Vec<(f64, usize)> = row.iter().map(|&slot| (middle(slot), slot)).collect();
            keyed.sort_by(|x, y| x.0.total_cmp(&y.0));
            *row = keyed.into_iter().map(|(_, slot)| slot).collect();
        }
        let found = crossings(rows, links, n_slots);
        if found < best.0 {
            best = (found, rows.clone());
        }
    }
    *rows = best.1;
}

/// How far along its row each slot is.
fn shares(rows: &[Vec<usize>], n_slots: usize) -> Vec<f64> {
    let mut shares = vec![0.0; n_slots];
    for row in rows {
        for (ix, &slot) in row.iter().enumerate() {
            shares[slot] = (ix as f64 + 0.5) / row.len() as f64;
        }
    }
    shares
}

/// Pairs of links that cross.
fn crossings(rows: &[Vec<usize>], links: &[(usize, usize)], n_slots: usize) -> usize {
    let mut row_of = vec![0; n_slots];
    rows.iter().enumerate().for_each(|(ix, row)| row.iter().for_each(|&slot| row_of[slot] = ix));
    let places = shares(rows, n_slots);
    let cross = |x: &(usize, usize), y: &(usize, usize)| {
        row_of[x.0] == row_of[y.0] && (places[x.0] - places[y.0]) * (places[x.1] - places[y.1]) < 0.0
    };
    links.iter().enumerate().map(|(ix, x)| links[..ix].iter().filter(|y| cross(x, y)).count()).sum()
}

/// Slots with coordinates.
struct Placed {
    places: Vec<(f64, f64)>,
    width: f64,
    height: f64,
}

/// Coordinates of all slots. A layer that is too wide is broken into lines, its slots taking turns.
fn place(rows: &[Vec<usize>], links: &[(usize, usize)], widths: &[f64], room: Room) -> Placed {
    let width_of = |row: &[usize]| row.iter().map(|&slot| widths[slot]).sum::<f64>();
    let needed = rows.iter().map(|row| width_of(row)).fold(0.0, f64::max);
    let width = needed.clamp(room.width, MOST_STRETCH * room.width);
    let mut places = vec![(0.0, 0.0); widths.len()];
    let mut lines: Vec<Vec<usize>> = Vec::new();
    let mut y = room.line / 2.0 + 4.0;
    for (layer, row) in rows.iter().enumerate() {
        if layer > 0 {
            y += room.layer;
        }
        let mut n_lines = (width_of(row) / width).ceil().max(1.0) as usize;
        let line_of = |line: usize, n_lines: usize| row.iter().copied().skip(line).step_by(n_lines).collect::<Vec<_>>();
        while n_lines < row.len() && (0..n_lines).any(|line| width_of(&line_of(line, n_lines)) > width) {
            n_lines += 1;
        }
        for line in 0..n_lines {
            let slots = line_of(line, n_lines);
            let mut x = (width - 1.2 * width_of(&slots)).max(0.0) / 2.0;
            let stretch = ((width - 2.0 * x) / width_of(&slots)).max(1.0);
            for &slot in &slots {
                places[slot] = (x + stretch * widths[slot] / 2.0, y + line as f64 * room.line);
                x += stretch * widths[slot];
            }
            lines.push(slots);
        }
        y += (n_lines - 1) as f64 * room.line;
    }
    for round in 0..10 {
        let goes_down = round % 2 == 0;
        let order: Vec<usize> = if goes_down { (0..lines.len()).collect() } else { (0..lines.len()).rev().collect() };
        for line in order {
            straighten(&lines[line], links, widths, &mut places, width, goes_down);
        }
    }
    Placed { places, width, height: y + room.line / 2.0 + 4.0 }
}

/// Moves the slots of a line below (or above) the middle of what they are linked to, as far as they leave room for each
/// other.
fn straighten(
    line: &[usize],
    links: &[(usize, usize)],
    widths: &[f64],
    places: &mut [(f64, f64)],
    width: f64,
    goes_down: bool,
) {
    let wish = |slot: usize| {
        let ends = links.iter().filter_map(|&(from, to)| match goes_down {
            true if to == slot => Some(places[from].0),
            false if from == slot => Some(places[to].0),
            _ => None,
        });
        let (sum, n) = ends.fold((0.0, 0), |(sum, n), x| (sum + x, n + 1));
        if n == 0 { places[slot].0 } else { sum / f64::from(n) }
    };
    let wishes: Vec<f64> = line.iter().map(|&slot| wish(slot)).collect();
    let apart = |ix: usize| (widths[line[ix]] + widths[line[ix + 1]]) / 2.0;
    // Room that those to the left, and those to the right, need at least.
    let half = |ix: usize| widths[line[ix]] / 2.0;
    let n = line.len();
    let mut least = vec![0.0; n];
    let mut most = vec![0.0; n];
    for ix in 0..n {
        least[ix] = if ix == 0 { half(0) } else { least[ix - 1] + apart(ix - 1) };
    }
    for ix in (0..n).rev() {
        most[ix] = if ix + 1 == n { width - half(ix) } else { most[ix + 1] - apart(ix) };
    }
    // Once pushing to the right and once to the left; the middle of both keeps the distances too.
    let mut from_left = wishes.clone();
    let mut from_right = wishes;
    for ix in 0..n {
        let free = if ix == 0 { f64::NEG_INFINITY } else { from_left[ix - 1] + apart(ix - 1) };
        from_left[ix] = from_left[ix].max(free).min(most[ix]).max(least[ix]);
    }
    for ix in (0..n).rev() {
        let free = if ix + 1 == n { f64::INFINITY } else { from_right[ix + 1] - apart(ix) };
        from_right[ix] = from_right[ix].min(free).max(least[ix]).min(most[ix]);
    }
    for (ix, &slot) in line.iter().enumerate() {
        places[slot].0 = (from_left[ix] + from_right[ix]) / 2.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { width: 720.0, slot: 100.0, layer: 90.0, line: 52.0 };

    /// No two nodes in one place, all inside.
    fn check(layout: &Layout, room: Room) {
        for (ix, &(x, y)) in layout.nodes.iter().enumerate() {
            let half = room.slot / 2.0 - 0.1;
            assert!(x >= half && x <= layout.width - half && y > 0.0 && y < layout.height, "{ix} at {x} {y}");
            for &(other_x, other_y) in &layout.nodes[..ix] {
                let apart = (x - other_x).abs() >= room.slot * 0.99 || (y - other_y).abs() >= room.line * 0.99;
                assert!(apart, "{ix}: {:?}", layout.nodes);
            }
        }
    }

    #[test]
    fn parents_stand_above_children() {
        // doc -> topic -> word
        let found = layout(&[vec![], vec![0], vec![1]], ROOM);
        check(&found, ROOM);
        assert!(found.nodes[0].1 < found.nodes[1].1 && found.nodes[1].1 < found.nodes[2].1);
        assert!(found.nodes.iter().all(|node| (node.0 - 360.0).abs() < 1e-9));
    }

    #[test]
    fn a_long_edge_goes_around() {
        // 0 -> 1 -> 2 and 0 -> 2: the long edge passes beside node 1.
        let found = layout(&[vec![], vec![0], vec![0, 1]], ROOM);
        check(&found, ROOM);
        let long = found.edges.iter().find(|edge| (edge.from, edge.to) == (0, 2)).unwrap();
        assert_eq!(long.bends.len(), 1);
        assert!((long.bends[0].0 - found.nodes[1].0).abs() >= ROOM.slot * 0.6);
    }

    #[test]
    fn crossings_are_undone() {
        // Two roots, children the other way round.
        let found = layout(&[vec![], vec![], vec![1], vec![0]], ROOM);
        let below = |x: usize, y: usize| (found.nodes[x].0 < found.nodes[y].0) == (found.nodes[0].0 < found.nodes[1].0);
        assert!(below(3, 2));
    }

    #[test]
    fn forty_children_fit_a_phone() {
        let mut parents = vec![vec![0]; 41];
        parents[0] = vec![];
        for width in [340.0, 720.0] {
            let room = Room { width, ..ROOM };
            check(&layout(&parents, room), room);
        }
    }

    #[test]
    fn damaged_graphs_are_laid_out() {
        layout(&[], ROOM);
        layout(&[vec![0]], ROOM);
        layout(&[vec![1], vec![0]], ROOM);
        layout(&[vec![7, 7], vec![0, 0]], ROOM);
    }
}
