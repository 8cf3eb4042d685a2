//! Tokens in unknown cells, all at once.
//!
//! Ways of such a token that share a register form a component; ways of different components have nothing to do with each
//! other. The probability of m tokens given a state is then a sum over the numbers (m_1, .., m_C) that go to each component
//! of a product with one factor per component:
//!
//!   m! [z^m] prod_c G_c(z),   G_c(z) = sum over n of z^n times the sum over splits n_1 + n_2 + .. = n among its ways of
//!   g_c(n_1, n_2, ..) / (n_1! n_2! ..),
//!
//! g_c being the probability of these tokens taking their ways one after another. So totals far beyond what states could
//! follow cost a few convolutions. With one hidden node, the ways of one hidden value are a component (theory.md, section 6).

use super::layer::{Digit, Layer, transition};
use super::program::CompiledWay;
use crate::control::Control;
use crate::error::Result;
use crate::math::{Double, Scaled, ln_factorial};
use std::ops::{Add, Mul};

/// Most splits of the tokens of one component among its ways that are listed.
const MAX_SPLITS: f64 = 1e6;

/// Ways that share registers, directly or through others.
pub struct Components<'w>(Vec<Vec<&'w CompiledWay>>);

impl<'w> Components<'w> {
    /// Finds the components. `None` when there is only one way, which never makes more states, or when so many ways hang
    /// together that nothing is gained.
    pub fn new(ways: &'w [CompiledWay]) -> Option<Self> {
        let mut components: Vec<Vec<&CompiledWay>> = Vec::new();
        for way in ways {
            let (mut joined, apart): (Vec<_>, Vec<_>) =
                components.into_iter().partition(|component| component.iter().any(|other| shares(other, way)));
            components = apart;
            let mut merged: Vec<&CompiledWay> = joined.drain(..).flatten().collect();
            merged.push(way);
            components.push(merged);
        }
        let largest = components.iter().map(Vec::len).max().unwrap_or(0);
        (ways.len() > 1 && components.len() > 1 && largest <= 4).then_some(Components(components))
    }

    /// The largest number of tokens that can be spread over the ways of one component.
    pub fn max_tokens(&self) -> usize {
        let largest = self.0.iter().map(Vec::len).max().unwrap_or(1) as i32;
        // C(m + W, W) splits are about (m + W)^W / W!.
        let factorial: f64 = (1..=largest).map(f64::from).product();
        match largest {
            1 => usize::MAX,
            _ => (MAX_SPLITS * factorial).powf(1.0 / f64::from(largest)) as usize,
        }
    }
}

fn shares(a: &CompiledWay, b: &CompiledWay) -> bool {
    a.increments.iter().any(|(register, _)| b.increments.iter().any(|(other, _)| other == register))
}

/// ln of the probability of the layer's states followed by m tokens, m = 0..=n_max, up to factors that are certain.
///
/// # Errors
/// When the run was stopped.
pub fn ln_totals<D: Digit>(
    components: &Components<'_>,
    layer: &Layer<D>,
    n_max: usize,
    control: &mut Control<'_>,
) -> Result<Vec<Double>> {
    let mut states: Vec<usize> = (0..layer.len()).collect();
    states.sort_by(|&a, &b| {
        let key = |ix: usize| components.0.iter().flat_map(move |component| registers_of(component, layer.state(ix)));
        key(a).cmp(key(b))
    });
    let tail = Tail { components: &components.0, layer, n_max };
    // Plain numbers are five times as fast and nearly always enough; where one underflows, all is done again with an
    // exponent for each.
    if let Some(entries) = tail.sum::<f64>(0, &states, control)?.ln_with_factorials() {
        return Ok(entries);
    }
    let never = Double::from(f64::NEG_INFINITY);
    let entries = tail.sum::<Scaled>(0, &states, control)?.ln_with_factorials();
    Ok(entries.unwrap_or_else(|| vec![never; n_max + 1]))
}

/// The numbers a component's registers hold.
fn registers_of<'w, D: Digit>(component: &'w [&CompiledWay], state: &'w [D]) -> impl Iterator<Item = D> + 'w {
    component.iter().flat_map(move |way| way.increments.iter().map(move |&(register, _)| state[register as usize]))
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
    components: &'t [Vec<&'t CompiledWay>],
    layer: &'t Layer<D>,
    n_max: usize,
}

impl<D: Digit> Tail<'_, D> {
    /// Sum over states of their probability times the product of the series of components `from` and later. States are
    /// sorted, so those that agree on a component stand together and share its convolution.
    fn sum<C: Coefficient>(&self, from: usize, states: &[usize], control: &mut Control<'_>) -> Result<Series<C>> {
        let is_last = from + 1 == self.components.len();
        let component = self.components[from].as_slice();
        let mut total: Option<Series<C>> = None;
        let agree = |&a: &usize, &b: &usize| {
            registers_of(component, self.layer.state(a)).eq(registers_of(component, self.layer.state(b)))
        };
        for group in states.chunk_by(agree) {
            control.tick("exact: totals", 0.0)?;
            let own = self.series::<C>(component, self.layer.state(group[0]));
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

    /// The coefficients of a component's series, up to n_max.
    fn series<C: Coefficient>(&self, component: &[&CompiledWay], state: &[D]) -> Series<C> {
        let mut terms = vec![Scaled::ZERO; self.n_max + 1];
        let mut registers: Vec<u32> = state.iter().map(|digit| digit.get()).collect();
        self.add_splits(component, &mut registers, Scaled::ONE, 0, &mut terms);
        let largest = terms.iter().copied().max_by(|a, b| a.ln().total_cmp(&b.ln())).expect("at least one term");
        Series { ln_scale: largest.ln(), values: terms.iter().map(|&term| C::relative(term, largest)).collect() }
    }

    /// Puts 0, 1, 2, .. tokens on the first way and the others on the rest, adding each split's term where it belongs.
    fn add_splits(
        &self,
        ways: &[&CompiledWay],
        registers: &mut [u32],
        mut term: Scaled,
        n_before: usize,
        terms: &mut [Scaled],
    ) {
        let Some((way, rest)) = ways.split_first() else {
            terms[n_before] = terms[n_before] + term;
            return;
        };
        let n_most = self.n_max - n_before;
        for n in 0..=n_most {
            self.add_splits(rest, registers, term, n_before + n, terms);
            if n == n_most {
                break;
            }
            term = transition(term * (1.0 / (n + 1) as f64), way, registers);
            way.increments.iter().for_each(|&(register, step)| registers[register as usize] += step);
        }
        way.increments.iter().for_each(|&(register, step)| registers[register as usize] -= step * n_most as u32);
    }
}
