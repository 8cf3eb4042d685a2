//! The exact engine against a slow reference: every token one by one through the urn, over all assignments.

use crate::support::{Dag, Random, Rows, assert_log, base, bound, completions, csv, settings, tables, with_problem};
use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::exact::{Exact, TotalsRange};
use polyurn::evidence::{TotalProbability, evidence, totals};
use polyurn::graph::Binding;
use polyurn::math::log_sum_exp;
use polyurn::prior::{PriorSettings, TiedPrior};
use polyurn::urn::Urn;

/// ln p(tokens), each token being one of a list of full assignments.
fn ln_p_tokens(urn: &Urn<'_>, tokens: &[Vec<Vec<u32>>]) -> f64 {
    let Some((first, rest)) = tokens.split_first() else { return 0.0 };
    let terms: Vec<f64> = first
        .iter()
        .map(|token| {
            let ln = urn.ln_predictive(token);
            if ln == f64::NEG_INFINITY || rest.is_empty() {
                return ln;
            }
            let mut next = urn.clone();
            next.observe(token);
            ln + ln_p_tokens(&next, rest)
        })
        .collect();
    log_sum_exp(&terms)
}

/// What a token of each record, and of the unknown cells, can be.
struct Listed {
    tokens: Vec<Vec<Vec<u32>>>,
    unknown: Vec<Vec<u32>>,
}

impl Listed {
    fn new(problem: &Problem<'_>, rows: &Rows) -> Self {
        let n_nodes = problem.model.n_nodes();
        let tokens = rows.tokens(n_nodes).iter().map(|token| completions(problem.model, token)).collect();
        let cells = Rows {
            rows: rows.unknown.iter().map(|cell| (cell.iter().map(|&value| Some(value)).collect(), 1)).collect(),
            ..rows.clone()
        };
        let unknown = cells.tokens(n_nodes).iter().flat_map(|token| completions(problem.model, token)).collect();
        Listed { tokens, unknown }
    }

    fn n_paths(&self, n_unknown: i32) -> f64 {
        let seen: f64 = self.tokens.iter().map(|ways| ways.len() as f64).product();
        seen * (self.unknown.len() as f64).powi(n_unknown)
    }

    fn ln_p(&self, problem: &Problem<'_>, n_unknown: usize) -> f64 {
        let unknown = vec![self.unknown.clone(); n_unknown];
        ln_p_tokens(&Urn::new(problem.model, problem.prior), &[self.tokens.clone(), unknown].concat())
    }
}

fn ln_factorial(n: u64) -> f64 {
    (2..=n).map(|factor| (factor as f64).ln()).sum()
}

/// The negative binomial, factor by factor.
fn ln_p_total(shape: f64, rate: f64, n: u64) -> f64 {
    let rising: f64 = (0..n).map(|j| ((shape + j as f64) / (1.0 + j as f64)).ln()).sum();
    rising + shape * (rate / (1.0 + rate)).ln() - n as f64 * rate.ln_1p()
}

#[track_caller]
fn check(what: &str, binding: &Binding, rows: &Rows, settings: &PriorSettings) -> f64 {
    with_problem(binding, settings, |problem| {
        let want = Listed::new(problem, rows).ln_p(problem, 0);
        let sequence = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
        assert_log(what, sequence.ln_p_sequence.value(), want, 1e-10);
        let found = evidence(problem, sequence.ln_p_sequence).unwrap();
        let n_tokens = problem.counts.n_tokens;
        let (shape, rate) = (problem.prior.shape(), problem.prior.total(Some(n_tokens)).unwrap().rate);
        let total = ln_p_total(shape, rate, n_tokens);
        let repeats: f64 = problem.counts.blocks.iter().flat_map(|block| block.counts.iter()).map(ln_factorial).sum();
        let marginal = total + ln_factorial(n_tokens) - repeats + want;
        assert_log(&format!("{what}, log_marginal"), found.log_marginal, marginal, 1e-10);
        want
    })
}

/// Some uneven prior; sometimes with zeros, but never a row of zeros.
fn random_prior(rng: &mut Random, dag: &Dag) -> PriorSettings {
    match rng.between(0, 4) {
        0 => settings(rng.weight()),
        1 => PriorSettings { tied: TiedPrior::Once, ..settings(rng.weight()) },
        2 => PriorSettings { shape: Some(1.3), ..base(rng.weights(dag.n_cells())) },
        3 => tables(dag.random_tables(rng)),
        _ => {
            let mut given = dag.random_tables(rng);
            for row in given.values_mut().flatten() {
                for child in 1..row.len() {
                    if rng.chance(0.25) {
                        row[child] = 0.0;
                    }
                }
            }
            tables(given)
        }
    }
}

#[test]
fn exact_agrees_with_the_urn_run_over_all_assignments() {
    let mut rng = Random::new(601);
    let (mut n, mut n_tied, mut n_missing, mut n_impossible) = (0, 0, 0, 0);
    while n < 60 {
        let n_nodes = rng.between(2, 5);
        let mut dag = Dag::random(&mut rng, n_nodes, (1, 3), 0.5);
        let is_tied = n % 2 == 0 && dag.tie_some(&mut rng);
        if n % 2 == 0 && !is_tied {
            continue;
        }
        let mut columns = rng.permutation(n_nodes);
        columns.truncate(rng.between(1, n_nodes));
        let missing = if rng.chance(0.5) { 0.3 } else { 0.0 };
        let n_tokens = rng.between(3, 6);
        let rows = Rows::random(&mut rng, &dag, columns, 3, n_tokens, missing);
        let settings = random_prior(&mut rng, &dag);
        let binding = rows.bind(&dag);
        if with_problem(&binding, &settings, |problem| Listed::new(problem, &rows).n_paths(0)) > 20_000.0 {
            continue;
        }
        let what = format!("{n}: {} with {settings:?} on\n{}", dag.text(), rows.csv());
        let ln_p = check(&what, &binding, &rows, &settings);
        n += 1;
        n_tied += usize::from(is_tied);
        n_missing += usize::from(binding.counts.blocks.len() > 1);
        n_impossible += usize::from(ln_p == f64::NEG_INFINITY);
    }
    assert!(n_tied == 30 && n_missing >= 10 && n_impossible <= 10, "{n_tied} {n_missing} {n_impossible}");
}

/// Rows of a CSV text whose columns are the model's nodes by name.
fn rows_of(binding: &Binding, text: &str) -> Rows {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let columns = names[..names.len() - 1].iter().map(|name| binding.model.find(name).unwrap().ix()).collect();
    let mut rows = Rows { columns, rows: Vec::new(), unknown: Vec::new() };
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let (count, values) = fields.split_last().unwrap();
        match count.parse() {
            Ok(count) => rows.rows.push((values.iter().map(|value| value.parse().ok()).collect(), count)),
            Err(_) => rows.unknown.push(values.iter().map(|value| value.parse().unwrap()).collect()),
        }
    }
    rows
}

#[test]
fn tokens_that_use_a_tied_table_twice_see_their_own_first_use() {
    for (model, data) in [
        ("r[2] -> i[3] j[3]; i ~ j", "i,j,count\n0,0,2\n0,2,1\n1,1,2\n,1,1\n"),
        ("r[3] -> i[2] j[2] k[2]; i ~ j ~ k", "i,j,k,count\n0,0,0,2\n0,1,1,1\n1,,1,2\n"),
        // A tied HMM of length 3: transitions twice, emissions three times.
        (
            "z1[2] -> z2[2] -> z3[2]; z1 -> x1[2]; z2 -> x2[2]; z3 -> x3[2]; z2 ~ z3; x1 ~ x2 ~ x3",
            "x1,x2,x3,count\n0,0,1,1\n1,1,0,2\n0,,0,1\n",
        ),
        ("s[2] -> k1[2] -> r[3] <- k2[2] <- d[2]; k1 ~ k2", "s,d,r,count\n0,1,2,2\n1,1,0,2\n0,0,1,1\n"),
        // Two root nodes that share one urn: with all values seen there is nothing to sum.
        ("x[3]; y[3]; x ~ y; x -> w[2]", "x,y,w,count\n0,0,1,3\n0,2,0,1\n2,,1,1\n"),
    ] {
        let binding = bound(model, &csv(data));
        let rows = rows_of(&binding, data);
        for settings in [settings(0.8), PriorSettings { tied: TiedPrior::Once, ..settings(3.1) }] {
            check(model, &binding, &rows, &settings);
        }
        let first = binding.model.table_name(binding.model.nodes().last().unwrap().table).to_owned();
        check(model, &binding, &rows, &PriorSettings { pseudo_counts: vec![(first, 0.13)], ..settings(2.0) });
    }
}

#[test]
fn unknown_cells_agree_with_the_urn_run_over_all_assignments() {
    let mut rng = Random::new(602);
    let mut n = 0;
    while n < 25 {
        let n_nodes = rng.between(2, 4);
        let mut dag = Dag::random(&mut rng, n_nodes, (2, 3), 0.5);
        if n % 3 == 0 {
            dag.tie_some(&mut rng);
        }
        let mut columns = rng.permutation(n_nodes);
        columns.truncate(rng.between(1, n_nodes));
        let (n_tokens, n_unknown) = (rng.between(2, 4), rng.between(1, 2));
        let missing = if rng.chance(0.3) { 0.2 } else { 0.0 };
        let mut rows = Rows::random(&mut rng, &dag, columns, 2, n_tokens, missing);
        for _ in 0..n_unknown {
            let cell: Vec<u32> = rows.columns.iter().map(|&node| rng.value(dag.sizes[node])).collect();
            let seen: Vec<Option<u32>> = cell.iter().map(|&value| Some(value)).collect();
            if !rows.unknown.contains(&cell) && rows.rows.iter().all(|(values, _)| *values != seen) {
                rows.unknown.push(cell);
            }
        }
        let settings = PriorSettings { rate: Some(0.5 + rng.weight()), ..random_prior(&mut rng, &dag) };
        let binding = rows.bind(&dag);
        // Cells that cannot occur have a test of their own.
        let is_small = |problem: &Problem<'_>| {
            let listed = Listed::new(problem, &rows);
            let urn = Urn::new(problem.model, problem.prior);
            listed.n_paths(3) <= 20_000.0 && ln_p_tokens(&urn, &[listed.unknown]) > f64::NEG_INFINITY
        };
        if rows.unknown.is_empty() || !with_problem(&binding, &settings, is_small) {
            continue;
        }
        let what = format!("{n}: {} with {settings:?} on\n{}", dag.text(), rows.csv());
        with_problem(&binding, &settings, |problem| {
            let listed = Listed::new(problem, &rows);
            let n_seen = problem.counts.n_tokens;
            let total = problem.prior.total(None).unwrap();
            let repeats: f64 =
                problem.counts.blocks.iter().flat_map(|block| block.counts.iter()).map(ln_factorial).sum();
            let range = TotalsRange::Between(n_seen, n_seen + 3);
            let found = totals(problem, &Exact::default(), range, &mut Control::default()).unwrap();
            assert_eq!(found.len(), 4, "{what}");
            for (entry, m) in found.iter().zip(0u64..) {
                assert_eq!(entry.tokens, n_seen + m, "{what}");
                let want = ln_p_total(total.shape, total.rate, n_seen + m) + ln_factorial(n_seen + m)
                    - repeats
                    - ln_factorial(m)
                    + listed.ln_p(problem, m as usize);
                assert_log(&format!("total {}, {what}", entry.tokens), entry.log_joint, want, 1e-10);
            }
        });
        n += 1;
    }
}

/// Tables in which value 0 of `i` never comes with value 1 of `j`.
fn with_an_impossible_cell() -> PriorSettings {
    let table = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let given = [("i".to_owned(), table(&[&[0.5, 1.1]])), ("j".to_owned(), table(&[&[0.7, 0.0], &[0.3, 0.9]]))];
    PriorSettings { rate: Some(0.2), ..tables(given.into()) }
}

fn joints(data: &str, range: TotalsRange) -> Vec<f64> {
    with_problem(&bound("i[2] -> j[2]", &csv(data)), &with_an_impossible_cell(), |problem| {
        let found = totals(problem, &Exact::default(), range, &mut Control::default()).unwrap();
        found.iter().map(|entry| entry.log_joint).collect()
    })
}

#[test]
fn an_unknown_cell_that_cannot_occur_holds_no_tokens() {
    let seen = "i,j,count\n0,0,3\n1,0,1\n1,1,2\n";
    let want = with_problem(&bound("i[2] -> j[2]", &csv(seen)), &with_an_impossible_cell(), |problem| {
        let sequence = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
        evidence(problem, sequence.ln_p_sequence).unwrap().log_marginal
    });
    let found = joints(&format!("{seen}0,1,?\n"), TotalsRange::Between(6, 8));
    assert_log("no unknown token", found[0], want, 1e-10);
    assert_eq!(found[1..], [f64::NEG_INFINITY; 2]);
}

#[test]
fn an_impossible_unknown_cell_beside_a_possible_one_changes_nothing() {
    let with_two = joints("i,j,count\n0,0,3\n1,0,1\n1,1,?\n0,1,?\n", TotalsRange::Between(4, 9));
    let with_one = joints("i,j,count\n0,0,3\n1,0,1\n1,1,?\n", TotalsRange::Between(4, 9));
    assert_eq!(with_two.len(), 6);
    with_two.iter().zip(&with_one).for_each(|(&got, &want)| assert_log("one of two", got, want, 1e-12));
}

#[test]
fn impossible_seen_cells_make_every_total_impossible() {
    let data = "i,j,count\n0,1,1\n1,0,2\n1,1,?\n";
    assert_eq!(joints(data, TotalsRange::Between(3, 6)), [f64::NEG_INFINITY; 4]);
    let hidden = "j,count\n1,2\n0,?\n";
    // The same through a hidden parent: whatever it is, value 1 cannot occur.
    let table = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>();
    let given = [("k".to_owned(), table(&[&[0.5, 1.1]])), ("j".to_owned(), table(&[&[0.7, 0.0], &[0.3, 0.0]]))];
    let prior = PriorSettings { rate: Some(0.2), ..tables(given.into()) };
    with_problem(&bound("k[2] -> j[2]", &csv(hidden)), &prior, |problem| {
        let range = TotalsRange::Between(2, 5);
        let found = totals(problem, &Exact::default(), range, &mut Control::default()).unwrap();
        let found: Vec<(u64, f64)> = found.iter().map(|entry| (entry.tokens, entry.log_joint)).collect();
        assert_eq!(found, [2, 3, 4, 5].map(|total| (total, f64::NEG_INFINITY)));
    });
}

/// The share of the probability that the automatic list of totals leaves out, next to a list of `n_more` totals.
fn left_out_by_auto(problem: &Problem<'_>, n_more: u64) -> f64 {
    let run = |range| totals(problem, &Exact::default(), range, &mut Control::default()).unwrap();
    let n_seen = problem.counts.n_tokens;
    let (auto, all) = (run(TotalsRange::Auto), run(TotalsRange::Between(n_seen, n_seen + n_more)));
    assert!(auto.iter().zip(n_seen..).all(|(entry, tokens)| entry.tokens == tokens), "no gaps");
    let sum = |list: &[TotalProbability]| log_sum_exp(&list.iter().map(|entry| entry.log_joint).collect::<Vec<_>>());
    -(sum(&auto) - sum(&all)).exp_m1()
}

#[test]
fn automatic_totals_stop_only_where_the_tail_is_below_1e_minus_12() {
    for k in [1, 2] {
        for (count, a) in [(2, 2.0), (3, 1e-2), (5, 1e-4), (6, 1e-8)] {
            let data = format!("i,j,count\n0,0,{count}\n1,0,{}\n1,1,{count}\n0,1,?\n", count + 1);
            let prior = PriorSettings { rate: Some(0.2), ..settings(a) };
            with_problem(&bound(&format!("k[{k}] -> i[2] j[2]"), &csv(&data)), &prior, |problem| {
                let left_out = left_out_by_auto(problem, 250);
                // A little above 1e-12 for the rounding of the two sums.
                assert!(left_out <= 1.1e-12, "K {k}, a {a}, count {count}: {left_out:.1e} is left out");
            });
        }
    }
}

#[test]
fn automatic_totals_do_not_stop_before_a_second_peak() {
    // The root's tiny pseudo-counts send all tokens to one of two clusters. In the first, the unknown value hardly ever
    // occurs; in the second it has nine tokens in ten. Twenty tokens of the other value speak for the first cluster, 1 to
    // 1e-20, unless there are some 160 unknown tokens: those totals together have more than half of the probability.
    let given = [("k".to_owned(), vec![vec![1e-40, 1e-40]]), ("x".to_owned(), vec![vec![1e9, 1e-11], vec![1e8, 9e8]])];
    let prior = PriorSettings { rate: Some(0.01), ..tables(given.into()) };
    with_problem(&bound("k[2] -> x[2]", &csv("x,count\n0,20\n1,?\n")), &prior, |problem| {
        let left_out = left_out_by_auto(problem, 1200);
        assert!(left_out <= 1.1e-12, "{left_out:.1e} is left out");
    });
}

#[test]
fn the_probability_of_a_total_does_not_depend_on_the_range_asked_for() {
    let data = "i,j,count\n0,0,2\n1,0,1\n1,1,3\n0,1,?\n";
    let two = format!("{data}1,3,?\n");
    for model in ["k[2] -> i[2] j[4]", "k[3] -> i[20] j[50]", "i[2] -> j[4]"] {
        for data in [data, &two] {
            for (a, rate) in [(1e-12, 0.3), (0.5, 0.01), (1e4, 5.0), (1e9, 1e6)] {
                let prior = PriorSettings { rate: Some(rate), ..settings(a) };
                with_problem(&bound(model, &csv(data)), &prior, |problem| {
                    let run = |low, high| {
                        let range = TotalsRange::Between(low, high);
                        totals(problem, &Exact::default(), range, &mut Control::default()).unwrap()
                    };
                    // Two unknown cells are followed state by state, so their totals cannot reach as far.
                    let long = run(6, if data == two { 20 } else { 306 });
                    for (low, high) in [(6, 6), (6, 9), (9, 9), (18, 19)] {
                        for entry in run(low, high) {
                            let what = format!("{model}, a {a}, {low}..{high}, total {}", entry.tokens);
                            assert_log(&what, entry.log_joint, long[entry.tokens as usize - 6].log_joint, 1e-10);
                        }
                    }
                    assert!(long.iter().all(|entry| entry.log_joint.is_finite()), "{model}, a {a}: {long:?}");
                });
            }
        }
    }
}
