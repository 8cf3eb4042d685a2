//! `polyurn score --heldout`: how well a fit predicts records that it has not seen (docs/predict.md).

use super::predict::block::Block;
use super::predict::label_of;
use super::predict::new_values::{Collected, NewValues};
use super::predict::patterns::{Pattern, Patterns};
use super::predict::rows::{Binding, Reading, RowReader, ValueNames};
use crate::args::{ScoreArgs, ScoreMethod, UnseenArg};
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output, number};
use crate::progress::{control, watched};
use crate::text::{plural, show_error, show_estimate, show_whole};
use polyurn::counts::MISSING;
use polyurn::engine::Problem;
use polyurn::engine::smc::{Crew, Settled};
use polyurn::engine::sweeps::Vb;
use polyurn::fit_file::{FitData, FitFile, FitPrior, Intensity};
use polyurn::graph::{NodeIndex, TableIndex, local_nodes};
use polyurn::io::{ReadOptions, read_rows_watched};
use polyurn::predict::{Draw, Predictor, Workspace};
use polyurn::prior::Prior;
use polyurn::score::free_sizes;
use polyurn::shown::warnings_json;
use polyurn::{VERSION, Warning};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

/// Fits, and scores records that were held out.
pub fn run(args: &ScoreArgs, heldout: &Path) -> Result<(), Failure> {
    if !heldout.is_file() {
        let what =
            if heldout == Path::new("-") { "standard input can be read only once" } else { "there is no such file" };
        return Err(Failure::Usage(format!("--heldout {}: {what}; give a file", heldout.display())));
    }
    let output = Output::open(&args.output, &[&args.data.data, heldout, Path::new(&args.model.model)])?;
    let start = Instant::now();
    let (fit, mut warnings) = fit(args, &output)?;
    let predictor = Predictor::new(&fit, Draw::Means)?;
    let mut scoring = Scoring::new(args, heldout, &predictor, &output);
    scoring.read()?;
    warnings.append(&mut scoring.warnings);
    output.warn(&warnings);
    output.note_drawn_seed(args.limits.time_limit.is_some());
    let seconds = start.elapsed().as_secs_f64();
    output.result(|| scoring.json(&fit, &output, &warnings, seconds), || scoring.text(&fit))
}

/// The fit, as `polyurn fit` would write it.
fn fit(args: &ScoreArgs, output: &Output) -> Result<(FitFile, Vec<Warning>), Failure> {
    let (source, settings) = load_model(&args.model.model, &args.prior)?.with_prior()?.single()?;
    let is_vb = match args.method {
        ScoreMethod::Auto | ScoreMethod::Vb => true,
        ScoreMethod::Smc => false,
        _ => return Err(Failure::Usage("--heldout: the fit is made by --method vb (the default) or smc".into())),
    };
    if let Some(flag) = args.anneal.given() {
        return Err(Failure::Usage(format!("{flag}: --heldout has no use for it; leave it out")));
    }
    if is_vb {
        args.particles.check("vb", &["--kernel"])?;
    } else {
        args.sweeps.refuse("smc")?;
    }
    let binding = load_bound(&source, &args.data.data, &args.data.reading, is_vb, output)?;
    let prior = Prior::build(&binding.model, &settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let mut warnings = binding.warnings.clone();
    let mut control = control(output, &args.limits, None)?;
    let (method, tables, prior, objective) = if is_vb {
        let vb = Vb {
            climb: args.sweeps.climb(&args.particles, output.n_threads),
            start: None,
            free: free_sizes(&args.sweeps.maximise, problem.model)?,
        };
        let fit = vb.fit(&problem, output.seed(), &mut control)?;
        warnings.extend(fit.climbs.warnings.iter().cloned());
        ("vb", fit.tables(&problem), fit.prior.clone(), fit.bound.value())
    } else {
        let crew = Crew { isa: args.particles.isa(), threads: output.n_threads, max_memory: args.limits.max_memory };
        let wish = args.particles.wish_for(&problem, args.limits.time_limit)?;
        let Settled { smc, warning, .. } = wish.settle(&problem, crew, output.seed(), &mut control)?;
        warnings.extend(warning);
        let posterior = smc.posterior(&problem, output.seed(), &mut control)?;
        warnings.extend(posterior.estimate.warnings.iter().cloned());
        ("smc", posterior.tables, prior.clone(), posterior.estimate.ln_p_sequence)
    };
    let n_tables = binding.model.tables().len() as u32;
    let counts = &binding.counts;
    let file = FitFile {
        labels: counts.labels.clone(),
        is_seen: counts.seen_anywhere(),
        method: method.into(),
        label_averaged: Vec::new(),
        intensity: Intensity::Point(counts.total()),
        prior: FitPrior {
            is_given: true,
            tables: (0..n_tables).map(|ix| prior.table(TableIndex(ix)).clone()).collect(),
            a: prior.a(),
            shape: prior.shape(),
            rate: prior.rate(),
        },
        tables,
        best: None,
        draws: Vec::new(),
        value_counts: vec![None; binding.model.n_nodes()],
        data: FitData::default(),
        settings: Value::Null,
        seed: output.seed().0,
        command_line: Vec::new(),
        version: VERSION.into(),
        result: json!({ "objective": number(objective) }),
        model: binding.model,
    };
    Ok((file, warnings))
}

/// Sums over units: documents where there are some, else tokens.
#[derive(Debug, Default)]
struct Sums {
    n_units: f64,
    tokens: f64,
    ln: f64,
    tokens_squared: f64,
    ln_squared: f64,
    product: f64,
}

impl Sums {
    /// A unit: its tokens, and ln probability of all of them.
    fn add(&mut self, tokens: f64, ln: f64) {
        self.n_units += 1.0;
        self.tokens += tokens;
        self.ln += ln;
        self.tokens_squared += tokens * tokens;
        self.ln_squared += ln * ln;
        self.product += tokens * ln;
    }

    /// So many units of one token, all with this ln probability: a row with a count is as many rows.
    fn add_each(&mut self, n: f64, ln: f64) {
        self.n_units += n;
        self.tokens += n;
        self.ln += n * ln;
        self.tokens_squared += n;
        self.ln_squared += n * ln * ln;
        self.product += n * ln;
    }

    /// ln probability of a token, on average.
    fn mean(&self) -> f64 {
        self.ln / self.tokens
    }

    /// Its standard error, units being independent: that of a ratio of two sums.
    fn error(&self) -> Option<f64> {
        let mean = self.mean();
        let squares = self.ln_squared - 2.0 * mean * self.product + mean * mean * self.tokens_squared;
        let factor = self.n_units / (self.n_units - 1.0);
        let error = (squares.max(0.0) * factor).sqrt() / self.tokens;
        (self.n_units > 1.0 && error.is_finite()).then_some(error)
    }
}

struct Scoring<'a> {
    args: &'a ScoreArgs,
    path: &'a Path,
    predictor: &'a Predictor<'a>,
    output: &'a Output,
    /// Seen roots with hidden children: what is scored is given them.
    given: Vec<NodeIndex>,
    sums: Sums,
    /// ln probability with the roots, where all their values are known.
    ln_joint: f64,
    n_used: f64,
    n_known: u64,
    n_new: u64,
    n_dropped: u64,
    /// Tokens that show nothing to be scored by.
    n_empty: f64,
    warnings: Vec<Warning>,
}

impl<'a> Scoring<'a> {
    fn new(args: &'a ScoreArgs, path: &'a Path, predictor: &'a Predictor<'a>, output: &'a Output) -> Self {
        let fit = predictor.fit();
        Scoring {
            args,
            path,
            predictor,
            output,
            given: local_nodes(&fit.model, &fit.is_seen),
            sums: Sums::default(),
            ln_joint: 0.0,
            n_used: 0.0,
            n_known: 0,
            n_new: 0,
            n_dropped: 0,
            n_empty: 0.0,
            warnings: Vec::new(),
        }
    }

    /// Reads the file: first for tokens that tell about new documents, then to score the others.
    fn read(&mut self) -> Result<(), Failure> {
        let names = ValueNames::new(self.predictor.fit());
        let mut patterns = Patterns::new(self.predictor, Vec::new(), false);
        let mut new_values = NewValues::new(self.predictor);
        if !self.predictor.open_roots().is_empty() {
            let (mut collected, mut halves) = (Collected::default(), Halves::default());
            let mut n_used = 0.0;
            self.rows(&names, &mut new_values, |binding, block, _| {
                let asked = patterns.of(binding, block)?;
                collected.add_weighted(block, &asked, |row| {
                    let (used, _) = halves.of(block, row);
                    n_used += used;
                    used
                });
                Ok(())
            })?;
            new_values.infer(self.predictor, &collected, self.output.n_threads);
            self.n_used = n_used;
            self.n_new = new_values.n_values().map(|(.., new)| new).sum();
            self.n_known = new_values.n_values().map(|(_, known, _)| known).sum();
        }
        let mut halves = Halves::default();
        let mut units: HashMap<(u32, u32), (f64, f64)> = HashMap::new();
        let (mut sums, mut ln_joint, mut n_dropped, mut n_empty) = (Sums::default(), 0.0, 0, 0.0);
        let (given, predictor, n_threads) = (&self.given, self.predictor, self.output.n_threads);
        self.warnings = self.rows(&names, &mut new_values, |binding, block, new_values| {
            let asked = patterns.of(binding, block)?;
            let lns = ln_probabilities(predictor, block, &asked, new_values, n_threads);
            for (row, ln) in lns.into_iter().enumerate() {
                let (_, n) = halves.of(block, row);
                if n == 0.0 {
                    continue;
                }
                let record = block.record(row);
                let is_shown = |node: &&NodeIndex| record[node.ix()] != MISSING;
                // A token that shows nothing but where it is has nothing to be scored by.
                let n_shown = record.iter().filter(|&&value| value != MISSING).count();
                if n_shown == given.iter().filter(is_shown).count() {
                    n_empty += n;
                    continue;
                }
                let roots = given.iter().filter(is_shown).map(|&node| predictor.ln_root(node, record[node.ix()]));
                let ln_given = ln - roots.sum::<f64>();
                ln_joint += n * ln;
                match given.first().filter(is_shown) {
                    // Of those without a document nobody knows which belong together.
                    None => sums.add_each(n, ln_given),
                    Some(root) => {
                        let at = predictor.open_roots().iter().position(|open| open == root);
                        let label = at.and_then(|at| label_of(block, row, at)).unwrap_or(u32::MAX);
                        let unit = units.entry((record[root.ix()], label)).or_default();
                        unit.0 += n;
                        unit.1 += n * ln_given;
                    }
                }
            }
            n_dropped += block.n_dropped;
            Ok(())
        })?;
        self.warnings.extend(new_values.warnings(self.predictor.fit()));
        let mut units: Vec<((u32, u32), (f64, f64))> = units.into_iter().collect();
        // A fixed order gives the same bytes each time.
        units.sort_unstable_by_key(|unit| unit.0);
        units.into_iter().for_each(|(_, (n, ln))| sums.add(n, ln));
        (self.sums, self.ln_joint, self.n_dropped, self.n_empty) = (sums, ln_joint, n_dropped, n_empty);
        if self.sums.tokens == 0.0 {
            return Err(Failure::Usage(format!(
                "{}: there is nothing to score: no row shows more than what is given; name the columns after the model's nodes",
                self.path.display()
            )));
        }
        Ok(())
    }

    fn rows<'r>(
        &'r self,
        names: &'r ValueNames<'r>,
        new_values: &'r mut NewValues,
        take: impl FnMut(&Binding, &Block, &mut NewValues) -> polyurn::Result<()>,
    ) -> Result<Vec<Warning>, Failure> {
        let reading = &self.args.data.reading;
        let drops = self.args.unseen == Some(UnseenArg::Drop);
        let how = Reading {
            predictor: self.predictor,
            names,
            columns: reading.columns.clone(),
            keep: &[],
            drops,
            together: false,
            needs_counts: true,
        };
        let mut reader = RowReader::new(how, new_values, take);
        let mut control = watched(self.output);
        // As the data were cut that were fitted.
        let options = ReadOptions { cuts: self.output.cuts(), ..reading.file.uncut(true) };
        read_rows_watched(self.path, &options, &mut reader, &mut |share| control.tick("held out", share))?;
        reader.finish()?;
        Ok(reader.take_warnings())
    }

    /// What the error is over: records, or values of a node.
    fn units(&self) -> String {
        let (n, s) = (show_whole(self.sums.n_units), if self.sums.n_units == 1.0 { "" } else { "s" });
        let name = |node| &self.predictor.fit().model.node(node).name;
        self.given.first().map_or_else(|| format!("{n} record{s}"), |&node| format!("{n} value{s} of {}", name(node)))
    }

    fn unit_name(&self) -> &str {
        self.given.first().map_or("records", |&node| &self.predictor.fit().model.node(node).name)
    }

    fn json(&self, fit: &FitFile, output: &Output, warnings: &[Warning], seconds: f64) -> Value {
        let (mean, error) = (self.sums.mean(), self.sums.error());
        let perplexity = (-mean).exp();
        let given: Vec<&String> = self.given.iter().map(|&node| &fit.model.node(node).name).collect();
        json!({
            "heldout": self.path.display().to_string(),
            "method": fit.method,
            "objective": fit.result["objective"],
            "given": given,
            "log_probability": if self.n_new > 0 { Value::Null } else { number(self.ln_joint) },
            "log_probability_given": number(self.sums.ln),
            "log_probability_per_token": number(mean),
            "std_error": error,
            "perplexity": number(perplexity),
            "perplexity_std_error": error.map(|error| perplexity * error),
            "tokens": self.sums.tokens,
            "units": self.unit_name(),
            "n_units": self.sums.n_units,
            "known_values": self.n_known,
            "new_values": self.n_new,
            "inference_tokens": self.n_used,
            "dropped_values": self.n_dropped,
            "empty_tokens": self.n_empty,
            "seed": output.seed(),
            "seconds": seconds,
            "warnings": warnings_json(warnings),
            "version": VERSION,
        })
    }

    fn text(&self, fit: &FitFile) -> String {
        let (mean, error) = (self.sums.mean(), self.sums.error());
        let perplexity = (-mean).exp();
        let mut text = String::new();
        let mut line = |name: &str, value: String| text += &format!("{name:<30} {}\n", value.trim_end());
        let given: Vec<&str> = self.given.iter().map(|&node| fit.model.node(node).name.as_str()).collect();
        let title = if given.is_empty() {
            "ln probability".to_owned()
        } else {
            format!("ln probability given {}", given.join(", "))
        };
        line(&title, format!("{:.4}", self.sums.ln));
        line("per token", format!("{} {}", show_estimate(mean, error), show_error(error)));
        let error = error.map(|error| perplexity * error);
        line("perplexity", format!("{} {}", show_estimate(perplexity, error), show_error(error)));
        line("tokens scored", format!("{}, in {}", show_whole(self.sums.tokens), self.units()));
        if self.n_known > 0 {
            line("known", format!("{}, with their rows of the fit", plural(self.n_known, "value")));
        }
        if self.n_new > 0 {
            let new = plural(self.n_new, "new value");
            line("new", format!("{new}, inferred from {} other tokens", show_whole(self.n_used)));
        }
        if self.n_empty > 0.0 {
            line("tokens left out", format!("{}, which show nothing to be scored by", self.n_empty));
        }
        if self.n_dropped > 0 {
            line("taken as missing", plural(self.n_dropped, "value"));
        }
        line("fit", format!("by {}", fit.method));
        text
    }
}

/// Which tokens of a new document tell about it, and which are scored: they take turns, in the order of the file.
#[derive(Debug, Default)]
struct Halves {
    n_before: HashMap<(usize, u32), u64>,
}

impl Halves {
    /// Tokens of a row that tell about its new values, and tokens that are scored.
    fn of(&mut self, block: &Block, row: usize) -> (f64, f64) {
        let n = block.tokens(row).unwrap_or(0.0);
        let Some(key) = (0..block.n_open).find_map(|root| Some((root, label_of(block, row, root)?))) else {
            return (0.0, n);
        };
        if n.fract() != 0.0 || n > 1e15 {
            return (n / 2.0, n / 2.0);
        }
        let before = self.n_before.entry(key).or_insert(0);
        // The first tells, the second is scored, and so on.
        let n_scored = (*before + n as u64) / 2 - *before / 2;
        *before += n as u64;
        (n - n_scored as f64, n_scored as f64)
    }
}

/// ln probability of each row.
fn ln_probabilities(
    predictor: &Predictor<'_>,
    block: &Block,
    patterns: &[Pattern],
    new_values: &NewValues,
    n_threads: usize,
) -> Vec<f64> {
    let size = block.n_rows().div_ceil(4 * n_threads).max(256);
    let starts: Vec<usize> = (0..block.n_rows()).step_by(size).collect();
    let parts = polyurn::parallel::map(&starts, n_threads, |&start| {
        let mut work = Workspace::default();
        let rows = start..(start + size).min(block.n_rows());
        rows.map(|row| {
            let new = new_values.of_row(block, row);
            predictor.answer(&patterns[row].plain, block.record(row), &new, &mut work)
        })
        .collect::<Vec<f64>>()
    });
    parts.concat()
}
