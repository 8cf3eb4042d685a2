//! Fits: made, kept, and taken apart into arrays.

use crate::checkpoint;
use crate::data::Dataset;
use crate::errors::OrException;
use crate::request::{Request, settings};
use crate::score::{bound, needs_whole};
use crate::words::result_in_python;
use numpy::PyArray1;
use polyurn::counts::Labels;
use polyurn::decomposition::{Marginal, Shape};
use polyurn::engine::Problem;
use polyurn::export::Export;
use polyurn::fit::{self as fitted, FitSource};
use polyurn::fit_file::FitFile;
use polyurn::graph::NodeIndex;
use polyurn::io::Cuts;
use polyurn::predict::Draw;
use polyurn::prior::Prior;
use polyurn::shown::{Question, fit_file_result};
use polyurn::{Error, Result, Seed};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// A fit and all that is needed to use it.
#[pyclass(frozen, module = "polyurn._core")]
#[derive(Debug)]
pub struct Fit {
    file: Arc<FitFile>,
}

/// Nodes, sizes, and one number for each combination of their values, the last node fastest.
type Block<'py> = (Vec<String>, Vec<u32>, Bound<'py, PyArray1<f64>>);

/// Fits a model: the fit, what there is to say of it as JSON, and whether it was interrupted.
#[pyfunction]
#[pyo3(signature = (data, request, is_last_use, watcher))]
pub fn fit(
    py: Python<'_>,
    data: PyRef<'_, Dataset>,
    request: &str,
    is_last_use: bool,
    watcher: Option<Bound<'_, PyAny>>,
) -> PyResult<(Fit, String, bool)> {
    let mut given = settings(request);
    if !data.cuts().is_empty() {
        given["bins"] = json!(data.cuts());
    }
    let request = Request::read(request).or_exception()?;
    let data = data.hand_over(is_last_use)?;
    let work = request.work(watcher).or_exception()?;
    let ((file, summary, keeps_state), interrupted) = work.run(py, |control, _| {
        let (source, prior_settings, has_prior) = request.model_and_prior(&request.model)?;
        let fitting = request.fitting(has_prior)?;
        needs_whole(&data, fitting.method.takes_fractions())?;
        let name = data.source.clone();
        let binding = bound(&source, data, &request)?;
        let start = Instant::now();
        let prior = Prior::build(&binding.model, &prior_settings)?;
        let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
        let (mut found, said) = fitting.fit(&problem, request.means(), control)?;
        let found_prior = found.prior.take();
        let problem = match &found_prior {
            Some(prior) => problem.with_prior(prior),
            None => problem,
        };
        let fit = fitted::Fit {
            problem: &problem,
            found,
            decomposition: None,
            shows_hidden: false,
            seconds: start.elapsed().as_secs_f64(),
            warnings: [binding.warnings.clone(), said].concat(),
        };
        let is_seen = problem.counts.seen_anywhere();
        let question = Question {
            command: "fit",
            model: &request.model,
            data: &name,
            problem: &problem,
            is_seen: &is_seen,
            has_prior,
            n_tokens: problem.counts.unknown.is_empty().then_some(problem.counts.total()),
            command_line: &[],
        };
        let mut summary = question.add_to(fit.summary(Seed(request.seed)));
        result_in_python(&mut summary);
        let source = FitSource {
            data: name.clone(),
            sha256: None,
            is_seen: is_seen.clone(),
            has_prior,
            settings: given,
            seed: Seed(request.seed),
            command_line: Vec::new(),
        };
        Ok((source.file(&fit), summary.to_string(), polyurn::checkpoint::is_needed(&fit.warnings)))
    })?;
    if !interrupted && !keeps_state {
        checkpoint::remove(request.checkpoint.as_deref());
    }
    Ok((Fit { file: Arc::new(file) }, summary, interrupted))
}

/// Hidden nodes over whose namings the tables of an exact fit would be averages; told before any work.
#[pyfunction]
pub fn exchangeable(data: PyRef<'_, Dataset>, request: &str) -> PyResult<Vec<String>> {
    let request = Request::read(request).or_exception()?;
    let (source, prior_settings, _) = request.model_and_prior(&request.model).or_exception()?;
    let binding = bound(&source, data.get()?, &request).or_exception()?;
    let prior = Prior::build(&binding.model, &prior_settings).or_exception()?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts).or_exception()?;
    Ok(fitted::label_averaged(&problem))
}

/// `best`, the number of a draw from 0, or else the tables that the method gives.
#[derive(FromPyObject)]
pub enum DrawRequest {
    /// Its number.
    Number(usize),
    /// `best`.
    Word(String),
}

/// The tables that are meant.
///
/// # Errors
/// A word that means nothing.
pub fn draw_of(draw: Option<&DrawRequest>) -> Result<Draw> {
    match draw {
        None => Ok(Draw::Means),
        Some(DrawRequest::Number(number)) => Ok(Draw::Number(*number)),
        Some(DrawRequest::Word(word)) if word == "best" => Ok(Draw::Best),
        Some(DrawRequest::Word(word)) => {
            Err(Error::Setting(format!("draw: expected \"best\" or the number of a draw, not {word:?}")))
        }
    }
}

#[pymethods]
impl Fit {
    /// Reads a fit file.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Self> {
        Ok(Fit { file: Arc::new(FitFile::read(&path).or_exception()?) })
    }

    /// Reads the bytes of a fit file.
    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        Ok(Fit { file: Arc::new(FitFile::from_bytes(bytes, "fit").or_exception()?) })
    }

    /// The bytes of its file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.file.to_bytes().or_exception()?))
    }

    /// For pickles.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let maker = slf.get_type().getattr("from_bytes")?;
        Ok((maker, (slf.get().to_bytes(slf.py())?,)))
    }

    /// All that is kept, as JSON with tables.
    fn json(&self) -> String {
        let mut result = fit_file_result(&self.file);
        result_in_python(&mut result);
        result.to_string()
    }

    /// The engine.
    #[getter]
    fn method(&self) -> &str {
        &self.file.method
    }

    /// The intensity's mean.
    #[getter]
    fn intensity(&self) -> f64 {
        self.file.intensity.mean()
    }

    /// Whether the tables are averages over namings of hidden values.
    #[getter]
    fn is_averaged(&self) -> bool {
        !self.file.label_averaged.is_empty()
    }

    /// Whether there is a best allocation, and how many draws.
    #[getter]
    fn draws(&self) -> (bool, usize) {
        (self.file.best.is_some(), self.file.draws.len())
    }

    /// Nodes in order: name, number of values, whether it is seen, and its parents.
    #[getter]
    fn nodes(&self) -> Vec<(String, u32, bool, Vec<String>)> {
        let model = &self.file.model;
        let name = |node: &NodeIndex| model.node(*node).name.clone();
        let of = |(node, seen): (&polyurn::graph::Node, &bool)| {
            (node.name.clone(), node.size, *seen, node.parents.iter().map(name).collect())
        };
        model.nodes().iter().zip(&self.file.is_seen).map(of).collect()
    }

    /// Nodes whose tables others share, by the name of the first: its table, and all that have it.
    #[getter]
    fn tables(&self) -> Vec<Vec<String>> {
        let model = &self.file.model;
        let names = |nodes: &[NodeIndex]| nodes.iter().map(|&node| model.node(node).name.clone()).collect();
        model.tables().iter().map(|table| names(&table.members)).collect()
    }

    /// Seen roots with hidden children, whose values are like documents.
    #[getter]
    fn local_nodes(&self) -> Vec<String> {
        let file = &self.file;
        let local = polyurn::graph::local_nodes(&file.model, &file.is_seen);
        local.into_iter().map(|node| file.model.node(node).name.clone()).collect()
    }

    /// What the values of a node are called; none where they are numbers, with the first of them.
    fn labels(&self, node: &str) -> PyResult<(Option<Vec<String>>, u32)> {
        let node = self.find(node).or_exception()?;
        Ok(match &self.file.labels[node.ix()] {
            Labels::Named(names) => (Some(names.clone()), 0),
            Labels::Indexed { first, .. } => (None, *first),
        })
    }

    /// What values of a seen node are called in the fit: where it cut a column of numbers, the categories of numbers. All others are
    /// called what they are.
    fn cut<'py>(&self, node: &str, labels: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let node = self.find(node).or_exception()?;
        let Some(cuts) = self.cuts_of(node).or_exception()? else { return Ok(labels) };
        let categories = cuts.labels();
        let of = |label: String| match cuts.category(&categories, &label) {
            Ok(category) => categories[category as usize].clone(),
            Err(_) => label,
        };
        let py = labels.py();
        let labels: Vec<String> = labels.extract()?;
        Ok(labels.into_iter().map(of).collect::<Vec<String>>().into_pyobject(py)?.into_any())
    }

    /// The table of a node: probabilities of its values, for every combination of values of its parents.
    #[pyo3(signature = (node, draw))]
    fn table<'py>(&self, py: Python<'py>, node: &str, draw: Option<DrawRequest>) -> PyResult<Block<'py>> {
        let node = self.find(node).or_exception()?;
        let export = Export::new(&self.file, draw_of(draw.as_ref()).or_exception()?).or_exception()?;
        let cells = export.cells(self.file.model.node(node).table).or_exception()?;
        let family: Vec<NodeIndex> = self.file.model.node(node).parents.iter().copied().chain([node]).collect();
        Ok(self.block(py, &family, cells))
    }

    /// The probability of every combination of values of some nodes.
    #[pyo3(signature = (nodes, draw))]
    fn marginal<'py>(&self, py: Python<'py>, nodes: Vec<String>, draw: Option<DrawRequest>) -> PyResult<Block<'py>> {
        let nodes = nodes.iter().map(|name| self.find(name)).collect::<Result<Vec<_>>>().or_exception()?;
        let export = Export::new(&self.file, draw_of(draw.as_ref()).or_exception()?).or_exception()?;
        let Marginal { nodes, values, .. } = export.marginal(&nodes).or_exception()?;
        Ok(self.block(py, &nodes, values))
    }

    /// What kind of factorisation it is, its core, and a matrix for each seen node, the seen node last.
    #[pyo3(signature = (draw))]
    fn factors<'py>(
        &self,
        py: Python<'py>,
        draw: Option<DrawRequest>,
    ) -> PyResult<(&'static str, Option<Block<'py>>, Vec<Block<'py>>)> {
        let export = Export::new(&self.file, draw_of(draw.as_ref()).or_exception()?).or_exception()?;
        let factors = py.detach(|| export.factors()).or_exception()?;
        let shape = match factors.shape {
            Shape::Matrix => "matrix",
            Shape::Cp => "cp",
            Shape::Tucker => "tucker",
            Shape::Network => "network",
            Shape::NotAFactorisation => "none",
        };
        let block = |marginal: Marginal| self.block(py, &marginal.nodes, marginal.values);
        Ok((shape, factors.core.map(block), factors.matrices.into_iter().map(block).collect()))
    }

    /// The network in the Bayesian Interchange Format.
    fn bif(&self) -> PyResult<String> {
        Export::new(&self.file, Draw::Means).or_exception()?.bif().or_exception()
    }

    /// What was given besides the model, as JSON.
    #[getter]
    fn settings(&self) -> String {
        match &self.file.settings {
            Value::Null => "{}".into(),
            settings => settings.to_string(),
        }
    }

    fn __repr__(&self) -> String {
        format!("<fit by {} of {}>", self.file.method, self.file.model.to_text())
    }
}

impl Fit {
    /// One of a file.
    pub fn of(file: FitFile) -> Self {
        Fit { file: Arc::new(file) }
    }

    /// The file.
    pub fn file(&self) -> &Arc<FitFile> {
        &self.file
    }

    /// A node by its name.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, name: &str) -> Result<NodeIndex> {
        self.file.model.find(name).ok_or_else(|| {
            let known: Vec<&str> = self.file.model.nodes().iter().map(|node| node.name.as_str()).collect();
            Error::Setting(format!("no node {name:?}; there are {}", known.join(", ")))
        })
    }

    /// Where it cut the numbers of a column that this node stands for. A column that was given another name is known by its categories.
    fn cuts_of(&self, node: NodeIndex) -> Result<Option<Cuts>> {
        let Some(bins) = self.file.settings.get("bins") else { return Ok(None) };
        let unreadable = |error| Error::Setting(format!("the cuts of this fit cannot be read ({error}); fit anew"));
        let all: Vec<Cuts> = serde_json::from_value(bins.clone()).map_err(unreadable)?;
        let name = &self.file.model.node(node).name;
        let is_called_so = |cuts: &Cuts| match &self.file.labels[node.ix()] {
            Labels::Named(labels) => cuts.labels() == *labels,
            Labels::Indexed { .. } => false,
        };
        let place = all.iter().position(|cuts| cuts.column == *name).or_else(|| all.iter().position(is_called_so));
        Ok(place.map(|place| all[place].clone()))
    }

    fn block<'py>(&self, py: Python<'py>, nodes: &[NodeIndex], values: Vec<f64>) -> Block<'py> {
        let model = &self.file.model;
        let names = nodes.iter().map(|&node| model.node(node).name.clone()).collect();
        let sizes = nodes.iter().map(|&node| model.node(node).size).collect();
        (names, sizes, PyArray1::from_vec(py, values))
    }
}
