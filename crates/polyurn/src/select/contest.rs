//! Scores all candidates, the doubtful ones with more work.

use super::field::Field;
use super::gaps::{GROWTH as GAP_GROWTH, Gaps};
use super::logbook::Logbook;
use super::ranking::LEVEL_ODDS;
use super::runner::{Pass, Runner};
use super::scored::Scored;
use crate::Seed;
use crate::control::{Cancel, Control};
use crate::error::Result;
use crate::score::{Method, Score, Scoring};
use crate::warning::Warning;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// What is to be done for all candidates.
#[derive(Debug, Clone)]
pub struct Contest {
    /// How to score, where the method is not `auto` or particles have settings of their own: then there is one round.
    pub scoring: Scoring,
    /// Threads.
    pub threads: usize,
    /// Of all random draws.
    pub seed: Seed,
    /// The size of the prior for each candidate, in place of its own.
    pub a: Option<Vec<f64>>,
    /// When to stop; without it nothing depends on the clock.
    pub deadline: Option<Instant>,
    /// How long all that a logbook is for may take. Scores whose sizes a limit chose are not taken up by a contest with more time.
    pub time_limit: Option<Duration>,
    /// Stops from outside.
    pub cancel: Cancel,
    /// Whether to compute bounds by variational Bayes: they stand beside the evidence, and save work on models that they rule
    /// out.
    pub wants_bounds: bool,
    /// Rounds of more work at most, where there is no deadline.
    pub most_rounds: u32,
}

/// A model whose bound is so many nats below the best bound is not scored at first. Bounds of different models cannot be
/// compared, so that says in which order to score and no more: see [`Gaps`] for who is left out.
pub(super) const FAR_BELOW: f64 = 100.0;
/// Tokens beyond which quick scores are not worth their time.
const MOST_STAGED: u64 = 19_999;
/// With no more models than this to begin with, quick scores are not worth their time.
const FEW: usize = 2;
/// Tokens, counted once for each model that cannot be told apart, from which nobody waits for a second careful round unasked.
const TOO_MANY_TOKENS: u64 = 8000;
/// A candidate so many nats below the best is out of it, whatever its error says. Quick scores are too low where there are
/// many tokens and components, but the bound that stands beside them counts as well.
pub(super) const OUT_OF_REACH: f64 = 25.0;
/// Tokens for which a quick score may be too low by a nat.
const TOKENS_PER_NAT: f64 = 50.0;
/// Two evidences differ if their distance exceeds so many standard errors.
pub(super) const ERRORS: f64 = 3.0;
/// An error below this does not matter to anybody.
const SMALL_ERROR: f64 = 0.1;
/// How many times as many runs each further round has.
const GROWTH: u64 = 2;
/// Runs of the first careful round.
const CAREFUL_RUNS: u64 = 4;
/// Shares of the time that is left for bounds, for models that are far below, and for quick scores.
pub(super) const BOUND_SHARE: f64 = 0.2;
const FAR_SHARE: f64 = 0.1;
const QUICK_SHARE: f64 = 0.35;
/// Share of the time for a first score of every model where all tokens are looked at at once.
const FIRST_ROUND_SHARE: f64 = 0.6;
/// How much of the work is done, about, after bounds, after models that are far below, and after quick scores.
const BOUNDS_DONE: f64 = 0.05;
const OTHERS_DONE: f64 = 0.1;
const QUICK_DONE: f64 = 0.35;
/// Share of what is left that a careful round takes where more may follow.
const ROUND: f64 = 0.6;
/// Why a model has no more than a bound.
const NO_TIME: &str = "there was no time for more than its bound";

impl Contest {
    /// Whether cheap passes come first and careful ones where the ranking is uncertain; else all are scored as asked. Of a corpus
    /// quick scores say nothing: each model is scored with care, and once more where brackets overlap.
    pub fn is_staged(&self, n_tokens: u64) -> bool {
        self.scoring.method == Method::Auto
            && !self.scoring.wants_particles
            && !self.scoring.wants_runs
            && n_tokens <= MOST_STAGED
    }

    /// Scores every candidate; there is none where there was no time. What the logbook has is not done again.
    ///
    /// # Errors
    /// What is wrong with a model, and a stop from outside; the logbook is written down first.
    pub fn run(&self, field: &Field, logbook: &Logbook, control: &mut Control<'_>) -> Result<Vec<Option<Scored>>> {
        let found = self.passes(field, logbook, control);
        let is_cut = match &found {
            Ok(found) => found.iter().any(|found| found.as_ref().is_none_or(Scored::is_cut)),
            Err(_) => true,
        };
        if is_cut {
            logbook.keep_now(control)?;
        }
        found
    }

    fn passes(&self, field: &Field, logbook: &Logbook, control: &mut Control<'_>) -> Result<Vec<Option<Scored>>> {
        let runner = Runner { contest: self, field, logbook, out_of_reach: Mutex::default() };
        let everybody: Vec<usize> = (0..field.candidates().len()).collect();
        let is_staged = self.is_staged(field.n_tokens());
        let mut tick = |stage: &str, (from, to): (f64, f64), done: f64| {
            logbook.keep(control)?;
            control.tick(stage, from + (to - from) * done)
        };
        let mut bounds = vec![None; everybody.len()];
        let mut scores = (0.0, 1.0);
        if self.wants_bounds {
            bounds = runner.bounds(&everybody, &mut |done| tick("bounds", (0.0, BOUNDS_DONE), done))?;
            scores.0 = BOUNDS_DONE;
        }
        let found = vec![None; everybody.len()];
        let mut state = State { runner, bounds, found, tried: vec![false; everybody.len()], passes: 0 };
        if is_staged {
            state.stages(&mut tick)?;
            state.say_why_left();
        } else if matches!(self.scoring.method, Method::Auto | Method::Anneal) && !self.scoring.wants_particles {
            state.whole_rounds(&everybody, &mut |done| tick("scores", scores, done))?;
        } else {
            state.pass(&everybody, &self.scoring, 1.0, &mut |done| tick("scores", scores, done))?;
        }
        state.take_bounds();
        Ok(state.found)
    }

    fn is_over(&self, n_rounds: u32) -> bool {
        match self.deadline {
            None => self.cancel.is_over() || n_rounds >= self.most_rounds,
            Some(_) => self.is_time_up(),
        }
    }

    fn is_time_up(&self) -> bool {
        self.cancel.is_over() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// A contest under way.
struct State<'a> {
    runner: Runner<'a>,
    bounds: Vec<Option<Score>>,
    found: Vec<Option<Scored>>,
    /// Who was scored by more than a bound, or was to be.
    tried: Vec<bool>,
    /// Passes of scores so far: each has its own random numbers.
    passes: u32,
}

/// Told of a stage's name, from where to where it takes the work, and the share of it that is done.
type Tick<'t> = dyn FnMut(&str, (f64, f64), f64) -> Result<()> + 't;

impl State<'_> {
    /// From bounds to quick scores to careful ones.
    fn stages(&mut self, tick: &mut Tick<'_>) -> Result<()> {
        let contest = self.runner.contest;
        let field = self.runner.field;
        let n_tokens = field.n_tokens();
        let (near, far) = self.first_and_rest();
        // What is cheap comes first: no later pass can then use up its time.
        let cheap = contest.exact_if_cheap();
        let mut tick_far = |done: f64| tick("other scores", (BOUNDS_DONE, OTHERS_DONE), done);
        self.runner.pass(&far, &cheap, Pass::Cheap, FAR_SHARE, &mut self.found, &mut tick_far)?;
        self.put_bounds_in_place();
        let mut doubtful = near.clone();
        let mut done_before = OTHERS_DONE;
        if near.len() > FEW || contest.most_rounds == 0 {
            self.quick(&near, &mut |done| tick("quick scores", (OTHERS_DONE, QUICK_DONE), done))?;
            while !self.admit(&mut |_| tick("quick scores", (QUICK_DONE, QUICK_DONE), 0.0))?.is_empty() {}
            done_before = QUICK_DONE;
            doubtful = self.within_reach(Some(n_tokens));
        } else {
            near.iter().for_each(|&ix| self.tried[ix] = true);
        }
        let mut runs = CAREFUL_RUNS;
        for n_rounds in 0.. {
            let is_long = n_tokens.saturating_mul(doubtful.len() as u64) > TOO_MANY_TOKENS;
            let is_enough = contest.deadline.is_none() && n_rounds > 0 && is_long;
            if doubtful.is_empty() || is_enough || contest.is_over(n_rounds) {
                break;
            }
            let careful = contest.careful(runs, doubtful.len(), n_rounds == 0, n_tokens, self.height());
            // A round that may not be the last leaves something to those after it.
            let is_last = contest.deadline.is_none() && (n_rounds + 1 >= contest.most_rounds || is_long);
            let end = done_before + if is_last { 1.0 } else { ROUND } * (1.0 - done_before);
            let mut tick_round = |done: f64| tick("closer scores", (done_before, end), done);
            self.pass(&doubtful, &careful, 1.0, &mut tick_round)?;
            done_before = end;
            // Careful scores show gaps, and a best model, that quick ones did not. How many come late nobody knows.
            let mut tick_late = |_: f64| tick("closer scores", (end, end), 0.0);
            loop {
                let admitted = self.admit(&mut tick_late)?;
                let late: Vec<usize> =
                    self.within_reach(Some(n_tokens)).into_iter().filter(|ix| admitted.contains(ix)).collect();
                if admitted.is_empty() {
                    break;
                }
                if !late.is_empty() {
                    let careful = contest.careful(CAREFUL_RUNS, late.len(), true, n_tokens, self.height());
                    self.pass(&late, &careful, 1.0, &mut tick_late)?;
                }
            }
            doubtful = self.within_reach(None);
            runs *= GROWTH;
        }
        self.put_out_of_reach_in_place()?;
        self.put_unscored_in_place()
    }

    /// Scores that look at all tokens at once, one model after another; then again, with more steps, for those that brackets and errors do
    /// not tell from the best.
    fn whole_rounds(&mut self, everybody: &[usize], tick: &mut dyn FnMut(f64) -> Result<()>) -> Result<()> {
        let contest = self.runner.contest;
        let is_auto = contest.scoring.method == Method::Auto;
        let share = if is_auto && contest.deadline.is_some() { FIRST_ROUND_SHARE } else { 1.0 };
        let done_first = if is_auto { FIRST_ROUND_SHARE } else { 1.0 };
        self.pass_in_turn(everybody, &contest.scoring, share, &mut |done| tick(done_first * done))?;
        self.put_out_of_reach_in_place()?;
        let doubtful = self.not_told_from_best();
        if is_auto && !doubtful.is_empty() && !contest.is_time_up() {
            self.pass_in_turn(&doubtful, &contest.longer(), 1.0, &mut |done| {
                tick(done_first + (1.0 - done_first) * done)
            })?;
        }
        Ok(())
    }

    /// Those whose brackets the best one's overlaps, or that are within the errors of it; and the best.
    fn not_told_from_best(&self) -> Vec<usize> {
        let Some((best, height)) = self.best() else { return Vec::new() };
        let Some(top) = &self.found[best] else { return Vec::new() };
        let overlaps = |other: &Scored| {
            let is_near = height - other.score.log_marginal <= other.error().hypot(top.error());
            other.apart_between(top).is_some_and(|apart| apart.upper >= 0.0 || is_near)
        };
        let all: Vec<usize> = (0..self.found.len())
            .filter(|&ix| self.found[ix].as_ref().is_some_and(|other| !other.score.is_exact() && overlaps(other)))
            .collect();
        if all.iter().any(|&ix| ix != best) { all } else { Vec::new() }
    }

    fn pass_in_turn(
        &mut self,
        who: &[usize],
        scoring: &Scoring,
        share: f64,
        tick: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<()> {
        self.passes += 1;
        self.runner.pass_in_turn(who, scoring, Pass::Number(self.passes), share, &mut self.found, tick)?;
        self.put_beside();
        Ok(())
    }

    /// Whom to score first, and the others: those whose bound is near the best one, their next sizes on either side, and the
    /// best of each model given, since gaps of one structure say little about those of another.
    fn first_and_rest(&self) -> (Vec<usize>, Vec<usize>) {
        let field = self.runner.field;
        let height = |ix: usize| self.bounds[ix].as_ref().map(|bound| bound.log_marginal);
        let everybody = 0..self.found.len();
        let best = everybody.clone().filter_map(height).fold(f64::NEG_INFINITY, f64::max);
        let is_near = |ix: usize| height(ix).is_none_or(|height| height >= best - FAR_BELOW);
        let mut firsts: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
        for ix in everybody.clone() {
            let first = firsts.entry(field.candidates()[ix].entry).or_insert((f64::NEG_INFINITY, ix));
            *first = height(ix).filter(|height| *height > first.0).map_or(*first, |height| (height, ix));
        }
        let is_first_of_its_kind = |ix: usize| firsts.values().any(|(_, first)| *first == ix);
        everybody.clone().partition(|&ix| {
            is_near(ix)
                || is_first_of_its_kind(ix)
                || everybody.clone().any(|other| is_near(other) && field.are_neighbours(ix, other))
        })
    }

    /// Scores some and puts their bounds beside.
    fn pass(
        &mut self,
        who: &[usize],
        scoring: &Scoring,
        share: f64,
        tick: &mut dyn FnMut(f64) -> Result<()>,
    ) -> Result<()> {
        self.passes += 1;
        self.runner.pass(who, scoring, Pass::Number(self.passes), share, &mut self.found, tick)?;
        self.put_beside();
        Ok(())
    }

    fn quick(&mut self, who: &[usize], tick: &mut dyn FnMut(f64) -> Result<()>) -> Result<()> {
        let n_tokens = self.runner.field.n_tokens();
        let best_bound = self.bounds.iter().flatten().map(|bound| bound.log_marginal).max_by(f64::total_cmp);
        let quick = self.runner.contest.quick(n_tokens, best_bound);
        self.pass(who, &quick, QUICK_SHARE, tick)?;
        for &ix in who {
            if let Some(found) = &mut self.found[ix] {
                found.is_quick = !matches!(found.score.bound(), "exact" | "lower");
                self.tried[ix] = found.score.bound() != "lower";
            }
        }
        self.runner.out_of_reach().keys().for_each(|&ix| self.tried[ix] = true);
        Ok(())
    }

    /// Gives quick scores to models that were left with a bound and that, by the gaps seen since, may be the best. Who they
    /// are.
    fn admit(&mut self, tick: &mut dyn FnMut(f64) -> Result<()>) -> Result<Vec<usize>> {
        if self.runner.contest.is_time_up() {
            return Ok(Vec::new());
        }
        let mut who = self.admissible();
        if !who.is_empty() {
            self.quick(&who, tick)?;
        }
        // Nobody is admitted twice, though the time was up.
        who.retain(|&ix| self.tried[ix]);
        Ok(who)
    }

    /// Models with no more than a bound that may be the best: the bound is within the gaps that were seen, grown, of the best
    /// evidence; or it is next in size to the best. While no gap was seen, the one with the highest bound.
    fn admissible(&self) -> Vec<usize> {
        let reach = Gaps::seen(self.found.iter().flatten()).reach();
        let open = |ix: &usize| {
            !self.tried[*ix] && self.bounds[*ix].is_some() && self.found[*ix].as_ref().is_none_or(Scored::is_bound_only)
        };
        let bound = |ix: usize| self.bounds[ix].as_ref().map_or(f64::NEG_INFINITY, |bound| bound.log_marginal);
        let everybody: Vec<usize> = (0..self.found.len()).filter(open).collect();
        let Some((best, height)) = self.best() else { return everybody };
        if reach.is_infinite() {
            return everybody
                .into_iter()
                .max_by(|&one, &other| bound(one).total_cmp(&bound(other)))
                .into_iter()
                .collect();
        }
        let is_beside = |ix: usize| self.runner.field.are_neighbours(ix, best);
        everybody.into_iter().filter(|&ix| bound(ix) + reach >= height || is_beside(ix)).collect()
    }

    /// The model with the highest evidence, of those that have more than a bound.
    fn best(&self) -> Option<(usize, f64)> {
        let scored = self.found.iter().enumerate().filter_map(|(ix, found)| {
            found.as_ref().filter(|found| !found.is_bound_only()).map(|found| (ix, found.score.log_marginal))
        });
        scored.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The highest evidence so far.
    fn height(&self) -> Option<f64> {
        self.best().map(|(_, height)| height)
    }

    /// Who has to be scored again: after the quick scores everyone within reach of the best, later those that the errors do not
    /// tell from it, and the best itself. An estimate that lies below its own bound counts as much as the bound. After the quick
    /// scores the number of tokens is given: the more there are, the further quick scores are too low.
    fn within_reach(&self, after_quick: Option<u64>) -> Vec<usize> {
        let found = &self.found;
        let height = |found: &Scored| found.at_least();
        // Those left with a bound are not in it.
        let scored: Vec<(usize, &Scored)> = found
            .iter()
            .enumerate()
            .filter_map(|(ix, found)| Some((ix, found.as_ref()?)))
            .filter(|(ix, found)| self.tried[*ix] || !found.is_bound_only())
            .collect();
        let Some(&(best, top)) = scored.iter().max_by(|(_, a), (_, b)| height(a).total_cmp(&height(b))) else {
            return Vec::new();
        };
        let gaps =
            Some(Gaps::seen(found.iter().flatten()).reach()).filter(|reach| reach.is_finite()).unwrap_or(FAR_BELOW);
        let is_near = |other: &Scored| {
            let apart = height(top) - height(other);
            let joint = top.error().hypot(other.error());
            if let Some(n_tokens) = after_quick {
                let reach = if other.is_below_bound() { gaps } else { (ERRORS * joint).min(FAR_BELOW) };
                let too_low = (n_tokens as f64 / TOKENS_PER_NAT).min(FAR_BELOW);
                apart <= reach.max(OUT_OF_REACH).max(too_low)
            } else {
                // Where the data do not tell, more work does not either.
                let is_level = apart + ERRORS * joint <= LEVEL_ODDS.ln();
                joint > SMALL_ERROR && !is_level && apart <= (ERRORS * joint).min(FAR_BELOW)
            }
        };
        let mut all: Vec<usize> =
            scored.iter().filter(|(ix, other)| *ix != best && is_near(other)).map(|(ix, _)| *ix).collect();
        // Later the best only where its own error matters.
        let largest = all.iter().filter_map(|&ix| found[ix].as_ref()).map(Scored::error).fold(0.0, f64::max);
        if after_quick.is_some() || (!all.is_empty() && top.error() >= 0.5 * largest) {
            all.push(best);
        }
        all.retain(|&ix| found[ix].as_ref().is_some_and(|found| !found.score.is_exact()));
        all.sort_unstable();
        all
    }

    /// Puts the bounds where they belong, and says where an estimate lies below its own.
    fn put_beside(&mut self) {
        for (found, bound) in self.found.iter_mut().zip(&self.bounds) {
            let (Some(found), Some(bound)) = (found, bound.as_ref().map(|bound| bound.log_marginal)) else { continue };
            found.bound = Some(bound);
            let is_below = found.is_below_bound();
            let score = &mut found.score;
            let is_new = !score.warnings.iter().any(|warning| matches!(warning, Warning::BelowBound { .. }));
            if is_below && is_new {
                score.warnings.push(Warning::BelowBound { bound: format!("{bound:.2}") });
            }
        }
    }

    /// In place of the hasty bounds of those that have no cheap exact score, the better ones that there are already.
    fn put_bounds_in_place(&mut self) {
        for (found, bound) in self.found.iter_mut().zip(&self.bounds) {
            if let (Some(found), Some(bound)) = (found, bound)
                && found.score.bound() == "lower"
            {
                found.score = bound.clone();
            }
        }
        self.put_beside();
    }

    /// The bounds of those that no engine can hold.
    fn put_out_of_reach_in_place(&mut self) -> Result<()> {
        let all: Vec<(usize, String)> = self.runner.out_of_reach().clone().into_iter().collect();
        let unbound: Vec<usize> = all.iter().map(|(ix, _)| *ix).filter(|&ix| self.bounds[ix].is_none()).collect();
        // Nobody wanted bounds beside the evidence; but here there is nothing else.
        let bounds = self.runner.bounds(&unbound, &mut |_| Ok(()))?;
        unbound.into_iter().zip(bounds).for_each(|(ix, bound)| self.bounds[ix] = bound);
        for (ix, why) in all {
            if let (None, Some(bound)) = (&self.found[ix], &self.bounds[ix]) {
                // What the error advises is for those who ask for this model alone.
                let what = why.split(';').next().unwrap_or_default();
                let why = format!("more than a bound is out of reach: {what}");
                let left = self.runner.with_bound(ix, Score { why, ..bound.clone() })?;
                self.found[ix] = Some(Scored { n_rounds: 1, is_out_of_reach: true, ..left });
            }
        }
        Ok(())
    }

    /// The bounds of those for which there was no time at all.
    fn put_unscored_in_place(&mut self) -> Result<()> {
        for (ix, bound) in self.bounds.iter().enumerate() {
            if let (None, Some(bound)) = (&self.found[ix], bound) {
                self.found[ix] = Some(self.runner.with_bound(ix, Score { why: NO_TIME.into(), ..bound.clone() })?);
            }
        }
        self.put_beside();
        Ok(())
    }

    /// Says why models are left with a bound: there was no time for more, or they are out of reach.
    fn say_why_left(&mut self) {
        let open = self.admissible();
        let gaps = Gaps::seen(self.found.iter().flatten());
        let best = self.best();
        for (ix, found) in self.found.iter_mut().enumerate() {
            let Some(found) = found.as_mut().filter(|found| found.score.bound() == "lower") else { continue };
            if self.runner.out_of_reach().contains_key(&ix) {
                continue;
            }
            match (best, gaps.largest) {
                (Some((_, height)), Some(gap)) if !open.contains(&ix) && found.n_rounds > 0 => {
                    let below = height - found.score.log_marginal;
                    found.score.why = format!(
                        "its bound is {below:.0} nats below the best evidence, which is out of reach: of models with both, none has \
                         its bound further below its evidence than {gap:.0} nats, and {GAP_GROWTH} times that and {OUT_OF_REACH} nats \
                         more are allowed for"
                    );
                }
                _ => {
                    found.score.why = NO_TIME.into();
                    found.n_rounds = 0;
                }
            }
        }
    }

    /// Replaces estimates that lie below their own lower bound by that: they say less.
    fn take_bounds(&mut self) {
        for (found, bound) in self.found.iter_mut().zip(&self.bounds) {
            let (Some(found), Some(bound)) = (found, bound) else { continue };
            if found.is_below_bound() {
                let Score { log_marginal, method, warnings, particles, .. } = found.score.clone();
                let why = format!("its estimate by {method}, {log_marginal:.1}, is below this bound");
                found.score = Score { why, warnings, particles, ..bound.clone() };
                found.is_quick = false;
            }
        }
    }
}
