//! A drawing: SVG whose colours are filled in when it is known where it will be shown.

use super::colour::{Colour, Theme};
use super::text::escape;

/// The font of all words in drawings.
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";

/// Where a text is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// At its beginning.
    Start,
    /// In its middle.
    Middle,
    /// At its end.
    End,
}

/// How words are set.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Where the text is held.
    pub anchor: Anchor,
    /// Size in pixels.
    pub size: f64,
    /// Colour.
    pub colour: Colour,
    /// Whether it is bold.
    pub bold: bool,
}

impl Words {
    /// Words of ordinary size.
    pub fn new(anchor: Anchor, colour: Colour) -> Self {
        Words { anchor, size: 12.0, colour, bold: false }
    }

    /// Bold ones.
    pub fn bold(self) -> Self {
        Words { bold: true, ..self }
    }

    /// Of another size.
    pub fn sized(self, size: f64) -> Self {
        Words { size, ..self }
    }
}

/// A line's colour, width, and whether it is broken.
#[derive(Debug, Clone, Copy)]
pub struct Stroke {
    /// Colour.
    pub colour: Colour,
    /// Width in pixels.
    pub width: f64,
    /// Whether it is dashed.
    pub dashed: bool,
}

impl Stroke {
    /// An unbroken line.
    pub fn new(colour: Colour, width: f64) -> Self {
        Stroke { colour, width, dashed: false }
    }
}

/// A form that marks a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marker {
    /// A disc.
    Disc,
    /// A square.
    Square,
    /// A triangle on its side of two points.
    Triangle,
    /// A diamond, hollow.
    Diamond,
    /// A triangle that points down: the value is further down than the plot.
    Below,
}

impl Marker {
    /// The marker of a series.
    pub fn of(series: usize) -> Self {
        [Marker::Disc, Marker::Square, Marker::Triangle][series % 3]
    }
}

#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Colour(Colour),
}

/// A drawing.
#[derive(Debug, Clone)]
pub struct Drawing {
    /// Its width in pixels.
    pub width: f64,
    /// Its height, which may grow while it is drawn.
    pub height: f64,
    parts: Vec<Part>,
}

impl Drawing {
    /// An empty one.
    pub fn new(width: f64, height: f64) -> Self {
        Drawing { width, height, parts: Vec::new() }
    }

    fn raw(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.into())),
        }
    }

    /// An attribute with a colour.
    fn paint(&mut self, attribute: &str, colour: Option<Colour>) {
        self.raw(&format!(" {attribute}=\""));
        match colour {
            Some(colour) => self.parts.push(Part::Colour(colour)),
            None => self.raw("none"),
        }
        self.raw("\"");
    }

    fn stroke(&mut self, stroke: Stroke) {
        self.paint("stroke", Some(stroke.colour));
        if stroke.width != 1.0 {
            self.raw(&format!(" stroke-width=\"{}\"", px(stroke.width)));
        }
        if stroke.dashed {
            self.raw(" stroke-dasharray=\"5 4\"");
        }
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), stroke: Stroke) {
        self.raw(&format!("<path d=\"M{} {}L{} {}\"", px(from.0), px(from.1), px(to.0), px(to.1)));
        self.stroke(stroke);
        self.raw("/>");
    }

    /// A line through points.
    pub fn polyline(&mut self, points: &[(f64, f64)], stroke: Stroke) {
        if points.len() < 2 {
            return;
        }
        let d: Vec<String> = points.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
        self.curve(&format!("M{}", d.join("L")), stroke);
    }

    /// A line along an SVG path.
    pub fn curve(&mut self, d: &str, stroke: Stroke) {
        self.raw(&format!("<path d=\"{d}\""));
        self.paint("fill", None);
        self.stroke(stroke);
        self.raw(" stroke-linejoin=\"round\"/>");
    }

    /// A filled polygon.
    pub fn polygon(&mut self, points: &[(f64, f64)], fill: Colour) {
        let d: Vec<String> = points.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y))).collect();
        self.raw(&format!("<path d=\"M{}Z\"", d.join("L")));
        self.paint("fill", Some(fill));
        self.raw("/>");
    }

    /// A rectangle: its corner, its size.
    pub fn rect(&mut self, at: (f64, f64), size: (f64, f64), fill: Colour) {
        self.open_rect("", at, size, fill);
        self.raw("/>");
    }

    fn open_rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), fill: Colour) {
        let (width, height) = (px(size.0.max(0.0)), px(size.1.max(0.0)));
        let (x, y) = (px(at.0), px(at.1));
        self.raw(&format!("<rect{class} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\""));
        self.paint("fill", Some(fill));
    }

    /// An ellipse with an outline.
    pub fn ellipse(&mut self, at: (f64, f64), radii: (f64, f64), fill: Colour, stroke: Stroke) {
        self.raw(&format!(
            "<ellipse cx=\"{}\" cy=\"{}\" rx=\"{}\" ry=\"{}\"",
            px(at.0),
            px(at.1),
            px(radii.0),
            px(radii.1)
        ));
        self.paint("fill", Some(fill));
        self.stroke(stroke);
        self.raw("/>");
    }

    /// The marker of a point.
    pub fn marker(&mut self, (x, y): (f64, f64), marker: Marker, colour: Colour) {
        match marker {
            Marker::Disc => {
                self.raw(&format!("<circle cx=\"{}\" cy=\"{}\" r=\"4\"", px(x), px(y)));
                self.paint("fill", Some(colour));
                self.raw("/>");
            }
            Marker::Square => self.rect((x - 3.6, y - 3.6), (7.2, 7.2), colour),
            Marker::Triangle => self.polygon(&[(x, y - 4.6), (x + 4.4, y + 3.4), (x - 4.4, y + 3.4)], colour),
            Marker::Below => self.polygon(&[(x, y + 4.6), (x + 4.4, y - 3.4), (x - 4.4, y - 3.4)], colour),
            Marker::Diamond => {
                let d = format!("M{} {}l4.6 4.6l-4.6 4.6l-4.6 -4.6Z", px(x), px(y - 4.6));
                self.raw(&format!("<path d=\"{d}\""));
                self.paint("fill", Some(Colour::Paper));
                self.stroke(Stroke::new(colour, 1.6));
                self.raw("/>");
            }
        }
    }

    /// Words, their baseline at a height.
    pub fn text(&mut self, (x, y): (f64, f64), words: Words, text: &str) {
        self.words((x, y), words, text, "");
    }

    /// Words that go upwards.
    pub fn upwards(&mut self, (x, y): (f64, f64), words: Words, text: &str) {
        self.words((x, y), words, text, &format!(" transform=\"rotate(-90 {} {})\"", px(x), px(y)));
    }

    fn words(&mut self, (x, y): (f64, f64), words: Words, text: &str, more: &str) {
        let anchor = match words.anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        self.raw(&format!("<text x=\"{}\" y=\"{}\"{anchor}{more}", px(x), px(y)));
        if words.size != 12.0 {
            self.raw(&format!(" font-size=\"{}\"", px(words.size)));
        }
        if words.bold {
            self.raw(" font-weight=\"600\"");
        }
        self.paint("fill", Some(words.colour));
        self.raw(&format!(">{}</text>", escape(text)));
    }

    /// Everything that `draw` draws is one thing, which tells `tip` when a pointer rests on it or on the box around.
    pub fn tell(&mut self, tip: &str, (at, size): ((f64, f64), (f64, f64)), draw: impl FnOnce(&mut Self)) {
        self.raw(&format!("<g class=\"mark\"><title>{}</title>", escape(tip)));
        draw(self);
        self.raw(&format!(
            "<rect class=\"reach\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" pointer-events=\"all\"/></g>",
            px(at.0),
            px(at.1),
            px(size.0),
            px(size.1)
        ));
    }

    /// A filled rectangle that tells a tip.
    pub fn telling_rect(&mut self, tip: &str, at: (f64, f64), size: (f64, f64), fill: Colour) {
        self.open_rect(" class=\"mark\"", at, size, fill);
        self.raw(&format!("><title>{}</title></rect>", escape(tip)));
    }

    /// The drawing as part of a page, which says what colours are.
    pub fn for_page(&self, label: &str, class: &str) -> String {
        let open = format!("<svg class=\"{class}\" role=\"img\" aria-label=\"{}\"", escape(label));
        self.write(&open, "", |colour| format!("var({})", colour.property()))
    }

    /// The drawing as a file of its own, on white.
    pub fn as_file(&self, label: &str) -> String {
        let size = format!(" width=\"{}\" height=\"{}\"", px(self.width), px(self.height));
        let open = format!("<svg xmlns=\"http://www.w3.org/2000/svg\"{size} role=\"img\"");
        let ground = format!(
            "<title>{}</title><rect width=\"{}\" height=\"{}\" fill=\"#ffffff\"/>",
            escape(label),
            px(self.width),
            px(self.height)
        );
        self.write(&open, &ground, |colour| colour.of(Theme::Light)) + "\n"
    }

    fn write(&self, open: &str, first: &str, paint: impl Fn(Colour) -> String) -> String {
        let mut out = format!(
            "{open} viewBox=\"0 0 {} {}\" font-family=\"{}\" font-size=\"12\">{first}",
            px(self.width),
            px(self.height),
            escape(FONT)
        );
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Colour(colour) => out.push_str(&paint(*colour)),
            }
        }
        out.push_str("</svg>");
        out
    }
}

/// A coordinate, to a tenth of a pixel.
pub fn px(value: f64) -> String {
    let rounded = (value * 10.0).round() / 10.0;
    // Never "-0", nor anything that is no number.
    if !rounded.is_finite() || rounded == 0.0 { "0".into() } else { rounded.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_plain_colours_and_a_page_names_of_them() {
        let mut drawing = Drawing::new(10.0, 5.0);
        drawing.text((1.0, 2.0), Words::new(Anchor::End, Colour::Ink), "var(--ink) <b>");
        let file = drawing.as_file("<t>");
        assert!(file.contains("fill=\"#1b1f24\">var(--ink) &lt;b&gt;</text>"), "{file}");
        assert!(file.contains("<title>&lt;t&gt;</title>"));
        assert!(drawing.for_page("x", "wide").contains("fill=\"var(--ink)\""));
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        assert_eq!([1.0, -0.01, 2.345, f64::NAN, f64::INFINITY].map(px), ["1", "0", "2.3", "0", "0"]);
    }
}
