//! Tables of any library that speaks Arrow's C stream interface, without a library of our own for it.
//!
//! [`foreign`] takes the stream apart and has all unsafe code; [`labels`] makes codes and labels of what it gives.

pub mod foreign;
mod labels;

use crate::arrow::foreign::{Batch, Field, Stream};
use crate::arrow::labels::Encoder;
use crate::errors::OrException;
use foreign::{Chunk, Values};
use numpy::PyArray1;
use polyurn::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyFloat};

/// The columns of a table, held as its maker has them.
#[pyclass(frozen, module = "polyurn._core")]
#[derive(Debug)]
pub struct ArrowTable {
    fields: Vec<Field>,
    batches: Vec<Batch>,
}

#[pymethods]
impl ArrowTable {
    /// Takes all batches of a stream.
    #[new]
    fn new(py: Python<'_>, capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let stream = Stream::take(capsule)?;
        py.detach(move || ArrowTable::read(stream)).or_exception()
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.fields.iter().map(|field| field.name.as_str()).collect()
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(Batch::len).sum()
    }

    /// Whether values of a column are of a type that is read here.
    fn is_read(&self, column: usize) -> bool {
        self.fields[column].is_known()
    }

    /// What kind of numbers a column holds, in NumPy's letters; empty if none.
    fn kind_of_numbers(&self, column: usize) -> &'static str {
        self.fields[column].kind_of_numbers()
    }

    /// A code for each row, -1 where it is missing, and what they are called.
    fn codes<'py>(&self, py: Python<'py>, column: usize) -> PyResult<(Bound<'py, PyArray1<i32>>, Vec<String>)> {
        let encode = || {
            let mut encoder = Encoder::default();
            self.chunks(column)?.iter().try_for_each(|chunk| encoder.add(chunk))?;
            Ok(encoder.finish())
        };
        let (codes, mut labels, unnamed) = py.detach(encode).or_exception()?;
        for (code, value) in unnamed {
            labels[code] = PyFloat::new(py, value).repr()?.to_string();
        }
        Ok((PyArray1::from_vec(py, codes), labels))
    }

    /// The numbers of a column: integers, or floats with NaN where one is missing.
    fn numbers<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyAny>> {
        let chunks = self.chunks(column).or_exception()?;
        let has_gaps = chunks.iter().any(|chunk| (0..chunk.len).any(|row| !chunk.is_valid(row)));
        let whole = |chunk: &Chunk<'_>| -> Option<Vec<u64>> {
            (0..chunk.len).map(|row| chunk.values.integer(row).and_then(|value| u64::try_from(value).ok())).collect()
        };
        if !has_gaps && let Some(parts) = chunks.iter().map(whole).collect::<Option<Vec<_>>>() {
            return Ok(PyArray1::from_vec(py, parts.concat()).into_any());
        }
        let mut all = Vec::with_capacity(self.__len__());
        for chunk in &chunks {
            for row in 0..chunk.len {
                let value = match chunk.is_valid(row) {
                    true => chunk.values.integer(row).map(|value| value as f64).or_else(|| chunk.values.real(row)),
                    false => Some(f64::NAN),
                };
                all.push(value.ok_or_else(|| self.fault(column, "holds no numbers")).or_exception()?);
            }
        }
        Ok(PyArray1::from_vec(py, all).into_any())
    }
}

impl ArrowTable {
    fn read(mut stream: Stream) -> Result<Self> {
        let fields = stream.fields()?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.next_batch(fields.len())? {
            batches.push(batch);
        }
        Ok(ArrowTable { fields, batches })
    }

    fn chunks(&self, column: usize) -> Result<Vec<Chunk<'_>>> {
        let field = self.fields.get(column).ok_or_else(|| Error::data("table", "there is no such column"))?;
        self.batches.iter().map(|batch| batch.chunk(field, column)).collect()
    }

    fn fault(&self, column: usize, message: &str) -> Error {
        Error::data("table", format!("column {} {message}", self.fields[column].name))
    }
}

impl Values<'_> {
    /// A whole number, if these are such.
    fn integer(&self, row: usize) -> Option<i128> {
        Some(match self {
            Values::I8(values) => values[row].into(),
            Values::I16(values) => values[row].into(),
            Values::I32(values) => values[row].into(),
            Values::I64(values) => values[row].into(),
            Values::U8(values) => values[row].into(),
            Values::U16(values) => values[row].into(),
            Values::U32(values) => values[row].into(),
            Values::U64(values) => values[row].into(),
            Values::Bool(bits, start) => (bits[(start + row) / 8] >> ((start + row) % 8) & 1).into(),
            _ => return None,
        })
    }

    /// A float, if these are such.
    fn real(&self, row: usize) -> Option<f64> {
        match self {
            Values::F32(values) => Some(values[row].into()),
            Values::F64(values) => Some(values[row]),
            _ => None,
        }
    }
}
