//! What Python asks for, as it comes in JSON, and what that is in the library's terms.

mod engines;

use crate::checkpoint::CheckpointFile;
use crate::run::Work;
use polyurn::engine::sweeps::StartTables;
use polyurn::graph::ModelSource;
use polyurn::io::read_model;
use polyurn::prior::{PriorSettings, PriorSpec, TiedPrior};
use polyurn::score::Means;
use polyurn::{Error, Result, Seed};
use pyo3::{Bound, PyAny};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Seconds from one checkpoint to the next, unless asked otherwise; as on the command line.
const CHECKPOINT_EVERY: f64 = 30.0;

/// A share of the particles, `always` or `never`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum EssRequest {
    /// Below this share.
    Share(f64),
    /// A word.
    Word(String),
}

impl EssRequest {
    /// As it was written.
    pub fn text(&self) -> String {
        match self {
            EssRequest::Share(share) => share.to_string(),
            EssRequest::Word(word) => format!("{word:?}"),
        }
    }
}

/// Everything that a run may be asked for. What is not given has the library's default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub model: String,
    pub columns: Option<Vec<String>>,
    pub a: Option<f64>,
    pub shape: Option<f64>,
    pub b: Option<f64>,
    pub tied_prior: Option<String>,
    pub pseudo_count: BTreeMap<String, f64>,
    pub prior: Option<Value>,
    pub method: Option<String>,
    pub seed: u64,
    pub threads: usize,
    pub time_limit: Option<f64>,
    pub checkpoint: Option<PathBuf>,
    pub checkpoint_every: Option<f64>,
    pub max_memory: Option<u64>,
    pub kernel: Option<String>,
    pub given: Vec<String>,
    pub totals: Option<(u64, u64)>,
    pub a_values: Option<Vec<f64>>,
    pub sensitivity: Option<Vec<f64>>,
    pub bound: Option<bool>,
    pub particles: Option<usize>,
    pub runs: Option<u64>,
    pub rejuvenate: Option<u32>,
    pub heat: Option<f64>,
    pub cooling: Option<u32>,
    pub split_merge: Option<u32>,
    pub order: Option<String>,
    pub resample: Option<String>,
    pub ess: Option<EssRequest>,
    pub bracket: Option<bool>,
    pub path: Option<String>,
    pub sweeps: Option<u64>,
    pub chains: Option<u64>,
    pub chain_sweeps: Option<u64>,
    pub warm_up: Option<u64>,
    pub thin: Option<u64>,
    pub moves: Option<String>,
    pub draws: Option<usize>,
    pub n_init: Option<u64>,
    pub max_iter: Option<u64>,
    pub tol: Option<f64>,
    pub maximise: Vec<String>,
    pub init: Option<StartTables>,
    pub mode: Option<String>,
    pub update: Option<String>,
    pub trials: Option<u64>,
    pub window: Option<u64>,
    pub tokens: Option<u64>,
    pub kappa: Option<f64>,
    pub tau: Option<f64>,
    pub batch: Option<u64>,
    pub passes: Option<u32>,
}

impl Request {
    /// Reads it.
    ///
    /// # Errors
    /// What is no setting, or has a value that it cannot have.
    pub fn read(text: &str) -> Result<Self> {
        let request: Request = serde_json::from_str(text).map_err(|error| Error::Setting(error.to_string()))?;
        if let Some(tol) = request.tol.filter(|tol| !(0.0..1.0).contains(tol)) {
            return Err(Error::Setting(format!("tol: expected a number from 0 to below 1, not {tol}")));
        }
        for (name, n) in [("n_init", request.n_init), ("max_iter", request.max_iter), ("runs", request.runs)] {
            if n == Some(0) {
                return Err(Error::Setting(format!("{name}: expected a whole number from 1 on, not 0")));
            }
        }
        Ok(request)
    }

    /// Who does the work.
    pub fn means(&self) -> Means {
        Means { threads: self.threads.max(1), time: self.time(), seed: Seed(self.seed) }
    }

    /// Time that it may take.
    pub fn time(&self) -> Option<Duration> {
        self.time_limit.map(Duration::from_secs_f64)
    }

    /// Watches a run that may take this time, and keeps its state if it is to.
    ///
    /// # Errors
    /// A checkpoint that another run has.
    pub fn work<'py>(&self, watcher: Option<Bound<'py, PyAny>>) -> Result<Work<'py>> {
        let every = Duration::from_secs_f64(self.checkpoint_every.unwrap_or(CHECKPOINT_EVERY));
        let open = |path: &PathBuf| CheckpointFile::open(path, Seed(self.seed), every);
        Ok(Work { watcher, time_limit: self.time(), checkpoint: self.checkpoint.as_ref().map(open).transpose()? })
    }

    /// The prior, over that of a model file; and whether there is one at all.
    ///
    /// # Errors
    /// A model that is none, and settings that contradict each other.
    pub fn model_and_prior(&self, model: &str) -> Result<(ModelSource, PriorSettings, bool)> {
        let (source, mut settings) = read_model(model)?;
        let has_prior = match &self.prior {
            None => true,
            Some(Value::String(word)) if word == "none" => false,
            Some(Value::String(word)) => {
                return Err(Error::Setting(format!("prior: expected a dict or \"none\", not {word:?}")));
            }
            Some(spec) => {
                let spec = PriorSpec::deserialize(spec);
                settings.spec = spec.map_err(|error| Error::Setting(format!("prior: {error}")))?;
                true
            }
        };
        let is_any = self.a.is_some() || self.shape.is_some() || self.b.is_some() || !self.pseudo_count.is_empty();
        if !has_prior && (is_any || self.tied_prior.is_some()) {
            let message = "prior=\"none\": a, shape, b, pseudo_count and tied_prior belong to a prior; leave them out";
            return Err(Error::Setting(message.into()));
        }
        settings.a = self.a.or(settings.a);
        settings.shape = self.shape.or(settings.shape);
        settings.rate = self.b.or(settings.rate);
        settings.tied = match self.tied_prior.as_deref() {
            None | Some("sum") => TiedPrior::Sum,
            Some("once") => TiedPrior::Once,
            Some(other) => {
                return Err(Error::Setting(format!("tied_prior: expected \"sum\" or \"once\", not {other:?}")));
            }
        };
        settings.pseudo_counts = self.pseudo_count.clone().into_iter().collect();
        Ok((source, settings, has_prior))
    }
}

/// The settings that were given, for those who want to repeat a run; where its state was kept is none.
pub fn settings(request: &str) -> Value {
    let mut given: Value = serde_json::from_str(request).unwrap_or_default();
    if let Value::Object(given) = &mut given {
        given.remove("checkpoint");
        given.remove("checkpoint_every");
    }
    given
}
