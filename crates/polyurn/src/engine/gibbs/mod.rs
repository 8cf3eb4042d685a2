//! Collapsed Gibbs sampling: every token's hidden values are drawn anew, given those of all others, tables integrated out.
//!
//! The chain's state is the hidden values of all tokens. What it needs to draw one of them are the counts of table cells and
//! rows, which change by one when a token comes or goes. All unseen nodes of a token are drawn together.
//!
//! - `tokens`: what all chains share; `chain`: the state of one;
//! - `cloud`: moves of all tokens at once, for small data;
//! - `weigh`: a token of any model; `single`: models with one hidden node, vectorised over its values;
//! - `counts`: the counts in memory; `joint`: ln of the joint probability after each sweep;
//! - `tally`, `posterior`: what kept states say; `mixing`: whether chains agree.

mod chain;
mod cloud;
mod counts;
#[cfg(test)]
mod geweke;
mod joint;
mod mixing;
mod posterior;
#[cfg(test)]
pub(super) mod reference;
mod rows;
mod single;
mod tally;
mod tokens;
mod weigh;

pub(super) use rows::{Row, Rows, pick};
pub(super) use tokens::{EIGHT, Tokens};
pub(super) use weigh::{Lone, Tilt, Weigher, draw_down};

use crate::control::Control;
use crate::engine::Problem;
use crate::engine::replicates::{Replicates, Stage, Team, Turn, Watch, replicates};
use crate::error::{Error, Result};
use crate::math::draw::open_unit;
use crate::simd::Isa;
use crate::warning::Warning;
use crate::{Purpose, Seed};
use chain::Chain;
use cloud::Cloud;
use joint::Joint;
pub use posterior::{GibbsPosterior, Statistic, StatisticKind};
use serde::{Deserialize, Serialize};
use single::Single;
use tally::{Tally, Watched};

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

/// What a sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Moves {
    /// Every token is drawn anew, given all others.
    #[default]
    Tokens,
    /// All tokens are placed anew by so many particles, one of which follows the present state (conditional sequential Monte
    /// Carlo, particle Gibbs); then every token is drawn anew.
    Conditional(usize),
    /// All tokens are placed anew by so many particles that know nothing of the present state, and the new state is taken or not
    /// (particle independent Metropolis-Hastings). The chain starts with such a state.
    Independent(usize),
}

/// The engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Gibbs {
    /// Independent chains.
    pub chains: u64,
    /// Sweeps of each chain: in one, every token is drawn anew.
    pub sweeps: u64,
    /// Sweeps before the first state that may be kept; `None` for half of them.
    pub warm_up: Option<u64>,
    /// Sweeps from one kept state to the next; `None` for ten, or fewer where few would be kept.
    pub thin: Option<u64>,
    /// Where chains begin.
    pub start: Start,
    /// What a sweep is.
    pub moves: Moves,
    /// Instructions to use; all give the same bytes.
    pub isa: Isa,
    /// Threads, over chains; any number gives the same bytes.
    pub threads: usize,
}

impl Default for Gibbs {
    fn default() -> Self {
        Gibbs {
            chains: 1,
            sweeps: 1000,
            warm_up: None,
            thin: None,
            start: Start::Scattered,
            moves: Moves::Tokens,
            isa: Isa::detect(),
            threads: 1,
        }
    }
}

/// What one chain did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainResult {
    /// ln p(sequence, hidden values) after each sweep.
    pub ln_joint: Vec<f64>,
    /// Its part for each table in the last state.
    pub ln_joint_by_table: Vec<f64>,
    /// Independent moves that were taken.
    pub n_taken: u64,
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
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    ln_joint: Vec<f64>,
    states: Vec<u32>,
    /// The estimate of the cloud that an independent move came from, and how many were taken.
    ln_estimate: f64,
    n_taken: u64,
    tally: Tally,
}

impl Gibbs {
    /// Runs all chains.
    ///
    /// # Errors
    /// Data that cannot occur, cells that are unknown, too many tokens, or a stop before the first chain was finished.
    pub fn run(&self, problem: &Problem<'_>, seed: Seed, control: &mut Control<'_>) -> Result<GibbsResult> {
        let tokens = tokens(problem)?;
        let done = Job::new(self, problem, &tokens, None, 0, seed).all("gibbs", control)?;
        let warnings = done.warnings(self.chains);
        let chains = done.finished.into_iter().map(|(result, _)| result).collect();
        Ok(GibbsResult { chains, n_tokens: tokens.len() as u64, warnings })
    }

    /// The posterior of tables and hidden values, and some of the kept states.
    ///
    /// When the time is up, chains answer with the sweeps that are done.
    ///
    /// # Errors
    /// As for [`Gibbs::run`]; settings that leave no state to keep, or fewer than the draws that are asked for.
    pub fn posterior(
        &self,
        problem: &Problem<'_>,
        n_draws: usize,
        seed: Seed,
        control: &mut Control<'_>,
    ) -> Result<GibbsPosterior> {
        let n_kept = self.n_kept();
        if n_kept == 0 {
            return Err(Error::Setting(format!(
                "{} sweeps with a warm-up of {} and every {}th kept leave no state to answer with; give more sweeps",
                self.sweeps,
                self.warm_up(),
                self.thin()
            )));
        }
        if n_draws as u64 > n_kept * self.chains {
            return Err(Error::Setting(format!(
                "{n_draws} draws: {} keep {} states in all; ask for fewer, or give more sweeps or less thinning",
                if self.chains == 1 { "one chain would".to_owned() } else { format!("{} chains would", self.chains) },
                n_kept * self.chains
            )));
        }
        let tokens = tokens(problem)?;
        let watched = Watched::new(problem, &tokens);
        let job = Job::new(self, problem, &tokens, Some(&watched), (n_draws as u64).div_ceil(self.chains), seed);
        let done = job.all("gibbs posterior", control)?;
        let mut warnings = done.warnings(self.chains);
        let n_done = done.finished.iter().map(|(result, _)| result.ln_joint.len() as u64).min().unwrap_or(0);
        if n_done < self.sweeps {
            let is_warm_up = n_done < self.warm_up() + self.thin();
            warnings.push(Warning::SweepsCut { done: n_done, asked: self.sweeps, is_warm_up });
        }
        Ok(GibbsPosterior::combine(&watched, done.finished, n_draws, tokens.len() as u64, warnings))
    }

    /// Sweeps before the first state that may be kept.
    pub fn warm_up(&self) -> u64 {
        self.warm_up.unwrap_or(self.sweeps / 2)
    }

    /// Sweeps from one kept state to the next: ten, or fewer where that would leave less than twenty states. Looking at a state
    /// costs about half a sweep, and neighbours say much the same.
    pub fn thin(&self) -> u64 {
        self.thin.unwrap_or((self.sweeps.saturating_sub(self.warm_up()) / 20).clamp(1, 10)).max(1)
    }

    /// States that each chain keeps.
    pub fn n_kept(&self) -> u64 {
        self.sweeps.saturating_sub(self.warm_up()) / self.thin()
    }

    /// The number of a kept state, from 1 on, if the one after so many sweeps is kept.
    fn number_kept(&self, n_sweeps: u64) -> Option<u64> {
        let since = n_sweeps.checked_sub(self.warm_up()).filter(|&since| since > 0)?;
        since.is_multiple_of(self.thin()).then_some(since / self.thin())
    }
}

/// The tokens of a problem that chains can go through.
fn tokens<'p>(problem: &'p Problem<'_>) -> Result<Tokens<'p>> {
    problem.check_whole("gibbs")?;
    if !problem.counts.unknown.is_empty() {
        let message = "with unknown cells there is no one number of tokens to draw; use --method smc for the totals";
        return Err(Error::Setting(message.into()));
    }
    Tokens::new(problem.layout()?)
}

struct Job<'j, 'a> {
    gibbs: &'j Gibbs,
    problem: &'j Problem<'a>,
    tokens: &'j Tokens<'j>,
    single: Option<Single>,
    joint: Joint,
    /// What is looked at in kept states, and how many of them each chain keeps whole.
    watched: Option<&'j Watched<'j, 'a>>,
    n_draws: u64,
    seed: Seed,
}

impl<'j, 'a> Job<'j, 'a> {
    fn new(
        gibbs: &'j Gibbs,
        problem: &'j Problem<'a>,
        tokens: &'j Tokens<'j>,
        watched: Option<&'j Watched<'j, 'a>>,
        n_draws: u64,
        seed: Seed,
    ) -> Self {
        let (single, joint) = (Single::new(tokens), Joint::new(problem, tokens));
        Job { gibbs, problem, tokens, single, joint, watched, n_draws, seed }
    }

    fn all(&self, what: &str, control: &mut Control<'_>) -> Result<Replicates<(ChainResult, Tally)>> {
        let Gibbs { chains, sweeps, start, moves, .. } = self.gibbs;
        let kept = (self.gibbs.warm_up(), self.gibbs.thin(), self.n_draws);
        let settings = format!("{what} {sweeps} {start:?} {moves:?} {kept:?}");
        let fingerprint = self.tokens.layout.fingerprint(&settings, self.seed);
        let stage = Stage::alone("gibbs", fingerprint);
        let team = Team { n_threads: self.gibbs.threads, is_one_by_one: false };
        replicates(*chains, stage, team, control, |turn, watch| self.chain(turn, watch))
    }

    fn chain(&self, turn: Turn, watch: &Watch<'_>) -> Result<(ChainResult, Tally)> {
        let stream = |sweep: u64| self.seed.stream(Purpose::Gibbs, turn.replicate, 0, sweep);
        let (single, isa) = (self.single.as_ref(), self.gibbs.isa);
        let fits =
            |kept: &Kept| self.tokens.fit(&kept.states) && self.watched.is_none_or(|watched| kept.tally.fits(watched));
        let look = || watch.tick(0.0);
        let mut cloud = match self.gibbs.moves {
            Moves::Tokens => None,
            Moves::Conditional(n) | Moves::Independent(n) => Some(Cloud::new(self.tokens, n)),
        };
        let is_independent = matches!(self.gibbs.moves, Moves::Independent(_));
        let (mut ln_estimate, mut n_taken) = (0.0, 0);
        let (mut chain, mut ln_joint, mut tally) = match watch.saved().filter(fits) {
            Some(Kept { ln_joint, states, ln_estimate: saved_estimate, n_taken: saved_taken, tally }) => {
                (ln_estimate, n_taken) = (saved_estimate, saved_taken);
                (Chain::with_states(self.tokens, single, isa, states), ln_joint, tally)
            }
            None => {
                let chain = match (self.gibbs.start, &mut cloud) {
                    (_, Some(cloud)) if is_independent => {
                        let mut states = Vec::new();
                        ln_estimate = cloud.place(None, &mut states, &mut stream(0), &look)?;
                        Chain::with_states(self.tokens, single, isa, states)
                    }
                    (Start::Scattered, _) => Chain::scattered(self.tokens, single, isa, &mut stream(0), &look)?,
                    (Start::InOrder, _) => Chain::start(self.tokens, single, isa, &mut stream(0), &look)?,
                };
                (chain, Vec::new(), Tally::default())
            }
        };
        for sweep in ln_joint.len() as u64..self.gibbs.sweeps {
            let share = sweep as f64 / self.gibbs.sweeps as f64;
            let keep = |ln_joint: &[f64], states: Vec<u32>, tally: &Tally, (ln_estimate, n_taken): (f64, u64)| {
                watch.keep(&Kept { ln_joint: ln_joint.to_vec(), states, ln_estimate, n_taken, tally: tally.clone() });
            };
            if watch.is_asked() {
                keep(&ln_joint, chain.states().to_vec(), &tally, (ln_estimate, n_taken));
            }
            // A sweep that is stopped in the middle is made again.
            let before = watch.is_kept().then(|| (chain.states().to_vec(), (ln_estimate, n_taken)));
            let mut rng = stream(sweep + 1);
            let look = || watch.tick(share);
            let done = match &mut cloud {
                None => chain.sweep(&mut rng, &look),
                Some(cloud) => {
                    let mut states = Vec::new();
                    let kept = (!is_independent).then(|| chain.states().to_vec());
                    cloud.place(kept.as_deref(), &mut states, &mut rng, &look).and_then(|ln_new| {
                        let is_taken = !is_independent || open_unit(&mut rng).ln() <= ln_new - ln_estimate;
                        if is_taken {
                            (ln_estimate, n_taken) = (ln_new, n_taken + 1);
                            chain = Chain::with_states(self.tokens, single, isa, states);
                        }
                        // The estimate that goes with a state would not fit it after a sweep.
                        if is_independent { Ok(()) } else { chain.sweep(&mut rng, &look) }
                    })
                }
            };
            if let Err(stop) = done {
                before.into_iter().for_each(|(states, estimate)| keep(&ln_joint, states, &tally, estimate));
                if self.watched.is_some() && watch.is_time_up() && !ln_joint.is_empty() {
                    break;
                }
                return Err(stop);
            }
            ln_joint.push(self.joint.by_table(chain.counts()).iter().sum());
            if let (Some(watched), Some(number)) = (self.watched, self.gibbs.number_kept(sweep + 1)) {
                tally.add(watched, &chain, turn.replicate as usize, ln_joint[ln_joint.len() - 1], self.is_draw(number));
            }
        }
        if let (Some(watched), true) = (self.watched, tally.n == 0) {
            // Stopped while warming up: what there is.
            let now = self.joint.by_table(chain.counts()).iter().sum();
            tally.add(watched, &chain, turn.replicate as usize, now, self.n_draws > 0);
        }
        let by_table = chain.ln_joint_by_table(self.problem);
        Ok((ChainResult { ln_joint_by_table: by_table, ln_joint, n_taken }, tally))
    }

    /// Whether a kept state is one of those that are kept whole: they are spread evenly.
    fn is_draw(&self, number: u64) -> bool {
        let before =
            |number: u64| u128::from(number) * u128::from(self.n_draws) / u128::from(self.gibbs.n_kept().max(1));
        before(number) > before(number - 1)
    }
}
