//! Names of hidden values that can be exchanged: which of them say the same in two allocations, and what follows.

use crate::engine::lines::{BucketShape, Kernel, Layout};
use crate::engine::symmetry::LabelClass;
use crate::graph::NodeIndex;

/// For each label class the new name of each value; empty when none is renamed.
pub type Renaming = Vec<Vec<u32>>;

/// Whether nothing gets another name.
pub fn is_identity(renaming: &Renaming) -> bool {
    renaming.iter().all(|names| names.iter().enumerate().all(|(from, &to)| from as u32 == to))
}

/// The label class of a node.
pub fn class_of(classes: &[LabelClass], node: NodeIndex) -> Option<usize> {
    classes.iter().position(|class| class.nodes.contains(&node))
}

/// For each line of a class's blocks where it goes; `None` if none of them moves.
pub fn moved_lines(layout: &Layout, class: usize, new_name: &impl Fn(NodeIndex, u32) -> u32) -> Option<Vec<usize>> {
    // Tied nodes are renamed together, so any use of the lines tells what their positions mean.
    let touches = layout.kernels.iter().flat_map(|kernel: &Kernel| &kernel.touches);
    let touch = touches.into_iter().find(|touch| touch.class == class)?;
    let class = &layout.classes[class];
    let to = |line: usize| class.with_values(line, |position, value| new_name(touch.nodes[position], value));
    let lines: Vec<usize> = (0..class.interior).map(to).collect();
    lines.iter().enumerate().any(|(from, &to)| from != to).then_some(lines)
}

/// The nodes of a bucket with the values that they have in a state.
pub fn bucket_values(bucket: &BucketShape, state: usize) -> impl Iterator<Item = (NodeIndex, u32)> {
    let mut rest = state;
    bucket.nodes.iter().rev().map(move |&(node, size)| {
        let value = (rest % size as usize) as u32;
        rest /= size as usize;
        (node, value)
    })
}

/// For each state of a bucket its new number.
pub fn moved_states(bucket: &BucketShape, new_name: &impl Fn(NodeIndex, u32) -> u32) -> Vec<usize> {
    let to = |state: usize| {
        let (mut rest, mut stride, mut moved) = (state, 1, 0);
        for &(node, size) in bucket.nodes.iter().rev() {
            moved += stride * new_name(node, (rest % size as usize) as u32) as usize;
            rest /= size as usize;
            stride *= size as usize;
        }
        // States that stand for no nodes stay.
        moved + rest * stride
    };
    (0..bucket.n_states).map(to).collect()
}

/// New names within each set of values that can be exchanged, so that many tokens agree: `overlap[own * size + other]`
/// tokens have these values here and in the reference. The largest overlaps first, then exchanges while they gain.
pub fn best_names(class: &LabelClass, overlap: &[u64]) -> Vec<u32> {
    let mut names: Vec<u32> = (0..class.size).collect();
    let agree = |own: u32, other: u32| overlap[(own * class.size + other) as usize];
    for set in &class.sets {
        let mut pairs: Vec<(u32, u32)> =
            set.iter().flat_map(|&own| set.iter().map(move |&other| (own, other))).collect();
        // Among equals the name that a value has already.
        pairs.sort_by_key(|&(own, other)| (std::cmp::Reverse(agree(own, other)), own != other));
        let (mut is_named, mut is_given) = (vec![false; class.size as usize], vec![false; class.size as usize]);
        for (own, other) in pairs {
            if !is_named[own as usize] && !is_given[other as usize] {
                names[own as usize] = other;
                (is_named[own as usize], is_given[other as usize]) = (true, true);
            }
        }
        let mut gains = true;
        while gains {
            gains = false;
            for (at, &a) in set.iter().enumerate() {
                for &b in &set[at + 1..] {
                    let (of_a, of_b) = (names[a as usize], names[b as usize]);
                    if agree(a, of_b) + agree(b, of_a) > agree(a, of_a) + agree(b, of_b) {
                        names.swap(a as usize, b as usize);
                        gains = true;
                    }
                }
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(size: u32, sets: &[&[u32]]) -> LabelClass {
        LabelClass { nodes: vec![NodeIndex(0)], size, sets: sets.iter().map(|set| set.to_vec()).collect() }
    }

    #[test]
    fn names_are_those_with_the_largest_overlap() {
        // Greedily 0 would keep its name, and 5 tokens agree; exchanged they are 8.
        assert_eq!(best_names(&class(2, &[&[0, 1]]), &[5, 4, 4, 0]), [1, 0]);
        assert_eq!(best_names(&class(3, &[&[0, 1, 2]]), &[0, 9, 0, 0, 0, 7, 3, 0, 0]), [1, 2, 0]);
        assert_eq!(best_names(&class(3, &[&[0, 1, 2]]), &[0; 9]), [0, 1, 2]);
    }

    #[test]
    fn values_outside_a_set_keep_their_names() {
        assert_eq!(best_names(&class(3, &[&[0, 2]]), &[0, 9, 5, 9, 0, 0, 4, 0, 0]), [2, 1, 0]);
    }
}
