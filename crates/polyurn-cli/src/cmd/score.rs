//! `polyurn score`: the evidence of one model, or of one model at several values of `a`.

use crate::args::{ScoreArgs, ScoreMethod};
use crate::checkpoint::CheckpointFile;
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output, number};
use crate::parallel;
use crate::progress::{check_checkpoint, control};
use crate::text::{columns, plural, show_ln, show_short};
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Cost, Exact, TotalsRange};
use polyurn::evidence::{Evidence, TotalProbability, evidence, ln_p_given, totals};
use polyurn::graph::{Binding, NodeIndex};
use polyurn::math::log_sum_exp;
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Error, Result, Warning};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

/// Scores a model.
pub fn run(args: &ScoreArgs) -> std::result::Result<(), Failure> {
    let output = Output::open(&args.output, &[&args.data.data, Path::new(&args.model.model)])?;
    let given = load_model(&args.model.model, &args.prior)?;
    let binding = load_bound(&given.source, &args.data.data, &args.data.reading)?;
    if args.totals.is_some() && binding.counts.unknown.is_empty() {
        return Err(Failure::Usage("--totals: no cell of the data has the count `?`, so the total is known".into()));
    }
    check_checkpoint(&args.checkpoint, &args.output)?;
    let job = Job { args, binding: &binding };
    match given.curve {
        None => {
            let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
            let score = job.score(&given.settings, &mut control)?;
            drop(control);
            if let Some(path) = &args.checkpoint.checkpoint {
                CheckpointFile::remove(path);
            }
            output.warn(&score.warnings);
            output.result(|| score.json(&output), || score.text(&args.model.model, &args.data.data))
        }
        Some(curve) => job.curve(&given.settings, &curve, &output),
    }
}

/// What is scored.
struct Job<'a> {
    args: &'a ScoreArgs,
    binding: &'a Binding,
}

/// The answer.
struct Score {
    a: f64,
    shape: f64,
    rate: f64,
    log_marginal: f64,
    parts: Option<Evidence>,
    given: Option<f64>,
    totals: Option<Vec<TotalProbability>>,
    why: String,
    kernel: &'static str,
    seconds: f64,
    tokens: u64,
    records: u64,
    warnings: Vec<Warning>,
}

impl Job<'_> {
    fn score(&self, settings: &PriorSettings, control: &mut Control<'_>) -> Result<Score> {
        let start = Instant::now();
        let Binding { model, counts, warnings } = self.binding;
        let prior = Prior::build(model, settings)?;
        let problem = Problem::new(model, &prior, counts)?;
        let exact = Exact { max_memory: self.args.limits.max_memory };
        let has_unseen = problem.plan.patterns().iter().any(|pattern| !pattern.unseen.is_empty());
        let mut score = Score {
            a: settings.a.unwrap_or(prior.shape()),
            shape: prior.shape(),
            rate: 0.0,
            log_marginal: 0.0,
            parts: None,
            given: None,
            totals: None,
            why: String::new(),
            kernel: if has_unseen || !counts.unknown.is_empty() { "state map" } else { "closed form" },
            seconds: 0.0,
            tokens: counts.n_tokens,
            records: counts.n_records() as u64,
            warnings: warnings.clone(),
        };
        if counts.unknown.is_empty() {
            score.rate = prior.total(Some(counts.n_tokens))?.rate;
            let given = self.given_nodes(&problem)?;
            let ln_p_given = ln_p_given(&problem, &given)?;
            let prepared = exact.prepare(&problem)?;
            score.why = self.why(has_unseen, prepared.cost());
            let sequence = prepared.ln_p_sequence(control)?.ln_p_sequence;
            let parts = evidence(&problem, sequence)?;
            score.log_marginal = parts.log_marginal;
            score.given = (!given.is_empty()).then(|| (sequence - ln_p_given).value());
            score.parts = Some(parts);
        } else {
            if !self.args.given.is_empty() {
                return Err(Error::Setting("--given: there is no one sequence when some cells are unknown".into()));
            }
            score.rate = prior.total(None)?.rate;
            score.why = "the posterior of the total is exact".into();
            let list = totals(&problem, &exact, self.args.totals.unwrap_or(TotalsRange::Auto), control)?;
            score.log_marginal = log_sum_exp(&list.iter().map(|entry| entry.log_joint).collect::<Vec<_>>());
            score.totals = Some(list);
        }
        if self.args.prior.a.is_some() && !settings.tables_follow_a() {
            score.warnings.push(Warning::Odd {
                message: "the prior has a size of its own, so --a moves the Gamma shape alone".into(),
            });
        }
        if !prior.is_consistent() {
            score.warnings.push(Warning::InconsistentPrior);
        }
        if score.log_marginal == f64::NEG_INFINITY {
            score.warnings.push(Warning::ImpossibleData);
        }
        score.seconds = start.elapsed().as_secs_f64();
        Ok(score)
    }

    fn given_nodes(&self, problem: &Problem<'_>) -> Result<Vec<NodeIndex>> {
        let find = |name: &String| {
            problem
                .model
                .find(name)
                .ok_or_else(|| Error::Setting(format!("--given {name}: the model has no such node")))
        };
        let mut nodes: Vec<NodeIndex> = self.args.given.iter().map(find).collect::<Result<_>>()?;
        nodes.sort_unstable();
        nodes.dedup();
        Ok(nodes)
    }

    fn why(&self, has_unseen: bool, cost: Cost) -> String {
        match self.args.method {
            _ if !has_unseen => "nothing has to be summed out: the evidence has a closed form".into(),
            ScoreMethod::Exact => "asked for".into(),
            ScoreMethod::Auto => {
                format!("small enough to be exact: about {} states foreseen", show_short(cost.states))
            }
        }
    }

    fn curve(&self, settings: &PriorSettings, values: &[f64], output: &Output) -> std::result::Result<(), Failure> {
        if self.args.checkpoint.checkpoint.is_some() {
            return Err(Failure::Usage("--checkpoint: a curve over `a` has none; give one value of --a".into()));
        }
        let deadline = self.args.limits.time_limit.map(|limit| Instant::now() + limit);
        let scores: Vec<Score> = parallel::map(values, output.n_threads, |&a| {
            let mut control = Control::default().with_cancel(crate::signals::cancel()).with_deadline(deadline);
            self.score(&PriorSettings { a: Some(a), ..settings.clone() }, &mut control)
        })
        .into_iter()
        .collect::<Result<_>>()?;
        output.warn(&scores[0].warnings);
        let logs: Vec<f64> = scores.iter().map(|score| score.log_marginal).collect();
        let integrated = log_sum_exp(&logs) - (logs.len() as f64).ln();
        let best = (0..logs.len()).max_by(|&x, &y| logs[x].total_cmp(&logs[y])).expect("at least one value");
        output.result(
            || {
                json!({
                    "log_marginal": number(integrated),
                    "bound": "exact",
                    "method": "exact",
                    "best": { "a": values[best], "log_marginal": number(logs[best]) },
                    "curve": scores.iter().map(|score| score.json(output)).collect::<Vec<_>>(),
                    "version": polyurn::VERSION,
                })
            },
            || {
                let mut rows = vec![vec!["a".to_owned(), "ln evidence".into(), String::new()]];
                for (ix, (a, ln)) in values.iter().zip(&logs).enumerate() {
                    let mark = if ix == best { "largest" } else { "" };
                    rows.push(vec![show_short(*a), show_ln(*ln), mark.into()]);
                }
                format!("{}\nln evidence, a log-uniform on these values: {}\n", columns(&rows), show_ln(integrated))
            },
        )
    }
}

impl Score {
    fn json(&self, output: &Output) -> Value {
        let part = |f: fn(&Evidence) -> f64| self.parts.as_ref().map_or(Value::Null, |parts| number(f(parts)));
        let mut object = json!({
            "log_marginal": number(self.log_marginal),
            "log_p_total": part(|parts| parts.log_p_total),
            "log_arrangements": part(|parts| parts.log_arrangements),
            "log_p_sequence": part(|parts| parts.log_p_sequence),
            "std_error": null,
            "bound": "exact",
            "method": "exact",
            "why": self.why,
            "particles": null,
            "runs": null,
            "run_log_marginals": [],
            "seed": output.seed(),
            "seconds": self.seconds,
            "kernel": self.kernel,
            "ess_min": null,
            "tokens": self.tokens,
            "records": self.records,
            "a": self.a,
            "shape": self.shape,
            "b": self.rate,
            "warnings": warnings_json(&self.warnings),
            "version": polyurn::VERSION,
        });
        if let Some(given) = self.given {
            object["log_p_sequence_given"] = number(given);
        }
        if let Some(totals) = &self.totals {
            object["totals"] = totals
                .iter()
                .map(|entry| json!({ "tokens": entry.tokens, "log_joint": number(entry.log_joint) }))
                .collect();
        }
        object
    }

    fn text(&self, model: &str, data: &Path) -> String {
        let mut text = format!(
            "model        {}\ndata         {}: {}, {}\nmethod       exact ({})\n\n",
            model.split_whitespace().collect::<Vec<_>>().join(" "),
            data.display(),
            plural(self.tokens, "token"),
            plural(self.records, "distinct record"),
            self.why
        );
        let mut rows = vec![vec!["ln evidence".to_owned(), show_ln(self.log_marginal)]];
        if let Some(parts) = &self.parts {
            for (name, value) in [
                ("  total", parts.log_p_total),
                ("  arrangements", parts.log_arrangements),
                ("  sequence", parts.log_p_sequence),
            ] {
                rows.push(vec![name.into(), show_ln(value)]);
            }
        }
        if let Some(given) = self.given {
            rows.push(vec!["ln p(sequence | given)".into(), show_ln(given)]);
        }
        text += &columns(&rows);
        if let Some(totals) = &self.totals {
            text += &self.totals_text(totals);
        }
        text
    }

    /// The posterior of the total: its mode, and the totals that hold nearly all of it.
    fn totals_text(&self, totals: &[TotalProbability]) -> String {
        let mode = totals.iter().max_by(|x, y| x.log_joint.total_cmp(&y.log_joint)).expect("at least one total");
        let probability = |entry: &TotalProbability| (entry.log_joint - self.log_marginal).exp();
        let mean: f64 = totals.iter().map(|entry| entry.tokens as f64 * probability(entry)).sum();
        let mut rows = vec![vec!["total".to_owned(), "ln p(seen, total)".into(), "probability".into()]];
        let shown: Vec<&TotalProbability> = totals.iter().filter(|entry| probability(entry) >= 1e-3).take(60).collect();
        let n_hidden = totals.len() - shown.len();
        for entry in shown {
            rows.push(vec![entry.tokens.to_string(), show_ln(entry.log_joint), format!("{:.4}", probability(entry))]);
        }
        let more =
            if n_hidden == 0 { String::new() } else { format!("and {n_hidden} less probable totals (see --json)\n") };
        format!("\nmost probable total {}, mean {}\n\n{}{more}", mode.tokens, show_short(mean), columns(&rows))
    }
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
