//! Rank recovery: CP tensors 20x25x30 of 1,000 tokens and true rank 1 to 8, all eight ranks scored within a second on two
//! threads, and again with fifty times the work. Arguments: number of tensors (120), factor of the longer run (50), first
//! seed (1).

use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::smc::{Crew, Smc, Wish};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Result, Seed};
use polyurn_bench::{bound, cp_data};
use std::io::Write;
use std::time::Instant;

const RANKS: std::ops::RangeInclusive<u32> = 1..=8;
/// Work for one rank, in terms of all states: eight ranks and their pilots then fit into a second of our machine. Not a
/// time limit, so that the figures do not depend on what else the machine does.
const TERMS: u32 = 4400;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let n_tensors = arguments.next().unwrap_or(120);
    let factor = arguments.next().unwrap_or(50);
    let first = arguments.next().unwrap_or(1);
    let (mut n_agree, mut n_true, mut n_true_long, mut seconds) = (0, 0, 0, 0.0);
    for ix in 0..n_tensors {
        let true_rank = (ix % 8) as u32 + 1;
        let data = cp_data(&[20, 25, 30], 1000, true_rank, 10.0, first + ix)?;
        let (mut short, mut long) = (Vec::new(), Vec::new());
        let start = Instant::now();
        for rank in RANKS {
            let binding = bound(&format!("r[{rank}] -> i j k"), &data)?;
            let prior = Prior::build(&binding.model, &PriorSettings { a: Some(10.0), ..Default::default() })?;
            let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
            let smc = settle(&problem, rank, Seed(ix))?;
            short.push(smc.ln_p_sequence(&problem, Seed(ix), &mut Control::default())?.ln_p_sequence);
        }
        let spent = start.elapsed().as_secs_f64();
        if factor > 0 {
            for rank in RANKS {
                let binding = bound(&format!("r[{rank}] -> i j k"), &data)?;
                let prior = Prior::build(&binding.model, &PriorSettings { a: Some(10.0), ..Default::default() })?;
                let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
                // Fifty times the work, of which more moves and more particles, from another seed.
                let seed = Seed(ix + 1_000_000);
                let mut smc = settle(&problem, rank, seed)?;
                smc.path.rejuvenation *= 3;
                smc.path.n_cooling *= 3;
                smc.particles = (smc.particles as u64 * factor / 3) as usize;
                long.push(smc.ln_p_sequence(&problem, seed, &mut Control::default())?.ln_p_sequence);
            }
        }
        let best =
            |logs: &[f64]| (0..logs.len()).max_by(|&a, &b| logs[a].total_cmp(&logs[b])).map_or(0, |at| at as u32 + 1);
        n_agree += u64::from(best(&short) == best(&long));
        n_true += u64::from(best(&short) == true_rank);
        n_true_long += u64::from(best(&long) == true_rank);
        seconds += spent;
        println!(
            "tensor {:>3}: true {true_rank}, found {}, longer run {}; {spent:.2} s; {n_agree} of {} agree, true {n_true}, longer {n_true_long}",
            ix + 1,
            best(&short),
            best(&long),
            ix + 1
        );
        let _ = std::io::stdout().flush();
    }
    println!(
        "agree with the longer run {:.1} %, true rank {:.1} % (longer run {:.1} %), {:.2} s a tensor",
        100.0 * n_agree as f64 / n_tensors as f64,
        100.0 * n_true as f64 / n_tensors as f64,
        100.0 * n_true_long as f64 / n_tensors as f64,
        seconds / n_tensors as f64
    );
    Ok(())
}

/// Two runs of as many particles as the work allows, the rest as `score` chooses it.
fn settle(problem: &Problem<'_>, rank: u32, seed: Seed) -> Result<Smc> {
    let particles = (TERMS / (5 * rank + 4) / 16 * 16) as usize;
    let wish = Wish { particles: Some(particles), runs: Some(2), ..Default::default() };
    wish.settle(problem, Crew { threads: 2, ..Default::default() }, seed, &mut Control::default())
}
