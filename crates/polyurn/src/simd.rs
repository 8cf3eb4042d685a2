//! Vector instructions, chosen at run time. The only unsafe code of the crate.
//!
//! A [`Job`] is plain Rust that the compiler turns into vector code. It is compiled once for every instruction set below;
//! which one runs is decided when the program starts, so a plain `cargo build --release` is fast on every machine. The
//! arithmetic is the same in each: no fused multiply-add, and sums in a fixed order. So they give the same bytes.

#![allow(unsafe_code)]

use serde::Serialize;

/// An instruction set that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub struct Isa(Level);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    /// What every machine of this architecture has.
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// A piece of work for [`Isa::run`]. Implementations must be `#[inline(always)]`, down to their innermost loop: only
/// what is inlined is compiled for the chosen instruction set.
pub trait Job {
    /// Does the work.
    fn run(self);
}

impl Isa {
    /// Nothing beyond what every machine of this architecture has.
    pub const SCALAR: Isa = Isa(Level::Scalar);

    /// The best that this machine has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let has_avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if has_avx512 {
                return Isa(Level::Avx512);
            }
            if is_x86_feature_detected!("avx2") {
                return Isa(Level::Avx2);
            }
        }
        Isa(Level::Scalar)
    }

    /// Its name in results: `scalar`, `avx2`, `avx512`.
    pub fn name(self) -> &'static str {
        match self.0 {
            Level::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    /// Runs a job with these instructions.
    #[inline]
    pub fn run<J: Job>(self, job: J) {
        match self.0 {
            Level::Scalar => job.run(),
            // SAFETY: a level above scalar is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx2(job) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512(job) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<J: Job>(job: J) {
    job.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<J: Job>(job: J) {
    job.run();
}

/// Elements that a group of gathered elements may lie apart, so that two vector registers hold them all.
const WINDOW: usize = 64;

/// What a buffer must have behind its last element so that [`Gather::gather`] can load whole registers.
pub const GATHER_PADDING: usize = WINDOW;

/// Integers that can be gathered.
pub trait Gather: Copy {
    /// `to[ix] = from[map[ix] - base]`. Fast where `map` ascends, as maps of ancestors do: neighbours in `to` then come
    /// from neighbours in `from`, and a permutation of two registers brings 32 of them at once.
    fn gather(isa: Isa, from: &[Self], map: &[u32], base: u32, to: &mut [Self]);
}

#[inline]
fn gather_one_by_one<T: Copy>(from: &[T], map: &[u32], base: u32, to: &mut [T]) {
    for (to, &slot) in to.iter_mut().zip(map) {
        *to = from[(slot - base) as usize];
    }
}

impl Gather for u16 {
    #[inline]
    fn gather(isa: Isa, from: &[Self], map: &[u32], base: u32, to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u16_avx512(from, map, base, to) },
            _ => gather_one_by_one(from, map, base, to),
        }
    }
}

impl Gather for u32 {
    #[inline]
    fn gather(isa: Isa, from: &[Self], map: &[u32], base: u32, to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u32_avx512(from, map, base, to) },
            _ => gather_one_by_one(from, map, base, to),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u16_avx512(from: &[u16], map: &[u32], base: u32, to: &mut [u16]) {
    use std::arch::x86_64::*;
    const GROUP: usize = 32;
    for (map, to) in map.chunks(GROUP).zip(to.chunks_mut(GROUP)) {
        let first = (map[0] - base) as usize;
        let last = (map[map.len() - 1] - base) as usize;
        let is_in_window = map.len() == GROUP && to.len() == GROUP && last >= first && last - first < WINDOW;
        if !is_in_window || first + WINDOW > from.len() {
            gather_one_by_one(from, map, base, to);
            continue;
        }
        let window = &from[first..first + WINDOW];
        let start = _mm512_set1_epi32(map[0] as i32);
        // SAFETY: `map` and `to` have 32 elements, `window` has 64; loads and stores are unaligned ones. An index outside
        // of the window, from a map that does not ascend, is taken modulo 64 and reads no memory.
        unsafe {
            let low = _mm512_sub_epi32(_mm512_loadu_si512(map.as_ptr().cast()), start);
            let high = _mm512_sub_epi32(_mm512_loadu_si512(map.as_ptr().add(16).cast()), start);
            let index = _mm512_inserti64x4::<1>(
                _mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)),
                _mm512_cvtepi32_epi16(high),
            );
            let left = _mm512_loadu_si512(window.as_ptr().cast());
            let right = _mm512_loadu_si512(window.as_ptr().add(32).cast());
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_permutex2var_epi16(left, index, right));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u32_avx512(from: &[u32], map: &[u32], base: u32, to: &mut [u32]) {
    use std::arch::x86_64::*;
    const GROUP: usize = 16;
    for (map, to) in map.chunks(GROUP).zip(to.chunks_mut(GROUP)) {
        let first = (map[0] - base) as usize;
        let last = (map[map.len() - 1] - base) as usize;
        let is_in_window = map.len() == GROUP && to.len() == GROUP && last >= first && last - first < WINDOW / 2;
        if !is_in_window || first + WINDOW / 2 > from.len() {
            gather_one_by_one(from, map, base, to);
            continue;
        }
        let window = &from[first..first + WINDOW / 2];
        let start = _mm512_set1_epi32(map[0] as i32);
        // SAFETY: `map` and `to` have 16 elements, `window` has 32; loads and stores are unaligned ones. An index outside
        // of the window, from a map that does not ascend, is taken modulo 32 and reads no memory.
        unsafe {
            let index = _mm512_sub_epi32(_mm512_loadu_si512(map.as_ptr().cast()), start);
            let left = _mm512_loadu_si512(window.as_ptr().cast());
            let right = _mm512_loadu_si512(window.as_ptr().add(16).cast());
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_permutex2var_epi32(left, index, right));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, Seed, math::draw};

    /// Ascending maps of all kinds: near identity, all from one, wide gaps.
    #[test]
    fn gathering_with_vectors_is_gathering_one_by_one() {
        let mut rng = Seed(5).stream(Purpose::Urn, 0, 0, 0);
        let mut below = |n: u64| draw::below(n, &mut rng);
        for round in 0..300 {
            let n = 1 + below(400) as usize;
            let spread = [1, 2, 5, 100][round % 4];
            let base = below(50) as u32;
            let mut slot = base;
            let map: Vec<u32> = (0..n)
                .map(|_| {
                    slot += below(spread) as u32;
                    slot
                })
                .collect();
            let n_from = (slot - base) as usize + 1 + if round % 3 == 0 { GATHER_PADDING } else { 0 };
            let narrow: Vec<u16> = (0..n_from).map(|_| below(65_536) as u16).collect();
            let wide: Vec<u32> = (0..n_from).map(|_| below(1 << 32) as u32).collect();
            let (mut got, mut want) = (vec![0u16; n], vec![0u16; n]);
            u16::gather(Isa::detect(), &narrow, &map, base, &mut got);
            gather_one_by_one(&narrow, &map, base, &mut want);
            assert_eq!(got, want);
            let (mut got, mut want) = (vec![0u32; n], vec![0u32; n]);
            u32::gather(Isa::detect(), &wide, &map, base, &mut got);
            gather_one_by_one(&wide, &map, base, &mut want);
            assert_eq!(got, want);
        }
    }
}
