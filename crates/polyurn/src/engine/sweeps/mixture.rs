//! Records with one unseen node: its values are weighed side by side.
//!
//! Loops come in sizes known to the compiler, in groups of eight values, so that what is the same throughout a run stays in
//! registers. A size in between looks at a few cells of its neighbour: they are weighed by zero, so nothing changes, and
//! the arrays have room for it at their end.

use crate::math::special;
use crate::simd::{Eight, EightJob};
use std::ops::Range;

/// Records whose logarithms are taken together, at least.
const LOGS_AT_ONCE: usize = 256;

/// Below this a normaliser has lost digits to underflow, and logarithms are added up instead.
const TOO_SMALL: f64 = 1e-270;

/// Values that are handled together.
const LANES: usize = 8;

/// Room that weights and sums need behind their last cell.
pub const ROOM: usize = LANES;

/// Stands for any number of families, not known to the compiler.
const ANY: usize = usize::MAX;

/// Buffers of one thread.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Ones for values, zeros for what is looked at beyond them.
    is_value: Vec<f64>,
    base: Vec<f64>,
    sums: Vec<f64>,
    product: Vec<f64>,
    /// Normalisers of records until their logarithms are taken, and the smallest of a run.
    normalisers: Vec<f64>,
    smallest: f64,
}

/// A chunk of records, gone through once.
#[derive(Debug)]
pub struct Mixture<'a> {
    /// Values of the unseen node.
    pub n_states: usize,
    pub n_families: usize,
    /// Number of the first record, and for each run of records with the same cells of the lead the end.
    pub first_record: usize,
    pub run_ends: &'a [u32],
    pub run_families: &'a [usize],
    pub record_families: &'a [usize],
    /// For each record and family the first of its cells.
    pub starts: &'a [u32],
    pub counts: &'a [f64],
    /// With [`ROOM`] at the end.
    pub weights: &'a [f64],
    /// Their logarithms, where the weights themselves may underflow.
    pub ln_weights: Option<&'a [f64]>,
    /// The family that records are sorted by, and the cells of its table that are for this chunk alone, from `own_start`
    /// on; empty if its sums stand with the others or are not wanted.
    pub lead: usize,
    pub own_start: usize,
    pub own: &'a mut [f64],
    /// For each family where its sums stand, if its expected counts are wanted.
    pub shifts: &'a [Option<i32>],
    /// Expected counts are added to these. With [`ROOM`] at the end.
    pub out: &'a mut [f64],
    pub buffers: &'a mut Buffers,
    /// The sum over tokens of the logarithms of their weight, if it is wanted.
    pub ln_sum: Option<&'a mut f64>,
}

type Group = [f64; LANES];

/// N registers from neighbouring numbers.
#[inline(always)]
fn load<E: Eight, const N: usize>(values: &[f64]) -> [E; N] {
    let groups: &[Group; N] = values.as_chunks().0.first_chunk().expect("room at the end");
    std::array::from_fn(|ix| E::load(&groups[ix]))
}

/// Multiplies registers.
#[inline(always)]
fn multiply<E: Eight, const N: usize>(by: &mut [E; N], factors: &[E; N]) {
    *by = std::array::from_fn(|ix| by[ix].mul(factors[ix]));
}

/// Adds registers to neighbouring numbers.
#[inline(always)]
fn add_to<E: Eight, const N: usize>(values: &mut [f64], add: &[E; N]) {
    let groups: &mut [Group; N] = values.as_chunks_mut().0.first_chunk_mut().expect("room at the end");
    for ix in 0..N {
        E::load(&groups[ix]).add(add[ix]).store(&mut groups[ix]);
    }
}

/// Room for some more numbers at the end.
#[inline(always)]
fn more(list: &mut Vec<f64>, n: usize) -> &mut [f64] {
    let first = list.len();
    list.resize(first + n, 0.0);
    &mut list[first..]
}

/// A sum of products in a fixed order.
#[inline(always)]
fn dot<E: Eight, const N: usize>(x: &[E; N], y: &[E; N]) -> f64 {
    let mut sums = x[0].mul(y[0]);
    for ix in 1..N {
        sums = sums.add(x[ix].mul(y[ix]));
    }
    sums.sum()
}

/// The same for any length.
#[inline(always)]
fn long_dot(x: &[f64], y: &[f64]) -> f64 {
    let (x_groups, x_rest) = x.as_chunks::<LANES>();
    let (y_groups, y_rest) = y.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (x, y) in x_groups.iter().zip(y_groups) {
        for lane in 0..LANES {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    sums.sum() + rest
}

impl EightJob for Mixture<'_> {
    #[inline(always)]
    fn run<E: Eight>(mut self) {
        let n_padded = self.n_states + ROOM;
        let Buffers { is_value, base, sums, product, normalisers, .. } = &mut *self.buffers;
        for buffer in [&mut *is_value, base, sums, product] {
            buffer.clear();
            buffer.resize(n_padded, 0.0);
        }
        is_value[..self.n_states].fill(1.0);
        normalisers.clear();
        let n_records = self.counts.len();
        let (mut record, mut without_logs) = (0, 0);
        let (run_ends, first_record) = (self.run_ends, self.first_record);
        for end in run_ends.iter().map(|&end| end as usize - first_record) {
            match self.n_states.div_ceil(LANES) {
                1 => self.groups::<E, 1>(record..end),
                2 => self.groups::<E, 2>(record..end),
                3 => self.groups::<E, 3>(record..end),
                4 => self.groups::<E, 4>(record..end),
                5 => self.groups::<E, 5>(record..end),
                6 => self.groups::<E, 6>(record..end),
                7 => self.groups::<E, 7>(record..end),
                8 => self.groups::<E, 8>(record..end),
                _ => self.many_values(record..end),
            }
            if self.buffers.smallest < TOO_SMALL {
                self.handle_rare(record..end, record - without_logs);
            }
            record = end;
            if record - without_logs >= LOGS_AT_ONCE || record == n_records {
                self.take_logs(without_logs..record);
                without_logs = record;
            }
        }
    }
}

impl Mixture<'_> {
    #[inline(always)]
    fn groups<E: Eight, const N: usize>(&mut self, records: Range<usize>) {
        let wants = self.record_families.iter().any(|&family| self.shifts[family].is_some());
        match (self.record_families.len(), wants) {
            (1, false) => self.a_run::<E, N, 1, false>(records),
            (1, true) => self.a_run::<E, N, 1, true>(records),
            (2, false) => self.a_run::<E, N, 2, false>(records),
            (2, true) => self.a_run::<E, N, 2, true>(records),
            (_, false) => self.a_run::<E, N, ANY, false>(records),
            (_, true) => self.a_run::<E, N, ANY, true>(records),
        }
    }

    /// A run of records: N groups of values, and G families that change from record to record.
    #[inline(always)]
    fn a_run<E: Eight, const N: usize, const G: usize, const WANTS: bool>(&mut self, records: Range<usize>) {
        let (n_families, weights, out) = (self.n_families, self.weights, &mut *self.out);
        let families = if G == ANY { self.record_families } else { &self.record_families[..G] };
        let Buffers { is_value, normalisers, smallest: kept_smallest, .. } = &mut *self.buffers;
        let normalisers = more(normalisers, records.len());
        let mut smallest = f64::INFINITY;
        let starts = &self.starts[records.start * n_families..records.end * n_families];
        let mut base = load::<E, N>(is_value);
        for &family in self.run_families {
            multiply(&mut base, &load(&weights[starts[family] as usize..]));
        }
        let mut sums = [E::splat(0.0); N];
        let counts = &self.counts[records.clone()];
        for ((starts, &count), kept) in starts.chunks_exact(n_families).zip(counts).zip(normalisers) {
            let mut product = [E::splat(1.0); N];
            if let Some((&first, rest)) = families.split_first() {
                product = load(&weights[starts[first] as usize..]);
                for &family in rest {
                    multiply(&mut product, &load(&weights[starts[family] as usize..]));
                }
            }
            let normaliser = dot(&base, &product);
            *kept = normaliser;
            smallest = if normaliser < smallest { normaliser } else { smallest };
            let factor = E::splat(if normaliser < TOO_SMALL { 0.0 } else { count / normaliser });
            // Unless a record's own counts are wanted, the base is multiplied in when the run is over.
            let expected: [E; N] = std::array::from_fn(|ix| {
                if WANTS { factor.mul(base[ix].mul(product[ix])) } else { factor.mul(product[ix]) }
            });
            sums = std::array::from_fn(|ix| sums[ix].add(expected[ix]));
            if WANTS {
                for &family in families {
                    let Some(shift) = self.shifts[family] else { continue };
                    add_to(&mut out[starts[family].wrapping_add_signed(shift) as usize..], &expected);
                }
            }
        }
        if !WANTS {
            multiply(&mut sums, &base);
        }
        for &family in self.run_families {
            let Some(shift) = self.shifts[family] else { continue };
            add_to(&mut out[starts[family].wrapping_add_signed(shift) as usize..], &sums);
        }
        if !self.own.is_empty() {
            let mut stored = [[0.0; LANES]; N];
            sums.iter().zip(&mut stored).for_each(|(sums, stored)| sums.store(stored));
            let own = &mut self.own[starts[self.lead] as usize - self.own_start..][..self.n_states];
            own.iter_mut().zip(stored.as_flattened()).for_each(|(own, sum)| *own += sum);
        }
        *kept_smallest = smallest;
    }

    /// A run of records, any number of values.
    #[inline(always)]
    fn many_values(&mut self, records: Range<usize>) {
        let n = self.n_states;
        let starts = &self.starts[records.start * self.n_families..][..self.n_families];
        let Buffers { base, sums, .. } = &mut *self.buffers;
        base[..n].fill(1.0);
        for &family in self.run_families {
            let weights = &self.weights[starts[family] as usize..][..n];
            base.iter_mut().zip(weights).for_each(|(base, weight)| *base *= weight);
        }
        sums.fill(0.0);
        self.buffers.smallest = f64::INFINITY;
        for record in records.clone() {
            let product = &mut self.buffers.product[..n];
            product.fill(1.0);
            for &family in self.record_families {
                let at = self.starts[record * self.n_families + family] as usize;
                product.iter_mut().zip(&self.weights[at..][..n]).for_each(|(product, weight)| *product *= weight);
            }
            let normaliser = long_dot(&self.buffers.base[..n], product);
            self.buffers.normalisers.push(normaliser);
            self.buffers.smallest = self.buffers.smallest.min(normaliser);
            if normaliser < TOO_SMALL {
                continue;
            }
            let factor = self.counts[record] / normaliser;
            let Buffers { base, sums, product, .. } = &mut *self.buffers;
            for ((sum, product), base) in sums[..n].iter_mut().zip(&mut product[..n]).zip(&base[..n]) {
                *product *= factor * *base;
                *sum += *product;
            }
            self.add_product(record);
        }
        self.add_sums(records.start);
    }

    /// Adds a run's sums in the buffer to the families that are the same throughout.
    #[inline(always)]
    fn add_sums(&mut self, record: usize) {
        let starts = &self.starts[record * self.n_families..][..self.n_families];
        for &family in self.run_families {
            let Some(shift) = self.shifts[family] else { continue };
            let out = &mut self.out[starts[family].wrapping_add_signed(shift) as usize..][..self.n_states];
            out.iter_mut().zip(&self.buffers.sums).for_each(|(out, sum)| *out += sum);
        }
        if !self.own.is_empty() {
            let own = &mut self.own[starts[self.lead] as usize - self.own_start..][..self.n_states];
            own.iter_mut().zip(&self.buffers.sums).for_each(|(own, sum)| *own += sum);
        }
    }

    /// Goes through the records of a run again whose normalisers, kept from `first` on, are too small.
    #[cold]
    #[inline(never)]
    fn handle_rare(&mut self, records: Range<usize>, first: usize) {
        self.buffers.sums.fill(0.0);
        for (ix, record) in records.clone().enumerate() {
            if self.buffers.normalisers[first + ix] < TOO_SMALL {
                self.carefully(record);
            }
        }
        self.add_sums(records.start);
    }

    /// Adds the expected counts in the buffer to the families that change within a run.
    #[inline(always)]
    fn add_product(&mut self, record: usize) {
        let n = self.n_states;
        for &family in self.record_families {
            let Some(shift) = self.shifts[family] else { continue };
            let at = self.starts[record * self.n_families + family];
            let out = &mut self.out[at.wrapping_add_signed(shift) as usize..][..n];
            out.iter_mut().zip(&self.buffers.product[..n]).for_each(|(out, product)| *out += product);
        }
    }

    /// A record whose weights underflow: logarithms are added up. Impossible records add nothing.
    fn carefully(&mut self, record: usize) {
        let starts = &self.starts[record * self.n_families..][..self.n_families];
        for state in 0..self.n_states {
            let cells = starts.iter().map(|&start| start as usize + state);
            self.buffers.product[state] = match self.ln_weights {
                Some(logs) => cells.map(|cell| logs[cell]).sum(),
                None => cells.map(|cell| self.weights[cell].ln()).sum(),
            };
        }
        let product = &mut self.buffers.product[..self.n_states];
        let largest = product.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let ln = if largest == f64::NEG_INFINITY {
            product.fill(0.0);
            f64::NEG_INFINITY
        } else {
            product.iter_mut().for_each(|product| *product = (*product - largest).exp());
            let total: f64 = product.iter().sum();
            let factor = self.counts[record] / total;
            product.iter_mut().for_each(|product| *product *= factor);
            largest + total.ln()
        };
        self.buffers.sums.iter_mut().zip(&*product).for_each(|(sum, product)| *sum += product);
        self.add_product(record);
        if let Some(sum) = self.ln_sum.as_mut() {
            **sum += self.counts[record] * ln;
        }
    }

    /// Adds the logarithms of the normalisers of these records up, but for those that were handled carefully.
    #[inline(always)]
    fn take_logs(&mut self, records: Range<usize>) {
        if let Some(ln_sum) = self.ln_sum.as_mut() {
            let logs = &mut self.buffers.normalisers;
            logs.iter_mut().for_each(|log| *log = special::ln(if *log >= TOO_SMALL { *log } else { 1.0 }));
            **ln_sum += long_dot(logs, &self.counts[records]);
        }
        self.buffers.normalisers.clear();
    }
}
