//! The posterior of the total when some cells hold an unknown number of tokens.

use super::parts::ln_arrangements;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::exact::{Exact, TotalsRange};
use crate::error::{Error, Result};
use crate::math::{Double, ln_factorial, log_sum_exp};
use serde::Serialize;

/// The joint probability of the seen cells and one total.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TotalProbability {
    /// The total.
    pub tokens: u64,
    /// ln p(seen cells, total).
    pub log_joint: f64,
}

/// Share of the probability that may lie beyond the last total listed.
const TAIL: f64 = 1e-12;

/// ln p(seen cells, total) for every total in the range, from the exact engine. Several unknown cells share one
/// factorial: m tokens in them can be interleaved with the seen ones in T!/(prod n! m!) orders (theory.md eq. 9).
///
/// # Errors
/// A range below the seen total, a missing rate, and whatever the engine returns.
pub fn totals(
    problem: &Problem<'_>,
    exact: &Exact,
    range: TotalsRange,
    control: &mut Control<'_>,
) -> Result<Vec<TotalProbability>> {
    let n_seen = problem.counts.n_tokens;
    let total = problem.prior.total(None)?;
    let factorials = ln_arrangements(problem.counts) - ln_factorial(n_seen);
    let log_joint = |n_unknown: u64, ln_p_sequence: Double| -> f64 {
        let n = n_seen + n_unknown;
        (total.ln_p_total(n) + ln_factorial(n) + factorials - ln_factorial(n_unknown) + ln_p_sequence).value()
    };
    let (first, last) = match range {
        TotalsRange::Auto => (n_seen, None),
        TotalsRange::Between(low, high) if low < n_seen || high < low => {
            return Err(Error::Setting(format!(
                "--totals {low}..{high}: totals start at the {n_seen} tokens that were seen and must not run backwards"
            )));
        }
        TotalsRange::Between(low, high) => (low, Some(high)),
    };
    let mut tail = Tail { rate: total.rate, log_joints: Vec::new() };
    let wants_more = |entries: &[Double]| {
        let n_unknown = entries.len() as u64 - 1;
        tail.log_joints.push(log_joint(n_unknown, entries[n_unknown as usize]));
        match last {
            Some(last) => n_seen + n_unknown < last,
            None => !tail.is_negligible(),
        }
    };
    let found = exact.unknown_totals(problem, last.map(|last| last - n_seen), wants_more, control)?;
    let listed = found.ln_p_sequence.iter().zip(0u64..).map(|(&ln_p_sequence, n_unknown)| TotalProbability {
        tokens: n_seen + n_unknown,
        log_joint: log_joint(n_unknown, ln_p_sequence),
    });
    Ok(listed.filter(|entry| entry.tokens >= first).collect())
}

/// Decides when the totals not listed can be left out.
///
/// With q(m) the probability that the next token falls into an unknown cell too, neighbouring terms have the ratio
/// (shape + n + m)/(m + 1) q(m) / (1 + rate). As m grows this tends to at most 1/(1 + rate), from above while the terms
/// rise or from below after their peak, so past the peak the tail is a geometric series with the larger of the current
/// and the limiting ratio.
struct Tail {
    rate: f64,
    log_joints: Vec<f64>,
}

impl Tail {
    fn is_negligible(&self) -> bool {
        let [.., before, last] = self.log_joints[..] else { return false };
        if last == f64::NEG_INFINITY {
            return true;
        }
        let ratio = (last - before).exp().max(1.0 / (1.0 + self.rate));
        ratio < 1.0 && last + (ratio / (1.0 - ratio)).ln() < log_sum_exp(&self.log_joints) + TAIL.ln()
    }
}
