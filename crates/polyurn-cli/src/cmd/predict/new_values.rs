//! Values of open roots that the fit does not know, such as new documents: their names, and rows inferred from their records.

use super::block::{Block, NO_LABEL};
use super::label_of;
use super::patterns::Pattern;
use polyurn::Warning;
use polyurn::counts::Labels;
use polyurn::fit_file::FitFile;
use polyurn::graph::NodeIndex;
use polyurn::predict::{NewRows, Predictor, Question};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// New values of all open roots.
#[derive(Debug, Default)]
pub struct NewValues {
    roots: Vec<Root>,
    rows: HashMap<(usize, u32), NewRows>,
}

#[derive(Debug)]
struct Root {
    node: NodeIndex,
    labels: HashMap<String, u32>,
    names: Vec<String>,
    /// Values that the fit knows, as far as they occurred.
    known: HashSet<u32>,
    /// The label of the row before, and labels that cannot come again where rows stand together.
    last: u32,
    is_closed: Vec<bool>,
}

impl NewValues {
    /// None yet.
    pub fn new(predictor: &Predictor<'_>) -> Self {
        let root = |&node: &NodeIndex| Root {
            node,
            labels: HashMap::new(),
            names: Vec::new(),
            known: HashSet::new(),
            last: NO_LABEL,
            is_closed: Vec::new(),
        };
        NewValues { roots: predictor.open_roots().iter().map(root).collect(), rows: HashMap::new() }
    }

    /// The number of a label, given out in order.
    pub fn label(&mut self, root: usize, name: &str) -> u32 {
        let root = &mut self.roots[root];
        if let Some(&label) = root.labels.get(name) {
            return label;
        }
        let label = root.names.len() as u32;
        root.labels.insert(name.to_owned(), label);
        root.names.push(name.to_owned());
        root.is_closed.push(false);
        label
    }

    /// Takes note of a value that the fit knows.
    pub fn know(&mut self, root: usize, value: u32) {
        self.roots[root].known.insert(value);
    }

    /// How many values of each node the fit knows, and how many are new.
    pub fn n_values(&self) -> impl Iterator<Item = (NodeIndex, u64, u64)> + '_ {
        self.roots.iter().map(|root| (root.node, root.known.len() as u64, root.names.len() as u64))
    }

    /// Says where values were taken for those of the fit that have no names, but numbers: a file of its own counts from one
    /// again.
    pub fn warnings(&self, fit: &FitFile) -> Vec<Warning> {
        let has_numbers = |node: NodeIndex| matches!(fit.labels[node.ix()], Labels::Indexed { .. });
        let taken = self.n_values().filter(|&(node, known, _)| known > 0 && has_numbers(node));
        let name = |node| fit.model.node(node).name.clone();
        taken.map(|(node, known, new)| Warning::KnownByNumber { node: name(node), known, new }).collect()
    }

    /// Whether a row with these labels belongs with the last row of a block.
    pub fn goes_on(&self, block: &Block, labels: &[u32]) -> bool {
        let Some(last) = block.n_rows().checked_sub(1) else { return false };
        (0..self.roots.len()).any(|root| labels[root] != NO_LABEL && block.new_label(last, root) == labels[root])
    }

    /// Takes note of a row's labels; the name of one that has come to an end before.
    pub fn stand_together(&mut self, labels: &[u32]) -> Result<(), String> {
        for (root, &label) in self.roots.iter_mut().zip(labels) {
            if root.last != label && root.last != NO_LABEL {
                root.is_closed[root.last as usize] = true;
            }
            root.last = label;
            if label != NO_LABEL && root.is_closed[label as usize] {
                return Err(root.names[label as usize].clone());
            }
        }
        Ok(())
    }

    /// Infers the rows of all labels among the records.
    pub fn infer(&mut self, predictor: &Predictor<'_>, collected: &Collected, n_threads: usize) {
        let mut keys: Vec<(usize, u32)> = collected.records.keys().copied().collect();
        keys.sort_unstable();
        let rows = polyurn::parallel::map(&keys, n_threads, |key| {
            let records: Vec<(&Question, &[u32], f64)> =
                collected.records[key].iter().map(|record| (&*record.0, &record.1[..], record.2)).collect();
            predictor.new_rows(predictor.open_roots()[key.0], &records)
        });
        self.rows.extend(keys.into_iter().zip(rows));
    }

    /// For each open root the rows of a row's new value.
    pub fn of_row(&self, block: &Block, row: usize) -> Vec<Option<&NewRows>> {
        (0..self.roots.len())
            .map(|root| label_of(block, row, root).and_then(|label| self.rows.get(&(root, label))))
            .collect()
    }

    /// Drops rows that will not be asked for again.
    pub fn forget(&mut self) {
        self.rows.clear();
    }
}

/// A question without wishes, the values, and the weight.
type Record = (Arc<Question>, Vec<u32>, f64);

/// Records of new values.
#[derive(Debug, Default)]
pub struct Collected {
    records: HashMap<(usize, u32), Vec<Record>>,
}

impl Collected {
    /// Adds those of a block, with all their tokens.
    pub fn add(&mut self, block: &Block, patterns: &[Pattern]) {
        // A cell of unknown count says nothing about where tokens are.
        self.add_weighted(block, patterns, |row| block.tokens(row).unwrap_or(0.0));
    }

    /// Adds those of a block, each row with some of its tokens.
    pub fn add_weighted(&mut self, block: &Block, patterns: &[Pattern], mut weight: impl FnMut(usize) -> f64) {
        let n_open = block.n_open;
        for row in 0..block.n_rows() {
            let weight = weight(row);
            for root in 0..n_open {
                if let Some(label) = label_of(block, row, root) {
                    let record = (patterns[row].plain.clone(), block.record(row).to_vec(), weight);
                    self.records.entry((root, label)).or_default().push(record);
                }
            }
        }
    }
}
