//! Logs of long products of rising factorials, the shape of every closed form of the urn.

use super::double::Double;
use serde::{Deserialize, Serialize};

/// Up to this many factors a rising factorial is multiplied out; beyond, Stirling's series is cheaper.
const MULTIPLY_UP_TO: u64 = 32;
/// Numbers below this may have lost digits to underflow; their logarithm is used instead.
pub const TINY: f64 = 1e-290;
/// Beyond this x, differences of log-Gammas cancel too much.
pub(super) const HUGE: f64 = 1e18;
/// The running product is kept between one over this and this.
const BIG: f64 = 1e150;

/// The log of a product, built factor by factor with 32 digits and any exponent.
///
/// Factors go into a running product, so that a thousand small rising factorials cost one logarithm.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LnProduct {
    ln: Double,
    product: Double,
    exponent: i64,
}

impl Default for LnProduct {
    fn default() -> Self {
        LnProduct { ln: Double::ZERO, product: Double::ONE, exponent: 0 }
    }
}

impl LnProduct {
    /// The empty product.
    pub fn new() -> Self {
        LnProduct::default()
    }

    /// Multiplies by a positive factor, or by zero.
    pub fn multiply(&mut self, factor: Double) {
        let (factor, exponent) = scaled_down(factor);
        self.product = self.product * factor;
        self.exponent += exponent;
        self.renormalise();
    }

    /// Divides by a positive factor.
    pub fn divide(&mut self, factor: Double) {
        let (factor, exponent) = scaled_down(factor);
        self.product = self.product / factor;
        self.exponent -= exponent;
        self.renormalise();
    }

    /// Multiplies by another product.
    pub fn multiply_by(&mut self, other: &LnProduct) {
        self.ln = self.ln + other.ln;
        self.product = self.product * other.product;
        self.exponent += other.exponent;
        self.renormalise();
    }

    /// Divides by another product, which must not be zero.
    pub fn divide_by(&mut self, other: &LnProduct) {
        self.ln = self.ln - other.ln;
        self.product = self.product / other.product;
        self.exponent -= other.exponent;
        self.renormalise();
    }

    /// Multiplies by exp(ln_factor).
    pub fn multiply_exp(&mut self, ln_factor: Double) {
        self.ln = self.ln + ln_factor;
    }

    /// Multiplies by x (x+1) .. (x+n-1), the rising factorial Gamma(x+n)/Gamma(x). `ln_x` is used where `x` is so small
    /// that it may have underflowed. An empty product (n = 0) is 1, also for x = 0.
    pub fn multiply_rising(&mut self, x: f64, ln_x: f64, n: u64) {
        self.rising(x, ln_x, n, false);
    }

    /// Divides by the rising factorial.
    pub fn divide_rising(&mut self, x: f64, ln_x: f64, n: u64) {
        self.rising(x, ln_x, n, true);
    }

    fn rising(&mut self, x: f64, ln_x: f64, n: u64, divide: bool) {
        if n == 0 {
            return;
        }
        if x < TINY {
            // x + j is j to the last digit for j >= 1.
            let ln = Double::from(ln_x);
            self.multiply_exp(if divide { -ln } else { ln });
            return self.rising(1.0, 0.0, n - 1, divide);
        }
        if n <= MULTIPLY_UP_TO {
            for j in 0..n {
                let factor = Double::from(x) + Double::from(j);
                if divide { self.divide(factor) } else { self.multiply(factor) }
            }
            return;
        }
        let ln = ln_rising(x, n);
        self.multiply_exp(if divide { -ln } else { ln });
    }

    fn renormalise(&mut self) {
        let (product, exponent) = scaled_down(self.product);
        self.product = product;
        self.exponent += exponent;
    }

    /// The log of the product so far; minus infinity when a factor was zero.
    pub fn ln(&self) -> Double {
        self.ln + self.product.ln() + Double::LN_2 * Double::from(self.exponent as f64)
    }
}

/// A number of extreme size as one of moderate size and a power of two; others stay as they are.
fn scaled_down(number: Double) -> (Double, i64) {
    let size = number.value();
    if size == 0.0 || !size.is_finite() || (1.0 / BIG..BIG).contains(&size) {
        return (number, 0);
    }
    let (_, exponent) = libm::frexp(size);
    // Two steps keep the factor itself in range.
    let half = exponent / 2;
    let scaled = number.scale(libm::ldexp(1.0, -half)).scale(libm::ldexp(1.0, half - exponent));
    (scaled, i64::from(exponent))
}

/// ln Gamma(x+n) - ln Gamma(x) for x > 0, with 32 digits.
pub fn ln_rising(x: f64, n: u64) -> Double {
    if n == 0 {
        return Double::ZERO;
    }
    if x > HUGE {
        return ln_rising_of_huge(x, n);
    }
    (Double::from(x) + Double::from(n)).ln_gamma() - ln_gamma(x)
}

/// ln Gamma(x) for x > 0, with 32 digits.
pub(super) fn ln_gamma(x: f64) -> Double {
    if x >= 1.0 {
        return Double::from(x).ln_gamma();
    }
    // Gamma(x) = Gamma(x+1)/x keeps the argument at 1 or more.
    (Double::from(x) + Double::ONE).ln_gamma() - Double::from(x).ln()
}

/// For x beyond 1e18: n ln x plus the sum of ln(1 + j/x), by Euler and Maclaurin; the next term is below 1/x.
fn ln_rising_of_huge(x: f64, n: u64) -> Double {
    let u = n as f64 / x;
    let integral = if u < 1e-4 { n as f64 * (u / 2.0 - u * u / 6.0) } else { x * ((1.0 + u) * u.ln_1p() - u) };
    Double::from(x).ln() * Double::from(n) + Double::from(integral - u.ln_1p() / 2.0)
}

/// ln n!
pub fn ln_factorial(n: u64) -> Double {
    if n <= 1 {
        return Double::ZERO;
    }
    (Double::from(n) + Double::ONE).ln_gamma()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(x: f64, n: u64) -> f64 {
        let mut product = LnProduct::new();
        product.multiply_rising(x, x.ln(), n);
        product.ln().value()
    }

    #[test]
    fn multiplied_and_stirling_rising_factorials_agree_to_the_last_digit() {
        for x in [1e-12, 0.3, 1.0, 17.5, 1e9] {
            for n in [1, 2, 31, 32, 33, 500] {
                let mut product = LnProduct::new();
                for j in 0..n {
                    product.multiply(Double::from(x) + Double::from(j));
                }
                let (a, b) = (product.ln(), ln_rising(x, n));
                // Stirling's series has 29 digits of ln Gamma(x + n), which is larger than the difference.
                let y: f64 = x + n as f64;
                let tolerance = 1e-29 * (y * (y + 2.0).ln()).max(1.0);
                assert!((a - b).value().abs() <= tolerance, "x {x} n {n}: {a:?} {b:?}");
                assert!((rising(x, n) - a.value()).abs() <= 1e-15 * a.value().abs());
            }
        }
    }

    #[test]
    fn large_pseudo_counts_keep_all_digits() {
        // x (x+1) (x+2) at x = 1e9, by hand: 3 ln 1e9 + log1p(1e-9) + log1p(2e-9).
        let want = 3.0 * 1e9f64.ln() + 1e-9f64.ln_1p() + 2e-9f64.ln_1p();
        assert!((rising(1e9, 3) - want).abs() < 1e-14 * want);
        let ratio = ln_rising(1e9, 1000) - ln_rising(1e9 + 1.0, 1000);
        // Telescopes to x / (x + 1000).
        assert!((ratio.value() - (-(1000.0 / 1e9f64).ln_1p())).abs() < 1e-20);
    }

    #[test]
    fn an_underflowed_pseudo_count_goes_by_its_logarithm() {
        let ln_x = -2000.0;
        let mut product = LnProduct::new();
        product.multiply_rising(0.0, ln_x, 4);
        assert!((product.ln().value() - (ln_x + 6f64.ln())).abs() < 1e-10);
    }

    #[test]
    fn a_zero_factor_gives_minus_infinity_and_an_empty_product_zero() {
        assert_eq!(LnProduct::new().ln().value(), 0.0);
        let mut product = LnProduct::new();
        product.multiply_rising(0.0, f64::NEG_INFINITY, 0);
        assert_eq!(product.ln().value(), 0.0);
        product.multiply_rising(0.0, f64::NEG_INFINITY, 3);
        assert_eq!(product.ln().value(), f64::NEG_INFINITY);
    }

    #[test]
    fn huge_arguments_join_the_series_smoothly() {
        for n in [3, 1_000_000, 1 << 60] {
            let (below, above) = (ln_rising(0.999e18, n).value(), ln_rising(1.001e18, n).value());
            let slope = n as f64 * 0.002f64.min(0.002);
            assert!((above - below - slope).abs() < 0.6 * slope, "n {n}: {below} {above}");
        }
    }

    #[test]
    fn factors_of_extreme_size_neither_overflow_nor_underflow() {
        let mut product = LnProduct::new();
        for _ in 0..5 {
            product.multiply(Double::from(1e-280));
            product.multiply(Double::from(1e-140));
        }
        for _ in 0..5 {
            product.divide(Double::from(1e-285));
            product.multiply(Double::from(1e120));
        }
        let want = 5.0 * 10f64.ln() * (-280.0 - 140.0 + 285.0 + 120.0);
        assert!((product.ln().value() - want).abs() < 1e-9, "{:?}", product.ln());
    }

    #[test]
    fn factorials_are_exact_logs() {
        assert_eq!(ln_factorial(0).value(), 0.0);
        assert_eq!(ln_factorial(1).value(), 0.0);
        assert!((ln_factorial(20).value() - 2_432_902_008_176_640_000f64.ln()).abs() < 1e-14);
    }
}
