//! Where in the state vector each slot lives, and how states that differ only in labels are brought to one form.
//!
//! Slots of one type (the same but for exchangeable labels) form a group of adjacent registers, one for each combination
//! of labels. A group is reused once all its slots are finished, by a group of the same shape, so the vector is as long
//! as the largest number of groups alive at once.

use super::slots::Slots;
use crate::engine::symmetry::LabelClass;
use hashbrown::HashMap;
use std::collections::BTreeSet;

/// Label permutations beyond this many are not tried one by one.
const MAX_PERMUTATIONS: usize = 120;

/// The layout of the state vector.
#[derive(Debug)]
pub struct Registers {
    /// Length of the vector.
    pub width: usize,
    /// The register of each slot.
    pub of_slot: Vec<u32>,
    groups: Vec<Group>,
}

/// Adjacent registers for slots of one type.
#[derive(Debug, Clone)]
struct Group {
    base: usize,
    /// The class of each exchangeable place.
    classes: Vec<usize>,
}

impl Registers {
    /// Lays the slots out. `alive[s]` is the range of positions (first, last) at which slot s matters.
    pub fn new(slots: &Slots, classes: &[LabelClass], alive: &[(usize, usize)]) -> Self {
        let mut span: Vec<(usize, usize)> = vec![(usize::MAX, 0); slots.types.len()];
        for (slot, &(first, last)) in slots.slots.iter().zip(alive) {
            let entry = &mut span[slot.slot_type];
            *entry = (entry.0.min(first), entry.1.max(last));
        }
        let mut by_start: Vec<usize> = (0..slots.types.len()).collect();
        by_start.sort_by_key(|&ix| span[ix].0);
        let mut registers = Registers { width: 0, of_slot: Vec::new(), groups: Vec::new() };
        let mut group_of_type = vec![0usize; slots.types.len()];
        // Groups of each shape, by the position up to which they are in use.
        let mut in_use: HashMap<&[usize], BTreeSet<(usize, usize)>> = HashMap::new();
        for type_ix in by_start {
            let shape = slots.types[type_ix].classes.as_slice();
            let (first, last) = span[type_ix];
            let groups = in_use.entry(shape).or_default();
            let group = match groups.first().copied() {
                Some((until, group)) if until < first => {
                    groups.remove(&(until, group));
                    group
                }
                _ => {
                    registers.groups.push(Group { base: registers.width, classes: shape.to_vec() });
                    registers.width += shape.iter().map(|&class| classes[class].size as usize).product::<usize>();
                    registers.groups.len() - 1
                }
            };
            groups.insert((last, group));
            group_of_type[type_ix] = group;
        }
        registers.of_slot = slots
            .slots
            .iter()
            .map(|slot| registers.place(group_of_type[slot.slot_type], &slot.labels, classes) as u32)
            .collect();
        registers
    }

    fn place(&self, group: usize, labels: &[u32], classes: &[LabelClass]) -> usize {
        let group = &self.groups[group];
        let offset = labels
            .iter()
            .zip(&group.classes)
            .fold(0, |offset, (&label, &class)| offset * classes[class].size as usize + label as usize);
        group.base + offset
    }

    /// How to bring a state to its canonical labelling.
    pub fn canonicalisers(&self, classes: &[LabelClass]) -> Vec<Canonicaliser> {
        let mut canonicalisers = Vec::new();
        for (class_ix, class) in classes.iter().enumerate() {
            let entangled =
                self.groups.iter().any(|group| group.classes.iter().filter(|&&class| class == class_ix).count() > 1);
            for set in &class.sets {
                if entangled {
                    canonicalisers.extend(self.by_permutations(class_ix, set, classes));
                } else {
                    canonicalisers.push(self.by_sorting(class_ix, set, classes));
                }
            }
        }
        canonicalisers.retain(|canonicaliser| match canonicaliser {
            Canonicaliser::Sort { columns } => columns.iter().any(|column| !column.is_empty()),
            Canonicaliser::Permutations { .. } => true,
        });
        canonicalisers
    }

    /// Every register of each label, in the same order for each.
    fn by_sorting(&self, class_ix: usize, set: &[u32], classes: &[LabelClass]) -> Canonicaliser {
        let columns = set
            .iter()
            .map(|&label| {
                let mut column = Vec::new();
                self.for_each_place(classes, |register, group, labels| {
                    if let Some(at) = group.classes.iter().position(|&class| class == class_ix)
                        && labels[at] == label
                    {
                        column.push(register as u32);
                    }
                });
                column
            })
            .collect();
        Canonicaliser::Sort { columns }
    }

    fn by_permutations(&self, class_ix: usize, set: &[u32], classes: &[LabelClass]) -> Option<Canonicaliser> {
        let n_permutations: usize = (1..=set.len()).product();
        if set.len() > 8 || n_permutations > MAX_PERMUTATIONS {
            return None;
        }
        let mut moved: HashMap<(usize, Vec<u32>), usize> = HashMap::new();
        self.for_each_place(classes, |register, group, labels| {
            moved.insert((group.base, labels.to_vec()), register);
        });
        let sources = permutations(set)
            .into_iter()
            .map(|image| {
                let mut source: Vec<u32> = (0..self.width as u32).collect();
                self.for_each_place(classes, |register, group, labels| {
                    let mut labels = labels.to_vec();
                    for (label, &class) in labels.iter_mut().zip(&group.classes) {
                        if class == class_ix
                            && let Some(at) = set.iter().position(|member| member == label)
                        {
                            *label = image[at];
                        }
                    }
                    source[register] = moved[&(group.base, labels)] as u32;
                });
                source
            })
            .collect();
        Some(Canonicaliser::Permutations { sources })
    }

    fn for_each_place(&self, classes: &[LabelClass], mut visit: impl FnMut(usize, &Group, &[u32])) {
        for group in &self.groups {
            let sizes: Vec<u32> = group.classes.iter().map(|&class| classes[class].size).collect();
            let n_places: usize = sizes.iter().map(|&size| size as usize).product();
            let mut labels = vec![0u32; sizes.len()];
            for place in 0..n_places {
                crate::prior::decode(place, &sizes, &mut labels);
                visit(group.base + place, group, &labels);
            }
        }
    }
}

/// All orderings of a set.
fn permutations(set: &[u32]) -> Vec<Vec<u32>> {
    if set.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in set.iter().enumerate() {
        let mut rest = set.to_vec();
        rest.remove(at);
        all.extend(permutations(&rest).into_iter().map(|tail| [vec![first], tail].concat()));
    }
    all
}

/// A map from a state to an equivalent one that is the same for as many relabellings of it as possible. It need not be
/// unique to be right: every relabelling has the same probability.
#[derive(Debug)]
pub enum Canonicaliser {
    /// Sorts the labels by their registers; exact when no register carries two labels of the class.
    Sort {
        /// For each label its registers.
        columns: Vec<Vec<u32>>,
    },
    /// Takes the smallest of all permuted states.
    Permutations {
        /// For each permutation and register, the register its value comes from.
        sources: Vec<Vec<u32>>,
    },
}

impl Canonicaliser {
    /// Brings `state` to canonical form, using `scratch` of the same length.
    pub fn apply<D: Copy + Ord>(&self, state: &mut [D], scratch: &mut [D]) {
        match self {
            Canonicaliser::Sort { columns } => sort_columns(columns, state),
            Canonicaliser::Permutations { sources } => {
                scratch.copy_from_slice(state);
                for source in sources {
                    let permuted = source.iter().map(|&register| scratch[register as usize]);
                    if permuted.clone().lt(state.iter().copied()) {
                        state.iter_mut().zip(permuted).for_each(|(slot, value)| *slot = value);
                    }
                }
            }
        }
    }
}

/// Insertion sort of label columns, largest first, swapping in place: there are few labels and they are nearly sorted.
fn sort_columns<D: Copy + Ord>(columns: &[Vec<u32>], state: &mut [D]) {
    for end in 1..columns.len() {
        let mut at = end;
        while at > 0 && is_less(&columns[at - 1], &columns[at], state) {
            for (&a, &b) in columns[at - 1].iter().zip(&columns[at]) {
                state.swap(a as usize, b as usize);
            }
            at -= 1;
        }
    }
}

fn is_less<D: Copy + Ord>(left: &[u32], right: &[u32], state: &[D]) -> bool {
    for (&a, &b) in left.iter().zip(right) {
        match state[a as usize].cmp(&state[b as usize]) {
            std::cmp::Ordering::Less => return true,
            std::cmp::Ordering::Greater => return false,
            std::cmp::Ordering::Equal => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_gives_one_form_to_all_relabellings() {
        let columns = vec![vec![0, 3], vec![1, 4], vec![2, 5]];
        let canonicaliser = Canonicaliser::Sort { columns };
        let mut forms: Vec<Vec<u8>> = [[1, 2, 1, 5, 0, 4], [2, 1, 1, 0, 4, 5], [1, 1, 2, 4, 5, 0]]
            .into_iter()
            .map(|state| {
                let mut state = state.to_vec();
                canonicaliser.apply(&mut state, &mut [0; 6]);
                state
            })
            .collect();
        forms.dedup();
        assert_eq!(forms, [[2, 1, 1, 0, 5, 4]]);
    }

    #[test]
    fn permutations_lists_all_orderings_once() {
        let mut all = permutations(&[3, 5, 7]);
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
