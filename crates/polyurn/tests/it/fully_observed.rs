//! Models without anything hidden: counted in arrays and evaluated together, against cell by cell and against pgmpy.

use crate::support::{
    Dag, Random, Rows, assert_log, assert_relative, base, name, score, settings, tables, with_problem,
};
use polyurn::control::Control;
use polyurn::counts::MISSING;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Exact, posterior};
use polyurn::evidence::ln_arrangements;
use polyurn::graph::TableIndex;
use polyurn::math::{Double, LnProduct, ln_factorial};
use polyurn::prior::{PriorSettings, PriorSpec};
use std::collections::BTreeMap;

/// ln p(sequence), the slow and obvious way: a rising factorial for each cell over one for each row. Only nodes without
/// children may be missing; they have no part in the score then.
fn cell_by_cell(problem: &Problem<'_>) -> f64 {
    let model = problem.model;
    let mut counts: BTreeMap<(TableIndex, Vec<u32>, Option<u32>), u64> = BTreeMap::new();
    let mut record = vec![MISSING; model.n_nodes()];
    for block in &problem.counts.blocks {
        for (record_ix, count) in block.counts.iter().enumerate() {
            block.read(record_ix, &mut record);
            for node_ix in model.node_indices().filter(|node| record[node.ix()] != MISSING) {
                let node = model.node(node_ix);
                let parents: Vec<u32> = node.parents.iter().map(|parent| record[parent.ix()]).collect();
                *counts.entry((node.table, parents.clone(), Some(record[node_ix.ix()]))).or_insert(0) += count;
                *counts.entry((node.table, parents, None)).or_insert(0) += count;
            }
        }
    }
    let mut product = LnProduct::new();
    for ((table, parents, child), n) in counts {
        let table = problem.prior.table(table);
        let pseudo = child.map_or_else(|| table.row(&parents), |child| table.cell(&parents, child));
        match child {
            Some(_) => product.multiply_rising(pseudo.value, pseudo.ln_if_tiny, n),
            None => product.divide_rising(pseudo.value, pseudo.ln_if_tiny, n),
        }
    }
    product.ln().value()
}

fn random_prior(rng: &mut Random, dag: &Dag) -> PriorSettings {
    let marginal = |rng: &mut Random, node: usize| (name(node), rng.weights(dag.sizes[node] as usize));
    match rng.between(0, 4) {
        1 if dag.n_cells() <= 5000 => tables(dag.random_tables(rng)),
        2 if dag.n_cells() <= 5000 => base(rng.weights(dag.n_cells())),
        3 => {
            let marginals = Some((0..dag.n_nodes()).map(|node| marginal(rng, node)).collect());
            let spec = PriorSpec::Base { alpha: None, marginals, size: Some(rng.weight()) };
            PriorSettings { spec, ..Default::default() }
        }
        4 => PriorSettings { pseudo_counts: vec![(name(0), rng.weight())], ..settings(rng.weight()) },
        _ => settings(10f64.powi(rng.between(0, 24) as i32 - 12)),
    }
}

fn random_rows(rng: &mut Random, dag: &Dag) -> Rows {
    let n_rows = rng.between(1, 300);
    let mut rows = Rows::random(rng, dag, (0..dag.n_nodes()).collect(), n_rows, 2 * n_rows, 0.0);
    if rng.chance(0.3) {
        let factor = 10u64.pow(rng.between(1, 12) as u32);
        rows.rows.iter_mut().for_each(|row| row.1 = row.1 * factor + rng.between(0, 9) as u64);
    }
    rows
}

/// Takes values of nodes that have parents but no children out of some rows.
fn take_leaves_out(rng: &mut Random, dag: &Dag, rows: &mut Rows) {
    let is_parent = |node: usize| dag.parents.iter().any(|parents| parents.contains(&node));
    for node in (0..dag.n_nodes()).filter(|&node| !dag.parents[node].is_empty() && !is_parent(node)) {
        rows.rows.iter_mut().filter(|_| rng.chance(0.3)).for_each(|row| row.0[node] = None);
    }
}

#[test]
fn scores_are_those_of_cells_and_rows_one_by_one() {
    let mut rng = Random::new(7001);
    for round in 0..400 {
        let n_nodes = rng.between(1, 7);
        let density = [0.2, 0.5, 0.9][rng.between(0, 2)];
        let mut dag = Dag::random(&mut rng, n_nodes, (1, 6), density);
        if rng.chance(0.3) {
            dag.tie_some(&mut rng);
        }
        let mut rows = random_rows(&mut rng, &dag);
        let has_gaps = rng.chance(0.3);
        if has_gaps {
            take_leaves_out(&mut rng, &dag, &mut rows);
        }
        let prior = random_prior(&mut rng, &dag);
        with_problem(&rows.bind(&dag), &prior, |problem| {
            let (exact, control) = (Exact::default(), &mut Control::default());
            let want = cell_by_cell(problem);
            let got = exact.ln_p_sequence(problem, control).unwrap().ln_p_sequence.value();
            let what = format!("round {round}, {}", dag.text());
            assert_log(&what, got, want, 1e-13);
            if !has_gaps {
                let posterior = posterior(&exact, problem, control).unwrap();
                assert_log(&format!("{what}, posterior"), posterior.ln_p_sequence.value(), want, 1e-13);
            }
        });
    }
}

#[test]
fn arrangements_are_factorials_one_by_one() {
    let mut rng = Random::new(7002);
    for _ in 0..50 {
        let dag = Dag::random(&mut rng, 3, (2, 6), 0.5);
        let binding = random_rows(&mut rng, &dag).bind(&dag);
        let counts = binding.counts.blocks.iter().flat_map(|block| block.counts.iter());
        let want = counts.fold(ln_factorial(binding.counts.n_tokens), |ln, n| ln - ln_factorial(n));
        let error = ln_arrangements(&binding.counts) - want;
        assert!(error.value().abs() <= 1e-25 * (want + Double::ONE).value(), "{error:?}");
    }
}

/// 300 rows over a, b, c and d of 3, 4, 3 and 5 values, all of which occur.
fn rows_by_formula() -> String {
    let mut data = String::from("a,b,c,d\n");
    for i in 0..300 {
        let a = i * i % 7 % 3;
        let b = (i + a * i / 5) % 4;
        let c = (a * b + i / 16) % 3;
        let d = (b + c * c + i / 9 % 2) % 5;
        data += &format!("{a},{b},{c},{d}\n");
    }
    data
}

/// Numbers of pgmpy 1.1.2: `BDeu(data, equivalent_sample_size=a).score(model)` of the same rows and arrows.
#[test]
fn scores_are_those_of_pgmpy() {
    let sizes = [0.1, 1.0, 10.0, 1000.0];
    let found = [
        ("a; b; c; d", [-1566.4178213210348, -1544.459501042594, -1530.2452064992972, -1548.2912112454433]),
        ("a -> b -> c -> d", [-1665.5617591441874, -1598.3253143631418, -1547.548687261666, -1546.098351728509]),
        ("a -> b c d", [-1665.1917553429735, -1602.4843440755892, -1555.2375180944316, -1548.070505572236]),
        ("a b -> c; b c -> d", [-1502.1696293370794, -1412.674754691138, -1350.2406976431184, -1502.8547064354352]),
        (
            "a -> b; a b -> c; a b c -> d",
            [-1713.5062213891556, -1559.1506226813076, -1431.1462928760752, -1498.766750794396],
        ),
    ];
    let data = rows_by_formula();
    for (model, scores) in found {
        for (a, want) in sizes.into_iter().zip(scores) {
            let got = score(model, &data, &settings(a)).log_p_sequence;
            assert_relative(&format!("{model}, a = {a}"), got, want, 1e-12);
        }
    }
}
