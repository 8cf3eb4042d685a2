//! When a run resamples, and what it notes of that.

use super::Run;
use crate::Purpose;
use crate::engine::smc::word::Word;

/// Entries of a trace, at most.
const TRACE_LENGTH: u64 = 200;

impl<W: Word> Run<'_, W> {
    /// Notes the effective sample size and says whether it is time to resample.
    pub(super) fn measure(&mut self) -> bool {
        let (ess, is_time) = self.mass.measure(&self.lanes, self.path.when);
        self.result.ess_min = self.result.ess_min.min(ess);
        let step = self.course.step;
        let n_planned = self.course.order.len() as u64 + u64::from(self.path.n_cooling);
        let every = n_planned.div_ceil(TRACE_LENGTH).max(1);
        self.n_measured += 1;
        // Tokens in unknown cells may come on top.
        if self.n_measured.is_multiple_of(every) && self.result.ess_trace.len() < TRACE_LENGTH as usize {
            self.result.ess_trace.push((step, ess));
        }
        is_time
    }

    /// A new generation in proportion to the weights, which are 1 afterwards.
    pub(super) fn resample(&mut self) {
        let course = &self.course;
        let mut rng = course.seed.stream(Purpose::Ancestors, course.replicate, 0, course.step);
        self.mass.resample(&mut self.lanes, self.path.scheme, &mut rng);
        self.result.n_resampled += 1;
        if self.result.resampled_at.len() < TRACE_LENGTH as usize {
            self.result.resampled_at.push(course.step);
        }
    }
}
