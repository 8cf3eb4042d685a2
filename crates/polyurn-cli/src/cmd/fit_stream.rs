//! `polyurn fit --method svb`: tables from a stream, which is read in batches and never held.

use super::fit::refuse_hidden;
use super::fit_written::{digest_of, settings as given_settings, write};
use crate::args::{FitArgs, KernelArg, StreamArgs};
use crate::load::{load_model, parse_seen};
use crate::output::{Failure, Output, command_line};
use crate::progress::{check_checkpoint, control};
use crate::stream::{Event, POLL, Reading};
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{StochasticVb, nodes_with_uneven_prior};
use polyurn::fit::{Fit, FitSource, StreamAsked, StreamFit, StreamOutcome};
use polyurn::graph::{BatchOptions, Model, NodeIndex, bind_without_data};
use polyurn::plan::check_reachable_rows;
use polyurn::prior::Prior;
use polyurn::shown::Question;
use polyurn::simd::Isa;
use polyurn::{Error, Stop};
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

/// Records of a batch unless `--batch` says otherwise.
const BATCH: u32 = 10_000;

/// Fits a model to a stream.
pub fn run(args: &FitArgs) -> Result<(), Failure> {
    check_flags(args)?;
    let inputs = [args.data.data.as_path(), Path::new(&args.model.model)];
    let mut output = Output::open(&args.output, &inputs)?;
    check_checkpoint(&args.checkpoint, &args.output, &inputs, &mut output)?;
    let fit_path = output.take_path();
    let (source, prior_settings) = load_model(&args.model.model, &args.prior)?.with_prior()?.single()?;
    let n_tokens = args.stream.tokens.ok_or_else(|| {
        Failure::Usage("--method svb needs --tokens N, the number of tokens of the whole stream".into())
    })?;
    let seen = args.stream.seen.as_deref().map(parse_seen).transpose()?;
    let (model, is_seen, mut warnings) = bind_without_data(&source, seen.as_deref())?;
    let wish = args.decomposition.wish();
    wish.check(&model)?;
    let prior = Prior::build(&model, &prior_settings)?;
    check_reachable_rows(&model, &prior)?;
    prior.total(Some(n_tokens))?;
    let defaults = StochasticVb::new(n_tokens as f64);
    let settings = StochasticVb {
        decay: args.stream.kappa.unwrap_or(defaults.decay),
        delay: args.stream.tau.unwrap_or(defaults.delay),
        isa: if args.particles.kernel == Some(KernelArg::Scalar) { Isa::SCALAR } else { Isa::detect() },
        threads: output.n_threads,
        ..defaults
    };
    let reading = Reading {
        path: args.data.data.clone(),
        options: crate::load::reading(&args.data.data, &args.data.reading.file, false, &output)?,
        n_passes: args.stream.passes.unwrap_or(1),
        batches: BatchOptions {
            n_rows: args.stream.batch.unwrap_or(BATCH) as usize,
            columns: args.data.reading.columns.clone(),
            seen: seen.map(|seen| seen.into_iter().map(|(name, _)| name).collect()),
            local: local_nodes_of(&args.stream, &model)?,
            is_numbered: nodes_with_uneven_prior(&model, &prior),
            ..Default::default()
        },
    };
    let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
    let start = Instant::now();
    let stream = Stream { model: &model, prior: &prior, settings: &settings, n_tokens, reading: &reading };
    let (mut stream_fit, is_cut) = stream.learn(&output, &mut control)?;
    drop(control);
    let asked = StreamAsked { n_tokens, n_passes: reading.n_passes, batch: reading.batches.n_rows, is_cut };
    let StreamOutcome { counts, found, is_seen: stream_seen, came, warnings: said } =
        stream_fit.outcome(&model, &prior, asked)?;
    warnings.extend(said);
    output.warn(&warnings);
    output.note_drawn_seed(args.limits.time_limit.is_some());
    args.checkpoint.remove_unless_needed(&warnings);
    let problem = Problem::new(&model, &prior, &counts)?;
    let decomposition = if wish.is_wanted() {
        let intensity = found.intensity.mean();
        Some(wish.report(&problem, &is_seen, &found.tables, intensity, "means after the last batch")?)
    } else {
        None
    };
    let seconds = start.elapsed().as_secs_f64();
    let fit = Fit { problem: &problem, found, decomposition, shows_hidden: false, seconds, warnings };
    let data = args.data.data.display().to_string();
    if let Some(path) = fit_path {
        let source = FitSource {
            data: data.clone(),
            sha256: digest_of(&args.data.data)?,
            is_seen: stream_seen,
            has_prior: true,
            settings: given_settings(args, &output.cuts()),
            seed: output.seed(),
            command_line: command_line(),
        };
        write(&path, &source.file(&fit))?;
    }
    // Without --seen, what was seen is known from the labels that came.
    let question = Question {
        command: "fit",
        model: &args.model.model,
        data: &data,
        problem: &problem,
        is_seen: if args.stream.seen.is_some() { &is_seen } else { &came },
        has_prior: true,
        n_tokens: Some(n_tokens as f64),
        command_line: &command_line(),
    };
    output.result(|| question.add_to(fit.json(output.seed())), || fit.text())
}

fn check_flags(args: &FitArgs) -> Result<(), Failure> {
    args.particles.check("svb", &["--kernel"])?;
    args.sweeps.refuse("svb")?;
    args.chains.refuse("svb")?;
    refuse_hidden(args, "svb")?;
    if args.decomposition.expected {
        return Err(Failure::Usage("--expected: --method svb does not keep the records; leave it out".into()));
    }
    if (args.decomposition.factors || args.decomposition.top.is_some()) && args.stream.seen.is_none() {
        return Err(Failure::Usage("--factors and --top: with --method svb say by --seen which nodes are seen".into()));
    }
    match args.stream.passes {
        Some(passes) if passes > 1 && args.data.data == Path::new("-") => Err(Failure::Usage(format!(
            "--passes {passes}: standard input can be read only once; give a file, or one pass"
        ))),
        _ => Ok(()),
    }
}

fn local_nodes_of(args: &StreamArgs, model: &Model) -> Result<Option<Vec<NodeIndex>>, Failure> {
    let Some(names) = &args.local else { return Ok(None) };
    if names.len() == 1 && names[0] == "none" {
        return Ok(Some(Vec::new()));
    }
    let find = |name: &String| {
        model.find(name).ok_or_else(|| Failure::Usage(format!("--local {name}: the model has no such node")))
    };
    names.iter().map(find).collect::<Result<_, _>>().map(Some)
}

struct Stream<'a> {
    model: &'a Model,
    prior: &'a Prior,
    settings: &'a StochasticVb,
    n_tokens: u64,
    reading: &'a Reading,
}

impl Stream<'_> {
    /// What was learned, and whether the time was up before the end.
    fn learn(&self, output: &Output, control: &mut Control<'_>) -> Result<(StreamFit, bool), Failure> {
        let events = self.reading.start(self.model)?;
        let asked = self.n_tokens as f64 * f64::from(self.reading.n_passes);
        let mut learned: Option<StreamFit> = None;
        let mut is_cut = false;
        loop {
            let share = learned.as_ref().map_or(0.0, |so_far| so_far.learner.n_tokens_seen() as f64 / asked);
            match (control.tick("svb", share), &mut learned) {
                (Err(Error::Stopped(Stop::Deadline)), Some(so_far)) if !so_far.learner.is_behind() => {
                    is_cut = true;
                    control.checkpoint_now(|| so_far.learner.state())?;
                    break;
                }
                (Err(error), so_far) => {
                    // While batches are passed over, what was saved is further on.
                    if let Some(so_far) = so_far.as_ref().filter(|so_far| !so_far.learner.is_behind()) {
                        control.checkpoint_now(|| so_far.learner.state())?;
                    }
                    return Err(error.into());
                }
                (Ok(()), _) => {}
            }
            match events.recv_timeout(POLL) {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(Event::Failed(error)) => return Err(error.into()),
                Ok(Event::PassStarts) => {
                    if let Some(so_far) = &mut learned {
                        so_far.learner.start_pass();
                    }
                }
                Ok(Event::Batch(batch)) => {
                    let so_far = match &mut learned {
                        Some(so_far) => so_far,
                        None => {
                            let so_far = {
                                let begun =
                                    StreamFit::begin(self.settings, self.model, self.prior, &batch, output.seed())?;
                                learned.insert(begun)
                            };
                            if let Some(state) = control.load_checkpoint()? {
                                so_far.learner.go_on_from(&state).map_err(|error| named(error, control))?;
                            }
                            so_far
                        }
                    };
                    so_far.take(*batch).map_err(|error| named(error, control))?;
                    if !so_far.learner.is_behind() {
                        control.checkpoint(|| so_far.learner.state())?;
                    }
                }
            }
        }
        if let Some(so_far) = &learned
            && so_far.learner.is_behind()
        {
            let why = "the data end before the batches that it was learned from do; give the same file";
            return Err(control.refuse_checkpoint(why).into());
        }
        let none = || Failure::Usage(format!("{}: there are no tokens to learn from", self.reading.name()));
        Ok((learned.ok_or_else(none)?, is_cut))
    }
}

/// An error about a checkpoint, with its name.
pub(super) fn named(error: Error, control: &Control<'_>) -> Error {
    match error {
        Error::Checkpoint(why) => control.refuse_checkpoint(&why),
        error => error,
    }
}
