//! What can be typed: the commands and their dispatch. The arguments of a command stand in its own file.

use crate::commands;
use crate::exit::Outcome;
use clap::{CommandFactory, Parser, Subcommand};

/// What every command shares, under the list of commands and on the manual page.
const WORDS: &str = "\
TARGET is a pid, the path of an agent's socket, or a process name that is unique. PROFILE is a file in any \
format that is read (jemalloc and jeprof dumps, pprof, Go's heap?debug=1, folded stacks, sample tables), `-`, an http(s) \
URL, or pid:N for a live process. Sizes are written 512KiB or 1.5GB, times 30s, 5m or 1h30m.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing to show, 4 damaged input and a partial result (0 with --lenient). \
`check` has those of monitoring plugins, `run` those of the command that it starts (126 and 127 as a shell has them).";

/// Find out who holds the off-heap memory of a Go service with cgo.
#[derive(Debug, Parser)]
#[command(name = "offheap", version, propagate_version = true, after_help = WORDS)]
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
    /// Watch a process: a live screen, or one line a reading
    Attach(commands::attach::Args),
    /// Show one reading of the allocator's statistics
    Stats(commands::stats::Args),
    /// Start, stop, reset or show profiling
    Profile(commands::profile::Args),
    /// Write a profile of what is allocated, with names, for `go tool pprof` and `offheap top`
    Dump(commands::dump::Args),
    /// Let the agent dump by itself when a limit is crossed
    Trigger(commands::trigger::Args),
    /// Turn dumps into a pprof protobuf, folded stacks or JSON
    Convert(commands::convert::Args),
    /// Rank functions, lines, files, modules, threads or Go functions by what they hold
    Top(commands::top::Args),
    /// Show the callers and callees of the largest functions
    Tree(commands::tree::Args),
    /// Show the callers and callees of functions that match
    Peek(commands::peek::Args),
    /// Compare two readings, or the native profile with the Go heap
    Diff(commands::diff::Args),
    /// Add profiles up
    Merge(commands::merge::Args),
    /// Draw a flame graph
    Flame(commands::flame::Args),
    /// Measure fragmentation: the index and its parts
    Frag(commands::frag::Args),
    /// Explain RSS by owner, every byte, with a verdict
    Ledger(commands::ledger::Args),
    /// Judge fragmentation for scripts: one line and an exit code
    Check(commands::check::Args),
    /// Print Prometheus alerting rules with the thresholds of `check`, or a Grafana dashboard
    Rules(commands::rules::Args),
    /// Serve metrics and heap profiles of several targets to Prometheus, Parca or Pyroscope
    Serve(commands::serve::Args),
    /// Look for configuration faults: limits, Go settings, allocators
    Doctor(commands::doctor::Args),
    /// Keep a series of readings in a file
    Record(commands::record::Args),
    /// Write one page with charts, ledger, size classes and flame graph
    Report(commands::report::Args),
    /// Give unused pages back to the system
    Purge(commands::purge::Args),
    /// Print a shell completion script
    Completions(commands::completions::Args),
    /// Print a manual page
    Man(commands::man::Args),
}

impl Command {
    pub(crate) fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Run(args) => commands::run::run(&args),
            Self::Ps(args) => commands::ps::run(&args),
            Self::Attach(args) => commands::attach::run(&args),
            Self::Stats(args) => commands::stats::run(&args),
            Self::Profile(args) => commands::profile::run(&args),
            Self::Dump(args) => commands::dump::run(&args),
            Self::Trigger(args) => commands::trigger::run(&args),
            Self::Convert(args) => commands::convert::run(args),
            Self::Top(args) => commands::top::run(args),
            Self::Tree(args) => commands::tree::run(&args),
            Self::Peek(args) => commands::peek::run(&args),
            Self::Diff(args) => commands::diff::run(args),
            Self::Merge(args) => commands::merge::run(&args),
            Self::Flame(args) => commands::flame::run(args),
            Self::Frag(args) => commands::frag::run(&args),
            Self::Ledger(args) => commands::ledger::run(&args),
            Self::Check(args) => commands::check::run(&args),
            Self::Rules(args) => commands::rules::run(&args),
            Self::Serve(args) => commands::serve::run(&args),
            Self::Doctor(args) => commands::doctor::run(&args),
            Self::Record(args) => commands::record::run(&args),
            Self::Report(args) => commands::report::run(&args),
            Self::Purge(args) => commands::purge::run(&args),
            Self::Completions(args) => commands::completions::run(&args, Cli::command()),
            Self::Man(args) => commands::man::run(&args, Cli::command()),
        }
    }
}
