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
    /// Start a command under the agent
    Run(commands::run::Args),
    /// List the processes that have the agent or could use it
    Ps(commands::ps::Args),
    /// Show one reading of the allocator's statistics
    Stats(commands::stats::Args),
    /// Start, stop, reset or show profiling
    Profile(commands::profile::Args),
    /// Measure fragmentation: the index and its parts
    Frag(commands::frag::Args),
    /// Give unused pages back to the system
    Purge(commands::purge::Args),
    /// Print a shell completion script
    Completions(commands::completions::Args),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Run(args) => commands::run::run(&args),
            Self::Ps(args) => commands::ps::run(&args),
            Self::Stats(args) => commands::stats::run(&args),
            Self::Profile(args) => commands::profile::run(&args),
            Self::Frag(args) => commands::frag::run(&args),
            Self::Purge(args) => commands::purge::run(&args),
            Self::Completions(args) => commands::completions::run(&args),
        }
    }
}
