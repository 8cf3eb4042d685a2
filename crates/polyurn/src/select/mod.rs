//! Which of several models do the data support? Every size in a range, or any models that explain the same columns.
//!
//! All models get a lower bound by variational Bayes first, which says with whom to begin: they get a quick score. The gaps between
//! bounds and evidences that this shows say whom the bounds rule out; everybody else gets a quick score too. Those that could still be
//! the best are scored again with more work, until the lead of the best exceeds the errors, the data do not tell, or the work is
//! done. A later score replaces an earlier one: an earlier one only decides who is scored again, so that each number shown is the
//! estimate that it says it is.

mod contest;
mod effort;
mod field;
mod gaps;
mod inquiry;
mod logbook;
mod naming;
mod ranking;
mod runner;
mod scored;
mod twins;
mod verdict;

pub use contest::Contest;
pub use field::{Candidate, Entry, Field};
pub(crate) use inquiry::left_out;
pub use inquiry::{AtSize, Elsewhere, Findings, Inquiry, ROUNDS, Size};
pub use logbook::Logbook;
pub use ranking::{Ranked, Ranking};
pub use scored::Scored;
pub use twins::same_models;
pub use verdict::Verdict;
