//! How a result was found: every setting that its JSON holds, in words.

use super::fields::{labels_at, text_at};
use super::text::{short, with_commas};
use serde_json::Value;

/// How a result was found.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The command and its arguments.
    pub command_line: Vec<String>,
    /// The version that made it.
    pub version: String,
    /// Names and values.
    pub list: Vec<(String, String)>,
}

/// Names of fields in words, in the order in which they are shown. The first ones belong to the whole result, whoever has them.
const NAMES: &[(&str, &str)] = &[
    ("command", "command"),
    ("model", "model"),
    ("method", "method"),
    ("why", "why this method"),
    ("tokens", "tokens"),
    ("records", "distinct records"),
    ("a", "size of the prior (a)"),
    ("shape", "shape of the total's prior"),
    ("b", "rate of the total's prior (b)"),
    ("particles", "particles"),
    ("runs", "runs"),
    ("seed", "seed"),
    ("seconds", "time, in seconds"),
];

/// The same for fields that say whose they are, if it is the best model.
const OWN_NAMES: &[(&str, &str)] = &[
    ("bound", "kind of number"),
    ("log_marginal", "ln evidence"),
    ("std_error", "its standard error"),
    ("error_from", "where the error comes from"),
    ("log_p_total", "ln p(total)"),
    ("log_arrangements", "ln of the number of arrangements"),
    ("log_p_sequence", "ln p(sequence)"),
    ("log_p_sequence_given", "ln p(sequence given roots)"),
    ("run_log_marginals", "ln evidence, run by run"),
    ("run_upper_log_marginals", "upper estimates of ln evidence, run by run"),
    ("objective", "objective"),
    ("log_likelihood", "ln likelihood"),
    ("log_joint", "ln joint of the last state"),
    ("log_joint_by_table", "its parts, by table"),
    ("kl_divergence", "Kullback-Leibler divergence from the data"),
    ("deviance", "deviance"),
    ("intensity", "expected total"),
    ("posterior", "posterior means"),
    ("maximised", "sizes of the prior, maximised"),
    ("rejuvenate", "Gibbs moves a token"),
    ("heat", "start at so many times the pseudo-counts"),
    ("cooling", "steps of cooling"),
    ("split_merge", "split-merge moves a step"),
    ("order", "order of tokens"),
    ("resample", "resampling"),
    ("ess", "resampled below this share of effective particles"),
    ("ess_min", "fewest effective particles"),
    ("resamplings", "resamplings, run by run"),
    ("ancestors", "first particles with descendants, run by run"),
    ("from_run", "run that the tables are from, counted from 0"),
    ("sweeps", "sweeps"),
    ("chains", "chains"),
    ("chain_sweeps", "sweeps of a chain"),
    ("warm_up", "sweeps to warm up"),
    ("thin", "sweeps between kept states"),
    ("kept", "kept states, chain by chain"),
    ("from_chain", "chain that the tables are from, counted from 0"),
    ("effective_size", "effective number of draws"),
    ("r_hat", "R-hat"),
    ("assumes_separated_labels", "labels taken to be far apart"),
    ("restarts", "starts"),
    ("best_restart", "best start, counted from 0"),
    ("restart_objectives", "objectives, start by start"),
    ("iterations", "sweeps of the best start"),
    ("converged", "converged"),
    ("hits", "free urns that hit the data"),
    ("states", "states of the exact engine"),
    ("updates", "token updates"),
    ("tokens_per_second", "tokens per second"),
    ("rounds", "times scored"),
    ("kernel", "instructions"),
];

/// Names of numbers inside of fields.
const INNER_NAMES: &[(&str, &str)] = &[
    ("d_ep", "effective parameters"),
    ("table_sum_of_squares", "sums of squares of counts, by table"),
    ("log_joint", "ln joint"),
    ("sd", "standard deviation"),
];

/// Fields that have them.
const WITH_INNER_NAMES: &[&str] = &["posterior", "effective_size", "r_hat", "intensity"];

/// A field in words.
fn name_of(field: &str) -> String {
    let known = OWN_NAMES.iter().find(|(name, _)| *name == field);
    known.map_or_else(|| field.replace('_', " "), |(_, words)| (*words).to_owned())
}

/// Fields that are results, or shown elsewhere.
const ELSEWHERE: &[&str] = &[
    "models",
    "tables",
    "warnings",
    "nodes",
    "sizes",
    "best",
    "verdict",
    "settled",
    "level",
    "sensitivity",
    "sensitivity_not_tried",
    "movement",
    "left_with_bound",
    "interrupted",
    "error_unknown",
    "command_line",
    "version",
    "ess_trace",
    "resampled_at",
    "objective_trace",
    "hidden",
    "decomposition",
    "data",
    "elbo",
    "log_bayes_factor",
    "log_bayes_factor_error",
    "posterior_probability",
    "posterior_probability_error",
    "prior_probability",
    "is_lower_bound",
    "quick",
    "lower",
    "upper",
    "bracket_error",
    "bracket_rests_on",
    "log_bayes_factor_lower",
    "log_bayes_factor_upper",
];

/// Fields that a lower bound takes the place of.
const BOUNDED: &[&str] = &["log_marginal", "log_p_sequence", "log_p_sequence_given"];

/// Items of a list, and fields of an object, that are still shown.
const MOST_ITEMS: usize = 12;

impl Settings {
    /// Reads the fields of a result, then those of its best model that the result does not have itself.
    pub fn read(result: &Value, best: &Value) -> Self {
        let mut settings = Settings {
            command_line: labels_at(result, "command_line"),
            version: text_at(result, "version"),
            list: Vec::new(),
        };
        settings.add_data(&result["data"]);
        for (field, name) in NAMES {
            let found = [result, best].into_iter().map(|value| &value[*field]).find(|value| !value.is_null());
            if let Some(shown) = found.and_then(|value| show(field, value))
                && !settings.list.iter().any(|(known, _)| known == name)
            {
                settings.list.push(((*name).into(), shown));
            }
        }
        settings.add_own(result, &Value::Null, "");
        settings.add_own(best, result, " (best model)");
        settings
    }

    /// Adds the fields that are left, but for those that `known` has: first those that have names, then all others.
    fn add_own(&mut self, value: &Value, known: &Value, of_whom: &str) {
        let is_left = |field: &&String| {
            let is_named = NAMES.iter().any(|(name, _)| name == field);
            !is_named && known[field.as_str()].is_null() && !ELSEWHERE.contains(&field.as_str())
        };
        let mut fields: Vec<&String> =
            value.as_object().into_iter().flat_map(|fields| fields.keys()).filter(is_left).collect();
        let place = |field: &&String| OWN_NAMES.iter().position(|(name, _)| name == field).unwrap_or(usize::MAX);
        fields.sort_by_key(place);
        let is_bound = value["bound"] == "lower" || known["bound"] == "lower";
        for field in fields {
            if let Some(shown) = show(field, &value[field.as_str()]) {
                let bound = if is_bound && BOUNDED.contains(&field.as_str()) { "lower bound of " } else { "" };
                self.list.push((format!("{bound}{}{of_whom}", name_of(field)), shown));
            }
        }
    }

    fn add_data(&mut self, data: &Value) {
        match data {
            Value::String(file) => self.list.push(("data".into(), file.clone())),
            Value::Object(fields) => {
                for (field, name) in
                    [("file", "data"), ("columns", "columns"), ("tokens", "tokens"), ("records", "distinct records")]
                {
                    if let Some(shown) = fields.get(field).and_then(|value| show(field, value)) {
                        self.list.push((name.into(), shown));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The value of a field in words, unless it is empty or long.
fn show(field: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.into()),
        Value::String(text) if field == "bound" && text == "lower" => Some("lower bound".into()),
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        // Seeds must keep all their digits, and be good for pasting.
        Value::Number(number) if number.is_u64() && field == "seed" => Some(number.to_string()),
        Value::Number(number) if number.is_u64() => Some(with_commas(&number.to_string())),
        Value::Number(number) => number.as_f64().map(short),
        Value::Array(items) if items.is_empty() || items.len() > MOST_ITEMS => None,
        Value::Array(items) => {
            items.iter().map(|item| show(field, item)).collect::<Option<Vec<_>>>().map(|items| items.join(", "))
        }
        Value::Object(fields) if fields.is_empty() || fields.len() > MOST_ITEMS => None,
        Value::Object(fields) => {
            let inner = |(name, value): (&String, &Value)| {
                let shown = show(name, value)?;
                let colon = if value.is_object() { ":" } else { "" };
                // Elsewhere they are the user's.
                let known = INNER_NAMES.iter().find(|(inner, _)| inner == name && WITH_INNER_NAMES.contains(&field));
                Some(format!("{}{colon} {shown}", known.map_or(name.as_str(), |(_, words)| words)))
            };
            let between = if fields.values().any(Value::is_object) { "; " } else { ", " };
            fields.iter().map(inner).collect::<Option<Vec<_>>>().map(|shown| shown.join(between))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_setting_is_shown_and_results_are_not() {
        let result = json!({
            "seed": 18446744073709551615u64, "seconds": 3.25, "order": "random", "tables": [], "data": {"file": "x.csv", "tokens": 9},
            "tokens": 9, "maximised": {"a": 0.5}, "hidden": [1],
        });
        let list = Settings::read(&result, &json!({"particles": 10, "seed": 5, "heat": 2.0})).list;
        let get = |name: &str| {
            list.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(get("seed"), ["18446744073709551615"]);
        assert_eq!(get("tokens"), ["9"]);
        assert_eq!(
            (get("order of tokens"), get("sizes of the prior, maximised"), get("particles")),
            (vec!["random"], vec!["a 0.5"], vec!["10"])
        );
        assert_eq!(get("start at so many times the pseudo-counts (best model)"), ["2"]);
        assert!(get("tables").is_empty() && get("hidden").is_empty());
    }

    #[test]
    fn names_are_words_for_people() {
        let result = json!({
            "posterior": {"d_ep": 5.5, "table_sum_of_squares": {"critic": 17239, "x_y": 3}}, "updates": 1463616, "is_lower_bound": false,
            "quick": false, "bound": "lower", "of_a_later_version": 1,
        });
        let list = Settings::read(&result, &Value::Null).list;
        let wanted = [
            ("kind of number", "lower bound"),
            ("posterior means", "effective parameters 5.5; sums of squares of counts, by table: critic 17,239, x_y 3"),
            ("token updates", "1,463,616"),
            ("of a later version", "1"),
        ];
        assert_eq!(list, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_bound_is_called_a_bound() {
        for (bound, name) in [("lower", "lower bound of ln evidence"), ("estimate", "ln evidence")] {
            let list = Settings::read(&json!({"log_marginal": -3.5, "bound": bound}), &Value::Null).list;
            assert!(list.contains(&(name.into(), "−3.5".into())), "{list:?}");
        }
    }
}
