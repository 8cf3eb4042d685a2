//! Evidence of models: against the size of a hidden node, over two sizes as a heat map, or model by model.

use super::chart::{Chart, Point, Series};
use super::colour::{Colour, N_SERIES};
use super::drawing::Marker;
use super::figure::Figure;
use super::heat_map::{Cell, HeatMap};
use super::result::{Candidate, Ranking};
use super::row_chart::{Form, Row, RowChart};
use super::scale::range_of;
use super::text::{fixed, log_value, log_value_with_error, percent, percent_with_error, short};

/// Models of a plot that lists them, best first.
pub const MOST_ROWS: usize = 40;
/// Rows and columns of a heat map of evidence.
const MOST_SIZES: usize = 40;
/// Differences beyond this many nats are all the same colour: nothing so far behind matters.
const FAR_BEHIND: f64 = 30.0;
/// Share of a plot's height within which points look level.
const LOOKS_LEVEL: f64 = 0.03;
const BARS: &str = "Bars reach one standard error to each side; where there is none, the number is exact or its error too small to be seen.";
const BOUNDS: &str = "which is not evidence: how far it is below varies from model to model.";
const ELBO: &str = "lower bound (ELBO)";

/// What bars and diamonds of a plot mean, as far as it has any.
fn caption(ranking: &Ranking) -> String {
    let has = |what: fn(&Candidate) -> bool| ranking.models.iter().any(what);
    if !has(|model| model.evidence.is_some()) {
        return format!("Each is a {ELBO}, {BOUNDS} So there are no error bars, and no probabilities.");
    }
    let mut text = BARS.to_owned();
    text += &bracket_caption(ranking);
    let unknown: Vec<String> =
        ranking.models.iter().filter(|model| model.is_error_unknown).map(|model| ranking.label(model)).collect();
    if !unknown.is_empty() {
        let some = &unknown[..unknown.len().min(4)];
        let more = if unknown.len() > some.len() { " and others" } else { "" };
        text += &format!(" Of {}{more} the error is unknown: one run cannot tell it.", some.join("; "));
    }
    if has(|model| model.elbo.is_some()) {
        text += &format!(" Hollow diamonds are the {ELBO}, {BOUNDS}");
    }
    text
}

/// What a bracket is, and what it rests on; empty where there is none.
fn bracket_caption(ranking: &Ranking) -> String {
    let Some(model) = ranking.models.iter().find(|model| model.bracket.is_some()) else { return String::new() };
    let mut text =
        " Thin bars with wide caps are brackets: the evidence is at least their lower end and at most their upper one"
            .to_owned();
    if let Some(error) = model.bracket_error {
        text += &format!(", each with a probability of {} %", short(100.0 * (1.0 - error)));
    }
    let rests_on = model.bracket_rests_on.trim_end_matches('.');
    if rests_on.is_empty() { text + "." } else { format!("{text}; {rests_on}.") }
}

/// All plots of evidence.
pub fn evidence_plots(ranking: &Ranking) -> Vec<Figure> {
    match ranking.varied()[..] {
        [node] if ranking.is_select => by_size(ranking, node),
        [first, second] if ranking.is_select => {
            let mut figures = vec![by_two_sizes(ranking, first, second)];
            figures.extend(model_by_model(ranking));
            figures
        }
        _ => model_by_model(ranking),
    }
}

/// What a model tells when a pointer rests on it.
pub fn tip(ranking: &Ranking, candidate: &Candidate) -> String {
    let mut lines = vec![ranking.label(candidate)];
    if let Some(evidence) = candidate.evidence {
        let unknown = if candidate.is_error_unknown { ", error unknown" } else { "" };
        lines.push(format!("ln evidence {}{unknown}", log_value_with_error(evidence, candidate.error)));
    }
    if let Some((lo, hi)) = candidate.bracket {
        lines.push(format!("at least {}", log_value(lo, candidate.error)));
        lines.push(format!("at most {}", log_value(hi, candidate.error)));
    }
    if let Some(elbo) = candidate.elbo {
        lines.push(format!("{ELBO} {}", log_value(elbo, Some(0.1))));
    }
    if let Some(factor) = candidate.log_bayes_factor {
        lines.push(format!("against the best {}", log_value(factor, Some(0.1))));
    }
    if let Some(p) = candidate.probability {
        lines.push(format!("probability {}", probability(candidate, p)));
    }
    lines.join("\n")
}

/// A model's probability with its error.
fn probability(candidate: &Candidate, p: f64) -> String {
    percent_with_error(p, candidate.probability_error, candidate.is_probability_rough)
}

/// A range near the best evidence, if the whole range is so large that errors of the best could not be seen in it.
fn near_best(ranking: &Ranking) -> Option<(f64, f64)> {
    let evidence = || ranking.models.iter().filter_map(|model| model.evidence.filter(|x| x.is_finite()));
    let (_, best) = range_of(evidence())?;
    let (lowest, _) = range_of(evidence().chain(ranking.models.iter().filter_map(|model| model.elbo)))?;
    let near = || ranking.models.iter().filter(|model| model.evidence.is_some_and(|x| x > best - 10.0));
    let error = near().filter_map(|model| model.error).fold(0.0, f64::max);
    // Also those that are well apart from it, but look level on the whole range.
    let reach = (5.0_f64).max(6.0 * error).max(LOOKS_LEVEL * (best - lowest));
    let (n_near, last) = evidence().filter(|x| *x >= best - reach).fold((0, best), |(n, lo), x| (n + 1, lo.min(x)));
    let spread = best - last;
    // Brackets are seen whole, unless they are so wide that nothing else could be seen.
    let beyond = |model: &Candidate| {
        let (lo, hi) = model.bracket?;
        Some((hi - best).max(last - lo))
    };
    let bracket = 1.05 * near().filter_map(beyond).fold(0.0, f64::max);
    let bracket = if bracket <= reach { bracket } else { 0.0 };
    let room = (0.08 * spread).max(1.6 * error).max(0.05).max(bracket);
    (best - lowest > 3.0 * reach && n_near > 1).then_some((last - room.max(0.2 * spread), best + room))
}

/// What the numbers are, as a title begins.
fn kind(ranking: &Ranking) -> &'static str {
    if ranking.models.iter().any(|model| model.evidence.is_some()) { "Evidence" } else { "Lower bound" }
}

fn axis_title(ranking: &Ranking) -> &'static str {
    if ranking.models.iter().any(|model| model.evidence.is_some()) { "ln evidence" } else { ELBO }
}

/// Evidence against the size of one node, a line for each size of the prior.
fn by_size(ranking: &Ranking, node: &str) -> Vec<Figure> {
    let mut sizes: Vec<f64> = ranking.models.iter().filter_map(|model| model.size_of(node)).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let is_x_log = is_spread(&sizes);
    let chart = Chart {
        x_title: format!("number of values of {node}"),
        y_title: axis_title(ranking).into(),
        is_x_log,
        series: series_by_size(ranking, node),
        x_ticks: Some(sizes.clone()),
        ..Chart::default()
    };
    let caption = caption(ranking);
    let title = format!("{} against the number of values of {node}", kind(ranking));
    let mut figures = vec![Figure::new("evidence", &title, &caption, |width| chart.draw(width))];
    if let Some((lo, hi)) = near_best(ranking) {
        let near = enlarged(&chart, (lo, hi), &sizes);
        let bracket = bracket_caption(ranking);
        let caption =
            format!("The same on a finer scale. {BARS}{bracket} Triangles at the foot are models further down.");
        figures.push(Figure::new("evidence-near-best", "Evidence near the best", &caption, |width| near.draw(width)));
    }
    figures
}

fn series_by_size(ranking: &Ranking, node: &str) -> Vec<Series> {
    let priors = ranking.prior_sizes();
    let n_priors = priors.len().clamp(1, N_SERIES);
    let mut all = Vec::new();
    for ix in 0..n_priors {
        let mut models: Vec<&Candidate> = ranking
            .models
            .iter()
            .filter(|model| priors.len() < 2 || model.a == Some(priors[ix]))
            .filter(|model| model.size_of(node).is_some())
            .collect();
        models.sort_by(|x, y| x.size_of(node).unwrap_or(0.0).total_cmp(&y.size_of(node).unwrap_or(0.0)));
        let which = if priors.len() < 2 { String::new() } else { format!(", a = {}", short(priors[ix])) };
        let points = |f: fn(&Candidate) -> Option<f64>, has_bars: bool| -> Vec<Point> {
            let point = |model: &&Candidate| {
                let (bar, bracket) = if has_bars { (model.bar(), model.bracket) } else { (None, None) };
                // A line is broken where a size has no number.
                let y = f(model).unwrap_or(f64::NAN);
                Some(Point { x: model.size_of(node)?, y, bar, bracket, tip: tip(ranking, model) })
            };
            models.iter().filter_map(point).collect()
        };
        let elbo = Series {
            name: format!("{ELBO}{which}"),
            colour: Colour::Series(if priors.len() < 2 { 1 } else { ix }),
            marker: Some(Marker::Diamond),
            dashed: true,
            points: points(|model| model.elbo, false),
        };
        let evidence = Series {
            name: format!("ln evidence{which}"),
            colour: Colour::Series(ix),
            marker: Some(Marker::of(ix)),
            dashed: false,
            points: points(|model| model.evidence, true),
        };
        let has_points = |series: &Series| series.points.iter().any(|point| !point.y.is_nan());
        all.extend([elbo, evidence].into_iter().filter(has_points));
    }
    // Evidence is named first and drawn last.
    all.sort_by_key(|series| !series.dashed);
    all
}

/// The part of a chart within a range upwards: its points, and one more on either side.
fn enlarged(chart: &Chart, (lo, hi): (f64, f64), sizes: &[f64]) -> Chart {
    let is_near = |size: f64| {
        let evidence = chart.series.iter().filter(|series| !series.dashed).flat_map(|series| &series.points);
        evidence.clone().any(|point| point.x == size && (lo..=hi).contains(&point.y))
    };
    let first = sizes.iter().position(|&size| is_near(size)).unwrap_or(0).saturating_sub(1);
    let last = sizes.iter().rposition(|&size| is_near(size)).map_or(sizes.len(), |ix| (ix + 2).min(sizes.len()));
    let kept = &sizes[first.min(last)..last];
    let series = chart.series.iter().map(|series| {
        let is_kept = |point: &&Point| kept.contains(&point.x) && (!series.dashed || point.y >= lo);
        Series { points: series.points.iter().filter(is_kept).cloned().collect(), ..series.clone() }
    });
    Chart {
        y_title: format!("{}, near the best", chart.y_title),
        is_x_log: is_spread(kept),
        x_ticks: Some(kept.to_vec()),
        series: series.collect(),
        y_range: Some((lo, hi)),
        ..chart.clone()
    }
}

/// Whether sizes go up by ratios rather than by steps.
fn is_spread(sizes: &[f64]) -> bool {
    match (sizes.first(), sizes.last()) {
        (Some(&first), Some(&last)) => {
            first >= 1.0 && last / first >= 16.0 && (sizes.len() as f64) < (last - first) / 4.0
        }
        _ => false,
    }
}

/// Evidence over the sizes of two nodes, each cell the best of the models that have them.
fn by_two_sizes(ranking: &Ranking, down: &str, across: &str) -> Figure {
    let sizes = |node: &str| {
        let mut sizes: Vec<f64> = ranking.models.iter().filter_map(|model| model.size_of(node)).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        sizes.truncate(MOST_SIZES);
        sizes
    };
    let value = |model: &Candidate| model.evidence.or(model.elbo).unwrap_or(f64::NEG_INFINITY);
    let (rows, columns) = (sizes(down), sizes(across));
    let all = range_of(ranking.models.iter().map(value)).unwrap_or((0.0, 0.0));
    // Against the best evidence where there is any: a bound is no match for it.
    let has_evidence = ranking.models.iter().any(|model| model.evidence.is_some());
    let top = range_of(ranking.models.iter().filter_map(|model| model.evidence)).map_or(all.1, |evidence| evidence.1);
    let all = (all.0.min(top), top);
    let depth = (all.1 - all.0).clamp(1e-9, FAR_BEHIND);
    let cell = |row: f64, column: f64| {
        let fits = |model: &&Candidate| model.size_of(down) == Some(row) && model.size_of(across) == Some(column);
        let best = ranking.models.iter().filter(fits).max_by(|x, y| value(x).total_cmp(&value(y)))?;
        let behind = value(best) - all.1;
        let at_least = if has_evidence && best.evidence.is_none() { "≥ " } else { "" };
        let shown = if behind.is_finite() {
            format!("{at_least}{}", fixed(behind, usize::from(behind > -100.0)))
        } else {
            "−∞".into()
        };
        Some(Cell { share: (1.0 + behind / depth).min(1.0), shown, tip: tip(ranking, best) })
    };
    let cut = if all.1 - all.0 > FAR_BEHIND { " or less" } else { "" };
    let map = HeatMap {
        title: format!("{}, against the best", axis_title(ranking)),
        row_title: format!("values of {down}"),
        column_title: format!("values of {across}"),
        cells: rows.iter().map(|&row| columns.iter().map(|&column| cell(row, column)).collect()).collect(),
        rows: rows.iter().map(|&size| short(size)).collect(),
        columns: columns.iter().map(|&size| short(size)).collect(),
        ends: (format!("−{}{cut}", fixed(depth, 1)), "0 (best)".into()),
        note: String::new(),
    };
    let title = format!("{} over the numbers of values of {down} and {across}", kind(ranking));
    let what = match (has_evidence, ranking.models.iter().any(|model| model.evidence.is_none())) {
        (false, _) => format!("The {ELBO} less the best one, {BOUNDS}"),
        (true, true) => {
            format!("Natural log of the evidence less that of the best model; with ≥, of the {ELBO} alone, {BOUNDS}")
        }
        (true, false) => "Natural log of the evidence less that of the best model.".to_owned(),
    };
    let caption = format!("{what} A dot stands for sizes that were not tried.");
    Figure::new("evidence-by-size", &title, &caption, |width| map.draw(width))
}

/// Evidence model by model, best first.
fn model_by_model(ranking: &Ranking) -> Vec<Figure> {
    let rows: Vec<Row> = ranking.models.iter().enumerate().map(|(ix, model)| row(ranking, ix, model)).collect();
    let names = ("ln evidence".to_owned(), ELBO.to_owned());
    let note = match rows.len().saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("and {more} more models, in the table below"),
    };
    let shown = rows[..rows.len().min(MOST_ROWS)].to_vec();
    let chart = RowChart { form: Form::Dots, title: axis_title(ranking).into(), names, range: None, rows: shown, note };
    let draw = |width| chart.draw(width);
    let title = format!("{} of each model", kind(ranking));
    let mut figures = vec![Figure::new("evidence", &title, &caption(ranking), draw)];
    if let Some((lo, hi)) = near_best(ranking) {
        // A bound that is off the scale is not drawn, and so has no place in the legend.
        let within = |row: Row| Row { second: row.second.filter(|second| (lo..=hi).contains(second)), ..row };
        let is_near = |row: &&Row| row.value.is_some_and(|value| value >= lo);
        let rows: Vec<Row> = chart.rows.iter().filter(is_near).cloned().map(within).collect();
        let near = RowChart {
            title: format!("{}, near the best", chart.title),
            range: Some((lo, hi)),
            rows,
            note: String::new(),
            ..chart.clone()
        };
        let caption = format!("The best models on a finer scale. {BARS}{}", bracket_caption(ranking));
        figures.push(Figure::new("evidence-near-best", "Evidence near the best", &caption, |width| near.draw(width)));
    }
    figures
}

fn row(ranking: &Ranking, ix: usize, model: &Candidate) -> Row {
    Row {
        label: ranking.label(model),
        value: model.evidence,
        bar: model.bar(),
        bracket: model.bracket,
        second: model.elbo,
        shown: String::new(),
        tip: tip(ranking, model),
        is_best: ix == ranking.best,
    }
}

/// Posterior probabilities: by size if one node was varied, else best first.
pub fn probability_plot(ranking: &Ranking) -> Option<Figure> {
    let mut models: Vec<(usize, &Candidate)> =
        ranking.models.iter().enumerate().filter(|(_, model)| model.probability.is_some()).collect();
    if models.is_empty() {
        return None;
    }
    let n_more = models.len().saturating_sub(MOST_ROWS);
    models.truncate(MOST_ROWS);
    let rest: f64 = 1.0 - models.iter().filter_map(|(_, model)| model.probability).sum::<f64>();
    if let ([node], true) = (&ranking.varied()[..], ranking.is_select) {
        models.sort_by(|x, y| x.1.size_of(node).unwrap_or(0.0).total_cmp(&y.1.size_of(node).unwrap_or(0.0)));
    }
    let rows = models.into_iter().map(|(ix, model)| {
        let p = model.probability.unwrap_or(0.0);
        let error = model.probability_error.filter(|error| *error > 5e-4);
        let bar = error.map(|error| ((p - error).max(0.0), (p + error).min(1.0)));
        let shown = probability(model, p);
        Row { value: Some(p), bar, bracket: None, second: None, shown, ..row(ranking, ix, model) }
    });
    let note = match n_more {
        0 => String::new(),
        more => format!("and {more} more models, {} together", percent(rest.max(0.0))),
    };
    let n_without = ranking.models.iter().filter(|model| model.probability.is_none()).count();
    let without = match n_without {
        0 => String::new(),
        1 => format!(" One model has no bar, since no more than its {ELBO} is known."),
        n => format!(" {n} models have no bars, since no more than their {ELBO} is known."),
    };
    let chart = RowChart {
        form: Form::Bars,
        title: "posterior probability".into(),
        names: Default::default(),
        range: Some((0.0, 1.0)),
        rows: rows.collect(),
        note,
    };
    let caption = format!("How probable each model is, given the data and that one of these models is true.{without}");
    Some(Figure::new("probability", "Posterior probability of each model", &caption, |width| chart.draw(width)))
}
