//! All rows of all tables, and where an engine finds their counts.

use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::engine::lines::Layout;
use crate::engine::symmetry::{LabelClass, label_classes};
use crate::engine::tables::LIST_ALL_CHILDREN_UP_TO;
use crate::graph::TableIndex;
use std::collections::BTreeMap;

/// Where a counter's number is found.
#[derive(Debug, Clone, Copy)]
pub enum Held {
    /// The same in all particles.
    Fixed(u64),
    /// A line of a block.
    Line { block: u32, in_block: u32 },
}

impl Default for Held {
    fn default() -> Self {
        Held::Fixed(0)
    }
}

/// Where the numbers of a row are found.
#[derive(Debug, Default)]
struct RowSources {
    row: Held,
    cells: BTreeMap<u32, Held>,
}

/// One row of a table, with all cells that are listed.
#[derive(Debug)]
pub struct SheetRow {
    pub table: TableIndex,
    pub parents: Vec<u32>,
    pub pseudo: f64,
    pub held: Held,
    /// Child, pseudo-count, count.
    pub cells: Vec<(u32, f64, Held)>,
}

/// Every row that a token may be in.
#[derive(Debug)]
pub struct Sheet {
    pub rows: Vec<SheetRow>,
    /// Whether every token of every record has a value of every node.
    pub is_complete: bool,
    /// Hidden labels that can be exchanged.
    pub labels: Vec<LabelClass>,
}

impl Sheet {
    /// Lists the rows of a problem.
    pub fn new(problem: &Problem<'_>, layout: &Layout) -> Self {
        let mut rows: BTreeMap<(TableIndex, Vec<u32>), RowSources> = BTreeMap::new();
        let mut add = |table: TableIndex, kind: Kind, values: &[u32], held: Held| match kind {
            Kind::Row => rows.entry((table, values.to_vec())).or_default().row = held,
            Kind::Cell => {
                let (parents, child) = values.split_at(values.len() - 1);
                rows.entry((table, parents.to_vec())).or_default().cells.insert(child[0], held);
            }
        };
        for ((table, kind, values), n) in &layout.certain {
            add(*table, *kind, values, Held::Fixed(*n));
        }
        for counted in &layout.counted {
            for (block, in_block, values) in layout.lines_of(counted.class) {
                add(counted.table, counted.kind, &values, Held::Line { block, in_block });
            }
        }
        let rows = rows.into_iter().map(|((table, parents), RowSources { row: held, cells })| {
            let pseudo = problem.prior.table(table);
            let child_size = problem.model.tables()[table.ix()].child_size;
            let children: Vec<u32> = if child_size <= LIST_ALL_CHILDREN_UP_TO {
                (0..child_size).collect()
            } else {
                cells.keys().copied().collect()
            };
            let cells = children.into_iter().map(|child| {
                let held = cells.get(&child).copied().unwrap_or(Held::Fixed(0));
                (child, pseudo.cell(&parents, child).value, held)
            });
            let cells = cells.collect();
            SheetRow { table, pseudo: pseudo.row(&parents).value, held, cells, parents }
        });
        let n_nodes = problem.model.n_nodes();
        let is_complete = problem.plan.patterns().iter().all(|pattern| pattern.relevant.len() == n_nodes);
        let labels = label_classes(problem.model, problem.prior, problem.counts);
        Sheet { rows: rows.collect(), is_complete, labels }
    }
}
