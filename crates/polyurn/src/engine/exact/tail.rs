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
/// `None` when a coefficient underflows: they are of moderate size where ways compete for tokens by counts of their own,
/// which is what makes ways disjoint, but a prior with extreme pseudo-counts could do it.
///
/// # Errors
/// When the run was stopped.
pub fn ln_totals<D: Digit>(
    ways: &[CompiledWay],
    layer: &Layer<D>,
    n_max: usize,
    control: &mut Control<'_>,
) -> Result<Option<Vec<Double>>> {
    let mut states: Vec<usize> = (0..layer.len()).collect();
    states.sort_by(|&a, &b| {
        let key = |ix: usize| ways.iter().flat_map(move |way| registers_of(way, layer.state(ix)));
        key(a).cmp(key(b))
    });
    let tail = Tail { ways, layer, n_max };
    let series = tail.sum(0, &states, control)?;
    if series.values.iter().any(|&value| value < f64::MIN_POSITIVE) {
        return Ok(None);
    }
    let entry = |(&value, m): (&f64, u64)| ln_factorial(m) + Double::from(series.ln_scale) + Double::from(value.ln());
    Ok(Some(series.values.iter().zip(0u64..).map(entry).collect()))
}

fn registers_of<'w, D: Digit>(way: &'w CompiledWay, state: &'w [D]) -> impl Iterator<Item = D> + 'w {
    way.increments.iter().map(|&(register, _)| state[register as usize])
}

/// Coefficients of a power series, `exp(ln_scale) * values`, the largest value being 1 (or all zero).
struct Series {
    ln_scale: f64,
    values: Vec<f64>,
}

impl Series {
    fn normalised(mut self) -> Self {
        let max = self.values.iter().copied().fold(0.0, f64::max);
        if max > 0.0 {
            self.values.iter_mut().for_each(|value| *value /= max);
            self.ln_scale += max.ln();
        }
        self
    }

    fn add(self, other: Series) -> Series {
        let ln_scale = self.ln_scale.max(other.ln_scale);
        let (a, b) = ((self.ln_scale - ln_scale).exp(), (other.ln_scale - ln_scale).exp());
        let values = self.values.iter().zip(&other.values).map(|(&x, &y)| a * x + b * y).collect();
        Series { ln_scale, values }.normalised()
    }

    /// The product of two series, cut off at the same degree.
    fn multiply(&self, other: &Series) -> Series {
        let mut values = vec![0.0; self.values.len()];
        for (shift, &factor) in self.values.iter().enumerate() {
            if factor > 0.0 {
                for (slot, &value) in values[shift..].iter_mut().zip(&other.values) {
                    *slot += factor * value;
                }
            }
        }
        Series { ln_scale: self.ln_scale + other.ln_scale, values }.normalised()
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
    fn sum(&self, from: usize, states: &[usize], control: &mut Control<'_>) -> Result<Series> {
        let is_last = from + 1 == self.ways.len();
        let way = &self.ways[from];
        let mut total: Option<Series> = None;
        let agree =
            |&a: &usize, &b: &usize| registers_of(way, self.layer.state(a)).eq(registers_of(way, self.layer.state(b)));
        for group in states.chunk_by(agree) {
            control.tick("exact: totals", 0.0)?;
            let own = self.series(way, self.layer.state(group[0]));
            let product = if is_last {
                let weight: Scaled = group.iter().map(|&state| self.layer.weight(state)).sum();
                Series { ln_scale: own.ln_scale + weight.ln(), ..own }
            } else {
                own.multiply(&self.sum(from + 1, group, control)?)
            };
            total = Some(match total {
                None => product,
                Some(total) => total.add(product),
            });
        }
        Ok(total.expect("there is at least one state"))
    }

    /// g_w(n)/n! for n = 0..=n_max.
    fn series(&self, way: &CompiledWay, state: &[D]) -> Series {
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
        Series { ln_scale: largest.ln(), values: terms.iter().map(|term| term.ratio(largest)).collect() }
    }
}
