//! Sizes of the prior that variational Bayes sets where its bound is largest.

use crate::support::{Random, assert_relative, base, bound, csv, score_bound, settings, tables, with_problem};
use crate::sweeps_support::{PartlySeen, climb};
use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{Climb, Free, StartTables, Vb, VbFit};
use polyurn::evidence::evidence;
use polyurn::graph::{Binding, TableIndex};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Seed, Warning};

fn fit(problem: &Problem<'_>, free: &Free, climb: Climb) -> VbFit {
    Vb { climb, free: free.clone(), ..Default::default() }.fit(problem, Seed(5), &mut Control::default()).unwrap()
}

fn free_a() -> Free {
    Free { a: true, tables: Vec::new() }
}

/// The bound on ln p(data), at the prior that was found.
fn log_marginal(problem: &Problem<'_>, fit: &VbFit) -> f64 {
    evidence(&problem.with_prior(&fit.prior), fit.bound).unwrap().log_marginal
}

/// Where a function of ln x is largest, by thirds.
fn largest(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    while high - low > 1e-7 {
        let (x, y) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if f(x.exp()) < f(y.exp()) { low = x } else { high = y }
    }
    low.exp()
}

fn seen_people() -> Binding {
    let data = csv("sex,work,vote,count\nf,a,x,11\nf,a,y,2\nf,b,x,1\nf,b,y,9\nm,a,x,7\nm,a,y,1\nm,b,y,14\nm,c,z,3\n");
    bound("sex -> work -> vote; sex -> vote", &data)
}

#[test]
fn with_nothing_hidden_the_best_a_is_that_of_the_exact_evidence() {
    let binding = seen_people();
    for rate in [None, Some(0.3)] {
        let at = |a: f64| PriorSettings { a: Some(a), rate, ..Default::default() };
        let best = largest(-4.0, 6.0, |a| score_bound(&binding, &at(a)).log_marginal);
        with_problem(&binding, &at(2.0), |problem| {
            let found = fit(problem, &free_a(), climb(1, 60));
            let a = 2.0 * found.factors.a.unwrap();
            // The evidence is flat at its maximum: its seventh digit tells no more than four of a.
            assert_relative("a", a, best, 1e-4);
            assert_eq!(found.prior.shape(), a);
            let exact = score_bound(&binding, &at(a)).log_marginal;
            assert_relative("evidence", log_marginal(problem, &found), exact, 1e-12);
            let to_marginal = evidence(problem, found.bound).unwrap();
            let constant = to_marginal.log_p_total + to_marginal.log_arrangements;
            assert_relative("trace", found.climbs.trace.last().unwrap() + constant, exact, 1e-12);
        });
    }
}

#[test]
fn with_nothing_hidden_the_best_pseudo_count_is_that_of_the_exact_evidence() {
    let binding = seen_people();
    let at = |value: f64| PriorSettings { pseudo_counts: vec![("vote".into(), value)], ..settings(1.5) };
    let best = largest(-6.0, 4.0, |value| score_bound(&binding, &at(value)).log_marginal);
    let vote = binding.model.node(binding.model.find("vote").unwrap()).table;
    // From a base that follows a, and from a pseudo-count of its own.
    for start in [settings(1.5), at(3.0)] {
        with_problem(&binding, &start, |problem| {
            let found = fit(problem, &Free { a: false, tables: vec![vote] }, climb(1, 60));
            let value = found.prior.table(vote).cell(&[0, 0], 0).value;
            assert_relative("pseudo-count", value, best, 1e-4);
            assert_eq!((found.factors.a, found.factors.tables.len()), (None, 1));
            assert_relative(
                "evidence",
                log_marginal(problem, &found),
                score_bound(&binding, &at(value)).log_marginal,
                1e-12,
            );
        });
    }
}

#[test]
fn a_bound_with_free_sizes_never_falls() {
    let mut rng = Random::new(41);
    let mut n_raised = 0;
    for round in 0..60 {
        let partly = PartlySeen { is_tied: round % 3 == 0, missing: 0.1, ..Default::default() };
        let (dag, rows) = partly.draw(&mut rng);
        let binding = rows.bind(&dag);
        let settings = match round % 4 {
            0 => settings(rng.weight() * 3.0),
            1 => tables(dag.random_tables(&mut rng)),
            2 => base(rng.weights(dag.n_cells())),
            _ => PriorSettings { pseudo_counts: vec![("n0".into(), 0.4)], ..settings(2.0) },
        };
        let Ok(prior) = Prior::build(&binding.model, &settings) else { continue };
        let n_tables = binding.model.tables().len();
        // Tables that are given one by one, or by a base measure, do not follow `a`.
        let follow_a = round % 4 == 0 && n_tables > 1;
        let free = Free { a: follow_a, tables: vec![TableIndex(rng.between(0, n_tables - 1) as u32)] };
        let Ok(problem) = Problem::new(&binding.model, &prior, &binding.counts) else { continue };
        let found = fit(&problem, &free, climb(1, 40));
        for pair in found.climbs.trace.windows(2) {
            assert!(pair[1] >= pair[0] - 1e-12 * pair[0].abs(), "round {round}: {} {}", pair[0], pair[1]);
        }
        let held = fit(&problem, &Free::default(), climb(1, 1));
        assert_relative("first sweep", held.climbs.trace[0], found.climbs.trace[0], 1e-13);
        n_raised +=
            usize::from(found.climbs.trace[39] > fit(&problem, &Free::default(), climb(1, 40)).climbs.trace[39]);
    }
    assert!(n_raised > 45, "{n_raised}");
}

/// Documents that are mostly about one of three themes, each with words of its own.
fn themed_documents() -> Dataset {
    let mut rng = Random::new(3);
    let mut text = String::from("doc,word,count\n");
    for doc in 0..60 {
        for _ in 0..40 {
            let theme = if rng.chance(0.8) { doc % 3 } else { rng.between(0, 2) };
            let word = rng.between(0, 11) * rng.between(1, 4) / 4;
            text += &format!("d{doc},t{theme}w{word},1\n");
        }
    }
    csv(&text)
}

#[test]
fn no_neighbour_of_the_sizes_found_has_a_higher_bound() {
    let binding = bound("doc -> topic[3] -> word", &themed_documents());
    let table = |name: &str| binding.model.node(binding.model.find(name).unwrap()).table;
    let free = Free { a: false, tables: vec![table("topic"), table("word")] };
    let at = |topic: f64, word: f64| PriorSettings {
        pseudo_counts: vec![("topic".into(), topic), ("word".into(), word)],
        ..settings(30.0)
    };
    let climb = Climb { tol: 1e-13, ..climb(1, 20_000) };
    let (found, start) = with_problem(&binding, &at(0.5, 0.5), |problem| {
        let found = fit(problem, &free, climb.clone());
        let start = found.tables(problem).into_iter().filter(|own| free.tables.contains(&own.table)).map(|own| {
            let rows = own.rows.iter().map(|row| row.cells.iter().map(|cell| cell.mean).collect()).collect();
            (binding.model.table_name(own.table).to_owned(), rows)
        });
        let start = StartTables { tables: start.collect() };
        (found, start)
    });
    let (topic, word) = (0.5 * found.factors.tables[0], 0.5 * found.factors.tables[1]);
    // From the tables that were found: other starts may lead to other optima of the tables.
    let held = |topic: f64, word: f64| {
        let vb = Vb { climb: climb.clone(), start: Some(start.clone()), ..Default::default() };
        with_problem(&binding, &at(topic, word), |problem| {
            vb.fit(problem, Seed(1), &mut Control::default()).unwrap().bound.value()
        })
    };
    let best = held(topic, word);
    assert!(found.climbs.converged && found.factors.tables.iter().all(|factor| (factor.ln()).abs() > 0.1));
    assert_relative("bound", found.bound.value(), best, 1e-9);
    for (to_topic, to_word) in [(1.1, 1.0), (0.9, 1.0), (1.0, 1.1), (1.0, 0.9)] {
        let other = held(topic * to_topic, word * to_word);
        assert!(other < best, "{topic} {word} times {to_topic} {to_word}: {other} {best}");
    }
}

#[test]
fn unknown_cells_have_a_total_that_follows_a() {
    let data = csv("i,j,count\n0,0,3\n0,1,?\n1,0,3\n1,1,3\n");
    let prior = PriorSettings { a: Some(4.0), rate: Some(0.2), ..Default::default() };
    with_problem(&bound("i -> k[2] -> j", &data), &prior, |problem| {
        let found = fit(problem, &free_a(), climb(1, 3000));
        assert!(found.climbs.trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-12));
        let a = 4.0 * found.factors.a.unwrap();
        let at = |a: f64| {
            let prior = PriorSettings { a: Some(a), rate: Some(0.2), ..Default::default() };
            with_problem(&bound("i -> k[2] -> j", &data), &prior, |problem| {
                fit(problem, &Free::default(), climb(1, 3000)).bound.value()
            })
        };
        assert_relative("bound", found.bound.value(), at(a), 1e-9);
        assert!(at(0.95 * a) < at(a) && at(1.05 * a) < at(a), "{a}");
    });
}

#[test]
fn what_cannot_be_maximised_is_said() {
    let binding = seen_people();
    // Also where the Gamma shape follows it: the total alone tells nothing.
    for shape in [Some(2.0), None] {
        let spec = polyurn::prior::PriorSpec::Bdeu { size: Some(1.0) };
        with_problem(&binding, &PriorSettings { shape, spec, ..Default::default() }, |problem| {
            let vb = Vb { free: free_a(), ..Default::default() };
            let error = vb.fit(problem, Seed(1), &mut Control::default()).unwrap_err().to_string();
            assert!(error.contains("no table's pseudo-counts follow `a`"), "{error}");
        });
    }
    // Every row alike: no pseudo-count is large enough.
    let even = csv("x,y,count\na,0,500\na,1,500\nb,0,500\nb,1,500\n");
    let binding = bound("x -> y", &even);
    with_problem(&binding, &settings(1.0), |problem| {
        let y = binding.model.node(binding.model.find("y").unwrap()).table;
        // Also where the bound stands still long before the size does.
        for tol in [0.0, 1e-8, 1e-3] {
            let found = fit(problem, &Free { a: false, tables: vec![y] }, Climb { tol, ..climb(1, 300) });
            assert!(found.climbs.warnings.contains(&Warning::SizeWithoutMaximum), "{tol}: {:?}", found.factors);
        }
    });
}
