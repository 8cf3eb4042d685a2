//! From what was written to pseudo-counts of every table of a model.

use super::pseudo::{ProductTerm, PseudoCount, PseudoCounts, decode};
use super::spec::PriorSpec;
use super::total::GammaTotal;
use crate::error::{Error, Result};
use crate::graph::{Model, NodeIndex, Table, TableIndex};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How the pseudo-counts of tied nodes combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TiedPrior {
    /// The members' pseudo-counts add up, since the table stands for all of them.
    #[default]
    Sum,
    /// One member's pseudo-counts.
    Once,
}

/// Everything that can be said about the prior, with defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PriorSettings {
    /// Where pseudo-counts come from; BDeu by default.
    pub spec: PriorSpec,
    /// `--a`: Gamma shape and size of the imaginary sample; 1 by default (the measure's own size for a base measure).
    pub a: Option<f64>,
    /// `--shape`: the Gamma shape alone.
    pub shape: Option<f64>,
    /// `--b`: the Gamma rate; shape over total by default.
    pub rate: Option<f64>,
    /// How tied tables combine.
    pub tied: TiedPrior,
    /// `--pseudo-count NODE=V`: every cell of that node's table.
    pub pseudo_counts: Vec<(String, f64)>,
}

impl PriorSettings {
    /// False when the tables have a size of their own, so that `a` is the Gamma shape alone.
    pub fn tables_follow_a(&self) -> bool {
        match &self.spec {
            PriorSpec::Bdeu { size } => size.is_none(),
            PriorSpec::Base { marginals, size, .. } => marginals.is_some() && size.is_none(),
            PriorSpec::Tables { .. } => false,
        }
    }
}

/// Pseudo-counts of every table of a model and the Gamma prior of the intensity.
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    tables: Vec<PseudoCounts>,
    a: f64,
    shape: f64,
    rate: Option<f64>,
    consistent: bool,
    /// For each table whether its pseudo-counts are in proportion to `a`; whether the Gamma shape is `a`.
    follows_a: Vec<bool>,
    shape_follows_a: bool,
}

impl Prior {
    /// Checks the settings against the model.
    ///
    /// # Errors
    /// Sizes that do not fit the model, unknown nodes, numbers that are negative or not finite.
    pub fn build(model: &Model, settings: &PriorSettings) -> Result<Self> {
        for (flag, value) in [("a", settings.a), ("shape", settings.shape), ("b", settings.rate)] {
            if let Some(value) = value {
                check_positive(flag, value)?;
            }
        }
        let builder = Builder { model, tied: settings.tied };
        let (mut tables, own_size) = match &settings.spec {
            PriorSpec::Bdeu { size } => {
                let size = size.or(settings.a).unwrap_or(1.0);
                check_positive("size", size)?;
                (builder.bdeu(size), None)
            }
            PriorSpec::Base { alpha, marginals, size } => match (alpha, marginals) {
                (Some(alpha), None) => {
                    let (alpha, total) = scaled_measure(alpha, *size)?;
                    (builder.base(&alpha)?, Some(total))
                }
                (None, Some(marginals)) => {
                    let size = size.or(settings.a).unwrap_or(1.0);
                    check_positive("size", size)?;
                    (builder.marginals(marginals, size)?, None)
                }
                _ => return Err(Error::Prior("a base measure needs either `alpha` or `marginals`".into())),
            },
            PriorSpec::Tables { tables } => (builder.own_tables(tables)?, None),
        };
        builder.override_cells(&mut tables, &settings.pseudo_counts)?;
        let a = settings.a.or(own_size).unwrap_or(1.0);
        let shape = settings.shape.unwrap_or(a);
        let consistent = !matches!(settings.spec, PriorSpec::Tables { .. }) && settings.pseudo_counts.is_empty();
        let mut follows_a = vec![settings.tables_follow_a(); tables.len()];
        for (name, _) in &settings.pseudo_counts {
            follows_a[model.node(builder.find(name)?).table.ix()] = false;
        }
        let shape_follows_a = settings.shape.is_none();
        Ok(Prior { tables, a, shape, rate: settings.rate, consistent, follows_a, shape_follows_a })
    }

    /// A prior whose tables are known already, as those of a fit.
    pub(crate) fn of_tables(tables: Vec<PseudoCounts>, a: f64, shape: f64, rate: Option<f64>) -> Self {
        let follows_a = vec![false; tables.len()];
        Prior { tables, a, shape, rate, consistent: false, follows_a, shape_follows_a: false }
    }

    /// Pseudo-counts of a table.
    pub fn table(&self, table: TableIndex) -> &PseudoCounts {
        &self.tables[table.ix()]
    }

    /// Whether a table's pseudo-counts are in proportion to `a`.
    pub fn follows_a(&self, table: TableIndex) -> bool {
        self.follows_a[table.ix()]
    }

    /// Whether the Gamma shape is `a`.
    pub fn shape_follows_a(&self) -> bool {
        self.shape_follows_a
    }

    /// Multiplies the pseudo-counts of one table, which then has a size of its own.
    pub fn multiply_table(&mut self, table: TableIndex, factor: f64) {
        self.tables[table.ix()].multiply(factor);
        self.follows_a[table.ix()] = false;
        self.consistent = false;
    }

    /// Multiplies `a`: the pseudo-counts of these tables, and the Gamma shape if that follows it.
    pub fn multiply_a(&mut self, tables: &[TableIndex], factor: f64) {
        self.a *= factor;
        tables.iter().for_each(|table| self.tables[table.ix()].multiply(factor));
        if self.shape_follows_a {
            self.shape *= factor;
        }
    }

    /// The Gamma rate, if it was given.
    pub fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// The equivalent sample size; the measure's own for a base measure.
    pub fn a(&self) -> f64 {
        self.a
    }

    /// The Gamma shape.
    pub fn shape(&self) -> f64 {
        self.shape
    }

    /// The Gamma prior of the intensity. `n_tokens` is the total if it is known; the rate then defaults to shape/total.
    ///
    /// # Errors
    /// When no rate was given and the total is zero or unknown.
    pub fn total(&self, n_tokens: Option<u64>) -> Result<GammaTotal> {
        self.total_of(n_tokens.map(|n_tokens| n_tokens as f64))
    }

    /// The same for a total that need not be whole.
    ///
    /// # Errors
    /// As for [`Prior::total`].
    pub fn total_of(&self, n_tokens: Option<f64>) -> Result<GammaTotal> {
        let rate = match (self.rate, n_tokens) {
            (Some(rate), _) => rate,
            (None, Some(n_tokens)) if n_tokens > 0.0 => self.shape / n_tokens,
            (None, Some(_)) => {
                return Err(Error::Setting("there are no tokens, so the Gamma rate has no default; give --b".into()));
            }
            (None, None) => {
                return Err(Error::Setting(
                    "with unknown cells the total is unknown, so the Gamma rate has no default; give --b".into(),
                ));
            }
        };
        GammaTotal::new(self.shape, rate)
    }

    /// False when pseudo-counts were set table by table, so that scores depend on the direction of arrows.
    pub fn is_consistent(&self) -> bool {
        self.consistent
    }
}

/// Sizes beyond this are refused: they have no meaning, and sums of them would leave the range of `f64`.
const LARGEST: f64 = 1e290;

fn check_positive(name: &str, value: f64) -> Result<()> {
    if !(value > 0.0 && value.is_finite()) {
        return Err(Error::Setting(format!("{name} is {value}; it must be a positive number")));
    }
    if !(1.0 / LARGEST..=LARGEST).contains(&value) {
        return Err(Error::Setting(format!("{name} is {value:e}; it must lie between 1e-290 and 1e290")));
    }
    Ok(())
}

fn check_weights(what: &str, weights: &[f64]) -> Result<f64> {
    if let Some((ix, weight)) = weights.iter().enumerate().find(|(_, weight)| !(**weight >= 0.0 && weight.is_finite()))
    {
        return Err(Error::Prior(format!(
            "entry {} of {what} is {weight}; pseudo-counts must be zero or positive numbers",
            ix + 1
        )));
    }
    let total: f64 = weights.iter().sum();
    if total > 0.0 && total <= LARGEST {
        return Ok(total);
    }
    Err(Error::Prior(format!("{what} adds up to {total}; it needs a positive total of at most 1e290")))
}

/// The base measure scaled to the given size, and its total.
fn scaled_measure(alpha: &[f64], size: Option<f64>) -> Result<(Vec<f64>, f64)> {
    let total = check_weights("the base measure `alpha`", alpha)?;
    match size {
        None => Ok((alpha.to_vec(), total)),
        Some(size) => {
            check_positive("prior.size", size)?;
            Ok((alpha.iter().map(|weight| weight / total * size).collect(), size))
        }
    }
}

struct Builder<'a> {
    model: &'a Model,
    tied: TiedPrior,
}

impl Builder<'_> {
    /// The members whose pseudo-counts go into a table.
    fn contributors<'t>(&self, table: &'t Table) -> &'t [NodeIndex] {
        match self.tied {
            TiedPrior::Sum => &table.members,
            TiedPrior::Once => &table.members[..1],
        }
    }

    fn bdeu(&self, size: f64) -> Vec<PseudoCounts> {
        let even = |table: &Table| {
            let size = size * self.contributors(table).len() as f64;
            let n_rows = table.n_rows();
            let row = PseudoCount { value: size / n_rows, ln_if_tiny: size.ln() - table.ln_n_rows() };
            let child_size = f64::from(table.child_size);
            let cell =
                PseudoCount { value: size / (n_rows * child_size), ln_if_tiny: row.ln_if_tiny - child_size.ln() };
            PseudoCounts::Even { cell, row }
        };
        self.model.tables().iter().map(even).collect()
    }

    fn base(&self, alpha: &[f64]) -> Result<Vec<PseudoCounts>> {
        let sizes = self.model.sizes();
        let n_cells = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size as usize));
        if n_cells != Some(alpha.len()) {
            let shape: Vec<String> = sizes.iter().map(u32::to_string).collect();
            let wanted = n_cells.map_or("far too many".into(), |n| n.to_string());
            return Err(Error::Prior(format!(
                "the base measure `alpha` has {} entries but the model has {} = {wanted} cells; give one entry per cell, \
                 or `marginals`",
                alpha.len(),
                shape.join(" x "),
            )));
        }
        let mut tables = self.zero_tables()?;
        let mut values = vec![0u32; sizes.len()];
        for (ix, &weight) in alpha.iter().enumerate().filter(|&(_, &weight)| weight != 0.0) {
            decode(ix, &sizes, &mut values);
            for (table_ix, table) in self.model.tables().iter().enumerate() {
                for &member in self.contributors(table) {
                    let node = self.model.node(member);
                    let row = node
                        .parents
                        .iter()
                        .fold(0usize, |row, parent| row * sizes[parent.ix()] as usize + values[parent.ix()] as usize);
                    tables[table_ix][row * node.size as usize + values[member.ix()] as usize] += weight;
                }
            }
        }
        Ok(self.dense(tables))
    }

    fn zero_tables(&self) -> Result<Vec<Vec<f64>>> {
        self.model
            .tables()
            .iter()
            .map(|table| match table.n_cells() {
                Some(n_cells) if n_cells <= 1 << 28 => Ok(vec![0.0; n_cells]),
                _ => Err(Error::Prior("a table is too large to be given cell by cell; use BDeu or marginals".into())),
            })
            .collect()
    }

    fn dense(&self, tables: Vec<Vec<f64>>) -> Vec<PseudoCounts> {
        tables
            .into_iter()
            .zip(self.model.tables())
            .map(|(cells, table)| PseudoCounts::dense(cells, table.parent_sizes.clone(), table.child_size))
            .collect()
    }

    fn marginals(&self, marginals: &BTreeMap<String, Vec<f64>>, size: f64) -> Result<Vec<PseudoCounts>> {
        let mut weights: Vec<Option<Arc<[f64]>>> = vec![None; self.model.n_nodes()];
        for (name, marginal) in marginals {
            let node_ix = self.find(name)?;
            let node = self.model.node(node_ix);
            if marginal.len() != node.size as usize {
                return Err(Error::Prior(format!(
                    "the marginal of `{name}` has {} entries but the node has {} values",
                    marginal.len(),
                    node.size
                )));
            }
            let total = check_weights(&format!("the marginal of `{name}`"), marginal)?;
            weights[node_ix.ix()] = Some(marginal.iter().map(|weight| weight / total).collect());
        }
        let weights: Vec<Arc<[f64]>> = weights
            .into_iter()
            .zip(self.model.nodes())
            .map(|(given, node)| given.unwrap_or_else(|| vec![1.0 / f64::from(node.size); node.size as usize].into()))
            .collect();
        let product = |table: &Table| PseudoCounts::Product {
            terms: self
                .contributors(table)
                .iter()
                .map(|&member| ProductTerm {
                    size,
                    parents: self
                        .model
                        .node(member)
                        .parents
                        .iter()
                        .map(|parent| weights[parent.ix()].clone())
                        .collect(),
                    child: weights[member.ix()].clone(),
                })
                .collect(),
        };
        Ok(self.model.tables().iter().map(product).collect())
    }

    fn own_tables(&self, given: &BTreeMap<String, Vec<Vec<f64>>>) -> Result<Vec<PseudoCounts>> {
        let mut tables: Vec<Option<(String, PseudoCounts)>> = vec![None; self.model.tables().len()];
        for (name, rows) in given {
            let table_ix = self.model.node(self.find(name)?).table;
            let table = &self.model.tables()[table_ix.ix()];
            if let Some((other, _)) = &tables[table_ix.ix()] {
                return Err(Error::Prior(format!(
                    "`{other}` and `{name}` share one table; give its pseudo-counts once, under one name"
                )));
            }
            tables[table_ix.ix()] = Some((name.clone(), own_table(name, rows, table)?));
        }
        tables
            .into_iter()
            .enumerate()
            .map(|(ix, table)| match table {
                Some((_, table)) => Ok(table),
                None => Err(Error::Prior(format!(
                    "`tables` lacks pseudo-counts for node `{}`; with kind `tables` every table must be given",
                    self.model.table_name(TableIndex(ix as u32))
                ))),
            })
            .collect()
    }

    fn override_cells(&self, tables: &mut [PseudoCounts], pseudo_counts: &[(String, f64)]) -> Result<()> {
        let mut named: BTreeMap<TableIndex, (&str, f64)> = BTreeMap::new();
        for (name, value) in pseudo_counts {
            let table_ix = self.model.node(self.find(name)?).table;
            check_positive(&format!("the pseudo-count of `{name}`"), *value)?;
            match named.insert(table_ix, (name, *value)) {
                Some((other, before)) if before != *value => {
                    return Err(Error::Prior(format!(
                        "the table of `{name}` is given the pseudo-counts {before} (as `{other}`) and {value}; give one"
                    )));
                }
                _ => {}
            }
            let child_size = f64::from(self.model.tables()[table_ix.ix()].child_size);
            tables[table_ix.ix()] =
                PseudoCounts::Even { cell: PseudoCount::exact(*value), row: PseudoCount::exact(value * child_size) };
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<NodeIndex> {
        self.model.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.model.nodes().iter().map(|node| node.name.as_str()).collect();
            Error::Prior(format!("the model has no node `{name}`; its nodes are {}", names.join(", ")))
        })
    }
}

fn own_table(name: &str, rows: &[Vec<f64>], table: &Table) -> Result<PseudoCounts> {
    if rows.len() as f64 != table.n_rows() {
        return Err(Error::Prior(format!(
            "the table of `{name}` has {} rows but its parents have {} configurations",
            rows.len(),
            table.n_rows()
        )));
    }
    for (row_ix, row) in rows.iter().enumerate() {
        if row.len() != table.child_size as usize {
            return Err(Error::Prior(format!(
                "row {} of the table of `{name}` has {} entries but the node has {} values",
                row_ix + 1,
                row.len(),
                table.child_size
            )));
        }
        if let Some(weight) = row.iter().find(|weight| !(0.0..=LARGEST).contains(*weight)) {
            return Err(Error::Prior(format!(
                "row {} of the table of `{name}` holds {weight}; pseudo-counts must lie between 0 and 1e290",
                row_ix + 1
            )));
        }
    }
    Ok(PseudoCounts::dense(rows.concat(), table.parent_sizes.clone(), table.child_size))
}
