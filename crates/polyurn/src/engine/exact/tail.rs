//! Tokens in unknown cells, all at once.
//!
//! When no two ways of such a token touch the same register, the probability of m of them given a state is a sum over
//! the numbers (m_1, .., m_W) that take each way of a product with one factor per way:
//!
//!   m! [z^m] prod_w G_w(z),   G_w(z) = sum_n g_w(n) z^n / n!,
//!
//! g_w(n) being the probability of n tokens taking way w one after another. So totals far beyond what states could
//! follow cost a few convolutions. This is the case for one unknown cell and one hidden node (theory.md, section 6).

use super::layer::{Digit, Layer};
use super::program::CompiledWay;
use crate::control::Control;
use crate::error::Result;
use crate::math::{Double, Scaled, ln_factorial};
use std::ops::{Add, Mul};

/// True when there are several ways and every register is touched by at most one of them. A single way never makes more
/// states, so it needs no convolution.
pub fn ways_are_disjoint(ways: &[CompiledWay]) -> bool {
    if ways.len() < 2 {
        return false;
    }
    let mut registers: Vec<u32> =
        ways.iter().flat_map(|way| way.increments.iter().map(|&(register, _)| register)).collect();
    let n_touches = registers.len();
    registers.sort_unstable();
    registers.dedup();
    registers.len() == n_touches
}

/// ln of the probability of the layer's states followed by m tokens, m = 0..=n_max, up to factors that are certain.
///
/// # Errors
/// When the run was stopped.
pub fn ln_totals<D: Digit>(
    ways: &[CompiledWay],
    layer: &Layer<D>,
    n_max: usize,
    control: &mut Control<'_>,
) -> Result<Vec<Double>> {
    let mut states: Vec<usize> = (0..layer.len()).collect();
    states.sort_by(|&a, &b| {
        let key = |ix: usize| ways.iter().flat_map(move |way| registers_of(way, layer.state(ix)));
        key(a).cmp(key(b))
    });
    let tail = Tail { ways, layer, n_max };
    // Plain numbers are five times as fast and nearly always enough; where one underflows, all is done again with an
    // exponent for each.
    if let Some(entries) = tail.sum::<f64>(0, &states, control)?.ln_with_factorials() {
        return Ok(entries);
    }
    let never = Double::from(f64::NEG_INFINITY);
    let entries = tail.sum::<Scaled>(0, &states, control)?.ln_with_factorials();
    Ok(entries.unwrap_or_else(|| vec![never; n_max + 1]))
}

fn registers_of<'w, D: Digit>(way: &'w CompiledWay, state: &'w [D]) -> impl Iterator<Item = D> + 'w {
    way.increments.iter().map(|&(register, _)| state[register as usize])
}

/// A nonnegative coefficient of a power series.
trait Coefficient: Copy + Add<Output = Self> + Mul<Output = Self> {
    /// Zero.
    const ZERO: Self;
    /// From a term, relative to the largest one.
    fn relative(term: Scaled, largest: Scaled) -> Self;
    /// exp(ln).
    fn from_ln(ln: f64) -> Self;
    /// Its logarithm.
    fn ln(self) -> f64;
    /// True when the number is zero or has lost digits.
    fn is_lost(self) -> bool;
}

impl Coefficient for f64 {
    const ZERO: f64 = 0.0;
    fn relative(term: Scaled, largest: Scaled) -> f64 {
        term.ratio(largest)
    }
    fn from_ln(ln: f64) -> f64 {
        ln.exp()
    }
    fn ln(self) -> f64 {
        f64::ln(self)
    }
    fn is_lost(self) -> bool {
        self < f64::MIN_POSITIVE
    }
}

impl Coefficient for Scaled {
    const ZERO: Scaled = Scaled::ZERO;
    fn relative(term: Scaled, largest: Scaled) -> Scaled {
        Scaled::from_ln(term.ln() - largest.ln())
    }
    fn from_ln(ln: f64) -> Scaled {
        Scaled::from_ln(ln)
    }
    fn ln(self) -> f64 {
        Scaled::ln(self)
    }
    fn is_lost(self) -> bool {
        self.is_zero()
    }
}

/// Coefficients of a power series, `exp(ln_scale) * values`, the largest value being 1.
struct Series<C> {
    ln_scale: f64,
    values: Vec<C>,
}

impl<C: Coefficient> Series<C> {
    fn normalised(mut self) -> Self {
        let ln_max = self.values.iter().map(|value| value.ln()).fold(f64::NEG_INFINITY, f64::max);
        if ln_max.is_finite() {
            let factor = C::from_ln(-ln_max);
            self.values.iter_mut().for_each(|value| *value = *value * factor);
            self.ln_scale += ln_max;
        }
        self
    }

    fn add(self, other: Series<C>) -> Series<C> {
        let ln_scale = self.ln_scale.max(other.ln_scale);
        let (a, b) = (C::from_ln(self.ln_scale - ln_scale), C::from_ln(other.ln_scale - ln_scale));
        let values = self.values.iter().zip(&other.values).map(|(&x, &y)| a * x + b * y).collect();
        Series { ln_scale, values }.normalised()
    }

    /// The product of two series, cut off at the same degree.
    fn multiply(&self, other: &Series<C>) -> Series<C> {
        let mut values = vec![C::ZERO; self.values.len()];
        for (shift, &factor) in self.values.iter().enumerate() {
            for (slot, &value) in values[shift..].iter_mut().zip(&other.values) {
                *slot = *slot + factor * value;
            }
        }
        Series { ln_scale: self.ln_scale + other.ln_scale, values }.normalised()
    }

    /// ln of m! times the m-th coefficient; `None` when one of them is lost.
    fn ln_with_factorials(&self) -> Option<Vec<Double>> {
        let entry = |(&value, m): (&C, u64)| {
            let ln = ln_factorial(m) + Double::from(self.ln_scale) + Double::from(value.ln());
            (!value.is_lost()).then_some(ln)
        };
        self.values.iter().zip(0u64..).map(entry).collect()
    }
}

struct Tail<'t, D> {
    ways: &'t [CompiledWay],
    layer: &'t Layer<D>,
    n_max: usize,
}

impl<D: Digit> Tail<'_, D> {
    /// Sum over states of their probability times the product of the series of ways `from` and later. States are sorted,
    /// so those that agree on a way stand together and share its convolution.
    fn sum<C: Coefficient>(&self, from: usize, states: &[usize], control: &mut Control<'_>) -> Result<Series<C>> {
        let is_last = from + 1 == self.ways.len();
        let way = &self.ways[from];
        let mut total: Option<Series<C>> = None;
        let agree =
            |&a: &usize, &b: &usize| registers_of(way, self.layer.state(a)).eq(registers_of(way, self.layer.state(b)));
        for group in states.chunk_by(agree) {
            control.tick("exact: totals", 0.0)?;
            let own = self.series::<C>(way, self.layer.state(group[0]));
            let product = if is_last {
                let weight: Scaled = group.iter().map(|&state| self.layer.weight(state)).sum();
                Series { ln_scale: own.ln_scale + weight.ln(), ..own }
            } else {
                own.multiply(&self.sum::<C>(from + 1, group, control)?)
            };
            total = Some(match total {
                None => product,
                Some(total) => total.add(product),
            });
        }
        Ok(total.expect("there is at least one state"))
    }

    /// g_w(n)/n! for n = 0..=n_max.
    fn series<C: Coefficient>(&self, way: &CompiledWay, state: &[D]) -> Series<C> {
        let step = |register: u32| {
            way.increments.iter().find(|touch| touch.0 == register).map_or(0.0, |touch| f64::from(touch.1))
        };
        let steps: Vec<f64> = way.factors.iter().map(|factor| step(factor.register)).collect();
        let mut terms = vec![Scaled::ONE];
        for n in 0..self.n_max {
            let mut term = terms[n] * (1.0 / (n + 1) as f64);
            for (factor, step) in way.factors.iter().zip(&steps) {
                let register = state[factor.register as usize].get();
                match factor.if_tiny {
                    Some(tiny) if register == 0 && n == 0 => term = term * tiny,
                    _ => {
                        let value = factor.offset + f64::from(register) + step * n as f64;
                        term = term * if factor.divides { 1.0 / value } else { value };
                    }
                }
            }
            terms.push(term);
        }
        let largest = terms.iter().copied().max_by(|a, b| a.ln().total_cmp(&b.ln())).expect("at least one term");
        Series { ln_scale: largest.ln(), values: terms.iter().map(|&term| C::relative(term, largest)).collect() }
    }
}
