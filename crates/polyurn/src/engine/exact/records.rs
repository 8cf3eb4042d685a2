//! Records as the exact engine sees them: certain ones go straight into the counters, ambiguous ones become a list of
//! ways in which one of their tokens can be allocated.

use super::counters::Counters;
use super::families::count_families;
use crate::counts::MISSING;
use crate::engine::Problem;
use crate::engine::assignments::{for_each_assignment, unseen};
use crate::error::{Error, Result};
use crate::graph::NodeIndex;
use crate::plan::with_ancestors;

/// Largest number of ways to allocate one token; beyond, listing them is hopeless anyway.
const MAX_WAYS: f64 = 4e6;

/// Most counters that the ways of all records may list together. Every record listed has at least two ways, so a
/// problem that comes here has far more states than fit into any memory.
const MAX_LISTED: usize = 5_000_000;

/// One way to allocate a token: the counters it touches, cell and row of each family in turn.
pub type Way = Vec<u32>;

/// Tokens that look the same and can be allocated in more than one way.
#[derive(Debug, Clone)]
pub struct Ambiguous {
    /// How many tokens.
    pub count: u64,
    /// The seen values, one per node, for ordering records.
    pub values: Vec<u32>,
    /// The ways, each possible under the prior.
    pub ways: Vec<Way>,
}

/// All records of a problem, sorted into certain and ambiguous.
#[derive(Debug)]
pub struct Sorted<'a> {
    /// Counters with the certain tokens already in them.
    pub counters: Counters<'a>,
    /// Records with two or more ways.
    pub ambiguous: Vec<Ambiguous>,
    /// The ways of a token in an unknown cell, over all unknown cells; empty without unknown cells.
    pub unknown: Vec<Way>,
    /// True when some record cannot occur.
    pub impossible: bool,
}

/// Sorts the records. With `full` every node is allocated, also barren ones, as quantities of the full allocation need.
///
/// # Errors
/// When one token can be allocated in more ways than can be listed.
pub fn sort_records<'a>(problem: &Problem<'a>, full: bool) -> Result<Sorted<'a>> {
    let model = problem.model;
    let mut sorted = Sorted {
        counters: Counters::new(model, problem.prior),
        ambiguous: Vec::new(),
        unknown: Vec::new(),
        impossible: false,
    };
    let all: Vec<NodeIndex> = model.node_indices().collect();
    let mut record = vec![MISSING; model.n_nodes()];
    let mut n_listed = 0;
    for (block, pattern) in problem.counts.blocks.iter().zip(problem.plan.patterns()) {
        let nodes = if full { &all } else { &pattern.relevant };
        if nodes.iter().all(|node| block.seen.binary_search(&node.0).is_ok()) {
            count_families(&mut sorted.counters, model, block, nodes);
            continue;
        }
        for record_ix in 0..block.n_records() {
            block.read(record_ix, &mut record);
            let count = block.counts.at(record_ix);
            let unseen = unseen(nodes, &record);
            if n_listed > MAX_LISTED {
                return Err(Error::TooCostly(format!(
                    "exact: more than {} of {} distinct records have unseen values, each in several ways; that is beyond \
                     this engine; use fewer records or hidden nodes",
                    sorted.ambiguous.len(),
                    problem.counts.n_records()
                )));
            }
            let seen = record.clone();
            let mut ways = list_ways(problem, &mut sorted.counters, nodes, &unseen, &mut record)?;
            match ways.len() {
                0 => sorted.impossible = true,
                1 => ways.remove(0).into_iter().for_each(|counter| sorted.counters.certain[counter as usize] += count),
                _ => {
                    n_listed += ways.iter().map(Vec::len).sum::<usize>();
                    sorted.ambiguous.push(Ambiguous { count, values: seen, ways });
                }
            }
        }
    }
    for cell in &problem.counts.unknown {
        record.copy_from_slice(cell);
        let nodes = if full { all.clone() } else { relevant_to(problem, &record) };
        let unseen = unseen(&nodes, &record);
        let ways = list_ways(problem, &mut sorted.counters, &nodes, &unseen, &mut record)?;
        sorted.unknown.extend(ways);
    }
    Ok(sorted)
}

/// The seen nodes of a record and their ancestors.
fn relevant_to(problem: &Problem<'_>, record: &[u32]) -> Vec<NodeIndex> {
    let seen: Vec<NodeIndex> = problem.model.node_indices().filter(|node| record[node.ix()] != MISSING).collect();
    with_ancestors(problem.model, &seen)
}

/// Every assignment of the unseen nodes that the prior allows. Leaves `record` as it was.
fn list_ways(
    problem: &Problem<'_>,
    counters: &mut Counters<'_>,
    nodes: &[NodeIndex],
    unseen: &[NodeIndex],
    record: &mut [u32],
) -> Result<Vec<Way>> {
    let n_ways: f64 = unseen.iter().map(|&node| f64::from(problem.model.node(node).size)).product();
    if n_ways > MAX_WAYS || n_ways * 2.0 * nodes.len() as f64 > MAX_LISTED as f64 {
        let names: Vec<&str> = unseen.iter().map(|&node| problem.model.node(node).name.as_str()).collect();
        return Err(Error::TooCostly(format!(
            "exact: one token can be allocated in {n_ways:.3e} ways over {}; that is beyond this engine; use fewer values",
            names.join(", ")
        )));
    }
    let mut ways = Vec::new();
    for_each_assignment(problem.model, unseen, record, |full| {
        let mut way = Vec::with_capacity(2 * nodes.len());
        let mut possible = true;
        for &node in nodes {
            let (cell, row) = counters.family(node, full);
            possible &= !counters.get(cell as usize).pseudo.is_zero();
            way.extend([cell, row]);
        }
        if possible {
            ways.push(way);
        }
    });
    Ok(ways)
}
