//! Problems, sections, peers and figures that the benchmark programs share.

pub mod peer;
pub mod table;

use polyurn::control::Control;
use polyurn::counts::{Cell, Dataset, DatasetBuilder, RowCount};
use polyurn::engine::Problem;
use polyurn::graph::{BindOptions, Binding, ModelSource, bind, bind_without_data};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::simulate::{Tokens, simulate};
use polyurn::{Result, Seed};

/// Counts of index tuples, as a data set with the columns i, j, k, ..
///
/// # Errors
/// When the counts overflow.
pub fn dataset(cells: impl Iterator<Item = (Vec<u32>, u64)>, sizes: &[u32]) -> Result<Dataset> {
    let mut builder = DatasetBuilder::new("bench");
    for (name, &size) in ["i", "j", "k", "l"].iter().zip(sizes) {
        builder.index_column(Some((*name).to_owned()), 0, Some(size));
    }
    for (line, (values, n)) in cells.enumerate() {
        builder.push(line as u64 + 1, values.into_iter().map(Cell::Index), RowCount::Tokens(n))?;
    }
    Ok(builder.finish())
}

/// Tokens drawn from a CP model of the given rank.
///
/// # Errors
/// None for sensible sizes.
pub fn cp_data(sizes: &[u32], n_tokens: u64, rank: u32, a: f64, seed: u64) -> Result<Dataset> {
    let names = ["i", "j", "k", "l"];
    let children: Vec<String> = names.iter().zip(sizes).map(|(name, size)| format!("{name}[{size}]")).collect();
    let source = ModelSource::parse(&format!("r[{rank}] -> {}", children.join(" ")))?;
    let (model, _, _) = bind_without_data(&source, None)?;
    let prior = Prior::build(&model, &PriorSettings { a: Some(a), ..Default::default() })?;
    let tensor = simulate(&model, &prior, Tokens::Given(n_tokens), Seed(seed), &mut Control::default())?;
    dataset(tensor.into_iter().map(|(values, n)| (values[1..].to_vec(), n)), sizes)
}

/// Tokens drawn from a model, of which only these nodes are seen: its columns.
///
/// # Errors
/// When the model is not in order.
///
/// # Panics
/// When a node is not in the model.
pub fn simulated(model: &str, seen: &[&str], n_tokens: u64, a: f64, seed: u64) -> Result<Dataset> {
    let (model, _, _) = bind_without_data(&ModelSource::parse(model)?, None)?;
    let prior = Prior::build(&model, &PriorSettings { a: Some(a), ..Default::default() })?;
    let tensor = simulate(&model, &prior, Tokens::Given(n_tokens), Seed(seed), &mut Control::default())?;
    let columns: Vec<usize> = seen.iter().map(|name| model.find(name).expect("a node").ix()).collect();
    let mut builder = DatasetBuilder::new("bench");
    for (name, &column) in seen.iter().zip(&columns) {
        builder.index_column(Some((*name).to_owned()), 0, Some(model.nodes()[column].size));
    }
    for (line, (values, n)) in tensor.into_iter().enumerate() {
        let cells = columns.iter().map(|&column| Cell::Index(values[column]));
        builder.push(line as u64 + 1, cells, RowCount::Tokens(n))?;
    }
    Ok(builder.finish())
}

/// The 3 x 4 matrix of nine tokens that the paper tries small a on.
///
/// # Errors
/// None.
pub fn paper_matrix() -> Result<Dataset> {
    let cells = [(0, 0, 2), (0, 1, 1), (0, 2, 1), (1, 2, 1), (1, 3, 2), (2, 2, 1), (2, 3, 1)];
    dataset(cells.iter().map(|&(i, j, n)| (vec![i, j], n)), &[3, 4])
}

/// A model bound to data.
///
/// # Errors
/// When the model does not fit the data.
pub fn bound(model: &str, data: &Dataset) -> Result<Binding> {
    bind(&ModelSource::parse(model)?, data, BindOptions::default())
}

/// Hands the problem of a model, data and `a` to `f`.
///
/// # Errors
/// When the model does not fit the data, or as `f`.
pub fn with_problem<T>(model: &str, data: &Dataset, a: f64, f: impl FnOnce(&Problem<'_>) -> Result<T>) -> Result<T> {
    let binding = bound(model, data)?;
    let prior = Prior::build(&binding.model, &PriorSettings { a: Some(a), ..Default::default() })?;
    f(&Problem::new(&binding.model, &prior, &binding.counts)?)
}

/// A part of a program: its name, and what it does.
pub type Section = (&'static str, fn() -> Result<()>);

/// The sections that the command line names; all of them when it names none.
pub fn wanted<const N: usize>(sections: [Section; N]) -> impl Iterator<Item = Section> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    sections.into_iter().filter(move |(name, _)| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name))
}

/// Mean and standard deviation.
pub fn mean_and_sd(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

/// All tokens of a table of counts.
///
/// # Errors
/// None for data that can be bound.
pub fn n_tokens(data: &Dataset) -> Result<f64> {
    Ok(counts(data)?.iter().sum())
}

/// The sum of x ln x over all cells.
///
/// # Errors
/// None for data that can be bound.
pub fn sum_of_x_ln_x(data: &Dataset) -> Result<f64> {
    Ok(counts(data)?.iter().map(|x| x * x.ln()).sum())
}

fn counts(data: &Dataset) -> Result<Vec<f64>> {
    let binding = bind(&ModelSource::parse("complete")?, data, BindOptions::default())?;
    Ok(binding.counts.blocks.iter().flat_map(|block| block.counts.iter()).map(|count| count as f64).collect())
}
