//! Fits for tests of what is done with fits.

use crate::support::{bound, csv, with_problem};
use polyurn::Seed;
use polyurn::control::Control;
use polyurn::counts::MISSING;
use polyurn::engine::Problem;
use polyurn::engine::smc::{ParticleAllocation, Smc};
use polyurn::engine::sweeps::{Climb, Em, Mode, Vb};
use polyurn::fit_file::{AllocatedTokens, FitData, FitFile, FitPrior, Intensity, StoredDraw, value_counts};
use polyurn::graph::TableIndex;
use polyurn::prior::PriorSettings;
use serde_json::json;

/// Models and data of many kinds: ties, missing values, several hidden nodes, labels of all sorts.
pub const CASES: [(&str, &str); 7] = [
    ("k[2] -> i j s", "i,j,s,count\n0,0,a,2\n0,1,b,1\n1,1,a,3\n2,,b,2\n1,2,é,1\n,0,a,1\n"),
    ("doc -> topic[3] -> word", "doc,word,count\nd1,cat,3\nd1,dog,1\nd2,\"line\nbreak\",2\nd2,cat,1\nd3,Ω,4\n"),
    ("r[2] -> i j; i ~ j", "i,j,count\na,b,2\nb,b,1\na,c,3\n"),
    ("i -> k1[2] -> s <- k2[3] <- j", "i,j,s,count\nx,u,yes,3\nx,v,no,1\ny,u,no,2\ny,v,yes,2\n"),
    ("a -> b; a -> c; b -> c", "a,b,c\n0,0,1\n0,1,1\n1,1,0\n1,,0\n"),
    ("h1[2] -> h2[2]; h1 -> x; h2 -> y; x ~ y", "x,y\np,q\nq,q\np,\np,p\n"),
    ("k[1] -> i", "i,count\nonly,7\n"),
];

/// A fit by variational Bayes.
pub fn vb(model: &str, data: &str, settings: &PriorSettings) -> FitFile {
    let binding = bound(model, &csv(data));
    with_problem(&binding, settings, |problem| {
        let climb = Climb { restarts: 2, max_iter: 40, ..Default::default() };
        let fit = Vb { climb, ..Default::default() }.fit(problem, Seed(3), &mut Control::default()).unwrap();
        let tables = fit.tables(problem);
        FitFile { tables, ..plain(problem, "vb") }
    })
}

/// A fit of maximum likelihood.
pub fn likelihood(model: &str, data: &str) -> FitFile {
    let binding = bound(model, &csv(data));
    with_problem(&binding, &PriorSettings::default(), |problem| {
        let em = Em { mode: Mode::Likelihood, ..Default::default() };
        let fit = em.fit(problem, Seed(3), &mut Control::default()).unwrap();
        let mut file = FitFile { tables: fit.tables(problem), ..plain(problem, "em") };
        file.intensity = Intensity::Point(fit.intensity);
        file.prior.is_given = false;
        file
    })
}

/// A fit by particles, with its best draw.
pub fn particles(model: &str, data: &str) -> FitFile {
    let binding = bound(model, &csv(data));
    with_problem(&binding, &PriorSettings::default(), |problem| {
        let smc = Smc { particles: 32, ..Default::default() };
        let posterior = smc.posterior_with_draws(problem, 2, Seed(3), &mut Control::default()).unwrap();
        let best = Some(stored(problem, &posterior.best));
        let draws = posterior.draws.iter().map(|draw| stored(problem, draw)).collect();
        FitFile { tables: posterior.tables, best, draws, ..plain(problem, "smc") }
    })
}

fn stored(problem: &Problem<'_>, draw: &ParticleAllocation) -> StoredDraw {
    let mut allocation = Vec::new();
    for record in &draw.hidden {
        let block = &problem.counts.blocks[record.block as usize];
        let mut shown = vec![MISSING; problem.model.n_nodes()];
        block.read(record.record as usize, &mut shown);
        for (hidden, n_tokens) in &record.groups {
            let mut values = shown.clone();
            let unseen = &problem.plan.patterns()[record.block as usize].unseen;
            unseen.iter().zip(hidden).for_each(|(node, &value)| values[node.ix()] = value);
            allocation.push(AllocatedTokens { record: shown.clone(), values, n_tokens: *n_tokens });
        }
    }
    StoredDraw { tables: draw.tables(problem), allocation }
}

fn plain(problem: &Problem<'_>, method: &str) -> FitFile {
    let n_tables = problem.model.tables().len() as u32;
    FitFile {
        model: problem.model.clone(),
        labels: problem.counts.labels.clone(),
        is_seen: problem.counts.seen_anywhere(),
        method: method.into(),
        label_averaged: Vec::new(),
        intensity: Intensity::Gamma { shape: 1.0 + problem.counts.total(), rate: 1.1 },
        prior: FitPrior {
            is_given: true,
            tables: (0..n_tables).map(|ix| problem.prior.table(TableIndex(ix)).clone()).collect(),
            a: problem.prior.a(),
            shape: problem.prior.shape(),
            rate: problem.prior.rate(),
        },
        tables: Vec::new(),
        best: None,
        draws: Vec::new(),
        value_counts: value_counts(problem.counts),
        data: FitData {
            source: "test.csv".into(),
            sha256: Some("00".repeat(32)),
            n_records: problem.counts.n_records() as u64,
            n_tokens: problem.counts.total(),
        },
        settings: json!({ "a": [0.1] }),
        seed: u64::MAX,
        command_line: vec!["polyurn".into(), "fit".into(), "it's".into()],
        version: polyurn::VERSION.into(),
        result: json!({ "objective": -1.0 / 3.0, "method": method, "warnings": [] }),
    }
}
