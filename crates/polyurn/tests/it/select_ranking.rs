//! What a ranking makes of models of which no more than a lower bound is known, or whose error is not.

use crate::support::csv;
use polyurn::Seed;
use polyurn::control::{Cancel, Control};
use polyurn::engine::smc::Wish;
use polyurn::graph::ModelSource;
use polyurn::prior::PriorSettings;
use polyurn::score::{Method, Scoring};
use polyurn::select::{Contest, Entry, Field, Logbook, Ranking, Scored};

/// Three models, scored by a few particles.
fn found() -> Vec<Option<Scored>> {
    let entry = Entry {
        name: "r[1..3] -> a b".into(),
        source: ModelSource::parse("r[1..3] -> a b").unwrap(),
        settings: PriorSettings { a: Some(2.0), ..Default::default() },
    };
    let field = Field::new(vec![entry], csv("a,b,count\n0,0,5\n0,1,2\n1,1,6\n"), None).unwrap();
    let wish = Wish { particles: Some(50), runs: Some(3), heat: Some(1.0), ..Default::default() };
    let contest = Contest {
        scoring: Scoring { method: Method::Smc, wish, ..Default::default() },
        threads: 1,
        seed: Seed(3),
        a: None,
        deadline: None,
        time_limit: None,
        cancel: Cancel::default(),
        wants_bounds: true,
        most_rounds: 1,
    };
    let logbook = Logbook::open(&field, &contest, &mut Control::default()).unwrap();
    contest.run(&field, &logbook, &mut Control::default()).unwrap()
}

/// An evidence and its error.
type Evidence = (f64, Option<f64>);

/// The same with other numbers: evidence and bound; or a bound alone, where there is no evidence.
fn with(numbers: [(Option<Evidence>, f64); 3]) -> Ranking {
    let mut found = found();
    for (found, (evidence, bound)) in found.iter_mut().flatten().zip(numbers) {
        found.bound = Some(bound);
        found.score.method = if evidence.is_some() { "smc" } else { "vb" }.into();
        found.score.log_marginal = evidence.map_or(bound, |(ln, _)| ln);
        found.score.std_error = evidence.and_then(|(_, error)| error);
    }
    Ranking::new(&found, &[1.0; 3]).unwrap()
}

#[test]
fn only_ratios_of_weights_count_however_large_or_small_they_are() {
    let found = found();
    let with = |weights: [f64; 3]| Ranking::new(&found, &weights).unwrap().ranked;
    let plain = with([1.0, 2.0, 4.0]);
    // Powers of two leave every digit alone.
    for factor in [2f64.powi(1021), 2f64.powi(-1070)] {
        assert_eq!(with([1.0, 2.0, 4.0].map(|weight| weight * factor)), plain, "{factor:e}");
    }
    let even = with([1e308; 3]);
    assert!(even.iter().all(|ranked| (ranked.prior - 1.0 / 3.0).abs() < 1e-15), "{even:?}");
    // A share too small for a number is still none that cannot be.
    let far = with([1e308, 1e-300, 1e308]);
    assert!(far[2].candidate == 1 && far[2].posterior == Some((0.0, 0.0)), "{far:?}");
}

#[test]
fn a_bound_has_no_probability_and_the_others_share_it_all() {
    // The largest gap is 10, so a bound may be 45 below its evidence: twice that and 25.
    let far = with([(Some((-100.0, Some(0.1))), -110.0), (None, -150.0), (Some((-103.0, Some(0.1))), -104.0)]);
    assert_eq!(far.ranked.iter().map(|ranked| ranked.candidate).collect::<Vec<_>>(), [0, 2, 1]);
    let last = &far.ranked[2];
    assert!(last.is_bound && last.posterior.is_none() && last.log_bayes_factor.is_none() && last.apart == -50.0);
    let total: f64 = far.ranked.iter().filter_map(|ranked| ranked.posterior).map(|(p, _)| p).sum();
    assert!((total - 1.0).abs() < 1e-12);
    assert!(far.verdict.is_settled && far.verdict.unscored.is_empty());
    let near = with([(Some((-100.0, Some(0.1))), -110.0), (None, -144.0), (Some((-103.0, Some(0.1))), -104.0)]);
    assert!(!near.verdict.is_settled);
    assert_eq!(near.verdict.unscored, [2]);
}

/// Where a job was stopped after one score, that model is the best of one.
#[test]
fn the_only_model_that_was_scored_is_not_sure_to_be_the_best() {
    let mut found = found();
    found[0] = None;
    found[2] = None;
    let alone = Ranking::new(&found, &[1.0; 3]).unwrap();
    assert!(alone.ranked.len() == 1 && alone.ranked[0].posterior.is_none() && alone.verdict.n_missing == 2);
    // The others have weight nothing.
    assert_eq!(Ranking::new(&found, &[0.0, 1.0, 0.0]).unwrap().ranked[0].posterior, Some((1.0, 0.0)));
    // Bounds of the others are no evidence, but may rule them out.
    let near = with([(Some((-100.0, Some(0.1))), -110.0), (None, -144.0), (None, -130.0)]);
    assert!(near.ranked.iter().all(|ranked| ranked.posterior.is_none()), "{near:?}");
    let far = with([(Some((-100.0, Some(0.1))), -110.0), (None, -150.0), (None, -170.0)]);
    assert_eq!(far.ranked[0].posterior, Some((1.0, 0.0)), "{far:?}");
    // Others that are out of it do not make it surer; one that is not does.
    let lost = with([(Some((-100.0, Some(0.1))), -110.0), (None, -120.0), (Some((-300.0, Some(0.1))), -304.0)]);
    assert!(lost.ranked.iter().all(|ranked| ranked.posterior.is_none()), "{lost:?}");
    let rival = with([(Some((-100.0, Some(0.1))), -110.0), (None, -120.0), (Some((-102.0, Some(0.1))), -104.0)]);
    assert!(rival.ranked[0].posterior.is_some() && !rival.verdict.is_settled, "{rival:?}");
}

#[test]
fn where_no_gap_was_seen_a_bound_leaves_everything_open() {
    let closed = with([(Some((-100.0, Some(0.0))), -100.0), (None, -5000.0), (Some((-103.0, Some(0.0))), -103.0)]);
    assert!(!closed.verdict.is_settled && closed.verdict.unscored == [2]);
}

#[test]
fn a_bound_that_comes_first_leaves_no_probabilities() {
    let first = with([(Some((-100.0, Some(0.1))), -101.0), (None, -90.0), (Some((-103.0, Some(0.1))), -104.0)]);
    assert!(first.ranked[0].is_bound && !first.verdict.is_settled);
    assert!(first.ranked.iter().all(|ranked| ranked.posterior.is_none() && ranked.log_bayes_factor.is_none()));
}

#[test]
fn an_unknown_error_settles_nothing() {
    let unknown = with([
        (Some((-100.0, None)), -101.0),
        (Some((-900.0, Some(0.1))), -901.0),
        (Some((-903.0, Some(0.1))), -904.0),
    ]);
    assert!(!unknown.verdict.is_settled && unknown.verdict.is_error_unknown);
}

#[test]
fn the_first_of_equals_is_the_best_and_has_no_error_against_itself() {
    let equal = with([
        (Some((-100.0, Some(0.02))), -101.0),
        (Some((-100.0, Some(0.03))), -101.0),
        (Some((-100.0, Some(0.0))), -100.0),
    ]);
    assert_eq!(equal.ranked.iter().map(|ranked| ranked.candidate).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(equal.ranked[0].log_bayes_factor, Some((0.0, 0.0)));
    assert!(equal.verdict.is_settled && equal.verdict.level == [0, 1, 2]);
}
