//! The values of a column or node, and how people call them.

use std::borrow::Cow;

/// Names of the values 0, 1, .. of a column or node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// Each value has a name of its own.
    Named(Vec<String>),
    /// Values are numbers: value `v` is called `first + v`. Costs no memory, whatever the size.
    Indexed {
        /// How many values there are.
        size: u32,
        /// The number by which value 0 is called: 1 in one-based files, 0 for hidden nodes.
        first: u32,
    },
}

/// Labels that stand for a missing value in other tools.
const LIKE_MISSING: [&str; 11] = ["na", "n/a", "#n/a", "<na>", "nan", "null", "none", "nil", "?", "-", "."];

impl Labels {
    /// A label that stands for a missing value in other tools, if there is one.
    pub fn like_missing(&self) -> Option<&str> {
        let Labels::Named(names) = self else { return None };
        let is_like = |name: &&String| LIKE_MISSING.contains(&name.trim().to_ascii_lowercase().as_str());
        names.iter().find(is_like).map(String::as_str)
    }

    /// Number of values.
    pub fn len(&self) -> u32 {
        match self {
            Labels::Named(names) => names.len() as u32,
            Labels::Indexed { size, .. } => *size,
        }
    }

    /// True when there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What value `value` is called.
    ///
    /// # Panics
    /// When the value is out of range.
    pub fn name(&self, value: u32) -> Cow<'_, str> {
        match self {
            Labels::Named(names) => Cow::Borrowed(&names[value as usize]),
            Labels::Indexed { size, first } => {
                assert!(value < *size, "value {value} of a column of size {size}");
                Cow::Owned((u64::from(*first) + u64::from(value)).to_string())
            }
        }
    }
}
