//! Factors, marginals and expected counts of `fit`, as a process.

use crate::support::Folder;
use serde_json::Value;

const TABLE: &str = "person,food,count\nann,apple,5\nann,bread,1\nann,cake,7\nbob,apple,2\nbob,cake,4\ncem,bread,9\ncem,cake,1\ndee,apple,3\ndee,bread,2\n";

const FIT: [&str; 7] = ["fit", "--model", "k[2] -> person food", "--data", "table.csv", "--seed", "3"];

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("table.csv", TABLE);
    folder
}

fn row(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap()).collect()
}

fn matrix(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().unwrap().iter().map(row).collect()
}

/// W H at a record is what the record is expected to be, for every engine that has one labelling.
#[test]
fn w_times_h_is_what_is_expected() {
    let folder = folder();
    for method in [&["em", "--prior", "none"][..], &["vb"], &["dual-em"], &["icm"], &["smc", "--particles", "50"]] {
        let fit = folder.json(&[&FIT[..], &["--factors", "--expected", "--method"], method].concat());
        let found = &fit["decomposition"];
        assert_eq!(found["shape"], "matrix", "{method:?}");
        let (w, h) = (matrix(&found["w"]), matrix(&found["h"]));
        assert_eq!((w.len(), w[0].len(), h.len(), h[0].len()), (4, 2, 2, 3));
        let of = |factor: usize, name: &Value| {
            let labels = found["factors"][factor]["labels"].as_array().unwrap();
            labels.iter().position(|label| label == name).unwrap()
        };
        assert_eq!(found["expected"].as_array().unwrap().len(), 9);
        for record in found["expected"].as_array().unwrap() {
            let (i, j) = (of(0, &record["record"]["person"]), of(1, &record["record"]["food"]));
            let product: f64 = (0..2).map(|k| w[i][k] * h[k][j]).sum();
            assert!((product - record["expected"].as_f64().unwrap()).abs() < 1e-10, "{record}");
        }
        let core = row(&found["core"]["values"]);
        assert!((core.iter().sum::<f64>() - fit["intensity"]["mean"].as_f64().unwrap()).abs() < 1e-9);
        assert!(found["squared_error"].as_f64().unwrap() > 0.0, "{found}");
        let divergence = found["kl_divergence"].as_f64().unwrap();
        assert!((found["deviance"].as_f64().unwrap() - 2.0 * divergence).abs() < 1e-12);
        if method[0] != "smc" {
            assert!((fit["kl_divergence"].as_f64().unwrap() - divergence).abs() < 1e-9, "{fit}");
        }
    }
    let fit = folder.json(&[&FIT[..], &["--factors", "--method", "smc", "--particles", "50", "--runs", "2"]].concat());
    let from = fit["decomposition"]["tables_from"].as_str().unwrap();
    assert!(from.starts_with("the best allocation, in run "), "{from}");
}

#[test]
fn marginals_are_arrays_in_the_order_of_their_nodes() {
    let folder = folder();
    let fit = folder
        .json(&[&FIT[..], &["--method", "vb", "--marginal", "food,k", "--marginal", "food", "--top", "2"]].concat());
    let found = &fit["decomposition"];
    let joint = matrix(&found["marginals"][0]["values"]);
    let food = row(&found["marginals"][1]["values"]);
    assert_eq!((joint.len(), joint[0].len()), (3, 2));
    assert!(joint.iter().zip(&food).all(|(row, p)| (row.iter().sum::<f64>() - p).abs() < 1e-12));
    assert!((food.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(found["marginals"][0]["labels"][0], serde_json::json!(["apple", "bread", "cake"]));
    let top = found["top"].as_array().unwrap();
    assert!(top.len() == 4 && top.iter().all(|entry| entry["labels"].as_array().unwrap().len() == 2), "{found}");
    assert!(found["factors"].is_null(), "only what was asked for");
    let text = folder.run(&[&FIT[..], &["--method", "vb", "--factors"]].concat());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("decomposition: X ~ W H; from posterior means") && text.contains("Hoyer"), "{text}");
}

#[test]
fn what_cannot_be_decomposed_is_refused_in_one_line() {
    let folder = folder();
    for (flags, words) in [
        (&["--method", "vb", "--marginal", "food,drink"][..], "no node \"drink\"; there are k, person, food"),
        (&["--method", "vb", "--marginal", "food,food"], "food is listed twice"),
        (&["--method", "exact", "--factors"], "use --method smc, gibbs, vb or em"),
        (&["--method", "vb", "--model", "person -> food", "--factors"], "no hidden node"),
    ] {
        let model = if flags.contains(&"--model") { &["fit", "--data", "table.csv", "--seed", "3"][..] } else { &FIT };
        let output = folder.run(&[model, flags].concat());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(words) && output.stdout.is_empty(), "{error}");
        assert_eq!(error.lines().filter(|line| line.starts_with("error")).count(), 1, "{error}");
    }
}

/// A stream is not kept, but its tables are.
#[test]
fn a_stream_has_factors_and_marginals_too() {
    let folder = folder();
    let stream =
        ["--method", "svb", "--tokens", "34", "--seen", "person[4],food[3]", "--factors", "--marginal", "food"];
    let found = &folder.json(&[&FIT[..], &stream].concat())["decomposition"];
    assert_eq!(found["shape"], "matrix", "{found}");
    assert_eq!((matrix(&found["w"]).len(), matrix(&found["h"]).len()), (4, 2));
    assert!((row(&found["marginals"][0]["values"]).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(found["squared_error"].is_null() && found["kl_divergence"].is_null(), "{found}");
    for (flags, words) in [(&stream[..6], "--expected"), (&stream[..4], "--seen")] {
        let flag = if flags.len() == 6 { "--expected" } else { "--top" };
        let more = if flags.len() == 6 { &["--expected"][..] } else { &["--top", "3"] };
        let (code, error) = folder.fails(&[&FIT[..], flags, more].concat());
        assert!(code == 2 && error.contains(words) && error.contains(flag), "{error}");
    }
}
