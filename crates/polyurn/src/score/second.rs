//! A second opinion: where annealing leaves more doubt than was foreseen, particles are asked, too.
//!
//! Chains that find the reference stay in one mode. With more hidden values than the data need, the posterior has many, and
//! annealed runs scatter; particles, which begin before any mode is there, often do better. How a run will do cannot be told
//! before it is made, so `auto` looks at the scatter afterwards.

use super::{Means, SHARE_OF_PILOTS, Scoring, share_of_pilots};
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::anneal::{Anneal, AnnealEstimate};
use crate::engine::smc::{Estimate, Settled};
use crate::error::{Error, Result, Stop};
use crate::evidence::evidence;
use crate::math::Double;
use crate::warning::Warning;
use serde::Serialize;

/// Shares of a time limit for annealing that may be followed by particles, and for those. They are fixed, so that the sizes of
/// annealing do not depend on what comes after it.
pub(super) const SHARE_FOR_ANNEALING: f64 = 0.6;
const SHARE_FOR_PARTICLES: f64 = 0.35;

/// Share of the progress that annealing takes. Mostly it is all there is to do.
const PROGRESS_OF_ANNEALING: f64 = 0.8;

/// Nats above the evidence in which an estimate that is right on average hardly ever ends: with a probability of exp(-3) at most,
/// one in twenty.
const HARDLY_ABOVE: f64 = 3.0;

/// Two numbers that are further apart than so many of their errors do not go together.
const ERRORS: f64 = 3.0;

/// An annealed answer so many nats below a rival, or so many of its errors if that is more, is out of reach of it: errors are
/// too small where runs agree in one poor mode.
const NATS_OUT_OF_REACH: f64 = 25.0;
const ERRORS_OUT_OF_REACH: f64 = 10.0;

/// How a checkpoint begins that has the answer of annealing.
const ANNEALED: &[u8] = b"annealed ";

/// Whose number is taken.
pub(super) enum Opinion {
    Annealed(AnnealEstimate),
    Particles(Box<Settled>, Estimate),
}

impl Opinion {
    /// The number.
    pub fn ln_p_sequence(&self) -> f64 {
        match self {
            Opinion::Annealed(estimate) => estimate.ln_p_sequence,
            Opinion::Particles(_, estimate) => estimate.ln_p_sequence,
        }
    }
}

/// The number that is taken, and what there is to say about it.
pub(super) struct Choice {
    pub opinion: Opinion,
    /// To follow why annealing was taken; empty where there was nothing to choose.
    pub remark: String,
    /// Where there was no time for all of it.
    pub warning: Option<Warning>,
}

impl Choice {
    /// The number of annealing.
    pub fn annealed(estimate: AnnealEstimate, remark: String) -> Self {
        Choice { opinion: Opinion::Annealed(estimate), remark, warning: None }
    }
}

impl Scoring {
    /// Anneals and, where that leaves an error of more than `doubt` nats, asks particles, too.
    pub(super) fn with_second_opinion(
        &self,
        problem: &Problem<'_>,
        anneal: &Anneal,
        doubt: f64,
        means: Means,
        control: &mut Control<'_>,
    ) -> Result<Choice> {
        let settings = format!("second opinion {:?} {:?} {:?}", self.anneal, self.wish, means.time);
        let fingerprint = problem.fingerprint(&settings, means.seed)?;
        let (annealed, done) = match FirstPart::load(fingerprint, control)? {
            Some(first) => first,
            None => {
                let annealed = control.within((0.0, PROGRESS_OF_ANNEALING), |control| {
                    control.expect_pilots(share_of_pilots(anneal));
                    anneal.ln_p_sequence(problem, means.seed, control)
                })?;
                let done = FirstPart { fingerprint, annealed: &annealed }.to_bytes();
                (annealed, done)
            }
        };
        // Beside particles, whose errors are not made larger for few runs.
        let error = annealed.plain_error.unwrap_or(f64::INFINITY);
        if error <= doubt || annealed.runs.is_empty() {
            return Ok(Choice::annealed(annealed, String::new()));
        }
        let scatter = match annealed.plain_error {
            Some(error) => format!("annealed runs left an error of {} nats", rough(error)),
            None => "one run of annealing does not tell its error".into(),
        };
        if let Some(rival) = self.rival {
            let found = evidence(problem, Double::from(annealed.ln_p_sequence))?.log_marginal;
            if is_out_of_reach(rival, found, error) {
                let below = rough(rival - found);
                let remark = format!("; {scatter}, and the best model is at least some {below} nats above");
                return Ok(Choice::annealed(annealed, remark));
            }
        }
        let is_cut = annealed.warnings.iter().any(is_time_up);
        if is_cut || control.is_turn_over() {
            // Annealing itself warns of what is not finished.
            return Ok(Choice::annealed(annealed, format!("; {scatter}, and {NO_TIME}")));
        }
        let means = Means { time: means.time.map(|time| time.mul_f64(SHARE_FOR_PARTICLES)), ..means };
        let particles = control.within((PROGRESS_OF_ANNEALING, 1.0), |control| {
            control.after(done, |control| {
                if control.load_checkpoint()?.is_none() {
                    control.checkpoint_now(Vec::new)?;
                }
                control.with_pilots(SHARE_OF_PILOTS, |control| self.ask_particles(problem, means, control))
            })
        });
        let (settled, estimate) = match particles {
            Ok(found) => found,
            Err(Error::TooCostly(_)) => {
                return Ok(Choice::annealed(
                    annealed,
                    format!("; {scatter}, and particles would need too much memory"),
                ));
            }
            Err(Error::Stopped(Stop::Deadline)) => {
                let finished = annealed.runs.len() as u64;
                let warning = Some(Warning::TimeUp { finished, asked: finished + self.wish.n_runs() });
                return Ok(Choice { warning, ..Choice::annealed(annealed, format!("; {scatter}, and {NO_TIME}")) });
            }
            Err(error) => return Err(error),
        };
        let theirs = estimate.std_error.unwrap_or(f64::INFINITY);
        let is_theirs = is_second_better((annealed.ln_p_sequence, error), (estimate.ln_p_sequence, theirs));
        // Whoever is taken: what was cut short is not finished.
        let warning = estimate.warnings.iter().find(|warning| is_time_up(warning)).filter(|_| !is_theirs).cloned();
        let of_particles =
            if theirs.is_finite() { format!("one of {} nats", rough(theirs)) } else { "an unknown one".into() };
        let difference = estimate.ln_p_sequence - annealed.ln_p_sequence;
        let lies = if difference < 0.0 { "below" } else { "above" };
        let whose = if is_theirs { "particles" } else { "annealing" };
        let remark = format!(
            "; {scatter}, particles {of_particles} and a number {} nats {lies}, so that of {whose} is taken",
            rough(difference.abs())
        );
        let opinion =
            if is_theirs { Opinion::Particles(Box::new(settled), estimate) } else { Opinion::Annealed(annealed) };
        Ok(Choice { opinion, remark, warning })
    }

    fn ask_particles(
        &self,
        problem: &Problem<'_>,
        means: Means,
        control: &mut Control<'_>,
    ) -> Result<(Settled, Estimate)> {
        let settled = self.wish_for(problem, means)?.settle(problem, self.crew(means), means.seed, control)?;
        let estimate = settled.smc.ln_p_sequence(problem, means.seed, control)?;
        Ok((settled, estimate))
    }
}

const NO_TIME: &str = "for particles there was no time";

fn is_time_up(warning: &Warning) -> bool {
    matches!(warning, Warning::TimeUp { .. })
}

/// What a checkpoint begins with once annealing is done. Before that it is one of annealing alone.
#[derive(Debug, Serialize)]
struct FirstPart<'a> {
    /// Tells jobs apart.
    fingerprint: u64,
    annealed: &'a AnnealEstimate,
}

impl FirstPart<'_> {
    fn to_bytes(&self) -> Vec<u8> {
        [ANNEALED, &postcard::to_stdvec(self).expect("plain data")].concat()
    }

    /// The answer of annealing in the checkpoint, if it came so far, and the bytes of it.
    fn load(fingerprint: u64, control: &mut Control<'_>) -> Result<Option<(AnnealEstimate, Vec<u8>)>> {
        let Some(bytes) = control.load_checkpoint()? else { return Ok(None) };
        let Some(rest) = bytes.strip_prefix(ANNEALED) else { return Ok(None) };
        match postcard::take_from_bytes::<(u64, AnnealEstimate)>(rest) {
            Ok(((found, annealed), of_particles)) if found == fingerprint => {
                Ok(Some((annealed, bytes[..bytes.len() - of_particles.len()].to_vec())))
            }
            _ => Err(control.refuse_checkpoint(OTHER)),
        }
    }
}

const OTHER: &str = "it belongs to other data, another model or other settings; remove the file to start anew, or repeat the \
                     command that wrote it";

/// Whether an estimate with this error cannot be that of a model as good as its rival.
fn is_out_of_reach(rival: f64, found: f64, error: f64) -> bool {
    rival - found > NATS_OUT_OF_REACH.max(ERRORS_OUT_OF_REACH * error)
}

/// Whether the second of two estimates, each with its error, is the one to take.
///
/// The one with the smaller error if they agree. If they do not, one of the errors is wrong, and the higher number is taken: each
/// estimate is right on average, so it may be any number of nats too low, and hardly ever much too high.
fn is_second_better((first, first_error): (f64, f64), (second, second_error): (f64, f64)) -> bool {
    let apart = HARDLY_ABOVE.min(ERRORS * first_error.hypot(second_error));
    match second - first {
        difference if difference > apart => true,
        difference if difference < -apart => false,
        _ => second_error < first_error,
    }
}

/// Nats in words.
fn rough(nats: f64) -> String {
    if nats < 0.095 {
        format!("{nats:.2}")
    } else if nats < 9.5 {
        format!("{nats:.1}")
    } else {
        format!("{nats:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::{is_out_of_reach, is_second_better};

    #[test]
    fn an_answer_is_out_of_reach_by_nats_and_by_errors() {
        assert!(is_out_of_reach(-10.0, -36.0, 2.0));
        assert!(!is_out_of_reach(-10.0, -34.0, 2.0), "24 nats");
        assert!(!is_out_of_reach(-10.0, -49.0, 4.0), "39 nats, and an error of 4");
        assert!(is_out_of_reach(-10.0, -51.0, 4.0));
        assert!(!is_out_of_reach(-10.0, -1e4, f64::INFINITY), "one run tells no error");
        assert!(!is_out_of_reach(f64::NEG_INFINITY, -1e4, 1.0), "there is no rival");
        assert!(!is_out_of_reach(-10.0, -5.0, 0.0), "it is the best itself");
        assert!(is_out_of_reach(-10.0, f64::NEG_INFINITY, 1.0));
    }

    #[test]
    fn the_smaller_error_wins_where_two_numbers_agree_and_else_the_higher_number() {
        assert!(is_second_better((-10.0, 0.5), (-11.0, 0.1)));
        assert!(!is_second_better((-10.0, 0.1), (-9.0, 0.5)));
        // Not by chance.
        assert!(is_second_better((-20.0, 0.1), (-10.0, 0.9)));
        assert!(!is_second_better((-10.0, 2.0), (-20.0, 0.1)));
        assert!(!is_second_better((-10.0, 0.5), (-12.0, 0.1)), "beyond three errors of 0.51");
        assert!(
            !is_second_better((-10.0, 2.0), (-13.5, 0.1)),
            "an estimate is 3.5 nats too high once in 33 times at most"
        );
        assert!(is_second_better((-10.0, 2.0), (-12.5, 0.1)));
        // One run tells no error.
        assert!(is_second_better((-10.0, f64::INFINITY), (-11.0, 0.3)));
        assert!(!is_second_better((f64::NEG_INFINITY, 0.0), (f64::NEG_INFINITY, 0.0)), "neither");
    }
}
