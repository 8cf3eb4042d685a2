//! Model text: statements, groups of names, arrows, sizes and ties become a [`ModelSpec`].
//!
//! ```text
//! text      = statement { (";" | newline) statement }
//! statement = group { ("->" | "<-") group }  |  node "~" node { "~" node }  |  nothing
//! group     = node { [","] node }
//! node      = name [ "[" sizes "]" ]
//! sizes     = item { "," item }              one number is a size; a range or a list is a choice of sizes
//! item      = number [ ".." number ]         both ends included
//! name      = letters, digits, "_" and "."   |  '"' anything on one line, with "" for a quote '"'
//! ```
//!
//! A text that is a word followed by `(`, or one of the words `independent` and `complete` alone, is a preset; a text
//! that starts with `einsum:` is a contraction. Cycles and open sizes are looked for later, when
//! the model meets its data.

use super::contraction::{self, Contraction};
use super::lexer::Join;
use super::names::{MAX_LISTED, listed, shown};
use super::preset::Preset;
use super::preset_call;
use super::spec::{ModelSpec, NodeSpec, Size};
use super::statement::{Named, Statement, parse_statements};
use crate::error::{Error, Result};
use hashbrown::{HashMap, HashSet};
use std::ops::Range;

/// No text may write more edges than this, repetitions included.
pub(super) const MAX_EDGES: usize = 1_000_000;

/// A model text that has been read: a graph as it stands, or a preset or contraction that still wants the names of its
/// seen nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelSource {
    /// Nodes and arrows written out: `doc -> topic[20] -> word`.
    Graph(ModelSpec),
    /// A named family of models: `lda(20)`.
    Preset(Preset),
    /// Factors of a tensor: `einsum: ir,jr,kr->ijk; r[10]`.
    Contraction(Contraction),
}

impl ModelSource {
    /// Reads model text.
    ///
    /// # Errors
    /// Everything that is wrong with the text by itself, with the bytes at fault.
    pub fn parse(text: &str) -> Result<Self> {
        let start = text.len() - text.trim_start().len();
        if let Some(header) = contraction::header_start(text, start) {
            return Contraction::parse(text, header).map(ModelSource::Contraction);
        }
        if preset_call::is_call(text) {
            return Preset::parse(text).map(ModelSource::Preset);
        }
        let mut builder = GraphBuilder::new(text);
        for statement in parse_statements(text, 0)? {
            builder.add(statement)?;
        }
        builder.finish().map(ModelSource::Graph)
    }

    /// The graph. Presets and contractions name their seen nodes by `columns`, in order; without columns they use names
    /// of their own where they have them. A plain graph ignores `columns`.
    ///
    /// # Errors
    /// A preset or contraction that needs another number of columns, or a column name that occurs twice.
    pub fn resolve(&self, columns: Option<&[String]>) -> Result<ModelSpec> {
        match self {
            ModelSource::Graph(spec) => Ok(spec.clone()),
            ModelSource::Preset(preset) => preset.resolve(columns),
            ModelSource::Contraction(contraction) => contraction.resolve(columns),
        }
    }

    /// True when seen nodes take the data's columns in order (presets and contractions), not by name.
    pub fn binds_by_position(&self) -> bool {
        !matches!(self, ModelSource::Graph(_))
    }
}

/// Collects statements into a spec.
pub(super) struct GraphBuilder<'a> {
    text: &'a str,
    spec: ModelSpec,
    index: HashMap<String, usize>,
    /// Whether a node occurs outside ties, or has a size.
    is_declared: Vec<bool>,
    edges: HashSet<(usize, usize)>,
    n_edges_written: usize,
    /// Union-find over nodes: the tie group a node belongs to.
    leader: Vec<usize>,
}

impl<'a> GraphBuilder<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        GraphBuilder {
            text,
            spec: ModelSpec { text: Some(text.to_owned()), ..ModelSpec::default() },
            index: HashMap::new(),
            is_declared: Vec::new(),
            edges: HashSet::new(),
            n_edges_written: 0,
            leader: Vec::new(),
        }
    }

    /// Takes in one statement.
    pub(super) fn add(&mut self, statement: Statement) -> Result<()> {
        match statement {
            Statement::Chain { groups, arrows } => self.add_chain(&groups, &arrows),
            Statement::Tie(members) => self.add_tie(&members),
        }
    }

    /// Names a node, without a size, as if it had been written at `span`.
    pub(super) fn declare(&mut self, name: &str, span: Range<usize>) -> usize {
        let ix = self.intern(name, span);
        self.is_declared[ix] = true;
        ix
    }

    /// True when a node of this name was named.
    pub(super) fn has(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// The names so far, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.spec.nodes.iter().map(|node| node.name.as_str())
    }

    /// The spec, once all statements are in.
    pub(super) fn finish(mut self) -> Result<ModelSpec> {
        if self.spec.nodes.is_empty() {
            let message = "the model is empty; write something like `doc -> topic[20] -> word`";
            return Err(Error::model_at(message, self.text, 0..self.text.len()));
        }
        if let Some(ix) = self.is_declared.iter().position(|&is_declared| !is_declared) {
            let known = self.spec.nodes.iter().zip(&self.is_declared).filter(|&(_, &is_declared)| is_declared);
            let known = listed(known.map(|(node, _)| node.name.as_str()));
            let known = if known.is_empty() { "no other node".to_owned() } else { known };
            let message = format!("unknown node {} in a tie; the model has {known}", shown(&self.spec.nodes[ix].name));
            return Err(self.spec.error_at(ix, message));
        }
        self.spec.tied = self.tie_groups();
        Ok(self.spec)
    }

    fn add_chain(&mut self, groups: &[Vec<Named>], arrows: &[(Join, Range<usize>)]) -> Result<()> {
        let mut previous: Option<Vec<(usize, &Named)>> = None;
        for (at, group) in groups.iter().enumerate() {
            let mut here: Vec<(usize, &Named)> = Vec::with_capacity(group.len());
            let mut seen = HashSet::new();
            for named in group {
                let ix = self.node(named)?;
                self.is_declared[ix] = true;
                if seen.insert(ix) {
                    here.push((ix, named));
                }
            }
            if let Some(previous) = &previous {
                let (join, span) = &arrows[at - 1];
                self.add_edges(previous, &here, *join, span)?;
            }
            previous = Some(here);
        }
        Ok(())
    }

    fn add_edges(
        &mut self,
        left: &[(usize, &Named)],
        right: &[(usize, &Named)],
        join: Join,
        span: &Range<usize>,
    ) -> Result<()> {
        self.n_edges_written = self.n_edges_written.saturating_add(left.len().saturating_mul(right.len()));
        if self.n_edges_written > MAX_EDGES {
            let message = format!("the arrows make more than {MAX_EDGES} edges; write a smaller model");
            return Err(Error::model_at(message, self.text, span.clone()));
        }
        for &(left_ix, _) in left {
            for &(right_ix, right) in right {
                if left_ix == right_ix {
                    let message = format!(
                        "{} cannot be its own parent; it stands on both sides of the arrow",
                        shown(&right.name)
                    );
                    return Err(Error::model_at(message, self.text, right.span.clone()));
                }
                let edge = if join == Join::Left { (right_ix, left_ix) } else { (left_ix, right_ix) };
                if self.edges.insert(edge) {
                    self.spec.edges.push(edge);
                }
            }
        }
        Ok(())
    }

    fn add_tie(&mut self, members: &[Named]) -> Result<()> {
        let mut seen = HashSet::new();
        let mut first = None;
        for named in members {
            let ix = self.node(named)?;
            if !seen.insert(ix) {
                let message = format!("{} is tied to itself; name each node once", shown(&named.name));
                return Err(Error::model_at(message, self.text, named.span.clone()));
            }
            let first = *first.get_or_insert(ix);
            let (a, b) = (self.find_leader(first), self.find_leader(ix));
            self.leader[a.max(b)] = a.min(b);
        }
        Ok(())
    }

    fn node(&mut self, named: &Named) -> Result<usize> {
        let ix = self.intern(&named.name, named.span.clone());
        let Some((size, span)) = &named.size else { return Ok(ix) };
        let node = &mut self.spec.nodes[ix];
        if node.size == Size::FromData {
            node.size = size.clone();
            self.is_declared[ix] = true;
        } else if node.size != *size {
            let message = format!(
                "{} has two sizes, {} and {}; give one of them",
                shown(&named.name),
                show_size(&node.size),
                show_size(size)
            );
            return Err(Error::model_at(message, self.text, span.clone()));
        }
        Ok(ix)
    }

    fn intern(&mut self, name: &str, span: Range<usize>) -> usize {
        if let Some(&ix) = self.index.get(name) {
            return ix;
        }
        let ix = self.spec.nodes.len();
        self.index.insert(name.to_owned(), ix);
        self.spec.nodes.push(NodeSpec { name: name.to_owned(), size: Size::FromData, span: Some(span) });
        self.is_declared.push(false);
        self.leader.push(ix);
        ix
    }

    fn find_leader(&mut self, mut ix: usize) -> usize {
        while self.leader[ix] != ix {
            self.leader[ix] = self.leader[self.leader[ix]];
            ix = self.leader[ix];
        }
        ix
    }

    /// Groups of two or more, in order of their first nodes, each in node order.
    fn tie_groups(&mut self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); self.spec.nodes.len()];
        for ix in 0..self.spec.nodes.len() {
            let leader = self.find_leader(ix);
            groups[leader].push(ix);
        }
        groups.retain(|group| group.len() > 1);
        groups
    }
}

fn show_size(size: &Size) -> String {
    match size {
        Size::Fixed(size) => size.to_string(),
        Size::FromData => "from the data".to_owned(),
        Size::Choices(choices) => {
            let is_run = choices.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
            match (choices.first(), choices.last()) {
                (Some(first), Some(last)) if is_run => format!("{first}..{last}"),
                _ => {
                    let mut parts: Vec<String> = choices.iter().take(MAX_LISTED).map(u32::to_string).collect();
                    if choices.len() > MAX_LISTED {
                        parts.push("…".to_owned());
                    }
                    parts.join(",")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Model;
    use proptest::prelude::*;

    fn graph(text: &str) -> ModelSpec {
        let source = ModelSource::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(!source.binds_by_position());
        source.resolve(None).unwrap()
    }

    fn names(spec: &ModelSpec) -> Vec<&str> {
        spec.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    fn edges(spec: &ModelSpec) -> Vec<String> {
        let name = |ix: usize| spec.nodes[ix].name.as_str();
        spec.edges.iter().map(|&(parent, child)| format!("{}>{}", name(parent), name(child))).collect()
    }

    fn size<'a>(spec: &'a ModelSpec, name: &str) -> &'a Size {
        &spec.nodes[spec.find(name).unwrap()].size
    }

    /// The message and the part of the text it points at.
    fn fault(text: &str) -> (String, String) {
        match ModelSource::parse(text) {
            Err(Error::Model(error)) => {
                let place = error.place.expect("a syntax error has a place");
                assert_eq!(place.text, text);
                (error.message, text[place.span].to_owned())
            }
            other => panic!("{text}: expected a model error, got {other:?}"),
        }
    }

    #[track_caller]
    fn refuses(text: &str, words: &str, at: &str) {
        let (message, place) = fault(text);
        assert!(message.contains(words), "{text}: {message}");
        assert_eq!(place, at, "{text}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn a_chain_names_nodes_in_order() {
        let spec = graph("doc -> topic[20] -> word");
        assert_eq!(names(&spec), ["doc", "topic", "word"]);
        assert_eq!(edges(&spec), ["doc>topic", "topic>word"]);
        assert_eq!(*size(&spec, "topic"), Size::Fixed(20));
        assert_eq!(*size(&spec, "doc"), Size::FromData);
        assert_eq!(spec.nodes[1].span, Some(7..12));
        assert_eq!(spec.text.as_deref(), Some("doc -> topic[20] -> word"));
    }

    #[test]
    fn arrows_point_both_ways() {
        let spec = graph("i1 -> k1[4] -> s <- k2[4] <- i2");
        assert_eq!(names(&spec), ["i1", "k1", "s", "k2", "i2"]);
        assert_eq!(edges(&spec), ["i1>k1", "k1>s", "k2>s", "i2>k2"]);
    }

    #[test]
    fn groups_join_each_with_each_and_may_use_commas() {
        for text in ["a b -> c d", "a, b -> c,d", "a ,b->c d"] {
            assert_eq!(edges(&graph(text)), ["a>c", "a>d", "b>c", "b>d"], "{text}");
        }
    }

    #[test]
    fn statements_end_at_semicolons_and_lines() {
        let spec = graph(";; r3[4] -> r2[3] -> r1[2]\r\n\n r3 -> r1; r1 -> i1\nr2 -> i2; r3 -> i3;");
        assert_eq!(names(&spec), ["r3", "r2", "r1", "i1", "i2", "i3"]);
        assert_eq!(edges(&spec), ["r3>r2", "r2>r1", "r3>r1", "r1>i1", "r2>i2", "r3>i3"]);
    }

    #[test]
    fn a_lone_group_declares_nodes() {
        let spec = graph("x y[3]");
        assert_eq!(names(&spec), ["x", "y"]);
        assert!(spec.edges.is_empty());
        assert_eq!(*size(&spec, "y"), Size::Fixed(3));
    }

    #[test]
    fn sizes_may_be_ranges_and_lists_and_stand_anywhere_once() {
        let spec = graph("a -> b; b[1..4] -> c[2, 4 ,8]; d[1..2,4,2]; e [ 7 ]; a[4294967294]; f[5..5]");
        assert_eq!(*size(&spec, "b"), Size::Choices(vec![1, 2, 3, 4]));
        assert_eq!(*size(&spec, "c"), Size::Choices(vec![2, 4, 8]));
        assert_eq!(*size(&spec, "d"), Size::Choices(vec![1, 2, 4]));
        assert_eq!(*size(&spec, "e"), Size::Fixed(7));
        assert_eq!(*size(&spec, "a"), Size::Fixed(u32::MAX - 1));
        assert_eq!(*size(&spec, "f"), Size::Choices(vec![5]));
    }

    #[test]
    fn the_same_size_twice_is_fine() {
        assert_eq!(*size(&graph("a[3] -> b; a[3] -> c"), "a"), Size::Fixed(3));
        assert_eq!(*size(&graph("a[1..2] -> b; a[1,2] -> c"), "a"), Size::Choices(vec![1, 2]));
    }

    #[test]
    fn overlapping_ties_merge_into_one_group() {
        let spec = graph("r[3] -> i j k l m; k ~ l; i ~ j; j ~ l; m");
        assert_eq!(spec.tied, [vec![1, 2, 3, 4]]);
        let apart = graph("a b c d; c ~ d; b ~ a; a ~ b");
        assert_eq!(apart.tied, [vec![0, 1], vec![2, 3]]);
    }

    #[test]
    fn ties_may_come_first_or_give_sizes() {
        let spec = graph("i ~ j; r[3] -> i j");
        assert_eq!(names(&spec), ["i", "j", "r"]);
        assert_eq!(graph("i[3] ~ j[3]").tied, [vec![0, 1]]);
    }

    #[test]
    fn names_may_be_any_letters_or_quoted() {
        let spec = graph("größe.1 -> 主題[2] -> \"sepal length (cm)\" -> \"say \"\"hi\"\"\"");
        assert_eq!(names(&spec), ["größe.1", "主題", "sepal length (cm)", "say \"hi\""]);
        assert_eq!(graph("\"a\" -> b; a -> c").nodes.len(), 3);
    }

    #[test]
    fn repeated_edges_are_merged() {
        assert_eq!(edges(&graph("a -> b; b <- a; a a -> b")), ["a>b"]);
    }

    #[test]
    fn preset_words_are_nodes_unless_alone() {
        assert_eq!(names(&graph("independent -> b")), ["independent", "b"]);
        assert_eq!(names(&graph("complete[3]")), ["complete"]);
        assert_eq!(names(&graph("\"complete\"")), ["complete"]);
        assert_eq!(names(&graph("lda")), ["lda"]);
        assert!(matches!(ModelSource::parse(" complete\n"), Ok(ModelSource::Preset(_))));
        assert!(matches!(ModelSource::parse("independent ( )"), Ok(ModelSource::Preset(_))));
        assert_eq!(names(&graph("einsum -> b")), ["einsum", "b"]);
    }

    #[test]
    fn a_graph_ignores_columns() {
        let source = ModelSource::parse("a -> b").unwrap();
        assert_eq!(source.resolve(Some(&["x".to_owned()])).unwrap(), source.resolve(None).unwrap());
        assert!(ModelSource::parse("cp(2)").unwrap().binds_by_position());
        assert!(ModelSource::parse("einsum: ir,jr->ij").unwrap().binds_by_position());
    }

    #[test]
    fn a_models_own_text_parses_back_to_it() {
        let spec = graph("doc -> \"a topic\"[3] -> word; doc ~ other; other");
        let model = Model::build(&spec, &[4, 3, 5, 4]).unwrap();
        let again = graph(&model.to_text());
        assert_eq!(Model::build(&again, &[4, 3, 5, 4]).unwrap(), model);
    }

    #[test]
    fn missing_names_are_pointed_at() {
        refuses("a ->", "expected a name after `->`, found the end of the text", "->");
        refuses("a -> ; b", "expected a name after `->`, found the end of the statement", "->");
        refuses("a ->\nb", "found the end of the statement", "->");
        refuses("-> b", "expected a name before `->`", "->");
        refuses("a -> <- b", "expected a name after `->`, found `<-`", "<-");
        refuses("a, -> b", "expected a name after `,`, found `->`", "->");
        refuses(", a", "expected a name before `,`", ",");
        refuses("a; i ~", "expected a name after `~`", "~");
        refuses("[3] -> a", "a size must follow a name", "[3]");
        refuses("a -> [3]", "a size must follow a name", "[3]");
    }

    #[test]
    fn stray_symbols_are_explained() {
        refuses("a - b", "`-` alone is not an arrow", "-");
        refuses("a => b", "`=>` is not an arrow; write `->`", "=>");
        refuses("a <= b", "write `<-`", "<=");
        refuses("a <-> b", "points both ways", "<->");
        refuses("a --> b", "too long", "-->");
        refuses("a -- b", "is not an arrow", "--");
        refuses("a → b", "write `->`", "→");
        refuses("a > b", "alone", ">");
        refuses("a < b", "alone", "<");
        refuses("a ->> b", "`>` alone", ">");
        refuses("a] -> b", "no `[` before it", "]");
        refuses("a -> b(3)", "a size is written `name[4]`", "(");
        refuses("a; lda: 3", "einsum", ":");
        refuses("a 'b'", "double quotes", "'");
        refuses("a + b", "`+` cannot stand here", "+");
        refuses("a \0", "`\\0` cannot stand here", "\0");
        refuses("a 🙂", "`🙂` cannot stand here", "🙂");
    }

    #[test]
    fn bad_sizes_are_explained() {
        refuses("a[3 -> b", "`[` is not closed", "[");
        refuses("a[3 -> b[4]", "`[` is not closed", "[");
        refuses("a[1,\n2]", "`[` is not closed", "[");
        refuses("a[]", "the size is missing", "[]");
        refuses("a[0]", "at least 1", "0");
        refuses("a[abc]", "`abc` is not a size", "abc");
        refuses("a[-3]", "`-3` is not a size", "-3");
        refuses("a[2.5]", "`2.5` is not a size", "2.5");
        refuses("a[٣]", "is not a size", "٣");
        refuses("a[4294967295]", "the largest is 4294967294", "4294967295");
        refuses("a[99999999999999999999999]", "too large", "99999999999999999999999");
        refuses("a[8..1]", "write `1..8`", "8..1");
        refuses("a[1..]", "a number is missing", "]");
        refuses("a[..4]", "a number is missing", ".");
        refuses("a[1,,2]", "a number is missing", ",");
        refuses("a[1..=8]", "`=8` is not a size", "=8");
        refuses("a[1..4000000000]", "more than 10000 sizes", "1..4000000000");
        refuses("a[1..9000,1..9000]", "more than 10000 sizes", "1..9000");
        refuses("a[3][3]", "has a size already", "[3]");
        refuses("a[3] -> b; a[4]", "`a` has two sizes, 3 and 4", "[4]");
        refuses("a[1..3] -> b; a[2,5]", "two sizes, 1..3 and 2,5", "[2,5]");
    }

    #[test]
    fn bad_quotes_are_explained() {
        refuses("a -> \"b", "not closed", "\"");
        refuses("a -> \"b\nc\"", "not closed", "\"");
        refuses("a -> \"\"", "cannot be empty", "\"\"");
    }

    #[test]
    fn bad_ties_are_explained() {
        refuses("a b; a ~ a", "tied to itself", "a");
        refuses("a b; a ~ b ~ a", "tied to itself", "a");
        refuses("a -> b ~ c", "write the tie apart", "~");
        refuses("a b c; a ~ b c", "expected `~` before `c`", "c");
        refuses("r[2] -> i j; i ~ q", "unknown node `q` in a tie; the model has `r`, `i`, `j`", "q");
        refuses("i ~ j", "the model has no other node", "i");
    }

    #[test]
    fn self_loops_and_empty_texts_are_refused() {
        refuses("a -> a", "its own parent", "a");
        refuses("a b -> b c", "`b` cannot be its own parent", "b");
        refuses("", "the model is empty", "");
        refuses(" ;\n; ", "the model is empty", " ;\n; ");
    }

    #[test]
    fn long_names_are_cut_in_messages() {
        let (message, _) = fault(&format!("{0} -> {0}", "x".repeat(1000)));
        assert!(message.len() < 200, "{message}");
    }

    #[test]
    fn huge_texts_are_handled() {
        let many: String = (0..100_000).map(|ix| format!("n{ix} ")).collect();
        assert_eq!(graph(&many).nodes.len(), 100_000);
        let (message, place) = fault(&format!("{many} -> {many}"));
        assert!(message.contains("more than 1000000 edges"));
        assert_eq!(place, "->");
        assert_eq!(graph(&"a -> b;".repeat(200_000)).edges, [(0, 1)]);
        fault(&"[".repeat(1_000_000));
        fault(&"(".repeat(1_000_000));
        fault(&"a(".repeat(500_000));
        fault(&format!("a[{}]", "1,".repeat(500_000)));
    }

    /// Parses and, where that works, resolves; every place must lie in the text.
    fn survives(text: &str) {
        let columns = ["x".to_owned(), "y".to_owned(), "r1".to_owned()];
        let result = ModelSource::parse(text).and_then(|source| {
            source.resolve(None).and(source.resolve(Some(&columns[..2]))).and(source.resolve(Some(&columns)))
        });
        match result {
            Ok(spec) => assert!(!spec.nodes.is_empty()),
            Err(Error::Model(error)) => {
                let place = error.place.expect("an error in a text has a place");
                assert!(text.get(place.span.clone()).is_some(), "{text:?} {:?}", place.span);
                place.caret();
                assert!(!error.message.contains('\n'));
            }
            Err(error) => panic!("{text:?}: {error}"),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn arbitrary_text_never_panics(text in any::<String>()) {
            survives(&text);
        }

        #[test]
        fn text_of_the_languages_own_symbols_never_panics(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "b", "é", "->", "<-", "~", ";", "\n", ",", " ", "[", "]", "[3]", "[1..4]", "..", "0",
                    "9999999999", "\"", "(", ")", "lda", "hmm(", "tucker(", "tensor-train(", ",tied)", "einsum:",
                    "ab,bc->ac", "-", "\0",
                ]),
                0..24,
            )
        ) {
            survives(&parts.concat());
        }

        #[test]
        fn contractions_of_any_letters_never_panic(
            text in "einsum: ?[a-e]{1,4}(,[a-e]{1,3}){0,5}->[a-e]{0,4}(; ?[a-e]\\[[0-3]\\])?"
        ) {
            survives(&text);
        }
    }
}
