//! What is done for one token: which lines its hidden states are weighed by, and which of them it adds to.
//!
//! A kernel is compiled once per pattern. It is a list of buckets, each a table of states: usually one bucket, whose
//! states are all joint values of the unseen nodes; for larger hidden parts the buckets of the plan's elimination, with
//! messages between them. The weight of a state is a product of (pseudo-count + line) over cells, divided by the same
//! over rows.

use crate::graph::NodeIndex;

/// States of one bucket. The variable that is drawn here is fastest; the others, drawn before, are its separator.
#[derive(Debug, Clone)]
pub struct BucketShape {
    /// Number of states.
    pub n_states: usize,
    /// Values of the variable that is drawn here.
    pub size: usize,
    /// The bucket that takes this one's message.
    pub parent: Option<usize>,
    /// For each state of the parent the entry of this bucket's message.
    pub message_of_parent_state: Vec<u32>,
    /// The nodes whose values a state stands for, and their sizes; the last is fastest.
    pub nodes: Vec<(NodeIndex, u32)>,
}

impl BucketShape {
    /// A bucket on its own.
    pub fn root(n_states: usize, nodes: Vec<(NodeIndex, u32)>) -> Self {
        BucketShape { n_states, size: n_states, parent: None, message_of_parent_state: Vec::new(), nodes }
    }
}

/// A line that every token of the pattern adds one to.
#[derive(Debug)]
pub struct Touch {
    /// Class of the line.
    pub class: usize,
    /// The nodes whose values pick it.
    pub nodes: Vec<NodeIndex>,
    /// The bucket whose state decides.
    pub bucket: usize,
    /// For each state of the bucket the line within the block.
    pub offsets: Vec<u32>,
}

/// A factor of a state's weight: pseudo-count plus line.
#[derive(Debug)]
pub struct Term {
    /// Whose pseudo-counts.
    pub counted: usize,
    /// The touch with the same line.
    pub touch: usize,
    /// The bucket it multiplies into.
    pub bucket: usize,
    /// Cells multiply, rows divide.
    pub is_numerator: bool,
    /// How often.
    pub power: u32,
    /// For each state of the bucket the line within the block.
    pub offsets: Vec<u32>,
    /// Terms of the same tied table that the token has used before: where they hit the same line, this one sees one more.
    pub earlier: Vec<usize>,
}

/// Where a node's value stands in the number of a bucket's state.
#[derive(Debug, Clone, Copy)]
pub struct Digit {
    pub bucket: usize,
    stride: usize,
    pub size: usize,
}

impl Digit {
    /// The node's value in a state.
    pub fn of(self, state: usize) -> usize {
        state / self.stride % self.size
    }
}

/// A pattern, compiled.
#[derive(Debug)]
pub struct Kernel {
    pub buckets: Vec<BucketShape>,
    pub touches: Vec<Touch>,
    pub terms: Vec<Term>,
    /// False when a tied table is used twice in different buckets: draws then leave the token's own uses out, and a
    /// weight corrects for that.
    pub is_exact: bool,
    /// Terms of each bucket, cells first.
    pub terms_of: Vec<Vec<usize>>,
    /// Their powers.
    pub powers: Vec<Vec<u32>>,
    /// How many of them are cells.
    pub n_numerators: Vec<usize>,
    /// For each bucket, state and term the line within the term's block.
    pub offsets: Vec<Vec<u32>>,
    /// For each term its place among those of its bucket.
    pub place_in_bucket: Vec<usize>,
    /// Whether some term sees the token's own earlier uses of a tied table.
    pub is_tied: bool,
    /// Buckets that send their message to each bucket.
    pub children: Vec<Vec<usize>>,
    /// First state of each bucket among the states of all.
    pub first_state: Vec<usize>,
    /// First entry of each bucket's message among the entries of all.
    pub first_message: Vec<usize>,
    n_states: usize,
    n_messages: usize,
}

impl Kernel {
    /// Puts terms and buckets together.
    pub fn new(buckets: Vec<BucketShape>, touches: Vec<Touch>, terms: Vec<Term>, is_exact: bool) -> Self {
        let mut terms_of = vec![Vec::new(); buckets.len()];
        for wanted in [true, false] {
            let of_kind = terms.iter().enumerate().filter(|(_, term)| term.is_numerator == wanted);
            of_kind.for_each(|(ix, term)| terms_of[term.bucket].push(ix));
        }
        let powers = terms_of.iter().map(|of| of.iter().map(|&ix| terms[ix].power).collect()).collect();
        let n_numerators = terms_of.iter().map(|of| of.iter().filter(|&&ix| terms[ix].is_numerator).count()).collect();
        let mut place_in_bucket = vec![0; terms.len()];
        for of_bucket in &terms_of {
            of_bucket.iter().enumerate().for_each(|(place, &ix)| place_in_bucket[ix] = place);
        }
        let offsets = buckets.iter().zip(&terms_of).map(|(bucket, of)| {
            (0..bucket.n_states).flat_map(|state| of.iter().map(move |&ix| (ix, state))).collect::<Vec<_>>()
        });
        let offsets = offsets
            .map(|pairs| pairs.into_iter().map(|(ix, state): (usize, usize)| terms[ix].offsets[state]).collect())
            .collect();
        let is_tied = terms.iter().any(|term| !term.earlier.is_empty());
        let mut children = vec![Vec::new(); buckets.len()];
        let (mut first_state, mut first_message) = (Vec::new(), Vec::new());
        let (mut n_states, mut n_messages) = (0, 0);
        for (ix, bucket) in buckets.iter().enumerate() {
            if let Some(parent) = bucket.parent {
                children[parent].push(ix);
            }
            first_state.push(n_states);
            first_message.push(n_messages);
            n_states += bucket.n_states;
            n_messages += bucket.n_states / bucket.size;
        }
        Kernel {
            buckets,
            touches,
            terms,
            is_exact,
            terms_of,
            powers,
            n_numerators,
            offsets,
            place_in_bucket,
            is_tied,
            children,
            first_state,
            first_message,
            n_states,
            n_messages,
        }
    }

    /// The unseen nodes of the pattern, ascending.
    pub fn unseen_nodes(&self) -> Vec<NodeIndex> {
        let mut nodes: Vec<NodeIndex> =
            self.buckets.iter().flat_map(|bucket| &bucket.nodes).map(|node| node.0).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// How to read the value of an unseen node off a state.
    pub fn digit(&self, node: NodeIndex) -> Digit {
        for (bucket, shape) in self.buckets.iter().enumerate() {
            let mut stride = 1;
            for &(other, size) in shape.nodes.iter().rev() {
                if other == node {
                    return Digit { bucket, stride, size: size as usize };
                }
                stride *= size as usize;
            }
        }
        unreachable!("a node of the pattern is in one of its buckets")
    }

    /// Values of the unseen nodes, ascending by node, when each bucket is in this state.
    pub fn values_of_states(&self, state_of: &dyn Fn(usize) -> usize) -> Vec<u32> {
        let mut values: Vec<(NodeIndex, u32)> = Vec::new();
        for (ix, bucket) in self.buckets.iter().enumerate() {
            let mut rest = state_of(ix);
            for &(node, size) in bucket.nodes.iter().rev() {
                values.push((node, (rest % size as usize) as u32));
                rest /= size as usize;
            }
        }
        // A node may be in several buckets, with the same value in each.
        values.sort_unstable();
        values.dedup();
        values.into_iter().map(|(_, value)| value).collect()
    }

    /// States of all buckets together.
    pub fn n_states(&self) -> usize {
        self.n_states
    }

    /// Entries of all messages together.
    pub fn n_messages(&self) -> usize {
        self.n_messages
    }

    /// Largest number of states of one bucket.
    pub fn max_states(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.n_states).max().unwrap_or(1)
    }

    /// Largest number of states times terms of one bucket.
    pub fn most_offsets(&self) -> usize {
        self.offsets.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether a bucket has nothing to do with others.
    pub fn stands_alone(&self, bucket: usize) -> bool {
        self.buckets[bucket].parent.is_none() && self.children[bucket].is_empty()
    }

    /// Work for one token of one particle, in terms times states.
    pub fn cost(&self) -> f64 {
        let of_bucket = |ix: usize| (self.buckets[ix].n_states * (self.terms_of[ix].len() + 1)) as f64;
        (0..self.buckets.len()).map(of_bucket).sum::<f64>() + self.touches.len() as f64
    }
}
