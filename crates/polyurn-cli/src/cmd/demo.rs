//! `polyurn demo`: independence, latent classes and other structures compared on small public tables.
//!
//! The tables are described, with their sources, in docs/demo.md.

use crate::args::DemoArgs;
use crate::output::{Failure, Output};
use crate::progress::watched;
use crate::text::{columns, show_count, show_short};
use polyurn::control::Control;
use polyurn::counts::Dataset;
use polyurn::engine::Problem;
use polyurn::engine::exact::Exact;
use polyurn::engine::smc::{Crew, Wish};
use polyurn::evidence::evidence;
use polyurn::graph::{BindOptions, ModelSource, bind};
use polyurn::io::{Format, read_from};
use polyurn::math::log_sum_exp;
use polyurn::parallel;
use polyurn::prior::{Prior, PriorSettings};
use polyurn::{Error, Result, Seed};
use serde_json::{Value, json};
use std::time::Instant;

/// A built-in table and the models tried on it: (model, what it says).
struct Table {
    title: &'static str,
    data: &'static str,
    models: &'static [(&'static str, &'static str)],
}

const TABLES: &[Table] = &[
    Table {
        title: "Space shuttle: damage to O-rings and launch temperature, 23 flights",
        data: include_str!("../demo_data/challenger.csv"),
        models: &[
            ("independent", "damage has nothing to do with temperature"),
            ("lca(2)", "there are two kinds of flight, within which damage and temperature are unrelated"),
            ("lca(3)", "there are three kinds of flight, within which damage and temperature are unrelated"),
            ("lca(4)", "there are four kinds of flight, within which damage and temperature are unrelated"),
            ("complete", "damage depends on temperature in any way"),
        ],
    },
    Table {
        title: "Donner party: who survived the winter of 1846, 45 adults",
        data: include_str!("../demo_data/donner.csv"),
        models: &[
            ("independent", "age, sex and fate are unrelated"),
            ("lca(2)", "there are two kinds of people, within which age, sex and fate are unrelated"),
            ("sex -> fate; age", "fate depends on sex but not on age"),
            ("age -> fate; sex", "fate depends on age but not on sex"),
            ("sex age -> fate", "fate depends on sex and age together"),
            ("complete", "age, sex and fate are related in any way"),
        ],
    },
    Table {
        title: "Dilemmas: would you stand by a friend against the rule, four cases, 216 students",
        data: include_str!("../demo_data/dilemmas.csv"),
        models: &[
            ("independent", "the four answers are unrelated"),
            ("lca(2)", "there are two kinds of people, within which answers are unrelated"),
            ("lca(3)", "there are three kinds of people, within which answers are unrelated"),
            ("lca(4)", "there are four kinds of people, within which answers are unrelated"),
            ("complete", "the four answers are related in any way"),
        ],
    },
    Table {
        title: "Titanic: class, sex, age and fate, 2201 people",
        data: include_str!("../demo_data/titanic.csv"),
        models: &[
            ("independent", "class, sex, age and fate are unrelated"),
            ("class -> sex age fate", "within a class, sex, age and fate are unrelated"),
            ("class -> sex -> fate; class -> age", "fate depends on sex alone, sex and age on class"),
            ("class -> sex age; class sex -> fate", "fate depends on class and sex, but not on age"),
            (
                "class sex age -> fate; class -> sex age",
                "fate depends on class, sex and age, within a class sex and age are unrelated",
            ),
            ("complete", "class, sex, age and fate are related in any way"),
        ],
    },
];

/// One scored model.
struct Scored {
    log_marginal: f64,
    /// None where the number is exact.
    std_error: Option<f64>,
    seconds: f64,
}

impl Scored {
    fn text(&self) -> String {
        match self.std_error {
            None => format!("{:.4}", self.log_marginal),
            Some(error) => format!("{:.2} +- {error:.2}", self.log_marginal),
        }
    }
}

/// Seconds that an exact answer may take; beyond, particles give an estimate.
const PATIENCE_FOR_EXACT: f64 = 2.0;

/// Particles of each run: enough for two digits, and no waiting.
const PARTICLES: usize = 2048;

/// Compares the models of every table.
pub fn run(args: &DemoArgs) -> std::result::Result<(), Failure> {
    let mut output = Output::open(&args.output, &[])?;
    if args.output.seed.is_none() {
        output.take_seed(Seed(1));
    }
    if !(args.a > 0.0 && args.a.is_finite()) {
        return Err(Failure::Usage(format!("--a {}: it must be a positive number", args.a)));
    }
    let mut text = format!(
        "Which model do the data support? The evidence is the probability of the data under each model, its\n\
         parameters integrated out. Numbers with +- are estimates, all others are exact. Prior sample size a = {}.\n",
        show_short(args.a)
    );
    let mut tables: Vec<Value> = Vec::new();
    let mut control = watched(&output);
    for (ix, table) in TABLES.iter().enumerate() {
        control.tick("demo", ix as f64 / TABLES.len() as f64)?;
        let comparison = Comparison::new(table, args.a, output.seed(), output.n_threads)?;
        text += &comparison.text();
        tables.push(comparison.json());
    }
    drop(control);
    text += "\nTry your own: polyurn score --model \"class[2] -> a b c\" --data yours.csv\n";
    output.result(
        || json!({ "a": args.a, "tables": tables, "seed": output.seed(), "version": polyurn::VERSION }),
        || text,
    )
}

struct Comparison<'t> {
    table: &'t Table,
    n_tokens: u64,
    scored: Vec<Scored>,
    probabilities: Vec<f64>,
    /// Models by evidence, best first.
    ranking: Vec<usize>,
}

impl<'t> Comparison<'t> {
    fn new(table: &'t Table, a: f64, seed: Seed, n_threads: usize) -> Result<Self> {
        let data = read_from(table.data.as_bytes(), "built-in table", Format::Csv)?;
        let scored: Vec<Scored> = parallel::map(table.models, n_threads, |(model, _)| score(model, &data, a, seed))
            .into_iter()
            .collect::<Result<_>>()?;
        let logs: Vec<f64> = scored.iter().map(|scored| scored.log_marginal).collect();
        let total = log_sum_exp(&logs);
        let mut ranking: Vec<usize> = (0..logs.len()).collect();
        ranking.sort_by(|&x, &y| logs[y].total_cmp(&logs[x]));
        Ok(Comparison {
            table,
            n_tokens: data.n_tokens().unwrap_or(0),
            probabilities: logs.iter().map(|ln| (ln - total).exp()).collect(),
            scored,
            ranking,
        })
    }

    fn text(&self) -> String {
        let best = &self.scored[self.ranking[0]];
        let header = ["model", "ln evidence", "against best", "probability"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        for &ix in &self.ranking {
            let scored = &self.scored[ix];
            // A difference is as exact as the less exact of its two numbers.
            let digits = if scored.std_error.is_some() || best.std_error.is_some() { 2 } else { 4 };
            rows.push(vec![
                format!("  {}", self.table.models[ix].0),
                scored.text(),
                format!("{:.digits$}", scored.log_marginal - best.log_marginal),
                show_probability(self.probabilities[ix]),
            ]);
        }
        format!("\n{}\n\n{}\n{}\n", self.table.title, columns(&rows), self.sentence())
    }

    /// What it means, in words.
    fn sentence(&self) -> String {
        let (best, second) = (self.ranking[0], self.ranking[1]);
        let lead = self.scored[best].log_marginal - self.scored[second].log_marginal;
        let claim = self.table.models[best].1;
        let rival = self.table.models[second].1;
        let odds = lead.exp();
        let strength = match odds {
            odds if odds < 3.0 => {
                let rest = if odds < 1.25 {
                    "is about as probable".to_owned()
                } else {
                    format!("is only {} times less probable", show_odds(odds))
                };
                return wrap(&format!("The data do not settle it: \"{claim}\" is best, but \"{rival}\" {rest}."));
            }
            odds if odds < 20.0 => "The data favour",
            odds if odds < 150.0 => "The data speak clearly for",
            _ => "The data leave little doubt:",
        };
        wrap(&format!("{strength} \"{claim}\"; it is {} times as probable as the next, \"{rival}\".", show_odds(odds)))
    }

    fn json(&self) -> Value {
        let best = self.scored[self.ranking[0]].log_marginal;
        let models: Vec<Value> = self
            .ranking
            .iter()
            .map(|&ix| {
                json!({
                    "model": self.table.models[ix].0,
                    "says": self.table.models[ix].1,
                    "log_marginal": self.scored[ix].log_marginal,
                    "std_error": self.scored[ix].std_error,
                    "bound": if self.scored[ix].std_error.is_some() { "estimate" } else { "exact" },
                    "method": if self.scored[ix].std_error.is_some() { "smc" } else { "exact" },
                    "posterior_probability": self.probabilities[ix],
                    "log_bayes_factor": self.scored[ix].log_marginal - best,
                    "seconds": self.scored[ix].seconds,
                })
            })
            .collect();
        json!({
            "title": self.table.title,
            "tokens": self.n_tokens,
            "models": models,
            "best": self.table.models[self.ranking[0]].0,
            "sentence": self.sentence().replace('\n', " "),
        })
    }
}

fn score(model: &str, data: &Dataset, a: f64, seed: Seed) -> Result<Scored> {
    let start = Instant::now();
    let binding = bind(&ModelSource::parse(model)?, data, BindOptions::default())?;
    let prior = Prior::build(&binding.model, &PriorSettings { a: Some(a), ..Default::default() })?;
    let problem = Problem::new(&binding.model, &prior, &binding.counts)?;
    let mut control = Control::default().with_cancel(crate::signals::cancel());
    let exact = match Exact::default().prepare(&problem) {
        Ok(exact) if exact.cost().seconds <= PATIENCE_FOR_EXACT => Some(exact),
        Ok(_) | Err(Error::TooCostly(_)) => None,
        Err(error) => return Err(error),
    };
    let (sequence, std_error) = match exact {
        Some(exact) => (exact.ln_p_sequence(&mut control)?.ln_p_sequence, None),
        None => {
            let wish = Wish { particles: Some(PARTICLES), ..Default::default() };
            let smc = wish.settle(&problem, Crew::default(), seed, &mut control)?.smc;
            let estimate = smc.ln_p_sequence(&problem, seed, &mut control)?;
            (estimate.ln_p_sequence.into(), estimate.std_error)
        }
    };
    let log_marginal = evidence(&problem, sequence)?.log_marginal;
    Ok(Scored { log_marginal, std_error, seconds: start.elapsed().as_secs_f64() })
}

fn show_probability(p: f64) -> String {
    match p {
        p if p >= 0.9995 => format!("{:.1} %", (p * 100.0).min(99.9)).replace("99.9", ">99.9"),
        p if p >= 0.0005 => format!("{:.1} %", p * 100.0),
        _ => "<0.1 %".into(),
    }
}

fn show_odds(odds: f64) -> String {
    match odds {
        odds if odds < 10.0 => format!("{odds:.1}"),
        odds if odds < 1e6 => show_count(odds.round() as u64),
        odds if odds.is_finite() => format!("{odds:.0e}").replace('e', " x 10^").replace("1 x ", ""),
        _ => "astronomically many".into(),
    }
}

/// Breaks a sentence into lines of at most 100 characters.
fn wrap(sentence: &str) -> String {
    let mut lines = vec![String::new()];
    for word in sentence.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.len() + word.len() >= 100 {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}
