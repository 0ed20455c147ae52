//! The offheap command line: parse, dispatch, map to an exit code.
//!
//! Layers, leaf first, each importing only what stands before it: `words`; `elf`, `cgroup`; `analysis` and `view` (pure:
//! values in, verdict, text or bytes out); `exit`, `output`, `input`, `interrupt`; `preload`; `target`, `go_endpoint`,
//! `client`, `reading`, `process_memory`, `capture`, `observe`, `load`, `serve`; `commands` (which never import each
//! other); `args`. `tests/offline/layers.rs` holds the tree to it.

mod analysis;
mod args;
mod capture;
mod cgroup;
mod client;
mod commands;
mod elf;
mod exit;
mod go_endpoint;
mod input;
mod interrupt;
mod load;
mod observe;
mod output;
mod preload;
mod process_memory;
mod reading;
mod serve;
mod target;
mod view;
mod words;

use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Parse the command line, run the command, report its failure.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    // To a script that runs a monitoring plugin, 2 is CRITICAL: a mistyped option must not be.
    let is_plugin = arguments.get(1).is_some_and(|command| command == "check");
    match args::Cli::try_parse_from(arguments) {
        Ok(cli) => exit::code(cli.command.run()),
        Err(error) => exit::usage(&error, is_plugin),
    }
}
