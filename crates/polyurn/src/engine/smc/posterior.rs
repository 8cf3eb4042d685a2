//! What weighted particles say about tables, hidden values and the best allocation.
//!
//! A particle is an allocation: the count of every cell and row. Given it, a row of a table is Dirichlet, so means and
//! spreads of cells are averaged over particles in closed form. Quantities that depend on how hidden values are labelled
//! come from one run, whose particles are all labelled after its best one; averaged over runs they would be averages over
//! labellings.

use super::align::align_runs;
use super::estimate::Estimate;
use super::prepared::LISTED;
use super::run::{Run, RunResult};
use super::word::Word;
use crate::engine::Problem;
use crate::engine::allocation::{ParticleAllocation, RecordAllocation, RecordPosterior};
use crate::engine::lines::Layout;
use crate::engine::sheet::{Held, Sheet};
use crate::engine::tables::{CellMean, Moments, RowMean, TableMeans};
use crate::error::Result;
use crate::evidence::evidence;
use crate::graph::{NodeIndex, TableIndex};
use crate::math::{Double, ln_factorial};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// The posterior that a job of runs found.
#[derive(Debug, Clone)]
pub struct SmcPosterior {
    /// The evidence and the runs.
    pub estimate: Estimate,
    /// Posterior means and spreads of all tables.
    pub tables: Vec<TableMeans>,
    /// The run that tables and hidden values come from; `None` when they come from all runs, since no labels can be
    /// exchanged.
    pub from_run: Option<usize>,
    /// Hidden nodes whose labels can be exchanged.
    pub exchangeable: Vec<NodeIndex>,
    /// Posterior mean of the effective number of parameters, which does not depend on labels; `None` when some records
    /// leave nodes out, so that allocations are not complete.
    pub d_ep: Option<f64>,
    /// For each table the posterior mean of the sum of its squared cell counts; `None` likewise.
    pub table_sum_of_squares: Option<Vec<f64>>,
    /// The allocation of largest probability among all particles.
    pub best: ParticleAllocation,
    /// Draws from the posterior: particles, picked by their weights. Like the best, they name hidden values as the tables do.
    pub draws: Vec<ParticleAllocation>,
    /// For each record with unseen nodes their posterior.
    pub hidden: Vec<RecordPosterior>,
    /// All particles of all runs, each with its weight and what does not depend on labels.
    pub particles: Vec<WeightedAllocation>,
}

/// One particle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WeightedAllocation {
    /// Its weight; all add up to one.
    pub weight: f64,
    /// ln p(sequence, hidden values).
    pub log_joint: f64,
    /// Occupied cells less occupied rows; of the full allocation where no record leaves nodes out.
    pub d_ep: f64,
}

/// One run's share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunPosterior {
    pub result: RunResult,
    cells: Vec<Moments>,
    particles: Vec<WeightedAllocation>,
    squares: Vec<f64>,
    best: ParticleAllocation,
    draws: Vec<ParticleAllocation>,
    hidden: Vec<f64>,
}

impl RunPosterior {
    /// The run's particles.
    #[cfg(test)]
    pub fn particles(&self) -> &[WeightedAllocation] {
        &self.particles
    }
}

impl<W: Word> Run<'_, W> {
    /// What this run's particles say, with hidden values named as in the best of them, and some of them, each picked by
    /// weight with a uniform number.
    pub fn posterior(&mut self, problem: &Problem<'_>, sheet: &Sheet, run: usize, uniforms: &[f64]) -> RunPosterior {
        self.bring_up_to_date();
        let weights = self.normalised_weights();
        let mut squares = vec![0.0; problem.model.tables().len()];
        let mut d_ep = vec![0.0; weights.len()];
        let mut ln_joint = vec![0.0; weights.len()];
        for row in &sheet.rows {
            for (particle, n_row) in self.held(row.held).into_iter().enumerate() {
                d_ep[particle] -= f64::from(u8::from(n_row > 0.0));
                ln_joint[particle] -= ln_rising(row.pseudo, n_row);
            }
            for &(_, pseudo, held) in &row.cells {
                for (particle, n_cell) in self.held(held).into_iter().enumerate() {
                    d_ep[particle] += f64::from(u8::from(n_cell > 0.0));
                    squares[row.table.ix()] += weights[particle] * n_cell * n_cell;
                    ln_joint[particle] += ln_rising(pseudo, n_cell);
                }
            }
        }
        let ln_pi: Vec<f64> = (self.ln_factorials().iter().zip(&weights).zip(&ln_joint))
            .map(|((factorials, &weight), joint)| if weight > 0.0 { joint - factorials } else { f64::NEG_INFINITY })
            .collect();
        let best = (0..ln_pi.len()).max_by(|&a, &b| ln_pi[a].total_cmp(&ln_pi[b])).expect("at least one particle");
        self.align_labels(&sheet.labels, best);
        let constant = evidence(problem, Double::ZERO).map_or(0.0, |parts| parts.log_p_total)
            + ln_factorial(problem.counts.n_tokens).value()
            - self.ln_factorials_of_seen_records();
        let allocation = |particle: usize| ParticleAllocation {
            run,
            log_joint: ln_joint[particle],
            ln_pi: ln_pi[particle] + constant,
            hidden: self.allocation_of(particle),
        };
        let best = allocation(best);
        let draws = uniforms.iter().map(|&uniform| allocation(pick(&weights, uniform))).collect();
        let particles = (0..weights.len())
            .map(|ix| WeightedAllocation { weight: weights[ix], log_joint: ln_joint[ix], d_ep: d_ep[ix] })
            .collect();
        RunPosterior {
            result: self.result().clone(),
            cells: self.cells(sheet, &weights),
            particles,
            squares,
            best,
            draws,
            hidden: self.hidden(&weights),
        }
    }

    /// Mean and variance of every cell that is listed.
    fn cells(&self, sheet: &Sheet, weights: &[f64]) -> Vec<Moments> {
        let mut cells = Vec::new();
        for row in &sheet.rows {
            let n_row = self.held(row.held);
            for &(_, pseudo, held) in &row.cells {
                let n_cell = self.held(held);
                let of_particle = |particle: usize| {
                    let moments = Moments::of_cell(pseudo + n_cell[particle], row.pseudo + n_row[particle]);
                    (weights[particle], moments)
                };
                cells.push(Moments::mixture((0..weights.len()).map(of_particle)));
            }
        }
        cells
    }
}

/// The place of a uniform number among weights.
fn pick(weights: &[f64], uniform: f64) -> usize {
    let mut left = uniform * weights.iter().sum::<f64>();
    let mut last = 0;
    for (ix, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        last = ix;
        left -= weight;
        if left <= 0.0 {
            break;
        }
    }
    last
}

/// ln of x (x + 1) .. (x + n - 1), good enough to compare particles by.
fn ln_rising(x: f64, n: f64) -> f64 {
    if n == 0.0 || x == 0.0 { 0.0 } else { libm::lgamma(x + n) - libm::lgamma(x) }
}

impl SmcPosterior {
    /// Puts runs together.
    ///
    /// # Errors
    /// When the data cannot occur.
    pub fn combine(
        problem: &Problem<'_>,
        layout: &Layout,
        sheet: &Sheet,
        runs: Vec<RunPosterior>,
        n_particles: usize,
        uniforms: &[f64],
    ) -> Result<Self> {
        let results: Vec<RunResult> = runs.iter().map(|run| run.result.clone()).collect();
        let estimate = Estimate::combine(results, n_particles, layout.records.len() == 0);
        let exchangeable: Vec<NodeIndex> = sheet.labels.iter().flat_map(|class| &class.nodes).copied().collect();
        let n_runs = runs.len() as f64;
        let share: Vec<f64> =
            runs.iter().map(|run| (run.result.ln_p_sequence - estimate.ln_p_sequence).exp() / n_runs).collect();
        let average = |of: &dyn Fn(&RunPosterior) -> f64| -> f64 {
            runs.iter().zip(&share).map(|(run, share)| share * of(run)).sum()
        };
        let mean_d_ep = |run: &RunPosterior| run.particles.iter().map(|particle| particle.weight * particle.d_ep).sum();
        let d_ep = sheet.is_complete.then(|| average(&mean_d_ep));
        let n_tables = problem.model.tables().len();
        let table_sum_of_squares =
            sheet.is_complete.then(|| (0..n_tables).map(|table| average(&|run| run.squares[table])).collect());
        let largest = |key: &dyn Fn(&RunPosterior) -> f64| {
            (0..runs.len()).max_by(|&a, &b| key(&runs[a]).total_cmp(&key(&runs[b]))).expect("at least one run")
        };
        let from_run = (!exchangeable.is_empty()).then(|| largest(&|run| run.result.ln_p_sequence));
        let used: Vec<(f64, &RunPosterior)> = match from_run {
            Some(run) => vec![(1.0, &runs[run])],
            None => share.iter().copied().zip(&runs).collect(),
        };
        let mut tables: Vec<TableMeans> =
            (0..n_tables as u32).map(|table| TableMeans { table: TableIndex(table), rows: Vec::new() }).collect();
        let mut at = 0;
        for row in &sheet.rows {
            let cells = row.cells.iter().zip(at..).map(|(&(child, _, _), ix)| {
                let moments = Moments::mixture(used.iter().map(|&(share, run)| (share, run.cells[ix])));
                CellMean { child, mean: moments.mean, sd: moments.variance.sqrt() }
            });
            tables[row.table.ix()].rows.push(RowMean { parents: row.parents.clone(), cells: cells.collect() });
            at += row.cells.len();
        }
        let mut at = 0;
        let hidden = (0..layout.records.len()).map(|record| {
            let (block, number) = layout.records.source[record];
            let nodes = layout.kernel_of(record).unseen_nodes().into_iter().map(|node| {
                let size = problem.model.node(node).size as usize;
                let mean = |value: usize| used.iter().map(|(share, run)| share * run.hidden[at + value]).sum();
                let probabilities = (0..size).map(mean).collect();
                at += size;
                (node, probabilities)
            });
            RecordPosterior { block, record: number, nodes: nodes.collect() }
        });
        let hidden: Vec<RecordPosterior> = hidden.filter(|record| !record.nodes.is_empty()).collect();
        let mut best = runs[largest(&|run| run.best.ln_pi)].best.clone();
        let drawn = |(ix, &uniform): (usize, &f64)| runs[pick(&share, uniform)].draws[ix].clone();
        let mut draws: Vec<ParticleAllocation> = uniforms.iter().enumerate().map(drawn).collect();
        if let Some(from_run) = from_run {
            // Each run names hidden values in its own way; what is kept has the names of the tables.
            let unseen = |block: u32| &problem.plan.patterns()[block as usize].unseen[..];
            for (_, run) in runs.iter().enumerate().filter(|(ix, _)| *ix != from_run) {
                let mut of_run: Vec<&mut ParticleAllocation> =
                    draws.iter_mut().chain([&mut best]).filter(|kept| kept.run == run.best.run).collect();
                align_runs(&sheet.labels, &unseen, &run.best, &runs[from_run].best, &mut of_run);
            }
        }
        let particles = runs
            .iter()
            .zip(&share)
            .flat_map(|(run, share)| run.particles.iter().map(move |particle| (share, particle)))
            .map(|(share, particle)| WeightedAllocation { weight: share * particle.weight, ..*particle })
            .collect();
        Ok(SmcPosterior {
            estimate,
            tables,
            from_run,
            exchangeable,
            d_ep,
            table_sum_of_squares,
            best,
            draws,
            hidden,
            particles,
        })
    }
}

impl<W: Word> Run<'_, W> {
    /// One counter in every particle.
    fn held(&self, held: Held) -> Vec<f64> {
        match held {
            Held::Fixed(n) => vec![n as f64; self.n_particles()],
            Held::Line { block, in_block } => self.line(block, in_block),
        }
    }

    fn line(&self, block: u32, in_block: u32) -> Vec<f64> {
        let (course, lanes) = (self.course(), self.lanes());
        let first = course.frame.storage.first_line[block as usize];
        if first != LISTED {
            let low = lanes.line((first + in_block) as usize);
            let high = course.frame.storage.high_of_class[course.layout.blocks[block as usize].class as usize];
            if high == 0 {
                return low.map(W::real).collect();
            }
            let high = lanes.line((first + in_block + high) as usize);
            return low.zip(high).map(|(low, high)| low.real_with(high)).collect();
        }
        let mut counts = vec![0.0; self.n_particles()];
        for listed in course.tokens_of(block) {
            let (touch, line) = course.touch_and_state(listed);
            for (count, state) in counts.iter_mut().zip(lanes.line(line)) {
                *count += f64::from(u8::from(listed.offset + touch.offsets[state.index()] == in_block));
            }
        }
        counts
    }

    fn ln_factorials_of_seen_records(&self) -> f64 {
        // Records without unseen nodes are cells of the full tensor as they are.
        self.course().layout.ln_factorials_of_seen
    }

    /// For each particle the sum of ln n! over the cells of the full tensor.
    fn ln_factorials(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.n_particles()];
        for (record, positions) in self.positions_of_records().iter().enumerate().filter(|(_, all)| all.len() > 1) {
            for (particle, sum) in sums.iter_mut().enumerate() {
                let groups = self.groups(record, positions, particle);
                *sum += groups.iter().map(|(_, n)| libm::lgamma(*n as f64 + 1.0)).sum::<f64>();
            }
        }
        sums
    }

    /// For each record and unseen node the probabilities of its values, averaged over the record's tokens.
    fn hidden(&self, weights: &[f64]) -> Vec<f64> {
        let course = self.course();
        let mut all = Vec::new();
        for (record, positions) in self.positions_of_records().iter().enumerate() {
            let kernel = course.layout.kernel_of(record);
            for node in kernel.unseen_nodes() {
                let digit = kernel.digit(node);
                let mut shares = vec![0.0; digit.size];
                for &position in positions {
                    let line = course.first_state[position as usize] as usize + digit.bucket;
                    for (state, weight) in self.lanes().line(line).zip(weights) {
                        shares[digit.of(state.index())] += weight / positions.len() as f64;
                    }
                }
                all.extend(shares);
            }
        }
        all
    }

    /// How a record's tokens are allocated in one particle: values of the unseen nodes, and how many tokens have them.
    fn groups(&self, record: usize, positions: &[u32], particle: usize) -> Vec<(Vec<u32>, u64)> {
        let course = self.course();
        let kernel = course.layout.kernel_of(record);
        let mut groups: HashMap<Vec<u32>, u64> = HashMap::new();
        for &position in positions {
            let first = course.first_state[position as usize] as usize;
            let state = |bucket: usize| self.lanes().at(first + bucket, particle).index();
            *groups.entry(kernel.values_of_states(&state)).or_insert(0) += 1;
        }
        let mut groups: Vec<(Vec<u32>, u64)> = groups.into_iter().collect();
        groups.sort_unstable();
        groups
    }

    fn allocation_of(&self, particle: usize) -> Vec<RecordAllocation> {
        let layout = self.course().layout;
        let positions = self.positions_of_records();
        let of_record = |ix: usize| {
            let (block, record) = layout.records.source[ix];
            RecordAllocation { block, record, groups: self.groups(ix, &positions[ix], particle) }
        };
        (0..layout.records.len()).map(of_record).collect()
    }

    fn positions_of_records(&self) -> Vec<Vec<u32>> {
        let course = self.course();
        let mut positions = vec![Vec::new(); course.layout.records.len()];
        course.order.iter().enumerate().for_each(|(at, &record)| positions[record as usize].push(at as u32));
        positions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn particles_are_picked_by_weight() {
        let picked = |uniform: f64| pick(&[0.0, 1.0, 0.0, 3.0, 0.0], uniform);
        assert_eq!([1e-9, 0.24, 0.26, 0.999_999].map(picked), [1, 1, 3, 3]);
        assert_eq!(pick(&[0.0, 0.5], 1.0), 1);
    }
}
