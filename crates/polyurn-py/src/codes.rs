//! Codes of values in NumPy arrays of any integer type, read where they are.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use polyurn::counts::MISSING;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

/// One column of codes. A negative code, or the largest of 32 bits, is a missing value.
pub enum Codes<'py> {
    /// As pandas keeps few categories.
    I8(PyReadonlyArray1<'py, i8>),
    /// More of them.
    I16(PyReadonlyArray1<'py, i16>),
    /// As Arrow and SciPy index.
    I32(PyReadonlyArray1<'py, i32>),
    /// As NumPy indexes.
    I64(PyReadonlyArray1<'py, i64>),
    /// Bytes.
    U8(PyReadonlyArray1<'py, u8>),
    /// Our own.
    U32(PyReadonlyArray1<'py, u32>),
}

/// Does the same with an array of any type.
macro_rules! with_array {
    ($codes:expr, $array:ident => $job:expr) => {
        match $codes {
            Codes::I8($array) => $job,
            Codes::I16($array) => $job,
            Codes::I32($array) => $job,
            Codes::I64($array) => $job,
            Codes::U8($array) => $job,
            Codes::U32($array) => $job,
        }
    };
}

impl<'py> Codes<'py> {
    /// Takes up an array with one axis.
    ///
    /// # Errors
    /// When it is none of integers.
    pub fn new(array: &Bound<'py, PyAny>) -> PyResult<Self> {
        fn of<'py, T: numpy::Element>(array: &Bound<'py, PyAny>) -> Option<PyReadonlyArray1<'py, T>> {
            Some(array.cast::<PyArray1<T>>().ok()?.readonly())
        }
        of(array)
            .map(Codes::I8)
            .or_else(|| of(array).map(Codes::I16))
            .or_else(|| of(array).map(Codes::I32))
            .or_else(|| of(array).map(Codes::I64))
            .or_else(|| of(array).map(Codes::U8))
            .or_else(|| of(array).map(Codes::U32))
            .ok_or_else(|| PyTypeError::new_err("codes: expected an array of integers with one axis"))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        with_array!(self, array => array.len())
    }

    /// The code of a row, [`MISSING`] where there is none; `None` where it is too large for one.
    #[inline]
    pub fn at(&self, row: usize) -> Option<u32> {
        let code = with_array!(self, array => signed(*array.get(row)?));
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
