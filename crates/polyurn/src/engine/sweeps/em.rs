//! Expectation maximisation: one best set of tables.
//!
//! Without a prior, factors take turns: the expected counts are found anew before each factor is set, together with the
//! tables that have only hidden nodes. For matrix and tensor factorisations that is the multiplicative updating of the
//! generalised Kullback-Leibler divergence, step by step.

use super::arrangement::Arrangement;
use super::layout::{Group, Layout};
use super::messages::Weights;
use super::numbers::Numbers;
use super::pass::{Tally, Wanted, Work, expect};
use super::point::{Mode, Point, certain_density, certain_likelihood, check_density};
use super::restarts::{Ascend, Climb, Climbed, Climbs, End, Yardstick};
use super::start::{self, Spread, StartTables};
use crate::Seed;
use crate::control::Control;
use crate::counts::Counts;
use crate::engine::Problem;
use crate::engine::replicates::Watch;
use crate::engine::tables::TableMeans;
use crate::error::{Error, Result};
use crate::prior::GammaTotal;
use crate::simd::Isa;
use serde::{Deserialize, Serialize};

/// Which tables are set after each expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turns {
    /// One factor after another, each with the hidden tables.
    #[default]
    Cycle,
    /// All at once.
    Together,
}

/// Sweeps of a trial: by then most starts have shown what they lead to (docs/sweeps.md).
const TRIAL_SWEEPS: u64 = 20;

/// The engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Em {
    /// How to climb.
    pub climb: Climb,
    /// Draws that are tried for each start, all tables together for a few sweeps; the best of them is climbed from.
    pub trials: u64,
    /// What is maximised.
    pub mode: Mode,
    /// Which tables are set after each expectation.
    pub turns: Turns,
    /// Where to start from instead of drawing; then there is one start.
    pub start: Option<StartTables>,
}

impl Default for Em {
    fn default() -> Self {
        Em { climb: Climb::default(), trials: 8, mode: Mode::default(), turns: Turns::default(), start: None }
    }
}

/// What it found.
#[derive(Debug)]
pub struct EmFit {
    /// ln p(sequence | tables).
    pub ln_likelihood: f64,
    /// The intensity.
    pub intensity: f64,
    /// The objective of all starts, and after each sweep of the best one: the log likelihood, with a prior the log posterior
    /// density up to a constant of the prior.
    pub climbs: Climbs,
    /// Expected tokens in unknown cells.
    pub n_unknown: Option<f64>,
    layout: Layout,
    point: Point,
}

impl EmFit {
    /// The tables, for the problem that was fitted; spreads are zero.
    pub fn tables(&self, problem: &Problem<'_>) -> Vec<TableMeans> {
        self.point.means(problem, &self.layout)
    }
}

impl Em {
    /// Climbs from all starts.
    ///
    /// # Errors
    /// When cancelled, when the time is up before the first sweep, when the start does not fit the model, when a pseudo-count
    /// is below one and the density's mode was asked for, or when the tables have too many cells.
    pub fn fit(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<EmFit> {
        let layout = Layout::new(problem)?;
        if self.mode == Mode::Density {
            check_density(problem)?;
        }
        let total = match (self.mode, problem.counts.unknown.is_empty()) {
            (Mode::Likelihood, _) => None,
            (_, is_known) => Some(problem.prior.total_of(is_known.then_some(problem.counts.total()))?),
        };
        let has_prior = self.mode != Mode::Likelihood;
        let given = self
            .start
            .as_ref()
            .map(|start| start::given(&layout, problem.model, start, true, has_prior))
            .transpose()?;
        let n_trials = if given.is_some() { 1 } else { self.trials.max(1) };
        let way = Way::new(self.turns, &layout, problem.counts);
        let trial_way =
            (n_trials > 1 && way.turns.len() > 1).then(|| Way::new(Turns::Together, &layout, problem.counts));
        let trial_way = trial_way.as_ref().unwrap_or(&way);
        let settings = format!("em {:?} {:?} {n_trials}", self.mode, self.turns);
        let fingerprint = self.climb.fingerprint(&settings, problem, &layout, &way.arranged[0], given.as_ref(), seed);
        let certain = certain_likelihood(problem, &layout, self.mode) + certain_density(problem, &layout, self.mode);
        let yardstick = Yardstick::new(problem, certain);
        let climb = Climb { restarts: if given.is_some() { 1 } else { self.climb.restarts }, ..self.climb.clone() };
        let start = |draw: u64| {
            let weights = given.clone().unwrap_or_else(|| {
                let mut weights = start::random(&layout, Spread::Moderate, has_prior, seed, draw);
                start::normalise(&layout, &mut weights);
                weights
            });
            Reached { point: Point::new(&layout, self.mode, weights), n_unknown: 0.0 }
        };
        let n_seen = problem.counts.total();
        let has_unknown = !problem.counts.unknown.is_empty();
        // Climbs on for so many sweeps, after some that were made already.
        let go =
            |way, from: Reached, stage: Stage, max_iter: u64, watch: &Watch<'_>, tick: &dyn Fn(f64) -> Result<()>| {
                let ascent = Ascent::new(&layout, way, self.mode, total, n_seen, has_unknown, from, self.climb.isa);
                // A sweep tells the objective before it: the trace is one behind, and one more look brings it up to date.
                let part = Climb { max_iter, ..climb.clone() };
                let Stage { trial, tried, own } = stage;
                let mut work = Part { ascent, trial, tried };
                let (mut trace, end) = part.climb(yardstick, &mut work, own, watch, tick)?;
                let mut ascent = work.ascent;
                trace.push(ascent.objective());
                trace.remove(0);
                trace.iter_mut().for_each(|objective| *objective += certain);
                let mut state = ascent.point.to_list();
                state.extend([ascent.ln_likelihood, ascent.intensity, ascent.n_unknown]);
                Ok(Climbed { trace, end, state })
            };
        let (climbs, state) = climb.climb_from_all("em", fingerprint, control, |restart, watch| {
            let tick = &|share: f64| watch.tick(share);
            let kept = watch.saved().and_then(|kept: Kept| kept.reached(&layout, self.mode));
            if n_trials == 1 {
                let (from, stage) = kept.unwrap_or_else(|| (start(restart), Stage::default()));
                return go(&way, from, stage, climb.max_iter, watch, tick);
            }
            let of_trial = TRIAL_SWEEPS.min(climb.max_iter);
            let n_left = climb.max_iter - of_trial;
            let n_sweeps = (n_trials * of_trial + n_left) as f64;
            let (mut trial, mut best, mut under_way) = (0, None, None);
            if let Some((from, stage)) = kept {
                let Some((number, found)) = stage.trial.clone() else {
                    // The trials were over.
                    let tick = |share: f64| tick(1.0 - (1.0 - share) * n_left as f64 / n_sweeps);
                    let tried = stage.tried.clone();
                    let climbed = go(&way, from, stage, n_left, watch, &tick)?;
                    return Ok(Climbed { trace: [tried, climbed.trace].concat(), ..climbed });
                };
                (trial, best, under_way) = (number, found, Some((from, stage)));
            }
            while trial < n_trials {
                let tick = |share: f64| tick((trial as f64 + share) * of_trial as f64 / n_sweeps);
                let (from, stage) = under_way.take().unwrap_or_else(|| {
                    let stage = Stage { trial: Some((trial, best.clone())), ..Stage::default() };
                    (start(restart * n_trials + trial), stage)
                });
                let tried = go(trial_way, from, stage, of_trial, watch, &tick);
                let so_far = match (best, tried) {
                    (Some(best), Ok(tried)) => Climbed::or_better(best, tried),
                    // Every state is an answer.
                    (Some(best), Err(Error::Stopped(_))) => best.stopped(),
                    (_, tried) => tried?,
                };
                let is_over = so_far.end == End::Stopped;
                best = Some(so_far);
                if is_over {
                    break;
                }
                trial += 1;
            }
            let tried = best.expect("at least one was tried");
            if n_left == 0 || tried.end == End::Stopped {
                return Ok(tried);
            }
            let tick = |share: f64| tick(1.0 - (1.0 - share) * n_left as f64 / n_sweeps);
            let from = Reached::from_list(&layout, self.mode, &tried.state);
            let stage = Stage { tried: tried.trace.clone(), ..Stage::default() };
            match go(&way, from, stage, n_left, watch, &tick) {
                Err(Error::Stopped(_)) => Ok(tried.stopped()),
                Err(error) => Err(error),
                Ok(climbed) => Ok(Climbed { trace: [tried.trace, climbed.trace].concat(), ..climbed }),
            }
        })?;
        let Some(&[ln_likelihood, intensity, n_unknown]) = state.last_chunk() else {
            unreachable!("three numbers stand last")
        };
        Ok(EmFit {
            ln_likelihood: ln_likelihood + certain_likelihood(problem, &layout, self.mode),
            intensity,
            climbs,
            n_unknown: (!problem.counts.unknown.is_empty()).then_some(n_unknown),
            point: Point::from_list(&layout, self.mode, &state),
            layout,
        })
    }
}

/// One expectation and what is set after it.
#[derive(Debug)]
struct Turn {
    tables: Vec<bool>,
    /// The table that records are sorted by.
    lead: Option<usize>,
}

impl Turn {
    /// Those of a sweep.
    fn list(turns: Turns, layout: &Layout) -> Vec<Turn> {
        let n_tables = layout.tables.len();
        let is_hidden = |table: usize| {
            let uses =
                |group: &Group| (0..group.families.len()).filter(|&ix| group.families[ix].table == table).collect();
            layout.groups.iter().all(|group| {
                let uses: Vec<usize> = uses(group);
                uses.into_iter().all(|family| group.shown(family).is_empty())
            })
        };
        let factors: Vec<usize> = (0..n_tables).filter(|&ix| !is_hidden(ix)).collect();
        if turns == Turns::Together || factors.is_empty() {
            return vec![Turn { tables: vec![true; n_tables], lead: None }];
        }
        let turn = |&factor: &usize| {
            let tables = (0..n_tables).map(|ix| ix == factor || is_hidden(ix)).collect();
            Turn { tables, lead: Some(factor) }
        };
        factors.iter().map(turn).collect()
    }
}

/// What a sweep does one after another, and the records in the order of each turn.
#[derive(Debug)]
struct Way {
    turns: Vec<Turn>,
    arranged: Vec<Vec<Arrangement>>,
}

impl Way {
    fn new(turns: Turns, layout: &Layout, counts: &Counts) -> Self {
        let turns = Turn::list(turns, layout);
        let arrange = |turn: &Turn| Arrangement::of_groups(layout, counts, &turn.tables, turn.lead);
        let arranged = turns.iter().map(arrange).collect();
        Way { turns, arranged }
    }
}

/// Where a climb is.
#[derive(Debug)]
struct Reached {
    point: Point,
    n_unknown: f64,
}

impl Reached {
    /// From what is kept of a climb.
    fn from_list(layout: &Layout, mode: Mode, state: &[f64]) -> Self {
        let n_unknown = *state.last().expect("the expected tokens in unknown cells stand last");
        Reached { point: Point::from_list(layout, mode, state), n_unknown }
    }
}

/// Where a climb begins: with trials, after them, or in the middle.
#[derive(Debug, Default)]
struct Stage {
    /// In a trial: which one, and the best of those before it.
    trial: Option<(u64, Option<Climbed>)>,
    /// Objectives of the trial that is climbed on from.
    tried: Vec<f64>,
    /// Those since then.
    own: Vec<f64>,
}

/// What is kept of a climb.
#[derive(Serialize, Deserialize)]
struct Kept {
    trial: Option<(u64, Option<Climbed>)>,
    tried: Vec<f64>,
    own: Vec<f64>,
    point: Vec<f64>,
    n_unknown: f64,
}

impl Kept {
    /// Where it was; `None` if it is of another make.
    fn reached(self, layout: &Layout, mode: Mode) -> Option<(Reached, Stage)> {
        let Kept { trial, tried, own, point, n_unknown } = self;
        let is_whole = point.len() == layout.n_cells + layout.n_rows;
        let stage = Stage { trial, tried, own };
        is_whole.then(|| (Reached { point: Point::from_list(layout, mode, &point), n_unknown }, stage))
    }
}

/// A part of a climb.
struct Part<'l> {
    ascent: Ascent<'l>,
    trial: Option<(u64, Option<Climbed>)>,
    tried: Vec<f64>,
}

impl Ascend for Part<'_> {
    fn sweep(&mut self) -> Result<f64> {
        Ok(self.ascent.sweep())
    }

    fn keep(&self, watch: &Watch<'_>, trace: &[f64]) {
        let is_later_trial = self.trial.as_ref().is_some_and(|(trial, _)| *trial > 0);
        if !trace.is_empty() || !self.tried.is_empty() || is_later_trial {
            let (point, n_unknown) = (self.ascent.point.to_list(), self.ascent.n_unknown);
            let (trial, tried) = (self.trial.clone(), self.tried.clone());
            watch.keep(&Kept { trial, tried, own: trace.to_vec(), point, n_unknown });
        }
    }
}

/// A climb under way.
#[derive(Debug)]
struct Ascent<'l> {
    layout: &'l Layout,
    way: &'l Way,
    mode: Mode,
    total: Option<GammaTotal>,
    n_seen: f64,
    has_unknown: bool,
    isa: Isa,
    point: Point,
    counts: Numbers,
    intensity: f64,
    n_unknown: f64,
    ln_likelihood: f64,
    work: Work,
}

impl<'l> Ascent<'l> {
    #[expect(clippy::too_many_arguments, reason = "the parts of one climb, made in one place")]
    fn new(
        layout: &'l Layout,
        way: &'l Way,
        mode: Mode,
        total: Option<GammaTotal>,
        n_seen: f64,
        has_unknown: bool,
        from: Reached,
        isa: Isa,
    ) -> Self {
        let mut ascent = Ascent {
            layout,
            way,
            mode,
            total,
            n_seen,
            has_unknown,
            isa,
            point: from.point,
            counts: Numbers::zeros(layout.n_cells),
            intensity: 0.0,
            n_unknown: from.n_unknown,
            ln_likelihood: f64::NEG_INFINITY,
            work: Work::default(),
        };
        ascent.set_intensity();
        ascent
    }

    /// All turns once; the objective before them.
    fn sweep(&mut self) -> f64 {
        let mut before = 0.0;
        let way = self.way;
        for (turn, Turn { tables, .. }) in way.turns.iter().enumerate() {
            let is_first = turn == 0;
            let tally = self.expect(turn, is_first);
            if is_first {
                before = self.objective_of(tally);
            }
            if let Some(fixed) = &self.layout.fixed {
                self.counts.iter_mut().zip(fixed).for_each(|(count, fixed)| *count += fixed);
            }
            self.point.set(self.layout, tables, &mut self.counts, self.isa);
            self.n_unknown = tally.unknown;
            self.set_intensity();
        }
        before
    }

    /// The objective now.
    fn objective(&mut self) -> f64 {
        let tally = self.expect(0, true);
        self.objective_of(tally)
    }

    fn expect(&mut self, turn: usize, wants_logs: bool) -> Tally {
        for (table, _) in self.layout.tables.iter().zip(&self.way.turns[turn].tables).filter(|(_, wanted)| **wanted) {
            self.counts[table.cells()].fill(0.0);
        }
        let weights = Weights { values: &self.point.weights, logs: None };
        let wanted = Wanted { logs: wants_logs, intensity: self.intensity };
        expect(self.layout, &self.way.arranged[turn], weights, wanted, self.isa, &mut self.work, &mut self.counts)
    }

    fn set_intensity(&mut self) {
        let n = self.n_seen + self.n_unknown;
        self.intensity = match (self.total, self.mode) {
            (None, _) => n,
            (Some(total), Mode::Density) => (total.shape + n - 1.0).max(0.0) / (total.rate + 1.0),
            (Some(total), _) => (total.shape + n) / (total.rate + 1.0),
        };
    }

    /// The log likelihood, and with a prior what its density adds, up to a constant of the prior.
    fn objective_of(&mut self, tally: Tally) -> f64 {
        let mut objective = tally.ln_weight;
        if let Some(fixed) = &self.layout.fixed {
            let logs = fixed.iter().zip(self.point.weights.iter()).filter(|(fixed, _)| **fixed > 0.0);
            objective += logs.map(|(fixed, weight)| fixed * weight.ln()).sum::<f64>();
        }
        self.ln_likelihood = objective;
        if self.mode != Mode::Likelihood {
            objective += self.point.ln_prior(self.layout);
        }
        if self.has_unknown {
            objective += self.n_seen * self.intensity.ln() - self.intensity + tally.unknown;
            if let Some(total) = self.total {
                let shape = total.shape - if self.mode == Mode::Density { 1.0 } else { 0.0 };
                objective += shape * self.intensity.ln() - total.rate * self.intensity;
            }
        }
        objective
    }
}
