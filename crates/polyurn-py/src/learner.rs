//! Stochastic variational Bayes: tables learned from batches, or from a file that is read in batches and never held.

use crate::batch::{Column, HeldRows};
use crate::errors::OrException;
use crate::fit::Fit;
use crate::request::{Request, settings};
use crate::run::Work;
use crate::score::needs_prior;
use crate::words::result_in_python;
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{StochasticVb, nodes_with_uneven_prior};
use polyurn::fit::{self as fitted, FitSource, StreamAsked, StreamFit, StreamOutcome};
use polyurn::graph::{BatchOptions, Batcher, Model, NodeIndex, RowBatch, bind_without_data};
use polyurn::io::{Format, ReadOptions, read_rows};
use polyurn::plan::check_reachable_rows;
use polyurn::prior::Prior;
use polyurn::shown::Question;
use polyurn::{Error, Result, Seed, Warning};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tables under way.
#[pyclass(frozen, module = "polyurn._core")]
#[derive(Debug)]
pub struct Learner {
    request: Request,
    given: Value,
    model: Model,
    prior: Prior,
    is_seen: Vec<bool>,
    has_seen: bool,
    n_tokens: u64,
    settings: StochasticVb,
    batches: BatchOptions,
    said: Vec<Warning>,
    /// Of all batches together.
    deadline: Option<Instant>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    fit: Option<StreamFit>,
    /// For each node the labels that came.
    known: Vec<Vec<String>>,
    time: Duration,
    n_passes: u32,
    is_cut: bool,
}

#[pymethods]
impl Learner {
    /// Before the first batch. `n_rows` is the size of batches that longer ones are cut into.
    #[new]
    #[pyo3(signature = (request, seen, local, n_rows))]
    fn new(
        request: &str,
        seen: Option<Vec<(String, Option<u32>)>>,
        local: Option<Vec<String>>,
        n_rows: usize,
    ) -> PyResult<Self> {
        let given = settings(request);
        let request = Request::read(request).or_exception()?;
        request.refuse_all_but("svb", &[]).or_exception()?;
        let (source, prior_settings, has_prior) = request.model_and_prior(&request.model).or_exception()?;
        needs_prior(has_prior).or_exception()?;
        let n_tokens = request.tokens.ok_or_else(|| {
            PyValueError::new_err("tokens: method \"svb\" needs the number of tokens of the whole stream")
        })?;
        let (model, is_seen, said) = bind_without_data(&source, seen.as_deref()).or_exception()?;
        let prior = Prior::build(&model, &prior_settings).or_exception()?;
        check_reachable_rows(&model, &prior).or_exception()?;
        prior.total(Some(n_tokens)).or_exception()?;
        let default = StochasticVb::new(n_tokens as f64);
        let settings = StochasticVb {
            decay: request.kappa.unwrap_or(default.decay),
            delay: request.tau.unwrap_or(default.delay),
            isa: request.isa().or_exception()?,
            threads: request.means().threads,
            ..default
        };
        let find = |name: &String| -> Result<NodeIndex> {
            model.find(name).ok_or_else(|| Error::Setting(format!("local: the model has no node {name:?}")))
        };
        let local: Option<Vec<NodeIndex>> =
            local.map(|names| names.iter().map(find).collect()).transpose().or_exception()?;
        let batches = BatchOptions {
            n_rows,
            columns: request.columns.clone(),
            seen: seen.as_ref().map(|seen| seen.iter().map(|(name, _)| name.clone()).collect()),
            local,
            is_numbered: nodes_with_uneven_prior(&model, &prior),
            ..Default::default()
        };
        let deadline = request.time().map(|limit| Instant::now() + limit);
        let state = Mutex::new(State { n_passes: 1, ..Default::default() });
        Ok(Learner {
            request,
            given,
            model,
            prior,
            is_seen,
            has_seen: seen.is_some(),
            n_tokens,
            settings,
            batches,
            said,
            deadline,
            state,
        })
    }

    /// Learns from rows, in batches.
    fn update(
        &self,
        py: Python<'_>,
        columns: Vec<Column<'_>>,
        counts: Option<Bound<'_, PyAny>>,
        n_rows: usize,
        watcher: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(bool, bool)> {
        let held = HeldRows::new(columns, counts.as_ref(), n_rows)?;
        let rows = held.rows();
        self.learn(py, watcher, |batcher| rows.push_all(batcher))
    }

    /// Learns from a file, which is read once and never held.
    #[pyo3(signature = (path, format, watcher))]
    fn read(
        &self,
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        watcher: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(bool, bool)> {
        let format = format.map(str::parse::<Format>).transpose().or_exception()?;
        let options = ReadOptions { format, ..Default::default() };
        self.learn(py, watcher, |batcher| read_rows(&path, &options, batcher).map(drop))
    }

    /// Says that the stream starts again.
    fn start_pass(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.n_passes += 1;
        if let Some(fit) = &mut state.fit {
            fit.learner.start_pass();
        }
    }

    /// Tokens so far.
    #[getter]
    fn n_tokens(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.fit.as_ref().map_or(0, |fit| fit.learner.n_tokens_seen())
    }

    /// What it has come to: the fit, and what there is to say of it as JSON. `data` is what the stream is called; `is_cut` says that an
    /// interrupt came between two batches.
    fn finish(&self, py: Python<'_>, data: &str, is_cut: bool) -> PyResult<(Fit, String)> {
        py.detach(|| self.outcome(data, is_cut)).or_exception()
    }
}

impl Learner {
    /// Reads all rows that `push` has, and learns from a batch whenever there is one. Whether it was cut short, after which what was
    /// learned stays, and whether an interrupt did that.
    fn learn(
        &self,
        py: Python<'_>,
        watcher: Option<Bound<'_, PyAny>>,
        push: impl FnOnce(&mut Batcher<'_, &mut dyn FnMut(RowBatch) -> Result<()>>) -> Result<()> + Send,
    ) -> PyResult<(bool, bool)> {
        let time_limit = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let work = Work { watcher, time_limit, checkpoint: None };
        let (is_cut, interrupted) = work.run(py, |control, _| {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let start = Instant::now();
            let outcome = self.take_all(&mut state, control, push);
            state.time += start.elapsed();
            match outcome {
                // What was learned stays, and is what is answered with.
                Err(Error::Stopped(_)) if state.fit.is_some() => {
                    state.is_cut = true;
                    Ok(true)
                }
                outcome => outcome.map(|()| false),
            }
        })?;
        if interrupted && self.n_tokens() == 0 {
            return Err(PyKeyboardInterrupt::new_err("interrupted before there was a batch"));
        }
        Ok((is_cut || interrupted, interrupted))
    }

    fn take_all(
        &self,
        state: &mut State,
        control: &mut Control<'_>,
        push: impl FnOnce(&mut Batcher<'_, &mut dyn FnMut(RowBatch) -> Result<()>>) -> Result<()>,
    ) -> Result<()> {
        let options = BatchOptions { known: state.known.clone(), ..self.batches.clone() };
        let asked = self.n_tokens as f64;
        let mut deliver = |batch: RowBatch| -> Result<()> {
            let share = state.fit.as_ref().map_or(0.0, |fit| fit.learner.n_tokens_seen() as f64 / asked);
            control.tick("svb", share.min(1.0))?;
            let fit = match &mut state.fit {
                Some(fit) => fit,
                None => {
                    let seed = Seed(self.request.seed);
                    state.fit.insert(StreamFit::begin(&self.settings, &self.model, &self.prior, &batch, seed)?)
                }
            };
            fit.take(batch)?;
            state.known = fit.labels().to_vec();
            Ok(())
        };
        let deliver: &mut dyn FnMut(RowBatch) -> Result<()> = &mut deliver;
        let mut batcher = Batcher::new(&self.model, options, deliver)?;
        push(&mut batcher)?;
        batcher.finish_pass()
    }

    fn outcome(&self, data: &str, is_cut: bool) -> Result<(Fit, String)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (seconds, n_passes, is_cut) = (state.time.as_secs_f64(), state.n_passes, state.is_cut || is_cut);
        let Some(stream) = &mut state.fit else {
            return Err(Error::Setting(format!("{data}: there are no tokens to learn from")));
        };
        let asked = StreamAsked { n_tokens: self.n_tokens, n_passes, batch: self.batches.n_rows, is_cut };
        let StreamOutcome { counts, found, is_seen, came, warnings } =
            stream.outcome(&self.model, &self.prior, asked)?;
        let problem = Problem::new(&self.model, &self.prior, &counts)?;
        let warnings = [self.said.clone(), warnings].concat();
        let fit = fitted::Fit { problem: &problem, found, decomposition: None, shows_hidden: false, seconds, warnings };
        let question = Question {
            command: "fit",
            model: &self.request.model,
            data,
            problem: &problem,
            is_seen: if self.has_seen { &self.is_seen } else { &came },
            has_prior: true,
            n_tokens: Some(self.n_tokens as f64),
            command_line: &[],
        };
        let mut summary = question.add_to(fit.summary(Seed(self.request.seed)));
        result_in_python(&mut summary);
        let source = FitSource {
            data: data.to_owned(),
            sha256: None,
            is_seen,
            has_prior: true,
            settings: self.given.clone(),
            seed: Seed(self.request.seed),
            command_line: Vec::new(),
        };
        Ok((Fit::of(source.file(&fit)), summary.to_string()))
    }
}
