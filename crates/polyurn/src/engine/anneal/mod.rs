//! Annealing: all tokens at once, from a distribution that is simple to the posterior.
//!
//! A path of densities leads from a reference, from which every token can be drawn by itself, to the joint probability of data
//! and hidden values. Particles go along it in small steps, with a Gibbs sweep over all tokens after each, and the product of
//! the ratios between neighbouring densities, averaged over particles, estimates the evidence: right on average, given the
//! reference and the steps, which come from pilots. On the way back from draws of the posterior the same products estimate one
//! over the evidence, so that the two together bracket it.
//!
//! - `path`: where a path begins, at a reference or at the prior;
//! - `fitted`, `pilot`: the reference, and the chains it is fitted to; `labels`, `assignment`: which of all labellings it sits in;
//! - `ladder`: the steps; `particles`: a run in either direction; `walker`: one particle;
//! - `single`: tempered sweeps of models with one hidden node, vectorised; others go by `gibbs::weigh`;
//! - `energy`: ln of the joint probability; `bounds`: what a few estimates say for certain.

mod assignment;
mod bounds;
mod energy;
mod fitted;
mod labels;
mod ladder;
#[cfg(test)]
mod moves_test;
mod particles;
mod path;
mod pilot;
#[cfg(test)]
mod reference;
mod single;
mod truth;
mod tune;
mod walker;

pub use bounds::Bracket;
pub use path::AnnealPath;
pub use truth::Truth;
use tune::MOST_SWEEPS;
pub(crate) use tune::foreseen_sweep;
pub use tune::{AnnealWish, SWEEPS};

use crate::control::Control;
use crate::engine::Problem;
use crate::engine::gibbs::Tokens;
use crate::engine::lines::Layout;
use crate::engine::replicates::{PilotPlace, Stage, Team, Turn, Watch, damaged, replicates};
use crate::engine::smc::{disagreement, error_of_mean, log_mean_exp, student};
use crate::engine::symmetry::{LabelClass, MAX_LABELS, has_too_many_labels, label_classes};
use crate::error::{Error, Result};
use crate::simd::Isa;
use crate::warning::{Remedy, Warning};
use crate::{Purpose, Seed};
use bounds::{lower_bound, upper_bound};
use labels::{Labels, LnShare};
use ladder::Ladder;
use particles::{Kept, Party, Trip, Way};
use path::{layout_from_prior, ln_sizes, tempered_from_prior};
use pilot::{Drawing, Pilot, Sweeps, Wanted, pilot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;
use walker::{Setup, Walker};

/// The engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Anneal {
    /// Where the path begins.
    pub path: AnnealPath,
    /// Particles of each run.
    pub particles: usize,
    /// Independent runs; with a bracket as many go back.
    pub runs: u64,
    /// Steps of the path, each with a sweep over all tokens.
    pub sweeps: u64,
    /// When all should be over: then as many steps are made as there is time for after the pilots, which show how long a sweep
    /// takes, and at least ten.
    #[serde(skip)]
    pub end: Option<Instant>,
    /// Chains that go ahead; the one with the best joint probability makes the reference.
    pub pilots: u64,
    /// Sweeps of each pilot.
    pub pilot_sweeps: u64,
    /// Whether runs go back, too.
    pub is_bracket: bool,
    /// Hidden values that the data were simulated with. Runs back start from them instead of chains, and need not be doubted.
    #[serde(skip)]
    pub truth: Option<Truth>,
    /// How probable it may be that a bound does not hold, for each of the two.
    pub error: f64,
    /// Whether it is but a first look, of so few runs that the error had better be their bare scatter.
    #[serde(skip)]
    pub is_first_look: bool,
    /// Instructions to use; all give the same bytes.
    #[serde(skip, default = "Isa::detect")]
    pub isa: Isa,
    /// Threads; any number gives the same bytes.
    pub threads: usize,
}

impl Default for Anneal {
    fn default() -> Self {
        Anneal {
            path: AnnealPath::Reference,
            particles: 8,
            runs: 4,
            sweeps: 1000,
            end: None,
            pilots: 2,
            pilot_sweeps: 1000,
            is_bracket: false,
            truth: None,
            error: 0.025,
            is_first_look: false,
            isa: Isa::detect(),
            threads: 1,
        }
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnealRun {
    /// ln of its estimate of p(sequence); of a run back minus ln of its estimate of one over it.
    pub ln_p_sequence: f64,
    /// Nats by which that of a run forward is too low at most, since the sum over relabellings is known between two bounds.
    pub label_nats: f64,
    /// Relative variance of the estimate, or of the estimate of one over it, as the weights of the particles tell it; `None` for
    /// a single particle.
    pub variance: Option<f64>,
    /// The fewest effective particles.
    pub ess_min: f64,
    /// How often they were resampled.
    pub n_resampled: u64,
    /// Effective particles after some of the steps.
    pub ess_trace: Vec<(u64, f64)>,
    /// The first steps at which they were resampled.
    pub resampled_at: Vec<u64>,
}

/// Entries of a trace, at most.
const TRACE_LENGTH: usize = 200;

/// What all runs found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnnealEstimate {
    /// ln of the mean of the runs' estimates; with runs back half way between that and what those say, but at most ten nats
    /// above it.
    pub ln_p_sequence: f64,
    /// Its standard error, from the scatter of the runs, `None` for a single one; of a few runs so that two errors hold 95 of 100, and
    /// at least what the weights of their particles tell; with runs back at least half the distance between the two.
    pub std_error: Option<f64>,
    /// The same as if the runs were many, beside errors of engines that are not made larger for few runs.
    pub plain_error: Option<f64>,
    /// The runs.
    pub runs: Vec<AnnealRun>,
    /// Those that went back.
    pub back: Vec<AnnealRun>,
    /// With runs back: bounds.
    pub bracket: Option<Bracket>,
    /// Whether it is taken for granted that labels which can be exchanged are far apart.
    pub assumes_separated_labels: bool,
    /// Steps of the path.
    pub sweeps: u64,
    /// Updates of tokens, pilots included.
    pub n_updates: u64,
    /// What a user should know.
    #[serde(with = "crate::warning::as_text")]
    pub warnings: Vec<Warning>,
}

/// Steps of the short runs that find the pace, at least and at most, and as a share of a pilot's sweeps.
const PACE_STEPS: (u64, u64) = (8, 60);
const PACE_SHARE: u64 = 4;

/// Share of a pilot's sweeps that all draws of the posterior for a run back take.
const DRAWING_SHARE: u64 = 8;

/// With runs both ways the estimate lies half way between them, but no more than so many nats above those forward: far from
/// equilibrium the two lag behind by different lengths, and half way is a guess that favours the model with the poorest runs.
const MOST_LAG: f64 = 10.0;

/// A bracket is wide that has more nats than this, and more than this for each token.
const WIDE: (f64, f64) = (5.0, 0.005);

/// Share of a pilot's sweeps before anything is noted.
const WARM_UP: f64 = 0.6;

impl Anneal {
    /// Estimates ln p(sequence) of the records.
    ///
    /// # Errors
    /// Data that cannot occur, cells that are unknown, too many tokens, or a stop before the first run was finished.
    pub fn ln_p_sequence(
        &self,
        problem: &Problem<'_>,
        seed: Seed,
        control: &mut Control<'_>,
    ) -> Result<AnnealEstimate> {
        let truth = |tokens: &Tokens<'_>| self.truth.as_ref().map(|truth| truth.states(problem, tokens)).transpose();
        self.with_truth(problem, &truth, seed, control)
    }

    /// The same; runs back start from these states of the tokens, if there are any.
    fn with_truth(
        &self,
        problem: &Problem<'_>,
        truth: &dyn Fn(&Tokens<'_>) -> Result<Option<Vec<u32>>>,
        seed: Seed,
        control: &mut Control<'_>,
    ) -> Result<AnnealEstimate> {
        problem.check_whole("anneal")?;
        if !problem.counts.unknown.is_empty() {
            let message = "with unknown cells there is no one number of tokens; use --method smc for the totals";
            return Err(Error::Setting(message.into()));
        }
        let from_prior = match self.path {
            AnnealPath::Reference => None,
            AnnealPath::Prior => Some(layout_from_prior(problem)?),
        };
        let layout = from_prior.as_ref().map_or_else(|| problem.layout(), Ok)?;
        let tokens = Tokens::new(layout)?;
        let closed_form = layout.closed_form.value();
        if tokens.len() == 0 || closed_form == f64::NEG_INFINITY {
            return Ok(AnnealEstimate::certain(closed_form));
        }
        let mut setup = Setup::new(&tokens, vec![true; layout.counted.len()], self.isa);
        // From the prior no labelling is singled out.
        let mut classes = Vec::new();
        let mut ln_start = 0.0;
        match self.path {
            AnnealPath::Reference if has_too_many_labels(problem) => {
                let message = format!(
                    "--path reference: hidden values can be renamed, and there are more than {MAX_LABELS} of them; use --path prior"
                );
                return Err(Error::Setting(message));
            }
            AnnealPath::Reference => classes = label_classes(problem.model, problem.prior, problem.counts),
            AnnealPath::Prior => {
                setup = Setup::new(&tokens, tempered_from_prior(problem, layout), self.isa);
                setup.ln_sizes = ln_sizes(problem, layout);
                if self.is_bracket && layout.kernels.iter().any(|kernel| !kernel.is_exact) {
                    let message = "--bracket: from the prior there is none where records use a tied table several times and have \
                                   thousands of joint hidden states; use --path reference";
                    return Err(Error::Setting(message.into()));
                }
                let mut rng = seed.stream(Purpose::Anneal, u64::MAX, 0, 0);
                ln_start = Walker::by_urn_at(&setup, &setup.at(0.0, None), &mut rng, &|| Ok(()))?.1;
            }
        }
        let truth = truth(&tokens)?;
        let job = Job { anneal: self, setup: &setup, layout, classes: &classes, ln_start, truth, seed };
        job.run(control)
    }
}

impl Anneal {
    /// Steps of the short runs that find the pace.
    fn pace_steps(&self) -> u64 {
        (self.pilot_sweeps / PACE_SHARE).clamp(PACE_STEPS.0, PACE_STEPS.1)
    }

    /// Into how many hands so many pilots are dealt: one for each run; with a bracket one for all.
    pub fn n_hands(&self, n_pilots: u64) -> u64 {
        if self.is_bracket { 1 } else { self.runs.clamp(1, n_pilots.max(1)) }
    }

    /// Sweeps between two draws of the posterior.
    fn apart(&self) -> u64 {
        (self.pilot_sweeps / (DRAWING_SHARE * self.particles.max(1) as u64)).clamp(LEAST_APART, MOST_APART)
    }
}

impl Anneal {
    /// Share of the particles below which they are resampled.
    pub const ESS: f64 = particles::ESS_SHARE;
}

impl AnnealEstimate {
    /// The fewest effective particles of all runs.
    pub fn ess_min(&self) -> f64 {
        self.runs.iter().chain(&self.back).map(|run| run.ess_min).fold(f64::INFINITY, f64::min)
    }

    /// Nothing has to be summed out.
    fn certain(ln_p_sequence: f64) -> Self {
        AnnealEstimate {
            ln_p_sequence,
            std_error: Some(0.0),
            plain_error: Some(0.0),
            runs: Vec::new(),
            back: Vec::new(),
            bracket: Some(Bracket { lower: ln_p_sequence, upper: ln_p_sequence, error: 0.0 }),
            assumes_separated_labels: false,
            sweeps: 0,
            n_updates: 0,
            warnings: Vec::new(),
        }
    }
}

/// One estimate under way.
struct Job<'j> {
    anneal: &'j Anneal,
    setup: &'j Setup<'j>,
    layout: &'j Layout,
    classes: &'j [LabelClass],
    /// ln of what the density at the start of the path adds up to, as far as that is not one.
    ln_start: f64,
    /// States of all tokens that the data were simulated with.
    truth: Option<Vec<u32>>,
    seed: Seed,
}

/// What a run goes by.
struct Guide<'p> {
    pilot: &'p Pilot,
    labels: Labels<'p>,
}

impl Job<'_> {
    fn run(&self, control: &mut Control<'_>) -> Result<AnnealEstimate> {
        let Anneal { particles, runs, pilots, pilot_sweeps, is_bracket, error, .. } = *self.anneal;
        let team = Team { n_threads: self.anneal.threads, is_one_by_one: false };
        let warm_up = (WARM_UP * pilot_sweeps as f64) as u64;
        let of_pilot = Sweeps { warm_up, noted: (pilot_sweeps - warm_up).max(1) };
        let stage = self.stage(&format!("pilots {pilots} {pilot_sweeps}"), Some((0, "anneal, pilots")));
        let found = replicates(pilots.max(1), stage, team, control, |turn, watch| {
            pilot(self.setup, self.classes, of_pilot, self.seed, turn.replicate, watch)
        })?;
        if !found.finished.iter().all(|pilot| pilot.fits(self.setup)) {
            return Err(damaged(control));
        }
        let seconds_per_sweep = found.finished.iter().map(|pilot| pilot.seconds_per_sweep).fold(0.0, f64::max);
        let guides = self.guides(&found.finished);
        let best = guides.iter().max_by(|a, b| a.pilot.ln_mass.total_cmp(&b.pilot.ln_mass)).expect("at least one");
        let pace_steps = self.anneal.pace_steps();
        let first = Ladder::first(pace_steps as usize);
        let stage = self.stage(
            &format!("pace {pilots} {pilot_sweeps} {particles} {}", self.anneal.sweeps),
            Some((1, "anneal, pace")),
        );
        let sweeps = self.anneal.affordable(seconds_per_sweep);
        let mut paced = replicates(2, stage, team, control, |turn, watch| {
            let way = if turn.replicate == 0 { Way::Forward } else { Way::Back };
            let turn = Turn { replicate: PACE_RUN, ..turn };
            // The number of steps goes with them, so that a job that was stopped goes on with the same.
            Ok((self.trip(best, &[&best.pilot.states], &first, way, turn, watch)?.sights, sweeps))
        })?;
        let (backward, _) = paced.finished.pop().unwrap_or_default();
        let (forward, sweeps) = paced.finished.pop().unwrap_or((Vec::new(), sweeps));
        if sweeps > MOST_SWEEPS.max(self.anneal.sweeps) {
            return Err(damaged(control));
        }
        let ladder = Ladder::paced(sweeps as usize, &forward, &backward);
        let n_ways = if is_bracket { 2 } else { 1 };
        let truth = self.anneal.truth.as_ref().map(Truth::fingerprint);
        let settings = format!("{pilots} {pilot_sweeps} {particles} {sweeps} {is_bracket} {truth:?}");
        let done = replicates(n_ways * runs, self.stage(&settings, None), team, control, |turn, watch| {
            let way = if turn.replicate % n_ways == 0 { Way::Forward } else { Way::Back };
            let turn = Turn { replicate: turn.replicate / n_ways, ..turn };
            let guide = &guides[turn.replicate as usize % guides.len()];
            let starts = match way {
                Way::Forward => Vec::new(),
                Way::Back => self.starts_of_back(turn.replicate, guide, &found.finished).1,
            };
            let party = self.trip(guide, &starts, &ladder, way, turn, watch)?;
            Ok(self.result(&guide.labels, way, &party))
        })?;
        let mut estimate = AnnealEstimate::certain(0.0);
        estimate.warnings = done.warnings(n_ways * runs);
        // Runs back from the same chains are one estimate, since they are not independent.
        let mut back_by_hand: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (number, run) in done.numbers.iter().zip(done.finished) {
            if number % n_ways == 0 {
                estimate.runs.push(run);
            } else {
                let (hand, _) = self.starts_of_back(number / n_ways, best, &found.finished);
                back_by_hand.entry(hand).or_default().push(-run.ln_p_sequence);
                estimate.back.push(run);
            }
        }
        let forward: Vec<f64> = estimate.runs.iter().map(|run| run.ln_p_sequence).collect();
        let inverse: Vec<f64> = estimate.back.iter().map(|run| -run.ln_p_sequence).collect();
        let back: Vec<f64> = back_by_hand.values().map(|inverse| -log_mean_exp(inverse)).collect();
        estimate.ln_p_sequence = log_mean_exp(&forward);
        // Runs that go by the same chains are not independent of each other, unless all go by the best.
        let n_hands = if guides.len() > 1 { guides.len().min(forward.len()) } else { forward.len() };
        let factor = |n_hands: usize| if self.anneal.is_first_look { 1.0 } else { student(n_hands) };
        let of_forward = error_of(&estimate.runs, &forward, estimate.ln_p_sequence);
        estimate.std_error = of_forward.map(|error| error.stated(factor(n_hands)));
        estimate.plain_error = of_forward.map(|error| error.stated(1.0));
        estimate.warnings.extend(disagreement(&forward, Remedy::Steps));
        estimate.bracket = None;
        if !forward.is_empty() && !back.is_empty() {
            // Where labels are taken to be far apart, what holds for any data is the estimate without the number of relabellings.
            let assumed = if best.labels.is_assumed() { best.labels.ln_relabellings() } else { 0.0 };
            let (lower, upper) = (lower_bound(&forward, error) - assumed, upper_bound(&back, error));
            let is_crossed = lower > upper;
            if is_crossed {
                // One of them does not hold, and nobody can tell which: the number stays that of the runs forward.
                let nats = format!("{:.1}", lower - upper);
                estimate.warnings.push(Warning::BoundsCross { nats });
            } else {
                estimate.bracket = Some(Bracket { lower, upper, error });
            }
            // Runs lag behind in both directions, so the truth is between the two.
            let from_above = -log_mean_exp(&inverse);
            let of_inverse = error_of(&estimate.back, &inverse, -from_above);
            let of_inverse = of_inverse.map(|error| error.stated(factor(inverse.len())));
            let errors = [estimate.std_error, of_inverse];
            let scatter = errors.into_iter().flatten().map(|error| error * error).sum::<f64>().sqrt() / 2.0;
            let distance = (from_above - estimate.ln_p_sequence) / 2.0;
            if !is_crossed {
                estimate.ln_p_sequence += distance.min(MOST_LAG);
                estimate.std_error = Some(distance.abs().max(scatter));
            }
            let width = upper - lower;
            if width > WIDE.0 && width > WIDE.1 * self.setup.tokens.len() as f64 {
                estimate.warnings.push(Warning::WideBracket { width: format!("{width:.0}"), sweeps });
            }
            let apart = scatter_of_best(found.finished.iter().map(|pilot| pilot.ln_mass).collect());
            if self.anneal.path == AnnealPath::Reference && apart > width.max(WIDE.0) {
                // Runs both ways stay near the chain that they go by; another seed would find another one.
                estimate.std_error = estimate.std_error.map(|error| error.max(apart));
                estimate.warnings.push(Warning::ChainsApart { apart: format!("{apart:.0}"), chains: pilots });
            }
        }
        let overlap = estimate.runs.iter().map(|run| run.label_nats).fold(0.0, f64::max);
        if overlap > NOTABLE_OVERLAP {
            for error in [&mut estimate.std_error, &mut estimate.plain_error] {
                *error = error.map(|error| error.max(overlap));
            }
            estimate.warnings.push(Warning::LabelsOverlap { nats: format!("{overlap:.1}") });
        }
        estimate.assumes_separated_labels = best.labels.is_assumed();
        if estimate.assumes_separated_labels {
            let ln_relabellings = format!("{:.1}", best.labels.ln_relabellings());
            estimate.warnings.push(Warning::LabelsAssumed { ln_relabellings });
        }
        let n_tokens = self.setup.tokens.len() as u64;
        let n_done = (estimate.runs.len() + estimate.back.len()) as u64 * sweeps + 2 * pace_steps;
        estimate.sweeps = sweeps;
        estimate.n_updates = n_tokens * (pilots * pilot_sweeps + n_done * particles as u64);
        Ok(estimate)
    }

    fn stage(&self, settings: &str, pilot: Option<(usize, &'static str)>) -> Stage {
        let path = self.anneal.path.name();
        let fingerprint = self.layout.fingerprint(&format!("anneal {path} {settings}"), self.seed);
        let job = self.layout.fingerprint("anneal", self.seed);
        let name = pilot.map_or("anneal", |(_, name)| name);
        Stage { name, job, fingerprint, pilot: pilot.map(|(ix, _)| PilotPlace { ix, n: 2 }) }
    }

    /// What runs go by: run n by the nth of these, and those beyond from the first again.
    ///
    /// Pilots are dealt out to runs, and each goes by the best of its own: then runs have nothing in common but the model and the
    /// steps, and their scatter tells of modes that some chains find and others do not. With a bracket all go by the best of all,
    /// since a run back from a poor mode would bound no more than that mode.
    fn guides<'p>(&'p self, pilots: &'p [Pilot]) -> Vec<Guide<'p>> {
        let n_hands = self.anneal.n_hands(pilots.len() as u64) as usize;
        let guide = |first: usize| {
            let own = pilots.iter().skip(first).step_by(n_hands);
            let pilot = own.max_by(|a, b| a.ln_mass.total_cmp(&b.ln_mass)).expect("one or more");
            Guide { pilot, labels: Labels::new(self.setup.tokens, &pilot.fitted, self.classes) }
        };
        (0..n_hands).map(guide).collect()
    }

    /// Where the particles of a run back start, and in which hand it is: runs in one hand are not independent of each other.
    ///
    /// Chains are dealt out to runs before anything is known of them, so that runs back are as independent as chains, and modes
    /// of the same weight come up as often as chains find them. A chain with far less behind it than the best is in a mode that the
    /// posterior hardly has, and a run back from there would bound no more than that mode; a run that has no other chains goes by the
    /// best of all. Where a run has fewer particles than chains, those with most behind them start. A chain in another labelling
    /// than the reference's is of no use where labellings cannot be summed over.
    fn starts_of_back<'p>(&'p self, run: u64, guide: &Guide<'p>, pilots: &'p [Pilot]) -> (u64, Vec<&'p [u32]>) {
        if let Some(truth) = &self.truth {
            return (0, vec![truth]);
        }
        let best = &guide.pilot.states;
        if guide.labels.is_assumed() {
            return (0, vec![best]);
        }
        let n_hands = self.anneal.runs.clamp(1, pilots.len() as u64) as usize;
        let hand = run as usize % n_hands;
        let is_near = |pilot: &&Pilot| pilot.ln_mass >= guide.pilot.ln_mass - NEAR_BEST;
        let mut own: Vec<&Pilot> = pilots.iter().skip(hand).step_by(n_hands).filter(is_near).collect();
        if own.is_empty() {
            let of_best = pilots.iter().position(|pilot| std::ptr::eq(pilot, guide.pilot)).expect("it is one of them");
            return ((of_best % n_hands) as u64, vec![best]);
        }
        let n_particles = self.anneal.particles.max(1);
        if n_particles < own.len() {
            own.sort_by(|a, b| b.ln_mass.total_cmp(&a.ln_mass));
            own.truncate(n_particles);
        }
        (hand as u64, own.into_iter().map(|pilot| &*pilot.states).collect())
    }

    /// One run along the path; one back from these states.
    fn trip(
        &self,
        guide: &Guide<'_>,
        starts: &[&[u32]],
        ladder: &Ladder,
        way: Way,
        turn: Turn,
        watch: &Watch<'_>,
    ) -> Result<Party> {
        let Job { setup, seed, .. } = *self;
        let Guide { pilot, labels } = guide;
        let n = self.anneal.particles.max(1);
        let fitted = (self.anneal.path == AnnealPath::Reference).then_some(&pilot.fitted);
        let trip = Trip { setup, fitted, ladder, way, seed, replicate: turn.replicate, n_threads: turn.n_threads };
        // Draws of the posterior take part of the time of a run back.
        let apart = self.anneal.apart();
        let n_draw_sweeps = apart * n as u64;
        let begun = match way {
            Way::Forward => 0.0,
            Way::Back => n_draw_sweeps as f64 / (n_draw_sweeps + (ladder.n_steps() * n) as u64) as f64,
        };
        let (party, drawing) = match watch.saved() {
            Some(Kept::Going(party)) if party.fits(&trip, n) => (Some(party), None),
            Some(Kept::Drawing(drawing)) if way == Way::Back && drawing.fits(setup, apart) => (None, Some(drawing)),
            _ => (None, None),
        };
        let stream = |particle: usize| seed.stream(way.purpose(), turn.replicate, particle as u64, START_STEP);
        let party = match party {
            Some(party) => party,
            None if way == Way::Forward => {
                let draw = |particle: usize| match fitted {
                    Some(fitted) => Ok((fitted.draw(setup.tokens, &mut stream(particle)), 0.0)),
                    None => {
                        let look = || watch.tick(0.0);
                        let (walker, ln_weight) =
                            Walker::by_urn_at(setup, &setup.at(0.0, None), &mut stream(particle), &look)?;
                        Ok((walker.states().to_vec(), ln_weight))
                    }
                };
                let (states, ln_weights) = (0..n).map(draw).collect::<Result<Vec<_>>>()?.into_iter().unzip();
                Party::new(states, ln_weights)
            }
            None => {
                let look = |share: f64, drawing: &Drawing| {
                    let go_on = watch.tick(share * begun);
                    if watch.is_asked() || go_on.is_err() {
                        watch.keep(&Kept::Drawing(drawing.clone()));
                    }
                    go_on
                };
                let drawing = drawing.unwrap_or_else(|| Drawing::from(starts[0]));
                let mut states =
                    drawing.go(setup, Wanted { starts, n_draws: n, apart }, seed, turn.replicate, watch, &look)?;
                for (particle, states) in states.iter_mut().enumerate() {
                    labels.relabel(states, &mut stream(particle));
                }
                // The path ends in the reference's share of the posterior.
                let ln_weights = states.iter().map(|states| -labels.ln_share(states).high).collect();
                Party::new(states, ln_weights)
            }
        };
        trip.go(party, (begun, 1.0), watch)
    }

    fn result(&self, labels: &Labels<'_>, way: Way, party: &Party) -> AnnealRun {
        let constant = self.layout.closed_form.value() + labels.ln_relabellings();
        let (ln, variance, label_nats) = match way {
            Way::Forward => {
                let shares: Vec<LnShare> = party.states.iter().map(|states| labels.ln_share(states)).collect();
                let (ln, variance) = party.ln_estimate(shares.iter().map(|share| share.low));
                let (high, _) = party.ln_estimate(shares.iter().map(|share| share.high));
                (ln, variance, (high - ln).max(0.0))
            }
            Way::Back => {
                let (ln, variance) = party.ln_estimate(party.states.iter().map(|_| 0.0));
                (self.ln_start - ln, variance, 0.0)
            }
        };
        let (ess_trace, resampled_at) = party.trace(TRACE_LENGTH);
        AnnealRun {
            ln_p_sequence: constant + ln,
            label_nats,
            variance,
            ess_min: party.ess_min,
            n_resampled: party.n_resampled,
            ess_trace,
            resampled_at,
        }
    }
}

/// What there is to tell the standard error of ln of a mean over runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RunError {
    /// From the scatter of the runs, each of which goes by chains of its own: its weights know nothing of that.
    scatter: f64,
    /// From the weights of each run's particles, where they tell it.
    of_weights: f64,
}

impl RunError {
    /// The scatter times this, but no less than the weights tell.
    fn stated(self, factor: f64) -> f64 {
        (self.scatter * factor).max(self.of_weights)
    }
}

/// The standard error of ln of a mean over runs, from these logs; `None` for a single run.
///
/// The relative variance of a run's estimate counts by the square of its share in the mean. A relative variance of the mean is the variance of
/// its log, to first order; beyond, ln(1 + v).
fn error_of(runs: &[AnnealRun], logs: &[f64], ln_mean: f64) -> Option<RunError> {
    let ln_total = ln_mean + (logs.len() as f64).ln();
    let of_run = |(run, ln): (&AnnealRun, &f64)| {
        let share = (ln - ln_total).exp();
        // A run that found nothing has no weights.
        if share > 0.0 { run.variance.map(|variance| variance * share * share) } else { Some(0.0) }
    };
    let of_weights = runs.iter().zip(logs).map(of_run).sum::<Option<f64>>().map_or(0.0, |total| total.ln_1p().sqrt());
    (runs.len() > 1).then(|| RunError { scatter: error_of_mean(logs, ln_mean), of_weights })
}

/// Rough nats by which the best of these pilots' masses would differ with another seed; nothing if there is one.
///
/// Half the distance of the best from the third: with four normal numbers that is on average 0.67 of their standard deviation, and the
/// largest of them scatters by 0.70 of it. Where several chains find the same mode, it is next to nothing.
fn scatter_of_best(mut masses: Vec<f64>) -> f64 {
    masses.sort_by(|a, b| b.total_cmp(a));
    masses.get(2).or(masses.last()).map_or(0.0, |third| (masses[0] - third) / 2.0)
}

/// Nats by which a chain's mass may be below the best one's for runs back to start from it: modes with a twentieth of the weight.
const NEAR_BEST: f64 = 3.0;

/// Nats between the bounds of the sum over relabellings from which on they are told.
const NOTABLE_OVERLAP: f64 = 0.01;

/// Number of the short runs that find the pace, which no other run has.
const PACE_RUN: u64 = 1 << 32;

/// Step of the random stream that draws where a particle starts.
const START_STEP: u64 = 1 << 41;

/// Sweeps between two draws of the posterior, at least and at most.
const LEAST_APART: u64 = 4;
const MOST_APART: u64 = 200;

#[cfg(test)]
mod tests {
    use super::{AnnealRun, RunError, error_of, scatter_of_best};
    use crate::engine::smc::{log_mean_exp, student};

    #[test]
    fn a_few_runs_that_agree_by_chance_are_not_believed() {
        let run = |variance: Option<f64>| AnnealRun {
            ln_p_sequence: 0.0,
            label_nats: 0.0,
            variance,
            ess_min: 1.0,
            n_resampled: 0,
            ess_trace: Vec::new(),
            resampled_at: Vec::new(),
        };
        let error = |logs: &[f64], variances: &[Option<f64>]| {
            let runs: Vec<AnnealRun> = variances.iter().map(|&variance| run(variance)).collect();
            error_of(&runs, logs, log_mean_exp(logs)).unwrap()
        };
        // Variances 0.04 of single runs: of a mean of four 0.01, however near they are to each other.
        let near = error(&[-3.0; 4], &[Some(0.04); 4]);
        assert!((near.stated(student(4)) - 0.01f64.ln_1p().sqrt()).abs() < 1e-12, "{near:?}");
        // Beyond that the scatter, by Student's factor for four.
        let wide = error(&[-3.0, -3.3, -2.8, -3.1], &[Some(0.001); 4]);
        assert!(wide.scatter > 0.1 && (wide.stated(student(4)) / wide.scatter - 1.624).abs() < 1e-12, "{wide:?}");
        // A run without a share in the mean says nothing of its error; one particle none at all.
        let one = error(&[-3.0, -900.0], &[Some(0.04), Some(50.0)]);
        assert!((one.of_weights - 0.04f64.ln_1p().sqrt()).abs() < 1e-12, "{one:?}");
        let none = error(&[-3.0, f64::NEG_INFINITY], &[Some(0.04), None]);
        assert!((none.of_weights - 0.04f64.ln_1p().sqrt()).abs() < 1e-12, "{none:?}");
        assert_eq!(error(&[-3.0; 4], &[None; 4]), RunError { scatter: 0.0, of_weights: 0.0 });
        assert_eq!(error_of(&[run(None)], &[-3.0], -3.0), None);
    }

    #[test]
    fn the_best_of_many_chains_is_as_sure_as_those_next_to_it_say() {
        assert_eq!(scatter_of_best(vec![-400.0, 0.0, -90.0, -20.0]), 45.0);
        assert_eq!(scatter_of_best(vec![-400.0, 0.0, -1.0, -0.5]), 0.5);
        assert_eq!((scatter_of_best(vec![-3.0, 0.0]), scatter_of_best(vec![7.0])), (1.5, 0.0));
    }
}
