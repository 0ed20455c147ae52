use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::{io, mem, ptr};

/// Stream sockets wait for nothing, and programs that the host starts do not get them.
const FLAGS: libc::c_int = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;

fn count(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_| io::Error::last_os_error())
}

fn done(returned: libc::c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// # Safety
/// `fd` was just made by the caller, or is negative.
unsafe fn owned(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: by the contract.
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// A Unix stream socket.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: the descriptor is new.
    unsafe { owned(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | FLAGS, 0)) }
}

/// Two connected datagram sockets.
pub(crate) fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [-1; 2];
    // SAFETY: fills in two numbers of ours; both descriptors are new.
    unsafe {
        done(libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM | FLAGS, 0, pair.as_mut_ptr()))?;
        Ok((owned(pair[0])?, owned(pair[1])?))
    }
}

/// Gives a socket its place in the file system.
pub(crate) fn bind(fd: RawFd, path: &str) -> io::Result<()> {
    let (address, length) = address(path)?;
    // SAFETY: an address of the length given.
    done(unsafe { libc::bind(fd, (&raw const address).cast(), length) })
}

/// Connects a socket to the one at a path.
pub(crate) fn connect(fd: RawFd, path: &str) -> io::Result<()> {
    let (address, length) = address(path)?;
    // SAFETY: an address of the length given.
    done(unsafe { libc::connect(fd, (&raw const address).cast(), length) })
}

fn address(path: &str) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    let path = CString::new(path)?;
    // SAFETY: all zeros is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_bytes_with_nul();
    if bytes.len() > address.sun_path.len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    for (into, &byte) in address.sun_path.iter_mut().zip(bytes) {
        *into = byte as libc::c_char;
    }
    Ok((address, (mem::offset_of!(libc::sockaddr_un, sun_path) + bytes.len()) as libc::socklen_t))
}

/// Lets so many connections wait.
pub(crate) fn listen(fd: RawFd, backlog: libc::c_int) -> io::Result<()> {
    // SAFETY: touches no memory.
    done(unsafe { libc::listen(fd, backlog) })
}

/// Takes a connection that waits.
pub(crate) fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: does not ask for the address; the descriptor is new.
    unsafe { owned(libc::accept4(listener, ptr::null_mut(), ptr::null_mut(), FLAGS)) }
}

/// What has arrived, without waiting; zero bytes when the other side will send no more.
pub(crate) fn receive(fd: RawFd, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: writes at most the length of the slice.
    count(unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT) })
}

/// Sends what there is room for, without waiting, and without a signal when nobody will receive it.
pub(crate) fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: reads at most the length of the slice.
    count(unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) })
}

/// The same with a part of a file. Its SIGPIPE is directed at this thread, which must block every signal.
pub(crate) fn send_file(fd: RawFd, file: &File, from: u64, bytes: usize) -> io::Result<usize> {
    let mut offset = from as libc::off_t;
    // SAFETY: changes a number of ours.
    count(unsafe { libc::sendfile(fd, file.as_raw_fd(), &raw mut offset, bytes) })
}

/// The user at the other end of a Unix socket, if the kernel says.
pub(crate) fn peer_user(fd: RawFd) -> Option<libc::uid_t> {
    // SAFETY: plain numbers, of which all may be zero.
    let mut peer: libc::ucred = unsafe { mem::zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: fills in at most `length` bytes of ours.
    let got =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, (&raw mut peer).cast(), &raw mut length) };
    (got == 0).then_some(peer.uid)
}

/// Waits until one of the descriptors is ready, or for so many milliseconds; without end if that is negative.
pub(crate) fn poll(entries: &mut [libc::pollfd], milliseconds: libc::c_int) {
    // SAFETY: as many entries as said.
    unsafe { libc::poll(entries.as_mut_ptr(), entries.len() as libc::nfds_t, milliseconds) };
}
