//! Python peers: scripts in `bench/peers` that time the tools people use now on data they write down.

use polyurn::Result;
use polyurn::counts::Dataset;
use polyurn::io::{Format, read_from};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Instant;

/// What a peer found, and the folder with its data.
#[derive(Debug)]
pub struct Peer {
    folder: tempfile::TempDir,
    /// What it printed.
    pub found: Value,
}

/// The Python that has the peers: where there is none, a comparison fails.
///
/// # Panics
/// When `POLYURN_BENCH_PYTHON` does not name one.
pub fn python() -> String {
    std::env::var("POLYURN_BENCH_PYTHON").expect("POLYURN_BENCH_PYTHON names a Python with the peers")
}

impl Peer {
    /// Runs a part of a script on one thread, with the Python that `POLYURN_BENCH_PYTHON` names.
    ///
    /// # Panics
    /// When there is no such Python, or the script fails.
    pub fn run(script: &str, part: &str) -> Self {
        let python = python();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = format!("{}/peers/{script}", env!("CARGO_MANIFEST_DIR"));
        let output = std::process::Command::new(python)
            .args([&script, part, folder.path().to_str().expect("a plain path")])
            .envs(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1")))
            .output()
            .expect("Python starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let found = serde_json::from_str(text.lines().last().unwrap_or_default());
        let found = found.unwrap_or_else(|_| panic!("{part}: {}", String::from_utf8_lossy(&output.stderr)));
        Peer { folder, found }
    }

    /// A file that it wrote.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How long it took.
    ///
    /// # Panics
    /// When it did not say.
    pub fn seconds(&self) -> f64 {
        self.found["seconds"].as_f64().expect("seconds")
    }

    /// What it is.
    ///
    /// # Panics
    /// When it did not say.
    pub fn version(&self) -> &str {
        self.found["version"].as_str().expect("a version")
    }

    /// The data it wrote.
    ///
    /// # Errors
    /// When the data are not in order.
    pub fn data(&self) -> Result<Dataset> {
        self.data_named("data.csv")
    }

    /// One of several files of data that it wrote.
    ///
    /// # Errors
    /// When the data are not in order.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn data_named(&self, name: &str) -> Result<Dataset> {
        let file = std::fs::File::open(self.path(name)).expect("the peer wrote its data");
        read_from(std::io::BufReader::new(file), name, Format::Csv)
    }

    /// An array that it wrote.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn array(&self, name: &str) -> Vec<f64> {
        let bytes = std::fs::read(self.path(name)).expect("the peer wrote an array");
        bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().expect("eight bytes"))).collect()
    }
}

/// The shortest time of some repeats, and the last result.
///
/// # Errors
/// As `f`.
///
/// # Panics
/// Without repeats.
pub fn best_of<T>(n: usize, mut f: impl FnMut() -> Result<T>) -> Result<(f64, T)> {
    let (mut best, mut last) = (f64::INFINITY, None);
    for _ in 0..n {
        // Only one at a time is held.
        drop(last.take());
        let from = Instant::now();
        last = Some(f()?);
        best = best.min(from.elapsed().as_secs_f64());
    }
    Ok((best, last.expect("at least one repeat")))
}
