//! The compiled half of the Python package: arrays and settings in, library calls, JSON and arrays out.
//!
//! What users see is written in Python, in `python/polyurn`; this module is private to it.

mod arrow;
mod batch;
mod checkpoint;
mod codes;
mod data;
mod errors;
mod fit;
mod learner;
mod pickle;
mod predict;
mod rank;
mod request;
mod run;
mod score;
mod simulate;
mod stream;
mod words;

use pyo3::prelude::*;

/// The private module `polyurn._core`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", polyurn::VERSION)?;
    module.add("MISSING", polyurn::counts::MISSING)?;
    module.add("TooCostlyError", module.py().get_type::<errors::TooCostlyError>())?;
    module.add_class::<arrow::ArrowTable>()?;
    module.add_class::<data::Dataset>()?;
    module.add_class::<fit::Fit>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<learner::Learner>()?;
    module.add_function(wrap_pyfunction!(score::score, module)?)?;
    module.add_function(wrap_pyfunction!(rank::rank, module)?)?;
    module.add_function(wrap_pyfunction!(fit::fit, module)?)?;
    module.add_function(wrap_pyfunction!(fit::exchangeable, module)?)?;
    module.add_function(wrap_pyfunction!(predict::predict, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::resample, module)?)?;
    module.add_function(wrap_pyfunction!(rank::report, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::checkpoint_seed, module)?)?;
    module.add_function(wrap_pyfunction!(words::in_python, module)?)?;
    Ok(())
}
