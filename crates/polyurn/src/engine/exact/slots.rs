//! From counters to slots: which counters are uncertain, and which of them always move together.
//!
//! A counter that every way of every record touches alike is known at any time and goes into the closed form. The others
//! carry the state. Two of them that are touched by the same ways always hold the same number, so they share one slot:
//! the count of topic k, and the row sums of all tables below k, are one number.

use super::counters::Counters;
use super::records::{Sorted, Way};
use crate::engine::kind::{ClosedForm, Kind};
use crate::engine::symmetry::LabelClass;
use crate::graph::{Model, TableIndex};
use crate::math::LnProduct;
use hashbrown::HashMap;

/// No slot: the counter is certain.
pub const NO_SLOT: u32 = u32::MAX;

/// What a slot counts, apart from the labels that can be exchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotType {
    table: TableIndex,
    kind: Kind,
    /// Values of the family, with `u32::MAX` in the place of exchangeable labels.
    values: Vec<u32>,
    /// Class of each exchangeable place, in order.
    pub classes: Vec<usize>,
}

/// One uncertain number of the state.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Index into [`Slots::types`].
    pub slot_type: usize,
    /// The labels in the exchangeable places.
    pub labels: Vec<u32>,
}

/// Slots of a problem.
#[derive(Debug)]
pub struct Slots {
    /// For each counter its slot or [`NO_SLOT`].
    pub of_counter: Vec<u32>,
    /// The slots.
    pub slots: Vec<Slot>,
    /// Their types.
    pub types: Vec<SlotType>,
    /// For each counter without slot: tokens of ambiguous records that are certain to touch it.
    pub certain_extra: Vec<u64>,
    /// For each counter without slot: how often every token in an unknown cell touches it.
    pub per_unknown: Vec<u32>,
}

impl Slots {
    /// Finds the slots of sorted records.
    pub fn new(model: &Model, sorted: &Sorted<'_>, classes: &[LabelClass]) -> Self {
        let uncertain = uncertain_counters(sorted);
        let mut slots = Slots {
            of_counter: vec![NO_SLOT; sorted.counters.len()],
            slots: Vec::new(),
            types: Vec::new(),
            certain_extra: vec![0; sorted.counters.len()],
            per_unknown: vec![0; sorted.counters.len()],
        };
        slots.count_certain(sorted, &uncertain);
        slots.group(model, sorted, &uncertain, classes);
        slots
    }

    fn count_certain(&mut self, sorted: &Sorted<'_>, uncertain: &[bool]) {
        for record in &sorted.ambiguous {
            // Any way tells: all of them touch a certain counter alike.
            for &counter in record.ways[0].iter().filter(|&&counter| !uncertain[counter as usize]) {
                self.certain_extra[counter as usize] += record.count;
            }
        }
        if let Some(way) = sorted.unknown.first() {
            for &counter in way.iter().filter(|&&counter| !uncertain[counter as usize]) {
                self.per_unknown[counter as usize] += 1;
            }
        }
    }

    fn group(&mut self, model: &Model, sorted: &Sorted<'_>, uncertain: &[bool], classes: &[LabelClass]) {
        let mut touched_by: Vec<Vec<u32>> = vec![Vec::new(); sorted.counters.len()];
        let all_ways = sorted.ambiguous.iter().flat_map(|record| &record.ways).chain(&sorted.unknown);
        for (way_ix, way) in all_ways.enumerate() {
            for &counter in way.iter().filter(|&&counter| uncertain[counter as usize]) {
                touched_by[counter as usize].push(way_ix as u32);
            }
        }
        let mut members: Vec<usize> = (0..uncertain.len()).filter(|&counter| uncertain[counter]).collect();
        // The smallest counter of a slot speaks for it, so that slots of exchangeable labels have the same type.
        members.sort_by_key(|&ix| {
            let counter = sorted.counters.get(ix);
            (counter.table, counter.kind, sorted.counters.values(ix).to_vec())
        });
        let mut slot_of: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut type_of: HashMap<SlotType, usize> = HashMap::new();
        for counter in members {
            let signature = std::mem::take(&mut touched_by[counter]);
            let next = self.slots.len() as u32;
            let slot = *slot_of.entry(signature).or_insert(next);
            if slot == next {
                let (slot_type, labels) = describe(model, &sorted.counters, counter, classes);
                let n_types = type_of.len();
                let type_ix = *type_of.entry(slot_type.clone()).or_insert(n_types);
                if type_ix == n_types {
                    self.types.push(slot_type);
                }
                self.slots.push(Slot { slot_type: type_ix, labels });
            }
            self.of_counter[counter] = slot;
        }
    }

    /// The closed form of everything that is certain: counters without slot in full, counters with a slot up to the
    /// tokens of certain records.
    pub fn closed_form(&self, counters: &Counters<'_>) -> LnProduct {
        let mut closed_form = ClosedForm::default();
        for ix in 0..counters.len() {
            let counter = counters.get(ix);
            closed_form.push(counter.kind, counter.pseudo, counters.certain[ix] + self.certain_extra[ix]);
        }
        closed_form.product()
    }

    /// The slots a way touches, each with the number of times, ascending.
    pub fn touches(&self, way: &Way) -> Vec<(u32, u32)> {
        // Counters that share a slot are touched together: count through one of them.
        let mut touches: Vec<(u32, u32)> = multiplicities(way)
            .into_iter()
            .map(|(counter, n)| (self.of_counter[counter as usize], n))
            .filter(|touch| touch.0 != NO_SLOT)
            .collect();
        touches.sort_unstable();
        touches.dedup_by_key(|touch| touch.0);
        touches
    }
}

/// Each counter of a way with the number of times it is touched.
fn multiplicities(way: &Way) -> Vec<(u32, u32)> {
    let mut sorted = way.clone();
    sorted.sort_unstable();
    sorted.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
}

/// Counters that some record touches in one way and not, or not as often, in another.
fn uncertain_counters(sorted: &Sorted<'_>) -> Vec<bool> {
    let n_counters = sorted.counters.len();
    let mut uncertain = vec![false; n_counters];
    let mut total = vec![0u64; n_counters];
    let groups = sorted.ambiguous.iter().map(|record| &record.ways).chain([&sorted.unknown]);
    for ways in groups {
        for &counter in ways.iter().flatten() {
            total[counter as usize] += 1;
        }
        for way in ways {
            for (counter, here) in multiplicities(way) {
                uncertain[counter as usize] |= u64::from(here) * ways.len() as u64 != total[counter as usize];
            }
        }
        for &counter in ways.iter().flatten() {
            total[counter as usize] = 0;
        }
    }
    uncertain
}

/// A counter's type and its exchangeable labels.
fn describe(model: &Model, counters: &Counters<'_>, ix: usize, classes: &[LabelClass]) -> (SlotType, Vec<u32>) {
    let counter = counters.get(ix);
    let member = model.tables()[counter.table.ix()].members[0];
    let family = model.node(member).parents.iter().chain([&member]);
    let (mut values, mut class_places, mut labels) = (Vec::new(), Vec::new(), Vec::new());
    for (&value, node) in counters.values(ix).iter().zip(family) {
        match classes.iter().position(|class| class.nodes.contains(node)) {
            Some(class) => {
                values.push(u32::MAX);
                class_places.push(class);
                labels.push(value);
            }
            None => values.push(value),
        }
    }
    (SlotType { table: counter.table, kind: counter.kind, values, classes: class_places }, labels)
}
