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

use super::assignment::Assignment;
use super::fitted::{Fitted, Levels};
use crate::engine::gibbs::{EIGHT, Tokens};
use crate::engine::lines::Kernel;
use crate::engine::naming::{bucket_values, moved_states};
use crate::engine::symmetry::LabelClass;
use crate::graph::NodeIndex;
use crate::math::draw::open_unit;
use crate::math::{ln_factorial, log_sum_exp};
use rand::Rng;
use rand::seq::SliceRandom;

/// So many labels that tokens have and that can be mistaken for each other are summed over all subsets.
const MOST_SUMMED: usize = 14;

/// Numbers that are held to draw a relabelling.
const MOST_HELD: usize = 1 << 22;

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
        let place = places_in(set);
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
        let best = BestNames::of(self);
        let present: f64 = best.used.iter().map(|&own| self.at(own, own)).sum();
        // Labels without tokens take the names that are left, in any order.
        let ln_orders = ln_factorial((self.n() - best.used.len()) as u64).value();
        let ln = best.assignment.value() - present + ln_orders;
        if best.free.len() > MOST_SUMMED {
            return LnShare { low: ln, high: ln + best.ln_most() };
        }
        let mut sums = best.no_columns();
        (0..best.columns.len()).for_each(|ix| best.add_column(ix, &mut sums));
        let ln = ln + sums[sums.len() - 1].ln();
        LnShare { low: ln, high: ln }
    }

    /// A relabelling drawn by its share: for each place in the set its new one.
    fn draw(&self, rng: &mut impl Rng) -> Vec<usize> {
        let best = BestNames::of(self);
        let mut names = vec![usize::MAX; self.n()];
        best.used.iter().zip(&best.assignment.columns).for_each(|(&own, &other)| names[own] = other);
        let is_summed = best.free.len() <= MOST_SUMMED && (best.columns.len() + 1) << best.free.len() <= MOST_HELD;
        if is_summed {
            for (row, column) in best.draw(rng) {
                names[best.used[row]] = column;
            }
        }
        let mut is_left = vec![true; self.n()];
        names.iter().filter(|name| **name < usize::MAX).for_each(|&name| is_left[name] = false);
        let mut left: Vec<usize> = (0..self.n()).filter(|&name| is_left[name]).collect();
        left.shuffle(rng);
        names.iter_mut().filter(|name| **name == usize::MAX).zip(left).for_each(|(name, other)| *name = other);
        if !is_summed {
            // From the best ones by exchanges of two names at a time, each kept by its share.
            for _ in 0..100 * self.n() * self.n() {
                let [a, b] = [(); 2].map(|()| (open_unit(rng) * self.n() as f64) as usize % self.n());
                let gain = self.at(a, names[b]) + self.at(b, names[a]) - self.at(a, names[a]) - self.at(b, names[b]);
                if open_unit(rng).ln() <= gain {
                    names.swap(a, b);
                }
            }
        }
        names
    }
}

/// The best names of labels that tokens have, and which of them may have others.
///
/// Logs are taken relative to the prices of the best names, so that none is above 0 and those of the best names are 0: then no sum is
/// below 1, however labels compete for names.
struct BestNames {
    /// Places of labels that tokens have: the rows.
    used: Vec<usize>,
    assignment: Assignment,
    /// Rows that may have other names than the best.
    free: Vec<usize>,
    /// Names that these may have.
    columns: Vec<usize>,
    /// For each of these columns the shares of the free rows.
    entries: Vec<Vec<f64>>,
    /// For each of them the share of giving it to no free row.
    skips: Vec<f64>,
}

impl BestNames {
    fn of(overlap: &LnOverlap<'_>) -> Self {
        let n = overlap.n();
        let used: Vec<usize> = (0..n).filter(|&own| !overlap.is_empty[own]).collect();
        let assignment = Assignment::best(used.len(), n, |row, column| overlap.at(used[row], column));
        let relative = |row: usize, column: usize| {
            let ln = overlap.at(used[row], column) - assignment.row_prices[row] - assignment.column_prices[column];
            ln.min(0.0)
        };
        // All relabellings with this row in this column are next to nothing.
        let nothing = NOTHING - ln_factorial(n as u64).value();
        let may_be = |row: usize, column: usize| relative(row, column) > nothing;
        let is_free = |row: &usize| (0..n).any(|column| column != assignment.columns[*row] && may_be(*row, column));
        let free: Vec<usize> = (0..used.len()).filter(is_free).collect();
        // Rows that stay keep their names.
        let mut is_open = vec![true; n];
        assignment.columns.iter().for_each(|&column| is_open[column] = false);
        free.iter().for_each(|&row| is_open[assignment.columns[row]] = true);
        let columns: Vec<usize> =
            (0..n).filter(|&column| is_open[column] && free.iter().any(|&row| may_be(row, column))).collect();
        let entries = columns.iter().map(|&column| free.iter().map(|&row| relative(row, column).exp()).collect());
        let entries = entries.collect();
        let skips = columns.iter().map(|&column| (-assignment.column_prices[column]).exp()).collect();
        BestNames { used, free, columns, entries, skips, assignment }
    }

    /// Shares of all sets of free rows that have columns, while there is none.
    fn no_columns(&self) -> Vec<f64> {
        let mut sums = vec![0.0; 1 << self.free.len()];
        sums[0] = 1.0;
        sums
    }

    /// One column more, for a row of each set or for none.
    fn add_column(&self, ix: usize, sums: &mut [f64]) {
        let entries = &self.entries[ix];
        // Larger sets first: those without one of their rows have not had this column yet.
        for set in (0..sums.len()).rev() {
            let with_column = |(row, entry): (usize, &f64)| {
                if set >> row & 1 == 1 { sums[set & !(1 << row)] * entry } else { 0.0 }
            };
            sums[set] = sums[set] * self.skips[ix] + entries.iter().enumerate().map(with_column).sum::<f64>();
        }
    }

    /// ln of no less than the sum of all shares: each row may have any column, whoever else has it.
    fn ln_most(&self) -> f64 {
        (0..self.free.len()).map(|row| self.entries.iter().map(|entries| entries[row]).sum::<f64>().ln()).sum()
    }

    /// Rows and columns of a relabelling, drawn by its share: the last column is dealt out first, by the shares of what is left for those before.
    fn draw(&self, rng: &mut impl Rng) -> Vec<(usize, usize)> {
        let mut layers = vec![self.no_columns()];
        for ix in 0..self.columns.len() {
            let mut next = layers[ix].clone();
            self.add_column(ix, &mut next);
            layers.push(next);
        }
        let mut set = (1usize << self.free.len()) - 1;
        let mut drawn = Vec::with_capacity(self.free.len());
        for (ix, before) in layers[..self.columns.len()].iter().enumerate().rev() {
            let mut rest = open_unit(rng) * layers[ix + 1][set] - before[set] * self.skips[ix];
            if rest <= 0.0 {
                continue;
            }
            let rows = (0..self.free.len()).filter(|row| set >> row & 1 == 1);
            let share = |row: &usize| before[set & !(1 << row)] * self.entries[ix][*row];
            let possible: Vec<(usize, f64)> =
                rows.map(|row| (row, share(&row))).filter(|(_, share)| *share > 0.0).collect();
            let found = possible.iter().find(|(_, share)| {
                rest -= share;
                rest <= 0.0
            });
            // Rounding may leave a rest.
            if let Some(&(row, _)) = found.or(possible.last()) {
                drawn.push((self.free[row], self.columns[ix]));
                set &= !(1 << row);
            }
        }
        drawn
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

/// Tokens up to which a chain's labels are given steady names, and labels: beyond, chains keep their own, and looking is dear.
const MOST_STEADY: (usize, usize) = (20_000, 128);

/// The states of all tokens under the names that agree best with the probabilities noted so far, in rows of eight for each record;
/// `None` where the present names do.
///
/// On small data labels wander while a chain goes on. Notes that mix several labellings make a reference that is near to none of them.
pub fn steady_names(
    tokens: &Tokens<'_>,
    classes: &[LabelClass],
    sums: &[[f32; EIGHT]],
    states: &[u32],
) -> Option<Vec<u32>> {
    let n_eights = sums.len() / tokens.layout.records.len().max(1);
    let noted = |record: usize, value: u32| sums[record * n_eights + value as usize / EIGHT][value as usize % EIGHT];
    let mut renamed: Option<Vec<u32>> = None;
    for set in classes.iter().flat_map(|class| &class.sets) {
        let n = set.len();
        if tokens.len() > MOST_STEADY.0 || n > MOST_STEADY.1 {
            continue;
        }
        let place = places_in(set);
        let mut agreement = vec![0.0f64; n * n];
        for (&record, &state) in tokens.record.iter().zip(states) {
            if let Some(&own) = place.get(state as usize).filter(|&&own| own < usize::MAX) {
                let row = agreement[own * n..].iter_mut().zip(set);
                row.for_each(|(sum, &other)| *sum += f64::from(noted(record as usize, other)));
            }
        }
        let is_best = |own: usize| (0..n).all(|other| agreement[own * n + other] <= agreement[own * n + own]);
        if (0..n).all(is_best) {
            continue;
        }
        let names = Assignment::best(n, n, |own, other| agreement[own * n + other]).columns;
        if names.iter().enumerate().any(|(own, &other)| own != other) {
            rename(set, &names, renamed.get_or_insert_with(|| states.to_vec()));
        }
    }
    renamed
}

/// For each value its place in a set, if it is in it.
fn places_in(set: &[u32]) -> Vec<usize> {
    let mut place = vec![usize::MAX; set.iter().max().map_or(0, |&last| last as usize + 1)];
    set.iter().enumerate().for_each(|(ix, &value)| place[value as usize] = ix);
    place
}

/// Gives each value of a set the name at another place of it.
fn rename(set: &[u32], names: &[usize], states: &mut [u32]) {
    let mut new: Vec<u32> = (0..=*set.iter().max().expect("a set has labels")).collect();
    names.iter().enumerate().for_each(|(own, &other)| new[set[own] as usize] = set[other]);
    for state in states {
        if let Some(&name) = new.get(*state as usize) {
            *state = name;
        }
    }
}

/// Gives the states of all tokens other names, drawn by the share that the reference's labelling has in them.
fn relabel(tokens: &Tokens<'_>, levels: &Levels, classes: &[LabelClass], states: &mut [u32], rng: &mut impl Rng) {
    for set in classes.iter().flat_map(|class| &class.sets) {
        let names = LnOverlap::new(tokens, levels, set, states).draw(rng);
        rename(set, &names, states);
    }
}

#[cfg(test)]
mod tests {
    use super::{LnOverlap, permutations, steady_names};
    use crate::engine::gibbs::reference::with_case;
    use crate::engine::gibbs::{EIGHT, Tokens};
    use crate::engine::symmetry::label_classes;
    use crate::math::log_sum_exp;
    use crate::{Purpose, Seed};
    use std::collections::HashMap;

    /// A chain's labels change names; its notes know the old ones. Twelve tokens of four values, one of which no token has.
    #[test]
    fn labels_keep_the_names_under_which_they_were_noted() {
        let case = ("r[4] -> i j", "i,j,count\n0,0,4\n1,1,3\n2,2,3\n2,0,2\n", 1.0);
        with_case(case, |problem| {
            let layout = problem.layout().unwrap();
            let tokens = Tokens::new(layout).unwrap();
            let classes = label_classes(problem.model, problem.prior, problem.counts);
            let names = [2, 0, 3, 1];
            let states: Vec<u32> = tokens.record.iter().map(|&record| names[record as usize % 3]).collect();
            let mut sums = vec![[0.0f32; EIGHT]; layout.records.len()];
            for (&record, &state) in tokens.record.iter().zip(&states) {
                sums[record as usize][state as usize] += 1.0;
            }
            assert_eq!(steady_names(&tokens, &classes, &sums, &states), None);
            for order in permutations(&[0, 1, 2, 3]) {
                let moved: Vec<u32> = states.iter().map(|&state| order[state as usize]).collect();
                let back = steady_names(&tokens, &classes, &sums, &moved);
                assert_eq!(back.unwrap_or(moved), states, "{order:?}");
            }
        });
    }

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

    /// Where too many labels that tokens have can be mistaken for each other, two bounds hold the sum. Blocks of two labels each: the sum is
    /// the product of theirs.
    #[test]
    fn bounds_of_many_labels_hold_the_sum() {
        let set: Vec<u32> = (0..16).collect();
        let entry = |(own, other): (usize, usize)| match (own == other, own / 2 == other / 2) {
            (true, _) => -1.0,
            (_, true) => -1.5,
            _ => -2000.0,
        };
        let ln = (0..256).map(|ix| entry((ix / 16, ix % 16))).collect();
        let found = LnOverlap { set: &set, is_empty: vec![false; 16], ln }.ln_sum();
        let want = 8.0 * (1.0 + f64::exp(-1.0)).ln();
        assert!(found.low < want && want < found.high, "{found:?} {want}");
    }

    /// A matrix of overlaps, uneven, with differences of up to so many nats.
    fn uneven(set: &[u32], n_used: usize, nats: f64, seed: u64) -> LnOverlap<'_> {
        let n = set.len();
        let mut rng = Seed(seed).stream(Purpose::Anneal, 0, 0, 0);
        let mut entry = |ix: usize| {
            let ln = -nats * crate::math::draw::open_unit(&mut rng);
            if ix / n < n_used { ln } else { 0.0 }
        };
        LnOverlap { set, is_empty: (0..n).map(|own| own >= n_used).collect(), ln: (0..n * n).map(&mut entry).collect() }
    }

    fn ln_of(overlap: &LnOverlap<'_>, names: impl Iterator<Item = usize>) -> f64 {
        names.enumerate().map(|(own, other)| overlap.at(own, other)).sum()
    }

    /// Labels that compete for names by hundreds of nats, and the present names anything but the best.
    #[test]
    fn sums_and_draws_know_the_best_names_however_labels_compete() {
        let set: Vec<u32> = (0..6).collect();
        for seed in 0..60 {
            for n_used in [3, 5, 6] {
                let overlap = uneven(&set, n_used, 3000.0, seed);
                let all: Vec<f64> = permutations(&set)
                    .iter()
                    .map(|order| ln_of(&overlap, order.iter().map(|&other| other as usize)))
                    .collect();
                let present = ln_of(&overlap, 0..6);
                let want = log_sum_exp(&all) - present;
                let found = overlap.ln_sum();
                assert!(
                    (found.low - want).abs() < 1e-9 && found.low == found.high,
                    "{seed} {n_used}: {found:?} {want}"
                );
                let names = overlap.draw(&mut Seed(seed).stream(Purpose::Anneal, 1, 0, 0));
                let drawn = ln_of(&overlap, names.into_iter());
                let best = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                assert!(drawn > best - 30.0, "{seed} {n_used}: {drawn} {best}");
            }
        }
    }

    /// Draws have their shares: 20,000 of each matrix, every frequency within 4.5 standard errors.
    #[test]
    fn relabellings_are_drawn_by_their_shares() {
        let set: Vec<u32> = (0..4).collect();
        let n_draws = 20_000;
        for (seed, n_used) in [(1, 4), (2, 3), (3, 2), (4, 4), (5, 0)] {
            let overlap = uneven(&set, n_used, 6.0, seed);
            let orders = permutations(&set);
            let logs: Vec<f64> =
                orders.iter().map(|order| ln_of(&overlap, order.iter().map(|&other| other as usize))).collect();
            let total = log_sum_exp(&logs);
            let mut found: HashMap<Vec<usize>, f64> = HashMap::new();
            let mut rng = Seed(seed).stream(Purpose::Anneal, 2, 0, 0);
            for _ in 0..n_draws {
                *found.entry(overlap.draw(&mut rng)).or_default() += 1.0;
            }
            for (order, ln) in orders.iter().zip(logs) {
                let p = (ln - total).exp();
                let names: Vec<usize> = order.iter().map(|&other| other as usize).collect();
                let n = found.get(&names).copied().unwrap_or(0.0);
                let expected = p * f64::from(n_draws);
                // Below ten expected draws a frequency is not normal.
                let error = (expected * (1.0 - p)).sqrt().max(10f64.sqrt());
                assert!((n - expected).abs() <= 4.5 * error, "{seed}: {names:?} {n} times, not {expected}");
            }
        }
    }
}
