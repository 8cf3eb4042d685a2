//! Helpers shared by the tests of the engines that sweep: models and data to try, and how long to climb.

use crate::support::{Dag, Random, Rows, csv};
use polyurn::counts::Dataset;
use polyurn::engine::sweeps::Climb;

/// So many starts of so many sweeps: none ends early.
pub fn climb(restarts: u64, max_iter: u64) -> Climb {
    Climb { restarts, max_iter, tol: 0.0, ..Default::default() }
}

/// A random model, and data that show some of its nodes.
pub struct PartlySeen {
    /// Fewest and most nodes, and values of a node.
    pub n_nodes: (usize, usize),
    pub sizes: (usize, usize),
    /// Ties two nodes, where two can be tied.
    pub is_tied: bool,
    /// The probability that a node has a column, and that a value is missing in it.
    pub seen: f64,
    pub missing: f64,
    pub n_rows: usize,
    pub n_tokens: usize,
}

impl Default for PartlySeen {
    fn default() -> Self {
        PartlySeen { n_nodes: (2, 5), sizes: (2, 4), is_tied: false, seen: 0.6, missing: 0.0, n_rows: 6, n_tokens: 19 }
    }
}

impl PartlySeen {
    pub fn draw(&self, rng: &mut Random) -> (Dag, Rows) {
        let n_nodes = rng.between(self.n_nodes.0, self.n_nodes.1);
        let mut dag = Dag::random(rng, n_nodes, self.sizes, 0.5);
        if self.is_tied {
            dag.tie_some(rng);
        }
        let columns: Vec<usize> = (0..n_nodes).filter(|_| rng.chance(self.seen)).collect();
        let columns = if columns.is_empty() { vec![0] } else { columns };
        let rows = Rows::random(rng, &dag, columns, self.n_rows, self.n_tokens, self.missing);
        (dag, rows)
    }
}

/// Documents whose common words are the first of four hundred.
pub fn documents() -> Dataset {
    let mut rng = Random::new(17);
    let mut text = String::from("doc,word,count\n");
    for doc in 0..300 {
        for _ in 0..60 {
            let word = rng.between(0, 400) * rng.between(0, 3) / 3;
            text += &format!("d{doc},w{word},{}\n", rng.between(1, 4));
        }
    }
    csv(&text)
}
