//! Copying along a map, many neighbours at once.

use super::{Isa, Level};

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
