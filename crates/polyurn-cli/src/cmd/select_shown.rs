//! Shows a ranking of models, to programs and to people.

use super::score_shown::{Shown as ShownScore, warnings_json};
use super::select::left_out;
use crate::args::ContestArgs;
use crate::described::{command_line, nodes_json};
use crate::output::{Failure, Output, number};
use crate::text::{columns, plural, show_error, show_estimate, show_short, show_tokens, tokens_json};
use polyurn::Warning;
use polyurn::select::{Candidate, Field, Ranked, Ranking, Scored};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// What was found at one value of `a`, or at the models' own.
pub struct AtSize {
    pub a: Option<f64>,
    pub found: Vec<Option<Scored>>,
}

/// A ranking, to be shown.
pub struct Shown<'a> {
    command: &'static str,
    field: &'a Field,
    data: PathBuf,
    /// One value of `a` after another; the ranking is over all of them.
    found: Vec<Option<Scored>>,
    n_candidates: usize,
    ranking: Ranking,
    /// Rankings at other values of `a`.
    sensitivity: Vec<(f64, Vec<Option<Scored>>, Ranking)>,
    has_several_a: bool,
    warnings: Vec<Warning>,
    seconds: f64,
}

/// A model that has at least this probability is said to be the one.
const CLEAR: f64 = 0.95;

impl<'a> Shown<'a> {
    /// Ranks what was found.
    pub fn new(
        command: &'static str,
        field: &'a Field,
        weights: &[f64],
        at: Vec<AtSize>,
        elsewhere: Vec<AtSize>,
        args: &ContestArgs,
        seconds: f64,
    ) -> Result<Self, Failure> {
        let mut warnings: Vec<Warning> = left_out(field, &at).into_iter().collect();
        let has_several_a = at.len() > 1;
        let mut sensitivity = Vec::new();
        let own = if has_several_a { &at[..] } else { &[] };
        for other in own.iter().chain(&elsewhere) {
            if let Ok(ranking) = Ranking::new(&other.found, weights) {
                sensitivity.push((other.a.unwrap_or(f64::NAN), other.found.clone(), ranking));
            }
        }
        let all_weights: Vec<f64> = at.iter().flat_map(|_| weights.iter().copied()).collect();
        let found: Vec<Option<Scored>> = at.into_iter().flat_map(|at| at.found).collect();
        let ranking = match Ranking::new(&found, &all_weights) {
            Ok(ranking) => ranking,
            Err(_) if found.iter().all(Option::is_none) => {
                return Err(polyurn::Error::Stopped(polyurn::Stop::Deadline).into());
            }
            Err(error) => return Err(error.into()),
        };
        // At the models' own a, in its place among the others.
        if !has_several_a
            && !sensitivity.is_empty()
            && let Some(best) = &found[ranking.ranked[0].candidate]
        {
            sensitivity.push((best.score.a, found.clone(), ranking.clone()));
        }
        sensitivity.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        let of_data = found.iter().flatten().flat_map(|found| found.score.warnings.iter());
        for warning in of_data {
            if is_about_data(warning) && !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        let n_candidates = field.candidates().len();
        let data = args.data.data.clone();
        Ok(Shown { command, field, data, found, n_candidates, ranking, sensitivity, has_several_a, warnings, seconds })
    }

    fn candidate(&self, ranked: &Ranked) -> &Candidate {
        &self.field.candidates()[ranked.candidate % self.n_candidates]
    }

    fn scored(&self, ranked: &Ranked) -> &Scored {
        self.found[ranked.candidate].as_ref().expect("what is ranked was scored")
    }

    /// `class = 2`, or the model itself in quotes.
    fn name(&self, candidate: &Candidate) -> String {
        if candidate.sizes.is_empty() || self.has_several_entries() {
            return format!("`{}`", candidate.model);
        }
        let sizes: Vec<String> = candidate.sizes.iter().map(|(node, size)| format!("{node} = {size}")).collect();
        sizes.join(", ")
    }

    fn has_several_entries(&self) -> bool {
        self.field.candidates().iter().any(|candidate| candidate.entry > 0)
    }

    fn full_name(&self, ranked: &Ranked) -> String {
        let name = self.name(self.candidate(ranked));
        if self.has_several_a { format!("{name} at a = {}", show_short(self.scored(ranked).score.a)) } else { name }
    }

    /// Whether the time limit left something undone.
    pub fn is_cut(&self) -> bool {
        let is_cut =
            |scored: &Scored| scored.score.warnings.iter().any(|warning| matches!(warning, Warning::TimeUp { .. }));
        self.found.iter().any(|found| found.as_ref().is_none_or(is_cut))
    }

    /// What is known about the whole, and where a model's own warnings concern those that matter, with their names.
    pub fn warning_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        for &place in &self.ranking.verdict.level {
            let ranked = &self.ranking.ranked[place];
            let own = self.scored(ranked).score.warnings.iter().filter(|warning| !is_about_data(warning));
            lines.extend(own.map(|warning| format!("{}: {warning}", self.full_name(ranked))));
        }
        lines
    }

    /// One or two sentences.
    fn verdict(&self) -> String {
        let Ranking { ranked, verdict } = &self.ranking;
        let best = &ranked[0];
        let name = self.full_name(best);
        let others: Vec<String> = verdict.level[1..].iter().map(|&place| self.full_name(&ranked[place])).collect();
        if ranked.len() == 1 {
            return format!("{name} is the only model that was scored.");
        }
        if !verdict.is_settled {
            return format!(
                "{name} has the highest estimate, but the errors are too large to tell it from {}; give more time \
                 (--time-limit) or runs (--runs).",
                and(&others)
            );
        }
        if !others.is_empty() {
            return format!(
                "{name} has the highest evidence, but {} nearly level: these data do not tell them apart (Bayes factors \
                 below 3).",
                if others.len() == 1 { format!("{} is", others[0]) } else { format!("{} are", and(&others)) }
            );
        }
        let runner_up = &ranked[1];
        let lead = -runner_up.log_bayes_factor.0;
        let strength = if best.posterior.0 >= CLEAR { "" } else { ", though not by far" };
        format!(
            "{name} has the highest evidence{strength}: {} nats above {}.",
            show_short((lead * 100.0).round() / 100.0),
            self.full_name(runner_up)
        )
    }

    /// How the best model moves with `a`, in one sentence.
    fn movement(&self) -> Option<String> {
        let mut answers: Vec<(String, Vec<f64>)> = Vec::new();
        for (a, _, ranking) in &self.sensitivity {
            let Ranking { ranked, verdict } = ranking;
            let names: Vec<String> =
                verdict.level.iter().map(|&place| self.name(self.candidate(&ranked[place]))).collect();
            let answer = match (verdict.is_settled, &names[..]) {
                (false, [best, ..]) => format!("probably {best}"),
                (_, [best]) => best.clone(),
                (_, level) => format!("{} level", and(level)),
            };
            match answers.last_mut() {
                Some((before, values)) if *before == answer => values.push(*a),
                _ => answers.push((answer, vec![*a])),
            }
        }
        let from_to = |values: &[f64]| match values {
            [first, .., last] => format!("{} to {}", show_short(*first), show_short(*last)),
            values => values.first().map_or(String::new(), |&one| show_short(one)),
        };
        match &answers[..] {
            [] => None,
            [(answer, values)] => Some(format!("The answer is the same from a = {}: {answer}.", from_to(values))),
            several => {
                let parts: Vec<String> =
                    several.iter().map(|(answer, values)| format!("{answer} at a = {}", from_to(values))).collect();
                Some(format!("The answer moves with a: {}.", parts.join("; ")))
            }
        }
    }

    /// All of it.
    pub fn json(&self, output: &Output) -> Value {
        let best = &self.ranking.ranked[0];
        let models: Vec<Value> = self.ranking.ranked.iter().map(|ranked| self.model_json(ranked, output)).collect();
        let first = self.scored(best);
        json!({
            "command": self.command,
            "data": {
                "file": self.data,
                "tokens": tokens_json(first.score.tokens, first.score.unit),
                "records": first.score.records,
                "columns": self.field.explained(),
            },
            "models": models,
            "best": {
                "index": 0,
                "model": self.candidate(best).model,
                "sizes": sizes_json(self.candidate(best)),
                "a": first.score.a,
            },
            "verdict": self.verdict(),
            "settled": self.ranking.verdict.is_settled,
            "level": self.ranking.verdict.level,
            "sensitivity": self.sensitivity.iter().map(|one| self.sensitivity_json(one)).collect::<Vec<_>>(),
            "movement": self.movement(),
            "seed": output.seed(),
            "seconds": self.seconds,
            "command_line": command_line(),
            "warnings": warnings_json(&self.warnings),
            "version": polyurn::VERSION,
        })
    }

    fn model_json(&self, ranked: &Ranked, output: &Output) -> Value {
        let scored = self.scored(ranked);
        let candidate = self.candidate(ranked);
        let mut object = ShownScore { score: &scored.score, model: &scored.model }.json(output);
        object["model"] = json!(candidate.model);
        object["sizes"] = sizes_json(candidate);
        object["elbo"] = scored.bound.map_or(Value::Null, number);
        object["prior_probability"] = json!(ranked.prior);
        object["posterior_probability"] = json!(ranked.posterior.0);
        object["posterior_probability_error"] = json!(ranked.posterior.1);
        object["log_bayes_factor"] = number(ranked.log_bayes_factor.0);
        object["log_bayes_factor_error"] = json!(ranked.log_bayes_factor.1);
        object["seconds"] = json!(scored.seconds);
        object["rounds"] = json!(scored.n_rounds);
        object["nodes"] = nodes_json(&scored.model, &scored.is_seen);
        object
    }

    fn sensitivity_json(&self, (a, found, ranking): &(f64, Vec<Option<Scored>>, Ranking)) -> Value {
        let one = |ranked: &Ranked| {
            let scored = found[ranked.candidate].as_ref().expect("what is ranked was scored");
            let candidate = self.candidate(ranked);
            json!({
                "model": candidate.model,
                "sizes": sizes_json(candidate),
                "log_marginal": number(scored.score.log_marginal),
                "std_error": scored.score.std_error,
                "posterior_probability": ranked.posterior.0,
            })
        };
        json!({
            "a": a,
            "best": 0,
            "level": ranking.verdict.level,
            "settled": ranking.verdict.is_settled,
            "models": ranking.ranked.iter().map(one).collect::<Vec<_>>(),
        })
    }

    /// Names of the columns that say which model a row is about.
    fn key_names(&self) -> Vec<String> {
        let first = &self.field.candidates()[0];
        let mut names: Vec<String> = if first.sizes.is_empty() || self.has_several_entries() {
            vec!["model".to_owned()]
        } else {
            first.sizes.iter().map(|(node, _)| node.clone()).collect()
        };
        names.extend(self.has_several_a.then(|| "a".to_owned()));
        names
    }

    fn keys(&self, ranked: &Ranked) -> Vec<String> {
        let candidate = self.candidate(ranked);
        let mut keys: Vec<String> = if candidate.sizes.is_empty() || self.has_several_entries() {
            vec![candidate.model.clone()]
        } else {
            candidate.sizes.iter().map(|(_, size)| size.to_string()).collect()
        };
        keys.extend(self.has_several_a.then(|| show_short(self.scored(ranked).score.a)));
        keys
    }

    /// The table, for spreadsheets.
    pub fn csv(&self) -> String {
        let mut head = self.key_names();
        head.extend(
            [
                "log_marginal",
                "std_error",
                "bound",
                "elbo",
                "log_bayes_factor",
                "log_bayes_factor_error",
                "prior_probability",
                "posterior_probability",
                "posterior_probability_error",
                "method",
                "seconds",
            ]
            .map(String::from),
        );
        let mut text = head.iter().map(|name| csv_field(name)).collect::<Vec<_>>().join(",") + "\n";
        for ranked in &self.ranking.ranked {
            let scored = self.scored(ranked);
            let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let mut row = self.keys(ranked);
            row.extend([
                scored.score.log_marginal.to_string(),
                optional(scored.score.std_error),
                scored.score.bound().to_owned(),
                optional(scored.bound),
                ranked.log_bayes_factor.0.to_string(),
                ranked.log_bayes_factor.1.to_string(),
                ranked.prior.to_string(),
                ranked.posterior.0.to_string(),
                ranked.posterior.1.to_string(),
                scored.score.method.to_string(),
                format!("{:.3}", scored.seconds),
            ]);
            text += &(row.iter().map(|field| csv_field(field)).collect::<Vec<_>>().join(",") + "\n");
        }
        text
    }

    /// A table for people.
    pub fn text(&self) -> String {
        let first = &self.scored(&self.ranking.ranked[0]).score;
        let mut text = format!(
            "data         {}: {}, {}\nexplained    {}\n\n",
            self.data.display(),
            show_tokens(first.tokens, first.unit),
            plural(first.records, "distinct record"),
            self.field.explained().join(", ")
        );
        let has_bounds = self.found.iter().flatten().any(|found| found.bound.is_some());
        let is_bound = first.bound() == "lower";
        let mut head = self.key_names();
        head.extend([if is_bound { "lower bound (ELBO)" } else { "ln evidence" }.to_owned(), String::new()]);
        head.extend(has_bounds.then(|| "lower bound (ELBO)".to_owned()));
        head.extend(["ln Bayes factor", "", "probability", "", "method", "time"].map(String::from));
        let mut rows = vec![head];
        for ranked in &self.ranking.ranked {
            let scored = self.scored(ranked);
            let score = &scored.score;
            let error = if score.is_exact() { None } else { score.std_error };
            let mut row = self.keys(ranked);
            let shown = match error {
                None => format!("{:.4}", score.log_marginal),
                error => show_estimate(score.log_marginal, error),
            };
            row.extend([shown, show_error(error)]);
            row.extend(has_bounds.then(|| scored.bound.map_or(String::new(), |bound| format!("{bound:.2}"))));
            let (factor, factor_error) = ranked.log_bayes_factor;
            let is_best = ranked.candidate == self.ranking.ranked[0].candidate;
            row.push(if is_best { "0".into() } else { format!("{factor:.2}") });
            row.push(if factor_error > 0.0 { format!("+- {factor_error:.2}") } else { String::new() });
            let (p, p_error) = ranked.posterior;
            row.push(show_probability(p));
            row.push(if p_error >= 5e-5 { format!("+- {p_error:.4}") } else { String::new() });
            row.extend([score.method.to_string(), format!("{:.1} s", scored.seconds)]);
            rows.push(row);
        }
        text += &columns(&rows);
        text += &format!("\n{}\n", self.verdict());
        if !self.sensitivity.is_empty() {
            text += &format!("\n{}", self.sensitivity_text());
        }
        if let Some(movement) = self.movement() {
            text += &format!("\n{movement}\n");
        }
        text
    }

    /// Probabilities of the models at each value of `a`.
    fn sensitivity_text(&self) -> String {
        let shown: Vec<usize> = (0..self.n_candidates)
            .filter(|&ix| {
                let probability = |(_, _, ranking): &(f64, Vec<Option<Scored>>, Ranking)| {
                    ranking.ranked.iter().find(|ranked| ranked.candidate == ix).map_or(0.0, |ranked| ranked.posterior.0)
                };
                self.sensitivity.iter().any(|one| probability(one) >= 1e-3)
            })
            .collect();
        let mut head = vec!["a".to_owned()];
        head.extend(shown.iter().map(|&ix| self.name(&self.field.candidates()[ix])));
        let mut rows = vec![head];
        for (a, _, ranking) in &self.sensitivity {
            let mut row = vec![show_short(*a)];
            row.extend(shown.iter().map(|&ix| {
                let ranked = ranking.ranked.iter().find(|ranked| ranked.candidate == ix);
                ranked.map_or(String::new(), |ranked| show_probability(ranked.posterior.0))
            }));
            rows.push(row);
        }
        format!("Probabilities at other sizes of the prior:\n{}", columns(&rows))
    }
}

fn sizes_json(candidate: &Candidate) -> Value {
    let sizes = candidate.sizes.iter().map(|(node, size)| (node.clone(), json!(size)));
    Value::Object(sizes.collect::<Map<_, _>>())
}

/// Whether a warning is about the data or the prior, and so the same for all models.
fn is_about_data(warning: &Warning) -> bool {
    matches!(
        warning,
        Warning::ColumnsLeftOut { .. }
            | Warning::UnusedValues { .. }
            | Warning::Odd { .. }
            | Warning::InconsistentPrior
    )
}

/// `a`, `a and b`, `a, b and c`.
fn and(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

fn show_probability(p: f64) -> String {
    if p >= 1e-4 { format!("{p:.4}") } else { format!("{p:.0e}") }
}

fn csv_field(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n', '\r']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}
