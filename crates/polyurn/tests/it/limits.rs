//! The ends of every range: tiny and huge a, huge counts, no tokens, impossible data.

use crate::support::{
    Dag, Random, Rows, assert_log, assert_relative, base, is_affordable, score, score_bound, settings, tables,
    with_problem,
};
use polyurn::control::Control;
use polyurn::engine::enumerate::Enumeration;
use polyurn::engine::exact::Exact;
use polyurn::math::log_sum_exp;
use polyurn::prior::PriorSettings;
use std::collections::{BTreeSet, HashMap};

/// ln p(sequence) under BDeu by going through all assignments of all tokens, written without the library: counts in a
/// map, one factor (alpha + n)/(alpha_row + n_row) at a time, logs of pseudo-counts so that they cannot underflow.
pub struct Reference<'a> {
    dag: &'a Dag,
    a: f64,
    counts: HashMap<(usize, Vec<u32>), u64>,
}

impl<'a> Reference<'a> {
    pub fn ln_p(dag: &'a Dag, rows: &Rows, a: f64) -> f64 {
        assert!(dag.tied.is_empty());
        Reference { dag, a, counts: HashMap::new() }.place(&rows.tokens(dag.n_nodes()))
    }

    fn place(&mut self, tokens: &[Vec<Option<u32>>]) -> f64 {
        let Some((token, rest)) = tokens.split_first() else { return 0.0 };
        let mut terms = Vec::new();
        let mut full: Vec<u32> = token.iter().map(|value| value.unwrap_or(0)).collect();
        loop {
            let ln = self.add(&full);
            terms.push(ln + self.place(rest));
            self.remove(&full);
            let next = (0..full.len()).rev().filter(|&node| token[node].is_none()).find(|&node| {
                full[node] = (full[node] + 1) % self.dag.sizes[node];
                full[node] > 0
            });
            if next.is_none() {
                return log_sum_exp(&terms);
            }
        }
    }

    fn families(&self, full: &[u32]) -> Vec<(Vec<u32>, Vec<u32>, f64)> {
        let family = |node: usize| {
            let row: Vec<u32> = self.dag.parents[node].iter().map(|&parent| full[parent]).collect();
            let cell = [row.as_slice(), &[u32::MAX, full[node]]].concat();
            let ln_n_rows: f64 =
                self.dag.parents[node].iter().map(|&parent| f64::from(self.dag.sizes[parent]).ln()).sum();
            (row, cell, self.a.ln() - ln_n_rows)
        };
        (0..self.dag.n_nodes()).map(family).collect()
    }

    fn add(&mut self, full: &[u32]) -> f64 {
        let plus = |ln_pseudo: f64, n: u64| if n == 0 { ln_pseudo } else { (ln_pseudo.exp() + n as f64).ln() };
        let mut ln = 0.0;
        for (node, (row, cell, ln_row)) in self.families(full).into_iter().enumerate() {
            let (n_row, n_cell) = (self.count(node, &row), self.count(node, &cell));
            ln += plus(ln_row - f64::from(self.dag.sizes[node]).ln(), n_cell) - plus(ln_row, n_row);
            *self.counts.entry((node, row)).or_insert(0) += 1;
            *self.counts.entry((node, cell)).or_insert(0) += 1;
        }
        ln
    }

    fn remove(&mut self, full: &[u32]) {
        for (node, (row, cell, _)) in self.families(full).into_iter().enumerate() {
            *self.counts.get_mut(&(node, row)).unwrap() -= 1;
            *self.counts.get_mut(&(node, cell)).unwrap() -= 1;
        }
    }

    fn count(&self, node: usize, key: &[u32]) -> u64 {
        self.counts.get(&(node, key.to_vec())).copied().unwrap_or(0)
    }
}

/// A small random instance for the reference: hidden nodes, missing values, at most `max_paths` assignments in all.
fn small_instance(rng: &mut Random, max_paths: f64) -> (Dag, Rows) {
    loop {
        let n_nodes = rng.between(2, 5);
        let dag = Dag::random(rng, n_nodes, (1, 3), 0.5);
        let mut columns = rng.permutation(n_nodes);
        columns.truncate(rng.between(1, n_nodes));
        let missing = if rng.chance(0.4) { 0.2 } else { 0.0 };
        let n_tokens = rng.between(3, 7);
        let rows = Rows::random(rng, &dag, columns, 3, n_tokens, missing);
        let n_ways = |token: &Vec<Option<u32>>| -> f64 {
            token.iter().zip(&dag.sizes).map(|(value, &size)| value.map_or(f64::from(size), |_| 1.0)).product()
        };
        let n_paths: f64 = rows.tokens(n_nodes).iter().map(n_ways).product();
        if dag.n_cells() > 2 && n_paths <= max_paths && is_affordable(&rows.bind(&dag), &settings(1.0), 1e5) {
            return (dag, rows);
        }
    }
}

#[test]
fn every_a_from_1e_minus_12_to_1e9_agrees_with_a_reference_over_all_assignments() {
    let mut rng = Random::new(301);
    for round in 0..40 {
        let (dag, rows) = small_instance(&mut rng, 2000.0);
        let binding = rows.bind(&dag);
        for a in [1e-12, 3e-7, 0.02, 1.3, 77.0, 1e5, 1e9] {
            let got = score_bound(&binding, &settings(a)).log_p_sequence;
            let what = format!("{round}, a {a}: {} on\n{}", dag.text(), rows.csv());
            assert_log(&what, got, Reference::ln_p(&dag, &rows, a), 1e-10);
        }
    }
}

/// Every tensor that fits the data, under BDeu of size a.
pub fn ln_pi_and_d_ep(dag: &Dag, rows: &Rows, a: f64) -> Vec<(f64, i64)> {
    with_problem(&rows.bind(dag), &settings(a), |problem| {
        let total = problem.prior.total(Some(problem.counts.n_tokens)).unwrap();
        let enumeration = Enumeration::new(problem, total).unwrap();
        let mut found = Vec::new();
        enumeration
            .run(&Exact::default(), &mut Control::default(), &mut |tensor| {
                found.push((tensor.ln_pi, tensor.d_ep));
                Ok(())
            })
            .unwrap();
        found
    })
}

#[test]
fn as_a_vanishes_the_slope_of_ln_pi_is_d_ep_plus_one() {
    // A row with occupied cells of counts n and pseudo-counts proportional to a gives
    // prod Gamma(c a + n)/Gamma(c a) over Gamma(c' a + n')/Gamma(c' a) ~ a^(occupied cells - 1), so the sequence has the
    // power d_EP. The total has Gamma(a + T)/Gamma(a) ~ a, and with the default b = a/T its other factors,
    // (b/(1+b))^a = exp(a ln(a/T) - ..) and (1+b)^-T = exp(-a + ..), tend to 1: one power more. What is left at a = 1e-9 is
    // of the order a ln a, 2e-8.
    let mut rng = Random::new(302);
    let (mut n_hidden, mut n_levels) = (0, BTreeSet::new());
    for _ in 0..40 {
        let (mut dag, rows) = small_instance(&mut rng, 500.0);
        if rng.chance(0.3) {
            dag.tie_some(&mut rng);
        }
        let (coarse, fine) = (ln_pi_and_d_ep(&dag, &rows, 1e-9), ln_pi_and_d_ep(&dag, &rows, 1e-10));
        assert_eq!(coarse.len(), fine.len());
        n_hidden += usize::from(coarse.len() > 1);
        for (&(coarse, d_ep), &(fine, same)) in coarse.iter().zip(&fine) {
            assert_eq!(d_ep, same);
            let slope = (coarse - fine) / 10f64.ln();
            assert!((slope - (d_ep + 1) as f64).abs() < 1e-6, "slope {slope}, d_EP {d_ep}: {}", dag.text());
            n_levels.insert(d_ep);
        }
    }
    assert!(n_hidden > 10 && n_levels.len() > 4, "{n_hidden} {n_levels:?}");
}

#[test]
fn as_a_grows_every_seen_value_becomes_uniform() {
    let mut rng = Random::new(303);
    for _ in 0..40 {
        let (dag, rows) = small_instance(&mut rng, 1e6);
        let binding = rows.bind(&dag);
        let uniform: f64 = rows
            .tokens(dag.n_nodes())
            .iter()
            .flat_map(|token| token.iter().zip(&dag.sizes))
            .filter(|(value, _)| value.is_some())
            .map(|(_, &size)| -f64::from(size).ln())
            .sum();
        // What is left is of the order n^2 cells/a and falls as 1/a.
        let left = |a: f64| score_bound(&binding, &settings(a)).log_p_sequence - uniform;
        let (coarse, fine) = (left(1e6), left(1e9));
        assert!(fine.abs() < 1e-5, "{fine}: {} on\n{}", dag.text(), rows.csv());
        assert!(coarse.abs() < 1e-9 || (coarse / fine / 1000.0 - 1.0).abs() < 0.01, "{coarse} {fine}: {}", dag.text());
    }
}

/// log_marginal, log_p_total, log_arrangements and log_p_sequence of fully observed models, computed with Python's mpmath
/// 1.3.0 at 60 digits from loggamma: b = a/T and pseudo-counts a/(rows x children) exactly, then rounded to f64.
const HUGE_COUNTS: [(&str, f64, [f64; 4]); 12] = [
    (
        "x[3] -> y[2]; x y -> w[4]",
        1e-12,
        [-355.2610948272921, -56.60754674824558, 2413835189884.8223, -2413835190183.4756],
    ),
    ("x[3] -> y[2]; x y -> w[4]", 1.0, [-159.506290937128, -29.97652563228911, 2413835189884.8223, -2413835190014.352]),
    (
        "x[3] -> y[2]; x y -> w[4]",
        1000000000.0,
        [-7865580306.066221, -19.533961434300835, 2413835189884.8223, -2421700770171.3545],
    ),
    ("x[3] -> y[2] -> w[4]", 1e-12, [-2202210380158.0703, -56.60754674824558, 2413835189884.8223, -4616045569986.285]),
    ("x[3] -> y[2] -> w[4]", 1.0, [-2202210379908.992, -29.97652563228911, 2413835189884.8223, -4616045569763.838]),
    (
        "x[3] -> y[2] -> w[4]",
        1000000000.0,
        [-2209498259952.842, -19.533961434300835, 2413835189884.8223, -4623333449818.13],
    ),
    ("x[3] -> w[4] <- y[2]", 1e-12, [-1400627059.9499865, -56.60754674824558, 2413835189884.8223, -2415235816888.1646]),
    ("x[3] -> w[4] <- y[2]", 1.0, [-1400626913.0243669, -29.97652563228911, 2413835189884.8223, -2415235816767.87]),
    (
        "x[3] -> w[4] <- y[2]",
        1000000000.0,
        [-10222342259.770554, -19.533961434300835, 2413835189884.8223, -2424057532125.0586],
    ),
    ("y[2] -> x[3]; w[4]", 1e-12, [-2203611010640.532, -56.60754674824558, 2413835189884.8223, -4617446200468.747]),
    ("y[2] -> x[3]; w[4]", 1.0, [-2203611010411.624, -29.97652563228911, 2413835189884.8223, -4617446200266.47]),
    (
        "y[2] -> x[3]; w[4]",
        1000000000.0,
        [-2211851723995.7915, -19.533961434300835, 2413835189884.8223, -4625686913861.08],
    ),
];

#[test]
fn counts_of_2_800_000_000_000_keep_twelve_digits() {
    let data = "x,y,w,count\n0,0,0,2800000000000\n0,1,3,1\n1,0,2,17\n1,1,1,123456789\n2,0,3,999999999999\n2,1,0,3\n\
                0,0,2,40000000007\n1,0,0,250\n";
    for (model, a, [marginal, total, arrangements, sequence]) in HUGE_COUNTS {
        let found = score(model, data, &settings(a));
        for (part, got, want) in [
            ("log_p_total", found.log_p_total, total),
            ("log_arrangements", found.log_arrangements, arrangements),
            ("log_p_sequence", found.log_p_sequence, sequence),
            ("log_marginal", found.log_marginal, marginal),
        ] {
            assert_relative(&format!("{model} a {a} {part}"), got, want, 1e-12);
        }
    }
}

#[test]
fn without_tokens_only_the_total_counts() {
    for (model, data) in [("k[3] -> i j", "i,j,count\n"), ("i[4] -> j[2]", "i,j,count\n0,1,0\n"), ("i", "i,count\n")] {
        let found = score(model, data, &PriorSettings { a: Some(0.7), rate: Some(0.3), ..Default::default() });
        assert_eq!((found.log_p_sequence, found.log_arrangements), (0.0, 0.0));
        assert_relative(model, found.log_marginal, 0.7 * (0.3f64 / 1.3).ln(), 1e-14);
    }
}

#[test]
fn impossible_data_score_minus_infinity_and_never_nan() {
    let table = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let seen = [("i".to_owned(), table(&[&[0.5, 1.1]])), ("j".to_owned(), table(&[&[0.7, 0.0], &[0.3, 0.9]]))];
    let hidden = [("i".to_owned(), table(&[&[0.5, 1.1]])), ("j".to_owned(), table(&[&[0.7, 0.0], &[0.3, 0.0]]))];
    let big = "i,j,count\n0,1,2800000000000\n1,1,4\n";
    for (model, data, given) in [
        ("i[2] -> j[2]", "i,j,count\n0,0,3\n0,1,1\n", &seen),
        ("i[2] -> j[2]", "i,j,count\n0,1,1\n", &seen),
        ("i[2] -> j[2]", big, &seen),
        ("i[2] -> j[2]", "j,count\n0,3\n1,1\n", &hidden),
        ("i[2] -> j[2]", "i,j,count\n,1,2\n1,0,5\n", &hidden),
    ] {
        let found = score(model, data, &tables(given.clone().into()));
        assert_eq!(found.log_p_sequence, f64::NEG_INFINITY, "{data}");
        assert_eq!(found.log_marginal, f64::NEG_INFINITY, "{data}");
        assert!(found.log_p_total.is_finite() && found.log_arrangements.is_finite(), "{found:?}");
    }
    // A base measure with empty cells: the marginals of the tables allow what the measure itself does not.
    let alpha = vec![0.4, 0.0, 0.9, 0.0];
    let found = score("i[2] -> j[2]", "i,j,count\n0,1,1\n1,0,2\n", &base(alpha));
    assert_eq!(found.log_marginal, f64::NEG_INFINITY);
}
