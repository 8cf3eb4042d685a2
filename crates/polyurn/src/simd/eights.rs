//! Eight numbers at a time, in registers where there are any.

use super::{Isa, Level};

/// Eight numbers that are handled together. What the compiler makes of arrays of eight is too often not a register: that
/// cost a factor of two in the loops that need it (docs/benchmarks.md). Every operation rounds as its scalar twin does.
pub trait Eight: Copy {
    /// Whether loops are worth compiling for each of the commonest sizes. Where nearly every machine has wider instructions,
    /// plain ones are for comparison, and such copies would only make the program larger and its build longer.
    const HAS_COPIES: bool;
    /// The same number eight times.
    fn splat(value: f64) -> Self;
    /// Eight neighbours.
    fn load(from: &[f64; 8]) -> Self;
    /// Writes them.
    fn store(self, to: &mut [f64; 8]);
    /// Eight neighbours among whole numbers.
    fn of_u8(from: &[u8; 8]) -> Self;
    /// Eight neighbours whose high bytes are apart.
    fn of_bytes(low: &[u8; 8], high: &[u8; 8]) -> Self;
    /// Eight neighbours of 16 bits.
    fn of_u16(from: &[u16; 8]) -> Self;
    /// Eight neighbours of 32 bits.
    fn of_u32(from: &[u32; 8]) -> Self;
    /// As whole numbers, which they must be: at least 0 and less than 2^31.
    fn whole(self) -> [u32; 8];
    /// Sums.
    fn add(self, other: Self) -> Self;
    /// Products.
    fn mul(self, other: Self) -> Self;
    /// Quotients.
    fn div(self, other: Self) -> Self;
    /// One more where the first number given is less than the second.
    fn add_one_where_less(self, less: Self, than: Self) -> Self;
    /// All eight: the halves are added, then the halves of that, then the two that are left.
    fn sum(self) -> f64;
    /// Each with all before it: in both halves first neighbours, then those two apart; the sum of the first half goes on top
    /// of the second.
    fn running_sums(self) -> Self;
    /// How many of the first seven are less than the number given.
    fn n_less(self, than: f64) -> usize;
    /// With another number in one of the lanes.
    fn with(self, lane: usize, value: f64) -> Self;
    /// For each byte the entry of its upper half in the first table times the entry of its lower half in the second.
    fn by_halves(bytes: &[u8; 8], upper: &[f64; 16], lower: &[f64; 16]) -> Self;
}

impl Eight for [f64; 8] {
    const HAS_COPIES: bool = !cfg!(target_arch = "x86_64");

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
    fn of_u8(from: &[u8; 8]) -> Self {
        from.map(f64::from)
    }

    #[inline(always)]
    fn of_bytes(low: &[u8; 8], high: &[u8; 8]) -> Self {
        std::array::from_fn(|lane| f64::from(u16::from_le_bytes([low[lane], high[lane]])))
    }

    #[inline(always)]
    fn of_u16(from: &[u16; 8]) -> Self {
        from.map(f64::from)
    }

    #[inline(always)]
    fn of_u32(from: &[u32; 8]) -> Self {
        from.map(f64::from)
    }

    #[inline(always)]
    fn whole(self) -> [u32; 8] {
        self.map(|number| number as u32)
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        std::array::from_fn(|lane| self[lane] / other[lane])
    }

    #[inline(always)]
    fn add_one_where_less(self, less: Self, than: Self) -> Self {
        std::array::from_fn(|lane| self[lane] + if less[lane] < than[lane] { 1.0 } else { 0.0 })
    }

    #[inline(always)]
    fn sum(self) -> f64 {
        let four: [f64; 4] = std::array::from_fn(|lane| self[lane] + self[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }

    #[inline(always)]
    fn running_sums(self) -> Self {
        let of_two: Self =
            std::array::from_fn(|lane| if lane % 4 > 0 { self[lane] + self[lane - 1] } else { self[lane] });
        let of_four: Self =
            std::array::from_fn(|lane| if lane % 4 > 1 { of_two[lane] + of_two[lane - 2] } else { of_two[lane] });
        std::array::from_fn(|lane| if lane > 3 { of_four[lane] + of_four[3] } else { of_four[lane] })
    }

    #[inline(always)]
    fn n_less(self, than: f64) -> usize {
        self[..7].iter().filter(|&&number| number < than).count()
    }

    #[inline(always)]
    fn with(mut self, lane: usize, value: f64) -> Self {
        self[lane] = value;
        self
    }

    #[inline(always)]
    fn by_halves(bytes: &[u8; 8], upper: &[f64; 16], lower: &[f64; 16]) -> Self {
        bytes.map(|byte| upper[usize::from(byte >> 4)] * lower[usize::from(byte & 15)])
    }
}

/// A piece of work for [`Isa::run_eights`]; as for [`super::Job`], everything down to the innermost loop must be
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
        __m128i, __m256d, __m256i, __m512d, _CMP_LT_OQ, _mm_add_pd, _mm_add_sd, _mm_cvtsd_f64, _mm_loadl_epi64,
        _mm_loadu_si128, _mm_storeu_si128, _mm_unpackhi_pd, _mm_unpacklo_epi8, _mm256_add_pd, _mm256_and_pd,
        _mm256_blend_pd, _mm256_blendv_pd, _mm256_castpd256_pd128, _mm256_castsi256_pd, _mm256_castsi256_si128,
        _mm256_cmp_pd, _mm256_cmpeq_epi64, _mm256_cvtepi32_pd, _mm256_cvtepu8_epi32, _mm256_cvtepu16_epi32,
        _mm256_cvttpd_epi32, _mm256_div_pd, _mm256_extractf128_pd, _mm256_extractf128_si256, _mm256_loadu_pd,
        _mm256_loadu_si256, _mm256_movemask_pd, _mm256_mul_pd, _mm256_permute2f128_pd, _mm256_permute4x64_pd,
        _mm256_set_pd, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_set1_pd, _mm256_setr_epi64x, _mm256_setzero_pd,
        _mm256_storeu_pd, _mm256_storeu_si256, _mm256_xor_si256, _mm512_add_pd, _mm512_castpd512_pd256,
        _mm512_cmp_pd_mask, _mm512_cvtepu8_epi64, _mm512_cvtepu16_epi64, _mm512_cvtepu32_pd, _mm512_cvtepu64_pd,
        _mm512_cvttpd_epu32, _mm512_div_pd, _mm512_extractf64x4_pd, _mm512_loadu_pd, _mm512_mask_add_pd,
        _mm512_mask_blend_pd, _mm512_maskz_permutex_pd, _mm512_maskz_permutexvar_pd, _mm512_mul_pd,
        _mm512_permutex2var_pd, _mm512_set1_epi64, _mm512_set1_pd, _mm512_srli_epi64, _mm512_storeu_pd,
    };

    /// Only ever made within [`eights_avx2`], so on machines that have AVX2.
    #[derive(Clone, Copy)]
    struct Two(__m256d, __m256d);

    /// Only ever made within [`eights_avx512`], so on machines that have AVX-512.
    #[derive(Clone, Copy)]
    struct One(__m512d);

    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn eights_avx2<J: EightJob>(job: J) {
        job.run::<Two>();
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
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

    /// Low and high bytes side by side: eight numbers of 16 bits. All x86-64 machines can do this.
    #[inline(always)]
    fn interleaved(low: &[u8; 8], high: &[u8; 8]) -> __m128i {
        // SAFETY: eight bytes are loaded from each.
        unsafe { _mm_unpacklo_epi8(_mm_loadl_epi64(low.as_ptr().cast()), _mm_loadl_epi64(high.as_ptr().cast())) }
    }

    /// # Safety
    /// The machine must have AVX.
    #[inline(always)]
    unsafe fn of_signed(words: __m256i) -> Two {
        // SAFETY: the caller has checked for AVX.
        unsafe {
            let (low, high) = (_mm256_castsi256_si128(words), _mm256_extractf128_si256::<1>(words));
            Two(_mm256_cvtepi32_pd(low), _mm256_cvtepi32_pd(high))
        }
    }

    // SAFETY of all blocks below: AVX2 is there, see `Two`, and loads and stores stay within their eight numbers.
    impl Eight for Two {
        const HAS_COPIES: bool = true;

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
        fn of_u8(from: &[u8; 8]) -> Self {
            unsafe {
                let words = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.as_ptr().cast()));
                of_signed(words)
            }
        }

        #[inline(always)]
        fn of_bytes(low: &[u8; 8], high: &[u8; 8]) -> Self {
            unsafe { of_signed(_mm256_cvtepu16_epi32(interleaved(low, high))) }
        }

        #[inline(always)]
        fn of_u16(from: &[u16; 8]) -> Self {
            unsafe { of_signed(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().cast()))) }
        }

        #[inline(always)]
        fn of_u32(from: &[u32; 8]) -> Self {
            unsafe {
                // Only signed numbers are converted: half the range is taken off before and put back after, exactly.
                let words = _mm256_loadu_si256(from.as_ptr().cast());
                let signed = of_signed(_mm256_xor_si256(words, _mm256_set1_epi32(i32::MIN)));
                signed.add(Two::splat(2_147_483_648.0))
            }
        }

        #[inline(always)]
        fn whole(self) -> [u32; 8] {
            let mut whole = [0; 8];
            unsafe {
                _mm_storeu_si128(whole[..4].as_mut_ptr().cast(), _mm256_cvttpd_epi32(self.0));
                _mm_storeu_si128(whole[4..].as_mut_ptr().cast(), _mm256_cvttpd_epi32(self.1));
            }
            whole
        }

        #[inline(always)]
        fn div(self, other: Self) -> Self {
            unsafe { Two(_mm256_div_pd(self.0, other.0), _mm256_div_pd(self.1, other.1)) }
        }

        #[inline(always)]
        fn add_one_where_less(self, less: Self, than: Self) -> Self {
            unsafe {
                let one = _mm256_set1_pd(1.0);
                let step = |less, than| _mm256_and_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(less, than), one);
                Two(_mm256_add_pd(self.0, step(less.0, than.0)), _mm256_add_pd(self.1, step(less.1, than.1)))
            }
        }

        #[inline(always)]
        fn sum(self) -> f64 {
            unsafe { sum_of_four(_mm256_add_pd(self.0, self.1)) }
        }

        #[inline(always)]
        fn running_sums(self) -> Self {
            unsafe {
                let zero = _mm256_setzero_pd();
                let within = |four| {
                    let moved = _mm256_blend_pd::<1>(_mm256_permute4x64_pd::<0b10_01_00_00>(four), zero);
                    let of_two = _mm256_add_pd(four, moved);
                    _mm256_add_pd(of_two, _mm256_permute2f128_pd::<0x08>(of_two, of_two))
                };
                let (low, high) = (within(self.0), within(self.1));
                Two(low, _mm256_add_pd(high, _mm256_permute4x64_pd::<0b11_11_11_11>(low)))
            }
        }

        #[inline(always)]
        fn n_less(self, than: f64) -> usize {
            unsafe {
                let than = _mm256_set1_pd(than);
                let is_less = |four| _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(four, than)) as u32;
                ((is_less(self.0) | is_less(self.1) << 4) & 0x7f).count_ones() as usize
            }
        }

        #[inline(always)]
        fn with(self, lane: usize, value: f64) -> Self {
            unsafe {
                let (value, lane) = (_mm256_set1_pd(value), _mm256_set1_epi64x(lane as i64));
                let is_it = |first| {
                    let lanes = _mm256_setr_epi64x(first, first + 1, first + 2, first + 3);
                    _mm256_castsi256_pd(_mm256_cmpeq_epi64(lanes, lane))
                };
                Two(_mm256_blendv_pd(self.0, value, is_it(0)), _mm256_blendv_pd(self.1, value, is_it(4)))
            }
        }

        #[inline(always)]
        fn by_halves(bytes: &[u8; 8], upper: &[f64; 16], lower: &[f64; 16]) -> Self {
            let of = |table: &[f64; 16], half: [u8; 8]| {
                let at = |lane: usize| table[usize::from(half[lane] & 15)];
                unsafe { Two(_mm256_set_pd(at(3), at(2), at(1), at(0)), _mm256_set_pd(at(7), at(6), at(5), at(4))) }
            };
            of(upper, bytes.map(|byte| byte >> 4)).mul(of(lower, *bytes))
        }
    }

    // SAFETY of all blocks below: AVX-512 is there, see `One`, and loads and stores stay within their eight numbers.
    impl Eight for One {
        const HAS_COPIES: bool = true;

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
        fn of_u8(from: &[u8; 8]) -> Self {
            One(unsafe { _mm512_cvtepu64_pd(_mm512_cvtepu8_epi64(_mm_loadl_epi64(from.as_ptr().cast()))) })
        }

        #[inline(always)]
        fn of_bytes(low: &[u8; 8], high: &[u8; 8]) -> Self {
            One(unsafe { _mm512_cvtepu64_pd(_mm512_cvtepu16_epi64(interleaved(low, high))) })
        }

        #[inline(always)]
        fn of_u16(from: &[u16; 8]) -> Self {
            One(unsafe { _mm512_cvtepu64_pd(_mm512_cvtepu16_epi64(_mm_loadu_si128(from.as_ptr().cast()))) })
        }

        #[inline(always)]
        fn of_u32(from: &[u32; 8]) -> Self {
            One(unsafe { _mm512_cvtepu32_pd(_mm256_loadu_si256(from.as_ptr().cast())) })
        }

        #[inline(always)]
        fn whole(self) -> [u32; 8] {
            let mut whole = [0; 8];
            unsafe { _mm256_storeu_si256(whole.as_mut_ptr().cast(), _mm512_cvttpd_epu32(self.0)) }
            whole
        }

        #[inline(always)]
        fn div(self, other: Self) -> Self {
            One(unsafe { _mm512_div_pd(self.0, other.0) })
        }

        #[inline(always)]
        fn add_one_where_less(self, less: Self, than: Self) -> Self {
            One(unsafe {
                let is_less = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(less.0, than.0);
                _mm512_mask_add_pd(self.0, is_less, self.0, _mm512_set1_pd(1.0))
            })
        }

        #[inline(always)]
        fn sum(self) -> f64 {
            unsafe {
                let (low, high) = (_mm512_castpd512_pd256(self.0), _mm512_extractf64x4_pd::<1>(self.0));
                sum_of_four(_mm256_add_pd(low, high))
            }
        }

        #[inline(always)]
        fn running_sums(self) -> Self {
            One(unsafe {
                let of_two = _mm512_add_pd(self.0, _mm512_maskz_permutex_pd::<0b10_01_00_00>(0b1110_1110, self.0));
                let of_four = _mm512_add_pd(of_two, _mm512_maskz_permutex_pd::<0b01_00_00_00>(0b1100_1100, of_two));
                let of_first_half = _mm512_maskz_permutexvar_pd(0b1111_0000, _mm512_set1_epi64(3), of_four);
                _mm512_add_pd(of_four, of_first_half)
            })
        }

        #[inline(always)]
        fn n_less(self, than: f64) -> usize {
            let is_less = unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, _mm512_set1_pd(than)) };
            u32::from(is_less & 0x7f).count_ones() as usize
        }

        #[inline(always)]
        fn with(self, lane: usize, value: f64) -> Self {
            One(unsafe { _mm512_mask_blend_pd(1u8.wrapping_shl(lane as u32), self.0, _mm512_set1_pd(value)) })
        }

        #[inline(always)]
        fn by_halves(bytes: &[u8; 8], upper: &[f64; 16], lower: &[f64; 16]) -> Self {
            unsafe {
                let words = _mm512_cvtepu8_epi64(_mm_loadl_epi64(bytes.as_ptr().cast()));
                // Only the lowest four bits of an index count: which of two registers, and which of its eight.
                let of = |table: &[f64; 16], index| {
                    let (first, last) = (_mm512_loadu_pd(table.as_ptr()), _mm512_loadu_pd(table[8..].as_ptr()));
                    _mm512_permutex2var_pd(first, index, last)
                };
                One(_mm512_mul_pd(of(upper, _mm512_srli_epi64::<4>(words)), of(lower, words)))
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
        words: &'a [u32; 8],
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
            let (bytes, halves) = (self.words.map(|word| word as u8), self.words.map(|word| word as u16));
            let high_bytes = self.words.map(|word| (word >> 8) as u8);
            let of_words =
                [E::of_u8(&bytes), E::of_bytes(&bytes, &high_bytes), E::of_u16(&halves), E::of_u32(self.words)];
            for eight in of_words.into_iter().chain([
                x.div(y),
                y.add_one_where_less(x, y),
                x.running_sums(),
                x.with(5, self.numbers[1][0]),
            ]) {
                eight.store(&mut stored);
                self.out.extend(stored.map(f64::to_bits));
            }
            self.out.extend(E::of_u16(&halves).whole().map(u64::from));
            let [upper, lower] = [3.0, 7.0].map(|by| std::array::from_fn(|ix| by + ix as f64 / by));
            E::by_halves(&bytes, &upper, &lower).store(&mut stored);
            self.out.extend(stored.map(f64::to_bits));
            self.out.push(x.n_less(self.numbers[1][0]) as u64);
        }
    }

    #[test]
    fn eights_give_the_same_bytes_with_all_instructions() {
        let levels = Isa::available();
        let mut rng = Seed(8).stream(Purpose::Urn, 0, 0, 0);
        for _ in 0..200 {
            let mut number = || (draw::open_unit(&mut rng) - 0.3) * 1e3f64.powf(draw::open_unit(&mut rng));
            let numbers: [[f64; 8]; 2] = std::array::from_fn(|_| std::array::from_fn(|_| number()));
            // Small and large, and both ends.
            let words: [u32; 8] = std::array::from_fn(|lane| match lane {
                0 => 0,
                1 => u32::MAX,
                _ => draw::below(1 << (4 * lane + 4), &mut rng) as u32,
            });
            let found = levels.iter().map(|isa| {
                let mut out = Vec::new();
                isa.run_eights(EveryOperation { numbers: &numbers, words: &words, out: &mut out });
                out
            });
            let found: Vec<Vec<u64>> = found.collect();
            assert!(found.iter().all(|bytes| *bytes == found[0]));
            let (eights, n_less) = found[0][9..].as_chunks::<8>();
            let [bytes, two_bytes, halves, whole, quotients, steps, running, changed, indices, products] = eights
            else {
                panic!("ten eights");
            };
            let n_less_one_by_one = numbers[0][..7].iter().filter(|&&x| x < numbers[1][0]).count();
            assert_eq!(n_less, [n_less_one_by_one as u64]);
            for lane in 0..8 {
                let word = words[lane];
                let (x, y) = (numbers[0][lane], numbers[1][lane]);
                assert_eq!(f64::from_bits(bytes[lane]), f64::from(word as u8));
                assert_eq!(f64::from_bits(two_bytes[lane]), f64::from(word as u16));
                assert_eq!(f64::from_bits(halves[lane]), f64::from(word as u16));
                assert_eq!(f64::from_bits(whole[lane]), f64::from(word));
                assert_eq!(f64::from_bits(quotients[lane]), x / y);
                assert_eq!(f64::from_bits(steps[lane]), if x < y { y + 1.0 } else { y });
                assert_eq!(f64::from_bits(changed[lane]), if lane == 5 { numbers[1][0] } else { x });
                // Seven additions of at most 8000 together, each rounded to 53 bits.
                let sum: f64 = numbers[0][..=lane].iter().sum();
                assert!((f64::from_bits(running[lane]) - sum).abs() < 1e-11);
                assert_eq!(indices[lane], u64::from(word as u16));
                let (upper, lower) = (f64::from(word as u8 >> 4), f64::from(word as u8 & 15));
                assert_eq!(f64::from_bits(products[lane]), (3.0 + upper / 3.0) * (7.0 + lower / 7.0));
            }
            let sum: f64 = numbers.as_flattened().iter().sum();
            assert!(
                (f64::from_bits(found[0][8]) - sum).abs()
                    <= 1e-12 * numbers.as_flattened().iter().map(|x| x.abs()).sum::<f64>()
            );
        }
    }
}
