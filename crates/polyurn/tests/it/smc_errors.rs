//! Stated errors match the scatter of repeated runs.
//!
//! With r = Z-hat / Z two numbers have the same expectation without any approximation, so that their difference can be
//! z-tested: (r - 1)^2, since r is unbiased, and what a run or a job says about its variance, times r^2.

use crate::smc_support::{MOVES, Sample, Subject, check, path_of};
use crate::support::{settings, z_score};
use polyurn::engine::smc::{ErrorFrom, Estimate, Path, RunResult, Scheme, Smc, When};

/// A matrix, a three-way table, records with missing values, and a matrix with a tied table; all pseudo-counts times this.
fn subjects(scale: f64) -> [Subject; 4] {
    let of = |name: &str, model: &str, data: &str, a: f64| Subject::new(name, model, data, settings(scale * a));
    [
        of("matrix", "k[2] -> i j", "i,j,count\n0,0,4\n0,1,1\n1,1,3\n2,1,2\n", 2.5),
        of("three-way", "lca(2)", "x,y,z,count\n0,0,0,3\n1,1,0,2\n1,1,1,1\n2,1,0,2\n", 3.0),
        of("missing", "k[2] -> x y; x -> y", "x,y,count\n0,2,3\n,1,3\n1,0,3\n1,,2\n", 1.7),
        of("tied", "k[2] -> i j; i ~ j", "i,j,count\n0,0,3\n0,1,1\n1,1,3\n", 1.2),
    ]
}

/// Jobs of eight runs each: for every job r of its estimate and what it says of its error.
fn jobs(subject: &Subject, smc: &Smc, want: f64, n: u64, seed: u64) -> Vec<(f64, f64)> {
    // Threads share runs out, so one large job is cut into small ones instead of starting threads for each.
    let runs = Smc { runs: RUNS_OF_A_JOB * n, threads: 2, ..smc.clone() };
    let runs = subject.estimate(&runs, seed).runs;
    let job = |runs: &[RunResult]| {
        let estimate = Estimate::combine(runs.to_vec(), smc.particles, false);
        assert_eq!(estimate.error_from, ErrorFrom::Runs);
        (estimate.ln_p_sequence - want, estimate.std_error.expect("several runs"))
    };
    runs.chunks(RUNS_OF_A_JOB as usize).map(job).collect()
}

const RUNS_OF_A_JOB: u64 = 8;

/// Two-sided quantiles of Student's t with seven degrees of freedom: |t| is below the first number with the second as
/// probability. Farther out a few hundred jobs are too few to count.
const T_QUANTILES: [(f64, f64); 2] = [(0.711_141, 0.5), (1.894_579, 0.9)];

/// How far the jobs' errors are off: their mean square, and the shares of |t| below each quantile.
fn worst_of_jobs(jobs: &[(f64, f64)]) -> Sample {
    let n = jobs.len() as f64;
    // The error is relative to the estimate; times r it is that of r, whose square is unbiased.
    let difference = |&(ln_r, error): &(f64, f64)| {
        let r: f64 = ln_r.exp();
        (r - 1.0).powi(2) - (error * r).powi(2)
    };
    // In units of the mean square, so that small numbers are not mistaken for rounding.
    let scale = jobs.iter().map(|(_, error)| error * error).sum::<f64>() / n;
    assert!(scale < 0.05f64.powi(2), "too much scatter for the log of a mean: {}", scale.sqrt());
    let square = Sample::new(&jobs.iter().map(|job| difference(job) / scale).collect::<Vec<_>>(), 0.0);
    let shares = T_QUANTILES.into_iter().map(|(quantile, p)| {
        let n_below = jobs.iter().filter(|(ln_r, error)| (ln_r / error).abs() < quantile).count() as f64;
        Sample::with_z(jobs.len() as u64, n_below / n, z_score(n_below, n, p))
    });
    shares.chain([square]).max_by(|a, b| a.worst().total_cmp(&b.worst())).expect("three numbers")
}

fn check_errors_of_jobs(particles: usize, n_jobs: u64) {
    let paths = [path_of((0, 1.0, 0, 0)), path_of((2, 1.0, 0, 0)), path_of((1, 3.0, 2, 0))];
    for (subject, seed) in subjects(1.0).iter().zip(1..) {
        let want = subject.exact();
        for (path, seed) in paths.iter().zip(10 * seed..) {
            let smc = Smc { particles, path: path.clone(), ..Default::default() };
            check(&format!("{} {path:?}", subject.name), n_jobs, |n, part| {
                worst_of_jobs(&jobs(subject, &smc, want, n, 2 * seed + part))
            });
        }
    }
}

#[test]
fn the_error_of_eight_runs_is_that_of_their_mean() {
    // Runs of six hundred particles have nearly normal estimates, as the quantiles of Student's t ask for.
    check_errors_of_jobs(600, 100);
}

#[test]
#[ignore = "long: the same with ten times as many jobs"]
fn the_error_of_eight_runs_is_that_of_their_mean_to_the_last_percent() {
    check_errors_of_jobs(600, 1000);
}

/// Share of jobs of so few runs whose estimate lies within three stated errors. Scatter alone would cover as Student's t
/// does: 79.5 % for two runs, 94.2 % for four.
fn check_few_runs(n_runs: usize, at_least: f64) {
    for (subject, seed) in subjects(1.0).iter().zip(1..) {
        let want = subject.exact();
        let path = path_of((1, 3.0, 2, 0));
        let smc = Smc { particles: 600, path, runs: 400 * n_runs as u64, threads: 2, ..Default::default() };
        let runs = subject.estimate(&smc, 100 + seed).runs;
        let is_within = |runs: &[RunResult]| {
            let estimate = Estimate::combine(runs.to_vec(), smc.particles, false);
            (estimate.ln_p_sequence - want).abs() <= 3.0 * estimate.std_error.expect("several runs")
        };
        let n_within = runs.chunks(n_runs).filter(|runs| is_within(runs)).count() as f64;
        // Of 400 jobs at most 4.5 standard errors of a share fewer than promised.
        let least = 400.0 * at_least - 4.5 * (400.0 * at_least * (1.0 - at_least)).sqrt();
        assert!(n_within >= least, "{}: {n_within} of 400 within three errors, asked {at_least}", subject.name);
    }
}

#[test]
fn two_or_four_runs_that_agree_by_chance_still_cover() {
    // An error that is never below 0.65 of the true one covers at three of them what a normal covers at 1.95: 94.9 %; the
    // larger of the two estimates covers more.
    check_few_runs(2, 0.96);
    check_few_runs(4, 0.98);
}

/// Lee and Whiteley (2018): with multinomial resampling r^2 times the variance that a run states has the expectation of
/// (r - 1)^2, for any number of particles and also if the decision to resample looks at the particles. With small
/// pseudo-counts r scatters enough to stand out from the noise of what is stated.
fn check_ancestor_variance(n_runs: u64) {
    let choices = [(20, MOVES[0]), (60, MOVES[1]), (100, MOVES[3])];
    for (subject, seed) in subjects(0.2).iter().zip(1..) {
        let want = subject.exact();
        for (when, seed) in [When::Always, When::EssBelow(0.7), When::Never].into_iter().zip(10 * seed..) {
            for ((particles, moves), seed) in choices.into_iter().zip(10 * seed..) {
                let path = Path { when, scheme: Scheme::Multinomial, ..path_of(moves) };
                let smc = Smc { particles, path, threads: 2, ..Default::default() };
                check(&format!("{} {particles} particles {:?}", subject.name, smc.path), n_runs, |n, part| {
                    let runs = subject.estimate(&Smc { runs: n, ..smc.clone() }, 2 * seed + part).runs;
                    compare_variances(&runs, want)
                });
            }
        }
    }
}

/// Stated less true mean squares, in units of the true ones.
fn compare_variances(runs: &[RunResult], want: f64) -> Sample {
    let pair = |run: &RunResult| {
        let r = (run.ln_p_sequence - want).exp();
        ((r - 1.0).powi(2), r * r * run.variance)
    };
    let pairs: Vec<(f64, f64)> = runs.iter().map(pair).collect();
    let n = pairs.len() as f64;
    let scale = pairs.iter().map(|(square, _)| square).sum::<f64>() / n;
    let sample = Sample::new(&pairs.iter().map(|(square, stated)| (stated - square) / scale).collect::<Vec<_>>(), 0.0);
    // Not vacuous: the expectation is known to less than a quarter of itself.
    assert!(sample.sd / n.sqrt() < 0.25, "too much noise: {sample}");
    sample
}

#[test]
fn the_variance_that_ancestors_tell_is_unbiased_for_multinomial_resampling() {
    check_ancestor_variance(2000);
}

#[test]
#[ignore = "long: the same with twenty times as many runs"]
fn the_variance_that_ancestors_tell_is_unbiased_to_the_last_percent() {
    check_ancestor_variance(40_000);
}

#[test]
fn one_run_tells_its_error_from_its_ancestors() {
    let subject = &subjects(1.0)[0];
    let want = subject.exact();
    let smc = Smc { particles: 2000, ..Default::default() };
    let estimate = subject.estimate(&smc, 1);
    assert_eq!(estimate.error_from, ErrorFrom::Ancestors);
    let error = estimate.std_error.unwrap();
    assert!((error - estimate.runs[0].variance.ln_1p().sqrt()).abs() < 1e-15);
    assert!(error > 0.0 && (estimate.ln_p_sequence - want).abs() <= 4.5 * error, "{estimate:?} for {want}");
    // One particle has no relatives, and its estimate no error.
    let alone = subject.estimate(&Smc { particles: 1, ..smc.clone() }, 1);
    assert_eq!((alone.error_from, alone.std_error), (ErrorFrom::Nothing, None));
    // Nothing hidden, nothing random.
    let seen = Subject::new("seen", "i -> j", "i,j,count\n0,0,4\n0,1,1\n", settings(2.5));
    let certain = seen.estimate(&smc, 1);
    assert_eq!((certain.error_from, certain.std_error), (ErrorFrom::ClosedForm, Some(0.0)));
    assert!((certain.ln_p_sequence - seen.exact()).abs() < 1e-12);
}
