//! An allocation of a fit, handed out to rows of the data that it was fitted to.

use crate::fit_file::StoredDraw;
use hashbrown::HashMap;

/// Hidden values of tokens, by what their records show. Each token is handed out once.
#[derive(Debug, Default)]
pub struct Allocation {
    groups: HashMap<Vec<u32>, Vec<(Vec<u32>, u64)>>,
}

impl Allocation {
    /// That of a draw.
    pub fn of(draw: &StoredDraw) -> Self {
        let mut groups: HashMap<Vec<u32>, Vec<(Vec<u32>, u64)>> = HashMap::new();
        for tokens in &draw.allocation {
            groups.entry(tokens.record.clone()).or_default().push((tokens.values.clone(), tokens.n_tokens));
        }
        // The last is handed out first.
        groups.values_mut().for_each(|groups| groups.reverse());
        Allocation { groups }
    }

    /// Takes `n` tokens of a record (a value for each node, [`MISSING`](crate::counts::MISSING) where it shows none): the
    /// values of all nodes for most of them, and for each node the share of the tokens that have its value. None where the
    /// record was not among the data, or all its tokens are handed out.
    pub fn take(&mut self, record: &[u32], n: u64) -> Option<Vec<(u32, f64)>> {
        let groups = self.groups.get_mut(record)?;
        let mut all: Vec<(Vec<u32>, u64)> = Vec::new();
        let mut left = n;
        while left > 0 {
            let Some((values, of_group)) = groups.last_mut() else { break };
            let taken = left.min(*of_group);
            all.push((values.clone(), taken));
            left -= taken;
            *of_group -= taken;
            if *of_group == 0 {
                groups.pop();
            }
        }
        // The first of equals.
        let (best, _) = all.iter().rev().max_by_key(|(_, taken)| *taken)?;
        let share = |(node, &value): (usize, &u32)| {
            let same = all.iter().filter(|(values, _)| values[node] == value).map(|(_, taken)| taken);
            (value, same.sum::<u64>() as f64 / (n - left) as f64)
        };
        Some(best.iter().enumerate().map(share).collect())
    }
}
