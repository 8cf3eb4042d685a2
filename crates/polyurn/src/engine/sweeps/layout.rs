//! What is gone through in every sweep: the cells, and for each record where the cells lie that it weighs.

use super::cells::{CellTable, CellTableBuilder, Use};
use super::messages::{Messages, Weights};
use super::numbers::Numbers;
use crate::counts::{Counts, MISSING};
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::math::{Double, LnProduct};
use crate::plan::{Bucket, Elimination, Pattern, Plan};
use hashbrown::HashMap;
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
    /// Cells that only wholly seen families use: table, values of the family, count.
    pub certain: Vec<(TableIndex, Box<[u32]>, u64)>,
}

/// Records in which the same nodes are seen.
#[derive(Debug)]
pub struct Group {
    /// Which block of the counts, or `None` for unknown cells.
    pub block: Option<usize>,
    /// How the unseen nodes are summed out.
    pub elimination: Arc<Elimination>,
    /// The families with an unseen member; for unknown cells all families, since their number of tokens is not known.
    pub families: Vec<GroupFamily>,
}

/// The records of one group.
#[derive(Debug, Clone)]
pub struct Records {
    /// For each record and family the first of its cells.
    pub starts: Vec<u32>,
    /// Number of tokens of each record.
    pub counts: Vec<f64>,
    n_families: usize,
}

impl Records {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Where the cells of a record start, family by family.
    pub fn starts_of(&self, record: usize) -> &[u32] {
        &self.starts[record * self.n_families..][..self.n_families]
    }

    /// Every record: where its cells start, and its number of tokens.
    pub fn iter(&self) -> impl Iterator<Item = (&[u32], f64)> {
        self.starts.chunks_exact(self.n_families).zip(self.counts.iter().copied())
    }

    /// The same records in another order.
    pub fn in_order(&self, order: &[u32]) -> Self {
        let mut starts = Vec::with_capacity(self.starts.len());
        order.iter().for_each(|&record| starts.extend_from_slice(self.starts_of(record as usize)));
        let counts = order.iter().map(|&record| self.counts[record as usize]).collect();
        Records { starts, counts, n_families: self.n_families }
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
}

impl Group {
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

impl Layout {
    /// Numbers the cells that the records of a problem use; and the records of each group.
    ///
    /// # Errors
    /// When there are too many of them.
    pub fn new(problem: &Problem<'_>) -> Result<(Self, Vec<Records>)> {
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
            for_each_record(counts, source, |record, _| {
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
        };
        let mut certain: HashMap<(TableIndex, Box<[u32]>), u64> = HashMap::new();
        let added = sources.iter().map(|source| layout.add_group(model, counts, source, &position, &mut certain));
        let records = added.collect::<Vec<_>>().into_iter().flatten().collect();
        layout.certain = certain.into_iter().map(|((table, values), count)| (table, values, count)).collect();
        layout.certain.sort_unstable();
        layout.closed_form = layout.closed_form(problem);
        Ok((layout, records))
    }

    fn add_group(
        &mut self,
        model: &Model,
        counts: &Counts,
        source: &Source<'_>,
        position: &HashMap<TableIndex, usize>,
        certain: &mut HashMap<(TableIndex, Box<[u32]>), u64>,
    ) -> Option<Records> {
        let Source { block, pattern, .. } = source;
        let (closed, open) = match block {
            Some(_) => (&pattern.closed[..], &pattern.open[..]),
            None => (&[][..], &pattern.relevant[..]),
        };
        for &node in closed {
            let (table, nodes) = (model.node(node).table, family(model, node));
            match position.get(&table) {
                None => for_each_record(counts, source, |record, count| {
                    let values: Box<[u32]> = nodes.iter().map(|node| record[node.ix()]).collect();
                    *certain.entry((table, values)).or_insert(0) += count;
                }),
                Some(&stored) => {
                    let fixed = self.fixed.get_or_insert_with(|| vec![0.0; self.n_cells]);
                    let table = &self.tables[stored];
                    for_each_record(counts, source, |record, count| {
                        fixed[start(table, &nodes, record) as usize] += count as f64;
                    });
                }
            }
        }
        if open.is_empty() {
            return None;
        }
        let placed: Vec<(usize, Vec<NodeIndex>)> =
            open.iter().map(|&node| (position[&model.node(node).table], family(model, node))).collect();
        let families: Vec<GroupFamily> = placed
            .iter()
            .zip(open)
            .map(|((table, nodes), &node)| {
                let bucket = pattern.elimination.bucket_of(node);
                let offsets = bucket.map_or(vec![0], |bucket| {
                    offsets(&self.tables[*table], nodes, &pattern.elimination.buckets()[bucket])
                });
                GroupFamily { table: *table, bucket, offsets }
            })
            .collect();
        let n_records = block.map_or(counts.unknown.len(), |block| counts.blocks[block].n_records());
        let mut starts = Vec::with_capacity(n_records * placed.len());
        let mut group_counts = Vec::with_capacity(n_records);
        let tables = &self.tables;
        for_each_record(counts, source, |record, count| {
            starts.extend(placed.iter().map(|(table, nodes)| start(&tables[*table], nodes, record)));
            group_counts.push(count as f64);
        });
        let (elimination, n_families) = (pattern.elimination.clone(), families.len());
        self.groups.push(Group { block: *block, elimination, families });
        Some(Records { starts, counts: group_counts, n_families })
    }

    /// ln likelihood of all families of stored tables, for the records of groups and these probabilities of all cells.
    pub fn ln_likelihood<'r>(&self, records: impl Iterator<Item = (usize, &'r Records)>, weights: &Numbers) -> f64 {
        let mut messages = Messages::default();
        let mut ln = 0.0;
        for (group, records) in records.map(|(group, records)| (&self.groups[group], records)) {
            // Unknown cells have no tokens that were seen.
            if group.block.is_some() {
                for (starts, count) in records.iter() {
                    ln += count * messages.collect(group, starts, Weights { values: weights, logs: None });
                }
            }
        }
        let fixed = self.fixed.iter().flatten().zip(weights.iter()).filter(|(fixed, _)| **fixed > 0.0);
        ln + fixed.map(|(fixed, weight)| fixed * weight.ln()).sum::<f64>()
    }

    fn closed_form(&self, problem: &Problem<'_>) -> Double {
        let mut product = LnProduct::new();
        let mut rows: HashMap<(TableIndex, &[u32]), u64> = HashMap::new();
        for (table, values, count) in &self.certain {
            let pseudo = Kind::Cell.pseudo_count(problem.prior.table(*table), values);
            Kind::Cell.multiply_closed_form(pseudo, *count, &mut product);
            *rows.entry((*table, &values[..values.len() - 1])).or_insert(0) += count;
        }
        let mut rows: Vec<((TableIndex, &[u32]), u64)> = rows.into_iter().collect();
        rows.sort_unstable();
        for ((table, values), count) in rows {
            let pseudo = Kind::Row.pseudo_count(problem.prior.table(table), values);
            Kind::Row.multiply_closed_form(pseudo, count, &mut product);
        }
        product.ln()
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

/// Calls `f` with every record and its count; unknown cells count one.
fn for_each_record(counts: &Counts, source: &Source<'_>, mut f: impl FnMut(&[u32], u64)) {
    let mut record = vec![MISSING; source.is_seen.len()];
    match source.block {
        None => counts.unknown.iter().for_each(|cell| f(cell, 1)),
        Some(block) => {
            let block = &counts.blocks[block];
            for record_ix in 0..block.n_records() {
                // Nodes of one value are not in the data: they have their value.
                source.pattern.seen.iter().for_each(|node| record[node.ix()] = 0);
                for (&node, column) in block.seen.iter().zip(&block.values) {
                    record[node as usize] = column[record_ix];
                }
                f(&record, block.counts[record_ix]);
            }
        }
    }
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
