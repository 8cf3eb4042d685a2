//! Writes what `polyurn fit -o` found as a fit file (docs/fit-file.md).

use crate::args::FitArgs;
use crate::output::{Failure, write_atomically};
use polyurn::Error;
use polyurn::fit_file::{self, FitFile};
use polyurn::io::Cuts;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Writes the file beside its place and renames it.
pub fn write(path: &Path, file: &FitFile) -> Result<(), Failure> {
    let bytes = file.to_bytes()?;
    write_atomically(path, |out| out.write_all(&bytes))
        .map_err(|error| Failure::Write(format!("{}: {error}", path.display())))
}

/// The digest of a data file; standard input is gone by now.
pub fn digest_of(path: &Path) -> Result<Option<String>, Failure> {
    if path == Path::new("-") || !path.is_file() {
        return Ok(None);
    }
    let unreadable = |source| Error::Io { path: path.to_owned(), source };
    let mut file = std::fs::File::open(path).map_err(unreadable)?;
    Ok(Some(fit_file::digest(&mut file).map_err(unreadable)?))
}

/// Flags that were given, by name.
pub fn settings(args: &FitArgs, cuts: &[Cuts]) -> Value {
    let (particles, sweeps, stream, prior) = (&args.particles, &args.sweeps, &args.stream, &args.prior);
    let shown = |value: Option<String>| value.map_or(Value::Null, Value::from);
    let pseudo: Map<String, Value> =
        prior.pseudo_count.iter().map(|(node, values)| (node.clone(), json!(values.0))).collect();
    let mut all = json!({
        "model": args.model.model,
        "a": prior.a.as_ref().map(|values| values.0.clone()),
        "shape": prior.shape,
        "b": prior.b,
        "tied_prior": shown(prior.tied_prior.map(|tied| format!("{tied:?}").to_lowercase())),
        "pseudo_count": if pseudo.is_empty() { Value::Null } else { Value::Object(pseudo) },
        "prior": prior.prior,
        "format": args.data.reading.file.format.map(|format| format.name()),
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
    if !cuts.is_empty() {
        all["bins"] = json!(cuts);
    }
    let file = &args.data.reading.file;
    all["vocab"] = json!(file.vocab.as_ref().map(|path| path.display().to_string()));
    all["labels"] = json!(file.labels.then_some(true));
    match all {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into(),
        other => other,
    }
}
