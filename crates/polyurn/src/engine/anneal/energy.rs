//! ln of the model's probability of a state, from the counts alone.
//!
//! Most tables have one pseudo-count for all their cells, so what a line adds depends on its number only, and is looked up.

use crate::engine::gibbs::Tokens;
use crate::engine::lines::{Block, Pseudo};
use crate::math::LnProduct;

/// ln of the lines' part of p(sequence, hidden values), in the two parts that a path treats apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LnParts {
    /// Tables that keep their full power all along.
    pub steady: f64,
    /// Tables whose power grows.
    pub tempered: f64,
}

/// What all lines of a class add, by their number.
#[derive(Debug)]
struct ByNumber {
    steady: Vec<f64>,
    tempered: Vec<f64>,
}

/// Looks up or computes what lines add.
#[derive(Debug)]
pub struct Energy {
    /// For each class; `None` where pseudo-counts differ from line to line.
    classes: Vec<Option<ByNumber>>,
    /// For each counted table whether its power grows.
    is_tempered: Vec<bool>,
}

impl Energy {
    /// Lists what can be listed. `is_tempered` says for each counted table whether its power grows.
    pub fn new(tokens: &Tokens<'_>, is_tempered: Vec<bool>) -> Self {
        let layout = tokens.layout;
        let largest = largest_numbers(tokens);
        let of_class = |class: usize| {
            let counted = || layout.counted.iter().enumerate().filter(move |(_, counted)| counted.class == class);
            if counted().any(|(_, counted)| matches!(counted.pseudo, Pseudo::PerLine(_))) {
                return None;
            }
            let mut by_number =
                ByNumber { steady: vec![0.0; largest[class] + 1], tempered: vec![0.0; largest[class] + 1] };
            for (ix, counted) in counted() {
                let Pseudo::Even(pseudo) = counted.pseudo else { unreachable!("looked at above") };
                let list = if is_tempered[ix] { &mut by_number.tempered } else { &mut by_number.steady };
                for (n, ln) in list.iter_mut().enumerate().skip(1) {
                    let mut product = LnProduct::new();
                    counted.kind.multiply_closed_form(pseudo, n as u64, &mut product);
                    *ln += product.ln().value();
                }
            }
            Some(by_number)
        };
        let classes = (0..layout.classes.len()).map(of_class).collect();
        Energy { classes, is_tempered }
    }

    /// The parts for these counts.
    pub fn of(&self, tokens: &Tokens<'_>, counts: &[u32]) -> LnParts {
        let mut parts = LnParts { steady: 0.0, tempered: 0.0 };
        for (block, &first) in tokens.layout.blocks.iter().zip(&tokens.first_line) {
            let class = block.class as usize;
            let lines = &counts[first as usize..][..tokens.layout.interior(class)];
            match &self.classes[class] {
                Some(by_number) => {
                    parts.steady += lines.iter().map(|&n| by_number.steady[n as usize]).sum::<f64>();
                    parts.tempered += lines.iter().map(|&n| by_number.tempered[n as usize]).sum::<f64>();
                }
                None => self.add_lines(tokens, block, lines, &mut parts),
            }
        }
        parts
    }

    /// Line by line.
    fn add_lines(&self, tokens: &Tokens<'_>, block: &Block, lines: &[u32], parts: &mut LnParts) {
        let layout = tokens.layout;
        for (ix, counted) in layout.counted.iter().enumerate() {
            if counted.class != block.class as usize {
                continue;
            }
            let mut product = LnProduct::new();
            for (in_block, &n) in lines.iter().enumerate().filter(|(_, n)| **n > 0) {
                counted.kind.multiply_closed_form(layout.pseudo(ix, block, in_block), u64::from(n), &mut product);
            }
            let part = if self.is_tempered[ix] { &mut parts.tempered } else { &mut parts.steady };
            *part += product.ln().value();
        }
    }
}

/// For each class the largest number that one of its lines can hold.
pub fn largest_numbers(tokens: &Tokens<'_>) -> Vec<usize> {
    let mut largest = vec![0; tokens.layout.classes.len()];
    for block in &tokens.layout.blocks {
        let class = &mut largest[block.class as usize];
        *class = (*class).max(block.n_uses as usize);
    }
    largest
}
