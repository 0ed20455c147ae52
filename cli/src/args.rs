//! What can be typed: the commands and their dispatch. The arguments of a command stand in its own file.

use crate::commands;
use crate::exit::Outcome;
use clap::{Parser, Subcommand};

/// Find out who holds the off-heap memory of a Go service with cgo.
#[derive(Debug, Parser)]
#[command(name = "offheap", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One variant a command, in the order of the documentation.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print a shell completion script
    Completions(commands::completions::Args),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Completions(args) => commands::completions::run(&args),
        }
    }
}
