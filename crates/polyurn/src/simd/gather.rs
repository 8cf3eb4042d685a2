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
    /// Elements of a line that is gathered into.
    n: usize,
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

/// Lines to gather from, cut into parts of equal width: threads write them each its part.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'p, T> {
    /// Each part's lines, one after another.
    pub parts: &'p [Vec<T>],
    /// Number of the first line.
    pub line: usize,
    /// Elements of a part's line.
    pub width: usize,
}

impl<T: Copy> Parts<'_, T> {
    /// Each line and whatever comes after it, from the window's first source on.
    #[inline(always)]
    fn from(&self, window: Window) -> impl Iterator<Item = &[T]> {
        let part = &self.parts[window.part as usize][window.first as usize..];
        (self.line..).map(move |line| &part[line * self.width..])
    }
}

/// Integers that can be gathered.
pub trait Gathered: Copy {
    /// Gathers what the map says into neighbouring lines, as many as there are.
    fn gather(isa: Isa, plan: &Gather, from: Parts<'_, Self>, to: &mut [Self]);
}

impl Gather {
    /// Takes up a map, for lines in parts of this width.
    pub fn set(&mut self, map: &[u32], width: usize) {
        self.within.clear();
        self.windows.clear();
        self.n = map.len();
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

    fn one_by_one<T: Copy>(&self, from: Parts<'_, T>, to: &mut [T]) {
        for &window in &self.windows {
            // Lines to fill come first: there are no others to take from.
            for (to, from) in to.chunks_exact_mut(self.n).zip(from.from(window)) {
                self.fill(window, from, to);
            }
        }
    }

    #[inline(always)]
    fn fill<T: Copy>(&self, window: Window, from: &[T], to: &mut [T]) {
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
            Level::Avx512 => unsafe { avx512::gather_u8(plan, from, to) },
            _ => plan.one_by_one(from, to),
        }
    }
}

impl Gathered for u16 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, from: Parts<'_, Self>, to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::gather_u16(plan, from, to) },
            _ => plan.one_by_one(from, to),
        }
    }
}

impl Gathered for u32 {
    #[inline]
    fn gather(isa: Isa, plan: &Gather, from: Parts<'_, Self>, to: &mut [Self]) {
        match isa.0 {
            // SAFETY: this level is only made by `detect`, after asking the machine for these very features.
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => unsafe { avx512::gather_u32(plan, from, to) },
            _ => plan.one_by_one(from, to),
        }
    }
}

/// The elements of one window, a whole register of them, for all lines.
#[cfg(target_arch = "x86_64")]
trait Register<T> {
    /// Of each element in the window's group where it comes from, and which of them the window fills.
    fn new(within: &[u16; GROUP], mask: u32) -> Self;
    /// Gathers them from one line into another.
    fn gather(&self, source: &[T; WINDOW], to: &mut [T; GROUP]);
}

#[cfg(target_arch = "x86_64")]
impl Gather {
    /// All windows, line by line within each: what is the same for all lines stays in registers.
    #[inline(always)]
    fn by_registers<T: Copy, R: Register<T>>(&self, from: Parts<'_, T>, to: &mut [T]) {
        for &window in &self.windows {
            let (start, n) = (window.start % GROUP as u32, window.end - window.start);
            let group = (window.start - start) as usize;
            let within = self.within[group..].first_chunk().expect("whole groups");
            let register = R::new(within, (u32::MAX >> (GROUP as u32 - n)) << start);
            for (to, source) in to.chunks_exact_mut(self.n).zip(from.from(window)) {
                // A register must not reach beyond the end of a line.
                match (source.first_chunk(), to[group..].first_chunk_mut()) {
                    (Some(source), Some(to)) => register.gather(source, to),
                    _ => self.fill(window, source, to),
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use super::{GROUP, Gather, Parts, Register, WINDOW};
    use std::arch::x86_64::*;

    /// Only ever made within the functions below, so on machines that have AVX-512.
    struct Of8(__m512i, u32);
    struct Of16(__m512i, u32);
    struct Of32([__m512i; 2], u32);

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn gather_u8(plan: &Gather, from: Parts<'_, u8>, to: &mut [u8]) {
        plan.by_registers::<u8, Of8>(from, to);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn gather_u16(plan: &Gather, from: Parts<'_, u16>, to: &mut [u16]) {
        plan.by_registers::<u16, Of16>(from, to);
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn gather_u32(plan: &Gather, from: Parts<'_, u32>, to: &mut [u32]) {
        plan.by_registers::<u32, Of32>(from, to);
    }

    // SAFETY of all blocks below: AVX-512 is there, see `Of8`. `within` and `to` have 32 elements, `source` has 64; loads and
    // stores are unaligned ones, and indices are taken modulo 64, in `Of32` modulo 32 in either half of the source.
    impl Register<u8> for Of8 {
        #[inline(always)]
        fn new(within: &[u16; GROUP], mask: u32) -> Self {
            Of8(unsafe { _mm512_loadu_si512(within.as_ptr().cast()) }, mask)
        }

        #[inline(always)]
        fn gather(&self, source: &[u8; WINDOW], to: &mut [u8; GROUP]) {
            unsafe {
                // Permutations of bytes are not on all machines: those of 16 bits are.
                let left = _mm512_cvtepu8_epi16(_mm256_loadu_si256(source.as_ptr().cast()));
                let right = _mm512_cvtepu8_epi16(_mm256_loadu_si256(source.as_ptr().add(32).cast()));
                let gathered = _mm512_cvtepi16_epi8(_mm512_permutex2var_epi16(left, self.0, right));
                _mm256_mask_storeu_epi8(to.as_mut_ptr().cast(), self.1, gathered);
            }
        }
    }

    impl Register<u16> for Of16 {
        #[inline(always)]
        fn new(within: &[u16; GROUP], mask: u32) -> Self {
            Of16(unsafe { _mm512_loadu_si512(within.as_ptr().cast()) }, mask)
        }

        #[inline(always)]
        fn gather(&self, source: &[u16; WINDOW], to: &mut [u16; GROUP]) {
            unsafe {
                let left = _mm512_loadu_si512(source.as_ptr().cast());
                let right = _mm512_loadu_si512(source.as_ptr().add(32).cast());
                let gathered = _mm512_permutex2var_epi16(left, self.0, right);
                _mm512_mask_storeu_epi16(to.as_mut_ptr().cast(), self.1, gathered);
            }
        }
    }

    impl Register<u32> for Of32 {
        #[inline(always)]
        fn new(within: &[u16; GROUP], mask: u32) -> Self {
            let half = |first: usize| unsafe {
                _mm512_cvtepu16_epi32(_mm256_loadu_si256(within[first..first + 16].as_ptr().cast()))
            };
            Of32([half(0), half(16)], mask)
        }

        #[inline(always)]
        fn gather(&self, source: &[u32; WINDOW], to: &mut [u32; GROUP]) {
            unsafe {
                let quarter = |ix: usize| _mm512_loadu_si512(source.as_ptr().add(16 * ix).cast());
                let quarters = [quarter(0), quarter(1), quarter(2), quarter(3)];
                for (half, &index) in self.0.iter().enumerate() {
                    let left = _mm512_permutex2var_epi32(quarters[0], index, quarters[1]);
                    let right = _mm512_permutex2var_epi32(quarters[2], index, quarters[3]);
                    let is_right = _mm512_test_epi32_mask(index, _mm512_set1_epi32(32));
                    let gathered = _mm512_mask_blend_epi32(is_right, left, right);
                    let mask = (self.1 >> (16 * half)) as u16;
                    _mm512_mask_storeu_epi32(to.as_mut_ptr().add(16 * half).cast(), mask, gathered);
                }
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
            // Three lines, of which the last two are gathered from.
            let lines: [Vec<u32>; 3] = std::array::from_fn(|_| (0..n_from).map(|_| below(1 << 32) as u32).collect());
            let part = |ix: usize| {
                let mut part: Vec<u32> = Vec::new();
                for line in &lines {
                    part.resize(part.len().next_multiple_of(width), 0);
                    part.extend_from_slice(&line[ix * width..n_from.min((ix + 1) * width)]);
                }
                part
            };
            let wide: Vec<Vec<u32>> = (0..n_from.div_ceil(width)).map(part).collect();
            let want: Vec<u32> =
                lines[1..].iter().flat_map(|line| map.iter().map(|&slot| line[slot as usize])).collect();
            let narrow: Vec<Vec<u16>> =
                wide.iter().map(|part| part.iter().map(|&word| word as u16).collect()).collect();
            let bytes: Vec<Vec<u8>> = wide.iter().map(|part| part.iter().map(|&word| word as u8).collect()).collect();
            let mut got = vec![0u8; 2 * n];
            u8::gather(Isa::detect(), &plan, Parts { parts: &bytes, line: 1, width }, &mut got);
            assert!(got.iter().zip(&want).all(|(&got, &want)| got == want as u8));
            let mut got = vec![0u16; 2 * n];
            u16::gather(Isa::detect(), &plan, Parts { parts: &narrow, line: 1, width }, &mut got);
            assert!(got.iter().zip(&want).all(|(&got, &want)| got == want as u16));
            let mut got = vec![0u32; 2 * n];
            u32::gather(Isa::detect(), &plan, Parts { parts: &wide, line: 1, width }, &mut got);
            assert_eq!(got, want);
        }
    }
}
