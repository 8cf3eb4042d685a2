//! A ranking that is stopped and taken up again.

use crate::support::{Keeper, Saved, csv};
use polyurn::control::{Cancel, Control, Progress};
use polyurn::engine::smc::Wish;
use polyurn::graph::ModelSource;
use polyurn::prior::PriorSettings;
use polyurn::score::{Method, Scoring};
use polyurn::select::{Contest, Entry, Field, Logbook, Scored};
use polyurn::{Error, Seed, Stop};
use std::time::{Duration, Instant};

/// Answers to three questions, of two kinds of people.
fn field() -> Field {
    let mut text = String::from("a,b,c,count\n");
    for (a, b, c, n) in
        [(0, 0, 0, 9), (0, 0, 1, 4), (1, 1, 0, 2), (1, 1, 1, 11), (2, 0, 1, 3), (2, 1, 1, 6), (0, 1, 0, 1)]
    {
        text += &format!("{a},{b},{c},{n}\n");
    }
    let entry = Entry {
        name: "r[1..4] -> a b c".into(),
        source: ModelSource::parse("r[1..4] -> a b c").unwrap(),
        settings: PriorSettings { a: Some(2.0), ..Default::default() },
    };
    Field::new(vec![entry], csv(&text), None).unwrap()
}

/// Particles for all models, and bounds beside them; or cheap scores first.
fn contest(method: Method, cancel: &Cancel) -> Contest {
    let wish = match method {
        Method::Smc => Wish { particles: Some(50), runs: Some(3), heat: Some(1.0), ..Default::default() },
        _ => Wish::default(),
    };
    let scoring = Scoring { method, wish, patience: 0.0, ..Default::default() };
    Contest {
        scoring,
        threads: 1,
        seed: Seed(3),
        a: None,
        deadline: None,
        time_limit: None,
        cancel: cancel.clone(),
        wants_bounds: true,
        most_rounds: 1,
    }
}

/// Stops at a look, after so many others.
fn keeper(cancel: &Cancel, mut looks_left: u32, saved: &Saved) -> Keeper<impl FnMut(Progress<'_>) + use<>> {
    let (cancel, saved) = (cancel.clone(), saved.clone());
    let look = move |_: Progress<'_>| match looks_left {
        0 => cancel.cancel(),
        _ => looks_left -= 1,
    };
    Keeper { saved, look }
}

/// What was found, without the time it took.
fn timeless(found: Vec<Option<Scored>>) -> Vec<String> {
    let strip = |found: Option<Scored>| {
        let mut found = found.expect("there was time for all");
        (found.seconds, found.score.seconds) = (0.0, 0.0);
        format!("{:?} {:?} {}", found.score, found.bound, found.n_rounds)
    };
    found.into_iter().map(strip).collect()
}

#[test]
fn a_ranking_that_is_stopped_anywhere_goes_on_to_the_same_answer() {
    let field = field();
    for method in [Method::Smc, Method::Auto] {
        let unbroken = contest(method, &Cancel::default());
        let logbook = Logbook::open(&field, &unbroken, &mut Control::default()).unwrap();
        let whole = timeless(unbroken.run(&field, &logbook, &mut Control::default()).unwrap());
        let saved = Saved::default();
        let mut n_stopped: u32 = 0;
        let mut n_done = 0;
        // Each attempt is stopped one look later than the last; whatever was finished by then is not done again.
        let found = loop {
            let cancel = Cancel::default();
            let mut control = Control::new(keeper(&cancel, n_stopped, &saved)).with_cancel(cancel.clone());
            let contest = contest(method, &cancel);
            let logbook = Logbook::open(&field, &contest, &mut control).unwrap();
            assert_eq!(logbook.n_done(), n_done, "what was entered is there again");
            match contest.run(&field, &logbook, &mut control) {
                Ok(found) => break found,
                Err(Error::Stopped(Stop::Cancelled)) => n_stopped += 1,
                Err(error) => panic!("{error}"),
            }
            n_done = logbook.n_done();
        };
        assert_eq!(timeless(found), whole);
        assert!(n_stopped >= 8 && n_done >= 7, "{n_stopped} {n_done}");
    }
}

#[test]
fn a_logbook_of_something_else_is_refused() {
    let field = field();
    let saved = Saved::default();
    let open = |contest: &Contest, saved: &Saved| {
        let mut control = Control::new(keeper(&Cancel::default(), u32::MAX, saved));
        Logbook::open(&field, contest, &mut control).map(|logbook| (logbook, control))
    };
    let cancel = Cancel::default();
    let first = contest(Method::Smc, &cancel);
    let (logbook, mut control) = open(&first, &saved).unwrap();
    cancel.cancel();
    assert!(first.run(&field, &logbook, &mut control).is_err());
    let threads = Contest { threads: 2, ..first.clone() };
    assert!(open(&threads, &saved).is_ok(), "threads do not matter");
    let other = Contest { seed: Seed(4), ..first.clone() };
    assert!(matches!(open(&other, &saved), Err(Error::Checkpoint(_))));
    let good = saved.borrow().clone().unwrap();
    for cut in 0..good.len() {
        *saved.borrow_mut() = Some(good[..cut].to_vec());
        assert!(matches!(open(&first, &saved), Err(Error::Checkpoint(_))), "cut at {cut}");
    }
}

#[test]
fn scores_that_a_time_limit_made_small_are_made_anew_when_there_is_more_time() {
    let field = field();
    let run = |limit: Option<Duration>, saved: &Saved| {
        let cancel = Cancel::default();
        let mut control = Control::new(keeper(&cancel, u32::MAX, saved));
        // Sizes follow the time, but for those that are exact.
        let scoring = Scoring { patience: 0.0, ..Default::default() };
        let deadline = limit.map(|limit| Instant::now() + limit);
        let contest = Contest { scoring, deadline, time_limit: limit, ..contest(Method::Auto, &cancel) };
        let logbook = Logbook::open(&field, &contest, &mut control).unwrap();
        let n_before = logbook.n_done();
        let found = contest.run(&field, &logbook, &mut control).unwrap();
        // What a signal would make it write down.
        cancel.cancel();
        assert!(contest.run(&field, &logbook, &mut control).is_err());
        (found, n_before, logbook.n_done())
    };
    let unbroken = timeless(run(None, &Saved::default()).0);
    let saved = Saved::default();
    let short = Duration::from_millis(150);
    let (_, _, n_done) = run(Some(short), &saved);
    let (_, n_before, _) = run(Some(short), &saved);
    assert!(n_done > 4 && n_before == n_done, "bounds and scores are there again: {n_done} {n_before}");
    assert_eq!(timeless(run(None, &saved).0), unbroken);
}
