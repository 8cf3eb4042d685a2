//! `polyurn fit`: posterior means of every table and of d_EP, exact, from particles or from chains, or the best tables.

use super::fit_written::{digest_of, settings, write};
use crate::args::{DecompositionArgs, FitArgs, FitMethod};
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output, command_line};
use crate::progress::{check_checkpoint, control};
use clap::ValueEnum;
use polyurn::engine::Problem;
use polyurn::engine::sweeps::{Em, Mode};
use polyurn::fit::{self, Fit, FitSource, Fitting};
use polyurn::prior::Prior;
use polyurn::score::Means;
use polyurn::shown::{DecompositionWish, Question};
use std::path::Path;
use std::time::Instant;

/// Fits a model.
pub fn run(args: &FitArgs) -> Result<(), Failure> {
    let Some(method) = engine(args.method) else { return super::fit_stream::run(args) };
    args.stream.refuse(method.name())?;
    if method != fit::FitMethod::Gibbs {
        args.chains.refuse(method.name())?;
    }
    let inputs = [args.data.data.as_path(), Path::new(&args.model.model)];
    let mut output = Output::open(&args.output, &inputs)?;
    check_checkpoint(&args.checkpoint, &args.output, &inputs, &mut output)?;
    let fit_path = output.take_path();
    let given = load_model(&args.model.model, &args.prior)?;
    let has_prior = given.has_prior;
    let given = if method.needs_no_prior() { given } else { given.with_prior()? };
    let (source, prior_settings) = given.single()?;
    let binding = load_bound(&source, &args.data.data, &args.data.reading, method.takes_fractions(), &output)?;
    let start = Instant::now();
    let prior = Prior::build(&binding.model, &prior_settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let wish = args.decomposition.wish();
    wish.check(problem.model)?;
    let fitting = fitting(args, method, has_prior)?;
    let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
    let means = Means { threads: output.n_threads, time: args.limits.time_limit, seed: output.seed() };
    let (mut found, said) = fitting.fit(&problem, means, &mut control)?;
    drop(control);
    let warnings = [binding.warnings.clone(), said].concat();
    let found_prior = found.prior.take();
    let problem = match &found_prior {
        Some(prior) => problem.with_prior(prior),
        None => problem,
    };
    let decomposition = found.decomposition(&wish, &problem)?;
    args.checkpoint.remove_unless_needed(&warnings);
    output.warn(&warnings);
    if method != fit::FitMethod::Exact {
        output.note_drawn_seed(args.limits.time_limit.is_some());
    }
    let fit = Fit {
        problem: &problem,
        found,
        decomposition,
        shows_hidden: args.hidden,
        seconds: start.elapsed().as_secs_f64(),
        warnings,
    };
    let is_seen = problem.counts.seen_anywhere();
    let data = args.data.data.display().to_string();
    if let Some(path) = fit_path {
        let source = FitSource {
            data: data.clone(),
            sha256: digest_of(&args.data.data)?,
            is_seen: is_seen.clone(),
            has_prior,
            settings: settings(args, &output.cuts()),
            seed: output.seed(),
            command_line: command_line(),
        };
        write(&path, &source.file(&fit))?;
    }
    let question = Question {
        command: "fit",
        model: &args.model.model,
        data: &data,
        problem: &problem,
        is_seen: &is_seen,
        has_prior,
        n_tokens: problem.counts.unknown.is_empty().then_some(problem.counts.total()),
        command_line: &command_line(),
    };
    output.result(|| question.add_to(fit.json(output.seed())), || fit.text())
}

/// The engine; none for streams, which have a way of their own.
fn engine(method: FitMethod) -> Option<fit::FitMethod> {
    let name = method.to_possible_value()?;
    fit::FitMethod::ALL.into_iter().find(|engine| engine.name() == name.get_name())
}

/// What the flags of engines ask for. Flags that the method has no use for are refused.
fn fitting(args: &FitArgs, method: fit::FitMethod, has_prior: bool) -> Result<Fitting, Failure> {
    let (name, sweeps) = (method.name(), &args.sweeps);
    let takes_hidden = matches!(method, fit::FitMethod::Smc | fit::FitMethod::Gibbs);
    if !takes_hidden {
        refuse_hidden(args, name)?;
    }
    match method {
        fit::FitMethod::Exact => args.particles.check(name, &[])?,
        fit::FitMethod::Smc => {}
        fit::FitMethod::Gibbs => args.particles.check(name, &["--kernel", "--particles"])?,
        _ => args.particles.check(name, &["--kernel"])?,
    }
    match method {
        fit::FitMethod::Exact | fit::FitMethod::Smc | fit::FitMethod::Gibbs => sweeps.refuse(name)?,
        fit::FitMethod::Vb => {
            sweeps.refuse_mode(name)?;
            sweeps.refuse_of_em(name)?;
        }
        fit::FitMethod::Em => sweeps.sweeps.refuse_maximise(name)?,
        fit::FitMethod::DualEm | fit::FitMethod::Icm => {
            sweeps.sweeps.refuse_maximise(name)?;
            sweeps.refuse_of_em(name)?;
            if method == fit::FitMethod::DualEm {
                sweeps.refuse_mode(name)?;
            }
        }
    }
    let has_mode = matches!(method, fit::FitMethod::Em | fit::FitMethod::Icm);
    let n_particles = args.particles.particles.map(|n| n as usize);
    let (wish, order_by) = args.particles.wish()?;
    Ok(Fitting {
        method,
        wish,
        order_by,
        climb: sweeps.sweeps.climb(&args.particles, 1),
        start: sweeps.start()?,
        maximise: sweeps.sweeps.maximise.clone(),
        mode: if has_mode { sweeps.mode(has_prior)? } else { Mode::Softmax },
        turns: sweeps.turns(),
        trials: sweeps.trials.unwrap_or(Em::default().trials),
        chains: args.chains.wish(n_particles.filter(|_| method == fit::FitMethod::Gibbs))?,
        n_draws: args.draws.map_or(0, |n| n as usize),
        has_prior,
        isa: args.particles.isa(),
        max_memory: args.limits.max_memory,
    })
}

impl DecompositionArgs {
    /// The same for the library.
    pub fn wish(&self) -> DecompositionWish {
        DecompositionWish {
            factors: self.factors,
            top: self.top,
            marginals: self.marginals.clone(),
            expected: self.expected,
        }
    }
}

pub(super) fn refuse_hidden(args: &FitArgs, engine: &str) -> Result<(), Failure> {
    if args.hidden {
        return Err(Failure::Usage(format!(
            "--hidden: --method {engine} does not list hidden values; use --method smc or gibbs"
        )));
    }
    if args.draws.is_some_and(|n| n > 0) {
        return Err(Failure::Usage(format!(
            "--draws: --method {engine} draws no allocations; use --method smc or gibbs"
        )));
    }
    Ok(())
}
