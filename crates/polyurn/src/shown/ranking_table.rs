//! A ranking as a table, for people and for spreadsheets.

use super::ranking::ShownRanking;
use super::score::error_of;
use super::text::{columns, plural, show_error, show_estimate, show_short, show_tokens};
use crate::select::{Ranked, Ranking};

impl ShownRanking<'_> {
    /// Names of the columns that say which model a row is about.
    fn key_names(&self) -> Vec<String> {
        let first = &self.field.candidates()[0];
        let mut names: Vec<String> = if first.sizes.is_empty() || self.has_several_entries() {
            vec!["model".to_owned()]
        } else {
            first.sizes.iter().map(|(node, _)| node.clone()).collect()
        };
        names.extend(self.shows_a().then(|| "a".to_owned()));
        names
    }

    fn keys(&self, ranked: &Ranked) -> Vec<String> {
        let candidate = self.candidate(ranked);
        let mut keys: Vec<String> = if candidate.sizes.is_empty() || self.has_several_entries() {
            vec![candidate.model.clone()]
        } else {
            candidate.sizes.iter().map(|(_, size)| size.to_string()).collect()
        };
        keys.extend(self.shows_a().then(|| show_short(self.scored(ranked).score.a)));
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
                "lower",
                "upper",
                "prior_probability",
                "posterior_probability",
                "posterior_probability_error",
                "is_lower_bound",
                "quick",
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
            let both =
                |pair: Option<(f64, f64)>| pair.map_or([String::new(), String::new()], |(x, y)| [plain(x), plain(y)]);
            let ([factor, factor_error], [p, p_error]) = (both(ranked.log_bayes_factor), both(ranked.posterior));
            let mut row = self.keys(ranked);
            row.extend([
                scored.score.log_marginal.to_string(),
                optional(scored.score.std_error),
                scored.score.bound().to_owned(),
                optional(scored.bound),
                factor,
                factor_error,
                optional(scored.score.bracket().map(|bracket| bracket.lower)),
                optional(scored.score.bracket().map(|bracket| bracket.upper)),
                plain(ranked.prior),
                p,
                p_error,
                ranked.is_bound.to_string(),
                scored.is_quick.to_string(),
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
            self.data,
            show_tokens(first.tokens, first.unit),
            plural(first.records, "distinct record"),
            self.field.explained().join(", ")
        );
        text += &columns(&self.rows());
        text += &format!("\n{}\n", self.verdict());
        text += &self.worth_of_brackets();
        let methods: Vec<String> = self.methods().into_iter().chain(self.left_with_bound()).collect();
        if !methods.is_empty() {
            text += &format!("\n{}\n", methods.join("\n"));
        }
        text += &self.sensitivity_text();
        for sentence in self.movement().iter().chain(&self.not_tried) {
            text += &format!("\n{sentence}\n");
        }
        text
    }

    /// Whether every number that is not exact has bounds on either side, and there is one.
    fn has_brackets(&self) -> bool {
        let mut scores = self.ranking.ranked.iter().map(|ranked| &self.scored(ranked).score);
        scores.clone().any(|score| score.bracket().is_some())
            && scores.all(|score| score.is_exact() || score.bracket().is_some())
    }

    /// How sure the ends of brackets are, and what they say of differences.
    fn worth_of_brackets(&self) -> String {
        let errors = self.ranking.ranked.iter().filter_map(|ranked| Some(self.scored(ranked).score.bracket()?.error));
        let between = self.ranking.ranked.iter().filter_map(|ranked| Some(ranked.log_bayes_factor_between?.error));
        let (of_one, of_two) = (errors.fold(0.0, f64::max), between.fold(0.0, f64::max));
        if !self.has_brackets() || of_one == 0.0 {
            return String::new();
        }
        let percent = |error: f64| (1e5 * (1.0 - error)).round() / 1e3;
        let of_two = match of_two {
            0.0 => String::new(),
            error => format!(", and each end of what two of them leave to a difference with {} %", percent(error)),
        };
        format!(
            "\nEach end of a bracket holds with a probability of {} %{of_two}, as far as chains see the posterior.\n",
            percent(of_one)
        )
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let is_bound = self.has_bounds_alone();
        // Where there is nothing but bounds, the first column has them.
        let has_bounds = !is_bound && self.found.iter().flatten().any(|found| found.bound.is_some());
        let mut head = self.key_names();
        head.extend([if is_bound { "lower bound (ELBO)" } else { "ln evidence" }.to_owned(), String::new()]);
        let has_brackets = self.has_brackets();
        if has_brackets {
            head.extend(["at least", "at most"].map(String::from));
        }
        head.extend(has_bounds.then(|| "lower bound (ELBO)".to_owned()));
        let is_best_bound = self.is_best_bound();
        if is_best_bound {
            head.extend(["below the best", "method", "time"].map(String::from));
        } else {
            head.extend(["ln Bayes factor", "", "probability", "", "method", "time"].map(String::from));
        }
        let mut rows = vec![head];
        for ranked in &self.ranking.ranked {
            let scored = self.scored(ranked);
            let score = &scored.score;
            let error = if score.is_exact() { None } else { score.std_error.filter(|error| *error > 0.0) };
            let mut row = self.keys(ranked);
            row.extend(match error {
                // What is only known to be at least so large says so, but where the whole column does.
                _ if ranked.is_bound => {
                    let at_least = if is_bound { "" } else { ">= " };
                    [format!("{at_least}{:.2}", score.log_marginal), String::new()]
                }
                None if score.is_error_unknown() => [format!("{:.2}", score.log_marginal), error_of(score)],
                None => [format!("{:.4}", score.log_marginal), String::new()],
                error => [show_estimate(score.log_marginal, error), show_error(error)],
            });
            if has_brackets {
                let show = |value: f64| show_estimate(value, error);
                row.extend(match score.bracket() {
                    Some(bracket) => [show(bracket.lower), show(bracket.upper)],
                    None => [String::new(), String::new()],
                });
            }
            row.extend(has_bounds.then(|| scored.bound.map_or(String::new(), |bound| format!("{bound:.2}"))));
            let method = if scored.is_quick { format!("{}, quick", score.method) } else { score.method.to_string() };
            let time = format!("{:.1} s", scored.seconds);
            if is_best_bound {
                row.extend([show_short((-ranked.apart * 100.0).round() / 100.0), method, time]);
                rows.push(row);
                continue;
            }
            let is_best = ranked.candidate == self.ranking.ranked[0].candidate;
            row.extend(match ranked.log_bayes_factor {
                None => ["-".into(), String::new()],
                Some(_) if is_best => ["0".into(), String::new()],
                Some((factor, error)) => [format!("{factor:.2}"), show_plain_error(error, 2)],
            });
            row.extend(match ranked.posterior {
                None => ["-".into(), String::new()],
                Some((p, error)) => [show_probability(p), show_plain_error(error, 4)],
            });
            row.extend([method, time]);
            rows.push(row);
        }
        rows
    }

    /// Probabilities of the models at each value of `a`.
    fn sensitivity_text(&self) -> String {
        // Of one model there is nothing to say but its evidence, and where several sizes are ranked that is in the table.
        let is_one = self.n_candidates == 1;
        if self.sensitivity.is_empty() || is_one && self.has_several_a {
            return String::new();
        }
        let probability = |ranking: &Ranking, ix: usize| {
            ranking.ranked.iter().find(|ranked| ranked.candidate == ix).and_then(|ranked| ranked.posterior)
        };
        let is_shown = |ix: &usize| {
            let p = |ranking: &Ranking| probability(ranking, *ix).map_or(0.0, |(p, _)| p);
            self.sensitivity.iter().any(|(_, _, ranking)| p(ranking) >= 1e-3)
        };
        let shown: Vec<usize> = (0..self.n_candidates).filter(is_shown).collect();
        let mut head = vec![if self.is_relative() { "times a" } else { "a" }.to_owned()];
        if is_one {
            head.extend(["ln evidence".to_owned(), String::new()]);
        } else {
            head.extend(shown.iter().flat_map(|&ix| [self.name(&self.field.candidates()[ix]), String::new()]));
        }
        let mut rows = vec![head];
        for (size, found, ranking) in &self.sensitivity {
            let mut row = vec![show_short(size.number())];
            if is_one {
                let score = found.iter().flatten().map(|found| &found.score).next();
                row.extend(score.map_or([String::new(), String::new()], |score| {
                    [show_estimate(score.log_marginal, score.std_error), error_of(score)]
                }));
            } else {
                row.extend(shown.iter().flat_map(|&ix| match probability(ranking, ix) {
                    None => ["-".into(), String::new()],
                    Some((p, error)) => [show_probability(p), show_plain_error(error, 4)],
                }));
            }
            rows.push(row);
        }
        let which = if self.has_several_a { "the" } else { "other" };
        let what = if is_one { "ln evidence" } else { "Probabilities" };
        format!("\n{what} at {which} sizes of the prior:\n{}", columns(&rows))
    }
}

/// An error with so many decimals, none where it would be zero, and a question mark where nothing is known of it.
fn show_plain_error(error: f64, decimals: usize) -> String {
    match error {
        error if error.is_infinite() => "+- ?".into(),
        error if error < 0.5 * 0.1f64.powi(decimals as i32) => String::new(),
        error => format!("+- {error:.decimals$}"),
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
