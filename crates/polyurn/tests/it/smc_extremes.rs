//! Numbers at the ends of their range: weights that grow or shrink at every token, counts beyond 16 bits, particles that
//! are out.

use crate::smc_support::{Subject, WHENS, check_unbiased, path_of};
use crate::support::settings;
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::engine::smc::{Crew, Order, Path, Settled, Smc, When, Wish};
use polyurn::prior::PriorSettings;

/// A table of `n` columns from one value of all columns for each token.
fn constant_rows(n: usize, values: &[u32]) -> String {
    let mut text: String = (0..n).map(|column| format!("c{column},")).collect();
    text += "count\n";
    for value in values {
        text += &format!("{value},").repeat(n);
        text += "1\n";
    }
    text
}

#[test]
fn weights_that_grow_with_every_token_do_not_overflow() {
    // Under BDeu the arrow may be turned round, and then nothing is hidden above a seen value: the exact number is a
    // closed form, and every particle has it at every token whatever it drew. Row sums that are the same in all particles
    // are counted apart, so weights grow like a factorial. Counts go from 16 to 32 bits at 65,535.
    for count in [300, 65_531, 65_532, 65_535, 70_000] {
        let data = format!("x,count\n0,{count}\n1,3\n");
        let want = Subject::new("turned", "x -> k[2]", &data, settings(0.7)).exact();
        let subject = Subject::new("large count", "k[2] -> x", &data, settings(0.7));
        for run in subject.logs(&Smc { particles: 3, ..Default::default() }, 2, 1) {
            // What is counted apart is ln(7e4!) or 7e5, so the difference has rounding errors of 7e5 times 1e-16 for each
            // of some thousand rescalings.
            assert!((run - want).abs() < 1e-7, "{count}: {run} for {want}");
        }
    }
}

#[test]
fn three_hundred_tokens_are_unbiased_without_resampling() {
    let data = "i,j,count\n0,0,180\n0,1,50\n1,0,60\n1,1,10\n";
    let subject = Subject::new("many tokens", "k[2] -> i j", data, settings(12.0));
    let want = subject.exact();
    for (seed, moves) in [(1, (0, 1.0, 0, 0)), (2, (0, 1.5, 3, 1))] {
        let path = Path { when: When::Never, ..path_of(moves) };
        check_unbiased(&subject, want, &Smc { particles: 100, path, ..Default::default() }, 200, seed);
    }
}

#[test]
fn weights_of_tokens_that_are_nearly_impossible_do_not_underflow() {
    // Twenty new values at once have probability 1e-195, not so small that logs would be added up, but two such tokens in
    // a row, or the square of one, are below the smallest number. Nothing is random: there is one component.
    let subject = Subject::new("new values", "lca(1)", &constant_rows(20, &[0, 1, 2, 3, 4, 5]), settings(1e-9));
    let want = subject.exact();
    for when in WHENS {
        let smc = Smc { particles: 4, path: Path { when, ..Default::default() }, ..Default::default() };
        let estimate = subject.estimate(&smc, 1);
        assert!((estimate.ln_p_sequence - want).abs() < 1e-9, "{when:?}: {} for {want}", estimate.ln_p_sequence);
        let run = &estimate.runs[0];
        assert!(run.ess_trace.iter().all(|&(_, size)| (size - 4.0).abs() < 1e-9), "{when:?}: {:?}", run.ess_trace);
    }
}

#[test]
fn rows_that_are_too_small_to_share_a_division_do_not_spoil_a_weight() {
    // Empty rows of twenty columns are 1e-186 together, and those of two components are below the smallest number. A token that
    // differs from another in one column shares its component or not, with about the same chance.
    let names: Vec<String> = (0..20).map(|column| format!("c{column}")).collect();
    let row = |first: u32| format!("{first}{},1\n", ",0".repeat(19));
    let data = format!("{},count\n{}", names.join(","), [0, 1, 0, 2, 1].map(row).concat());
    let settings = PriorSettings { pseudo_counts: vec![("r".to_owned(), 1.0)], ..settings(1e-9) };
    let model = format!("r[2] -> {}", names.join("[3] ") + "[3]");
    let subject = Subject::new("small rows", &model, &data, settings);
    let want = subject.exact();
    for when in WHENS {
        let path = Path { when, order: Order::Given, ..Default::default() };
        check_unbiased(&subject, want, &Smc { particles: 16, path, ..Default::default() }, 400, 1);
    }
}

#[test]
fn particles_that_are_out_do_not_spoil_the_others() {
    // Two tokens that differ in three of sixty columns share a component or not, with about the same chance. The third is
    // unlike both, so a particle where both components are taken is e^1100 behind one with a free component. With one
    // particle the lanes beside it, which go along without weight, are as often ahead.
    let mut data = constant_rows(60, &[0]);
    data += &("1,".repeat(3) + &"0,".repeat(57) + "1\n");
    data += &("1,".repeat(60) + "1\n");
    let subject = Subject::new("unlike", "lca(2)", &data, settings(3e-9));
    for (particles, when) in [(1, When::Never), (3, When::Never), (5, When::Always), (17, When::EssBelow(0.5))] {
        let path = Path { when, order: Order::Given, ..Default::default() };
        let logs = subject.logs(&Smc { particles, path, ..Default::default() }, 300, 1);
        let n_lost = logs.iter().filter(|ln| !ln.is_finite()).count();
        assert_eq!(n_lost, 0, "{particles} particles, {when:?}: possible data were called impossible");
    }
}

#[test]
fn a_rare_label_that_one_token_shows_twice_is_one_label() {
    // Twenty values to the power of four are too many joint states, so the tied tables are corrected by a weight; and a
    // label with few tokens is not kept but added up anew.
    let subject = Subject::new("rare labels", "hmm(20,tied)", "a,b,c,d,count\n0,0,1,0,1\n", settings(0.5));
    let smc = Smc { particles: 10, ..Default::default() };
    check_unbiased(&subject, subject.exact(), &smc, 2000, 1);
}

#[test]
fn products_of_heated_pseudo_counts_do_not_overflow() {
    // 25 columns with pseudo-counts of 1e14 each: their product is beyond the largest number. One component, so nothing is
    // random and cooling must come back to the exact number.
    let subject = Subject::new("very hot", "lca(1)", &constant_rows(25, &[0, 1, 0, 1, 1]), settings(1.3));
    let want = subject.exact();
    let path = Path { start_scale: 1e15, n_cooling: 4, rejuvenation: 1, ..Default::default() };
    let found = subject.estimate(&Smc { particles: 3, path, ..Default::default() }, 1).ln_p_sequence;
    // Logs of 125 factors of up to 1e15 cancel: 125 times 35 times 1e-16, with some room.
    assert!((found - want).abs() < 1e-9, "{found} for {want}");
}

/// The paper's 3 x 4 matrix in the sparse regime, with default settings from the pilots of every seed: a pilot that mistakes
/// no heat for the best makes an answer that is off by a fifth of a nat.
#[test]
fn tiny_a_is_within_a_tenth_of_a_nat_whatever_the_seed() {
    let data = "i,j,count\n0,0,2\n0,1,1\n0,2,1\n1,2,1\n1,3,2\n2,2,1\n2,3,1\n";
    for (a, size) in [(1e-5, 4), (1e-4, 4), (1e-3, 3)] {
        let subject = Subject::new("sparse", &format!("i -> k[{size}] -> j"), data, settings(a));
        let want = subject.exact();
        for seed in (0..20).map(Seed) {
            subject.with(|problem| {
                let crew = Crew { threads: 2, ..Default::default() };
                let settled = Wish::default().settle(problem, crew, seed, &mut Control::default()).unwrap();
                let Settled { smc, pilot_updates, .. } = settled;
                assert!(smc.path.start_scale > 1.0, "a = {a}, K = {size}, {seed:?}: no heat");
                // A whole job takes millions of updates; which heat it has is what seeds differ in.
                if seed.0 > 2 {
                    return;
                }
                let found = smc.ln_p_sequence(problem, seed, &mut Control::default()).unwrap();
                let error = found.ln_p_sequence - want;
                assert!(error.abs() < 0.1, "a = {a}, K = {size}, {seed:?}: {error}, {smc:?}");
                let n_updates: u64 = found.runs.iter().map(|run| run.n_updates).sum();
                assert!(pilot_updates > 0 && n_updates + pilot_updates <= 20_000_000, "{n_updates}, {pilot_updates}");
            });
        }
    }
}
