//! Engines that sweep, against the tools people use now. Needs `POLYURN_BENCH_PYTHON`, a Python with the peers, which
//! `make bench-sweeps` sets up. All figures of a comparison come from one run, one after another on the same machine.

use polyurn::control::Control;
use polyurn::counts::{CountList, Counts, Labels};
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{Climb, Em, EmFit, StartTables, Turns, Vb};
use polyurn::evidence::ln_p_given;
use polyurn::graph::{ModelSource, bind_without_data};
use polyurn::math::special;
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Result, Seed};
use polyurn_bench::peer::{Peer, best_of};
use polyurn_bench::{Section, bound, wanted, with_problem};
use serde_json::Value;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [section, numbers @ ..] = &arguments[..]
        && section == SCALE_CASE
    {
        let numbers: Vec<u64> = numbers.iter().map(|number| number.parse().expect("a number")).collect();
        return scale_case(numbers[..].try_into().expect("three numbers"));
    }
    let sections: [Section; 6] =
        [("nmf", nmf), ("lda", lda), ("cp64", cp64), ("cp1000", cp1000), ("lca", lca), ("scale", scale)];
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

fn nmf() -> Result<()> {
    println!("KL-NMF of the Reuters corpus, K = 20, 100 iterations, one thread");
    let peer = Peer::run("sweeps.py", "nmf");
    let data = peer.data()?;
    let (of_row, w_sums) = columns(&peer.array("w.f64"), 20);
    let h = peer.array("h.f64");
    let h_sums: Vec<f64> = h.chunks_exact(h.len() / 20).map(|row| row.iter().sum()).collect();
    let of_column: Vec<Vec<f64>> = h.chunks_exact(h.len() / 20).map(<[f64]>::to_vec).collect();
    let hidden: Vec<f64> = w_sums.iter().zip(&h_sums).map(|(w, h)| w * h).collect();
    let tables = [("k", vec![hidden]), ("row", of_row), ("column", of_column)];
    let start = StartTables { tables: tables.into_iter().map(|(name, rows)| (name.to_owned(), rows)).collect() };
    let climb = Climb { restarts: 1, max_iter: 100, tol: 0.0, threads: 1, ..Default::default() };
    let em = Em { climb, start: Some(start), ..Default::default() };
    let (seconds, fit) = with_problem("k[20] -> row column", &data, 1.0, |problem| {
        best_of(5, || em.fit(problem, Seed(1), &mut Control::default()))
    })?;
    println!("{:>10.1} ms  em", seconds * 1e3);
    show(peer.version(), peer.seconds(), seconds);
    let total = polyurn_bench::n_tokens(&data)?;
    let entropy = polyurn_bench::sum_of_x_ln_x(&data)?;
    let ours = |n_iter: usize| entropy - total * total.ln() - fit.climbs.trace[n_iter - 1];
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
        println!(
            "{:>10.1} ms  seed {seed}: as high after {} sweeps, {:.1} times sooner; {:.1} after 300",
            seconds * 1e3,
            n_sweeps + 1,
            peer.seconds() / seconds,
            bounds[299]
        );
    }
    println!("{:>10.1} ms  {}", peer.seconds() * 1e3, peer.version());
    Ok(())
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
    reach(&Peer::run("sweeps.py", "cp64"), 1000).map(drop)
}

fn cp1000() -> Result<()> {
    println!(
        "Poisson CP, rank 10, 1000^3, 1,000,000 tokens, one thread: time to what multiplicative updates reach in 30 s"
    );
    let peer = Peer::run("sweeps.py", "cp1000");
    let a_sweep = reach(&peer, 60)?;
    // The peer counts updates of one mode.
    let theirs = peer.seconds() / peer.found["outer"].as_f64().expect("updates") * 3.0;
    println!(
        "            a sweep over three modes {:.1} ms, peer {:.1} ms: {:.1} times as long",
        a_sweep * 1e3,
        theirs * 1e3,
        theirs / a_sweep
    );
    Ok(())
}

/// Times EM from the peer's start to the peer's divergence; gives the time of one sweep.
fn reach(peer: &Peer, most_sweeps: u64) -> Result<f64> {
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
    let (total, entropy) = (polyurn_bench::n_tokens(&data)?, polyurn_bench::sum_of_x_ln_x(&data)?);
    println!("            peer: divergence {theirs:.1}");
    let divergences =
        |fit: &EmFit| -> Vec<f64> { fit.climbs.trace.iter().map(|ln| entropy - total * total.ln() - ln).collect() };
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
    let mut ratios: Vec<f64> = Vec::new();
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
            ratios.push(ratio);
            break;
        }
    }
    assert!(!ratios.is_empty(), "no seed comes as low as the peer");
    ratios.sort_by(f64::total_cmp);
    let median = f64::midpoint(ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
    println!(
        "            as low with {} seeds of 10: {:.1} times sooner at worst, median {median:.1}",
        ratios.len(),
        ratios[0]
    );
    println!("{:>10.1} ms  {}", peer.seconds() * 1e3, peer.version());
    let of = |n_sweeps: u64| best_of(3, || em(n_sweeps, None).fit(&problem, Seed(1), &mut Control::default()));
    Ok((of(40)?.0 - of(10)?.0) / 30.0)
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

/// The argument that asks for one case of [`scale`].
const SCALE_CASE: &str = "scale-case";

fn scale() -> Result<()> {
    println!("VB of doc -> topic[K] -> word with 20,000 words, two threads");
    for (n_docs, n_records, n_topics) in [
        (20_000u64, 2_500_000u64, 50),
        (20_000, 5_000_000, 50),
        (20_000, 10_000_000, 25),
        (20_000, 10_000_000, 50),
        (20_000, 10_000_000, 100),
        (100_000, 10_000_000, 50),
    ] {
        // Each in a process of its own: memory that one case has left behind is not the next one's.
        let numbers = [n_docs, n_records, n_topics].map(|number| number.to_string());
        let mut case = std::process::Command::new(std::env::current_exe().expect("a name"));
        assert!(case.arg(SCALE_CASE).args(numbers).status().expect("a process").success());
    }
    Ok(())
}

fn scale_case([n_docs, n_records, n_topics]: [u64; 3]) -> Result<()> {
    // Distinct records: every document gets as many words, spread over the vocabulary by a step of its own.
    let per_doc = n_records / n_docs;
    let docs: Vec<u32> = (0..n_records).map(|ix| (ix / per_doc) as u32).collect();
    let word = |ix: u64| ((ix / per_doc * 7919 + ix % per_doc * 197) % 20_000) as u32;
    let words: Vec<u32> = (0..n_records).map(word).collect();
    let n_tokens: CountList = (0..n_records).map(|ix| 1 + ix * 31 % 3).collect();
    let text = format!("doc[{n_docs}] -> topic[{n_topics}] -> word[20000]");
    let (model, _, _) = bind_without_data(&ModelSource::parse(&text)?, None)?;
    let labels = model.sizes().iter().map(|&size| Labels::Indexed { size, first: 0 }).collect();
    let counts = Counts::new(labels, &[Some(docs), None, Some(words)], &n_tokens, Vec::new())?;
    assert_eq!(counts.n_records() as u64, n_records);
    drop(n_tokens);
    let prior = Prior::build(&model, &PriorSettings { a: Some(1e5), ..Default::default() })?;
    let problem = Problem::new(&model, &prior, &counts)?;
    let before = resident();
    let fit = |max_iter: u64| {
        let climb = Climb { restarts: 1, max_iter, tol: 0.0, threads: 2, ..Default::default() };
        Vb { climb, start: None, ..Default::default() }.fit(&problem, Seed(1), &mut Control::default())
    };
    drop(fit(3)?);
    let most = most_resident();
    let (once, _) = best_of(3, || fit(1))?;
    let (thrice, _) = best_of(3, || fit(3))?;
    let data = n_records as f64 * 16.0 / 1e6;
    println!(
        "{:>10.1} ms  a sweep over {n_records} records of {n_docs} documents, K = {n_topics}; {:.0} ms to prepare and finish; \
         data {data:.0} MB, {before:.0} MB held before, {:.0} MB at most",
        (thrice - once) * 500.0,
        (once - (thrice - once) / 2.0) * 1e3,
        most
    );
    Ok(())
}

/// Memory of this process now, in megabytes; the largest so far is forgotten.
fn resident() -> f64 {
    // Linux starts counting anew; elsewhere the figure is the largest ever.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    memory("VmRSS:")
}

/// The most since then.
fn most_resident() -> f64 {
    memory("VmHWM:")
}

fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok())
        .map_or(f64::NAN, |kb| kb * 1024.0 / 1e6)
}
