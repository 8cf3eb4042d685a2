//! What `select` and `compare` make of lower bounds, of errors that are unknown or too large, and of time that is short.

use crate::support::Folder;
use serde_json::Value;

/// Answers of 216 students to four questions, from the demonstration.
const DILEMMAS: &str = include_str!("../../src/demo_data/dilemmas.csv");

fn dilemmas() -> Folder {
    let folder = Folder::new();
    folder.write("dilemmas.csv", DILEMMAS);
    folder
}

fn models(result: &Value) -> &[Value] {
    result["models"].as_array().unwrap()
}

/// With a strong prior bounds are very loose: exact for one topic, and hundreds of nats too low for four, though all four models
/// are level. The bound of the fourth is 211 nats below the best one.
#[test]
fn a_loose_bound_leaves_no_good_model_out() {
    let folder = Folder::new();
    let simulate = ["simulate", "--model", "doc[30] -> topic[4] -> word[150]", "--a", "400", "--tokens", "500"];
    folder.ok(&[&simulate[..], &["--seen", "doc,word", "--seed", "7", "-o", "words.csv"]].concat());
    let select =
        ["select", "--model", "doc -> topic[1..4] -> word", "--data", "words.csv", "--a", "400", "--seed", "1"];
    let result = folder.json(&[&select[..], &["--sensitivity", "none"]].concat());
    for model in models(&result) {
        assert_eq!(model["is_lower_bound"], false, "{}", model["model"]);
        // Four level models: odds below three, so none has less than 1/10 or more than 1/2.
        let p = model["posterior_probability"].as_f64().unwrap();
        assert!((0.1..0.5).contains(&p), "{}: {p}", model["model"]);
    }
    assert!(models(&result).iter().any(|model| {
        model["sizes"]["topic"] == 4
            && model["elbo"].as_f64().unwrap() < model["log_marginal"].as_f64().unwrap() - 150.0
    }));
    assert_eq!(result["left_with_bound"], serde_json::json!([]));
    assert_eq!(result["level"].as_array().unwrap().len(), 4);
}

#[test]
fn without_bounds_none_is_computed_and_all_are_scored() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(1..3)", "--data", "dilemmas.csv", "--seed", "1", "--sensitivity", "none"];
    let result = folder.json(&[&flags[..], &["--no-bound"]].concat());
    for model in models(&result) {
        assert!(model["elbo"].is_null() && model["is_lower_bound"] == false && model["method"] != "vb", "{model}");
    }
}

/// Two particles that are never moved end 200 nats below the bound, which then stands in for the estimate, and comes first.
#[test]
fn a_best_model_that_has_a_bound_alone_is_never_settled() {
    let folder = Folder::new();
    let simulate = ["simulate", "--model", "doc[30] -> topic[3] -> word[40]", "--a", "20", "--tokens", "900"];
    folder.ok(&[&simulate[..], &["--seen", "doc,word", "--seed", "5", "-o", "words.csv"]].concat());
    let compare = ["compare", "--model", "doc -> topic[3] -> word", "--model", "doc; word", "--data", "words.csv"];
    let hasty = ["--method", "smc", "--particles", "2", "--runs", "2", "--rejuvenate", "0", "--heat", "1"];
    let flags = [&compare[..], &hasty, &["--a", "20", "--seed", "1", "--sensitivity", "none"]].concat();
    let result = folder.json(&flags);
    assert!(models(&result)[0]["is_lower_bound"] == true && models(&result)[1]["is_lower_bound"] == false, "{result}");
    assert_eq!(result["settled"], false);
    let verdict = result["verdict"].as_str().unwrap();
    assert!(verdict.contains(" comes first by a lower bound") && !verdict.contains("estimate"), "{verdict}");
    for model in models(&result) {
        assert!(model["posterior_probability"].is_null() && model["log_bayes_factor_error"].is_null(), "{model}");
    }
    let why = result["left_with_bound"][0].as_str().unwrap();
    assert!(why.starts_with("Left with a lower bound: `doc -> topic[3] -> word`; its estimate by smc"), "{why}");
    folder.write("r.json", result.to_string());
    assert!(folder.ok(&["report", "r.json"]).contains("Left with a lower bound: <code>"));
}

/// No urn hits the data: what is left are the bounds, in one column.
#[test]
fn bounds_have_one_column() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(2..3)", "--data", "dilemmas.csv", "--seed", "1", "--method", "naive"];
    let text = folder.ok(&[&flags[..], &["--sensitivity", "none"]].concat());
    assert_eq!(text.matches("lower bound (ELBO)").count(), 1, "{text}");
    assert!(text.contains("has the highest lower bound") && !text.contains("estimate,"), "{text}");
}

/// One run of two particles cannot tell its error: nobody should take the number for an exact one.
#[test]
fn an_unknown_error_is_said_and_tells_nothing_apart() {
    let folder = dilemmas();
    let hasty = ["--method", "smc", "--particles", "2", "--runs", "1", "--ess", "always", "--seed", "1"];
    let score = ["score", "--model", "lca(2)", "--data", "dilemmas.csv"];
    let text = folder.ok(&[&score[..], &hasty].concat());
    assert!(text.contains(" error unknown"), "{text}");
    let result = folder.json(&[&score[..], &hasty].concat());
    assert!(result["std_error"].is_null() && result["error_unknown"] == true, "{result}");
    let exact = folder.json(&["score", "--model", "independent", "--data", "dilemmas.csv"]);
    assert_eq!(exact["error_unknown"], false);
    let compare = ["compare", "--model", "lca(2)", "--model", "independent", "--data", "dilemmas.csv", "--no-bound"];
    let flags = [&compare[..], &hasty, &["--sensitivity", "none"]].concat();
    let result = folder.json(&flags);
    assert_eq!(result["settled"], false);
    let verdict = result["verdict"].as_str().unwrap();
    assert!(verdict.contains("nothing is known of the error of `lca(2)`"), "{verdict}");
    folder.write("r.json", result.to_string());
    let report = folder.ok(&["report", "r.json"]);
    assert!(report.contains("the error is unknown: one run cannot tell it") && report.contains(", error unknown</td>"));
}

/// Where the data do not tell, more work is not asked for, and nobody is called the probable one.
#[test]
fn level_models_need_no_more_time() {
    let folder = dilemmas();
    let flags = [
        "compare",
        "--model",
        "passenger -> critic doctor director",
        "--model",
        "critic -> passenger; passenger -> doctor director",
    ];
    let result = folder.json(
        &[&flags[..], &["--data", "dilemmas.csv", "--method", "smc", "--particles", "50", "--sensitivity", "2"]]
            .concat(),
    );
    // The same distributions, so the same evidence: equal to the last digits.
    assert_eq!(result["settled"], true, "{}", result["verdict"]);
    let verdict = result["verdict"].as_str().unwrap();
    assert!(verdict.ends_with(" have the same evidence: these data do not tell them apart."), "{verdict}");
    assert!(!result["movement"].as_str().unwrap().contains("probably"), "{}", result["movement"]);
    // The first of equals is the best, and has no error against itself.
    assert_eq!(models(&result)[0]["log_bayes_factor_error"], 0.0);
}

#[test]
fn probabilities_elsewhere_have_errors() {
    let folder = dilemmas();
    let flags = ["select", "--model", "lca(2..3)", "--data", "dilemmas.csv", "--seed", "1", "--sensitivity", "4"];
    let few = ["--method", "smc", "--particles", "40", "--runs", "3", "--rejuvenate", "1", "--heat", "1"];
    let result = folder.json(&[&flags[..], &few].concat());
    for at in result["sensitivity"].as_array().unwrap() {
        assert!(
            at["models"].as_array().unwrap().iter().all(|model| model["posterior_probability_error"].is_number()),
            "{at}"
        );
    }
    let text = folder.ok(&[&flags[..], &few].concat());
    let table = text.split("at other sizes of the prior:\n").nth(1).unwrap();
    assert!(table.lines().nth(1).unwrap().contains(" +- "), "{text}");
}

/// More sizes of the prior than there is time for: they are named, some of them, and the checkpoint is kept.
#[test]
fn a_checkpoint_is_kept_while_sizes_of_the_prior_are_left() {
    let folder = dilemmas();
    let flags =
        ["compare", "--model", "independent", "--model", "complete", "--data", "dilemmas.csv", "--checkpoint", "c.ck"];
    let result = folder.json(&[&flags[..], &["--sensitivity", "1e-4..1e4:100000", "--time-limit", "400ms"]].concat());
    let said = result["sensitivity_not_tried"].as_str().unwrap();
    assert!(said.starts_with("There was no time for") && said.contains(" more.") && said.len() < 200, "{said}");
    assert!(folder.names().contains(&"c.ck".to_owned()), "{:?}", folder.names());
}

#[test]
fn one_model_has_no_table_of_certainties() {
    let folder = dilemmas();
    let text = folder.ok(&["compare", "--model", "independent", "--data", "dilemmas.csv"]);
    assert!(!text.contains("1.0000\n") && !text.contains("sizes of the prior"), "{text}");
    let asked = folder.ok(&["compare", "--model", "independent", "--data", "dilemmas.csv", "--sensitivity", "2"]);
    assert!(asked.contains("ln evidence at other sizes of the prior:"), "{asked}");
}

#[test]
fn lists_of_a_are_checked() {
    let folder = dilemmas();
    let refused = |flags: &[&str], message: &str| {
        let flags =
            [&["compare", "--model", "independent", "--model", "complete", "--data", "dilemmas.csv"], flags].concat();
        let (code, said) = folder.fails(&flags);
        assert!(code == 2 && said.contains(message), "{code}: {said}");
    };
    refused(&["--a", "1,4,1"], "1 is given twice");
    refused(&["--pseudo-count", "critic=0.1,1", "--sensitivity", "none"], "--pseudo-count: give one value here");
    let both = ["compare", "--model", "independent", "--data", "dilemmas.csv", "--a", "1,4", "--sensitivity", "none"];
    assert_eq!(models(&folder.json(&both)).len(), 2);
}

/// Labels that mean a missing value elsewhere, and a file with another separator.
#[test]
fn odd_columns_are_pointed_out_by_every_command() {
    let folder = Folder::new();
    folder.write("survey.csv", "q1,q2,count\nyes,NA,3\nno,b,4\nyes,b,2\n");
    let said = |flags: &[&str]| String::from_utf8(folder.run(flags).stderr).unwrap();
    for command in [
        &["score", "--model", "q1 -> q2"][..],
        &["fit", "--model", "q1 -> q2"],
        &["select", "--model", "r[1..2] -> q1 q2"],
        &["compare", "--model", "q1 -> q2", "--model", "q1; q2"],
    ] {
        let said = said(&[command, &["--data", "survey.csv", "--seed", "1"]].concat());
        assert!(
            said.contains("column `q2` has the label `NA`, which is a value like any other"),
            "{command:?}: {said}"
        );
        assert_eq!(said.matches("`NA`").count(), 1, "once: {said}");
    }
    let left_out = said(&["score", "--model", "q1", "--data", "survey.csv"]);
    assert!(!left_out.contains("`NA`"), "a column that nobody uses: {left_out}");
    folder.write("semi.csv", "q1;q2\nyes;a\nno;b\n");
    let (_, message) = folder.fails(&["score", "--model", "r[2] -> q1 q2", "--data", "semi.csv"]);
    assert!(message.contains("is the file separated by `;`?"), "{message}");
    assert!(said(&["score", "--model", "lca(2)", "--data", "semi.csv"]).contains("is the file separated by `;`?"));
    let idle = said(&["score", "--model", "q1 -> q2; q1 -> h[3] -> g[2]", "--data", "survey.csv"]);
    assert!(idle.contains("nothing that is seen lies below `h`, `g`"), "{idle}");
}

/// Billions of tokens: particles cannot hold them, but a closed form and bounds can.
#[test]
fn models_that_no_engine_can_hold_stay_listed_with_their_bound() {
    let folder = Folder::new();
    folder.write("pairs.csv", "first,second,count\nA,A,3000000000\nA,B,1000000000\nB,A,500000000\nB,B,4000000000\n");
    for (more, n_bounds) in [(&[][..], 1), (&["--no-bound"], 1), (&["--time-limit", "20s"], 1)] {
        let base = ["select", "--model", "r[1..2] -> first second", "--data", "pairs.csv", "--seed", "1"];
        let result = folder.json(&[&base[..], more].concat());
        let models = result["models"].as_array().unwrap();
        let bounds: Vec<_> = models.iter().filter(|model| model["is_lower_bound"] == true).collect();
        assert_eq!((models.len(), bounds.len()), (2, n_bounds), "{result}");
        assert!(models.iter().any(|model| model["method"] == "exact" && model["sizes"]["r"] == 1), "{result}");
        let left = result["left_with_bound"].to_string();
        assert!(left.contains("out of reach") && left.contains("tokens have to be placed one by one"), "{left}");
        let verdict = result["verdict"].as_str().unwrap();
        assert!(verdict.contains("more time does not change that") && !verdict.contains("--time-limit"), "{verdict}");
    }
    let score = ["score", "--model", "r[2] -> first second", "--data", "pairs.csv", "--seed", "1"];
    let (code, error) = folder.fails(&score);
    assert!(code == 1 && error.contains("--method vb"), "{error}");
}
