//! The command line as a process: answers, exit codes, and what bad input gets.
#![allow(missing_docs)]

mod annealing;
mod bad_files;
mod bad_input;
mod chains;
mod commands;
mod contract;
mod decomposition;
mod documents;
mod faults;
mod fits;
mod formats;
mod online;
mod particles;
mod predict;
mod real_faults;
mod report;
mod same_models;
mod select;
mod select_bounds;
mod streams;
mod support;
mod sweeps;
