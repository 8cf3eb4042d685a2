//! Problems that are too large for the exact engine, against another way to their evidence.
//!
//! The other way is annealed importance sampling (Neal 2001), written here from scratch in plain loops: hidden values z
//! are drawn from their own probability p(z), and Gibbs sweeps carry them over to the posterior along p(z) f(z)^beta,
//! with f(z) = p(seen | z). The mean of the weights is unbiased for Z = p(sequence), like that of the particle engine,
//! and the two share neither code nor path: the means must agree within 4.5 standard errors of their difference.

use crate::smc_support::{Sample, Subject, check};
use crate::support::settings;
use polyurn::control::Control;
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::{Path, Smc};
use polyurn::math::draw;
use polyurn::{Error, Purpose, Seed, Stream};

/// A matrix of counts and a model of it with one hidden node.
struct Problem {
    model: String,
    counts: &'static [&'static [usize]],
    a: f64,
    tokens: Tokens,
}

/// Tokens with one hidden value each. It is drawn from the row of the token's group and seen through some columns.
struct Tokens {
    n_values: usize,
    a: f64,
    /// Group of each token: its document, or the same for all where the hidden node has no parent.
    group: Vec<usize>,
    n_groups: usize,
    /// Each column's size and its value in every token.
    columns: Vec<(usize, Vec<usize>)>,
}

impl Problem {
    /// Rows and columns are both seen through the hidden value.
    fn matrix(counts: &'static [&'static [usize]], n_values: usize, a: f64) -> Self {
        let [rows, columns] = coordinates(counts);
        let group = vec![0; rows.len()];
        let columns = vec![(counts.len(), rows), (counts[0].len(), columns)];
        let tokens = Tokens { n_values, a, group, n_groups: 1, columns };
        Problem { model: format!("k[{n_values}] -> i j"), counts, a, tokens }
    }

    /// Rows are documents, columns are words.
    fn topics(counts: &'static [&'static [usize]], n_values: usize, a: f64) -> Self {
        let [group, words] = coordinates(counts);
        let tokens = Tokens { n_values, a, group, n_groups: counts.len(), columns: vec![(counts[0].len(), words)] };
        Problem { model: format!("i -> t[{n_values}] -> j"), counts, a, tokens }
    }

    fn subject(&self) -> Subject {
        let mut data = "i,j,count\n".to_owned();
        for (i, row) in self.counts.iter().enumerate() {
            let cells = row.iter().enumerate().filter(|&(_, &count)| count > 0);
            cells.for_each(|(j, count)| data += &format!("{i},{j},{count}\n"));
        }
        Subject::new(&self.model, &self.model, &data, settings(self.a))
    }
}

/// Row and column of every token.
fn coordinates(counts: &[&[usize]]) -> [Vec<usize>; 2] {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    for (i, row) in counts.iter().enumerate() {
        for (j, &count) in row.iter().enumerate() {
            rows.extend(std::iter::repeat_n(i, count));
            columns.extend(std::iter::repeat_n(j, count));
        }
    }
    [rows, columns]
}

/// ln of pseudo (pseudo + 1) .. (pseudo + n - 1) for n = 0 to `n_max`.
fn ln_risings(pseudo: f64, n_max: usize) -> Vec<f64> {
    let mut sums = vec![0.0];
    (0..n_max).for_each(|n| sums.push(sums[n] + (pseudo + n as f64).ln()));
    sums
}

impl Tokens {
    fn n_tokens(&self) -> usize {
        self.group.len()
    }

    /// ln p(groups): they are seen, and nothing above them is hidden.
    fn ln_groups(&self) -> f64 {
        let of_group = ln_risings(self.a / self.n_groups as f64, self.n_tokens());
        let sizes = (0..self.n_groups).map(|group| self.group.iter().filter(|&&other| other == group).count());
        sizes.map(|n| of_group[n]).sum::<f64>() - ln_risings(self.a, self.n_tokens())[self.n_tokens()]
    }
}

/// Hidden values, and what they count up to.
struct State<'t> {
    tokens: &'t Tokens,
    hidden: Vec<usize>,
    in_group: Vec<Vec<usize>>,
    in_all: Vec<usize>,
    /// By column, hidden value and seen value.
    in_cell: Vec<Vec<Vec<usize>>>,
    ln_row: Vec<f64>,
    ln_cell: Vec<Vec<f64>>,
}

impl<'t> State<'t> {
    /// Hidden values drawn from the urn that knows nothing of what is seen.
    fn from_prior(tokens: &'t Tokens, rng: &mut Stream) -> Self {
        let (k, n) = (tokens.n_values, tokens.n_tokens());
        let ln_cell = |&(size, _): &(usize, Vec<usize>)| ln_risings(tokens.a / (k * size) as f64, n);
        let mut state = State {
            tokens,
            hidden: Vec::new(),
            in_group: vec![vec![0; k]; tokens.n_groups],
            in_all: vec![0; k],
            in_cell: tokens.columns.iter().map(|&(size, _)| vec![vec![0; size]; k]).collect(),
            ln_row: ln_risings(tokens.a / k as f64, n),
            ln_cell: tokens.columns.iter().map(ln_cell).collect(),
        };
        for token in 0..n {
            let value = state.draw(token, 0.0, rng);
            state.hidden.push(value);
            state.put(token);
        }
        state
    }

    fn put(&mut self, token: usize) {
        let value = self.hidden[token];
        self.in_group[self.tokens.group[token]][value] += 1;
        self.in_all[value] += 1;
        for (cells, (_, seen)) in self.in_cell.iter_mut().zip(&self.tokens.columns) {
            cells[value][seen[token]] += 1;
        }
    }

    fn take(&mut self, token: usize) {
        let value = self.hidden[token];
        self.in_group[self.tokens.group[token]][value] -= 1;
        self.in_all[value] -= 1;
        for (cells, (_, seen)) in self.in_cell.iter_mut().zip(&self.tokens.columns) {
            cells[value][seen[token]] -= 1;
        }
    }

    /// A hidden value for a token given all others: the urn's probability times that of the seen values to the power
    /// beta.
    fn draw(&self, token: usize, beta: f64, rng: &mut Stream) -> usize {
        let tokens = self.tokens;
        let pseudo = tokens.a / (tokens.n_groups * tokens.n_values) as f64;
        let weight = |value: usize| {
            let mut ln_seen = 0.0;
            for ((cells, ln_cell), (_, seen)) in self.in_cell.iter().zip(&self.ln_cell).zip(&tokens.columns) {
                let (n_cell, n_row) = (cells[value][seen[token]], self.in_all[value]);
                ln_seen += ln_cell[n_cell + 1] - ln_cell[n_cell] - (self.ln_row[n_row + 1] - self.ln_row[n_row]);
            }
            (pseudo + self.in_group[tokens.group[token]][value] as f64) * (beta * ln_seen).exp()
        };
        let mut weights = [0.0; 4];
        let weights = &mut weights[..tokens.n_values];
        weights.iter_mut().enumerate().for_each(|(value, slot)| *slot = weight(value));
        draw::categorical(weights, weights.iter().sum(), rng)
    }

    /// ln f(z).
    fn ln_seen(&self) -> f64 {
        let mut ln = 0.0;
        for (cells, ln_cell) in self.in_cell.iter().zip(&self.ln_cell) {
            for (row, &n_row) in cells.iter().zip(&self.in_all) {
                ln += row.iter().map(|&n| ln_cell[n]).sum::<f64>() - self.ln_row[n_row];
            }
        }
        ln
    }
}

/// ln of one annealed weight, with beta in steps of equal length.
fn ln_annealed(tokens: &Tokens, n_steps: usize, rng: &mut Stream) -> f64 {
    let mut state = State::from_prior(tokens, rng);
    let mut ln_weight = tokens.ln_groups();
    for step in 1..=n_steps {
        ln_weight += state.ln_seen() / n_steps as f64;
        for token in 0..tokens.n_tokens() {
            state.take(token);
            state.hidden[token] = state.draw(token, step as f64 / n_steps as f64, rng);
            state.put(token);
        }
    }
    ln_weight
}

/// Logs of independent annealed weights.
fn annealed(tokens: &Tokens, n_steps: usize, n: u64, seed: u64) -> Vec<f64> {
    (0..n)
        .map(|replicate| ln_annealed(tokens, n_steps, &mut Seed(seed).stream(Purpose::Urn, replicate, 0, 0)))
        .collect()
}

/// ln of the mean of the numbers whose logs these are.
fn ln_mean(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + (logs.iter().map(|ln| (ln - largest).exp()).sum::<f64>() / logs.len() as f64).ln()
}

/// How much work each side does.
struct Effort {
    n_steps: usize,
    n_annealed: u64,
    smc: Smc,
    n_runs: u64,
}

fn smc(particles: usize) -> Smc {
    Smc { particles, path: Path { rejuvenation: 5, ..Default::default() }, ..Default::default() }
}

/// The exact engine refuses, and the two means agree.
fn check_agreement(problem: &Problem, effort: &Effort) {
    let subject = problem.subject();
    let refusal = subject.with(|problem| Exact::default().ln_p_sequence(problem, &mut Control::default()).err());
    assert!(matches!(refusal, Some(Error::TooCostly(_))), "{}: not beyond the exact engine", problem.model);
    // The standard error of each mean comes from its own replicates, and both sides are independent. With standard
    // deviations below the mean, a few hundred replicates show the tail that the mean depends on.
    check(&problem.model, 1, |times, part| {
        let annealed = annealed(&problem.tokens, effort.n_steps, times * effort.n_annealed, 40 + part);
        let particles = subject.logs(&effort.smc, times * effort.n_runs, 50 + part);
        let reference = ln_mean(&annealed);
        let [other, own] = [&annealed, &particles].map(|logs| Sample::of_ratios(logs, reference));
        assert!(other.sd < 1.0 && own.sd < 1.0, "{}: too much scatter: {other} and {own}", problem.model);
        let variance = other.sd.powi(2) / other.n as f64 + own.sd.powi(2) / own.n as f64;
        Sample::with_z(own.n as u64, own.mean, (own.mean - other.mean) / variance.sqrt())
    });
}

const MATRIX: &[&[usize]] =
    &[&[9, 4, 2, 0, 3], &[1, 7, 5, 3, 0], &[2, 0, 6, 8, 1], &[5, 3, 1, 2, 11], &[0, 6, 2, 1, 4]];

const WORDS: &[&[usize]] = &[
    &[6, 1, 3, 0, 2, 0, 4, 1],
    &[0, 5, 2, 3, 0, 1, 0, 3],
    &[4, 0, 0, 1, 7, 2, 1, 0],
    &[1, 3, 6, 0, 0, 4, 2, 2],
    &[2, 2, 1, 5, 1, 0, 0, 6],
    &[3, 0, 1, 2, 3, 1, 5, 0],
];

#[test]
fn the_other_engine_has_the_exact_mean() {
    // Constants of the prior and of what is seen, on tables that can be summed up.
    let small: &[&[usize]] = &[&[3, 0, 1], &[1, 2, 0], &[0, 1, 2]];
    for problem in [Problem::matrix(small, 3, 2.5), Problem::topics(small, 2, 1.7)] {
        let want = problem.subject().exact();
        check(&problem.model, 2000, |n, part| Sample::of_ratios(&annealed(&problem.tokens, 25, n, 30 + part), want));
    }
}

#[test]
fn particles_agree_with_annealing_on_a_matrix() {
    let effort = Effort { n_steps: 120, n_annealed: 1500, smc: smc(256), n_runs: 200 };
    check_agreement(&Problem::matrix(MATRIX, 3, 40.0), &effort);
}

#[test]
fn particles_agree_with_annealing_on_documents() {
    let effort = Effort { n_steps: 120, n_annealed: 1500, smc: smc(256), n_runs: 200 };
    check_agreement(&Problem::topics(WORDS, 2, 40.0), &effort);
}

#[test]
#[ignore = "long: three hundred tokens and a thousand temperatures"]
fn particles_agree_with_annealing_on_three_hundred_tokens() {
    let long: &[&[usize]] = &[
        &[19, 11, 7, 2, 9, 4],
        &[3, 18, 14, 8, 1, 6],
        &[7, 2, 15, 21, 5, 0],
        &[12, 8, 3, 6, 24, 9],
        &[1, 16, 6, 4, 10, 13],
        &[8, 3, 9, 2, 6, 17],
    ];
    let effort = Effort { n_steps: 1000, n_annealed: 1500, smc: smc(1024), n_runs: 400 };
    check_agreement(&Problem::matrix(long, 4, 100.0), &effort);
    check_agreement(&Problem::topics(long, 4, 100.0), &effort);
}
