//! A descriptor table of the agent's own.
//!
//! New descriptors take the lowest free number, whoever asks. A host that closes standard output for a moment to put
//! something else in its place (shells, daemons and test suites do) would find the agent's client or memory file there, and
//! the agent would write into what the host put over it. So the agent's threads leave the host's table: Linux gives each
//! thread the one that it asks for. Theirs holds nothing of the host's, and what the host closes does not concern it.
//!
//! One descriptor stays behind under a high number: the end of a pair by which a thread of the host wakes the agent's.
//! Where the kernel refuses, the agent lives in the host's table, as [`super::watched_fd`] describes.

use std::cell::Cell;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

thread_local! {
    /// This thread has left the host's table, or was started by one that had.
    static LEFT: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread makes descriptors in the agent's own table.
pub(super) fn is_own() -> bool {
    LEFT.get()
}

/// This thread was started by one for which [`is_own`] was so.
pub(super) fn inherit(own: bool) {
    LEFT.set(own);
}

/// Leaves the host's table, on the agent's thread before it makes its first descriptor. Threads that it starts share the
/// new one. In both are the pair, which is given back as it stands in the new one, and `log` (-1 for none), under the same
/// numbers; all others are gone. `None` when the kernel refuses.
pub(super) fn leave(pair: [RawFd; 2], log: RawFd) -> Option<[OwnedFd; 2]> {
    let mut keep = [pair[0], pair[1], log];
    keep.sort_unstable();
    let left = copy_up_to(keep[2]);
    LEFT.set(left);
    if !left {
        return None;
    }
    let mut next = 0;
    for fd in keep.into_iter().filter(|&fd| fd >= 0) {
        close_range(next, fd - 1);
        next = fd + 1;
    }
    close_range(next, RawFd::MAX);
    // SAFETY: nobody but this thread knows the new table, in which both are open.
    Some(pair.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// A copy of the table for this thread, of the numbers up to `last`. `unshare` is forbidden in many containers,
/// `close_range` in few, but it is younger (Linux 5.9).
fn copy_up_to(last: RawFd) -> bool {
    // SAFETY: neither call touches memory; the first changes nothing but this thread's table.
    unsafe {
        libc::syscall(libc::SYS_close_range, last + 1, u32::MAX, libc::CLOSE_RANGE_UNSHARE) == 0
            || libc::syscall(libc::SYS_unshare, libc::CLONE_FILES) == 0
    }
}

fn close_range(first: RawFd, last: RawFd) {
    if first > last {
        return;
    }
    // SAFETY: the table is this thread's, and those in it that it needs are kept.
    if unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0 {
        return;
    }
    let open: Vec<RawFd> = std::fs::read_dir("/proc/thread-self/fd")
        .map(|entries| entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
        .unwrap_or_default();
    for fd in open.into_iter().filter(|fd| (first..=last).contains(fd)) {
        // SAFETY: as above. The listing's own descriptor is gone already, and closing a free number does nothing.
        unsafe { libc::close(fd) };
    }
}
