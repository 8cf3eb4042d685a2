//! One table of a fit, to programs and to people.

use super::text::columns;
use crate::counts::Labels;
use crate::engine::{RowMean, TableMeans};
use crate::graph::Model;
use serde_json::{Map, Value, json};

/// Rows of a table that are shown to people.
const SHOWN_ROWS: usize = 12;
/// Cells of a row that are shown to people.
const SHOWN_CELLS: usize = 8;

/// All rows of a table.
pub fn table_json(model: &Model, labels: &[Labels], table: &TableMeans) -> Value {
    let members = &model.tables()[table.table.ix()].members;
    let parents = &model.node(members[0]).parents;
    let own = &labels[members[0].ix()];
    let rows: Vec<Value> = table
        .rows
        .iter()
        .map(|row| {
            let mut given = Map::new();
            for (&parent, &value) in parents.iter().zip(&row.parents) {
                given.insert(model.node(parent).name.clone(), json!(labels[parent.ix()].name(value)));
            }
            json!({
                "given": given,
                "values": row.cells.iter().map(|cell| own.name(cell.child)).collect::<Vec<_>>(),
                "mean": row.cells.iter().map(|cell| cell.mean).collect::<Vec<_>>(),
                "sd": row.cells.iter().map(|cell| cell.sd).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "node": model.node(members[0]).name,
        "tied": members[1..].iter().map(|&node| &model.node(node).name).collect::<Vec<_>>(),
        "rows": rows,
    })
}

/// The rows of a table, if they are many those with most tokens, and the largest cells of each. `all` says where to see the
/// rest.
pub fn table_text(model: &Model, labels: &[Labels], table: &TableMeans, is_point: bool, all: &str) -> String {
    let members = &model.tables()[table.table.ix()].members;
    let names: Vec<&str> = members.iter().map(|&node| model.node(node).name.as_str()).collect();
    let parents = &model.node(members[0]).parents;
    let given: Vec<&str> = parents.iter().map(|&node| model.node(node).name.as_str()).collect();
    let title =
        if given.is_empty() { names.join(", ") } else { format!("{} given {}", names.join(", "), given.join(", ")) };
    let mut text = format!("\n{title}: {}\n", if is_point { "probability" } else { "posterior mean (sd)" });
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut rows: Vec<usize> = (0..table.rows.len()).collect();
    if rows.len() > SHOWN_ROWS {
        rows.sort_by(|&x, &y| weight(&table.rows[y]).total_cmp(&weight(&table.rows[x])));
        rows.truncate(SHOWN_ROWS);
        rows.sort_unstable();
    }
    for row in rows.into_iter().map(|ix| &table.rows[ix]) {
        let key: Vec<String> = parents
            .iter()
            .zip(&row.parents)
            .map(|(&parent, &value)| format!("{}={}", model.node(parent).name, labels[parent.ix()].name(value)))
            .collect();
        let mut line = vec![format!("  {}", key.join(" "))];
        let mut cells: Vec<_> = row.cells.iter().collect();
        if cells.len() > SHOWN_CELLS {
            cells.sort_by(|x, y| y.mean.total_cmp(&x.mean));
            cells.truncate(SHOWN_CELLS);
        }
        line.extend(cells.iter().map(|cell| {
            let name = labels[members[0].ix()].name(cell.child);
            let sd = if is_point { String::new() } else { format!(" ({:.3})", cell.sd) };
            format!("{name} {:.3}{sd}", cell.mean)
        }));
        lines.push(line);
    }
    text += &columns(&lines);
    if table.rows.len() > SHOWN_ROWS {
        let fewer = if is_point { "" } else { " with fewer tokens" };
        text += &format!("  and {} more rows{fewer} (see {all})\n", table.rows.len() - SHOWN_ROWS);
    }
    if table.rows.iter().any(|row| row.cells.len() > SHOWN_CELLS) {
        text += &format!("  the {SHOWN_CELLS} largest of each row (see {all} for all)\n");
    }
    if (table.rows.len() as f64) < model.tables()[table.table.ix()].n_rows() {
        text += "  rows that no token can be in are as in the prior\n";
    }
    text
}

/// How many tokens a row rests on, pseudo-counts included, as its spreads tell: m (1 - m) / sd^2 - 1 in every cell of a
/// Dirichlet posterior. Rows without spreads all weigh the same.
fn weight(row: &RowMean) -> f64 {
    let surest = row.cells.iter().filter(|cell| cell.sd > 0.0).max_by(|x, y| x.sd.total_cmp(&y.sd));
    surest.map_or(0.0, |cell| cell.mean * (1.0 - cell.mean) / (cell.sd * cell.sd) - 1.0)
}
