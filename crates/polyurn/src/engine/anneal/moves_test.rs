//! Sweeps between temperatures must leave the density of their temperature alone.
//!
//! On small data all states are listed, with their densities on the path. States drawn from these, swept once, must have the same
//! means as the list: a wrong power, a wrong factor or a wrong acceptance shifts some of them.

use super::fitted::Fitted;
use super::path::{AnnealPath, layout_from_prior, tempered_from_prior};
use super::pilot::{Sweeps, pilot};
use super::walker::{Setup, Walker};
use crate::engine::Problem;
use crate::engine::gibbs::Tokens;
use crate::engine::gibbs::reference::{CASES, WITH_BUCKETS, all_states, with_case};
use crate::engine::replicates::Watch;
use crate::math::draw::open_unit;
use crate::math::log_sum_exp;
use crate::simd::Isa;
use crate::{Purpose, Seed};

/// What is looked at in a state: asymmetric, and some of it in all tokens.
fn statistics(walker: &Walker, setup: &Setup<'_>) -> [f64; 4] {
    let states = walker.states();
    let weighted = states.iter().enumerate().map(|(ix, &state)| (ix as f64 + 0.7) * f64::from(state)).sum();
    let alike = states.iter().filter(|&&state| state == states[0]).count() as f64;
    [walker.ln_joint(setup), weighted, alike, f64::from(states[0])]
}

/// z-scores of the statistics after one sweep at this power.
fn z_scores(problem: &Problem<'_>, path: AnnealPath, beta: f64, n_draws: u64, seed: u64) -> Vec<f64> {
    let from_prior = layout_from_prior(problem).unwrap();
    let layout = match path {
        AnnealPath::Reference => problem.layout().unwrap(),
        AnnealPath::Prior => &from_prior,
    };
    let tokens = Tokens::new(layout).unwrap();
    let is_tempered = match path {
        AnnealPath::Reference => vec![true; layout.counted.len()],
        AnnealPath::Prior => tempered_from_prior(problem, layout),
    };
    let setup = Setup::new(&tokens, is_tempered, Isa::detect());
    let sweeps = Sweeps { warm_up: 5, noted: 20 };
    let found = pilot(&setup, &[], sweeps, Seed(seed), 0, &Watch::of(&|_| Ok(()))).unwrap();
    let fitted: Option<&Fitted> = (path == AnnealPath::Reference).then_some(&found.fitted);
    let all: Vec<Vec<u32>> = all_states(problem, &tokens).into_iter().map(|(states, _)| states).collect();
    let walkers: Vec<Walker> = all.iter().map(|states| Walker::with_states(&setup, fitted, states.clone())).collect();
    let ln_density = |walker: &Walker| {
        let parts = walker.ln_parts(&setup);
        let ln_reference = fitted.map_or(0.0, |fitted| walker.ln_reference(&setup, fitted));
        parts.steady + beta * parts.tempered + (1.0 - beta) * ln_reference
    };
    let logs: Vec<f64> = walkers.iter().map(ln_density).collect();
    let total = log_sum_exp(&logs);
    let shares: Vec<f64> = logs.iter().map(|ln| (ln - total).exp()).collect();
    let mut wanted = [0.0; 4];
    for (walker, share) in walkers.iter().zip(&shares) {
        wanted.iter_mut().zip(statistics(walker, &setup)).for_each(|(sum, value)| *sum += share * value);
    }
    let heat = setup.at(beta, fitted);
    let (mut sums, mut squares) = ([0.0; 4], [0.0; 4]);
    for draw in 0..n_draws {
        let mut rng = Seed(seed).stream(Purpose::Anneal, draw, 0, 0);
        let mut rest = open_unit(&mut rng);
        let drawn = shares.iter().position(|share| {
            rest -= share;
            rest <= 0.0
        });
        let states = all[drawn.unwrap_or(all.len() - 1)].clone();
        let mut walker = Walker::with_states(&setup, fitted, states);
        walker.sweep(&setup, &heat, fitted, None, &mut rng, &|| Ok(())).unwrap();
        for (ix, value) in statistics(&walker, &setup).into_iter().enumerate() {
            sums[ix] += value - wanted[ix];
            squares[ix] += (value - wanted[ix]).powi(2);
        }
    }
    sums.iter().zip(squares).map(|(sum, square)| if square > 0.0 { sum / square.sqrt() } else { 0.0 }).collect()
}

fn check(n_draws: u64) {
    for (ix, case) in CASES.into_iter().chain([WITH_BUCKETS]).enumerate() {
        for path in [AnnealPath::Reference, AnnealPath::Prior] {
            for beta in [0.0, 0.37, 1.0] {
                with_case(case, |problem| {
                    let seed = 300 + ix as u64;
                    let mut scores = z_scores(problem, path, beta, n_draws, seed);
                    if scores.iter().any(|z| z.abs() > 4.5) {
                        // One rerun with four times the draws, no other.
                        scores = z_scores(problem, path, beta, 4 * n_draws, seed + 100);
                    }
                    assert!(scores.iter().all(|z| z.abs() <= 4.5), "{} {path:?} {beta}: {scores:?}", case.0);
                });
            }
        }
    }
}

#[test]
fn sweeps_leave_the_density_of_their_temperature_alone() {
    check(3000);
}

#[test]
#[ignore = "a minute: many more draws"]
fn sweeps_leave_the_density_of_their_temperature_alone_to_more_digits() {
    check(100_000);
}
