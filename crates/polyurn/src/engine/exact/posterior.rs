//! The exact posterior of the allocation: every reachable set of table counts with its probability.

use super::counters::Counters;
use super::layer::Layer;
use super::program::{Goal, Program};
use super::run::{Exact, Job};
use super::slots::NO_SLOT;
use crate::control::Control;
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::engine::symmetry::LabelClass;
use crate::engine::tables::{CellMean, LIST_ALL_CHILDREN_UP_TO, Moments, RowMean, TableMeans};
use crate::error::{Error, Result};
use crate::graph::TableIndex;
use crate::math::{Double, Scaled};
use hashbrown::HashMap;

/// Posterior of all table counts of the full allocation.
#[derive(Debug)]
pub struct Posterior<'a> {
    problem_tables: usize,
    counters: Counters<'a>,
    slot_of_counter: Vec<u32>,
    certain: Vec<u64>,
    register_of_slot: Vec<u32>,
    layer: Layer<u32>,
    total: Scaled,
    classes: Vec<LabelClass>,
    /// ln p(sequence), which comes along.
    pub ln_p_sequence: Double,
}

/// Computes the posterior.
///
/// # Errors
/// [`Error::TooCostly`] when the states would not fit, [`Error::Stopped`] when the run was stopped, and an error for
/// data that cannot occur or have unknown cells: they have no such posterior.
pub fn posterior<'a>(exact: &Exact, problem: &Problem<'a>, control: &mut Control<'_>) -> Result<Posterior<'a>> {
    if !problem.counts.unknown.is_empty() {
        return Err(Error::Setting(
            "the posterior of the tables needs a known total, but some cells are unknown (`?`); use score for the totals".into(),
        ));
    }
    let program = Program::compile(problem, Goal::Posterior)?;
    if program.impossible {
        return Err(Error::Setting(
            "the data cannot occur under this model and prior, so there is no posterior".into(),
        ));
    }
    let per_state = Layer::<u32>::bytes_per_state(program.registers.width) as f64;
    exact.check_bytes(program.forecast.n_states, 2.0 * per_state)?;
    let (layer, _) = Job { program: &program, max_memory: exact.max_memory }.seen_tokens::<u32>(control)?;
    let total = layer.total();
    if total.is_zero() {
        return Err(Error::Setting(
            "the data cannot occur under this model and prior, so there is no posterior".into(),
        ));
    }
    let ln_p_sequence = program.closed_form.ln() + Double::from(total.ln());
    let certain = program.counters.certain.iter().zip(&program.slots.certain_extra).map(|(a, b)| a + b).collect();
    Ok(Posterior {
        problem_tables: problem.model.tables().len(),
        counters: program.counters,
        slot_of_counter: program.slots.of_counter,
        certain,
        register_of_slot: program.registers.of_slot,
        layer,
        total,
        classes: program.classes,
        ln_p_sequence,
    })
}

/// The counts of one allocation.
#[derive(Debug, Clone, Copy)]
pub struct Allocation<'p, 'a> {
    posterior: &'p Posterior<'a>,
    state: usize,
}

impl<'p, 'a> Allocation<'p, 'a> {
    fn count(&self, counter: usize) -> u64 {
        let posterior = self.posterior;
        let slot = posterior.slot_of_counter[counter];
        let uncertain = if slot == NO_SLOT {
            0
        } else {
            posterior.layer.state(self.state)[posterior.register_of_slot[slot as usize] as usize]
        };
        posterior.certain[counter] + u64::from(uncertain)
    }

    /// Every cell that may hold tokens: table, values of parents and child, count.
    pub fn cells(&self) -> impl Iterator<Item = (TableIndex, &'p [u32], u64)> + use<'p, 'a> {
        self.of_kind(Kind::Cell)
    }

    /// Every row that may hold tokens: table, values of the parents, count.
    pub fn rows(&self) -> impl Iterator<Item = (TableIndex, &'p [u32], u64)> + use<'p, 'a> {
        self.of_kind(Kind::Row)
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (TableIndex, &'p [u32], u64)> + use<'p, 'a> {
        let (this, counters) = (*self, &self.posterior.counters);
        (0..counters.len())
            .filter(move |&ix| counters.get(ix).kind == kind)
            .map(move |ix| (counters.get(ix).table, counters.values(ix), this.count(ix)))
    }

    /// The effective number of parameters: occupied cells less occupied rows.
    pub fn d_ep(&self) -> f64 {
        let occupied = |counts: &mut dyn Iterator<Item = (TableIndex, &[u32], u64)>| -> usize {
            counts.filter(|(_, _, count)| *count > 0).count()
        };
        occupied(&mut self.cells()) as f64 - occupied(&mut self.rows()) as f64
    }
}

impl<'a> Posterior<'a> {
    /// Number of distinct sets of counts, up to exchangeable labels.
    pub fn n_states(&self) -> usize {
        self.layer.len()
    }

    /// The posterior expectation of any function of the counts that does not depend on how exchangeable hidden values
    /// are labelled.
    pub fn expect(&self, f: impl Fn(&Allocation<'_, 'a>) -> f64) -> f64 {
        (0..self.layer.len()).map(|state| self.probability(state) * f(&Allocation { posterior: self, state })).sum()
    }

    fn probability(&self, state: usize) -> f64 {
        self.layer.weight(state).ratio(self.total)
    }

    /// Posterior mean of the effective number of parameters.
    pub fn d_ep(&self) -> f64 {
        self.expect(|allocation| allocation.d_ep())
    }

    /// For each table the posterior mean of the sum of its squared cell counts.
    pub fn table_sum_of_squares(&self) -> Vec<f64> {
        (0..self.problem_tables as u32)
            .map(|table| {
                self.expect(|allocation| {
                    allocation
                        .cells()
                        .filter(|(of, _, _)| *of == TableIndex(table))
                        .map(|(_, _, count)| (count as f64).powi(2))
                        .sum()
                })
            })
            .collect()
    }

    /// Nodes whose labels the means average over.
    pub fn label_averaged(&self) -> impl Iterator<Item = crate::graph::NodeIndex> + '_ {
        self.classes.iter().flat_map(|class| class.nodes.iter().copied())
    }

    /// Posterior mean and spread of every cell, by E[(alpha + n)/(alpha_row + n_row)] over allocations, averaged over
    /// relabellings of exchangeable hidden values.
    pub fn table_means(&self, problem: &Problem<'_>) -> Vec<TableMeans> {
        let mut tables: Vec<TableMeans> = (0..self.problem_tables as u32)
            .map(|table| TableMeans { table: TableIndex(table), rows: Vec::new() })
            .collect();
        let cell_at: HashMap<(TableIndex, &[u32]), usize> = (0..self.counters.len())
            .filter(|&ix| self.counters.get(ix).kind == Kind::Cell)
            .map(|ix| ((self.counters.get(ix).table, self.counters.values(ix)), ix))
            .collect();
        let mut orbits: HashMap<(TableIndex, Vec<u32>), Vec<Moments>> = HashMap::new();
        for row_ix in (0..self.counters.len()).filter(|&ix| self.counters.get(ix).kind == Kind::Row) {
            let table = self.counters.get(row_ix).table;
            let parents = self.counters.values(row_ix);
            let child_size = problem.model.tables()[table.ix()].child_size;
            let mut key: Vec<u32> = parents.to_vec();
            key.push(0);
            let children: Vec<u32> = (0..child_size)
                .filter(|&child| {
                    key[parents.len()] = child;
                    child_size <= LIST_ALL_CHILDREN_UP_TO || cell_at.contains_key(&(table, key.as_slice()))
                })
                .collect();
            let cells = children
                .into_iter()
                .map(|child| {
                    key[parents.len()] = child;
                    let pseudo = problem.prior.table(table).cell(parents, child).value;
                    let cell_ix = cell_at.get(&(table, key.as_slice())).copied();
                    let moments = self.cell_moments(pseudo, cell_ix, row_ix);
                    orbits.entry((table, self.orbit_key(problem, table, &key))).or_default().push(moments);
                    CellMean { child, mean: moments.mean, sd: 0.0 }
                })
                .collect();
            tables[table.ix()].rows.push(RowMean { parents: parents.to_vec(), cells });
        }
        for table in &mut tables {
            for row in &mut table.rows {
                for cell in &mut row.cells {
                    let key: Vec<u32> = row.parents.iter().copied().chain([cell.child]).collect();
                    let orbit =
                        Moments::even_mixture(&orbits[&(table.table, self.orbit_key(problem, table.table, &key))]);
                    cell.mean = orbit.mean;
                    cell.sd = orbit.variance.sqrt();
                }
            }
            table.rows.sort_by(|a, b| a.parents.cmp(&b.parents));
        }
        tables
    }

    /// Mean and variance of one cell's probability: a mixture over states of Beta distributions. The variance is that
    /// within states plus that of their means, so that nothing cancels for large counts.
    fn cell_moments(&self, pseudo: f64, cell_ix: Option<usize>, row_ix: usize) -> Moments {
        let row_pseudo = self.counters.get(row_ix).pseudo;
        let of_state = |state: usize| -> Moments {
            let allocation = Allocation { posterior: self, state };
            let n_cell = cell_ix.map_or(0, |ix| allocation.count(ix)) as f64;
            let total = row_pseudo.value + allocation.count(row_ix) as f64;
            Moments::of_cell(pseudo + n_cell, total)
        };
        let states = 0..self.layer.len();
        let mean = states.clone().map(|state| self.probability(state) * of_state(state).mean).sum::<f64>();
        let variance = states
            .map(|state| {
                let moments = of_state(state);
                self.probability(state) * (moments.variance + (moments.mean - mean).powi(2))
            })
            .filter(|part| part.is_finite())
            .sum();
        Moments { mean, variance }
    }

    /// The family values with exchangeable labels renamed in order of appearance: equal for all relabellings.
    fn orbit_key(&self, problem: &Problem<'_>, table: TableIndex, family: &[u32]) -> Vec<u32> {
        let member = problem.model.tables()[table.ix()].members[0];
        let nodes = problem.model.node(member).parents.iter().chain([&member]);
        let mut renamed: HashMap<(usize, u32), u32> = HashMap::new();
        let mut n_named: HashMap<(usize, usize), u32> = HashMap::new();
        nodes
            .zip(family)
            .map(|(node, &value)| {
                let class = self.classes.iter().position(|class| class.nodes.contains(node));
                let set = class.and_then(|class| {
                    self.classes[class].sets.iter().position(|set| set.contains(&value)).map(|set| (class, set))
                });
                match set {
                    None => value,
                    Some((class, set)) => *renamed.entry((class, value)).or_insert_with(|| {
                        let n = n_named.entry((class, set)).or_insert(0);
                        let label = self.classes[class].sets[set][*n as usize];
                        *n += 1;
                        label
                    }),
                }
            })
            .collect()
    }
}
