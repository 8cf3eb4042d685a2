//! Hidden values that the data were simulated with: a draw from the posterior that nobody has to doubt.

use crate::counts::{Counts, MISSING};
use crate::engine::Problem;
use crate::engine::gibbs::Tokens;
use crate::engine::mixer::Mixer;
use crate::error::{Error, Result};
use hashbrown::HashMap;
use std::sync::Arc;

/// The values of all nodes in all tokens.
///
/// Hidden and seen values that were drawn together from the model and its prior have this property: given the seen ones, the hidden ones
/// are a draw from the posterior.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Values of all nodes, and how many tokens have them.
    tokens: Arc<Vec<(Vec<u32>, u64)>>,
}

impl Truth {
    /// From data that show every node of the model.
    ///
    /// # Errors
    /// When a value is missing, or the count of a cell is unknown.
    pub fn of(counts: &Counts) -> Result<Self> {
        let n_nodes = counts.n_nodes();
        if !counts.unknown.is_empty() || counts.blocks.iter().any(|block| block.seen.len() < n_nodes) {
            return Err(Error::Setting("hidden values: every node must have a value in every token".into()));
        }
        let mut tokens = Vec::with_capacity(counts.n_records());
        for block in &counts.blocks {
            for (record, count) in block.counts.iter().enumerate() {
                let mut values = vec![MISSING; n_nodes];
                block.read(record, &mut values);
                tokens.push((values, count));
            }
        }
        Ok(Truth { tokens: Arc::new(tokens) })
    }

    /// Tells values apart, for checkpoints.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut mix = Mixer::default();
        for (values, count) in &*self.tokens {
            values.iter().for_each(|&value| mix.word(value.into()));
            mix.word(*count);
        }
        mix.0
    }

    /// The states of all tokens of a problem.
    ///
    /// # Errors
    /// When these are not its tokens, or records show different nodes: then nobody knows which token shows what.
    pub(super) fn states(&self, problem: &Problem<'_>, tokens: &Tokens<'_>) -> Result<Vec<u32>> {
        let other = || {
            Error::Setting(
                "hidden values: they are not of these data; give those that the data were simulated with".into(),
            )
        };
        let [block] = &problem.counts.blocks[..] else {
            return Err(Error::Setting("hidden values: every record has to show the same nodes".into()));
        };
        let is_seen = |node: &usize| block.seen.contains(&(*node as u32));
        let mut by_shown: HashMap<Vec<u32>, Vec<(&[u32], u64)>> = HashMap::new();
        for (values, count) in self.tokens.iter().filter(|(_, count)| *count > 0) {
            let nodes = 0..problem.counts.n_nodes();
            if values.len() != nodes.len() {
                return Err(other());
            }
            let shown = nodes.map(|node| if is_seen(&node) { values[node] } else { MISSING }).collect();
            by_shown.entry(shown).or_default().push((values, *count));
        }
        let mut states = vec![0; tokens.n_states];
        let mut shown = vec![MISSING; problem.counts.n_nodes()];
        for token in 0..tokens.len() {
            let record = tokens.layout.records.source[tokens.record[token] as usize].1;
            shown.fill(MISSING);
            block.read(record as usize, &mut shown);
            let left = by_shown.get_mut(&shown).and_then(|all| all.last_mut()).ok_or_else(other)?;
            let (_, kernel, _) = tokens.kernel(token);
            for (slot, bucket) in tokens.states(token).zip(&kernel.buckets) {
                states[slot] = bucket.nodes.iter().fold(0, |state, (node, size)| state * size + left.0[node.ix()]);
            }
            left.1 -= 1;
            if left.1 == 0 {
                by_shown.get_mut(&shown).expect("it was found").pop();
            }
        }
        if !tokens.fit(&states) || by_shown.values().any(|left| !left.is_empty()) {
            return Err(other());
        }
        Ok(states)
    }
}
