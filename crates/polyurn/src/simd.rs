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

/// Asks for the line of the cache that a number lies in, to be there when it is needed. Nothing happens beyond the list's end.
#[inline(always)]
pub fn fetch_ahead(list: &[f64], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < list.len() {
        // SAFETY: the address lies within the list; all x86-64 machines have the instruction.
        unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(list.as_ptr().add(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (list, at);
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

/// Elements that are loaded to gather from: two registers of 16 bits each, four of 32.
pub const WINDOW: usize = 64;

/// A map `to[ix] = from[map[ix]]`, made ready to be used for many lines.
///
/// Maps of ancestors ascend, so neighbours in `to` come from neighbours in `from`: with AVX-512 a permutation of two
/// registers brings up to 32 of them at once. Where sources lie further apart, several windows fill a group.
#[derive(Debug, Default)]
pub struct Gather {
    /// Each element's source, counted from the start of its window. Whole groups.
    within: Vec<u16>,
    windows: Vec<Window>,
}

/// Neighbours in one group whose sources are neighbours, too.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Part of the line that the sources are in, and where they start there.
    part: u32,
    first: u32,
    /// The elements.
    start: u32,
    end: u32,
}

/// A line to gather from, cut into parts of equal width: threads write it each its part.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'p, T> {
    /// Each part's lines, one after another.
    pub parts: &'p [Vec<T>],
    /// Number of the line.
    pub line: usize,
    /// Elements of a part's line.
    pub width: usize,
}

impl<T: Copy> Parts<'_, T> {
    /// The line and whatever comes after it, from the window's first source on.
    #[inline(always)]
    fn from(&self, window: Window) -> &[T] {
        &self.parts[window.part as usize][self.line * self.width + window.first as usize..]
    }
}

/// Integers that can be gathered.
pub trait Gathered: Copy {
    /// Gathers what the map says.
    fn gather(isa: Isa, plan: &Gather, from: Parts<'_, Self>, to: &mut [Self]);
}

impl Gather {
    /// Takes up a map, for lines in parts of this width.
    pub fn set(&mut self, map: &[u32], width: usize) {
        self.within.clear();
        self.windows.clear();
        let width = width as u32;
        for (group_ix, group) in map.chunks(GROUP).enumerate() {
            let mut start = group_ix * GROUP;
            let mut rest = group;
            while let [source, ..] = *rest {
                let (part, first) = (source / width, source % width);
                let reach = (WINDOW as u32).min(width - first);
                // A source before the first one is as far away as can be.
                let is_far = |other: &u32| other.wrapping_sub(source) >= reach;
                // Mostly none is far: one look at all of them is faster than looks one by one.
                let is_any_far = rest.iter().fold(false, |any, other| any | is_far(other));
                let n = if is_any_far { rest.iter().position(is_far).unwrap_or(rest.len()) } else { rest.len() };
                self.within.extend(rest[..n].iter().map(|other| (other - source) as u16));
                self.windows.push(Window { part, first, start: start as u32, end: (start + n) as u32 });
                start += n;
                rest = &rest[n..];
            }
            self.within.resize((group_ix + 1) * GROUP, 0);
        }
    }

    #[inline(always)]
    fn one_by_one<T: Copy>(&self, window: Window, from: &[T], to: &mut [T]) {
        let elements = window.start as usize..window.end as usize;
        for (to, &ix) in to[elements.clone()].iter_mut().zip(&self.within[elements]) {
            *to = from[ix as usize];
        }
    }
}

impl Gathered for u8 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, from: Parts<'_, Self>, to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u8_avx512(plan, from, to) },
            _ => plan.windows.iter().for_each(|&window| plan.one_by_one(window, from.from(window), to)),
        }
    }
}

impl Gathered for u16 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, from: Parts<'_, Self>, to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u16_avx512(plan, from, to) },
            _ => plan.windows.iter().for_each(|&window| plan.one_by_one(window, from.from(window), to)),
        }
    }
}

impl Gathered for u32 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, from: Parts<'_, Self>, to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { gather_u32_avx512(plan, from, to) },
            _ => plan.windows.iter().for_each(|&window| plan.one_by_one(window, from.from(window), to)),
        }
    }
}

/// A window that can be gathered with whole registers.
#[cfg(target_arch = "x86_64")]
struct Whole<'l, T> {
    source: &'l [T; WINDOW],
    /// All of the group that the window is in.
    within: &'l [u16; GROUP],
    to: &'l mut [T; GROUP],
    /// Which of the group's elements the window fills.
    mask: u32,
}

#[cfg(target_arch = "x86_64")]
impl Gather {
    /// None where a register would reach beyond the end of a line.
    #[inline(always)]
    fn whole<'l, T>(&'l self, window: Window, source: &'l [T], to: &'l mut [T]) -> Option<Whole<'l, T>> {
        let (start, n) = (window.start % GROUP as u32, window.end - window.start);
        let group = (window.start - start) as usize;
        Some(Whole {
            source: source.first_chunk()?,
            within: self.within[group..].first_chunk()?,
            to: to.get_mut(group..)?.first_chunk_mut()?,
            mask: (u32::MAX >> (GROUP as u32 - n)) << start,
        })
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u8_avx512(plan: &Gather, from: Parts<'_, u8>, to: &mut [u8]) {
    use std::arch::x86_64::*;
    for &window in &plan.windows {
        let source = from.from(window);
        let Some(Whole { source, within, to, mask }) = plan.whole(window, source, to) else {
            plan.one_by_one(window, source, to);
            continue;
        };
        // SAFETY: `within` and `to` have 32 elements, `source` has 64; loads and stores are unaligned ones, and
        // indices are taken modulo 64.
        unsafe {
            let index = _mm512_loadu_si512(within.as_ptr().cast());
            // Permutations of bytes are not on all machines: those of 16 bits are.
            let left = _mm512_cvtepu8_epi16(_mm256_loadu_si256(source.as_ptr().cast()));
            let right = _mm512_cvtepu8_epi16(_mm256_loadu_si256(source.as_ptr().add(32).cast()));
            let gathered = _mm512_cvtepi16_epi8(_mm512_permutex2var_epi16(left, index, right));
            _mm256_mask_storeu_epi8(to.as_mut_ptr().cast(), mask, gathered);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u16_avx512(plan: &Gather, from: Parts<'_, u16>, to: &mut [u16]) {
    use std::arch::x86_64::*;
    for &window in &plan.windows {
        let source = from.from(window);
        let Some(Whole { source, within, to, mask }) = plan.whole(window, source, to) else {
            plan.one_by_one(window, source, to);
            continue;
        };
        // SAFETY: `within` and `to` have 32 elements, `source` has 64; loads and stores are unaligned ones, and
        // indices are taken modulo 64.
        unsafe {
            let index = _mm512_loadu_si512(within.as_ptr().cast());
            let left = _mm512_loadu_si512(source.as_ptr().cast());
            let right = _mm512_loadu_si512(source.as_ptr().add(32).cast());
            let gathered = _mm512_permutex2var_epi16(left, index, right);
            _mm512_mask_storeu_epi16(to.as_mut_ptr().cast(), mask, gathered);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn gather_u32_avx512(plan: &Gather, from: Parts<'_, u32>, to: &mut [u32]) {
    use std::arch::x86_64::*;
    for &window in &plan.windows {
        let source = from.from(window);
        let Some(Whole { source, within, to, mask }) = plan.whole(window, source, to) else {
            plan.one_by_one(window, source, to);
            continue;
        };
        // SAFETY: `within` and `to` have 32 elements, `source` has 64; loads and stores are unaligned ones, and
        // indices are taken modulo 32 in either half of the source.
        unsafe {
            let quarter = |ix: usize| _mm512_loadu_si512(source.as_ptr().add(16 * ix).cast());
            let quarters = [quarter(0), quarter(1), quarter(2), quarter(3)];
            for half in [0, 16] {
                let index = _mm512_cvtepu16_epi32(_mm256_loadu_si256(within.as_ptr().add(half).cast()));
                let left = _mm512_permutex2var_epi32(quarters[0], index, quarters[1]);
                let right = _mm512_permutex2var_epi32(quarters[2], index, quarters[3]);
                let is_right = _mm512_test_epi32_mask(index, _mm512_set1_epi32(32));
                let gathered = _mm512_mask_blend_epi32(is_right, left, right);
                _mm512_mask_storeu_epi32(to.as_mut_ptr().add(half).cast(), (mask >> half) as u16, gathered);
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
            let n_parts = 1 + round % 3;
            let width = n_from.div_ceil(n_parts);
            plan.set(&map, width);
            // Two lines, of which the second is gathered from.
            let line: Vec<u32> = (0..n_from).map(|_| below(1 << 32) as u32).collect();
            let wide: Vec<Vec<u32>> = line.chunks(width).map(|part| [&vec![0; width], part].concat()).collect();
            let narrow: Vec<Vec<u16>> =
                wide.iter().map(|part| part.iter().map(|&word| word as u16).collect()).collect();
            let bytes: Vec<Vec<u8>> = wide.iter().map(|part| part.iter().map(|&word| word as u8).collect()).collect();
            let mut got = vec![0u8; n];
            u8::gather(Isa::detect(), &plan, Parts { parts: &bytes, line: 1, width }, &mut got);
            assert!(got.iter().zip(&map).all(|(&got, &slot)| got == line[slot as usize] as u8));
            let mut got = vec![0u16; n];
            u16::gather(Isa::detect(), &plan, Parts { parts: &narrow, line: 1, width }, &mut got);
            assert!(got.iter().zip(&map).all(|(&got, &slot)| got == line[slot as usize] as u16));
            let mut got = vec![0u32; n];
            u32::gather(Isa::detect(), &plan, Parts { parts: &wide, line: 1, width }, &mut got);
            assert!(got.iter().zip(&map).all(|(&got, &slot)| got == line[slot as usize]));
        }
    }
}
