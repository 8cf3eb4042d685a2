//! SciPy's sparse matrices in `.npz`: arrays of NumPy in a zip archive, as `scipy.sparse.save_npz` writes them.
//!
//! `csr`, `csc`, `coo`, `bsr` and `dia`, packed or not; also an archive with one dense array alone. Several members are read side by
//! side, each through an archive of its own over the same bytes, so memory follows none of them. What they unpack to is limited.

use super::npy::{Array, Number, at_entry, axes, read_dense};
use crate::counts::{Cell, RowSink};
use crate::error::{Error, Result};
use std::cell::Cell as Shared;
use std::io::{Read, Seek};
use std::rc::Rc;
use zip::ZipArchive;

/// Bytes in any order.
pub(super) trait ReadSeek: Read + Seek {}
impl<T: Read + Seek> ReadSeek for T {}

/// Opens the archive, as often as is asked.
pub(super) type Open<'a> = &'a dyn Fn() -> Result<Box<dyn ReadSeek + 'a>>;

/// Reads a whole archive whose members unpack to no more than `most` bytes.
pub(super) fn read(open: Open<'_>, source: &str, most: u64, sink: &mut impl RowSink) -> Result<()> {
    let n_left = Rc::new(Shared::new(most));
    let archive = || -> Result<Archive<'_>> {
        let zip = ZipArchive::new(open()?).map_err(|error| damaged(source, &error.to_string()))?;
        Ok(Archive { zip, source, most, n_left: Rc::clone(&n_left) })
    };
    let mut first = archive()?;
    let names = first.names();
    if !names.iter().any(|name| name == "format.npy") {
        return match &names[..] {
            [name] => read_dense(first.array(name)?, sink),
            [] => {
                Err(Error::data(source, "the archive holds no NumPy array; save the counts by `scipy.sparse.save_npz`"))
            }
            _ => Err(Error::data(
                source,
                format!(
                    "the archive holds several arrays ({}) and no sparse matrix; save the counts alone",
                    names.join(", ")
                ),
            )),
        };
    }
    let format = first.array("format.npy")?.text()?;
    let mut shape = first.array("shape.npy")?;
    let mut sizes = Vec::new();
    while let Some(size) = shape.next()? {
        sizes.push(size.index().map_err(|message| Error::data(source, format!("shape.npy: {message}")))?);
        if sizes.len() > 1000 {
            return Err(Error::data(source, "shape.npy names more than 1000 axes"));
        }
    }
    drop(shape);
    let sizes = axes(&sizes, source)?;
    let mut matrix = Matrix { source, sizes, cell: Vec::new(), n_read: 0, sink };
    if format != "coo" && matrix.sizes.len() != 2 {
        let message = format!("the matrix has {} axes, and a matrix of format {format} has 2", matrix.sizes.len());
        return Err(Error::data(source, message));
    }
    matrix.declare()?;
    let (mut second, mut third) = (archive()?, archive()?);
    match format.as_str() {
        "csr" | "csc" | "bsr" => {
            let (starts, indices) = (first.array("indptr.npy")?, second.array("indices.npy")?);
            matrix.compressed(starts, indices, third.array("data.npy")?, format == "csc")
        }
        "dia" => matrix.diagonals(first.array("offsets.npy")?, second.array("data.npy")?),
        "coo" => {
            let axes = match matrix.sizes.len() {
                2 if names.iter().any(|name| name == "row.npy") => vec!["row.npy".to_owned(), "col.npy".to_owned()],
                1 => vec!["coords.npy".to_owned()],
                n => (0..n).map(|_| "coords.npy".to_owned()).collect(),
            };
            let mut archives: Vec<Archive<'_>> = axes.iter().map(|_| archive()).collect::<Result<_>>()?;
            let n_axes = axes.len() as u64;
            let mut arrays = Vec::with_capacity(axes.len());
            for (ix, (archive, name)) in archives.iter_mut().zip(&axes).enumerate() {
                let mut array = archive.array(name)?;
                if name == "coords.npy" {
                    // One axis after another, each read on its own.
                    let n = match array.shape[..] {
                        [rows, n] if rows == n_axes && !array.columns_first => n,
                        _ => return Err(matrix.misfit("coords.npy")),
                    };
                    for _ in 0..n.saturating_mul(ix as u64) {
                        array.expect()?;
                    }
                    array.shape = vec![n];
                }
                arrays.push(array);
            }
            matrix.coordinates(arrays, third.array("data.npy")?)
        }
        _ => {
            let message =
                format!("the sparse format is {format:?}, and csr, csc, coo, bsr and dia are known; save it as csr");
            Err(Error::data(source, message))
        }
    }
}

fn damaged(source: &str, detail: &str) -> Error {
    let detail = detail.replace(['\r', '\n'], " ");
    Error::data(source, format!("the archive is cut short or damaged ({detail}); save it again"))
}

/// An archive over bytes of its own.
struct Archive<'a> {
    zip: ZipArchive<Box<dyn ReadSeek + 'a>>,
    source: &'a str,
    most: u64,
    n_left: Rc<Shared<u64>>,
}

type Member<'z, 'a> = Limited<zip::read::ZipFile<'z, Box<dyn ReadSeek + 'a>>>;

impl<'a> Archive<'a> {
    /// The arrays in it.
    fn names(&self) -> Vec<String> {
        let names = self.zip.file_names().filter_map(std::result::Result::ok);
        names.filter(|name| name.ends_with(".npy")).map(std::borrow::Cow::into_owned).collect()
    }

    fn array(&mut self, name: &str) -> Result<Array<Member<'_, 'a>>> {
        let (source, most, n_left) = (self.source, self.most, Rc::clone(&self.n_left));
        let member = self.zip.by_name(name).map_err(|error| match error {
            zip::result::ZipError::FileNotFound => {
                Error::data(source, format!("the archive has no {name}; save the matrix by `scipy.sparse.save_npz`"))
            }
            error => damaged(source, &format!("{name}: {error}")),
        })?;
        Array::open(Limited { reader: member, most, n_left }, format!("{source} ({name})"))
    }
}

/// Bytes of a member, as many as may still come.
struct Limited<R> {
    reader: R,
    most: u64,
    n_left: Rc<Shared<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.reader.read(buffer)?;
        match self.n_left.get().checked_sub(n as u64) {
            Some(left) => self.n_left.set(left),
            None => return Err(super::compression::too_large(self.most)),
        }
        Ok(n)
    }
}

/// The matrix that is being read.
struct Matrix<'a, 's, S> {
    source: &'a str,
    sizes: Vec<u32>,
    /// The entry at hand.
    cell: Vec<u32>,
    n_read: u64,
    sink: &'s mut S,
}

impl<S: RowSink> Matrix<'_, '_, S> {
    fn declare(&mut self) -> Result<()> {
        if self.sizes.is_empty() {
            return Err(Error::data(self.source, "the matrix has no axes; save a matrix of counts"));
        }
        for &size in &self.sizes {
            self.sink.index_column(None, 0, Some(size));
        }
        Ok(())
    }

    fn misfit(&self, name: &str) -> Error {
        Error::data(
            self.source,
            format!("{name} does not fit the shape of the matrix or the other arrays; save it again"),
        )
    }

    /// Hands on the entry at hand, unless it is zero.
    fn push(&mut self, number: Number) -> Result<()> {
        self.n_read += 1;
        if number.is_zero() {
            return Ok(());
        }
        let count = number.count(self.sink.takes_fractions());
        let count = count.map_err(|message| at_entry(Error::data(self.source, message), &self.cell))?;
        let cells = self.cell.iter().copied().map(Cell::Index);
        self.sink.push(self.n_read, cells, count).map_err(|error| at_entry(error, &self.cell))
    }

    /// An index below `size`.
    fn index(&self, number: Number, size: u32, name: &str) -> Result<u32> {
        let index = number.index().and_then(|index| match u32::try_from(index) {
            Ok(index) if index < size => Ok(index),
            _ => Err(format!("index `{index}` is beyond the {size} of its axis, counted from 0")),
        });
        index.map_err(|message| Error::data(self.source, format!("{name}: {message}; save the matrix again")))
    }

    /// Rows (or columns) one after another, the entries or blocks of each between two positions.
    fn compressed<R: Read>(
        &mut self,
        mut starts: Array<R>,
        mut indices: Array<R>,
        mut data: Array<R>,
        columns_first: bool,
    ) -> Result<()> {
        let n = match indices.shape[..] {
            [n] => n,
            _ => return Err(self.misfit("indices.npy")),
        };
        let (height, width) = match data.shape[..] {
            [n_data] if n_data == n => (1, 1),
            [n_data, height @ 1..=0xffff_ffff, width @ 1..=0xffff_ffff] if n_data == n && !data.columns_first => {
                (height as u32, width as u32)
            }
            _ => return Err(self.misfit("data.npy")),
        };
        let (major, minor) = if columns_first { (1, 0) } else { (0, 1) };
        let (n_major, n_minor) = (self.sizes[major] / height, self.sizes[minor] / width);
        if n_major * height != self.sizes[major] || n_minor * width != self.sizes[minor] {
            return Err(self.misfit("data.npy"));
        }
        if starts.shape != [u64::from(n_major) + 1] {
            return Err(self.misfit("indptr.npy"));
        }
        let position = |number: Number| {
            number.index().map_err(|message| Error::data(self.source, format!("indptr.npy: {message}")))
        };
        let mut start = position(starts.expect()?)?;
        if start != 0 {
            return Err(self.misfit("indptr.npy"));
        }
        self.cell = vec![0; 2];
        for row in 0..n_major {
            let position = |number: Number| {
                number.index().map_err(|message| Error::data(self.source, format!("indptr.npy: {message}")))
            };
            let end = position(starts.expect()?)?;
            if end < start || end > n {
                return Err(self.misfit("indptr.npy"));
            }
            for _ in start..end {
                let column = self.index(indices.expect()?, n_minor, "indices.npy")?;
                for down in 0..height {
                    for right in 0..width {
                        self.cell[major] = row * height + down;
                        self.cell[minor] = column * width + right;
                        self.push(data.expect()?)?;
                    }
                }
            }
            start = end;
        }
        if start != n {
            return Err(self.misfit("indptr.npy"));
        }
        starts.finish()?;
        indices.finish()?;
        data.finish()
    }

    /// Diagonals: the entry in column j of a line of `data` is that of column j of the matrix.
    fn diagonals<R: Read>(&mut self, mut offsets: Array<R>, mut data: Array<R>) -> Result<()> {
        let n_columns = match (&offsets.shape[..], &data.shape[..]) {
            ([n_offsets], [n_data, n_columns]) if n_offsets == n_data && !data.columns_first => *n_columns,
            _ => return Err(self.misfit("data.npy")),
        };
        self.cell = vec![0; 2];
        let mut seen = std::collections::HashSet::new();
        while let Some(offset) = offsets.next()? {
            let offset =
                offset.offset().map_err(|message| Error::data(self.source, format!("offsets.npy: {message}")))?;
            if !seen.insert(offset) {
                return Err(self.misfit("offsets.npy"));
            }
            for column in 0..n_columns {
                let number = data.expect()?;
                let row = i64::try_from(column).ok().and_then(|column| column.checked_sub(offset));
                let row = row.and_then(|row| u32::try_from(row).ok()).filter(|&row| row < self.sizes[0]);
                if let Some(row) = row
                    && column < u64::from(self.sizes[1])
                {
                    self.cell = vec![row, column as u32];
                    self.push(number)?;
                }
            }
        }
        offsets.finish()?;
        data.finish()
    }

    /// Entries with an index for each axis.
    fn coordinates<R: Read>(&mut self, mut indices: Vec<Array<R>>, mut data: Array<R>) -> Result<()> {
        if data.shape.len() != 1 || indices.iter().any(|array| array.shape != data.shape) {
            return Err(self.misfit("data.npy"));
        }
        while let Some(number) = data.next()? {
            self.cell.clear();
            for (axis, array) in indices.iter_mut().enumerate() {
                let index = array.expect()?;
                let index = self.index(index, self.sizes[axis], &format!("the indices of axis {axis}"))?;
                self.cell.push(index);
            }
            self.push(number)?;
        }
        data.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::npy::tests::npy;
    use super::*;
    use crate::counts::{Dataset, DatasetBuilder, Labels};
    use std::io::{Cursor, Write};
    use zip::write::SimpleFileOptions;
    use zip::{CompressionMethod, ZipWriter};

    fn npz(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in members {
            zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn read_limited(bytes: &[u8], most: u64) -> Result<Dataset> {
        let mut builder = DatasetBuilder::new("a.npz");
        let open = || -> Result<Box<dyn ReadSeek + '_>> { Ok(Box::new(Cursor::new(bytes))) };
        read(&open, "a.npz", most, &mut builder).map(|()| builder.finish())
    }

    fn read_all(bytes: &[u8]) -> Result<Dataset> {
        read_limited(bytes, 1 << 20)
    }

    fn format(name: &str) -> (&'static str, Vec<u8>) {
        ("format.npy", npy("|S3", false, "()", name.as_bytes()))
    }

    fn i4(name: &'static str, values: &[i32]) -> (&'static str, Vec<u8>) {
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        (name, npy("<i4", false, &format!("({},)", values.len()), &data))
    }

    fn bytes(name: &'static str, shape: &str, data: &[u8]) -> (&'static str, Vec<u8>) {
        (name, npy("|u1", false, shape, data))
    }

    fn csr() -> Vec<(&'static str, Vec<u8>)> {
        vec![
            i4("indices.npy", &[0, 2, 1]),
            i4("indptr.npy", &[0, 2, 2, 3]),
            format("csr"),
            i4("shape.npy", &[3, 4]),
            bytes("data.npy", "(3,)", &[5, 1, 2]),
        ]
    }

    fn cells(data: &Dataset) -> Vec<(u32, u32, u64)> {
        let mut cells: Vec<_> = (0..data.n_rows())
            .map(|row| (data.values[0].at(row), data.values[1].at(row), data.counts.at(row)))
            .collect();
        cells.sort_unstable();
        cells
    }

    #[track_caller]
    fn assert_refused(members: &[(&str, Vec<u8>)], wanted: &str) {
        let message = read_all(&npz(members, CompressionMethod::Stored)).expect_err(wanted).to_string();
        assert!(message.starts_with("a.npz") && message.contains(wanted) && !message.contains('\n'), "{message}");
    }

    #[test]
    fn all_kinds_of_sparse_matrices_are_read() {
        for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
            let data = read_all(&npz(&csr(), method)).unwrap();
            assert_eq!(cells(&data), [(0, 0, 5), (0, 2, 1), (2, 1, 2)]);
            assert_eq!(data.columns[1].labels, Labels::Indexed { size: 4, first: 0 });
        }
        let mut csc = csr();
        (csc[2], csc[3]) = (format("csc"), i4("shape.npy", &[4, 3]));
        assert_eq!(cells(&read_all(&npz(&csc, CompressionMethod::Stored)).unwrap()), [(0, 0, 5), (1, 2, 2), (2, 0, 1)]);
        let coo = [
            i4("row.npy", &[0, 2, 2]),
            i4("col.npy", &[1, 0, 0]),
            format("coo"),
            i4("shape.npy", &[3, 2]),
            bytes("data.npy", "(3,)", &[5, 1, 1]),
        ];
        let data = read_all(&npz(&coo, CompressionMethod::Deflated)).unwrap();
        assert_eq!((cells(&data), data.warnings.len()), (vec![(0, 1, 5), (2, 0, 2)], 1));
        let bsr = [
            i4("indices.npy", &[1]),
            i4("indptr.npy", &[0, 0, 1]),
            format("bsr"),
            i4("shape.npy", &[4, 4]),
            bytes("data.npy", "(1, 2, 2)", &[1, 0, 3, 4]),
        ];
        let data = read_all(&npz(&bsr, CompressionMethod::Stored)).unwrap();
        assert_eq!(cells(&data), [(2, 2, 1), (3, 2, 3), (3, 3, 4)]);
        let dia = [
            i4("offsets.npy", &[-1, 1]),
            format("dia"),
            i4("shape.npy", &[3, 3]),
            bytes("data.npy", "(2, 3)", &[1, 2, 9, 9, 3, 4]),
        ];
        let data = read_all(&npz(&dia, CompressionMethod::Stored)).unwrap();
        assert_eq!(cells(&data), [(0, 1, 3), (1, 0, 1), (1, 2, 4), (2, 1, 2)]);
        let deep = [
            ("coords.npy", npy("<i4", false, "(3, 2)", &[0u8, 1, 1, 0, 2, 0].map(|i| [i, 0, 0, 0]).concat())),
            format("coo"),
            i4("shape.npy", &[2, 2, 3]),
            bytes("data.npy", "(2,)", &[7, 8]),
        ];
        let data = read_all(&npz(&deep, CompressionMethod::Stored)).unwrap();
        assert_eq!(data.values, [[0, 1], [1, 0], [2, 0]]);
    }

    #[test]
    fn one_dense_array_alone_is_read() {
        let data = read_all(&npz(&[bytes("arr_0.npy", "(2, 2)", &[0, 5, 0, 0])], CompressionMethod::Deflated)).unwrap();
        assert_eq!(cells(&data), [(0, 1, 5)]);
        assert_refused(&[bytes("a.npy", "(1,)", &[1]), bytes("b.npy", "(1,)", &[1])], "several arrays (a.npy, b.npy)");
        assert_refused(&[("a.txt", b"x".to_vec())], "holds no NumPy array");
        assert_refused(&[], "holds no NumPy array");
    }

    #[test]
    fn arrays_that_do_not_fit_are_refused() {
        let with = |at: usize, member: (&'static str, Vec<u8>)| {
            let mut members = csr();
            members[at] = member;
            members
        };
        assert_refused(&with(2, format("lil")), "the sparse format is \"lil\"");
        assert_refused(&with(2, i4("format.npy", &[1])), "this is no short text");
        assert_refused(&with(0, i4("indices.npy", &[0, 4, 1])), "indices.npy: index `4` is beyond the 4");
        assert_refused(&with(0, i4("indices.npy", &[0, -1, 1])), "indices.npy: index `-1` is negative");
        assert_refused(&with(0, i4("indices.npy", &[0, 1])), "data.npy does not fit");
        assert_refused(&with(1, i4("indptr.npy", &[0, 2, 3])), "indptr.npy does not fit");
        assert_refused(&with(1, i4("indptr.npy", &[0, 2, 1, 3])), "indptr.npy does not fit");
        assert_refused(&with(1, i4("indptr.npy", &[0, 2, 2, 2])), "indptr.npy does not fit");
        assert_refused(&with(1, i4("indptr.npy", &[0, 2, 2, 9])), "indptr.npy does not fit");
        assert_refused(&with(1, i4("indptr.npy", &[1, 2, 2, 3])), "indptr.npy does not fit");
        assert_refused(&with(3, i4("shape.npy", &[3, 4, 5])), "the matrix has 3 axes");
        assert_refused(&with(3, i4("shape.npy", &[-3, 4])), "shape.npy: index `-3` is negative");
        assert_refused(&with(3, bytes("other.npy", "(1,)", &[1])), "the archive has no shape.npy");
        assert_refused(&with(4, ("data.npy", b"x".to_vec())), "(data.npy): this is no NumPy array");
        let negative = ("data.npy", npy("|i1", false, "(3,)", &[1, 0xff, 1]));
        assert_refused(&with(4, negative), "entry [0, 2]: count `-1` is negative");
        let promising = ("data.npy", npy("|u1", false, "(4000000000,)", &[1]));
        assert_refused(&with(4, promising), "data.npy does not fit");
    }

    #[test]
    fn an_archive_cut_short_anywhere_is_refused() {
        let whole = npz(&csr(), CompressionMethod::Deflated);
        for length in 0..whole.len() {
            assert!(read_all(&whole[..length]).is_err(), "cut at {length}");
        }
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x15;
            let _ = read_all(&bad);
        }
    }

    #[test]
    fn what_unpacks_to_more_than_allowed_is_refused() {
        let bomb = npz(&[bytes("a.npy", "(3000000,)", &vec![0; 3_000_000])], CompressionMethod::Deflated);
        assert!(bomb.len() < 10_000);
        let message = read_limited(&bomb, 1 << 20).unwrap_err().to_string();
        assert!(message.contains("unpacks to more than") && message.contains("--max-unpacked"), "{message}");
        assert!(read_limited(&bomb, 1 << 22).is_ok());
    }
}
