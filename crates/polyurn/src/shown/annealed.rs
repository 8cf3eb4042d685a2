//! What annealing did, to programs and to people.

use super::number;
use super::text::{plural, show_count, show_short, wrap};
use crate::engine::anneal::{Anneal, AnnealPath, AnnealRun};
use crate::score::Annealed;
use serde_json::{Value, json};

/// Adds the fields of annealing to a result.
pub fn add_annealed(annealed: &Annealed, object: &mut Value) {
    let Annealed { anneal, estimate, to_marginal } = annealed;
    let logs =
        |runs: &[AnnealRun]| -> Value { runs.iter().map(|run| number(run.ln_p_sequence + to_marginal)).collect() };
    object["particles"] = json!(anneal.particles);
    object["runs"] = json!(estimate.runs.len());
    object["run_log_marginals"] = logs(&estimate.runs);
    object["ess_min"] = number(estimate.ess_min());
    object["path"] = json!(anneal.path.name());
    object["sweeps"] = json!(estimate.sweeps);
    object["chains"] = json!(anneal.pilots);
    object["chain_sweeps"] = json!(anneal.pilot_sweeps);
    object["updates"] = json!(estimate.n_updates);
    object["resamplings"] = estimate.runs.iter().map(|run| json!(run.n_resampled)).collect();
    object["ess"] = json!(Anneal::ESS);
    // With one particle there is nothing to see.
    if let Some(first) = estimate.runs.first().filter(|_| anneal.particles > 1) {
        object["ess_trace"] = first.ess_trace.iter().map(|&(step, ess)| json!([step, ess])).collect();
        object["resampled_at"] = json!(first.resampled_at);
    }
    object["assumes_separated_labels"] = json!(estimate.assumes_separated_labels);
    if let Some(bracket) = annealed.bracket() {
        object["lower"] = number(bracket.lower);
        object["upper"] = number(bracket.upper);
        object["bracket_error"] = json!(bracket.error);
        object["bracket_rests_on"] = json!(rests_on(annealed));
        object["run_upper_log_marginals"] = logs(&estimate.back);
    }
}

/// What a bracket is worth.
pub fn rests_on(annealed: &Annealed) -> &'static str {
    if annealed.anneal.truth.is_some() {
        "the lower bound holds for any data; the upper one if they were simulated from this model and prior, with the hidden values that \
         were given"
    } else {
        "the lower bound holds for any data; the upper one if the Gibbs chains that its runs start from have reached the posterior"
    }
}

/// What was run, for people, in lines behind `indent` blanks.
pub fn annealed_text(annealed: &Annealed, indent: usize) -> String {
    let Annealed { anneal, estimate, .. } = annealed;
    if estimate.runs.is_empty() {
        return wrap(&["no runs were needed: nothing is hidden".to_owned()], 100 - indent, indent);
    }
    let ways = if estimate.back.is_empty() { "" } else { " each way" };
    let particles = plural(anneal.particles as u64, "particle");
    let mut parts = vec![
        format!("{} of {particles}{ways}", plural(estimate.runs.len() as u64, "run")),
        match anneal.path {
            AnnealPath::Reference => format!("{} from a reference", plural(estimate.sweeps, "step")),
            AnnealPath::Prior => format!("{} from the prior", plural(estimate.sweeps, "step")),
        },
        {
            let n_hands = anneal.n_hands(anneal.pilots);
            let chains = format!("{} of {} sweeps", plural(anneal.pilots, "chain"), show_count(anneal.pilot_sweeps));
            match anneal.path {
                AnnealPath::Reference if n_hands > 1 && anneal.pilots > n_hands => {
                    format!("each fitted to the best of its share of {chains}")
                }
                AnnealPath::Reference if n_hands > 1 => format!("each fitted to one of {chains}"),
                AnnealPath::Reference => format!("fitted to the best of {chains}"),
                AnnealPath::Prior => format!("paced by {chains}"),
            }
        },
    ];
    if anneal.particles > 1 {
        parts.push(format!("at least {} effective particles", show_short(estimate.ess_min().floor())));
    }
    parts.push(format!("{} token updates ({})", show_short(estimate.n_updates as f64), anneal.isa.name()));
    wrap(&parts, 100 - indent, indent)
}
