//! The flags and rules that all commands share.

use crate::support::Folder;

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n1,1,3\n";

#[test]
fn every_command_takes_the_shared_flags() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    folder.write("result.json", include_str!("../fixtures/compare.json"));
    let model = ["--model", "i -> k[2] -> j", "--data", "toy.csv"];
    let commands: [Vec<&str>; 9] = [
        [&["score"], &model[..]].concat(),
        [&["enumerate"], &model[..]].concat(),
        vec!["simulate", "--model", "x[3]", "--tokens", "5"],
        vec!["check", "toy.csv"],
        [&["info"], &model[..]].concat(),
        vec!["demo"],
        [&["select"], &model[..]].concat(),
        [&["compare"], &model[..]].concat(),
        vec!["report", "result.json"],
    ];
    for command in commands {
        let shared = ["--json", "--seed", "5", "--threads", "1", "--quiet", "-o", "out.json"];
        let output = folder.run(&[&command[..], &shared[..]].concat());
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{command:?} is not quiet");
        let text = std::fs::read_to_string(folder.path().join("out.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["seed"], 5, "{command:?}");
        std::fs::remove_file(folder.path().join("out.json")).unwrap();
    }
    assert_eq!(folder.names(), ["result.json", "toy.csv"]);
    // `fit -o` writes the fit there, and prints its result all the same.
    let fit =
        [&["fit", "--method", "vb"], &model[..], &["--json", "--seed", "5", "--threads", "1", "--quiet"]].concat();
    let output = folder.run(&[&fit[..], &["-o", "out.polyurn"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(json["seed"] == 5 && output.stderr.is_empty(), "{output:?}");
    assert_eq!(folder.names(), ["out.polyurn", "result.json", "toy.csv"]);
}

#[test]
fn score_json_has_every_field_of_the_contract() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let score = folder.json(&["score", "--model", "i -> k[2] -> j", "--data", "toy.csv"]);
    for field in [
        "log_marginal",
        "log_p_total",
        "log_arrangements",
        "log_p_sequence",
        "std_error",
        "bound",
        "method",
        "why",
        "particles",
        "runs",
        "run_log_marginals",
        "seed",
        "seconds",
        "kernel",
        "ess_min",
        "tokens",
        "records",
        "warnings",
        "version",
    ] {
        assert!(score.get(field).is_some(), "{field} is missing");
    }
}

#[test]
fn columns_that_the_model_does_not_name_are_left_out_with_a_note() {
    let folder = Folder::new();
    folder.write("x.csv", "i,j,extra\n0,0,a\n1,1,b\n1,1,c\n");
    let output = folder.run(&["score", "--model", "i -> j", "--data", "x.csv"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("`extra`"));
    let score = folder.json(&["score", "--model", "i -> j", "--data", "x.csv"]);
    assert_eq!(score["records"], 2);
    assert_eq!(score["warnings"][0]["kind"], "columns_left_out");
}

#[test]
fn axes_without_names_bind_in_order_or_by_columns() {
    let folder = Folder::new();
    folder.write("x.tns", "1 1 2\n1 2 1\n2 2 3\n");
    folder.write("toy.csv", TOY);
    let csv = folder.json(&["score", "--model", "i -> k[2] -> j", "--data", "toy.csv"]);
    let tns = folder.json(&["score", "--model", "i -> k[2] -> j", "--data", "x.tns"]);
    assert_eq!(tns["log_marginal"], csv["log_marginal"]);
    let turned = folder.json(&["score", "--model", "j -> k[2] -> i", "--data", "x.tns", "--columns", "i,j"]);
    let got = turned["log_marginal"].as_f64().unwrap() - csv["log_marginal"].as_f64().unwrap();
    assert!(got.abs() < 1e-10, "the graph is Markov equivalent and BDeu consistent, but the scores differ by {got}");
}

#[test]
fn compressed_files_and_standard_input_read_the_same() {
    use std::io::Write;
    use std::process::Stdio;
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(TOY.as_bytes()).unwrap();
    folder.write("toy.csv.gz", encoder.finish().unwrap());
    let plain = folder.json(&["score", "--model", "i -> j", "--data", "toy.csv"]);
    let packed = folder.json(&["score", "--model", "i -> j", "--data", "toy.csv.gz"]);
    assert_eq!(plain["log_marginal"], packed["log_marginal"]);
    let mut child = folder
        .command(&["score", "--model", "i -> j", "--data", "-", "--format", "csv", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(TOY.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let piped: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plain["log_marginal"], piped["log_marginal"]);
}

#[test]
fn a_problem_beyond_the_memory_limit_is_refused_with_the_figure_and_exit_code_1() {
    let folder = Folder::new();
    let rows: String = (0..400).map(|n| format!("{},{}\n", n % 20, (n * 7 + n / 20) % 20)).collect();
    folder.write("big.csv", format!("i,j\n{rows}"));
    let args = ["score", "--model", "i -> k[6] -> j", "--data", "big.csv", "--method", "exact", "--max-memory", "1G"];
    let (code, error) = folder.fails(&args);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("states") && error.contains("limit of 1 GB") && error.lines().count() == 1, "{error}");
    let (code, error) = folder.fails(&["enumerate", "--model", "i -> k[6] -> j", "--data", "big.csv"]);
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("tensors"), "{error}");
}

#[test]
fn counts_up_to_the_last_of_64_bits_have_an_answer_or_a_refusal() {
    let folder = Folder::new();
    folder.write("x.csv", "i,j,count\n0,0,18446744073709551615\n");
    let score = folder.json(&["score", "--model", "i[2] -> j[3]", "--data", "x.csv"]);
    let list = folder.json(&["enumerate", "--model", "i[2] -> j[3]", "--data", "x.csv"]);
    let (want, got) = (score["log_marginal"].as_f64().unwrap(), list["log_sum_pi"].as_f64().unwrap());
    assert!((got - want).abs() < 1e-9 * want.abs(), "{got} {want}");
    let (code, error) = folder.fails(&["score", "--model", "k[2] -> i j", "--data", "x.csv"]);
    assert!(code == 1 && error.contains("one by one"), "{error}");
    let (code, error) = folder.fails(&["score", "--model", "k[2] -> i j; i ~ j", "--data", "x.csv"]);
    assert!(code == 2 && error.contains("64 bits"), "{error}");
}

#[test]
fn endless_lists_of_totals_are_refused_at_once() {
    let folder = Folder::new();
    folder.write("x.csv", "a,b,count\n0,0,1\n1,1,2\n0,1,?\n1,0,?\n");
    let args = ["score", "--model", "k[2] -> a b", "--data", "x.csv", "--b"];
    for more in [&["1e-9"][..], &["0.1", "--totals", "3..100000000000000000"]] {
        let (code, error) = folder.fails(&[&args[..], more].concat());
        assert!(code == 1 && error.contains("--totals"), "{error}");
    }
    // Two unknown cells with a moderate rate are done in a moment.
    let score = folder.json(&[&args[..], &["0.1"]].concat());
    assert!(score["totals"].as_array().unwrap().len() > 100);
}

#[test]
fn simulating_a_node_of_billions_of_values_takes_memory_for_tokens_only() {
    let folder = Folder::new();
    let csv = folder.ok(&["simulate", "--model", "a[4294967294] -> b[3]", "--tokens", "6", "--seed", "2", "--a", "3"]);
    let total: u64 = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(total, 6);
}

#[test]
fn a_mode_of_a_million_values_costs_little_memory() {
    let folder = Folder::new();
    folder.write("x.csv", "doc,word\n3,999999\n3,5\n1,5\n999999,17\n2,17\n2,5\n");
    let status = std::process::Command::new("sh")
        .arg("-c")
        // 50 MB of address space, the program itself and its listening thread included.
        .arg(format!(
            "ulimit -v 51200; '{}' score --model 'doc[1000000] -> k[3] -> word[1000000]' --data x.csv",
            env!("CARGO_BIN_EXE_polyurn")
        ))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
}
