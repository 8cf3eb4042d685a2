//! Rank recovery: CP tensors 20x25x30 of 1,000 tokens and true rank 1 to 8, all eight ranks scored within a second on two
//! threads, and again with fifty times the work.
//!
//! Arguments: number of tensors (120), factor of the longer run (50; 0 for none, to time the shorter one on an idle
//! machine), and a file for the answers. Tensors whose answers are in the file already are not done again, so a job that
//! takes over an hour can be done in parts; remove the file when the engine has changed.

use polyurn::control::Control;
use polyurn::engine::Problem;
use polyurn::engine::smc::{Crew, Smc, Wish};
use polyurn::{Result, Seed};
use polyurn_bench::{cp_data, with_problem};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

const RANKS: std::ops::RangeInclusive<u32> = 1..=8;
/// Work for one rank, in terms of all states: eight ranks and their pilots then fit into a second of our machine. Not a
/// time limit, so that the figures do not depend on what else the machine does.
const TERMS: u32 = 4400;

/// What was found for one tensor.
#[derive(Clone, Copy)]
struct Answer {
    tensor: u64,
    factor: u64,
    found: u32,
    found_by_longer: u32,
    seconds: f64,
}

impl Answer {
    fn true_rank(self) -> u32 {
        true_rank(self.tensor)
    }

    fn from_line(line: &str) -> Option<Self> {
        let mut fields = line.split(',');
        let mut next = || fields.next();
        Some(Answer {
            tensor: next()?.parse().ok()?,
            factor: next()?.parse().ok()?,
            found: next()?.parse().ok()?,
            found_by_longer: next()?.parse().ok()?,
            seconds: next()?.parse().ok()?,
        })
    }

    fn to_line(self) -> String {
        format!("{},{},{},{},{}", self.tensor, self.factor, self.found, self.found_by_longer, self.seconds)
    }
}

fn true_rank(tensor: u64) -> u32 {
    (tensor % 8) as u32 + 1
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (n_tensors, factor) = (number(120), number(50));
    let file = arguments.next();
    let known = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let known: Vec<Answer> = known.lines().filter_map(Answer::from_line).collect();
    let mut answers: Vec<Answer> = Vec::new();
    for tensor in 0..n_tensors {
        let answer = match known.iter().find(|known| known.tensor == tensor && known.factor == factor) {
            Some(&known) => known,
            None => {
                let answer = answer(tensor, factor)?;
                if let Some(file) = &file {
                    let mut out = OpenOptions::new().create(true).append(true).open(file).expect("a file to write to");
                    writeln!(out, "{}", answer.to_line()).expect("room for a line");
                }
                answer
            }
        };
        println!(
            "tensor {:>3}: true {}, found {}, longer run {}; {:.2} s",
            tensor + 1,
            answer.true_rank(),
            answer.found,
            answer.found_by_longer,
            answer.seconds
        );
        answers.push(answer);
    }
    let percent = |is: &dyn Fn(&&Answer) -> bool| 100.0 * answers.iter().filter(is).count() as f64 / n_tensors as f64;
    println!(
        "agree with the longer run {:.1} %, true rank {:.1} % (longer run {:.1} %), {:.2} s a tensor",
        percent(&|answer| answer.found == answer.found_by_longer),
        percent(&|answer| answer.found == answer.true_rank()),
        percent(&|answer| answer.found_by_longer == answer.true_rank()),
        answers.iter().map(|answer| answer.seconds).sum::<f64>() / n_tensors as f64
    );
    Ok(())
}

/// The rank of highest evidence, by the shorter and by the longer run.
fn answer(tensor: u64, factor: u64) -> Result<Answer> {
    let data = cp_data(&[20, 25, 30], 1000, true_rank(tensor), 10.0, 1 + tensor)?;
    let best = |score: &dyn Fn(&Problem<'_>, u32) -> Result<f64>| -> Result<u32> {
        let mut best = (f64::NEG_INFINITY, 0);
        for rank in RANKS {
            let evidence = with_problem(&format!("r[{rank}] -> i j k"), &data, 10.0, |problem| score(problem, rank))?;
            if evidence > best.0 {
                best = (evidence, rank);
            }
        }
        Ok(best.1)
    };
    let start = Instant::now();
    let found = best(&|problem, rank| {
        let smc = settle(problem, rank, Seed(tensor))?;
        Ok(smc.ln_p_sequence(problem, Seed(tensor), &mut Control::default())?.ln_p_sequence)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    if factor == 0 {
        return Ok(Answer { tensor, factor, found, found_by_longer: 0, seconds });
    }
    let found_by_longer = best(&|problem, rank| {
        // Fifty times the work, of which more moves and more particles, from another seed.
        let seed = Seed(tensor + 1_000_000);
        let mut smc = settle(problem, rank, seed)?;
        smc.path.rejuvenation *= 3;
        smc.path.n_cooling *= 3;
        smc.particles = (smc.particles as u64 * factor / 3) as usize;
        Ok(smc.ln_p_sequence(problem, seed, &mut Control::default())?.ln_p_sequence)
    })?;
    Ok(Answer { tensor, factor, found, found_by_longer, seconds })
}

/// Two runs of as many particles as the work allows, the rest as `score` chooses it.
fn settle(problem: &Problem<'_>, rank: u32, seed: Seed) -> Result<Smc> {
    let particles = (TERMS / (5 * rank + 4) / 16 * 16) as usize;
    let wish = Wish { particles: Some(particles), runs: Some(2), ..Default::default() };
    wish.settle(problem, Crew { threads: 2, ..Default::default() }, seed, &mut Control::default())
}
