//! The order in which the records of a group are gone through, and how threads share them out.
//!
//! Records are sorted by the cells of one family, the *lead*: they form runs whose sums stay at hand until the run is over.
//! What is the same throughout a run is kept once a run; for each record the rest is, close together, since it is all read
//! in every sweep.
//! Chunks end where the lead's blocks do, so each chunk has these cells to itself; of all other tables it has sums of its
//! own, added up in the order of the chunks. The chunks depend on the data alone, so the number of threads changes nothing.

use super::layout::{Group, GroupFamily, Layout};
use super::starts::RecordStarts;
use super::tokens::Tokens;
use crate::counts::Counts;
use std::ops::Range;

/// Most chunks of a group.
const MAX_CHUNKS: usize = 16;

/// Work of a chunk at least, in cells.
const MIN_WORK: f64 = 200_000.0;

/// A chunk's work is at least this many times the cells it has sums of its own for.
const WORK_PER_SHARED_CELL: f64 = 8.0;

/// Records whose starts are read together.
const READ_AT_ONCE: usize = 256;

/// Cells of a table beyond which they are not at hand anyway.
const WIDE: usize = 1 << 16;

/// Records of one group, sorted.
#[derive(Debug)]
pub struct Arrangement {
    /// Which group of the layout.
    pub group: usize,
    /// The family that records are sorted by.
    pub lead: usize,
    /// For each run of records with the same cells of the lead its end.
    pub run_ends: Vec<u32>,
    /// Families whose cells are the same throughout a run, the lead among them; for each run the first of their cells.
    pub run_families: Vec<usize>,
    pub run_starts: Vec<u32>,
    /// The other families; for each record the first of their cells.
    pub record_families: Vec<usize>,
    pub record_starts: RecordStarts,
    /// Whether their tables are so large that cells are asked for ahead of time.
    pub is_wide: bool,
    /// The tokens of each record.
    pub tokens: Tokens,
    /// Parts for threads.
    pub chunks: Vec<Chunk>,
}

/// A part of a group.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Its records.
    pub records: Range<usize>,
    /// Its runs.
    pub runs: Range<usize>,
    /// Cells of the lead's table that no other chunk touches, if they are wanted: it adds to them directly.
    pub own: Range<usize>,
    /// For each other family what to add to a cell's number to find it among the chunk's sums; none for tables not wanted.
    pub shifts: Vec<Option<i32>>,
    /// The cells it has sums for, in the order of its sums.
    parts: Vec<Range<usize>>,
}

impl Chunk {
    /// Number of cells it has sums for.
    pub fn n_sums(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }

    /// Adds its sums to those of all.
    pub fn merge(&self, sums: &[f64], all: &mut [f64]) {
        let mut rest = sums;
        for part in &self.parts {
            let (own, later) = rest.split_at(part.len());
            all[part.clone()].iter_mut().zip(own).for_each(|(all, sum)| *all += sum);
            rest = later;
        }
    }
}

impl Arrangement {
    /// Sorts the records of every group by the cells of a table, or by the family with most cells; `wanted` are the tables
    /// whose expected counts passes will ask for.
    pub fn of_groups(layout: &Layout, counts: &Counts, wanted: &[bool], lead: Option<usize>) -> Vec<Self> {
        (0..layout.groups.len()).map(|group| Arrangement::new(layout, group, counts, wanted, lead)).collect()
    }

    fn new(layout: &Layout, group_ix: usize, counts: &Counts, wanted: &[bool], lead: Option<usize>) -> Self {
        let group = &layout.groups[group_ix];
        let uses = |table: usize| group.families.iter().filter(|family| family.table == table).count();
        let rank = |&ix: &usize| {
            let table = group.families[ix].table;
            (lead == Some(table), uses(table) == 1, layout.tables[table].n_cells(), std::cmp::Reverse(ix))
        };
        let lead = (0..group.families.len()).max_by_key(rank).expect("a group has families");
        let shown_by_lead = group.shown(lead);
        let is_same_in_runs = |&family: &usize| group.shown(family).is_subset(&shown_by_lead);
        let (run_families, record_families): (Vec<usize>, Vec<usize>) =
            (0..group.families.len()).partition(is_same_in_runs);
        let mut reader = group.reader(counts);
        let n_records = reader.len();
        let largest = (0..n_records).map(|record| reader.n_tokens(record)).max().unwrap_or(0);
        let mut arrangement = Arrangement {
            group: group_ix,
            lead,
            run_ends: Vec::new(),
            run_families,
            run_starts: Vec::new(),
            record_starts: RecordStarts::with_room(
                n_records,
                record_families.iter().map(|&family| layout.steps(group, family)).collect(),
            ),
            is_wide: record_families.iter().any(|&ix| layout.tables[group.families[ix].table].n_cells() > WIDE),
            record_families,
            tokens: if counts.unit.is_token() {
                Tokens::with_room(n_records, largest)
            } else {
                Tokens::reals_with_room(n_records)
            },
            chunks: Vec::new(),
        };
        let start = |family: usize, values: &[u32]| layout.start(&group.families[family], values);
        let mut last_lead = None;
        for record in order(n_records, &mut |record| start(lead, reader.values(record))) {
            let values = reader.values(record);
            let lead_start = start(lead, values);
            if last_lead != Some(lead_start) {
                if last_lead.is_some() {
                    arrangement.run_ends.push(arrangement.tokens.len() as u32);
                }
                arrangement.run_starts.extend(arrangement.run_families.iter().map(|&family| start(family, values)));
                last_lead = Some(lead_start);
            }
            for &family in &arrangement.record_families {
                arrangement.record_starts.push(start(family, values));
            }
            if counts.unit.is_token() {
                arrangement.tokens.push(reader.n_tokens(record));
            } else {
                arrangement.tokens.push_real(counts.tokens(reader.n_tokens(record)));
            }
        }
        arrangement.run_ends.extend(last_lead.map(|_| n_records as u32));
        arrangement.chunks = arrangement.cut(layout, group, wanted);
        arrangement
    }

    /// Number of records.
    pub fn n_records(&self) -> usize {
        self.tokens.len()
    }

    /// Calls `f` with every record: where its cells start, family by family, and its tokens.
    pub fn for_each_record(&self, f: impl FnMut(&[u32], f64)) {
        self.for_each_of(0..self.run_ends.len(), f);
    }

    /// The same for the records of some runs.
    pub fn for_each_of(&self, runs: Range<usize>, mut f: impl FnMut(&[u32], f64)) {
        let (n_in_run, n_in_record) = (self.run_families.len(), self.record_families.len());
        let mut starts = vec![0; n_in_run + n_in_record];
        let mut of_records = Vec::new();
        let mut record = runs.start.checked_sub(1).map_or(0, |before| self.run_ends[before] as usize);
        for run in runs {
            let of_run = &self.run_starts[run * n_in_run..][..n_in_run];
            self.run_families.iter().zip(of_run).for_each(|(&family, &start)| starts[family] = start);
            while record < self.run_ends[run] as usize {
                let records = record..(record + READ_AT_ONCE).min(self.run_ends[run] as usize);
                record = records.end;
                self.record_starts.read(records.clone(), &mut of_records);
                // Without such families there is nothing to go through: one empty list for each record.
                let mut of_records = of_records.chunks_exact(n_in_record.max(1));
                for record in records {
                    let of_record = of_records.next().unwrap_or_default();
                    self.record_families.iter().zip(of_record).for_each(|(&family, &start)| starts[family] = start);
                    f(&starts, self.tokens.at(record));
                }
            }
        }
    }

    fn cut(&self, layout: &Layout, group: &Group, wanted: &[bool]) -> Vec<Chunk> {
        let n_records = self.n_records();
        let lead_table = group.families[self.lead].table;
        // Cells of a table that only the lead uses need not be shared.
        let is_sole = group.families.iter().filter(|family| family.table == lead_table).count() == 1;
        let mut shared: Vec<usize> = group.families.iter().map(|family| family.table).collect();
        shared.sort_unstable();
        shared.dedup();
        shared.retain(|&table| wanted[table] && !(is_sole && table == lead_table));
        let n_shared: usize = shared.iter().map(|&table| layout.tables[table].n_cells()).sum();
        let enough = MIN_WORK.max(WORK_PER_SHARED_CELL * n_shared as f64);
        // Sums of all chunks take no more memory than half of the records.
        let most = (n_records / 2 / n_shared.max(1)).clamp(2, MAX_CHUNKS);
        // A power of two, so that all threads have as much to do.
        let n_chunks = 1 << ((group.work(n_records) / enough) as usize).clamp(1, most).ilog2();
        let table = &layout.tables[lead_table];
        let place = self.run_families.iter().position(|&family| family == self.lead).expect("the lead is one of them");
        let block_of = |run: usize| {
            let start = self.run_starts[run * self.run_families.len() + place];
            (start as usize - table.first_cell) / table.shape.interior
        };
        let n_runs = self.run_ends.len();
        let end_of = |runs: usize| runs.checked_sub(1).map_or(0, |last| self.run_ends[last] as usize);
        let mut chunks = Vec::new();
        let mut from = 0;
        for ix in 0..n_chunks {
            let wanted_end = n_records * (ix + 1) / n_chunks;
            let mut to = self.run_ends.partition_point(|&end| (end as usize) < wanted_end) + 1;
            // Up to the end of the block where its cells need not be shared.
            while is_sole && to < n_runs && block_of(to) == block_of(to - 1) {
                to += 1;
            }
            let to = to.min(n_runs);
            if to <= from {
                continue;
            }
            let own = if is_sole && wanted[lead_table] {
                let first = table.first_cell + block_of(from) * table.shape.interior;
                first..table.first_cell + (block_of(to - 1) + 1) * table.shape.interior
            } else {
                0..0
            };
            let parts: Vec<(usize, Range<usize>)> =
                shared.iter().map(|&table| (table, layout.tables[table].cells())).collect();
            let shift = |family: &GroupFamily| {
                let mut at = 0;
                for (table, part) in &parts {
                    if *table == family.table {
                        // Cells are numbered with 32 bits, and so differences wrap around to the right one.
                        return Some((at as i64 - part.start as i64) as i32);
                    }
                    at += part.len();
                }
                None
            };
            let shifts = group.families.iter().map(shift).collect();
            chunks.push(Chunk {
                records: end_of(from)..end_of(to),
                runs: from..to,
                own,
                shifts,
                parts: parts.into_iter().map(|(_, part)| part).collect(),
            });
            from = to;
        }
        if let [chunk] = &mut chunks[..] {
            // Alone: it adds to the sums themselves.
            let is_wanted = |family: &GroupFamily| wanted[family.table].then_some(0);
            chunk.shifts = group.families.iter().map(is_wanted).collect();
            chunk.own = 0..0;
        }
        chunks
    }
}

/// The order of records by where their lead's cells start. Within a run they stay in their order, so that memory is mostly
/// read in one direction.
fn order(n_records: usize, start: &mut dyn FnMut(usize) -> u32) -> impl Iterator<Item = usize> + use<> {
    let mut last = 0;
    let is_sorted = (0..n_records).all(|record| {
        let (before, now) = (last, start(record));
        last = now;
        before <= now
    });
    let mut places = Vec::new();
    if !is_sorted {
        places.extend((0..n_records).map(|record| u64::from(start(record)) << 32 | record as u64));
        places.sort_unstable();
    }
    let in_order = if is_sorted { 0..n_records } else { 0..0 };
    in_order.chain(places.into_iter().map(|place| place as u32 as usize))
}
