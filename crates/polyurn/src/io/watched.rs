//! Reading with somebody who watches: told how much of a file is done, and asked whether to go on.

use crate::Warning;
use crate::counts::{Cell, RowCount, RowSink};
use crate::error::Result;
use std::cell::Cell as Shared;
use std::io::Read;
use std::rc::Rc;

/// Rows between two looks.
const EVERY: u32 = 1024;

/// Bytes as they are taken from a file, counted.
pub(super) struct Counted<R> {
    pub reader: R,
    pub n_bytes: Rc<Shared<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.n_bytes.set(self.n_bytes.get() + n as u64);
        Ok(n)
    }
}

/// Hands rows on, and tells now and then how much of the file has been read.
pub(super) struct Watched<'a, S> {
    pub sink: &'a mut S,
    /// Bytes so far, and in all; none in all where nobody knows.
    pub n_bytes: Rc<Shared<u64>>,
    pub n_all: u64,
    pub watch: &'a mut dyn FnMut(f64) -> Result<()>,
    pub n_rows: u32,
}

impl<S> Watched<'_, S> {
    #[inline]
    fn look(&mut self) -> Result<()> {
        self.n_rows += 1;
        if self.n_rows < EVERY {
            return Ok(());
        }
        self.n_rows = 0;
        (self.watch)(if self.n_all == 0 { 0.0 } else { self.n_bytes.get() as f64 / self.n_all as f64 })
    }
}

impl<S: RowSink> RowSink for Watched<'_, S> {
    fn source(&mut self, name: &str) {
        self.sink.source(name);
    }

    fn label_column(&mut self, name: Option<String>) {
        self.sink.label_column(name);
    }

    fn index_column(&mut self, name: Option<String>, first: u32, size: Option<u32>) {
        self.sink.index_column(name, first, size);
    }

    fn coded_column(&mut self, name: Option<String>, labels: &[String]) -> bool {
        self.sink.coded_column(name, labels)
    }

    fn value_exists(&mut self, column: usize, index: u32) {
        self.sink.value_exists(column, index);
    }

    fn rows_are_tokens(&mut self) {
        self.sink.rows_are_tokens();
    }

    fn takes_fractions(&self) -> bool {
        self.sink.takes_fractions()
    }

    fn warn(&mut self, warning: Warning) {
        self.sink.warn(warning);
    }

    fn push<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        self.look()?;
        self.sink.push(line, cells, count)
    }

    fn push_implied<'c>(
        &mut self,
        line: u64,
        cells: impl IntoIterator<Item = Cell<'c>>,
        count: RowCount,
    ) -> Result<()> {
        self.sink.push_implied(line, cells, count)
    }
}
