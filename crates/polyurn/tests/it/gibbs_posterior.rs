//! What Gibbs chains say about tables and hidden values, against exact answers.

use crate::smc_support::Z;
use crate::support::{bound, csv, random_table, settings, tables, with_problem};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::exact::{Exact, posterior};
use polyurn::engine::gibbs::{Gibbs, GibbsPosterior};
use polyurn::engine::{Problem, TableMeans};
use polyurn::prior::PriorSettings;
use polyurn::simd::Isa;
use std::collections::BTreeMap;

/// Mean and mean square of every cell: both are plain averages over states.
fn moments(tables: &[TableMeans]) -> Vec<f64> {
    let cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    cells.flat_map(|cell| [cell.mean, cell.sd * cell.sd + cell.mean * cell.mean]).collect()
}

fn uneven() -> PriorSettings {
    tables(BTreeMap::from([
        ("k".to_owned(), vec![vec![0.7, 1.9, 0.4]]),
        ("i".to_owned(), vec![vec![0.3, 1.1], vec![2.0, 0.2], vec![0.6, 0.5]]),
        ("j".to_owned(), vec![vec![0.2, 0.9, 0.4], vec![1.5, 0.3, 0.1], vec![0.8, 0.8, 2.2]]),
    ]))
}

/// Averages over independent chains against what they should be. A chain of so few tokens forgets its start within a few
/// sweeps, and a quarter of its states are thrown away.
fn check_means(what: &str, problem: &Problem<'_>, want: &[f64], of: impl Fn(&GibbsPosterior) -> Vec<f64>) {
    let gibbs = Gibbs { chains: 1, sweeps: 400, warm_up: Some(100), thin: Some(2), ..Default::default() };
    let mut worst = 0.0;
    for (part, n) in [(0, 60), (1, 240)] {
        let all: Vec<Vec<f64>> = (0..n)
            .map(|ix| of(&gibbs.posterior(problem, 0, Seed(2 * ix + part), &mut Control::default()).unwrap()))
            .collect();
        let z = |ix: usize| {
            let mean = all.iter().map(|all| all[ix]).sum::<f64>() / n as f64;
            let variance = all.iter().map(|all| (all[ix] - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
            // What is certain comes out the same in all chains, but for rounding.
            if variance < 1e-24 {
                (mean - want[ix]).abs() / 1e-11
            } else {
                (mean - want[ix]).abs() / (variance / n as f64).sqrt()
            }
        };
        // Means of chains are nearly normal; 60 of them, so that Student's t is near enough to take the rule's 4.5 and one rerun.
        worst = (0..want.len()).map(z).fold(0.0, f64::max);
        if worst <= Z {
            return;
        }
    }
    panic!("{what}: |z| = {worst}");
}

#[test]
fn tables_agree_with_exact_where_labels_cannot_be_exchanged() {
    for data in ["i,j,count\n0,0,2\n0,2,1\n1,1,3\n1,0,1\n", "i,j,count\n0,0,2\n,2,1\n1,1,3\n1,,2\n"] {
        with_problem(&bound("k[3] -> i[2] j[3]", &csv(data)), &uneven(), |problem| {
            let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
            check_means("tables", problem, &moments(&exact.table_means(problem)), |found| {
                assert_eq!(found.from_chain, None);
                moments(&found.tables)
            });
        });
    }
}

#[test]
fn numbers_without_labels_agree_with_exact() {
    let data = "i,j,count\n0,0,2\n0,1,2\n1,1,3\n2,1,1\n";
    for text in ["k[3] -> i j", "i -> k[2] -> j", "k[2] -> i j; i ~ j", "i -> k[2] -> l[2] -> j"] {
        with_problem(&bound(text, &csv(data)), &settings(1.7), |problem| {
            let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
            let want: Vec<f64> = [exact.d_ep()].into_iter().chain(exact.table_sum_of_squares()).collect();
            check_means(text, problem, &want, |found| {
                [found.d_ep.unwrap()].into_iter().chain(found.table_sum_of_squares.clone().unwrap()).collect()
            });
        });
    }
}

/// Two groups that share no label. Every few sweeps the groups change their names, and averages over plain states would be
/// one half everywhere.
#[test]
fn states_are_named_after_the_best_of_them() {
    let data = "i,j,count\n0,0,2\n0,1,2\n1,0,2\n2,2,2\n2,3,2\n3,3,2\n";
    with_problem(&bound("k[2] -> i[4] j[4]", &csv(data)), &settings(1.0), |problem| {
        let gibbs = Gibbs { chains: 2, sweeps: 4000, thin: Some(1), ..Default::default() };
        let found = gibbs.posterior(problem, 10, Seed(3), &mut Control::default()).unwrap();
        assert!(found.from_chain.is_some() && found.draws.len() == 10);
        let first: Vec<f64> = found.hidden.iter().map(|record| record.nodes[0].1[0]).collect();
        assert_eq!(first.len(), 6);
        let (one, other) = first.split_at(3);
        let is_apart = |x: &[f64], y: &[f64]| x.iter().all(|p| *p > 0.8) && y.iter().all(|p| *p < 0.2);
        assert!(is_apart(one, other) || is_apart(other, one), "{first:?}");
        // Tokens of every record are all there, in each draw and in the best state.
        for allocation in found.draws.iter().chain([&found.best]) {
            assert!(allocation.hidden.iter().all(|record| record.groups.iter().map(|group| group.1).sum::<u64>() == 2));
        }
    });
}

#[test]
fn threads_and_instructions_change_no_byte() {
    let data = random_table(31, &[("i", 9), ("j", 7)], 150);
    for text in ["k[5] -> i j", "i -> k[3] -> l[2] -> j"] {
        with_problem(&bound(text, &csv(&data)), &settings(2.0), |problem| {
            let gibbs = Gibbs { chains: 3, sweeps: 60, isa: Isa::SCALAR, ..Default::default() };
            let want = gibbs.posterior(problem, 5, Seed(5), &mut Control::default()).unwrap();
            for threads in [1, 2, 4] {
                let gibbs = Gibbs { threads, isa: Isa::detect(), ..gibbs.clone() };
                assert_eq!(gibbs.posterior(problem, 5, Seed(5), &mut Control::default()).unwrap(), want, "{text}");
            }
            // Looking at states changes none of them.
            assert_eq!(gibbs.run(problem, Seed(5), &mut Control::default()).unwrap().chains, want.result.chains);
        });
    }
}

#[test]
fn settings_that_leave_nothing_are_refused() {
    let binding = bound("k[2] -> i j", &csv("i,j,count\n0,0,2\n1,1,2\n"));
    with_problem(&binding, &settings(1.0), |problem| {
        let refused = |gibbs: Gibbs, n_draws: usize| {
            let found = gibbs.posterior(problem, n_draws, Seed(1), &mut Control::default());
            found.unwrap_err().to_string()
        };
        let gibbs = Gibbs { sweeps: 20, ..Default::default() };
        assert!(refused(Gibbs { warm_up: Some(20), ..gibbs.clone() }, 0).contains("no state"));
        assert!(refused(Gibbs { thin: Some(11), ..gibbs.clone() }, 0).contains("no state"));
        assert!(refused(gibbs, 11).contains("ask for fewer"));
    });
}

#[test]
fn without_hidden_nodes_the_posterior_is_exact() {
    with_problem(&bound("i -> j", &csv("i,j,count\n0,0,2\n0,1,1\n1,1,4\n")), &settings(1.5), |problem| {
        let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
        let found = Gibbs::default().posterior(problem, 0, Seed(1), &mut Control::default()).unwrap();
        for (found, want) in moments(&found.tables).iter().zip(moments(&exact.table_means(problem))) {
            assert!((found - want).abs() < 1e-12);
        }
        assert!((found.result.chains[0].ln_joint[0] - exact.ln_p_sequence.value()).abs() < 1e-10);
        assert!(found.is_mixed() && found.statistics.iter().all(|of| of.r_hat.is_none()));
    });
}
