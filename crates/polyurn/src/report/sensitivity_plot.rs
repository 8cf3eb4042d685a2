//! How the answer moves with the size of the prior.

use super::chart::{Chart, Point, Series};
use super::colour::{Colour, N_SERIES};
use super::drawing::Marker;
use super::figure::Figure;
use super::result::{AtPrior, ModelAtPrior, Ranking};
use super::text::{log_value_with_error, percent_with_error, short, shorten_apart};

/// Models that are less probable than this at every size of the prior are left out.
const LEAST_PROBABILITY: f64 = 0.005;

/// Probability and evidence of the leading models against the size of the prior.
pub fn sensitivity_plots(ranking: &Ranking) -> Vec<Figure> {
    let mut at: Vec<&AtPrior> = ranking.sensitivity.iter().collect();
    at.sort_by(|x, y| x.a.total_cmp(&y.a));
    if at.len() < 2 {
        return Vec::new();
    }
    let (models, n_more) = leading(&at);
    let axis = |y_title: &str| Chart {
        x_title: if at[0].is_relative { "size of the prior, times a" } else { "size of the prior, a" }.into(),
        y_title: y_title.into(),
        is_x_log: true,
        x_ticks: Some(at.iter().map(|at| at.a).collect()),
        ..Chart::default()
    };
    let probability = Chart {
        series: lines(ranking, &at, &models, |found| Some((found.probability?, found.probability_error))),
        y_range: Some((-0.02, 1.04)),
        ..axis("posterior probability")
    };
    let evidence = Chart {
        series: lines(ranking, &at, &models, |found| Some((found.evidence?, found.error))),
        ..axis("ln evidence")
    };
    let rest = match n_more {
        0 => String::new(),
        1 => " One more model, which never leads, is left out.".into(),
        more => format!(" {more} more models, which never come near, are left out."),
    };
    let caption = format!("Where lines cross, the best model changes with the prior.{rest}");
    let mut figures = Vec::new();
    for (name, title, chart) in [
        ("sensitivity-probability", "Posterior probability against the size of the prior", probability),
        ("sensitivity-evidence", "Evidence against the size of the prior", evidence),
    ] {
        if chart.series.iter().any(|series| !series.points.is_empty()) {
            figures.push(Figure::new(name, title, &caption, |width| chart.draw(width)));
        }
    }
    figures
}

/// The models that have the largest probabilities anywhere, and how many others there are.
fn leading(at: &[&AtPrior]) -> (Vec<String>, usize) {
    let mut best: Vec<(String, f64, f64)> = Vec::new();
    for found in at.iter().flat_map(|at| &at.models) {
        let (p, ln) = (found.probability.unwrap_or(0.0), found.evidence.unwrap_or(f64::NEG_INFINITY));
        match best.iter_mut().find(|(known, ..)| *known == found.model) {
            Some((_, most, most_ln)) => (*most, *most_ln) = (most.max(p), most_ln.max(ln)),
            None => best.push((found.model.clone(), p, ln)),
        }
    }
    best.sort_by(|x, y| y.1.total_cmp(&x.1).then(y.2.total_cmp(&x.2)));
    let n_leading = best.iter().filter(|(_, p, _)| *p >= LEAST_PROBABILITY).count();
    let n_shown = if n_leading < 2 { N_SERIES } else { n_leading.min(N_SERIES) }.min(best.len());
    let n_more = best.len() - n_shown;
    (best.into_iter().take(n_shown).map(|(model, ..)| model).collect(), n_more)
}

fn lines(
    ranking: &Ranking,
    at: &[&AtPrior],
    models: &[String],
    value: impl Fn(&ModelAtPrior) -> Option<(f64, Option<f64>)>,
) -> Vec<Series> {
    let name_of = |model: &String| {
        let known = ranking.models.iter().find(|candidate| candidate.model == *model);
        let known = known.filter(|_| ranking.is_select && ranking.prior_sizes().len() < 2);
        known.map_or_else(|| model.clone(), |candidate| ranking.label(candidate))
    };
    let names: Vec<String> = models.iter().map(name_of).collect();
    let in_legend = shorten_apart(&names, 40);
    let line = |(ix, model): (usize, &String)| {
        let name = &names[ix];
        let points = at.iter().filter_map(|at| {
            let found = at.models.iter().find(|found| found.model == *model)?;
            let (y, error) = value(found)?;
            let bar = error.filter(|_| y.is_finite()).map(|error| (y - error, y + error));
            Some(Point { x: at.a, y, bar, bracket: None, tip: tip(name, at, found) })
        });
        let marker = if ix < 3 { Marker::of(ix) } else { [Marker::Diamond, Marker::Disc, Marker::Square][ix % 3] };
        Series {
            points: points.collect(),
            name: in_legend[ix].clone(),
            colour: Colour::Series(ix),
            marker: Some(marker),
            dashed: ix >= 3,
        }
    };
    models.iter().enumerate().map(line).collect()
}

fn tip(name: &str, at: &AtPrior, found: &ModelAtPrior) -> String {
    let size = if at.is_relative { format!("{} times a", short(at.a)) } else { format!("a = {}", short(at.a)) };
    let mut lines = vec![name.to_owned(), size];
    let shown = |evidence| format!("ln evidence {}", log_value_with_error(evidence, found.error));
    lines.extend(found.evidence.map(shown));
    let shown = |p| percent_with_error(p, found.probability_error, found.is_probability_rough);
    lines.extend(found.probability.map(|p| format!("probability {}", shown(p))));
    lines.join("\n")
}
