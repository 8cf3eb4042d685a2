//! Records with one unseen node: its values are weighed side by side.
//!
//! Loops come in sizes known to the compiler, in groups of eight values, so that what is the same throughout a run stays in
//! registers. A size in between looks at a few cells of its neighbour: they are weighed by zero, so nothing changes, and
//! the arrays have room for it at their end.

use super::arrangement::{Arrangement, Chunk};
use crate::math::special;
use crate::simd::{Eight, EightJob, fetch_ahead};
use std::ops::Range;

/// Records that are handled together, at least: whole runs, unless they are longer than [`PART_OF_RUN`].
const RECORDS_AT_ONCE: usize = 256;

/// Records of a run that are handled together at most.
const PART_OF_RUN: usize = 1 << 12;

/// Below this a normaliser has lost digits to underflow, and logarithms are added up instead.
const TOO_SMALL: f64 = 1e-270;

/// Values that are handled together.
const LANES: usize = 8;

/// Records between the one in work and the one whose cells are asked for.
const AHEAD: usize = 6;

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
    /// The number of the first of the records at hand, their tokens and normalisers, and the smallest of these in a run.
    first: usize,
    tokens: Vec<f64>,
    /// Where cells of these records start, and of a few after them, unless that can be read in place.
    starts: Vec<u32>,
    normalisers: Vec<f64>,
    smallest: f64,
}

/// A chunk of records, gone through once.
#[derive(Debug)]
pub struct Mixture<'a> {
    /// Values of the unseen node.
    pub n_states: usize,
    pub arrangement: &'a Arrangement,
    pub chunk: &'a Chunk,
    /// With [`ROOM`] at the end.
    pub weights: &'a [f64],
    /// Their logarithms, where the weights themselves may underflow.
    pub ln_weights: Option<&'a [f64]>,
    /// The cells of the lead's table that are for this chunk alone; empty if its sums stand with the others or are not wanted.
    pub own: &'a mut [f64],
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

/// Where the cells of records start that change within a run, from this record on: in place, or from what was read from the
/// record `first` on. There are a few more behind those at hand, if there are such records.
#[inline(always)]
fn starts_from<'s>(arrangement: &'s Arrangement, first: usize, read: &'s [u32], record: usize) -> &'s [u32] {
    let n = arrangement.record_families.len();
    match arrangement.record_starts.plain() {
        Some(starts) => &starts[record * n..],
        None => &read[(record - first) * n..],
    }
}

impl EightJob for Mixture<'_> {
    #[inline(always)]
    fn run<E: Eight>(mut self) {
        let n_padded = self.n_states + ROOM;
        let Buffers { is_value, base, sums, product, .. } = &mut *self.buffers;
        for buffer in [&mut *is_value, base, sums, product] {
            buffer.clear();
            buffer.resize(n_padded, 0.0);
        }
        is_value[..self.n_states].fill(1.0);
        let run_ends = &self.arrangement.run_ends[..self.chunk.runs.end];
        let mut run = self.chunk.runs.start;
        let mut first = self.chunk.records.start;
        while run < run_ends.len() {
            let is_inside = |&end: &u32| (end as usize) < first + RECORDS_AT_ONCE;
            let last_run = (run + run_ends[run..].partition_point(is_inside)).min(run_ends.len() - 1);
            let end = (run_ends[last_run] as usize).min(first + PART_OF_RUN);
            self.buffers.first = first;
            self.arrangement.tokens.read(first..end, &mut self.buffers.tokens);
            if self.arrangement.record_starts.plain().is_none() {
                self.arrangement.record_starts.read(first..end + AHEAD, &mut self.buffers.starts);
            }
            self.buffers.normalisers.clear();
            self.buffers.normalisers.resize(end - first, 0.0);
            for run in run..=last_run {
                let end = end.min(run_ends[run] as usize);
                self.a_run::<E>(run, first..end);
                first = end;
            }
            self.take_logs();
            // What is left of the last run comes next.
            run = if end < run_ends[last_run] as usize { last_run } else { last_run + 1 };
        }
    }
}

impl Mixture<'_> {
    #[inline(always)]
    fn a_run<E: Eight>(&mut self, run: usize, records: Range<usize>) {
        match self.n_states.div_ceil(LANES) {
            1 => self.groups::<E, 1>(run, records.clone()),
            2 => self.groups::<E, 2>(run, records.clone()),
            3 => self.groups::<E, 3>(run, records.clone()),
            4 => self.groups::<E, 4>(run, records.clone()),
            5 => self.groups::<E, 5>(run, records.clone()),
            6 => self.groups::<E, 6>(run, records.clone()),
            7 => self.groups::<E, 7>(run, records.clone()),
            8 => self.groups::<E, 8>(run, records.clone()),
            _ => self.many_values(run, records.clone()),
        }
        if self.buffers.smallest < TOO_SMALL {
            self.handle_rare(run, records);
        }
    }

    #[inline(always)]
    fn groups<E: Eight, const N: usize>(&mut self, run: usize, records: Range<usize>) {
        let families = &self.arrangement.record_families;
        let wants = families.iter().any(|&family| self.chunk.shifts[family].is_some());
        match (if E::HAS_COPIES { families.len() } else { ANY }, wants) {
            (1, false) => self.in_registers::<E, N, 1, false>(run, records),
            (1, true) => self.in_registers::<E, N, 1, true>(run, records),
            (2, false) => self.in_registers::<E, N, 2, false>(run, records),
            (2, true) => self.in_registers::<E, N, 2, true>(run, records),
            (_, false) => self.in_registers::<E, N, ANY, false>(run, records),
            (_, true) => self.in_registers::<E, N, ANY, true>(run, records),
        }
    }

    /// Where a run's cells start, for the families that are the same throughout.
    #[inline(always)]
    fn run_starts(&self, run: usize) -> &[u32] {
        let n = self.arrangement.run_families.len();
        &self.arrangement.run_starts[run * n..][..n]
    }

    /// Where a record's cells start, for the other families.
    #[inline(always)]
    fn record_starts(&self, record: usize) -> &[u32] {
        let n = self.arrangement.record_families.len();
        &starts_from(self.arrangement, self.buffers.first, &self.buffers.starts, record)[..n]
    }

    /// A run of records, or a part of one: N groups of values, and G families that change from record to record.
    #[inline(always)]
    fn in_registers<E: Eight, const N: usize, const G: usize, const WANTS: bool>(
        &mut self,
        run: usize,
        records: Range<usize>,
    ) {
        let Arrangement { run_families, record_families, .. } = self.arrangement;
        let (weights, shifts) = (self.weights, &self.chunk.shifts);
        let families = if G == ANY { &record_families[..] } else { &record_families[..G] };
        let mut base = load::<E, N>(&self.buffers.is_value);
        for &start in self.run_starts(run) {
            multiply(&mut base, &load(&weights[start as usize..]));
        }
        let mut sums = [E::splat(0.0); N];
        let mut smallest = f64::INFINITY;
        let at_hand = records.start - self.buffers.first..records.end - self.buffers.first;
        let tokens = &self.buffers.tokens[at_hand.clone()];
        let normalisers = &mut self.buffers.normalisers[at_hand];
        let starts = starts_from(self.arrangement, self.buffers.first, &self.buffers.starts, records.start);
        let mut ahead = starts.get(AHEAD * families.len()..).unwrap_or_default().chunks_exact(families.len().max(1));
        // Without such families there are no starts to go through: one empty list for each record.
        let mut starts = starts[..records.len() * families.len()].chunks_exact(families.len().max(1));
        for (&count, kept) in tokens.iter().zip(normalisers) {
            let starts = starts.next().unwrap_or_default();
            if self.arrangement.is_wide {
                let next = ahead.next().unwrap_or_default();
                for (&family, &start) in families.iter().zip(next) {
                    for ix in 0..N {
                        fetch_ahead(weights, start as usize + ix * LANES);
                    }
                    if WANTS && let Some(shift) = shifts[family] {
                        for ix in 0..N {
                            fetch_ahead(self.out, start.wrapping_add_signed(shift) as usize + ix * LANES);
                        }
                    }
                }
            }
            let mut product = [E::splat(1.0); N];
            if let Some((&first, rest)) = starts.split_first() {
                product = load(&weights[first as usize..]);
                for &start in rest {
                    multiply(&mut product, &load(&weights[start as usize..]));
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
                for (&family, &start) in families.iter().zip(starts) {
                    let Some(shift) = shifts[family] else { continue };
                    add_to(&mut self.out[start.wrapping_add_signed(shift) as usize..], &expected);
                }
            }
        }
        if !WANTS {
            multiply(&mut sums, &base);
        }
        self.buffers.smallest = smallest;
        let mut stored = [[0.0; LANES]; N];
        sums.iter().zip(&mut stored).for_each(|(sums, stored)| sums.store(stored));
        for (&family, &start) in run_families.iter().zip(&self.arrangement.run_starts[run * run_families.len()..]) {
            if let Some(shift) = shifts[family] {
                add_to(&mut self.out[start.wrapping_add_signed(shift) as usize..], &sums);
            } else if family == self.arrangement.lead && !self.own.is_empty() {
                let own = &mut self.own[start as usize - self.chunk.own.start..][..self.n_states];
                own.iter_mut().zip(stored.as_flattened()).for_each(|(own, sum)| *own += sum);
            }
        }
    }

    /// A run of records, any number of values.
    #[inline(always)]
    fn many_values(&mut self, run: usize, records: Range<usize>) {
        let n = self.n_states;
        self.buffers.base[..n].fill(1.0);
        for ix in 0..self.arrangement.run_families.len() {
            let weights = &self.weights[self.run_starts(run)[ix] as usize..][..n];
            self.buffers.base.iter_mut().zip(weights).for_each(|(base, weight)| *base *= weight);
        }
        self.buffers.sums.fill(0.0);
        self.buffers.smallest = f64::INFINITY;
        if let [family] = self.arrangement.record_families[..] {
            self.many_values_of_one(family, records);
            return self.add_sums(run);
        }
        for record in records {
            let at_hand = record - self.buffers.first;
            self.buffers.product[..n].fill(1.0);
            for ix in 0..self.arrangement.record_families.len() {
                let weights = &self.weights[self.record_starts(record)[ix] as usize..][..n];
                self.buffers.product.iter_mut().zip(weights).for_each(|(product, weight)| *product *= weight);
            }
            let Buffers { base, sums, product, tokens, normalisers, smallest, .. } = &mut *self.buffers;
            let normaliser = long_dot(&base[..n], &product[..n]);
            normalisers[at_hand] = normaliser;
            *smallest = smallest.min(normaliser);
            if normaliser < TOO_SMALL {
                continue;
            }
            let factor = tokens[at_hand] / normaliser;
            for ((sum, product), base) in sums[..n].iter_mut().zip(&mut product[..n]).zip(&base[..n]) {
                *product *= factor * *base;
                *sum += *product;
            }
            self.add_product(record);
        }
        self.add_sums(run);
    }

    /// Its records, where one family changes from record to record: its cells are read where they are.
    #[inline(always)]
    fn many_values_of_one(&mut self, family: usize, records: Range<usize>) {
        let n = self.n_states;
        let shift = self.chunk.shifts[family];
        let first = self.buffers.first;
        let Buffers { base, sums, tokens, normalisers, smallest, starts, .. } = &mut *self.buffers;
        let (base, sums) = (&base[..n], &mut sums[..n]);
        let starts = starts_from(self.arrangement, first, starts, records.start);
        for (ix, record) in records.enumerate() {
            if self.arrangement.is_wide
                && let Some(&next) = starts.get(ix + AHEAD)
            {
                for cell in (0..n).step_by(LANES) {
                    fetch_ahead(self.weights, next as usize + cell);
                    if let Some(shift) = shift {
                        fetch_ahead(self.out, next.wrapping_add_signed(shift) as usize + cell);
                    }
                }
            }
            let weights = &self.weights[starts[ix] as usize..][..n];
            let normaliser = long_dot(base, weights);
            normalisers[record - first] = normaliser;
            *smallest = smallest.min(normaliser);
            if normaliser < TOO_SMALL {
                continue;
            }
            let factor = tokens[record - first] / normaliser;
            let expected = |(weight, base): (&f64, &f64)| weight * (factor * base);
            match shift {
                None => sums.iter_mut().zip(weights.iter().zip(base)).for_each(|(sum, pair)| *sum += expected(pair)),
                Some(shift) => {
                    let out = &mut self.out[starts[ix].wrapping_add_signed(shift) as usize..][..n];
                    for ((sum, out), pair) in sums.iter_mut().zip(out).zip(weights.iter().zip(base)) {
                        let expected = expected(pair);
                        *sum += expected;
                        *out += expected;
                    }
                }
            }
        }
    }

    /// Adds a run's sums in the buffer to the families that are the same throughout.
    #[inline(always)]
    fn add_sums(&mut self, run: usize) {
        let n = self.n_states;
        for (ix, &family) in self.arrangement.run_families.iter().enumerate() {
            let start = self.run_starts(run)[ix];
            let out = if let Some(shift) = self.chunk.shifts[family] {
                &mut self.out[start.wrapping_add_signed(shift) as usize..][..n]
            } else if family == self.arrangement.lead && !self.own.is_empty() {
                &mut self.own[start as usize - self.chunk.own.start..][..n]
            } else {
                continue;
            };
            out.iter_mut().zip(&self.buffers.sums).for_each(|(out, sum)| *out += sum);
        }
    }

    /// Goes through the records of a run again whose normalisers are too small.
    #[cold]
    #[inline(never)]
    fn handle_rare(&mut self, run: usize, records: Range<usize>) {
        self.buffers.sums.fill(0.0);
        for record in records {
            if self.buffers.normalisers[record - self.buffers.first] < TOO_SMALL {
                self.carefully(run, record);
            }
        }
        self.add_sums(run);
    }

    /// Adds the expected counts in the buffer to the families that change within a run.
    #[inline(always)]
    fn add_product(&mut self, record: usize) {
        let n = self.n_states;
        for (ix, &family) in self.arrangement.record_families.iter().enumerate() {
            let Some(shift) = self.chunk.shifts[family] else { continue };
            let start = self.record_starts(record)[ix];
            let out = &mut self.out[start.wrapping_add_signed(shift) as usize..][..n];
            out.iter_mut().zip(&self.buffers.product[..n]).for_each(|(out, product)| *out += product);
        }
    }

    /// A record whose weights underflow: logarithms are added up. Impossible records add nothing.
    fn carefully(&mut self, run: usize, record: usize) {
        let tokens = self.buffers.tokens[record - self.buffers.first];
        for state in 0..self.n_states {
            let starts = self.run_starts(run).iter().chain(self.record_starts(record));
            let cells = starts.map(|&start| start as usize + state);
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
            let factor = tokens / total;
            product.iter_mut().for_each(|product| *product *= factor);
            largest + total.ln()
        };
        self.buffers.sums.iter_mut().zip(&*product).for_each(|(sum, product)| *sum += product);
        self.add_product(record);
        if let Some(sum) = self.ln_sum.as_mut() {
            **sum += tokens * ln;
        }
    }

    /// Adds the logarithms of the normalisers at hand up, but for those of records that were handled carefully.
    #[inline(always)]
    fn take_logs(&mut self) {
        if let Some(ln_sum) = self.ln_sum.as_mut() {
            let logs = &mut self.buffers.normalisers;
            logs.iter_mut().for_each(|log| *log = special::ln(if *log >= TOO_SMALL { *log } else { 1.0 }));
            **ln_sum += long_dot(logs, &self.buffers.tokens);
        }
    }
}
