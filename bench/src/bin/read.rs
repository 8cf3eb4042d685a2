//! Reading a million rows of CSV and of `.tns`, against merely counting the lines of the same bytes; and of CSV against pandas and
//! polars, for which `POLYURN_BENCH_PYTHON` names a Python that has them.

use polyurn::io::{Format, ReadOptions, read, read_from};
use polyurn::{Purpose, Result, Seed};
use polyurn_bench::peer::{Peer, best_of};
use polyurn_bench::table::Row;
use polyurn_bench::{Section, wanted};
use std::fmt::Write;
use std::time::Instant;

fn main() -> Result<()> {
    let sections: [Section; 2] = [("lines", lines), ("frames", frames)];
    for (_, section) in wanted(sections) {
        section()?;
        println!();
    }
    Ok(())
}

/// From a file to how often each distinct row occurs.
fn frames() -> Result<()> {
    println!("CSV of a million rows and five columns, to the count of each distinct row, one thread");
    for part in ["pandas", "polars"] {
        let peer = Peer::run("read.py", part);
        for n_labels in [6, 40] {
            let options = ReadOptions::default();
            let (seconds, data) = best_of(3, || read(&peer.path(&format!("{n_labels}.csv")), &options))?;
            let found = &peer.found[n_labels.to_string()];
            let theirs = found["seconds"].as_f64().expect("seconds");
            assert_eq!(found["n_distinct"], data.n_rows(), "both count the same rows");
            println!(
                "{:>10.3} s   {} distinct rows; {} {theirs:.3} s: {:.2} times as long",
                seconds,
                data.n_rows(),
                peer.version(),
                theirs / seconds
            );
            let task = format!("read a CSV file of 1e6 rows and count its {} distinct rows", data.n_rows());
            Row::keep(task, peer.version(), theirs, seconds);
        }
    }
    Ok(())
}

fn lines() -> Result<()> {
    println!("{:<44} {:>8} {:>9} {:>8} {:>16}", "file", "MB", "seconds", "MB/s", "x counting lines");
    run("CSV, 1e6 rows, 5 columns and count", &csv(1_000_000, 40), Format::Csv)?;
    run("CSV, 1e6 rows, 5 columns, 7776 distinct", &csv(1_000_000, 6), Format::Csv)?;
    run(".tns, 1e6 entries, 3 axes", &tns(1_000_000), Format::Tns)?;
    Ok(())
}

fn csv(n_rows: u64, n_labels: u64) -> String {
    let mut rng = Seed(1).stream(Purpose::Simulate, 0, 0, 0);
    let mut text = String::from("a,b,c,d,e,count\n");
    for _ in 0..n_rows {
        for _ in 0..5 {
            let _ = write!(text, "v{},", polyurn::math::draw::below(n_labels, &mut rng));
        }
        text.push_str("1\n");
    }
    text
}

fn tns(n_rows: u64) -> String {
    let mut rng = Seed(2).stream(Purpose::Simulate, 0, 0, 0);
    let mut text = String::new();
    for _ in 0..n_rows {
        for _ in 0..3 {
            let _ = write!(text, "{} ", 1 + polyurn::math::draw::below(1000, &mut rng));
        }
        text.push_str("1\n");
    }
    text
}

/// Best of three for both, in one run.
fn run(name: &str, text: &str, format: Format) -> Result<()> {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        let start = Instant::now();
        let n_lines = text.bytes().filter(|&byte| byte == b'\n').count();
        best.0 = best.0.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let dataset = read_from(text.as_bytes(), name, format)?;
        best.1 = best.1.min(start.elapsed().as_secs_f64());
        assert!(dataset.n_rows() <= n_lines);
    }
    let megabytes = text.len() as f64 / 1e6;
    println!("{name:<44} {megabytes:>8.1} {:>9.3} {:>8.0} {:>16.0}", best.1, megabytes / best.1, best.1 / best.0);
    Ok(())
}
