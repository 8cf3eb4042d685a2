//! The engines that sweep, as a process: answers, flags, refusals, time limits.

use crate::support::Folder;
use serde_json::Value;

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";

fn toy() -> Folder {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    folder
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

const SCORE: [&str; 7] = ["score", "--model", "i -> k[3] -> j", "--data", "toy.csv", "--seed", "4"];
const FIT: [&str; 7] = ["fit", "--model", "k[3] -> i j", "--data", "toy.csv", "--seed", "4"];

#[test]
fn a_bound_is_called_a_bound_and_lies_below_the_evidence() {
    let folder = toy();
    let exact = folder.json(&[&SCORE[..], &["--method", "exact"]].concat());
    let vb = folder.json(&[&SCORE[..], &["--method", "vb"]].concat());
    assert_eq!((vb["bound"].as_str(), vb["method"].as_str()), (Some("lower"), Some("vb")));
    assert!(number(&vb["log_marginal"]) < number(&exact["log_marginal"]), "{vb}");
    assert!(vb["std_error"].is_null() && vb["converged"] == true, "{vb}");
    let parts = ["log_p_total", "log_arrangements", "log_p_sequence"].map(|part| number(&vb[part]));
    assert!((parts.iter().sum::<f64>() - number(&vb["log_marginal"])).abs() < 1e-12);
    assert_eq!(vb["log_p_total"], exact["log_p_total"]);
    let objectives: Vec<f64> = vb["restart_objectives"].as_array().unwrap().iter().map(number).collect();
    assert_eq!(objectives.len(), 4);
    let best = objectives.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // The evidence adds its parts with 32 digits, starts are compared with sixteen.
    assert!((best - number(&vb["log_marginal"])).abs() < 1e-12, "{vb}");
    let output = folder.run(&[&SCORE[..], &["--method", "vb"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("lower bound (ELBO)") && !text.contains("evidence"), "{text}");
}

#[test]
fn a_fit_has_its_trace_its_divergence_and_rows_that_add_up() {
    let folder = toy();
    for method in ["vb", "em", "dual-em", "icm"] {
        let fit = folder.json(&[&FIT[..], &["--method", method, "--max-iter", "7", "--tol", "0"]].concat());
        assert_eq!(fit["objective_trace"].as_array().unwrap().len(), 7, "{fit}");
        assert_eq!((fit["iterations"].as_u64(), fit["converged"].as_bool()), (Some(7), Some(false)));
        assert_eq!(fit["objective_trace"][6], fit["objective"]);
        assert!(number(&fit["kl_divergence"]) > 0.0, "{fit}");
        for row in fit["tables"].as_array().unwrap().iter().flat_map(|table| table["rows"].as_array().unwrap()) {
            let sum: f64 = row["mean"].as_array().unwrap().iter().map(number).sum();
            assert!((sum - 1.0).abs() < 1e-12, "{row}");
        }
        let kinds: Vec<&Value> = fit["warnings"].as_array().unwrap().iter().map(|warning| &warning["kind"]).collect();
        assert!(kinds.iter().any(|kind| **kind == "not_converged"), "{kinds:?}");
    }
}

#[test]
fn dual_em_reports_ln_pi_of_an_allocation_that_enumerate_lists() {
    let folder = toy();
    let fit = folder.json(&[&FIT[..], &["--method", "dual-em", "--restarts", "50"]].concat());
    let list = folder.json(&["enumerate", "--model", "k[3] -> i j", "--data", "toy.csv"]);
    let all: Vec<f64> = list["tensors"].as_array().unwrap().iter().map(|tensor| number(&tensor["log_pi"])).collect();
    let best = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert!((number(&fit["objective"]) - best).abs() < 1e-9, "{} {best}", fit["objective"]);
    assert!(fit["log_marginal"].is_null(), "{fit}");
}

#[test]
fn the_divergence_is_that_of_the_reconstructed_table() {
    let folder = toy();
    let fit = folder.json(&[&FIT[..], &["--method", "em", "--prior", "none"]].concat());
    let table = |name: &str| {
        let of = |table: &&Value| table["node"] == name;
        fit["tables"].as_array().unwrap().iter().find(of).unwrap()["rows"].as_array().unwrap().clone()
    };
    let (k, i, j) = (table("k"), table("i"), table("j"));
    let count = |i: usize, j: usize| -> f64 {
        let of = |line: &str| line.strip_prefix(&format!("{i},{j},")).and_then(|count| count.parse().ok());
        TOY.lines().find_map(of).unwrap_or(0.0)
    };
    let mut divergence = 0.0;
    for row in 0..3 {
        for column in 0..4 {
            let share = |k_value: usize| {
                number(&k[0]["mean"][k_value]) * number(&i[k_value]["mean"][row]) * number(&j[k_value]["mean"][column])
            };
            let fitted = 9.0 * (0..3).map(share).sum::<f64>();
            let x = count(row, column);
            divergence += fitted - x + if x > 0.0 { x * (x / fitted).ln() } else { 0.0 };
        }
    }
    assert!((divergence - number(&fit["kl_divergence"])).abs() < 1e-9, "{divergence} {}", fit["kl_divergence"]);
}

#[test]
fn a_start_can_be_given() {
    let folder = toy();
    folder.write(
        "start.json",
        r#"{"tables": {"k": [[0.2, 0.3, 0.5]], "i": [[1, 2, 1], [2, 1, 1], [1, 1, 3]],
            "j": [[1, 1, 2, 1], [2, 1, 1, 1], [1, 1, 1, 4]]}}"#,
    );
    for method in ["vb", "em", "dual-em", "icm"] {
        let args = [&FIT[..], &["--method", method, "--init", "start.json"]].concat();
        let fit = folder.json(&args);
        assert_eq!(fit["restarts"], 1);
        // The seed has no say any more.
        let again = folder.json(&[&args[..5], &["--seed", "99"], &args[7..]].concat());
        assert_eq!(fit["objective_trace"], again["objective_trace"]);
    }
}

#[test]
fn misused_flags_are_refused_in_one_line() {
    let folder = toy();
    folder.write("bad.json", r#"{"tables": {"k": [[0.2, 0.8]]}}"#);
    folder.write("odd.json", r#"{"tables": 3}"#);
    for (args, words) in [
        (&["--method", "exact", "--tol", "0"][..], &["--tol", "exact"][..]),
        (&["--method", "smc", "--init", "bad.json"], &["--init", "smc"]),
        (&["--method", "vb", "--mode", "density"], &["--mode", "vb"]),
        (&["--method", "vb", "--particles", "3"], &["--particles", "vb"]),
        (&["--method", "vb", "--prior", "none"], &["none", "em"]),
        (&["--method", "dual-em", "--mode", "density"], &["--mode", "dual-em"]),
        (&["--method", "icm", "--update", "cycle"], &["--update", "icm"]),
        (&["--method", "em", "--prior", "none", "--mode", "softmax"], &["--mode", "prior"]),
        (&["--method", "em", "--prior", "none", "--a", "2"], &["--a", "prior"]),
        (&["--method", "em", "--mode", "density"], &["below 1", "softmax"]),
        (&["--method", "em", "--hidden"], &["--hidden", "smc"]),
        (&["--method", "em", "--tol", "2"], &["--tol", "0 to below 1"]),
        (&["--method", "em", "--init", "bad.json"], &["`k`", "3 values"]),
        (&["--method", "em", "--init", "odd.json"], &["odd.json", "tables"]),
        (&["--method", "em", "--init", "none.json"], &["none.json"]),
        (&["--method", "em", "--init", "bad.json", "--restarts", "2"], &["--init", "--restarts"]),
    ] {
        let run = folder.run(&[&FIT[..], args].concat());
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(2), "{args:?}: {said}");
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{args:?}: {said}");
    }
}

#[test]
fn a_time_limit_answers_with_the_sweeps_that_are_done() {
    let folder = Folder::new();
    let rows: String = (0..4000).map(|n| format!("{},{}\n", (n * n) % 199, (n * 7 + n / 20) % 211)).collect();
    folder.write("table.csv", format!("i,j\n{rows}"));
    let args = ["fit", "--model", "k[40] -> i j", "--data", "table.csv", "--method", "vb", "--tol", "0"];
    let limited = ["--max-iter", "1000000000", "--restarts", "1", "--time-limit", "0.5s", "--seed", "1"];
    let fit = folder.json(&[&args[..], &limited].concat());
    assert!(number(&fit["seconds"]) < 5.0 && fit["converged"] == false, "{}", fit["seconds"]);
    let n_sweeps = fit["iterations"].as_u64().unwrap();
    assert!(n_sweeps >= 1);
    // The same number of sweeps repeats the bytes.
    let asked = n_sweeps.to_string();
    let again = folder.json(&[&args[..], &["--max-iter", &asked, "--restarts", "1", "--seed", "1"]].concat());
    assert_eq!(again["objective"], fit["objective"]);
}
