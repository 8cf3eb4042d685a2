//! Rows as they come from a file become a [`Dataset`]: labels become codes, equal rows become one.
//!
//! A [`DatasetBuilder`] is the only way from a reader to a dataset, so the rules about duplicates, unknown cells and
//! overflow are written once. It works on a stream: memory follows the distinct rows and labels, and a row that was
//! seen before costs no allocation.

use super::count_list::CountList;
use super::dataset::{Column, Dataset, MISSING};
use super::intern::{Interner, MAX_CODES, Place, RowSet};
use super::labels::Labels;
use super::row_count::{Rounded, RowCount};
use super::unit::{MOST_DECIMALS, Unit};
use crate::error::{Error, Result};
use crate::warning::Warning;

/// One value of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// A label, for a column of labels.
    Label(&'a str),
    /// A value counted from 0, for a column of indices.
    Index(u32),
    /// A missing value: the token exists, this coordinate of it is not known.
    Missing,
}

/// Collects rows, one after the other, into a [`Dataset`].
///
/// ```
/// use polyurn::counts::{Cell, DatasetBuilder, RowCount};
///
/// let mut builder = DatasetBuilder::new("pets");
/// builder.label_column(Some("animal".into()));
/// for (line, animal) in [(2, "cat"), (3, "dog"), (4, "cat")] {
///     builder.push(line, [Cell::Label(animal)], RowCount::Tokens(10))?;
/// }
/// let dataset = builder.finish();
/// assert_eq!(dataset.counts, [20, 10]);
/// assert_eq!(dataset.warnings.len(), 1); // a row was repeated
/// # Ok::<(), polyurn::Error>(())
/// ```
#[derive(Debug)]
pub struct DatasetBuilder {
    pub(super) source: String,
    columns: Vec<ColumnBuilder>,
    rows: RowSet,
    counts: CountList,
    unknown: RowSet,
    warnings: Vec<Warning>,
    /// The codes of the row at hand.
    codes: Vec<u32>,
    n_tokens: u64,
    n_rows: u64,
    n_repeats: u64,
    repeats_are_normal: bool,
    /// Whether counts may be fractions, and what they are counted in so far.
    takes_fractions: bool,
    unit: Unit,
    n_rounded: u64,
}

impl DatasetBuilder {
    /// Nothing yet, from a file or another thing called `source` in messages.
    pub fn new(source: impl Into<String>) -> Self {
        DatasetBuilder {
            source: source.into(),
            columns: Vec::new(),
            rows: RowSet::default(),
            counts: CountList::default(),
            unknown: RowSet::default(),
            warnings: Vec::new(),
            codes: Vec::new(),
            n_tokens: 0,
            n_rows: 0,
            n_repeats: 0,
            repeats_are_normal: false,
            takes_fractions: false,
            unit: Unit::TOKEN,
            n_rounded: 0,
        }
    }

    /// Adds a column whose values are labels; they get codes in the order of their first appearance.
    ///
    /// # Panics
    /// When rows were pushed already.
    pub fn label_column(&mut self, name: Option<String>) {
        self.add_column(name, Values::Labels(Interner::default()));
    }

    /// Adds a column whose values are numbers, value 0 being called `first`. Without a `size` the largest value that
    /// occurs sets it.
    ///
    /// # Panics
    /// When rows were pushed already.
    pub fn index_column(&mut self, name: Option<String>, first: u32, size: Option<u32>) {
        self.add_column(name, Values::Indices { first, declared: size, needed: 0 });
    }

    /// Adds a column whose values are codes, [`Cell::Index`], of labels that are known beforehand, as those of a table in
    /// memory are. Labels that never occur count as values too.
    ///
    /// # Panics
    /// When rows were pushed already.
    pub fn coded_column(&mut self, name: Option<String>, labels: Vec<String>) {
        let first_lines = vec![0; labels.len()];
        self.add_column(name, Values::Coded { labels, first_lines });
    }

    /// Says that a value exists, whether a row has it or not, in the column of indices at this position; without effect on a column
    /// whose size is declared.
    pub fn value_exists(&mut self, column: usize, index: u32) {
        if let Some(ColumnBuilder { values: Values::Indices { needed, .. }, .. }) = self.columns.get_mut(column) {
            *needed = (*needed).max(index.saturating_add(1));
        }
    }

    /// Says that each row is one token, as in a file without counts: repeated rows then are no cause for a warning.
    pub fn rows_are_tokens(&mut self) {
        self.repeats_are_normal = true;
    }

    /// Says how many rows come at most, where that is known: then lists need not grow.
    pub fn expect_rows(&mut self, n_rows: usize) {
        self.rows.expect(n_rows);
        self.counts = CountList::with_capacity(n_rows);
    }

    /// Takes counts that are not whole, for engines that can do with them.
    pub fn take_fractions(&mut self) {
        self.takes_fractions = true;
    }

    /// Whether it does.
    pub fn takes_fractions(&self) -> bool {
        self.takes_fractions
    }

    /// Adds a warning to those of the dataset.
    pub fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Number of rows pushed so far, repeated and unknown ones too.
    pub fn n_rows_read(&self) -> u64 {
        self.n_rows
    }

    /// Adds a row that stands on line `line`.
    ///
    /// # Errors
    /// When the cells do not fit the columns, when a count or the total leaves 64 bits, when there are too many
    /// labels or rows, and when an unknown cell has a missing value, a count elsewhere, or stands in the file twice.
    /// The builder is of no use after an error.
    pub fn push<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        let is_new = self.add(line, cells, count)?;
        self.n_rows += 1;
        self.n_repeats += u64::from(!is_new);
        Ok(())
    }

    /// Adds a row that follows from another one on the same line (the mirror image of an entry, say), so that it is
    /// not counted as a row of the file.
    pub(crate) fn push_implied<'c>(
        &mut self,
        line: u64,
        cells: impl IntoIterator<Item = Cell<'c>>,
        count: RowCount,
    ) -> Result<()> {
        self.add(line, cells, count).map(drop)
    }

    /// The dataset.
    pub fn finish(mut self) -> Dataset {
        if self.n_repeats > 0 && !self.repeats_are_normal {
            self.warnings.push(Warning::DuplicateRows { n_rows: self.n_repeats });
        }
        if self.n_rounded > 0 {
            self.warnings.push(Warning::CountsRounded { n_rows: self.n_rounded, decimals: MOST_DECIMALS });
        }
        let n_columns = self.columns.len();
        let unknown = (0..self.unknown.len()).map(|row| self.unknown.row(row).collect()).collect();
        Dataset {
            source: self.source,
            columns: self.columns.into_iter().map(ColumnBuilder::finish).collect(),
            values: self.rows.into_values(n_columns),
            counts: self.counts,
            unit: self.unit,
            unknown,
            unknown_lines: self.unknown.lines.to_vec(),
            warnings: self.warnings,
        }
    }

    fn add_column(&mut self, name: Option<String>, values: Values) {
        assert!(self.n_rows == 0, "columns are declared before the first row");
        self.columns.push(ColumnBuilder { name, values });
    }

    /// Adds a row; true when it was not there before.
    fn add<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<bool> {
        self.encode(line, cells)?;
        match count {
            RowCount::Tokens(n_tokens) if self.unit.is_token() => self.add_tokens(line, n_tokens),
            RowCount::Tokens(n_tokens) => {
                let n = self.in_unit(line, n_tokens, Unit::TOKEN)?;
                self.add_tokens(line, n)
            }
            RowCount::Fraction(..) if !self.takes_fractions => {
                Err(self.fault(line, None, format!("count {count} is not whole, and whole ones are needed here")))
            }
            RowCount::Fraction(n, unit, rounded) => {
                self.n_rounded += u64::from(rounded == Rounded::Yes);
                let n = self.in_unit(line, n, unit)?;
                self.add_tokens(line, n)
            }
            RowCount::Unknown => self.add_unknown(line).map(|()| true),
        }
    }

    /// A count in the unit of all counts, which becomes finer if need be.
    fn in_unit(&mut self, line: u64, n: u64, unit: Unit) -> Result<u64> {
        let too_fine = |builder: &Self| {
            let message = "with this many decimal places the counts go beyond 64 bits; round them to fewer places";
            builder.fault(line, None, message)
        };
        if unit > self.unit {
            let factor = unit.per_token() / self.unit.per_token();
            // The total is the largest number.
            self.n_tokens = self.n_tokens.checked_mul(factor).ok_or_else(|| too_fine(self))?;
            self.counts.multiply(factor);
            self.unit = unit;
        }
        let factor = self.unit.per_token() / unit.per_token();
        n.checked_mul(factor).ok_or_else(|| too_fine(self))
    }

    /// Puts the codes of a row into `self.codes`.
    fn encode<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>) -> Result<()> {
        self.codes.clear();
        for (ix, cell) in cells.into_iter().enumerate() {
            let Some(column) = self.columns.get_mut(ix) else {
                return Err(self.wrong_width(line, "more"));
            };
            match column.code(cell, line) {
                Ok(code) => self.codes.push(code),
                Err(message) => return Err(self.fault(line, Some(ix), message)),
            }
        }
        if self.codes.len() < self.columns.len() { Err(self.wrong_width(line, "fewer")) } else { Ok(()) }
    }

    fn add_tokens(&mut self, line: u64, n_tokens: u64) -> Result<bool> {
        if !self.unknown.is_empty()
            && let Some(cell) = self.unknown.find(&self.codes)
        {
            let earlier = self.unknown.lines.at(cell as usize);
            return Err(self.fault(
                line,
                None,
                format!(
                    "the count is {} here but `?` for the same cell on line {earlier}; keep one of the two",
                    RowCount::of(n_tokens, self.unit)
                ),
            ));
        }
        match self.n_tokens.checked_add(n_tokens) {
            Some(sum) => self.n_tokens = sum,
            None => {
                let message = format!(
                    "with the count {} the total goes beyond 18446744073709551615 (2^64 - 1){}; scale counts down",
                    RowCount::of(n_tokens, self.unit),
                    if self.unit.is_token() { "" } else { " of the last decimal place" }
                );
                return Err(self.fault(line, None, message));
            }
        }
        let hash = match self.rows.place(&self.codes) {
            Place::New(hash) => hash,
            Place::Found(row) => {
                // No overflow: a count is never more than the total.
                self.counts.add(row as usize, n_tokens);
                return Ok(false);
            }
        };
        if !self.rows.insert(hash, &self.codes, line) {
            return Err(self.fault(line, None, format!("more than {MAX_CODES} distinct rows; split the file")));
        }
        self.counts.push(n_tokens);
        Ok(true)
    }

    fn add_unknown(&mut self, line: u64) -> Result<()> {
        if let Some(ix) = self.codes.iter().position(|&code| code == MISSING) {
            let message = "the count is `?` but this value is missing; an unknown cell needs all its values";
            return Err(self.fault(line, Some(ix), message));
        }
        if let Some(row) = self.rows.find(&self.codes) {
            let (count, earlier) = (self.counts.at(row as usize), self.rows.lines.at(row as usize));
            let count = RowCount::of(count, self.unit);
            return Err(self.fault(
                line,
                None,
                format!("the count is `?` here but {count} for the same cell on line {earlier}; keep one of the two"),
            ));
        }
        let hash = match self.unknown.place(&self.codes) {
            Place::New(hash) => hash,
            Place::Found(cell) => {
                let earlier = self.unknown.lines.at(cell as usize);
                let message =
                    format!("this unknown cell (count `?`) stands on line {earlier} already; keep one of the two");
                return Err(self.fault(line, None, message));
            }
        };
        if self.unknown.insert(hash, &self.codes, line) {
            return Ok(());
        }
        Err(self.fault(line, None, format!("more than {MAX_CODES} unknown cells; split the file")))
    }

    fn wrong_width(&self, line: u64, more_or_fewer: &str) -> Error {
        let message = format!("the row has {more_or_fewer} values than there are columns ({})", self.columns.len());
        self.fault(line, None, message)
    }

    fn fault(&self, line: u64, column: Option<usize>, message: impl Into<String>) -> Error {
        let column = column.map(|ix| match &self.columns[ix].name {
            Some(name) => name.clone(),
            None => (ix + 1).to_string(),
        });
        Error::data_at(&self.source, line, column.as_deref(), message)
    }
}

/// A column while rows come in.
#[derive(Debug)]
struct ColumnBuilder {
    name: Option<String>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Labels(Interner),
    Indices {
        first: u32,
        declared: Option<u32>,
        needed: u32,
    },
    /// The line of each label is 0 until it appears.
    Coded {
        labels: Vec<String>,
        first_lines: Vec<u64>,
    },
}

impl ColumnBuilder {
    /// The code of a cell, or what is wrong with it.
    #[inline]
    fn code(&mut self, cell: Cell<'_>, line: u64) -> Result<u32, String> {
        match (&mut self.values, cell) {
            (Values::Labels(interner), Cell::Label(label)) => interner.code(label, line).ok_or_else(|| {
                format!("more than {MAX_CODES} distinct labels; leave the column out or group its values")
            }),
            (Values::Indices { first, declared, needed }, Cell::Index(index)) => {
                check_index(index, *first, *declared)?;
                *needed = (*needed).max(index + 1);
                Ok(index)
            }
            (Values::Coded { labels, first_lines }, Cell::Index(code)) => {
                check_index(code, 0, Some(labels.len() as u32))?;
                let first = &mut first_lines[code as usize];
                if *first == 0 {
                    *first = line;
                }
                Ok(code)
            }
            (_, Cell::Missing) => Ok(MISSING),
            (Values::Labels(_), Cell::Index(index)) => {
                Err(format!("index {index} in a column of labels; give a label"))
            }
            (Values::Indices { .. } | Values::Coded { .. }, Cell::Label(label)) => {
                Err(format!("label `{}` in a column of indices; give an index", label.escape_debug()))
            }
        }
    }

    fn finish(self) -> Column {
        match self.values {
            Values::Labels(Interner { names, first_lines, .. }) => {
                Column { name: self.name, labels: Labels::Named(names), first_lines }
            }
            Values::Coded { labels, first_lines } => {
                Column { name: self.name, labels: Labels::Named(labels), first_lines }
            }
            Values::Indices { first, declared, needed } => {
                let labels = Labels::Indexed { size: declared.unwrap_or(needed), first };
                Column { name: self.name, labels, first_lines: Vec::new() }
            }
        }
    }
}

fn check_index(index: u32, first: u32, declared: Option<u32>) -> Result<(), String> {
    let size = declared.unwrap_or(MAX_CODES);
    if index < size {
        return Ok(());
    }
    let called = u64::from(index) + u64::from(first);
    Err(format!("index {called} is out of range; the column has {size} values, counted from {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn pair_builder() -> DatasetBuilder {
        let mut builder = DatasetBuilder::new("test.csv");
        builder.label_column(Some("a".into()));
        builder.label_column(Some("b".into()));
        builder
    }

    fn labels<'a>(a: &'a str, b: &'a str) -> [Cell<'a>; 2] {
        [a, b].map(|label| if label.is_empty() { Cell::Missing } else { Cell::Label(label) })
    }

    fn refusal(result: Result<()>) -> String {
        result.expect_err("the row must be refused").to_string()
    }

    #[test]
    fn labels_and_rows_stand_in_order_of_first_appearance() {
        let mut builder = pair_builder();
        for (line, a, b) in [(2, "y", "q"), (3, "x", "p"), (4, "y", "p"), (7, "y", "q")] {
            builder.push(line, labels(a, b), RowCount::Tokens(line)).unwrap();
        }
        assert_eq!(builder.n_rows_read(), 4);
        let dataset = builder.finish();
        assert_eq!(dataset.columns[0].labels, Labels::Named(vec!["y".into(), "x".into()]));
        assert_eq!(dataset.columns[0].first_lines, [2, 3]);
        assert_eq!(dataset.columns[1].first_lines, [2, 3]);
        assert_eq!(dataset.values, [vec![0, 1, 0], vec![0, 1, 1]]);
        assert_eq!(dataset.counts, [9, 3, 4]);
        assert_eq!(dataset.n_tokens(), Some(16));
    }

    #[test]
    fn repeated_rows_with_counts_are_said_once() {
        let mut builder = pair_builder();
        for line in 2..6 {
            builder.push(line, labels("x", "y"), RowCount::Tokens(1)).unwrap();
        }
        assert_eq!(builder.finish().warnings, [Warning::DuplicateRows { n_rows: 3 }]);
    }

    #[test]
    fn repeated_tokens_are_normal() {
        let mut builder = pair_builder();
        builder.rows_are_tokens();
        for line in 2..6 {
            builder.push(line, labels("x", "y"), RowCount::Tokens(1)).unwrap();
        }
        let dataset = builder.finish();
        assert!(dataset.warnings.is_empty());
        assert_eq!(dataset.counts, [4]);
    }

    #[test]
    fn implied_rows_are_neither_rows_nor_repeats() {
        let mut builder = pair_builder();
        builder.push(2, labels("x", "y"), RowCount::Tokens(1)).unwrap();
        builder.push_implied(2, labels("x", "y"), RowCount::Tokens(5)).unwrap();
        assert_eq!(builder.n_rows_read(), 1);
        let dataset = builder.finish();
        assert_eq!(dataset.counts, [6]);
        assert!(dataset.warnings.is_empty());
    }

    #[test]
    fn missing_values_are_values_of_their_own() {
        let mut builder = pair_builder();
        builder.push(2, labels("x", ""), RowCount::Tokens(1)).unwrap();
        builder.push(3, labels("", "x"), RowCount::Tokens(1)).unwrap();
        builder.push(4, labels("x", ""), RowCount::Tokens(1)).unwrap();
        let dataset = builder.finish();
        assert_eq!(dataset.values, [vec![0, MISSING], vec![MISSING, 0]]);
        assert_eq!(dataset.counts, [2, 1]);
    }

    #[test]
    fn rows_without_columns_are_all_equal() {
        let mut builder = DatasetBuilder::new("test.csv");
        builder.push(2, [], RowCount::Tokens(3)).unwrap();
        builder.push(3, [], RowCount::Tokens(4)).unwrap();
        let dataset = builder.finish();
        assert!(dataset.values.is_empty());
        assert_eq!(dataset.counts, [7]);
    }

    #[test]
    fn no_rows_leave_an_empty_vector_for_each_column() {
        let dataset = pair_builder().finish();
        assert_eq!(dataset.values, [Vec::<u32>::new(), Vec::new()]);
        assert!(dataset.counts.is_empty());
    }

    #[test]
    fn unknown_cells_stand_apart() {
        let mut builder = pair_builder();
        builder.push(2, labels("x", "y"), RowCount::Tokens(2)).unwrap();
        builder.push(3, labels("z", "y"), RowCount::Unknown).unwrap();
        builder.push(4, labels("x", "w"), RowCount::Unknown).unwrap();
        let dataset = builder.finish();
        assert_eq!(dataset.counts, [2]);
        assert_eq!(dataset.unknown, [[1, 0], [0, 1]]);
        assert_eq!(dataset.unknown_lines, [3, 4]);
        assert_eq!(dataset.columns[0].labels.len(), 2);
    }

    #[test]
    fn a_missing_value_in_an_unknown_cell_is_refused() {
        let message = refusal(pair_builder().push(9, labels("x", ""), RowCount::Unknown));
        assert!(message.starts_with("test.csv, line 9, column b: the count is `?`"), "{message}");
    }

    #[test]
    fn a_cell_with_and_without_a_count_is_refused_in_either_order() {
        for first_count in [0, 5] {
            let mut builder = pair_builder();
            builder.push(2, labels("x", "y"), RowCount::Tokens(first_count)).unwrap();
            let message = refusal(builder.push(4, labels("x", "y"), RowCount::Unknown));
            assert!(message.contains("line 4") && message.contains("line 2"), "{message}");
            assert!(message.contains(&first_count.to_string()), "{message}");

            let mut builder = pair_builder();
            builder.push(2, labels("x", "y"), RowCount::Unknown).unwrap();
            let message = refusal(builder.push(4, labels("x", "y"), RowCount::Tokens(first_count)));
            assert!(message.contains("line 4") && message.contains("line 2"), "{message}");
        }
    }

    #[test]
    fn an_unknown_cell_listed_twice_is_refused() {
        let mut builder = pair_builder();
        builder.push(2, labels("x", "y"), RowCount::Unknown).unwrap();
        let message = refusal(builder.push(5, labels("x", "y"), RowCount::Unknown));
        assert!(message.contains("line 5") && message.contains("line 2"), "{message}");
    }

    #[test]
    fn a_total_beyond_64_bits_is_refused_on_its_line() {
        for (a, b) in [("x", "x"), ("x", "other")] {
            let mut builder = pair_builder();
            builder.push(2, labels(a, "y"), RowCount::Tokens(u64::MAX)).unwrap();
            builder.push(3, labels(b, "y"), RowCount::Tokens(0)).unwrap();
            let message = refusal(builder.push(4, labels(b, "y"), RowCount::Tokens(1)));
            assert!(message.contains("line 4") && message.contains("2^64"), "{message}");
        }
    }

    #[test]
    fn cells_that_do_not_fit_the_columns_are_refused() {
        let message = refusal(pair_builder().push(2, [Cell::Label("x")], RowCount::Tokens(1)));
        assert!(message.contains("fewer values than there are columns (2)"), "{message}");
        let message = refusal(pair_builder().push(2, [Cell::Missing; 3], RowCount::Tokens(1)));
        assert!(message.contains("more values"), "{message}");
        let message = refusal(pair_builder().push(2, [Cell::Missing, Cell::Index(7)], RowCount::Tokens(1)));
        assert!(message.contains("column b: index 7"), "{message}");
        let mut builder = DatasetBuilder::new("test.tns");
        builder.index_column(None, 1, None);
        let message = refusal(builder.push(2, [Cell::Label("q")], RowCount::Tokens(1)));
        assert!(message.contains("column 1: label `q`"), "{message}");
    }

    #[test]
    fn indices_set_the_size_unless_it_is_declared() {
        let mut builder = DatasetBuilder::new("test.mtx");
        builder.index_column(None, 1, None);
        builder.index_column(None, 1, Some(10));
        builder.push(1, [Cell::Index(4), Cell::Index(9)], RowCount::Tokens(1)).unwrap();
        let message = refusal(builder.push(2, [Cell::Index(0), Cell::Index(10)], RowCount::Tokens(1)));
        assert!(message.contains("line 2, column 2: index 11"), "{message}");
        let dataset = builder.finish();
        assert_eq!(dataset.columns[0].labels, Labels::Indexed { size: 5, first: 1 });
        assert_eq!(dataset.columns[1].labels, Labels::Indexed { size: 10, first: 1 });
    }

    #[test]
    fn codes_keep_the_labels_they_were_given() {
        let mut builder = DatasetBuilder::new("table");
        builder.coded_column(Some("a".into()), vec!["low".into(), "middle".into(), "high".into()]);
        builder.push(1, [Cell::Index(2)], RowCount::Tokens(1)).unwrap();
        builder.push(2, [Cell::Missing], RowCount::Tokens(1)).unwrap();
        builder.push(3, [Cell::Index(0)], RowCount::Tokens(4)).unwrap();
        let message = refusal(builder.push(4, [Cell::Index(3)], RowCount::Tokens(1)));
        assert!(message.contains("line 4, column a: index 3 is out of range"), "{message}");
        let dataset = builder.finish();
        assert_eq!(dataset.columns[0].labels, Labels::Named(vec!["low".into(), "middle".into(), "high".into()]));
        assert_eq!(dataset.columns[0].first_lines, [3, 0, 1]);
        assert_eq!(dataset.values, [[2, MISSING, 0]]);
    }

    #[test]
    fn the_largest_index_leaves_room_for_the_code_of_a_missing_value() {
        let mut builder = DatasetBuilder::new("test.tns");
        builder.index_column(None, 1, None);
        assert!(builder.push(1, [Cell::Index(MAX_CODES)], RowCount::Tokens(1)).is_err());
        builder.push(1, [Cell::Index(MAX_CODES - 1)], RowCount::Tokens(1)).unwrap();
        assert_eq!(builder.finish().columns[0].labels.len(), MAX_CODES);
    }

    #[test]
    fn fractions_share_the_finest_unit() {
        let tenths = |n: u64, decimals: u8| RowCount::Fraction(n, Unit::new(decimals), Rounded::No);
        let fill = |takes_fractions: bool| {
            let mut builder = DatasetBuilder::new("test");
            if takes_fractions {
                builder.take_fractions();
            }
            builder.label_column(Some("a".into()));
            builder.label_column(Some("b".into()));
            builder.push(2, labels("x", "y"), RowCount::Tokens(1))?;
            builder.push(3, labels("x", "z"), tenths(25, 1))?;
            builder.push(4, labels("z", "z"), tenths(25, 2))?;
            builder.push(5, labels("x", "y"), RowCount::Tokens(3))?;
            builder.push(6, labels("z", "z"), tenths(1, 1))?;
            Ok::<Dataset, Error>(builder.finish())
        };
        let dataset = fill(true).unwrap();
        assert_eq!((dataset.counts, dataset.unit), (CountList::from_iter([400, 250, 35]), Unit::new(2)));
        let message = fill(false).unwrap_err().to_string();
        assert!(message.contains("line 3") && message.contains("count 2.5 is not whole"), "{message}");
        let mut builder = DatasetBuilder::new("test");
        builder.take_fractions();
        builder.push(2, [], RowCount::Tokens(u64::MAX / 50)).unwrap();
        let message = builder.push(3, [], tenths(1, 2)).unwrap_err().to_string();
        assert!(message.contains("round them to fewer places"), "{message}");
    }

    proptest! {
        #[test]
        fn merging_agrees_with_an_ordered_map(rows in prop::collection::vec((0u8..6, 0u8..6, 0u64..9), 0..200)) {
            let mut builder = pair_builder();
            let mut expected = BTreeMap::<_, u64>::new();
            for (line, &(a, b, count)) in rows.iter().enumerate() {
                let (a, b) = (a.to_string(), b.to_string());
                builder.push(line as u64, [Cell::Label(&a), Cell::Label(&b)], RowCount::Tokens(count)).unwrap();
                *expected.entry((a, b)).or_default() += count;
            }
            let dataset = builder.finish();
            let found: BTreeMap<_, u64> = (0..dataset.n_rows())
                .map(|row| {
                    let name = |ix: usize| dataset.columns[ix].labels.name(dataset.values[ix].at(row)).into_owned();
                    ((name(0), name(1)), dataset.counts.at(row))
                })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }
}
