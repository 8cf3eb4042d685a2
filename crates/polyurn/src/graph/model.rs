//! The checked, frozen model: a DAG of named discrete nodes, each with one conditional table, some tables tied.

use super::spec::ModelSpec;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A node of a [`Model`], by its position in node order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeIndex(pub u32);

/// A table of a [`Model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableIndex(pub u32);

impl NodeIndex {
    /// As an index of a slice.
    pub fn ix(self) -> usize {
        self.0 as usize
    }
}

impl TableIndex {
    /// As an index of a slice.
    pub fn ix(self) -> usize {
        self.0 as usize
    }
}

/// A node: name, cardinality, parents in node order, and its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Number of values, at least 1.
    pub size: u32,
    /// Parents, in node order.
    pub parents: Vec<NodeIndex>,
    /// Children, in node order.
    pub children: Vec<NodeIndex>,
    /// The conditional table it draws from.
    pub table: TableIndex,
}

/// A conditional table and the nodes that use it (several when tied).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// The nodes that draw from it, in node order.
    pub members: Vec<NodeIndex>,
    /// Sizes of the parents, in the parents' order.
    pub parent_sizes: Vec<u32>,
    /// Number of values of the child.
    pub child_size: u32,
}

impl Table {
    /// Number of rows (parent configurations), as a float: it may exceed any integer type.
    pub fn n_rows(&self) -> f64 {
        self.parent_sizes.iter().map(|&size| f64::from(size)).product()
    }

    /// Natural log of the number of rows.
    pub fn ln_n_rows(&self) -> f64 {
        self.parent_sizes.iter().map(|&size| f64::from(size).ln()).sum()
    }

    /// Number of cells if it fits, for tables that are to be stored densely.
    pub fn n_cells(&self) -> Option<usize> {
        self.parent_sizes
            .iter()
            .chain([&self.child_size])
            .try_fold(1usize, |product, &size| product.checked_mul(size as usize))
    }
}

/// A checked DAG. It cannot hold a cycle, a node of size zero, or tied tables of different shapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    nodes: Vec<Node>,
    tables: Vec<Table>,
    order: Vec<NodeIndex>,
}

impl Model {
    /// Checks a spec with all sizes known and freezes it.
    ///
    /// # Errors
    /// A cycle (named), a size of zero, tied tables of different shapes.
    pub fn build(spec: &ModelSpec, sizes: &[u32]) -> Result<Self> {
        assert_eq!(spec.nodes.len(), sizes.len(), "one size for each node");
        let n_nodes = spec.nodes.len();
        if n_nodes == 0 {
            return Err(Error::model("the model has no node; name at least one"));
        }
        let mut nodes: Vec<Node> = spec
            .nodes
            .iter()
            .zip(sizes)
            .map(|(node, &size)| Node {
                name: node.name.clone(),
                size,
                parents: Vec::new(),
                children: Vec::new(),
                table: TableIndex(0),
            })
            .collect();
        for (ix, node) in nodes.iter().enumerate() {
            if node.size == 0 {
                return Err(
                    spec.error_at(ix, format!("node `{}` has no values; its size must be at least 1", node.name))
                );
            }
            if node.size == u32::MAX {
                return Err(spec.error_at(ix, format!("node `{}` has more than 4294967294 values", node.name)));
            }
        }
        for &(parent, child) in &spec.edges {
            nodes[child].parents.push(NodeIndex(parent as u32));
            nodes[parent].children.push(NodeIndex(child as u32));
        }
        for node in &mut nodes {
            node.parents.sort_unstable();
            node.parents.dedup();
            node.children.sort_unstable();
            node.children.dedup();
        }
        let order = topological_order(spec, &nodes)?;
        let tables = assign_tables(spec, &mut nodes)?;
        Ok(Model { nodes, tables, order })
    }

    /// The nodes, in the order in which they were named.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// One node.
    pub fn node(&self, node: NodeIndex) -> &Node {
        &self.nodes[node.ix()]
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Number of values of each node.
    pub fn sizes(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.size).collect()
    }

    /// The tables; a tied one stands at the position of its first member.
    pub fn tables(&self) -> &[Table] {
        &self.tables
    }

    /// The nodes with every parent before its children.
    pub fn topological_order(&self) -> &[NodeIndex] {
        &self.order
    }

    /// All node indices, in node order.
    pub fn node_indices(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.nodes.len() as u32).map(NodeIndex)
    }

    /// The node with this name.
    pub fn find(&self, name: &str) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.name == name).map(|ix| NodeIndex(ix as u32))
    }

    /// The name under which a table is shown: that of its first member.
    pub fn table_name(&self, table: TableIndex) -> &str {
        &self.node(self.tables[table.ix()].members[0]).name
    }

    /// True when some table is used by more than one node.
    pub fn has_ties(&self) -> bool {
        self.tables.iter().any(|table| table.members.len() > 1)
    }

    /// The model as text that parses back to it: edges, sizes and ties.
    pub fn to_text(&self) -> String {
        let mut parts: Vec<String> =
            self.nodes.iter().map(|node| format!("{}[{}]", quote(&node.name), node.size)).collect();
        for node in &self.nodes {
            if !node.parents.is_empty() {
                let parents: Vec<String> = node.parents.iter().map(|&p| quote(&self.node(p).name)).collect();
                parts.push(format!("{} -> {}", parents.join(" "), quote(&node.name)));
            }
        }
        for table in self.tables.iter().filter(|table| table.members.len() > 1) {
            let members: Vec<String> = table.members.iter().map(|&m| quote(&self.node(m).name)).collect();
            parts.push(members.join(" ~ "));
        }
        parts.join("; ")
    }
}

/// A name as it must stand in model text: in double quotes (doubled inside) unless it is a plain word.
pub(crate) fn quote(name: &str) -> String {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Kahn's algorithm, smallest index first, so that the order is a function of the model alone.
fn topological_order(spec: &ModelSpec, nodes: &[Node]) -> Result<Vec<NodeIndex>> {
    let mut n_open_parents: Vec<usize> = nodes.iter().map(|node| node.parents.len()).collect();
    let mut ready: std::collections::BTreeSet<u32> =
        (0..nodes.len() as u32).filter(|&ix| n_open_parents[ix as usize] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(ix) = ready.pop_first() {
        order.push(NodeIndex(ix));
        for child in &nodes[ix as usize].children {
            n_open_parents[child.ix()] -= 1;
            if n_open_parents[child.ix()] == 0 {
                ready.insert(child.0);
            }
        }
    }
    if order.len() == nodes.len() {
        return Ok(order);
    }
    let cycle = find_cycle(nodes, &n_open_parents);
    let mut names: Vec<&str> = cycle.iter().map(|&ix| nodes[ix].name.as_str()).collect();
    names.push(names[0]);
    Err(spec.error_at(cycle[0], format!("the arrows form a cycle: {}; turn or drop one of them", names.join(" -> "))))
}

/// Walks from parent to parent among the nodes Kahn's algorithm could not place until one repeats.
fn find_cycle(nodes: &[Node], n_open_parents: &[usize]) -> Vec<usize> {
    let start = n_open_parents.iter().position(|&n| n > 0).expect("a graph without order has an open node");
    let mut path = vec![start];
    loop {
        let here = *path.last().expect("the path starts with a node");
        let next = nodes[here]
            .parents
            .iter()
            .map(|parent| parent.ix())
            .find(|&parent| n_open_parents[parent] > 0)
            .expect("an open node has an open parent");
        if let Some(at) = path.iter().position(|&ix| ix == next) {
            let mut cycle = path.split_off(at);
            cycle.reverse();
            return cycle;
        }
        path.push(next);
    }
}

fn assign_tables(spec: &ModelSpec, nodes: &mut [Node]) -> Result<Vec<Table>> {
    let shape = |nodes: &[Node], ix: usize| -> (Vec<u32>, u32) {
        (nodes[ix].parents.iter().map(|parent| nodes[parent.ix()].size).collect(), nodes[ix].size)
    };
    let mut leader: Vec<usize> = (0..nodes.len()).collect();
    for group in &spec.tied {
        let first = *group.iter().min().expect("a tied group has members");
        for &member in group {
            leader[member] = first;
            let (first_shape, shape) = (shape(nodes, first), shape(nodes, member));
            if shape != first_shape {
                return Err(spec.error_at(
                    member,
                    format!(
                        "`{}` and `{}` are tied but their tables differ in shape: {} and {}; tied tables need the same \
                         sizes of node and parents",
                        nodes[first].name,
                        nodes[member].name,
                        show_shape(&first_shape),
                        show_shape(&shape)
                    ),
                ));
            }
        }
    }
    let mut tables: Vec<Table> = Vec::new();
    let mut table_of = vec![TableIndex(0); nodes.len()];
    for ix in 0..nodes.len() {
        if leader[ix] == ix {
            table_of[ix] = TableIndex(tables.len() as u32);
            let (parent_sizes, child_size) = shape(nodes, ix);
            tables.push(Table { members: vec![NodeIndex(ix as u32)], parent_sizes, child_size });
        } else {
            table_of[ix] = table_of[leader[ix]];
            tables[table_of[ix].ix()].members.push(NodeIndex(ix as u32));
        }
        nodes[ix].table = table_of[ix];
    }
    Ok(tables)
}

fn show_shape((parents, child): &(Vec<u32>, u32)) -> String {
    if parents.is_empty() {
        return format!("{child} values without parents");
    }
    let rows: Vec<String> = parents.iter().map(u32::to_string).collect();
    format!("{} rows of {child} values", rows.join(" x "))
}
