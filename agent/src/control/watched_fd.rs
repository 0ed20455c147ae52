//! Descriptors in a process that belongs to somebody else.
//!
//! In the agent's own table ([`own_table`]) they are ordinary ones. In the host's table it is different. Hosts close
//! descriptors they did not open (daemons close 3 to 1023) and then reuse the numbers. So the agent keeps those it has there
//! at high numbers, out of the way of "lowest free", and looks at each one's identity before use: a number that now names
//! something else is the host's, and is neither used nor closed.

use super::own_table;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Preferred lowest number.
const HIGH: libc::c_int = 800;

/// A descriptor, in the host's table with the identity it had when it was made.
pub(crate) struct WatchedFd {
    fd: RawFd,
    /// None in the agent's own table.
    inode: Option<u64>,
    registered: Option<usize>,
}

impl WatchedFd {
    /// Takes over `fd`, moving it to a high number if the limit allows.
    ///
    /// # Safety
    /// `fd` was just made by the caller and is owned by nobody else.
    pub(crate) unsafe fn adopt(fd: RawFd) -> io::Result<Self> {
        // SAFETY: by the contract.
        let fd = unsafe { moved_up(fd) };
        if own_table::is_own() {
            return Ok(Self { fd, inode: None, registered: None });
        }
        let Some(inode) = inode(fd) else {
            let error = io::Error::last_os_error();
            // SAFETY: as above.
            unsafe { libc::close(fd) };
            return Err(error);
        };
        Ok(Self { fd, inode: Some(inode), registered: register(fd, inode) })
    }

    /// The same descriptor in the agent's own table, after a copy was left in the host's.
    ///
    /// # Safety
    /// `fd` is open in the table of this thread, which is the agent's own, and owned by nobody else there.
    pub(crate) unsafe fn in_own_table(fd: RawFd) -> Self {
        Self { fd, inode: None, registered: None }
    }

    /// The number, if it still names what it named at first.
    pub(crate) fn get(&self) -> Option<RawFd> {
        (self.inode.is_none() || inode(self.fd) == self.inode).then_some(self.fd)
    }
}

impl Drop for WatchedFd {
    fn drop(&mut self) {
        if let Some(slot) = self.registered {
            OPEN[slot].fd.store(-1, Relaxed);
        }
        if self.get().is_some() {
            // SAFETY: still the descriptor that `adopt` took over.
            unsafe { libc::close(self.fd) };
        }
    }
}

/// The same under a high number, if the limit allows, and else as it is. In the agent's own table it only stays clear of
/// standard error, into which somebody might write.
///
/// # Safety
/// `fd` was just made by the caller and is owned by nobody else.
pub(crate) unsafe fn moved_up(fd: RawFd) -> RawFd {
    let lowest = if own_table::is_own() { libc::STDERR_FILENO + 1 } else { HIGH.min(highest_reasonable()) };
    if fd >= lowest {
        return fd;
    }
    // SAFETY: duplicates and closes a descriptor that is the caller's.
    unsafe {
        let high = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest);
        if high < 0 {
            return fd;
        }
        libc::close(fd);
        high
    }
}

/// Below the soft limit, with room above for the connections.
fn highest_reasonable() -> libc::c_int {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills in a struct of ours.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    libc::c_int::try_from(limit.rlim_cur.min(1 << 20) / 4 * 3).unwrap_or(HIGH)
}

/// Sockets, memory files and pipes have an inode number of their own each.
fn inode(fd: RawFd) -> Option<u64> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fills in a struct of ours, which is read only on success.
    (unsafe { libc::fstat(fd, stat.as_mut_ptr()) } == 0).then(|| unsafe { stat.assume_init() }.st_ino)
}

const OPEN_MAX: usize = 256;

/// What a forked child has to close: it would otherwise keep the parent's socket alive after the parent's death.
static OPEN: [OpenFd; OPEN_MAX] = [const { OpenFd { fd: AtomicI32::new(-1), inode: AtomicU64::new(0) } }; OPEN_MAX];

struct OpenFd {
    /// -1 free, -2 being filled in.
    fd: AtomicI32,
    inode: AtomicU64,
}

fn register(fd: RawFd, inode: u64) -> Option<usize> {
    let slot = OPEN.iter().position(|open| open.fd.compare_exchange(-1, -2, Relaxed, Relaxed).is_ok())?;
    OPEN[slot].inode.store(inode, Relaxed);
    OPEN[slot].fd.store(fd, Relaxed);
    Some(slot)
}

/// Closes the agent's descriptors in a forked child. Async-signal-safe.
pub(crate) fn close_all_in_child() {
    for open in &OPEN {
        let fd = open.fd.swap(-1, Relaxed);
        if fd >= 0 && inode(fd) == Some(open.inode.load(Relaxed)) {
            // SAFETY: the parent's agent opened it, and no thread of this process uses it.
            unsafe { libc::close(fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> WatchedFd {
        // SAFETY: a fresh socket, given away at once.
        unsafe { WatchedFd::adopt(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0)) }.unwrap()
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
        assert!(inode(fd).is_some(), "the host's descriptor was closed");
        // SAFETY: ours to close here.
        unsafe { libc::close(fd) };
    }

    #[test]
    fn dropping_closes() {
        let watched = socket();
        let fd = watched.get().unwrap();
        let inode_before = inode(fd);
        drop(watched);
        assert!(inode(fd).is_none() || inode(fd) != inode_before);
    }
}
