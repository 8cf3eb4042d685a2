//! Which row gets which column so that the sum of their values is largest, with prices that prove it (the Hungarian method).

/// An assignment and its prices: no value is above the prices of its row and its column together, and those that are assigned are equal to
/// them. Prices of columns are not negative, and nothing for a column that no row has.
#[derive(Debug)]
pub(super) struct Assignment {
    /// For each row its column.
    pub columns: Vec<usize>,
    pub row_prices: Vec<f64>,
    pub column_prices: Vec<f64>,
}

impl Assignment {
    /// The best one, of no more rows than columns. Every row in turn takes its best column at the prices so far, and whoever had it looks
    /// further: O(rows^2 columns).
    pub fn best(n_rows: usize, n_columns: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        assert!(n_rows <= n_columns, "{n_rows} rows, {n_columns} columns");
        // Column 0 is where the row at hand stands before it has one; rows count from 1, so that 0 is nobody.
        let mut row_costs = vec![0.0; n_rows + 1];
        let mut column_costs = vec![0.0; n_columns + 1];
        let mut owner = vec![0usize; n_columns + 1];
        for row in 1..=n_rows {
            owner[0] = row;
            let mut column = 0;
            let mut least = vec![f64::INFINITY; n_columns + 1];
            let mut came_from = vec![0usize; n_columns + 1];
            let mut is_reached = vec![false; n_columns + 1];
            while {
                is_reached[column] = true;
                let own = owner[column];
                let (mut step, mut next) = (f64::INFINITY, 0);
                for other in 1..=n_columns {
                    if is_reached[other] {
                        continue;
                    }
                    let slack = -value(own - 1, other - 1) - row_costs[own] - column_costs[other];
                    if slack < least[other] {
                        least[other] = slack;
                        came_from[other] = column;
                    }
                    if least[other] < step {
                        step = least[other];
                        next = other;
                    }
                }
                for other in 0..=n_columns {
                    if is_reached[other] {
                        row_costs[owner[other]] += step;
                        column_costs[other] -= step;
                    } else {
                        least[other] -= step;
                    }
                }
                column = next;
                owner[column] != 0
            } {}
            while column != 0 {
                owner[column] = owner[came_from[column]];
                column = came_from[column];
            }
        }
        let mut columns = vec![usize::MAX; n_rows];
        for (column, &row) in owner.iter().enumerate().skip(1).filter(|(_, row)| **row > 0) {
            columns[row - 1] = column - 1;
        }
        let price = |costs: Vec<f64>| costs.into_iter().skip(1).map(|cost: f64| -cost).collect();
        Assignment { columns, row_prices: price(row_costs), column_prices: price(column_costs) }
    }

    /// The sum of the values that are assigned.
    pub fn value(&self) -> f64 {
        self.row_prices.iter().sum::<f64>() + self.column_prices.iter().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The largest sum, by trying all.
    fn largest(values: &[Vec<f64>], row: usize, is_taken: &mut Vec<bool>) -> f64 {
        if row == values.len() {
            return 0.0;
        }
        let mut best = f64::NEG_INFINITY;
        for column in 0..is_taken.len() {
            if !is_taken[column] {
                is_taken[column] = true;
                best = best.max(values[row][column] + largest(values, row + 1, is_taken));
                is_taken[column] = false;
            }
        }
        best
    }

    proptest! {
        #[test]
        fn no_other_assignment_is_better_and_prices_prove_it(
            n_rows in 0usize..6,
            more in 0usize..3,
            values in prop::collection::vec(prop_oneof![-1000.0..0.0, Just(-1.0), Just(0.0)], 48),
        ) {
            let n_columns = n_rows + more;
            let values: Vec<Vec<f64>> = values.chunks(8).take(n_rows).map(|row| row[..n_columns].to_vec()).collect();
            let found = Assignment::best(n_rows, n_columns, |row, column| values[row][column]);
            let want = largest(&values, 0, &mut vec![false; n_columns]);
            prop_assert!((found.value() - want).abs() < 1e-9, "{} {want}", found.value());
            let of_columns: f64 = found.columns.iter().enumerate().map(|(row, &column)| values[row][column]).sum();
            prop_assert!((of_columns - want).abs() < 1e-9);
            for (row, all) in values.iter().enumerate() {
                for (column, value) in all.iter().enumerate() {
                    prop_assert!(*value <= found.row_prices[row] + found.column_prices[column] + 1e-9);
                }
            }
            for (column, price) in found.column_prices.iter().enumerate() {
                prop_assert!(*price >= 0.0 && (*price == 0.0 || found.columns.contains(&column)));
            }
        }
    }
}
