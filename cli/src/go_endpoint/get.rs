//! One GET request, in our network namespace or in that of a container.

use crate::target::living_thread;
use anyhow::{Context, anyhow};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// A service under load may take a moment; one that does not speak HTTP must not hold us up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest page taken: a heap profile as text has some kilobytes a stack.
const LIMIT: u64 = 256 << 20;

/// Where connections are made.
#[derive(Debug)]
pub(super) struct Namespace(Option<File>);

impl Namespace {
    /// Our own.
    pub(super) const fn ours() -> Self {
        Self(None)
    }

    /// That of a process: its loopback interface is another one when it runs in a container.
    pub(super) fn of(pid: u32) -> anyhow::Result<Self> {
        let path = format!("/proc/{}/ns/net", living_thread(pid));
        let (theirs, ours) = (fs::read_link(&path), fs::read_link("/proc/self/ns/net"));
        if theirs.is_err() || theirs.ok() == ours.ok() {
            return Ok(Self::ours());
        }
        let file = File::open(&path).with_context(|| format!("the network of process {pid} cannot be entered"))?;
        Ok(Self(Some(file)))
    }
}

/// The body of an answer with status 200.
pub(super) fn get(url: &str, namespace: &Namespace) -> anyhow::Result<Vec<u8>> {
    let Some(file) = &namespace.0 else { return fetch(url) };
    // A thread of its own, since entering another namespace holds for the rest of a thread's life.
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            enter(file).context(
                "the process runs in another network namespace, and entering it needs root (CAP_SYS_ADMIN); give a URL \
                 that is reachable from here",
            )?;
            fetch(url)
        });
        thread.join().unwrap_or_else(|_| Err(anyhow!("{url}: asking it failed")))
    })
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: setns takes a descriptor, which `namespace` keeps open, and changes the calling thread alone, which makes
    // one request and ends.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn fetch(url: &str) -> anyhow::Result<Vec<u8>> {
    let answer = ureq::get(url).config().timeout_global(Some(PATIENCE)).proxy(None).max_redirects(3).build().call();
    let read = answer.and_then(|mut answer| answer.body_mut().with_config().limit(LIMIT).read_to_vec());
    read.map_err(|error| match error {
        ureq::Error::StatusCode(404) => {
            anyhow!("{url}: not found there (status 404); a Go service serves its heap profile at /debug/pprof/heap")
        }
        ureq::Error::StatusCode(status) => anyhow!("{url}: the server refused with status {status}"),
        ureq::Error::Timeout(_) => anyhow!("{url}: no answer within {} seconds", PATIENCE.as_secs()),
        ureq::Error::HostNotFound => anyhow!("{url}: the host name is not known; check it for typing mistakes"),
        ureq::Error::BodyExceedsLimit(limit) => anyhow!("{url}: the answer is longer than {limit} bytes"),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            anyhow!("{url}: connection refused; does the service import net/http/pprof and listen on this port?")
        }
        error => anyhow!("{url}: cannot be fetched: {error}"),
    })
}
