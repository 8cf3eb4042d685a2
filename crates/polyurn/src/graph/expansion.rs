//! The graphs that presets stand for.

use super::names::free_name;
use super::preset::{Argument, Preset};
use super::spec::{ModelSpec, NodeSpec, Size};
use hashbrown::HashSet;

/// Names with the numbers 1 to `n`.
pub(super) fn numbered(stem: &str, n: usize) -> Vec<String> {
    (1..=n).map(|number| format!("{stem}{number}")).collect()
}

/// The graph as it grows.
pub(super) struct Expansion<'a> {
    preset: &'a Preset,
    columns: &'a [String],
    taken: HashSet<&'a str>,
    pub(super) spec: ModelSpec,
}

impl<'a> Expansion<'a> {
    pub(super) fn new(preset: &'a Preset, columns: &'a [String]) -> Self {
        let spec = ModelSpec { text: Some(preset.text.clone()), ..ModelSpec::default() };
        Expansion { preset, columns, taken: columns.iter().map(String::as_str).collect(), spec }
    }

    fn seen(&mut self, column: usize) -> usize {
        let span = Some(self.preset.span.clone());
        self.spec.nodes.push(NodeSpec { name: self.columns[column].clone(), size: Size::FromData, span });
        self.spec.nodes.len() - 1
    }

    pub(super) fn all_seen(&mut self) -> Vec<usize> {
        (0..self.columns.len()).map(|column| self.seen(column)).collect()
    }

    /// A hidden node of the size of argument `at`, or of the one argument there is.
    fn hidden(&mut self, name: &str, at: usize) -> usize {
        let arguments = &self.preset.arguments;
        let Argument { size, span } = &arguments[if arguments.len() == 1 { 0 } else { at }];
        let name = free_name(name, |name| self.taken.contains(name));
        self.spec.nodes.push(NodeSpec { name, size: size.clone(), span: Some(span.clone()) });
        self.spec.nodes.len() - 1
    }

    fn all_hidden(&mut self, names: &[String]) -> Vec<usize> {
        names.iter().enumerate().map(|(at, name)| self.hidden(name, at)).collect()
    }

    fn edge(&mut self, parent: usize, child: usize) {
        self.spec.edges.push((parent, child));
    }

    fn chain(&mut self, nodes: &[usize]) {
        for pair in nodes.windows(2) {
            self.edge(pair[0], pair[1]);
        }
    }

    /// Every node has all earlier ones as parents.
    fn clique(&mut self, nodes: &[usize]) {
        for (at, &child) in nodes.iter().enumerate() {
            for &parent in &nodes[..at] {
                self.edge(parent, child);
            }
        }
    }

    fn pair_up(&mut self, parents: &[usize], children: &[usize]) {
        for (&parent, &child) in parents.iter().zip(children) {
            self.edge(parent, child);
        }
    }

    fn tie(&mut self, nodes: &[usize]) {
        if nodes.len() > 1 {
            self.spec.tied.push(nodes.to_vec());
        }
    }

    pub(super) fn path(&mut self, hidden: &[String]) {
        let mut nodes = vec![self.seen(0)];
        nodes.extend(self.all_hidden(hidden));
        nodes.push(self.seen(1));
        self.chain(&nodes);
    }

    pub(super) fn star(&mut self, centre: &str) {
        let centre = self.hidden(centre, 0);
        for column in self.all_seen() {
            self.edge(centre, column);
        }
    }

    pub(super) fn symmetric(&mut self) {
        self.star("r");
        let columns: Vec<usize> = (1..=self.columns.len()).collect();
        self.tie(&columns);
    }

    pub(super) fn tucker(&mut self) {
        let core = self.all_hidden(&numbered("r", self.columns.len()));
        let columns = self.all_seen();
        self.clique(&core);
        self.pair_up(&core, &columns);
    }

    pub(super) fn mmsb(&mut self) {
        let source = self.seen(0);
        let k1 = self.hidden("k1", 0);
        let relation = self.seen(2);
        let k2 = self.hidden("k2", 0);
        let destination = self.seen(1);
        self.chain(&[source, k1, relation]);
        self.chain(&[destination, k2, relation]);
        if self.preset.is_tied {
            self.tie(&[k1, k2]);
        }
    }

    pub(super) fn scpf(&mut self) {
        let column = self.seen(1);
        let k = self.hidden("k", 0);
        let category = self.seen(2);
        let row = self.seen(0);
        self.chain(&[column, k]);
        self.pair_up(&[column, k], &[category, category]);
        self.pair_up(&[k, category], &[row, row]);
    }

    pub(super) fn hmm(&mut self) {
        let chain = self.all_hidden(&numbered("z", self.columns.len()));
        let columns = self.all_seen();
        self.chain(&chain);
        self.pair_up(&chain, &columns);
        if self.preset.is_tied {
            self.tie(&chain[1..]);
            self.tie(&columns);
        }
    }

    pub(super) fn tensor_train(&mut self) {
        let bonds = self.all_hidden(&numbered("r", self.columns.len() - 1));
        let columns = self.all_seen();
        self.chain(&bonds);
        for (at, &column) in columns.iter().enumerate() {
            if at > 0 {
                self.edge(bonds[at - 1], column);
            }
            if at < bonds.len() {
                self.edge(bonds[at], column);
            }
        }
    }

    pub(super) fn complete(&mut self) {
        let columns = self.all_seen();
        self.clique(&columns);
    }
}
