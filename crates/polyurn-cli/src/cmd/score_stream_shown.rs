//! Shows the running evidence of a stream: a line for every batch, then the score.

use crate::output::Output;
use crate::text::{show_count, show_estimate, show_short};
use polyurn::graph::Model;
use polyurn::score::{Score, Standing};
use polyurn::shown::{ShownScore, standing_json};
use serde_json::json;
use std::cell::Cell;
use std::io::{Result, Write};
use std::path::Path;
use std::time::Duration;

/// What a stream was cut and followed by.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub batch: u32,
    pub window: u64,
}

/// Where lines go.
pub struct StreamShown<'a> {
    pub output: &'a Output,
    pub settings: Settings,
    pub model: &'a Model,
    /// Batches so far, and the time that they took.
    pub so_far: Cell<(u64, Duration)>,
}

impl StreamShown<'_> {
    /// The line of a batch, written at once: somebody may be waiting for it.
    pub fn batch(&self, out: &mut dyn Write, standing: &Standing, time: Duration) -> Result<()> {
        let Standing { tokens, evidence, batch_tokens, batch_log_p_sequence, ess_min, .. } = standing;
        let (n_batches, time_before) = self.so_far.get();
        self.so_far.set((n_batches + 1, time));
        if self.output.json() {
            writeln!(out, "{}", standing_json(standing, n_batches + 1, time))?;
            return out.flush();
        }
        let std_error = standing.std_error();
        if n_batches == 0 {
            let names = ["tokens", "ln evidence", "error", "ln p(batch)", "effective", "us/token"];
            row(out, &names.map(str::to_owned))?;
        }
        let per_token = (time - time_before).as_secs_f64() * 1e6 / (*batch_tokens).max(1) as f64;
        row(
            out,
            &[
                show_count(*tokens),
                show_estimate(evidence.log_marginal, std_error),
                std_error.map_or("exact".into(), show_short),
                show_estimate(*batch_log_p_sequence, std_error),
                ess_min.map_or("-".into(), |ess| format!("{ess:.0}")),
                format!("{per_token:.0}"),
            ],
        )
    }

    /// The score of all that came.
    pub fn end(&self, out: &mut dyn Write, score: &Score, model: &str, data: &Path) -> Result<()> {
        let shown = ShownScore { score, model: self.model };
        let (n_batches, _) = self.so_far.get();
        if self.output.json() {
            let mut object = shown.json(self.output.seed());
            object["batches"] = json!(n_batches);
            object["batch"] = json!(self.settings.batch);
            object["window"] = json!(self.settings.window);
            self.output.add_cuts(&mut object);
            return writeln!(out, "{object}");
        }
        write!(out, "\n{}", shown.text(model, &data.display().to_string()))
    }
}

/// Cells below each other, whatever comes later.
fn row(out: &mut dyn Write, cells: &[String; 6]) -> Result<()> {
    let [tokens, evidence, error, batch, effective, time] = cells;
    writeln!(out, "{tokens:>13}  {evidence:>16}  {error:>9}  {batch:>14}  {effective:>9}  {time:>9}")?;
    out.flush()
}
