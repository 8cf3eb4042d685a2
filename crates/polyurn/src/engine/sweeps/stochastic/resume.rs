//! Going on where an earlier run was stopped.
//!
//! What is saved are the tables and a digest of the batches that they were learned from. Who goes on hands over the same
//! batches again, from the first one: those that were learned from are passed over, and their digest shows whether they are
//! the same.

use super::local::LocalTokens;
use super::{Counted, Learner};
use crate::counts::Counts;
use crate::engine::mixer::Mixer;
use crate::engine::sweeps::stream_tables::Part;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// All that later steps depend on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    /// What was asked for.
    fingerprint: u64,
    /// The batches so far.
    digest: u64,
    n_steps: u64,
    n_tokens_seen: u64,
    is_first_pass: bool,
    /// Factor and parts of each table that has cells.
    tables: Vec<Option<(f64, Vec<Part>)>>,
    local: Vec<LocalTokens>,
}

impl Learner {
    /// What was learned so far, for [`Learner::go_on_from`].
    pub fn state(&self) -> Vec<u8> {
        let of_table = |counted: &Counted| match counted {
            Counted::Table(table) => Some(table.contents()),
            Counted::Root(_) => None,
        };
        let saved = Saved {
            fingerprint: self.fingerprint(),
            digest: self.digest.0,
            n_steps: self.n_steps,
            n_tokens_seen: self.n_tokens_seen,
            is_first_pass: self.is_first_pass,
            tables: self.tables.iter().map(|(counted, _)| of_table(counted)).collect(),
            local: self.local.iter().map(|(_, tokens)| tokens.clone()).collect(),
        };
        postcard::to_stdvec(&saved).expect("plain data")
    }

    /// Takes up a state, before the first step. Steps then pass over the batches that it was learned from.
    ///
    /// # Errors
    /// When it is damaged or belongs to another model, prior, seed or setting.
    pub fn go_on_from(&mut self, state: &[u8]) -> Result<()> {
        let saved: Saved = postcard::from_bytes(state).map_err(|_| Error::Checkpoint("it is damaged".into()))?;
        let is_ours = saved.fingerprint == self.fingerprint()
            && saved.tables.len() == self.tables.len()
            && saved.local.len() == self.local.len();
        if !is_ours {
            return Err(Error::Checkpoint(
                "it belongs to another model, prior, seed or setting; repeat the command that made it, or give another file"
                    .into(),
            ));
        }
        self.to_pass_over = Some(Box::new(saved)).filter(|saved| saved.n_steps > 0);
        Ok(())
    }

    /// Whether batches are being passed over still.
    pub fn is_behind(&self) -> bool {
        self.to_pass_over.is_some()
    }

    /// Notes a batch, and passes over it if an earlier run has learned from it.
    pub(super) fn passes_over(&mut self, batch: &Counts) -> Result<bool> {
        mix_batch(&mut self.digest, batch);
        let Some(saved) = &self.to_pass_over else { return Ok(false) };
        self.n_steps += 1;
        self.n_tokens_seen += batch.n_tokens;
        if self.n_steps == saved.n_steps {
            if (self.digest.0, self.n_tokens_seen) != (saved.digest, saved.n_tokens_seen) {
                return Err(Error::Checkpoint(
                    "the data are not those that it was learned from; give the same file and --batch, or another checkpoint"
                        .into(),
                ));
            }
            let saved = self.to_pass_over.take().expect("looked at above");
            self.is_first_pass = saved.is_first_pass;
            for ((counted, _), contents) in self.tables.iter_mut().zip(saved.tables) {
                if let (Counted::Table(table), Some((factor, parts))) = (counted, contents) {
                    table.set_contents(factor, parts);
                }
            }
            for ((_, tokens), saved) in self.local.iter_mut().zip(saved.local) {
                *tokens = saved;
            }
        }
        Ok(true)
    }

    /// Model, prior, settings and seed. Threads and instructions do not matter.
    fn fingerprint(&self) -> u64 {
        let mut mix = Mixer::default();
        let settings = &self.settings;
        for number in [settings.n_tokens, settings.decay, settings.delay] {
            mix.word(number.to_bits());
        }
        mix.word(u64::from(settings.local_sweeps) << 32 | u64::from(settings.first_sweeps));
        mix.word(self.seed.0);
        let local: Vec<u32> = self.local.iter().map(|(node, _)| node.0).collect();
        let text = format!("{:?} {:?} {:?} {local:?}", self.model, self.prior, settings.start);
        text.bytes().for_each(|byte| mix.word(u64::from(byte)));
        mix.0
    }
}

fn mix_batch(mix: &mut Mixer, batch: &Counts) {
    for block in &batch.blocks {
        mix.word(block.seen.len() as u64);
        block.seen.iter().for_each(|&node| mix.word(u64::from(node)));
        block.values.iter().flat_map(|values| values.iter()).for_each(|&value| mix.word(u64::from(value)));
        block.counts.iter().for_each(|count| mix.word(count));
    }
    mix.word(batch.n_tokens);
}
