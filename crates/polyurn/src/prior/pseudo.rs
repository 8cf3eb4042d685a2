//! Pseudo-counts of one table, stored as compactly as the prior allows: a table never seen is never stored.

use crate::math::TINY;
use std::sync::Arc;

/// A pseudo-count, with its logarithm where the number itself is too small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PseudoCount {
    /// The pseudo-count; zero when it underflows or is zero.
    pub value: f64,
    /// Its logarithm; exact where `value` is below 1e-290, otherwise unspecified.
    pub ln_if_tiny: f64,
}

impl PseudoCount {
    /// A number that is known not to have underflowed (or is exactly zero).
    pub fn exact(value: f64) -> Self {
        PseudoCount { value, ln_if_tiny: if value < TINY { value.ln() } else { 0.0 } }
    }

    /// True when the pseudo-count is exactly zero: such a value never occurs.
    pub fn is_zero(self) -> bool {
        self.value == 0.0 && self.ln_if_tiny == f64::NEG_INFINITY
    }

    /// A multiple of it.
    #[inline(always)]
    pub fn times(self, factor: f64) -> Self {
        let value = self.value * factor;
        if value >= TINY || factor == 1.0 {
            return PseudoCount { value, ln_if_tiny: self.ln_if_tiny };
        }
        PseudoCount { value, ln_if_tiny: self.ln() + factor.ln() }
    }

    /// Natural logarithm.
    pub fn ln(self) -> f64 {
        if self.value < TINY { self.ln_if_tiny } else { self.value.ln() }
    }
}

/// Pseudo-counts of one table. A row is addressed by the values of the parents, a cell by those and the child's value.
#[derive(Debug, Clone, PartialEq)]
pub enum PseudoCounts {
    /// The same number in every cell.
    Even {
        /// A cell's pseudo-count.
        cell: PseudoCount,
        /// A row's sum.
        row: PseudoCount,
    },
    /// A sum of products of one weight per parent and child: marginals of an independent base measure.
    Product {
        /// One term per tied member.
        terms: Vec<ProductTerm>,
    },
    /// Every cell by itself, row major, child fastest.
    Dense {
        /// All cells.
        cells: Vec<f64>,
        /// Row sums.
        rows: Vec<f64>,
        /// Sizes of the parents.
        parent_sizes: Vec<u32>,
        /// Size of the child.
        child_size: u32,
    },
}

/// One product of marginal weights.
#[derive(Debug, Clone, PartialEq)]
pub struct ProductTerm {
    /// Total size.
    pub size: f64,
    /// Normalised weights of each parent's values.
    pub parents: Vec<Arc<[f64]>>,
    /// Normalised weights of the child's values.
    pub child: Arc<[f64]>,
}

impl PseudoCounts {
    /// A dense table from its cells.
    pub fn dense(cells: Vec<f64>, parent_sizes: Vec<u32>, child_size: u32) -> Self {
        let rows = cells.chunks_exact(child_size as usize).map(|row| row.iter().sum()).collect();
        PseudoCounts::Dense { cells, rows, parent_sizes, child_size }
    }

    /// The pseudo-count of a cell.
    pub fn cell(&self, parents: &[u32], child: u32) -> PseudoCount {
        match self {
            PseudoCounts::Even { cell, .. } => *cell,
            PseudoCounts::Product { terms } => {
                sum_of_products(terms, |term| product(term, parents).chain([term.child[child as usize]]).collect())
            }
            PseudoCounts::Dense { cells, parent_sizes, child_size, .. } => {
                PseudoCount::exact(cells[row_number(parents, parent_sizes) * *child_size as usize + child as usize])
            }
        }
    }

    /// The sum of a row's pseudo-counts.
    pub fn row(&self, parents: &[u32]) -> PseudoCount {
        match self {
            PseudoCounts::Even { row, .. } => *row,
            PseudoCounts::Product { terms } => sum_of_products(terms, |term| product(term, parents).collect()),
            PseudoCounts::Dense { rows, parent_sizes, .. } => {
                PseudoCount::exact(rows[row_number(parents, parent_sizes)])
            }
        }
    }

    /// Multiplies all of them.
    pub fn multiply(&mut self, factor: f64) {
        match self {
            PseudoCounts::Even { cell, row } => [cell, row].into_iter().for_each(|own| *own = own.times(factor)),
            PseudoCounts::Product { terms } => terms.iter_mut().for_each(|term| term.size *= factor),
            PseudoCounts::Dense { cells, rows, .. } => cells.iter_mut().chain(rows).for_each(|own| *own *= factor),
        }
    }

    /// True when some cell is exactly zero.
    pub fn has_zero_cells(&self) -> bool {
        match self {
            PseudoCounts::Even { cell, .. } => cell.is_zero(),
            PseudoCounts::Product { terms } => terms
                .iter()
                .any(|term| term.child.contains(&0.0) || term.parents.iter().any(|weights| weights.contains(&0.0))),
            PseudoCounts::Dense { cells, .. } => cells.contains(&0.0),
        }
    }

    /// True when exchanging values `v` and `w` in the given positions (parents by position; the child is position
    /// `n_parents`) leaves every pseudo-count the same.
    pub fn is_symmetric(&self, positions: &[bool], v: u32, w: u32) -> bool {
        match self {
            PseudoCounts::Even { .. } => true,
            PseudoCounts::Product { terms } => terms.iter().all(|term| {
                term.parents
                    .iter()
                    .chain([&term.child])
                    .zip(positions)
                    .all(|(weights, &swapped)| !swapped || weights[v as usize] == weights[w as usize])
            }),
            PseudoCounts::Dense { cells, parent_sizes, child_size, .. } => {
                let sizes: Vec<u32> = parent_sizes.iter().copied().chain([*child_size]).collect();
                let mut family = vec![0u32; sizes.len()];
                (0..cells.len()).all(|ix| {
                    decode(ix, &sizes, &mut family);
                    for (value, &swapped) in family.iter_mut().zip(positions) {
                        if swapped {
                            *value = if *value == v {
                                w
                            } else if *value == w {
                                v
                            } else {
                                *value
                            };
                        }
                    }
                    cells[ix] == cells[row_number(&family, &sizes)]
                })
            }
        }
    }
}

/// Mixed-radix number of a tuple, last entry fastest.
pub(crate) fn row_number(values: &[u32], sizes: &[u32]) -> usize {
    values.iter().zip(sizes).fold(0, |number, (&value, &size)| number * size as usize + value as usize)
}

/// The inverse of [`row_number`].
pub(crate) fn decode(mut number: usize, sizes: &[u32], out: &mut [u32]) {
    for (slot, &size) in out.iter_mut().zip(sizes).rev() {
        *slot = (number % size as usize) as u32;
        number /= size as usize;
    }
}

fn product<'a>(term: &'a ProductTerm, parents: &'a [u32]) -> impl Iterator<Item = f64> + 'a {
    [term.size].into_iter().chain(term.parents.iter().zip(parents).map(|(weights, &value)| weights[value as usize]))
}

fn sum_of_products(terms: &[ProductTerm], factors: impl Fn(&ProductTerm) -> Vec<f64>) -> PseudoCount {
    let value: f64 = terms.iter().map(|term| factors(term).iter().product::<f64>()).sum();
    if value >= TINY {
        return PseudoCount { value, ln_if_tiny: 0.0 };
    }
    let ln_terms: Vec<f64> = terms.iter().map(|term| factors(term).iter().map(|factor| factor.ln()).sum()).collect();
    PseudoCount { value, ln_if_tiny: crate::math::log_sum_exp(&ln_terms) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_and_dense_tables_of_the_same_measure_agree() {
        let p: Arc<[f64]> = [0.25, 0.75].into();
        let c: Arc<[f64]> = [0.5, 0.2, 0.3].into();
        let product = PseudoCounts::Product {
            terms: vec![ProductTerm { size: 3.0, parents: vec![p.clone()], child: c.clone() }],
        };
        let cells = p.iter().flat_map(|x| c.iter().map(move |y| 3.0 * x * y)).collect();
        let dense = PseudoCounts::dense(cells, vec![2], 3);
        for parent in 0..2 {
            for child in 0..3 {
                let (a, b) = (product.cell(&[parent], child).value, dense.cell(&[parent], child).value);
                assert!((a - b).abs() < 1e-15);
            }
            assert!((product.row(&[parent]).value - dense.row(&[parent]).value).abs() < 1e-15);
        }
    }

    #[test]
    fn underflowed_products_keep_their_logarithm() {
        let w: Arc<[f64]> = [1e-200, 1.0 - 1e-200].into();
        let product = PseudoCounts::Product {
            terms: vec![ProductTerm { size: 1.0, parents: vec![w.clone(), w.clone()], child: w }],
        };
        let cell = product.cell(&[0, 0], 0);
        assert_eq!(cell.value, 0.0);
        assert!(!cell.is_zero());
        assert!((cell.ln() - 3.0 * 1e-200f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn symmetry_sees_a_single_odd_cell() {
        let even = PseudoCounts::dense(vec![1.0; 6], vec![2], 3);
        assert!(even.is_symmetric(&[true, false], 0, 1));
        let odd = PseudoCounts::dense(vec![1.0, 1.0, 1.0, 1.0, 1.0, 2.0], vec![2], 3);
        assert!(!odd.is_symmetric(&[true, false], 0, 1));
        assert!(odd.is_symmetric(&[false, true], 0, 1));
        assert!(!odd.is_symmetric(&[false, true], 1, 2));
    }
}
