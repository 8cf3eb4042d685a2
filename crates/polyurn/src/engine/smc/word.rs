//! The integer that particles count with.

use super::lanes::MAX_LANES;
use crate::simd::{Eight, Gathered};
use std::fmt::Debug;

/// The integer a line consists of: the shortest that is long enough. A few counters may need more; they have a second
/// line for their *high* words, which stand for as many times 2^[`Word::BITS`].
pub trait Word: Gathered + Default + PartialEq + Send + Sync + Debug + 'static {
    /// One.
    const ONE: Self;
    /// Number of bits.
    const BITS: u32;
    /// High words of a line that has none.
    const NO_HIGHS: &'static [Self; MAX_LANES];
    /// From an index that fits.
    fn from_index(index: usize) -> Self;
    /// As an index.
    fn index(self) -> usize;
    /// As a real number.
    fn real(self) -> f64;
    /// As a real number, with a high word.
    fn real_with(self, high: Self) -> f64;
    /// Adds, around the end: minus one is adding the largest number.
    fn plus(self, other: Self) -> Self;
    /// 0 less this, around the end.
    fn negative(self) -> Self;
    /// Eight of them as real numbers.
    fn eight<E: Eight>(words: &[Self; 8]) -> E;
    /// Eight of them as real numbers, with high words. Both are whole numbers, so nothing is rounded.
    #[inline(always)]
    fn eight_with<E: Eight>(words: &[Self; 8], high: &[Self; 8]) -> E {
        let unit = (1u64 << Self::BITS) as f64;
        Self::eight::<E>(words).add(Self::eight::<E>(high).mul(E::splat(unit)))
    }
    /// As an index, with a high word.
    fn index_with(self, high: Self) -> usize {
        high.index() << Self::BITS | self.index()
    }
}

macro_rules! word {
    ($int:ty, $double:ty, $eight:ident $(, $with:ident)?) => {
        impl Word for $int {
            const ONE: Self = 1;
            const BITS: u32 = <$int>::BITS;
            const NO_HIGHS: &'static [Self; MAX_LANES] = &[0; MAX_LANES];
            #[inline(always)]
            fn from_index(index: usize) -> Self {
                index as $int
            }
            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn real(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn real_with(self, high: Self) -> f64 {
                (<$double>::from(high) << <$int>::BITS | <$double>::from(self)) as f64
            }
            #[inline(always)]
            fn eight<E: Eight>(words: &[Self; 8]) -> E {
                E::$eight(words)
            }
            $(
                #[inline(always)]
                fn eight_with<E: Eight>(words: &[Self; 8], high: &[Self; 8]) -> E {
                    E::$with(words, high)
                }
            )?
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn negative(self) -> Self {
                self.wrapping_neg()
            }
        }
    };
}
word!(u8, u16, of_u8, of_bytes);
word!(u16, u32, of_u16);
word!(u32, u64, of_u32);
