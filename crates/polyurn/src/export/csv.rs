//! Tables and factors as CSV, one line for each number.

use super::Export;
use crate::error::Result;
use crate::graph::NodeIndex;
use crate::io::push_csv_field;

impl Export<'_> {
    /// All listed cells of all tables: node, its parents and their values, its value, mean and spread. A table that nodes
    /// share stands under the first of them. Rows that are not listed are as in the prior.
    pub fn tables_csv(&self) -> String {
        let model = &self.fit.model;
        let most = model.nodes().iter().map(|node| node.parents.len()).max().unwrap_or(0);
        let mut header = vec!["node".to_owned()];
        header.extend((1..=most).flat_map(|ix| [format!("given{ix}"), format!("value{ix}")]));
        header.extend(["value", "mean", "sd"].map(str::to_owned));
        let mut text = line(&header);
        for table in self.tables {
            let member = model.tables()[table.table.ix()].members[0];
            let parents = &model.node(member).parents;
            for row in &table.rows {
                let mut start = vec![self.name(member).to_owned()];
                for ix in 0..most {
                    let pair =
                        parents.get(ix).map(|&parent| (self.name(parent), self.labels(parent).name(row.parents[ix])));
                    let (name, value) = pair.unwrap_or_default();
                    start.extend([name.to_owned(), value.into_owned()]);
                }
                for cell in &row.cells {
                    let mut fields = start.clone();
                    fields.push(self.labels(member).name(cell.child).into_owned());
                    fields.extend([cell.mean.to_string(), cell.sd.to_string()]);
                    text += &line(&fields);
                }
            }
        }
        text
    }

    /// Factor matrices and core: for each number the factor (`core`, or the name of a seen node), a column for each node
    /// (empty where the factor does not have it), and the number.
    ///
    /// # Errors
    /// As for [`Export::factors`].
    pub fn factors_csv(&self) -> Result<String> {
        let factors = self.factors()?;
        let mut nodes: Vec<NodeIndex> =
            factors.matrices.iter().flat_map(|matrix| matrix.nodes.iter().copied()).collect();
        nodes.extend(factors.core.iter().flat_map(|core| core.nodes.iter().copied()));
        nodes.sort_unstable();
        nodes.dedup();
        let names = nodes.iter().map(|&node| self.name(node).to_owned());
        let header: Vec<String> =
            std::iter::once("factor".to_owned()).chain(names).chain(["weight".to_owned()]).collect();
        let mut text = line(&header);
        let core = factors.core.iter().map(|core| ("core".to_owned(), core));
        let matrices = factors.matrices.iter().map(|matrix| {
            let node = matrix.nodes[matrix.nodes.len() - 1];
            (self.name(node).to_owned(), matrix)
        });
        for (name, marginal) in core.chain(matrices) {
            for (cell, number) in marginal.values.iter().enumerate() {
                let mut values = vec![String::new(); nodes.len()];
                let mut left = cell;
                for (&node, &size) in marginal.nodes.iter().zip(&marginal.sizes).rev() {
                    let at = nodes.binary_search(&node).unwrap_or(0);
                    values[at] = self.labels(node).name((left % size as usize) as u32).into_owned();
                    left /= size as usize;
                }
                let fields: Vec<String> =
                    std::iter::once(name.clone()).chain(values).chain([number.to_string()]).collect();
                text += &line(&fields);
            }
        }
        Ok(text)
    }
}

fn line(fields: &[String]) -> String {
    let mut text = String::new();
    for (ix, field) in fields.iter().enumerate() {
        if ix > 0 {
            text.push(',');
        }
        push_csv_field(&mut text, field);
    }
    text.push('\n');
    text
}
