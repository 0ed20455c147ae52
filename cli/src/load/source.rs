//! Where a profile comes from.

use crate::client::Agent;
use crate::exit::WrongUsage;
use crate::go_endpoint;
use crate::input::{self, Purpose};
use anyhow::{anyhow, bail};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Longest wait for a URL: Go's heap endpoint answers at once, a `?seconds=30` delta after that time.
const URL_PATIENCE: Duration = Duration::from_secs(180);
/// Largest answer taken from a URL.
const URL_LIMIT: u64 = 1 << 30;

/// A PROFILE as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// `-`
    Stdin,
    /// `http://…` or `https://…`
    Url(String),
    /// `pid:TARGET`: a process with the agent in it.
    Process(OsString),
    /// The Go heap profile of this process, asked on the ports on which it listens itself. Nothing that can be typed alone
    /// means this: `diff --go auto` says of which process.
    GoHeapOf(u32),
    /// Anything else. A name that does not exist is an error, never fetched from anywhere.
    File(PathBuf),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(if text == "-" {
            Self::Stdin
        } else if text.starts_with("http://") || text.starts_with("https://") {
            Self::Url(text.to_owned())
        } else if let Some(target) = text.strip_prefix("pid:") {
            Self::Process(target.into())
        } else {
            Self::File(text.into())
        })
    }
}

/// What was typed; a file may have a name that is no UTF-8.
impl From<OsString> for Source {
    fn from(text: OsString) -> Self {
        match text.to_str().map(Self::from_str) {
            Some(Ok(source)) => source,
            _ => Self::File(text.into()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdin => f.write_str("standard input"),
            Self::Url(url) => f.write_str(url),
            Self::Process(target) => write!(f, "pid:{}", target.display()),
            Self::GoHeapOf(pid) => write!(f, "Go heap of process {pid}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// The bytes of a source, and the live process that they came from.
pub(super) struct Input {
    pub(super) bytes: Vec<u8>,
    pub(super) pid: Option<u32>,
    /// What is to be said of how it was read.
    pub(super) notes: Vec<String>,
}

impl Input {
    /// Of no live process.
    pub(super) fn of_file(bytes: Vec<u8>) -> Self {
        Self { bytes, pid: None, notes: Vec::new() }
    }
}

impl Source {
    /// What `--go auto` means beside this native profile: the Go heap of the same live process. Everything else is itself.
    ///
    /// # Errors
    /// When the native profile is of no live process.
    pub(crate) fn or_auto(&self, native: &Self) -> anyhow::Result<Self> {
        match (self, native) {
            (Self::File(path), Self::Process(target)) if path.as_os_str() == "auto" => {
                Ok(Self::GoHeapOf(Agent::of(target)?.pid()?))
            }
            (Self::File(path), _) if path.as_os_str() == "auto" => {
                bail!(WrongUsage(
                    "--go auto asks the process that the native profile is of: write that as pid:N".into()
                ))
            }
            _ => Ok(self.clone()),
        }
    }

    /// The name says that folded stacks are in it.
    pub(super) fn is_folded_by_name(&self) -> bool {
        let Self::File(path) = self else { return false };
        let plain =
            path.extension().filter(|extension| *extension == "gz").and_then(|_| path.file_stem()).map(Path::new);
        let extension = plain.unwrap_or(path).extension();
        extension.is_some_and(|extension| extension == "folded" || extension == "collapsed")
    }

    /// The file name without its directories; anything else as it was typed.
    pub(crate) fn short(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned(),
            other => other.to_string(),
        }
    }

    /// Read it whole.
    pub(super) fn read(&self) -> anyhow::Result<Input> {
        match self {
            Self::Stdin => input::read_stdin(Purpose::Profile).map(Input::of_file),
            Self::Url(url) => fetch(url).map(Input::of_file),
            Self::Process(target) => read_process(target),
            Self::GoHeapOf(pid) => go_endpoint::heap_profile(*pid).map(Input::of_file),
            Self::File(path) => input::read_file(path, Purpose::Profile).map(Input::of_file),
        }
    }
}

/// The sample table of a live process, or its dump where the table cannot be had, which is said.
fn read_process(target: &OsStr) -> anyhow::Result<Input> {
    let agent = Agent::of(target)?;
    let capture = agent.profile()?;
    Ok(Input { bytes: capture.bytes, pid: Some(agent.pid()?), notes: capture.note.into_iter().collect() })
}

fn fetch(url: &str) -> anyhow::Result<Vec<u8>> {
    let answer = ureq::get(url).config().timeout_global(Some(URL_PATIENCE)).build().call();
    let read = answer.and_then(|mut answer| answer.body_mut().with_config().limit(URL_LIMIT).read_to_vec());
    read.map_err(|error| match error {
        ureq::Error::StatusCode(404) => {
            anyhow!("{url}: not found there (status 404); a Go service serves its heap profile at /debug/pprof/heap")
        }
        ureq::Error::StatusCode(status) => anyhow!("{url}: the server refused with status {status}"),
        ureq::Error::Timeout(_) => anyhow!("{url}: no answer within {} seconds", URL_PATIENCE.as_secs()),
        ureq::Error::HostNotFound => anyhow!("{url}: the host name is not known; check it for typing mistakes"),
        ureq::Error::BodyExceedsLimit(limit) => anyhow!("{url}: the answer is longer than {limit} bytes"),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            anyhow!("{url}: connection refused; does the service import net/http/pprof and listen on this port?")
        }
        error => anyhow!("{url}: cannot be fetched: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::Source;

    #[test]
    fn what_was_typed() {
        for (text, expected) in [
            ("-", Source::Stdin),
            ("http://localhost:6060/debug/pprof/heap", Source::Url("http://localhost:6060/debug/pprof/heap".into())),
            ("pid:17", Source::Process("17".into())),
            ("httpd.heap", Source::File("httpd.heap".into())),
            ("./-", Source::File("./-".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }
}
