//! What particles say about tables and hidden values, against exact answers.
//!
//! A run's weighted mean f-hat of a quantity f is biased, but Z-hat f-hat is not: its expectation is Z E[f]. So the mean of
//! (Z-hat / Z) (f-hat - E[f]) over independent runs is zero, whatever the number of particles.

use crate::smc_support::{Sample, Subject, Z, path_of};
use crate::support::{settings, tables};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::exact::{Exact, posterior};
use polyurn::engine::smc::{Smc, SmcPosterior};
use polyurn::engine::{Problem, TableMeans};
use std::collections::BTreeMap;

fn particle_posterior(problem: &Problem<'_>, particles: usize, seed: u64) -> SmcPosterior {
    let smc = Smc { particles, path: path_of((3, 3.0, 2, 1)), ..Default::default() };
    smc.posterior(problem, Seed(seed), &mut Control::default()).unwrap()
}

/// Mean and mean square of every cell: both are plain averages over particles.
fn moments(tables: &[TableMeans]) -> Vec<f64> {
    let cells = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
    cells.flat_map(|cell| [cell.mean, cell.sd * cell.sd + cell.mean * cell.mean]).collect()
}

/// Holds quantities of independent runs against what they should be: each run gives ln Z-hat and the quantities.
fn check_means(what: &str, want_ln: f64, want: &[f64], n: u64, run: impl Fn(u64) -> (f64, Vec<f64>)) {
    let mut worst = 0.0f64;
    for part in [0, 1] {
        let n = if part == 0 { n } else { 4 * n };
        let runs: Vec<(f64, Vec<f64>)> = (0..n).map(|seed| run(2 * seed + part)).collect();
        let of = |ix: usize| -> Vec<f64> {
            runs.iter().map(|(ln, all)| (ln - want_ln).exp() * (all[ix] - want[ix])).collect()
        };
        worst = (0..want.len()).map(|ix| Sample::new(&of(ix), 0.0).worst()).fold(0.0, f64::max);
        if worst <= Z {
            return;
        }
    }
    panic!("{what}: |z| = {worst}");
}

#[test]
fn tables_agree_with_exact_where_labels_cannot_be_exchanged() {
    let uneven = tables(BTreeMap::from([
        ("k".to_owned(), vec![vec![0.7, 1.9, 0.4]]),
        ("i".to_owned(), vec![vec![0.3, 1.1], vec![2.0, 0.2], vec![0.6, 0.5]]),
        ("j".to_owned(), vec![vec![0.2, 0.9, 0.4], vec![1.5, 0.3, 0.1], vec![0.8, 0.8, 2.2]]),
    ]));
    let data = "i,j,count\n0,0,2\n0,2,1\n1,1,3\n1,0,1\n";
    let subject = Subject::new("uneven", "k[3] -> i[2] j[3]", data, uneven);
    let (want_ln, want, squares) = subject.with(|problem| {
        let exact = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
        (exact.ln_p_sequence.value(), moments(&exact.table_means(problem)), exact.table_sum_of_squares())
    });
    let want: Vec<f64> = want.into_iter().chain(squares).collect();
    subject.with(|problem| {
        check_means("tables", want_ln, &want, 600, |seed| {
            let found = particle_posterior(problem, 32, seed);
            assert_eq!(found.from_run, None);
            let quantities = moments(&found.tables).into_iter().chain(found.table_sum_of_squares.clone().unwrap());
            (found.estimate.ln_p_sequence, quantities.collect())
        });
    });
}

/// Seven different records, so that no allocation agrees with another and with its mirror image equally well.
const ROWS: [(usize, usize); 7] = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 3), (2, 2), (3, 3)];

/// ln of x (x + 1) .. (x + n - 1).
fn ln_rising(x: f64, n: usize) -> f64 {
    (0..n).map(|ix| (x + ix as f64).ln()).sum()
}

/// Tokens of each hidden value, and of each row and column label under it.
fn counts(hidden: &[usize]) -> [(usize, [usize; 4], [usize; 4]); 2] {
    let mut counts = [(0, [0; 4], [0; 4]); 2];
    for (&k, &(i, j)) in hidden.iter().zip(&ROWS) {
        counts[k].0 += 1;
        counts[k].1[i] += 1;
        counts[k].2[j] += 1;
    }
    counts
}

#[test]
fn particles_are_labelled_after_the_best_of_them() {
    let a = 1.7;
    let rows: String = ROWS.iter().map(|(i, j)| format!("{i},{j}\n")).collect();
    let subject = Subject::new("two groups", "k[2] -> i[4] j[4]", &format!("i,j\n{rows}"), settings(a));
    // All 128 allocations, each with its probability by hand.
    let all: Vec<(Vec<usize>, f64)> = (0..1 << ROWS.len())
        .map(|code: usize| {
            let hidden: Vec<usize> = (0..ROWS.len()).map(|token| code >> token & 1).collect();
            let mut ln = -ln_rising(a, ROWS.len());
            for (n, of_i, of_j) in counts(&hidden) {
                ln += ln_rising(a / 2.0, n) - 2.0 * ln_rising(a / 2.0, n);
                ln += of_i.iter().chain(&of_j).map(|&n| ln_rising(a / 8.0, n)).sum::<f64>();
            }
            (hidden, ln)
        })
        .collect();
    let want_ln = all.iter().map(|(_, ln)| ln.exp()).sum::<f64>().ln();
    assert!((want_ln - subject.exact()).abs() < 1e-10, "{want_ln}");
    let (best, _) = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
    let n_equal = all.iter().filter(|(hidden, _)| counts(hidden) == counts(best)).count();
    assert_eq!(n_equal, 1, "one best allocation and its mirror image");
    // Means of P(k), P(i | k) and P(j | k), and shares of hidden values, each allocation labelled after the best one.
    let mut want = vec![0.0; 2 + 16 + 2 * ROWS.len()];
    for (hidden, ln) in &all {
        let n_same = hidden.iter().zip(best).filter(|(own, other)| own == other).count();
        let is_mirrored = 2 * n_same < ROWS.len();
        let hidden: Vec<usize> = hidden.iter().map(|&k| if is_mirrored { 1 - k } else { k }).collect();
        let weight = (ln - want_ln).exp();
        for (k, (n, of_i, of_j)) in counts(&hidden).into_iter().enumerate() {
            let row = a / 2.0 + n as f64;
            want[k] += weight * row / (a + ROWS.len() as f64);
            for label in 0..4 {
                want[2 + 4 * k + label] += weight * (a / 8.0 + of_i[label] as f64) / row;
                want[10 + 4 * k + label] += weight * (a / 8.0 + of_j[label] as f64) / row;
            }
        }
        hidden.iter().enumerate().for_each(|(token, &k)| want[18 + 2 * token + k] += weight);
    }
    subject.with(|problem| {
        check_means("labels", want_ln, &want, 400, |seed| {
            let found = particle_posterior(problem, 512, seed);
            assert_eq!(found.from_run, Some(0));
            quantities(problem, &found, best)
        });
    });
}

/// The same quantities of a run, its labels exchanged if its best particle is the mirror image.
fn quantities(problem: &Problem<'_>, found: &SmcPosterior, best: &[usize]) -> (f64, Vec<f64>) {
    let block = &problem.counts.blocks[0];
    let mut record = vec![0; problem.model.n_nodes()];
    let mut token = |ix: u32| {
        block.read(ix as usize, &mut record);
        ROWS.iter().position(|&(i, j)| (i as u32, j as u32) == (record[1], record[2])).unwrap()
    };
    let first = &found.best.hidden[0];
    let is_mirrored = first.groups[0].0[0] as usize != best[token(first.record)];
    let own = |k: usize| if is_mirrored { 1 - k } else { k };
    for allocated in &found.best.hidden {
        assert_eq!(own(allocated.groups[0].0[0] as usize), best[token(allocated.record)], "the best was found");
    }
    let mut all = vec![0.0; 2 + 16 + 2 * ROWS.len()];
    for k in 0..2 {
        all[k] = found.tables[0].rows[0].cells[own(k)].mean;
        for label in 0..4 {
            all[2 + 4 * k + label] = found.tables[1].rows[own(k)].cells[label].mean;
            all[10 + 4 * k + label] = found.tables[2].rows[own(k)].cells[label].mean;
        }
    }
    for record in &found.hidden {
        (0..2).for_each(|k| all[18 + 2 * token(record.record) + k] = record.nodes[0].1[own(k)]);
    }
    (found.estimate.ln_p_sequence, all)
}
