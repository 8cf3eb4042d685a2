//! The order of records, and what the run will cost in that order.
//!
//! Any order gives the same answer, but a slot is kept only from the first record that can touch it to the last. Grouping
//! records by one seen node finishes that node's slots early, and finished slots are forgotten, so that states merge.
//!
//! The forecast counts states layer by layer. Records whose effect on the slots still alive is the same are
//! indistinguishable by then, so all their tokens together reach at most as many states as there are ways to spread them
//! over their distinct effects: a product of binomial coefficients over the groups. Exchangeable labels divide it.

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
const MAX_LAYERS: usize = 200;
/// Orders tried.
const MAX_ORDERS: usize = 24;

/// Picks the cheapest of several orders. `touches[r]` are the effects of record r's ways; `n_symmetries` is the number of
/// label permutations. With `keep_all` nothing is forgotten and the order does not matter.
pub fn choose_order(
    model: &Model,
    records: &[Ambiguous],
    touches: &[Vec<Touches>],
    kept_to_end: &[bool],
    n_symmetries: f64,
) -> (Vec<usize>, Forecast) {
    let counts: Vec<u64> = records.iter().map(|record| record.count).collect();
    let cost = |order: &[usize]| forecast(order, &counts, touches, kept_to_end, n_symmetries);
    candidate_orders(model, records)
        .into_iter()
        .map(|order| {
            let forecast = cost(&order);
            (order, forecast)
        })
        .min_by(|a, b| a.1.n_transitions.total_cmp(&b.1.n_transitions))
        .expect("there is at least one order")
}

/// Records sorted by their values, with every node (up to a limit, every pair of nodes) as the first key once.
fn candidate_orders(model: &Model, records: &[Ambiguous]) -> Vec<Vec<usize>> {
    let n_nodes = model.n_nodes();
    let varies = |node: usize| records.iter().any(|record| record.values[node] != records[0].values[node]);
    let keys: Vec<usize> = (0..n_nodes).filter(|&node| !records.is_empty() && varies(node)).collect();
    let mut orders: Vec<Vec<usize>> = Vec::new();
    let mut push = |first: &[usize]| {
        let mut order: Vec<usize> = (0..records.len()).collect();
        let rest: Vec<usize> = keys.iter().copied().filter(|node| !first.contains(node)).collect();
        order.sort_by_key(|&ix| first.iter().chain(&rest).map(|&node| records[ix].values[node]).collect::<Vec<u32>>());
        orders.push(order);
    };
    push(&[]);
    for &first in keys.iter().take(MAX_ORDERS) {
        for &second in keys.iter().take(MAX_ORDERS / keys.len().max(1)).filter(|&&second| second != first) {
            push(&[first, second]);
        }
        push(&[first]);
    }
    orders
}

/// Predicts states and transitions for an order.
pub fn forecast(
    order: &[usize],
    counts: &[u64],
    touches: &[Vec<Touches>],
    kept_to_end: &[bool],
    n_symmetries: f64,
) -> Forecast {
    let last = last_touch(order, touches, kept_to_end);
    let step = order.len().div_ceil(MAX_LAYERS).max(1);
    let mut forecast = Forecast { n_states: 1.0, n_transitions: 0.0 };
    let mut at = 0;
    while at < order.len() {
        let layer = (at + step - 1).min(order.len() - 1);
        let n_states = (layer_states(&order[..=layer], counts, touches, &last, layer) / n_symmetries).max(1.0);
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

/// Upper bound of the states while the last of these records is being placed.
fn layer_states(records: &[usize], counts: &[u64], touches: &[Vec<Touches>], last: &[usize], layer: usize) -> f64 {
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
    let mut factors: Vec<f64> =
        groups.iter().map(|(effects, &n_tokens)| ln_compositions(n_tokens, effects.len() as f64)).collect();
    // Summed in a fixed order, whatever the map's order.
    factors.sort_unstable_by(f64::total_cmp);
    factors.iter().sum::<f64>().exp()
}

/// ln of the number of ways to spread n equal tokens over k boxes.
pub fn ln_compositions(n: f64, k: f64) -> f64 {
    libm::lgamma(n + k) - libm::lgamma(n + 1.0) - libm::lgamma(k)
}

/// The effects of every way of a record.
pub fn effects(slots: &Slots, ways: &[super::records::Way]) -> Vec<Touches> {
    ways.iter().map(|way| slots.touches(way)).collect()
}
