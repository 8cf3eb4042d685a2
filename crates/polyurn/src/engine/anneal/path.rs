//! Where a path to the posterior begins.
//!
//! From the prior: at the power b the density is
//!
//! f_b(z) = (all factors of hidden values' own tables) (factors of tables that show something)^b (1 / sizes)^(1 - b)
//!
//! At b = 0 tokens are drawn one after another by the urn of the hidden values alone, and what f_0 adds up to is the product of what
//! they weigh on the way, whatever is drawn. A table with seen and unseen uses gains power as a whole; at b = 0 its
//! unseen values are uniform, which is what the sizes are for. No chain has to go ahead and no labelling is singled out, but the way
//! is far longer than from a fitted reference.

use crate::engine::Problem;
use crate::engine::lines::Layout;
use crate::error::Result;
use crate::graph::TableIndex;
use serde::{Deserialize, Serialize};

/// Where a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum AnnealPath {
    /// A reference that is fitted to chains that go ahead.
    #[default]
    Reference,
    /// The prior of the hidden values.
    Prior,
}

impl AnnealPath {
    /// As it is spelt.
    pub fn name(self) -> &'static str {
        match self {
            AnnealPath::Reference => "reference",
            AnnealPath::Prior => "prior",
        }
    }
}

/// Which tables gain power along the path from the prior: those of a node that some record shows.
fn gains_power(problem: &Problem<'_>, table: TableIndex) -> bool {
    let is_seen = problem.counts.seen_anywhere();
    problem.model.tables()[table.ix()].members.iter().any(|member| is_seen[member.ix()])
}

/// A problem's lines with the factors that gain power apart from those that do not: they must not cancel.
///
/// # Errors
/// When the problem is too large.
pub fn layout_from_prior(problem: &Problem<'_>) -> Result<Layout> {
    Layout::with_groups(problem, &|table| gains_power(problem, table))
}

/// For each counted table whether it gains power along the path from the prior.
pub fn tempered_from_prior(problem: &Problem<'_>, layout: &Layout) -> Vec<bool> {
    layout.counted.iter().map(|counted| gains_power(problem, counted.table)).collect()
}

/// The sum over all tokens of ln of the sizes of their unseen nodes whose tables gain power.
pub fn ln_sizes(problem: &Problem<'_>, layout: &Layout) -> f64 {
    let of_pattern = |pattern: usize| -> f64 {
        let unseen = problem.plan.patterns()[pattern].unseen.iter().map(|&node| problem.model.node(node));
        unseen.filter(|node| gains_power(problem, node.table)).map(|node| f64::from(node.size).ln()).sum()
    };
    let by_pattern: Vec<f64> = (0..problem.plan.patterns().len()).map(of_pattern).collect();
    let records = layout.records.kernel.iter().zip(&layout.records.count);
    records.map(|(&pattern, &count)| count as f64 * by_pattern[pattern as usize]).sum()
}
