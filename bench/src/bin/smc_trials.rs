//! What the settings of sequential Monte Carlo are worth: the trials behind the defaults, at about equal work.
//!
//! Every row is twenty runs of one setting with one seed on one thread. Name sections to run only those:
//! `smc_trials moves traps`. The tables of docs/smc.md are output of this program.

use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::Problem;
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::{Crew, Order, Pace, Path, Scan, Schedule, Scheme, Smc, When, Wish, log_mean_exp};
use polyurn::{Result, Seed};
use polyurn_bench::{Section, cp_data, mean_and_sd, paper_matrix, wanted, with_problem};
use std::time::Instant;

/// Runs of a row.
const RUNS: u64 = 20;
/// Seed of all runs.
const SEED: Seed = Seed(1);

fn main() -> Result<()> {
    let sections: [Section; 13] = [
        ("moves", moves),
        ("traps", traps),
        ("scan", scan),
        ("orders", orders),
        ("ess", ess),
        ("schemes", schemes),
        ("work", work),
        ("runs", small_runs),
        ("split-merge", split_merge),
        ("schedules", schedules),
        ("cooling", cooling),
        ("sparse", sparse),
        ("cures", cures),
    ];
    for (name, section) in wanted(sections) {
        println!("# {name}\n");
        section()?;
    }
    Ok(())
}

/// Data, and a model to score them under: CP for three axes, NMF for two.
struct Case {
    name: String,
    data: Dataset,
    rank: u32,
    a: f64,
    sizes: Vec<u32>,
}

impl Case {
    fn new(sizes: &[u32], n_tokens: u64, true_rank: u32, true_a: f64, seed: u64, rank: u32, a: f64) -> Result<Self> {
        let shape = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
        Ok(Case {
            name: format!("{shape}, T = {n_tokens}, true rank {true_rank}, seed {seed}; rank {rank}, a = {a}"),
            data: cp_data(sizes, n_tokens, true_rank, true_a, seed)?,
            rank,
            a,
            sizes: sizes.to_vec(),
        })
    }

    /// The model-order setting of the paper, scored at this rank.
    fn cp(rank: u32, a: f64) -> Result<Self> {
        Case::new(&[20, 25, 30], 1000, 5, 10.0, 1, rank, a)
    }

    /// More components than a thousand tokens tell apart easily.
    fn cp8(seed: u64, a: f64) -> Result<Self> {
        Case::new(&[20, 25, 30], 1000, 8, 10.0, seed, 8, a)
    }

    fn nmf(a: f64) -> Result<Self> {
        Case::new(&[30, 40], 1000, 4, 20.0, 4, 4, a)
    }

    /// The factor that brings a typical cell of the seen nodes' tables to this pseudo-count.
    fn heat(&self, start: f64) -> f64 {
        let ln_cell = |&size: &u32| (self.a / f64::from(self.rank * size)).ln();
        let mean = self.sizes.iter().map(ln_cell).sum::<f64>() / self.sizes.len() as f64;
        (start / mean.exp()).max(1.0)
    }

    /// Prints a heading and hands the problem to `f`.
    fn each_row(&self, f: impl FnOnce(&Problem<'_>) -> Result<()>) -> Result<()> {
        println!("{}", self.name);
        println!("{:<48} {:>11} {:>8} {:>11} {:>8} {:>8}", "", "mean", "sd", "ln of mean", "Mupd/run", "s/run");
        self.with_problem(f)?;
        println!();
        Ok(())
    }

    /// Hands the problem to `f`.
    fn with_problem(&self, f: impl FnOnce(&Problem<'_>) -> Result<()>) -> Result<()> {
        let children = &["i", "j", "k"][..self.sizes.len()];
        with_problem(&format!("r[{}] -> {}", self.rank, children.join(" ")), &self.data, self.a, f)
    }
}

/// Tokens in, moves, no cooling.
fn warm(particles: usize, rejuvenation: u32) -> Smc {
    Smc { particles, runs: RUNS, path: Path { rejuvenation, ..Default::default() }, ..Default::default() }
}

/// From larger pseudo-counts, as many cooling steps as moves.
fn hot(particles: usize, rejuvenation: u32, heat: f64) -> Smc {
    let smc = warm(particles, rejuvenation);
    Smc { path: Path { start_scale: heat, n_cooling: rejuvenation, ..smc.path }, ..smc }
}

/// Runs of a setting: their estimates, million updates of each and seconds of each.
fn measure(problem: &Problem<'_>, smc: &Smc) -> Result<(Vec<f64>, f64, f64)> {
    let start = Instant::now();
    let estimate = smc.ln_p_sequence(problem, SEED, &mut Control::default())?;
    let n_runs = estimate.runs.len() as f64;
    let seconds = start.elapsed().as_secs_f64() / n_runs;
    let updates: u64 = estimate.runs.iter().map(|run| run.n_updates).sum();
    Ok((estimate.runs.iter().map(|run| run.ln_p_sequence).collect(), updates as f64 / 1e6 / n_runs, seconds))
}

fn row(problem: &Problem<'_>, label: &str, smc: &Smc) -> Result<()> {
    let (logs, updates, seconds) = measure(problem, smc)?;
    show(label, &logs, updates, seconds);
    Ok(())
}

fn show(label: &str, logs: &[f64], updates: f64, seconds: f64) {
    let (mean, sd) = mean_and_sd(logs);
    println!("{label:<48} {mean:>11.2} {sd:>8.3} {:>11.2} {updates:>8.2} {seconds:>8.3}", log_mean_exp(logs));
}

/// What a start is called.
const STARTS: [(&str, f64); 3] = [("1/16", 1.0 / 16.0), ("1/4", 0.25), ("1", 1.0)];

/// The paper's algorithm, moves and heat, about four million updates each; and which heat pilots choose.
fn ladder(case: &Case) -> Result<()> {
    case.each_row(|problem| {
        row(problem, "paper's algorithm, M = 4000", &warm(4000, 0))?;
        row(problem, "moves: R = 39, M = 100", &warm(100, 39))?;
        for (name, start) in STARTS {
            let heat = case.heat(start);
            if heat >= 1.5 {
                let label = format!("from {name} a cell (x {heat:.1}), R = J = 20, M = 100");
                row(problem, &label, &hot(100, 20, heat))?;
            }
        }
        let heat =
            Wish::default().settle(problem, Crew::default(), SEED, &mut Control::default())?.smc.path.start_scale;
        println!("{}", if heat == 1.0 { "pilots choose no heat".into() } else { format!("pilots choose x {heat:.1}") });
        Ok(())
    })
}

fn moves() -> Result<()> {
    for rank in [5, 7] {
        ladder(&Case::cp(rank, 10.0)?)?;
    }
    ladder(&Case::nmf(20.0)?)?;
    ladder(&Case::cp(5, 0.1)?)?;
    ladder(&Case::nmf(0.1)?)
}

fn traps() -> Result<()> {
    for seed in TRAP_SEEDS {
        ladder(&Case::cp8(seed, 10.0)?)?;
    }
    ladder(&Case::cp8(TRAP_SEEDS[0], 0.1)?)?;
    ladder(&Case::new(&[100; 3], 1000, 5, 10.0, 8, 5, 10.0)?)
}

/// Data with eight components, some of which merge under too much heat.
const TRAP_SEEDS: [u64; 3] = [7, 18, 52];

/// How common traps are: data sets on which a hot start loses more than five nats against none, by small runs.
fn scan() -> Result<()> {
    let kinds: [(&[u32], u32); 2] = [(&[20, 25, 30], 8), (&[100; 3], 5)];
    for (sizes, rank) in kinds {
        let mut n_lost = [0; 2];
        for seed in 1..60 {
            let case = Case::new(sizes, 1000, rank, 10.0, seed, rank, 10.0)?;
            case.with_problem(|problem| {
                let mean = |smc: Smc| -> Result<f64> {
                    let (logs, ..) = measure(problem, &Smc { runs: 4, ..smc })?;
                    Ok(logs.iter().sum::<f64>() / 4.0)
                };
                let without = mean(warm(32, 20))?;
                for (n_lost, start) in n_lost.iter_mut().zip([0.25, 1.0]) {
                    *n_lost += u32::from(mean(hot(32, 10, case.heat(start)))? < without - 5.0);
                }
                Ok(())
            })?;
        }
        let [quarter, one] = n_lost;
        println!("{sizes:?}, rank {rank}: of 59 seeds {quarter} lose more than 5 nats from 1/4 a cell, {one} from 1");
    }
    println!();
    Ok(())
}

/// The two cases of the finer trials, each with the start that suits it.
fn two_cases() -> Result<[(Case, f64); 2]> {
    Ok([(Case::cp(7, 10.0)?, 0.25), (Case::nmf(20.0)?, 1.0)])
}

fn orders() -> Result<()> {
    for (case, start) in two_cases()? {
        let heat = case.heat(start);
        case.each_row(|problem| {
            let by = |name: &str| problem.model.find(name).map(|node| (format!("by:{name}"), Order::By(node)));
            let mut orders = vec![("random".to_owned(), Order::Random), ("given".to_owned(), Order::Given)];
            orders.extend(["i", "j", "k"].iter().filter_map(|name| by(name)));
            for (kind, smc) in [("with heat", hot(100, 20, heat)), ("without", warm(100, 39))] {
                for (name, order) in &orders {
                    let path = Path { order: *order, ..smc.path.clone() };
                    row(problem, &format!("{name}, {kind}"), &Smc { path, ..smc.clone() })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn ess() -> Result<()> {
    let shares = [0.3, 0.5, 0.7, 0.9].map(|share| (share.to_string(), When::EssBelow(share)));
    for (case, start) in two_cases()? {
        let heat = case.heat(start);
        case.each_row(|problem| {
            for (kind, smc) in [("with heat", hot(100, 20, heat)), ("without", warm(100, 39))] {
                for (name, when) in shares.iter().chain([&("always".to_owned(), When::Always)]) {
                    let path = Path { when: *when, ..smc.path.clone() };
                    row(problem, &format!("ESS {name}, {kind}"), &Smc { path, ..smc.clone() })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn schemes() -> Result<()> {
    for (case, start) in two_cases()? {
        let heat = case.heat(start);
        case.each_row(|problem| {
            for (kind, smc) in [("with heat", hot(100, 20, heat)), ("paper's algorithm", warm(4000, 0))] {
                for (name, scheme) in [
                    ("systematic", Scheme::Systematic),
                    ("stratified", Scheme::Stratified),
                    ("residual", Scheme::Residual),
                    ("multinomial", Scheme::Multinomial),
                ] {
                    let path = Path { scheme, ..smc.path.clone() };
                    row(problem, &format!("{name}, {kind}"), &Smc { path, ..smc.clone() })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Where a budget goes: particles, moves while tokens come in (R) or cooling steps (J).
fn work() -> Result<()> {
    for (case, start) in two_cases()? {
        let heat = case.heat(start);
        case.each_row(|problem| {
            for (particles, rejuvenation) in [(800, 10), (400, 20), (200, 40), (100, 80), (50, 160)] {
                let smc = hot(particles, rejuvenation, heat);
                row(problem, &format!("M = {particles}, R = J = {rejuvenation}"), &smc)?;
            }
            for (rejuvenation, n_cooling) in [(5, 35), (10, 30), (30, 10), (35, 5)] {
                let smc = hot(400, rejuvenation, heat);
                let path = Path { n_cooling, ..smc.path };
                row(problem, &format!("M = 400, R = {rejuvenation}, J = {n_cooling}"), &Smc { path, ..smc })?;
            }
            row(problem, "M = 400, R = 39, no heat", &warm(400, 39))
        })?;
    }
    Ok(())
}

/// One run of 800 particles against the mean of eight runs of 100.
fn small_runs() -> Result<()> {
    for (case, start) in two_cases()? {
        let heat = case.heat(start);
        case.each_row(|problem| {
            for (kind, small, big) in
                [("with heat", hot(100, 20, heat), hot(800, 20, heat)), ("without", warm(100, 39), warm(800, 39))]
            {
                let (logs, updates, seconds) = measure(problem, &Smc { runs: 8 * RUNS, ..small })?;
                let groups: Vec<f64> = logs.chunks(8).map(log_mean_exp).collect();
                show(&format!("eight runs of 100, {kind}"), &groups, 8.0 * updates, 8.0 * seconds);
                row(problem, &format!("one run of 800, {kind}"), &big)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Moves of whole groups, at the same M, R and J: more work.
fn split_merge() -> Result<()> {
    let (shallow, deep) = (Case::cp8(TRAP_SEEDS[1], 10.0)?, Case::cp8(TRAP_SEEDS[2], 10.0)?);
    let [(cp, cp_start), (nmf, nmf_start)] = two_cases()?;
    let cases = [(shallow, &[0.25][..]), (deep, &[0.0, 0.25, 1.0]), (cp, &[cp_start]), (nmf, &[nmf_start])];
    for (case, starts) in cases {
        case.each_row(|problem| {
            for &start in starts {
                let smc = if start > 0.0 { hot(100, 20, case.heat(start)) } else { warm(100, 39) };
                for n_reallocations in [0, 1, 3, 20] {
                    let path = Path { n_reallocations, ..smc.path.clone() };
                    let from = if start > 0.0 { format!("from {start} a cell") } else { "no heat".into() };
                    row(problem, &format!("--split-merge {n_reallocations}, {from}"), &Smc { path, ..smc.clone() })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Which tokens are drawn again, and when, on the two cases and on others of the same kinds.
fn schedules() -> Result<()> {
    let kinds = [
        ("round and round", Scan::Cyclic, Pace::Even),
        ("at random", Scan::Uniform, Pace::Even),
        ("reshuffled after each round", Scan::Reshuffled, Pace::Even),
        ("the last ones", Scan::Recent, Pace::Even),
        ("the first ones", Scan::Old, Pace::Even),
        ("in proportion to the tokens so far", Scan::Cyclic, Pace::Growing),
        ("in inverse proportion", Scan::Cyclic, Pace::Shrinking),
        ("every 50 tokens, 50 times as many", Scan::Cyclic, Pace::Bursts(50)),
    ];
    let others = [
        (Case::new(&[20, 25, 30], 1000, 5, 10.0, 2, 7, 10.0)?, 0.25),
        (Case::new(&[30, 40], 1000, 4, 20.0, 5, 4, 20.0)?, 1.0),
        (Case::new(&[50, 60], 1000, 6, 30.0, 6, 6, 30.0)?, 1.0),
    ];
    for (case, start) in two_cases()?.into_iter().chain(others) {
        let heat = case.heat(start);
        case.each_row(|problem| {
            for (kind, smc) in [("without heat", warm(100, 39)), ("with heat", hot(100, 20, heat))] {
                for (name, scan, pace) in kinds {
                    let path = Path { schedule: Schedule { scan, pace }, ..smc.path.clone() };
                    row(problem, &format!("{name}, {kind}"), &Smc { path, ..smc.clone() })?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Steps of the cooling at small a, where there is much to cool, for the same work.
fn cooling() -> Result<()> {
    let case = Case::nmf(0.1)?;
    let heat = case.heat(0.25);
    case.each_row(|problem| {
        for (rejuvenation, n_cooling, particles) in
            [(35, 5, 100), (30, 10, 100), (20, 20, 100), (10, 30, 100), (20, 60, 50)]
        {
            let smc = hot(particles, rejuvenation, heat);
            let path = Path { n_cooling, ..smc.path };
            row(problem, &format!("M = {particles}, R = {rejuvenation}, J = {n_cooling}"), &Smc { path, ..smc })?;
        }
        Ok(())
    })
}

/// The paper's matrix at tiny a: moves of whole groups without heat, and heat.
fn sparse() -> Result<()> {
    let data = paper_matrix()?;
    for (a, rank) in [(1e-5, 2), (1e-5, 4), (1e-3, 3)] {
        println!("the paper's 3x4 matrix, K = {rank}, a = {a:.0e}");
        with_problem(&format!("k[{rank}] -> i j"), &data, a, |problem| {
            let exact = Exact::default().ln_p_sequence(problem, &mut Control::default())?.ln_p_sequence.value();
            println!("{:<48} {exact:>11.2}", "exact");
            row(problem, "moves: R = 39, M = 10000", &warm(10_000, 39))?;
            for n_reallocations in [1, 5, 20] {
                let smc = warm(10_000, 20);
                let path = Path { n_reallocations, ..smc.path };
                row(problem, &format!("--split-merge {n_reallocations}, R = 20, M = 10000"), &Smc { path, ..smc })?;
            }
            let heat = 0.25 * f64::from(rank) * 12f64.sqrt() / a;
            row(problem, "from 1/4 a cell, R = J = 20, M = 10000", &hot(10_000, 20, heat))
        })?;
        println!();
    }
    Ok(())
}

/// More of everything against a trap.
fn cures() -> Result<()> {
    let case = Case::cp8(TRAP_SEEDS[2], 10.0)?;
    let heat = case.heat(1.0);
    case.each_row(|problem| {
        for (name, particles, rejuvenation, n_cooling) in [
            ("from 1 a cell, R = J = 20, M = 100", 100, 20, 20),
            ("five times the cooling steps", 100, 20, 100),
            ("five times the moves", 100, 100, 20),
            ("five times the particles", 500, 20, 20),
        ] {
            let smc = hot(particles, rejuvenation, heat);
            row(problem, name, &Smc { path: Path { n_cooling, ..smc.path }, ..smc })?;
        }
        Ok(())
    })
}
