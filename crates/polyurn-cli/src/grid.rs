//! The points of a curve: values of `a` and of pseudo-counts, every one with every other.

use crate::args::PriorArgs;
use crate::output::Failure;
use crate::text::show_short;
use polyurn::prior::PriorSettings;
use serde_json::{Map, Value, json};

/// Points of a curve at most.
const MOST_POINTS: usize = 100_000;

/// What of the prior varies, and its value at one point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// The equivalent sample size, if it varies.
    pub a: Option<f64>,
    /// Pseudo-counts that vary.
    pub pseudo_counts: Vec<(String, f64)>,
}

impl Point {
    /// All points that the flags ask for; none when nothing has more than one value.
    pub fn all(prior: &PriorArgs) -> Result<Option<Vec<Point>>, Failure> {
        let mut points = vec![Point::default()];
        let mut n_points = 1usize;
        let a = prior.a.iter().map(|values| (None, &values.0));
        let pseudo_counts = prior.pseudo_count.iter().map(|(node, values)| (Some(node), &values.0));
        for (node, values) in a.chain(pseudo_counts).filter(|(_, values)| values.len() > 1) {
            n_points = n_points.saturating_mul(values.len());
            if n_points > MOST_POINTS {
                return Err(Failure::Usage(format!(
                    "--a, --pseudo-count: their lists make more than {MOST_POINTS} points; shorten them"
                )));
            }
            let with = |point: &Point, value: f64| {
                let mut point = point.clone();
                match node {
                    None => point.a = Some(value),
                    Some(node) => point.pseudo_counts.push((node.clone(), value)),
                }
                point
            };
            points = points.iter().flat_map(|point| values.iter().map(move |&value| with(point, value))).collect();
        }
        Ok((n_points > 1).then_some(points))
    }

    /// The prior at this point, the rest being as it was.
    pub fn settings(&self, settings: &PriorSettings) -> PriorSettings {
        let mut settings = settings.clone();
        settings.a = self.a.or(settings.a);
        settings.pseudo_counts.extend(self.pseudo_counts.iter().cloned());
        settings
    }

    /// Whether `a` alone varies.
    pub fn is_a_alone(&self) -> bool {
        self.pseudo_counts.is_empty()
    }

    /// What varies.
    pub fn names(&self) -> Vec<String> {
        self.a.iter().map(|_| "a".to_owned()).chain(self.pseudo_counts.iter().map(|(node, _)| node.clone())).collect()
    }

    /// Its values, in the order of the names.
    pub fn values(&self) -> Vec<String> {
        self.a.iter().chain(self.pseudo_counts.iter().map(|(_, value)| value)).map(|&value| show_short(value)).collect()
    }

    /// `a = 0.1`, or `a = 0.1, word = 0.01`.
    pub fn label(&self) -> String {
        let pairs = self.names().into_iter().zip(self.values());
        pairs.map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
    }

    /// Its values alone where `a` alone varies, else its label.
    pub fn short_label(&self) -> String {
        if self.is_a_alone() { self.values().join(", ") } else { format!("({})", self.label()) }
    }

    /// Adds its values to an object.
    pub fn add_to(&self, object: &mut Value) {
        if let Some(a) = self.a {
            object["a"] = json!(a);
        }
        if !self.pseudo_counts.is_empty() {
            let pairs = self.pseudo_counts.iter().map(|(node, value)| (node.clone(), json!(value)));
            object["pseudo_counts"] = Value::Object(pairs.collect::<Map<_, _>>());
        }
    }

    /// By itself: a number where `a` alone varies.
    pub fn json(&self) -> Value {
        if let Some(a) = self.a.filter(|_| self.is_a_alone()) {
            return json!(a);
        }
        let mut object = json!({});
        self.add_to(&mut object);
        object
    }
}
