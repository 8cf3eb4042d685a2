//! The exact engine on small matrices: the paper's 3x4 toy, and 5x5 matrices with more and more tokens.
//!
//! `make bench` prints the time, the states, and what they would be without forgetting finished rows, in one run.

use polyurn::control::Control;
use polyurn::counts::{Cell, Dataset, DatasetBuilder, RowCount};
use polyurn::engine::Problem;
use polyurn::engine::exact::{Exact, posterior};
use polyurn::graph::{BindOptions, ModelSource, bind};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Purpose, Seed};
use std::time::Instant;

fn main() -> polyurn::Result<()> {
    let toy = matrix(&[(0, 0, 2), (0, 1, 1), (0, 2, 1), (1, 2, 1), (1, 3, 2), (2, 2, 1), (2, 3, 1)])?;
    println!("{:<34} {:>10} {:>10} {:>10} {:>16}", "problem", "seconds", "states", "foreseen", "without forgetting");
    for n_classes in 1..=4 {
        run(&format!("3x4 toy, 9 tokens, K = {n_classes}"), &toy, n_classes, true)?;
    }
    for (n_tokens, n_classes) in [(20, 2), (20, 3), (20, 4), (30, 3), (60, 2)] {
        let data = random_matrix(5, n_tokens)?;
        run(
            &format!("5x5 random, {n_tokens} tokens, K = {n_classes}"),
            &data,
            n_classes,
            n_tokens <= 20 && n_classes <= 2,
        )?;
    }
    Ok(())
}

fn matrix(cells: &[(u32, u32, u64)]) -> polyurn::Result<Dataset> {
    let mut builder = DatasetBuilder::new("matrix");
    builder.index_column(Some("i".into()), 0, None);
    builder.index_column(Some("j".into()), 0, None);
    for (line, &(i, j, n)) in cells.iter().enumerate() {
        builder.push(line as u64 + 1, [Cell::Index(i), Cell::Index(j)], RowCount::Tokens(n))?;
    }
    Ok(builder.finish())
}

fn random_matrix(side: u32, n_tokens: u64) -> polyurn::Result<Dataset> {
    let mut rng = Seed(1).stream(Purpose::Simulate, 0, 0, n_tokens);
    let mut draw = || polyurn::math::draw::below(u64::from(side), &mut rng) as u32;
    let cells: Vec<(u32, u32, u64)> = (0..n_tokens).map(|_| (draw(), draw(), 1)).collect();
    matrix(&cells)
}

fn run(name: &str, data: &Dataset, n_classes: u32, also_posterior: bool) -> polyurn::Result<()> {
    let source = ModelSource::parse(&format!("i -> k[{n_classes}] -> j"))?;
    let binding = bind(&source, data, BindOptions::default())?;
    let prior = Prior::build(&binding.model, &PriorSettings::default())?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let exact = Exact { max_memory: 8 << 30 };
    let start = Instant::now();
    let sequence = exact.ln_p_sequence(&problem, &mut Control::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let foreseen = exact.cost(&problem)?.states;
    let kept = if also_posterior {
        posterior(&exact, &problem, &mut Control::default())?.n_states().to_string()
    } else {
        "-".into()
    };
    println!("{name:<34} {seconds:>10.4} {:>10} {foreseen:>10.0} {kept:>16}", sequence.max_states);
    Ok(())
}
