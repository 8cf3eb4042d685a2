//! The particle engines as a process: answers, flags, refusals, time limits, signals.

use crate::support::Folder;
use serde_json::Value;
use std::time::{Duration, Instant};

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";

fn toy() -> Folder {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    folder
}

/// 400 tokens in a 20 x 20 table: far beyond the exact engine.
fn table() -> Folder {
    let folder = Folder::new();
    let rows: String = (0..400).map(|n| format!("{},{}\n", (n * n) % 19, (n * 7 + n / 20) % 20)).collect();
    folder.write("table.csv", format!("i,j\n{rows}"));
    folder
}

const SCORE: [&str; 5] = ["score", "--model", "k[3] -> i j", "--data", "toy.csv"];

fn warns(result: &Value, kind: &str) -> bool {
    result["warnings"].as_array().unwrap().iter().any(|warning| warning["kind"] == kind)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn smc_and_sis_and_naive_agree_with_exact_within_their_errors() {
    let folder = toy();
    let exact = number(&folder.json(&[&SCORE[..], &["--method", "exact"]].concat())["log_marginal"]);
    for (method, more) in
        [("smc", &["--particles", "512"][..]), ("sis", &["--particles", "2000"]), ("smc", &["--rejuvenate", "0"])]
    {
        let args = [&SCORE[..], &["--method", method, "--seed", "5", "--runs", "8"], more].concat();
        let score = folder.json(&args);
        let error = number(&score["std_error"]);
        // Eight runs: a t-distribution with 7 degrees of freedom, |t| <= 7.9 has the level of |z| <= 4.5 within a factor.
        assert!((number(&score["log_marginal"]) - exact).abs() <= 7.9 * error, "{method} {more:?}: {score}");
        assert!(error > 0.0 && error < 0.2, "{method}: {error}");
        assert_eq!(score["bound"], "estimate");
        assert_eq!(score["run_log_marginals"].as_array().unwrap().len(), 8);
    }
    let folder = Folder::new();
    folder.write("toy.csv", "i,j,count\n0,0,2\n1,1,1\n");
    let exact = number(&folder.json(&[&SCORE[..], &["--method", "exact"]].concat())["log_marginal"]);
    let score = folder.json(&[&SCORE[..], &["--method", "naive", "--particles", "4000", "--seed", "2"]].concat());
    assert!((number(&score["log_marginal"]) - exact).abs() <= 4.5 * number(&score["std_error"]), "{score}");
    assert!(score["hits"].as_u64().unwrap() > 50, "{score}");
}

#[test]
fn json_of_an_estimate_has_every_field_of_the_contract() {
    let folder = toy();
    let score = folder.json(&[&SCORE[..], &["--method", "smc", "--seed", "1", "--particles", "64"]].concat());
    let fields = "log_marginal log_p_total log_arrangements log_p_sequence std_error bound method why particles runs \
                  run_log_marginals seed seconds kernel ess_min tokens records warnings version rejuvenate heat cooling \
                  split_merge order resample ess error_from updates resamplings ancestors ess_trace resampled_at";
    for field in fields.split_whitespace() {
        assert!(!score[field].is_null(), "{field} is missing: {score}");
    }
    let parts = ["log_p_total", "log_arrangements", "log_p_sequence"].map(|part| number(&score[part]));
    assert!((parts.iter().sum::<f64>() - number(&score["log_marginal"])).abs() < 1e-9);
    let runs: Vec<f64> = score["run_log_marginals"].as_array().unwrap().iter().map(number).collect();
    let largest = runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = runs.iter().map(|ln| (ln - largest).exp()).sum::<f64>() / runs.len() as f64;
    assert!((largest + mean.ln() - number(&score["log_marginal"])).abs() < 1e-9, "ln of the mean of the runs");
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_threads_and_the_kernel() {
    let folder = table();
    let base = ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--seed", "3", "--particles", "300"];
    let strip = |more: &[&str]| {
        let mut score = folder.json(&[&base[..], more].concat());
        score["seconds"] = 0.into();
        score["kernel"] = Value::Null;
        score
    };
    let first = strip(&["--threads", "1", "--kernel", "scalar"]);
    for more in [&["--threads", "2"][..], &["--threads", "4", "--kernel", "auto"], &["--threads", "8"]] {
        assert_eq!(strip(more), first, "{more:?}");
    }
    let another = folder.json(&[&base[..4], &["table.csv", "--seed", "4", "--particles", "300"]].concat());
    assert_ne!(another["log_marginal"], first["log_marginal"]);
}

#[test]
fn sizes_that_a_time_limit_chose_repeat_the_bytes() {
    let folder = table();
    let base = ["score", "--model", "k[2] -> i j", "--data", "table.csv", "--seed", "3", "--method", "smc"];
    let chosen = folder.json(&[&base[..], &["--time-limit", "2s"]].concat());
    let text = |field: &str| chosen[field].to_string();
    let (particles, runs, moves) = (text("particles"), text("runs"), text("rejuvenate"));
    let (heat, cooling) = (text("heat"), text("cooling"));
    let mut sizes = vec!["--particles", &particles, "--runs", &runs, "--rejuvenate", &moves, "--heat", &heat];
    if chosen["heat"] != 1.0 {
        sizes.extend(["--cooling", &cooling]);
    }
    let again = folder.json(&[&base[..], &sizes].concat());
    if !warns(&chosen, "time_up") {
        assert_eq!(again["run_log_marginals"], chosen["run_log_marginals"]);
    }
}

#[test]
fn auto_is_exact_where_that_is_cheap_and_says_why_not_elsewhere() {
    assert_eq!(toy().json(&SCORE)["method"], "exact");
    let score = table().json(&["score", "--model", "k[4] -> i j", "--data", "table.csv", "--seed", "1"]);
    assert_eq!(score["method"], "smc");
    assert!(score["why"].as_str().unwrap().contains("exact"), "{score}");
    let asked = toy().json(&[&SCORE[..], &["--particles", "50", "--seed", "1"]].concat());
    assert_eq!(asked["method"], "smc", "flags of particles are never ignored");
}

#[test]
fn a_time_limit_answers_with_the_runs_that_are_finished() {
    let folder = table();
    let start = Instant::now();
    let base = ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--seed", "3", "--heat", "1"];
    let many = ["--particles", "64", "--runs", "100000", "--time-limit", "700ms"];
    let score = folder.json(&[&base[..], &many].concat());
    assert!(start.elapsed() < Duration::from_secs(5));
    let n_runs = score["runs"].as_u64().unwrap();
    assert!((1..100_000).contains(&n_runs), "{n_runs}");
    assert!(warns(&score, "time_up"), "{}", score["warnings"]);
    let too_long = ["--particles", "50000", "--rejuvenate", "50", "--runs", "1", "--time-limit", "300ms"];
    let (code, error) = folder.fails(&[&base[..], &too_long].concat());
    assert!(code == 1 && error.lines().count() == 1, "{error}");
}

#[test]
fn the_time_limit_holds_within_long_moves() {
    let folder = table();
    let base =
        ["score", "--model", "k[2] -> i j", "--data", "table.csv", "--seed", "3", "--runs", "1", "--threads", "1"];
    let endless = [
        ["--heat", "1", "--split-merge", "1000000", "--particles", "512"],
        ["--heat", "9", "--split-merge", "1000000", "--particles", "512"],
        ["--heat", "1", "--rejuvenate", "4000000000", "--particles", "2"],
    ];
    for moves in endless {
        let start = Instant::now();
        let limit = ["--time-limit", "300ms", "--max-memory", "50M"];
        let (code, error) = folder.fails(&[&base[..], &moves, &limit].concat());
        assert!(code == 1 && error.lines().count() == 1, "{error}");
        assert!(start.elapsed() < Duration::from_secs(5), "{moves:?}: {:?}", start.elapsed());
    }
}

#[test]
fn totals_with_unknown_cells_go_on_from_a_checkpoint() {
    let folder = Folder::new();
    folder.write("seen.csv", "i,j,count\n0,0,3\n0,1,?\n");
    let base =
        ["score", "--model", "k[2] -> i[1] j[2]", "--data", "seen.csv", "--a", "0.1", "--b", "0.01", "--seed", "1"];
    let sizes = ["--method", "smc", "--particles", "200", "--runs", "4", "--heat", "1", "--threads", "1"];
    let whole = folder.json(&[&base[..], &sizes].concat());
    let checkpoint = ["--checkpoint", "run.ck", "--checkpoint-every", "1ms"];
    let saved = folder.json(&[&base[..], &sizes, &checkpoint].concat());
    assert_eq!(saved["run_log_marginals"], whole["run_log_marginals"]);
}

#[test]
fn pilots_leave_time_for_an_answer() {
    // 12,000 tokens: full pilots alone take far longer than the limit in a test build.
    let folder = Folder::new();
    let rows: String = (0..400).map(|n| format!("{},{},30\n", (n * n) % 19, (n * 7 + n / 20) % 20)).collect();
    folder.write("table.csv", format!("i,j,count\n{rows}"));
    let args = ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--a", "0.5", "--seed", "3"];
    for method in ["smc", "anneal"] {
        let start = Instant::now();
        let score = folder.json(&[&args[..], &["--time-limit", "2s", "--method", method]].concat());
        assert!(start.elapsed() < Duration::from_secs(6), "it took {:?}", start.elapsed());
        assert_eq!(score["method"], method);
        assert!(score["runs"].as_u64().unwrap() >= 1, "{score}");
    }
}

const VALUES: [&str; 2] = ["--a", "0.1..10:6"];

#[test]
fn a_time_limit_is_shared_out_over_a_curve() {
    let folder = table();
    let base = ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--seed", "3"];
    let start = Instant::now();
    let curve = folder.json(&[&base[..], &VALUES, &["--time-limit", "3s"]].concat());
    assert!(start.elapsed() < Duration::from_secs(7), "it took {:?}", start.elapsed());
    let n_done = curve["curve"].as_array().unwrap().len();
    assert_eq!(n_done + curve["left_out"].as_array().unwrap().len(), 6);
    assert!(n_done >= 3, "{n_done} of 6 values in 3 s");
}

#[test]
fn values_without_an_answer_are_left_out_of_a_curve_and_named() {
    let folder = table();
    let base =
        ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--seed", "3", "--heat", "1", "--threads", "1"];
    // One run takes long enough for the later values to find no time at all.
    let fixed = ["--particles", "64", "--rejuvenate", "20", "--runs", "1"];
    let many: String = (1..400).map(|n| format!("{n},")).collect::<String>() + "400";
    let args = [&base[..], &fixed, &["--a", &many, "--time-limit", "1s"]].concat();
    let output = folder.run(&args);
    assert!(output.status.success());
    let (text, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(text.contains("these finished values"), "{text}");
    assert!(stderr.contains("of 400 values of a had no answer in time; left out: "), "{stderr}");
    let curve = folder.json(&args);
    let left_out = curve["left_out"].as_array().unwrap();
    assert!(warns(&curve, "values_left_out") && !left_out.is_empty());
    assert!(curve["curve"].as_array().unwrap().iter().all(|score| !left_out.contains(&score["a"])));
    // No time for any value: the error of a single value.
    let too_long = ["--particles", "50000", "--rejuvenate", "50", "--a", "1,2", "--time-limit", "300ms"];
    let (code, error) = folder.fails(&[&base[..], &too_long].concat());
    assert!(code == 1 && error.contains("time limit") && error.lines().count() == 1, "{error}");
}

#[test]
fn a_curve_has_an_error_and_every_warning_once() {
    let folder = toy();
    let curve = |more: &[&str]| folder.run(&[&SCORE[..], &["--a", "0.5,1,2"], more].concat());
    let smc = ["--method", "smc", "--seed", "5", "--particles", "1", "--rejuvenate", "0", "--runs", "1"];
    let stderr = String::from_utf8(curve(&smc).stderr).unwrap();
    // One particle cannot tell its error, at any value.
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("cannot tell its own error")).collect();
    assert!(matches!(lines[..], [line] if line.contains("a = 0.5: ") && line.contains("at 1, 2")), "{stderr}");
    let json = |more: &[&str]| folder.json(&[&SCORE[..], &["--a", "0.5,1,2"], more].concat());
    assert!(json(&smc)["std_error"].is_null());
    let exact = json(&["--method", "exact"]);
    assert!(exact["std_error"].is_null() && exact["best"]["std_error"].is_null(), "{exact}");
    let smc = ["--method", "smc", "--seed", "5", "--particles", "256"];
    let found = json(&smc);
    let parts: Vec<(f64, f64)> = found["curve"]
        .as_array()
        .unwrap()
        .iter()
        .map(|score| (number(&score["log_marginal"]), number(&score["std_error"])))
        .collect();
    let sum: f64 = parts.iter().map(|part| part.0.exp()).sum();
    let error: f64 = parts.iter().map(|part| part.0.exp() / sum * part.1).sum();
    assert!((number(&found["std_error"]) - error).abs() < 1e-9 * error, "{found}");
    let best = parts.iter().copied().fold((f64::NEG_INFINITY, 0.0), |x, y| if y.0 > x.0 { y } else { x });
    assert_eq!(number(&found["best"]["std_error"]), best.1);
    // 7.9: four runs each, as above; the error of the mean is at most the sum.
    assert!((number(&found["log_marginal"]) - number(&exact["log_marginal"])).abs() < 7.9 * error);
    let text = String::from_utf8(curve(&smc).stdout).unwrap();
    assert!(text.lines().last().unwrap().contains(" +- "), "{text}");
}

#[test]
fn tokens_may_be_ordered_by_a_node_that_some_records_show() {
    let folder = Folder::new();
    folder.write("toy.csv", "i,j\n0,0\n0,1\n1,\n1,1\n0,\n");
    let exact = number(&folder.json(&[&SCORE[..], &["--method", "exact"]].concat())["log_marginal"]);
    let score = folder.json(&[&SCORE[..], &["--order", "by:j", "--seed", "1", "--runs", "8"]].concat());
    assert_eq!(score["order"], "by:j");
    assert!((number(&score["log_marginal"]) - exact).abs() <= 7.9 * number(&score["std_error"]), "{score}");
}

#[test]
fn particles_beyond_memory_are_refused_with_the_figure_before_anything_is_allocated() {
    let folder = table();
    let start = Instant::now();
    let base = ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--method", "smc"];
    let (code, error) = folder.fails(&[&base[..], &["--particles", "4000000000"]].concat());
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("GB") && error.contains("--particles") && error.lines().count() == 1, "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
    let (code, error) = folder.fails(&[&base[..], &["--particles", "18446744073709551615"]].concat());
    assert!(code == 1 && error.contains("GB") && error.lines().count() == 1, "{error}");
    // However little is allowed, both numbers say something.
    let (code, error) = folder.fails(&[&base[..], &["--particles", "32", "--max-memory", "1K"]].concat());
    let said = " kB of memory, more than the 1 kB allowed; raise --max-memory";
    assert!(code == 1 && error.contains("32 particles need about ") && error.contains(said), "{error}");
    // Where nothing is hidden no particle is needed, however many were asked for.
    let seen = ["score", "--model", "i -> j", "--data", "table.csv", "--method", "smc", "--particles", "20000000000"];
    assert_eq!(folder.json(&seen)["std_error"], 0.0);
    // Without a number there are as many as fit.
    let fitting = folder.json(&[&base[..], &["--max-memory", "2M", "--seed", "1"]].concat());
    let roomy = folder.json(&[&base[..], &["--seed", "1"]].concat());
    assert!(number(&fitting["particles"]) < number(&roomy["particles"]), "{fitting}");
    let small = ["--particles", "2000", "--max-memory", "100k"];
    assert_eq!(folder.fails(&[&base[..], &small].concat()).0, 1);
}

#[test]
fn a_signal_stops_particles_within_a_second() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = table();
        let base = ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--method", "smc", "-o", "out.json"];
        let args = [&base[..], &["--particles", "100000", "--runs", "50", "--heat", "1"]].concat();
        let mut child = folder.command(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(300));
        std::process::Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        let start = Instant::now();
        let status = child.wait().unwrap();
        assert!(start.elapsed() < Duration::from_secs(3), "it took {:?}", start.elapsed());
        assert_eq!(status.code(), Some(code));
        assert_eq!(folder.names(), ["table.csv"], "nothing is left behind");
    }
}

/// Ctrl-C after half a second, in a job without end: what is finished is the answer.
#[track_caller]
fn stopped(folder: &Folder, args: &[&str]) -> (Value, String) {
    let mut command = folder.command(args);
    let child = command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let start = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(3), "it took {:?}", start.elapsed());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("stopped on request: the answer is from what was finished"), "{said}");
    // A curve can have none.
    assert_eq!(said.ends_with("with --checkpoint FILE a run can go on later\n"), !args.contains(&"--a"), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

#[test]
fn without_a_checkpoint_a_signal_brings_what_is_finished() {
    let folder = table();
    let of = |command: &'static str, model: &'static str| [command, "--model", model, "--data", "table.csv", "--json"];
    let endless = ["--method", "smc", "--particles", "64", "--runs", "1000000", "--rejuvenate", "2", "--heat", "1"];
    let (score, _) = stopped(&folder, &[&of("score", "k[3] -> i j")[..], &endless].concat());
    assert!(warns(&score, "time_up") && number(&score["std_error"]) > 0.0, "{}", score["warnings"]);
    // Three models on two threads come one after another: the others have not begun.
    let (ranking, said) =
        stopped(&folder, &[&of("select", "k[2..4] -> i j")[..], &endless, &["--threads", "2"]].concat());
    assert_eq!(ranking["models"].as_array().unwrap().len(), 1, "{said}");
    assert!(ranking["interrupted"] == true && ranking["settled"] == false, "{}", ranking["verdict"]);
    assert!(said.contains("2 of 3 models had no answer in time; left out: k[3] -> i j, k[4] -> i j"), "{said}");
    // A curve: one point after another.
    let (curve, said) = stopped(&folder, &[&of("score", "k[3] -> i j")[..], &endless, &["--a", "1,2,3"]].concat());
    assert!(said.contains("values of a had no answer in time; left out"), "{said}");
    assert!(!curve["curve"].as_array().unwrap().is_empty(), "{curve}");
    let climb = ["--method", "vb", "--restarts", "1000000"];
    let (fit, _) = stopped(&folder, &[&of("fit", "k[3] -> i j")[..], &climb].concat());
    assert!(warns(&fit, "starts_cut"), "{}", fit["warnings"]);
}

#[test]
fn a_stopped_job_goes_on_from_its_checkpoint() {
    let folder = table();
    let base = ["score", "--model", "k[3] -> i j", "--data", "table.csv", "--method", "smc", "--seed", "1"];
    let sizes = ["--particles", "64", "--runs", "40", "--rejuvenate", "5", "--heat", "1"];
    let checkpoint = ["--checkpoint", "run.ck", "--checkpoint-every", "1ms"];
    let whole = folder.json(&[&base[..], &sizes].concat());
    // More runs than the time allows: the answer is from those that are finished, and the others can follow later.
    let many = ["--particles", "64", "--runs", "100000", "--rejuvenate", "5", "--heat", "1"];
    let cut = folder.json(&[&base[..], &many, &checkpoint, &["--time-limit", "300ms"]].concat());
    assert!(warns(&cut, "time_up"), "{}", cut["warnings"]);
    assert!(folder.names().contains(&"run.ck".to_owned()), "a job that was cut keeps its checkpoint");
    let more = folder.json(&[&base[..], &many, &checkpoint, &["--time-limit", "300ms"]].concat());
    let n_runs = |score: &Value| score["runs"].as_u64().unwrap();
    assert!(n_runs(&more) > n_runs(&cut), "{} {}", n_runs(&more), n_runs(&cut));
    std::fs::remove_file(folder.path().join("run.ck")).unwrap();
    let mut child = folder
        .command(&[&base[..], &sizes, &checkpoint, &["-o", "out.json", "--threads", "1"]].concat())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    child.wait().unwrap();
    let again = folder.json(&[&base[..], &sizes, &checkpoint].concat());
    assert_eq!(again["run_log_marginals"], whole["run_log_marginals"]);
    assert!(!folder.names().contains(&"run.ck".to_owned()), "a finished job removes its checkpoint");
}

#[test]
fn fit_by_particles_agrees_with_the_exact_posterior() {
    let folder = toy();
    let base = ["fit", "--model", "k[2] -> i j", "--data", "toy.csv", "--method"];
    let exact = folder.json(&[&base[..], &["exact"]].concat());
    let smc = ["smc", "--seed", "4", "--particles", "4096", "--runs", "8", "--hidden"];
    let fit = folder.json(&[&base[..], &smc].concat());
    // d_EP has a posterior spread of about 1, so its mean over 8 x 4096 particles is within a few hundredths.
    let d_ep = |fit: &Value| number(&fit["posterior"]["d_ep"]);
    assert!((d_ep(&fit) - d_ep(&exact)).abs() < 0.04, "{} {}", d_ep(&fit), d_ep(&exact));
    for table in ["i", "j", "k"] {
        let squares = |fit: &Value| number(&fit["posterior"]["table_sum_of_squares"][table]);
        let relative = squares(&fit) / squares(&exact) - 1.0;
        assert!(relative.abs() < 0.02, "{table}: {relative}");
    }
    let hidden = fit["hidden"].as_array().unwrap();
    assert_eq!(hidden.len(), 7);
    for record in hidden {
        let sum: f64 = record["hidden"]["k"].as_array().unwrap().iter().map(number).sum();
        assert!((sum - 1.0).abs() < 1e-9);
    }
    let allocated: u64 = fit["best"]["hidden"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|record| record["allocation"].as_array().unwrap())
        .map(|group| group["count"].as_u64().unwrap())
        .sum();
    assert_eq!(allocated, 9);
    assert!(warns(&fit, "labels_of_one_run"), "{}", fit["warnings"]);
}

#[test]
fn the_best_allocation_is_the_most_probable_tensor_of_the_list() {
    let folder = toy();
    let data = ["--model", "k[2] -> i j", "--data", "toy.csv"];
    let fit = folder.json(&[&["fit", "--method", "smc", "--seed", "4", "--particles", "2048"][..], &data].concat());
    let list = folder.json(&[&["enumerate"][..], &data].concat());
    let largest = list["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tensor| number(&tensor["log_pi"]))
        .fold(f64::NEG_INFINITY, f64::max);
    assert!((number(&fit["best"]["ln_pi"]) - largest).abs() < 1e-8, "{} {largest}", fit["best"]["ln_pi"]);
}

#[test]
fn unknown_cells_are_estimated_with_their_error() {
    let folder = Folder::new();
    folder.write("toy.csv", "i,j,count\n0,0,3\n0,1,1\n1,1,?\n1,0,2\n");
    let base = ["score", "--model", "k[2] -> i j", "--data", "toy.csv", "--a", "4", "--b", "1", "--method"];
    let exact = folder.json(&[&base[..], &["exact"]].concat());
    let smc = folder.json(&[&base[..], &["smc", "--seed", "1", "--runs", "8", "--particles", "1024"]].concat());
    let error = number(&smc["std_error"]);
    assert!((number(&smc["log_marginal"]) - number(&exact["log_marginal"])).abs() < 7.9 * error, "{error}");
    for (got, want) in smc["totals"].as_array().unwrap().iter().zip(exact["totals"].as_array().unwrap()).take(12) {
        assert_eq!(got["tokens"], want["tokens"]);
        let difference = number(&got["log_joint"]) - number(&want["log_joint"]);
        assert!(difference.abs() < 0.1, "{got} {want}");
    }
    // The ancestors of one run know nothing of the tokens in unknown cells.
    let one = folder.json(&[&base[..], &["smc", "--seed", "1", "--runs", "1", "--particles", "1024"]].concat());
    assert!(one["std_error"].is_null() && one["error_from"] == "nothing", "{one}");
    assert_eq!(one["warnings"][0]["kind"], "no_error_estimate", "{one}");
}

/// The flag is for people too.
#[test]
fn hidden_values_are_shown_as_text() {
    let folder = Folder::new();
    folder.write("t.csv", "i,j,count\na,x,5\na,y,1\nb,y,4\n");
    let fit =
        ["fit", "--model", "k[2] -> i j", "--data", "t.csv", "--method", "smc", "--particles", "50", "--seed", "1"];
    let without = folder.ok(&fit);
    let with = folder.ok(&[&fit[..], &["--hidden"]].concat());
    assert!(!without.contains("hidden values of each record"), "{without}");
    assert!(with.contains("hidden values of each record") && with.contains("i=a j=x  k="), "{with}");
}

#[test]
fn data_that_hide_nothing_are_said_to_need_no_particles() {
    let folder = toy();
    let text = folder.ok(&["score", "--model", "i -> j", "--data", "toy.csv", "--method", "smc"]);
    assert!(text.contains("no particles were needed"), "{text}");
    assert!(!text.contains("effective"), "{text}");
}

/// Thousands of records with hidden values are never exact: no time goes into a forecast.
#[test]
fn auto_does_not_think_of_exact_for_many_records() {
    let folder = Folder::new();
    let rows: String = (0..5200).map(|row| format!("{},{},1\n", row % 80, row / 80)).collect();
    folder.write("t.csv", format!("i,j,count\n{rows}"));
    let flags = ["score", "--model", "k[2] -> i j", "--data", "t.csv", "--seed", "1"];
    let score = folder.json(&flags);
    assert!(score["why"].as_str().unwrap().contains("more than 5000 distinct records"), "{score}");
}
