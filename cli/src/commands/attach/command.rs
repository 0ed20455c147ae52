//! What is typed, and which of the two views it gets.

use super::{lines, screen};
use crate::client::Agent;
use crate::exit::Outcome;
use crate::go_endpoint::GoEndpoint;
use crate::observe::Observer;
use crate::words::duration;
use std::io::{self, IsTerminal};
use std::time::Duration;

/// Arguments of `attach`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A pid, a socket, or a process name
    target: String,
    /// Statistics of the Go runtime: a URL, or `auto` to ask the ports on which the target itself listens
    #[arg(long, value_name = "URL|auto")]
    go: Option<GoEndpoint>,
    /// Time between two readings
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    every: Duration,
    /// Stop after this many readings
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
    /// Print one line a reading even on a terminal
    #[arg(long)]
    plain: bool,
    /// Print one JSON document a line
    #[arg(long)]
    json: bool,
}

/// Watch a host: a screen on a terminal, else one line a reading.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let every = args.every.max(Duration::from_millis(100));
    let observer = Observer::new(Agent::of(&args.target)?, args.go.clone());
    // A terminal that is `dumb` cannot place its cursor.
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    if args.json || args.plain || dumb || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return lines::run(&observer, every, args.count, args.json);
    }
    screen::run(observer, every, args.count)
}
