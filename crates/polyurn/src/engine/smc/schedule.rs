//! Which earlier tokens are drawn again after a new one, and how many. Fixed before the run: any schedule that does not look
//! at the run's particles is unbiased. The default won; the others are there to be tried (docs/smc.md).

use crate::math::draw;
use crate::math::draw::shuffle;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Gibbs updates of earlier tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Schedule {
    /// Which tokens.
    pub scan: Scan,
    /// How many after which token.
    pub pace: Pace,
}

/// Which tokens are drawn again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Scan {
    /// Round and round in the order of their arrival.
    #[default]
    Cyclic,
    /// Any of them, each time anew.
    Uniform,
    /// All of them in a random order, then all that are there by then in another.
    Reshuffled,
    /// The last ones.
    Recent,
    /// The first ones.
    Old,
}

/// How many tokens are drawn again, for about the same number in all: there are no moves before the second token, nor
/// after the last if the run ends there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Pace {
    /// As many after each token.
    #[default]
    Even,
    /// In proportion to the tokens so far.
    Growing,
    /// In inverse proportion to them.
    Shrinking,
    /// None, and after each so many tokens as many times more.
    Bursts(u32),
}

impl Pace {
    /// Updates after the token at `position` of `n_tokens`, where there are `even` on average.
    pub fn n_moves(self, position: usize, n_tokens: usize, even: u32) -> usize {
        let (n_tokens, even) = (n_tokens as f64, f64::from(even));
        // Sums of all moves up to a token, rounded: none is lost.
        let between = |sum: &dyn Fn(f64) -> f64| {
            let [before, after] = [position, position + 1].map(|n| sum(n as f64) as usize);
            after - before
        };
        match self {
            Pace::Even => even as usize,
            Pace::Growing => between(&|n| even * n * n / n_tokens),
            Pace::Shrinking => between(&|n| even * n_tokens * n.ln_1p() / n_tokens.ln_1p()),
            Pace::Bursts(every) => between(&|n| (n / f64::from(every)).floor() * f64::from(every) * even),
        }
    }
}

/// A scan under way.
#[derive(Debug)]
pub struct Scanner<R> {
    scan: Scan,
    rng: R,
    /// Tokens given out in this round, or after this token.
    at: usize,
    /// A round in random order.
    round: Vec<u32>,
}

impl<R: Rng> Scanner<R> {
    /// Nothing was given out yet.
    pub fn new(scan: Scan, rng: R) -> Self {
        Scanner { scan, rng, at: 0, round: Vec::new() }
    }

    /// A new token has come: those that start anew at each do.
    pub fn start(&mut self) {
        if matches!(self.scan, Scan::Recent | Scan::Old) {
            self.at = 0;
        }
    }

    /// The next token to draw again, of the first `n`, at least one.
    pub fn next(&mut self, n: usize) -> u32 {
        let at = self.at;
        match self.scan {
            Scan::Cyclic => {
                self.at = if at + 1 < n { at + 1 } else { 0 };
                self.at as u32
            }
            Scan::Uniform => draw::below(n as u64, &mut self.rng) as u32,
            Scan::Reshuffled => {
                if at >= self.round.len() {
                    self.round.clear();
                    self.round.extend(0..n as u32);
                    shuffle(&mut self.round, &mut self.rng);
                    self.at = 0;
                }
                self.at += 1;
                self.round[self.at - 1]
            }
            Scan::Recent => {
                self.at += 1;
                (n - 1 - at % n) as u32
            }
            Scan::Old => {
                self.at += 1;
                (at % n) as u32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Purpose, Seed};

    const PACES: [Pace; 5] = [Pace::Even, Pace::Growing, Pace::Shrinking, Pace::Bursts(50), Pace::Bursts(7)];

    #[test]
    fn every_pace_makes_the_same_number_of_moves() {
        for pace in PACES {
            let moves: Vec<usize> = (0..700).map(|position| pace.n_moves(position, 700, 20)).collect();
            // Rounding at either end.
            assert!(moves.iter().sum::<usize>().abs_diff(14_000) <= 1, "{pace:?}");
        }
        assert_eq!((Pace::Growing.n_moves(699, 700, 20), Pace::Growing.n_moves(0, 700, 20)), (40, 0));
        assert!(Pace::Shrinking.n_moves(0, 700, 20) > 1000);
        assert_eq!((Pace::Bursts(50).n_moves(48, 700, 20), Pace::Bursts(50).n_moves(49, 700, 20)), (0, 1000));
    }

    #[test]
    fn scans_give_tokens_that_are_there() {
        let given = |scan: Scan| {
            let mut scanner = Scanner::new(scan, Seed(4).stream(Purpose::Schedule, 0, 2, 0));
            let mut all = Vec::new();
            for n in [3, 4, 5] {
                scanner.start();
                all.push((0..4).map(|_| scanner.next(n)).collect::<Vec<u32>>());
            }
            all
        };
        assert_eq!(given(Scan::Cyclic), [[1, 2, 0, 1], [2, 3, 0, 1], [2, 3, 4, 0]]);
        assert_eq!(given(Scan::Recent), [[2, 1, 0, 2], [3, 2, 1, 0], [4, 3, 2, 1]]);
        assert_eq!(given(Scan::Old), [[0, 1, 2, 0], [0, 1, 2, 3], [0, 1, 2, 3]]);
        let mut first = given(Scan::Reshuffled)[0][..3].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2]);
        let uniform = given(Scan::Uniform).concat();
        assert!(uniform[..4].iter().all(|token| *token < 3) && uniform.iter().any(|token| *token != uniform[0]));
    }
}
