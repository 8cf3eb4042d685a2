//! Draws by weights that lie in rows of eight.

use super::tokens::EIGHT;
use crate::simd::Eight;

/// Eight numbers that share a line of the cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct Row(pub [f64; EIGHT]);

/// Two rows, one after the other.
#[derive(Debug)]
#[repr(align(64))]
pub struct Rows(pub [[f64; EIGHT]; 2]);

/// A value in proportion to its weight: first its lane, by running sums over lanes, then its row by those within the lane.
///
/// `sums` are sums of weights above each row, from zeros on, and `sum` the last of them. No step waits for a sum that is made one number
/// at a time: a chain waits for nothing else.
#[inline(always)]
pub fn pick<E: Eight>(sums: &[Row], sum: E, uniform: f64, running: &mut Rows) -> usize {
    let lanes = sum.running_sums();
    // The row before stays zero: what comes before the first lane.
    lanes.store(&mut running.0[1]);
    let target = uniform * running.0[1][EIGHT - 1];
    let lane = lanes.n_less(target);
    let rest = target - running.0.as_flattened()[EIGHT - 1 + lane];
    let n_rows = sums.len() - 1;
    let row: usize = sums[1..n_rows].iter().map(|sums| usize::from(sums.0[lane] < rest)).sum();
    if sums[row + 1].0[lane] > sums[row].0[lane] { row * EIGHT + lane } else { likeliest(sums) }
}

/// Where rounding has left a value that cannot be.
#[cold]
fn likeliest(sums: &[Row]) -> usize {
    let weight = |value: usize| {
        let (row, lane) = (value / EIGHT, value % EIGHT);
        sums[row + 1].0[lane] - sums[row].0[lane]
    };
    (0..(sums.len() - 1) * EIGHT).max_by(|&x, &y| weight(x).total_cmp(&weight(y))).unwrap_or(0)
}
