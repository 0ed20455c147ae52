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
    pub(crate) regions: Vec<Region>,
    /// Mode of `/sys/kernel/mm/transparent_hugepage/enabled`.
    pub(crate) thp: Option<String>,
    /// jemalloc is linked into the executable.
    pub(crate) has_own_jemalloc: bool,
    /// The agent, or why it cannot be asked; `None` when it is not loaded.
    pub(crate) agent: Option<Result<AgentFacts, String>>,
    /// Why the loader refuses to preload into this executable.
    pub(crate) preload_refusal: Option<String>,
}

/// Answers of the agent.
#[derive(Clone, Debug)]
pub(crate) struct AgentFacts {
    pub(crate) info: Info,
    pub(crate) stats: Stats,
}

/// A mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Readable and writable.
    pub(crate) writable: bool,
    /// No access at all.
    pub(crate) reserved: bool,
    /// Path, or name in brackets; empty for anonymous memory.
    pub(crate) name: String,
    pub(crate) rss: u64,
    pub(crate) huge: u64,
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

    pub(crate) fn has_library(&self, file_name: &str) -> Option<&str> {
        self.regions
            .iter()
            .map(|region| region.name.as_str())
            .find(|name| name.rsplit('/').next().is_some_and(|file| file.starts_with(file_name)))
    }
}

/// Resident bytes of Go's heap: mappings that the runtime names (kernels with `CONFIG_ANON_VMA_NAME`), else anonymous
/// ones in the first terabyte from where the runtime asks for its arenas, on 64-bit Linux `0xc000000000`, on arm64
/// `0x4000000000`.
pub(crate) fn go_heap_resident(regions: &[Region]) -> u64 {
    const HINTS: [u64; 2] = [0xc0_0000_0000, 0x40_0000_0000];
    const SPAN: u64 = 1 << 40;
    let named: u64 = regions.iter().filter(|region| region.name.starts_with("[anon: Go: heap")).map(|r| r.rss).sum();
    if named > 0 {
        return named;
    }
    let in_arenas = |region: &&Region| {
        region.name.is_empty()
            && HINTS.iter().any(|hint| (*hint..hint + SPAN).contains(&region.start))
            // arm64's hint is an ordinary place on x86-64, where its neighbourhood is never used either way: PIE
            // programs and libraries stand above 0x550000000000.
            && region.end < 0x5500_0000_0000
    };
    regions.iter().filter(in_arenas).map(|region| region.rss).sum()
}

/// A heap of one of glibc's arenas: memory at an address that is a multiple of 64 MiB, followed by what is reserved up
/// to the next multiple.
///
/// ```text
/// 7f5c24000000-7f5c24021000 rw-p 00000000 00:00 0
/// 7f5c24021000-7f5c28000000 ---p 00000000 00:00 0
/// ```
pub(crate) fn is_glibc_heap(region: &Region, next: Option<&Region>) -> bool {
    const HEAP: u64 = 64 << 20;
    let anonymous = |region: &Region| region.name.is_empty() || region.name.starts_with("[anon: glibc: malloc");
    if !region.start.is_multiple_of(HEAP) || !region.writable || !anonymous(region) {
        return false;
    }
    let end = region.start + HEAP;
    region.end == end || next.is_some_and(|next| next.reserved && next.start == region.end && next.end == end)
}

#[cfg(test)]
mod tests {
    use super::{Region, go_heap_resident, is_glibc_heap};

    fn region(start: u64, end: u64, writable: bool, name: &str, rss: u64) -> Region {
        Region { start, end, writable, reserved: !writable, name: name.into(), rss, huge: 0 }
    }

    #[test]
    fn heaps_of_glibc_are_told_by_their_place() {
        let base = 0x7f5c_2400_0000;
        let whole = 64 << 20;
        let heap = region(base, base + 0x21000, true, "", 0x21000);
        for (label, region, next, expected) in [
            ("heap", heap.clone(), Some(region(base + 0x21000, base + whole, false, "", 0)), true),
            ("full heap", region(base, base + whole, true, "", 5), None, true),
            (
                "reserved part of another size",
                heap.clone(),
                Some(region(base + 0x21000, base + 2 * whole, false, "", 0)),
                false,
            ),
            ("no reserved part", heap, None, false),
            ("other place", region(base + 4096, base + 8192, true, "", 0), None, false),
            ("file", region(base, base + whole, true, "/x", 0), None, false),
        ] {
            assert_eq!(is_glibc_heap(&region, next.as_ref()), expected, "{label}");
        }
    }

    #[test]
    fn the_go_heap_is_known_by_name_else_by_place() {
        let regions = [
            region(0xc0_0000_0000, 0xc0_0400_0000, true, "", 100),
            region(0x7f00_0000_0000, 0x7f00_0000_1000, true, "", 7),
            region(0x5555_5555_0000, 0x5555_5556_0000, true, "[heap]", 9),
        ];
        assert_eq!(go_heap_resident(&regions), 100);
        let mut named = regions.to_vec();
        named.push(region(0x7f10_0000_0000, 0x7f10_0000_1000, true, "[anon: Go: heap]", 55));
        assert_eq!(go_heap_resident(&named), 55);
    }
}
