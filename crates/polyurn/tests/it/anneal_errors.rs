//! Stated errors of annealing hold the scatter of repeated jobs, also of few runs and of short ones.

use crate::support::{bound, csv, settings};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::anneal::{AnnealPath, AnnealWish};
use polyurn::graph::{Binding, ModelSource, bind_without_data};
use polyurn::prior::Prior;
use polyurn::score::{Means, Method, Scoring};
use polyurn::simulate::{Tokens, simulate};

/// Data drawn from a model, and a model for what is seen of them.
struct Subject {
    name: &'static str,
    binding: Binding,
    a: f64,
}

impl Subject {
    fn new(name: &'static str, model: &str, seen: &[&str], a: f64, n_tokens: u64) -> Self {
        let (drawn, _, _) = bind_without_data(&ModelSource::parse(model).unwrap(), None).unwrap();
        let prior = Prior::build(&drawn, &settings(a)).unwrap();
        let tensor = simulate(&drawn, &prior, Tokens::Given(n_tokens), Seed(4), &mut Control::default()).unwrap();
        let places: Vec<usize> = seen.iter().map(|name| drawn.find(name).unwrap().ix()).collect();
        let row = |(values, count): &(Vec<u32>, u64)| {
            let cells: Vec<String> = places.iter().map(|&place| values[place].to_string()).collect();
            format!("{},{count}\n", cells.join(","))
        };
        let rows: String = tensor.iter().map(row).collect();
        let unsized_seen = seen.iter().fold(model.to_owned(), |model, name| {
            let start = model.find(&format!("{name}[")).unwrap() + name.len();
            let end = start + model[start..].find(']').unwrap() + 1;
            format!("{}{}", &model[..start], &model[end..])
        });
        Subject { name, binding: bound(&unsized_seen, &csv(&format!("{},count\n{rows}", seen.join(",")))), a }
    }
}

/// Documents whose topics overlap, and a tensor.
fn subjects() -> [Subject; 2] {
    [
        Subject::new("documents", "doc[15] -> topic[3] -> word[25]", &["doc", "word"], 12.0, 500),
        Subject::new("tensor", "r[3] -> i[6] j[5] k[4]", &["i", "j", "k"], 6.0, 300),
    ]
}

/// Particles of each of four runs, steps, where they begin, and the share of jobs that two errors hold. Estimates are right on average,
/// but their logs lean to one side: runs that are too short or see one mode of several are too low more often than their scatter shows.
const SETTINGS: [(usize, u64, AnnealPath, f64); 5] = [
    (4, 80, AnnealPath::Reference, 0.9),
    (1, 400, AnnealPath::Reference, 0.9),
    // So short that single runs scatter by nats.
    (1, 80, AnnealPath::Reference, 0.8),
    (4, 15, AnnealPath::Reference, 0.85),
    (4, 300, AnnealPath::Prior, 0.75),
];

/// Estimates of many jobs and their stated errors.
fn jobs(subject: &Subject, setting: (usize, u64, AnnealPath, f64), n: u64, first_seed: u64) -> Vec<(f64, f64)> {
    let (particles, sweeps, path, _) = setting;
    let anneal = AnnealWish {
        particles: Some(particles),
        runs: Some(4),
        sweeps: Some(sweeps),
        path: Some(path),
        pilots: Some(8),
        pilot_sweeps: Some(120),
        ..Default::default()
    };
    let scoring = Scoring { method: Method::Anneal, anneal, ..Default::default() };
    let job = |seed: u64| {
        let means = Means { threads: 1, time: None, seed: Seed(seed) };
        let found = scoring.score(&subject.binding, &settings(subject.a), means, &mut Control::default()).unwrap();
        (found.log_marginal, found.std_error.expect("four runs"))
    };
    (first_seed..first_seed + n).map(job).collect()
}

/// Two errors hold as many jobs as they should, and are not wide for nothing: no more than three times what estimates scatter by.
fn check_errors(n: u64) {
    for subject in subjects() {
        for (ix, setting) in SETTINGS.into_iter().enumerate() {
            let jobs = jobs(&subject, setting, n, 1000 * ix as u64);
            // The mean of all is right on average, and nearly exact beside each.
            let largest = jobs.iter().map(|job| job.0).fold(f64::NEG_INFINITY, f64::max);
            let mean = jobs.iter().map(|job| (job.0 - largest).exp()).sum::<f64>() / n as f64;
            let truth = largest + mean.ln();
            let held = jobs.iter().filter(|(ln, error)| (ln - truth).abs() <= 2.0 * error).count() as f64;
            // 4.5 standard errors of the share.
            let share = setting.3;
            let least = share * n as f64 - 4.5 * (share * (1.0 - share) * n as f64).sqrt();
            let rms = |values: &mut dyn Iterator<Item = f64>| (values.map(|x| x * x).sum::<f64>() / n as f64).sqrt();
            let scatter = rms(&mut jobs.iter().map(|(ln, _)| ln - truth));
            let stated = rms(&mut jobs.iter().map(|(_, error)| *error));
            let what =
                format!("{} {setting:?}: {held} of {n} held, off by {scatter:.3}, stated {stated:.3}", subject.name);
            assert!(held >= least, "{what}");
            assert!(stated < 3.0 * scatter && scatter < 3.0 * stated, "{what}");
        }
    }
}

#[test]
fn errors_of_annealing_hold_what_jobs_scatter_by() {
    check_errors(40);
}

#[test]
#[ignore = "minutes: ten times as many jobs"]
fn errors_of_annealing_hold_what_four_hundred_jobs_scatter_by() {
    check_errors(400);
}
