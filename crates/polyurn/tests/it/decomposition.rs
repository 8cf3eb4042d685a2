//! Factors, marginals and measures of a fit, against sums over every cell written out.

use crate::support::{Random, assert_relative, bound, completions, csv, settings, tables, with_problem};
use crate::sweeps_support::{PartlySeen, climb};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::decomposition::{Decomposition, Shape};
use polyurn::engine::smc::Smc;
use polyurn::engine::sweeps::{Climb, Em, Mode, Vb, kl_divergence};
use polyurn::engine::{Problem, TableMeans};
use polyurn::graph::NodeIndex;

/// The probability of a full assignment: the product of its cells' means, or of the prior's where a row is not listed.
fn joint(problem: &Problem<'_>, means: &[TableMeans], values: &[u32]) -> f64 {
    let of_node = |node: NodeIndex| {
        let table = problem.model.node(node).table;
        let parents: Vec<u32> = problem.model.node(node).parents.iter().map(|parent| values[parent.ix()]).collect();
        let child = values[node.ix()];
        let row = means[table.ix()].rows.iter().find(|row| row.parents == parents);
        row.map_or_else(
            || {
                let pseudo = problem.prior.table(table);
                pseudo.cell(&parents, child).value / pseudo.row(&parents).value
            },
            |row| row.cells.iter().find(|cell| cell.child == child).expect("small tables list all").mean,
        )
    };
    problem.model.node_indices().map(of_node).product()
}

#[test]
fn marginals_and_measures_are_sums_over_all_cells_in_random_models() {
    let mut rng = Random::new(71);
    let (mut n_tied, mut n_missing, mut n_factors) = (0, 0, 0);
    for round in 0..80 {
        let (is_tied, missing) = (round % 2 == 0, if round % 4 == 0 { 0.3 } else { 0.0 });
        let kind = PartlySeen { sizes: (2, 3), is_tied, missing, n_rows: 6, n_tokens: 19, ..Default::default() };
        let (dag, rows) = kind.draw(&mut rng);
        n_tied += usize::from(!dag.tied.is_empty());
        let pseudo = dag.random_tables(&mut rng);
        with_problem(&rows.bind(&dag), &tables(pseudo), |problem| {
            let fit = Vb { climb: climb(1, 3), start: None, ..Default::default() }
                .fit(problem, Seed(round), &mut Control::default())
                .unwrap();
            let means = fit.tables(problem);
            let intensity = 17.5;
            let decomposition = Decomposition::new(problem, &means, intensity).unwrap();
            let nodes: Vec<NodeIndex> = problem.model.node_indices().collect();
            let all = completions(problem.model, &vec![None; dag.n_nodes()]);
            // A marginal over some nodes, not in their order.
            let mut kept: Vec<NodeIndex> = nodes.iter().copied().filter(|_| rng.chance(0.5)).collect();
            rng.shuffle(&mut kept);
            let marginal = decomposition.marginal(&kept).unwrap();
            let cell = |values: &[u32]| {
                kept.iter().fold(0, |cell, &node| cell * problem.model.node(node).size + values[node.ix()]) as usize
            };
            let mut want = vec![0.0; marginal.values.len()];
            all.iter().for_each(|values| want[cell(values)] += joint(problem, &means, values));
            for (got, want) in marginal.values.iter().zip(&want) {
                assert_relative(&dag.text(), *got, *want, 1e-12);
            }
            // Expected counts of what was seen.
            let mut in_all = 0.0;
            for block in &problem.counts.blocks {
                let expected = decomposition.expected_counts(block).unwrap();
                for (record, got) in expected.into_iter().enumerate() {
                    let is_it = |values: &Vec<u32>| {
                        let mut seen = block.seen.iter().zip(&block.values);
                        seen.all(|(&node, column)| column[record] == values[node as usize])
                    };
                    let want: f64 = all.iter().filter(|v| is_it(v)).map(|v| joint(problem, &means, v)).sum();
                    assert_relative(&dag.text(), got, intensity * want, 1e-12);
                    in_all += block.counts.at(record) as f64 * (got / intensity).ln();
                }
            }
            assert_relative("likelihood", in_all, fit.ln_likelihood(problem), 1e-10);
            let [block] = &problem.counts.blocks[..] else {
                n_missing += 1;
                assert_eq!(decomposition.squared_error().unwrap(), None);
                return;
            };
            // The squared error and the divergence, over all cells of the seen nodes.
            let seen: Vec<NodeIndex> = block.seen.iter().map(|&node| NodeIndex(node)).collect();
            let fitted = decomposition.marginal(&seen).unwrap();
            let mut data = vec![0.0; fitted.values.len()];
            for record in 0..block.n_records() {
                let place = block.values.iter().zip(&fitted.sizes);
                let cell = place.fold(0, |cell, (column, &size)| cell * size + column[record]);
                data[cell as usize] = block.counts.at(record) as f64;
            }
            let pairs = || data.iter().zip(fitted.values.iter().map(|p| p * intensity));
            let squared: f64 = pairs().map(|(x, m)| (x - m).powi(2)).sum();
            assert_relative(&dag.text(), decomposition.squared_error().unwrap().unwrap(), squared, 1e-10);
            let divergence: f64 = pairs().map(|(x, m)| if *x > 0.0 { x * (x / m).ln() - x + m } else { m }).sum();
            let found = kl_divergence(problem.counts, fit.ln_likelihood(problem), intensity).unwrap();
            assert!((found - divergence).abs() < 1e-9 * (1.0 + divergence), "{found} {divergence}");
            let again = decomposition.kl_divergence().unwrap().unwrap();
            assert!((again - divergence).abs() < 1e-9 * (1.0 + divergence), "{again} {divergence}");
            n_factors += usize::from(gives_data_back(&decomposition, &fitted.values, &seen, intensity));
        });
    }
    assert!(n_tied > 5 && n_missing > 5 && n_factors > 5, "{n_tied} {n_missing} {n_factors}");
}

/// Core times factors is the fit, where the model is a factorisation; false where it is none.
fn gives_data_back(found: &Decomposition<'_, '_>, fitted: &[f64], seen: &[NodeIndex], intensity: f64) -> bool {
    let Ok(factors) = found.factors() else { return false };
    if factors.shape == Shape::NotAFactorisation {
        return false;
    }
    let core = factors.core.as_ref().expect("small");
    let size_of = |node: NodeIndex| {
        let matrix = factors.matrices.iter().find(|matrix| matrix.nodes.last() == Some(&node)).expect("seen");
        matrix.sizes[matrix.sizes.len() - 1]
    };
    for (mut number, &want) in fitted.iter().enumerate() {
        let mut values = [0u32; 8];
        for &node in seen.iter().rev() {
            values[node.ix()] = (number % size_of(node) as usize) as u32;
            number /= size_of(node) as usize;
        }
        let mut got = 0.0;
        for (state, weight) in core.values.iter().enumerate() {
            let mut rest = state;
            for (&node, &size) in core.nodes.iter().zip(&core.sizes).rev() {
                values[node.ix()] = (rest % size as usize) as u32;
                rest /= size as usize;
            }
            let factor = |matrix: &polyurn::decomposition::Marginal| {
                let place = matrix.nodes.iter().zip(&matrix.sizes);
                matrix.values[place.fold(0, |cell, (node, &size)| cell * size + values[node.ix()]) as usize]
            };
            got += weight * factors.matrices.iter().map(factor).product::<f64>();
        }
        assert_relative("core times factors", got, intensity * want, 1e-11);
    }
    true
}

const MATRIX: &str = "i,j,count\na,x,5\na,y,1\na,z,7\nb,x,2\nb,z,4\nc,y,9\nc,z,1\nd,x,3\nd,y,2\n";

fn em(model: &str, f: impl Fn(&Decomposition<'_, '_>, &Problem<'_>)) {
    let binding = bound(model, &csv(MATRIX));
    with_problem(&binding, &settings(2.0), |problem| {
        let climb = Climb { restarts: 3, max_iter: 300, ..Default::default() };
        let em = Em { climb, mode: Mode::Likelihood, ..Default::default() };
        let fit = em.fit(problem, Seed(4), &mut Control::default()).unwrap();
        f(&Decomposition::new(problem, &fit.tables(problem), fit.intensity).unwrap(), problem);
    });
}

/// Whatever the arrows' direction: columns of W add up to one, W H is the fit, and H holds all tokens.
#[test]
fn a_matrix_is_w_times_h_whatever_the_direction_of_the_arrows() {
    for (model, rows, columns) in
        [("k[2] -> i j", "i", "j"), ("i -> k[2]; k -> j", "i", "j"), ("j -> k[2]; k -> i", "j", "i")]
    {
        em(model, |decomposition, problem| {
            let factors = decomposition.factors().unwrap();
            assert_eq!(factors.shape, Shape::Matrix);
            let matrix = factors.as_matrix().unwrap();
            let names = matrix.nodes.map(|node| problem.model.node(node).name.clone());
            assert!(names == [rows, "k", columns], "{names:?}");
            let [n_rows, n_components, n_columns] = matrix.sizes.map(|size| size as usize);
            for component in 0..n_components {
                let sum: f64 = (0..n_rows).map(|row| matrix.w[row * n_components + component]).sum();
                assert_relative("a column of W", sum, 1.0, 1e-12);
            }
            assert_relative("H", matrix.h.iter().sum(), problem.counts.n_tokens as f64, 1e-11);
            let block = &problem.counts.blocks[0];
            let expected = decomposition.expected_counts(block).unwrap();
            let of = |name: &str| {
                let node = problem.model.find(name).unwrap();
                &block.values[block.seen.iter().position(|&seen| seen == node.0).unwrap()]
            };
            for (record, want) in expected.into_iter().enumerate() {
                let (row, column) = (of(rows)[record] as usize, of(columns)[record] as usize);
                let terms =
                    (0..n_components).map(|k| matrix.w[row * n_components + k] * matrix.h[k * n_columns + column]);
                assert_relative(model, terms.sum(), want, 1e-11);
            }
        });
    }
}

/// With as many components as columns, maximum likelihood gives the matrix back.
#[test]
fn a_full_rank_fit_has_no_error() {
    let binding = bound("k[3] -> i j", &csv(MATRIX));
    with_problem(&binding, &settings(2.0), |problem| {
        let climb = Climb { restarts: 4, max_iter: 20_000, tol: 1e-15, ..Default::default() };
        let em = Em { climb, mode: Mode::Likelihood, ..Default::default() };
        let fit = em.fit(problem, Seed(4), &mut Control::default()).unwrap();
        let decomposition = Decomposition::new(problem, &fit.tables(problem), fit.intensity).unwrap();
        assert!(decomposition.squared_error().unwrap().unwrap() < 1e-6);
    });
}

#[test]
fn shapes_are_told_apart() {
    let table = "i,j,l,count\n0,0,1,2\n1,0,0,3\n1,1,1,1\n0,1,0,4\n";
    for (model, want) in [
        ("k[2] -> i j l", Shape::Cp),
        ("r[2]; s[3]; t[2]; r s -> t; r -> i; s -> j; t -> l", Shape::Tucker),
        ("r[2] -> s[2]; r -> i; r s -> j; s -> l", Shape::Network),
        ("k[2] -> i j; i -> l", Shape::NotAFactorisation),
        ("i j -> k[2]; k -> l", Shape::NotAFactorisation),
    ] {
        let binding = bound(model, &csv(table));
        with_problem(&binding, &settings(2.0), |problem| {
            let climb = Climb { restarts: 1, max_iter: 2, ..Default::default() };
            let fit =
                Vb { climb, start: None, ..Default::default() }.fit(problem, Seed(1), &mut Control::default()).unwrap();
            let decomposition = Decomposition::new(problem, &fit.tables(problem), 10.0).unwrap();
            assert_eq!(decomposition.factors().unwrap().shape, want, "{model}");
        });
    }
    let binding = bound("i -> j; j -> l", &csv(table));
    with_problem(&binding, &settings(2.0), |problem| {
        let fit = Vb::default().fit(problem, Seed(1), &mut Control::default()).unwrap();
        let decomposition = Decomposition::new(problem, &fit.tables(problem), 10.0).unwrap();
        assert!(decomposition.factors().unwrap_err().to_string().contains("no hidden node"));
        let twice = decomposition.marginal(&[NodeIndex(0), NodeIndex(0)]);
        assert!(twice.unwrap_err().to_string().contains("twice"));
    });
}

/// Tables of the best particle are pseudo-counts plus the counts of its allocation.
#[test]
fn tables_of_the_best_particle_are_those_of_its_allocation() {
    let binding = bound("k[2] -> i j", &csv(MATRIX));
    with_problem(&binding, &settings(3.0), |problem| {
        let smc = Smc { particles: 50, ..Default::default() };
        let posterior = smc.posterior(problem, Seed(9), &mut Control::default()).unwrap();
        let found = posterior.best.tables(problem);
        let k = problem.model.find("k").unwrap();
        let mut tokens = [0.0; 2];
        for record in &posterior.best.hidden {
            record.groups.iter().for_each(|(values, count)| tokens[values[0] as usize] += *count as f64);
        }
        assert_eq!(tokens.iter().sum::<f64>(), problem.counts.n_tokens as f64);
        for (cell, n) in found[problem.model.node(k).table.ix()].rows[0].cells.iter().zip(tokens) {
            assert_relative("p(k)", cell.mean, (1.5 + n) / (3.0 + problem.counts.n_tokens as f64), 1e-12);
        }
        // Values of i in the first component, counted by hand.
        let i = problem.model.find("i").unwrap();
        let column = problem.counts.blocks[0].seen.iter().position(|&seen| seen == i.0).unwrap();
        let mut of_value = [0.0; 4];
        for record in &posterior.best.hidden {
            let value = problem.counts.blocks[0].values[column][record.record as usize];
            let first = record.groups.iter().filter(|(values, _)| values[0] == 0);
            first.for_each(|(_, count)| of_value[value as usize] += *count as f64);
        }
        let row = &found[problem.model.node(i).table.ix()].rows[0];
        assert_eq!(row.parents, [0]);
        for (cell, n) in row.cells.iter().zip(of_value) {
            assert_relative("p(i | k = 0)", cell.mean, (3.0 / 8.0 + n) / (1.5 + tokens[0]), 1e-12);
        }
    });
}

#[test]
fn the_largest_entries_come_first() {
    em("k[2] -> i j", |decomposition, _| {
        let factors = decomposition.factors().unwrap();
        let matrix = &factors.matrices[0];
        let top = matrix.top(1, 2);
        let row = &matrix.values[4..8];
        let mut sorted = row.to_vec();
        sorted.sort_by(|x, y| y.total_cmp(x));
        assert_eq!(top.iter().map(|entry| entry.1).collect::<Vec<_>>(), sorted[..2]);
        assert!(top.iter().all(|&(value, number)| row[value as usize] == number));
        assert_eq!(matrix.top(0, 99).len(), 4);
        assert!(matrix.top(0, 0).is_empty());
        let sparsity = factors.sparsity().unwrap();
        assert!((0.0..=1.0).contains(&sparsity));
    });
}
