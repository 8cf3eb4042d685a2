//! The integer that particles count with.

use crate::simd::Gathered;
use std::fmt::Debug;

/// The integer a line consists of: 16 bits where that is enough, else 32.
pub trait Word: Gathered + Default + PartialEq + Send + Sync + Debug + 'static {
    /// One.
    const ONE: Self;
    /// From an index that fits.
    fn from_index(index: usize) -> Self;
    /// As an index.
    fn index(self) -> usize;
    /// As a real number.
    fn real(self) -> f64;
    /// Adds, around the end: minus one is adding the largest number.
    fn plus(self, other: Self) -> Self;
    /// 0 less this, around the end.
    fn negative(self) -> Self;
}

macro_rules! word {
    ($int:ty) => {
        impl Word for $int {
            const ONE: Self = 1;
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
word!(u16);
word!(u32);
