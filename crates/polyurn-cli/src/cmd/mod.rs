//! One file per command: arguments in, library calls, result out.

pub mod check;
mod curve;
pub mod demo;
pub mod enumerate;
pub mod export;
pub mod fit;
mod fit_found;
mod fit_shown;
mod fit_stream;
mod fit_written;
mod heldout;
pub mod info;
mod info_fit;
pub mod predict;
pub mod report;
pub mod score;
mod score_shown;
mod score_stream;
mod score_stream_shown;
pub mod select;
mod select_prior;
mod select_shown;
mod select_table;
mod select_verdict;
pub mod simulate;
mod table_shown;
