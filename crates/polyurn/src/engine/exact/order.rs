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
//! Exchangeable labels then divide it: of n tokens at most n labels are occupied, and states with j occupied labels come in
//! about j! versions, so the share that remains is the sum over j of the bound with j labels over j!. That is close, but no
//! bound: versions that happen to be equal are fewer than j!.

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

/// ln of a number of states that no machine will ever hold.
const LN_HOPELESS: f64 = 140.0;

/// A number of states that was cut off, and any beyond: all that is known is that there are more.
pub fn most_states() -> f64 {
    LN_MAX_STATES.exp()
}

/// Picks the cheapest of several orders. `touches[r]` are the effects of record r's ways; `label_sets` are the sizes of the
/// sets of exchangeable labels. Slots that are `kept_to_end` are never forgotten.
pub fn choose_order(
    model: &Model,
    records: &[Ambiguous],
    touches: &[Vec<Touches>],
    kept_to_end: &[bool],
    label_sets: &[usize],
) -> (Vec<usize>, Forecast) {
    let counts: Vec<u64> = records.iter().map(|record| record.count).collect();
    let n_ways: usize = touches.iter().map(Vec::len).sum();
    let orders = candidate_orders(model, records, (MAX_LOOKS / (4 * n_ways)).max(1));
    let n_layers = (MAX_LOOKS / (orders.len() * n_ways)).clamp(4, MAX_LAYERS);
    let full = |order: Vec<usize>| {
        let forecast = forecast(&order, &counts, touches, kept_to_end, label_sets, n_layers);
        (order, forecast)
    };
    // Orders that are hopeless half way are not looked at more closely, and if all are, one of them stands for all.
    let half_way = |order: Vec<usize>| {
        let ln_states = ln_states_half_way(&order, &counts, touches, kept_to_end, label_sets);
        (order, ln_states)
    };
    let mut orders: Vec<(Vec<usize>, f64)> = orders.into_iter().map(half_way).collect();
    if orders.iter().all(|(_, ln_states)| *ln_states > LN_HOPELESS) {
        let least = orders.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        return full(least.expect("there is at least one order").0);
    }
    orders.retain(|(_, ln_states)| *ln_states <= LN_HOPELESS);
    orders
        .into_iter()
        .map(|(order, _)| full(order))
        .min_by(|a, b| a.1.n_transitions.total_cmp(&b.1.n_transitions))
        .expect("there is at least one order")
}

/// ln of the states half way: no more than the most there are.
fn ln_states_half_way(
    order: &[usize],
    counts: &[u64],
    touches: &[Vec<Touches>],
    kept_to_end: &[bool],
    label_sets: &[usize],
) -> f64 {
    let Some(layer) = order.len().checked_sub(1).map(|end| end / 2) else { return 0.0 };
    let last = last_touch(order, touches, kept_to_end);
    ln_layer_states(&order[..=layer], counts, touches, &last, layer, label_sets)
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
    label_sets: &[usize],
    n_layers: usize,
) -> Forecast {
    let last = last_touch(order, touches, kept_to_end);
    let step = order.len().div_ceil(n_layers).max(1);
    let mut forecast = Forecast { n_states: 1.0, n_transitions: 0.0 };
    let mut at = 0;
    while at < order.len() {
        let layer = (at + step - 1).min(order.len() - 1);
        let ln_states = ln_layer_states(&order[..=layer], counts, touches, &last, layer, label_sets);
        let n_states = ln_states.max(0.0).exp().min(most_states());
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
fn ln_layer_states(
    records: &[usize],
    counts: &[u64],
    touches: &[Vec<Touches>],
    last: &[usize],
    layer: usize,
    label_sets: &[usize],
) -> f64 {
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
    let ln_bound = if WORTH_A_BASIS.contains(&ln_spread) { ln_spread.min(ln_basis_range(&groups)) } else { ln_spread };
    ln_bound + label_sets.iter().map(|&n_labels| ln_share_of_labellings(&groups, n_labels, ln_spread)).sum::<f64>()
}

/// ln of the share of states that remains when labels of one set are exchanged for each other.
fn ln_share_of_labellings(groups: &[(Vec<Touches>, f64)], n_labels: usize, ln_spread: f64) -> f64 {
    let n_tokens: f64 = groups.iter().map(|(_, n_tokens)| n_tokens).sum();
    let most = (n_labels as f64).min(n_tokens).max(1.0) as usize;
    let ln_with = |n_occupied: usize| -> f64 {
        let share = n_occupied as f64 / n_labels as f64;
        let spread = |(effects, n_tokens): &(Vec<Touches>, f64)| {
            ln_compositions(*n_tokens, (effects.len() as f64 * share).ceil().max(1.0))
        };
        groups.iter().map(spread).sum::<f64>() - ln_spread - libm::lgamma(n_occupied as f64 + 1.0)
    };
    // Terms of many labels follow a smooth curve: some dozens of them are enough.
    let step = most.div_ceil(64).max(1);
    let terms: Vec<f64> = (1..=most).rev().step_by(step).map(|n| ln_with(n) + (step as f64).ln()).collect();
    crate::math::log_sum_exp(&terms).min(0.0)
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
    let n_effects: usize = groups.iter().map(|(effects, _)| effects.len()).sum();
    if n_effects * slots.len() > MAX_BASIS_ENTRIES {
        return f64::INFINITY;
    }
    let dense = |effect: &Touches| -> Vec<f64> {
        let mut row = vec![0.0; slots.len()];
        for &(slot, n) in effect {
            row[slots.binary_search(&slot).expect("all slots are listed")] = f64::from(n);
        }
        row
    };
    let mut ranges = vec![0.0; slots.len()];
    // One row for each way a token can differ from the first way, one column for each slot.
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for (effects, n_tokens) in groups {
        let effects: Vec<Vec<f64>> = effects.iter().map(dense).collect();
        for (column, range) in ranges.iter_mut().enumerate() {
            let values = effects.iter().map(|effect| effect[column]);
            let (low, high) = (values.clone().fold(f64::INFINITY, f64::min), values.fold(0.0, f64::max));
            *range += n_tokens * (high - low);
        }
        rows.extend(effects[1..].iter().map(|row| row.iter().zip(&effects[0]).map(|(a, b)| a - b).collect()));
    }
    let mut by_range: Vec<(f64, usize)> = ranges.into_iter().zip(0..).collect();
    by_range.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut ln = 0.0;
    for (range, column) in by_range {
        let Some(at) = rows.iter().position(|row| row[column].abs() > 1e-9) else { continue };
        ln += (range + 1.0).ln();
        let pivot = rows.swap_remove(at);
        for row in rows.iter_mut().filter(|row| row[column].abs() > 1e-9) {
            let factor = row[column] / pivot[column];
            row.iter_mut().zip(&pivot).for_each(|(entry, &pivot)| *entry -= factor * pivot);
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
