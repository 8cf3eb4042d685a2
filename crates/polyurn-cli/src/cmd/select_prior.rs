//! Prior weights of models, from a file.

use crate::output::Failure;
use polyurn::counts::{Dataset, Labels};
use polyurn::io::{ReadOptions, read};
use polyurn::select::{Candidate, Field};
use std::path::Path;

/// The column of the weights.
const WEIGHT: &str = "weight";
/// The column of models as text.
const MODEL: &str = "model";

/// A weight for each candidate, in no unit: all the same without a file.
pub fn weights(file: Option<&Path>, field: &Field) -> Result<Vec<f64>, Failure> {
    let candidates = field.candidates();
    match file {
        None => Ok(vec![1.0; candidates.len()]),
        Some(file) => {
            let table = read(file, &ReadOptions::default())?;
            let weights = Weights::new(file, &table, field)?;
            let found: Vec<(usize, f64)> =
                candidates.iter().map(|candidate| weights.of(candidate)).collect::<Result<_, _>>()?;
            weights.check_rest(&found)?;
            Ok(found.into_iter().map(|(_, weight)| weight).collect())
        }
    }
}

struct Weights<'a> {
    file: &'a Path,
    table: &'a Dataset,
    weight: usize,
    /// For each row what its model is called, where it is given by another text.
    names: Vec<Option<String>>,
}

impl<'a> Weights<'a> {
    fn new(file: &'a Path, table: &'a Dataset, field: &Field) -> Result<Self, Failure> {
        let candidates = field.candidates();
        let weight = table.columns.iter().position(|column| column.name.as_deref() == Some(WEIGHT)).ok_or_else(|| {
            Failure::Usage(format!(
                "{}: has no column `{WEIGHT}`; give one, beside a column for each node whose size varies, or a column `{MODEL}`",
                file.display()
            ))
        })?;
        let nodes: Vec<&str> = candidates.iter().flat_map(|one| &one.sizes).map(|(node, _)| node.as_str()).collect();
        let mut names = table.columns.iter().map(|column| column.name.as_deref().unwrap_or_default());
        if let Some(name) = names.find(|name| *name != WEIGHT && *name != MODEL && !nodes.contains(name)) {
            return Err(Failure::Usage(format!(
                "{}: column `{name}` is neither `{WEIGHT}` nor `{MODEL}` nor a node whose size varies; leave it out",
                file.display()
            )));
        }
        if table.columns.len() == 1 {
            let mut columns = vec![MODEL];
            nodes.iter().for_each(|node| {
                if !columns.contains(node) {
                    columns.push(node);
                }
            });
            let columns: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
            return Err(Failure::Usage(format!(
                "{}: has only the column `{WEIGHT}`, which does not say whose weights they are; add a column {}",
                file.display(),
                columns.join(" or ")
            )));
        }
        let mut weights = Weights { file, table, weight, names: vec![None; table.n_rows()] };
        if let Some(model) = table.columns.iter().position(|column| column.name.as_deref() == Some(MODEL)) {
            let name = |row| weights.cell(model, row).and_then(|text| field.name_of(&text));
            weights.names = (0..table.n_rows()).map(name).collect();
        }
        Ok(weights)
    }

    /// Refuses rows that speak of no model, and weights that are all zero.
    fn check_rest(&self, found: &[(usize, f64)]) -> Result<(), Failure> {
        let wrong = |why: String| Err(Failure::Usage(format!("{}: {why}", self.file.display())));
        if let Some(row) = (0..self.table.n_rows()).find(|row| found.iter().all(|(used, _)| used != row)) {
            let cells = (0..self.table.columns.len()).filter(|&column| column != self.weight);
            let cells: Vec<String> = cells.map(|column| self.cell(column, row).unwrap_or_default()).collect();
            return wrong(format!("the row `{}` speaks of no model that is ranked; leave it out", cells.join(",")));
        }
        if found.iter().all(|(_, weight)| *weight == 0.0) {
            return wrong("all weights are zero; give some model a weight".into());
        }
        Ok(())
    }

    fn cell(&self, column: usize, row: usize) -> Option<String> {
        let value = self.table.values[column].at(row);
        let labels: &Labels = &self.table.columns[column].labels;
        (value < labels.len()).then(|| labels.name(value).into_owned())
    }

    /// The one row that speaks of this candidate, and the weight in it.
    fn of(&self, candidate: &Candidate) -> Result<(usize, f64), Failure> {
        let wrong = |why: String| Failure::Usage(format!("{}: {why}", self.file.display()));
        let speaks_of = |row: &usize| {
            (0..self.table.columns.len()).filter(|&column| column != self.weight).all(|column| {
                let name = self.table.columns[column].name.as_deref().unwrap_or_default();
                let cell = self.cell(column, *row).unwrap_or_default();
                if name == MODEL {
                    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
                    let is_called_so = self.names[*row].as_ref() == Some(&candidate.model);
                    return is_called_so || spaced(&cell) == spaced(&candidate.model);
                }
                candidate.sizes.iter().any(|(node, size)| node == name && cell == size.to_string())
            })
        };
        let rows: Vec<usize> = (0..self.table.n_rows()).filter(speaks_of).collect();
        let [row] = rows[..] else {
            let n = if rows.is_empty() { "no row" } else { "several rows" };
            return Err(wrong(format!(
                "{n} for the model `{}`; give each model one row, weight 0 for none",
                candidate.model
            )));
        };
        let text = self.cell(self.weight, row).unwrap_or_default();
        match text.parse::<f64>() {
            Ok(weight) if weight >= 0.0 && weight.is_finite() => Ok((row, weight)),
            _ => Err(wrong(format!(
                "`{text}` is not a weight for the model `{}`; give a number from 0 on",
                candidate.model
            ))),
        }
    }
}
