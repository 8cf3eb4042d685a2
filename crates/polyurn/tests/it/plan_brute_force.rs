//! Message passing against brute-force sums over all values of the unseen nodes, for any DAG, pattern and cell weights.

use crate::support::{Dag, Random, Rows, completions, name};
use polyurn::counts::MISSING;
use polyurn::graph::{Model, ModelSource, NodeIndex, TableIndex, bind_without_data};
use polyurn::plan::{CellWeights, Evaluator, Pattern, Plan};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// A random weight for every cell of every table.
struct Dense {
    cells: Vec<Vec<f64>>,
    child_sizes: Vec<u32>,
}

impl CellWeights for Dense {
    fn weight(&self, table: TableIndex, row: u64, child: u32) -> f64 {
        self.cells[table.ix()][row as usize * self.child_sizes[table.ix()] as usize + child as usize]
    }
}

impl Dense {
    /// Normalised rows, or weights over many orders of magnitude; some cells may be zero.
    fn random(rng: &mut Random, model: &Model, normalised: bool, zeros: f64, spread: f64) -> Self {
        let child_sizes: Vec<u32> = model.tables().iter().map(|table| table.child_size).collect();
        let cells = model
            .tables()
            .iter()
            .map(|table| {
                let mut cells: Vec<f64> =
                    rng.weights(table.n_cells().unwrap()).into_iter().map(|weight| weight.powf(spread)).collect();
                for row in cells.chunks_exact_mut(table.child_size as usize) {
                    for at in 1..row.len() {
                        if rng.chance(zeros) {
                            row[at] = 0.0;
                        }
                    }
                    let sum: f64 = row.iter().sum();
                    if normalised {
                        row.iter_mut().for_each(|weight| *weight /= sum);
                    }
                }
                cells
            })
            .collect();
        Dense { cells, child_sizes }
    }
}

fn model_of(dag: &Dag) -> Model {
    bind_without_data(&ModelSource::parse(&dag.text()).unwrap(), None).unwrap().0
}

struct Instance {
    model: Model,
    plan: Plan,
    weights: Dense,
    record: Vec<u32>,
}

impl Instance {
    fn random(rng: &mut Random, max_nodes: usize) -> Self {
        let n_nodes = rng.between(1, max_nodes).max(rng.between(1, max_nodes));
        let density = [0.3, 0.6, 0.9][rng.between(0, 2)];
        let mut dag = Dag::random(rng, n_nodes, (1, if n_nodes <= 4 { 4 } else { 3 }), density);
        if rng.chance(0.25) {
            dag.tie_some(rng);
        }
        let model = model_of(&dag);
        let (normalised, zeros) = (rng.chance(0.5), if rng.chance(0.3) { 0.3 } else { 0.0 });
        let spread = if rng.chance(0.2) { 25.0 } else { 1.0 };
        let weights = Dense::random(rng, &model, normalised, zeros, spread);
        let share = [0.2, 0.5, 0.8][rng.between(0, 2)];
        let record: Vec<u32> =
            dag.sizes.iter().map(|&size| if rng.chance(share) { rng.value(size) } else { MISSING }).collect();
        let seen: Vec<NodeIndex> = model.node_indices().filter(|node| record[node.ix()] != MISSING).collect();
        let plan = Plan::compile(&model, &[seen]).unwrap();
        Instance { model, plan, weights, record }
    }

    fn pattern(&self) -> &Pattern {
        &self.plan.patterns()[0]
    }

    /// Every assignment of the relevant unseen nodes (others stay missing) with its weight.
    fn brute_force(&self) -> Vec<(Vec<u32>, f64)> {
        let relevant = &self.pattern().relevant;
        let token: Vec<Option<u32>> = self
            .model
            .node_indices()
            .map(|node| match self.record[node.ix()] {
                // One value stands in for a barren node; it is never read.
                MISSING => (!relevant.contains(&node)).then_some(0),
                value => Some(value),
            })
            .collect();
        completions(&self.model, &token)
            .into_iter()
            .map(|mut full| {
                let weight = relevant
                    .iter()
                    .map(|&node| {
                        let (row, child) = self.cell(node, &full);
                        self.weights.weight(self.model.node(node).table, row, child)
                    })
                    .product();
                for node in self.model.node_indices().filter(|node| !relevant.contains(node)) {
                    full[node.ix()] = MISSING;
                }
                (full, weight)
            })
            .collect()
    }

    /// Row (parents in node order, last fastest) and child value of a node in a full assignment.
    fn cell(&self, node: NodeIndex, full: &[u32]) -> (u64, u32) {
        let parents = &self.model.node(node).parents;
        let row = parents
            .iter()
            .fold(0u64, |row, &parent| row * u64::from(self.model.node(parent).size) + u64::from(full[parent.ix()]));
        (row, full[node.ix()])
    }

    fn show(&self) -> String {
        format!("{} seeing {:?}", self.model.to_text(), self.record)
    }
}

#[test]
fn probabilities_and_expected_families_equal_brute_force_sums() {
    let mut rng = Random::new(401);
    let mut evaluator = Evaluator::new();
    let (mut n_zero, mut n_wide) = (0, 0);
    for _ in 0..500 {
        let instance = Instance::random(&mut rng, 7);
        let (plan, pattern, record, weights) =
            (&instance.plan, instance.pattern(), &instance.record, &instance.weights);
        let all = instance.brute_force();
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        let ln = evaluator.ln_probability(plan, pattern, record, weights);
        let mut emitted: BTreeMap<(NodeIndex, u64, u32), f64> = BTreeMap::new();
        let same = evaluator.expected_families(plan, pattern, record, weights, |node, row, child, probability| {
            *emitted.entry((node, row, child)).or_insert(0.0) += probability;
        });
        assert_eq!(same.to_bits(), ln.to_bits());
        if total == 0.0 {
            assert_eq!(ln, f64::NEG_INFINITY, "{}", instance.show());
            assert!(emitted.is_empty());
            n_zero += 1;
            continue;
        }
        n_wide += usize::from(pattern.elimination.treewidth() >= 2);
        // Relative in probability is absolute in its log, up to rounding of a large log.
        let tolerance = 1e-12 + 4.0 * f64::EPSILON * ln.abs();
        assert!((ln - total.ln()).abs() <= tolerance, "{}: {ln} {}", instance.show(), total.ln());
        let mut wanted: BTreeMap<(NodeIndex, u64, u32), f64> = BTreeMap::new();
        for (full, weight) in &all {
            for &node in &pattern.relevant {
                let (row, child) = instance.cell(node, full);
                *wanted.entry((node, row, child)).or_insert(0.0) += weight / total;
            }
        }
        for (cell, want) in wanted {
            let got = emitted.remove(&cell).unwrap_or(0.0);
            assert!((got - want).abs() <= 1e-12, "{}: {cell:?} {got} {want}", instance.show());
        }
        assert!(emitted.is_empty(), "{}: {emitted:?}", instance.show());
    }
    assert!(n_zero > 5 && n_wide >= 40, "{n_zero} {n_wide}");
}

#[test]
fn normalised_rows_give_probabilities_that_add_up_to_one() {
    let mut rng = Random::new(402);
    let mut evaluator = Evaluator::new();
    for _ in 0..40 {
        let n_nodes = rng.between(2, 5);
        let dag = Dag::random(&mut rng, n_nodes, (1, 3), 0.5);
        let model = model_of(&dag);
        let weights = Dense::random(&mut rng, &model, true, 0.1, 1.0);
        let seen: Vec<NodeIndex> = model.node_indices().filter(|_| rng.chance(0.5)).collect();
        let plan = Plan::compile(&model, std::slice::from_ref(&seen)).unwrap();
        // All values of the seen nodes; the unseen ones stand at zero here.
        let token: Vec<Option<u32>> = model.node_indices().map(|node| (!seen.contains(&node)).then_some(0)).collect();
        let sum: f64 = completions(&model, &token)
            .into_iter()
            .map(|full| {
                let value = |node: NodeIndex| if seen.contains(&node) { full[node.ix()] } else { MISSING };
                let record: Vec<u32> = model.node_indices().map(value).collect();
                evaluator.ln_probability(&plan, &plan.patterns()[0], &record, &weights).exp()
            })
            .sum();
        assert!((sum - 1.0).abs() < 1e-12, "{}: {sum}", model.to_text());
    }
}

#[test]
fn draws_have_the_posterior_distribution_of_the_unseen_nodes() {
    const N_DRAWS: usize = 20_000;
    let mut rng = Random::new(403);
    let mut evaluator = Evaluator::new();
    let mut n_checked = 0;
    while n_checked < 20 {
        let instance = Instance::random(&mut rng, 6);
        let all = instance.brute_force();
        let total: f64 = all.iter().map(|(_, weight)| weight).sum();
        if all.len() < 4 || total == 0.0 {
            continue;
        }
        n_checked += 1;
        let (plan, pattern, weights) = (&instance.plan, instance.pattern(), &instance.weights);
        let ln = evaluator.ln_probability(plan, pattern, &instance.record, weights);
        let mut seen_of: HashMap<Vec<u32>, f64> = HashMap::new();
        for _ in 0..N_DRAWS {
            let mut record = instance.record.clone();
            let same = evaluator.draw(plan, pattern, &mut record, weights, &mut rng.0);
            assert_eq!(same.to_bits(), ln.to_bits());
            *seen_of.entry(record).or_insert(0.0) += 1.0;
        }
        let n = N_DRAWS as f64;
        let (mut chi_square, mut n_cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
        for (full, weight) in &all {
            let p = weight / total;
            let count = seen_of.remove(full).unwrap_or(0.0);
            if p == 0.0 {
                assert_eq!(count, 0.0, "an impossible assignment was drawn");
            } else if p * n >= 10.0 {
                // Standard error sqrt(n p (1 - p)).
                let spread = (n * p * (1.0 - p)).sqrt().max(1e-9);
                assert!(((count - n * p) / spread).abs() <= 4.5, "{}: {full:?} {count} {}", instance.show(), n * p);
                chi_square += (count - n * p).powi(2) / (n * p);
                n_cells += 1.0;
            } else {
                rest = (rest.0 + p, rest.1 + count);
            }
        }
        assert!(seen_of.is_empty(), "{}: drawn but not listed {seen_of:?}", instance.show());
        // The rare ones together: normal enough, or else a Poisson count with a bound of its own.
        let spread = (n * rest.0 * (1.0 - rest.0)).sqrt();
        assert!((rest.1 - n * rest.0).abs() <= 4.5 * spread + 10.0, "{}: {rest:?}", instance.show());
        // Chi-square with n_cells - 1 degrees of freedom has standard deviation sqrt(2 (n_cells - 1)).
        if n_cells > 2.0 {
            let z = (chi_square - (n_cells - 1.0)) / (2.0 * (n_cells - 1.0)).sqrt();
            assert!(z <= 4.5, "{}: chi-square {chi_square} over {n_cells} cells", instance.show());
        }
    }
}

#[test]
fn an_impossible_record_is_left_as_it_is_by_draw() {
    let model = bind_without_data(&ModelSource::parse("z[2] -> x[2]").unwrap(), None).unwrap().0;
    let weights = Dense { cells: vec![vec![0.5, 0.5], vec![1.0, 0.0, 1.0, 0.0]], child_sizes: vec![2, 2] };
    let plan = Plan::compile(&model, &[vec![NodeIndex(1)]]).unwrap();
    let mut record = vec![MISSING, 1];
    let ln = Evaluator::new().draw(&plan, &plan.patterns()[0], &mut record, &weights, &mut Random::new(1).0);
    assert_eq!((ln, record), (f64::NEG_INFINITY, vec![MISSING, 1]));
}

/// ln of the weight of 400 seen leaves of a hidden root, 2w each under its value 0 and w under its value 1.
fn four_hundred_leaves(w: f64) -> f64 {
    struct Leaves(f64);
    impl CellWeights for Leaves {
        fn weight(&self, table: TableIndex, row: u64, child: u32) -> f64 {
            if table.ix() == 0 { [0.3, 0.7][child as usize] } else { [2.0, 1.0][row as usize] * self.0 }
        }
    }
    let leaves: Vec<String> = (0..400).map(|leaf| format!("x{leaf}[2]")).collect();
    let text = format!("z[2] -> {}", leaves.join(" "));
    let model = bind_without_data(&ModelSource::parse(&text).unwrap(), None).unwrap().0;
    let plan = Plan::compile(&model, &[(1..=400).map(NodeIndex).collect()]).unwrap();
    let mut record = vec![0; 401];
    record[0] = MISSING;
    Evaluator::new().ln_probability(&plan, &plan.patterns()[0], &record, &Leaves(w))
}

#[test]
fn very_long_products_of_small_weights_do_not_underflow() {
    // 0.3 (2w)^400 + 0.7 w^400; the second is 2^-400 of the first.
    let want = 0.3f64.ln() + 400.0 * 2e-30f64.ln();
    let ln = four_hundred_leaves(1e-30);
    assert!((ln - want).abs() < 1e-12 * want.abs(), "{ln} {want}");
}

#[test]
fn very_long_products_of_large_weights_do_not_overflow() {
    let want = 0.3f64.ln() + 400.0 * 2e30f64.ln();
    let ln = four_hundred_leaves(1e30);
    assert!((ln - want).abs() < 1e-12 * want.abs(), "{ln} {want}");
}

#[test]
fn patterns_that_differ_only_in_dropped_nodes_share_an_elimination() {
    let questions: Vec<String> = (0..40).map(|question| format!("q{question}[4]")).collect();
    let text = format!("class[5] -> {}", questions.join(" "));
    let model = bind_without_data(&ModelSource::parse(&text).unwrap(), None).unwrap().0;
    let mut rng = Random::new(404);
    let patterns: Vec<Vec<NodeIndex>> = (0..3000)
        .map(|_| {
            let mut seen: Vec<NodeIndex> = (1..=40).map(NodeIndex).filter(|_| rng.chance(0.7)).collect();
            if seen.is_empty() {
                seen.push(NodeIndex(1));
            }
            seen
        })
        .collect();
    let start = Instant::now();
    let plan = Plan::compile(&model, &patterns).unwrap();
    assert_eq!((plan.patterns().len(), plan.n_eliminations()), (3000, 1));
    // A tenth of a second here; far below what 3000 eliminations of their own would take.
    assert!(start.elapsed().as_secs_f64() < 5.0, "{:?}", start.elapsed());
    // The shared elimination answers for each of them.
    let weights = Dense::random(&mut rng, &model, true, 0.0, 1.0);
    let mut evaluator = Evaluator::new();
    for pattern in plan.patterns().iter().take(50) {
        let mut record = vec![MISSING; 41];
        pattern.seen.iter().for_each(|node| record[node.ix()] = rng.value(4));
        let by_class = (0..5).map(|class| {
            let answers = pattern
                .seen
                .iter()
                .map(|node| weights.weight(model.node(*node).table, u64::from(class), record[node.ix()]));
            weights.weight(TableIndex(0), 0, class) * answers.product::<f64>()
        });
        let want = by_class.sum::<f64>().ln();
        let ln = evaluator.ln_probability(&plan, pattern, &record, &weights);
        assert!((ln - want).abs() < 1e-12 + 4.0 * f64::EPSILON * want.abs(), "{ln} {want}");
    }
}

#[test]
fn patterns_share_an_elimination_also_when_hidden_leaves_drop_out_with_the_seen_ones() {
    let model = bind_without_data(&ModelSource::parse("z[3] -> a[2] b[2] h[2] -> c[2]").unwrap(), None).unwrap().0;
    let node = |text: &str| model.find(text).unwrap();
    let sets = [vec!["a"], vec!["b"], vec!["a", "b"], vec!["c"], vec!["a", "c"], vec!["a", "b", "c"]];
    let sets: Vec<Vec<NodeIndex>> = sets
        .iter()
        .map(|names| {
            let mut nodes: Vec<NodeIndex> = names.iter().map(|&text| node(text)).collect();
            nodes.sort_unstable();
            nodes
        })
        .collect();
    let plan = Plan::compile(&model, &sets).unwrap();
    let pointers: Vec<*const _> =
        plan.patterns().iter().map(|pattern| std::sync::Arc::as_ptr(&pattern.elimination)).collect();
    assert_eq!(pointers[0], pointers[1]);
    assert_eq!(pointers[0], pointers[2]);
    assert_ne!(pointers[0], pointers[3]);
}

#[test]
fn records_of_random_data_are_evaluated_under_their_own_patterns() {
    // Through a problem: one pattern per block, in the same order.
    let mut rng = Random::new(405);
    for _ in 0..20 {
        let dag = Dag::random(&mut rng, 4, (2, 3), 0.5);
        let rows = Rows::random(&mut rng, &dag, vec![0, 2, 3], 12, 30, 0.3);
        let binding = rows.bind(&dag);
        crate::support::with_problem(&binding, &crate::support::settings(1.0), |problem| {
            for (block, pattern) in binding.counts.blocks.iter().zip(problem.plan.patterns()) {
                assert_eq!(block.seen, pattern.seen.iter().map(|node| node.0).collect::<Vec<_>>());
                let hidden = binding.model.find(&name(1)).unwrap();
                assert!(!pattern.seen.contains(&hidden));
                assert!(pattern.unseen.iter().all(|node| pattern.relevant.contains(node)));
                assert_eq!(pattern.closed.len() + pattern.open.len(), pattern.relevant.len());
            }
        });
    }
}
