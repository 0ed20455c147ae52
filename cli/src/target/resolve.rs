use super::process::{Host, hosts};
use super::socket::{At, look, permission_denied};
use anyhow::{anyhow, bail};
use offheap_wire::{AGENT_FILE_NAME, SOCKET_DIR_PREFIX, SOCKET_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A host with its control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Pid in our namespace; `None` when a socket path was given and nobody was asked yet.
    pub(crate) pid: Option<u32>,
    pub(crate) socket: PathBuf,
}

impl Target {
    /// A pid (`1234`, `pid:1234`), the path of a socket (with a `/` in it), or the name of one process.
    pub(crate) fn resolve(text: &OsStr) -> anyhow::Result<Self> {
        if text.as_bytes().contains(&b'/') {
            return Self::of_socket(Path::new(text));
        }
        let text = &*text.to_string_lossy();
        let number = text.strip_prefix("pid:").unwrap_or(text);
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            let pid = number.parse().map_err(|_| anyhow!("`{text}` is no pid: it is larger than any"))?;
            return Self::of_host(&Host::of(pid)?);
        }
        Self::of_name(text)
    }

    pub(crate) fn of_host(host: &Host) -> anyhow::Result<Self> {
        let mut denied = None;
        let candidates = socket_candidates(host);
        for path in &candidates {
            match look(path) {
                At::Socket => return Ok(Self { pid: Some(host.pid), socket: path.clone() }),
                At::Denied { owner } => denied = denied.or(Some(owner)),
                At::Nothing | At::Other(_) => {}
            }
        }
        if let Some(owner) = denied {
            return Err(permission_denied(owner));
        }
        Err(why_no_socket(host, &candidates))
    }

    fn of_socket(path: &Path) -> anyhow::Result<Self> {
        match look(path) {
            At::Socket => Ok(Self { pid: None, socket: path.to_owned() }),
            At::Denied { owner } => Err(permission_denied(owner)),
            At::Nothing => bail!("no socket at {}; `offheap ps` lists the processes with an agent", path.display()),
            At::Other(what) => bail!("{} is {what}; a target is a pid, a socket or a process name", path.display()),
        }
    }

    fn of_name(name: &str) -> anyhow::Result<Self> {
        let called: Vec<Host> = hosts()?.into_iter().filter(|host| host.is_called(name)).collect();
        let with_agent: Vec<Self> = called.iter().filter_map(|host| Self::of_host(host).ok()).collect();
        let pids = |pids: Vec<u32>| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match (&with_agent[..], &called[..]) {
            ([one], _) => Ok(one.clone()),
            ([], []) => {
                bail!("no process is called `{name}`; give a pid, a socket path, or a name that `offheap ps` lists")
            }
            ([], [one]) => Err(Self::of_host(one).err().unwrap_or_else(|| anyhow!("process {} has ended", one.pid))),
            ([], several) => bail!(
                "{} processes are called `{name}` (pids {}) and none has an agent; start one with `offheap run -- {name}`",
                several.len(),
                pids(several.iter().map(|host| host.pid).collect())
            ),
            (several, _) => bail!(
                "{} processes with an agent are called `{name}`; give one of the pids {}",
                several.len(),
                pids(several.iter().filter_map(|target| target.pid).collect())
            ),
        }
    }
}

/// Paths at which the agent of this process may listen, most likely first.
fn socket_candidates(host: &Host) -> Vec<PathBuf> {
    let file = format!("{}{SOCKET_SUFFIX}", host.inner_pid);
    let configured = host.environment("OFFHEAP_SOCKET").filter(|template| !template.is_empty());
    let mut paths: Vec<PathBuf> = configured
        .map(|template| host.path_from_here(Path::new(&with_pid(&template, host.inner_pid))))
        .into_iter()
        .collect();
    let own = host.path_from_here(Path::new(&format!("{SOCKET_DIR_PREFIX}{}", host.euid)));
    paths.push(own.join(&file));
    // A program that was started by another user than it runs as now (root that became www-data), or one whose uids
    // are mapped: the folder carries the uid of that time. A folder that its name's user does not own is an impostor.
    let folders = host.path_from_here(Path::new("/tmp"));
    let prefix = SOCKET_DIR_PREFIX.trim_start_matches("/tmp/");
    for entry in fs::read_dir(folders).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(uid) = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse::<u32>().ok()) else { continue };
        let path = entry.path().join(&file);
        if !paths.contains(&path)
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && meta.uid() == uid)
            && path.exists()
        {
            paths.push(path);
        }
    }
    paths
}

/// `%p` in `OFFHEAP_SOCKET` stands for the pid.
fn with_pid(template: &OsStr, pid: u32) -> OsString {
    let mut path = Vec::new();
    let mut rest = template.as_bytes();
    while let Some(at) = rest.windows(2).position(|pair| pair == b"%p") {
        path.extend_from_slice(&rest[..at]);
        path.extend_from_slice(pid.to_string().as_bytes());
        rest = &rest[at + 2..];
    }
    path.extend_from_slice(rest);
    OsString::from_vec(path)
}

fn why_no_socket(host: &Host, candidates: &[PathBuf]) -> anyhow::Error {
    let who = format!("process {} ({})", host.pid, host.name);
    let maps = match host.maps() {
        Ok(maps) => maps,
        Err(error) => return error,
    };
    let looked = candidates.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
    if maps.contains(AGENT_FILE_NAME) {
        return anyhow!(
            "{who} has the agent loaded, but there is no socket at {looked}; it was switched off (OFFHEAP=off), could not \
             make a socket (OFFHEAP_LOG=1 tells why), or is a fork of the process that has one"
        );
    }
    let preloaded =
        host.environment("LD_PRELOAD").is_some_and(|value| value.to_string_lossy().contains(AGENT_FILE_NAME));
    if preloaded {
        return anyhow!(
            "{who} was started with LD_PRELOAD={AGENT_FILE_NAME}, which the loader did not take: a static binary, one \
             with other privileges, or a path that does not exist there; `offheap run -- CMD` checks this beforehand"
        );
    }
    anyhow!("{who} runs without the agent; start it with `offheap run -- CMD`, or set LD_PRELOAD to {AGENT_FILE_NAME}")
}

#[cfg(test)]
mod tests {
    use super::{Target, with_pid};
    use std::ffi::OsStr;

    #[test]
    fn the_pid_stands_in_the_socket_s_name() {
        for (template, expected) in
            [("/run/a.sock", "/run/a.sock"), ("/run/%p.sock", "/run/17.sock"), ("%p-%p%", "17-17%"), ("", "")]
        {
            assert_eq!(with_pid(OsStr::new(template), 17), OsStr::new(expected));
        }
    }

    #[test]
    fn what_is_no_target_says_why() {
        let me = std::process::id();
        for (text, expected) in [
            ("4194399".to_owned(), "no process 4194399"),
            ("99999999999999999999".to_owned(), "larger than any"),
            (format!("pid:{me}"), "runs without the agent; start it with `offheap run"),
            ("/no/such.sock".to_owned(), "no socket at /no/such.sock"),
            ("/proc/self/maps".to_owned(), "is a file; a target is"),
            ("no-process-has-this-name".to_owned(), "no process is called `no-process-has-this-name`"),
        ] {
            let error = format!("{:#}", Target::resolve(text.as_ref()).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
