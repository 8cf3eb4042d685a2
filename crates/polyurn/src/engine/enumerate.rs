//! Listing every allocation tensor that fits the data, each once, with ln pi(S) and d_EP.
//!
//! Tensors are built record by record and cell by cell, since ln pi(S) holds one factorial per cell of the full tensor
//! and is no function of the tables alone (theory.md eq. 5).

use super::Problem;
use super::assignments::{for_each_assignment, unseen};
use super::exact::Exact;
use crate::control::Control;
use crate::counts::MISSING;
use crate::error::{Error, Result};
use crate::graph::NodeIndex;
use crate::math::{Double, LnProduct, TINY, ln_factorial};
use crate::prior::{GammaTotal, PseudoCount};
use hashbrown::{HashMap, HashSet};

/// One allocation tensor.
#[derive(Debug, Clone, Copy)]
pub struct Tensor<'t> {
    /// ln pi(S): the probability of this tensor, total included.
    pub ln_pi: f64,
    /// Effective number of parameters.
    pub d_ep: i64,
    /// Occupied cells: number of the cell (an index into [`Enumeration::cells`]) and tokens in it.
    pub occupied: &'t [(u32, u64)],
}

/// A prepared enumeration.
#[derive(Debug)]
pub struct Enumeration<'p, 'a> {
    problem: &'p Problem<'a>,
    total: GammaTotal,
    /// Full assignments that occur, one value per node.
    pub cells: Vec<Vec<u32>>,
    records: Vec<Record>,
    overlapping: bool,
    /// Tensors to be listed, counted with multiplicity where records overlap.
    pub n_tensors: f64,
}

#[derive(Debug)]
struct Record {
    count: u64,
    cells: Vec<u32>,
}

impl<'p, 'a> Enumeration<'p, 'a> {
    /// Finds the cells each record can fill and counts the tensors.
    ///
    /// # Errors
    /// Unknown cells; one token with more places than can be listed.
    pub fn new(problem: &'p Problem<'a>, total: GammaTotal) -> Result<Self> {
        problem.check_whole("enumerate")?;
        if !problem.counts.unknown.is_empty() {
            return Err(Error::Setting(
                "with unknown cells (`?`) there are infinitely many tensors; give their counts or take them out".into(),
            ));
        }
        let mut enumeration =
            Enumeration { problem, total, cells: Vec::new(), records: Vec::new(), overlapping: false, n_tensors: 1.0 };
        enumeration.list_records()?;
        Ok(enumeration)
    }

    fn list_records(&mut self) -> Result<()> {
        let model = self.problem.model;
        let all: Vec<NodeIndex> = model.node_indices().collect();
        let mut cell_of: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut record = vec![MISSING; model.n_nodes()];
        for block in &self.problem.counts.blocks {
            for record_ix in 0..block.n_records() {
                block.read(record_ix, &mut record);
                let unseen = unseen(&all, &record);
                let n_places: f64 = unseen.iter().map(|&node| f64::from(model.node(node).size)).product();
                if n_places > 1e6 {
                    return Err(Error::TooCostly(format!(
                        "enumerate: one token has {n_places:.3e} places; that is beyond listing"
                    )));
                }
                let mut cells = Vec::new();
                for_each_assignment(model, &unseen, &mut record, |full| {
                    if self.is_possible(full) {
                        let next = cell_of.len() as u32;
                        let cell = *cell_of.entry(full.to_vec()).or_insert(next);
                        if cell == next {
                            self.cells.push(full.to_vec());
                        } else {
                            self.overlapping = true;
                        }
                        cells.push(cell);
                    }
                });
                let count = block.counts.at(record_ix);
                self.n_tensors *= n_compositions(count, cells.len() as u64);
                self.records.push(Record { count, cells });
            }
        }
        Ok(())
    }

    fn is_possible(&self, full: &[u32]) -> bool {
        self.problem.model.node_indices().all(|node_ix| {
            let node = self.problem.model.node(node_ix);
            let parents: Vec<u32> = node.parents.iter().map(|parent| full[parent.ix()]).collect();
            !self.problem.prior.table(node.table).cell(&parents, full[node_ix.ix()]).is_zero()
        })
    }

    /// Refuses a list that would not fit into the memory limit.
    ///
    /// # Errors
    /// [`Error::TooCostly`] with the number of tensors.
    pub fn check_cost(&self, limits: &Exact) -> Result<()> {
        // What a listed tensor takes: a line of output, or an entry of the set that keeps tensors from repeating.
        let bytes_each = if self.overlapping { 16.0 + 12.0 * self.cells.len() as f64 } else { 32.0 };
        if self.n_tensors * bytes_each > limits.max_memory as f64 {
            return Err(Error::TooCostly(format!(
                "enumerate: {:.4e} tensors would take {:.1e} bytes, beyond the limit of {:.1e}; raise --max-memory, or use \
                 score for the evidence alone",
                self.n_tensors,
                self.n_tensors * bytes_each,
                limits.max_memory as f64
            )));
        }
        Ok(())
    }

    /// Calls `emit` for every tensor, each once.
    ///
    /// # Errors
    /// As [`Enumeration::check_cost`]; [`Error::Stopped`]; whatever `emit` returns.
    pub fn run(
        &self,
        limits: &Exact,
        control: &mut Control<'_>,
        emit: &mut dyn FnMut(Tensor<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check_cost(limits)?;
        let n_tokens: u64 = self.records.iter().map(|record| record.count).sum();
        // Kept with 32 digits: factorials of large counts cancel.
        let start = self.total.ln_p_total(n_tokens) + ln_factorial(n_tokens);
        let mut walk = Walk::new(self, control, emit);
        walk.record(0, start)
    }
}

/// C(n + k - 1, k - 1), and 0 for n > 0 tokens without a place.
fn n_compositions(n: u64, k: u64) -> f64 {
    match k {
        0 => f64::from(n == 0),
        _ => (1..k).map(|j| (n as f64 + j as f64) / j as f64).product(),
    }
}

/// A family counter: pseudo-count and tokens.
#[derive(Debug, Clone, Copy)]
struct Tally {
    pseudo: PseudoCount,
    n: u64,
}

impl Tally {
    /// Pseudo-count plus tokens, as a factor and a log that goes with it (zero unless the factor would underflow).
    fn weight(self) -> (f64, f64) {
        if self.n == 0 && self.pseudo.value < TINY {
            (1.0, self.pseudo.ln())
        } else {
            (self.pseudo.value + self.n as f64, 0.0)
        }
    }
}

/// Depth-first walk over compositions of every record.
struct Walk<'w, 'p, 'a, 'c> {
    enumeration: &'w Enumeration<'p, 'a>,
    /// For each full cell its (cell, row) tallies, family by family.
    families: Vec<Vec<(usize, usize)>>,
    tallies: Vec<Tally>,
    in_cell: Vec<u64>,
    d_ep: i64,
    listed: HashSet<Vec<u64>>,
    occupied: Vec<(u32, u64)>,
    n_done: u64,
    control: &'w mut Control<'c>,
    emit: &'w mut dyn FnMut(Tensor<'_>) -> Result<()>,
}

impl<'w, 'p, 'a, 'c> Walk<'w, 'p, 'a, 'c> {
    fn new(
        enumeration: &'w Enumeration<'p, 'a>,
        control: &'w mut Control<'c>,
        emit: &'w mut dyn FnMut(Tensor<'_>) -> Result<()>,
    ) -> Self {
        let problem = enumeration.problem;
        let mut tallies = Vec::new();
        let mut tally_of: HashMap<(u32, Vec<u32>, bool), usize> = HashMap::new();
        let families = enumeration
            .cells
            .iter()
            .map(|full| {
                let family = |node_ix: NodeIndex| {
                    let node = problem.model.node(node_ix);
                    let mut values: Vec<u32> = node.parents.iter().map(|parent| full[parent.ix()]).collect();
                    let table = problem.prior.table(node.table);
                    let mut tally = |values: &[u32], is_cell: bool, pseudo: PseudoCount| {
                        *tally_of.entry((node.table.0, values.to_vec(), is_cell)).or_insert_with(|| {
                            tallies.push(Tally { pseudo, n: 0 });
                            tallies.len() - 1
                        })
                    };
                    let row = tally(&values, false, table.row(&values));
                    let pseudo = table.cell(&values, full[node_ix.ix()]);
                    values.push(full[node_ix.ix()]);
                    (tally(&values, true, pseudo), row)
                };
                problem.model.node_indices().map(family).collect()
            })
            .collect();
        Walk {
            enumeration,
            families,
            tallies,
            in_cell: vec![0; enumeration.cells.len()],
            d_ep: 0,
            listed: HashSet::new(),
            occupied: Vec::new(),
            n_done: 0,
            control,
            emit,
        }
    }

    fn record(&mut self, record_ix: usize, ln_pi: Double) -> Result<()> {
        match self.enumeration.records.get(record_ix) {
            None => self.leaf(ln_pi),
            Some(record) => self.spread(record_ix, 0, record.count, ln_pi),
        }
    }

    /// Puts 0, 1, .. of the remaining tokens into the record's cell number `at`, and the rest into later cells.
    fn spread(&mut self, record_ix: usize, at: usize, n_left: u64, ln_pi: Double) -> Result<()> {
        let cells = &self.enumeration.records[record_ix].cells;
        let Some(&cell) = cells.get(at) else {
            return if n_left == 0 { self.record(record_ix + 1, ln_pi) } else { Ok(()) };
        };
        if at + 1 == cells.len() {
            // The last cell takes all that is left, however much it is.
            let ln_all = ln_pi + self.add_tokens(cell, n_left);
            self.record(record_ix + 1, ln_all)?;
            self.remove_tokens(cell, n_left);
            return Ok(());
        }
        let mut ln_here = ln_pi;
        for n_here in 0..=n_left {
            self.spread(record_ix, at + 1, n_left - n_here, ln_here)?;
            if n_here < n_left {
                ln_here = ln_here + Double::from(self.add_token(cell));
            }
        }
        self.remove_tokens(cell, n_left);
        Ok(())
    }

    /// Adds several tokens to a full cell; returns the change of ln pi.
    fn add_tokens(&mut self, cell: u32, n: u64) -> Double {
        if n <= 16 {
            return (0..n).fold(Double::ZERO, |sum, _| sum + Double::from(self.add_token(cell)));
        }
        let mut product = LnProduct::new();
        for &(family_cell, family_row) in &self.families[cell as usize] {
            let (c, r) = (self.tallies[family_cell], self.tallies[family_row]);
            product.multiply_rising(c.pseudo.value + c.n as f64, c.pseudo.ln_if_tiny, n);
            product.divide_rising(r.pseudo.value + r.n as f64, r.pseudo.ln_if_tiny, n);
            self.d_ep += i64::from(c.n == 0) - i64::from(r.n == 0);
            self.tallies[family_cell].n += n;
            self.tallies[family_row].n += n;
        }
        product.divide_rising(self.in_cell[cell as usize] as f64 + 1.0, 0.0, n);
        self.in_cell[cell as usize] += n;
        product.ln()
    }

    /// Adds a token to a full cell; returns the change of ln pi.
    fn add_token(&mut self, cell: u32) -> f64 {
        let mut ratio = 1.0;
        let mut ln = 0.0;
        for &(family_cell, family_row) in &self.families[cell as usize] {
            let (c, r) = (self.tallies[family_cell], self.tallies[family_row]);
            let ((cell, ln_cell), (row, ln_row)) = (c.weight(), r.weight());
            ratio *= cell / row;
            ln += ln_cell - ln_row;
            if !(1e-250..1e250).contains(&ratio) {
                ln += ratio.ln();
                ratio = 1.0;
            }
            self.d_ep += i64::from(c.n == 0) - i64::from(r.n == 0);
            self.tallies[family_cell].n += 1;
            self.tallies[family_row].n += 1;
        }
        self.in_cell[cell as usize] += 1;
        ln + (ratio / self.in_cell[cell as usize] as f64).ln()
    }

    fn remove_tokens(&mut self, cell: u32, n: u64) {
        if n == 0 {
            return;
        }
        for &(family_cell, row) in &self.families[cell as usize] {
            self.tallies[family_cell].n -= n;
            self.tallies[row].n -= n;
            self.d_ep -= i64::from(self.tallies[family_cell].n == 0) - i64::from(self.tallies[row].n == 0);
        }
        self.in_cell[cell as usize] -= n;
    }

    fn leaf(&mut self, ln_pi: Double) -> Result<()> {
        self.n_done += 1;
        if self.n_done.is_multiple_of(4096) {
            self.control.tick("enumerate", self.n_done as f64 / self.enumeration.n_tensors)?;
        }
        if self.enumeration.overlapping && !self.listed.insert(self.in_cell.clone()) {
            return Ok(());
        }
        self.occupied.clear();
        self.occupied
            .extend(self.in_cell.iter().enumerate().filter(|&(_, &n)| n > 0).map(|(cell, &n)| (cell as u32, n)));
        (self.emit)(Tensor { ln_pi: ln_pi.value(), d_ep: self.d_ep, occupied: &self.occupied })
    }
}
