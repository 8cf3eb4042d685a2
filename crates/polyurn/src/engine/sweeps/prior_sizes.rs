//! Sizes of the prior that follow the data: the bound is raised by them as it is by everything else.
//!
//! Pseudo-counts of a table are a shape times a size, and a group of tables may share a size: those that follow `a` do, with
//! the Gamma shape of the total. Given expected counts, the bound depends on a size through ratios of Gamma functions alone,
//! and in the logarithm of the size it is smooth. A sweep takes one step of Newton's method, or where that does not lead
//! upwards, to where what pulls the size up and what pulls it down would be equal if they grew as powers of it. A step that
//! would lower the bound is not taken.

use super::dirichlet::{CellCounts, Slopes, ln_rising_of, slopes};
use super::layout::Layout;
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::error::{Error, Result};
use crate::graph::TableIndex;
use crate::math::{Double, special};
use crate::prior::{GammaTotal, Prior, PseudoCount};
use crate::simd::Isa;
use crate::warning::Warning;

/// A size changes by no more than this factor, up or down.
const LARGEST_FACTOR: f64 = 1e8;

/// The logarithm of a size changes by no more than this in one sweep.
const LARGEST_STEP: f64 = 2.0;

/// Sizes stand still when none of their logarithms changes by more than this in a sweep.
const STILL: f64 = 1e-3;

/// What of the prior is set where the bound is largest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Free {
    /// The equivalent sample size: all tables that follow it, but for those that are free by themselves, and the Gamma shape
    /// if that follows it.
    pub a: bool,
    /// Tables whose pseudo-counts have a size of their own.
    pub tables: Vec<TableIndex>,
}

impl Free {
    /// Whether nothing is.
    pub fn is_nothing(&self) -> bool {
        !self.a && self.tables.is_empty()
    }
}

/// What the sizes were multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub struct Factors {
    /// For `a`, if it is free.
    pub a: Option<f64>,
    /// For each free table, in the order of [`Free::tables`].
    pub tables: Vec<f64>,
}

/// The groups of a problem and what does not change from sweep to sweep.
#[derive(Debug)]
pub struct PriorSizes {
    groups: Vec<Group>,
    has_a: bool,
}

#[derive(Debug)]
struct Group {
    /// Stored tables, by their position in the layout.
    stored: Vec<usize>,
    /// All tables, by their number in the model.
    tables: Vec<TableIndex>,
    /// Pseudo-counts and counts of what is wholly seen: cells, and rows.
    certain_cells: Vec<(PseudoCount, f64)>,
    certain_rows: Vec<(PseudoCount, f64)>,
    /// What these add to ln p(sequence) as they are given.
    certain_as_given: f64,
    total: Option<Total>,
}

/// The Gamma prior of the intensity, where its shape follows `a`.
#[derive(Debug, Clone, Copy)]
struct Total {
    shape: f64,
    /// Shape over tokens, if it was not given.
    rate: Option<f64>,
    n_seen: f64,
}

impl Total {
    fn prior(&self, factor: f64, n: f64) -> GammaTotal {
        let shape = self.shape * factor;
        GammaTotal { shape, rate: self.rate.unwrap_or(shape / n) }
    }

    /// ln of the probability of n tokens, but for what does not depend on the shape.
    fn value(&self, factor: f64, n: f64) -> f64 {
        let GammaTotal { shape, rate } = self.prior(factor, n);
        // ln(rate/(1 + rate)) in one piece: a large shape would lose the digits of a difference.
        special::ln_rising_real(shape, n) - shape * rate.recip().ln_1p() - n * rate.ln_1p()
    }

    fn slopes(&self, factor: f64, n: f64) -> (Slopes, Slopes) {
        let GammaTotal { shape, rate } = self.prior(factor, n);
        let up = Slopes::of(shape, n);
        let down = shape * rate.recip().ln_1p();
        // Where the rate follows the shape, the part that pulls down bends upwards.
        let bend = if self.rate.is_some() { 0.0 } else { n / (shape + n) * shape };
        (up, Slopes { first: down, second: down - bend })
    }
}

/// Counts that the sizes are set for.
#[derive(Debug, Clone, Copy)]
pub struct Found<'f> {
    /// Of stored cells.
    pub counts: CellCounts<'f>,
    /// Expected tokens in unknown cells.
    pub n_unknown: f64,
}

impl PriorSizes {
    /// For a problem.
    ///
    /// # Errors
    /// When no table follows `a` though it is free, or a table is named twice.
    pub fn new(problem: &Problem<'_>, layout: &Layout, free: &Free) -> Result<Self> {
        let mut groups: Vec<Vec<TableIndex>> = free.tables.iter().map(|&table| vec![table]).collect();
        if let Some(twice) = (1..free.tables.len()).find(|&ix| free.tables[..ix].contains(&free.tables[ix])) {
            let name = problem.model.table_name(free.tables[twice]);
            return Err(Error::Setting(format!("the table of `{name}` is named twice among those to maximise over")));
        }
        if free.a {
            let all = (0..problem.model.tables().len() as u32).map(TableIndex);
            let follows = |table: &TableIndex| problem.prior.follows_a(*table) && !free.tables.contains(table);
            let tables: Vec<TableIndex> = all.filter(follows).collect();
            // The total alone tells nothing: the default rate follows the shape, and then the largest is the best.
            if tables.is_empty() {
                let message = "no table's pseudo-counts follow `a`, so there is no `a` to maximise over; name nodes";
                return Err(Error::Setting(message.into()));
            }
            groups.push(tables);
        }
        let n_groups = groups.len();
        let make = |(ix, tables): (usize, Vec<TableIndex>)| {
            let is_a = free.a && ix + 1 == n_groups;
            let stored = (0..layout.tables.len()).filter(|&ix| tables.contains(&layout.tables[ix].table)).collect();
            let mut certain_cells = Vec::new();
            for (table, values, count) in layout.certain.iter().filter(|(table, ..)| tables.contains(table)) {
                let pseudo = Kind::Cell.pseudo_count(problem.prior.table(*table), values);
                certain_cells.push((pseudo, layout.unit.tokens(*count)));
            }
            let rows = layout.certain_rows().into_iter().filter(|((table, _), _)| tables.contains(table));
            let row = |((table, values), count): ((TableIndex, &[u32]), u64)| {
                (Kind::Row.pseudo_count(problem.prior.table(table), values), layout.unit.tokens(count))
            };
            let certain_rows = rows.map(row).collect();
            let total = (is_a && problem.prior.shape_follows_a()).then(|| Total {
                shape: problem.prior.shape(),
                rate: problem.prior.rate(),
                n_seen: problem.counts.total(),
            });
            let mut group = Group { stored, tables, certain_cells, certain_rows, certain_as_given: 0.0, total };
            group.certain_as_given = group.certain(1.0);
            group
        };
        Ok(PriorSizes { groups: groups.into_iter().enumerate().map(make).collect(), has_a: free.a })
    }

    /// Sizes as they are given.
    pub fn ones(&self) -> Vec<f64> {
        vec![1.0; self.groups.len()]
    }

    /// For each stored table the factor of its size.
    pub fn of_tables(&self, layout: &Layout, factors: &[f64]) -> Vec<f64> {
        let mut scales = vec![1.0; layout.tables.len()];
        for (group, &factor) in self.groups.iter().zip(factors) {
            group.stored.iter().for_each(|&table| scales[table] = factor);
        }
        scales
    }

    /// What the Gamma shape is multiplied by.
    pub fn of_shape(&self, factors: &[f64]) -> f64 {
        let of_total = self.groups.iter().zip(factors).find(|(group, _)| group.total.is_some());
        of_total.map_or(1.0, |(_, &factor)| factor)
    }

    /// What the sizes add to ln p(data) beside the stored tables, less what they add as they are given: for tables that are
    /// wholly seen, and for the total.
    pub fn ln_beside(&self, factors: &[f64], n_unknown: f64) -> Beside {
        let mut beside = Beside { certain: 0.0, total: 0.0 };
        // Nothing is added to what is impossible.
        let is_moved = |&(group, factor): &(&Group, &f64)| *factor != 1.0 && group.certain_as_given.is_finite();
        for (group, &factor) in self.groups.iter().zip(factors).filter(is_moved) {
            beside.certain += group.certain(factor) - group.certain_as_given;
            beside.total += group.total(factor, n_unknown) - group.total(1.0, n_unknown);
        }
        beside
    }

    /// Sets the sizes for counts: none of them lowers the bound.
    pub fn raise(&self, layout: &Layout, found: Found<'_>, isa: Isa, factors: &mut [f64]) {
        for (group, factor) in self.groups.iter().zip(factors) {
            let slope = group.slopes(layout, found, isa, *factor);
            let (first, second) = (slope.up.first - slope.down.first, slope.up.second - slope.down.second);
            let is_settled = !(slope.up.first > 0.0 && slope.down.first > 0.0);
            if is_settled {
                continue;
            }
            let safe = (slope.up.first / slope.down.first).ln();
            let newton = if second < 0.0 { -first / second } else { 2.0 * safe };
            let at = |step: f64| {
                let step = step.clamp(-LARGEST_STEP, LARGEST_STEP);
                (*factor * step.exp()).clamp(1.0 / LARGEST_FACTOR, LARGEST_FACTOR)
            };
            let value = |factor: f64| group.value(layout, found, isa, factor);
            let now = value(*factor);
            if let Some(better) = [at(newton), at(safe)].into_iter().find(|&other| value(other) >= now) {
                *factor = better;
            }
        }
    }

    /// Whether sizes went from one list to the other without moving much.
    pub fn stand_still(before: &[f64], after: &[f64]) -> bool {
        before.iter().zip(after).all(|(before, after)| (after / before).ln().abs() <= STILL)
    }

    /// The prior with these sizes.
    pub fn prior(&self, prior: &Prior, factors: &[f64]) -> Prior {
        let mut found = prior.clone();
        for (ix, (group, &factor)) in self.groups.iter().zip(factors).enumerate() {
            if self.has_a && ix + 1 == factors.len() {
                found.multiply_a(&group.tables, factor);
            } else {
                group.tables.iter().for_each(|&table| found.multiply_table(table, factor));
            }
        }
        found
    }

    /// The sizes by what they belong to.
    pub fn named(&self, factors: &[f64]) -> Factors {
        match factors.split_last() {
            Some((&a, tables)) if self.has_a => Factors { a: Some(a), tables: tables.to_vec() },
            _ => Factors { a: None, tables: factors.to_vec() },
        }
    }

    /// Whether a size went as far as it may.
    pub fn warning(&self, factors: &[f64]) -> Option<Warning> {
        let is_at_end = |factor: &f64| *factor >= LARGEST_FACTOR || *factor <= 1.0 / LARGEST_FACTOR;
        factors.iter().any(is_at_end).then_some(Warning::SizeWithoutMaximum)
    }
}

/// What sizes add beside the stored tables.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// To ln p(sequence).
    pub certain: f64,
    /// To ln p(total).
    pub total: f64,
}

/// What pulls a size up and what pulls it down.
struct Pull {
    up: Slopes,
    down: Slopes,
}

impl Group {
    fn certain(&self, factor: f64) -> f64 {
        let ln = |(pseudo, count): &(PseudoCount, f64)| {
            let pseudo = pseudo.times(factor);
            special::ln_rising_tiny(pseudo.value, pseudo.ln_if_tiny, *count)
        };
        let cells: f64 = self.certain_cells.iter().map(ln).sum();
        // As for stored tables: rows without pseudo-counts have cells without.
        if cells == f64::NEG_INFINITY { cells } else { cells - self.certain_rows.iter().map(ln).sum::<f64>() }
    }

    fn total(&self, factor: f64, n_unknown: f64) -> f64 {
        self.total.map_or(0.0, |total| total.value(factor, total.n_seen + n_unknown))
    }

    fn value(&self, layout: &Layout, found: Found<'_>, isa: Isa, factor: f64) -> f64 {
        let mut sum = Double::from(self.certain(factor)) + Double::from(self.total(factor, found.n_unknown));
        for table in self.stored.iter().map(|&ix| &layout.tables[ix]) {
            sum = sum + ln_rising_of(table, factor, found.counts, isa);
        }
        sum.value()
    }

    fn slopes(&self, layout: &Layout, found: Found<'_>, isa: Isa, factor: f64) -> Pull {
        let certain = |list: &[(PseudoCount, f64)]| {
            let one = |(pseudo, count): &(PseudoCount, f64)| Slopes::of(pseudo.times(factor).value, *count);
            list.iter().map(one).fold(Slopes::default(), Slopes::plus)
        };
        let mut pull = Pull { up: certain(&self.certain_cells), down: certain(&self.certain_rows) };
        if let Some(total) = &self.total {
            let (up, down) = total.slopes(factor, total.n_seen + found.n_unknown);
            pull = Pull { up: pull.up.plus(up), down: pull.down.plus(down) };
        }
        for table in self.stored.iter().map(|&ix| &layout.tables[ix]) {
            let of_cells = slopes(&table.pseudo, factor, &found.counts.cells[table.cells()], isa);
            let of_rows = slopes(&table.row_pseudo, factor, &found.counts.rows[table.rows()], isa);
            pull = Pull { up: pull.up.plus(of_cells), down: pull.down.plus(of_rows) };
        }
        pull
    }
}
