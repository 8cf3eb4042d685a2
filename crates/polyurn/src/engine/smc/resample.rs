//! Resampling: which particle each slot goes on from.
//!
//! All schemes give every particle an expected number of children in proportion to its weight, which is all that an
//! unbiased estimate needs. They differ in how much the numbers scatter. Ancestors come out ascending, so gathering
//! through them walks memory in order.

use crate::math::draw;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// A resampling scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// One uniform number, equal steps: the least scatter.
    #[default]
    Systematic,
    /// One uniform number in each of M equal strata.
    Stratified,
    /// The whole part of M times the weight for certain, the rest multinomial.
    Residual,
    /// M independent draws.
    Multinomial,
}

/// When to resample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// After every token.
    Always,
    /// Never: sequential importance sampling.
    Never,
    /// When the effective sample size falls below this share of the particles.
    EssBelow(f64),
}

/// Writes each slot's ancestor, ascending. `weights` are nonnegative with sum `total` > 0.
pub fn resample(scheme: Scheme, weights: &[f64], total: f64, rng: &mut impl Rng, ancestors: &mut Vec<u32>) {
    let n = weights.len();
    ancestors.clear();
    match scheme {
        Scheme::Systematic => {
            ancestors.resize(n, 0);
            EvenPoints::draw(n, total, rng).fill(weights, 0, 0.0, ancestors);
        }
        Scheme::Stratified => {
            let points: Vec<f64> = (0..n).map(|ix| (ix as f64 + draw::open_unit(rng)) / n as f64).collect();
            along(weights, total, points.into_iter(), ancestors);
        }
        Scheme::Multinomial => along(weights, total, sorted_uniforms(n, rng).into_iter(), ancestors),
        Scheme::Residual => {
            let expected = |weight: f64| weight / total * n as f64;
            let mut children: Vec<u32> = weights.iter().map(|&weight| expected(weight) as u32).collect();
            let certain: u64 = children.iter().map(|&children| u64::from(children)).sum();
            let rest: Vec<f64> = weights.iter().map(|&weight| expected(weight).fract()).collect();
            let rest_total: f64 = rest.iter().sum();
            // Rounding may count one child too many when all weights are equal; then nothing is left to draw.
            let n_rest = (n as u64).saturating_sub(certain) as usize;
            let mut drawn = Vec::with_capacity(n_rest);
            if n_rest > 0 {
                along(&rest, rest_total, sorted_uniforms(n_rest, rng).into_iter(), &mut drawn);
            }
            drawn.iter().for_each(|&ancestor| children[ancestor as usize] += 1);
            for (ancestor, &children) in children.iter().enumerate() {
                ancestors.extend(std::iter::repeat_n(ancestor as u32, children as usize));
            }
            ancestors.truncate(n);
        }
    }
}

/// The points (ix + start) / n of the sum of all weights, for ix = 0 .. n - 1.
#[derive(Debug, Clone, Copy)]
pub struct EvenPoints {
    n: usize,
    start: f64,
    total: f64,
    per_weight: f64,
}

impl EvenPoints {
    /// As many points as there are particles, the first of them drawn.
    pub fn draw(n: usize, total: f64, rng: &mut impl Rng) -> Self {
        EvenPoints::from(n, total, draw::open_unit(rng))
    }

    fn from(n: usize, total: f64, start: f64) -> Self {
        EvenPoints { n, start, total, per_weight: n as f64 / total }
    }

    /// How many points lie below a running sum of weights.
    pub fn n_below(&self, sum: f64) -> usize {
        // Rounding must not lose the last point, nor find one before the first weight.
        if sum >= self.total {
            self.n
        } else if sum <= 0.0 {
            0
        } else {
            self.floor(sum).min(self.n)
        }
    }

    fn floor(&self, sum: f64) -> usize {
        // A cast of a negative number gives zero: no point lies below.
        (sum * self.per_weight - self.start + 1.0) as usize
    }

    /// Writes the ancestors of those points that fall to neighbouring particles, the first of which has this number and
    /// this sum of weights before it. Without a branch per point: how many points lie below each running sum, then for
    /// each point how many sums lie below it.
    pub fn fill(&self, weights: &[f64], first: u32, before: f64, ancestors: &mut [u32]) {
        ancestors.fill(0);
        // All points that are left go to the last particle with a weight, whatever rounding says.
        let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
        let n_before = self.n_below(before);
        let mut sum = before;
        for &weight in &weights[..last] {
            sum += weight;
            if let Some(ancestor) = ancestors.get_mut(self.floor(sum).saturating_sub(n_before)) {
                *ancestor += 1;
            }
        }
        let mut ancestor = first;
        for n_sums in ancestors {
            ancestor += *n_sums;
            *n_sums = ancestor;
        }
    }
}

/// Walks ascending points in (0, 1) along the running sum of the weights.
fn along(weights: &[f64], total: f64, points: impl Iterator<Item = f64>, ancestors: &mut Vec<u32>) {
    let last = weights.iter().rposition(|&weight| weight > 0.0).expect("a positive weight");
    let mut at = 0;
    let mut sum = weights[0];
    for point in points {
        let target = point * total;
        while sum < target && at < last {
            at += 1;
            sum += weights[at];
        }
        ancestors.push(at as u32);
    }
}

/// `n` uniform numbers, ascending, from exponential gaps: no sorting.
fn sorted_uniforms(n: usize, rng: &mut impl Rng) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums: Vec<f64> = (0..n)
        .map(|_| {
            sum -= draw::open_unit(rng).ln();
            sum
        })
        .collect();
    sum -= draw::open_unit(rng).ln();
    sums.iter_mut().for_each(|point| *point /= sum);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, Seed};

    const SCHEMES: [Scheme; 4] = [Scheme::Systematic, Scheme::Stratified, Scheme::Residual, Scheme::Multinomial];

    #[test]
    fn every_scheme_gives_children_in_proportion_to_the_weights() {
        let weights = [0.02, 1.3, 0.0, 0.4, 3.1, 0.18];
        let total: f64 = weights.iter().sum();
        let n_rounds = 20_000;
        for scheme in SCHEMES {
            let mut sums = [0.0; 6];
            let mut squares = [0.0; 6];
            let mut ancestors = Vec::new();
            let mut rng = Seed(11).stream(Purpose::Urn, scheme as u64, 0, 0);
            for _ in 0..n_rounds {
                resample(scheme, &weights, total, &mut rng, &mut ancestors);
                assert_eq!(ancestors.len(), 6);
                assert!(ancestors.is_sorted());
                for slot in 0..6 {
                    let children = ancestors.iter().filter(|&&ancestor| ancestor == slot as u32).count() as f64;
                    sums[slot] += children;
                    squares[slot] += children * children;
                }
            }
            for slot in 0..6 {
                let mean = sums[slot] / n_rounds as f64;
                let variance = squares[slot] / n_rounds as f64 - mean * mean;
                let expected = weights[slot] / total * 6.0;
                // Standard error of the mean; where the number of children never varies, rounding alone is allowed.
                let error = (variance / n_rounds as f64).sqrt().max(1e-9);
                assert!((mean - expected).abs() <= 4.5 * error, "{scheme:?} slot {slot}: {mean} for {expected}");
            }
            assert_eq!(sums[2], 0.0, "a particle without weight has no children");
        }
    }

    #[test]
    fn even_steps_find_what_a_walk_finds() {
        let mut rng = Seed(8).stream(Purpose::Urn, 0, 0, 0);
        for round in 0..200 {
            let n = 1 + round % 70;
            // Many zeros, also at both ends.
            let weights: Vec<f64> = (0..n).map(|_| (draw::open_unit(&mut rng) * 3.0 - 1.0).max(0.0)).collect();
            let total: f64 = weights.iter().sum();
            if total == 0.0 {
                continue;
            }
            let start = draw::open_unit(&mut rng);
            // In pieces, as shards do it.
            let points = EvenPoints::from(n, total, start);
            let (mut fast, mut slow) = (vec![0; n], Vec::new());
            let (mut first, mut before) = (0, 0.0);
            for piece in weights.chunks(1 + round % 23) {
                let sum: f64 = piece.iter().sum();
                let is_last = first + piece.len() == n;
                let after = if is_last { total } else { before + sum };
                let ancestors = points.n_below(before)..points.n_below(after);
                points.fill(piece, first as u32, before, &mut fast[ancestors]);
                (first, before) = (first + piece.len(), after);
            }
            along(&weights, total, (0..n).map(|ix| (ix as f64 + start) / n as f64), &mut slow);
            assert_eq!(fast, slow, "{weights:?} from {start}");
        }
    }

    #[test]
    fn equal_weights_keep_every_particle_without_scatter() {
        for scheme in [Scheme::Systematic, Scheme::Stratified, Scheme::Residual] {
            let mut ancestors = Vec::new();
            let mut rng = Seed(3).stream(Purpose::Urn, 0, 0, 0);
            resample(scheme, &[0.1; 7], 0.1 * 7.0, &mut rng, &mut ancestors);
            assert_eq!(ancestors, [0, 1, 2, 3, 4, 5, 6], "{scheme:?}");
        }
    }
}
