//! `compare`: one model under several names.

use crate::support::Folder;
use serde_json::{Value, json};

/// Answers of 216 students to four questions, from the demonstration.
const DILEMMAS: &str = include_str!("../../src/demo_data/dilemmas.csv");
/// A model file with an `a` of its own.
const OWN_A_TWO_CLASSES: &str = r#"{
    "a": 4, "nodes": [{"name": "r", "card": 2}, {"name": "passenger"}, {"name": "critic"}, {"name": "doctor"}, {"name": "director"}],
    "edges": [["r", "passenger"], ["r", "critic"], ["r", "doctor"], ["r", "director"]]
}"#;

/// Names of models that a warning takes for one.
fn same_models(folder: &Folder, models: &[&str], more: &[&str]) -> Vec<Value> {
    let mut flags = vec!["compare", "--data", "dilemmas.csv", "--seed", "1", "--sensitivity", "none"];
    models.iter().for_each(|model| flags.extend(["--model", model]));
    // How well they are scored does not matter.
    flags.extend([
        "--method",
        "smc",
        "--particles",
        "4",
        "--runs",
        "2",
        "--rejuvenate",
        "0",
        "--heat",
        "1",
        "--no-bound",
    ]);
    let result = folder.json(&[&flags[..], more].concat());
    let warnings = result["warnings"].as_array().unwrap();
    warnings.iter().filter(|warning| warning["kind"] == "same_model").map(|one| one["models"].clone()).collect()
}

#[test]
fn one_model_under_two_names_is_told() {
    let folder = Folder::new();
    folder.write("dilemmas.csv", DILEMMAS);
    let same = |models: &[&str]| same_models(&folder, models, &[]);
    let two = "q[2] -> director passenger critic doctor";
    assert_eq!(
        same(&["independent", "lca(2)", "lca(1)", two, "lca(3)"]),
        [json!(["independent", "lca(1)"]), json!(["lca(2)", two])]
    );
    // Hidden nodes are told by what hangs on them, not by their names; here they have changed sides.
    let near = "x[2] -> y[2]; x -> passenger critic; y -> doctor director";
    assert_eq!(same(&[near, "x[2] -> y[2]; y -> passenger critic; x -> doctor director"]), Vec::<Value>::new());
    let renamed = "y[2] -> x[2]; y -> passenger critic; x -> doctor director";
    assert_eq!(same(&[near, renamed]), [json!([near, renamed])]);
    assert_eq!(same(&["x[2] -> y[3]; x -> passenger critic; y -> doctor director", near]), Vec::<Value>::new());
    assert_eq!(same(&["lca(2)", "r[2] -> passenger critic doctor director; passenger ~ critic"]), Vec::<Value>::new());
    // A hidden node with nothing seen below it says nothing, nor does one that is only heard through a node of one value.
    let (idle, heard) =
        ("passenger; critic; doctor; director; z[3]", "x[2] -> y[1] -> passenger critic doctor director");
    assert_eq!(same(&["independent", idle, heard]), [json!(["independent", idle, heard])]);
    let below = "r[2] -> passenger critic doctor director; r passenger -> z[3]";
    assert_eq!(same(&["lca(2)", below]), [json!(["lca(2)", below])]);
    assert_eq!(same(&[below, "r[2] -> passenger critic doctor; r passenger -> z[3] -> director"]), Vec::<Value>::new());
    // Another prior is another model.
    folder.write("own.json", OWN_A_TWO_CLASSES);
    assert_eq!(same(&["own.json", two]), Vec::<Value>::new());
    assert_eq!(same_models(&folder, &["lca(2)", two], &["--pseudo-count", "passenger=3"]).len(), 1);
    let text = folder.run(&["compare", "--model", "independent", "--model", "lca(1)", "--data", "dilemmas.csv"]);
    let said = String::from_utf8(text.stderr).unwrap();
    assert!(said.contains("`independent`, `lca(1)` are one model under several names"), "{said}");
    let verdict = String::from_utf8(text.stdout).unwrap();
    assert!(
        verdict.contains("`independent` and `lca(1)` have the same evidence: these data do not tell them apart."),
        "{verdict}"
    );
}
