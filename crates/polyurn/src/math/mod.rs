//! Numerics: 32-digit sums, special functions, products of many factors, numbers beyond the range of `f64`, random draws.

mod double;
pub mod draw;
mod product;
mod risings;
mod running;
mod scaled;
pub mod special;

pub use double::Double;
pub use product::{LnProduct, TINY, ln_factorial, ln_rising};
pub use risings::Risings;
pub(crate) use running::RunningProduct;
pub use scaled::Scaled;

/// ln of the sum of exponentials, without overflow. Minus infinity for an empty slice or all minus infinity.
///
/// ```
/// assert_eq!(polyurn::math::log_sum_exp(&[]), f64::NEG_INFINITY);
/// assert!((polyurn::math::log_sum_exp(&[1000.0, 1000.0]) - (1000.0 + 2f64.ln())).abs() < 1e-12);
/// ```
pub fn log_sum_exp(terms: &[f64]) -> f64 {
    let max = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !max.is_finite() {
        return max;
    }
    max + terms.iter().map(|&term| (term - max).exp()).sum::<f64>().ln()
}
