//! Which numbers a particle has to keep, and which of them a record touches.
//!
//! The counters of a model are the cells and the row sums of its tables. A counter whose values are seen in every use is
//! the same in all particles: it goes into a closed form, once. The others are *lines*, one number per particle. Lines
//! that belong to one value of the seen nodes form a *block*: in a CP model the counts of one row label under every
//! component. Counters that are touched by the same nodes always hold the same number and share their lines: the count of
//! component r and the row sums of all tables below r.

use super::kernel::{BucketShape, Kernel, Term, Touch};
use crate::counts::MISSING;
use crate::engine::Problem;
use crate::engine::assignments::for_each_assignment;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::math::{Double, LnProduct, ln_factorial};
use crate::plan::{Pattern, with_ancestors};
use crate::prior::{Prior, PseudoCount, PseudoCounts};
use hashbrown::HashMap;

/// A cell of a table, or a whole row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Parents and child.
    Cell,
    /// Parents only.
    Row,
}

/// Joint states of a record's unseen nodes up to which they are handled as one variable even where message passing
/// would touch fewer numbers: one flat loop is faster.
const ALWAYS_JOINT: f64 = 64.0;

/// The same for records that use a tied table more than once: only the joint states make such a token exact.
const JOINT_IF_TIED: f64 = 4096.0;

/// How far from zero ln of a product of terms may be for it to be computed as a product; beyond, logs are added up.
const LN_RANGE: f64 = 600.0;

/// Lines of all particles are numbered with 32 bits.
const MAX_LINES: f64 = (1u64 << 31) as f64;

/// Counters touched by the same nodes: they share their lines.
#[derive(Debug)]
pub struct Class {
    /// Number of lines of a block.
    pub interior: usize,
    /// For each position its share in the number of the line within a block; 0 for positions that pick the block.
    strides: Vec<usize>,
    /// Whether the position picks the block.
    is_key: Vec<bool>,
    sizes: Vec<u32>,
    blocks: HashMap<Box<[u32]>, u32>,
}

/// The cells or the rows of one table, with their pseudo-counts.
#[derive(Debug)]
pub struct Counted {
    pub table: TableIndex,
    pub kind: Kind,
    pub class: usize,
    /// The pseudo-count of every line, or one by one: by block, and within the block by line.
    pub pseudo: Pseudo,
}

/// Pseudo-counts of lines.
#[derive(Debug)]
pub enum Pseudo {
    /// All the same.
    Even(PseudoCount),
    /// For each block of the class, in the order of the blocks within it.
    PerLine(Vec<PseudoCount>),
}

/// Lines of one class that belong to one value of the seen nodes.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Its class.
    pub class: u32,
    /// Its number within the class.
    pub in_class: u32,
    /// How often all tokens together touch it.
    pub n_uses: u64,
}

/// Where a record's touch lies: a block and, for tables that are kept whole, the offset of the seen values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub block: u32,
    pub offset: u32,
}

/// Records that touch lines.
#[derive(Debug, Default)]
pub struct Records {
    /// Kernel of each record.
    pub kernel: Vec<u32>,
    /// Tokens of each record.
    pub count: Vec<u64>,
    /// Block of the counts and number of the record in it, to find its values again.
    pub source: Vec<(u32, u32)>,
    /// First entry in `places`.
    start: Vec<u32>,
    places: Vec<Place>,
}

impl Records {
    /// The places a record touches, in the order of its kernel's touches.
    pub fn places(&self, record: usize) -> &[Place] {
        let end = self.start.get(record + 1).map_or(self.places.len(), |&end| end as usize);
        &self.places[self.start[record] as usize..end]
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.kernel.len()
    }
}

/// A row that every token in an unknown cell uses.
#[derive(Debug)]
pub struct CertainRow {
    pub table: TableIndex,
    /// Its pseudo-count.
    pub pseudo: f64,
    /// Uses by seen tokens.
    pub n_seen: u64,
}

/// Everything about a problem that does not depend on the particles.
#[derive(Debug)]
pub struct Layout {
    pub classes: Vec<Class>,
    pub counted: Vec<Counted>,
    pub blocks: Vec<Block>,
    /// One kernel per pattern; the last one is for tokens in unknown cells if there are any.
    pub kernels: Vec<Kernel>,
    pub records: Records,
    /// Places of a token in an unknown cell.
    pub unknown: Option<Vec<Place>>,
    /// Rows without parents: the same in all particles, also for tokens in unknown cells. One entry per use.
    pub unknown_rows: Vec<CertainRow>,
    /// ln of what is the same for all particles, without tokens in unknown cells.
    pub closed_form: Double,
    /// Counters that are the same in all particles, with their tokens, ascending.
    pub certain: Vec<(CounterKey, u64)>,
    /// Sum of ln n! over records without unseen nodes.
    pub ln_factorials_of_seen: f64,
    /// When every record has one and the same unseen node, and no other: its size.
    pub hidden_size: Option<usize>,
    /// For each class the line within a block of each value of that node.
    pub offsets_of_hidden: Vec<Vec<u32>>,
    /// For each kernel whether every term has one pseudo-count for all its lines.
    pub is_even: Vec<bool>,
    /// For each kernel how small and large its terms can be.
    extents: Vec<Vec<Extent>>,
    n_tokens: u64,
}

impl Layout {
    /// Sorts the counters of a problem.
    ///
    /// # Errors
    /// When a table that must be kept whole has too many cells, or there are more tokens than can be numbered.
    pub fn new(problem: &Problem<'_>) -> Result<Self> {
        let n_tokens = problem.counts.n_tokens;
        let uses = Uses::collect(problem);
        let (mut classes, certain_uses, counted_of) = uses.classes(problem)?;
        let mut counted: Vec<Counted> = Vec::new();
        for (&(table, kind), &class) in &counted_of {
            counted.push(Counted { table, kind, class, pseudo: Pseudo::new(problem.prior, table, kind) });
        }
        counted.sort_by_key(|counted| (counted.table, counted.kind));
        let builder = KernelBuilder { problem, classes: &classes, counted: &counted, uses: &uses };
        let mut kernels: Vec<Kernel> =
            problem.plan.patterns().iter().enumerate().map(|(ix, pattern)| builder.pattern(ix, pattern)).collect();
        if !problem.counts.unknown.is_empty() {
            kernels.push(builder.unknown(&uses.unknown_states(problem)?));
        }
        let mut interner = Interner { problem, blocks: Vec::new(), certain: HashMap::new() };
        let mut records = Records::default();
        let mut record = vec![MISSING; problem.model.n_nodes()];
        let mut n_placed = 0;
        let mut ln_factorials_of_seen = 0.0;
        for (pattern_ix, block) in problem.counts.blocks.iter().enumerate() {
            let kernel = &kernels[pattern_ix];
            let certain_here: Vec<&CertainUse> =
                certain_uses.iter().filter(|used| used.pattern == pattern_ix).collect();
            for record_ix in 0..block.n_records() {
                block.read(record_ix, &mut record);
                let count = block.counts[record_ix];
                for used in &certain_here {
                    interner.add_certain(used, &record, count);
                }
                if problem.plan.patterns()[pattern_ix].unseen.is_empty() {
                    ln_factorials_of_seen += ln_factorial(count).value();
                }
                if kernel.touches.is_empty() {
                    continue;
                }
                n_placed += count;
                records.kernel.push(pattern_ix as u32);
                records.count.push(count);
                records.source.push((pattern_ix as u32, record_ix as u32));
                records.start.push(records.places.len() as u32);
                for touch in &kernel.touches {
                    let place = interner.place(&mut classes[touch.class], touch, &record);
                    interner.blocks[place.block as usize].n_uses += count;
                    records.places.push(place);
                }
            }
        }
        if n_placed > u64::from(u32::MAX / 2) {
            return Err(Error::TooCostly(format!(
                "{n_placed} of {n_tokens} tokens have to be placed one by one, more than particles can hold; scale the \
                 counts down or use another method"
            )));
        }
        let unknown = kernels.get(problem.counts.blocks.len()).map(|kernel| {
            record.fill(MISSING);
            kernel.touches.iter().map(|touch| interner.place(&mut classes[touch.class], touch, &record)).collect()
        });
        let closed_form = interner.closed_form();
        let unknown_pattern = problem.counts.blocks.len();
        let unknown_rows = certain_uses.iter().filter(|used| used.pattern == unknown_pattern).map(|used| {
            let key = (used.table, used.kind, Box::default());
            CertainRow {
                table: used.table,
                pseudo: problem.prior.table(used.table).row(&[]).value,
                n_seen: interner.certain.get(&key).copied().unwrap_or(0),
            }
        });
        let unknown_rows = unknown_rows.collect();
        let mut certain: Vec<(CounterKey, u64)> = interner.certain.into_iter().collect();
        certain.sort_unstable();
        let blocks = interner.blocks;
        for counted in &mut counted {
            counted.list_pseudo_counts(problem, &classes[counted.class]);
        }
        let is_even =
            |kernel: &Kernel| kernel.terms.iter().all(|term| matches!(counted[term.counted].pseudo, Pseudo::Even(_)));
        let is_even = kernels.iter().map(is_even).collect();
        let extents = kernels.iter().map(|kernel| extents(kernel, &counted)).collect();
        let (hidden_size, offsets_of_hidden) = single_hidden(problem, &kernels, classes.len());
        Ok(Layout {
            classes,
            counted,
            blocks,
            kernels,
            records,
            unknown,
            unknown_rows,
            closed_form,
            certain,
            ln_factorials_of_seen,
            hidden_size,
            offsets_of_hidden,
            is_even,
            extents,
            n_tokens,
        })
    }

    /// ln of the rows that the next token in an unknown cell divides by, after `n_before` such tokens.
    pub fn ln_unknown_rows(&self, n_before: u64) -> f64 {
        let mut ln = 0.0;
        for (ix, row) in self.unknown_rows.iter().enumerate() {
            let uses_of_table =
                |rows: &[CertainRow]| rows.iter().filter(|other| other.table == row.table).count() as u64;
            let n = row.n_seen + n_before * uses_of_table(&self.unknown_rows) + uses_of_table(&self.unknown_rows[..ix]);
            ln += (row.pseudo + n as f64).ln();
        }
        ln
    }

    /// Every line of a class: block, number within it, and the values of the nodes that it counts.
    pub fn lines_of(&self, class: usize) -> Vec<(u32, u32, Vec<u32>)> {
        let class = &self.classes[class];
        let mut lines = Vec::new();
        for (block, key) in class.keys() {
            for in_block in 0..class.interior {
                lines.push((block, in_block as u32, class.values(key, in_block)));
            }
        }
        lines
    }

    /// Whether tokens of two hidden values can be shared out anew: one hidden node, and weights as products, not logs.
    pub fn can_reallocate(&self, scale: f64) -> bool {
        let has_values = self.hidden_size.is_some_and(|size| size > 1);
        has_values && (0..self.kernels.len()).all(|kernel| !self.is_guarded(kernel, scale))
    }

    /// Whether products of a kernel's terms could leave the range of numbers at either end, so that logs are added up:
    /// bounds with cells empty and rows full, and the other way round, all pseudo-counts multiplied by `scale`.
    pub fn is_guarded(&self, kernel: usize, scale: f64) -> bool {
        let n_uses = self.n_tokens as f64 * self.kernels[kernel].touches.len() as f64;
        let (mut low, mut high) = (0.0, 0.0);
        for extent in &self.extents[kernel] {
            let smallest = extent.power * (extent.ln_smallest + scale.ln()).min(0.0);
            let largest = extent.power * (extent.largest * scale + n_uses).ln().max(0.0);
            low += if extent.is_numerator { smallest } else { -largest };
            high += if extent.is_numerator { largest } else { -smallest };
        }
        low < -LN_RANGE || high > LN_RANGE
    }

    /// The kernel of a record.
    pub fn kernel_of(&self, record: usize) -> &Kernel {
        &self.kernels[self.records.kernel[record] as usize]
    }

    /// The pseudo-count of a line.
    pub fn pseudo(&self, counted: usize, block: &Block, in_block: usize) -> PseudoCount {
        match &self.counted[counted].pseudo {
            Pseudo::Even(pseudo) => *pseudo,
            Pseudo::PerLine(all) => {
                all[block.in_class as usize * self.classes[self.counted[counted].class].interior + in_block]
            }
        }
    }
}

impl Pseudo {
    fn new(prior: &Prior, table: TableIndex, kind: Kind) -> Self {
        match (prior.table(table), kind) {
            (PseudoCounts::Even { cell, .. }, Kind::Cell) => Pseudo::Even(*cell),
            (PseudoCounts::Even { row, .. }, Kind::Row) => Pseudo::Even(*row),
            _ => Pseudo::PerLine(Vec::new()),
        }
    }
}

impl Counted {
    /// Fills in pseudo-counts line by line where they differ.
    fn list_pseudo_counts(&mut self, problem: &Problem<'_>, class: &Class) {
        let Pseudo::PerLine(list) = &mut self.pseudo else { return };
        let table = problem.prior.table(self.table);
        for (_, key) in class.keys() {
            for in_block in 0..class.interior {
                let values = class.values(key, in_block);
                list.push(match self.kind {
                    Kind::Cell => table.cell(&values[..values.len() - 1], values[values.len() - 1]),
                    Kind::Row => table.row(&values),
                });
            }
        }
    }
}

/// One use of a table by a node in records of one pattern.
#[derive(Debug, Clone)]
struct Use {
    pattern: usize,
    /// The nodes in the positions of the counter.
    nodes: Vec<NodeIndex>,
    /// Which of them are seen.
    seen: Vec<bool>,
}

/// A use of a counter that is the same in all particles.
#[derive(Debug)]
struct CertainUse {
    pattern: usize,
    table: TableIndex,
    kind: Kind,
    nodes: Vec<NodeIndex>,
}

/// All uses of all counters.
struct Uses {
    of: HashMap<(TableIndex, Kind), Vec<Use>>,
    relevant: Vec<Vec<NodeIndex>>,
}

/// Classes, uses that are certain, and the class of each table's cells and rows that are not.
type Sorted = (Vec<Class>, Vec<CertainUse>, HashMap<(TableIndex, Kind), usize>);

impl Uses {
    fn collect(problem: &Problem<'_>) -> Self {
        let model = problem.model;
        let mut relevant: Vec<Vec<NodeIndex>> =
            problem.plan.patterns().iter().map(|pattern| pattern.relevant.clone()).collect();
        let mut seen_of: Vec<Vec<bool>> = Vec::new();
        for pattern in problem.plan.patterns() {
            let mut seen = vec![false; model.n_nodes()];
            pattern.seen.iter().for_each(|node| seen[node.ix()] = true);
            seen_of.push(seen);
        }
        if let Some(cell) = problem.counts.unknown.first() {
            // Which unknown cell a token falls into differs between particles, so nothing counts as seen.
            let listed: Vec<NodeIndex> = model.node_indices().filter(|node| cell[node.ix()] != MISSING).collect();
            relevant.push(with_ancestors(model, &listed));
            seen_of.push(vec![false; model.n_nodes()]);
        }
        let mut of: HashMap<(TableIndex, Kind), Vec<Use>> = HashMap::new();
        for (pattern, (nodes, seen)) in relevant.iter().zip(&seen_of).enumerate() {
            for &node in nodes {
                let parents = &model.node(node).parents;
                let family: Vec<NodeIndex> = parents.iter().copied().chain([node]).collect();
                for (kind, nodes) in [(Kind::Cell, family.clone()), (Kind::Row, parents.clone())] {
                    let seen = nodes.iter().map(|node| seen[node.ix()]).collect();
                    of.entry((model.node(node).table, kind)).or_default().push(Use { pattern, nodes, seen });
                }
            }
        }
        Uses { of, relevant }
    }

    fn classes(&self, problem: &Problem<'_>) -> Result<Sorted> {
        let mut classes: Vec<Class> = Vec::new();
        let mut certain = Vec::new();
        let mut class_of = HashMap::new();
        let mut by_signature: HashMap<Vec<(usize, &[NodeIndex])>, usize> = HashMap::new();
        let mut keys: Vec<&(TableIndex, Kind)> = self.of.keys().collect();
        keys.sort_unstable();
        for &key in keys {
            let uses = &self.of[&key];
            let is_uniform = uses.iter().all(|used| used.seen == uses[0].seen);
            if is_uniform && uses[0].seen.iter().all(|&seen| seen) {
                certain.extend(uses.iter().map(|used| CertainUse {
                    pattern: used.pattern,
                    table: key.0,
                    kind: key.1,
                    nodes: used.nodes.clone(),
                }));
                continue;
            }
            let mut signature: Vec<(usize, &[NodeIndex])> =
                uses.iter().map(|used| (used.pattern, used.nodes.as_slice())).collect();
            signature.sort_unstable();
            let class = match by_signature.get(&signature) {
                Some(&class) => class,
                None => {
                    let is_key = if is_uniform { uses[0].seen.clone() } else { vec![false; uses[0].seen.len()] };
                    classes.push(Class::new(problem.model, &uses[0].nodes, is_key)?);
                    by_signature.insert(signature, classes.len() - 1);
                    classes.len() - 1
                }
            };
            class_of.insert(key, class);
        }
        Ok((classes, certain, class_of))
    }

    /// Every full assignment that a token in an unknown cell can have.
    fn unknown_states(&self, problem: &Problem<'_>) -> Result<Vec<Vec<u32>>> {
        let relevant = self.relevant.last().expect("a pattern for unknown cells");
        let mut states = Vec::new();
        for cell in &problem.counts.unknown {
            let mut record = cell.clone();
            let unseen: Vec<NodeIndex> = relevant.iter().copied().filter(|node| record[node.ix()] == MISSING).collect();
            let n_states: f64 = unseen.iter().map(|&node| f64::from(problem.model.node(node).size)).product();
            if n_states + states.len() as f64 > 65_536.0 {
                return Err(Error::TooCostly(format!(
                    "a token in one of the {} unknown cells can have more than 65536 joint hidden values; list fewer \
                     unknown cells or use smaller hidden nodes",
                    problem.counts.unknown.len()
                )));
            }
            for_each_assignment(problem.model, &unseen, &mut record, |full| states.push(full.to_vec()));
        }
        Ok(states)
    }
}

impl Class {
    /// The blocks and the seen values that pick them, in the order of the blocks.
    fn keys(&self) -> Vec<(u32, &[u32])> {
        let mut keys: Vec<(u32, &[u32])> = self.blocks.iter().map(|(key, &block)| (block, &**key)).collect();
        keys.sort_unstable();
        keys
    }

    /// The values of all positions for a line of the block with this key.
    fn values(&self, key: &[u32], in_block: usize) -> Vec<u32> {
        let mut values = vec![0u32; self.sizes.len()];
        let mut rest = in_block;
        let mut key = key.iter();
        for position in (0..values.len()).filter(|&position| self.is_key[position]) {
            values[position] = *key.next().expect("one value for each key position");
        }
        for position in (0..values.len()).rev().filter(|&position| !self.is_key[position]) {
            let size = self.sizes[position] as usize;
            values[position] = (rest % size) as u32;
            rest /= size;
        }
        values
    }

    /// Whether seen values pick the block, so that all its tokens are known.
    pub fn has_key(&self) -> bool {
        self.is_key.contains(&true)
    }

    fn new(model: &Model, nodes: &[NodeIndex], is_key: Vec<bool>) -> Result<Self> {
        let sizes: Vec<u32> = nodes.iter().map(|&node| model.node(node).size).collect();
        let mut strides = vec![0usize; sizes.len()];
        let mut interior = 1.0;
        for position in (0..sizes.len()).rev().filter(|&position| !is_key[position]) {
            strides[position] = interior as usize;
            interior *= f64::from(sizes[position]);
        }
        if interior > MAX_LINES {
            let names: Vec<&str> = nodes.iter().map(|&node| model.node(node).name.as_str()).collect();
            return Err(Error::TooCostly(format!(
                "particles would have to keep {interior:.3e} counts of {} each, since these nodes are not always seen",
                names.join(", ")
            )));
        }
        Ok(Class { interior: interior as usize, strides, is_key, sizes, blocks: HashMap::new() })
    }
}

/// A counter by its values.
pub type CounterKey = (TableIndex, Kind, Box<[u32]>);

/// Gives numbers to blocks, and adds up what is certain.
struct Interner<'p, 'a> {
    problem: &'p Problem<'a>,
    blocks: Vec<Block>,
    certain: HashMap<CounterKey, u64>,
}

impl Interner<'_, '_> {
    fn add_certain(&mut self, used: &CertainUse, record: &[u32], count: u64) {
        let values: Box<[u32]> = used.nodes.iter().map(|node| record[node.ix()]).collect();
        *self.certain.entry((used.table, used.kind, values)).or_insert(0) += count;
    }

    fn place(&mut self, class: &mut Class, touch: &Touch, record: &[u32]) -> Place {
        let mut offset = 0;
        let mut key: Vec<u32> = Vec::new();
        for (position, node) in touch.nodes.iter().enumerate() {
            let value = record[node.ix()];
            if class.is_key[position] {
                key.push(value);
            } else if value != MISSING {
                offset += class.strides[position] * value as usize;
            }
        }
        let blocks = &mut self.blocks;
        let in_class = class.blocks.len() as u32;
        let block = *class.blocks.entry(key.into()).or_insert_with(|| {
            blocks.push(Block { class: touch.class as u32, in_class, n_uses: 0 });
            blocks.len() as u32 - 1
        });
        Place { block, offset: offset as u32 }
    }

    /// Rising factorials of certain cells over those of certain rows (theory.md eq. 6).
    fn closed_form(&self) -> Double {
        let mut entries: Vec<(&CounterKey, &u64)> = self.certain.iter().collect();
        entries.sort_unstable();
        let mut product = LnProduct::new();
        for ((table, kind, values), &n) in entries {
            let table = self.problem.prior.table(*table);
            match kind {
                Kind::Cell => {
                    let pseudo = table.cell(&values[..values.len() - 1], values[values.len() - 1]);
                    product.multiply_rising(pseudo.value, pseudo.ln_if_tiny, n);
                }
                Kind::Row => {
                    let pseudo = table.row(values);
                    // A row of zeros has only cells of zeros: they already make the product zero.
                    if !pseudo.is_zero() {
                        product.divide_rising(pseudo.value, pseudo.ln_if_tiny, n);
                    }
                }
            }
        }
        product.ln()
    }
}

/// Turns patterns into kernels.
struct KernelBuilder<'b, 'a> {
    problem: &'b Problem<'a>,
    classes: &'b [Class],
    counted: &'b [Counted],
    uses: &'b Uses,
}

/// A bucket before its terms are known: the nodes of its states, and the share of each in the state's number.
struct Scope {
    nodes: Vec<NodeIndex>,
    shape: BucketShape,
    /// Explicit states (one value per node of the model), for unknown cells.
    states: Option<Vec<Vec<u32>>>,
}

impl KernelBuilder<'_, '_> {
    fn pattern(&self, pattern_ix: usize, pattern: &Pattern) -> Kernel {
        let model = self.problem.model;
        let n_joint: f64 = pattern.unseen.iter().map(|&node| f64::from(model.node(node).size)).product();
        let is_tied = self.repeats_a_table(pattern_ix);
        let joint_limit = if is_tied { JOINT_IF_TIED } else { ALWAYS_JOINT };
        let mut scopes = Vec::new();
        let is_joint = pattern.unseen.len() <= 1 || n_joint <= joint_limit;
        if pattern.unseen.is_empty() {
        } else if is_joint {
            let shape = BucketShape::root(n_joint as usize, self.sizes(&pattern.unseen));
            scopes.push(Scope { nodes: pattern.unseen.clone(), shape, states: None });
        } else {
            for bucket in pattern.elimination.buckets() {
                let shape = BucketShape {
                    n_states: bucket.n_states,
                    size: bucket.size(),
                    parent: bucket.parent,
                    message_of_parent_state: bucket.message_of_parent_state.clone(),
                    nodes: self.sizes(&bucket.scope),
                };
                scopes.push(Scope { nodes: bucket.scope.clone(), shape, states: None });
            }
        }
        let is_exact = is_joint || !is_tied;
        self.kernel(pattern_ix, &pattern.unseen, scopes, is_exact)
    }

    fn unknown(&self, states: &[Vec<u32>]) -> Kernel {
        let pattern_ix = self.uses.relevant.len() - 1;
        let nodes = self.uses.relevant[pattern_ix].clone();
        let shape = BucketShape::root(states.len(), Vec::new());
        let scope = Scope { nodes: nodes.clone(), shape, states: Some(states.to_vec()) };
        self.kernel(pattern_ix, &nodes, vec![scope], true)
    }

    fn sizes(&self, nodes: &[NodeIndex]) -> Vec<(NodeIndex, u32)> {
        nodes.iter().map(|&node| (node, self.problem.model.node(node).size)).collect()
    }

    /// Whether one token of this pattern uses lines of one table more than once.
    fn repeats_a_table(&self, pattern_ix: usize) -> bool {
        self.counted.iter().any(|counted| {
            let uses = &self.uses.of[&(counted.table, counted.kind)];
            uses.iter().filter(|used| used.pattern == pattern_ix).count() > 1
        })
    }

    fn kernel(&self, pattern_ix: usize, unseen: &[NodeIndex], mut scopes: Vec<Scope>, is_exact: bool) -> Kernel {
        let model = self.problem.model;
        let is_unseen = |node: &NodeIndex| unseen.contains(node);
        // Families that are wholly seen but whose lines differ between particles: a factor without a choice.
        let constant = scopes.len();
        scopes.push(Scope { nodes: Vec::new(), shape: BucketShape::root(1, Vec::new()), states: None });
        let bucket_for = |nodes: &[NodeIndex], is_tied: bool| -> usize {
            let hidden: Vec<NodeIndex> = nodes.iter().copied().filter(is_unseen).collect();
            if hidden.is_empty() {
                // Within a token that uses a table twice, all uses have to be compared state by state.
                return if is_tied && constant == 1 { 0 } else { constant };
            }
            (0..constant)
                .filter(|&ix| hidden.iter().all(|node| scopes[ix].nodes.contains(node)))
                .min_by_key(|&ix| scopes[ix].shape.n_states)
                .expect("every family lies in a bucket")
        };
        let mut touches: Vec<Touch> = Vec::new();
        for (class_ix, class) in self.classes.iter().enumerate() {
            // Every table of a class has the same uses: one of them speaks for all.
            let counted = self.counted.iter().find(|counted| counted.class == class_ix).expect("a class has a table");
            let uses = &self.uses.of[&(counted.table, counted.kind)];
            let here: Vec<&Use> = uses.iter().filter(|used| used.pattern == pattern_ix).collect();
            for used in &here {
                let bucket = bucket_for(&used.nodes, here.len() > 1);
                let offsets = offsets(model, &scopes[bucket], &used.nodes, &class.strides, is_unseen);
                touches.push(Touch { class: class_ix, nodes: used.nodes.clone(), bucket, offsets });
            }
        }
        let mut terms: Vec<Term> = Vec::new();
        for (counted_ix, counted) in self.counted.iter().enumerate() {
            let uses = &self.uses.of[&(counted.table, counted.kind)];
            let here: Vec<&Use> = uses.iter().filter(|used| used.pattern == pattern_ix).collect();
            let first_term = terms.len();
            for used in &here {
                let bucket = bucket_for(&used.nodes, here.len() > 1);
                let strides = &self.classes[counted.class].strides;
                let touch = touches
                    .iter()
                    .position(|touch| touch.class == counted.class && touch.nodes == used.nodes)
                    .expect("every use is a touch");
                let offsets = offsets(model, &scopes[bucket], &used.nodes, strides, is_unseen);
                let is_numerator = counted.kind == Kind::Cell;
                let earlier = (first_term..terms.len()).collect();
                terms.push(Term { counted: counted_ix, touch, bucket, is_numerator, power: 1, offsets, earlier });
            }
        }
        let terms = self.simplify(terms);
        let mut buckets: Vec<BucketShape> = scopes.into_iter().map(|scope| scope.shape).collect();
        let has_constant =
            terms.iter().any(|term| term.bucket == constant) || touches.iter().any(|t| t.bucket == constant);
        if !has_constant {
            buckets.pop();
        }
        Kernel::new(buckets, touches, terms, is_exact)
    }

    /// Cancels a cell against a row that always holds the same number with the same pseudo-count, and merges equal rows
    /// into powers.
    fn simplify(&self, terms: Vec<Term>) -> Vec<Term> {
        let even = |term: &Term| match &self.counted[term.counted].pseudo {
            Pseudo::Even(pseudo) => Some(pseudo.value),
            Pseudo::PerLine(_) => None,
        };
        let repeated: Vec<bool> = (0..terms.len())
            .map(|ix| !terms[ix].earlier.is_empty() || terms.iter().any(|other| other.earlier.contains(&ix)))
            .collect();
        let same = |a: &Term, b: &Term| {
            a.touch == b.touch
                && a.bucket == b.bucket
                && matches!((even(a), even(b)), (Some(x), Some(y)) if (x - y).abs() <= 4.0 * f64::EPSILON * x)
        };
        if repeated.contains(&true) {
            // The numbers of the terms in `earlier` must stay as they are.
            return terms;
        }
        let mut kept: Vec<Term> = Vec::new();
        for term in terms {
            let partner = kept.iter().position(|other| same(other, &term));
            match partner {
                Some(at) if kept[at].is_numerator != term.is_numerator => {
                    kept[at].power -= 1;
                    if kept[at].power == 0 {
                        kept.remove(at);
                    }
                }
                Some(at) => kept[at].power += 1,
                None => kept.push(term),
            }
        }
        kept
    }
}

/// The size of the only unseen node of all records, and for each class the lines of its values, if there is such a node
/// and every value has lines of its own.
fn single_hidden(problem: &Problem<'_>, kernels: &[Kernel], n_classes: usize) -> (Option<usize>, Vec<Vec<u32>>) {
    let none = (None, Vec::new());
    let mut hidden = problem.plan.patterns().iter().filter(|pattern| !pattern.relevant.is_empty());
    let Some(first) = hidden.next().map(|pattern| pattern.unseen.clone()) else { return none };
    let is_same = first.len() == 1 && hidden.all(|pattern| pattern.unseen == first);
    if !is_same || !problem.counts.unknown.is_empty() {
        return none;
    }
    let mut offsets: Vec<Vec<u32>> = vec![Vec::new(); n_classes];
    for kernel in kernels.iter().filter(|kernel| !kernel.touches.is_empty()) {
        if kernel.buckets.len() != 1 {
            return none;
        }
        for touch in &kernel.touches {
            let mut distinct = touch.offsets.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let known = &mut offsets[touch.class];
            if distinct.len() != touch.offsets.len() || !(known.is_empty() || *known == touch.offsets) {
                return none;
            }
            known.clone_from(&touch.offsets);
        }
    }
    (Some(problem.model.node(first[0]).size as usize), offsets)
}

/// How small and how large the pseudo-counts of a term can be, and how much it counts.
#[derive(Debug)]
struct Extent {
    power: f64,
    is_numerator: bool,
    ln_smallest: f64,
    largest: f64,
}

/// The extents of a kernel's terms. Zero pseudo-counts are no danger: their products are meant to be zero.
fn extents(kernel: &Kernel, counted: &[Counted]) -> Vec<Extent> {
    let of_term = |term: &Term| {
        let (ln_smallest, largest) = match &counted[term.counted].pseudo {
            Pseudo::Even(pseudo) => (pseudo.ln(), pseudo.value),
            Pseudo::PerLine(all) => {
                let positive = all.iter().filter(|pseudo| !pseudo.is_zero());
                positive
                    .fold((0.0, 0.0), |(low, high), pseudo| (f64::min(low, pseudo.ln()), f64::max(high, pseudo.value)))
            }
        };
        Extent { power: f64::from(term.power), is_numerator: term.is_numerator, ln_smallest, largest }
    };
    kernel.terms.iter().map(of_term).collect()
}

/// For each state of the bucket the number of the line within the block, as far as unseen nodes decide it.
fn offsets(
    model: &Model,
    scope: &Scope,
    nodes: &[NodeIndex],
    strides: &[usize],
    is_unseen: impl Fn(&NodeIndex) -> bool,
) -> Vec<u32> {
    if let Some(states) = &scope.states {
        let of_state = |state: &Vec<u32>| {
            let all = nodes.iter().zip(strides);
            all.map(|(node, stride)| stride * state[node.ix()] as usize).sum::<usize>() as u32
        };
        return states.iter().map(of_state).collect();
    }
    let mut sums = vec![0usize];
    for member in &scope.nodes {
        let stride: usize = nodes
            .iter()
            .zip(strides)
            .filter(|(node, _)| *node == member && is_unseen(node))
            .map(|(_, &stride)| stride)
            .sum();
        let size = model.node(*member).size as usize;
        sums = sums.iter().flat_map(|&sum| (0..size).map(move |value| sum + value * stride)).collect();
    }
    sums.into_iter().map(|sum| sum as u32).collect()
}
