//! Dual EM and ICM against a slow reference, against the list of all allocations, and against their own promises.

use crate::support::{Random, bound, csv, settings, tables, with_problem};
use crate::sweeps_reference::{Cell, Reference, ln_gamma};
use crate::sweeps_support::{PartlySeen, climb};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::enumerate::Enumeration;
use polyurn::engine::exact::Exact;
use polyurn::engine::sweeps::{AllocationFit, BestAllocation, Given, Mode, StartTables};
use polyurn::evidence::evidence;
use polyurn::math::Double;
use std::collections::HashMap;

fn fit(problem: &Problem<'_>, engine: &BestAllocation) -> AllocationFit {
    engine.fit(problem, Seed(5), &mut Control::default()).unwrap()
}

/// The reference's logarithms of Gamma functions lose a few digits, and an objective may be zero.
fn assert_close(what: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-10 * (1.0 + want.abs()), "{what}: got {got}, want {want}");
}

/// The most probable allocation for given weights, token by token; its counts and the ln number of its orders.
fn allocate(reference: &Reference<'_, '_>) -> (HashMap<Cell, f64>, f64) {
    let mut counts: HashMap<Cell, f64> = HashMap::new();
    let mut orders = 0.0;
    for (n, ways) in reference.records() {
        let weights: Vec<f64> =
            ways.iter().map(|way| way.iter().map(|cell| reference.weights[cell]).product()).collect();
        let mut own = vec![0.0; ways.len()];
        for _ in 0..n as u64 {
            let gain = |way: &usize| weights[*way] / (own[*way] + 1.0);
            let best = (0..ways.len()).max_by(|x, y| gain(x).total_cmp(&gain(y))).unwrap();
            own[best] += 1.0;
        }
        orders += ln_gamma(n + 1.0) - own.iter().map(|own| ln_gamma(own + 1.0)).sum::<f64>();
        for (way, own) in ways.iter().zip(&own) {
            way.iter().for_each(|cell| *counts.entry(cell.clone()).or_insert(0.0) += own);
        }
    }
    (counts, orders)
}

#[test]
fn the_first_allocation_is_the_most_probable_one_in_random_models() {
    let mut rng = Random::new(53);
    let mut n_joint = 0;
    for round in 0..200 {
        let (is_tied, missing) = (round % 3 == 0, if round % 2 == 0 { 0.0 } else { 0.3 });
        let kind = PartlySeen { is_tied, seen: 0.5, missing, n_rows: 4, n_tokens: 23, ..Default::default() };
        let (dag, rows) = kind.draw(&mut rng);
        let start = StartTables { tables: dag.random_tables(&mut rng) };
        with_problem(&rows.bind(&dag), &tables(dag.random_tables(&mut rng)), |problem| {
            n_joint += usize::from(problem.plan.patterns().iter().any(|pattern| pattern.unseen.len() > 1));
            let reference = Reference::new(problem, &start);
            let (counts, orders) = allocate(&reference);
            let mut integrated = orders;
            reference.for_each_row(&counts, |_, _, alphas, counts| {
                let (alpha, count): (f64, f64) = (alphas.iter().sum(), counts.iter().sum());
                integrated += ln_gamma(alpha) - ln_gamma(alpha + count);
                for (alpha, count) in alphas.iter().zip(counts) {
                    integrated += ln_gamma(alpha + count) - ln_gamma(*alpha);
                }
            });
            let engine = BestAllocation { climb: climb(1, 1), given: Given::Expectations, start: Some(start.clone()) };
            let found = fit(problem, &engine);
            assert_close(&dag.text(), found.climbs.trace[0], integrated);
            let mut at_best = orders;
            reference.for_each_row(&counts, |_, _, _, counts| {
                let sum: f64 = counts.iter().sum();
                at_best +=
                    counts.iter().filter(|count| **count > 0.0).map(|count| count * (count / sum).ln()).sum::<f64>();
            });
            let engine = BestAllocation { given: Given::Modes(Mode::Likelihood), ..engine };
            let found = fit(problem, &engine);
            assert_close(&dag.text(), found.climbs.trace[0], at_best);
        });
    }
    assert!(n_joint > 25, "{n_joint}");
}

#[test]
fn objectives_never_fall() {
    let mut rng = Random::new(71);
    for round in 0..40 {
        let (n_nodes, is_tied) = ((3, 5), round % 2 == 0);
        let kind = PartlySeen { n_nodes, is_tied, missing: 0.2, n_rows: 8, n_tokens: 60, ..Default::default() };
        let (dag, rows) = kind.draw(&mut rng);
        let mut pseudo = dag.random_tables(&mut rng);
        pseudo.values_mut().flatten().flatten().for_each(|cell| *cell += 1.0);
        with_problem(&rows.bind(&dag), &tables(pseudo), |problem| {
            let modes = [Mode::Likelihood, Mode::Softmax, Mode::Density].map(Given::Modes);
            for given in [Given::Expectations].into_iter().chain(modes) {
                let found = fit(problem, &BestAllocation { climb: climb(2, 12), given, start: None });
                for pair in found.climbs.trace.windows(2) {
                    assert!(pair[1] >= pair[0] - 1e-11 * pair[0].abs(), "{} {given:?}: {pair:?}", dag.text());
                }
                for row in found.tables(problem).iter().flat_map(|table| &table.rows) {
                    let sum: f64 = row.cells.iter().map(|cell| cell.mean).sum();
                    assert!((sum - 1.0).abs() < 1e-12 || sum == 0.0, "{} {given:?}: {row:?}", dag.text());
                }
            }
        });
    }
}

#[test]
fn dual_em_ends_in_an_allocation_of_the_list_and_finds_the_best_of_all() {
    let data = csv("i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n");
    for (model, a) in [("k[2] -> i j", 0.5), ("i -> k[3] -> j", 2.0), ("i -> k[2] -> l[2] -> j", 1.0)] {
        with_problem(&bound(model, &data), &settings(a), |problem| {
            let mut all: Vec<f64> = Vec::new();
            let total = problem.prior.total(Some(problem.counts.n_tokens)).unwrap();
            let list = Enumeration::new(problem, total).unwrap();
            list.run(&Exact::default(), &mut Control::default(), &mut |tensor| {
                all.push(tensor.ln_pi);
                Ok(())
            })
            .unwrap();
            let best = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let engine = BestAllocation { climb: climb(60, 50), given: Given::Expectations, start: None };
            let found = fit(problem, &engine);
            let ln_pi = |objective: f64| evidence(problem, Double::from(objective)).unwrap().log_marginal;
            for &objective in &found.climbs.objectives {
                let value = ln_pi(objective);
                assert!(all.iter().any(|other| (other - value).abs() < 1e-9), "{model}: {value} is no allocation");
            }
            let reached = ln_pi(*found.climbs.trace.last().unwrap());
            assert!((reached - best).abs() < 1e-9, "{model}: {reached} {best}");
        });
    }
}

#[test]
fn unknown_cells_are_refused() {
    let data = csv("i,j,count\n0,0,3\n0,1,?\n");
    with_problem(&bound("k[2] -> i j", &data), &settings(1.0), |problem| {
        let engine = BestAllocation { climb: climb(1, 1), given: Given::Expectations, start: None };
        let error = engine.fit(problem, Seed(1), &mut Control::default()).unwrap_err().to_string();
        assert!(error.contains("unknown cells"), "{error}");
    });
}
