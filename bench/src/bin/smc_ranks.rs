//! Rank recovery: CP tensors 20x25x30 of 1,000 tokens and true rank 1 to 8, all eight ranks scored within a second on two
//! threads, and again with fifty times the work.
//!
//! Arguments: number of tensors (120), factor of the longer run (50; 0 for none, to time the shorter one on an idle
//! machine), and a file for what the longer runs found. A longer run that is in the file already is not done again, so a
//! job that takes over an hour can be done in parts; remove the file when the engine has changed. The shorter run is always
//! done, and timed.

use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::Problem;
use polyurn::engine::smc::{Crew, Smc, Wish};
use polyurn::{Result, Seed};
use polyurn_bench::{cp_data, with_problem};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

const RANKS: std::ops::RangeInclusive<u32> = 1..=8;
/// Work for one rank, in terms of all states: eight ranks and their pilots then fit into a second of our machine, also when
/// it has noisy neighbours. Not a time limit, so that what is found does not depend on what else the machine does.
const TERMS: u32 = 3600;
/// What the longer run multiplies: more, so that the factor is at least what it says.
const LONGER_TERMS: u32 = 4400;

/// What was found for one tensor.
struct Answer {
    true_rank: u32,
    found: u32,
    found_by_longer: Option<u32>,
    seconds: f64,
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
    let known: Vec<[u64; 3]> = known.lines().filter_map(numbers).collect();
    let mut answers: Vec<Answer> = Vec::new();
    for tensor in 0..n_tensors {
        let data = cp_data(&[20, 25, 30], 1000, true_rank(tensor), 10.0, 1 + tensor)?;
        let start = Instant::now();
        let found = shorter(&data, tensor)?;
        let seconds = start.elapsed().as_secs_f64();
        let found_by_longer = match known.iter().find(|known| known[..2] == [tensor, factor]) {
            _ if factor == 0 => None,
            Some(known) => Some(known[2] as u32),
            None => {
                let found = longer(&data, tensor, factor)?;
                if let Some(file) = &file {
                    let mut out = OpenOptions::new().create(true).append(true).open(file).expect("a file to write to");
                    writeln!(out, "{tensor},{factor},{found}").expect("room for a line");
                }
                Some(found)
            }
        };
        let answer = Answer { true_rank: true_rank(tensor), found, found_by_longer, seconds };
        let longer = found_by_longer.map_or("not done".to_string(), |rank| rank.to_string());
        println!(
            "tensor {:>3}: true {}, found {found}, longer run {longer}; {seconds:.2} s",
            tensor + 1,
            answer.true_rank
        );
        answers.push(answer);
    }
    let percent = |is: &dyn Fn(&&Answer) -> bool| 100.0 * answers.iter().filter(is).count() as f64 / n_tensors as f64;
    println!(
        "true rank {:.1} %; {:.2} s a tensor, at most {:.2} s",
        percent(&|answer| answer.found == answer.true_rank),
        answers.iter().map(|answer| answer.seconds).sum::<f64>() / n_tensors as f64,
        answers.iter().map(|answer| answer.seconds).fold(0.0, f64::max)
    );
    if factor > 0 {
        println!(
            "agree with the longer run {:.1} %; its true rank {:.1} %",
            percent(&|answer| Some(answer.found) == answer.found_by_longer),
            percent(&|answer| answer.found_by_longer == Some(answer.true_rank))
        );
    }
    Ok(())
}

/// The three numbers of a line: tensor, factor, rank found.
fn numbers(line: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = line.split(',').map_while(|field| field.parse().ok()).collect();
    numbers.try_into().ok()
}

/// The rank of highest evidence, with the work that fits into a second.
fn shorter(data: &Dataset, tensor: u64) -> Result<u32> {
    let seed = Seed(tensor);
    best(data, &|problem, rank| {
        let smc = settle(problem, rank, TERMS, seed)?;
        Ok(smc.ln_p_sequence(problem, seed, &mut Control::default())?.ln_p_sequence)
    })
}

/// The rank of highest evidence, with `factor` times the work, of which more moves and more particles, from another seed.
fn longer(data: &Dataset, tensor: u64, factor: u64) -> Result<u32> {
    let seed = Seed(tensor + 1_000_000);
    best(data, &|problem, rank| {
        let mut smc = settle(problem, rank, LONGER_TERMS, seed)?;
        smc.path.rejuvenation *= 3;
        smc.path.n_cooling *= 3;
        smc.particles = (smc.particles as u64 * factor / 3) as usize;
        Ok(smc.ln_p_sequence(problem, seed, &mut Control::default())?.ln_p_sequence)
    })
}

fn best(data: &Dataset, score: &dyn Fn(&Problem<'_>, u32) -> Result<f64>) -> Result<u32> {
    let mut best = (f64::NEG_INFINITY, 0);
    for rank in RANKS {
        let evidence = with_problem(&format!("r[{rank}] -> i j k"), data, 10.0, |problem| score(problem, rank))?;
        if evidence > best.0 {
            best = (evidence, rank);
        }
    }
    Ok(best.1)
}

/// Two runs of as many particles as the work allows, the rest as `score` chooses it.
fn settle(problem: &Problem<'_>, rank: u32, terms: u32, seed: Seed) -> Result<Smc> {
    let particles = (terms / (5 * rank + 4) / 16 * 16) as usize;
    let wish = Wish { particles: Some(particles), runs: Some(2), ..Default::default() };
    Ok(wish.settle(problem, Crew { threads: 2, ..Default::default() }, seed, &mut Control::default())?.smc)
}
