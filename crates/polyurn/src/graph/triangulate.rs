//! Undirected graphs: moral graphs, min-fill triangulation, perfect numberings and junction trees.
//!
//! Adjacency is kept as rows of bits, so that a graph of some thousands of vertices takes a few megabytes and counting
//! common neighbours is a matter of words.

use super::model::Model;
use std::cmp::Ordering;

const WORD_BITS: usize = u64::BITS as usize;

/// An undirected graph on the vertices `0..n`, without loops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undirected {
    n_vertices: usize,
    words_per_row: usize,
    bits: Vec<u64>,
}

/// What [`Undirected::eliminate`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triangulation {
    /// The vertices in the order in which they were eliminated.
    pub order: Vec<usize>,
    /// The edges that had to be added, each (smaller, larger).
    pub fill: Vec<(usize, usize)>,
    /// The maximal cliques of the triangulated graph, each sorted, in the order of elimination.
    pub cliques: Vec<Vec<usize>>,
}

impl Undirected {
    /// A graph of `n` vertices and no edges.
    pub fn new(n: usize) -> Self {
        let words_per_row = n.div_ceil(WORD_BITS);
        Undirected { n_vertices: n, words_per_row, bits: vec![0; n * words_per_row] }
    }

    /// The moral graph of a model: every node, its parents and all pairs among them joined.
    pub fn moral(model: &Model) -> Self {
        let mut graph = Undirected::new(model.n_nodes());
        for (ix, node) in model.nodes().iter().enumerate() {
            let family: Vec<usize> = node.parents.iter().map(|parent| parent.ix()).chain([ix]).collect();
            graph.add_clique(&family);
        }
        graph
    }

    /// Number of vertices.
    pub fn n_vertices(&self) -> usize {
        self.n_vertices
    }

    /// Joins two vertices; a loop is ignored.
    ///
    /// # Panics
    /// When a vertex is not of this graph.
    pub fn add_edge(&mut self, a: usize, b: usize) {
        self.check(a);
        self.check(b);
        if a != b {
            self.bits[a * self.words_per_row + b / WORD_BITS] |= 1 << (b % WORD_BITS);
            self.bits[b * self.words_per_row + a / WORD_BITS] |= 1 << (a % WORD_BITS);
        }
    }

    /// Joins all pairs of these vertices.
    ///
    /// # Panics
    /// When a vertex is not of this graph.
    pub fn add_clique(&mut self, vertices: &[usize]) {
        for (ix, &a) in vertices.iter().enumerate() {
            for &b in &vertices[ix + 1..] {
                self.add_edge(a, b);
            }
        }
    }

    /// True when the two vertices are joined.
    ///
    /// # Panics
    /// When a vertex is not of this graph.
    pub fn has_edge(&self, a: usize, b: usize) -> bool {
        self.check(a);
        self.check(b);
        bit(self.row(a), b)
    }

    /// The neighbours of a vertex, in increasing order.
    ///
    /// # Panics
    /// When the vertex is not of this graph.
    pub fn neighbours(&self, vertex: usize) -> impl Iterator<Item = usize> + '_ {
        self.check(vertex);
        ones(self.row(vertex))
    }

    /// Triangulates the subgraph that `vertices` induce by greedy elimination.
    ///
    /// The next vertex is always the one whose elimination adds the fewest edges; among those the one whose clique
    /// (itself and its remaining neighbours) has the smallest sum of `weight`, usually the log of the size; then the
    /// one of smallest index. A graph that is chordal already gets no edge.
    ///
    /// Fill counts are kept up to date edge by edge: an edge costs the number of words of a row, choosing a vertex
    /// costs the number of vertices.
    ///
    /// # Panics
    /// When a vertex is not of this graph.
    pub fn eliminate(&self, vertices: &[usize], weight: impl Fn(usize) -> f64) -> Triangulation {
        Elimination::new(self, vertices).run(weight)
    }

    /// Maximum cardinality search: each next vertex has the most neighbours among those before it; the smallest index
    /// wins a tie. In a chordal graph the earlier neighbours of every vertex form a clique, so the order is a perfect
    /// numbering (Tarjan and Yannakakis 1984).
    pub fn maximum_cardinality_order(&self) -> Vec<usize> {
        let mut n_before = vec![0usize; self.n_vertices];
        let mut is_placed = vec![false; self.n_vertices];
        let mut order = Vec::with_capacity(self.n_vertices);
        while order.len() < self.n_vertices {
            let next = (0..self.n_vertices)
                .filter(|&vertex| !is_placed[vertex])
                .min_by_key(|&vertex| (std::cmp::Reverse(n_before[vertex]), vertex))
                .expect("some vertex is not yet placed");
            is_placed[next] = true;
            order.push(next);
            for neighbour in self.neighbours(next) {
                n_before[neighbour] += 1;
            }
        }
        order
    }

    /// True when every cycle of four or more vertices has a chord.
    pub fn is_chordal(&self) -> bool {
        let order = self.maximum_cardinality_order();
        let mut position = vec![0; self.n_vertices];
        for (at, &vertex) in order.iter().enumerate() {
            position[vertex] = at;
        }
        // The earlier neighbours form a clique if the last of them is joined to all others, by induction.
        order.iter().enumerate().all(|(at, &vertex)| {
            let earlier: Vec<usize> = self.neighbours(vertex).filter(|&other| position[other] < at).collect();
            let Some(&last) = earlier.iter().max_by_key(|&&other| position[other]) else { return true };
            earlier.iter().all(|&other| other == last || bit(self.row(last), other))
        })
    }

    fn check(&self, vertex: usize) {
        assert!(vertex < self.n_vertices, "vertex {vertex} of a graph of {} vertices", self.n_vertices);
    }

    fn row(&self, vertex: usize) -> &[u64] {
        &self.bits[vertex * self.words_per_row..(vertex + 1) * self.words_per_row]
    }

    fn remove_vertex(&mut self, vertex: usize) {
        let neighbours: Vec<usize> = ones(self.row(vertex)).collect();
        for neighbour in neighbours {
            self.bits[neighbour * self.words_per_row + vertex / WORD_BITS] &= !(1 << (vertex % WORD_BITS));
        }
        self.bits[vertex * self.words_per_row..(vertex + 1) * self.words_per_row].fill(0);
    }
}

/// The state of a greedy elimination: what is left of the graph and, for each vertex left, its fill count.
struct Elimination {
    graph: Undirected,
    left: Vec<usize>,
    n_fill: Vec<u64>,
    clique_weight: Vec<Option<f64>>,
}

impl Elimination {
    fn new(graph: &Undirected, vertices: &[usize]) -> Self {
        let mut left = vertices.to_vec();
        left.sort_unstable();
        left.dedup();
        let mut mask = vec![0u64; graph.words_per_row];
        for &vertex in &left {
            graph.check(vertex);
            mask[vertex / WORD_BITS] |= 1 << (vertex % WORD_BITS);
        }
        let mut induced = Undirected::new(graph.n_vertices);
        for &vertex in &left {
            let start = vertex * graph.words_per_row;
            for (word, keep) in mask.iter().enumerate() {
                induced.bits[start + word] = graph.bits[start + word] & keep;
            }
        }
        let mut n_fill = vec![0; graph.n_vertices];
        for &vertex in &left {
            n_fill[vertex] = count_fill(&induced, vertex);
        }
        Elimination { clique_weight: vec![None; graph.n_vertices], graph: induced, left, n_fill }
    }

    fn run(mut self, weight: impl Fn(usize) -> f64) -> Triangulation {
        let mut order = Vec::with_capacity(self.left.len());
        let mut fill = Vec::new();
        let mut elimination_cliques = Vec::with_capacity(self.left.len());
        while !self.left.is_empty() {
            let chosen = self.choose(&weight);
            let vertex = self.left.remove(chosen);
            let neighbours: Vec<usize> = self.graph.neighbours(vertex).collect();
            for (ix, &a) in neighbours.iter().enumerate() {
                for &b in &neighbours[ix + 1..] {
                    if !bit(self.graph.row(a), b) {
                        self.join(a, b);
                        fill.push((a, b));
                    }
                }
            }
            self.remove(vertex, &neighbours);
            let mut clique = neighbours;
            clique.insert(clique.partition_point(|&other| other < vertex), vertex);
            order.push(vertex);
            elimination_cliques.push(clique);
        }
        let cliques = keep_maximal(self.graph.n_vertices, &order, elimination_cliques);
        Triangulation { order, fill, cliques }
    }

    /// The position in `left` of the next vertex to eliminate.
    fn choose(&mut self, weight: &impl Fn(usize) -> f64) -> usize {
        let fewest = self.left.iter().map(|&vertex| self.n_fill[vertex]).min().expect("some vertex is left");
        let mut best: Option<(f64, usize)> = None;
        for (at, &vertex) in self.left.iter().enumerate() {
            if self.n_fill[vertex] != fewest {
                continue;
            }
            let graph = &self.graph;
            let total = *self.clique_weight[vertex]
                .get_or_insert_with(|| weight(vertex) + graph.neighbours(vertex).map(weight).sum::<f64>());
            if best.is_none_or(|(least, _)| total.total_cmp(&least) == Ordering::Less) {
                best = Some((total, at));
            }
        }
        best.expect("some vertex has the fewest").1
    }

    /// Adds an edge and corrects the fill counts it changes: common neighbours lack one edge less, the two ends have a
    /// neighbour more that is not joined to some others.
    fn join(&mut self, a: usize, b: usize) {
        let (row_a, row_b) = (self.graph.row(a), self.graph.row(b));
        let only_a: u64 = row_a.iter().zip(row_b).map(|(x, y)| u64::from((x & !y).count_ones())).sum();
        let only_b: u64 = row_a.iter().zip(row_b).map(|(x, y)| u64::from((y & !x).count_ones())).sum();
        for (word, (x, y)) in row_a.iter().zip(row_b).enumerate() {
            for common in ones_of_word(word, x & y) {
                self.n_fill[common] -= 1;
            }
        }
        self.n_fill[a] += only_a;
        self.n_fill[b] += only_b;
        self.graph.add_edge(a, b);
        self.clique_weight[a] = None;
        self.clique_weight[b] = None;
    }

    /// Takes away a vertex whose neighbours form a clique.
    fn remove(&mut self, vertex: usize, neighbours: &[usize]) {
        for &neighbour in neighbours {
            let (theirs, ours) = (self.graph.row(neighbour), self.graph.row(vertex));
            let not_shared: u64 = theirs.iter().zip(ours).map(|(x, y)| u64::from((x & !y).count_ones())).sum();
            // The vertex itself is a neighbour of its neighbour and not of itself.
            self.n_fill[neighbour] -= not_shared - 1;
            self.clique_weight[neighbour] = None;
        }
        self.graph.remove_vertex(vertex);
    }
}

/// Number of pairs of neighbours that are not joined.
fn count_fill(graph: &Undirected, vertex: usize) -> u64 {
    let row = graph.row(vertex);
    let twice: u64 = ones(row)
        .map(|neighbour| {
            let lacking: u64 =
                row.iter().zip(graph.row(neighbour)).map(|(x, y)| u64::from((x & !y).count_ones())).sum();
            lacking - 1
        })
        .sum();
    twice / 2
}

/// Keeps the elimination cliques that no other contains. That of `v` is contained in another exactly when some `u`
/// eliminated before has `v` as its first remaining neighbour and a clique larger by one (Blair and Peyton 1993).
fn keep_maximal(n_vertices: usize, order: &[usize], cliques: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    let mut position = vec![usize::MAX; n_vertices];
    for (at, &vertex) in order.iter().enumerate() {
        position[vertex] = at;
    }
    let mut is_maximal = vec![true; cliques.len()];
    for (at, clique) in cliques.iter().enumerate() {
        let next = clique.iter().map(|&vertex| position[vertex]).filter(|&other| other > at).min();
        if let Some(next) = next.filter(|&next| cliques[next].len() + 1 == clique.len()) {
            is_maximal[next] = false;
        }
    }
    cliques.into_iter().zip(is_maximal).filter_map(|(clique, keep)| keep.then_some(clique)).collect()
}

/// Cliques joined to a tree (a forest when the graph falls into parts) so that the cliques that hold any one vertex
/// hang together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JunctionTree {
    /// The cliques, as they were given, each sorted.
    pub cliques: Vec<Vec<usize>>,
    /// The edges: a clique, a clique further from the root, and the vertices they share. Every clique but the root of
    /// its part stands once in second place, after the edge that leads to the one in first place.
    pub separators: Vec<(usize, usize, Vec<usize>)>,
}

impl JunctionTree {
    /// Joins the maximal cliques of a triangulated graph by a spanning tree of largest separators (Prim's algorithm;
    /// the smallest index wins a tie). Cliques that share no vertex are not joined. Takes a number of steps
    /// proportional to the square of the number of cliques.
    pub fn new(mut cliques: Vec<Vec<usize>>) -> Self {
        for clique in &mut cliques {
            clique.sort_unstable();
            clique.dedup();
        }
        let n_cliques = cliques.len();
        let mut in_tree = vec![false; n_cliques];
        // For each clique outside: the size of the largest separator with a clique inside, and that clique.
        let mut link: Vec<(usize, usize)> = vec![(0, 0); n_cliques];
        let mut separators = Vec::new();
        for _ in 0..n_cliques {
            let next = (0..n_cliques)
                .filter(|&ix| !in_tree[ix])
                .min_by_key(|&ix| (std::cmp::Reverse(link[ix].0), ix))
                .expect("some clique is outside the tree");
            let (n_shared, nearest) = link[next];
            if n_shared > 0 {
                separators.push((nearest, next, intersection(&cliques[nearest], &cliques[next])));
            }
            in_tree[next] = true;
            for ix in (0..n_cliques).filter(|&ix| !in_tree[ix]) {
                let n_shared = n_common(&cliques[next], &cliques[ix]);
                if n_shared > link[ix].0 {
                    link[ix] = (n_shared, next);
                }
            }
        }
        JunctionTree { cliques, separators }
    }

    /// The size of the largest clique less one; 0 without cliques.
    pub fn treewidth(&self) -> usize {
        self.cliques.iter().map(Vec::len).max().unwrap_or(0).saturating_sub(1)
    }
}

fn intersection(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().copied().filter(|vertex| b.binary_search(vertex).is_ok()).collect()
}

fn n_common(a: &[usize], b: &[usize]) -> usize {
    let (mut at_a, mut at_b, mut n) = (0, 0, 0);
    while at_a < a.len() && at_b < b.len() {
        match a[at_a].cmp(&b[at_b]) {
            Ordering::Less => at_a += 1,
            Ordering::Greater => at_b += 1,
            Ordering::Equal => {
                n += 1;
                at_a += 1;
                at_b += 1;
            }
        }
    }
    n
}

fn bit(row: &[u64], vertex: usize) -> bool {
    row[vertex / WORD_BITS] >> (vertex % WORD_BITS) & 1 == 1
}

fn ones(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(word, &bits)| ones_of_word(word, bits))
}

fn ones_of_word(word: usize, mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let low = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            word * WORD_BITS + low
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::ModelSource;
    use proptest::prelude::*;

    fn graph(n: usize, edges: &[(usize, usize)]) -> Undirected {
        let mut graph = Undirected::new(n);
        for &(a, b) in edges {
            graph.add_edge(a, b);
        }
        graph
    }

    fn all(n: usize) -> Vec<usize> {
        (0..n).collect()
    }

    #[test]
    fn edges_go_both_ways_and_loops_are_ignored() {
        let graph = graph(130, &[(0, 129), (64, 63), (5, 5)]);
        assert!(graph.has_edge(129, 0) && graph.has_edge(63, 64));
        assert!(!graph.has_edge(5, 5) && !graph.has_edge(0, 1));
        assert_eq!(graph.neighbours(0).collect::<Vec<_>>(), [129]);
        assert_eq!(graph.n_vertices(), 130);
    }

    #[test]
    fn an_empty_graph_has_no_cliques() {
        let found = Undirected::new(0).eliminate(&[], |_| 1.0);
        assert_eq!(found, Triangulation { order: vec![], fill: vec![], cliques: vec![] });
        assert!(Undirected::new(0).is_chordal());
        assert_eq!(JunctionTree::new(found.cliques).treewidth(), 0);
    }

    #[test]
    fn a_tree_needs_no_fill_and_its_cliques_are_its_edges() {
        let graph = graph(4, &[(0, 1), (1, 2), (1, 3)]);
        let found = graph.eliminate(&all(4), |_| 1.0);
        assert!(found.fill.is_empty());
        assert_eq!(found.cliques, [vec![0, 1], vec![1, 2], vec![1, 3]]);
        assert!(graph.is_chordal());
    }

    #[test]
    fn a_four_cycle_gets_one_chord() {
        let graph = graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]);
        assert!(!graph.is_chordal());
        let found = graph.eliminate(&all(4), |_| 1.0);
        assert_eq!(found.fill, [(1, 3)]);
        assert_eq!(found.cliques, [vec![0, 1, 3], vec![1, 2, 3]]);
    }

    #[test]
    fn equal_fill_goes_to_the_lightest_clique() {
        let graph = graph(4, &[(0, 1), (1, 2), (2, 3), (3, 0)]);
        let sizes: [f64; 4] = [2.0, 50.0, 3.0, 60.0];
        let found = graph.eliminate(&all(4), |vertex| sizes[vertex].ln());
        assert_eq!(found.order[0], 1);
        assert_eq!(found.fill, [(0, 2)]);
    }

    #[test]
    fn only_the_induced_subgraph_is_eliminated() {
        let graph = graph(5, &[(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]);
        let found = graph.eliminate(&[4, 1, 0, 1, 2], |_| 1.0);
        assert!(found.fill.is_empty());
        assert_eq!(found.cliques, [vec![4], vec![0, 1], vec![1, 2]]);
    }

    #[test]
    fn moral_graph_marries_parents() {
        let spec = ModelSource::parse("a b -> c; c -> d").unwrap().resolve(None).unwrap();
        let model = Model::build(&spec, &[2, 2, 2, 2]).unwrap();
        let moral = Undirected::moral(&model);
        let (a, b, d) = (0, 1, 3);
        assert!(moral.has_edge(a, b) && !moral.has_edge(a, d));
    }

    #[test]
    fn maximum_cardinality_prefers_the_smallest_index() {
        let graph = graph(4, &[(0, 1), (0, 2), (0, 3), (2, 3)]);
        assert_eq!(graph.maximum_cardinality_order(), [0, 1, 2, 3]);
        let parts = Undirected::new(3);
        assert_eq!(parts.maximum_cardinality_order(), [0, 1, 2]);
    }

    #[test]
    fn junction_tree_uses_the_largest_separators() {
        let tree = JunctionTree::new(vec![vec![0, 1, 2], vec![2, 5], vec![3, 1, 2], vec![7, 8]]);
        assert_eq!(tree.separators, [(0, 2, vec![1, 2]), (0, 1, vec![2])]);
        assert_eq!(tree.treewidth(), 2);
    }

    #[test]
    fn a_grid_of_529_vertices_is_quick_and_chordal_after_filling() {
        let side = 23;
        let mut grid = Undirected::new(side * side);
        for ix in 0..side * side {
            if ix % side + 1 < side {
                grid.add_edge(ix, ix + 1);
            }
            if ix + side < side * side {
                grid.add_edge(ix, ix + side);
            }
        }
        let found = grid.eliminate(&all(side * side), |_| 1.0);
        check_triangulation(&grid, &found);
        assert!(JunctionTree::new(found.cliques).treewidth() >= side);
    }

    #[test]
    fn a_chain_of_five_thousand_vertices_is_handled() {
        let n = 5000;
        let mut chain = Undirected::new(n);
        for ix in 1..n {
            chain.add_edge(ix - 1, ix);
        }
        let found = chain.eliminate(&all(n), |_| 1.0);
        assert!(found.fill.is_empty());
        let tree = JunctionTree::new(found.cliques);
        assert_eq!((tree.cliques.len(), tree.separators.len(), tree.treewidth()), (n - 1, n - 2, 1));
    }

    /// Chordal after filling, every edge in a clique, no clique in another, no pair of a clique unjoined.
    fn check_triangulation(graph: &Undirected, found: &Triangulation) {
        let n = graph.n_vertices();
        let mut filled = graph.clone();
        for &(a, b) in &found.fill {
            assert!(!graph.has_edge(a, b) && a < b);
            filled.add_edge(a, b);
        }
        assert!(filled.is_chordal());
        let mut from_cliques = Undirected::new(n);
        for clique in &found.cliques {
            assert!(clique.is_sorted());
            from_cliques.add_clique(clique);
        }
        assert_eq!(from_cliques, filled);
        for (ix, clique) in found.cliques.iter().enumerate() {
            for (other_ix, other) in found.cliques.iter().enumerate() {
                assert!(ix == other_ix || n_common(clique, other) < clique.len());
            }
        }
        for vertex in 0..n {
            assert!(found.cliques.iter().any(|clique| clique.contains(&vertex)));
        }
    }

    /// The same greedy rule with every fill count taken anew: slow and obvious.
    fn eliminate_slowly(graph: &Undirected) -> Vec<usize> {
        let mut graph = graph.clone();
        let mut left = all(graph.n_vertices());
        let mut order = Vec::new();
        while !left.is_empty() {
            let key = |&&vertex: &&usize| (count_fill(&graph, vertex), graph.neighbours(vertex).count(), vertex);
            let vertex = *left.iter().min_by_key(key).unwrap();
            let neighbours: Vec<usize> = graph.neighbours(vertex).collect();
            graph.add_clique(&neighbours);
            graph.remove_vertex(vertex);
            left.retain(|&other| other != vertex);
            order.push(vertex);
        }
        order
    }

    /// The cliques that hold a vertex form a subtree: one edge fewer than cliques.
    fn check_running_intersection(tree: &JunctionTree, n: usize) {
        for vertex in 0..n {
            let n_cliques = tree.cliques.iter().filter(|clique| clique.contains(&vertex)).count();
            let n_edges = tree.separators.iter().filter(|(_, _, shared)| shared.contains(&vertex)).count();
            assert_eq!(n_cliques, n_edges + 1);
        }
    }

    proptest! {
        #[test]
        fn random_graphs_are_triangulated_as_by_the_slow_way(
            n in 1usize..75, edges in prop::collection::vec((0usize..75, 0usize..75), 0..160)
        ) {
            let mut graph = Undirected::new(n);
            for (a, b) in edges {
                graph.add_edge(a % n, b % n);
            }
            let found = graph.eliminate(&all(n), |_| 1.0);
            check_triangulation(&graph, &found);
            prop_assert_eq!(&found.order, &eliminate_slowly(&graph));
            prop_assert_eq!(found.fill.is_empty(), graph.is_chordal());
            let tree = JunctionTree::new(found.cliques);
            check_running_intersection(&tree, n);
            let mut reached = vec![false; tree.cliques.len()];
            for (_, child, _) in &tree.separators {
                prop_assert!(!std::mem::replace(&mut reached[*child], true));
            }
        }
    }
}
