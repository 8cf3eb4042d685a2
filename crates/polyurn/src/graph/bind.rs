//! Binding a model to data: which columns are seen nodes, how large each node is, and the records in the nodes' values.
//!
//! Sizes of seen nodes follow one rule (they change BDeu scores): a declared size wins; else the distinct values of a
//! CSV-like column; else the dimension that the format gives. Nodes whose tables are tied share one list of labels, and
//! so do their parents, position by position: otherwise row `r` of the shared table would mean two things.

use super::model::Model;
use super::parse::ModelSource;
use super::spec::{ModelSpec, Size};
use crate::counts::{Counts, Dataset, Labels, MISSING};
use crate::error::{Error, Result};
use crate::warning::Warning;
use hashbrown::HashSet;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// How to read the data's columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct BindOptions<'a> {
    /// Names for the data's columns in order, or a choice of its named columns in an order of its own.
    pub columns: Option<&'a [String]>,
    /// Sizes of nodes, in place of the model's choices or where it gives none.
    pub sizes: &'a [(String, u32)],
    /// Nodes that have one list of labels beside those that the model ties: what other models tie.
    pub same_labels: &'a [Vec<String>],
}

/// A model with all sizes known, and the data in its terms.
#[derive(Debug, Clone)]
pub struct Binding {
    /// The checked model.
    pub model: Model,
    /// The records.
    pub counts: Counts,
    /// Columns left out, edges added, rows merged.
    pub warnings: Vec<Warning>,
}

/// Binds a model to data.
///
/// # Errors
/// Nodes without a size, values beyond a declared size, columns that cannot be matched, and everything that
/// [`Model::build`] checks.
pub fn bind(source: &ModelSource, dataset: &Dataset, options: BindOptions<'_>) -> Result<Binding> {
    bind_any(source, Cow::Borrowed(dataset), options)
}

/// The same for data that nobody needs afterwards: columns are taken over, not copied.
///
/// # Errors
/// As for [`bind`].
pub fn bind_owned(source: &ModelSource, dataset: Dataset, options: BindOptions<'_>) -> Result<Binding> {
    bind_any(source, Cow::Owned(dataset), options)
}

fn bind_any(source: &ModelSource, dataset: Cow<'_, Dataset>, options: BindOptions<'_>) -> Result<Binding> {
    let mut data = dataset;
    let dataset = &*data;
    let axes = name_axes(source, dataset, options)?;
    let mut spec = spec_of(source, &axes)?;
    for (name, size) in options.sizes {
        if let Some(node) = spec.nodes.iter_mut().find(|node| node.name == *name) {
            node.size = Size::Fixed(*size);
        }
    }
    let mut warnings = dataset.warnings.clone();
    let axis_of: Vec<Option<usize>> =
        spec.nodes.iter().map(|node| axes.iter().position(|axis| axis.name == node.name)).collect();
    let left_out = left_out_columns(dataset, &axes, &axis_of);
    if !left_out.is_empty() {
        if !dataset.unknown.is_empty() {
            return Err(Error::data_at(
                &dataset.source,
                dataset.unknown_lines[0],
                None,
                format!(
                    "a cell with count `?` needs every column in the model, but the model does not name `{}`; add it to \
                     the model or take it out of the file",
                    left_out.join("`, `")
                ),
            ));
        }
        warnings.push(Warning::ColumnsLeftOut { columns: left_out });
    }
    warnings.extend(odd_columns(dataset, &axes, &axis_of));
    warnings.extend(nodes_that_change_nothing(&spec, &axis_of));
    let column_of: Vec<Option<usize>> = axis_of.iter().map(|axis| axis.map(|axis| axes[axis].column)).collect();
    let groups = label_groups(&spec, options.same_labels);
    let coding = Coding::new(&spec, dataset, &column_of, &groups)?;
    warnings.extend(coding.warnings);
    let sizes: Vec<u32> = coding.labels.iter().map(Labels::len).collect();
    let model = Model::build(&spec, &sizes)?;
    if !spec.added.is_empty() {
        warnings.push(edges_added(&spec));
    }
    let recode_cell = |cell: &Vec<u32>| -> Vec<u32> {
        let value = |(column, recode): (&Option<usize>, &Option<Vec<u32>>)| {
            column
                .map_or(MISSING, |column| recode.as_ref().map_or(cell[column], |recode| recode[cell[column] as usize]))
        };
        column_of.iter().zip(&coding.recode).map(value).collect()
    };
    let unknown = dataset.unknown.iter().map(recode_cell).collect();
    // The data's rows differ, and go on differing where every column is used and no two of its values become one.
    let is_used = |column: usize| column_of.contains(&Some(column));
    let is_one_to_one = |recode: &Vec<u32>| recode.iter().collect::<HashSet<_>>().len() == recode.len();
    let are_distinct = (0..dataset.columns.len()).all(is_used) && coding.recode.iter().flatten().all(is_one_to_one);
    let unit = dataset.unit;
    // No column belongs to two nodes: names differ. Where nobody needs the data afterwards, a narrow column is gone before the next
    // becomes wide.
    let mut taken = |column: usize, recode: Option<&[u32]>| {
        let mut codes = match &mut data {
            Cow::Borrowed(data) => data.values[column].to_codes(),
            Cow::Owned(data) => std::mem::take(&mut data.values[column]).into_codes(),
        };
        if let Some(recode) = recode {
            codes.iter_mut().filter(|code| **code != MISSING).for_each(|code| *code = recode[*code as usize]);
        }
        codes
    };
    let columns: Vec<Option<Vec<u32>>> = column_of
        .iter()
        .zip(&coding.recode)
        .map(|(column, recode)| column.map(|column| taken(column, recode.as_deref())))
        .collect();
    let row_counts = match data {
        Cow::Borrowed(data) => data.counts.clone(),
        Cow::Owned(data) => data.counts,
    };
    let counts = if are_distinct {
        Counts::of_distinct_rows(coding.labels, columns, row_counts, unknown)?
    } else {
        Counts::new(coding.labels, &columns, &row_counts, unknown)?
    };
    Ok(Binding { model, counts: counts.counted_in(unit), warnings })
}

/// The model in terms of the data's columns, and the names under which it knows them.
///
/// # Errors
/// As for [`bind`], as far as names go.
pub fn resolve_for(
    source: &ModelSource,
    dataset: &Dataset,
    options: BindOptions<'_>,
) -> Result<(ModelSpec, Vec<String>)> {
    let axes = name_axes(source, dataset, options)?;
    let spec = spec_of(source, &axes)?;
    Ok((spec, axes.into_iter().map(|axis| axis.name).collect()))
}

fn spec_of(source: &ModelSource, axes: &[Axis]) -> Result<ModelSpec> {
    let names: Vec<String> = axes.iter().map(|axis| axis.name.clone()).collect();
    source.resolve(Some(&names))
}

/// A seen node given by hand: its name, and its size where the model does not say.
pub type SeenNode = (String, Option<u32>);

/// A model without data: presets and contractions name their seen nodes after `seen`, and every node needs a size.
///
/// Returns the model, whether each node is seen, and warnings. Without `seen` no node counts as seen.
///
/// # Errors
/// Nodes without a size, names in `seen` that the model does not have, and everything that [`Model::build`] checks.
pub fn bind_without_data(source: &ModelSource, seen: Option<&[SeenNode]>) -> Result<(Model, Vec<bool>, Vec<Warning>)> {
    let names: Option<Vec<String>> = seen.map(|seen| seen.iter().map(|(name, _)| name.clone()).collect());
    let mut spec = source.resolve(names.as_deref())?;
    let mut is_seen = vec![false; spec.nodes.len()];
    for (name, size) in seen.unwrap_or_default() {
        let ix = spec.find(name).ok_or_else(|| unknown_node(&spec, name))?;
        is_seen[ix] = true;
        match (&spec.nodes[ix].size, size) {
            (Size::FromData, Some(size)) => spec.nodes[ix].size = Size::Fixed(*size),
            (Size::Fixed(declared), Some(size)) if declared != size => {
                return Err(Error::model(format!(
                    "node `{name}` has size {declared} in the model and {size} in --seen"
                )));
            }
            _ => {}
        }
    }
    let groups = label_groups(&spec, &[]);
    let declared = declared_sizes(&spec, &groups)?;
    let sizes: Vec<u32> = (0..spec.nodes.len())
        .map(|ix| {
            declared[groups[ix]].ok_or_else(|| {
                let name = &spec.nodes[ix].name;
                spec.error_at(
                    ix,
                    format!(
                        "node `{name}` has no size, and no data to take one from; write `{name}[4]`, here or in --seen"
                    ),
                )
            })
        })
        .collect::<Result<_>>()?;
    let warnings = if spec.added.is_empty() { Vec::new() } else { vec![edges_added(&spec)] };
    Ok((Model::build(&spec, &sizes)?, is_seen, warnings))
}

fn unknown_node(spec: &ModelSpec, name: &str) -> Error {
    let names: Vec<&str> = spec.nodes.iter().map(|node| node.name.as_str()).collect();
    Error::model(format!("the model has no node `{name}`; its nodes are {}", names.join(", ")))
}

fn edges_added(spec: &ModelSpec) -> Warning {
    let name = |ix: usize| spec.nodes[ix].name.clone();
    Warning::EdgesAdded { edges: spec.added.iter().map(|&(a, b)| (name(a), name(b))).collect() }
}

/// A column of the data under the name by which the model knows it.
struct Axis {
    name: String,
    column: usize,
}

fn name_axes(source: &ModelSource, dataset: &Dataset, options: BindOptions<'_>) -> Result<Vec<Axis>> {
    if let Some(names) = options.columns
        && let Some(twice) = names.iter().enumerate().find(|(ix, name)| names[..*ix].contains(name))
    {
        return Err(Error::Setting(format!("--columns names `{}` twice", twice.1)));
    }
    let n_columns = dataset.columns.len();
    let own_names: Option<Vec<String>> = dataset.columns.iter().map(|column| column.name.clone()).collect();
    let in_order = |names: &[String]| -> Vec<Axis> {
        names.iter().enumerate().map(|(column, name)| Axis { name: name.clone(), column }).collect()
    };
    match (own_names, options.columns) {
        (Some(own), None) => Ok(in_order(&own)),
        (Some(own), Some(chosen)) if chosen.iter().all(|name| own.contains(name)) => Ok(chosen
            .iter()
            .map(|name| Axis {
                name: name.clone(),
                column: own.iter().position(|other| other == name).expect("checked"),
            })
            .collect()),
        (Some(own), Some(names)) if names.iter().any(|name| own.contains(name)) => {
            let unknown = names.iter().find(|name| !own.contains(name)).expect("not all are known");
            Err(Error::Setting(format!(
                "--columns: {} has no column `{unknown}`; its columns are {}",
                dataset.source,
                own.join(", ")
            )))
        }
        (_, Some(names)) if names.len() == n_columns => Ok(in_order(names)),
        (own, Some(names)) => Err(Error::Setting(format!(
            "--columns names {} columns but {} has {n_columns}{}",
            names.len(),
            dataset.source,
            own.map_or(String::new(), |own| format!(": {}", own.join(", ")))
        ))),
        (None, None) => Ok(in_order(&unnamed_axes(source, dataset)?)),
    }
}

/// Names for axes without names: the model's unsized nodes in order, or i1, i2, .. for presets and contractions.
fn unnamed_axes(source: &ModelSource, dataset: &Dataset) -> Result<Vec<String>> {
    let n_columns = dataset.columns.len();
    if source.binds_by_position() {
        return Ok((1..=n_columns).map(|ix| format!("i{ix}")).collect());
    }
    let spec = source.resolve(None)?;
    let unsized_nodes: Vec<String> =
        spec.nodes.iter().filter(|node| node.size == Size::FromData).map(|node| node.name.clone()).collect();
    if unsized_nodes.len() == n_columns {
        return Ok(unsized_nodes);
    }
    Err(Error::data(
        &dataset.source,
        format!(
            "the data have {n_columns} axes without names but the model has {} nodes without a size ({}); say which is \
             which with --columns",
            unsized_nodes.len(),
            if unsized_nodes.is_empty() { "none".into() } else { unsized_nodes.join(", ") }
        ),
    ))
}

fn left_out_columns(dataset: &Dataset, axes: &[Axis], axis_of: &[Option<usize>]) -> Vec<String> {
    (0..dataset.columns.len())
        .filter(|&column| !axis_of.iter().flatten().any(|&axis| axes[axis].column == column))
        .map(|column| {
            let axis = axes.iter().find(|axis| axis.column == column);
            let own = dataset.columns[column].name.clone();
            axis.map(|axis| axis.name.clone()).or(own).unwrap_or_else(|| format!("{}", column + 1))
        })
        .collect()
}

/// For each node the smallest node that must share its list of labels: tied nodes, and their parents by position.
pub(crate) fn label_groups(spec: &ModelSpec, same_labels: &[Vec<String>]) -> Vec<usize> {
    let mut group: Vec<usize> = (0..spec.nodes.len()).collect();
    let parents = |child: usize| -> Vec<usize> {
        let mut parents: Vec<usize> = spec.edges.iter().filter(|edge| edge.1 == child).map(|edge| edge.0).collect();
        parents.sort_unstable();
        parents
    };
    let mut join = |a: usize, b: usize| {
        let (a, b) = (group[a], group[b]);
        let (low, high) = (a.min(b), a.max(b));
        group.iter_mut().filter(|entry| **entry == high).for_each(|entry| *entry = low);
    };
    for tied in &spec.tied {
        for &member in &tied[1..] {
            join(tied[0], member);
            for (a, b) in parents(tied[0]).into_iter().zip(parents(member)) {
                join(a, b);
            }
        }
    }
    for names in same_labels {
        let members: Vec<usize> = names.iter().filter_map(|name| spec.find(name)).collect();
        members.windows(2).for_each(|pair| join(pair[0], pair[1]));
    }
    group
}

/// The declared size of each group of nodes that share labels, by the group's first node.
fn declared_sizes(spec: &ModelSpec, groups: &[usize]) -> Result<Vec<Option<u32>>> {
    let mut sizes: Vec<Option<u32>> = vec![None; spec.nodes.len()];
    for (ix, declared) in spec.fixed_sizes()?.into_iter().enumerate() {
        let Some(declared) = declared else { continue };
        match sizes[groups[ix]] {
            Some(before) if before != declared => {
                let other = (0..ix).find(|&other| groups[other] == groups[ix]).expect("an earlier member");
                return Err(spec.error_at(
                    ix,
                    format!(
                        "`{}` and `{}` share labels through a tie but have sizes {before} and {declared}; give them one size",
                        spec.nodes[other].name, spec.nodes[ix].name
                    ),
                ));
            }
            _ => sizes[groups[ix]] = Some(declared),
        }
    }
    Ok(sizes)
}

/// Labels of every node, and for each node with a column the map from the column's codes to the node's values.
struct Coding {
    labels: Vec<Labels>,
    recode: Vec<Option<Vec<u32>>>,
    warnings: Vec<Warning>,
}

impl Coding {
    fn new(spec: &ModelSpec, dataset: &Dataset, column_of: &[Option<usize>], groups: &[usize]) -> Result<Self> {
        let declared = declared_sizes(spec, groups)?;
        let n_nodes = spec.nodes.len();
        let mut coding = Coding {
            labels: vec![Labels::Indexed { size: 0, first: 0 }; n_nodes],
            recode: vec![None; n_nodes],
            warnings: Vec::new(),
        };
        for group in 0..n_nodes {
            let members: Vec<usize> = (0..n_nodes).filter(|&ix| groups[ix] == group).collect();
            if members.is_empty() {
                continue;
            }
            let columns: Vec<(usize, usize)> =
                members.iter().filter_map(|&ix| column_of[ix].map(|column| (ix, column))).collect();
            let labels = match declared[group] {
                _ if columns.is_empty() => Labels::Indexed {
                    size: declared[group].ok_or_else(|| missing_size(spec, dataset, members[0]))?,
                    first: 0,
                },
                declared => {
                    let pool = Pool { dataset, columns: &columns };
                    let labels = pool.labels(spec, declared)?;
                    for &(node, column) in &columns {
                        coding.recode[node] = pool.recode(column, &labels);
                    }
                    labels
                }
            };
            let labels = coding.or_dummy(spec, dataset, &members, labels)?;
            if let (Some(size), Labels::Named(_), [(node, column), ..]) = (declared[group], &labels, &columns[..]) {
                let n_labels = u64::from(dataset.columns[*column].labels.len());
                if n_labels < u64::from(size) && columns.len() == 1 {
                    let node = spec.nodes[*node].name.clone();
                    coding.warnings.push(Warning::UnusedValues { node, size: u64::from(size), n_labels });
                }
            }
            // Mostly there is one member, and no need for copies.
            for &ix in &members[1..] {
                coding.labels[ix] = labels.clone();
            }
            coding.labels[members[0]] = labels;
        }
        Ok(coding)
    }

    /// A column without any value leaves its node without a size. With no tokens at all the size does not matter, and
    /// one value stands in; otherwise the size must be declared.
    fn or_dummy(&mut self, spec: &ModelSpec, dataset: &Dataset, members: &[usize], labels: Labels) -> Result<Labels> {
        if !labels.is_empty() {
            return Ok(labels);
        }
        let name = &spec.nodes[members[0]].name;
        if dataset.n_tokens() == Some(0) && dataset.unknown.is_empty() {
            self.warnings.push(Warning::Odd {
                message: format!("column `{name}` holds no value; its size is taken as 1 (declare it: `{name}[4]`)"),
            });
            return Ok(Labels::Indexed { size: 1, first: 0 });
        }
        Err(Error::data(
            &dataset.source,
            format!("column `{name}` holds no value, so its size is unknown; declare it in the model: `{name}[4]`"),
        ))
    }
}

/// Labels of used columns that look like missing values, and a file that may have another separator.
fn odd_columns(dataset: &Dataset, axes: &[Axis], axis_of: &[Option<usize>]) -> Vec<Warning> {
    let like_missing = |axis: &usize| {
        let Axis { name, column, .. } = &axes[*axis];
        let label = dataset.columns[*column].labels.like_missing()?;
        let message = format!(
            "column `{name}` has the label `{label}`, which is a value like any other; leave the field empty if it is missing"
        );
        Some(Warning::Odd { message })
    };
    let separator =
        other_separator(dataset).map(|hint| Warning::Odd { message: format!("there is one column only: {hint}") });
    separator.into_iter().chain(axis_of.iter().flatten().filter_map(like_missing)).collect()
}

/// What to do about a header that looks as if its names were not kept apart.
fn other_separator(dataset: &Dataset) -> Option<String> {
    let [column] = &dataset.columns[..] else { return None };
    let separator = [";", "\t", "|"]
        .into_iter()
        .find(|&separator| column.name.as_deref().is_some_and(|name| name.contains(separator)))?;
    let shown = if separator == "\t" { "tabs" } else { separator };
    Some(format!(
        "is the file separated by `{shown}`? Commas are read (or tabs, with --format tsv), so replace the separators"
    ))
}

/// Hidden nodes with nothing seen below them: they take part in no score.
fn nodes_that_change_nothing(spec: &ModelSpec, axis_of: &[Option<usize>]) -> Option<Warning> {
    let mut has_seen: Vec<bool> = axis_of.iter().map(Option::is_some).collect();
    // Upwards from the seen ones, at most once for each node.
    while let Some(&(parent, _)) = spec.edges.iter().find(|&&(parent, child)| has_seen[child] && !has_seen[parent]) {
        has_seen[parent] = true;
    }
    let names: Vec<String> = spec
        .nodes
        .iter()
        .zip(&has_seen)
        .filter(|(_, has)| !**has)
        .map(|(node, _)| format!("`{}`", node.name))
        .collect();
    let message = format!(
        "nothing that is seen lies below {}, so the data say nothing about {}; give hidden nodes children, or leave them out",
        names.join(", "),
        if names.len() == 1 { "it" } else { "them" }
    );
    (!names.is_empty()).then_some(Warning::Odd { message })
}

fn missing_size(spec: &ModelSpec, dataset: &Dataset, node_ix: usize) -> Error {
    let name = &spec.nodes[node_ix].name;
    let columns: Vec<&str> = dataset.columns.iter().filter_map(|column| column.name.as_deref()).collect();
    let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
    let way_out = other_separator(dataset).unwrap_or_else(|| format!("give a size, `{name}[4]`, or fix the name"));
    spec.error_at(node_ix, format!("node `{name}` has no size: it is no column of the data{columns}; {way_out}"))
}

/// The columns that share one list of labels.
struct Pool<'a> {
    dataset: &'a Dataset,
    columns: &'a [(usize, usize)],
}

impl Pool<'_> {
    fn labels(&self, spec: &ModelSpec, declared: Option<u32>) -> Result<Labels> {
        let first = self.columns[0];
        if let Labels::Indexed { first: first_number, .. } = self.dataset.columns[first.1].labels {
            let largest = self.columns.iter().map(|&(_, column)| self.dataset.columns[column].labels.len()).max();
            let size = largest.unwrap_or(0);
            return match declared {
                Some(declared) if size > declared => Err(self.index_beyond(spec, declared)),
                Some(declared) => Ok(Labels::Indexed { size: declared, first: first_number }),
                None => Ok(Labels::Indexed { size, first: first_number }),
            };
        }
        let mut names: Vec<String> = Vec::new();
        for &(_, column) in self.columns {
            if let Labels::Named(own) = &self.dataset.columns[column].labels {
                names.extend(own.iter().cloned());
            }
        }
        let all_integers = names.iter().all(|name| as_integer(name).is_some());
        if all_integers {
            names.sort_unstable_by_key(|name| as_integer(name));
        } else {
            names.sort_unstable();
        }
        names.dedup();
        match declared {
            None => Ok(Labels::Named(names)),
            Some(size) if all_integers => {
                self.check_integers(size)?;
                Ok(Labels::Indexed { size, first: 0 })
            }
            Some(size) if names.len() > size as usize => Err(self.too_many_labels(spec, size, names.len())),
            Some(size) if size as usize - names.len() > 1_000_000 => Err(spec.error_at(
                first.0,
                format!(
                    "node `{}` has size {size} but its {} values are labels, not numbers; declare at most a million more \
                     values than occur",
                    spec.nodes[first.0].name,
                    names.len()
                ),
            )),
            Some(size) => {
                let n_unseen = size as usize - names.len();
                names.extend((1..=n_unseen).map(|ix| format!("(unseen {ix})")));
                Ok(Labels::Named(names))
            }
        }
    }

    /// The map from a column's codes to values, or `None` when they are the same.
    fn recode(&self, column: usize, labels: &Labels) -> Option<Vec<u32>> {
        let Labels::Named(own) = &self.dataset.columns[column].labels else { return None };
        match labels {
            Labels::Named(names) => {
                let value_of: BTreeMap<&str, u32> =
                    names.iter().enumerate().map(|(value, name)| (name.as_str(), value as u32)).collect();
                Some(own.iter().map(|name| value_of[name.as_str()]).collect())
            }
            Labels::Indexed { .. } => {
                Some(own.iter().map(|name| as_integer(name).expect("checked to be integers") as u32).collect())
            }
        }
    }

    fn check_integers(&self, size: u32) -> Result<()> {
        for &(_, column) in self.columns {
            let column = &self.dataset.columns[column];
            let Labels::Named(own) = &column.labels else { continue };
            for (name, &line) in own.iter().zip(&column.first_lines) {
                let value = as_integer(name).expect("checked to be integers");
                if value < 0 || value >= i64::from(size) {
                    return Err(Error::data_at(
                        &self.dataset.source,
                        line,
                        column.name.as_deref(),
                        format!(
                            "value {name} is outside 0..{} of the declared size {size}; number values from 0 or declare a \
                             larger size",
                            size - 1
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    fn index_beyond(&self, spec: &ModelSpec, declared: u32) -> Error {
        let (node, column) = *self
            .columns
            .iter()
            .find(|&&(_, column)| self.dataset.columns[column].labels.len() > declared)
            .expect("some column is larger");
        Error::data(
            &self.dataset.source,
            format!(
                "axis {} goes up to {} but node `{}` is declared with size {declared}; declare a larger size or none",
                column + 1,
                self.dataset.columns[column].labels.len(),
                spec.nodes[node].name
            ),
        )
    }

    fn too_many_labels(&self, spec: &ModelSpec, size: u32, n_labels: usize) -> Error {
        let (node, column) = self.columns[0];
        let column = &self.dataset.columns[column];
        let line = column.first_lines.get(size as usize).copied();
        let message = format!(
            "node `{}` is declared with size {size} but its column holds {n_labels} different labels; declare a larger size \
             or none",
            spec.nodes[node].name
        );
        match line {
            Some(line) => Error::data_at(&self.dataset.source, line, column.name.as_deref(), message),
            None => Error::data(&self.dataset.source, message),
        }
    }
}

/// A plainly written integer: `-3`, `0`, `17`; not `007`, `+1` or `1.0`, which are labels.
fn as_integer(text: &str) -> Option<i64> {
    let value: i64 = text.parse().ok()?;
    let mut buffer = [0u8; 20];
    let mut cursor = &mut buffer[..];
    std::io::Write::write_fmt(&mut cursor, format_args!("{value}")).ok()?;
    let n_left = cursor.len();
    let written = &buffer[..20 - n_left];
    (written == text.as_bytes()).then_some(value)
}
