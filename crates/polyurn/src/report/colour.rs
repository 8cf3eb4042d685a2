//! The colours of plots: on the page by name, so that it can be light or dark, and in files as they are on white paper.

/// What is drawn in one colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Words and outlines.
    Ink,
    /// Words that stand back: axes, notes.
    Muted,
    /// Grid lines.
    Grid,
    /// The background.
    Paper,
    /// Seen nodes of a graph.
    Shade,
    /// Bars that do not stand out.
    Bar,
    /// A category.
    Series(usize),
    /// A step of the ramp of heat maps, from low to high.
    Ramp(usize),
    /// Words on a step of the ramp.
    OnRamp(usize),
}

/// Number of categories that can be told apart.
pub const N_SERIES: usize = 6;
/// Number of steps of the ramp.
pub const N_STEPS: usize = 16;

/// The palette of Okabe and Ito, which people with any kind of colour vision can tell apart, without its black and its
/// yellow, which is too faint on white.
const SERIES_ON_LIGHT: [&str; N_SERIES] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
/// The same on a dark ground: those of its colours that are light come first.
const SERIES_ON_DARK: [&str; N_SERIES] = ["#56b4e9", "#e69f00", "#2cc39a", "#cc79a7", "#f0e442", "#e8743b"];

/// A set of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// For white paper.
    Light,
    /// For dark screens.
    Dark,
}

impl Colour {
    /// Every colour there is.
    pub fn all() -> impl Iterator<Item = Colour> {
        [Colour::Ink, Colour::Muted, Colour::Grid, Colour::Paper, Colour::Shade, Colour::Bar]
            .into_iter()
            .chain([Colour::OnRamp(0), Colour::OnRamp(N_STEPS - 1)])
            .chain((0..N_SERIES).map(Colour::Series))
            .chain((0..N_STEPS).map(Colour::Ramp))
    }

    /// The name of its custom property, with which the page paints.
    pub fn property(self) -> String {
        match self {
            Colour::Ink => "--ink".into(),
            Colour::Muted => "--muted".into(),
            Colour::Grid => "--grid".into(),
            Colour::Paper => "--paper".into(),
            Colour::Shade => "--shade".into(),
            Colour::Bar => "--bar".into(),
            Colour::Series(ix) => format!("--s{}", ix % N_SERIES),
            Colour::Ramp(step) => format!("--r{}", step.min(N_STEPS - 1)),
            Colour::OnRamp(step) => if step < N_STEPS / 2 { "--k0" } else { "--k1" }.into(),
        }
    }

    /// The colour itself.
    pub fn of(self, theme: Theme) -> String {
        let pick = |light: &str, dark: &str| if theme == Theme::Light { light } else { dark }.to_owned();
        match self {
            Colour::Ink => pick("#1b1f24", "#e8eaed"),
            Colour::Muted => pick("#59626d", "#a3adb8"),
            Colour::Grid => pick("#e1e5ea", "#343b44"),
            Colour::Paper => pick("#ffffff", "#171b21"),
            Colour::Shade => pick("#d5dbe2", "#46505c"),
            Colour::Bar => pick("#8dbfe2", "#31688e"),
            Colour::Series(ix) => pick(SERIES_ON_LIGHT[ix % N_SERIES], SERIES_ON_DARK[ix % N_SERIES]),
            Colour::Ramp(step) => ramp(step.min(N_STEPS - 1), theme),
            Colour::OnRamp(step) if step < N_STEPS / 2 => pick("#1b1f24", "#e8eaed"),
            Colour::OnRamp(_) => pick("#ffffff", "#0d1116"),
        }
    }
}

/// The step of the ramp for a share between 0 and 1.
pub fn step_of(share: f64) -> usize {
    (share.clamp(0.0, 1.0) * (N_STEPS - 1) as f64).round() as usize
}

/// Custom properties of a theme, as CSS declarations.
pub fn properties(theme: Theme) -> String {
    Colour::all().map(|colour| format!("{}:{};", colour.property(), colour.of(theme))).collect()
}

/// Blue, from near the background to far from it, in equal steps of perceived lightness (Oklab).
fn ramp(step: usize, theme: Theme) -> String {
    const HUE: f64 = 4.45;
    let share = step as f64 / (N_STEPS - 1) as f64;
    let lightness = match theme {
        Theme::Light => 0.975 - 0.635 * share,
        Theme::Dark => 0.255 + 0.655 * share,
    };
    // As colourful as screens can show at that lightness: less so near white.
    let chroma = match theme {
        Theme::Light => 0.01 + 0.115 * (std::f64::consts::PI * 0.72 * share).sin(),
        Theme::Dark => 0.025 + 0.095 * (std::f64::consts::PI * share).sin(),
    };
    let (a, b) = (chroma * HUE.cos(), chroma * HUE.sin());
    let [l, m, s] = [
        lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b,
        lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b,
        lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b,
    ]
    .map(|x| x * x * x);
    let rgb = [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ]
    .map(|x| {
        let x = x.clamp(0.0, 1.0);
        let gamma = if x <= 0.003_130_8 { 12.92 * x } else { 1.055 * x.powf(1.0 / 2.4) - 0.055 };
        (gamma * 255.0).round() as u8
    });
    format!("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance, as in the guidelines for accessible pages.
    fn luminance(colour: &str) -> f64 {
        let channel = |ix: usize| {
            let x = f64::from(u8::from_str_radix(&colour[ix..ix + 2], 16).unwrap()) / 255.0;
            if x <= 0.040_45 { x / 12.92 } else { ((x + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(x: &str, y: &str) -> f64 {
        let (x, y) = (luminance(x) + 0.05, luminance(y) + 0.05);
        if x > y { x / y } else { y / x }
    }

    #[test]
    fn words_stand_out_from_what_is_behind_them() {
        for theme in [Theme::Light, Theme::Dark] {
            let paper = Colour::Paper.of(theme);
            for colour in [Colour::Ink, Colour::Muted] {
                assert!(contrast(&colour.of(theme), &paper) > 4.5, "{colour:?} {theme:?}");
            }
            assert!(contrast(&Colour::Ink.of(theme), &Colour::Shade.of(theme)) > 4.5);
            for step in 0..N_STEPS {
                let found = contrast(&Colour::OnRamp(step).of(theme), &Colour::Ramp(step).of(theme));
                assert!(found > 3.0, "step {step} {theme:?}: {found}");
            }
            for ix in 0..N_SERIES {
                let found = contrast(&Colour::Series(ix).of(theme), &paper);
                assert!(found > 2.0, "series {ix} {theme:?}: {found}");
            }
        }
    }

    #[test]
    fn the_ramp_goes_one_way() {
        for (theme, sign) in [(Theme::Light, -1.0), (Theme::Dark, 1.0)] {
            let steps: Vec<f64> = (0..N_STEPS).map(|step| sign * luminance(&Colour::Ramp(step).of(theme))).collect();
            assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{theme:?} {steps:?}");
        }
    }
}
