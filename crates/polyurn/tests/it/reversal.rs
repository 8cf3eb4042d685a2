//! Reversing a covered edge changes nothing under a prior from one base measure, and something under any other.

use crate::support::{
    Dag, Random, Rows, assert_relative, base, bound, csv, is_affordable, name, relative, score, score_bound, settings,
    tables,
};
use polyurn::prior::PriorSettings;
use std::collections::BTreeMap;

/// Edges x -> y whose ends have the same other parents.
fn covered_edges(dag: &Dag) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for y in 0..dag.n_nodes() {
        for &x in &dag.parents[y] {
            let mut rest = dag.parents[y].clone();
            rest.remove(&x);
            if rest == dag.parents[x] {
                edges.push((x, y));
            }
        }
    }
    edges
}

fn reversed(dag: &Dag, (x, y): (usize, usize)) -> Dag {
    let mut other = dag.clone();
    other.parents[y].remove(&x);
    other.parents[x].insert(y);
    other
}

struct Instance {
    dag: Dag,
    reversed: Dag,
    edge: (usize, usize),
    rows: Rows,
}

/// A DAG of 2 to 6 nodes with a covered edge, and data in which up to two nodes are hidden and some values missing.
fn instance(rng: &mut Random) -> Instance {
    loop {
        let n_nodes = rng.between(2, 6);
        let dag = Dag::random(rng, n_nodes, (1, 4), 0.5);
        let edges = covered_edges(&dag);
        if edges.is_empty() || dag.n_cells() > 600 {
            continue;
        }
        let edge = edges[rng.between(0, edges.len() - 1)];
        let mut columns: Vec<usize> = (0..n_nodes).collect();
        let n_hidden = rng.between(0, 2.min(n_nodes - 1));
        for _ in 0..n_hidden {
            columns.remove(rng.between(0, columns.len() - 1));
        }
        rng.shuffle(&mut columns);
        let missing = if rng.chance(0.3) { 0.15 } else { 0.0 };
        let n_tokens = if n_hidden == 0 && missing == 0.0 { rng.between(5, 200) } else { rng.between(4, 7) };
        let rows = Rows::random(rng, &dag, columns, 4, n_tokens, missing);
        let instance = Instance { reversed: reversed(&dag, edge), dag, edge, rows };
        // Without label symmetry, as under an uneven base measure.
        let uneven = base((1..=instance.dag.n_cells()).map(|ix| ix as f64).collect());
        if [&instance.dag, &instance.reversed].iter().all(|dag| is_affordable(&instance.rows.bind(dag), &uneven, 2e5)) {
            return instance;
        }
    }
}

fn both(instance: &Instance, settings: &PriorSettings) -> (f64, f64) {
    let data = csv(&instance.rows.csv());
    let score = |dag: &Dag| score_bound(&bound(&dag.text(), &data), settings).log_marginal;
    (score(&instance.dag), score(&instance.reversed))
}

#[test]
fn covered_edge_reversals_keep_the_score_under_bdeu_and_under_any_base_measure() {
    let mut rng = Random::new(101);
    let mut n_hidden = 0;
    for round in 0..200 {
        let instance = instance(&mut rng);
        n_hidden += usize::from(instance.rows.columns.len() < instance.dag.n_nodes());
        let what = |prior: &str| {
            format!("{round}, {prior}: {} turning {:?} on\n{}", instance.dag.text(), instance.edge, instance.rows.csv())
        };
        let a = rng.weight() * 2.0;
        let (forward, backward) = both(&instance, &settings(a));
        assert_relative(&what("BDeu"), backward, forward, 1e-11);
        let alpha = rng.weights(instance.dag.n_cells());
        let (forward, backward) = both(&instance, &base(alpha));
        assert_relative(&what("base measure"), backward, forward, 1e-11);
    }
    assert!(n_hidden > 50, "{n_hidden} instances have hidden nodes");
}

#[test]
fn covered_edge_reversals_change_the_score_under_inconsistent_tables_nearly_always() {
    let mut rng = Random::new(102);
    let (mut n, mut n_different) = (0, 0);
    while n < 200 {
        let instance = instance(&mut rng);
        let (x, y) = instance.edge;
        // A node of one value has no table to speak of, and an unseen leaf has no say.
        if [x, y].iter().any(|node| instance.dag.sizes[*node] == 1 || !instance.rows.columns.contains(node)) {
            continue;
        }
        let nodes = 0..instance.dag.n_nodes();
        let pseudo_counts = nodes.map(|node| (name(node), rng.weight())).collect();
        let (forward, backward) = both(&instance, &PriorSettings { pseudo_counts, ..Default::default() });
        n += 1;
        n_different += usize::from(relative(backward, forward) > 1e-6);
    }
    assert!(n_different * 10 >= n * 9, "only {n_different} of {n} reversals changed the score");
}

#[test]
fn a_fixed_inconsistent_prior_tells_the_two_directions_apart() {
    let data = "x,y,count\n0,0,5\n0,1,1\n1,1,2\n1,2,3\n";
    let rows = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let forward = tables(BTreeMap::from([
        ("x".to_owned(), rows(&[&[0.5, 1.5]])),
        ("y".to_owned(), rows(&[&[0.2, 0.7, 1.1], &[0.4, 0.3, 2.0]])),
    ]));
    let backward = tables(BTreeMap::from([
        ("y".to_owned(), rows(&[&[0.6, 1.0, 3.1]])),
        ("x".to_owned(), rows(&[&[0.2, 0.4], &[0.7, 0.3], &[1.1, 2.0]])),
    ]));
    // The cells of both tables are those of one measure, but the root's row is not its marginal in `forward`.
    let one_way = score("x[2] -> y[3]", data, &PriorSettings { rate: Some(0.3), ..forward }).log_marginal;
    let other_way = score("x[2] <- y[3]", data, &PriorSettings { rate: Some(0.3), ..backward }).log_marginal;
    assert!((one_way - other_way).abs() > 1e-2, "{one_way} {other_way}");

    let even = |value: f64| PriorSettings {
        pseudo_counts: vec![("x".into(), value), ("y".into(), value)],
        ..Default::default()
    };
    let (one_way, other_way) = (score("x -> y", data, &even(0.25)), score("y -> x", data, &even(0.25)));
    assert!((one_way.log_marginal - other_way.log_marginal).abs() > 1e-2, "{one_way:?} {other_way:?}");
    // Only the sequence feels the prior of the tables.
    assert_eq!(one_way.log_p_total, other_way.log_p_total);
    assert_eq!(one_way.log_arrangements, other_way.log_arrangements);
}
