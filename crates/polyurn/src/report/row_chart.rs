//! A chart with one row for each thing: its name, and a bar or a dot for its value.

use super::chart::{BRACKET, HIDDEN_BAR, bracket_across};
use super::colour::Colour;
use super::drawing::{Anchor, Drawing, Marker, Stroke, Words};
use super::scale::{Scale, padded, range_of};
use super::text::{cut_to, width_of};

/// A row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name, cut where there is no room.
    pub label: String,
    /// Its value; minus infinity is left of everything.
    pub value: Option<f64>,
    /// The ends of the error bar.
    pub bar: Option<(f64, f64)>,
    /// Bounds on either side.
    pub bracket: Option<(f64, f64)>,
    /// A second value, drawn hollow.
    pub second: Option<f64>,
    /// The value as words, behind a bar.
    pub shown: String,
    /// What the row tells.
    pub tip: String,
    /// Whether it stands out.
    pub is_best: bool,
}

/// How values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As bars from zero.
    Bars,
    /// As dots, with a grid.
    Dots,
}

/// Rows under each other.
#[derive(Debug, Clone)]
pub struct RowChart {
    /// Bars or dots.
    pub form: Form,
    /// Words above.
    pub title: String,
    /// Name of the values and of the second ones, for the legend of dots.
    pub names: (String, String),
    /// The range of values; theirs if not given.
    pub range: Option<(f64, f64)>,
    /// The rows.
    pub rows: Vec<Row>,
    /// A line at the foot.
    pub note: String,
}

/// Where rows go: left and right end, and the top.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Left end.
    pub left: f64,
    /// Right end.
    pub right: f64,
    /// Top.
    pub top: f64,
}

const HEADER: f64 = 28.0;

impl RowChart {
    /// Draws it this wide.
    pub fn draw(&self, width: f64) -> Drawing {
        let mut drawing = Drawing::new(width, 0.0);
        let place = Place { left: 2.0, right: width - 4.0, top: 0.0 };
        drawing.height = self.draw_at(&mut drawing, place);
        drawing
    }

    /// Draws it in a place; gives where it ends.
    pub fn draw_at(&self, drawing: &mut Drawing, place: Place) -> f64 {
        let wide = place.right - place.left;
        // Names that would take too much of the width stand above their rows.
        let most = if self.form == Form::Dots { 0.38 } else { 0.5 };
        let is_stacked = self.longest() > most * wide;
        let row_height = if is_stacked { 36.0 } else { 22.0 };
        let words = Words::new(Anchor::Start, Colour::Ink).bold();
        drawing.text((place.left, place.top + 14.0), words, &cut_to(&self.title, wide, 13.2));
        let mut top = place.top + HEADER;
        if self.form == Form::Dots {
            top = self.draw_legend(drawing, Place { top, ..place });
        }
        let label_width = if is_stacked { 0.0 } else { (self.longest() + 10.0).min(0.5 * wide) };
        let value_width = match self.form {
            Form::Bars => 8.0 + self.rows.iter().map(|row| width_of(&row.shown, 12.0)).fold(0.0, f64::max),
            Form::Dots => 12.0,
        };
        let from = place.left + label_width + if self.form == Form::Dots { 12.0 } else { 0.0 };
        let scale = Scale::linear(self.range(), (from, (place.right - value_width).max(from + 20.0)));
        let bottom = top + row_height * self.rows.len() as f64;
        if self.form == Form::Dots {
            self.draw_grid(drawing, &scale, Place { left: from, top, ..place }, bottom);
        }
        for (ix, row) in self.rows.iter().enumerate() {
            let top = top + ix as f64 * row_height;
            let middle = top + if is_stacked { 26.0 } else { row_height / 2.0 };
            let colour = if row.is_best { Colour::Series(0) } else { Colour::Ink };
            let label = Words { bold: row.is_best, ..Words::new(Anchor::Start, colour) };
            let room = if is_stacked { wide } else { label_width };
            let text = cut_to(&row.label, room - 4.0, if row.is_best { 13.2 } else { 12.0 });
            drawing.tell(&row.tip, ((place.left, top), (wide, row_height)), |drawing| {
                let baseline = if is_stacked { top + 13.0 } else { middle + 4.0 };
                drawing.text((place.left, baseline), label, &text);
                match self.form {
                    Form::Bars => row.draw_bar(drawing, &scale, middle),
                    Form::Dots => row.draw_dot(drawing, &scale, middle),
                }
            });
        }
        let mut end = bottom + 4.0;
        if self.form == Form::Dots {
            end += 20.0;
        }
        if !self.note.is_empty() {
            drawing.text((place.left, end + 12.0), Words::new(Anchor::Start, Colour::Muted), &self.note);
            end += 20.0;
        }
        end
    }

    fn longest(&self) -> f64 {
        // Bold letters are wider.
        let width = |row: &Row| width_of(&row.label, if row.is_best { 13.2 } else { 12.0 });
        self.rows.iter().map(width).fold(0.0, f64::max)
    }

    fn range(&self) -> (f64, f64) {
        if let Some(range) = self.range {
            return range;
        }
        let values = self.rows.iter().flat_map(|row| {
            let none = (f64::NAN, f64::NAN);
            let (bar, bracket) = (row.bar.unwrap_or(none), row.bracket.unwrap_or(none));
            let (value, second) = (row.value.unwrap_or(f64::NAN), row.second.unwrap_or(f64::NAN));
            [bar.0, bar.1, bracket.0, bracket.1, value, second]
        });
        let (lo, hi) = range_of(values).unwrap_or((0.0, 1.0));
        match self.form {
            Form::Bars => (0.0, hi.max(1e-12)),
            Form::Dots => padded((lo, hi), 0.03),
        }
    }

    fn draw_legend(&self, drawing: &mut Drawing, place: Place) -> f64 {
        let has_second = self.rows.iter().any(|row| row.second.is_some());
        let has_first = self.rows.iter().any(|row| row.value.is_some());
        let first = (has_first, Marker::Disc, Colour::Series(0), &self.names.0);
        let second = (has_second, Marker::Diamond, Colour::Series(1), &self.names.1);
        let (mut x, mut y) = (place.left + 6.0, place.top + 4.0);
        for (_, marker, colour, name) in [first, second].into_iter().filter(|item| item.0) {
            let wide = 12.0 + width_of(name, 12.0) + 20.0;
            if x > place.left + 6.0 && x + wide > place.right {
                (x, y) = (place.left + 6.0, y + 18.0);
            }
            drawing.marker((x, y), marker, colour);
            drawing.text((x + 12.0, y + 4.0), Words::new(Anchor::Start, Colour::Ink), name);
            x += wide;
        }
        if self.rows.iter().any(|row| row.bracket.is_some()) {
            if x > place.left + 6.0 && x + 30.0 + width_of(BRACKET, 12.0) > place.right {
                (x, y) = (place.left + 6.0, y + 18.0);
            }
            bracket_across(drawing, (x - 4.0, x + 18.0), (true, true), y);
            drawing.text((x + 25.0, y + 4.0), Words::new(Anchor::Start, Colour::Ink), BRACKET);
        }
        y + 16.0
    }

    fn draw_grid(&self, drawing: &mut Drawing, scale: &Scale, place: Place, bottom: f64) {
        let n_ticks = ((place.right - place.left) / 90.0).max(2.0) as usize;
        let mut free_from = 0.0;
        for tick in scale.ticks(n_ticks) {
            let (x, half) = (scale.at(tick.value), width_of(&tick.label, 12.0) / 2.0);
            drawing.line((x, place.top), (x, bottom), Stroke::new(Colour::Grid, 1.0));
            if x - half >= free_from && x + half <= place.right + 4.0 {
                drawing.text((x, bottom + 16.0), Words::new(Anchor::Middle, Colour::Muted), &tick.label);
                free_from = x + half + 8.0;
            }
        }
    }
}

impl Row {
    fn draw_bar(&self, drawing: &mut Drawing, scale: &Scale, y: f64) {
        let value = self.value.filter(|value| value.is_finite()).unwrap_or(0.0);
        let (from, to) = (scale.at(0.0), scale.at(scale.clamp(value)));
        let colour = if self.is_best { Colour::Series(0) } else { Colour::Bar };
        drawing.rect((from, y - 7.0), ((to - from).max(0.8), 14.0), colour);
        let mut end = to;
        if let Some((lo, hi)) = self.bar {
            let (lo, hi) = (scale.at(scale.clamp(lo)), scale.at(scale.clamp(hi)));
            end = end.max(hi);
            whisker(drawing, (lo, hi), y, Colour::Ink);
        }
        drawing.text((end + 6.0, y + 4.0), Words::new(Anchor::Start, Colour::Muted), &self.shown);
    }

    fn draw_dot(&self, drawing: &mut Drawing, scale: &Scale, y: f64) {
        if let Some(second) = self.second.filter(|&value| scale.holds(value)) {
            drawing.marker((scale.at(second), y), Marker::Diamond, Colour::Series(1));
        }
        let Some(value) = self.value else { return };
        // Behind the error bar, and none where the value is off the scale.
        if let Some((lo, hi)) = self.bracket.filter(|_| scale.holds(value)) {
            let ends = (scale.at(scale.clamp(lo)), scale.at(scale.clamp(hi)));
            bracket_across(drawing, ends, (scale.holds(lo), scale.holds(hi)), y);
        }
        if value.is_finite()
            && let Some((lo, hi)) = self.bar
        {
            let (lo, hi) = (scale.at(scale.clamp(lo)), scale.at(scale.clamp(hi)));
            if hi - lo >= HIDDEN_BAR {
                whisker(drawing, (lo, hi), y, Colour::Series(0));
            }
        }
        if scale.holds(value) {
            drawing.marker((scale.at(value), y), Marker::Disc, Colour::Series(0));
        } else {
            // Off the scale, to the left.
            let x = scale.at(scale.clamp(value)) - 6.0;
            drawing.polygon(&[(x - 5.0, y), (x + 3.0, y - 4.5), (x + 3.0, y + 4.5)], Colour::Series(0));
        }
    }
}

fn whisker(drawing: &mut Drawing, (lo, hi): (f64, f64), y: f64, colour: Colour) {
    let stroke = Stroke::new(colour, 1.4);
    drawing.line((lo, y), (hi, y), stroke);
    for x in [lo, hi] {
        drawing.line((x, y - 4.0), (x, y + 4.0), stroke);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_drawn_whatever_their_values() {
        let row = |value: Option<f64>| Row {
            label: "<model> with a name that is far too long to be written beside its bar".into(),
            value,
            bar: value.map(|value| (value - 1.0, value + 1.0)),
            bracket: value.map(|value| (value - 2.0, value + 1.5)),
            second: Some(-3.0),
            shown: "x".into(),
            tip: "tip".into(),
            is_best: true,
        };
        for form in [Form::Bars, Form::Dots] {
            let rows = vec![row(Some(-2.0)), row(None), row(Some(f64::NEG_INFINITY)), row(Some(1e200))];
            let names = ("a".into(), "b".into());
            let chart = RowChart { form, title: "t".into(), names, range: None, rows, note: "note".into() };
            for width in [340.0, 720.0] {
                let svg = chart.draw(width).as_file("x");
                assert_eq!(svg.matches("class=\"mark\"").count(), 4);
                assert!(!svg.contains("NaN") && !svg.contains("<model>"));
            }
        }
    }
}
