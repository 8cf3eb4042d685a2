//! Stochastic variational Bayes, as a process: streams, declared sizes, refusals, time limits.

use crate::support::Folder;
use serde_json::Value;
use std::io::Write;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

const FIT: [&str; 5] = ["fit", "--method", "svb", "--seed", "3"];
const LDA: [&str; 6] = ["--model", "lda(2)", "--seen", "doc[40],word[12]", "--format", "csv"];

/// Forty documents of twenty tokens, each about one half of the words.
fn documents() -> String {
    let mut text = String::from("doc,word,count\n");
    for doc in 0..40 {
        for word in 0..5 {
            text += &format!("d{doc},w{},4\n", (doc + word) % 6 + 6 * (doc % 2));
        }
    }
    text
}

fn documents_folder() -> Folder {
    let folder = Folder::new();
    folder.write("docs.csv", documents());
    folder
}

fn piped(folder: &Folder, args: &[&str], text: &str) -> Output {
    let mut command = folder.command(args);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // It may stop reading early, after an error.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
fn a_stream_gives_tables_and_no_evidence() {
    let folder = documents_folder();
    let args = [&FIT[..], &LDA, &["--data", "-", "--tokens", "800", "--batch", "50", "--json"]].concat();
    let output = piped(&folder, &args, &documents());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let fit: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (fit["batches"].as_u64(), fit["records"].as_u64(), fit["tokens"].as_u64()),
        (Some(4), Some(200), Some(800))
    );
    assert!(fit["log_marginal"].is_null() && fit["objective"].as_f64().unwrap() < 0.0, "{fit}");
    assert!(fit["objective_note"].as_str().unwrap().contains("noisy"), "{fit}");
    // Rows and labels stand in the order that vb gives them, and add up to one.
    let vb = folder.json(&["fit", "--method", "vb", "--model", "lda(2)", "--data", "docs.csv", "--seed", "3"]);
    for (ours, theirs) in fit["tables"].as_array().unwrap().iter().zip(vb["tables"].as_array().unwrap()) {
        assert_eq!(ours["node"], theirs["node"]);
        let rows = ours["rows"].as_array().unwrap().iter().zip(theirs["rows"].as_array().unwrap());
        for (ours, theirs) in rows {
            assert_eq!((&ours["given"], &ours["values"]), (&theirs["given"], &theirs["values"]));
            let sum: f64 = ours["mean"].as_array().unwrap().iter().map(|mean| mean.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{ours}");
        }
    }
    // The two halves of the words are told apart: neighbouring documents have different topics.
    let topics = &fit["tables"][1]["rows"];
    let mean = |row: usize| topics[row]["mean"][0].as_f64().unwrap();
    assert!((mean(0) - mean(1)).abs() > 0.8, "{topics}");
}

#[test]
fn a_file_and_standard_input_and_any_number_of_threads_give_the_same_bytes() {
    let folder = documents_folder();
    let run = |extra: &[&str], text: Option<&str>| {
        let args = [&FIT[..], &LDA, &["--tokens", "800", "--batch", "30"], extra].concat();
        let output = match text {
            Some(text) => piped(&folder, &args, text),
            None => folder.run(&args),
        };
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let one = run(&["--data", "docs.csv", "--threads", "1"], None);
    assert!(String::from_utf8_lossy(&one).contains("7 batches, 200 records, 800 tokens in 1 pass"));
    assert_eq!(one, run(&["--data", "docs.csv", "--threads", "4", "--kernel", "scalar"], None));
    assert_eq!(one, run(&["--data", "-", "--threads", "2"], Some(&documents())));
    let passes = run(&["--data", "docs.csv", "--passes", "3"], None);
    assert!(String::from_utf8_lossy(&passes).contains("600 records, 2,400 tokens in 3 passes"));
}

#[test]
fn what_a_stream_cannot_have_is_refused_with_the_way_out() {
    let folder = documents_folder();
    folder.write("unknown.csv", "doc,word,count\na,x,3\nb,y,?\n");
    folder.write("missing.csv", "doc,word,count\na,x,3\n,y,2\n");
    folder.write("empty.csv", "doc,word,count\n");
    let file = ["--data", "docs.csv"];
    let cases: [(Vec<&str>, &str); 12] = [
        ([&LDA[..], &file].concat(), "--method svb needs --tokens N"),
        (
            [&file[..], &["--model", "doc -> k[2] -> word", "--tokens", "800"]].concat(),
            "write `doc[4]`, here or in --seen",
        ),
        (
            [&file[..], &["--model", "doc[40] -> k[2] -> word[7]", "--tokens", "800"]].concat(),
            "docs.csv, line 9, column word: `w9` is one label more than the declared size 7 of `word`; declare a larger size",
        ),
        ([&LDA[..], &file, &["--tokens", "800", "--batch", "0"]].concat(), "--batch"),
        ([&LDA[..], &file, &["--tokens", "800", "--kappa", "0.5"]].concat(), "above 0.5 and at most 1"),
        ([&LDA[..], &file, &["--tokens", "800", "--kappa", "1.1"]].concat(), "above 0.5 and at most 1"),
        ([&LDA[..], &file, &["--tokens", "800", "--tau", "-1"]].concat(), "expected a number from 0 on"),
        (
            [&LDA[..], &["--data", "-", "--tokens", "800", "--passes", "2"]].concat(),
            "standard input can be read only once",
        ),
        ([&LDA[..], &file, &["--tokens", "800", "--local", "word"]].concat(), "--local word: the node has parents"),
        (
            [&LDA[..], &["--data", "unknown.csv", "--tokens", "5"]].concat(),
            "unknown.csv, line 3, column count: the count is `?`",
        ),
        (
            [&LDA[..], &["--data", "missing.csv", "--tokens", "5"]].concat(),
            "missing.csv, line 3, column doc: the value is missing",
        ),
        ([&LDA[..], &["--data", "empty.csv", "--tokens", "5"]].concat(), "no tokens"),
    ];
    for (args, wanted) in cases {
        let (code, message) = folder.fails(&[&FIT[..], &args].concat());
        assert_eq!(code, 2, "{message}");
        assert!(message.contains(wanted), "{message}");
    }
    let (code, message) =
        folder.fails(&["fit", "--method", "vb", "--model", "lda(2)", "--data", "docs.csv", "--tau", "2"]);
    assert_eq!((code, message.contains("--tau: --method vb has no use for it")), (2, true), "{message}");
}

#[test]
fn odd_streams_get_a_warning() {
    let folder = documents_folder();
    let warned = |extra: &[&str]| {
        let output = folder.run(&[&FIT[..], &LDA, extra].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(warned(&["--data", "docs.csv", "--tokens", "900"]).contains("declares 900 tokens but the stream had 800"));
    let text = documents();
    let mut rows: Vec<&str> = text.lines().skip(1).collect();
    rows.sort_by_key(|row| row.split(',').nth(1).map(str::to_owned));
    folder.write("by_word.csv", format!("doc,word,count\n{}\n", rows.join("\n")));
    let scattered = ["--data", "by_word.csv", "--tokens", "800", "--batch", "20"];
    assert!(warned(&scattered).contains("group the stream by `doc`, or give --local none"));
    assert_eq!(warned(&[&scattered[..], &["--local", "none"]].concat()), "");
}

#[test]
fn a_silent_stream_ends_with_the_time_limit() {
    let folder = documents_folder();
    let limits = ["--data", "-", "--tokens", "8000", "--batch", "30", "--time-limit", "0.7s"];
    let mut command = folder.command(&[&FIT[..], &LDA, &limits].concat());
    let start = Instant::now();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(documents().as_bytes()).unwrap();
    pipe.flush().unwrap();
    // The pipe stays open: nothing tells that there is no more to come.
    let output = child.wait_with_output().unwrap();
    drop(pipe);
    assert!(output.status.success(), "{output:?}");
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tokens were read in time"), "{output:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_gives_what_was_learned_until_then() {
    let folder = documents_folder();
    let before = folder.names();
    let args = [&FIT[..], &LDA, &["--data", "-", "--tokens", "8000", "--batch", "30", "-o", "fit.polyurn"]].concat();
    let mut child =
        folder.command(&args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(documents().as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    drop(pipe);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("tokens were read in time") && said.contains("stopped on request: the answer is from"),
        "{said}"
    );
    let about = folder.ok(&["info", "fit.polyurn"]);
    assert!(about.contains("tokens were read in time"), "{about}");
    assert_eq!(folder.names().len(), before.len() + 1, "nothing else is left behind");
}
