//! Whose each mapping is, as far as the kernel's own record shows it.
//!
//! | kind | told by |
//! |---|---|
//! | file | a path |
//! | shared memory | a path that names memory: memfd, `/dev/shm`, System V |
//! | Go heap, Go runtime | `[anon: Go: …]`, or the place and shape of the heap's arenas |
//! | no-reserve | `MAP_NORESERVE` (`nr`), which jemalloc and glibc's arenas ask for and the Go runtime does not |
//! | thread stack | a guard of at most 64 KiB directly below, and no larger than a stack may be; `[stack]` |
//! | image data | anonymous memory that continues the mapping of a file: `.bss` |
//! | brk heap | `[heap]` |
//! | anonymous | what is left |
//!
//! jemalloc's flag was seen in the same process as Go's mappings without it, on Linux 6.18; it is absent when the host
//! forbids overcommitting (`vm.overcommit_memory=2`), and then [`crate::analysis::ledger`] falls back to totals.

use super::smaps::Mapping;
use std::collections::BTreeMap;

/// Go's heap grows in arenas of this size, at multiples of it (64-bit Linux).
const GO_ARENA: u64 = 64 << 20;
/// glibc's guards are one page; 64 KiB is the largest page size.
const LARGEST_GUARD: u64 = 64 << 10;
/// A stack larger than this was given a size on purpose; more likely the mapping above has merged with it.
const LARGEST_STACK: u64 = 64 << 20;

/// Who made a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A file, changed pages included; the pages that the kernel lends to every process.
    File,
    /// Memory that other processes can map.
    SharedMemory,
    /// Arenas of the Go heap.
    GoHeap,
    /// The Go runtime's own structures.
    GoRuntime,
    /// Mapped without reserving swap: a C allocator's.
    NoReserve,
    /// Stacks of threads, the main one included.
    ThreadStack,
    /// Zeroed data of an image.
    ImageData,
    /// What `brk` gave.
    BrkHeap,
    /// Anonymous without any mark.
    Anonymous,
}

/// Mappings of one kind together; bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// How many have anything resident.
    pub(crate) mappings: u64,
    /// Resident.
    pub(crate) rss: u64,
    /// Of it, mapped by other processes too.
    pub(crate) shared: u64,
    /// Of it, without a file behind it.
    pub(crate) anonymous: u64,
    /// Of it, given up by `MADV_FREE`.
    pub(crate) lazy_free: u64,
    /// Of it, in huge pages.
    pub(crate) anon_huge_pages: u64,
    /// Swapped out.
    pub(crate) swap: u64,
    /// In pages of hugetlbfs, not resident by the kernel's count.
    pub(crate) hugetlb: u64,
}

impl Part {
    fn add(&mut self, mapping: &Mapping) {
        self.mappings += u64::from(mapping.rss > 0);
        self.rss += mapping.rss;
        self.shared += mapping.shared_resident;
        self.anonymous += mapping.anonymous;
        self.lazy_free += mapping.lazy_free;
        self.anon_huge_pages += mapping.anon_huge_pages;
        self.swap += mapping.swap;
        self.hugetlb += mapping.hugetlb;
    }
}

/// The mappings of a process by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owners {
    parts: BTreeMap<Kind, Part>,
    /// Size and resident bytes of each anonymous mapping.
    anonymous: Vec<(u64, u64)>,
    /// The kernel named Go's mappings.
    pub(crate) go_named: bool,
}

impl Owners {
    /// Sort the mappings. `is_go`: Go code is in the process; without it nothing is taken for a Go heap by its shape.
    pub(crate) fn of(mappings: &[Mapping], is_go: bool) -> Self {
        let mut owners = Self { go_named: mappings.iter().any(|m| go_name(m).is_some()), ..Self::default() };
        for (mapping, kind) in mappings.iter().zip(kinds(mappings, is_go)) {
            owners.parts.entry(kind).or_default().add(mapping);
            if kind == Kind::Anonymous {
                owners.anonymous.push((mapping.size(), mapping.rss));
            }
        }
        owners
    }

    /// The mappings of one kind.
    pub(crate) fn part(&self, kind: Kind) -> Part {
        self.parts.get(&kind).copied().unwrap_or_default()
    }

    /// Resident bytes of anonymous mappings that are no larger than `size`.
    pub(crate) fn anonymous_up_to(&self, size: u64) -> u64 {
        self.anonymous.iter().filter(|mapping| mapping.0 <= size).map(|mapping| mapping.1).sum()
    }

    /// All mappings.
    pub(crate) fn total(&self) -> Part {
        self.parts.values().fold(Part::default(), |sum, part| Part {
            mappings: sum.mappings + part.mappings,
            rss: sum.rss + part.rss,
            shared: sum.shared + part.shared,
            anonymous: sum.anonymous + part.anonymous,
            lazy_free: sum.lazy_free + part.lazy_free,
            anon_huge_pages: sum.anon_huge_pages + part.anon_huge_pages,
            swap: sum.swap + part.swap,
            hugetlb: sum.hugetlb + part.hugetlb,
        })
    }
}

/// The kind of each mapping.
pub(crate) fn kinds(mappings: &[Mapping], is_go: bool) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::with_capacity(mappings.len());
    for (index, mapping) in mappings.iter().enumerate() {
        let below = index.checked_sub(1).map(|i| (&mappings[i], kinds[i])).filter(|(m, _)| m.end == mapping.start);
        kinds.push(kind(mapping, below));
    }
    if is_go {
        for (first, last) in go_arenas(mappings) {
            kinds[first..last].fill(Kind::GoHeap);
        }
    }
    kinds
}

/// The kind of a mapping by itself and by the one directly below it.
fn kind(mapping: &Mapping, below: Option<(&Mapping, Kind)>) -> Kind {
    match mapping.name.as_str() {
        "[heap]" => return Kind::BrkHeap,
        "[stack]" => return Kind::ThreadStack,
        "[anon:jemalloc_pg]" => return Kind::NoReserve,
        name if name.starts_with("[stack:") => return Kind::ThreadStack,
        name if is_shared_memory(name) => return Kind::SharedMemory,
        name if go_name(mapping).is_some() => return go_kind(name),
        name if name.is_empty() || name.starts_with("[anon:") || name.starts_with("//anon") => {}
        name if name.starts_with("[anon_shmem:") => return Kind::SharedMemory,
        _ => return Kind::File,
    }
    if mapping.shared {
        return Kind::SharedMemory;
    }
    if no_reserve(mapping) {
        return Kind::NoReserve;
    }
    match below {
        Some((_, Kind::File)) if mapping.writable => Kind::ImageData,
        Some((guard, Kind::Anonymous)) if is_stack(mapping, guard) => Kind::ThreadStack,
        _ => Kind::Anonymous,
    }
}

fn no_reserve(mapping: &Mapping) -> bool {
    mapping.flags.is_some_and(|flags| flags.no_reserve)
}

fn is_stack(mapping: &Mapping, guard: &Mapping) -> bool {
    mapping.writable
        && guard.is_reserved()
        && guard.size() <= LARGEST_GUARD
        && mapping.size() > guard.size()
        && mapping.size() <= LARGEST_STACK
}

fn is_shared_memory(path: &str) -> bool {
    ["/memfd:", "/dev/shm/", "/SYSV", "/dev/zero", "/anon_hugepage"].iter().any(|start| path.starts_with(start))
}

/// What the Go runtime named a mapping: `heap` of `[anon: Go: heap]`. Go 1.25 and newer name them where the kernel was
/// built to take names.
fn go_name(mapping: &Mapping) -> Option<&str> {
    mapping.name.strip_prefix("[anon: Go: ")?.strip_suffix(']')
}

fn go_kind(name: &str) -> Kind {
    match name.trim_start_matches("[anon: Go: ").trim_end_matches(']') {
        "heap" | "heap reservation" | "user arena chunk" | "used" | "unused" => Kind::GoHeap,
        _ => Kind::GoRuntime,
    }
}

/// Runs `first..last` of mappings that have the shape of Go's arenas: private anonymous memory without a name, unbroken
/// from one multiple of the arena size to another, the part not grown into yet only reserved. Go asks for them at
/// 0xc000000000 and, since 1.26, at a random place; either way apart from where the kernel puts everybody else's
/// mappings, so that nothing else touches a run. glibc's arenas have the same size and alignment, but are mapped with
/// `MAP_NORESERVE`.
fn go_arenas(mappings: &[Mapping]) -> Vec<(usize, usize)> {
    let plain = |m: &Mapping| m.name.is_empty() && !m.shared && !no_reserve(m);
    let mut runs = Vec::new();
    let mut first = 0;
    while first < mappings.len() {
        let mut last = first + 1;
        if plain(&mappings[first]) {
            while last < mappings.len() && plain(&mappings[last]) && mappings[last].start == mappings[last - 1].end {
                last += 1;
            }
            let (start, end) = (mappings[first].start, mappings[last - 1].end);
            let used = mappings[first..last].iter().any(|m| m.writable);
            // With neither flags nor a place of its own, glibc's arenas would pass for Go's.
            let apart = mappings[first].flags.is_some() || start < 0x7000_0000_0000;
            if start % GO_ARENA == 0 && end % GO_ARENA == 0 && used && apart {
                runs.push((first, last));
            }
        }
        first = last;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::{Kind, Owners, kinds};
    use crate::analysis::smaps::parse;

    /// Recorded from the service `causes` with jemalloc preloaded, Go 1.26, Linux 6.18.
    const RECORDED: &[u8] = include_bytes!("../../../testdata/smaps/go126-jemalloc.smaps");

    #[test]
    fn each_kind_in_a_recorded_process() {
        let mappings = parse(RECORDED).unwrap();
        let kinds = kinds(&mappings, true);
        let at = |address: u64| {
            let index = mappings.iter().position(|m| m.start == address).unwrap();
            kinds[index]
        };
        let rows = include_str!("../../../testdata/smaps/go126-jemalloc.kinds");
        for row in rows.lines().filter(|line| !line.starts_with('#')) {
            let (address, kind) = row.split_once(' ').unwrap();
            let address = u64::from_str_radix(address, 16).unwrap();
            assert_eq!(format!("{:?}", at(address)), kind, "{address:x}");
        }
        let owners = Owners::of(&mappings, true);
        assert_eq!(owners.total().rss, mappings.iter().map(|m| m.rss).sum::<u64>());
        assert!(!owners.go_named);
    }

    #[test]
    fn nothing_is_a_go_heap_in_a_process_without_go() {
        let mappings = parse(RECORDED).unwrap();
        assert!(kinds(&mappings, false).iter().all(|kind| *kind != Kind::GoHeap));
    }

    #[test]
    fn names_decide_where_the_kernel_has_them() {
        let text = "c000000000-c000400000 rw-p 0 00:00 0 [anon: Go: heap]\nRss: 4096 kB\n\
            c000400000-c004000000 ---p 0 00:00 0 [anon: Go: heap reservation]\nRss: 0 kB\n\
            7f0000000000-7f0000040000 rw-p 0 00:00 0 [anon: Go: immortal metadata]\nRss: 64 kB\n\
            7f0001000000-7f0001040000 rw-p 0 00:00 0 [anon:jemalloc_pg]\nRss: 8 kB\n\
            7f0002000000-7f0002040000 rw-s 0 00:01 9 /memfd:cache (deleted)\nRss: 16 kB\n\
            7f0003000000-7f0003040000 rw-p 0 00:00 0 [anon:libc_malloc]\nRss: 4 kB\n";
        let mappings = parse(text.as_bytes()).unwrap();
        let owners = Owners::of(&mappings, false);
        assert!(owners.go_named);
        for (kind, rss) in [
            (Kind::GoHeap, 4096),
            (Kind::GoRuntime, 64),
            (Kind::NoReserve, 8),
            (Kind::SharedMemory, 16),
            (Kind::Anonymous, 4),
        ] {
            assert_eq!(owners.part(kind).rss, rss << 10, "{kind:?}");
        }
    }

    #[test]
    fn a_mapping_that_swallowed_a_stack_is_no_stack() {
        let text = "7f0000000000-7f0000001000 ---p 0 00:00 0\nRss: 0 kB\n\
            7f0000001000-7f0000801000 rw-p 0 00:00 0\nRss: 12 kB\n\
            7f1000000000-7f1000001000 ---p 0 00:00 0\nRss: 0 kB\n\
            7f1000001000-7f1020801000 rw-p 0 00:00 0\nRss: 500000 kB\n";
        let owners = Owners::of(&parse(text.as_bytes()).unwrap(), true);
        assert_eq!(owners.part(Kind::ThreadStack).rss, 12 << 10);
        assert_eq!(owners.part(Kind::Anonymous).rss, 500_000 << 10);
    }
}
