use anyhow::{Context, anyhow};
use procfs::ProcError;
use procfs::process::Process;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// A process that may hold an agent, as far as `/proc` lets us see it.
#[derive(Debug)]
pub(crate) struct Host {
    /// Pid in our namespace.
    pub(crate) pid: u32,
    /// Pid in its own, innermost namespace: the one that names its socket.
    pub(crate) inner_pid: u32,
    /// `comm`, cut by the kernel at 15 bytes.
    pub(crate) name: String,
    pub(crate) euid: u32,
    /// Its first thread, or one that lives when that has ended: `/proc` shows the memory of a living thread alone.
    process: Process,
}

impl Host {
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let missing = || anyhow!("no process {pid}: it has ended, or runs in another pid namespace");
        let process = i32::try_from(pid).ok().and_then(|pid| Process::new(pid).ok()).ok_or_else(missing)?;
        Self::from_process(process).and_then(Self::whole_process).map_err(|error| match error {
            ProcError::NotFound(_) => missing(),
            error => anyhow!("process {pid}: {}", denied(&error)),
        })
    }

    fn from_process(process: Process) -> Result<Self, ProcError> {
        let status = process.status()?;
        let pid = u32::try_from(process.pid).unwrap_or_default();
        let inner = status.nspid.as_ref().and_then(|pids| pids.last()).and_then(|pid| u32::try_from(*pid).ok());
        let process = match living_thread(pid) {
            leader if leader == pid => process,
            thread => Process::new(i32::try_from(thread).unwrap_or_default())?,
        };
        Ok(Self { pid, inner_pid: inner.unwrap_or(pid), name: status.name, euid: status.euid, process })
    }

    /// The number of a thread (`top -H`, `ps -L`, a stack trace) means its process: `/proc` answers for both.
    fn whole_process(self) -> Result<Self, ProcError> {
        match self.process.status()?.tgid {
            leader if u32::try_from(leader) == Ok(self.pid) => Ok(self),
            leader => Self::from_process(Process::new(leader)?),
        }
    }

    /// Names that a user may call it by: `comm`, the file name of the executable, that of `argv[0]`.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let file_name = |path: &str| path.rsplit('/').next().is_some_and(|last| last == name);
        self.name == name
            || self.process.exe().is_ok_and(|exe| file_name(exe.to_string_lossy().trim_end_matches(" (deleted)")))
            || self.process.cmdline().is_ok_and(|words| words.first().is_some_and(|first| file_name(first)))
    }

    /// A process of the kernel, without a program.
    pub(crate) fn is_kernel_thread(&self) -> bool {
        self.process.cmdline().is_ok_and(|words| words.is_empty()) && self.process.exe().is_err()
    }

    pub(crate) fn exe(&self) -> Option<PathBuf> {
        self.process.exe().ok()
    }

    /// Text of `/proc/PID/maps`.
    pub(crate) fn maps(&self) -> anyhow::Result<String> {
        let bytes = fs::read(format!("/proc/{}/maps", self.process.pid)).map_err(|error| {
            let who = format!("process {} ({})", self.pid, self.name);
            let own = super::socket::own_uid();
            match error.kind() {
                std::io::ErrorKind::PermissionDenied if own != 0 && own != self.euid => {
                    anyhow!(
                        "Permission denied: {who} runs as uid {}, you are uid {own}; run as that user or root",
                        self.euid
                    )
                }
                std::io::ErrorKind::PermissionDenied => anyhow!(
                    "Permission denied: the kernel protects {who} from being looked into (other capabilities, not \
                     dumpable, or a user namespace); run as root of the host"
                ),
                _ => anyhow!("{who}: its memory map cannot be read: {error}"),
            }
        })?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A variable of the environment it was started with.
    pub(crate) fn environment(&self, name: &str) -> Option<OsString> {
        self.environment_block()
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
            .map(|value| OsString::from_vec(value.to_vec()))
    }

    /// All of them, as text.
    pub(crate) fn environment_all(&self) -> BTreeMap<String, String> {
        let block = self.environment_block();
        let entries = block.split(|byte| *byte == 0).filter_map(|entry| {
            let entry = String::from_utf8_lossy(entry);
            entry.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))
        });
        entries.collect()
    }

    /// Bytes, and not `Process::environ`: that one stops at the first entry without `=`.
    fn environment_block(&self) -> Vec<u8> {
        fs::read(format!("/proc/{}/environ", self.process.pid)).unwrap_or_default()
    }

    /// Where a path of the host is found from here: unchanged when both see the same file system, else through
    /// `/proc/PID/root`.
    pub(crate) fn path_from_here(&self, path: &std::path::Path) -> PathBuf {
        let link = |pid: &str, what: &str| fs::read_link(format!("/proc/{pid}/{what}")).ok();
        let pid = self.process.pid.to_string();
        let absolute = if path.is_absolute() {
            path.to_owned()
        } else {
            link(&pid, "cwd").unwrap_or_else(|| PathBuf::from("/")).join(path)
        };
        let (theirs, ours) = (link(&pid, "ns/mnt"), link("self", "ns/mnt"));
        let same = (theirs == ours || theirs.is_none()) && link(&pid, "root") == link("self", "root");
        if same || link(&pid, "root").is_none() {
            return absolute;
        }
        let mut rooted = OsString::from(format!("/proc/{pid}/root"));
        rooted.push(OsString::from_vec(absolute.as_os_str().as_bytes().to_vec()));
        PathBuf::from(rooted)
    }
}

/// Whether the process is gone or does nothing any more (a zombie, whose parent has not asked for it yet).
pub(crate) fn has_ended(pid: u32) -> bool {
    state(living_thread(pid)).is_none_or(is_gone)
}

/// The first thread of a process, or, when that has ended by `pthread_exit` and others go on, one of those.
///
/// `/proc/PID` is about the first thread. Of one that has ended it shows neither mappings nor executable nor descriptors,
/// though the process has them still; `/proc/TID` of another thread does.
pub(crate) fn living_thread(pid: u32) -> u32 {
    if !state(pid).is_some_and(is_gone) {
        return pid;
    }
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let numbers = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|thread| state(*thread).is_some_and(|state| !is_gone(state))).min().unwrap_or(pid)
}

/// Its letter in `/proc/PID/stat`.
fn state(pid: u32) -> Option<char> {
    i32::try_from(pid).ok().and_then(|pid| Some(Process::new(pid).ok()?.stat().ok()?.state))
}

fn is_gone(state: char) -> bool {
    matches!(state, 'Z' | 'X' | 'x')
}

/// Whether a signal or a debugger holds it, so that nothing in it can answer.
pub(crate) fn is_stopped(pid: u32) -> bool {
    state(living_thread(pid)).is_some_and(|state| matches!(state, 'T' | 't'))
}

/// Every process that can be seen, except ourselves; those that end meanwhile are left out.
pub(crate) fn hosts() -> anyhow::Result<Vec<Host>> {
    let own = std::process::id();
    let mut hosts: Vec<Host> = procfs::process::all_processes()
        .context("/proc cannot be read")?
        .filter_map(|process| Host::from_process(process.ok()?).ok())
        .filter(|host| host.pid != own && !host.is_kernel_thread())
        .collect();
    hosts.sort_by_key(|host| host.pid);
    Ok(hosts)
}

fn denied(error: &ProcError) -> String {
    match error {
        ProcError::PermissionDenied(_) => "/proc hides it from this user; run as its user or root".to_owned(),
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Host, is_stopped};
    use std::process::{Command, Stdio};

    #[test]
    fn the_number_of_a_thread_means_its_process() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: gettid has no preconditions and cannot fail.
            let _ = tell.send(unsafe { libc::gettid() });
            let _ = ended.recv();
        });
        let tid = u32::try_from(told.recv().unwrap()).unwrap();
        assert_ne!(tid, std::process::id());
        assert_eq!(Host::of(tid).unwrap().pid, std::process::id());
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn a_stopped_process_is_told_from_one_that_waits() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        assert!(!is_stopped(child.id()));
        let pid = i32::try_from(child.id()).unwrap();
        // SAFETY: the child was not waited for, so that the pid is still its own.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
        let mut status = 0;
        // SAFETY: `status` is valid for the kernel to write to; WUNTRACED reports the stop without reaping the child.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) }, pid);
        assert!(is_stopped(child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_stopped(child.id()));
    }
}
