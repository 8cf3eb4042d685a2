//! Rows of a stream, in a model's terms and in batches: for data that are read once and never held.
//!
//! All sizes are declared. A label gets the next free value when it first comes, until the declared size is used up.

use super::local::local_nodes;
use super::model::{Model, NodeIndex};
use crate::counts::{Cell, CountList, Counts, Interner, Labels, MISSING, RowCount, RowSink};
use crate::error::{Error, Result};
use crate::math::draw;
use crate::warning::Warning;
use crate::{Purpose, Seed};

/// Values that are named although no row had them; tables with more children list only those that occur.
const NAMED_UNSEEN: u32 = 10_000;

/// How to cut a stream.
#[derive(Debug, Clone, Default)]
pub struct BatchOptions {
    /// Rows of a batch, about: it ends where the value of a local node does, and the last one has from half to one and a
    /// half times as many.
    pub n_rows: usize,
    /// Names for the columns in order, or a choice of named columns.
    pub columns: Option<Vec<String>>,
    /// Seen nodes, in the order of columns without names; by default all nodes that a column is named after.
    pub seen: Option<Vec<String>>,
    /// Nodes whose rows belong to batches; by default [`local_nodes`].
    pub local: Option<Vec<NodeIndex>>,
    /// For each node whether its values must be numbers from 0, since the prior tells them apart.
    pub is_numbered: Vec<bool>,
    /// Delivers a batch as soon as it is full; then the last one may be small.
    pub is_prompt: bool,
    /// For each node labels that came before this stream, in the order of their values.
    pub known: Vec<Vec<String>>,
}

/// Some rows of a stream.
#[derive(Debug)]
pub struct RowBatch {
    /// The records.
    pub counts: Counts,
    /// The same row by row, as they came.
    pub rows: Rows,
    /// Rows that they were made from.
    pub n_rows: u64,
    /// For each node whether it has a column.
    pub is_seen: Vec<bool>,
    /// The local nodes.
    pub local: Vec<NodeIndex>,
    /// For each node the labels that came with this batch for the first time, in the order of their values. Nodes that
    /// share labels have them under the first one.
    pub new_labels: Vec<Vec<String>>,
    /// For each node the name of its value 0, where values are numbers.
    pub first_numbers: Vec<u32>,
    /// What to tell the user, with the first batch.
    pub warnings: Vec<Warning>,
}

/// Rows in the order in which they came.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    /// Values of all nodes, row by row; [`MISSING`] where unseen.
    values: Vec<u32>,
    /// Tokens of each row, at least one.
    counts: Vec<u64>,
    n_nodes: usize,
}

impl Rows {
    fn new(columns: &[Option<Vec<u32>>], counts: Vec<u64>) -> Self {
        let n_nodes = columns.len();
        let mut values = vec![MISSING; n_nodes * counts.len()];
        for (node, column) in columns.iter().enumerate() {
            for (row, &value) in column.iter().flatten().enumerate() {
                values[row * n_nodes + node] = value;
            }
        }
        Rows { values, counts, n_nodes }
    }

    /// The values of a row.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.values[row * self.n_nodes..][..self.n_nodes]
    }

    /// The values of every token.
    pub fn tokens(&self) -> impl Iterator<Item = &[u32]> {
        let of_row = |(row, &count): (usize, &u64)| std::iter::repeat_n(self.row(row), count as usize);
        self.counts.iter().enumerate().flat_map(of_row)
    }

    /// The row of every token, in random order. `n_before` tokens came before these.
    pub fn shuffled(&self, seed: Seed, n_before: u64) -> Vec<u32> {
        let of_row = |(row, &count): (usize, &u64)| std::iter::repeat_n(row as u32, count as usize);
        let mut rows: Vec<u32> = self.counts.iter().enumerate().flat_map(of_row).collect();
        draw::shuffle(&mut rows, &mut seed.stream(Purpose::Online, u64::MAX, 0, n_before));
        rows
    }
}

/// Takes rows and delivers batches.
pub struct Batcher<'m, F> {
    model: &'m Model,
    options: BatchOptions,
    deliver: F,
    source: String,
    columns: Vec<Column>,
    warnings: Vec<Warning>,
    /// For each node the first one that it shares labels with.
    groups: Vec<usize>,
    interners: Vec<Interner>,
    n_sent: Vec<usize>,
    is_seen: Vec<bool>,
    local: Vec<NodeIndex>,
    is_bound: bool,
    /// Rows at hand: for each node with a column its values; and their counts.
    values: Vec<Option<Vec<u32>>>,
    counts: Vec<u64>,
    codes: Vec<u32>,
    /// Where the batch at hand ends, once that is known.
    cut: Option<usize>,
}

impl<F> std::fmt::Debug for Batcher<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batcher").field("options", &self.options).field("rows", &self.counts.len()).finish()
    }
}

#[derive(Debug)]
struct Column {
    name: Option<String>,
    node: Option<usize>,
    first_number: u32,
}

impl<'m, F: FnMut(RowBatch) -> Result<()>> Batcher<'m, F> {
    /// For a model with all sizes declared; `deliver` is called with each batch.
    ///
    /// # Errors
    /// When a batch is to have no rows.
    pub fn new(model: &'m Model, options: BatchOptions, deliver: F) -> Result<Self> {
        if options.n_rows == 0 {
            return Err(Error::Setting("a batch must have at least 1 record".into()));
        }
        let n_nodes = model.n_nodes();
        let mut interners: Vec<Interner> = (0..n_nodes).map(|_| Interner::default()).collect();
        for (interner, labels) in interners.iter_mut().zip(&options.known) {
            for label in labels {
                // Codes follow the order of the labels.
                interner.code(label, 0);
            }
        }
        Ok(Batcher {
            model,
            deliver,
            source: String::new(),
            columns: Vec::new(),
            warnings: Vec::new(),
            groups: label_groups(model),
            n_sent: interners.iter().map(|interner| interner.names.len()).collect(),
            interners,
            is_seen: vec![false; n_nodes],
            local: Vec::new(),
            is_bound: false,
            values: vec![None; n_nodes],
            counts: Vec::new(),
            codes: Vec::new(),
            cut: None,
            options,
        })
    }

    /// Delivers what is left of a pass. Labels are kept for the next one.
    ///
    /// # Errors
    /// When columns do not go with the model, and whatever `deliver` says.
    pub fn finish_pass(&mut self) -> Result<()> {
        if !self.is_bound {
            self.bind_columns()?;
        }
        if !self.counts.is_empty() {
            self.deliver_first(self.counts.len())?;
        }
        self.is_bound = false;
        self.columns.clear();
        Ok(())
    }

    /// Finds the node of each column.
    fn bind_columns(&mut self) -> Result<()> {
        self.is_bound = true;
        let names = self.column_names()?;
        for (column, name) in self.columns.iter_mut().zip(&names) {
            let is_wanted = |name: &String| self.options.seen.as_ref().is_none_or(|seen| seen.contains(name));
            column.node = name
                .as_ref()
                .filter(|name| is_wanted(name))
                .and_then(|name| self.model.find(name))
                .map(|node| node.ix());
        }
        self.is_seen.fill(false);
        self.columns.iter().filter_map(|column| column.node).for_each(|node| self.is_seen[node] = true);
        for name in self.options.seen.iter().flatten() {
            if !self.model.find(name).is_some_and(|node| self.is_seen[node.ix()]) {
                let known: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
                return Err(Error::data(
                    &self.source,
                    format!("there is no column `{name}`, which --seen names; the columns are {}", known.join(", ")),
                ));
            }
        }
        if !self.is_seen.contains(&true) && !self.columns.is_empty() {
            return Err(Error::data(
                &self.source,
                "no column is named after a node of the model; say which is which with --columns",
            ));
        }
        for (node, values) in self.values.iter_mut().enumerate() {
            *values = self.is_seen[node].then(Vec::new);
        }
        self.local = match &self.options.local {
            Some(local) => local.clone(),
            None => local_nodes(self.model, &self.is_seen),
        };
        let unused = |(ix, column): (usize, &Column)| {
            column.node.is_none().then(|| names[ix].clone().unwrap_or_else(|| (ix + 1).to_string()))
        };
        let left_out: Vec<String> = self.columns.iter().enumerate().filter_map(unused).collect();
        if !left_out.is_empty() {
            self.warnings.push(Warning::ColumnsLeftOut { columns: left_out });
        }
        Ok(())
    }

    /// What the model calls the columns; none for those that `--columns` leaves out.
    fn column_names(&self) -> Result<Vec<Option<String>>> {
        let own: Option<Vec<String>> = self.columns.iter().map(|column| column.name.clone()).collect();
        let wanted = self.options.columns.as_ref();
        match (own, wanted) {
            (Some(own), None) => Ok(own.into_iter().map(Some).collect()),
            (Some(own), Some(chosen)) if chosen.iter().all(|name| own.contains(name)) => {
                Ok(own.into_iter().map(|name| Some(name).filter(|name| chosen.contains(name))).collect())
            }
            (own, wanted) => {
                let names = wanted.or(self.options.seen.as_ref().filter(|_| own.is_none()));
                let names = names.ok_or_else(|| {
                    Error::data(&self.source, "the columns have no names; say which nodes they are with --columns")
                })?;
                if names.len() != self.columns.len() {
                    return Err(Error::data(
                        &self.source,
                        format!("{} names for {} columns ({})", names.len(), self.columns.len(), names.join(", ")),
                    ));
                }
                Ok(names.iter().cloned().map(Some).collect())
            }
        }
    }

    fn code(&mut self, column_ix: usize, node: usize, cell: Cell<'_>, line: u64) -> Result<u32, String> {
        let (name, size) = (&self.model.nodes()[node].name, self.model.nodes()[node].size);
        match cell {
            Cell::Missing if self.local.contains(&NodeIndex(node as u32)) => Err(format!(
                "the value is missing, but each value of `{name}` has rows of its own; give one, or --local none"
            )),
            Cell::Missing => Ok(MISSING),
            Cell::Index(index) if index < size => Ok(index),
            Cell::Index(index) => {
                let first = self.columns[column_ix].first_number;
                Err(format!(
                    "index {} is beyond the declared size {size} of `{name}`; declare a larger size",
                    u64::from(index) + u64::from(first)
                ))
            }
            Cell::Label(label) if self.options.is_numbered.get(node) == Some(&true) => {
                label.parse().ok().filter(|&value: &u32| value < size).ok_or_else(|| {
                    format!(
                        "value `{}`: the prior is not even over the values of `{name}`, so a stream must number them 0 to {}",
                        label.escape_debug(),
                        size - 1
                    )
                })
            }
            Cell::Label(label) => {
                let code = self.interners[self.groups[node]].code(label, line).filter(|&code| code < size);
                code.ok_or_else(|| {
                    format!(
                        "`{}` is one label more than the declared size {size} of `{name}`; declare a larger size",
                        label.escape_debug()
                    )
                })
            }
        }
    }

    /// Where the batch ends: at the first row from the wanted number on that starts a new value of the first local node.
    fn look_for_cut(&mut self) {
        let (n, wanted) = (self.counts.len(), self.options.n_rows);
        if self.cut.is_some() || n < wanted {
            return;
        }
        let goes_on = self.local.first().is_some_and(|node| {
            let last = self.values[node.ix()].as_ref().and_then(|values| values.last());
            last == Some(&self.codes[node.ix()])
        });
        // A value that never ends must not fill the memory.
        if !goes_on || n >= 2 * wanted {
            self.cut = Some(n);
        }
    }

    fn deliver_first(&mut self, n_rows: usize) -> Result<()> {
        let columns: Vec<Option<Vec<u32>>> = self
            .values
            .iter_mut()
            .map(|values| values.as_mut().map(|values| values.drain(..n_rows).collect()))
            .collect();
        let counts: Vec<u64> = self.counts.drain(..n_rows).collect();
        let row_counts: CountList = counts.iter().copied().collect();
        let rows = Rows::new(&columns, counts);
        self.cut = None;
        let labels = self.model.nodes().iter().map(|node| Labels::Indexed { size: node.size, first: 0 }).collect();
        let counts = Counts::new(labels, &columns, &row_counts, Vec::new())?;
        let new_labels = self
            .interners
            .iter()
            .zip(&mut self.n_sent)
            .map(|(interner, n_sent)| {
                let new = interner.names[*n_sent..].to_vec();
                *n_sent = interner.names.len();
                new
            })
            .collect();
        let mut first_numbers = vec![0; self.model.n_nodes()];
        for column in &self.columns {
            if let Some(node) = column.node {
                first_numbers[self.groups[node]] = column.first_number;
            }
        }
        (self.deliver)(RowBatch {
            counts,
            rows,
            n_rows: n_rows as u64,
            is_seen: self.is_seen.clone(),
            local: self.local.clone(),
            new_labels,
            first_numbers,
            warnings: std::mem::take(&mut self.warnings),
        })
    }

    fn take<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        if !self.is_bound {
            self.bind_columns()?;
        }
        self.codes.clear();
        self.codes.resize(self.model.n_nodes(), MISSING);
        for (ix, cell) in cells.into_iter().enumerate() {
            let Some(node) = self.columns.get(ix).and_then(|column| column.node) else { continue };
            let code = self.code(ix, node, cell, line).map_err(|message| {
                let number = (ix + 1).to_string();
                let name = self.columns[ix].name.as_deref().unwrap_or(&number);
                Error::data_at(&self.source, line, Some(name), message)
            })?;
            self.codes[node] = code;
        }
        let count = match count {
            RowCount::Tokens(0) => return Ok(()),
            RowCount::Tokens(count) => count,
            RowCount::Fraction(..) => {
                let message =
                    format!("count {count} is not whole, and a stream needs whole ones; scale or round them first");
                return Err(Error::data_at(&self.source, line, Some("count"), message));
            }
            RowCount::Unknown => {
                let message = "the count is `?`, but a stream cannot have unknown cells; leave --stream out, or use fit --method vb";
                return Err(Error::data_at(&self.source, line, Some("count"), message));
            }
        };
        self.look_for_cut();
        for (values, &code) in self.values.iter_mut().zip(&self.codes) {
            if let Some(values) = values {
                values.push(code);
            }
        }
        self.counts.push(count);
        // Half a batch more must be there, so that the last one is never small: it would be a wild step.
        match self.cut {
            Some(cut) if self.counts.len() - cut >= self.options.n_rows.div_ceil(2) => self.deliver_first(cut),
            _ if self.options.is_prompt && self.counts.len() >= self.options.n_rows => {
                self.deliver_first(self.counts.len())
            }
            _ => Ok(()),
        }
    }
}

impl<F: FnMut(RowBatch) -> Result<()>> RowSink for Batcher<'_, F> {
    fn source(&mut self, name: &str) {
        name.clone_into(&mut self.source);
    }

    fn label_column(&mut self, name: Option<String>) {
        self.columns.push(Column { name, node: None, first_number: 0 });
    }

    fn index_column(&mut self, name: Option<String>, first: u32, _: Option<u32>) {
        self.columns.push(Column { name, node: None, first_number: first });
    }

    fn rows_are_tokens(&mut self) {}

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    fn push<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        self.take(line, cells, count)
    }
}

/// For each node the smallest node that shares its labels: tied nodes, and their parents by position.
fn label_groups(model: &Model) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..model.n_nodes()).collect();
    let mut join = |a: NodeIndex, b: NodeIndex| {
        let (a, b) = (groups[a.ix()], groups[b.ix()]);
        groups.iter_mut().filter(|group| **group == a.max(b)).for_each(|group| *group = a.min(b));
    };
    for table in model.tables() {
        for &member in &table.members[1..] {
            join(table.members[0], member);
            let parents = model.node(table.members[0]).parents.iter().zip(&model.node(member).parents);
            parents.for_each(|(&a, &b)| join(a, b));
        }
    }
    groups
}

/// The labels of a stream, gathered from its batches.
#[derive(Debug, Default)]
pub struct StreamLabels {
    names: Vec<Vec<String>>,
    first_numbers: Vec<u32>,
}

impl StreamLabels {
    /// Adds those that came with a batch.
    pub fn add(&mut self, batch: &RowBatch) {
        self.names.resize(batch.new_labels.len(), Vec::new());
        self.names.iter_mut().zip(&batch.new_labels).for_each(|(names, new)| names.extend(new.iter().cloned()));
        self.first_numbers.clone_from(&batch.first_numbers);
    }

    /// For each node the labels that came, in the order of their values, for [`BatchOptions::known`].
    pub fn names(&self) -> &[Vec<String>] {
        &self.names
    }

    /// For each node its labels in order (numbers by size, others by letters), and for each value as it was numbered in
    /// the stream the place of its label in that order; none where they are the same.
    pub fn in_order(&self, model: &Model) -> Vec<(Labels, Option<Vec<u32>>)> {
        let groups = label_groups(model);
        model.nodes().iter().zip(groups).map(|(node, group)| self.of_group(group, node.size)).collect()
    }

    fn of_group(&self, group: usize, size: u32) -> (Labels, Option<Vec<u32>>) {
        let names = self.names.get(group).map_or(&[][..], Vec::as_slice);
        if names.is_empty() {
            let first = self.first_numbers.get(group).copied().unwrap_or(0);
            return (Labels::Indexed { size, first }, None);
        }
        let as_number = |name: &String| name.parse::<u32>().ok().filter(|number| number.to_string() == *name);
        let numbers: Option<Vec<u32>> = names.iter().map(as_number).collect();
        if let Some(mut values) = numbers.clone().filter(|numbers| numbers.iter().all(|&number| number < size)) {
            // Numbers that did not come take the values that were not given out.
            let came: std::collections::BTreeSet<u32> = values.iter().copied().collect();
            let n_named = size.min(NAMED_UNSEEN.max(names.len() as u32));
            let others = (0..size).filter(|number| !came.contains(number));
            values.extend(others.take((n_named as usize).saturating_sub(names.len())));
            return (Labels::Indexed { size, first: 0 }, Some(values));
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        match &numbers {
            Some(numbers) => order.sort_by_key(|&ix| numbers[ix]),
            None => order.sort_by_key(|&ix| &names[ix]),
        }
        let mut places = vec![0; names.len()];
        order.iter().enumerate().for_each(|(place, &ix)| places[ix] = place as u32);
        let mut sorted: Vec<String> = order.into_iter().map(|ix| names[ix].clone()).collect();
        for (ix, value) in (names.len() as u32..size.min(NAMED_UNSEEN.max(names.len() as u32))).enumerate() {
            places.push(value);
            sorted.push(format!("(unseen {})", ix + 1));
        }
        (Labels::Named(sorted), Some(places))
    }
}
