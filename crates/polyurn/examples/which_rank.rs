//! Which rank has a small matrix of counts? Scores ranks 1 to 4 exactly and prints their posterior probabilities.
//!
//! Run with `cargo run -p polyurn --example which_rank`.
#![allow(clippy::print_stdout)]

use polyurn::control::Control;
use polyurn::engine::{Problem, exact::Exact};
use polyurn::evidence::evidence;
use polyurn::graph::{BindOptions, ModelSource, bind};
use polyurn::io::{Format, read_from};
use polyurn::math::log_sum_exp;
use polyurn::prior::{Prior, PriorSettings};

/// The second toy matrix of the paper: two blocks.
const MATRIX: &str = "word,document,count\n0,0,4\n0,1,3\n1,2,3\n2,2,3\n";

fn main() -> polyurn::Result<()> {
    let data = read_from(MATRIX.as_bytes(), "toy matrix", Format::Csv)?;
    let mut logs = Vec::new();
    for rank in 1..=4 {
        let source = ModelSource::parse(&format!("document -> topic[{rank}] -> word"))?;
        let bound = bind(&source, &data, BindOptions::default())?;
        let prior = Prior::build(&bound.model, &PriorSettings { a: Some(0.5), ..Default::default() })?;
        let problem = Problem::new(&bound.model, &prior, &bound.counts)?;
        let sequence = Exact::default().ln_p_sequence(&problem, &mut Control::default())?;
        logs.push(evidence(&problem, sequence.ln_p_sequence)?.log_marginal);
    }
    let total = log_sum_exp(&logs);
    println!("rank  ln evidence  probability");
    for (ix, ln) in logs.iter().enumerate() {
        println!("{:>4}  {ln:>11.4}  {:>11.3}", ix + 1, (ln - total).exp());
    }
    Ok(())
}
