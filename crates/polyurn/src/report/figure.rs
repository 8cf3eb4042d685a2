//! A figure: one plot for wide pages and one for narrow ones, with a heading and a caption.

use super::drawing::Drawing;

/// Width of plots on wide pages and in files.
pub const WIDE: f64 = 720.0;
/// Width of plots on phones.
pub const NARROW: f64 = 340.0;

/// A figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Name of its file, without the ending.
    pub name: String,
    /// What it shows, for those who cannot see it.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// For wide pages and files.
    pub wide: Drawing,
    /// For phones.
    pub narrow: Drawing,
}

impl Figure {
    /// Draws it in both widths.
    pub fn new(name: &str, title: &str, caption: &str, draw: impl Fn(f64) -> Drawing) -> Self {
        Figure {
            name: name.into(),
            title: title.into(),
            caption: caption.into(),
            wide: draw(WIDE),
            narrow: draw(NARROW),
        }
    }
}
