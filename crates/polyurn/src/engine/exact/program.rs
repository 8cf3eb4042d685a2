//! The compiled exact run: for each record the ways of its tokens as factors and increments of registers.

use super::counters::Counters;
use super::order::{Forecast, Touches, choose_order, effects, last_touch};
use super::records::{Sorted, Way, sort_records};
use super::registers::{Canonicaliser, Registers};
use super::slots::{NO_SLOT, Slots};
use super::tail::Components;
use crate::engine::Problem;
use crate::engine::kind::Kind;
use crate::engine::symmetry::{LabelClass, label_classes};
use crate::error::Result;
use crate::math::{LnProduct, Scaled, TINY};
use crate::prior::PseudoCount;
use hashbrown::HashSet;

/// What has to be known of the final state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The evidence: barren nodes are left out and finished registers forgotten.
    Evidence,
    /// The joint posterior of all counts of the full allocation: nothing is left out or forgotten.
    Posterior,
}

/// One factor of a way's predictive probability: `(offset + register)`, or one over it.
#[derive(Debug, Clone)]
pub struct Factor {
    /// The register that is read.
    pub register: u32,
    /// Pseudo-count, certain tokens, and earlier uses of the same counter by this token.
    pub offset: f64,
    /// True when the factor divides (row sums).
    pub divides: bool,
    /// The factor at register zero where the pseudo-count underflows.
    pub if_tiny: Option<Scaled>,
}

/// One way to allocate a token.
#[derive(Debug, Clone)]
pub struct CompiledWay {
    /// Its probability given the state, up to the closed form.
    pub factors: Vec<Factor>,
    /// What it adds to the registers.
    pub increments: Vec<(u32, u32)>,
}

/// All tokens of one record.
#[derive(Debug, Clone)]
pub struct Step {
    /// Number of tokens.
    pub count: u64,
    /// Ways of one token.
    pub ways: Vec<CompiledWay>,
    /// Registers that no later record touches.
    pub forget: Vec<u32>,
}

/// Tokens in unknown cells, which can go on for ever.
#[derive(Debug, Clone)]
pub struct UnknownStep {
    /// Ways of one token.
    pub ways: Vec<CompiledWay>,
    /// Counters that every such token touches.
    pub certain: Vec<CertainTouch>,
}

/// A counter that every token in an unknown cell touches.
#[derive(Debug, Clone)]
pub struct CertainTouch {
    /// Its pseudo-count.
    pub pseudo: PseudoCount,
    /// Its tokens before the first unknown one.
    pub n_before: u64,
    /// Touches per token.
    pub n_touches: u32,
    /// True for row sums.
    pub divides: bool,
}

/// A compiled run.
#[derive(Debug)]
pub struct Program<'a> {
    /// The counters, with certain tokens.
    pub counters: Counters<'a>,
    /// Which counters are uncertain.
    pub slots: Slots,
    /// Closed form of everything certain.
    pub closed_form: LnProduct,
    /// Records in the chosen order.
    pub steps: Vec<Step>,
    /// Tokens in unknown cells.
    pub unknown: Option<UnknownStep>,
    /// Layout of states.
    pub registers: Registers,
    /// Relabelling of states.
    pub canonicalisers: Vec<Canonicaliser>,
    /// Exchangeable labels that were used.
    pub classes: Vec<LabelClass>,
    /// What the run will cost.
    pub forecast: Forecast,
    /// True when some record cannot occur.
    pub impossible: bool,
    /// The largest number a register can reach, without unknown cells.
    pub max_register: u64,
}

impl<'a> Program<'a> {
    /// Compiles a problem.
    ///
    /// # Errors
    /// When one token can be allocated in more ways than can be listed.
    pub fn compile(problem: &Problem<'a>, goal: Goal) -> Result<Self> {
        problem.check_whole("exact")?;
        let sorted = sort_records(problem, goal == Goal::Posterior)?;
        let mut classes = label_classes(problem.model, problem.prior, problem.counts);
        let mut slots = Slots::new(problem.model, &sorted, &classes);
        if !labels_match(&slots, &classes) {
            classes.clear();
            slots = Slots::new(problem.model, &sorted, &classes);
        }
        let touches: Vec<Vec<Touches>> = sorted.ambiguous.iter().map(|record| effects(&slots, &record.ways)).collect();
        let kept_to_end = kept_slots(&slots, &sorted, goal);
        // Labels of nodes that no uncertain register carries (idle and barren ones) save nothing.
        let is_carried = |class: &usize| slots.types.iter().any(|slot_type| slot_type.classes.contains(class));
        let carried = (0..classes.len()).filter(is_carried);
        let label_sets: Vec<usize> =
            carried.flat_map(|class| classes[class].sets.iter().map(|set| set.len())).collect();
        let (order, forecast) = if sorted.ambiguous.is_empty() {
            (Vec::new(), Forecast { n_states: 1.0, n_transitions: 0.0 })
        } else {
            choose_order(problem.model, &sorted.ambiguous, &touches, &kept_to_end, &label_sets)
        };
        let alive = alive_ranges(&order, &touches, &kept_to_end);
        let registers = Registers::new(&slots, &classes, &alive);
        let canonicalisers = registers.canonicalisers(&classes);
        let closed_form = slots.closed_form(&sorted.counters);
        let compiler = WayCompiler { counters: &sorted.counters, slots: &slots, registers: &registers };
        let last = last_touch(&order, &touches, &kept_to_end);
        let steps = order
            .iter()
            .enumerate()
            .map(|(at, &ix)| Step {
                count: sorted.ambiguous[ix].count,
                ways: sorted.ambiguous[ix].ways.iter().map(|way| compiler.compile(way)).collect(),
                forget: (0..last.len()).filter(|&slot| last[slot] == at).map(|slot| registers.of_slot[slot]).collect(),
            })
            .collect();
        let unknown = (!sorted.unknown.is_empty()).then(|| UnknownStep {
            ways: sorted.unknown.iter().map(|way| compiler.compile(way)).collect(),
            certain: compiler.certain_of_unknown(),
        });
        let max_register = max_register(&sorted, &touches);
        let impossible = sorted.impossible || closed_form.ln().value() == f64::NEG_INFINITY;
        let Sorted { counters, .. } = sorted;
        Ok(Program {
            counters,
            slots,
            closed_form,
            steps,
            unknown,
            registers,
            canonicalisers,
            classes,
            forecast,
            impossible,
            max_register,
        })
    }

    /// Number of tokens that go through the urn one by one.
    pub fn n_steps(&self) -> u64 {
        self.steps.iter().map(|step| step.count).sum()
    }
}

/// The forecast for a given number of tokens in unknown cells on top of the seen ones.
pub fn forecast_with_unknown(program: &Program<'_>, n_unknown: u64) -> f64 {
    match &program.unknown {
        // Ways that fall into components are convolved and add no states.
        Some(unknown) if unknown.ways.len() > 1 && Components::new(&unknown.ways).is_none() => {
            let ln = super::order::ln_compositions(n_unknown as f64, unknown.ways.len() as f64);
            program.forecast.n_states * ln.exp()
        }
        _ => program.forecast.n_states,
    }
}

/// True when exchanging labels maps slots to slots of the same type. It does unless zero pseudo-counts make the records'
/// ways lopsided, and then labels are left alone.
fn labels_match(slots: &Slots, classes: &[LabelClass]) -> bool {
    let known: HashSet<(usize, &[u32])> =
        slots.slots.iter().map(|slot| (slot.slot_type, slot.labels.as_slice())).collect();
    slots.slots.iter().all(|slot| {
        let places = &slots.types[slot.slot_type].classes;
        classes.iter().enumerate().all(|(class_ix, class)| {
            class.sets.iter().flat_map(|set| set.windows(2)).all(|pair| {
                let mut labels = slot.labels.clone();
                for (label, _) in labels.iter_mut().zip(places).filter(|(_, place)| **place == class_ix) {
                    *label = if *label == pair[0] {
                        pair[1]
                    } else if *label == pair[1] {
                        pair[0]
                    } else {
                        *label
                    };
                }
                known.contains(&(slot.slot_type, labels.as_slice()))
            })
        })
    })
}

/// Slots that must survive to the end: all of them for a posterior, those that unknown cells touch otherwise.
fn kept_slots(slots: &Slots, sorted: &Sorted<'_>, goal: Goal) -> Vec<bool> {
    let mut kept = vec![goal == Goal::Posterior; slots.slots.len()];
    for way in &sorted.unknown {
        for (slot, _) in slots.touches(way) {
            kept[slot as usize] = true;
        }
    }
    kept
}

fn alive_ranges(order: &[usize], touches: &[Vec<Touches>], kept_to_end: &[bool]) -> Vec<(usize, usize)> {
    let last = last_touch(order, touches, kept_to_end);
    let mut first = vec![usize::MAX; last.len()];
    for (at, &record) in order.iter().enumerate() {
        for &(slot, _) in touches[record].iter().flatten() {
            first[slot as usize] = first[slot as usize].min(at);
        }
    }
    first.into_iter().zip(last).collect()
}

fn max_register(sorted: &Sorted<'_>, touches: &[Vec<Touches>]) -> u64 {
    let most = |ways: &[Touches]| ways.iter().flatten().map(|&(_, n)| u64::from(n)).max().unwrap_or(0);
    sorted
        .ambiguous
        .iter()
        .zip(touches)
        .map(|(record, ways)| record.count.saturating_mul(most(ways)))
        .fold(0, u64::saturating_add)
}

struct WayCompiler<'c> {
    counters: &'c Counters<'c>,
    slots: &'c Slots,
    registers: &'c Registers,
}

impl WayCompiler<'_> {
    fn compile(&self, way: &Way) -> CompiledWay {
        let mut factors: Vec<Factor> = Vec::new();
        for (at, &counter_ix) in way.iter().enumerate() {
            let slot = self.slots.of_counter[counter_ix as usize];
            if slot == NO_SLOT {
                continue;
            }
            let counter = self.counters.get(counter_ix as usize);
            // A tied table may be used several times by one token; later uses see the earlier ones.
            let used_before = way[..at].iter().filter(|&&other| other == counter_ix).count();
            let certain = self.counters.certain[counter_ix as usize] as f64 + used_before as f64;
            let divides = counter.kind == Kind::Row;
            let if_tiny = (certain == 0.0 && counter.pseudo.value < TINY).then(|| {
                let ln = counter.pseudo.ln();
                Scaled::from_ln(if divides { -ln } else { ln })
            });
            factors.push(Factor {
                register: self.registers.of_slot[slot as usize],
                offset: counter.pseudo.value + certain,
                divides,
                if_tiny,
            });
        }
        let increments =
            self.slots.touches(way).into_iter().map(|(slot, n)| (self.registers.of_slot[slot as usize], n)).collect();
        CompiledWay { factors: cancel(factors), increments }
    }

    fn certain_of_unknown(&self) -> Vec<CertainTouch> {
        (0..self.counters.len())
            .filter(|&ix| self.slots.per_unknown[ix] > 0)
            .map(|ix| {
                let counter = self.counters.get(ix);
                CertainTouch {
                    pseudo: counter.pseudo,
                    n_before: self.counters.certain[ix] + self.slots.certain_extra[ix],
                    n_touches: self.slots.per_unknown[ix],
                    divides: counter.kind == Kind::Row,
                }
            })
            .collect()
    }
}

/// Drops pairs of factors that divide each other out, as cliques and separators of a consistent prior do.
fn cancel(factors: Vec<Factor>) -> Vec<Factor> {
    let mut kept: Vec<Factor> = Vec::with_capacity(factors.len());
    for factor in factors {
        let opposite = kept.iter().position(|other| {
            other.register == factor.register
                && other.offset == factor.offset
                && other.divides != factor.divides
                && other.if_tiny.is_none()
                && factor.if_tiny.is_none()
        });
        match opposite {
            Some(at) => {
                kept.swap_remove(at);
            }
            None => kept.push(factor),
        }
    }
    kept
}
