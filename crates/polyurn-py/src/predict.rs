//! A fit applied to new records: their probability, and the posterior of what they do not show.

use crate::codes::CodeArray;
use crate::errors::OrException;
use crate::fit::{DrawRequest, Fit, draw_of};
use crate::run::Work;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1};
use polyurn::control::Cancel;
use polyurn::counts::MISSING;
use polyurn::graph::{NodeIndex, TableIndex, local_nodes};
use polyurn::predict::{NewRows, Predictor, Question, Workspace};
use polyurn::{Error, Result, Stop};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;

/// Rows at least that are worth a thread.
const CHUNK: usize = 256;

/// ln probability of each row, the same given the values of document-like nodes, the posterior of each wanted node (rows
/// by values), and for each group its rows below the grouped node: a table's name, cells of a group, and all cells.
type Predicted<'py> = (
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
    Vec<Bound<'py, PyArray2<f64>>>,
    Vec<(String, Bound<'py, PyArray2<f64>>)>,
);

/// Applies a fit to rows. `columns` are names of nodes and values of the fit; `groups` are a document-like node, a number for
/// each row that says which new value it belongs to (-1 for none), how many there are, and the weight of each row in learning about it.
#[pyfunction]
#[pyo3(signature = (fit, columns, groups, wanted, draw, n_rows, threads))]
#[allow(clippy::too_many_arguments, reason = "the private half of a function with keywords")]
pub fn predict<'py>(
    py: Python<'py>,
    fit: PyRef<'py, Fit>,
    columns: Vec<(String, Bound<'py, PyAny>)>,
    groups: Option<(String, Bound<'py, PyAny>, usize, PyReadonlyArray1<'py, f64>)>,
    wanted: Vec<String>,
    draw: Option<DrawRequest>,
    n_rows: usize,
    threads: usize,
) -> PyResult<Predicted<'py>> {
    let predictor = Predictor::new(fit.file(), draw_of(draw.as_ref()).or_exception()?).or_exception()?;
    let records = fit.records(&columns, n_rows)?;
    let wanted = wanted.iter().map(|name| fit.find(name)).collect::<Result<Vec<_>>>().or_exception()?;
    let groups = groups.map(|groups| fit.groups(&predictor, groups, n_rows)).transpose()?;
    let width = fit.file().model.n_nodes();
    let rows = Rows { predictor: &predictor, records, width, n_rows, groups, wanted };
    let (answers, interrupted) = Work::default().run(py, |_, cancel| rows.answer(threads, &cancel))?;
    if interrupted {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    let posteriors = answers.posteriors.into_iter().map(|(size, cells)| {
        let n = cells.len().checked_div(size).unwrap_or(0);
        PyArray1::from_vec(py, cells).reshape([n, size])
    });
    let new_rows = answers.new_rows.into_iter().map(|(name, width, cells)| {
        let n = cells.len().checked_div(width).unwrap_or(0);
        Ok((name, PyArray1::from_vec(py, cells).reshape([n, width])?))
    });
    Ok((
        PyArray1::from_vec(py, answers.ln_p),
        PyArray1::from_vec(py, answers.ln_given),
        posteriors.collect::<PyResult<_>>()?,
        new_rows.collect::<PyResult<_>>()?,
    ))
}

impl Fit {
    /// A value of every node for each row, one row after another.
    fn records(&self, columns: &[(String, Bound<'_, PyAny>)], n_rows: usize) -> PyResult<Vec<u32>> {
        let model = &self.file().model;
        let mut records = vec![MISSING; model.n_nodes() * n_rows];
        for (name, codes) in columns {
            let node = self.find(name).or_exception()?;
            let array = CodeArray::new(codes)?;
            let codes = array.codes();
            if codes.len() != n_rows {
                return Err(PyValueError::new_err("columns differ in length"));
            }
            let size = model.node(node).size;
            for (row, record) in records.chunks_exact_mut(model.n_nodes()).enumerate() {
                record[node.ix()] = match codes.at(row) {
                    // The size itself stands for a new value of a document-like node.
                    Some(code) if code <= size || code == MISSING => code,
                    _ => return Err(PyValueError::new_err(format!("{name}: a code is out of range"))),
                };
            }
        }
        Ok(records)
    }

    fn groups(
        &self,
        predictor: &Predictor<'_>,
        (name, codes, n_groups, weights): (String, Bound<'_, PyAny>, usize, PyReadonlyArray1<'_, f64>),
        n_rows: usize,
    ) -> PyResult<Groups> {
        let node = self.find(&name).or_exception()?;
        let Some(root) = predictor.open_roots().iter().position(|&open| open == node) else {
            let message = format!("{name}: the fit has no rows for a value that it does not know");
            return Err(PyValueError::new_err(message));
        };
        let array = CodeArray::new(&codes)?;
        let codes = array.codes();
        let weights = weights.as_slice()?;
        if codes.len() != n_rows || weights.len() != n_rows {
            return Err(PyValueError::new_err("groups and rows differ in length"));
        }
        let is_one = |group: &u32| (*group as usize) < n_groups || *group == MISSING;
        let of_row = (0..n_rows).map(|row| codes.at(row).filter(is_one));
        let of_row: Option<Vec<u32>> = of_row.collect();
        let of_row = of_row.ok_or_else(|| PyValueError::new_err("a group is out of range"))?;
        Ok(Groups { root, of_row, weights: weights.to_vec(), n_groups })
    }
}

/// Rows that belong to new values of a document-like node.
struct Groups {
    root: usize,
    /// [`MISSING`] for a row that belongs to none.
    of_row: Vec<u32>,
    weights: Vec<f64>,
    n_groups: usize,
}

/// What is asked.
struct Rows<'a> {
    predictor: &'a Predictor<'a>,
    /// Values of all nodes, row by row.
    records: Vec<u32>,
    width: usize,
    n_rows: usize,
    groups: Option<Groups>,
    wanted: Vec<NodeIndex>,
}

/// What is asked of rows that show the same nodes.
struct Asked {
    whole: Question,
    /// The same without wishes, for what rows tell about a new value: a row that shows nothing else tells nothing.
    plain: Option<Question>,
}

/// What is answered.
struct Answers {
    ln_p: Vec<f64>,
    ln_given: Vec<f64>,
    posteriors: Vec<(usize, Vec<f64>)>,
    new_rows: Vec<(String, usize, Vec<f64>)>,
}

impl Rows<'_> {
    fn record(&self, row: usize) -> &[u32] {
        &self.records[row * self.width..][..self.width]
    }

    /// # Errors
    /// Questions that the fit cannot answer, and an interrupt: a part of the rows is no answer.
    fn answer(&self, threads: usize, cancel: &Cancel) -> Result<Answers> {
        let (questions, question_of) = self.questions()?;
        let new = self.new_rows(&questions, &question_of, threads, cancel);
        let fit = self.predictor.fit();
        let given = local_nodes(&fit.model, &fit.is_seen);
        let sizes: Vec<usize> = self.wanted.iter().map(|&node| fit.model.node(node).size as usize).collect();
        let n_rows = self.n_rows;
        let size = n_rows.div_ceil(4 * threads.max(1)).max(CHUNK);
        let starts: Vec<usize> = (0..n_rows).step_by(size).collect();
        let parts = polyurn::parallel::map(&starts, threads, |&start| {
            let mut work = Workspace::default();
            let mut part = (Vec::new(), Vec::new(), vec![Vec::new(); self.wanted.len()]);
            for row in (start..(start + size).min(n_rows)).take_while(|_| !cancel.is_over()) {
                let record = self.record(row);
                let question = &questions[question_of[row]].whole;
                let ln = self.predictor.answer(question, record, &self.new_of(row, &new), &mut work);
                let is_shown = |node: &&NodeIndex| record[node.ix()] != MISSING;
                let roots = given.iter().filter(is_shown).map(|&node| self.predictor.ln_root(node, record[node.ix()]));
                part.0.push(ln);
                part.1.push(ln - roots.sum::<f64>());
                for ((cells, &node), &size) in part.2.iter_mut().zip(&self.wanted).zip(&sizes) {
                    match question.wanted().iter().position(|&other| other == node) {
                        Some(at) => cells.extend_from_slice(work.posterior(at)),
                        // What a row shows is known.
                        None => cells.extend((0..size).map(|v| f64::from(u8::from(record[node.ix()] as usize == v)))),
                    }
                }
            }
            part
        });
        if cancel.is_over() {
            return Err(Error::Stopped(Stop::Cancelled));
        }
        let mut answers = Answers {
            ln_p: Vec::with_capacity(n_rows),
            ln_given: Vec::with_capacity(n_rows),
            posteriors: sizes.iter().map(|&size| (size, Vec::with_capacity(size * n_rows))).collect(),
            new_rows: self.cells_of(&new),
        };
        for (ln_p, ln_given, posteriors) in parts {
            answers.ln_p.extend(ln_p);
            answers.ln_given.extend(ln_given);
            answers.posteriors.iter_mut().zip(posteriors).for_each(|((_, all), part)| all.extend(part));
        }
        Ok(answers)
    }

    /// Questions for each set of nodes that rows show, and which of them are each row's.
    fn questions(&self) -> Result<(Vec<Asked>, Vec<usize>)> {
        let mut known: HashMap<Vec<NodeIndex>, usize> = HashMap::new();
        let mut questions = Vec::new();
        let mut question_of = Vec::with_capacity(self.n_rows);
        for record in (0..self.n_rows).map(|row| self.record(row)) {
            let shown = (0..).zip(record).filter(|(_, value)| **value != MISSING);
            let seen: Vec<NodeIndex> = shown.map(|(node, _)| NodeIndex(node)).collect();
            let ix = match known.get(&seen) {
                Some(&ix) => ix,
                None => {
                    let mut wanted: Vec<NodeIndex> =
                        self.wanted.iter().copied().filter(|node| !seen.contains(node)).collect();
                    wanted.sort_unstable();
                    let plain = self.groups.as_ref().map(|_| self.predictor.question(&seen, &[])).transpose()?;
                    questions.push(Asked { whole: self.predictor.question(&seen, &wanted)?, plain });
                    known.insert(seen, questions.len() - 1);
                    questions.len() - 1
                }
            };
            question_of.push(ix);
        }
        Ok((questions, question_of))
    }

    /// The rows of each group, from its records and their weights.
    fn new_rows(&self, questions: &[Asked], question_of: &[usize], threads: usize, cancel: &Cancel) -> Vec<NewRows> {
        let Some(groups) = &self.groups else { return Vec::new() };
        let mut members: Vec<Vec<(&Question, &[u32], f64)>> = vec![Vec::new(); groups.n_groups];
        for (row, (&group, &weight)) in groups.of_row.iter().zip(&groups.weights).enumerate() {
            if weight > 0.0 && group != MISSING {
                let plain = questions[question_of[row]].plain.as_ref().expect("asked where there are groups");
                members[group as usize].push((plain, self.record(row), weight));
            }
        }
        let root = self.predictor.open_roots()[groups.root];
        polyurn::parallel::map(&members, threads, |records| {
            // Once it is interrupted nobody wants the rest.
            self.predictor.new_rows(root, if cancel.is_over() { &[] } else { records })
        })
    }

    fn new_of<'n>(&self, row: usize, new: &'n [NewRows]) -> Vec<Option<&'n NewRows>> {
        let groups = self.groups.as_ref().filter(|groups| groups.of_row[row] != MISSING);
        let own = groups.map(|groups| (groups.root, &new[groups.of_row[row] as usize]));
        let of_root = |root: usize| own.filter(|(at, _)| *at == root).map(|(_, rows)| rows);
        (0..self.predictor.open_roots().len()).map(of_root).collect()
    }

    /// Cells of all groups in each table that has rows of their own.
    fn cells_of(&self, new: &[NewRows]) -> Vec<(String, usize, Vec<f64>)> {
        let model = &self.predictor.fit().model;
        let tables = (0..model.tables().len() as u32).map(TableIndex);
        tables
            .filter_map(|table| {
                let width = new.first()?.cells(table)?.len();
                let cells = new.iter().flat_map(|rows| rows.cells(table).unwrap_or_default().iter().copied()).collect();
                Some((model.table_name(table).to_owned(), width, cells))
            })
            .collect()
    }
}
