//! How far the exact engine reaches, and how it stops: cost, memory, cancel, deadline, checkpoints.

use crate::support::{
    Dag, Random, Rows, assert_log, assert_relative, bound, csv, is_affordable, score, settings, with_problem,
};
use polyurn::control::{Cancel, Control, Observer, Progress};
use polyurn::engine::Problem;
use polyurn::engine::enumerate::Enumeration;
use polyurn::engine::exact::{Exact, TotalsRange, posterior};
use polyurn::evidence::{evidence, totals};
use polyurn::math::log_sum_exp;
use polyurn::prior::PriorSettings;
use polyurn::{Error, Result, Stop};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";
/// Twenty tokens in a 5 x 5 matrix.
const FIVE: &str = "i,j,count\n0,0,3\n0,1,1\n0,4,1\n1,1,2\n1,2,1\n2,0,1\n2,2,3\n3,3,2\n3,4,1\n4,1,1\n4,3,1\n4,4,3\n";

/// Rows and columns exchanged.
fn transposed(data: &str) -> String {
    let swap = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        format!("{},{},{}\n", fields[1], fields[0], fields[2])
    };
    let lines: Vec<&str> = data.lines().collect();
    lines[0].to_owned() + "\n" + &lines[1..].iter().map(|line| swap(line)).collect::<String>()
}

#[test]
fn the_toy_matrix_at_k_4_equals_the_sum_over_its_102400_tensors() {
    for a in [0.2, 3.0] {
        with_problem(&bound("j[4] -> k[4] -> i[3]", &csv(TOY)), &settings(a), |problem| {
            let sequence = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
            let found = evidence(problem, sequence.ln_p_sequence).unwrap().log_marginal;
            let total = problem.prior.total(Some(problem.counts.n_tokens)).unwrap();
            let mut terms = Vec::new();
            Enumeration::new(problem, total)
                .unwrap()
                .run(&Exact::default(), &mut Control::default(), &mut |tensor| {
                    terms.push(tensor.ln_pi);
                    Ok(())
                })
                .unwrap();
            // Two tokens go to four places in 10 ways, one in 4 ways.
            assert_eq!(terms.len(), 10 * 10 * 4usize.pow(5));
            assert_relative(&format!("a {a}"), found, log_sum_exp(&terms), 1e-10);
        });
    }
}

#[test]
fn a_5_by_5_matrix_with_twenty_tokens_at_k_3_scores_the_same_in_every_direction() {
    let want = score("k[3] -> i[5] j[5]", FIVE, &settings(0.7)).log_marginal;
    assert!(want.is_finite());
    for model in ["i[5] -> k[3] -> j[5]", "j[5] -> k[3] -> i[5]"] {
        assert_relative(model, score(model, FIVE, &settings(0.7)).log_marginal, want, 1e-10);
        // The order in which records are placed follows their values: another order, the same sum.
        assert_relative(model, score(model, &transposed(FIVE), &settings(0.7)).log_marginal, want, 1e-10);
    }
    // A base measure that is even up to 1e-13 breaks the label symmetry: three labels are then told apart.
    let mut alpha = vec![0.7 / 75.0; 75];
    alpha[0] *= 1.0 + 1e-13;
    let prior = PriorSettings { a: Some(0.7), ..crate::support::base(alpha) };
    assert_relative("labels told apart", score("k[3]; i[5]; j[5]; k -> i j", FIVE, &prior).log_marginal, want, 1e-10);
}

/// Counts the calls, and stops the run after some of them.
struct Watch {
    n_calls: Rc<Cell<usize>>,
    stop: Option<(usize, Cancel)>,
}

impl Observer for Watch {
    fn progress(&mut self, progress: Progress<'_>) {
        assert!((0.0..=1.0 + 1e-12).contains(&progress.fraction), "{progress:?}");
        self.n_calls.set(self.n_calls.get() + 1);
        if let Some((after, cancel)) = &self.stop
            && self.n_calls.get() == *after
        {
            cancel.cancel();
        }
    }
}

/// A 40 x 50 matrix of 2000 tokens in 300 cells.
fn hopeless() -> (Dag, Rows) {
    let mut rng = Random::new(901);
    let dag = Dag { sizes: vec![40, 12, 50], parents: vec![[1].into(), [].into(), [1].into()], tied: Vec::new() };
    let rows = Rows::random(&mut rng, &dag, vec![0, 2], 300, 2000, 0.0);
    (dag, rows)
}

#[test]
fn the_forecast_is_a_number_however_large_the_problem() {
    let (dag, rows) = hopeless();
    with_problem(&rows.bind(&dag), &settings(1.0), |problem| {
        let cost = Exact::default().cost(problem).unwrap();
        assert!(cost.states > 1e100 && cost.bytes > 1e100, "{cost:?}");
        assert!(cost.transitions > 1e100 && cost.seconds > 1e90, "{cost:?}");
    });
    with_problem(&bound("k[3] -> i[5] j[5]", &csv(FIVE)), &settings(1.0), |problem| {
        let cost = Exact::default().cost(problem).unwrap();
        assert!(cost.states > 10.0 && cost.bytes > cost.states && cost.transitions > cost.states, "{cost:?}");
        assert!(cost.seconds > 0.0 && cost.seconds < 100.0, "{cost:?}");
    });
}

#[test]
fn a_problem_too_large_is_refused_before_it_runs() {
    let (dag, rows) = hopeless();
    with_problem(&rows.bind(&dag), &settings(1.0), |problem| {
        let n_calls = Rc::new(Cell::new(0));
        let start = Instant::now();
        let mut control = Control::new(Watch { n_calls: n_calls.clone(), stop: None });
        let refused = Exact::default().ln_p_sequence(problem, &mut control);
        assert!(matches!(refused, Err(Error::TooCostly(_))));
        assert!(matches!(posterior(&Exact::default(), problem, &mut control), Err(Error::TooCostly(_))));
        let total = problem.prior.total(Some(2000)).unwrap();
        let listing = Enumeration::new(problem, total).unwrap();
        assert!(listing.n_tensors > 1e100);
        let refused = listing.run(&Exact::default(), &mut control, &mut |_| panic!("nothing is to be listed"));
        assert!(matches!(refused, Err(Error::TooCostly(_))));
        assert_eq!(n_calls.get(), 0, "no work was begun");
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    });
}

#[test]
fn unseen_parents_without_end_are_refused_and_not_tried() {
    // Seven parents of ten values are 1e7 ways for one token: beyond listing, but not beyond summing out.
    let seven = (0..7).map(|ix| format!("h{ix}[10]")).collect::<Vec<_>>().join(" ");
    with_problem(&bound(&format!("{seven} -> x"), &csv("x,count\n0,1\n1,2\n")), &settings(1.0), |problem| {
        assert!(matches!(Exact::default().cost(problem), Err(Error::TooCostly(_))));
        let refused = Exact::default().ln_p_sequence(problem, &mut Control::default());
        assert!(matches!(refused, Err(Error::TooCostly(_))));
        let total = problem.prior.total(Some(3)).unwrap();
        assert!(matches!(Enumeration::new(problem, total), Err(Error::TooCostly(_))));
    });
    let wide = (0..30).map(|ix| format!("h{ix}[10]")).collect::<Vec<_>>().join(" ");
    let binding = bound(&format!("{wide} -> x"), &csv("x,count\n0,1\n1,2\n"));
    let prior = polyurn::prior::Prior::build(&binding.model, &settings(1.0)).unwrap();
    assert!(matches!(Problem::new(&binding.model, &prior, &binding.counts), Err(Error::TooCostly(_))));
}

#[test]
fn the_memory_limit_is_respected() {
    with_problem(&bound("k[3] -> i[5] j[5]", &csv(FIVE)), &settings(0.7), |problem| {
        let cost = Exact::default().cost(problem).unwrap();
        let n_calls = Rc::new(Cell::new(0));
        let below = Exact { max_memory: cost.bytes as u64 - 1 };
        let mut control = Control::new(Watch { n_calls: n_calls.clone(), stop: None });
        assert!(matches!(below.ln_p_sequence(problem, &mut control), Err(Error::TooCostly(_))));
        assert_eq!(n_calls.get(), 0);
        // With room for growing buffers it runs, and gives the same number.
        let enough = Exact { max_memory: 4 * cost.bytes as u64 };
        let found = enough.ln_p_sequence(problem, &mut Control::default()).unwrap();
        let free = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
        assert_eq!(found.ln_p_sequence, free.ln_p_sequence);
        assert!(found.max_states as f64 <= 2.0 * cost.states, "{} {cost:?}", found.max_states);
    });
    let unknown = format!("{FIVE}0,3,?\n1,4,?\n");
    let prior = PriorSettings { rate: Some(0.05), ..settings(0.7) };
    // Two hidden nodes: the ways of a token hang together, so its states are followed one by one.
    with_problem(&bound("k[2] -> l[2] -> j[5]; k -> i[5]", &csv(&unknown)), &prior, |problem| {
        let tight = Exact { max_memory: 1 << 16 };
        let range = TotalsRange::Between(20, 200);
        assert!(matches!(totals(problem, &tight, range, &mut Control::default()), Err(Error::TooCostly(_))));
        // Without a bound on the totals the states are watched while they grow.
        let some = Exact { max_memory: 4 << 20 };
        assert!(matches!(totals(problem, &some, TotalsRange::Auto, &mut Control::default()), Err(Error::TooCostly(_))));
    });
}

/// Runs of every kind that can be stopped.
fn each_run(problem: &Problem<'_>, mut control: impl FnMut() -> Control<'static>) -> Vec<Result<()>> {
    let total = problem.prior.total(Some(problem.counts.n_tokens)).unwrap();
    let listing = Enumeration::new(problem, total).unwrap();
    vec![
        Exact::default().ln_p_sequence(problem, &mut control()).map(drop),
        posterior(&Exact::default(), problem, &mut control()).map(drop),
        listing.run(&Exact { max_memory: u64::MAX }, &mut control(), &mut |_| Ok(())),
    ]
}

#[test]
fn a_cancelled_run_stops_and_a_passed_deadline_stops_it() {
    with_problem(&bound("k[4] -> i[3] j[4]", &csv(TOY)), &settings(0.7), |problem| {
        for after in [1, 5] {
            let runs = each_run(problem, || {
                let cancel = Cancel::default();
                let watch = Watch { n_calls: Rc::new(Cell::new(0)), stop: Some((after, cancel.clone())) };
                Control::new(watch).with_cancel(cancel)
            });
            assert!(runs.iter().all(|run| matches!(run, Err(Error::Stopped(Stop::Cancelled)))), "{runs:?}");
        }
        let runs = each_run(problem, || Control::default().with_deadline(Some(Instant::now())));
        assert!(runs.iter().all(|run| matches!(run, Err(Error::Stopped(Stop::Deadline)))), "{runs:?}");
        let runs =
            each_run(problem, || Control::default().with_deadline(Some(Instant::now() + Duration::from_secs(3600))));
        assert!(runs.iter().all(Result::is_ok), "{runs:?}");
    });
    // A long run stops soon after its deadline.
    let long = FIVE.replace(",3\n", ",60\n").replace(",2\n", ",50\n");
    with_problem(&bound("k[3] -> i[5] j[5]", &csv(&long)), &settings(0.7), |problem| {
        assert!(Exact::default().cost(problem).unwrap().seconds > 60.0);
        let start = Instant::now();
        let mut control = Control::default().with_deadline(Some(start + Duration::from_millis(200)));
        let run = Exact { max_memory: u64::MAX }.ln_p_sequence(problem, &mut control);
        assert!(matches!(run, Err(Error::Stopped(Stop::Deadline))), "{run:?}");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    });
}

/// Keeps every state that is offered; starts from one of them if it is given.
#[derive(Default)]
struct Keeper {
    saved: Rc<RefCell<Vec<Vec<u8>>>>,
    start: Option<Vec<u8>>,
}

impl Observer for Keeper {
    fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.start.clone())
    }

    fn checkpoint_interval(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn save_checkpoint(&mut self, state: &[u8]) -> Result<()> {
        self.saved.borrow_mut().push(state.to_vec());
        Ok(())
    }
}

/// A run that keeps its states, and those states.
fn kept<T>(run: impl FnOnce(&mut Control<'_>) -> T) -> (T, Vec<Vec<u8>>) {
    let saved = Rc::new(RefCell::new(Vec::new()));
    let result = run(&mut Control::new(Keeper { saved: saved.clone(), start: None }));
    let saved = saved.borrow().clone();
    (result, saved)
}

fn resumed(state: &[u8]) -> Control<'static> {
    Control::new(Keeper { saved: Rc::default(), start: Some(state.to_vec()) })
}

#[test]
fn a_resumed_run_gives_the_same_bits() {
    with_problem(&bound("k[3] -> i[3] j[4]", &csv(TOY)), &settings(0.7), |problem| {
        let free = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
        let (whole, saved) = kept(|control| Exact::default().ln_p_sequence(problem, control).unwrap());
        assert_eq!(whole.ln_p_sequence, free.ln_p_sequence);
        assert_eq!(saved.len(), 9, "one state after each token");
        for state in &saved {
            let again = Exact::default().ln_p_sequence(problem, &mut resumed(state)).unwrap();
            assert_eq!(again.ln_p_sequence, whole.ln_p_sequence);
        }
        let (whole, saved) = kept(|control| posterior(&Exact::default(), problem, control).unwrap());
        for state in &saved {
            let again = posterior(&Exact::default(), problem, &mut resumed(state)).unwrap();
            assert_eq!(again.ln_p_sequence, whole.ln_p_sequence);
            assert_eq!(again.table_means(problem), whole.table_means(problem));
            assert_eq!(again.d_ep().to_bits(), whole.d_ep().to_bits());
        }
    });
    let unknown = format!("{TOY}2,0,?\n");
    let prior = PriorSettings { rate: Some(0.3), ..settings(0.7) };
    with_problem(&bound("k[2] -> i[3] j[4]", &csv(&unknown)), &prior, |problem| {
        let run = |control: &mut Control<'_>| {
            totals(problem, &Exact::default(), TotalsRange::Between(9, 14), control).unwrap()
        };
        let (whole, saved) = kept(run);
        assert!(!saved.is_empty());
        for state in &saved {
            assert_eq!(run(&mut resumed(state)), whole);
        }
    });
}

#[test]
fn a_checkpoint_of_another_problem_or_a_damaged_one_is_refused() {
    let run = |model: &str, data: &str, a: f64, control: &mut Control<'_>| {
        with_problem(&bound(model, &csv(data)), &settings(a), |problem| {
            Exact::default().ln_p_sequence(problem, control).map(|found| found.ln_p_sequence.value())
        })
    };
    let (_, saved) = kept(|control| run("k[3] -> i[3] j[4]", TOY, 0.7, control).unwrap());
    let state = &saved[4];
    for (model, data, a) in [
        ("k[3] -> i[3] j[4]", TOY, 0.70001),
        ("k[2] -> i[3] j[4]", TOY, 0.7),
        ("i[3] -> k[3] -> j[4]; h[2] -> i", TOY, 0.7),
        ("k[3] -> i[3] j[4]", &TOY.replace("1,3,2", "1,3,1"), 0.7),
        ("k[3] -> i[3] j[4]", &TOY.replace("2,3,1", "2,1,1"), 0.7),
        ("k[3] -> i[3] j[5]", TOY, 0.7),
    ] {
        let found = run(model, data, a, &mut resumed(state));
        assert!(matches!(found, Err(Error::Checkpoint(_))), "{model} a {a}: {found:?}");
    }
    let (front, back) = state.split_at(state.len() / 2);
    for damaged in [&[][..], front, back, &[state.as_slice(), &[0u8; 3]].concat()[1..], b"not a checkpoint at all"] {
        let found = run("k[3] -> i[3] j[4]", TOY, 0.7, &mut resumed(damaged));
        assert!(matches!(found, Err(Error::Checkpoint(_))), "{found:?}");
    }
}

#[test]
fn a_checkpoint_taken_up_by_another_run_is_refused_or_leads_to_the_right_answer() {
    // Runs of one model that differ in the goal, or only in which cell is unknown, and so in what they may forget.
    let mut rng = Random::new(902);
    let (mut n_refused, mut n_right) = (0, 0);
    for round in 0..150 {
        let dag = Dag { sizes: vec![2, 2, 3], parents: vec![[].into(), [0].into(), [0].into()], tied: Vec::new() };
        let mut seen = Rows::random(&mut rng, &dag, vec![1, 2], 3, 6, 0.2);
        let cells: Vec<Vec<u32>> = (0..6)
            .map(|cell| vec![cell / 3, cell % 3])
            .filter(|cell| seen.rows.iter().all(|(values, _)| *values != [Some(cell[0]), Some(cell[1])]))
            .collect();
        let prior = PriorSettings { rate: Some(0.5), ..settings(0.8) };
        let mut variants = vec![seen.clone()];
        for cell in cells {
            seen.unknown = vec![cell];
            variants.push(seen.clone());
        }
        let run = |rows: &Rows, control: &mut Control<'_>| -> Result<Vec<f64>> {
            with_problem(&rows.bind(&dag), &prior, |problem| {
                if rows.unknown.is_empty() {
                    let found = posterior(&Exact::default(), problem, control)?;
                    return Ok(vec![found.ln_p_sequence.value(), found.d_ep()]);
                }
                let found = totals(problem, &Exact::default(), TotalsRange::Between(6, 9), control)?;
                Ok(found.iter().map(|entry| entry.log_joint).collect())
            })
        };
        let evidence_run = |control: &mut Control<'_>| {
            with_problem(&variants[0].bind(&dag), &prior, |problem| {
                Exact::default().ln_p_sequence(problem, control).unwrap()
            })
        };
        // Each state with what it was saved by: evidence, posterior, or totals with this unknown cell.
        let mut saved: Vec<(String, Vec<u8>)> =
            kept(evidence_run).1.into_iter().map(|state| ("evidence".into(), state)).collect();
        for rows in &variants {
            let states = kept(|control| run(rows, control).unwrap()).1;
            saved.extend(states.into_iter().map(|state| (format!("unknown {:?}", rows.unknown), state)));
        }
        for rows in &variants {
            let want = run(rows, &mut Control::default()).unwrap();
            for (by, state) in &saved {
                match run(rows, &mut resumed(state)) {
                    Err(Error::Checkpoint(_)) => n_refused += 1,
                    Err(other) => panic!("{other}"),
                    Ok(found) => {
                        n_right += 1;
                        let what = format!("{round}: saved by {by}, taken up by\n{}", rows.csv());
                        found.iter().zip(&want).for_each(|(&got, &want)| assert_log(&what, got, want, 1e-12));
                    }
                }
            }
        }
    }
    assert!(n_refused > 100 && n_right > 100, "{n_refused} refused, {n_right} right");
}

#[test]
fn the_forecast_covers_what_a_run_takes_when_labels_are_told_apart() {
    let mut rng = Random::new(903);
    let mut n_checked = 0;
    while n_checked < 60 {
        let n_nodes = rng.between(3, 5);
        let dag = Dag::random(&mut rng, n_nodes, (1, 3), 0.5);
        let columns = rng.permutation(n_nodes)[..rng.between(1, n_nodes - 1)].to_vec();
        let rows = Rows::random(&mut rng, &dag, columns, 5, 12, 0.1);
        let prior = crate::support::base(rng.weights(dag.n_cells()));
        let binding = rows.bind(&dag);
        if !is_affordable(&binding, &prior, 1e6) {
            continue;
        }
        n_checked += 1;
        with_problem(&binding, &prior, |problem| {
            let cost = Exact::default().cost(problem).unwrap();
            let found = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
            assert!(found.max_states as f64 <= cost.states * (1.0 + 1e-9), "{} {cost:?}", found.max_states);
        });
    }
}
