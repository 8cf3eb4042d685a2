//! What each command answers.

use crate::support::{Folder, assert_close};

const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";

#[test]
fn score_gives_the_evidence_and_its_parts() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let score = folder.json(&["score", "--model", "i -> k[2] -> j", "--data", "toy.csv", "--a", "1e-5"]);
    // ESTIMATORS: exact -85.432 at a = 1e-5, K = 2.
    assert!((score["log_marginal"].as_f64().unwrap() + 85.432).abs() < 5e-4);
    let sum: f64 =
        ["log_p_total", "log_arrangements", "log_p_sequence"].iter().map(|part| score[*part].as_f64().unwrap()).sum();
    assert_close(&score["log_marginal"], sum, 1e-12);
    assert_eq!(score["bound"], "exact");
    assert!(score["std_error"].is_null());
    assert_eq!(score["tokens"], 9);
    assert_eq!(score["records"], 7);
}

#[test]
fn score_of_a_model_file_takes_prior_and_gamma_from_it_and_flags_override() {
    let folder = Folder::new();
    folder.write("x.csv", "x,y,z,count\n0,0,0,1\n0,0,1,2\n1,0,1,1\n1,0,2,1\n1,1,1,5\n1,1,2,4\n");
    folder.write(
        "m.json",
        r#"{"nodes": [{"name": "x", "card": 2}, {"name": "y", "card": 2}, {"name": "z", "card": 3}],
            "edges": [["x", "z"], ["y", "z"]], "prior": {"kind": "bdeu"}, "a": 1.0, "b": 0.07142857142857142}"#,
    );
    folder.write(
        "m.toml",
        "a = 1.0\nb = 0.07142857142857142\nedges = [[\"x\", \"z\"], [\"y\", \"z\"]]\n[prior]\nkind = \"bdeu\"\n\
         [[nodes]]\nname = \"x\"\ncard = 2\n[[nodes]]\nname = \"y\"\ncard = 2\n[[nodes]]\nname = \"z\"\ncard = 3\n",
    );
    for file in ["m.json", "m.toml"] {
        let score = folder.json(&["score", "--model", file, "--data", "x.csv"]);
        assert_close(&score["log_marginal"], -24.55564608608717, 1e-12);
        let other = folder.json(&["score", "--model", file, "--data", "x.csv", "--a", "2", "--shape", "1"]);
        assert_close(&other["log_p_total"], -3.6739504019195306, 1e-12);
        assert_ne!(other["log_p_sequence"], score["log_p_sequence"]);
    }
}

#[test]
fn score_given_documents_leaves_their_own_probability_out() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let args = ["score", "--model", "i -> k[2] -> j", "--data", "toy.csv", "--given", "i"];
    let lda = folder.json(&args);
    let documents = folder.json(&["score", "--model", "i", "--data", "toy.csv", "--quiet"]);
    let want = lda["log_p_sequence"].as_f64().unwrap() - documents["log_p_sequence"].as_f64().unwrap();
    assert_close(&lda["log_p_sequence_given"], want, 1e-12);
}

#[test]
fn a_node_given_twice_counts_once() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let args = ["score", "--model", "i -> j", "--data", "toy.csv", "--given"];
    let once = folder.json(&[&args[..], &["i"]].concat());
    let twice = folder.json(&[&args[..], &["i,i"]].concat());
    assert_eq!(once["log_p_sequence_given"], twice["log_p_sequence_given"]);
}

#[test]
fn fit_keeps_all_digits_of_trillions_of_tokens() {
    let folder = Folder::new();
    folder.write("x.csv", "x,y,count\n0,0,1400000000000\n0,1,1400000000000\n1,1,3\n");
    let args = ["--model", "x -> y", "--data", "x.csv"];
    let score = folder.json(&[&["score"], &args[..]].concat());
    let fit = folder.json(&[&["fit", "--method", "exact"], &args[..]].concat());
    assert_close(&fit["log_marginal"], score["log_marginal"].as_f64().unwrap(), 1e-12);
    // Nearly Beta(n, n): the standard deviation is 1/sqrt(8 n + 4).
    assert_close(&fit["tables"][1]["rows"][0]["sd"][0], 1.0 / (8.0 * 1.4e12f64 + 8.0).sqrt(), 1e-9);
}

#[test]
fn a_prior_with_its_own_size_says_that_a_moves_the_shape_alone() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    folder.write("p.json", r#"{"kind": "bdeu", "size": 2.0}"#);
    let score = folder.json(&["score", "--model", "i -> j", "--data", "toy.csv", "--prior", "p.json", "--a", "5"]);
    assert!(score["warnings"].to_string().contains("shape alone"), "{}", score["warnings"]);
    assert_eq!(score["shape"], 5.0);
}

#[test]
fn the_forecast_counts_occupied_labels_and_no_idle_ones() {
    let folder = Folder::new();
    let rows: String = (0..20).map(|n| format!("{},{}\n", (n * n) % 5, (n * 3 + n / 5) % 5)).collect();
    folder.write("x.csv", format!("i,j\n{rows}"));
    let states = |model: &str| {
        let info = folder.json(&["info", "--model", model, "--data", "x.csv"]);
        info["cost"]["exact"]["states"].as_f64().unwrap()
    };
    let (three, idle, twenty) = (states("i -> k[3] -> j"), states("i -> k[3] -> j; h[30]"), states("i -> k[20] -> j"));
    assert_eq!(three, idle);
    assert!(twenty > 10.0 * three, "{twenty} {three}");
}

#[test]
fn a_list_of_a_gives_a_curve_whatever_the_threads() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let args = ["score", "--model", "i -> k[2] -> j", "--data", "toy.csv", "--a", "1e-2..1e2:5", "--threads"];
    let curve = |threads: &str| {
        let mut args = args.to_vec();
        args.push(threads);
        folder.json(&args)
    };
    let (one, two) = (curve("1"), curve("2"));
    assert_eq!(one["curve"].as_array().unwrap().len(), 5);
    assert_eq!(one["log_marginal"], two["log_marginal"]);
    let single = folder.json(&["score", "--model", "i -> k[2] -> j", "--data", "toy.csv", "--a", "100"]);
    assert_eq!(one["curve"][4]["log_marginal"], single["log_marginal"]);
}

#[test]
fn unknown_cells_give_totals_and_no_parts() {
    let folder = Folder::new();
    folder.write("x.csv", "i,j,count\n0,0,2\n0,1,2\n1,0,2\n1,1,?\n");
    let args = ["score", "--model", "k[2] -> i j", "--data", "x.csv", "--a", "4", "--b", "0.1"];
    let score = folder.json(&args);
    let totals = score["totals"].as_array().unwrap();
    let want = [-10.093338804248452, -9.817429931824739, -9.816455883184448, -9.911766062988773, -10.049366525071521];
    for (ix, want) in want.into_iter().enumerate() {
        assert_eq!(totals[ix]["tokens"], 6 + ix);
        assert_close(&totals[ix]["log_joint"], want, 1e-10);
    }
    assert!(score["log_p_total"].is_null());
    let all: f64 = totals.iter().map(|entry| entry["log_joint"].as_f64().unwrap().exp()).sum();
    assert_close(&score["log_marginal"], all.ln(), 1e-10);
    let few = folder.json(&[&args[..], &["--totals", "7..9"]].concat());
    assert_eq!(few["totals"].as_array().unwrap().len(), 3);
    assert_eq!(few["totals"][0], totals[1]);
    assert!(folder.ok(&args).contains("most probable total 8"));
}

#[test]
fn impossible_data_is_minus_infinity_as_a_string() {
    let folder = Folder::new();
    folder.write("x.csv", "x\n0\n1\n");
    folder.write("p.json", r#"{"kind": "tables", "tables": {"x": [[1.0, 0.0]]}}"#);
    let score = folder.json(&["score", "--model", "x[2]", "--data", "x.csv", "--prior", "p.json"]);
    assert_eq!(score["log_marginal"], "-inf");
    assert_eq!(score["log_p_sequence"], "-inf");
    assert!(score["warnings"].to_string().contains("impossible_data"));
}

#[test]
fn no_tokens_need_a_rate_and_then_have_an_answer() {
    let folder = Folder::new();
    folder.write("x.csv", "x\n");
    let score = folder.json(&["score", "--model", "x[3]", "--data", "x.csv", "--a", "0.5", "--b", "2"]);
    assert_close(&score["log_marginal"], -0.2027325540540822, 1e-12);
    assert_eq!(score["log_p_sequence"], 0.0);
    let (code, error) = folder.fails(&["score", "--model", "x[3]", "--data", "x.csv"]);
    assert_eq!(code, 2);
    assert!(error.contains("--b"), "{error}");
}

#[test]
fn fit_gives_posterior_means_with_labels() {
    let folder = Folder::new();
    folder.write("x.csv", "weather,mood,count\nrain,sad,3\nsun,glad,6\nsun,sad,1\n");
    let fit = folder.json(&["fit", "--method", "exact", "--model", "weather -> mood", "--data", "x.csv", "--a", "4"]);
    // Rain: (1 + 3)/(2 + 3) sad; sun: (1 + 6)/(2 + 7) glad.
    let mood = &fit["tables"][1];
    assert_eq!(mood["node"], "mood");
    assert_eq!(mood["rows"][0]["given"]["weather"], "rain");
    assert_eq!(mood["rows"][0]["values"][1], "sad");
    assert_close(&mood["rows"][0]["mean"][1], 4.0 / 5.0, 1e-12);
    assert_close(&mood["rows"][1]["mean"][0], 7.0 / 9.0, 1e-12);
    // Beta(7, 2): variance 14/(81 * 10).
    assert_close(&mood["rows"][1]["sd"][0], (14.0f64 / 810.0).sqrt(), 1e-12);
    assert_close(&fit["posterior"]["d_ep"], 2.0, 1e-12);
    assert!(folder.ok(&["fit", "--method", "exact", "--model", "weather -> mood", "--data", "x.csv"]).contains("rain"));
}

#[test]
fn enumerate_lists_each_tensor_once() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let args = ["enumerate", "--model", "i -> k[3] -> j", "--data", "toy.csv"];
    let list = folder.ok(&args);
    // Five cells of one token and two of two: 3^5 * 6^2.
    assert_eq!(list.lines().count(), 1 + 243 * 36);
    let score = folder.json(&["score", "--model", "i -> k[3] -> j", "--data", "toy.csv"]);
    let json = folder.json(&args);
    assert_close(&json["log_sum_pi"], score["log_marginal"].as_f64().unwrap(), 1e-10);
    let bins = folder.json(&[&args[..], &["--bins", "7"]].concat());
    let n: u64 = bins["bins"].as_array().unwrap().iter().map(|bin| bin["count"].as_u64().unwrap()).sum();
    assert_eq!(n, 243 * 36);
    assert_close(&bins["log_sum_pi"], score["log_marginal"].as_f64().unwrap(), 1e-10);
    assert!(folder.ok(&[&args[..], &["--tensors"]].concat()).contains("k=0"));
}

#[test]
fn simulate_writes_what_score_reads() {
    let folder = Folder::new();
    let args = ["simulate", "--model", "r[3] -> i[4] j[5] k[2]", "--tokens", "500", "--seed", "7"];
    folder.ok(&[&args[..], &["--seen", "i,j,k", "-o", "a.csv"]].concat());
    folder.ok(&[&args[..], &["--seen", "i,j,k", "-o", "b.csv"]].concat());
    assert_eq!(
        std::fs::read(folder.path().join("a.csv")).unwrap(),
        std::fs::read(folder.path().join("b.csv")).unwrap()
    );
    let full = folder.ok(&[&args[..], &["--seen", "i,j,k", "--full"]].concat());
    assert!(full.starts_with("r,i,j,k,count\n"));
    let score = folder.json(&["score", "--model", "i; j; k", "--data", "a.csv"]);
    assert_eq!(score["tokens"], 500);
    let drawn = folder.json(&["simulate", "--model", "x[3]", "--a", "5", "--b", "0.1", "--seed", "1"]);
    assert!(drawn["tokens"].as_u64().unwrap() < 1000);
}

#[test]
fn simulate_from_a_table_draws_from_trillions() {
    let folder = Folder::new();
    folder.write("big.csv", "pair,count\nth,2000000000000\nqx,1\nhe,800000000000\n");
    let csv = folder.ok(&["simulate", "--from", "big.csv", "--tokens", "2000", "--seed", "3"]);
    let total: u64 = csv.lines().skip(1).map(|line| line.rsplit(',').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(total, 2000);
    assert!(csv.starts_with("pair,count\nth,14"), "{csv}");
}

#[test]
fn check_says_what_is_in_a_file_and_what_is_odd() {
    let folder = Folder::new();
    folder.write("x.csv", "a,b,count\nyes,1,2\nYes,1,1\n,1,4\nNA,1,3\n");
    let text = folder.ok(&["check", "x.csv"]);
    for word in ["10 tokens", "odd", "NA", "Yes"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    let json = folder.json(&["check", "--data", "x.csv"]);
    assert_eq!(json["tokens"], 10);
    assert_eq!(json["columns"][0]["missing_tokens"], 4);
}

#[test]
fn info_describes_model_moral_form_patterns_and_cost() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let info = folder.json(&["info", "--model", "i -> k[2] -> j", "--data", "toy.csv"]);
    assert_eq!(info["moral"]["equivalent"], true);
    assert_eq!(info["moral"]["treewidth"], 1);
    assert_eq!(info["free_parameters"], 2.0 + 3.0 + 6.0);
    assert_eq!(info["nodes"][1]["role"], "hidden");
    assert_eq!(info["patterns"][0]["unseen"][0], "k");
    assert_eq!(info["cost"]["exact"]["fits"], true);
    assert_eq!(info["cost"]["enumerate"]["tensors"], 288.0);
    let kept = info["cost"]["exact_posterior"]["states"].as_f64().unwrap();
    assert!(kept > info["cost"]["exact"]["states"].as_f64().unwrap());
    let collider = folder.json(&["info", "--model", "x[2] y[2] -> z[2]"]);
    assert_eq!(collider["moral"]["equivalent"], false);
    assert_eq!(collider["moral"]["colliders"][0], "z");
    let text = folder.ok(&["info", "--model", "lda(4)", "--seen", "doc[10],word[30]"]);
    assert!(text.contains("topic"), "{text}");
    assert!(folder.ok(&["info", "--model", "a[2] -> b[3]", "--dot"]).starts_with("digraph"));
}

#[test]
fn demo_compares_models_and_says_what_it_means() {
    let folder = Folder::new();
    let text = folder.ok(&["demo", "--quiet", "--seed", "5"]);
    for word in ["Titanic", "independent", "lca(2)", "complete", "probab", "%"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    let json = folder.json(&["demo", "--threads", "2", "--seed", "5"]);
    for table in json["tables"].as_array().unwrap() {
        let models = table["models"].as_array().unwrap();
        let sum: f64 = models.iter().map(|model| model["posterior_probability"].as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-12);
        for model in models {
            let is_exact = model["method"] == "exact";
            assert_eq!(model["std_error"].is_null(), is_exact, "{model}");
        }
    }
    // 216 people are beyond exact summation: their classes are estimated.
    let dilemmas = &json["tables"][2]["models"];
    assert_eq!(dilemmas[0]["method"], "smc", "{dilemmas}");
    assert_eq!(dilemmas[0]["model"], "lca(2)", "{dilemmas}");
}

/// A file that is called something else would be read as something else.
#[test]
fn simulated_data_are_only_written_to_names_that_say_csv() {
    let folder = Folder::new();
    for name in ["o.tns", "o.csv.gz", "o.MTX"] {
        let (code, error) = folder.fails(&["simulate", "--model", "i[2]", "--tokens", "3", "--output", name]);
        assert!(code == 2 && error.contains(name) && error.contains(".csv"), "{error}");
    }
    folder.ok(&["simulate", "--model", "i[2]", "--tokens", "3", "--output", "o.csv"]);
    assert_eq!(folder.names(), ["o.csv"]);
}
