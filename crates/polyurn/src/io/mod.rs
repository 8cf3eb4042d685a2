//! Files in and out: counts in several formats become a [`Dataset`], records become CSV, model files are read.
//!
//! [`read`] looks at the extension and the first bytes of a file and hands it to the reader of its format. A reader is
//! one file of this module: a function from `Input` to a [`RowSink`], named in
//! one arm of `read_stream`; a new format also gets an arm in [`Format`]. All readers stream: memory follows the
//! distinct rows, not the file.

mod bins;
#[cfg_attr(not(feature = "parquet"), path = "columnar_left_out.rs")]
mod columnar;
mod compression;
mod content;
mod convert;
mod csv;
mod lda_c;
mod lines;
mod mallet;
mod matrix_market;
mod model_file;
mod npy;
mod npz;
mod number;
mod record;
mod stamp;
mod summary;
mod svmlight;
mod tensor_toolbox;
mod tns;
mod uci;
mod unique_fields;
mod vocabulary;
mod watched;
mod write;

pub use bins::{BinMethod, BinSpec, Cuts, find_cuts, find_cuts_watched};
pub use compression::Compression;
pub use convert::{check_conversion, conversion_notes, formula_note, vocabulary_of, write_converted};
pub use model_file::{ModelFile, ModelFormat, parse_model_file, read_model, read_model_file, read_prior_file};
pub use number::count_of;
pub use stamp::Stamp;
pub use summary::{ColumnSummary, LabelCount, MissingPattern, Summary};
pub use write::{CsvWriter, push_csv_field, write_csv, write_dataset_csv};

use crate::counts::{Dataset, DatasetBuilder, RowSink};
use crate::error::{Error, Result};
use record::Delimiter;
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::str::FromStr;
use vocabulary::Beside;
use watched::{Counted, Watched};

/// Bytes read from a file at once.
const BUFFER_SIZE: usize = 128 << 10;

/// The formats of count data that can be read.
///
/// ```
/// use polyurn::io::Format;
/// assert_eq!(Format::from_path("counts.csv.gz".as_ref()), Some(Format::Csv));
/// assert_eq!("mtx".parse::<Format>().unwrap(), Format::MatrixMarket);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated values with a header, see the guide for missing values and counts.
    Csv,
    /// Tab-separated values, otherwise as CSV.
    Tsv,
    /// FROSTT: one-based coordinates and a count on each line.
    Tns,
    /// Text of the Tensor Toolbox and pyttb: `sptensor`, `tensor` or `matrix`, then sizes and entries.
    #[serde(rename = "tensor-toolbox")]
    TensorToolbox,
    /// Matrix Market, coordinate or array.
    #[serde(rename = "mtx")]
    MatrixMarket,
    /// UCI bag of words: the numbers of documents, words and entries, then one-based documents and words and a count.
    Uci,
    /// LDA-C: a document on each line, words counted from 0.
    #[serde(rename = "lda-c")]
    LdaC,
    /// SVMlight and LIBSVM: a label on each line, then one-based features and their counts.
    #[serde(rename = "svmlight")]
    SvmLight,
    /// A dense array of NumPy.
    Npy,
    /// A sparse matrix of SciPy, or one dense array, in an archive of NumPy.
    Npz,
    /// A name, a label and a text on each line, as MALLET reads them.
    Mallet,
    /// Parquet, in builds with the feature `parquet`.
    Parquet,
    /// Arrow IPC: a file with a footer (Feather) or a stream, in builds with the feature `parquet`.
    Arrow,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 13] = [
        Format::Csv,
        Format::Tsv,
        Format::Tns,
        Format::TensorToolbox,
        Format::MatrixMarket,
        Format::Uci,
        Format::LdaC,
        Format::SvmLight,
        Format::Npy,
        Format::Npz,
        Format::Mallet,
        Format::Parquet,
        Format::Arrow,
    ];

    /// The name of the format, as `--format` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Tns => "tns",
            Format::TensorToolbox => "tensor-toolbox",
            Format::MatrixMarket => "mtx",
            Format::Uci => "uci",
            Format::LdaC => "lda-c",
            Format::SvmLight => "svmlight",
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Mallet => "mallet",
            Format::Parquet => "parquet",
            Format::Arrow => "arrow",
        }
    }

    /// The format that goes with a file's extension, seen through `.gz` and `.zst`; upper and lower case are alike.
    pub fn from_path(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = Format::without_compression(&name);
        match name.rsplit_once('.')?.1 {
            "txt" if name.starts_with("docword.") => Some(Format::Uci),
            "csv" => Some(Format::Csv),
            "tsv" | "tab" => Some(Format::Tsv),
            "tns" => Some(Format::Tns),
            "ttb" => Some(Format::TensorToolbox),
            "mtx" => Some(Format::MatrixMarket),
            "uci" => Some(Format::Uci),
            "ldac" | "lda-c" => Some(Format::LdaC),
            "svmlight" | "svm" | "libsvm" => Some(Format::SvmLight),
            "npy" => Some(Format::Npy),
            "npz" => Some(Format::Npz),
            "parquet" | "pq" => Some(Format::Parquet),
            "arrow" | "arrows" | "ipc" | "feather" => Some(Format::Arrow),
            _ => None,
        }
    }

    /// The name of a file without the ending of its compression.
    fn without_compression(name: &str) -> &str {
        const ENDINGS: [&str; 4] = ["gz", "gzip", "zst", "zstd"];
        let is_ending = |end: &str| ENDINGS.iter().any(|ending| ending.eq_ignore_ascii_case(end));
        name.rsplit_once('.').filter(|(_, end)| is_ending(end)).map_or(name, |(name, _)| name)
    }

    /// The names of all formats, for messages.
    fn names() -> String {
        Format::ALL.map(Format::name).join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wanted = text.to_ascii_lowercase();
        let found = Format::ALL.into_iter().find(|format| format.name() == wanted);
        found.or((wanted == "matrix-market").then_some(Format::MatrixMarket)).ok_or_else(|| {
            Error::Setting(format!("there is no format {}; take one of {}", lines::shown(text), Format::names()))
        })
    }
}

/// How to read a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadOptions {
    /// The format; `None` goes by the extension, and by the content where that says nothing.
    pub format: Option<Format>,
    /// Whether counts may be fractions, for variational Bayes and EM.
    pub fractions: bool,
    /// The words of a file of word numbers, one on each line; `None` goes by files beside it that are called as usual.
    pub vocab: Option<PathBuf>,
    /// Whether labels of rows become a column, in formats that have them.
    pub labels: bool,
    /// Bytes that a compressed file may unpack to; `None` for [`MOST_UNPACKED`].
    pub max_unpacked: Option<u64>,
    /// Columns of CSV, TSV, Parquet and Arrow whose numbers become categories, see [`find_cuts`]; columns that the file has not are passed over.
    pub cuts: Vec<Cuts>,
}

/// Bytes that a compressed file may unpack to, unless it is said otherwise.
pub const MOST_UNPACKED: u64 = 64_000_000_000;

impl ReadOptions {
    fn most_unpacked(&self) -> u64 {
        self.max_unpacked.unwrap_or(MOST_UNPACKED)
    }
}

/// What a reader learned of a file besides its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The format it was read as.
    pub format: Format,
    /// How it was compressed, if it was.
    pub compression: Option<Compression>,
    /// Number of rows or entries in the file, before equal ones were merged.
    pub n_rows: u64,
}

/// Reads a file of counts; the path `-` is standard input.
///
/// # Errors
/// When the file cannot be read, when no format is given and none goes with the extension, and when anything in the
/// file is not as it should be: the message then has file, line, column, value and the way out.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Dataset> {
    read_with_origin(path, options).map(|(dataset, _)| dataset)
}

/// Reads a file of counts as [`read`] does, and says what kind of file it was.
///
/// # Errors
/// As for [`read`].
pub fn read_with_origin(path: &Path, options: &ReadOptions) -> Result<(Dataset, Origin)> {
    read_watched(path, options, &mut |_| Ok(()))
}

/// Reads a file of counts as [`read_with_origin`] does. `watch` is told every thousand rows which share of the file has been
/// read, 0 where its length is not known, and says whether to go on.
///
/// # Errors
/// As for [`read`], and whatever `watch` says.
pub fn read_watched(
    path: &Path,
    options: &ReadOptions,
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<(Dataset, Origin)> {
    let mut builder = DatasetBuilder::new(path.display().to_string());
    if options.fractions {
        builder.take_fractions();
    }
    let (format, compression) = read_rows_watched(path, options, &mut builder, watch)?;
    let origin = Origin { format, compression, n_rows: builder.n_rows_read() };
    Ok((builder.finish(), origin))
}

/// Reads a file row by row and keeps nothing; the path `-` is standard input.
///
/// # Errors
/// As for [`read`], and whatever the sink refuses.
pub fn read_rows(path: &Path, options: &ReadOptions, sink: &mut impl RowSink) -> Result<(Format, Option<Compression>)> {
    read_rows_watched(path, options, sink, &mut |_| Ok(()))
}

/// Reads a file row by row as [`read_rows`] does, with a `watch` as in [`read_watched`].
///
/// # Errors
/// As for [`read_rows`], and whatever `watch` says.
pub fn read_rows_watched(
    path: &Path,
    options: &ReadOptions,
    sink: &mut impl RowSink,
    watch: &mut dyn FnMut(f64) -> Result<()>,
) -> Result<(Format, Option<Compression>)> {
    let n_bytes = Rc::default();
    let mut sink = Watched { sink, n_bytes: Rc::clone(&n_bytes), n_all: 0, watch, n_rows: 0 };
    if path == Path::new("-") {
        let input = BufReader::with_capacity(BUFFER_SIZE, std::io::stdin().lock());
        return read_stream(input, "standard input", None, options.format, options, &mut sink);
    }
    let source = path.display().to_string();
    // A file that is not there is the first thing to say.
    let file = File::open(path).map_err(|error| Error::Io { path: path.to_owned(), source: error })?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(Error::data(&source, "is a folder; give the name of a file"));
    }
    let format = options.format.or_else(|| Format::from_path(path));
    let stamp = Stamp::of_open(&file, path)?;
    sink.n_all = stamp.n_bytes();
    let input = BufReader::with_capacity(BUFFER_SIZE, Counted { reader: &file, n_bytes });
    let columnar = format.filter(|format| matches!(format, Format::Parquet | Format::Arrow));
    let found = if let Some(format) = columnar.filter(|_| stamp.n_bytes() > 0)
        && !compression::is_compressed(&file, path)?
    {
        let (n_bytes, n_all) = (Rc::clone(&sink.n_bytes), sink.n_all);
        let told = |share: f64| n_bytes.set((share * n_all as f64) as u64);
        let beside = Beside { given: options.vocab.as_deref(), data: Some(path), most: options.most_unpacked() };
        options.check_labels(format).and(beside.refuse(format))?;
        sink.source(&source);
        let read = match format {
            Format::Parquet => columnar::read_parquet_file(&file, &source, &options.cuts, &told, &mut sink),
            _ => columnar::read_arrow_file(&file, &source, &options.cuts, &mut sink),
        };
        read.map(|()| (format, None))
    } else {
        read_stream(input, &source, Some(path), format, options, &mut sink)
    };
    match found {
        // Whoever stopped it knows why.
        Err(error @ (Error::Stopped(_) | Error::Io { .. })) => Err(error),
        found => stamp.check_open(&file).and(found),
    }
}

/// Reads counts in a given format from anything; `source` names it in messages. Compression is seen through.
///
/// ```
/// use polyurn::io::{Format, ReadOptions, read_from};
/// let text = "animal,colour,count\ncat,black,3\ndog,,1\n";
/// let dataset = read_from(text.as_bytes(), "pets", Format::Csv)?;
/// assert_eq!(dataset.n_tokens(), Some(4));
/// # Ok::<(), polyurn::Error>(())
/// ```
///
/// # Errors
/// As for [`read`].
pub fn read_from(input: impl BufRead, source: &str, format: Format) -> Result<Dataset> {
    let mut builder = DatasetBuilder::new(source);
    read_stream(input, source, None, Some(format), &ReadOptions::default(), &mut builder)?;
    Ok(builder.finish())
}

/// Sees through compression and hands the input to the reader of its format. Says which that was: Tensor Toolbox text goes by the
/// extension of FROSTT files too, and is told by its first line.
fn read_stream(
    mut input: impl BufRead,
    source: &str,
    path: Option<&Path>,
    format: Option<Format>,
    options: &ReadOptions,
    sink: &mut impl RowSink,
) -> Result<(Format, Option<Compression>)> {
    sink.source(source);
    let beside = Beside { given: options.vocab.as_deref(), data: path, most: options.most_unpacked() };
    let unreadable = |error| Error::Io { path: source.into(), source: error };
    let first = input.fill_buf().map_err(unreadable)?;
    let is_archive = first.starts_with(ZIP);
    let format = format.or_else(|| content::binary(first));
    if let Some(format @ Format::Npz) = format.filter(|_| is_archive) {
        options.check_labels(format)?;
        beside.refuse(format)?;
        let most = options.most_unpacked();
        match path {
            Some(path) => npz::read(&|| open_again(path), source, most, sink)?,
            None => {
                let mut packed = Vec::new();
                input.read_to_end(&mut packed).map_err(unreadable)?;
                npz::read(&|| Ok(Box::new(Cursor::new(&packed[..]))), source, most, sink)?;
            }
        }
        return Ok((format, None));
    }
    let (reader, compression) = compression::see_through(input, source, options.most_unpacked())?;
    let (reader, format) = match format {
        Some(format) => (reader, format),
        None => {
            let (head, reader) = content::peek(reader).map_err(unreadable)?;
            (reader, content::format_of(&head).ok_or_else(|| unknown_format(source, path, head.is_empty()))?)
        }
    };
    options.check_labels(format)?;
    let mut input = Input { reader, source: source.to_owned() };
    let format = match format {
        Format::Tns if tensor_toolbox::is_header(input.first_bytes()?) => Format::TensorToolbox,
        format => format,
    };
    let vocabulary = match format {
        Format::Uci | Format::LdaC => beside.read(format)?,
        _ => beside.refuse(format).map(|()| None)?,
    };
    match format {
        Format::Csv => csv::read(input, Delimiter::Comma, &options.cuts, sink)?,
        Format::Tsv => csv::read(input, Delimiter::Tab, &options.cuts, sink)?,
        Format::Tns => tns::read(input, sink)?,
        Format::TensorToolbox => tensor_toolbox::read(input, sink)?,
        Format::MatrixMarket => matrix_market::read(input, sink)?,
        Format::Uci => uci::read(input, vocabulary, sink)?,
        Format::LdaC => lda_c::read(input, vocabulary, sink)?,
        Format::SvmLight => svmlight::read(input, options.labels, sink)?,
        Format::Npy => npy::read(input, sink)?,
        Format::Mallet => mallet::read(input, options.labels, sink)?,
        Format::Npz => {
            let message = "this is no archive of NumPy; save the matrix by `scipy.sparse.save_npz`";
            return Err(Error::data(source, message));
        }
        Format::Parquet => columnar::read_parquet_stream(input, &options.cuts, sink)?,
        Format::Arrow => columnar::read_arrow(input, &options.cuts, sink)?,
    }
    Ok((format, compression))
}

/// That neither the name nor the content of a file tells what it is.
fn unknown_format(source: &str, path: Option<&Path>, is_empty: bool) -> Error {
    let names = Format::names();
    match path {
        _ if is_empty => Error::data(
            source,
            format!("there is nothing in it that tells its format; give `--format` as one of {names}"),
        ),
        Some(_) => {
            let message = format!(
                "no format goes with this extension, nor do the first lines tell; give `--format` as one of {names}"
            );
            Error::data(source, message)
        }
        None => Error::Setting(format!(
            "{source}: the first lines do not tell the format; give `--format` as one of {names}"
        )),
    }
}

/// What a zip archive begins with.
const ZIP: &[u8] = b"PK\x03\x04";

fn open_again<'a>(path: &Path) -> Result<Box<dyn npz::ReadSeek + 'a>> {
    let file = File::open(path).map_err(|error| Error::Io { path: path.to_owned(), source: error })?;
    Ok(Box::new(BufReader::with_capacity(BUFFER_SIZE, file)))
}

impl ReadOptions {
    fn check_labels(&self, format: Format) -> Result<()> {
        if !self.labels || matches!(format, Format::SvmLight | Format::Mallet) {
            return Ok(());
        }
        let message = format!(
            "--labels: files of format {format} have no labels of rows, only svmlight and mallet have; leave it out"
        );
        Err(Error::Setting(message))
    }
}

/// What a reader gets: bytes, decompressed, and the name of their source.
struct Input<'a> {
    reader: Box<dyn BufRead + 'a>,
    source: String,
}

impl Input<'_> {
    /// Some of the first bytes, which stay unread.
    fn first_bytes(&mut self) -> Result<&[u8]> {
        self.reader.fill_buf().map_err(|error| Error::Io { path: self.source.clone().into(), source: error })
    }

    /// The error of a source that stopped giving bytes.
    fn unreadable(&self, error: std::io::Error) -> Error {
        Error::Io { path: self.source.clone().into(), source: error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn formats_go_by_extension_through_compression() {
        for (name, format) in [
            ("a.csv", Some(Format::Csv)),
            ("a.b.CSV.GZ", Some(Format::Csv)),
            ("dir.csv/a.tsv.zst", Some(Format::Tsv)),
            ("a.tab", Some(Format::Tsv)),
            ("a.tns.gz", Some(Format::Tns)),
            ("a.ttb.zst", Some(Format::TensorToolbox)),
            ("a.mtx", Some(Format::MatrixMarket)),
            ("docword.a.txt.gz", Some(Format::Uci)),
            ("a.uci", Some(Format::Uci)),
            ("a.ldac.gz", Some(Format::LdaC)),
            ("a.LDA-C", Some(Format::LdaC)),
            ("a.svmlight.gz", Some(Format::SvmLight)),
            ("a.npy", Some(Format::Npy)),
            ("a.npz", Some(Format::Npz)),
            ("a.pq", Some(Format::Parquet)),
            ("a.feather", Some(Format::Arrow)),
            ("a.txt", None),
            ("csv", None),
            ("a.gz", None),
            ("..", None),
        ] {
            assert_eq!(Format::from_path(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn who_watches_is_told_the_share_that_is_read_and_may_stop_it() {
        let rows: String = (0..60_000).map(|ix| format!("{},{}\n", ix % 7, ix % 11)).collect();
        let (_folder, path) = written("a.csv", format!("x,y\n{rows}").as_bytes());
        let mut shares = Vec::new();
        let (dataset, origin) = read_watched(&path, &ReadOptions::default(), &mut |share| {
            shares.push(share);
            Ok(())
        })
        .unwrap();
        assert_eq!((dataset.n_tokens(), origin.n_rows), (Some(60_000), 60_000));
        assert_eq!(shares.len(), 60_000 / 1024);
        assert!(shares.is_sorted() && shares[0] > 0.0 && shares[0] < 0.6 && shares.last() == Some(&1.0), "{shares:?}");
        let mut n_looks = 0;
        let stopped = read_watched(&path, &ReadOptions::default(), &mut |_| {
            n_looks += 1;
            Err(Error::Stopped(crate::Stop::Cancelled))
        });
        assert!(matches!(stopped, Err(Error::Stopped(crate::Stop::Cancelled))) && n_looks == 1);
    }

    #[test]
    fn every_format_parses_from_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
        let message = "xls".parse::<Format>().unwrap_err().to_string();
        assert!(message.contains("`xls`") && message.contains("csv, tsv, tns, tensor-toolbox, mtx, uci"), "{message}");
    }

    #[test]
    fn without_an_extension_the_content_tells_the_format_or_it_has_to_be_given() {
        let (_folder, path) = written("counts.txt", b"a,count\nx,2\n");
        assert_eq!(read_with_origin(&path, &ReadOptions::default()).unwrap().1.format, Format::Csv);
        let (_folder, path) = written("counts", b"x\n2\n");
        let message = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("counts: no format goes with this extension"), "{message}");
        assert!(
            message.contains("`--format`") && message.contains("csv, tsv, tns, tensor-toolbox, mtx, uci"),
            "{message}"
        );
        let options = ReadOptions { format: Some(Format::Csv), ..Default::default() };
        assert_eq!(read(&path, &options).unwrap().counts, [1]);
        let (_folder, path) = written("empty", b"");
        let message = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("empty: there is nothing in it that tells its format"), "{message}");
        let (_folder, path) = written("a.parquet", b"PAR1");
        let message = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        let wanted = if cfg!(feature = "parquet") {
            "is no Parquet file, or not a whole one"
        } else {
            "leaves Parquet and Arrow out"
        };
        assert!(message.contains(wanted), "{message}");
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read(Path::new("/no/such/file.csv"), &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }) && error.is_usage());
        assert!(error.to_string().starts_with("/no/such/file.csv: "), "{error}");
        let error = read(Path::new("/no/such/file.xyz"), &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }

    #[test]
    fn a_folder_is_no_file() {
        let folder = tempfile::tempdir().unwrap();
        for format in [None, Some(Format::Csv)] {
            let message = read(folder.path(), &ReadOptions { format, ..Default::default() }).unwrap_err().to_string();
            assert!(message.ends_with(": is a folder; give the name of a file"), "{message}");
        }
    }

    #[test]
    fn text_of_the_tensor_toolbox_is_told_by_its_first_line() {
        for (name, wanted) in [("a.tns", Format::TensorToolbox), ("a.ttb", Format::TensorToolbox)] {
            let (_folder, path) = written(name, b"sptensor\n2\n2 3\n1\n2 3 4\n");
            let (dataset, origin) = read_with_origin(&path, &ReadOptions::default()).unwrap();
            assert_eq!((origin.format, dataset.values == [[1], [2]]), (wanted, true));
        }
        let (_folder, path) = written("b.tns", b"1 2 3\n");
        assert_eq!(read_with_origin(&path, &ReadOptions::default()).unwrap().1.format, Format::Tns);
    }

    #[test]
    fn a_compressed_file_is_read_by_path() {
        let packed =
            ruzstd::encoding::compress_to_vec(&b"a,count\nx,2\nx,1\n"[..], ruzstd::encoding::CompressionLevel::Fastest);
        let (_folder, path) = written("counts.csv.zst", &packed);
        let (dataset, origin) = read_with_origin(&path, &ReadOptions::default()).unwrap();
        assert_eq!(dataset.counts, [3]);
        assert_eq!(dataset.source, path.display().to_string());
        assert_eq!(origin, Origin { format: Format::Csv, compression: Some(Compression::Zstd), n_rows: 2 });
    }

    /// Bytes that look enough like a file of some format to get past its first lines.
    fn nearly_a_file() -> impl Strategy<Value = Vec<u8>> {
        let start = prop::sample::select(vec![
            "",
            "a,b,count\n",
            "a\tcount\n",
            "# c\n1 2 3\n",
            "%%MatrixMarket matrix coordinate integer general\n2 2 2\n",
            "%%MatrixMarket matrix coordinate pattern symmetric\n",
            "%%MatrixMarket matrix array real general\n",
            "\u{feff}a,\"b\n",
            "3\n4\n2\n",
            "2 0:1 3:4\n",
            "\u{93}",
            "\x1f",
            "(",
        ]);
        let middle = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..80),
            "[-0-9 .,?\"e\t\r\n%#a]{0,80}".prop_map(String::into_bytes),
        ];
        (start, middle).prop_map(|(start, middle)| {
            let mut bytes = match start {
                "\x1f" => vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3],
                "(" => vec![0x28, 0xb5, 0x2f, 0xfd],
                "\u{93}" => {
                    let text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2)}";
                    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text].concat()
                }
                text => text.as_bytes().to_vec(),
            };
            bytes.extend(middle);
            bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_reader_panics_and_every_message_is_one_line(bytes in nearly_a_file()) {
            for format in Format::ALL {
                match read_from(bytes.as_slice(), "test", format) {
                    Ok(dataset) => {
                        prop_assert!(dataset.values.iter().all(|column| column.len() == dataset.counts.len()));
                        prop_assert!(dataset.n_tokens().is_some());
                    }
                    Err(error) => prop_assert!(!error.to_string().contains('\n'), "{error}"),
                }
            }
        }
    }
}
