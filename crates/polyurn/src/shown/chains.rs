//! What Gibbs chains did, to programs and to people.

use super::number;
use super::text::{plural, show_count, show_short, wrap};
use crate::engine::gibbs::{Moves, Statistic, StatisticKind};
use crate::fit::ChainReport;
use crate::graph::Model;
use serde_json::{Map, Value, json};

impl ChainReport {
    /// Adds the fields of chains to a result.
    pub fn add_to(&self, model: &Model, object: &mut Value) {
        let posterior = &self.posterior;
        let chain = &posterior.result.chains[self.chain()];
        let by_table: Map<String, Value> = (model.tables().iter().zip(&chain.ln_joint_by_table))
            .map(|(table, &ln)| (model.node(table.members[0]).name.clone(), number(ln)))
            .collect();
        let sweeps = posterior.result.chains.iter().map(|chain| chain.ln_joint.len()).min().unwrap_or(0);
        object["objective_trace"] = chain.ln_joint.iter().map(|&ln| number(ln)).collect();
        object["iterations"] = json!(sweeps);
        object["converged"] = json!(posterior.is_mixed());
        object["log_joint"] = number(self.log_joint());
        object["log_joint_by_table"] = by_table.into();
        object["tokens_per_second"] = json!(self.tokens_per_second);
        object["chains"] = json!(posterior.result.chains.len());
        object["sweeps"] = json!(sweeps);
        let (moves, particles) = match self.gibbs.moves {
            Moves::Tokens => ("tokens", None),
            Moves::Conditional(n) => ("conditional", Some(n)),
            Moves::Independent(n) => ("independent", Some(n)),
        };
        object["moves"] = json!(moves);
        if let Some(particles) = particles {
            object["particles"] = json!(particles);
        }
        if let Some(share) = self.share_taken() {
            object["share_taken"] = json!(share);
        }
        object["warm_up"] = json!(self.gibbs.warm_up());
        object["thin"] = json!(self.gibbs.thin());
        object["kept"] = json!(posterior.n_kept);
        object["kernel"] = json!(self.gibbs.isa.name());
        object["from_chain"] = json!(posterior.from_chain);
        object["r_hat"] = self.of_statistics(model, |of| of.r_hat);
        object["effective_size"] = self.of_statistics(model, |of| of.effective_size);
        let best = &posterior.best;
        object["best"] = json!({ "chain": best.run, "log_joint": number(best.log_joint), "ln_pi": number(best.ln_pi) });
    }

    /// Share of the independent moves that were taken.
    fn share_taken(&self) -> Option<f64> {
        let chains = &self.posterior.result.chains;
        let n_sweeps: usize = chains.iter().map(|chain| chain.ln_joint.len()).sum();
        let n_taken: u64 = chains.iter().map(|chain| chain.n_taken).sum();
        let is_independent = matches!(self.gibbs.moves, Moves::Independent(_)) && n_sweeps > 0;
        is_independent.then(|| n_taken as f64 / n_sweeps as f64)
    }

    /// A number of each statistic, by name; null where it is not known.
    fn of_statistics(&self, model: &Model, value: impl Fn(&Statistic) -> Option<f64>) -> Value {
        let (mut all, mut squares) = (Map::new(), Map::new());
        for statistic in &self.posterior.statistics {
            let value = json!(value(statistic));
            match statistic.kind {
                StatisticKind::LogJoint => drop(all.insert("log_joint".into(), value)),
                StatisticKind::EffectiveParameters => drop(all.insert("d_ep".into(), value)),
                StatisticKind::SumOfSquares(table) => {
                    let name = &model.node(model.tables()[table.ix()].members[0]).name;
                    squares.insert(name.clone(), value);
                }
            }
        }
        all.insert("table_sum_of_squares".into(), squares.into());
        all.into()
    }

    /// What was run, for people, in lines behind `indent` blanks.
    pub fn text(&self, indent: usize) -> String {
        let posterior = &self.posterior;
        if posterior.result.n_tokens == 0 {
            return wrap(&["no chains were needed: nothing is hidden".to_owned()], 100 - indent, indent);
        }
        let n_chains = posterior.result.chains.len() as u64;
        let sweeps = posterior.result.chains.iter().map(|chain| chain.ln_joint.len()).min().unwrap_or(0);
        let mut parts = vec![
            format!("{} of {} sweeps", plural(n_chains, "chain"), show_count(sweeps as u64)),
            format!("{} states kept", show_count(posterior.n_kept.iter().sum())),
            format!("{} tokens a second ({})", show_short(self.tokens_per_second), self.gibbs.isa.name()),
        ];
        match (self.gibbs.moves, self.share_taken()) {
            (Moves::Conditional(n), _) => parts.insert(1, format!("each by {n} particles, one in the present state")),
            (Moves::Independent(n), Some(share)) => {
                parts.insert(1, format!("each by {n} particles, {:.0} % taken", 100.0 * share));
            }
            _ => {}
        }
        wrap(&parts, 100 - indent, indent)
    }

    /// Whether chains agree, for people.
    pub fn mixing_text(&self) -> String {
        let known = || self.posterior.statistics.iter().filter_map(|of| of.r_hat.zip(of.effective_size));
        if known().next().is_none() {
            return "not known: too few states were kept, or nothing changes".into();
        }
        let worst = known().map(|(r_hat, _)| r_hat).fold(f64::NEG_INFINITY, f64::max);
        let fewest = known().map(|(_, size)| size).fold(f64::INFINITY, f64::min);
        format!("R-hat {worst:.3} at worst; {fewest:.0} effective draws at least")
    }
}
