//! Tables of any size: millions of values, more than 2^64 rows, 1e400 cells, more hidden values than tokens.

use crate::limits::{Reference, ln_pi_and_d_ep};
use crate::support::{Dag, Rows, assert_relative, score, score_bound, settings, with_problem};
use polyurn::control::Control;
use polyurn::engine::exact::{Exact, TotalsRange};
use polyurn::evidence::totals;
use polyurn::math::ln_factorial;
use polyurn::prior::PriorSettings;
use std::collections::BTreeSet;

/// Nodes of these sizes, without edges.
fn edgeless(sizes: Vec<u32>) -> Dag {
    Dag { parents: vec![BTreeSet::new(); sizes.len()], sizes, tied: Vec::new() }
}

fn some_rows(columns: Vec<usize>, values: &[&dyn Fn(usize) -> u32], counts: &[u64]) -> Rows {
    let row = |value: &&dyn Fn(usize) -> u32| columns.iter().map(|&node| Some(value(node))).collect();
    let rows = values.iter().map(row).zip(counts.iter().copied()).collect();
    Rows { columns, rows, unknown: Vec::new() }
}

#[test]
fn a_mode_of_a_million_values_with_six_tokens_runs() {
    let mut dag = edgeless(vec![4, 3, 1_000_000]);
    dag.parents[1].insert(0);
    dag.parents[2].insert(1);
    let rows = some_rows(
        vec![0, 2],
        &[&|node| [3, 0, 999_999][node], &|node| [1, 0, 17][node], &|node| [1, 0, 999_999][node]],
        &[3, 2, 1],
    );
    let got = score_bound(&rows.bind(&dag), &settings(0.6)).log_p_sequence;
    assert_relative("a million words", got, Reference::ln_p(&dag, &rows, 0.6), 1e-10);
}

#[test]
fn a_chain_of_80_nodes_of_100_000_values_is_scored() {
    let mut dag = edgeless(vec![100_000; 80]);
    (1..80).for_each(|node| dag.parents[node].extend([node - 1]));
    let rows = some_rows(
        (0..80).collect(),
        &[&|node| (node as u32 * 1237) % 100_000, &|node| if node < 40 { 99_999 } else { node as u32 }, &|_| 0],
        &[4, 1, 2],
    );
    for a in [1e-12, 1.0, 1e9] {
        let got = score_bound(&rows.bind(&dag), &settings(a));
        assert!(got.log_marginal.is_finite());
        assert_relative("chain", got.log_p_sequence, Reference::ln_p(&dag, &rows, a), 1e-10);
    }
}

/// ln p(sequence) of a Dirichlet-multinomial with exp(ln_n_cells) even cells of total weight a, for small counts.
fn dirichlet_multinomial(a: f64, ln_n_cells: f64, counts: &[u64]) -> f64 {
    let n_tokens: u64 = counts.iter().sum();
    let ln_cell = a.ln() - ln_n_cells;
    let cells: f64 =
        counts.iter().map(|&n| ln_cell + (1..n).map(|j| (ln_cell.exp() + j as f64).ln()).sum::<f64>()).sum();
    cells - (0..n_tokens).map(|j| (a + j as f64).ln()).sum::<f64>()
}

#[test]
fn complete_on_thirty_columns_of_ten_values_is_one_dirichlet_multinomial() {
    let names: Vec<String> = (0..30).map(|column| format!("c{column}")).collect();
    let mut data = names.join(",") + ",count\n";
    let counts: Vec<u64> = (0..10).map(|row| 1 + (row * row) % 7).collect();
    for (row, count) in counts.iter().enumerate() {
        // Row r shows value r in even columns and another one in odd columns, so every column has ten values.
        let values: Vec<String> = (0..30).map(|column| ((row + (column % 2) * 3) % 10).to_string()).collect();
        data += &format!("{},{count}\n", values.join(","));
    }
    for a in [1e-12, 0.4, 1e9] {
        let got = score("complete", &data, &settings(a)).log_p_sequence;
        assert_relative("complete", got, dirichlet_multinomial(a, 30.0 * 10f64.ln(), &counts), 1e-12);
    }
}

#[test]
fn a_complete_model_of_1e400_cells_is_one_dirichlet_multinomial() {
    let mut dag = edgeless(vec![100_000; 80]);
    (1..80).for_each(|node| dag.parents[node].extend(0..node));
    let counts = [3, 1, 5];
    let rows = some_rows(
        (0..80).collect(),
        &[&|node| node as u32, &|node| if node < 79 { node as u32 } else { 0 }, &|node| 99_999 - node as u32],
        &counts,
    );
    for a in [1e-12, 2.5, 1e9] {
        let got = score_bound(&rows.bind(&dag), &settings(a));
        let want = dirichlet_multinomial(a, 80.0 * 1e5f64.ln(), &counts);
        assert_relative("1e400 cells", got.log_p_sequence, want, 1e-10);
        assert!(got.log_marginal.is_finite());
    }
}

/// A complete model of 1e400 cells with two occupied ones.
fn two_cells_of_1e400() -> (Dag, Rows) {
    let mut dag = edgeless(vec![100_000; 80]);
    (1..80).for_each(|node| dag.parents[node].extend(0..node));
    (dag, some_rows((0..80).collect(), &[&|node| node as u32, &|_| 3], &[2, 1]))
}

#[test]
fn an_unknown_cell_may_be_one_of_1e400() {
    let (dag, mut rows) = two_cells_of_1e400();
    rows.unknown.push(vec![99_999; 80]);
    let prior = PriorSettings { rate: Some(0.5), ..settings(1.2) };
    with_problem(&rows.bind(&dag), &prior, |problem| {
        let total = problem.prior.total(None).unwrap();
        let found = totals(problem, &Exact::default(), TotalsRange::Between(3, 5), &mut Control::default()).unwrap();
        for (entry, counts) in found.iter().zip([vec![2, 1], vec![2, 1, 1], vec![2, 1, 2]]) {
            let factorials = counts.iter().fold(ln_factorial(entry.tokens), |ln, &n| ln - ln_factorial(n));
            let want = (total.ln_p_total(entry.tokens) + factorials).value()
                + dirichlet_multinomial(1.2, 80.0 * 1e5f64.ln(), &counts);
            assert_relative(&format!("total {}", entry.tokens), entry.log_joint, want, 1e-10);
        }
    });
}

#[test]
fn enumeration_reaches_tables_of_1e400_cells() {
    let (dag, rows) = two_cells_of_1e400();
    let listed = ln_pi_and_d_ep(&dag, &rows, 1.2);
    let want = score_bound(&rows.bind(&dag), &settings(1.2)).log_marginal;
    assert_eq!(listed.len(), 1);
    assert_relative("ln pi", listed[0].0, want, 1e-10);
}

/// A node y of two values whose parents are a hidden z and n seen columns of 100,000 values: rows of 10^(5 n) cells, each
/// reached only through the hidden node.
fn wide_hidden_table(n_columns: usize, z_first: bool) -> (Dag, Rows) {
    let mut dag = edgeless(vec![100_000; n_columns + 2]);
    let (z, y) = (if z_first { 0 } else { n_columns + 1 }, if z_first { n_columns + 1 } else { 0 });
    dag.sizes[z] = 3;
    dag.sizes[y] = 2;
    dag.parents[y] = (0..n_columns + 2).filter(|&node| node != y).collect();
    let columns = (0..n_columns + 2).filter(|&node| node != z).collect();
    let rows = some_rows(
        columns,
        &[&|node| if node == y { 1 } else { node as u32 }, &|node| if node == y { 0 } else { node as u32 }, &|node| {
            if node == y { 1 } else { 7 * node as u32 }
        }],
        &[2, 1, 3],
    );
    (dag, rows)
}

#[test]
fn hidden_parents_of_tables_of_any_size_are_summed_out() {
    for n_columns in [2, 10, 20, 30, 32, 40, 50, 56, 58, 60, 62, 80] {
        let (dag, rows) = wide_hidden_table(n_columns, false);
        let got = score_bound(&rows.bind(&dag), &settings(1.7)).log_p_sequence;
        let want = Reference::ln_p(&dag, &rows, 1.7);
        assert_relative(&format!("10^{} rows", 5 * n_columns), got, want, 1e-10);
    }
}

#[test]
fn complete_models_of_any_size_with_a_hidden_node_are_summed_out() {
    for n_columns in [2, 10, 20, 30, 32, 40, 50, 56, 58, 60, 62, 80] {
        let mut dag = edgeless(vec![100_000; n_columns + 1]);
        dag.sizes[0] = 2;
        (1..=n_columns).for_each(|node| dag.parents[node].extend(0..node));
        let rows = some_rows(
            (1..=n_columns).collect(),
            &[&|node| node as u32, &|node| 5 * node as u32, &|node| 7 * node as u32],
            &[2, 1, 3],
        );
        // Summed over its hidden root a complete model is complete again: one Dirichlet-multinomial.
        let want = dirichlet_multinomial(1.7, n_columns as f64 * 1e5f64.ln(), &[2, 1, 3]);
        let got = score_bound(&rows.bind(&dag), &settings(1.7)).log_p_sequence;
        assert_relative(&format!("10^{} cells", 5 * n_columns), got, want, 1e-10);
    }
}

#[test]
fn a_hidden_parent_named_before_a_table_of_more_than_2_to_the_64_rows_is_summed_out() {
    for n_columns in [2, 4, 5, 20] {
        let (dag, rows) = wide_hidden_table(n_columns, true);
        let got = score_bound(&rows.bind(&dag), &settings(1.7)).log_p_sequence;
        assert_relative(&format!("{n_columns} columns"), got, Reference::ln_p(&dag, &rows, 1.7), 1e-10);
    }
}

#[test]
fn more_hidden_values_than_tokens_are_fine() {
    let mut dag = edgeless(vec![9, 3, 2]);
    dag.parents[1].insert(0);
    dag.parents[2].insert(0);
    let rows = some_rows(vec![1, 2], &[&|node| [0, 2, 1][node], &|node| [0, 0, 1][node]], &[3, 1]);
    for a in [1e-3, 2.0, 50.0] {
        let got = score_bound(&rows.bind(&dag), &settings(a)).log_p_sequence;
        assert_relative("K = 9, T = 4", got, Reference::ln_p(&dag, &rows, a), 1e-10);
    }
    // Far more values than anyone would enumerate without label symmetry.
    dag.sizes[0] = 1000;
    let rows = some_rows(vec![1, 2], &[&|node| [0, 2, 1][node], &|node| [0, 0, 1][node]], &[1, 1]);
    let got = score_bound(&rows.bind(&dag), &settings(2.0)).log_p_sequence;
    assert_relative("K = 1000, T = 2", got, Reference::ln_p(&dag, &rows, 2.0), 1e-10);
}
