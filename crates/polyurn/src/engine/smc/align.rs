//! One labelling for all particles of a run.
//!
//! Where hidden values can be exchanged, particles that mean the same may name it differently, and an average over them
//! would make all components alike. Here every particle's values are exchanged so that as many of its tokens as possible
//! have the value that they have in a reference particle. A relabelled particle has the same probability as before, and
//! nothing that does not depend on labels changes.

use super::prepared::LISTED;
use super::run::Run;
use super::word::Word;
use crate::engine::allocation::{ParticleAllocation, RecordAllocation};
use crate::engine::naming::{Renaming, best_names, class_of, is_identity, moved_lines, moved_states};
use crate::engine::symmetry::LabelClass;
use crate::graph::NodeIndex;
use hashbrown::HashMap;

impl<W: Word> Run<'_, W> {
    /// Renames the hidden values of every particle after those of one of them. All lines must be up to date.
    pub fn align_labels(&mut self, classes: &[LabelClass], reference: usize) {
        if classes.is_empty() {
            return;
        }
        let mut by_renaming: HashMap<Renaming, Vec<usize>> = HashMap::new();
        for particle in (0..self.n_particles()).filter(|&particle| particle != reference) {
            if let Some(renaming) = self.renaming(classes, particle, reference) {
                by_renaming.entry(renaming).or_default().push(particle);
            }
        }
        for (renaming, particles) in &by_renaming {
            self.rename(classes, renaming, particles);
        }
    }

    /// How to rename one particle's values; `None` if they are best as they are.
    fn renaming(&self, classes: &[LabelClass], particle: usize, reference: usize) -> Option<Renaming> {
        let course = self.course();
        let mut overlaps = no_overlaps(classes);
        for position in 0..course.order.len() {
            let kernel = course.kernel_at(position);
            let first = course.first_state[position] as usize;
            for (ix, bucket) in kernel.buckets.iter().enumerate() {
                let [mut own, mut other] = [particle, reference].map(|of| self.lanes().at(first + ix, of).index());
                for &(node, size) in bucket.nodes.iter().rev() {
                    if let Some(class) = class_of(classes, node) {
                        let (own, other) = (own as u32 % size, other as u32 % size);
                        overlaps[class][(own * size + other) as usize] += 1;
                    }
                    own /= size as usize;
                    other /= size as usize;
                }
            }
        }
        let renaming: Renaming =
            classes.iter().zip(&overlaps).map(|(class, overlap)| best_names(class, overlap)).collect();
        (!is_identity(&renaming)).then_some(renaming)
    }

    /// Renames values in some particles: numbers move to the lines of the new names, and states change theirs.
    fn rename(&mut self, classes: &[LabelClass], renaming: &Renaming, particles: &[usize]) {
        let course = self.course();
        let new_name = |node: NodeIndex, value: u32| match class_of(classes, node) {
            Some(class) => renaming[class][value as usize],
            None => value,
        };
        let layout = course.layout;
        let lines_of_class: Vec<Option<Vec<usize>>> =
            (0..layout.classes.len()).map(|class| moved_lines(layout, class, &new_name)).collect();
        let mut moves: Vec<(usize, &[usize])> = Vec::new();
        for (block, &first) in layout.blocks.iter().zip(&course.frame.storage.first_line) {
            if let (Some(lines), true) = (&lines_of_class[block.class as usize], first != LISTED) {
                moves.push((first as usize, lines));
                let high = course.frame.storage.high_of_class[block.class as usize];
                if high > 0 {
                    moves.push(((first + high) as usize, lines));
                }
            }
        }
        let states_of_kernel: Vec<Vec<Vec<usize>>> = layout
            .kernels
            .iter()
            .map(|kernel| kernel.buckets.iter().map(|bucket| moved_states(bucket, &new_name)).collect())
            .collect();
        let mut states: Vec<(usize, &[usize])> = Vec::new();
        for (&record, &first) in course.order.iter().zip(&course.first_state) {
            let of_buckets = &states_of_kernel[layout.records.kernel[record as usize] as usize];
            states.extend(of_buckets.iter().enumerate().map(|(ix, to)| (first as usize + ix, to.as_slice())));
        }
        let mut numbers = Vec::new();
        for &particle in particles {
            let mut lines = self.lanes_mut().particle(particle);
            for &(first, to) in &moves {
                numbers.clear();
                numbers.extend((first..first + to.len()).map(|line| *lines.at(line)));
                numbers.iter().zip(to).for_each(|(&number, to)| *lines.at(first + to) = number);
            }
            for &(line, to) in &states {
                let state = lines.at(line);
                *state = W::from_index(to[state.index()]);
            }
        }
    }
}

/// Renames the hidden values of allocations of one run, which share their names, after those of another run's: as many tokens as
/// possible have the same value. `unseen` gives the unseen nodes of a block's records.
pub fn align_runs<'p>(
    classes: &[LabelClass],
    unseen: &dyn Fn(u32) -> &'p [NodeIndex],
    own: &ParticleAllocation,
    reference: &ParticleAllocation,
    allocations: &mut [&mut ParticleAllocation],
) {
    let of_reference: HashMap<(u32, u32), &RecordAllocation> =
        reference.hidden.iter().map(|record| ((record.block, record.record), record)).collect();
    let mut overlaps = no_overlaps(classes);
    for record in &own.hidden {
        let Some(other) = of_reference.get(&(record.block, record.record)) else { continue };
        let n_tokens: u64 = record.groups.iter().map(|(_, n)| n).sum();
        for (place, &node) in unseen(record.block).iter().enumerate() {
            let Some(class) = class_of(classes, node) else { continue };
            // Tokens of a record are all alike, so the chance that one has both values counts.
            for (values, n) in &record.groups {
                for (others, n_other) in &other.groups {
                    let cell = values[place] * classes[class].size + others[place];
                    overlaps[class][cell as usize] += SHARES * n * n_other / n_tokens.max(1);
                }
            }
        }
    }
    let names: Renaming = classes.iter().zip(&overlaps).map(|(class, overlap)| best_names(class, overlap)).collect();
    for record in allocations.iter_mut().flat_map(|allocation| &mut allocation.hidden) {
        for (place, &node) in unseen(record.block).iter().enumerate() {
            if let Some(class) = class_of(classes, node) {
                record.groups.iter_mut().for_each(|(values, _)| values[place] = names[class][values[place] as usize]);
            }
        }
        record.groups.sort();
    }
}

/// Parts of a token in which overlaps of records are counted.
const SHARES: u64 = 1000;

fn no_overlaps(classes: &[LabelClass]) -> Vec<Vec<u64>> {
    classes.iter().map(|class| vec![0; (class.size * class.size) as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::Counts;
    use crate::engine::Problem;
    use crate::engine::lines::Layout;
    use crate::engine::replicates::Watch;
    use crate::engine::sheet::Sheet;
    use crate::engine::smc::frame::Frame;
    use crate::engine::smc::run::{Hands, Path, Source};
    use crate::graph::{ModelSource, bind_without_data};
    use crate::prior::{Prior, PriorSettings};
    use crate::simd::Isa;
    use crate::urn::Urn;
    use crate::{Purpose, Seed};

    fn class(size: u32, sets: &[&[u32]]) -> LabelClass {
        LabelClass { nodes: vec![NodeIndex(0)], size, sets: sets.iter().map(|set| set.to_vec()).collect() }
    }

    #[test]
    fn allocations_of_another_run_take_the_names_of_the_reference() {
        let classes = [class(3, &[&[0, 1, 2]])];
        let allocation = |values: [u32; 4]| ParticleAllocation {
            run: 0,
            log_joint: 0.0,
            ln_pi: 0.0,
            hidden: (0u32..)
                .zip(values)
                .map(|(record, value)| RecordAllocation { block: 0, record, groups: vec![(vec![value], 2)] })
                .collect(),
        };
        let (own, reference) = (allocation([2, 2, 0, 1]), allocation([0, 0, 1, 1]));
        let (mut best, mut draw) = (own.clone(), allocation([2, 1, 1, 0]));
        let nodes = [NodeIndex(0)];
        align_runs(&classes, &|_| &nodes, &own, &reference, &mut [&mut best, &mut draw]);
        // 2 is called 0 there; of 0 and 1, which both meet 1, one takes that name and the other what is left.
        assert_eq!(best.hidden[0].groups, [(vec![0], 2)]);
        assert_eq!(best.hidden[1].groups, [(vec![0], 2)]);
        assert_ne!(best.hidden[2].groups, best.hidden[3].groups);
        // A draw of the same run is renamed in the same way.
        assert_eq!(draw.hidden[0].groups, best.hidden[0].groups);
        assert_eq!(draw.hidden[1].groups, best.hidden[3].groups);
        assert_eq!(draw.hidden[3].groups, best.hidden[2].groups);
    }

    /// Particles of a model with tokens drawn from its urn: two calls of `posterior` look at them before and after they
    /// are renamed.
    fn check_that_probabilities_stay(text: &str, n_hidden: usize, a: f64) {
        let (model, _, _) = bind_without_data(&ModelSource::parse(text).unwrap(), None).unwrap();
        let prior = Prior::build(&model, &PriorSettings { a: Some(a), ..Default::default() }).unwrap();
        let mut urn = Urn::new(&model, &prior);
        let mut rng = Seed(3).stream(Purpose::Urn, 0, 0, 0);
        (0..25).for_each(|_| drop(urn.draw(&mut rng).to_vec()));
        let counts = Counts::hiding(&model.sizes(), n_hidden, urn.tokens());
        let problem = Problem::new(&model, &prior, &counts).unwrap();
        let layout = Layout::new(&problem).unwrap();
        let path = Path { rejuvenation: 1, ..Default::default() };
        let frame = Frame::new(&layout, &path, 40, true, 1 << 30).unwrap();
        let hands = Hands { n_particles: 40, n_threads: 1, isa: Isa::detect() };
        let source = Source { seed: Seed(4), replicate: 0 };
        let mut run = Run::<u16>::new(&counts, &layout, &frame, &path, hands, source);
        run.go(&Watch::of(&|_| Ok(()))).unwrap();
        let sheet = Sheet::new(&problem, &layout);
        run.bring_up_to_date();
        let hidden_before: Vec<Vec<Vec<u32>>> = (0..40).map(|particle| run.hidden_values(particle)).collect();
        let before = run.posterior(&problem, &sheet, 0, &[]);
        let hidden_after: Vec<Vec<Vec<u32>>> = (0..40).map(|particle| run.hidden_values(particle)).collect();
        let after = run.posterior(&problem, &sheet, 0, &[]);
        assert_ne!(hidden_before, hidden_after, "{text}: some particle is renamed");
        for (before, after) in before.particles().iter().zip(after.particles()) {
            assert!((before.log_joint - after.log_joint).abs() < 1e-9, "{text}: {before:?} {after:?}");
            assert_eq!(before.d_ep, after.d_ep, "{text}");
        }
        // Lines say what states say: the urn gives the same probability for the hidden values.
        let mut records = vec![vec![0; model.n_nodes()]; layout.records.len()];
        for (record, &(block, ix)) in records.iter_mut().zip(&layout.records.source) {
            counts.blocks[block as usize].read(ix as usize, record);
        }
        for (particle, hidden) in hidden_after.iter().enumerate() {
            let mut urn = Urn::new(&model, &prior);
            let mut ln = 0.0;
            for (hidden, &record) in hidden.iter().zip(&run.course().order) {
                let token = [hidden, &records[record as usize][n_hidden..]].concat();
                ln += urn.ln_predictive(&token);
                urn.observe(&token);
            }
            let found = after.particles()[particle].log_joint;
            assert!((ln - found).abs() < 1e-9, "{text}, particle {particle}: {found} for {ln}");
        }
    }

    #[test]
    fn a_renamed_particle_is_as_probable_as_before() {
        check_that_probabilities_stay("k[3] -> i[4] j[5]", 1, 2.0);
        check_that_probabilities_stay("g[2] -> h[3]; g -> x[3]; h -> y[2]", 2, 1.5);
        // Rare labels, whose lines are rebuilt from their tokens.
        check_that_probabilities_stay("k[40] -> i[30] j[30]", 1, 20.0);
        // A hidden chain whose tables are tied, too long for joint states: several buckets.
        let chain = "h1[4] -> h2[4] -> h3[4] -> h4[4] -> h5[4] -> h6[4] -> h7[4]; h1 -> x1[3]; h4 -> x4[3]; h7 -> x7[3]; \
                     h2 ~ h3 ~ h4 ~ h5 ~ h6 ~ h7; x1 ~ x4 ~ x7";
        check_that_probabilities_stay(chain, 7, 3.0);
    }
}
