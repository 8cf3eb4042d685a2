//! Results, to programs (JSON) and to people (text): what the command line prints and the Python package returns.
//!
//! The numbers come from [`score`](crate::score), [`fit`](crate::fit) and [`select`](crate::select); nothing is computed here.
//! [`report`](crate::report) reads the same JSON and makes a page of it.

mod annealed;
mod chains;
mod climbs;
mod decomposed;
mod fit;
mod fit_file;
mod particles;
mod question;
mod ranking;
mod ranking_table;
mod score;
mod standing;
mod stream;
mod table;
mod verdict;

pub use crate::text;
pub use climbs::maximised_text;
pub use decomposed::DecompositionWish;
pub use fit_file::{fit_file_json, fit_file_result, given_model};
pub use question::{Question, nodes_json};
pub use ranking::ShownRanking;
pub use score::{ShownScore, error_of};
pub use standing::standing_json;
pub use table::{table_json, table_text};

use crate::counts::Unit;
use crate::warning::Warning;
use serde_json::Value;

/// A number for JSON; minus infinity is a string.
pub fn number(value: f64) -> Value {
    if value == f64::NEG_INFINITY { Value::from("-inf") } else { Value::from(value) }
}

/// A whole number, or a fraction.
pub fn tokens_json(n: u64, unit: Unit) -> Value {
    if unit.is_token() { Value::from(n) } else { Value::from(unit.tokens(n)) }
}

/// Warnings as data, each with its message.
pub fn warnings_json(warnings: &[Warning]) -> Value {
    let one = |warning: &Warning| {
        let mut value = serde_json::to_value(warning).expect("warnings are plain data");
        value["message"] = Value::from(warning.to_string());
        value
    };
    warnings.iter().map(one).collect()
}
