//! Model files: JSON or TOML with the fields `nodes`, `edges`, `tied`, `prior`, `a` and `b`; and files that hold a
//! prior alone.
//!
//! ```json
//! {"nodes": [{"name": "doc"}, {"name": "topic", "card": 20}, {"name": "word"}],
//!  "edges": [["doc", "topic"], ["topic", "word"]],
//!  "prior": {"kind": "bdeu"}, "a": 1.0}
//! ```
//!
//! Only `nodes` is needed. Whatever the file holds besides is an error, so that a misspelt field is not passed over.

use super::unique_fields::UniqueFields;
use crate::error::{Error, Result};
use crate::graph::{ModelSource, ModelSpec, NodeSpec, Size};
use crate::prior::{PriorSettings, PriorSpec};
use hashbrown::{HashMap, HashSet};
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use std::fmt;
use std::path::Path;

const MAX_SIZE: u32 = u32::MAX - 1;

/// What a model file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFile {
    /// The graph.
    pub source: ModelSource,
    /// Pseudo-counts.
    pub prior: Option<PriorSpec>,
    /// Shape of the Gamma prior on the total, and equivalent sample size.
    pub a: Option<f64>,
    /// Rate of the Gamma prior on the total.
    pub b: Option<f64>,
}

impl ModelFile {
    /// The model, and its prior as settings.
    pub fn with_settings(self) -> (ModelSource, PriorSettings) {
        let spec = self.prior.unwrap_or_default();
        (self.source, PriorSettings { spec, a: self.a, rate: self.b, ..PriorSettings::default() })
    }
}

/// The notation of a model file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFormat {
    /// JSON, `.json`.
    Json,
    /// TOML, `.toml`.
    Toml,
}

impl ModelFormat {
    /// The format that a file's name ends in.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        if extension.eq_ignore_ascii_case("json") {
            return Some(ModelFormat::Json);
        }
        extension.eq_ignore_ascii_case("toml").then_some(ModelFormat::Toml)
    }
}

/// Reads a model file; its name ends in `.json` or `.toml`.
///
/// # Errors
/// A file that cannot be read, or holds anything but a model.
pub fn read_model_file(path: &Path) -> Result<ModelFile> {
    let name = path.display().to_string();
    let (text, format) = read(path).map_err(|fault| fault.into_error(&name, Error::model))?;
    parse_model_file(&text, format, &name)
}

/// Reads a model as people give it: text, or a file whose name ends in `.json` or `.toml`, with the prior that it holds.
///
/// # Errors
/// A file that cannot be read, and anything that is no model.
pub fn read_model(text: &str) -> Result<(ModelSource, PriorSettings)> {
    match ModelFormat::of(Path::new(text)) {
        Some(_) => Ok(read_model_file(Path::new(text))?.with_settings()),
        None => Ok((ModelSource::parse(text)?, PriorSettings::default())),
    }
}

/// Reads a model file that is in memory; `source_name` is its name in errors.
///
/// # Errors
/// Anything that is not a model, with the line and column where they are known.
pub fn parse_model_file(text: &str, format: ModelFormat, source_name: &str) -> Result<ModelFile> {
    parse_written::<WrittenModel>(text, format)
        .and_then(|written| written.check().map_err(Fault::wrong))
        .map_err(|fault| fault.into_error(source_name, Error::model))
}

/// Reads a JSON or TOML file that holds a prior and nothing else: the object that is `prior` in a model file.
///
/// # Errors
/// A file that cannot be read, or holds anything but a prior.
pub fn read_prior_file(path: &Path) -> Result<PriorSpec> {
    let name = path.display().to_string();
    read(path)
        .and_then(|(text, format)| parse_written(&text, format))
        .map_err(|fault| fault.into_error(&name, Error::Prior))
}

/// What is wrong with a file, before it is known whether the file is a model or a prior.
#[derive(Debug)]
enum Fault {
    Unreadable { path: std::path::PathBuf, source: std::io::Error },
    Wrong { place: Option<(usize, usize)>, message: String },
}

impl Fault {
    fn wrong(message: impl Into<String>) -> Self {
        Fault::Wrong { place: None, message: message.into() }
    }

    fn into_error(self, source_name: &str, kind: impl Fn(String) -> Error) -> Error {
        match self {
            Fault::Unreadable { path, source } => Error::Io { path, source },
            Fault::Wrong { place: None, message } => kind(format!("{source_name}: {message}")),
            Fault::Wrong { place: Some((line, column)), message } => {
                kind(format!("{source_name}, line {line}, column {column}: {message}"))
            }
        }
    }
}

fn read(path: &Path) -> Result<(String, ModelFormat), Fault> {
    let format = ModelFormat::of(path).ok_or_else(|| Fault::wrong("the name must end in .json or .toml"))?;
    let bytes = std::fs::read(path).map_err(|source| Fault::Unreadable { path: path.to_owned(), source })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Fault::wrong(format!("not UTF-8 text (byte {}); save it as UTF-8", error.utf8_error().valid_up_to() + 1))
    })?;
    Ok((text, format))
}

fn parse_written<T: DeserializeOwned>(text: &str, format: ModelFormat) -> Result<T, Fault> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Fault::wrong("the file is empty"));
    }
    match format {
        ModelFormat::Json => serde_json::from_str::<UniqueFields>(text)
            .and_then(|UniqueFields| serde_json::from_str(text))
            .map_err(|error| json_fault(&error)),
        ModelFormat::Toml => toml::from_str(text).map_err(|error| toml_fault(&error, text)),
    }
}

fn json_fault(error: &serde_json::Error) -> Fault {
    let full = error.to_string();
    let at = format!(" at line {} column {}", error.line(), error.column());
    let what = full.strip_suffix(&at).unwrap_or(&full);
    let place = (error.line() > 0).then(|| (error.line(), error.column()));
    let message = if error.is_data() { plain_words(what) } else { format!("not valid JSON: {}", plain_words(what)) };
    Fault::Wrong { place, message }
}

fn toml_fault(error: &toml::de::Error, text: &str) -> Fault {
    let place = error.span().and_then(|span| text.get(..span.start)).map(|before| {
        let line_start = before.rfind('\n').map_or(0, |ix| ix + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    });
    Fault::Wrong { place, message: plain_words(error.message()) }
}

/// Serde's words for types as a writer of a file knows them, on one line.
fn plain_words(message: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("expected f64", "expected a number"),
        ("expected a sequence", "expected a list"),
        ("expected internally tagged enum PriorSpec", "expected a prior such as {\"kind\": \"bdeu\"}"),
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: map", "invalid type: object"),
        ("EOF", "end of file"),
    ];
    let mut message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    for (theirs, ours) in WORDS {
        message = message.replace(theirs, ours);
    }
    message
}

/// The fields as they stand in the file.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a model: an object with the fields `nodes`, `edges`, `tied`, `prior`, `a`, `b`"
)]
struct WrittenModel {
    nodes: Vec<WrittenNode>,
    #[serde(default)]
    edges: Vec<Vec<String>>,
    #[serde(default)]
    tied: Vec<Vec<String>>,
    prior: Option<PriorSpec>,
    a: Option<Number>,
    b: Option<Number>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a node: an object with the fields `name`, `card`")]
struct WrittenNode {
    name: String,
    card: Option<Cardinality>,
}

impl WrittenModel {
    fn check(self) -> Result<ModelFile, String> {
        let nodes = Nodes::new(self.nodes)?;
        let edges = check_edges(&self.edges, &nodes)?;
        let tied = check_ties(&self.tied, &nodes)?;
        Ok(ModelFile {
            source: ModelSource::Graph(ModelSpec { nodes: nodes.specs, edges, tied, ..ModelSpec::default() }),
            prior: self.prior,
            a: check_positive("a", self.a)?,
            b: check_positive("b", self.b)?,
        })
    }
}

/// The nodes, and where each name stands among them.
struct Nodes {
    specs: Vec<NodeSpec>,
    index: HashMap<String, usize>,
}

impl Nodes {
    fn new(written: Vec<WrittenNode>) -> Result<Self, String> {
        if written.is_empty() {
            return Err("`nodes` is empty; name at least one node".to_owned());
        }
        let mut nodes = Nodes { specs: Vec::with_capacity(written.len()), index: HashMap::new() };
        for (ix, node) in written.into_iter().enumerate() {
            if node.name.is_empty() {
                return Err(format!("node {} of `nodes` has an empty name", ix + 1));
            }
            if nodes.index.insert(node.name.clone(), ix).is_some() {
                return Err(format!("node {} is named twice in `nodes`; give each node one entry", shown(&node.name)));
            }
            let size = node.card.map_or(Size::FromData, |Cardinality(size)| Size::Fixed(size));
            nodes.specs.push(NodeSpec { name: node.name, size, span: None });
        }
        Ok(nodes)
    }

    /// The position of a node; `what` names it.
    fn find(&self, name: &str, what: &str) -> Result<usize, String> {
        const MAX_LISTED: usize = 20;
        self.index.get(name).copied().ok_or_else(|| {
            let mut known: Vec<String> = self.specs.iter().take(MAX_LISTED).map(|node| shown(&node.name)).collect();
            if self.specs.len() > MAX_LISTED {
                known.push("…".to_owned());
            }
            format!("{what} names {}, which is not in `nodes`; the nodes are {}", shown(name), known.join(", "))
        })
    }
}

fn check_edges(written: &[Vec<String>], nodes: &Nodes) -> Result<Vec<(usize, usize)>, String> {
    let mut seen = HashSet::new();
    let mut edges = Vec::with_capacity(written.len());
    for (ix, names) in written.iter().enumerate() {
        let what = format!("edge {}", ix + 1);
        let [parent, child] = names.as_slice() else {
            return Err(format!("{what} has {} names; an edge is [parent, child]", names.len()));
        };
        if parent == child {
            return Err(format!("{what} joins {} to itself; no node can be its own parent", shown(parent)));
        }
        let edge = (nodes.find(parent, &what)?, nodes.find(child, &what)?);
        if seen.insert(edge) {
            edges.push(edge);
        }
    }
    Ok(edges)
}

fn check_ties(written: &[Vec<String>], nodes: &Nodes) -> Result<Vec<Vec<usize>>, String> {
    let mut group_of: HashMap<usize, usize> = HashMap::new();
    let mut tied = Vec::with_capacity(written.len());
    for (ix, names) in written.iter().enumerate() {
        let what = format!("group {} of `tied`", ix + 1);
        if names.len() < 2 {
            return Err(format!("{what} needs two or more nodes, it has {}", names.len()));
        }
        let mut group = Vec::with_capacity(names.len());
        for name in names {
            let node = nodes.find(name, &what)?;
            match group_of.insert(node, ix) {
                None => group.push(node),
                Some(earlier) if earlier == ix => return Err(format!("{what} names {} twice", shown(name))),
                Some(earlier) => {
                    let groups = format!("groups {} and {} of `tied`", earlier + 1, ix + 1);
                    return Err(format!("node {} is in {groups}; make them one group", shown(name)));
                }
            }
        }
        group.sort_unstable();
        tied.push(group);
    }
    tied.sort();
    Ok(tied)
}

fn check_positive(field: &str, value: Option<Number>) -> Result<Option<f64>, String> {
    match value {
        Some(Number(value)) if !(value.is_finite() && value > 0.0) => {
            Err(format!("`{field}` is {value}; it must be a finite number above 0"))
        }
        _ => Ok(value.map(|Number(value)| value)),
    }
}

/// A name in a message: in backticks, on one line and not too long.
pub(super) fn shown(name: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut short: String = name.chars().take(MAX_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if short.len() < name.len() {
        short.push('…');
    }
    format!("`{short}`")
}

/// A node's size.
struct Cardinality(u32);

impl<'de> Deserialize<'de> for Cardinality {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CardinalityVisitor)
    }
}

struct CardinalityVisitor;

impl Visitor<'_> for CardinalityVisitor {
    type Value = Cardinality;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "for `card` a whole number from 1 to {MAX_SIZE}")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Cardinality, E> {
        match u32::try_from(value) {
            Ok(size) if (1..=MAX_SIZE).contains(&size) => Ok(Cardinality(size)),
            _ => Err(E::invalid_value(de::Unexpected::Unsigned(value), &self)),
        }
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Cardinality, E> {
        match u64::try_from(value) {
            Ok(value) => self.visit_u64(value),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
        }
    }
}

/// A number, whole or not; the range is checked where its field is known.
#[derive(Clone, Copy)]
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn json(text: &str) -> Result<ModelFile> {
        parse_model_file(text, ModelFormat::Json, "m.json")
    }

    fn toml(text: &str) -> Result<ModelFile> {
        parse_model_file(text, ModelFormat::Toml, "m.toml")
    }

    fn spec(file: &ModelFile) -> ModelSpec {
        file.source.resolve(None).unwrap()
    }

    #[test]
    fn all_fields_are_read_from_json() {
        let file = json(
            r#"{"nodes": [{"name": "i", "card": 4}, {"name": "k", "card": 2}, {"name": "j"}],
                "edges": [["k", "i"], ["k", "j"], ["k", "i"]], "tied": [["j", "i"]],
                "prior": {"kind": "bdeu", "size": 2}, "a": 1, "b": 0.0625}"#,
        )
        .unwrap();
        let spec = spec(&file);
        assert_eq!(spec.nodes[0], NodeSpec { name: "i".to_owned(), size: Size::Fixed(4), span: None });
        assert_eq!(spec.nodes[2].size, Size::FromData);
        assert_eq!(spec.edges, [(1, 0), (1, 2)]);
        assert_eq!(spec.tied, [vec![0, 2]]);
        assert_eq!(file.prior, Some(PriorSpec::Bdeu { size: Some(2.0) }));
        assert_eq!((file.a, file.b), (Some(1.0), Some(0.0625)));
        assert!(!file.source.binds_by_position());
    }

    #[test]
    fn toml_says_the_same_as_json() {
        let from_toml = toml(
            "a = 0.5\nedges = [[\"doc\", \"topic\"]]\n[[nodes]]\nname = \"doc\"\n[[nodes]]\nname = \"topic\"\n\
             card = 3\n\
             [prior]\nkind = \"tables\"\n[prior.tables]\ntopic = [[1, 2.5, 0]]\n",
        );
        let from_json = json(
            r#"{"a": 0.5, "edges": [["doc", "topic"]], "nodes": [{"name": "doc"}, {"name": "topic", "card": 3}],
                "prior": {"kind": "tables", "tables": {"topic": [[1, 2.5, 0]]}}}"#,
        );
        assert_eq!(from_toml.unwrap(), from_json.unwrap());
    }

    #[test]
    fn nodes_alone_are_enough_and_a_byte_order_mark_is_skipped() {
        let file = json("\u{feff}{\"nodes\": [{\"name\": \"a -> b\"}]}").unwrap();
        assert_eq!(spec(&file).nodes[0].name, "a -> b");
        assert_eq!((file.prior, file.a, file.b), (None, None, None));
    }

    #[track_caller]
    fn check(result: Result<ModelFile>, name: &str, words: &str) {
        let error = result.expect_err(words);
        assert!(matches!(error, Error::Model(_)), "{error:?}");
        let message = error.to_string();
        assert!(message.starts_with(&format!("model: {name}")), "{message}");
        assert!(message.contains(words), "wanted {words}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }

    #[test]
    fn bad_json_is_refused_in_one_line() {
        let cases = [
            ("", "the file is empty"),
            (" \n", "the file is empty"),
            ("{", "line 1, column 1: not valid JSON: end of file while parsing an object"),
            ("{\"nodes\": [}", "line 1, column 12: not valid JSON"),
            ("nodes", "not valid JSON"),
            ("{} x", "not valid JSON: trailing characters"),
            ("{}", "missing field `nodes`"),
            ("[]", "expected a model: an object with the fields `nodes`"),
            ("3", "expected a model"),
            ("{\"nodes\": 3}", "invalid type: integer `3`, expected a list"),
            ("{\"nodes\": []}", "`nodes` is empty"),
            ("{\"nodes\": [\"a\"]}", "expected a node: an object with the fields `name`, `card`"),
            ("{\"nodes\": [{\"card\": 3}]}", "missing field `name`"),
            ("{\"nodes\": [{\"name\": \"\"}]}", "node 1 of `nodes` has an empty name"),
            ("{\"nodes\": [{\"name\": 3}]}", "expected a string"),
            ("{\"nodes\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}", "node `a` is named twice"),
            ("{\"nodes\": [{\"name\": \"a\", \"size\": 3}]}", "unknown field `size`, expected `name` or `card`"),
            ("{\"nodes\": [{\"name\": \"a\", \"card\": 0}]}", "integer `0`, expected for `card` a whole number from 1"),
            ("{\"nodes\": [{\"name\": \"a\", \"card\": -1}]}", "integer `-1`, expected for `card`"),
            ("{\"nodes\": [{\"name\": \"a\", \"card\": 2.5}]}", "floating point `2.5`, expected for `card`"),
            ("{\"nodes\": [{\"name\": \"a\", \"card\": 4294967295}]}", "to 4294967294"),
            ("{\"nodes\": [{\"name\": \"a\", \"card\": \"3\"}]}", "string \"3\", expected for `card`"),
            ("{\"nodes\": [{\"name\": \"a\"}], \"nodes\": []}", "line 1, column 34: duplicate field `nodes`"),
            (
                "{\"nodes\": [{\"name\": \"a\"}], \"prior\": {\"kind\": \"tables\", \"tables\": {\"a\": 1, \"a\": 2}}}",
                "duplicate field `a`",
            ),
        ];
        for (text, words) in cases {
            check(json(text), "m.json", words);
        }
    }

    #[test]
    fn bad_fields_beside_good_nodes_are_refused_in_one_line() {
        let cases = [
            ("\"node\": 3", "unknown field `node`, expected one of `nodes`, `edges`, `tied`, `prior`, `a`, `b`"),
            ("\"edges\": [[\"a\"]]", "edge 1 has 1 names; an edge is [parent, child]"),
            ("\"edges\": [[\"a\", \"b\"], [\"a\", \"b\", \"c\"]]", "edge 2 has 3 names"),
            ("\"edges\": [[\"a\", \"q\"]]", "edge 1 names `q`, which is not in `nodes`; the nodes are `a`, `b`, `c`"),
            ("\"edges\": [[\"a\", \"a\"]]", "edge 1 joins `a` to itself"),
            ("\"edges\": [\"a -> b\"]", "expected a list"),
            ("\"edges\": [[0, 1]]", "integer `0`, expected a string"),
            ("\"edges\": {\"a\": \"b\"}", "invalid type: object, expected a list"),
            ("\"tied\": [[\"a\"]]", "group 1 of `tied` needs two or more nodes, it has 1"),
            ("\"tied\": [[\"a\", \"a\"]]", "group 1 of `tied` names `a` twice"),
            ("\"tied\": [[\"a\", \"b\"], [\"c\", \"b\"]]", "node `b` is in groups 1 and 2 of `tied`"),
            ("\"tied\": [[\"a\", \"q\"]]", "group 1 of `tied` names `q`"),
            ("\"tied\": [\"a\", \"b\"]", "expected a list"),
            ("\"a\": -1", "`a` is -1; it must be a finite number above 0"),
            ("\"b\": 0", "`b` is 0; it must be a finite number above 0"),
            ("\"a\": \"1\"", "string \"1\", expected a number"),
            ("\"a\": 1e999", "number out of range"),
            ("\"prior\": {\"kind\": \"bdeus\"}", "unknown variant `bdeus`, expected one of `bdeu`, `base`, `tables`"),
            ("\"prior\": {\"kind\": \"bdeu\", \"siz\": 3}", "unknown field `siz`, expected `size`"),
            ("\"prior\": {}", "missing field `kind`"),
            ("\"prior\": \"bdeu\"", "expected a prior such as"),
            ("\"prior\": {\"kind\": \"tables\"}", "missing field `tables`"),
            ("\"prior\": {\"kind\": \"bdeu\", \"size\": \"x\"}", "string \"x\", expected a number"),
        ];
        let nodes = "{\"name\": \"a\"}, {\"name\": \"b\"}, {\"name\": \"c\"}";
        for (field, words) in cases {
            check(json(&format!("{{\"nodes\": [{nodes}],\n {field}}}")), "m.json", words);
        }
    }

    #[test]
    fn bad_toml_is_refused_in_one_line() {
        let nodes = "nodes = [{name = \"a\"}, {name = \"b\"}]\n";
        let cases = [
            ("a = nan", "`a` is NaN; it must be a finite number above 0"),
            ("b = inf", "`b` is inf"),
            ("a = -0.5", "`a` is -0.5"),
            ("a = ", "m.toml, line 2, column 5:"),
            ("x = 3", "m.toml, line 2, column 1: unknown field `x`, expected one of `nodes`,"),
            ("nodes = 3", "m.toml, line 2, column 1: duplicate key"),
            ("edges = [[\"a\", \"é\"]]", "edge 1 names `é`"),
            ("tied = 3", "m.toml, line 2, column 8: invalid type: integer `3`, expected a list"),
            ("prior = {kind = \"bdeu\", total = 3}", "unknown field `total`"),
            ("[", "m.toml, line 2"),
        ];
        for (line, words) in cases {
            check(toml(&format!("{nodes}{line}\n")), "m.toml", words);
        }
        check(toml("a = 1"), "m.toml", "missing field `nodes`");
        check(toml(""), "m.toml", "the file is empty");
        check(toml(&"[".repeat(100_000)), "m.toml", "line 1");
        check(json(&"[".repeat(100_000)), "m.json", "not valid JSON: recursion limit exceeded");
        check(toml("[[nodes]]\nname = \"a\"\ncard = -2"), "m.toml", "line 3, column 8: invalid value: integer `-2`");
    }

    #[test]
    fn files_are_read_by_their_ending() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("m.json"), "{\"nodes\": [{\"name\": \"a\"}]}").unwrap();
        fs::write(path("m.TOML"), "[[nodes]]\nname = \"a\"\n").unwrap();
        fs::write(path("m.txt"), "a").unwrap();
        fs::write(path("latin.json"), b"{\"nodes\": [{\"name\": \"\xe9\"}]}").unwrap();
        assert_eq!(read_model_file(&path("m.json")).unwrap(), read_model_file(&path("m.TOML")).unwrap());
        let message = |name: &str| read_model_file(&path(name)).unwrap_err().to_string();
        assert!(message("m.txt").contains("m.txt: the name must end in .json or .toml"));
        assert!(message("latin.json").contains("not UTF-8 text (byte 22)"), "{}", message("latin.json"));
        assert!(matches!(read_model_file(&path("none.json")), Err(Error::Io { .. })));
        fs::create_dir(path("folder.json")).unwrap();
        assert!(matches!(read_model_file(&path("folder.json")), Err(Error::Io { .. })));
    }

    #[test]
    fn prior_files_hold_a_prior_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("p.json"), "{\"kind\": \"base\", \"alpha\": [1, 2]}").unwrap();
        fs::write(path("p.toml"), "kind = \"base\"\nalpha = [1, 2.0]\n").unwrap();
        fs::write(path("bad.json"), "{\"kind\": \"base\", \"beta\": 1}").unwrap();
        fs::write(path("empty.toml"), "").unwrap();
        assert_eq!(read_prior_file(&path("p.json")).unwrap(), read_prior_file(&path("p.toml")).unwrap());
        let bad = read_prior_file(&path("bad.json")).unwrap_err();
        assert!(matches!(&bad, Error::Prior(message) if message.contains("unknown field `beta`")), "{bad}");
        assert!(bad.to_string().starts_with("prior: "));
        assert!(read_prior_file(&path("empty.toml")).unwrap_err().to_string().ends_with("the file is empty"));
        assert!(matches!(read_prior_file(&path("none.toml")), Err(Error::Io { .. })));
    }
}
