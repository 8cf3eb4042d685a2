//! What can be said about the best model.

use super::contest::{ERRORS, FAR_BELOW};
use super::ranking::{LEVEL_ODDS, Ranked};

/// What can be said about the best model.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether nothing but the data stands in the way of telling it from the others: its evidence is known, its lead exceeds the
    /// errors, and no model that was not scored may be the best.
    pub is_settled: bool,
    /// Places, with its own, of those that the data, the errors or lack of scores do not tell from it.
    pub level: Vec<usize>,
    /// Places of those of which no more than a bound is known, and that may be the best by the gaps that were seen between
    /// bounds and evidences.
    pub unscored: Vec<usize>,
    /// Places of those that the errors alone do not tell from it.
    pub unsure: Vec<usize>,
    /// Whether its own error, or that of another model, is unknown.
    pub is_error_unknown: bool,
    /// Models that have no answer.
    pub n_missing: usize,
}

impl Verdict {
    /// `reach` is how far above its bound the evidence of a model may be.
    pub(super) fn of(ranked: &[Ranked], is_best_unknown: bool, n_missing: usize, reach: f64) -> Self {
        let best = &ranked[0];
        let log_odds = |other: &Ranked| other.apart + (other.prior / best.prior).ln();
        let error = |other: &Ranked| other.log_bayes_factor.map(|(_, error)| error);
        let is_unscored = |other: &Ranked| other.is_bound && log_odds(other) >= -reach;
        let is_level =
            |other: &Ranked| error(other).is_some_and(|error| log_odds(other) - ERRORS * error >= -LEVEL_ODDS.ln());
        // Brackets that do not overlap tell two models apart, however wide they are; but not if chains find modes further apart.
        let is_outside = |other: &Ranked| {
            let at_most = other.log_bayes_factor_between.map_or(f64::INFINITY, |apart| apart.upper);
            let is_beyond_error = error(other).is_none_or(|error| log_odds(other) < -error);
            at_most + (other.prior / best.prior).ln() < -LEVEL_ODDS.ln() && is_beyond_error
        };
        let is_within_errors = |other: &Ranked| {
            let is_within = error(other).is_some_and(|error| {
                // Nothing is told apart by a number of which nobody knows how wrong it is, nor by one that may be wrong by as much.
                let reach = (ERRORS * error).min(FAR_BELOW.max(error));
                error.is_infinite() || (error > 0.0 && log_odds(other) >= -reach)
            });
            is_within && !is_outside(other)
        };
        let others = || ranked.iter().enumerate().skip(1);
        let places = |is: &dyn Fn(&Ranked) -> bool| -> Vec<usize> {
            others().filter(|(_, other)| is(other)).map(|(place, _)| place).collect()
        };
        // Of a best model that has a bound alone nothing is told, but of those that are out of its reach.
        let is_open = |other: &Ranked| best.is_bound && !other.is_bound && log_odds(other) >= -reach;
        let unscored = places(&is_unscored);
        // Level comes first: where the data do not tell, smaller errors would not either.
        let unsure = places(&|other| !is_level(other) && is_within_errors(other));
        let mut level = vec![0];
        level.extend(places(&|other| {
            is_level(other) || is_within_errors(other) || is_unscored(other) || is_open(other)
        }));
        let is_error_unknown = is_best_unknown || others().any(|(_, other)| error(other).is_some_and(f64::is_infinite));
        let is_settled =
            !best.is_bound && unscored.is_empty() && unsure.is_empty() && !is_error_unknown && n_missing == 0;
        Verdict { is_settled, level, unscored, unsure, is_error_unknown, n_missing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::anneal::Bracket;

    fn ranked(apart: f64, error: f64) -> Ranked {
        let (posterior, log_bayes_factor) = (Some((0.5, 0.0)), Some((apart, error)));
        let log_bayes_factor_between = None;
        Ranked {
            candidate: 0,
            is_bound: false,
            prior: 0.5,
            apart,
            posterior,
            log_bayes_factor,
            log_bayes_factor_between,
        }
    }

    fn bound(apart: f64) -> Ranked {
        Ranked { is_bound: true, posterior: None, log_bayes_factor: None, ..ranked(apart, 0.0) }
    }

    /// Whether it is settled, and who is level, with bounds up to so many nats below the evidence.
    fn verdict(others: &[Ranked], reach: f64) -> (bool, Vec<usize>) {
        let verdict = Verdict::of(&[&[ranked(0.0, 0.0)], others].concat(), false, 0, reach);
        (verdict.is_settled, verdict.level)
    }

    #[test]
    fn a_lead_within_the_errors_is_not_settled() {
        assert_eq!(verdict(&[ranked(-5.0, 0.5)], 0.0), (true, vec![0]));
        assert_eq!(verdict(&[ranked(-5.0, 2.0), ranked(-50.0, 2.0)], 0.0), (false, vec![0, 1]));
        assert_eq!(verdict(&[ranked(-90.0, 124.0), ranked(-150.0, 124.0)], 0.0), (false, vec![0, 1]));
        assert_eq!(verdict(&[ranked(-661.0, 999.0)], 0.0), (false, vec![0, 1]));
    }

    #[test]
    fn brackets_that_do_not_overlap_settle_it_and_others_do_not() {
        let with = |apart: f64, error: f64, (lower, upper): (f64, f64)| Ranked {
            log_bayes_factor_between: Some(Bracket { lower, upper, error: 0.05 }),
            ..ranked(apart, error)
        };
        assert_eq!(verdict(&[with(-35.0, 15.0, (-60.0, -11.7))], 0.0), (true, vec![0]));
        assert_eq!(verdict(&[with(-35.0, 15.0, (-60.0, 4.0))], 0.0), (false, vec![0, 1]));
        // The other model may be as good as level with the best.
        assert_eq!(verdict(&[with(-35.0, 15.0, (-60.0, -0.5))], 0.0), (false, vec![0, 1]));
        // Narrow brackets, but other chains would be further away.
        assert_eq!(verdict(&[with(-35.0, 200.0, (-60.0, -11.7))], 0.0), (false, vec![0, 1]));
    }

    #[test]
    fn small_odds_are_level_and_that_is_settled_whatever_small_errors_say() {
        assert_eq!(verdict(&[ranked(-0.5, 0.0), ranked(-9.0, 0.0)], 0.0), (true, vec![0, 1]));
        // ln 3 is 1.0986: 0.03 and three errors of 0.05 are far below it, so no work would tell these two apart.
        assert_eq!(verdict(&[ranked(-0.03, 0.05)], 0.0), (true, vec![0, 1]));
        // Odds that may be three to one within their errors are not called level.
        assert_eq!(verdict(&[ranked(-1.08, 0.02), ranked(-1.02, 0.02)], 0.0), (true, vec![0, 2]));
        assert_eq!(verdict(&[ranked(-0.5, 0.3)], 0.0), (false, vec![0, 1]));
    }

    #[test]
    fn without_an_error_nothing_is_told_apart() {
        assert_eq!(verdict(&[ranked(-300.0, f64::INFINITY)], 0.0), (false, vec![0, 1]));
        let unknown = Verdict::of(&[ranked(0.0, 0.0)], true, 0, 0.0);
        assert!(!unknown.is_settled && unknown.is_error_unknown);
    }

    #[test]
    fn a_bound_within_the_gaps_that_were_seen_leaves_the_ranking_open() {
        assert_eq!(verdict(&[bound(-359.0)], 541.0), (false, vec![0, 1]));
        assert_eq!(verdict(&[bound(-359.0)], 300.0), (true, vec![0]));
        // No gap was seen.
        assert_eq!(verdict(&[bound(-1e6)], f64::INFINITY), (false, vec![0, 1]));
        let first = Verdict::of(&[bound(0.0), bound(-1e6)], false, 0, 10.0);
        assert!(!first.is_settled && first.level == [0], "a bound that comes first is never settled");
    }
}
