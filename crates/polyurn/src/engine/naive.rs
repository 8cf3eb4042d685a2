//! The baseline that the paper rejects: let the urn run freely and count how often it hits the data.

use super::Problem;
use crate::control::Control;
use crate::counts::MISSING;
use crate::error::{Error, Result};
use crate::evidence::ln_arrangements;
use crate::urn::Urn;
use crate::{Purpose, Seed};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// What free urns came to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hits {
    /// Urns that were run.
    pub n_tries: u64,
    /// Those that ended with exactly the data's counts.
    pub n_hits: u64,
    /// Estimate of ln p(sequence): the share of hits over the number of arrangements.
    pub ln_p_sequence: f64,
    /// Standard error of `ln_p_sequence`, from the binomial; `None` without hits.
    pub std_error: Option<f64>,
}

/// Runs `n_tries` urns of as many tokens as the data have.
///
/// # Errors
/// Data in which different records show different nodes, or with unknown cells: there is no one set to hit;
/// [`Error::Stopped`] when stopped before the first urn was finished.
pub fn naive(problem: &Problem<'_>, n_tries: u64, seed: Seed, control: &mut Control<'_>) -> Result<Hits> {
    problem.check_whole("naive")?;
    let counts = problem.counts;
    if counts.blocks.len() > 1 || !counts.unknown.is_empty() {
        return Err(Error::Setting(
            "naive: every record must show the same nodes and no cell may be unknown; use smc for such data".into(),
        ));
    }
    let seen: Vec<usize> =
        counts.blocks.first().map_or_else(Vec::new, |block| block.seen.iter().map(|&node| node as usize).collect());
    let mut wanted: HashMap<Vec<u32>, u64> = HashMap::new();
    let mut record = vec![MISSING; counts.n_nodes()];
    for block in &counts.blocks {
        for record_ix in 0..block.n_records() {
            block.read(record_ix, &mut record);
            wanted.insert(seen.iter().map(|&node| record[node]).collect(), block.counts.at(record_ix));
        }
    }
    let (mut n_done, mut n_hits) = (0, 0);
    for try_ix in 0..n_tries {
        if try_ix % 64 == 0
            && let Err(error) = control.tick("naive", try_ix as f64 / n_tries as f64)
        {
            let is_deadline = matches!(error, Error::Stopped(crate::Stop::Deadline));
            if !is_deadline || n_done == 0 {
                return Err(error);
            }
            break;
        }
        let mut rng = seed.stream(Purpose::Urn, try_ix, 0, 0);
        let mut urn = Urn::new(problem.model, problem.prior);
        let mut left = wanted.clone();
        // A token in a full cell can never be taken back: the rest need not be drawn.
        let is_hit = (0..counts.n_tokens).all(|_| {
            let token = urn.draw(&mut rng);
            let cell: Vec<u32> = seen.iter().map(|&node| token[node]).collect();
            match left.get_mut(&cell) {
                Some(n) if *n > 0 => {
                    *n -= 1;
                    true
                }
                _ => false,
            }
        });
        n_done += 1;
        n_hits += u64::from(is_hit);
    }
    let share = n_hits as f64 / n_done as f64;
    Ok(Hits {
        n_tries: n_done,
        n_hits,
        ln_p_sequence: share.ln() - ln_arrangements(counts).value(),
        std_error: (n_hits > 0).then(|| ((1.0 - share) / n_hits as f64).sqrt()),
    })
}
