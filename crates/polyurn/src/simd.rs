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

/// Eight numbers that are handled together. What the compiler makes of arrays of eight is too often not a register: that
/// cost a factor of two in the loops that need it (docs/benchmarks.md). Every operation rounds as its scalar twin does.
pub trait Eight: Copy {
    /// The same number eight times.
    fn splat(value: f64) -> Self;
    /// Eight neighbours.
    fn load(from: &[f64; 8]) -> Self;
    /// Writes them.
    fn store(self, to: &mut [f64; 8]);
    /// Sums.
    fn add(self, other: Self) -> Self;
    /// Products.
    fn mul(self, other: Self) -> Self;
    /// All eight: the halves are added, then the halves of that, then the two that are left.
    fn sum(self) -> f64;
}

impl Eight for [f64; 8] {
    #[inline(always)]
    fn splat(value: f64) -> Self {
        [value; 8]
    }

    #[inline(always)]
    fn load(from: &[f64; 8]) -> Self {
        *from
    }

    #[inline(always)]
    fn store(self, to: &mut [f64; 8]) {
        *to = self;
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + other[lane])
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] * other[lane])
    }

    #[inline(always)]
    fn sum(self) -> f64 {
        let four: [f64; 4] = std::array::from_fn(|lane| self[lane] + self[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
}

/// A piece of work for [`Isa::run_eights`]; as for [`Job`], everything down to the innermost loop must be
/// `#[inline(always)]`.
pub trait EightJob {
    /// Does the work with this kind of eight.
    fn run<E: Eight>(self);
}

impl Isa {
    /// Runs a job that says itself what stands in registers.
    #[inline]
    pub fn run_eights<J: EightJob>(self, job: J) {
        match self.0 {
            Level::Scalar => job.run::<[f64; 8]>(),
            // SAFETY: a level above scalar is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => unsafe { avx::eights_avx2(job) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx::eights_avx512(job) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx {
    use super::{Eight, EightJob};
    use std::arch::x86_64::{
        __m256d, __m512d, _mm_add_pd, _mm_add_sd, _mm_cvtsd_f64, _mm_unpackhi_pd, _mm256_add_pd,
        _mm256_castpd256_pd128, _mm256_extractf128_pd, _mm256_loadu_pd, _mm256_mul_pd, _mm256_set1_pd,
        _mm256_storeu_pd, _mm512_add_pd, _mm512_castpd512_pd256, _mm512_extractf64x4_pd, _mm512_loadu_pd,
        _mm512_mul_pd, _mm512_set1_pd, _mm512_storeu_pd,
    };

    /// Only ever made within [`eights_avx2`], so on machines that have AVX.
    #[derive(Clone, Copy)]
    struct Two(__m256d, __m256d);

    /// Only ever made within [`eights_avx512`], so on machines that have AVX-512.
    #[derive(Clone, Copy)]
    struct One(__m512d);

    #[target_feature(enable = "avx2")]
    pub(super) fn eights_avx2<J: EightJob>(job: J) {
        job.run::<Two>();
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub(super) fn eights_avx512<J: EightJob>(job: J) {
        job.run::<One>();
    }

    /// (first + third) + (second + fourth).
    ///
    /// # Safety
    /// The machine must have AVX.
    #[inline(always)]
    unsafe fn sum_of_four(four: __m256d) -> f64 {
        // SAFETY: the caller has checked for AVX.
        unsafe {
            let pairs = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
            _mm_cvtsd_f64(_mm_add_sd(pairs, _mm_unpackhi_pd(pairs, pairs)))
        }
    }

    // SAFETY of all blocks below: AVX is there, see `Two`, and loads and stores stay within their eight numbers.
    impl Eight for Two {
        #[inline(always)]
        fn splat(value: f64) -> Self {
            let four = unsafe { _mm256_set1_pd(value) };
            Two(four, four)
        }

        #[inline(always)]
        fn load(from: &[f64; 8]) -> Self {
            unsafe { Two(_mm256_loadu_pd(from[..4].as_ptr()), _mm256_loadu_pd(from[4..].as_ptr())) }
        }

        #[inline(always)]
        fn store(self, to: &mut [f64; 8]) {
            unsafe {
                _mm256_storeu_pd(to[..4].as_mut_ptr(), self.0);
                _mm256_storeu_pd(to[4..].as_mut_ptr(), self.1);
            }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            unsafe { Two(_mm256_add_pd(self.0, other.0), _mm256_add_pd(self.1, other.1)) }
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            unsafe { Two(_mm256_mul_pd(self.0, other.0), _mm256_mul_pd(self.1, other.1)) }
        }

        #[inline(always)]
        fn sum(self) -> f64 {
            unsafe { sum_of_four(_mm256_add_pd(self.0, self.1)) }
        }
    }

    // SAFETY of all blocks below: AVX-512 is there, see `One`, and loads and stores stay within their eight numbers.
    impl Eight for One {
        #[inline(always)]
        fn splat(value: f64) -> Self {
            One(unsafe { _mm512_set1_pd(value) })
        }

        #[inline(always)]
        fn load(from: &[f64; 8]) -> Self {
            One(unsafe { _mm512_loadu_pd(from.as_ptr()) })
        }

        #[inline(always)]
        fn store(self, to: &mut [f64; 8]) {
            unsafe { _mm512_storeu_pd(to.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        fn add(self, other: Self) -> Self {
            One(unsafe { _mm512_add_pd(self.0, other.0) })
        }

        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            One(unsafe { _mm512_mul_pd(self.0, other.0) })
        }

        #[inline(always)]
        fn sum(self) -> f64 {
            unsafe {
                let (low, high) = (_mm512_castpd512_pd256(self.0), _mm512_extractf64x4_pd::<1>(self.0));
                sum_of_four(_mm256_add_pd(low, high))
            }
        }
    }
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

    /// Everything that eights can do, on the given numbers.
    struct EveryOperation<'a> {
        numbers: &'a [[f64; 8]; 2],
        out: &'a mut Vec<u64>,
    }

    impl EightJob for EveryOperation<'_> {
        #[inline(always)]
        fn run<E: Eight>(self) {
            let [x, y] = self.numbers.each_ref().map(E::load);
            let mut stored = [0.0; 8];
            x.mul(y).add(E::splat(self.numbers[0][3])).store(&mut stored);
            self.out.extend(stored.map(f64::to_bits));
            self.out.push(x.add(y).sum().to_bits());
        }
    }

    #[test]
    fn eights_give_the_same_bytes_with_all_instructions() {
        let mut levels = vec![Isa::SCALAR, Isa::detect()];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            levels.push(Isa(Level::Avx2));
        }
        let mut rng = Seed(8).stream(Purpose::Urn, 0, 0, 0);
        for _ in 0..200 {
            let mut number = || (draw::open_unit(&mut rng) - 0.3) * 1e3f64.powf(draw::open_unit(&mut rng));
            let numbers: [[f64; 8]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| number()));
            let found = levels.iter().map(|isa| {
                let mut out = Vec::new();
                isa.run_eights(EveryOperation { numbers: &numbers, out: &mut out });
                out
            });
            let found: Vec<Vec<u64>> = found.collect();
            assert!(found.iter().all(|bytes| *bytes == found[0]));
            let sum: f64 = numbers.as_flattened().iter().sum();
            assert!(
                (f64::from_bits(found[0][8]) - sum).abs()
                    <= 1e-12 * numbers.as_flattened().iter().map(|x| x.abs()).sum::<f64>()
            );
        }
    }

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
