//! Progress goes forward only, whatever the stages of a job.

use crate::support::csv;
use polyurn::Seed;
use polyurn::control::{Cancel, Control, Observer, Progress};
use polyurn::engine::Problem;
use polyurn::engine::anneal::AnnealWish;
use polyurn::engine::smc::Wish;
use polyurn::fit::{FitMethod, Fitting};
use polyurn::graph::ModelSource;
use polyurn::prior::{Prior, PriorSettings};
use polyurn::score::{Means, Method, Scoring};
use polyurn::select::{Contest, Entry, Field, Logbook};
use std::time::Instant;

struct Seen<'s>(&'s mut Vec<f64>);

impl Observer for Seen<'_> {
    fn progress(&mut self, progress: Progress<'_>) {
        self.0.push(progress.fraction);
    }
}

#[track_caller]
fn goes_forward(seen: &[f64], least_seen: usize) {
    assert!(seen.windows(2).all(|pair| pair[0] <= pair[1]), "{seen:?}");
    let mut distinct = seen.to_vec();
    distinct.dedup();
    assert!(distinct.len() >= least_seen, "{distinct:?}");
    assert!(seen.iter().all(|share| (0.0..=1.0).contains(share)), "{seen:?}");
}

/// Values that a job shows at least which has taken this long: it is looked at ten times a second, and half of the looks see something
/// new, so a fast machine sees few.
fn least_seen(start: Instant, most: f64) -> usize {
    (5.0 * start.elapsed().as_secs_f64()).clamp(3.0, most) as usize
}

/// Answers of some hundred people, with two or three classes.
fn field() -> Field {
    let rows: String = (0..27).map(|n| format!("{},{},{},{}\n", n % 3, n / 3 % 3, n / 9, 3 + n * n % 41)).collect();
    let entry = Entry {
        name: "r[2..3] -> a b c".into(),
        source: ModelSource::parse("r[2..3] -> a b c").unwrap(),
        settings: PriorSettings { a: Some(2.0), ..Default::default() },
    };
    Field::new(vec![entry], csv(&format!("a,b,c,count\n{rows}")), None).unwrap()
}

/// Annealing with some work in every stage, and particles with pilots.
fn scorings() -> [Scoring; 2] {
    let anneal = AnnealWish { sweeps: Some(1500), pilots: Some(4), pilot_sweeps: Some(4000), ..Default::default() };
    let wish = Wish { particles: Some(300), runs: Some(4), ..Default::default() };
    [
        Scoring { method: Method::Anneal, anneal, ..Default::default() },
        Scoring { method: Method::Smc, wish, ..Default::default() },
    ]
}

#[test]
fn a_score_and_its_pilots_share_one_bar() {
    let field = field();
    let binding = field.bind(&field.candidates()[1]).unwrap();
    let settings = PriorSettings { a: Some(2.0), ..Default::default() };
    for scoring in scorings() {
        let mut seen = Vec::new();
        let means = Means { threads: 1, time: None, seed: Seed(1) };
        let start = Instant::now();
        scoring.score(&binding, &settings, means, &mut Control::new(Seen(&mut seen))).unwrap();
        goes_forward(&seen, least_seen(start, 10.0));
    }
}

#[test]
fn a_fit_by_particles_and_its_pilots_share_one_bar() {
    let field = field();
    let binding = field.bind(&field.candidates()[1]).unwrap();
    let settings = PriorSettings { a: Some(2.0), ..Default::default() };
    let prior = Prior::build(&binding.model, &settings).unwrap();
    let problem = Problem::new(&binding.model, &prior, &binding.counts).unwrap();
    let wish = Wish { particles: Some(300), runs: Some(4), ..Default::default() };
    let fitting = Fitting { method: FitMethod::Smc, wish, n_draws: 2, ..Default::default() };
    let mut seen = Vec::new();
    let means = Means { threads: 1, time: None, seed: Seed(1) };
    let start = Instant::now();
    fitting.fit(&problem, means, &mut Control::new(Seen(&mut seen))).unwrap();
    goes_forward(&seen, least_seen(start, 10.0));
}

#[test]
fn a_ranking_shows_how_far_each_model_is() {
    let field = field();
    for scoring in scorings() {
        let contest = Contest {
            scoring,
            threads: 1,
            seed: Seed(1),
            a: None,
            deadline: None,
            time_limit: None,
            cancel: Cancel::default(),
            wants_bounds: true,
            most_rounds: 1,
        };
        let mut seen = Vec::new();
        let mut control = Control::new(Seen(&mut seen));
        let logbook = Logbook::open(&field, &contest, &mut control).unwrap();
        let start = Instant::now();
        contest.run(&field, &logbook, &mut control).unwrap();
        let least = least_seen(start, 8.0);
        drop(control);
        // Of models that told nothing but their ends one would see five values.
        goes_forward(&seen, least);
        assert_eq!(seen.last(), Some(&1.0));
    }
}
