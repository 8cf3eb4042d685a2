//! `polyurn info FIT`: what a fit file holds.

use crate::args::InfoArgs;
use crate::output::{Failure, Output};
use crate::text::{plural, show_error, show_estimate, show_ln, show_short};
use polyurn::fit::objective_name;
use polyurn::fit_file::{FORMAT_VERSION, FitFile, Intensity};
use polyurn::shown::given_model;
use serde_json::Value;
use std::path::Path;

/// Describes a fit file.
pub fn run(args: &InfoArgs, path: &Path) -> Result<(), Failure> {
    let output = Output::open(&args.output, &[path])?;
    let fit = FitFile::read(path)?;
    output.result(
        || {
            let mut object = fit.description();
            // Every command says which seed it ran with; here it is that of the fit.
            object["seed"] = fit.seed.into();
            object
        },
        || text(&fit, path),
    )
}

fn text(fit: &FitFile, path: &Path) -> String {
    let mut text = String::new();
    let mut lines: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| lines.push((name.to_owned(), value));
    add("fit", format!("{}, format {FORMAT_VERSION}, written by polyurn {}", path.display(), fit.version));
    let (given, whole) = (given_model(fit), fit.model.to_text());
    add("model", given.clone());
    add("method", fit.method.clone());
    let number = |field: &str| fit.result[field].as_f64();
    let error = number("std_error");
    let is_likelihood = !fit.prior.is_given;
    if let Some(objective) = number("objective") {
        let shown = match fit.method.as_str() {
            // Most digits of a noisy number say nothing.
            "svb" => format!("{objective:.0}"),
            _ => format!("{} {}", show_estimate(objective, error), show_error(error)),
        };
        add(objective_name(&fit.method, is_likelihood), shown.trim_end().to_owned());
    } else if let Some(objective) = fit.result["objective"].as_str() {
        add(objective_name(&fit.method, is_likelihood), objective.to_owned());
    }
    let is_bound = fit.method == "vb";
    for (field, name) in [
        ("log_p_total", "  of it the total"),
        ("log_arrangements", "  arrangements"),
        ("log_p_sequence", if is_bound { "  bound on the sequence" } else { "  sequence" }),
    ] {
        if let Some(value) = number(field) {
            add(name, show_ln(value));
        }
    }
    if let Some(iterations) = fit.result["iterations"].as_u64() {
        let converged = match fit.result["converged"].as_bool() {
            Some(true) => ", converged",
            Some(false) => ", not converged",
            None => "",
        };
        add("sweeps or batches", format!("{iterations}{converged}"));
    }
    let tokens = fit.data.n_tokens;
    let tokens = if tokens.fract() == 0.0 { plural(tokens as u64, "token") } else { format!("{tokens} tokens") };
    add("data", format!("{tokens} in {} of {}", plural(fit.data.n_records, "record"), fit.data.source));
    add("  SHA-256", fit.data.sha256.clone().unwrap_or_else(|| "not known (standard input)".into()));
    add(
        "intensity",
        match fit.intensity {
            Intensity::Point(value) => show_short(value),
            Intensity::Gamma { shape, rate } => {
                format!("{} (sd {})", show_short(shape / rate), show_short(shape.sqrt() / rate))
            }
        },
    );
    let prior = &fit.prior;
    add(
        "prior",
        match (prior.is_given, prior.rate) {
            (false, _) => "none (maximum likelihood)".into(),
            (true, None) => format!("a {}, shape {}, rate shape/tokens", show_short(prior.a), show_short(prior.shape)),
            (true, Some(rate)) => {
                format!("a {}, shape {}, rate {}", show_short(prior.a), show_short(prior.shape), show_short(rate))
            }
        },
    );
    let settings: Vec<String> = match &fit.settings {
        // The memory that was allowed changes no result.
        Value::Object(settings) => settings
            .iter()
            .filter(|(name, _)| !["max_memory", "model"].contains(&name.as_str()))
            .map(|(name, value)| format!("{} {value}", name.replace('_', "-")))
            .collect(),
        _ => Vec::new(),
    };
    if given != whole {
        add("model in full", whole);
    }
    add("settings given", if settings.is_empty() { "none".to_owned() } else { settings.join(", ") });
    add("seed", fit.seed.to_string());
    add("to repeat it", command(fit));
    if let Some(best) = &fit.best {
        add("best allocation", format!("{} of tokens", plural(best.allocation.len() as u64, "group")));
    }
    if !fit.draws.is_empty() {
        add("draws from the posterior", fit.draws.len().to_string());
    }
    for warning in fit.result["warnings"].as_array().into_iter().flatten() {
        add("warning", warning["message"].as_str().unwrap_or_default().to_owned());
    }
    for (name, value) in lines {
        let clean: String = value.chars().flat_map(printable).collect();
        text += format!("{name:<30} {clean}").trim_end();
        text.push('\n');
    }
    let is_point = matches!(fit.intensity, Intensity::Point(_));
    let all = "polyurn export --to csv";
    fit.tables
        .iter()
        .for_each(|table| text += &polyurn::shown::table_text(&fit.model, &fit.labels, table, is_point, all));
    text
}

/// Labels and words may hold anything; a line break in them must not break the list.
fn printable(c: char) -> Vec<char> {
    if c.is_control() { c.escape_debug().collect() } else { vec![c] }
}

/// The command line with the seed, in the quotes of a shell.
fn command(fit: &FitFile) -> String {
    let mut words = fit.command_line.clone();
    if !words.iter().any(|word| word == "--seed" || word.starts_with("--seed=")) {
        words.extend(["--seed".to_owned(), fit.seed.to_string()]);
    }
    let quoted = words.iter().map(|word| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:+@%".contains(c);
        let needs_quotes = word.is_empty() || !word.chars().all(is_plain);
        if needs_quotes { format!("'{}'", word.replace('\'', r"'\''")) } else { word.clone() }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
