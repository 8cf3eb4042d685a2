//! Which numbers a particle has to keep, and which of them a record touches.
//!
//! The counters of a model are the cells and the row sums of its tables. A counter whose values are seen in every use is
//! the same in all particles: it goes into a closed form, once. The others are *lines*, one number per particle. Lines
//! that belong to one value of the seen nodes form a *block*: in a CP model the counts of one row label under every
//! component. Counters that are touched by the same nodes always hold the same number and share their lines: the count of
//! component r and the row sums of all tables below r.

use super::class::{Class, Counted, Pseudo};
use super::compile::KernelBuilder;
use super::grow::place;
use super::kernel::{Kernel, Term};
use super::uses::{CertainUse, Uses};
use crate::Seed;
use crate::counts::MISSING;
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::engine::mixer::Mixer;
use crate::error::{Error, Result};
use crate::graph::TableIndex;
use crate::math::{Double, LnProduct, ln_factorial};
use crate::prior::PseudoCount;
use hashbrown::HashMap;

/// How far from zero ln of a product of terms may be for it to be computed as a product; beyond, logs are added up.
const LN_RANGE: f64 = 600.0;

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
    pub(super) extents: Vec<Vec<Extent>>,
    n_tokens: u64,
}

impl Layout {
    /// Sorts the counters of a problem.
    ///
    /// # Errors
    /// When a table that must be kept whole has too many cells, or there are more tokens than can be numbered.
    pub fn new(problem: &Problem<'_>) -> Result<Self> {
        Layout::with_groups(problem, &|_| false)
    }

    /// The same with the factors of two groups of tables apart, for those who give them different powers: factors of one table
    /// do not cancel those of a table of the other group.
    ///
    /// # Errors
    /// As for [`Layout::new`].
    pub fn with_groups(problem: &Problem<'_>, group: &dyn Fn(TableIndex) -> bool) -> Result<Self> {
        problem.check_whole("smc")?;
        let n_tokens = problem.counts.n_tokens;
        let uses = Uses::collect(problem);
        let (mut classes, certain_uses, counted_of) = uses.classes(problem)?;
        let mut counted: Vec<Counted> = Vec::new();
        for (&(table, kind), &class) in &counted_of {
            counted.push(Counted { table, kind, class, pseudo: Pseudo::new(problem.prior, table, kind) });
        }
        counted.sort_by_key(|counted| (counted.table, counted.kind));
        let builder = KernelBuilder { problem, classes: &classes, counted: &counted, uses: &uses, group };
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
                let count = block.counts.at(record_ix);
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
                    let place = place(&mut interner.blocks, &mut classes[touch.class], touch, &record);
                    interner.blocks[place.block as usize].n_uses += count;
                    records.places.push(place);
                }
            }
        }
        if n_placed > u64::from(u32::MAX / 2) {
            return Err(Error::TooCostly(format!(
                "{n_placed} of {n_tokens} tokens have to be placed one by one, more than particles can hold; scale the \
                 counts down, or take --method vb, a lower bound"
            )));
        }
        let unknown = kernels.get(problem.counts.blocks.len()).map(|kernel| {
            record.fill(MISSING);
            kernel
                .touches
                .iter()
                .map(|touch| place(&mut interner.blocks, &mut classes[touch.class], touch, &record))
                .collect()
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

    /// Whether the rows of any two states of a kernel, multiplied together, stay within the range of numbers.
    pub fn may_share_divisions(&self, kernel: usize, scale: f64) -> bool {
        let n_uses = self.n_tokens as f64 * self.kernels[kernel].touches.len() as f64;
        let rows = || self.extents[kernel].iter().filter(|extent| !extent.is_numerator);
        let low: f64 = rows().map(|row| row.power * (row.ln_smallest + scale.ln()).min(0.0)).sum();
        let high: f64 = rows().map(|row| row.power * (row.largest * scale + n_uses).ln().max(0.0)).sum();
        2.0 * low >= -LN_RANGE && 2.0 * high <= LN_RANGE
    }

    /// Tells engines, settings, seeds and problems apart, so that a checkpoint is not taken up by another job.
    pub fn fingerprint(&self, settings: &str, seed: Seed) -> u64 {
        let mut mix = Mixer::default();
        mix.word(seed.0);
        mix.word(self.closed_form.value().to_bits());
        settings.bytes().for_each(|byte| mix.word(u64::from(byte)));
        for record in 0..self.records.len() {
            mix.word(self.records.count[record]);
            mix.word(u64::from(self.records.kernel[record]));
            for place in self.records.places(record) {
                mix.word(u64::from(place.block) << 32 | u64::from(place.offset));
            }
        }
        for counted in &self.counted {
            mix.word(u64::from(counted.table.0) << 32 | counted.class as u64);
            match &counted.pseudo {
                Pseudo::Even(pseudo) => mix.word(pseudo.value.to_bits()),
                Pseudo::PerLine(all) => all.iter().for_each(|pseudo| mix.word(pseudo.value.to_bits())),
            }
        }
        mix.0
    }

    /// Whether seen values pick the blocks of a class.
    pub fn has_key(&self, class: usize) -> bool {
        self.classes[class].has_key()
    }

    /// Lines of a block of a class.
    pub fn interior(&self, class: usize) -> usize {
        self.classes[class].interior
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

    /// What certain cells and rows come to together.
    fn closed_form(&self) -> Double {
        let mut entries: Vec<(&CounterKey, &u64)> = self.certain.iter().collect();
        entries.sort_unstable();
        let mut product = LnProduct::new();
        for ((table, kind, values), &n) in entries {
            let pseudo = kind.pseudo_count(self.problem.prior.table(*table), values);
            kind.multiply_closed_form(pseudo, n, &mut product);
        }
        product.ln()
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
pub(super) struct Extent {
    pub(super) power: f64,
    pub(super) is_numerator: bool,
    pub(super) ln_smallest: f64,
    pub(super) largest: f64,
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
