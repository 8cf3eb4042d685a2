//! A reference that annealing starts from: every token by itself, with the probabilities that pilot chains found for its
//! hidden states.
//!
//! Tokens of one record have the same probabilities. Any reference gives an unbiased estimate, as long as every state that can
//! be has a probability; so a little of the uniform distribution is mixed in, and probabilities may be rounded.

use crate::engine::gibbs::{EIGHT, Tokens, draw_down};
use crate::engine::lines::Kernel;
use crate::math::draw::open_unit;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Share of the uniform distribution in every record's probabilities.
const UNIFORM_SHARE: f64 = 0.02;

/// The coarsest level that a byte can hold.
const LAST_LEVEL: f64 = 255.0;

/// Probabilities of the hidden states of each record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Fitted {
    /// One hidden node: levels of probability, in bytes.
    Levels(Levels),
    /// Any model: logarithms.
    Logs(Logs),
}

/// For each record and value a level: the probability is in proportion to exp(-step level).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Levels {
    /// Levels, record by record, in rows of eight.
    pub rows: Vec<[u8; EIGHT]>,
    /// Difference of ln probability between two levels.
    pub step: f64,
    n_values: usize,
    n_eights: usize,
    /// Sum over all tokens of ln of what the proportions add up to.
    ln_norms: f64,
}

impl Levels {
    /// From sums of probabilities, record by record in rows of eight.
    pub fn new(tokens: &Tokens<'_>, n_values: usize, sums: &[[f32; EIGHT]]) -> Self {
        let n_eights = n_values.div_ceil(EIGHT);
        let even = UNIFORM_SHARE / n_values as f64;
        let step = Levels::step_of(n_values);
        let mut levels = Levels { rows: Vec::with_capacity(sums.len()), step, n_values, n_eights, ln_norms: 0.0 };
        for (record, sums) in sums.chunks(n_eights).enumerate() {
            let total: f64 = sums.as_flattened()[..n_values].iter().copied().map(f64::from).sum();
            let share = |sum: f32| (1.0 - UNIFORM_SHARE) * f64::from(sum) / total + even;
            let largest = sums.as_flattened()[..n_values].iter().copied().map(share).fold(0.0, f64::max);
            let mut norm = 0.0;
            for (eight, row) in sums.iter().enumerate() {
                let mut own = [0; EIGHT];
                for lane in (0..EIGHT).filter(|lane| eight * EIGHT + lane < n_values) {
                    let level = ((largest / share(row[lane])).ln() / step).round().min(LAST_LEVEL);
                    own[lane] = level as u8;
                    norm += (-step * level).exp();
                }
                levels.rows.push(own);
            }
            levels.ln_norms += tokens.layout.records.count[record] as f64 * norm.ln();
        }
        levels
    }

    /// Steps down from the largest probability that there can be to the smallest.
    fn step_of(n_values: usize) -> f64 {
        let even = UNIFORM_SHARE / n_values as f64;
        ((1.0 - UNIFORM_SHARE + even) / even).ln() / LAST_LEVEL
    }

    /// The level of a record's value.
    pub fn level(&self, record: usize, value: usize) -> u8 {
        self.rows[record * self.n_eights + value / EIGHT][value % EIGHT]
    }

    /// ln of the probability of states whose levels add up to this.
    pub fn ln_probability(&self, level_sum: i64) -> f64 {
        self.ln_probability_at(level_sum as f64)
    }

    /// The same where levels add up to this on average.
    pub fn ln_probability_at(&self, level_sum: f64) -> f64 {
        -self.step * level_sum - self.ln_norms
    }

    /// The sum of the levels of these states, one for each token.
    pub fn level_sum(&self, tokens: &Tokens<'_>, states: &[u32]) -> i64 {
        let level = |(&record, &state): (&u32, &u32)| i64::from(self.level(record as usize, state as usize));
        tokens.record.iter().zip(states).map(level).sum()
    }

    fn draw(&self, record: usize, rng: &mut impl Rng) -> u32 {
        let weight = |value: usize| (-self.step * f64::from(self.level(record, value))).exp();
        let total: f64 = (0..self.n_values).map(weight).sum();
        let mut target = open_unit(rng) * total;
        for value in 0..self.n_values - 1 {
            target -= weight(value);
            if target <= 0.0 {
                return value as u32;
            }
        }
        self.n_values as u32 - 1
    }
}

/// For each record and state of its buckets ln of the probability, given the states of the buckets above.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Logs {
    first: Vec<usize>,
    logs: Vec<f64>,
}

impl Logs {
    /// Room for the sums of each record's states: where its own begin, and how many there are.
    pub fn room(tokens: &Tokens<'_>) -> (Vec<usize>, usize) {
        let mut n = 0;
        let place = |record: usize| {
            let first = n;
            n += tokens.layout.kernel_of(record).n_states();
            first
        };
        let first = (0..tokens.layout.records.len()).map(place).collect();
        (first, n)
    }

    /// From how often each state was visited. States that cannot be keep no probability.
    pub fn new(tokens: &Tokens<'_>, visits: &[f64], is_possible: impl Fn(usize, usize, usize) -> bool) -> Self {
        let (first, n) = Logs::room(tokens);
        let mut logs = vec![f64::NEG_INFINITY; n];
        for (record, &begin) in first.iter().enumerate() {
            let kernel = tokens.layout.kernel_of(record);
            for (ix, bucket) in kernel.buckets.iter().enumerate() {
                let size = if bucket.parent.is_none() { bucket.n_states } else { bucket.size };
                for slice in 0..bucket.n_states / size {
                    let states = || (slice * size..(slice + 1) * size).filter(|&state| is_possible(record, ix, state));
                    let at = |state: usize| begin + kernel.first_state[ix] + state;
                    let n_possible = states().count() as f64;
                    // As if every state had been visited a little.
                    let total: f64 = states().map(|state| visits[at(state)]).sum::<f64>() + 1.0;
                    for state in states() {
                        let visited = (visits[at(state)] + 1.0 / n_possible) / total;
                        logs[at(state)] = ((1.0 - UNIFORM_SHARE) * visited + UNIFORM_SHARE / n_possible).ln();
                    }
                }
            }
        }
        Logs { first, logs }
    }

    /// Logs of the states of all records.
    pub fn all(&self) -> &[f64] {
        &self.logs
    }

    /// Logs of a record's states.
    pub fn of(&self, record: usize, kernel: &Kernel) -> &[f64] {
        &self.logs[self.first[record]..][..kernel.n_states()]
    }
}

impl Fitted {
    /// Whether it can be a reference for these tokens.
    pub fn fits(&self, tokens: &Tokens<'_>) -> bool {
        match self {
            Fitted::Levels(Levels { rows, step, n_values, n_eights, ln_norms }) => {
                tokens.layout.hidden_size == Some(*n_values)
                    && *n_eights == n_values.div_ceil(EIGHT)
                    && rows.len() == tokens.layout.records.len() * n_eights
                    && *step == Levels::step_of(*n_values)
                    && ln_norms.is_finite()
                    && rows.chunks(*n_eights).all(|rows| rows.as_flattened()[..*n_values].contains(&0))
            }
            Fitted::Logs(Logs { first, logs }) => {
                let (wanted, n) = Logs::room(tokens);
                // Rounding may leave a probability a little above one.
                *first == wanted && logs.len() == n && logs.iter().all(|ln| *ln <= 1e-9)
            }
        }
    }

    /// The distance of levels, where there are any.
    pub fn step(&self) -> Option<f64> {
        match self {
            Fitted::Levels(levels) => Some(levels.step),
            Fitted::Logs(_) => None,
        }
    }

    /// Draws the states of all tokens.
    pub fn draw(&self, tokens: &Tokens<'_>, rng: &mut impl Rng) -> Vec<u32> {
        let mut states = vec![0; tokens.n_states];
        let mut weights = Vec::new();
        for token in 0..tokens.len() {
            let record = tokens.record[token] as usize;
            match self {
                Fitted::Levels(levels) => states[token] = levels.draw(record, rng),
                Fitted::Logs(logs) => {
                    let kernel = tokens.layout.kernel_of(record);
                    weights.clear();
                    weights.extend(logs.of(record, kernel).iter().map(|ln| ln.exp()));
                    draw_down(kernel, &weights, &mut states[tokens.states(token)], rng);
                }
            }
        }
        states
    }

    /// ln of the probability of the states of all tokens.
    pub fn ln_probability(&self, tokens: &Tokens<'_>, states: &[u32]) -> f64 {
        match self {
            Fitted::Levels(levels) => levels.ln_probability(levels.level_sum(tokens, states)),
            Fitted::Logs(logs) => {
                let of_token = |token: usize| -> f64 {
                    let record = tokens.record[token] as usize;
                    let kernel = tokens.layout.kernel_of(record);
                    let logs = logs.of(record, kernel);
                    let own = kernel.first_state.iter().zip(&states[tokens.states(token)]);
                    own.map(|(first, &state)| logs[first + state as usize]).sum()
                };
                (0..tokens.len()).map(of_token).sum()
            }
        }
    }
}
