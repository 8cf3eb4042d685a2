//! The table of `make bench-peers`: the same jobs done by the tools people use and by us, in one run.

use crate::peer::Peer;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io::Write as _;

/// Names the file that rows of the table are added to; without it nothing is kept.
pub const ROWS: &str = "POLYURN_BENCH_ROWS";

/// What stands around the table in the README.
const BEGIN: &str = "<!-- by make bench-peers -->\n";
const END: &str = "<!-- end of make bench-peers -->\n";

/// One job: who else did it, and how long both took.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The job.
    pub task: String,
    /// The peer with its version.
    pub peer: String,
    /// Its seconds.
    pub theirs: f64,
    /// Ours.
    pub ours: f64,
}

impl Row {
    /// Keeps a row for the table, if somebody is making it.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn keep(task: impl Into<String>, peer: &str, theirs: f64, ours: f64) {
        let Ok(path) = std::env::var(ROWS) else { return };
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a file for rows");
        let row = json!({"task": task.into(), "peer": peer, "theirs": theirs, "ours": ours});
        writeln!(file, "{row}").expect("a file that can be written");
    }

    /// The rows that were kept, one on a line.
    ///
    /// # Panics
    /// When a line is no row.
    pub fn read_all(text: &str) -> Vec<Row> {
        let row = |line: &str| {
            let found: Value = serde_json::from_str(line).expect("JSON");
            let text = |name: &str| found[name].as_str().expect("text").to_owned();
            let number = |name: &str| found[name].as_f64().expect("a finite number");
            Row { task: text("task"), peer: text("peer"), theirs: number("theirs"), ours: number("ours") }
        };
        text.lines().map(row).collect()
    }

    fn ratio(&self) -> f64 {
        self.theirs / self.ours
    }
}

/// Where and when everything ran.
#[derive(Debug)]
pub struct Place {
    /// The day.
    pub date: String,
    /// Processor, cores, and versions that all peers share.
    pub machine: String,
}

impl Place {
    /// This place, now.
    ///
    /// # Panics
    /// When Python cannot tell.
    pub fn here() -> Self {
        let found = Peer::run("machine.py", "").found;
        let text = |name: &str| found[name].as_str().expect("text").to_owned();
        Place { date: text("date"), machine: text("machine") }
    }
}

/// The table, and what it says about jobs at which we are slower.
pub fn markdown(rows: &[Row], place: &Place) -> String {
    let mut text = format!("One run on {}: {}. One thread, unless said.\n\n", place.date, place.machine);
    text += "| job | peer | peer, s | ours, s | peer / ours |\n|---|---|---:|---:|---:|\n";
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.task,
            row.peer,
            digits(row.theirs),
            digits(row.ours),
            digits(row.ratio())
        );
    }
    let slower: Vec<String> = rows
        .iter()
        .filter(|row| row.ratio() < 1.0)
        .map(|row| format!("- {}: {} takes {} of our time", row.task, row.peer, digits(row.ratio())))
        .collect();
    text += "\nWhat we are slower at:\n\n";
    text += &if slower.is_empty() { "- none of these jobs, in this run".to_owned() } else { slower.join("\n") };
    text + "\n"
}

/// The page with the table.
pub fn page(table: &str) -> String {
    let what = "`make bench-peers` installs the tools from PyPI, runs both sides of every job one after another, and writes this page and the\n\
                table of the README. A peer that cannot be installed or fails is an error. Jobs and their settings are described in\n\
                [benchmarks.md](benchmarks.md); every ratio to another tool that is claimed anywhere is from here.\n";
    format!("# Against the tools people use\n\n{what}\n{table}")
}

/// The README with another table.
///
/// # Panics
/// When it has no place for one.
pub fn in_readme(readme: &str, table: &str) -> String {
    let (before, rest) = readme.split_once(BEGIN).expect("a place for the table");
    let (_, after) = rest.split_once(END).expect("an end of the table");
    format!("{before}{BEGIN}{table}{END}{after}")
}

/// Three digits that count.
fn digits(value: f64) -> String {
    let decimals = (2.0 - value.abs().log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(name: &str) -> String {
        std::fs::read_to_string(format!("{}/../{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    }

    #[test]
    fn three_digits_count() {
        let shown = [0.000_115_4, 0.0987, 1.0, 9.876, 35.84, 150.2, 7e4].map(digits);
        assert_eq!(shown, ["0.000115", "0.0987", "1.00", "9.88", "35.8", "150", "70000"]);
    }

    #[test]
    fn a_job_at_which_we_are_slower_is_named() {
        let row = |task: &str, ours: f64| Row { task: task.into(), peer: "tool 1.0".into(), theirs: 1.0, ours };
        let place = Place { date: "2026-01-02".into(), machine: "two cores".into() };
        let text = markdown(&[row("sums", 0.5), row("reads", 4.0)], &place);
        assert!(text.contains("| sums | tool 1.0 | 1.00 | 0.500 | 2.00 |\n"), "{text}");
        assert!(text.contains("\n- reads: tool 1.0 takes 0.250 of our time\n"), "{text}");
        assert!(!text.contains("- sums"), "{text}");
        assert!(markdown(&[row("sums", 0.5)], &place).contains("- none of these jobs"));
    }

    #[test]
    fn rows_come_back() {
        let line = json!({"task": "sums", "peer": "tool", "theirs": 2.0, "ours": 0.5}).to_string();
        let row = Row { task: "sums".into(), peer: "tool".into(), theirs: 2.0, ours: 0.5 };
        assert_eq!(Row::read_all(&format!("{line}\n{line}\n")), [row.clone(), row]);
    }

    #[test]
    fn the_readme_has_the_table_of_the_page() {
        let (readme, text) = (root("README.md"), root("docs/peers.md"));
        let (_, table) = text.split_once("One run on ").expect("a table");
        let table = format!("One run on {table}");
        assert_eq!(page(&table), text);
        assert_eq!(in_readme(&readme, &table), readme);
    }
}
