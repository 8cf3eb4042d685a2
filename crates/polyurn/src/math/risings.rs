//! Very many rising factorials at once, with 32 digits.
//!
//! All cells of a table often have the same pseudo-count x, and all factorials have x = 1. Sorted by their length such
//! rising factorials go on from each other, x .. (x+4) from x .. (x+2), so a table of a thousand cells takes little more
//! than its largest cell alone. [`LnProduct::multiply_rising`] does it one by one, and is the reference for tests.

use super::double::Double;
use super::product::{HUGE, LnProduct, TINY, ln_gamma, ln_rising};

/// Up to this many factors are multiplied on; beyond, a new start by Stirling's series is cheaper.
const WALK_UP_TO: u64 = 48;

/// Rising factorials x (x+1) .. (x+n-1) that are to be multiplied.
///
/// ```
/// use polyurn::math::Risings;
/// let mut risings = Risings::default();
/// [1, 4, 2].into_iter().for_each(|n| risings.push(0.5, 0.5f64.ln(), n));
/// let product = 0.5 * (0.5 * 1.5 * 2.5 * 3.5) * (0.5 * 1.5);
/// assert!((risings.product().ln().value() - f64::ln(product)).abs() < 1e-15);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Risings {
    /// Bits of x, and n. Positive numbers have the order of their bits.
    sorted_later: Vec<(u64, u64)>,
    /// What was too small to be sorted.
    tiny: LnProduct,
}

impl Risings {
    /// Adds one; see [`LnProduct::multiply_rising`].
    pub fn push(&mut self, x: f64, ln_x: f64, n: u64) {
        if x < TINY {
            self.tiny.multiply_rising(x, ln_x, n);
        } else if n > 0 {
            self.sorted_later.push((x.to_bits(), n));
        }
    }

    /// The product of all.
    pub fn product(mut self) -> LnProduct {
        self.sorted_later.sort_unstable();
        let mut product = self.tiny;
        for same in self.sorted_later.chunk_by(|a, b| a.0 == b.0) {
            let mut climb = Climb::new(f64::from_bits(same[0].0));
            for &(_, n) in same {
                climb.up_to(n);
                product.multiply_by(&climb.rising);
            }
        }
        product
    }
}

/// Rising factorials of one number, each going on from the one before.
struct Climb {
    x: f64,
    n: u64,
    rising: LnProduct,
    ln_gamma: Option<Double>,
}

impl Climb {
    fn new(x: f64) -> Self {
        Climb { x, n: 0, rising: LnProduct::new(), ln_gamma: None }
    }

    /// Goes on to a length that is not below the last one.
    fn up_to(&mut self, n: u64) {
        if n - self.n > WALK_UP_TO {
            let ln = self.ln_rising(n);
            self.rising = LnProduct::new();
            self.rising.multiply_exp(ln);
        } else {
            for j in self.n..n {
                self.rising.multiply(Double::from(self.x) + Double::from(j));
            }
        }
        self.n = n;
    }

    fn ln_rising(&mut self, n: u64) -> Double {
        // Another formula, without log-Gammas.
        if self.x > HUGE {
            return ln_rising(self.x, n);
        }
        let ln_gamma = *self.ln_gamma.get_or_insert_with(|| ln_gamma(self.x));
        (Double::from(self.x) + Double::from(n)).ln_gamma() - ln_gamma
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::draw;
    use crate::{Purpose, Seed};

    fn one_by_one(list: &[(f64, f64, u64)]) -> Double {
        let mut product = LnProduct::new();
        list.iter().for_each(|&(x, ln_x, n)| product.multiply_rising(x, ln_x, n));
        product.ln()
    }

    fn together(list: &[(f64, f64, u64)]) -> Double {
        let mut risings = Risings::default();
        list.iter().for_each(|&(x, ln_x, n)| risings.push(x, ln_x, n));
        risings.product().ln()
    }

    #[test]
    fn together_and_one_by_one_agree_to_25_digits() {
        let mut stream = Seed(1).stream(Purpose::Urn, 0, 0, 0);
        for round in 0..200 {
            let numbers = [1e-320, 1e-12, 1.0 / 3.0, 1.0, 17.5, 1e9, 1e17, 3e18, 1e40];
            let list: Vec<(f64, f64, u64)> = (0..50)
                .map(|_| {
                    let x: f64 = numbers[draw::below(numbers.len() as u64, &mut stream) as usize];
                    // Lengths of every size, many of them equal or close.
                    let most = 1 << draw::below(if round % 2 == 0 { 8 } else { 50 }, &mut stream);
                    (x, x.ln(), draw::below(most + 1, &mut stream))
                })
                .collect();
            let (got, want) = (together(&list), one_by_one(&list));
            let size: f64 = list.iter().map(|&(x, _, n)| (x.min(1e18) + n as f64) * (x + n as f64 + 2.0).ln()).sum();
            assert!((got - want).value().abs() <= 1e-25 * size, "round {round}: {got:?}, not {want:?}");
        }
    }

    #[test]
    fn a_zero_factor_makes_the_product_zero_and_empty_ones_do_not() {
        assert_eq!(together(&[]).value(), 0.0);
        assert_eq!(together(&[(0.0, f64::NEG_INFINITY, 0), (2.0, 2f64.ln(), 0)]).value(), 0.0);
        assert_eq!(together(&[(0.0, f64::NEG_INFINITY, 3), (2.0, 2f64.ln(), 5)]).value(), f64::NEG_INFINITY);
    }
}
