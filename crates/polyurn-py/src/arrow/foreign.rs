//! Arrow's C data and stream interfaces: structs that another library fills, and slices of what they point at.
//!
//! The only unsafe code of the package. What it relies on is what the interface demands of a producer:
//!
//! - The capsule `arrow_array_stream` holds an `ArrowArrayStream` that is valid until somebody moves it out, which [`Stream::take`]
//!   does by clearing the original's `release`. After that nobody but us calls it, and we release it once.
//! - `get_schema` and `get_next` that return 0 fill the struct that they are handed; its pointers are valid until its own
//!   `release` is called, which we do when it is dropped, once. Children and dictionaries belong to their parent.
//! - The buffers of an array are as long as its format, length and offset demand, and nobody writes to them. So slices of them
//!   may be read from any thread as long as the array is held; they borrow from the [`Batch`].
//!
//! What can be checked is: lengths and offsets that are negative, numbers of buffers and children, null pointers, alignment, offsets of
//! texts against the length of their buffer, UTF-8. Types that are not listed in [`Field::is_known`] are never looked into.
#![allow(unsafe_code, reason = "structs of the C interface; see above")]

use polyurn::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

#[repr(C)]
struct RawSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut RawSchema,
    dictionary: *mut RawSchema,
    release: Option<unsafe extern "C" fn(*mut RawSchema)>,
    private_data: *mut c_void,
}

#[repr(C)]
#[derive(Debug)]
struct RawArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut RawArray,
    dictionary: *mut RawArray,
    release: Option<unsafe extern "C" fn(*mut RawArray)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct RawStream {
    get_schema: Option<unsafe extern "C" fn(*mut RawStream, *mut RawSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut RawStream, *mut RawArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut RawStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut RawStream)>,
    private_data: *mut c_void,
}

impl Drop for RawSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: it was filled by a producer and not released: a released one has no `release`.
            unsafe { release(self) }
        }
    }
}

impl Drop for RawArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as above.
            unsafe { release(self) }
        }
    }
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as above.
            unsafe { release(self) }
        }
    }
}

/// A stream of batches, which is ours.
pub struct Stream(Box<RawStream>);

// SAFETY: the interface lets a stream be used from any thread, one at a time, and there is one owner.
unsafe impl Send for Stream {}

impl Stream {
    /// Moves the stream out of its capsule.
    ///
    /// # Errors
    /// A capsule that holds something else, or whose stream somebody has taken before.
    pub fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<RawStream>().as_ptr();
        // SAFETY: a capsule of that name points at such a struct. Reading it makes a second owner, so the first one is told that it
        // has nothing to release.
        let stream = unsafe {
            if (*pointer).release.is_none() {
                return Err(PyValueError::new_err(
                    "this Arrow stream has been read already; a stream can be read once",
                ));
            }
            let stream = Box::new(ptr::read(pointer));
            (*pointer).release = None;
            stream
        };
        Ok(Stream(stream))
    }

    /// The columns that it will have.
    ///
    /// # Errors
    /// What the producer says, and a stream of something else than tables.
    pub fn fields(&mut self) -> Result<Vec<Field>> {
        let mut schema = RawSchema {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        };
        let get = self.0.get_schema.ok_or_else(|| fault("the stream has no schema"))?;
        // SAFETY: the stream is not released, and the schema may be written to.
        let code = unsafe { get(&mut *self.0, &mut schema) };
        self.check(code)?;
        // SAFETY: the producer has filled it.
        let whole = unsafe { Field::read(&schema, 0)? };
        if whole.format != "+s" {
            return Err(fault("a stream of batches is needed, whose columns have names"));
        }
        Ok(whole.children)
    }

    /// The next batch, of so many columns; none at the end.
    ///
    /// # Errors
    /// What the producer says.
    pub fn next_batch(&mut self, n_columns: usize) -> Result<Option<Batch>> {
        let mut array = RawArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        };
        let get = self.0.get_next.ok_or_else(|| fault("the stream has no batches"))?;
        // SAFETY: the stream is not released, and the array may be written to.
        let code = unsafe { get(&mut *self.0, &mut array) };
        self.check(code)?;
        if array.release.is_none() {
            return Ok(None);
        }
        if array.n_children != n_columns as i64 || array.length < 0 || array.offset < 0 {
            return Err(fault("a batch does not have the columns of its schema"));
        }
        if array.null_count > 0 {
            return Err(fault("a batch has rows that are null as a whole"));
        }
        Ok(Some(Batch(array)))
    }

    fn check(&mut self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: it may be asked for after a call that failed, and its text is valid until the next call.
        let said = self.0.get_last_error.map(|get| unsafe { text_at(get(&mut *self.0)) });
        Err(fault(&format!(
            "the Arrow stream fails: {}",
            said.filter(|said| !said.is_empty()).unwrap_or("no reason given".into())
        )))
    }
}

/// A column of the schema.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    format: String,
    children: Vec<Field>,
    dictionary: Option<Box<Field>>,
}

impl Field {
    /// # Safety
    /// The producer has filled the schema, and it is not released.
    unsafe fn read(schema: &RawSchema, depth: usize) -> Result<Self> {
        let mut children = Vec::new();
        // What is deeper is no column of a table; nobody looks at it.
        if depth == 0 {
            for ix in 0..usize::try_from(schema.n_children).unwrap_or(0) {
                // SAFETY: there are that many children, filled like their parent.
                children.push(unsafe { Field::read(&**schema.children.add(ix), depth + 1)? });
            }
        }
        // SAFETY: null or filled like its parent.
        let dictionary = unsafe { schema.dictionary.as_ref() };
        let dictionary = match dictionary.filter(|_| depth < 3) {
            // SAFETY: as above.
            Some(dictionary) => Some(Box::new(unsafe { Field::read(dictionary, depth + 1)? })),
            None => None,
        };
        // SAFETY: both are null or texts of the schema.
        let (name, format) = unsafe { (text_at(schema.name), text_at(schema.format)) };
        Ok(Field { name, format, children, dictionary })
    }

    /// Whether its values are of a type that is read here.
    pub fn is_known(&self) -> bool {
        match &self.dictionary {
            Some(values) => "cCsSiIlL".contains(&self.format) && values.dictionary.is_none() && values.is_known(),
            None => matches!(
                self.format.as_str(),
                "n" | "b" | "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L" | "f" | "g" | "u" | "U" | "vu"
            ),
        }
    }

    /// Its kind of numbers in NumPy's letters: truth values, integers with or without a sign, floats; empty where it holds none.
    pub fn kind_of_numbers(&self) -> &'static str {
        match (&self.dictionary, self.format.as_str()) {
            (None, "b") => "b",
            (None, "c" | "s" | "i" | "l") => "i",
            (None, "C" | "S" | "I" | "L") => "u",
            (None, "f" | "g") => "f",
            _ => "",
        }
    }
}

/// A batch of rows.
#[derive(Debug)]
pub struct Batch(RawArray);

// SAFETY: nobody writes to an array after it was produced, and the interface lets it be released from any thread.
unsafe impl Send for Batch {}
// SAFETY: as above.
unsafe impl Sync for Batch {}

impl Batch {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.length as usize
    }

    /// The rows of a column.
    ///
    /// # Errors
    /// A type that is not read here, and arrays that are not as the interface demands.
    pub fn chunk<'a>(&'a self, field: &Field, column: usize) -> Result<Chunk<'a>> {
        if !field.is_known() {
            let message = format!(
                "column {}: values of Arrow type {:?} are not read here; make it one of strings or categories",
                field.name, field.format
            );
            return Err(fault(&message));
        }
        if column as i64 >= self.0.n_children {
            return Err(fault("there is no such column"));
        }
        // SAFETY: the batch has that many children, and they live as long as it does.
        let child = unsafe { &**self.0.children.add(column) };
        // The offset of a batch is one of rows of its columns.
        Chunk::read(field, child, self.0.offset as usize, Some(self.len()))
    }
}

/// Rows of a column in one batch, or the values of a dictionary.
#[derive(Debug)]
pub struct Chunk<'a> {
    /// How many.
    pub len: usize,
    /// Bits that say which rows are valid, and where they start.
    validity: Option<(&'a [u8], usize)>,
    /// What they are.
    pub values: Values<'a>,
}

/// Addresses of buffers, and the first value: two dictionaries that share them are one.
pub type Place = (Vec<usize>, i64);

/// Values by their type, from the first row of the chunk on.
#[derive(Debug)]
#[allow(missing_docs, reason = "they are called what they are")]
pub enum Values<'a> {
    Null,
    /// Bits, and where they start.
    Bool(&'a [u8], usize),
    I8(&'a [i8]),
    I16(&'a [i16]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    U8(&'a [u8]),
    U16(&'a [u16]),
    U32(&'a [u32]),
    U64(&'a [u64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    /// Where each text starts, and all of them.
    Text(&'a [i32], &'a [u8]),
    LargeText(&'a [i64], &'a [u8]),
    /// Sixteen bytes for each text, and what long ones point at.
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
    /// Indices, what they point at, and where that is.
    Dictionary {
        keys: Box<Values<'a>>,
        values: Box<Chunk<'a>>,
        place: Place,
    },
}

impl<'a> Chunk<'a> {
    /// Whether a row has a value.
    #[inline]
    pub fn is_valid(&self, row: usize) -> bool {
        !matches!(self.values, Values::Null) && self.validity.is_none_or(|(bits, first)| bit(bits, first + row))
    }

    /// `skipped` rows come before those of the batch; without a length it is that of the array.
    fn read(field: &Field, array: &'a RawArray, skipped: usize, len: Option<usize>) -> Result<Self> {
        let (own, offset) = (usize::try_from(array.length), usize::try_from(array.offset));
        let (Ok(own), Ok(offset)) = (own, offset) else { return Err(fault("a column has a negative length")) };
        let len = len.unwrap_or(own);
        if skipped + len > own {
            return Err(fault("a column is shorter than its batch"));
        }
        let first = offset + skipped;
        let buffers = Buffers { array, first, len };
        let has_validity = array.null_count != 0 && field.format != "n";
        let validity = match has_validity.then(|| buffers.at(0)).transpose()? {
            Some(pointer) if !pointer.is_null() => Some((buffers.slice::<u8>(0, (first + len).div_ceil(8), 0)?, first)),
            _ => None,
        };
        let values = match &field.dictionary {
            None => buffers.values(&field.format)?,
            Some(values) => {
                // SAFETY: null, or filled like its parent, with which it lives.
                let dictionary =
                    unsafe { array.dictionary.as_ref() }.ok_or_else(|| fault("a dictionary is not there"))?;
                let own = Buffers { array: dictionary, first: 0, len: 0 };
                // All batches are held, so what lies at the same address is the same.
                let places = (0..dictionary.n_buffers as usize).map(|ix| own.at(ix).map(|pointer| pointer.addr()));
                let place = places.collect::<Result<Vec<usize>>>()?;
                Values::Dictionary {
                    keys: Box::new(buffers.values(&field.format)?),
                    values: Box::new(Chunk::read(values, dictionary, 0, None)?),
                    place: (place, dictionary.offset),
                }
            }
        };
        Ok(Chunk { len, validity, values })
    }
}

/// The buffers of an array, from its first row on.
struct Buffers<'a> {
    array: &'a RawArray,
    first: usize,
    len: usize,
}

impl<'a> Buffers<'a> {
    fn values(&self, format: &str) -> Result<Values<'a>> {
        let (first, len) = (self.first, self.len);
        Ok(match format {
            "n" => Values::Null,
            "b" => Values::Bool(self.slice(1, (first + len).div_ceil(8), 0)?, first),
            "c" => Values::I8(self.slice(1, len, first)?),
            "C" => Values::U8(self.slice(1, len, first)?),
            "s" => Values::I16(self.slice(1, len, first)?),
            "S" => Values::U16(self.slice(1, len, first)?),
            "i" => Values::I32(self.slice(1, len, first)?),
            "I" => Values::U32(self.slice(1, len, first)?),
            "l" => Values::I64(self.slice(1, len, first)?),
            "L" => Values::U64(self.slice(1, len, first)?),
            "f" => Values::F32(self.slice(1, len, first)?),
            "g" => Values::F64(self.slice(1, len, first)?),
            // A column without rows may have no offsets at all.
            "u" | "U" | "vu" if len == 0 => Values::Views(&[], Vec::new()),
            "u" => {
                let offsets: &[i32] = self.slice(1, len + 1, first)?;
                let end = usize::try_from(offsets[len]).map_err(|_| fault("an offset of a text is negative"))?;
                Values::Text(offsets, self.slice(2, end, 0)?)
            }
            "U" => {
                let offsets: &[i64] = self.slice(1, len + 1, first)?;
                let end = usize::try_from(offsets[len]).map_err(|_| fault("an offset of a text is negative"))?;
                Values::LargeText(offsets, self.slice(2, end, 0)?)
            }
            "vu" => {
                // Bits, views, any number of buffers, and how long each of those is.
                let n_buffers = usize::try_from(self.array.n_buffers).unwrap_or(0);
                let n = n_buffers.checked_sub(3).ok_or_else(|| fault("a column of texts has too few buffers"))?;
                let lengths: &[i64] = self.slice(n + 2, n, 0)?;
                let long = |(ix, &length): (usize, &i64)| {
                    let length =
                        usize::try_from(length).map_err(|_| fault("a buffer of texts has a negative length"))?;
                    self.slice(ix + 2, length, 0)
                };
                let long = lengths.iter().enumerate().map(long).collect::<Result<_>>()?;
                Values::Views(self.slice(1, len, first)?, long)
            }
            _ => return Err(fault("a type that is not read here")),
        })
    }

    /// Where a buffer is.
    fn at(&self, buffer: usize) -> Result<*const c_void> {
        if self.array.buffers.is_null() || buffer as i64 >= self.array.n_buffers {
            return Err(fault("a column has too few buffers"));
        }
        // SAFETY: there are that many pointers.
        Ok(unsafe { *self.array.buffers.add(buffer) })
    }

    /// So many values of a buffer, from one of them on. Private, and asked for only with the type and the length that the format of the
    /// array gives its buffers.
    fn slice<T: Plain>(&self, buffer: usize, len: usize, from: usize) -> Result<&'a [T]> {
        if len == 0 {
            return Ok(&[]);
        }
        let pointer = self.at(buffer)?.cast::<T>();
        if pointer.is_null() {
            return Err(fault("a buffer is not there"));
        }
        if !pointer.is_aligned() {
            return Err(fault("a buffer is not aligned"));
        }
        // SAFETY: the buffer has at least `from + len` values of this type, any bits of which are one; it lives as long as the array,
        // and nobody writes to it.
        Ok(unsafe { std::slice::from_raw_parts(pointer.add(from), len) })
    }
}

/// Types of which all bits are values.
trait Plain: Copy {}
macro_rules! plain {
    ($($kind:ty),*) => { $(impl Plain for $kind {})* };
}
plain!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, [u8; 16]);

impl Values<'_> {
    /// A text, if these are such.
    ///
    /// # Errors
    /// When it is no UTF-8, or lies outside of its buffer.
    pub fn text(&self, row: usize) -> Result<Option<&str>> {
        let bytes = match self {
            Values::Text(offsets, data) => {
                part(data, i64::from(offsets[row]), i64::from(offsets[row + 1]) - i64::from(offsets[row]))
            }
            Values::LargeText(offsets, data) => part(data, offsets[row], offsets[row + 1].wrapping_sub(offsets[row])),
            Values::Views(views, long) => {
                let view = &views[row];
                let number = |at: usize| i32::from_ne_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]);
                match number(0) {
                    len @ 0..=12 => view.get(4..4 + len as usize),
                    len => {
                        let data = usize::try_from(number(8)).ok().and_then(|buffer| long.get(buffer));
                        data.and_then(|data| part(data, number(12).into(), len.into()))
                    }
                }
            }
            _ => return Ok(None),
        };
        let bytes = bytes.ok_or_else(|| fault("a text lies outside of its buffer"))?;
        std::str::from_utf8(bytes).map(Some).map_err(|_| fault("a text is no UTF-8"))
    }

    /// A truth value, if these are such.
    pub fn truth(&self, row: usize) -> Option<bool> {
        match self {
            Values::Bool(bits, first) => Some(bit(bits, first + row)),
            _ => None,
        }
    }
}

fn part(data: &[u8], from: i64, len: i64) -> Option<&[u8]> {
    let (from, len) = (usize::try_from(from).ok()?, usize::try_from(len).ok()?);
    data.get(from..from.checked_add(len)?)
}

#[inline]
fn bit(bits: &[u8], at: usize) -> bool {
    bits[at / 8] >> (at % 8) & 1 == 1
}

/// # Safety
/// The pointer is null, or at a text that ends with a zero.
unsafe fn text_at(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: see above.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn fault(message: &str) -> Error {
    Error::data("table", message)
}
