//! Numbers of about 32 digits, kept as the sum of two `f64`.
//!
//! Why: with 2.8e12 tokens the parts of the evidence are of size 1e13 and cancel to a few thousand, and for large
//! pseudo-counts differences of log-Gammas cancel too. Sixteen digits do not survive that; thirty-two do. The error-free
//! sum and product are those of Knuth (1969) and Dekker (1971). Nothing here uses fused multiply-add, so results do not
//! depend on the processor.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An unevaluated sum `hi + lo` with |lo| at most half a unit in the last place of `hi`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Double {
    hi: f64,
    lo: f64,
}

/// a + b exactly, as rounded sum and error.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_part = sum - a;
    (sum, (a - (sum - b_part)) + (b - b_part))
}

/// As [`two_sum`], for |a| >= |b|.
fn quick_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// A number cut into two halves of 26 bits.
fn split(a: f64) -> (f64, f64) {
    const SPLITTER: f64 = 134_217_729.0; // 2^27 + 1
    let t = SPLITTER * a;
    let hi = t - (t - a);
    (hi, a - hi)
}

/// a * b exactly, as rounded product and error. Valid for |a|, |b| < 2^995.
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let (a_hi, a_lo) = split(a);
    let (b_hi, b_lo) = split(b);
    (product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo)
}

impl Double {
    /// Zero.
    pub const ZERO: Double = Double { hi: 0.0, lo: 0.0 };
    /// One.
    pub const ONE: Double = Double { hi: 1.0, lo: 0.0 };
    /// ln 2.
    pub const LN_2: Double = Double { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };
    /// Half the log of 2 pi.
    const HALF_LN_2_PI: Double = Double { hi: 0.918_938_533_204_672_8, lo: -3.878_294_158_067_241_4e-17 };

    /// The nearest `f64`, and what it leaves out.
    pub fn parts(self) -> (f64, f64) {
        (self.hi, self.lo)
    }

    /// The nearest `f64`.
    pub fn value(self) -> f64 {
        self.hi + self.lo
    }

    /// The number times a power of two; exact unless it leaves the range of `f64`.
    pub fn scale(self, factor: f64) -> Self {
        Double { hi: self.hi * factor, lo: self.lo * factor }
    }

    fn normalised(hi: f64, lo: f64) -> Self {
        let (hi, lo) = quick_two_sum(hi, lo);
        Double { hi, lo }
    }

    fn square(self) -> Self {
        self * self
    }

    /// exp(self) for |self| < 700. The argument is cut down to |r| < ln 2 / 1024, where eight terms of the series for
    /// exp(r) - 1 are enough, and squared back nine times. Terms from the sixth on are below 1e-18 of the first, so
    /// sixteen digits of them are enough.
    fn exp(self) -> Self {
        const THIRD: Double = Double { hi: 0.16666666666666666, lo: 9.25185853854297e-18 };
        const FOURTH: Double = Double { hi: 0.041666666666666664, lo: 2.3129646346357427e-18 };
        const FIFTH: Double = Double { hi: 0.008333333333333333, lo: 1.1564823173178714e-19 };
        let n_halvings = 9;
        let power = (self.hi / Double::LN_2.hi).round();
        let r = (self - Double::LN_2 * Double::from(power)).scale(1.0 / 512.0);
        let small = r.hi * (1.0 / 720.0 + r.hi * (1.0 / 5040.0 + r.hi / 40_320.0));
        let rest = FIFTH + Double::from(small);
        let mut expm1 =
            r * [FOURTH, THIRD, Double::from(0.5), Double::ONE].iter().fold(rest, |sum, &term| term + sum * r);
        for _ in 0..n_halvings {
            expm1 = expm1.scale(2.0) + expm1.square();
        }
        (expm1 + Double::ONE).scale(libm::ldexp(1.0, power as i32))
    }

    /// Natural logarithm of a positive number: one Newton step of `exp` from the `f64` logarithm.
    pub fn ln(self) -> Self {
        if self.hi <= 0.0 {
            return Double::from(if self.hi == 0.0 { f64::NEG_INFINITY } else { f64::NAN });
        }
        if self.hi.is_infinite() {
            return self;
        }
        // Powers of two are split off so that the exponential below neither overflows nor underflows. The mantissa lies
        // around 1, so that nothing cancels for numbers close to 1.
        let (fraction, exponent) = libm::frexp(self.hi);
        let exponent = if fraction < std::f64::consts::FRAC_1_SQRT_2 { exponent - 1 } else { exponent };
        let mantissa = Double { hi: libm::ldexp(self.hi, -exponent), lo: libm::ldexp(self.lo, -exponent) };
        let guess = Double::from(libm::log(mantissa.hi));
        let rest = mantissa * (-guess).exp() - Double::ONE;
        let ln_mantissa = guess + rest - rest.square().scale(0.5);
        ln_mantissa + Double::LN_2 * Double::from(f64::from(exponent))
    }

    /// ln(1 + self) without loss for small numbers.
    pub fn ln_1p(self) -> Self {
        if self.hi.abs() > 1e-5 {
            return (Double::ONE + self).ln();
        }
        // Alternating series; the seventh term is below 1e-35 of the first.
        (1..=7).rev().fold(Double::ZERO, |sum, n| self * (Double::ONE / Double::from(f64::from(n)) - sum))
    }

    /// ln Gamma(x + s) - ln Gamma(x) for x that may be so small that only its logarithm is known (see
    /// [`super::special::ln_rising_tiny`]) and s >= 0 that need not be whole: with 32 digits where sixteen would be too few.
    pub fn ln_rising(x: f64, ln_x_if_tiny: f64, s: Double) -> Self {
        // Below, the last digit of sixteen is worth 1e-11. Where x is so much larger than s, two large logarithms would cancel.
        const FROM: f64 = 1e4;
        const TIMES: f64 = 1e6;
        if s.hi < FROM || !(super::TINY..=TIMES * s.hi).contains(&x) {
            return Double::from(super::special::ln_rising_tiny(x, ln_x_if_tiny, s.value()));
        }
        let x = Double::from(x);
        // Gamma(x) = Gamma(x + 1)/x.
        let ln_gamma = if x.hi < 1.0 { (x + Double::ONE).ln_gamma() - x.ln() } else { x.ln_gamma() };
        (x + s).ln_gamma() - ln_gamma
    }

    /// ln Gamma(self) for self >= 1, by Stirling's series after shifting the argument beyond 40, where twelve terms
    /// leave an error below 1e-33. Terms from the fifth on are below 1e-17, so sixteen digits of them are enough.
    pub fn ln_gamma(self) -> Self {
        const LARGE_TERMS: [Double; 4] = [
            Double { hi: 0.08333333333333333, lo: 4.625929269271485e-18 },
            Double { hi: -0.002777777777777778, lo: 1.0601087908747154e-19 },
            Double { hi: 0.0007936507936507937, lo: 6.883823317368282e-22 },
            Double { hi: -0.0005952380952380953, lo: 5.36938218754726e-20 },
        ];
        const SMALL_TERMS: [f64; 8] = [
            1.0 / 1188.0,
            -691.0 / 360_360.0,
            1.0 / 156.0,
            -3617.0 / 122_400.0,
            43_867.0 / 244_188.0,
            -174_611.0 / 125_400.0,
            77_683.0 / 5_796.0,
            -236_364_091.0 / 1_506_960.0,
        ];
        let mut x = self;
        let mut shift = Double::ONE;
        while x.hi < 40.0 {
            shift = shift * x;
            x = x + Double::ONE;
        }
        let inverse = Double::ONE / x;
        let square = inverse.square();
        let small = SMALL_TERMS.iter().rev().fold(0.0, |sum, term| term + sum * square.hi);
        let series = LARGE_TERMS.iter().rev().fold(Double::from(small), |sum, &term| term + sum * square) * inverse;
        let main = (x - Double::from(0.5)) * x.ln() - x + Double::HALF_LN_2_PI + series;
        if shift == Double::ONE { main } else { main - shift.ln() }
    }
}

impl From<f64> for Double {
    fn from(value: f64) -> Self {
        Double { hi: value, lo: 0.0 }
    }
}

impl From<u64> for Double {
    fn from(value: u64) -> Self {
        let hi = value as f64;
        if value < 1 << 53 {
            return Double { hi, lo: 0.0 };
        }
        // The rounding error of a 64-bit integer is itself a small integer.
        let lo = (i128::from(value) - hi as i128) as f64;
        Double { hi, lo }
    }
}

impl Add for Double {
    type Output = Double;
    fn add(self, other: Double) -> Double {
        let (s, e) = two_sum(self.hi, other.hi);
        if !s.is_finite() {
            return Double::from(s);
        }
        let (t, f) = two_sum(self.lo, other.lo);
        let (s, e) = quick_two_sum(s, e + t);
        Double::normalised(s, e + f)
    }
}

impl Neg for Double {
    type Output = Double;
    fn neg(self) -> Double {
        Double { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for Double {
    type Output = Double;
    fn sub(self, other: Double) -> Double {
        self + -other
    }
}

impl Mul for Double {
    type Output = Double;
    fn mul(self, other: Double) -> Double {
        let (p, e) = two_product(self.hi, other.hi);
        if !p.is_finite() {
            return Double::from(p);
        }
        Double::normalised(p, e + (self.hi * other.lo + self.lo * other.hi))
    }
}

impl Div for Double {
    type Output = Double;
    fn div(self, other: Double) -> Double {
        let first = self.hi / other.hi;
        if !first.is_finite() {
            return Double::from(first);
        }
        let rest = self - other * Double::from(first);
        let second = rest.hi / other.hi;
        let rest = rest - other * Double::from(second);
        let third = rest.hi / other.hi;
        Double::normalised(first, second) + Double::from(third)
    }
}

#[cfg(test)]
// Reference digits come in two numbers; some of the first ones are well-known constants.
#[allow(clippy::approx_constant, clippy::excessive_precision)]
mod tests {
    use super::*;

    /// Compares with a reference of 40 digits, given as the sum of two `f64`.
    fn assert_close(got: Double, hi: f64, lo: f64) {
        let want = Double::normalised(hi, lo);
        // Relative for large values, absolute around zero.
        let error = (got - want).value().abs() / want.value().abs().max(1.0);
        assert!(error < 1e-29, "{got:?} is not {want:?}: error {error:e}");
    }

    // Made with fifty-digit arithmetic.
    #[test]
    fn logarithms_have_29_digits() {
        assert_close(Double::from(2.0_f64).ln(), 0.6931471805599453, 2.3190468138462996e-17);
        assert_close(Double::from(3.0_f64).ln(), 1.0986122886681098, -9.07129723500153e-17);
        assert_close(Double::from(0.1_f64).ln(), -2.3025850929940455, -1.7150243628057985e-16);
        assert_close(Double::from(1e-12_f64).ln(), -27.631021115928547, -9.67919563112546e-16);
        assert_close(Double::from(1e-300_f64).ln(), -690.7755278982137, -2.3670096176709832e-14);
        assert_close(Double::from(1e+300_f64).ln(), 690.7755278982137, 2.3747660028800243e-14);
        assert_close(Double::from(2800000000000.0_f64).ln(), 28.660640533109706, -4.776899811418625e-17);
        assert_close(Double::from(0.9999999_f64).ln(), -1.0000000494736474e-07, -5.529865283193222e-24);
        assert_close(Double::from(1.0000001_f64).ln(), 9.999999505838704e-08, 1.5249709528441489e-24);
        assert_close(Double::from(5e-310_f64).ln(), -712.19194091572, -5.4018597932991334e-14);
    }

    /// Steps of one are products, and at the border between sixteen digits and more there is no step.
    #[test]
    fn rising_factorials_of_real_numbers_have_all_digits_where_it_matters() {
        for x in [1e-200, 1e-3, 0.4, 1.0, 17.5, 1e6, 1e10] {
            for s in [2e4 + 0.3, 1e9 + 0.25, 1e15 + 0.125] {
                let s = Double::from(s);
                let step = Double::ln_rising(x, x.ln(), s + Double::ONE) - Double::ln_rising(x, x.ln(), s);
                let want = (Double::from(x) + s).ln();
                // The two numbers are up to 3e16.
                assert!((step - want).value().abs() < 1e-13, "{x} {s:?}: {step:?} {want:?}");
            }
            let (below, above) = (Double::from(9_999.999), Double::from(10_000.001));
            let step = Double::ln_rising(x, x.ln(), above) - Double::ln_rising(x, x.ln(), below);
            let want = 0.002 * super::super::special::digamma(x + 1e4);
            // Sixteen digits of a logarithm.
            let tolerance = 4e-16 * Double::ln_rising(x, x.ln(), above).value() + 1e-10;
            assert!((step.value() - want).abs() < tolerance, "{x}: {step:?} {want}");
        }
    }

    #[test]
    fn log_gammas_have_29_digits() {
        assert_close(Double::from(1.5_f64).ln_gamma(), -0.12078223763524522, -4.1797047492946264e-18);
        assert_close(Double::from(3.0_f64).ln_gamma(), 0.6931471805599453, 2.3190468138462996e-17);
        assert_close(Double::from(7.25_f64).ln_gamma(), 7.0521854507385395, -8.449924820091046e-17);
        assert_close(Double::from(39.5_f64).ln_gamma(), 104.7967743971583, 5.973736835920816e-15);
        assert_close(Double::from(40.0_f64).ln_gamma(), 106.63176026064346, -1.343308512431943e-15);
        assert_close(Double::from(123.456_f64).ln_gamma(), 469.6055471299295, -2.149009266109741e-14);
        assert_close(Double::from(1000.0_f64).ln_gamma(), 5905.220423209181, 4.0378203819938306e-13);
        assert_close(Double::from(1000000.3_f64).ln_gamma(), 12815508.713800674, 3.882209250760116e-10);
        assert_close(Double::from(1000000000.0_f64).ln_gamma(), 19723265827.503716, 1.255840004839192e-06);
        assert_close(Double::from(2800000000000.0_f64).ln_gamma(), 77449793492693.77, 0.0010480522742153647);
        assert_close(Double::from(1.8e+19_f64).ln_gamma(), 7.800642617722018e+20, -54099.681275149494);
    }

    #[test]
    fn logarithms_of_one_plus_little_keep_their_digits() {
        assert_eq!(Double::from(1e-200).ln_1p().value(), 1e-200);
        let (below, above) = (Double::from(0.999e-5).ln_1p(), Double::from(1.001e-5).ln_1p());
        assert!((below - (Double::ONE + Double::from(0.999e-5)).ln()).value().abs() < 1e-30);
        assert!((above - below).value() > 0.0);
    }

    #[test]
    fn integers_beyond_53_bits_are_exact() {
        let x = Double::from(u64::MAX);
        assert_eq!((x.hi as i128) + (x.lo as i128), i128::from(u64::MAX));
    }

    #[test]
    fn arithmetic_undoes_itself_to_thirty_digits() {
        let x = Double::from(1.0) / Double::from(3.0);
        assert!(((x * Double::from(3.0)) - Double::ONE).value().abs() < 1e-31);
        let y = Double::from(std::f64::consts::PI) + Double::from(1e-20);
        assert!(((y - Double::from(std::f64::consts::PI)).value() - 1e-20).abs() < 1e-32);
    }
}
