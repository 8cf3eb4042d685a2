//! The posterior of the total when some cells hold an unknown number of tokens.

use super::parts::ln_arrangements;
use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::exact::{Exact, TotalsRange};
use crate::engine::smc::{Estimate, RunResult, Smc, log_mean_exp};
use crate::error::{Error, Result};
use crate::math::{Double, ln_factorial, log_sum_exp};
use crate::prior::GammaTotal;
use serde::{Deserialize, Serialize};

/// The joint probability of the seen cells and one total.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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
    let list = List::new(problem, range)?;
    let mut tail = list.tail();
    let wants_more = |entries: &[Double]| {
        let n_unknown = entries.len() as u64 - 1;
        match list.last {
            Some(last) => list.n_seen + n_unknown < last,
            None => !tail.is_negligible_after(list.log_joint(n_unknown, entries[n_unknown as usize])),
        }
    };
    let found = exact.unknown_totals(problem, list.foreseen(), wants_more, control)?;
    Ok(list.entries(&found.ln_p_sequence))
}

/// The same from particles, with an error.
#[derive(Debug, Clone)]
pub struct EstimatedTotals {
    /// The totals, from all runs together.
    pub totals: Vec<TotalProbability>,
    /// ln of the sum over totals, of each run by itself.
    pub run_log_marginals: Vec<f64>,
    /// The sum over totals with its error, as if it were one sequence.
    pub estimate: Estimate,
}

/// ln p(seen cells, total) for every total in the range, estimated by particles: one pass of each run gives the whole
/// list, since its urns go on with tokens that fall into unknown cells.
///
/// # Errors
/// A range below the seen total, a missing rate, and whatever the engine returns.
pub fn estimated_totals(
    problem: &Problem<'_>,
    smc: &Smc,
    range: TotalsRange,
    seed: Seed,
    control: &mut Control<'_>,
) -> Result<EstimatedTotals> {
    let list = List::new(problem, range)?;
    let prepared = smc.prepare(problem)?;
    // Each run lists totals until what it leaves out is negligible.
    let wants_more = || {
        let mut tail = list.tail();
        let list = &list;
        move |logs: &[f64]| {
            let n_unknown = logs.len() as u64 - 1;
            match list.last {
                Some(last) => list.n_seen + n_unknown < last,
                None => !tail.is_negligible_after(list.log_joint(n_unknown, Double::from(logs[n_unknown as usize]))),
            }
        }
    };
    let found = prepared.unknown_totals(wants_more, list.last.unwrap_or(0), seed, control)?;
    let longest = found.runs.iter().map(|(_, logs)| logs.len()).max().unwrap_or(0);
    let longest = list.last.map_or(longest, |last| (last - list.n_seen) as usize + 1);
    // Beyond the end of its list a run counts as zero.
    let at = |logs: &[f64], m: usize| logs.get(m).copied().unwrap_or(f64::NEG_INFINITY);
    let means: Vec<Double> = (0..longest)
        .map(|m| Double::from(log_mean_exp(&found.runs.iter().map(|(_, logs)| at(logs, m)).collect::<Vec<_>>())))
        .collect();
    let of_run = |logs: &[f64]| {
        let entries = list.entries(&logs.iter().map(|&ln| Double::from(ln)).collect::<Vec<_>>());
        log_sum_exp(&entries.iter().map(|entry| entry.log_joint).collect::<Vec<_>>())
    };
    let run_log_marginals: Vec<f64> = found.runs.iter().map(|(_, logs)| of_run(logs)).collect();
    let runs = found.runs.into_iter().zip(&run_log_marginals);
    // Ancestors tell the error of the seen tokens' estimate, not that of a sum over totals.
    let runs = runs.map(|((run, _), &ln_p_sequence)| RunResult { ln_p_sequence, variance: f64::NAN, ..run }).collect();
    let mut estimate = Estimate::combine(runs, smc.particles, false);
    estimate.warnings.extend(found.warnings);
    Ok(EstimatedTotals { totals: list.entries(&means), run_log_marginals, estimate })
}

/// Which totals are listed, and how ln p(sequence) becomes their probability.
struct List {
    total: GammaTotal,
    factorials: Double,
    n_seen: u64,
    first: u64,
    last: Option<u64>,
}

impl List {
    fn new(problem: &Problem<'_>, range: TotalsRange) -> Result<Self> {
        let n_seen = problem.counts.n_tokens;
        let total = problem.prior.total(None)?;
        let factorials = ln_arrangements(problem.counts) - ln_factorial(n_seen);
        let (first, last) = match range {
            TotalsRange::Auto => (n_seen, None),
            TotalsRange::Between(low, high) if low < n_seen || high < low => {
                return Err(Error::Setting(format!(
                    "--totals {low}..{high}: totals start at the {n_seen} tokens that were seen and must not run backwards"
                )));
            }
            TotalsRange::Between(low, high) => (low, Some(high)),
        };
        check_length(&total, n_seen, last)?;
        Ok(List { total, factorials, n_seen, first, last })
    }

    fn log_joint(&self, n_unknown: u64, ln_p_sequence: Double) -> f64 {
        let n = self.n_seen + n_unknown;
        let orders = ln_factorial(n) + self.factorials - ln_factorial(n_unknown);
        (self.total.ln_p_total(n) + orders + ln_p_sequence).value()
    }

    /// Tokens in unknown cells that have to be looked at: without a bound, about as many as a few times their mean without
    /// the unknown cells' own probability.
    fn foreseen(&self) -> u64 {
        let unbounded = || (3.0 * (self.total.shape + self.n_seen as f64) / self.total.rate) as u64 + 30;
        self.last.map_or_else(unbounded, |last| last - self.n_seen)
    }

    fn tail(&self) -> Tail {
        Tail { total: self.total, n_seen: self.n_seen, n_listed: 0, log_sum: f64::NEG_INFINITY }
    }

    fn entries(&self, ln_p_sequence: &[Double]) -> Vec<TotalProbability> {
        let listed = ln_p_sequence.iter().zip(0u64..).map(|(&ln_p_sequence, n_unknown)| TotalProbability {
            tokens: self.n_seen + n_unknown,
            log_joint: self.log_joint(n_unknown, ln_p_sequence),
        });
        listed.filter(|entry| entry.tokens >= self.first).collect()
    }
}

/// Longest list of totals.
const MAX_TOTALS: f64 = 1e6;

/// Refuses a list that would never end: with a small rate the totals that matter reach to some multiple of their mean.
fn check_length(total: &GammaTotal, n_seen: u64, last: Option<u64>) -> Result<()> {
    let length = match last {
        Some(last) => (last - n_seen) as f64,
        None => (total.shape + n_seen as f64) / total.rate,
    };
    if length <= MAX_TOTALS {
        return Ok(());
    }
    Err(Error::TooCostly(format!(
        "about {length:.1e} totals would have to be listed; bound them with --totals LO..HI (at most a million), or give a \
         larger --b"
    )))
}

/// Decides when the totals not listed can be left out.
///
/// With q(m) the probability that the next token falls into an unknown cell too, neighbouring terms have the ratio
/// (shape + n + m)/(m + 1) q(m)/(1 + rate). As q is at most 1, the tail is at most the last term times the sum of the
/// products of these ratios without q: a bound that no second peak can break.
struct Tail {
    total: GammaTotal,
    n_seen: u64,
    n_listed: u64,
    log_sum: f64,
}

impl Tail {
    /// Takes the next term in and says whether all later ones can be left out.
    fn is_negligible_after(&mut self, last: f64) -> bool {
        let n_unknown = self.n_listed;
        self.n_listed += 1;
        self.log_sum = log_sum_exp(&[self.log_sum, last]);
        if last == f64::NEG_INFINITY {
            return true;
        }
        let room = (self.log_sum + TAIL.ln() - last).exp();
        let start = self.total.shape + (self.n_seen as f64);
        let (mut term, mut sum) = (1.0, 0.0);
        for m in n_unknown.. {
            let ratio = (start + m as f64) / (m as f64 + 1.0) / (1.0 + self.total.rate);
            term *= ratio;
            sum += term;
            if sum > room {
                return false;
            }
            // Ratios only fall from here (or tend to 1/(1 + rate) from below), so the rest is a geometric series.
            let bound = ratio.max(1.0 / (1.0 + self.total.rate));
            if bound < 1.0 && sum + term * bound / (1.0 - bound) <= room {
                return true;
            }
            if term < 1e-300 {
                return true;
            }
        }
        unreachable!("the sum either converges or exceeds any room")
    }
}
