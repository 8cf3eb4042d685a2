//! Enumeration: the paper's examples, and the exact engine against sums over listed tensors.

use crate::support::{
    Dag, Random, Rows, assert_log, assert_relative, base, bound, completions, csv, is_affordable, score, settings,
    tables, with_problem,
};
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::enumerate::Enumeration;
use polyurn::engine::exact::{Exact, TotalsRange, posterior};
use polyurn::evidence::{evidence, totals};
use polyurn::graph::{Model, TableIndex};
use polyurn::math::log_sum_exp;
use polyurn::prior::PriorSettings;
use polyurn::urn::Urn;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A listed tensor with its occupied cells written out.
struct Listed {
    ln_pi: f64,
    d_ep: i64,
    cells: Vec<(Vec<u32>, u64)>,
}

fn list(problem: &Problem<'_>) -> Vec<Listed> {
    let total = problem.prior.total(Some(problem.counts.n_tokens)).unwrap();
    let enumeration = Enumeration::new(problem, total).unwrap();
    let mut listed = Vec::new();
    enumeration
        .run(&Exact::default(), &mut Control::default(), &mut |tensor| {
            let cells =
                tensor.occupied.iter().map(|&(cell, n)| (enumeration.cells[cell as usize].clone(), n)).collect();
            listed.push(Listed { ln_pi: tensor.ln_pi, d_ep: tensor.d_ep, cells });
            Ok(())
        })
        .unwrap();
    let distinct: BTreeSet<_> = listed
        .iter()
        .map(|tensor| {
            let mut cells = tensor.cells.clone();
            cells.sort();
            cells
        })
        .collect();
    assert_eq!(distinct.len(), listed.len(), "each tensor is listed once");
    listed
}

fn log_marginal(problem: &Problem<'_>) -> f64 {
    let sequence = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
    evidence(problem, sequence.ln_p_sequence).unwrap().log_marginal
}

#[test]
fn the_prior_example_of_the_paper_has_its_seven_scores() {
    let data = "i,j,count\n0,0,2\n0,1,1\n1,1,1\n";
    let consistent = PriorSettings { a: Some(1.0), rate: Some(1.0), ..Default::default() };
    let quarter = PriorSettings { pseudo_counts: vec![("i".into(), 0.25), ("j".into(), 0.25)], ..consistent.clone() };
    for (model, prior, want, digits) in [
        ("i[2]; j[2]", &consistent, -7.977, 5e-4),
        // The paper prints -8.094; -8.0946 is right (DESIGN.md, section 12, item 10).
        ("i[2] <- j[2]", &consistent, -8.0946, 5e-5),
        ("i[2] -> j[2]", &consistent, -8.0946, 5e-5),
        ("complete", &consistent, -8.0946, 5e-5),
        ("i[2]; j[2]", &quarter, -8.808, 5e-4),
        ("i[2] -> j[2]", &quarter, -8.472, 5e-4),
        ("i[2] <- j[2]", &quarter, -8.549, 5e-4),
    ] {
        let found = score(model, data, prior).log_marginal;
        assert!((found - want).abs() <= digits, "{model}: {found}, the paper says {want}");
        // Nothing is hidden: the one tensor that fits is the data.
        with_problem(&bound(model, &csv(data)), prior, |problem| {
            let listed = list(problem);
            assert_eq!(listed.len(), 1);
            assert_relative(model, listed[0].ln_pi, found, 1e-12);
        });
    }
}

#[test]
fn the_missing_entries_of_the_paper_have_their_modes() {
    for (data, mode) in
        [("i,j,count\n0,0,3\n0,1,?\n1,0,3\n1,1,3\n", 12), ("i,j,count\n0,0,4\n0,1,?\n1,0,4\n1,1,1\n", 10)]
    {
        for k in 1..=4 {
            let prior = PriorSettings { a: Some(4.0), rate: Some(0.01), ..Default::default() };
            with_problem(&bound(&format!("j[2] -> k[{k}] -> i[2]"), &csv(data)), &prior, |problem| {
                let range = TotalsRange::Between(9, 30);
                let found = totals(problem, &Exact::default(), range, &mut Control::default()).unwrap();
                assert_eq!(found.len(), 22);
                let best = found.iter().max_by(|a, b| a.log_joint.total_cmp(&b.log_joint)).unwrap();
                assert_eq!(best.tokens, mode, "K = {k}: {found:?}");
            });
        }
    }
}

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";

#[test]
fn the_toy_matrix_at_k_3_has_8748_tensors_that_add_up_to_the_evidence() {
    for a in [10.0, 0.3, 1e-4, 1e-10] {
        with_problem(&bound("j[4] -> k[3] -> i[3]", &csv(TOY)), &settings(a), |problem| {
            let listed = list(problem);
            // Two tokens go to three places in 6 ways, one in 3 ways: 6^2 3^5.
            assert_eq!(listed.len(), 8748);
            let terms: Vec<f64> = listed.iter().map(|tensor| tensor.ln_pi).collect();
            assert_log(&format!("a {a}"), log_sum_exp(&terms), log_marginal(problem), 1e-10);
        });
    }
}

#[test]
fn for_tiny_a_the_toy_matrix_sits_on_a_grid_of_step_ln_a() {
    let a = 1e-10f64;
    with_problem(&bound("j[4] -> k[3] -> i[3]", &csv(TOY)), &settings(a), |problem| {
        let mut levels: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        list(problem).iter().for_each(|tensor| levels.entry(tensor.d_ep).or_default().push(tensor.ln_pi));
        assert!(levels.len() >= 4);
        let range = |level: &[f64]| {
            level.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &ln| (low.min(ln), high.max(ln)))
        };
        let middle = |level: &[f64]| level.iter().sum::<f64>() / level.len() as f64;
        let all: Vec<(&i64, &Vec<f64>)> = levels.iter().collect();
        for pair in all.windows(2) {
            let ((fewer, above), (more, below)) = (pair[0], pair[1]);
            assert_eq!(fewer + 1, *more, "no level is left out");
            assert!(range(above).0 > range(below).1, "levels {fewer} and {more} overlap");
            // Constants of the prior (pseudo-counts are a over the number of cells) and factorials stay within e^5.
            let step = middle(below) - middle(above);
            assert!((step - a.ln()).abs() < 5.0, "from {fewer} to {more}: {step}, ln a = {}", a.ln());
        }
    });
}

/// Tokens by table, values of the parents and value of the child.
type TableCounts = HashMap<(TableIndex, Vec<u32>, u32), u64>;

/// Counts of every table cell, for tokens given by full assignments.
fn table_counts(model: &Model, cells: &[(Vec<u32>, u64)]) -> TableCounts {
    let mut counts = HashMap::new();
    for (full, n) in cells {
        for (node, at) in model.nodes().iter().zip(0..) {
            let parents: Vec<u32> = node.parents.iter().map(|parent| full[parent.ix()]).collect();
            *counts.entry((node.table, parents, full[at])).or_insert(0) += n;
        }
    }
    counts
}

fn d_ep(counts: &TableCounts) -> f64 {
    let rows: BTreeSet<(TableIndex, &Vec<u32>)> = counts.keys().map(|(table, parents, _)| (*table, parents)).collect();
    counts.len() as f64 - rows.len() as f64
}

fn sum_of_squares(counts: &TableCounts, table: TableIndex) -> f64 {
    counts.iter().filter(|(key, _)| key.0 == table).map(|(_, &n)| (n * n) as f64).sum()
}

/// A random model, prior and data; zero pseudo-counts, but never in a first cell, so that no row is all zero.
fn random_instance(rng: &mut Random, missing: f64) -> (Dag, Rows, PriorSettings) {
    loop {
        let n_nodes = rng.between(2, 4);
        let mut dag = Dag::random(rng, n_nodes, (1, 3), 0.5);
        if rng.chance(0.35) {
            dag.tie_some(rng);
        }
        let mut columns = rng.permutation(n_nodes);
        columns.truncate(rng.between(1, n_nodes));
        let n_tokens = rng.between(3, 6);
        let rows = Rows::random(rng, &dag, columns, 3, n_tokens, missing);
        let prior = match rng.between(0, 3) {
            0 => settings(rng.weight()),
            1 => base(rng.weights(dag.n_cells())),
            kind => {
                let mut given = dag.random_tables(rng);
                for row in given.values_mut().flatten() {
                    for child in 1..row.len() {
                        if kind == 3 && rng.chance(0.2) {
                            row[child] = 0.0;
                        }
                    }
                }
                tables(given)
            }
        };
        let binding = rows.bind(&dag);
        let n_paths: f64 =
            rows.tokens(n_nodes).iter().map(|token| completions(&binding.model, token).len() as f64).product();
        if (2.0..4000.0).contains(&n_paths) && is_affordable(&binding, &prior, 1e5) {
            return (dag, rows, prior);
        }
    }
}

#[test]
fn listed_tensors_add_up_to_the_evidence_and_to_its_posterior() {
    let mut rng = Random::new(501);
    let (mut n, mut n_missing, mut n_tied, mut n_impossible) = (0, 0, 0, 0);
    while n < 60 {
        let missing = if n % 3 == 0 { 0.25 } else { 0.0 };
        let (dag, rows, prior) = random_instance(&mut rng, missing);
        let what = format!("{n}: {} with {prior:?} on\n{}", dag.text(), rows.csv());
        let checked = with_problem(&rows.bind(&dag), &prior, |problem| {
            // Where a full cell fits two records, the tensor does not say whose its tokens are.
            let records: BTreeSet<Vec<Option<u32>>> = rows.tokens(dag.n_nodes()).into_iter().collect();
            let cells = records.iter().flat_map(|record| completions(problem.model, record));
            let n_cells = cells.clone().count();
            if cells.collect::<BTreeSet<_>>().len() < n_cells {
                list(problem);
                return false;
            }
            let listed = list(problem);
            let terms: Vec<f64> = listed.iter().map(|tensor| tensor.ln_pi).collect();
            let total = log_sum_exp(&terms);
            assert_log(&what, total, log_marginal(problem), 1e-10);
            if total == f64::NEG_INFINITY {
                n_impossible += 1;
                return true;
            }
            let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
            let mut want_d_ep = 0.0;
            let mut want_squares = vec![0.0; problem.model.tables().len()];
            for tensor in &listed {
                let weight = (tensor.ln_pi - total).exp();
                let counts = table_counts(problem.model, &tensor.cells);
                assert_eq!(tensor.d_ep as f64, d_ep(&counts), "{what}");
                want_d_ep += weight * tensor.d_ep as f64;
                for (table, squares) in want_squares.iter_mut().enumerate() {
                    *squares += weight * sum_of_squares(&counts, TableIndex(table as u32));
                }
            }
            assert!((exact.d_ep() - want_d_ep).abs() <= 1e-10 * want_d_ep.max(1.0), "{what}");
            for (got, want) in exact.table_sum_of_squares().into_iter().zip(want_squares) {
                assert_relative(&what, got, want, 1e-10);
            }
            true
        });
        if checked {
            n += 1;
            n_missing += usize::from(rows.rows.iter().any(|(values, _)| values.contains(&None)));
            n_tied += usize::from(!dag.tied.is_empty());
        }
    }
    assert!(n_missing >= 5 && n_tied >= 5 && n_impossible <= 15, "{n_missing} {n_tied} {n_impossible}");
}

#[test]
fn impossible_data_have_no_posterior() {
    let table = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let given = BTreeMap::from([
        ("k".to_owned(), table(&[&[0.5, 1.1]])),
        ("i".to_owned(), table(&[&[0.7, 0.4, 0.0], &[0.3, 0.9, 0.0]])),
    ]);
    // Through a hidden parent; with the parent seen; with some records ambiguous and an impossible one that is not.
    for data in ["i,count\n2,1\n0,2\n", "k,i,count\n0,2,1\n1,0,3\n", "k,i,count\n0,2,1\n,0,3\n"] {
        with_problem(&bound("k[2] -> i[3]", &csv(data)), &tables(given.clone()), |problem| {
            assert_eq!(log_marginal(problem), f64::NEG_INFINITY);
            let refused = posterior(&Exact::default(), problem, &mut Control::default());
            assert!(matches!(refused, Err(polyurn::Error::Setting(_))), "a posterior was given for\n{data}");
        });
    }
}

/// Calls `visit` with ln p and the tokens of every assignment of all tokens, labels told apart.
fn for_each_assignment(urn: &Urn<'_>, tokens: &[Vec<Vec<u32>>], ln_p: f64, visit: &mut dyn FnMut(f64, &Urn<'_>)) {
    let Some((first, rest)) = tokens.split_first() else { return visit(ln_p, urn) };
    for token in first {
        let ln = urn.ln_predictive(token);
        if ln > f64::NEG_INFINITY {
            let mut next = urn.clone();
            next.observe(token);
            for_each_assignment(&next, rest, ln_p + ln, visit);
        }
    }
}

/// E of the posterior over all assignments: d_EP, squares, and first and second moments of every table cell.
struct Direct {
    d_ep: f64,
    squares: Vec<f64>,
    moments: HashMap<(TableIndex, Vec<u32>, u32), (f64, f64)>,
}

fn direct(problem: &Problem<'_>, rows: &Rows) -> Direct {
    let tokens: Vec<Vec<Vec<u32>>> =
        rows.tokens(problem.model.n_nodes()).iter().map(|token| completions(problem.model, token)).collect();
    let mut all: Vec<(f64, TableCounts)> = Vec::new();
    for_each_assignment(&Urn::new(problem.model, problem.prior), &tokens, 0.0, &mut |ln, urn| {
        let cells: Vec<(Vec<u32>, u64)> = urn.tokens().iter().map(|token| (token.clone(), 1)).collect();
        all.push((ln, table_counts(problem.model, &cells)));
    });
    let total = log_sum_exp(&all.iter().map(|(ln, _)| *ln).collect::<Vec<_>>());
    let n_tables = problem.model.tables().len();
    let mut direct = Direct { d_ep: 0.0, squares: vec![0.0; n_tables], moments: HashMap::new() };
    for (ln, counts) in &all {
        let weight = (ln - total).exp();
        direct.d_ep += weight * d_ep(counts);
        for (table, at) in problem.model.tables().iter().zip(0u32..) {
            direct.squares[at as usize] += weight * sum_of_squares(counts, TableIndex(at));
            let mut rows = vec![Vec::new()];
            for &size in &table.parent_sizes {
                rows = rows
                    .iter()
                    .flat_map(|row: &Vec<u32>| (0..size).map(move |value| [row.as_slice(), &[value]].concat()))
                    .collect();
            }
            for row in rows {
                let count = |child: u32| counts.get(&(TableIndex(at), row.clone(), child)).copied().unwrap_or(0) as f64;
                let pseudo = |child: u32| problem.prior.table(TableIndex(at)).cell(&row, child).value;
                let sum: f64 = (0..table.child_size).map(|child| pseudo(child) + count(child)).sum();
                for child in 0..table.child_size {
                    let here = pseudo(child) + count(child);
                    let entry = direct.moments.entry((TableIndex(at), row.clone(), child)).or_insert((0.0, 0.0));
                    entry.0 += weight * here / sum;
                    entry.1 += weight * here * (here + 1.0) / (sum * (sum + 1.0));
                }
            }
        }
    }
    direct
}

#[track_caller]
fn check_posterior(what: &str, problem: &Problem<'_>, rows: &Rows) {
    let want = direct(problem, rows);
    let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
    assert!((exact.d_ep() - want.d_ep).abs() <= 1e-10 * want.d_ep.max(1.0), "{what}: {} {}", exact.d_ep(), want.d_ep);
    for (got, want) in exact.table_sum_of_squares().into_iter().zip(&want.squares) {
        assert_relative(what, got, *want, 1e-10);
    }
    let means = exact.table_means(problem);
    assert_eq!(means.len(), problem.model.tables().len(), "{what}");
    for table in &means {
        assert!(table.rows.windows(2).all(|pair| pair[0].parents < pair[1].parents), "{what}: rows ascend");
        for row in &table.rows {
            assert_eq!(row.cells.len(), problem.model.tables()[table.table.ix()].child_size as usize);
            for cell in &row.cells {
                let (mean, square) = want.moments[&(table.table, row.parents.clone(), cell.child)];
                let place = format!("{what}: table {} row {:?} child {}", table.table.0, row.parents, cell.child);
                assert!((cell.mean - mean).abs() <= 1e-10, "{place}: mean {} {mean}", cell.mean);
                let variance = square - mean * mean;
                assert!((cell.sd.powi(2) - variance).abs() <= 1e-10, "{place}: sd^2 {} {variance}", cell.sd.powi(2));
            }
        }
    }
}

#[test]
fn posterior_table_means_equal_averages_over_all_assignments() {
    let mut rng = Random::new(502);
    let (mut n, mut n_symmetric, mut n_tied) = (0, 0, 0);
    while n < 60 {
        let missing = if n % 3 == 0 { 0.25 } else { 0.0 };
        let (dag, rows, prior) = random_instance(&mut rng, missing);
        let what = format!("{n}: {} with {prior:?} on\n{}", dag.text(), rows.csv());
        with_problem(&rows.bind(&dag), &prior, |problem| {
            if log_marginal(problem) == f64::NEG_INFINITY {
                return;
            }
            check_posterior(&what, problem, &rows);
            let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
            n_symmetric += usize::from(exact.label_averaged().next().is_some());
            n_tied += usize::from(problem.model.has_ties());
            n += 1;
        });
    }
    assert!((10..=50).contains(&n_symmetric) && n_tied >= 5, "{n_symmetric} symmetric, {n_tied} tied");
}

#[test]
fn posterior_table_means_are_averaged_over_exchangeable_labels() {
    // Two hidden nodes with labels of their own, one of them with a lopsided prior on its third value.
    let rows = Rows {
        columns: vec![2, 3],
        rows: vec![(vec![Some(0), Some(1)], 2), (vec![Some(2), Some(0)], 1), (vec![Some(0), None], 1)],
        unknown: Vec::new(),
    };
    let data = csv(&rows.csv());
    let text = "n0[2]; n1[3]; n2[3]; n3[2]; n0 -> n1; n1 -> n2; n0 -> n3";
    let third = |weight: f64| [1.0, 1.0, weight].map(|w| w * 0.4).to_vec();
    let marginals = BTreeMap::from([("n1".to_owned(), third(2.5)), ("n2".to_owned(), vec![0.2, 0.3, 0.9])]);
    let lopsided = PriorSettings {
        spec: polyurn::prior::PriorSpec::Base { alpha: None, marginals: Some(marginals), size: Some(1.4) },
        ..Default::default()
    };
    for prior in [settings(0.9), lopsided] {
        with_problem(&bound(text, &data), &prior, |problem| {
            check_posterior(text, problem, &rows);
            let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
            assert_eq!(exact.label_averaged().map(|node| node.0).collect::<Vec<_>>(), [0, 1]);
        });
    }
    // Tied hidden chains, whose labels move together.
    let rows = Rows {
        columns: vec![2, 3],
        rows: vec![(vec![Some(0), Some(1)], 2), (vec![Some(2), Some(2)], 1), (vec![None, Some(0)], 1)],
        unknown: Vec::new(),
    };
    let text = "n0[2]; n1[2]; n2[3]; n3[3]; n0 -> n1; n0 -> n2; n1 -> n3; n2 ~ n3";
    with_problem(&bound(text, &csv(&rows.csv())), &settings(1.3), |problem| check_posterior(text, problem, &rows));
}

/// The paper's missing-cell example without a bound on the totals: the list must reach into the tail, in closed form for
/// one class, where the convolution of several classes has nothing to do.
#[test]
fn totals_go_on_until_the_tail_is_negligible() {
    let data = csv("i,j,count\n0,0,3\n0,1,?\n1,0,3\n1,1,3\n");
    let prior = PriorSettings { a: Some(4.0), rate: Some(0.01), ..Default::default() };
    for n_classes in 1..=3 {
        with_problem(&bound(&format!("i -> k[{n_classes}] -> j"), &data), &prior, |problem| {
            let list = totals(problem, &Exact::default(), TotalsRange::Auto, &mut Control::default()).unwrap();
            assert!(list.windows(2).all(|pair| pair[1].tokens == pair[0].tokens + 1 && pair[1].log_joint.is_finite()));
            let last = list.last().unwrap();
            let all = log_sum_exp(&list.iter().map(|entry| entry.log_joint).collect::<Vec<_>>());
            // Far out, terms fall by a factor of at least 1.01 each, so the rest is below 1/0.01 times the last one.
            assert!(last.log_joint + 100f64.ln() < all + 1e-12f64.ln(), "K = {n_classes}: {last:?}");
            if n_classes == 1 {
                // Independence: rows 3 + m and 6, columns 6 and 3 + m, pseudo-counts 2 each; summed with mpmath over
                // totals up to 6000.
                assert_relative("K = 1", all, -15.198_162_941_568_948, 1e-12);
            }
        });
    }
}
