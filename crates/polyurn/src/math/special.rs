//! Digamma, exponential, logarithm and ratios of Gamma functions, written without branches so that loops over them become
//! vector code.
//!
//! They are good to a few units in the last place over the ranges named, and give the same bytes with every instruction
//! set: no fused multiply-add, no library calls.

/// ln x for positive normal numbers.
///
/// x = 2^e m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh((m - 1)/(m + 1)).
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
    const LN_2_LOW: f64 = 5.497_923_018_708_371e-14;
    let bits = x.to_bits();
    let exponent = (bits.wrapping_sub(SQRT_HALF) as i64) >> 52;
    let m = f64::from_bits(bits.wrapping_sub((exponent as u64) << 52));
    // An integer becomes a float by being added to the digits of a large one.
    let e = f64::from_bits(ROUNDER.to_bits().wrapping_add(exponent as u64)) - ROUNDER;
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut tail = 1.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        tail = tail * z + 1.0 / odd;
    }
    // 2 s is nearly m - 1: what s lost in the division would be lost here, so it is taken from m - 1 itself.
    let f = m - 1.0;
    let correction = s * (f - 2.0 * z * tail);
    e * LN_2_HIGH + (f - (correction - e * LN_2_LOW))
}

/// Adding and subtracting it rounds to an integer; its last digits then hold that integer.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// exp x for x up to 709; zero below -708.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fefa_3800);
    const LN_2_LOW: f64 = 5.497_923_018_708_371e-14;
    let clamped = x.max(-708.0);
    let rounded = clamped * std::f64::consts::LOG2_E + ROUNDER;
    let k = rounded - ROUNDER;
    let r = (clamped - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut tail = 1.0 / 6_227_020_800.0;
    for inverse in [
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ] {
        tail = tail * r + inverse;
    }
    let value = 1.0 + (r + r * r * tail);
    let scaled = f64::from_bits(value.to_bits().wrapping_add(rounded.to_bits() << 52));
    if x < -708.0 { 0.0 } else { scaled }
}

/// The derivative of ln Gamma for x >= 0; minus infinity at zero.
///
/// Eight steps of psi(x) = psi(x + 1) - 1/x, taken as one fraction, then the asymptotic series.
#[inline(always)]
pub fn digamma(x: f64) -> f64 {
    // Beyond, the steps are less than the last digit; within, their product stays in range.
    let v = x.min(1e30);
    // 1/(v + i) + 1/(v + 7 - i) = (2v + 7)/(u + i (7 - i)) with u = v (v + 7).
    let u = v * (v + 7.0);
    let (p, q) = (u * (u + 6.0), (u + 10.0) * (u + 12.0));
    let steps = (2.0 * v + 7.0) * ((2.0 * u + 6.0) * q + (2.0 * u + 22.0) * p) / (p * q);
    let y = x + 8.0;
    let inverse = 1.0 / y;
    let z = inverse * inverse;
    let mut series = -3617.0 / 8160.0;
    for term in [1.0 / 12.0, -691.0 / 32_760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0, 1.0 / 12.0] {
        series = series * z + term;
    }
    ln(y) - (0.5 * inverse + z * series) - steps
}

/// The derivative of [`digamma`] for x > 0.
///
/// Eight steps of psi'(x) = psi'(x + 1) + 1/x^2, then the asymptotic series.
#[inline(always)]
pub fn trigamma(x: f64) -> f64 {
    let mut steps = 0.0;
    for ix in (0..8).rev() {
        let inverse = 1.0 / (x + f64::from(ix));
        steps += inverse * inverse;
    }
    let inverse = 1.0 / (x + 8.0);
    let z = inverse * inverse;
    let mut series = -3617.0 / 510.0;
    for term in [7.0 / 6.0, -691.0 / 2730.0, 5.0 / 66.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 1.0 / 6.0] {
        series = series * z + term;
    }
    inverse + z * (0.5 + inverse * series) + steps
}

/// ln Gamma(x + s) - ln Gamma(x) for x >= 1e-290 and s >= 0, without the cancellation that a difference of two logarithms
/// would have.
#[inline(always)]
pub fn ln_rising_real(x: f64, s: f64) -> f64 {
    let is_large = x >= 16.0;
    let y = if is_large { x } else { x + 8.0 };
    let z = y + s;
    let stirling = |x: f64| {
        let inverse = 1.0 / x;
        let square = inverse * inverse;
        let mut series = 1.0 / 156.0;
        for term in [-691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0] {
            series = series * square + term;
        }
        series * inverse
    };
    // ln(1 + t), with what 1 + t lost put back.
    let t = s / y;
    let one_plus = 1.0 + t;
    let ln_ratio = ln(one_plus) - ((one_plus - 1.0) - t) / one_plus;
    let ln_upper = (y - 0.5) * ln_ratio + s * ln(z) - s + (stirling(z) - stirling(y));
    let product = |x: f64| {
        let u = x * (x + 7.0);
        (u * (u + 6.0)) * ((u + 10.0) * (u + 12.0))
    };
    let low = if is_large { 1.0 } else { x };
    let (below, above) = (product(low), product(if is_large { 1.0 } else { x + s }));
    let steps = ln(above) - ln(below);
    if is_large { ln_upper } else { ln_upper - steps }
}

/// ln Gamma(x + s) - ln Gamma(x) where x may be so small that only its logarithm is known; see
/// [`crate::prior::PseudoCount`]. Zero for s = 0, whatever x is.
pub fn ln_rising_tiny(x: f64, ln_x_if_tiny: f64, s: f64) -> f64 {
    if s == 0.0 {
        return 0.0;
    }
    if x >= super::TINY {
        return ln_rising_real(x, s);
    }
    // Gamma(x + s)/Gamma(x) = x Gamma(1 + x + s)/((x + s) Gamma(1 + x)), and 1 + x is 1.
    ln_x_if_tiny - (x + s).ln() + ln_rising_real(1.0, s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{Double, ln_factorial};

    /// Unevenly spaced numbers over many orders of magnitude.
    fn spread(from: f64, to: f64, n: usize) -> impl Iterator<Item = f64> {
        let step = (to.ln() - from.ln()) / n as f64;
        (0..=n).map(move |ix| from * (step * (ix as f64 + 0.37 * (ix % 3) as f64)).exp())
    }

    #[test]
    fn logarithms_and_exponentials_are_those_of_the_standard_library() {
        for x in spread(1e-300, 1e300, 20_000) {
            assert!((ln(x) - x.ln()).abs() <= 3e-16 * x.ln().abs().max(1e-3), "ln {x}: {} {}", ln(x), x.ln());
        }
        for x in spread(0.5, 2.0, 20_000) {
            assert!((ln(x) - x.ln()).abs() <= 3e-16 * x.ln().abs() + 1e-300, "ln {x}: {:e} {:e}", ln(x), x.ln());
        }
        for x in spread(1e-12, 700.0, 20_000).flat_map(|x| [x, -x]) {
            assert!((exp(x) / x.exp() - 1.0).abs() <= 5e-16, "exp {x}: {} {}", exp(x), x.exp());
        }
        assert_eq!((exp(0.0), exp(-709.0), exp(f64::NEG_INFINITY), exp(-1e300)), (1.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn digamma_has_its_known_values_and_steps_by_one_over_x() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        assert!((digamma(1.0) + EULER).abs() < 3e-16);
        assert!((digamma(0.5) + EULER + 2.0 * 2f64.ln()).abs() < 6e-16);
        assert!((digamma(0.25) + EULER + std::f64::consts::FRAC_PI_2 + 3.0 * 2f64.ln()).abs() < 2e-15);
        assert_eq!(digamma(0.0), f64::NEG_INFINITY);
        for x in spread(1e-8, 1e8, 5000) {
            let (left, right) = (digamma(x + 1.0) - digamma(x), 1.0 / x);
            assert!((left - right).abs() <= 1e-15 * (digamma(x).abs() + digamma(x + 1.0).abs() + 1.0), "{x}");
        }
        for x in spread(1e9, 1e290, 500) {
            assert!((digamma(x) - x.ln()).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn trigamma_has_its_known_values_and_is_the_slope_of_digamma() {
        let pi_squared = std::f64::consts::PI * std::f64::consts::PI;
        assert!((trigamma(1.0) / (pi_squared / 6.0) - 1.0).abs() < 1e-15);
        assert!((trigamma(0.5) / (pi_squared / 2.0) - 1.0).abs() < 1e-15);
        for x in spread(1e-8, 1e8, 5000) {
            let (left, right) = (trigamma(x) - trigamma(x + 1.0), 1.0 / (x * x));
            assert!((left - right).abs() <= 1e-15 * (trigamma(x) + right), "{x}");
        }
        for x in spread(1e-3, 1e3, 500) {
            let step = 1e-5 * x;
            let slope = (digamma(x + step) - digamma(x - step)) / (2.0 * step);
            // Rounding of the difference, and the third derivative.
            assert!((slope / trigamma(x) - 1.0).abs() < 1e-9 + 1e-15 * digamma(x).abs() / (step * trigamma(x)), "{x}");
        }
        assert!((trigamma(1e150) * 1e150 - 1.0).abs() < 1e-15);
    }

    #[test]
    fn rising_factorials_are_those_of_whole_numbers() {
        for x in [1e-200, 1e-9, 0.3, 1.0, 7.9, 15.9, 16.0, 17.3, 1e4, 1e9] {
            for n in [0u32, 1, 2, 5, 40, 1000] {
                let mut exact = Double::ZERO;
                (0..n).for_each(|i| exact = exact + (Double::from(x) + Double::from(f64::from(i))).ln());
                let (exact, found) = (exact.value(), ln_rising_real(x, f64::from(n)));
                assert!((found - exact).abs() <= 4e-15 * exact.abs().max(1.0), "{x} {n}: {found} {exact}");
            }
        }
        let large = 2_800_000_000_000u64;
        let exact = ln_factorial(large).value();
        assert!((ln_rising_real(1.0, large as f64) / exact - 1.0).abs() < 1e-15);
    }

    #[test]
    fn rising_factorials_of_fractions_add_up() {
        // Gamma(x + s + t)/Gamma(x) in one step and in two.
        for x in spread(1e-30, 1e9, 300) {
            for (s, t) in [(0.3, 1e-9), (1e-20, 2.7), (12.5, 1e5), (0.01, 0.02)] {
                let (whole, parts) = (ln_rising_real(x, s + t), ln_rising_real(x, s) + ln_rising_real(x + s, t));
                let size = ln_rising_real(x, s).abs() + ln_rising_real(x + s, t).abs() + 1.0;
                assert!((whole - parts).abs() <= 1e-14 * size, "{x} {s} {t}: {whole} {parts}");
            }
        }
        let tiny = ln_rising_tiny(0.0, -2000.0, 3.0);
        assert!((tiny - (-2000.0 + 2f64.ln())).abs() < 1e-12, "{tiny}");
        assert_eq!(ln_rising_tiny(0.0, f64::NEG_INFINITY, 0.0), 0.0);
    }
}
