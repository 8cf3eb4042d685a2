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

/// What a buffer must have behind its last element so that a [`Gather`] can load whole registers.
pub const GATHER_PADDING: usize = 64;

/// Elements that are gathered together.
const GROUP: usize = 32;

/// How far apart the sources of a group may lie so that two registers hold them all, for 16 and for 32 bits.
const WINDOW_16: usize = 64;
const WINDOW_32: usize = 32;

/// A map `to[ix] = from[map[ix]]`, made ready to be used for many lines.
///
/// Maps of ancestors ascend, so neighbours in `to` come from neighbours in `from`: with AVX-512 a permutation of two
/// registers brings 32 of them at once. Groups whose sources lie too far apart are gathered one by one.
#[derive(Debug, Default)]
pub struct Gather {
    map: Vec<u32>,
    /// For each group of the map the first source.
    first: Vec<u32>,
    /// The map within each group, from the first source on.
    within: Vec<u16>,
    /// For each group whether its sources fit into the window.
    fits: Vec<bool>,
}

/// Integers that can be gathered.
pub trait Gathered: Copy {
    /// Gathers what the map says from its element `start` on, a multiple of 32.
    fn gather(isa: Isa, plan: &Gather, start: usize, from: &[Self], to: &mut [Self]);
}

impl Gather {
    /// Takes up a map, from which `base` is taken off.
    pub fn set(&mut self, map: &[u32], base: u32) {
        self.map.clear();
        self.map.extend(map.iter().map(|slot| slot - base));
        self.first.clear();
        self.within.clear();
        self.fits.clear();
        for group in self.map.chunks(GROUP) {
            let first = group[0];
            // In a map that does not ascend this may wrap; such a group does not fit.
            self.within.extend(group.iter().map(|slot| slot.wrapping_sub(first) as u16));
            let fits = group.len() == GROUP && group.iter().all(|slot| slot.wrapping_sub(first) < WINDOW_16 as u32);
            self.first.push(first);
            self.fits.push(fits);
        }
    }

    fn all_one_by_one<T: Copy>(&self, first_group: usize, from: &[T], to: &mut [T]) {
        for (group, to) in (first_group..).zip(to.chunks_mut(GROUP)) {
            self.one_by_one(group, from, to);
        }
    }

    fn one_by_one<T: Copy>(&self, group: usize, from: &[T], to: &mut [T]) {
        let map = &self.map[group * GROUP..];
        for (to, &slot) in to.iter_mut().zip(map) {
            *to = from[slot as usize];
        }
    }
}

impl Gathered for u16 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, start: usize, from: &[Self], to: &mut [Self]) {
        debug_assert_eq!(start % GROUP, 0);
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u16_avx512(plan, start / GROUP, from, to) },
            _ => plan.all_one_by_one(start / GROUP, from, to),
        }
    }
}

impl Gathered for u32 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, start: usize, from: &[Self], to: &mut [Self]) {
        debug_assert_eq!(start % GROUP, 0);
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u32_avx512(plan, start / GROUP, from, to) },
            _ => plan.all_one_by_one(start / GROUP, from, to),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u16_avx512(plan: &Gather, first_group: usize, from: &[u16], to: &mut [u16]) {
    use std::arch::x86_64::*;
    for (group, to) in (first_group..).zip(to.chunks_mut(GROUP)) {
        let first = plan.first[group] as usize;
        let window = from.get(first..first + WINDOW_16);
        let (Some(window), true, GROUP) = (window, plan.fits[group], to.len()) else {
            plan.one_by_one(group, from, to);
            continue;
        };
        let within = &plan.within[group * GROUP..][..GROUP];
        // SAFETY: `within` and `to` have 32 elements, `window` has 64; loads and stores are unaligned ones, and indices
        // are taken modulo 64.
        unsafe {
            let index = _mm512_loadu_si512(within.as_ptr().cast());
            let left = _mm512_loadu_si512(window.as_ptr().cast());
            let right = _mm512_loadu_si512(window.as_ptr().add(32).cast());
            _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_permutex2var_epi16(left, index, right));
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u32_avx512(plan: &Gather, first_group: usize, from: &[u32], to: &mut [u32]) {
    use std::arch::x86_64::*;
    for (group, to) in (first_group..).zip(to.chunks_mut(GROUP)) {
        if to.len() < GROUP {
            plan.one_by_one(group, from, to);
            continue;
        }
        for half in 0..2 {
            let map = &plan.map[group * GROUP + half * 16..][..16];
            let to = &mut to[half * 16..][..16];
            let (first, last) = (map[0] as usize, map[15] as usize);
            let window = from.get(first..first + WINDOW_32);
            let (Some(window), true) = (window, plan.fits[group] && last >= first && last - first < WINDOW_32) else {
                to.iter_mut().zip(map).for_each(|(to, &slot)| *to = from[slot as usize]);
                continue;
            };
            // SAFETY: `map` and `to` have 16 elements, `window` has 32; loads and stores are unaligned ones, and indices
            // are taken modulo 32.
            unsafe {
                let index = _mm512_sub_epi32(_mm512_loadu_si512(map.as_ptr().cast()), _mm512_set1_epi32(first as i32));
                let left = _mm512_loadu_si512(window.as_ptr().cast());
                let right = _mm512_loadu_si512(window.as_ptr().add(16).cast());
                _mm512_storeu_si512(to.as_mut_ptr().cast(), _mm512_permutex2var_epi32(left, index, right));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, Seed, math::draw};

    /// Maps of all kinds: near identity, all from one, wide gaps, and not ascending.
    #[test]
    fn gathering_with_vectors_is_gathering_one_by_one() {
        let mut rng = Seed(5).stream(Purpose::Urn, 0, 0, 0);
        let mut below = |n: u64| draw::below(n, &mut rng);
        for round in 0..400 {
            let n = 1 + below(400) as usize;
            let spread = [1, 2, 5, 100][round % 4];
            let base = below(50) as u32;
            let mut slot = base;
            let mut map: Vec<u32> = (0..n)
                .map(|_| {
                    slot += below(spread) as u32;
                    slot
                })
                .collect();
            if round % 5 == 0 {
                let at = below(n as u64) as usize;
                map.swap(0, at);
            }
            let n_from = (slot - base) as usize + 1 + if round % 3 == 0 { GATHER_PADDING } else { 0 };
            let mut plan = Gather::default();
            plan.set(&map, base);
            let narrow: Vec<u16> = (0..n_from).map(|_| below(65_536) as u16).collect();
            let wide: Vec<u32> = (0..n_from).map(|_| below(1 << 32) as u32).collect();
            let mut got = vec![0u16; n];
            u16::gather(Isa::detect(), &plan, 0, &narrow, &mut got);
            assert!(got.iter().zip(&map).all(|(&got, &slot)| got == narrow[(slot - base) as usize]));
            let mut got = vec![0u32; n];
            u32::gather(Isa::detect(), &plan, 0, &wide, &mut got);
            assert!(got.iter().zip(&map).all(|(&got, &slot)| got == wide[(slot - base) as usize]));
        }
    }
}
