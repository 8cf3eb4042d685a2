//! Adding up the parts of the evidence.

use crate::counts::Counts;
use crate::engine::Problem;
use crate::error::{Error, Result};
use crate::graph::NodeIndex;
use crate::math::{Double, LnProduct, Risings, ln_factorial};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// The evidence of one model, in natural logs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// ln p(data | model): the sum of the three parts, and the paper's L_X.
    pub log_marginal: f64,
    /// ln Pr(there are this many tokens).
    pub log_p_total: f64,
    /// ln of the number of orders in which the distinct records can arrive.
    pub log_arrangements: f64,
    /// ln p(the records in one given order), unseen values summed out: the scale of BDeu scores.
    pub log_p_sequence: f64,
}

impl Evidence {
    /// What is to be added to ln p(sequence) for ln p(data).
    pub(crate) fn beside_sequence(&self) -> f64 {
        self.log_p_total + self.log_arrangements
    }
}

/// ln T! less the sum of ln n! over distinct records.
pub fn ln_arrangements(counts: &Counts) -> Double {
    if !counts.unit.is_token() {
        let total = counts.unit.exact_tokens(counts.n_tokens);
        return Double::ln_rising(1.0, 0.0, total) - ln_factorials(counts);
    }
    ln_factorial(counts.n_tokens) - ln_factorials(counts)
}

/// The sum of ln n! over distinct records.
pub(crate) fn ln_factorials(counts: &Counts) -> Double {
    if !counts.unit.is_token() {
        let all = counts.blocks.iter().flat_map(|block| block.counts.iter());
        let ln = |count: u64| Double::ln_rising(1.0, 0.0, counts.unit.exact_tokens(count));
        return all.map(ln).fold(Double::ZERO, |sum, ln| sum + ln);
    }
    // Most counts are small ones, of which there may be very many: these are counted.
    let mut n_records = [0u64; 1024];
    let mut factorials = Risings::default();
    for n in counts.blocks.iter().flat_map(|block| block.counts.iter()) {
        match n_records.get_mut(n as usize) {
            Some(n_records) => *n_records += 1,
            None => factorials.push(1.0, 0.0, n),
        }
    }
    let small = n_records.iter().enumerate().skip(2).filter(|(_, n_records)| **n_records > 0);
    let small = small.map(|(n, &n_records)| Double::from(n_records) * ln_factorial(n as u64));
    small.fold(factorials.product().ln(), |sum, ln| sum + ln)
}

/// Adds the total and the arrangements to ln p(sequence). Sums are kept with 32 digits, since the parts may be 1e13 and
/// cancel.
///
/// # Errors
/// When the Gamma rate is neither given nor has a default.
pub fn evidence(problem: &Problem<'_>, ln_p_sequence: Double) -> Result<Evidence> {
    let counts = problem.counts;
    let total = problem.prior.total_of(Some(counts.total()))?;
    let ln_p_total = if counts.unit.is_token() {
        total.ln_p_total(counts.n_tokens)
    } else {
        total.ln_p_total_of(counts.unit.exact_tokens(counts.n_tokens))
    };
    Ok(add_up(ln_p_total, ln_arrangements(problem.counts), ln_p_sequence))
}

/// Adds the three parts up.
pub(crate) fn add_up(ln_p_total: Double, ln_arrangements: Double, ln_p_sequence: Double) -> Evidence {
    let log_marginal = ln_p_total + ln_arrangements + ln_p_sequence;
    Evidence {
        log_marginal: log_marginal.value(),
        log_p_total: ln_p_total.value(),
        log_arrangements: ln_arrangements.value(),
        log_p_sequence: ln_p_sequence.value(),
    }
}

/// ln of the probability of the given root nodes' values alone: what `log_p_sequence_given` leaves out. For an LDA model
/// given its documents, `log_p_sequence` less this is what topic-model tools call ln p(words | documents).
///
/// # Errors
/// When a node is no root, is not seen in every record, or shares its table with another node.
pub fn ln_p_given(problem: &Problem<'_>, given: &[NodeIndex]) -> Result<Double> {
    if !given.is_empty() {
        let message = "--given: it needs whole counts, and some are fractions; scale or round them first";
        if !problem.counts.unit.is_token() {
            return Err(Error::Setting(message.into()));
        }
    }
    let seen_everywhere = problem.counts.seen_everywhere();
    let mut product = LnProduct::new();
    for &node_ix in given {
        let node = problem.model.node(node_ix);
        let refuse = |why: &str| Err(Error::Setting(format!("--given {}: the node {why}", node.name)));
        if !node.parents.is_empty() {
            return refuse("has parents; only root nodes can be given");
        }
        if !seen_everywhere[node_ix.ix()] {
            return refuse("is not seen in every record, so it cannot be given");
        }
        if problem.model.tables()[node.table.ix()].members.len() > 1 {
            return refuse("shares its table with another node, so it cannot be given");
        }
        let table = problem.prior.table(node.table);
        let mut counts: HashMap<u32, u64> = HashMap::new();
        for block in &problem.counts.blocks {
            let at = block.seen.iter().position(|&seen| seen == node_ix.0).expect("seen everywhere");
            for (&value, count) in block.values[at].iter().zip(block.counts.iter()) {
                *counts.entry(value).or_insert(0) += count;
            }
        }
        let mut values: Vec<(u32, u64)> = counts.into_iter().collect();
        values.sort_unstable();
        for (value, count) in values {
            let pseudo = table.cell(&[], value);
            product.multiply_rising(pseudo.value, pseudo.ln_if_tiny, count);
        }
        let row = table.row(&[]);
        product.divide_rising(row.value, row.ln_if_tiny, problem.counts.n_tokens);
    }
    Ok(product.ln())
}
