//! How a result was found: every setting that its JSON holds, in words.

use super::fields::{labels_at, text_at};
use super::text::short;
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

/// Names of fields in words, in the order in which they are shown.
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
            if let Some(shown) = found.and_then(show)
                && !settings.list.iter().any(|(known, _)| known == name)
            {
                settings.list.push(((*name).into(), shown));
            }
        }
        for (value, of_whom) in [(result, ""), (best, " of the best model")] {
            for (field, value) in value.as_object().into_iter().flatten() {
                let is_named = NAMES.iter().any(|(name, _)| name == field);
                let is_known = !of_whom.is_empty() && !result[field].is_null();
                if is_named || is_known || ELSEWHERE.contains(&field.as_str()) {
                    continue;
                }
                if let Some(shown) = show(value) {
                    let is_bound = [result, best].iter().any(|value| value["bound"] == "lower");
                    let bound = if is_bound && BOUNDED.contains(&field.as_str()) { "lower bound of " } else { "" };
                    settings.list.push((format!("{bound}{}{of_whom}", field.replace('_', " ")), shown));
                }
            }
        }
        settings
    }

    fn add_data(&mut self, data: &Value) {
        match data {
            Value::String(file) => self.list.push(("data".into(), file.clone())),
            Value::Object(fields) => {
                for (field, name) in
                    [("file", "data"), ("columns", "columns"), ("tokens", "tokens"), ("records", "distinct records")]
                {
                    if let Some(shown) = fields.get(field).and_then(show) {
                        self.list.push((name.into(), shown));
                    }
                }
            }
            _ => {}
        }
    }
}

/// A value in words, unless it is empty or long.
fn show(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.into()),
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        // Seeds must keep all their digits.
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        Value::Number(number) => number.as_f64().map(short),
        Value::Array(items) if items.is_empty() || items.len() > MOST_ITEMS => None,
        Value::Array(items) => items.iter().map(show).collect::<Option<Vec<_>>>().map(|items| items.join(", ")),
        Value::Object(fields) if fields.is_empty() || fields.len() > MOST_ITEMS => None,
        Value::Object(fields) => {
            let shown = fields.iter().map(|(name, value)| Some(format!("{name} {}", show(value)?)));
            shown.collect::<Option<Vec<_>>>().map(|shown| shown.join(", "))
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
        assert_eq!((get("order"), get("maximised"), get("particles")), (vec!["random"], vec!["a 0.5"], vec!["10"]));
        assert_eq!(get("heat of the best model"), ["2"]);
        assert!(get("tables").is_empty() && get("hidden").is_empty());
    }

    #[test]
    fn a_bound_is_called_a_bound() {
        for (bound, name) in [("lower", "lower bound of log marginal"), ("estimate", "log marginal")] {
            let list = Settings::read(&json!({"log_marginal": -3.5, "bound": bound}), &Value::Null).list;
            assert!(list.contains(&(name.into(), "−3.5".into())), "{list:?}");
        }
    }
}
