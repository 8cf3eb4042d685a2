//! A fingerprint of what a checkpoint belongs to.

/// A hash that is the same on every machine and in every version (FNV-1a, word by word).
#[derive(Debug)]
pub(crate) struct Mixer(pub u64);

impl Default for Mixer {
    fn default() -> Self {
        Mixer(0xcbf2_9ce4_8422_2325)
    }
}

impl Mixer {
    /// Mixes one word in.
    pub fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 ^= self.0 >> 29;
    }
}
