//! Annealing: how wide brackets are in a given time, how many topics a corpus has, and the sparse toy. Needs
//! `POLYURN_BENCH_PYTHON`, a Python with the package that has the corpus, which `make bench-anneal` sets up.

use polyurn::control::{Cancel, Control};
use polyurn::counts::Dataset;
use polyurn::engine::Problem;
use polyurn::engine::anneal::{AnnealEstimate, AnnealWish};
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::Crew;
use polyurn::graph::ModelSource;
use polyurn::prior::PriorSettings;
use polyurn::score::Scoring;
use polyurn::select::{Contest, Entry, Field, Logbook};
use polyurn::simd::Isa;
use polyurn::{Result, Seed};
use polyurn_bench::peer::Peer;
use polyurn_bench::{Section, paper_matrix, simulated, wanted, with_problem};
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let sections: [Section; 4] =
        [("sparse", sparse), ("simulated", simulations), ("reuters", reuters), ("select", select)];
    for (_, section) in wanted(sections) {
        section()?;
        println!();
    }
    Ok(())
}

const THREADS: usize = 2;

/// One estimate with a bracket, in this time if there is one.
fn anneal(problem: &Problem<'_>, is_bracket: bool, time: Option<Duration>, seed: u64) -> Result<AnnealEstimate> {
    let crew = Crew { isa: Isa::detect(), threads: THREADS, max_memory: 4 << 30 };
    let wish = AnnealWish { is_bracket, ..Default::default() };
    let mut control = Control::default();
    wish.settle(problem, crew, time, Seed(seed))?.ln_p_sequence(problem, Seed(seed), &mut control)
}

/// The paper's matrix with a tiny prior, where single tokens cannot leave their component.
fn sparse() -> Result<()> {
    println!(
        "3 x 4 matrix of nine tokens, a = 1e-5, default settings, seeds 1 to 20: distance from the exact ln evidence"
    );
    let data = paper_matrix()?;
    for rank in 2..=4 {
        let all = with_problem(&format!("r[{rank}] -> i j"), &data, 1e-5, |problem| {
            let exact = Exact::default().ln_p_sequence(problem, &mut Control::default())?.ln_p_sequence.value();
            let apart = |seed| Ok((anneal(problem, false, None, seed)?.ln_p_sequence - exact).abs());
            (1..=20).map(apart).collect::<Result<Vec<f64>>>()
        })?;
        let (worst, n_close) =
            (all.iter().copied().fold(0.0, f64::max), all.iter().filter(|&&apart| apart <= 0.05).count());
        println!("{n_close:>10} of 20 within 0.05 nats, the largest {worst:.3}: rank {rank}");
    }
    Ok(())
}

/// Brackets of one model in a given time.
fn brackets(model: &str, data: &Dataset, a: f64, time: Duration, seeds: u64) -> Result<()> {
    with_problem(model, data, a, |problem| {
        for seed in 1..=seeds {
            let start = Instant::now();
            let found = anneal(problem, true, Some(time), seed)?;
            let bracket = found.bracket.expect("asked for");
            let width = bracket.upper - bracket.lower;
            println!(
                "{width:>10.1} nats, {:.5} a token, in {:.1} s: ln p(sequence) in [{:.0}, {:.0}], {} steps",
                width / problem.counts.n_tokens as f64,
                start.elapsed().as_secs_f64(),
                bracket.lower,
                bracket.upper,
                found.sweeps
            );
        }
        Ok(())
    })
}

/// Data of a known model.
fn simulations() -> Result<()> {
    for (model, fitted, seen, a) in [
        ("doc[500] -> topic[10] -> word[2000]", "doc -> topic[10] -> word", &["doc", "word"][..], 20_000.0),
        ("r[6] -> a[8] b[8] c[8] d[8] e[8]", "r[6] -> a b c d e", &["a", "b", "c", "d", "e"], 60.0),
    ] {
        println!("width of the bracket of 100,000 tokens of {model}, a = {a}, 60 s (asked: 0.05 a token)");
        brackets(fitted, &simulated(model, seen, 100_000, a, 1)?, a, Duration::from_secs(60), 1)?;
    }
    Ok(())
}

fn reuters() -> Result<()> {
    println!("width of the bracket of Reuters, 20 topics, a = 2000, 60 s (asked: 1,500; aim: 400)");
    let peer = Peer::run("reuters.py", "data");
    brackets("doc -> topic[20] -> word", &peer.data()?, 2000.0, Duration::from_secs(60), 3)
}

fn select() -> Result<()> {
    println!("ln evidence of Reuters by the number of topics, a = 2000, five minutes");
    let peer = Peer::run("reuters.py", "data");
    let settings = PriorSettings { a: Some(2000.0), ..Default::default() };
    let sizes = [5, 10, 20, 50, 100];
    let entry = |size: u32| -> Result<Entry> {
        let text = format!("doc -> topic[{size}] -> word");
        Ok(Entry { source: ModelSource::parse(&text)?, name: text, settings: settings.clone() })
    };
    let entries = sizes.into_iter().map(entry).collect::<Result<_>>()?;
    let field = Field::new(entries, peer.data()?, None)?;
    let start = Instant::now();
    let contest = Contest {
        scoring: Scoring::default(),
        threads: THREADS,
        seed: Seed(1),
        a: None,
        deadline: Some(start + Duration::from_secs(300)),
        time_limit: Some(Duration::from_secs(300)),
        cancel: Cancel::default(),
        wants_bounds: false,
        most_rounds: 1,
    };
    let mut control = Control::default();
    let logbook = Logbook::open(&field, &contest, &mut control)?;
    let mut last = f64::NEG_INFINITY;
    for (size, found) in sizes.into_iter().zip(contest.run(&field, &logbook, &mut control)?) {
        let Some(bracket) = found.as_ref().and_then(|found| found.score.bracket()) else {
            println!("{size:>10} topics  no bracket in time");
            continue;
        };
        let verdict = if bracket.lower > last { "above the one before" } else { "overlaps the one before" };
        println!("{size:>10} topics  [{:.0}, {:.0}], {verdict}", bracket.lower, bracket.upper);
        last = bracket.upper;
    }
    println!("{:>10.1} s in all", start.elapsed().as_secs_f64());
    Ok(())
}
