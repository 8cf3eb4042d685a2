//! Collapsed Gibbs sampling: every token's hidden values are drawn anew, given those of all others, tables integrated out.
//!
//! The chain's state is the hidden values of all tokens. What it needs to draw one of them are the counts of table cells and
//! rows, which change by one when a token comes or goes. All unseen nodes of a token are drawn together.
//!
//! - `tokens`: what all chains share; `chain`: the state of one;
//! - `weigh`: a token of any model; `single`: models with one hidden node, vectorised over its values;
//! - `counts`: the counts in memory; `joint`: ln of the joint probability after each sweep.

mod chain;
mod counts;
mod joint;
#[cfg(test)]
mod reference;
mod single;
mod tokens;
mod weigh;

use crate::control::Control;
use crate::engine::Problem;
use crate::engine::replicates::{Stage, Team, Turn, Watch, replicates};
use crate::error::{Error, Result};
use crate::simd::Isa;
use crate::warning::Warning;
use crate::{Purpose, Seed};
use chain::Chain;
use joint::Joint;
use serde::{Deserialize, Serialize};
use single::Single;
use tokens::Tokens;

/// Where a chain begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// Every token is placed as if it were the only one. Chains begin far apart, so that agreement at the end means something.
    #[default]
    Scattered,
    /// Tokens are placed one after another, each given those before it: nearer to where the chain will be, and nearer to one
    /// of several places where it may stay.
    InOrder,
}

/// The engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Gibbs {
    /// Independent chains.
    pub chains: u64,
    /// Sweeps of each chain: in one, every token is drawn anew.
    pub sweeps: u64,
    /// Where chains begin.
    pub start: Start,
    /// Instructions to use; all give the same bytes.
    pub isa: Isa,
    /// Threads, over chains; any number gives the same bytes.
    pub threads: usize,
}

impl Default for Gibbs {
    fn default() -> Self {
        Gibbs { chains: 1, sweeps: 1000, start: Start::Scattered, isa: Isa::detect(), threads: 1 }
    }
}

/// What one chain did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainResult {
    /// ln p(sequence, hidden values) after each sweep.
    pub ln_joint: Vec<f64>,
    /// Its part for each table in the last state.
    pub ln_joint_by_table: Vec<f64>,
}

/// All chains.
#[derive(Debug, Clone, PartialEq)]
pub struct GibbsResult {
    /// The chains that were finished.
    pub chains: Vec<ChainResult>,
    /// Tokens that each sweep drew anew: those that have hidden values.
    pub n_tokens: u64,
    /// What a user should know.
    pub warnings: Vec<Warning>,
}

/// The state of a chain under way.
#[derive(Serialize, Deserialize)]
struct Kept {
    ln_joint: Vec<f64>,
    states: Vec<u32>,
}

impl Gibbs {
    /// Runs all chains.
    ///
    /// # Errors
    /// Data that cannot occur, cells that are unknown, too many tokens, or a stop before the first chain was finished.
    pub fn run(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<GibbsResult> {
        problem.check_whole("gibbs")?;
        if !problem.counts.unknown.is_empty() {
            let message =
                "with unknown cells there is no one number of tokens to draw; use --method smc for the totals";
            return Err(Error::Setting(message.into()));
        }
        let layout = problem.layout()?;
        let tokens = Tokens::new(layout)?;
        let job = Job {
            gibbs: self,
            problem,
            single: Single::new(&tokens),
            joint: Joint::new(problem, &tokens),
            tokens: &tokens,
            seed,
        };
        let stage = Stage::Main {
            name: "gibbs",
            fingerprint: layout.fingerprint(&format!("gibbs {} {:?}", self.sweeps, self.start), seed),
        };
        let team = Team { n_threads: self.threads, is_one_by_one: false };
        let done = replicates(self.chains, stage, team, control, |turn, watch| job.chain(turn, watch))?;
        let warnings = done.warnings(self.chains);
        Ok(GibbsResult { chains: done.finished, n_tokens: tokens.len() as u64, warnings })
    }
}

struct Job<'j, 'a> {
    gibbs: &'j Gibbs,
    problem: &'j Problem<'a>,
    tokens: &'j Tokens<'j>,
    single: Option<Single>,
    joint: Joint,
    seed: Seed,
}

impl Job<'_, '_> {
    fn chain(&self, turn: Turn, watch: &Watch<'_>) -> Result<ChainResult> {
        let stream = |sweep: u64| self.seed.stream(Purpose::Gibbs, turn.replicate, 0, sweep);
        let (single, isa) = (self.single.as_ref(), self.gibbs.isa);
        let kept = watch.saved().filter(|kept: &Kept| Chain::fits(self.tokens, &kept.states));
        let look = || watch.tick(0.0);
        let (mut chain, mut ln_joint) = match kept {
            Some(Kept { ln_joint, states }) => (Chain::with_states(self.tokens, single, isa, states), ln_joint),
            None => {
                let start = match self.gibbs.start {
                    Start::Scattered => Chain::scattered,
                    Start::InOrder => Chain::start,
                };
                (start(self.tokens, single, isa, &mut stream(0), &look)?, Vec::new())
            }
        };
        for sweep in ln_joint.len() as u64..self.gibbs.sweeps {
            let share = sweep as f64 / self.gibbs.sweeps as f64;
            let keep = |ln_joint: &[f64], states: Vec<u32>| watch.keep(&Kept { ln_joint: ln_joint.to_vec(), states });
            if watch.is_asked() {
                keep(&ln_joint, chain.states().to_vec());
            }
            // A sweep that is stopped in the middle is made again.
            let before = watch.is_kept().then(|| chain.states().to_vec());
            if let Err(stop) = chain.sweep(&mut stream(sweep + 1), &|| watch.tick(share)) {
                before.into_iter().for_each(|states| keep(&ln_joint, states));
                return Err(stop);
            }
            ln_joint.push(self.joint.by_table(chain.counts()).iter().sum());
        }
        Ok(ChainResult { ln_joint_by_table: chain.ln_joint_by_table(self.problem), ln_joint })
    }
}
