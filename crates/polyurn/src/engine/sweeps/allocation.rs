//! One best allocation: dual EM and iterated conditional modes.
//!
//! Both put the tokens of every record where their multinomial distribution is largest, given the tables, and then look at the
//! tables anew. Dual EM takes expected logarithms of the tables, and so climbs ln pi(S) with the tables integrated out; ICM
//! takes their mode, and climbs the joint density of allocation and tables.

use super::arrangement::Arrangement;
use super::best_states::{BestState, BestStates};
use super::dirichlet::{CellCounts, ExpectedLogs, add_rows, expected_logs, ln_constants};
use super::layout::{Group, Layout};
use super::multinomial;
use super::numbers::Numbers;
use super::point::{Mode, Point, certain_density, certain_likelihood, check_density};
use super::restarts::{Ascend, Climb, Climbed, Climbs, Yardstick};
use super::start::{self, Spread, StartTables};
use super::tables::dirichlet_means;
use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::replicates::Watch;
use crate::engine::tables::TableMeans;
use crate::error::{Error, Result};
use crate::math::ln_factorial;
use crate::simd::Isa;
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// Records between two looks at the time.
const RECORDS_PER_LOOK: u64 = 256;

/// Joint hidden values of one record that are listed at most.
const MOST_STATES: f64 = 1e6;

/// What is looked at of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Given {
    /// Their expected logarithms: dual EM.
    Expectations,
    /// Their mode: iterated conditional modes.
    Modes(Mode),
}

/// The engine.
#[derive(Debug, Clone, PartialEq)]
pub struct BestAllocation {
    /// How to climb.
    pub climb: Climb,
    /// What is looked at of the tables.
    pub given: Given,
    /// Where to start from instead of drawing; then there is one start.
    pub start: Option<StartTables>,
}

/// What it found.
#[derive(Debug)]
pub struct AllocationFit {
    /// The objective of all starts, and after each sweep of the best one. With expectations: ln p(sequence, allocation), with
    /// the number of orders in which each record's hidden values can have come; total and arrangements make it ln pi(S).
    /// With modes the tables' density instead of their integral, up to a constant of the prior.
    pub climbs: Climbs,
    layout: Layout,
    arrangements: Vec<Arrangement>,
    given: Given,
    counts: Numbers,
    /// The tables, with modes.
    point: Option<Point>,
}

impl AllocationFit {
    /// The tables given the allocation, for the problem that was fitted: means and spreads, or their modes.
    pub fn tables(&self, problem: &Problem<'_>) -> Vec<TableMeans> {
        match &self.point {
            None => dirichlet_means(problem, &self.layout, &self.counts),
            Some(point) => point.means(problem, &self.layout),
        }
    }

    /// ln p(sequence | tables) with every table at its mean or mode.
    pub fn ln_likelihood(&self, problem: &Problem<'_>) -> f64 {
        let mode = match self.given {
            Given::Expectations => Mode::Softmax,
            Given::Modes(mode) => mode,
        };
        let mut point = Point::new(&self.layout, mode, Numbers::zeros(self.layout.n_cells));
        let all = vec![true; self.layout.tables.len()];
        // The mean of a row is its mode in the softmax basis.
        point.set(&self.layout, &all, &mut self.counts.clone(), Isa::detect());
        self.layout.ln_likelihood(&self.arrangements, &point.weights) + certain_likelihood(problem, &self.layout, mode)
    }
}

impl BestAllocation {
    /// Climbs from all starts.
    ///
    /// # Errors
    /// When cancelled, when the time is up before the first sweep, when the start does not fit the model, when cells are
    /// unknown, when a pseudo-count is below one and the density's mode was asked for, or when the tables have too many
    /// cells.
    pub fn fit(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<AllocationFit> {
        problem.check_whole("dual-em and icm")?;
        if !problem.counts.unknown.is_empty() {
            let message = "with unknown cells there is no one number of tokens to allocate; use --method vb or em";
            return Err(Error::Setting(message.into()));
        }
        if self.given == Given::Modes(Mode::Density) {
            check_density(problem)?;
        }
        let layout = Layout::new(problem)?;
        let wanted = vec![true; layout.tables.len()];
        let arrangements = Arrangement::of_groups(&layout, problem.counts, &wanted, None);
        check_states(problem, &layout)?;
        let name = if self.given == Given::Expectations { "dual-em" } else { "icm" };
        let has_prior = self.given != Given::Modes(Mode::Likelihood);
        let given = self
            .start
            .as_ref()
            .map(|start| start::given(&layout, problem.model, start, false, has_prior))
            .transpose()?;
        let constant = match self.given {
            Given::Expectations => layout.closed_form.value(),
            Given::Modes(mode) => certain_likelihood(problem, &layout, mode) + certain_density(problem, &layout, mode),
        };
        let yardstick = Yardstick::new(problem, constant);
        let settings = format!("{name} {:?}", self.given);
        let fingerprint = self.climb.fingerprint(&settings, problem, &layout, &arrangements, given.as_ref(), seed);
        let climb = Climb { restarts: if given.is_some() { 1 } else { self.climb.restarts }, ..self.climb.clone() };
        let (climbs, state) = climb.climb_from_all(name, fingerprint, control, |restart, watch| {
            let weights =
                given.clone().unwrap_or_else(|| start::random(&layout, Spread::Slight, has_prior, seed, restart));
            let mut ascent = Ascent::new(&layout, &arrangements, self.given, weights, self.climb.isa);
            let own = watch.saved().and_then(|kept: Kept| ascent.restore(kept)).unwrap_or_default();
            let share = Cell::new(0.0);
            let tick_at = |now: f64| {
                share.set(now);
                watch.tick(now)
            };
            let look = || watch.tick_inside(share.get());
            let mut work = Work { ascent, look: &look };
            let (mut trace, end) = climb.climb(yardstick, &mut work, own, watch, &tick_at)?;
            let ascent = work.ascent;
            trace.iter_mut().for_each(|objective| *objective += constant);
            let mut state = ascent.counts.to_vec();
            state.extend(ascent.point.iter().flat_map(Point::to_list));
            Ok(Climbed { trace, end, state })
        })?;
        let (cells, point) = state.split_at(layout.n_cells);
        let mut counts = Numbers::zeros(layout.n_cells);
        counts.copy_from_slice(cells);
        let point = match self.given {
            Given::Expectations => None,
            Given::Modes(mode) => Some(Point::from_list(&layout, mode, point)),
        };
        Ok(AllocationFit { climbs, layout, arrangements, given: self.given, counts, point })
    }
}

/// A climb under way.
#[derive(Debug)]
struct Ascent<'l> {
    layout: &'l Layout,
    arrangements: &'l [Arrangement],
    isa: Isa,
    /// Logarithms of the weights of all cells.
    logs: Vec<f64>,
    /// The allocation's counts of all cells.
    counts: Numbers,
    /// Those of the next one, while it is made.
    new_counts: Numbers,
    rows: Vec<f64>,
    weights: Numbers,
    row_psi: Vec<f64>,
    point: Option<Point>,
    search: BestStates,
}

/// What is kept of it.
#[derive(Serialize, Deserialize)]
struct Kept {
    trace: Vec<f64>,
    logs: Vec<f64>,
    counts: Vec<f64>,
    point: Option<Vec<f64>>,
}

/// A climb, and who is asked between records whether to go on.
struct Work<'w, 'l> {
    ascent: Ascent<'l>,
    look: &'w dyn Fn() -> Result<()>,
}

impl Ascend for Work<'_, '_> {
    fn sweep(&mut self) -> Result<f64> {
        self.ascent.sweep(self.look)
    }

    fn keep(&self, watch: &Watch<'_>, trace: &[f64]) {
        if trace.is_empty() {
            return;
        }
        let Ascent { logs, counts, point, .. } = &self.ascent;
        let point = point.as_ref().map(Point::to_list);
        watch.keep(&Kept { trace: trace.to_vec(), logs: logs.clone(), counts: counts.to_vec(), point });
    }
}

impl<'l> Ascent<'l> {
    /// Goes back to what was kept, and gives the objectives so far; `None` where it is of another make.
    fn restore(&mut self, kept: Kept) -> Option<Vec<f64>> {
        let (n_cells, n_rows) = (self.layout.n_cells, self.layout.n_rows);
        let is_point = |list: &Vec<f64>| list.len() == n_cells + n_rows;
        let is_whole = kept.logs.len() == n_cells
            && kept.counts.len() == n_cells
            && kept.point.is_some() == self.point.is_some()
            && kept.point.as_ref().is_none_or(is_point);
        if !is_whole {
            return None;
        }
        self.logs = kept.logs;
        self.counts.copy_from_slice(&kept.counts);
        if let (Some(point), Some(list)) = (&mut self.point, &kept.point) {
            *point = Point::from_list(self.layout, point.mode(), list);
        }
        Some(kept.trace)
    }

    fn new(layout: &'l Layout, arrangements: &'l [Arrangement], given: Given, weights: Numbers, isa: Isa) -> Self {
        let point = match given {
            Given::Expectations => None,
            Given::Modes(mode) => Some(Point::new(layout, mode, weights.clone())),
        };
        Ascent {
            layout,
            arrangements,
            isa,
            logs: weights.iter().map(|weight| weight.ln()).collect(),
            counts: Numbers::zeros(layout.n_cells),
            new_counts: Numbers::zeros(layout.n_cells),
            rows: vec![0.0; layout.n_rows],
            weights,
            row_psi: vec![0.0; layout.n_rows],
            point,
            search: BestStates::default(),
        }
    }

    /// A new allocation, and the tables that go with it.
    fn sweep(&mut self, look: &dyn Fn() -> Result<()>) -> Result<f64> {
        let layout = self.layout;
        let orders = self.allocate(look)?;
        if let Some(fixed) = &layout.fixed {
            self.counts.iter_mut().zip(fixed).for_each(|(count, fixed)| *count += fixed);
        }
        match &mut self.point {
            None => {
                for table in &layout.tables {
                    add_rows(table, &self.counts, &mut self.rows);
                }
                let counts = CellCounts { cells: &self.counts, rows: &self.rows };
                let as_given = vec![1.0; layout.tables.len()];
                let objective = ln_constants(layout, &as_given, counts, self.isa).value() + orders;
                let logs = Some(&mut self.logs[..]);
                let out = ExpectedLogs { weights: &mut self.weights, logs, row_psi: &mut self.row_psi };
                expected_logs(layout, &as_given, counts, self.isa, out);
                Ok(objective)
            }
            Some(point) => {
                let all = vec![true; layout.tables.len()];
                point.set(layout, &all, &mut self.counts.clone(), self.isa);
                self.logs.iter_mut().zip(point.weights.iter()).for_each(|(log, weight)| *log = weight.ln());
                let used = self.counts.iter().zip(&self.logs).filter(|(count, _)| **count > 0.0);
                Ok(used.map(|(count, log)| count * log).sum::<f64>() + point.ln_prior(layout) + orders)
            }
        }
    }

    /// Puts all tokens where their multinomial is largest. Gives ln of the number of orders that all records' hidden values
    /// can have come in; minus infinity when a record is impossible. When it is stopped, the counts stay as they were.
    fn allocate(&mut self, look: &dyn Fn() -> Result<()>) -> Result<f64> {
        let mut new_counts = std::mem::take(&mut self.new_counts);
        new_counts.fill(0.0);
        let mut orders = 0.0;
        let mut stopped = Ok(());
        let mut n_seen = 0u64;
        let (mut logs, mut shared_out) = (Vec::new(), Vec::new());
        for arrangement in self.arrangements {
            let group = &self.layout.groups[arrangement.group];
            let is_one_bucket = group.elimination.buckets().len() == 1;
            arrangement.for_each_record(|starts, count| {
                n_seen += 1;
                if stopped.is_ok() && (n_seen.is_multiple_of(RECORDS_PER_LOOK) || !is_one_bucket) {
                    stopped = look();
                }
                if stopped.is_err() {
                    return;
                }
                let n = count as u64;
                let states = if is_one_bucket {
                    logs.clear();
                    logs.resize(group.elimination.n_states(), 0.0);
                    for (family, &start) in group.families.iter().zip(starts) {
                        let cells = family.offsets.iter().map(|&at| self.logs[(start + at) as usize]);
                        logs.iter_mut().zip(cells).for_each(|(log, cell)| *log += cell);
                    }
                    None
                } else {
                    self.search.start(group, starts, &self.logs);
                    Some(self.most_probable(group, n, &mut logs))
                };
                if logs.iter().all(|&log| log == f64::NEG_INFINITY) {
                    orders = f64::NEG_INFINITY;
                    return;
                }
                multinomial::mode(n, &logs, &mut shared_out);
                for (ix, &own) in shared_out.iter().enumerate().filter(|(_, own)| **own > 0) {
                    orders -= ln_factorial_of(own);
                    for (family, &start) in group.families.iter().zip(starts) {
                        let bucket = family.bucket.expect("a known record's families have unseen nodes");
                        let state = states.as_ref().map_or(ix, |states| states[ix].states[bucket] as usize);
                        new_counts[(start + family.offsets[state]) as usize] += own as f64;
                    }
                }
                orders += ln_factorial_of(n);
            });
        }
        if stopped.is_ok() {
            std::mem::swap(&mut self.counts, &mut new_counts);
        }
        self.new_counts = new_counts;
        stopped.map(|()| orders)
    }

    /// The states that a mode of n tokens can use, best first, and their logarithms.
    fn most_probable(&mut self, group: &Group, n: u64, logs: &mut Vec<f64>) -> Vec<BestState> {
        let mut states: Vec<BestState> = Vec::new();
        let mut counts = Vec::new();
        let mut next = self.search.next(group);
        logs.clear();
        while let Some(state) = next {
            logs.push(state.ln);
            states.push(state);
            next = self.search.next(group);
            // As many again before looking whether they suffice.
            if !states.len().is_power_of_two() {
                continue;
            }
            multinomial::mode(n, logs, &mut counts);
            // One more state gets a token only if that beats the last token of another.
            let used = logs.iter().zip(&counts).filter(|(_, count)| **count > 0);
            let weakest = used.map(|(log, &count)| log - (count as f64).ln()).fold(f64::INFINITY, f64::min);
            if next.as_ref().is_none_or(|next| next.ln <= weakest) {
                break;
            }
        }
        states
    }
}

/// Tokens of one record may be spread over all joint values of its unseen nodes, and those are listed.
fn check_states(problem: &Problem<'_>, layout: &Layout) -> Result<()> {
    for group in layout.groups.iter().filter(|group| group.elimination.buckets().len() > 1) {
        let reader = group.reader(problem.counts);
        let most_tokens = (0..reader.len()).map(|record| reader.n_tokens(record)).max().unwrap_or(0) as f64;
        let n_states: f64 = group.elimination.buckets().iter().map(|bucket| bucket.size() as f64).product();
        if n_states.min(most_tokens) > MOST_STATES {
            return Err(Error::TooCostly(format!(
                "a record of {most_tokens} tokens may be spread over {n_states:.3e} joint hidden values, and more than {MOST_STATES:.0e} \
                 cannot be listed; use --method vb or em"
            )));
        }
    }
    Ok(())
}

fn ln_factorial_of(n: u64) -> f64 {
    if n < 2 { 0.0 } else { ln_factorial(n).value() }
}
