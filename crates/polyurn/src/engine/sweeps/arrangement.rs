//! The order in which the records of a group are gone through, and how threads share them out.
//!
//! Records are sorted by the cells of one family, the *lead*: they form runs whose sums stay at hand until the run is over.
//! Chunks end where the lead's blocks do, so each chunk has these cells to itself; of all other tables it has sums of its
//! own, added up in the order of the chunks. The chunks depend on the data alone, so the number of threads changes nothing.

use super::layout::{Group, GroupFamily, Layout, Records};
use std::ops::Range;

/// Most chunks of a group.
const MAX_CHUNKS: usize = 16;

/// Work of a chunk at least, in cells.
const MIN_WORK: f64 = 200_000.0;

/// A chunk's work is at least this many times the cells it has sums of its own for.
const WORK_PER_SHARED_CELL: f64 = 8.0;

/// Records of one group, sorted.
#[derive(Debug)]
pub struct Arrangement {
    /// Which group of the layout.
    pub group: usize,
    /// The family that records are sorted by.
    pub lead: usize,
    /// The records, sorted.
    pub records: Records,
    /// For each run of records with the same cells of the lead its end.
    pub run_ends: Vec<u32>,
    /// Families whose cells are the same throughout a run, the lead among them; then the others.
    pub run_families: Vec<usize>,
    pub record_families: Vec<usize>,
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
    /// Sorts the records of a group by the cells of a table, or by the family with most cells; `wanted` are the tables whose
    /// expected counts passes will ask for.
    pub fn new(layout: &Layout, group_ix: usize, records: Records, wanted: &[bool], lead: Option<usize>) -> Self {
        let group = &layout.groups[group_ix];
        let n_families = group.families.len();
        let uses = |table: usize| group.families.iter().filter(|family| family.table == table).count();
        let rank = |&ix: &usize| {
            let table = group.families[ix].table;
            (lead == Some(table), uses(table) == 1, layout.tables[table].n_cells(), std::cmp::Reverse(ix))
        };
        let lead = (0..n_families).max_by_key(rank).expect("a group has families");
        // Within a run records stay in their order, so that memory is mostly read in one direction.
        let place = |record: usize| u64::from(records.starts_of(record)[lead]) << 32 | record as u64;
        let n_records = records.len();
        let records = if (0..n_records).is_sorted_by_key(place) {
            records
        } else {
            let mut order: Vec<u64> = (0..n_records).map(place).collect();
            order.sort_unstable();
            let order: Vec<u32> = order.into_iter().map(|place| place as u32).collect();
            records.in_order(&order)
        };
        let starts = &records.starts;
        let is_same_in_runs = |&family: &usize| {
            let neighbours = starts.chunks_exact(n_families).zip(starts.chunks_exact(n_families).skip(1));
            neighbours
                .clone()
                .all(|(one, next): (&[u32], &[u32])| one[lead] != next[lead] || one[family] == next[family])
        };
        let (run_families, record_families) = (0..n_families).partition(is_same_in_runs);
        let lead_of = |record: usize| starts[record * n_families + lead];
        let is_end = |&end: &usize| end == n_records || lead_of(end) != lead_of(end - 1);
        let run_ends = (1..=n_records).filter(is_end).map(|end| end as u32).collect();
        let mut arrangement =
            Arrangement { group: group_ix, lead, records, run_ends, run_families, record_families, chunks: Vec::new() };
        arrangement.chunks = arrangement.cut(layout, group, wanted);
        arrangement
    }

    fn cut(&self, layout: &Layout, group: &Group, wanted: &[bool]) -> Vec<Chunk> {
        let n_families = group.families.len();
        let n_records = self.records.len();
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
        let n_chunks = ((group.work(n_records) / enough) as usize).clamp(1, most);
        let table = &layout.tables[lead_table];
        let block_of = |record: usize| {
            (self.records.starts[record * n_families + self.lead] as usize - table.first_cell) / table.shape.interior
        };
        let lead_of = |record: usize| self.records.starts[record * n_families + self.lead];
        let mut chunks = Vec::new();
        let mut from = 0;
        for ix in 0..n_chunks {
            let mut to = n_records * (ix + 1) / n_chunks;
            // Up to the end of the run, or of the block where its cells need not be shared.
            let is_within =
                |to: usize| if is_sole { block_of(to) == block_of(to - 1) } else { lead_of(to) == lead_of(to - 1) };
            while to > from && to < n_records && is_within(to) {
                to += 1;
            }
            if to <= from {
                continue;
            }
            let run = |end: usize| self.run_ends.partition_point(|&run_end| run_end as usize <= end);
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
                records: from..to,
                runs: run(from)..run(to),
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
