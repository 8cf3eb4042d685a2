//! Reading a million rows of CSV and of `.tns`, against merely counting the lines of the same bytes.

use polyurn::io::{Format, read_from};
use polyurn::{Purpose, Seed};
use std::fmt::Write;
use std::time::Instant;

fn main() -> polyurn::Result<()> {
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
fn run(name: &str, text: &str, format: Format) -> polyurn::Result<()> {
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
