//! Fitted tables: the largest entries of each row with their spreads, and heat maps.

use super::drawing::Drawing;
use super::figure::Figure;
use super::fit_result::{Table, TableRow};
use super::heat_map::{Cell, HeatMap};
use super::row_chart::{Form, Place, Row, RowChart};
use super::text::{fixed, short, shorten};
use std::collections::HashMap;

/// Tables that are drawn.
pub const MOST_TABLES: usize = 8;
/// Rows of a table whose largest entries are drawn, if they are components.
const MOST_COMPONENTS: usize = 30;
/// And if they are not: rows of documents, say, are better seen in a heat map.
const MOST_OTHERS: usize = 6;
/// Entries of each.
const MOST_ENTRIES: usize = 8;
/// Entries where a table has a single row.
const MOST_ENTRIES_ALONE: usize = 25;
/// Rows and columns of a heat map.
const MOST_ROWS: usize = 30;
const MOST_COLUMNS: usize = 30;

/// The plots of one table; `ix` makes names of files unique. Rows are components if a parent is hidden. Spreads
/// of a bound are too small, and the caption says so.
pub fn table_plots(table: &Table, ix: usize, has_components: bool, is_bound: bool) -> Vec<Figure> {
    let most_rows = if has_components { MOST_COMPONENTS } else { MOST_OTHERS };
    let mut figures: Vec<Figure> = entries_plot(table, ix, most_rows, is_bound).into_iter().collect();
    figures.extend(heat_map(table, ix));
    figures
}

/// What a table is of.
pub fn title(table: &Table) -> String {
    let nodes: Vec<&str> = [&table.node].into_iter().chain(&table.tied).map(String::as_str).collect();
    let given = if table.parents.is_empty() { String::new() } else { format!(" given {}", table.parents.join(", ")) };
    format!("{}{given}", nodes.join(", "))
}

/// Positions of the largest entries of a row, largest first.
fn largest(row: &TableRow, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.means.len()).collect();
    order.sort_by(|&x, &y| row.means[y].total_cmp(&row.means[x]).then(x.cmp(&y)));
    order.truncate(n);
    order
}

fn tip(table: &Table, row: &TableRow, ix: usize) -> String {
    let given = if row.given.is_empty() { String::new() } else { format!("\n{}", row.given) };
    let spread = row.sds[ix].map_or(String::new(), |sd| format!(" ± {}", short(sd)));
    format!("{} = {}{given}\n{}{spread}", table.node, row.labels[ix], short(row.means[ix]))
}

/// The largest entries of each row, in panels.
fn entries_plot(table: &Table, ix: usize, most_rows: usize, is_bound: bool) -> Option<Figure> {
    if table.rows.iter().all(|row| row.means.is_empty()) {
        return None;
    }
    let n_entries = if table.rows.len() == 1 { MOST_ENTRIES_ALONE } else { MOST_ENTRIES };
    let shown = &table.rows[..table.rows.len().min(most_rows)];
    let reach = |row: &TableRow, cell: usize| row.means[cell] + row.sds[cell].unwrap_or(0.0);
    let most = shown.iter().flat_map(|row| largest(row, n_entries).into_iter().map(move |cell| reach(row, cell)));
    let range = (0.0, most.fold(1e-9, f64::max));
    let has_spread = shown.iter().any(|row| row.sds.iter().any(Option::is_some));
    let panel = |row: &TableRow| {
        let one = |cell: usize| Row {
            label: row.labels[cell].clone(),
            value: Some(row.means[cell]),
            bar: row.sds[cell].map(|sd| ((row.means[cell] - sd).max(0.0), row.means[cell] + sd)),
            bracket: None,
            second: None,
            shown: share(row.means[cell]),
            tip: tip(table, row, cell),
            is_best: false,
        };
        let rows: Vec<Row> = largest(row, n_entries).into_iter().map(one).collect();
        let title = if row.given.is_empty() { table.node.clone() } else { row.given.clone() };
        let names = Default::default();
        RowChart { form: Form::Bars, title, names, range: Some(range), rows, note: String::new() }
    };
    let panels: Vec<RowChart> = shown.iter().map(panel).collect();
    let mut caption = if has_spread {
        "Posterior means; whiskers reach one standard deviation to each side.".to_owned()
    } else {
        "Probabilities.".to_owned()
    };
    if has_spread && is_bound {
        caption += " Those of variational Bayes are often too small, since it takes hidden values as independent of the tables.";
    }
    let n_values = table.rows.iter().map(|row| row.labels.len()).max().unwrap_or(0);
    if n_values > n_entries {
        caption += &format!(" The {n_entries} largest of {} values.", short(n_values as f64));
    }
    if table.rows.len() > most_rows {
        caption += &format!(" The first {most_rows} of {} rows.", short(table.rows.len() as f64));
    }
    let title = format!("Largest entries of {}", title(table));
    Some(Figure::new(&file_name("entries", table, ix), &title, &caption, |width| draw_panels(&panels, width)))
}

fn draw_panels(panels: &[RowChart], width: f64) -> Drawing {
    const GAP: f64 = 28.0;
    let n_columns = if width < 500.0 || panels.len() == 1 { 1 } else { 2 };
    let panel_width = (width - GAP * (n_columns as f64 - 1.0)) / n_columns as f64;
    let mut drawing = Drawing::new(width, 0.0);
    let mut top = 0.0;
    for line in panels.chunks(n_columns) {
        let ends = line.iter().enumerate().map(|(ix, panel)| {
            let left = 2.0 + ix as f64 * (panel_width + GAP);
            panel.draw_at(&mut drawing, Place { left, right: left + panel_width - 4.0, top })
        });
        top = ends.fold(top, f64::max) + 14.0;
    }
    drawing.height = top;
    drawing
}

/// A probability in few digits.
fn share(p: f64) -> String {
    if p >= 0.0995 {
        fixed(p, 2)
    } else if p >= 0.000_95 {
        fixed(p, 3)
    } else {
        short(p)
    }
}

/// Rows against the columns of largest weight.
fn heat_map(table: &Table, ix: usize) -> Option<Figure> {
    let rows = &table.rows[..table.rows.len().min(MOST_ROWS)];
    // Rows may list different values.
    let mut weights: Vec<(String, f64)> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for (label, mean) in rows.iter().flat_map(|row| row.labels.iter().zip(&row.means)) {
        let place = *index.entry(label).or_insert_with(|| {
            weights.push((label.clone(), 0.0));
            weights.len() - 1
        });
        weights[place].1 += mean;
    }
    let n_values = weights.len();
    if rows.len() < 2 || n_values < 2 {
        return None;
    }
    if n_values > MOST_COLUMNS {
        weights.sort_by(|x, y| y.1.total_cmp(&x.1));
        weights.truncate(MOST_COLUMNS);
    }
    let columns: Vec<String> = weights.into_iter().map(|(label, _)| label).collect();
    let in_row = |row: &TableRow| -> Vec<Option<usize>> {
        let places: HashMap<&str, usize> = row.labels.iter().map(String::as_str).zip(0..).collect();
        columns.iter().map(|label| places.get(label.as_str()).copied()).collect()
    };
    let places: Vec<Vec<Option<usize>>> = rows.iter().map(in_row).collect();
    let most = rows.iter().zip(&places).flat_map(|(row, cells)| cells.iter().flatten().map(|&cell| row.means[cell]));
    let most = most.fold(1e-12, f64::max);
    let cell = |row: &TableRow, ix: usize| Cell {
        share: row.means[ix] / most,
        shown: share(row.means[ix]),
        tip: tip(table, row, ix),
    };
    let map = HeatMap {
        title: title(table),
        row_title: table.parents.join(", "),
        column_title: table.node.clone(),
        // The parent's name is said once, above.
        rows: rows.iter().map(|row| without_name(table, &row.given)).collect(),
        cells: rows
            .iter()
            .zip(&places)
            .map(|(row, cells)| cells.iter().map(|&ix| Some(cell(row, ix?))).collect())
            .collect(),
        columns,
        ends: ("0".into(), share(most)),
        note: String::new(),
    };
    let mut caption = "The darker (on a dark page the lighter) the more probable.".to_owned();
    if n_values > MOST_COLUMNS {
        caption += &format!(" The {MOST_COLUMNS} values of largest weight of {}.", short(n_values as f64));
    }
    if table.rows.len() > MOST_ROWS {
        caption += &format!(" The first {MOST_ROWS} of {} rows.", short(table.rows.len() as f64));
    }
    let title = format!("Heat map of {}", title(table));
    Some(Figure::new(&file_name("table", table, ix), &title, &caption, |width| map.draw(width)))
}

/// `topic = 3` as `3` where there is only one parent.
fn without_name(table: &Table, given: &str) -> String {
    match &table.parents[..] {
        [parent] => given.strip_prefix(&format!("{parent} = ")).unwrap_or(given).to_owned(),
        _ => given.to_owned(),
    }
}

/// A name that every file system takes.
fn file_name(kind: &str, table: &Table, ix: usize) -> String {
    let plain: String = table.node.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let plain = shorten(&plain, 30).replace('…', "");
    format!("{kind}-{}-{}", ix + 1, plain.trim_matches('-'))
}
