//! How far lower bounds lie below the evidence, as far as that was seen, and so which models a bound rules out.

use super::contest::OUT_OF_REACH;
use super::scored::Scored;

/// How many times the largest gap that was seen a gap may be that was not: gaps grow with size, so that of a larger model is
/// larger than any seen. On word counts whose bounds are very loose, gaps grew by a half at most from one size to the next.
pub(super) const GROWTH: f64 = 2.0;
/// A gap below this share of the bound is rounding: nothing was hidden, so it says nothing about models where something is.
const ROUNDING: f64 = 1e-9;

/// How far bounds lie below evidences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gaps {
    /// The largest that was seen, if any was.
    pub largest: Option<f64>,
}

impl Gaps {
    /// Those of the models that have both.
    pub fn seen<'a>(found: impl IntoIterator<Item = &'a Scored>) -> Self {
        let gap = |found: &Scored| {
            let bound = found.bound.filter(|_| !found.is_bound_only())?;
            Some(found.score.log_marginal - bound).filter(|gap| *gap > ROUNDING * (1.0 + bound.abs()))
        };
        Gaps { largest: found.into_iter().filter_map(gap).reduce(f64::max) }
    }

    /// How far above its bound the evidence of a model may be; anything while nothing was seen.
    pub fn reach(self) -> f64 {
        self.largest.map_or(f64::INFINITY, |gap| GROWTH * gap + OUT_OF_REACH)
    }
}
