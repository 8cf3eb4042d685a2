//! What engines that sweep did, to programs and to people.

use super::number;
use super::text::show_short;
use crate::engine::sweeps::Climbs;
use crate::score::Maximised;
use serde_json::{Value, json};

/// Adds what a climb reports; objectives are moved by `constant`.
pub fn add_climbs(climbs: &Climbs, constant: f64, object: &mut Value) {
    let moved = |list: &[f64]| list.iter().map(|value| number(value + constant)).collect::<Vec<_>>();
    object["iterations"] = json!(climbs.trace.len());
    object["converged"] = json!(climbs.converged);
    object["restarts"] = json!(climbs.objectives.len());
    object["restart_objectives"] = json!(moved(&climbs.objectives));
    object["best_restart"] = json!(climbs.best);
}

/// The same for people.
pub fn climbs_text(climbs: &Climbs) -> String {
    let stop = if climbs.converged { "converged" } else { "stopped" };
    let n_starts = climbs.objectives.len();
    let starts = if n_starts == 1 { "one start".to_owned() } else { format!("best of {n_starts} starts") };
    let n_sweeps = climbs.trace.len();
    format!("{starts}, {stop} after {n_sweeps} {}", if n_sweeps == 1 { "sweep" } else { "sweeps" })
}

/// What was maximised, for programs.
pub fn maximised_json(all: &[Maximised]) -> Value {
    all.iter().map(|own| json!({ "name": own.name, "value": own.value, "factor": own.factor })).collect()
}

/// The same for people.
pub fn maximised_text(all: &[Maximised]) -> String {
    let one = |own: &Maximised| match own.value {
        Some(value) if own.is_sample_size() => format!("a = {}", show_short(value)),
        Some(value) => format!("pseudo-count of {} = {}", own.name, show_short(value)),
        None => format!("pseudo-counts of {} times {}", own.name, show_short(own.factor)),
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}
