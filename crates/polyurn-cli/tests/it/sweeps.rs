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
        (&["--method", "vb", "--trials", "3"], &["--trials", "vb"]),
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

/// Three kinds of customers and what they buy.
fn shop() -> Folder {
    let folder = Folder::new();
    let mut text = String::from("who,what,count\n");
    for who in 0..24 {
        for what in 0..9 {
            let count = if what / 3 == who % 3 { 3 + (who * 7 + what * 5) % 6 } else { (who + what * what) % 5 / 4 };
            if count > 0 {
                text += &format!("w{who},t{what},{count}\n");
            }
        }
    }
    folder.write("shop.csv", &text);
    folder
}

const SHOP: [&str; 9] =
    ["score", "--model", "who -> k[3] -> what", "--data", "shop.csv", "--method", "vb", "--seed", "4"];

#[test]
fn a_maximised_size_beats_every_value_of_a_curve() {
    let folder = shop();
    // So many starts that one of them finds the best optimum.
    let tight = ["--tol", "1e-12", "--max-iter", "20000", "--restarts", "100"];
    let found = folder.json(&[&SHOP[..], &tight, &["--maximise", "a"]].concat());
    let a = number(&found["a"]);
    assert_eq!(found["maximised"][0]["name"], "a");
    assert_eq!((number(&found["maximised"][0]["value"]), number(&found["shape"])), (a, a));
    let curve = folder.json(&[&SHOP[..], &tight, &["--a", "1e-2..1e3:16"]].concat());
    assert!(number(&found["log_marginal"]) >= number(&curve["best"]["log_marginal"]), "{found} {curve}");
    let same = folder.json(&[&SHOP[..], &tight, &["--a", &a.to_string()]].concat());
    assert!((number(&found["log_marginal"]) - number(&same["log_marginal"])).abs() < 1e-6, "{found} {same}");
    let parts = ["log_p_total", "log_arrangements", "log_p_sequence"].map(|part| number(&found[part]));
    assert!((parts.iter().sum::<f64>() - number(&found["log_marginal"])).abs() < 1e-10);
    let text = folder.run(&[&SHOP[..], &["--maximize", "k,what"]].concat());
    let shown = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(shown.contains("maximised    pseudo-count of k = "), "{shown}");
    // Tables with sizes of their own come from no common base measure.
    assert!(String::from_utf8_lossy(&text.stderr).contains("do not come from one base measure"));
}

#[test]
fn a_fit_has_the_prior_that_was_maximised() {
    let folder = shop();
    let fit = |more: &[&str]| folder.json(&[&["fit"], &SHOP[1..], more].concat());
    let tight = ["--tol", "1e-12", "--max-iter", "20000", "--restarts", "100"];
    let free = fit(&[&tight[..], &["--maximise", "a"]].concat());
    let a = number(&free["maximised"][0]["value"]).to_string();
    let held = fit(&[&tight[..], &["--a", &a]].concat());
    for name in ["objective", "kl_divergence"] {
        let (free, held) = (number(&free[name]), number(&held[name]));
        assert!((free / held - 1.0).abs() < 1e-6, "{name}: {free} {held}");
    }
    assert_eq!(free["intensity"]["shape"], held["intensity"]["shape"]);
    let trace: Vec<f64> = free["objective_trace"].as_array().unwrap().iter().map(number).collect();
    assert!(trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9));
}

#[test]
fn lists_of_pseudo_counts_make_a_grid() {
    let folder = shop();
    let grid = ["--pseudo-count", "k=0.1,1", "--pseudo-count", "what=0.01..1:3", "--a", "5"];
    let curve = folder.json(&[&SHOP[..], &grid].concat());
    let points = curve["curve"].as_array().unwrap();
    assert_eq!(points.len(), 6);
    let one = ["--pseudo-count", "k=1", "--pseudo-count", "what=0.1", "--a", "5"];
    let one = folder.json(&[&SHOP[..], &one].concat());
    assert_eq!(points[4]["pseudo_counts"], serde_json::json!({ "k": 1.0, "what": 0.1 }));
    assert_eq!(points[4]["log_marginal"], one["log_marginal"]);
    let logs: Vec<f64> = points.iter().map(|point| number(&point["log_marginal"])).collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(number(&curve["best"]["log_marginal"]), largest);
    let mean = largest + (logs.iter().map(|log| (log - largest).exp()).sum::<f64>() / 6.0).ln();
    assert!((number(&curve["log_marginal"]) - mean).abs() < 1e-10);
    // Any engine makes one.
    let exact = ["score", "--model", "who -> what", "--data", "shop.csv", "--pseudo-count", "what=0.1,1", "--a", "1,2"];
    assert_eq!(folder.json(&exact)["curve"].as_array().unwrap().len(), 4);
    let text = folder.run(&exact);
    let shown = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(shown.contains("a and what log-uniform on these points"), "{shown}");
}

#[test]
fn sizes_that_cannot_be_maximised_are_refused() {
    let folder = shop();
    let refused = |more: &[&str], words: &str| {
        let output = folder.run(&[&SHOP[..], more].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(words) && message.lines().count() == 1, "{message}");
    };
    refused(&["--maximise", "when"], "expected `a` or nodes of the model, which are who, k, what");
    refused(&["--maximise", "k", "--pseudo-count", "k=0.1,1"], "leave one of the two out");
    refused(&["--maximise", "a", "--a", "1,2"], "leave one of the two out");
    refused(&["--maximise", "k,k"], "named twice");
    refused(&["--pseudo-count", "k=1e-5..1:2000", "--a", "1e-5..1:2000"], "more than 100000 points");
    refused(&["--pseudo-count", "k=1,x"], "`x` is not a positive number");
    let output = folder.run(&[&["fit"], &SHOP[1..5], &["--method", "em", "--maximise", "a"]].concat());
    assert_eq!(output.status.code(), Some(2));
    let output = folder.run(&[&["fit"], &SHOP[1..], &["--pseudo-count", "k=0.1,1"]].concat());
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("--pseudo-count: give one value here"), "{message}");
}

#[test]
fn fractions_are_taken_by_vb_and_em_alone() {
    let folder = Folder::new();
    folder.write("half.csv", "i,j,count\na,x,2.5\na,y,1\nb,y,0.25\nc,x,1e-3\n");
    let model = ["--model", "k[2] -> i j", "--data", "half.csv", "--seed", "1"];
    let score = folder.json(&[&["score"], &model[..], &["--method", "vb"]].concat());
    assert_eq!((number(&score["tokens"]), score["records"].as_u64()), (3.751, Some(4)));
    let fit = folder.json(&[&["fit"], &model[..], &["--method", "em", "--prior", "none"]].concat());
    assert_eq!(number(&fit["tokens"]), 3.751);
    assert!((number(&fit["intensity"]["mean"]) - 3.751).abs() < 1e-12, "{fit}");
    for method in ["exact", "smc", "naive", "auto"] {
        let output = folder.run(&[&["score"], &model[..], &["--method", method]].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        let place = "half.csv, line 2, column count: count `2.5` is not whole";
        assert!(message.contains(place) && message.lines().count() == 1, "{message}");
    }
}

/// Of a fit that a time limit cut short: starts that had ended.
fn n_finished(fit: &Value) -> u64 {
    let mut warnings = fit["warnings"].as_array().unwrap().iter();
    let cut = warnings.find(|warning| warning["kind"] == "starts_cut").unwrap_or_else(|| panic!("{fit}"));
    cut["finished"].as_u64().unwrap_or_else(|| panic!("{cut}"))
}

#[test]
fn a_cut_fit_goes_on_from_its_checkpoint_and_no_other_one_does() {
    let folder = shop();
    folder.write("other.csv", "who,what,count\nw0,t0,1\nw1,t1,2\nw2,t2,4\n");
    let fit = |data: &'static str, more: &[&'static str]| -> Vec<&'static str> {
        let base = ["fit", "--model", "k[3] -> who what", "--data", data, "--seed", "4", "--checkpoint", "run.ck"];
        [&base, more].concat()
    };
    for (method, others) in [
        (
            "em",
            vec![
                vec!["--method", "em", "--update", "together"],
                vec!["--method", "em", "--mode", "density", "--a", "900"],
            ],
        ),
        ("vb", vec![vec!["--method", "vb", "--maximise", "a"], vec!["--method", "em"]]),
        ("dual-em", vec![vec!["--method", "icm"], vec!["--method", "dual-em", "--a", "2"]]),
    ] {
        let own = |data, more: &[&'static str]| fit(data, &[&["--method", method], more].concat());
        let cut = folder.json(&own("shop.csv", &["--restarts", "1000000", "--time-limit", "1s"]));
        let n_done = n_finished(&cut);
        assert!(n_done > 3 && folder.names().contains(&"run.ck".to_owned()), "{method}: {n_done}");
        let best = cut["best_restart"].as_u64().unwrap() as usize;
        let objectives: Vec<f64> = cut["restart_objectives"].as_array().unwrap().iter().map(number).collect();
        assert_eq!(objectives[best], objectives.iter().copied().fold(f64::NEG_INFINITY, f64::max), "{method}");
        let refused = |args: &[&str]| {
            let (code, error) = folder.fails(args);
            assert_eq!(code, 2, "{error}");
            assert!(error.contains("run.ck") && error.contains("belongs to"), "{method}: {error}");
        };
        others.iter().for_each(|other| refused(&fit("shop.csv", other)));
        refused(&own("other.csv", &["--restarts", "3"]));
        // Starts that are finished are not repeated: a moment brings them all back.
        let again = folder.json(&own("shop.csv", &["--restarts", "1000000", "--time-limit", "1ms"]));
        let n_again = n_finished(&again);
        assert!(n_again >= n_done, "{method}: {n_again} of {n_done}");
        // Fewer starts are taken from it, and the others stay.
        let fewer = folder.json(&own("shop.csv", &["--restarts", "2"]));
        let kept: Vec<&str> =
            fewer["warnings"].as_array().unwrap().iter().map(|warning| warning["kind"].as_str().unwrap()).collect();
        assert!(kept.contains(&"runs_kept"), "{method}: {kept:?}");
        let again = folder.json(&own("shop.csv", &["--restarts", "1000000", "--time-limit", "1ms"]));
        assert!(n_finished(&again) >= n_again, "{method}");
        // The answer is that of an unbroken run, whose checkpoint goes when it is done.
        std::fs::remove_file(folder.path().join("run.ck")).unwrap();
        let unbroken = folder.json(&own("shop.csv", &["--restarts", "2"]));
        assert!(!folder.names().contains(&"run.ck".to_owned()), "{method}");
        assert_eq!(fewer["restart_objectives"], unbroken["restart_objectives"], "{method}");
        assert_eq!(fewer["tables"], unbroken["tables"], "{method}");
    }
}

/// Names of tied nodes stand for one table.
#[test]
fn a_size_goes_by_the_name_that_it_was_asked_for() {
    let folder = Folder::new();
    folder.write("pairs.csv", "i,j,count\na,b,9\nb,a,7\nc,c,5\na,a,1\n");
    let score = ["score", "--model", "k[2] -> i j; i ~ j", "--data", "pairs.csv", "--method", "vb", "--seed", "1"];
    let found = folder.json(&[&score[..], &["--maximise", "j,a"]].concat());
    let names: Vec<&str> =
        found["maximised"].as_array().unwrap().iter().map(|own| own["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "j"], "{found}");
}

#[test]
fn a_fit_has_all_digits_of_its_bound() {
    let folder = Folder::new();
    let rows = "i,j,count\na,x,36028797018963971\na,y,36028797018963971\nb,y,36028797018963971\nb,x,7\n";
    folder.write("huge.csv", rows);
    let args = ["--model", "i -> j", "--data", "huge.csv", "--method", "vb", "--seed", "1"];
    let score = folder.json(&[&["score"], &args[..]].concat());
    let fit = folder.json(&[&["fit"], &args[..]].concat());
    assert_eq!(fit["log_marginal"], score["log_marginal"]);
}

#[test]
fn a_matrix_of_integers_says_what_is_wrong_with_a_fraction() {
    let folder = Folder::new();
    for (count, words) in [
        ("2.5", "is not whole, but the banner says `integer`; write `real` there"),
        ("25e-1", "is not whole, but the banner says `integer`; write `real` there"),
        ("3.0", "is not written as a whole number; write 3"),
        ("x.y", "is not a number"),
        ("-1.5", "is negative"),
    ] {
        folder.write("m.mtx", format!("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 {count}\n"));
        let args = ["score", "--model", "k[2] -> row column", "--data", "m.mtx", "--method", "vb"];
        let (code, message) = folder.fails(&args);
        assert!(code == 2 && message.contains(words) && message.contains("line 3"), "{count}: {message}");
    }
}

#[test]
fn a_start_that_is_stopped_is_an_answer_to_a_time_limit_and_to_nothing_else() {
    let folder = shop();
    let endless = ["--restarts", "1", "--tol", "0", "--max-iter", "1000000000", "--checkpoint", "run.ck"];
    let args = [&["fit"], &SHOP[1..], &endless].concat();
    let cut = folder.json(&[&args[..], &["--time-limit", "300ms"]].concat());
    let kinds: Vec<&str> =
        cut["warnings"].as_array().unwrap().iter().map(|warning| warning["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"starts_cut") && !kinds.contains(&"not_converged"), "{kinds:?}");
    assert!(cut["iterations"].as_u64().unwrap() > 1 && cut["converged"] == false);
    // It is not kept as if it had ended.
    let again = folder.json(&[&args[..], &["--time-limit", "100ms"]].concat());
    assert!(again["iterations"].as_u64() != cut["iterations"].as_u64(), "{again}");
    let mut child = folder.command(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn allocations_over_very_many_hidden_values_end_in_time_or_are_refused() {
    let folder = Folder::new();
    folder.write("few.csv", "x,y,count\na,p,1000000\nb,q,2000000\n");
    let args = ["fit", "--data", "few.csv", "--method", "dual-em", "--restarts", "1", "--model"];
    let from = std::time::Instant::now();
    let tucker = "h[20] -> i[20] -> x; h -> j[20] -> y; i -> j";
    let fit = folder.json(&[&args[..], &[tucker, "--time-limit", "1s", "--max-iter", "3"]].concat());
    assert!(fit["iterations"].as_u64().unwrap() > 0);
    // Generous: the machine may be busy.
    assert!(from.elapsed().as_secs() < 30);
    let chain = "x -> a[12] -> b[12] -> c[12] -> d[12] -> e[12] -> f[12] -> y";
    let (code, error) = folder.fails(&[&args[..], &[chain]].concat());
    assert!(code == 1 && error.contains("joint hidden values") && error.lines().count() == 1, "{code} {error}");
}
