//! `polyurn info`: what a model is made of, and what it will cost.

use crate::args::InfoArgs;
use crate::load::{load_bound, load_model, parse_seen};
use crate::output::{Failure, Output};
use crate::text::{columns, plural, show_short};
use polyurn::Warning;
use polyurn::counts::{Counts, Labels};
use polyurn::engine::Problem;
use polyurn::engine::enumerate::Enumeration;
use polyurn::engine::exact::{Cost, Exact};
use polyurn::graph::{JunctionTree, Model, NodeIndex, Undirected, bind_without_data, dot};
use polyurn::plan::{Pattern, Plan};
use polyurn::prior::{GammaTotal, Prior, PseudoCounts};
use polyurn::shown::warnings_json;
use serde_json::{Value, json};
use std::path::Path;

/// Patterns of seen nodes that are shown to people.
const SHOWN_PATTERNS: usize = 6;

/// Describes a model.
pub fn run(args: &InfoArgs) -> Result<(), Failure> {
    if let Some(path) = &args.fit {
        return super::info_fit::run(args, path);
    }
    let model = args.model.as_deref().unwrap_or_default();
    let mut inputs: Vec<&Path> = vec![Path::new(model)];
    inputs.extend(args.data.as_deref());
    let output = Output::open(&args.output, &inputs)?;
    let (source, settings) = load_model(model, &args.prior)?.with_prior()?.single()?;
    let (model, is_seen, counts, mut warnings) = match &args.data {
        Some(path) => {
            let binding = load_bound(&source, path, &args.reading, false, &output)?;
            let is_seen = binding.counts.seen_anywhere();
            (binding.model, is_seen, Some(binding.counts), binding.warnings)
        }
        None => {
            let seen = args.seen.as_deref().map(parse_seen).transpose()?;
            let (model, is_seen, warnings) = bind_without_data(&source, seen.as_deref())?;
            (model, is_seen, None, warnings)
        }
    };
    if args.dot {
        return output.write(|out| out.write_all(dot(&model, &is_seen).as_bytes()));
    }
    let prior = Prior::build(&model, &settings)?;
    if !prior.is_consistent() {
        warnings.push(Warning::InconsistentPrior);
    }
    output.warn(&warnings);
    let seen_sets: Vec<Vec<NodeIndex>> = match &counts {
        Some(counts) => {
            counts.blocks.iter().map(|block| block.seen.iter().map(|&node| NodeIndex(node)).collect()).collect()
        }
        None => vec![model.node_indices().filter(|node| is_seen[node.ix()]).collect()],
    };
    let info = Info {
        plan: Plan::compile(&model, &seen_sets),
        costs: counts.as_ref().map(|counts| Costs::new(&model, &prior, counts, args.limits.max_memory)),
        moral: Moral::new(&model),
        model: &model,
        prior: &prior,
        counts: counts.as_ref(),
        is_seen,
        warnings,
        max_memory: args.limits.max_memory,
    };
    output.result(|| info.json(&output), || info.text())
}

/// What each engine will cost, or why it cannot be said.
struct Costs {
    /// The evidence, by `score`.
    score: Result<Cost, String>,
    /// The posterior of the tables, by `fit`.
    fit: Result<Cost, String>,
    /// The number of tensors that `enumerate` will list.
    tensors: Result<f64, String>,
}

impl Costs {
    fn new(model: &Model, prior: &Prior, counts: &Counts, max_memory: u64) -> Self {
        let exact = Exact { max_memory };
        let problem = Problem::new(model, prior, counts).map_err(|error| error.to_string());
        let with = |f: &dyn Fn(&Problem<'_>) -> polyurn::Result<Cost>| -> Result<Cost, String> {
            f(problem.as_ref().map_err(String::clone)?).map_err(|error| error.to_string())
        };
        let tensors = || -> Result<f64, String> {
            let problem = problem.as_ref().map_err(String::clone)?;
            // The number of tensors does not depend on the total's prior.
            let total = GammaTotal { shape: 1.0, rate: 1.0 };
            Ok(Enumeration::new(problem, total).map_err(|error| error.to_string())?.n_tensors)
        };
        Costs {
            score: with(&|problem| exact.cost(problem)),
            fit: if counts.unknown.is_empty() {
                with(&|problem| exact.posterior_cost(problem))
            } else {
                Err("the posterior of the tables needs a known total".into())
            },
            tensors: tensors(),
        }
    }
}

/// The moral graph: parents of a common child joined, arrows dropped.
struct Moral {
    edges: Vec<(usize, usize)>,
    /// Children whose parents are not all joined already.
    colliders: Vec<usize>,
    tree: JunctionTree,
    fill: Vec<(usize, usize)>,
}

impl Moral {
    fn new(model: &Model) -> Self {
        let graph = Undirected::moral(model);
        let n = model.n_nodes();
        let edges = (0..n).flat_map(|a| graph.neighbours(a).filter(move |&b| b > a).map(move |b| (a, b))).collect();
        let joined =
            |a: NodeIndex, b: NodeIndex| model.node(a).parents.contains(&b) || model.node(b).parents.contains(&a);
        let collides = |node: &usize| {
            let parents = &model.nodes()[*node].parents;
            parents.iter().enumerate().any(|(ix, &a)| parents[..ix].iter().any(|&b| !joined(a, b)))
        };
        let vertices: Vec<usize> = (0..n).collect();
        let triangulation = graph.eliminate(&vertices, |node| f64::from(model.nodes()[node].size).ln());
        Moral {
            edges,
            colliders: (0..n).filter(collides).collect(),
            tree: JunctionTree::new(triangulation.cliques),
            fill: triangulation.fill,
        }
    }

    /// A DAG without unjoined parents says the same as its moral graph.
    fn is_equivalent(&self) -> bool {
        self.colliders.is_empty()
    }
}

struct Info<'a> {
    model: &'a Model,
    prior: &'a Prior,
    counts: Option<&'a Counts>,
    is_seen: Vec<bool>,
    plan: polyurn::Result<Plan>,
    moral: Moral,
    costs: Option<Costs>,
    warnings: Vec<Warning>,
    max_memory: u64,
}

impl Info<'_> {
    fn name(&self, node: usize) -> &str {
        &self.model.nodes()[node].name
    }

    fn names(&self, nodes: &[NodeIndex]) -> Vec<&str> {
        nodes.iter().map(|node| self.name(node.ix())).collect()
    }

    fn role(&self, node: usize) -> &'static str {
        match (self.is_seen[node], self.counts) {
            (false, _) => "hidden",
            (true, Some(counts)) if !counts.seen_everywhere()[node] => "partly seen",
            (true, _) => "seen",
        }
    }

    /// Rows times (values - 1), each tied table once.
    fn free_parameters(&self) -> f64 {
        self.model.tables().iter().map(|table| table.n_rows() * (f64::from(table.child_size) - 1.0)).sum()
    }

    /// Maximal cliques and separators of a pattern's unseen part.
    fn unseen_tree(&self, pattern: &Pattern) -> JunctionTree {
        let mut cliques: Vec<Vec<usize>> = pattern
            .elimination
            .buckets()
            .iter()
            .map(|bucket| {
                let mut clique: Vec<usize> = bucket.scope.iter().map(|node| node.ix()).collect();
                clique.sort_unstable();
                clique
            })
            .collect();
        let all = cliques.clone();
        let inside = |small: &[usize], big: &[usize]| small.len() < big.len() && small.iter().all(|x| big.contains(x));
        cliques.retain(|clique| !all.iter().any(|other| inside(clique, other)));
        JunctionTree::new(cliques)
    }

    fn pattern_json(&self, ix: usize, pattern: &Pattern) -> Value {
        let tree = self.unseen_tree(pattern);
        let left_out: Vec<&str> = self
            .model
            .node_indices()
            .filter(|node| !pattern.relevant.contains(node))
            .map(|node| self.name(node.ix()))
            .collect();
        let mut value = json!({
            "seen": self.names(&pattern.seen),
            "unseen": self.names(&pattern.unseen),
            "left_out": left_out,
            "cliques": self.sets(&tree.cliques),
            "separators": self.separators(&tree),
            "treewidth": pattern.elimination.treewidth(),
            "numbers_per_record": pattern.elimination.n_states(),
        });
        if let Some(counts) = self.counts {
            let block = &counts.blocks[ix];
            value["records"] = block.n_records().into();
            value["tokens"] = block.counts.iter().sum::<u64>().into();
        }
        value
    }

    fn sets(&self, cliques: &[Vec<usize>]) -> Value {
        cliques
            .iter()
            .map(|clique| clique.iter().map(|&node| self.name(node)).collect::<Vec<_>>())
            .collect::<Vec<_>>()
            .into()
    }

    fn separators(&self, tree: &JunctionTree) -> Value {
        let sets: Vec<Vec<usize>> = tree.separators.iter().map(|(_, _, shared)| shared.clone()).collect();
        self.sets(&sets)
    }

    fn json(&self, output: &Output) -> Value {
        let nodes: Vec<Value> = self
            .model
            .nodes()
            .iter()
            .enumerate()
            .map(|(ix, node)| {
                json!({ "name": node.name, "size": node.size, "role": self.role(ix), "parents": self.names(&node.parents) })
            })
            .collect();
        let tables: Vec<Value> = self
            .model
            .tables()
            .iter()
            .enumerate()
            .map(|(ix, table)| {
                let (cell, row) = even(self.prior.table(polyurn::graph::TableIndex(ix as u32)));
                json!({
                    "nodes": self.names(&table.members),
                    "given": self.names(&self.model.node(table.members[0]).parents),
                    "rows": table.n_rows(),
                    "values": table.child_size,
                    "pseudo_count": cell,
                    "row_pseudo_count": row,
                })
            })
            .collect();
        let edge = |&(a, b): &(usize, usize)| json!([self.name(a), self.name(b)]);
        let patterns: Vec<Value> = match &self.plan {
            Ok(plan) => {
                plan.patterns().iter().enumerate().map(|(ix, pattern)| self.pattern_json(ix, pattern)).collect()
            }
            Err(_) => Vec::new(),
        };
        let cost = |cost: &Result<Cost, String>| match cost {
            Ok(cost) => json!({
                "states": cost.states, "transitions": cost.transitions, "bytes": cost.bytes, "seconds": cost.seconds,
                "fits": cost.bytes <= self.max_memory as f64,
            }),
            Err(why) => json!({ "fits": false, "why": why }),
        };
        let costs = self.costs.as_ref().map(|costs| {
            let tensors = match &costs.tensors {
                Ok(tensors) => json!({ "tensors": crate::output::number(tensors.min(f64::MAX)) }),
                Err(why) => json!({ "why": why }),
            };
            json!({ "exact": cost(&costs.score), "exact_posterior": cost(&costs.fit), "enumerate": tensors })
        });
        json!({
            "model": self.model.to_text(),
            "nodes": nodes,
            "tables": tables,
            "free_parameters": self.free_parameters(),
            "moral": {
                "edges": self.moral.edges.iter().map(edge).collect::<Vec<_>>(),
                "equivalent": self.moral.is_equivalent(),
                "colliders": self.moral.colliders.iter().map(|&node| self.name(node)).collect::<Vec<_>>(),
                "added_by_triangulation": self.moral.fill.iter().map(edge).collect::<Vec<_>>(),
                "cliques": self.sets(&self.moral.tree.cliques),
                "separators": self.separators(&self.moral.tree),
                "treewidth": self.moral.tree.treewidth(),
            },
            "patterns": patterns,
            "plan_error": self.plan.as_ref().err().map(ToString::to_string),
            "eliminations": self.plan.as_ref().ok().map(Plan::n_eliminations),
            "cost": costs,
            "tokens": self.counts.map(|counts| counts.n_tokens),
            "records": self.counts.map(Counts::n_records),
            "labels": self.counts.map(|counts| self.labels_json(counts)),
            "seed": output.seed(),
            "warnings": warnings_json(&self.warnings),
            "version": polyurn::VERSION,
        })
    }

    /// Labels of seen nodes in the order of their values, so that prior files can be written to match.
    fn labels_json(&self, counts: &Counts) -> Value {
        let mut object = serde_json::Map::new();
        for (ix, labels) in counts.labels.iter().enumerate().filter(|(ix, _)| self.is_seen[*ix]) {
            if let Labels::Named(names) = labels {
                object.insert(self.name(ix).to_owned(), names.clone().into());
            }
        }
        object.into()
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.model.to_text());
        let mut rows = vec![["node", "size", "role", "given", "rows", "pseudo-count"].map(str::to_owned).to_vec()];
        for (ix, node) in self.model.nodes().iter().enumerate() {
            let table = &self.model.tables()[node.table.ix()];
            let tied = if table.members.len() > 1 && table.members[0].ix() != ix {
                format!("as {}", self.name(table.members[0].ix()))
            } else {
                even(self.prior.table(node.table)).0.as_f64().map_or("varies".into(), show_short)
            };
            rows.push(vec![
                node.name.clone(),
                node.size.to_string(),
                self.role(ix).into(),
                self.names(&node.parents).join(" "),
                show_short(table.n_rows()),
                tied,
            ]);
        }
        text += &columns(&rows);
        text += &format!("\nfree parameters  {}\n", show_short(self.free_parameters()));
        text += &self.moral_text();
        text += &self.patterns_text();
        text += &self.cost_text();
        text
    }

    fn show_tree(&self, tree: &JunctionTree) -> String {
        let set =
            |nodes: &[usize]| format!("{{{}}}", nodes.iter().map(|&n| self.name(n)).collect::<Vec<_>>().join(" "));
        let cliques: Vec<String> = tree.cliques.iter().map(|clique| set(clique)).collect();
        let separators: Vec<String> = tree.separators.iter().map(|(_, _, shared)| set(shared)).collect();
        let separators = if separators.is_empty() { "none".into() } else { separators.join(" ") };
        format!("cliques {}, separators {separators}, treewidth {}", cliques.join(" "), tree.treewidth())
    }

    fn moral_text(&self) -> String {
        let edges: Vec<String> =
            self.moral.edges.iter().map(|&(a, b)| format!("{} - {}", self.name(a), self.name(b))).collect();
        let edges = if edges.is_empty() { "no edges".into() } else { edges.join(", ") };
        let verdict = if self.moral.is_equivalent() {
            "the model says the same as this undirected graph".to_owned()
        } else {
            let colliders: Vec<&str> = self.moral.colliders.iter().map(|&node| self.name(node)).collect();
            format!("the model says more than this graph: arrows meet at {}", colliders.join(", "))
        };
        format!(
            "\nmoral form       {edges}\n                 {verdict}\n                 {}\n",
            self.show_tree(&self.moral.tree)
        )
    }

    fn patterns_text(&self) -> String {
        let plan = match &self.plan {
            Ok(plan) => plan,
            Err(error) => return format!("\nseen             {error}\n"),
        };
        let patterns = plan.patterns();
        let mut text = String::new();
        for (ix, pattern) in patterns.iter().take(SHOWN_PATTERNS).enumerate() {
            let seen = self.names(&pattern.seen);
            let seen = if seen.is_empty() { "nothing".into() } else { seen.join(" ") };
            let records = self.counts.map_or(String::new(), |counts| {
                format!(" ({})", plural(counts.blocks[ix].n_records() as u64, "record"))
            });
            text += &format!("\nseen             {seen}{records}\n");
            if pattern.unseen.is_empty() {
                text += "                 nothing to sum out\n";
            } else {
                text += &format!(
                    "                 sums out {}: {}\n                 {} per record\n",
                    self.names(&pattern.unseen).join(" "),
                    self.show_tree(&self.unseen_tree(pattern)),
                    plural(pattern.elimination.n_states() as u64, "number")
                );
            }
        }
        if patterns.len() > SHOWN_PATTERNS {
            text += &format!(
                "\nand {} more patterns of seen nodes; all of them share {}\n",
                patterns.len() - SHOWN_PATTERNS,
                plural(plan.n_eliminations() as u64, "elimination")
            );
        }
        text
    }

    fn cost_text(&self) -> String {
        let Some(costs) = &self.costs else { return String::new() };
        let show = |cost: &Result<Cost, String>| match cost {
            Err(why) => why.trim_start_matches("exact: ").to_owned(),
            Ok(cost) if cost.states > 1e18 => "more than 1e18 states, far beyond any memory limit".into(),
            Ok(cost) => {
                let fits = if cost.bytes <= self.max_memory as f64 { "fits" } else { "is beyond" };
                let (states, bytes) = (cost.show_states(), show_short(cost.bytes));
                format!("{states}, {bytes} bytes, {} s; {fits} the memory limit", show_short(cost.seconds))
            }
        };
        let tensors = match &costs.tensors {
            Err(why) => why.trim_start_matches("enumerate: ").to_owned(),
            Ok(tensors) if *tensors > 1e18 => "more than 1e18 tensors".into(),
            Ok(tensors) => format!("{} tensors", show_short(*tensors)),
        };
        format!(
            "\ncost of score    exact: {}\ncost of fit      exact: {}\nenumerate        {tensors}\n",
            show(&costs.score),
            show(&costs.fit)
        )
    }
}

/// Pseudo-count of a cell and of a row where they are the same everywhere, else null.
fn even(table: &PseudoCounts) -> (Value, Value) {
    match table {
        PseudoCounts::Even { cell, row } => (cell.value.into(), row.value.into()),
        _ => (Value::Null, Value::Null),
    }
}
