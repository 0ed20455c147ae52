//! `offheap run -- CMD…`

use crate::exit::Outcome;
use crate::output;
use crate::preload::{NotStartable, Program, agent_file, refusal};
use anyhow::Context;
use offheap_wire::SOCKET_PATH_MAX;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Profile from the start, with one sample in 2^LG bytes on average (19 when not given)
    #[arg(long, value_name = "LG", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(u8).range(1..=40))]
    profile: Option<u8>,
    /// Where the agent listens; %p stands for the pid
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Options of jemalloc, added to those of the environment
    #[arg(long, value_name = "CONF")]
    malloc_conf: Option<OsString>,
    /// The agent's file, when it is not beside this program; or set OFFHEAP_AGENT
    #[arg(long, value_name = "PATH")]
    agent: Option<PathBuf>,
    /// Command to start, with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Become the command, with the agent preloaded.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let (command, arguments) = args.command.split_first().context("no command was given")?;
    let program = match Program::find(command) {
        Ok(program) => program,
        Err(why) => return Ok(not_started(why)),
    };
    let agent = agent_file(args.agent.as_deref())?;
    if let Some(why) = refusal(&program.binary, &agent)? {
        anyhow::bail!("{why}");
    }
    let (preload, others) = preload(std::env::var_os("LD_PRELOAD").as_deref(), &agent);
    if let Some(other) = others {
        output::note(&format!("LD_PRELOAD names another allocator, {other}; the agent is put before it"));
    }
    let mut command = Command::new(&program.path);
    command.arg0(&args.command[0]).args(arguments).env("LD_PRELOAD", preload);
    if let Some(lg) = args.profile {
        command.env("OFFHEAP_PROFILE", lg.to_string());
    }
    if let Some(socket) = &args.socket {
        // The host may change its directory before we are asked for it.
        let absolute = std::path::absolute(socket).with_context(|| format!("--socket {}", socket.display()))?;
        if let Some(why) = unusable_socket(&absolute) {
            output::note(&format!(
                "--socket {}: {why}; the command starts without a control socket",
                absolute.display()
            ));
        }
        command.env("OFFHEAP_SOCKET", absolute);
    }
    if let Some(conf) = &args.malloc_conf {
        command.env("MALLOC_CONF", appended(std::env::var_os("MALLOC_CONF").as_deref(), ",", conf));
    }
    let error = command.exec();
    Ok(not_started(match error.kind() {
        std::io::ErrorKind::NotFound => NotStartable::NotFound(format!("{}: {error}", program.path.display())),
        _ => NotStartable::NotExecutable(format!("{}: {error}", program.path.display())),
    }))
}

/// Why the agent will not be able to make this socket. A service is better started without one than not at all, and the
/// agent itself says nothing unless asked.
fn unusable_socket(template: &Path) -> Option<String> {
    // `exec` keeps our pid.
    let path = template.to_string_lossy().replace("%p", &std::process::id().to_string());
    let place = Path::new(&path);
    if path.len() > SOCKET_PATH_MAX {
        return Some(format!("it has {} bytes, and the path of a socket at most {SOCKET_PATH_MAX}", path.len()));
    }
    match place.parent() {
        Some(folder) if !folder.is_dir() => Some(format!("there is no folder {}; create it first", folder.display())),
        _ => match std::fs::metadata(place) {
            Ok(metadata) if !metadata.file_type().is_socket() => {
                Some("something else stands there; give another path".to_owned())
            }
            _ => None,
        },
    }
}

/// Codes of shells: 127 when there is no such command, 126 when it cannot be executed.
fn not_started(why: NotStartable) -> Outcome {
    match why {
        NotStartable::NotFound(why) => {
            output::note(&why);
            Outcome::Code(127)
        }
        NotStartable::NotExecutable(why) => {
            output::note(&why);
            Outcome::Code(126)
        }
    }
}

/// The value of `LD_PRELOAD`, and another allocator in it.
///
/// The agent comes after what is there, since a library that wants to stand first (a sanitizer) checks that it does;
/// but before another allocator, because the first one of two answers `malloc`.
fn preload(existing: Option<&OsStr>, agent: &Path) -> (OsString, Option<String>) {
    const ALLOCATORS: [&str; 5] = ["libjemalloc", "libtcmalloc", "libmimalloc", "libhoard", "liboffheap_agent"];
    let Some(existing) = existing.filter(|value| !value.is_empty()) else { return (agent.into(), None) };
    let text = existing.to_string_lossy();
    let names = text.split([':', ' ']).filter(|name| !name.is_empty());
    let is_allocator = |name: &&str| ALLOCATORS.iter().any(|allocator| name.contains(allocator));
    match names.clone().find(is_allocator) {
        // Already there, as when `run` is nested.
        Some(name) if Path::new(name) == agent => (existing.to_owned(), None),
        Some(name) => (appended(Some(agent.as_os_str()), ":", existing), Some(name.to_owned())),
        None => (appended(Some(existing), ":", agent.as_os_str()), None),
    }
}

fn appended(existing: Option<&OsStr>, separator: &str, more: &OsStr) -> OsString {
    let mut value = existing.map(OsStr::to_owned).unwrap_or_default();
    if !value.is_empty() {
        value.push(separator);
    }
    value.push(more);
    value
}

#[cfg(test)]
mod tests {
    use super::{preload, unusable_socket};
    use std::ffi::OsStr;
    use std::path::Path;

    #[test]
    fn other_preloads_are_kept_and_another_allocator_comes_second() {
        let agent = Path::new("/a/liboffheap_agent.so");
        for (existing, expected, other) in [
            (None, "/a/liboffheap_agent.so", None),
            (Some(""), "/a/liboffheap_agent.so", None),
            (Some("/x/libasan.so"), "/x/libasan.so:/a/liboffheap_agent.so", None),
            (Some("/a/liboffheap_agent.so"), "/a/liboffheap_agent.so", None),
            (
                Some("/x/libfaketime.so /x/libjemalloc.so.2"),
                "/a/liboffheap_agent.so:/x/libfaketime.so /x/libjemalloc.so.2",
                Some("/x/libjemalloc.so.2"),
            ),
        ] {
            let (value, found) = preload(existing.map(OsStr::new), agent);
            assert_eq!((value.to_str().unwrap(), found.as_deref()), (expected, other), "{existing:?}");
        }
    }

    #[test]
    fn a_socket_that_cannot_be_made_is_said_beforehand() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("file"), "").unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(at("left-behind.sock")).unwrap();
        for (name, expected) in [
            ("a-%p.sock", None),
            ("left-behind.sock", None),
            ("none/a.sock", Some("there is no folder")),
            ("file", Some("something else stands there")),
            (&*"a".repeat(120), Some("at most 107")),
        ] {
            let why = unusable_socket(&at(name));
            assert_eq!(why.is_some(), expected.is_some(), "{name}: {why:?}");
            assert!(why.unwrap_or_default().contains(expected.unwrap_or_default()), "{name}");
        }
    }
}
