//! Where the nodes of a DAG go: layers from the roots down, crossings few, nothing on top of anything else.

/// The layout of a graph.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The middle of each node.
    pub nodes: Vec<(f64, f64)>,
    /// For each edge its nodes, and the places between them that its line goes through.
    pub edges: Vec<Edge>,
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
    let (places, height) = place(&rows, &links, slot_layer.len(), room);
    let edges = edges
        .iter()
        .zip(&chains)
        .map(|(&(from, to), chain)| Edge { from, to, bends: chain.iter().map(|&slot| places[slot]).collect() })
        .collect();
    Layout { nodes: places[..n_nodes].to_vec(), edges, height }
}

/// The longest way from a root to each node.
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

/// Coordinates of all slots, and the height. A layer with too many for one line takes several, in turn.
fn place(rows: &[Vec<usize>], links: &[(usize, usize)], n_slots: usize, room: Room) -> (Vec<(f64, f64)>, f64) {
    let mut places = vec![(0.0, 0.0); n_slots];
    let per_line = (room.width / room.slot).floor().max(1.0) as usize;
    let mut y = room.line / 2.0 + 4.0;
    for (layer, row) in rows.iter().enumerate() {
        if layer > 0 {
            y += room.layer;
        }
        let n_lines = row.len().div_ceil(per_line).max(1);
        for (ix, &slot) in row.iter().enumerate() {
            let (line, column) = (ix % n_lines, ix / n_lines);
            let n_columns = (row.len() - line).div_ceil(n_lines);
            // Few nodes stand close together in the middle, many take the whole width.
            let pitch = (room.slot * 1.25).min(room.width / n_columns as f64);
            let x = room.width / 2.0 + (column as f64 - (n_columns as f64 - 1.0) / 2.0) * pitch;
            places[slot] = (x, y + line as f64 * room.line);
        }
        if n_lines == 1 {
            shift_below(row, links, &mut places, room);
        }
        y += (n_lines - 1) as f64 * room.line;
    }
    (places, y + room.line / 2.0 + 4.0)
}

/// Moves a whole layer below the middle of its parents, as far as there is room.
fn shift_below(row: &[usize], links: &[(usize, usize)], places: &mut [(f64, f64)], room: Room) {
    let above: Vec<f64> = links.iter().filter(|(_, to)| row.contains(to)).map(|&(from, _)| places[from].0).collect();
    if above.is_empty() || row.is_empty() {
        return;
    }
    let wish = above.iter().sum::<f64>() / above.len() as f64 - room.width / 2.0;
    let (first, last) = (places[row[0]].0, places[row[row.len() - 1]].0);
    let half = room.slot / 2.0;
    let (least, most) = ((half - first).min(0.0), (room.width - half - last).max(0.0));
    let by = wish.max(least).min(most);
    row.iter().for_each(|&slot| places[slot].0 += by);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { width: 720.0, slot: 100.0, layer: 90.0, line: 52.0 };

    /// No two nodes in one place, all inside.
    fn check(layout: &Layout, room: Room) {
        for (ix, &(x, y)) in layout.nodes.iter().enumerate() {
            let half = room.slot / 2.0 - 0.1;
            assert!(x >= half && x <= room.width - half && y > 0.0 && y < layout.height, "{ix} at {x} {y}");
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
        assert!(found.nodes.iter().all(|node| node.0 == 360.0));
    }

    #[test]
    fn a_long_edge_goes_around() {
        // 0 -> 1 -> 2 and 0 -> 2: the long edge passes beside node 1.
        let found = layout(&[vec![], vec![0], vec![0, 1]], ROOM);
        check(&found, ROOM);
        let long = found.edges.iter().find(|edge| (edge.from, edge.to) == (0, 2)).unwrap();
        assert_eq!(long.bends.len(), 1);
        assert!((long.bends[0].0 - found.nodes[1].0).abs() >= ROOM.slot * 0.99);
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
