//! From values to pixels, and where an axis has its ticks.

use super::text::{fixed, short};

/// A range of values laid out over a range of pixels.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    lo: f64,
    hi: f64,
    from: f64,
    to: f64,
    is_log: bool,
}

/// A tick of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Its value.
    pub value: f64,
    /// What is written beside it.
    pub label: String,
}

impl Scale {
    /// Even steps. A range of nothing is widened.
    pub fn linear((lo, hi): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (lo, hi) = widened(lo, hi);
        Scale { lo, hi, from, to, is_log: false }
    }

    /// Equal ratios in equal steps; for values above zero.
    pub fn log((lo, hi): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (lo, hi) = (lo.max(1e-300), hi.max(1e-300));
        let (lo, hi) = if hi / lo < 1.0001 { (lo / 1.5, hi * 1.5) } else { (lo, hi) };
        Scale { lo, hi, from, to, is_log: true }
    }

    /// Where a value is.
    pub fn at(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(1e-300) / self.lo).ln() / (self.hi / self.lo).ln()
        } else {
            (value - self.lo) / (self.hi - self.lo)
        };
        self.from + share * (self.to - self.from)
    }

    /// Whether a value is in the range.
    pub fn holds(&self, value: f64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    /// The nearest value of the range.
    pub fn clamp(&self, value: f64) -> f64 {
        value.clamp(self.lo, self.hi)
    }

    /// About `n` ticks at round values.
    pub fn ticks(&self, n: usize) -> Vec<Tick> {
        if self.is_log { log_ticks(self.lo, self.hi, n) } else { linear_ticks(self.lo, self.hi, n) }
    }
}

/// A range that holds something, with room at both ends.
pub fn padded((lo, hi): (f64, f64), share: f64) -> (f64, f64) {
    let (lo, hi) = widened(lo, hi);
    let room = share * (hi - lo);
    (lo - room, hi + room)
}

/// The smallest and largest of some values, if there are any.
pub fn range_of(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite()).fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((lo, hi)) => Some((lo.min(value), hi.max(value))),
    })
}

fn widened(lo: f64, hi: f64) -> (f64, f64) {
    if !lo.is_finite() || !hi.is_finite() {
        return (0.0, 1.0);
    }
    let (lo, hi) = (lo.min(hi), lo.max(hi));
    let size = lo.abs().max(hi.abs());
    let least = (size * 1e-12).max(1e-12);
    if hi - lo > least { (lo, hi) } else { (lo - (0.5_f64).max(least), hi + (0.5_f64).max(least)) }
}

fn linear_ticks(lo: f64, hi: f64, n: usize) -> Vec<Tick> {
    let rough = (hi - lo) / n.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|x| x * power).find(|&x| x >= rough * 0.72).unwrap_or(rough);
    let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
    let is_large = lo.abs().max(hi.abs()) >= 1e7 && step >= 1.0;
    let first = (lo / step - 1e-9).ceil();
    let last = (hi / step + 1e-9).floor();
    let n_steps = (last - first).clamp(-1.0, 1000.0) as i64;
    (0..=n_steps)
        .map(|ix| {
            let value = (first + ix as f64) * step;
            let label = if is_large { short(value) } else { fixed(value, decimals) };
            Tick { value, label }
        })
        .collect()
}

fn log_ticks(lo: f64, hi: f64, n: usize) -> Vec<Tick> {
    let decades = (hi / lo).log10();
    let (first, last) = (lo.log10().floor() as i32 - 1, hi.log10().ceil() as i32 + 1);
    let every = (decades / n.max(1) as f64).ceil().max(1.0) as i32;
    let factors: &[f64] = match decades {
        d if d < 1.5 => &[1.0, 2.0, 3.0, 5.0, 7.0],
        d if d < 2.5 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
    powers
        .flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powi(power)))
        .filter(|value| (lo * 0.999..=hi * 1.001).contains(value))
        .map(|value| Tick { value, label: short(value) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ends_meet_ends() {
        let scale = Scale::linear((-5.0, 15.0), (100.0, 0.0));
        assert_eq!((scale.at(-5.0), scale.at(15.0), scale.at(5.0)), (100.0, 0.0, 50.0));
        let scale = Scale::log((0.01, 100.0), (0.0, 80.0));
        assert!((scale.at(1.0) - 40.0).abs() < 1e-9 && (scale.at(100.0) - 80.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(labels(&Scale::linear((0.0, 1.0), (0.0, 1.0)).ticks(5)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&Scale::linear((-31.0, 2.0), (0.0, 1.0)).ticks(4)), ["−30", "−20", "−10", "0"]);
        assert_eq!(labels(&Scale::log((0.01, 100.0), (0.0, 1.0)).ticks(6)), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&Scale::log((0.5, 2.0), (0.0, 1.0)).ticks(6)), ["0.5", "0.7", "1", "2"]);
    }

    #[test]
    fn a_single_value_and_huge_ones_have_axes_too() {
        for (lo, hi) in [(3.0, 3.0), (0.0, 0.0), (-1e200, 1e200), (1e15, 1e15), (1e15, 1e15 + 1.0), (1e-300, 1e-300)] {
            let scale = Scale::linear((lo, hi), (0.0, 100.0));
            assert!(scale.at(lo).is_finite() && scale.at(hi).is_finite());
            let ticks = scale.ticks(5);
            assert!(ticks.len() < 50 && ticks.iter().all(|tick| tick.value.is_finite()), "{lo} {hi} {ticks:?}");
            let ticks = Scale::log((lo, hi), (0.0, 100.0)).ticks(5);
            assert!(ticks.len() < 50, "{lo} {hi} {ticks:?}");
        }
    }

    #[test]
    fn ranges_leave_out_what_is_no_number() {
        assert_eq!(range_of([f64::NAN, 2.0, f64::NEG_INFINITY, -1.0].into_iter()), Some((-1.0, 2.0)));
        assert_eq!(range_of([f64::NAN].into_iter()), None);
    }
}
