//! The intensity's Gamma prior and the probability of the total.

use crate::error::{Error, Result};
use crate::math::{Double, LnProduct, ln_factorial};

/// Gamma(shape, rate) prior of the intensity; the number of tokens is then negative binomial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GammaTotal {
    /// Shape, the paper's a.
    pub shape: f64,
    /// Rate, the paper's b.
    pub rate: f64,
}

impl GammaTotal {
    /// Checks shape and rate.
    ///
    /// # Errors
    /// When either is not a positive finite number.
    pub fn new(shape: f64, rate: f64) -> Result<Self> {
        for (name, value) in [("shape", shape), ("rate b", rate)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::Setting(format!("the Gamma {name} is {value}; it must be a positive number")));
            }
        }
        Ok(GammaTotal { shape, rate })
    }

    /// The same density for a number that need not be whole: factorials become Gamma functions.
    pub fn ln_p_total_of(&self, n_tokens: Double) -> Double {
        let rising = Double::ln_rising(self.shape, self.shape.ln(), n_tokens);
        rising - Double::ln_rising(1.0, 0.0, n_tokens) + self.ln_powers(n_tokens)
    }

    /// ln Pr(there are n tokens), theory.md eq. (4); the paper's eq. for Pr(T = S+).
    pub fn ln_p_total(&self, n_tokens: u64) -> Double {
        let mut product = LnProduct::new();
        product.multiply_rising(self.shape, self.shape.ln(), n_tokens);
        product.ln() - ln_factorial(n_tokens) + self.ln_powers(Double::from(n_tokens))
    }

    /// ln of b^a/(1 + b)^(a + n).
    fn ln_powers(&self, n_tokens: Double) -> Double {
        // ln(1 + b) and ln(b/(1 + b)), each without cancellation: shape and total may be huge factors of them.
        let rate = Double::from(self.rate);
        let (ln_one_plus, ln_share) = if self.rate < 1.0 {
            let ln_one_plus = rate.ln_1p();
            (ln_one_plus, rate.ln() - ln_one_plus)
        } else {
            let ln_share = -(Double::ONE / rate).ln_1p();
            (rate.ln() - ln_share, ln_share)
        };
        Double::from(self.shape) * ln_share - n_tokens * ln_one_plus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_of_all_totals_add_up_to_one() {
        let total = GammaTotal::new(2.3, 0.4).unwrap();
        let sum: f64 = (0..400).map(|n| total.ln_p_total(n).value().exp()).sum();
        assert!((sum - 1.0).abs() < 1e-13, "{sum}");
    }

    #[test]
    fn whole_totals_may_be_given_as_real_numbers() {
        for (shape, rate, n) in
            [(2.3, 0.4, 17u64), (1e-5, 1e-7, 300), (1e6, 20.0, 5), (0.7, 3.0, 0), (3.7, 1e-9, 40_000_000_000)]
        {
            let total = GammaTotal::new(shape, rate).unwrap();
            let (whole, real) = (total.ln_p_total(n).value(), total.ln_p_total_of(Double::from(n)).value());
            assert!((whole - real).abs() <= 1e-12 * whole.abs().max(1.0), "{shape} {rate} {n}: {whole} {real}");
        }
    }

    #[test]
    fn huge_shapes_and_totals_are_finite() {
        for (shape, n) in [(1e-12, 9u64), (1e9, 9), (1.0, 2_800_000_000_000), (1e-300, 3), (1e300, 7)] {
            let ln = GammaTotal::new(shape, shape / n as f64).unwrap().ln_p_total(n).value();
            assert!(ln.is_finite() && ln < 0.0, "shape {shape} n {n}: {ln}");
        }
    }
}
