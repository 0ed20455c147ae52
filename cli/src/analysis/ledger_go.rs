//! The Go side of the ledger: MemStats laid over the mappings of the Go heap.
//!
//! In use, idle and stacks are spans of the heap's arenas, so they divide what is resident there. MemStats counts whole
//! spans: a span with one object counts in full although its pages are touched one by one, hence in use comes last and
//! takes what is missing. Pages beyond MemStats have three causes: work buffers of the garbage collector, which lie in
//! arenas but are part of `GCSys`; pages that were released and are resident all the same, because a huge page or
//! `MADV_FREE` holds them; and spans taken between the two readings, which stay unexplained.

use super::ledger::{Draft, Owner, Readings, settle};
use super::smaps_owners::{Kind, Owners};

/// What is left over after the arenas were divided.
#[derive(Debug, Default)]
pub(super) struct Arenas {
    /// Resident in arenas beyond every figure.
    pub(super) unexplained: u64,
    /// Of the runtime's own figures, the bytes that lie in arenas.
    pub(super) runtime_in_arenas: u64,
    /// Taken from anonymous mappings, where no arena was recognised.
    pub(super) from_anonymous: u64,
}

/// Divide the arenas. The runtime's share of them is added by [`runtime`].
pub(super) fn arenas(draft: &mut Draft, owners: &Owners, readings: Readings<'_>) -> Arenas {
    let part = owners.part(Kind::GoHeap);
    let named = "smaps: mappings named Go: heap";
    let shaped = "smaps: mappings with the shape of Go's arenas";
    let place = if owners.go_named { named } else { shaped };
    let Some((memory, source)) = readings.go else {
        draft.row(Owner::GoHeap, part.rss, place);
        if part.rss > 0 {
            draft.note(
                "a Go endpoint (--go http://HOST:PORT/debug/pprof/heap, or --go auto) would divide the Go heap into in \
                 use, idle and stacks, and tell the Go runtime's structures from other anonymous memory",
            );
        }
        return Arenas::default();
    };
    let claims = [memory.idle_unreturned(), memory.stack_inuse, memory.heap_inuse];
    let claimed = claims.iter().fold(0_u64, |sum, claim| sum.saturating_add(*claim));
    if part.rss == 0 {
        // The runtime takes any place when those that it prefers are taken; then only totals are left.
        let measured = claimed.min(owners.part(Kind::Anonymous).rss);
        draft.note(
            "no mapping has the shape of a Go heap, so that what MemStats claims was taken from the total of anonymous \
             memory; is the Go endpoint that of this process?",
        );
        divide(draft, measured, claims, 0, source.name(), "total only");
        draft.ledger.go_untouched = claimed - measured;
        return Arenas { from_anonymous: measured, ..Arenas::default() };
    }
    let held = part.lazy_free + part.anon_huge_pages;
    let beyond = divide(draft, part.rss, claims, held, source.name(), place);
    let ([work_buffers], unexplained) = settle(beyond, [memory.gc_sys]);
    draft.ledger.go_untouched = claimed.saturating_sub(part.rss);
    Arenas { unexplained, runtime_in_arenas: work_buffers, from_anonymous: 0 }
}

/// Rows of idle, stacks and in use; returns the bytes beyond them.
fn divide(draft: &mut Draft, measured: u64, claims: [u64; 3], held: u64, by: &str, place: &str) -> u64 {
    let ([idle, stacks, in_use], beyond) = settle(measured, claims);
    let ([held], beyond) = settle(beyond, [held]);
    draft.row(Owner::GoInUse, in_use, format!("{by}: HeapInuse, as far as resident ({place})"));
    let also = if held > 0 { "; released pages that huge pages or MADV_FREE keep resident" } else { "" };
    draft.row(Owner::GoIdle, idle + held, format!("{by}: HeapIdle - HeapReleased{also}"));
    draft.row(Owner::GoStacks, stacks, format!("{by}: StackInuse"));
    beyond
}

/// The runtime's own structures; returns what of the anonymous mappings is nobody's.
///
/// With named mappings they are measured. Without, MemStats says how much address space they have. At most that much of
/// the anonymous mappings is theirs, and none of a single mapping that is larger than all of them together: an upper
/// bound, which is tight unless C code maps many small pieces.
pub(super) fn runtime(
    draft: &mut Draft,
    owners: &Owners,
    readings: Readings<'_>,
    arenas: &Arenas,
    anonymous: u64,
) -> u64 {
    let named = owners.part(Kind::GoRuntime).rss;
    if owners.go_named {
        let bytes = named + arenas.runtime_in_arenas;
        draft.row(Owner::GoRuntime, bytes, "smaps: mappings that the Go runtime named");
        return anonymous;
    }
    let Some((memory, source)) = readings.go else { return anonymous };
    let outside = memory.outside_arenas().saturating_sub(arenas.runtime_in_arenas);
    let structures = outside.min(owners.anonymous_up_to(memory.outside_arenas())).min(anonymous);
    draft.row(
        Owner::GoRuntime,
        structures + arenas.runtime_in_arenas,
        format!(
            "{}: MSpanSys + MCacheSys + BuckHashSys + GCSys + OtherSys are {} B; resident in anonymous mappings that fit",
            source.name(),
            memory.outside_arenas()
        ),
    );
    anonymous - structures
}
