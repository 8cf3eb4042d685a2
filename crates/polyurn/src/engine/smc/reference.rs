//! Particles against a slow reference, token by token.
//!
//! Without resampling and moves, a particle's weight is the product over its tokens of p(seen values | earlier tokens
//! with the hidden values it drew). That product is computed here again from maps of counts and a sum over all
//! completions. So nothing depends on chance: whatever was drawn, the weight must be the one that belongs to it.
//!
//! With resampling after every token the weights at the end are those of the last token alone. They then tell whether
//! counts still say what states say after copies and moves.

use super::frame::{Frame, Width};
use super::lanes::MAX_LANES;
use super::prepared::LISTED;
use super::resample::When;
use super::run::{Hands, Path, Run, Source};
use super::word::Word;
use crate::Seed;
use crate::counts::MISSING;
use crate::engine::Problem;
use crate::engine::lines::Layout;
use crate::engine::replicates::Watch;
use crate::engine::sheet::Sheet;
use crate::graph::{BindOptions, Model, ModelSource, NodeIndex, TableIndex, bind};
use crate::io::{Format, read_from};
use crate::math::log_sum_exp;
use crate::prior::{Prior, PriorSettings, PriorSpec, PseudoCount};
use crate::simd::Isa;
use crate::urn::Urn;
use hashbrown::{HashMap, HashSet};

/// More than a group of lanes and no power of two: some lanes are spare.
const N_PARTICLES: usize = 19;

/// Sums of a few hundred logs of at most a few thousand: rounding stays below 1e-10.
const TOLERANCE: f64 = 1e-9;

/// Counts of cells and rows, nothing else. A row has no child.
struct Tally<'a> {
    model: &'a Model,
    prior: &'a Prior,
    counts: HashMap<(TableIndex, Vec<u32>, Option<u32>), u64>,
}

impl<'a> Tally<'a> {
    fn new(model: &'a Model, prior: &'a Prior) -> Self {
        Tally { model, prior, counts: HashMap::new() }
    }

    fn keys(&self, node: NodeIndex, token: &[u32]) -> [(TableIndex, Vec<u32>, Option<u32>); 2] {
        let parents: Vec<u32> = self.model.node(node).parents.iter().map(|parent| token[parent.ix()]).collect();
        [Some(token[node.ix()]), None].map(|child| (self.model.node(node).table, parents.clone(), child))
    }

    /// ln p(value of the node | values of its parents, counts).
    fn ln_factor(&self, node: NodeIndex, token: &[u32]) -> f64 {
        let [cell, row] = self.keys(node, token);
        let table = self.prior.table(cell.0);
        let ln = |pseudo: PseudoCount, n: Option<&u64>| match n {
            None | Some(0) => pseudo.ln(),
            Some(&n) => (pseudo.value + n as f64).ln(),
        };
        let of_cell = ln(table.cell(&cell.1, token[node.ix()]), self.counts.get(&cell));
        if of_cell == f64::NEG_INFINITY { of_cell } else { of_cell - ln(table.row(&row.1), self.counts.get(&row)) }
    }

    fn put(&mut self, node: NodeIndex, token: &[u32]) {
        self.keys(node, token).into_iter().for_each(|key| *self.counts.entry(key).or_insert(0) += 1);
    }

    fn take(&mut self, node: NodeIndex, token: &[u32]) {
        self.keys(node, token).iter().for_each(|key| *self.counts.get_mut(key).expect("put before") -= 1);
    }

    /// ln of the sum over all values of the missing ones among these nodes, which stand in topological order. A token
    /// that `sees_itself` has its own earlier uses of a tied table among the counts.
    fn ln_sum(&mut self, nodes: &[NodeIndex], token: &mut [u32], sees_itself: bool) -> f64 {
        let Some((&node, rest)) = nodes.split_first() else { return 0.0 };
        let was = token[node.ix()];
        let values = if was == MISSING { 0..self.model.node(node).size } else { was..was + 1 };
        let mut terms = Vec::new();
        for value in values {
            token[node.ix()] = value;
            let ln = self.ln_factor(node, token);
            if sees_itself {
                self.put(node, token);
            }
            terms.push(ln + self.ln_sum(rest, token, sees_itself));
            if sees_itself {
                self.take(node, token);
            }
        }
        token[node.ix()] = was;
        log_sum_exp(&terms)
    }

    /// Puts a token with these hidden values in, and gives the factor of the particle's weight.
    fn place(&mut self, record: &[u32], hidden: &[u32], is_exact: bool) -> f64 {
        let nodes = relevant_nodes(self.model, record);
        let mut seen = record.to_vec();
        let mut full = record.to_vec();
        // Hidden values come in the order of the nodes.
        let mut unseen: Vec<NodeIndex> = nodes.iter().copied().filter(|node| record[node.ix()] == MISSING).collect();
        unseen.sort_unstable();
        assert_eq!(unseen.len(), hidden.len(), "a value for each node above a seen one, and no other");
        unseen.iter().zip(hidden).for_each(|(node, &value)| full[node.ix()] = value);
        let mut ln = self.ln_sum(&nodes, &mut seen, is_exact);
        if !is_exact {
            // Drawn as if it did not see itself, and corrected by what the drawn values should have weighed.
            ln += self.ln_sum(&nodes, &mut full, true) - self.ln_sum(&nodes, &mut full, false);
        }
        nodes.iter().for_each(|&node| self.put(node, &full));
        ln
    }
}

/// Nodes that are seen or above a seen one, parents first. The others add up to one and are left out.
fn relevant_nodes(model: &Model, record: &[u32]) -> Vec<NodeIndex> {
    let mut is_relevant: Vec<bool> = record.iter().map(|&value| value != MISSING).collect();
    for &node in model.topological_order().iter().rev() {
        if is_relevant[node.ix()] {
            model.node(node).parents.iter().for_each(|parent| is_relevant[parent.ix()] = true);
        }
    }
    model.topological_order().iter().copied().filter(|node| is_relevant[node.ix()]).collect()
}

/// A problem, and what is the same for all its runs.
struct Case<'a> {
    problem: &'a Problem<'a>,
    n_particles: usize,
    layout: Layout,
    /// Values of the records that particles place.
    records: Vec<Vec<u32>>,
    /// Values of the tokens that are the same in all particles.
    certain: Vec<Vec<u32>>,
}

impl<'a> Case<'a> {
    fn new(problem: &'a Problem<'a>) -> Self {
        let layout = Layout::new(problem).unwrap();
        let read = |block: u32, ix: u32| {
            let mut record = vec![MISSING; problem.model.n_nodes()];
            problem.counts.blocks[block as usize].read(ix as usize, &mut record);
            record
        };
        let records = layout.records.source.iter().map(|&(block, ix)| read(block, ix)).collect();
        let placed: HashSet<(u32, u32)> = layout.records.source.iter().copied().collect();
        let mut certain = Vec::new();
        for (block, of_pattern) in (0..).zip(&problem.counts.blocks) {
            for (ix, count) in (0..).zip(of_pattern.counts.iter()) {
                if !placed.contains(&(block, ix)) {
                    (0..count).for_each(|_| certain.push(read(block, ix)));
                }
            }
        }
        Case { problem, n_particles: N_PARTICLES, layout, records, certain }
    }

    /// The factors of a particle's weight, one for each token that was placed; before them the one for all others.
    fn ln_factors(&self, order: &[u32], hidden: &[Vec<u32>]) -> Vec<f64> {
        let mut tally = Tally::new(self.problem.model, self.problem.prior);
        let mut factors = vec![self.certain.iter().map(|record| tally.place(record, &[], true)).sum()];
        for (&record, hidden) in order.iter().zip(hidden) {
            let is_exact = self.layout.kernel_of(record as usize).is_exact;
            factors.push(tally.place(&self.records[record as usize], hidden, is_exact));
        }
        factors
    }

    fn frame(&self, path: &Path, wants_states: bool) -> Frame {
        Frame::new(&self.layout, path, self.n_particles, wants_states, 1 << 30).unwrap()
    }

    fn check_run<W: Word>(&self, what: &str, path: &Path, isa: Isa, seed: u64) {
        let is_plain = path.when == When::Never;
        // Without somebody who wants states there are no moves after the last token, and they are kept all the same.
        let frame = self.frame(path, path.rejuvenation == 0);
        let hands = Hands { n_particles: self.n_particles, n_threads: 1, isa };
        let source = Source { seed: Seed(seed), replicate: 0 };
        let mut run = Run::<W>::new(self.problem.counts, &self.layout, &frame, path, hands, source);
        run.go(&Watch::of(&|_| Ok(()))).unwrap();
        run.bring_up_to_date();
        let ln_of = |particle: usize| -> f64 {
            let factors = self.ln_factors(&run.course().order, &run.hidden_values(particle));
            if is_plain { factors.iter().sum() } else { factors[factors.len() - 1] }
        };
        let ln_weights: Vec<f64> = (0..self.n_particles).map(ln_of).collect();
        let ln_total = log_sum_exp(&ln_weights);
        if is_plain {
            let (found, want) = (run.result().ln_p_sequence, ln_total - (self.n_particles as f64).ln());
            assert!((found - want).abs() < TOLERANCE, "{what}: {found} for {want}");
        }
        let found = run.normalised_weights();
        let smallest = found.iter().copied().fold(1.0, f64::min);
        assert!(
            found.iter().any(|weight| *weight > 1.001 * smallest),
            "{what}: weights that are all the same say little"
        );
        for (particle, (found, ln)) in found.iter().zip(&ln_weights).enumerate() {
            let want = (ln - ln_total).exp();
            assert!((found - want).abs() < TOLERANCE, "{what}, particle {particle}: {found} for {want}");
        }
    }

    /// A run with every kind of move, and the posterior from its particles, as text to the last digit.
    fn posterior<W: Word>(&self, path: &Path) -> String {
        let frame = self.frame(path, true);
        let hands = Hands { n_particles: self.n_particles, n_threads: 1, isa: Isa::detect() };
        let source = Source { seed: Seed(6), replicate: 0 };
        let mut run = Run::<W>::new(self.problem.counts, &self.layout, &frame, path, hands, source);
        run.go(&Watch::of(&|_| Ok(()))).unwrap();
        format!("{:?}", run.posterior(self.problem, &Sheet::new(self.problem, &self.layout), 0, &[]))
    }

    /// Short and long integers, with and without vector instructions.
    fn check(&self, what: &str, path: &Path, seed: u64) {
        let width = self.frame(path, true).width;
        for (name, isa) in [("scalar", Isa::SCALAR), ("vector", Isa::detect())] {
            // Longer integers than it takes are as good.
            if width == Width::Bits8 {
                self.check_run::<u8>(&format!("{what}, 8 bits, {name}, {path:?}"), path, isa, seed);
            }
            self.check_run::<u16>(&format!("{what}, 16 bits, {name}, {path:?}"), path, isa, seed);
            self.check_run::<u32>(&format!("{what}, 32 bits, {name}, {path:?}"), path, isa, seed);
        }
    }
}

/// Weights of whole runs.
const PLAIN: Path = Path {
    order: super::Order::Random,
    rejuvenation: 0,
    schedule: super::Schedule { scan: super::Scan::Cyclic, pace: super::Pace::Even },
    start_scale: 1.0,
    n_cooling: 0,
    n_reallocations: 0,
    when: When::Never,
    scheme: super::Scheme::Systematic,
};

fn with_case(model: &str, data: &str, settings: &PriorSettings, check: impl FnOnce(&Case<'_>)) {
    let data = read_from(data.as_bytes(), "test.csv", Format::Csv).unwrap();
    let binding = bind(&ModelSource::parse(model).unwrap(), &data, BindOptions::default()).unwrap();
    let prior = Prior::build(&binding.model, settings).unwrap();
    check(&Case::new(&Problem::new(&binding.model, &prior, &binding.counts).unwrap()));
}

/// Whole runs; and the last token of runs that are resampled after every token, without moves, with Gibbs updates and,
/// where there are any, with moves of whole groups. `is_meant` tells whether the case is what the test is about.
fn check(model: &str, data: &str, settings: &PriorSettings, is_meant: impl Fn(&Layout, &Frame) -> bool) {
    with_case(model, data, settings, |case| {
        assert!(is_meant(&case.layout, &case.frame(&PLAIN, true)), "{model}: not what it is meant to be");
        case.check(model, &PLAIN, 1);
        let resampled = Path { when: When::Always, ..PLAIN };
        case.check(model, &resampled, 2);
        case.check(model, &Path { rejuvenation: 3, ..resampled }, 3);
        case.check(model, &Path { rejuvenation: 1, n_reallocations: 2, ..resampled }, 4);
    });
}

fn any(_: &Layout, _: &Frame) -> bool {
    true
}

fn size(a: f64) -> PriorSettings {
    PriorSettings { a: Some(a), ..Default::default() }
}

fn tables(tables: &[(&str, &[&[f64]])]) -> PriorSettings {
    let rows = |rows: &[&[f64]]| rows.iter().map(|row| row.to_vec()).collect();
    let tables = tables.iter().map(|&(name, table)| (name.to_owned(), rows(table))).collect();
    PriorSettings { spec: PriorSpec::Tables { tables }, ..Default::default() }
}

const MATRIX: &str = "i,j,count\n0,0,4\n0,1,1\n1,1,5\n1,3,2\n2,0,1\n2,2,3\n3,3,2\n0,2,1\n";

#[test]
fn the_reference_is_the_urn() {
    // Two nodes share a table, so a token may use a cell twice.
    let (model, _, _) =
        crate::graph::bind_without_data(&ModelSource::parse("r[2] -> i[3] j[3]; i ~ j").unwrap(), None).unwrap();
    let prior = Prior::build(&model, &size(0.8)).unwrap();
    let (mut tally, mut urn) = (Tally::new(&model, &prior), Urn::new(&model, &prior));
    for token in [[0, 1, 1], [1, 0, 2], [0, 1, 1], [0, 2, 1], [1, 2, 2], [1, 0, 2]] {
        let want = urn.ln_predictive(&token);
        urn.observe(&token);
        let found = tally.place(&token, &[], true);
        assert!((found - want).abs() < 1e-13, "{token:?}: {found} for {want}");
    }
}

#[test]
fn one_hidden_node_above_seen_ones() {
    check("k[3] -> i j", MATRIX, &size(1.3), any);
    check(
        "k[2] -> i",
        "i,count\n0,7\n1,2\n2,4\n",
        &tables(&[("k", &[&[0.3, 1.1]]), ("i", &[&[0.2, 0.5, 0.9], &[1.4, 0.1, 0.3]])]),
        any,
    );
}

#[test]
fn particles_of_several_shards() {
    with_case("k[3] -> i j", MATRIX, &size(1.3), |case| {
        let case = Case { n_particles: 2 * MAX_LANES + 5, ..Case::new(case.problem) };
        case.check("three shards", &PLAIN, 1);
        case.check("three shards", &Path { rejuvenation: 2, when: When::Always, ..PLAIN }, 2);
    });
}

#[test]
fn a_hidden_node_between_seen_ones() {
    let data = "d,w,count\n0,0,3\n0,1,2\n0,4,1\n1,2,4\n1,3,1\n2,0,1\n2,3,3\n2,2,1\n";
    check("d -> t[3] -> w", data, &size(2.1), any);
}

#[test]
fn two_hidden_nodes() {
    let data = "x,y,count\n0,1,3\n1,0,2\n2,1,1\n0,0,2\n2,2,3\n";
    check("g[2] -> h[3]; g -> x; h -> y", data, &size(1.7), |layout, _| layout.kernels[0].buckets.len() == 1);
}

#[test]
fn a_seen_node_below_two_hidden_ones() {
    check(
        "a[2] b[3] -> c",
        "c,count\n0,5\n1,2\n2,4\n3,1\n",
        &tables(&[
            ("a", &[&[0.4, 1.3]]),
            ("b", &[&[0.7, 0.2, 0.9]]),
            (
                "c",
                &[
                    &[0.1, 0.6, 0.3, 0.2],
                    &[1.1, 0.2, 0.4, 0.1],
                    &[0.3, 0.3, 0.8, 0.5],
                    &[0.9, 0.1, 0.1, 0.6],
                    &[0.2, 1.2, 0.1, 0.1],
                    &[0.5, 0.4, 0.7, 0.2],
                ],
            ),
        ]),
        any,
    );
    let blocks = "source,destination,relation,count\n0,1,1,2\n1,0,0,1\n1,2,1,3\n2,1,0,1\n0,2,0,2\n";
    check("mmsb(2)", blocks, &size(1.5), any);
}

#[test]
fn hidden_chains_and_diamonds_in_several_buckets() {
    let several = |layout: &Layout, _: &Frame| layout.kernels.iter().any(|kernel| kernel.buckets.len() > 2);
    let data = "a,b,c,d,e,count\n0,1,1,0,1,2\n1,1,0,0,1,1\n0,1,1,0,0,3\n1,0,1,1,0,1\n";
    check("hmm(3)", data, &size(6.0), several);
    let tree = "x,y,z,count\n0,1,1,2\n1,0,1,1\n1,1,0,3\n0,0,1,1\n";
    check("p[3] -> q[4] -> x; p -> s[3] -> y; q s -> t[3] -> z", tree, &size(8.0), several);
}

#[test]
fn records_with_different_missing_values() {
    let patterns = |layout: &Layout, _: &Frame| layout.kernels.len() > 3;
    // Some records leave out z, and with it nothing else; one leaves out y and z, so that neither has a value.
    let data = "x,y,z,count\n0,2,,2\n,1,1,2\n1,0,0,2\n1,,0,1\n,2,,1\n0,,,3\n1,1,1,1\n";
    check("k[2] -> x y; x -> y; y -> z", data, &size(1.7), patterns);
    let hidden_below = "x,y,count\n0,1,2\n1,,2\n,0,1\n1,1,3\n";
    check("k[2] -> x; k -> m[3] -> y", hidden_below, &size(1.1), |layout, _| layout.kernels.len() == 3);
    // Tokens that show everything are counted in lines in which the others differ.
    let category = "i,j,r,count\n0,0,0,2\n1,0,,2\n2,1,1,1\n1,1,,3\n0,1,,1\n";
    check("scpf(2)", category, &size(1.2), any);
    // Tokens without x touch no line at all: they are the same in all particles.
    let certain = "v,w,x,count\n0,1,0,2\n0,2,,3\n1,0,1,3\n1,1,,1\n0,1,2,2\n1,2,0,1\n";
    check("v -> w; v -> k[2] -> x", certain, &size(1.3), |layout, _| layout.records.len() == 4);
    let tied = "x,y,v,count\n0,1,0,2\n,1,1,2\n1,1,0,1\n0,,1,2\n,1,0,1\n";
    check("x[2]; y[2]; v[2]; x ~ y; x -> v", tied, &size(0.6), any);
}

#[test]
fn tied_tables_that_a_token_uses_twice() {
    let tied = |layout: &Layout, _: &Frame| layout.kernels.iter().any(|kernel| kernel.is_tied && kernel.is_exact);
    let data = "i,j,count\n0,0,2\n0,1,1\n1,1,3\n1,2,1\n2,0,1\n2,2,2\n";
    check("r[2] -> i[3] j[3]; i ~ j", data, &size(1.4), tied);
    let uneven = tables(&[("r", &[&[0.9, 0.35]]), ("i", &[&[0.4, 1.2, 0.1], &[0.7, 0.2, 0.9]])]);
    check("r[2] -> i[3] j[3]; i ~ j", data, &uneven, tied);
    // The hidden values of one token use the transition table twice.
    let chain = "a,b,c,count\n0,0,1,2\n1,1,0,1\n0,1,1,2\n1,0,0,1\n";
    check("hmm(2,tied)", chain, &size(1.4), tied);
}

#[test]
fn tied_chains_too_long_for_joint_states_and_their_correction() {
    // 2^13 joint states: weights are corrected after the draw, also of the last token but one, so that only whole runs
    // can be told from their states.
    let columns: String = (0..13).map(|column| format!("c{column},")).collect();
    let data = format!("{columns}count\n0,0,1,0,1,1,1,0,0,1,0,0,0,1\n0,1,1,0,0,1,1,0,1,1,0,0,0,1\n");
    with_case("hmm(2,tied)", &data, &size(9.0), |case| {
        assert!(!case.layout.kernels[0].is_exact);
        case.check_run::<u8>("tied chain, scalar", &PLAIN, Isa::SCALAR, 1);
        case.check_run::<u32>("tied chain, vector", &PLAIN, Isa::detect(), 1);
    });
}

#[test]
fn rare_labels_whose_lines_are_not_kept() {
    let listed = |_: &Layout, frame: &Frame| {
        let first = &frame.storage.first_line;
        first.contains(&LISTED) && first.iter().any(|&line| line != LISTED)
    };
    let data = "i,j,count\n0,0,3\n0,1,2\n1,1,4\n1,2,2\n2,0,1\n3,2,7\n3,1,6\n";
    check("k[40] -> i j", data, &size(9.0), listed);
    check("k[40] -> i[4] j[4]; i ~ j", data, &size(9.0), any);
    // Some records show what others leave out: the block of a label has lines for values that are seen there, too.
    let data = "x,y,z,count\n0,0,1,4\n,0,1,5\n7,1,0,3\n,1,1,6\n0,1,0,2\n,2,0,3\n7,2,1,2\n11,0,0,1\n";
    check("x[60] -> y[3] z[2]", data, &size(9.0), listed);
}

#[test]
fn products_that_are_added_up_as_logs() {
    let guarded = |layout: &Layout, _: &Frame| (0..layout.kernels.len()).all(|kernel| layout.is_guarded(kernel, 1.0));
    // Where one value is new, a new component is as likely as one more value of an old one.
    check("k[3] -> i j", MATRIX, &size(1e-280), guarded);
    check("g[2] -> h[3]; g -> x; h -> y", "x,y,count\n0,1,3\n0,0,2\n2,1,1\n2,2,3\n", &size(1e-250), guarded);
    // Products of a hundred cells and rows, none of them small.
    let columns: String = (0..100).map(|column| format!("c{column},")).collect();
    let value = |row: usize, column: usize| u32::from((7 * row + 3 * column * column + row * column) % 5 < 2);
    let row = |row: usize| (0..100).map(|column| format!("{},", value(row, column))).collect::<String>() + "2\n";
    let data = format!("{columns}count\n{}{}{}{}", row(0), row(1), row(2), row(3));
    check("lca(2)", &data, &size(60.0), guarded);
}

/// More tokens than a byte can count: hidden values have a second line, and Gibbs updates take their numbers across the
/// edge, both ways.
#[test]
fn numbers_of_hidden_values_beyond_a_byte() {
    let has_highs = |layout: &Layout, frame: &Frame| {
        let highs = &frame.storage.high_of_class;
        let is_right = |(class, &high): (usize, &u32)| (high > 0) != layout.classes[class].has_key();
        frame.width == Width::Bits8 && highs.iter().any(|high| *high > 0) && highs.iter().enumerate().all(is_right)
    };
    let matrix: String = (0..30).map(|cell| format!("{},{},{}\n", cell % 5, cell / 5, 4 + 7 * cell % 13)).collect();
    let matrix = format!("i,j,count\n{matrix}");
    // The prior keeps the first value near the edge.
    let skewed = |node: &str, share: f64, n: usize, size: f64| {
        let shares = (0..n).map(|value| if value == 0 { share } else { (1.0 - share) / (n - 1) as f64 }).collect();
        let marginals = Some([(node.to_owned(), shares)].into_iter().collect());
        PriorSettings { spec: PriorSpec::Base { alpha: None, marginals, size: Some(size) }, ..Default::default() }
    };
    // Even pseudo-counts: cells of the hidden node cancel against rows, and the row that is left has high words.
    let twice: String = (0..30).map(|cell| format!("{},{},{}\n", cell % 5, cell / 5, 13 + 7 * cell % 13)).collect();
    with_case("k[2] -> i j", &format!("i,j,count\n{twice}"), &size(30.0), |case| {
        assert!(has_highs(&case.layout, &case.frame(&PLAIN, true)) && case.layout.is_even[0]);
        case.check("even", &PLAIN, 1);
        case.check("even", &Path { when: When::Always, rejuvenation: 2, ..PLAIN }, 2);
    });
    // Cooling, moves of whole groups, renamed particles and posterior means look at high words, too.
    with_case("k[3] -> i j", &format!("i,j,count\n{twice}"), &size(3.0), |case| {
        let path = Path { rejuvenation: 1, start_scale: 3.0, n_cooling: 3, n_reallocations: 2, ..PLAIN };
        assert!(has_highs(&case.layout, &case.frame(&path, true)));
        assert_eq!(case.posterior::<u8>(&path), case.posterior::<u32>(&path));
    });
    // Cells, too, since the hidden node has its own pseudo-counts; and sums of logs.
    check("k[2] -> i j", &matrix, &skewed("k", 0.85, 2, 500.0), has_highs);
    let of_i: [&[f64]; 2] = [&[0.3, 1.1, 0.2, 0.8, 0.5], &[2.0, 0.2, 0.1, 0.5, 1.4]];
    let of_j: [&[f64]; 2] = [&[0.2, 0.9, 0.4, 0.3, 0.1, 0.6], &[1.5, 0.3, 0.1, 0.7, 0.9, 0.2]];
    check("k[2] -> i j", &matrix, &tables(&[("k", &[&[870.0, 130.0]]), ("i", &of_i), ("j", &of_j)]), has_highs);
    let tiny_i: [&[f64]; 2] = [&[0.3, 1.1, 1e-290, 0.8, 0.5], of_i[1]];
    let tiny_j: [&[f64]; 2] = [&[0.2, 0.9, 0.4, 1e-290, 0.1, 0.6], of_j[1]];
    let tiny = tables(&[("k", &[&[870.0, 130.0]]), ("i", &tiny_i), ("j", &tiny_j)]);
    check("k[2] -> i j", &matrix, &tiny, |layout, frame| layout.is_guarded(0, 1.0) && has_highs(layout, frame));
    // More than one hidden node, so numbers of pairs; and more terms than have loops of their own.
    check("g[2] -> h[2]; g -> i; h -> j", &matrix, &skewed("g", 0.9, 2, 20.0), has_highs);
    let survey: String = (0..32)
        .map(|row| {
            format!("{},{},{},{},{},{}\n", row % 2, row / 2 % 2, row / 4 % 2, row / 8 % 2, row / 16, 2 + row % 16)
        })
        .collect();
    check("lca(2)", &format!("a,b,c,d,e,count\n{survey}"), &skewed("r", 0.85, 2, 500.0), has_highs);
    // More hidden values than are compared one by one.
    with_case("k[30] -> i j", &matrix, &skewed("k", 0.85, 30, 500.0), |case| {
        assert!(has_highs(&case.layout, &case.frame(&PLAIN, true)));
        case.check("thirty values", &Path { when: When::Always, rejuvenation: 2, ..PLAIN }, 1);
    });
}

#[test]
fn uneven_and_zero_pseudo_counts() {
    let uneven = |layout: &Layout, _: &Frame| layout.is_even.contains(&false);
    let full = tables(&[
        ("k", &[&[0.7, 1.9, 0.4]]),
        ("i", &[&[0.3, 1.1, 0.2, 0.8], &[2.0, 0.2, 0.1, 0.5], &[0.6, 0.5, 0.9, 0.1]]),
        ("j", &[&[0.2, 0.9, 0.4, 0.3], &[1.5, 0.3, 0.1, 0.7], &[0.8, 0.8, 2.2, 0.1]]),
    ]);
    check("k[3] -> i j", MATRIX, &full, uneven);
    // The third component cannot occur, and the first never shows j = 2.
    let zeros = tables(&[
        ("k", &[&[0.4, 1.6, 0.0]]),
        ("i", &[&[0.7, 1.3, 0.2, 0.4], &[2.0, 0.5, 0.1, 0.9], &[1.0, 1.0, 1.0, 1.0]]),
        ("j", &[&[0.2, 0.9, 0.0, 0.3], &[0.8, 0.1, 0.6, 0.2], &[0.0, 0.0, 2.0, 0.5]]),
    ]);
    check("k[3] -> i j", MATRIX, &zeros, uneven);
    let marginals = [("k", vec![0.5, 0.2, 0.3]), ("i", vec![0.1, 0.4, 0.3, 0.2])];
    let marginals = marginals.into_iter().map(|(name, shares)| (name.to_owned(), shares)).collect();
    let spec = PriorSpec::Base { alpha: None, marginals: Some(marginals), size: Some(1.9) };
    check("k[3] -> i j", MATRIX, &PriorSettings { spec, ..Default::default() }, uneven);
}

#[test]
fn rows_that_cannot_share_a_division() {
    // A token that differs from another in one of twenty columns shares its component or not, with about the same chance.
    let names: Vec<String> = (0..20).map(|column| format!("c{column}")).collect();
    let row = |first: u32| format!("{first}{},1\n", ",0".repeat(19));
    let data = format!("{},count\n{}", names.join(","), [0, 1, 0, 2, 1].map(row).concat());
    let settings =
        PriorSettings { a: Some(1e-9), pseudo_counts: vec![("r".to_owned(), 1.0)], ..PriorSettings::default() };
    let is_meant = |layout: &Layout, _: &Frame| !layout.is_guarded(0, 1.0) && !layout.may_share_divisions(0, 1.0);
    for size in [2, 3] {
        check(&format!("r[{size}] -> {}", names.join("[3] ") + "[3]"), &data, &settings, is_meant);
    }
}
