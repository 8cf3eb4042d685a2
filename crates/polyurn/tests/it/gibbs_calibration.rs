//! Simulation-based calibration of Gibbs chains (Talts et al. 2018): over data drawn from the prior, the truth has a uniform
//! rank among draws from the posterior.

use crate::support::{settings, tables};
use polyurn::control::Control;
use polyurn::counts::{Counts, Labels, MISSING};
use polyurn::engine::Problem;
use polyurn::engine::gibbs::{Gibbs, Moves};
use polyurn::graph::{ModelSource, bind_without_data};
use polyurn::math::draw;
use polyurn::prior::{Prior, PriorSettings};
use polyurn::urn::Urn;
use polyurn::{Purpose, Seed};
use std::collections::BTreeMap;

/// States of a chain that the truth is ranked among, so far apart that they are as good as independent.
const DRAWS: u64 = 25;
const APART: u64 = 12;

/// z-scores of mean and spread of the ranks of ln p(sequence, hidden values).
///
/// The first nodes are hidden, and every third token does not show the node `missing`.
fn z_scores(text: &str, settings: &PriorSettings, hidden: Hidden, moves: Moves, n_rounds: u64) -> [f64; 2] {
    let (model, _, _) = bind_without_data(&ModelSource::parse(text).unwrap(), None).unwrap();
    let prior = Prior::build(&model, settings).unwrap();
    let mut ranks: Vec<f64> = Vec::new();
    for round in 0..n_rounds {
        let mut rng = Seed(41).stream(Purpose::Urn, round, 0, 0);
        let mut urn = Urn::new(&model, &prior);
        let mut truth = 0.0;
        for _ in 0..9 {
            let token = urn.clone().draw(&mut rng).to_vec();
            truth += urn.ln_predictive(&token);
            urn.observe(&token);
        }
        let counts = hidden.counts(&model.sizes(), urn.tokens());
        let problem = Problem::new(&model, &prior, &counts).unwrap();
        let gibbs = Gibbs { chains: 1, sweeps: (DRAWS + 3) * APART, moves, ..Default::default() };
        let chain = gibbs.run(&problem, Seed(round), &mut Control::default()).unwrap().chains.remove(0);
        let drawn = chain.ln_joint.iter().skip(4 * APART as usize - 1).step_by(APART as usize);
        let (mut below, mut equal) = (0.0, 0.0);
        for ln in drawn {
            // Sums of logs in another order differ in the last digits.
            let slack = 1e-9;
            below += f64::from(u8::from(*ln < truth - slack));
            equal += f64::from(u8::from((ln - truth).abs() <= slack));
        }
        // Among the draws and the truth itself: ties are broken at random, and so is the place within a rank.
        ranks.push((below + draw::open_unit(&mut rng) * (equal + 1.0)) / (DRAWS as f64 + 1.0));
    }
    let n = n_rounds as f64;
    // A uniform variable has mean 1/2 with variance 1/12, and (u - 1/2)^2 has mean 1/12 with variance 1/180.
    let mean = ranks.iter().sum::<f64>() / n;
    let spread = ranks.iter().map(|rank| (rank - 0.5).powi(2)).sum::<f64>() / n;
    [(mean - 0.5) / (1.0 / 12.0 / n).sqrt(), (spread - 1.0 / 12.0) / (1.0 / 180.0 / n).sqrt()]
}

/// What records do not show.
#[derive(Debug, Clone, Copy)]
struct Hidden {
    /// So many of the first nodes.
    first: u32,
    /// A node that every third token does not show.
    missing: Option<u32>,
}

impl Hidden {
    fn counts(self, sizes: &[u32], tokens: &[Vec<u32>]) -> Counts {
        let value = |node: usize, number: usize| {
            let is_missing = self.missing == Some(node as u32) && number.is_multiple_of(3);
            if is_missing { MISSING } else { tokens[number][node] }
        };
        let column = |node: usize| (0..tokens.len()).map(|number| value(node, number)).collect();
        let columns: Vec<Option<Vec<u32>>> =
            (0..sizes.len()).map(|node| (node >= self.first as usize).then(|| column(node))).collect();
        let labels = sizes.iter().map(|&size| Labels::Indexed { size, first: 0 }).collect();
        Counts::new(labels, &columns, &std::iter::repeat_n(1, tokens.len()).collect(), Vec::new()).unwrap()
    }
}

/// The first nodes alone.
fn first(n: u32) -> Hidden {
    Hidden { first: n, missing: None }
}

fn check_moves(text: &str, settings: &PriorSettings, hidden: Hidden, moves: Moves, n_rounds: u64) {
    let mut scores = z_scores(text, settings, hidden, moves, n_rounds);
    if scores.iter().any(|z| z.abs() > 4.5) {
        // One rerun with four times the replicates, no other.
        scores = z_scores(text, settings, hidden, moves, 4 * n_rounds);
    }
    assert!(scores.iter().all(|z| z.abs() <= 4.5), "{text} {moves:?}: {scores:?}");
}

fn uneven() -> PriorSettings {
    tables(BTreeMap::from([
        ("k".to_owned(), vec![vec![0.7, 1.9, 0.4]]),
        ("i".to_owned(), vec![vec![0.3, 1.1], vec![2.0, 0.2], vec![0.6, 0.5]]),
        ("j".to_owned(), vec![vec![0.2, 0.9, 0.4], vec![1.5, 0.3, 0.1], vec![0.8, 0.8, 2.2]]),
    ]))
}

fn check_all(n_rounds: u64) {
    // Tokens one by one, and moves of all at once. Clouds of 16 are large enough that independent ones are often taken.
    for moves in [Moves::Tokens, Moves::Conditional(4), Moves::Independent(16)] {
        let check = |text: &str, settings: &PriorSettings, hidden: Hidden| {
            check_moves(text, settings, hidden, moves, n_rounds);
        };
        // The kernel for one hidden node, the general one, tied tables, several hidden nodes, those that speak by one table, and
        // missing values.
        check("k[3] -> i[2] j[3]", &settings(2.1), first(1));
        check("k[3] -> i[2] j[3]", &uneven(), first(1));
        check("r[2] -> i[3] j[3]; i ~ j", &settings(1.3), first(1));
        check("g[2] -> h[3]; g -> x[3]; h -> y[2]", &settings(0.8), first(2));
        check("g[2] -> h[2]; g -> x[3]; h -> y[3]; x ~ y", &settings(1.4), first(2));
        check("k[2] -> i[3] j[3]; i -> j", &settings(2.0), Hidden { first: 1, missing: Some(1) });
    }
}

#[test]
fn ranks_of_the_truth_are_uniform() {
    check_all(300);
}

#[test]
#[ignore = "long: many data sets"]
fn ranks_of_the_truth_are_uniform_over_many_data_sets() {
    check_all(4000);
}
