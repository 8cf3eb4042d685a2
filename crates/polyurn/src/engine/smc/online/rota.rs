//! Which tokens are drawn again when a stream goes on: round and round among the latest ones.

use serde::{Deserialize, Serialize};

/// Tokens with hidden values are numbered as they come. The latest `window` of them have a slot each, token n the slot n
/// modulo `window`, and slots take turns.
///
/// It counts tokens and nothing else: what is drawn again must not depend on the particles, or the estimate is biased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rota {
    window: u64,
    /// Tokens so far.
    n_tokens: u64,
    /// The slot that is next.
    next: u64,
}

impl Rota {
    /// Before the first token.
    pub fn new(window: u64) -> Self {
        Rota { window: window.max(1), n_tokens: 0, next: 0 }
    }

    /// Tokens so far.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    /// Number of the first token that has a slot still.
    pub fn first(&self) -> u64 {
        self.n_tokens.saturating_sub(self.window)
    }

    /// A new token: its slot, which is that of the oldest one when all are taken.
    pub fn arrive(&mut self) -> usize {
        self.n_tokens += 1;
        self.slot_of(self.n_tokens - 1)
    }

    /// The slot of a token.
    pub fn slot_of(&self, token: u64) -> usize {
        (token % self.window) as usize
    }

    /// The next token to be drawn again; none while there is only one, which has just been drawn.
    pub fn turn(&mut self) -> Option<u64> {
        let n_slots = self.n_tokens.min(self.window);
        if self.n_tokens < 2 {
            return None;
        }
        let slot = self.next % n_slots;
        self.next = (slot + 1) % n_slots;
        // The last token before the end whose slot this is.
        let last = self.n_tokens - 1;
        Some(last - (last + self.window - slot) % self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_of_the_window_has_its_turn() {
        let mut rota = Rota::new(5);
        assert_eq!((rota.arrive(), rota.turn()), (0, None));
        for token in 1..40u64 {
            assert_eq!(rota.arrive() as u64, token % 5);
            assert_eq!(rota.first(), (token + 1).saturating_sub(5));
            let n_slots = (token + 1).min(5);
            let mut seen: Vec<u64> = (0..n_slots).map(|_| rota.turn().unwrap()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (rota.first()..=token).collect::<Vec<_>>(), "after token {token}");
            assert!(seen.iter().all(|&token| rota.slot_of(token) as u64 == token % 5));
        }
    }
}
