//! The urn forwards and backwards, and simulated data, against exact probabilities.
//!
//! Every random test compares a count of n draws with its expectation: the standard error is sqrt(n p (1 - p)), or stated
//! where it is another one, and |z| <= 4.5 is asked for. A test that fails is run once more, on fresh draws, four times as
//! many; nothing else is retried.

use crate::support::{Random, base, bound, completions, csv, score_bound, settings, with_problem, z_score};
use polyurn::control::Control;
use polyurn::counts::MISSING;
use polyurn::graph::{Binding, Model, ModelSource, NodeIndex, bind_without_data};
use polyurn::plan::{Evaluator, Plan};
use polyurn::prior::{GammaTotal, Prior, PriorSettings};
use polyurn::simulate::{Tensor, Tokens, resample, simulate};
use polyurn::urn::Urn;
use polyurn::{Purpose, Seed, Stream};
use std::collections::{BTreeMap, HashMap};

const Z: f64 = 4.5;

/// Runs `worst(n, part)` for the largest |z| of n replicates, and once more with 4 n of them if it is beyond 4.5.
#[track_caller]
fn check_z(what: &str, n: u64, mut worst: impl FnMut(u64, u64) -> f64) {
    let first = worst(n, 0);
    if first <= Z {
        return;
    }
    let second = worst(4 * n, 1);
    assert!(second <= Z, "{what}: |z| = {first:.2} with {n} replicates and {second:.2} with {}", 4 * n);
}

/// The largest |z| of counts of outcomes with these probabilities; every outcome must be one of them.
fn worst_z<K: Eq + std::hash::Hash + std::fmt::Debug>(mut counts: HashMap<K, f64>, wanted: &[(K, f64)], n: u64) -> f64 {
    let sum: f64 = wanted.iter().map(|(_, p)| p).sum();
    assert!((sum - 1.0).abs() < 1e-10, "the probabilities add up to {sum}");
    let z = |(key, p): &(K, f64)| z_score(counts.remove(key).unwrap_or(0.0), n as f64, *p).abs();
    let worst = wanted.iter().map(z).fold(0.0, f64::max);
    assert!(counts.is_empty(), "impossible outcomes {counts:?}");
    worst
}

fn stream(part: u64, replicate: u64) -> Stream {
    Seed(801).stream(Purpose::Urn, part, replicate, 0)
}

/// A model with a hidden node and an uneven prior, and one whose tokens use a tied table twice.
fn models() -> [(&'static str, PriorSettings); 3] {
    let alpha = vec![0.9, 0.1, 0.3, 0.05, 0.6, 0.2, 0.15, 0.4, 0.02, 0.7, 0.35, 0.25];
    [
        ("z[2] -> x[3] y[2]", base(alpha)),
        ("z[2] -> x[2] y[2]; x ~ y", settings(0.8)),
        ("z[2] -> x[2] y[2]; x ~ y", PriorSettings { pseudo_counts: vec![("z".into(), 1.7)], ..settings(0.5) }),
    ]
}

/// A model bound to counts of (x, y) pairs.
fn bound_to(model: &str, pairs: &[(u32, u32)]) -> Binding {
    let rows: String = pairs.iter().map(|(x, y)| format!("{x},{y},1\n")).collect();
    bound(model, &csv(&format!("x,y,count\n{rows}")))
}

/// All pairs (x, y) that the model allows.
fn all_pairs(model: &str) -> Vec<(u32, u32)> {
    let model = bind_without_data(&ModelSource::parse(model).unwrap(), None).unwrap().0;
    let size = |name: &str| model.node(model.find(name).unwrap()).size;
    let (x, y) = (size("x"), size("y"));
    (0..x).flat_map(|x| (0..y).map(move |y| (x, y))).collect()
}

/// Exact probabilities of the first two tokens' (x, y), in order.
fn two_tokens(model: &str, prior: &PriorSettings) -> Vec<([(u32, u32); 2], f64)> {
    let pairs = all_pairs(model);
    let both = pairs.iter().flat_map(|&first| pairs.iter().map(move |&second| [first, second]));
    both.map(|two| (two, score_bound(&bound_to(model, &two), prior).log_p_sequence.exp())).collect()
}

fn seen(model: &Model, token: &[u32]) -> (u32, u32) {
    (token[model.find("x").unwrap().ix()], token[model.find("y").unwrap().ix()])
}

#[test]
fn tokens_drawn_forwards_have_the_exact_probabilities() {
    for (text, settings) in models() {
        let wanted = two_tokens(text, &settings);
        with_problem(&bound_to(text, &[(0, 0)]), &settings, |problem| {
            check_z(text, 20_000, |n, part| {
                let mut counts: HashMap<[(u32, u32); 2], f64> = HashMap::new();
                for replicate in 0..n {
                    let mut rng = stream(part, replicate);
                    let mut urn = Urn::new(problem.model, problem.prior);
                    let two = [(); 2].map(|()| seen(problem.model, urn.draw(&mut rng)));
                    *counts.entry(two).or_insert(0.0) += 1.0;
                }
                worst_z(counts, &wanted, n)
            });
        });
    }
}

#[test]
fn late_tokens_have_the_same_marginal_as_the_first() {
    // Tokens are exchangeable: the seventh token alone has the prior's marginal.
    let (text, settings) = models()[0].clone();
    let pairs = all_pairs(text);
    let wanted: Vec<((u32, u32), f64)> = pairs
        .iter()
        .map(|&pair| (pair, score_bound(&bound_to(text, &[pair]), &settings).log_p_sequence.exp()))
        .collect();
    with_problem(&bound_to(text, &[(0, 0)]), &settings, |problem| {
        check_z(text, 10_000, |n, part| {
            let mut counts = HashMap::new();
            for replicate in 0..n {
                let mut rng = stream(2 + part, replicate);
                let mut urn = Urn::new(problem.model, problem.prior);
                (0..6).for_each(|_| drop(urn.draw(&mut rng).to_vec()));
                *counts.entry(seen(problem.model, urn.draw(&mut rng))).or_insert(0.0) += 1.0;
            }
            worst_z(counts, &wanted, n)
        });
    });
}

#[test]
fn an_urn_less_a_random_token_is_a_smaller_urn() {
    for (text, settings) in models() {
        // Without order: pairs of tokens, each pair sorted.
        let mut wanted: BTreeMap<[(u32, u32); 2], f64> = BTreeMap::new();
        for (mut two, p) in two_tokens(text, &settings) {
            two.sort();
            *wanted.entry(two).or_insert(0.0) += p;
        }
        let wanted: Vec<_> = wanted.into_iter().collect();
        with_problem(&bound_to(text, &[(0, 0)]), &settings, |problem| {
            check_z(text, 20_000, |n, part| {
                let mut counts: HashMap<[(u32, u32); 2], f64> = HashMap::new();
                for replicate in 0..n {
                    let mut rng = stream(4 + part, replicate);
                    let mut urn = Urn::new(problem.model, problem.prior);
                    (0..4).for_each(|_| drop(urn.draw(&mut rng).to_vec()));
                    (0..2).for_each(|_| drop(urn.remove(&mut rng)));
                    let mut two = [0, 1].map(|at| seen(problem.model, &urn.tokens()[at]));
                    two.sort();
                    *counts.entry(two).or_insert(0.0) += 1.0;
                }
                worst_z(counts, &wanted, n)
            });
        });
    }
}

#[test]
fn the_token_removed_is_any_of_them_with_the_same_chance() {
    with_problem(&bound_to("z[2] -> x[3] y[2]", &[(0, 0)]), &settings(1.0), |problem| {
        // Cells holding 3, 2 and 1 tokens are hit in proportion.
        let tokens = [[0, 0, 1], [0, 0, 1], [1, 2, 0], [0, 0, 1], [1, 2, 0], [1, 0, 0]];
        let wanted = [(vec![0, 0, 1], 3.0 / 6.0), (vec![1, 2, 0], 2.0 / 6.0), (vec![1, 0, 0], 1.0 / 6.0)];
        check_z("removal", 20_000, |n, part| {
            let mut counts: HashMap<Vec<u32>, f64> = HashMap::new();
            let mut full = Urn::new(problem.model, problem.prior);
            tokens.iter().for_each(|token| full.observe(token));
            for replicate in 0..n {
                let gone = full.clone().remove(&mut stream(6 + part, replicate)).unwrap();
                *counts.entry(gone).or_insert(0.0) += 1.0;
            }
            worst_z(counts, &wanted, n)
        });
    });
}

#[test]
fn drawing_and_removing_leaves_exactly_the_counts_of_the_tokens_left() {
    let mut rng = Random::new(802);
    for (text, settings) in models() {
        with_problem(&bound_to(text, &[(0, 0)]), &settings, |problem| {
            let mut urn = Urn::new(problem.model, problem.prior);
            for step in 0..200 {
                // Three steps forward, two back, on average.
                if rng.chance(0.6) {
                    urn.draw(&mut rng.0);
                } else {
                    let n_before = urn.tokens().len();
                    assert_eq!(urn.remove(&mut rng.0).is_some(), n_before > 0);
                }
                let mut fresh = Urn::new(problem.model, problem.prior);
                urn.tokens().iter().for_each(|token| fresh.observe(token));
                for token in completions(problem.model, &[None; 3]) {
                    assert_eq!(urn.ln_predictive(&token), fresh.ln_predictive(&token), "step {step} of {text}");
                }
            }
            while urn.remove(&mut rng.0).is_some() {}
            assert!(urn.tokens().is_empty());
            let empty = Urn::new(problem.model, problem.prior);
            for token in completions(problem.model, &[None; 3]) {
                assert_eq!(urn.ln_predictive(&token), empty.ln_predictive(&token));
            }
        });
    }
}

#[test]
fn predictive_probabilities_add_up_to_one_and_agree_with_the_plan() {
    let mut rng = Random::new(803);
    for (text, settings) in models() {
        with_problem(&bound_to(text, &[(0, 0)]), &settings, |problem| {
            let mut urn = Urn::new(problem.model, problem.prior);
            for _ in 0..30 {
                let all = completions(problem.model, &[None; 3]);
                let sum: f64 = all.iter().map(|token| urn.ln_predictive(token).exp()).sum();
                assert!((sum - 1.0).abs() < 1e-13, "{text}: {sum}");
                if !problem.model.has_ties() {
                    let plan = Plan::compile(problem.model, &[vec![NodeIndex(1), NodeIndex(2)]]).unwrap();
                    let record = [MISSING, 1, 0];
                    let ln = Evaluator::new().ln_probability(&plan, &plan.patterns()[0], &record, &urn);
                    let want: f64 = (0..2).map(|z| urn.ln_predictive(&[z, 1, 0]).exp()).sum();
                    assert!((ln.exp() - want).abs() < 1e-14, "{ln} {want}");
                }
                urn.draw(&mut rng.0);
            }
        });
    }
}

fn simulated(model: &Model, prior: &Prior, tokens: Tokens, seed: u64) -> Tensor {
    simulate(model, prior, tokens, Seed(seed), &mut Control::default()).unwrap()
}

/// Sample mean and variance of a count against its expectation; the standard error of the variance from the sample's own
/// fourth moment.
fn worst_of_moments(samples: &[f64], mean: f64, variance: f64) -> f64 {
    let n = samples.len() as f64;
    let found = samples.iter().sum::<f64>() / n;
    let moment = |power: i32| samples.iter().map(|sample| (sample - mean).powi(power)).sum::<f64>() / n;
    let z_mean = (found - mean) / (variance / n).sqrt();
    let z_variance = (moment(2) - variance) / ((moment(4) - moment(2).powi(2)) / n).sqrt();
    z_mean.abs().max(z_variance.abs())
}

#[test]
fn simulated_family_counts_have_dirichlet_multinomial_moments() {
    // Every family of a model under a base measure is one Dirichlet-multinomial with the measure's marginal.
    let alpha = vec![0.9, 0.1, 0.3, 0.05, 0.6, 0.2, 0.15, 0.4, 0.02, 0.7, 0.35, 0.25];
    let size: f64 = alpha.iter().sum();
    let model = bind_without_data(&ModelSource::parse("a[2] -> b[3] -> c[2]").unwrap(), None).unwrap().0;
    let prior = Prior::build(&model, &base(alpha.clone())).unwrap();
    // Above and below the number of values, the two ways of spreading tokens.
    for n_tokens in [2u64, 40] {
        check_z(&format!("{n_tokens} tokens"), 4000, |n, part| {
            let draws: Vec<Tensor> = (0..n)
                .map(|replicate| simulated(&model, &prior, Tokens::Given(n_tokens), 1_000_000 * (part + 1) + replicate))
                .collect();
            let mut worst = 0.0f64;
            for (family, n_values) in [([0, 1], 6), ([1, 2], 6)] {
                for cell in 0..n_values {
                    let sizes = [2, 3, 2];
                    let values = [cell / sizes[family[1]], cell % sizes[family[1]]];
                    let fits = |full: &[u32]| family.iter().zip(values).all(|(&node, value)| full[node] == value);
                    let weight: f64 = (0..12u32)
                        .filter(|cell| fits(&[cell / 6, cell / 2 % 3, cell % 2]))
                        .map(|cell| alpha[cell as usize])
                        .sum();
                    let p = weight / size;
                    let t = n_tokens as f64;
                    let variance = t * p * (1.0 - p) * (size + t) / (size + 1.0);
                    let samples: Vec<f64> = draws
                        .iter()
                        .map(|draw| draw.iter().filter(|(full, _)| fits(full)).map(|(_, n)| *n as f64).sum())
                        .collect();
                    worst = worst.max(worst_of_moments(&samples, t * p, variance));
                }
            }
            assert!(draws.iter().all(|draw| draw.iter().map(|(_, n)| n).sum::<u64>() == n_tokens));
            worst
        });
    }
}

#[test]
fn simulated_tokens_of_a_tied_table_share_their_rows() {
    // x and y draw from one Dirichlet(0.3, 0.5, 1.1): Pr(x = y) = sum alpha (alpha + 1) / (A (A + 1)).
    let model = bind_without_data(&ModelSource::parse("x[3]; y[3]; x ~ y").unwrap(), None).unwrap().0;
    let alpha = [0.3, 0.5, 1.1];
    let given = [("x".to_owned(), vec![alpha.to_vec()])];
    let prior = Prior::build(&model, &crate::support::tables(given.into())).unwrap();
    let sum: f64 = alpha.iter().sum();
    let p = alpha.iter().map(|weight| weight * (weight + 1.0)).sum::<f64>() / (sum * (sum + 1.0));
    check_z("simulated", 10_000, |n, part| {
        let equal = |seed: &u64| {
            let draw = simulated(&model, &prior, Tokens::Given(1), 1_000_000 * (part + 1) + seed);
            draw[0].0[0] == draw[0].0[1]
        };
        z_score((0..n).filter(equal).count() as f64, n as f64, p).abs()
    });
    check_z("urn", 10_000, |n, part| {
        let equal = |replicate: &u64| {
            let mut urn = Urn::new(&model, &prior);
            let token = urn.draw(&mut stream(8 + part, *replicate));
            token[0] == token[1]
        };
        z_score((0..n).filter(equal).count() as f64, n as f64, p).abs()
    });
}

#[test]
fn a_drawn_total_is_negative_binomial() {
    let model = bind_without_data(&ModelSource::parse("x[3]").unwrap(), None).unwrap().0;
    let prior = Prior::build(&model, &settings(1.0)).unwrap();
    for (shape, rate) in [(2.3, 0.15), (0.4, 0.3)] {
        let total = GammaTotal::new(shape, rate).unwrap();
        let (mean, variance) = (shape / rate, shape / rate * (1.0 + 1.0 / rate));
        check_z(&format!("shape {shape}"), 10_000, |n, part| {
            let samples: Vec<f64> = (0..n)
                .map(|replicate| {
                    let draw = simulated(&model, &prior, Tokens::Drawn(total), 1_000_000 * (part + 1) + replicate);
                    draw.iter().map(|(_, n)| *n as f64).sum()
                })
                .collect();
            let n_small = samples.iter().filter(|&&sample| sample < 2.0).count() as f64;
            let p_small: f64 = (0..2).map(|tokens| total.ln_p_total(tokens).value().exp()).sum();
            worst_of_moments(&samples, mean, variance).max(z_score(n_small, n as f64, p_small).abs())
        });
    }
}

#[test]
fn the_same_seed_gives_the_same_tokens_and_another_seed_others() {
    let text = "d[50] -> t[4] -> w[1000]";
    let model = bind_without_data(&ModelSource::parse(text).unwrap(), None).unwrap().0;
    let prior = Prior::build(&model, &settings(20.0)).unwrap();
    let total = GammaTotal::new(20.0, 0.01).unwrap();
    for tokens in [Tokens::Given(500), Tokens::Drawn(total)] {
        let first = simulated(&model, &prior, tokens, 7);
        assert_eq!(first, simulated(&model, &prior, tokens, 7));
        assert_ne!(first, simulated(&model, &prior, tokens, 8));
        for (values, count) in &first {
            assert!(*count > 0 && values[0] < 50 && values[1] < 4 && values[2] < 1000);
        }
    }
    assert!(simulated(&model, &prior, Tokens::Given(0), 7).is_empty());
}

#[test]
fn simulating_three_million_million_tokens_costs_cells_not_tokens() {
    let model = bind_without_data(&ModelSource::parse("a[3] -> b[4]").unwrap(), None).unwrap().0;
    let prior = Prior::build(&model, &settings(12.0)).unwrap();
    let draw = simulated(&model, &prior, Tokens::Given(2_800_000_000_000), 3);
    assert_eq!(draw.iter().map(|(_, n)| n).sum::<u64>(), 2_800_000_000_000);
    assert!(draw.len() <= 12);
}

#[test]
fn resampling_a_table_of_2_800_000_000_000_tokens_keeps_its_proportions() {
    let counts = [2_000_000_000_000u64, 0, 700_000_000_000, 99_999_999_000, 1000];
    for n_tokens in [1_000_000u64, 2_800_000_000_000] {
        check_z(&format!("{n_tokens} tokens"), 1, |n, part| {
            let mut worst = 0.0f64;
            for seed in 0..n {
                let drawn = resample(&counts, n_tokens, Seed(900 + 10 * part + seed)).unwrap();
                assert_eq!(drawn.iter().sum::<u64>(), n_tokens);
                assert_eq!(drawn[1], 0);
                for (&got, &count) in drawn.iter().zip(&counts).filter(|&(_, &count)| count > 1000) {
                    worst = worst.max(z_score(got as f64, n_tokens as f64, count as f64 / 2.8e12).abs());
                }
                // 1000 of 2.8e12: a Poisson count with mean 4e-4 or 1000.
                let mean = 1000.0 * n_tokens as f64 / 2.8e12;
                assert!(drawn[4] as f64 <= mean + 4.5 * mean.sqrt() + 2.0, "{drawn:?}");
            }
            worst
        });
    }
    assert_eq!(resample(&counts, 5000, Seed(1)).unwrap(), resample(&counts, 5000, Seed(1)).unwrap());
    assert_ne!(resample(&counts, 5000, Seed(1)).unwrap(), resample(&counts, 5000, Seed(2)).unwrap());
    assert!(resample(&[0, 0], 1, Seed(1)).is_err());
    assert_eq!(resample(&[0, 0], 0, Seed(1)).unwrap(), [0, 0]);
}

/// Rows of very many values are not drawn but come from the row's own urn: the number of distinct values among n tokens
/// is then that of a Chinese restaurant with concentration a, as its mean shows.
#[test]
fn rows_of_billions_of_values_have_the_right_number_of_distinct_ones() {
    let (a, n_tokens, n_runs) = (3.0, 20u64, 3000u64);
    let spec = ModelSource::parse("x[4294967294]").unwrap();
    let (model, _, _) = bind_without_data(&spec, None).unwrap();
    let prior = Prior::build(&model, &settings(a)).unwrap();
    let terms: Vec<f64> = (0..n_tokens).map(|n| a / (a + n as f64)).collect();
    // A sum of independent indicators: mean and variance add up.
    let mean: f64 = terms.iter().sum();
    let variance: f64 = terms.iter().map(|p| p * (1.0 - p)).sum();
    let total: usize = (0..n_runs)
        .map(|run| {
            let tokens = Tokens::Given(n_tokens);
            let drawn = simulate(&model, &prior, tokens, Seed(run), &mut Control::default());
            drawn.unwrap().len()
        })
        .sum();
    let z = (total as f64 / n_runs as f64 - mean) / (variance / n_runs as f64).sqrt();
    assert!(z.abs() <= 4.5, "z = {z}");
}
