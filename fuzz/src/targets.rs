//! What the fuzzer runs: everything that takes bytes from outside. `scripts/fuzz` feeds these functions with what it invents, and
//! `make test` with what earlier runs found (`finds/`).
//!
//! A target must not panic, and must not say yes to nonsense: what is read can be written and read again, and what is refused
//! is refused in one line.

use polyurn::control::{Cancel, Control, Observer};
use polyurn::counts::Dataset;
use polyurn::fit_file::FitFile;
use polyurn::graph::{BindOptions, Binding, ModelSource, bind, bind_without_data};
use polyurn::io::{
    Format, ModelFormat, check_conversion, parse_model_file, read_from, write_converted, write_dataset_csv,
};
use polyurn::prior::{Prior, PriorSettings};
use polyurn::score::{Means, Method, Scoring};
use polyurn::{Error, Result, Seed, checkpoint};
use std::cell::RefCell;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

/// A function of bytes from outside.
pub type Target = fn(&[u8]);

/// All targets by name. The folder of a target's finds has its name.
pub const TARGETS: &[(&str, Target)] = &[
    ("csv", |bytes| table(bytes, Format::Csv)),
    ("tsv", |bytes| table(bytes, Format::Tsv)),
    ("tns", |bytes| table(bytes, Format::Tns)),
    ("tensor-toolbox", |bytes| table(bytes, Format::TensorToolbox)),
    ("mtx", |bytes| table(bytes, Format::MatrixMarket)),
    ("uci", |bytes| table(bytes, Format::Uci)),
    ("lda-c", |bytes| table(bytes, Format::LdaC)),
    ("svmlight", |bytes| table(bytes, Format::SvmLight)),
    ("npy", |bytes| table(bytes, Format::Npy)),
    ("npz", |bytes| table(bytes, Format::Npz)),
    ("mallet", |bytes| table(bytes, Format::Mallet)),
    ("parquet", |bytes| table(bytes, Format::Parquet)),
    ("arrow", |bytes| table(bytes, Format::Arrow)),
    ("model-text", model_text),
    ("model-json", |bytes| model_file(bytes, ModelFormat::Json)),
    ("model-toml", |bytes| model_file(bytes, ModelFormat::Toml)),
    ("fit", fit),
    ("fit-header", fit_header),
    ("fit-arrays", fit_arrays),
    ("checkpoint", checkpoint_file),
    ("checkpoint-state", checkpoint_state),
];

/// A refusal is one line that says something.
fn check_refusal(error: &Error) {
    let line = error.to_string();
    assert!(!line.trim().is_empty() && !line.contains(['\n', '\r', '\0']), "{line:?}");
}

fn table(bytes: &[u8], format: Format) {
    let read = match read_from(bytes, "file", format) {
        Err(error) => return check_refusal(&error),
        Ok(read) => read,
    };
    // CSV names every value of every column in a row of all columns, so that many columns are very many cells.
    let n_values: u64 = read.columns.iter().map(|column| u64::from(column.labels.len())).sum();
    if n_values.saturating_mul(read.columns.len() as u64) > MOST_CELLS {
        return;
    }
    // Records are written as CSV and read back as they were.
    let mut written = Vec::new();
    write_dataset_csv(&mut written, Path::new("again"), &read).expect("memory takes everything");
    let again = read_from(&written[..], "again", Format::Csv).expect("what was written can be read");
    assert_same(&read, &again);
    // And so they are in every other format that holds them.
    if read.columns.iter().any(|column| column.labels.len() > MOST_WRITTEN) {
        return;
    }
    let n_cells = read.columns.iter().fold(1u64, |n, column| n.saturating_mul(column.labels.len().into()));
    for format in Format::ALL {
        // A few short lines may name a table of billions of cells, which one format writes out.
        if format == Format::Npy && n_cells > MOST_CELLS {
            continue;
        }
        if check_conversion(&read, format).is_ok() {
            let mut written = Vec::new();
            write_converted(&mut written, Path::new("again"), &read, format).expect("memory takes everything");
            assert_same(&read, &read_from(&written[..], "again", format).expect("what was written can be read"));
        }
    }
}

/// Values of a column beyond which it is not written in all formats: some have a line for each; and cells of a table that is written out.
const MOST_WRITTEN: u32 = 1000;
const MOST_CELLS: u64 = 100_000;

fn assert_same(one: &Dataset, other: &Dataset) {
    assert_eq!(one.n_tokens(), other.n_tokens());
    let n_rows = |data: &Dataset| data.counts.iter().filter(|&count| count > 0).count();
    assert_eq!(
        (n_rows(one), one.unknown.len(), one.columns.len()),
        (n_rows(other), other.unknown.len(), other.columns.len())
    );
}

/// Columns that models of the fuzzer may name.
static SMALL_TABLE: LazyLock<Dataset> = LazyLock::new(|| {
    let text = "a,b,c,count\n0,0,0,3\n0,1,1,1\n1,0,2,2\n1,1,,1\n0,1,2,1\n";
    read_from(text.as_bytes(), "small", Format::Csv).expect("well formed")
});

fn model_text(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match ModelSource::parse(text) {
        Err(error) => check_refusal(&error),
        Ok(source) => model(&source),
    }
}

fn model_file(bytes: &[u8], format: ModelFormat) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match parse_model_file(text, format, "file") {
        Err(error) => check_refusal(&error),
        Ok(file) => {
            let (source, settings) = file.with_settings();
            model(&source);
            with_prior(&source, &settings);
        }
    }
}

/// What becomes of a model that was read: with and without data.
fn model(source: &ModelSource) {
    if let Err(error) = bind_without_data(source, None) {
        check_refusal(&error);
    }
    with_prior(source, &PriorSettings::default());
}

fn with_prior(source: &ModelSource, settings: &PriorSettings) {
    let binding = match bind(source, &SMALL_TABLE, BindOptions::default()) {
        Err(error) => return check_refusal(&error),
        Ok(binding) => binding,
    };
    if let Err(error) = Prior::build(&binding.model, settings) {
        check_refusal(&error);
    }
}

/// A fit file with all kinds of entries.
const FIT: &[u8] = include_bytes!("../../crates/polyurn/tests/fixtures/version-1.polyurn");

fn fit(bytes: &[u8]) {
    read_fit(bytes);
}

fn read_fit(bytes: &[u8]) {
    match FitFile::from_bytes(bytes, "file") {
        Err(error) => check_refusal(&error),
        // What is taken for a fit can be written as one.
        Ok(fit) => {
            let again = fit.to_bytes().expect("memory takes everything");
            assert_eq!(FitFile::from_bytes(&again, "again").expect("what was written can be read").model, fit.model);
        }
    }
}

/// Name and bytes of every entry of a fit.
type Entries = Vec<(String, Vec<u8>)>;

static ENTRIES: LazyLock<Entries> = LazyLock::new(|| {
    let mut archive = ZipArchive::new(Cursor::new(FIT)).expect("a zip archive");
    (0..archive.len())
        .map(|ix| {
            let mut entry = archive.by_index(ix).expect("it is there");
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("it is whole");
            let name = entry.name().expect("it is text").into_owned();
            (name, bytes)
        })
        .collect()
});

/// The bytes stand for `fit.json`, under a seal that fits.
fn fit_header(bytes: &[u8]) {
    let mut entries = ENTRIES.clone();
    entries[0].1 = bytes.to_vec();
    read_fit(&sealed(&entries));
}

/// The bytes change single bytes of the arrays, or cut them short, under a seal that fits.
fn fit_arrays(bytes: &[u8]) {
    let mut entries = ENTRIES.clone();
    for change in bytes.chunks_exact(3) {
        let ix = 1 + usize::from(change[0] & 0x7f) % (entries.len() - 1);
        let entry = &mut entries[ix].1;
        let at = usize::from(change[1]);
        if change[0] >= 0x80 {
            entry.truncate(at);
        } else if let Some(byte) = entry.get_mut(at) {
            *byte = change[2];
        }
    }
    read_fit(&sealed(&entries));
}

/// A fit file whose digest is right, whatever is in it.
fn sealed(entries: &Entries) -> Vec<u8> {
    let words = "polyurn fit, sha256 of all before: ";
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in entries {
        zip.start_file(name.as_str(), options).expect("memory takes everything");
        zip.write_all(bytes).expect("memory takes everything");
    }
    zip.set_comment(format!("{words}{}", "0".repeat(64))).expect("it is short");
    let mut archive = zip.finish().expect("memory takes everything").into_inner();
    let end = archive.len() - 64;
    let digest = polyurn::fit_file::digest(&mut &archive[..end]).expect("memory can be read");
    archive[end..].copy_from_slice(digest.as_bytes());
    archive
}

fn checkpoint_file(bytes: &[u8]) {
    if let Err(error) = checkpoint::open(bytes, Path::new("file")) {
        check_refusal(&error);
    }
}

/// A checkpoint in memory.
#[derive(Clone, Default)]
struct Keeper(Rc<RefCell<Option<Vec<u8>>>>);

impl Observer for Keeper {
    fn load_checkpoint(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(self.0.borrow().clone())
    }

    fn checkpoint_interval(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn save_checkpoint(&mut self, state: &[u8]) -> Result<()> {
        // The last state of a run has the most in it; one from the middle is wanted as well, so the longest is kept.
        let mut kept = self.0.borrow_mut();
        if kept.as_ref().is_none_or(|kept| kept.len() <= state.len()) {
            *kept = Some(state.to_vec());
        }
        Ok(())
    }
}

/// Engines that have states.
const METHODS: [Method; 4] = [Method::Exact, Method::Smc, Method::Anneal, Method::Vb];

fn small_problem() -> (Binding, Scoring) {
    let source = ModelSource::parse("r[2] -> a b c").expect("well formed");
    let binding = bind(&source, &SMALL_TABLE, BindOptions::default()).expect("it fits");
    let mut scoring = Scoring::default();
    (scoring.wish.particles, scoring.wish.runs, scoring.wish.heat) = (Some(4), Some(2), Some(1.0));
    (scoring.anneal.particles, scoring.anneal.runs, scoring.anneal.sweeps) = (Some(2), Some(2), Some(8));
    (scoring.anneal.pilots, scoring.anneal.pilot_sweeps) = (Some(2), Some(8));
    (scoring.climb.restarts, scoring.climb.max_iter) = (2, 4);
    (binding, scoring)
}

fn run(method: Method, keeper: Keeper, cancel: &Cancel) -> Result<f64> {
    let (binding, scoring) = small_problem();
    let scoring = Scoring { method, ..scoring };
    let means = Means { threads: 1, time: None, seed: Seed(1) };
    let settings = PriorSettings::default();
    let mut control = Control::new(keeper).with_cancel(cancel.clone());
    Ok(scoring.score(&binding, &settings, means, &mut control)?.log_marginal)
}

/// States of all engines as they are when nobody meddles with them.
static STATES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let state = |method: Method| {
        let keeper = Keeper::default();
        run(method, keeper.clone(), &Cancel::default()).expect("a small problem");
        keeper.0.take().unwrap_or_default()
    };
    METHODS.into_iter().map(state).collect()
});

/// The first byte names an engine, the others change bytes of its state, or cut it short. The engine takes that up, or refuses it, and is
/// stopped: a checksum stands before every state in a file, so it need not go on from nonsense that somebody made on purpose.
fn checkpoint_state(bytes: &[u8]) {
    let Some((&first, changes)) = bytes.split_first() else { return };
    let ix = usize::from(first) % METHODS.len();
    let mut state = STATES[ix].clone();
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]]) & 0x7fff);
        if change[1] >= 0x80 {
            state.truncate(at);
        } else if let Some(byte) = state.get_mut(at) {
            *byte = change[2];
        }
    }
    let keeper = Keeper::default();
    *keeper.0.borrow_mut() = Some(state);
    let cancel = Cancel::default();
    cancel.cancel();
    if let Err(error) = run(METHODS[ix], keeper, &cancel) {
        check_refusal(&error);
    }
}
