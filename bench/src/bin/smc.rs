//! Sequential Monte Carlo: speed against NumPy, what time depends on, threads, memory, and evidence per second.
//!
//! All figures of a comparison come from one run of this program, one after another on the same machine. The NumPy peer
//! needs `POLYURN_BENCH_PYTHON`, a Python with NumPy, which `make bench` sets up.

use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::Problem;
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::{Crew, Estimate, Path, Smc, Wish, log_mean_exp};
use polyurn::simd::Isa;
use polyurn::{Result, Seed};
use polyurn_bench::peer::python;
use polyurn_bench::table::Row;
use polyurn_bench::{Section, bound, cp_data, mean_and_sd, paper_matrix, wanted, with_problem};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn main() -> Result<()> {
    let sections: [Section; 7] = [
        ("numpy", numpy),
        ("sizes", sizes),
        ("linear", linear),
        ("threads", threads),
        ("memory", memory),
        ("evidence", evidence_per_second),
        ("sparse", sparse),
    ];
    for (_, section) in wanted(sections) {
        section()?;
        println!();
    }
    Ok(())
}

/// Best of some seeds, in seconds, plan and everything included.
fn best_time(smc: &Smc, problem: &Problem<'_>, repeats: u64) -> Result<(f64, Estimate)> {
    let mut best = f64::INFINITY;
    let mut last = None;
    for seed in 0..repeats {
        let start = Instant::now();
        // A problem keeps what it has compiled: make it anew.
        let problem = Problem::new(problem.model, problem.prior, problem.counts)?;
        last = Some(smc.ln_p_sequence(&problem, Seed(seed), &mut Control::default())?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok((best, last.expect("at least one repeat")))
}

fn two_threads() -> Crew {
    Crew { threads: 2, ..Default::default() }
}

/// The paper's algorithm: no moves, no cooling.
fn plain(particles: usize) -> Smc {
    Smc { particles, ..Default::default() }
}

fn numpy() -> Result<()> {
    println!("CP 34^3, R = 10, T = 1000, M = 500, a = 34, ESS resampling, no moves, one thread");
    let data = cp_data(&[34; 3], 1000, 10, 34.0, 7)?;
    let ours = with_problem("r[10] -> i j k", &data, 34.0, |problem| {
        let auto = best_time(&plain(500), problem, 20)?.0;
        let scalar = best_time(&Smc { isa: Isa::SCALAR, ..plain(500) }, problem, 20)?.0;
        println!("{:>10.1} ms  --kernel auto ({})", auto * 1e3, Isa::detect().name());
        println!("{:>10.1} ms  --kernel scalar: {:.2} times as long", scalar * 1e3, scalar / auto);
        Ok(auto)
    })?;
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    write_tokens(&data, &[34; 3], &mut file);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/smc_numpy.py");
    let path = file.path().to_str().expect("a plain path");
    let output = std::process::Command::new(python())
        .args([script, path, "10", "500", "34", "20"])
        .env("OMP_NUM_THREADS", "1")
        .output()
        .expect("Python starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [seconds, _, version] = fields[..] else { panic!("NumPy: {}", String::from_utf8_lossy(&output.stderr)) };
    let seconds: f64 = seconds.parse().expect("seconds");
    println!("{:>10.1} ms  NumPy {version}: {:.1} times as long", seconds * 1e3, seconds / ours);
    let task = "sequential Monte Carlo, CP 34^3, rank 10, 1,000 tokens, 500 particles";
    Row::keep(task, &format!("NumPy {version}, vectorised by hand"), seconds, ours);
    Ok(())
}

fn write_tokens(data: &Dataset, sizes: &[u32], file: &mut impl Write) {
    let line = |values: &[u32]| values.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let mut text = line(sizes) + "\n";
    let binding = bound("r[2] -> i j k", data).expect("three columns");
    for block in &binding.counts.blocks {
        for record in 0..block.n_records() {
            let values: Vec<u32> = block.values.iter().map(|column| column[record]).collect();
            (0..block.counts.at(record)).for_each(|_| text += &(line(&values) + "\n"));
        }
    }
    file.write_all(text.as_bytes()).expect("a temporary file can be written");
}

fn sizes() -> Result<()> {
    println!("Time by tensor size: CP, R = 10, T = 1000, M = 500, a = 34, one thread");
    let mut first = None;
    for side in [4, 34, 64, 1000, 1_000_000] {
        let data = cp_data(&[side; 3], 1000, 10, 34.0, 7)?;
        let seconds =
            with_problem("r[10] -> i j k", &data, 34.0, |problem| Ok(best_time(&plain(500), problem, 25)?.0))?;
        let base = *first.get_or_insert(seconds);
        println!("{:>10.1} ms  {side}^3: {:.2} times 4^3", seconds * 1e3, seconds / base);
    }
    Ok(())
}

fn linear() -> Result<()> {
    println!("Time by tokens and particles: CP 34^3, R = 10, a = 34, one thread");
    let time = |n_tokens: u64, particles: usize| -> Result<f64> {
        let data = cp_data(&[34; 3], n_tokens, 10, 34.0, 7)?;
        with_problem("r[10] -> i j k", &data, 34.0, |problem| Ok(best_time(&plain(particles), problem, 5)?.0))
    };
    for (n_tokens, particles) in [(1000, 512), (2000, 512), (4000, 512), (8000, 512), (1000, 2048), (1000, 8192)] {
        let seconds = time(n_tokens, particles)?;
        let per_update = seconds * 1e9 / (n_tokens as f64 * particles as f64);
        println!(
            "{:>10.1} ms  T = {n_tokens}, M = {particles}: {per_update:.1} ns a token and particle",
            seconds * 1e3
        );
    }
    Ok(())
}

fn threads() -> Result<()> {
    println!("Two threads against one: CP 34^3, R = 10, T = 1000, a = 34");
    let data = cp_data(&[34; 3], 1000, 10, 34.0, 7)?;
    with_problem("r[10] -> i j k", &data, 34.0, |problem| {
        let moves = |rejuvenation: u32| Path { rejuvenation, ..Default::default() };
        for (name, smc) in [
            ("--runs 8, M = 500, 20 moves", Smc { runs: 8, path: moves(20), ..plain(500) }),
            ("--runs 8, M = 500, no moves", Smc { runs: 8, ..plain(500) }),
            ("one run, M = 20,000, 20 moves", Smc { path: moves(20), ..plain(20_000) }),
            ("one run, M = 20,000, 5 moves", Smc { path: moves(5), ..plain(20_000) }),
            ("one run, M = 20,000, no moves", plain(20_000)),
        ] {
            compare_threads(name, &smc, problem)?;
        }
        Ok(())
    })
}

/// In turn, five times: one thread, two, and two jobs side by side on one thread each. The last is what the machine
/// allows where nothing but its memory is shared. Medians of the ratios, the worst, and each with the delay from core to
/// core before and after its two threads ran: on a rented machine that changes from minute to minute.
fn compare_threads(name: &str, smc: &Smc, problem: &Problem<'_>) -> Result<()> {
    let mut readings = Vec::new();
    let mut allowed = Vec::new();
    let mut is_same = true;
    for _ in 0..5 {
        let (one, first) = best_time(smc, problem, 1)?;
        let before = hand_over_time();
        let (two, second) = best_time(&Smc { threads: 2, ..smc.clone() }, problem, 1)?;
        let after = hand_over_time();
        is_same &= first.ln_p_sequence.to_bits() == second.ln_p_sequence.to_bits();
        readings.push((one / two, one, two, before, after));
        let start = Instant::now();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| best_time(smc, problem, 1).map(|_| ()));
            best_time(smc, problem, 1)?;
            other.join().expect("no panic")
        })?;
        allowed.push(2.0 * one / start.elapsed().as_secs_f64());
    }
    readings.sort_by(|a, b| a.0.total_cmp(&b.0));
    allowed.sort_by(f64::total_cmp);
    let (ratio, one, two, ..) = readings[readings.len() / 2];
    println!(
        "{:>10.1} ms  one thread, {:.1} ms two: {ratio:.2} times as fast, at worst {:.2} ({name}; same bytes: {is_same})",
        one * 1e3,
        two * 1e3,
        readings[0].0,
    );
    let all = readings.iter().map(|(ratio, _, _, before, after)| format!("{ratio:.2} ({before:.0}, {after:.0} ns)"));
    println!("               from core to core: {}", all.collect::<Vec<_>>().join("  "));
    println!(
        "               two such jobs side by side: {:.2}, at worst {:.2}",
        allowed[allowed.len() / 2],
        allowed[0]
    );
    Ok(())
}

/// Nanoseconds until one core sees what another has written. Cores that share a cache take some fifty, others a few times
/// as long; on a rented machine that may change from minute to minute.
fn hand_over_time() -> f64 {
    const N: u32 = 100_000;
    let turn = AtomicU32::new(0);
    let wait_for = |wanted: u32| {
        while turn.load(Ordering::Acquire) != wanted {
            std::hint::spin_loop();
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..N {
                wait_for(2 * round + 1);
                turn.store(2 * round + 2, Ordering::Release);
            }
        });
        for round in 0..N {
            turn.store(2 * round + 1, Ordering::Release);
            wait_for(2 * round + 2);
        }
    });
    start.elapsed().as_secs_f64() * 1e9 / f64::from(2 * N)
}

fn memory() -> Result<()> {
    println!("Memory: T = 100,000, three modes of a million values, K = 50, M = 200, one thread");
    let data = cp_data(&[1_000_000; 3], 100_000, 50, 50.0, 7)?;
    with_problem("r[50] -> i j k", &data, 50.0, |problem| {
        let before = resident_memory();
        let ((seconds, estimate), peak) = with_peak_memory(|| best_time(&plain(200), problem, 1))?;
        println!(
            "{:>10.2} s   {:.2} GB at the peak (before the run {:.2} GB, with what drawing the data left behind), {} resamplings",
            seconds, peak, before, estimate.runs[0].n_resampled
        );
        Ok(())
    })
}

/// Does something while another thread looks at the memory every millisecond: drawing the data took more than the run
/// will, so the process's own peak says nothing.
fn with_peak_memory<T>(f: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut peak = resident_memory();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                peak = peak.max(resident_memory());
            }
            peak
        });
        let found = f();
        is_over.store(true, Ordering::Relaxed);
        Ok((found?, watch.join().expect("no panic")))
    })
}

/// Resident memory of this process, in GB.
fn resident_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("VmRSS: 0 kB");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e6
}

fn evidence_per_second() -> Result<()> {
    println!(
        "Evidence per second: CP 20x25x30, T = 1000, true rank 5, a = 10, two threads, 20 runs of the default settings"
    );
    let data = cp_data(&[20, 25, 30], 1000, 5, 10.0, 1)?;
    for rank in [5, 7] {
        with_problem(&format!("r[{rank}] -> i j k"), &data, 10.0, |problem| {
            let settle = |seed: u64| {
                Ok(Wish::default().settle(problem, two_threads(), Seed(seed), &mut Control::default())?.smc)
            };
            let default = settle(0)?;
            let repeat = |smc: &Smc| -> Result<(f64, Vec<f64>)> {
                let start = Instant::now();
                let logs = (0..20)
                    .map(|seed| Ok(smc.ln_p_sequence(problem, Seed(seed), &mut Control::default())?.ln_p_sequence))
                    .collect::<Result<Vec<f64>>>()?;
                Ok((start.elapsed().as_secs_f64() / 20.0, logs))
            };
            // Pilots and all, as `score` does it.
            let start = Instant::now();
            let logs = (0..20)
                .map(|seed| {
                    Ok(settle(seed)?.ln_p_sequence(problem, Seed(seed), &mut Control::default())?.ln_p_sequence)
                })
                .collect::<Result<Vec<f64>>>()?;
            let seconds = start.elapsed().as_secs_f64() / 20.0;
            println!(
                "  R = {rank} {:>7.2} s  sd {:>6.3}  ln {:.2}  default: {} runs of {}, {} moves, heat {:.1}",
                seconds,
                mean_and_sd(&logs).1,
                log_mean_exp(&logs),
                default.runs,
                default.particles,
                default.path.rejuvenation,
                default.path.start_scale
            );
            // The paper's algorithm with as many particles as the same seconds allow.
            let mut paper = Smc { threads: 2, runs: 4, ..plain(4096) };
            let (pilot, _) = repeat(&paper)?;
            paper.particles = ((4096.0 * seconds / pilot) as usize).max(64);
            let (seconds, logs) = repeat(&paper)?;
            println!(
                "  R = {rank} {:>7.2} s  sd {:>6.3}  ln {:.2}  the paper's algorithm: 4 runs of {}",
                seconds,
                mean_and_sd(&logs).1,
                log_mean_exp(&logs),
                paper.particles
            );
            Ok(())
        })?;
    }
    Ok(())
}

fn sparse() -> Result<()> {
    println!("Sparse regime: the paper's 3x4 matrix (9 tokens); error of ln p(sequence) against exact");
    let data = paper_matrix()?;
    for a in [1e-5, 1e-4, 1e-3] {
        for rank in 2..=4 {
            with_problem(&format!("k[{rank}] -> i j"), &data, a, |problem| {
                let exact = Exact::default().ln_p_sequence(problem, &mut Control::default())?.ln_p_sequence.value();
                let settled = Wish::default().settle(problem, two_threads(), Seed(0), &mut Control::default())?;
                let start = Instant::now();
                let estimate = settled.smc.ln_p_sequence(problem, Seed(1), &mut Control::default())?;
                let updates: u64 = estimate.runs.iter().map(|run| run.n_updates).sum();
                println!(
                    "  a = {a:.0e}, K = {rank}: error {:+.4} (stated {:.4}), {:.1} million updates and {:.1} of pilots, {:.2} s",
                    estimate.ln_p_sequence - exact,
                    estimate.std_error.unwrap_or(f64::NAN),
                    updates as f64 / 1e6,
                    settled.pilot_updates as f64 / 1e6,
                    start.elapsed().as_secs_f64()
                );
                Ok(())
            })?;
        }
    }
    Ok(())
}
