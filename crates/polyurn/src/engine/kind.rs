//! What a counter counts: tokens in one cell of a table, or in a whole row.

use crate::math::LnProduct;
use crate::prior::{PseudoCount, PseudoCounts};

/// A cell of a table, or a whole row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// One cell: parents and child.
    Cell,
    /// One row: parents only.
    Row,
}

impl Kind {
    /// The pseudo-count of the cell or row with these values.
    pub fn pseudo_count(self, table: &PseudoCounts, values: &[u32]) -> PseudoCount {
        match self {
            Kind::Cell => table.cell(&values[..values.len() - 1], values[values.len() - 1]),
            Kind::Row => table.row(values),
        }
    }

    /// Multiplies the closed form of `n` tokens into the product: rising factorials of cells over those of rows
    /// (theory.md eq. 6; the Beta-function ratio of the paper's eq. for pi(S)).
    pub fn multiply_closed_form(self, pseudo: PseudoCount, n: u64, product: &mut LnProduct) {
        let PseudoCount { value, ln_if_tiny } = pseudo;
        match self {
            Kind::Cell => product.multiply_rising(value, ln_if_tiny, n),
            // A row of zeros has only cells of zeros: they already make the product zero.
            Kind::Row if pseudo.is_zero() => {}
            Kind::Row => product.divide_rising(value, ln_if_tiny, n),
        }
    }
}
