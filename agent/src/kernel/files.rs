use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// An empty file that lives in memory.
pub(crate) fn memory_file(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: a NUL-terminated name; the descriptor is new.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// The same under the lowest free number from `lowest` on; `None` when there is none.
pub(crate) fn duplicate(fd: &OwnedFd, lowest: RawFd) -> Option<OwnedFd> {
    // SAFETY: makes a new descriptor, which is then ours.
    unsafe {
        let high = libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, lowest);
        (high >= 0).then(|| OwnedFd::from_raw_fd(high))
    }
}

/// Inode number of what a descriptor names. Sockets, memory files and pipes have one of their own each.
pub(crate) fn identity(fd: RawFd) -> Option<u64> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fills in a struct of ours, which is read only on success.
    (unsafe { libc::fstat(fd, stat.as_mut_ptr()) } == 0).then(|| unsafe { stat.assume_init() }.st_ino)
}

/// The numbers that descriptors of this process stay below.
pub(crate) fn descriptors_max() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills in a struct of ours.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    limit.rlim_cur
}

/// Permissions of what a descriptor names; of a socket, those that its file will have.
pub(crate) fn set_mode(fd: RawFd, mode: libc::mode_t) {
    // SAFETY: touches no memory.
    unsafe { libc::fchmod(fd, mode) };
}

/// One attempt to write; what failed or was cut short stays so.
pub(crate) fn write_once(fd: RawFd, bytes: &[u8]) {
    // SAFETY: reads at most the length of the slice.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
}
