//! `polyurn check`: what is in a file, and what is odd.

use crate::args::CheckArgs;
use crate::load::load_data;
use crate::output::{Failure, Output};
use crate::text::{columns, plural, show_count};
use polyurn::io::Summary;
use std::path::Path;

/// Patterns of missing values that are shown to people.
const SHOWN_PATTERNS: usize = 8;

/// Reads and describes a file.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let path = args.file.as_deref().or(args.data.as_deref()).unwrap_or_else(|| Path::new("-"));
    let output = Output::open(&args.output, &[path])?;
    let (dataset, origin) = load_data(path, &args.reading, false, &output)?;
    let summary = Summary::new(&dataset, &origin);
    output.result(
        || {
            let mut value = serde_json::to_value(&summary).expect("a summary is plain data");
            value["seed"] = serde_json::json!(output.seed());
            value["version"] = polyurn::VERSION.into();
            value
        },
        || text(&summary),
    )
}

fn text(summary: &Summary) -> String {
    let compression = summary.compression.map_or(String::new(), |kind| format!(", {kind:?}").to_lowercase());
    let mut text = format!("{} ({}{compression})\n", summary.source, summary.format);
    text += &format!(
        "  {}, {} distinct, {}\n",
        plural(summary.rows, "row"),
        show_count(summary.distinct_rows),
        plural(summary.tokens, "token")
    );
    if summary.zero_rows > 0 {
        text += &format!("  {} with count zero\n", plural(summary.zero_rows, "row"));
    }
    if summary.unknown_cells > 0 {
        text += &format!("  {} with unknown count\n", plural(summary.unknown_cells, "cell"));
    }
    if !summary.columns.is_empty() {
        let header = ["column", "values", "missing", "most common"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for column in &summary.columns {
            let common: Vec<String> = column
                .most_common
                .iter()
                .map(|entry| format!("{} ({})", entry.label, show_count(entry.tokens)))
                .collect();
            rows.push(vec![
                column.name.clone(),
                show_count(column.values),
                show_count(column.missing_tokens),
                common.join(", "),
            ]);
        }
        // The last column reads better flush left.
        let widest = rows.iter().map(|row| row[3].chars().count()).max().unwrap_or(0);
        for row in &mut rows {
            row[3] = format!("{:<widest$}", row[3]);
        }
        text += &format!("\n{}", columns(&rows));
    }
    let missing: Vec<_> = summary.missing_patterns.iter().filter(|pattern| !pattern.columns.is_empty()).collect();
    if !missing.is_empty() {
        text += "\nmissing together\n";
        for pattern in missing.iter().take(SHOWN_PATTERNS) {
            text += &format!(
                "  {}: {} ({:.1} %)\n",
                pattern.columns.join(", "),
                plural(pattern.tokens, "token"),
                pattern.share * 100.0
            );
        }
        if missing.len() > SHOWN_PATTERNS {
            text += &format!("  and {} more patterns (see --json)\n", missing.len() - SHOWN_PATTERNS);
        }
    }
    if summary.warnings.is_empty() && summary.odd.is_empty() {
        text += "\nnothing odd\n";
    } else {
        text += "\nodd\n";
        for line in summary.warnings.iter().chain(&summary.odd) {
            text += &format!("  {line}\n");
        }
    }
    text
}
