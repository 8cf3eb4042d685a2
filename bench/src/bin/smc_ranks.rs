//! Rank recovery: CP tensors 20x25x30 of 1,000 tokens and true rank 1 to 8, all eight ranks scored within a second on two
//! threads, and again with fifty times the time.
//!
//! All ranks are scored cheaply first; those that could still be the best are then scored with care.
//!
//! Arguments: number of tensors (120), factor of the longer run (50; 0 for none, to time the shorter one on an idle
//! machine), and a file for what the longer runs found. A longer run that is in the file already is not done again, so a
//! job that takes over an hour can be done in parts; remove the file when the engine has changed. The shorter run is always
//! done, and timed.

use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::{Crew, Wish};
use polyurn::{Result, Seed};
use polyurn_bench::{cp_data, with_problem};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Instant;

const RANKS: std::ops::RangeInclusive<u32> = 1..=8;
/// Work for one rank, in terms of all states, not a time limit: what is found does not depend on what else the machine does.
const TERMS: u32 = 5000;
/// Gibbs updates of every token in the first, cheap score, which has no pilots, and its share of the terms.
const SCREEN_REJUVENATION: u32 = 8;
const SCREEN_SHARE: f64 = 0.5;
/// Ranks that are scored with care: no more than these, and none that is so many nats below the best.
const MOST_CONTENDERS: usize = 3;
const CONTENDERS_WITHIN: f64 = 15.0;
/// The longer run makes so many times as many moves of each token; the rest of its factor is particles ..
const LONGER_MOVES: u32 = 3;
/// .. of which there are more still, since pilots are not longer: the whole then takes at least the factor.
const PILOTS_TOO: f64 = 1.5;

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
        let found = best(&data, Work { particles: 1.0, moves: 1, seed: Seed(tensor) })?;
        let seconds = start.elapsed().as_secs_f64();
        let found_by_longer = match known.iter().find(|known| known[..2] == [tensor, factor]) {
            _ if factor == 0 => None,
            Some(known) => Some(known[2] as u32),
            None => {
                let start = Instant::now();
                let particles = PILOTS_TOO * factor as f64 / f64::from(LONGER_MOVES);
                let found = best(&data, Work { particles, moves: LONGER_MOVES, seed: Seed(tensor + 1_000_000) })?;
                println!("longer run: {:.1} s", start.elapsed().as_secs_f64());
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

/// How much work to do, beside the pilots.
#[derive(Clone, Copy)]
struct Work {
    /// Factor of the particles.
    particles: f64,
    /// Factor of the moves of each token.
    moves: u32,
    seed: Seed,
}

/// The rank of highest evidence: all ranks cheaply, then the contenders with care.
fn best(data: &Dataset, work: Work) -> Result<u32> {
    let score_all = |ranks: &mut dyn Iterator<Item = u32>, wish: &dyn Fn(u32) -> Wish| {
        ranks.map(|rank| Ok((rank, score(data, rank, work, wish)?))).collect::<Result<Vec<_>>>()
    };
    let mut screened = score_all(&mut RANKS.clone(), &screen)?;
    screened.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let least = screened[0].1 - CONTENDERS_WITHIN;
    let contenders = screened.iter().take(MOST_CONTENDERS).filter(|(_, evidence)| *evidence >= least);
    let scored = score_all(&mut contenders.map(|&(rank, _)| rank), &careful)?;
    Ok(scored.iter().max_by(|(_, a), (_, b)| a.total_cmp(b)).expect("the best is a contender").0)
}

/// The evidence of one rank: exact where that is easy, which is rank 1; else two runs of the settings that `wish` leads to.
fn score(data: &Dataset, rank: u32, work: Work, wish: &dyn Fn(u32) -> Wish) -> Result<f64> {
    with_problem(&format!("r[{rank}] -> i j k"), data, 10.0, |problem| {
        if rank == 1 {
            return Ok(Exact { max_memory: 1 << 20 }
                .ln_p_sequence(problem, &mut Control::default())?
                .ln_p_sequence
                .value());
        }
        let crew = Crew { threads: 2, ..Default::default() };
        let mut smc = wish(rank).settle(problem, crew, work.seed, &mut Control::default())?.smc;
        smc.path.rejuvenation *= work.moves;
        smc.path.n_cooling *= work.moves;
        smc.particles = (smc.particles as f64 * work.particles) as usize;
        Ok(smc.ln_p_sequence(problem, work.seed, &mut Control::default())?.ln_p_sequence)
    })
}

/// Without pilots, and with fewer moves.
fn screen(rank: u32) -> Wish {
    let rejuvenation = Some(SCREEN_REJUVENATION);
    Wish {
        particles: Some(particles(rank, SCREEN_SHARE)),
        runs: Some(2),
        heat: Some(1.0),
        rejuvenation,
        ..Default::default()
    }
}

/// As many particles as the work allows, the rest as `score` chooses it.
fn careful(rank: u32) -> Wish {
    Wish { particles: Some(particles(rank, 1.0)), runs: Some(2), ..Default::default() }
}

fn particles(rank: u32, share: f64) -> usize {
    (f64::from(TERMS) * share / f64::from(5 * rank + 4)) as usize / 16 * 16
}
