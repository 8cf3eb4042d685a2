//! `polyurn fit`: posterior means of every table and of d_EP, exact, from particles or from chains, or the best tables.

use super::fit_found::{Found, Intensity};
use super::fit_shown::Fit;
use super::fit_written::Source;
use crate::args::{FitArgs, FitMethod};
use crate::chains;
use crate::described::Question;
use crate::load::{load_bound, load_model};
use crate::output::{Failure, Output};
use crate::particles::Report;
use crate::progress::{check_checkpoint, control};
use clap::ValueEnum;
use polyurn::Warning;
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Exact, posterior};
use polyurn::engine::smc::{Crew, Settled};
use polyurn::engine::sweeps::{BestAllocation, Em, Given, Mode, Vb, kl_divergence};
use polyurn::evidence::evidence;
use polyurn::math::Double;
use polyurn::prior::Prior;
use polyurn::score::{Maximised, free_sizes};
use std::path::Path;
use std::time::Instant;

/// Fits a model.
pub fn run(args: &FitArgs) -> Result<(), Failure> {
    if args.method == FitMethod::Svb {
        return super::fit_stream::run(args);
    }
    if let Some(method) = args.method.to_possible_value() {
        args.stream.refuse(method.get_name())?;
        if args.method != FitMethod::Gibbs {
            args.chains.refuse(method.get_name())?;
        }
    }
    let inputs = [args.data.data.as_path(), Path::new(&args.model.model)];
    let mut output = Output::open(&args.output, &inputs)?;
    check_checkpoint(&args.checkpoint, &args.output, &inputs, &mut output)?;
    let fit_path = output.take_path();
    let given = load_model(&args.model.model, &args.prior)?;
    let has_prior = given.has_prior;
    let given = if matches!(args.method, FitMethod::Em | FitMethod::Icm) { given } else { given.with_prior()? };
    let (source, settings) = given.single()?;
    let fractions = matches!(args.method, FitMethod::Vb | FitMethod::Em);
    let binding = load_bound(&source, &args.data.data, &args.data.reading, fractions, &output)?;
    let start = Instant::now();
    let prior = Prior::build(&binding.model, &settings)?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    if !binding.counts.unknown.is_empty() && !matches!(args.method, FitMethod::Vb | FitMethod::Em) {
        return Err(Failure::Usage("fit: with unknown cells (`?`) use --method vb or em".into()));
    }
    args.decomposition.check(problem.model)?;
    let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
    let mut warnings = binding.warnings.clone();
    let mut found = match args.method {
        FitMethod::Exact => by_states(args, &problem, &mut control, &mut warnings)?,
        FitMethod::Smc => by_particles(args, &problem, &output, &mut control, &mut warnings)?,
        FitMethod::Gibbs => by_chains(args, &problem, &output, &mut control, &mut warnings)?,
        FitMethod::Vb => by_vb(args, &problem, &output, &mut control, &mut warnings)?,
        FitMethod::Em => by_em(args, &problem, has_prior, &output, &mut control, &mut warnings)?,
        FitMethod::DualEm | FitMethod::Icm => {
            by_allocation(args, &problem, has_prior, &output, &mut control, &mut warnings)?
        }
        FitMethod::Svb => unreachable!("streams have a way of their own"),
    };
    drop(control);
    let found_prior = found.prior.take();
    let problem = match &found_prior {
        Some(prior) => problem.with_prior(prior),
        None => problem,
    };
    let decomposition = found.decomposition(&args.decomposition, &problem)?;
    args.checkpoint.remove_unless_needed(&warnings);
    if found.objective == f64::NEG_INFINITY {
        let is_start = args.sweeps.init.is_some();
        warnings.push(if is_start { Warning::ImpossibleStart } else { Warning::ImpossibleData });
    }
    if has_prior && !problem.prior.is_consistent() {
        warnings.push(Warning::InconsistentPrior);
    }
    output.warn(&warnings);
    if args.method != FitMethod::Exact {
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
    if let Some(path) = fit_path {
        let is_seen = problem.counts.seen_anywhere();
        Source { args, is_seen, has_prior }.write(&path, &fit, &output)?;
    }
    let question = Question {
        command: "fit",
        model: &args.model.model,
        data: &args.data.data,
        problem: &problem,
        is_seen: &problem.counts.seen_anywhere(),
        has_prior,
        n_tokens: problem.counts.unknown.is_empty().then_some(problem.counts.total()),
    };
    output.result(|| question.add_to(fit.json(&output)), || fit.text())
}

/// The exact posterior.
fn by_states(
    args: &FitArgs,
    problem: &Problem<'_>,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.particles.check("exact", &[])?;
    args.sweeps.refuse("exact")?;
    refuse_hidden(args, "exact")?;
    let posterior = posterior(&Exact { max_memory: args.limits.max_memory }, problem, control)?;
    let names: Vec<String> = posterior.label_averaged().map(|node| problem.model.node(node).name.clone()).collect();
    let is_label_averaged = !names.is_empty();
    if is_label_averaged {
        warnings.push(Warning::LabelAveraged { nodes: names });
    }
    let evidence = evidence(problem, posterior.ln_p_sequence)?;
    Ok(Found {
        d_ep: Some(posterior.d_ep()),
        squares: Some(posterior.table_sum_of_squares()),
        n_states: Some(posterior.n_states()),
        is_label_averaged,
        ..Found::new("exact", evidence, posterior.table_means(problem), posterior_intensity(problem, 0.0)?)
    })
}

/// The posterior from weighted particles.
fn by_particles(
    args: &FitArgs,
    problem: &Problem<'_>,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.sweeps.refuse("smc")?;
    let crew = Crew { isa: args.particles.isa(), threads: output.n_threads, max_memory: args.limits.max_memory };
    let wish = args.particles.wish_for(problem, args.limits.time_limit)?;
    let Settled { smc, warning, .. } = wish.settle(problem, crew, output.seed(), control)?;
    warnings.extend(warning);
    let n_draws = args.draws.map_or(0, |n| n as usize);
    let posterior = smc.posterior_with_draws(problem, n_draws, output.seed(), control)?;
    warnings.extend(posterior.estimate.warnings.iter().cloned());
    if let Some(run) = posterior.from_run {
        let nodes = posterior.exchangeable.iter().map(|&node| problem.model.node(node).name.clone()).collect();
        warnings.push(Warning::LabelsOfOneRun { run: run as u64, nodes });
    }
    let evidence = evidence(problem, Double::from(posterior.estimate.ln_p_sequence))?;
    let to_marginal = evidence.log_p_total + evidence.log_arrangements;
    Ok(Found {
        d_ep: posterior.d_ep,
        squares: posterior.table_sum_of_squares.clone(),
        particles: Some((Report::new(smc, problem.model, &posterior.estimate, to_marginal), posterior.clone())),
        ..Found::new("smc", evidence, posterior.tables, posterior_intensity(problem, 0.0)?)
    })
}

/// The posterior from Gibbs chains.
fn by_chains(
    args: &FitArgs,
    problem: &Problem<'_>,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.particles.check("gibbs", &["--kernel", "--particles"])?;
    args.sweeps.refuse("gibbs")?;
    let n_particles = args.particles.particles.map(|n| n as usize);
    let gibbs = args.chains.settle(problem, n_particles, args.particles.isa(), args.limits.time_limit, output)?;
    let n_draws = args.draws.map_or(0, |n| n as usize);
    let start = Instant::now();
    let posterior = gibbs.posterior(problem, n_draws, output.seed(), control)?;
    let seconds = start.elapsed().as_secs_f64();
    warnings.extend(posterior.result.warnings.iter().cloned());
    if let Some(chain) = posterior.from_chain {
        let nodes = posterior.exchangeable.iter().map(|&node| problem.model.node(node).name.clone()).collect();
        warnings.push(Warning::LabelsOfOneChain { chain: chain as u64, nodes });
    }
    let tables = posterior.tables.clone();
    let report = chains::Report::new(gibbs, posterior, seconds);
    Ok(Found {
        objective: report.log_joint(),
        d_ep: report.posterior.d_ep,
        squares: report.posterior.table_sum_of_squares.clone(),
        chains: Some(report),
        ..Found::plain("gibbs", tables, posterior_intensity(problem, 0.0)?)
    })
}

/// Variational Bayes.
fn by_vb(
    args: &FitArgs,
    problem: &Problem<'_>,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.particles.check("vb", &["--kernel"])?;
    args.sweeps.refuse_mode("vb")?;
    args.sweeps.refuse_of_em("vb")?;
    refuse_hidden(args, "vb")?;
    let vb = Vb {
        climb: args.sweeps.sweeps.climb(&args.particles, output.n_threads),
        start: args.sweeps.start()?,
        free: free_sizes(&args.sweeps.sweeps.maximise, problem.model)?,
    };
    let fit = vb.fit(problem, output.seed(), control)?;
    warnings.extend(fit.climbs.warnings.iter().cloned());
    // What was free in the prior is now known.
    let settled = &problem.with_prior(&fit.prior);
    let intensity = posterior_intensity(settled, fit.n_unknown.unwrap_or(0.0))?;
    let divergence = kl_divergence(problem.counts, fit.ln_likelihood(problem), intensity.mean());
    let tables = fit.tables(problem);
    let parts = fit.n_unknown.is_none().then(|| evidence(settled, fit.bound)).transpose()?;
    // Objectives of all sweeps and starts are counted from the prior as it was given.
    let given = if vb.free.is_nothing() || parts.is_none() { parts } else { Some(evidence(problem, fit.bound)?) };
    let constant = given.map_or(0.0, |given| given.log_p_total + given.log_arrangements);
    Ok(Found {
        // With all digits where there are parts to add up.
        objective: parts.map_or(fit.bound.value(), |parts| parts.log_marginal),
        evidence: parts,
        maximised: Maximised::all(&args.sweeps.sweeps.maximise, &vb.free, &fit),
        divergence,
        prior: Some(fit.prior),
        climbs: Some((fit.climbs, constant)),
        n_unknown: fit.n_unknown,
        ..Found::plain("vb", tables, intensity)
    })
}

/// Expectation maximisation.
fn by_em(
    args: &FitArgs,
    problem: &Problem<'_>,
    has_prior: bool,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    args.particles.check("em", &["--kernel"])?;
    args.sweeps.sweeps.refuse_maximise("em")?;
    refuse_hidden(args, "em")?;
    let em = Em {
        climb: args.sweeps.sweeps.climb(&args.particles, output.n_threads),
        trials: args.sweeps.trials.unwrap_or(Em::default().trials),
        mode: args.sweeps.mode(has_prior)?,
        turns: args.sweeps.turns(),
        start: args.sweeps.start()?,
    };
    let fit = em.fit(problem, output.seed(), control)?;
    warnings.extend(fit.climbs.warnings.iter().cloned());
    let divergence = kl_divergence(problem.counts, fit.ln_likelihood, fit.intensity);
    let tables = fit.tables(problem);
    Ok(Found {
        objective: fit.climbs.trace.last().copied().unwrap_or(f64::NEG_INFINITY),
        ln_likelihood: Some(fit.ln_likelihood),
        is_likelihood: !has_prior,
        divergence,
        n_unknown: fit.n_unknown,
        climbs: Some((fit.climbs, 0.0)),
        ..Found::plain("em", tables, Intensity::Point(fit.intensity))
    })
}

/// Dual EM and iterated conditional modes.
fn by_allocation(
    args: &FitArgs,
    problem: &Problem<'_>,
    has_prior: bool,
    output: &Output,
    control: &mut Control<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Found, Failure> {
    let method = if args.method == FitMethod::DualEm { "dual-em" } else { "icm" };
    args.particles.check(method, &["--kernel"])?;
    args.sweeps.sweeps.refuse_maximise(method)?;
    args.sweeps.refuse_of_em(method)?;
    refuse_hidden(args, method)?;
    let given = if args.method == FitMethod::DualEm {
        args.sweeps.refuse_mode(method)?;
        Given::Expectations
    } else {
        Given::Modes(args.sweeps.mode(has_prior)?)
    };
    let climb = args.sweeps.sweeps.climb(&args.particles, output.n_threads);
    let fit = BestAllocation { climb, given, start: args.sweeps.start()? }.fit(problem, output.seed(), control)?;
    warnings.extend(fit.climbs.warnings.iter().cloned());
    let objective = fit.climbs.trace.last().copied().unwrap_or(f64::NEG_INFINITY);
    let tables = fit.tables(problem);
    let ln_likelihood = fit.ln_likelihood(problem);
    let (intensity, constant) = if given == Given::Expectations {
        let parts = evidence(problem, Double::from(objective))?;
        (posterior_intensity(problem, 0.0)?, parts.log_p_total + parts.log_arrangements)
    } else if has_prior {
        let total = problem.prior.total_of(Some(problem.counts.total()))?;
        let less = if given == Given::Modes(Mode::Density) { 1.0 } else { 0.0 };
        let shape = (total.shape + problem.counts.total() - less).max(0.0);
        (Intensity::Point(shape / (total.rate + 1.0)), 0.0)
    } else {
        (Intensity::Point(problem.counts.total()), 0.0)
    };
    Ok(Found {
        objective: objective + constant,
        ln_likelihood: Some(ln_likelihood),
        divergence: kl_divergence(problem.counts, ln_likelihood, intensity.mean()),
        climbs: Some((fit.climbs, constant)),
        ..Found::plain(method, tables, intensity)
    })
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

/// Gamma(shape + T, rate + 1), theory.md section 5; T may have an expected part.
fn posterior_intensity(problem: &Problem<'_>, n_unknown: f64) -> Result<Intensity, Failure> {
    let counts = problem.counts;
    let total = problem.prior.total_of(counts.unknown.is_empty().then_some(counts.total()))?;
    Ok(Intensity::Gamma { shape: total.shape + counts.total() + n_unknown, rate: total.rate + 1.0 })
}
