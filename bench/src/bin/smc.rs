//! Sequential Monte Carlo: speed of the kernels on the paper's CP problem.

use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::smc::{Path, Smc};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::simd::Isa;
use polyurn::{Result, Seed};
use polyurn_bench::{bound, cp_data};
use std::time::Instant;

fn main() -> Result<()> {
    println!("{:<44} {:>9} {:>12} {:>12}", "CP, T = 1000, a = 34", "ms", "ns/update", "kernel");
    for (side, rank, particles, rejuvenation) in [
        (34, 10, 500, 0),
        (34, 10, 500, 20),
        (34, 5, 500, 20),
        (4, 10, 500, 0),
        (64, 10, 500, 0),
        (1_000_000, 10, 500, 0),
    ] {
        let data = cp_data(&[side; 3], 1000, 10, 34.0, 7)?;
        let binding = bound(&format!("r[{rank}] -> i j k"), &data)?;
        let prior = Prior::build(&binding.model, &PriorSettings { a: Some(34.0), ..Default::default() })?;
        let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
        for isa in [Isa::detect(), Isa::SCALAR] {
            let path = Path { rejuvenation, ..Default::default() };
            let smc = Smc { particles, path, isa, ..Default::default() };
            let mut best = f64::INFINITY;
            let mut n_updates = 0;
            for seed in 0..7 {
                let start = Instant::now();
                let estimate = smc.ln_p_sequence(&problem, Seed(seed), &mut Control::default())?;
                best = best.min(start.elapsed().as_secs_f64());
                n_updates = estimate.runs[0].n_updates;
            }
            let name = format!("{side}^3, R = {rank}, M = {particles}, {rejuvenation} moves a token");
            println!("{name:<44} {:>9.2} {:>12.2} {:>12}", best * 1e3, best * 1e9 / n_updates as f64, isa.name());
        }
    }
    Ok(())
}
