//! Labels that can be exchanged, and a reference that sits in one labelling.
//!
//! Exchanging labels leaves the model's probability p(z) alone, but not the reference's q(z). A path from q ends, in practice,
//! in q's labelling, one of n! that are equally probable. So the end of the path is p(z) r(z) instead of p(z), where
//!
//! r(z) = q(z) / sum over all relabellings s of q(s z)
//!
//! is the share that q's labelling has in z. Over all relabellings r adds up to 1, so p r adds up to exactly Z / n!, and no
//! assumption is needed about how far labels are apart. On the way back a draw from the posterior is relabelled with
//! probabilities r, which makes it a draw from p r.
//!
//! With one hidden node the sum is a permanent: that of the matrix whose entry (k, l) is the probability under q that all tokens
//! with value k have value l. Labels that no token has may have any of the names that are left, so it is summed over subsets of the
//! others, where few of them can be mistaken for each other. Where many can, the sum is known between two bounds, and runs
//! in each direction take the one that keeps them on their side.

use super::fitted::{Fitted, Levels};
use crate::engine::gibbs::Tokens;
use crate::engine::lines::Kernel;
use crate::engine::naming::{bucket_values, moved_states};
use crate::engine::symmetry::LabelClass;
use crate::graph::NodeIndex;
use crate::math::draw::open_unit;
use crate::math::{ln_factorial, log_sum_exp};
use rand::Rng;

/// So many labels that tokens have and that can be mistaken for each other are summed over all subsets.
const MOST_SUMMED: usize = 14;

/// ln below which a relabelling's share is nothing.
const NOTHING: f64 = -45.0;

/// ln r(z), or what is known of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LnShare {
    /// At least this.
    pub low: f64,
    /// At most this.
    pub high: f64,
}

/// Relabellings up to which all are listed, in models with several hidden nodes.
const MOST_LISTED: f64 = 720.0;

/// For each label class the new name of each of its values.
type Renaming = Vec<Vec<u32>>;

/// The relabellings of a problem, and a reference.
#[derive(Debug)]
pub struct Labels<'l> {
    tokens: &'l Tokens<'l>,
    fitted: &'l Fitted,
    classes: &'l [LabelClass],
    way: Way,
}

/// How the sum over relabellings is found.
#[derive(Debug)]
enum Way {
    /// There is one.
    Alone,
    /// By permanents.
    Permanents,
    /// One by one.
    Listed(Vec<Renaming>),
    /// Not at all: labels that tokens have are taken to be far apart.
    Assumed,
}

impl<'l> Labels<'l> {
    /// Looks how it can be done.
    pub fn new(tokens: &'l Tokens<'l>, fitted: &'l Fitted, classes: &'l [LabelClass]) -> Self {
        let way = match fitted {
            _ if classes.is_empty() => Way::Alone,
            Fitted::Levels(_) => Way::Permanents,
            Fitted::Logs(_) if can_be_listed(classes) => Way::Listed(renamings(classes)),
            Fitted::Logs(_) => Way::Assumed,
        };
        Labels { tokens, fitted, classes, way }
    }

    /// ln of the number of relabellings.
    pub fn ln_relabellings(&self) -> f64 {
        ln_relabellings(self.classes)
    }

    /// Whether labels are taken to be far apart.
    pub fn is_assumed(&self) -> bool {
        matches!(self.way, Way::Assumed)
    }

    /// ln r(z) of the states of all tokens.
    pub fn ln_share(&self, states: &[u32]) -> LnShare {
        match (&self.way, self.fitted) {
            (Way::Permanents, Fitted::Levels(levels)) => ln_share(self.tokens, levels, self.classes, states),
            (Way::Listed(renamings), _) => {
                let own = self.fitted.ln_probability(self.tokens, states);
                let ln = own - log_sum_exp(&self.ln_of_all(renamings, states));
                LnShare { low: ln, high: ln }
            }
            (Way::Assumed, _) => {
                let ln = -self.ln_orders_of_empty(states);
                LnShare { low: ln, high: ln }
            }
            _ => LnShare { low: 0.0, high: 0.0 },
        }
    }

    /// ln of the number of ways to exchange labels that no token has.
    fn ln_orders_of_empty(&self, states: &[u32]) -> f64 {
        let mut is_used: Vec<Vec<bool>> = self.classes.iter().map(|class| vec![false; class.size as usize]).collect();
        let class_of = |node: NodeIndex| self.classes.iter().position(|class| class.nodes.contains(&node));
        for token in 0..self.tokens.len() {
            let (kernel, ..) = self.tokens.kernel(token);
            let buckets = &self.tokens.layout.kernels[kernel].buckets;
            for (&state, bucket) in states[self.tokens.states(token)].iter().zip(buckets) {
                for (node, value) in bucket_values(bucket, state as usize) {
                    if let Some(class) = class_of(node) {
                        is_used[class][value as usize] = true;
                    }
                }
            }
        }
        let of_class = |(class, is_used): (&LabelClass, &Vec<bool>)| -> f64 {
            let n_empty = |set: &Vec<u32>| set.iter().filter(|&&value| !is_used[value as usize]).count() as u64;
            class.sets.iter().map(|set| ln_factorial(n_empty(set)).value()).sum()
        };
        self.classes.iter().zip(&is_used).map(of_class).sum()
    }

    /// Gives the states of all tokens other names, drawn by the share that the reference's labelling has in them.
    pub fn relabel(&self, states: &mut [u32], rng: &mut impl Rng) {
        match (&self.way, self.fitted) {
            (Way::Permanents, Fitted::Levels(levels)) => relabel(self.tokens, levels, self.classes, states, rng),
            (Way::Listed(renamings), _) => {
                let logs = self.ln_of_all(renamings, states);
                let total = log_sum_exp(&logs);
                let mut rest = open_unit(rng);
                let drawn = logs.iter().position(|ln| {
                    rest -= (ln - total).exp();
                    rest <= 0.0
                });
                let renamed = self.renamed(&renamings[drawn.unwrap_or(renamings.len() - 1)], states);
                states.copy_from_slice(&renamed);
            }
            _ => {}
        }
    }

    fn ln_of_all(&self, renamings: &[Renaming], states: &[u32]) -> Vec<f64> {
        let ln = |renaming| self.fitted.ln_probability(self.tokens, &self.renamed(renaming, states));
        renamings.iter().map(ln).collect()
    }

    fn renamed(&self, renaming: &Renaming, states: &[u32]) -> Vec<u32> {
        let new_name = |node: NodeIndex, value: u32| {
            let class = self.classes.iter().position(|class| class.nodes.contains(&node));
            class.map_or(value, |class| renaming[class][value as usize])
        };
        let of_kernel = |kernel: &Kernel| -> Vec<Vec<usize>> {
            kernel.buckets.iter().map(|bucket| moved_states(bucket, &new_name)).collect()
        };
        let moved: Vec<Vec<Vec<usize>>> = self.tokens.layout.kernels.iter().map(of_kernel).collect();
        let mut renamed = states.to_vec();
        for token in 0..self.tokens.len() {
            let (kernel, ..) = self.tokens.kernel(token);
            for (state, to) in renamed[self.tokens.states(token)].iter_mut().zip(&moved[kernel]) {
                *state = to[*state as usize] as u32;
            }
        }
        renamed
    }
}

/// Whether there are few enough relabellings to list them.
pub fn can_be_listed(classes: &[LabelClass]) -> bool {
    ln_relabellings(classes) <= MOST_LISTED.ln() + 1e-9
}

/// ln of the number of relabellings.
fn ln_relabellings(classes: &[LabelClass]) -> f64 {
    let sets = classes.iter().flat_map(|class| &class.sets);
    sets.map(|set| ln_factorial(set.len() as u64).value()).sum()
}

/// All relabellings.
fn renamings(classes: &[LabelClass]) -> Vec<Renaming> {
    let mut all: Vec<Renaming> = vec![classes.iter().map(|class| (0..class.size).collect()).collect()];
    for (class_ix, class) in classes.iter().enumerate() {
        for set in &class.sets {
            let extend = |renaming: &Renaming| {
                let with = |order: Vec<u32>| {
                    let mut renaming = renaming.clone();
                    set.iter().zip(order).for_each(|(&own, other)| renaming[class_ix][own as usize] = other);
                    renaming
                };
                permutations(set).into_iter().map(with).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(extend).collect();
        }
    }
    all
}

/// All orders of a list.
fn permutations(list: &[u32]) -> Vec<Vec<u32>> {
    if list.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |first: usize| {
        let rest: Vec<u32> = list.iter().enumerate().filter(|(ix, _)| *ix != first).map(|(_, &value)| value).collect();
        permutations(&rest).into_iter().map(move |order| std::iter::once(list[first]).chain(order).collect())
    };
    (0..list.len()).flat_map(with_first).collect()
}

/// ln q of the tokens of one value if they had another one, up to what is the same for all others.
struct LnOverlap<'s> {
    set: &'s [u32],
    /// Whether no token has the value, by place in the set.
    is_empty: Vec<bool>,
    /// By value and other value, both as places in the set.
    ln: Vec<f64>,
}

impl<'s> LnOverlap<'s> {
    fn new(tokens: &Tokens<'_>, levels: &Levels, set: &'s [u32], states: &[u32]) -> Self {
        let n = set.len();
        let mut sums = vec![0i64; n * n];
        let mut is_empty = vec![true; n];
        let mut place = vec![usize::MAX; set.iter().max().map_or(0, |&last| last as usize + 1)];
        set.iter().enumerate().for_each(|(ix, &value)| place[value as usize] = ix);
        for (&record, &state) in tokens.record.iter().zip(states) {
            if let Some(&own) = place.get(state as usize).filter(|&&own| own < usize::MAX) {
                is_empty[own] = false;
                for (sum, &other) in sums[own * n..].iter_mut().zip(set) {
                    *sum += i64::from(levels.level(record as usize, other as usize));
                }
            }
        }
        LnOverlap { set, is_empty, ln: sums.iter().map(|&sum| -levels.step * sum as f64).collect() }
    }

    fn n(&self) -> usize {
        self.set.len()
    }

    fn at(&self, own: usize, other: usize) -> f64 {
        self.ln[own * self.n() + other]
    }

    /// ln of the sum over all relabellings, relative to the present one: between these two.
    fn ln_sum(&self) -> LnShare {
        let n = self.n();
        let relative = |own: usize, other: usize| self.at(own, other) - self.at(own, own);
        // What rows can gain at most by other names.
        let gains: Vec<f64> = (0..n).map(|own| (0..n).map(|other| relative(own, other)).fold(0.0, f64::max)).collect();
        let all_gains: f64 = gains.iter().sum::<f64>() + ln_factorial(n as u64).value();
        // Labels whose every exchange is nothing stay as they are.
        let is_free =
            |own: usize| (0..n).any(|other| other != own && relative(own, other) + all_gains - gains[own] > NOTHING);
        let free: Vec<usize> = (0..n).filter(|&own| is_free(own)).collect();
        let (empty, used): (Vec<usize>, Vec<usize>) = free.iter().partition(|&&own| self.is_empty[own]);
        // Labels without tokens take the names that are left, in any order.
        let ln_orders = ln_factorial(empty.len() as u64).value();
        let summed = (used.len() <= MOST_SUMMED)
            .then(|| ln_sum_of_names(used.len(), free.len(), |own, other| relative(used[own], free[other])))
            .filter(|ln| ln.is_finite());
        match summed {
            Some(ln) => LnShare { low: ln_orders + ln, high: ln_orders + ln },
            None => {
                let row = |own: &usize| {
                    let terms: Vec<f64> = free.iter().map(|&other| relative(*own, other)).collect();
                    log_sum_exp(&terms)
                };
                LnShare { low: ln_orders, high: ln_orders + used.iter().map(row).sum::<f64>() }
            }
        }
    }

    /// A relabelling drawn by its share: for each place in the set its new one.
    fn draw(&self, rng: &mut impl Rng) -> Vec<usize> {
        let mut names = best_assignment(self.n(), |own, other| self.at(own, other));
        // From the best one by exchanges of two names at a time, each kept by its share. Where labels are far apart none is.
        for _ in 0..100 * self.n() * self.n() {
            let [a, b] = [(); 2].map(|()| (open_unit(rng) * self.n() as f64) as usize % self.n());
            let gain = self.at(a, names[b]) + self.at(b, names[a]) - self.at(a, names[a]) - self.at(b, names[b]);
            if open_unit(rng).ln() <= gain {
                names.swap(a, b);
            }
        }
        names
    }
}

/// ln r(z) of the states of all tokens.
fn ln_share(tokens: &Tokens<'_>, levels: &Levels, classes: &[LabelClass], states: &[u32]) -> LnShare {
    let mut share = LnShare { low: 0.0, high: 0.0 };
    for set in classes.iter().flat_map(|class| &class.sets) {
        let sum = LnOverlap::new(tokens, levels, set, states).ln_sum();
        share.low -= sum.high;
        share.high -= sum.low;
    }
    share
}

/// Gives the states of all tokens other names, drawn by the share that the reference's labelling has in them.
fn relabel(tokens: &Tokens<'_>, levels: &Levels, classes: &[LabelClass], states: &mut [u32], rng: &mut impl Rng) {
    for set in classes.iter().flat_map(|class| &class.sets) {
        let names = LnOverlap::new(tokens, levels, set, states).draw(rng);
        let mut new: Vec<u32> = (0..=*set.iter().max().expect("a set has labels")).collect();
        names.iter().enumerate().for_each(|(own, &other)| new[set[own] as usize] = set[other]);
        for state in states.iter_mut() {
            if let Some(&name) = new.get(*state as usize) {
                *state = name;
            }
        }
    }
}

/// ln of the sum over all ways to give rows different columns of the products of their entries, which are given as logs: one column after
/// another, over the set of rows that have theirs. No sum is below all numbers unless rows compete for columns beyond e^700.
fn ln_sum_of_names(n_rows: usize, n_columns: usize, ln: impl Fn(usize, usize) -> f64) -> f64 {
    let largest = |row: usize| (0..n_columns).map(|column| ln(row, column)).fold(f64::NEG_INFINITY, f64::max);
    let scales: Vec<f64> = (0..n_rows).map(largest).collect();
    let mut sums = vec![0.0; 1 << n_rows];
    sums[0] = 1.0;
    for column in 0..n_columns {
        let entries: Vec<f64> = (0..n_rows).map(|row| (ln(row, column) - scales[row]).exp()).collect();
        // Larger sets first: those without one of their rows have not had this column yet.
        for set in (1usize..1 << n_rows).rev() {
            let with_column = |(row, entry): (usize, &f64)| {
                if set >> row & 1 == 1 { sums[set & !(1 << row)] * entry } else { 0.0 }
            };
            sums[set] += entries.iter().enumerate().map(with_column).sum::<f64>();
        }
    }
    sums[(1 << n_rows) - 1].ln() + scales.iter().sum::<f64>()
}

/// A permutation of large sum: the largest entries first, then exchanges while they gain.
fn best_assignment(n: usize, value: impl Fn(usize, usize) -> f64) -> Vec<usize> {
    // Rows are compared by what they lose against their best column.
    let best: Vec<f64> = (0..n).map(|row| (0..n).map(|column| value(row, column)).fold(f64::MIN, f64::max)).collect();
    let mut pairs: Vec<(usize, usize)> = (0..n).flat_map(|row| (0..n).map(move |column| (row, column))).collect();
    let loss = |&(row, column): &(usize, usize)| best[row] - value(row, column);
    pairs.sort_by(|a, b| loss(a).total_cmp(&loss(b)));
    let (mut names, mut is_given) = (vec![usize::MAX; n], vec![false; n]);
    for (row, column) in pairs {
        if names[row] == usize::MAX && !is_given[column] {
            names[row] = column;
            is_given[column] = true;
        }
    }
    let mut gains = true;
    while gains {
        gains = false;
        for a in 0..n {
            for b in a + 1..n {
                let now = value(a, names[a]) + value(b, names[b]);
                if value(a, names[b]) + value(b, names[a]) > now + 1e-9 {
                    names.swap(a, b);
                    gains = true;
                }
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::{LnOverlap, ln_sum_of_names, permutations};
    use crate::math::log_sum_exp;

    /// Uneven entries, the last rows without tokens.
    fn overlap(set: &[u32], n_used: usize) -> LnOverlap<'_> {
        let n = set.len();
        let entry = |ix: usize| {
            let (own, other) = (ix / n, ix % n);
            if own < n_used { -0.3 * ((own * 7 + other * other * 3) % 11) as f64 } else { 0.0 }
        };
        LnOverlap { set, is_empty: (0..n).map(|own| own >= n_used).collect(), ln: (0..n * n).map(entry).collect() }
    }

    #[test]
    fn the_sum_over_names_is_that_over_all_permutations() {
        let set = [0, 1, 2, 3, 4, 5];
        for n_used in 0..=set.len() {
            let overlap = overlap(&set, n_used);
            let ln_of = |order: &Vec<u32>| -> f64 {
                (0..set.len()).map(|own| overlap.at(own, order[own] as usize) - overlap.at(own, own)).sum()
            };
            let want = log_sum_exp(&permutations(&set).iter().map(ln_of).collect::<Vec<_>>());
            let found = overlap.ln_sum();
            assert!((found.low - want).abs() < 1e-12 && found.low == found.high, "{n_used}: {found:?} {want}");
        }
    }

    /// Twenty names for three labels: 20 x 19 x 18 ways, and 17! orders of those without tokens.
    #[test]
    fn labels_without_tokens_are_no_burden() {
        let set: Vec<u32> = (0..20).collect();
        let mut even = overlap(&set, 3);
        even.ln = vec![0.0; 400];
        // ln 20!
        let want = 42.335_616_460_753_485;
        let found = even.ln_sum();
        assert!((found.low - want).abs() < 1e-12 * want && found.low == found.high, "{found:?}");
    }

    /// Where too many labels that tokens have can be mistaken for each other, two bounds hold the sum.
    #[test]
    fn bounds_of_many_labels_hold_the_sum() {
        let set: Vec<u32> = (0..18).collect();
        let overlap = overlap(&set, 16);
        let relative = |own: usize, other: usize| overlap.at(own, other) - overlap.at(own, own);
        let want = ln_sum_of_names(18, 18, relative);
        let found = overlap.ln_sum();
        assert!(found.low < want && want < found.high, "{found:?} {want}");
    }
}
