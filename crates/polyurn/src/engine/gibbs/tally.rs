//! What the kept states of a chain add up to.
//!
//! Given a state, a row of a table is Dirichlet, so means and spreads of cells are averaged in closed form. Where hidden values
//! can be exchanged, every state is first renamed after the best one so far, and a better one takes its place under the names
//! that it was given: all states share one naming, and none of them has to be stored.

use super::chain::Chain;
use super::tokens::Tokens;
use crate::engine::Problem;
use crate::engine::allocation::{ParticleAllocation, RecordAllocation};
use crate::engine::lines::Kernel;
use crate::engine::naming::{Renaming, best_names, class_of, is_identity, moved_lines, moved_states};
use crate::engine::sheet::{Held, Sheet};
use crate::engine::tables::Moments;
use crate::evidence::evidence;
use crate::math::{Double, ln_factorial};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What all chains share.
#[derive(Debug)]
pub struct Watched<'t, 'a> {
    pub problem: &'t Problem<'a>,
    pub tokens: &'t Tokens<'t>,
    pub sheet: Sheet,
    /// ln pi(S) less ln of the joint, but for the factorials of the tokens' groups.
    constant: f64,
}

impl<'t, 'a> Watched<'t, 'a> {
    /// Lists the rows of a problem.
    pub fn new(problem: &'t Problem<'a>, tokens: &'t Tokens<'t>) -> Self {
        let constant = evidence(problem, Double::ZERO).map_or(0.0, |parts| parts.log_p_total)
            + ln_factorial(problem.counts.n_tokens).value()
            - tokens.layout.ln_factorials_of_seen;
        Watched { problem, tokens, sheet: Sheet::new(problem, tokens.layout), constant }
    }

    fn count(&self, held: Held, lines: &[u32]) -> f64 {
        match held {
            Held::Fixed(n) => n as f64,
            Held::Line { block, in_block } => {
                f64::from(lines[(self.tokens.first_line[block as usize] + in_block) as usize])
            }
        }
    }

    /// Sum of ln n! over the groups of tokens of one record that have the same hidden values.
    fn ln_factorials(&self, states: &[u32]) -> f64 {
        let layout = self.tokens.layout;
        let mut token = 0;
        let mut sum = 0.0;
        let mut own: Vec<&[u32]> = Vec::new();
        for record in 0..layout.records.len() {
            let n = layout.records.count[record] as usize;
            if n > 1 {
                own.clear();
                own.extend((token..token + n).map(|token| &states[self.tokens.states(token)]));
                own.sort_unstable();
                sum += own.chunk_by(|x, y| x == y).map(|group| libm::lgamma(group.len() as f64 + 1.0)).sum::<f64>();
            }
            token += n;
        }
        sum
    }

    /// How the tokens of all records are allocated.
    fn allocation(&self, states: &[u32]) -> Vec<RecordAllocation> {
        let layout = self.tokens.layout;
        let mut token = 0;
        let mut of_record = |record: usize| {
            let kernel = layout.kernel_of(record);
            let mut groups: HashMap<Vec<u32>, u64> = HashMap::new();
            for _ in 0..layout.records.count[record] {
                let own = &states[self.tokens.states(token)];
                *groups.entry(kernel.values_of_states(&|bucket| own[bucket] as usize)).or_insert(0) += 1;
                token += 1;
            }
            let mut groups: Vec<(Vec<u32>, u64)> = groups.into_iter().collect();
            groups.sort_unstable();
            let (block, record) = layout.records.source[record];
            RecordAllocation { block, record, groups }
        };
        (0..layout.records.len()).map(&mut of_record).collect()
    }

    /// The names under which a state is most like another one; `None` if it is as it is.
    fn renaming(&self, states: &[u32], reference: &[u32]) -> Option<Renaming> {
        let classes = &self.sheet.labels;
        let mut overlaps: Vec<Vec<u64>> =
            classes.iter().map(|class| vec![0; (class.size * class.size) as usize]).collect();
        for token in 0..self.tokens.len() {
            let (_, kernel, _) = self.tokens.kernel(token);
            let own = self.tokens.states(token);
            for ((bucket, &own), &other) in kernel.buckets.iter().zip(&states[own.clone()]).zip(&reference[own]) {
                let (mut own, mut other) = (own, other);
                for &(node, size) in bucket.nodes.iter().rev() {
                    if let Some(class) = class_of(classes, node) {
                        overlaps[class][(own % size * size + other % size) as usize] += 1;
                    }
                    own /= size;
                    other /= size;
                }
            }
        }
        let names: Renaming =
            classes.iter().zip(&overlaps).map(|(class, overlap)| best_names(class, overlap)).collect();
        (!is_identity(&names)).then_some(names)
    }

    /// States and lines under other names.
    fn renamed(&self, names: &Renaming, states: &[u32], lines: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let layout = self.tokens.layout;
        let new_name = |node, value: u32| match class_of(&self.sheet.labels, node) {
            Some(class) => names[class][value as usize],
            None => value,
        };
        let of_class: Vec<Option<Vec<usize>>> =
            (0..layout.classes.len()).map(|class| moved_lines(layout, class, &new_name)).collect();
        let mut new_lines = lines.to_vec();
        for (block, &first) in layout.blocks.iter().zip(&self.tokens.first_line) {
            for (from, &to) in of_class[block.class as usize].iter().flatten().enumerate() {
                new_lines[first as usize + to] = lines[first as usize + from];
            }
        }
        let of_kernel = |kernel: &Kernel| -> Vec<Vec<usize>> {
            kernel.buckets.iter().map(|bucket| moved_states(bucket, &new_name)).collect()
        };
        let of_kernels: Vec<Vec<Vec<usize>>> = layout.kernels.iter().map(of_kernel).collect();
        let mut new_states = states.to_vec();
        for token in 0..self.tokens.len() {
            let (kernel, _, _) = self.tokens.kernel(token);
            for (state, to) in new_states[self.tokens.states(token)].iter_mut().zip(&of_kernels[kernel]) {
                *state = to[*state as usize] as u32;
            }
        }
        (new_states, new_lines)
    }
}

/// Sums over the kept states of one chain.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Kept states.
    pub n: u64,
    /// For each number that does not depend on names its values: ln of the joint, d_EP, and for each table the sum of the
    /// squares of its cells.
    pub traces: Vec<Vec<f64>>,
    /// For each listed cell the mean so far, the squared distances of the states' means from it, and the sum of the
    /// variances within states.
    mean: Vec<f64>,
    squares: Vec<f64>,
    within: Vec<f64>,
    /// For each record and unseen node how many of its tokens had each value.
    hidden: Vec<f64>,
    /// The best state so far, and its allocation.
    reference: Vec<u32>,
    best: Option<ParticleAllocation>,
    /// Kept allocations.
    pub draws: Vec<ParticleAllocation>,
}

impl Tally {
    /// Adds the state of a chain.
    pub fn add(&mut self, watched: &Watched<'_, '_>, chain: &Chain<'_>, run: usize, log_joint: f64, is_draw: bool) {
        let states = chain.states();
        let lines: &[u32] = chain.counts().as_flattened();
        let ln_pi = log_joint - watched.ln_factorials(states) + watched.constant;
        let is_named = self.n > 0 && !watched.sheet.labels.is_empty();
        let names = is_named.then(|| watched.renaming(states, &self.reference)).flatten();
        let (states, lines) = match names {
            Some(names) => {
                let (states, lines) = watched.renamed(&names, states, lines);
                (Cow::Owned(states), Cow::Owned(lines))
            }
            None => (Cow::Borrowed(states), Cow::Borrowed(lines)),
        };
        self.n += 1;
        self.add_cells(watched, &lines, log_joint);
        self.add_hidden(watched, &states);
        let allocation = || ParticleAllocation { run, log_joint, ln_pi, hidden: watched.allocation(&states) };
        if self.best.as_ref().is_none_or(|best| ln_pi > best.ln_pi) {
            self.best = Some(allocation());
            self.reference = states.to_vec();
        }
        if is_draw {
            self.draws.push(allocation());
        }
    }

    fn add_cells(&mut self, watched: &Watched<'_, '_>, lines: &[u32], log_joint: f64) {
        let sheet = &watched.sheet;
        let n_tables = watched.problem.model.tables().len();
        let n_cells = sheet.rows.iter().map(|row| row.cells.len()).sum();
        [&mut self.mean, &mut self.squares, &mut self.within].into_iter().for_each(|list| list.resize(n_cells, 0.0));
        self.traces.resize(2 + n_tables, Vec::new());
        let (mut d_ep, mut of_table) = (0.0, vec![0.0; n_tables]);
        let share = 1.0 / self.n as f64;
        let mut ix = 0;
        for row in &sheet.rows {
            let n_row = watched.count(row.held, lines);
            d_ep -= f64::from(u8::from(n_row > 0.0));
            for &(_, pseudo, held) in &row.cells {
                let n_cell = watched.count(held, lines);
                d_ep += f64::from(u8::from(n_cell > 0.0));
                of_table[row.table.ix()] += n_cell * n_cell;
                let cell = Moments::of_cell(pseudo + n_cell, row.pseudo + n_row);
                let step = cell.mean - self.mean[ix];
                self.mean[ix] += step * share;
                self.squares[ix] += step * (cell.mean - self.mean[ix]);
                self.within[ix] += cell.variance;
                ix += 1;
            }
        }
        for (trace, value) in self.traces.iter_mut().zip([log_joint, d_ep].into_iter().chain(of_table)) {
            trace.push(value);
        }
    }

    fn add_hidden(&mut self, watched: &Watched<'_, '_>, states: &[u32]) {
        let layout = watched.tokens.layout;
        // Each kernel's nodes, and where their values stand in its states.
        let digits: Vec<Vec<_>> = layout
            .kernels
            .iter()
            .map(|kernel| kernel.unseen_nodes().into_iter().map(|node| kernel.digit(node)).collect())
            .collect();
        let of_record = |record: usize| &digits[layout.records.kernel[record] as usize];
        if self.hidden.is_empty() {
            let n =
                (0..layout.records.len()).map(|record| of_record(record).iter().map(|digit| digit.size).sum::<usize>());
            self.hidden = vec![0.0; n.sum()];
        }
        let (mut at, mut token) = (0, 0);
        for record in 0..layout.records.len() {
            let n = layout.records.count[record] as usize;
            for digit in of_record(record) {
                for token in token..token + n {
                    let state = states[watched.tokens.states(token)][digit.bucket] as usize;
                    self.hidden[at + digit.of(state)] += 1.0;
                }
                at += digit.size;
            }
            token += n;
        }
    }

    /// Mean and variance of each listed cell.
    pub fn cell(&self, ix: usize) -> Moments {
        let n = self.n as f64;
        Moments { mean: self.mean[ix], variance: (self.squares[ix] + self.within[ix]) / n }
    }

    /// How many tokens had each value, over all kept states: one after another for records and their unseen nodes.
    pub fn hidden(&self) -> &[f64] {
        &self.hidden
    }

    /// The state of largest ln pi(S).
    pub fn best(&self) -> Option<&ParticleAllocation> {
        self.best.as_ref()
    }

    /// Whether it can belong to this problem; what was saved may be anything.
    pub fn fits(&self, watched: &Watched<'_, '_>) -> bool {
        let n_cells: usize = watched.sheet.rows.iter().map(|row| row.cells.len()).sum();
        let is_whole = [&self.mean, &self.squares, &self.within].iter().all(|list| list.len() == n_cells)
            && watched.tokens.fit(&self.reference);
        self.n == 0 || is_whole
    }
}
