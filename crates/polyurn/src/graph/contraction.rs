//! Contractions: a nonnegative tensor model written as factors, `einsum: ir,jr,kr->ijk; r[10]`.
//!
//! Every letter is a node; those after `->` are seen. The letters of a factor are joined to each other; if the graph so
//! made is not decomposable it is triangulated by min-fill, and the added edges are recorded. A perfect numbering
//! (maximum cardinality search) then directs every edge from the earlier to the later node, which changes nothing in
//! what a decomposable model can express.
//!
//! The nodes of the spec stand in the order of that numbering. Ties in it go to hidden letters first, then to the
//! letter that appears first in the text. Sizes have no say in the triangulation (equal fill goes to the clique with
//! fewer seen letters), so the graph is a function of the factors alone.

use super::names::{first_repeated, free_name, listed, shown};
use super::parse::GraphBuilder;
use super::spec::{ModelSpec, NodeSpec};
use super::statement::{Named, Statement, parse_statements};
use super::triangulate::Undirected;
use crate::error::{Error, Result};
use std::ops::Range;

const KEYWORD: &str = "einsum";
/// More letters than this are not a model but a mistake.
const MAX_LETTERS: usize = 500;

/// A contraction as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contraction {
    /// One node for each letter, in order of first appearance, with sizes and ties; no edges.
    letters: ModelSpec,
    /// The factors, by position in `letters`.
    factors: Vec<Vec<usize>>,
    /// The seen letters in order, by position in `letters`.
    output: Vec<usize>,
    /// Where the letters after `->` stand.
    output_span: Range<usize>,
}

/// Where the factors start, if the text from `start` on is a contraction.
pub(super) fn header_start(text: &str, start: usize) -> Option<usize> {
    let rest = text[start..].strip_prefix(KEYWORD)?.trim_start().strip_prefix(':')?.trim_start();
    Some(text.len() - rest.len())
}

impl Contraction {
    /// Reads the factors, which start at byte `start`, and the statements after them.
    pub(super) fn parse(text: &str, start: usize) -> Result<Self> {
        let end = text[start..].find([';', '\n', '\r']).map_or(text.len(), |offset| start + offset);
        let mut header = Header { text, builder: GraphBuilder::new(text), n_letters: 0 };
        let (left, output_span) = header.split(start..end)?;
        let factors = header.factors(left)?;
        let n_in_factors = header.n_letters;
        let output = header.output(output_span.clone(), n_in_factors)?;
        let letters = add_statements(text, end, header.builder)?;
        Ok(Contraction { letters, factors, output, output_span })
    }

    /// The directed graph, seen letters renamed to `columns` in order where there are columns.
    pub(super) fn resolve(&self, columns: Option<&[String]>) -> Result<ModelSpec> {
        let names = self.names(columns)?;
        let graph = self.numbered_graph();
        let to_letter = self.hidden_first();
        let order: Vec<usize> = graph.order.iter().map(|&vertex| to_letter[vertex]).collect();
        let mut position = vec![0; order.len()];
        for (at, &letter) in order.iter().enumerate() {
            position[letter] = at;
        }
        let at = |vertex: usize| position[to_letter[vertex]];
        let mut tied: Vec<Vec<usize>> =
            self.letters.tied.iter().map(|group| sorted(group.iter().map(|&letter| position[letter]))).collect();
        tied.sort();
        let mut added: Vec<(usize, usize)> =
            graph.fill.iter().map(|&(a, b)| (at(a).min(at(b)), at(a).max(at(b)))).collect();
        added.sort_unstable();
        Ok(ModelSpec {
            nodes: order
                .iter()
                .map(|&letter| NodeSpec { name: names[letter].clone(), ..self.letters.nodes[letter].clone() })
                .collect(),
            edges: directed_edges(&graph),
            tied,
            added,
            text: self.letters.text.clone(),
        })
    }

    /// The name of every letter's node.
    fn names(&self, columns: Option<&[String]>) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.letters.nodes.iter().map(|node| node.name.clone()).collect();
        let Some(columns) = columns else { return Ok(names) };
        if columns.len() != self.output.len() {
            let list = listed(columns.iter().map(String::as_str));
            let list = if list.is_empty() { String::new() } else { format!(" ({list})") };
            return Err(self.output_error(format!(
                "{} after `->` but {}{list}; write one letter for each column",
                count(self.output.len(), "letter"),
                count(columns.len(), "column")
            )));
        }
        if let Some(name) = first_repeated(columns) {
            return Err(self.output_error(format!("two columns are named {}; rename one of them", shown(name))));
        }
        for letter in 0..names.len() {
            names[letter] = match self.output.iter().position(|&seen| seen == letter) {
                Some(column) => columns[column].clone(),
                None => free_name(&names[letter], |name| columns.iter().any(|column| column == name)),
            };
        }
        Ok(names)
    }

    fn output_error(&self, message: String) -> Error {
        let text = self.letters.text.as_deref().unwrap_or_default();
        Error::model_at(message, text, self.output_span.clone())
    }

    /// The letters, hidden ones first: the vertices of the graph, so that the smallest index wins ties.
    fn hidden_first(&self) -> Vec<usize> {
        let is_seen = |letter: &usize| self.output.contains(letter);
        let (seen, hidden): (Vec<usize>, Vec<usize>) = (0..self.letters.nodes.len()).partition(is_seen);
        [hidden, seen].concat()
    }

    fn numbered_graph(&self) -> NumberedGraph {
        let to_letter = self.hidden_first();
        let n_letters = to_letter.len();
        let n_hidden = n_letters - self.output.len();
        let mut to_vertex = vec![0; n_letters];
        for (vertex, &letter) in to_letter.iter().enumerate() {
            to_vertex[letter] = vertex;
        }
        let mut graph = Undirected::new(n_letters);
        for factor in &self.factors {
            graph.add_clique(&factor.iter().map(|&letter| to_vertex[letter]).collect::<Vec<_>>());
        }
        let all: Vec<usize> = (0..n_letters).collect();
        let fill = graph.eliminate(&all, |vertex| if vertex < n_hidden { 1.0 } else { 2.0 }).fill;
        for &(a, b) in &fill {
            graph.add_edge(a, b);
        }
        let order = graph.maximum_cardinality_order();
        NumberedGraph { graph, fill, order }
    }
}

/// A chordal graph, the edges that made it so, and a perfect numbering.
struct NumberedGraph {
    graph: Undirected,
    fill: Vec<(usize, usize)>,
    order: Vec<usize>,
}

/// All edges from earlier to later, by position in the numbering.
fn directed_edges(graph: &NumberedGraph) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for (child, &vertex) in graph.order.iter().enumerate() {
        for (parent, &earlier) in graph.order[..child].iter().enumerate() {
            if graph.graph.has_edge(earlier, vertex) {
                edges.push((parent, child));
            }
        }
    }
    edges
}

fn sorted(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values
}

fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// Reads `ir,jr->ij`.
struct Header<'a> {
    text: &'a str,
    builder: GraphBuilder<'a>,
    n_letters: usize,
}

impl Header<'_> {
    /// The bytes before and after the arrow.
    fn split(&self, span: Range<usize>) -> Result<(Range<usize>, Range<usize>)> {
        let Some(offset) = self.text[span.clone()].find("->") else {
            let message = "`->` is missing; write the seen letters after it, as in `einsum: ir,jr->ij; r[4]`";
            let end = span.start + self.text[span.clone()].trim_end().len();
            return Err(self.error(message, span.start..end));
        };
        let arrow = span.start + offset;
        if let Some(second) = self.text[arrow + 2..span.end].find("->") {
            let second = arrow + 2 + second;
            let message = "a second `->`; only the seen letters stand after the first one";
            return Err(self.error(message, second..second + 2));
        }
        Ok((span.start..arrow, arrow + 2..span.end))
    }

    fn factors(&mut self, span: Range<usize>) -> Result<Vec<Vec<usize>>> {
        let text = self.text;
        let mut factors = Vec::new();
        let mut start = span.start;
        for factor in text[span].split(',') {
            let end = start + factor.len();
            if factor.trim().is_empty() {
                let message = "this factor has no letters; write factors as in `ir,jr->ij`";
                return Err(self.error(message, start..end + 1));
            }
            factors.push(self.letters(start..end, "this factor")?);
            start = end + 1;
        }
        Ok(factors)
    }

    fn output(&mut self, span: Range<usize>, n_in_factors: usize) -> Result<Vec<usize>> {
        if let Some(comma) = self.text[span.clone()].find(',') {
            let comma = span.start + comma;
            let message = "no comma may stand after `->`; write the seen letters side by side, as in `->ijk`";
            return Err(self.error(message, comma..comma + 1));
        }
        let output = self.letters(span.clone(), "the output")?;
        if let Some(at) = output.iter().position(|&letter| letter >= n_in_factors) {
            let (offset, letter) = letters_of(&self.text[span.clone()]).nth(at).expect("one letter for each entry");
            let start = span.start + offset;
            let message = format!("letter `{letter}` is in no factor; use it before `->` or drop it");
            return Err(self.error(&message, start..start + letter.len_utf8()));
        }
        Ok(output)
    }

    /// The letters of a factor or of the output, each once.
    fn letters(&mut self, span: Range<usize>, whose: &str) -> Result<Vec<usize>> {
        let mut found: Vec<usize> = Vec::new();
        for (offset, c) in letters_of(&self.text[span.clone()]) {
            let place = span.start + offset..span.start + offset + c.len_utf8();
            if !c.is_alphabetic() {
                return Err(self.error(&stray_message(c), place));
            }
            let letter = self.builder.declare(c.encode_utf8(&mut [0; 4]), place.clone());
            self.n_letters = self.n_letters.max(letter + 1);
            if self.n_letters > MAX_LETTERS {
                return Err(self.error(&format!("more than {MAX_LETTERS} different letters"), place));
            }
            if found.contains(&letter) {
                let message = format!("letter `{c}` occurs twice in {whose}; name each letter once");
                return Err(self.error(&message, place));
            }
            found.push(letter);
        }
        Ok(found)
    }

    fn error(&self, message: &str, span: Range<usize>) -> Error {
        Error::model_at(message, self.text, span)
    }
}

fn letters_of(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    text.char_indices().filter(|(_, c)| !c.is_whitespace())
}

fn stray_message(c: char) -> String {
    let c = shown(c.encode_utf8(&mut [0; 4]));
    format!("{c} is not a letter; indices are single letters as in `ir,jr->ij`, sizes follow after `;` as in `; r[4]`")
}

/// Takes in the statements after the factors: sizes and ties of known letters.
fn add_statements(text: &str, start: usize, mut builder: GraphBuilder<'_>) -> Result<ModelSpec> {
    let statements = parse_statements(text, start)?;
    for statement in &statements {
        let named: Vec<&Named> = match statement {
            Statement::Chain { groups, arrows } => {
                if let Some((_, span)) = arrows.first() {
                    let message = "no arrows may stand after a contraction; only sizes `r[4]` and ties `i ~ j`";
                    return Err(Error::model_at(message, text, span.clone()));
                }
                groups.iter().flatten().collect()
            }
            Statement::Tie(members) => members.iter().collect(),
        };
        if let Some(unknown) = named.into_iter().find(|named| !builder.has(&named.name)) {
            let known = listed(builder.names());
            let message = format!("unknown letter {}; the contraction has {known}", shown(&unknown.name));
            return Err(Error::model_at(message, text, unknown.span.clone()));
        }
    }
    for statement in statements {
        builder.add(statement)?;
    }
    builder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::refusal::assert_refused;
    use crate::graph::{Model, ModelSource, Size};

    fn columns(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn resolve(text: &str) -> ModelSpec {
        ModelSource::parse(text)
            .and_then(|source| source.resolve(None))
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn names(spec: &ModelSpec) -> Vec<&str> {
        spec.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    fn pairs(spec: &ModelSpec, pairs: &[(usize, usize)]) -> Vec<String> {
        pairs.iter().map(|&(a, b)| format!("{}{}", spec.nodes[a].name, spec.nodes[b].name)).collect()
    }

    #[test]
    fn cp_becomes_a_star_from_the_hidden_letter() {
        let spec = resolve("einsum: ir,jr,kr->ijk; r[10]");
        assert_eq!(names(&spec), ["r", "i", "j", "k"]);
        assert_eq!(pairs(&spec, &spec.edges), ["ri", "rj", "rk"]);
        assert_eq!(spec.nodes[0].size, Size::Fixed(10));
        assert_eq!(spec.nodes[0].span, Some(9..10));
        assert!(spec.added.is_empty());
    }

    #[test]
    fn columns_rename_the_output_in_its_order() {
        let source = ModelSource::parse("einsum: ir,jr->ji; r[2]").unwrap();
        let spec = source.resolve(Some(&columns(&["r", "word"]))).unwrap();
        assert_eq!(names(&spec), ["r_", "word", "r"]);
        assert_eq!(pairs(&spec, &spec.edges), ["r_word", "r_r"]);
    }

    #[test]
    fn a_four_cycle_gets_exactly_one_edge() {
        let spec = resolve("einsum: ab,bd,ac,cd->abcd");
        assert_eq!(spec.added.len(), 1);
        assert_eq!(pairs(&spec, &spec.added), ["bc"]);
        assert_eq!(spec.edges.len(), 5);
        Model::build(&spec, &[2; 4]).unwrap();
    }

    #[test]
    fn a_cycle_through_hidden_letters_joins_the_hidden_ones() {
        let spec = resolve("einsum: ir,is,jr,js->ij; r[2]; s[2]");
        assert_eq!(pairs(&spec, &spec.added), ["rs"]);
        assert_eq!(names(&spec)[..2], ["r", "s"]);
    }

    #[test]
    fn every_direction_is_perfect() {
        for text in ["einsum: abc,cde,eaf,g->abfg", "einsum: ab,bc,cd,de,ef,fa->abcdef", "einsum: xyz,yzw,wq->xq"] {
            let spec = resolve(text);
            let sizes = vec![2; spec.nodes.len()];
            let model = Model::build(&spec, &sizes).unwrap();
            // No collider without an edge between its parents: moralising adds nothing.
            let moral = Undirected::moral(&model);
            let n_edges: usize = (0..sizes.len()).map(|ix| moral.neighbours(ix).count()).sum();
            assert_eq!(n_edges, 2 * spec.edges.len(), "{text}");
            assert!(moral.is_chordal());
        }
    }

    #[test]
    fn sizes_and_ties_follow_on_any_line() {
        let spec = resolve("einsum:\n i r , j r -> i j\nr[1..3]; i[4] j[4]\n j ~ i");
        assert_eq!(names(&spec), ["r", "i", "j"]);
        assert_eq!(spec.nodes[0].size, Size::Choices(vec![1, 2, 3]));
        assert_eq!(spec.tied, [vec![1, 2]]);
    }

    #[test]
    fn letters_may_be_of_any_script_and_the_output_empty() {
        assert_eq!(names(&resolve("einsum: éλ,λ主->é主; λ[2]")), ["λ", "é", "主"]);
        assert_eq!(names(&resolve("einsum : ab-> ; a[2] b[2]")), ["a", "b"]);
        assert_eq!(resolve("einsum: i,j->ij").edges, []);
    }

    #[track_caller]
    fn refuses(text: &str, words: &str, at: &str) {
        let found = ModelSource::parse(text).and_then(|source| source.resolve(Some(&columns(&["x", "y"]))));
        assert_refused(found, text, words, at);
    }

    #[test]
    fn bad_factors_are_explained() {
        refuses("einsum: ir,jr; r[3]", "`->` is missing", "ir,jr");
        refuses("einsum:", "`->` is missing", "");
        refuses("einsum: ir->jr->ij", "a second `->`", "->");
        refuses("einsum: iri,jr->ij", "letter `i` occurs twice in this factor", "i");
        refuses("einsum: ir,jr->iji", "letter `i` occurs twice in the output", "i");
        refuses("einsum: ir,jr->ik", "letter `k` is in no factor", "k");
        refuses("einsum: ir,,jr->ij", "this factor has no letters", ",");
        refuses("einsum: ->ij", "this factor has no letters", "-");
        refuses("einsum: ir,->ir", "this factor has no letters", "-");
        refuses("einsum: i2,j2->ij", "`2` is not a letter", "2");
        refuses("einsum: ir[3],jr->ij", "sizes follow after `;`", "[");
        refuses("einsum: ir,jr->i,j", "no comma may stand after `->`", ",");
        refuses("einsum: ir*jr->ij", "`*` is not a letter", "*");
    }

    #[test]
    fn bad_statements_are_explained() {
        refuses("einsum: ir,jr->ij; q[3]", "unknown letter `q`; the contraction has `i`, `r`, `j`", "q");
        refuses("einsum: ir,jr->ij; i ~ word", "unknown letter `word`", "word");
        refuses("einsum: ir,jr->ij; r -> i", "no arrows may stand after a contraction", "->");
        refuses("einsum: ir,jr->ij; r[0]", "at least 1", "0");
        refuses("einsum: ir,jr->ij; r[2]; r[3]", "two sizes, 2 and 3", "[3]");
        refuses("einsum: ir,jr->ij; i ~ i", "tied to itself", "i");
    }

    #[test]
    fn wrong_columns_are_explained() {
        refuses("einsum: ir,jr,kr->ijk; r[3]", "3 letters after `->` but 2 columns (`x`, `y`)", "ijk");
        refuses("einsum: ir,jr->; r[3]", "0 letters after `->`", "");
        let source = ModelSource::parse("einsum: ir,jr->ij").unwrap();
        let error = source.resolve(Some(&columns(&["x", "x"]))).unwrap_err().to_string();
        assert!(error.contains("two columns are named `x`"), "{error}");
    }

    #[test]
    fn very_many_letters_are_refused_and_many_handled() {
        let letters: Vec<char> = ('\u{4e00}'..).take(600).collect();
        let all: String = letters.iter().collect();
        let error = ModelSource::parse(&format!("einsum: {all}->")).unwrap_err().to_string();
        assert!(error.contains("more than 500 different letters"), "{error}");
        let ring: Vec<String> = (0..400).map(|ix| format!("{}{}", letters[ix], letters[(ix + 1) % 400])).collect();
        assert_eq!(resolve(&format!("einsum: {}->", ring.join(","))).added.len(), 397);
    }
}
