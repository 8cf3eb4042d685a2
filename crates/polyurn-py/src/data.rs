//! Tables in memory become datasets of the library: codes and labels of each column, and a count for each row.

use crate::codes::{CodeArray, Codes, array_of};
use crate::errors::OrException;
use crate::pickle::{self, Parts};
use crate::run::Work;
use crate::words::in_python;
use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyReadonlyArray1};
use polyurn::control::Control;
use polyurn::counts::{self, Cell, DatasetBuilder, Labels, MISSING, RowCount};
use polyurn::io::{self, BinSpec, Cuts, Format, ReadOptions, count_of, find_cuts_watched};
use polyurn::{Error, Result};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Distinct rows with counts, and labels of each column.
#[pyclass(frozen, module = "polyurn._core")]
#[derive(Debug)]
pub struct Dataset {
    /// None once a run has taken it over.
    data: Mutex<Option<Arc<counts::Dataset>>>,
    /// Where columns of a file were cut into categories.
    cuts: Vec<Cuts>,
}

/// One column as Python hands it over: its name, codes, labels or else the number of values, and what value 0 is called.
type Column<'py> = (Option<String>, Bound<'py, PyAny>, Option<Vec<String>>, Option<u32>, u32);

/// What there is to say of some files: the words of word numbers, whether labels of rows are read, bytes that it may unpack to, and columns
/// to be cut into categories.
type More = (Option<PathBuf>, bool, Option<u64>, Vec<String>);

/// Rows from one look at the clock to the next.
const TICK: usize = 1 << 16;

/// Counts of rows, held while they are read.
pub enum CountArray<'py> {
    /// Each row is a token.
    Ones,
    /// Whole numbers of 64 bits.
    Long(PyReadonlyArray1<'py, u64>),
    /// Of fewer; none is negative.
    Short(CodeArray<'py>),
    /// Any numbers; NaN is an unknown count.
    Real(PyReadonlyArray1<'py, f64>),
}

impl<'py> CountArray<'py> {
    /// Takes up an array of counts.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(counts: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let Some(counts) = counts else { return Ok(CountArray::Ones) };
        array_of(counts)
            .map(CountArray::Long)
            .or_else(|| array_of(counts).map(CountArray::Real))
            .or_else(|| CodeArray::find(counts).map(CountArray::Short))
            .ok_or_else(|| PyValueError::new_err("counts: expected an array of integers or of float64"))
    }

    /// The counts, which can be read without the interpreter's lock.
    pub fn counts(&self) -> RowCounts<'_> {
        match self {
            CountArray::Ones => RowCounts::Ones,
            CountArray::Long(array) => RowCounts::Long(array.as_array()),
            CountArray::Short(array) => RowCounts::Short(array.codes()),
            CountArray::Real(array) => RowCounts::Real(array.as_array()),
        }
    }
}

/// Counts of rows.
#[derive(Clone, Copy)]
pub enum RowCounts<'a> {
    /// Each row is a token.
    Ones,
    /// Whole numbers of 64 bits.
    Long(ArrayView1<'a, u64>),
    /// Of fewer; none is negative.
    Short(Codes<'a>),
    /// Any numbers; NaN is an unknown count.
    Real(ArrayView1<'a, f64>),
}

impl RowCounts<'_> {
    /// That of a row.
    ///
    /// # Errors
    /// A number that is no count.
    pub fn at(&self, row: usize) -> Result<RowCount, String> {
        let too_few = "there are fewer counts than rows";
        match self {
            RowCounts::Ones => Ok(RowCount::Tokens(1)),
            RowCounts::Long(counts) => Ok(RowCount::Tokens(*counts.get(row).ok_or(too_few)?)),
            RowCounts::Short(counts) => Ok(RowCount::Tokens(counts.at(row).ok_or(too_few)?.into())),
            RowCounts::Real(counts) => count_of(*counts.get(row).ok_or(too_few)?),
        }
    }
}

#[pymethods]
impl Dataset {
    /// Collects rows of codes. Where each row is a sample, as it is without counts, rows may repeat each other without a word.
    #[staticmethod]
    #[pyo3(signature = (source, columns, counts, n_rows, fractions, are_samples=false))]
    fn from_codes(
        py: Python<'_>,
        source: &str,
        columns: Vec<Column<'_>>,
        counts: Option<Bound<'_, PyAny>>,
        n_rows: usize,
        fractions: bool,
        are_samples: bool,
    ) -> PyResult<Self> {
        let mut builder = DatasetBuilder::new(source);
        if fractions {
            builder.take_fractions();
        }
        if counts.is_none() || are_samples {
            builder.rows_are_tokens();
        }
        let mut arrays = Vec::with_capacity(columns.len());
        for (name, column, labels, size, first) in columns {
            match labels {
                Some(labels) => builder.coded_column(name, labels),
                None => builder.index_column(name, first, size),
            }
            arrays.push(CodeArray::new(&column)?);
        }
        let codes: Vec<Codes<'_>> = arrays.iter().map(CodeArray::codes).collect();
        if codes.iter().any(|column| column.len() != n_rows) {
            return Err(PyValueError::new_err(format!("{source}: columns differ in length")));
        }
        let counts = CountArray::new(counts.as_ref())?;
        let counts = counts.counts();
        builder.expect_rows(n_rows);
        let work = Work::default();
        let fill = |control: &mut Control<'_>, _| fill(&mut builder, source, &codes, counts, n_rows, control);
        let ((), interrupted) = work.run(py, fill)?;
        Dataset::finished(builder, interrupted)
    }

    /// Collects the cells of a full array that are not zero: `counts` has all of them, the last axis fastest. `labels` are what the
    /// values of each axis are called, where they are called anything.
    #[staticmethod]
    #[pyo3(signature = (source, counts, shape, labels, fractions))]
    fn from_cells(
        py: Python<'_>,
        source: &str,
        counts: Bound<'_, PyAny>,
        shape: Vec<u32>,
        labels: Option<Vec<Option<Vec<String>>>>,
        fractions: bool,
    ) -> PyResult<Self> {
        let mut builder = DatasetBuilder::new(source);
        if fractions {
            builder.take_fractions();
        }
        let mut labels = labels.unwrap_or_default().into_iter();
        for &size in &shape {
            match labels.next().flatten() {
                Some(labels) if labels.len() == size as usize => builder.coded_column(None, labels),
                Some(_) => {
                    return Err(PyValueError::new_err(format!("{source}: an axis of size {size} has other labels")));
                }
                None => builder.index_column(None, 0, Some(size)),
            }
        }
        let counts = CountArray::new(Some(&counts))?;
        let counts = counts.counts();
        builder.expect_rows(shape.iter().map(|&size| size as usize).product());
        let work = Work::default();
        let fill = |control: &mut Control<'_>, _| fill_cells(&mut builder, source, counts, &shape, control);
        let ((), interrupted) = work.run(py, fill)?;
        Dataset::finished(builder, interrupted)
    }

    /// Reads a file.
    #[staticmethod]
    #[pyo3(signature = (path, format, fractions, more=(None, false, None, Vec::new())))]
    fn read(py: Python<'_>, path: PathBuf, format: Option<&str>, fractions: bool, more: More) -> PyResult<Self> {
        let (vocab, labels, max_unpacked, bins) = more;
        let format = format.map(str::parse::<Format>).transpose().or_exception()?;
        let specs: Result<Vec<BinSpec>, String> = bins.iter().map(|spec| spec.parse()).collect();
        let specs = specs.map_err(|why| PyValueError::new_err(format!("bins: {why}")))?;
        let mut options = ReadOptions { format, fractions, vocab, labels, max_unpacked, cuts: Vec::new() };
        let read = |control: &mut Control<'_>, _| {
            let mut said = Vec::new();
            if !specs.is_empty() {
                let mut watch = |share| control.tick("finding cuts", share);
                (options.cuts, said) = find_cuts_watched(&path, &options, &specs, &mut watch)?;
            }
            let (mut data, _) = io::read_watched(&path, &options, &mut |share| control.tick("reading", share))?;
            data.warnings.extend(said);
            Ok((data, options.cuts))
        };
        let ((data, cuts), interrupted) = Work::default().run(py, read)?;
        refuse_parts(interrupted)?;
        Ok(Dataset::new(data).with_cuts(cuts))
    }

    /// Puts together what a pickle has.
    #[staticmethod]
    fn from_parts(
        header: &str,
        values: Vec<PyReadonlyArray1<'_, u32>>,
        counts: PyReadonlyArray1<'_, u64>,
    ) -> PyResult<Self> {
        pickle::from_parts(header, &values, &counts)
    }

    /// For pickles.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let maker = slf.get_type().getattr("from_parts")?;
        Ok((maker, pickle::parts(slf.py(), &*slf.get().get()?, slf.get().cuts())))
    }

    /// What it is called in messages.
    #[getter]
    fn source(&self) -> PyResult<String> {
        Ok(self.get()?.source.clone())
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> PyResult<Vec<Option<String>>> {
        Ok(self.get()?.columns.iter().map(|column| column.name.clone()).collect())
    }

    /// Number of values of each column.
    #[getter]
    fn sizes(&self) -> PyResult<Vec<u32>> {
        Ok(self.get()?.columns.iter().map(|column| column.labels.len()).collect())
    }

    /// What the values of a column are called; none where they are numbers, with the first of them.
    fn labels(&self, column: usize) -> PyResult<(Option<Vec<String>>, u32)> {
        let data = self.get()?;
        let column = data.columns.get(column).ok_or_else(|| PyValueError::new_err("there is no such column"))?;
        Ok(match &column.labels {
            Labels::Named(names) => (Some(names.clone()), 0),
            Labels::Indexed { first, .. } => (None, *first),
        })
    }

    /// Codes of the distinct rows in one column, of the first `most` where that is given.
    #[pyo3(signature = (column, most=None))]
    fn codes<'py>(&self, py: Python<'py>, column: usize, most: Option<usize>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let data = self.get()?;
        let values = data.values.get(column).ok_or_else(|| PyValueError::new_err("there is no such column"))?;
        Ok(PyArray1::from_vec(py, values.iter().take(most.unwrap_or(usize::MAX)).collect()))
    }

    /// Counts of the distinct rows, in tokens; of the first `most` where that is given.
    #[pyo3(signature = (most=None))]
    fn counts<'py>(&self, py: Python<'py>, most: Option<usize>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let data = self.get()?;
        let n_rows = most.map_or(data.n_rows(), |most| most.min(data.n_rows()));
        Ok(PyArray1::from_iter(py, data.counts.iter().take(n_rows).map(|count| data.unit.tokens(count))))
    }

    /// Cells of unknown count, a code for each column.
    #[getter]
    fn unknown(&self) -> PyResult<Vec<Vec<u32>>> {
        Ok(self.get()?.unknown.clone())
    }

    /// Number of distinct rows.
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.get()?.n_rows())
    }

    /// Whether counts are whole.
    #[getter]
    fn is_whole(&self) -> PyResult<bool> {
        Ok(self.get()?.unit.is_token())
    }

    /// Tokens in all.
    #[getter]
    fn n_tokens(&self) -> PyResult<f64> {
        let data = self.get()?;
        Ok(data.unit.tokens(data.n_tokens().unwrap_or(u64::MAX)))
    }

    /// What is odd about it.
    #[getter]
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.get()?.warnings.iter().map(|warning| in_python(&warning.to_string())).collect())
    }
}

impl Dataset {
    /// What was collected.
    fn finished(builder: DatasetBuilder, interrupted: bool) -> PyResult<Self> {
        refuse_parts(interrupted)?;
        Ok(Dataset::new(builder.finish()))
    }

    /// These rows.
    pub fn new(data: counts::Dataset) -> Self {
        Dataset { data: Mutex::new(Some(Arc::new(data))), cuts: Vec::new() }
    }

    /// The same with the cuts of its columns.
    pub fn with_cuts(self, cuts: Vec<Cuts>) -> Self {
        Dataset { cuts, ..self }
    }

    /// Where columns were cut into categories; a fit keeps it.
    pub fn cuts(&self) -> &[Cuts] {
        &self.cuts
    }

    /// The rows.
    ///
    /// # Errors
    /// When a run has taken them over.
    pub fn get(&self) -> PyResult<Arc<counts::Dataset>> {
        let data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        data.clone().ok_or_else(|| PyValueError::new_err("these data were handed over to a run"))
    }

    /// The rows, for a run that nobody asks for them afterwards: then they are moved, not copied.
    ///
    /// # Errors
    /// When a run has taken them over before.
    pub fn hand_over(&self, is_last_use: bool) -> PyResult<Arc<counts::Dataset>> {
        let data = self.get()?;
        if is_last_use {
            *self.data.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        Ok(data)
    }
}

/// Rows that were read until an interrupt are not what was given.
fn refuse_parts(interrupted: bool) -> PyResult<()> {
    if interrupted {
        return Err(PyKeyboardInterrupt::new_err("interrupted while data were read"));
    }
    Ok(())
}

fn fill(
    builder: &mut DatasetBuilder,
    source: &str,
    codes: &[Codes<'_>],
    counts: RowCounts<'_>,
    n_rows: usize,
    control: &mut Control<'_>,
) -> Result<()> {
    let mut cells = vec![Cell::Missing; codes.len()];
    for row in 0..n_rows {
        if row % TICK == 0 {
            control.tick("reading", row as f64 / n_rows as f64)?;
        }
        let line = row as u64 + 1;
        for (cell, column) in cells.iter_mut().zip(codes) {
            *cell = match column.at(row) {
                Some(MISSING) => Cell::Missing,
                Some(code) => Cell::Index(code),
                None => return Err(Error::data_at(source, line, None, "a code goes beyond 32 bits")),
            };
        }
        let count = counts.at(row).map_err(|message| Error::data_at(source, line, Some("count"), message))?;
        builder.push(line, cells.iter().copied(), count)?;
    }
    Ok(())
}

fn fill_cells(
    builder: &mut DatasetBuilder,
    source: &str,
    counts: RowCounts<'_>,
    shape: &[u32],
    control: &mut Control<'_>,
) -> Result<()> {
    let n_cells: usize = shape.iter().map(|&size| size as usize).product();
    let mut place = vec![0u32; shape.len()];
    for cell in 0..n_cells {
        if cell % TICK == 0 {
            control.tick("reading", cell as f64 / n_cells as f64)?;
        }
        let line = builder.n_rows_read() + 1;
        let count = counts.at(cell).map_err(|message| Error::data_at(source, line, Some("count"), message))?;
        if count != RowCount::Tokens(0) {
            builder.push(line, place.iter().map(|&value| Cell::Index(value)), count)?;
        }
        // The next cell: the last axis goes on, and those that are through start again.
        for (value, &size) in place.iter_mut().zip(shape).rev() {
            *value += 1;
            if *value < size {
                break;
            }
            *value = 0;
        }
    }
    Ok(())
}
