//! `polyurn export`: a fit in the forms that other tools read.

use crate::args::{ExportArgs, ExportFormat};
use crate::output::{Failure, Output};
use polyurn::Warning;
use polyurn::engine::TableMeans;
use polyurn::export::Export;
use polyurn::fit_file::FitFile;
use serde_json::{Value, json};

/// Exports a fit.
pub fn run(args: &ExportArgs) -> Result<(), Failure> {
    let output = Output::open(&args.output, &[&args.fit])?;
    if args.factors && args.to != ExportFormat::Csv {
        return Err(Failure::Usage("--factors: it goes with --to csv; an npz archive has tables and factors".into()));
    }
    if args.output.json && !matches!(args.to, ExportFormat::Json | ExportFormat::Pyldavis) {
        return Err(Failure::Usage("--json: --to says what is written; give --to json".into()));
    }
    let fit = FitFile::read(&args.fit)?;
    let export = Export::new(&fit, args.draw.unwrap_or_default())?;
    let bytes = match args.to {
        ExportFormat::Csv if args.factors => export.factors_csv()?.into_bytes(),
        ExportFormat::Csv => export.tables_csv().into_bytes(),
        ExportFormat::Npz => export.npz()?,
        ExportFormat::Bif => export.bif()?.into_bytes(),
        ExportFormat::Pyldavis => json_text(&json!(export.topics()?)),
        ExportFormat::Json => json_text(&all(&fit, export.tables())),
    };
    if args.to == ExportFormat::Npz && args.output.output.is_none() {
        use std::io::IsTerminal;
        if std::io::stdout().is_terminal() {
            return Err(Failure::Usage("--to npz: an archive is no text; give a file with -o".into()));
        }
    }
    if export.is_averaged() {
        output.warn(&[Warning::LabelAveraged { nodes: fit.label_averaged.clone() }]);
    }
    output.write(|out| out.write_all(&bytes))
}

fn json_text(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// What `fit --json` printed when the file was written, as far as it is kept.
pub fn result_of(fit: &FitFile) -> Value {
    let description = all(fit, &fit.tables);
    let mut object = fit.result.clone();
    object["command"] = json!("fit");
    for field in ["model", "nodes", "command_line", "tables"] {
        object[field] = description[field].clone();
    }
    object["model"] = json!(super::info_fit::given_model(fit));
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
fn all(fit: &FitFile, tables: &[TableMeans]) -> Value {
    let mut object = fit.description();
    let tables = tables.iter().map(|table| super::table_shown::json(&fit.model, &fit.labels, table));
    object["tables"] = tables.collect();
    object
}
