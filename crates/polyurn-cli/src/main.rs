//! `polyurn`: which rank, which structure? The evidence of hidden-variable models of counts, from the command line.

mod anneal;
mod arg_errors;
mod args;
mod chains;
mod checkpoint;
mod cmd;
mod grid;
mod load;
mod maximise;
mod output;
mod particles;
mod progress;
mod signals;
mod stream;
mod sweeps;
mod text;

use args::{Cli, Command};
use clap::Parser;
use output::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return arg_errors::report(&error),
    };
    match run(cli) {
        Ok(()) if signals::is_stopped() => ExitCode::from(signals::exit_code()),
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    signals::listen();
    match cli.command {
        Command::Score(args) => args.checkpoint.say_how_to_go_on(&args.output, cmd::score::run(&args)),
        Command::Fit(args) => args.checkpoint.say_how_to_go_on(&args.output, cmd::fit::run(&args)),
        Command::Select(args) => {
            args.contest.checkpoint.say_how_to_go_on(&args.contest.output, cmd::select::select(&args))
        }
        Command::Compare(args) => {
            args.contest.checkpoint.say_how_to_go_on(&args.contest.output, cmd::select::compare(&args))
        }
        Command::Predict(args) => cmd::predict::run(&args),
        Command::Export(args) => cmd::export::run(&args),
        Command::Enumerate(args) => cmd::enumerate::run(&args),
        Command::Simulate(args) => cmd::simulate::run(&args),
        Command::Convert(args) => cmd::convert::run(&args),
        Command::Check(args) => cmd::check::run(&args),
        Command::Info(args) => cmd::info::run(&args),
        Command::Demo(args) => cmd::demo::run(&args),
        Command::Report(args) => cmd::report::run(&args),
    }
}
