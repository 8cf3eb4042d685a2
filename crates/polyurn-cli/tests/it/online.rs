//! The running evidence of streams, as a process: lines for batches, declared sizes, states, stops, refusals.

use crate::support::{Folder, assert_close};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const SCORE: [&str; 8] = ["score", "--stream", "--b", "0.01", "--seed", "3", "--model", "r[2] -> i[6] j[6]"];
const SMALL: [&str; 6] = ["--particles", "20", "--runs", "3", "--rejuvenate", "4"];

/// Rows of two classes that do not mix; some values of `i` are missing from the middle on.
fn rows(n: usize) -> Vec<String> {
    let one = |ix: usize| {
        let class = ix * 7 % 11 % 2;
        let i = if ix > n / 2 && ix.is_multiple_of(9) { String::new() } else { format!("a{}", ix * 5 % 3 + 3 * class) };
        format!("{i},b{}", ix * 3 % 5 % 3 + 3 * class)
    };
    (0..n).map(one).collect()
}

fn csv(rows: &[String]) -> String {
    format!("i,j\n{}\n", rows.join("\n"))
}

fn with_rows(n: usize) -> Folder {
    let folder = Folder::new();
    folder.write("all.csv", csv(&rows(n)));
    folder
}

/// Lines of JSON without what differs from run to run.
fn lines(text: &str) -> Vec<Value> {
    let one = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("seconds").expect("a time");
        line
    };
    text.lines().map(one).collect()
}

fn run(folder: &Folder, extra: &[&str]) -> Vec<Value> {
    lines(&folder.ok(&[&SCORE[..], &SMALL, &["--json"], extra].concat()))
}

#[test]
fn every_batch_has_a_line_and_the_last_line_is_the_score() {
    let folder = with_rows(130);
    let found = run(&folder, &["--data", "all.csv", "--batch", "50"]);
    let tokens: Vec<u64> = found.iter().map(|line| line["tokens"].as_u64().unwrap()).collect();
    assert_eq!(tokens, [50, 100, 130, 130]);
    let mut before = 0.0;
    for line in &found[..3] {
        let number = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name} in {line}"));
        let parts = number("log_p_total") + number("log_arrangements") + number("log_p_sequence");
        assert!((number("log_marginal") - parts).abs() < 1e-9);
        assert!((number("log_p_sequence") - before - number("batch_log_p_sequence")).abs() < 1e-9);
        assert!(number("std_error") > 0.0 && number("ess_min") >= 1.0 && number("ess_min") <= 20.0, "{line}");
        before = number("log_p_sequence");
    }
    let (last, end) = (&found[2], &found[3]);
    for part in ["log_marginal", "log_p_total", "log_arrangements", "log_p_sequence", "std_error", "records", "batches"]
    {
        assert_eq!(last[part], end[part], "{part}");
    }
    assert_eq!((end["method"].as_str(), end["bound"].as_str()), (Some("smc"), Some("estimate")));
    assert_eq!(
        (end["batch"].as_u64(), end["window"].as_u64(), end["seed"].as_u64()),
        (Some(50), Some(10_000), Some(3))
    );
    assert_eq!(end["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(end["run_log_marginals"].as_array().unwrap().len(), 3);
    // People get the same numbers.
    let text = folder.ok(&[&SCORE[..], &SMALL, &["--data", "all.csv", "--batch", "50"]].concat());
    let table: Vec<&str> = text.lines().take(4).collect();
    assert!(table[0].contains("ln evidence") && table[3].trim().starts_with("130 "), "{text}");
    assert!(text.contains("3 runs of 20 particles") && text.contains("  arrangements"), "{text}");
}

#[test]
fn the_parts_are_those_of_the_exact_score() {
    let folder = with_rows(9);
    let model = ["--model", "r[2] -> i[6] j[6]", "--b", "0.01", "--data", "all.csv"];
    let exact = folder.json(&[&["score", "--method", "exact"][..], &model].concat());
    let online = ["score", "--stream", "--seed", "4", "--particles", "4000", "--runs", "8"];
    let found = lines(&folder.ok(&[&online[..], &model, &["--json", "--batch", "4"]].concat()));
    let end = found.last().unwrap();
    for part in ["log_p_total", "log_arrangements"] {
        assert_close(&end[part], exact[part].as_f64().unwrap(), 1e-12);
    }
    // 4.5 standard errors, of which the stated one is an estimate from eight runs: half as much again.
    let off = end["log_marginal"].as_f64().unwrap() - exact["log_marginal"].as_f64().unwrap();
    let error = end["std_error"].as_f64().unwrap();
    assert!(error > 0.0 && error < 0.05 && off.abs() <= 4.5 * 1.5 * error, "{off} with error {error}");
    // Nothing hidden: the closed form.
    let seen = ["--model", "i[6] -> j[6]", "--b", "0.01"];
    folder.write("seen.csv", "i,j,count\na,b,3\na,c,2\nd,b,4\n");
    let exact = folder.json(&[&["score", "--data", "seen.csv"][..], &seen].concat());
    let found = lines(&folder.ok(&[&["score", "--stream", "--data", "seen.csv", "--json"][..], &seen].concat()));
    assert_close(&found[1]["log_marginal"], exact["log_marginal"].as_f64().unwrap(), 1e-12);
    assert_eq!((found[1]["bound"].as_str(), &found[0]["std_error"]), (Some("exact"), &Value::Null));
}

#[test]
fn batches_threads_kernels_and_pipes_do_not_change_the_score() {
    let folder = with_rows(150);
    let want = run(&folder, &["--data", "all.csv", "--batch", "1000", "--threads", "1"]);
    let end = |mut lines: Vec<Value>| {
        let mut end = lines.pop().unwrap();
        for name in ["batch", "batches", "kernel"] {
            end.as_object_mut().unwrap().remove(name);
        }
        end
    };
    let want = end(want);
    assert_eq!(want, end(run(&folder, &["--data", "all.csv", "--batch", "7", "--threads", "3"])));
    assert_eq!(want, end(run(&folder, &["--data", "all.csv", "--batch", "40", "--kernel", "scalar"])));
    let piped = std::fs::File::open(folder.path().join("all.csv")).unwrap();
    let args = [&SCORE[..], &SMALL, &["--json", "--data", "-", "--format", "csv"]].concat();
    let output = folder.command(&args).stdin(piped).output().unwrap();
    assert_eq!(want, end(lines(std::str::from_utf8(&output.stdout).unwrap())));
    // Another window or order is another run; shuffled batches depend on their size.
    let other = |extra: &[&str]| end(run(&folder, &[&["--data", "all.csv"], extra].concat()))["log_marginal"].clone();
    assert_ne!(other(&["--window", "9"]), want["log_marginal"]);
    let shuffled = other(&["--order", "random", "--batch", "50"]);
    assert_ne!(shuffled, want["log_marginal"]);
    assert_eq!(shuffled, other(&["--order", "random", "--batch", "50", "--threads", "2"]));
    assert_ne!(shuffled, other(&["--order", "random", "--batch", "51"]));
}

#[test]
fn a_stream_goes_on_from_its_state() {
    let folder = with_rows(150);
    let all = rows(150);
    // Labels of later parts come in another order than in the whole: their values are kept in the state.
    for (name, part) in [("one.csv", &all[..40]), ("two.csv", &all[40..90]), ("three.csv", &all[90..])] {
        folder.write(name, csv(part));
    }
    let whole = run(&folder, &["--data", "all.csv", "--state", "whole"]).pop().unwrap();
    let mut last = Value::Null;
    for name in ["one.csv", "two.csv", "three.csv"] {
        // The seed is in the state.
        let seed = if name == "one.csv" { vec!["--seed", "3"] } else { Vec::new() };
        let model = ["score", "--stream", "--b", "0.01", "--model", "r[2] -> i[6] j[6]", "--json", "--state", "parts"];
        let text = folder.ok(&[&model[..], &SMALL, &["--data", name], &seed].concat());
        last = lines(&text).pop().unwrap();
    }
    assert_eq!(last, whole);
    let state = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    folder.write("further.csv", csv(&all[..30]));
    let further = |name: &str| run(&folder, &["--data", "further.csv", "--state", name]);
    let (parts, whole) = (further("parts"), further("whole"));
    assert_eq!(parts, whole);
    let whole = &whole[1];
    assert!(!folder.names().iter().any(|name| name.ends_with(".lock")), "{:?}", folder.names());
    // Nothing new: the same evidence again.
    folder.write("none.csv", "i,j\n");
    let again = run(&folder, &["--data", "none.csv", "--state", "parts"]).pop().unwrap();
    assert_eq!(again["log_marginal"], whole["log_marginal"]);
    // One label too many over all parts.
    folder.write("more.csv", "i,j\nnew,b0\n");
    let before = state("parts");
    let (code, message) = folder.fails(&[&SCORE[..], &SMALL, &["--data", "more.csv", "--state", "parts"]].concat());
    assert!(code == 2 && message.contains("more.csv, line 2, column i: `new` is one label more"), "{message}");
    assert_eq!(state("parts"), before, "data that are refused leave the state as it was");
}

#[test]
fn states_of_other_runs_and_damaged_ones_are_refused() {
    let folder = with_rows(60);
    run(&folder, &["--data", "all.csv", "--state", "state"]);
    let fails = |extra: &[&str], wanted: &str| {
        let (code, message) = folder.fails(&[&SCORE[..], &["--data", "all.csv"], extra].concat());
        assert!(code == 2 && message.contains(wanted), "{code} {message}");
    };
    fails(&["--state", "state"], "state: it belongs to another model, prior, seed or setting");
    fails(&[&SMALL[..], &["--state", "state", "--a", "3"]].concat(), "another model, prior, seed");
    fails(&[&SMALL[..], &["--state", "state", "--order", "random"]].concat(), "--order");
    fails(&[&SMALL[..], &["--state", "state", "--checkpoint", "other"]].concat(), "--checkpoint");
    let mut bytes = std::fs::read(folder.path().join("state")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.write("state", bytes);
    fails(&[&SMALL[..], &["--state", "state"]].concat(), "damaged");
}

#[test]
fn what_a_stream_cannot_have_is_refused_with_the_way_out() {
    let folder = with_rows(20);
    folder.write("unknown.csv", "i,j,count\na,b,?\n");
    folder.write("half.csv", "i,j,count\na,b,0.5\n");
    folder.write("wrong.csv", "x,y\na,b\n");
    folder.write("empty.csv", "");
    let model = ["--model", "r[2] -> i[6] j[6]", "--b", "1"];
    let file = ["--data", "all.csv"];
    let cases: [(Vec<&str>, &str); 13] = [
        ([&file[..], &model[..2]].concat(), "give --b"),
        ([&file[..], &["--model", "r[2] -> i[6] j", "--b", "1"]].concat(), "write `j[4]`, here or in --seen"),
        (
            [&file[..], &["--model", "r[2] -> i[6] j[2]", "--b", "1"]].concat(),
            "all.csv, line 4, column j: `b4` is one label more than the declared size 2 of `j`",
        ),
        ([&["--data", "unknown.csv"][..], &model].concat(), "the count is `?`"),
        ([&["--data", "half.csv"][..], &model].concat(), "is not whole"),
        ([&["--data", "wrong.csv"][..], &model].concat(), "no column is named after a node"),
        ([&["--data", "empty.csv"][..], &model].concat(), "empty.csv"),
        ([&["--data", "nowhere.csv"][..], &model].concat(), "nowhere.csv"),
        ([&file[..], &model, &["--method", "anneal"]].concat(), "only --method smc can follow a stream"),
        ([&file[..], &model, &["--heat", "3"]].concat(), "--heat: --method smc with --stream has no use for it"),
        ([&file[..], &model, &["--a", "1,2"]].concat(), "a stream has no curve"),
        ([&file[..], &model, &["--order", "by:i"]].concat(), "a stream comes as it comes"),
        ([&file[..], &model[..2], &["--prior", "none"]].concat(), "this needs a prior"),
    ];
    for (args, wanted) in cases {
        let (code, message) = folder.fails(&[&["score", "--stream"][..], &args].concat());
        assert!(code == 2 && message.contains(wanted), "{code} {message}");
    }
    let (code, message) = folder.fails(&[&["score", "--window", "5"][..], &file, &model].concat());
    assert!(code == 2 && message.contains("--stream"), "{message}");
}

/// A process with an open pipe to it.
fn follow(folder: &Folder, extra: &[&str]) -> Child {
    let data = ["--json", "--data", "-", "--format", "csv", "--batch", "10"];
    let mut command = folder.command(&[&SCORE[..], &SMALL, &data, extra].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[test]
fn lines_come_while_the_stream_is_open() {
    let folder = Folder::new();
    let all = rows(20);
    let mut child = follow(&folder, &[]);
    let mut pipe = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    pipe.write_all(csv(&all[..10]).as_bytes()).unwrap();
    // Waits for ever if the line is held back.
    let first: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
    assert_eq!(first["tokens"], 10);
    pipe.write_all(format!("{}\n", all[10..].join("\n")).as_bytes()).unwrap();
    let second: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
    assert_eq!(second["tokens"], 20);
    drop(pipe);
    assert!(answers.next().unwrap().unwrap().contains("\"version\""));
    assert!(child.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_gives_the_score_and_keeps_the_state() {
    let folder = Folder::new();
    let all = rows(60);
    folder.write("rest.csv", csv(&all[20..]));
    folder.write("all.csv", csv(&all));
    let mut child = follow(&folder, &["--state", "state"]);
    let mut pipe = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    pipe.write_all(csv(&all[..20]).as_bytes()).unwrap();
    (0..2).for_each(|_| drop(answers.next().unwrap().unwrap()));
    let start = Instant::now();
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let end: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(20));
    drop(pipe);
    assert_eq!(end["tokens"], 20);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the evidence is that of 20 tokens") && said.contains("stopped on request"), "{said}");
    let went_on = run(&folder, &["--data", "rest.csv", "--state", "state"]).pop().unwrap();
    assert_eq!(went_on["log_marginal"], run(&folder, &["--data", "all.csv"]).pop().unwrap()["log_marginal"]);
}

#[test]
fn a_time_limit_ends_a_silent_stream_and_a_checkpoint_takes_it_up() {
    let folder = Folder::new();
    let all = rows(60);
    folder.write("all.csv", csv(&all));
    for order in ["given", "random"] {
        let checkpoint = ["--checkpoint", "run", "--order", order];
        let mut child = follow(&folder, &[&checkpoint[..], &["--time-limit", "1.5s"]].concat());
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all(csv(&all[..20]).as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(pipe);
        assert!(output.status.success(), "{output:?}");
        let cut = lines(std::str::from_utf8(&output.stdout).unwrap()).pop().unwrap();
        let n_cut = cut["tokens"].as_u64().unwrap();
        assert!(cut["warnings"].to_string().contains("before the end of the stream"), "{cut}");
        assert!(n_cut == 20 && folder.names().contains(&"run".to_owned()), "{cut}");
        // Other data are refused; the same are passed over, and nothing is printed for what was there already.
        let mut other = rows(60);
        other.swap(0, 1);
        folder.write("other.csv", csv(&other));
        let data = ["--batch", "10", "--data"];
        let (code, message) = folder.fails(&[&SCORE[..], &SMALL, &checkpoint, &data, &["other.csv"]].concat());
        assert!(code == 2 && message.contains("run: the data are not those that it was made from"), "{message}");
        folder.write("short.csv", csv(&all[..15]));
        let (code, message) = folder.fails(&[&SCORE[..], &SMALL, &checkpoint, &data, &["short.csv"]].concat());
        assert!(code == 2 && message.contains("the data end before"), "{message}");
        let resumed = run(&folder, &[&checkpoint[..], &data, &["all.csv"]].concat());
        let whole = run(&folder, &[&data[..], &["all.csv", "--order", order]].concat());
        assert_eq!(resumed.last().unwrap()["log_marginal"], whole.last().unwrap()["log_marginal"]);
        assert_eq!(resumed[resumed.len() - 2]["batch_log_p_sequence"], whole[whole.len() - 2]["batch_log_p_sequence"]);
        assert!(resumed.len() < whole.len() && !folder.names().contains(&"run".to_owned()), "{:?}", folder.names());
    }
}
