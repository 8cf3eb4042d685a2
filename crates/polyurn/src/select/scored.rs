//! What was found for one model.

use crate::engine::anneal::Bracket;
use crate::graph::Model;
use crate::score::Score;
use crate::warning::Warning;

/// How far two ways to the same number may differ, relative to it.
const ROUNDING: f64 = 1e-9;

/// What was found for one candidate.
#[derive(Debug, Clone)]
pub struct Scored {
    /// The model with its nodes.
    pub model: Model,
    /// Whether each node is seen.
    pub is_seen: Vec<bool>,
    /// The evidence.
    pub score: Score,
    /// The bound of variational Bayes, on the scale of the evidence.
    pub bound: Option<f64>,
    /// Time for all that was done for it.
    pub seconds: f64,
    /// How often it was scored.
    pub n_rounds: u32,
    /// Whether it has a quick estimate alone: good enough to be out of the running, and often too low.
    pub is_quick: bool,
    /// Whether no engine can hold it, so that no amount of time gives more than a bound.
    pub is_out_of_reach: bool,
}

/// Whether no time limit cut it short.
pub(super) fn is_whole(warnings: &[Warning]) -> bool {
    let is_cut = |warning: &Warning| {
        matches!(warning, Warning::TimeUp { .. } | Warning::StartsCut { .. } | Warning::FewMoves { .. })
    };
    !warnings.iter().any(is_cut)
}

impl Scored {
    /// Whether there was no time for all that was to be done.
    pub fn is_cut(&self) -> bool {
        self.n_rounds == 0 || !is_whole(&self.score.warnings)
    }

    /// Whether it is an estimate that lies below its own lower bound: too low, whatever its error says.
    pub fn is_below_bound(&self) -> bool {
        // A closed form is its own bound but for rounding, and that of a bound.
        let is_less = |bound: f64| self.score.log_marginal < bound - ROUNDING * (1.0 + bound.abs());
        let is_estimate = matches!(self.score.bound(), "estimate" | "bracket");
        is_estimate && self.score.std_error != Some(0.0) && self.bound.is_some_and(is_less)
    }

    /// Whether no more than a lower bound is known of the evidence.
    pub fn is_bound_only(&self) -> bool {
        self.score.bound() == "lower" || self.is_below_bound()
    }

    /// Whether its runs agree so little that its error is a rough one.
    pub fn is_rough(&self) -> bool {
        let is_rough =
            |warning: &Warning| matches!(warning, Warning::RunsDisagree { .. } | Warning::DominantRun { .. });
        self.score.warnings.iter().any(is_rough)
    }

    /// What the evidence is, or is at least.
    pub fn at_least(&self) -> f64 {
        let is_below = self.is_below_bound();
        self.bound.filter(|_| is_below).unwrap_or(self.score.log_marginal)
    }

    /// Its standard error, as far as it has one: zero for exact numbers, infinite where nothing is known.
    pub fn error(&self) -> f64 {
        match self.score.bound() {
            "exact" => 0.0,
            _ if self.is_bound_only() => f64::INFINITY,
            _ => self.score.std_error.unwrap_or(f64::INFINITY),
        }
    }

    /// What the distance of the evidence above that of another model lies between, if one of them has a bracket and the other
    /// has one or is exact.
    ///
    /// An end holds if the two bounds hold that it is made of, so it fails with a probability of at most the sum of theirs, whether or
    /// not they go together.
    pub fn apart_between(&self, other: &Scored) -> Option<Bracket> {
        if std::ptr::eq(self, other) {
            return self.score.bracket().map(|_| Bracket { lower: 0.0, upper: 0.0, error: 0.0 });
        }
        let ends = |scored: &Scored| {
            let Score { log_marginal, .. } = scored.score;
            let exact = Bracket { lower: log_marginal, upper: log_marginal, error: 0.0 };
            scored.score.bracket().or(scored.score.is_exact().then_some(exact))
        };
        let (own, others) = (ends(self)?, ends(other)?);
        let is_any = self.score.bracket().is_some() || other.score.bracket().is_some();
        let (lower, upper) = (own.lower - others.upper, own.upper - others.lower);
        is_any.then_some(Bracket { lower, upper, error: own.error + others.error })
    }
}
