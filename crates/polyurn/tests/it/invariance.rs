//! What must not matter: the order of rows, columns, nodes and labels, and nodes that say nothing.

use crate::support::{
    Dag, Random, Rows, assert_same_evidence, base, bound, csv, is_affordable, score, score_bound, settings,
};
use polyurn::evidence::Evidence;
use polyurn::prior::PriorSettings;
use std::collections::BTreeSet;

const TOLERANCE: f64 = 1e-12;

/// A random model with hidden nodes and missing values, an uneven base measure, and its score.
struct Instance {
    dag: Dag,
    rows: Rows,
    alpha: Vec<f64>,
    uneven: Evidence,
    bdeu: Evidence,
}

impl Instance {
    fn new(rng: &mut Random) -> Self {
        loop {
            let n_nodes = rng.between(3, 5);
            let dag = Dag::random(rng, n_nodes, (1, 3), 0.5);
            if dag.n_cells() < 4 {
                continue;
            }
            let mut columns = rng.permutation(n_nodes);
            columns.truncate(n_nodes - rng.between(0, 1));
            let missing = if rng.chance(0.5) { 0.1 } else { 0.0 };
            let n_tokens = rng.between(5, 9);
            let rows = Rows::random(rng, &dag, columns, 5, n_tokens, missing);
            let alpha = rng.weights(dag.n_cells());
            let binding = rows.bind(&dag);
            if is_affordable(&binding, &base(alpha.clone()), 1e5) {
                let uneven = score_bound(&binding, &base(alpha.clone()));
                let bdeu = score_bound(&binding, &settings(0.7));
                return Instance { dag, rows, alpha, uneven, bdeu };
            }
        }
    }

    #[track_caller]
    fn check(&self, what: &str, dag: &Dag, rows: &Rows, alpha: &[f64]) {
        let binding = rows.bind(dag);
        let what = format!("{what}: {} on\n{}now {} on\n{}", self.dag.text(), self.rows.csv(), dag.text(), rows.csv());
        assert_same_evidence(&what, &score_bound(&binding, &base(alpha.to_vec())), &self.uneven, TOLERANCE);
        assert_same_evidence(&what, &score_bound(&binding, &settings(0.7)), &self.bdeu, TOLERANCE);
    }

    /// The base measure after `values[n]` was applied to the values of every node n (old value to new value).
    fn relabelled_alpha(&self, values: &[Vec<u32>]) -> Vec<f64> {
        let mut alpha = vec![0.0; self.alpha.len()];
        for_each_cell(&self.dag.sizes, |at, cell| {
            let moved: Vec<u32> = cell.iter().zip(values).map(|(&value, map)| map[value as usize]).collect();
            alpha[cell_number(&self.dag.sizes, &moved)] = self.alpha[at];
        });
        alpha
    }
}

fn for_each_cell(sizes: &[u32], mut visit: impl FnMut(usize, &[u32])) {
    let n_cells: u32 = sizes.iter().product();
    let mut cell = vec![0u32; sizes.len()];
    for at in 0..n_cells as usize {
        let mut rest = at as u32;
        for (slot, &size) in cell.iter_mut().zip(sizes).rev() {
            (*slot, rest) = (rest % size, rest / size);
        }
        visit(at, &cell);
    }
}

fn cell_number(sizes: &[u32], cell: &[u32]) -> usize {
    sizes.iter().zip(cell).fold(0, |number, (&size, &value)| number * size as usize + value as usize)
}

fn each_instance(theme: u64, n: usize, mut check: impl FnMut(&mut Random, &Instance)) {
    let mut rng = Random::new(theme);
    for _ in 0..n {
        let instance = Instance::new(&mut rng);
        check(&mut rng, &instance);
    }
}

#[test]
fn the_order_of_rows_does_not_matter() {
    each_instance(201, 40, |rng, instance| {
        let mut rows = instance.rows.clone();
        rng.shuffle(&mut rows.rows);
        instance.check("rows shuffled", &instance.dag, &rows, &instance.alpha);
    });
}

#[test]
fn splitting_a_count_over_several_rows_does_not_matter() {
    each_instance(202, 40, |rng, instance| {
        let mut rows = instance.rows.clone();
        rows.rows = rows.rows.into_iter().flat_map(|(values, count)| vec![(values, 1); count as usize]).collect();
        // Zeros and repeats may stand anywhere.
        let (values, _) = rows.rows[0].clone();
        rows.rows.push((values, 0));
        rng.shuffle(&mut rows.rows);
        instance.check("counts split", &instance.dag, &rows, &instance.alpha);
    });
}

#[test]
fn the_order_of_columns_does_not_matter() {
    each_instance(203, 40, |rng, instance| {
        let order = rng.permutation(instance.rows.columns.len());
        let mut rows = instance.rows.clone();
        rows.columns = order.iter().map(|&at| instance.rows.columns[at]).collect();
        for (values, _) in &mut rows.rows {
            *values = order.iter().map(|&at| values[at]).collect();
        }
        instance.check("columns shuffled", &instance.dag, &rows, &instance.alpha);
    });
}

#[test]
fn the_order_in_which_nodes_are_named_does_not_matter() {
    each_instance(204, 40, |rng, instance| {
        let order = rng.permutation(instance.dag.n_nodes());
        // The base measure lists cells in node order.
        let sizes: Vec<u32> = order.iter().map(|&node| instance.dag.sizes[node]).collect();
        let mut alpha = vec![0.0; instance.alpha.len()];
        for_each_cell(&instance.dag.sizes, |at, cell| {
            let moved: Vec<u32> = order.iter().map(|&node| cell[node]).collect();
            alpha[cell_number(&sizes, &moved)] = instance.alpha[at];
        });
        let text = instance.dag.text_in_order(&order);
        let binding = bound(&text, &csv(&instance.rows.csv()));
        let what = format!("{} named as {text}", instance.dag.text());
        assert_same_evidence(&what, &score_bound(&binding, &base(alpha)), &instance.uneven, TOLERANCE);
        assert_same_evidence(&what, &score_bound(&binding, &settings(0.7)), &instance.bdeu, TOLERANCE);
    });
}

#[test]
fn the_labels_of_seen_values_do_not_matter_when_the_prior_moves_with_them() {
    each_instance(205, 40, |rng, instance| {
        let seen: BTreeSet<usize> = instance.rows.columns.iter().copied().collect();
        let values: Vec<Vec<u32>> = (0..instance.dag.n_nodes())
            .map(|node| {
                let mut map: Vec<u32> = (0..instance.dag.sizes[node]).collect();
                if seen.contains(&node) {
                    rng.shuffle(&mut map);
                }
                map
            })
            .collect();
        let mut rows = instance.rows.clone();
        for (row, _) in &mut rows.rows {
            for (value, &node) in row.iter_mut().zip(&instance.rows.columns) {
                *value = value.map(|value| values[node][value as usize]);
            }
        }
        instance.check("seen labels permuted", &instance.dag, &rows, &instance.relabelled_alpha(&values));
    });
}

#[test]
fn the_labels_of_hidden_values_do_not_matter_when_the_prior_moves_with_them() {
    let mut n_hidden = 0;
    each_instance(206, 60, |_, instance| {
        let seen: BTreeSet<usize> = instance.rows.columns.iter().copied().collect();
        let values: Vec<Vec<u32>> = (0..instance.dag.n_nodes())
            .map(|node| {
                let mut map: Vec<u32> = (0..instance.dag.sizes[node]).collect();
                if !seen.contains(&node) {
                    map.rotate_left(1);
                    n_hidden += usize::from(map.len() > 1);
                }
                map
            })
            .collect();
        let alpha = instance.relabelled_alpha(&values);
        instance.check("hidden labels permuted", &instance.dag, &instance.rows, &alpha);
    });
    assert!(n_hidden > 15, "{n_hidden} hidden nodes");
}

#[test]
fn never_seen_values_of_a_seen_leaf_can_be_merged() {
    let mut n_checked = 0;
    each_instance(207, 60, |rng, instance| {
        let is_leaf = |node: usize| instance.dag.parents.iter().all(|parents| !parents.contains(&node));
        let Some(leaf) = instance.rows.columns.iter().copied().find(|&node| is_leaf(node)) else { return };
        // Give the leaf three values more, none of which occurs, and then only one with all their pseudo-counts.
        let size = instance.dag.sizes[leaf];
        let grown = |n: u32| {
            let mut dag = instance.dag.clone();
            dag.sizes[leaf] = size + n;
            dag
        };
        let (many, one) = (grown(3), grown(1));
        let alpha = rng.weights(many.n_cells());
        let mut merged = vec![0.0; one.n_cells()];
        for_each_cell(&many.sizes, |at, cell| {
            let mut cell = cell.to_vec();
            cell[leaf] = cell[leaf].min(size);
            merged[cell_number(&one.sizes, &cell)] += alpha[at];
        });
        let split = score_bound(&instance.rows.bind(&many), &base(alpha));
        let merged = score_bound(&instance.rows.bind(&one), &base(merged));
        assert_same_evidence(&format!("merged n{leaf} of {}", many.text()), &merged, &split, TOLERANCE);
        n_checked += 1;
    });
    assert!(n_checked >= 30, "{n_checked} leaves");
}

/// Adds a node of this size with these parents and children.
fn with_node(dag: &Dag, size: u32, parents: &[usize], children: &[usize]) -> Dag {
    let mut dag = dag.clone();
    let new = dag.n_nodes();
    dag.sizes.push(size);
    dag.parents.push(parents.iter().copied().collect());
    for &child in children {
        dag.parents[child].insert(new);
    }
    dag
}

#[test]
fn idle_and_barren_hidden_nodes_do_not_matter() {
    each_instance(208, 30, |rng, instance| {
        let check = |what: &str, dag: &Dag| {
            let got = score_bound(&instance.rows.bind(dag), &settings(0.7));
            assert_same_evidence(&format!("{what}: {}", dag.text()), &got, &instance.bdeu, TOLERANCE);
        };
        let n_nodes = instance.dag.n_nodes();
        let parents = [rng.between(0, n_nodes - 1), rng.between(0, n_nodes - 1)];
        check("idle", &with_node(&instance.dag, 4, &[], &[]));
        let barren = with_node(&instance.dag, 3, &parents, &[]);
        check("barren leaf", &barren);
        // A barren chain, also below an idle node.
        check("barren chain", &with_node(&barren, 2, &[n_nodes], &[]));
        let idle_root = with_node(&instance.dag, 2, &[], &[]);
        check("barren below idle", &with_node(&idle_root, 5, &[n_nodes, parents[0]], &[]));
    });
}

#[test]
fn nodes_of_one_value_do_not_matter_wherever_they_stand() {
    each_instance(209, 30, |rng, instance| {
        let n_nodes = instance.dag.n_nodes();
        let some = rng.between(0, n_nodes - 1);
        // Into the middle of an edge that stays, so that only the new node is added.
        let edge = (0..n_nodes).find_map(|child| instance.dag.parents[child].first().map(|&parent| (parent, child)));
        let mut grown = vec![
            ("alone", with_node(&instance.dag, 1, &[], &[])),
            ("parent", with_node(&instance.dag, 1, &[], &[some])),
            ("parent of all", with_node(&instance.dag, 1, &[], &(0..n_nodes).collect::<Vec<_>>())),
            ("child", with_node(&instance.dag, 1, &[some], &[])),
            ("child of all", with_node(&instance.dag, 1, &(0..n_nodes).collect::<Vec<_>>(), &[])),
        ];
        grown.extend(edge.map(|(parent, child)| ("middle", with_node(&instance.dag, 1, &[parent], &[child]))));
        for (place, dag) in grown {
            instance.check(&format!("hidden {place}"), &dag, &instance.rows, &instance.alpha);
            let mut rows = instance.rows.clone();
            rows.columns.push(n_nodes);
            rows.rows.iter_mut().for_each(|(values, _)| values.push(Some(0)));
            instance.check(&format!("seen {place}"), &dag, &rows, &instance.alpha);
        }
    });
}

#[test]
fn text_labels_may_be_renamed_and_reordered() {
    let prior = PriorSettings { a: Some(1.7), rate: Some(0.4), ..Default::default() };
    let data = "hair,eye,count\nblack,brown,4\nblack,blue,1\nfair,blue,5\nfair,,2\n";
    let renamed = "eye,count,hair\nzz,2,b\n,2,a\nzz,2,a\nquite green,4,b\nzz,3,a\n";
    // black -> b, fair -> a, brown -> quite green, blue -> zz; (b, zz) 1 became 2 on purpose.
    let want = score("class[3] -> hair eye", data, &prior);
    let different = score("class[3] -> hair eye", renamed, &prior);
    assert!((want.log_marginal - different.log_marginal).abs() > 1e-3);
    let got = score("class[3] -> hair eye", &renamed.replace("zz,2,b", "zz,1,b"), &prior);
    assert_same_evidence("renamed", &got, &want, TOLERANCE);
}
