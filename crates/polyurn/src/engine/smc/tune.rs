//! Settings from a problem: what was best at equal time in our trials (docs/smc.md).

use super::order::Order;
use super::resample::{Scheme, When};
use super::run::Path;
use super::schedule::Schedule;
use super::speed::Speed;
use super::{Isa, PilotPlace, Smc};
use crate::Seed;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::engine::lines::Layout;
use crate::engine::lines::Pseudo;
use crate::error::{Error, Result, Stop};
use crate::warning::Warning;
use std::time::{Duration, Instant};

/// What a user asked for; everything else is chosen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// Particles of each run.
    pub particles: Option<usize>,
    /// Independent runs.
    pub runs: Option<u64>,
    /// Gibbs updates of earlier tokens after each new one.
    pub rejuvenation: Option<u32>,
    /// Factor of the pseudo-counts at the start.
    pub heat: Option<f64>,
    /// In place of that factor: the pseudo-count of a typical cell at the start. Needs no pilots.
    pub start_pseudo_count: Option<f64>,
    /// Steps in which they are brought down.
    pub n_cooling: Option<u32>,
    /// Moves of whole groups of tokens per cooling step.
    pub n_reallocations: Option<u32>,
    /// Order of the tokens.
    pub order: Order,
    /// How to resample.
    pub scheme: Scheme,
    /// When to resample.
    pub when: Option<When>,
    /// Seconds of one core that one run is planned for, where there is no time limit.
    pub seconds_per_run: Option<f64>,
    /// Time that the whole job may take.
    pub time_limit: Option<Duration>,
}

impl Wish {
    /// Takes an order as it is written: `auto`, `random`, `given`, or `by:NODE`, whose node is given back for
    /// [`order_by`](crate::score::order_by).
    ///
    /// # Errors
    /// Any other text.
    pub fn take_order(&mut self, text: &str) -> Result<Option<String>> {
        self.order = match text {
            "auto" => Order::Auto,
            "random" => Order::Random,
            "given" => Order::Given,
            _ => match text.strip_prefix("by:") {
                Some(name) => return Ok(Some(name.to_owned())),
                None => {
                    let message = format!("--order {text}: expected auto, random, given or by:NODE");
                    return Err(Error::Setting(message));
                }
            },
        };
        Ok(None)
    }

    /// Checks what was asked for, as far as that needs no problem.
    ///
    /// # Errors
    /// Heat out of its range; cooling without heat.
    pub fn check(&self) -> Result<()> {
        if let Some(heat) = self.heat.filter(|heat| !(1.0..=MOST_HEAT).contains(heat)) {
            return Err(Error::Setting(format!("--heat {heat}: expected a factor from 1 to {MOST_HEAT:e}")));
        }
        let is_cold = self.heat == Some(1.0) || (self.heat.is_none() && self.rejuvenation == Some(0));
        if self.n_cooling.is_some() && is_cold {
            return Err(Error::Setting("--cooling: there is nothing to cool without --heat above 1".into()));
        }
        Ok(())
    }
}

/// Factors beyond this would lose all digits.
const MOST_HEAT: f64 = 1e15;
/// Runs, unless asked otherwise: enough for an error estimate.
const RUNS: u64 = 4;
/// Gibbs updates of every token before and during cooling.
const REJUVENATION: u32 = 20;
/// Moves of whole groups of tokens per cooling step.
const REALLOCATIONS: u32 = 0;
/// Effective sample size, as a share of the particles, below which they are resampled.
const ESS_BELOW: f64 = 0.5;
/// Pseudo-counts of a typical cell at the start among which pilots choose, beside no heat at all.
const START_PSEUDO_COUNTS: [f64; 3] = [1.0 / 16.0, 1.0 / 4.0, 1.0];
/// Factors below this are not worth cooling from.
const LEAST_HEAT: f64 = 1.5;
/// Particles of a pilot.
const PILOT_PARTICLES: usize = 32;
/// Runs of each heat at most: their numbers are kept apart.
const PILOT_RUNS: u64 = 4;
/// Heats are level while their means differ by no more standard errors than this ..
const LEVEL: f64 = 3.0;
/// .. and get more pilots while those are cheap: token updates in all. Where a is tiny and tokens are few, four pilots mistake
/// no heat for the best in one job of twelve, and the answer is then off by more than its error.
const PILOT_UPDATES: u64 = 2_000_000;
/// What pilots do; the first that fits, where there is a time limit.
const PILOT_PLANS: [PilotPlan; 4] = [
    PilotPlan { runs: PILOT_RUNS, rejuvenation: 8, is_short: false },
    PilotPlan { runs: 2, rejuvenation: 8, is_short: false },
    PilotPlan { runs: 2, rejuvenation: 4, is_short: false },
    PilotPlan { runs: 1, rejuvenation: 4, is_short: true },
];
/// Share of a time limit that pilots are planned for, and the share after which they are stopped.
const PILOT_SHARE: f64 = 0.25;
const MOST_PILOT_SHARE: f64 = 0.4;
/// Seconds of one core for one run, unless asked otherwise.
const SECONDS_PER_RUN: f64 = 0.35;
/// Particles, at least and at most.
const PARTICLES: (usize, usize) = (64, 8192);
/// Moves of every token that are kept up while particles can be fewer or runs be cut.
const LEAST_REJUVENATION: u32 = 4;
/// Particles where a time limit allows not even one run of the least number without moves.
const PARTICLES_IN_HASTE: usize = 16;
/// Share of a time limit that is planned for: forecasts are rough.
const SHARE_OF_LIMIT: f64 = 0.6;

/// Settings, complete.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The settings.
    pub smc: Smc,
    /// Tokens placed or placed again to find them, over all particles of all pilots.
    pub pilot_updates: u64,
    /// What to think of them.
    pub warning: Option<Warning>,
}

impl Wish {
    /// Independent runs, asked for or not.
    pub fn n_runs(&self) -> u64 {
        self.runs.unwrap_or(RUNS)
    }

    /// Fills in what was not asked for. Depends on the data, the wish and pilots that are independent of the run, never on
    /// the run itself.
    ///
    /// # Errors
    /// When the problem is too large for particles, or the pilots were stopped.
    pub fn settle(&self, problem: &Problem<'_>, crew: Crew, seed: Seed, control: &mut Control<'_>) -> Result<Settled> {
        let Crew { isa, threads, max_memory } = crew;
        let layout = problem.layout()?;
        if self.n_reallocations.is_some_and(|n| n > 0) && !layout.can_reallocate(1.0) {
            return Err(Error::Setting(
                "--split-merge: this model does not have one hidden node whose values can be shared out anew; leave it out"
                    .into(),
            ));
        }
        let runs = self.n_runs();
        let mut rejuvenation = self.rejuvenation.unwrap_or(REJUVENATION);
        let is_random = layout.records.len() > 0;
        if let Some(particles) = self.particles {
            // Too many are refused before pilots are made.
            let path = Path { rejuvenation, ..Default::default() };
            Smc { particles, runs, path, isa, threads, max_memory }.prepare(problem)?;
        }
        let is_all_given = self.particles.is_some() && self.rejuvenation.is_some() && self.heat.is_some();
        // Time is measured only where there is a limit, so that without one nothing depends on it.
        let end =
            self.time_limit.map(|limit| Instant::now() + control.time_left().map_or(limit, |left| left.min(limit)));
        let time_left = || end.map(|end| end.saturating_duration_since(Instant::now()));
        let mut speed = match time_left() {
            Some(left) if is_random && !is_all_given => Speed::measured(problem, crew, self.particles, seed, left)?,
            _ => Speed::foreseen(layout),
        };
        let start_heat = |start: f64| (start * heat_to_one(layout)).clamp(1.0, LARGEST_HEAT);
        let (heat, pilot_updates) = match self.heat.or(self.start_pseudo_count.map(start_heat)) {
            Some(heat) => (heat, 0),
            None if rejuvenation == 0 || !is_random => (1.0, 0),
            None => self.choose_heat(problem, crew, seed, time_left(), &mut speed, control)?,
        };
        let mut n_cooling = self.n_cooling.unwrap_or(rejuvenation.max(1));
        // For one run, if all are to be finished, and if one is.
        let (seconds, most_seconds) = match time_left() {
            Some(left) => {
                let at_once = (threads as f64).min(runs as f64).max(1.0);
                let seconds = left.as_secs_f64() * SHARE_OF_LIMIT;
                (seconds * at_once / runs as f64, seconds)
            }
            None => (self.seconds_per_run.unwrap_or(SECONDS_PER_RUN), f64::INFINITY),
        };
        let n_passes = |rejuvenation: u32, n_cooling: u32| {
            f64::from(1 + rejuvenation) + if heat == 1.0 { 0.0 } else { f64::from(n_cooling) }
        };
        let can_move_less = |rejuvenation: u32, least: u32| rejuvenation > least && self.rejuvenation.is_none();
        let mut particles = self.particles.unwrap_or_else(|| {
            // Many tokens: fewer moves rather than fewer particles than the least.
            while speed.affordable(seconds, n_passes(rejuvenation, n_cooling)) < PARTICLES.0
                && can_move_less(rejuvenation, LEAST_REJUVENATION)
            {
                rejuvenation = rejuvenation * 3 / 4;
                n_cooling = self.n_cooling.unwrap_or(rejuvenation);
            }
            let n = speed.affordable(seconds, n_passes(rejuvenation, n_cooling)).clamp(PARTICLES.0, PARTICLES.1);
            if n >= 256 { n / 256 * 256 } else { n / 16 * 16 }
        });
        // One run at least is to be finished.
        let is_too_long = |particles: usize, rejuvenation: u32, n_cooling: u32| {
            speed.seconds(particles, n_passes(rejuvenation, n_cooling)) > most_seconds
        };
        while is_too_long(particles, rejuvenation, n_cooling) && can_move_less(rejuvenation, 0) {
            rejuvenation = rejuvenation * 3 / 4;
            n_cooling = self.n_cooling.unwrap_or(rejuvenation.max(1));
        }
        if is_too_long(particles, rejuvenation, n_cooling) && self.particles.is_none() {
            particles = PARTICLES_IN_HASTE;
        }
        // Heat is of no use without moves.
        let heat = if rejuvenation == 0 { self.heat.unwrap_or(1.0) } else { heat };
        let path = Path {
            order: self.order,
            rejuvenation,
            schedule: Schedule::default(),
            start_scale: heat,
            n_cooling: if heat == 1.0 { 0 } else { n_cooling },
            n_reallocations: self.n_reallocations.unwrap_or(if rejuvenation == 0 { 0 } else { REALLOCATIONS }),
            when: self.when.unwrap_or(When::EssBelow(ESS_BELOW)),
            scheme: self.scheme,
        };
        let mut smc = Smc { particles, runs, path, isa, threads, max_memory };
        // No more particles than fit, unless so many were asked for.
        while self.particles.is_none() && smc.particles > PARTICLES_IN_HASTE && smc.prepare(problem).is_err() {
            smc.particles = (smc.particles / 2).max(PARTICLES_IN_HASTE);
        }
        let has_few_moves = is_random && self.rejuvenation.is_none() && rejuvenation < LEAST_REJUVENATION;
        let warning = has_few_moves.then_some(Warning::FewMoves { moves: u64::from(rejuvenation) });
        Ok(Settled { smc, pilot_updates, warning })
    }

    /// The heat whose pilots have the largest mean ln estimate. An estimate of p(sequence) is unbiased, so its ln is too
    /// small on average, the more the wider it scatters; and components that merged under too much heat make it small too.
    ///
    /// With a time limit pilots are fewer if they would take too much of it, and there is no heat if they still would. Gives
    /// the work of the pilots, too, in token updates.
    fn choose_heat(
        &self,
        problem: &Problem<'_>,
        crew: Crew,
        seed: Seed,
        limit: Option<Duration>,
        speed: &mut Speed,
        control: &mut Control<'_>,
    ) -> Result<(f64, u64)> {
        let to_one = heat_to_one(problem.layout()?);
        let heats = START_PSEUDO_COUNTS.iter().map(|start| (start * to_one).min(LARGEST_HEAT));
        let mut heats: Vec<f64> = [1.0].into_iter().chain(heats.filter(|&heat| heat >= LEAST_HEAT)).collect();
        if heats.len() == 1 {
            return Ok((1.0, 0));
        }
        let fits = |plan: &&PilotPlan| match limit {
            Some(limit) => plan.seconds(heats.len(), *speed, crew) <= PILOT_SHARE * limit.as_secs_f64(),
            None => true,
        };
        let Some(plan) = PILOT_PLANS.iter().find(fits) else { return Ok((1.0, 0)) };
        if plan.is_short {
            heats = vec![1.0, heats[heats.len() / 2]];
        }
        let start = Instant::now();
        let end = limit.map(|limit| start + limit.mul_f64(MOST_PILOT_SHARE));
        let mut n_updates = 0;
        let mut trials: Vec<Trial> = heats.iter().map(|&heat| Trial { heat, logs: Vec::new() }).collect();
        'rounds: for round in 0.. {
            let contenders = Trial::contenders(&trials);
            if round > 0 && (contenders.len() < 2 || n_updates > PILOT_UPDATES || limit.is_some()) {
                break;
            }
            for ix in contenders {
                let heat = trials[ix].heat;
                let path = Path {
                    rejuvenation: plan.rejuvenation * if heat == 1.0 { 2 } else { 1 },
                    start_scale: heat,
                    n_cooling: if heat == 1.0 { 0 } else { plan.rejuvenation },
                    order: self.order,
                    ..Default::default()
                };
                let Crew { isa, threads, max_memory } = crew;
                let pilot = Smc { particles: PILOT_PARTICLES, runs: plan.runs, path, isa, threads, max_memory };
                let first = PILOTS + (round * heats.len() + ix) as u64 * PILOT_RUNS;
                let place = PilotPlace { ix, n: heats.len() };
                let prepared = pilot.prepare(problem)?;
                let runs = match control.until(end, |control| prepared.pilot(first, place, seed, control)) {
                    // Out of time for pilots: the best so far.
                    Err(Error::Stopped(Stop::Deadline)) if end.is_some() => break 'rounds,
                    runs => runs?,
                };
                n_updates += runs.iter().map(|run| run.n_updates).sum::<u64>();
                trials[ix].logs.extend(runs.iter().map(|run| run.ln_p_sequence));
            }
        }
        if limit.is_some() && n_updates > 0 {
            // A longer measurement than the probe's, and with all threads at work.
            let seconds = start.elapsed().as_secs_f64() * plan.at_once(crew) * PILOT_PARTICLES as f64;
            speed.slow_down_to(problem.layout()?, PILOT_PARTICLES, seconds / n_updates as f64);
        }
        Ok((trials[Trial::best(&trials)].heat, n_updates))
    }
}

/// A heat, and what its pilots found.
struct Trial {
    heat: f64,
    logs: Vec<f64>,
}

impl Trial {
    fn mean(&self) -> f64 {
        if self.logs.is_empty() { f64::NEG_INFINITY } else { self.logs.iter().sum::<f64>() / self.logs.len() as f64 }
    }

    /// Variance of the mean.
    fn variance(&self) -> f64 {
        let (n, mean) = (self.logs.len() as f64, self.mean());
        self.logs.iter().map(|ln| (ln - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0) / n
    }

    /// The one of largest mean, the first of equals.
    fn best(trials: &[Trial]) -> usize {
        (1..trials.len()).fold(0, |best, ix| if trials[ix].mean() > trials[best].mean() { ix } else { best })
    }

    /// Those that may be the best for all that is known.
    fn contenders(trials: &[Trial]) -> Vec<usize> {
        let best = &trials[Self::best(trials)];
        let is_level = |trial: &Trial| {
            let difference = best.mean() - trial.mean();
            trial.logs.is_empty() || difference.powi(2) <= LEVEL.powi(2) * (best.variance() + trial.variance())
        };
        (0..trials.len()).filter(|&ix| is_level(&trials[ix])).collect()
    }
}

/// What pilots do.
struct PilotPlan {
    /// Runs of each heat.
    runs: u64,
    /// Gibbs updates of every token before and during cooling.
    rejuvenation: u32,
    /// Whether only one heat is tried beside none.
    is_short: bool,
}

impl PilotPlan {
    /// Seconds that pilots take.
    fn seconds(&self, n_heats: usize, speed: Speed, crew: Crew) -> f64 {
        let n_heats = if self.is_short { 2 } else { n_heats };
        let n_passes = f64::from(1 + 2 * self.rejuvenation);
        n_heats as f64 * speed.seconds(PILOT_PARTICLES, n_passes) * self.runs as f64 / self.at_once(crew)
    }

    /// Runs at a time.
    fn at_once(&self, crew: Crew) -> f64 {
        (crew.threads as f64).min(self.runs as f64).max(1.0)
    }
}

/// Runs from this number on are pilots: their random numbers are nobody else's.
const PILOTS: u64 = 1 << 40;
/// Heat beyond this changes nothing.
const LARGEST_HEAT: f64 = 1e12;

/// Who does the work, and in how much room.
#[derive(Debug, Clone, Copy)]
pub struct Crew {
    /// Instructions to use.
    pub isa: Isa,
    /// Threads.
    pub threads: usize,
    /// Bytes that all particles together may take.
    pub max_memory: u64,
}

impl Default for Crew {
    fn default() -> Self {
        Crew { isa: Isa::detect(), threads: 1, max_memory: 4 << 30 }
    }
}

/// The factor that brings a typical cell to a pseudo-count of one.
fn heat_to_one(layout: &Layout) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for counted in layout.counted.iter().filter(|counted| counted.kind == Kind::Cell) {
        let mean = match &counted.pseudo {
            Pseudo::Even(pseudo) => pseudo.ln(),
            Pseudo::PerLine(all) => {
                let positive: Vec<f64> =
                    all.iter().filter(|pseudo| !pseudo.is_zero()).map(|pseudo| pseudo.ln()).collect();
                positive.iter().sum::<f64>() / (positive.len() as f64).max(1.0)
            }
        };
        // Tables with seen values are many cells wide; those of hidden nodes alone matter less.
        if layout.classes[counted.class].has_key() {
            sum += mean;
            n += 1.0;
        }
    }
    if n == 0.0 { 1.0 } else { (-sum / n).exp() }
}
