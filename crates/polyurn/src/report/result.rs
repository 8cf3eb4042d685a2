//! What a report shows, read from the JSON of `select`, `compare` or `fit`.

use super::fields::{finite_at, kind, labels_at, list_at, number, number_at, object_at, text_at};
use super::fit_result::Fit;
use super::settings::Settings;
use crate::error::{Error, Result};
use serde_json::Value;

/// A node of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Number of values.
    pub size: Option<f64>,
    /// Whether any record shows it.
    pub is_seen: bool,
    /// Names of its parents.
    pub parents: Vec<String>,
    /// The node whose table it shares.
    pub tied_to: Option<String>,
}

/// Something that the reader should know.
#[derive(Debug, Clone)]
pub struct Caution {
    /// Its kind, as programs know it.
    pub kind: String,
    /// The sentence.
    pub message: String,
    /// Nodes that it is about.
    pub nodes: Vec<String>,
}

impl Caution {
    /// Whether it says where the names of hidden values in a table of these nodes come from.
    pub fn is_about_labels_of(&self, nodes: &[String]) -> bool {
        let is_about_labels = matches!(self.kind.as_str(), "label_averaged" | "labels_of_one_run");
        let is_one_of_them = self.nodes.is_empty() || self.nodes.iter().any(|node| nodes.contains(node));
        is_about_labels && !nodes.is_empty() && is_one_of_them
    }
}

/// Effective particles over time.
#[derive(Debug, Clone, Default)]
pub struct EssTrace {
    /// Step and effective particles.
    pub points: Vec<(f64, f64)>,
    /// Steps at which particles were resampled.
    pub resampled_at: Vec<f64>,
    /// Number of particles.
    pub particles: Option<f64>,
    /// The number below which particles are resampled.
    pub threshold: Option<f64>,
    /// Whether steps lead along a path of annealing; else tokens come in.
    pub is_annealed: bool,
    /// Whether the run began with larger pseudo-counts that were brought down.
    pub is_cooled: bool,
}

/// A model among others.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its text.
    pub model: String,
    /// The hidden nodes and their sizes.
    pub sizes: Vec<(String, f64)>,
    /// Size of the prior.
    pub a: Option<f64>,
    /// Evidence; none if there is only a lower bound.
    pub evidence: Option<f64>,
    /// Standard error of the evidence.
    pub error: Option<f64>,
    /// Whether it is an estimate of whose error nothing is known.
    pub is_error_unknown: bool,
    /// Ends of a bracket around the evidence.
    pub bracket: Option<(f64, f64)>,
    /// How probable it is at most that an end does not hold.
    pub bracket_error: Option<f64>,
    /// What its ends rest on, in words.
    pub bracket_rests_on: String,
    /// Lower bound of variational Bayes.
    pub elbo: Option<f64>,
    /// Posterior probability.
    pub probability: Option<f64>,
    /// Its error.
    pub probability_error: Option<f64>,
    /// Whether it has one of which nothing is known.
    pub is_probability_rough: bool,
    /// Prior probability.
    pub prior_probability: Option<f64>,
    /// Against the best.
    pub log_bayes_factor: Option<f64>,
    /// Its error.
    pub log_bayes_factor_error: Option<f64>,
    /// How it was scored.
    pub method: String,
    /// Its graph.
    pub nodes: Vec<Node>,
    /// Particles over time.
    pub ess: EssTrace,
}

/// A model at another size of the prior.
#[derive(Debug, Clone)]
pub struct ModelAtPrior {
    /// Its text.
    pub model: String,
    /// Its evidence.
    pub evidence: Option<f64>,
    /// Standard error of the evidence.
    pub error: Option<f64>,
    /// Posterior probability.
    pub probability: Option<f64>,
    /// Its error.
    pub probability_error: Option<f64>,
    /// Whether it has one of which nothing is known.
    pub is_probability_rough: bool,
}

/// The answer at another size of the prior.
#[derive(Debug, Clone)]
pub struct AtPrior {
    /// The size, or what each model's own is multiplied by.
    pub a: f64,
    /// Whether it is that.
    pub is_relative: bool,
    /// The models.
    pub models: Vec<ModelAtPrior>,
}

/// Models in order, best first.
#[derive(Debug, Clone)]
pub struct Ranking {
    /// Whether sizes were varied (`select`) rather than structures (`compare`).
    pub is_select: bool,
    /// Whether nothing was asked but the evidence of one model (`score`), at one size of the prior or at several.
    pub is_score: bool,
    /// The models.
    pub models: Vec<Candidate>,
    /// The best of them.
    pub best: usize,
    /// What it comes to, in words.
    pub verdict: String,
    /// Which models were left with a lower bound and why, and whether the run was interrupted, in words.
    pub remarks: Vec<String>,
    /// Whether errors are small enough to name the best.
    pub is_settled: Option<bool>,
    /// Models that cannot be told from the best.
    pub level: Vec<usize>,
    /// The answer at other sizes of the prior.
    pub sensitivity: Vec<AtPrior>,
    /// How the answer moves with the prior, and what was not tried, in words.
    pub movement: String,
}

/// A ranking or a fit.
#[derive(Debug, Clone)]
pub enum Content {
    /// Of `select` or `compare`.
    Ranking(Ranking),
    /// Of `fit`.
    Fit(Fit),
}

/// A whole result.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What was found.
    pub content: Content,
    /// Text of the model; empty for a ranking.
    pub model: String,
    /// The data file, if known.
    pub file: String,
    /// How it was found.
    pub settings: Settings,
    /// Warnings, those of the best model included.
    pub cautions: Vec<Caution>,
}

/// Why JSON is no result.
pub fn wrong(message: impl Into<String>) -> Error {
    Error::data("result", message)
}

impl Outcome {
    /// Reads a result.
    ///
    /// # Errors
    /// Anything that is no result of `select`, `compare` or `fit`.
    pub fn read(value: &Value) -> Result<Self> {
        if !value.is_object() {
            return Err(wrong(format!("expected the JSON object of a select, compare or fit, found {}", kind(value))));
        }
        let content = match (&value["models"], &value["tables"]) {
            (Value::Array(models), _) => Content::Ranking(Ranking::read(value, models)?),
            (_, Value::Array(tables)) => Content::Fit(Fit::read(value, tables)?),
            _ => {
                return Err(wrong(
                    "neither a list of `models` nor one of `tables`; give what select, compare or fit printed with --json",
                ));
            }
        };
        let mut cautions = cautions(value);
        let mut best = &Value::Null;
        if let Content::Ranking(ranking) = &content {
            best = &value["models"][ranking.best];
            let known: Vec<String> = cautions.iter().map(|caution| caution.message.clone()).collect();
            // Of the best, those not told from it, and the next in line, whose distance is the lead.
            let is_near = |ix: usize| ix == ranking.best || ix == 1 || ranking.level.contains(&ix);
            for ix in (0..ranking.models.len()).filter(|&ix| is_near(ix)).take(MOST_CAUTIOUS) {
                let own = self::cautions(&value["models"][ix]).into_iter();
                cautions.extend(own.filter(|caution| !known.contains(&caution.message)).map(|caution| {
                    let message = format!("{} ({})", caution.message, ranking.label(&ranking.models[ix]));
                    Caution { message, ..caution }
                }));
            }
        }
        let file = match &value["data"] {
            Value::String(file) => file.clone(),
            data => text_at(data, "file"),
        };
        let settings = Settings::read(value, best);
        Ok(Outcome { content, model: text_at(value, "model"), file, settings, cautions })
    }
}

const INTERRUPTED: &str = "The run was interrupted: this is what was finished until then.";

/// Models whose own cautions are shown.
const MOST_CAUTIOUS: usize = 4;

fn cautions(value: &Value) -> Vec<Caution> {
    let one = |caution: &Value| match caution {
        Value::String(message) => Caution { kind: String::new(), message: message.clone(), nodes: Vec::new() },
        caution => Caution {
            kind: text_at(caution, "kind"),
            message: text_at(caution, "message"),
            nodes: labels_at(caution, "nodes"),
        },
    };
    list_at(value, "warnings").iter().map(one).filter(|caution| !caution.message.is_empty()).collect()
}

impl Ranking {
    fn read(value: &Value, models: &[Value]) -> Result<Self> {
        if models.is_empty() {
            return Err(wrong("`models` is empty; there is nothing to show"));
        }
        let models =
            models.iter().enumerate().map(|(ix, model)| Candidate::read(ix, model)).collect::<Result<Vec<_>>>()?;
        let index = |value: &Value| value.as_u64().map(|ix| ix as usize).filter(|&ix| ix < models.len());
        Ok(Ranking {
            is_select: value["command"] == "select",
            is_score: value["command"] == "score",
            best: index(&value["best"]["index"]).unwrap_or(0),
            verdict: text_at(value, "verdict"),
            remarks: list_at(value, "left_with_bound")
                .iter()
                .filter_map(|remark| remark.as_str().map(str::to_owned))
                .chain((value["interrupted"] == true).then(|| INTERRUPTED.to_owned()))
                .collect(),
            is_settled: value["settled"].as_bool(),
            level: list_at(value, "level").iter().filter_map(index).collect(),
            sensitivity: list_at(value, "sensitivity").iter().filter_map(AtPrior::read).collect(),
            movement: [text_at(value, "movement"), text_at(value, "sensitivity_not_tried")].join(" ").trim().to_owned(),
            models,
        })
    }

    /// The best model.
    pub fn best(&self) -> &Candidate {
        &self.models[self.best]
    }

    /// Hidden nodes that have more than one size among the models.
    pub fn varied(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.models.iter().flat_map(|model| &model.sizes) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names.retain(|name| {
            let mut sizes = self.models.iter().filter_map(|model| model.size_of(name));
            let first = sizes.next();
            sizes.any(|size| Some(size) != first)
        });
        names
    }

    /// The different sizes of the prior, from small to large.
    pub fn prior_sizes(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self.models.iter().filter_map(|model| model.a).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// A name for a model: its sizes if those tell it from the others, else its text.
    pub fn label(&self, candidate: &Candidate) -> String {
        let varied = self.varied();
        let own = candidate.sizes.iter().filter(|(name, _)| varied.contains(&name.as_str()));
        let sizes: Vec<String> = own.map(|(name, size)| format!("{name} = {}", super::text::short(*size))).collect();
        let mut label = if self.is_select && !sizes.is_empty() { sizes.join(", ") } else { candidate.model.clone() };
        if let (true, Some(a)) = (self.prior_sizes().len() > 1, candidate.a) {
            label += &format!(", a = {}", super::text::short(a));
        }
        label
    }
}

impl Candidate {
    fn read(ix: usize, value: &Value) -> Result<Self> {
        if !value.is_object() {
            return Err(wrong(format!("models[{ix}]: expected an object, found {}", kind(value))));
        }
        let field = &value["log_marginal"];
        let log_marginal = number(field);
        if log_marginal.is_none() && !field.is_null() {
            return Err(wrong(format!(
                "models[{ix}].log_marginal: expected a number or \"-inf\", found {}",
                kind(field)
            )));
        }
        if log_marginal.is_none() && number_at(value, "elbo").is_none() {
            return Err(wrong(format!(
                "models[{ix}]: neither log_marginal nor elbo; give what select or compare printed with --json"
            )));
        }
        // An estimate that is below its own bound says less than the bound.
        let is_bound = text_at(value, "bound") == "lower";
        let has_evidence = !is_bound && value["is_lower_bound"] != true;
        let bracket = finite_at(value, "lower").zip(finite_at(value, "upper")).filter(|(lo, hi)| lo <= hi);
        let share = |field: &str| finite_at(value, field).filter(|p| (0.0..=1.0).contains(p));
        let positive = |field: &str| finite_at(value, field).filter(|error| *error >= 0.0);
        let nodes = nodes(value);
        // JSON has names in the order of the alphabet; everywhere else they stand as the model names them.
        let place = |name: &str| nodes.iter().position(|node| node.name == name).unwrap_or(usize::MAX);
        let mut sizes: Vec<(String, f64)> = object_at(value, "sizes").map_or_else(Vec::new, |sizes| {
            sizes.iter().filter_map(|(name, size)| Some((name.clone(), number(size)?))).collect()
        });
        sizes.sort_by_key(|(name, _)| place(name));
        Ok(Candidate {
            model: text_at(value, "model"),
            sizes,
            a: finite_at(value, "a").filter(|a| *a > 0.0),
            evidence: log_marginal.filter(|_| has_evidence),
            error: positive("std_error"),
            is_error_unknown: value["error_unknown"] == true,
            // Around evidence, and none that is exact.
            bracket: bracket.filter(|(lo, hi)| has_evidence && lo < hi),
            bracket_error: share("bracket_error").filter(|error| *error > 0.0),
            bracket_rests_on: text_at(value, "bracket_rests_on"),
            elbo: finite_at(value, "elbo").or(log_marginal.filter(|_| is_bound)),
            // A bound gives neither.
            probability: share("posterior_probability").filter(|_| has_evidence),
            probability_error: positive("posterior_probability_error"),
            is_probability_rough: value.get("posterior_probability_error").is_some_and(Value::is_null),
            prior_probability: share("prior_probability"),
            log_bayes_factor: number_at(value, "log_bayes_factor").filter(|_| has_evidence),
            log_bayes_factor_error: positive("log_bayes_factor_error"),
            method: text_at(value, "method") + if value["quick"] == true { ", quick" } else { "" },
            nodes,
            ess: EssTrace::read(value),
        })
    }

    /// The size of a hidden node.
    pub fn size_of(&self, name: &str) -> Option<f64> {
        self.sizes.iter().find(|(other, _)| other == name).map(|(_, size)| *size)
    }

    /// The ends of its error bar: one standard error to each side.
    pub fn bar(&self) -> Option<(f64, f64)> {
        let evidence = self.evidence.filter(|evidence| evidence.is_finite())?;
        self.error.map(|error| (evidence - error, evidence + error))
    }
}

impl AtPrior {
    fn read(value: &Value) -> Option<Self> {
        let one = |model: &Value| ModelAtPrior {
            model: text_at(model, "model"),
            evidence: number_at(model, "log_marginal").filter(|_| model["is_lower_bound"] != true),
            error: finite_at(model, "std_error"),
            probability: finite_at(model, "posterior_probability"),
            probability_error: finite_at(model, "posterior_probability_error"),
            is_probability_rough: model.get("posterior_probability_error").is_some_and(Value::is_null),
        };
        let positive = |field: &str| finite_at(value, field).filter(|a| *a > 0.0);
        let factor = positive("times_a");
        let a = positive("a").or(factor)?;
        let models = list_at(value, "models").iter().map(one).collect();
        Some(AtPrior { a, is_relative: factor.is_some(), models })
    }
}

impl EssTrace {
    /// Reads the trace of a result or of one of its models.
    pub fn read(value: &Value) -> Self {
        let finite = |value: &Value| number(value).filter(|x| x.is_finite());
        let point = |pair: &Value| Some((finite(&pair[0])?, finite(&pair[1])?));
        let particles = finite_at(value, "particles").filter(|n| *n > 0.0);
        EssTrace {
            points: list_at(value, "ess_trace").iter().filter_map(point).collect(),
            resampled_at: list_at(value, "resampled_at").iter().filter_map(finite).collect(),
            particles,
            threshold: finite_at(value, "ess").zip(particles).map(|(share, n)| share * n),
            is_annealed: value["method"] == "anneal",
            is_cooled: finite_at(value, "heat") != Some(1.0) && finite_at(value, "cooling") != Some(0.0),
        }
    }
}

/// The nodes of a result or of one of its models.
pub fn nodes(value: &Value) -> Vec<Node> {
    let one = |node: &Value| Node {
        name: text_at(node, "name"),
        size: finite_at(node, "size"),
        is_seen: node["seen"].as_bool().unwrap_or(false),
        parents: labels_at(node, "parents"),
        tied_to: node["tied_to"].as_str().map(str::to_owned),
    };
    list_at(value, "nodes").iter().map(one).collect()
}
