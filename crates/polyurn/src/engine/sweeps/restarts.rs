//! Climbing from several starts until an objective stands still.

use super::arrangement::Arrangement;
use super::cells::Pseudo;
use super::layout::Layout;
use crate::control::Control;
use crate::engine::mixer::Mixer;
use crate::engine::replicates::{Replicates, Stage, Team, replicates};
use crate::error::{Error, Result, Stop};
use crate::simd::Isa;
use crate::{Seed, Warning};
use serde::{Deserialize, Serialize};

/// How to climb.
#[derive(Debug, Clone, PartialEq)]
pub struct Climb {
    /// Starts in all; the best is kept.
    pub restarts: u64,
    /// Sweeps of each start at most.
    pub max_iter: u64,
    /// A climb ends when a sweep changes the objective by no more than this share of it. Zero never stops early.
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
    pub converged: bool,
    /// What the engine keeps of its last state.
    pub state: Vec<f64>,
}

impl Climbed {
    pub fn objective(&self) -> f64 {
        self.trace.last().copied().unwrap_or(f64::NEG_INFINITY)
    }
}

/// All starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Climbs {
    /// The best start's number, from 0.
    pub best: u64,
    /// The objective that each start reached.
    pub objectives: Vec<f64>,
    /// The objective after each sweep of the best start.
    pub trace: Vec<f64>,
    /// Whether the best start stood still before its sweeps were used up.
    pub converged: bool,
    /// What a user should know.
    pub warnings: Vec<Warning>,
}

impl Climb {
    /// Sweeps until the objective stands still.
    pub(super) fn climb(
        &self,
        mut sweep: impl FnMut() -> f64,
        tick: &dyn Fn(f64) -> Result<()>,
    ) -> Result<(Vec<f64>, bool)> {
        let mut trace: Vec<f64> = Vec::new();
        while (trace.len() as u64) < self.max_iter {
            if let Err(error) = tick(trace.len() as f64 / self.max_iter as f64) {
                // Every state is an answer; without one there is none.
                return if trace.is_empty() { Err(error) } else { Ok((trace, false)) };
            }
            let objective = sweep();
            let change = trace.last().map(|last| (objective - last).abs());
            trace.push(objective);
            if objective == f64::NEG_INFINITY || objective.is_nan() {
                return Ok((trace, true));
            }
            if self.tol > 0.0 && change.is_some_and(|change| change <= self.tol * objective.abs()) {
                return Ok((trace, true));
            }
        }
        Ok((trace, false))
    }

    /// Climbs from every start and keeps the best. `run` climbs from one.
    pub(super) fn climb_from_all(
        &self,
        name: &'static str,
        fingerprint: u64,
        control: &mut Control<'_>,
        run: impl Fn(u64, &dyn Fn(f64) -> Result<()>) -> Result<Climbed> + Sync,
    ) -> Result<(Climbs, Vec<f64>)> {
        let team = Team { n_threads: self.threads, is_one_by_one: false };
        let stage = Stage::Main { name, fingerprint };
        let Replicates { finished, is_cut } =
            replicates(self.restarts, stage, team, control, |turn, tick| run(turn.replicate, tick))?;
        let objectives: Vec<f64> = finished.iter().map(Climbed::objective).collect();
        // The first of equals, whatever the order in which they ended.
        let best = (0..finished.len()).rev().max_by(|&x, &y| objectives[x].total_cmp(&objectives[y]));
        let best = best.ok_or(Error::Stopped(Stop::Deadline))?;
        let mut warnings = Vec::new();
        if is_cut {
            warnings.push(Warning::TimeUp { finished: finished.len() as u64, asked: self.restarts });
        }
        if !finished[best].converged {
            warnings.push(Warning::NotConverged { sweeps: finished[best].trace.len() as u64 });
        }
        let worst = objectives.iter().copied().fold(f64::INFINITY, f64::min);
        let spread = objectives[best] - worst;
        if spread > 1.0 {
            let n_best = objectives.iter().filter(|&&other| objectives[best] - other <= 0.1).count();
            warnings.push(Warning::StartsDisagree {
                spread: format!("{spread:.1}"),
                n_best: n_best as u64,
                starts: objectives.len() as u64,
            });
        }
        let Climbed { trace, converged, state } = finished.into_iter().nth(best).expect("the best is one of them");
        Ok((Climbs { best: best as u64, objectives, trace, converged, warnings }, state))
    }

    /// Tells problems and settings apart, so that a checkpoint is not taken up by another one.
    pub(super) fn fingerprint(&self, name: &str, layout: &Layout, arrangements: &[Arrangement], seed: Seed) -> u64 {
        let mut mix = Mixer::default();
        name.bytes().for_each(|byte| mix.word(u64::from(byte)));
        [seed.0, self.max_iter, self.tol.to_bits(), layout.closed_form.value().to_bits()]
            .iter()
            .for_each(|&word| mix.word(word));
        for table in &layout.tables {
            mix.word(table.n_cells() as u64);
            for pseudo in [&table.pseudo, &table.row_pseudo] {
                match pseudo {
                    Pseudo::Even(pseudo) => mix.word(pseudo.value.to_bits()),
                    Pseudo::Listed(all) => all.iter().for_each(|pseudo| mix.word(pseudo.value.to_bits())),
                }
            }
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
