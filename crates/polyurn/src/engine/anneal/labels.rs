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
//! with value k have value l. It is summed over subsets where there are few labels that can be mistaken for each other.

use super::fitted::{Fitted, Levels};
use crate::engine::gibbs::Tokens;
use crate::engine::lines::Kernel;
use crate::engine::naming::moved_states;
use crate::engine::symmetry::LabelClass;
use crate::graph::NodeIndex;
use crate::math::draw::open_unit;
use crate::math::{ln_factorial, log_sum_exp};
use rand::Rng;

/// So many labels that can be mistaken for each other are summed over all subsets.
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
    /// Not at all: labels are taken to be far apart.
    Assumed,
}

impl<'l> Labels<'l> {
    /// Looks how it can be done.
    pub fn new(tokens: &'l Tokens<'l>, fitted: &'l Fitted, classes: &'l [LabelClass]) -> Self {
        let way = match fitted {
            _ if classes.is_empty() => Way::Alone,
            Fitted::Levels(_) => Way::Permanents,
            Fitted::Logs(_) if ln_relabellings(classes) <= MOST_LISTED.ln() + 1e-9 => Way::Listed(renamings(classes)),
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
            _ => LnShare { low: 0.0, high: 0.0 },
        }
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
    /// By value and other value, both as places in the set.
    ln: Vec<f64>,
}

impl<'s> LnOverlap<'s> {
    fn new(tokens: &Tokens<'_>, levels: &Levels, set: &'s [u32], states: &[u32]) -> Self {
        let n = set.len();
        let mut sums = vec![0i64; n * n];
        let mut place = vec![usize::MAX; set.iter().max().map_or(0, |&last| last as usize + 1)];
        set.iter().enumerate().for_each(|(ix, &value)| place[value as usize] = ix);
        for (&record, &state) in tokens.record.iter().zip(states) {
            if let Some(&own) = place.get(state as usize).filter(|&&own| own < usize::MAX) {
                for (sum, &other) in sums[own * n..].iter_mut().zip(set) {
                    *sum += i64::from(levels.level(record as usize, other as usize));
                }
            }
        }
        LnOverlap { set, ln: sums.iter().map(|&sum| -levels.step * sum as f64).collect() }
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
        if free.len() > MOST_SUMMED {
            let row = |own: &usize| {
                let terms: Vec<f64> = free.iter().map(|&other| relative(*own, other)).collect();
                log_sum_exp(&terms)
            };
            return LnShare { low: 0.0, high: free.iter().map(row).sum() };
        }
        let ln = ln_permanent(free.len(), |own, other| relative(free[own], free[other]));
        LnShare { low: ln, high: ln }
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

/// ln of the sum over all permutations of the products of entries, which are given as logs: one row after another, over the set
/// of columns that are taken.
fn ln_permanent(n: usize, ln: impl Fn(usize, usize) -> f64) -> f64 {
    let mut sums = vec![f64::NEG_INFINITY; 1 << n];
    sums[0] = 0.0;
    for taken in 1usize..1 << n {
        let row = taken.count_ones() as usize - 1;
        let terms = (0..n).filter(|column| taken >> column & 1 == 1);
        let terms: Vec<f64> = terms.map(|column| sums[taken & !(1 << column)] + ln(row, column)).collect();
        sums[taken] = log_sum_exp(&terms);
    }
    sums[(1 << n) - 1]
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
