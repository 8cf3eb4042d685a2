//! What is gone through in every sweep: the cells, and for each record where the cells lie that it weighs.

use super::arrangement::Arrangement;
use super::cells::{CellTable, CellTableBuilder, Use};
use super::messages::{Messages, Weights};
use super::numbers::Numbers;
use super::starts::Steps;
use crate::counts::{Counts, MISSING, Unit};
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::math::{Double, LnProduct};
use crate::plan::{Bucket, Elimination, Pattern, Plan};
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All of it.
#[derive(Debug)]
pub struct Layout {
    /// Tables with a use that is not wholly seen. The others are closed forms.
    pub tables: Vec<CellTable>,
    pub n_cells: usize,
    pub n_rows: usize,
    /// Records by pattern of seen nodes; wholly seen ones are not among them.
    pub groups: Vec<Group>,
    /// Counts that wholly seen families bring to stored cells, if there are any.
    pub fixed: Option<Vec<f64>>,
    /// ln of the closed form of the other tables.
    pub closed_form: Double,
    /// Cells that only wholly seen families use: table, values of the family, and count, in that order.
    pub certain: Vec<(TableIndex, Box<[u32]>, u64)>,
    /// What that count is counted in.
    pub unit: Unit,
}

/// Records in which the same nodes are seen.
#[derive(Debug)]
pub struct Group {
    /// Which block of the counts, or `None` for unknown cells.
    pub block: Option<usize>,
    /// How the unseen nodes are summed out.
    pub elimination: Arc<Elimination>,
    /// The nodes that are seen, and how many there are in all.
    seen: Vec<NodeIndex>,
    n_nodes: usize,
    /// The families with an unseen member; for unknown cells all families, since their number of tokens is not known.
    pub families: Vec<GroupFamily>,
}

/// Reads the records of one group, one at a time.
#[derive(Debug)]
pub struct Reader<'c> {
    counts: &'c Counts,
    block: Option<usize>,
    /// Values of all nodes; those of nodes with one value stay as they are.
    record: Vec<u32>,
}

impl<'c> Reader<'c> {
    /// For the records of a block, or for unknown cells.
    fn new(counts: &'c Counts, block: Option<usize>, n_nodes: usize, seen: &[NodeIndex]) -> Self {
        let mut record = vec![MISSING; n_nodes];
        // Nodes of one value are not in the data: they have their value.
        seen.iter().for_each(|node| record[node.ix()] = 0);
        Reader { counts, block, record }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.block.map_or(self.counts.unknown.len(), |block| self.counts.blocks[block].n_records())
    }

    /// The values of a record, one for each node.
    pub fn values(&mut self, record_ix: usize) -> &[u32] {
        let Some(block) = self.block else { return &self.counts.unknown[record_ix] };
        let block = &self.counts.blocks[block];
        for (&node, column) in block.seen.iter().zip(&block.values) {
            self.record[node as usize] = column[record_ix];
        }
        &self.record
    }

    /// The tokens of a record; unknown cells count one.
    pub fn n_tokens(&self, record_ix: usize) -> u64 {
        self.block.map_or(1, |block| self.counts.blocks[block].counts.at(record_ix))
    }

    /// Calls `f` with every record and its tokens.
    fn for_each(&mut self, mut f: impl FnMut(&[u32], u64)) {
        for record_ix in 0..self.len() {
            let n_tokens = self.n_tokens(record_ix);
            f(self.values(record_ix), n_tokens);
        }
    }
}

/// A family in the records of one group.
#[derive(Debug)]
pub struct GroupFamily {
    /// Whose cells: the position in [`Layout::tables`].
    pub table: usize,
    /// The bucket that it multiplies into; none for a family that is wholly seen.
    pub bucket: Option<usize>,
    /// For each state of the bucket the cell, counted from the record's first.
    pub offsets: Vec<u32>,
    /// Parents, then the node itself.
    nodes: Vec<NodeIndex>,
}

impl Group {
    /// Its records among the counts that the layout was made for.
    pub fn reader<'c>(&self, counts: &'c Counts) -> Reader<'c> {
        Reader::new(counts, self.block, self.n_nodes, &self.seen)
    }

    /// The nodes of a family that records show.
    pub fn shown(&self, family: usize) -> BTreeSet<NodeIndex> {
        let nodes = self.families[family].nodes.iter().copied();
        nodes.filter(|node| self.seen.binary_search(node).is_ok()).collect()
    }

    /// The number of hidden values when there is one unseen node and every family has its cells side by side.
    pub fn mixture_size(&self) -> Option<usize> {
        let [bucket] = self.elimination.buckets() else { return None };
        let is_in_order = |family: &GroupFamily| {
            family.bucket.is_some() && family.offsets.iter().enumerate().all(|(ix, &at)| ix == at as usize)
        };
        (self.block.is_some() && self.families.iter().all(is_in_order)).then_some(bucket.n_states)
    }

    /// Work for one sweep over this many records, in cells.
    pub fn work(&self, n_records: usize) -> f64 {
        n_records as f64 * (self.elimination.n_states() * (self.families.len() + 2)) as f64
    }
}

/// A node's family: parents, then the node.
fn family(model: &Model, node: NodeIndex) -> Vec<NodeIndex> {
    model.node(node).parents.iter().copied().chain([node]).collect()
}

/// Records of one pattern before they are placed.
struct Source<'a> {
    block: Option<usize>,
    pattern: &'a Pattern,
    is_seen: Vec<bool>,
}

impl Source<'_> {
    fn reader<'c>(&self, counts: &'c Counts) -> Reader<'c> {
        Reader::new(counts, self.block, self.is_seen.len(), &self.pattern.seen)
    }
}

impl Layout {
    /// Numbers the cells that the records of a problem use.
    ///
    /// # Errors
    /// When there are too many of them.
    pub fn new(problem: &Problem<'_>) -> Result<Self> {
        let (model, counts) = (problem.model, problem.counts);
        let plan = plan(problem)?;
        let sources: Vec<Source<'_>> = plan
            .patterns()
            .iter()
            .enumerate()
            .map(|(ix, pattern)| {
                let mut is_seen = vec![false; model.n_nodes()];
                pattern.seen.iter().for_each(|node| is_seen[node.ix()] = true);
                Source { block: (ix < counts.blocks.len()).then_some(ix), pattern, is_seen }
            })
            .collect();
        let mut uses: HashMap<TableIndex, Vec<Use>> = HashMap::new();
        let mut is_stored = vec![false; model.tables().len()];
        for source in &sources {
            for &node in &source.pattern.relevant {
                let nodes = family(model, node);
                let is_seen: Vec<bool> = nodes.iter().map(|node| source.is_seen[node.ix()]).collect();
                is_stored[model.node(node).table.ix()] |= source.block.is_none() || is_seen.contains(&false);
                uses.entry(model.node(node).table).or_default().push(Use { is_seen });
            }
        }
        let mut builders: Vec<(TableIndex, CellTableBuilder)> = Vec::new();
        for table in (0..model.tables().len() as u32).map(TableIndex) {
            if is_stored[table.ix()] {
                builders.push((table, CellTableBuilder::new(model, table, &uses[&table], counts.n_records())?));
            }
        }
        let position: HashMap<TableIndex, usize> =
            builders.iter().enumerate().map(|(ix, (table, _))| (*table, ix)).collect();
        for source in &sources {
            let stored: Vec<(usize, Vec<NodeIndex>)> = source
                .pattern
                .relevant
                .iter()
                .filter_map(|&node| Some((*position.get(&model.node(node).table)?, family(model, node))))
                .collect();
            source.reader(counts).for_each(|record, _| {
                stored.iter().for_each(|(table, nodes)| builders[*table].1.mark(nodes, record));
            });
        }
        let (mut tables, mut n_cells, mut n_rows) = (Vec::new(), 0, 0);
        for (_, builder) in builders {
            let table = builder.finish(problem.prior, n_cells, n_rows)?;
            // Every table starts with a line of the cache.
            n_cells = (n_cells + table.n_cells()).next_multiple_of(8);
            n_rows += table.n_rows();
            tables.push(table);
        }
        let mut layout = Layout {
            tables,
            n_cells,
            n_rows,
            groups: Vec::new(),
            fixed: None,
            closed_form: Double::ZERO,
            certain: Vec::new(),
            unit: counts.unit,
        };
        let mut certain: HashMap<(TableIndex, Box<[u32]>), u64> = HashMap::new();
        sources.iter().for_each(|source| layout.add_group(model, counts, source, &position, &mut certain));
        layout.certain = certain.into_iter().map(|((table, values), count)| (table, values, count)).collect();
        layout.certain.sort_unstable();
        layout.closed_form = layout.closed_form(problem);
        Ok(layout)
    }

    fn add_group(
        &mut self,
        model: &Model,
        counts: &Counts,
        source: &Source<'_>,
        position: &HashMap<TableIndex, usize>,
        certain: &mut HashMap<(TableIndex, Box<[u32]>), u64>,
    ) {
        let Source { block, pattern, is_seen } = source;
        let (closed, open) = match block {
            Some(_) => (&pattern.closed[..], &pattern.open[..]),
            None => (&[][..], &pattern.relevant[..]),
        };
        for &node in closed {
            let (table, nodes) = (model.node(node).table, family(model, node));
            match position.get(&table) {
                None => source.reader(counts).for_each(|record, count| {
                    let values: Box<[u32]> = nodes.iter().map(|node| record[node.ix()]).collect();
                    *certain.entry((table, values)).or_insert(0) += count;
                }),
                Some(&stored) => {
                    let fixed = self.fixed.get_or_insert_with(|| vec![0.0; self.n_cells]);
                    let table = &self.tables[stored];
                    source.reader(counts).for_each(|record, count| {
                        fixed[start(table, &nodes, record) as usize] += counts.tokens(count);
                    });
                }
            }
        }
        if open.is_empty() {
            return;
        }
        let place = |&node: &NodeIndex| {
            let (table, nodes) = (position[&model.node(node).table], family(model, node));
            let bucket = pattern.elimination.bucket_of(node);
            let offsets = bucket
                .map_or(vec![0], |bucket| offsets(&self.tables[table], &nodes, &pattern.elimination.buckets()[bucket]));
            GroupFamily { table, bucket, offsets, nodes }
        };
        let families = open.iter().map(place).collect();
        let seen = model.node_indices().filter(|node| is_seen[node.ix()]).collect();
        let elimination = pattern.elimination.clone();
        self.groups.push(Group { block: *block, elimination, seen, n_nodes: is_seen.len(), families });
    }

    /// The first cell of a family of a group among all, for a record's values.
    pub fn start(&self, family: &GroupFamily, record: &[u32]) -> u32 {
        start(&self.tables[family.table], &family.nodes, record)
    }

    /// The starts that a family of a group can have: blocks that all its shown nodes pick, or parts of them.
    pub fn steps(&self, group: &Group, family: usize) -> Steps {
        let GroupFamily { table, nodes, .. } = &group.families[family];
        let table = &self.tables[*table];
        let places = nodes.iter().zip(table.shape.is_key.iter().zip(&table.shape.strides));
        let in_block = places.filter(|(node, (is_key, _))| !**is_key && group.seen.binary_search(node).is_ok());
        // Strides within a block are multiples of each other.
        let step = in_block.map(|(_, (_, &stride))| stride).min().unwrap_or(table.shape.interior);
        Steps { first: table.first_cell as u32, step: step as u32, n: table.n_cells().div_ceil(step) }
    }

    /// ln likelihood of all families of stored tables, for the records of all groups and these probabilities of all cells.
    pub fn ln_likelihood(&self, arrangements: &[Arrangement], weights: &Numbers) -> f64 {
        let mut messages = Messages::default();
        let mut ln = 0.0;
        for arrangement in arrangements {
            let group = &self.groups[arrangement.group];
            // Unknown cells have no tokens that were seen.
            if group.block.is_some() {
                arrangement.for_each_record(|starts, count| {
                    ln += count * messages.collect(group, starts, Weights { values: weights, logs: None });
                });
            }
        }
        let fixed = self.fixed.iter().flatten().zip(weights.iter()).filter(|(fixed, _)| **fixed > 0.0);
        ln + fixed.map(|(fixed, weight)| fixed * weight.ln()).sum::<f64>()
    }

    /// The rows of certain cells: table, values of the parents, and count.
    pub fn certain_rows(&self) -> BTreeMap<(TableIndex, &[u32]), u64> {
        let mut rows = BTreeMap::new();
        for (table, values, count) in &self.certain {
            *rows.entry((*table, &values[..values.len() - 1])).or_insert(0) += count;
        }
        rows
    }

    fn closed_form(&self, problem: &Problem<'_>) -> Double {
        let (prior, is_whole) = (problem.prior, problem.counts.unit.is_token());
        let cells = self.certain.iter().map(|(table, values, count)| (*table, &values[..], *count));
        let cells = cells
            .map(|(table, values, count)| (Kind::Cell, Kind::Cell.pseudo_count(prior.table(table), values), count));
        let rows = self.certain_rows().into_iter();
        let rows =
            rows.map(|((table, values), count)| (Kind::Row, Kind::Row.pseudo_count(prior.table(table), values), count));
        let mut product = LnProduct::new();
        let mut sum = Double::ZERO;
        for (kind, pseudo, count) in cells.chain(rows) {
            if is_whole {
                kind.multiply_closed_form(pseudo, count, &mut product);
                continue;
            }
            // As there: a row of zeros has only cells of zeros.
            if kind == Kind::Row && pseudo.is_zero() {
                continue;
            }
            let ln = Double::ln_rising(pseudo.value, pseudo.ln_if_tiny, self.unit.exact_tokens(count));
            sum = if kind == Kind::Cell { sum + ln } else { sum - ln };
        }
        product.ln() + sum
    }
}

/// The plan, except that unseen nodes of one value count as seen, and with a pattern for unknown cells behind the others.
fn plan(problem: &Problem<'_>) -> Result<Plan> {
    let model = problem.model;
    let mut seen_sets: Vec<Vec<NodeIndex>> = Vec::new();
    for pattern in problem.plan.patterns() {
        let has_one_value = |node: &NodeIndex| model.node(*node).size == 1;
        let mut seen: Vec<NodeIndex> =
            pattern.seen.iter().chain(pattern.unseen.iter().filter(|node| has_one_value(node))).copied().collect();
        seen.sort_unstable();
        seen_sets.push(seen);
    }
    if let Some(cell) = problem.counts.unknown.first() {
        if problem
            .counts
            .unknown
            .iter()
            .any(|other| other.iter().zip(cell).any(|(other, first)| (*other == MISSING) != (*first == MISSING)))
        {
            return Err(Error::Setting("unknown cells must all show the same nodes".into()));
        }
        seen_sets.push(model.node_indices().filter(|node| cell[node.ix()] != MISSING).collect());
    }
    Plan::compile(model, &seen_sets)
}

/// The first cell of a record's family among all.
fn start(table: &CellTable, nodes: &[NodeIndex], record: &[u32]) -> u32 {
    let block = table.keys.block(table.shape.key(nodes, record));
    (table.first_cell + block * table.shape.interior + table.shape.offset(nodes, record)) as u32
}

/// For each state of the bucket that a family multiplies into its cell, counted from the record's first.
fn offsets(table: &CellTable, nodes: &[NodeIndex], bucket: &Bucket) -> Vec<u32> {
    let mut offsets = vec![0u32];
    for (&member, &size) in bucket.scope.iter().zip(&bucket.sizes) {
        let stride: usize = nodes
            .iter()
            .zip(&table.shape.strides)
            .filter(|(node, _)| **node == member)
            .map(|(_, &stride)| stride)
            .sum();
        offsets = offsets.iter().flat_map(|&at| (0..size).map(move |value| at + value * stride as u32)).collect();
    }
    offsets
}
