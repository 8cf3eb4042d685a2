//! Writes what `polyurn fit -o` found as a fit file (docs/fit-file.md).

use super::fit_found::Intensity;
use super::fit_shown::Fit;
use crate::args::FitArgs;
use crate::output::{Failure, Output, write_atomically};
use polyurn::counts::MISSING;
use polyurn::engine::Problem;
use polyurn::engine::smc::{ParticleAllocation, RecordAllocation};
use polyurn::fit_file::{self, AllocatedTokens, FitData, FitFile, FitPrior, StoredDraw};
use polyurn::graph::TableIndex;
use polyurn::{Error, Warning};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

/// What a fit file needs to know besides the fit.
pub struct Source<'a> {
    pub args: &'a FitArgs,
    pub is_seen: Vec<bool>,
    pub has_prior: bool,
}

impl Source<'_> {
    /// Writes the file beside its place and renames it.
    pub fn write(&self, path: &Path, fit: &Fit<'_, '_>, output: &Output) -> Result<(), Failure> {
        let bytes = self.file(fit, output)?.to_bytes()?;
        write_atomically(path, |out| out.write_all(&bytes))
            .map_err(|error| Failure::Write(format!("{}: {error}", path.display())))
    }

    fn file(&self, fit: &Fit<'_, '_>, output: &Output) -> Result<FitFile, Failure> {
        let problem = fit.problem;
        let (model, prior) = (problem.model, problem.prior);
        let mut result = fit.json(output);
        if let Some(object) = result.as_object_mut() {
            // Tables are arrays of the file; times differ between runs that are otherwise the same.
            ["tables", "hidden", "seconds", "tokens_per_second"].iter().for_each(|field| drop(object.remove(*field)));
        }
        let label_averaged = fit.warnings.iter().find_map(|warning| match warning {
            Warning::LabelAveraged { nodes } => Some(nodes.clone()),
            _ => None,
        });
        let n_records = result["records"].as_u64().unwrap_or(problem.counts.n_records() as u64);
        let n_tables = model.tables().len() as u32;
        let is_stream = fit.found.method == "svb";
        Ok(FitFile {
            model: model.clone(),
            labels: problem.counts.labels.clone(),
            is_seen: self.is_seen.clone(),
            method: fit.found.method.into(),
            label_averaged: label_averaged.unwrap_or_default(),
            intensity: match fit.found.intensity {
                Intensity::Point(value) => fit_file::Intensity::Point(value),
                Intensity::Gamma { shape, rate } => fit_file::Intensity::Gamma { shape, rate },
            },
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
            data: FitData {
                source: self.args.data.data.display().to_string(),
                sha256: digest_of(&self.args.data.data)?,
                n_records,
                n_tokens: problem.counts.total(),
            },
            settings: settings(self.args),
            seed: output.seed().0,
            command_line: command_line(),
            version: polyurn::VERSION.into(),
            result,
        })
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

/// The digest of a data file; standard input is gone by now.
fn digest_of(path: &Path) -> Result<Option<String>, Failure> {
    if path == Path::new("-") || !path.is_file() {
        return Ok(None);
    }
    let unreadable = |source| Error::Io { path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(unreadable)?;
    Ok(Some(fit_file::digest(&mut file).map_err(unreadable)?))
}

/// The words by which this run was started.
fn command_line() -> Vec<String> {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("polyurn".to_owned()).chain(words).collect()
}

/// Flags that were given, by name.
fn settings(args: &FitArgs) -> Value {
    let (particles, sweeps, stream, prior) = (&args.particles, &args.sweeps, &args.stream, &args.prior);
    let shown = |value: Option<String>| value.map_or(Value::Null, Value::from);
    let pseudo: Map<String, Value> =
        prior.pseudo_count.iter().map(|(node, values)| (node.clone(), json!(values.0))).collect();
    let all = json!({
        "model": args.model.model,
        "a": prior.a.as_ref().map(|values| values.0.clone()),
        "shape": prior.shape,
        "b": prior.b,
        "tied_prior": shown(prior.tied_prior.map(|tied| format!("{tied:?}").to_lowercase())),
        "pseudo_count": if pseudo.is_empty() { Value::Null } else { Value::Object(pseudo) },
        "prior": prior.prior,
        "format": args.data.reading.format.map(|format| format.name()),
        "columns": args.data.reading.columns,
        "particles": particles.particles,
        "runs": particles.runs,
        "rejuvenate": particles.rejuvenate,
        "heat": particles.heat,
        "cooling": particles.cooling,
        "split_merge": particles.split_merge,
        "order": particles.order,
        "resample": shown(particles.resample.map(|scheme| format!("{scheme:?}").to_lowercase())),
        "ess": shown(particles.ess.map(|when| format!("{when:?}"))),
        "restarts": sweeps.sweeps.restarts,
        "max_iter": sweeps.sweeps.max_iter,
        "tol": sweeps.sweeps.tol,
        "maximise": (!sweeps.sweeps.maximise.is_empty()).then_some(&sweeps.sweeps.maximise),
        "init": sweeps.init,
        "mode": shown(sweeps.mode.map(|mode| format!("{mode:?}").to_lowercase())),
        "update": shown(sweeps.update.map(|update| format!("{update:?}").to_lowercase())),
        "trials": sweeps.trials,
        "chains": args.chains.chains,
        "sweeps": args.chains.sweeps,
        "warm_up": args.chains.warm_up,
        "thin": args.chains.thin,
        "draws": args.draws,
        "seen": stream.seen,
        "tokens": stream.tokens,
        "batch": stream.batch,
        "passes": stream.passes,
        "kappa": stream.kappa,
        "tau": stream.tau,
        "local": stream.local,
        "time_limit_seconds": args.limits.time_limit.map(|limit| limit.as_secs_f64()),
        "max_memory": args.limits.max_memory,
    });
    match all {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into(),
        other => other,
    }
}
