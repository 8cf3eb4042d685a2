//! Uniform numbers by the hundred.

use crate::simd::{Isa, Job};
use rand::Rng;

/// A buffer of uniform numbers in (0, 1).
#[derive(Debug)]
pub struct Uniforms {
    bytes: Vec<u8>,
    numbers: Vec<f64>,
}

impl Uniforms {
    /// Room for `n` numbers.
    pub fn new(n: usize) -> Self {
        Uniforms { bytes: vec![0; 8 * n], numbers: vec![0.0; n] }
    }

    /// The next `n` numbers of a stream: as [`crate::math::draw::open_unit`] gives them one by one.
    pub fn fill(&mut self, isa: Isa, n: usize, rng: &mut impl Rng) -> &[f64] {
        rng.fill_bytes(&mut self.bytes[..8 * n]);
        isa.run(Convert { bytes: &self.bytes[..8 * n], numbers: &mut self.numbers[..n] });
        &self.numbers[..n]
    }

    /// The `n` numbers that were filled in last.
    pub fn last(&self, n: usize) -> &[f64] {
        &self.numbers[..n]
    }
}

struct Convert<'a> {
    bytes: &'a [u8],
    numbers: &'a mut [f64],
}

impl Job for Convert<'_> {
    #[inline(always)]
    fn run(self) {
        let (words, _) = self.bytes.as_chunks::<8>();
        for (number, word) in self.numbers.iter_mut().zip(words) {
            // 53 random bits, moved by half a step so that neither end is reached.
            *number = ((u64::from_le_bytes(*word) >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::draw::open_unit;
    use crate::{Purpose, Seed};

    #[test]
    fn a_buffer_holds_what_the_stream_gives_one_by_one() {
        let stream = || Seed(9).stream(Purpose::Particles, 1, 2, 3);
        let mut one_by_one = stream();
        let want: Vec<f64> = (0..48).map(|_| open_unit(&mut one_by_one)).collect();
        for isa in [Isa::SCALAR, Isa::detect()] {
            let mut uniforms = Uniforms::new(48);
            assert_eq!(uniforms.fill(isa, 48, &mut stream()), want);
        }
    }
}
