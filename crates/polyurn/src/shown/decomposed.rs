//! Factors, marginals and expected counts of a fit, as people and programs want them.

use super::text::{columns, show_short};
use super::{number, tokens_json};
use crate::decomposition::{Decomposition, Factors, Marginal, Shape};
use crate::engine::{Problem, TableMeans};
use crate::error::{Error, Result};
use crate::fit::{Decomposed, Found};
use crate::graph::{Model, NodeIndex};
use serde_json::{Map, Value, json};

/// Entries of each component that are shown when nobody says how many.
const SHOWN_ENTRIES: usize = 8;
/// Components that are shown to people.
const SHOWN_COMPONENTS: usize = 50;

/// What to say about a fit in the words of factorisations.
#[derive(Debug, Clone, Default)]
pub struct DecompositionWish {
    /// Factors and core.
    pub factors: bool,
    /// The largest entries of each component, this many.
    pub top: Option<u32>,
    /// Lists of nodes, with commas between, whose joint probabilities are wanted.
    pub marginals: Vec<String>,
    /// The expected count of every record.
    pub expected: bool,
}

impl DecompositionWish {
    /// True when anything was asked for.
    pub fn is_wanted(&self) -> bool {
        self.factors || self.top.is_some() || self.expected || !self.marginals.is_empty()
    }

    /// Refuses what is not in the model, before any work.
    ///
    /// # Errors
    /// A node that is none.
    pub fn check(&self, model: &Model) -> Result<()> {
        self.marginals.iter().try_for_each(|list| nodes(model, list).map(|_| ()))
    }

    /// Works out what was asked for, from tables of one labelling; `from` says which. `is_seen` says of each node whether the
    /// data show it.
    ///
    /// # Errors
    /// When a table is too large, or the model is no factorisation.
    pub fn report(
        &self,
        problem: &Problem<'_>,
        is_seen: &[bool],
        tables: &[TableMeans],
        intensity: f64,
        from: &str,
    ) -> Result<Decomposed> {
        let marginals = self.marginals.iter().map(|list| nodes(problem.model, list)).collect::<Result<Vec<_>>>()?;
        let decomposition = Decomposition::new(problem, tables, intensity)?;
        let mut object = json!({ "tables_from": from });
        let mut text = String::new();
        if self.factors || self.top.is_some() {
            let factors = decomposition.factors_of(is_seen)?;
            let n_top = self.top.map_or(SHOWN_ENTRIES, |n| n as usize);
            text += &factors_text(problem, &factors, n_top, from);
            object["shape"] = json!(shape_name(factors.shape));
            object["top"] = top_json(problem, &factors, n_top);
            if self.factors {
                add_factors(problem, &factors, &mut object);
                object["squared_error"] = decomposition.squared_error()?.map_or(Value::Null, number);
                let divergence = decomposition.kl_divergence()?;
                object["kl_divergence"] = divergence.map_or(Value::Null, number);
                object["deviance"] = divergence.map_or(Value::Null, |divergence| number(2.0 * divergence));
            }
        }
        if !marginals.is_empty() {
            let found = marginals.iter().map(|nodes| decomposition.marginal(nodes)).collect::<Result<Vec<_>>>()?;
            object["marginals"] = found.iter().map(|marginal| marginal_json(problem, marginal)).collect();
            found.iter().for_each(|marginal| text += &marginal_text(problem, marginal));
        }
        if self.expected {
            let (list, shown) = expected(problem, &decomposition)?;
            object["expected"] = list;
            text += &shown;
        }
        Ok(Decomposed { json: object, text })
    }
}

impl Found {
    /// Factors and the like, from one labelling of the hidden values.
    ///
    /// # Errors
    /// When tables are averages over labellings, when a table is too large, or when the model is no factorisation.
    pub fn decomposition(&self, wish: &DecompositionWish, problem: &Problem<'_>) -> Result<Option<Decomposed>> {
        if !wish.is_wanted() {
            return Ok(None);
        }
        let (tables, from) = self.tables_of_one_labelling(problem)?;
        wish.report(problem, &problem.counts.seen_anywhere(), &tables, self.intensity.mean(), &from).map(Some)
    }
}

/// Nodes of a list of names.
fn nodes(model: &Model, list: &str) -> Result<Vec<NodeIndex>> {
    let of_name = |name: &str| {
        model.find(name.trim()).ok_or_else(|| {
            let known: Vec<&str> = model.nodes().iter().map(|node| node.name.as_str()).collect();
            Error::Setting(format!("--marginal {list}: no node {:?}; there are {}", name.trim(), known.join(", ")))
        })
    };
    list.split(',').map(of_name).collect()
}

fn name<'p>(problem: &'p Problem<'_>, node: NodeIndex) -> &'p str {
    &problem.model.node(node).name
}

fn names<'p>(problem: &'p Problem<'_>, nodes: &[NodeIndex]) -> Vec<&'p str> {
    nodes.iter().map(|&node| name(problem, node)).collect()
}

fn label(problem: &Problem<'_>, node: NodeIndex, value: u32) -> String {
    problem.counts.labels[node.ix()].name(value).into_owned()
}

fn labels(problem: &Problem<'_>, node: NodeIndex) -> Vec<String> {
    (0..problem.model.node(node).size).map(|value| label(problem, node, value)).collect()
}

/// Arrays within arrays, one level for each size.
fn nested(values: &[f64], sizes: &[u32]) -> Value {
    match sizes {
        [] => number(values[0]),
        [_] => values.iter().map(|&value| number(value)).collect(),
        [first, rest @ ..] => values.chunks(values.len() / *first as usize).map(|part| nested(part, rest)).collect(),
    }
}

fn shape_name(shape: Shape) -> &'static str {
    match shape {
        Shape::Matrix => "matrix",
        Shape::Cp => "cp",
        Shape::Tucker => "tucker",
        Shape::Network => "network",
        Shape::NotAFactorisation => "none",
    }
}

fn add_factors(problem: &Problem<'_>, factors: &Factors, object: &mut Value) {
    object["core"] = factors.core.as_ref().map_or(
        Value::Null,
        |core| json!({ "nodes": names(problem, &core.nodes), "values": nested(&core.values, &core.sizes) }),
    );
    let of_matrix = |matrix: &Marginal| {
        let (node, given) = matrix.nodes.split_last().expect("a factor has a node");
        json!({
            "node": name(problem, *node),
            "given": names(problem, given),
            "labels": labels(problem, *node),
            "values": nested(&matrix.values, &matrix.sizes),
        })
    };
    object["factors"] = factors.matrices.iter().map(of_matrix).collect();
    object["sparsity"] = factors.sparsity().map_or(Value::Null, number);
    if let Some(matrix) = factors.as_matrix() {
        let [n_rows, n_components, n_columns] = matrix.sizes;
        object["w"] = nested(&matrix.w, &[n_rows, n_components]);
        object["h"] = nested(&matrix.h, &[n_components, n_columns]);
    }
}

/// The values of the nodes that a row is given.
fn row_values(matrix: &Marginal, row: usize) -> Vec<(NodeIndex, u32)> {
    let mut rest = row;
    let given = matrix.nodes.iter().zip(&matrix.sizes).rev().skip(1);
    let mut values: Vec<(NodeIndex, u32)> = given
        .map(|(&node, &size)| {
            let value = (rest % size as usize) as u32;
            rest /= size as usize;
            (node, value)
        })
        .collect();
    values.reverse();
    values
}

/// The same for people.
fn row_key(problem: &Problem<'_>, matrix: &Marginal, row: usize) -> String {
    let values = row_values(matrix, row);
    let shown =
        values.into_iter().map(|(node, value)| format!("{}={}", name(problem, node), label(problem, node, value)));
    format!("  {}", shown.collect::<Vec<_>>().join(" "))
}

fn n_rows(matrix: &Marginal) -> usize {
    matrix.values.len() / matrix.sizes[matrix.sizes.len() - 1] as usize
}

fn top_json(problem: &Problem<'_>, factors: &Factors, n: usize) -> Value {
    let of_row = |matrix: &Marginal, row: usize| {
        let node = matrix.nodes[matrix.nodes.len() - 1];
        let given = row_values(matrix, row);
        let given: Map<String, Value> = given
            .into_iter()
            .map(|(node, value)| (name(problem, node).to_owned(), json!(label(problem, node, value))))
            .collect();
        let top = matrix.top(row, n);
        json!({
            "node": name(problem, node),
            "given": given,
            "labels": top.iter().map(|&(value, _)| label(problem, node, value)).collect::<Vec<_>>(),
            "values": top.iter().map(|&(_, share)| number(share)).collect::<Vec<_>>(),
        })
    };
    factors.matrices.iter().flat_map(|matrix| (0..n_rows(matrix)).map(move |row| of_row(matrix, row))).collect()
}

fn factors_text(problem: &Problem<'_>, factors: &Factors, n: usize, from: &str) -> String {
    let kind = match factors.shape {
        Shape::Matrix => "X ~ W H",
        Shape::Cp => "weights and factors",
        Shape::Tucker => "core and factors",
        Shape::Network => "factors of several hidden nodes",
        Shape::NotAFactorisation => "seen nodes depend on each other, so factors alone do not give the data back",
    };
    let mut text = format!("\ndecomposition: {kind}; from {from}\n");
    let weights = factors.core.as_ref().filter(|core| core.nodes.len() == 1);
    for matrix in &factors.matrices {
        let (node, given) = matrix.nodes.split_last().expect("a factor has a node");
        text += &format!("\n{} given {}: the largest\n", name(problem, *node), names(problem, given).join(", "));
        let mut lines: Vec<Vec<String>> = Vec::new();
        for row in 0..n_rows(matrix).min(SHOWN_COMPONENTS) {
            let mut line = vec![row_key(problem, matrix, row)];
            if let (Some(core), 1) = (weights, given.len()) {
                line.push(format!("weight {}", show_short(core.values[row])));
            }
            line.extend(
                matrix.top(row, n).iter().map(|&(value, p)| format!("{} {p:.3}", label(problem, *node, value))),
            );
            lines.push(line);
        }
        text += &columns(&lines);
        if n_rows(matrix) > SHOWN_COMPONENTS {
            text += &format!("  and {} more rows (see --json)\n", n_rows(matrix) - SHOWN_COMPONENTS);
        }
    }
    if let Some(sparsity) = factors.sparsity() {
        text += &format!("\nsparsity of the factors (Hoyer) {sparsity:.3}\n");
    }
    text
}

fn marginal_json(problem: &Problem<'_>, marginal: &Marginal) -> Value {
    json!({
        "nodes": names(problem, &marginal.nodes),
        "labels": marginal.nodes.iter().map(|&node| labels(problem, node)).collect::<Vec<_>>(),
        "values": nested(&marginal.values, &marginal.sizes),
    })
}

fn marginal_text(problem: &Problem<'_>, marginal: &Marginal) -> String {
    let mut text = format!("\nprobability of {}\n", names(problem, &marginal.nodes).join(", "));
    let mut lines: Vec<Vec<String>> = Vec::new();
    for row in 0..n_rows(marginal).min(SHOWN_COMPONENTS) {
        let node = marginal.nodes[marginal.nodes.len() - 1];
        let mut line = vec![row_key(problem, marginal, row)];
        line.extend(
            marginal
                .top(row, SHOWN_ENTRIES)
                .iter()
                .map(|&(value, p)| format!("{} {p:.4}", label(problem, node, value))),
        );
        lines.push(line);
    }
    text += &columns(&lines);
    if n_rows(marginal) > SHOWN_COMPONENTS || marginal.sizes[marginal.sizes.len() - 1] as usize > SHOWN_ENTRIES {
        text += "  the largest of each row (see --json for all)\n";
    }
    text
}

/// Expected counts of all records, and the worst misses for people.
fn expected(problem: &Problem<'_>, decomposition: &Decomposition<'_, '_>) -> Result<(Value, String)> {
    let mut list: Vec<Value> = Vec::new();
    let mut misses: Vec<(f64, Vec<String>)> = Vec::new();
    for block in &problem.counts.blocks {
        for (record, m) in decomposition.expected_counts(block)?.into_iter().enumerate() {
            let seen = block.seen.iter().zip(&block.values).map(|(&node, column)| {
                let node = NodeIndex(node);
                (name(problem, node).to_owned(), label(problem, node, column[record]))
            });
            let seen: Vec<(String, String)> = seen.collect();
            let (count, unit) = (block.counts.at(record), problem.counts.unit);
            let x = unit.tokens(count);
            // The signed root of the record's part of the deviance.
            let part = (2.0 * (x * (x / m).ln() - (x - m))).max(0.0).sqrt();
            let key: Vec<String> = seen.iter().map(|(name, label)| format!("{name}={label}")).collect();
            misses.push((
                part,
                vec![
                    format!("  {}", key.join(" ")),
                    format!("{} seen", if unit.is_token() { count.to_string() } else { show_short(x) }),
                    format!("{} expected", show_short(m)),
                ],
            ));
            let record: Map<String, Value> = seen.into_iter().map(|(name, label)| (name, json!(label))).collect();
            list.push(json!({ "record": record, "count": tokens_json(count, unit), "expected": number(m) }));
        }
    }
    misses.sort_by(|x, y| y.0.total_cmp(&x.0));
    misses.truncate(SHOWN_ENTRIES);
    let lines: Vec<Vec<String>> = misses.into_iter().map(|(_, line)| line).collect();
    Ok((Value::Array(list), format!("\nrecords that the fit misses most (see --json for all)\n{}", columns(&lines))))
}
