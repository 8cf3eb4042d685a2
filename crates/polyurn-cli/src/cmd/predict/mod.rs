//! `polyurn predict`: a fit applied to new records, one line out for each row in, in constant memory.

pub(super) mod block;
pub(super) mod new_values;
pub(super) mod patterns;
pub(super) mod rows;
mod shown;

use crate::args::{PredictArgs, UnseenArg};
use crate::output::{Failure, Output};
use crate::progress::watched;
use crate::text::plural;
use block::{Block, NO_LABEL};
use new_values::{Collected, NewValues};
use patterns::Patterns;
use polyurn::fit_file::FitFile;
use polyurn::graph::NodeIndex;
use polyurn::io::{Cuts, ReadOptions, Stamp, read_rows_watched};
use polyurn::predict::{Allocation, Predictor};
use polyurn::{Error, Stop, Warning};
use rows::{Binding, Reading, RowReader, ValueNames};
use shown::Shown;
use std::io::Write;
use std::path::Path;

/// Rows that are held at a time, about.
const BLOCK: usize = 65_536;

/// Predicts.
pub fn run(args: &PredictArgs) -> Result<(), Failure> {
    let output = Output::open(&args.output, &[&args.data.data, &args.fit])?;
    let fit = FitFile::read(&args.fit)?;
    let draw = args.draw.unwrap_or_default();
    let predictor = Predictor::new(&fit, draw)?;
    let given = given_nodes(args, &predictor)?;
    let names = ValueNames::new(&fit);
    let mut run = Run {
        args,
        predictor: &predictor,
        names: &names,
        given,
        output: &output,
        cuts: cuts_of(&fit, args)?,
        patterns: Some(Patterns::new(&predictor, predictor.hidden(), args.impute)),
        new_values: NewValues::new(&predictor),
        allocation: draw.stored(&fit)?.map(Allocation::of),
        n_rows: 0,
        n_dropped: 0,
        warnings: Vec::new(),
    };
    // A file can be read twice, so that rows of a new value may stand anywhere in it.
    let is_file = args.data.data != Path::new("-") && args.data.data.is_file();
    let reads_twice = is_file && !args.together && !predictor.open_roots().is_empty();
    let stamp = reads_twice.then(|| Stamp::of(&args.data.data)).transpose()?;
    if reads_twice {
        run.collect().map_err(|failure| match failure {
            Failure::Library(Error::Stopped(_)) => interrupted(args),
            other => other,
        })?;
    }
    let mut failure = None;
    let written = output.write(|out| {
        run.predict(!reads_twice, output.json(), out).map_err(|error| match error {
            Stopped::Writing(error) => error,
            Stopped::Failed(error) => {
                failure = Some(error);
                std::io::Error::other("stopped")
            }
        })?;
        // What was collected must be of the same rows.
        stamp.as_ref().map_or(Ok(()), Stamp::check).map_err(|error| {
            failure = Some(error);
            std::io::Error::other("changed")
        })
    });
    match failure {
        Some(Error::Stopped(_)) => return Err(interrupted(args)),
        Some(error) => return Err(error.into()),
        None => {}
    }
    written?;
    output.warn(&run.warnings);
    if !output.json() {
        output.note_formulas(&predictor.fit().labels);
    }
    output.note(&run.summary());
    Ok(())
}

/// Where the fit cut columns of numbers into categories: rows to predict are cut there too.
fn cuts_of(fit: &FitFile, args: &PredictArgs) -> Result<Vec<Cuts>, Failure> {
    if !args.data.reading.file.bin.is_empty() {
        let message = "--bin: a fit keeps its own cuts, and rows are cut there; leave the flag out";
        return Err(Failure::Usage(message.into()));
    }
    let wrong = |error| Failure::Usage(format!("{}: its cuts cannot be read ({error}); fit anew", args.fit.display()));
    fit.settings.get("bins").map_or(Ok(Vec::new()), |bins| serde_json::from_value(bins.clone()).map_err(wrong))
}

/// What is left of a prediction that was stopped.
fn interrupted(args: &PredictArgs) -> Failure {
    Failure::Interrupted(match &args.output.output {
        Some(path) => format!(
            "stopped on request; {} was not written, since a file is written whole or not at all: repeat the command, or leave -o \
             out and keep the rows that are printed",
            path.display()
        ),
        None => "stopped on request; rows that were printed are complete".into(),
    })
}

/// The roots whose values are taken as given in `log_probability_given`.
fn given_nodes(args: &PredictArgs, predictor: &Predictor<'_>) -> Result<Vec<NodeIndex>, Failure> {
    let fit = predictor.fit();
    let Some(names) = &args.given else { return Ok(polyurn::graph::local_nodes(&fit.model, &fit.is_seen)) };
    let find = |name: &String| match fit.model.find(name) {
        Some(node) if !fit.is_seen[node.ix()] || !fit.model.node(node).parents.is_empty() => {
            Err(Failure::Usage(format!("--given {name}: only seen nodes without parents can be given")))
        }
        Some(node) => Ok(node),
        None => Err(Failure::Usage(format!("--given {name}: the fit has no such node"))),
    };
    names.iter().map(find).collect()
}

/// Why predicting stopped.
pub(super) enum Stopped {
    Writing(std::io::Error),
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Stopped::Failed(error)
    }
}

struct Run<'a> {
    args: &'a PredictArgs,
    predictor: &'a Predictor<'a>,
    names: &'a ValueNames<'a>,
    given: Vec<NodeIndex>,
    output: &'a Output,
    /// Where the fit cut columns of numbers.
    cuts: Vec<Cuts>,
    /// What is asked; taken out while rows are read.
    patterns: Option<Patterns<'a>>,
    new_values: NewValues,
    allocation: Option<Allocation>,
    n_rows: u64,
    n_dropped: u64,
    warnings: Vec<Warning>,
}

impl Run<'_> {
    fn read(
        &self,
        stage: &str,
        together: bool,
        new_values: &mut NewValues,
        take: &mut dyn FnMut(&Binding, &Block, &mut NewValues) -> Result<(), Stopped>,
    ) -> Result<Vec<Warning>, Stopped> {
        let options = ReadOptions { cuts: self.cuts.clone(), ..self.args.data.reading.file.uncut(true) };
        let mut stopped = None;
        let reading = Reading {
            predictor: self.predictor,
            names: self.names,
            columns: self.args.data.reading.columns.clone(),
            keep: &self.args.keep,
            drops: self.args.unseen == UnseenArg::Drop,
            together,
            needs_counts: false,
        };
        let mut reader =
            RowReader::new(reading, new_values, |binding: &Binding, block: &Block, new_values: &mut NewValues| {
                take(binding, block, new_values).map_err(|error| match error {
                    Stopped::Failed(error) => error,
                    Stopped::Writing(error) => {
                        stopped = Some(error);
                        Error::Stopped(Stop::Cancelled)
                    }
                })
            });
        let mut control = watched(self.output);
        let mut watch = |share| control.tick(stage, share);
        let result = read_rows_watched(&self.args.data.data, &options, &mut reader, &mut watch);
        let result = result.and_then(|_| reader.finish());
        let warnings = reader.take_warnings();
        match (stopped, result) {
            (Some(error), _) => Err(Stopped::Writing(error)),
            (None, Err(error)) => Err(Stopped::Failed(error)),
            (None, Ok(())) => Ok(warnings),
        }
    }

    /// Reads all rows of new values and infers theirs.
    fn collect(&mut self) -> Result<(), Failure> {
        let mut new_values = std::mem::take(&mut self.new_values);
        let mut all_patterns = self.patterns.take().expect("put back after each reading");
        let mut collected = Collected::default();
        let result = self.read("reading", false, &mut new_values, &mut |binding, block, _| {
            let patterns = all_patterns.of(binding, block)?;
            collected.add(block, &patterns);
            Ok(())
        });
        match result {
            Ok(_) => {}
            Err(Stopped::Failed(error)) => return Err(error.into()),
            Err(Stopped::Writing(error)) => return Err(Failure::Write(error.to_string())),
        }
        new_values.infer(self.predictor, &collected, self.output.n_threads);
        self.new_values = new_values;
        self.patterns = Some(all_patterns);
        Ok(())
    }

    /// Reads rows and writes a line for each.
    fn predict(&mut self, together: bool, json: bool, out: &mut dyn Write) -> Result<(), Stopped> {
        let mut new_values = std::mem::take(&mut self.new_values);
        let mut all_patterns = self.patterns.take().expect("put back after each reading");
        let mut allocation = self.allocation.take();
        let mut has_header = false;
        let (mut n_rows, mut n_dropped) = (0, 0);
        let warnings = self.read("predicting", together, &mut new_values, &mut |binding, block, new_values| {
            let patterns = all_patterns.of(binding, block)?;
            if together {
                let mut collected = Collected::default();
                collected.add(block, &patterns);
                new_values.infer(self.predictor, &collected, self.output.n_threads);
            }
            let shown = Shown { predictor: self.predictor, args: self.args, given: &self.given, binding, json };
            if !has_header && !json {
                out.write_all(shown.header().as_bytes()).map_err(Stopped::Writing)?;
            }
            has_header = true;
            let drawn: Vec<_> = match &mut allocation {
                Some(allocation) => (0..block.n_rows()).map(|row| block.take_from(row, allocation)).collect(),
                None => Vec::new(),
            };
            let n_chunks = (4 * self.output.n_threads).min(block.n_rows().div_ceil(256)).max(1);
            let size = block.n_rows().div_ceil(n_chunks).max(1);
            let starts: Vec<usize> = (0..block.n_rows()).step_by(size).collect();
            let texts = polyurn::parallel::map(&starts, self.output.n_threads, |&start| {
                let end = (start + size).min(block.n_rows());
                shown.lines(block, start..end, &patterns, new_values, &drawn)
            });
            for text in texts {
                out.write_all(text.as_bytes()).map_err(Stopped::Writing)?;
            }
            n_rows += block.n_rows() as u64;
            n_dropped += block.n_dropped;
            if together {
                new_values.forget();
            }
            Ok(())
        })?;
        (self.n_rows, self.n_dropped) = (n_rows, n_dropped);
        self.warnings = warnings;
        self.warnings.extend(new_values.warnings(self.predictor.fit()));
        self.new_values = new_values;
        Ok(())
    }

    fn summary(&self) -> String {
        let mut parts = vec![plural(self.n_rows, "row")];
        for (node, known, new) in self.new_values.n_values() {
            let name = &self.predictor.fit().model.node(node).name;
            for (n, what) in [(known, "known value"), (new, "new value")].into_iter().filter(|(n, _)| *n > 0) {
                parts.push(format!("{} of {name}", plural(n, what)));
            }
        }
        if self.n_dropped > 0 {
            let values = plural(self.n_dropped, "value");
            parts.push(format!("{values} that the fit does not know taken as missing"));
        }
        parts.join(", ")
    }
}

/// A row's new label of an open root, if it has one.
pub(super) fn label_of(block: &Block, row: usize, root: usize) -> Option<u32> {
    Some(block.new_label(row, root)).filter(|&label| label != NO_LABEL)
}
