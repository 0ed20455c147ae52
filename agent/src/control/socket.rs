//! The control socket's place in the file system.

use super::process;
use super::watched_fd::WatchedFd;
use crate::kernel;
use offheap_wire::{SOCKET_DIR_PREFIX, SOCKET_PATH_MAX, SOCKET_SUFFIX};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Connections that wait to be accepted.
const BACKLOG: libc::c_int = 128;
/// Stale sockets that one start looks at.
const SWEEP_LIMIT: usize = 64;
/// A socket that was just made is looked at so often before it counts as stale, which a host's start waits for.
const YOUNG_LOOKS: u32 = 10;
const YOUNG_PAUSE: Duration = Duration::from_millis(1);

/// Where the socket is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SocketPath {
    /// The private directory of this user.
    Default,
    /// `OFFHEAP_SOCKET`; `%p` stands for the process id.
    Given(String),
}

/// Why there is no socket.
#[derive(Debug)]
pub(crate) enum SocketError {
    TooLong(String),
    Directory(PathBuf, String),
    /// Another process serves it.
    Live(String),
    /// Something else than a socket is in the way.
    NotASocket(String),
    Io(String, io::Error),
}

impl fmt::Display for SocketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(path) => write!(
                f,
                "no control socket: {path} has {} bytes, a socket's path holds {SOCKET_PATH_MAX}; \
                 set OFFHEAP_SOCKET to a shorter one",
                path.len()
            ),
            Self::Directory(path, why) => write!(
                f,
                "no control socket: {} {why}; set OFFHEAP_SOCKET to a path in a directory of your own",
                path.display()
            ),
            Self::Live(path) => write!(f, "no control socket: another process serves {path}; put %p into the path"),
            Self::NotASocket(path) => write!(f, "no control socket: {path} exists and is not a socket; it is kept"),
            Self::Io(path, error) => write!(f, "no control socket at {path}: {error}"),
        }
    }
}

/// A listening socket and what is needed to remove it again.
pub(crate) struct Bound {
    pub(crate) listener: WatchedFd,
    pub(crate) path: String,
    /// Inode of the path, so that another process's socket of the same name is not removed.
    pub(crate) inode: u64,
}

impl SocketPath {
    /// Makes the socket.
    pub(crate) fn bind(&self) -> Result<Bound, SocketError> {
        let path = self.resolve()?;
        if path.len() > SOCKET_PATH_MAX {
            return Err(SocketError::TooLong(path));
        }
        let failed = |error| SocketError::Io(path.clone(), error);
        let listener = WatchedFd::adopt(kernel::socket().map_err(failed)?).map_err(failed)?;
        let fd = listener.get().ok_or_else(|| failed(io::ErrorKind::BrokenPipe.into()))?;
        // The mode of the socket file is that of the socket itself, so there is no moment with a wider one.
        kernel::set_mode(fd, 0o600);
        match kernel::bind(fd, &path) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => {
                remove_stale(&path)?;
                kernel::bind(fd, &path).map_err(failed)?;
            }
            other => other.map_err(failed)?,
        }
        kernel::listen(fd, BACKLOG).map_err(failed)?;
        let inode = fs::symlink_metadata(&path).map_err(failed)?.ino();
        Ok(Bound { listener, path, inode })
    }

    fn resolve(&self) -> Result<String, SocketError> {
        let pid = std::process::id();
        match self {
            Self::Given(path) => Ok(path.replace("%p", &pid.to_string())),
            Self::Default => {
                let directory = private_directory()?;
                sweep(&directory);
                Ok(format!("{}/{pid}{SOCKET_SUFFIX}", directory.display()))
            }
        }
    }
}

/// Removes the socket of a process that ends, if it is still its own.
pub(crate) fn remove(path: &str, inode: u64) {
    if fs::symlink_metadata(path).is_ok_and(|found| found.ino() == inode && found.file_type().is_socket()) {
        let _ = fs::remove_file(path);
    }
}

/// `/tmp/offheap-<euid>`, mode 0700, owned by the effective uid, not a link.
fn private_directory() -> Result<PathBuf, SocketError> {
    let euid = kernel::effective_user();
    let path = PathBuf::from(format!("{SOCKET_DIR_PREFIX}{euid}"));
    let refused = |why: String| Err(SocketError::Directory(path.clone(), why));
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return refused(format!("could not be made ({error})"));
        }
        _ => {}
    }
    match fs::symlink_metadata(&path) {
        Err(error) => refused(format!("could not be looked at ({error})")),
        Ok(found) if !found.is_dir() => refused("is not a directory".into()),
        Ok(found) if found.uid() != euid => refused(format!("belongs to uid {}, not {euid}", found.uid())),
        Ok(found) if found.mode() & 0o077 != 0 => match fs::set_permissions(&path, fs::Permissions::from_mode(0o700)) {
            Ok(()) => Ok(path.clone()),
            Err(error) => refused(format!("is open to others ({error})")),
        },
        Ok(_) => Ok(path.clone()),
    }
}

/// Removes sockets in the private directory whose processes are gone: Go programs end without running destructors.
fn sweep(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().take(SWEEP_LIMIT) {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_suffix(SOCKET_SUFFIX)).and_then(|pid| pid.parse::<u32>().ok());
        let Some(pid) = pid else { continue };
        if !Path::new(&format!("/proc/{pid}")).exists()
            && let Some(path) = entry.path().to_str()
        {
            // Another pid namespace may share /tmp, so only a refused connection counts.
            let _ = remove_stale(path);
        }
    }
}

/// Removes a socket that nobody listens to. A live one, or anything else, is kept.
fn remove_stale(path: &str) -> Result<(), SocketError> {
    remove_stale_pausing(path, || std::thread::sleep(YOUNG_PAUSE))
}

fn remove_stale_pausing(path: &str, mut pause: impl FnMut()) -> Result<(), SocketError> {
    let failed = |error| SocketError::Io(path.to_owned(), error);
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if !found.file_type().is_socket() {
        return Err(SocketError::NotASocket(path.to_owned()));
    }
    // Between a socket's file and its first connection stands the moment in which its owner begins to listen.
    let is_young = found.ctime() + 1 >= process::now() as i64;
    let mut looks = if is_young { YOUNG_LOOKS } else { 1 };
    while !listens(path).map_err(failed)? {
        looks -= 1;
        if looks == 0 {
            return fs::remove_file(path).map_err(failed);
        }
        pause();
    }
    Err(SocketError::Live(path.to_owned()))
}

/// Whether somebody listens to a socket; when in doubt, yes.
fn listens(path: &str) -> io::Result<bool> {
    let probe = WatchedFd::adopt(kernel::socket()?)?;
    let fd = probe.get().ok_or(io::ErrorKind::BrokenPipe)?;
    Ok(!kernel::connect(fd, path).is_err_and(|error| error.raw_os_error() == Some(libc::ECONNREFUSED)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn scratch(name: &str) -> String {
        let path = std::env::temp_dir().join(format!("offheap-test-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_kept() {
        let path = scratch("stale");
        let given = SocketPath::Given(path.clone());
        let first = given.bind().unwrap();
        assert_eq!(fs::symlink_metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert!(matches!(given.bind(), Err(SocketError::Live(_))));
        drop(first);
        let second = given.bind().unwrap();
        remove(&path, second.inode + 1);
        assert!(Path::new(&path).exists(), "another's socket was removed");
        remove(&path, second.inode);
        assert!(!Path::new(&path).exists());
    }

    #[test]
    fn a_socket_whose_owner_is_about_to_listen_is_kept() {
        let path = scratch("young");
        let owner = kernel::socket().unwrap();
        kernel::bind(owner.as_raw_fd(), &path).unwrap();
        let outcome = remove_stale_pausing(&path, || kernel::listen(owner.as_raw_fd(), 1).unwrap());
        assert!(matches!(outcome, Err(SocketError::Live(_))), "{outcome:?}");
        drop(owner);
        let mut pauses = 0;
        remove_stale_pausing(&path, || pauses += 1).unwrap();
        assert!(pauses > 0 && !Path::new(&path).exists());
    }

    #[test]
    fn a_file_in_the_way_is_kept() {
        let path = scratch("file");
        fs::write(&path, "precious").unwrap();
        assert!(matches!(SocketPath::Given(path.clone()).bind(), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn long_paths_are_refused_and_the_pid_is_filled_in() {
        let long = SocketPath::Given(format!("/tmp/{}", "x".repeat(103)));
        assert!(matches!(long.bind(), Err(SocketError::TooLong(_))));
        let path = SocketPath::Given("/run/%p/%p.sock".into()).resolve().unwrap();
        assert_eq!(path, format!("/run/{0}/{0}.sock", std::process::id()));
    }
}
