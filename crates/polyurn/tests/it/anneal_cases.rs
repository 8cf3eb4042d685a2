//! Annealing on every case of `exact.json`, from a fitted reference and from the prior: estimates are right on average, and brackets
//! hold as often as they promise.

use crate::cases::{cases, number, with_problem};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::anneal::{Anneal, AnnealEstimate, AnnealPath, AnnealWish};
use polyurn::engine::smc::Crew;
use polyurn::simd::Isa;
use serde_json::Value;

const PATHS: [AnnealPath; 2] = [AnnealPath::Reference, AnnealPath::Prior];

/// Short runs, so that estimates scatter: with few steps a wrong weight shows.
fn short(path: AnnealPath, runs: u64) -> Anneal {
    Anneal { path, particles: 4, runs, sweeps: 12, pilots: 2, pilot_sweeps: 80, is_bracket: true, ..Default::default() }
}

fn run(anneal: &Anneal, problem: &Problem<'_>, seed: u64) -> AnnealEstimate {
    anneal.ln_p_sequence(problem, Seed(seed), &mut Control::default()).unwrap()
}

/// Cases that have one number of tokens, with what is to be found.
fn each_case(f: impl Fn(&str, &Problem<'_>, f64)) {
    for case in cases().iter().filter(|case| case.get("unknown_cell").is_none_or(Value::is_null)) {
        let want = number(&case["exact"]["log_p_sequence"]);
        with_problem(case, false, |problem| f(case["name"].as_str().unwrap(), problem, want));
    }
}

/// How many standard errors the mean of exp(logs) is from one; nothing scatters where nothing is hidden.
fn z_score(logs: &[f64]) -> f64 {
    let n = logs.len() as f64;
    let mean = logs.iter().map(|ln| ln.exp()).sum::<f64>() / n;
    let variance = logs.iter().map(|ln| (ln.exp() - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean - 1.0) / (variance / n).sqrt().max(1e-9)
}

/// With a = 0.001 tokens cannot leave their component one by one: a chain of some dozen sweeps sees one of several modes, so what
/// runs back start from is not the posterior, and they are not right on average. (The bracket still holds.)
const CHAINS_STAY: [&str; 1] = ["matrix-rank-3"];

#[test]
fn annealing_is_right_on_average_for_every_case() {
    each_case(|name, problem, want| {
        for path in PATHS {
            let scores = |runs: u64, seed: u64| {
                let found = run(&short(path, runs), problem, seed);
                let forward: Vec<f64> = found.runs.iter().map(|run| run.ln_p_sequence - want).collect();
                let back: Vec<f64> = found.back.iter().map(|run| want - run.ln_p_sequence).collect();
                if forward.is_empty() {
                    assert!(
                        (found.ln_p_sequence - want).abs() <= 1e-10 * want.abs().max(1.0),
                        "{name}: nothing is hidden"
                    );
                    return [0.0; 2];
                }
                assert_eq!((forward.len() as u64, back.len() as u64), (runs, runs));
                // Where labels overlap, weights of runs back to a reference have tails so heavy that means of hundreds are not
                // normal; what is promised of them are bounds, see below.
                let is_tested = path == AnnealPath::Prior && !CHAINS_STAY.contains(&name);
                [z_score(&forward), if is_tested { z_score(&back) } else { 0.0 }]
            };
            let is_close = |scores: [f64; 2]| scores.iter().all(|z| z.abs() <= 4.5);
            let first = scores(400, 31);
            let last = if is_close(first) { first } else { scores(1600, 32) };
            assert!(is_close(last), "{name} {path:?}: {first:?} {last:?}");
        }
    });
}

/// Brackets of so many seeds, each of a job of its own with its own chains: each bound fails with a probability of 0.025 at most.
/// With one run each way, or with as many as are made unasked.
fn check_brackets(is_alone: bool, n: u64) {
    each_case(|name, problem, want| {
        for path in PATHS {
            let crew = Crew { isa: Isa::detect(), threads: 1, max_memory: 1 << 30 };
            let wish = AnnealWish { is_bracket: true, ..Default::default() };
            let unasked = wish.settle(problem, crew, None, Seed(0)).unwrap();
            assert!(unasked.runs >= 16 && unasked.pilots >= 2 * unasked.runs, "{name}");
            let several = Anneal { pilots: unasked.pilots, ..short(path, unasked.runs) };
            let anneal = if is_alone { short(path, 1) } else { several };
            let holds = |seed: u64| {
                let bracket = run(&anneal, problem, 5000 + seed).bracket.unwrap();
                // Sums of logs in another order differ in the last digits.
                let slack = 1e-9 * want.abs().max(1.0);
                bracket.lower <= want + slack && want <= bracket.upper + slack
            };
            let n_failed = (0..n).filter(|&seed| !holds(seed)).count() as f64;
            // At most 0.05 n, and 4.5 standard errors.
            let most = 0.05 * n as f64 + 4.5 * (0.05 * 0.95 * n as f64).sqrt();
            assert!(n_failed <= most, "{name} {path:?}: {n_failed} of {n}");
        }
    });
}

#[test]
fn brackets_of_every_case_hold_as_often_as_they_promise() {
    check_brackets(true, 40);
}

#[test]
fn brackets_of_several_runs_hold_as_often_as_they_promise() {
    check_brackets(false, 6);
}

#[test]
#[ignore = "minutes: a thousand seeds for every case"]
fn brackets_of_every_case_hold_as_often_as_they_promise_over_a_thousand_seeds() {
    check_brackets(true, 1000);
}

#[test]
#[ignore = "many minutes: a thousand seeds for every case, each with dozens of runs"]
fn brackets_of_several_runs_hold_as_often_as_they_promise_over_a_thousand_seeds() {
    check_brackets(false, 1000);
}
