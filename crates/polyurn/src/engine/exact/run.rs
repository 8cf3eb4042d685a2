//! Running a compiled program: cost check, the loop over tokens, checkpoints, unknown cells.

use super::layer::{Digit, Layer};
use super::order::most_states;
use super::program::{CertainTouch, CompiledWay, Goal, Program, UnknownStep, forecast_with_unknown};
use super::tail::{Components, ln_totals};
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::bytes::show_bytes;
use crate::engine::mixer::Mixer;
use crate::error::{Error, Result};
use crate::math::{Double, LnProduct, Scaled, TINY};
use serde::{Deserialize, Serialize};

/// Settings of the exact engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exact {
    /// Bytes that states may take.
    pub max_memory: u64,
}

impl Default for Exact {
    fn default() -> Self {
        Exact { max_memory: 4 << 30 }
    }
}

/// What an exact run will cost, foreseen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Largest number of states at once; numbers beyond any machine are cut off.
    pub states: f64,
    /// State transitions in all.
    pub transitions: f64,
    /// Bytes for the states.
    pub bytes: f64,
    /// Rough time on one core.
    pub seconds: f64,
}

impl Cost {
    /// The number of states in words: `about 37 states`, or that there are more than anybody counts.
    pub fn show_states(&self) -> String {
        show_states("about", self.states)
    }
}

/// `about` or `up to` so many states; where their number was cut off, more than that.
fn show_states(about: &str, n_states: f64) -> String {
    match n_states {
        n if n >= most_states() => format!("more than {:.0e} states", most_states()),
        n if n < 1e4 => format!("{about} {} state{}", n.round(), if n.round() == 1.0 { "" } else { "s" }),
        n => format!("{about} {n:.1e} states"),
    }
}

/// Longest list of totals by convolution, whose time grows with its square: about a minute.
const MAX_CONVOLVED: usize = 1 << 16;
/// Time for one transition, measured on small states; for forecasts only.
const SECONDS_PER_TRANSITION: f64 = 1.2e-7;

/// ln p(sequence) and what the run took.
#[derive(Debug, Clone)]
pub struct ExactSequence {
    /// ln p(sequence): the records in one given order, unseen values summed out.
    pub ln_p_sequence: Double,
    /// Largest number of states that were held at once.
    pub max_states: usize,
}

/// Which totals are wanted when some cells are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TotalsRange {
    /// From the seen total upwards until the tail is below 1e-12.
    Auto,
    /// These totals, both ends included.
    Between(u64, u64),
}

/// ln p(sequence of seen records, then m tokens in unknown cells), m = 0, 1, ...
#[derive(Debug, Clone)]
pub struct UnknownTotals {
    /// Entry m is for m tokens in unknown cells.
    pub ln_p_sequence: Vec<Double>,
    /// Largest number of states that were held at once.
    pub max_states: usize,
}

impl Exact {
    /// Foresees the cost of [`Exact::ln_p_sequence`].
    ///
    /// # Errors
    /// When one token can be allocated in more ways than can be listed.
    pub fn cost(&self, problem: &Problem<'_>) -> Result<Cost> {
        Ok(self.prepare(problem)?.cost())
    }

    /// Foresees the cost of [`super::posterior`], which forgets nothing.
    ///
    /// # Errors
    /// When one token can be allocated in more ways than can be listed.
    pub fn posterior_cost(&self, problem: &Problem<'_>) -> Result<Cost> {
        let program = Program::compile(problem, Goal::Posterior)?;
        let per_state = Layer::<u32>::bytes_per_state(program.registers.width);
        Ok(forecast_cost(program.forecast.n_states, program.forecast.n_transitions, per_state))
    }

    /// Compiles the run, so that its cost can be looked at before it starts.
    ///
    /// # Errors
    /// When one token can be allocated in more ways than can be listed.
    pub fn prepare<'a>(&self, problem: &Problem<'a>) -> Result<Prepared<'a>> {
        Ok(Prepared { exact: *self, program: Program::compile(problem, Goal::Evidence)? })
    }

    /// ln p(sequence) of the seen records.
    ///
    /// # Errors
    /// [`Error::TooCostly`] with the forecast when the states would not fit; [`Error::Stopped`] when the run was stopped.
    pub fn ln_p_sequence(&self, problem: &Problem<'_>, control: &mut Control<'_>) -> Result<ExactSequence> {
        self.prepare(problem)?.ln_p_sequence(control)
    }

    /// ln p(sequence) with 0, 1, 2, .. further tokens in the unknown cells. `wants_more(entries)` is asked after each
    /// entry whether to go on; `n_foreseen` is how many tokens that will be, for the forecast of the cost.
    ///
    /// # Errors
    /// As [`Exact::ln_p_sequence`]; the advice names `--totals`.
    pub fn unknown_totals(
        &self,
        problem: &Problem<'_>,
        n_foreseen: u64,
        mut wants_more: impl FnMut(&[Double]) -> bool,
        control: &mut Control<'_>,
    ) -> Result<UnknownTotals> {
        let prepared = self.prepare(problem)?;
        let program = &prepared.program;
        let never = Double::from(f64::NEG_INFINITY);
        if program.impossible || program.unknown.is_none() {
            // Either the seen cells cannot occur, or no token can be in an unknown one.
            let seen = prepared.ln_p_sequence(control)?.ln_p_sequence;
            let mut ln_p_sequence = vec![seen];
            while wants_more(&ln_p_sequence) {
                ln_p_sequence.push(never);
            }
            return Ok(UnknownTotals { ln_p_sequence, max_states: 1 });
        }
        self.check_cost(cost_of(program, n_foreseen))?;
        let job = Job { program, max_memory: self.max_memory };
        // The number of tokens in unknown cells is open, so registers get their full width.
        job.unknown::<u32>(&mut wants_more, control)
    }

    fn check_cost(&self, cost: Cost) -> Result<()> {
        self.check_bytes(cost.states, cost.bytes / cost.states)
    }

    pub(super) fn check_bytes(&self, n_states: f64, bytes_per_state: f64) -> Result<()> {
        if n_states * bytes_per_state <= self.max_memory as f64 {
            return Ok(());
        }
        if n_states > 1e18 {
            return Err(Error::TooCostly(format!(
                "exact: {}, far beyond the limit of {}; use fewer tokens or hidden values",
                show_states("up to", n_states),
                show_bytes(self.max_memory as f64)
            )));
        }
        Err(Error::TooCostly(format!(
            "exact: {} would take {}, beyond the limit of {}; raise --max-memory, or use fewer tokens",
            show_states("up to", n_states),
            show_bytes(n_states * bytes_per_state),
            show_bytes(self.max_memory as f64)
        )))
    }
}

/// A compiled run of the exact engine.
#[derive(Debug)]
pub struct Prepared<'a> {
    exact: Exact,
    program: Program<'a>,
}

impl Prepared<'_> {
    /// What the run will cost.
    pub fn cost(&self) -> Cost {
        cost_of(&self.program, 0)
    }

    /// Runs; see [`Exact::ln_p_sequence`].
    ///
    /// # Errors
    /// [`Error::TooCostly`] with the forecast when the states would not fit; [`Error::Stopped`] when the run was stopped.
    pub fn ln_p_sequence(&self, control: &mut Control<'_>) -> Result<ExactSequence> {
        let program = &self.program;
        if program.impossible {
            return Ok(ExactSequence { ln_p_sequence: Double::from(f64::NEG_INFINITY), max_states: 0 });
        }
        self.exact.check_cost(self.cost())?;
        let job = Job { program, max_memory: self.exact.max_memory };
        let (total, max_states) = match digit_size(program.max_register) {
            DigitSize::One => job.evidence::<u8>(control)?,
            DigitSize::Two => job.evidence::<u16>(control)?,
            DigitSize::Four => job.evidence::<u32>(control)?,
        };
        Ok(ExactSequence { ln_p_sequence: program.closed_form.ln() + Double::from(total.ln()), max_states })
    }
}

enum DigitSize {
    One,
    Two,
    Four,
}

fn digit_size(max_register: u64) -> DigitSize {
    match max_register {
        n if n <= u64::from(u8::MAX) => DigitSize::One,
        n if n <= u64::from(u16::MAX) => DigitSize::Two,
        _ => DigitSize::Four,
    }
}

fn cost_of(program: &Program<'_>, n_unknown: u64) -> Cost {
    let width = program.registers.width;
    let per_state = match digit_size(program.max_register.saturating_add(n_unknown)) {
        _ if program.unknown.is_some() => Layer::<u32>::bytes_per_state(width),
        DigitSize::One => Layer::<u8>::bytes_per_state(width),
        DigitSize::Two => Layer::<u16>::bytes_per_state(width),
        DigitSize::Four => Layer::<u32>::bytes_per_state(width),
    };
    let states = forecast_with_unknown(program, n_unknown).max(program.forecast.n_states);
    forecast_cost(states, program.forecast.n_transitions + states * n_unknown as f64, per_state)
}

fn forecast_cost(states: f64, transitions: f64, bytes_per_state: usize) -> Cost {
    Cost {
        states,
        transitions,
        // The layer that is read and the one that is written, each with room to grow.
        bytes: states * 2.0 * bytes_per_state as f64,
        seconds: transitions * SECONDS_PER_TRANSITION,
    }
}

/// The state of an unfinished run.
#[derive(Serialize, Deserialize)]
struct Saved {
    fingerprint: (u64, u64, u64),
    n_placed: u64,
    digits: Vec<u32>,
    weights: Vec<(f64, i32)>,
}

pub(super) struct Job<'p, 'a> {
    pub(super) program: &'p Program<'a>,
    pub(super) max_memory: u64,
}

impl Job<'_, '_> {
    fn evidence<D: Digit>(&self, control: &mut Control<'_>) -> Result<(Scaled, usize)> {
        let (layer, max_states) = self.seen_tokens::<D>(control)?;
        Ok((layer.total(), max_states))
    }

    /// Places all seen tokens and returns the last layer.
    pub(super) fn seen_tokens<D: Digit>(&self, control: &mut Control<'_>) -> Result<(Layer<D>, usize)> {
        let width = self.program.registers.width;
        let (mut layer, skip) = match control.load_checkpoint()? {
            Some(bytes) => self.restore(&bytes, control)?,
            None => (Layer::<D>::start(width), 0),
        };
        let mut next = Layer::empty(width);
        let mut n_placed = 0;
        let mut max_states = layer.len();
        for step in &self.program.steps {
            for token in 1..=step.count {
                n_placed += 1;
                if n_placed <= skip {
                    continue;
                }
                let forget: &[u32] = if token == step.count { &step.forget } else { &[] };
                if let Err(error) = self.place(&step.ways, forget, &layer, &mut next, n_placed - 1, control) {
                    if matches!(error, Error::Stopped(_)) {
                        control.checkpoint_now(|| self.save(&layer, n_placed - 1))?;
                    }
                    return Err(error);
                }
                std::mem::swap(&mut layer, &mut next);
                max_states = max_states.max(layer.len());
                control.checkpoint(|| self.save(&layer, n_placed))?;
            }
        }
        Ok((layer, max_states))
    }

    fn place<D: Digit>(
        &self,
        ways: &[CompiledWay],
        forget: &[u32],
        layer: &Layer<D>,
        next: &mut Layer<D>,
        n_placed: u64,
        control: &mut Control<'_>,
    ) -> Result<()> {
        let n_steps = self.program.n_steps().max(n_placed + 1) as f64;
        let held = layer.n_bytes();
        let mut outcome = Ok(());
        layer.advance(ways, forget, &self.program.canonicalisers, next, |ix, next| {
            let fraction = (n_placed as f64 + ix as f64 / layer.len().max(1) as f64) / n_steps;
            outcome = control.tick("exact", fraction).and_then(|()| self.check_memory(held + next.n_bytes()));
            outcome.is_err()
        });
        outcome
    }

    fn check_memory(&self, n_bytes: usize) -> Result<()> {
        if n_bytes as u64 <= self.max_memory {
            return Ok(());
        }
        Err(Error::TooCostly(format!(
            "exact: the states have grown beyond the limit of {}; raise --max-memory{}, or use fewer tokens",
            show_bytes(self.max_memory as f64),
            if self.program.unknown.is_some() { ", bound the totals with --totals LO..HI" } else { "" }
        )))
    }

    fn unknown<D: Digit>(
        &self,
        wants_more: &mut dyn FnMut(&[Double]) -> bool,
        control: &mut Control<'_>,
    ) -> Result<UnknownTotals> {
        let unknown = self.program.unknown.as_ref().expect("a problem with unknown cells");
        let (layer, max_states) = self.seen_tokens::<D>(control)?;
        if let Some(components) = Components::new(&unknown.ways) {
            let ln_p_sequence = self.unknown_at_once(unknown, &components, &layer, wants_more, control)?;
            return Ok(UnknownTotals { ln_p_sequence, max_states });
        }
        self.unknown_one_by_one(unknown, layer, max_states, wants_more, control)
    }

    /// Totals by convolution, twice as many each time until no more are wanted.
    fn unknown_at_once<D: Digit>(
        &self,
        unknown: &UnknownStep,
        components: &Components<'_>,
        layer: &Layer<D>,
        wants_more: &mut dyn FnMut(&[Double]) -> bool,
        control: &mut Control<'_>,
    ) -> Result<Vec<Double>> {
        let mut n_asked = 0;
        let mut n_max = 32;
        loop {
            let mut entries = ln_totals(components, layer, n_max, control)?;
            let mut certain = self.program.closed_form.clone();
            for (entry, m) in entries.iter_mut().zip(0u64..) {
                *entry = *entry + certain.ln();
                multiply_certain(&unknown.certain, m, &mut certain);
            }
            while n_asked < entries.len() {
                n_asked += 1;
                if !wants_more(&entries[..n_asked]) {
                    entries.truncate(n_asked);
                    return Ok(entries);
                }
            }
            n_max *= 2;
            if n_max > components.max_tokens().min(MAX_CONVOLVED) {
                return Err(Error::TooCostly(format!(
                    "exact: more than {} totals would have to be listed; bound them with --totals LO..HI, or give a larger --b",
                    n_max / 2
                )));
            }
        }
    }

    fn unknown_one_by_one<D: Digit>(
        &self,
        unknown: &UnknownStep,
        mut layer: Layer<D>,
        mut max_states: usize,
        wants_more: &mut dyn FnMut(&[Double]) -> bool,
        control: &mut Control<'_>,
    ) -> Result<UnknownTotals> {
        let mut next = Layer::empty(self.program.registers.width);
        let mut certain = self.program.closed_form.clone();
        let mut ln_p_sequence = vec![certain.ln() + Double::from(layer.total().ln())];
        for m in 0u64.. {
            if !wants_more(&ln_p_sequence) {
                break;
            }
            multiply_certain(&unknown.certain, m, &mut certain);
            self.place(&unknown.ways, &[], &layer, &mut next, self.program.n_steps() + m, control)?;
            std::mem::swap(&mut layer, &mut next);
            max_states = max_states.max(layer.len());
            ln_p_sequence.push(certain.ln() + Double::from(layer.total().ln()));
        }
        Ok(UnknownTotals { ln_p_sequence, max_states })
    }

    /// Tells runs of different problems apart, so that a checkpoint is not taken up by another one: everything that a
    /// state means and everything that is still to be done to it.
    fn fingerprint(&self) -> (u64, u64, u64) {
        let program = self.program;
        let mut mix = Mixer::default();
        for step in &program.steps {
            mix.word(step.count);
            step.forget.iter().for_each(|&register| mix.word(u64::from(register)));
            step.ways.iter().for_each(|way| mix_way(&mut mix, way));
        }
        if let Some(step) = &program.unknown {
            mix.word(u64::MAX);
            step.ways.iter().for_each(|way| mix_way(&mut mix, way));
        }
        for set in program.classes.iter().flat_map(|class| &class.sets) {
            mix.word(set.len() as u64);
        }
        (program.closed_form.ln().value().to_bits(), mix.0, program.registers.width as u64)
    }

    fn save<D: Digit>(&self, layer: &Layer<D>, n_placed: u64) -> Vec<u8> {
        let (digits, weights) = layer.parts();
        let saved = Saved { fingerprint: self.fingerprint(), n_placed, digits, weights };
        postcard::to_allocvec(&saved).expect("plain numbers can be encoded")
    }

    fn restore<D: Digit>(&self, bytes: &[u8], control: &Control<'_>) -> Result<(Layer<D>, u64)> {
        let damaged = || {
            control.refuse_checkpoint(
                "it is damaged or belongs to another model or another method; remove the file to start anew",
            )
        };
        let saved: Saved = postcard::from_bytes(bytes).map_err(|_| damaged())?;
        if saved.fingerprint != self.fingerprint() {
            return Err(control
                .refuse_checkpoint("it belongs to another model, prior or data; remove the file or give another one"));
        }
        let layer = Layer::from_parts(self.program.registers.width, &saved.digits, &saved.weights);
        Ok((layer.ok_or_else(damaged)?, saved.n_placed))
    }
}

fn mix_way(mix: &mut Mixer, way: &CompiledWay) {
    mix.word(way.factors.len() as u64);
    for factor in &way.factors {
        mix.word(factor.offset.to_bits());
        mix.word(u64::from(factor.register) << 1 | u64::from(factor.divides));
    }
    for &(register, n) in &way.increments {
        mix.word(u64::from(register) << 32 | u64::from(n));
    }
}

/// The factors of counters that every token in an unknown cell touches, for token number m.
fn multiply_certain(certain: &[CertainTouch], m: u64, product: &mut LnProduct) {
    for touch in certain {
        for use_ix in 0..u64::from(touch.n_touches) {
            let n = touch.n_before + m * u64::from(touch.n_touches) + use_ix;
            let ln_if_tiny = Double::from(touch.pseudo.ln_if_tiny);
            match (n == 0 && touch.pseudo.value < TINY, touch.divides) {
                (true, false) => product.multiply_exp(ln_if_tiny),
                (true, true) => product.multiply_exp(-ln_if_tiny),
                (false, false) => product.multiply(Double::from(touch.pseudo.value) + Double::from(n)),
                (false, true) => product.divide(Double::from(touch.pseudo.value) + Double::from(n)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_states_have_the_digits_that_a_forecast_has() {
        let shown = [1.2, 7.0, 36.6, 9999.0, 1.47e10, 3.8e238, most_states()].map(|n| show_states("about", n));
        let wanted = [
            "about 1 state",
            "about 7 states",
            "about 37 states",
            "about 9999 states",
            "about 1.5e10 states",
            "about 3.8e238 states",
            "more than 5e249 states",
        ];
        assert_eq!(shown, wanted);
    }
}
