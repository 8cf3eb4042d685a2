//! Where annealed runs scatter more than was foreseen, `auto` asks particles, too: what is taken, what is said of it, and that a job
//! that is stopped on the way goes on to the same answer.

use crate::support::{Keeper, Saved, bound, csv, settings};
use polyurn::control::{Cancel, Control, Progress};
use polyurn::engine::anneal::AnnealWish;
use polyurn::engine::smc::Wish;
use polyurn::graph::{Binding, ModelSource, bind_without_data};
use polyurn::prior::Prior;
use polyurn::score::{Means, Method, Score, Scoring};
use polyurn::simulate::{Tokens, simulate};
use polyurn::{Error, Result, Seed, Stop, Warning};
use std::cell::RefCell;
use std::rc::Rc;

const MEANS: Means = Means { threads: 1, time: None, seed: Seed(1) };

/// 1,500 tokens of two components, to be explained by so many.
fn tokens_of_two_components(n_components: u32) -> Binding {
    let (model, _, _) = bind_without_data(&ModelSource::parse("r[2] -> i[4] j[4] k[4]").unwrap(), None).unwrap();
    let prior = Prior::build(&model, &settings(4.0)).unwrap();
    let tensor = simulate(&model, &prior, Tokens::Given(1500), Seed(1), &mut Control::default()).unwrap();
    let row = |(values, count): &(Vec<u32>, u64)| format!("{},{},{},{count}\n", values[1], values[2], values[3]);
    let rows: String = tensor.iter().map(row).collect();
    bound(&format!("r[{n_components}] -> i j k"), &csv(&format!("i,j,k,count\n{rows}")))
}

/// Sizes that a test can wait for.
fn small() -> Scoring {
    let anneal = AnnealWish {
        particles: Some(2),
        sweeps: Some(150),
        pilots: Some(4),
        pilot_sweeps: Some(150),
        ..Default::default()
    };
    let wish = Wish { particles: Some(64), rejuvenation: Some(8), ..Default::default() };
    Scoring { anneal, wish, ..Default::default() }
}

fn score(scoring: &Scoring, binding: &Binding, control: &mut Control<'_>) -> Result<Score> {
    scoring.score(binding, &settings(1.0), MEANS, control)
}

/// All of it but the time that it took.
fn timeless(score: Score) -> Score {
    Score { seconds: 0.0, ..score }
}

/// Nobody waits for particles where the answer cannot win any more.
#[test]
fn a_model_out_of_reach_of_its_rival_gets_no_second_opinion() {
    let binding = tokens_of_two_components(10);
    let with_rival = |rival: f64| {
        let scoring = Scoring { rival: Some(rival), ..small() };
        score(&scoring, &binding, &mut Control::default()).unwrap()
    };
    let annealed = score(&Scoring { method: Method::Anneal, ..small() }, &binding, &mut Control::default()).unwrap();
    let (height, error) = (annealed.log_marginal, annealed.std_error.unwrap());
    // What counts beside particles is the error as it would be of many runs.
    let plain = annealed.annealed.as_ref().and_then(|found| found.estimate.plain_error).unwrap();
    assert!(plain < error, "{plain} {error}");
    let far = with_rival(height + 11.0 * plain + 25.0);
    assert_eq!((&*far.method, far.log_marginal, far.std_error), ("anneal", height, Some(error)));
    assert!(far.why.contains("and the best model is at least some"), "{}", far.why);
    // Within ten errors anything may come of it.
    let near = with_rival(height + 9.0 * plain);
    assert_eq!(near.method, "smc", "{}", near.why);
}

/// Five times as many components as there are: annealed runs end in modes that are nats apart.
#[test]
fn particles_are_asked_where_annealed_runs_scatter_and_taken_where_they_do_better() {
    let binding = tokens_of_two_components(10);
    let found = score(&small(), &binding, &mut Control::default()).unwrap();
    assert_eq!(found.method, "smc", "{}", found.why);
    assert!(found.why.contains("annealed runs left an error of"), "{}", found.why);
    assert!(found.why.ends_with("so that of particles is taken"), "{}", found.why);
    assert!(found.annealed.is_none() && found.particles.is_some());
    // They are those that would have come alone.
    let alone = score(&Scoring { method: Method::Smc, ..small() }, &binding, &mut Control::default()).unwrap();
    assert_eq!(
        found.particles.as_ref().map(|found| &found.estimate.runs),
        alone.particles.as_ref().map(|found| &found.estimate.runs)
    );
    assert_eq!((found.log_marginal, found.std_error), (alone.log_marginal, alone.std_error));
    // Annealing says what is taken, and no less than its own error is left.
    let annealed = score(&Scoring { method: Method::Anneal, ..small() }, &binding, &mut Control::default()).unwrap();
    assert!(annealed.std_error.unwrap() > 0.5, "{annealed:?}");
}

#[test]
fn where_annealed_runs_agree_nothing_else_is_done() {
    let binding = tokens_of_two_components(2);
    let default = Scoring::default();
    let found = score(&default, &binding, &mut Control::default()).unwrap();
    let alone = score(&Scoring { method: Method::Anneal, ..default }, &binding, &mut Control::default()).unwrap();
    assert_eq!(found.annealed, alone.annealed);
    assert!(found.why.contains("annealing should be off by") && !found.why.contains("left an error"), "{}", found.why);
    assert!(found.particles.is_none());
}

/// The shares of the work that were reported.
type Shares = Rc<RefCell<Vec<f64>>>;

/// Stops in this way once this share of the work is done.
fn stopped_at(saved: &Saved, cut: f64, stop: fn(&Cancel)) -> (Control<'static>, Shares) {
    let (cancel, shares) = (Cancel::default(), Shares::default());
    let (switch, list) = (cancel.clone(), shares.clone());
    let look = move |progress: Progress<'_>| {
        list.borrow_mut().push(progress.fraction);
        if progress.fraction >= cut {
            stop(&switch);
        }
    };
    (Control::new(Keeper { saved: saved.clone(), look }).with_cancel(cancel), shares)
}

#[test]
fn a_job_that_is_stopped_anywhere_goes_on_to_the_same_answer() {
    let binding = tokens_of_two_components(10);
    let whole = timeless(score(&small(), &binding, &mut Control::default()).unwrap());
    let saved = Saved::default();
    let mut n_stopped = [0, 0];
    let mut reached = 0.0;
    let found = loop {
        let (mut control, shares) = stopped_at(&saved, reached + 0.05, Cancel::cancel);
        let found = score(&small(), &binding, &mut control);
        drop(control);
        let shares = shares.borrow();
        // Progress only goes forward, and annealing that is done is not done again.
        assert!(shares.windows(2).all(|pair| pair[0] <= pair[1]), "{shares:?}");
        assert!(reached < 0.8 || shares.first().is_none_or(|&first| first >= 0.8), "{reached}: {shares:?}");
        match found {
            Err(Error::Stopped(Stop::Cancelled)) => n_stopped[usize::from(reached >= 0.8)] += 1,
            found => break found.unwrap(),
        }
        reached = *shares.last().unwrap();
    };
    assert_eq!(timeless(found), whole);
    assert!(n_stopped.iter().all(|&n| n >= 1), "{n_stopped:?}: before and after annealing was done");
}

/// Between the engines: the first look of the second is the last.
#[test]
fn a_job_that_is_stopped_between_its_engines_has_annealed() {
    let binding = tokens_of_two_components(10);
    let whole = timeless(score(&small(), &binding, &mut Control::default()).unwrap());
    let saved = Saved::default();
    let (mut control, _) = stopped_at(&saved, 0.8, Cancel::cancel);
    assert!(matches!(score(&small(), &binding, &mut control), Err(Error::Stopped(Stop::Cancelled))));
    drop(control);
    let (mut control, shares) = stopped_at(&saved, 2.0, Cancel::cancel);
    assert_eq!(timeless(score(&small(), &binding, &mut control).unwrap()), whole);
    assert!(shares.borrow()[0] >= 0.8, "{shares:?}");
    // It is not taken up by a job with other particles, nor by one of annealing alone.
    let other = Scoring { wish: Wish { particles: Some(65), ..small().wish }, ..small() };
    let alone = Scoring { method: Method::Anneal, ..small() };
    for scoring in [other, alone] {
        let (mut control, _) = stopped_at(&saved, 2.0, Cancel::cancel);
        assert!(matches!(score(&scoring, &binding, &mut control), Err(Error::Checkpoint(_))));
    }
}

#[test]
fn a_job_whose_time_is_up_before_particles_are_done_answers_with_annealing() {
    let binding = tokens_of_two_components(10);
    let annealed = score(&Scoring { method: Method::Anneal, ..small() }, &binding, &mut Control::default()).unwrap();
    let (mut control, _) = stopped_at(&Saved::default(), 0.8, Cancel::finish);
    let found = score(&small(), &binding, &mut control).unwrap();
    assert_eq!((found.method.as_ref(), &found.annealed), ("anneal", &annealed.annealed));
    assert!(found.why.ends_with("and for particles there was no time"), "{}", found.why);
    let time_up =
        |score: &Score| score.warnings.iter().filter(|warning| matches!(warning, Warning::TimeUp { .. })).count();
    assert_eq!((time_up(&found), time_up(&annealed)), (1, 0), "more time would have given more");
    // One that is cut short while it anneals does not begin anything else.
    let (mut control, _) = stopped_at(&Saved::default(), 0.7, Cancel::finish);
    let found = score(&small(), &binding, &mut control).unwrap();
    assert_eq!((found.method.as_ref(), time_up(&found)), ("anneal", 1), "{:?}", found.warnings);
}
