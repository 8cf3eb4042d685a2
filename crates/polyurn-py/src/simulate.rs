//! Data drawn from a model.

use crate::data::Dataset;
use crate::errors::OrException;
use crate::request::Request;
use crate::run::Work;
use crate::score::needs_prior;
use crate::words::in_python;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use polyurn::counts;
use polyurn::graph::bind_without_data;
use polyurn::plan::check_reachable_rows;
use polyurn::prior::Prior;
use polyurn::simulate::{self as drawing, Tokens};
use polyurn::{Error, Seed};
use pyo3::prelude::*;

/// Names and sizes of the nodes, whether each is seen, one row of values for each kind of token, their counts, warnings.
type Drawn<'py> = (Vec<String>, Vec<u32>, Vec<bool>, Bound<'py, PyArray2<u32>>, Bound<'py, PyArray1<u64>>, Vec<String>);

/// Draws tables from the prior, and tokens from the tables.
#[pyfunction]
pub fn simulate<'py>(
    py: Python<'py>,
    tokens: Option<u64>,
    seen: Option<Vec<(String, Option<u32>)>>,
    request: &str,
    watcher: Option<Bound<'_, PyAny>>,
) -> PyResult<Drawn<'py>> {
    let request = Request::read(request).or_exception()?;
    let (source, settings, has_prior) = request.model_and_prior(&request.model).or_exception()?;
    needs_prior(has_prior).or_exception()?;
    let (model, is_seen, warnings) = bind_without_data(&source, seen.as_deref()).or_exception()?;
    let prior = Prior::build(&model, &settings).or_exception()?;
    check_reachable_rows(&model, &prior).or_exception()?;
    let tokens = match tokens {
        Some(n) => Tokens::Given(n),
        None => Tokens::Drawn(
            prior
                .total(Some(0))
                .map_err(|_| {
                    Error::Setting("give tokens, or b so that the number of tokens can be drawn from the prior".into())
                })
                .or_exception()?,
        ),
    };
    let work = Work { watcher, time_limit: request.time(), checkpoint: None };
    let (tensor, _) =
        work.run(py, |control, _| drawing::simulate(&model, &prior, tokens, Seed(request.seed), control))?;
    let n_nodes = model.n_nodes();
    let values: Vec<u32> = tensor.iter().flat_map(|(values, _)| values.iter().copied()).collect();
    let values = PyArray1::from_vec(py, values).reshape([tensor.len(), n_nodes])?;
    let n_tokens = PyArray1::from_iter(py, tensor.iter().map(|(_, count)| *count));
    let names = model.nodes().iter().map(|node| node.name.clone()).collect();
    let sizes = model.nodes().iter().map(|node| node.size).collect();
    Ok((
        names,
        sizes,
        is_seen,
        values,
        n_tokens,
        warnings.iter().map(|warning| in_python(&warning.to_string())).collect(),
    ))
}

/// Draws tokens in proportion to the counts of a table.
#[pyfunction]
pub fn resample(py: Python<'_>, data: PyRef<'_, Dataset>, tokens: u64, seed: u64) -> PyResult<Dataset> {
    let (data, cuts) = (data.get()?, data.cuts().to_vec());
    let draw = || {
        if let Some(line) = data.unknown_lines.first() {
            let message = "the count is unknown; give a number to draw from";
            return Err(Error::data_at(&data.source, *line, None, message));
        }
        if !data.unit.is_token() {
            return Err(Error::data(&data.source, "some counts are not whole, and whole ones are needed here"));
        }
        let held: Vec<u64> = data.counts.iter().collect();
        let drawn = drawing::resample(&held, tokens, Seed(seed))?;
        let rows: Vec<usize> = (0..drawn.len()).filter(|&row| drawn[row] > 0).collect();
        let values = data.values.iter().map(|column| rows.iter().map(|&row| column.at(row)).collect()).collect();
        Ok(counts::Dataset {
            source: "drawn".into(),
            columns: data.columns.clone(),
            values,
            counts: rows.iter().map(|&row| drawn[row]).collect(),
            unit: data.unit,
            unknown: Vec::new(),
            unknown_lines: Vec::new(),
            warnings: Vec::new(),
        })
    };
    Ok(Dataset::new(py.detach(draw).or_exception()?).with_cuts(cuts))
}
