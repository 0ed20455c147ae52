//! Allocator statistics from a live host or from a file.

use crate::analysis::saved_statistics;
use crate::client::Agent;
use crate::exit::Outcome;
use crate::input::{self, Purpose};
use anyhow::Context;
use offheap_wire::Stats;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Statistics with what has to be said about them.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) stats: Stats,
    /// Remarks for the user.
    pub(crate) notes: Vec<String>,
    /// Parts of the input were damaged and left out.
    pub(crate) partial: bool,
    /// Where it was read live.
    pub(crate) host: Option<Host>,
}

/// The live host of a reading.
#[derive(Debug)]
pub(crate) struct Host {
    agent: Agent,
}

impl Host {
    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Samples were recorded: there is somebody to name.
    pub(crate) fn is_recorded(&self) -> bool {
        self.agent.info().is_ok_and(|info| info.profile.recording_since.is_some())
    }
}

impl Reading {
    /// Read from what the user typed: a file of any name but a bare number, else a live host.
    pub(crate) fn of(source: &str) -> anyhow::Result<Self> {
        if is_file(source, Purpose::Statistics)? { Self::of_file(source) } else { Self::of_host(Agent::of(source)?) }
    }

    fn of_host(agent: Agent) -> anyhow::Result<Self> {
        Ok(Self { stats: agent.stats()?, notes: Vec::new(), partial: false, host: Some(Host { agent }) })
    }

    fn of_file(source: &str) -> anyhow::Result<Self> {
        let bytes = match source {
            "-" => input::read_stdin(Purpose::Statistics)?,
            path => input::read_file(Path::new(path), Purpose::Statistics)?,
        };
        let report = saved_statistics::read(&bytes).with_context(|| source.to_owned())?;
        Ok(Self { stats: report.stats, notes: report.notes, partial: report.partial, host: None })
    }

    /// Forgive damage, for users who asked for it.
    pub(crate) fn lenient(mut self, lenient: bool) -> Self {
        self.partial &= !lenient;
        self
    }

    /// It holds no number to show: statistics compiled out, or an instance that nobody allocates from.
    pub(crate) fn is_empty(&self) -> bool {
        self.stats.active.unwrap_or(0) == 0 && self.stats.allocated.unwrap_or(0) == 0
    }

    /// Exit code of a command that showed it.
    pub(crate) fn outcome(&self) -> Outcome {
        match (self.partial, self.is_empty()) {
            (true, _) => Outcome::Partial,
            (false, true) => Outcome::Nothing,
            (false, false) => Outcome::Done,
        }
    }
}

/// Is this the path of a report? A number is a pid, a socket is an agent, and a path that does not exist is a mistake.
pub(crate) fn is_file(source: &str, purpose: Purpose) -> anyhow::Result<bool> {
    if source == "-" {
        return Ok(true);
    }
    if source.parse::<u32>().is_ok() {
        return Ok(false);
    }
    match std::fs::metadata(Path::new(source)) {
        Ok(metadata) => Ok(!metadata.file_type().is_socket()),
        Err(error) if source.contains('/') => Err(input::explain(Path::new(source), error, purpose)),
        Err(_) => Ok(false),
    }
}
