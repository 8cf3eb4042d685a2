//! A layout that grows with a stream: patterns are known, records come one by one.

use super::class::{Class, Pseudo};
use super::kernel::{Kernel, Term, Touch};
use super::layout::{Block, Extent, Layout, Place};
use crate::counts::{Block as CountBlock, CountList, Counts, Labels, Unit};
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::error::Result;
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::plan::Pattern;
use crate::prior::{Prior, ProductTerm, PseudoCounts};

/// Tokens of a stream, at most: lines are counted with 32 bits, and a token may use one more than once.
pub const MAX_STREAM: u64 = 1 << 31;

impl Layout {
    /// A layout without records for these sets of seen nodes, and what to do for each.
    ///
    /// Kernels that could leave the range of numbers are found from the whole prior, so that it does not matter which records
    /// come.
    ///
    /// # Errors
    /// When a table that must be kept whole has too many cells, or unseen nodes cannot be summed out in memory.
    pub fn for_stream(model: &Model, prior: &Prior, seen_sets: &[Vec<u32>]) -> Result<(Self, Vec<Pattern>)> {
        let labels = model.nodes().iter().map(|node| Labels::Indexed { size: node.size, first: 0 }).collect();
        let block = |seen: &Vec<u32>| CountBlock {
            seen: seen.clone(),
            values: vec![Vec::new(); seen.len()],
            counts: CountList::default(),
        };
        let blocks = seen_sets.iter().map(block).collect();
        let counts = Counts { labels, blocks, n_tokens: MAX_STREAM, unit: Unit::TOKEN, unknown: Vec::new() };
        let problem = Problem::new(model, prior, &counts)?;
        let mut layout = Layout::new(&problem)?;
        let counted = &layout.counted;
        let bounds: Vec<(f64, f64)> =
            counted.iter().map(|counted| bounds(prior.table(counted.table), counted.kind)).collect();
        let of_kernel = |kernel: &Kernel| {
            let of_term = |term: &Term| {
                let (ln_smallest, largest) = bounds[term.counted];
                Extent { power: f64::from(term.power), is_numerator: term.is_numerator, ln_smallest, largest }
            };
            kernel.terms.iter().map(of_term).collect()
        };
        let extents = layout.kernels.iter().map(of_kernel).collect();
        layout.extents = extents;
        Ok((layout, problem.plan.patterns().to_vec()))
    }

    /// Adds the places of a record, one for each touch of its kernel. Blocks that are new come behind all others.
    pub fn add_places(&mut self, prior: &Prior, kernel: usize, record: &[u32], places: &mut Vec<Place>) {
        for touch in 0..self.kernels[kernel].touches.len() {
            let touch = &self.kernels[kernel].touches[touch];
            let (class, n_before) = (touch.class, self.blocks.len());
            places.push(place(&mut self.blocks, &mut self.classes[class], touch, record));
            if self.blocks.len() > n_before {
                let (key, _) = self.classes[class].split(touch.nodes.iter().map(|node| record[node.ix()]));
                self.list_pseudo_counts_of(prior, class, &key);
            }
        }
    }

    /// The block of a class with these seen values, made if there is none.
    pub fn block_of(&mut self, prior: &Prior, class: usize, key: Box<[u32]>) -> u32 {
        if let Some(&block) = self.classes[class].blocks.get(&key) {
            return block;
        }
        let block = self.blocks.len() as u32;
        let in_class = self.classes[class].blocks.len() as u32;
        self.blocks.push(Block { class: class as u32, in_class, n_uses: 0 });
        self.list_pseudo_counts_of(prior, class, &key);
        self.classes[class].blocks.insert(key, block);
        block
    }

    /// Behind those of all other blocks of its class.
    fn list_pseudo_counts_of(&mut self, prior: &Prior, class_ix: usize, key: &[u32]) {
        let class = &self.classes[class_ix];
        for counted in self.counted.iter_mut().filter(|counted| counted.class == class_ix) {
            if let Pseudo::PerLine(list) = &mut counted.pseudo {
                let table = prior.table(counted.table);
                let of_line = |in_block| counted.kind.pseudo_count(table, &class.values(key, in_block));
                list.extend((0..class.interior).map(of_line));
            }
        }
    }

    /// Tables of which the cells or rows used by a pattern are the same in all particles, with the nodes that pick them.
    pub fn certain_uses(&self, model: &Model, pattern: &Pattern) -> Vec<(TableIndex, Kind, Vec<NodeIndex>)> {
        let mut uses = Vec::new();
        for &node in &pattern.relevant {
            let (table, parents) = (model.node(node).table, &model.node(node).parents);
            let family = parents.iter().copied().chain([node]).collect();
            for (kind, nodes) in [(Kind::Cell, family), (Kind::Row, parents.clone())] {
                if !self.counted.iter().any(|counted| (counted.table, counted.kind) == (table, kind)) {
                    uses.push((table, kind, nodes));
                }
            }
        }
        uses
    }
}

/// The place that a record touches.
pub(super) fn place(blocks: &mut Vec<Block>, class: &mut Class, touch: &Touch, record: &[u32]) -> Place {
    let (key, offset) = class.split(touch.nodes.iter().map(|node| record[node.ix()]));
    let in_class = class.blocks.len() as u32;
    let block = *class.blocks.entry(key).or_insert_with(|| {
        blocks.push(Block { class: touch.class as u32, in_class, n_uses: 0 });
        blocks.len() as u32 - 1
    });
    Place { block, offset }
}

/// ln of a number that no positive pseudo-count of a table is below, and one that none is above.
fn bounds(table: &PseudoCounts, kind: Kind) -> (f64, f64) {
    let least = |numbers: &mut dyn Iterator<Item = f64>| {
        numbers.filter(|&number| number > 0.0).fold(f64::INFINITY, f64::min).ln().min(0.0)
    };
    let most = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(0.0, f64::max);
    match (table, kind) {
        (PseudoCounts::Even { cell, .. }, Kind::Cell) => (cell.ln(), cell.value),
        (PseudoCounts::Even { row, .. }, Kind::Row) => (row.ln(), row.value),
        (PseudoCounts::Dense { cells, .. }, Kind::Cell) => {
            (least(&mut cells.iter().copied()), most(&mut cells.iter().copied()))
        }
        (PseudoCounts::Dense { rows, .. }, Kind::Row) => {
            (least(&mut rows.iter().copied()), most(&mut rows.iter().copied()))
        }
        (PseudoCounts::Product { terms }, kind) => {
            // A sum is at least its smallest positive term, and at most all sizes together.
            let of_term = |term: &ProductTerm| {
                let child = (kind == Kind::Cell).then_some(&term.child);
                let weights = term.parents.iter().chain(child);
                term.size.ln() + weights.map(|weights| least(&mut weights.iter().copied())).sum::<f64>()
            };
            let ln_smallest = terms.iter().map(of_term).fold(0.0, f64::min);
            (ln_smallest, terms.iter().map(|term| term.size).sum())
        }
    }
}
