//! A job that is stopped in the middle of a run or a climb goes on there: the same bytes, and no step twice.

use crate::smc_support::path_of;
use crate::support::{Keeper, Saved, bound, csv, random_table, settings, with_problem};
use polyurn::control::{Cancel, Control, Progress};
use polyurn::engine::Problem;
use polyurn::engine::anneal::Anneal;
use polyurn::engine::gibbs::Gibbs;
use polyurn::engine::smc::Smc;
use polyurn::engine::sweeps::{BestAllocation, Climb, Em, Free, Given, Mode, Vb};
use polyurn::{Error, Seed, Stop};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Cut points of each job, at the least.
const CUTS: usize = 10;

/// A stage and the share of the work that was done in it.
type Sight = (String, f64);

/// What was reported first, of work that is done, and last.
type Seen = Rc<RefCell<Option<(Sight, Sight)>>>;

/// Stops a job once it has come this much further than it was when it was first looked at.
fn control(saved: &Saved, stride: f64) -> (Control<'static>, Seen) {
    let cancel = Cancel::default();
    let seen = Seen::default();
    let (switch, list) = (cancel.clone(), seen.clone());
    let look = move |progress: Progress<'_>| {
        let now = (progress.stage.to_owned(), progress.fraction);
        let mut list = list.borrow_mut();
        let (first, last) = list.get_or_insert_with(|| (now.clone(), now.clone()));
        *last = now;
        if last.0 != first.0 || last.1 >= first.1 + stride {
            switch.cancel();
        }
    };
    (Control::new(Keeper { saved: saved.clone(), look }).with_cancel(cancel), seen)
}

/// Stops a job at ten places and more, one after another, and lets it go on each time: where it was stopped it goes on, so that no
/// more than the step under way is made again, and it comes to the same bytes. A step is this share of the work. Gives the stages in
/// which it was stopped.
#[track_caller]
fn check<R: PartialEq + std::fmt::Debug>(
    step: f64,
    job: impl Fn(&mut Control<'_>) -> polyurn::Result<R>,
) -> BTreeSet<String> {
    let whole = job(&mut Control::default()).unwrap();
    let saved = Saved::default();
    let mut stops: Vec<Sight> = Vec::new();
    let found = loop {
        let (mut control, seen) = control(&saved, 0.02);
        let found = job(&mut control);
        drop(control);
        let seen = seen.borrow().clone();
        if let (Some(before), Some((first, _))) = (stops.last(), &seen)
            && before.0 == first.0
        {
            let (before, first) = (before.1, first.1);
            assert!(first >= before - 2.0 * step, "at {first} after {before}, a step is {step}");
        }
        match found {
            Err(Error::Stopped(Stop::Cancelled)) => stops.push(seen.expect("it was stopped after a look").1),
            found => break found.unwrap(),
        }
        assert!(stops.len() < 200, "it does not get on");
    };
    assert_eq!(found, whole);
    assert!(stops.len() >= CUTS, "it was over after {} stops", stops.len());
    stops.into_iter().map(|(stage, _)| stage).collect()
}

fn with_matrix(sizes: (usize, usize), n: usize, f: impl FnOnce(&Problem<'_>)) {
    let binding = bound("k[6] -> i j", &csv(&random_table(908, &[("i", sizes.0), ("j", sizes.1)], n)));
    with_problem(&binding, &settings(2.0), f);
}

/// How much larger a job is where code is optimised: it would be over before anybody could look at it several times.
const LARGER: usize = if cfg!(debug_assertions) { 1 } else { 10 };

#[test]
fn a_particle_run_goes_on_at_the_token_or_cooling_step_where_it_was_stopped() {
    let n_tokens = 2000 * LARGER;
    with_matrix((12, 9), n_tokens, |problem| {
        // Moves, groups and cooling, each step of which is as much as one move of every token; with a thousand particles
        // several shards, and a token is a step.
        for (particles, threads, moves, n_steps) in
            [(256, 1, (24, 4.0, 8, 1), 25.0 + 7.0), (1024, 2, (8, 1.0, 0, 0), n_tokens as f64)]
        {
            let smc = Smc { particles, runs: 1, path: path_of(moves), threads, ..Default::default() };
            check(1.0 / n_steps, |control| {
                let found = smc.ln_p_sequence(problem, Seed(1), control)?;
                Ok((found.ln_p_sequence.to_bits(), found.runs))
            });
        }
    });
}

#[test]
fn the_posterior_of_a_particle_run_that_was_stopped_is_the_same() {
    with_matrix((12, 9), 1000 * LARGER, |problem| {
        let smc = Smc { particles: 400, runs: 2, path: path_of((16, 3.0, 5, 0)), ..Default::default() };
        // Two runs, one after another.
        check(0.5 / (17.0 + 4.0), |control| {
            let found = smc.posterior_with_draws(problem, 3, Seed(2), control)?;
            Ok((found.estimate.ln_p_sequence.to_bits(), found.tables, found.draws))
        });
    });
}

#[test]
fn chains_go_on_at_the_sweep_where_they_were_stopped() {
    with_matrix((150, 120), 15_000, |problem| {
        let gibbs = Gibbs { chains: 1, sweeps: 600 * LARGER as u64, ..Default::default() };
        let step = 1.0 / gibbs.sweeps as f64;
        check(step, |control| Ok(gibbs.run(problem, Seed(1), control)?.chains));
        check(step, |control| gibbs.posterior(problem, 4, Seed(1), control));
    });
}

#[test]
fn annealing_goes_on_at_the_sweep_where_it_was_stopped() {
    with_matrix((150, 120), 15_000, |problem| {
        // Chains that go ahead, and runs both ways: in each stage a sweep is a step.
        let anneal = Anneal {
            particles: 2,
            runs: 1,
            sweeps: 300,
            pilots: 1,
            pilot_sweeps: 300,
            is_bracket: true,
            ..Default::default()
        };
        let stages = check(1.0 / 300.0, |control| anneal.ln_p_sequence(problem, Seed(1), control));
        assert_eq!(stages.into_iter().collect::<Vec<_>>(), ["anneal", "anneal, pace", "anneal, pilots"]);
    });
}

#[test]
fn climbs_go_on_at_the_sweep_where_they_were_stopped() {
    let of = |max_iter: u64| {
        let max_iter = max_iter * LARGER as u64;
        (Climb { restarts: 1, max_iter, tol: 0.0, threads: 1, ..Default::default() }, 1.0 / max_iter as f64)
    };
    let (climb, step) = of(1500);
    let (long_climb, short_step) = of(6000);
    with_matrix((150, 120), 15_000, |problem| {
        for free in [Free::default(), Free { a: true, ..Free::default() }] {
            let vb = Vb { climb: climb.clone(), free, ..Default::default() };
            check(step, |control| {
                let fit = vb.fit(problem, Seed(1), control)?;
                Ok((fit.bound.value().to_bits(), fit.climbs.trace.clone(), fit.tables(problem)))
            });
        }
        for trials in [1, 3] {
            let em = Em { climb: long_climb.clone(), trials, mode: Mode::Softmax, ..Default::default() };
            check(short_step, |control| {
                let fit = em.fit(problem, Seed(1), control)?;
                Ok((fit.ln_likelihood.to_bits(), fit.climbs.trace.clone(), fit.tables(problem)))
            });
        }
        for given in [Given::Expectations, Given::Modes(Mode::Softmax)] {
            let engine = BestAllocation { climb: climb.clone(), given, start: None };
            check(step, |control| {
                let fit = engine.fit(problem, Seed(1), control)?;
                Ok((fit.climbs.trace.clone(), fit.tables(problem)))
            });
        }
    });
}
