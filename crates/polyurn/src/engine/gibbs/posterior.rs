//! What all chains say together.
//!
//! Numbers that do not depend on the names of hidden values are averaged over all chains, and tell whether the chains agree.
//! What depends on names comes from the chain with the best state; averaged over chains it would be an average over namings.

use super::mixing::{effective_size, r_hat};
use super::tally::{Tally, Watched};
use super::{ChainResult, GibbsResult};
use crate::engine::allocation::{ParticleAllocation, RecordPosterior};
use crate::engine::tables::{CellMean, Moments, RowMean, TableMeans};
use crate::graph::{NodeIndex, TableIndex};
use crate::warning::Warning;

/// R-hat above this says that chains are not where they should be (Vehtari et al. 2021, section 4).
const LARGEST_R_HAT: f64 = 1.01;

/// Effective draws of all chains together that are asked for: with a hundred, the error of a posterior mean is a tenth of the
/// posterior's own spread, whatever the number of chains.
const FEWEST_EFFECTIVE: f64 = 100.0;

/// A number that does not depend on the names of hidden values, followed over all chains.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistic {
    /// What it is.
    pub kind: StatisticKind,
    /// Its mean over all kept states.
    pub mean: f64,
    /// Rank-normalised split R-hat; `None` for too few states, or where it never changes.
    pub r_hat: Option<f64>,
    /// Bulk effective sample size; `None` likewise.
    pub effective_size: Option<f64>,
}

/// What is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatisticKind {
    /// ln p(sequence, hidden values).
    LogJoint,
    /// Occupied cells less occupied rows.
    EffectiveParameters,
    /// The sum of the squared cell counts of a table.
    SumOfSquares(TableIndex),
}

/// The posterior that chains found.
#[derive(Debug, Clone, PartialEq)]
pub struct GibbsPosterior {
    /// The chains.
    pub result: GibbsResult,
    /// Kept states of each chain.
    pub n_kept: Vec<u64>,
    /// Posterior means and spreads of all tables.
    pub tables: Vec<TableMeans>,
    /// The chain that tables and hidden values come from; `None` when they come from all chains, since no labels can be
    /// exchanged.
    pub from_chain: Option<usize>,
    /// Hidden nodes whose labels can be exchanged.
    pub exchangeable: Vec<NodeIndex>,
    /// Posterior mean of the effective number of parameters; `None` when some records leave nodes out.
    pub d_ep: Option<f64>,
    /// For each table the posterior mean of the sum of its squared cell counts; `None` likewise.
    pub table_sum_of_squares: Option<Vec<f64>>,
    /// The state of largest ln pi(S) among those kept.
    pub best: ParticleAllocation,
    /// Kept allocations, taken from the chains in turn. Those of one chain have one naming.
    pub draws: Vec<ParticleAllocation>,
    /// For each record with unseen nodes their posterior.
    pub hidden: Vec<RecordPosterior>,
    /// Whether chains agree: numbers that do not depend on names.
    pub statistics: Vec<Statistic>,
}

impl GibbsPosterior {
    /// Whether every number that changes agrees between chains and has enough effective draws.
    pub fn is_mixed(&self) -> bool {
        let mut known = self.statistics.iter().filter_map(|of| of.r_hat.zip(of.effective_size)).peekable();
        let is_any = known.peek().is_some() || self.result.n_tokens == 0;
        is_any && known.all(|(r_hat, size)| r_hat <= LARGEST_R_HAT && size >= FEWEST_EFFECTIVE)
    }

    /// Puts chains together; each has kept at least one state.
    pub(super) fn combine(
        watched: &Watched<'_, '_>,
        chains: Vec<(ChainResult, Tally)>,
        n_draws: usize,
        n_tokens: u64,
        mut warnings: Vec<Warning>,
    ) -> Self {
        let (results, tallies): (Vec<ChainResult>, Vec<Tally>) = chains.into_iter().unzip();
        let sheet = &watched.sheet;
        let exchangeable: Vec<NodeIndex> = sheet.labels.iter().flat_map(|class| &class.nodes).copied().collect();
        let best_of = |tally: &Tally| tally.best().map_or(f64::NEG_INFINITY, |best| best.ln_pi);
        let of_best = (0..tallies.len()).max_by(|&x, &y| best_of(&tallies[x]).total_cmp(&best_of(&tallies[y])));
        let of_best = of_best.expect("at least one chain");
        let best = tallies[of_best].best().expect("every chain keeps a state").clone();
        let from_chain = (!exchangeable.is_empty()).then_some(of_best);
        let used: Vec<&Tally> = match from_chain {
            Some(chain) => vec![&tallies[chain]],
            None => tallies.iter().collect(),
        };
        let n_used: f64 = used.iter().map(|tally| tally.n as f64).sum();
        let statistics = statistics(watched, &tallies);
        let mean_of = |kind: StatisticKind| statistics.iter().find(|of| of.kind == kind).map(|of| of.mean);
        let n_tables = watched.problem.model.tables().len() as u32;
        let squares = (0..n_tables).map(|table| mean_of(StatisticKind::SumOfSquares(TableIndex(table))));
        let table_sum_of_squares = squares.collect::<Option<Vec<f64>>>().filter(|_| sheet.is_complete);
        let d_ep = mean_of(StatisticKind::EffectiveParameters).filter(|_| sheet.is_complete);
        let draws = draws(&tallies, n_draws);
        warnings.extend(doubts(&statistics));
        GibbsPosterior {
            n_kept: tallies.iter().map(|tally| tally.n).collect(),
            tables: tables(watched, &used, n_used),
            hidden: hidden(watched, &used, n_used),
            result: GibbsResult { chains: results, n_tokens, warnings },
            from_chain,
            exchangeable,
            d_ep,
            table_sum_of_squares,
            best,
            draws,
            statistics,
        }
    }
}

fn tables(watched: &Watched<'_, '_>, used: &[&Tally], n_used: f64) -> Vec<TableMeans> {
    let n_tables = watched.problem.model.tables().len() as u32;
    let mut tables: Vec<TableMeans> =
        (0..n_tables).map(|table| TableMeans { table: TableIndex(table), rows: Vec::new() }).collect();
    let mut at = 0;
    for row in &watched.sheet.rows {
        let cells = row.cells.iter().zip(at..).map(|(&(child, _, _), ix)| {
            let moments = Moments::mixture(used.iter().map(|tally| (tally.n as f64 / n_used, tally.cell(ix))));
            CellMean { child, mean: moments.mean, sd: moments.variance.sqrt() }
        });
        tables[row.table.ix()].rows.push(RowMean { parents: row.parents.clone(), cells: cells.collect() });
        at += row.cells.len();
    }
    tables
}

fn hidden(watched: &Watched<'_, '_>, used: &[&Tally], n_used: f64) -> Vec<RecordPosterior> {
    let layout = watched.tokens.layout;
    let mut at = 0;
    let records = (0..layout.records.len()).map(|record| {
        let (block, number) = layout.records.source[record];
        let n = layout.records.count[record] as f64 * n_used;
        let nodes = layout.kernel_of(record).unseen_nodes().into_iter().map(|node| {
            let size = watched.problem.model.node(node).size as usize;
            let share = |value: usize| used.iter().map(|tally| tally.hidden()[at + value]).sum::<f64>() / n;
            let probabilities = (0..size).map(share).collect();
            at += size;
            (node, probabilities)
        });
        RecordPosterior { block, record: number, nodes: nodes.collect() }
    });
    records.filter(|record| !record.nodes.is_empty()).collect()
}

/// Each number over all chains. Where the time limit cut some of them short, only as many of the last states as all have.
fn statistics(watched: &Watched<'_, '_>, tallies: &[Tally]) -> Vec<Statistic> {
    let n_tables = watched.problem.model.tables().len() as u32;
    let of_tables = (0..n_tables).map(|table| StatisticKind::SumOfSquares(TableIndex(table)));
    let kinds = [StatisticKind::LogJoint, StatisticKind::EffectiveParameters].into_iter().chain(of_tables);
    let shortest = tallies.iter().map(|tally| tally.n as usize).min().unwrap_or(0);
    let of_kind = |(ix, kind): (usize, StatisticKind)| {
        let all = tallies.iter().map(|tally| &tally.traces[ix]);
        let n: usize = tallies.iter().map(|tally| tally.n as usize).sum();
        let mean = all.clone().flatten().sum::<f64>() / n as f64;
        let chains: Vec<Vec<f64>> = all.map(|trace| trace[trace.len() - shortest..].to_vec()).collect();
        Statistic { kind, mean, r_hat: r_hat(&chains), effective_size: effective_size(&chains) }
    };
    kinds.enumerate().map(of_kind).collect()
}

/// Kept allocations of the chains in turn.
fn draws(tallies: &[Tally], n_draws: usize) -> Vec<ParticleAllocation> {
    let longest = tallies.iter().map(|tally| tally.draws.len()).max().unwrap_or(0);
    let in_turn = (0..longest).flat_map(|ix| tallies.iter().filter_map(move |tally| tally.draws.get(ix)));
    in_turn.take(n_draws).cloned().collect()
}

/// What is doubtful about the chains.
fn doubts(statistics: &[Statistic]) -> Option<Warning> {
    let known = || statistics.iter().filter_map(|of| of.r_hat.zip(of.effective_size));
    let worst = known().map(|(r_hat, _)| r_hat).fold(1.0, f64::max);
    let fewest = known().map(|(_, size)| size).fold(f64::INFINITY, f64::min);
    (worst > LARGEST_R_HAT || fewest < FEWEST_EFFECTIVE)
        .then(|| Warning::ChainsDisagree { r_hat: format!("{worst:.3}"), effective: fewest.round() as u64 })
}
