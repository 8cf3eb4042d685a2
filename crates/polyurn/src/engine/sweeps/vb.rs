//! Variational Bayes: coordinate ascent on a lower bound of the evidence.
//!
//! The allocation and the tables are taken as independent (theory.md, section 15; the paper's appendix). A sweep finds the
//! expected counts under the present expected logarithms of the tables, the Dirichlet rows that go with them, the bound for
//! that pair, and new expected logarithms.

use super::arrangement::Arrangement;
use super::dirichlet::{CellCounts, ExpectedLogs, add_rows, cross, expected_logs, is_out_of_range, ln_constants};
use super::layout::Layout;
use super::messages::Weights;
use super::numbers::Numbers;
use super::pass::{Tally, Wanted, Work, expect};
use super::point::{Mode, certain_likelihood};
use super::prior_sizes::{Factors, Found, Free, PriorSizes};
use super::restarts::{Ascend, Climb, Climbed, Climbs, End, Yardstick};
use super::start::{self, Spread, StartTables};
use super::tables::dirichlet_means;
use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::replicates::Watch;
use crate::engine::tables::TableMeans;
use crate::error::{Error, Result};
use crate::evidence::ln_factorials;
use crate::math::{Double, special};
use crate::prior::{GammaTotal, Prior};
use crate::simd::Isa;
use serde::{Deserialize, Serialize};

/// Free sizes of the prior are held until a sweep changes the bound by no more than this share of it: starts are nearly even,
/// and as long as all rows are alike, the best size of their prior is infinite.
const SETTLED: f64 = 1e-6;

/// The total's part in a problem with unknown cells.
#[derive(Debug, Clone, Copy)]
pub struct UnknownCells {
    total: GammaTotal,
    n_seen: f64,
    /// ln of the factorials of the seen counts.
    ln_factorials: f64,
}

impl UnknownCells {
    /// For a problem with unknown cells.
    pub fn of(problem: &Problem<'_>) -> Result<Option<Self>> {
        if problem.counts.unknown.is_empty() {
            return Ok(None);
        }
        Ok(Some(UnknownCells {
            total: problem.prior.total(None)?,
            n_seen: problem.counts.total(),
            ln_factorials: ln_factorials(problem.counts).value(),
        }))
    }

    /// Expected logarithm of the intensity when this many tokens are expected in unknown cells, and the Gamma shape is
    /// multiplied by a factor.
    fn ln_intensity(&self, unknown: f64, factor: f64) -> f64 {
        special::digamma(factor * self.total.shape + self.n_seen + unknown) - self.total.rate.ln_1p()
    }

    /// What the total, the factorials and the unknown cells add to the bound.
    fn bound(&self, unknown: f64, ln_intensity: f64) -> f64 {
        let GammaTotal { shape, rate } = self.total;
        let n = self.n_seen + unknown;
        special::ln_rising_real(shape, n) + shape * rate.ln() - (shape + n) * rate.ln_1p() - self.ln_factorials
            + unknown
            - unknown * ln_intensity
    }
}

/// A bound under way.
#[derive(Debug)]
pub struct Ascent<'l> {
    layout: &'l Layout,
    arrangements: &'l [Arrangement],
    isa: Isa,
    unknown: Option<UnknownCells>,
    /// Expected tokens in unknown cells.
    pub n_unknown: f64,
    /// Expected counts of all cells.
    pub counts: Numbers,
    /// Their sums over rows.
    pub rows: Vec<f64>,
    /// Exponentials of the expected logarithms of the tables; and these themselves, once some exponential is out of range.
    pub weights: Numbers,
    logs: Option<Vec<f64>>,
    row_psi: Vec<f64>,
    /// Sizes of the prior that are free: what they are multiplied by now, and what they were when the bound was taken.
    sizes: &'l PriorSizes,
    factors: Vec<f64>,
    pub factors_of_bound: Vec<f64>,
    work: Work,
}

impl<'l> Ascent<'l> {
    /// Starts from weights standing for the exponentials of expected logarithms.
    pub fn new(
        layout: &'l Layout,
        arrangements: &'l [Arrangement],
        sizes: &'l PriorSizes,
        unknown: Option<UnknownCells>,
        weights: Numbers,
        isa: Isa,
    ) -> Self {
        Ascent {
            layout,
            arrangements,
            isa,
            unknown,
            n_unknown: 0.0,
            counts: Numbers::zeros(layout.n_cells),
            rows: vec![0.0; layout.n_rows],
            logs: is_out_of_range(&weights).then(|| weights.iter().map(|weight| weight.ln()).collect()),
            weights,
            row_psi: vec![0.0; layout.n_rows],
            factors: sizes.ones(),
            factors_of_bound: sizes.ones(),
            sizes,
            work: Work::default(),
        }
    }

    /// Whether free sizes of the prior moved little in the last sweep.
    fn sizes_stand_still(&self) -> bool {
        PriorSizes::stand_still(&self.factors_of_bound, &self.factors)
    }

    /// One sweep; the bound on ln p(sequence), or with unknown cells on ln p(data), and what free sizes of the prior have
    /// added to ln p(total). Sizes that are held stay as they are.
    pub fn sweep(&mut self, is_held: bool) -> (Double, f64) {
        let shape_factor = self.sizes.of_shape(&self.factors);
        let ln_intensity = self.unknown.map_or(0.0, |unknown| unknown.ln_intensity(self.n_unknown, shape_factor));
        let weights = Weights { values: &self.weights, logs: self.logs.as_deref() };
        let wanted = Wanted { logs: true, intensity: ln_intensity.exp() };
        self.counts.fill(0.0);
        let Tally { ln_weight, unknown } =
            expect(self.layout, self.arrangements, weights, wanted, self.isa, &mut self.work, &mut self.counts);
        let cross = cross(&self.counts, &self.weights, self.logs.as_deref(), self.isa);
        self.n_unknown = unknown;
        if let Some(fixed) = &self.layout.fixed {
            self.counts.iter_mut().zip(fixed).for_each(|(count, fixed)| *count += fixed);
        }
        for table in &self.layout.tables {
            add_rows(table, &self.counts, &mut self.rows);
        }
        let counts = CellCounts { cells: &self.counts, rows: &self.rows };
        let scales = self.sizes.of_tables(self.layout, &self.factors);
        let beside = self.sizes.ln_beside(&self.factors, unknown);
        let mut bound = self.layout.closed_form
            + Double::from(beside.certain)
            + ln_constants(self.layout, &scales, counts, self.isa)
            + (Double::from(ln_weight) - cross);
        let mut to_total = beside.total;
        if let Some(cells) = &self.unknown {
            // Then the total is part of the bound.
            bound = bound + Double::from(cells.bound(unknown, ln_intensity) + to_total);
            to_total = 0.0;
        }
        self.factors_of_bound.clone_from(&self.factors);
        let found = Found { counts, n_unknown: unknown };
        if !is_held {
            self.sizes.raise(self.layout, found, self.isa, &mut self.factors);
        }
        let scales = self.sizes.of_tables(self.layout, &self.factors);
        let Ascent { weights, logs, row_psi, .. } = self;
        let out = ExpectedLogs { weights: &mut *weights, logs: logs.as_deref_mut(), row_psi: &mut *row_psi };
        if !expected_logs(self.layout, &scales, counts, self.isa, out) && logs.is_none() {
            let logs = Some(&mut logs.insert(vec![0.0; self.layout.n_cells])[..]);
            expected_logs(self.layout, &scales, counts, self.isa, ExpectedLogs { weights, logs, row_psi });
        }
        (bound, to_total)
    }
}

/// A part of a climb: with sizes of the prior held, or not.
struct Part<'l> {
    ascent: Ascent<'l>,
    is_held: bool,
    /// The bound after the last sweep.
    bound: Double,
    /// Objectives of the part before.
    before: Vec<f64>,
}

/// What is kept of it.
#[derive(Serialize, Deserialize)]
struct KeptPart {
    is_held: bool,
    bound: (f64, f64),
    before: Vec<f64>,
    own: Vec<f64>,
    n_unknown: f64,
    counts: Vec<f64>,
    weights: Vec<f64>,
    logs: Option<Vec<f64>>,
    factors: Vec<f64>,
    factors_of_bound: Vec<f64>,
}

impl Ascend for Part<'_> {
    fn sweep(&mut self) -> Result<f64> {
        let (bound, to_total) = self.ascent.sweep(self.is_held);
        self.bound = bound;
        Ok(bound.value() + to_total)
    }

    fn keep(&self, watch: &Watch<'_>, trace: &[f64]) {
        let ascent = &self.ascent;
        if trace.is_empty() && self.before.is_empty() {
            return;
        }
        watch.keep(&KeptPart {
            is_held: self.is_held,
            bound: self.bound.parts(),
            before: self.before.clone(),
            own: trace.to_vec(),
            n_unknown: ascent.n_unknown,
            counts: ascent.counts.to_vec(),
            weights: ascent.weights.to_vec(),
            logs: ascent.logs.clone(),
            factors: ascent.factors.clone(),
            factors_of_bound: ascent.factors_of_bound.clone(),
        });
    }
}

impl Part<'_> {
    /// Goes back to what was kept, and gives the objectives of this part so far; `None` where it is of another make.
    fn restore(&mut self, kept: KeptPart) -> Option<Vec<f64>> {
        let ascent = &mut self.ascent;
        let n_cells = ascent.layout.n_cells;
        let is_whole = kept.counts.len() == n_cells
            && kept.weights.len() == n_cells
            && kept.logs.as_ref().is_none_or(|logs| logs.len() == n_cells)
            && kept.factors.len() == ascent.factors.len()
            && kept.factors_of_bound.len() == ascent.factors.len();
        if !is_whole {
            return None;
        }
        ascent.counts.copy_from_slice(&kept.counts);
        ascent.weights.copy_from_slice(&kept.weights);
        (ascent.logs, ascent.n_unknown) = (kept.logs, kept.n_unknown);
        (ascent.factors, ascent.factors_of_bound) = (kept.factors, kept.factors_of_bound);
        self.bound = Double::from(kept.bound.0) + Double::from(kept.bound.1);
        (self.is_held, self.before) = (kept.is_held, kept.before);
        Some(kept.own)
    }
}

/// The engine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vb {
    /// How to climb.
    pub climb: Climb,
    /// Where to start from instead of drawing; then there is one start.
    pub start: Option<StartTables>,
    /// Sizes of the prior that are set where the bound is largest.
    pub free: Free,
}

/// What it found.
#[derive(Debug)]
pub struct VbFit {
    /// The bound on ln p(sequence); with unknown cells on ln p(data).
    pub bound: Double,
    /// The bounds of all starts and of all sweeps of the best one; with what free sizes of the prior have added to
    /// ln p(total).
    pub climbs: Climbs,
    /// The prior: the problem's own, but for sizes that were free.
    pub prior: Prior,
    /// What free sizes were multiplied by.
    pub factors: Factors,
    /// Expected tokens in unknown cells.
    pub n_unknown: Option<f64>,
    layout: Layout,
    arrangements: Vec<Arrangement>,
    counts: Vec<f64>,
    /// For each stored table what its pseudo-counts are multiplied by.
    scales: Vec<f64>,
}

impl VbFit {
    /// ln p(sequence | tables) with every table at its mean.
    pub fn ln_likelihood(&self, problem: &Problem<'_>) -> f64 {
        let problem = &problem.with_prior(&self.prior);
        let mut means = Numbers::zeros(self.layout.n_cells);
        for (table, scale) in self.layout.tables.iter().zip(&self.scales) {
            let mut rows = vec![0.0; self.layout.n_rows];
            add_rows(table, &self.counts, &mut rows);
            let rows = &rows[table.rows()];
            for (cell, mean) in means[table.cells()].iter_mut().enumerate() {
                let (block, in_block) = (cell / table.shape.interior, cell % table.shape.interior);
                let row = table.row_of_block[block] as usize + table.row_in_block(in_block);
                let count = self.counts[table.first_cell + cell];
                let (pseudo, row_pseudo) = (table.pseudo.at(cell).value, table.row_pseudo.at(row).value);
                let whole = scale * row_pseudo + rows[row];
                // A row without pseudo-counts and tokens has no mean, and no token is in it.
                *mean = if whole > 0.0 { (scale * pseudo + count) / whole } else { 0.0 };
            }
        }
        self.layout.ln_likelihood(&self.arrangements, &means) + certain_likelihood(problem, &self.layout, Mode::Softmax)
    }

    /// Means and spreads of all tables, for the problem that was fitted.
    pub fn tables(&self, problem: &Problem<'_>) -> Vec<TableMeans> {
        dirichlet_means(&problem.with_prior(&self.prior), &self.layout, &self.counts)
    }
}

impl Vb {
    /// Climbs from all starts.
    ///
    /// # Errors
    /// When cancelled, when the time is up before the first sweep, when the start does not fit the model, when the tables have
    /// too many cells, or when nothing follows a size that is free.
    pub fn fit(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<VbFit> {
        let layout = Layout::new(problem)?;
        let wanted = vec![true; layout.tables.len()];
        let arrangements = Arrangement::of_groups(&layout, problem.counts, &wanted, None);
        let unknown = UnknownCells::of(problem)?;
        let sizes = PriorSizes::new(problem, &layout, &self.free)?;
        let given =
            self.start.as_ref().map(|start| start::given(&layout, problem.model, start, false, true)).transpose()?;
        let settings = format!("vb {:?}", self.free);
        let fingerprint = self.climb.fingerprint(&settings, problem, &layout, &arrangements, given.as_ref(), seed);
        let ascent = |restart: u64| {
            let weights = given.clone().unwrap_or_else(|| start::random(&layout, Spread::Slight, true, seed, restart));
            Ascent::new(&layout, &arrangements, &sizes, unknown, weights, self.climb.isa)
        };
        let yardstick = Yardstick::new(problem, 0.0);
        let climb = Climb { restarts: if given.is_some() { 1 } else { self.climb.restarts }, ..self.climb.clone() };
        let (mut climbs, mut counts) = climb.climb_from_all("vb", fingerprint, control, |restart, watch| {
            // Sizes of the prior are held at first; later a climb is over when they stand still too.
            let mut work = Part {
                ascent: ascent(restart),
                is_held: !self.free.is_nothing(),
                bound: Double::from(f64::NEG_INFINITY),
                before: Vec::new(),
            };
            let mut own = watch.saved().and_then(|kept: KeptPart| work.restore(kept)).unwrap_or_default();
            let mut end = End::UsedUp;
            while ((work.before.len() + own.len()) as u64) < climb.max_iter {
                let n_left = climb.max_iter - work.before.len() as u64;
                let part = if work.is_held {
                    Climb { max_iter: n_left.div_ceil(2), tol: climb.tol.max(SETTLED), ..climb.clone() }
                } else {
                    Climb { max_iter: n_left, ..climb.clone() }
                };
                let n_done = work.before.len() as f64;
                let tick_part =
                    |share: f64| watch.tick((n_done + share * part.max_iter as f64) / climb.max_iter as f64);
                (own, end) = match part.climb(yardstick, &mut work, std::mem::take(&mut own), watch, &tick_part) {
                    // Every state is an answer.
                    Err(Error::Stopped(_)) if !work.before.is_empty() => (Vec::new(), End::Stopped),
                    other => other?,
                };
                work.before.append(&mut own);
                let is_impossible = work.before.last() == Some(&f64::NEG_INFINITY);
                if is_impossible {
                    work.bound = Double::from(f64::NEG_INFINITY);
                }
                let stands_still = !work.is_held && work.ascent.sizes_stand_still();
                if end == End::Stopped || is_impossible || stands_still {
                    break;
                }
                // Sizes still move.
                end = End::UsedUp;
                work.is_held = false;
            }
            let Part { ascent, bound, before: trace, .. } = work;
            let mut state = ascent.counts.into_list();
            state.extend(ascent.factors_of_bound);
            let (high, low) = bound.parts();
            state.extend([ascent.n_unknown, high, low]);
            Ok(Climbed { trace, end, state })
        })?;
        let Some(&[n_unknown, high, low]) = counts.last_chunk() else { unreachable!("three numbers stand last") };
        counts.truncate(counts.len() - 3);
        let factors = counts.split_off(layout.n_cells);
        climbs.warnings.extend(sizes.warning(&factors));
        Ok(VbFit {
            bound: Double::from(high) + Double::from(low),
            n_unknown: unknown.map(|_| n_unknown),
            climbs,
            prior: sizes.prior(problem.prior, &factors),
            factors: sizes.named(&factors),
            scales: sizes.of_tables(&layout, &factors),
            layout,
            arrangements,
            counts,
        })
    }
}
