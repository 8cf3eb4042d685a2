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

/// Elements that are gathered together.
const GROUP: usize = 32;

/// Elements that are loaded to gather a group from: two registers of 16 bits each.
pub const WINDOW: usize = 64;

/// Two registers of 32 bits each.
const WINDOW_32: usize = 32;

/// A map `to[ix] = from[map[ix]]`, made ready to be used for many lines.
///
/// Maps of ancestors ascend, so neighbours in `to` come from neighbours in `from`: with AVX-512 a permutation of two
/// registers brings 32 of them at once. Groups whose sources lie too far apart are gathered one by one.
#[derive(Debug, Default)]
pub struct Gather {
    map: Vec<u32>,
    /// The map within each group, from its first source on.
    within: Vec<u16>,
    /// For each group whether it ascends and its sources fit into the window.
    fits: Vec<bool>,
}

/// Integers that can be gathered.
pub trait Gathered: Copy {
    /// Gathers what the map says.
    fn gather(isa: Isa, plan: &Gather, from: &[Self], to: &mut [Self]);
}

impl Gather {
    /// Takes up a map.
    pub fn set(&mut self, map: &[u32]) {
        self.map.clear();
        self.map.extend_from_slice(map);
        self.within.clear();
        self.fits.clear();
        for group in map.chunks(GROUP) {
            let (first, last) = (group[0], group[group.len() - 1]);
            self.within.extend(group.iter().map(|slot| slot.wrapping_sub(first) as u16));
            let is_near = group.len() == GROUP && last.wrapping_sub(first) < WINDOW as u32;
            self.fits.push(is_near && group.is_sorted());
        }
    }

    fn groups<'g, T>(&'g self, to: &'g mut [T]) -> impl Iterator<Item = (Group<'g>, &'g mut [T])> {
        let maps = self.map.chunks(GROUP).zip(self.within.chunks(GROUP)).zip(&self.fits);
        maps.map(|((map, within), &fits)| Group { map, within, fits }).zip(to.chunks_mut(GROUP))
    }
}

/// Part of a map that is gathered together.
struct Group<'g> {
    map: &'g [u32],
    within: &'g [u16],
    fits: bool,
}

impl Group<'_> {
    #[inline(always)]
    fn one_by_one<T: Copy>(&self, from: &[T], to: &mut [T]) {
        for (to, &slot) in to.iter_mut().zip(self.map) {
            *to = from[slot as usize];
        }
    }
}

impl Gathered for u16 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, from: &[Self], to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u16_avx512(plan, from, to) },
            _ => plan.groups(to).for_each(|(group, to)| group.one_by_one(from, to)),
        }
    }
}

impl Gathered for u32 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, from: &[Self], to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u32_avx512(plan, from, to) },
            _ => plan.groups(to).for_each(|(group, to)| group.one_by_one(from, to)),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u16_avx512(plan: &Gather, from: &[u16], to: &mut [u16]) {
    use std::arch::x86_64::*;
    for (group, to) in plan.groups(to) {
        let window = from[group.map[0] as usize..].first_chunk::<WINDOW>();
        let within = group.within.first_chunk::<GROUP>();
        let (Some(window), Some(within), true, GROUP) = (window, within, group.fits, to.len()) else {
            group.one_by_one(from, to);
            continue;
        };
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
fn gather_u32_avx512(plan: &Gather, from: &[u32], to: &mut [u32]) {
    use std::arch::x86_64::*;
    for (group, to) in plan.groups(to) {
        for (map, to) in group.map.chunks(GROUP / 2).zip(to.chunks_mut(GROUP / 2)) {
            let (first, last) = (map[0] as usize, map[map.len() - 1] as usize);
            let is_near = group.fits && last - first < WINDOW_32 && to.len() == GROUP / 2;
            let window = from[first..].first_chunk::<WINDOW_32>();
            let (Some(window), Some(map), true) = (window, map.first_chunk::<{ GROUP / 2 }>(), is_near) else {
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
            let mut slot = below(50) as u32;
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
            let n_from = slot as usize + 1 + if round % 3 == 0 { WINDOW } else { 0 };
            let mut plan = Gather::default();
            plan.set(&map);
            let narrow: Vec<u16> = (0..n_from).map(|_| below(65_536) as u16).collect();
            let wide: Vec<u32> = (0..n_from).map(|_| below(1 << 32) as u32).collect();
            let mut got = vec![0u16; n];
            u16::gather(Isa::detect(), &plan, narrow.as_slice(), &mut got);
            assert!(got.iter().zip(&map).all(|(&got, &slot)| got == narrow[slot as usize]));
            let mut got = vec![0u32; n];
            u32::gather(Isa::detect(), &plan, wide.as_slice(), &mut got);
            assert!(got.iter().zip(&map).all(|(&got, &slot)| got == wide[slot as usize]));
        }
    }
}
