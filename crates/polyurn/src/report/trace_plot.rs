//! What happened during a run: effective particles step by step, or the objective sweep by sweep.

use super::chart::{Chart, Point, Series};
use super::colour::Colour;
use super::figure::Figure;
use super::result::EssTrace;
use super::text::{log_value, short};

/// Points of a trace at most; longer ones are thinned.
const MOST_POINTS: usize = 300;
/// Resamplings that the particle engine writes down.
const KEPT_RESAMPLINGS: usize = 200;

/// Effective particles over steps, with the steps at which they were resampled.
pub fn ess_plot(trace: &EssTrace, of_whom: &str) -> Option<Figure> {
    if trace.points.len() < 2 {
        return None;
    }
    let point = |&(step, ess): &(f64, f64)| Point {
        x: step,
        y: ess,
        bar: None,
        bracket: None,
        tip: format!("step {}\n{} effective particles", short(step), short(ess)),
    };
    let most = trace.points.iter().map(|point| point.1).chain(trace.particles).fold(1.0, f64::max);
    let series = Series {
        name: "effective particles".into(),
        colour: Colour::Series(0),
        marker: None,
        dashed: false,
        points: thinned(&trace.points).iter().map(point).collect(),
    };
    let chart = Chart {
        x_title: "steps of the run".into(),
        y_title: "effective particles (ESS)".into(),
        series: vec![series],
        y_range: Some((0.0, most * 1.05)),
        rug: (!trace.resampled_at.is_empty()).then(|| ("resampled".into(), thinned(&trace.resampled_at))),
        level: trace.threshold.map(|level| ("resampled below".into(), level)),
        ..Chart::default()
    };
    let title = format!("Effective particles over steps{of_whom}");
    let then = if trace.is_cooled && !trace.is_annealed {
        ", then those in which larger pseudo-counts are brought down"
    } else {
        ""
    };
    let steps = if trace.is_annealed { "from the reference to the posterior" } else { "for each token that comes in" };
    let mut caption = format!(
        "The first run: a step {steps}{then}. Where few particles hold nearly all the weight, the estimate \
         rests on those few."
    );
    if trace.resampled_at.len() >= KEPT_RESAMPLINGS {
        caption += &format!(" Results keep the first {KEPT_RESAMPLINGS} resamplings, so later ones are not marked.");
    }
    Some(Figure::new("effective-particles", &title, &caption, |width| chart.draw(width)))
}

/// The objective over sweeps.
pub fn objective_plot(name: &str, trace: &[f64]) -> Option<Figure> {
    let all: Vec<(f64, f64)> = (1..).map(f64::from).zip(trace.iter().copied()).filter(|at| at.1.is_finite()).collect();
    if all.len() < 2 {
        return None;
    }
    let point = |&(sweep, value): &(f64, f64)| Point {
        x: sweep,
        y: value,
        bar: None,
        bracket: None,
        tip: format!("sweep {}\n{name} {}", short(sweep), log_value(value, None)),
    };
    let series = Series {
        name: String::new(),
        colour: Colour::Series(0),
        marker: None,
        dashed: false,
        points: thinned(&all).iter().map(point).collect(),
    };
    let chart = Chart {
        x_title: "sweeps of the best start".into(),
        y_title: name.into(),
        series: vec![series],
        ..Chart::default()
    };
    let title = format!("{name} over sweeps");
    Some(Figure::new("objective", &title, "A climb that has levelled off has converged.", |width| chart.draw(width)))
}

/// Every n-th of too many, the last included.
fn thinned<T: Copy>(points: &[T]) -> Vec<T> {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(|(ix, _)| ix % every == 0 || *ix == last).map(|(_, &point)| point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_traces_are_thinned_and_keep_their_ends() {
        let found = thinned(&(0..100_000).collect::<Vec<_>>());
        assert!(found.len() <= MOST_POINTS + 1 && found[0] == 0 && found[found.len() - 1] == 99_999);
        assert_eq!(thinned(&[1, 2, 3]), [1, 2, 3]);
        assert!(thinned::<i32>(&[]).is_empty());
    }

    #[test]
    fn a_trace_of_nothing_is_no_plot() {
        assert!(ess_plot(&EssTrace::default(), "").is_none());
        assert!(objective_plot("x", &[1.0]).is_none());
        assert!(objective_plot("x", &[f64::NEG_INFINITY, 1.0]).is_none());
    }
}
