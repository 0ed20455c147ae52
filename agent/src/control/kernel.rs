//! Calls of the kernel behind safe functions: each says how many bytes it may touch, and none can be told a wrong number.

use super::watched_fd::{self, WatchedFd};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::{io, mem, ptr};

/// The user that this process acts as now.
pub(super) fn effective_user() -> libc::uid_t {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() }
}

/// Page size of the kernel.
pub(super) fn page_size() -> u64 {
    // SAFETY: reads a constant.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Ticks a second in which the kernel tells start times.
pub(super) fn clock_ticks() -> f64 {
    // SAFETY: reads a constant.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

fn count(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

/// What has arrived, without waiting; zero bytes when the other side will send no more.
pub(super) fn receive(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: writes at most the length of the slice.
    count(unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) })
}

/// Sends what there is room for, without waiting, and without a signal when nobody will receive it.
pub(super) fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: reads at most the length of the slice.
    count(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) })
}

/// The same with a part of a file. Its SIGPIPE is directed at this thread, which must block every signal.
pub(super) fn send_file(fd: RawFd, file: &File, from: u64, bytes: usize) -> io::Result<usize> {
    let mut offset = from as libc::off_t;
    // SAFETY: changes a number of ours.
    count(unsafe { libc::sendfile(fd, file.as_raw_fd(), &raw mut offset, bytes) })
}

/// Takes a connection that waits.
pub(super) fn accept(listener: RawFd) -> io::Result<WatchedFd> {
    // SAFETY: does not ask for the address; the descriptor is new.
    unsafe {
        let fd = libc::accept4(listener, ptr::null_mut(), ptr::null_mut(), libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        if fd < 0 { Err(io::Error::last_os_error()) } else { WatchedFd::adopt(fd) }
    }
}

/// Two connected datagram sockets.
pub(super) fn socket_pair() -> io::Result<(WatchedFd, WatchedFd)> {
    let mut pair = [-1; 2];
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: fills in two numbers of ours; both descriptors are new.
    unsafe {
        if libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((WatchedFd::adopt(pair[0])?, WatchedFd::adopt(pair[1])?))
    }
}

/// The user at the other end of a Unix socket, if the kernel says.
pub(super) fn peer_user(fd: RawFd) -> Option<libc::uid_t> {
    // SAFETY: plain numbers, of which all may be zero.
    let mut peer: libc::ucred = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: fills in at most `length` bytes of ours.
    let got =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut length) };
    (got == 0).then_some(peer.uid)
}

/// Waits until one of the descriptors is ready, or for so many milliseconds; without end if that is negative.
pub(super) fn poll(entries: &mut [libc::pollfd], milliseconds: libc::c_int) {
    // SAFETY: as many entries as said.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
}

/// An empty file that lives in memory.
pub(super) fn memory_file(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: a NUL-terminated name; the descriptor is new.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(File::from(OwnedFd::from_raw_fd(watched_fd::moved_up(fd))))
    }
}
