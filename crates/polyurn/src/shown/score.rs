//! Shows the evidence of one model, to programs and to people.

use super::annealed::{add_annealed, annealed_text, rests_on};
use super::climbs::{add_climbs, climbs_text, maximised_json, maximised_text};
use super::text::{columns, plural, show_error, show_estimate, show_ln, show_short, show_tokens};
use super::{number, tokens_json, warnings_json};
use crate::Seed;
use crate::evidence::{Evidence, TotalProbability};
use crate::fit::ParticleReport;
use crate::graph::Model;
use crate::score::Score;
use serde_json::{Value, json};

/// A score, to be shown.
#[derive(Debug, Clone, Copy)]
pub struct ShownScore<'a> {
    /// The score.
    pub score: &'a Score,
    /// The model that it is of.
    pub model: &'a Model,
}

impl ShownScore<'_> {
    fn report(&self) -> Option<ParticleReport> {
        let found = self.score.particles.as_ref()?;
        Some(ParticleReport::new(found.smc.clone(), self.model, &found.estimate, found.to_marginal))
    }

    /// All of it.
    pub fn json(&self, seed: Seed) -> Value {
        let part = |f: fn(&Evidence) -> f64| self.score.parts.as_ref().map_or(Value::Null, |parts| number(f(parts)));
        let mut object = json!({
            "log_marginal": number(self.score.log_marginal),
            "log_p_total": part(|parts| parts.log_p_total),
            "log_arrangements": part(|parts| parts.log_arrangements),
            "log_p_sequence": part(|parts| parts.log_p_sequence),
            "std_error": self.score.std_error,
            "error_unknown": self.score.is_error_unknown(),
            "bound": self.score.bound(),
            "method": self.score.method,
            "why": self.score.why,
            "particles": null,
            "runs": null,
            "run_log_marginals": [],
            "seed": seed,
            "seconds": self.score.seconds,
            "kernel": self.score.kernel,
            "ess_min": null,
            "tokens": tokens_json(self.score.tokens, self.score.unit),
            "records": self.score.records,
            "a": self.score.a,
            "shape": self.score.shape,
            "b": self.score.rate,
            "warnings": warnings_json(&self.score.warnings),
            "version": crate::VERSION,
        });
        if let Some(report) = self.report() {
            report.add_to(&mut object);
        }
        if let Some(annealed) = &self.score.annealed {
            add_annealed(annealed, &mut object);
        }
        if let Some((climbs, constant)) = &self.score.climbs {
            add_climbs(climbs, *constant, &mut object);
        }
        if !self.score.maximised.is_empty() {
            object["maximised"] = maximised_json(&self.score.maximised);
        }
        if let Some(hits) = &self.score.hits {
            object["particles"] = json!(hits.n_tries);
            object["hits"] = json!(hits.n_hits);
        }
        if let Some(given) = self.score.given {
            object["log_p_sequence_given"] = number(given);
        }
        if let Some(totals) = &self.score.totals {
            object["totals"] = totals
                .iter()
                .map(|entry| json!({ "tokens": entry.tokens, "log_joint": number(entry.log_joint) }))
                .collect();
        }
        object
    }

    /// The same for people, of a model and data by these names.
    pub fn text(&self, model: &str, data: &str) -> String {
        let mut text = format!(
            "model        {}\ndata         {}: {}, {}\nmethod       {} ({})\n",
            model.split_whitespace().collect::<Vec<_>>().join(" "),
            data,
            show_tokens(self.score.tokens, self.score.unit),
            plural(self.score.records, "distinct record"),
            self.score.method,
            self.score.why
        );
        if let Some(report) = self.report() {
            text += &format!("             {}\n", report.text(13));
        }
        if let Some(annealed) = &self.score.annealed {
            text += &format!("             {}\n", annealed_text(annealed, 13));
        }
        if let Some((climbs, _)) = &self.score.climbs {
            text += &format!("             {}\n", climbs_text(climbs));
        }
        if !self.score.maximised.is_empty() {
            text += &format!("maximised    {}\n", maximised_text(&self.score.maximised));
        }
        if let Some(hits) = &self.score.hits {
            text += &format!("             {} of {} free urns hit the data\n", hits.n_hits, hits.n_tries);
        }
        text.push('\n');
        // Digits that nobody knows to be right would look like those of an exact number.
        let error = if self.score.is_error_unknown() { Some(0.1) } else { self.score.std_error };
        let show = |value: f64| show_estimate(value, error);
        let name = if self.score.bound() == "lower" { "lower bound (ELBO)" } else { "ln evidence" };
        let mut rows = vec![vec![name.to_owned(), show(self.score.log_marginal), error_of(self.score)]];
        if let Some(bracket) = self.score.bracket() {
            rows.push(vec!["  at least".into(), show(bracket.lower)]);
            rows.push(vec!["  at most".into(), show(bracket.upper)]);
        }
        if let Some(parts) = &self.score.parts {
            for (name, value) in [
                ("  total", parts.log_p_total),
                ("  arrangements", parts.log_arrangements),
                ("  sequence", parts.log_p_sequence),
            ] {
                rows.push(vec![name.into(), show(value)]);
            }
        }
        if let Some(given) = self.score.given {
            let name = if self.score.bound() == "lower" {
                "bound on ln p(sequence | given)"
            } else {
                "ln p(sequence | given)"
            };
            rows.push(vec![name.into(), show(given)]);
        }
        text += &columns(&rows);
        if let Some(annealed) = &self.score.annealed
            && let Some(bracket) = annealed.bracket().filter(|bracket| bracket.error > 0.0)
        {
            let sure = 100.0 * (1.0 - bracket.error);
            text += &format!("\nEach bound holds with a probability of {sure} %: {}.\n", rests_on(annealed));
        }
        if let Some(totals) = &self.score.totals {
            text += &self.totals_text(totals);
        }
        text
    }

    /// The posterior of the total: its mode, and the totals that hold nearly all of it.
    fn totals_text(&self, totals: &[TotalProbability]) -> String {
        let mode = totals.iter().max_by(|x, y| x.log_joint.total_cmp(&y.log_joint)).expect("at least one total");
        let probability = |entry: &TotalProbability| (entry.log_joint - self.score.log_marginal).exp();
        let mean: f64 = totals.iter().map(|entry| entry.tokens as f64 * probability(entry)).sum();
        let mut rows = vec![vec!["total".to_owned(), "ln p(seen, total)".into(), "probability".into()]];
        let shown: Vec<&TotalProbability> = totals.iter().filter(|entry| probability(entry) >= 1e-3).take(60).collect();
        let n_hidden = totals.len() - shown.len();
        for entry in shown {
            rows.push(vec![entry.tokens.to_string(), show_ln(entry.log_joint), format!("{:.4}", probability(entry))]);
        }
        let more =
            if n_hidden == 0 { String::new() } else { format!("and {n_hidden} less probable totals (see --json)\n") };
        format!("\nmost probable total {}, mean {}\n\n{}{more}", mode.tokens, show_short(mean), columns(&rows))
    }
}

/// The error behind an evidence, and in words where nothing is known of it: a number without one would look exact.
pub fn error_of(score: &Score) -> String {
    if score.is_error_unknown() { "error unknown".into() } else { show_error(score.std_error) }
}
