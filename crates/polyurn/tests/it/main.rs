//! Integration tests of the library, one file per theme.
#![allow(missing_docs)]

mod allocation;
mod cases;
mod decomposition;
mod em;
mod enumeration;
mod exact_reach;
mod export;
mod fit_file;
mod fit_support;
mod fractions;
mod fully_observed;
mod independent_reference;
mod invariance;
mod large_tables;
mod limits;
mod plan_brute_force;
mod predict;
mod presets;
mod prior_sizes;
mod report;
mod reversal;
mod smc_calibration;
mod smc_engine;
mod smc_errors;
mod smc_extremes;
mod smc_other_engine;
mod smc_posterior;
mod smc_support;
mod smc_unbiased;
mod stochastic;
mod support;
mod sweeps_reference;
mod sweeps_support;
mod urn_and_simulate;
mod vb;
