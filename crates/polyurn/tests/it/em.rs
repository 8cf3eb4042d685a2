//! EM against multiplicative updates written out, against a slow reference, and against its own promises.

use crate::support::{Random, assert_relative, bound, csv, settings, tables, with_problem};
use crate::sweeps_reference::Reference;
use crate::sweeps_support::{PartlySeen, climb};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{Em, EmFit, Mode, StartTables, Turns};
use polyurn::prior::PriorSettings;
use std::collections::BTreeMap;

fn fit(problem: &Problem<'_>, em: &Em) -> EmFit {
    em.fit(problem, Seed(5), &mut Control::default()).unwrap()
}

/// Rows of random numbers that add up to one.
fn rows(rng: &mut Random, n_rows: usize, n: usize) -> Vec<Vec<f64>> {
    let row = |_| {
        let weights = rng.weights(n);
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    };
    (0..n_rows).map(row).collect()
}

/// Every row divided by its sum.
fn normalised(start: &StartTables) -> StartTables {
    let mut start = start.clone();
    for row in start.tables.values_mut().flatten() {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|cell| *cell /= sum);
    }
    start
}

#[test]
fn matrices_are_updated_as_by_multiplicative_updates() {
    compare_with_multiplicative_updates((7, 5, 3), 0, 25);
}

/// So many hidden values no longer stay in registers.
#[test]
fn matrices_of_many_components_are_updated_as_by_multiplicative_updates() {
    for n_hidden in [64, 65, 130] {
        compare_with_multiplicative_updates((12, 11, n_hidden), 0, 10);
    }
}

/// So many records are kept in fewer bytes.
#[test]
fn matrices_of_a_million_cells_are_updated_as_by_multiplicative_updates() {
    compare_with_multiplicative_updates((1040, 1020, 2), 1, 3);
}

/// The rules of Lee and Seung for the generalised Kullback-Leibler divergence, first W, then H.
fn compare_with_multiplicative_updates(sizes: (usize, usize, usize), smallest: usize, n_sweeps: u64) {
    let mut rng = Random::new(3);
    let (n_rows, n_columns, n_hidden) = sizes;
    let mut count = || rng.between(smallest, 9) as f64;
    let x: Vec<Vec<f64>> = (0..n_rows).map(|_| (0..n_columns).map(|_| count()).collect()).collect();
    let total: f64 = x.iter().flatten().sum();
    let hidden = rows(&mut rng, 1, n_hidden);
    let (of_row, of_column) = (rows(&mut rng, n_hidden, n_rows), rows(&mut rng, n_hidden, n_columns));
    let mut w: Vec<Vec<f64>> =
        (0..n_rows).map(|i| (0..n_hidden).map(|k| total * hidden[0][k] * of_row[k][i]).collect()).collect();
    let mut h = of_column.clone();
    let product =
        |w: &[Vec<f64>], h: &[Vec<f64>], i: usize, j: usize| -> f64 { (0..n_hidden).map(|k| w[i][k] * h[k][j]).sum() };
    let mut text = String::from("row,column,count\n");
    for (i, row) in x.iter().enumerate() {
        row.iter().enumerate().for_each(|(j, count)| text += &format!("{i},{j},{count}\n"));
    }
    let start = StartTables {
        tables: BTreeMap::from([("k".into(), hidden), ("row".into(), of_row), ("column".into(), of_column)]),
    };
    let model = format!("k[{n_hidden}] -> row[{n_rows}] column[{n_columns}]");
    let em = Em { climb: climb(1, n_sweeps), start: Some(start), ..Default::default() };
    let found = with_problem(&bound(&model, &csv(&text)), &settings(1.0), |problem| fit(problem, &em));
    for sweep in 0..n_sweeps as usize {
        let old = w.clone();
        for i in 0..n_rows {
            for k in 0..n_hidden {
                let up: f64 = (0..n_columns).map(|j| x[i][j] * h[k][j] / product(&old, &h, i, j)).sum();
                w[i][k] *= up / h[k].iter().sum::<f64>();
            }
        }
        let old = h.clone();
        for k in 0..n_hidden {
            for j in 0..n_columns {
                let up: f64 = (0..n_rows).map(|i| x[i][j] * w[i][k] / product(&w, &old, i, j)).sum();
                h[k][j] *= up / (0..n_rows).map(|i| w[i][k]).sum::<f64>();
            }
        }
        let mut ln_likelihood = 0.0;
        for i in 0..n_rows {
            for j in 0..n_columns {
                if x[i][j] > 0.0 {
                    ln_likelihood += x[i][j] * (product(&w, &h, i, j) / total).ln();
                }
            }
        }
        assert_relative(&format!("sweep {sweep}"), found.climbs.trace[sweep], ln_likelihood, 1e-12);
    }
    // Two sums of the same terms in different orders.
    assert_relative("the last", found.ln_likelihood, *found.climbs.trace.last().unwrap(), 1e-12);
}

#[test]
fn steps_together_are_those_of_a_slow_reference_in_random_models() {
    let mut rng = Random::new(37);
    let mut n_tied = 0;
    for round in 0..90 {
        let missing = if round % 3 == 0 { 0.3 } else { 0.0 };
        let kind = PartlySeen { is_tied: round % 2 == 0, missing, n_rows: 6, n_tokens: 19, ..Default::default() };
        let (dag, rows) = kind.draw(&mut rng);
        n_tied += usize::from(!dag.tied.is_empty());
        let mut pseudo = dag.random_tables(&mut rng);
        let mode = [Mode::Likelihood, Mode::Softmax, Mode::Density][round % 3];
        if mode == Mode::Density {
            pseudo.values_mut().flatten().flatten().for_each(|cell| *cell += 1.0);
        }
        let start = StartTables { tables: dag.random_tables(&mut rng) };
        with_problem(&rows.bind(&dag), &tables(pseudo), |problem| {
            let added = |pseudo: f64| match mode {
                Mode::Likelihood => 0.0,
                Mode::Softmax => pseudo,
                Mode::Density => pseudo - 1.0,
            };
            let mut reference = Reference::new(problem, &normalised(&start));
            for n_steps in 1..4 {
                reference.em_step(added);
                let em = Em {
                    climb: climb(1, n_steps),
                    mode,
                    turns: Turns::Together,
                    start: Some(start.clone()),
                    ..Default::default()
                };
                let found = fit(problem, &em);
                let want = reference.expect().ln_likelihood;
                assert_relative(&format!("{} {mode:?} {n_steps}", dag.text()), found.ln_likelihood, want, 1e-10);
            }
        });
    }
    assert!(n_tied > 5, "{n_tied}");
}

#[test]
fn objectives_never_fall_in_any_mode_whichever_tables_are_set() {
    let mut rng = Random::new(11);
    for round in 0..40 {
        let (n_nodes, is_tied) = ((3, 5), round % 2 == 0);
        let kind = PartlySeen { n_nodes, is_tied, missing: 0.2, n_rows: 8, n_tokens: 30, ..Default::default() };
        let (dag, rows) = kind.draw(&mut rng);
        let mut pseudo = dag.random_tables(&mut rng);
        pseudo.values_mut().flatten().flatten().for_each(|cell| *cell += 1.0);
        with_problem(&rows.bind(&dag), &tables(pseudo), |problem| {
            for mode in [Mode::Likelihood, Mode::Softmax, Mode::Density] {
                for turns in [Turns::Cycle, Turns::Together] {
                    let found = fit(problem, &Em { climb: climb(1, 40), trials: 2, mode, turns, start: None });
                    for pair in found.climbs.trace.windows(2) {
                        let slack = 1e-12 * pair[0].abs() + 1e-12;
                        assert!(pair[1] >= pair[0] - slack, "{} {mode:?} {turns:?}: {pair:?}", dag.text());
                    }
                    for row in found.tables(problem).iter().flat_map(|table| &table.rows) {
                        let sum: f64 = row.cells.iter().map(|cell| cell.mean).sum();
                        assert!((sum - 1.0).abs() < 1e-12 || sum == 0.0, "{} {mode:?}: {row:?}", dag.text());
                    }
                }
            }
        });
    }
}

#[test]
fn unknown_cells_are_filled_in_and_the_objective_never_falls() {
    let data = csv("i,j,count\n0,0,3\n0,1,?\n1,0,4\n1,1,8\n");
    let prior = PriorSettings { a: Some(8.0), rate: Some(0.2), ..Default::default() };
    for model in ["k[1] -> i j", "i -> k[2] -> j"] {
        with_problem(&bound(model, &data), &prior, |problem| {
            for mode in [Mode::Likelihood, Mode::Softmax] {
                let found = fit(problem, &Em { climb: climb(1, 400), mode, ..Default::default() });
                for pair in found.climbs.trace.windows(2) {
                    assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs(), "{model} {mode:?}: {pair:?}");
                }
                // With independent rows and columns the odds are the same in both rows: the cell holds 3 * 8 / 4.
                if model.starts_with("k[1]") && mode == Mode::Likelihood {
                    assert_relative("unknown", found.n_unknown.unwrap(), 6.0, 1e-9);
                }
            }
        });
    }
}

/// A trial is what a start with all tables together would be, the best one goes on as asked, and the trace is that of both.
#[test]
fn the_best_of_several_trials_goes_on() {
    let mut rng = Random::new(12);
    let mut n_later_best = 0;
    for _ in 0..10 {
        let mut text = String::from("i,j,l,count\n");
        for (i, j, l) in (0..125).map(|cell| (cell / 25, cell / 5 % 5, cell % 5)) {
            text += &format!("{i},{j},{l},{}\n", rng.between(0, 4).pow(2));
        }
        with_problem(&bound("k[4] -> i j l", &csv(&text)), &settings(1.0), |problem| {
            let tried = Em { climb: climb(6, 20), trials: 1, turns: Turns::Together, ..Default::default() };
            let tried = fit(problem, &tried).climbs;
            let em =
                |restarts: u64, max_iter: u64| Em { climb: climb(restarts, max_iter), trials: 3, ..Default::default() };
            let two = fit(problem, &em(2, 20)).climbs;
            let best = |draws: &[f64]| draws.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!(two.objectives, [best(&tried.objectives[..3]), best(&tried.objectives[3..])]);
            let whole = fit(problem, &em(1, 60)).climbs;
            assert_eq!((whole.trace.len(), whole.trace[19]), (60, best(&tried.objectives[..3])));
            for pair in whole.trace.windows(2) {
                assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs(), "{pair:?}");
            }
            n_later_best += usize::from(tried.objectives[0] < best(&tried.objectives[..3]));
        });
    }
    assert!(n_later_best > 3, "{n_later_best}");
}

#[test]
fn the_density_needs_pseudo_counts_of_one() {
    let data = csv("i,j,count\n0,0,3\n1,1,4\n");
    with_problem(&bound("k[2] -> i j", &data), &settings(1.0), |problem| {
        let em = Em { mode: Mode::Density, ..Default::default() };
        let error = em.fit(problem, Seed(1), &mut Control::default()).unwrap_err().to_string();
        assert!(error.contains("below 1") && error.contains("softmax"), "{error}");
    });
}

#[test]
fn an_unknown_cell_that_dies_leaves_the_objective_on_its_scale() {
    // No seen cell has i = 2 or j = 2: the most likely number of tokens there is none.
    let data = csv("i,j,count\n0,0,5\n0,1,3\n1,0,4\n1,1,2\n2,2,?\n");
    with_problem(&bound("i j", &data), &settings(1.0), |problem| {
        let em = Em { climb: climb(1, 400), ..Default::default() };
        let fit = em.fit(problem, Seed(1), &mut Control::default()).unwrap();
        assert_eq!(fit.n_unknown, Some(0.0));
        for pair in fit.climbs.trace.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs(), "{} {}", pair[0], pair[1]);
        }
    });
}

#[test]
fn tables_that_are_wholly_seen_have_their_density_in_the_objective() {
    // With nothing hidden the objective is the log likelihood and the sum of pseudo-count times log probability.
    let data = csv("i,j,count\na,x,3\na,y,1\nb,x,7\n");
    let objective = |model: &str, a: f64| {
        with_problem(&bound(model, &data), &settings(a), |problem| {
            let fit = Em { climb: climb(1, 3), mode: Mode::Softmax, ..Default::default() };
            let fit = fit.fit(problem, Seed(1), &mut Control::default()).unwrap();
            (fit.climbs.trace[2], fit.ln_likelihood)
        })
    };
    let cell = |n: f64, row: f64, alpha: f64, size: f64| (n + alpha, (n + alpha) / (row + size * alpha));
    // `i -> j` with a = 2: pseudo-counts 1 for i, 1/2 for j.
    let terms = [cell(4.0, 11.0, 1.0, 2.0), cell(7.0, 11.0, 1.0, 2.0)];
    let rows = [cell(3.0, 4.0, 0.5, 2.0), cell(1.0, 4.0, 0.5, 2.0), cell(7.0, 7.0, 0.5, 2.0), cell(0.0, 7.0, 0.5, 2.0)];
    let density: f64 = terms.iter().chain(&rows).map(|(weight, p)| weight * p.ln()).sum();
    let (found, likelihood) = objective("i -> j", 2.0);
    assert!(found < likelihood);
    // Up to a constant of the prior: the same at twice the data.
    let twice = csv("i,j,count\na,x,6\na,y,2\nb,x,14\n");
    let found_twice = with_problem(&bound("i -> j", &twice), &settings(2.0), |problem| {
        let em = Em { climb: climb(1, 3), mode: Mode::Softmax, ..Default::default() };
        em.fit(problem, Seed(1), &mut Control::default()).unwrap().climbs.trace[2]
    });
    let terms = [cell(8.0, 22.0, 1.0, 2.0), cell(14.0, 22.0, 1.0, 2.0)];
    let rows =
        [cell(6.0, 8.0, 0.5, 2.0), cell(2.0, 8.0, 0.5, 2.0), cell(14.0, 14.0, 0.5, 2.0), cell(0.0, 14.0, 0.5, 2.0)];
    let density_twice: f64 = terms.iter().chain(&rows).map(|(weight, p)| weight * p.ln()).sum();
    assert_relative("difference", found_twice - found, density_twice - density, 1e-12);
}
