//! A chart of points over two axes: lines, error bars, markers.

use super::colour::Colour;
use super::drawing::{Anchor, Drawing, Marker, Stroke, Words};
use super::scale::{Scale, Tick, padded, range_of};
use super::text::width_of;

/// A point of a chart.
#[derive(Debug, Clone)]
pub struct Point {
    /// Across.
    pub x: f64,
    /// Up. Minus infinity is drawn at the foot.
    pub y: f64,
    /// The ends of its error bar.
    pub bar: Option<(f64, f64)>,
    /// Bounds on either side.
    pub bracket: Option<(f64, f64)>,
    /// What it tells.
    pub tip: String,
}

/// Points of one kind.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Colour of all it has.
    pub colour: Colour,
    /// Form of its points; none for a line alone.
    pub marker: Option<Marker>,
    /// Whether its line is dashed.
    pub dashed: bool,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// A chart.
#[derive(Debug, Clone, Default)]
pub struct Chart {
    /// Words below the horizontal axis.
    pub x_title: String,
    /// Words above the vertical axis.
    pub y_title: String,
    /// Whether equal steps across are equal ratios.
    pub is_x_log: bool,
    /// Values across that must be ticks, as far as there is room.
    pub x_ticks: Option<Vec<f64>>,
    /// What is drawn, later ones on top.
    pub series: Vec<Series>,
    /// The range upwards; that of the points and bars if not given.
    pub y_range: Option<(f64, f64)>,
    /// Short strokes at the foot, and their name in the legend.
    pub rug: Option<(String, Vec<f64>)>,
    /// A level with a name.
    pub level: Option<(String, f64)>,
}

const TOP: f64 = 26.0;
const FOOT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const LEGEND_LINE: f64 = 18.0;
/// An error bar this long would be hidden by its marker.
pub const HIDDEN_BAR: f64 = 7.0;
/// What bounds on either side are called in legends.
pub const BRACKET: &str = "bracket";
/// Brackets have caps that are wider than markers and those of error bars, half of it here: they are seen however close the
/// bounds are, and need no colour to be told from error bars.
const BRACKET_CAP: f64 = 8.0;
const BRACKET_WIDTH: f64 = 1.0;
const BRACKET_COLOUR: Colour = Colour::Ink;

/// A bracket that lies on its side, with a cap at each end that is within the plot.
pub fn bracket_across(drawing: &mut Drawing, (lo, hi): (f64, f64), has_caps: (bool, bool), y: f64) {
    let stroke = Stroke::new(BRACKET_COLOUR, BRACKET_WIDTH);
    drawing.line((lo, y), (hi, y), stroke);
    for (x, has_cap) in [(lo, has_caps.0), (hi, has_caps.1)] {
        if has_cap {
            drawing.line((x, y - BRACKET_CAP), (x, y + BRACKET_CAP), stroke);
        }
    }
}

/// Where the chart has its axes.
struct Frame {
    x: Scale,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    y_ticks: Vec<Tick>,
}

impl Chart {
    /// Draws it this wide.
    pub fn draw(&self, width: f64) -> Drawing {
        let height = if width < 500.0 { 270.0 } else { 330.0 };
        let legend = self.legend(width);
        let n_lines = legend.last().map_or(0, |item| item.line + 1);
        let mut drawing = Drawing::new(width, height + n_lines as f64 * LEGEND_LINE);
        let frame = self.frame(width, drawing.height, TOP + n_lines as f64 * LEGEND_LINE);
        self.draw_axes(&mut drawing, &frame);
        for item in &legend {
            item.draw(&mut drawing);
        }
        if let Some((_, places)) = &self.rug {
            for &place in places {
                let x = frame.x.at(place);
                drawing.line((x, frame.bottom), (x, frame.bottom - 8.0), Stroke::new(Colour::Series(1), 1.4));
            }
        }
        if let Some((_, level)) = &self.level
            && frame.y.holds(*level)
        {
            let y = frame.y.at(*level);
            let stroke = Stroke { dashed: true, ..Stroke::new(Colour::Muted, 1.0) };
            drawing.line((frame.left, y), (frame.right, y), stroke);
        }
        for series in &self.series {
            series.draw(&mut drawing, &frame);
        }
        drawing
    }

    fn frame(&self, width: f64, height: f64, top: f64) -> Frame {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let heights = points().flat_map(|point| {
            let or_none = |ends: Option<(f64, f64)>| ends.unwrap_or((point.y, point.y));
            let (bar, bracket) = (or_none(point.bar), or_none(point.bracket));
            [bar.0, bracket.0, point.y, bar.1, bracket.1]
        });
        let y_range = self.y_range.unwrap_or_else(|| padded(range_of(heights).unwrap_or((0.0, 1.0)), 0.06));
        let bottom = height - FOOT;
        let y = Scale::linear(y_range, (bottom, top + 8.0));
        let y_ticks = y.ticks(5);
        let widest = y_ticks.iter().map(|tick| width_of(&tick.label, 12.0)).fold(0.0, f64::max);
        let left = (widest + 14.0).max(30.0);
        let right = width - RIGHT;
        let rug = self.rug.iter().flat_map(|(_, places)| places.iter().copied());
        let x_range = range_of(points().map(|point| point.x).chain(rug)).unwrap_or((0.0, 1.0));
        let has_markers = self.series.iter().any(|series| series.marker.is_some());
        let inset = if has_markers { 14.0 } else { 0.0 };
        let pixels = (left + inset, right - inset);
        let x = if self.is_x_log { Scale::log(x_range, pixels) } else { Scale::linear(x_range, pixels) };
        Frame { x, y, left, right, top, bottom, y_ticks }
    }

    fn draw_axes(&self, drawing: &mut Drawing, frame: &Frame) {
        drawing.text((2.0, 14.0), Words::new(Anchor::Start, Colour::Ink).bold(), &self.y_title);
        for tick in &frame.y_ticks {
            let y = frame.y.at(tick.value);
            drawing.line((frame.left, y), (frame.right, y), Stroke::new(Colour::Grid, 1.0));
            drawing.text((frame.left - 6.0, y + 4.0), Words::new(Anchor::End, Colour::Muted), &tick.label);
        }
        drawing.line((frame.left, frame.bottom), (frame.right, frame.bottom), Stroke::new(Colour::Muted, 1.0));
        let n_ticks = ((frame.right - frame.left) / 80.0) as usize;
        let ticks = match &self.x_ticks {
            Some(values) => {
                values.iter().map(|&value| Tick { value, label: super::text::short(value) }).collect::<Vec<_>>()
            }
            None => frame.x.ticks(n_ticks.max(2)),
        };
        let mut free_from = f64::NEG_INFINITY;
        for tick in ticks {
            let (x, half) = (frame.x.at(tick.value), width_of(&tick.label, 12.0) / 2.0);
            if x - half < free_from || x + half > drawing.width {
                continue;
            }
            free_from = x + half + 6.0;
            drawing.line((x, frame.bottom), (x, frame.bottom + 4.0), Stroke::new(Colour::Muted, 1.0));
            drawing.text((x, frame.bottom + 18.0), Words::new(Anchor::Middle, Colour::Muted), &tick.label);
        }
        let middle = (frame.left + frame.right) / 2.0;
        let at = (middle, drawing.height - 6.0);
        drawing.text(at, Words::new(Anchor::Middle, Colour::Ink), &self.x_title);
    }

    /// What must be explained, in lines.
    fn legend(&self, width: f64) -> Vec<LegendItem> {
        let mut items: Vec<(String, LegendMark)> = self
            .series
            .iter()
            .filter(|series| !series.name.is_empty() && !series.points.is_empty())
            .map(|series| (series.name.clone(), LegendMark::Line(series.colour, series.marker, series.dashed)))
            .collect();
        if let Some((name, _)) = &self.rug {
            items.push((name.clone(), LegendMark::Rug));
        }
        if let Some((name, _)) = &self.level {
            items.push((name.clone(), LegendMark::Line(Colour::Muted, None, true)));
        }
        if self.series.iter().flat_map(|series| &series.points).any(|point| point.bracket.is_some()) {
            items.push((BRACKET.into(), LegendMark::Bracket));
        }
        // What is dashed stands back.
        items.sort_by_key(|(_, mark)| matches!(mark, LegendMark::Line(_, _, true)));
        let (mut x, mut line) = (2.0, 0);
        let mut placed = Vec::new();
        for (name, mark) in items {
            let wide = 30.0 + width_of(&name, 12.0) + 14.0;
            if x > 2.0 && x + wide > width {
                (x, line) = (2.0, line + 1);
            }
            placed.push(LegendItem { name, mark, x, line });
            x += wide;
        }
        placed
    }
}

enum LegendMark {
    Line(Colour, Option<Marker>, bool),
    Rug,
    Bracket,
}

struct LegendItem {
    name: String,
    mark: LegendMark,
    x: f64,
    line: usize,
}

impl LegendItem {
    fn draw(&self, drawing: &mut Drawing) {
        let y = TOP + 8.0 + self.line as f64 * LEGEND_LINE;
        match self.mark {
            LegendMark::Line(colour, marker, dashed) => {
                drawing.line((self.x, y), (self.x + 24.0, y), Stroke { dashed, ..Stroke::new(colour, 2.0) });
                if let Some(marker) = marker {
                    drawing.marker((self.x + 12.0, y), marker, colour);
                }
            }
            LegendMark::Rug => {
                for x in [8.0, 13.0, 18.0] {
                    let stroke = Stroke::new(Colour::Series(1), 1.0);
                    drawing.line((self.x + x, y + 4.0), (self.x + x, y - 4.0), stroke);
                }
            }
            LegendMark::Bracket => bracket_across(drawing, (self.x + 1.0, self.x + 23.0), (true, true), y),
        }
        drawing.text((self.x + 30.0, y + 4.0), Words::new(Anchor::Start, Colour::Ink), &self.name);
    }
}

impl Series {
    fn draw(&self, drawing: &mut Drawing, frame: &Frame) {
        let inside = |point: &&Point| frame.y.holds(point.y);
        // A line is broken where a point is out of the range.
        for run in self.points.split(|point| !frame.y.holds(point.y)) {
            let line: Vec<(f64, f64)> = run.iter().map(|p| (frame.x.at(p.x), frame.y.at(p.y))).collect();
            drawing.polyline(&line, Stroke { dashed: self.dashed, ..Stroke::new(self.colour, 2.0) });
        }
        let step = (frame.right - frame.left) / self.points.len().max(1) as f64;
        let reach = if self.marker.is_some() { 20.0 } else { step.clamp(2.0, 20.0) };
        let in_box = |x: f64, y: f64| ((x - reach / 2.0, y - 10.0), (reach, 20.0));
        for point in self.points.iter().filter(inside) {
            let (x, y) = (frame.x.at(point.x), frame.y.at(point.y));
            // A line without markers is felt over the whole height.
            let place = if self.marker.is_some() {
                in_box(x, y)
            } else {
                ((x - reach / 2.0, frame.top), (reach, frame.bottom - frame.top))
            };
            drawing.tell(&point.tip, place, |drawing| {
                // Behind the error bar.
                if let Some((lo, hi)) = point.bracket {
                    let (top, foot) = (frame.y.at(frame.y.clamp(hi)), frame.y.at(frame.y.clamp(lo)));
                    let stroke = Stroke::new(BRACKET_COLOUR, BRACKET_WIDTH);
                    drawing.line((x, top), (x, foot), stroke);
                    for (value, y) in [(hi, top), (lo, foot)] {
                        if frame.y.holds(value) {
                            drawing.line((x - BRACKET_CAP, y), (x + BRACKET_CAP, y), stroke);
                        }
                    }
                }
                if let Some((lo, hi)) = point.bar {
                    self.draw_bar(drawing, frame, x, (lo, hi));
                }
                if let Some(marker) = self.marker {
                    drawing.marker((x, y), marker, self.colour);
                }
            });
        }
        if self.marker.is_some() {
            let below = self.points.iter().filter(|point| point.y < frame.y.clamp(point.y));
            for point in below {
                let (x, y) = (frame.x.at(point.x), frame.bottom - 7.0);
                drawing.tell(&point.tip, in_box(x, y), |drawing| drawing.marker((x, y), Marker::Below, self.colour));
            }
        }
    }

    fn draw_bar(&self, drawing: &mut Drawing, frame: &Frame, x: f64, (lo, hi): (f64, f64)) {
        let (top, foot) = (frame.y.at(frame.y.clamp(hi)), frame.y.at(frame.y.clamp(lo)));
        if foot - top < HIDDEN_BAR {
            return;
        }
        let stroke = Stroke::new(self.colour, 1.6);
        drawing.line((x, top), (x, foot), stroke);
        for (value, y) in [(hi, top), (lo, foot)] {
            if frame.y.holds(value) {
                drawing.line((x - 5.0, y), (x + 5.0, y), stroke);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: &[(f64, f64)]) -> Chart {
        let points = points.iter().map(|&(x, y)| {
            let (bar, bracket) = (Some((y - 1.0, y + 1.0)), Some((y - 2.0, y + 1.5)));
            Point { x, y, bar, bracket, tip: format!("{x}") }
        });
        let series = Series {
            name: "evidence".into(),
            colour: Colour::Series(0),
            marker: Some(Marker::Disc),
            dashed: false,
            points: points.collect(),
        };
        Chart { x_title: "size".into(), y_title: "ln".into(), series: vec![series], ..Chart::default() }
    }

    #[test]
    fn every_point_is_a_mark_and_none_leaves_the_drawing() {
        let svg = chart(&[(1.0, -5.0), (2.0, -3.0), (3.0, f64::NEG_INFINITY)]).draw(360.0).as_file("x");
        assert_eq!(svg.matches("class=\"mark\"").count(), 3);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn an_empty_chart_and_one_point_are_drawn() {
        for points in [&[][..], &[(1.0, 1.0)], &[(1.0, f64::NEG_INFINITY)]] {
            let svg = chart(points).draw(720.0).as_file("x");
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
        }
    }
}
