//! `polyurn export`: a fit in the forms that other tools read.

use crate::args::{ExportArgs, ExportFormat};
use crate::output::{Failure, Output};
use polyurn::Warning;
use polyurn::export::Export;
use polyurn::fit_file::FitFile;
use polyurn::shown::fit_file_json;
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
        ExportFormat::Json => json_text(&fit_file_json(&fit, export.tables())),
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
    if args.to == ExportFormat::Csv {
        output.note_formulas(&fit.labels);
    }
    output.write(|out| out.write_all(&bytes))
}

fn json_text(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}
