//! Engines that sweep, against the tools people use now. Needs `POLYURN_BENCH_PYTHON`, a Python with the peers, which
//! `make bench-sweeps` sets up. All figures of a comparison come from one run, one after another on the same machine.

use polyurn::control::Control;
use polyurn::counts::{Dataset, Labels};
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{Climb, Em, EmFit, StartTables, Turns, Vb};
use polyurn::evidence::ln_p_given;
use polyurn::math::special;
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Result, Seed};
use polyurn_bench::peer::{Peer, best_of};
use polyurn_bench::table::Row;
use polyurn_bench::{Section, bound, wanted, with_problem};
use serde_json::Value;

fn main() -> Result<()> {
    let sections: [Section; 6] =
        [("nmf", nmf), ("dense", dense), ("lda", lda), ("cp64", cp64), ("cp1000", cp1000), ("lca", lca)];
    for (_, section) in wanted(sections) {
        section()?;
        println!();
    }
    Ok(())
}

fn show(what: &str, seconds: f64, ours: f64) {
    println!("{:>10.1} ms  {what}: {:.1} times as long", seconds * 1e3, seconds / ours);
}

/// Columns of a row-major array, each divided by its sum, and the sums.
fn columns(array: &[f64], n_columns: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let column = |ix: usize| array.iter().skip(ix).step_by(n_columns).copied().collect::<Vec<f64>>();
    let columns: Vec<Vec<f64>> = (0..n_columns).map(column).collect();
    let sums: Vec<f64> = columns.iter().map(|column| column.iter().sum()).collect();
    let divided = columns.iter().zip(&sums).map(|(column, sum)| column.iter().map(|cell| cell / sum).collect());
    (divided.collect(), sums)
}

/// Hundred iterations of EM from the peer's start: the time, and the fit.
fn from_start_of(peer: &Peer, data: &Dataset) -> Result<(f64, EmFit)> {
    let (of_row, w_sums) = columns(&peer.array("w.f64"), 20);
    let h = peer.array("h.f64");
    let h_sums: Vec<f64> = h.chunks_exact(h.len() / 20).map(|row| row.iter().sum()).collect();
    let of_column: Vec<Vec<f64>> = h.chunks_exact(h.len() / 20).map(<[f64]>::to_vec).collect();
    let hidden: Vec<f64> = w_sums.iter().zip(&h_sums).map(|(w, h)| w * h).collect();
    let tables = [("k", vec![hidden]), ("row", of_row), ("column", of_column)];
    let start = StartTables { tables: tables.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect() };
    let climb = Climb { restarts: 1, max_iter: 100, tol: 0.0, threads: 1, ..Default::default() };
    let em = Em { climb, start: Some(start), ..Default::default() };
    with_problem("k[20] -> row column", data, 1.0, |problem| {
        best_of(5, || em.fit(problem, Seed(1), &mut Control::default()))
    })
}

/// What turns a log likelihood into a divergence.
fn entropy_of(data: &Dataset) -> Result<f64> {
    let total = polyurn_bench::n_tokens(data)?;
    Ok(polyurn_bench::sum_of_x_ln_x(data)? - total * total.ln())
}

fn dense() -> Result<()> {
    println!("KL-NMF of a matrix without zeros, 1000 x 800, K = 20, 100 iterations, one thread");
    let peer = Peer::run("sweeps.py", "dense");
    let data = peer.data()?;
    let (seconds, fit) = from_start_of(&peer, &data)?;
    println!("{:>10.1} ms  em", seconds * 1e3);
    show(peer.version(), peer.seconds(), seconds);
    let (ours, theirs) =
        (entropy_of(&data)? - fit.climbs.trace[99], peer.found["divergence"].as_f64().expect("a divergence"));
    println!("            KL after 100 iterations: {ours:.4}, peer {theirs:.4}");
    assert!((ours / theirs - 1.0).abs() < 1e-6, "both make the same updates");
    Row::keep(
        "KL-NMF of a full 1000 x 800 matrix, K = 20, 100 iterations, same start",
        peer.version(),
        peer.seconds(),
        seconds,
    );
    Ok(())
}

fn nmf() -> Result<()> {
    println!("KL-NMF of the Reuters corpus, K = 20, 100 iterations, one thread");
    let peer = Peer::run("sweeps.py", "nmf");
    let data = peer.data()?;
    let (seconds, fit) = from_start_of(&peer, &data)?;
    println!("{:>10.1} ms  em", seconds * 1e3);
    show(peer.version(), peer.seconds(), seconds);
    Row::keep("KL-NMF of Reuters, K = 20, 100 iterations, same start", peer.version(), peer.seconds(), seconds);
    let entropy = entropy_of(&data)?;
    let ours = |n_iter: usize| entropy - fit.climbs.trace[n_iter - 1];
    let mut difference = 0.0_f64;
    for n_iter in [1, 2, 5, 20, 50, 100] {
        let theirs = peer.found["divergences"][n_iter.to_string()].as_f64().expect("a divergence");
        println!("            KL after {n_iter:>3} iterations: {:.4}, peer {theirs:.4}", ours(n_iter));
        difference = difference.max((ours(n_iter) / theirs - 1.0).abs());
    }
    println!("            largest relative difference from the peer {difference:.1e}");
    let plain = peer.found["plain"].as_array().expect("divergences");
    let differences =
        plain.iter().zip(1..).map(|(plain, n_iter)| (ours(n_iter) / plain.as_f64().expect("a number") - 1.0).abs());
    println!("            largest relative difference from plain updates {:.1e}", differences.fold(0.0, f64::max));
    let lost = peer.found["with_entries_lost"].as_f64().expect("a divergence");
    println!(
        "            the peer with its start's scale in w, where it cuts small entries of h: {lost:.4} after 100 iterations"
    );
    Ok(())
}

fn lda() -> Result<()> {
    println!("LDA of the Reuters corpus by VB, K = 20, pseudo-counts 0.1 and 0.01, one thread");
    let peer = Peer::run("sweeps.py", "lda");
    let theirs = peer.found["bound"].as_f64().expect("a bound");
    let data = peer.data()?;
    let binding = bound("doc -> topic[20] -> word", &data)?;
    let pseudo_counts = vec![("topic".to_owned(), 0.1), ("word".to_owned(), 0.01)];
    let settings = PriorSettings { a: Some(1.0), pseudo_counts, ..Default::default() };
    let prior = Prior::build(&binding.model, &settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let climb = |max_iter: u64| Climb { restarts: 1, max_iter, tol: 0.0, threads: 1, ..Default::default() };
    // Their bound is on ln p(words | documents), and so is ours without what the documents alone add.
    let given = ln_p_given(&problem, &[binding.model.find("doc").expect("a node")])?.value();
    // From their tables on: a sweep can only raise a bound, so ours must lie a little above theirs if both mean the same.
    let start = peer_tables(&peer, &binding.counts.labels[0], &binding.counts.labels[2]);
    let from_theirs = Vb { climb: climb(1), start: Some(start), ..Default::default() }.fit(
        &problem,
        Seed(0),
        &mut Control::default(),
    )?;
    println!(
        "            bound of {} {theirs:.1}; ours one sweep on from its tables {:.1}",
        peer.version(),
        from_theirs.bound.value() - given
    );
    let mut all: Vec<f64> = Vec::new();
    for seed in 0..4 {
        let fit = Vb { climb: climb(300), start: None, ..Default::default() }.fit(
            &problem,
            Seed(seed),
            &mut Control::default(),
        )?;
        let bounds: Vec<f64> = fit.climbs.trace.iter().map(|bound| bound - given).collect();
        let Some(n_sweeps) = bounds.iter().position(|&bound| bound >= theirs) else {
            println!("            seed {seed}: not reached, {:.1} after 300 sweeps", bounds[299]);
            continue;
        };
        let vb = Vb { climb: climb(n_sweeps as u64 + 1), start: None, ..Default::default() };
        let (seconds, _) = best_of(3, || vb.fit(&problem, Seed(seed), &mut Control::default()))?;
        all.push(seconds);
        println!(
            "{:>10.1} ms  seed {seed}: as high after {} sweeps, {:.1} times sooner; {:.1} after 300",
            seconds * 1e3,
            n_sweeps + 1,
            peer.seconds() / seconds,
            bounds[299]
        );
    }
    println!("{:>10.1} ms  {}", peer.seconds() * 1e3, peer.version());
    let task = "LDA of Reuters by variational Bayes, K = 20, to the bound of the peer's 100 iterations";
    keep_slowest(task, &peer, &all, 4);
    Ok(())
}

/// Keeps the slowest of some seeds, and says how many of them got there.
fn keep_slowest(task: &str, peer: &Peer, all: &[f64], n_seeds: usize) {
    assert!(!all.is_empty(), "no seed comes as far as the peer");
    let slowest = all.iter().copied().fold(0.0, f64::max);
    let note = if all.len() < n_seeds { format!(" that got there, {} did", all.len()) } else { String::new() };
    Row::keep(format!("{task}; slowest of {n_seeds} seeds{note}"), peer.version(), peer.seconds(), slowest);
}

/// The peer's Dirichlet rows as a start: exponentials of expected logarithms. Rows and columns are called by their numbers.
fn peer_tables(peer: &Peer, docs: &Labels, words: &Labels) -> StartTables {
    let rows = |array: Vec<f64>, n_columns: usize| -> Vec<Vec<f64>> {
        let row = |row: &[f64]| {
            let of_sum = special::digamma(row.iter().sum());
            row.iter().map(|&cell| (special::digamma(cell) - of_sum).exp()).collect()
        };
        array.chunks_exact(n_columns).map(row).collect()
    };
    let order = |labels: &Labels| -> Vec<usize> {
        (0..labels.len()).map(|value| labels.name(value).to_string().parse().expect("a number")).collect()
    };
    let topics = rows(peer.array("gamma.f64"), 20);
    let topics = order(docs).into_iter().map(|doc| topics[doc].clone()).collect();
    let array = peer.array("lambda.f64");
    let n_words = array.len() / 20;
    let columns = order(words);
    let of_topics = rows(array, n_words);
    let of_topics = of_topics.iter().map(|row| columns.iter().map(|&word| row[word]).collect()).collect();
    StartTables { tables: [("topic".to_owned(), topics), ("word".to_owned(), of_topics)].into_iter().collect() }
}

fn cp64() -> Result<()> {
    println!(
        "Poisson CP, rank 10, 64^3, 100,000 tokens, one thread: time to the divergence of a converged Newton method"
    );
    let peer = Peer::run("sweeps.py", "cp64");
    let reached = reach(&peer, 1000)?;
    let task = "Poisson CP, rank 10, 64^3, 100,000 tokens, to the divergence of the peer's converged Newton method";
    keep_slowest(task, &peer, &reached.seconds, 10);
    Ok(())
}

fn cp1000() -> Result<()> {
    println!(
        "Poisson CP, rank 10, 1000^3, 1,000,000 tokens, one thread: time to what multiplicative updates reach in 30 s"
    );
    let peer = Peer::run("sweeps.py", "cp1000");
    let Reached { a_sweep, seconds } = reach(&peer, 60)?;
    // The peer counts updates of one mode.
    let theirs = peer.seconds() / peer.found["outer"].as_f64().expect("updates") * 3.0;
    println!(
        "            a sweep over three modes {:.1} ms, peer {:.1} ms: {:.1} times as long",
        a_sweep * 1e3,
        theirs * 1e3,
        theirs / a_sweep
    );
    let tensor = "Poisson CP, rank 10, 1000^3, 1e6 tokens";
    Row::keep(format!("{tensor}: an update of all three factors"), peer.version(), theirs, a_sweep);
    keep_slowest(&format!("{tensor}, to the divergence of 30 s of the peer's updates"), &peer, &seconds, 10);
    Ok(())
}

/// What EM takes.
struct Reached {
    /// For one sweep.
    a_sweep: f64,
    /// To the peer's divergence, for each seed that came as low.
    seconds: Vec<f64>,
}

/// Times EM from the peer's start and from our own to the peer's divergence.
fn reach(peer: &Peer, most_sweeps: u64) -> Result<Reached> {
    let data = peer.data()?;
    let theirs = peer.found["divergence"].as_f64().expect("a divergence");
    let binding = bound("r[10] -> i j k", &data)?;
    let mut tables: Vec<(String, Vec<Vec<f64>>)> = Vec::new();
    let mut weights = vec![1.0; 10];
    for (name, labels) in ["i", "j", "k"].into_iter().zip(&binding.counts.labels[1..]) {
        let (of_rank, sums) = columns(&peer.array(&format!("{name}.f64")), 10);
        weights.iter_mut().zip(&sums).for_each(|(weight, sum)| *weight *= sum);
        let order: Vec<usize> =
            (0..labels.len()).map(|value| labels.name(value).to_string().parse().expect("a number")).collect();
        let rows = of_rank.iter().map(|row| order.iter().map(|&value| row[value]).collect()).collect();
        tables.push((name.to_owned(), rows));
    }
    tables.push(("r".to_owned(), vec![weights]));
    let start = StartTables { tables: tables.into_iter().collect() };
    let prior = Prior::build(&binding.model, &PriorSettings::default())?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let em = |max_iter: u64, start: Option<&StartTables>| Em {
        climb: Climb { restarts: 1, max_iter, tol: 0.0, threads: 1, ..Default::default() },
        trials: 1,
        start: start.cloned(),
        ..Default::default()
    };
    let entropy = entropy_of(&data)?;
    println!("            peer: divergence {theirs:.1}");
    let divergences = |fit: &EmFit| -> Vec<f64> { fit.climbs.trace.iter().map(|ln| entropy - ln).collect() };
    let first_as_low = |list: &[f64]| list.iter().position(|&divergence| divergence <= theirs);
    // From the peer's start, factors taking turns as the peer's do.
    let fit = em(most_sweeps, Some(&start)).fit(&problem, Seed(0), &mut Control::default())?;
    let list = divergences(&fit);
    match first_as_low(&list) {
        None => println!(
            "            the peer's start: not reached, {:.1} after {most_sweeps} sweeps",
            list[list.len() - 1]
        ),
        Some(ix) => {
            let em = em(ix as u64 + 1, Some(&start));
            let (seconds, _) = best_of(3, || em.fit(&problem, Seed(0), &mut Control::default()))?;
            let ratio = peer.seconds() / seconds;
            println!(
                "{:>10.1} ms  the peer's start: as low after {} sweeps, {ratio:.1} times sooner",
                seconds * 1e3,
                ix + 1
            );
        }
    }
    // From our own starts, settings as they are by default, but for a tolerance below the peer's: should a start end above, the next one follows.
    let mut all: Vec<f64> = Vec::new();
    for seed in 1..=10 {
        let mut seconds = 0.0;
        for start in 0..4 {
            let climb = |max_iter: u64| Climb { restarts: 1, max_iter, tol: 1e-13, threads: 1, ..Default::default() };
            let own = |climb: Climb| {
                Em { climb, ..Default::default() }.fit(&problem, Seed(4 * seed + start), &mut Control::default())
            };
            let (whole, fit) = best_of(1, || own(climb(Climb::default().max_iter)))?;
            let Some(ix) = first_as_low(&divergences(&fit)) else {
                seconds += whole;
                continue;
            };
            // Not below the length of a trial, or another draw might win.
            seconds += best_of(1, || own(climb((ix as u64 + 1).max(20))))?.0;
            let ratio = peer.seconds() / seconds;
            println!(
                "{:>10.1} ms  own starts, seed {seed}: start {} as low after {} sweeps, {ratio:.1} times sooner",
                seconds * 1e3,
                start + 1,
                ix + 1
            );
            all.push(seconds);
            break;
        }
    }
    assert!(!all.is_empty(), "no seed comes as low as the peer");
    let mut ratios: Vec<f64> = all.iter().map(|seconds| peer.seconds() / seconds).collect();
    ratios.sort_by(f64::total_cmp);
    let median = f64::midpoint(ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
    println!(
        "            as low with {} seeds of 10: {:.1} times sooner at worst, median {median:.1}",
        ratios.len(),
        ratios[0]
    );
    println!("{:>10.1} ms  {}", peer.seconds() * 1e3, peer.version());
    let of = |n_sweeps: u64| best_of(3, || em(n_sweeps, None).fit(&problem, Seed(1), &mut Control::default()));
    Ok(Reached { a_sweep: (of(40)?.0 - of(10)?.0) / 30.0, seconds: all })
}

fn lca() -> Result<()> {
    println!(
        "Latent classes of 4,177 people and seven answers of five categories, K = 1 to 10, one start each, one thread"
    );
    let peer = Peer::run("sweeps.py", "lca");
    let data = peer.data()?;
    // The peer's tolerance is 1e-6 nats a person, 0.004 in all; a perfect fit would be some 5,000 nats better.
    let climb = Climb { restarts: 1, max_iter: 10_000, tol: 8e-7, threads: 1, ..Default::default() };
    let em = Em { climb, trials: 1, turns: Turns::Together, ..Default::default() };
    let fit = |n_classes: u32, em: &Em| {
        with_problem(&format!("lca({n_classes})"), &data, 1.0, |problem| {
            em.fit(problem, Seed(1), &mut Control::default())
        })
    };
    let (seconds, fits) = best_of(3, || (1..=10).map(|n_classes| fit(n_classes, &em)).collect::<Result<Vec<_>>>())?;
    println!("{:>10.1} ms  em", seconds * 1e3);
    show(peer.version(), peer.seconds(), seconds);
    let task = "latent classes, 4,177 people, 7 answers, K = 1 to 10, one start each";
    Row::keep(task, peer.version(), peer.seconds(), seconds);
    let theirs: Vec<f64> =
        peer.found["likelihoods"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    for (ix, (ours, theirs)) in fits.iter().zip(theirs).enumerate() {
        println!(
            "            K = {:>2}: ln likelihood {:.3} ({} sweeps), peer {theirs:.3}",
            ix + 1,
            ours.ln_likelihood,
            ours.climbs.trace.len()
        );
    }
    let more = Em { climb: Climb { restarts: 5, tol: 1e-15, ..em.climb.clone() }, ..em };
    let best = fit(6, &more)?.ln_likelihood;
    let theirs = peer.found["best_of_six"].as_f64().expect("a number");
    println!(
        "            best of five starts at K = 6: {best:.7}, peer {theirs:.7}: relative difference {:.1e}",
        (best / theirs - 1.0).abs()
    );
    Ok(())
}
