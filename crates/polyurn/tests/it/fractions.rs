//! Counts that are not whole: variational Bayes and EM do with them, all others refuse.

use crate::support::{assert_relative, settings, with_problem};
use crate::sweeps_support::climb;
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::counts::{Cell, Dataset, DatasetBuilder, Rounded, RowCount};
use polyurn::engine::Problem;
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::Smc;
use polyurn::engine::sweeps::{BestAllocation, Climb, Em, Given, Vb};
use polyurn::evidence::{Evidence, evidence};
use polyurn::graph::{BindOptions, Binding, ModelSource, bind};
use polyurn::io::{Format, ReadOptions, read};
use std::io::Write;

/// A file of counts, fractions allowed.
fn read_text(text: &str) -> Dataset {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    read(file.path(), &ReadOptions { format: Some(Format::Csv), fractions: true, ..Default::default() }).unwrap()
}

fn bound_to(model: &str, text: &str) -> Binding {
    bind(&ModelSource::parse(model).unwrap(), &read_text(text), BindOptions::default()).unwrap()
}

/// The same table with every count written by a function of it.
fn table(count: impl Fn(u32) -> String) -> String {
    let mut text = String::from("i,j,count\n");
    for (i, j, n) in [(0, 0, 5), (0, 1, 2), (0, 2, 1), (1, 2, 3), (1, 3, 4), (2, 2, 1), (2, 3, 7), (3, 0, 2)] {
        text += &format!("i{i},j{j},{}\n", count(n));
    }
    text
}

fn bound_of(problem: &Problem<'_>) -> Evidence {
    let vb = Vb { climb: climb(1, 60), ..Default::default() };
    evidence(problem, vb.fit(problem, Seed(5), &mut Control::default()).unwrap().bound).unwrap()
}

#[test]
fn the_bound_is_continuous_in_the_counts() {
    // Also with tables that are wholly seen, some of whose cells are stored; and with nothing hidden at all.
    for model in ["i -> k[2] -> j", "k[2] -> i j", "i -> j; i -> k[2]", "i -> j", "i -> j -> k[2] -> l[2]"] {
        let whole = with_problem(&bound_to(model, &table(|n| n.to_string())), &settings(2.5), bound_of);
        let near = with_problem(&bound_to(model, &table(|n| format!("{n}.000000001"))), &settings(2.5), bound_of);
        // Eight counts are a billionth larger; slopes of ln Gamma are of order ten.
        for (name, whole, near) in [
            ("total", whole.log_p_total, near.log_p_total),
            ("arrangements", whole.log_arrangements, near.log_arrangements),
            ("sequence", whole.log_p_sequence, near.log_p_sequence),
            ("all", whole.log_marginal, near.log_marginal),
        ] {
            assert!((whole - near).abs() < 1e-6 && whole != near, "{model} {name}: {whole} {near}");
        }
    }
}

#[test]
fn halves_of_all_counts_have_the_same_most_likely_tables() {
    let whole = bound_to("k[2] -> i j", &table(|n| n.to_string()));
    let halves = bound_to("k[2] -> i j", &table(|n| format!("{}", f64::from(n) / 2.0)));
    assert_eq!((halves.counts.total(), halves.counts.unit.is_token()), (12.5, false));
    let em = Em { climb: climb(2, 200), ..Default::default() };
    let fit = |binding: &Binding| {
        with_problem(binding, &settings(1.0), |problem| {
            let fit = em.fit(problem, Seed(3), &mut Control::default()).unwrap();
            (fit.ln_likelihood, fit.intensity, fit.tables(problem))
        })
    };
    let (whole, halves) = (fit(&whole), fit(&halves));
    assert_relative("ln likelihood", 2.0 * halves.0, whole.0, 1e-12);
    assert_eq!((2.0 * halves.1, whole.1), (25.0, 25.0));
    for (whole, halves) in whole.2.iter().zip(&halves.2) {
        for (whole, halves) in whole.rows.iter().zip(&halves.rows) {
            for (whole, halves) in whole.cells.iter().zip(&halves.cells) {
                assert!((whole.mean - halves.mean).abs() < 1e-9, "{whole:?} {halves:?}");
            }
        }
    }
}

#[test]
fn engines_that_need_whole_tokens_refuse_fractions() {
    let binding = bound_to("i -> k[2] -> j", &table(|n| format!("{n}.5")));
    with_problem(&binding, &settings(1.0), |problem| {
        let mut control = Control::default();
        let dual_em = BestAllocation { climb: climb(1, 3), given: Given::Expectations, start: None };
        let errors = [
            Exact::default().ln_p_sequence(problem, &mut control).map(drop).unwrap_err(),
            Smc::default().ln_p_sequence(problem, Seed(1), &mut control).map(drop).unwrap_err(),
            dual_em.fit(problem, Seed(1), &mut control).map(drop).unwrap_err(),
            polyurn::engine::naive::naive(problem, 10, Seed(1), &mut control).map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains("only vb and em do with"), "{error}");
        }
    });
}

#[test]
fn digits_beyond_the_ninth_are_rounded_and_said_to_be() {
    let dataset = read_text("i,count\na,0.12345678901\nb,2\n");
    assert_eq!(dataset.counts, [123_456_789, 2_000_000_000]);
    assert!(
        dataset.warnings[0].to_string().contains("1 rows were rounded to 9 decimal places"),
        "{:?}",
        dataset.warnings
    );
    // Data without a fraction stay whole.
    let mut builder = DatasetBuilder::new("test");
    builder.take_fractions();
    builder.push(2, [], RowCount::Tokens(3)).unwrap();
    let unit = dataset.unit;
    builder.push(3, std::iter::empty::<Cell<'_>>(), RowCount::Tokens(4)).unwrap();
    assert!(builder.finish().unit.is_token() && !unit.is_token());
    assert_eq!(RowCount::Fraction(25, unit, Rounded::No).to_string(), "0.000000025");
}

#[test]
fn a_climb_does_not_depend_on_what_tokens_are_counted_in() {
    let sweeps = |scale: &str| {
        let binding = bound_to("k[3] -> i j", &table(|n| format!("{n}{scale}")));
        with_problem(&binding, &settings(1.0), |problem| {
            let em = Em { climb: Climb { restarts: 1, max_iter: 20_000, ..Default::default() }, ..Default::default() };
            let fit = em.fit(problem, Seed(3), &mut Control::default()).unwrap();
            assert!(fit.climbs.converged);
            (fit.climbs.trace.len(), fit.ln_likelihood / problem.counts.total())
        })
    };
    let (whole, tiny) = (sweeps(""), sweeps("e-8"));
    // The least distance that counts is a nat for 25 tokens, and a nat a token where there is less than one of them.
    assert!(2 * tiny.0 >= whole.0 && tiny.0 <= 2 * whole.0, "{whole:?} {tiny:?}");
    assert_relative("likelihood a token", tiny.1, whole.1, 1e-5);
}

/// Numbers of nats that are far beyond sixteen digits: half a token more changes the evidence by what calculus says.
#[test]
fn one_fraction_among_huge_counts_costs_no_digits() {
    let text = |last: &str| format!("i,j,count\na,x,1000000000000000\na,y,3000000000000000\nb,x,7\nb,y,{last}\n");
    for a in [1.0, 1e10] {
        let at = |last: &str| with_problem(&bound_to("i -> j", &text(last)), &settings(a), bound_of);
        // The same twice: whole, and whole by value.
        let (whole, same) = (at("5"), at("5.000000000"));
        assert_eq!(whole, same);
        let (less, more) = (at("4.75"), at("5.25"));
        // ln Gamma is so nearly linear over a quarter of a token that the mean of both sides is the middle, but for a
        // sixteenth of half its second derivative, which is about 1/5 here.
        let middle = 0.5 * (less.log_marginal + more.log_marginal);
        assert!((middle - whole.log_marginal).abs() < 0.02, "{a}: {} {middle}", whole.log_marginal);
    }
}

#[test]
fn a_fraction_in_a_row_that_cannot_occur_has_no_bound() {
    let tables = [("i".to_owned(), vec![vec![1.0, 0.0]]), ("j".to_owned(), vec![vec![1.0, 1.0], vec![0.0, 0.0]])];
    let prior = crate::support::tables(tables.into_iter().collect());
    let found = with_problem(&bound_to("i[2] -> j[2]", "i,j,count\na,x,2\na,y,1\nb,x,0.5\n"), &prior, bound_of);
    assert_eq!(found.log_marginal, f64::NEG_INFINITY);
}
