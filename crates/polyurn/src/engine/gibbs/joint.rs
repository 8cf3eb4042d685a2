//! ln p(sequence, hidden values) after each sweep, in the time of a look at every count.
//!
//! It is a sum over cells and rows of ln of rising factorials (theory.md eq. 6). Where all cells of a table have one
//! pseudo-count, only the count tells them apart, and counts are small: so the logarithms are tabulated by count.

use super::tokens::{EIGHT, Tokens};
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::engine::lines::{Counted, Pseudo};
use crate::graph::TableIndex;
use crate::math::LnProduct;
use crate::math::special::ln_rising_tiny;
use crate::prior::PseudoCount;

/// Counts that are tabulated; larger ones are rare and computed.
const MOST_TABULATED: usize = 4096;

/// Everything that is the same for all states.
#[derive(Debug)]
pub struct Joint {
    /// What is certain of each table.
    certain: Vec<f64>,
    parts: Vec<Part>,
}

/// The cells or the rows of one table.
#[derive(Debug)]
struct Part {
    table: TableIndex,
    kind: Kind,
    /// First row of eight of each block, and how many rows a block has.
    first: Vec<u32>,
    n_eights: usize,
    logs: Logs,
}

#[derive(Debug)]
enum Logs {
    /// One pseudo-count, and its logarithms by count.
    Even(PseudoCount, Vec<f64>),
    /// Line by line, with as many for each block as it has lines.
    PerLine(Vec<PseudoCount>, usize),
}

/// ln of the rising factorial of `n` tokens, as cells multiply it and rows divide by it.
fn ln_factor(kind: Kind, pseudo: PseudoCount, n: u32) -> f64 {
    match kind {
        _ if n == 0 => 0.0,
        Kind::Cell if pseudo.is_zero() => f64::NEG_INFINITY,
        // A row of zeros has only cells of zeros: they already make the product zero.
        Kind::Row if pseudo.is_zero() => 0.0,
        Kind::Cell => ln_rising_tiny(pseudo.value, pseudo.ln_if_tiny, f64::from(n)),
        Kind::Row => -ln_rising_tiny(pseudo.value, pseudo.ln_if_tiny, f64::from(n)),
    }
}

impl Joint {
    /// Tabulates.
    pub fn new(problem: &Problem<'_>, tokens: &Tokens<'_>) -> Self {
        let layout = tokens.layout;
        let mut certain: Vec<LnProduct> = problem.model.tables().iter().map(|_| LnProduct::new()).collect();
        for ((table, kind, values), n) in &layout.certain {
            let pseudo = kind.pseudo_count(problem.prior.table(*table), values);
            kind.multiply_closed_form(pseudo, *n, &mut certain[table.ix()]);
        }
        // A tied table may be used several times by a token.
        let most_uses = layout.kernels.iter().map(|kernel| kernel.touches.len()).max().unwrap_or(0);
        let n_tabulated = (tokens.len() * most_uses + 1).min(MOST_TABULATED) as u32;
        let part = |counted: &Counted| {
            let interior = layout.interior(counted.class);
            let blocks = layout.blocks.iter().zip(&tokens.first_line);
            let own = blocks.filter(|(block, _)| block.class as usize == counted.class);
            let (mut in_class, mut first): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            for (block, &line) in own {
                in_class.push(block.in_class);
                first.push(line / EIGHT as u32);
            }
            let logs = match &counted.pseudo {
                Pseudo::Even(pseudo) => {
                    Logs::Even(*pseudo, (0..n_tabulated).map(|n| ln_factor(counted.kind, *pseudo, n)).collect())
                }
                Pseudo::PerLine(all) => {
                    let of_block = |&ix: &u32| all[ix as usize * interior..][..interior].iter().copied();
                    Logs::PerLine(in_class.iter().flat_map(of_block).collect(), interior)
                }
            };
            Part { table: counted.table, kind: counted.kind, first, n_eights: interior.div_ceil(EIGHT), logs }
        };
        Joint {
            certain: certain.iter().map(|product| product.ln().value()).collect(),
            parts: layout.counted.iter().map(part).collect(),
        }
    }

    /// The part of each table when the lines hold these counts.
    pub fn by_table(&self, counts: &[[u32; EIGHT]]) -> Vec<f64> {
        let mut sums = self.certain.clone();
        for part in &self.parts {
            sums[part.table.ix()] += part.sum(counts);
        }
        sums
    }
}

impl Part {
    fn sum(&self, counts: &[[u32; EIGHT]]) -> f64 {
        match &self.logs {
            Logs::Even(pseudo, logs) => {
                // Eight sums side by side: one alone would wait for itself. Lines beyond the last of a block are zero.
                let mut sums = [0.0; EIGHT];
                for &first in &self.first {
                    for row in &counts[first as usize..][..self.n_eights] {
                        for (sum, &n) in sums.iter_mut().zip(row) {
                            *sum += match logs.get(n as usize) {
                                Some(ln) => *ln,
                                None => ln_factor(self.kind, *pseudo, n),
                            };
                        }
                    }
                }
                sums.iter().sum()
            }
            Logs::PerLine(all, interior) => {
                let blocks = self.first.iter().zip(all.chunks(*interior));
                let of_block = |(&first, all): (&u32, &[PseudoCount])| -> f64 {
                    let lines = &counts.as_flattened()[first as usize * EIGHT..];
                    all.iter().zip(lines).map(|(&pseudo, &n)| ln_factor(self.kind, pseudo, n)).sum()
                };
                blocks.map(of_block).sum()
            }
        }
    }
}
