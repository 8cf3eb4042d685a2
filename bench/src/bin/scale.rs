//! A sweep of variational Bayes over millions of records: time and memory. Each case runs in a process of its own, whose arguments
//! are documents, records and topics.

use polyurn::control::Control;
use polyurn::counts::{CountList, Counts, Labels};
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{Climb, Vb};
use polyurn::graph::{ModelSource, bind_without_data};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Result, Seed};
use polyurn_bench::peer::best_of;

fn main() -> Result<()> {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|number| number.parse().expect("a number")).collect();
    match numbers[..] {
        [] => all(),
        [n_docs, n_records, n_topics] => case([n_docs, n_records, n_topics]),
        _ => panic!("a case is documents, records and topics"),
    }
}

fn all() -> Result<()> {
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
        assert!(case.args(numbers).status().expect("a process").success());
    }
    Ok(())
}

fn case([n_docs, n_records, n_topics]: [u64; 3]) -> Result<()> {
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
