//! Simulation: the generative process with drawn intensity and tables, and draws from a given table of counts.

use crate::control::Control;
use crate::error::{Error, Result};
use crate::graph::{Model, TableIndex};
use crate::math::draw;
use crate::prior::{GammaTotal, Prior};
use crate::seed::{Purpose, Seed};
use crate::urn::draw_from_prior;
use hashbrown::HashMap;
use rand_distr::{Binomial, Distribution};

/// How many tokens to draw.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tokens {
    /// This many.
    Given(u64),
    /// A Poisson number, its intensity drawn from the Gamma prior.
    Drawn(GammaTotal),
}

/// Full assignments with their counts: values of all nodes, and how many tokens have them.
pub type Tensor = Vec<(Vec<u32>, u64)>;

/// Draws tables from the prior and tokens from the tables.
///
/// Tokens are split node by node in topological order, so a cell of a million tokens costs no more than one of ten. Rows
/// of tables are drawn when a token first needs them, each from a stream of its own.
///
/// # Errors
/// [`Error::Stopped`] when the run was stopped; an intensity beyond 64 bits; [`Error::TooCostly`] for very many tokens in
/// a row of very many values.
pub fn simulate(model: &Model, prior: &Prior, tokens: Tokens, seed: Seed, control: &mut Control<'_>) -> Result<Tensor> {
    let n_tokens = match tokens {
        Tokens::Given(n_tokens) => n_tokens,
        Tokens::Drawn(total) => draw_total(total, seed)?,
    };
    let mut groups: Tensor = if n_tokens == 0 { Vec::new() } else { vec![(vec![0; model.n_nodes()], n_tokens)] };
    let mut rows = Rows { model, prior, seed, made: HashMap::new(), n_made: vec![0; model.tables().len()] };
    for (at, &node_ix) in model.topological_order().iter().enumerate() {
        let node = model.node(node_ix);
        let mut rng = seed.stream(Purpose::Simulate, 0, u64::from(node_ix.0), 1);
        let mut split: Tensor = Vec::with_capacity(groups.len());
        for (done, (values, count)) in groups.iter().enumerate() {
            if done % 1024 == 0 {
                let fraction = (at as f64 + done as f64 / groups.len() as f64) / model.n_nodes() as f64;
                control.tick("simulate", fraction)?;
            }
            let parents: Vec<u32> = node.parents.iter().map(|parent| values[parent.ix()]).collect();
            rows.split(node.table, parents, *count, &mut rng, |child, n| {
                let mut values = values.clone();
                values[node_ix.ix()] = child;
                split.push((values, n));
            })?;
        }
        groups = split;
    }
    Ok(groups)
}

fn draw_total(total: GammaTotal, seed: Seed) -> Result<u64> {
    let mut rng = seed.stream(Purpose::Simulate, 0, 0, 0);
    let ln_intensity = draw::ln_gamma_variable(total.shape, &mut rng) - total.rate.ln();
    if ln_intensity > (u64::MAX as f64 / 4.0).ln() {
        return Err(Error::Setting(format!(
            "the drawn intensity is exp({ln_intensity:.1}), more tokens than can be counted; give --tokens or a larger --b"
        )));
    }
    Ok(draw::poisson(ln_intensity.exp(), &mut rng))
}

/// Rows with more values than this are not drawn: their tokens come from the row's own Pólya urn, which gives the same
/// distribution and takes memory for tokens only.
const DRAW_ROWS_UP_TO: u32 = 1 << 22;
/// Most tokens that such an urn will hold.
const MAX_URN: u64 = 1 << 28;

/// A row of a table: drawn, as cumulative sums, or an urn of the child values so far.
enum Row {
    Drawn(Vec<f64>),
    Urn(Vec<u32>),
}

/// Rows of the tables, made when a token first needs them.
struct Rows<'a> {
    model: &'a Model,
    prior: &'a Prior,
    seed: Seed,
    made: HashMap<(TableIndex, Vec<u32>), Row>,
    n_made: Vec<u64>,
}

impl Rows<'_> {
    /// Spreads tokens over the values of a row.
    fn split(
        &mut self,
        table: TableIndex,
        parents: Vec<u32>,
        count: u64,
        rng: &mut impl rand::Rng,
        emit: impl FnMut(u32, u64),
    ) -> Result<()> {
        let pseudo = self.prior.table(table);
        let child_size = self.model.tables()[table.ix()].child_size;
        let (seed, n_made) = (self.seed, &mut self.n_made[table.ix()]);
        let row = self.made.entry((table, parents.clone())).or_insert_with(|| {
            if child_size > DRAW_ROWS_UP_TO {
                return Row::Urn(Vec::new());
            }
            let mut rng = seed.stream(Purpose::Simulate, 1, u64::from(table.0), *n_made);
            *n_made += 1;
            let mut row = vec![0.0; child_size as usize];
            let parameters = (0..child_size as usize).map(|child| pseudo.cell(&parents, child as u32).value);
            draw::dirichlet(parameters, &mut row, &mut rng);
            let mut sum = 0.0;
            for entry in &mut row {
                sum += *entry;
                *entry = sum;
            }
            Row::Drawn(row)
        });
        match row {
            Row::Drawn(cumulative) => split_group(count, cumulative, rng, emit),
            Row::Urn(children) if children.len() as u64 + count > MAX_URN => {
                return Err(Error::TooCostly(format!(
                    "simulate: {count} tokens in a row of {child_size} values; that is beyond memory, use fewer of either"
                )));
            }
            Row::Urn(children) => {
                let before = children.len();
                let fresh = pseudo.row(&parents).value;
                for _ in 0..count {
                    let n = children.len();
                    let child = if draw::open_unit(rng) * (fresh + n as f64) < fresh || n == 0 {
                        draw_from_prior(pseudo, &parents, child_size, rng)
                    } else {
                        children[draw::below(n as u64, rng) as usize]
                    };
                    children.push(child);
                }
                let mut drawn = children[before..].to_vec();
                emit_runs(&mut drawn, emit);
            }
        }
        Ok(())
    }
}

/// Emits each distinct value with the number of times it occurs.
fn emit_runs(children: &mut [u32], mut emit: impl FnMut(u32, u64)) {
    children.sort_unstable();
    children.chunk_by(|a, b| a == b).for_each(|run| emit(run[0], run.len() as u64));
}

/// Spreads `count` tokens over the values of a row given by cumulative sums: one by one while they are few, by
/// conditional binomials otherwise.
fn split_group(count: u64, cumulative: &[f64], rng: &mut impl rand::Rng, mut emit: impl FnMut(u32, u64)) {
    let total = cumulative[cumulative.len() - 1];
    if count < cumulative.len() as u64 {
        let mut children: Vec<u32> = (0..count)
            .map(|_| {
                let target = draw::open_unit(rng) * total;
                cumulative.partition_point(|&sum| sum < target).min(cumulative.len() - 1) as u32
            })
            .collect();
        emit_runs(&mut children, emit);
        return;
    }
    let mut n_left = count;
    let mut below = 0.0;
    for (child, &upto) in cumulative.iter().enumerate() {
        if n_left == 0 {
            break;
        }
        let (here, rest) = (upto - below, total - below);
        below = upto;
        let n_here = if upto >= total {
            n_left
        } else {
            Binomial::new(n_left, (here / rest).clamp(0.0, 1.0)).expect("a probability").sample(rng)
        };
        if n_here > 0 {
            emit(child as u32, n_here);
        }
        n_left -= n_here;
    }
}

/// Draws `n_tokens` tokens in proportion to the counts of a table; returns the new count of each row.
///
/// # Errors
/// When the table holds no tokens but some are wanted.
pub fn resample(counts: &[u64], n_tokens: u64, seed: Seed) -> Result<Vec<u64>> {
    if n_tokens > 0 && counts.iter().all(|&count| count == 0) {
        return Err(Error::Setting("there are no tokens to draw from: every count is zero".into()));
    }
    let mut rng = seed.stream(Purpose::Resample, 0, 0, 0);
    let mut drawn = vec![0; counts.len()];
    draw::multinomial(n_tokens, counts, &mut rng, |row, n| drawn[row] = n);
    Ok(drawn)
}
