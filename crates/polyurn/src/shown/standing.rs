//! Shows how a stream stands, to programs.

use super::number;
use crate::score::Standing;
use serde_json::{Value, json};
use std::time::Duration;

/// How it stands after a batch, and the time that all batches took.
pub fn standing_json(standing: &Standing, n_batches: u64, time: Duration) -> Value {
    let evidence = &standing.evidence;
    json!({
        "tokens": standing.tokens,
        "records": standing.records,
        "log_marginal": number(evidence.log_marginal),
        "log_p_total": number(evidence.log_p_total),
        "log_arrangements": number(evidence.log_arrangements),
        "log_p_sequence": number(evidence.log_p_sequence),
        "std_error": standing.std_error(),
        "batches": n_batches,
        "batch_tokens": standing.batch_tokens,
        "batch_log_p_sequence": number(standing.batch_log_p_sequence),
        "ess_min": standing.ess_min,
        "seconds": time.as_secs_f64(),
    })
}
