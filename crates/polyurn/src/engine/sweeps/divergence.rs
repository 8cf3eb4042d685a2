//! How far a fitted table of counts is from the data.

use crate::counts::Counts;

/// The generalised Kullback-Leibler divergence of the data from the fit: the sum over seen cells of x ln(x/m) - x + m, with m
/// the intensity times the probability of the cell. Cells without tokens come in through the total. `None` where records
/// show different nodes or cells are unknown: then there is no one table.
pub fn kl_divergence(counts: &Counts, ln_likelihood: f64, intensity: f64) -> Option<f64> {
    let [block] = &counts.blocks[..] else { return None };
    if !counts.unknown.is_empty() {
        return None;
    }
    let term = |x: u64| counts.tokens(x) * counts.tokens(x).ln();
    let entropy: f64 = block.counts.iter().map(term).sum();
    let n = counts.total();
    let divergence = entropy - n * intensity.ln() - ln_likelihood - n + intensity;
    // What is less than the rounding of its parts is nothing.
    let rounding = 1e-14 * (entropy.abs() + ln_likelihood.abs() + n);
    Some(if divergence < rounding { 0.0 } else { divergence })
}

/// ln p(sequence) of tables that give every record as it is seen the share that it has among all.
pub(super) fn perfect_ln_likelihood(counts: &Counts) -> f64 {
    let total = counts.total();
    let all = counts.blocks.iter().flat_map(|block| block.counts.iter());
    all.map(|count| counts.tokens(count) * (counts.tokens(count) / total).ln()).sum()
}
