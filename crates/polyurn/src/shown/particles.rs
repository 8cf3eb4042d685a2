//! What particles did, to programs and to people.

use super::number;
use super::text::{plural, show_count, show_short, wrap};
use crate::engine::smc::{ErrorFrom, When};
use crate::fit::ParticleReport;
use serde_json::{Value, json};

impl ParticleReport {
    /// Adds the fields of a particle engine to a result.
    pub fn add_to(&self, object: &mut Value) {
        let path = &self.smc.path;
        object["particles"] = json!(self.smc.particles);
        object["runs"] = json!(self.run_log_marginals.len());
        object["run_log_marginals"] = self.run_log_marginals.iter().map(|&ln| number(ln)).collect();
        object["ess_min"] = number(self.ess_min);
        object["kernel"] = json!(self.smc.isa.name());
        object["rejuvenate"] = json!(path.rejuvenation);
        object["heat"] = json!(path.start_scale);
        object["cooling"] = json!(path.n_cooling);
        object["split_merge"] = json!(path.n_reallocations);
        object["order"] = json!(self.order);
        object["resample"] = json!(path.scheme);
        object["ess"] = match path.when {
            When::Always => json!("always"),
            When::Never => json!("never"),
            When::EssBelow(share) => json!(share),
        };
        object["error_from"] = json!(self.error_from);
        object["updates"] = json!(self.n_updates);
        object["resamplings"] = json!(self.n_resampled);
        object["ancestors"] = json!(self.n_ancestors);
        object["ess_trace"] = self.ess_trace.iter().map(|&(step, ess)| json!([step, ess])).collect();
        object["resampled_at"] = json!(self.resampled_at);
    }

    /// What was run, for people, in lines behind `indent` blanks.
    pub fn text(&self, indent: usize) -> String {
        if self.error_from == ErrorFrom::ClosedForm {
            return wrap(&["no particles were needed: nothing is hidden".to_owned()], 100 - indent, indent);
        }
        let path = &self.smc.path;
        let mut parts = vec![format!(
            "{} of {} particles",
            plural(self.run_log_marginals.len() as u64, "run"),
            show_count(self.smc.particles as u64)
        )];
        if path.rejuvenation > 0 {
            parts.push(format!("{} moves a token", path.rejuvenation));
        }
        if path.start_scale != 1.0 {
            let steps = plural(u64::from(path.n_cooling), "step");
            parts.push(format!("pseudo-counts from {} times the prior's in {steps}", show_short(path.start_scale)));
        }
        if path.n_reallocations > 0 {
            parts.push(format!("{} split-merge moves a step", path.n_reallocations));
        }
        parts.push(format!("at least {} effective particles", show_short(self.ess_min)));
        parts.push(format!("{} token updates ({})", show_short(self.n_updates as f64), self.smc.isa.name()));
        wrap(&parts, 100 - indent, indent)
    }
}
