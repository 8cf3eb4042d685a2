//! Chains against the posterior of all states, listed one by one.

use super::chain::Chain;
use super::joint::Joint;
use super::single::Single;
use super::tokens::Tokens;
use super::{Gibbs, Seed, Start};
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::exact::Exact;
use crate::engine::lines::Kernel;
use crate::graph::{BindOptions, ModelSource, bind};
use crate::io::{Format, read_from};
use crate::math::log_sum_exp;
use crate::prior::{Prior, PriorSettings};
use crate::simd::Isa;
use crate::{Purpose, Result};

/// A model, data and the size of the prior: small enough to list every state of all tokens.
pub const CASES: [(&str, &str, f64); 7] = [
    ("doc -> k[2] -> word", "doc,word,count\n0,0,3\n0,1,1\n1,1,2\n1,2,2\n", 2.5),
    ("k[3] -> i j", "i,j,count\n0,0,2\n0,1,1\n1,1,2\n2,1,1\n", 1.7),
    ("k[2] -> x y z w v", "x,y,z,w,v,count\n0,0,0,1,0,3\n1,1,0,0,1,2\n1,1,1,0,0,2\n", 3.0),
    // Missing values: several patterns.
    ("k[2] -> x y; x -> y", "x,y,count\n0,2,2\n,1,2\n1,0,2\n1,,1\n", 1.3),
    // A tied table, used twice by a token.
    ("k[2] -> i j; i ~ j", "i,j,count\n0,0,2\n0,1,2\n1,1,3\n", 1.2),
    // Two hidden nodes, drawn together.
    ("i -> k[2] -> l[2] -> j", "i,j,count\n0,0,2\n0,1,1\n1,1,2\n", 4.0),
    // Two hidden nodes that speak by one table.
    ("g[2] -> h[2]; g -> x; h -> y; x ~ y", "x,y,count\n0,1,2\n1,1,1\n0,0,1\n", 2.2),
];

pub fn with_case<R>((model, data, a): (&str, &str, f64), f: impl FnOnce(&Problem<'_>) -> R) -> R {
    let data = read_from(data.as_bytes(), "case", Format::Csv).unwrap();
    let binding = bind(&ModelSource::parse(model).unwrap(), &data, BindOptions::default()).unwrap();
    let prior = Prior::build(&binding.model, &PriorSettings { a: Some(a), ..Default::default() }).unwrap();
    f(&Problem::new(&binding.model, &prior, &binding.counts).unwrap())
}

/// Two hidden nodes with so many values that messages go between them.
pub const WITH_BUCKETS: (&str, &str, f64) = ("i -> k[9] -> l[8] -> j", "i,j,count\n0,0,1\n1,1,1\n", 6.0);

/// All states of a token: those of a bucket are the values of its own node beside those that its parent has.
fn states_of_token(kernel: &Kernel) -> Vec<Vec<u32>> {
    let mut all = vec![vec![0; kernel.buckets.len()]];
    for (ix, bucket) in kernel.buckets.iter().enumerate().rev() {
        let extend = |states: &Vec<u32>| {
            let entry = bucket.parent.map_or(0, |parent| bucket.message_of_parent_state[states[parent] as usize]);
            let first = entry * bucket.size as u32;
            let with =
                |state: u32| states.iter().enumerate().map(|(at, &own)| if at == ix { state } else { own }).collect();
            (first..first + bucket.size as u32).map(with).collect::<Vec<Vec<u32>>>()
        };
        all = all.iter().flat_map(extend).collect();
    }
    all
}

/// Number of lists of states.
pub fn n_lists(tokens: &Tokens<'_>) -> f64 {
    (0..tokens.len()).map(|token| states_of_token(tokens.kernel(token).1).len() as f64).product()
}

/// Every list of states, with ln of its joint probability.
pub fn all_states(problem: &Problem<'_>, tokens: &Tokens<'_>) -> Vec<(Vec<u32>, f64)> {
    let of_tokens: Vec<Vec<Vec<u32>>> =
        (0..tokens.len()).map(|token| states_of_token(tokens.kernel(token).1)).collect();
    let n: usize = of_tokens.iter().map(Vec::len).product();
    assert!(n <= 50_000, "{n} lists of states");
    let of_number = |mut rest: usize| -> Vec<u32> {
        let next = |own: &Vec<Vec<u32>>| {
            let digit = rest % own.len();
            rest /= own.len();
            own[digit].clone()
        };
        of_tokens.iter().flat_map(next).collect()
    };
    let joint = |states: Vec<u32>| {
        let chain = Chain::with_states(tokens, None, Isa::SCALAR, states.clone());
        (states, chain.ln_joint_by_table(problem).iter().sum())
    };
    (0..n).map(|number| joint(of_number(number))).collect()
}

/// What is looked at in a state: ln of the joint, and how many of the first states are alike.
fn statistics(states: &[u32], ln_joint: f64) -> [f64; 3] {
    let alike = states.iter().filter(|&&state| state == states[0]).count() as f64;
    [ln_joint, alike, f64::from(u8::from(states.first() == states.last()))]
}

#[test]
fn the_joint_of_all_states_is_the_evidence() {
    for case in CASES.into_iter().chain([WITH_BUCKETS]) {
        with_case(case, |problem| {
            let tokens = Tokens::new(problem.layout().unwrap()).unwrap();
            let has_buckets = tokens.layout.kernels.iter().any(|kernel| kernel.buckets.len() > 1);
            assert_eq!(has_buckets, case == WITH_BUCKETS, "{}", case.0);
            let logs: Vec<f64> = all_states(problem, &tokens).into_iter().map(|(_, ln)| ln).collect();
            let exact = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
            let want = exact.ln_p_sequence.value();
            assert!((log_sum_exp(&logs) - want).abs() < 1e-10, "{}: {} {want}", case.0, log_sum_exp(&logs));
        });
    }
}

/// Time averages of a long chain against the posterior; the error by means of batches.
fn check_averages(case: (&str, &str, f64), is_fast: bool, n_batches: usize, seed: u64) -> f64 {
    with_case(case, |problem| {
        let tokens = Tokens::new(problem.layout().unwrap()).unwrap();
        let single = Single::new(&tokens).filter(|_| is_fast);
        let all = all_states(problem, &tokens);
        let total = log_sum_exp(&all.iter().map(|(_, ln)| *ln).collect::<Vec<_>>());
        let mut want = [0.0; 3];
        for (states, ln) in &all {
            let p = (ln - total).exp();
            let values = statistics(states, *ln);
            (0..3).for_each(|ix| want[ix] += if p > 0.0 { p * values[ix] } else { 0.0 });
        }
        let look = || -> Result<()> { Ok(()) };
        let stream = |sweep: u64| Seed(seed).stream(Purpose::Gibbs, 0, 0, sweep);
        let mut chain = Chain::start(&tokens, single.as_ref(), Isa::detect(), &mut stream(0), &look).unwrap();
        let mut batches: Vec<[f64; 3]> = Vec::new();
        let mut sweep = 0;
        for batch in 0..=n_batches {
            let mut sums = [0.0; 3];
            for _ in 0..100 {
                sweep += 1;
                chain.sweep(&mut stream(sweep), &look).unwrap();
                let ln: f64 = chain.ln_joint_by_table(problem).iter().sum();
                let values = statistics(chain.states(), ln);
                (0..3).for_each(|ix| sums[ix] += values[ix] / 100.0);
            }
            // The first is to forget the start.
            if batch > 0 {
                batches.push(sums);
            }
        }
        let n = n_batches as f64;
        let z = |ix: usize| {
            let mean = batches.iter().map(|batch| batch[ix]).sum::<f64>() / n;
            let variance = batches.iter().map(|batch| (batch[ix] - mean).powi(2)).sum::<f64>() / (n - 1.0);
            (mean - want[ix]) / (variance / n).sqrt()
        };
        (0..3).map(z).fold(0.0, |worst, z| if z.abs() > f64::abs(worst) { z } else { worst })
    })
}

#[test]
fn chains_visit_states_as_often_as_their_posterior_says() {
    for (ix, case) in CASES.into_iter().enumerate() {
        for is_fast in [false, true] {
            let fits = with_case(case, |problem| {
                let tokens = Tokens::new(problem.layout().unwrap()).unwrap();
                Single::new(&tokens).is_some()
            });
            assert_eq!(fits, ix < 3, "{}", case.0);
            if is_fast && !fits {
                continue;
            }
            // Means of 60 batches of 100 sweeps are nearly normal; one rerun with four times as many.
            let z = check_averages(case, is_fast, 60, 10 + ix as u64);
            let z = if z.abs() <= 4.5 { z } else { check_averages(case, is_fast, 240, 20 + ix as u64) };
            assert!(z.abs() <= 4.5, "{} {is_fast}: z = {z}", case.0);
        }
    }
}

/// A larger table, so that more than one row of eight is filled.
fn long_case() -> String {
    let row = |ix: u64| format!("{},{},{}\n", ix * 7919 % 23, ix * 104_729 % 17, 1 + ix % 3);
    std::iter::once("i,j,count\n".to_owned()).chain((0..300).map(row)).collect()
}

#[test]
fn instructions_threads_and_stops_change_no_byte() {
    let data = long_case();
    for model in ["i -> k[19] -> j", "k[8] -> i j", "i -> k[3] -> l[2] -> j"] {
        with_case((model, &data, 3.0), |problem| {
            let gibbs = Gibbs { chains: 3, sweeps: 25, isa: Isa::SCALAR, ..Default::default() };
            let want = gibbs.run(problem, Seed(5), &mut Control::default()).unwrap();
            assert_eq!((want.chains.len(), want.chains[0].ln_joint.len()), (3, 25));
            assert_ne!(want.chains[0], want.chains[1]);
            for isa in Isa::available() {
                let found = Gibbs { isa, threads: 2, ..gibbs.clone() }.run(problem, Seed(5), &mut Control::default());
                assert_eq!(found.unwrap(), want, "{model} {}", isa.name());
            }
        });
    }
}

#[test]
fn the_joint_by_tabulated_logs_is_that_with_all_digits() {
    let long = long_case();
    let large = "i,j,count\n0,0,9000\n1,0,3\n0,1,5000\n";
    for case in CASES.into_iter().chain([("i -> k[19] -> j", &*long, 3.0), ("k[2] -> i j", large, 1e-3)]) {
        with_case(case, |problem| {
            let tokens = Tokens::new(problem.layout().unwrap()).unwrap();
            let joint = Joint::new(problem, &tokens);
            let look = || -> Result<()> { Ok(()) };
            let mut stream = Seed(3).stream(Purpose::Gibbs, 0, 0, 0);
            let chain = Chain::scattered(&tokens, None, Isa::SCALAR, &mut stream, &look).unwrap();
            let found = joint.by_table(chain.counts());
            for (found, want) in found.iter().zip(chain.ln_joint_by_table(problem)) {
                assert!((found - want).abs() <= 1e-12 * want.abs().max(1.0), "{}: {found} {want}", case.0);
            }
        });
    }
}

#[test]
fn chains_from_either_start_reach_the_same_place() {
    let data = long_case();
    with_case(("i -> k[3] -> j", &data, 3.0), |problem| {
        let mean = |start: Start| {
            let gibbs = Gibbs { chains: 8, sweeps: 600, start, ..Default::default() };
            let chains = gibbs.run(problem, Seed(6), &mut Control::default()).unwrap().chains;
            let means: Vec<f64> = chains.iter().map(|c| c.ln_joint[100..].iter().sum::<f64>() / 500.0).collect();
            let mean = means.iter().sum::<f64>() / 8.0;
            (mean, means.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 7.0 / 8.0)
        };
        let [(x, var_x), (y, var_y)] = [Start::Scattered, Start::InOrder].map(mean);
        // Means of eight independent chains each: Student's t with 14 degrees of freedom passes 6.5 once in 10^5 times.
        assert!((x - y).abs() <= 6.5 * (var_x + var_y).sqrt(), "{x} {y} {var_x} {var_y}");
    });
}
