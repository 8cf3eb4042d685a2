//! Chains that go ahead: what they see makes the reference, and where they end up the runs back begin.

use super::fitted::Fitted;
use super::labels::steady_names;
use super::walker::{Notes, Setup, Walker};
use crate::engine::replicates::Watch;
use crate::engine::symmetry::LabelClass;
use crate::error::Result;
use crate::{Purpose, Seed};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Chains cool down for this share of their warm-up, from the joint probability to this power: fewer of them stay in a poor mode.
const COOLING_SHARE: f64 = 0.5;
const START_POWER: f64 = 0.5;

/// What a chain saw.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Pilot {
    /// The reference that it suggests.
    pub fitted: Fitted,
    /// Where it ended.
    pub states: Vec<u32>,
    /// Rough ln of the part of the evidence that lies where the chain is, without what all states have in common.
    pub ln_mass: f64,
    /// Seconds that a sweep took.
    pub seconds_per_sweep: f64,
}

impl Pilot {
    /// Whether it can be a pilot of this problem.
    pub fn fits(&self, setup: &Setup<'_>) -> bool {
        matches!(self.fitted, Fitted::Levels(_)) == setup.single.is_some()
            && self.fitted.fits(setup.tokens)
            && setup.tokens.fit(&self.states)
            && self.seconds_per_sweep >= 0.0
    }
}

/// Sweeps of a pilot.
#[derive(Debug, Clone, Copy)]
pub struct Sweeps {
    /// Before anything is noted.
    pub warm_up: u64,
    /// That are noted.
    pub noted: u64,
}

/// The state of a pilot under way.
#[derive(Serialize, Deserialize)]
struct Kept {
    n_done: u64,
    states: Vec<u32>,
    notes: Notes,
    ln_joint: f64,
}

/// Noted sweeps from one look at a chain's labels to the next.
const LOOK_AT_LABELS: u64 = 4;

/// Runs one chain from a start by the urn. Labels of these classes can be exchanged.
///
/// # Errors
/// Data that cannot occur, or a stop.
pub fn pilot(
    setup: &Setup<'_>,
    classes: &[LabelClass],
    sweeps: Sweeps,
    seed: Seed,
    replicate: u64,
    watch: &Watch<'_>,
) -> Result<Pilot> {
    let stream = |block: u64, step: u64| seed.stream(Purpose::Pilot, replicate, block, step);
    let n_sweeps = sweeps.warm_up + sweeps.noted;
    let kept = watch.saved().filter(|kept: &Kept| setup.tokens.fit(&kept.states) && kept.notes.fit(setup));
    let (mut walker, n_done, mut notes, mut ln_joint) = match kept {
        Some(Kept { n_done, states, notes, ln_joint }) => {
            (Walker::with_states(setup, None, states), n_done, notes, ln_joint)
        }
        None => (Walker::by_urn(setup, &mut stream(0, 0), &|| watch.tick(0.0))?, 0, Notes::new(setup), 0.0),
    };
    let cold = setup.at(1.0, None);
    let start = Instant::now();
    for sweep in n_done..n_sweeps {
        let go_on = watch.tick(sweep as f64 / n_sweeps as f64);
        if watch.is_asked() || go_on.is_err() {
            let (states, notes) = (walker.states().to_vec(), notes.clone());
            watch.keep(&Kept { n_done: sweep, states, notes, ln_joint });
        }
        go_on?;
        let is_noted = sweep >= sweeps.warm_up;
        if let Notes::Probabilities(recorded) = &notes
            && sweep > sweeps.warm_up
            && (sweep - sweeps.warm_up).is_multiple_of(LOOK_AT_LABELS)
            && let Some(states) = steady_names(setup.tokens, classes, &recorded.sums, walker.states())
        {
            walker = Walker::with_states(setup, None, states);
        }
        let noted = is_noted.then_some(&mut notes);
        let sign = watch.stop_sign();
        let cooling = sweep as f64 / (COOLING_SHARE * sweeps.warm_up as f64);
        let hot = (cooling < 1.0).then(|| setup.at(START_POWER + (1.0 - START_POWER) * cooling, None));
        walker.sweep(setup, hot.as_ref().unwrap_or(&cold), None, noted, &mut stream(1, sweep), &|| sign.look())?;
        if is_noted {
            ln_joint += walker.ln_joint(setup) / sweeps.noted as f64;
        }
    }
    let seconds_per_sweep = start.elapsed().as_secs_f64() / (n_sweeps - n_done).max(1) as f64;
    let fitted = notes.fitted(setup.tokens);
    let ln_ratio = ln_joint - notes.mean_ln_reference(setup.tokens, &fitted, sweeps.noted);
    let ln_mass = (ln_ratio + ln_ratio_of_draws(setup, &fitted, &mut stream(2, 0))) / 2.0;
    Ok(Pilot { fitted, states: walker.states().to_vec(), ln_mass, seconds_per_sweep })
}

/// Draws from a reference that show how far it is from the model.
const DRAWS: usize = 4;

/// The mean of ln p - ln q over draws from the reference q.
///
/// The same mean over draws of the posterior is what a chain sees. Integrated along the path from q to p the mean is ln of the evidence
/// near the chain; half the sum of both ends is the coarsest estimate of that. The joint probability alone would not do: of two
/// modes the one with the higher peak may be the one with less behind it.
fn ln_ratio_of_draws(setup: &Setup<'_>, fitted: &Fitted, rng: &mut impl Rng) -> f64 {
    let ratio = |_| {
        let states = fitted.draw(setup.tokens, rng);
        let walker = Walker::with_states(setup, Some(fitted), states);
        walker.ln_joint(setup) - walker.ln_reference(setup, fitted)
    };
    (0..DRAWS).map(ratio).sum::<f64>() / DRAWS as f64
}

/// What draws from the posterior are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'s> {
    /// Where chains start.
    pub starts: &'s [&'s [u32]],
    /// Draws in all.
    pub n_draws: usize,
    /// Sweeps from one to the next.
    pub apart: u64,
}

/// A chain on its way to draws from the posterior.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Drawing {
    pub n_done: u64,
    pub states: Vec<u32>,
    pub drawn: Vec<Vec<u32>>,
}

impl Drawing {
    /// From the first of several states.
    pub fn from(states: &[u32]) -> Self {
        Drawing { n_done: 0, states: states.to_vec(), drawn: Vec::new() }
    }

    /// Goes on from each of these states in turn and takes the states every few sweeps, as many from each as from the others. `look` is asked before each
    /// sweep, with the share that is done.
    ///
    /// # Errors
    /// What `look` says, or a stop.
    pub fn go(
        mut self,
        setup: &Setup<'_>,
        Wanted { starts, n_draws, apart }: Wanted<'_>,
        seed: Seed,
        replicate: u64,
        watch: &Watch<'_>,
        look: &dyn Fn(f64, &Drawing) -> Result<()>,
    ) -> Result<Vec<Vec<u32>>> {
        let mut walker = Walker::with_states(setup, None, self.states.clone());
        let cold = setup.at(1.0, None);
        let n_sweeps = n_draws as u64 * apart;
        let sign = watch.stop_sign();
        let chain_of = |draw: usize| draw * starts.len() / n_draws;
        while self.n_done < n_sweeps {
            let draw = self.drawn.len();
            if self.n_done.is_multiple_of(apart) && (draw == 0 || chain_of(draw) != chain_of(draw - 1)) {
                walker = Walker::with_states(setup, None, starts[chain_of(draw)].to_vec());
            }
            look(self.n_done as f64 / n_sweeps as f64, &self)?;
            let mut rng = seed.stream(Purpose::Reverse, replicate, u64::MAX - 1, self.n_done);
            walker.sweep(setup, &cold, None, None, &mut rng, &|| sign.look())?;
            self.states.copy_from_slice(walker.states());
            self.n_done += 1;
            if self.n_done.is_multiple_of(apart) {
                self.drawn.push(self.states.clone());
            }
        }
        Ok(self.drawn)
    }

    /// Whether these can be states of this problem.
    pub fn fits(&self, setup: &Setup<'_>, apart: u64) -> bool {
        let all = self.drawn.iter().chain([&self.states]);
        all.into_iter().all(|states| setup.tokens.fit(states)) && self.drawn.len() as u64 == self.n_done / apart
    }
}
