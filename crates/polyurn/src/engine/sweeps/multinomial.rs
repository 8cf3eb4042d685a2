//! The mode of a multinomial distribution.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The most probable counts of `n` draws with probabilities in proportion to exp(`logs`), ties going to the first. The
/// logarithms must not all be minus infinity.
///
/// No count of a mode is less than n p rounded down, and from any counts below a mode, giving draws one by one to the value
/// with the largest p/(count + 1) leads to one.
pub fn mode(n: u64, logs: &[f64], counts: &mut Vec<u64>) {
    counts.clear();
    counts.resize(logs.len(), 0);
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if n == 1 {
        let first = logs.iter().position(|&log| log == largest).expect("a largest one");
        counts[first] = 1;
        return;
    }
    let shares: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
    let total: f64 = shares.iter().sum();
    let mut left = n;
    for (count, share) in counts.iter_mut().zip(&shares) {
        // A little less, so that rounding cannot go beyond a mode.
        *count = ((n as f64 * (share / total) * (1.0 - 1e-14)).floor() as u64).min(left);
        left -= *count;
    }
    let gain = |ix: usize, count: u64| Gain { value: shares[ix] / (count + 1) as f64, ix };
    if left <= FEW {
        for _ in 0..left {
            let best = (0..shares.len()).map(|ix| gain(ix, counts[ix])).max().expect("at least one value");
            counts[best.ix] += 1;
        }
        return;
    }
    let mut heap: BinaryHeap<Gain> = (0..shares.len()).map(|ix| gain(ix, counts[ix])).collect();
    for _ in 0..left {
        let mut best = heap.peek_mut().expect("at least one value");
        let ix = best.ix;
        counts[ix] += 1;
        *best = gain(ix, counts[ix]);
    }
}

/// Draws that are looked for one by one; for more of them a heap is quicker.
const FEW: u64 = 8;

/// What one more draw of a value would gain; the first of equals is the largest.
#[derive(Debug, Clone, Copy)]
struct Gain {
    value: f64,
    ix: usize,
}

impl Ord for Gain {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(other.ix.cmp(&self.ix))
    }
}

impl PartialOrd for Gain {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Gain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Gain {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{draw, ln_factorial};
    use crate::{Purpose, Seed};

    fn ln_probability(counts: &[u64], logs: &[f64]) -> f64 {
        let term = |(&count, log): (&u64, &f64)| {
            (if count > 0 { count as f64 * log } else { 0.0 }) - ln_factorial(count).value()
        };
        counts.iter().zip(logs).map(term).sum()
    }

    /// All ways to share `n` out over the values from `at` on.
    fn best_by_listing(n: u64, at: usize, counts: &mut Vec<u64>, logs: &[f64]) -> f64 {
        if at + 1 == counts.len() {
            counts[at] = n;
            return ln_probability(counts, logs);
        }
        let mut best = f64::NEG_INFINITY;
        for own in 0..=n {
            counts[at] = own;
            best = best.max(best_by_listing(n - own, at + 1, counts, logs));
        }
        best
    }

    #[test]
    fn no_other_counts_are_more_probable() {
        let mut rng = Seed(2).stream(Purpose::Urn, 0, 0, 0);
        for round in 0..300u64 {
            let n_values = 1 + (round % 4) as usize;
            let logs: Vec<f64> = (0..n_values).map(|_| 4.0 * draw::open_unit(&mut rng).ln()).collect();
            for n in [1, 2, 5, 9] {
                let mut counts = Vec::new();
                mode(n, &logs, &mut counts);
                assert_eq!(counts.iter().sum::<u64>(), n);
                let best = best_by_listing(n, 0, &mut vec![0; n_values], &logs);
                assert!(ln_probability(&counts, &logs) >= best - 1e-12, "{logs:?} {n}: {counts:?}");
            }
        }
    }

    #[test]
    fn many_values_are_shared_out_as_few_are() {
        // More draws are left than are looked for one by one; equal shares go to the first.
        let logs = [0.0; 40];
        let mut counts = Vec::new();
        mode(100, &logs, &mut counts);
        assert_eq!(counts, [[3; 20], [2; 20]].concat());
        let mut rng = Seed(9).stream(Purpose::Urn, 0, 0, 0);
        let logs: Vec<f64> = (0..60).map(|_| draw::open_unit(&mut rng).ln()).collect();
        mode(1000, &logs, &mut counts);
        let best = ln_probability(&counts, &logs);
        assert_eq!(counts.iter().sum::<u64>(), 1000);
        // No draw is better off with another value.
        for from in (0..60).filter(|&from| counts[from] > 0) {
            for to in 0..60 {
                let mut moved = counts.clone();
                moved[from] -= 1;
                moved[to] += 1;
                assert!(ln_probability(&moved, &logs) <= best + 1e-9);
            }
        }
    }

    #[test]
    fn rounding_is_not_the_mode() {
        // Three values of a third each and two draws: rounding up would give three, rounding down none.
        let mut counts = Vec::new();
        mode(2, &[0.0, 0.0, 0.0], &mut counts);
        assert_eq!(counts, [1, 1, 0]);
        // The expected count of the last value rounds to one, but its mode is zero.
        mode(3, &[0.42f64.ln(), 0.41f64.ln(), 0.17f64.ln()], &mut counts);
        assert_eq!(counts, [2, 1, 0]);
    }

    #[test]
    fn huge_counts_are_shared_out_at_once() {
        let mut counts = Vec::new();
        mode(2_800_000_000_001, &[0.5f64.ln(), 0.25f64.ln(), 0.25f64.ln(), f64::NEG_INFINITY], &mut counts);
        assert_eq!(counts.iter().sum::<u64>(), 2_800_000_000_001);
        assert!(counts[0].abs_diff(1_400_000_000_000) <= 1 && counts[3] == 0, "{counts:?}");
    }
}
