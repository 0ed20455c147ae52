//! Descriptors in a process that belongs to somebody else.
//!
//! In the agent's own table ([`own_table`]) they are ordinary ones. In the host's table it is different. Hosts close
//! descriptors they did not open (daemons close 3 to 1023) and then reuse the numbers. So the agent keeps those it has there
//! at high numbers, out of the way of "lowest free", and looks at each one's identity before use: a number that now names
//! something else is the host's, and is neither used nor closed.

use super::own_table;
use crate::kernel;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Preferred lowest number.
const HIGH: RawFd = 800;

/// A descriptor, in the host's table with the identity it had when it was made.
pub(crate) struct WatchedFd {
    /// None only while it is dropped.
    fd: Option<OwnedFd>,
    /// None in the agent's own table.
    identity: Option<u64>,
    registered: Option<usize>,
}

impl WatchedFd {
    /// Takes over a descriptor, moving it to a high number if the limit allows.
    pub(crate) fn adopt(fd: OwnedFd) -> io::Result<Self> {
        let fd = moved_up(fd);
        if own_table::is_own() {
            return Ok(Self::in_own_table(fd));
        }
        let identity = kernel::identity(fd.as_raw_fd()).ok_or_else(io::Error::last_os_error)?;
        let registered = register(fd.as_raw_fd(), identity);
        Ok(Self { fd: Some(fd), identity: Some(identity), registered })
    }

    /// The same for one that stands in the agent's own table.
    pub(crate) fn in_own_table(fd: OwnedFd) -> Self {
        Self { fd: Some(fd), identity: None, registered: None }
    }

    /// The number, if it still names what it named at first.
    pub(crate) fn get(&self) -> Option<RawFd> {
        let fd = self.fd.as_ref()?.as_raw_fd();
        (self.identity.is_none() || kernel::identity(fd) == self.identity).then_some(fd)
    }
}

impl Drop for WatchedFd {
    fn drop(&mut self) {
        if let Some(slot) = self.registered {
            OPEN[slot].fd.store(-1, Relaxed);
        }
        let is_still_ours = self.get().is_some();
        if let Some(fd) = self.fd.take()
            && !is_still_ours
        {
            // Somebody closed it; the number is free, or names something of the host's.
            let _ = fd.into_raw_fd();
        }
    }
}

/// An empty file that lives in memory. It is in use for moments only, and so not watched.
pub(super) fn memory_file(name: &CStr) -> io::Result<File> {
    Ok(moved_up(kernel::memory_file(name)?).into())
}

/// The same under a high number, if the limit allows, and else as it is. In the agent's own table it only stays clear of
/// standard error, into which somebody might write.
fn moved_up(fd: OwnedFd) -> OwnedFd {
    let lowest = if own_table::is_own() { libc::STDERR_FILENO + 1 } else { HIGH.min(highest_reasonable()) };
    if fd.as_raw_fd() >= lowest {
        return fd;
    }
    kernel::duplicate(&fd, lowest).unwrap_or(fd)
}

/// Below the soft limit, with room above for the connections.
fn highest_reasonable() -> RawFd {
    RawFd::try_from(kernel::descriptors_max().min(1 << 20) / 4 * 3).unwrap_or(HIGH)
}

const OPEN_MAX: usize = 256;

/// What a forked child has to close: it would otherwise keep the parent's socket alive after the parent's death.
static OPEN: [OpenFd; OPEN_MAX] = [const { OpenFd { fd: AtomicI32::new(-1), identity: AtomicU64::new(0) } }; OPEN_MAX];

struct OpenFd {
    /// -1 free, -2 being filled in.
    fd: AtomicI32,
    identity: AtomicU64,
}

fn register(fd: RawFd, identity: u64) -> Option<usize> {
    let slot = OPEN.iter().position(|open| open.fd.compare_exchange(-1, -2, Relaxed, Relaxed).is_ok())?;
    OPEN[slot].identity.store(identity, Relaxed);
    OPEN[slot].fd.store(fd, Relaxed);
    Some(slot)
}

/// Closes the agent's descriptors in a forked child. Async-signal-safe.
pub(crate) fn close_all_in_child() {
    for open in &OPEN {
        let fd = open.fd.swap(-1, Relaxed);
        if fd >= 0 && kernel::identity(fd) == Some(open.identity.load(Relaxed)) {
            // SAFETY: the parent's agent opened it, and no thread of this process uses it.
            unsafe { libc::close(fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> WatchedFd {
        WatchedFd::adopt(kernel::socket().unwrap()).unwrap()
    }

    #[test]
    fn a_number_that_the_host_reused_is_left_alone() {
        let watched = socket();
        let fd = watched.get().unwrap();
        assert!(fd >= 100);
        // SAFETY: what a host does that closes everything and opens something else.
        unsafe {
            let pipe = libc::memfd_create(c"host".as_ptr(), 0);
            assert_eq!(libc::dup2(pipe, fd), fd);
            libc::close(pipe);
        }
        assert_eq!(watched.get(), None);
        drop(watched);
        assert!(kernel::identity(fd).is_some(), "the host's descriptor was closed");
        // SAFETY: ours to close here.
        unsafe { libc::close(fd) };
    }

    #[test]
    fn dropping_closes() {
        let watched = socket();
        let fd = watched.get().unwrap();
        let before = kernel::identity(fd);
        drop(watched);
        assert!(kernel::identity(fd).is_none() || kernel::identity(fd) != before);
    }
}
