//! `offheap man`

use crate::exit::{Outcome, WrongUsage};
use crate::output;
use anyhow::{Context, bail};
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Arguments of `man`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Command whose page is wanted; the overview when none is named
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
    /// Write the pages of all commands into this directory instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    all: Option<PathBuf>,
}

/// Write manual pages of the whole command line, for `man -l -` or a directory of the manual path.
pub(crate) fn run(args: &Args, mut cli: clap::Command) -> anyhow::Result<Outcome> {
    cli.build();
    if let Some(directory) = &args.all {
        write_all(&cli, directory)?;
        return Ok(Outcome::Done);
    }
    let command = match &args.command {
        None => cli,
        Some(name) => match cli.find_subcommand(name) {
            Some(command) => command.clone(),
            None => bail!(WrongUsage(format!("no command is called `{name}`; `offheap help` lists them"))),
        },
    };
    output::print(&page(command)?)?;
    Ok(Outcome::Done)
}

fn write_all(cli: &clap::Command, directory: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("{}: cannot be created", directory.display()))?;
    output::write(&directory.join("offheap.1"), page(cli.clone())?.as_bytes())?;
    for command in cli.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        output::write(&directory.join(format!("{name}.1")), page(command.clone())?.as_bytes())?;
    }
    Ok(())
}

fn page(command: clap::Command) -> anyhow::Result<String> {
    let mut text = Vec::new();
    Man::new(command).render(&mut text)?;
    Ok(String::from_utf8(text)?)
}
