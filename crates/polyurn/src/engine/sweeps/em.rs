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
use super::restarts::{Climb, Climbed, Climbs, Yardstick};
use super::start::{self, Spread, StartTables};
use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::tables::TableMeans;
use crate::error::Result;
use crate::prior::GammaTotal;
use crate::simd::Isa;

/// Which tables are set after each expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Turns {
    /// One factor after another, each with the hidden tables.
    #[default]
    Cycle,
    /// All at once.
    Together,
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Em {
    /// How to climb.
    pub climb: Climb,
    /// What is maximised.
    pub mode: Mode,
    /// Which tables are set after each expectation.
    pub turns: Turns,
    /// Where to start from instead of drawing; then there is one start.
    pub start: Option<StartTables>,
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
        let turns = self.turns(&layout);
        let has_prior = self.mode != Mode::Likelihood;
        let given = self
            .start
            .as_ref()
            .map(|start| start::given(&layout, problem.model, start, true, has_prior))
            .transpose()?;
        let arrange = |turn: &Turn| Arrangement::of_groups(&layout, problem.counts, &turn.tables, turn.lead);
        let arranged: Vec<Vec<Arrangement>> = turns.iter().map(arrange).collect();
        let settings = format!("em {:?} {:?}", self.mode, self.turns);
        let fingerprint = self.climb.fingerprint(&settings, problem, &layout, &arranged[0], given.as_ref(), seed);
        let certain = certain_likelihood(problem, &layout, self.mode) + certain_density(problem, &layout, self.mode);
        let yardstick = Yardstick::new(problem, certain);
        let climb = Climb { restarts: if given.is_some() { 1 } else { self.climb.restarts }, ..self.climb.clone() };
        let new_ascent = |restart: u64| {
            let weights = given.clone().unwrap_or_else(|| {
                let mut weights = start::random(&layout, Spread::Moderate, has_prior, seed, restart);
                start::normalise(&layout, &mut weights);
                weights
            });
            let n_seen = problem.counts.total();
            let has_unknown = !problem.counts.unknown.is_empty();
            Ascent::new(&layout, &turns, &arranged, self.mode, total, n_seen, has_unknown, weights, self.climb.isa)
        };
        let (climbs, state) = climb.climb_from_all("em", fingerprint, control, |restart, tick| {
            let mut ascent = new_ascent(restart);
            // A sweep tells the objective before it: the trace is one behind, and one more look brings it up to date.
            let (mut trace, end) = climb.climb(yardstick, || Ok(ascent.sweep()), tick)?;
            trace.push(ascent.objective());
            trace.remove(0);
            trace.iter_mut().for_each(|objective| *objective += certain);
            let mut state = ascent.point.to_list();
            state.extend([ascent.ln_likelihood, ascent.intensity, ascent.n_unknown]);
            Ok(Climbed { trace, end, state })
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

    /// Which tables are set together, and by which of them records are sorted.
    fn turns(&self, layout: &Layout) -> Vec<Turn> {
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
        if self.turns == Turns::Together || factors.is_empty() {
            return vec![Turn { tables: vec![true; n_tables], lead: None }];
        }
        let turn = |&factor: &usize| {
            let tables = (0..n_tables).map(|ix| ix == factor || is_hidden(ix)).collect();
            Turn { tables, lead: Some(factor) }
        };
        factors.iter().map(turn).collect()
    }
}

/// One expectation and what is set after it.
#[derive(Debug)]
struct Turn {
    tables: Vec<bool>,
    /// The table that records are sorted by.
    lead: Option<usize>,
}

/// A climb under way.
#[derive(Debug)]
struct Ascent<'l> {
    layout: &'l Layout,
    turns: &'l [Turn],
    arranged: &'l [Vec<Arrangement>],
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
        turns: &'l [Turn],
        arranged: &'l [Vec<Arrangement>],
        mode: Mode,
        total: Option<GammaTotal>,
        n_seen: f64,
        has_unknown: bool,
        weights: Numbers,
        isa: Isa,
    ) -> Self {
        let mut ascent = Ascent {
            layout,
            turns,
            arranged,
            mode,
            total,
            n_seen,
            has_unknown,
            isa,
            point: Point::new(layout, mode, weights),
            counts: Numbers::zeros(layout.n_cells),
            intensity: 0.0,
            n_unknown: 0.0,
            ln_likelihood: f64::NEG_INFINITY,
            work: Work::default(),
        };
        ascent.set_intensity();
        ascent
    }

    /// All turns once; the objective before them.
    fn sweep(&mut self) -> f64 {
        let mut before = 0.0;
        for turn in 0..self.turns.len() {
            let is_first = turn == 0;
            let tally = self.expect(turn, is_first);
            if is_first {
                before = self.objective_of(tally);
            }
            if let Some(fixed) = &self.layout.fixed {
                self.counts.iter_mut().zip(fixed).for_each(|(count, fixed)| *count += fixed);
            }
            let turns = self.turns;
            self.point.set(self.layout, &turns[turn].tables, &mut self.counts, self.isa);
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
        for (table, _) in self.layout.tables.iter().zip(&self.turns[turn].tables).filter(|(_, wanted)| **wanted) {
            self.counts[table.cells()].fill(0.0);
        }
        let weights = Weights { values: &self.point.weights, logs: None };
        let wanted = Wanted { logs: wants_logs, intensity: self.intensity };
        expect(self.layout, &self.arranged[turn], weights, wanted, self.isa, &mut self.work, &mut self.counts)
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
