//! `polyurn`: which rank, which structure? The evidence of hidden-variable models of counts, from the command line.

mod args;
mod checkpoint;
mod cmd;
mod decomposition;
mod described;
mod grid;
mod load;
mod lock;
mod maximise;
mod output;
mod particles;
mod progress;
mod signals;
mod sweeps;
mod text;

use args::{Cli, Command};
use clap::Parser;
use output::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::report(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    signals::listen();
    match cli.command {
        Command::Score(args) => cmd::score::run(&args).map_err(|failure| args.checkpoint.how_to_go_on(failure)),
        Command::Fit(args) => cmd::fit::run(&args).map_err(|failure| args.checkpoint.how_to_go_on(failure)),
        Command::Select(args) => {
            cmd::select::select(&args).map_err(|failure| args.contest.checkpoint.how_to_go_on(failure))
        }
        Command::Compare(args) => {
            cmd::select::compare(&args).map_err(|failure| args.contest.checkpoint.how_to_go_on(failure))
        }
        Command::Predict(args) => cmd::predict::run(&args),
        Command::Export(args) => cmd::export::run(&args),
        Command::Enumerate(args) => cmd::enumerate::run(&args),
        Command::Simulate(args) => cmd::simulate::run(&args),
        Command::Check(args) => cmd::check::run(&args),
        Command::Info(args) => cmd::info::run(&args),
        Command::Demo(args) => cmd::demo::run(&args),
        Command::Report(args) => cmd::report::run(&args),
    }
}
