//! Allocator statistics from a live host or from a file.

use crate::analysis::saved_statistics;
use crate::client::Agent;
use crate::exit::Outcome;
use crate::input::{self, Purpose};
use anyhow::Context;
use offheap_wire::{SOCKET_SUFFIX, Stats};
use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
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
    pub(crate) fn of(source: &OsStr) -> anyhow::Result<Self> {
        if is_file(source, Purpose::Statistics)? { Self::of_file(source) } else { Self::of_host(Agent::of(source)?) }
    }

    fn of_host(agent: Agent) -> anyhow::Result<Self> {
        Ok(Self { stats: agent.stats()?, notes: Vec::new(), partial: false, host: Some(Host { agent }) })
    }

    fn of_file(source: &OsStr) -> anyhow::Result<Self> {
        let bytes = if source == "-" {
            input::read_stdin(Purpose::Statistics)?
        } else {
            input::read_file(Path::new(source), Purpose::Statistics)?
        };
        let shown = source.display().to_string();
        let (content, whole) = input::unpacked(&bytes, &shown)?;
        let report = saved_statistics::read(&content).context(shown)?;
        Ok(Self { stats: report.stats, notes: report.notes, partial: report.partial || !whole, host: None })
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
/// A bare word that is also a program or a folder here (the usual thing where a service is started from its own folder)
/// is the name of a process.
pub(crate) fn is_file(source: &OsStr, purpose: Purpose) -> anyhow::Result<bool> {
    if source == "-" {
        return Ok(true);
    }
    let in_a_folder = source.as_bytes().contains(&b'/');
    if source.to_str().is_some_and(|text| text.parse::<u32>().is_ok()) {
        return Ok(false);
    }
    let path = Path::new(source);
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => Ok(false),
        Ok(metadata) => Ok(in_a_folder || !(metadata.is_dir() || metadata.is_file() && is_program(path))),
        // Whoever looks for a socket there says whose it is.
        Err(error)
            if error.kind() == ErrorKind::PermissionDenied && source.as_bytes().ends_with(SOCKET_SUFFIX.as_bytes()) =>
        {
            Ok(false)
        }
        Err(error) if in_a_folder => Err(input::explain(path, error, purpose)),
        Err(_) => Ok(false),
    }
}

/// It may be executed, and begins like a program or a script. A dump that somebody mistook a program for may not.
fn is_program(path: &Path) -> bool {
    let Ok(mut file) = std::fs::File::open(path) else { return false };
    let may_run = file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    let mut start = [0; 4];
    let read = file.read(&mut start).unwrap_or(0);
    may_run && (start[..read].starts_with(b"\x7fELF") || start[..read].starts_with(b"#!"))
}

#[cfg(test)]
mod tests {
    use super::{is_file, is_program};
    use crate::input::Purpose;

    #[test]
    fn a_bare_word_that_is_a_program_or_a_folder_is_a_process() {
        // The tests run in the folder of the crate.
        assert!(!is_file("src".as_ref(), Purpose::Statistics).unwrap());
        assert!(is_file("Cargo.toml".as_ref(), Purpose::Statistics).unwrap());
        assert!(is_program(std::path::Path::new("/proc/self/exe")));
        assert!(!is_program(std::path::Path::new("Cargo.toml")));
        assert!(!is_program(std::path::Path::new("../testdata/field/h29b-elf.heap")));
    }
}
