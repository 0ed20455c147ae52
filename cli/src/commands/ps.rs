//! `offheap ps`

use crate::elf;
use crate::exit::Outcome;
use crate::output;
use crate::target::{Allocator, Host, Target, hosts, is_root, living_thread};
use crate::view::json;
use crate::view::table::{Cell, Table};
use crate::words::text::counted;
use serde::Serialize;
use std::fs::File;

/// Arguments of `ps`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    processes: Vec<Row>,
    /// Processes that could not be looked into: of other users, or protected by the kernel.
    hidden: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    pid: u32,
    name: String,
    allocator: &'static str,
    /// The agent is loaded.
    agent: bool,
    socket: Option<String>,
    go: bool,
    advice: String,
}

/// List the processes for which something can be done.
pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut rows = Vec::new();
    let mut hidden = 0;
    for host in hosts()? {
        match host.maps() {
            Ok(maps) => rows.extend(row(&host, &maps)),
            // Ended meanwhile, or kept from us: only the latter is worth a word.
            Err(_) => hidden += usize::from(Host::of(host.pid).is_ok()),
        }
    }
    if args.json {
        output::print(&json::document("ps", &Document { processes: rows, hidden })?)?;
        return Ok(Outcome::Done);
    }
    if hidden > 0 {
        output::note(&hidden_note(hidden, is_root()));
    }
    if rows.is_empty() {
        output::note("no process has the agent, jemalloc, or cgo; start one with `offheap run -- CMD`");
        return Ok(Outcome::Nothing);
    }
    let mut table = Table::new().number("pid").name("name").name("allocator").name("socket").name("advice");
    for row in &rows {
        let socket = row.socket.as_deref().unwrap_or("-");
        table.row([&row.pid.to_string(), &row.name, row.allocator, socket, &row.advice].map(Cell::from));
    }
    output::print(&table.render(&output::screen()))?;
    Ok(Outcome::Done)
}

/// Why the list is shorter than the machine's: "run as root" helps nobody who is.
fn hidden_note(hidden: usize, root: bool) -> String {
    let who = counted(hidden as u64, "process");
    if root {
        format!(
            "the kernel keeps {who} from being looked into even by root here (more capabilities, or another user \
             namespace); look from the host's own root"
        )
    } else {
        format!("{who} of other users cannot be looked into; run as root to see them")
    }
}

/// `None` for a process that has nothing to do with us.
fn row(host: &Host, maps: &str) -> Option<Row> {
    let mut allocator = Allocator::from_maps(maps);
    // Through /proc: the file may be deleted, replaced, or inside a container.
    let executable =
        File::open(format!("/proc/{}/exe", living_thread(host.pid))).and_then(|file| elf::read(&file)).ok().flatten();
    let executable = executable.unwrap_or_default();
    if executable.has_jemalloc && matches!(allocator, Allocator::Glibc | Allocator::Musl | Allocator::None) {
        allocator = Allocator::Jemalloc(String::new());
    }
    let target = (allocator == Allocator::Offheap).then(|| Target::of_host(host));
    let advice = advice(&allocator, executable.is_go, target.as_ref().map(|target| target.as_ref().err()))?;
    Some(Row {
        pid: host.pid,
        name: host.name.clone(),
        allocator: allocator.name(),
        agent: allocator == Allocator::Offheap,
        socket: target.and_then(Result::ok).map(|target| target.socket.display().to_string()),
        go: executable.is_go,
        advice,
    })
}

/// What to do about a process; `None` when there is nothing.
fn advice(allocator: &Allocator, is_go: bool, socket: Option<Option<&anyhow::Error>>) -> Option<String> {
    Some(match (allocator, socket) {
        (Allocator::Offheap, Some(Some(error))) => format!("{error:#}"),
        (Allocator::Offheap, _) => "ready: `offheap attach`".into(),
        (Allocator::Jemalloc(path), _) if path.is_empty() => {
            "jemalloc inside the program: MALLOC_CONF=prof:true, then `offheap convert` its dumps".into()
        }
        (Allocator::Jemalloc(_), _) if is_go => "start it with `offheap run`: stacks will reach into Go".into(),
        (Allocator::Jemalloc(_), _) => "start it with `offheap run`, in place of its jemalloc".into(),
        (Allocator::Glibc, _) if is_go => "cgo on glibc malloc: start it with `offheap run`".into(),
        (Allocator::Musl, _) if is_go => "cgo on musl: the agent needs a glibc-based image".into(),
        (Allocator::Other(_), _) if is_go => "start it with `offheap run`, in place of its allocator".into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{advice, hidden_note, row};
    use crate::target::{Allocator, Host};

    #[test]
    fn only_processes_with_something_to_do_are_listed() {
        let library = |path: &str| Allocator::Jemalloc(path.into());
        for (allocator, is_go, expected) in [
            (Allocator::Glibc, false, None),
            (Allocator::Glibc, true, Some("cgo on glibc")),
            (Allocator::None, true, None),
            (Allocator::Musl, true, Some("glibc-based")),
            (library("/lib/libjemalloc.so.2"), false, Some("in place of its jemalloc")),
            (library(""), false, Some("inside the program")),
            (Allocator::Offheap, true, Some("ready")),
        ] {
            let found = advice(&allocator, is_go, None);
            assert_eq!(found.is_some(), expected.is_some(), "{allocator:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{allocator:?}");
        }
    }

    #[test]
    fn root_is_not_told_to_become_root() {
        assert!(hidden_note(1, false).contains("1 process of other users cannot be looked into; run as root"));
        let root = hidden_note(2, true);
        assert!(root.contains("2 processes") && !root.contains("run as root"), "{root}");
    }

    #[test]
    fn this_process_on_plain_malloc_is_not_listed() {
        let host = Host::of(std::process::id()).unwrap();
        assert!(row(&host, &host.maps().unwrap()).is_none());
    }
}
