//! `polyurn report`: a result as a page, and its plots as files.

use crate::args::ReportArgs;
use crate::output::{Failure, Output, check_writable, write_atomically};
use crate::text::plural;
use polyurn::Error;
use polyurn::fit_file::FitFile;
use polyurn::report::Report;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

/// How fit files begin, as all archives of their kind do.
const FIT_FILE: &[u8] = b"PK";

/// Reads a result and writes its report.
pub fn run(args: &ReportArgs) -> Result<(), Failure> {
    let output = Output::open(&args.output, &[&args.result])?;
    let mut report = read(&args.result)?;
    if let Some(title) = &args.title {
        report = report.with_title(title);
    }
    let plots = report.plots();
    if let Some(folder) = &args.svg {
        write_plots(folder, &plots, &args.result)?;
        output.note(&format!("{} in {}", plural(plots.len() as u64, "plot"), folder.display()));
    }
    output.result(
        || {
            let plots: Map<String, Value> = plots.iter().map(|(name, svg)| (name.clone(), json!(svg))).collect();
            json!({ "html": report.html(), "plots": plots, "seed": output.seed(), "version": polyurn::VERSION })
        },
        || report.html(),
    )
}

fn read(path: &Path) -> Result<Report, Failure> {
    let shown = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let found = if path == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    found.map_err(|error| Failure::Usage(format!("{shown}: {error}")))?;
    if bytes.starts_with(FIT_FILE) {
        let fit = FitFile::from_bytes(&bytes, &shown)?;
        return Ok(Report::from_json(&polyurn::shown::fit_file_result(&fit))?);
    }
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        Failure::Usage(format!("{shown}: not JSON: {error}; give what select, compare or fit printed with --json"))
    })?;
    Report::from_json(&value).map_err(|error| match error {
        Error::Data(mut error) => {
            error.source = shown;
            Failure::Library(Error::Data(error))
        }
        error => Failure::Library(error),
    })
}

/// Writes every plot, or says why it cannot before it writes the first.
fn write_plots(folder: &Path, plots: &[(String, String)], input: &Path) -> Result<(), Failure> {
    let shown = folder.display();
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::Usage(format!("--svg {shown}: {error}; give a folder that can be written")))?;
    let paths: Vec<PathBuf> = plots.iter().map(|(name, _)| folder.join(format!("{name}.svg"))).collect();
    paths.iter().try_for_each(|path| check_writable(path, &[input]))?;
    for (path, (_, svg)) in paths.iter().zip(plots) {
        write_atomically(path, |out| out.write_all(svg.as_bytes()))
            .map_err(|error| Failure::Write(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}
