//! What all runs of a stream share: the counters that are the same in all particles, where the others lie, and the tokens
//! at hand.

use super::rota::Rota;
use crate::counts::MISSING;
use crate::engine::kind::Kind;
use crate::engine::lines::{Kernel, Layout, Place};
use crate::engine::smc::prepared::{Heat, Prepared, Storage};
use crate::error::Result;
use crate::graph::{Model, NodeIndex, TableIndex};
use crate::math::LnProduct;
use crate::prior::Prior;
use hashbrown::HashMap;
use std::sync::Arc;

/// A counter by its values.
pub type CounterKey = (TableIndex, Kind, Box<[u32]>);

/// Nodes whose values pick a counter that is the same in all particles.
type CertainUse = (TableIndex, Kind, Vec<NodeIndex>);

/// A token that runs have not seen yet.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Its number among all tokens, which is the step of its random streams.
    pub step: u64,
    pub kernel: usize,
    /// Whether it has hidden values, so that it has a slot in the window.
    pub is_hidden: bool,
    first_place: usize,
}

/// The tokens of the window and those that have just come, from number `first` on.
#[derive(Debug, Default)]
pub struct Window {
    pub first: u64,
    /// Pattern of each.
    pub patterns: Vec<u32>,
    /// Values of each, one for each node.
    pub records: Vec<u32>,
    /// Places of each, as many as the kernel with the most has.
    places: Vec<Place>,
}

/// What does not differ between particles.
#[derive(Debug)]
pub struct Course {
    pub model: Arc<Model>,
    pub prior: Arc<Prior>,
    /// Seen nodes of each pattern, in the order in which patterns came.
    pub seen_sets: Vec<Vec<u32>>,
    pub layout: Layout,
    /// First lines of all blocks.
    pub storage: Storage,
    pub heat: Heat,
    /// Lines that are brought up to date together, in order: how many each has.
    pub units: Vec<u32>,
    pub unit_of_block: Vec<u32>,
    /// First line and unit of each slot of the window.
    pub slots: Vec<(u32, u32)>,
    n_lines: u64,
    is_hidden: Vec<bool>,
    certain_uses: Vec<Vec<CertainUse>>,
    /// Counters that are the same in all particles, with their tokens.
    pub certain: HashMap<CounterKey, u64>,
    /// What these come to.
    pub closed_form: LnProduct,
    pub window: Window,
    pub rota: Rota,
    pub n_tokens: u64,
    pub arrivals: Vec<Arrival>,
    arrival_places: Vec<Place>,
}

impl Course {
    /// Before the first token, for records with these seen nodes.
    pub fn new(model: Arc<Model>, prior: Arc<Prior>, seen_sets: Vec<Vec<u32>>, rota: Rota) -> Result<Self> {
        let (layout, patterns) = Layout::for_stream(&model, &prior, &seen_sets)?;
        let certain_uses = patterns.iter().map(|pattern| layout.certain_uses(&model, pattern)).collect();
        let storage = Storage { high_of_class: vec![0; layout.classes.len()], ..Default::default() };
        let heat = Heat::new(&layout, 1.0);
        Ok(Course {
            model,
            prior,
            seen_sets,
            layout,
            storage,
            heat,
            units: Vec::new(),
            unit_of_block: Vec::new(),
            slots: Vec::new(),
            n_lines: 0,
            is_hidden: patterns.iter().map(|pattern| !pattern.unseen.is_empty()).collect(),
            certain_uses,
            certain: HashMap::new(),
            closed_form: LnProduct::new(),
            window: Window::default(),
            rota,
            n_tokens: 0,
            arrivals: Vec::new(),
            arrival_places: Vec::new(),
        })
    }

    /// The pattern of a record, if there was one like it.
    pub fn pattern_of(&self, record: &[u32]) -> Option<usize> {
        let is_like = |seen: &Vec<u32>| {
            let mut seen = seen.iter().copied().peekable();
            let mut nodes = 0..record.len() as u32;
            nodes.all(|node| (record[node as usize] != MISSING) == seen.next_if_eq(&node).is_some())
        };
        self.seen_sets.iter().position(is_like)
    }

    /// Takes a token: what is certain at once, the rest when runs come to it.
    pub fn arrive(&mut self, pattern: usize, record: &[u32]) {
        self.n_tokens += 1;
        for (table, kind, nodes) in &self.certain_uses[pattern] {
            let values: Box<[u32]> = nodes.iter().map(|node| record[node.ix()]).collect();
            let pseudo = kind.pseudo_count(self.prior.table(*table), &values);
            let n_before = self.certain.entry((*table, *kind, values)).or_insert(0);
            kind.multiply_next(pseudo, *n_before, &mut self.closed_form);
            *n_before += 1;
        }
        if self.layout.kernels[pattern].touches.is_empty() {
            return;
        }
        let first_place = self.arrival_places.len();
        self.layout.add_places(&self.prior, pattern, record, &mut self.arrival_places);
        self.find_room();
        let is_hidden = self.is_hidden[pattern];
        self.arrivals.push(Arrival { step: self.n_tokens, kernel: pattern, is_hidden, first_place });
        if is_hidden {
            let places = &self.arrival_places[first_place..];
            self.window.add(pattern, record, places, most_touches(&self.layout));
            let slot = self.rota.slot_of(self.window.first + self.window.patterns.len() as u64 - 1);
            self.find_slot(slot);
        }
    }

    /// Gives lines to blocks that have none.
    pub fn find_room(&mut self) {
        for block in self.storage.first_line.len()..self.layout.blocks.len() {
            let n = self.layout.interior(self.layout.blocks[block].class as usize) as u32;
            let (first, unit) = self.add_unit(n);
            self.storage.first_line.push(first);
            self.unit_of_block.push(unit);
        }
    }

    /// Gives lines to all slots up to this one.
    pub fn find_slot(&mut self, slot: usize) {
        let n = self.layout.kernels.iter().map(|kernel| kernel.buckets.len()).max().unwrap_or(0) as u32;
        while self.slots.len() <= slot {
            let place = self.add_unit(n);
            self.slots.push(place);
        }
    }

    fn add_unit(&mut self, n: u32) -> (u32, u32) {
        // Beyond 32 bits the stream is refused before anything is looked up.
        let first = self.n_lines as u32;
        self.n_lines += u64::from(n);
        self.units.push(n);
        (first, self.units.len() as u32 - 1)
    }

    /// Lines of a particle.
    pub fn n_lines(&self) -> u64 {
        self.n_lines
    }

    /// The places of a token that has just come.
    pub fn places_of(&self, arrival: &Arrival) -> &[Place] {
        &self.arrival_places[arrival.first_place..][..self.layout.kernels[arrival.kernel].touches.len()]
    }

    /// Kernel and places of a token of the window.
    pub fn in_window(&self, token: u64) -> (usize, &[Place]) {
        let ix = (token - self.window.first) as usize;
        let kernel = self.window.patterns[ix] as usize;
        let stride = most_touches(&self.layout);
        (kernel, &self.window.places[ix * stride..][..self.layout.kernels[kernel].touches.len()])
    }

    /// Fills in a token's lines and pseudo-counts.
    pub fn fill(&self, prepared: &mut Prepared, kernel: usize, places: &[Place]) {
        prepared.fill(&self.layout, &self.storage, kernel, places, &self.heat);
    }

    /// When all runs have seen the tokens that came: forgets them, and tokens that have left the window.
    pub fn settle(&mut self, rota: Rota) {
        self.rota = rota;
        self.arrivals.clear();
        self.arrival_places.clear();
        let n_gone = (self.rota.first() - self.window.first) as usize;
        // Now and then, so that it costs little for each token.
        if 2 * n_gone >= self.window.patterns.len() {
            self.window.forget(n_gone, self.model.n_nodes(), most_touches(&self.layout));
        }
    }

    /// Finds the places of all tokens of the window anew.
    pub fn place_window(&mut self, window: Window) {
        let n_nodes = self.model.n_nodes();
        self.window = Window { first: window.first, ..Default::default() };
        let stride = most_touches(&self.layout);
        let mut places = Vec::new();
        for (ix, &pattern) in window.patterns.iter().enumerate() {
            let record = &window.records[ix * n_nodes..][..n_nodes];
            places.clear();
            self.layout.add_places(&self.prior, pattern as usize, record, &mut places);
            self.window.add(pattern as usize, record, &places, stride);
        }
        self.find_room();
        let n_slots = self.rota.n_tokens() - self.rota.first();
        if n_slots > 0 {
            self.find_slot(n_slots as usize - 1);
        }
    }
}

impl Window {
    /// Tokens from a number on, with no places yet.
    pub fn new(first: u64, patterns: Vec<u32>, records: Vec<u32>) -> Self {
        Window { first, patterns, records, places: Vec::new() }
    }

    fn add(&mut self, pattern: usize, record: &[u32], places: &[Place], stride: usize) {
        self.patterns.push(pattern as u32);
        self.records.extend_from_slice(record);
        self.places.extend_from_slice(places);
        self.places.resize(self.patterns.len() * stride, Place { block: 0, offset: 0 });
    }

    fn forget(&mut self, n: usize, n_nodes: usize, stride: usize) {
        self.first += n as u64;
        self.patterns.drain(..n);
        self.records.drain(..n * n_nodes);
        self.places.drain(..n * stride);
    }
}

fn most_touches(layout: &Layout) -> usize {
    layout.kernels.iter().map(|kernel: &Kernel| kernel.touches.len()).max().unwrap_or(0)
}
