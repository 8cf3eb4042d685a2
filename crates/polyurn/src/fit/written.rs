//! A fit as a fit file (docs/fit-file.md).

use super::Fit;
use crate::Seed;
use crate::counts::MISSING;
use crate::engine::Problem;
use crate::engine::smc::{ParticleAllocation, RecordAllocation};
use crate::fit_file::{self, AllocatedTokens, FitData, FitFile, FitPrior, StoredDraw};
use crate::graph::TableIndex;
use crate::warning::Warning;
use serde_json::Value;
use std::collections::HashMap;

/// What a fit file needs to know besides the fit.
#[derive(Debug, Clone)]
pub struct FitSource {
    /// What the data are called: most often a file.
    pub data: String,
    /// Digest of that file, if it is one.
    pub sha256: Option<String>,
    /// For each node whether the data show it.
    pub is_seen: Vec<bool>,
    /// Whether there is a prior.
    pub has_prior: bool,
    /// Settings that were given, by name.
    pub settings: Value,
    /// Of all random draws.
    pub seed: Seed,
    /// The words by which it was asked for on a command line; none where it was not.
    pub command_line: Vec<String>,
}

impl FitSource {
    /// The fit with all that is needed to use it.
    pub fn file(self, fit: &Fit<'_, '_>) -> FitFile {
        let problem = fit.problem;
        let (model, prior) = (problem.model, problem.prior);
        let mut result = fit.summary(self.seed);
        if let Some(object) = result.as_object_mut() {
            // Times differ between runs that are otherwise the same.
            ["seconds", "tokens_per_second"].iter().for_each(|field| drop(object.remove(*field)));
        }
        let label_averaged = fit.warnings.iter().find_map(|warning| match warning {
            Warning::LabelAveraged { nodes } => Some(nodes.clone()),
            _ => None,
        });
        let n_records = result["records"].as_u64().unwrap_or(problem.counts.n_records() as u64);
        let n_tables = model.tables().len() as u32;
        let is_stream = fit.found.method == "svb";
        FitFile {
            model: model.clone(),
            labels: problem.counts.labels.clone(),
            is_seen: self.is_seen,
            method: fit.found.method.into(),
            label_averaged: label_averaged.unwrap_or_default(),
            intensity: fit.found.intensity,
            prior: FitPrior {
                is_given: self.has_prior,
                tables: (0..n_tables).map(|ix| prior.table(TableIndex(ix)).clone()).collect(),
                a: prior.a(),
                shape: prior.shape(),
                rate: prior.rate(),
            },
            tables: fit.found.tables.clone(),
            best: fit.found.best().map(|best| stored_draw(best, problem)),
            draws: fit.found.draws().iter().map(|draw| stored_draw(draw, problem)).collect(),
            value_counts: if is_stream { vec![None; model.n_nodes()] } else { fit_file::value_counts(problem.counts) },
            data: FitData { source: self.data, sha256: self.sha256, n_records, n_tokens: problem.counts.total() },
            settings: self.settings,
            seed: self.seed.0,
            command_line: self.command_line,
            version: crate::VERSION.into(),
            result,
        }
    }
}

/// Tables and tokens of an allocation.
fn stored_draw(draw: &ParticleAllocation, problem: &Problem<'_>) -> StoredDraw {
    let mut groups: HashMap<(u32, u32), &RecordAllocation> = HashMap::new();
    for record in &draw.hidden {
        groups.insert((record.block, record.record), record);
    }
    let mut allocation = Vec::new();
    let mut shown = vec![MISSING; problem.model.n_nodes()];
    for (block_ix, (block, pattern)) in problem.counts.blocks.iter().zip(problem.plan.patterns()).enumerate() {
        for record in 0..block.n_records() {
            block.read(record, &mut shown);
            let allocated = groups.get(&(block_ix as u32, record as u32));
            for (hidden, n) in allocated.into_iter().flat_map(|record| &record.groups) {
                let mut values = shown.clone();
                pattern.unseen.iter().zip(hidden).for_each(|(node, &value)| values[node.ix()] = value);
                allocation.push(AllocatedTokens { record: shown.clone(), values, n_tokens: *n });
            }
        }
    }
    StoredDraw { tables: draw.tables(problem), allocation }
}
