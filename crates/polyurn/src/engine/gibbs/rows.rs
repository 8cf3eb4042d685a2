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

/// A value in proportion to its weight.
///
/// `sums` are sums of weights above each row, from zeros on, and `sum` the last of them. No step waits for a sum that is made one number
/// at a time: a chain waits for nothing else.
#[inline(always)]
pub fn pick<E: Eight>(sums: &[Row], sum: E, uniform: f64, running: &mut Rows) -> usize {
    let (lanes, total) = lane_sums(sum, running);
    value_at(sums, lanes, uniform * total, running)
}

/// Running sums over lanes, also in `running`, whose row before stays zero: what comes before the first lane. And all of them.
#[inline(always)]
pub fn lane_sums<E: Eight>(sum: E, running: &mut Rows) -> (E, f64) {
    let lanes = sum.running_sums();
    lanes.store(&mut running.0[1]);
    (lanes, running.0[1][EIGHT - 1])
}

/// The value at a place in the sum of all weights: first its lane, by running sums over lanes, then its row by those within the lane.
#[inline(always)]
pub fn value_at<E: Eight>(sums: &[Row], lanes: E, place: f64, running: &Rows) -> usize {
    let lane = lanes.n_less(place);
    let rest = place - running.0.as_flattened()[EIGHT - 1 + lane];
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
