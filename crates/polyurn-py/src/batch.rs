//! Rows of a batch of a stream, as Python has them.

use crate::codes::{CodeArray, Codes};
use crate::data::{CountArray, RowCounts};
use polyurn::counts::{Cell, MISSING, RowSink};
use polyurn::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// One column: its name, codes, and labels or else numbers.
pub type Column<'py> = (Option<String>, Bound<'py, PyAny>, Option<Vec<String>>);

/// Arrays of a batch, held while they are read.
pub struct HeldRows<'py> {
    names: Vec<(Option<String>, Option<Vec<String>>)>,
    arrays: Vec<CodeArray<'py>>,
    counts: CountArray<'py>,
    n_rows: usize,
}

/// The same, which can be read without the interpreter's lock.
pub struct Rows<'a> {
    /// A name for each column, and labels, or none where codes are numbers.
    names: &'a [(Option<String>, Option<Vec<String>>)],
    codes: Vec<Codes<'a>>,
    counts: RowCounts<'a>,
    n_rows: usize,
}

impl<'py> HeldRows<'py> {
    /// Takes up columns of the same length.
    ///
    /// # Errors
    /// When they are none, or differ in length.
    pub fn new(columns: Vec<Column<'py>>, counts: Option<&Bound<'py, PyAny>>, n_rows: usize) -> PyResult<Self> {
        let arrays = columns.iter().map(|(_, codes, _)| CodeArray::new(codes)).collect::<PyResult<Vec<_>>>()?;
        if arrays.iter().any(|array| array.codes().len() != n_rows) {
            return Err(PyValueError::new_err("columns differ in length"));
        }
        let names = columns.into_iter().map(|(name, _, labels)| (name, labels)).collect();
        Ok(HeldRows { names, arrays, counts: CountArray::new(counts)?, n_rows })
    }

    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        let codes = self.arrays.iter().map(CodeArray::codes).collect();
        Rows { names: &self.names, codes, counts: self.counts.counts(), n_rows: self.n_rows }
    }
}

impl Rows<'_> {
    /// Hands all of them on.
    ///
    /// # Errors
    /// A row that is wrong, with its number; what the sink says.
    pub fn push_all(&self, sink: &mut impl RowSink) -> Result<()> {
        sink.source("batch");
        for (name, labels) in self.names {
            match labels {
                Some(_) => sink.label_column(name.clone()),
                None => sink.index_column(name.clone(), 0, None),
            }
        }
        let mut cells = vec![Cell::Missing; self.codes.len()];
        for row in 0..self.n_rows {
            let line = row as u64 + 1;
            for ((cell, column), (_, labels)) in cells.iter_mut().zip(&self.codes).zip(self.names) {
                *cell = match (column.at(row), labels) {
                    (Some(MISSING), _) => Cell::Missing,
                    (Some(code), Some(labels)) => Cell::Label(labels.get(code as usize).map_or("", String::as_str)),
                    (Some(code), None) => Cell::Index(code),
                    (None, _) => return Err(Error::data_at("batch", line, None, "a code goes beyond 32 bits")),
                };
            }
            let count = self.counts.at(row).map_err(|why| Error::data_at("batch", line, Some("count"), why))?;
            sink.push(line, cells.iter().copied(), count)?;
        }
        Ok(())
    }
}
