//! One program for all targets: the variable `POLYURN_FUZZ_TARGET` says which one it feeds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use peak_alloc::PeakAlloc;
use polyurn_fuzz::{TARGETS, Target};
use std::sync::LazyLock;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Memory that an input may take at any one time: so much, and so many times its bytes.
const MOST_BYTES: usize = 16 << 20;
const MOST_TIMES: usize = 64;

/// A frame of Zstandard says how large a window it needs to be unpacked, of 128 MB at most.
const ZSTANDARD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const MOST_WINDOW: usize = 128 << 20;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("POLYURN_FUZZ_TARGET").expect("POLYURN_FUZZ_TARGET names a target");
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("there is no target {name:?}")).1
});

fuzz_target!(|bytes: &[u8]| {
    let target = *TARGET;
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    target(bytes);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    let window = if bytes.windows(4).any(|part| part == ZSTANDARD) { MOST_WINDOW } else { 0 };
    assert!(taken <= MOST_BYTES + window + MOST_TIMES * bytes.len(), "{taken} bytes of memory for {} bytes", bytes.len());
});
