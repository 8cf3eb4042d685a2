//! What counts are counted in.

use crate::math::Double;
use serde::{Deserialize, Serialize};

/// Decimal places at most; further ones are rounded.
pub const MOST_DECIMALS: u8 = 9;

/// Whole tokens, or decimal parts of one. Counts are whole numbers of the unit, so fractions as people write them add up
/// without rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Unit {
    decimals: u8,
}

impl Unit {
    /// Whole tokens.
    pub const TOKEN: Unit = Unit { decimals: 0 };

    /// Parts of a token with this many decimal places, at most [`MOST_DECIMALS`].
    pub(crate) fn new(decimals: u8) -> Self {
        assert!(decimals <= MOST_DECIMALS, "at most {MOST_DECIMALS} decimal places");
        Unit { decimals }
    }

    /// Whether it is a whole token.
    pub fn is_token(self) -> bool {
        self.decimals == 0
    }

    /// How many of it make a token.
    pub fn per_token(self) -> u64 {
        10u64.pow(u32::from(self.decimals))
    }

    /// How many tokens a number of it is, with 32 digits.
    pub(crate) fn exact_tokens(self, n: u64) -> Double {
        Double::from(n) / Double::from(self.per_token())
    }

    /// How many tokens a number of it is.
    pub fn tokens(self, n: u64) -> f64 {
        n as f64 / self.per_token() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenths_are_what_people_write() {
        assert_eq!((Unit::new(1).tokens(3), Unit::new(9).tokens(1), Unit::TOKEN.tokens(7)), (0.3, 1e-9, 7.0));
        assert!(Unit::TOKEN.is_token() && !Unit::new(2).is_token() && Unit::new(2) > Unit::new(1));
    }
}
