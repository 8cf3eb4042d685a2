//! Tables as arrays: the rows that a token may be in, each by the values of its parents.
//!
//! Where every row lists all its cells, means and spreads are matrices. Where a node has very many values, rows list some
//! of their cells, one row after another: `starts` says where each row begins, `children` which cells they are.

use super::npy;
use crate::engine::{CellMean, RowMean, TableMeans};
use crate::graph::{Table, TableIndex};

/// An entry of the archive: what it holds, and the bytes.
type Part = (&'static str, Vec<u8>);

/// The arrays of one table.
pub(super) fn arrays_of(means: &TableMeans, table: &Table) -> Vec<Part> {
    let (n_rows, n_parents) = (means.rows.len(), table.parent_sizes.len());
    let parents = means.rows.iter().flat_map(|row| row.parents.iter().copied());
    let mut parts = vec![("rows", npy::encode(&[n_rows, n_parents], parents))];
    let n_children = table.child_size as usize;
    let is_full = |row: &RowMean| {
        row.cells.len() == n_children && row.cells.iter().zip(0..).all(|(cell, child)| cell.child == child)
    };
    let cells = || means.rows.iter().flat_map(|row| &row.cells);
    let shape = if means.rows.iter().all(is_full) {
        vec![n_rows, n_children]
    } else {
        let mut starts = vec![0u64];
        for row in &means.rows {
            starts.push(starts[starts.len() - 1] + row.cells.len() as u64);
        }
        parts.push(("starts", npy::encode(&[starts.len()], starts.iter().copied())));
        let n_cells = starts[n_rows] as usize;
        parts.push(("children", npy::encode(&[n_cells], cells().map(|cell| cell.child))));
        vec![n_cells]
    };
    parts.push(("mean", npy::encode(&shape, cells().map(|cell| cell.mean))));
    parts.push(("sd", npy::encode(&shape, cells().map(|cell| cell.sd))));
    parts
}

/// Where the arrays of a table are read.
pub(super) trait Arrays {
    fn real(&mut self, name: &str) -> Result<(Vec<usize>, Vec<f64>), String>;
    fn whole(&mut self, name: &str) -> Result<(Vec<usize>, Vec<u32>), String>;
    fn long(&mut self, name: &str) -> Result<(Vec<usize>, Vec<u64>), String>;
}

/// The table that these arrays describe, if they fit its shape.
pub(super) fn table_of(index: TableIndex, table: &Table, arrays: &mut impl Arrays) -> Result<TableMeans, String> {
    let n_parents = table.parent_sizes.len();
    let (shape, parents) = arrays.whole("rows")?;
    let [n_rows, width] = shape[..] else { return Err("`rows` is no matrix".into()) };
    if width != n_parents || (n_parents == 0 && n_rows > 1) {
        return Err("`rows` does not have one column for each parent".into());
    }
    let (shape, means) = arrays.real("mean")?;
    let (sd_shape, sds) = arrays.real("sd")?;
    if shape != sd_shape {
        return Err("`mean` and `sd` differ in shape".into());
    }
    let n_children = table.child_size as usize;
    let (starts, children) = match shape[..] {
        [rows, columns] if rows == n_rows && columns == n_children => (None, None),
        [n_cells] => {
            let (starts, children) = (arrays.long("starts")?.1, arrays.whole("children")?.1);
            let ascend = starts.windows(2).all(|pair| pair[0] <= pair[1]);
            let ends = (starts.first().copied(), starts.last().copied());
            if starts.len() != n_rows + 1 || !ascend || ends != (Some(0), Some(n_cells as u64)) {
                return Err("`starts` does not begin a row each".into());
            }
            if children.len() != n_cells || children.iter().any(|&child| child >= table.child_size) {
                return Err("`children` are not values of the node".into());
            }
            (Some(starts), Some(children))
        }
        _ => return Err("`mean` does not have the shape of the table".into()),
    };
    let is_fine = |mean: f64, sd: f64| (0.0..=1.0 + 1e-9).contains(&mean) && (0.0..=1.0).contains(&sd);
    if !means.iter().zip(&sds).all(|(&mean, &sd)| is_fine(mean, sd)) {
        return Err("`mean` or `sd` holds what is no probability".into());
    }
    let mut rows: Vec<RowMean> = Vec::with_capacity(n_rows);
    for row in 0..n_rows {
        let values = &parents[row * n_parents..][..n_parents];
        let ascends = rows.last().is_none_or(|before| before.parents[..] < *values);
        if !ascends || values.iter().zip(&table.parent_sizes).any(|(&value, &size)| value >= size) {
            return Err("`rows` are not ascending values of the parents".into());
        }
        let (from, to) = match &starts {
            Some(starts) => (starts[row] as usize, starts[row + 1] as usize),
            None => (row * n_children, (row + 1) * n_children),
        };
        let cells = (from..to).map(|ix| CellMean {
            child: children.as_ref().map_or((ix - from) as u32, |children| children[ix]),
            mean: means[ix],
            sd: sds[ix],
        });
        let cells: Vec<CellMean> = cells.collect();
        if cells.windows(2).any(|pair| pair[0].child >= pair[1].child) {
            return Err("`children` of a row are not ascending".into());
        }
        rows.push(RowMean { parents: values.to_vec(), cells });
    }
    Ok(TableMeans { table: index, rows })
}
