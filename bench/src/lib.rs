//! Problems that the benchmark programs share.

use polyurn::control::Control;
use polyurn::counts::{Cell, Dataset, DatasetBuilder, RowCount};
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

/// A model bound to data.
///
/// # Errors
/// When the model does not fit the data.
pub fn bound(model: &str, data: &Dataset) -> Result<Binding> {
    bind(&ModelSource::parse(model)?, data, BindOptions::default())
}
