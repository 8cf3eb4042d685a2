//! How a fit to a stream went, to programs and to people.

use super::text::{plural, show_count};
use crate::fit::StreamReport;
use serde_json::{Value, json};

impl StreamReport {
    /// Adds it to the result.
    pub fn add_to(&self, object: &mut Value) {
        object["objective_note"] = json!(self.caution());
        object["iterations"] = json!(self.n_batches);
        object["converged"] = Value::Null;
        object["batches"] = json!(self.n_batches);
        object["batch"] = json!(self.batch);
        object["passes"] = json!(self.n_passes);
        object["records"] = json!(self.n_rows);
        object["tokens"] = json!(self.n_tokens);
        object["declared_tokens"] = json!(self.n_declared);
        object["last_batch_tokens"] = json!(self.n_last);
        object["kappa"] = json!(self.settings.decay);
        object["tau"] = json!(self.settings.delay);
    }

    /// What the number above is not.
    pub fn caution(&self) -> String {
        format!(
            "a noisy estimate of the bound on ln p(sequence), scaled up from {} of {}; not evidence",
            show_count(self.n_last),
            plural(self.n_declared, "token")
        )
    }

    /// The same for people.
    pub fn text(&self) -> String {
        let several =
            |n: u64, one: &str| if n == 1 { format!("1 {one}") } else { format!("{} {one}es", show_count(n)) };
        let (batches, passes) = (several(self.n_batches, "batch"), several(u64::from(self.n_passes), "pass"));
        format!("{batches}, {}, {} in {passes}", plural(self.n_rows, "record"), plural(self.n_tokens, "token"))
    }
}
