//! Gibbs chains as a process: answers, flags, refusals, time limits, fit files.

use crate::support::Folder;
use serde_json::Value;
use std::time::{Duration, Instant};

/// 400 tokens in a 19 x 20 table.
fn table() -> Folder {
    let folder = Folder::new();
    let rows: String = (0..400).map(|n| format!("{},{}\n", (n * n) % 19, (n * 7 + n / 20) % 20)).collect();
    folder.write("table.csv", format!("i,j\n{rows}"));
    folder.write("toy.csv", "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n");
    folder
}

const FIT: [&str; 7] = ["fit", "--model", "i -> k[3] -> j", "--data", "table.csv", "--method", "gibbs"];

fn warns(result: &Value, kind: &str) -> bool {
    result["warnings"].as_array().unwrap().iter().any(|warning| warning["kind"] == kind)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn json_has_every_field_of_the_contract() {
    let fit = table().json(&[&FIT[..], &["--seed", "1", "--chains", "2", "--sweeps", "200"]].concat());
    let fields = "objective objective_trace iterations converged seconds warnings tokens_per_second log_joint \
                  log_joint_by_table chains sweeps warm_up thin kept kernel r_hat effective_size best from_chain tables \
                  seed intensity posterior method version";
    for field in fields.split_whitespace() {
        assert!(!fit[field].is_null(), "{field} is missing: {fit}");
    }
    let parts: f64 = ["i", "k", "j"].iter().map(|node| number(&fit["log_joint_by_table"][node])).sum();
    assert!((parts - number(&fit["log_joint"])).abs() < 1e-9);
    assert_eq!((&fit["chains"], &fit["sweeps"], &fit["warm_up"]), (&2.into(), &200.into(), &100.into()));
    assert_eq!(fit["objective_trace"].as_array().unwrap().len(), 200);
    for statistic in [&fit["r_hat"], &fit["effective_size"]] {
        assert!(number(&statistic["log_joint"]) > 0.0 && number(&statistic["d_ep"]) > 0.0);
        assert!(number(&statistic["table_sum_of_squares"]["k"]) > 0.0);
        // Rows are seen, so nothing about their own table changes.
        assert!(statistic["table_sum_of_squares"]["i"].is_null());
    }
    assert!(warns(&fit, "labels_of_one_chain"));
}

#[test]
fn numbers_without_labels_agree_with_exact() {
    let folder = table();
    let base = ["fit", "--model", "k[2] -> i j", "--data", "toy.csv", "--method"];
    let exact = folder.json(&[&base[..], &["exact"]].concat());
    let found = folder.json(&[&base[..], &["gibbs", "--sweeps", "20000", "--seed", "4"]].concat());
    let d_ep = |fit: &Value| number(&fit["posterior"]["d_ep"]);
    // d_EP lies between 0 and 7, so its spread is at most 3.5, and the error of a mean that over the root of the effective size.
    let error = 3.5 / number(&found["effective_size"]["d_ep"]).sqrt();
    assert!((d_ep(&found) - d_ep(&exact)).abs() <= 4.5 * error && error < 0.15, "{} {}", d_ep(&found), d_ep(&exact));
    assert!(number(&found["r_hat"]["log_joint"]) < 1.01 && !warns(&found, "chains_disagree"), "{}", found["r_hat"]);
    assert_eq!(found["converged"], true);
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_threads_and_the_kernel() {
    let folder = table();
    let base = [&FIT[..], &["--seed", "3", "--chains", "3", "--sweeps", "60", "--hidden"]].concat();
    let strip = |more: &[&str]| {
        let mut fit = folder.json(&[&base[..], more].concat());
        ["seconds", "tokens_per_second", "kernel", "command_line"].iter().for_each(|field| fit[field] = Value::Null);
        fit
    };
    let first = strip(&["--threads", "1", "--kernel", "scalar"]);
    for more in [&["--threads", "2"][..], &["--threads", "8", "--kernel", "auto"]] {
        assert_eq!(strip(more), first, "{more:?}");
    }
}

#[test]
fn a_fit_file_has_the_best_state_and_draws() {
    let folder = table();
    let more = ["--seed", "3", "--chains", "2", "--sweeps", "60", "--draws", "3", "-o", "fit.polyurn"];
    folder.ok(&[&FIT[..], &more].concat());
    for draw in ["best", "1", "3"] {
        let shown = folder.ok(&["predict", "--fit", "fit.polyurn", "--data", "table.csv", "--draw", draw]);
        assert!(shown.lines().count() > 300, "{shown}");
    }
    folder.fails(&["predict", "--fit", "fit.polyurn", "--data", "table.csv", "--draw", "4"]);
    assert!(folder.ok(&["info", "fit.polyurn"]).contains("ln joint of the last state"));
    folder.ok(&["report", "fit.polyurn", "-o", "page.html"]);
    assert!(std::fs::read_to_string(folder.path().join("page.html")).unwrap().contains("ln joint of the last state"));
}

#[test]
fn flags_that_do_not_fit_are_refused() {
    let folder = table();
    for (method, flag) in [("vb", "--chains"), ("smc", "--sweeps"), ("exact", "--warm-up"), ("em", "--thin")] {
        let args = ["fit", "--model", "k[2] -> i j", "--data", "toy.csv", "--method", method, flag, "5"];
        let (code, error) = folder.fails(&args);
        assert!(code == 2 && error.contains(flag) && error.lines().count() == 1, "{error}");
    }
    for (flags, what) in [
        (&["--particles", "5"][..], "--particles"),
        (&["--restarts", "2"], "--restarts"),
        (&["--max-iter", "2"], "--max-iter"),
        (&["--chains", "0"], "--chains"),
        (&["--thin", "0"], "--thin"),
        (&["--sweeps", "10", "--warm-up", "10"], "--warm-up"),
        (&["--sweeps", "20", "--thin", "11"], "no state"),
        (&["--sweeps", "20", "--draws", "500", "-o", "fit.polyurn"], "draws"),
    ] {
        let (code, error) = folder.fails(&[&FIT[..], flags].concat());
        assert!(code == 2 && error.contains(what), "{flags:?}: {code} {error}");
    }
}

#[test]
fn a_time_limit_answers_with_the_sweeps_that_are_done() {
    let folder = table();
    let start = Instant::now();
    let many = ["--sweeps", "50000000", "--chains", "2", "--threads", "2", "--time-limit", "600ms", "--seed", "1"];
    let fit = folder.json(&[&FIT[..], &many].concat());
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(warns(&fit, "sweeps_cut"), "{}", fit["warnings"]);
    assert!((1..50_000_000).contains(&fit["sweeps"].as_u64().unwrap()));
    // Sweeps that a time limit chose repeat the bytes.
    let chosen = folder.json(&[&FIT[..], &["--time-limit", "1s", "--seed", "2", "--chains", "2"]].concat());
    let sweeps = chosen["sweeps"].to_string();
    let again = folder.json(&[&FIT[..], &["--sweeps", &sweeps, "--seed", "2", "--chains", "2"]].concat());
    if !warns(&chosen, "sweeps_cut") {
        assert_eq!(again["tables"], chosen["tables"]);
    }
}
