//! Small helpers shared by the themes: from text to a number.

use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::{Problem, exact::Exact};
use polyurn::evidence::{Evidence, evidence};
use polyurn::graph::{BindOptions, Binding, ModelSource, bind};
use polyurn::io::{Format, read_from};
use polyurn::prior::{Prior, PriorSettings, PriorSpec};

pub fn csv(text: &str) -> Dataset {
    read_from(text.as_bytes(), "test.csv", Format::Csv, &Default::default()).unwrap()
}

pub fn bound(model: &str, data: &Dataset) -> Binding {
    bind(&ModelSource::parse(model).unwrap(), data, BindOptions::default()).unwrap()
}

pub fn settings(a: f64) -> PriorSettings {
    PriorSettings { a: Some(a), ..Default::default() }
}

/// The exact evidence of a bound model.
pub fn score_bound(binding: &Binding, settings: &PriorSettings) -> Evidence {
    let prior = Prior::build(&binding.model, settings).unwrap();
    let problem = Problem::new(&binding.model, &prior, &binding.counts).unwrap();
    let sequence = Exact::default().ln_p_sequence(&problem, &mut Control::default()).unwrap();
    evidence(&problem, sequence.ln_p_sequence).unwrap()
}

/// The exact evidence of a model text on a CSV text.
pub fn score(model: &str, data: &str, settings: &PriorSettings) -> Evidence {
    score_bound(&bound(model, &csv(data)), settings)
}

pub fn base(alpha: Vec<f64>) -> PriorSettings {
    PriorSettings { spec: PriorSpec::Base { alpha: Some(alpha), marginals: None, size: None }, ..Default::default() }
}

#[track_caller]
pub fn assert_relative(what: &str, got: f64, want: f64, tolerance: f64) {
    if got == want {
        return;
    }
    let error = (got - want).abs() / want.abs().max(1e-300);
    assert!(error <= tolerance, "{what}: got {got:.17}, want {want:.17}, relative error {error:.2e} > {tolerance:.0e}");
}
