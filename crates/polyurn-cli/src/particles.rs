//! From the flags of the particle engines to their settings, and from their runs to what is reported.

use crate::args::{KernelArg, ParticleArgs, SchemeArg};
use crate::output::number;
use crate::text::{plural, show_count, show_short, wrap};
use polyurn::engine::Problem;
use polyurn::engine::smc::{ErrorFrom, Estimate, Order, Scheme, Smc, When, Wish};
use polyurn::graph::Model;
use polyurn::score::order_by;
use polyurn::simd::Isa;
use polyurn::{Error, Result};
use serde_json::{Value, json};
use std::time::Duration;

impl ParticleArgs {
    /// The flags that were given.
    fn given(&self) -> impl Iterator<Item = &'static str> + use<> {
        let flags = [
            ("--particles", self.particles.is_some()),
            ("--runs", self.runs.is_some()),
            ("--rejuvenate", self.rejuvenate.is_some()),
            ("--heat", self.heat.is_some()),
            ("--cooling", self.cooling.is_some()),
            ("--split-merge", self.split_merge.is_some()),
            ("--order", self.order.is_some()),
            ("--resample", self.resample.is_some()),
            ("--ess", self.ess.is_some()),
            ("--kernel", self.kernel.is_some()),
        ];
        flags.into_iter().filter(|flag| flag.1).map(|flag| flag.0)
    }

    /// Whether a flag was given that makes sense for particles alone; annealing has runs and instructions, too.
    pub fn are_wanted(&self) -> bool {
        self.given().any(|flag| !matches!(flag, "--runs" | "--kernel"))
    }

    /// Refuses flags that this engine has no use for.
    pub fn check(&self, engine: &str, allowed: &[&str]) -> Result<()> {
        match self.given().find(|flag| !allowed.contains(flag)) {
            Some(flag) => Err(Error::Setting(format!("{flag}: --method {engine} has no use for it; leave it out"))),
            None => Ok(()),
        }
    }

    /// What was asked for, and the node to order tokens by.
    pub fn wish(&self) -> Result<(Wish, Option<&str>)> {
        if self.cooling.is_some() && (self.heat == Some(1.0) || (self.heat.is_none() && self.rejuvenate == Some(0))) {
            return Err(Error::Setting("--cooling: there is nothing to cool without --heat above 1".into()));
        }
        let (order, by) = match self.order.as_deref() {
            None | Some("auto") => (Order::Auto, None),
            Some("random") => (Order::Random, None),
            Some("given") => (Order::Given, None),
            Some(text) => match text.strip_prefix("by:") {
                Some(name) => (Order::Auto, Some(name)),
                None => {
                    let message = format!("--order {text}: expected auto, random, given or by:NODE");
                    return Err(Error::Setting(message));
                }
            },
        };
        let scheme = match self.resample {
            None | Some(SchemeArg::Systematic) => Scheme::Systematic,
            Some(SchemeArg::Stratified) => Scheme::Stratified,
            Some(SchemeArg::Residual) => Scheme::Residual,
            Some(SchemeArg::Multinomial) => Scheme::Multinomial,
        };
        let wish = Wish {
            particles: self.particles.map(|n| n as usize),
            runs: self.runs,
            rejuvenation: self.rejuvenate,
            heat: self.heat,
            start_pseudo_count: None,
            n_cooling: self.cooling,
            n_reallocations: self.split_merge,
            order,
            scheme,
            when: self.ess,
            seconds_per_run: None,
            time_limit: None,
        };
        Ok((wish, by))
    }

    /// The same for one problem and its time.
    pub fn wish_for(&self, problem: &Problem<'_>, time_limit: Option<Duration>) -> Result<Wish> {
        let (mut wish, by) = self.wish()?;
        if let Some(name) = by {
            wish.order = order_by(name, problem)?;
        }
        Ok(Wish { time_limit, ..wish })
    }

    /// The instructions to use.
    pub fn isa(&self) -> Isa {
        if self.kernel == Some(KernelArg::Scalar) { Isa::SCALAR } else { Isa::detect() }
    }
}

/// What is reported of an estimate beside its number.
#[derive(Debug)]
pub struct Report {
    smc: Smc,
    order: String,
    error_from: ErrorFrom,
    /// Estimates of ln p(data) of the runs.
    pub run_log_marginals: Vec<f64>,
    ess_min: f64,
    ess_trace: Vec<(u64, f64)>,
    resampled_at: Vec<u64>,
    n_resampled: Vec<u64>,
    n_ancestors: Vec<usize>,
    n_updates: u64,
}

impl Report {
    /// Collects what an estimate has to say. `to_marginal` is added to each run's ln p(sequence).
    pub fn new(smc: Smc, model: &Model, estimate: &Estimate, to_marginal: f64) -> Self {
        let runs = &estimate.runs;
        let order = match smc.path.order {
            Order::Auto | Order::Random => "random".to_owned(),
            Order::Given => "given".to_owned(),
            Order::By(node) => format!("by:{}", model.node(node).name),
        };
        Report {
            smc,
            order,
            error_from: estimate.error_from,
            run_log_marginals: runs.iter().map(|run| run.ln_p_sequence + to_marginal).collect(),
            ess_min: estimate.ess_min(),
            ess_trace: runs[0].ess_trace.clone(),
            resampled_at: runs[0].resampled_at.clone(),
            n_resampled: runs.iter().map(|run| run.n_resampled).collect(),
            n_ancestors: runs.iter().map(|run| run.n_ancestors).collect(),
            n_updates: runs.iter().map(|run| run.n_updates).sum(),
        }
    }

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
