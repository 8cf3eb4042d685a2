//! The models that compete: every size of every model given, all with one list of labels for each column of the data.

use super::naming::text_of;
use crate::counts::Dataset;
use crate::error::{Error, Result};
use crate::graph::{BindOptions, Binding, ModelSource, ModelSpec, NodeSpec, Size, bind, label_groups, resolve_for};
use crate::prior::PriorSettings;
use std::collections::BTreeMap;

/// Candidates at most.
const MOST_CANDIDATES: usize = 10_000;

/// A model as it was given: its sizes may be choices.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Model text, or the name of its file.
    pub name: String,
    /// The model.
    pub source: ModelSource,
    /// Its prior.
    pub settings: PriorSettings,
}

/// One model with all its sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Which entry it comes from.
    pub entry: usize,
    /// Text that gives this model.
    pub model: String,
    /// The sizes that were chosen among several, by node.
    pub sizes: Vec<(String, u32)>,
}

/// All candidates, and the data that they are to explain.
#[derive(Debug)]
pub struct Field {
    entries: Vec<Entry>,
    dataset: Dataset,
    columns: Option<Vec<String>>,
    /// Columns of the data that the models explain.
    explained: Vec<String>,
    /// Sizes of seen nodes that some model declares: they hold for all.
    declared: Vec<(String, u32)>,
    /// Columns that some model ties: they have one list of labels in all.
    same_labels: Vec<Vec<String>>,
    candidates: Vec<Candidate>,
}

impl Field {
    /// Makes one model of every choice of sizes.
    ///
    /// # Errors
    /// When a model cannot be read with these data, when models explain different columns or declare different sizes for one,
    /// or when there are too many.
    pub fn new(entries: Vec<Entry>, dataset: Dataset, columns: Option<Vec<String>>) -> Result<Self> {
        let options = BindOptions { columns: columns.as_deref(), ..Default::default() };
        let mut specs = Vec::new();
        for entry in &entries {
            specs.push(resolve_for(&entry.source, &dataset, options)?);
        }
        let explained = explained_columns(&entries, &specs)?;
        let declared = declared_sizes(&entries, &specs, &explained)?;
        let same_labels = same_labels(&specs, &explained);
        let mut candidates = Vec::new();
        for (ix, (spec, _)) in specs.iter().enumerate() {
            for sizes in choices(spec, &explained)? {
                let model = text_of(&entries[ix].name, spec, &sizes);
                candidates.push(Candidate { entry: ix, model, sizes });
                if candidates.len() > MOST_CANDIDATES {
                    return Err(Error::Setting(format!(
                        "--model: more than {MOST_CANDIDATES} models; give shorter ranges of sizes"
                    )));
                }
            }
        }
        Ok(Field { entries, dataset, columns, explained, declared, same_labels, candidates })
    }

    /// The models as they were given.
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The candidates.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Columns of the data that all of them explain.
    pub fn explained(&self) -> &[String] {
        &self.explained
    }

    /// Tokens of the data.
    pub fn n_tokens(&self) -> u64 {
        self.dataset().counts.iter().fold(0, u64::saturating_add)
    }

    /// The data.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// How a candidate would be called that this text gives, such as a preset with its size; nothing where it is no model of
    /// these data.
    pub fn name_of(&self, text: &str) -> Option<String> {
        let source = ModelSource::parse(text).ok()?;
        let options = BindOptions { columns: self.columns.as_deref(), ..Default::default() };
        let (spec, _) = resolve_for(&source, &self.dataset, options).ok()?;
        let size = |node: &NodeSpec| match node.size {
            Size::Fixed(size) => Some((node.name.clone(), size)),
            _ => None,
        };
        let sizes: Vec<(String, u32)> = spec.nodes.iter().filter_map(size).collect();
        Some(text_of(text, &spec, &sizes))
    }

    /// Whether two candidates differ in one size only, and no size in between was given.
    pub(super) fn are_neighbours(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.candidates[one], &self.candidates[other]);
        let mut differ = one.sizes.iter().zip(&other.sizes).filter(|(a, b)| a.1 != b.1);
        let (Some((a, b)), None, true) = (differ.next(), differ.next(), one.entry == other.entry) else { return false };
        let (low, high) = (a.1.min(b.1), a.1.max(b.1));
        let is_between = |candidate: &Candidate| {
            candidate.entry == one.entry
                && candidate.sizes.iter().any(|(node, size)| *node == a.0 && low < *size && *size < high)
        };
        !self.candidates.iter().any(is_between)
    }

    /// The prior that a candidate was given.
    pub fn settings(&self, candidate: &Candidate) -> &PriorSettings {
        &self.entries[candidate.entry].settings
    }

    /// A candidate, bound to the data.
    ///
    /// # Errors
    /// As for [`bind`].
    pub fn bind(&self, candidate: &Candidate) -> Result<Binding> {
        let mut sizes = self.declared.clone();
        sizes.extend(candidate.sizes.iter().cloned());
        let options = BindOptions { columns: self.columns.as_deref(), sizes: &sizes, same_labels: &self.same_labels };
        bind(&self.entries[candidate.entry].source, &self.dataset, options)
    }
}

/// Columns that the model names; they must be the same for all: probabilities of different data cannot be ranked.
fn explained_columns(entries: &[Entry], specs: &[(ModelSpec, Vec<String>)]) -> Result<Vec<String>> {
    let of = |(spec, names): &(ModelSpec, Vec<String>)| -> Vec<String> {
        let mut found: Vec<String> = names.iter().filter(|name| spec.find(name).is_some()).cloned().collect();
        found.sort();
        found
    };
    let first = of(&specs[0]);
    for (entry, spec) in entries.iter().zip(specs).skip(1) {
        let own = of(spec);
        if own != first {
            return Err(Error::Setting(format!(
                "--model: `{}` explains the columns {}, but `{}` explains {}; models can be ranked only if they explain the same \
                 columns: name a column that a model is not to use as a node by itself",
                entries[0].name,
                first.join(", "),
                entry.name,
                own.join(", ")
            )));
        }
    }
    // In the order of the data.
    Ok(specs[0].1.iter().filter(|name| first.contains(name)).cloned().collect())
}

/// Sizes of seen nodes, which change the prior: one for each column, whichever model gives it.
fn declared_sizes(
    entries: &[Entry],
    specs: &[(ModelSpec, Vec<String>)],
    explained: &[String],
) -> Result<Vec<(String, u32)>> {
    let mut sizes: BTreeMap<&str, (u32, usize)> = BTreeMap::new();
    for (ix, (spec, _)) in specs.iter().enumerate() {
        for node in spec.nodes.iter().filter(|node| explained.contains(&node.name)) {
            let Size::Fixed(size) = node.size else { continue };
            let &mut (before, other) = sizes.entry(&node.name).or_insert((size, ix));
            if before != size {
                return Err(Error::Setting(format!(
                    "--model: column `{}` has size {before} in `{}` and {size} in `{}`; give it one size in all models",
                    node.name, entries[other].name, entries[ix].name
                )));
            }
        }
    }
    Ok(sizes.into_iter().map(|(name, (size, _))| (name.to_owned(), size)).collect())
}

/// Columns that share labels in some model, joined over all models.
fn same_labels(specs: &[(ModelSpec, Vec<String>)], explained: &[String]) -> Vec<Vec<String>> {
    let mut group: Vec<usize> = (0..explained.len()).collect();
    for (spec, _) in specs {
        let groups = label_groups(spec, &[]);
        let place = |node: usize| explained.iter().position(|name| *name == spec.nodes[node].name);
        for node in 0..spec.nodes.len() {
            let leader = (0..node).find(|&other| groups[other] == groups[node] && place(other).is_some());
            if let (Some(a), Some(b)) = (place(node), leader.and_then(place)) {
                let (low, high) = (group[a].min(group[b]), group[a].max(group[b]));
                group.iter_mut().filter(|entry| **entry == high).for_each(|entry| *entry = low);
            }
        }
    }
    let members = |leader: usize| -> Vec<String> {
        (0..explained.len()).filter(|&ix| group[ix] == leader).map(|ix| explained[ix].clone()).collect()
    };
    (0..explained.len()).map(members).filter(|members| members.len() > 1).collect()
}

/// Every combination of sizes; nodes that share labels go together.
fn choices(spec: &ModelSpec, explained: &[String]) -> Result<Vec<Vec<(String, u32)>>> {
    let groups = label_groups(spec, &[]);
    let mut all: Vec<Vec<(String, u32)>> = vec![Vec::new()];
    let mut done: BTreeMap<usize, (&str, &Vec<u32>)> = BTreeMap::new();
    for (ix, node) in spec.nodes.iter().enumerate() {
        let Size::Choices(sizes) = &node.size else { continue };
        if explained.contains(&node.name) {
            let message =
                format!("`{0}` is a column of the data, which has one size; give one (`{0}[4]`) or none", node.name);
            return Err(spec.error_at(ix, message));
        }
        if let Some((other, before)) = done.get(&groups[ix]) {
            if *before != sizes {
                let message = format!(
                    "`{other}` and `{}` share a table, so they must have the same sizes to choose from",
                    node.name
                );
                return Err(spec.error_at(ix, message));
            }
            let other = (*other).to_owned();
            for one in &mut all {
                let size = one.iter().find(|(name, _)| *name == other).expect("its partner is there").1;
                one.push((node.name.clone(), size));
            }
            continue;
        }
        done.insert(groups[ix], (&node.name, sizes));
        if all.len().saturating_mul(sizes.len()) > MOST_CANDIDATES {
            return Err(spec.error_at(ix, format!("more than {MOST_CANDIDATES} models; give shorter ranges of sizes")));
        }
        let with = |one: &Vec<(String, u32)>, size: u32| {
            let mut one = one.clone();
            one.push((node.name.clone(), size));
            one
        };
        all = all.iter().flat_map(|one| sizes.iter().map(move |&size| with(one, size))).collect();
    }
    Ok(all)
}
