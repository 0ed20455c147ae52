use crate::analysis::smaps::Mapping;
use crate::analysis::smaps_owners::{Kind, Owners};
use crate::cgroup::Cgroup;
use crate::elf::GoBuild;
use offheap_wire::{Info, Stats};
use std::collections::BTreeMap;

/// What was read about a process and its surroundings; `None` is unknown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Go's build information, when it is a Go program.
    pub(crate) go: Option<GoBuild>,
    /// Variables of its environment.
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) cgroup: Cgroup,
    /// CPUs that it may run on.
    pub(crate) affinity: Option<u64>,
    /// CPUs of the machine.
    pub(crate) machine_cpus: Option<u64>,
    pub(crate) rss: Option<u64>,
    /// The highest RSS so far, `VmHWM`.
    pub(crate) peak_rss: Option<u64>,
    /// Its mappings.
    pub(crate) mappings: Vec<Mapping>,
    /// Mode of `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub(crate) thp: Option<String>,
    /// jemalloc is linked into the executable.
    pub(crate) has_own_jemalloc: bool,
    /// The agent, or why it cannot be asked; `None` when it is not loaded.
    pub(crate) agent: Option<Result<AgentFacts, Unreachable>>,
    /// Why the loader refuses to preload into this executable.
    pub(crate) preload_refusal: Option<String>,
}

/// Why an agent that is loaded cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreachable {
    /// In words.
    pub(crate) reason: String,
    pub(crate) obstacle: Obstacle,
}

/// What stands between us and the agent, as far as the remedy depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It has no socket.
    NoSocket,
    /// Its socket is not for this user.
    Denied,
    /// A signal or a debugger holds the process of this pid.
    Stopped(u32),
    /// It has a socket and does not answer.
    Silent,
}

/// Answers of the agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentFacts {
    pub(crate) info: Info,
    pub(crate) stats: Stats,
    /// Threads that return pages in the background run now.
    pub(crate) background_thread: Option<bool>,
}

impl Facts {
    /// A variable that is set to something.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A run-time option of jemalloc, as the agent reports it.
    pub(crate) fn jemalloc_option(&self, name: &str) -> Option<&str> {
        self.agent_facts()?.info.jemalloc.opt.get(name).map(|value| value.trim_matches('"'))
    }

    pub(crate) fn agent_facts(&self) -> Option<&AgentFacts> {
        self.agent.as_ref()?.as_ref().ok()
    }

    /// Resident bytes of the Go heap's arenas.
    pub(crate) fn go_heap_resident(&self) -> u64 {
        Owners::of(&self.mappings, self.go.is_some()).part(Kind::GoHeap).rss
    }

    /// Path of a mapped library whose file name begins so.
    pub(crate) fn has_library(&self, file_name: &str) -> Option<&str> {
        self.mappings
            .iter()
            .map(|mapping| mapping.name.as_str())
            .find(|name| name.rsplit('/').next().is_some_and(|file| file.starts_with(file_name)))
    }
}

/// A heap of one of glibc's arenas: memory at an address that is a multiple of 64 MiB, followed by what is reserved up
/// to the next multiple.
///
/// ```text
/// 7f5c24000000-7f5c24021000 rw-p 00000000 00:00 0
/// 7f5c24021000-7f5c28000000 ---p 00000000 00:00 0
/// ```
pub(crate) fn is_glibc_heap(mapping: &Mapping, next: Option<&Mapping>) -> bool {
    const HEAP: u64 = 64 << 20;
    let anonymous = mapping.name.is_empty() || mapping.name.starts_with("[anon: glibc: malloc");
    if !mapping.start.is_multiple_of(HEAP) || !mapping.writable || !anonymous {
        return false;
    }
    let end = mapping.start + HEAP;
    mapping.end == end || next.is_some_and(|next| next.is_reserved() && next.start == mapping.end && next.end == end)
}

#[cfg(test)]
mod tests {
    use super::is_glibc_heap;
    use crate::analysis::smaps::Mapping;

    fn mapping(start: u64, end: u64, writable: bool, name: &str) -> Mapping {
        Mapping { start, end, readable: writable, writable, name: name.into(), ..Mapping::default() }
    }

    #[test]
    fn heaps_of_glibc_are_told_by_their_place() {
        let base = 0x7f5c_2400_0000;
        let whole = 64 << 20;
        let heap = mapping(base, base + 0x21000, true, "");
        let reserved = |end| Some(mapping(base + 0x21000, end, false, ""));
        for (label, mapping, next, expected) in [
            ("heap", heap.clone(), reserved(base + whole), true),
            ("full heap", mapping(base, base + whole, true, ""), None, true),
            ("reserved part of another size", heap.clone(), reserved(base + 2 * whole), false),
            ("no reserved part", heap, None, false),
            ("other place", mapping(base + 4096, base + 8192, true, ""), None, false),
            ("file", mapping(base, base + whole, true, "/x"), None, false),
        ] {
            assert_eq!(is_glibc_heap(&mapping, next.as_ref()), expected, "{label}");
        }
    }
}
