//! `offheap completions SHELL`

use crate::args::Cli;
use crate::exit::Outcome;
use clap::CommandFactory;
use std::io::Write;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shell to write the script for
    shell: clap_complete::Shell,
}

/// Write the script to standard output.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "offheap", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}
