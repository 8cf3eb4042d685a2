//! `polyurn score`: the evidence of one model, or of one model at several values of `a`.

use super::curve::Curve;
use crate::args::{AnnealArgs, LimitArgs, ParticleArgs, ScoreArgs, ScoreMethod, SweepArgs};
use crate::grid::Point;
use crate::load::{load_bound, load_model, load_simulated};
use crate::maximise::refuse_varied;
use crate::output::{Failure, Output};
use crate::progress::{SharedBar, check_checkpoint, control};
use polyurn::control::Control;
use polyurn::graph::Binding;
use polyurn::parallel;
use polyurn::prior::PriorSettings;
use polyurn::score::{Means, Method, Score, Scoring, free_sizes};
use polyurn::shown::ShownScore;
use polyurn::{Result, Seed, Warning};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Scores a model.
pub fn run(args: &ScoreArgs) -> std::result::Result<(), Failure> {
    if let Some(path) = &args.heldout {
        return super::heldout::run(args, path);
    }
    if args.online.stream {
        return super::score_stream::run(args);
    }
    let inputs = [args.data.data.as_path(), Path::new(&args.model.model)];
    let mut output = Output::open(&args.output, &inputs)?;
    check_checkpoint(&args.checkpoint, &args.output, &inputs, &mut output)?;
    let given = load_model(&args.model.model, &args.prior)?.with_prior()?;
    let fractions = args.method == ScoreMethod::Vb;
    let (binding, truth) = if args.hide.is_empty() {
        (load_bound(&given.source, &args.data.data, &args.data.reading, fractions, &output)?, None)
    } else {
        let (binding, truth) = load_simulated(&given.source, &args.data, &args.hide, &output)?;
        (binding, Some(truth))
    };
    if args.totals.is_some() && binding.counts.unknown.is_empty() {
        return Err(Failure::Usage("--totals: no cell of the data has the count `?`, so the total is known".into()));
    }
    if let Some(points) = &given.curve {
        refuse_varied(&free_sizes(&args.sweeps.maximise, &binding.model)?, &points[0], &binding.model)?;
    }
    let mut scoring = Scoring {
        given: args.given.clone(),
        totals: args.totals,
        ..scoring(args.method, &args.particles, &args.anneal, &args.sweeps, &args.limits)?
    };
    scoring.anneal.truth = truth;
    let job = Job { args, scoring, binding: &binding, seed: output.seed() };
    match given.curve {
        None => {
            let mut control = control(&output, &args.limits, Some(&args.checkpoint))?;
            let score = job.score(&given.settings, output.n_threads, args.limits.time_limit, &mut control)?;
            drop(control);
            args.checkpoint.remove_unless_needed(&score.warnings);
            output.warn(&score.warnings);
            if !score.is_exact() {
                output.note_drawn_seed(args.limits.time_limit.is_some());
            }
            let shown = ShownScore { score: &score, model: &binding.model };
            output.result(
                || shown.json(output.seed()),
                || shown.text(&args.model.model, &args.data.data.display().to_string()),
            )
        }
        Some(curve) => job.curve(&given.settings, &curve, &output),
    }
}

/// What the flags of engines ask for. Flags that the method has no use for are refused.
pub fn scoring(
    method: ScoreMethod,
    particles: &ParticleArgs,
    anneal: &AnnealArgs,
    sweeps: &SweepArgs,
    limits: &LimitArgs,
) -> Result<Scoring> {
    let method = match method {
        ScoreMethod::Auto if anneal.is_any_given() => Method::Anneal,
        ScoreMethod::Auto => Method::Auto,
        ScoreMethod::Exact => Method::Exact,
        ScoreMethod::Smc => Method::Smc,
        ScoreMethod::Sis => Method::Sis,
        ScoreMethod::Naive => Method::Naive,
        ScoreMethod::Anneal => Method::Anneal,
        ScoreMethod::Vb => Method::Vb,
    };
    match method {
        Method::Exact => particles.check("exact", &[])?,
        Method::Sis => particles.check("sis", &["--particles", "--runs", "--order", "--kernel"])?,
        Method::Naive => particles.check("naive", &["--particles"])?,
        Method::Anneal => particles.check("anneal", &["--particles", "--runs", "--kernel"])?,
        Method::Vb => particles.check("vb", &["--kernel"])?,
        Method::Auto | Method::Smc => {}
    }
    if method != Method::Vb {
        sweeps.refuse(method.name())?;
    }
    if method != Method::Anneal {
        anneal.refuse(method.name())?;
    }
    let (wish, order_by) = particles.wish()?;
    let default = Scoring::default();
    Ok(Scoring {
        method,
        wish,
        anneal: anneal.wish(particles),
        order_by,
        wants_particles: particles.are_wanted(),
        wants_runs: particles.runs.is_some(),
        urns: particles.particles.unwrap_or(default.urns),
        climb: sweeps.climb(particles, 1),
        maximise: sweeps.maximise.clone(),
        isa: particles.isa(),
        max_memory: limits.max_memory,
        ..default
    })
}

/// What is scored.
struct Job<'a> {
    args: &'a ScoreArgs,
    scoring: Scoring,
    binding: &'a Binding,
    seed: Seed,
}

impl Job<'_> {
    /// The evidence at one prior. `time` is what engines that choose their sizes plan for.
    fn score(
        &self,
        settings: &PriorSettings,
        threads: usize,
        time: Option<Duration>,
        control: &mut Control<'_>,
    ) -> Result<Score> {
        let means = Means { threads, time, seed: self.seed };
        let mut score = self.scoring.score(self.binding, settings, means, control)?;
        if self.args.prior.a.is_some() && !settings.tables_follow_a() {
            score.warnings.push(Warning::Odd {
                message: "the prior has a size of its own, so --a moves the Gamma shape alone".into(),
            });
        }
        Ok(score)
    }

    /// The evidence at every point. A time limit is shared out over them.
    fn curve(&self, settings: &PriorSettings, points: &[Point], output: &Output) -> std::result::Result<(), Failure> {
        if self.args.checkpoint.checkpoint.is_some() {
            let message = "--checkpoint: a curve has none; give one value of --a and of each --pseudo-count";
            return Err(Failure::Usage(message.into()));
        }
        let deadline = self.args.limits.time_limit.map(|limit| Instant::now() + limit);
        let n_threads = output.n_threads.clamp(1, points.len());
        let n_started = AtomicUsize::new(0);
        let bar = SharedBar::new(output, points.len());
        crate::signals::answer_when_stopped(false);
        let found = parallel::map(points, n_threads, |point| {
            // The time left, over the points to come on this thread: a quick one leaves its time to the others.
            let ix = n_started.fetch_add(1, Ordering::Relaxed);
            let n_waiting = points.len() - ix;
            let now = Instant::now();
            let n_turns = n_waiting.div_ceil(n_threads) as u32;
            let time = deadline.map(|deadline| deadline.saturating_duration_since(now) / n_turns);
            let mut control = Control::new(bar.job(ix))
                .with_cancel(crate::signals::cancel())
                .with_deadline(deadline)
                .with_turn_end(time.map(|time| now + time));
            // Too late to begin: nothing is made ready in vain.
            control.tick("score", 0.0)?;
            self.score(&point.settings(settings), 1, time, &mut control)
        });
        drop(bar);
        let curve = Curve::new(&self.binding.model, points, found)?;
        output.warn_lines(&curve.warning_lines());
        if !curve.is_exact() {
            output.note_drawn_seed(self.args.limits.time_limit.is_some());
        }
        output.result(|| curve.json(output), || curve.text())
    }
}
