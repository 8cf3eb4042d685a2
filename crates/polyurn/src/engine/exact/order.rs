//! The order of records, and what the run will cost in that order.
//!
//! Any order gives the same answer, but a slot is kept only from the first record that can touch it to the last. Grouping
//! records by one seen node finishes that node's slots early, and finished slots are forgotten, so that states merge.
//!
//! The forecast bounds the states layer by layer, in two ways, and takes the smaller:
//! - records whose effect on the slots still alive is the same are indistinguishable by then, so all their tokens together
//!   reach at most as many states as there are ways to spread them over their distinct effects, a product of binomial
//!   coefficients over the groups;
//! - slots depend on each other linearly (the counts of a topic's words add up to the topic's count), so a state is known
//!   from a basis of slots, and there are at most as many states as numbers these can take.
//!
//! Exchangeable labels divide the bound by the number of their permutations.

use super::records::Ambiguous;
use super::slots::Slots;
use crate::graph::Model;
use hashbrown::HashMap;

/// The effect of one way on the state: slots and how often each is touched.
pub type Touches = Vec<(u32, u32)>;

/// What an exact run will need.
#[derive(Debug, Clone, PartialEq)]
pub struct Forecast {
    /// Largest number of states held at once.
    pub n_states: f64,
    /// State transitions in all.
    pub n_transitions: f64,
}

/// Layers that are looked at when there are very many records.
const MAX_LAYERS: usize = 60;
/// Orders tried.
const MAX_ORDERS: usize = 24;
/// Ways looked at in all, over orders and layers: keeps the forecast of a hopeless problem quick.
const MAX_LOOKS: usize = 3_000_000;
/// Numbers of states are cut off here, so that sums of them stay finite.
const LN_MAX_STATES: f64 = 575.0;

/// Picks the cheapest of several orders. `touches[r]` are the effects of record r's ways; `n_symmetries` is the number of
/// label permutations. Slots that are `kept_to_end` are never forgotten.
pub fn choose_order(
    model: &Model,
    records: &[Ambiguous],
    touches: &[Vec<Touches>],
    kept_to_end: &[bool],
    n_symmetries: f64,
) -> (Vec<usize>, Forecast) {
    let counts: Vec<u64> = records.iter().map(|record| record.count).collect();
    let n_ways: usize = touches.iter().map(Vec::len).sum();
    let orders = candidate_orders(model, records, (MAX_LOOKS / (4 * n_ways)).max(1));
    let n_layers = (MAX_LOOKS / (orders.len() * n_ways)).clamp(4, MAX_LAYERS);
    orders
        .into_iter()
        .map(|order| {
            let forecast = forecast(&order, &counts, touches, kept_to_end, n_symmetries, n_layers);
            (order, forecast)
        })
        .min_by(|a, b| a.1.n_transitions.total_cmp(&b.1.n_transitions))
        .expect("there is at least one order")
}

/// Records sorted by their values, with every node (up to a limit, every pair of nodes) as the first key once.
fn candidate_orders(model: &Model, records: &[Ambiguous], max_orders: usize) -> Vec<Vec<usize>> {
    let n_nodes = model.n_nodes();
    let varies = |node: usize| records.iter().any(|record| record.values[node] != records[0].values[node]);
    let keys: Vec<usize> = (0..n_nodes).filter(|&node| !records.is_empty() && varies(node)).collect();
    let mut first_keys: Vec<Vec<usize>> = vec![Vec::new()];
    for &first in keys.iter().take(MAX_ORDERS) {
        for &second in keys.iter().take(MAX_ORDERS / keys.len().max(1)).filter(|&&second| second != first) {
            first_keys.push(vec![first, second]);
        }
        first_keys.push(vec![first]);
    }
    first_keys.truncate(max_orders);
    let sorted_by = |first: Vec<usize>| {
        let mut order: Vec<usize> = (0..records.len()).collect();
        let rest: Vec<usize> = keys.iter().copied().filter(|node| !first.contains(node)).collect();
        order.sort_by_cached_key(|&ix| {
            first.iter().chain(&rest).map(|&node| records[ix].values[node]).collect::<Vec<u32>>()
        });
        order
    };
    first_keys.into_iter().map(sorted_by).collect()
}

/// Predicts states and transitions for an order, looking at no more than `n_layers` layers.
fn forecast(
    order: &[usize],
    counts: &[u64],
    touches: &[Vec<Touches>],
    kept_to_end: &[bool],
    n_symmetries: f64,
    n_layers: usize,
) -> Forecast {
    let last = last_touch(order, touches, kept_to_end);
    let step = order.len().div_ceil(n_layers).max(1);
    let mut forecast = Forecast { n_states: 1.0, n_transitions: 0.0 };
    let mut at = 0;
    while at < order.len() {
        let layer = (at + step - 1).min(order.len() - 1);
        let ln_states = ln_layer_states(&order[..=layer], counts, touches, &last, layer) - n_symmetries.ln();
        let n_states = ln_states.clamp(0.0, LN_MAX_STATES).exp();
        forecast.n_states = forecast.n_states.max(n_states);
        let n_steps: f64 =
            order[at..=layer].iter().map(|&record| counts[record] as f64 * touches[record].len() as f64).sum();
        forecast.n_transitions += n_steps * n_states;
        at = layer + 1;
    }
    forecast
}

/// For each slot the position in the order of the last record that touches it.
pub fn last_touch(order: &[usize], touches: &[Vec<Touches>], kept_to_end: &[bool]) -> Vec<usize> {
    let mut last: Vec<usize> = kept_to_end.iter().map(|&kept| if kept { usize::MAX } else { 0 }).collect();
    for (at, &record) in order.iter().enumerate() {
        for &(slot, _) in touches[record].iter().flatten() {
            last[slot as usize] = last[slot as usize].max(at);
        }
    }
    last
}

/// ln of an upper bound of the states while the last of these records is being placed.
fn ln_layer_states(records: &[usize], counts: &[u64], touches: &[Vec<Touches>], last: &[usize], layer: usize) -> f64 {
    let mut groups: HashMap<Vec<Touches>, f64> = HashMap::new();
    for &record in records {
        let mut effects: Vec<Touches> = touches[record]
            .iter()
            .map(|way| way.iter().copied().filter(|&(slot, _)| last[slot as usize] >= layer).collect())
            .collect();
        effects.sort_unstable();
        effects.dedup();
        if effects.len() > 1 {
            *groups.entry(effects).or_insert(0.0) += counts[record] as f64;
        }
    }
    // In a fixed order, whatever the map's order: the result must not depend on hashing.
    let mut groups: Vec<(Vec<Touches>, f64)> = groups.into_iter().collect();
    groups.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let ln_spread: f64 =
        groups.iter().map(|(effects, n_tokens)| ln_compositions(*n_tokens, effects.len() as f64)).sum();
    if WORTH_A_BASIS.contains(&ln_spread) { ln_spread.min(ln_basis_range(&groups)) } else { ln_spread }
}

/// ln of the numbers of states for which the better bound is sought: below, the simple one will do; above, the problem is
/// hopeless anyway. From 1e4 to 1e30.
const WORTH_A_BASIS: std::ops::Range<f64> = 9.2..69.0;
/// Largest matrix for which a basis is sought.
const MAX_BASIS_ENTRIES: usize = 2_000_000;

/// ln of the number of values that a basis of slots can take. Slots of small range are preferred, which gives the best
/// basis there is, linear independence being a matroid.
fn ln_basis_range(groups: &[(Vec<Touches>, f64)]) -> f64 {
    let mut slots: Vec<u32> =
        groups.iter().flat_map(|(effects, _)| effects.iter().flatten().map(|touch| touch.0)).collect();
    slots.sort_unstable();
    slots.dedup();
    let touched = |effect: &Touches, slot: u32| {
        effect.iter().find(|touch| touch.0 == slot).map_or(0.0, |touch| f64::from(touch.1))
    };
    let range = |slot: u32| -> f64 {
        let spread = |effects: &[Touches]| {
            let values = effects.iter().map(|effect| touched(effect, slot));
            values.clone().fold(0.0, f64::max) - values.fold(f64::INFINITY, f64::min)
        };
        groups.iter().map(|(effects, n_tokens)| n_tokens * spread(effects)).sum()
    };
    let mut by_range: Vec<(f64, u32)> = slots.iter().map(|&slot| (range(slot), slot)).collect();
    by_range.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let n_rows: usize = groups.iter().map(|(effects, _)| effects.len() - 1).sum();
    if n_rows * by_range.len() > MAX_BASIS_ENTRIES {
        return f64::INFINITY;
    }
    // One row for each way a token can differ from the first way, one column for each slot, smallest range first.
    let row = |effect: &Touches, first: &Touches| -> Vec<f64> {
        by_range.iter().map(|&(_, slot)| touched(effect, slot) - touched(first, slot)).collect()
    };
    let mut rows: Vec<Vec<f64>> = groups
        .iter()
        .flat_map(|(effects, _)| effects[1..].iter().map(|effect| row(effect, &effects[0])).collect::<Vec<_>>())
        .collect();
    let mut ln = 0.0;
    for (column, &(range, _)) in by_range.iter().enumerate() {
        let Some(at) = rows.iter().position(|row| row[column].abs() > 1e-9) else { continue };
        ln += (range + 1.0).ln();
        let pivot = rows.swap_remove(at);
        for row in rows.iter_mut().filter(|row| row[column].abs() > 1e-9) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).skip(column).for_each(|(entry, &pivot)| *entry -= factor * pivot);
        }
        rows.retain(|row| row.iter().any(|entry| entry.abs() > 1e-9));
    }
    ln
}

/// ln of the number of ways to spread n equal tokens over k boxes.
pub fn ln_compositions(n: f64, k: f64) -> f64 {
    if k <= 64.0 {
        // Multiplied out: differences of log-Gammas lose all digits for large n.
        return (1..k as u32).map(|j| (n / f64::from(j)).ln_1p()).sum();
    }
    libm::lgamma(n + k) - libm::lgamma(n + 1.0) - libm::lgamma(k)
}

/// The effects of every way of a record.
pub fn effects(slots: &Slots, ways: &[super::records::Way]) -> Vec<Touches> {
    ways.iter().map(|way| slots.touches(way)).collect()
}
