//! Reports: a result of `select`, `compare` or `fit` as one HTML page with plots, or as the plots alone.
//!
//! The way through: JSON -> `result` (typed, whatever the JSON held) -> figures, each drawn for wide and for narrow pages
//! -> `page`. Plots are drawn here, as SVG, so that a page shows everything without its script; the script adds read-outs,
//! zoom and saving. Nothing of a result reaches a page without being escaped, and the page's content policy lets it run
//! its own script and nothing else, and fetch nothing at all.
//!
//! ```
//! use polyurn::report::Report;
//! let result = serde_json::json!({
//!     "command": "compare",
//!     "models": [
//!         { "model": "class[2] -> a b", "log_marginal": -55.8, "std_error": 0.03, "posterior_probability": 0.75 },
//!         { "model": "a; b", "log_marginal": -56.9, "std_error": null, "posterior_probability": 0.25 },
//!     ],
//! });
//! let report = Report::from_json(&result)?;
//! assert!(report.html().starts_with("<!doctype html>"));
//! assert_eq!(report.plots()[0].0, "evidence");
//! # Ok::<(), polyurn::Error>(())
//! ```

mod chart;
mod colour;
mod drawing;
mod evidence_plot;
mod fields;
mod figure;
mod fit_result;
mod graph_layout;
mod graph_plot;
mod heat_map;
mod page;
mod policy;
mod result;
mod row_chart;
mod scale;
mod sections;
mod sensitivity_plot;
mod settings;
mod table_plot;
mod text;
mod trace_plot;

use crate::error::Result;
use page::Section;
use result::{Content, Outcome};
use serde_json::Value;

/// A result, ready to be shown.
#[derive(Debug, Clone)]
pub struct Report {
    outcome: Outcome,
    sections: Vec<Section>,
    title: String,
}

impl Report {
    /// Reads the JSON that `select`, `compare` or `fit` printed; which of them is seen from what it holds. Fields that are
    /// missing are left out of the report.
    ///
    /// # Errors
    /// JSON that is no such result.
    pub fn from_json(result: &Value) -> Result<Self> {
        let outcome = Outcome::read(result)?;
        let title = default_title(&outcome);
        Ok(Report { sections: sections::sections(&outcome), outcome, title })
    }

    /// With another heading.
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// The page.
    pub fn html(&self) -> String {
        page::page(&self.title, &self.outcome, &self.sections)
    }

    /// Names and SVG texts of all plots, on white. Names are unique, and good for file names.
    pub fn plots(&self) -> Vec<(String, String)> {
        let figures = self.sections.iter().flat_map(|section| &section.figures);
        figures.map(|figure| (figure.name.clone(), figure.wide.as_file(&figure.title))).collect()
    }
}

fn default_title(outcome: &Outcome) -> String {
    let name = outcome.file.rsplit(['/', '\\']).next().unwrap_or_default();
    let of = |word: &str| if name.is_empty() || name == "-" { String::new() } else { format!(" {word} {name}") };
    match &outcome.content {
        Content::Ranking(ranking) if ranking.is_select => match ranking.varied()[..] {
            [] => format!("Model selection{}", of("for")),
            ref nodes => format!("How many values of {}{}?", nodes.join(" and "), of("in")),
        },
        Content::Ranking(_) => format!("Which model{}?", of("of")),
        Content::Fit(fit) => {
            let hidden = fit.nodes.iter().filter(|node| !node.is_seen);
            let sizes: Vec<String> = hidden
                .map(|node| match node.size {
                    Some(size) => format!("{} = {}", node.name, text::short(size)),
                    None => node.name.clone(),
                })
                .collect();
            match sizes.is_empty() {
                true => format!("A fitted model{}", of("of")),
                false => format!("A fit{} with {}", of("of"), text::shorten(&sizes.join(", "), 80)),
            }
        }
    }
}
