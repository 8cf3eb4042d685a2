//! A dataset out in the formats that are read, such that it comes back as it was: sizes, cells and counts, and names of values where
//! a format has names.

use super::Format;
use super::vocabulary::{is_word, place_for};
use super::write::{delimited, write_dataset_delimited};
use crate::counts::{Dataset, Labels, MISSING, RowCount};
use crate::error::{Error, Result};
use crate::fit_file::npy;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Most cells of a dense array; beyond, sparse formats are the way.
const MAX_DENSE: u64 = 1 << 31;

/// Most rows without an entry that are written all the same.
const MAX_EMPTY_ROWS: u64 = 10_000_000;

/// Most values without tokens that are declared in CSV by rows of their own.
const MAX_DECLARED: u64 = 1_000_000;

/// Why a dataset cannot be written in a format, in one line.
///
/// # Errors
/// When it cannot.
pub fn check_conversion(dataset: &Dataset, format: Format) -> Result<()> {
    use Format::{Csv, LdaC, MatrixMarket, Npy, Npz, SvmLight, TensorToolbox, Tns, Tsv, Uci};
    let refused = |message: String| Err(Error::data(&dataset.source, message));
    let n_axes = dataset.columns.len();
    let is_table = matches!(format, Csv | Tsv);
    match format {
        Format::Mallet | Format::Parquet | Format::Arrow => {
            return refused(format!("{format} files are not written; write csv"));
        }
        MatrixMarket | Uci | LdaC | SvmLight if n_axes != 2 => {
            return refused(format!(
                "there are {n_axes} columns, and {format} has two; write csv, tns or npz, or leave columns out first"
            ));
        }
        Tns | TensorToolbox | Npy | Npz if n_axes == 0 => {
            return refused(format!("there is no column, and {format} needs one; write csv"));
        }
        _ => {}
    }
    if !is_table && dataset.values.iter().any(|column| column.contains(MISSING)) {
        return refused(format!("there are missing values, which {format} cannot say; write csv or tsv"));
    }
    if matches!(format, Npy | Npz)
        && let Some(line) = dataset.unknown_lines.first()
    {
        let message = format!("the count is `?`, which {format} cannot say; write csv, tns or mtx");
        return Err(Error::data_at(&dataset.source, *line, None, message));
    }
    if !dataset.unit.is_token() {
        return refused("there are counts that are not whole; only whole ones are converted".to_owned());
    }
    if !is_table && dataset.columns.iter().any(|column| column.labels.is_empty()) && format != Uci {
        return refused(format!("a column has no value at all, so {format} cannot hold it; write csv"));
    }
    if format == Npy {
        let n_cells = sizes(dataset).iter().try_fold(1u64, |product, &size| product.checked_mul(u64::from(size)));
        if n_cells.is_none_or(|n_cells| n_cells > MAX_DENSE) {
            let n_cells = n_cells.map_or("more than 2^64".to_owned(), |n_cells| n_cells.to_string());
            return refused(format!("a dense array would have {n_cells} cells, beyond {MAX_DENSE}; write npz or tns"));
        }
        let total = dataset.n_tokens().unwrap_or(u64::MAX);
        if total > u64::MAX / 2 && dataset.counts.iter().any(|count| i64::try_from(count).is_err()) {
            return refused(
                "a count is beyond 2^63 - 1, the largest of the type that is written; write csv".to_owned(),
            );
        }
    }
    if matches!(format, LdaC | SvmLight) && is_nearly_empty(dataset) {
        let n_rows = dataset.columns[0].labels.len();
        return refused(format!("{format} would have {n_rows} lines, nearly all of them empty; write uci, mtx or npz"));
    }
    if matches!(format, Uci | LdaC)
        && let Labels::Named(words) = &dataset.columns[1].labels
        && let Some(word) = words.iter().find(|word| !is_word(word))
    {
        return refused(format!("the word {word:?} does not fit on a line of a vocabulary; rename it, or write csv"));
    }
    Ok(())
}

/// What is lost when a dataset is written in a format, and what to beware of; each a line.
pub fn conversion_notes(dataset: &Dataset, format: Format) -> Vec<String> {
    let mut notes = Vec::new();
    if matches!(format, Format::Csv | Format::Tsv) {
        let n_unused: u64 = unused(dataset).iter().map(|codes| codes.len() as u64).sum();
        if n_unused > MAX_DECLARED {
            notes.push(format!(
                "more than {MAX_DECLARED} values without tokens are left out; declare the sizes in the model"
            ));
        }
        notes.extend(formula_note(dataset.columns.iter().map(|column| &column.labels)));
        return notes;
    }
    let keeps_words = |ix: usize| matches!(format, Format::Uci | Format::LdaC) && ix == 1;
    let lost =
        |(ix, column): &(usize, &crate::counts::Column)| matches!(column.labels, Labels::Named(_)) && !keeps_words(*ix);
    let named = dataset.columns.iter().enumerate().filter(lost);
    let named: Vec<String> =
        named.map(|(ix, column)| column.name.clone().unwrap_or_else(|| format!("axis {}", ix + 1))).collect();
    if !named.is_empty() {
        notes.push(format!(
            "{format} has no names of values: those of {} become numbers, in the order of their first appearance",
            named.join(", ")
        ));
    }
    notes
}

/// A line about labels that a spreadsheet would take for formulas, for whoever writes them to CSV. They are written as they are, so that
/// they can be read back.
pub fn formula_note<'l>(labels: impl IntoIterator<Item = &'l Labels>) -> Option<String> {
    let label = labels.into_iter().find_map(formula_like)?;
    Some(format!(
        "the value `{}` and perhaps others begin with =, +, - or @; a spreadsheet may take such a value for a formula",
        label.escape_debug()
    ))
}

fn formula_like(labels: &Labels) -> Option<&str> {
    let Labels::Named(names) = labels else { return None };
    let is_formula = |name: &&String| name.starts_with(['=', '+', '-', '@']) && name.parse::<f64>().is_err();
    names.iter().find(is_formula).map(String::as_str)
}

/// Where the words of a dataset go that is written to `path`, and the words; none where the format has none, or words no names.
///
/// # Errors
/// When there are none, but a file lies there that would be taken for them.
pub fn vocabulary_of<'d>(dataset: &'d Dataset, path: &Path, format: Format) -> Result<Option<(PathBuf, &'d [String])>> {
    if !matches!(format, Format::Uci | Format::LdaC) {
        return Ok(None);
    }
    let (target, found) = place_for(path, format);
    match &dataset.columns[1].labels {
        Labels::Named(words) => Ok(Some((target, words))),
        Labels::Indexed { .. } => match found {
            None => Ok(None),
            Some(found) => {
                let message =
                    format!("would be taken for the words of {}, which have no names; move it away", path.display());
                Err(Error::data(found.display().to_string(), message))
            }
        },
    }
}

/// Writes a dataset that was checked by [`check_conversion`]; `target` is what `out` is called in messages.
///
/// # Errors
/// When `out` does not take it, and when CSV could not be read back.
pub fn write_converted(out: &mut dyn Write, target: &Path, dataset: &Dataset, format: Format) -> Result<()> {
    check_conversion(dataset, format)?;
    let unwritable = |error| Error::Io { path: target.to_owned(), source: error };
    let mut out = BufWriter::with_capacity(1 << 16, out);
    match format {
        Format::Csv | Format::Tsv => {
            write_dataset_delimited(&mut out, target, dataset, delimited(format), declarations(dataset))?;
        }
        Format::Npy => dense(&mut out, dataset).map_err(unwritable)?,
        Format::Npz => sparse(&mut out, dataset).map_err(unwritable)?,
        Format::LdaC | Format::SvmLight => by_rows(&mut out, dataset, format).map_err(unwritable)?,
        _ => entries(&mut out, dataset, format).map_err(unwritable)?,
    }
    out.flush().map_err(unwritable)
}

fn sizes(dataset: &Dataset) -> Vec<u32> {
    dataset.columns.iter().map(|column| column.labels.len()).collect()
}

/// The values of each column that no row has.
fn unused(dataset: &Dataset) -> Vec<Vec<u32>> {
    let of_column = |ix: usize| {
        let size = dataset.columns[ix].labels.len();
        let mut used: Vec<u32> = dataset.values[ix].iter().chain(dataset.unknown.iter().map(|cell| cell[ix])).collect();
        used.sort_unstable();
        used.dedup();
        if u64::from(size) > used.len() as u64 + MAX_DECLARED {
            // More than anybody lists; how many is all that matters.
            return (0..(MAX_DECLARED as u32 + 1)).collect();
        }
        (0..size).filter(|code| used.binary_search(code).is_err()).collect()
    };
    (0..dataset.columns.len()).map(of_column).collect()
}

/// Rows with count 0 that make CSV say which values there are besides those with tokens.
fn declarations(dataset: &Dataset) -> Vec<Vec<u32>> {
    let unused = unused(dataset);
    if unused.iter().map(|codes| codes.len() as u64).sum::<u64>() > MAX_DECLARED {
        return Vec::new();
    }
    let n_rows = unused.iter().map(Vec::len).max().unwrap_or(0);
    // Another value of a column that has all it needs: any will do.
    let other: Vec<u32> = sizes(dataset).iter().map(|&size| if size == 0 { MISSING } else { 0 }).collect();
    let code = |row: usize, column: usize| unused[column].get(row).copied().unwrap_or(other[column]);
    (0..n_rows).map(|row| (0..unused.len()).map(|column| code(row, column)).collect()).collect()
}

/// All rows: codes and count.
fn rows(dataset: &Dataset) -> impl Iterator<Item = (Vec<u32>, RowCount)> + '_ {
    let counted = (0..dataset.n_rows()).map(|row| {
        (dataset.values.iter().map(|column| column.at(row)).collect(), RowCount::Tokens(dataset.counts.at(row)))
    });
    counted.chain(dataset.unknown.iter().map(|cell| (cell.clone(), RowCount::Unknown)))
}

/// One entry on each line, indices from 1.
fn entries(out: &mut impl Write, dataset: &Dataset, format: Format) -> std::io::Result<()> {
    let sizes = sizes(dataset);
    let n_entries = dataset.n_rows() + dataset.unknown.len();
    let listed = sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match format {
        Format::MatrixMarket => {
            writeln!(out, "%%MatrixMarket matrix coordinate integer general\n{listed} {n_entries}")?;
        }
        Format::Uci => writeln!(out, "{}\n{}\n{n_entries}", sizes[0], sizes[1])?,
        Format::TensorToolbox => writeln!(out, "sptensor\n{}\n{listed}\n{n_entries}", sizes.len())?,
        _ => {}
    }
    let mut line = String::new();
    let mut reached = vec![0; sizes.len()];
    for (codes, count) in rows(dataset) {
        line.clear();
        for (code, reached) in codes.iter().zip(&mut reached) {
            *reached = (*reached).max(code + 1);
            let _ = write!(line, "{} ", u64::from(*code) + 1);
        }
        writeln!(out, "{line}{count}")?;
    }
    // Without a header, the largest index says how long an axis is.
    if format == Format::Tns && reached != sizes {
        writeln!(out, "{listed} 0")?;
    }
    Ok(())
}

/// Positions of all rows in the order of their codes, the last column fastest.
fn order(dataset: &Dataset) -> Vec<usize> {
    let mut order: Vec<usize> = (0..dataset.n_rows()).collect();
    order.sort_unstable_by(|&one, &other| {
        let codes = dataset.values.iter().map(|column| column.at(one).cmp(&column.at(other)));
        codes.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
    order
}

/// All entries of a row on one line.
fn by_rows(out: &mut impl Write, dataset: &Dataset, format: Format) -> std::io::Result<()> {
    let mut all: Vec<(Vec<u32>, RowCount)> = rows(dataset).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    let (n_rows, n_columns) = (dataset.columns[0].labels.len(), dataset.columns[1].labels.len());
    // Nothing but an entry says how far columns reach; a count of zero does it.
    let reaches =
        all.iter().any(|(codes, _)| codes[1] + 1 == n_columns) || format == Format::LdaC && is_named(dataset, 1);
    if !reaches {
        let at = all.partition_point(|(codes, _)| codes[0] == 0);
        all.insert(at, (vec![0, n_columns - 1], RowCount::Tokens(0)));
    }
    let first = u64::from(format == Format::SvmLight);
    let mut entries = all.iter().peekable();
    let mut line = String::new();
    for row in 0..n_rows {
        line.clear();
        let mut n_entries = 0;
        while let Some((codes, count)) = entries.next_if(|(codes, _)| codes[0] == row) {
            let _ = write!(line, " {}:{count}", u64::from(codes[1]) + first);
            n_entries += 1;
        }
        writeln!(out, "{}{line}", if format == Format::LdaC { n_entries } else { 0 })?;
    }
    Ok(())
}

/// Whether the first axis is far longer than there are entries, so that nothing should be as long as it.
fn is_nearly_empty(dataset: &Dataset) -> bool {
    let n_entries = dataset.n_rows() as u64 + dataset.unknown.len() as u64;
    u64::from(dataset.columns[0].labels.len()) > n_entries + MAX_EMPTY_ROWS
}

fn is_named(dataset: &Dataset, column: usize) -> bool {
    matches!(dataset.columns[column].labels, Labels::Named(_))
}

/// A whole array of signed integers, the last axis fastest.
fn dense(out: &mut impl Write, dataset: &Dataset) -> std::io::Result<()> {
    let shape: Vec<usize> = sizes(dataset).iter().map(|&size| size as usize).collect();
    out.write_all(&npy::header("<i8", &shape))?;
    let zeros = [0u8; 1 << 13];
    let skip = |out: &mut dyn Write, mut n: u64| -> std::io::Result<()> {
        while n > 0 {
            let n_now = n.min(zeros.len() as u64 / 8);
            out.write_all(&zeros[..n_now as usize * 8])?;
            n -= n_now;
        }
        Ok(())
    };
    let mut at = 0;
    for row in order(dataset) {
        let codes = dataset.values.iter().zip(&shape);
        let place = codes.fold(0u64, |place, (column, &size)| place * size as u64 + u64::from(column.at(row)));
        skip(out, place - at)?;
        out.write_all(&dataset.counts.at(row).to_le_bytes())?;
        at = place + 1;
    }
    skip(out, shape.iter().map(|&size| size as u64).product::<u64>() - at)
}

/// As SciPy keeps it: `csr` for two axes unless nearly all rows are empty, `coo` for others.
fn sparse(out: &mut impl Write, dataset: &Dataset) -> std::io::Result<()> {
    let order = order(dataset);
    let n = order.len();
    let mut zip = ZipWriter::new_stream(out);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default())
        .large_file(true);
    let mut member =
        |name: &str, descr: &str, shape: &[usize], write: &mut dyn FnMut(&mut dyn Write) -> std::io::Result<()>| {
            zip.start_file(name, options).map_err(std::io::Error::other)?;
            let mut member = BufWriter::new(&mut zip);
            member.write_all(&npy::header(descr, shape))?;
            write(&mut member)?;
            member.flush()
        };
    let column = |ix: usize| {
        let (values, order) = (&dataset.values[ix], &order);
        move |out: &mut dyn Write| {
            order.iter().try_for_each(|&row| out.write_all(&i64::from(values.at(row)).to_le_bytes()))
        }
    };
    let sizes = sizes(dataset);
    let kind: &[u8] = if sizes.len() == 2 && is_nearly_empty(dataset) {
        member("row.npy", "<i8", &[n], &mut column(0))?;
        member("col.npy", "<i8", &[n], &mut column(1))?;
        b"coo"
    } else if let [n_rows, _] = sizes[..] {
        member("indices.npy", "<i8", &[n], &mut column(1))?;
        let mut starts = vec![0u64; n_rows as usize + 1];
        dataset.values[0].iter().for_each(|row| starts[row as usize + 1] += 1);
        for ix in 1..starts.len() {
            starts[ix] += starts[ix - 1];
        }
        member("indptr.npy", "<i8", &[starts.len()], &mut |out| {
            starts.iter().try_for_each(|start| out.write_all(&start.to_le_bytes()))
        })?;
        b"csr"
    } else {
        member("coords.npy", "<i8", &[sizes.len(), n], &mut |out| (0..sizes.len()).try_for_each(|ix| column(ix)(out)))?;
        b"coo"
    };
    member("format.npy", "|S3", &[], &mut |out| out.write_all(kind))?;
    member("shape.npy", "<i8", &[sizes.len()], &mut |out| {
        sizes.iter().try_for_each(|&size| out.write_all(&i64::from(size).to_le_bytes()))
    })?;
    let descr = if dataset.counts.iter().any(|count| i64::try_from(count).is_err()) { "<u8" } else { "<i8" };
    member("data.npy", descr, &[n], &mut |out| {
        order.iter().try_for_each(|&row| out.write_all(&dataset.counts.at(row).to_le_bytes()))
    })?;
    if sizes.len() != 2 {
        // Only arrays have other numbers of axes.
        member("_is_array.npy", "|b1", &[], &mut |out| out.write_all(&[1]))?;
    }
    zip.finish().map_err(std::io::Error::other)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Cell, DatasetBuilder};
    use crate::io::{ReadOptions, read};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Sizes, and cells with tokens or without a count by what their values are called.
    type Content = (Vec<u32>, BTreeMap<Vec<Option<String>>, String>);

    /// `numbers_from` calls all values by their numbers.
    fn content(data: &Dataset, by_number: bool) -> Content {
        let name = |ix: usize, code: u32| match code {
            MISSING => None,
            code if by_number => Some(code.to_string()),
            code => Some(data.columns[ix].labels.name(code).into_owned()),
        };
        let cells = rows(data).filter(|(_, count)| *count != RowCount::Tokens(0));
        let cells = cells.map(|(codes, count)| {
            (codes.iter().enumerate().map(|(ix, &code)| name(ix, code)).collect(), count.to_string())
        });
        (sizes(data), cells.collect())
    }

    fn written(data: &Dataset, format: Format) -> Result<Dataset> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.x");
        let mut bytes = Vec::new();
        write_converted(&mut bytes, &path, data, format)?;
        std::fs::write(&path, bytes).unwrap();
        if let Some((path, words)) = vocabulary_of(data, &path, format)? {
            std::fs::write(path, words.join("\n")).unwrap();
        }
        Ok(read(&path, &ReadOptions { format: Some(format), ..Default::default() }).unwrap())
    }

    /// Columns of labels or indices, of given sizes.
    fn dataset(sizes: &[(u32, bool)], cells: &[(Vec<u32>, RowCount)]) -> Dataset {
        let mut builder = DatasetBuilder::new("in");
        for (ix, &(size, is_named)) in sizes.iter().enumerate() {
            let name = Some(format!("c{ix}"));
            if is_named {
                builder.coded_column(name, (0..size).map(|code| format!("w{code} =\"")).collect());
            } else {
                builder.index_column(name, 1, Some(size));
            }
        }
        for (codes, count) in cells {
            let cells = codes.iter().map(|&code| if code == MISSING { Cell::Missing } else { Cell::Index(code) });
            // A cell that is unknown and has a count is none that anybody has.
            let _ = builder.push(1, cells, *count);
        }
        builder.finish()
    }

    fn any_dataset(n_axes: usize, plain: bool) -> impl Strategy<Value = Dataset> {
        prop::collection::vec((1u32..5, any::<bool>()), n_axes).prop_flat_map(move |sizes| {
            let value = |size: u32| {
                (0..=size).prop_map(move |code| {
                    if code < size {
                        code
                    } else if plain {
                        0
                    } else {
                        MISSING
                    }
                })
            };
            let codes: Vec<_> = sizes.iter().map(|&(size, _)| value(size)).collect();
            let count =
                (0u64..9).prop_map(move |n| if n == 8 && !plain { RowCount::Unknown } else { RowCount::Tokens(n) });
            prop::collection::vec((codes, count), 0..9).prop_map(move |cells| {
                // Each cell once, and no unknown cell with a missing value.
                let cells: BTreeMap<_, _> = cells.into_iter().collect();
                let is_fine =
                    |(codes, count): &(Vec<u32>, RowCount)| *count != RowCount::Unknown || !codes.contains(&MISSING);
                dataset(&sizes, &cells.into_iter().filter(is_fine).collect::<Vec<_>>())
            })
        })
    }

    proptest! {
        #[test]
        fn tables_are_read_back(data in any_dataset(3, false)) {
            for format in [Format::Csv, Format::Tsv] {
                prop_assert_eq!(content(&written(&data, format).unwrap(), false), content(&data, false), "{}", format);
            }
        }

        #[test]
        fn tensors_are_read_back(data in (1usize..4).prop_flat_map(|n_axes| any_dataset(n_axes, true))) {
            for format in [Format::Tns, Format::TensorToolbox, Format::Npy, Format::Npz] {
                prop_assert_eq!(content(&written(&data, format).unwrap(), true), content(&data, true), "{}", format);
            }
        }

        #[test]
        fn matrices_are_read_back(data in any_dataset(2, true)) {
            for format in [Format::MatrixMarket, Format::Uci, Format::LdaC, Format::SvmLight] {
                let found = written(&data, format).unwrap();
                prop_assert_eq!(content(&found, true), content(&data, true), "{}", format);
                if matches!(format, Format::Uci | Format::LdaC) && is_named(&data, 1) {
                    prop_assert_eq!(&found.columns[1].labels, &data.columns[1].labels);
                }
            }
        }
    }

    #[test]
    fn unknown_cells_are_kept_where_a_format_has_them() {
        let data =
            dataset(&[(3, false), (2, false)], &[(vec![0, 1], RowCount::Unknown), (vec![1, 0], RowCount::Tokens(2))]);
        for format in
            [Format::Tns, Format::TensorToolbox, Format::MatrixMarket, Format::Uci, Format::LdaC, Format::SvmLight]
        {
            assert_eq!(content(&written(&data, format).unwrap(), true), content(&data, true), "{format}");
        }
        for format in [Format::Npy, Format::Npz] {
            let message = check_conversion(&data, format).unwrap_err().to_string();
            assert!(message.contains("in, line 1: the count is `?`, which"), "{message}");
        }
    }

    #[test]
    fn what_a_format_cannot_say_is_refused() {
        let refusal = |data: &Dataset, format| check_conversion(data, format).unwrap_err().to_string();
        let three = dataset(&[(2, false), (2, false), (2, false)], &[]);
        for format in [Format::MatrixMarket, Format::Uci, Format::LdaC, Format::SvmLight] {
            assert!(refusal(&three, format).contains("there are 3 columns"), "{format}");
        }
        let missing = dataset(&[(2, false), (2, false)], &[(vec![0, MISSING], RowCount::Tokens(1))]);
        for format in [Format::MatrixMarket, Format::Tns, Format::Npz] {
            assert!(refusal(&missing, format).contains("in: there are missing values, which"), "{format}");
        }
        let huge = dataset(&[(4_000_000_000, false), (4_000_000_000, false)], &[]);
        assert!(refusal(&huge, Format::Npy).contains("a dense array would have 16000000000000000000 cells"));
        assert_eq!(conversion_notes(&huge, Format::Csv).len(), 1);
        assert!(refusal(&huge, Format::LdaC).contains("lda-c would have 4000000000 lines"));
        for format in [Format::Npz, Format::Uci, Format::MatrixMarket, Format::Tns] {
            assert_eq!(content(&written(&huge, format).unwrap(), true), content(&huge, true), "{format}");
        }
        let mut odd = dataset(&[(1, false), (1, true)], &[]);
        odd.columns[1].labels = Labels::Named(vec!["two\nlines".into()]);
        assert!(refusal(&odd, Format::Uci).contains("does not fit on a line"));
    }

    #[test]
    fn labels_like_formulas_are_noted() {
        let mut data = dataset(&[(1, true)], &[]);
        for (label, is_noted) in [("=cmd()", true), ("@x", true), ("-5", false), ("+1e3", false), ("a=b", false)] {
            data.columns[0].labels = Labels::Named(vec![label.into()]);
            assert_eq!(!conversion_notes(&data, Format::Csv).is_empty(), is_noted, "{label}");
        }
        assert!(conversion_notes(&data, Format::Tns)[0].contains("those of c0 become numbers"));
    }
}
