//! One file per command: arguments in, library calls, result out.

pub mod check;
pub mod convert;
mod curve;
pub mod demo;
pub mod enumerate;
pub mod export;
pub mod fit;
mod fit_stream;
mod fit_written;
mod heldout;
pub mod info;
mod info_fit;
pub mod predict;
pub mod report;
pub mod score;
mod score_stream;
mod score_stream_shown;
pub mod select;
mod select_prior;
pub mod simulate;
