//! Random draws that stay right at the edges: Gammas of tiny shape, Dirichlets of 1e-12, multinomials of 1e12 tokens.

use rand::{Rng, RngExt};
use rand_distr::{Binomial, Distribution, Gamma, Poisson};

/// A uniform number in (0, 1), never 0.
pub fn open_unit(rng: &mut impl Rng) -> f64 {
    // 53 random bits, moved by half a step so that neither end is reached.
    ((rng.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64)
}

/// A standard normal variable.
pub fn normal(rng: &mut impl Rng) -> f64 {
    let (radius, angle) = (open_unit(rng), open_unit(rng));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// The log of a Gamma(shape, rate 1) variable. For a shape below 1 it is drawn as Gamma(shape + 1) times U^(1/shape), in
/// logs, since the variable itself underflows for small shapes. A shape of zero gives minus infinity.
pub fn ln_gamma_variable(shape: f64, rng: &mut impl Rng) -> f64 {
    if shape == 0.0 {
        return f64::NEG_INFINITY;
    }
    let gamma = |shape: f64| Gamma::new(shape, 1.0).expect("a positive, finite shape");
    if shape >= 1.0 {
        return gamma(shape).sample(rng).ln();
    }
    let boost = open_unit(rng).ln() / shape;
    gamma(shape + 1.0).sample(rng).ln() + boost
}

/// Fills `out` with a draw from the Dirichlet distribution with these parameters (zeros allowed, not all zero).
///
/// # Panics
/// When the lengths differ.
pub fn dirichlet(parameters: impl ExactSizeIterator<Item = f64>, out: &mut [f64], rng: &mut impl Rng) {
    assert_eq!(parameters.len(), out.len());
    for (slot, parameter) in out.iter_mut().zip(parameters) {
        *slot = ln_gamma_variable(parameter, rng);
    }
    let max = out.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for slot in out.iter_mut() {
        *slot = (*slot - max).exp();
        sum += *slot;
    }
    for slot in out.iter_mut() {
        *slot /= sum;
    }
}

/// An index drawn in proportion to nonnegative weights whose sum is `total` > 0. Never an index of weight zero.
pub fn categorical(weights: &[f64], total: f64, rng: &mut impl Rng) -> usize {
    let mut target = open_unit(rng) * total;
    let mut last = 0;
    for (ix, &weight) in weights.iter().enumerate() {
        if weight > 0.0 {
            last = ix;
            target -= weight;
            if target <= 0.0 {
                return ix;
            }
        }
    }
    last
}

/// A Poisson variable; for means beyond 1e15 the count is the mean to all digits that matter.
pub fn poisson(mean: f64, rng: &mut impl Rng) -> u64 {
    if mean <= 0.0 {
        return 0;
    }
    Poisson::new(mean).map_or(u64::MAX, |distribution| distribution.sample(rng) as u64)
}

/// Spreads `n` tokens over cells in proportion to integer weights, calling `emit` with each non-empty cell: a
/// multinomial draw by conditional binomials. Works for totals up to 2^64.
pub fn multinomial(n: u64, weights: &[u64], rng: &mut impl Rng, mut emit: impl FnMut(usize, u64)) {
    let mut rest: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let mut n_left = n;
    for (ix, &weight) in weights.iter().enumerate() {
        if n_left == 0 {
            return;
        }
        if weight == 0 {
            continue;
        }
        let n_here = if u128::from(weight) == rest {
            n_left
        } else {
            Binomial::new(n_left, weight as f64 / rest as f64).expect("a probability").sample(rng)
        };
        if n_here > 0 {
            emit(ix, n_here);
        }
        n_left -= n_here;
        rest -= u128::from(weight);
    }
}

/// A uniform integer in 0..n.
pub fn below(n: u64, rng: &mut impl Rng) -> u64 {
    rng.random_range(0..n)
}

/// Puts a list in a random order.
pub fn shuffle(list: &mut [u32], rng: &mut impl Rng) {
    for last in (1..list.len()).rev() {
        list.swap(last, below(last as u64 + 1, rng) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::{Purpose, Seed};

    #[test]
    fn log_gamma_variables_of_small_shape_have_the_right_mean() {
        // E ln Gamma(shape) = digamma(shape): -10.42375 at 0.1, -1.96351 at 0.5, 1.50612 at 5 (to 1e-5).
        for (shape, want, sd) in [(0.1, -10.423_754_9, 10.06), (0.5, -1.963_510_0, 2.221), (5.0, 1.506_117_7, 0.470)] {
            let mut rng = Seed(5).stream(Purpose::Simulate, 0, 0, 0);
            let n = 200_000;
            let mean = (0..n).map(|_| ln_gamma_variable(shape, &mut rng)).sum::<f64>() / f64::from(n);
            // sd is the root of trigamma(shape); |z| <= 4.5.
            assert!((mean - want).abs() < 4.5 * sd / f64::from(n).sqrt(), "shape {shape}: {mean}");
        }
    }

    #[test]
    fn a_dirichlet_of_tiny_parameters_sits_in_a_corner_and_is_never_nan() {
        let mut rng = Seed(1).stream(Purpose::Simulate, 0, 0, 0);
        let mut draw = [0.0; 3];
        let mut n_first = 0;
        for _ in 0..10_000 {
            dirichlet([1e-12, 3e-12, 0.0].into_iter(), &mut draw, &mut rng);
            assert!((draw.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert_eq!(draw[2], 0.0);
            n_first += usize::from(draw[0] > 0.5);
        }
        // Corner 0 has probability 1/4; standard error sqrt(n p (1-p)) = 43.
        assert!((n_first as f64 - 2500.0).abs() < 4.5 * 43.3, "{n_first}");
    }

    #[test]
    fn a_categorical_draw_never_takes_a_zero_weight() {
        let mut rng = Seed(2).stream(Purpose::Simulate, 0, 0, 0);
        let weights = [0.0, 2.0, 0.0, 1.0, 0.0];
        let n_last = (0..30_000).filter(|_| {
            let ix = categorical(&weights, 3.0, &mut rng);
            assert!(ix == 1 || ix == 3);
            ix == 3
        });
        let n_last = n_last.count() as f64;
        assert!((n_last - 10_000.0).abs() < 4.5 * (30_000.0 * 2.0 / 9.0f64).sqrt(), "{n_last}");
    }

    #[test]
    fn a_multinomial_places_every_token_even_of_a_huge_table() {
        let mut rng = Seed(3).stream(Purpose::Resample, 0, 0, 0);
        let weights = [2_000_000_000_000, 0, 700_000_000_000, 100_000_000_000];
        let mut cells = [0u64; 4];
        multinomial(280_000, &weights, &mut rng, |ix, n| cells[ix] += n);
        assert_eq!(cells.iter().sum::<u64>(), 280_000);
        assert_eq!(cells[1], 0);
        // Expected 200000 with standard error sqrt(n p q) = 239.
        assert!((cells[0] as f64 - 200_000.0).abs() < 4.5 * 239.1, "{cells:?}");
    }
}
