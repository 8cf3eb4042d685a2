//! `polyurn score --stream`: the running evidence of data that come in batch by batch and are never held.

use super::fit_stream::named;
use super::score_stream_shown::{Settings, StreamShown};
use crate::args::{CheckpointArgs, ScoreArgs, ScoreMethod};
use crate::load::{load_model, parse_seen};
use crate::output::{Failure, Output};
use crate::progress::{check_checkpoint, control};
use crate::stream::{Event, POLL, Reading};
use polyurn::control::Control;
use polyurn::engine::smc::Order;
use polyurn::engine::smc::online::Online;
use polyurn::engine::sweeps::nodes_with_uneven_prior;
use polyurn::graph::{BatchOptions, Model, RowBatch, bind_without_data};
use polyurn::plan::check_reachable_rows;
use polyurn::prior::Prior;
use polyurn::score::Running;
use polyurn::{Error, Stop, Warning};
use std::cell::Cell;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Records of a batch unless `--batch` says otherwise.
const BATCH: u32 = 1000;

/// Nobody knows how far a stream has come.
const NO_SHARE: f64 = f64::NAN;

/// Follows a stream.
pub fn run(args: &ScoreArgs) -> Result<(), Failure> {
    check_flags(args)?;
    let inputs = [args.data.data.as_path(), Path::new(&args.model.model)];
    let mut output = Output::open(&args.output, &inputs)?;
    let is_state = args.online.state.is_some();
    let file = CheckpointArgs {
        checkpoint: args.online.state.clone().or_else(|| args.checkpoint.checkpoint.clone()),
        checkpoint_every: args.checkpoint.checkpoint_every,
    };
    check_checkpoint(&file, &args.output, &inputs, &mut output)?;
    let given = load_model(&args.model.model, &args.prior)?.with_prior()?;
    if given.curve.is_some() {
        let message = "--stream: a stream has no curve; give one value of --a and of each --pseudo-count";
        return Err(Failure::Usage(message.into()));
    }
    let (source, prior_settings) = given.single()?;
    let seen = args.online.seen.as_deref().map(parse_seen).transpose()?;
    let (model, _, warnings) = bind_without_data(&source, seen.as_deref())?;
    let prior = Prior::build(&model, &prior_settings)?;
    check_reachable_rows(&model, &prior)?;
    let (online, is_shuffled) = settings(args, output.n_threads)?;
    let batch = args.online.batch.unwrap_or(BATCH);
    let mut running = Running::new(&model, &prior, &online, is_shuffled, output.seed())?;
    let mut control = control(&output, &args.limits, Some(&file))?;
    if is_state {
        crate::signals::answer_when_stopped(false);
    }
    if let Some(state) = control.load_checkpoint()? {
        let taken_up =
            if is_state { running.go_on_from(&state) } else { running.repeat_from(&state, u64::from(batch)) };
        taken_up.map_err(|error| named(error, &control))?;
    }
    let reading = Reading {
        path: args.data.data.clone(),
        options: crate::load::reading(&args.data.data, &args.data.reading.file, false, &output)?,
        n_passes: 1,
        batches: BatchOptions {
            n_rows: batch as usize,
            columns: args.data.reading.columns.clone(),
            seen: seen.map(|seen| seen.into_iter().map(|(name, _)| name).collect()),
            local: Some(Vec::new()),
            is_numbered: nodes_with_uneven_prior(&model, &prior),
            is_prompt: true,
            known: if is_state { running.labels().to_vec() } else { Vec::new() },
        },
    };
    output.warn(&warnings);
    let settings = Settings { batch, window: online.window };
    let shown = StreamShown { output: &output, settings, model: &model, so_far: Cell::default() };
    let mut stream = Stream { reading, is_state, batch: u64::from(batch), warnings, time: Duration::ZERO };
    let mut failure = None;
    let written = output.write(|out| {
        let mut follow = || -> Result<(), Trouble> {
            let is_stopped = stream.follow(&model, &mut running, &mut control, &shown, out)?;
            let n_said = stream.warnings.len();
            if is_stopped {
                stream.warnings.push(Warning::StreamStopped { tokens: running.n_tokens() });
            }
            let score = running.score(stream.time.as_secs_f64(), std::mem::take(&mut stream.warnings));
            if !is_state {
                file.remove_unless_needed(&score.warnings);
            }
            output.warn(&score.warnings[n_said..]);
            if !score.is_exact() {
                output.note_drawn_seed(args.limits.time_limit.is_some());
            }
            Ok(shown.end(out, &score, &args.model.model, &args.data.data)?)
        };
        follow().map_err(|trouble| match trouble {
            Trouble::Write(error) => error,
            Trouble::Other(other) => {
                failure = Some(other);
                std::io::Error::other("stopped")
            }
        })
    });
    match failure {
        Some(failure) => Err(failure),
        None => written,
    }
}

/// What went wrong while lines were written.
enum Trouble {
    Write(std::io::Error),
    Other(Failure),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Trouble::Write(error)
    }
}

impl<E: Into<Failure>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Trouble::Other(error.into())
    }
}

fn check_flags(args: &ScoreArgs) -> Result<(), Failure> {
    let engine = "smc with --stream";
    if !matches!(args.method, ScoreMethod::Auto | ScoreMethod::Smc) {
        return Err(Failure::Usage("--stream: only --method smc can follow a stream; leave --method out".into()));
    }
    let allowed = ["--particles", "--runs", "--rejuvenate", "--order", "--resample", "--ess", "--kernel"];
    args.particles.check(engine, &allowed)?;
    args.anneal.refuse(engine)?;
    Ok(args.sweeps.refuse(engine)?)
}

/// What was asked for, and whether tokens are shuffled within batches.
fn settings(args: &ScoreArgs, threads: usize) -> Result<(Online, bool), Failure> {
    let (wish, by) = args.particles.wish()?;
    if by.is_some() {
        let message =
            "--order by:NODE: a stream comes as it comes; give `given`, or `random` to shuffle within batches";
        return Err(Failure::Usage(message.into()));
    }
    let online = Online {
        isa: args.particles.isa(),
        threads,
        max_memory: args.limits.max_memory,
        ..Online::of_wish(&wish, args.online.window)
    };
    Ok((online, wish.order == Order::Random))
}

struct Stream {
    reading: Reading,
    is_state: bool,
    /// Rows of a batch.
    batch: u64,
    /// Those that were said.
    warnings: Vec<Warning>,
    /// Time spent on tokens, not on waiting for them.
    time: Duration,
}

impl Stream {
    /// Goes on until the end of the stream or a stop that is to be answered, and keeps the state. True for a stop.
    fn follow(
        &mut self,
        model: &Model,
        running: &mut Running,
        control: &mut Control<'_>,
        shown: &StreamShown<'_>,
        out: &mut dyn Write,
    ) -> Result<bool, Trouble> {
        let events = self.reading.start(model)?;
        let mut stop = None;
        while stop.is_none() {
            if let Err(error) = control.tick("stream", NO_SHARE) {
                stop = Some(error);
                break;
            }
            match events.recv_timeout(POLL) {
                Err(RecvTimeoutError::Timeout) | Ok(Event::PassStarts) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(Event::Failed(error)) => return Err(error.into()),
                Ok(Event::Batch(batch)) => {
                    shown.output.warn(&batch.warnings);
                    stop = self.take(&batch, running, control)?;
                    if !running.is_behind() {
                        shown.batch(out, &running.look(), self.time)?;
                        if !self.is_state && stop.is_none() {
                            control.checkpoint(|| running.state(self.batch))?;
                        }
                    }
                }
            }
        }
        // While tokens are passed over, what was saved is further on.
        if running.is_behind() {
            return Err(match stop {
                Some(error) => error.into(),
                None => {
                    let why = "the data end before the tokens that it was made from do; give the same file";
                    control.refuse_checkpoint(why).into()
                }
            });
        }
        if self.is_state || stop.is_some() {
            control.checkpoint_now(|| running.state(self.batch))?;
        }
        match stop {
            Some(Error::Stopped(Stop::Deadline)) => Ok(true),
            Some(error) => Err(error.into()),
            None => Ok(false),
        }
    }

    /// Takes a batch, and says whether to stop after it or within it.
    fn take(
        &mut self,
        batch: &RowBatch,
        running: &mut Running,
        control: &mut Control<'_>,
    ) -> Result<Option<Error>, Failure> {
        let start = Instant::now();
        let taken = running.take(batch, &mut || control.tick("stream", NO_SHARE));
        self.time += start.elapsed();
        self.warnings.extend(batch.warnings.iter().cloned());
        match taken {
            Ok(()) => Ok(None),
            Err(error @ Error::Stopped(_)) => Ok(Some(error)),
            Err(error) => Err(named(error, control).into()),
        }
    }
}
