//! RSS by owner, every byte on one row.
//!
//! RSS is the sum of `Rss` over `/proc/PID/smaps`, and so the rows add up to it by construction: each mapping belongs to
//! one [`Kind`], and what an allocator says of itself only *divides* what the kernel measured in that allocator's
//! mappings. An allocator counts pages that it handed out; the kernel counts pages that were touched. Where the
//! allocator's figures exceed the measured bytes, the difference was never touched and holds no memory; where they fall
//! short of it, the rest is `unattributed`, unless huge pages or `MADV_FREE` explain it.

use super::go_runtime::{GoMemory, Source};
use super::ledger_go;
use super::ledger_native;
use super::smaps::Mapping;
use super::smaps_owners::{Kind, Owners};
use offheap_wire::Stats;
use serde::{Serialize, Serializer};

/// Who holds the bytes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// Images and mapped files.
    FileBacked,
    /// memfd, `/dev/shm`, System V.
    SharedMemory,
    /// Spans with objects.
    GoInUse,
    /// Spans without, kept by the runtime.
    GoIdle,
    /// Stacks of goroutines.
    GoStacks,
    /// Structures of the Go runtime.
    GoRuntime,
    /// Arenas of a Go heap whose runtime was not asked.
    GoHeap,
    /// Allocated by the program.
    JemallocLive,
    /// Freed, held by thread caches.
    JemallocCached,
    /// Free regions of slabs that hold others in use.
    JemallocSlabWaste,
    /// The page by which each large allocation is shifted.
    JemallocPadding,
    /// Unused pages that the kernel was not given back yet.
    JemallocUnreturned,
    /// Structures of jemalloc.
    JemallocMetadata,
    /// A C allocator that could not be asked.
    Native,
    /// Stacks of threads.
    ThreadStacks,
    /// Anonymous memory that is neither allocator's.
    OtherAnonymous,
    /// Not explained.
    Unattributed,
}

impl Owner {
    /// Its name in tables and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::FileBacked => "file-backed",
            Self::SharedMemory => "shared memory",
            Self::GoInUse => "Go heap in use",
            Self::GoIdle => "Go heap idle, not yet released",
            Self::GoStacks => "Go stacks",
            Self::GoRuntime => "Go runtime",
            Self::GoHeap => "Go heap, not split",
            Self::JemallocLive => "jemalloc live",
            Self::JemallocCached => "jemalloc cached",
            Self::JemallocSlabWaste => "jemalloc slab waste",
            Self::JemallocPadding => "jemalloc padding",
            Self::JemallocUnreturned => "jemalloc unreturned",
            Self::JemallocMetadata => "jemalloc metadata",
            Self::Native => "native allocators, not split",
            Self::ThreadStacks => "thread stacks",
            Self::OtherAnonymous => "other anonymous",
            Self::Unattributed => "unattributed",
        }
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    /// Who.
    pub(crate) owner: Owner,
    /// Resident bytes.
    pub(crate) bytes: u64,
    /// How they were measured.
    pub(crate) measured_by: String,
}

/// The ledger of one reading; bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Ledger {
    /// Resident memory of the process, the sum of `rows`.
    pub(crate) rss: u64,
    /// By owner; `unattributed` is the last.
    pub(crate) rows: Vec<Row>,
    /// The bytes of the row of this name.
    pub(crate) unattributed: u64,
    /// Memory that C code mapped for itself, outside both allocators; part of `other anonymous` and `shared memory`.
    pub(crate) outside_allocators: u64,
    /// Of `rss`, in huge pages: one object keeps 2 MiB resident.
    pub(crate) anon_huge_pages: u64,
    /// Of `rss`, given up by `MADV_FREE`: the kernel takes it when it needs it.
    pub(crate) lazy_free: u64,
    /// Swapped out, not part of `rss`.
    pub(crate) swap: u64,
    /// In pages of hugetlbfs, not part of `rss`.
    pub(crate) hugetlb: u64,
    /// What jemalloc counts as resident without it ever having been touched, not part of `rss`.
    pub(crate) native_untouched: u64,
    /// The same of the Go heap.
    pub(crate) go_untouched: u64,
    /// What would make the ledger finer, and what to know when reading it.
    pub(crate) notes: Vec<String>,
}

/// What the ledger is made of: readings that were taken close together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Readings<'a> {
    /// The mappings.
    pub(crate) mappings: &'a [Mapping],
    /// Go code is in the process.
    pub(crate) is_go: bool,
    /// The statistics of the preloaded jemalloc.
    pub(crate) native: Option<&'a Stats>,
    /// The statistics of the Go runtime.
    pub(crate) go: Option<(&'a GoMemory, Source)>,
}

/// Rows under construction.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) ledger: Ledger,
}

impl Draft {
    /// Add a row; an empty one only says that nothing is there and is left out.
    pub(super) fn row(&mut self, owner: Owner, bytes: u64, measured_by: impl Into<String>) {
        if bytes > 0 {
            self.ledger.rows.push(Row { owner, bytes, measured_by: measured_by.into() });
        }
    }

    /// Add a remark.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.ledger.notes.push(text.into());
    }
}

/// Divide what was `measured` among claims, the most certain first; what the claims leave is returned last. A later
/// claim gets less, or nothing, when the measured bytes run out.
pub(super) fn settle<const N: usize>(measured: u64, claims: [u64; N]) -> ([u64; N], u64) {
    let mut left = measured;
    let granted = claims.map(|claim| {
        let bytes = claim.min(left);
        left -= bytes;
        bytes
    });
    (granted, left)
}

/// Make the ledger.
pub(crate) fn of(readings: Readings<'_>) -> Ledger {
    let owners = Owners::of(readings.mappings, readings.is_go);
    let total = owners.total();
    let mut draft = Draft::default();
    draft.ledger.rss = total.rss;
    draft.ledger.anon_huge_pages = total.anon_huge_pages;
    draft.ledger.lazy_free = total.lazy_free;
    draft.ledger.swap = total.swap;
    draft.ledger.hugetlb = total.hugetlb;

    let files = owners.part(Kind::File);
    draft.row(
        Owner::FileBacked,
        files.rss,
        format!(
            "smaps: mappings of files; {} B shared with other processes, {} B changed by this one",
            files.shared, files.anonymous
        ),
    );
    draft.row(Owner::SharedMemory, owners.part(Kind::SharedMemory).rss, "smaps: memfd, /dev/shm, System V");
    draft.ledger.outside_allocators = owners.part(Kind::SharedMemory).rss;

    let go = ledger_go::arenas(&mut draft, &owners, readings);
    let anonymous = owners.part(Kind::Anonymous).rss - go.from_anonymous;
    let native = ledger_native::mappings(&mut draft, &owners, readings.native, anonymous);
    let anonymous = ledger_go::runtime(&mut draft, &owners, readings, &go, native.anonymous);

    draft.row(
        Owner::ThreadStacks,
        owners.part(Kind::ThreadStack).rss,
        format!(
            "smaps: [stack] and mappings above a guard, {} of them touched",
            owners.part(Kind::ThreadStack).mappings
        ),
    );
    let unexplained =
        remainder(&mut draft, &owners, readings.native.is_some_and(|stats| stats.resident.is_some()), anonymous);
    draft.ledger.unattributed = go.unexplained + native.unexplained + unexplained;
    draft.ledger.rows.push(Row {
        owner: Owner::Unattributed,
        bytes: draft.ledger.unattributed,
        measured_by: unexplained_by(&go, &native, unexplained),
    });
    debug_assert_eq!(draft.ledger.rows.iter().map(|row| row.bytes).sum::<u64>(), total.rss);
    draft.ledger
}

/// Program data, the `brk` heap, and anonymous mappings that nobody claimed. With jemalloc read these are known to be
/// outside both allocators. Without, a C allocator's large blocks look the same as a mapping made by hand: returned as
/// unexplained.
fn remainder(draft: &mut Draft, owners: &Owners, native_known: bool, anonymous: u64) -> u64 {
    let data = owners.part(Kind::ImageData).rss;
    if !native_known {
        draft.row(Owner::OtherAnonymous, data, "smaps: data of programs and libraries (.bss)");
        return anonymous;
    }
    let brk = owners.part(Kind::BrkHeap).rss;
    draft.ledger.outside_allocators += brk + anonymous;
    draft.row(
        Owner::OtherAnonymous,
        data + brk + anonymous,
        format!(
            "smaps: {data} B data of programs and libraries (.bss), {brk} B [heap], {anonymous} B anonymous mappings \
             outside both allocators"
        ),
    );
    0
}

fn unexplained_by(go: &ledger_go::Arenas, native: &ledger_native::Native, anonymous: u64) -> String {
    let parts: Vec<String> = [
        (go.unexplained, "in the Go heap's arenas beyond MemStats"),
        (native.unexplained, "in allocator mappings beyond jemalloc's resident"),
        (anonymous, "in anonymous mappings: large blocks of a C allocator, or mapped directly"),
    ]
    .into_iter()
    .filter(|(bytes, _)| *bytes > 0)
    .map(|(bytes, place)| format!("{bytes} B {place}"))
    .collect();
    if parts.is_empty() { "everything is explained".into() } else { parts.join("; ") }
}

impl Ledger {
    /// Bytes of an owner.
    pub(crate) fn bytes(&self, owner: Owner) -> u64 {
        self.rows.iter().filter(|row| row.owner == owner).map(|row| row.bytes).sum()
    }

    /// Bytes of several owners.
    pub(crate) fn bytes_of(&self, owners: &[Owner]) -> u64 {
        owners.iter().map(|owner| self.bytes(*owner)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::{Ledger, Owner, Readings, of, settle};
    use crate::analysis::go_runtime::{GoMemory, Source};
    use crate::analysis::smaps::{Flags, Mapping, parse};
    use offheap_wire::{BinStats, Stats};

    const MIB: u64 = 1 << 20;

    fn mapping(start: u64, size: u64, rss: u64, no_reserve: bool) -> Mapping {
        Mapping {
            start,
            end: start + size,
            readable: true,
            writable: true,
            rss,
            flags: Some(Flags { no_reserve }),
            ..Mapping::default()
        }
    }

    /// A Go arena with 40 MiB resident, jemalloc with 100 MiB, 4 MiB mapped directly and 3 by the Go runtime.
    fn process() -> Vec<Mapping> {
        vec![
            Mapping { name: "/srv/svc".into(), ..mapping(0x40_0000, 8 * MIB, 5 * MIB, false) },
            mapping(0xc0_0000_0000, 64 * MIB, 40 * MIB, false),
            mapping(0x7f00_0000_0000, 256 * MIB, 100 * MIB, true),
            mapping(0x7f10_0000_0000, 16 * MIB, 4 * MIB, false),
            mapping(0x7f20_0000_0000, MIB, MIB, false),
            mapping(0x7f30_0000_0000, 2 * MIB, 2 * MIB, false),
            Mapping { name: "[stack]".into(), ..mapping(0x7ffc_0000_0000, MIB, 8192, false) },
        ]
    }

    fn native() -> Stats {
        Stats {
            allocated: Some(70 * MIB),
            active: Some(85 * MIB),
            metadata: Some(4 * MIB),
            resident: Some(100 * MIB),
            tcache: Some(2 * MIB),
            bins: vec![BinStats {
                size: 448,
                slab_size: 28672,
                curslabs: 1170,
                curregs: 40_000,
                ..BinStats::default()
            }],
            ..Stats::default()
        }
    }

    fn go() -> GoMemory {
        GoMemory {
            heap_inuse: 20 * MIB,
            heap_idle: 30 * MIB,
            heap_released: 12 * MIB,
            stack_inuse: 2 * MIB,
            stack_sys: 2 * MIB,
            gc_sys: 2 * MIB,
            other_sys: MIB,
            ..GoMemory::default()
        }
    }

    fn rows(ledger: &Ledger) -> u64 {
        ledger.rows.iter().map(|row| row.bytes).sum()
    }

    #[test]
    fn every_byte_has_its_row() {
        let (mappings, stats, memory) = (process(), native(), go());
        let ledger = of(Readings {
            mappings: &mappings,
            is_go: true,
            native: Some(&stats),
            go: Some((&memory, Source::HeapText)),
        });
        assert_eq!(rows(&ledger), ledger.rss);
        assert_eq!(ledger.rss, 152 * MIB + 8192);
        let waste = 1170 * 28672 - 40_000 * 448;
        for (owner, bytes) in [
            (Owner::FileBacked, 5 * MIB),
            (Owner::GoInUse, 20 * MIB),
            (Owner::GoIdle, 18 * MIB),
            (Owner::GoStacks, 2 * MIB),
            (Owner::GoRuntime, 3 * MIB),
            (Owner::JemallocLive, 68 * MIB),
            (Owner::JemallocCached, 2 * MIB),
            (Owner::JemallocSlabWaste, waste),
            (Owner::JemallocPadding, 15 * MIB - waste),
            (Owner::JemallocUnreturned, 11 * MIB),
            (Owner::JemallocMetadata, 4 * MIB),
            (Owner::ThreadStacks, 8192),
            (Owner::OtherAnonymous, 4 * MIB),
            (Owner::Unattributed, 0),
        ] {
            assert_eq!(ledger.bytes(owner), bytes, "{}", owner.name());
        }
        assert_eq!(ledger.outside_allocators, 4 * MIB);
    }

    #[test]
    fn what_was_never_touched_holds_no_memory() {
        let mappings = process();
        let stats =
            Stats { allocated: Some(170 * MIB), active: Some(185 * MIB), resident: Some(200 * MIB), ..native() };
        let memory = GoMemory { heap_inuse: 120 * MIB, ..go() };
        let ledger = of(Readings {
            mappings: &mappings,
            is_go: true,
            native: Some(&stats),
            go: Some((&memory, Source::HeapText)),
        });
        assert_eq!(rows(&ledger), ledger.rss);
        assert_eq!(ledger.unattributed, 0);
        assert_eq!(ledger.bytes(Owner::GoInUse), 20 * MIB);
        assert_eq!((ledger.go_untouched, ledger.native_untouched), (100 * MIB, 100 * MIB));
    }

    #[test]
    fn what_the_allocators_do_not_know_of_is_shown() {
        let mut mappings = process();
        mappings[1].rss = 60 * MIB;
        mappings[2].rss = 130 * MIB;
        mappings[2].lazy_free = 10 * MIB;
        let (stats, memory) = (native(), go());
        let ledger = of(Readings {
            mappings: &mappings,
            is_go: true,
            native: Some(&stats),
            go: Some((&memory, Source::HeapText)),
        });
        assert_eq!(rows(&ledger), ledger.rss);
        // Of 30 MiB in jemalloc's mappings 10 were given up lazily; of 20 MiB in the arenas 2 may be GC work buffers.
        assert_eq!(ledger.bytes(Owner::JemallocUnreturned), 21 * MIB);
        assert_eq!(ledger.unattributed, 20 * MIB + 18 * MIB);
    }

    #[test]
    fn without_readings_only_the_kernel_speaks() {
        let mappings = process();
        let ledger = of(Readings { mappings: &mappings, is_go: true, native: None, go: None });
        assert_eq!(rows(&ledger), ledger.rss);
        assert_eq!(ledger.bytes(Owner::GoHeap), 40 * MIB);
        assert_eq!(ledger.bytes(Owner::Native), 100 * MIB);
        assert_eq!(ledger.unattributed, 7 * MIB);
        assert!(ledger.notes.iter().any(|note| note.contains("--go")), "{:?}", ledger.notes);
        assert!(ledger.notes.iter().any(|note| note.contains("offheap run")), "{:?}", ledger.notes);
    }

    #[test]
    fn without_the_flag_totals_must_do() {
        let mut mappings = process();
        for mapping in &mut mappings {
            mapping.flags = None;
        }
        let (stats, memory) = (native(), go());
        let ledger = of(Readings {
            mappings: &mappings,
            is_go: true,
            native: Some(&stats),
            go: Some((&memory, Source::HeapText)),
        });
        assert_eq!(rows(&ledger), ledger.rss);
        assert_eq!(ledger.bytes(Owner::JemallocLive), 68 * MIB);
        assert_eq!(ledger.bytes(Owner::OtherAnonymous), 4 * MIB);
    }

    #[test]
    fn a_go_heap_at_an_odd_place_is_taken_from_the_total() {
        let mut mappings = process();
        mappings[1].start += 4096;
        let memory = GoMemory { heap_inuse: 30 * MIB, ..go() };
        let go = Some((&memory, Source::Expvar));
        let ledger = of(Readings { mappings: &mappings, is_go: true, native: Some(&native()), go });
        assert_eq!(rows(&ledger), ledger.rss);
        assert_eq!((ledger.bytes(Owner::GoInUse), ledger.bytes(Owner::GoIdle)), (27 * MIB, 18 * MIB));
        assert_eq!(ledger.go_untouched, 3 * MIB);
    }

    #[test]
    fn a_recorded_process_adds_up() {
        let mappings = parse(include_bytes!("../../../testdata/smaps/go126-jemalloc.smaps")).unwrap();
        for is_go in [true, false] {
            let ledger = of(Readings { mappings: &mappings, is_go, native: None, go: None });
            assert_eq!(rows(&ledger), ledger.rss);
        }
    }

    #[test]
    fn the_first_claims_are_served_first() {
        assert_eq!(settle(10, [4, 3, 2]), ([4, 3, 2], 1));
        assert_eq!(settle(5, [4, 3, 2]), ([4, 1, 0], 0));
    }
}
