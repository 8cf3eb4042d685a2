//! What the particle engine promises apart from its number: the same bytes, stops, checkpoints, refusals, unknown cells.

use crate::cases::cases;
use crate::smc_support::{Sample, Subject, check, path_of};
use crate::support::{Keeper, Random, Saved, bound, csv, random_table, settings, with_problem, z_score};
use polyurn::control::{Cancel, Control, Progress};
use polyurn::engine::exact::{Exact, TotalsRange};
use polyurn::engine::naive::naive;
use polyurn::engine::smc::{Crew, Order, Path, RunResult, Scheme, Smc, When, Wish};
use polyurn::evidence::{estimated_totals, ln_arrangements, totals};
use polyurn::graph::Binding;
use polyurn::prior::PriorSettings;
use polyurn::simd::Isa;
use polyurn::{Error, Seed, Stop, Warning};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Everything about a run that must not depend on who computed it, bit by bit.
fn bits(runs: &[RunResult]) -> Vec<(u64, u64, u64, u64, usize)> {
    let of_run = |run: &RunResult| {
        (run.ln_p_sequence.to_bits(), run.ess_min.to_bits(), run.variance.to_bits(), run.n_resampled, run.n_ancestors)
    };
    runs.iter().map(of_run).collect()
}

/// Problems that go through different kernels: one hidden node, elimination, joint states of a tied table, the weight of
/// long tied chains, tables that are kept whole, logs, rare labels that are not kept.
fn subjects() -> Vec<Subject> {
    let matrix = random_table(901, &[("i", 9), ("j", 6)], 60);
    let chain = random_table(902, &[("a", 3), ("b", 2), ("c", 3), ("d", 2), ("e", 2)], 25);
    let long = random_table(903, &(0..13).map(|_| ("c", 2)).collect::<Vec<_>>(), 6);
    let header: String = (0..13).map(|column| format!("c{column},")).collect();
    let long = header + "count\n" + long.split_once('\n').unwrap().1;
    let missing = "x,y,z,count\n0,2,,2\n,1,1,5\n1,0,0,2\n1,,0,7\n,2,,1\n";
    let sparse = random_table(904, &[("doc", 12), ("word", 80)], 90);
    let tiny = random_table(905, &(0..6).map(|_| ("c", 3)).collect::<Vec<_>>(), 12);
    let tiny = "c0,c1,c2,c3,c4,c5,count\n".to_owned() + tiny.split_once('\n').unwrap().1;
    vec![
        Subject::new("matrix", "k[5] -> i j", &matrix, settings(1.5)),
        Subject::new("beyond a byte", "k[12] -> i j", &random_table(911, &[("i", 9), ("j", 6)], 300), settings(30.0)),
        Subject::new("chain", "hmm(3)", &chain, settings(4.0)),
        Subject::new("tied matrix", "k[3] -> i j; i ~ j", &random_table(906, &[("i", 5), ("j", 5)], 40), settings(2.0)),
        Subject::new("long tied chain", "hmm(2,tied)", &long, settings(6.0)),
        Subject::new("missing values", "k[2] -> x y; x -> y; y -> z", missing, settings(1.7)),
        Subject::new("rare words", "doc -> topic[30] -> word", &sparse, settings(20.0)),
        Subject::new("tiny a", "lca(2)", &tiny, settings(1e-60)),
    ]
}

/// Plain; with moves, resampled after every token; cooled; with moves of whole groups.
fn paths() -> [Path; 4] {
    [
        path_of((0, 1.0, 0, 0)),
        Path { when: When::Always, scheme: Scheme::Residual, ..path_of((2, 1.0, 0, 0)) },
        Path { scheme: Scheme::Multinomial, ..path_of((1, 5.0, 2, 0)) },
        path_of((0, 2.0, 2, 2)),
    ]
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    for subject in subjects() {
        for path in paths() {
            // Eight runs share the threads out; one run of several shards shares its particles out.
            for (runs, particles) in [(8, 40), (1, 2100)] {
                let smc = Smc { particles, runs, path: path.clone(), ..Default::default() };
                let found = |threads: usize| bits(&subject.estimate(&Smc { threads, ..smc.clone() }, 5).runs);
                let one = found(1);
                assert_eq!(one.len(), runs as usize);
                for threads in [2, 4, 8] {
                    assert_eq!(one, found(threads), "{} {path:?}: {threads} threads, {runs} runs", subject.name);
                }
            }
        }
    }
}

#[test]
fn any_instructions_give_the_same_bytes() {
    // On a machine without vector instructions this compares a run with itself.
    for subject in subjects() {
        for path in paths() {
            for particles in [5, 100, 700] {
                let smc = Smc { particles, runs: 2, path: path.clone(), ..Default::default() };
                let found = |isa: Isa| bits(&subject.estimate(&Smc { isa, ..smc.clone() }, 6).runs);
                let what = format!("{} {path:?} {particles} particles", subject.name);
                assert_eq!(found(Isa::SCALAR), found(Isa::detect()), "{what}");
            }
        }
    }
}

#[test]
fn another_seed_and_another_run_give_other_bytes() {
    let subject = &subjects()[0];
    let smc = Smc { particles: 50, runs: 3, ..Default::default() };
    let first = bits(&subject.estimate(&smc, 1).runs);
    assert!(first[0] != first[1] && first[1] != first[2]);
    assert_ne!(first, bits(&subject.estimate(&smc, 2).runs));
    // More runs go on where fewer stopped.
    let more = bits(&subject.estimate(&Smc { runs: 5, ..smc }, 1).runs);
    assert_eq!(first, more[..3]);
}

#[test]
fn lines_that_are_not_kept_give_the_same_bytes() {
    // 60 labels of 25 tokens each under 80 components: 4,800 lines of 2 bytes for every particle if they are kept, as they
    // are where there is room: their tokens are more than a quarter of a block's lines.
    let (n_labels, n_components, particles) = (60, 80, 512);
    let mut rng = Random::new(907);
    let mut text = "i,j,count\n".to_owned();
    for i in 0..n_labels {
        (0..25).for_each(|_| text += &format!("{i},{},1\n", rng.between(0, 7)));
    }
    let subject = Subject::new("rare labels", &format!("k[{n_components}] -> i j"), &text, settings(30.0));
    let tied = Subject::new("tied", "k[80] -> i j; i ~ j", &text, settings(30.0));
    let kept = (n_labels * n_components * particles * 2) as u64;
    for subject in [subject, tied] {
        for path in [path_of((1, 1.0, 0, 0)), path_of((0, 3.0, 2, 0)), path_of((0, 1.0, 0, 1))] {
            let found = |max_memory: u64| {
                let smc = Smc { particles, path: path.clone(), max_memory, ..Default::default() };
                let estimate = subject.with(|problem| smc.ln_p_sequence(problem, Seed(3), &mut Control::default()));
                estimate.map(|estimate| bits(&estimate.runs))
            };
            let roomy = found(4 << 30).unwrap();
            // Too small for these lines alone, so a run that succeeds has added them up from its tokens.
            assert_eq!(roomy, found(kept).unwrap(), "{} {path:?}", subject.name);
            assert!(matches!(found(1 << 16), Err(Error::TooCostly(_))));
        }
    }
}

#[test]
fn too_many_particles_are_refused_with_the_figure() {
    let subject = &subjects()[0];
    let start = Instant::now();
    let smc = Smc { particles: 4_000_000_000, ..Default::default() };
    let refused = subject.with(|problem| smc.ln_p_sequence(problem, Seed(1), &mut Control::default()));
    let Err(Error::TooCostly(message)) = refused else { panic!("{refused:?}") };
    assert!(start.elapsed() < Duration::from_secs(1), "nothing is allocated first");
    assert!(message.starts_with("4000000000 particles need about ") && message.contains(" GB"), "{message}");
    // The number it offers instead is accepted.
    let offered: usize = message.split("at most ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let prepared = |particles| subject.with(|problem| Smc { particles, ..Default::default() }.prepare(problem).is_ok());
    assert!(prepared(offered / 2) && !prepared(2 * offered), "{message}");
}

/// Runs of a problem under watch, and what was saved in between.
struct Watched {
    saved: Saved,
    first_fraction: Rc<RefCell<Option<f64>>>,
}

impl Watched {
    fn new() -> Self {
        Watched { saved: Rc::default(), first_fraction: Rc::default() }
    }

    fn control(&self, cancel_at: f64) -> Control<'static> {
        *self.first_fraction.borrow_mut() = None;
        let cancel = Cancel::default();
        let (switch, first_fraction) = (cancel.clone(), self.first_fraction.clone());
        let look = move |progress: Progress<'_>| {
            assert_eq!(progress.stage, "smc");
            first_fraction.borrow_mut().get_or_insert(progress.fraction);
            if progress.fraction >= cancel_at {
                switch.cancel();
            }
        };
        Control::new(Keeper { saved: self.saved.clone(), look }).with_cancel(cancel)
    }
}

/// Takes a few seconds if nobody stops it: runs of some milliseconds each.
fn long_job(threads: usize) -> (Binding, Smc) {
    let binding = bound("k[6] -> i j", &csv(&random_table(908, &[("i", 12), ("j", 9)], 150)));
    (binding, Smc { particles: 64, runs: 100, path: path_of((6, 1.0, 0, 0)), threads, ..Default::default() })
}

#[test]
fn a_cancelled_job_stops_at_once() {
    let (binding, smc) = long_job(2);
    let smc = Smc { runs: 1_000_000, ..smc };
    with_problem(&binding, &settings(2.0), |problem| {
        let start = Instant::now();
        let stopped = smc.ln_p_sequence(problem, Seed(1), &mut Watched::new().control(0.0));
        assert!(matches!(stopped, Err(Error::Stopped(Stop::Cancelled))), "{stopped:?}");
        // The whole job takes hours. The limit is generous: machines may be busy.
        assert!(start.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_job_out_of_time_answers_with_the_runs_that_are_finished() {
    let (binding, smc) = long_job(1);
    with_problem(&binding, &settings(2.0), |problem| {
        let smc = Smc { runs: 1_000_000, ..smc };
        let deadline = Instant::now() + Duration::from_millis(400);
        let mut control = Control::default().with_deadline(Some(deadline));
        let cut = smc.ln_p_sequence(problem, Seed(1), &mut control).unwrap();
        let finished = cut.runs.len() as u64;
        assert!(finished > 0 && finished < 1_000_000);
        assert!(cut.warnings.contains(&Warning::TimeUp { finished, asked: 1_000_000 }), "{:?}", cut.warnings);
        // With one thread they come in order, so that many runs are the same job.
        let same = Smc { runs: finished, ..smc.clone() };
        let again = same.ln_p_sequence(problem, Seed(1), &mut Control::default()).unwrap();
        assert_eq!(bits(&cut.runs), bits(&again.runs));
        assert_eq!(cut.ln_p_sequence.to_bits(), again.ln_p_sequence.to_bits());
        assert!(!again.warnings.iter().any(|warning| matches!(warning, Warning::TimeUp { .. })));
        // Nothing is finished: no answer.
        let slow = Smc { particles: 100_000, runs: 1, ..smc };
        let mut control = Control::default().with_deadline(Some(Instant::now()));
        let stopped = slow.ln_p_sequence(problem, Seed(1), &mut control);
        assert!(matches!(stopped, Err(Error::Stopped(Stop::Deadline))), "{stopped:?}");
    });
}

#[test]
fn a_limit_that_leaves_no_moves_is_warned_of() {
    let (binding, _) = long_job(1);
    with_problem(&binding, &settings(2.0), |problem| {
        let settle = |wish: Wish| wish.settle(problem, Crew::default(), Seed(1), &mut Control::default()).unwrap();
        // Ten thousand particles and 150 tokens: no machine makes one move a token in a millisecond.
        let hasty = Wish { particles: Some(10_000), time_limit: Some(Duration::from_millis(1)), ..Default::default() };
        let settled = settle(hasty.clone());
        assert_eq!((settled.smc.path.rejuvenation, settled.warning), (0, Some(Warning::FewMoves { moves: 0 })));
        // What was asked for needs no warning.
        assert_eq!(settle(Wish { rejuvenation: Some(0), ..hasty }).warning, None);
        assert_eq!(settle(Wish { particles: Some(64), ..Default::default() }).warning, None);
    });
}

#[test]
fn a_checkpoint_is_taken_up_and_ends_with_the_same_bytes() {
    let (binding, smc) = long_job(1);
    with_problem(&binding, &settings(2.0), |problem| {
        let whole = smc.ln_p_sequence(problem, Seed(1), &mut Control::default()).unwrap();
        let watched = Watched::new();
        let stopped = smc.ln_p_sequence(problem, Seed(1), &mut watched.control(0.4));
        assert!(matches!(stopped, Err(Error::Stopped(Stop::Cancelled))), "{stopped:?}");
        assert!(watched.saved.borrow().is_some());
        // Another seed, other settings or another prior do not take it up.
        let mut control = watched.control(2.0);
        assert!(matches!(smc.ln_p_sequence(problem, Seed(2), &mut control), Err(Error::Checkpoint(_))));
        let other = Smc { path: path_of((5, 1.0, 0, 0)), ..smc.clone() };
        assert!(matches!(other.ln_p_sequence(problem, Seed(1), &mut control), Err(Error::Checkpoint(_))));
        with_problem(&binding, &settings(2.1), |problem| {
            assert!(matches!(smc.ln_p_sequence(problem, Seed(1), &mut control), Err(Error::Checkpoint(_))));
        });
        let resumed = smc.ln_p_sequence(problem, Seed(1), &mut watched.control(2.0)).unwrap();
        let first_fraction = watched.first_fraction.borrow().expect("progress was reported");
        assert!(first_fraction > 0.3, "it began anew: {first_fraction}");
        assert_eq!(bits(&resumed.runs), bits(&whole.runs));
        assert_eq!(resumed.ln_p_sequence.to_bits(), whole.ln_p_sequence.to_bits());
    });
    // A damaged file is refused.
    with_problem(&binding, &settings(2.0), |problem| {
        let watched = Watched::new();
        *watched.saved.borrow_mut() = Some(vec![7; 100]);
        let refused = smc.ln_p_sequence(problem, Seed(1), &mut watched.control(2.0));
        assert!(matches!(refused, Err(Error::Checkpoint(_))), "{refused:?}");
    });
}

/// Every listed total of many single runs against the exact list.
#[track_caller]
fn check_totals(subject: &Subject, smc: &Smc, range: TotalsRange, n: u64) {
    let want = subject.with(|problem| totals(problem, &Exact::default(), range, &mut Control::default()).unwrap());
    assert!(want.len() > 3);
    check(&subject.name, n, |n, part| {
        let lists: Vec<Vec<f64>> = (0..n)
            .map(|run| {
                let seed = Seed(10_000 * (part + 1) + run);
                let found =
                    subject.with(|problem| estimated_totals(problem, smc, range, seed, &mut Control::default()));
                let found = found.unwrap().totals;
                assert!(found.iter().zip(&want).all(|(found, want)| found.tokens == want.tokens));
                assert_eq!(found.len(), want.len());
                found.iter().zip(&want).map(|(found, want)| (found.log_joint - want.log_joint).exp()).collect()
            })
            .collect();
        let of_total = |ix: usize| Sample::new(&lists.iter().map(|list| list[ix]).collect::<Vec<_>>(), 1.0);
        let all = (0..want.len()).map(of_total);
        all.max_by(|a, b| a.worst().total_cmp(&b.worst())).expect("at least one total")
    });
}

#[test]
fn totals_with_unknown_cells_are_unbiased() {
    let case = cases().into_iter().find(|case| case.get("unknown_cell").is_some()).unwrap();
    let subject = Subject::of_case(case, true);
    let n_seen = subject.with(|problem| problem.counts.n_tokens);
    for path in paths() {
        let smc = Smc { particles: 30, path, ..Default::default() };
        check_totals(&subject, &smc, TotalsRange::Between(n_seen, n_seen + 8), 400);
    }
    // Two unknown cells share one factorial; their tokens may use a tied table twice, or a root that is tied.
    let with_rate = |a: f64| PriorSettings { rate: Some(1.3), ..settings(a) };
    let data = "i,j,count\n0,0,2\n0,1,1\n1,0,2\n1,1,?\n2,0,?\n";
    for (name, model) in [
        ("two unknown cells", "k[2] -> i[3] j[3]"),
        ("tied unknown cells", "k[2] -> i[3] j[3]; i ~ j"),
        ("tied roots", "i[3]; j[3]; i ~ j; i -> k[2]"),
        ("seen parent", "i[3] -> k[2] -> j[3]"),
    ] {
        let subject = Subject::new(name, model, data, with_rate(2.2));
        check_totals(&subject, &Smc { particles: 30, ..Default::default() }, TotalsRange::Between(5, 11), 400);
    }
}

#[test]
fn the_list_of_totals_is_as_long_as_the_exact_one_and_adds_up() {
    let data = "i,j,count\n0,0,2\n0,1,1\n1,0,2\n1,1,?\n";
    let prior = PriorSettings { rate: Some(2.0), ..settings(1.1) };
    let subject = Subject::new("unknown cell", "k[2] -> i j", data, prior);
    subject.with(|problem| {
        let want = totals(problem, &Exact::default(), TotalsRange::Auto, &mut Control::default()).unwrap();
        let smc = Smc { particles: 500, runs: 20, ..Default::default() };
        let found = estimated_totals(problem, &smc, TotalsRange::Auto, Seed(4), &mut Control::default()).unwrap();
        assert_eq!(found.run_log_marginals.len(), 20);
        let tokens: Vec<u64> = found.totals.iter().map(|entry| entry.tokens).collect();
        assert_eq!(tokens, (5..5 + tokens.len() as u64).collect::<Vec<_>>(), "from the seen total on, without gaps");
        // The end depends on where the sum stands: a few totals more or less.
        assert!(tokens.len().abs_diff(want.len()) <= 2, "{} for {}", tokens.len(), want.len());
        let sum = |entries: &[polyurn::evidence::TotalProbability]| -> f64 {
            entries.iter().map(|entry| entry.log_joint.exp()).sum()
        };
        let error = found.estimate.std_error.unwrap();
        let difference = (sum(&found.totals) / sum(&want)).ln();
        assert!((found.estimate.ln_p_sequence - sum(&found.totals).ln()).abs() < 1e-10);
        // A t with 19 degrees of freedom exceeds 6 less often than a normal number exceeds 4.5.
        assert!(difference.abs() <= 6.0 * error && error < 0.1, "{difference} with error {error}");
    });
}

#[test]
fn free_urns_hit_the_data_as_often_as_they_should() {
    for (model, data, a) in [
        ("k[2] -> i j", "i,j,count\n0,1,1\n1,0,2\n", 3.0),
        ("k[2] -> i j; i ~ j", "i,j,count\n0,0,1\n1,0,1\n", 1.2),
        ("i -> k[3] -> j", "i,j,count\n0,1,1\n1,2,1\n1,0,1\n", 2.0),
    ] {
        let subject = Subject::new(model, model, data, settings(a));
        let want = subject.exact();
        let p = (want + subject.with(|problem| ln_arrangements(problem.counts).value())).exp();
        check(model, 20_000, |n, part| {
            let hits = subject.with(|problem| naive(problem, n, Seed(70 + part), &mut Control::default()).unwrap());
            assert_eq!(hits.n_tries, n);
            // The number that is reported belongs to the number of hits, and so does its error.
            let share = hits.n_hits as f64 / n as f64;
            assert!((hits.ln_p_sequence - want - (share / p).ln()).abs() < 1e-9);
            let error = hits.std_error.unwrap();
            assert!((error - ((1.0 - share) / hits.n_hits as f64).sqrt()).abs() < 1e-12);
            Sample::with_z(n, share, z_score(hits.n_hits as f64, n as f64, p))
        });
    }
    let mixed = Subject::new("mixed", "k[2] -> i j", "i,j,count\n0,1,1\n1,,2\n", settings(1.0));
    let refused = mixed.with(|problem| naive(problem, 10, Seed(1), &mut Control::default()));
    assert!(matches!(refused, Err(Error::Setting(_))), "{refused:?}");
}

#[test]
fn tokens_by_a_node_come_in_whole_groups() {
    // Groups change what a run finds, and a node that no record shows leaves the order random.
    let subject = &subjects()[0];
    let node = subject.seen_node().unwrap();
    let found = |order: Order| {
        let smc = Smc { particles: 50, path: Path { order, ..Default::default() }, ..Default::default() };
        bits(&subject.estimate(&smc, 8).runs)
    };
    assert_ne!(found(Order::By(node)), found(Order::Random));
    assert_ne!(found(Order::Given), found(Order::Random));
    assert_eq!(found(Order::Auto), found(Order::Random));
}
