//! `select` and `compare`: what they rank, how, and what they refuse.

use crate::support::Folder;
use serde_json::Value;

/// Answers of 216 students to four questions, from the demonstration.
const DILEMMAS: &str = include_str!("../../src/demo_data/dilemmas.csv");

fn dilemmas() -> Folder {
    let folder = Folder::new();
    folder.write("dilemmas.csv", DILEMMAS);
    folder
}

/// A model file with an `a` of its own.
const OWN_A: &str = r#"{ "a": 4, "nodes": [{"name": "passenger"}, {"name": "critic"}, {"name": "doctor"}, {"name": "director"}], "edges": [] }"#;

/// One line, exit code 2.
#[track_caller]
fn refuses(folder: &Folder, flags: &[&str], message: &str) {
    let (code, said) = folder.fails(flags);
    assert!(code == 2 && said.contains(message), "{code}: {said}");
}

/// The models' sizes of `r` and probabilities, best first.
fn probabilities(result: &Value) -> Vec<(u64, f64)> {
    let of = |model: &Value| (model["sizes"]["r"].as_u64().unwrap(), model["posterior_probability"].as_f64().unwrap());
    result["models"].as_array().unwrap().iter().map(of).collect()
}

#[test]
fn two_classes_of_students_are_found_and_the_answer_moves_with_a() {
    let folder = dilemmas();
    let result = folder.json(&["select", "--model", "lca(1..5)", "--data", "dilemmas.csv", "--seed", "1"]);
    let found = probabilities(&result);
    assert_eq!(found[0].0, 2);
    assert!((found.iter().map(|one| one.1).sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(found.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{found:?}");
    assert_eq!(result["best"]["sizes"]["r"], 2);
    assert_eq!(result["models"][0]["log_bayes_factor"], 0.0);
    for model in result["models"].as_array().unwrap() {
        // A bound is a bound: no estimate is below it by more than its error.
        let error = model["std_error"].as_f64().unwrap_or(1e-9);
        assert!(model["elbo"].as_f64().unwrap() <= model["log_marginal"].as_f64().unwrap() + 4.5 * error, "{model}");
    }
    // With a strong prior the data do not tell two, three and four classes apart.
    let at = |a: f64| result["sensitivity"].as_array().unwrap().iter().find(|one| one["a"] == a).unwrap().clone();
    assert_eq!(at(0.25)["level"].as_array().unwrap().len(), 1);
    assert!(at(4.0)["level"].as_array().unwrap().len() >= 3, "{}", at(4.0));
    assert!(result["movement"].as_str().unwrap().starts_with("The answer moves with a: r = 2 at a = 0.25 to 1;"));
}

/// The Bayes factor of two over three classes is three, give or take: the verdict must not go by the seed.
#[test]
#[ignore = "two minutes: make test-long"]
fn the_verdict_of_the_students_is_that_of_any_seed() {
    let folder = dilemmas();
    for seed in ["2", "3", "4", "5", "6", "7", "8", "9"] {
        let flags = ["select", "--model", "lca(1..5)", "--data", "dilemmas.csv", "--seed", seed];
        let result = folder.json(&[&flags[..], &["--no-bound"]].concat());
        let verdict = result["verdict"].as_str().unwrap();
        assert!(verdict.starts_with("r = 2 has the highest evidence, though not by far: 1."), "seed {seed}: {verdict}");
        let movement = result["movement"].as_str().unwrap();
        let moves = "The answer moves with a: r = 2 at a = 0.25 to 1; r = 2 and r = 3 level at a = 2;";
        assert!(movement.starts_with(moves) && movement.ends_with("level at a = 4."), "seed {seed}: {movement}");
    }
}

/// Nobody is left to wonder why the answer at other sizes of the prior is not there.
#[test]
fn what_was_not_tried_at_other_sizes_of_the_prior_is_said() {
    let folder = dilemmas();
    let base = ["select", "--model", "lca(2..3)", "--data", "dilemmas.csv", "--seed", "1"];
    let with = |flags: &[&str]| folder.json(&[&base[..], flags].concat());
    let said = |result: &Value| result["sensitivity_not_tried"].as_str().map(str::to_owned);
    let few = ["--method", "smc", "--particles", "8", "--runs", "2", "--rejuvenate", "1", "--heat", "1"];
    assert_eq!(said(&with(&few)), None);
    assert_eq!(said(&with(&[&few[..], &["--sensitivity", "none"]].concat())), None);
    let own = with(&[&few[..], &["--pseudo-count", "r=1"]].concat());
    assert!(own["sensitivity"].as_array().unwrap().len() > 1, "some tables follow a");
    // All the time goes to the models themselves.
    let endless = ["--method", "smc", "--particles", "8", "--runs", "1000000", "--heat", "1", "--time-limit", "1s"];
    let hasty = with(&endless);
    assert_eq!(said(&hasty).unwrap(), "There was no time for other sizes of the prior: a = 0.25, 0.5, 2 and 4.");
    let text = folder.ok(&[&base[..], &endless].concat());
    assert!(text.ends_with("There was no time for other sizes of the prior: a = 0.25, 0.5, 2 and 4.\n"), "{text}");
    // A hundred times as many answers, in as many distinct records.
    let times = |factor: u64| {
        let mut rows = DILEMMAS.lines();
        let head = rows.next().unwrap().to_owned();
        let row = |row: &str| {
            let (values, count) = row.rsplit_once(',').unwrap();
            format!("{values},{}", count.parse::<u64>().unwrap() * factor)
        };
        let rows: Vec<String> = std::iter::once(head).chain(rows.map(row)).collect();
        folder.write("many.csv", rows.join("\n"));
        let hasty = ["--particles", "2", "--runs", "1", "--rejuvenate", "0", "--no-bound"];
        folder
            .json(&[&["select", "--model", "lca(2..3)", "--data", "many.csv", "--method", "smc"], &hasty[..]].concat())
    };
    assert_eq!(times(46)["sensitivity"].as_array().unwrap().len(), 5, "19,872 tokens in two models");
    let many = times(47);
    assert!(many["sensitivity"].as_array().unwrap().is_empty());
    assert!(said(&many).unwrap().contains("that would take long: give --sensitivity 0.25,4"), "{many}");
}

/// Seven answers of five categories, 4,177 people in 6 classes: as large as surveys get, and four other sizes beside the true one.
#[test]
#[ignore = "half a minute: make test-long"]
fn six_classes_of_four_thousand_people_are_found() {
    let folder = Folder::new();
    let model = "r[6] -> a[5] b[5] c[5] d[5] e[5] f[5] g[5]";
    let simulate = ["simulate", "--model", model, "--a", "21", "--tokens", "4177", "--seen", "a,b,c,d,e,f,g"];
    folder.ok(&[&simulate[..], &["--seed", "1", "-o", "people.csv"]].concat());
    let result = folder.json(&["select", "--model", "lca(4..8)", "--data", "people.csv", "--seed", "1"]);
    assert_eq!(result["best"]["sizes"]["r"], 6, "{}", result["verdict"]);
    assert_eq!(result["settled"], true, "{}", result["verdict"]);
}

/// Numbers of states are cut off where sums of them would be beyond all numbers: then there are more.
#[test]
fn a_forecast_that_was_cut_off_is_said_to_be_exceeded() {
    let folder = Folder::new();
    let rows: String = (0..2000).map(|n| format!("{},{}\n", n % 40, (n * 7 + n / 40) % 40)).collect();
    folder.write("big.csv", format!("i,j\n{rows}"));
    let score = |more: &[&str]| {
        let flags = [&["score", "--model", "i -> k[6] -> j", "--data", "big.csv"], more].concat();
        folder.run(&flags)
    };
    // Enough for an answer on a busy machine; the forecast is what is looked at.
    let auto = String::from_utf8(score(&["--time-limit", "4s"]).stdout).unwrap();
    assert!(auto.contains("an exact answer would take more than 5e249 states"), "{auto}");
    let exact = String::from_utf8(score(&["--method", "exact"]).stderr).unwrap();
    assert!(exact.contains("exact: more than 5e249 states, far beyond the limit of 4 GB"), "{exact}");
}

/// Who did not name an engine is told why it was taken.
#[test]
fn the_engine_of_each_model_is_explained() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(1..3)", "--data", "dilemmas.csv", "--seed", "1", "--sensitivity", "none"];
    // Enough for a score of all three on a busy machine.
    let text = folder.ok(&[&flags[..], &["--time-limit", "15s"]].concat());
    assert!(text.contains("\nBy exact: r = 1; tokens can be allocated in one way only"), "{text}");
    assert!(text.contains("\nBy smc: r = 2 and 3; an exact answer"), "{text}");
    let asked = folder.ok(&[&flags[..], &["--method", "smc", "--particles", "16", "--runs", "2"]].concat());
    assert!(!asked.contains("\nBy "), "{asked}");
}

#[test]
fn level_models_are_called_level() {
    let folder = dilemmas();
    let flags = [
        "select",
        "--model",
        "lca(2..4)",
        "--data",
        "dilemmas.csv",
        "--a",
        "4",
        "--seed",
        "1",
        "--sensitivity",
        "none",
    ];
    let text = folder.ok(&flags);
    assert!(text.contains("nearly level: these data do not tell them apart"), "{text}");
}

#[test]
fn any_number_of_threads_gives_the_same_ranking() {
    let folder = dilemmas();
    let run = |threads: &str| {
        let flags = [
            "select",
            "--model",
            "lca(1..2)",
            "--data",
            "dilemmas.csv",
            "--seed",
            "7",
            "--sensitivity",
            "none",
            "--threads",
            threads,
        ];
        let mut result = folder.json(&flags);
        result["seconds"].take();
        result["command_line"].take();
        result["models"].as_array_mut().unwrap().iter_mut().for_each(|model| drop(model["seconds"].take()));
        result
    };
    assert_eq!(run("1"), run("2"));
}

#[test]
fn every_model_lists_the_sizes_of_its_hidden_nodes() {
    let folder = dilemmas();
    let data = ["--data", "dilemmas.csv", "--seed", "1", "--sensitivity", "none"];
    let of = |flags: &[&str]| {
        let result = folder.json(&[flags, &data].concat());
        let models = result["models"].as_array().unwrap().iter();
        let mut found: Vec<String> = models.map(|model| model["sizes"].to_string()).collect();
        assert_eq!(result["best"]["sizes"], result["models"][0]["sizes"]);
        found.sort();
        found
    };
    let two = "x[2] -> passenger critic; y[3] -> doctor director";
    let compared = of(&["compare", "--model", "lca(2)", "--model", two, "--model", "independent"]);
    assert_eq!(compared, [r#"{"r":2}"#, r#"{"x":2,"y":3}"#, "{}"]);
    // A size that is not chosen stands beside those that are.
    let selected = of(&["select", "--model", "x[2] -> passenger critic; y[1..2] -> doctor director"]);
    assert_eq!(selected, [r#"{"x":2,"y":1}"#, r#"{"x":2,"y":2}"#]);
}

#[test]
fn closed_forms_are_those_of_score() {
    let folder = dilemmas();
    let models = ["independent", "complete", "passenger -> critic -> doctor -> director"];
    let mut flags = vec!["compare", "--data", "dilemmas.csv", "--seed", "1"];
    models.iter().for_each(|model| flags.extend(["--model", model]));
    let result = folder.json(&flags);
    for model in result["models"].as_array().unwrap() {
        let text = model["model"].as_str().unwrap();
        let score = folder.json(&["score", "--model", text, "--data", "dilemmas.csv"]);
        assert_eq!(model["log_marginal"], score["log_marginal"]);
        assert_eq!(model["method"], "exact");
    }
    assert_eq!(result["settled"], true);
}

#[test]
fn tied_and_untied_models_have_one_list_of_labels() {
    let folder = Folder::new();
    folder.write("pairs.csv", "from,to,count\nx,y,4\ny,z,3\nx,z,1\ny,y,2\n");
    let flags =
        ["compare", "--model", "r[2] -> from to", "--model", "r[2] -> from to; from ~ to", "--data", "pairs.csv"];
    let result = folder.json(&flags);
    for model in result["models"].as_array().unwrap() {
        for node in model["nodes"].as_array().unwrap() {
            assert_eq!(node["size"], if node["seen"] == true { 3 } else { 2 }, "{model}");
        }
    }
    // By itself, without a tie, each column has the two values that it has.
    let alone =
        folder.json(&["compare", "--model", "r[2] -> from to", "--model", "independent", "--data", "pairs.csv"]);
    assert_eq!(alone["models"][0]["nodes"][1]["size"], 2);
}

#[test]
fn prior_weights_of_models_count() {
    let folder = dilemmas();
    folder.write("weights.csv", "r,weight\n1,1\n2,1\n3,6\n");
    let flags = ["select", "--model", "lca(1..3)", "--data", "dilemmas.csv", "--seed", "1", "--sensitivity", "none"];
    let even = folder.json(&flags);
    let weighted = folder.json(&[&flags[..], &["--model-prior", "weights.csv"]].concat());
    let odds = |result: &Value| {
        let found = probabilities(result);
        let of = |size: u64| found.iter().find(|one| one.0 == size).unwrap().1;
        of(3) / of(2)
    };
    assert!((odds(&weighted) / odds(&even) - 6.0).abs() < 1e-9);
    folder.write("zero.csv", "r,weight\n1,1\n2,1\n3,0\n");
    let output = folder.run(&[&flags[..], &["--model-prior", "zero.csv"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("weight 0, so not ranked: r[3] -> "), "{said}");
    folder.write("few.csv", "r,weight\n1,1\n2,1\n");
    refuses(
        &folder,
        &[&flags[..], &["--model-prior", "few.csv"]].concat(),
        "few.csv: no row for the model `r[3] -> passenger",
    );
    folder.write("odd.csv", "r,weight\n1,1\n2,many\n3,1\n");
    refuses(
        &folder,
        &[&flags[..], &["--model-prior", "odd.csv"]].concat(),
        "odd.csv: `many` is not a weight for the model",
    );
    folder.write("none.csv", "r,count\n1,1\n");
    refuses(&folder, &[&flags[..], &["--model-prior", "none.csv"]].concat(), "none.csv: has no column `weight`");
}

#[test]
fn the_table_can_be_had_as_csv() {
    let folder = dilemmas();
    let flags =
        ["select", "--model", "lca(1..2)", "--data", "dilemmas.csv", "--seed", "1", "--csv", "--sensitivity", "none"];
    let text = folder.ok(&flags);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("r,log_marginal,std_error,bound,elbo,log_bayes_factor"), "{text}");
    assert!(lines[0].ends_with(",method,why,seconds"), "{text}");
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.split(',').count() == lines[0].split(',').count()));
}

/// A model file may have an `a` of its own: what it alone makes of the evidence must not look like structure.
#[test]
fn values_of_a_that_differ_are_shown() {
    let folder = dilemmas();
    folder.write("own.json", OWN_A);
    let flags = ["compare", "--model", "own.json", "--model", "complete", "--data", "dilemmas.csv"];
    let text = folder.ok(&flags);
    let head = text.lines().find(|line| line.contains("ln evidence")).unwrap();
    assert!(head.split_whitespace().take(2).eq(["model", "a"]), "{text}");
    assert!(text.contains("`complete` at a = 1") && text.contains("own.json  4 "), "{text}");
    let csv = folder.ok(&[&flags[..], &["--csv"]].concat());
    assert!(csv.starts_with("model,a,log_marginal,") && csv.contains("own.json,4,"), "{csv}");
    let same = folder.ok(&["compare", "--model", "independent", "--model", "complete", "--data", "dilemmas.csv"]);
    assert!(!same.contains("` at a = 1 has the highest") && !same.contains("model     a"), "{same}");
}

#[test]
fn several_values_of_a_are_ranked_together() {
    let folder = dilemmas();
    let flags = ["select", "--model", "independent", "--data", "dilemmas.csv", "--a", "0.5,1,2"];
    let result = folder.json(&flags);
    assert_eq!(result["models"].as_array().unwrap().len(), 3);
    assert_eq!(result["sensitivity"].as_array().unwrap().len(), 3);
    let total: f64 =
        result["models"].as_array().unwrap().iter().map(|model| model["posterior_probability"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-12);
}

#[test]
fn what_cannot_be_ranked_is_refused() {
    let folder = dilemmas();
    let refused = |models: &[&str], more: &[&str], message: &str| {
        let mut flags = vec!["compare", "--data", "dilemmas.csv"];
        models.iter().for_each(|model| flags.extend(["--model", model]));
        flags.extend(more);
        refuses(&folder, &flags, message);
    };
    refused(&["passenger -> critic", "complete"], &[], "models can be ranked only if they explain the same columns");
    refused(&["r[1..3] -> passenger[2..3] critic"], &[], "`passenger` is a column of the data, which has one size");
    refused(&["passenger[2] critic", "passenger[3] critic"], &[], "column `passenger` has size 2 in");
    refused(&["k[1..2] -> m[1..3] -> passenger; k -> n[2..3] -> critic; m ~ n"], &[], "share a table");
    refused(&["r[1..9000] -> s[1..9000] -> passenger"], &[], "more than 10000 models");
    refused(&["independent"], &["--a", "1,2", "--sensitivity", "2"], "leave one of the two out");
    refused(&["independent"], &["--pseudo-count", "critic=1,2"], "only --a may have several");
    refused(&["independent"], &["--method", "exact", "--particles", "9"], "has no use for it");
    refused(&["lca(2)"], &["--prior", "none"], "needs a prior");
    refused(&["complete", "independent", "complete"], &[], "--model complete: is given twice");
}

#[test]
fn no_time_is_said_to_be_no_time() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(2..4)", "--data", "dilemmas.csv", "--time-limit", "0.000001s"];
    let (code, message) = folder.fails(&flags);
    assert_eq!(code, 1);
    assert!(message.contains("the time limit was reached before there was an answer"), "{message}");
}

#[test]
fn weights_that_speak_of_nothing_are_refused() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(1..2)", "--data", "dilemmas.csv", "--model-prior", "w.csv"];
    for (table, message) in [
        ("r,weight\n1,0\n2,0\n", "all weights are zero"),
        ("r,weight\n1,1\n2,1\n9,1\n", "the row `9` speaks of no model"),
        ("r,weight,comment\n1,1,x\n2,1,y\n", "column `comment`"),
        (
            "weight\n1\n",
            "w.csv: has only the column `weight`, which does not say whose weights they are; add a column `model` or `r`",
        ),
    ] {
        folder.write("w.csv", table);
        refuses(&folder, &flags, message);
    }
    // Weights whose sum is beyond all numbers are weights.
    folder.write("w.csv", "r,weight\n1,1e308\n2,1e308\n");
    let result = folder.json(&[&flags[..], &["--seed", "1", "--sensitivity", "none"]].concat());
    assert_eq!(result["models"][0]["prior_probability"], 0.5);
}

#[test]
fn weights_may_name_a_preset_with_its_size() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(1..2)", "--data", "dilemmas.csv", "--model-prior", "w.csv", "--seed", "1"];
    folder.write("w.csv", "model,weight\nlca(1),1\nlca( 2 ),3\n");
    let result = folder.json(&[&flags[..], &["--sensitivity", "none"]].concat());
    let best = &result["models"][0];
    assert_eq!((&best["sizes"]["r"], &best["prior_probability"]), (&2.into(), &0.75.into()), "{result}");
    folder.write("w.csv", "model,weight\nlca(1),1\nlca(3),3\n");
    refuses(&folder, &flags, "no row for the model");
}

#[test]
fn a_verdict_says_when_weights_decide() {
    let folder = dilemmas();
    folder.write("w.csv", "r,weight\n1,1e20\n2,1\n");
    let flags = ["select", "--model", "lca(1..2)", "--data", "dilemmas.csv", "--model-prior", "w.csv", "--seed", "1"];
    let result = folder.json(&[&flags[..], &["--sensitivity", "none"]].concat());
    let verdict = result["verdict"].as_str().unwrap();
    assert!(verdict.contains("r = 1 is the most probable model, with the weights that were given"), "{verdict}");
    assert!(verdict.contains("by evidence alone r = 2 is 30."), "{verdict}");
}

#[test]
fn bounds_are_not_called_evidence() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(1..3)", "--data", "dilemmas.csv", "--seed", "1", "--method", "vb"];
    let text = folder.ok(&[&flags[..], &["--sensitivity", "none"]].concat());
    assert!(text.contains("lower bound (ELBO)") && !text.contains("ln evidence"), "{text}");
    assert!(text.contains("has the highest lower bound") && text.contains("Bounds are no evidence"), "{text}");
    let result = folder.json(&[&flags[..], &["--sensitivity", "none"]].concat());
    assert!(result["settled"] == false && result["models"][0]["is_lower_bound"] == true, "{result}");
    // Neither do they give probabilities.
    assert!(!text.contains("Bayes factor") && !text.contains("probability"), "{text}");
    for field in ["posterior_probability", "posterior_probability_error", "log_bayes_factor", "log_bayes_factor_error"]
    {
        assert!(result["models"].as_array().unwrap().iter().all(|model| model[field].is_null()), "{field}");
    }
    refuses(&folder, &[&flags[..], &["--sensitivity", "2"]].concat(), "bounds give no probabilities");
    let report = {
        folder.write("bounds.json", result.to_string());
        folder.ok(&["report", "bounds.json"])
    };
    assert!(!report.contains("Posterior probabilities"), "no plot of them");
}

/// Where nothing is left to chance an estimate is its own bound, but for rounding.
#[test]
fn a_closed_form_is_not_below_its_own_bound() {
    let folder = dilemmas();
    let flags =
        ["compare", "--model", "independent", "--model", "lca(1)", "--model", "lca(2)", "--data", "dilemmas.csv"];
    let few = ["--method", "smc", "--seed", "4", "--runs", "4", "--particles", "300", "--sensitivity", "none"];
    let result = folder.json(&[&flags[..], &few].concat());
    assert!(result["settled"] == true && result["best"]["model"] == "lca(2)", "{}", result["verdict"]);
    assert!(result["models"].as_array().unwrap().iter().all(|model| model["is_lower_bound"] == false), "{result}");
}

/// More time goes on from what the time limit left.
#[test]
fn a_ranking_that_ran_out_of_time_keeps_its_checkpoint() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(2..3)", "--data", "dilemmas.csv", "--seed", "1", "--checkpoint", "s.ck"];
    let endless = ["--method", "smc", "--particles", "8", "--runs", "1000000", "--heat", "1", "--time-limit", "500ms"];
    folder.ok(&[&flags[..], &endless].concat());
    assert!(folder.names().contains(&"s.ck".to_owned()), "{:?}", folder.names());
    let whole = ["select", "--model", "lca(2..3)", "--data", "dilemmas.csv", "--method", "vb", "--checkpoint", "t.ck"];
    folder.ok(&whole);
    assert!(!folder.names().contains(&"t.ck".to_owned()), "what is complete needs none");
}

/// Models that differ in nothing but their own `a` still do so at multiples of it.
#[test]
fn each_model_is_tried_at_multiples_of_its_own_a() {
    let folder = dilemmas();
    for (name, a) in [("one.json", 1), ("ten.json", 10)] {
        let nodes = r#"{"name": "passenger"}, {"name": "critic"}, {"name": "doctor"}, {"name": "director"}"#;
        folder.write(name, format!(r#"{{"nodes": [{nodes}], "edges": [], "a": {a}}}"#));
    }
    let flags = ["compare", "--model", "one.json", "--model", "ten.json", "--data", "dilemmas.csv"];
    let result = folder.json(&[&flags[..], &["--sensitivity", "0.5,2"]].concat());
    let rows = result["sensitivity"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["times_a"].as_f64().unwrap()).collect::<Vec<_>>(), [0.5, 1.0, 2.0]);
    for row in rows {
        assert!(row["a"].is_null());
        let models = row["models"].as_array().unwrap();
        assert_ne!(models[0]["log_marginal"], models[1]["log_marginal"], "{row}");
        let mut sizes: Vec<f64> = models.iter().map(|model| model["a"].as_f64().unwrap()).collect();
        sizes.sort_by(f64::total_cmp);
        assert_eq!(sizes[1], 10.0 * sizes[0]);
    }
    let text = folder.ok(&[&flags[..], &["--sensitivity", "0.5,2"]].concat());
    assert!(text.contains("times a"), "{text}");
}
