//! Getting it right (Geweke 2004): moves must leave the posterior alone.
//!
//! Hidden and seen values drawn from the urn together have some joint distribution. A move that changes the hidden values
//! given the seen ones must leave it as it is, so any statistic has the same mean before and after. Wrong counts, weights
//! or acceptance ratios shift some mean.

use super::frame::Frame;
use super::run::{Hands, Path, Run, Source};
use crate::counts::Counts;
use crate::engine::Problem;
use crate::engine::lines::Layout;
use crate::graph::{ModelSource, bind_without_data};
use crate::prior::{Prior, PriorSettings, PriorSpec};
use crate::simd::Isa;
use crate::urn::Urn;
use crate::{Purpose, Seed};

const LANES: usize = 16;

/// Statistics of an allocation: asymmetric, and some of seen and hidden values together.
fn statistics(tokens: &[Vec<u32>]) -> [f64; 4] {
    let weight =
        |token: &[u32]| token.iter().enumerate().map(|(ix, &value)| (ix as f64 + 1.3) * f64::from(value)).sum::<f64>();
    let n_first = tokens.iter().filter(|token| token[0] == 0).count() as f64;
    let agree = tokens.iter().filter(|token| token[0] == token[1]).count() as f64;
    let product: f64 = tokens.iter().map(|token| f64::from(token[0]) * weight(&token[1..])).sum();
    [n_first, n_first * n_first, agree * agree, product]
}

/// Mean difference of the statistics before and after moves, as z-scores.
fn z_scores(model: &str, tables: &[(&str, Vec<Vec<f64>>)], n_hidden: usize, path: &Path, n_rounds: u64) -> [f64; 4] {
    let (model, _, _) = bind_without_data(&ModelSource::parse(model).unwrap(), None).unwrap();
    let tables = tables.iter().map(|(name, rows)| ((*name).to_owned(), rows.clone())).collect();
    let settings = PriorSettings { spec: PriorSpec::Tables { tables }, ..Default::default() };
    let prior = Prior::build(&model, &settings).unwrap();
    let (mut sums, mut squares) = ([0.0; 4], [0.0; 4]);
    for round in 0..n_rounds {
        let mut rng = Seed(77).stream(Purpose::Urn, round, 0, 0);
        let mut urn = Urn::new(&model, &prior);
        (0..7).for_each(|_| drop(urn.draw(&mut rng).to_vec()));
        // Tokens with equal seen values stand together, as the distinct records of the data do.
        let mut tokens = urn.tokens().to_vec();
        tokens.sort_by(|a, b| a[n_hidden..].cmp(&b[n_hidden..]));
        let counts = Counts::hiding(&model.sizes(), n_hidden, &tokens);
        let problem = Problem::new(&model, &prior, &counts).unwrap();
        let layout = Layout::new(&problem).unwrap();
        let frame = Frame::new(&layout, path, LANES, true, 1 << 30).unwrap();
        let hands = Hands { n_particles: LANES, n_threads: 1, isa: Isa::detect() };
        let source = Source { seed: Seed(78), replicate: round };
        let mut run = Run::<u16>::new(&counts, &layout, &frame, path, hands, source);
        run.load(&tokens.iter().map(|token| token[..n_hidden].to_vec()).collect::<Vec<_>>());
        run.move_all();
        let before = statistics(&tokens);
        // Lanes start alike and move by themselves: their mean is one observation.
        let mut after = [0.0; 4];
        for lane in 0..LANES {
            let hidden = run.hidden_values(lane);
            let moved: Vec<Vec<u32>> =
                tokens.iter().zip(&hidden).map(|(token, hidden)| [hidden, &token[n_hidden..]].concat()).collect();
            statistics(&moved).iter().zip(&mut after).for_each(|(value, sum)| *sum += value / LANES as f64);
        }
        for ix in 0..4 {
            let difference = after[ix] - before[ix];
            sums[ix] += difference;
            squares[ix] += difference * difference;
        }
    }
    let n = n_rounds as f64;
    std::array::from_fn(|ix| {
        let mean = sums[ix] / n;
        mean / ((squares[ix] / n - mean * mean) / n).sqrt()
    })
}

fn check(model: &str, tables: &[(&str, Vec<Vec<f64>>)], n_hidden: usize, path: &Path) {
    let mut z = z_scores(model, tables, n_hidden, path, 3000);
    if z.iter().any(|z| z.abs() > 4.5) {
        // One rerun with four times the replicates, no other.
        z = z_scores(model, tables, n_hidden, path, 12_000);
    }
    assert!(z.iter().all(|z| z.abs() <= 4.5), "{model} {path:?}: {z:?}");
}

fn path(rejuvenation: u32, n_reallocations: u32) -> Path {
    Path { order: super::Order::Given, rejuvenation, n_reallocations, ..Default::default() }
}

fn one_hidden() -> Vec<(&'static str, Vec<Vec<f64>>)> {
    vec![
        ("k", vec![vec![0.7, 1.9, 0.4]]),
        ("i", vec![vec![0.3, 1.1], vec![2.0, 0.2], vec![0.6, 0.5]]),
        ("j", vec![vec![0.2, 0.9, 0.4], vec![1.5, 0.3, 0.1], vec![0.8, 0.8, 2.2]]),
    ]
}

#[test]
fn gibbs_updates_leave_the_joint_distribution_alone() {
    check("k[3] -> i[2] j[3]", &one_hidden(), 1, &path(1, 0));
}

#[test]
fn sharing_two_components_out_anew_leaves_the_joint_distribution_alone() {
    check("k[3] -> i[2] j[3]", &one_hidden(), 1, &path(0, 2));
}

#[test]
fn moves_in_a_tied_model_leave_the_joint_distribution_alone() {
    let tables = vec![("r", vec![vec![0.9, 0.35]]), ("i", vec![vec![0.4, 1.2, 0.1], vec![0.7, 0.2, 0.9]])];
    check("r[2] -> i[3] j[3]; i ~ j", &tables, 1, &path(1, 0));
    check("r[2] -> i[3] j[3]; i ~ j", &tables, 1, &path(0, 2));
}

#[test]
fn moves_of_several_hidden_nodes_leave_the_joint_distribution_alone() {
    let tables = vec![
        ("g", vec![vec![0.9, 0.35]]),
        ("h", vec![vec![0.4, 1.2], vec![0.7, 0.2]]),
        ("x", vec![vec![0.4, 1.2, 0.3], vec![0.7, 0.2, 0.5]]),
        ("y", vec![vec![1.4, 0.2], vec![0.3, 0.6]]),
    ];
    check("g[2] -> h[2]; g -> x[3]; h -> y[2]", &tables, 2, &path(1, 0));
}
