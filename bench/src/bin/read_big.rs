//! Reading files as large as people have: a CSV of one gigabyte with five short columns and 100,000 distinct records, and a `.tns` (and the
//! same as Matrix Market and Tensor Toolbox text) of ten million entries; beside pandas, scipy and pyttb, for which `POLYURN_BENCH_PYTHON` names a Python that
//! has them. Each reading is a process of its own, so that the peak of its memory is known. `read_big one FILE` is one of them.

use polyurn::io::{ReadOptions, read};
use polyurn::math::draw::below;
use polyurn::{Purpose, Result, Seed};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

/// Bytes of the CSV, and entries of the tensor.
const CSV_BYTES: u64 = 1_000_000_000;
const N_ENTRIES: u64 = 10_000_000;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words[..] {
        [word, path] if word == "one" => one(Path::new(path)),
        [folder] => {
            all(Path::new(folder)).expect("files can be written and programs started");
            Ok(())
        }
        _ => {
            println!("read_big FOLDER: writes files of 1.8 GB there, reads them and removes them");
            Ok(())
        }
    }
}

/// Reads a file and prints seconds of the processor, distinct rows and the peak of memory.
fn one(path: &Path) -> Result<()> {
    let start = processor_seconds();
    let data = read(path, &ReadOptions::default())?;
    let seconds = processor_seconds() - start;
    println!("{{\"seconds\": {seconds}, \"found\": {}, \"peak\": {}}}", data.n_rows(), peak());
    Ok(())
}

/// Seconds that the processor has worked for this process, to a hundredth. Time on the clock says little on a machine that others use.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program stands in parentheses and may hold anything; user and system time are fields 14 and 15.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Peak of the memory of this process, in bytes; 0 where the system does not say.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn all(folder: &Path) -> std::io::Result<()> {
    let csv = folder.join("big.csv");
    write_csv(&csv)?;
    println!("CSV, five columns, 1e5 distinct records");
    report("polyurn", &ours(&csv)?, &csv)?;
    report("pandas", &theirs("pandas", &csv)?, &csv)?;
    std::fs::remove_file(&csv)?;
    let [tns, mtx, ttb] = ["big.tns", "big.mtx", "big.ttb"].map(|name| folder.join(name));
    write_tensor(&tns, "", 3)?;
    println!("\n.tns, three axes of 1000, 1e7 entries");
    report("polyurn", &ours(&tns)?, &tns)?;
    report("pandas", &theirs("pandas-tns", &tns)?, &tns)?;
    std::fs::remove_file(&tns)?;
    write_tensor(&ttb, &format!("sptensor\n3\n1000 1000 1000\n{N_ENTRIES}\n"), 3)?;
    println!("\nthe same as Tensor Toolbox text");
    report("polyurn", &ours(&ttb)?, &ttb)?;
    report("pyttb", &theirs("pyttb", &ttb)?, &ttb)?;
    std::fs::remove_file(&ttb)?;
    let head = format!("%%MatrixMarket matrix coordinate integer general\n10000 10000 {N_ENTRIES}\n");
    write_tensor(&mtx, &head, 2)?;
    println!("\nMatrix Market, 10000 by 10000, 1e7 entries");
    report("polyurn", &ours(&mtx)?, &mtx)?;
    report("scipy", &theirs("scipy", &mtx)?, &mtx)?;
    std::fs::remove_file(&mtx)
}

/// Records are drawn from a list, the earlier ones more often.
fn write_csv(path: &Path) -> std::io::Result<()> {
    let mut rng = Seed(1).stream(Purpose::Simulate, 0, 0, 0);
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    let records: Vec<String> = (0..100_000u64)
        .map(|ix| {
            let label = |place: u64| ix / 10u64.pow(place as u32) % 10;
            format!("v{},v{},v{},v{},v{}\n", label(0), label(1), label(2), label(3), label(4))
        })
        .collect();
    let header = "a,b,c,d,e\n";
    out.write_all(header.as_bytes())?;
    let mut n_bytes = header.len() as u64;
    while n_bytes < CSV_BYTES {
        let record = &records[below(100_000, &mut rng) as usize];
        out.write_all(record.as_bytes())?;
        n_bytes += record.len() as u64;
    }
    out.flush()
}

fn write_tensor(path: &Path, header: &str, n_axes: u32) -> std::io::Result<()> {
    let mut rng = Seed(2).stream(Purpose::Simulate, 0, 0, 0);
    let mut out = BufWriter::new(std::fs::File::create(path)?);
    out.write_all(header.as_bytes())?;
    let size = if n_axes == 2 { 10_000 } else { 1000 };
    // The last cell says how long the axes are.
    writeln!(out, "{}1", format!("{size} ").repeat(n_axes as usize))?;
    for _ in 1..N_ENTRIES {
        for _ in 0..n_axes {
            write!(out, "{} ", 1 + below(size, &mut rng))?;
        }
        out.write_all(b"1\n")?;
    }
    out.flush()
}

fn ours(path: &Path) -> std::io::Result<serde_json::Value> {
    said(Command::new(std::env::current_exe()?).arg("one").arg(path))
}

fn theirs(peer: &str, path: &Path) -> std::io::Result<serde_json::Value> {
    let python = std::env::var("POLYURN_BENCH_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/read_big.py");
    said(Command::new(python).arg(script).arg(peer).arg(path).env("OMP_NUM_THREADS", "1"))
}

fn said(command: &mut Command) -> std::io::Result<serde_json::Value> {
    // One core for everybody: some readers would take all there are.
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", "0"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        pinned.env(name, value.unwrap_or_default());
    }
    let output = pinned.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(serde_json::from_str(&text).unwrap_or(serde_json::Value::Null))
}

fn report(name: &str, found: &serde_json::Value, path: &Path) -> std::io::Result<()> {
    let megabytes = std::fs::metadata(path)?.len() as f64 / 1e6;
    let (Some(seconds), Some(peak)) = (found["seconds"].as_f64(), found["peak"].as_f64()) else {
        println!("{name:<20} not run, or out of memory");
        return Ok(());
    };
    let name = found["version"].as_str().unwrap_or(name);
    println!(
        "{name:<20} {megabytes:>8.0} MB {seconds:>8.2} s {:>8.0} MB/s   peak {:>6.0} MB   {} rows",
        megabytes / seconds,
        peak / 1e6,
        found["found"]
    );
    Ok(())
}
