//! Climbing from several starts until an objective stands still.

use super::arrangement::Arrangement;
use super::cells::Pseudo;
use super::divergence::perfect_ln_likelihood;
use super::layout::Layout;
use super::numbers::Numbers;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::mixer::Mixer;
use crate::engine::replicates::{Replicates, Stage, Team, Watch, replicates};
use crate::error::{Error, Result, Stop};
use crate::math::TINY;
use crate::prior::PseudoCount;
use crate::simd::Isa;
use crate::{Seed, Warning};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;

/// How to climb.
#[derive(Debug, Clone, PartialEq)]
pub struct Climb {
    /// Starts in all; the best is kept.
    pub restarts: u64,
    /// Sweeps of each start at most.
    pub max_iter: u64,
    /// A climb ends when a sweep changes the objective by no more than this share of it, or of its distance from that of
    /// tables that fit the data perfectly, if that is less. Zero never stops early.
    pub tol: f64,
    /// Threads, over starts or over records.
    pub threads: usize,
    /// Instructions to use.
    pub isa: Isa,
}

impl Default for Climb {
    fn default() -> Self {
        Climb { restarts: 4, max_iter: 1000, tol: 1e-8, threads: 1, isa: Isa::detect() }
    }
}

/// One start, climbed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Climbed {
    /// The objective after each sweep.
    pub trace: Vec<f64>,
    pub end: End,
    /// What the engine keeps of its last state.
    pub state: Vec<f64>,
}

/// Why a climb ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum End {
    /// The objective stood still.
    StoodStill,
    /// All sweeps were done.
    UsedUp,
    /// It was stopped: what it had is an answer, but not that of a start.
    Stopped,
}

/// What a change of the objective is compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Yardstick {
    /// What makes an engine's objective a bound on ln p(sequence) or a logarithm of it.
    pub constant: f64,
    /// ln p(sequence) of tables that fit the data perfectly, where the objective can be compared with that.
    pub perfect: Option<f64>,
    /// Nats below which a distance counts as this: one, or one a token where there is less than one.
    pub least: f64,
}

impl Yardstick {
    /// For a problem whose objective lacks a constant.
    pub fn new(problem: &Problem<'_>, constant: f64) -> Self {
        let perfect = problem.counts.unknown.is_empty().then(|| perfect_ln_likelihood(problem.counts));
        Yardstick { constant, perfect, least: problem.counts.total().min(1.0) }
    }

    /// Whether a change is no more than this share. It is taken of the distance from a perfect fit where that is less than
    /// the objective itself: with huge counts the objective is mostly the entropy of the data. Rounding is no change.
    fn is_still(&self, change: f64, objective: f64, share: f64) -> bool {
        let value = objective + self.constant;
        let distance = self.perfect.map_or(f64::INFINITY, |perfect| (perfect - value).abs());
        change <= share * distance.min(value.abs()).max(self.least) || change <= 4.0 * f64::EPSILON * value.abs()
    }
}

impl Climbed {
    pub fn objective(&self) -> f64 {
        self.trace.last().copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// The better of two, this one of equals; stopped if the other was.
    pub fn or_better(self, other: Climbed) -> Self {
        let end = other.end;
        let better = if other.objective() > self.objective() { other } else { self };
        if end == End::Stopped { better.stopped() } else { better }
    }

    /// The same, but that it was stopped.
    pub fn stopped(self) -> Self {
        Climbed { end: End::Stopped, ..self }
    }
}

/// All starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Climbs {
    /// Which of the objectives is the best start's.
    pub best: usize,
    /// The objective that each start reached, in the order of the starts; those that a time limit left without one are not
    /// listed.
    pub objectives: Vec<f64>,
    /// The objective after each sweep of the best start.
    pub trace: Vec<f64>,
    /// Whether the best start stood still before its sweeps were used up.
    pub converged: bool,
    /// What a user should know.
    #[serde(with = "crate::warning::as_text")]
    pub warnings: Vec<Warning>,
}

/// A climb's work.
pub(super) trait Ascend {
    /// One sweep; the objective.
    fn sweep(&mut self) -> Result<f64>;
    /// Hands over what is needed to go on from here, after sweeps with these objectives; nothing where nothing was done.
    fn keep(&self, watch: &Watch<'_>, trace: &[f64]);
}

impl Climb {
    /// Sweeps until the objective stands still, after those of an earlier climb that was stopped. A sweep that is stopped
    /// leaves everything as it was.
    pub(super) fn climb(
        &self,
        yardstick: Yardstick,
        work: &mut impl Ascend,
        mut trace: Vec<f64>,
        watch: &Watch<'_>,
        tick: &dyn Fn(f64) -> Result<()>,
    ) -> Result<(Vec<f64>, End)> {
        while (trace.len() as u64) < self.max_iter {
            let go_on = tick(trace.len() as f64 / self.max_iter as f64);
            if watch.is_asked() || go_on.is_err() {
                work.keep(watch, &trace);
            }
            let objective = match go_on.and_then(|()| work.sweep()) {
                // No number is no answer.
                Ok(objective) if objective.is_nan() => f64::NEG_INFINITY,
                Ok(objective) => objective,
                // Every state is an answer; without one there is none.
                Err(Error::Stopped(_)) if !trace.is_empty() => return Ok((trace, End::Stopped)),
                Err(error) => return Err(error),
            };
            let change = trace.last().map(|last| (objective - last).abs());
            trace.push(objective);
            // A given start may make a record impossible, and the tables after it possible again.
            if objective == f64::NEG_INFINITY && trace.len() > 1 {
                return Ok((trace, End::StoodStill));
            }
            if self.tol > 0.0 && change.is_some_and(|change| yardstick.is_still(change, objective, self.tol)) {
                return Ok((trace, End::StoodStill));
            }
        }
        Ok((trace, End::UsedUp))
    }

    /// Climbs from every start and keeps the best. `run` climbs from one.
    pub(super) fn climb_from_all(
        &self,
        name: &'static str,
        fingerprint: u64,
        control: &mut Control<'_>,
        run: impl Fn(u64, &Watch<'_>) -> Result<Climbed> + Sync,
    ) -> Result<(Climbs, Vec<f64>)> {
        let team = Team { n_threads: self.threads, is_one_by_one: false };
        let stage = Stage::alone(name, fingerprint);
        // Climbs that were stopped are part of an answer, and of no checkpoint.
        let stopped: Mutex<Vec<(u64, Climbed)>> = Mutex::new(Vec::new());
        let found = replicates(self.restarts, stage, team, control, |turn, watch| {
            let climbed = run(turn.replicate, watch)?;
            if climbed.end != End::Stopped {
                return Ok(climbed);
            }
            stopped.lock().expect("no thread panics while holding it").push((turn.replicate, climbed));
            Err(Error::Stopped(Stop::Cancelled))
        });
        let stopped = stopped.into_inner().expect("no thread panics while holding it");
        let found = match found {
            Err(Error::Stopped(Stop::Deadline)) if !stopped.is_empty() => {
                Replicates { finished: Vec::new(), numbers: Vec::new(), is_cut: true, n_beyond: 0 }
            }
            other => other?,
        };
        let mut warnings = found.warnings(self.restarts);
        for warning in &mut warnings {
            if let Warning::TimeUp { finished, asked } = *warning {
                *warning = Warning::StartsCut { finished, asked };
            }
        }
        let mut finished: Vec<(u64, Climbed)> = found.numbers.into_iter().zip(found.finished).chain(stopped).collect();
        finished.sort_by_key(|(restart, _)| *restart);
        let finished: Vec<Climbed> = finished.into_iter().map(|(_, climbed)| climbed).collect();
        let objectives: Vec<f64> = finished.iter().map(Climbed::objective).collect();
        // The first of equals, whatever the order in which they ended.
        let best = (0..finished.len()).rev().max_by(|&x, &y| objectives[x].total_cmp(&objectives[y]));
        let best = best.ok_or(Error::Stopped(Stop::Deadline))?;
        if finished[best].end == End::UsedUp {
            warnings.push(Warning::NotConverged { sweeps: finished[best].trace.len() as u64 });
        }
        // Starts that were stopped have not ended anywhere.
        let ended = finished.iter().filter(|climbed| climbed.end != End::Stopped).map(Climbed::objective);
        let ended: Vec<f64> = ended.collect();
        let spread = ended.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            - ended.iter().copied().fold(f64::INFINITY, f64::min);
        if spread > 1.0 {
            let n_best = ended.iter().filter(|&&other| objectives[best] - other <= 0.1).count();
            warnings.push(Warning::StartsDisagree {
                spread: format!("{spread:.1}"),
                n_best: n_best as u64,
                starts: ended.len() as u64,
            });
        }
        let Climbed { trace, end, state } = finished.into_iter().nth(best).expect("the best is one of them");
        let converged = end == End::StoodStill;
        Ok((Climbs { best, objectives, trace, converged, warnings }, state))
    }

    /// Tells problems and settings apart, so that a checkpoint is not taken up by another one. `settings` are those of the
    /// engine, as text; `given` are weights to start from.
    pub(super) fn fingerprint(
        &self,
        settings: &str,
        problem: &Problem<'_>,
        layout: &Layout,
        arrangements: &[Arrangement],
        given: Option<&Numbers>,
        seed: Seed,
    ) -> u64 {
        let mut mix = Mixer::default();
        settings.bytes().for_each(|byte| mix.word(u64::from(byte)));
        given.iter().flat_map(|weights| weights.iter()).for_each(|weight| mix.word(weight.to_bits()));
        [seed.0, self.max_iter, self.tol.to_bits(), layout.closed_form.value().to_bits()]
            .iter()
            .for_each(|&word| mix.word(word));
        [problem.prior.shape(), problem.prior.rate().unwrap_or(0.0), problem.counts.total()]
            .iter()
            .for_each(|number| mix.word(number.to_bits()));
        let mut add_pseudo = |pseudo: &PseudoCount| {
            mix.word(pseudo.value.to_bits());
            if pseudo.value < TINY {
                mix.word(pseudo.ln_if_tiny.to_bits());
            }
        };
        for pseudo in layout.tables.iter().flat_map(|table| [&table.pseudo, &table.row_pseudo]) {
            match pseudo {
                Pseudo::Even(pseudo) => add_pseudo(pseudo),
                Pseudo::Listed(all) => all.iter().for_each(&mut add_pseudo),
            }
        }
        layout.tables.iter().for_each(|table| mix.word(table.n_cells() as u64));
        layout.fixed.iter().flatten().for_each(|count| mix.word(count.to_bits()));
        for (table, values, count) in &layout.certain {
            values.iter().chain([&table.0]).for_each(|&value| mix.word(u64::from(value)));
            mix.word(*count);
        }
        for family in layout.groups.iter().flat_map(|group| &group.families) {
            family.offsets.iter().for_each(|&at| mix.word(u64::from(at)));
        }
        for arrangement in arrangements {
            arrangement.for_each_record(|starts, n_tokens| {
                starts.iter().for_each(|&start| mix.word(u64::from(start)));
                mix.word(n_tokens.to_bits());
            });
        }
        mix.0
    }
}
