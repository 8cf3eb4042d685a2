//! Vector instructions, chosen at run time. The only unsafe code of the crate.
//!
//! A [`Job`] is plain Rust that the compiler turns into vector code. It is compiled once for every instruction set below;
//! which one runs is decided when the program starts, so a plain `cargo build --release` is fast on every machine. The
//! arithmetic is the same in each: no fused multiply-add, and sums in a fixed order. So they give the same bytes.

#![allow(unsafe_code)]

mod eights;
mod gather;

pub use eights::{Eight, EightJob};
pub use gather::{Gather, Gathered, Parts, WINDOW};

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
pub fn fetch_ahead<T>(list: &[T], at: usize) {
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
            let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
            let has_avx512 = has_avx2
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            if has_avx512 {
                return Isa(Level::Avx512);
            }
            if has_avx2 {
                return Isa(Level::Avx2);
            }
        }
        Isa(Level::Scalar)
    }

    /// All that this machine has.
    #[cfg(test)]
    pub fn available() -> Vec<Self> {
        let mut all = vec![Isa::SCALAR];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            all.push(Isa(Level::Avx2));
        }
        if !all.contains(&Isa::detect()) {
            all.push(Isa::detect());
        }
        all
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing to see, and nothing to fear beyond the end.
    #[test]
    fn numbers_beyond_the_end_are_not_fetched() {
        let list = [1.5; 9];
        [0, 8, 9, usize::MAX].into_iter().for_each(|at| fetch_ahead(&list, at));
        fetch_ahead::<u32>(&[], 0);
    }
}
