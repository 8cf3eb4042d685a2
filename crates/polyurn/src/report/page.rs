//! The page: one HTML file that needs nothing else.

use super::colour::{Theme, properties};
use super::figure::Figure;
use super::fit_result::Fit;
use super::policy::content_policy;
use super::result::{Caution, Content, Outcome, Ranking};
use super::text::{
    escape, fixed, log_value, log_value_with_error, percent, percent_with_error, shell, shorten, with_code,
};

/// Rows of the table of models.
const MOST_MODELS: usize = 200;
/// Models that are named as no worse than the best.
const MOST_LEVEL: usize = 8;

/// A part of the page.
#[derive(Debug, Clone)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// A sentence below the heading.
    pub note: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Nodes of the table that it shows, if it shows one.
    pub table_of: Vec<String>,
}

/// Writes the page.
pub fn page(title: &str, outcome: &Outcome, sections: &[Section]) -> String {
    let style = style();
    let script = include_str!("page.js");
    let mut out = String::with_capacity(1 << 16);
    out += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
    out += &format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", content_policy(&style, script));
    out += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    out += "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n";
    out += &format!("<title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n", escape(title));
    out += &header(title, outcome);
    out += "<main>\n";
    out += &cautions_html(outcome.cautions.iter());
    // What is to be known about the names of hidden values stands beside the first table that it is about.
    let mut untold: Vec<&Caution> = outcome.cautions.iter().collect();
    for section in sections {
        let is_about = |caution: &mut &Caution| caution.is_about_labels_of(&section.table_of);
        let about: Vec<&Caution> = untold.extract_if(.., is_about).collect();
        out += &section_html(section, &about);
    }
    if let Content::Ranking(ranking) = &outcome.content {
        out += &models_html(ranking);
    }
    out += &settings_html(outcome);
    out += "</main>\n<footer><p>Plots: rest a pointer on a mark, or press the arrow keys, to read values; click a plot and \
            turn the wheel, pinch, or press + and - to zoom; drag to move; double click or press 0 to see all of it.</p>";
    out += &format!("<p>Made by Polyurn {}. This page needs no network.</p></footer>\n", escape(crate::VERSION));
    out += &format!("<script>{script}</script>\n</body>\n</html>\n");
    out
}

/// The style sheet, with colours for light and dark screens; paper is light.
fn style() -> String {
    let (light, dark) = (properties(Theme::Light), properties(Theme::Dark));
    format!(
        ":root,.paper{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{}",
        include_str!("page.css")
    )
}

fn header(title: &str, outcome: &Outcome) -> String {
    let kind = match &outcome.content {
        Content::Ranking(ranking) if ranking.is_select => "Polyurn select: which size?",
        Content::Ranking(ranking) if ranking.is_score => "Polyurn score: the evidence of a model",
        Content::Ranking(_) => "Polyurn compare: which structure?",
        Content::Fit(_) => "Polyurn fit: the tables of a model",
    };
    let mut out = format!("<header>\n<p class=\"kind\">{kind}</p>\n<h1>{}</h1>\n", escape(title));
    match &outcome.content {
        Content::Ranking(ranking) => out += &ranking_header(ranking),
        Content::Fit(fit) => out += &fit_header(fit, outcome),
    }
    out + "</header>\n"
}

fn ranking_header(ranking: &Ranking) -> String {
    let mut out = String::new();
    if !ranking.verdict.is_empty() {
        out += &format!("<p class=\"verdict\">{}</p>\n", with_code(&escape(&ranking.verdict)));
    }
    let best = ranking.best();
    let mut facts = match (ranking.is_score, ranking.models.len()) {
        (true, 1) => format!("<code>{}</code>", escape(&best.model)),
        (true, n) => format!("Best of {n}: <code>{}</code>", escape(&ranking.label(best))),
        (false, n) => format!("Best of {n}: <code>{}</code>", escape(&best.model)),
    };
    if let Some(evidence) = best.evidence {
        let unknown = if best.is_error_unknown { " (error unknown)" } else { "" };
        facts += &format!(", ln evidence {}{unknown}", escape(&log_value_with_error(evidence, best.error)));
    } else if let Some(elbo) = best.elbo {
        facts += &format!(", lower bound (ELBO) {}", escape(&log_value(elbo, None)));
    }
    if let Some(p) = best.probability {
        facts += &format!(
            ", probability {}",
            escape(&percent_with_error(p, best.probability_error, best.is_probability_rough))
        );
    }
    out += &format!("<p class=\"facts\">{facts}.</p>\n");
    for remark in &ranking.remarks {
        out += &format!("<p class=\"facts\">{}</p>\n", with_code(&escape(remark)));
    }
    if ranking.is_settled == Some(false) {
        out += "<p class=\"facts\">What is known does not suffice to name the best.</p>\n";
    }
    let level: Vec<usize> = ranking.level.iter().copied().filter(|&ix| ix != ranking.best).collect();
    let n_more = level.len().saturating_sub(MOST_LEVEL);
    let name = |&ix: &usize| {
        let label = ranking.label(&ranking.models[ix]);
        // Several sizes of one model are held together, or they would run into the next one's.
        let label = if label.contains(", ") { format!("({label})") } else { label };
        format!("<code>{}</code>", escape(&label))
    };
    let mut level: Vec<String> = level.iter().take(MOST_LEVEL).map(name).collect();
    if n_more > 0 {
        level.push(format!("and {n_more} more"));
    }
    if !level.is_empty() {
        out += &format!("<p class=\"facts\">Not told apart from the best: {}.</p>\n", level.join(", "));
    }
    out
}

fn fit_header(fit: &Fit, outcome: &Outcome) -> String {
    let mut facts = Vec::new();
    if !outcome.model.is_empty() {
        facts.push(format!("Model <code>{}</code>", escape(&shorten(&outcome.model, 200))));
    }
    if !fit.method.is_empty() {
        facts.push(format!("method {}", escape(&fit.method)));
    }
    if let Some(value) = fit.objective.1 {
        facts.push(format!("{} {}", escape(&fit.objective.0), escape(&log_value_with_error(value, fit.error))));
    }
    format!("<p class=\"facts\">{}</p>\n", facts.join("; "))
}

fn cautions_html<'c>(cautions: impl Iterator<Item = &'c Caution>) -> String {
    let lines: String =
        cautions.map(|caution| format!("<p>{}</p>\n", with_code(&with_flags(&sentence(&caution.message))))).collect();
    if lines.is_empty() { lines } else { format!("<div class=\"cautions\" role=\"note\">\n{lines}</div>\n") }
}

/// Escaped text in which flags (`--seed`) are not broken at their hyphens.
fn with_flags(text: &str) -> String {
    let word = |word: &str| match word.starts_with("--") {
        true => format!("<span class=\"flag\">{}</span>", escape(word)),
        false => escape(word),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// A message as a sentence.
fn sentence(message: &str) -> String {
    let mut letters = message.chars();
    let first = letters.next().map_or(String::new(), |first| first.to_uppercase().collect());
    let stop = if message.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}

fn section_html(section: &Section, cautions: &[&Caution]) -> String {
    let mut out = format!("<section>\n<h2>{}</h2>\n", escape(&section.heading));
    if !section.note.is_empty() {
        out += &format!("<p class=\"note\">{}</p>\n", with_code(&escape(&section.note)));
    }
    out += &cautions_html(cautions.iter().copied());
    for figure in &section.figures {
        // A single figure has its section's heading.
        if section.figures.len() > 1 {
            out += &format!("<h3>{}</h3>\n", escape(&figure.title));
        }
        out += &figure_html(figure);
    }
    out + "</section>\n"
}

fn figure_html(figure: &Figure) -> String {
    let caption = if figure.caption.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>\n", escape(&figure.caption))
    };
    format!(
        "<figure data-name=\"{}\">\n{}\n{}\n{caption}</figure>\n",
        escape(&figure.name),
        figure.wide.for_page(&figure.title, "wide"),
        figure.narrow.for_page(&figure.title, "narrow"),
    )
}

/// All models as a table.
fn models_html(ranking: &Ranking) -> String {
    let has = |f: &dyn Fn(usize) -> bool| (0..ranking.models.len()).any(f);
    let has_elbo = has(&|ix| ranking.models[ix].elbo.is_some());
    let has_prior = has(&|ix| ranking.models[ix].prior_probability != ranking.models[0].prior_probability);
    // Bounds alone give no Bayes factors and no probabilities, only distances.
    let has_evidence = has(&|ix| ranking.models[ix].evidence.is_some());
    let highest = ranking.models.iter().filter_map(|model| model.elbo).fold(f64::NEG_INFINITY, f64::max);
    let mut head = vec!["model"];
    head.extend(has_evidence.then_some("ln evidence"));
    let has_brackets = has(&|ix| ranking.models[ix].bracket.is_some());
    if has_brackets {
        head.extend(["at least", "at most"]);
    }
    head.extend(has_elbo.then_some("lower bound (ELBO)"));
    if has_evidence {
        head.extend(["against best", "probability"]);
    } else {
        head.push("below the best");
    }
    head.extend(has_prior.then_some("prior"));
    head.push("method");
    let mut out =
        "<section>\n<h2>All models</h2>\n<div class=\"scroll\"><table class=\"models\">\n<thead><tr>".to_owned();
    head.iter().for_each(|name| out += &format!("<th scope=\"col\">{name}</th>"));
    out += "</tr></thead>\n<tbody>\n";
    for (ix, model) in ranking.models.iter().enumerate().take(MOST_MODELS) {
        let show = |value: Option<String>| value.unwrap_or_default();
        let mut cells = vec![ranking.label(model)];
        if has_evidence {
            cells.push(match (model.evidence, model.elbo) {
                (Some(evidence), _) if model.is_error_unknown => {
                    format!("{}, error unknown", log_value(evidence, Some(0.1)))
                }
                (Some(evidence), _) => log_value_with_error(evidence, model.error),
                (None, Some(elbo)) => format!("≥ {}", log_value(elbo, Some(0.1))),
                (None, None) => String::new(),
            });
        }
        if has_brackets {
            let end = |value: f64| log_value(value, model.error);
            let ends = model.bracket.map(|(lo, hi)| [end(lo), end(hi)]);
            // An exact number needs none.
            cells.extend(ends.unwrap_or_else(|| [String::from("–"), String::from("–")]));
        }
        if has_elbo {
            cells.push(show(model.elbo.map(|elbo| log_value(elbo, Some(0.1)))));
        }
        let error = model.log_bayes_factor_error.filter(|error| *error > 0.0);
        let dash = |value: Option<String>| value.unwrap_or_else(|| "–".into());
        if has_evidence {
            cells.push(dash(model.log_bayes_factor.map(|factor| match error {
                Some(_) => log_value_with_error(factor, error),
                None => log_value(factor, Some(0.1)),
            })));
            let is_unknown = model.is_probability_rough;
            let shown = |p: f64| percent_with_error(p, model.probability_error, is_unknown);
            cells.push(dash(model.probability.map(shown)));
        } else {
            cells.push(show(model.elbo.map(|elbo| fixed(highest - elbo, 2))));
        }
        if has_prior {
            cells.push(show(model.prior_probability.map(percent)));
        }
        cells.push(model.method.clone());
        let class = if ix == ranking.best { " class=\"best\"" } else { "" };
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        out += &format!("<tr{class}>{cells}</tr>\n");
    }
    out += "</tbody></table></div>\n";
    if ranking.models.len() > MOST_MODELS {
        out += &format!("<p class=\"note\">The best {MOST_MODELS} of {}.</p>\n", ranking.models.len());
    }
    out + "</section>\n"
}

fn settings_html(outcome: &Outcome) -> String {
    let settings = &outcome.settings;
    let mut out = "<section>\n<h2>Settings</h2>\n".to_owned();
    if !settings.command_line.is_empty() {
        let mut words = settings.command_line.clone();
        // A seed that was drawn is part of what gives the same numbers again.
        let has_seed = words.iter().any(|word| word == "--seed" || word.starts_with("--seed="));
        let seed = settings.list.iter().find(|(name, _)| name == "seed");
        if let (false, Some((_, seed))) = (has_seed, seed) {
            words.extend(["--seed".to_owned(), seed.clone()]);
        }
        // With a time limit the numbers follow the speed of the machine.
        let is_timed = words.iter().any(|word| word == "--time-limit" || word.starts_with("--time-limit="));
        let what = if is_timed { "To repeat it, as far as a time limit allows:" } else { "To repeat it:" };
        out += &format!("<p>{what}</p>\n<pre class=\"copy\">{}</pre>\n", with_flags(&shell(&words)));
    }
    out += "<div class=\"scroll\"><table class=\"settings\">\n<tbody>\n";
    for (name, value) in &settings.list {
        out += &format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value));
    }
    if !settings.version.is_empty() {
        let version = escape(&settings.version);
        out += &format!("<tr><th scope=\"row\">version of Polyurn</th><td>{version}</td></tr>\n");
    }
    out + "</tbody></table></div>\n</section>\n"
}
