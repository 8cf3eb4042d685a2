//! Annealing as a process: estimates, brackets, flags, and when `auto` takes it.

use crate::support::Folder;
use serde_json::Value;

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";
const SCORE: [&str; 5] = ["score", "--model", "i -> k[2] -> j", "--data", "toy.csv"];
const ANNEAL: [&str; 8] = ["--method", "anneal", "--seed", "3", "--sweeps", "50", "--chain-sweeps", "60"];

fn toy() -> Folder {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    folder
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn a_bracket_holds_the_exact_value_and_the_estimate_is_within_its_errors() {
    let folder = toy();
    let exact = number(&folder.json(&SCORE)["log_marginal"]);
    let found = folder.json(&[&SCORE[..], &ANNEAL, &["--runs", "16", "--bracket"]].concat());
    assert_eq!((&found["method"], &found["bound"], &found["runs"]), (&"anneal".into(), &"bracket".into(), &16.into()));
    assert!(number(&found["lower"]) <= exact && exact <= number(&found["upper"]), "{found}");
    let z = (number(&found["log_marginal"]) - exact) / number(&found["std_error"]);
    assert!(z.abs() <= 4.5, "{z}: {found}");
    assert_eq!(found["run_upper_log_marginals"].as_array().unwrap().len(), 16);
    let forward = folder.json(&[&SCORE[..], &ANNEAL, &["--runs", "16"]].concat());
    assert_eq!((&forward["bound"], &forward["lower"]), (&"estimate".into(), &Value::Null));
    let z = (number(&forward["log_marginal"]) - exact) / number(&forward["std_error"]);
    assert!(z.abs() <= 4.5, "{z}: {forward}");
    // Without a bracket every run has chains of its own; one run has them all, whether another goes back or not.
    assert_ne!(forward["run_log_marginals"], found["run_log_marginals"]);
    let one = |more: &[&str]| folder.json(&[&SCORE[..], &ANNEAL, &["--runs", "1"], more].concat());
    assert_eq!(one(&[])["run_log_marginals"], one(&["--bracket"])["run_log_marginals"]);
    let text = folder.ok(&[&SCORE[..], &ANNEAL, &["--bracket"]].concat());
    assert!(
        text.contains("at least") && text.contains("at most") && text.contains("have reached the posterior"),
        "{text}"
    );
}

/// Eight classes where six are true: chains end in modes that are up to fifty nats apart. Runs that all go by the same chain agree
/// with each other and are too low by more than their error says; runs with chains of their own show how far apart modes are.
#[test]
fn errors_tell_of_modes_that_chains_miss() {
    let folder = Folder::new();
    let model = "r[6] -> a[5] b[5] c[5] d[5] e[5] f[5] g[5]";
    let simulate = ["simulate", "--model", model, "--a", "21", "--tokens", "4177", "--seen", "a,b,c,d,e,f,g"];
    folder.ok(&[&simulate[..], &["--seed", "1", "-o", "people.csv"]].concat());
    // Two long runs (6 s, seeds 1 and 2) say -11380.86 +- 0.21 and -11380.69 +- 0.10.
    let (truth, its_error) = (-11380.7, 0.2_f64);
    let short = ["--sweeps", "150", "--chain-sweeps", "150", "--particles", "1", "--chains", "8", "--runs", "4"];
    for seed in ["1", "2", "3"] {
        let score = ["score", "--model", "lca(8)", "--data", "people.csv", "--method", "anneal", "--seed", seed];
        let found = folder.json(&[&score[..], &short].concat());
        let error = number(&found["std_error"]).hypot(its_error);
        let z = (number(&found["log_marginal"]) - truth) / error;
        assert!(z.abs() <= 4.5, "seed {seed}: {z}: {found}");
    }
}

#[test]
fn threads_and_kernels_change_no_number() {
    let folder = toy();
    let of = |more: &[&str]| {
        let found = folder.json(&[&SCORE[..], &ANNEAL, &["--bracket"], more].concat());
        [&found["run_log_marginals"], &found["run_upper_log_marginals"], &found["log_marginal"]].map(Value::clone)
    };
    let want = of(&["--threads", "1", "--kernel", "scalar"]);
    assert_eq!(of(&["--threads", "2"]), want);
    assert_ne!(of(&["--particles", "3"])[0], want[0]);
}

/// Instructions and a number of runs say nothing about particles: the engine is chosen as without them.
#[test]
fn runs_and_kernels_do_not_choose_the_engine() {
    let folder = Folder::new();
    let simulate = ["simulate", "--model", "r[2] -> i[6] j[7]", "--seen", "i,j", "--a", "9", "--tokens", "1500"];
    folder.ok(&[&simulate[..], &["--seed", "4", "-o", "data.csv"]].concat());
    let score = |more: &[&str]| {
        let flags = ["score", "--model", "r[2] -> i j", "--data", "data.csv", "--a", "9", "--seed", "1"];
        folder.json(&[&flags[..], more].concat())
    };
    let plain = score(&[]);
    assert_eq!(plain["method"], "anneal");
    assert_eq!(score(&["--kernel", "scalar"])["run_log_marginals"], plain["run_log_marginals"]);
    let two = score(&["--runs", "2"]);
    assert_eq!((&two["method"], &two["runs"]), (&"anneal".into(), &2.into()));
    assert!(two["why"].as_str().unwrap().starts_with("runs were asked for"), "{two}");
    assert_eq!(score(&["--particles", "64"])["method"], "smc");
    // What happened along the way is in the result, for the report.
    let trace = plain["ess_trace"].as_array().unwrap();
    let fewest = trace.iter().map(|point| number(&point[1])).fold(f64::INFINITY, f64::min);
    assert!(trace.len() > 100 && fewest >= number(&plain["ess_min"]), "{plain}");
}

#[test]
fn flags_of_other_engines_are_refused_both_ways() {
    let folder = toy();
    for (flags, said) in [
        (&["--method", "smc", "--bracket"][..], "--bracket: --method smc has no use for it"),
        (&["--method", "exact", "--sweeps", "5"], "--sweeps: --method exact has no use for it"),
        (&["--method", "anneal", "--rejuvenate", "5"], "--rejuvenate: --method anneal has no use for it"),
        (&["--method", "anneal", "--restarts", "5"], "--restarts"),
    ] {
        let (code, message) = folder.fails(&[&SCORE[..], flags].concat());
        assert!(code == 2 && message.contains(said), "{code} {message}");
    }
    // Asked for a bracket, `auto` anneals, however small the problem.
    assert_eq!(folder.json(&[&SCORE[..], &["--bracket", "--sweeps", "5"]].concat())["method"], "anneal");
}

#[test]
fn from_twenty_thousand_tokens_on_auto_anneals_and_select_shows_brackets() {
    let folder = Folder::new();
    let model = "k[3] -> x[4] y[5] z[3]";
    folder.ok(&[
        "simulate", "--model", model, "--tokens", "20000", "--seen", "x,y,z", "--seed", "4", "--a", "9", "-o", "t.csv",
    ]);
    let found =
        folder.json(&["score", "--model", "k[3] -> x y z", "--data", "t.csv", "--seed", "1", "--time-limit", "8s"]);
    assert_eq!((&found["method"], &found["bound"]), (&"anneal".into(), &"bracket".into()), "{found}");
    assert!(number(&found["lower"]) < number(&found["upper"]));
    let select = ["select", "--model", "k[1,2] -> x y z", "--data", "t.csv", "--seed", "1", "--sensitivity", "none"];
    let ranking = folder.json(&[&select[..], &["--time-limit", "10s"]].concat());
    let annealed = ranking["models"].as_array().unwrap().iter().find(|model| model["method"] == "anneal").unwrap();
    assert!(number(&annealed["lower"]) < number(&annealed["upper"]), "{annealed}");
    // One component is exact: what is said of the difference is as sure as the bracket of the other.
    for model in ranking["models"].as_array().unwrap() {
        let (apart, error) = (number(&model["log_bayes_factor"]), number(&model["log_bayes_factor_bounds_error"]));
        let is_between =
            number(&model["log_bayes_factor_lower"]) <= apart && apart <= number(&model["log_bayes_factor_upper"]);
        assert!(is_between && error == if apart == 0.0 { 0.0 } else { 0.025 }, "{model}");
    }
}

/// Two models with brackets: each end of the difference rests on two bounds.
#[test]
fn the_ends_of_a_difference_have_the_errors_of_both_brackets() {
    let folder = toy();
    let compare = ["compare", "--model", "i -> k[2] -> j", "--model", "k[2] -> i j", "--data", "toy.csv"];
    let flags = [&compare[..], &ANNEAL, &["--bracket", "--sensitivity", "none"]].concat();
    let found = folder.json(&flags);
    let models = found["models"].as_array().unwrap();
    let (best, other) = (&models[0], &models[1]);
    assert_eq!(
        (&best["log_bayes_factor_bounds_error"], &other["log_bayes_factor_bounds_error"]),
        (&0.0.into(), &0.05.into())
    );
    assert_eq!(number(&other["log_bayes_factor_lower"]), number(&other["lower"]) - number(&best["upper"]));
    assert_eq!(number(&other["log_bayes_factor_upper"]), number(&other["upper"]) - number(&best["lower"]));
    let text = folder.ok(&flags);
    let said = "Each end of a bracket holds with a probability of 97.5 %, and each end of what two of them leave to a difference with 95 %, as \
                far as chains see the posterior.";
    assert!(text.contains(said), "{text}");
}

/// Where annealed runs scatter, particles are asked, too, and the result says why their number was taken.
#[test]
fn auto_takes_particles_where_annealing_turns_out_worse() {
    let folder = Folder::new();
    let simulate = ["simulate", "--model", "r[2] -> i[4] j[4] k[4]", "--seen", "i,j,k", "--a", "4", "--tokens", "1500"];
    folder.ok(&[&simulate[..], &["--seed", "1", "-o", "data.csv"]].concat());
    let score = ["score", "--model", "r[10] -> i j k", "--data", "data.csv", "--a", "1", "--seed", "2"];
    let found = folder.json(&score);
    let why = found["why"].as_str().unwrap();
    assert_eq!(found["method"], "smc", "{why}");
    assert!(
        why.contains("annealing should be off by about") && why.contains("annealed runs left an error of"),
        "{why}"
    );
    assert!(why.ends_with("so that of particles is taken"), "{why}");
    // Runs of 8,192 particles (seeds 1 to 3) say -189.32 +- 0.18, -189.12 +- 0.21 and -188.80 +- 0.33: -189.1 +- 0.13.
    let z = (number(&found["log_marginal"]) + 189.1) / number(&found["std_error"]).hypot(0.13);
    assert!(z.abs() <= 4.5, "{z}: {found}");
}

/// Of simulated data the hidden values are known: runs back start from them, and the upper bound rests on no chain.
#[test]
fn hidden_values_that_data_were_simulated_with_make_the_bracket_exact() {
    let folder = Folder::new();
    let simulate = ["simulate", "--model", "g[2] -> h[3]; g -> x[3]; h -> y[2]", "--a", "2", "--tokens", "9", "--full"];
    let scored = ["score", "--model", "g[2] -> h[3]; g -> x[3]; h -> y[2]", "--a", "2"];
    let mut n_failed = 0;
    for seed in 1..=20 {
        let seed = seed.to_string();
        folder.ok(&[&simulate[..], &["--seed", &seed, "-o", "full.csv"]].concat());
        let simulated = [
            "--data",
            "full.csv",
            "--bracket",
            "--hide",
            "g,h",
            "--runs",
            "4",
            "--sweeps",
            "20",
            "--chain-sweeps",
            "40",
        ];
        let found = folder.json(&[&scored[..], &simulated, &["--seed", &seed]].concat());
        let rests_on = found["bracket_rests_on"].as_str().unwrap();
        assert!(rests_on.contains("simulated from this model and prior"), "{found}");
        // The same tokens without these columns.
        let full = std::fs::read_to_string(folder.path().join("full.csv")).unwrap();
        let seen: String =
            full.lines().map(|line| line.split(',').skip(2).collect::<Vec<_>>().join(",") + "\n").collect();
        folder.write("seen.csv", seen);
        let exact =
            number(&folder.json(&[&scored[..], &["--data", "seen.csv", "--method", "exact"]].concat())["log_marginal"]);
        n_failed += u32::from(number(&found["lower"]) > exact || exact > number(&found["upper"]));
    }
    // At most one of 20, and 4.5 standard errors of 0.97.
    assert!(n_failed <= 1 + 4, "{n_failed}");
    let refused = |flags: &[&str], said: &str| {
        let (code, message) = folder.fails(&[&scored[..], flags].concat());
        assert!(code == 2 && message.contains(said), "{code} {message}");
    };
    refused(&["--data", "full.csv", "--hide", "g,h"], "--bracket");
    refused(&["--data", "full.csv", "--bracket", "--hide", "k"], "--hide k");
    refused(&["--data", "seen.csv", "--bracket", "--hide", "x"], "the data have no column `g`");
    // A node whose size the model leaves to the data keeps that of its column.
    let open =
        ["score", "--model", "g[2] -> h[3]; g -> x; h -> y[2]", "--a", "2", "--data", "full.csv", "--sweeps", "20"];
    let found = folder.json(&[&open[..], &["--bracket", "--hide", "g,h,x"]].concat());
    assert!(number(&found["lower"]) <= number(&found["upper"]), "{found}");
}

/// Five tokens and far more names than they use: what no token has is no burden, and no labelling is taken for granted.
#[test]
fn names_that_no_token_has_do_not_spoil_the_sum_over_labellings() {
    let folder = Folder::new();
    folder.write("five.csv", "i,j,count\n0,0,2\n1,1,1\n2,2,1\n0,1,1\n");
    for model in ["k[20] -> i j", "g[5] -> h[5]; g -> i; h -> j"] {
        let base = ["score", "--model", model, "--data", "five.csv", "--a", "1", "--seed", "1"];
        let exact = folder.json(&[&base[..], &["--method", "exact"]].concat())["log_marginal"].as_f64().unwrap();
        let flags = ["--method", "anneal", "--bracket", "--runs", "8", "--sweeps", "300"];
        let found = folder.json(&[&base[..], &flags].concat());
        let number = |name: &str| found[name].as_f64().unwrap();
        assert!(number("lower") < exact && exact < number("upper"), "{model}: {exact} {found}");
        let z = (number("log_marginal") - exact) / number("std_error");
        assert!(z.abs() <= 4.5, "{model}: {exact} {z} {found}");
        assert_eq!(found["assumes_separated_labels"], false, "{found}");
    }
}

/// Who asks for a reference where labellings cannot be summed over is told what is taken for granted, and the lower bound does without.
#[test]
fn labels_that_are_taken_to_be_far_apart_are_warned_of() {
    let folder = Folder::new();
    folder.write("five.csv", "i,j,count\n0,0,2\n1,1,1\n2,2,1\n0,1,1\n");
    let base = ["score", "--model", "g[5] -> h[5]; g -> i; h -> j", "--data", "five.csv", "--a", "1", "--seed", "1"];
    let exact = folder.json(&[&base[..], &["--method", "exact"]].concat())["log_marginal"].as_f64().unwrap();
    let flags = ["--method", "anneal", "--path", "reference", "--bracket", "--runs", "8", "--sweeps", "300"];
    let found = folder.json(&[&base[..], &flags].concat());
    assert_eq!(found["assumes_separated_labels"], true);
    assert!(found["warnings"].to_string().contains("labels_assumed"), "{found}");
    assert!(found["lower"].as_f64().unwrap() < exact && exact < found["upper"].as_f64().unwrap(), "{exact} {found}");
    let many = ["score", "--model", "k[1001] -> i j", "--data", "five.csv", "--method", "anneal"];
    let (code, error) = folder.fails(&[&many[..], &["--path", "reference"]].concat());
    assert!(code == 2 && error.contains("--path prior"), "{code} {error}");
}

/// One run does not tell its error: a curve says so at every value, and prints no digits that nobody can vouch for.
#[test]
fn a_curve_says_which_errors_are_unknown() {
    let folder = Folder::new();
    folder.write("t.csv", "i,j,count\n0,0,9\n0,1,2\n1,1,8\n2,0,1\n");
    let few =
        ["--method", "anneal", "--runs", "1", "--sweeps", "10", "--chains", "1", "--chain-sweeps", "20", "--seed", "1"];
    let flags = [&["score", "--model", "r[2] -> i j", "--data", "t.csv", "--a", "1,2"], &few[..]].concat();
    let shown = folder.ok(&flags);
    assert_eq!(shown.matches("error unknown").count(), 3, "two values and their mean: {shown}");
    let json = folder.json(&flags);
    assert!(json["std_error"].is_null() && json["curve"][0]["std_error"].is_null(), "{json}");
}
