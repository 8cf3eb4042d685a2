//! From errors of the library to exceptions, with the same text but for flags of the command line.

use crate::words::in_python;
use polyurn::{Error, Stop};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyFileNotFoundError, PyKeyboardInterrupt, PyMemoryError, PyOSError, PyPermissionError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use std::io::ErrorKind;

create_exception!(
    polyurn._core,
    TooCostlyError,
    PyMemoryError,
    "The work would cost more memory or time than the limit that was set."
);

/// The exception of an error.
pub fn exception(error: &Error) -> PyErr {
    let text = in_python(&error.to_string());
    match error {
        Error::Model(model) => PyValueError::new_err(match &model.place {
            Some(place) => format!("{text}\n{}", place.caret()),
            None => text,
        }),
        Error::TooCostly(_) => TooCostlyError::new_err(text),
        Error::Stopped(Stop::Cancelled) => PyKeyboardInterrupt::new_err(text),
        Error::Stopped(_) => PyTimeoutError::new_err(text),
        Error::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
            _ => PyOSError::new_err(text),
        },
        Error::NoThread(_) => PyOSError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

/// The same for results.
pub trait OrException<T> {
    /// Its value, or the exception of its error.
    ///
    /// # Errors
    /// The exception.
    fn or_exception(self) -> PyResult<T>;
}

impl<T> OrException<T> for polyurn::Result<T> {
    fn or_exception(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
