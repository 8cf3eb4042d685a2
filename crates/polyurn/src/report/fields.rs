//! Reading fields of a JSON object that may hold anything.

use serde_json::{Map, Value};

/// Numbers beyond this are no results, and would only spoil a scale.
const LARGEST: f64 = 1e200;

/// A number; minus infinity may be written as a word.
pub fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(word) if word == "-inf" => Some(f64::NEG_INFINITY),
        value => value.as_f64().filter(|x| x.abs() <= LARGEST),
    }
}

/// A number in a field.
pub fn number_at(object: &Value, field: &str) -> Option<f64> {
    number(&object[field])
}

/// A finite number in a field.
pub fn finite_at(object: &Value, field: &str) -> Option<f64> {
    number_at(object, field).filter(|x| x.is_finite())
}

/// A text in a field, empty if there is none.
pub fn text_at(object: &Value, field: &str) -> String {
    object[field].as_str().unwrap_or_default().to_owned()
}

/// A list in a field, empty if there is none.
pub fn list_at<'v>(object: &'v Value, field: &str) -> &'v [Value] {
    object[field].as_array().map_or(&[], Vec::as_slice)
}

/// An object in a field.
pub fn object_at<'v>(object: &'v Value, field: &str) -> Option<&'v Map<String, Value>> {
    object[field].as_object()
}

/// A label: text as it is, anything else as JSON.
pub fn label(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Labels of a list.
pub fn labels_at(object: &Value, field: &str) -> Vec<String> {
    list_at(object, field).iter().map(label).collect()
}

/// What kind of thing a value is, for messages.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
