//! `offheap completions SHELL`

use crate::exit::Outcome;
use std::io::Write;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Shell to write the script for
    shell: clap_complete::Shell,
}

/// Write the script of the whole command line to standard output.
pub(crate) fn run(args: &Args, mut cli: clap::Command) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli, "offheap", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(Outcome::Done)
}
