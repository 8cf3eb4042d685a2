//! From batches of a stream to a fit: tables that are learned step by step, and what is left when the stream has gone by.

use super::{Found, StreamReport};
use crate::Seed;
use crate::counts::{Counts, Labels, Unit};
use crate::engine::sweeps::{Learner, StochasticVb};
use crate::error::Result;
use crate::fit_file::Intensity;
use crate::graph::{Model, RowBatch, StreamLabels};
use crate::prior::Prior;
use crate::warning::Warning;

/// Tables under way, and what is kept of a stream beside them.
#[derive(Debug)]
pub struct StreamFit {
    /// What learns.
    pub learner: Learner,
    settings: StochasticVb,
    last: Counts,
    labels: StreamLabels,
    is_seen: Vec<bool>,
    n_rows: u64,
    /// How often a value of a local node may come back before that is worth a warning.
    n_returned_allowed: u64,
    notes: Vec<Warning>,
}

/// What was asked for beside the settings of the engine.
#[derive(Debug, Clone, Copy)]
pub struct StreamAsked {
    /// Tokens of the whole stream.
    pub n_tokens: u64,
    /// How often it goes by.
    pub n_passes: u32,
    /// Records of a batch at most.
    pub batch: usize,
    /// Whether it was cut short.
    pub is_cut: bool,
}

/// What a stream leaves behind.
#[derive(Debug)]
pub struct StreamOutcome {
    /// Labels and the number of tokens; the records are gone.
    pub counts: Counts,
    /// Tables and bound.
    pub found: Found,
    /// For each node whether it has a column.
    pub is_seen: Vec<bool>,
    /// For each node whether labels of it came.
    pub came: Vec<bool>,
    /// What to tell the user, but for what was said while it went by.
    pub warnings: Vec<Warning>,
}

impl StreamFit {
    /// Before the first batch, whose columns say which nodes are seen.
    ///
    /// # Errors
    /// As for [`StochasticVb::begin`].
    pub fn begin(settings: &StochasticVb, model: &Model, prior: &Prior, first: &RowBatch, seed: Seed) -> Result<Self> {
        Ok(StreamFit {
            learner: settings.begin(model, prior, &first.is_seen, &first.local, seed)?,
            settings: settings.clone(),
            last: first.counts.clone(),
            labels: StreamLabels::default(),
            is_seen: first.is_seen.clone(),
            n_rows: 0,
            n_returned_allowed: 0,
            notes: Vec::new(),
        })
    }

    /// Learns from a batch.
    ///
    /// # Errors
    /// As for [`Learner::step`].
    pub fn take(&mut self, batch: RowBatch) -> Result<()> {
        self.labels.add(&batch);
        self.learner.step(&batch.counts)?;
        self.n_rows += batch.n_rows;
        self.n_returned_allowed += 1;
        for warning in batch.warnings {
            // Each pass finds the same columns.
            if !self.notes.contains(&warning) {
                self.notes.push(warning);
            }
        }
        self.last = batch.counts;
        Ok(())
    }

    /// For each node the labels that came, in the order of their values.
    pub fn labels(&self) -> &[Vec<String>] {
        self.labels.names()
    }

    /// What it has come to.
    ///
    /// # Errors
    /// A total that the prior cannot have; as for [`Learner::bound`].
    pub fn outcome(&mut self, model: &Model, prior: &Prior, asked: StreamAsked) -> Result<StreamOutcome> {
        let total = prior.total(Some(asked.n_tokens))?;
        let report = StreamReport {
            n_batches: self.learner.n_steps(),
            n_rows: self.n_rows,
            n_tokens: self.learner.n_tokens_seen(),
            n_declared: asked.n_tokens,
            n_passes: asked.n_passes,
            n_last: self.last.n_tokens,
            batch: asked.batch,
            settings: self.settings.clone(),
        };
        let mut warnings = self.notes.clone();
        warnings.extend(self.warnings(&report, model, asked.is_cut));
        if !prior.is_consistent() {
            warnings.push(Warning::InconsistentPrior);
        }
        let ordered = self.labels.in_order(model);
        let places: Vec<Option<&[u32]>> = ordered.iter().map(|(_, places)| places.as_deref()).collect();
        let tables = self.learner.tables().into_iter().map(|table| table.reordered(model, &places)).collect();
        let bound = self.learner.bound(&self.last)?;
        // What was in the stream is gone; its labels are what is left to show.
        let labels: Vec<Labels> = ordered.iter().map(|(labels, _)| labels.clone()).collect();
        let counts =
            Counts { labels, blocks: Vec::new(), n_tokens: report.n_tokens, unit: Unit::TOKEN, unknown: Vec::new() };
        let n_tokens = asked.n_tokens as f64;
        let intensity = Intensity::Gamma { shape: total.shape + n_tokens, rate: total.rate + 1.0 };
        let mut found = Found::plain("svb", tables, intensity);
        (found.objective, found.stream) = (bound, Some(report));
        let came = ordered.iter().map(|(_, places)| places.is_some()).collect();
        Ok(StreamOutcome { counts, found, is_seen: self.is_seen.clone(), came, warnings })
    }

    /// Warnings about how the stream was.
    fn warnings(&self, report: &StreamReport, model: &Model, is_cut: bool) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let per_pass = report.n_tokens / u64::from(report.n_passes);
        if is_cut {
            let asked = report.n_declared.saturating_mul(u64::from(report.n_passes));
            warnings.push(Warning::StreamCut { tokens: report.n_tokens, asked });
        } else if per_pass != report.n_declared {
            warnings.push(Warning::OtherTotal { declared: report.n_declared, tokens: per_pass });
        }
        for returned in self.learner.returned() {
            // A long group may be cut once in a while.
            if returned.n_returned > self.n_returned_allowed {
                let node = model.node(returned.node).name.clone();
                warnings.push(Warning::Scattered { node, times: returned.n_returned, values: returned.n_values });
            }
        }
        warnings
    }
}
