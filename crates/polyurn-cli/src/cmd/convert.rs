//! `polyurn convert`: counts in another format.

use crate::args::ConvertArgs;
use crate::load::load_data;
use crate::output::{Failure, Output, check_writable, write_atomically};
use crate::text::plural;
use polyurn::Error;
use polyurn::io::{Format, check_conversion, conversion_notes, vocabulary_of, write_converted};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Reads a file and writes it.
pub fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let format = target_format(args)?;
    let mut output = Output::open(&args.output, &[&args.file])?;
    let path = output.take_path();
    if path.is_none() && args.output.json {
        let message =
            "--json: it describes what was written, and needs the data out of the way; write them to a file by -o";
        return Err(Failure::Usage(message.into()));
    }
    let (dataset, origin) = load_data(&args.file, &args.reading, false, &output)?;
    check_conversion(&dataset, format)?;
    output.warn(&dataset.warnings);
    let mut notes = conversion_notes(&dataset, format);
    let words = match &path {
        Some(path) => vocabulary_of(&dataset, path, format)?,
        None => {
            if vocabulary_of(&dataset, Path::new(""), format)?.is_some() {
                notes.push("words are written to a file beside the output, so only with -o".into());
            }
            None
        }
    };
    if let Some((path, _)) = &words {
        check_writable(path, &[&args.file])?;
    }
    notes.iter().for_each(|line| output.note(&format!("note: {line}")));
    let Some(path) = path else {
        return output.write(|out| {
            write_converted(out, Path::new("standard output"), &dataset, format).map_err(|error| match error {
                Error::Io { source, .. } => source,
                other => std::io::Error::other(other.to_string()),
            })
        });
    };
    // The words first: data without them would be read by numbers.
    if let Some((path, words)) = &words {
        let lines = |out: &mut dyn Write| words.iter().try_for_each(|word| writeln!(out, "{word}"));
        write_atomically(path, lines).map_err(|error| Failure::Write(format!("{}: {error}", path.display())))?;
    }
    let mut refused = None;
    let written = write_atomically(&path, |out| {
        write_converted(out, &path, &dataset, format).map_err(|error| match error {
            Error::Io { source, .. } => source,
            other => {
                let message = other.to_string();
                refused = Some(other);
                std::io::Error::other(message)
            }
        })
    });
    if let Some(error) = refused {
        return Err(error.into());
    }
    written.map_err(|error| Failure::Write(format!("{}: {error}", path.display())))?;
    let n_tokens = dataset.n_tokens();
    let words: Option<&PathBuf> = words.as_ref().map(|(path, _)| path);
    output.result(
        || {
            json!({
                "source": dataset.source,
                "from": origin.format,
                "output": path,
                "to": format,
                "vocabulary": words,
                "rows": dataset.n_rows(),
                "unknown_cells": dataset.unknown.len(),
                "tokens": n_tokens,
                "notes": notes,
                "version": polyurn::VERSION,
            })
        },
        || {
            let beside = words.map_or(String::new(), |words| format!(", words in {}", words.display()));
            let rows = plural(dataset.n_rows() as u64, "row");
            format!("{} ({}) to {} ({format}): {rows}{beside}\n", dataset.source, origin.format, path.display())
        },
    )
}

/// The format to write, from the flag or the name.
fn target_format(args: &ConvertArgs) -> Result<Format, Failure> {
    let path = args.output.output.as_deref();
    let is_packed = |path: &&Path| {
        path.extension()
            .is_some_and(|end| ["gz", "gzip", "zst", "zstd"].iter().any(|other| end.eq_ignore_ascii_case(other)))
    };
    if let Some(path) = path.filter(is_packed) {
        return Err(Failure::Usage(format!(
            "{}: data are written as they are; leave its last ending out",
            path.display()
        )));
    }
    let found = args.to.or_else(|| path.and_then(Format::from_path));
    found.ok_or_else(|| Failure::Usage("--to: say the format to write, or give -o a name that tells it".into()))
}
