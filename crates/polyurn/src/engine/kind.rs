//! What a counter counts: tokens in one cell of a table, or in a whole row.

use crate::math::{Double, LnProduct, Risings};
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

    /// Multiplies the factor of one more token into the product, after `n_before`.
    pub fn multiply_next(self, pseudo: PseudoCount, n_before: u64, product: &mut LnProduct) {
        if n_before == 0 {
            return self.multiply_closed_form(pseudo, 1, product);
        }
        let factor = Double::from(pseudo.value) + Double::from(n_before);
        match self {
            Kind::Cell => product.multiply(factor),
            Kind::Row => product.divide(factor),
        }
    }
}

/// The closed form of very many cells and rows: as [`Kind::multiply_closed_form`] of each, but equal pseudo-counts are
/// evaluated together.
#[derive(Debug, Default)]
pub struct ClosedForm {
    cells: Risings,
    rows: Risings,
}

impl ClosedForm {
    /// Adds `n` tokens in a cell or row.
    pub fn push(&mut self, kind: Kind, pseudo: PseudoCount, n: u64) {
        let PseudoCount { value, ln_if_tiny } = pseudo;
        match kind {
            Kind::Cell => self.cells.push(value, ln_if_tiny, n),
            // As above: its cells are zeros too.
            Kind::Row if pseudo.is_zero() => {}
            Kind::Row => self.rows.push(value, ln_if_tiny, n),
        }
    }

    /// Cells over rows.
    pub fn product(self) -> LnProduct {
        let mut product = self.cells.product();
        product.divide_by(&self.rows.product());
        product
    }
}
