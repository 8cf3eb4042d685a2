//! Small helpers shared by the themes: from text to a number, and random models and data to try.

use polyurn::control::{Control, Observer, Progress};
use polyurn::counts::Dataset;
use polyurn::engine::{Problem, exact::Exact};
use polyurn::evidence::{Evidence, evidence};
use polyurn::graph::{BindOptions, Binding, Model, ModelSource, bind};
use polyurn::io::{Format, read_from};
use polyurn::math::draw;
use polyurn::prior::{Prior, PriorSettings, PriorSpec};
use polyurn::{Purpose, Seed, Stream};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

pub fn csv(text: &str) -> Dataset {
    read_from(text.as_bytes(), "test.csv", Format::Csv).unwrap()
}

pub fn bound(model: &str, data: &Dataset) -> Binding {
    bind(&ModelSource::parse(model).unwrap(), data, BindOptions::default()).unwrap()
}

pub fn settings(a: f64) -> PriorSettings {
    PriorSettings { a: Some(a), ..Default::default() }
}

/// Builds the prior and hands the whole problem to `f`.
pub fn with_problem<T>(binding: &Binding, settings: &PriorSettings, f: impl FnOnce(&Problem<'_>) -> T) -> T {
    let prior = Prior::build(&binding.model, settings).unwrap();
    f(&Problem::new(&binding.model, &prior, &binding.counts).unwrap())
}

/// The exact evidence of a bound model.
pub fn score_bound(binding: &Binding, settings: &PriorSettings) -> Evidence {
    with_problem(binding, settings, |problem| {
        let sequence = Exact::default().ln_p_sequence(problem, &mut Control::default()).unwrap();
        evidence(problem, sequence.ln_p_sequence).unwrap()
    })
}

/// The exact evidence of a model text on a CSV text.
pub fn score(model: &str, data: &str, settings: &PriorSettings) -> Evidence {
    score_bound(&bound(model, &csv(data)), settings)
}

/// True when the exact engine foresees at most this many transitions.
pub fn is_affordable(binding: &Binding, settings: &PriorSettings, max_transitions: f64) -> bool {
    with_problem(binding, settings, |problem| {
        Exact::default().cost(problem).is_ok_and(|cost| cost.transitions <= max_transitions)
    })
}

pub fn base(alpha: Vec<f64>) -> PriorSettings {
    PriorSettings { spec: PriorSpec::Base { alpha: Some(alpha), marginals: None, size: None }, ..Default::default() }
}

pub fn tables(tables: BTreeMap<String, Vec<Vec<f64>>>) -> PriorSettings {
    PriorSettings { spec: PriorSpec::Tables { tables }, ..Default::default() }
}

#[track_caller]
pub fn assert_relative(what: &str, got: f64, want: f64, tolerance: f64) {
    if got == want {
        return;
    }
    let error = relative(got, want);
    assert!(error <= tolerance, "{what}: got {got:.17}, want {want:.17}, relative error {error:.2e} > {tolerance:.0e}");
}

pub fn relative(got: f64, want: f64) -> f64 {
    (got - want).abs() / want.abs().max(1e-300)
}

/// As [`assert_relative`], for logs of probabilities. The log of a certain event is zero up to rounding: 1e-14 is then the
/// relative error of its probability.
#[track_caller]
pub fn assert_log(what: &str, got: f64, want: f64, tolerance: f64) {
    if (got - want).abs() > 1e-14 || got.is_nan() || want.is_nan() {
        assert_relative(what, got, want, tolerance);
    }
}

/// All four numbers of two results agree.
#[track_caller]
pub fn assert_same_evidence(what: &str, got: &Evidence, want: &Evidence, tolerance: f64) {
    for (part, got, want) in [
        ("log_marginal", got.log_marginal, want.log_marginal),
        ("log_p_total", got.log_p_total, want.log_p_total),
        ("log_arrangements", got.log_arrangements, want.log_arrangements),
        ("log_p_sequence", got.log_p_sequence, want.log_p_sequence),
    ] {
        assert_log(&format!("{what}, {part}"), got, want, tolerance);
    }
}

/// A generator of instances: always the same ones for the same number.
pub struct Random(pub Stream);

impl Random {
    pub fn new(theme: u64) -> Self {
        Random(Seed(theme).stream(Purpose::Urn, 0, 0, 0))
    }

    /// A whole number from `low` to `high`, both included.
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + draw::below((high - low + 1) as u64, &mut self.0) as usize
    }

    pub fn value(&mut self, size: u32) -> u32 {
        draw::below(u64::from(size), &mut self.0) as u32
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        draw::open_unit(&mut self.0) < probability
    }

    /// A positive number from 0.02 to 3, uneven on purpose.
    pub fn weight(&mut self) -> f64 {
        (draw::open_unit(&mut self.0) * 150f64.ln()).exp() * 0.02
    }

    pub fn weights(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.weight()).collect()
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.between(0, end));
        }
    }

    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        self.shuffle(&mut order);
        order
    }
}

/// A DAG with sizes; its nodes are called n0, n1, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Dag {
    pub sizes: Vec<u32>,
    pub parents: Vec<BTreeSet<usize>>,
    pub tied: Vec<Vec<usize>>,
}

pub fn name(node: usize) -> String {
    format!("n{node}")
}

impl Dag {
    /// Arrows run along a random order of the nodes, so node order and direction have nothing to do with each other.
    pub fn random(rng: &mut Random, n_nodes: usize, sizes: (usize, usize), density: f64) -> Self {
        let order = rng.permutation(n_nodes);
        let mut parents = vec![BTreeSet::new(); n_nodes];
        for (at, &child) in order.iter().enumerate() {
            for &parent in &order[..at] {
                if rng.chance(density) {
                    parents[child].insert(parent);
                }
            }
        }
        let sizes = (0..n_nodes).map(|_| rng.between(sizes.0, sizes.1) as u32).collect();
        Dag { sizes, parents, tied: Vec::new() }
    }

    pub fn n_nodes(&self) -> usize {
        self.sizes.len()
    }

    pub fn n_cells(&self) -> usize {
        self.sizes.iter().map(|&size| size as usize).product()
    }

    pub fn text(&self) -> String {
        self.text_in_order(&(0..self.n_nodes()).collect::<Vec<_>>())
    }

    /// The model text with its nodes named in this order.
    pub fn text_in_order(&self, order: &[usize]) -> String {
        let mut parts: Vec<String> =
            order.iter().map(|&node| format!("{}[{}]", name(node), self.sizes[node])).collect();
        for &child in order {
            if !self.parents[child].is_empty() {
                let parents: Vec<String> = self.parents[child].iter().map(|&parent| name(parent)).collect();
                parts.push(format!("{} -> {}", parents.join(" "), name(child)));
            }
        }
        for group in &self.tied {
            parts.push(group.iter().map(|&node| name(node)).collect::<Vec<_>>().join(" ~ "));
        }
        parts.join("; ")
    }

    /// Ties two nodes whose tables have the same shape, if there are such nodes. Parents count in node order.
    pub fn tie_some(&mut self, rng: &mut Random) -> bool {
        let shape = |node: usize| -> (Vec<u32>, u32) {
            (self.parents[node].iter().map(|&parent| self.sizes[parent]).collect(), self.sizes[node])
        };
        let pairs: Vec<(usize, usize)> = (0..self.n_nodes())
            .flat_map(|a| (a + 1..self.n_nodes()).map(move |b| (a, b)))
            .filter(|&(a, b)| self.sizes[a] > 1 && shape(a) == shape(b))
            .collect();
        if pairs.is_empty() {
            return false;
        }
        let (a, b) = pairs[rng.between(0, pairs.len() - 1)];
        self.tied = vec![vec![a, b]];
        true
    }

    /// Uneven pseudo-counts for every table, not from one base measure. A tied table stands under its first name.
    pub fn random_tables(&self, rng: &mut Random) -> BTreeMap<String, Vec<Vec<f64>>> {
        let mut tables = BTreeMap::new();
        for node in 0..self.n_nodes() {
            if self.tied.iter().any(|group| group[1..].contains(&node)) {
                continue;
            }
            let n_rows: u32 = self.parents[node].iter().map(|&parent| self.sizes[parent]).product();
            tables.insert(name(node), (0..n_rows).map(|_| rng.weights(self.sizes[node] as usize)).collect());
        }
        tables
    }
}

/// Rows of counts over some nodes of a [`Dag`].
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub columns: Vec<usize>,
    /// Values, `None` where missing, and how many tokens.
    pub rows: Vec<(Vec<Option<u32>>, u64)>,
    /// Cells whose count is not known.
    pub unknown: Vec<Vec<u32>>,
}

impl Rows {
    /// `n_tokens` tokens spread unevenly over `n_rows` random rows; each value is missing with this probability.
    pub fn random(
        rng: &mut Random,
        dag: &Dag,
        columns: Vec<usize>,
        n_rows: usize,
        n_tokens: usize,
        missing: f64,
    ) -> Self {
        let mut rows: Vec<(Vec<Option<u32>>, u64)> = (0..n_rows)
            .map(|_| {
                let value = |&node: &usize| (!rng.chance(missing)).then(|| rng.value(dag.sizes[node]));
                (columns.iter().map(value).collect(), 1)
            })
            .collect();
        for _ in n_rows..n_tokens {
            // Early rows get most tokens.
            let last = rng.between(0, n_rows - 1);
            rows[rng.between(0, last)].1 += 1;
        }
        Rows { columns, rows, unknown: Vec::new() }
    }

    pub fn csv(&self) -> String {
        let mut text: String = self.columns.iter().map(|&node| name(node) + ",").collect();
        text += "count\n";
        for (values, count) in &self.rows {
            for value in values {
                text += &value.map_or(String::new(), |value| value.to_string());
                text.push(',');
            }
            text += &format!("{count}\n");
        }
        for cell in &self.unknown {
            cell.iter().for_each(|value| text += &format!("{value},"));
            text += "?\n";
        }
        text
    }

    pub fn bind(&self, dag: &Dag) -> Binding {
        bound(&dag.text(), &csv(&self.csv()))
    }

    /// Every token as a full list of nodes, `None` where a node is not seen; row by row.
    pub fn tokens(&self, n_nodes: usize) -> Vec<Vec<Option<u32>>> {
        let full = |values: &[Option<u32>]| {
            let mut token = vec![None; n_nodes];
            self.columns.iter().zip(values).for_each(|(&node, &value)| token[node] = value);
            token
        };
        self.rows.iter().flat_map(|(values, count)| (0..*count).map(move |_| full(values))).collect()
    }
}

/// All ways to fill the gaps of a token.
pub fn completions(model: &Model, token: &[Option<u32>]) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for (node, value) in model.nodes().iter().zip(token) {
        let values: Vec<u32> = value.map_or_else(|| (0..node.size).collect(), |value| vec![value]);
        all =
            all.iter().flat_map(|head| values.iter().map(move |&value| [head.as_slice(), &[value]].concat())).collect();
    }
    all
}

/// Where `count` hits among `n` draws of probability `p` stand, in standard errors.
pub fn z_score(count: f64, n: f64, p: f64) -> f64 {
    (count - n * p) / (n * p * (1.0 - p)).sqrt()
}

/// Random counts of `n_tokens` tokens in columns with these sizes: early values are the common ones.
pub fn random_table(theme: u64, columns: &[(&str, usize)], n_tokens: usize) -> String {
    let mut rng = Random::new(theme);
    let mut text: String = columns.iter().map(|(name, _)| format!("{name},")).collect();
    text += "count\n";
    for _ in 0..n_tokens {
        for &(_, size) in columns {
            let last = rng.between(0, size - 1);
            text += &format!("{},", rng.between(0, last));
        }
        text += "1\n";
    }
    text
}

/// What a run has saved.
pub type Saved = Rc<RefCell<Option<Vec<u8>>>>;

/// Keeps checkpoints in memory as often as they are offered, and looks on.
pub struct Keeper<F> {
    pub saved: Saved,
    pub look: F,
}

impl<F: FnMut(Progress<'_>)> Observer for Keeper<F> {
    fn progress(&mut self, progress: Progress<'_>) {
        (self.look)(progress);
    }

    fn load_checkpoint(&mut self) -> polyurn::Result<Option<Vec<u8>>> {
        Ok(self.saved.borrow().clone())
    }

    fn checkpoint_interval(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn save_checkpoint(&mut self, state: &[u8]) -> polyurn::Result<()> {
        *self.saved.borrow_mut() = Some(state.to_vec());
        Ok(())
    }
}
