//! Rows of a file in the terms of a fit, in blocks, with the columns that are to be kept.

use super::block::{Block, NO_LABEL};
use super::new_values::NewValues;
use polyurn::counts::{Cell, Labels, MISSING, RowCount, RowSink};
use polyurn::fit_file::FitFile;
use polyurn::graph::NodeIndex;
use polyurn::predict::Predictor;
use polyurn::{Error, Result, Stop, Warning};
use std::collections::HashMap;

/// From what values are called to their codes.
pub struct ValueNames<'f> {
    nodes: Vec<Lookup<'f>>,
}

enum Lookup<'f> {
    Named(HashMap<&'f str, u32>),
    Indexed { size: u32, first: u32 },
}

impl<'f> ValueNames<'f> {
    /// Those of a fit.
    pub fn new(fit: &'f FitFile) -> Self {
        let of_node = |labels: &'f Labels| match labels {
            Labels::Named(names) => Lookup::Named(names.iter().map(String::as_str).zip(0..).collect()),
            Labels::Indexed { size, first } => Lookup::Indexed { size: *size, first: *first },
        };
        ValueNames { nodes: fit.labels.iter().map(of_node).collect() }
    }

    fn find(&self, node: usize, name: &str) -> Option<u32> {
        match &self.nodes[node] {
            Lookup::Named(names) => names.get(name).copied(),
            Lookup::Indexed { size, first } => {
                // Only as it would be printed: 7, not 07 or +7.
                let is_plain = name == "0" || !name.starts_with(['0', '+']);
                let number: u32 = name.parse().ok().filter(|_| is_plain)?;
                number.checked_sub(*first).filter(|value| value < size)
            }
        }
    }
}

/// Which columns are which.
#[derive(Debug, Default)]
pub struct Binding {
    /// For each column its node.
    node_of: Vec<Option<usize>>,
    /// For each kept column its place in the file; none for the counts.
    kept: Vec<Option<usize>>,
    /// Their names.
    pub kept_names: Vec<String>,
}

impl Binding {
    /// Nodes that have a column, ascending.
    pub fn nodes(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        let mut nodes: Vec<usize> = self.node_of.iter().flatten().copied().collect();
        nodes.sort_unstable();
        nodes.into_iter().map(|node| NodeIndex(node as u32))
    }
}

/// How rows are read.
pub struct Reading<'a> {
    pub predictor: &'a Predictor<'a>,
    pub names: &'a ValueNames<'a>,
    /// `--columns`.
    pub columns: Option<Vec<String>>,
    /// Columns to keep.
    pub keep: &'a [String],
    /// Whether values that the fit does not know count as missing.
    pub drops: bool,
    /// Whether rows of a new value must stand together; then no block ends between them.
    pub together: bool,
    /// Whether a count of `?` is refused.
    pub needs_counts: bool,
}

/// Reads rows and delivers blocks.
pub struct RowReader<'a, F> {
    reading: Reading<'a>,
    new_values: &'a mut NewValues,
    deliver: F,
    source: String,
    /// Name and first number of each column.
    columns: Vec<(Option<String>, u32)>,
    has_counts: bool,
    binding: Option<Binding>,
    block: Block,
    warnings: Vec<Warning>,
    row: Vec<u32>,
    row_labels: Vec<u32>,
    row_kept: Vec<String>,
}

impl<'a, F: FnMut(&Binding, &Block, &mut NewValues) -> Result<()>> RowReader<'a, F> {
    pub fn new(reading: Reading<'a>, new_values: &'a mut NewValues, deliver: F) -> Self {
        let predictor = reading.predictor;
        let (n_nodes, n_open) = (predictor.fit().model.n_nodes(), predictor.open_roots().len());
        RowReader {
            reading,
            new_values,
            deliver,
            source: String::new(),
            columns: Vec::new(),
            has_counts: true,
            binding: None,
            block: Block { n_nodes, n_open, ..Block::default() },
            warnings: Vec::new(),
            row: vec![MISSING; n_nodes],
            row_labels: vec![NO_LABEL; n_open],
            row_kept: Vec::new(),
        }
    }

    /// Delivers the last block, and one without rows where there were none at all.
    pub fn finish(&mut self) -> Result<()> {
        self.bind()?;
        self.send()
    }

    pub fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn send(&mut self) -> Result<()> {
        if crate::signals::cancel().is_over() {
            return Err(Error::Stopped(Stop::Cancelled));
        }
        let binding = self.binding.as_ref().expect("bound before the first row");
        (self.deliver)(binding, &self.block, self.new_values)?;
        self.block.clear();
        Ok(())
    }

    /// Finds the node of each column, and the columns to keep.
    fn bind(&mut self) -> Result<()> {
        if self.binding.is_some() {
            return Ok(());
        }
        let names = self.column_names()?;
        let model = &self.reading.predictor.fit().model;
        let node_of: Vec<Option<usize>> =
            names.iter().map(|name| name.as_ref().and_then(|name| model.find(name)).map(|node| node.ix())).collect();
        if node_of.iter().all(Option::is_none) && !names.is_empty() {
            let nodes: Vec<&str> = model.nodes().iter().map(|node| node.name.as_str()).collect();
            return Err(Error::data(
                &self.source,
                format!(
                    "no column is named after a node of the fit ({}); say which is which with --columns",
                    nodes.join(", ")
                ),
            ));
        }
        let find = |name: &str| {
            let mut columns = self.columns.iter().zip(&names);
            columns.position(|((own, _), named)| [own, named].into_iter().any(|known| known.as_deref() == Some(name)))
        };
        let place = |name: &&str| -> Result<Option<usize>> {
            match find(name) {
                Some(at) => Ok(Some(at)),
                None if *name == "count" && self.has_counts => Ok(None),
                None => {
                    let counts = self.has_counts.then_some("count");
                    let known: Vec<&str> = names.iter().flatten().map(String::as_str).chain(counts).collect();
                    let message = format!("there is no column `{name}` to keep; the columns are {}", known.join(", "));
                    Err(Error::data(&self.source, message))
                }
            }
        };
        // A name with commas of its own is one name.
        let split = |text: &'a String| match find(text) {
            Some(_) => vec![text.as_str()],
            None => text.split(',').map(str::trim).collect(),
        };
        let wanted: Vec<&str> = self.reading.keep.iter().flat_map(split).collect();
        let kept = wanted.iter().map(place).collect::<Result<_>>()?;
        let kept_names = wanted.iter().map(|name| (*name).to_owned()).collect();
        self.binding = Some(Binding { node_of, kept, kept_names });
        Ok(())
    }

    /// What the fit calls the columns.
    fn column_names(&self) -> Result<Vec<Option<String>>> {
        let own: Option<Vec<String>> = self.columns.iter().map(|column| column.0.clone()).collect();
        let fit = self.reading.predictor.fit();
        match (own, &self.reading.columns) {
            (Some(own), None) => Ok(own.into_iter().map(Some).collect()),
            (Some(own), Some(chosen)) if chosen.iter().all(|name| own.contains(name)) => {
                Ok(own.into_iter().map(|name| Some(name).filter(|name| chosen.contains(name))).collect())
            }
            (_, Some(names)) if names.len() == self.columns.len() => Ok(names.iter().cloned().map(Some).collect()),
            (_, Some(names)) => Err(Error::Setting(format!(
                "--columns names {} columns but {} has {}",
                names.len(),
                self.source,
                self.columns.len()
            ))),
            (None, None) => {
                let mut seen: Vec<String> = fit
                    .model
                    .node_indices()
                    .filter(|node| fit.is_seen[node.ix()])
                    .map(|node| fit.model.node(node).name.clone())
                    .collect();
                // Presets call the axes i1, i2, .. whatever the order of their nodes.
                let axis = |name: &String| name.strip_prefix('i').and_then(|number| number.parse::<usize>().ok());
                if seen.iter().all(|name| axis(name).is_some()) {
                    seen.sort_by_key(axis);
                }
                if seen.len() != self.columns.len() {
                    return Err(Error::data(
                        &self.source,
                        format!(
                            "there are {} axes without names but the fit has {} seen nodes ({}); say which is which with \
                             --columns",
                            self.columns.len(),
                            seen.len(),
                            seen.join(", ")
                        ),
                    ));
                }
                Ok(seen.into_iter().map(Some).collect())
            }
        }
    }

    fn take<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        self.bind()?;
        if self.reading.needs_counts && count == RowCount::Unknown {
            let message =
                "the count is `?`, and a row is scored as often as its count says; give a number, or leave the row out";
            return Err(Error::data_at(&self.source, line, None, message.to_owned()));
        }
        let mut binding = self.binding.take().expect("just bound");
        let result = self.read_row(&mut binding, line, cells, count);
        self.binding = Some(binding);
        result?;
        let goes_on = self.reading.together && self.new_values.goes_on(&self.block, &self.row_labels);
        if self.block.n_rows() >= super::BLOCK && !goes_on {
            self.send()?;
        }
        if self.reading.together {
            self.new_values.stand_together(&self.row_labels).map_err(|name| {
                let message = format!(
                    "the new value `{}` came before, and other rows after it; rows of a new value must stand together here, \
                     so sort them, or give a file without --together",
                    name.escape_debug()
                );
                Error::data_at(&self.source, line, None, message)
            })?;
        }
        self.block.codes.extend_from_slice(&self.row);
        self.block.new_labels.extend_from_slice(&self.row_labels);
        self.block.counts.push(count);
        self.block.kept.append(&mut self.row_kept);
        Ok(())
    }

    fn read_row<'c>(
        &mut self,
        binding: &mut Binding,
        line: u64,
        cells: impl IntoIterator<Item = Cell<'c>>,
        count: RowCount,
    ) -> Result<()> {
        self.row.fill(MISSING);
        self.row_labels.fill(NO_LABEL);
        self.row_kept.clear();
        self.row_kept.resize(binding.kept.len(), String::new());
        for (ix, cell) in cells.into_iter().enumerate() {
            let is_kept = binding.kept.contains(&Some(ix));
            let node = binding.node_of.get(ix).copied().flatten();
            if !is_kept && node.is_none() {
                continue;
            }
            let number;
            let name = match cell {
                Cell::Missing => continue,
                Cell::Label(name) => name,
                Cell::Index(value) => {
                    number = (u64::from(value) + u64::from(self.columns[ix].1)).to_string();
                    &number
                }
            };
            if is_kept {
                for (kept, _) in self.row_kept.iter_mut().zip(&binding.kept).filter(|(_, at)| **at == Some(ix)) {
                    name.clone_into(kept);
                }
            }
            if let Some(node) = node {
                self.row[node] = self.value(node, name, ix, line)?;
            }
        }
        for (kept, _) in self.row_kept.iter_mut().zip(&binding.kept).filter(|(_, at)| at.is_none()) {
            *kept = count.to_string();
        }
        Ok(())
    }

    /// The code of a value: one that the fit knows, a new one of an open root, or none.
    fn value(&mut self, node: usize, name: &str, column: usize, line: u64) -> Result<u32> {
        let index = NodeIndex(node as u32);
        if let Some(value) = self.reading.names.find(node, name) {
            if let Some(root) = self.reading.predictor.open_roots().iter().position(|&root| root == index) {
                self.new_values.know(root, value);
            }
            return Ok(value);
        }
        if let Some(new) = self.reading.predictor.new_value(index) {
            let root =
                self.reading.predictor.open_roots().iter().position(|&root| root == index).expect("an open root");
            self.row_labels[root] = self.new_values.label(root, name);
            return Ok(new);
        }
        if self.reading.drops {
            self.block.n_dropped += 1;
            return Ok(MISSING);
        }
        let number = (column + 1).to_string();
        let own = self.columns[column].0.as_deref().unwrap_or(&number);
        let fit = self.reading.predictor.fit();
        let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
        let message = format!(
            "value `{shown}` of `{}` was not in the data of the fit; correct it, or take such values as missing with --unseen \
             drop",
            fit.model.node(index).name
        );
        Err(Error::data_at(&self.source, line, Some(own), message))
    }
}

impl<F: FnMut(&Binding, &Block, &mut NewValues) -> Result<()>> RowSink for RowReader<'_, F> {
    fn source(&mut self, name: &str) {
        name.clone_into(&mut self.source);
    }

    fn label_column(&mut self, name: Option<String>) {
        self.columns.push((name, 0));
    }

    fn index_column(&mut self, name: Option<String>, first: u32, _: Option<u32>) {
        self.columns.push((name, first));
    }

    fn rows_are_tokens(&mut self) {
        self.has_counts = false;
    }

    fn takes_fractions(&self) -> bool {
        true
    }

    fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    fn push<'c>(&mut self, line: u64, cells: impl IntoIterator<Item = Cell<'c>>, count: RowCount) -> Result<()> {
        self.take(line, cells, count)
    }
}
