//! Polyurn scores hidden-variable models of counts: sparse counts or a table of categories go in, and out comes the
//! evidence ln p(data | model), parameters integrated out, for any discrete DAG.
//!
//! ```
//! use polyurn::control::Control;
//! use polyurn::engine::{Problem, exact::Exact};
//! use polyurn::evidence::evidence;
//! use polyurn::graph::{BindOptions, ModelSource, bind};
//! use polyurn::prior::{Prior, PriorSettings};
//!
//! # fn main() -> polyurn::Result<()> {
//! let data = polyurn::io::read_from(
//!     "hair,eye,count\nblack,brown,4\nblack,blue,1\nfair,blue,5\n".as_bytes(),
//!     "inline",
//!     polyurn::io::Format::Csv,
//! )?;
//! let model = ModelSource::parse("class[2] -> hair eye")?;
//! let bound = bind(&model, &data, BindOptions::default())?;
//! let prior = Prior::build(&bound.model, &PriorSettings::default())?;
//! let problem = Problem::new(&bound.model, &prior, &bound.counts)?;
//! let sequence = Exact::default().ln_p_sequence(&problem, &mut Control::default())?;
//! println!("ln evidence = {}", evidence(&problem, sequence.ln_p_sequence)?.log_marginal);
//! # Ok(())
//! # }
//! ```
//!
//! # The way through
//! ```text
//! counts -> graph -> prior -> plan -> urn -> engine -> evidence -> io
//! ```
//! - [`io`] reads files into a [`counts::Dataset`], and model and prior files;
//! - [`graph`] parses a model (text, preset, contraction), and [`graph::bind`] fits it to the data's columns;
//! - [`prior`] holds pseudo-counts of every table and the Gamma prior of the intensity;
//! - [`plan`] compiles how a record's unseen nodes are summed out or drawn;
//! - [`urn`] is the Pólya-Bayes urn itself, forward and in reverse; [`simulate`] draws data;
//! - [`engine`] computes ln p(sequence): [`engine::exact`] exactly, [`engine::smc`] by particles with an error,
//!   [`engine::naive`] by counting hits; [`engine::sweeps`] bounds it from below and fits tables;
//!   [`engine::enumerate`] lists all allocations;
//! - [`evidence`] adds the total and the arrangements; [`score`] chooses the engine and does all of this, [`select`]
//!   does it for many models and ranks them; [`score::Running`] does it for a stream while it comes in; [`decomposition`] turns fitted tables into factors and marginals;
//! - [`fit`] chooses among the engines that fit tables; [`shown`] gives results as JSON and as text;
//! - [`fit_file`] keeps a fit in a file, [`predict`] applies it to new records, and [`export`] gives it to other tools;
//! - [`report`] shows results as a page with plots.
//!
//! Every run takes a [`control::Control`] (cancel, deadline, progress, checkpoint), every random draw a [`Seed`].
//!
//! # Limits
//! The exact engine reaches small problems: it foresees its cost and refuses beyond a memory limit. Particles reach
//! thousands of tokens; for tens of thousands their estimate is too low (docs/smc.md). Nodes have at most 2^32 - 2
//! values, counts are 64-bit integers.

pub mod checkpoint;
pub mod control;
pub mod counts;
pub mod decomposition;
pub mod engine;
mod error;
pub mod evidence;
pub mod export;
pub mod fit;
pub mod fit_file;
pub mod graph;
pub mod io;
pub mod math;
pub mod parallel;
pub mod plan;
pub mod predict;
pub mod prior;
pub mod report;
pub mod score;
mod seed;
pub mod select;
pub mod shown;
pub mod simd;
pub mod simulate;
pub mod text;
pub mod urn;
mod warning;

pub use error::{DataError, Error, ModelError, Place, Result, Stop};
pub use seed::{Purpose, Seed, Stream};
pub use warning::{Remedy, Warning};

/// The version of this crate, carried by every result.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
