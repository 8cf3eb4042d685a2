//! Going through all records once: expected counts of all cells under given weights.

use super::arrangement::{Arrangement, Chunk};
use super::layout::Layout;
use super::messages::{Messages, Weights};
use super::mixture::{Buffers, Mixture};
use super::numbers::Numbers;
use crate::simd::Isa;
use rayon::prelude::*;

/// What a pass adds up beside the expected counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Tally {
    /// The sum over tokens of ln of the weight of what was seen of them.
    pub ln_weight: f64,
    /// Expected tokens in unknown cells.
    pub unknown: f64,
}

/// What is wanted of a pass.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Whether [`Tally::ln_weight`] is.
    pub logs: bool,
    /// Expected tokens of an unknown cell of weight one.
    pub intensity: f64,
}

/// Buffers, one for each chunk in work.
#[derive(Debug, Default)]
pub struct Work {
    chunks: Vec<ChunkWork>,
}

#[derive(Debug, Default)]
struct ChunkWork {
    sums: Numbers,
    buffers: Buffers,
    messages: Messages,
    tally: Tally,
}

/// Adds the expected counts of all records to `counts`, in threads of the current pool.
pub fn expect(
    layout: &Layout,
    arrangements: &[Arrangement],
    weights: Weights<'_>,
    wanted: Wanted,
    isa: Isa,
    work: &mut Work,
    counts: &mut Numbers,
) -> Tally {
    let mut total = Tally::default();
    for arrangement in arrangements {
        // As many chunks at once as there are threads, and buffers for those; what they find is added up in their order.
        let n_at_once = rayon::current_num_threads().min(arrangement.chunks.len()).max(1);
        if work.chunks.len() < n_at_once {
            work.chunks.resize_with(n_at_once, ChunkWork::default);
        }
        let pass = ChunkPass { layout, arrangement, weights, wanted, isa };
        if let [chunk] = &arrangement.chunks[..] {
            let own = &mut work.chunks[0];
            let out = Out { own: &mut [], shared: counts.with_room_mut() };
            let tally = pass.run(chunk, out, &mut own.buffers, &mut own.messages);
            total.ln_weight += tally.ln_weight;
            total.unknown += tally.unknown;
            continue;
        }
        for chunks in arrangement.chunks.chunks(n_at_once) {
            // Memory comes from one thread: what each thread has given back to its own store, another cannot use.
            for (own, chunk) in work.chunks.iter_mut().zip(chunks) {
                if own.sums.len() != chunk.n_sums() {
                    own.sums = Numbers::zeros(chunk.n_sums());
                }
            }
            let jobs = work.chunks.par_iter_mut().zip(chunks).zip(own_cells(chunks, counts));
            jobs.for_each(|((own, chunk), own_cells)| {
                own.sums.fill(0.0);
                let out = Out { own: own_cells, shared: own.sums.with_room_mut() };
                own.tally = pass.run(chunk, out, &mut own.buffers, &mut own.messages);
            });
            for (own, chunk) in work.chunks.iter().zip(chunks) {
                chunk.merge(&own.sums, counts);
                total.ln_weight += own.tally.ln_weight;
                total.unknown += own.tally.unknown;
            }
        }
    }
    total
}

/// For each of some chunks the cells that are its own. They stand in the order of the chunks.
fn own_cells<'c>(chunks: &[Chunk], counts: &'c mut [f64]) -> Vec<&'c mut [f64]> {
    let (mut rest, mut first) = (counts, 0);
    let own = chunks.iter().map(|chunk| {
        let (own, later) =
            std::mem::take(&mut rest)[chunk.own.start.max(first) - first..].split_at_mut(chunk.own.len());
        (rest, first) = (later, chunk.own.end.max(first));
        own
    });
    own.collect()
}

/// Where a chunk adds its expected counts: the cells that are its own, and sums for the others.
struct Out<'o> {
    own: &'o mut [f64],
    shared: &'o mut [f64],
}

/// A chunk's part of a pass.
#[derive(Clone, Copy)]
struct ChunkPass<'p> {
    layout: &'p Layout,
    arrangement: &'p Arrangement,
    weights: Weights<'p>,
    wanted: Wanted,
    isa: Isa,
}

impl ChunkPass<'_> {
    fn run(self, chunk: &Chunk, out: Out<'_>, buffers: &mut Buffers, messages: &mut Messages) -> Tally {
        let group = &self.layout.groups[self.arrangement.group];
        let mut tally = Tally::default();
        if let Some(n_states) = group.mixture_size() {
            self.isa.run_eights(Mixture {
                n_states,
                arrangement: self.arrangement,
                chunk,
                weights: self.weights.values.with_room(),
                ln_weights: self.weights.logs,
                own: out.own,
                out: out.shared,
                buffers,
                ln_sum: self.wanted.logs.then_some(&mut tally.ln_weight),
            });
            return tally;
        }
        self.arrangement.for_each_of(chunk.runs.clone(), |starts, count| {
            let ln = messages.collect(group, starts, self.weights);
            let count = if group.block.is_some() {
                tally.ln_weight += count * ln;
                count
            } else {
                let expected = self.wanted.intensity * ln.exp();
                tally.unknown += expected;
                expected
            };
            if ln == f64::NEG_INFINITY {
                return;
            }
            messages.distribute(&group.elimination);
            for (ix, (family, &start)) in group.families.iter().zip(starts).enumerate() {
                let (first, out) = match chunk.shifts[ix] {
                    Some(shift) => (start.wrapping_add_signed(shift) as usize, &mut *out.shared),
                    None if ix == self.arrangement.lead && !out.own.is_empty() => {
                        (start as usize - chunk.own.start, &mut *out.own)
                    }
                    None => continue,
                };
                match family.bucket {
                    None => out[first] += count,
                    Some(bucket) => {
                        for (&at, &probability) in family.offsets.iter().zip(messages.belief(bucket)) {
                            out[first + at as usize] += count * probability;
                        }
                    }
                }
            }
        });
        tally
    }
}
