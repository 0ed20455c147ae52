use anyhow::{Context, anyhow};
use offheap_wire::SOCKET_PATH_MAX;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// What stands at a path where a socket may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum At {
    Socket,
    Nothing,
    /// Something else; its kind for a message.
    Other(&'static str),
    /// It may exist: a folder on the way, or the socket, belongs to this other user.
    Denied {
        owner: u32,
    },
}

pub(crate) fn look(path: &Path) -> At {
    match fs::metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => At::Socket,
        Ok(meta) if meta.is_dir() => At::Other("a folder"),
        Ok(meta) if meta.is_file() => At::Other("a file"),
        Ok(_) => At::Other("neither a file nor a socket"),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => At::Denied { owner: owner_on_the_way(path) },
        Err(_) => At::Nothing,
    }
}

/// Owner of the deepest part of the path that can be looked at: the one that shuts us out.
fn owner_on_the_way(path: &Path) -> u32 {
    path.ancestors().find_map(|part| fs::metadata(part).ok()).map_or(0, |meta| meta.uid())
}

pub(crate) fn own_uid() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

pub(crate) fn is_root() -> bool {
    own_uid() == 0
}

/// The sentence for a socket of another user.
pub(crate) fn permission_denied(owner: u32) -> anyhow::Error {
    anyhow!(
        "Permission denied: the socket belongs to uid {owner}, you are uid {}; run as that user or root.",
        own_uid()
    )
}

pub(crate) fn connect(path: &Path) -> anyhow::Result<UnixStream> {
    let opened = if path.as_os_str().len() <= SOCKET_PATH_MAX {
        UnixStream::connect(path)
    } else {
        connect_through_folder(path)
    };
    opened.map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => permission_denied(owner_on_the_way(path)),
        ErrorKind::NotFound => anyhow!("there is no socket at {}; the process has ended", path.display()),
        ErrorKind::ConnectionRefused => {
            anyhow!(
                "nobody listens at {}: the process has ended, or became a program without the agent by exec \
                 (OFFHEAP_CHILDREN=1 keeps it); `offheap ps` lists those that have it",
                path.display()
            )
        }
        _ => anyhow::Error::new(error).context(format!("connecting to {}", path.display())),
    })
}

/// A socket address holds 107 bytes; a longer path is reached through a descriptor of its folder.
fn connect_through_folder(path: &Path) -> io::Result<UnixStream> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let folder: File = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(folder)?;
    let mut short = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    short.push(name);
    UnixStream::connect(short)
}

/// Pid, in our namespace, of the process that listens at the other end.
pub(crate) fn peer_pid(stream: &UnixStream) -> anyhow::Result<u32> {
    match u32::try_from(peer(stream)?.pid) {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err(anyhow!("the process behind the socket runs in a pid namespace that is not visible from here")),
    }
}

/// The sentence for an agent that refused us, when it did so because it runs as another user.
pub(crate) fn refused_as_other_user(stream: &UnixStream) -> Option<anyhow::Error> {
    let owner = peer(stream).ok()?.uid;
    (own_uid() != 0 && own_uid() != owner).then(|| permission_denied(owner))
}

fn peer(stream: &UnixStream) -> anyhow::Result<libc::ucred> {
    let mut credentials = MaybeUninit::<libc::ucred>::zeroed();
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open while `stream` is borrowed; the kernel writes at most `length` bytes, the size of
    // the buffer, which is valid in every state because it was zeroed.
    let (answer, credentials) = unsafe {
        let answer = libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            credentials.as_mut_ptr().cast(),
            &raw mut length,
        );
        (answer, credentials.assume_init())
    };
    if answer != 0 {
        return Err(io::Error::last_os_error()).context("asking the kernel who listens at the socket");
    }
    Ok(credentials)
}

#[cfg(test)]
mod tests {
    use super::{At, connect, look, peer_pid};
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_path_is_told_for_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        let _listener = UnixListener::bind(at("s")).unwrap();
        for (name, expected) in
            [("s", At::Socket), ("file", At::Other("a file")), (".", At::Other("a folder")), ("none", At::Nothing)]
        {
            assert_eq!(look(&at(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_path_longer_than_an_address_is_reached() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120));
        std::fs::create_dir(&deep).unwrap();
        let short = folder.path().join("s");
        let _listener = UnixListener::bind(&short).unwrap();
        std::fs::rename(&short, deep.join("s")).unwrap();
        assert_eq!(peer_pid(&connect(&deep.join("s")).unwrap()).unwrap(), std::process::id());
    }
}
