//! Presets: named families of models that take their seen nodes from the data's columns, in order.
//!
//! The nodes of an expansion stand in the order in which the expansion in [`catalogue`] names them. A hidden name that
//! is also the name of a column gets `_` appended until it is free. Hidden nodes that take their size from the same
//! argument carry the same [`span`](super::NodeSpec::span), so that a choice of sizes (`hmm(1..4)`) can be made once
//! for all of them.

use super::expansion::{Expansion, numbered};
use super::names::{first_repeated, listed, shown};
use super::parse::MAX_EDGES;
use super::spec::{ModelSpec, Size};
use crate::error::{Error, Result};
use std::ops::Range;

/// One preset as the help lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresetEntry {
    /// Its name.
    pub name: &'static str,
    /// Its arguments as they are written, brackets included; empty when it takes none.
    pub arguments: &'static str,
    /// The columns it takes, and the graph it stands for, in words.
    pub expansion: &'static str,
    pub(super) family: Family,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Lda,
    Nmf,
    Cp,
    Tucker,
    Pachinko,
    Mmsb,
    Scpf,
    Hmm,
    TensorTrain,
    Symmetric,
    Independent,
    Complete,
}

/// The columns a preset takes.
enum Columns {
    /// So many, with the names they have when there are no data.
    Exactly(&'static [&'static str]),
    /// Any number from here on.
    AtLeast(usize),
}

/// The arguments a preset takes.
#[derive(PartialEq, Eq)]
pub(super) enum Arity {
    None,
    OneSize,
    OneSizeMaybeTied,
    Sizes,
}

impl Family {
    fn columns(self) -> Columns {
        match self {
            Family::Lda | Family::Pachinko => Columns::Exactly(&["doc", "word"]),
            Family::Nmf => Columns::Exactly(&["row", "column"]),
            Family::Mmsb => Columns::Exactly(&["source", "destination", "relation"]),
            Family::Scpf => Columns::Exactly(&["i", "j", "r"]),
            Family::TensorTrain | Family::Symmetric => Columns::AtLeast(2),
            Family::Cp | Family::Tucker | Family::Hmm | Family::Independent | Family::Complete => Columns::AtLeast(1),
        }
    }

    pub(super) fn arity(self) -> Arity {
        match self {
            Family::Lda | Family::Nmf | Family::Cp | Family::Scpf | Family::Symmetric => Arity::OneSize,
            Family::Mmsb | Family::Hmm => Arity::OneSizeMaybeTied,
            Family::Tucker | Family::Pachinko | Family::TensorTrain => Arity::Sizes,
            Family::Independent | Family::Complete => Arity::None,
        }
    }
}

const fn entry(name: &'static str, arguments: &'static str, expansion: &'static str, family: Family) -> PresetEntry {
    PresetEntry { name, arguments, expansion, family }
}

const CATALOGUE: [PresetEntry; 13] = [
    entry("lda", "(K)", "2 columns doc, word: doc -> topic[K] -> word", Family::Lda),
    entry("nmf", "(K)", "2 columns row, column: k[K] -> row column", Family::Nmf),
    entry("cp", "(R)", "1 or more columns: r[R] -> all columns", Family::Cp),
    entry("lca", "(R)", "1 or more columns: r[R] -> all columns", Family::Cp),
    entry(
        "tucker",
        "(r1,r2,..)",
        "1 or more columns, one size for each or one for all: r1 -> r2; r1 r2 -> r3; .. (complete core); \
         r1 -> column 1; r2 -> column 2; ..",
        Family::Tucker,
    ),
    entry(
        "pachinko",
        "(k1,k2,..)",
        "2 columns doc, word: doc -> k1 -> k2 -> .. -> word, one hidden node for each size",
        Family::Pachinko,
    ),
    entry(
        "mmsb",
        "(K) or (K,tied)",
        "3 columns source, destination, relation: source -> k1[K] -> relation <- k2[K] <- destination; with `tied` \
         also k1 ~ k2",
        Family::Mmsb,
    ),
    entry("scpf", "(K)", "3 columns row i, column j, category r: j -> k[K]; j k -> r; k r -> i", Family::Scpf),
    entry(
        "hmm",
        "(K) or (K,tied)",
        "1 or more columns: z1[K] -> z2[K] -> ..; z1 -> column 1; z2 -> column 2; ..; with `tied` one transition table \
         (z2 ~ z3 ~ ..) and one emission table (all columns tied)",
        Family::Hmm,
    ),
    entry(
        "tensor-train",
        "(r1,r2,..)",
        "2 or more columns, one size for each bond between neighbours or one for all: r1 -> r2 -> ..; r1 -> column 1; \
         r1 r2 -> column 2; ..; last bond -> last column",
        Family::TensorTrain,
    ),
    entry("symmetric", "(R)", "2 or more columns: r[R] -> all columns; all columns tied", Family::Symmetric),
    entry("independent", "", "1 or more columns, without edges", Family::Independent),
    entry("complete", "", "1 or more columns, each with all earlier columns as parents", Family::Complete),
];

/// All presets: name, arguments and expansion, for help and docs.
pub fn catalogue() -> &'static [PresetEntry] {
    &CATALOGUE
}

/// A size argument and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) size: Size,
    pub(super) span: Range<usize>,
}

/// A preset as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preset {
    pub(super) entry: &'static PresetEntry,
    pub(super) arguments: Vec<Argument>,
    pub(super) is_tied: bool,
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

impl Preset {
    /// Its name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// The graph with these columns as seen nodes; without columns, those presets that take a fixed number of columns
    /// use names of their own.
    pub(super) fn resolve(&self, columns: Option<&[String]>) -> Result<ModelSpec> {
        let columns = self.columns(columns)?;
        if let Some(name) = first_repeated(&columns) {
            return Err(self.call_error(format!("two columns are named {}; rename one of them", shown(name))));
        }
        self.check_n_sizes(columns.len())?;
        let mut expansion = Expansion::new(self, &columns);
        match self.entry.family {
            Family::Lda => expansion.path(&["topic".to_owned()]),
            Family::Pachinko => expansion.path(&numbered("k", self.arguments.len())),
            Family::Nmf => expansion.star("k"),
            Family::Cp => expansion.star("r"),
            Family::Symmetric => expansion.symmetric(),
            Family::Tucker => expansion.tucker(),
            Family::Mmsb => expansion.mmsb(),
            Family::Scpf => expansion.scpf(),
            Family::Hmm => expansion.hmm(),
            Family::TensorTrain => expansion.tensor_train(),
            Family::Independent => drop(expansion.all_seen()),
            Family::Complete => expansion.complete(),
        }
        Ok(expansion.spec)
    }

    fn columns(&self, columns: Option<&[String]>) -> Result<Vec<String>> {
        let name = self.entry.name;
        match (self.entry.family.columns(), columns) {
            (Columns::Exactly(names), None) => Ok(names.iter().map(|&name| name.to_owned()).collect()),
            (Columns::AtLeast(_), None) => Err(self.call_error(format!(
                "`{name}` takes its seen nodes from the columns of the data, and there are none; name the columns"
            ))),
            (Columns::Exactly(names), Some(columns)) if columns.len() != names.len() => Err(self.call_error(format!(
                "`{name}` needs {} columns ({}) but there {}; choose the columns, or write the graph out",
                names.len(),
                names.join(", "),
                describe_columns(columns)
            ))),
            (Columns::AtLeast(least), Some(columns)) if columns.len() < least => Err(self.call_error(format!(
                "`{name}` needs {least} or more columns but there {}; choose the columns, or write the graph out",
                describe_columns(columns)
            ))),
            (_, Some(columns)) => {
                self.check_n_edges(columns.len())?;
                Ok(columns.to_vec())
            }
        }
    }

    /// One size for all nodes, or as many sizes as there are nodes.
    fn check_n_sizes(&self, n_columns: usize) -> Result<()> {
        let (n_needed, what) = match self.entry.family {
            Family::Tucker => (n_columns, "column"),
            Family::TensorTrain => (n_columns - 1, "bond between neighbouring columns"),
            _ => return Ok(()),
        };
        let n_given = self.arguments.len();
        if n_given == 1 || n_given == n_needed {
            return Ok(());
        }
        Err(self.call_error(format!(
            "`{}` has {n_given} sizes but needs {n_needed}, one for each {what}, or 1 for all",
            self.entry.name
        )))
    }

    fn check_n_edges(&self, n_columns: usize) -> Result<()> {
        let is_dense = matches!(self.entry.family, Family::Tucker | Family::Complete);
        if is_dense && n_columns.saturating_mul(n_columns) / 2 > MAX_EDGES {
            let message = format!("`{}` of {n_columns} columns has more than {MAX_EDGES} edges", self.entry.name);
            return Err(self.call_error(format!("{message}; choose fewer columns")));
        }
        Ok(())
    }

    pub(super) fn error(&self, message: String, span: Range<usize>) -> Error {
        Error::model_at(message, &self.text, span)
    }

    fn call_error(&self, message: String) -> Error {
        self.error(message, self.span.clone())
    }
}

fn describe_columns(columns: &[String]) -> String {
    match columns {
        [] => "are none".to_owned(),
        [column] => format!("is 1: {}", shown(column)),
        _ => format!("are {}: {}", columns.len(), listed(columns.iter().map(String::as_str))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::refusal::assert_refused;
    use crate::graph::{Model, ModelSource, NodeSpec};

    fn columns(n: usize) -> Vec<String> {
        ["x", "y", "w", "v"][..n].iter().map(|&name| name.to_owned()).collect()
    }

    fn expand_with(text: &str, columns: Option<&[String]>) -> Result<ModelSpec> {
        ModelSource::parse(text)?.resolve(columns)
    }

    fn expand(text: &str, n_columns: usize) -> ModelSpec {
        expand_with(text, Some(&columns(n_columns))).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The graph as model text: nodes with sizes, edges, ties.
    #[track_caller]
    fn is(spec: &ModelSpec, nodes: &str, edges: &str, ties: &str) {
        let name = |ix: usize| spec.nodes[ix].name.as_str();
        let node = |node: &NodeSpec| match &node.size {
            Size::Fixed(size) => format!("{}[{size}]", node.name),
            Size::FromData => node.name.clone(),
            Size::Choices(sizes) => format!("{}{sizes:?}", node.name),
        };
        let join = |parts: Vec<String>| parts.join(" ");
        assert_eq!(join(spec.nodes.iter().map(node).collect()), nodes);
        assert_eq!(join(spec.edges.iter().map(|&(p, c)| format!("{}>{}", name(p), name(c))).collect()), edges);
        let tie = |group: &Vec<usize>| group.iter().map(|&ix| name(ix)).collect::<Vec<_>>().join("~");
        assert_eq!(join(spec.tied.iter().map(tie).collect()), ties);
        assert!(spec.added.is_empty());
        let sizes: Vec<u32> =
            spec.nodes.iter().map(|node| if let Size::Fixed(size) = node.size { size } else { 2 }).collect();
        Model::build(spec, &sizes).unwrap();
    }

    #[test]
    fn lda_is_a_chain() {
        is(&expand("lda(3)", 2), "x topic[3] y", "x>topic topic>y", "");
        is(&expand_with("lda(3)", None).unwrap(), "doc topic[3] word", "doc>topic topic>word", "");
    }

    #[test]
    fn nmf_is_a_fork() {
        is(&expand("nmf(3)", 2), "k[3] x y", "k>x k>y", "");
    }

    #[test]
    fn cp_and_lca_are_stars() {
        is(&expand("cp(3)", 3), "r[3] x y w", "r>x r>y r>w", "");
        is(&expand(" lca ( 3 ) ", 1), "r[3] x", "r>x", "");
    }

    #[test]
    fn tucker_has_a_complete_core() {
        let edges = "r1>r2 r1>r3 r2>r3 r1>x r2>y r3>w";
        is(&expand("tucker(2,3,4)", 3), "r1[2] r2[3] r3[4] x y w", edges, "");
        is(&expand("tucker(2)", 3), "r1[2] r2[2] r3[2] x y w", edges, "");
        is(&expand("tucker(2)", 1), "r1[2] x", "r1>x", "");
    }

    #[test]
    fn pachinko_is_a_longer_chain() {
        is(&expand("pachinko(2,5)", 2), "x k1[2] k2[5] y", "x>k1 k1>k2 k2>y", "");
        is(&expand("pachinko(2)", 2), "x k1[2] y", "x>k1 k1>y", "");
    }

    #[test]
    fn mmsb_meets_in_the_relation() {
        is(&expand("mmsb(2)", 3), "x k1[2] w k2[2] y", "x>k1 k1>w y>k2 k2>w", "");
        is(&expand("mmsb(2, tied)", 3), "x k1[2] w k2[2] y", "x>k1 k1>w y>k2 k2>w", "k1~k2");
    }

    #[test]
    fn scpf_follows_its_three_factors() {
        is(&expand("scpf(2)", 3), "y k[2] w x", "y>k y>w k>w k>x w>x", "");
        is(&expand_with("scpf(2)", None).unwrap(), "j k[2] r i", "j>k j>r k>r k>i r>i", "");
    }

    #[test]
    fn hmm_is_a_chain_with_emissions() {
        let (nodes, edges) = ("z1[2] z2[2] z3[2] x y w", "z1>z2 z2>z3 z1>x z2>y z3>w");
        is(&expand("hmm(2)", 3), nodes, edges, "");
        is(&expand("hmm(2,tied)", 3), nodes, edges, "z2~z3 x~y~w");
        is(&expand("hmm(2,tied)", 2), "z1[2] z2[2] x y", "z1>z2 z1>x z2>y", "x~y");
        is(&expand("hmm(2,tied)", 1), "z1[2] x", "z1>x", "");
    }

    #[test]
    fn tensor_train_has_a_bond_between_neighbours() {
        let (nodes, edges) = ("r1[2] r2[3] r3[4] x y w v", "r1>r2 r2>r3 r1>x r1>y r2>y r2>w r3>w r3>v");
        is(&expand("tensor-train(2,3,4)", 4), nodes, edges, "");
        is(&expand("tensor-train(5)", 2), "r1[5] x y", "r1>x r1>y", "");
        is(&expand("tensor-train(5)", 3), "r1[5] r2[5] x y w", "r1>r2 r1>x r1>y r2>y r2>w", "");
    }

    #[test]
    fn symmetric_ties_all_columns() {
        is(&expand("symmetric(3)", 3), "r[3] x y w", "r>x r>y r>w", "x~y~w");
    }

    #[test]
    fn independent_and_complete_take_any_columns() {
        is(&expand("independent", 3), "x y w", "", "");
        is(&expand("independent()", 1), "x", "", "");
        is(&expand("complete", 3), "x y w", "x>y x>w y>w", "");
        is(&expand("complete ( )", 1), "x", "", "");
    }

    #[test]
    fn every_entry_of_the_catalogue_expands_as_written() {
        for entry in catalogue() {
            let text = match entry.family.arity() {
                Arity::None => entry.name.to_owned(),
                _ => format!("{}(2)", entry.name),
            };
            let source = ModelSource::parse(&text).unwrap();
            assert!((1..=4).any(|n| source.resolve(Some(&columns(n))).is_ok()), "{text}");
            assert!(!entry.expansion.is_empty());
            assert_eq!(entry.arguments.is_empty(), entry.family.arity() == Arity::None);
        }
    }

    #[test]
    fn sizes_may_be_ranges_or_bracketed_lists() {
        is(&expand("lda(1..3)", 2), "x topic[1, 2, 3] y", "x>topic topic>y", "");
        is(&expand("nmf([2,4])", 2), "k[2, 4] x y", "k>x k>y", "");
        is(&expand("tucker([2,4], 1..2)", 2), "r1[2, 4] r2[1, 2] x y", "r1>r2 r1>x r2>y", "");
        is(&expand("lda([7])", 2), "x topic[7] y", "x>topic topic>y", "");
    }

    #[test]
    fn nodes_sized_by_one_argument_share_its_span() {
        let spec = expand("hmm(1..4)", 2);
        assert_eq!(spec.nodes[0].span, Some(4..8));
        assert_eq!(spec.nodes[1].span, Some(4..8));
        assert_eq!(spec.nodes[2].span, Some(0..9));
    }

    #[test]
    fn hidden_names_make_way_for_columns() {
        let columns = ["r".to_owned(), "r_".to_owned()];
        is(&expand_with("cp(3)", Some(&columns)).unwrap(), "r__[3] r r_", "r__>r r__>r_", "");
    }

    #[track_caller]
    fn refuses(text: &str, n_columns: usize, words: &str, at: &str) {
        assert_refused(expand_with(text, Some(&columns(n_columns))), text, words, at);
    }

    #[test]
    fn wrong_columns_are_explained() {
        refuses("lda(3)", 3, "needs 2 columns (doc, word) but there are 3: `x`, `y`, `w`;", "lda(3)");
        refuses("lda(3)", 1, "but there is 1: `x`;", "lda(3)");
        refuses("mmsb(3)", 2, "needs 3 columns (source, destination, relation)", "mmsb(3)");
        refuses("cp(3)", 0, "needs 1 or more columns but there are none", "cp(3)");
        refuses(" tensor-train(3) ", 1, "needs 2 or more columns", "tensor-train(3)");
        refuses("symmetric(3)", 1, "needs 2 or more columns", "symmetric(3)");
        refuses("tucker(2,3)", 3, "has 2 sizes but needs 3, one for each column, or 1 for all", "tucker(2,3)");
        refuses("tensor-train(2,3,4)", 3, "has 3 sizes but needs 2, one for each bond", "tensor-train(2,3,4)");
    }

    #[test]
    fn open_presets_need_columns_and_columns_need_names_of_their_own() {
        let error = expand_with("cp(3)", None).unwrap_err().to_string();
        assert!(error.contains("takes its seen nodes from the columns"), "{error}");
        let twice = ["x".to_owned(), "x".to_owned()];
        let error = expand_with("cp(3)", Some(&twice)).unwrap_err().to_string();
        assert!(error.contains("two columns are named `x`"), "{error}");
    }

    #[test]
    fn too_many_edges_are_refused() {
        let many: Vec<String> = (0..5000).map(|ix| format!("c{ix}")).collect();
        assert!(expand_with("complete", Some(&many)).unwrap_err().to_string().contains("more than 1000000 edges"));
        assert_eq!(expand_with("independent", Some(&many)).unwrap().nodes.len(), 5000);
    }
}
