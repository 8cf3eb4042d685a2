//! Problems whose answer is known, and how estimates of the particle engine are held against it.
//!
//! An estimate Z-hat of Z = p(sequence) is unbiased: the mean of Z-hat / Z over independent runs is 1. Its standard error is
//! the runs' own standard deviation over the root of their number, and |z| <= 4.5 is asked for. A test that fails is run
//! once more, on fresh runs, four times as many; nothing else is retried.

use crate::cases;
use crate::support::{bound, csv, with_problem};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::{Estimate, Path, Scheme, Smc, When};
use polyurn::graph::NodeIndex;
use polyurn::prior::PriorSettings;
use serde_json::Value;
use std::fmt;

/// Largest |z| that passes.
pub const Z: f64 = 4.5;

/// A standard deviation below this is rounding: nothing was random.
const CERTAIN: f64 = 1e-9;

pub const SCHEMES: [Scheme; 4] = [Scheme::Systematic, Scheme::Stratified, Scheme::Residual, Scheme::Multinomial];
pub const WHENS: [When; 3] = [When::Always, When::Never, When::EssBelow(0.6)];

/// Moves of single tokens, heat, steps of cooling, moves of whole groups.
pub type Moves = (u32, f64, u32, u32);

/// No moves; moves; moves, and pseudo-counts that start larger and are cooled down; the same with moves of whole groups.
pub const MOVES: [Moves; 4] = [(0, 1.0, 0, 0), (3, 1.0, 0, 0), (2, 4.0, 3, 0), (1, 3.0, 2, 2)];

pub fn path_of(moves: Moves) -> Path {
    let (rejuvenation, start_scale, n_cooling, n_reallocations) = moves;
    Path { rejuvenation, start_scale, n_cooling, n_reallocations, ..Default::default() }
}

/// Builds a problem and hands it over.
type Build = dyn Fn(&mut dyn FnMut(&Problem<'_>));

/// A problem that can be handed to an engine again and again.
pub struct Subject {
    pub name: String,
    problem: Box<Build>,
}

impl Subject {
    pub fn new(name: &str, model: &str, data: &str, settings: PriorSettings) -> Self {
        let binding = bound(model, &csv(data));
        let problem = move |f: &mut dyn FnMut(&Problem<'_>)| with_problem(&binding, &settings, |problem| f(problem));
        Subject { name: name.to_owned(), problem: Box::new(problem) }
    }

    pub fn of_case(case: Value, with_unknown: bool) -> Self {
        let name = case["name"].as_str().unwrap().to_owned();
        let problem =
            move |f: &mut dyn FnMut(&Problem<'_>)| cases::with_problem(&case, with_unknown, |problem| f(problem));
        Subject { name, problem: Box::new(problem) }
    }

    pub fn with<T>(&self, f: impl Fn(&Problem<'_>) -> T) -> T {
        let mut answer = None;
        (self.problem)(&mut |problem| answer = Some(f(problem)));
        answer.expect("the problem was handed over")
    }

    pub fn estimate(&self, smc: &Smc, seed: u64) -> Estimate {
        self.with(|problem| smc.ln_p_sequence(problem, Seed(seed), &mut Control::default()).unwrap())
    }

    /// ln Z-hat of each of `runs` independent runs.
    pub fn logs(&self, smc: &Smc, runs: u64, seed: u64) -> Vec<f64> {
        let smc = Smc { runs, threads: 2, ..smc.clone() };
        self.estimate(&smc, seed).runs.iter().map(|run| run.ln_p_sequence).collect()
    }

    pub fn exact(&self) -> f64 {
        self.with(|problem| {
            let exact = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
            exact.ln_p_sequence.value()
        })
    }

    /// A node that every record of the first pattern shows, to order tokens by.
    pub fn seen_node(&self) -> Option<NodeIndex> {
        self.with(|problem| problem.plan.patterns().first().map(|pattern| pattern.seen[0]))
    }
}

/// Independent numbers whose expectation is known.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub n: usize,
    pub mean: f64,
    pub sd: f64,
    z: f64,
}

impl Sample {
    pub fn new(numbers: &[f64], expected: f64) -> Self {
        let n = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / n;
        if numbers.len() == 1 {
            // A result that is certain comes from one run.
            return Sample { n: 1, mean, sd: 0.0, z: Sample::rounding(mean, expected) };
        }
        let sd = (numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        let z = if sd < CERTAIN { Sample::rounding(mean, expected) } else { (mean - expected) / (sd / n.sqrt()) };
        Sample { n: numbers.len(), mean, sd, z }
    }

    /// Of ratios Z-hat / Z.
    pub fn of_ratios(logs: &[f64], want: f64) -> Self {
        Sample::new(&logs.iter().map(|ln| (ln - want).exp()).collect::<Vec<_>>(), 1.0)
    }

    /// A share of `n` tries whose z-score is known otherwise.
    pub fn with_z(n: u64, mean: f64, z: f64) -> Self {
        Sample { n: n as usize, mean, sd: f64::NAN, z }
    }

    fn rounding(mean: f64, expected: f64) -> f64 {
        if (mean - expected).abs() < CERTAIN { 0.0 } else { f64::INFINITY }
    }

    /// |z|; infinite for what is no number.
    pub fn worst(&self) -> f64 {
        if self.z.is_nan() { f64::INFINITY } else { self.z.abs() }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {} of {} with sd {}, z = {:.2}", self.mean, self.n, self.sd, self.z)
    }
}

/// Runs `sample(n, part)` and once more with 4 n if it is too far off. Gives the |z| that passed.
#[track_caller]
pub fn check(what: &str, n: u64, mut sample: impl FnMut(u64, u64) -> Sample) -> f64 {
    let first = sample(n, 0);
    if first.worst() <= Z {
        return first.worst();
    }
    let second = sample(4 * n, 1);
    assert!(second.worst() <= Z, "{what}: {first}, then {second}");
    second.worst()
}

/// Largest standard deviation of Z-hat / Z. Settings are chosen so that it is well below. An error that shows in rare runs
/// alone, but there by orders of magnitude, would hide from a z-score: it makes its own standard error.
const LARGEST_SD: f64 = 1.0;

/// The mean of Z-hat / Z is 1, and no run is far off.
#[track_caller]
pub fn check_unbiased(subject: &Subject, want: f64, smc: &Smc, n: u64, seed: u64) -> f64 {
    let what = format!("{} {} particles {:?}", subject.name, smc.particles, smc.path);
    check(&what, n, |n, part| {
        let sample = Sample::of_ratios(&subject.logs(smc, n, 2 * seed + part), want);
        if sample.sd < LARGEST_SD { sample } else { Sample { z: f64::INFINITY, ..sample } }
    })
}
