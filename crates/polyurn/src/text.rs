//! Numbers, lists and tables as people read them.

use crate::counts::Unit;

/// Errors below this are those of the arithmetic: there are no digits for them.
const SMALLEST_ERROR: f64 = 1e-10;

/// A log probability with ten decimals, for people.
pub fn show_ln(value: f64) -> String {
    if value.is_infinite() { "-inf".into() } else { format!("{value:.10}") }
}

/// A number to about four digits.
pub fn show_short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        size if !(1e-3..1e6).contains(&size) => format!("{value:.3e}"),
        size if size >= 100.0 || value == value.trunc() => format!("{value:.0}"),
        _ => format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// A count with commas between thousands.
pub fn show_count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (ix, digit) in digits.chars().enumerate() {
        if ix > 0 && (digits.len() - ix).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things that may have fractions: whole ones with all their digits.
pub fn show_whole(value: f64) -> String {
    if value == value.trunc() && (0.0..1e15).contains(&value) { show_count(value as u64) } else { show_short(value) }
}

/// One thing or several.
pub fn plural(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", show_count(n)) }
}

/// `3 tokens`, or `2.5 tokens`.
pub fn show_tokens(n: u64, unit: Unit) -> String {
    if unit.is_token() {
        return plural(n, "token");
    }
    let tokens = unit.tokens(n);
    if tokens < 1e4 { format!("{} tokens", show_short(tokens)) } else { plural(tokens.round() as u64, "token") }
}

/// Rows of cells as aligned columns. The first column is flush left, the others flush right.
pub fn columns(rows: &[Vec<String>]) -> String {
    // A label may hold anything; a line break in it must not break the table.
    let clean = |cell: &String| -> String {
        if cell.chars().any(char::is_control) { cell.escape_debug().to_string() } else { cell.clone() }
    };
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(clean).collect()).collect();
    let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..n_columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            if column == 0 {
                line += &format!("{cell}{pad}");
            } else {
                line += &format!("  {pad}{cell}");
            }
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// A logarithm with as many digits as its error leaves.
pub fn show_estimate(value: f64, error: Option<f64>) -> String {
    match error {
        Some(error) if error > 0.0 && error.is_finite() && value.is_finite() => {
            let decimals = (1.0 - error.log10().floor()).clamp(1.0, 10.0) as usize;
            format!("{value:.decimals$}")
        }
        _ => show_ln(value),
    }
}

/// An error behind its estimate, to two digits.
pub fn show_error(error: Option<f64>) -> String {
    match error {
        Some(error) if error > 0.0 && error < SMALLEST_ERROR => format!("+- < {SMALLEST_ERROR:e}"),
        Some(error) if error > 0.0 && error.is_finite() => {
            let decimals = (1.0 - error.log10().floor()).clamp(1.0, 10.0) as usize;
            format!("+- {error:.decimals$}")
        }
        Some(error) => format!("+- {}", show_short(error)),
        None => String::new(),
    }
}

/// Parts of a sentence with commas between, in lines of at most `width` characters behind `indent` blanks; the first line
/// has none.
pub fn wrap(parts: &[String], width: usize, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for (ix, part) in parts.iter().enumerate() {
        let part = if ix + 1 < parts.len() { format!("{part},") } else { part.clone() };
        let line = lines.last_mut().expect("at least one line");
        if line.is_empty() {
            *line = part;
        } else if line.chars().count() + 1 + part.chars().count() <= width {
            *line = format!("{line} {part}");
        } else {
            lines.push(part);
        }
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// `a`, `a and b`, `a, b and c`.
pub fn and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(show_count(7), "7");
        assert_eq!(show_count(1234), "1,234");
        assert_eq!((show_whole(1e6), show_whole(2.5)), ("1,000,000".into(), "2.5".into()));
        assert_eq!(show_count(2_800_000_000_000), "2,800,000,000,000");
    }

    #[test]
    fn an_error_of_rounding_has_a_floor() {
        assert_eq!(show_error(Some(3e-14)), "+- < 1e-10");
        assert_eq!(show_error(Some(0.0123)), "+- 0.012");
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "1.5".into()], vec!["long".into(), "10".into()]];
        assert_eq!(columns(&rows), "a     1.5\nlong   10\n");
    }
}
