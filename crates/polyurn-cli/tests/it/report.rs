//! `polyurn report`: pages of results, plots as files, and what is refused.

use crate::support::Folder;
use std::io::Write;
use std::process::Stdio;

const SELECT: &str = include_str!("../fixtures/select.json");
const COMPARE: &str = include_str!("../fixtures/compare.json");
const TOY: &str = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";

#[test]
fn every_kind_of_result_becomes_a_page() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    folder.write("select.json", SELECT);
    folder.write("compare.json", COMPARE);
    let fit = ["fit", "--model", "i -> k[2] -> j", "--data", "toy.csv", "--method", "vb", "--seed", "1"];
    let printed = folder.ok(&[&fit[..], &["--json", "-o", "fit.polyurn"]].concat());
    folder.write("fit.json", printed);
    for (result, words) in [
        ("select.json", ["which size?", "2 classes: 3.0 times", "polyurn select --model"]),
        ("compare.json", ["which structure?", "The data favour two kinds", "Not told apart"]),
        ("fit.json", ["the tables of a model", "lower bound (ELBO)", "polyurn fit --model"]),
        ("fit.polyurn", ["the tables of a model", "lower bound (ELBO)", "polyurn fit --model"]),
    ] {
        let page = folder.ok(&["report", result]).replace("<span class=\"flag\">", "").replace("</span>", "");
        for word in words {
            assert!(page.contains(word), "{result}: no {word:?}");
        }
        folder.ok(&["report", result, "-o", "page.html"]);
        let written = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
        assert_eq!(written.replace("<span class=\"flag\">", "").replace("</span>", ""), page);
    }
    let titled = folder.ok(&["report", "fit.json", "--title", "<b>Mine"]);
    assert!(titled.contains("<title>&lt;b&gt;Mine</title>") && !titled.contains("<b>Mine"));
}

#[test]
fn fit_says_what_it_was_asked() {
    let folder = Folder::new();
    folder.write("toy.csv", TOY);
    let args = ["fit", "--model", "i ->  k[2] -> j", "--data", "toy.csv", "--method", "em", "--a", "2", "--seed", "1"];
    let fit = folder.json(&args);
    assert_eq!(fit["command"], "fit");
    assert_eq!(fit["model"], "i -> k[2] -> j");
    assert_eq!(fit["data"], serde_json::json!({"file": "toy.csv", "tokens": 9, "records": 7, "columns": ["i", "j"]}));
    assert_eq!(fit["nodes"][1], serde_json::json!({"name": "k", "size": 2, "seen": false, "parents": ["i"]}));
    assert_eq!((&fit["a"], &fit["shape"]), (&serde_json::json!(2.0), &serde_json::json!(2.0)));
    assert_eq!(fit["command_line"][0], "polyurn");
    assert_eq!(fit["command_line"].as_array().unwrap().len(), 1 + args.len() + 1);
    let tied = folder.json(&[
        "fit",
        "--model",
        "k[2] -> i j; i ~ j",
        "--data",
        "toy.csv",
        "--method",
        "em",
        "--prior",
        "none",
    ]);
    assert_eq!(tied["nodes"][2]["tied_to"], "i");
    assert!(tied.get("a").is_none());
}

#[test]
fn a_result_may_come_through_a_pipe() {
    let folder = Folder::new();
    folder.write("compare.json", COMPARE);
    let mut child = folder.command(&["report", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(COMPARE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), folder.ok(&["report", "compare.json"]));
}

#[test]
fn plots_are_written_as_files() {
    let folder = Folder::new();
    folder.write("select.json", SELECT);
    folder.ok(&["report", "select.json", "-o", "page.html", "--svg", "plots/of-it"]);
    let mut names: Vec<String> = std::fs::read_dir(folder.path().join("plots/of-it"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "effective-particles.svg",
            "evidence-near-best.svg",
            "evidence.svg",
            "graph.svg",
            "probability.svg",
            "sensitivity-evidence.svg",
            "sensitivity-probability.svg"
        ]
    );
    for name in names {
        let svg = std::fs::read_to_string(folder.path().join("plots/of-it").join(name)).unwrap();
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"));
    }
    let json = folder.json(&["report", "select.json"]);
    assert!(json["html"].as_str().unwrap().starts_with("<!doctype html>"));
    assert!(json["plots"]["evidence"].as_str().unwrap().starts_with("<svg"));
}

#[test]
fn what_cannot_be_shown_or_written_is_refused_in_one_line() {
    let folder = Folder::new();
    folder.write("select.json", SELECT);
    folder.write("score.json", "{\"log_marginal\": -3.5}");
    folder.write("broken.json", "{\"models\": [");
    folder.write("plain.txt", "no JSON at all");
    folder.write("empty.json", "");
    for (args, words) in [
        (&["report", "nowhere.json"][..], "nowhere.json"),
        (&["report", "score.json"], "score.json: neither a list of `models`"),
        (&["report", "broken.json"], "broken.json: not JSON"),
        (&["report", "plain.txt"], "not JSON"),
        (&["report", "empty.json"], "not JSON"),
        (&["report", "select.json", "-o", "select.json"], "is an input too"),
        (&["report", "select.json", "-o", "nowhere/page.html"], "cannot write there"),
        (&["report", "select.json", "--svg", "plain.txt"], "--svg plain.txt"),
        (&["report"], "RESULT"),
    ] {
        let (code, error) = folder.fails(args);
        assert!(code == 2 && error.contains(words) && error.lines().count() == 1, "{args:?}: {code} {error}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("select.json")).unwrap(), SELECT);
}
