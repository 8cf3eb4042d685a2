//! Shows a ranking of models, to programs and to people.

use super::score_shown::{Shown as ShownScore, warnings_json};
use super::select::left_out;
use crate::args::ContestArgs;
use crate::described::{command_line, nodes_json};
use crate::output::{Failure, Output, number};
use crate::text::{columns, plural, show_error, show_estimate, show_short, show_tokens, tokens_json};
use polyurn::Warning;
use polyurn::score::ASKED_FOR;
use polyurn::select::{Candidate, Field, Ranked, Ranking, Scored};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// The size of the prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    /// Each model's own.
    Own,
    /// The same for all.
    Value(f64),
    /// Each model's own, multiplied.
    Times(f64),
}

impl Size {
    /// The value of `a`, or what it is multiplied by.
    fn number(self) -> f64 {
        match self {
            Size::Own => 1.0,
            Size::Value(number) | Size::Times(number) => number,
        }
    }
}

/// What was found at one size of the prior.
pub struct AtSize {
    pub size: Size,
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
    sensitivity: Vec<(Size, Vec<Option<Scored>>, Ranking)>,
    has_several_a: bool,
    /// Whether weights of models were given that are not all the same.
    has_weights: bool,
    warnings: Vec<Warning>,
    seconds: f64,
}

/// More names than this are not listed in a sentence.
const LISTED: usize = 6;

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
                sensitivity.push((other.size, other.found.clone(), ranking));
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
            let is_relative = sensitivity.iter().any(|(size, ..)| matches!(size, Size::Times(_)));
            let size = if is_relative { Size::Times(1.0) } else { Size::Value(best.score.a) };
            sensitivity.retain(|(other, ..)| *other != size);
            sensitivity.push((size, found.clone(), ranking.clone()));
        }
        sensitivity.sort_by(|(a, ..), (b, ..)| a.number().total_cmp(&b.number()));
        let has_weights = weights.iter().any(|&weight| weight != weights[0]);
        let of_data = found.iter().flatten().flat_map(|found| found.score.warnings.iter());
        for warning in of_data {
            if is_about_data(warning) && !warnings.contains(warning) {
                warnings.push(warning.clone());
            }
        }
        let n_candidates = field.candidates().len();
        let data = args.data.data.clone();
        Ok(Shown {
            command,
            field,
            data,
            found,
            n_candidates,
            ranking,
            sensitivity,
            has_several_a,
            has_weights,
            warnings,
            seconds,
        })
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
        for (place, ranked) in self.ranking.ranked.iter().enumerate() {
            let is_level = self.ranking.verdict.level.contains(&place);
            let matters = |warning: &&Warning| {
                !is_about_data(warning) && (is_level || matches!(warning, Warning::BelowBound { .. }))
            };
            let own = self.scored(ranked).score.warnings.iter().filter(matters);
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
        let nats = |nats: f64| show_short((nats * 100.0).round() / 100.0);
        if ranked.iter().all(|ranked| self.scored(ranked).score.bound() == "lower") {
            let runner_up = &ranked[1];
            return format!(
                "{name} has the highest lower bound, {} nats above that of {}. Bounds are no evidence: they may be further \
                 below it for one model than for another.",
                nats(-runner_up.log_bayes_factor.0),
                self.full_name(runner_up)
            );
        }
        let highest = if self.has_weights {
            format!("{name} is the most probable model, with the weights that were given")
        } else if best.is_bound || !verdict.is_settled {
            format!("{name} has the highest estimate")
        } else {
            format!("{name} has the highest evidence")
        };
        if !verdict.is_settled {
            let bounds: Vec<String> = verdict
                .level
                .iter()
                .map(|&place| &ranked[place])
                .filter(|ranked| ranked.is_bound)
                .map(|ranked| self.full_name(ranked))
                .collect();
            let why = if bounds.is_empty() {
                format!("the errors are too large to tell it from {}", and(&others))
            } else {
                format!("of {} no more than a lower bound is known", and(&bounds))
            };
            return format!("{highest}, but {why}; give more time (--time-limit) or runs (--runs).");
        }
        if !others.is_empty() {
            return format!(
                "{highest}, but {} nearly level: these data do not tell them apart ({} below 3).",
                if others.len() == 1 { format!("{} is", others[0]) } else { format!("{} are", and(&others)) },
                if self.has_weights { "odds" } else { "Bayes factors" }
            );
        }
        let by_evidence =
            |one: &&&Ranked, other: &&&Ranked| one.log_bayes_factor.0.total_cmp(&other.log_bayes_factor.0);
        let runner_up = ranked[1..].iter().max_by(|one, other| by_evidence(&one, &other)).expect("more than one");
        let lead = -runner_up.log_bayes_factor.0;
        let (lead, other) = (nats(lead.abs()), (lead < 0.0, self.full_name(runner_up)));
        let strength = if best.posterior.0 >= CLEAR { "" } else { ", though not by far" };
        match other {
            (false, other) if self.has_weights => {
                format!("{highest}{strength}; its evidence is {lead} nats above that of {other}.")
            }
            (false, other) => format!("{highest}{strength}: {lead} nats above {other}."),
            (true, other) => format!("{highest}{strength}; by evidence alone {other} is {lead} nats above it."),
        }
    }

    /// Which models were scored by which engine, and why, where nobody asked for one.
    fn methods(&self) -> Vec<String> {
        let mut in_order: Vec<&Ranked> = self.ranking.ranked.iter().collect();
        in_order.sort_by_key(|ranked| ranked.candidate);
        let mut by_method: Vec<(&str, Vec<&Ranked>)> = Vec::new();
        for ranked in in_order {
            let score = &self.scored(ranked).score;
            if score.why == ASKED_FOR {
                continue;
            }
            match by_method.iter_mut().find(|(method, _)| *method == score.method) {
                Some((_, models)) => models.push(ranked),
                None => by_method.push((&score.method, vec![ranked])),
            }
        }
        let line = |(method, models): (&str, Vec<&Ranked>)| {
            let why = |ranked: &Ranked| &*self.scored(ranked).score.why;
            let first = why(models[0]);
            let names: Vec<String> = models.iter().map(|ranked| self.full_name(ranked)).collect();
            // Reasons differ in their figures alone: the first says enough.
            let figures = if models.iter().all(|&ranked| why(ranked) == first) {
                String::new()
            } else {
                format!(" (for {})", names[0])
            };
            // `class = 2, 3 and 4` where that is all that they differ in.
            let sizes: Vec<&(String, u32)> = models.iter().flat_map(|ranked| &self.candidate(ranked).sizes).collect();
            let is_one_node = !self.has_several_entries() && !self.has_several_a && sizes.len() == models.len();
            let models = match &sizes[..] {
                _ if names.len() > LISTED => format!("{} models", names.len()),
                [(node, _), _, ..] if is_one_node => {
                    let sizes: Vec<String> = sizes.iter().map(|(_, size)| size.to_string()).collect();
                    format!("{node} = {}", and(&sizes))
                }
                _ => and(&names),
            };
            format!("By {method}: {models}; {first}{figures}.")
        };
        by_method.into_iter().map(line).collect()
    }

    /// Whether models have an `a` of their own, so that others are multiples of it.
    fn is_relative(&self) -> bool {
        self.sensitivity.iter().any(|(size, ..)| matches!(size, Size::Times(_)))
    }

    /// How the best model moves with `a`, in one sentence.
    fn movement(&self) -> Option<String> {
        // With one model there is nothing to move.
        if self.n_candidates == 1 && !self.has_several_a {
            return None;
        }
        let is_relative = self.is_relative();
        let mut answers: Vec<(String, Vec<f64>)> = Vec::new();
        for (size, _, ranking) in &self.sensitivity {
            let Ranking { ranked, verdict } = ranking;
            let names: Vec<String> =
                verdict.level.iter().map(|&place| self.name(self.candidate(&ranked[place]))).collect();
            let answer = match (verdict.is_settled, &names[..]) {
                (false, [best, ..]) => format!("probably {best}"),
                (_, [best]) => best.clone(),
                (_, level) => format!("{} level", and(level)),
            };
            match answers.last_mut() {
                Some((before, values)) if *before == answer => values.push(size.number()),
                _ => answers.push((answer, vec![size.number()])),
            }
        }
        let from_to = |values: &[f64]| match values {
            [first, .., last] => format!("{} to {}", show_short(*first), show_short(*last)),
            values => values.first().map_or(String::new(), |&one| show_short(one)),
        };
        match &answers[..] {
            [] => None,
            [(_, values)] if values.len() == 1 => None,
            [(answer, values)] if is_relative => {
                Some(format!("The answer is the same from {} times a: {answer}.", from_to(values)))
            }
            [(answer, values)] => Some(format!("The answer is the same from a = {}: {answer}.", from_to(values))),
            several => {
                let part = |(answer, values): &(String, Vec<f64>)| match is_relative {
                    true => format!("{answer} at {} times a", from_to(values)),
                    false => format!("{answer} at a = {}", from_to(values)),
                };
                let parts: Vec<String> = several.iter().map(part).collect();
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
        object["posterior_probability_error"] = number(ranked.posterior.1);
        object["log_bayes_factor"] = number(ranked.log_bayes_factor.0);
        object["log_bayes_factor_error"] = number(ranked.log_bayes_factor.1);
        object["is_lower_bound"] = json!(ranked.is_bound);
        object["seconds"] = json!(scored.seconds);
        object["rounds"] = json!(scored.n_rounds);
        object["nodes"] = nodes_json(&scored.model, &scored.is_seen);
        object
    }

    fn sensitivity_json(&self, (size, found, ranking): &(Size, Vec<Option<Scored>>, Ranking)) -> Value {
        let one = |ranked: &Ranked| {
            let scored = found[ranked.candidate].as_ref().expect("what is ranked was scored");
            let candidate = self.candidate(ranked);
            json!({
                "model": candidate.model,
                "sizes": sizes_json(candidate),
                "a": scored.score.a,
                "log_marginal": number(scored.score.log_marginal),
                "std_error": scored.score.std_error,
                "posterior_probability": ranked.posterior.0,
            })
        };
        json!({
            "a": match size {
                Size::Value(a) => json!(a),
                Size::Own | Size::Times(_) => Value::Null,
            },
            "times_a": match size {
                Size::Times(factor) => json!(factor),
                Size::Own | Size::Value(_) => Value::Null,
            },
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
                "is_lower_bound",
                "method",
                "why",
                "seconds",
            ]
            .map(String::from),
        );
        let mut text = head.iter().map(|name| csv_field(name)).collect::<Vec<_>>().join(",") + "\n";
        for ranked in &self.ranking.ranked {
            let scored = self.scored(ranked);
            // Tiny numbers as powers of ten, and none where nothing is known.
            let plain = |value: f64| match value {
                value if !value.is_finite() && value > 0.0 => String::new(),
                value if value != 0.0 && value.abs() < 1e-4 => format!("{value:e}"),
                value => value.to_string(),
            };
            let optional = |value: Option<f64>| value.map_or(String::new(), plain);
            let mut row = self.keys(ranked);
            row.extend([
                scored.score.log_marginal.to_string(),
                optional(scored.score.std_error),
                scored.score.bound().to_owned(),
                optional(scored.bound),
                plain(ranked.log_bayes_factor.0),
                plain(ranked.log_bayes_factor.1),
                plain(ranked.prior),
                plain(ranked.posterior.0),
                plain(ranked.posterior.1),
                if ranked.is_bound { "true" } else { "false" }.to_owned(),
                scored.score.method.to_string(),
                scored.score.why.clone(),
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
            // What is only known to be at least so large says so, but where the whole column does.
            let at_least = |text: String| if ranked.is_bound && !is_bound { format!(">= {text}") } else { text };
            let shown = match error {
                _ if score.bound() == "lower" => at_least(format!("{:.2}", score.log_marginal)),
                None => format!("{:.4}", score.log_marginal),
                error => show_estimate(score.log_marginal, error),
            };
            row.extend([shown, show_error(error)]);
            row.extend(has_bounds.then(|| scored.bound.map_or(String::new(), |bound| format!("{bound:.2}"))));
            let (factor, factor_error) = ranked.log_bayes_factor;
            let is_best = ranked.candidate == self.ranking.ranked[0].candidate;
            row.push(if is_best { "0".into() } else { at_least(format!("{factor:.2}")) });
            let has_error = factor_error > 0.0 && factor_error.is_finite();
            row.push(if has_error { format!("+- {factor_error:.2}") } else { String::new() });
            let (p, p_error) = ranked.posterior;
            row.push(show_probability(p));
            let has_error = p_error >= 5e-5 && p_error.is_finite();
            row.push(if has_error { format!("+- {p_error:.4}") } else { String::new() });
            row.extend([score.method.to_string(), format!("{:.1} s", scored.seconds)]);
            rows.push(row);
        }
        text += &columns(&rows);
        text += &format!("\n{}\n", self.verdict());
        let methods = self.methods();
        if !methods.is_empty() {
            text += &format!("\n{}\n", methods.join("\n"));
        }
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
                let probability = |(_, _, ranking): &(Size, Vec<Option<Scored>>, Ranking)| {
                    ranking.ranked.iter().find(|ranked| ranked.candidate == ix).map_or(0.0, |ranked| ranked.posterior.0)
                };
                self.sensitivity.iter().any(|one| probability(one) >= 1e-3)
            })
            .collect();
        let mut head = vec![if self.is_relative() { "times a" } else { "a" }.to_owned()];
        head.extend(shown.iter().map(|&ix| self.name(&self.field.candidates()[ix])));
        let mut rows = vec![head];
        for (size, _, ranking) in &self.sensitivity {
            let mut row = vec![show_short(size.number())];
            row.extend(shown.iter().map(|&ix| {
                let ranked = ranking.ranked.iter().find(|ranked| ranked.candidate == ix);
                ranked.map_or(String::new(), |ranked| show_probability(ranked.posterior.0))
            }));
            rows.push(row);
        }
        let which = if self.has_several_a { "the" } else { "other" };
        format!("Probabilities at {which} sizes of the prior:\n{}", columns(&rows))
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
    match p {
        0.0 => "0".into(),
        p if p >= 1e-4 => format!("{p:.4}"),
        p => format!("{p:.0e}"),
    }
}

fn csv_field(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n', '\r']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}
