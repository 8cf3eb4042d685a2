//! Sums of products of dense tables over named variables, one variable summed out at a time.

use crate::error::{Error, Result};
use std::borrow::Cow;

/// Cells of a table that is formed on the way, at most.
pub const MAX_CELLS: f64 = (1u64 << 27) as f64;

/// Terms that one sum goes through, at most.
const MAX_TERMS: f64 = 1e11;

/// A table over variables, the last one fastest.
#[derive(Debug, Clone)]
pub struct Dense<'v> {
    pub variables: Vec<u32>,
    pub values: Cow<'v, [f64]>,
}

/// The product of all tables with every variable summed out that is not in `keep`, as a table over `keep`. `sizes` are those
/// of all variables.
///
/// # Errors
/// When a table on the way would be too large.
pub fn sum_of_products(mut tables: Vec<Dense<'_>>, sizes: &[u32], keep: &[u32]) -> Result<Vec<f64>> {
    loop {
        let mut left: Vec<u32> = tables.iter().flat_map(|table| table.variables.iter().copied()).collect();
        left.sort_unstable();
        left.dedup();
        left.retain(|variable| !keep.contains(variable));
        // The one whose neighbours have the fewest combinations.
        let cost = |variable: &u32| n_cells(&neighbours(&tables, *variable), sizes);
        let Some(variable) = left.into_iter().min_by(|x, y| cost(x).total_cmp(&cost(y))) else { break };
        let scope = neighbours(&tables, variable);
        let (with, without): (Vec<_>, Vec<_>) =
            tables.into_iter().partition(|table| table.variables.contains(&variable));
        let values = contract(&with, &scope, Some(variable), sizes)?;
        tables = without;
        tables.push(Dense { variables: scope, values: Cow::Owned(values) });
    }
    contract(&tables, keep, None, sizes)
}

/// Variables that share a table with one.
fn neighbours(tables: &[Dense<'_>], variable: u32) -> Vec<u32> {
    let with = tables.iter().filter(|table| table.variables.contains(&variable));
    let mut scope: Vec<u32> = with.flat_map(|table| table.variables.iter().copied()).collect();
    scope.retain(|&other| other != variable);
    scope.sort_unstable();
    scope.dedup();
    scope
}

fn n_cells(variables: &[u32], sizes: &[u32]) -> f64 {
    variables.iter().map(|&variable| f64::from(sizes[variable as usize])).product()
}

/// The product of some tables as a table over `scope`, one variable summed out if there is one.
fn contract(tables: &[Dense<'_>], scope: &[u32], summed: Option<u32>, sizes: &[u32]) -> Result<Vec<f64>> {
    let size = |variable: u32| sizes[variable as usize] as usize;
    let n_summed = summed.map_or(1, size);
    let cells = n_cells(scope, sizes);
    if cells > MAX_CELLS || cells * n_summed as f64 > MAX_TERMS {
        return Err(Error::TooCostly(format!(
            "this table would have {cells:.3e} cells or take {:.3e} terms; ask for fewer nodes at a time",
            cells * n_summed as f64
        )));
    }
    // For each table how far a step of each variable goes in it.
    let stride_of = |table: &Dense<'_>, variable: u32| {
        let place = table.variables.iter().position(|&other| other == variable)?;
        Some(table.variables[place + 1..].iter().map(|&other| size(other)).product::<usize>())
    };
    let strides: Vec<Vec<usize>> = tables
        .iter()
        .map(|table| scope.iter().map(|&variable| stride_of(table, variable).unwrap_or(0)).collect())
        .collect();
    let inner: Vec<usize> =
        tables.iter().map(|table| summed.and_then(|variable| stride_of(table, variable)).unwrap_or(0)).collect();
    let mut at = vec![0usize; tables.len()];
    let mut digits = vec![0usize; scope.len()];
    let mut out = Vec::with_capacity(cells as usize);
    for _ in 0..cells as usize {
        let term = |ix: usize| -> f64 {
            tables.iter().zip(&at).zip(&inner).map(|((table, at), step)| table.values[at + ix * step]).product()
        };
        out.push((0..n_summed).map(term).sum());
        // The next cell: last variable first.
        for place in (0..scope.len()).rev() {
            digits[place] += 1;
            let is_over = digits[place] == size(scope[place]);
            let n_back = if is_over { digits[place] - 1 } else { 0 };
            for (at, strides) in at.iter_mut().zip(&strides) {
                *at = if is_over { *at - n_back * strides[place] } else { *at + strides[place] };
            }
            if !is_over {
                break;
            }
            digits[place] = 0;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::draw;
    use crate::{Purpose, Seed};

    /// Against the sum over all combinations, written out.
    #[test]
    fn sums_are_those_over_all_combinations() {
        let mut rng = Seed(3).stream(Purpose::Urn, 0, 0, 0);
        for round in 0..200 {
            let sizes: Vec<u32> = (0..5).map(|_| 1 + draw::below(3, &mut rng) as u32).collect();
            let mut tables = Vec::new();
            for _ in 0..1 + round % 5 {
                let mut variables: Vec<u32> = (0..5).filter(|_| draw::below(2, &mut rng) == 0).collect();
                if round % 3 == 0 {
                    variables.reverse();
                }
                let n: u32 = variables.iter().map(|&variable| sizes[variable as usize]).product();
                let values = (0..n).map(|_| draw::open_unit(&mut rng)).collect();
                tables.push(Dense { variables, values: Cow::Owned(values) });
            }
            let used = |variable: &u32| tables.iter().any(|table| table.variables.contains(variable));
            let keep: Vec<u32> = [4u32, 1].into_iter().filter(used).collect();
            let mut expected = vec![0.0; keep.iter().map(|&variable| sizes[variable as usize] as usize).product()];
            let all: u32 = (0..5).filter(used).map(|variable| sizes[variable as usize]).product();
            for mut combination in 0..all {
                let mut values = [0u32; 5];
                for variable in (0..5u32).filter(used) {
                    values[variable as usize] = combination % sizes[variable as usize];
                    combination /= sizes[variable as usize];
                }
                let cell = |variables: &[u32]| {
                    variables
                        .iter()
                        .fold(0, |cell, &variable| cell * sizes[variable as usize] + values[variable as usize])
                };
                let product: f64 = tables.iter().map(|table| table.values[cell(&table.variables) as usize]).product();
                expected[cell(&keep) as usize] += product;
            }
            let got = sum_of_products(tables, &sizes, &keep).unwrap();
            assert_eq!(got.len(), expected.len());
            assert!(got.iter().zip(&expected).all(|(x, y)| (x - y).abs() <= 1e-13 * y.abs().max(1.0)));
        }
    }
}
