//! How much work each pass of a contest puts into a model.

use super::contest::Contest;
use crate::engine::anneal::{AnnealWish, SWEEPS};
use crate::engine::smc::Wish;
use crate::engine::sweeps::Climb;
use crate::score::{Method, Scoring};
use crate::simd::Isa;

/// Sweeps for a bound that stands beside the evidence.
const BOUND: Climb = Climb { restarts: 8, max_iter: 100, tol: 1e-5, isa: Isa::SCALAR, threads: 1 };
/// The quick score: runs, planned seconds of each, moves of each token, pseudo-count of a cell to cool down from; an exact
/// answer if it takes no longer.
const QUICK_RUNS: u64 = 2;
const QUICK_SECONDS: f64 = 0.08;
const QUICK_REJUVENATION: u32 = 8;
const QUICK_START: f64 = 0.25;
const QUICK_PATIENCE: f64 = 0.5;
/// The first careful score: planned seconds of each run.
const CAREFUL_SECONDS: f64 = 0.2;
/// Tokens from which pilots would take longer than the runs that they are for: the start is then fixed, and runs are longer.
const MANY_TOKENS: u64 = 2000;
const START_OF_MANY: f64 = 2.0;
const SECONDS_OF_MANY: f64 = 0.4;
/// Patience for an exact answer where it is worth more.
const PATIENCE: f64 = 3.0;
/// The quick score of so many tokens that it is annealed: chains, their sweeps, and steps of each run.
const QUICK_CHAINS: u64 = 4;
const QUICK_SWEEPS: u64 = 100;
/// The first careful one; later ones have more steps in proportion to their runs.
const CAREFUL_SWEEPS: u64 = 300;
const CAREFUL_RUNS: u64 = 4;
/// How many times as many steps annealing makes where brackets overlap.
const LONGER: u64 = 4;

impl Contest {
    /// Shows whether a model is out of the running, of which so much is known as the best bound.
    pub(super) fn quick(&self, n_tokens: u64, best_bound: Option<f64>) -> Scoring {
        let start = if n_tokens >= MANY_TOKENS { START_OF_MANY } else { QUICK_START };
        let wish = Wish {
            runs: Some(QUICK_RUNS),
            seconds_per_run: Some(QUICK_SECONDS),
            rejuvenation: Some(QUICK_REJUVENATION),
            start_pseudo_count: Some(start),
            ..self.scoring.wish.clone()
        };
        let anneal = AnnealWish {
            particles: Some(1),
            runs: Some(QUICK_RUNS),
            sweeps: Some(QUICK_SWEEPS),
            pilots: Some(QUICK_CHAINS),
            pilot_sweeps: Some(QUICK_SWEEPS),
            is_first_look: true,
            ..self.scoring.anneal.clone()
        };
        Scoring { wish, anneal, patience: QUICK_PATIENCE, rival: best_bound, ..self.scoring.clone() }
    }

    /// For models that may be the best, of which there are so many; the best one so far has this evidence.
    pub(super) fn careful(
        &self,
        runs: u64,
        n_contenders: usize,
        is_first: bool,
        n_tokens: u64,
        best: Option<f64>,
    ) -> Scoring {
        let are_many = n_tokens >= MANY_TOKENS;
        let seconds_per_run = match (are_many, is_first) {
            (true, _) => Some(SECONDS_OF_MANY),
            (false, true) => Some(CAREFUL_SECONDS),
            (false, false) => None,
        };
        let start_pseudo_count = are_many.then_some(START_OF_MANY);
        let wish = Wish { runs: Some(runs), seconds_per_run, start_pseudo_count, ..self.scoring.wish.clone() };
        let sweeps = CAREFUL_SWEEPS * runs / CAREFUL_RUNS;
        let anneal = AnnealWish {
            runs: Some(CAREFUL_RUNS),
            sweeps: Some(sweeps),
            pilot_sweeps: Some(sweeps),
            ..self.scoring.anneal.clone()
        };
        let patience = PATIENCE / n_contenders as f64;
        Scoring { wish, anneal, patience, rival: best, ..self.scoring.clone() }
    }

    /// An exact score where that is cheap; else a bound that nobody waits for, since there is a better one already.
    pub(super) fn exact_if_cheap(&self) -> Scoring {
        let climb = Climb { restarts: 1, max_iter: 1, ..BOUND };
        Scoring { takes_bound: true, climb, patience: QUICK_PATIENCE, ..self.scoring.clone() }
    }

    /// Annealing with more steps than unasked.
    pub(super) fn longer(&self) -> Scoring {
        let sweeps = self.scoring.anneal.sweeps.or(self.deadline.is_none().then_some(LONGER * SWEEPS));
        Scoring { anneal: AnnealWish { sweeps, ..self.scoring.anneal.clone() }, ..self.scoring.clone() }
    }

    /// Variational Bayes.
    pub(super) fn bound(&self) -> Scoring {
        let climb = Climb { isa: self.scoring.isa, ..BOUND };
        Scoring { method: Method::Vb, climb, maximise: Vec::new(), given: Vec::new(), ..self.scoring.clone() }
    }
}
