//! The evidence of a stream while it comes in: a batch of records after another, and states to go on from.

use crate::batch::{Column, HeldRows, Rows};
use crate::errors::OrException;
use crate::request::Request;
use crate::run::Work;
use crate::score::needs_prior;
use crate::words::{in_python, result_in_python};
use polyurn::checkpoint;
use polyurn::control::Control;
use polyurn::engine::smc::Order;
use polyurn::engine::smc::online::Online;
use polyurn::engine::sweeps::nodes_with_uneven_prior;
use polyurn::graph::{BatchOptions, Batcher, Model, RowBatch, bind_without_data};
use polyurn::plan::check_reachable_rows;
use polyurn::prior::Prior;
use polyurn::score::Running;
use polyurn::shown::{ShownScore, standing_json, warnings_json};
use polyurn::{Error, Result, Seed, Warning};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Settings that a stream has a use for.
const ALLOWED: [&str; 6] = ["particles", "runs", "rejuvenate", "order", "resample", "ess"];
/// Rows of a batch: what one call brings is one, however much.
const ANY_NUMBER: usize = usize::MAX / 4;
/// Nobody knows how far a stream has come.
const NO_SHARE: f64 = f64::NAN;

/// A stream under way.
#[pyclass(frozen, module = "polyurn._core")]
#[derive(Debug)]
pub struct Stream {
    seed: Seed,
    model: Model,
    model_text: String,
    columns: Option<Vec<String>>,
    seen: Option<Vec<String>>,
    is_numbered: Vec<bool>,
    window: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    running: Running,
    /// Those that were said.
    warnings: Vec<Warning>,
    /// Spent on tokens.
    time: Duration,
    n_batches: u64,
}

#[pymethods]
impl Stream {
    /// Before the first token.
    #[new]
    #[pyo3(signature = (request, seen))]
    fn new(request: &str, seen: Option<Vec<(String, Option<u32>)>>) -> PyResult<Self> {
        let request = Request::read(request).or_exception()?;
        request.refuse_all_but("smc", &[&ALLOWED]).or_exception()?;
        let (source, settings, has_prior) = request.model_and_prior(&request.model).or_exception()?;
        needs_prior(has_prior).or_exception()?;
        let (model, _, warnings) = bind_without_data(&source, seen.as_deref()).or_exception()?;
        let prior = Prior::build(&model, &settings).or_exception()?;
        check_reachable_rows(&model, &prior).or_exception()?;
        let (wish, by) = request.wish().or_exception()?;
        if by.is_some() {
            let message = "order: a stream comes as it comes; give \"given\", or \"random\" to shuffle within batches";
            return Err(PyValueError::new_err(message));
        }
        let default = Online::default();
        let online = Online {
            isa: request.isa().or_exception()?,
            threads: request.means().threads,
            max_memory: request.max_memory.unwrap_or(default.max_memory),
            ..Online::of_wish(&wish, request.window)
        };
        let seed = Seed(request.seed);
        let running = Running::new(&model, &prior, &online, wish.order == Order::Random, seed).or_exception()?;
        Ok(Stream {
            seed,
            is_numbered: nodes_with_uneven_prior(&model, &prior),
            model,
            model_text: request.model,
            columns: request.columns,
            seen: seen.map(|seen| seen.into_iter().map(|(name, _)| name).collect()),
            window: online.window,
            state: Mutex::new(State { running, warnings, time: Duration::ZERO, n_batches: 0 }),
        })
    }

    /// Takes a batch: how the stream stands as JSON, what there is to say of the batch, and whether it was interrupted, after which
    /// all that was taken stays.
    fn update(
        &self,
        py: Python<'_>,
        columns: Vec<Column<'_>>,
        counts: Option<Bound<'_, PyAny>>,
        n_rows: usize,
    ) -> PyResult<(String, String, bool)> {
        let held = HeldRows::new(columns, counts.as_ref(), n_rows)?;
        let rows = held.rows();
        let ((line, said), interrupted) = Work::default().run(py, |control, _| {
            // Another thread that holds it works with the interpreter's lock released, like this one.
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            self.take(&mut state, &rows, control)
        })?;
        Ok((line, said, interrupted))
    }

    /// The evidence of all tokens so far, as JSON and as text.
    fn score(&self) -> (String, String) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (time, warnings) = (state.time, state.warnings.clone());
        let score = state.running.score(time.as_secs_f64(), warnings);
        let shown = ShownScore { score: &score, model: &self.model };
        let mut object = shown.json(self.seed);
        object["batches"] = state.n_batches.into();
        object["window"] = self.window.into();
        result_in_python(&mut object);
        (object.to_string(), in_python(&shown.text(&self.model_text, "stream")))
    }

    /// Tokens so far.
    #[getter]
    fn n_tokens(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).running.n_tokens()
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed.0
    }

    /// All that later batches need, as a file of the command line's `--state`.
    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        PyBytes::new(py, &checkpoint::seal(self.seed, &state.running.state(0)))
    }

    /// Goes on from a state, which must be of the same model, prior and settings.
    fn go_on_from(&self, bytes: &[u8], name: PathBuf) -> PyResult<()> {
        let (_, saved) = checkpoint::open(bytes, &name).or_exception()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.running.go_on_from(&saved).or_exception()
    }
}

impl Stream {
    fn take(&self, state: &mut State, rows: &Rows<'_>, control: &mut Control<'_>) -> Result<(String, String)> {
        let mut delivered = Vec::new();
        self.read(rows, state.running.labels().to_vec(), &mut delivered)?;
        let n_said = state.warnings.len();
        for batch in &delivered {
            let start = Instant::now();
            let taken = state.running.take(batch, &mut || control.tick("stream", NO_SHARE));
            state.time += start.elapsed();
            match taken {
                // What was taken stays, and is what is answered with.
                Ok(()) | Err(Error::Stopped(_)) => {}
                Err(error) => return Err(error),
            }
            // Each batch finds the same columns.
            let new = batch.warnings.iter().filter(|warning| !state.warnings.contains(warning)).cloned();
            let new: Vec<Warning> = new.collect();
            state.warnings.extend(new);
        }
        state.n_batches += 1;
        let mut said = warnings_json(&state.warnings[n_said..]);
        result_in_python(&mut said);
        let standing = state.running.look();
        Ok((standing_json(&standing, state.n_batches, state.time).to_string(), said.to_string()))
    }

    /// The rows in the model's terms. When one of them is wrong none is taken.
    fn read(&self, rows: &Rows<'_>, known: Vec<Vec<String>>, delivered: &mut Vec<RowBatch>) -> Result<()> {
        let options = BatchOptions {
            n_rows: ANY_NUMBER,
            columns: self.columns.clone(),
            seen: self.seen.clone(),
            local: Some(Vec::new()),
            is_numbered: self.is_numbered.clone(),
            is_prompt: true,
            known,
        };
        let mut batcher = Batcher::new(&self.model, options, |batch| {
            delivered.push(batch);
            Ok(())
        })?;
        rows.push_all(&mut batcher)?;
        batcher.finish_pass()
    }
}
