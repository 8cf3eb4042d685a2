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
use std::rc::Rc;

/// The shares of the work that were reported first and last.
type Seen = Rc<RefCell<(f64, f64)>>;

/// Stops a job once this share of it is done.
fn control(saved: &Saved, cut: f64) -> (Control<'static>, Seen) {
    let cancel = Cancel::default();
    let seen: Seen = Rc::new(RefCell::new((f64::INFINITY, 0.0)));
    let (switch, list) = (cancel.clone(), seen.clone());
    let look = move |progress: Progress<'_>| {
        let mut list = list.borrow_mut();
        if list.0.is_infinite() && progress.fraction > 0.0 {
            list.0 = progress.fraction;
        }
        list.1 = progress.fraction;
        if progress.fraction >= cut {
            switch.cancel();
        }
    };
    (Control::new(Keeper { saved: saved.clone(), look }).with_cancel(cancel), seen)
}

/// Stops a job at ten places, one after another, and lets it go on each time. A step is this share of the work.
#[track_caller]
fn check<R: PartialEq + std::fmt::Debug>(step: f64, job: impl Fn(&mut Control<'_>) -> polyurn::Result<R>) {
    let whole = job(&mut Control::default()).unwrap();
    let saved = Saved::default();
    let mut n_stopped = 0;
    let mut reached = 0.0;
    let found = loop {
        let (mut control, seen) = control(&saved, reached + 0.08);
        let found = job(&mut control);
        drop(control);
        let (first, last) = *seen.borrow();
        // Where it was stopped it goes on; the step under way then may be made again.
        assert!(n_stopped == 0 || first >= reached - 2.0 * step, "at {first} after {reached}, a step is {step}");
        match found {
            Err(Error::Stopped(Stop::Cancelled)) => n_stopped += 1,
            found => break found.unwrap(),
        }
        reached = last;
        assert!(n_stopped < 100);
    };
    assert_eq!(found, whole);
    // It was not over before anybody could look.
    assert!(n_stopped >= 2, "stopped {n_stopped} times");
}

/// Stops a job of several stages after a few looks, again and again, and lets it go on each time: it comes to the same answer.
#[track_caller]
fn check_stages<R: PartialEq + std::fmt::Debug>(job: impl Fn(&mut Control<'_>) -> polyurn::Result<R>) {
    let whole = job(&mut Control::default()).unwrap();
    let saved = Saved::default();
    let mut stages: Vec<String> = Vec::new();
    let mut n_stopped = 0;
    let found = loop {
        let cancel = Cancel::default();
        let names: Rc<RefCell<Vec<String>>> = Rc::default();
        let (switch, list) = (cancel.clone(), names.clone());
        let mut n_looks = 0;
        let look = move |progress: Progress<'_>| {
            list.borrow_mut().push(progress.stage.to_owned());
            n_looks += 1;
            if n_looks > 6 {
                switch.cancel();
            }
        };
        let mut control = Control::new(Keeper { saved: saved.clone(), look }).with_cancel(cancel);
        let found = job(&mut control);
        drop(control);
        stages.extend(names.borrow().first().cloned());
        match found {
            Err(Error::Stopped(Stop::Cancelled)) => n_stopped += 1,
            found => break found.unwrap(),
        }
        assert!(n_stopped < 1000, "it does not get on");
    };
    assert_eq!(found, whole);
    // Six looks are not enough for any stage: what was not kept would never be done.
    stages.sort();
    stages.dedup();
    assert!(n_stopped >= 3 && stages.len() >= 2, "{n_stopped} {stages:?}");
}

fn with_matrix(sizes: (usize, usize), n: usize, f: impl FnOnce(&Problem<'_>)) {
    let binding = bound("k[6] -> i j", &csv(&random_table(908, &[("i", sizes.0), ("j", sizes.1)], n)));
    with_problem(&binding, &settings(2.0), f);
}

/// How much larger a job is where code is optimised: it would be over before anybody could look at it several times.
const LARGER: usize = if cfg!(debug_assertions) { 1 } else { 10 };

#[test]
fn a_particle_run_goes_on_at_the_token_or_cooling_step_where_it_was_stopped() {
    let n_tokens = 300 * LARGER;
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
    with_matrix((12, 9), 300 * LARGER, |problem| {
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
        let gibbs = Gibbs { chains: 1, sweeps: 60 * LARGER as u64, ..Default::default() };
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
            sweeps: 200,
            pilots: 1,
            pilot_sweeps: 200,
            is_bracket: true,
            ..Default::default()
        };
        check_stages(|control| anneal.ln_p_sequence(problem, Seed(1), control));
    });
}

#[test]
fn climbs_go_on_at_the_sweep_where_they_were_stopped() {
    let max_iter = 500 * LARGER as u64;
    let climb = Climb { restarts: 1, max_iter, tol: 0.0, threads: 1, ..Default::default() };
    let step = 1.0 / max_iter as f64;
    with_matrix((150, 120), 15_000, |problem| {
        for free in [Free::default(), Free { a: true, ..Free::default() }] {
            let vb = Vb { climb: climb.clone(), free, ..Default::default() };
            check(step, |control| {
                let fit = vb.fit(problem, Seed(1), control)?;
                Ok((fit.bound.value().to_bits(), fit.climbs.trace.clone(), fit.tables(problem)))
            });
        }
        for trials in [1, 3] {
            let em = Em { climb: climb.clone(), trials, mode: Mode::Softmax, ..Default::default() };
            check(step, |control| {
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
