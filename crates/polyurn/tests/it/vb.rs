//! Variational Bayes against the cases, against a slow reference, and against the exact evidence.

use crate::cases::{cases, number, with_problem as with_case};
use crate::support::{Random, assert_relative, bound, csv, is_affordable, settings, tables, with_problem};
use crate::sweeps_reference::Reference;
use crate::sweeps_support::{PartlySeen, climb, documents};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Exact, TotalsRange};
use polyurn::engine::sweeps::{BestAllocation, Climb, Em, Free, Given, Mode, StartTables, Vb, VbFit, kl_divergence};
use polyurn::evidence::{evidence, totals};
use polyurn::math::log_sum_exp;
use polyurn::prior::PriorSettings;
use polyurn::simd::Isa;
use std::collections::BTreeMap;

fn fit(problem: &Problem<'_>, vb: &Vb) -> VbFit {
    vb.fit(problem, Seed(5), &mut Control::default()).unwrap()
}

#[test]
fn bounds_are_those_of_the_cases_after_every_number_of_sweeps() {
    let mut n_checked = 0;
    for case in cases().into_iter().filter(|case| case.get("vb").is_some()) {
        let start: BTreeMap<String, Vec<Vec<f64>>> = serde_json::from_value(case["vb"]["start"].clone()).unwrap();
        let sweeps = case["vb"]["sweeps"].as_array().unwrap();
        for (sweeps, want) in sweeps.iter().zip(case["exact"]["elbo"].as_array().unwrap()) {
            let start = Some(StartTables { tables: start.clone() });
            let found = with_case(&case, false, |problem| {
                let fit = fit(problem, &Vb { climb: climb(1, sweeps.as_u64().unwrap()), start, ..Default::default() });
                evidence(problem, fit.bound).unwrap().log_marginal
            });
            assert_relative(&format!("{} after {sweeps}", case["name"]), found, number(want), 1e-9);
            n_checked += 1;
        }
    }
    assert_eq!(n_checked, 12);
}

#[test]
fn bounds_never_fall_and_never_exceed_the_exact_value() {
    for case in cases() {
        let exact = number(&case["exact"]["log_p_sequence"]);
        let found = with_case(&case, false, |problem| {
            fit(problem, &Vb { climb: climb(2, 40), start: None, ..Default::default() })
        });
        let trace = &found.climbs.trace;
        assert!(found.bound.value() <= exact + 1e-10 * exact.abs(), "{}: {:?} {exact}", case["name"], found.bound);
        assert_eq!(found.bound.value().is_finite(), exact.is_finite(), "{}: {:?} {exact}", case["name"], found.bound);
        for pair in trace.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs(), "{}: {} {}", case["name"], pair[0], pair[1]);
        }
    }
}

#[test]
fn one_hidden_value_gives_the_closed_form() {
    let data = csv("i,j,count\na,x,3\na,y,1\nb,x,7\nc,z,2\n");
    for model in ["i -> k[1] -> j", "k[1] -> i j", "k[1] -> i j; i -> j", "i -> k[1] -> l[1] -> j"] {
        with_problem(&bound(model, &data), &settings(0.7), |problem| {
            let exact = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
            let found = fit(problem, &Vb { climb: climb(1, 3), start: None, ..Default::default() });
            assert_relative(model, found.bound.value(), exact.ln_p_sequence.value(), 1e-10);
        });
    }
}

#[test]
fn sweeps_are_those_of_a_slow_reference_in_random_models() {
    let mut rng = Random::new(91);
    let (mut n_mixtures, mut n_tied, mut n_exact) = (0, 0, 0);
    for round in 0..120 {
        let missing = if round % 2 == 0 { 0.0 } else { 0.3 };
        let kind = PartlySeen { is_tied: round % 3 == 0, missing, n_rows: 5, n_tokens: 17, ..Default::default() };
        let (dag, rows) = kind.draw(&mut rng);
        n_tied += usize::from(!dag.tied.is_empty());
        let prior = tables(dag.random_tables(&mut rng));
        let start = StartTables { tables: dag.random_tables(&mut rng) };
        let binding = rows.bind(&dag);
        let has_exact = is_affordable(&binding, &prior, 1e6);
        with_problem(&binding, &prior, |problem| {
            n_mixtures += usize::from(problem.plan.patterns().iter().any(|pattern| pattern.unseen.len() == 1));
            let mut reference = Reference::new(problem, &start);
            let want: Vec<f64> = (0..6).map(|_| reference.vb_sweep()).collect();
            let found = fit(problem, &Vb { climb: climb(1, 6), start: Some(start.clone()), ..Default::default() });
            let exact = has_exact.then(|| Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap());
            for (sweep, (found, want)) in found.climbs.trace.iter().zip(&want).enumerate() {
                assert_relative(&format!("{} sweep {sweep}", dag.text()), *found, *want, 1e-11);
                if let Some(exact) = &exact {
                    n_exact += 1;
                    assert!(*found <= exact.ln_p_sequence.value() + 1e-9, "{} {found} {exact:?}", dag.text());
                }
            }
        });
    }
    assert!(n_mixtures > 30 && n_tied > 5 && n_exact > 100, "{n_mixtures} {n_tied} {n_exact}");
}

#[test]
fn unknown_cells_have_a_bound_below_the_exact_sum_over_totals() {
    let text = "i,j,count\n0,0,3\n0,1,?\n1,0,3\n1,1,3\n";
    for model in ["i -> k[2] -> j", "k[2] -> i j", "i j"] {
        let prior = PriorSettings { a: Some(4.0), rate: Some(0.2), ..Default::default() };
        with_problem(&bound(model, &csv(text)), &prior, |problem| {
            let list = totals(problem, &Exact::default(), TotalsRange::Auto, &mut Control::default()).unwrap();
            let exact = log_sum_exp(&list.iter().map(|entry| entry.log_joint).collect::<Vec<_>>());
            let mean: f64 =
                list.iter().map(|entry| (entry.tokens as f64 - 9.0) * (entry.log_joint - exact).exp()).sum();
            let found = fit(problem, &Vb { climb: climb(1, 500), start: None, ..Default::default() });
            assert!(found.climbs.trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-12), "{model}");
            // Not only below, but near: the unknown cell's tokens and the tables are nearly independent here.
            assert!(
                found.bound.value() <= exact && found.bound.value() > exact - 6.0,
                "{model}: {:?} {exact}",
                found.bound
            );
            let n_unknown = found.n_unknown.unwrap();
            assert!(n_unknown > 0.3 * mean && n_unknown < 1.5 * mean, "{model}: {n_unknown} {mean}");
        });
    }
}

#[test]
fn huge_counts_have_a_bound_that_never_falls() {
    let mut text = String::from("i,j,count\n");
    for i in 0..26u64 {
        for j in 0..26 {
            text += &format!("{i},{j},{}\n", 1 + (i * 37 + j * 101) % 97 * 1_000_000 * (1 + (i * j) % 7 * 900));
        }
    }
    with_problem(&bound("i -> k[5] -> j", &csv(&text)), &settings(10.0), |problem| {
        assert!(problem.counts.n_tokens > 1_000_000_000_000);
        let found = fit(problem, &Vb { climb: climb(1, 60), start: None, ..Default::default() });
        for pair in found.climbs.trace.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs(), "{} {}", pair[0], pair[1]);
        }
    });
    with_problem(&bound("i -> k[1] -> j", &csv(&text)), &settings(10.0), |problem| {
        let found = fit(problem, &Vb { climb: climb(1, 3), start: None, ..Default::default() });
        let exact = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap().ln_p_sequence;
        let [found, exact] = [found.bound, exact].map(|ln| evidence(problem, ln).unwrap().log_marginal);
        assert_relative("one hidden value", found, exact, 1e-10);
    });
}

#[test]
fn tiny_and_huge_priors_have_finite_bounds() {
    let data = csv("i,j,count\na,x,3\na,y,1\nb,x,7\nc,z,2\n");
    for a in [1e-280, 1e-12, 1e-5, 1e9, 1e200] {
        for model in ["i -> k[3] -> j", "k[300] -> i j", "i -> k[2] -> l[2] -> j"] {
            with_problem(&bound(model, &data), &settings(a), |problem| {
                let found = fit(problem, &Vb { climb: climb(1, 30), start: None, ..Default::default() });
                assert!(found.bound.value().is_finite(), "{model} {a}: {:?}", found.climbs.trace);
                for pair in found.climbs.trace.windows(2) {
                    assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs(), "{model} {a}: {} {}", pair[0], pair[1]);
                }
            });
        }
    }
}

#[test]
fn bytes_do_not_depend_on_threads_or_instructions() {
    let data = documents();
    for model in ["doc -> topic[13] -> word", "doc -> a[3] -> b[5] -> word"] {
        let binding = bound(model, &data);
        let fits: Vec<_> = [(1, Isa::detect()), (2, Isa::detect()), (8, Isa::SCALAR)]
            .into_iter()
            .map(|(threads, isa)| {
                let climb = Climb { threads, isa, ..climb(2, 6) };
                with_problem(&binding, &settings(20.0), |problem| {
                    let fit = fit(problem, &Vb { climb, start: None, ..Default::default() });
                    (fit.tables(problem), fit.climbs)
                })
            })
            .collect();
        assert_eq!(fits[0].1.trace.len(), 6);
        assert!(fits.iter().all(|fit| *fit == fits[0]), "{model}");
    }
}

#[test]
fn values_without_pseudo_counts_never_occur() {
    let data = csv("i,j,count\na,x,3\na,y,1\nb,x,2\nb,y,5\n");
    // Some cells are zero, and in the second prior a whole row that no token reaches.
    let k_given_i = vec![vec![1.0, 0.5, 0.0], vec![0.0, 2.0, 0.0]];
    let with_dead_row = vec![vec![0.7, 0.2], vec![0.4, 1.1], vec![0.0, 0.0]];
    let with_zeros = vec![vec![0.7, 0.2], vec![0.4, 1.1], vec![0.3, 0.0]];
    for (name, j_given_k) in [("zeros", with_zeros), ("dead row", with_dead_row)] {
        let prior = tables(BTreeMap::from([
            ("i".to_owned(), vec![vec![1.0, 2.0]]),
            ("k".to_owned(), k_given_i.clone()),
            ("j".to_owned(), j_given_k),
        ]));
        with_problem(&bound("i -> k[3] -> j", &data), &prior, |problem| {
            let exact = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap().ln_p_sequence.value();
            let found = fit(problem, &Vb { climb: climb(4, 200), ..Default::default() });
            assert!(
                found.bound.value() <= exact && found.bound.value() > exact - 3.0,
                "{name}: {:?} {exact}",
                found.bound
            );
            assert!(found.ln_likelihood(problem).is_finite(), "{name}");
            let dual_em = BestAllocation { climb: climb(2, 20), given: Given::Expectations, start: None };
            let objective =
                *dual_em.fit(problem, Seed(1), &mut Control::default()).unwrap().climbs.trace.last().unwrap();
            assert!(objective.is_finite() && objective <= exact, "{name}: {objective} {exact}");
            let icm = BestAllocation { given: Given::Modes(Mode::Softmax), ..dual_em };
            let em = Em { climb: climb(2, 50), mode: Mode::Softmax, ..Default::default() };
            for tables in [
                icm.fit(problem, Seed(1), &mut Control::default()).unwrap().tables(problem),
                em.fit(problem, Seed(1), &mut Control::default()).unwrap().tables(problem),
            ] {
                let k = problem.model.node(problem.model.find("k").unwrap()).table;
                let rows = &tables.iter().find(|own| own.table == k).unwrap().rows;
                let mean = |row: usize, child: u32| {
                    rows[row].cells.iter().find(|cell| cell.child == child).map_or(0.0, |cell| cell.mean)
                };
                assert_eq!((mean(0, 2), mean(1, 0), mean(1, 2)), (0.0, 0.0, 0.0), "{name}: {rows:?}");
            }
        });
    }
}

#[test]
fn huge_counts_do_not_stop_a_climb_before_its_time() {
    // A matrix of rank two, up to rounding: a climb must come near it, however large its logarithms are.
    let text = "i,j,count\na,x,4000000000000\na,y,1000000000000\nb,x,1000000000000\nb,y,2000000000000\nc,x,500000000000\nc,y,600000000000\n";
    with_problem(&bound("k[2] -> i j", &csv(text)), &settings(1.0), |problem| {
        let found = fit(
            problem,
            &Vb { climb: Climb { restarts: 1, max_iter: 100_000, ..Default::default() }, ..Default::default() },
        );
        assert!(found.climbs.converged);
        let more = fit(problem, &Vb { climb: climb(1, 2 * found.climbs.trace.len() as u64), ..Default::default() });
        let (reached, later) = (evidence(problem, found.bound).unwrap(), evidence(problem, more.bound).unwrap());
        // A sweep moved less than 1e-8 of what is left; twice the sweeps gain little against that.
        let left = reached.log_marginal.abs();
        assert!(
            later.log_marginal - reached.log_marginal < 0.01 * left,
            "{} {}",
            later.log_marginal,
            reached.log_marginal
        );
    });
}

#[test]
fn a_perfect_fit_of_huge_counts_has_no_divergence() {
    let mut text = String::from("i,j,count\n");
    (0..25u64)
        .for_each(|ix| text += &format!("{},{},{}\n", ix / 5, ix % 5, 5_000_000_000_000 + ix * ix * 7_919_000_003));
    with_problem(&bound("i -> j", &csv(&text)), &settings(1.0), |problem| {
        let fit =
            Em { climb: climb(1, 2), ..Default::default() }.fit(problem, Seed(1), &mut Control::default()).unwrap();
        assert_eq!(kl_divergence(problem.counts, fit.ln_likelihood, fit.intensity), Some(0.0));
    });
}

/// Both nodes use one table, so records are sorted by nothing that they show: all are one long run, handled in parts.
#[test]
fn long_runs_are_those_of_a_slow_reference() {
    let mut text = String::from("i,j,count\n");
    for cell in 0..10_000 {
        text += &format!("{},{},{}\n", cell / 100, cell % 100, 1 + cell * 31 % 7);
    }
    let mut rng = Random::new(19);
    let mut table = |n_rows: usize, n: usize| -> Vec<Vec<f64>> { (0..n_rows).map(|_| rng.weights(n)).collect() };
    for model in ["k[3] -> i j; i ~ j", "k[2] -> l[2] -> i; k -> j; i ~ j"] {
        let mut start = BTreeMap::from([("i".into(), table(if model.contains('l') { 2 } else { 3 }, 100))]);
        if model.contains('l') {
            start.extend([("k".into(), table(1, 2)), ("l".into(), table(2, 2))]);
        } else {
            start.insert("k".into(), table(1, 3));
        }
        let start = StartTables { tables: start };
        with_problem(&bound(model, &csv(&text)), &settings(40.0), |problem| {
            let mut reference = Reference::new(problem, &start);
            let want: Vec<f64> = (0..3).map(|_| reference.vb_sweep()).collect();
            let found = fit(problem, &Vb { climb: climb(1, 3), start: Some(start.clone()), ..Default::default() });
            for (found, want) in found.climbs.trace.iter().zip(want) {
                assert_relative(model, *found, want, 1e-11);
            }
        });
    }
}

/// Weights to start from that are no number once they are multiplied, or hardly one by themselves.
#[test]
fn a_start_far_out_of_range_has_a_first_bound() {
    let data = csv("i,j,count\na,x,3\na,y,1\nb,x,7\n");
    for model in ["k[2] -> i j", "k[2] -> l[2] -> i; k -> j"] {
        let at = |scale: f64| {
            let scaled = |table: [f64; 2]| vec![table.map(|weight| weight * scale).to_vec(); 2];
            let mut start = BTreeMap::from([
                ("k".into(), vec![vec![0.5, 0.5]]),
                ("i".into(), scaled([3.0, 1.0])),
                ("j".into(), scaled([1.0, 2.0])),
            ]);
            if model.contains('l') {
                start.insert("l".into(), vec![vec![0.3, 0.7]; 2]);
            }
            with_problem(&bound(model, &data), &settings(2.0), |problem| {
                let start = Some(StartTables { tables: start.clone() });
                fit(problem, &Vb { climb: climb(1, 1), start, ..Default::default() }).bound.value()
            })
        };
        // A common factor of a table's weights changes nothing: what records gain by it, the expected logarithms take back.
        for tiny in [1e-90, 1e-250, 1e-290, 1e-310] {
            assert_relative(&format!("{model} {tiny}"), at(tiny), at(1.0), 1e-11);
        }
    }
}

/// A row without pseudo-counts: its own and its cells' parts of the bound are both infinite.
#[test]
fn data_in_a_row_that_cannot_occur_have_no_bound() {
    let prior = || {
        tables(BTreeMap::from([("i".into(), vec![vec![1.0, 0.0]]), ("j".into(), vec![vec![1.0, 1.0], vec![0.0, 0.0]])]))
    };
    // The second has a missing value, so that both tables are stored.
    for text in ["i,j,count\na,x,1\nb,x,2\na,y,3\n", "i,j,count\na,x,1\na,y,1\nb,x,1\n,x,2\n"] {
        let binding = bound("i[2] -> j[2]", &csv(text));
        with_problem(&binding, &prior(), |problem| {
            let free = Free { a: false, tables: vec![binding.model.node(binding.model.find("j").unwrap()).table] };
            for free in [Free::default(), free] {
                let found = fit(problem, &Vb { climb: climb(2, 9), free, ..Default::default() });
                assert_eq!(found.bound.value(), f64::NEG_INFINITY, "{text}");
                assert_eq!(found.climbs.trace.last(), Some(&f64::NEG_INFINITY), "{text}");
            }
        });
    }
}

#[test]
fn counts_beyond_2_to_the_53_lose_no_token() {
    let text = "i,j,count\na,x,36028797018963971\na,y,36028797018963971\nb,y,36028797018963971\nb,x,7\n";
    with_problem(&bound("i -> j", &csv(text)), &settings(1.0), |problem| {
        let exact = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap().ln_p_sequence;
        let found = fit(problem, &Vb { climb: climb(1, 2), ..Default::default() });
        let (found, exact) = (evidence(problem, found.bound).unwrap(), evidence(problem, exact).unwrap());
        // A token is worth some forty nats, and the parts are of order 1e18.
        assert!(
            (found.log_marginal - exact.log_marginal).abs() < 1e-6,
            "{} {}",
            found.log_marginal,
            exact.log_marginal
        );
    });
}
