//! Shows a ranking of models, to programs and to people.

use super::question::nodes_json;
use super::score::ShownScore;
use super::text::show_short;
use super::{number, tokens_json, warnings_json};
use crate::Seed;
use crate::error::{Error, Result, Stop};
use crate::select::{Candidate, Field, Findings, Ranked, Ranking, Scored, Size, left_out, same_models};
use crate::warning::Warning;
use serde_json::{Value, json};

/// A ranking, to be shown.
#[derive(Debug)]
pub struct ShownRanking<'a> {
    command: &'static str,
    pub(super) field: &'a Field,
    pub(super) data: String,
    /// One value of `a` after another; the ranking is over all of them.
    pub(super) found: Vec<Option<Scored>>,
    pub(super) n_candidates: usize,
    /// The models in their places.
    pub ranking: Ranking,
    /// Rankings at other values of `a`.
    pub(super) sensitivity: Vec<(Size, Vec<Option<Scored>>, Ranking)>,
    /// Why there are none, or fewer than asked for.
    pub(super) not_tried: Option<String>,
    /// Whether some of them are missing for lack of time.
    lacks_sizes: bool,
    /// Whether a signal ended it before its time.
    is_interrupted: bool,
    pub(super) has_several_a: bool,
    /// Whether weights of models were given that are not all the same.
    pub(super) has_weights: bool,
    warnings: Vec<Warning>,
    seconds: f64,
}

impl<'a> ShownRanking<'a> {
    /// Ranks what was found for `command`, `select` or `compare`, about data by this name.
    ///
    /// # Errors
    /// When there was no time for any model, or none can have made the data.
    pub fn new(
        command: &'static str,
        field: &'a Field,
        weights: &[f64],
        findings: Findings,
        data: String,
        seconds: f64,
    ) -> Result<Self> {
        let Findings { at, elsewhere } = findings;
        let mut warnings: Vec<Warning> = left_out(field, &at).into_iter().collect();
        warnings.extend(at.first().into_iter().flat_map(|at| same_models(field, &at.found)));
        let has_several_a = at.len() > 1;
        let mut sensitivity = Vec::new();
        let own = if has_several_a { &at[..] } else { &[] };
        for other in own.iter().chain(&elsewhere.at) {
            if let Ok(ranking) = Ranking::new(&other.found, weights) {
                sensitivity.push((other.size, other.found.clone(), ranking));
            }
        }
        let all_weights: Vec<f64> = at.iter().flat_map(|_| weights.iter().copied()).collect();
        let found: Vec<Option<Scored>> = at.into_iter().flat_map(|at| at.found).collect();
        let ranking = match Ranking::new(&found, &all_weights) {
            Ok(ranking) => ranking,
            Err(_) if found.iter().all(Option::is_none) => {
                return Err(Error::Stopped(Stop::Deadline));
            }
            Err(error) => return Err(error),
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
        Ok(ShownRanking {
            command,
            field,
            data,
            found,
            n_candidates,
            ranking,
            sensitivity,
            not_tried: elsewhere.not_tried,
            lacks_sizes: elsewhere.lacks_sizes,
            is_interrupted: false,
            has_several_a,
            has_weights,
            warnings,
            seconds,
        })
    }

    /// The same, ended before its time.
    pub fn interrupted(self, is_interrupted: bool) -> Self {
        ShownRanking { is_interrupted, ..self }
    }

    pub(super) fn candidate(&self, ranked: &Ranked) -> &Candidate {
        &self.field.candidates()[ranked.candidate % self.n_candidates]
    }

    pub(super) fn scored(&self, ranked: &Ranked) -> &Scored {
        self.found[ranked.candidate].as_ref().expect("what is ranked was scored")
    }

    /// `class = 2`, `(r1 = 2, r2 = 3)`, or the model itself in quotes.
    pub(super) fn name(&self, candidate: &Candidate) -> String {
        if candidate.sizes.is_empty() || self.has_several_entries() {
            return format!("`{}`", candidate.model);
        }
        let sizes: Vec<String> = candidate.sizes.iter().map(|(node, size)| format!("{node} = {size}")).collect();
        if sizes.len() == 1 { sizes.concat() } else { format!("({})", sizes.join(", ")) }
    }

    pub(super) fn has_several_entries(&self) -> bool {
        self.field.candidates().iter().any(|candidate| candidate.entry > 0)
    }

    /// Whether models have different values of `a`: what these alone do must not look like structure.
    pub(super) fn shows_a(&self) -> bool {
        let mut all = self.found.iter().flatten().map(|found| found.score.a);
        let first = all.next();
        self.has_several_a || all.any(|a| Some(a) != first)
    }

    /// Its name, and where values of `a` differ, its own.
    pub(super) fn full_name(&self, ranked: &Ranked) -> String {
        let name = self.name(self.candidate(ranked));
        if self.shows_a() { format!("{name} at a = {}", show_short(self.scored(ranked).score.a)) } else { name }
    }

    /// Whether no more than a lower bound is known of the best: then there are no Bayes factors against it, and no
    /// probabilities.
    pub(super) fn is_best_bound(&self) -> bool {
        self.ranking.ranked[0].is_bound
    }

    /// Whether nothing but lower bounds is known.
    pub(super) fn has_bounds_alone(&self) -> bool {
        self.ranking.ranked.iter().all(|ranked| self.scored(ranked).score.bound() == "lower")
    }

    /// Whether nothing was drawn.
    pub fn is_exact(&self) -> bool {
        self.found.iter().flatten().all(|found| found.score.is_exact() && found.bound.is_none())
    }

    /// Whether the time limit left something undone.
    pub fn is_cut(&self) -> bool {
        self.lacks_sizes || self.found.iter().any(|found| found.as_ref().is_none_or(Scored::is_cut))
    }

    /// What is known about the whole, and where a model's own warnings concern those that matter, with their names.
    pub fn warning_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        for (place, ranked) in self.ranking.ranked.iter().enumerate() {
            // The best, those not told from it, and the next in line, whose distance is the lead.
            let is_near = self.ranking.verdict.level.contains(&place) || place == 1;
            let matters = |warning: &&Warning| {
                !is_about_data(warning) && (is_near || matches!(warning, Warning::BelowBound { .. }))
            };
            let own = self.scored(ranked).score.warnings.iter().filter(matters);
            lines.extend(own.map(|warning| format!("{}: {warning}", self.full_name(ranked))));
        }
        lines
    }

    /// Whether models have an `a` of their own, so that others are multiples of it.
    pub(super) fn is_relative(&self) -> bool {
        self.sensitivity.iter().any(|(size, ..)| matches!(size, Size::Times(_)))
    }

    /// All of it. `command_line` holds the words by which it was asked on a command line; none where it was not.
    pub fn json(&self, seed: Seed, command_line: &[String]) -> Value {
        let best = &self.ranking.ranked[0];
        let models: Vec<Value> = self.ranking.ranked.iter().map(|ranked| self.model_json(ranked, seed)).collect();
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
                "sizes": sizes_json(first),
                "a": first.score.a,
            },
            "verdict": self.verdict(),
            "settled": self.ranking.verdict.is_settled,
            "level": self.ranking.verdict.level,
            "left_with_bound": self.left_with_bound(),
            "interrupted": self.is_interrupted,
            "sensitivity": self.sensitivity.iter().map(|one| self.sensitivity_json(one)).collect::<Vec<_>>(),
            "sensitivity_not_tried": self.not_tried,
            "movement": self.movement(),
            "seed": seed,
            "seconds": self.seconds,
            "command_line": command_line,
            "warnings": warnings_json(&self.warnings),
            "version": crate::VERSION,
        })
    }

    fn model_json(&self, ranked: &Ranked, seed: Seed) -> Value {
        let scored = self.scored(ranked);
        let candidate = self.candidate(ranked);
        let mut object = ShownScore { score: &scored.score, model: &scored.model }.json(seed);
        object["model"] = json!(candidate.model);
        object["sizes"] = sizes_json(scored);
        object["elbo"] = scored.bound.map_or(Value::Null, number);
        object["prior_probability"] = json!(ranked.prior);
        // Bounds are no evidence: they give neither probabilities nor Bayes factors.
        let both = |pair: Option<(f64, f64)>| pair.map_or((Value::Null, Value::Null), |(x, y)| (number(x), number(y)));
        (object["posterior_probability"], object["posterior_probability_error"]) = both(ranked.posterior);
        (object["log_bayes_factor"], object["log_bayes_factor_error"]) = both(ranked.log_bayes_factor);
        object["is_lower_bound"] = json!(ranked.is_bound);
        if let Some(apart) = ranked.log_bayes_factor_between {
            object["log_bayes_factor_lower"] = number(apart.lower);
            object["log_bayes_factor_upper"] = number(apart.upper);
            object["log_bayes_factor_bounds_error"] = json!(apart.error);
        }
        object["seconds"] = json!(scored.seconds);
        object["rounds"] = json!(scored.n_rounds);
        object["quick"] = json!(scored.is_quick);
        object["nodes"] = nodes_json(&scored.model, &scored.is_seen);
        object
    }

    fn sensitivity_json(&self, (size, found, ranking): &(Size, Vec<Option<Scored>>, Ranking)) -> Value {
        let one = |ranked: &Ranked| {
            let scored = found[ranked.candidate].as_ref().expect("what is ranked was scored");
            let candidate = self.candidate(ranked);
            json!({
                "model": candidate.model,
                "sizes": sizes_json(scored),
                "a": scored.score.a,
                "log_marginal": number(scored.score.log_marginal),
                "std_error": scored.score.std_error,
                "error_unknown": scored.score.is_error_unknown(),
                "is_lower_bound": ranked.is_bound,
                "posterior_probability": ranked.posterior.map(|(p, _)| p),
                "posterior_probability_error": ranked.posterior.map(|(_, error)| number(error)),
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
}

/// The sizes of the hidden nodes: those of seen ones are the data's, and the same for all models.
fn sizes_json(scored: &Scored) -> Value {
    let nodes = scored.model.nodes().iter().zip(&scored.is_seen).filter(|(_, is_seen)| !**is_seen);
    Value::Object(nodes.map(|(node, _)| (node.name.clone(), json!(node.size))).collect())
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
