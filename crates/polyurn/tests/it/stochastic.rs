//! Stochastic variational Bayes against batch sweeps, closed forms and its own promises.

use crate::support::{Dag, Random, Rows, assert_relative, bound, csv, settings, tables, with_problem};
use crate::sweeps_support::{PartlySeen, climb, documents};
use polyurn::control::{Cancel, Control};
use polyurn::counts::{Cell, Counts, Labels, RowCount, RowSink};
use polyurn::engine::sweeps::{Climb, Learner, StartTables, StochasticVb, Vb};
use polyurn::engine::{Problem, TableMeans};
use polyurn::graph::{BatchOptions, Batcher, Binding, ModelSource, NodeIndex, bind_without_data, local_nodes};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::simulate::{Tokens, simulate};
use polyurn::{Error, Seed, Stop};

/// A record's values, one per node and missing where not seen, and its count.
type Record = (Vec<u32>, u64);

fn records(counts: &Counts) -> Vec<Record> {
    let mut records = Vec::new();
    for block in &counts.blocks {
        for record in 0..block.n_records() {
            let mut values = vec![0; counts.n_nodes()];
            block.read(record, &mut values);
            records.push((values, block.counts.at(record)));
        }
    }
    records
}

fn batch(labels: &[Labels], records: &[Record]) -> Counts {
    let column = |node: usize| Some(records.iter().map(|(values, _)| values[node]).collect());
    let columns: Vec<Option<Vec<u32>>> = (0..labels.len()).map(column).collect();
    let counts = records.iter().map(|(_, count)| *count);
    Counts::new(labels.to_vec(), &columns, &counts.collect(), Vec::new()).unwrap()
}

fn plain(n_tokens: f64) -> StochasticVb {
    StochasticVb { local_sweeps: 1, first_sweeps: 1, ..StochasticVb::new(n_tokens) }
}

fn learner(settings: &StochasticVb, problem: &Problem<'_>, local: &[NodeIndex]) -> Learner {
    let is_seen = problem.counts.seen_anywhere();
    settings.begin(problem.model, problem.prior, &is_seen, local, Seed(5)).unwrap()
}

fn locals(problem: &Problem<'_>) -> Vec<NodeIndex> {
    local_nodes(problem.model, &problem.counts.seen_everywhere())
}

#[track_caller]
fn assert_same_tables(what: &str, found: &[TableMeans], want: &[TableMeans], tolerance: f64) {
    assert_eq!(found.len(), want.len(), "{what}");
    for (found, want) in found.iter().zip(want) {
        for found in &found.rows {
            let want = want.rows.iter().find(|row| row.parents == found.parents).expect("a row that tokens may be in");
            for (found, want) in found.cells.iter().zip(&want.cells) {
                let is_near = |x: f64, y: f64| (x - y).abs() <= tolerance * y.abs().max(1e-6);
                assert!(is_near(found.mean, want.mean) && is_near(found.sd, want.sd), "{what}: {found:?} {want:?}");
            }
        }
    }
}

#[test]
fn one_batch_of_everything_and_a_whole_step_is_a_sweep() {
    let mut rng = Random::new(77);
    let (mut n_local, mut n_tied) = (0, 0);
    for round in 0..80 {
        let missing = if round % 2 == 0 { 0.0 } else { 0.3 };
        let kind = PartlySeen { is_tied: round % 3 == 0, missing, n_rows: 6, n_tokens: 17, ..Default::default() };
        let (dag, rows) = kind.draw(&mut rng);
        n_tied += usize::from(!dag.tied.is_empty());
        let prior = tables(dag.random_tables(&mut rng));
        let start = StartTables { tables: dag.random_tables(&mut rng) };
        with_problem(&rows.bind(&dag), &prior, |problem| {
            for n_sweeps in [1, 3] {
                let vb = Vb { climb: climb(1, n_sweeps), start: Some(start.clone()), ..Default::default() };
                let fit = vb.fit(problem, Seed(5), &mut Control::default()).unwrap();
                for local in [Vec::new(), locals(problem)] {
                    n_local += usize::from(!local.is_empty());
                    let settings = StochasticVb { start: Some(start.clone()), ..plain(17.0) };
                    let mut learner = learner(&settings, problem, &local);
                    for _ in 0..n_sweeps {
                        learner.step_by(problem.counts, 1.0).unwrap();
                        learner.start_pass();
                    }
                    assert_same_tables(&dag.text(), &learner.tables(), &fit.tables(problem), 1e-12);
                    // The bound at these tables, hidden values being best for them, is between this sweep's and the next's.
                    let bound = learner.bound(problem.counts).unwrap();
                    assert!(bound >= fit.bound.value() - 1e-9, "{}: {bound} {:?}", dag.text(), fit.bound);
                }
            }
        });
    }
    assert!(n_local > 15 && n_tied > 5, "{n_local} {n_tied}");
}

#[test]
fn bounds_agree_with_those_of_sweeps_that_stand_still() {
    // Where nothing moves any more, hidden values and tables are best for each other, and both formulas say the same.
    let mut rng = Random::new(78);
    for round in 0..12 {
        let dag = Dag::random(&mut rng, 4, (2, 3), 0.5);
        let missing = if round % 2 == 0 { 0.0 } else { 0.2 };
        let rows = Rows::random(&mut rng, &dag, vec![0, 1, 2], 6, 25, missing);
        let prior = tables(dag.random_tables(&mut rng));
        let start = Some(StartTables { tables: dag.random_tables(&mut rng) });
        with_problem(&rows.bind(&dag), &prior, |problem| {
            for local in [Vec::new(), locals(problem)] {
                let mut learner = learner(&StochasticVb { start: start.clone(), ..plain(25.0) }, problem, &local);
                for _ in 0..3000 {
                    learner.step_by(problem.counts, 1.0).unwrap();
                    learner.start_pass();
                }
                let vb = Vb { climb: climb(1, 3000), start: start.clone(), ..Default::default() };
                let fit = vb.fit(problem, Seed(5), &mut Control::default()).unwrap();
                assert_relative(&dag.text(), learner.bound(problem.counts).unwrap(), fit.bound.value(), 1e-8);
            }
        });
    }
}

#[test]
fn with_nothing_hidden_steps_of_one_over_t_average_the_batches() {
    let data = csv("i,j,count\na,x,3\na,y,1\nb,x,7\nc,z,2\nb,y,4\nc,x,1\na,z,5\n");
    for model in ["k[1] -> i j", "i -> j"] {
        let binding = bound(model, &data);
        with_problem(&binding, &settings(0.7), |problem| {
            let n_tokens = 100.0;
            let mut learner = learner(&StochasticVb { decay: 1.0, delay: 0.0, ..plain(n_tokens) }, problem, &[]);
            let all = records(problem.counts);
            let batches: Vec<&[Record]> = vec![&all[..2], &all[2..3], &all[3..7]];
            for records in &batches {
                learner.step(&batch(&problem.counts.labels, records)).unwrap();
            }
            // The average over batches of (N / n of the batch) times its counts, each batch weighed by its n: all counts,
            // scaled up from the 23 tokens that were seen.
            let i = problem.model.find("i").unwrap();
            let table = problem.model.node(i).table;
            let mut want = [0.0; 3];
            for records in &batches {
                for (values, count) in *records {
                    want[values[i.ix()] as usize] += n_tokens / 23.0 * *count as f64;
                }
            }
            let found = &learner.tables()[table.ix()].rows[0];
            for (cell, want) in found.cells.iter().zip(want) {
                // An even prior: 0.7 over three values.
                assert_relative(model, cell.mean, (0.7 / 3.0 + want) / (0.7 + n_tokens), 1e-13);
            }
        });
    }
}

/// Data of a model, tables drawn from the prior.
fn simulated(model: &str, seen: &[&str], n_tokens: u64, prior: &PriorSettings) -> (Binding, PriorSettings) {
    let names: Vec<(String, Option<u32>)> = seen.iter().map(|name| ((*name).to_owned(), None)).collect();
    let source = ModelSource::parse(model).unwrap();
    let (model, is_seen, warnings) = bind_without_data(&source, Some(&names)).unwrap();
    let built = Prior::build(&model, prior).unwrap();
    let tokens = Tokens::Given(n_tokens);
    let tensor = simulate(&model, &built, tokens, Seed(11), &mut Control::default()).unwrap();
    let column = |node: usize| is_seen[node].then(|| tensor.iter().map(|(values, _)| values[node]).collect());
    let columns: Vec<Option<Vec<u32>>> = (0..model.n_nodes()).map(column).collect();
    let counts = tensor.iter().map(|(_, count)| *count);
    let labels = model.nodes().iter().map(|node| Labels::Indexed { size: node.size, first: 0 }).collect();
    let counts = Counts::new(labels, &columns, &counts.collect(), Vec::new()).unwrap();
    (Binding { model, counts, warnings }, prior.clone())
}

#[test]
fn passes_come_near_the_bound_of_sweeps() {
    let pseudo = |values: &[(&str, f64)]| PriorSettings {
        pseudo_counts: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        ..Default::default()
    };
    // Documents of 40 tokens, grouped; and a factorisation, whose records come in random order.
    let cases = [
        ("doc[200] -> topic[4] -> word[60]", vec!["doc", "word"], pseudo(&[("topic", 0.2), ("word", 0.1)]), true),
        ("k[3] -> i[30] j[25] l[4]", vec!["i", "j", "l"], pseudo(&[("i", 0.1), ("j", 0.1), ("l", 0.3)]), false),
    ];
    for (model, seen, prior, is_grouped) in cases {
        let (binding, prior) = simulated(model, &seen, 8000, &prior);
        with_problem(&binding, &prior, |problem| {
            let climb = Climb { restarts: 6, ..Default::default() };
            let best =
                Vb { climb, start: None, ..Default::default() }.fit(problem, Seed(5), &mut Control::default()).unwrap();
            let mut all = records(problem.counts);
            if is_grouped {
                all.sort();
            } else {
                Random::new(3).shuffle(&mut all);
            }
            let mut learner = learner(&StochasticVb::new(8000.0), problem, &locals(problem));
            let mut bounds = Vec::new();
            for _ in 0..8 {
                let batches = all.chunks(400).map(|records| Ok(batch(&problem.counts.labels, records)));
                learner.pass(batches, &mut Control::default()).unwrap();
                bounds.push(learner.bound(problem.counts).unwrap());
            }
            // Starts of sweeps themselves end up to 0.4 % apart, in optima of their own, and one start of a stream is in
            // one of those; with all hidden values alike the bound is 5 % below.
            let gap = best.bound.value() - bounds[7];
            assert!(gap < 0.005 * best.bound.value().abs(), "{model}: {bounds:?} {:?}", best.bound);
            let n_rises = bounds.windows(2).filter(|pair| pair[1] > pair[0]).count();
            assert!(n_rises >= 6, "{model}: {bounds:?}");
        });
    }
}

#[test]
fn memory_follows_the_tables_and_not_the_stream() {
    // A million rows, made as they are asked for, through the same door as those of a file.
    let source = ModelSource::parse("k[2] -> i[20] j[15]").unwrap();
    let (model, ..) = bind_without_data(&source, None).unwrap();
    let prior = Prior::build(&model, &settings(5.0)).unwrap();
    let stochastic = StochasticVb::new(1e6);
    let is_seen = [false, true, true];
    let mut learner = stochastic.begin(&model, &prior, &is_seen, &[], Seed(5)).unwrap();
    let (mut largest_batch, mut capacities) = (0, Vec::new());
    let options = BatchOptions { n_rows: 5000, ..Default::default() };
    let mut batcher = Batcher::new(&model, options, |batch| {
        largest_batch = largest_batch.max(batch.n_rows);
        learner.step(&batch.counts)?;
        capacities.push(learner.capacity());
        Ok(())
    })
    .unwrap();
    batcher.label_column(Some("i".into()));
    batcher.label_column(Some("j".into()));
    let mut rng = Random::new(9);
    for line in 0..1_000_000 {
        let is_first = rng.chance(0.3);
        let (i, j) = if is_first { (rng.value(10), rng.value(5)) } else { (10 + rng.value(10), 5 + rng.value(10)) };
        let (i, j) = (format!("i{i}"), format!("j{j}"));
        batcher.push(line + 2, [Cell::Label(&i), Cell::Label(&j)], RowCount::Tokens(1)).unwrap();
    }
    batcher.finish_pass().unwrap();
    drop(batcher);
    assert_eq!((learner.n_steps(), learner.n_tokens_seen()), (200, 1_000_000));
    assert!(largest_batch <= 7500, "{largest_batch}");
    assert_eq!(capacities.first(), capacities.last());
    // What the stream was made of is found: parts of 0.3 and 0.7. A batch's share of the first is off by 0.0065 (one
    // standard error of 5,000 draws), and steps of the last hundred batches average over many of them.
    let mut parts: Vec<f64> = learner.tables()[0].rows[0].cells.iter().map(|cell| cell.mean).collect();
    parts.sort_by(f64::total_cmp);
    assert!((parts[0] - 0.3).abs() < 0.01, "{parts:?}");
}

#[test]
fn bytes_do_not_depend_on_threads() {
    let binding = bound("doc -> topic[13] -> word", &documents());
    with_problem(&binding, &settings(20.0), |problem| {
        let all = records(problem.counts);
        let fits: Vec<_> = [1, 2, 4]
            .into_iter()
            .map(|threads| {
                let n_tokens = problem.counts.n_tokens as f64;
                let settings =
                    StochasticVb { threads, first_sweeps: 3, local_sweeps: 3, ..StochasticVb::new(n_tokens) };
                let mut learner = learner(&settings, problem, &locals(problem));
                let batches = all.chunks(6000).map(|records| Ok(batch(&problem.counts.labels, records)));
                learner.pass(batches, &mut Control::default()).unwrap();
                (learner.tables(), learner.bound(problem.counts).unwrap().to_bits())
            })
            .collect();
        assert!(fits.iter().all(|fit| *fit == fits[0]));
    });
}

/// Two passes over six batches, cut after each of their steps: the tables of an unbroken run, to the last bit.
#[test]
fn a_stream_that_was_cut_anywhere_goes_on_to_the_same_bytes() {
    let binding = bound("doc -> topic[3] -> word", &documents());
    with_problem(&binding, &settings(20.0), |problem| {
        let all = records(problem.counts);
        let size = all.len().div_ceil(6);
        let batches: Vec<Counts> = all.chunks(size).map(|records| batch(&problem.counts.labels, records)).collect();
        let n_tokens = problem.counts.n_tokens as f64;
        let settings = StochasticVb { first_sweeps: 3, local_sweeps: 3, ..StochasticVb::new(n_tokens) };
        for local in [locals(problem), Vec::new()] {
            // Some steps of two passes, with a look at the learner after each.
            let go = |learner: &mut Learner, n_steps: usize| -> polyurn::Result<()> {
                for (step, batch) in batches.iter().chain(&batches).take(n_steps).enumerate() {
                    if step % batches.len() == 0 {
                        learner.start_pass();
                    }
                    learner.step(batch)?;
                }
                Ok(())
            };
            let mut whole = learner(&settings, problem, &local);
            go(&mut whole, 12).unwrap();
            for cut in 1..=12 {
                let mut first = learner(&settings, problem, &local);
                go(&mut first, cut).unwrap();
                let state = first.state();
                let mut second = learner(&settings, problem, &local);
                second.go_on_from(&state).unwrap();
                assert!(second.is_behind());
                // What was learned from is passed over: up to the cut nothing is learned.
                go(&mut second, cut - 1).unwrap();
                assert!(second.is_behind() && second.capacity() == 0);
                let mut second = learner(&settings, problem, &local);
                second.go_on_from(&state).unwrap();
                go(&mut second, 12).unwrap();
                assert!(!second.is_behind());
                assert_eq!(second.tables(), whole.tables(), "cut after {cut}");
                assert_eq!(second.state(), whole.state(), "cut after {cut}");
            }
            let mut cut = learner(&settings, problem, &local);
            go(&mut cut, 4).unwrap();
            let state = cut.state();
            let other = StochasticVb { decay: 0.8, ..settings.clone() };
            let refusal = learner(&other, problem, &local).go_on_from(&state).unwrap_err().to_string();
            assert!(refusal.contains("another model, prior, seed or setting"), "{refusal}");
            let mut swapped = learner(&settings, problem, &local);
            swapped.go_on_from(&state).unwrap();
            let refusal = [1, 0, 2, 3].iter().map(|&ix| swapped.step(&batches[ix])).find_map(Result::err).unwrap();
            assert!(refusal.to_string().contains("the data are not those"), "{refusal}");
            for n in (0..state.len()).step_by(7) {
                assert!(learner(&settings, problem, &local).go_on_from(&state[..n]).is_err(), "cut to {n} bytes");
            }
        }
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let binding = bound("doc -> topic[2] -> word", &csv("doc,word,count\na,x,3\nb,y,1\nb,,2\n"));
    with_problem(&binding, &settings(1.0), |problem| {
        let is_seen = [true, false, true];
        let begin = |settings: &StochasticVb, local: &[NodeIndex]| {
            settings.begin(problem.model, problem.prior, &is_seen, local, Seed(1)).map(drop).unwrap_err().to_string()
        };
        for decay in [0.5, 1.01, 0.0, f64::NAN] {
            assert!(begin(&StochasticVb { decay, ..plain(6.0) }, &[]).contains("kappa is"));
        }
        assert!(begin(&StochasticVb { delay: -1.0, ..plain(6.0) }, &[]).contains("tau is -1"));
        assert!(begin(&plain(0.0), &[]).contains("0 tokens"));
        let word = problem.model.find("word").unwrap();
        assert!(begin(&plain(6.0), &[word]).contains("--local word: the node has parents"));
        let mut learner = learner(&plain(6.0), problem, &[]);
        assert!(learner.step_by(problem.counts, 1.5).is_err());
        let empty = batch(&problem.counts.labels, &[]);
        learner.step(&empty).unwrap();
        learner.step_by(&empty, 0.5).unwrap();
        assert_eq!(learner.n_steps(), 0);
        let cancel = Cancel::default();
        cancel.cancel();
        let mut control = Control::default().with_cancel(cancel);
        let stopped = learner.pass([Ok(problem.counts.clone())], &mut control);
        assert!(matches!(stopped, Err(Error::Stopped(Stop::Cancelled))));
    });
    let unknown = bound("i -> k[2] -> j", &csv("i,j,count\n0,0,3\n0,1,?\n1,0,3\n"));
    let prior = PriorSettings { rate: Some(0.2), ..settings(1.0) };
    with_problem(&unknown, &prior, |problem| {
        let error = learner(&plain(6.0), problem, &[]).step(problem.counts).unwrap_err();
        assert!(error.to_string().contains("unknown cells"), "{error}");
    });
}
