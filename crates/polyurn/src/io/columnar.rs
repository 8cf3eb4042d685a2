//! Parquet and Arrow IPC: tables that stand column after column, a batch of rows at a time.
//!
//! - Columns become columns of labels: texts, dictionaries of them, whole numbers, truth values, and floats, of which a whole one is
//!   called as the integer that it is. A null, and a float that is not a number, is a missing value.
//! - A column called `count` holds counts, as in CSV; null is an unknown count. Without it each row is one token.
//! - An Arrow file may be one with a footer (`.arrow`, Feather) or a stream; which it is its first bytes tell.

use super::Input;
use super::bins::Cuts;
use super::lines::shown;
use super::number::{CountStyle, count_of, parse_count};
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::{Error, Result};
use crate::warning::Warning;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader, read_footer_length};
use arrow_ipc::{Block, root_as_footer};
use arrow_schema::{DataType, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;
use std::cell::Cell as Shared;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Once;

/// The name of the column of counts.
const COUNT: &str = "count";

/// Rows that are held at a time.
const BATCH: usize = 8192;

/// What an Arrow file with a footer begins with.
const ARROW_FILE: &[u8] = b"ARROW1";

/// What an Arrow stream ends with.
const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Told of the share of the rows that has been read.
pub(super) type Told<'t> = &'t dyn Fn(f64);

/// Reads a Parquet file where it lies.
pub(super) fn read_parquet_file(
    file: &File,
    source: &str,
    cuts: &[Cuts],
    told: Told<'_>,
    sink: &mut impl RowSink,
) -> Result<()> {
    let file = file.try_clone().map_err(|error| Error::Io { path: source.into(), source: error })?;
    read_parquet(file, source, cuts, told, sink)
}

/// Reads Parquet from what can only be read from one end to the other: all of it is held in memory, since its end says what is in it.
pub(super) fn read_parquet_stream(input: Input<'_>, cuts: &[Cuts], sink: &mut impl RowSink) -> Result<()> {
    let source = input.source.clone();
    read_parquet(bytes::Bytes::from(all(input)?), &source, cuts, &|_| (), sink)
}

/// Reads Arrow IPC, with a footer or as a stream.
pub(super) fn read_arrow(mut input: Input<'_>, cuts: &[Cuts], sink: &mut impl RowSink) -> Result<()> {
    let source = input.source.clone();
    if input.first_bytes()?.starts_with(ARROW_FILE) {
        return read_arrow_footed(Cursor::new(all(input)?), &source, cuts, sink);
    }
    let kind = "Arrow stream";
    let last = Rc::default();
    let reader = Ending { reader: input.reader, last: Rc::clone(&last) };
    let batches = guarded(&source, kind, || StreamReader::try_new(reader, None))?;
    Table { source: &source, kind, cuts, binned: Vec::new(), n_rows: 0, sink }.read(batches, 0, &|_| ())?;
    // A stream may end without a mark; but then nobody can tell whether it is whole.
    if last.get() == END_OF_STREAM { Ok(()) } else { Err(damaged(&source, kind, &"the mark of its end is missing")) }
}

/// A reader that remembers the last bytes it gave.
struct Ending<R> {
    reader: R,
    last: Rc<Shared<[u8; 8]>>,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.reader.read(buffer)?;
        let mut last = self.last.get();
        for &byte in &buffer[n.saturating_sub(last.len())..n] {
            last.rotate_left(1);
            last[7] = byte;
        }
        self.last.set(last);
        Ok(n)
    }
}

/// Reads an Arrow file where it lies.
pub(super) fn read_arrow_file(mut file: &File, source: &str, cuts: &[Cuts], sink: &mut impl RowSink) -> Result<()> {
    let unreadable = |error| Error::Io { path: source.into(), source: error };
    let mut first = Vec::new();
    file.take(ARROW_FILE.len() as u64).read_to_end(&mut first).map_err(unreadable)?;
    file.rewind().map_err(unreadable)?;
    let reader = BufReader::with_capacity(super::BUFFER_SIZE, file);
    if first == ARROW_FILE {
        return read_arrow_footed(reader, source, cuts, sink);
    }
    read_arrow(Input { reader: Box::new(reader), source: source.to_owned() }, cuts, sink)
}

fn read_arrow_footed(mut reader: impl Read + Seek, source: &str, cuts: &[Cuts], sink: &mut impl RowSink) -> Result<()> {
    let kind = "Arrow file";
    guarded(source, kind, || check_footer(&mut reader))?;
    let batches = guarded(source, kind, || FileReader::try_new(reader, None))?;
    Table { source, kind, cuts, binned: Vec::new(), n_rows: 0, sink }.read(batches, 0, &|_| ())
}

/// Whether the parts that an Arrow file's footer names lie in the file: as much memory as they claim is set aside before they are read.
fn check_footer(reader: &mut (impl Read + Seek)) -> std::result::Result<(), String> {
    let unreadable = |error: std::io::Error| error.to_string();
    let size = reader.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let mut end = [0; 10];
    let end_at = size.checked_sub(end.len() as u64).ok_or("it has no footer")?;
    reader.seek(SeekFrom::Start(end_at)).map_err(unreadable)?;
    reader.read_exact(&mut end).map_err(unreadable)?;
    let length = read_footer_length(end).map_err(|error| error.to_string())? as u64;
    let footer_at = end_at.checked_sub(length).ok_or("its footer is longer than the file")?;
    reader.seek(SeekFrom::Start(footer_at)).map_err(unreadable)?;
    let mut footer = Vec::new();
    reader.take(length).read_to_end(&mut footer).map_err(unreadable)?;
    reader.rewind().map_err(unreadable)?;
    let footer = root_as_footer(&footer).map_err(|error| error.to_string())?;
    let is_within = |block: &Block| {
        let parts = [block.offset(), block.metaDataLength().into(), block.bodyLength()];
        let end = parts.into_iter().try_fold(0u64, |end, part| end.checked_add(u64::try_from(part).ok()?));
        end.is_some_and(|end| end <= footer_at)
    };
    let blocks = [footer.dictionaries(), footer.recordBatches()];
    if blocks.into_iter().flatten().flatten().all(is_within) {
        Ok(())
    } else {
        Err("its footer names parts beyond its end".into())
    }
}

fn read_parquet(
    chunks: impl ChunkReader + 'static,
    source: &str,
    cuts: &[Cuts],
    told: Told<'_>,
    sink: &mut impl RowSink,
) -> Result<()> {
    let kind = "Parquet file";
    let builder = guarded(source, kind, || ParquetRecordBatchReaderBuilder::try_new(chunks))?;
    let n_rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(0);
    let batches = guarded(source, kind, || builder.with_batch_size(BATCH).build())?;
    Table { source, kind, cuts, binned: Vec::new(), n_rows: 0, sink }.read(batches, n_rows, told)
}

thread_local! {
    /// Whether a panic on this thread is one that is expected.
    static IS_GUARDED: Shared<bool> = const { Shared::new(false) };
}

/// Does a part of the reading. The crates that know these formats panic over some damaged files; that is as good as an error, and nothing of
/// theirs is used afterwards.
fn guarded<R, E: Display>(source: &str, kind: &str, work: impl FnOnce() -> std::result::Result<R, E>) -> Result<R> {
    static QUIET_HOOK: Once = Once::new();
    QUIET_HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                usual(info);
            }
        }));
    });
    IS_GUARDED.set(true);
    let found = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(false);
    match found {
        Ok(found) => found.map_err(|error| damaged(source, kind, &error)),
        Err(_) => Err(damaged(source, kind, &"its parts contradict each other")),
    }
}

/// All bytes of an input.
fn all(mut input: Input<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match input.reader.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(input.unreadable(error)),
    }
}

/// The error of a file that is not what it says it is.
fn damaged(source: &str, kind: &str, error: &dyn Display) -> Error {
    let detail = error.to_string();
    Error::data(source, format!("is no {kind}, or not a whole one ({detail}); copy or write it again"))
}

/// A table under way.
struct Table<'a, S> {
    source: &'a str,
    kind: &'static str,
    cuts: &'a [Cuts],
    /// How each column is cut into categories, if it is.
    binned: Vec<Option<Binned<'a>>>,
    /// Rows of the batches before.
    n_rows: u64,
    sink: &'a mut S,
}

/// A column of numbers that are cut into categories.
struct Binned<'a> {
    cuts: &'a Cuts,
    labels: Vec<String>,
    /// Whether whoever takes the rows wants labels.
    wants_labels: bool,
}

impl<S: RowSink> Table<'_, S> {
    fn read(mut self, mut batches: impl RecordBatchReader, n_all: u64, told: Told<'_>) -> Result<()> {
        let schema = batches.schema();
        let count_ix = self.declare(&schema)?;
        while let Some(batch) = guarded(self.source, self.kind, || batches.next().transpose())? {
            self.take(&batch, &schema, count_ix)?;
            if n_all > 0 {
                told(self.n_rows as f64 / n_all as f64);
            }
        }
        Ok(())
    }

    /// Tells the sink of the columns; says which one holds counts.
    fn declare(&mut self, schema: &Schema) -> Result<Option<usize>> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        for (ix, &name) in names.iter().enumerate() {
            if name.is_empty() {
                return Err(self.error(format!("column {} has no name; name it", ix + 1)));
            }
            if let Some(first) = names[..ix].iter().position(|&other| other == name) {
                let message = format!(
                    "columns {} and {} are both called {}; rename or remove one of them",
                    first + 1,
                    ix + 1,
                    shown(name)
                );
                return Err(self.error(message));
            }
        }
        let count_ix = names.iter().position(|&name| name == COUNT);
        for (ix, field) in schema.fields().iter().enumerate() {
            if !is_read(field.data_type(), true) {
                let message = format!(
                    "column {} holds {}; write it as text or whole numbers, or leave it out",
                    shown(field.name()),
                    field.data_type()
                );
                return Err(self.error(message));
            }
            let cuts = self.cuts.iter().find(|cuts| cuts.column == *field.name()).filter(|_| Some(ix) != count_ix);
            let name = Some(field.name().clone());
            self.binned.push(cuts.map(|cuts| {
                let labels = cuts.labels();
                Binned { cuts, wants_labels: !self.sink.coded_column(name.clone(), &labels), labels }
            }));
            if Some(ix) != count_ix && cuts.is_none() {
                self.sink.label_column(name);
            }
        }
        if count_ix.is_none() {
            self.sink.rows_are_tokens();
            let is_near = |name: &&&str| name.eq_ignore_ascii_case("count") || name.eq_ignore_ascii_case("counts");
            if let Some(name) = names.iter().find(is_near) {
                let message =
                    format!("column `{name}` is read as a variable like any other; call it `count` if it holds counts");
                self.sink.warn(Warning::Odd { message });
            }
        }
        Ok(count_ix)
    }

    fn take(&mut self, batch: &RecordBatch, schema: &Schema, count_ix: Option<usize>) -> Result<()> {
        let mut columns = Vec::with_capacity(batch.num_columns());
        for ix in (0..batch.num_columns()).filter(|&ix| Some(ix) != count_ix) {
            let name = schema.field(ix).name();
            let mut column = Column::new(batch.column(ix)).map_err(|what| self.error_in(name, 0, &what))?;
            if let Some(binned) = &self.binned[ix] {
                column.cut(binned).map_err(|(row, what)| self.error_in(name, self.n_rows + row as u64 + 1, &what))?;
            }
            columns.push(column);
        }
        let counts = match count_ix {
            Some(ix) => Some(Numbers::new(batch.column(ix)).map_err(|what| self.error_in(COUNT, 0, &what))?),
            None => None,
        };
        for row in 0..batch.num_rows() {
            self.n_rows += 1;
            let count = match &counts {
                Some(counts) => {
                    let count = counts.count(row, self.sink.takes_fractions());
                    count.map_err(|message| self.error_in(COUNT, self.n_rows, &message))?
                }
                None => RowCount::Tokens(1),
            };
            self.sink.push(self.n_rows, columns.iter().map(|column| column.cell(row)), count)?;
        }
        Ok(())
    }

    fn error(&self, message: impl Display) -> Error {
        Error::data(self.source, message.to_string())
    }

    fn error_in(&self, column: &str, row: u64, message: &str) -> Error {
        let place = if row == 0 { String::new() } else { format!("row {row}, ") };
        self.error(format!("{place}column {}: {message}", shown(column)))
    }
}

/// Whether values of this type are read.
fn is_read(data_type: &DataType, may_be_dictionary: bool) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => may_be_dictionary && is_read(values, false),
        DataType::Null | DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Float32 | DataType::Float64 => true,
        other => other.is_integer(),
    }
}

/// A column of labels in one batch: what each of its different values is called, and which of them a row has.
struct Column {
    labels: Vec<String>,
    /// For each row a place in `labels`; none where the value is missing.
    codes: Vec<Option<u32>>,
    /// Whether the codes are known to whoever takes the rows, and the labels are not wanted.
    are_categories: bool,
}

impl Column {
    fn new(array: &ArrayRef) -> std::result::Result<Self, String> {
        match array.data_type() {
            DataType::Dictionary(key, _) => match **key {
                DataType::Int8 => Column::of_dictionary::<Int8Type>(array),
                DataType::Int16 => Column::of_dictionary::<Int16Type>(array),
                DataType::Int32 => Column::of_dictionary::<Int32Type>(array),
                DataType::Int64 => Column::of_dictionary::<Int64Type>(array),
                DataType::UInt8 => Column::of_dictionary::<UInt8Type>(array),
                DataType::UInt16 => Column::of_dictionary::<UInt16Type>(array),
                DataType::UInt32 => Column::of_dictionary::<UInt32Type>(array),
                DataType::UInt64 => Column::of_dictionary::<UInt64Type>(array),
                _ => Err("its keys are no integers".into()),
            },
            _ => Ok(Column::of_values(array)),
        }
    }

    fn of_dictionary<K: ArrowDictionaryKeyType>(array: &ArrayRef) -> std::result::Result<Self, String> {
        let dictionary = array.as_dictionary::<K>();
        let values = Column::of_values(dictionary.values());
        let code = |row: usize| match dictionary.key(row) {
            Some(key) => values.codes.get(key).copied().ok_or_else(|| format!("its dictionary has no value {key}")),
            None => Ok(None),
        };
        let codes = (0..array.len()).map(code).collect::<std::result::Result<_, _>>()?;
        Ok(Column { labels: values.labels, codes, are_categories: false })
    }

    fn of_values(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::Utf8 => Column::of_texts(array.as_string::<i32>().iter()),
            DataType::LargeUtf8 => Column::of_texts(array.as_string::<i64>().iter()),
            DataType::Utf8View => Column::of_texts(array.as_string_view().iter()),
            DataType::Boolean => Column::of_texts(
                array.as_boolean().iter().map(|truth| truth.map(|truth| if truth { "True" } else { "False" })),
            ),
            DataType::Null => Column { labels: Vec::new(), codes: vec![None; array.len()], are_categories: false },
            DataType::Int8 => Column::of_numbers::<Int8Type>(array),
            DataType::Int16 => Column::of_numbers::<Int16Type>(array),
            DataType::Int32 => Column::of_numbers::<Int32Type>(array),
            DataType::Int64 => Column::of_numbers::<Int64Type>(array),
            DataType::UInt8 => Column::of_numbers::<UInt8Type>(array),
            DataType::UInt16 => Column::of_numbers::<UInt16Type>(array),
            DataType::UInt32 => Column::of_numbers::<UInt32Type>(array),
            DataType::UInt64 => Column::of_numbers::<UInt64Type>(array),
            DataType::Float32 => Column::of_floats::<Float32Type>(array),
            DataType::Float64 => Column::of_floats::<Float64Type>(array),
            other => unreachable!("columns of {other} are refused beforehand"),
        }
    }

    fn of_texts<'t>(texts: impl Iterator<Item = Option<&'t str>>) -> Self {
        // Neighbours are often alike; the builder finds out who else is.
        let mut column = Column { labels: Vec::new(), codes: Vec::new(), are_categories: false };
        for text in texts {
            // An empty text is a missing value, as in CSV.
            let code = text.filter(|text| !text.is_empty()).map(|text| column.code(text));
            column.codes.push(code);
        }
        column
    }

    fn of_numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> Self
    where
        T::Native: Display,
    {
        let mut column = Column { labels: Vec::new(), codes: Vec::new(), are_categories: false };
        let mut before: Option<T::Native> = None;
        for value in array.as_primitive::<T>().iter() {
            let code = match value {
                None => None,
                Some(value) if before == Some(value) => Some(column.labels.len() as u32 - 1),
                Some(value) => {
                    before = Some(value);
                    column.labels.push(value.to_string());
                    Some(column.labels.len() as u32 - 1)
                }
            };
            column.codes.push(code);
        }
        column
    }

    fn of_floats<T: ArrowPrimitiveType>(array: &ArrayRef) -> Self
    where
        T::Native: Display + Into<f64>,
    {
        let mut column = Column { labels: Vec::new(), codes: Vec::new(), are_categories: false };
        for value in array.as_primitive::<T>().iter() {
            let real: Option<f64> = value.map(Into::into);
            let code = match (value, real) {
                (Some(value), Some(real)) if !real.is_nan() => {
                    // Zero has no sign.
                    Some(column.code(&if real == 0.0 { "0".to_owned() } else { value.to_string() }))
                }
                _ => None,
            };
            column.codes.push(code);
        }
        column
    }

    /// The code of a label; the last one again if it is the same.
    fn code(&mut self, label: &str) -> u32 {
        if self.labels.last().is_none_or(|last| last != label) {
            self.labels.push(label.to_owned());
        }
        self.labels.len() as u32 - 1
    }

    /// Puts categories in the place of numbers; else the first row that has none, and why.
    fn cut(&mut self, binned: &Binned<'_>) -> std::result::Result<(), (usize, String)> {
        let of_label = |label: &String| binned.cuts.category(&binned.labels, label);
        let categories: Vec<std::result::Result<u32, String>> = self.labels.iter().map(of_label).collect();
        for (row, code) in self.codes.iter_mut().enumerate() {
            if let Some(code) = code {
                *code = categories[*code as usize].clone().map_err(|what| (row, what))?;
            }
        }
        self.labels.clone_from(&binned.labels);
        self.are_categories = !binned.wants_labels;
        Ok(())
    }

    fn cell(&self, row: usize) -> Cell<'_> {
        match self.codes[row] {
            Some(code) if self.are_categories => Cell::Index(code),
            Some(code) => Cell::Label(&self.labels[code as usize]),
            None => Cell::Missing,
        }
    }
}

/// The column of counts in one batch.
enum Numbers {
    Whole(Vec<Option<i128>>),
    Real(Vec<Option<f64>>),
    Text(Column),
}

impl Numbers {
    fn new(array: &ArrayRef) -> std::result::Result<Self, String> {
        Ok(match array.data_type() {
            DataType::Int8 => Numbers::whole::<Int8Type>(array),
            DataType::Int16 => Numbers::whole::<Int16Type>(array),
            DataType::Int32 => Numbers::whole::<Int32Type>(array),
            DataType::Int64 => Numbers::whole::<Int64Type>(array),
            DataType::UInt8 => Numbers::whole::<UInt8Type>(array),
            DataType::UInt16 => Numbers::whole::<UInt16Type>(array),
            DataType::UInt32 => Numbers::whole::<UInt32Type>(array),
            DataType::UInt64 => Numbers::whole::<UInt64Type>(array),
            DataType::Float32 => {
                Numbers::Real(array.as_primitive::<Float32Type>().iter().map(|value| value.map(f64::from)).collect())
            }
            DataType::Float64 => Numbers::Real(array.as_primitive::<Float64Type>().iter().collect()),
            DataType::Null => Numbers::Whole(vec![None; array.len()]),
            _ => Numbers::Text(Column::new(array)?),
        })
    }

    fn whole<T: ArrowPrimitiveType>(array: &ArrayRef) -> Self
    where
        T::Native: Into<i128>,
    {
        Numbers::Whole(array.as_primitive::<T>().iter().map(|value| value.map(Into::into)).collect())
    }

    fn count(&self, row: usize, takes_fractions: bool) -> std::result::Result<RowCount, String> {
        match self {
            Numbers::Whole(all) => match all[row] {
                None => Ok(RowCount::Unknown),
                Some(value) => u64::try_from(value)
                    .map(RowCount::Tokens)
                    .map_err(|_| format!("count `{value}` is negative; counts are whole numbers from 0")),
            },
            Numbers::Real(all) => match all[row] {
                None => Ok(RowCount::Unknown),
                Some(value) if takes_fractions || value.is_nan() => count_of(value),
                Some(value) => parse_count(&value.to_string(), CountStyle::Real),
            },
            Numbers::Text(column) => match column.cell(row) {
                Cell::Label(text) => parse_count(text, CountStyle::Integer),
                _ => Ok(RowCount::Unknown),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::{Dataset, Labels};
    use crate::io::{Compression, Format, ReadOptions, read, read_from, read_with_origin};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        BooleanArray, DictionaryArray, Float64Array, Int64Array, LargeStringArray, StringArray, TimestampSecondArray,
        UInt8Array, UInt64Array,
    };
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use std::sync::Arc;

    fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    fn parquet_of(batch: &RecordBatch) -> Vec<u8> {
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(3)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn arrow_file_of(batch: &RecordBatch) -> Vec<u8> {
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
        let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
        writer.write(batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn arrow_stream_of(batch: &RecordBatch) -> Vec<u8> {
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(batch).unwrap();
        writer.into_inner().unwrap()
    }

    /// The same table in all three kinds of files.
    fn all_kinds(batch: &RecordBatch) -> [(Format, Vec<u8>); 3] {
        [
            (Format::Parquet, parquet_of(batch)),
            (Format::Arrow, arrow_file_of(batch)),
            (Format::Arrow, arrow_stream_of(batch)),
        ]
    }

    /// What they all are read as, from memory and from a file.
    #[track_caller]
    fn read_all(batch: &RecordBatch) -> Result<Dataset, String> {
        let mut found = Vec::new();
        for (format, bytes) in all_kinds(batch) {
            found.push(read_from(&bytes[..], "test", format).map_err(|error| error.to_string()));
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("test");
            std::fs::write(&path, &bytes).unwrap();
            let options = ReadOptions { format: Some(format), ..Default::default() };
            let strip = |message: String| message.replace(&path.display().to_string(), "test");
            let of_file = read(&path, &options).map_err(|error| strip(error.to_string()));
            found.push(of_file.map(|data| Dataset { source: "test".into(), ..data }));
        }
        let first = found[0].clone();
        assert!(found.iter().all(|one| *one == first), "{found:?}");
        first
    }

    fn names(data: &Dataset, column: usize) -> Vec<&str> {
        match &data.columns[column].labels {
            Labels::Named(names) => names.iter().map(String::as_str).collect(),
            Labels::Indexed { .. } => panic!("labels have names"),
        }
    }

    #[test]
    fn columns_of_all_types_become_labels_and_nulls_missing_values() {
        let colours: DictionaryArray<Int32Type> =
            vec![Some("red"), None, Some("blue"), Some("red")].into_iter().collect();
        let batch = table(vec![
            ("pet", Arc::new(StringArray::from(vec![Some("cat"), Some("dog"), None, Some("cat")]))),
            ("colour", Arc::new(colours)),
            ("legs", Arc::new(Int64Array::from(vec![Some(4), Some(4), Some(-1), Some(4)]))),
            ("tame", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
            ("size", Arc::new(Float64Array::from(vec![Some(1.0), Some(0.5), Some(f64::NAN), Some(1.0)]))),
            ("name", Arc::new(LargeStringArray::from(vec!["", "b", "c", ""]))),
            ("count", Arc::new(UInt8Array::from(vec![3, 1, 2, 4]))),
        ]);
        let data = read_all(&batch).unwrap();
        assert_eq!(
            data.columns.iter().map(|column| column.name.clone().unwrap()).collect::<Vec<_>>(),
            ["pet", "colour", "legs", "tame", "size", "name"]
        );
        assert_eq!(names(&data, 0), ["cat", "dog"]);
        assert_eq!(names(&data, 1), ["red", "blue"]);
        assert_eq!(names(&data, 2), ["4", "-1"]);
        assert_eq!(names(&data, 3), ["True", "False"]);
        assert_eq!(names(&data, 4), ["1", "0.5"]);
        assert_eq!(names(&data, 5), ["b", "c"]);
        assert_eq!(data.counts, [7, 1, 2], "the first and the last row are alike");
        let missing: Vec<Vec<bool>> = data
            .values
            .iter()
            .map(|column| column.iter().map(|value| value == crate::counts::MISSING).collect())
            .collect();
        assert_eq!(missing[0], [false, false, true]);
        assert_eq!(missing[1], [false, true, false]);
        assert_eq!(missing[3], [false, false, true]);
        assert_eq!(missing[4], [false, false, true]);
        assert_eq!(missing[5], [true, false, false]);
    }

    #[test]
    fn without_counts_each_row_is_a_token_and_without_rows_there_is_none() {
        let batch = table(vec![("x", Arc::new(Int64Array::from(vec![1, 2, 1, 1, 2])) as ArrayRef)]);
        let data = read_all(&batch).unwrap();
        assert_eq!((data.counts.iter().collect::<Vec<_>>(), data.warnings.len()), (vec![3, 2], 0));
        let empty = table(vec![("x", Arc::new(Int64Array::from(Vec::<i64>::new())) as ArrayRef)]);
        assert_eq!(read_all(&empty).unwrap().n_tokens(), Some(0));
    }

    #[test]
    fn counts_may_be_unknown_and_must_be_whole_and_not_negative() {
        let with =
            |counts: ArrayRef| read_all(&table(vec![("x", Arc::new(Int64Array::from(vec![1, 2]))), ("count", counts)]));
        let unknown = with(Arc::new(Int64Array::from(vec![Some(3), None]))).unwrap();
        assert_eq!((unknown.counts.iter().sum::<u64>(), unknown.unknown.len()), (3, 1));
        assert_eq!(with(Arc::new(StringArray::from(vec!["3", "?"]))).unwrap().unknown.len(), 1);
        assert_eq!(with(Arc::new(Float64Array::from(vec![3.0, f64::NAN]))).unwrap().unknown.len(), 1);
        assert_eq!(with(Arc::new(UInt64Array::from(vec![u64::MAX - 1, 1]))).unwrap().n_tokens(), Some(u64::MAX));
        for (counts, wanted) in [
            (
                Arc::new(Int64Array::from(vec![1, -2])) as ArrayRef,
                "test: row 2, column `count`: count `-2` is negative",
            ),
            (Arc::new(Float64Array::from(vec![2.5, 1.0])), "test: row 1, column `count`: count `2.5` is not whole"),
            (
                Arc::new(Float64Array::from(vec![1.0, f64::INFINITY])),
                "row 2, column `count`: count `inf` is not finite",
            ),
            (Arc::new(Float64Array::from(vec![1.0, 1e300])), "row 2, column `count`: count"),
            (Arc::new(StringArray::from(vec!["1", "many"])), "row 2, column `count`: count `many` is not a number"),
        ] {
            let message = with(counts).unwrap_err();
            assert!(message.contains(wanted), "{message}");
        }
    }

    #[test]
    fn numbers_are_cut_into_categories_as_in_csv() {
        let sizes = Float64Array::from(vec![Some(0.1), Some(0.5), None, Some(2.5), Some(0.1)]);
        let batch = table(vec![("size", Arc::new(sizes) as ArrayRef)]);
        let text = "size\n0.1\n0.5\n\"\"\n2.5\n0.1\n";
        let folder = tempfile::tempdir().unwrap();
        let mut found = Vec::new();
        for (name, bytes) in
            [("a.csv", text.as_bytes().to_vec()), ("a.parquet", parquet_of(&batch)), ("a.arrow", arrow_file_of(&batch))]
        {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let specs = ["size=2:width".parse().unwrap()];
            let (cuts, _) = crate::io::find_cuts(&path, &ReadOptions::default(), &specs).unwrap();
            let data = read(&path, &ReadOptions { cuts, ..Default::default() }).unwrap();
            let labels: Vec<Labels> = data.columns.into_iter().map(|column| column.labels).collect();
            found.push((labels, data.values, data.counts.iter().collect::<Vec<_>>()));
        }
        assert_eq!(found[0], found[1]);
        assert_eq!(found[0], found[2]);
        let words = table(vec![("size", Arc::new(StringArray::from(vec!["1", "2", "big"])) as ArrayRef)]);
        let path = folder.path().join("b.parquet");
        std::fs::write(&path, parquet_of(&words)).unwrap();
        let cuts = vec![Cuts { column: "size".into(), method: crate::io::BinMethod::Width, cuts: vec![1.5] }];
        let message = read(&path, &ReadOptions { cuts, ..Default::default() }).unwrap_err().to_string();
        assert!(message.contains("row 3, column `size`: `big` is not a number"), "{message}");
    }

    #[test]
    fn columns_that_cannot_be_labels_are_named() {
        let times = table(vec![("when", Arc::new(TimestampSecondArray::from(vec![1, 2])) as ArrayRef)]);
        let message = read_all(&times).unwrap_err();
        assert!(
            message.starts_with("test: column `when` holds Timestamp") && message.contains("write it as text"),
            "{message}"
        );
        let nameless = table(vec![("", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        assert!(read_all(&nameless).unwrap_err().contains("column 1 has no name"));
        let near = table(vec![("Count", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        assert_eq!(read_all(&near).unwrap().warnings.len(), 1);
    }

    #[test]
    fn files_are_told_by_their_names_and_seen_through_compression() {
        let batch = table(vec![("x", Arc::new(Int64Array::from(vec![1, 2, 1])) as ArrayRef)]);
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in [
            ("a.parquet", parquet_of(&batch)),
            ("a.PQ", parquet_of(&batch)),
            ("a.feather", arrow_file_of(&batch)),
            ("a.arrow", arrow_stream_of(&batch)),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, &bytes).unwrap();
            let (data, origin) = read_with_origin(&path, &ReadOptions::default()).unwrap();
            assert_eq!((data.n_tokens(), origin.compression, origin.n_rows), (Some(3), None, 3), "{name}");
            let path = folder.path().join(format!("{name}.gz"));
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut packed, &bytes).unwrap();
            std::fs::write(&path, packed.finish().unwrap()).unwrap();
            let (data, origin) = read_with_origin(&path, &ReadOptions::default()).unwrap();
            assert_eq!((data.n_tokens(), origin.compression), (Some(3), Some(Compression::Gzip)), "{name}");
        }
    }

    #[test]
    fn a_file_that_is_cut_short_anywhere_is_refused() {
        let batch = table(vec![
            ("x", Arc::new(StringArray::from(vec!["a", "b", "a", "c"])) as ArrayRef),
            ("count", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
        ]);
        for (format, bytes) in all_kinds(&batch) {
            for length in 0..bytes.len() {
                match read_from(&bytes[..length], "test", format) {
                    Err(error) => {
                        let message = error.to_string();
                        assert!(message.starts_with("test: ") && !message.contains('\n'), "{message}");
                    }
                    Ok(_) => panic!("{format}, {length} bytes of {}", bytes.len()),
                }
            }
        }
    }

    /// A file that made the crate panic: found by the fuzzer.
    #[test]
    fn a_length_beyond_its_buffer_is_refused() {
        let bytes = include_bytes!("../../../../fuzz/finds/arrow/length-beyond-its-buffer");
        let message = read_from(&bytes[..], "test", Format::Arrow).unwrap_err().to_string();
        assert!(message.starts_with("test: is no Arrow file, or not a whole one"), "{message}");
        // Other panics are told as ever.
        assert!(!IS_GUARDED.get());
    }

    /// Memory is set aside for what a footer names, so that must be there. Here bytes before the footer are missing.
    #[test]
    fn parts_beyond_the_file_are_refused() {
        let batch = table(vec![("x", Arc::new(StringArray::from(vec!["a", "b", "a", "c"])) as ArrayRef)]);
        let mut bytes = arrow_file_of(&batch);
        let end = bytes.len() - 10;
        let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
        bytes.drain(end - length - 64..end - length);
        let message = read_from(&bytes[..], "test", Format::Arrow).unwrap_err().to_string();
        assert!(message.contains("its footer names parts beyond its end"), "{message}");
    }
}
