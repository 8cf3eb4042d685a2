//! Every case of `exact.json`, through the same model files and CSV text that a user would give.

use crate::support::{assert_relative, csv};
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Exact, TotalsRange, posterior};
use polyurn::evidence::{evidence, totals};
use polyurn::graph::{BindOptions, bind};
use polyurn::io::{ModelFormat, parse_model_file};
use polyurn::prior::{Prior, PriorSettings};
use serde_json::{Map, Value, json};

pub fn cases() -> Vec<Value> {
    let text = include_str!("../fixtures/exact.json");
    let file: Value = serde_json::from_str(text).unwrap();
    assert_eq!(file["format"], "bam-cases-1");
    file["cases"].as_array().unwrap().clone()
}

/// The case's model as a model file.
fn model_file(case: &Value) -> String {
    let mut file = Map::new();
    for field in ["nodes", "edges", "tied", "prior", "a", "b"] {
        if let Some(value) = case.get(field) {
            file.insert(field.into(), value.clone());
        }
    }
    Value::Object(file).to_string()
}

fn show(value: &Value) -> String {
    if value.is_null() { String::new() } else { value.to_string() }
}

/// The case's data as CSV, with the unknown cell if it is wanted.
fn data_file(case: &Value, with_unknown: bool) -> String {
    let list = |values: &Value| values.as_array().unwrap().iter().map(show).collect::<Vec<_>>().join(",");
    let mut columns = case["data"]["columns"].as_array().unwrap().clone();
    columns.push(json!("count"));
    let mut text = columns.iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>().join(",");
    text.push('\n');
    for row in case["data"]["rows"].as_array().unwrap() {
        text += &list(row);
        text.push('\n');
    }
    if with_unknown {
        text += &format!("{},?\n", list(&case["unknown_cell"]));
    }
    text
}

pub fn number(value: &Value) -> f64 {
    match value.as_str() {
        Some("-inf") => f64::NEG_INFINITY,
        _ => value.as_f64().unwrap(),
    }
}

pub fn with_problem<T>(case: &Value, with_unknown: bool, f: impl FnOnce(&Problem<'_>) -> T) -> T {
    let file = parse_model_file(&model_file(case), ModelFormat::Json, "case.json").unwrap();
    let binding = bind(&file.source, &csv(&data_file(case, with_unknown)), BindOptions::default()).unwrap();
    let settings =
        PriorSettings { spec: file.prior.unwrap_or_default(), a: file.a, rate: file.b, ..Default::default() };
    let prior = Prior::build(&binding.model, &settings).unwrap();
    f(&Problem::new(&binding.model, &prior, &binding.counts).unwrap())
}

#[test]
fn evidence_and_its_parts_agree_with_every_case() {
    for case in cases() {
        let name = case["name"].as_str().unwrap();
        let exact = &case["exact"];
        let found = with_problem(&case, false, |problem| {
            let sequence = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
            evidence(problem, sequence.ln_p_sequence).unwrap()
        });
        let n_seen = case["visible"].as_array().unwrap().len();
        let tolerance = if n_seen == case["nodes"].as_array().unwrap().len() { 1e-12 } else { 1e-10 };
        for (part, got) in [
            ("log_marginal", found.log_marginal),
            ("log_p_total", found.log_p_total),
            ("log_arrangements", found.log_arrangements),
            ("log_p_sequence", found.log_p_sequence),
        ] {
            assert_relative(&format!("{name} {part}"), got, number(&exact[part]), tolerance);
        }
    }
}

#[test]
fn posterior_expectations_agree_with_every_case() {
    let mut n_checked = 0;
    for case in cases() {
        let Some(want) = case["exact"].get("posterior") else { continue };
        let name = case["name"].as_str().unwrap();
        with_problem(&case, false, |problem| {
            let posterior = posterior(&Exact::default(), problem, &mut Control::default()).unwrap();
            assert_relative(&format!("{name} d_ep"), posterior.d_ep(), number(&want["d_ep"]), 1e-10);
            let want_squares = want["table_sum_of_squares"].as_object().unwrap();
            let squares = posterior.table_sum_of_squares();
            assert_eq!(squares.len(), want_squares.len());
            for (table_ix, got) in squares.into_iter().enumerate() {
                let table = problem.model.table_name(polyurn::graph::TableIndex(table_ix as u32));
                assert_relative(&format!("{name} squares of {table}"), got, number(&want_squares[table]), 1e-10);
            }
            assert_relative(
                &format!("{name} log_p_sequence"),
                posterior.ln_p_sequence.value(),
                number(&case["exact"]["log_p_sequence"]),
                1e-10,
            );
        });
        n_checked += 1;
    }
    assert!(n_checked >= 14);
}

#[test]
fn unknown_cells_agree_with_every_case() {
    let mut n_checked = 0;
    for case in cases().into_iter().filter(|case| case.get("unknown_cell").is_some()) {
        let wanted: Vec<u64> = case["totals"].as_array().unwrap().iter().map(|total| total.as_u64().unwrap()).collect();
        let range = TotalsRange::Between(wanted[0], wanted[wanted.len() - 1]);
        let found = with_problem(&case, true, |problem| {
            totals(problem, &Exact::default(), range, &mut Control::default()).unwrap()
        });
        assert_eq!(found.iter().map(|entry| entry.tokens).collect::<Vec<_>>(), wanted);
        for (entry, want) in found.iter().zip(case["exact"]["log_joint"].as_array().unwrap()) {
            assert_relative(&format!("total {}", entry.tokens), entry.log_joint, number(want), 1e-10);
        }
        n_checked += 1;
    }
    assert_eq!(n_checked, 1);
}
