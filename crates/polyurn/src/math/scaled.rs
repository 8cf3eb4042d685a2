//! Nonnegative numbers with an exponent of their own, for probabilities far below 1e-308.

/// `mantissa * 2^(512 exponent)`. Products and sums cost little more than those of `f64`, and logs are taken only at
/// the end, so no digits are lost on the way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaled {
    mantissa: f64,
    exponent: i32,
}

/// 2^512 and 2^-512.
const UP: f64 = 1.340_780_792_994_259_7e154;
const DOWN: f64 = 1.0 / UP;
/// 2^256 and 2^-256: mantissas are kept between them.
const HIGH: f64 = 1.157_920_892_373_162e77;
const LOW: f64 = 1.0 / HIGH;

impl Scaled {
    /// Zero.
    pub const ZERO: Scaled = Scaled { mantissa: 0.0, exponent: 0 };
    /// One.
    pub const ONE: Scaled = Scaled { mantissa: 1.0, exponent: 0 };

    /// exp(ln).
    pub fn from_ln(ln: f64) -> Self {
        if ln == f64::NEG_INFINITY {
            return Scaled::ZERO;
        }
        let step = 512.0 * std::f64::consts::LN_2;
        let exponent = (ln / step).round();
        Scaled { mantissa: (ln - exponent * step).exp(), exponent: exponent as i32 }.renormalised()
    }

    /// Natural log; minus infinity for zero.
    pub fn ln(self) -> f64 {
        self.mantissa.ln() + f64::from(self.exponent) * 512.0 * std::f64::consts::LN_2
    }

    /// True for zero.
    pub fn is_zero(self) -> bool {
        self.mantissa == 0.0
    }

    /// Parts for a checkpoint.
    pub fn parts(self) -> (f64, i32) {
        (self.mantissa, self.exponent)
    }

    /// From the parts of a checkpoint.
    pub fn from_parts(mantissa: f64, exponent: i32) -> Self {
        Scaled { mantissa, exponent }
    }

    /// This divided by `other`, as an `f64`; for numbers of similar size.
    pub fn ratio(self, other: Scaled) -> f64 {
        let ratio = self.mantissa / other.mantissa;
        match self.exponent - other.exponent {
            0 => ratio,
            1 => ratio * UP,
            -1 => ratio * DOWN,
            e if e < 0 => 0.0,
            _ => f64::INFINITY,
        }
    }

    fn renormalised(mut self) -> Self {
        if self.mantissa < LOW {
            if self.mantissa == 0.0 {
                return Scaled::ZERO;
            }
            self.mantissa *= UP;
            self.exponent -= 1;
        } else if self.mantissa > HIGH {
            self.mantissa *= DOWN;
            self.exponent += 1;
        }
        self
    }
}

impl std::ops::Mul<f64> for Scaled {
    type Output = Scaled;
    fn mul(self, factor: f64) -> Scaled {
        // A mantissa is at least 2^-256, so the product of it and an ordinary factor cannot underflow.
        if (LOW..HIGH).contains(&factor) {
            return Scaled { mantissa: self.mantissa * factor, exponent: self.exponent }.renormalised();
        }
        self * Scaled { mantissa: factor, exponent: 0 }.renormalised()
    }
}

impl std::ops::Mul for Scaled {
    type Output = Scaled;
    fn mul(self, other: Scaled) -> Scaled {
        Scaled { mantissa: self.mantissa * other.mantissa, exponent: self.exponent + other.exponent }.renormalised()
    }
}

impl std::ops::Add for Scaled {
    type Output = Scaled;
    fn add(self, other: Scaled) -> Scaled {
        let (big, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        if big.is_zero() {
            return small;
        }
        let mantissa = match big.exponent - small.exponent {
            0 => big.mantissa + small.mantissa,
            1 => big.mantissa + small.mantissa * DOWN,
            _ => big.mantissa,
        };
        Scaled { mantissa, exponent: big.exponent }.renormalised()
    }
}

impl std::iter::Sum for Scaled {
    fn sum<I: Iterator<Item = Scaled>>(iter: I) -> Scaled {
        iter.fold(Scaled::ZERO, |sum, term| sum + term)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_survive_far_beyond_the_range_of_f64() {
        let mut product = Scaled::ONE;
        for _ in 0..1000 {
            product = product * 1e-40;
        }
        assert!((product.ln() - 1000.0 * 1e-40f64.ln()).abs() < 1e-8);
        let twice = product + product;
        assert!((twice.ln() - product.ln() - 2f64.ln()).abs() < 1e-10);
    }

    #[test]
    fn sums_of_numbers_of_any_size_keep_the_larger() {
        let (big, small) = (Scaled::from_ln(-10.0), Scaled::from_ln(-5000.0));
        assert_eq!(big + small, big);
        assert_eq!(small + big, big);
        assert_eq!(Scaled::ZERO + small, small);
        assert_eq!(small + Scaled::ZERO, small);
    }

    #[test]
    fn sums_across_an_exponent_boundary_are_right() {
        for ln in [-354.9, -177.5, -177.4, 0.0, 177.4, 354.9] {
            let (a, b) = (Scaled::from_ln(ln), Scaled::from_ln(ln - 1.0));
            assert!(((a + b).ln() - (ln + (-1f64).exp().ln_1p())).abs() < 1e-12, "{ln}");
            assert!((a.ratio(b) - 1f64.exp()).abs() < 1e-12, "{ln}");
        }
    }

    #[test]
    fn factors_of_any_size_can_be_multiplied() {
        let small = Scaled::from_ln(-177.0);
        for factor in [1e-308, 1e-280, 1e-78, 1e-77, 1.0, 1e77, 1e78, 1e280, 1e308] {
            assert!(((small * factor).ln() - (-177.0 + f64::ln(factor))).abs() < 1e-11, "{factor}");
        }
    }

    #[test]
    fn zero_is_minus_infinity_in_logs() {
        assert_eq!(Scaled::ZERO.ln(), f64::NEG_INFINITY);
        assert!(Scaled::from_ln(f64::NEG_INFINITY).is_zero());
        assert!((Scaled::ONE * 0.0).is_zero());
    }
}
