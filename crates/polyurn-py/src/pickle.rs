//! Data as parts that Python can pickle: what is small as JSON, codes and counts as arrays.

use crate::data::Dataset;
use numpy::{PyArray1, PyReadonlyArray1};
use polyurn::Warning;
use polyurn::counts::{self, CodeList, Column, Labels, MISSING, Unit};
use polyurn::io::Cuts;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

/// All but codes and counts.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    source: String,
    columns: Vec<ColumnHeader>,
    unit: Unit,
    unknown: Vec<Vec<u32>>,
    unknown_lines: Vec<u64>,
    warnings: Vec<Warning>,
    /// Not in pickles of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cuts: Vec<Cuts>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ColumnHeader {
    name: Option<String>,
    /// None where values are numbers.
    labels: Option<Vec<String>>,
    size: u32,
    first: u32,
    first_lines: Vec<u64>,
}

/// The header as JSON, codes of each column, and counts.
pub type Parts<'py> = (String, Vec<Bound<'py, PyArray1<u32>>>, Bound<'py, PyArray1<u64>>);

/// Takes data apart.
pub fn parts<'py>(py: Python<'py>, data: &counts::Dataset, cuts: &[Cuts]) -> Parts<'py> {
    let column = |column: &Column| {
        let (labels, first) = match &column.labels {
            Labels::Named(names) => (Some(names.clone()), 0),
            Labels::Indexed { first, .. } => (None, *first),
        };
        let (name, first_lines) = (column.name.clone(), column.first_lines.clone());
        ColumnHeader { name, labels, size: column.labels.len(), first, first_lines }
    };
    let header = Header {
        source: data.source.clone(),
        columns: data.columns.iter().map(column).collect(),
        unit: data.unit,
        unknown: data.unknown.clone(),
        unknown_lines: data.unknown_lines.clone(),
        warnings: data.warnings.clone(),
        cuts: cuts.to_vec(),
    };
    let values = data.values.iter().map(|column| PyArray1::from_vec(py, column.to_codes())).collect();
    let counts = PyArray1::from_iter(py, data.counts.iter());
    (serde_json::to_string(&header).expect("plain data"), values, counts)
}

/// Puts them together.
///
/// # Errors
/// When they do not belong together.
pub fn from_parts(
    header: &str,
    values: &[PyReadonlyArray1<'_, u32>],
    counts: &PyReadonlyArray1<'_, u64>,
) -> PyResult<Dataset> {
    let damaged = || PyValueError::new_err("these are no data of this version");
    let header: Header = serde_json::from_str(header).map_err(|_| damaged())?;
    let column = |column: ColumnHeader| Column {
        name: column.name,
        labels: match column.labels {
            Some(names) => Labels::Named(names),
            None => Labels::Indexed { size: column.size, first: column.first },
        },
        first_lines: column.first_lines,
    };
    let sizes: Vec<u32> = header.columns.iter().map(|column| column.size).collect();
    let counts = counts.as_slice()?;
    let narrow = |codes: &PyReadonlyArray1<'_, u32>| Ok(codes.as_slice()?.iter().copied().collect());
    let values = values.iter().map(narrow).collect::<PyResult<Vec<CodeList>>>()?;
    let is_whole = |(codes, &size): (&CodeList, &u32)| {
        codes.len() == counts.len() && codes.iter().all(|code| code < size || code == MISSING)
    };
    if values.len() != sizes.len() || !values.iter().zip(&sizes).all(is_whole) {
        return Err(damaged());
    }
    Ok(Dataset::new(counts::Dataset {
        source: header.source,
        columns: header.columns.into_iter().map(column).collect(),
        values,
        counts: counts.iter().copied().collect(),
        unit: header.unit,
        unknown: header.unknown,
        unknown_lines: header.unknown_lines,
        warnings: header.warnings,
    })
    .with_cuts(header.cuts))
}
