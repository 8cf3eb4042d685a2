//! Runs of the particle engine take their memory before the first token: three times the tokens, not three times the
//! allocations.
//!
//! A program of its own, since it counts the allocations of the whole process.

use polyurn::Seed;
use polyurn::control::Control;
use polyurn::counts::{Cell, DatasetBuilder, RowCount};
use polyurn::engine::Problem;
use polyurn::engine::smc::{Path, Smc, When};
use polyurn::graph::{BindOptions, ModelSource, bind};
use polyurn::prior::{Prior, PriorSettings};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations of one run on a table in which every count is `n_each`, and how many tokens there are.
fn allocations(model: &str, n_each: u64, smc: &Smc) -> (usize, u64) {
    let mut builder = DatasetBuilder::new("test");
    for name in ["i", "j", "k"] {
        builder.index_column(Some(name.to_owned()), 0, Some(7));
    }
    let mut n_tokens = 0;
    for line in 0..90u32 {
        let values = [line % 7, line / 7 % 7, (line * line + line / 13) % 7];
        builder.push(u64::from(line) + 1, values.map(Cell::Index), RowCount::Tokens(n_each)).expect("a row");
        n_tokens += n_each;
    }
    let binding = bind(&ModelSource::parse(model).expect("a model"), &builder.finish(), BindOptions::default());
    let binding = binding.expect("the model fits");
    let settings = PriorSettings { a: Some(3.0), ..Default::default() };
    let prior = Prior::build(&binding.model, &settings).expect("a prior");
    let problem = Problem::new(&binding.model, &prior, &binding.counts).expect("a problem");
    let region = Region::new(GLOBAL);
    let estimate = smc.ln_p_sequence(&problem, Seed(5), &mut Control::default()).expect("nobody stops it");
    let change = region.change();
    assert!(estimate.runs[0].n_resampled > 100, "{} resamplings", estimate.runs[0].n_resampled);
    (change.allocations + change.reallocations, n_tokens)
}

#[test]
fn allocations_do_not_grow_with_tokens() {
    let moves = |rejuvenation, start_scale, n_cooling, n_reallocations| Path {
        rejuvenation,
        start_scale,
        n_cooling,
        n_reallocations,
        when: When::Always,
        ..Default::default()
    };
    // One unseen node, several, a chain of them; without moves, with moves, with cooling and moves of whole groups.
    for (model, path, particles, threads) in [
        ("r[4] -> i j k", moves(0, 1.0, 0, 0), 100, 1),
        ("r[4] -> i j k", moves(3, 1.0, 0, 0), 100, 1),
        ("r[4] -> i j k", moves(2, 4.0, 3, 2), 100, 1),
        ("r[3] -> i j; s[2] r -> k", moves(2, 1.0, 0, 0), 100, 1),
        ("r[3] -> i; r -> s[3]; s -> j; s -> t[2]; t -> k", moves(2, 1.0, 0, 0), 100, 1),
        ("r[4] -> i j k", moves(3, 1.0, 0, 0), 10_000, 2),
    ] {
        let smc = Smc { particles, threads, path, ..Default::default() };
        let (few, n_few) = allocations(model, 4, &smc);
        let (many, n_many) = allocations(model, 12, &smc);
        // Lists that are filled bit by bit double now and then: a few allocations per list, however many tokens.
        let n_more = many.saturating_sub(few);
        assert!(n_more <= 30, "{model}: {n_more} allocations more for {} tokens more", n_many - n_few);
    }
}
