//! Integration tests of the library, one file per theme.
#![allow(missing_docs)]

mod cases;
mod support;
