//! A fit file, to programs.

use super::table::table_json;
use crate::engine::TableMeans;
use crate::fit_file::FitFile;
use serde_json::{Value, json};

/// The model as it was given, where the file knows.
pub fn given_model(fit: &FitFile) -> String {
    fit.settings["model"].as_str().map_or_else(|| fit.model.to_text(), str::to_owned)
}

/// What `fit --json` printed when the file was written, as far as it is kept.
pub fn fit_file_result(fit: &FitFile) -> Value {
    let description = fit_file_json(fit, &fit.tables);
    let mut object = fit.result.clone();
    object["command"] = json!("fit");
    for field in ["model", "nodes", "command_line", "tables"] {
        object[field] = description[field].clone();
    }
    object["model"] = json!(given_model(fit));
    let columns = fit.model.nodes().iter().zip(&fit.is_seen).filter(|(_, seen)| **seen).map(|(node, _)| &node.name);
    object["data"] = json!({
        "file": description["data"]["source"],
        "tokens": object["tokens"],
        "records": object["records"],
        "columns": columns.collect::<Vec<_>>(),
    });
    if fit.prior.is_given {
        object["a"] = json!(fit.prior.a);
        object["shape"] = json!(fit.prior.shape);
        object["b"] = json!(fit.prior.rate);
    }
    object
}

/// What the file says, with tables of it.
pub fn fit_file_json(fit: &FitFile, tables: &[TableMeans]) -> Value {
    let mut object = fit.description();
    let tables = tables.iter().map(|table| table_json(&fit.model, &fit.labels, table));
    object["tables"] = tables.collect();
    object
}
