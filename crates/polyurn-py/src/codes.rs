//! Codes of values in NumPy arrays of any integer type, read where they are.

use numpy::ndarray::ArrayView1;
use numpy::{Element, PyArray1, PyArrayMethods, PyReadonlyArray1};
use polyurn::counts::MISSING;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// One column of codes, held while it is read.
pub enum CodeArray<'py> {
    /// As pandas keeps few categories.
    I8(PyReadonlyArray1<'py, i8>),
    /// More of them.
    I16(PyReadonlyArray1<'py, i16>),
    /// As Arrow and SciPy index.
    I32(PyReadonlyArray1<'py, i32>),
    /// As NumPy indexes.
    I64(PyReadonlyArray1<'py, i64>),
    /// Bytes, and truth values.
    U8(PyReadonlyArray1<'py, u8>),
    /// Of images, say.
    U16(PyReadonlyArray1<'py, u16>),
    /// Our own.
    U32(PyReadonlyArray1<'py, u32>),
    /// Numbers of a byte, and the code of each number that there could be.
    LookedU8(PyReadonlyArray1<'py, u8>, Vec<u32>),
    /// The same of two bytes.
    LookedU16(PyReadonlyArray1<'py, u16>, Vec<u32>),
}

impl<'py> CodeArray<'py> {
    /// Takes up an array with one axis, or a pair: such an array of short numbers, and the code of each number.
    ///
    /// # Errors
    /// When it is none of integers.
    pub fn new(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok((numbers, table)) = array.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>() {
            return CodeArray::looked(&numbers, &CodeArray::new(&table)?).ok_or_else(|| {
                PyTypeError::new_err("codes: expected an array of bytes or of pairs of them, and a table")
            });
        }
        CodeArray::find(array).ok_or_else(|| PyTypeError::new_err("codes: expected an array of integers with one axis"))
    }

    fn looked(numbers: &Bound<'py, PyAny>, table: &CodeArray<'py>) -> Option<Self> {
        let table = table.codes();
        let mut table: Vec<u32> = (0..table.len()).map(|row| table.at(row).unwrap_or(MISSING)).collect();
        // Now there is one of each number.
        let mut whole = |n: usize| {
            table.resize(n, MISSING);
            std::mem::take(&mut table)
        };
        array_of(numbers)
            .map(|numbers| CodeArray::LookedU8(numbers, whole(1 << 8)))
            .or_else(|| array_of(numbers).map(|numbers| CodeArray::LookedU16(numbers, whole(1 << 16))))
    }

    /// The same as [`CodeArray::new`] of an array, if it is one.
    pub fn find(array: &Bound<'py, PyAny>) -> Option<Self> {
        array_of(array)
            .map(CodeArray::I8)
            .or_else(|| array_of(array).map(CodeArray::I16))
            .or_else(|| array_of(array).map(CodeArray::I32))
            .or_else(|| array_of(array).map(CodeArray::I64))
            .or_else(|| array_of(array).map(CodeArray::U8))
            .or_else(|| array_of(array).map(CodeArray::U16))
            .or_else(|| array_of(array).map(CodeArray::U32))
    }

    /// The codes, which can be read without the interpreter's lock.
    pub fn codes(&self) -> Codes<'_> {
        match self {
            CodeArray::I8(array) => Codes::I8(array.as_array()),
            CodeArray::I16(array) => Codes::I16(array.as_array()),
            CodeArray::I32(array) => Codes::I32(array.as_array()),
            CodeArray::I64(array) => Codes::I64(array.as_array()),
            CodeArray::U8(array) => Codes::U8(array.as_array()),
            CodeArray::U16(array) => Codes::U16(array.as_array()),
            CodeArray::U32(array) => Codes::U32(array.as_array()),
            CodeArray::LookedU8(numbers, table) => Codes::LookedU8(numbers.as_array(), table),
            CodeArray::LookedU16(numbers, table) => Codes::LookedU16(numbers.as_array(), table),
        }
    }
}

/// An array with one axis of this type, if it is one.
pub fn array_of<'py, T: Element>(array: &Bound<'py, PyAny>) -> Option<PyReadonlyArray1<'py, T>> {
    Some(array.cast::<PyArray1<T>>().ok()?.readonly())
}

/// The codes of a column, whatever lies between one and the next. A negative one, or the largest of 32 bits, is a missing value.
#[derive(Clone, Copy)]
pub enum Codes<'a> {
    /// See [`CodeArray`].
    I8(ArrayView1<'a, i8>),
    /// See [`CodeArray`].
    I16(ArrayView1<'a, i16>),
    /// See [`CodeArray`].
    I32(ArrayView1<'a, i32>),
    /// See [`CodeArray`].
    I64(ArrayView1<'a, i64>),
    /// See [`CodeArray`].
    U8(ArrayView1<'a, u8>),
    /// See [`CodeArray`].
    U16(ArrayView1<'a, u16>),
    /// See [`CodeArray`].
    U32(ArrayView1<'a, u32>),
    /// See [`CodeArray`].
    LookedU8(ArrayView1<'a, u8>, &'a [u32]),
    /// See [`CodeArray`].
    LookedU16(ArrayView1<'a, u16>, &'a [u32]),
}

/// Does the same with codes, or numbers in their place, of any type.
macro_rules! with_view {
    ($codes:expr, $view:ident => $job:expr) => {
        match $codes {
            Codes::I8($view) => $job,
            Codes::I16($view) => $job,
            Codes::I32($view) => $job,
            Codes::I64($view) => $job,
            Codes::U8($view) => $job,
            Codes::U16($view) => $job,
            Codes::U32($view) => $job,
            Codes::LookedU8($view, _) => $job,
            Codes::LookedU16($view, _) => $job,
        }
    };
}

impl Codes<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        with_view!(self, view => view.len())
    }

    /// The code of a row, [`MISSING`] where there is none; `None` where it is too large for one.
    #[inline]
    pub fn at(&self, row: usize) -> Option<u32> {
        let code = with_view!(self, view => signed(*view.get(row)?));
        if let Codes::LookedU8(_, table) | Codes::LookedU16(_, table) = self {
            return Some(table[code as usize]);
        }
        match u32::try_from(code) {
            Ok(code) => Some(code),
            Err(_) if code < 0 => Some(MISSING),
            Err(_) => None,
        }
    }
}

/// A code of any width.
#[inline]
fn signed(code: impl Into<i64>) -> i64 {
    code.into()
}
