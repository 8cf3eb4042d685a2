//! In place of the readers of Parquet and Arrow IPC in builds without them: they bring in some fifty crates, and take minutes to compile.

use super::Input;
use super::bins::Cuts;
use crate::counts::RowSink;
use crate::error::{Error, Result};
use std::fs::File;

fn left_out(source: &str) -> Result<()> {
    let message = "this build of polyurn leaves Parquet and Arrow out; take a released one, build it with `--features parquet`, or \
                   save the table as CSV";
    Err(Error::data(source, message))
}

pub(super) fn read_parquet_file(
    _: &File,
    source: &str,
    _: &[Cuts],
    _: &dyn Fn(f64),
    _: &mut impl RowSink,
) -> Result<()> {
    left_out(source)
}

pub(super) fn read_arrow_file(_: &File, source: &str, _: &[Cuts], _: &mut impl RowSink) -> Result<()> {
    left_out(source)
}

pub(super) fn read_parquet_stream(input: Input<'_>, _: &[Cuts], _: &mut impl RowSink) -> Result<()> {
    left_out(&input.source)
}

pub(super) fn read_arrow(input: Input<'_>, _: &[Cuts], _: &mut impl RowSink) -> Result<()> {
    left_out(&input.source)
}
