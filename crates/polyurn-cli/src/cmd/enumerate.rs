//! `polyurn enumerate`: every allocation tensor that fits the data.

use crate::args::EnumerateArgs;
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output, number};
use crate::progress::control;
use crate::text::{columns, show_count, show_ln};
use polyurn::engine::Problem;
use polyurn::engine::enumerate::{Enumeration, Tensor};
use polyurn::engine::exact::Exact;
use polyurn::math::log_sum_exp;
use polyurn::prior::Prior;
use polyurn::{Error, Warning};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Lists or counts tensors.
pub fn run(args: &EnumerateArgs) -> Result<(), Failure> {
    let output = Output::open(&args.output, &[&args.data.data, Path::new(&args.model.model)])?;
    let (source, settings) = load_model(&args.model.model, &args.prior)?.with_prior()?.single()?;
    let binding = load_bound(&source, &args.data.data, &args.data.reading, false, &output)?;
    output.warn(&binding.warnings);
    let prior = Prior::build(&binding.model, &settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let total = prior.total(Some(binding.counts.n_tokens))?;
    let job = Job { args, problem: &problem, enumeration: Enumeration::new(&problem, total)?, output: &output };
    if job.enumeration.n_tensors == 0.0 {
        output.warn(&[Warning::ImpossibleData]);
    }
    job.enumeration.check_cost(&Exact { max_memory: args.limits.max_memory })?;
    match args.bins {
        Some(n_bins) => job.histogram(n_bins as usize),
        None if output.json() => job.list_json(),
        None => job.list_csv(),
    }
}

struct Job<'p, 'a> {
    args: &'p EnumerateArgs,
    problem: &'p Problem<'a>,
    enumeration: Enumeration<'p, 'a>,
    output: &'p Output,
}

impl Job<'_, '_> {
    fn for_each(&self, mut emit: impl FnMut(Tensor<'_>) -> polyurn::Result<()>) -> Result<(), Failure> {
        let mut control = control(self.output, &self.args.limits, None)?;
        let limits = Exact { max_memory: self.args.limits.max_memory };
        Ok(self.enumeration.run(&limits, &mut control, &mut emit)?)
    }

    fn list_csv(&self) -> Result<(), Failure> {
        // Errors of the run and of the writer come out of one closure; the run's are kept aside.
        let mut failure = None;
        let written = self.output.write(|out| {
            writeln!(out, "tensor,log_pi,d_ep{}", if self.args.tensors { ",cells" } else { "" })?;
            let mut n = 0u64;
            let mut broken = None;
            let result = self.for_each(|tensor| {
                n += 1;
                let cells = if self.args.tensors { format!(",{}", self.show_cells(&tensor)) } else { String::new() };
                writeln!(out, "{n},{},{}{cells}", tensor.ln_pi, tensor.d_ep).map_err(|source| {
                    broken = Some(source);
                    Error::Stopped(polyurn::Stop::Cancelled)
                })
            });
            match (broken, result) {
                (Some(source), _) => Err(source),
                (None, Err(error)) => {
                    failure = Some(error);
                    Err(std::io::Error::other("the enumeration did not finish"))
                }
                (None, Ok(())) => Ok(()),
            }
        });
        match failure {
            Some(failure) => Err(failure),
            None => written,
        }
    }

    /// Occupied cells as `k=0 i=red:3` joined by blanks and semicolons.
    fn show_cells(&self, tensor: &Tensor<'_>) -> String {
        let cells: Vec<String> = tensor
            .occupied
            .iter()
            .map(|&(cell, n)| {
                let labels = self.labels_of(cell).into_iter().zip(self.problem.model.nodes());
                let values: Vec<String> = labels.map(|(label, node)| format!("{}={label}", node.name)).collect();
                format!("{}: {n}", values.join(" "))
            })
            .collect();
        format!("\"{}\"", cells.join("; ").replace('"', "\"\""))
    }

    /// What the values of a full cell are called, node by node.
    fn labels_of(&self, cell: u32) -> Vec<String> {
        let values = self.enumeration.cells[cell as usize].iter().zip(&self.problem.counts.labels);
        values.map(|(&value, labels)| labels.name(value).into_owned()).collect()
    }

    fn list_json(&self) -> Result<(), Failure> {
        let mut list: Vec<Value> = Vec::new();
        let mut logs = Vec::new();
        self.for_each(|tensor| {
            let mut entry = json!({ "log_pi": number(tensor.ln_pi), "d_ep": tensor.d_ep });
            if self.args.tensors {
                entry["cells"] = tensor
                    .occupied
                    .iter()
                    .map(|&(cell, n)| json!({ "values": self.labels_of(cell), "count": n }))
                    .collect();
            }
            list.push(entry);
            logs.push(tensor.ln_pi);
            Ok(())
        })?;
        let nodes: Vec<&str> = self.problem.model.nodes().iter().map(|node| node.name.as_str()).collect();
        self.output.result(
            || {
                json!({
                    "n_tensors": list.len(),
                    "log_sum_pi": number(log_sum_exp(&logs)),
                    "nodes": nodes,
                    "tensors": list,
                    "seed": self.output.seed(),
                    "version": polyurn::VERSION,
                })
            },
            String::new,
        )
    }

    /// Two passes: the range of ln pi, then the counts. Nothing is kept per tensor.
    fn histogram(&self, n_bins: usize) -> Result<(), Failure> {
        let (mut low, mut high, mut n) = (f64::INFINITY, f64::NEG_INFINITY, 0u64);
        self.for_each(|tensor| {
            low = low.min(tensor.ln_pi);
            high = high.max(tensor.ln_pi);
            n += 1;
            Ok(())
        })?;
        if n == 0 {
            (low, high) = (0.0, 0.0);
        }
        let width = ((high - low) / n_bins as f64).max(f64::MIN_POSITIVE);
        let mut bins = vec![0u64; n_bins];
        let mut by_d_ep: BTreeMap<i64, u64> = BTreeMap::new();
        let mut sum = 0.0;
        self.for_each(|tensor| {
            bins[(((tensor.ln_pi - low) / width) as usize).min(n_bins - 1)] += 1;
            *by_d_ep.entry(tensor.d_ep).or_insert(0) += 1;
            sum += (tensor.ln_pi - high).exp();
            Ok(())
        })?;
        let log_sum = if n == 0 { f64::NEG_INFINITY } else { high + sum.ln() };
        let edges = |ix: usize| (low + width * ix as f64, low + width * (ix + 1) as f64);
        self.output.result(
            || {
                let bins: Vec<Value> = bins
                    .iter()
                    .enumerate()
                    .map(|(ix, count)| json!({ "from": edges(ix).0, "to": edges(ix).1, "count": count }))
                    .collect();
                let d_ep: Vec<Value> = by_d_ep.iter().map(|(d, count)| json!({ "d_ep": d, "count": count })).collect();
                json!({
                    "n_tensors": n,
                    "log_sum_pi": number(log_sum),
                    "bins": bins,
                    "d_ep": d_ep,
                    "seed": self.output.seed(),
                    "version": polyurn::VERSION,
                })
            },
            || {
                let most = bins.iter().copied().max().unwrap_or(1).max(1);
                let mut rows = vec![vec!["ln pi(S) from".to_owned(), "to".into(), "tensors".into()]];
                for (ix, &count) in bins.iter().enumerate() {
                    let bar = "#".repeat((count as f64 / most as f64 * 40.0).ceil() as usize);
                    let (from, to) = edges(ix);
                    rows.push(vec![format!("{from:.4}"), format!("{to:.4}"), show_count(count), format!("{bar:<40}")]);
                }
                let mut by_d = vec![vec!["d_EP".to_owned(), "tensors".into()]];
                by_d.extend(by_d_ep.iter().map(|(d, count)| vec![d.to_string(), show_count(*count)]));
                format!(
                    "{} tensors fit; ln of their probabilities' sum {}\n\n{}\n{}",
                    show_count(n),
                    show_ln(log_sum),
                    columns(&rows),
                    columns(&by_d)
                )
            },
        )
    }
}
